//! `nn`: operations that training needs beside the original's kernels. The original has none of
//! this name.

use super::kernel;
use super::tfrt_dht::{TENSOR, takes_memory, used_by_others, wrong_type};
use super::tfrt_test::networks::{factors, product_errors};
use crate::dialect::{
    AttributeKind, OpDef,
    ValueKind::{Chain, F32, I1},
};

const INVALID: &str = "InvalidArgument";

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        product_errors(
            factors(kernel("nn.matmul.f32"), F32)
                .operand("chain", Chain)
                .result("done", Chain)
                .asynchronous(),
        )
        .attribute(
            "transpose_a",
            AttributeKind::Typed(I1),
            "whether a's rows and columns are exchanged first",
        )
        .attribute(
            "transpose_b",
            AttributeKind::Typed(I1),
            "whether those of b are",
        ),
        cross_entropy(),
        bias_gradient(),
        momentum(),
    ]
}

fn cross_entropy() -> OpDef {
    let definition = kernel("nn.softmax_cross_entropy.f32")
        .summary("The mean cross entropy of targets and the softmax of logits, and its gradient")
        .details(
            "All of one shape, a row for each example. Targets are probabilities, whose sum in a row is 1; then \
             the gradient is (softmax - targets) / rows.",
        )
        .operand("logits", TENSOR)
        .operand("targets", TENSOR)
        .operand("gradient", TENSOR)
        .operand("chain", Chain)
        .result("loss", TENSOR)
        .result("done", Chain)
        .fails(
            INVALID,
            "cross entropy of logits of shape SHAPE with targets of shape SHAPE and a gradient of shape SHAPE: \
             expected one shape, with at least one dimension",
            "the shapes are not that",
        )
        .reads(0)
        .reads(1)
        .writes(2);
    used_by_others(takes_memory(wrong_type(definition)))
}

fn bias_gradient() -> OpDef {
    let definition = kernel("nn.bias_gradient.f32")
        .summary("Adds up over all dimensions but the last")
        .details("From `[.., n]` to `[n]`: the gradient of what was added to each of the last dimension.")
        .operand("gradient", TENSOR)
        .operand("output", TENSOR)
        .operand("chain", Chain)
        .result("done", Chain)
        .asynchronous()
        .fails(
            INVALID,
            "expected a result of shape SHAPE, found SHAPE",
            "the output is of another shape",
        )
        .reads(0)
        .writes(1);
    used_by_others(wrong_type(definition))
}

fn momentum() -> OpDef {
    let number =
        |definition: OpDef, name, help| definition.attribute(name, AttributeKind::Typed(F32), help);
    let definition = kernel("nn.momentum.f32")
        .summary("A step of gradient descent with momentum and decay of weights")
        .details(
            "velocity = momentum velocity + gradient + decay weights; weights -= rate velocity, or by Nesterov's \
             method rate (gradient + decay weights + momentum velocity).",
        )
        .operand("gradient", TENSOR)
        .operand("velocity", TENSOR)
        .operand("weights", TENSOR)
        .operand("rate", F32)
        .operand("chain", Chain)
        .result("done", Chain)
        .asynchronous();
    let definition = number(definition, "decay", "how much weights are drawn to 0");
    let definition = number(definition, "momentum", "how much of the velocity stays")
        .attribute(
            "nesterov",
            AttributeKind::Typed(I1),
            "whether to look ahead",
        )
        .fails(
            INVALID,
            "tensor shape mismatch: SHAPE vs. SHAPE",
            "the tensors are not of one shape",
        )
        .reads(0)
        .writes(1)
        .writes(2);
    used_by_others(wrong_type(definition))
}
