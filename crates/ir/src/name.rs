//! Names of operations, attributes, symbols and files: counted, cheap to clone.
//!
//! A [`Name`] compares by content; two clones compare by address first. The
//! parser makes each distinct name once through an `Interner`, so that text
//! with a million operations holds a handful of names.

use std::{
    borrow::Borrow,
    collections::HashMap,
    fmt,
    hash::{BuildHasherDefault, Hash, Hasher},
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

/// The hash of the parser's tables, keyed by short pieces of source text.
///
/// Multiplies and folds eight bytes at a time. The seed differs per process,
/// so that nobody can prepare a text full of collisions.
#[derive(Clone, Copy)]
pub(crate) struct TextHasher(u64);

/// Builds [`TextHasher`]s.
pub(crate) type TextHash = BuildHasherDefault<TextHasher>;

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

impl Default for TextHasher {
    fn default() -> TextHasher {
        TextHasher(seed())
    }
}

fn seed() -> u64 {
    use std::{hash::RandomState, sync::LazyLock};
    static SEED: LazyLock<u64> =
        LazyLock::new(|| std::hash::BuildHasher::hash_one(&RandomState::new(), 0_u64));
    *SEED
}

impl TextHasher {
    fn fold(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * u128::from(MULTIPLIER ^ seed());
        let (low, high) = (product & u128::from(u64::MAX), product >> 64);
        self.0 = u64::try_from(low ^ high).expect("both halves are below 2^64");
    }
}

impl Hasher for TextHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.fold(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.fold(u64::from_le_bytes(last) ^ ((bytes.len() as u64) << 56));
    }

    fn write_u8(&mut self, value: u8) {
        self.fold(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.fold(u64::from(value));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Makes each distinct name once.
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
