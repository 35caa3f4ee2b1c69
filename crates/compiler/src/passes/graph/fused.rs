//! Fused nodes, `cpu.fused.NAME`, which passes make of several operations, and the meanings of their operands.
//!
//! A node is made with all of its operands, of which those that are not there yet are left out; passes put values in their
//! places, and `graph-prepare` takes those that are constants.

use tfrt_ir::{Attribute, Module, OpId, OpState, Type, ValueId};

use crate::legalize::Context;

use super::rewrite::{Rewrite, list};
use super::{NO_VALUE, node};

/// The node of a convolution of an image whose channels come last.
pub(super) const CONV: &str = "cpu.fused.conv";

/// The node of a convolution of a concatenation, which reads its parts.
pub(super) const CONCAT_CONV: &str = "cpu.fused.joined";

/// The node of a convolution of an image of bytes whose channels come last, with the operands of `QLinearConv`.
pub(super) const QCONV: &str = "cpu.fused.qconv";

/// The node of the sum of two quantised tensors.
pub(super) const QADD: &str = "cpu.fused.qadd";

/// The node of a product by a constant matrix.
pub(super) const MATMUL: &str = "cpu.fused.matmul";

/// The node of a program of pointwise steps.
pub(super) const ELEMENTWISE: &str = "cpu.fused.elementwise";

/// Returns whether kernels of fused nodes exist; without them nothing is fused.
pub(super) fn are_available(context: &Context<'_>) -> bool {
    [CONV, CONCAT_CONV, QCONV, MATMUL, ELEMENTWISE]
        .iter()
        .all(|kernel| {
            let name = kernel.strip_prefix("cpu.").unwrap_or(kernel);
            context.evaluator.prepares(name).is_some()
        })
}

/// The attribute of the epilogue behind the sums, the bias and the residual: the steps of a program of one input,
/// `a0`.
pub(super) const EPILOGUE: &str = "epilogue";

/// The indices of operands of convolutions and products.
pub(super) const WEIGHTS: usize = 1;
pub(super) const BIAS: usize = 2;
/// The index of the residual, which is added to the sums; it has the shape of the result.
pub(super) const ADDED: usize = 3;
/// The indices of scale, shift, mean and variance of a normalisation behind a convolution.
pub(super) const NORM: [usize; 4] = [4, 5, 6, 7];

/// Makes a convolution of an image by a filter, without an epilogue.
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

/// Makes a product by a matrix, `transposed` or not, without an epilogue.
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

/// Makes a convolution of a concatenation of one of an image.
pub(super) fn concat_conv(rewrite: &mut Rewrite<'_>, conv: OpId, images: Vec<ValueId>) -> OpState {
    let own = rewrite.module.op(conv).operands().to_vec();
    let constants = [WEIGHTS, BIAS].into_iter().chain(NORM);
    let constants: Vec<ValueId> = constants.map(|place| rewrite.mapped(own[place])).collect();
    let mut state = OpState::new(CONCAT_CONV)
        .operands(constants)
        .operands(images);
    for name in ["dilations", EPILOGUE, "epsilon", "groups", "strides"] {
        if let Some(value) = rewrite.module.op(conv).attribute(name) {
            state = state.attribute(name, value.clone());
        }
    }
    state
}

/// Returns the product or convolution that makes a value with one user, which an epilogue can be fused with.
pub(super) fn fusable_producer(module: &Module, value: ValueId) -> Option<OpId> {
    let op = module.defining_op(value)?;
    let has_epilogue = [CONV, CONCAT_CONV, MATMUL]
        .iter()
        .any(|name| is(module, op, name));
    (has_epilogue && node::only_user(module, value).is_some()).then_some(op)
}

/// Returns whether a product or convolution has no epilogue yet.
pub(super) fn has_no_epilogue(module: &Module, op: OpId) -> bool {
    let steps = module
        .op(op)
        .attribute(EPILOGUE)
        .and_then(Attribute::as_array);
    steps.is_some_and(<[Attribute]>::is_empty)
}

/// Returns whether a normalisation is fused with a convolution.
pub(super) fn has_norm(module: &Module, conv: OpId) -> bool {
    node::operand(module, conv, NORM[0]).is_some()
}

/// Returns whether an operation is a fused node of this name.
pub(super) fn is(module: &Module, op: OpId, name: &str) -> bool {
    *module.op(op).name() == name
}

/// Appends the placeholder of an operand that is left out.
fn none(rewrite: &mut Rewrite<'_>, like: OpId) -> ValueId {
    rewrite.add(OpState::new(NO_VALUE).result(Type::None), like)
}
