//! Memory of tensors that are gone, for those to come.
//!
//! A call of a model makes and drops the same large tensors again and again. Memory from the system is
//! cleared when it is taken, and again by who promises zeros; that costs more than many an operation does.
//! So buffers of outputs are kept, and used again when nobody else holds them. What they hold then is what
//! some tensor of the process held, and each kernel here writes all of it.

use std::sync::{Mutex, PoisonError};

use tfrt_host::memory::HostBuffer;
use tfrt_host::{Error, ExecutionContext};
use tfrt_tensor::{DType, DenseHostTensor, TensorMetadata, TensorShape};

/// Smaller tensors come from the allocator.
const LEAST_BYTES: usize = 1 << 14;

/// The most buffers that are kept.
const MOST_BUFFERS: usize = 128;

/// The most bytes that are kept.
const MOST_BYTES: usize = 1 << 29;

/// Buffers that are kept: in use, or free if nobody else holds them.
#[derive(Default)]
struct Kept {
    buffers: Mutex<Vec<HostBuffer>>,
}

/// Returns a tensor of `f32` to be written, whose elements are anything.
///
/// # Errors
///
/// `InvalidArgument` for extents that fit no memory, `ResourceExhausted` if there is not as much.
pub(super) fn output(
    execution: &ExecutionContext,
    extents: &[usize],
) -> Result<DenseHostTensor, Error> {
    output_of(execution, TensorShape::new(extents)?)
}

/// The same, of a shape.
///
/// # Errors
///
/// As of [`output`].
pub(super) fn output_of(
    execution: &ExecutionContext,
    shape: TensorShape,
) -> Result<DenseHostTensor, Error> {
    let metadata = TensorMetadata::new(DType::F32, shape);
    let len_bytes = metadata.len_bytes()?;
    let host = execution.host();
    if len_bytes < LEAST_BYTES {
        return DenseHostTensor::zeroed(host.allocator(), metadata);
    }
    let kept = host.shared(|_| Kept::default());
    if let Some(buffer) = kept.take(len_bytes) {
        return DenseHostTensor::new(metadata, buffer);
    }
    let tensor = DenseHostTensor::zeroed(host.allocator(), metadata)?;
    kept.keep(tensor.buffer().clone());
    Ok(tensor)
}

impl Kept {
    /// Returns the smallest free buffer that is large enough, and not much too large.
    fn take(&self, len_bytes: usize) -> Option<HostBuffer> {
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let most = len_bytes.saturating_add(len_bytes / 4);
        let mut best: Option<(usize, usize)> = None;
        for (index, buffer) in buffers.iter_mut().enumerate() {
            let found = buffer.len_bytes();
            let is_better = best.is_none_or(|(_, other)| found < other);
            if (len_bytes..=most).contains(&found) && is_better && buffer.is_unique() {
                best = Some((index, found));
            }
        }
        let (index, _) = best?;
        buffers[index].slice(0..len_bytes)
    }

    /// Keeps a buffer; drops free ones, the oldest first, if that are too many.
    fn keep(&self, buffer: HostBuffer) {
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        buffers.push(buffer);
        let mut n_bytes: usize = buffers.iter().map(HostBuffer::len_bytes).sum();
        let mut n_buffers = buffers.len();
        if n_buffers <= MOST_BUFFERS && n_bytes <= MOST_BYTES {
            return;
        }
        buffers.retain_mut(|buffer| {
            let is_too_much = n_buffers > MOST_BUFFERS || n_bytes > MOST_BYTES;
            if !is_too_much || !buffer.is_unique() {
                return true;
            }
            n_buffers -= 1;
            n_bytes -= buffer.len_bytes();
            false
        });
        // What is in use goes when its users drop it.
        let n_extra = buffers.len().saturating_sub(MOST_BUFFERS);
        buffers.drain(..n_extra);
    }
}
