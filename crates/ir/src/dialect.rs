//! What an operation is, as data: one entry per operation, in one place.
//!
//! Parser, printer, verifier and documentation all read these entries. The
//! tables themselves are in `dialects/`, one file per dialect.

mod definition;
mod documentation;
mod effects;
pub(crate) mod format;
pub(crate) mod function;
mod signature;
mod traits;
mod value_kind;
mod writing;

use std::{collections::HashMap, sync::LazyLock};

use crate::{dialects, name::TextHash};

pub use definition::{
    AttributeDef, ErrorDef, Example, Execution, OpDef, Results, ValueDef, VerifyOp,
};
pub use documentation::{Page, reference};
pub use effects::Effects;
pub use format::Format;
pub use traits::Traits;
pub use value_kind::{AttributeKind, ValueKind};

static TABLE: LazyLock<HashMap<&'static str, OpDef, TextHash>> = LazyLock::new(|| {
    let definitions = dialects::all();
    definitions
        .into_iter()
        .map(|definition| (definition.name, definition))
        .collect()
});

/// Returns the entry of an operation that programs are checked against.
pub fn lookup(name: &str) -> Option<&'static OpDef> {
    describe(name).filter(|definition| !definition.is(Traits::KERNEL_ONLY))
}

/// Returns the entry of an operation, be it only documentation.
pub fn describe(name: &str) -> Option<&'static OpDef> {
    TABLE.get(name)
}

/// Returns all entries, sorted by name.
///
/// # Examples
///
/// ```
/// let all = tfrt_ir::dialect::definitions();
/// assert!(all.iter().any(|definition| definition.name() == "tfrt.add.i32"));
/// ```
pub fn definitions() -> Vec<&'static OpDef> {
    let mut all: Vec<_> = TABLE.values().collect();
    all.sort_by_key(|definition| definition.name);
    all
}

/// Returns the entry of a native function, which a program declares rather than
/// uses as an operation.
pub fn describe_native(name: &str) -> Option<&'static OpDef> {
    natives()
        .iter()
        .find(|definition| definition.name() == name)
}

/// Returns the entries of all native functions, sorted by name.
pub fn natives() -> &'static [OpDef] {
    static NATIVES: LazyLock<Vec<OpDef>> = LazyLock::new(|| {
        let mut all = dialects::natives();
        all.sort_by_key(|definition| definition.name);
        all
    });
    &NATIVES
}
