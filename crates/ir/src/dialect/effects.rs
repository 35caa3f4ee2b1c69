//! What an operation does beyond computing its results, as data.
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

/// What is known on the effects of an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    knowledge: Knowledge,
    reads: Vec<usize>,
    writes: Vec<usize>,
    outside: bool,
    allocates: bool,
}

/// Where the statement on an operation's effects is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Knowledge {
    /// Nowhere.
    #[default]
    Unknown,
    /// Here.
    Stated,
    /// In its regions and in the functions that it names.
    Nested,
    /// There is nothing to state: it may do whatever the program has it do.
    Everything,
}

/// The effects of pure operations.
static NONE: Effects = Effects {
    knowledge: Knowledge::Stated,
    reads: Vec::new(),
    writes: Vec::new(),
    outside: false,
    allocates: false,
};

impl Effects {
    /// Returns whether everything may be affected, be it because nothing is stated.
    pub fn is_unknown(&self) -> bool {
        matches!(self.knowledge, Knowledge::Unknown | Knowledge::Everything)
    }

    /// Returns whether its entry says anything.
    pub fn is_stated(&self) -> bool {
        self.knowledge != Knowledge::Unknown
    }

    /// Returns whether they are those of its regions and of the functions that
    /// it names.
    pub fn is_nested(&self) -> bool {
        self.knowledge == Knowledge::Nested
    }

    /// Returns the operands whose contents are read.
    pub fn reads(&self) -> &[usize] {
        &self.reads
    }

    /// Returns the operands whose contents are changed.
    pub fn writes(&self) -> &[usize] {
        &self.writes
    }

    /// Returns whether somebody outside can see it happen: it prints, reads a
    /// clock, waits.
    pub fn is_outside(&self) -> bool {
        self.outside
    }

    /// Returns whether its results are new: two of them are never the same.
    pub fn allocates(&self) -> bool {
        self.allocates
    }

    /// Returns whether nobody could tell that it happened: only its results
    /// count.
    pub fn is_none(&self) -> bool {
        let touches = !self.reads.is_empty() || !self.writes.is_empty() || self.outside;
        self.knowledge == Knowledge::Stated && !touches
    }
}

/// Stating effects.
impl OpDef {
    /// It has no effect, though it may fail or take time.
    pub(crate) fn no_effects(mut self) -> OpDef {
        self.effects.knowledge = Knowledge::Stated;
        self
    }

    /// It reads what an operand holds.
    pub(crate) fn reads(mut self, operand: usize) -> OpDef {
        self.effects.reads.push(operand);
        self.no_effects()
    }

    /// It changes what an operand holds.
    pub(crate) fn writes(mut self, operand: usize) -> OpDef {
        self.effects.writes.push(operand);
        self.no_effects()
    }

    /// It can be seen from outside, be it besides what its regions do.
    pub(crate) fn outside(mut self) -> OpDef {
        self.effects.outside = true;
        match self.effects.knowledge {
            Knowledge::Unknown => self.no_effects(),
            _ => self,
        }
    }

    /// Its results are new.
    pub(crate) fn allocates(mut self) -> OpDef {
        self.effects.allocates = true;
        self.no_effects()
    }

    /// It runs code that may do anything, in a way that nobody looks into.
    pub(crate) fn everything(mut self) -> OpDef {
        self.effects.knowledge = Knowledge::Everything;
        self
    }

    /// It does what its regions and the functions that it names do.
    pub(crate) fn nested(mut self) -> OpDef {
        self.effects.knowledge = Knowledge::Nested;
        self
    }
}

impl OpDef {
    /// Returns its effects; those of a pure operation are none.
    pub fn effects(&self) -> &Effects {
        if self.is(Traits::PURE) {
            return &NONE;
        }
        &self.effects
    }
}
