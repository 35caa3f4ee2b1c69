//! Elements written where a tensor of positions names.

use tfrt_host::{AsyncValue, Chain, Error};
use tfrt_tensor::DenseHostTensor;
use tfrt_tensor::math::elementwise::{Add, Maximum, Minimum, Multiply};
use tfrt_tensor::math::movement::{Replace, scatter_elements_into, scatter_nd_into};

use super::carried::{Carried, with_word};
use super::dispatch::with_real;
use super::{Node, Operations, Outputs};

pub(super) const OPERATIONS: &Operations = &[
    ("Scatter", scatter_elements),
    ("ScatterElements", scatter_elements),
    ("ScatterND", scatter_nd),
];

/// What becomes of an element and its update.
#[derive(Clone, Copy)]
enum Reduction {
    Add,
    Multiply,
    Greatest,
    Least,
}

fn reduction(node: &Node<'_>) -> Result<Option<Reduction>, Error> {
    match node.attributes.string_or("reduction", "none")? {
        "none" => Ok(None),
        "add" => Ok(Some(Reduction::Add)),
        "mul" => Ok(Some(Reduction::Multiply)),
        "max" => Ok(Some(Reduction::Greatest)),
        "min" => Ok(Some(Reduction::Least)),
        other => {
            let message =
                format_args!("is expected to be none, add, mul, max or min, found '{other}'");
            Err(node.attributes.error("reduction", message))
        }
    }
}

/// Calls a function of a reduction, an element type and one of positions: `reduced!(node, scatter_nd_into(x, ..))`.
macro_rules! reduced {
    ($node:expr, $reduction:expr, $x:expr, |$F:ident, $T:ident| $body:expr) => {
        with_real!($x.dtype(), $T => match $reduction {
            Reduction::Add => { type $F = Add; $body }
            Reduction::Multiply => { type $F = Multiply; $body }
            Reduction::Greatest => { type $F = Maximum; $body }
            Reduction::Least => { type $F = Minimum; $body }
        }, else return Err($node.inputs.unsupported(0, $x.dtype())))
    };
}

/// `ScatterElements(x, positions, updates)`, attributes `axis`, `reduction`.
fn scatter_elements(node: &Node<'_>) -> Result<Outputs, Error> {
    let positions = node.positions(1)?;
    let rank = node.inputs.tensor(0)?.metadata().shape.rank();
    let axis = node.axis(node.attributes.integer_or("axis", 0)?, rank)?;
    let Some(reduction) = reduction(node)? else {
        return replaced(node, |x, updates, out| {
            with_word!(x.dtype(), T => scatter_elements_into::<Replace, T, i64>(
                node.execution, x, axis, &positions, updates, out,
            ))
        });
    };
    let (x, updates) = (node.inputs.dense(0)?, node.inputs.dense(2)?);
    let out = node.output(x.dtype(), &x.shape().to_dims())?;
    let chain = reduced!(node, reduction, x, |F, T| {
        scatter_elements_into::<F, T, i64>(node.execution, x, axis, &positions, updates, &out)
    })?;
    Ok(Outputs::later(out, chain))
}

/// `ScatterND(x, positions, updates)`, attribute `reduction`.
fn scatter_nd(node: &Node<'_>) -> Result<Outputs, Error> {
    let positions = node.positions(1)?;
    let Some(reduction) = reduction(node)? else {
        return replaced(node, |x, updates, out| {
            with_word!(x.dtype(), T => scatter_nd_into::<Replace, T, i64>(
                node.execution, x, &positions, updates, out,
            ))
        });
    };
    let (x, updates) = (node.inputs.dense(0)?, node.inputs.dense(2)?);
    let out = node.output(x.dtype(), &x.shape().to_dims())?;
    let chain = reduced!(node, reduction, x, |F, T| {
        scatter_nd_into::<F, T, i64>(node.execution, x, &positions, updates, &out)
    })?;
    Ok(Outputs::later(out, chain))
}

/// Elements of any type are replaced.
fn replaced(
    node: &Node<'_>,
    scatter: impl FnOnce(
        &DenseHostTensor,
        &DenseHostTensor,
        &DenseHostTensor,
    ) -> Result<AsyncValue<Chain>, Error>,
) -> Result<Outputs, Error> {
    let (x, updates) = (node.inputs.tensor(0)?, node.inputs.tensor(2)?);
    let carried = Carried::new(node, &[x, updates])?;
    let out = carried.output(node, &x.metadata().shape.to_dims())?;
    let [x, updates] = &carried.words[..] else {
        unreachable!("there are as many words as tensors");
    };
    let chain = scatter(x, updates, &out)?;
    carried.outputs(out, chain)
}
