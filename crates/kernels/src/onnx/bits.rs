//! Bits: shifted, and seen as other numbers.

use tfrt_host::Error;
use tfrt_tensor::compact::CompactType;
use tfrt_tensor::math::elementwise::{Binary, binary_into, broadcast_extents};
use tfrt_tensor::{DType, Element};

use super::carried::retyped;
use super::{Node, Operations, Outputs};

pub(super) const OPERATIONS: &Operations = &[("BitCast", bit_cast), ("BitShift", bit_shift)];

/// `BitCast(x)`, attribute `to`: the same bits as another type of the same size. Nothing is copied.
fn bit_cast(node: &Node<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let to = node
        .dtype("to")?
        .ok_or_else(|| node.attributes.missing("to"))?;
    let n_bits = |dtype: DType| match CompactType::of_dtype(dtype) {
        Some(small) => Some(small.n_bits()),
        None => dtype.size_bytes().map(|n_bytes| n_bytes * 8),
    };
    if n_bits(to).is_none() || n_bits(to) != n_bits(x.dtype()) {
        let from = x.dtype();
        return Err(node.error(format_args!(
            "elements of {from} and of {to} have not as many bits"
        )));
    }
    Ok(retyped(x, to)?.into())
}

/// Bits shifted up; by as many as there are, or more, 0.
struct Left;
/// Bits shifted down; by as many as there are, or more, 0.
struct Right;

/// `shifts!(u8)` implements [`Binary`] for both shifts.
macro_rules! shifts {
    ($($type:ty)*) => {$(
        impl Binary<$type> for Left {
            type Output = $type;
            const COST: usize = 1;

            #[inline(always)]
            fn apply(x: $type, y: $type) -> $type {
                u32::try_from(y).ok().and_then(|y| x.checked_shl(y)).unwrap_or(0)
            }
        }

        impl Binary<$type> for Right {
            type Output = $type;
            const COST: usize = 1;

            #[inline(always)]
            fn apply(x: $type, y: $type) -> $type {
                u32::try_from(y).ok().and_then(|y| x.checked_shr(y)).unwrap_or(0)
            }
        }
    )*};
}

shifts!(u8 u16 u32 u64);

/// `BitShift(x, y)`, attribute `direction`.
fn bit_shift(node: &Node<'_>) -> Result<Outputs, Error> {
    let dtype = node.inputs.dense(0)?.dtype();
    match node.attributes.string_or("direction", "")? {
        "LEFT" => match dtype {
            DType::Ui8 => shifted::<Left, u8>(node),
            DType::Ui16 => shifted::<Left, u16>(node),
            DType::Ui32 => shifted::<Left, u32>(node),
            DType::Ui64 => shifted::<Left, u64>(node),
            other => Err(node.inputs.unsupported(0, other)),
        },
        "RIGHT" => match dtype {
            DType::Ui8 => shifted::<Right, u8>(node),
            DType::Ui16 => shifted::<Right, u16>(node),
            DType::Ui32 => shifted::<Right, u32>(node),
            DType::Ui64 => shifted::<Right, u64>(node),
            other => Err(node.inputs.unsupported(0, other)),
        },
        other => {
            let message = format_args!("is expected to be LEFT or RIGHT, found '{other}'");
            Err(node.attributes.error("direction", message))
        }
    }
}

fn shifted<F: Binary<T, Output = T>, T: Element>(node: &Node<'_>) -> Result<Outputs, Error> {
    let (x, y) = (node.inputs.dense(0)?, node.inputs.dense(1)?);
    let shape = broadcast_extents(&[&x.shape().to_dims(), &y.shape().to_dims()])
        .map_err(|error| node.told(&error))?;
    let out = node.output(x.dtype(), &shape)?;
    let chain = binary_into::<F, T>(node.execution, x, y, &out)?;
    Ok(Outputs::later(out, chain))
}
