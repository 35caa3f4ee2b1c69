//! Definitions of operations, as data: one entry per operation, in one place.
//!
//! Parser, printer, verifier and documentation all read these entries. The
//! tables themselves are in `dialects/`, one file per dialect.

mod definition;
mod dialects;
mod documentation;
mod effects;
pub(crate) mod format;
pub(crate) mod function;
mod keywords;
mod signature;
mod traits;
mod value_kind;
mod writing;

use std::{
    collections::HashMap,
    sync::{LazyLock, OnceLock},
};

use crate::{dialects as tables, name::TextHash};

pub use definition::{
    AttributeDef, CheckFn, ErrorDef, Example, Execution, OpDef, OpParts, Results, ValueDef,
    VerifyOp,
};
pub use dialects::{Dialect, Dialects, Entry};
pub use documentation::{Page, reference};
pub use effects::Effects;
pub use format::Format;
pub use keywords::Keywords;
pub use traits::Traits;
pub use value_kind::{AttributeKind, ValueKind};

/// The table of a dialect's entries.
struct Table {
    make: fn() -> Vec<OpDef>,
    entries: OnceLock<HashMap<&'static str, OpDef, TextHash>>,
}

impl Table {
    fn entries(&self) -> &HashMap<&'static str, OpDef, TextHash> {
        self.entries.get_or_init(|| {
            let entries = (self.make)().into_iter();
            entries.map(|entry| (entry.name, entry)).collect()
        })
    }
}

static TABLES: LazyLock<Vec<(&'static str, Table)>> = LazyLock::new(|| {
    let table = |&(name, make)| {
        let entries = OnceLock::new();
        (name, Table { make, entries })
    };
    tables::ALL.iter().map(table).collect()
});

/// Returns the entry of an operation that programs are checked against.
pub fn lookup(name: &str) -> Option<&'static OpDef> {
    describe(name).filter(|definition| !definition.is(Traits::KERNEL_ONLY))
}

/// Returns the entry of an operation, be it only documentation.
pub fn describe(name: &str) -> Option<&'static OpDef> {
    let (dialect, _) = name.split_once('.')?;
    let mut tables = TABLES.iter();
    let (_, table) = tables.find(|(name, _)| *name == dialect)?;
    table.entries().get(name)
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
    let tables = TABLES.iter().map(|(_, table)| table.entries());
    let mut all: Vec<_> = tables.flat_map(HashMap::values).collect();
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
        let mut all = tables::natives();
        all.sort_by_key(|definition| definition.name);
        all
    });
    &NATIVES
}
