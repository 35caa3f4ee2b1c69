//! Operations that create tensors: of one value, of a range, of ones on a diagonal.

use tfrt_host::{AsyncValue, Chain, Error};
use tfrt_tensor::math::layout_copy::LayoutCopy;
use tfrt_tensor::math::number::Real;
use tfrt_tensor::math::parallel;
use tfrt_tensor::{DType, DenseHostTensor, Element};

use super::dispatch::{with_floating, with_integer, with_real};
use super::movement::sizes;
use super::opaque::{count, extents, reshaped};
use super::{NodeCall, Operations, Outputs};

pub(super) const OPERATIONS: &Operations = &[
    ("fill", constant_of_shape),
    ("onnx.EyeLike", eye_like),
    ("iota", range),
];

/// `ConstantOfShape(shape)`, attribute `value`: all elements equal, 0 of `f32` without it.
fn constant_of_shape(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let shape = sizes(node, &node.inputs.integers(0)?)?;
    let value = match node
        .attributes
        .tensor("value", node.execution.host().allocator())?
    {
        Some(value) => value,
        None => node.tensor_of(&[], &[0.0_f32])?.into(),
    };
    let n_values = count(&extents(&value));
    if n_values != 1 {
        let message = format_args!("is expected to have one element, found {n_values}");
        return Err(node.attributes.error("value", message));
    }
    let value = reshaped(&value, &[])?;
    let mut outputs = Outputs::new();
    outputs.push(node.moved(&value, &LayoutCopy::broadcast(&[], &shape)?)?);
    Ok(outputs)
}

/// `EyeLike(x)`, attributes `dtype`, `k`: ones on a diagonal, zeros elsewhere.
fn eye_like(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.tensor(0)?;
    let shape = extents(x);
    let &[n_rows, n_columns] = &shape[..] else {
        return Err(node.inputs.error(
            0,
            format_args!("is expected to have 2 dimensions, found {shape:?}"),
        ));
    };
    let dtype = node
        .attributes
        .dtype("dtype")?
        .unwrap_or(x.metadata().dtype);
    let diagonal = node.attributes.integer_or("k", 0)?;
    let one = node.constant(dtype, 1.0)?;
    let out = node.zeros(dtype, &shape)?;
    let size = dtype.size_bytes().unwrap_or(1);
    {
        let (one, mut writing) = (one.read()?, out.write()?);
        let bytes = writing.bytes_mut();
        for row in 0..n_rows {
            let column = i128::from(diagonal) + row as i128;
            if let Some(column) = usize::try_from(column)
                .ok()
                .filter(|column| *column < n_columns)
            {
                let start = (row * n_columns + column) * size;
                bytes[start..start + size].copy_from_slice(one.bytes());
            }
        }
    }
    Ok(out.into())
}

/// `Range(start, limit, delta)`: all below the limit, or above it if the steps go down.
fn range(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let [start, limit, delta] = [
        node.inputs.dense(0)?,
        node.inputs.dense(1)?,
        node.inputs.dense(2)?,
    ];
    let dtype = start.dtype();
    for (index, other) in [(1, limit), (2, delta)] {
        if other.dtype() != dtype {
            let message = format_args!(
                "is expected to be of {dtype}, as the start, found {}",
                other.dtype()
            );
            return Err(node.inputs.error(index, message));
        }
    }
    if dtype.is_integer() {
        return whole_range(node, dtype);
    }
    let [start, limit, delta] = [
        node.inputs.number(0)?,
        node.inputs.number(1)?,
        node.inputs.number(2)?,
    ];
    let len = ((limit - start) / delta).ceil();
    // A range whose limit lies the other way is empty, also one without an end there.
    let is_empty = len <= 0.0;
    if delta == 0.0 || !(is_empty || len.is_finite()) {
        let message = format_args!("there is no range from {start} to {limit} in steps of {delta}");
        return Err(node.error(message));
    }
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "what is too large has no memory"
    )]
    let out = node.output(dtype, &[len.max(0.0) as usize])?;
    let chain = with_floating!(dtype, T => {
        fill::<T>(node, &out, move |index| T::from_f64(start + delta * index as f64))?
    }, else return Err(node.inputs.unsupported(0, dtype)));
    Ok(Outputs::later(out, chain))
}

fn whole_range(node: &NodeCall<'_>, dtype: DType) -> Result<Outputs, Error> {
    let [start, limit, delta] = [node.whole(0)?, node.whole(1)?, node.whole(2)?];
    let distance = if delta < 0 {
        start - limit
    } else {
        limit - start
    };
    if delta == 0 {
        return Err(node.inputs.error(2, "is expected to be other than 0"));
    }
    let len = distance
        .max(0)
        .unsigned_abs()
        .div_ceil(delta.unsigned_abs());
    let out = node.output(dtype, &[usize::try_from(len).unwrap_or(usize::MAX)])?;
    let chain = with_integer!(dtype, T => {
        // Between start and limit, which are of the type.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as above")]
        fill::<T>(node, &out, move |index| (start + delta * index as i128) as T)?
    }, else return Err(node.inputs.unsupported(0, dtype)));
    Ok(Outputs::later(out, chain))
}

/// Calculates the elements of a tensor from their positions.
pub(super) fn fill<T: Element>(
    node: &NodeCall<'_>,
    out: &DenseHostTensor,
    element: impl Fn(usize) -> T + Send + Sync + 'static,
) -> Result<AsyncValue<Chain>, Error> {
    parallel::fill::<T>(
        node.execution,
        out,
        parallel::chunk_len(8, 1),
        move |first, part| {
            for (index, out) in part.iter_mut().enumerate() {
                *out = element(first + index);
            }
            Ok(())
        },
    )
}

impl NodeCall<'_> {
    /// Returns the one integer of an operand of any integer type.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is left out, or something else.
    fn whole(&self, index: usize) -> Result<i128, Error> {
        let tensor = self.inputs.dense(index)?;
        let reading = tensor.read()?;
        with_integer!(tensor.dtype(), T => match reading.elements::<T>()? {
            [number] => Ok(i128::from(*number)),
            list => Err(self.inputs.error(index, format_args!("is expected to have one element, found {}", list.len()))),
        }, else Err(self.inputs.unsupported(index, tensor.dtype())))
    }

    /// Makes a scalar of a number, rounded to the type.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there are no numbers of this type.
    pub(super) fn constant(&self, dtype: DType, value: f64) -> Result<DenseHostTensor, Error> {
        if dtype == DType::I1 {
            return self.truth(value != 0.0);
        }
        if dtype.is_small() {
            let one = self.tensor_of(&[], &[u8::from(value != 0.0)])?;
            return super::opaque::retyped(&one, dtype);
        }
        with_real!(dtype, T => self.tensor_of(&[], &[T::from_f64(value)]),
            else Err(self.error(format_args!("there are no numbers of {dtype}"))))
    }
}
