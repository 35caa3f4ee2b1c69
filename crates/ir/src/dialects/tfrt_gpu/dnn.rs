//! Neural networks by the vendor's library: pooling, convolutions and their gradients.

use super::{
    BEGIN, BUFFER, CONTEXT, STREAM,
    keywords::{
        BACKWARD_DATA_ALGORITHM, BACKWARD_FILTER_ALGORITHM, CONVOLUTION_MODE, DNN_TYPE,
        FORWARD_ALGORITHM, MATH_TYPE,
    },
    op, pure, shown, sizes,
};
use crate::dialect::{
    AttributeKind, OpDef,
    ValueKind::{self, Chain, F32, I32, I64, UI32},
};

const HANDLE: ValueKind = ValueKind::Dialect("!tfrt_gpu.dnn.handle");
const PLAN: ValueKind = ValueKind::Dialect("!tfrt_gpu.dnn.convolution.plan");
const ALGORITHM: ValueKind = ValueKind::Dialect("!tfrt_gpu.dnn.convolution.algorithm");
const CONVOLUTION: ValueKind = ValueKind::Dialect("!tfrt_gpu.dnn.convolution.descriptor");
const FILTER: ValueKind = ValueKind::Dialect("!tfrt_gpu.dnn.filter.descriptor");
const POOLING: ValueKind = ValueKind::Dialect("!tfrt_gpu.dnn.pooling.descriptor");
const TENSOR: ValueKind = ValueKind::Dialect("!tfrt_gpu.dnn.tensor.descriptor");

/// Buffers and descriptors of a convolution of 3x3 by 2x2, in examples.
const SETUP: &str = "%allocator = tfrt_gpu.allocator.create %context
%size = tfrt.constant.i64 36
%x = tfrt_gpu.mem.allocate %allocator, %stream, %size, %c0
%w = tfrt_gpu.mem.allocate %allocator, %stream, %size, %c0
%y = tfrt_gpu.mem.allocate %allocator, %stream, %size, %c0
%one = tfrt.constant.f32 1.0
%c1 = tfrt_gpu.mem.set %x, %one, %stream, %c0 : f32
%c2 = tfrt_gpu.mem.set %w, %one, %stream, %c1 : f32
%c3 = tfrt_gpu.mem.set %y, %one, %stream, %c2 : f32
%dnn = tfrt_gpu.dnn.create %context
%x_desc = tfrt_gpu.dnn.create_tensor_descriptor CUDNN_DATA_FLOAT, [1 : i32, 1 : i32, 3 : i32, 3 : i32], [9 : i32, 9 : i32, 3 : i32, 1 : i32]
%y_desc = tfrt_gpu.dnn.create_tensor_descriptor CUDNN_DATA_FLOAT, [1 : i32, 1 : i32, 2 : i32, 2 : i32], [4 : i32, 4 : i32, 2 : i32, 1 : i32]
";

/// Descriptors of the filter and of the convolution, in examples.
const CONVOLVED: &str = "%w_desc = tfrt_gpu.dnn.create_filter_descriptor CUDNN_DATA_FLOAT, 0, [1 : i32, 1 : i32, 2 : i32, 2 : i32]
%conv = tfrt_gpu.dnn.create_convolution_descriptor CUDNN_DATA_FLOAT, CUDNN_CROSS_CORRELATION, CUDNN_FMA_MATH, [0 : i32, 0 : i32], [1 : i32, 1 : i32], [1 : i32, 1 : i32]
";

/// A plan of the same, in examples.
const PLANNED: &str = "%plan = tfrt_gpu.dnn.build_convolution %dnn, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, [1, 1, 3, 3], [9, 9, 3, 1], [1, 1, 2, 2], [4, 4, 2, 1], [1, 1, 2, 2], [4, 4, 2, 1], CUDNN_CROSS_CORRELATION, 2, [1, 1], [0, 0], [1, 1], 10, 0, [], []
%c4 = tfrt_gpu.dnn.run_convolution %dnn, %stream, %plan, %x, %y, %w, %w, %c3
";

pub(super) fn definitions() -> Vec<OpDef> {
    let mut all = descriptors();
    all.extend(pooling());
    all.extend(convolutions());
    all.extend(plans());
    all
}

fn ints(definition: OpDef, name: &'static str, meaning: &'static str) -> OpDef {
    definition.attribute(name, AttributeKind::Array(I32), meaning)
}

