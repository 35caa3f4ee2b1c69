//! The diagnostic codes of misfits between a program and the kernels.

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
    UNKNOWN_KERNEL = "TF0701", "a kernel that is not registered";
    UNKNOWN_NATIVE = "TF0702", "a native function that is not registered";
    NATIVE_SIGNATURE = "TF0703", "a native function that is declared otherwise than it is";
    NOT_SYNCHRONOUS = "TF0704", "a kernel that may wait in a synchronous function";
    KERNEL_COUNTS = "TF0705", "a kernel with too few or too many operands, attributes or results";
    KERNEL_TYPES = "TF0706", "a kernel with operands or results of other types";
    KERNEL_ATTRIBUTE = "TF0707", "a kernel with an attribute that it cannot read";
    MALFORMED = "TF0708", "a function that cannot be run";
}
