//! Codes of messages about plugins.

/// A file that is no library for this machine.
pub const UNREADABLE: &str = "TF1401";
/// A plugin that asks for TensorFlow's C++ classes.
pub const CPP_SYMBOLS: &str = "TF1402";
/// A plugin that asks for a library that is nowhere.
pub const MISSING_LIBRARY: &str = "TF1403";
/// A plugin that asks for symbols that no library has.
pub const MISSING_SYMBOLS: &str = "TF1404";
/// A plugin that asks for symbols of a version.
pub const VERSIONS: &str = "TF1405";
/// A plugin that can't be loaded, for the loader's reason or its own.
pub const NOT_LOADED: &str = "TF1406";
/// A plugin whose kernel clashes with another.
pub const CLASH: &str = "TF1407";
/// A library that is no plugin.
pub const NO_PLUGIN: &str = "TF1408";
/// A call of an operation that neither the runtime nor a plugin has.
pub const UNKNOWN_OP: &str = "TF1409";
/// A call of an operation with side effects that no chain orders.
pub const NO_CHAIN: &str = "TF1410";

/// All codes, with a line on what is wrong.
pub const ALL: &[(&str, &str)] = &[
    (UNREADABLE, "a file that is no library for this machine"),
    (
        CPP_SYMBOLS,
        "a plugin that asks for TensorFlow's C++ classes",
    ),
    (
        MISSING_LIBRARY,
        "a plugin that asks for a library that is nowhere",
    ),
    (
        MISSING_SYMBOLS,
        "a plugin that asks for symbols that no library has",
    ),
    (VERSIONS, "a plugin that asks for symbols of a version"),
    (NOT_LOADED, "a plugin that can't be loaded"),
    (CLASH, "a plugin whose kernel clashes with another"),
    (NO_PLUGIN, "a library that is no plugin"),
    (
        UNKNOWN_OP,
        "a call of an operation that neither tfrt nor a plugin has",
    ),
    (
        NO_CHAIN,
        "a call of an operation with side effects that no chain orders",
    ),
];