fn descriptors() -> Vec<OpDef> {
    let pool = "%mode = tfrt.constant.ui32 0\n%pool = tfrt_gpu.dnn.create_pooling_descriptor %context, %mode, %mode, [2 : i32, 2 : i32], [0 : i32, 0 : i32], [1 : i32, 1 : i32]\n";
    let tensor = pure(
        "tfrt_gpu.dnn.create_tensor_descriptor",
        "A tensor's type, dimensions and strides",
    )
    .result("descriptor", TENSOR)
    .attribute("data_type", DNN_TYPE, "the type of elements");
    let filter = pure(
        "tfrt_gpu.dnn.create_filter_descriptor",
        "A filter's type, layout and dimensions",
    )
    .result("descriptor", FILTER)
    .attribute("data_type", DNN_TYPE, "the type of elements")
    .attribute(
        "tensor_format",
        AttributeKind::Typed(I32),
        "the layout: 0 has channels before space, 1 behind",
    );
    let convolution = pure(
        "tfrt_gpu.dnn.create_convolution_descriptor",
        "A convolution's type and steps",
    )
    .result("descriptor", CONVOLUTION)
    .attribute("compute_type", DNN_TYPE, "the type of the calculation")
    .attribute(
        "conv_mode",
        CONVOLUTION_MODE,
        "whether the filter is turned round",
    )
    .attribute("math_type", MATH_TYPE, "which arithmetic may be used");
    let convolution = ints(
        convolution,
        "pad",
        "zeros on each side of the image, along each dimension",
    );
    let convolution = ints(
        convolution,
        "filter_stride",
        "elements from one window to the next",
    );
    let pooling = op("tfrt_gpu.dnn.create_pooling_descriptor", "A pooling: its kind and its windows")
        .details("Modes: 0 maximum, 1 mean with the padding, 2 mean without it, 3 as 0. `nan` is 0 or 1: whether a NaN wins.")
        .operand("context", CONTEXT)
        .operand("mode", UI32)
        .operand("nan", UI32)
        .result("descriptor", POOLING)
        .fails("InvalidArgument", "Invalid WHAT value: N", "a number stands for no value of the library");
    let pooling = ints(pooling, "window_dimensions", "the size of a window");
    let pooling = ints(pooling, "paddings", "elements on each side of the image");
    vec![
        shown(
            op(
                "tfrt_gpu.dnn.create",
                "A handle of the library of neural networks",
            )
            .operand("context", CONTEXT)
            .result("handle", HANDLE),
            &[BEGIN, SETUP],
        ),
        shown(
            ints(
                ints(tensor, "dimensions", "the dimensions"),
                "strides",
                "elements from one to the next, along each dimension",
            )
            .format("$data_type, $dimensions, $strides attr-dict"),
            &[BEGIN, SETUP],
        ),
        shown(
            ints(
                filter,
                "dimensions",
                "outputs, inputs, and the size of a window",
            )
            .format("$data_type, $tensor_format, $dimensions attr-dict"),
            &[BEGIN, SETUP, CONVOLVED],
        ),
        shown(
            ints(
                convolution,
                "dilation",
                "elements from one of a window to the next",
            )
            .format(
                "$compute_type, $conv_mode, $math_type, $pad, $filter_stride, $dilation attr-dict",
            ),
            &[BEGIN, SETUP, CONVOLVED],
        ),
        shown(
            ints(pooling, "strides", "elements from one window to the next").format(
                "operand, operand, operand, $window_dimensions, $paddings, $strides attr-dict",
            ),
            &[BEGIN, pool],
        ),
    ]
}

