//! Reductions: many elements become one.

use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{Error, ExecutionContext, HostContext};
use tfrt_tensor::math::number::Real;
use tfrt_tensor::math::reduce::{Extremum, Reduction, position, reduce, reduce_into};
use tfrt_tensor::math::softmax::{self, SoftmaxKind};
use tfrt_tensor::{DType, DenseHostTensor, Tensor, TensorMetadata, TensorShape, TensorViewMut};

use super::{WriteResult, both, parallel};

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt_test.argmax.f32.2", argmax::<f32>)
        .add("tfrt_test.argmax.i32.2", argmax::<i32>)
        .add("tfrt_test.argmax.i64.2", argmax::<i64>)
        .add("tfrt_test.reduce_mean.f32.1", mean::<f32>)
        .add("tfrt_test.reduce_mean.i32.1", mean::<i32>)
        .add("tfrt_test.reduce_mean.i64.1", mean::<i64>)
        .add("tfrt_test.mean_axis_zero.f32", mean_of_columns)
        .add("tfrt_test.global_average_pooling.f32", mean_of_images)
        .add("tfrt_test.softmax_inplace.f32", softmax);
}

/// `%positions = "tfrt_test.argmax.<t>.2"(%a, %c0)`: the position of the largest element in each row, the first of
/// several
fn argmax<T: Real>(a: &Tensor, host: &HostContext) -> Result<Tensor, Error> {
    let a = a.as_dense()?;
    expect_rank(a, 2, "argmax")?;
    let reading = a.read()?;
    let view = reading.view::<T>()?;
    let [rows, columns] = [view.extents()[0], view.extents()[1]];
    if columns == 0 && rows > 0 {
        // Before there is a list of positions: rows without elements may be more than fit the memory.
        let message = "there is no element whose position could be found";
        return Err(Error::invalid_argument(message));
    }
    let shape = [rows];
    let mut positions = vec![0_i64; shape[0]];
    let mut found = TensorViewMut::new(&mut positions, &shape)?;
    position(Extremum::Greatest, &view, 1, &mut found)?;
    let narrow = |position: &i64| i32::try_from(*position);
    let positions: Result<Vec<i32>, _> = positions.iter().map(narrow).collect();
    let positions = positions.map_err(|_| Error::out_of_range("a position exceeds 32 bits"))?;
    Ok(DenseHostTensor::from_slice(host.allocator(), &shape, &positions)?.into())
}

/// `%mean = "tfrt_test.reduce_mean.<t>.1"(%a, %c0)`
fn mean<T: Real>(a: &Tensor, host: &HostContext) -> Result<Tensor, Error> {
    let a = a.as_dense()?;
    expect_rank(a, 1, "reduce_mean")?;
    let mut mean = DenseHostTensor::zeroed(
        host.allocator(),
        TensorMetadata::new(T::DTYPE, TensorShape::SCALAR),
    )?;
    let reading = a.read()?;
    if let Some(elements) = mean.elements_mut::<T>()? {
        let view = reading.view::<T>()?;
        let mut result = TensorViewMut::new(elements, &[])?;
        reduce(Reduction::Mean, &view, &[0], &mut result)?;
    }
    Ok(mean.into())
}

fn expect_rank(tensor: &DenseHostTensor, rank: usize, kernel: &str) -> Result<(), Error> {
    let found = tensor.shape();
    if found.rank() == rank {
        return Ok(());
    }
    let message = format!("{kernel} expects a tensor of {rank} dimensions, found shape {found}");
    Err(Error::invalid_argument(message))
}

/// `%c1 = "tfrt_test.mean_axis_zero.f32"(%a, %b, %c0)`: `b: [columns]` = the means of `a: [rows, columns]`
fn mean_of_columns(a: &Tensor, b: &Tensor, execution: &ExecutionContext) -> WriteResult {
    let [a, b] = both(a, b)?;
    expect_rank(a, 2, "mean_axis_zero")?;
    a.metadata().expect_dtype(DType::F32)?;
    reduce_into(execution, Reduction::Mean, a, &[0], b)
}

/// `%c1 = "tfrt_test.global_average_pooling.f32"(%a, %b, %c0)`: `b: [n, c]` = the means of `a: [n, h, w, c]`
fn mean_of_images(a: &Tensor, b: &Tensor, execution: &ExecutionContext) -> WriteResult {
    let [a, b] = both(a, b)?;
    expect_rank(a, 4, "global_average_pooling")?;
    a.metadata().expect_dtype(DType::F32)?;
    reduce_into(execution, Reduction::Mean, a, &[1, 2], b)
}

/// `%c1 = "tfrt_test.softmax_inplace.f32"(%a, %c0)`: over all elements
fn softmax(a: &Tensor, execution: &ExecutionContext) -> WriteResult {
    let a = a.as_dense()?;
    a.metadata().expect_dtype(DType::F32)?;
    parallel::fill(execution, a, super::WHOLE, |_, elements: &mut [f32]| {
        softmax::row_in_place(SoftmaxKind::Softmax, elements);
        Ok(())
    })
}
