//! Properties of operations, as a set.

/// A set of properties of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits(u16);

impl Traits {
    /// Has no effect: may be removed if unused, or merged with its like.
    pub const PURE: Traits = Traits(1);
    /// Ends a block.
    pub const TERMINATOR: Traits = Traits(1 << 1);
    /// Its regions see no values from outside.
    pub const ISOLATED: Traits = Traits(1 << 2);
    /// Defines a symbol, `sym_name`.
    pub const SYMBOL: Traits = Traits(1 << 3);
    /// Holds symbols.
    pub const SYMBOL_TABLE: Traits = Traits(1 << 4);
    /// Blocks of its regions need no terminator, and order means nothing there.
    pub const GRAPH: Traits = Traits(1 << 5);
    /// Each of its regions has exactly one block.
    pub const SINGLE_BLOCK: Traits = Traits(1 << 6);
    /// Arguments of its regions take the place, and in text the names, of its
    /// operands.
    pub const SHADOWS_OPERANDS: Traits = Traits(1 << 7);
    /// The first two operands and the rest are shadowed as by [`Traits::SHADOWS_OPERANDS`].
    pub const SHADOWS_RANGE: Traits = Traits(1 << 8);
    /// Swapping its operands changes nothing.
    pub const COMMUTATIVE: Traits = Traits(1 << 9);
    /// In the original, functions marked `tfrt.sync` may use it, and others may not.
    pub const SYNC: Traits = Traits(1 << 10);

    /// Is known as a kernel only: its entry is documentation, and programs are
    /// not checked against it. Kernels ignore a chain that they do not need.
    pub const KERNEL_ONLY: Traits = Traits(1 << 11);
    /// Is a native function, which programs declare, and no operation.
    pub const NATIVE: Traits = Traits(1 << 12);
    /// Has no attributes but those that its entry declares, and those that have a dialect's name in front.
    pub const CLOSED: Traits = Traits(1 << 13);

    /// Returns the union of two sets.
    #[must_use]
    pub const fn with(self, other: Traits) -> Traits {
        Traits(self.0 | other.0)
    }

    /// Returns whether the set has all of `other`.
    pub fn contains(self, other: Traits) -> bool {
        self.0 & other.0 == other.0
    }
}
