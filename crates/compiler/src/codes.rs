//! The codes of mistakes that compiling finds, of warnings of decompiling, and of remarks.

/// Declares codes, each with a line on the mistake, and the list of all of them.
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

        /// Every code, with a line on the mistake.
        pub const ALL: &[(&str, &str)] = &[$(($code, $summary)),*];
    };
}

codes! {
    NESTED_MODULE = "TF0501", "a module within a module";
    NESTED_FUNCTION = "TF0502", "a function within a function";
    TOO_DEEP = "TF0503", "regions that nest too deep for files";
    UNDEFINED_FUNCTION = "TF0504", "a function that is named and not there";
    OUTER_VALUE = "TF0505", "a region that uses a value from around it";
    UNNAMED_FUNCTION = "TF0506", "a function without a name or type";
    NO_BODY = "TF0507", "a function without a body that is not native";
    NO_RETURN = "TF0508", "a function that does not end in 'tfrt.return'";
    SYNC_RESULTS = "TF0509", "a synchronous function that returns an argument or a value twice";
    SEVERAL_BLOCKS = "TF0510", "a function or region of several blocks";
    NOT_ENCODABLE = "TF0511", "an attribute or name that files cannot hold";
    STATED_STREAMS = "TF0512", "streams that do not fit the operations";
    NONSTRICT_EFFECTS = "TF0513", "an operation that must wait and is marked not to";
    NOTHING_TO_WAIT_FOR = "TF0514", "an operation with effects that cannot wait or be waited for";
    BROKEN_UNIT = "TF0515", "the text of a compiled module that cannot be parsed";
    GRAPH = "TF0516", "an operation of a model that cannot become a kernel";
    NEVER_SUCCEEDS = "TF0517", "an operation of a model that fails with any input";
    MISSTATED_OUTPUT = "TF0518", "an output of a model that is of another type than is stated";
    NO_PRECISION = "TF0519", "a precision that this processor cannot calculate in";
    OPERAND_TYPES = "TF0520", "an operand of a model's operation that is of a type it does not take";

    SECTIONS_MISSING = "TF0801", "a file without the sections that names and types come from";
    TYPE_NOT_KNOWN = "TF0802", "a type in a file that no text can have";
    ATTRIBUTE_NOT_KNOWN = "TF0803", "an attribute in a file that no text can have";
    LOST_FUNCTIONS = "TF0804", "functions in a file that nothing refers to";
    LOST_MODULE = "TF0805", "a module that a file holds in part";
    STREAM = "TF0806", "the stream of an operation";
}
