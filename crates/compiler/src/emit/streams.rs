//! Finds stream ids: those that the module states, else those of the analysis.
//!
//! A module that was a file states the streams that analysis would not find again, since files
//! keep no costs. The attribute `_tfrt_streams` of an operation with regions is an array with
//! an `array<i64: ...>` for each region: the stream of the entry, then that of each operation but
//! the last, a `tfrt.return`. An empty one leaves it to analysis.

use tfrt_ir::{Attribute, BlockId, Module, OpId, Type};

use crate::{STREAMS, codes, emit::Walk, streams::StreamAnalysis};

impl Walk<'_> {
    /// Checks the streams that an operation states.
    pub(super) fn streams(&mut self, op: OpId) {
        let operation = self.module.op(op);
        let Some(stated) = operation.attribute(STREAMS) else {
            return;
        };
        let lists = stated.as_array().unwrap_or_default();
        let regions = operation.regions();
        let fits = |(list, region): (&Attribute, _)| {
            let block = self.module.entry_block(region);
            let n_kernels = block.map_or(0, |block| n_kernels(self.module, block));
            numbers(list).is_some_and(|list| list.is_empty() || list.len() == n_kernels + 1)
        };
        if lists.len() != regions.len() || !lists.iter().zip(regions.iter().copied()).all(fits) {
            let message = format!(
                "expected '{STREAMS}' to have an 'array<i64: ...>' for each region: the stream \
                 of the entry, then that of each operation but 'tfrt.return'"
            );
            self.error(codes::STATED_STREAMS, op, message);
        }
    }
}

/// Returns the stream of a block's entry, then those of its operations.
pub(super) fn of_block(module: &Module, owner: OpId, block: BlockId) -> Vec<u32> {
    let n_kernels = n_kernels(module, block);
    if let Some(stated) = stated(module, owner, block).filter(|list| list.len() == n_kernels + 1) {
        return stated;
    }
    let analysis = StreamAnalysis::new(module, block);
    let kernels = (0..n_kernels).map(|position| analysis.stream(position).id);
    std::iter::once(analysis.root().id).chain(kernels).collect()
}

/// Returns the number of kernels in a block: all operations but a `tfrt.return` at the end.
pub(super) fn n_kernels(module: &Module, block: BlockId) -> usize {
    let operations = module.block(block).operations();
    let is_return = |op: &OpId| *module.op(*op).name() == "tfrt.return";
    operations.len() - usize::from(operations.last().is_some_and(is_return))
}

fn stated(module: &Module, owner: OpId, block: BlockId) -> Option<Vec<u32>> {
    let owner = module.op(owner);
    let lists = owner.attribute(STREAMS)?.as_array()?;
    let region = module.block(block).parent();
    let position = owner.regions().iter().position(|other| *other == region)?;
    numbers(lists.get(position)?)
}

/// Reads `array<i64: 0, 1>`.
fn numbers(list: &Attribute) -> Option<Vec<u32>> {
    let Attribute::DenseArray(list) = list else {
        return None;
    };
    let (words, []) = list.bytes.as_chunks() else {
        return None;
    };
    let number = |word: &[u8; 8]| u32::try_from(i64::from_le_bytes(*word)).ok();
    let numbers: Option<Vec<u32>> = words.iter().map(number).collect();
    numbers.filter(|_| list.element == Type::I64)
}
