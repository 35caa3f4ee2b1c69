//! `cpu`: convolutions and products by weights that are packed ahead; a dialect of ours.

use super::kernel;
use super::tfrt_dht::{TENSOR, used_by_others, wrong_type};
use crate::dialect::{
    AttributeKind, OpDef, ValueKind,
    ValueKind::{Chain, F32, I64},
};

const INVALID: &str = "InvalidArgument";
const FILTER: ValueKind = ValueKind::Dialect("!cpu.filter");
const MATRIX: ValueKind = ValueKind::Dialect("!cpu.matrix");

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        convolution("cpu.conv2d.f32").summary("A convolution by a packed filter"),
        convolution("cpu.conv2d.add.f32")
            .summary("A convolution by a packed filter, added to what stands in the output")
            .reads(2),
        for_strides(
            pack(kernel("cpu.conv2d.pack.f32").operand("filter", TENSOR))
                .summary("Lays a filter out for the processor")
                .result("packed", FILTER),
        ),
        for_strides(
            pack(
                kernel("cpu.conv2d.pack.batch_norm.f32")
                    .operand("filter", TENSOR)
                    .operand("scale", TENSOR)
                    .operand("shift", TENSOR)
                    .operand("mean", TENSOR)
                    .operand("variance", TENSOR),
            )
            .summary("Lays a filter out for the processor, with the batch norm that follows it")
            .result("packed", FILTER)
            .attribute(
                "epsilon",
                AttributeKind::Typed(F32),
                "what is added to the variance",
            ),
        )
        .reads(1)
        .reads(2)
        .reads(3)
        .reads(4)
        .fails(
            INVALID,
            "parameter does not match the input channel number: MORE",
            "there is not one of each parameter for each other",
        ),
        with_activation(
            kernel("cpu.matmul.f32")
                .operand("left", TENSOR)
                .operand("right", MATRIX)
                .operand("output", TENSOR)
                .operand("chain", Chain)
                .result("done", Chain)
                .asynchronous()
                .reads(0)
                .writes(2),
        )
        .summary("A product with a packed matrix, to whose rows its bias is added")
        .details("`[.., k]` times `[k, n]` is `[.., n]`.")
        .fails(
            INVALID,
            "a product with a packed matrix of shape [N, N]: expected MORE",
            "left side or output are of another shape",
        ),
        pack(
            kernel("cpu.matmul.pack.f32")
                .operand("right", TENSOR)
                .operand("bias", TENSOR)
                .reads(1),
        )
        .summary(
            "Lays the right side of products, `[k, n]`, out for the processor, with a bias `[n]`",
        )
        .result("packed", MATRIX)
        .fails(
            INVALID,
            "expected a matrix to pack, found shape SHAPE",
            "it is none",
        )
        .fails(
            INVALID,
            "expected an element for each of N columns, found N",
            "there is not one of the bias for each column",
        ),
    ]
}

fn pack(definition: OpDef) -> OpDef {
    used_by_others(wrong_type(definition.operand("chain", Chain).reads(0)))
}

/// Adds the attribute for the windows that a filter is for.
fn for_strides(definition: OpDef) -> OpDef {
    definition
        .attribute(
            "strides",
            AttributeKind::Array(I64),
            "rows and columns from one window to the next: those of all convolutions by it",
        )
        .details(
            "A filter of 3x3 for strides of 1, of many channels, is packed for fewer multiplications; sums differ \
             from those of the definition by rounding, about twice as much as in another order.",
        )
}

/// Adds the attribute of the activation that is applied to the result.
fn with_activation(definition: OpDef) -> OpDef {
    let definition = definition
        .attribute(
            "activation",
            AttributeKind::String,
            "`none`, `relu` or `relu6`",
        )
        .fails(
            INVALID,
            "activation 'NAME' is not recognized",
            "it is none of the three",
        );
    used_by_others(wrong_type(definition))
}

fn convolution(name: &'static str) -> OpDef {
    let definition = kernel(name)
        .operand("input", TENSOR)
        .operand("filter", FILTER)
        .operand("output", TENSOR)
        .operand("chain", Chain)
        .result("done", Chain)
        .asynchronous()
        .reads(0)
        .writes(2)
        .details(
            "Images of shape `[n, h, w, channels]`, a filter that was packed from `[rows, columns, channels, \
             filters]`, results of `[n, oh, ow, filters]`.",
        );
    with_activation(definition)
        .attribute(
            "padding",
            AttributeKind::Array(I64),
            "rows above and below the image, columns to its left and right",
        )
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
        .fails(
            INVALID,
            "Conv2D with strides of LIST by a filter that is packed for LIST",
            "the filter is for others",
        )
        .fails(INVALID, "Conv2D expects padding to have 4 elements of 0 or more, found LIST", "it has not")
}
