//! A program in memory: operations, regions, blocks and values in arenas.
//!
//! ```text
//! Module ── top: Operation "builtin.module"
//!             └ Region ─ Block ─ Operation "func.func"
//!                                  └ Region ─ Block ─ arguments: Values
//!                                                     └ Operations ─ results: Values
//! ```
//!
//! Everything is named by a small id that is good for this module only.
//! Erased operations leave a hole in the arena, so ids stay valid.
//!
//! Each value heads a list of its uses, the most recently added first, as in
//! MLIR; compiled programs depend on that order.

mod builder;

use std::{collections::HashMap, fmt};

use smallvec::SmallVec;

use crate::{
    attributes::{self, Attribute},
    diagnostic::Diagnostic,
    dialect::OpDef,
    location::Location,
    name::Name,
    printer::{self, PrintOptions},
    source::{Source, Span},
    types::Type,
    visible,
};

/// Defines an id: `id!(OpId, "an operation")` makes `pub struct OpId(u32)`.
macro_rules! id {
    ($name:ident, $what:literal) => {
        #[doc = concat!("Names ", $what, " of one module.")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $name {
            fn from_len(len: usize) -> $name {
                $name(u32::try_from(len).expect("sources are below 4 GiB"))
            }

            /// Returns the position in the arena, for tables beside a module.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(OpId, "an operation");
id!(RegionId, "a region");
id!(BlockId, "a block");
id!(ValueId, "a value");

/// A program.
#[derive(Clone, Debug)]
pub struct Module {
    ops: Vec<Operation>,
    regions: Vec<Region>,
    blocks: Vec<Block>,
    values: Vec<Value>,
    uses: Vec<Use>,
    top: OpId,
    source: Option<Source>,
}

/// An operation.
#[derive(Clone, Debug)]
pub struct Operation {
    name: Name,
    definition: Option<&'static OpDef>,
    operands: SmallVec<[ValueId; 4]>,
    /// The use of operand `i` is `first_use + i`.
    first_use: u32,
    results: SmallVec<[ValueId; 2]>,
    /// Invariant: sorted by name, each name once.
    attributes: Vec<(Name, Attribute)>,
    /// The parts that few operations have; `None` for most.
    nested: Option<Box<Nested>>,
    location: Location,
    span: Span,
    parent: Option<BlockId>,
}

/// The parts that few operations have: regions, successors.
#[derive(Clone, Debug)]
struct Nested {
    regions: SmallVec<[RegionId; 2]>,
    successors: Vec<BlockId>,
}

/// A list of blocks that belongs to an operation.
#[derive(Clone, Debug)]
pub struct Region {
    blocks: Vec<BlockId>,
    parent: Option<OpId>,
}

/// A list of operations that runs from its first to its last.
#[derive(Clone, Debug)]
pub struct Block {
    arguments: Vec<ValueId>,
    argument_locations: Vec<Location>,
    operations: Vec<OpId>,
    parent: RegionId,
    span: Span,
}

/// The definition of a value: the result or argument that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Def {
    /// Result of an operation, with its number.
    Result(OpId, u32),
    /// Argument of a block, with its number.
    Argument(BlockId, u32),
}

/// An operand of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ValueUse {
    /// The operation.
    pub op: OpId,
    /// The index of the operand.
    pub operand: u32,
}

#[derive(Clone, Debug)]
struct Value {
    ty: Type,
    def: Def,
    first_use: u32,
}

/// A link in the list of uses of a value.
#[derive(Clone, Copy, Debug)]
struct Use {
    user: ValueUse,
    next: u32,
    previous: u32,
}

pub use builder::OpState;

/// The end of a use list.
const NO_USE: u32 = u32::MAX;

/// Accessors.
impl Module {
    /// Returns the outermost operation, a `builtin.module`.
    pub fn top(&self) -> OpId {
        self.top
    }

    /// Returns the block of the outermost module.
    pub fn body(&self) -> BlockId {
        self.entry_block(self.op(self.top).regions()[0])
            .expect("a module has one block")
    }

    /// Returns the text that this was parsed from.
    pub fn source(&self) -> Option<&Source> {
        self.source.as_ref()
    }

    /// Returns an operation.
    #[inline]
    pub fn op(&self, op: OpId) -> &Operation {
        &self.ops[op.index()]
    }

    /// Returns a region.
    pub fn region(&self, region: RegionId) -> &Region {
        &self.regions[region.index()]
    }

    /// Returns a block.
    #[inline]
    pub fn block(&self, block: BlockId) -> &Block {
        &self.blocks[block.index()]
    }

