//! Memory for the outputs of fused kernels.

use tfrt_host::{Error, ExecutionContext};
use tfrt_tensor::{DType, DenseHostTensor, TensorMetadata, TensorShape};

/// Allocates an `f32` output of this shape. Its contents are unspecified: the caller must write every element before
/// the tensor leaves the kernel.
///
/// # Errors
///
/// `InvalidArgument` for extents that fit no memory, `ResourceExhausted` if there is not as much.
pub(super) fn output(
    execution: &ExecutionContext,
    extents: &[usize],
) -> Result<DenseHostTensor, Error> {
    output_of(execution, DType::F32, TensorShape::new(extents)?)
}

/// Allocates an output as [`output`] does, of this type and shape.
///
/// # Errors
///
/// See [`output`] for errors.
pub(super) fn output_of(
    execution: &ExecutionContext,
    dtype: DType,
    shape: TensorShape,
) -> Result<DenseHostTensor, Error> {
    let metadata = TensorMetadata::new(dtype, shape);
    DenseHostTensor::unspecified(execution.host().allocator(), metadata)
}
