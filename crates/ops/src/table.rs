//! [`Table`]: the rows of this crate, and rows that are added while a program runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::def::OpDef;

/// The built-in rows, and added ones. A counted handle: all clones have the same rows.
///
/// # Examples
///
/// A row whose name is made at run time is found until its handle is dropped:
///
/// ```
/// use tfrt_ops::{OpDef, Table, intern};
///
/// let table = Table::default();
/// let name = format!("my.{}", "twice");
/// let added = table.add(&[OpDef::new(intern(&name), "Twice each element.")])?;
/// assert_eq!(table.find("my.twice").unwrap().summary, "Twice each element.");
/// drop(added);
/// assert!(table.find("my.twice").is_none() && table.find("relu").is_some());
/// # Ok::<(), tfrt_ops::AddError>(())
/// ```
#[derive(Clone, Default)]
pub struct Table {
    added: Arc<RwLock<BTreeMap<&'static str, OpDef>>>,
}

/// A guard that keeps rows in a [`Table`]. When it is dropped they are no longer found; what was made of them stays.
#[must_use = "the rows are taken out again when this is dropped"]
pub struct AddedRows {
    table: Table,
    names: Vec<&'static str>,
}

/// The reason why rows can't be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddError {
    /// The row is not called `DIALECT.NAME`, or its dialect is a built-in one.
    Name(&'static str),
    /// There is a row of that name already.
    Twice(&'static str),
}

impl fmt::Display for AddError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddError::Name(name) => write!(
                f,
                "expected a row called DIALECT.NAME in a dialect of its own, found '{}'",
                name.escape_debug()
            ),
            AddError::Twice(name) => write!(f, "there is a row '{name}' already"),
        }
    }
}

impl std::error::Error for AddError {}

/// Dialects that rows can't be added to: those of built-in rows, of kernels, and of programs.
const TAKEN: &[&str] = &["graph", "onnx", "cpu", "func", "builtin", "tfrt"];

impl Table {
    /// Adds rows, all or none.
    ///
    /// # Errors
    ///
    /// If a name has no dialect of its own, or is there already.
    pub fn add(&self, rows: &[OpDef]) -> Result<AddedRows, AddError> {
        let mut added = self.added.write().unwrap_or_else(PoisonError::into_inner);
        let mut names = Vec::with_capacity(rows.len());
        for row in rows {
            let is_named = row.name.split_once('.').is_some_and(|(dialect, name)| {
                !TAKEN.contains(&dialect) && [dialect, name].into_iter().all(is_word)
            });
            if !is_named {
                return Err(AddError::Name(row.name));
            }
            if added.contains_key(row.name) || names.contains(&row.name) {
                return Err(AddError::Twice(row.name));
            }
            names.push(row.name);
        }
        added.extend(rows.iter().map(|row| (row.name, *row)));
        drop(added);
        let table = self.clone();
        Ok(AddedRows { table, names })
    }

    /// Returns the row of a name.
    pub fn find(&self, name: &str) -> Option<OpDef> {
        crate::find(name).copied().or_else(|| self.find_added(name))
    }

    /// Returns the names of the rows that were added.
    pub fn added_names(&self) -> Vec<&'static str> {
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
        added.keys().copied().collect()
    }

    /// Returns the row of a name, if it was added.
    pub fn find_added(&self, name: &str) -> Option<OpDef> {
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
        added.get(name).copied()
    }
}

fn is_word(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_.$-".contains(c);
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && text.chars().all(is_part)
}

impl Drop for AddedRows {
    fn drop(&mut self) {
        let added = &self.table.added;
        let mut added = added.write().unwrap_or_else(PoisonError::into_inner);
        for name in &self.names {
            added.remove(name);
        }
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_set().entries(added.keys()).finish()
    }
}

impl fmt::Debug for AddedRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(&self.names).finish()
    }
}

static INTERNED: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Returns the text with static lifetime, one and the same for equal content, so that names of rows can be made at
/// run time without leaking more each time.
pub fn intern(text: &str) -> &'static str {
    let mut all: MutexGuard<'_, _> = INTERNED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.get(text) {
        return known;
    }
    let known: &'static str = Box::leak(Box::from(text));
    all.insert(known);
    known
}