fn pooling() -> Vec<OpDef> {
    let pool = "%mode = tfrt.constant.ui32 0\n%pool = tfrt_gpu.dnn.create_pooling_descriptor %context, %mode, %mode, [2 : i32, 2 : i32], [0 : i32, 0 : i32], [1 : i32, 1 : i32]\n%beta = tfrt.constant.f32 0.0\n";
    let forward = "%c4 = tfrt_gpu.dnn.pooling_forward %dnn, %stream, %pool, %one, %x_desc, %x, %beta, %y_desc, %y, %c3\n";
    let backward = "%c5 = tfrt_gpu.dnn.pooling_backward %dnn, %stream, %pool, %one, %y_desc, %y, %y_desc, %y, %x_desc, %x, %beta, %x_desc, %w, %c4";
    vec![
        shown(
            sizes(op(
                "tfrt_gpu.dnn.pooling_forward",
                "Queues a pooling: `y = alpha * pool(x) + beta * y`",
            ))
            .operand("handle", HANDLE)
            .operand("stream", STREAM)
            .operand("pooling", POOLING)
            .operand("alpha", F32)
            .operand("x_desc", TENSOR)
            .operand("x", BUFFER)
            .operand("beta", F32)
            .operand("y_desc", TENSOR)
            .operand("y", BUFFER)
            .operand("chain", Chain)
            .result("done", Chain),
            &[BEGIN, SETUP, pool, forward],
        ),
        shown(
            sizes(op(
                "tfrt_gpu.dnn.pooling_backward",
                "Queues the gradient of a pooling",
            ))
            .operand("handle", HANDLE)
            .operand("stream", STREAM)
            .operand("pooling", POOLING)
            .operand("alpha", F32)
            .operand("y_desc", TENSOR)
            .operand("y", BUFFER)
            .operand("dy_desc", TENSOR)
            .operand("dy", BUFFER)
            .operand("x_desc", TENSOR)
            .operand("x", BUFFER)
            .operand("beta", F32)
            .operand("dx_desc", TENSOR)
            .operand("dx", BUFFER)
            .operand("chain", Chain)
            .result("done", Chain),
            &[BEGIN, SETUP, pool, forward, backward],
        ),
    ]
}

/// Returns an entry of a convolution: names of its two operands and of its result, the latter two with their descriptors.
fn convolution(
    name: &'static str,
    summary: &'static str,
    operands: [(&'static str, &'static str, ValueKind); 3],
) -> OpDef {
    let [first, second, last] = operands;
    sizes(op(name, summary))
        .operand("handle", HANDLE)
        .operand("stream", STREAM)
        .operand(first.0, first.2)
        .operand(first.1, BUFFER)
        .operand(second.0, second.2)
        .operand(second.1, BUFFER)
        .operand("conv_desc", CONVOLUTION)
        .operand("algo", ALGORITHM)
        .operand("work_space", BUFFER)
        .operand(last.0, last.2)
        .operand(last.1, BUFFER)
        .operand("chain", Chain)
        .result("done", Chain)
        .attribute("scale_type", DNN_TYPE, "the type of the factors, which are 1 and 0")
        .format("operand, operand, $scale_type, operand, operand, operand, operand, operand, operand, operand, operand, operand, operand attr-dict")
}

fn convolutions() -> Vec<OpDef> {
    let algorithm = |name: &'static str, kind: AttributeKind, line: &str| {
        shown(
            pure(name, "The algorithm of convolutions")
                .result("algorithm", ALGORITHM)
                .attribute("algo", kind, "the library's algorithm")
                .format("$algo attr-dict"),
            &[BEGIN, line],
        )
    };
    let forward = "%algo = tfrt_gpu.dnn.convolution_forward_algorithm CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM\n";
    let data = "%algo = tfrt_gpu.dnn.convolution_backward_data_algorithm CUDNN_CONVOLUTION_BWD_DATA_ALGO_1\n";
    let filter = "%algo = tfrt_gpu.dnn.convolution_backward_filter_algorithm CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1\n";
    vec![
        algorithm(
            "tfrt_gpu.dnn.convolution_forward_algorithm",
            FORWARD_ALGORITHM,
            forward,
        ),
        algorithm(
            "tfrt_gpu.dnn.convolution_backward_data_algorithm",
            BACKWARD_DATA_ALGORITHM,
            data,
        ),
        algorithm(
            "tfrt_gpu.dnn.convolution_backward_filter_algorithm",
            BACKWARD_FILTER_ALGORITHM,
            filter,
        ),
        shown(
            convolution(
                "tfrt_gpu.dnn.convolution_forward",
                "Queues a convolution of an image by a filter",
                [
                    ("x_desc", "x", TENSOR),
                    ("w_desc", "w", FILTER),
                    ("y_desc", "y", TENSOR),
                ],
            ),
            &[
                BEGIN,
                SETUP,
                CONVOLVED,
                forward,
                "%c4 = tfrt_gpu.dnn.convolution_forward %dnn, %stream, CUDNN_DATA_FLOAT, %x_desc, %x, %w_desc, %w, %conv, %algo, %w, %y_desc, %y, %c3",
            ],
        ),
        shown(
            convolution(
                "tfrt_gpu.dnn.convolution_backward_data",
                "Queues the gradient of a convolution by its image",
                [
                    ("w_desc", "w", FILTER),
                    ("dy_desc", "dy", TENSOR),
                    ("dx_desc", "dx", TENSOR),
                ],
            ),
            &[
                BEGIN,
                SETUP,
                CONVOLVED,
                data,
                "%c4 = tfrt_gpu.dnn.convolution_backward_data %dnn, %stream, CUDNN_DATA_FLOAT, %w_desc, %w, %y_desc, %y, %conv, %algo, %w, %x_desc, %x, %c3",
            ],
        ),
        shown(
            convolution(
                "tfrt_gpu.dnn.convolution_backward_filter",
                "Queues the gradient of a convolution by its filter",
                [
                    ("x_desc", "x", TENSOR),
                    ("dy_desc", "dy", TENSOR),
                    ("dw_desc", "dw", FILTER),
                ],
            ),
            &[
                BEGIN,
                SETUP,
                CONVOLVED,
                filter,
                "%c4 = tfrt_gpu.dnn.convolution_backward_filter %dnn, %stream, CUDNN_DATA_FLOAT, %x_desc, %x, %y_desc, %y, %conv, %algo, %x, %w_desc, %w, %c3",
            ],
        ),
    ]
}

