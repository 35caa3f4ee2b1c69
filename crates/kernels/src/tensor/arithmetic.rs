//! Arithmetic on dense tensors: adapters over [`tfrt_tensor::math`].
//!
//! | Family | Kernels |
//! | --- | --- |
//! | [`elements`] | `tfrt_test.add`, `relu`, `equal`...: element by element |
//! | [`reduction`] | `tfrt_test.argmax`, `reduce_mean`..., softmax |
//! | [`layers`] | `tfrt_test.matmul`, pooling, padding, and what changes the shape |
//! | [`cpu`] | `cpu.*`: products and convolutions by packed weights |
//! | [`eigen`] | `eigen.*`: products, convolutions, batch norm, with gradients |
//! | [`training`] | `nn.*`: a loss, steps of weights |
//!
//! Results go to tensors that the program has made, and the chain that a kernel gives says that they are there:
//! at once, or when the queue's workers have made them.

use std::num::NonZeroUsize;

use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};
use tfrt_tensor::math::parallel;
use tfrt_tensor::math::pointwise::{UnaryFunction, unary_into};
use tfrt_tensor::math::pool::{self, Pooling};
use tfrt_tensor::math::window::{Padding, Window};
use tfrt_tensor::{DType, DenseHostTensor, Element, Tensor, TensorShape};

mod cpu;
mod eigen;
mod elements;
mod layers;
mod reduction;
mod training;

pub(super) use cpu::register as register_cpu;
pub(super) use eigen::register as register_eigen;
pub(super) use layers::register_synchronous;
pub(super) use training::register as register_training;

/// Adds the kernels of `tfrt_test`.
pub(super) fn register(registry: &mut KernelRegistry) {
    elements::register(registry);
    reduction::register(registry);
    layers::register(registry);
}

/// The result of a kernel that writes a tensor: a chain, available or pending.
type WriteResult = Result<AsyncValue<Chain>, Error>;

/// Lays windows over the inner dimensions of an image.
fn windows(extents: [usize; 2], strides: [usize; 2], padding: Padding) -> [Window; 2] {
    [0, 1].map(|index| Window::new(extents[index], strides[index], padding))
}

/// Reads two numbers of an attribute.
fn two<T: Copy + TryInto<usize> + std::fmt::Display>(
    kernel: &str,
    name: &str,
    list: &[T],
) -> Result<[usize; 2], Error> {
    let [a, b] = list else {
        let found = list.len();
        let message = format!("{kernel} expects {name} to have 2 elements, found {found}");
        return Err(Error::invalid_argument(message));
    };
    let read = |number: T| {
        number.try_into().map_err(|_| {
            let message = format!("{kernel} expects {name} of 0 or more, found {number}");
            Error::invalid_argument(message)
        })
    };
    Ok([read(*a)?, read(*b)?])
}

/// Reads the name of a padding, in capitals or not.
fn padding(kernel: &str, name: &str) -> Result<Padding, Error> {
    match name {
        name if name.eq_ignore_ascii_case("same") => Ok(Padding::Same),
        name if name.eq_ignore_ascii_case("valid") => Ok(Padding::Valid),
        _ => {
            let name = name.escape_debug();
            let message = format!("{kernel} padding '{name}' is not recognized");
            Err(Error::invalid_argument(message).with_note("paddings are 'same' and 'valid'"))
        }
    }
}

/// Takes the largest element of each window.
///
/// # Shapes
///
/// `input: [n, h, w, c]`, `output: [n, oh, ow, c]`.
fn max_pool(
    execution: &ExecutionContext,
    input: &DenseHostTensor,
    output: &DenseHostTensor,
    windows: [Window; 2],
) -> WriteResult {
    if input.shape().rank() != 4 {
        return Err(not_images("MaxPool2D", input.shape()));
    }
    let wanted = pool::output_extents(&input.shape().to_dims(), &windows)?;
    let (wanted, found) = (TensorShape::new(&wanted)?, output.shape());
    if wanted != *found {
        let message = format!(
            "MaxPool2D output shape {found} does not match the expected output shape {wanted}"
        );
        return Err(Error::invalid_argument(message));
    }
    input.metadata().expect_dtype(DType::F32)?;
    pool::pool_into(execution, Pooling::Maximum, input, &windows, output)
}

/// Puts zeros around the images of a tensor.
///
/// # Shapes
///
/// `input: [n, h, w, c]`, `output: [n, h + 2 rows, w + 2 columns, c]`.
fn pad_with_zeros<T: Element>(
    execution: &ExecutionContext,
    input: &DenseHostTensor,
    output: &DenseHostTensor,
    [rows, columns]: [usize; 2],
) -> WriteResult {
    let (&[n, h, w, c], own) = (&input.shape().to_dims()[..], output.shape()) else {
        return Err(not_images("ZeroPadding", input.shape()));
    };
    let padded = |extent: usize, around: usize| around.checked_mul(2)?.checked_add(extent);
    let wanted = padded(h, rows).zip(padded(w, columns));
    let wanted = wanted
        .map(|(h, w)| TensorShape::new(&[n, h, w, c]))
        .transpose()?;
    if wanted.as_ref() != Some(own) {
        return Err(Error::invalid_argument(format!(
            "ZeroPadding output shape {own} does not match the padded input shape, which is that of {} with \
             {rows} rows and {columns} columns on each side",
            input.shape()
        )));
    }
    input.metadata().expect_dtype(T::DTYPE)?;
    let input = input.clone();
    let (row, image) = ((w + 2 * columns) * c, h + 2 * rows);
    let chunk = parallel::chunk_len(1, row);
    parallel::fill(execution, output, chunk, move |first, part: &mut [T]| {
        let reading = input.read()?;
        let elements = reading.elements::<T>()?;
        for (index, part) in part.chunks_exact_mut(row.max(1)).enumerate() {
            let number = first / row + index;
            let (number, y) = (number / image, number % image);
            part.fill(T::ZERO);
            if let Some(y) = y.checked_sub(rows).filter(|y| *y < h) {
                let from = &elements[(number * h + y) * w * c..][..w * c];
                part[columns * c..][..w * c].copy_from_slice(from);
            }
        }
        Ok(())
    })
}

fn not_images(kernel: &str, found: &TensorShape) -> Error {
    Error::invalid_argument(format!(
        "{kernel} expects images of shape [batch, height, width, channels], found {found}"
    ))
}

/// Copies elements of a type to a tensor of another shape.
fn copy_elements(
    execution: &ExecutionContext,
    dtype: DType,
    input: &DenseHostTensor,
    output: &DenseHostTensor,
) -> WriteResult {
    let seen = input.reshape(output.shape().clone())?;
    seen.metadata().expect_dtype(dtype)?;
    unary_into(execution, UnaryFunction::Identity, &seen, output)
}

/// Returns the dense tensors that are two tensors.
fn both<'t>(a: &'t Tensor, b: &'t Tensor) -> Result<[&'t DenseHostTensor; 2], Error> {
    Ok([a.as_dense()?, b.as_dense()?])
}

/// The chunk size of loops that are not worth cutting, or can't be cut.
const WHOLE: NonZeroUsize = NonZeroUsize::MAX;
