//! Arithmetic of small networks, of which the original's programs for MNIST and ResNet-50 are made.

use crate::dialect::{
    AttributeKind, OpDef, Traits,
    ValueKind::{self, Chain, F32, I32, I64},
};
use crate::dialects::kernel;
use crate::dialects::tfrt_dht::{SHAPE, TENSOR, takes_memory, used_by_others, wrong_type};

pub(super) fn definitions() -> Vec<OpDef> {
    let mut all = Vec::new();
    all.extend(elements());
    all.extend(products());
    all.extend(reductions());
    all.extend(images());
    all
}

fn elements() -> Vec<OpDef> {
    vec![
        relu("tfrt_test.relu.f32"),
        relu("tfrt_test.relu.i32"),
        relu("tfrt_test.relu.i64"),
        relu_in_place("tfrt_test.relu_inplace.f32"),
        relu_in_place("tfrt_test.relu_inplace.i32"),
        relu_in_place("tfrt_test.relu_inplace.i64"),
        relu_gradient("tfrt_test.relu_grad_inplace.f32"),
        relu_gradient("tfrt_test.relu_grad_inplace.i32"),
        relu_gradient("tfrt_test.relu_grad_inplace.i64"),
        of_two("tfrt_test.add.f32", "Adds"),
        of_two("tfrt_test.add.i32", "Adds"),
        of_two("tfrt_test.add.i64", "Adds"),
        to_second("tfrt_test.add_inplace.f32", "Adds the first to the second"),
        to_second("tfrt_test.add_inplace.i32", "Adds the first to the second"),
        to_second("tfrt_test.add_inplace.i64", "Adds the first to the second"),
        of_two("tfrt_test.equal.f32", EQUAL),
        of_two("tfrt_test.equal.i32", EQUAL),
        of_two("tfrt_test.equal.i64", EQUAL),
        to_second("tfrt_test.equal_inplace.f32", EQUAL),
        to_second("tfrt_test.equal_inplace.i32", EQUAL),
        to_second("tfrt_test.equal_inplace.i64", EQUAL),
        to_second(
            "tfrt_test.subtract_inplace.f32",
            "Subtracts the first from the second",
        ),
        to_output(kernel("tfrt_test.cast.i32_to_f32"), "Converts to floats"),
        to_output_at_once(
            kernel("tfrt_test.tensor_transpose.f32"),
            "Exchanges rows and columns",
        )
        .fails(
            INVALID,
            "TensorTranspose output shape SHAPE does not match the input shape SHAPE",
            MISFIT,
        ),
        to_output_at_once(
            kernel("tfrt_test.broadcast_2d.f32"),
            "Repeats a row for each pixel of an image",
        )
        .details("From `[n, c]` to `[n, h, w, c]`.")
        .fails(
            INVALID,
            "Broadcast2D output shape SHAPE does not match the input shape SHAPE",
            MISFIT,
        ),
        kernel("tfrt_test.gradient_descent.f32")
            .summary("Subtracts a gradient, times a rate, from weights")
            .operand("gradient", TENSOR)
            .operand("rate", TENSOR)
            .operand("weights", TENSOR)
            .operand("chain", Chain)
            .result("done", Chain)
            .asynchronous()
            .reads(0)
            .reads(1)
            .writes(2)
            .fails(
                INVALID,
                "GradientDescent lr should have only one element",
                "it has more, or none",
            ),
        broadcast("tfrt_test.broadcast.f32.2"),
        broadcast("tfrt_test.broadcast.i32.2"),
        broadcast("tfrt_test.broadcast.i64.2"),
        broadcast("tfrt_test.broadcast.f32.3"),
        broadcast("tfrt_test.broadcast.i32.3"),
        broadcast("tfrt_test.broadcast.i64.3"),
    ]
    .into_iter()
    .map(|definition| used_by_others(wrong_type(definition)))
    .collect()
}

const EQUAL: &str = "1 where two elements are the same number, else 0";
const INVALID: &str = "InvalidArgument";
const MISFIT: &str = "they are of other shapes than that";

fn shape_mismatch(definition: OpDef) -> OpDef {
    definition.fails(
        INVALID,
        "tensor shape mismatch: SHAPE vs. SHAPE",
        "the tensors are of different shapes",
    )
}

/// Adds an input and an output of one shape, as far as nothing else is said; the result may come
/// later.
fn to_output(definition: OpDef, summary: &'static str) -> OpDef {
    to_output_at_once(definition, summary).asynchronous()
}

/// Adds an input and an output of one shape, as far as nothing else is said; runs on the calling
/// thread.
fn to_output_at_once(definition: OpDef, summary: &'static str) -> OpDef {
    definition
        .summary(summary)
        .operand("input", TENSOR)
        .operand("output", TENSOR)
        .operand("chain", Chain)
        .result("done", Chain)
        .reads(0)
        .writes(1)
}

