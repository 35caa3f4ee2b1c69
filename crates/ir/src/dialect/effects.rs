//! Effects of operations beyond computing results, as data.
//!
//! ```text
//! OpDef::new("my.store").operand("buffer", ..).operand("value", ..).writes(0)
//! OpDef::new("my.print").operand("value", ..).outside()
//! ```
//!
//! An entry that says nothing here is *unknown*: its operation may read, write and
//! print whatever it likes. The compiler's pass `sequence-effects` reads these
//! statements; `docs/sequencing.md` says what follows from each.

use super::{OpDef, Traits};

/// The effects of an operation, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    source: EffectSource,
    reads: Vec<usize>,
    writes: Vec<usize>,
    outside: bool,
    allocates: bool,
}

/// The source of an operation's effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum EffectSource {
    /// Not stated.
    #[default]
    Unknown,
    /// Stated in the entry.
    Stated,
    /// The effects of the operation's regions and of the functions that it names.
    Nested,
    /// Unbounded: the operation may do whatever the program has it do.
    Everything,
}

/// The effects of pure operations.
static NONE: Effects = Effects {
    source: EffectSource::Stated,
    reads: Vec::new(),
    writes: Vec::new(),
    outside: false,
    allocates: false,
};

impl Effects {
    /// Returns whether everything may be affected, be it because nothing is stated.
    pub fn is_unknown(&self) -> bool {
        matches!(
            self.source,
            EffectSource::Unknown | EffectSource::Everything
        )
    }

    /// Returns whether the entry says anything.
    pub fn is_stated(&self) -> bool {
        self.source != EffectSource::Unknown
    }

    /// Returns whether the effects are those of the operation's regions and of the functions that
    /// it names.
    pub fn is_nested(&self) -> bool {
        self.source == EffectSource::Nested
    }

    /// Returns the operands whose contents are read.
    pub fn reads(&self) -> &[usize] {
        &self.reads
    }

    /// Returns the operands whose contents are changed.
    pub fn writes(&self) -> &[usize] {
        &self.writes
    }

    /// Returns whether the operation can be observed from outside: it prints, reads a clock, waits.
    pub fn is_outside(&self) -> bool {
        self.outside
    }

    /// Returns whether the results are new objects: no two of them are one.
    pub fn allocates(&self) -> bool {
        self.allocates
    }

    /// Returns whether the operation has no effect: only its results count.
    pub fn is_none(&self) -> bool {
        let touches = !self.reads.is_empty() || !self.writes.is_empty() || self.outside;
        self.source == EffectSource::Stated && !touches
    }
}

/// Setters of effects, for entries.
impl OpDef {
    /// States that the operation has no effect, though it may fail or take time.
    pub(crate) fn no_effects(mut self) -> OpDef {
        self.effects.source = EffectSource::Stated;
        self
    }

    /// States that the operation reads the contents of an operand.
    pub(crate) fn reads(mut self, operand: usize) -> OpDef {
        self.effects.reads.push(operand);
        self.no_effects()
    }

    /// States that the operation changes the contents of an operand.
    pub(crate) fn writes(mut self, operand: usize) -> OpDef {
        self.effects.writes.push(operand);
        self.no_effects()
    }

    /// States that the operation can be observed from outside, be it besides what its regions do.
    pub(crate) fn outside(mut self) -> OpDef {
        self.effects.outside = true;
        match self.effects.source {
            EffectSource::Unknown => self.no_effects(),
            _ => self,
        }
    }

    /// States that the results are new objects.
    pub(crate) fn allocates(mut self) -> OpDef {
        self.effects.allocates = true;
        self.no_effects()
    }

    /// States that the operation runs code that may do anything, in a way that nobody looks into.
    pub(crate) fn everything(mut self) -> OpDef {
        self.effects.source = EffectSource::Everything;
        self
    }

    /// States that the effects are those of the operation's regions and of the functions that it
    /// names.
    pub(crate) fn nested(mut self) -> OpDef {
        self.effects.source = EffectSource::Nested;
        self
    }
}

impl OpDef {
    /// Returns the effects; a pure operation has none.
    pub fn effects(&self) -> &Effects {
        if self.is(Traits::PURE) {
            return &NONE;
        }
        &self.effects
    }
}
