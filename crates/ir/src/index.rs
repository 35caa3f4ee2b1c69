//! [`Index`]: the names in a text with what they refer to, for editors.
//!
//! [`parse_with_index`] reads a text as [`parse`](crate::parse()) does, keeps what it
//! parsed of a text that is wrong, and notes on the way each name that it
//! reads: a definition or a use, and of what. What the parser skipped, the rest
//! of an operation that is wrong, has no mentions.

use std::collections::HashMap;

use crate::{
    attributes::Attribute,
    diagnostic::Diagnostics,
    location::Location,
    module::{BlockId, Def, Module, OpId, ValueId},
    source::Span,
    types::Type,
};

pub use crate::parser::parse_with_index;

/// The result of parsing a text that may be wrong: a module, an index of names, and diagnostics.
#[derive(Debug)]
pub struct IndexedParse {
    /// The module. With errors in the text operations are missing, and some operands stand for
    /// nothing: it is good for looking around only.
    pub module: Module,
    /// The index of the names.
    pub index: Index,
    /// The diagnostics, sorted by place.
    pub diagnostics: Diagnostics,
}

/// The names of a text, in its order.
///
/// # Examples
///
/// ```
/// use tfrt_ir::{Dialects, Source, index::{parse_with_index, Role}};
///
/// let text = "%x = tfrt.constant.i32 1  %y = tfrt.add.i32 %x, %x";
/// let parsed = parse_with_index(&Source::new("a.mlir", text), &Dialects::default());
/// let index = &parsed.index;
/// let used = *index.at(44).next().expect("the first operand is there");
/// let places: Vec<_> = index.mentions_of(used.target).map(|x| (x.span.start, x.role)).collect();
/// assert_eq!(places, [(0, Role::Definition), (44, Role::Use), (48, Role::Use)]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Index {
    mentions: Vec<Mention>,
    extents: Vec<OpExtent>,
    /// The index of the extent around each.
    around: Vec<Option<usize>>,
    meanings: Vec<(Span, AliasMeaning)>,
    /// The values that stood in for others until those were defined.
    replaced: HashMap<ValueId, ValueId>,
}

/// An occurrence of a name in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mention {
    /// The place.
    pub span: Span,
    /// The role of the name in this place.
    pub role: Role,
    /// The object that the name refers to.
    pub target: NameTarget,
}

/// The role of a name's occurrence: definition or use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// A use of the name.
    Use,
    /// A definition of the name.
    Definition,
}

/// An object that a name refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameTarget {
    /// `%value`.
    Value(ValueId),
    /// `^block`.
    Block(BlockId),
    /// `@symbol`: that of the name in the nearest module that has it.
    Symbol,
    /// `!alias` or `#alias`: the one of the name.
    Alias,
}

/// The text of an operation, from its results to its location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpExtent {
    /// The place.
    pub span: Span,
    /// The operation.
    pub op: OpId,
}

/// The type, attribute or location that an alias stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AliasMeaning {
    /// A type.
    Type(Type),
    /// An attribute.
    Attribute(Attribute),
    /// A location, in which other aliases are not replaced.
    Location(Location),
}

impl Index {
    /// Returns all mentions, in the order of the text; of those at one place
    /// uses come first.
    ///
    /// A name may be used and given at once: operands that are the arguments of
    /// a region are.
    pub fn mentions(&self) -> &[Mention] {
        &self.mentions
    }

    /// Iterates over the mentions that an offset touches, its end included.
    pub fn at(&self, offset: usize) -> impl Iterator<Item = &Mention> {
        let begun = self
            .mentions
            .partition_point(|mention| mention.span.range().start <= offset);
        // No two names overlap, and adjacent ones share at most an offset.
        let near = &self.mentions[..begun];
        let first = near
            .iter()
            .rposition(|mention| mention.span.range().end < offset)
            .map_or(0, |before| before + 1);
        near[first..].iter()
    }

    /// Iterates over the mentions of a value or a block.
    pub fn mentions_of(&self, target: NameTarget) -> impl Iterator<Item = &Mention> {
        self.mentions
            .iter()
            .filter(move |mention| mention.target == target)
    }

    /// Returns the extents of all operations, in the order of the text, outer ones before those
    /// within.
    pub fn op_extents(&self) -> &[OpExtent] {
        &self.extents
    }

    /// Iterates over the operations around an offset, the innermost first.
    pub fn enclosing(&self, offset: usize) -> impl Iterator<Item = &OpExtent> {
        let begun = self
            .extents
            .partition_point(|extent| extent.span.range().start <= offset);
        let last = begun.checked_sub(1);
        std::iter::successors(last, |&at| self.around[at])
            .map(|at| &self.extents[at])
            .filter(move |extent| offset <= extent.span.range().end)
    }

    /// Returns the meaning of an alias, given where it is defined.
    pub fn meaning(&self, definition: Span) -> Option<&AliasMeaning> {
        let found = self
            .meanings
            .binary_search_by_key(&definition, |&(span, _)| span);
        found.ok().map(|at| &self.meanings[at].1)
    }
}

/// Recording, for the parser.
impl Index {
    pub(crate) fn mention(&mut self, span: Span, role: Role, target: NameTarget) {
        self.mentions.push(Mention { span, role, target });
    }

    /// Turns the last mention into a definition.
    pub(crate) fn last_is_definition(&mut self) {
        if let Some(last) = self.mentions.last_mut() {
            last.role = Role::Definition;
        }
    }

    pub(crate) fn extent(&mut self, span: Span, op: OpId) {
        self.extents.push(OpExtent { span, op });
    }

    pub(crate) fn means(&mut self, definition: Span, meaning: AliasMeaning) {
        self.meanings.push((definition, meaning));
    }

    /// Replaces a value that stood in for another.
    pub(crate) fn replace(&mut self, old: ValueId, new: ValueId) {
        if old != new {
            self.replaced.insert(old, new);
        }
    }

    /// Sorts all mentions into the order of the text.
    pub(crate) fn finish(mut self) -> Index {
        for mention in &mut self.mentions {
            if let NameTarget::Value(value) = &mut mention.target {
                // A value gives way once: what takes its place is defined.
                *value = self.replaced.get(value).copied().unwrap_or(*value);
            }
        }
        self.mentions
            .sort_by_key(|mention| (mention.span.start, mention.role));
        self.extents
            .sort_by_key(|extent| (extent.span.start, std::cmp::Reverse(extent.span.end)));
        self.meanings.sort_by_key(|&(span, _)| span);
        let mut open: Vec<usize> = Vec::new();
        for (at, extent) in self.extents.iter().enumerate() {
            let is_over = |&around: &usize| self.extents[around].span.end <= extent.span.start;
            while open.last().is_some_and(is_over) {
                open.pop();
            }
            self.around.push(open.last().copied());
            open.push(at);
        }
        self
    }
}

impl Module {
    /// Returns the definition of a value, unless it only stands in for one that the text does not
    /// define.
    pub fn known_def(&self, value: ValueId) -> Option<Def> {
        let def = self.value_def(value);
        match def {
            Def::Result(op, _) => (op.index() < self.n_ops()).then_some(def),
            Def::Argument(..) => Some(def),
        }
    }
}
