//! The operands of quantised products and convolutions, which kernels of both read: those of `QLinearConv`, by their places.

use tfrt_host::{DType, Error};
use tfrt_tensor::math::conv::ByteEpilogue;

use super::NodeCall;

/// Returns what becomes of the sums of each column, or filter: the scales are the operands 1, 4 and 6, the zero point of the
/// result, and with it the type, is 7, the bias is 8.
///
/// # Errors
///
/// `InvalidArgument` for lists of other lengths or types, and the errors of [`ByteEpilogue::new`].
pub(crate) fn epilogue(node: &NodeCall<'_>, columns: usize) -> Result<ByteEpilogue, Error> {
    let [x_scale, y_scale] = [node.inputs.number(1)?, node.inputs.number(6)?];
    let scales = of_columns(node, 4, columns, node.inputs.numbers(4)?)?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "factors are rounded to `f32`"
    )]
    let factors = scales
        .iter()
        .map(|scale| (x_scale * scale / y_scale) as f32);
    let bias = match node.inputs.has(8) {
        true => of_columns(node, 8, columns, integers(node, 8)?)?,
        false => vec![0; columns],
    };
    let to = (node.inputs.dense(7)?.dtype(), one(node, 7)?);
    ByteEpilogue::new(factors.collect(), bias, to).map_err(|error| node.with_name(&error))
}

/// Returns a list with an element for each column, of a list that may have one for all.
pub(crate) fn of_columns<T: Copy>(
    node: &NodeCall<'_>,
    index: usize,
    columns: usize,
    list: Vec<T>,
) -> Result<Vec<T>, Error> {
    match list[..] {
        [one] => Ok(vec![one; columns]),
        _ if list.len() == columns => Ok(list),
        _ => {
            let found = list.len();
            let message = format_args!(
                "is expected to have an element for each of {columns} columns, found {found}"
            );
            Err(node.inputs.error(index, message))
        }
    }
}

/// Returns the elements of an operand of bytes or `i32`; none if it is left out.
pub(crate) fn integers(node: &NodeCall<'_>, index: usize) -> Result<Vec<i32>, Error> {
    let Some(tensor) = node.inputs.optional_dense(index)? else {
        return Ok(Vec::new());
    };
    let reading = tensor.read()?;
    Ok(match tensor.dtype() {
        DType::Ui8 => reading
            .elements::<u8>()?
            .iter()
            .map(|one| i32::from(*one))
            .collect(),
        DType::I8 => reading
            .elements::<i8>()?
            .iter()
            .map(|one| i32::from(*one))
            .collect(),
        DType::I32 => reading.elements::<i32>()?.to_vec(),
        dtype => return Err(node.inputs.unsupported(index, dtype)),
    })
}

/// Returns the only element of an operand of integers.
pub(crate) fn one(node: &NodeCall<'_>, index: usize) -> Result<i32, Error> {
    only(node, index, &integers(node, index)?)
}

pub(crate) fn only<T: Copy>(node: &NodeCall<'_>, index: usize, list: &[T]) -> Result<T, Error> {
    match *list {
        [one] => Ok(one),
        _ => {
            let message = format_args!("is expected to have one element, found {}", list.len());
            Err(node.inputs.error(index, message))
        }
    }
}
