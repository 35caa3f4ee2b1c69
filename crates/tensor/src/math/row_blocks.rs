//! Partition of rows that cost alike into blocks of whole rows: images with channels last, made pixel by pixel.

use std::ops::Range;

use super::packed_gemm::{Block, Partition};
use super::parallel::part_start;

/// Approximate operations of a block: some 10 microseconds.
const BLOCK_OPERATIONS: usize = 1 << 18;
/// Approximate operations in a nanosecond.
const OPERATIONS_PER_NS: usize = 26;

/// A partition of rows into blocks. It depends on shapes alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowBlocks {
    n_rows: usize,
    n_columns: usize,
    n_blocks: usize,
    operations: usize,
}

impl RowBlocks {
    /// Cuts rows of `n_columns` columns, each of which takes about this many operations.
    pub(crate) fn new(n_rows: usize, n_columns: usize, operations_per_row: usize) -> RowBlocks {
        let operations = n_rows.saturating_mul(operations_per_row);
        // Of an even number two threads get the same share.
        let n_blocks = match operations.div_ceil(BLOCK_OPERATIONS) {
            n @ ..2 => n,
            n => n.saturating_add(n % 2),
        };
        RowBlocks {
            n_rows,
            n_columns,
            n_blocks: n_blocks.clamp(1, n_rows.max(1)),
            operations,
        }
    }
}

impl Partition for RowBlocks {
    fn len(&self) -> usize {
        self.n_blocks
    }

    fn block(&self, index: usize) -> Block {
        let row = |index: usize| part_start(self.n_rows, self.n_blocks, index);
        Block {
            rows: row(index)..row(index + 1),
            panels: 0..1,
        }
    }

    fn columns(&self, _: &Block) -> Range<usize> {
        0..self.n_columns
    }

    fn has_whole_rows(&self) -> bool {
        true
    }

    fn cost_ns(&self) -> usize {
        self.operations / OPERATIONS_PER_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_all_rows_in_order() {
        for n_rows in [0, 1, 2, 3, 7, 100, 101, 5000] {
            for operations in [0, 1, 1 << 10, 1 << 17, 1 << 19, usize::MAX] {
                let lines = RowBlocks::new(n_rows, 3, operations);
                let mut next = 0;
                for index in 0..lines.len() {
                    let rows = lines.block(index).rows;
                    assert_eq!(rows.start, next);
                    next = rows.end;
                }
                assert_eq!(next, n_rows);
            }
        }
    }
}