fn relu(name: &'static str) -> OpDef {
    shape_mismatch(to_output(kernel(name), "The larger of each element and 0")).details(SAME)
}

const SAME: &str = "The output may be an input.";

fn relu_in_place(name: &'static str) -> OpDef {
    kernel(name)
        .summary("Makes elements below 0 to 0")
        .operand("tensor", TENSOR)
        .operand("chain", Chain)
        .result("done", Chain)
        .asynchronous()
        .writes(0)
}

fn relu_gradient(name: &'static str) -> OpDef {
    shape_mismatch(to_second(
        name,
        "Makes the gradient 0 where the activation is not above 0",
    ))
}

fn of_two(name: &'static str, summary: &'static str) -> OpDef {
    let definition = kernel(name)
        .summary(summary)
        .details(SAME)
        .operand("lhs", TENSOR)
        .operand("rhs", TENSOR)
        .operand("output", TENSOR)
        .operand("chain", Chain)
        .result("done", Chain)
        .asynchronous()
        .reads(0)
        .reads(1)
        .writes(2);
    shape_mismatch(definition)
}

fn to_second(name: &'static str, summary: &'static str) -> OpDef {
    let definition = kernel(name)
        .summary(summary)
        .operand("first", TENSOR)
        .operand("second", TENSOR)
        .operand("chain", Chain)
        .result("done", Chain)
        .asynchronous()
        .reads(0)
        .writes(1);
    shape_mismatch(definition)
}

fn broadcast(name: &'static str) -> OpDef {
    let definition = kernel(name)
        .summary("Repeats a row until a shape is full")
        .operand("row", TENSOR)
        .operand("shape", SHAPE)
        .operand("chain", Chain)
        .result("tensor", TENSOR)
        .reads(0)
        .allocates()
        .fails(
            INVALID,
            "broadcast input tensor dimension and target shape mismatch: SHAPE vs. SHAPE",
            "the row is not as long as the last dimension, or the shape has not so many",
        );
    takes_memory(definition)
}

fn products() -> Vec<OpDef> {
    let with_chain = [
        ("tfrt_test.matmul.f32.2", F32),
        ("tfrt_test.matmul.i32.2", I32),
        ("tfrt_test.matmul.i64.2", I64),
    ];
    with_chain
        .map(|(name, kind)| product(kernel(name), kind))
        .into()
}

/// Completes the entry of a product `alpha a b + beta c`.
pub(in crate::dialects) fn product(definition: OpDef, kind: ValueKind) -> OpDef {
    product_errors(
        factors(definition, kind)
            .operand("chain", Chain)
            .result("done", Chain)
            .asynchronous(),
    )
}

/// Adds the operands of a product.
pub(in crate::dialects) fn factors(definition: OpDef, kind: ValueKind) -> OpDef {
    definition
        .summary("A product of matrices: c = alpha a b + beta c")
        .details("Of shapes `[m, k]`, `[k, n]` and `[m, n]`. Where beta is 0, what stood in c is not looked at.")
        .operand("alpha", kind)
        .operand("a", TENSOR)
        .operand("b", TENSOR)
        .operand("beta", kind)
        .operand("c", TENSOR)
        .reads(1)
        .reads(2)
        .writes(4)
}

/// Adds the errors of a product.
pub(in crate::dialects) fn product_errors(definition: OpDef) -> OpDef {
    let definition = definition
        .fails(
            INVALID,
            "MatMul input tensors inner dimension mismatch: SHAPE vs. SHAPE",
            "the rows of the one are not as long as the columns of the other",
        )
        .fails(
            INVALID,
            "MatMul output shape SHAPE does not match product shape of inputs: SHAPE * SHAPE",
            "the result is of another shape",
        );
    used_by_others(wrong_type(definition))
}

