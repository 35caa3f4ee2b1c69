//! The short ways: functions of a few elements of the usual types, at once, without a look at anything else.

use std::sync::Arc;

use tfrt_host::{DType, HostAllocator};
use tfrt_tensor::math::elementwise::{
    Binary, Unary, binary_short, binary_short_in_place, unary_short, unary_short_in_place,
};
use tfrt_tensor::{Bool, DenseHostTensor, Element};

use crate::TensorHandle;
use crate::handle::Home;
use crate::inputs::{Inputs, One, Two};
use crate::op::Short;

/// `usual!(dtype, T => body)` does something for the Rust type of one of the usual types, and nothing for others.
macro_rules! usual {
    ($dtype:expr, $T:ident => $body:expr; $($variant:ident $type:ty)*) => {
        match $dtype {
            $(Some(DType::$variant) => {
                type $T = $type;
                $body
            })*
            _ => Err(None),
        }
    };
    ($dtype:expr, $T:ident => $body:expr) => {
        usual!($dtype, $T => $body; F32 f32 F64 f64 I32 i32 I64 i64)
    };
}

/// A function of two elements, in the memory of one of the operands if it was given for good.
pub(super) fn binary<F>(
    inputs: &mut Inputs<'_>,
    allocator: &Arc<dyn HostAllocator>,
    home: Home,
) -> Short
where
    F: Binary<f32, Output = f32>
        + Binary<f64, Output = f64>
        + Binary<i32, Output = i32>
        + Binary<i64, Output = i64>,
{
    let Some(two) = inputs.two() else {
        return Err(None);
    };
    usual!(first_dtype(&two), T => binary_of::<F, T>(two, allocator, home))
}

/// Whether something is true of two elements.
pub(super) fn comparison<F>(
    inputs: &mut Inputs<'_>,
    allocator: &Arc<dyn HostAllocator>,
    home: Home,
) -> Short
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
            _ => return Err(None),
        },
        None => return Err(None),
    };
    if x.dtype() != y.dtype() {
        return Err(None);
    }
    usual!(Some(x.dtype()), T => result(binary_short::<F, T>(allocator, x, y)?, home))
}

/// A function of an element, in the memory of the operand if it was given for good.
pub(super) fn unary<F>(
    inputs: &mut Inputs<'_>,
    allocator: &Arc<dyn HostAllocator>,
    home: Home,
) -> Short
where
    F: Unary<f32, Output = f32>
        + Unary<f64, Output = f64>
        + Unary<i32, Output = i32>
        + Unary<i64, Output = i64>,
{
    match inputs.one() {
        Some(one) => usual!(one.dtype(), T => unary_of::<F, T>(one, allocator, home, false)),
        None => Err(None),
    }
}

/// A function of a float, which takes long: as [`unary`].
pub(super) fn float<F>(
    inputs: &mut Inputs<'_>,
    allocator: &Arc<dyn HostAllocator>,
    home: Home,
) -> Short
where
    F: Unary<f32, Output = f32> + Unary<f64, Output = f64>,
{
    match inputs.one() {
        Some(one) => {
            usual!(one.dtype(), T => unary_of::<F, T>(one, allocator, home, true); F32 f32 F64 f64)
        }
        None => Err(None),
    }
}

/// The result, if the tensors were such that there is one.
#[inline(always)]
fn result(tensor: Option<DenseHostTensor>, home: Home) -> Short {
    match tensor {
        Some(tensor) => Ok(TensorHandle::of_tensor(home, tensor.into())),
        None => Err(None),
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
    home: Home,
) -> Short {
    let (x, y) = match two {
        Two::Lent(x, y) => (x, y),
        Two::Owned(x_handle, y_handle) => {
            let (Some(x), Some(y)) = (x_handle.as_dense_mut(), y_handle.as_dense_mut()) else {
                return Err(None);
            };
            if x.dtype() != y.dtype() {
                return Err(None);
            }
            if binary_short_in_place::<F, T>(x, y, false)? {
                return result(x_handle.take_dense(), home);
            }
            if binary_short_in_place::<F, T>(y, x, true)? {
                return result(y_handle.take_dense(), home);
            }
            (&*x, &*y)
        }
    };
    match x.dtype() == y.dtype() {
        true => result(binary_short::<F, T>(allocator, x, y)?, home),
        false => Err(None),
    }
}

#[inline]
fn unary_of<F: Unary<T, Output = T>, T: Element>(
    one: One<'_>,
    allocator: &Arc<dyn HostAllocator>,
    home: Home,
    is_long: bool,
) -> Short {
    match one {
        One::Lent(x) => result(unary_short::<F, T>(allocator, x, is_long)?, home),
        One::Owned(handle) => {
            let Some(x) = handle.as_dense_mut() else {
                return Err(None);
            };
            match unary_short_in_place::<F, T>(x, is_long)? {
                true => result(handle.take_dense(), home),
                false => result(unary_short::<F, T>(allocator, x, is_long)?, home),
            }
        }
    }
}
