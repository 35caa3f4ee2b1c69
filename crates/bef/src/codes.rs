//! The diagnostic codes of the gate, one for each kind of flaw in bytes.

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
    HEADER = "TF0601", "the bytes do not begin like a BEF file of a version that we know";
    SECTION_HEADER = "TF0602", "a section that is there twice or reaches beyond the file";
    STRING = "TF0603", "a string that is not UTF-8, has no end, or is not there";
    TRUNCATED = "TF0604", "a section that ends too early";
    NUMBER = "TF0605", "a number that is not in its shortest form or too large";
    LEFT_OVER = "TF0606", "bytes behind the end of a table";
    FUNCTION_ENTRY = "TF0607", "a function of an unknown kind, or whose body is outside";
    TYPE_INDEX = "TF0608", "a type that the file does not have";
    LAYOUT = "TF0609", "a body or kernel record that is misplaced";
    PSEUDO_KERNEL = "TF0610", "a pseudo kernel that does not define the arguments";
    KERNEL_REFERENCE = "TF0611", "a kernel that refers to what the file does not have";
    REGISTER_INDEX = "TF0612", "a register that the function does not have";
    REGISTER_WRITES = "TF0613", "a register that is written twice or never";
    USE_COUNT = "TF0614", "a register that is not read as often as it says";
    WAIT_COUNT = "TF0615", "a kernel that does not wait for its operands";
    USERS = "TF0616", "users of a register that do not read it";
    CYCLE = "TF0617", "kernels that wait for each other";
    SYNC_ORDER = "TF0618", "a synchronous function that reads before it writes";
    SYNC_RESULTS = "TF0619", "a synchronous function that returns an argument or a register twice";
    REGIONS = "TF0620", "regions that are shared, hold themselves or nest too deep";
    LOCATION = "TF0621", "a location that is malformed or not there";
    ATTRIBUTE = "TF0622", "an attribute that does not decode as its type";
    ENTRY_COUNT = "TF0623", "a table with more or fewer entries than it describes";
    REGISTER_TYPE = "TF0624", "a register whose type is not that of the signature";
    NONSTRICT = "TF0625", "a mark on a kernel that is not there";
    NO_MEMORY = "TF0626", "a table for which there is no memory";
    MODEL = "TF0627", "a model that does not fit its function";
}
