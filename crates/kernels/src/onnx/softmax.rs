//! Softmax and its relatives, along a dimension.

use tfrt_host::Error;
use tfrt_tensor::math::Family;
use tfrt_tensor::math::layout_copy::LayoutCopy;
use tfrt_tensor::math::number::Real;
use tfrt_tensor::math::softmax::{SoftmaxKind, softmax_into};
use tfrt_tensor::{DenseHostTensor, Dims, Element, TensorShape};

use super::outputs::IntoValue;
use super::{NodeCall, Operations, Outputs, with_floating};

pub(super) const OPERATIONS: &Operations = &[("onnx.Hardmax", hardmax), ("softmax", softmax)];

/// The rows that are normalised: those along `axis`; before version 13 all dimensions from `axis` on, as one.
struct Rows {
    /// The extents of the tensor of rows, which are along the last dimension.
    extents: Dims,
    /// The order in which the input's dimensions are transposed first, and the result's back.
    order: Option<Dims>,
}

impl Rows {
    fn of(node: &NodeCall<'_>, x: &DenseHostTensor) -> Result<Rows, Error> {
        let extents = x.shape().to_dims();
        let rank = extents.len();
        let is_matrix = node.opset < 13;
        let axis = node
            .attributes
            .integer_or("axis", if is_matrix { 1 } else { -1 })?;
        if is_matrix {
            let at_end = usize::try_from(axis).ok() == Some(rank);
            let axis = if at_end { rank } else { node.axis(axis, rank)? };
            let product =
                |extents: &[usize]| extents.iter().try_fold(1, |n: usize, e| n.checked_mul(*e));
            let extents = [product(&extents[..axis]), product(&extents[axis..])];
            let extents: Option<Dims> = extents.into_iter().collect();
            let message = || format!("{}: the extents do not fit any memory", node.name);
            let extents = extents.ok_or_else(|| Error::resource_exhausted(message()))?;
            return Ok(Rows {
                extents,
                order: None,
            });
        }
        if rank == 0 {
            return Ok(Rows {
                extents: Dims::from_elem(1, 1),
                order: None,
            });
        }
        let axis = node.axis(axis, rank)?;
        if axis + 1 == rank {
            return Ok(Rows {
                extents,
                order: None,
            });
        }
        // The dimension is exchanged with the last, which is its own inverse.
        let mut order: Dims = (0..rank).collect();
        order.swap(axis, rank - 1);
        let extents = order.iter().map(|dimension| extents[*dimension]).collect();
        Ok(Rows {
            extents,
            order: Some(order),
        })
    }
}

/// `softmax`: exponentials divided by their sum along `axis`, or the logarithms of that (`log`).
fn softmax(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let kind = match node.attributes.flag("log", false)? {
        true => SoftmaxKind::LogSoftmax,
        false => SoftmaxKind::Softmax,
    };
    let x = node.inputs.dense(0)?;
    let dtype = x.dtype();
    node.inputs.expect(0, Family::Floats)?;
    let rows = Rows::of(node, x)?;
    let out = node.output(dtype, &x.shape().to_dims())?;
    let shape = TensorShape::new(&rows.extents)?;
    let Some(order) = rows.order else {
        let (x, seen) = (x.reshape(shape.clone())?, out.reshape(shape)?);
        let chain = softmax_into(node.execution, kind, &x, &seen)?;
        return Ok(Outputs::later(out, chain));
    };
    let turned = node.output(dtype, &rows.extents)?;
    let there = LayoutCopy::transpose(&x.shape().to_dims(), &order)?;
    let back = LayoutCopy::transpose(&rows.extents, &order)?;
    let chain = there.run_into(node.execution, x, &turned)?;
    let (result, execution) = (node.output(dtype, &rows.extents)?, node.execution.clone());
    let (rows, execution_back) = (result.clone(), execution.clone());
    let chain =
        chain.and_then_value(move |_| softmax_into(&execution, kind, &turned, &rows).into_value());
    let written = out.clone();
    let chain = chain.and_then_value(move |_| {
        back.run_into(&execution_back, &result, &written)
            .into_value()
    });
    Ok(Outputs::later(out, chain))
}

/// `Hardmax`: 1 where the largest element of a row is first found, else 0
fn hardmax(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let dtype = x.dtype();
    with_floating!(dtype, T => {
        let rows = Rows::of(node, x)?;
        let reading = x.read()?;
        let (extents, row) = (x.shape().to_dims(), *rows.extents.last().unwrap_or(&1));
        let mut out = vec![T::ZERO; x.n_elements()];
        let turned = TensorShape::new(&extents)?.strides();
        let stride = match &rows.order {
            // The last of the exchanged dimensions is the one that rows are along.
            Some(order) => turned[*order.last().unwrap_or(&0)],
            None => 1,
        };
        let elements = reading.elements::<T>()?;
        for first in 0..elements.len() {
            if row == 0 || (first / stride) % row != 0 {
                continue;
            }
            let mut best = first;
            for index in (first..).step_by(stride).take(row) {
                if elements[best].less(elements[index]) {
                    best = index;
                }
            }
            out[best] = <T as tfrt_tensor::math::number::Number>::ONE;
        }
        Ok(node.tensor_of(&extents, &out)?.into())
    }, else Err(node.inputs.unsupported(0, dtype)))
}
