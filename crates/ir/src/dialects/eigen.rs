//! `eigen`: products, convolutions and batch norm, as the original's compatibility layer with Eigen names them.

use super::kernel;
use super::tfrt_dht::{TENSOR, used_by_others, wrong_type};
use super::tfrt_test::networks::{padding, pooling, product};
use crate::dialect::{
    AttributeKind, OpDef,
    ValueKind::{Chain, F32, I32, I64},
};

const INVALID: &str = "InvalidArgument";

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        product(kernel("eigen.matmul.f32"), F32),
        product(kernel("eigen.matmul.i32"), I32),
        convolution("eigen.conv2d.f32", &[]).summary("A convolution"),
        convolution("eigen.conv2d.bias.f32", &["bias"])
            .summary("A convolution, to which a number for each filter is added"),
        with_batch_norm("eigen.conv2d.batch_norm.f32")
            .summary("A convolution, followed by batch norm"),
        with_batch_norm("eigen.conv2d.batch_norm.relu.f32")
            .summary("A convolution, followed by batch norm, followed by the larger of that and 0"),
        gradient("eigen.conv2d.grad.filter.f32", ["gradient", "input", "filter"])
            .summary("The gradient of a convolution's filter"),
        gradient("eigen.conv2d.grad.input.f32", ["gradient", "filter", "input"])
            .summary("The gradient of a convolution's input"),
        used_by_others(wrong_type(
            parameters(kernel("eigen.batch_norm.f32").operand("tensor", TENSOR))
                .summary("Batch norm, in place: (x - mean) / sqrt(variance + epsilon) scale + shift")
                .operand("chain", Chain)
                .result("done", Chain).asynchronous()
                .attribute("epsilon", AttributeKind::Typed(F32), EPSILON)
                .reads(1)
                .reads(2)
                .reads(3)
                .reads(4)
                .writes(0),
        )),
        used_by_others(wrong_type(
            misfit(
                kernel("eigen.batch_norm.grad.f32")
                    .summary("The gradients of batch norm, whose mean and variance are those of the batch")
                    .operand("gradient", TENSOR)
                    .operand("input", TENSOR)
                    .operand("scale", TENSOR)
                    .operand("mean", TENSOR)
                    .operand("variance", TENSOR)
                    .operand("chain", Chain)
                    .operand("input_gradient", TENSOR)
                    .operand("scale_gradient", TENSOR)
                    .operand("shift_gradient", TENSOR)
                    .result("input_done", Chain)
                    .result("scale_done", Chain)
                    .result("shift_done", Chain),
            )
            .attribute("epsilon", AttributeKind::Typed(F32), EPSILON)
            .reads(0)
            .reads(1)
            .reads(2)
            .reads(3)
            .reads(4)
            .writes(6)
            .writes(7)
            .writes(8),
        )),
        pooling(kernel("eigen.max_pooling_2d.f32"), I64),
        padding(kernel("eigen.zero_padding.f32"), I64),
    ]
}

const EPSILON: &str = "what is added to the variance";

/// Adds the operands that each channel is normalised by.
fn parameters(definition: OpDef) -> OpDef {
    let definition = definition
        .operand("scale", TENSOR)
        .operand("shift", TENSOR)
        .operand("mean", TENSOR)
        .operand("variance", TENSOR);
    misfit(definition)
}

fn misfit(definition: OpDef) -> OpDef {
    definition.fails(
        INVALID,
        "parameter does not match the input channel number: MORE",
        "there is not one of each parameter for each channel",
    )
}

/// Adds the attributes and errors of convolutions.
fn windowed(definition: OpDef) -> OpDef {
    let definition = definition
        .details(
            "Images of shape `[n, h, w, channels]`, a filter of `[rows, columns, channels, filters]`, results of \
             `[n, oh, ow, filters]`.",
        )
        .attribute("padding", AttributeKind::String, "`same` or `valid`")
        .attribute("strides", AttributeKind::Array(I64), "rows and columns from one window to the next")
        .fails(
            INVALID,
            "Dimensions does not match: input channels is N and kernel depth is N, with N filters in N groups",
            "input and filter do not belong together",
        )
        .fails(
            INVALID,
            "Tensor shapes do not match: output tensor shape is SHAPE and computed output shape is SHAPE",
            "the output is of another shape",
        )
        .fails(INVALID, "Conv2D padding 'NAME' is not recognized", "it is neither of the two");
    used_by_others(wrong_type(definition))
}

fn convolution(name: &'static str, parameters: &[&'static str]) -> OpDef {
    let mut definition = kernel(name)
        .operand("input", TENSOR)
        .operand("filter", TENSOR)
        .reads(0)
        .reads(1);
    for (index, parameter) in parameters.iter().enumerate() {
        definition = definition.operand(parameter, TENSOR).reads(2 + index);
    }
    let definition = definition
        .operand("output", TENSOR)
        .operand("chain", Chain)
        .result("done", Chain)
        .asynchronous()
        .writes(2 + parameters.len());
    windowed(definition)
}

fn with_batch_norm(name: &'static str) -> OpDef {
    let definition = convolution(name, &["scale", "shift", "mean", "variance"]);
    misfit(definition).attribute("epsilon", AttributeKind::Typed(F32), EPSILON)
}

fn gradient(name: &'static str, operands: [&'static str; 3]) -> OpDef {
    let [gradient, other, output] = operands;
    let definition = kernel(name)
        .operand(gradient, TENSOR)
        .operand(other, TENSOR)
        .operand(output, TENSOR)
        .operand("chain", Chain)
        .result("done", Chain)
        .asynchronous()
        .reads(0)
        .reads(1)
        .writes(2);
    windowed(definition)
}
