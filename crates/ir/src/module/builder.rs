//! Making and changing modules.
//!
//! An operation is described by an [`OpState`], made by [`Module::create`] and
//! put into a block by [`Module::append`]. Use lists are kept on the way: a use
//! that is added becomes the first of its value.

use std::mem;

use smallvec::SmallVec;

use super::{
    Block, BlockId, Def, Module, NO_USE, Nested, OpId, Operation, Region, RegionId, Use, Value,
    ValueId, ValueUse,
};
use crate::{
    attributes::Attribute,
    dialect::{self, OpDef},
    location::Location,
    name::Name,
    source::{Source, Span},
    types::Type,
};

/// The parts of an operation that is to be made.
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
    /// Invariant: there until the operation is made.
    name: Option<Name>,
    pub(crate) definition: Option<&'static OpDef>,
    pub(crate) operands: SmallVec<[ValueId; 4]>,
    pub(crate) result_types: SmallVec<[Type; 2]>,
    pub(crate) attributes: Vec<(Name, Attribute)>,
    pub(crate) regions: SmallVec<[RegionId; 2]>,
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
            name: Some(name),
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
fn set_attribute(list: &mut Vec<(Name, Attribute)>, name: Name, value: Attribute) {
    match list.binary_search_by(|(key, _)| key.cmp(&name)) {
        Ok(index) => list[index].1 = value,
        Err(index) => list.insert(index, (name, value)),
    }
}

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

    /// Makes room for what a text of so many lines usually holds, if there is as much memory;
    /// what is not used in the end takes none.
    pub(crate) fn reserve(&mut self, n_lines: usize) {
        // If it fails, the arenas grow as they are filled.
        let _ = self.ops.try_reserve(n_lines);
        let _ = self.values.try_reserve(n_lines);
        let _ = self.uses.try_reserve(n_lines.saturating_mul(2));
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

    /// Changes the type of a value, of whose users and maker the caller knows that they allow it.
    pub fn set_value_type(&mut self, value: ValueId, ty: Type) {
        self.values[value.index()].ty = ty;
    }

    /// Makes a value that is to be defined later, by a result or an argument.
    pub(crate) fn create_forward_value(&mut self, ty: Type) -> ValueId {
        self.create_value(ty, Def::Result(OpId(u32::MAX), 0))
    }

    /// Makes the operation, which is in no block yet.
    pub fn create(&mut self, mut state: OpState) -> OpId {
        self.create_with_results(&mut state, &[])
    }

    /// Makes an operation; results that were used before take the ids given
    /// for them.
    ///
    /// Such a value's uses are reversed, as when MLIR replaces the uses of its
    /// placeholder one by one.
    pub(crate) fn create_with_results(
        &mut self,
        state: &mut OpState,
        forward: &[Option<ValueId>],
    ) -> OpId {
        let op = OpId::from_len(self.ops.len());
        let mut results = SmallVec::new();
        for (index, ty) in state.result_types.drain(..).enumerate() {
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
        let is_plain = state.regions.is_empty() && state.successors.is_empty();
        let nested = (!is_plain).then(|| {
            Box::new(Nested {
                regions: mem::take(&mut state.regions),
                successors: mem::take(&mut state.successors),
            })
        });
        let first_use = self.link_uses(op, &state.operands);
        self.ops.push(Operation {
            name: state.name.take().expect("each state makes one operation"),
            definition: state.definition,
            operands: mem::take(&mut state.operands),
            first_use,
            results,
            attributes: mem::take(&mut state.attributes),
            nested,
            location: mem::take(&mut state.location),
            span: state.span,
            parent: None,
        });
        op
    }

    /// Adds a result to an operation in front of the one at `index`, or behind
    /// the last.
    pub fn insert_result(&mut self, op: OpId, index: usize, ty: Type) -> ValueId {
        let value = self.create_value(ty, Def::Result(op, 0));
        let results = &mut self.ops[op.index()].results;
        results.insert(index.min(results.len()), value);
        for (number, result) in (0..).zip(results.iter()) {
            self.values[result.index()].def = Def::Result(op, number);
        }
        value
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
        let old = mem::replace(&mut self.ops[op.index()].operands[index], value);
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
        data.nested = None;
    }

    /// Changes the name of an operation. Its other parts stay: the caller knows that they fit.
    pub fn set_name(&mut self, op: OpId, name: impl Into<Name>) {
        let name = name.into();
        let data = &mut self.ops[op.index()];
        data.definition = dialect::lookup(&name);
        data.name = name;
    }

    /// Exchanges two regions of an operation, if it has both.
    pub fn swap_regions(&mut self, op: OpId, one: usize, other: usize) {
        if let Some(nested) = &mut self.ops[op.index()].nested
            && one.max(other) < nested.regions.len()
        {
            nested.regions.swap(one, other);
        }
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
        let operands = mem::take(&mut self.ops[op.index()].operands);
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
        let next = mem::replace(head, link);
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
            mem::swap(&mut link.next, &mut link.previous);
        }
        self.values[value.index()].first_use = head;
    }
}
