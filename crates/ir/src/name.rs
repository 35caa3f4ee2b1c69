//! Names of operations, attributes, symbols and files: counted, cheap to clone.
//!
//! A [`Name`] compares by content; two clones compare by address first. The
//! parser makes each distinct name once through an `Interner`, so that text
//! with a million operations holds a handful of names.

use std::{
    borrow::Borrow,
    collections::HashMap,
    fmt,
    hash::{Hash, Hasher},
    ops::Deref,
    sync::Arc,
};

/// A counted, immutable string.
#[derive(Clone, Eq, PartialOrd, Ord)]
pub struct Name(Arc<str>);

impl Name {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the part before the first dot: `tfrt` of `tfrt.add.i32`.
    pub fn dialect(&self) -> &str {
        self.split_once('.').map_or("", |(dialect, _)| dialect)
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        self
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name(text.into())
    }
}

impl From<String> for Name {
    fn from(text: String) -> Name {
        Name(text.into())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// The hash of tables that are keyed by short pieces of source text. Seeded at random, so that
/// nobody can prepare a text full of collisions.
pub(crate) type TextHash = foldhash::fast::RandomState;

/// A table that makes each distinct name once.
#[derive(Default)]
pub(crate) struct Interner<'a> {
    names: HashMap<&'a str, Name, TextHash>,
}

impl<'a> Interner<'a> {
    /// Returns the name for a piece of source text.
    pub fn name(&mut self, text: &'a str) -> Name {
        self.names
            .entry(text)
            .or_insert_with(|| text.into())
            .clone()
    }
}
