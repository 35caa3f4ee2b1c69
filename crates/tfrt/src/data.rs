//! Inputs and outputs of models: read from files, generated, shown as text, and written to files.

use std::sync::Arc;

use tfrt::HostAllocator;
use tfrt::host::memory::MemoryReservation;
use tfrt::tensor::{Sequence, Tensor};

pub mod compare;
pub mod image;
pub mod json;
pub mod numbers;
pub mod protobuf;
pub mod random;
pub mod read;
mod resample;
mod safetensors;
pub mod scalars;
pub mod show;
mod sound;
pub mod steps;
pub mod text;
pub mod write;

/// Returns a sequence of tensors that are read one by one. A file may hold very many, with nothing in them: memory for
/// each is set aside before it is read.
fn sequence(
    tensors: impl Iterator<Item = Result<Tensor, String>>,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Sequence, String> {
    let (mut list, mut aside) = (Vec::new(), MemoryReservation::new(allocator));
    for tensor in tensors {
        if !aside.add(Sequence::BYTES_PER_TENSOR) {
            let n_tensors = list.len() + 1;
            return Err(format!("Cannot allocate sequence of {n_tensors} tensors"));
        }
        list.push(tensor?);
    }
    Ok(Sequence::set_aside(list, aside))
}
