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

use std::{collections::HashMap, fmt};

use smallvec::SmallVec;

use crate::{
    attributes::{self, Attribute},
    diagnostic::Diagnostic,
    dialect::{self, OpDef},
    location::Location,
    name::Name,
    printer::{self, PrintOptions},
    source::{Source, Span},
    types::Type,
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
    regions: SmallVec<[RegionId; 1]>,
    successors: Vec<BlockId>,
    location: Location,
    span: Span,
    parent: Option<BlockId>,
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

/// What makes a value.
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
    /// Which of its operands.
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

/// The end of a use list.
const NO_USE: u32 = u32::MAX;

/// What an operation is made of.
///
/// # Examples
///
/// ```
/// use tfrt_ir::{Attribute, Module, OpState, Type};
///
/// let mut module = Module::new();
/// let state = OpState::new("tfrt.constant.i32")
///     .attribute("value", Attribute::integer(42, Type::I32))
///     .result(Type::I32);
/// let op = module.create(state);
/// module.append(module.body(), op);
/// assert_eq!(module.to_string(), "module {\n  %0 = tfrt.constant.i32 42\n}\n");
/// ```
#[derive(Clone, Debug)]
pub struct OpState {
    pub(crate) name: Name,
    pub(crate) definition: Option<&'static OpDef>,
    pub(crate) operands: SmallVec<[ValueId; 4]>,
    pub(crate) result_types: SmallVec<[Type; 2]>,
    pub(crate) attributes: Vec<(Name, Attribute)>,
    pub(crate) regions: SmallVec<[RegionId; 1]>,
    pub(crate) successors: Vec<BlockId>,
    pub(crate) location: Location,
    pub(crate) span: Span,
}

impl OpState {
    /// Starts an operation of a name, without anything.
    pub fn new(name: impl Into<Name>) -> OpState {
        let name = name.into();
        let definition = dialect::lookup(&name);
        OpState::with_definition(name, definition)
    }

    pub(crate) fn with_definition(name: Name, definition: Option<&'static OpDef>) -> OpState {
        OpState {
            name,
            definition,
            operands: SmallVec::new(),
            result_types: SmallVec::new(),
            attributes: Vec::new(),
            regions: SmallVec::new(),
            successors: Vec::new(),
            location: Location::Unknown,
            span: Span::default(),
        }
    }

    /// Adds an operand.
    #[must_use]
    pub fn operand(mut self, value: ValueId) -> OpState {
        self.operands.push(value);
        self
    }

    /// Adds operands.
    #[must_use]
    pub fn operands(mut self, values: impl IntoIterator<Item = ValueId>) -> OpState {
        self.operands.extend(values);
        self
    }

    /// Adds an attribute; one that is there already is replaced.
    #[must_use]
    pub fn attribute(mut self, name: impl Into<Name>, value: Attribute) -> OpState {
        set_attribute(&mut self.attributes, name.into(), value);
        self
    }

    /// Adds a result.
    #[must_use]
    pub fn result(mut self, ty: Type) -> OpState {
        self.result_types.push(ty);
        self
    }

    /// Adds results.
    #[must_use]
    pub fn results(mut self, types: impl IntoIterator<Item = Type>) -> OpState {
        self.result_types.extend(types);
        self
    }

    /// Adds a region made by [`Module::create_region`].
    #[must_use]
    pub fn region(mut self, region: RegionId) -> OpState {
        self.regions.push(region);
        self
    }

    /// Adds a successor.
    #[must_use]
    pub fn successor(mut self, block: BlockId) -> OpState {
        self.successors.push(block);
        self
    }

    /// Sets the location.
    #[must_use]
    pub fn location(mut self, location: Location) -> OpState {
        self.location = location;
        self
    }
}

/// Sets an attribute in a list sorted by name.
pub(crate) fn set_attribute(list: &mut Vec<(Name, Attribute)>, name: Name, value: Attribute) {
    match list.binary_search_by(|(key, _)| key.cmp(&name)) {
        Ok(index) => list[index].1 = value,
        Err(index) => list.insert(index, (name, value)),
    }
}

/// Reading.
impl Module {
    /// Returns the outermost operation, a `builtin.module`.
    pub fn top(&self) -> OpId {
        self.top
    }

    /// Returns the block of the outermost module.
    pub fn body(&self) -> BlockId {
        self.entry_block(self.op(self.top).regions[0])
            .expect("a module has one block")
    }

    /// Returns the text that this was parsed from.
    pub fn source(&self) -> Option<&Source> {
        self.source.as_ref()
    }

    /// Returns an operation.
    pub fn op(&self, op: OpId) -> &Operation {
        &self.ops[op.index()]
    }

    /// Returns a region.
    pub fn region(&self, region: RegionId) -> &Region {
        &self.regions[region.index()]
    }

    /// Returns a block.
    pub fn block(&self, block: BlockId) -> &Block {
        &self.blocks[block.index()]
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
    pub fn value_type(&self, value: ValueId) -> &Type {
        &self.values[value.index()].ty
    }

    /// Returns what makes a value.
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
        let regions = self.op(op).regions.iter();
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

    /// Returns the symbols directly inside an operation; of two with the same
    /// name the first.
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

    /// Returns an error placed at an operation.
    pub fn error_at(&self, op: OpId, message: impl Into<String>) -> Diagnostic {
        self.place(Diagnostic::error(message), op)
    }

    /// Returns an error placed at an operation that starts with its name, as
    /// MLIR writes them: `'tfrt.call' op MESSAGE`.
    pub fn op_error(&self, op: OpId, message: impl fmt::Display) -> Diagnostic {
        self.error_at(op, format!("'{}' op {message}", self.op(op).name))
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
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Returns what the dialect tables say on it, if it is in one.
    pub fn definition(&self) -> Option<&'static OpDef> {
        self.definition
    }

    /// Returns the operands.
    pub fn operands(&self) -> &[ValueId] {
        &self.operands
    }

    /// Returns the results.
    pub fn results(&self) -> &[ValueId] {
        &self.results
    }

    /// Returns the attributes, sorted by name.
    pub fn attributes(&self) -> &[(Name, Attribute)] {
        &self.attributes
    }

    /// Returns the attribute of a name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        attributes::find(&self.attributes, name)
    }

    /// Returns the regions.
    pub fn regions(&self) -> &[RegionId] {
        &self.regions
    }

    /// Returns the blocks that may follow.
    pub fn successors(&self) -> &[BlockId] {
        &self.successors
    }

    /// Returns where it comes from.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Returns where its name stands in the module's source.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Returns the block that it is in.
    pub fn parent(&self) -> Option<BlockId> {
        self.parent
    }
}

impl Region {
    /// Returns the blocks, the entry block first.
    pub fn blocks(&self) -> &[BlockId] {
        &self.blocks
    }

    /// Returns the operation that it belongs to.
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

    /// Returns the region that it is in.
    pub fn parent(&self) -> RegionId {
        self.parent
    }

    /// Returns where its label stands in the module's source.
    pub fn span(&self) -> Span {
        self.span
    }
}

/// Building and changing.
impl Module {
    /// Makes an empty module.
    pub fn new() -> Module {
        let mut module = Module::without_top(None);
        let region = module.create_region();
        module.create_block(region);
        module.top = module.create(OpState::new("builtin.module").region(region));
        module
    }

    /// Makes arenas without an outermost operation; the parser adds it last.
    pub(crate) fn without_top(source: Option<Source>) -> Module {
        Module {
            ops: Vec::new(),
            regions: Vec::new(),
            blocks: Vec::new(),
            values: Vec::new(),
            uses: Vec::new(),
            top: OpId(0),
            source,
        }
    }

    pub(crate) fn set_top(&mut self, top: OpId) {
        self.top = top;
        self.ops[top.index()].parent = None;
    }

    /// Makes a region that belongs to nothing yet.
    pub fn create_region(&mut self) -> RegionId {
        let id = RegionId::from_len(self.regions.len());
        self.regions.push(Region {
            blocks: Vec::new(),
            parent: None,
        });
        id
    }

    /// Adds an empty block to the end of a region.
    pub fn create_block(&mut self, region: RegionId) -> BlockId {
        let block = self.create_unlisted_block(region);
        self.list_block(block);
        block
    }

    /// Makes a block of a region that is not in its list yet: one that was
    /// named before it was defined.
    pub(crate) fn create_unlisted_block(&mut self, parent: RegionId) -> BlockId {
        let id = BlockId::from_len(self.blocks.len());
        self.blocks.push(Block {
            arguments: Vec::new(),
            argument_locations: Vec::new(),
            operations: Vec::new(),
            parent,
            span: Span::default(),
        });
        id
    }

    pub(crate) fn list_block(&mut self, block: BlockId) {
        let region = self.block(block).parent;
        self.regions[region.index()].blocks.push(block);
    }

    pub(crate) fn set_block_span(&mut self, block: BlockId, span: Span) {
        self.blocks[block.index()].span = span;
    }

    /// Adds an argument to a block.
    pub fn add_argument(&mut self, block: BlockId, ty: Type, location: Location) -> ValueId {
        let n_arguments = self.block(block).arguments.len();
        let index = u32::try_from(n_arguments).expect("sources are below 4 GiB");
        let value = self.create_value(ty, Def::Argument(block, index));
        let block = &mut self.blocks[block.index()];
        block.arguments.push(value);
        if location != Location::Unknown {
            block
                .argument_locations
                .resize(n_arguments, Location::Unknown);
            block.argument_locations.push(location);
        }
        value
    }

    fn create_value(&mut self, ty: Type, def: Def) -> ValueId {
        let id = ValueId::from_len(self.values.len());
        self.values.push(Value {
            ty,
            def,
            first_use: NO_USE,
        });
        id
    }

    /// Makes a value that is to be defined by [`Module::define`].
    pub(crate) fn create_forward_value(&mut self, ty: Type) -> ValueId {
        self.create_value(ty, Def::Result(OpId(u32::MAX), 0))
    }

    /// Makes the operation, which is in no block yet.
    pub fn create(&mut self, state: OpState) -> OpId {
        let results = SmallVec::new();
        self.create_with_results(state, results)
    }

    /// Makes an operation; results that were used before take the ids given
    /// for them.
    ///
    /// Such a value's uses are reversed, as when MLIR replaces the uses of its
    /// placeholder one by one.
    pub(crate) fn create_with_results(
        &mut self,
        state: OpState,
        forward: SmallVec<[Option<ValueId>; 2]>,
    ) -> OpId {
        let op = OpId::from_len(self.ops.len());
        let mut results = SmallVec::with_capacity(state.result_types.len());
        for (index, ty) in state.result_types.into_iter().enumerate() {
            let def = Def::Result(op, u32::try_from(index).expect("sources are below 4 GiB"));
            let value = match forward.get(index).copied().flatten() {
                Some(value) => {
                    self.values[value.index()].def = def;
                    self.reverse_uses(value);
                    value
                }
                None => self.create_value(ty, def),
            };
            results.push(value);
        }
        for &region in &state.regions {
            self.regions[region.index()].parent = Some(op);
        }
        let first_use = self.link_uses(op, &state.operands);
        self.ops.push(Operation {
            name: state.name,
            definition: state.definition,
            operands: state.operands,
            first_use,
            results,
            attributes: state.attributes,
            regions: state.regions,
            successors: state.successors,
            location: state.location,
            span: state.span,
            parent: None,
        });
        op
    }

    /// Puts an operation at the end of a block.
    pub fn append(&mut self, block: BlockId, op: OpId) {
        self.blocks[block.index()].operations.push(op);
        self.ops[op.index()].parent = Some(block);
    }

    /// Puts an operation at a position of a block; takes time in the number of
    /// operations behind it.
    pub fn insert(&mut self, block: BlockId, position: usize, op: OpId) {
        self.blocks[block.index()].operations.insert(position, op);
        self.ops[op.index()].parent = Some(block);
    }

    /// Replaces the operations of a block; those left out are in no block then.
    pub fn set_operations(&mut self, block: BlockId, operations: Vec<OpId>) {
        for &op in &self.blocks[block.index()].operations {
            self.ops[op.index()].parent = None;
        }
        for &op in &operations {
            self.ops[op.index()].parent = Some(block);
        }
        self.blocks[block.index()].operations = operations;
    }

    /// Sets or replaces an attribute.
    pub fn set_attribute(&mut self, op: OpId, name: impl Into<Name>, value: Attribute) {
        set_attribute(&mut self.ops[op.index()].attributes, name.into(), value);
    }

    /// Removes an attribute and returns it.
    pub fn remove_attribute(&mut self, op: OpId, name: &str) -> Option<Attribute> {
        let list = &mut self.ops[op.index()].attributes;
        let index = list
            .binary_search_by(|(key, _)| key.as_str().cmp(name))
            .ok()?;
        Some(list.remove(index).1)
    }

    /// Sets the location.
    pub fn set_location(&mut self, op: OpId, location: Location) {
        self.ops[op.index()].location = location;
    }

    pub(crate) fn argument_location(&self, value: ValueId) -> Location {
        match self.value_def(value) {
            Def::Argument(block, index) => self.block(block).argument_location(index as usize),
            Def::Result(..) => Location::Unknown,
        }
    }

    pub(crate) fn set_argument_location(&mut self, value: ValueId, location: Location) {
        let Def::Argument(block, index) = self.value_def(value) else {
            return;
        };
        let locations = &mut self.blocks[block.index()].argument_locations;
        let index = index as usize;
        if locations.len() <= index {
            locations.resize(index + 1, Location::Unknown);
        }
        locations[index] = location;
    }

    /// Replaces an operand.
    pub fn set_operand(&mut self, op: OpId, index: usize, value: ValueId) {
        let link = self.ops[op.index()].first_use + u32::try_from(index).expect("is an operand");
        let old = std::mem::replace(&mut self.ops[op.index()].operands[index], value);
        self.unlink_use(link, old);
        self.link_use(link, value);
    }

    /// Replaces all operands.
    pub fn set_operands(&mut self, op: OpId, operands: &[ValueId]) {
        self.drop_operands(op);
        let first_use = self.link_uses(op, operands);
        let data = &mut self.ops[op.index()];
        data.first_use = first_use;
        data.operands = SmallVec::from_slice(operands);
    }

    /// Makes all users of a value use another instead.
    pub fn replace_all_uses(&mut self, old: ValueId, new: ValueId) {
        if old == new {
            return;
        }
        while let Some(link) = self.uses.get(self.values[old.index()].first_use as usize) {
            let user = link.user;
            self.set_operand(user.op, user.operand as usize, new);
        }
    }

    /// Removes an operation and all within it.
    ///
    /// Its results must be unused. The operation stays in its block's list
    /// until [`Module::set_operations`] or [`Module::remove_from_block`].
    pub fn erase(&mut self, op: OpId) {
        for child in self.children(op).collect::<Vec<_>>() {
            self.erase(child);
        }
        self.drop_operands(op);
        let data = &mut self.ops[op.index()];
        data.attributes = Vec::new();
        data.regions.clear();
        data.successors.clear();
    }

    /// Takes an operation out of its block; takes time in the number of
    /// operations there.
    pub fn remove_from_block(&mut self, op: OpId) {
        if let Some(block) = self.ops[op.index()].parent.take() {
            self.blocks[block.index()]
                .operations
                .retain(|&other| other != op);
        }
    }

    fn drop_operands(&mut self, op: OpId) {
        let operands = std::mem::take(&mut self.ops[op.index()].operands);
        for (link, value) in (self.ops[op.index()].first_use..).zip(operands) {
            self.unlink_use(link, value);
        }
    }

    fn link_uses(&mut self, op: OpId, operands: &[ValueId]) -> u32 {
        let first = u32::try_from(self.uses.len()).expect("sources are below 4 GiB");
        for (operand, &value) in (0..).zip(operands) {
            let user = ValueUse { op, operand };
            self.uses.push(Use {
                user,
                next: NO_USE,
                previous: NO_USE,
            });
            self.link_use(first + operand, value);
        }
        first
    }

    fn link_use(&mut self, link: u32, value: ValueId) {
        let head = &mut self.values[value.index()].first_use;
        let next = std::mem::replace(head, link);
        let entry = &mut self.uses[link as usize];
        entry.next = next;
        entry.previous = NO_USE;
        if let Some(next) = self.uses.get_mut(next as usize) {
            next.previous = link;
        }
    }

    fn unlink_use(&mut self, link: u32, value: ValueId) {
        let Use { next, previous, .. } = self.uses[link as usize];
        match self.uses.get_mut(previous as usize) {
            Some(previous) => previous.next = next,
            None => self.values[value.index()].first_use = next,
        }
        if let Some(next) = self.uses.get_mut(next as usize) {
            next.previous = previous;
        }
    }

    fn reverse_uses(&mut self, value: ValueId) {
        let mut at = self.values[value.index()].first_use;
        let mut head = NO_USE;
        while let Some(link) = self.uses.get_mut(at as usize) {
            head = at;
            at = link.next;
            std::mem::swap(&mut link.next, &mut link.previous);
        }
        self.values[value.index()].first_use = head;
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
