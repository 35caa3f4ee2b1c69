//! Kernels of layers: products, pooling, padding, and changes of shape.

use tfrt_host::kernel::{Attr, KernelRegistry};
use tfrt_host::{Chain, Error, ExecutionContext, HostContext, Value};
use tfrt_tensor::math::elementwise::expect_same;
use tfrt_tensor::math::matmul::{self, MatmulElement, Scale};
use tfrt_tensor::math::pointwise::{Elements, ElementsMut, UnaryFunction, unary};
use tfrt_tensor::{
    DType, DenseHostTensor, Element, Tensor, TensorMetadata, TensorShape, TensorView, TensorViewMut,
};

use super::{
    WriteResult, both, copy_elements, max_pool, pad_with_zeros, padding, parallel, two, windows,
};

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt_test.matmul.f32.2", product::<f32>)
        .add("tfrt_test.matmul.i32.2", product::<i32>)
        .add("tfrt_test.matmul.i64.2", product::<i64>)
        .add("tfrt_test.broadcast.f32.2", broadcast::<f32, 2>)
        .add("tfrt_test.broadcast.i32.2", broadcast::<i32, 2>)
        .add("tfrt_test.broadcast.i64.2", broadcast::<i64, 2>)
        .add("tfrt_test.broadcast.f32.3", broadcast::<f32, 3>)
        .add("tfrt_test.broadcast.i32.3", broadcast::<i32, 3>)
        .add("tfrt_test.broadcast.i64.3", broadcast::<i64, 3>)
        .add("tfrt_test.broadcast_2d.f32", broadcast_2d)
        .add("tfrt_test.max_pooling_2d.f32", max_pooling)
        .add("tfrt_test.flatten.f32", flatten)
        .add("tfrt_test.zero_padding.f32", zero_padding)
        .add("tfrt_test.tensor_transpose.f32", transpose)
        .add("tfrt_test.gradient_descent.f32", gradient_descent);
}

pub(in crate::tensor) fn register_synchronous(registry: &mut KernelRegistry) {
    registry
        .add("tfrt_test_sync.matmul.f32.2", product_synchronously::<f32>)
        .add("tfrt_test_sync.matmul.i32.2", product_synchronously::<i32>)
        .add("tfrt_test_sync.matmul.i64.2", product_synchronously::<i64>)
        .add("tfrt_test_sync.relu.f32", relu_synchronously::<f32>)
        .add("tfrt_test_sync.relu.i32", relu_synchronously::<i32>)
        .add("tfrt_test_sync.relu.i64", relu_synchronously::<i64>);
}

/// `%c1 = "tfrt_test.matmul.<t>.2"(%alpha, %a, %b, %beta, %c, %c0)`: c = alpha a b + beta c
///
/// # Shapes
///
/// `a: [m, k]`, `b: [k, n]`, `c: [m, n]`.
pub(super) fn product<T: MatmulElement + Value + Copy>(
    alpha: T,
    a: &Tensor,
    b: &Tensor,
    beta: T,
    c: &Tensor,
    execution: &ExecutionContext,
) -> WriteResult {
    let scale = Scale {
        of_product: alpha,
        of_result: beta,
    };
    let factors = both(a, b)?;
    matmul::matmul_of(execution, scale, factors, [false, false], c.as_dense()?)
}

/// `"tfrt_test_sync.matmul.<t>.2"(%alpha, %a, %b, %beta, %c)`, on the calling thread
fn product_synchronously<T: MatmulElement + Value + Copy>(
    alpha: T,
    a: &Tensor,
    b: &Tensor,
    beta: T,
    c: &Tensor,
) -> Result<(), Error> {
    let ([a, b], c) = (both(a, b)?, c.as_dense()?);
    let (a, b, mut c) = (a.read()?, b.read()?, c.write()?);
    let scale = Scale {
        of_product: alpha,
        of_result: beta,
    };
    matmul::matmul(
        scale,
        &a.view::<T>()?,
        &b.view::<T>()?,
        &mut c.view_mut::<T>()?,
    )
}

/// `"tfrt_test_sync.relu.<t>"(%a, %b)`, on the calling thread
fn relu_synchronously<T: Element>(a: &Tensor, b: &Tensor) -> Result<(), Error> {
    let [a, b] = both(a, b)?;
    a.metadata().expect_dtype(T::DTYPE)?;
    let (a, mut b) = (a.read()?, b.write()?);
    let b = ElementsMut::of_dense(&mut b);
    unary(UnaryFunction::Relu, &Elements::of_dense(&a), b)
}

/// `%b = "tfrt_test.broadcast.<t>.<rank>"(%a, %shape, %c0)`: `a: [n]` repeated, `b: [.., n]`
fn broadcast<T: Element, const RANK: usize>(
    a: &Tensor,
    shape: &TensorShape,
    host: &HostContext,
) -> Result<Tensor, Error> {
    let a = a.as_dense()?;
    if a.shape().rank() != 1
        || shape.rank() != RANK
        || a.shape().extents().last() != shape.extents().last()
    {
        let own = a.shape();
        let message = format!(
            "broadcast input tensor dimension and target shape mismatch: {own} vs. {shape}"
        );
        return Err(Error::invalid_argument(message));
    }
    let metadata = TensorMetadata::new(T::DTYPE, shape.clone());
    let mut result = DenseHostTensor::zeroed(host.allocator(), metadata)?;
    let reading = a.read()?;
    let extents = shape.to_dims();
    if let Some(elements) = result.elements_mut::<T>()? {
        let view = reading.view::<T>()?.broadcast(&extents)?;
        copy(&view, TensorViewMut::new(elements, &extents)?)?;
    }
    Ok(result.into())
}