fn reductions() -> Vec<OpDef> {
    let nothing = |definition: OpDef| {
        definition.fails(
            INVALID,
            "there is nothing to reduce, and no result for that",
            "an extent is 0",
        )
    };
    let result = |name, summary, meaning: &'static str| {
        let definition = kernel(name)
            .summary(summary)
            .details(meaning)
            .operand("input", TENSOR)
            .operand("chain", Chain)
            .result("output", TENSOR)
            .reads(0)
            .allocates();
        takes_memory(used_by_others(wrong_type(definition)))
    };
    let argmax = |name| result(name, ARGMAX, "From `[rows, columns]` to `i32 [rows]`.");
    let mean = |name| {
        nothing(result(
            name,
            MEAN,
            "From `[n]` to `[]`. Means of integers are rounded towards 0.",
        ))
    };
    let other = |name, summary, meaning| {
        let definition = to_output(kernel(name), summary).details(meaning);
        nothing(used_by_others(wrong_type(definition)))
    };
    vec![
        argmax("tfrt_test.argmax.f32.2"),
        argmax("tfrt_test.argmax.i32.2"),
        argmax("tfrt_test.argmax.i64.2"),
        mean("tfrt_test.reduce_mean.f32.1"),
        mean("tfrt_test.reduce_mean.i32.1"),
        mean("tfrt_test.reduce_mean.i64.1"),
        other(
            "tfrt_test.mean_axis_zero.f32",
            MEAN,
            "From `[rows, columns]` to `[columns]`.",
        ),
        other(
            "tfrt_test.global_average_pooling.f32",
            MEAN,
            "From `[n, h, w, c]` to `[n, c]`.",
        ),
        used_by_others(wrong_type(
            kernel("tfrt_test.softmax_inplace.f32")
                .summary("Softmax over all elements")
                .operand("tensor", TENSOR)
                .operand("chain", Chain)
                .result("done", Chain)
                .asynchronous()
                .writes(0),
        )),
    ]
}

const ARGMAX: &str = "Where in each row the largest element is: the first of several";
const MEAN: &str = "The mean";

fn images() -> Vec<OpDef> {
    vec![
        pooling(kernel("tfrt_test.max_pooling_2d.f32"), I32),
        padding(kernel("tfrt_test.zero_padding.f32"), I32),
        used_by_others(wrong_type(
            to_output(
                kernel("tfrt_test.flatten.f32"),
                "The elements in another shape",
            )
            .details("The first extent stays: a row for each image.")
            .fails(
                INVALID,
                "Flatten output shape SHAPE does not match the input shape SHAPE",
                MISFIT,
            ),
        )),
    ]
}

/// Completes the entry of a max pooling.
pub(in crate::dialects) fn pooling(definition: OpDef, kind: ValueKind) -> OpDef {
    let definition = to_output(definition, "The largest element of each window")
        .details("From `[n, h, w, c]` to `[n, oh, ow, c]`.")
        .attribute("padding", AttributeKind::String, "`same` or `valid`")
        .attribute(
            "pool_size",
            AttributeKind::Array(kind),
            "rows and columns of a window",
        )
        .attribute(
            "strides",
            AttributeKind::Array(kind),
            "rows and columns from one window to the next",
        )
        .fails(
            INVALID,
            "MaxPool2D expects pool_size to have 2 elements, found N",
            "there are more or fewer",
        )
        .fails(
            INVALID,
            "MaxPool2D padding 'NAME' is not recognized",
            "it is neither of the two",
        )
        .fails(
            INVALID,
            "MaxPool2D output shape SHAPE does not match the expected output shape SHAPE",
            "the output is of another shape",
        );
    used_by_others(wrong_type(definition))
}

/// Completes the entry of an operation that puts zeros around images.
pub(in crate::dialects) fn padding(definition: OpDef, kind: ValueKind) -> OpDef {
    let definition = to_output(definition, "Puts zeros around images")
        .details("From `[n, h, w, c]` to `[n, h + 2 rows, w + 2 columns, c]`.")
        .attribute("padding", AttributeKind::Array(kind), "rows above and below, columns left and right")
        .fails(INVALID, "ZeroPadding expects padding to have 2 elements, found N", "there are more or fewer")
        .fails(
            INVALID,
            "ZeroPadding output shape SHAPE does not match the padded input shape, which is that of SHAPE with N \
             rows and N columns on each side",
            "the output is of another shape",
        );
    used_by_others(wrong_type(definition))
}

/// Returns the entries of these operations for functions marked synchronous.
pub(in crate::dialects) fn synchronous_definitions() -> Vec<OpDef> {
    let synchronous = |definition: OpDef| definition.traits(&[Traits::SYNC]);
    let product = |name, kind| synchronous(product_errors(factors(kernel(name), kind)));
    let relu = |name| {
        let definition = kernel(name)
            .summary("The larger of each element and 0")
            .operand("input", TENSOR)
            .operand("output", TENSOR)
            .reads(0)
            .writes(1);
        synchronous(used_by_others(wrong_type(definition)))
    };
    vec![
        product("tfrt_test_sync.matmul.f32.2", F32),
        product("tfrt_test_sync.matmul.i32.2", I32),
        product("tfrt_test_sync.matmul.i64.2", I64),
        relu("tfrt_test_sync.relu.f32"),
        relu("tfrt_test_sync.relu.i32"),
        relu("tfrt_test_sync.relu.i64"),
    ]
}
