//! Parallel loops: a function runs once for each block of a range.
//!
//! Block bounds depend on the range and the block size alone, never on the number of threads. A
//! run of blocks is halved: its upper half becomes a task that is halved again, until one block is
//! left, which is called on the current thread. So whoever steals a task gets much work. Of a very
//! long range not the blocks but short runs of them are what is left.

use std::ops::Range;
use std::sync::Arc;

use tfrt_host::kernel::{Call, Function, KernelRegistry, Rest, Step};
use tfrt_host::{AnyAsyncValue, Chain, Error, Value};

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt.parallel_for.i32", parallel_for)
        .add("tfrt.parallel_call.i32", parallel_for);
}

/// The most tasks of a loop. A queue that runs the oldest task first holds about so many halves of one loop at a
/// time.
const MAX_TASKS: u32 = 1 << 16;

/// `%done = tfrt.parallel_for.i32 %from to %to fixed %bs, %x : i32 { .. }`, and
/// `%done = tfrt.parallel_call.i32 %from to %to fixed %bs @work(%x) : i32`
///
/// The body takes the bounds of a block and the further operands. It gives nothing, or one chain
/// that is there when the block is done. An error of such a chain is the block's own affair.
fn parallel_for(
    start: i32,
    end: i32,
    block_size: i32,
    further: Rest,
    body: Function,
) -> Result<Step, Error> {
    let gives_chain_at_most =
        body.n_results() <= 1 && body.result_types().all(|ty| ty == Chain::NAME);
    if !gives_chain_at_most {
        let error = Error::unknown("Invalid parallel body function result types");
        // With a kernel's name an error counts as reported: this one is silent.
        return Err(error.with_kernel("tfrt.parallel_for.i32"));
    }
    let n_expected = further.len() + 2;
    if body.n_arguments() != n_expected {
        return Err(Error::invalid_argument(format!(
            "expected a body of {n_expected} arguments, found {}",
            body.n_arguments()
        )));
    }
    let Some(block_size) = u32::try_from(block_size).ok().filter(|size| *size > 0) else {
        return Err(Error::invalid_argument(format!(
            "expected a block size above 0, found {block_size}"
        )));
    };
    if end < start {
        return Err(Error::invalid_argument(format!(
            "expected a range that does not end before it starts, found {start} to {end}"
        )));
    }
    let n_blocks = end.abs_diff(start).div_ceil(block_size);
    let blocks = Blocks(Arc::new(Loop {
        body,
        start,
        end,
        block_size,
        n_in_order: (n_blocks / MAX_TASKS).max(1),
        further: further.0,
    }));
    Ok(blocks.run(0..n_blocks, Vec::new()))
}

/// A handle of a loop, whose blocks have numbers.
#[derive(Clone)]
struct Blocks(Arc<Loop>);

/// A parallel loop, which all of its tasks share.
struct Loop {
    body: Function,
    start: i32,
    end: i32,
    block_size: u32,
    /// The most blocks of a range that runs in order, and is not split into tasks.
    n_in_order: u32,
    further: Vec<AnyAsyncValue>,
}

impl Blocks {
    /// Runs these blocks; the result is a chain that is there when they and `pending` are done.
    fn run(self, blocks: Range<u32>, mut pending: Vec<AnyAsyncValue>) -> Step {
        let n_blocks = blocks.end - blocks.start;
        if n_blocks <= self.0.n_in_order {
            return self.run_in_order(blocks, pending);
        }
        let middle = blocks.start + n_blocks / 2;
        let upper = self.clone();
        Step::fork(
            1,
            move || upper.run(middle..blocks.end, Vec::new()),
            move |upper| {
                pending.extend(upper);
                self.run(blocks.start..middle, pending)
            },
        )
    }

    /// Runs these blocks one after the other.
    fn run_in_order(self, mut blocks: Range<u32>, mut pending: Vec<AnyAsyncValue>) -> Step {
        let Some(block) = blocks.next() else {
            return finish(pending);
        };
        let call = Call::new(self.0.body.clone(), self.0.arguments(block));
        Step::call(call, move |results| {
            let unsettled = results.into_iter().filter(|result| !result.is_settled());
            pending.extend(unsettled);
            self.run_in_order(blocks, pending)
        })
    }
}

/// Ends with a chain that is there when all of these are settled, even by errors.
fn finish(pending: Vec<AnyAsyncValue>) -> Step {
    Step::when_settled(pending, |_| Step::done(vec![AnyAsyncValue::new(Chain)]))
}

impl Loop {
    /// Returns the operands of the body for one block.
    fn arguments(&self, block: u32) -> Vec<AnyAsyncValue> {
        let bound = |block: u32| {
            let offset = u64::from(block) * u64::from(self.block_size);
            let length = self.end.abs_diff(self.start);
            // Invariant: the offset is at most the length, so the sum is at most the end.
            let offset = u32::try_from(offset).map_or(length, |offset| offset.min(length));
            self.start.wrapping_add_unsigned(offset)
        };
        let mut arguments = Vec::with_capacity(self.further.len() + 2);
        arguments.push(AnyAsyncValue::new(bound(block)));
        arguments.push(AnyAsyncValue::new(bound(block + 1)));
        arguments.extend_from_slice(&self.further);
        arguments
    }
}