    /// Returns the operation that was made last.
    pub(crate) fn last_created(&self) -> Option<&Operation> {
        self.ops.last()
    }

    /// Returns the number of operations that were ever made: all indexes of
    /// ids are below.
    pub fn n_ops(&self) -> usize {
        self.ops.len()
    }

    /// Returns the number of values that were ever made.
    pub fn n_values(&self) -> usize {
        self.values.len()
    }

    /// Returns the number of blocks that were ever made.
    pub fn n_blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Returns the number of regions that were ever made.
    pub fn n_regions(&self) -> usize {
        self.regions.len()
    }

    /// Returns a value's type.
    #[inline]
    pub fn value_type(&self, value: ValueId) -> &Type {
        &self.values[value.index()].ty
    }

    /// Returns the result or argument that a value is.
    #[inline]
    pub fn value_def(&self, value: ValueId) -> Def {
        self.values[value.index()].def
    }

    /// Returns the operation that makes a value, unless it is an argument.
    pub fn defining_op(&self, value: ValueId) -> Option<OpId> {
        match self.value_def(value) {
            Def::Result(op, _) => Some(op),
            Def::Argument(..) => None,
        }
    }

    /// Returns the block that a value is made in, if it is in one.
    pub fn value_block(&self, value: ValueId) -> Option<BlockId> {
        match self.value_def(value) {
            Def::Result(op, _) => self.op(op).parent,
            Def::Argument(block, _) => Some(block),
        }
    }

    /// Iterates over the uses of a value, the most recently added first.
    pub fn users(&self, value: ValueId) -> impl Iterator<Item = ValueUse> + '_ {
        let mut at = self.values[value.index()].first_use;
        std::iter::from_fn(move || {
            let link = self.uses.get(at as usize)?;
            at = link.next;
            Some(link.user)
        })
    }

    /// Returns whether nothing uses a value.
    pub fn is_unused(&self, value: ValueId) -> bool {
        self.values[value.index()].first_use == NO_USE
    }

    /// Returns the first block of a region.
    pub fn entry_block(&self, region: RegionId) -> Option<BlockId> {
        self.region(region).blocks.first().copied()
    }

    /// Returns the region that an operation is in.
    pub fn parent_region(&self, op: OpId) -> Option<RegionId> {
        Some(self.block(self.op(op).parent?).parent)
    }

    /// Returns the operation that an operation is in.
    pub fn parent_op(&self, op: OpId) -> Option<OpId> {
        self.region(self.parent_region(op)?).parent
    }

    /// Returns the operation whose region a block is in.
    pub fn block_parent_op(&self, block: BlockId) -> Option<OpId> {
        self.region(self.block(block).parent).parent
    }

    /// Iterates over the operations directly inside an operation's regions.
    pub fn children(&self, op: OpId) -> impl Iterator<Item = OpId> + '_ {
        let regions = self.op(op).regions().iter();
        let blocks = regions.flat_map(|&region| &self.region(region).blocks);
        blocks.flat_map(|&block| self.block(block).operations.iter().copied())
    }

    /// Visits an operation and all within it, those within before it.
    ///
    /// Recursion is bounded by the parser's limit on nesting.
    pub fn walk_post_order(&self, op: OpId, visit: &mut dyn FnMut(OpId)) {
        for child in self.children(op) {
            self.walk_post_order(child, visit);
        }
        visit(op);
    }

    /// Visits an operation and all within it, those within after it.
    pub fn walk_pre_order(&self, op: OpId, visit: &mut dyn FnMut(OpId)) {
        visit(op);
        for child in self.children(op) {
            self.walk_pre_order(child, visit);
        }
    }

    /// Returns an operation's symbol, its attribute `sym_name`.
    pub fn symbol_name(&self, op: OpId) -> Option<&str> {
        self.op(op).attribute("sym_name")?.as_str()
    }

    /// Finds the operation with a symbol directly inside another.
    ///
    /// Takes time in the number of operations there: for many names, make a
    /// [`Module::symbol_table`].
    pub fn lookup_symbol_in(&self, table: OpId, name: &str) -> Option<OpId> {
        self.children(table)
            .find(|&op| self.symbol_name(op) == Some(name))
    }

    /// Finds the operation with a symbol in the outermost module.
    pub fn lookup_symbol(&self, name: &str) -> Option<OpId> {
        self.lookup_symbol_in(self.top, name)
    }

    /// Returns the symbols directly inside an operation; of two with one name the first.
    pub fn symbol_table(&self, table: OpId) -> HashMap<&str, OpId> {
        let mut symbols = HashMap::new();
        for op in self.children(table) {
            if let Some(name) = self.symbol_name(op) {
                symbols.entry(name).or_insert(op);
            }
        }
        symbols
    }

    /// Returns the nearest operation around `op` that holds symbols, a module.
    pub fn nearest_symbol_table(&self, op: OpId) -> Option<OpId> {
        let mut at = self.parent_op(op);
        while let Some(parent) = at {
            if self.op(parent).name == "builtin.module" {
                return at;
            }
            at = self.parent_op(parent);
        }
        None
    }

    /// Returns an error placed at an operation. Where that has no place in a text, but is a node of a model, the message
    /// begins with the node's name.
    pub fn error_at(&self, code: &'static str, op: OpId, message: impl Into<String>) -> Diagnostic {
        let message = format!("{}{}", self.node_prefix(op), message.into());
        self.place(Diagnostic::error(code, message), op)
    }

    /// Returns `node 'NAME': ` for an operation that is a node of a model: a file of a model has no lines, but its nodes
    /// have names. Nothing for one of a text.
    pub fn node_prefix(&self, op: OpId) -> String {
        let op = self.op(op);
        match &op.location {
            Location::Name(named) if self.source.is_none() || op.span.is_none() => {
                format!("node '{}': ", visible::name(&named.name))
            }
            _ => String::new(),
        }
    }

    /// Returns an error placed at an operation that starts with its name, as
    /// MLIR writes them: `'tfrt.call' op MESSAGE`.
    pub fn op_error(&self, code: &'static str, op: OpId, message: impl fmt::Display) -> Diagnostic {
        self.error_at(code, op, format!("'{}' op {message}", self.op(op).name))
    }

    /// Places a diagnostic at an operation: in the text if it came from there,
    /// else at its location.
    pub fn place(&self, diagnostic: Diagnostic, op: OpId) -> Diagnostic {
        let op = self.op(op);
        match &self.source {
            Some(source) if !op.span.is_none() => diagnostic.at(source, op.span),
            _ => diagnostic.at_location(op.location.clone()),
        }
    }

    /// Writes the module as text.
    pub fn print(&self, options: PrintOptions) -> String {
        printer::print(self, options)
    }
}

