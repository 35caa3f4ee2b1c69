//! `tfrt_dht`, `tfrt_dht_sync`: dense tensors and their buffers.
//!
//! Many kernels differ only by a type that their parameters don't show. These are added as pointers to
//! functions of one type, so that what takes operands off a frame is compiled once for all of them. A tensor of another
//! type than the kernel's name says is refused by the tensor itself.

use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{Error, HostContext};
use tfrt_tensor::{DType, DenseHostTensor, Tensor, TensorMetadata, TensorShape};

mod buffers;
mod comparison;
mod creation;
mod filling;

pub(super) fn register(registry: &mut KernelRegistry) {
    creation::register(registry);
    filling::register(registry);
    comparison::register(registry);
    buffers::register(registry);
}

pub(super) fn register_synchronous(registry: &mut KernelRegistry) {
    creation::register_synchronous(registry);
    filling::register_synchronous(registry);
    buffers::register_synchronous(registry);
}

/// Returns a tensor of zeros.
fn zeroed(dtype: DType, shape: &[i64], host: &HostContext) -> Result<DenseHostTensor, Error> {
    let metadata = TensorMetadata::new(dtype, TensorShape::from_i64(shape)?);
    DenseHostTensor::zeroed(host.allocator(), metadata)
}

/// Returns the dense tensor, which must have this type.
pub(super) fn dense_of(tensor: &Tensor, dtype: DType) -> Result<&DenseHostTensor, Error> {
    let dense = tensor.as_dense()?;
    dense.metadata().expect_dtype(dtype)?;
    Ok(dense)
}
