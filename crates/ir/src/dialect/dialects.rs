//! [`Dialects`]: the tables in which entries of operations are looked up, those of this crate and added ones.

use std::{fmt, ops::Deref, sync::Arc};

use super::{OpDef, definitions, describe};
use crate::similar;

/// The dialects that text may be in: the built-in ones, and those that were added. A counted handle.
///
/// The built-in entries give programs their structure and their short forms, so they are known wherever there is text.
/// What others add ([`Dialect`]) is written in generic form, and is looked up when a module is verified, when an editor
/// asks, and when an error is explained.
///
/// # Examples
///
/// ```
/// use tfrt_ir::Dialects;
///
/// assert!(Dialects::default().describe("tfrt.add.i32").is_some());
/// assert!(Dialects::default().describe("graph.relu").is_none());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Dialects {
    added: Option<Arc<[Arc<dyn Dialect>]>>,
}

/// A dialect whose entries are made of other data, by whoever has that data. They may change while a program runs.
pub trait Dialect: fmt::Debug + Send + Sync {
    /// Returns the entry of an operation by its full name.
    fn find(&self, name: &str) -> Option<Entry>;

    /// Returns the entry that an operation is checked against; `None` if the entry is only documentation.
    fn lookup(&self, name: &str) -> Option<Entry> {
        self.find(name)
    }

    /// Returns all entries, in any order.
    fn all(&self) -> Vec<Entry>;

    /// Returns whether all operations of a dialect have an entry here, so that any other name is a mistake.
    fn is_closed(&self, dialect: &str) -> bool;
}

/// The entry of an operation, wherever it is stored.
#[derive(Clone, Debug)]
pub enum Entry {
    /// An entry that lives as long as the process.
    Static(&'static OpDef),
    /// A counted entry.
    Shared(Arc<OpDef>),
}

impl Deref for Entry {
    type Target = OpDef;

    fn deref(&self) -> &OpDef {
        match self {
            Entry::Static(definition) => definition,
            Entry::Shared(definition) => definition,
        }
    }
}

impl Dialects {
    /// Returns the built-in dialects, and these.
    pub fn new(added: impl IntoIterator<Item = Arc<dyn Dialect>>) -> Dialects {
        let added: Arc<[_]> = added.into_iter().collect();
        Dialects {
            added: (!added.is_empty()).then_some(added),
        }
    }

    fn added(&self) -> &[Arc<dyn Dialect>] {
        self.added.as_deref().unwrap_or_default()
    }

    /// Returns the entry of an operation, be it only documentation.
    pub fn describe(&self, name: &str) -> Option<Entry> {
        describe(name)
            .map(Entry::Static)
            .or_else(|| self.find_added(name))
    }

    /// Returns all entries, sorted by name.
    pub fn definitions(&self) -> Vec<Entry> {
        let mut all: Vec<Entry> = definitions().into_iter().map(Entry::Static).collect();
        all.extend(self.added().iter().flat_map(|dialect| dialect.all()));
        all.sort_by_key(|definition| definition.name());
        all
    }

    /// Returns the entry of an operation that no built-in dialect has.
    fn find_added(&self, name: &str) -> Option<Entry> {
        self.added().iter().find_map(|dialect| dialect.find(name))
    }

    /// Returns the entry that an operation without a built-in one is checked against.
    pub(crate) fn lookup_added(&self, name: &str) -> Option<Entry> {
        self.added().iter().find_map(|dialect| dialect.lookup(name))
    }

    /// Returns whether an operation of this name is a mistake: its dialect has no such.
    pub(crate) fn is_unknown(&self, name: &str) -> bool {
        let Some((dialect, _)) = name.split_once('.') else {
            return false;
        };
        let mut added = self.added().iter();
        added.any(|added| added.is_closed(dialect)) && self.lookup_added(name).is_none()
    }

    /// Returns the operation of an added dialect whose name is closest to one that is not there.
    pub(crate) fn nearest_added(&self, name: &str) -> Option<&'static str> {
        let all = self.added().iter().flat_map(|dialect| dialect.all());
        similar::nearest(name, all.map(|definition| definition.name()))
    }
}
