//! Numbers for values and blocks, as MLIR gives them.
//!
//! The values of a region are numbered in order before those of any region
//! within it, and the regions within it go on from there, each from the same
//! number. Arguments of a region's first block are `%arg0`, `%arg1`, ...

use std::fmt;

use crate::{
    dialect::{OpDef, Results},
    module::{BlockId, Module, OpId, RegionId, ValueId},
};

/// The names of everything under one operation.
pub(super) struct Names {
    values: Vec<ValueName>,
    blocks: Vec<u32>,
    predecessors: Vec<Vec<BlockId>>,
}

/// The name of a value, without `%`.
#[derive(Clone, Copy, Default)]
pub(super) enum ValueName {
    /// A value outside of the operation that is printed.
    #[default]
    Unknown,
    /// An argument of a region.
    Argument(u32),
    /// The only result of an operation, or an argument of a further block.
    Number(u32),
    /// One of several results.
    Member(u32, u32),
}

impl fmt::Display for ValueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueName::Unknown => f.write_str("<<unknown>>"),
            ValueName::Argument(number) => write!(f, "arg{number}"),
            ValueName::Number(number) => write!(f, "{number}"),
            ValueName::Member(number, index) => write!(f, "{number}#{index}"),
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Counters {
    value: u32,
    argument: u32,
}

impl Names {
    pub fn new(module: &Module, root: OpId) -> Names {
        let mut names = Names {
            values: vec![ValueName::Unknown; module.n_values()],
            blocks: vec![0; module.n_blocks()],
            predecessors: Vec::new(),
        };
        let mut counters = Counters::default();
        names.number_results(module, root, &mut counters);
        let regions = module.op(root).regions();
        let mut pending: Vec<(RegionId, Counters)> =
            regions.iter().map(|&region| (region, counters)).collect();
        while let Some((region, mut counters)) = pending.pop() {
            names.number_region(module, region, &mut counters);
            for &block in module.region(region).blocks() {
                for &op in module.block(block).operations() {
                    let inner = module.op(op).regions().iter();
                    pending.extend(inner.map(|&region| (region, counters)));
                }
            }
        }
        names
    }

    fn number_region(&mut self, module: &Module, region: RegionId, counters: &mut Counters) {
        for (index, &block) in module.region(region).blocks().iter().enumerate() {
            self.blocks[block.index()] = u32::try_from(index).unwrap_or(u32::MAX);
            for &argument in module.block(block).arguments() {
                let name = &mut self.values[argument.index()];
                let counter = if index == 0 {
                    &mut counters.argument
                } else {
                    &mut counters.value
                };
                *name = match index {
                    0 => ValueName::Argument(*counter),
                    _ => ValueName::Number(*counter),
                };
                *counter += 1;
            }
            for &op in module.block(block).operations() {
                self.number_results(module, op, counters);
                for &target in module.op(op).successors() {
                    self.predecessors.resize(module.n_blocks(), Vec::new());
                    self.predecessors[target.index()].push(block);
                }
            }
        }
    }

    fn number_results(&mut self, module: &Module, op: OpId, counters: &mut Counters) {
        let data = module.op(op);
        // As in MLIR, what stands in front of any number of results is a group of its own.
        let n_apart = match data.definition().map(OpDef::result_defs) {
            Some(Results::AtLeast(declared, _)) => declared.len(),
            _ => 0,
        };
        let (apart, together) = data.results().split_at(n_apart.min(data.results().len()));
        for &result in apart {
            self.values[result.index()] = ValueName::Number(counters.value);
            counters.value += 1;
        }
        for (index, &result) in (0..).zip(together) {
            self.values[result.index()] = match together.len() {
                1 => ValueName::Number(counters.value),
                _ => ValueName::Member(counters.value, index),
            };
        }
        counters.value += u32::from(!together.is_empty());
    }

    pub fn value(&self, value: ValueId) -> ValueName {
        self.values[value.index()]
    }

    /// Returns the name of all results of an operation together.
    pub fn pack(&self, first: ValueId) -> ValueName {
        match self.value(first) {
            ValueName::Member(number, _) => ValueName::Number(number),
            name => name,
        }
    }

    /// Returns how many results, from the first on, have one name together.
    pub fn pack_len(&self, results: &[ValueId]) -> usize {
        let number_of = |result: &ValueId| match self.value(*result) {
            ValueName::Member(number, _) => Some(number),
            _ => None,
        };
        match results.first().and_then(number_of) {
            Some(number) => {
                let shared = results
                    .iter()
                    .take_while(|result| number_of(result) == Some(number));
                shared.count()
            }
            None => results.len().min(1),
        }
    }

    pub fn shadow(&mut self, argument: ValueId, operand: ValueId) {
        self.values[argument.index()] = self.value(operand);
    }

    pub fn block(&self, block: BlockId) -> u32 {
        self.blocks[block.index()]
    }

    pub fn predecessors(&self, block: BlockId) -> &[BlockId] {
        self.predecessors
            .get(block.index())
            .map_or(&[], Vec::as_slice)
    }

    pub fn is_target(&self, block: BlockId) -> bool {
        !self.predecessors(block).is_empty()
    }
}
