//! The diagnostic codes of mistakes in a text, by the stage that finds them.
//!
//! A code is for good: one that is no longer used is not given to anything else. What each
//! means, with a program that gets it and one that does not, is told by `tfrt explain`.

/// Declares codes, each with a line on what is wrong, and the list of all of them.
///
/// `NAME = "TF0101", "summary";` becomes
/// ```ignore
/// #[doc = "summary"]
/// pub const NAME: &str = "TF0101";
/// ```
/// and a pair in `ALL`.
macro_rules! codes {
    ($($name:ident = $code:literal, $summary:literal;)*) => {
        $(
            #[doc = $summary]
            pub const $name: &str = $code;
        )*

        /// Every code, with a line on what is wrong.
        pub const ALL: &[(&str, &str)] = &[$(($code, $summary)),*];
    };
}

codes! {
    UNREADABLE = "TF0001", "a file cannot be read";
    NOT_UTF8 = "TF0002", "a text is not UTF-8";
    TOO_LARGE = "TF0003", "a file is larger than any program";

    UNEXPECTED_CHARACTER = "TF0101", "a character that starts nothing";
    UNCLOSED_STRING = "TF0102", "a string without its closing quote";
    UNKNOWN_ESCAPE = "TF0103", "an escape that strings do not know";
    MISSING_NAME = "TF0104", "no name behind '%', '@', '^', '#' or '!'";
    SINGLE_SLASH = "TF0105", "a comment with one slash";
    UNEXPECTED_TOKEN = "TF0106", "something else than the grammar has here";
    UNEXPECTED_END = "TF0107", "the text ends too early";
    EXPECTED_OPERATION = "TF0108", "no operation where one must begin";
    EXPECTED_VALUE = "TF0109", "no value where an operation takes one";
    EXPECTED_TYPE = "TF0110", "no type where one must stand";
    EXPECTED_ATTRIBUTE = "TF0111", "no constant, or not the kind of constant that is asked for";
    EXPECTED_ATTRIBUTE_NAME = "TF0112", "no name of an attribute where one must stand";
    EXPECTED_SYMBOL = "TF0113", "no name of a function where one must stand";
    EXPECTED_LOCATION = "TF0114", "a location that cannot be read";
    UNBALANCED_BRACKETS = "TF0115", "a bracket without its partner";
    TOO_DEEP = "TF0116", "nesting that is too deep";
    RESULT_NUMBER = "TF0117", "a number of results, or of a result, that is none";
    UNKNOWN_OPERATION = "TF0118", "an operation in short form that nobody knows";
    NO_SHORT_FORM = "TF0119", "an operation in short form that has none";
    UNNAMED_ARGUMENTS = "TF0120", "arguments of which some have names and some do not";
    EMPTY_BODY = "TF0121", "a function with a body that holds nothing";
    LABEL_BEFORE_ARGUMENTS = "TF0122", "a label in a region whose arguments have names already";
    MISSING_ELSE = "TF0123", "a condition with results and without 'else'";
    OPERAND_TYPE_COUNT = "TF0124", "more or fewer types than operands";
    WRITTEN_OPERAND_COUNT = "TF0125", "more or fewer operands than an operation takes";
    DUPLICATE_ATTRIBUTE = "TF0126", "an attribute that is there twice";
    RESERVED_ALIAS = "TF0127", "an alias with a dot in its name";
    ALIASES_TOO_LARGE = "TF0128", "aliases that stand for too much text";

    UNDEFINED_VALUE = "TF0201", "a value that nothing defines";
    REDEFINED_VALUE = "TF0202", "a value that is defined twice";
    NO_SUCH_RESULT = "TF0203", "a result that the operation does not have";
    RESULT_NAME_COUNT = "TF0204", "more or fewer names than results";
    REPEATED_ARGUMENT = "TF0205", "an operand that would name two arguments of a region";
    UNDEFINED_BLOCK = "TF0206", "a block that is not defined";
    REDEFINED_BLOCK = "TF0207", "a block that is defined twice";
    BLOCK_OUTSIDE_REGION = "TF0208", "a block where no region is";
    UNDEFINED_ALIAS = "TF0209", "an alias that is not defined";
    REDEFINED_ALIAS = "TF0210", "an alias that is defined twice";
    CIRCULAR_ALIAS = "TF0211", "an alias that stands for itself";
    ALIAS_IN_CONSTANT = "TF0212", "a location used as a constant that holds an alias";
    REDEFINED_SYMBOL = "TF0213", "a function or module that is defined twice";
    UNDEFINED_CALLEE = "TF0214", "a call of a function that is not there";

    TYPE_MISMATCH = "TF0301", "a value used with another type than it has";
    INTEGER_RANGE = "TF0302", "an integer that its type cannot hold";
    NEGATIVE_UNSIGNED = "TF0303", "a negative number of an unsigned type";
    LITERAL_TYPE = "TF0304", "a number of a type that has no such numbers";
    INTEGER_FOR_FLOAT = "TF0305", "an integer where a float must be";
    FLOAT_RANGE = "TF0306", "a float that its type cannot hold";
    NEGATIVE_HEX_FLOAT = "TF0307", "a minus before the bits of a float";
    UNSUPPORTED_FLOAT = "TF0308", "a constant of a float type without constants";
    INTEGER_TOO_LONG = "TF0309", "a decimal integer with too many digits";
    INTEGER_WIDTH = "TF0310", "an integer type that is too wide";
    ELEMENT_TYPE = "TF0311", "a type that cannot be an element";
    DIMENSION = "TF0312", "a size of a tensor or vector that is none";
    ELEMENTS_TYPE = "TF0313", "elements of a type that holds none";
    ELEMENTS_SHAPE = "TF0314", "elements that do not fit the shape";
    ELEMENTS_RANK = "TF0315", "lists of elements that are not equally deep";
    ELEMENT_KIND = "TF0316", "an element of the wrong kind";
    ELEMENTS_BYTES = "TF0317", "elements as bytes that do not fit the type";

    OPERAND_COUNT = "TF0401", "an operation with too few or too many operands";
    OPERAND_TYPE = "TF0402", "an operand of a type that the operation does not take";
    RESULT_COUNT = "TF0403", "an operation with too few or too many results";
    RESULT_TYPE = "TF0404", "a result of a type that the operation does not give";
    MISSING_ATTRIBUTE = "TF0405", "an operation without an attribute that it needs";
    ATTRIBUTE_KIND = "TF0406", "an attribute of the wrong kind";
    REGION_COUNT = "TF0407", "an operation with too few or too many regions";
    BLOCK_COUNT = "TF0408", "a region with too few or too many blocks";
    NO_TERMINATOR = "TF0409", "a block that does not end in a return";
    EMPTY_BLOCK = "TF0410", "a block that holds nothing";
    MISPLACED_TERMINATOR = "TF0411", "an operation behind the end of its block";
    JUMP_TO_ENTRY = "TF0412", "a jump to the first block of a region";
    USE_BEFORE_DEFINITION = "TF0413", "a value used where it is not defined yet";
    CALL_OPERANDS = "TF0415", "operands that do not fit the function that is called";
    CALL_RESULTS = "TF0416", "results that do not fit the function that is called";
    NO_CALLEE = "TF0417", "a call that names no function";
    RETURNED_VALUES = "TF0418", "a return that does not fit its function";
    REGION_RESULTS = "TF0419", "a return that does not fit the operation around it";
    REGION_ARGUMENTS = "TF0420", "arguments of a region that do not fit the operands";
    NO_RETURN_IN_REGION = "TF0421", "a region that does not end in 'tfrt.return'";
    ENTRY_ARGUMENTS = "TF0422", "arguments of the first block that are not the function's";
    PUBLIC_DECLARATION = "TF0423", "a function without a body that is not private";
    RETURN_OUTSIDE_FUNCTION = "TF0424", "a 'func.return' that is not in a function";
    LOOP_VALUES = "TF0425", "a loop whose results are not like its operands";
    PARALLEL_CALLEE = "TF0426", "a function that cannot be called in parallel";
    BENCHMARK_RESULTS = "TF0427", "a benchmark that returns what it must not";
    COST = "TF0428", "a cost that is none";
    SYMBOL_PARENT = "TF0429", "a function or named module inside something that holds none";
    UNPREFIXED_ATTRIBUTE = "TF0430", "an attribute of a module or argument without its dialect's name";
    UNKNOWN_ATTRIBUTE = "TF0431", "an attribute that the operation does not have";
    ATTRIBUTE_VALUE = "TF0432", "an attribute of a value that it can't have";
    USELESS_ATTRIBUTE = "TF0433", "an attribute that does nothing with the others that are there";

    NOT_PRODUCED = "TF0901", "an announced diagnostic did not come";
    UNANNOUNCED = "TF0902", "a diagnostic came that was not announced";
    ANNOUNCEMENT = "TF0903", "an announcement that cannot be read";
}
