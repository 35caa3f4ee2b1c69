//! Names to kernels: a visible list, filled by calls.
//!
//! A dialect may have hundreds of kernels, of which a program uses a few and most programs none:
//! [`KernelRegistry::add_dialect`] has them made when the first is asked for.

use std::fmt;
use std::sync::{Arc, OnceLock};

use tfrt_bef::order::sort_by;

use super::code::{Code, Made, Stateless};
use super::function::{KernelFn, Shape};
use super::signature::{Parts, Signature};
#[cfg(feature = "tensor")]
use crate::codec::{PLAIN, ValueCodec};

/// A kernel under its name.
#[derive(Clone)]
pub struct KernelEntry {
    name: Arc<str>,
    code: Code,
    signature: Arc<Signature>,
}

impl KernelEntry {
    /// The name, which is the name of the operation.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the kernel's operands, attributes and results.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    pub(crate) fn shared_name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn shared_signature(&self) -> &Arc<Signature> {
        &self.signature
    }

    pub(crate) fn code(&self) -> &Code {
        &self.code
    }
}

impl fmt::Debug for KernelEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.name, self.signature)
    }
}

/// The kernels, and the native functions, that programs may use.
///
/// # Examples
///
/// ```
/// use tfrt_host::kernel::KernelRegistry;
///
/// fn double(x: i32) -> i32 {
///     x.wrapping_mul(2)
/// }
///
/// let mut registry = KernelRegistry::new();
/// registry.add("my.double", double);
/// assert_eq!(registry.get("my.double").unwrap().signature().to_string(), "(i32) -> i32");
/// ```
#[derive(Clone, Debug, Default)]
pub struct KernelRegistry {
    kernels: Table,
    natives: Table,
    dialects: Vec<Dialect>,
    /// Whether a dialect was added that does not come with tfrt.
    has_other_dialects: bool,
    #[cfg(feature = "tensor")]
    codecs: Vec<&'static [ValueCodec]>,
}

/// Kernels that are made when they are asked for.
#[derive(Clone, Debug)]
struct Dialect {
    name: &'static str,
    register: fn(&mut KernelRegistry),
    // Invariant: the names of all are in the dialect, and none is in the registry itself.
    kernels: OnceLock<Table>,
}

impl KernelRegistry {
    /// Makes a registry without kernels.
    pub fn new() -> Self {
        KernelRegistry::default()
    }

