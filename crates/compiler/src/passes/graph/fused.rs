//! Nodes that passes make of several operations, `cpu.fused.NAME`, and what each of their operands is.
//!
//! A node is made with all of its operands, of which those that are not there yet are left out; passes put values in their
//! places, and `graph-prepare` takes those that are constants.

use tfrt_ir::{Attribute, Module, OpId, OpState, Type, ValueId};

use crate::legalize::Context;

use super::rewrite::{Rewrite, list};
use super::{NO_VALUE, node};

/// A convolution of an image whose channels come last.
pub(super) const CONV: &str = "cpu.fused.conv";

/// A convolution of images that are joined.
pub(super) const JOINED: &str = "cpu.fused.joined";

/// A product by a matrix.
pub(super) const MATMUL: &str = "cpu.fused.matmul";

/// A program of pointwise steps.
pub(super) const ELEMENTWISE: &str = "cpu.fused.elementwise";

/// Returns whether there are the kernels of these nodes: nothing is fused for who has none.
pub(super) fn are_there(context: &Context<'_>) -> bool {
    [CONV, JOINED, MATMUL, ELEMENTWISE].iter().all(|kernel| {
        let name = kernel.strip_prefix("cpu.").unwrap_or(kernel);
        context.evaluator.prepares(name).is_some()
    })
}

/// The attribute of what is done with the sums of a product or convolution, with bias and residual: the steps of a program
/// of one input, `a0`.
pub(super) const EPILOGUE: &str = "epilogue";

/// The operands of a convolution and a product, by their places.
pub(super) const WEIGHTS: usize = 1;
pub(super) const BIAS: usize = 2;
/// The operand that is added to the sums of a product or convolution; it has the shape of the result.
pub(super) const ADDED: usize = 3;
/// Scale, shift, mean and variance of a normalisation that follows a convolution.
pub(super) const NORM: [usize; 4] = [4, 5, 6, 7];

/// Returns a convolution of an image by a filter, without anything that follows it.
pub(super) fn conv(
    rewrite: &mut Rewrite<'_>,
    like: OpId,
    [image, filter]: [ValueId; 2],
    bias: Option<ValueId>,
    [dilations, pads, strides]: [&[i64]; 3],
    groups: i64,
) -> OpState {
    let none = none(rewrite, like);
    let bias = bias.unwrap_or(none);
    OpState::new(CONV)
        .operands([image, filter, bias, none, none, none, none, none])
        .attribute("dilations", list(dilations))
        .attribute(EPILOGUE, Attribute::array(Vec::new()))
        .attribute("epsilon", Attribute::f32(0.0))
        .attribute("groups", Attribute::integer(groups, Type::I64))
        .attribute("pads", list(pads))
        .attribute("strides", list(strides))
}

/// Returns a product by a matrix, `transposed` or not, without anything that follows it.
pub(super) fn matmul(
    rewrite: &mut Rewrite<'_>,
    like: OpId,
    [left, right]: [ValueId; 2],
    bias: Option<ValueId>,
    transposed: bool,
) -> OpState {
    let none = none(rewrite, like);
    let transposed = Attribute::integer(i64::from(transposed), Type::I64);
    OpState::new(MATMUL)
        .operands([left, right, bias.unwrap_or(none), none])
        .attribute(EPILOGUE, Attribute::array(Vec::new()))
        .attribute("transposed", transposed)
}

/// Returns a convolution as one of images that are joined.
pub(super) fn joined(rewrite: &mut Rewrite<'_>, conv: OpId, images: Vec<ValueId>) -> OpState {
    let own = rewrite.module.op(conv).operands().to_vec();
    let constants = [WEIGHTS, BIAS].into_iter().chain(NORM);
    let constants: Vec<ValueId> = constants.map(|place| rewrite.now(own[place])).collect();
    let mut state = OpState::new(JOINED).operands(constants).operands(images);
    for name in ["dilations", EPILOGUE, "epsilon", "groups", "strides"] {
        if let Some(value) = rewrite.module.op(conv).attribute(name) {
            state = state.attribute(name, value.clone());
        }
    }
    state
}

/// Returns the node that makes a value for one user alone, if it is a product or convolution, which can do what follows.
pub(super) fn before(module: &Module, value: ValueId) -> Option<OpId> {
    let op = module.defining_op(value)?;
    let has_epilogue = [CONV, JOINED, MATMUL]
        .iter()
        .any(|name| is(module, op, name));
    let mut users = module.users(value);
    (has_epilogue && users.next().is_some() && users.next().is_none()).then_some(op)
}

/// Returns whether nothing is done yet with what a product or convolution gives.
pub(super) fn has_no_epilogue(module: &Module, op: OpId) -> bool {
    let steps = module
        .op(op)
        .attribute(EPILOGUE)
        .and_then(Attribute::as_array);
    steps.is_some_and(<[Attribute]>::is_empty)
}

/// Returns whether a convolution is followed by a normalisation.
pub(super) fn has_norm(module: &Module, conv: OpId) -> bool {
    node::operand(module, conv, NORM[0]).is_some()
}

/// Returns whether an operation is this node.
pub(super) fn is(module: &Module, op: OpId, name: &str) -> bool {
    *module.op(op).name() == name
}

/// Appends what stands for an operand that is left out.
fn none(rewrite: &mut Rewrite<'_>, like: OpId) -> ValueId {
    rewrite.add(OpState::new(NO_VALUE).result(Type::None), like)
}
