//! Filling of a tensor block by block, on the workers of a queue.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tfrt_host::memory::HostBuffer;
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::epilogue::{Addend, Epilogue, TensorEpilogue};
use super::{Block, Partition};
use crate::{DenseHostTensor, from_bytes, from_bytes_mut};

/// Duration below which blocks are shared with idle workers rather than handed out as tasks.
const SHORT_NS: usize = 100_000;

/// Makes a tensor whose rows are `n` columns: `body(block, epilogue, out, stride)` makes a block, from its first
/// element on, in rows that are `stride` apart. What is added by `epilogue` is as seen from the block's first row.
///
/// `body` borrows its operands for itself, block by block. Between blocks the request's cancellation is
/// looked at. The result settles when all is made: at once, if there is one block.
///
/// # Errors
///
/// `InvalidArgument` if the tensor's elements are no `f32`s; the result fails with the error of the last block
/// that failed, with `FailedPrecondition` if somebody else uses the tensor, or with the reason of the
/// cancellation.
pub(crate) fn fill(
    execution: &ExecutionContext,
    out: &DenseHostTensor,
    n: usize,
    grid: impl Partition + Send + Sync + 'static,
    epilogue: TensorEpilogue,
    body: impl Fn(&Block, &Epilogue<'_>, &mut [f32], usize) -> Result<(), Error> + Send + Sync + 'static,
) -> Result<AsyncValue<Chain>, Error> {
    crate::dense::expect_dtype::<f32>(out.metadata())?;
    if out.n_elements() == 0 {
        return Ok(AsyncValue::available(Chain));
    }
    let (buffer, n_blocks, cost_ns) = (out.buffer().clone(), grid.len(), grid.cost_ns());
    let turn = Mutex::new(());
    let make = move |index: usize| {
        let block = grid.block(index);
        epilogue.lend(|epilogue| {
            let epilogue = epilogue.from(block.rows.start * n);
            let columns = match grid.has_whole_rows() {
                true => 0..n,
                false => grid.columns(&block),
            };
            if columns.len() < n && block.rows.len() > 1 {
                let rows = elements(&buffer, block.rows.start * n, block.rows.len() * n);
                return aside(&rows, &turn, n, columns, &block, &epilogue, &body);
            }
            let (first, stride) = (block.rows.start * n + columns.start, columns.len());
            let part = elements(&buffer, first, block.rows.len() * stride);
            let mut writing = part.write()?;
            let part = from_bytes_mut(&mut writing)?;
            body(&block, &epilogue, part, stride)?;
            epilogue.finish(part)
        })
    };
    if n_blocks == 1 {
        make(0)?;
        return Ok(AsyncValue::available(Chain));
    }
    if cost_ns < SHORT_NS {
        let cost = Duration::from_nanos(u64::try_from(cost_ns).unwrap_or(u64::MAX));
        return Ok(execution.share(n_blocks, cost, make));
    }
    let blocks = 0..n_blocks;
    Ok(
        execution.parallel_for(blocks, NonZeroUsize::MIN, move |start, end| {
            (start..end).try_for_each(&make)
        }),
    )
}

/// Makes a block of some columns in scratch memory, and copies it to its rows. Blocks beside it write the other
/// columns: they take turns, since to lock a part of each row would take a lock for each.
fn aside(
    rows: &HostBuffer,
    turn: &Mutex<()>,
    n: usize,
    columns: Range<usize>,
    block: &Block,
    epilogue: &Epilogue<'_>,
    body: impl Fn(&Block, &Epilogue<'_>, &mut [f32], usize) -> Result<(), Error>,
) -> Result<(), Error> {
    let take_turn = || turn.lock().unwrap_or_else(PoisonError::into_inner);
    let mut made = vec![0.0; block.rows.len() * columns.len()];
    if let Addend::Result(_) = epilogue.added {
        let _turn = take_turn();
        let reading = rows.read()?;
        let rows = from_bytes::<f32>(&reading)?.chunks_exact(n);
        for (made, row) in made.chunks_exact_mut(columns.len()).zip(rows) {
            made.copy_from_slice(&row[columns.clone()]);
        }
    }
    body(block, epilogue, &mut made, columns.len())?;
    epilogue.finish(&mut made)?;
    let _turn = take_turn();
    let mut writing = rows.write()?;
    let rows = from_bytes_mut::<f32>(&mut writing)?.chunks_exact_mut(n);
    for (made, row) in made.chunks_exact(columns.len()).zip(rows) {
        row[columns.clone()].copy_from_slice(made);
    }
    Ok(())
}

fn elements(buffer: &HostBuffer, first: usize, n: usize) -> HostBuffer {
    let bytes = first * size_of::<f32>()..(first + n) * size_of::<f32>();
    buffer.slice(bytes).expect("blocks are within")
}
