//! Functions of the elements of short tensors, at once, on the calling thread.
//!
//! For a few elements it matters what is done around the loop: nothing here is counted, shared or put on a list.

use std::sync::Arc;

use tfrt_host::{Error, HostAllocator};

use super::{Binary, Unary, unary_slice_in_place};
use crate::element::collected;
use crate::math::vectorized;
use crate::{DenseHostTensor, Element};

/// Tensors of more elements are worth cutting.
pub const SHORT: usize = 1 << 12;

/// For so few elements the choice of an instruction set takes longer than what it saves.
const FEW: usize = 16;

/// How two tensors are walked through that need no broadcasting by dimensions.
enum Walk {
    /// Each element with the other's at the same place.
    Pairs,
    /// Each element of the first with the only one of the second.
    WithOne,
    /// The only element of the first with each of the second.
    OfOne,
}

impl Walk {
    /// `None` if there is more to it, or if there are too many elements.
    #[inline(always)]
    fn of<T>(x: &DenseHostTensor, y: &DenseHostTensor) -> Option<Walk> {
        let n = |tensor: &DenseHostTensor| tensor.buffer().len_bytes() / size_of::<T>();
        let (n_x, n_y) = (n(x), n(y));
        if n_x.max(n_y) > SHORT {
            None
        } else if x.shape() == y.shape() {
            Some(Walk::Pairs)
        } else if n_y == 1 && y.shape().rank() <= x.shape().rank() {
            Some(Walk::WithOne)
        } else if n_x == 1 && x.shape().rank() <= y.shape().rank() {
            Some(Walk::OfOne)
        } else {
            None
        }
    }
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
    let Some(walk) = Walk::of::<T>(x, y) else {
        return Ok(None);
    };
    let (x_reading, y_reading) = (x.read()?, y.read()?);
    let (xs, ys) = (x_reading.elements::<T>()?, y_reading.elements::<T>()?);
    let like = match walk {
        Walk::Pairs | Walk::WithOne => x,
        Walk::OfOne => y,
    };
    let out = like.uninit_like::<T, F::Output>(allocator)?;
    let out = match (walk, xs, ys) {
        (Walk::WithOne, xs, [y]) => {
            collected(out, xs.iter().map(|x| F::apply(*x, *y)), xs.len() > FEW)
        }
        (Walk::OfOne, [x], ys) => {
            collected(out, ys.iter().map(|y| F::apply(*x, *y)), ys.len() > FEW)
        }
        (_, xs, ys) => {
            let pairs = xs.iter().zip(ys);
            collected(out, pairs.map(|(x, y)| F::apply(*x, *y)), xs.len() > FEW)
        }
    };
    Ok(Some(like.like::<F::Output>(out?)))
}

/// Replaces each element of a short tensor, which nobody else holds, by a function of it and another's: the element at
/// the same place, or the only one. `is_swapped` hands the other's element to the function first. Returns false if this
/// can't be done.
///
/// # Errors
///
/// `InvalidArgument` if the elements are no `T`s, `ResourceExhausted` if there is no memory, `FailedPrecondition` if somebody
/// is writing a tensor that is read.
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
/// A function that takes long (`is_long`) is worth the choice of an instruction set however few the elements are.
///
/// # Errors
///
/// `InvalidArgument` if the elements are no `T`s, `ResourceExhausted` if there is no memory, `FailedPrecondition` if somebody
/// is writing a tensor that is read.
#[inline]
pub fn unary_short<F: Unary<T>, T: Element>(
    allocator: &Arc<dyn HostAllocator>,
    x: &DenseHostTensor,
    is_long: bool,
) -> Result<Option<DenseHostTensor>, Error> {
    if x.buffer().len_bytes() / size_of::<T>() > SHORT {
        return Ok(None);
    }
    let reading = x.read()?;
    let xs = reading.elements::<T>()?;
    let out = x.uninit_like::<T, F::Output>(allocator)?;
    let is_vectorized = is_long || xs.len() > FEW;
    let out = collected(out, xs.iter().map(|x| F::apply(*x)), is_vectorized);
    Ok(Some(x.like::<F::Output>(out?)))
}

/// Replaces each element of a short tensor, which nobody else holds, by a function of it. Returns false if it is not
/// short, or somebody else holds it.
///
/// # Errors
///
/// `InvalidArgument` if the elements are no `T`s, `ResourceExhausted` if there is no memory, `FailedPrecondition` if somebody
/// is writing a tensor that is read.
#[inline]
pub fn unary_short_in_place<F: Unary<T, Output = T>, T: Element>(
    x: &mut DenseHostTensor,
    is_long: bool,
) -> Result<bool, Error> {
    if x.n_elements() > SHORT {
        return Ok(false);
    }
    match x.elements_mut::<T>()? {
        Some(x) if is_long || x.len() > FEW => {
            unary_slice_in_place::<F, T>(x);
            Ok(true)
        }
        Some(x) => {
            x.iter_mut().for_each(|x| *x = F::apply(*x));
            Ok(true)
        }
        None => Ok(false),
    }
}