    /// Adds a function as the kernel of operations called `name`.
    ///
    /// # Panics
    ///
    /// If there is a kernel of that name: two definitions of one operation are a mistake of the
    /// program that embeds the runtime, and never depend on input.
    pub fn add<M: 'static, F: KernelFn<M>>(&mut self, name: &str, function: F) -> &mut Self {
        insert(&mut self.kernels, name, function);
        self
    }

    /// Adds the kernels of a dialect: `register` is called when one of them is first asked for.
    ///
    /// # Panics
    ///
    /// If there is a dialect of that name; and, when it is called, if `register` adds what is not a
    /// kernel of the dialect, or is there already.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt_host::kernel::KernelRegistry;
    ///
    /// let mut registry = KernelRegistry::new();
    /// registry.add_dialect("my", |registry| {
    ///     registry.add("my.double", |x: i32| x.wrapping_mul(2));
    /// });
    /// assert!(registry.get("my.double").is_some());
    /// ```
    pub fn add_dialect(
        &mut self,
        name: &'static str,
        register: fn(&mut KernelRegistry),
    ) -> &mut Self {
        let is_new = self.dialects.iter().all(|dialect| dialect.name != name);
        assert!(is_new, "two dialects are called '{name}'");
        self.has_other_dialects |= !self.kernels.adds_built_in;
        self.dialects.push(Dialect {
            name,
            register,
            kernels: OnceLock::new(),
        });
        self
    }

    /// Adds a native function: what `func.func private @name(..) attributes {tfrt.native}` runs.
    ///
    /// # Panics
    ///
    /// If there is a native function of that name.
    pub fn add_native<M: 'static, F: KernelFn<M>>(&mut self, name: &str, function: F) -> &mut Self {
        insert(&mut self.natives, name, function);
        self
    }

    /// Adds kernels that come with tfrt: those that `register` adds. Such a kernel leaves its results to the work queue,
    /// to timers, or to promises of its context, so that a host with no others can fail what nothing brings forward
    /// ([`Stuck`](crate::Stuck)).
    pub fn add_built_in(&mut self, register: impl FnOnce(&mut KernelRegistry)) -> &mut Self {
        let before = self.kernels.adds_built_in;
        self.set_built_in(true);
        register(self);
        self.set_built_in(before);
        self
    }

    /// Tells whether all that was ever added came with tfrt.
    pub fn is_built_in(&self) -> bool {
        let has_others = self.kernels.has_others || self.natives.has_others;
        !has_others && !self.has_other_dialects
    }

    fn set_built_in(&mut self, adds_built_in: bool) {
        self.kernels.adds_built_in = adds_built_in;
        self.natives.adds_built_in = adds_built_in;
    }

    /// Adds codecs of the types that kernels take and give.
    ///
    /// # Panics
    ///
    /// If there is a codec of the same type and version.
    #[cfg(feature = "tensor")]
    pub fn add_codecs(&mut self, codecs: &'static [ValueCodec]) -> &mut Self {
        let is_same =
            |a: &ValueCodec, b: &ValueCodec| (a.type_name, a.version) == (b.type_name, b.version);
        for (index, codec) in codecs.iter().enumerate() {
            let lists = self.codecs.iter().copied();
            let mut others = lists.chain([PLAIN, &codecs[..index]]).flatten();
            let is_new = others.all(|other| !is_same(codec, other));
            assert!(is_new, "two codecs of {codec}");
        }
        self.codecs.push(codecs);
        self
    }

    /// The codecs of the kernels' types.
    #[cfg(feature = "tensor")]
    pub fn codecs(&self) -> impl Iterator<Item = &'static [ValueCodec]> {
        self.codecs.iter().copied()
    }

    /// Takes out the kernels, and the native functions, that `keep` does not want: for a host that
    /// runs programs which it trusts with less.
    pub fn retain(&mut self, mut keep: impl FnMut(&KernelEntry) -> bool) -> &mut Self {
        for index in 0..self.dialects.len() {
            self.made(&self.dialects[index]);
            if let Some(kernels) = self.dialects[index].kernels.get_mut() {
                kernels.entries.retain(&mut keep);
            }
        }
        self.kernels.entries.retain(&mut keep);
        self.natives.entries.retain(&mut keep);
        self
    }

    /// Finds a kernel.
    pub fn get(&self, name: &str) -> Option<&KernelEntry> {
        self.kernels.get(name).or_else(|| {
            let (dialect, _) = name.split_once('.')?;
            let mut dialects = self.dialects.iter();
            let dialect = dialects.find(|other| other.name == dialect)?;
            self.made(dialect).get(name)
        })
    }

    /// The kernels of a dialect, which are made if that has not been done.
    fn made<'r>(&'r self, dialect: &'r Dialect) -> &'r Table {
        dialect.kernels.get_or_init(|| {
            let mut registry = KernelRegistry::new();
            (dialect.register)(&mut registry);
            let is_plain = registry.natives.entries.is_empty() && registry.dialects.is_empty();
            assert!(is_plain, "dialect '{}' has kernels only", dialect.name);
            for name in registry.kernels.entries.iter().map(KernelEntry::name) {
                let own = name.split_once('.').map(|(dialect, _)| dialect);
                assert!(
                    own == Some(dialect.name),
                    "'{name}' is not in dialect '{}'",
                    dialect.name
                );
                assert!(
                    self.kernels.find(name).is_err(),
                    "two kernels are called '{name}'"
                );
            }
            registry.kernels
        })
    }

    /// Finds a native function.
    pub fn get_native(&self, name: &str) -> Option<&KernelEntry> {
        self.natives.get(name)
    }

    /// All kernels, in the order of their names.
    pub fn kernels(&self) -> impl Iterator<Item = &KernelEntry> {
        let mut all = self.unordered();
        sort_by(&mut all, |a, b| a.name().cmp(b.name()));
        all.into_iter()
    }

    /// All kernels, in any order.
    fn unordered(&self) -> Vec<&KernelEntry> {
        let mut all: Vec<&KernelEntry> = self.kernels.entries.iter().collect();
        let of_dialects = self.dialects.iter().map(|dialect| self.made(dialect));
        all.extend(of_dialects.flat_map(|table| &table.entries));
        all
    }

    /// All native functions, in the order of their names.
    pub fn natives(&self) -> impl Iterator<Item = &KernelEntry> {
        self.natives.entries.iter()
    }

    /// The registered name nearest to a misspelt one, if it is near enough to be meant.
    pub fn nearest(&self, name: &str) -> Option<&str> {
        nearest(name, self.unordered().into_iter().map(KernelEntry::name))
            .or_else(|| self.of_another_dialect(name))
    }

    /// Finds a kernel that has the same name in another dialect.
    fn of_another_dialect(&self, name: &str) -> Option<&str> {
        let (_, meant) = name.split_once('.')?;
        let is_meant = |other: &str| other.split_once('.').is_some_and(|(_, rest)| rest == meant);
        let names = self.unordered().into_iter().map(KernelEntry::name);
        names.filter(|other| is_meant(other)).min()
    }

    /// Returns the native function whose name is nearest to a name.
    pub fn nearest_native(&self, name: &str) -> Option<&str> {
        nearest(name, self.natives().map(KernelEntry::name))
    }
}

fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let limit = (name.len() / 4).clamp(1, 4);
    let own = letters(name);
    // A hostile file may have thousands of unknown names, most of which have little in common with any other.
    let is_far = |other: &str| {
        if other.len().abs_diff(name.len()) > limit {
            return true;
        }
        let others = letters(other);
        let n_missing = (own & !others)
            .count_ones()
            .max((others & !own).count_ones());
        n_missing as usize > limit
    };
    names
        .filter(|candidate| !is_far(candidate))
        .filter_map(|candidate| Some((distance(name, candidate, limit)?, candidate)))
        .min()
        .map(|(_, candidate)| candidate)
}

/// Returns the set of a name's letters, a bit for each. Each change of a letter takes one out at most, and puts one in.
fn letters(name: &str) -> u64 {
    name.bytes().fold(0, |all, letter| all | 1 << (letter & 63))
}

/// Entries in the order of their names: there are hundreds, and they are put in once.
#[derive(Clone, Debug, Default)]
struct Table {
    entries: Vec<KernelEntry>,
    /// Whether what is added now comes with tfrt.
    adds_built_in: bool,
    /// Whether anything was added that does not.
    has_others: bool,
}

impl Table {
    /// Where a name is, or where it belongs.
    fn find(&self, name: &str) -> Result<usize, usize> {
        self.entries
            .binary_search_by(|entry| entry.name().cmp(name))
    }

    fn get(&self, name: &str) -> Option<&KernelEntry> {
        self.find(name).ok().map(|index| &self.entries[index])
    }
}

/// There is one of this for each kernel: what differs is handed on as constants.
#[inline(always)]
fn insert<M: 'static, F: KernelFn<M>>(table: &mut Table, name: &str, function: F) {
    let parts = F::Shape::PARTS;
    match Code::make(function) {
        Made::Stateless(made) => insert_stateless(table, name, parts, made),
        Made::Stateful(code) => insert_code(table, name, parts, code),
    }
}

#[inline(never)]
fn insert_stateless(table: &mut Table, name: &str, parts: &Parts, made: Stateless) {
    insert_code(table, name, parts, Code::stateless(made));
}

fn insert_code(table: &mut Table, name: &str, parts: &Parts, code: Code) {
    let Err(index) = table.find(name) else {
        panic!("two kernels are called '{name}'");
    };
    let entry = KernelEntry {
        name: name.into(),
        code,
        signature: Arc::new(parts.signature()),
    };
    table.entries.insert(index, entry);
    table.has_others |= !table.adds_built_in;
}

