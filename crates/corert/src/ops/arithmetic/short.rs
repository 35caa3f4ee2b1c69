//! The short ways: functions of a few elements of the usual types, at once, without a look at anything else.

use std::sync::Arc;

use tfrt_host::{DType, Error, HostAllocator};
use tfrt_tensor::math::elementwise::{
    Binary, Unary, binary_short, binary_short_in_place, unary_short, unary_short_in_place,
};
use tfrt_tensor::{Bool, DenseHostTensor, Element};

use crate::inputs::{Inputs, One, Two};

/// What a short way gives.
type Short = Result<Option<DenseHostTensor>, Error>;

/// `usual!(dtype, T => body)` does something for the Rust type of one of the usual types, and nothing for others.
macro_rules! usual {
    ($dtype:expr, $T:ident => $body:expr; $($variant:ident $type:ty)*) => {
        match $dtype {
            $(Some(DType::$variant) => {
                type $T = $type;
                $body
            })*
            _ => Ok(None),
        }
    };
    ($dtype:expr, $T:ident => $body:expr) => {
        usual!($dtype, $T => $body; F32 f32 F64 f64 I32 i32 I64 i64)
    };
}

/// A function of two elements, in the memory of one of the operands if it was given for good.
pub(super) fn binary<F>(inputs: &mut Inputs<'_>, allocator: &Arc<dyn HostAllocator>) -> Short
where
    F: Binary<f32, Output = f32>
        + Binary<f64, Output = f64>
        + Binary<i32, Output = i32>
        + Binary<i64, Output = i64>,
{
    let Some(two) = inputs.two() else {
        return Ok(None);
    };
    usual!(first_dtype(&two), T => binary_of::<F, T>(two, allocator))
}

/// Whether something is true of two elements.
pub(super) fn comparison<F>(inputs: &mut Inputs<'_>, allocator: &Arc<dyn HostAllocator>) -> Short
where
    F: Binary<f32, Output = Bool>
        + Binary<f64, Output = Bool>
        + Binary<i32, Output = Bool>
        + Binary<i64, Output = Bool>,
{
    let (x, y) = match inputs.two() {
        Some(Two::Lent(x, y)) => (x, y),
        Some(Two::Owned(x, y)) => match (x.as_dense(), y.as_dense()) {
            (Some(x), Some(y)) => (x, y),
            _ => return Ok(None),
        },
        None => return Ok(None),
    };
    if x.dtype() != y.dtype() {
        return Ok(None);
    }
    usual!(Some(x.dtype()), T => binary_short::<F, T>(allocator, x, y))
}

/// A function of an element, in the memory of the operand if it was given for good.
pub(super) fn unary<F>(inputs: &mut Inputs<'_>, allocator: &Arc<dyn HostAllocator>) -> Short
where
    F: Unary<f32, Output = f32>
        + Unary<f64, Output = f64>
        + Unary<i32, Output = i32>
        + Unary<i64, Output = i64>,
{
    match inputs.one() {
        Some(one) => usual!(one.dtype(), T => unary_of::<F, T>(one, allocator)),
        None => Ok(None),
    }
}

/// The same of a float.
pub(super) fn float<F>(inputs: &mut Inputs<'_>, allocator: &Arc<dyn HostAllocator>) -> Short
where
    F: Unary<f32, Output = f32> + Unary<f64, Output = f64>,
{
    match inputs.one() {
        Some(one) => usual!(one.dtype(), T => unary_of::<F, T>(one, allocator); F32 f32 F64 f64),
        None => Ok(None),
    }
}

#[inline]
fn first_dtype(two: &Two<'_>) -> Option<DType> {
    match two {
        Two::Lent(x, _) => Some(x.dtype()),
        Two::Owned(x, _) => Some(x.as_dense()?.dtype()),
    }
}

#[inline]
fn binary_of<F: Binary<T, Output = T>, T: Element>(
    two: Two<'_>,
    allocator: &Arc<dyn HostAllocator>,
) -> Short {
    let (x, y) = match two {
        Two::Lent(x, y) => (x, y),
        Two::Owned(x_handle, y_handle) => {
            let (Some(x), Some(y)) = (x_handle.as_dense_mut(), y_handle.as_dense_mut()) else {
                return Ok(None);
            };
            if x.dtype() != y.dtype() {
                return Ok(None);
            }
            if binary_short_in_place::<F, T>(x, y, false)? {
                return Ok(x_handle.take_dense());
            }
            if binary_short_in_place::<F, T>(y, x, true)? {
                return Ok(y_handle.take_dense());
            }
            (&*x, &*y)
        }
    };
    match x.dtype() == y.dtype() {
        true => binary_short::<F, T>(allocator, x, y),
        false => Ok(None),
    }
}

#[inline]
fn unary_of<F: Unary<T, Output = T>, T: Element>(
    one: One<'_>,
    allocator: &Arc<dyn HostAllocator>,
) -> Short {
    match one {
        One::Lent(x) => unary_short::<F, T>(allocator, x),
        One::Owned(handle) => {
            let Some(x) = handle.as_dense_mut() else {
                return Ok(None);
            };
            match unary_short_in_place::<F, T>(x)? {
                true => Ok(handle.take_dense()),
                false => unary_short::<F, T>(allocator, x),
            }
        }
    }
}
