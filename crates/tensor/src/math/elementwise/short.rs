//! Functions of the elements of short tensors, at once, on the calling thread.
//!
//! For a few elements it matters what is done around the loop: nothing here is counted, shared or put on a list.

use std::sync::Arc;

use tfrt_host::{Error, HostAllocator};

use super::{Binary, Unary, binary_run, each_pair, unary_slice, unary_slice_in_place};
use crate::math::broadcast::Run;
use crate::math::vectorized;
use crate::{DenseHostTensor, Element};

/// Tensors of more elements are worth cutting.
pub const SHORT: usize = 1 << 12;

/// For so few elements the choice of an instruction set takes longer than what it saves.
const FEW: usize = 16;

/// How two tensors that need no broadcasting by dimensions are walked through, each element by its own, or one for all,
/// and whether the result has the shape of `x`, or else that of `y`. `None` if there is more to it.
#[inline(always)]
fn run_of<T>(x: &DenseHostTensor, y: &DenseHostTensor) -> Option<(Run<2>, bool)> {
    let n = |tensor: &DenseHostTensor| tensor.buffer().len_bytes() / size_of::<T>();
    let (n_x, n_y) = (n(x), n(y));
    let (len, strides, is_of_x) = if x.shape() == y.shape() {
        (n_x, [1, 1], true)
    } else if n_y == 1 && y.shape().rank() <= x.shape().rank() {
        (n_x, [1, 0], true)
    } else if n_x == 1 && x.shape().rank() <= y.shape().rank() {
        (n_y, [0, 1], false)
    } else {
        return None;
    };
    let run = Run {
        len,
        offsets: [0, 0],
        strides,
    };
    (len <= SHORT).then_some((run, is_of_x))
}

/// Calculates a function of each pair of elements of two short tensors, of which one is of the result's shape, and
/// the other of that too, or of one element. `None` if they are not.
///
/// # Errors
///
/// `InvalidArgument` if they are no `T`s, `ResourceExhausted` if there is no memory, `FailedPrecondition` if somebody
/// is writing one of them.
///
/// # Examples
///
/// ```
/// use tfrt_host::{HostContext, kernel::KernelRegistry};
/// use tfrt_tensor::DenseHostTensor;
/// use tfrt_tensor::math::elementwise::{Subtract, binary_short};
///
/// let host = HostContext::builder(KernelRegistry::new()).build();
/// let x = DenseHostTensor::from_slice(host.allocator(), &[2], &[1_i32, 2])?;
/// let y = DenseHostTensor::scalar(host.allocator(), 10_i32)?;
/// let difference = binary_short::<Subtract, i32>(host.allocator(), &y, &x)?.unwrap();
/// assert_eq!(difference.read()?.elements::<i32>()?, [9, 8]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[inline]
pub fn binary_short<F: Binary<T>, T: Element>(
    allocator: &Arc<dyn HostAllocator>,
    x: &DenseHostTensor,
    y: &DenseHostTensor,
) -> Result<Option<DenseHostTensor>, Error> {
    x.metadata().expect_dtype(T::DTYPE)?;
    y.metadata().expect_dtype(T::DTYPE)?;
    let Some((run, is_of_x)) = run_of::<T>(x, y) else {
        return Ok(None);
    };
    let like = if is_of_x { x } else { y };
    let mut out = like.zeroed_like::<T, F::Output>(allocator)?;
    let (x, y) = (x.read()?, y.read()?);
    let (x, y) = (x.elements::<T>()?, y.elements::<T>()?);
    match out.elements_mut::<F::Output>()? {
        Some(out) if run.len > FEW => binary_run::<F, T>(x, y, &run, out),
        Some(out) => each_pair::<F, T>(x, y, run.strides, out),
        None => (),
    }
    Ok(Some(out))
}

/// Replaces each element of a short tensor, which nobody else holds, by a function of it and another's: the element at
/// the same place, or the only one. `is_swapped` hands the other's element to the function first. Returns false if this
/// can't be done.
///
/// # Errors
///
/// As of [`binary_short`].
#[inline]
pub fn binary_short_in_place<F: Binary<T, Output = T>, T: Element>(
    target: &mut DenseHostTensor,
    other: &DenseHostTensor,
    is_swapped: bool,
) -> Result<bool, Error> {
    let n = target.buffer().len_bytes() / size_of::<T>();
    let is_each = target.shape() == other.shape();
    let is_one = || other.n_elements() == 1 && other.shape().rank() <= target.shape().rank();
    if n > SHORT || !(is_each || is_one()) {
        return Ok(false);
    }
    let other = other.read()?;
    let other = other.elements::<T>()?;
    let Some(target) = target.elements_mut::<T>()? else {
        return Ok(false);
    };
    let apply = |x: T, y: T| {
        if is_swapped {
            F::apply(y, x)
        } else {
            F::apply(x, y)
        }
    };
    let each = |target: &mut [T]| match (is_each, other) {
        (false, [y]) => target.iter_mut().for_each(|x| *x = apply(*x, *y)),
        _ => target
            .iter_mut()
            .zip(other)
            .for_each(|(x, y)| *x = apply(*x, *y)),
    };
    match n > FEW {
        true => vectorized(
            #[inline(always)]
            || each(target),
        ),
        false => each(target),
    }
    Ok(true)
}

/// Calculates a function of each element of a short tensor. `None` if it is not short.
///
/// # Errors
///
/// As of [`binary_short`].
#[inline]
pub fn unary_short<F: Unary<T>, T: Element>(
    allocator: &Arc<dyn HostAllocator>,
    x: &DenseHostTensor,
) -> Result<Option<DenseHostTensor>, Error> {
    if x.buffer().len_bytes() / size_of::<T>() > SHORT {
        return Ok(None);
    }
    let mut out = x.zeroed_like::<T, F::Output>(allocator)?;
    let x = x.read()?;
    if let Some(out) = out.elements_mut::<F::Output>()? {
        unary_slice::<F, T>(x.elements()?, out);
    }
    Ok(Some(out))
}

/// Replaces each element of a short tensor, which nobody else holds, by a function of it. Returns false if it is not
/// short, or somebody else holds it.
///
/// # Errors
///
/// As of [`binary_short`].
#[inline]
pub fn unary_short_in_place<F: Unary<T, Output = T>, T: Element>(
    x: &mut DenseHostTensor,
) -> Result<bool, Error> {
    if x.n_elements() > SHORT {
        return Ok(false);
    }
    match x.elements_mut::<T>()? {
        Some(x) => {
            unary_slice_in_place::<F, T>(x);
            Ok(true)
        }
        None => Ok(false),
    }
}
