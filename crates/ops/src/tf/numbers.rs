//! Rows on numbers: ranges, losses, products of vectors, inverses of matrices, and checks.

use tfrt_bef::DType;

use super::{dims_text, text};
use crate::def::{AttrDef, AttrKind, Cost, OpDef, ValueDef};
use crate::dim::{Dim, Dims};
use crate::infer::{Infer, InferCall, InferError};

const X: ValueDef = ValueDef::var("x", "T");
const INDEX: &[DType] = &[DType::I32, DType::I64];

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("tf.CheckNumerics", "Its operand, whose elements are numbers and finite; if not, an error with the `message`.")
        .inputs(&[X])
        .attrs(&[AttrDef::new("message", AttrKind::Text).required()]),
    OpDef::new("tf.Cholesky", "The lower triangle whose product with its transpose is the matrix, of symmetric positive definite ones, of which the lower triangle alone is read; no numbers of others.")
        .inputs(&[X])
        .infer(Infer::By(square)),
    OpDef::new("tf.Cross", "The products of vectors of three elements that are at right angles to both.")
        .inputs(&[X, ValueDef::var("y", "T")])
        .results(&[ValueDef::var("z", "T")])
        .infer(Infer::By(cross)),
    OpDef::new("tf.L2Loss", "Half the sum of the squares of all elements.")
        .inputs(&[X])
        .infer(Infer::By(loss)),
    OpDef::new("tf.LRN", "Each element of images `[n, h, w, c]`, divided by (`bias` + `alpha` * the sum of squares of the channels up to `depth_radius` away) to the power of `beta`.")
        .inputs(&[X])
        .attrs(&[
            AttrDef::int("depth_radius", 5),
            AttrDef::float("bias", 1.0),
            AttrDef::float("alpha", 1.0),
            AttrDef::float("beta", 0.5),
        ])
        .infer(Infer::By(normalised))
        .cost(Cost::PerElement(32)),
    OpDef::new("tf.LinSpace", "`num` numbers at even distances, the first and the last of them given.")
        .inputs(&[ValueDef::var("start", "T"), ValueDef::var("stop", "T"), ValueDef::set("num", INDEX)])
        .results(&[ValueDef::var("y", "T").by_values()])
        .infer(Infer::By(spaced)),
    OpDef::new("tf.MatrixInverse", "The inverse of each matrix, or of its transpose (`adjoint`).")
        .inputs(&[X])
        .attrs(&[AttrDef::int("adjoint", 0)])
        .infer(Infer::By(square)),
];

fn square(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0).clone();
    if let Some(dims) = &x.dims {
        let is_square = match &dims[..] {
            [.., rows, columns] => match (rows.value(), columns.value()) {
                (Some(rows), Some(columns)) => rows == columns,
                _ => true,
            },
            _ => false,
        };
        if !is_square {
            return Err(call.error(format_args!(
                "expected square matrices, found {}",
                dims_text(dims)
            )));
        }
    }
    call.give(0, x.dtype, x.dims);
    Ok(())
}

fn cross(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let (x, y) = (call.input(0), call.input(1));
    let both = call.agree(x, y)?;
    if let Some(dims) = &both.dims {
        let is_three = match dims.last() {
            Some(last) => last.value().is_none_or(|last| last == 3),
            None => false,
        };
        if !is_three {
            return Err(call.error(format_args!(
                "expected vectors of three elements, found {}",
                dims_text(dims)
            )));
        }
    }
    call.give(0, both.dtype, both.dims);
    Ok(())
}

fn loss(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dtype = call.input(0).dtype;
    call.give(0, dtype, Some(Dims::new()));
    Ok(())
}

fn normalised(call: &mut InferCall<'_>) -> Result<(), InferError> {
    call.expect_rank(0, 4)?;
    if let Some(radius) = call.attrs.int("depth_radius").filter(|radius| *radius < 0) {
        return Err(call.error(format_args!(
            "expected attribute 'depth_radius' to be 0 or more, found {radius}"
        )));
    }
    let x = call.input(0).clone();
    call.give(0, x.dtype, x.dims);
    Ok(())
}

fn spaced(call: &mut InferCall<'_>) -> Result<(), InferError> {
    for (index, name) in ["start", "stop", "num"].into_iter().enumerate() {
        let own = call.input(index);
        if own.n_elements().value().is_some_and(|n| n != 1) {
            let found = text(own);
            return Err(call.error(format_args!(
                "expected {name} in one element, found {found}"
            )));
        }
    }
    let n = call.input(2).number();
    if let Some(n) = n.filter(|n| *n < 1) {
        return Err(call.error(format_args!("expected a num above 0, found {n}")));
    }
    let dtype = call.input(0).dtype.or(call.input(1).dtype);
    let dims = [n.map_or(Dim::Unknown, Dim::Known)];
    call.give(0, dtype, Some(dims.into_iter().collect()));
    Ok(())
}