/// Copies the elements of a view of the same shape.
fn copy<T: Element>(from: &TensorView<'_, T>, to: TensorViewMut<'_, T>) -> Result<(), Error> {
    unary(UnaryFunction::Identity, &from.into(), to.into())
}

/// `%c1 = "tfrt_test.broadcast_2d.f32"(%a, %b, %c0)`: `a: [n, c]` repeated, `b: [n, h, w, c]`
fn broadcast_2d(a: &Tensor, b: &Tensor) -> Result<Chain, Error> {
    let [a, b] = both(a, b)?;
    let ([n, c], [b_n, _, _, b_c]) = (&a.shape().to_dims()[..], &b.shape().to_dims()[..]) else {
        return Err(mismatch("Broadcast2D", b, a));
    };
    if [n, c] != [b_n, b_c] {
        return Err(mismatch("Broadcast2D", b, a));
    }
    let (a_reading, mut writing) = (a.read()?, b.write()?);
    let elements = a_reading.elements::<f32>()?;
    let view = TensorView::new(elements, &[*n, 1, 1, *c])?;
    let view = view.broadcast(&b.shape().to_dims())?;
    copy(&view, writing.view_mut::<f32>()?)?;
    Ok(Chain)
}

#[cold]
fn mismatch(kernel: &str, output: &DenseHostTensor, input: &DenseHostTensor) -> Error {
    let (output, input) = (output.shape(), input.shape());
    Error::invalid_argument(format!(
        "{kernel} output shape {output} does not match the input shape {input}"
    ))
}

/// `%c1 = "tfrt_test.max_pooling_2d.f32"(%a, %b, %c0) {padding = "same", pool_size = [2 : i32, 2 : i32], strides = ..}`
///
/// # Shapes
///
/// `a: [n, h, w, c]`, `b: [n, oh, ow, c]`.
fn max_pooling(
    a: &Tensor,
    b: &Tensor,
    padding_name: Attr<&str>,
    pool_size: Attr<&[i32]>,
    strides: Attr<&[i32]>,
    execution: &ExecutionContext,
) -> WriteResult {
    let size = two("MaxPool2D", "pool_size", &pool_size)?;
    let strides = two("MaxPool2D", "strides", &strides)?;
    let windows = windows(size, strides, padding("MaxPool2D", &padding_name)?);
    let [a, b] = both(a, b)?;
    max_pool(execution, a, b, windows)
}

/// `%c1 = "tfrt_test.flatten.f32"(%a, %b, %c0)`: the elements of a, a row for each of its images
fn flatten(a: &Tensor, b: &Tensor, execution: &ExecutionContext) -> WriteResult {
    let [a, b] = both(a, b)?;
    let is_same = a.n_elements() == b.n_elements() && a.shape().extent(0) == b.shape().extent(0);
    if !is_same {
        return Err(mismatch("Flatten", b, a));
    }
    copy_elements(execution, DType::F32, a, b)
}

/// `%c1 = "tfrt_test.zero_padding.f32"(%a, %b, %c0) {padding = [1 : i32, 1 : i32]}`
fn zero_padding(
    a: &Tensor,
    b: &Tensor,
    padding: Attr<&[i32]>,
    execution: &ExecutionContext,
) -> WriteResult {
    let around = two("ZeroPadding", "padding", &padding)?;
    let [a, b] = both(a, b)?;
    pad_with_zeros::<f32>(execution, a, b, around)
}

/// `%c1 = "tfrt_test.tensor_transpose.f32"(%a, %b, %c0)`: `a: [m, n]`, `b: [n, m]`
fn transpose(a: &Tensor, b: &Tensor) -> Result<Chain, Error> {
    let [a, b] = both(a, b)?;
    let extents = a.shape().to_dims();
    let turned: Vec<usize> = extents.iter().rev().copied().collect();
    if extents.len() != 2 || b.shape().to_dims()[..] != turned[..] {
        return Err(mismatch("TensorTranspose", b, a));
    }
    let (a, mut b) = (a.read()?, b.write()?);
    let view = a.view::<f32>()?.permute(&[1, 0])?;
    copy(&view, b.view_mut::<f32>()?)?;
    Ok(Chain)
}

/// `%c1 = "tfrt_test.gradient_descent.f32"(%gradient, %rate, %weights, %c0)`: weights -= rate gradient
fn gradient_descent(
    gradient: &Tensor,
    rate: &Tensor,
    weights: &Tensor,
    execution: &ExecutionContext,
) -> WriteResult {
    let ([gradient, rate], weights) = (both(gradient, rate)?, weights.as_dense()?);
    let reading = rate.read()?;
    let &[rate] = reading.elements::<f32>()? else {
        let message = "GradientDescent lr should have only one element";
        return Err(Error::invalid_argument(message));
    };
    expect_same(gradient.shape(), weights.shape())?;
    gradient.metadata().expect_dtype(DType::F32)?;
    let gradient = gradient.clone();
    let chunk = parallel::chunk_len(2, 1);
    parallel::fill(execution, weights, chunk, move |first, part: &mut [f32]| {
        let reading = gradient.read()?;
        let gradient = &reading.elements::<f32>()?[first..];
        for (weight, gradient) in part.iter_mut().zip(gradient) {
            *weight -= gradient * rate;
        }
        Ok(())
    })
}