impl Operation {
    /// Returns the full name, `tfrt.add.i32`.
    #[inline]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Returns the built-in entry of the operation, if there is one.
    #[inline]
    pub fn definition(&self) -> Option<&'static OpDef> {
        self.definition
    }

    /// Returns the operands.
    #[inline]
    pub fn operands(&self) -> &[ValueId] {
        &self.operands
    }

    /// Returns the results.
    #[inline]
    pub fn results(&self) -> &[ValueId] {
        &self.results
    }

    /// Returns the attributes, sorted by name.
    pub fn attributes(&self) -> &[(Name, Attribute)] {
        &self.attributes
    }

    /// Returns the attribute of a name.
    #[inline]
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        attributes::find(&self.attributes, name)
    }

    /// Returns the regions.
    #[inline]
    pub fn regions(&self) -> &[RegionId] {
        self.nested.as_ref().map_or(&[], |nested| &nested.regions)
    }

    /// Returns the blocks that may follow.
    pub fn successors(&self) -> &[BlockId] {
        self.nested
            .as_ref()
            .map_or(&[], |nested| &nested.successors)
    }

    /// Returns the location.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Returns the range of the operation's name in the module's source.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Returns the block that the operation is in.
    #[inline]
    pub fn parent(&self) -> Option<BlockId> {
        self.parent
    }
}

impl Region {
    /// Returns the blocks, the entry block first.
    pub fn blocks(&self) -> &[BlockId] {
        &self.blocks
    }

    /// Returns the operation that the region belongs to.
    pub fn parent(&self) -> Option<OpId> {
        self.parent
    }
}

impl Block {
    /// Returns the arguments.
    pub fn arguments(&self) -> &[ValueId] {
        &self.arguments
    }

    /// Returns the location of an argument.
    pub fn argument_location(&self, index: usize) -> Location {
        self.argument_locations
            .get(index)
            .cloned()
            .unwrap_or_default()
    }

    /// Returns the operations in order.
    pub fn operations(&self) -> &[OpId] {
        &self.operations
    }

    /// Returns the last operation.
    pub fn last(&self) -> Option<OpId> {
        self.operations.last().copied()
    }

    /// Returns the region that the block is in.
    pub fn parent(&self) -> RegionId {
        self.parent
    }

    /// Returns the range of the block's label in the module's source.
    pub fn span(&self) -> Span {
        self.span
    }
}

impl Default for Module {
    fn default() -> Module {
        Module::new()
    }
}

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printer::print(self, PrintOptions::default()))
    }
}