/// The Levenshtein distance of two names, if it is no more than a limit.
fn distance(a: &str, b: &str, limit: usize) -> Option<usize> {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        // Farther from the diagonal all is above the limit.
        let first = i.saturating_sub(limit).min(b.len());
        let last = b.len().min(i + 1 + limit);
        let mut left = if first == 0 { i + 1 } else { limit + 1 };
        let mut diagonal = std::mem::replace(&mut row[first], left);
        let mut least = left;
        for (y, above) in b.as_bytes()[first..last].iter().zip(&mut row[first + 1..]) {
            let substituted = diagonal + usize::from(x != *y);
            diagonal = *above;
            left = substituted.min(left + 1).min(diagonal + 1);
            *above = left;
            least = least.min(left);
        }
        if least > limit {
            return None;
        }
    }
    Some(row[b.len()]).filter(|distance| *distance <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry() -> KernelRegistry {
        let mut registry = KernelRegistry::new();
        registry.add("z.one", || 1);
        registry.add_dialect("my", |registry| {
            registry.add("my.two", || 2).add("my.three", || 3);
        });
        registry
    }

    #[test]
    fn kernels_of_dialects_are_found_and_listed_in_order() {
        let registry = registry();
        assert!(registry.get("my.two").is_some() && registry.get("my.four").is_none());
        let names: Vec<&str> = registry.kernels().map(KernelEntry::name).collect();
        assert_eq!(names, ["my.three", "my.two", "z.one"]);
        assert_eq!(registry.nearest("my.thre"), Some("my.three"));
        assert_eq!(registry.nearest("your.two"), Some("my.two"));
        assert_eq!(registry.nearest("z.on"), Some("z.one"));
    }

    #[test]
    fn nearest_of_names_is_the_first_in_their_order_wherever_it_stands() {
        let mut registry = registry();
        registry.add_dialect("a", |registry| {
            registry.add("a.two", || 2).add("a.tow", || 2);
        });
        // As near in their dialect, and of that name in two others.
        assert_eq!(registry.nearest("a.toe"), Some("a.tow"));
        assert_eq!(registry.nearest("a.twe"), Some("a.two"));
        assert_eq!(registry.nearest("another.two"), Some("a.two"));
    }

    #[test]
    fn distance_is_the_number_of_letters_that_are_changed() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "one", 3),
            ("my.two", "my.two", 0),
            ("my.two", "my.tw", 1),
            ("my.two", "my.too", 1),
            ("my.to", "my.two", 1),
            ("kitten", "sitting", 3),
            ("ab.abc", "ab.bca", 2),
            ("abcdefgh", "bcdefghi", 2),
            ("abcdefgh", "hgfedcba", 8),
            ("a", "abcdefgh", 7),
        ] {
            for limit in 0..10 {
                let known = (expected <= limit).then_some(expected);
                assert_eq!(distance(a, b, limit), known, "'{a}', '{b}', {limit}");
                assert_eq!(distance(b, a, limit), known, "'{b}', '{a}', {limit}");
            }
        }
    }

    #[test]
    fn kernels_of_dialects_can_be_taken_out() {
        let mut registry = registry();
        registry.retain(|entry| entry.name() != "my.two");
        assert!(registry.get("my.two").is_none() && registry.get("my.three").is_some());
    }

    #[test]
    fn kernels_from_outside_are_told_from_those_that_come_with_tfrt() {
        let built_in = |registry: &mut KernelRegistry| {
            registry.add("z.one", || 1).add_native("two", || 2);
            registry.add_dialect("my", |_| ());
        };
        let mut registry = KernelRegistry::new();
        registry.add_built_in(built_in);
        assert!(registry.is_built_in());
        let others: [fn(&mut KernelRegistry); 3] = [
            |registry| {
                registry.add("z.other", || 1);
            },
            |registry| {
                registry.add_native("other", || 1);
            },
            |registry| {
                registry.add_dialect("other", |_| ());
            },
        ];
        for add in others {
            let mut registry = registry.clone();
            add(&mut registry);
            // It is there, whatever comes next.
            registry.add_built_in(|registry| {
                registry.add("z.last", || 1);
            });
            assert!(!registry.is_built_in());
        }
    }

    #[test]
    #[should_panic(expected = "two kernels are called 'my.two'")]
    fn a_kernel_of_a_dialect_that_is_there_already_is_a_mistake() {
        let mut registry = registry();
        registry.add("my.two", || 2);
        registry.get("my.three");
    }

    #[test]
    #[should_panic(expected = "'other.two' is not in dialect 'our'")]
    fn a_kernel_of_another_dialect_is_a_mistake() {
        let mut registry = registry();
        registry.add_dialect("our", |registry| {
            registry.add("other.two", || 2);
        });
        registry.get("our.two");
    }
}
