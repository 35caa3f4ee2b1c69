//! `tfrt_test`: kernels on tensors for tests.

use tfrt_host::kernel::{Attr, AttributeView, KernelRegistry};
use tfrt_host::{Chain, Error, HostContext};
use tfrt_tensor::{DenseHostTensor, Element, Tensor, TensorMetadata, TensorShape, TensorView};

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt_test.const_dense_attr", constant)
        .add("tfrt_test.sync.const_dense_attr", constant)
        .add("tfrt_test.slice_inplace.f32.3", slice::<f32, 3>)
        .add("tfrt_test.slice_inplace.i32.3", slice::<i32, 3>)
        .add("tfrt_test.slice_inplace.i64.3", slice::<i64, 3>);
}

/// `%t = "tfrt_test.const_dense_attr"() {value = dense<[1, 2]> : tensor<2xi32>}`
fn constant(value: Attr<AttributeView<'_>>, host: &HostContext) -> Result<Tensor, Error> {
    let dense = value.dense().ok_or_else(|| {
        let message = "error creating DenseHostTensor: attribute 'value' is no dense elements";
        Error::invalid_argument(message)
    })?;
    let metadata = TensorMetadata::new(dense.dtype, TensorShape::from_i64(dense.shape)?);
    Ok(DenseHostTensor::from_bytes(host.allocator(), metadata, dense.bytes)?.into())
}

/// `%c1 = "tfrt_test.slice_inplace.<t>.3"(%input, %begin, %c0, %output)`
fn slice<T: Element, const RANK: usize>(
    input: &Tensor,
    begin: &Tensor,
    _: Chain,
    output: &Tensor,
) -> Result<Chain, Error> {
    let (input, output) = (input.as_dense()?, output.as_dense()?);
    let begin = begin.as_dense()?.read()?;
    let begin = begin.elements::<i64>()?;
    let (whole, part) = (input.shape(), output.shape());
    if [begin.len(), whole.rank(), part.rank()] != [RANK; 3] {
        let message = "the size of 'begin_index' should match the input tensor rank";
        return Err(Error::invalid_argument(message));
    }
    let mut start = 0;
    let strides = whole.strides();
    for (index, (first, stride)) in begin.iter().zip(&strides).enumerate() {
        let room = |first: usize| whole.extent(index)?.checked_sub(first);
        let extent = part.extent(index);
        let first = usize::try_from(*first).ok();
        match first.filter(|first| room(*first) >= extent) {
            Some(first) => start += first * stride,
            None => {
                return Err(Error::invalid_argument(format!(
                    "a slice of shape {part} from {begin:?} on is not in a tensor of shape {whole}"
                )));
            }
        }
    }
    let reading = input.read()?;
    let mut writing = output.write()?;
    let elements = writing.elements_mut::<T>()?;
    if !elements.is_empty() {
        let behind = &reading.elements::<T>()?[start..];
        let view = TensorView::strided(behind, &part.to_dims(), &strides)?;
        for (element, value) in elements.iter_mut().zip(view.iter()) {
            *element = value;
        }
    }
    Ok(Chain)
}