fn plans() -> Vec<OpDef> {
    let longs = |definition: OpDef, name: &'static str, meaning: &'static str| {
        definition.attribute(name, AttributeKind::Array(I64), meaning)
    };
    let build = op(
        "tfrt_gpu.dnn.build_convolution",
        "A plan of convolutions of one size",
    )
    .operand("handle", HANDLE)
    .result("plan", PLAN)
    .attribute("input_type", DNN_TYPE, "the type of the image")
    .attribute("output_type", DNN_TYPE, "the type of the result");
    let build = longs(build, "input_dims", "dimensions of the image");
    let build = longs(build, "input_strides", "its strides");
    let build = longs(build, "output_dims", "dimensions of the result");
    let build = longs(build, "output_strides", "its strides");
    let build = longs(build, "filter_dims", "dimensions of the filter");
    let build = longs(build, "filter_strides", "its strides")
        .attribute(
            "conv_mode",
            CONVOLUTION_MODE,
            "whether the filter is turned round",
        )
        .attribute(
            "conv_dim",
            AttributeKind::Typed(I32),
            "how many dimensions a window has",
        );
    let build = longs(
        build,
        "conv_dilations",
        "elements from one of a window to the next",
    );
    let build = longs(build, "conv_padding", "zeros on each side of the image");
    let build = longs(
        build,
        "conv_strides",
        "elements from one window to the next",
    )
    .attribute(
        "backend_type",
        AttributeKind::Typed(I32),
        "what is calculated: 10 is the convolution, 11 its gradient by the filter, 12 by the image",
    )
    .attribute(
        "engine_id",
        AttributeKind::Typed(I32),
        "the library's engine",
    );
    let build = longs(build, "tuning_knob_ids", "which of its settings are given");
    let build = longs(build, "tuning_knob_values", "their values, as many")
        .fails("InvalidArgument", "expected a value for each of N tuning knobs, found N", "there are more or fewer")
        .format("operand, $input_type, $output_type, $input_dims, $input_strides, $output_dims, $output_strides, $filter_dims, $filter_strides, $conv_mode, $conv_dim, $conv_dilations, $conv_padding, $conv_strides, $backend_type, $engine_id, $tuning_knob_ids, $tuning_knob_values attr-dict");
    vec![
        shown(build, &[BEGIN, SETUP, PLANNED]),
        shown(
            sizes(op(
                "tfrt_gpu.dnn.run_convolution",
                "Queues a convolution by a plan",
            ))
            .operand("handle", HANDLE)
            .operand("stream", STREAM)
            .operand("plan", PLAN)
            .operand("input", BUFFER)
            .operand("output", BUFFER)
            .operand("filter", BUFFER)
            .operand("workspace", BUFFER)
            .operand("chain", Chain)
            .result("done", Chain),
            &[BEGIN, SETUP, PLANNED],
        ),
    ]
}
