//! The codes of mistakes in models.
//!
//! A code is for good: one that is no longer used is not given to anything else. What each
//! means is told by `tfrt explain`.

/// Declares codes, each with a line on the mistake, and the list of all of them.
///
/// `NAME = "TF1001", "summary";` becomes
/// ```ignore
/// #[doc = "summary"]
/// pub const NAME: &str = "TF1001";
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
    NOT_A_MODEL = "TF1001", "bytes that are no model";
    MODEL_TOO_DEEP = "TF1002", "a model whose parts are nested too deeply";
    MODEL_TOO_LARGE = "TF1003", "a model that would take too much memory";
    OPSET = "TF1004", "a version of an operator set that is missing or unknown";
    MODEL_VALUE = "TF1005", "a value of a model that nothing makes";
    MODEL_VALUE_TWICE = "TF1006", "a value of a model that is made twice";
    MODEL_CYCLE = "TF1007", "nodes of a model that wait for each other";
    MODEL_TENSOR = "TF1008", "a tensor of a model whose elements do not fit";
    MODEL_ELEMENT_TYPE = "TF1009", "an element type that models do not have";
    MODEL_DIMENSION = "TF1010", "a dimension of a model that is none";
    MODEL_TYPE = "TF1011", "a type of a model that is incomplete or unknown";
    MODEL_ATTRIBUTE = "TF1012", "an attribute of a node that cannot be read";
    MODEL_NODE = "TF1013", "a node of a model that cannot be read";
    EXTERNAL_DATA = "TF1014", "elements in another file that cannot be had";
    MODEL_FUNCTION = "TF1015", "a function of a model that cannot be expanded";
    MODEL_OPERATOR = "TF1016", "a node that does not fit its operator";
    SPARSE_TENSOR = "TF1017", "a sparse tensor whose parts do not fit";
}
