//! An output made in chunks, on the workers of a queue.

use std::num::NonZeroUsize;

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use crate::{DenseHostTensor, Element, from_bytes_mut};

/// Chunks take about so many operations on elements: some 10 microseconds, many times what it costs to hand
/// one to another worker.
const CHUNK_OPERATIONS: usize = 1 << 15;

/// Returns how many elements a chunk has, if each takes about so many operations; a multiple of `multiple`.
///
/// It depends on the problem alone, never on the number of threads.
pub fn chunk_len(operations_per_element: usize, multiple: usize) -> NonZeroUsize {
    let multiple = multiple.max(1);
    let wanted = CHUNK_OPERATIONS / operations_per_element.max(1);
    let len = wanted.next_multiple_of(multiple).max(multiple);
    NonZeroUsize::new(len).unwrap_or(NonZeroUsize::MIN)
}

/// Fills a tensor: `body(first, elements)` makes the elements from the `first` on, one chunk after the other,
/// or side by side on the queue's workers if there are several.
///
/// What `body` reads it borrows for itself, chunk by chunk, so that nothing is held when the result settles.
/// Between chunks the request's cancellation is looked at. The result settles when all elements are made: at
/// once, if they are one chunk.
///
/// # Errors
///
/// `InvalidArgument` if the tensor's elements are no `T`s; the result fails with the error of the last chunk
/// that failed, with `FailedPrecondition` if somebody else uses the tensor, or with the reason of the
/// cancellation.
pub fn fill<T: Element>(
    execution: &ExecutionContext,
    output: &DenseHostTensor,
    chunk: NonZeroUsize,
    body: impl Fn(usize, &mut [T]) -> Result<(), Error> + Send + Sync + 'static,
) -> Result<AsyncValue<Chain>, Error> {
    crate::dense::expect_dtype::<T>(output.metadata())?;
    let n_elements = output.n_elements();
    if n_elements <= chunk.get() {
        if n_elements > 0 {
            body(0, output.write()?.elements_mut()?)?;
        }
        return Ok(AsyncValue::available(Chain));
    }
    let body = move |first, bytes: &mut [u8]| body(first, from_bytes_mut(bytes)?);
    Ok(chunks(
        execution,
        output,
        size_of::<T>(),
        chunk,
        Box::new(body),
    ))
}

/// As [`fill`], of elements of any type, as bytes: `body(first, bytes)` makes the bytes of the elements from the
/// `first` on.
///
/// # Errors
///
/// `InvalidArgument` if the elements are not of one size, and those of [`fill`].
pub fn fill_bytes(
    execution: &ExecutionContext,
    output: &DenseHostTensor,
    chunk: NonZeroUsize,
    body: impl Fn(usize, &mut [u8]) -> Result<(), Error> + Send + Sync + 'static,
) -> Result<AsyncValue<Chain>, Error> {
    output.metadata().len_bytes()?;
    let size = output.dtype().size_bytes().unwrap_or(1);
    let n_elements = output.n_elements();
    if n_elements <= chunk.get() {
        if n_elements > 0 {
            body(0, output.write()?.bytes_mut())?;
        }
        return Ok(AsyncValue::available(Chain));
    }
    Ok(chunks(execution, output, size, chunk, Box::new(body)))
}

/// What makes the bytes of elements from one on.
type Body = Box<dyn Fn(usize, &mut [u8]) -> Result<(), Error> + Send + Sync>;

/// Fills a tensor of elements of so many bytes in chunks. Compiled once, whatever fills it: there are
/// thousands of kinds.
fn chunks(
    execution: &ExecutionContext,
    output: &DenseHostTensor,
    size: usize,
    chunk: NonZeroUsize,
    body: Body,
) -> AsyncValue<Chain> {
    let buffer = output.buffer().clone();
    execution.parallel_for(0..output.n_elements(), chunk, move |start, end| {
        let part = buffer.slice(start * size..end * size);
        body(start, &mut part.expect("chunks are within").write()?)
    })
}
