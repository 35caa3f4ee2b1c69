//! `tfrt_cuda` and `tfrt_cuda_test`: GPUs as the original's programs of 2020 and 2021 use them.
//!
//! Kernels are those of the crate `gpu`, which is built with the feature `gpu`.

use super::tfrt_dht::{BUFFER as HOST_BUFFER, SHAPE, TENSOR};
use super::tfrt_gpu::driver_fails;
use crate::dialect::{
    AttributeKind, OpDef,
    ValueKind::{self, Chain, F32, I32, I64, UI32, UI64},
};
use crate::dialects::OPERANDS;

const DEVICE: ValueKind = ValueKind::Dialect("!tfrt_cuda.device");
const CONTEXT: ValueKind = ValueKind::Dialect("!tfrt_cuda.context");
const STREAM: ValueKind = ValueKind::Dialect("!tfrt_cuda.stream");
const EVENT: ValueKind = ValueKind::Dialect("!tfrt_cuda.event");
const ALLOCATOR: ValueKind = ValueKind::Dialect("!tfrt_cuda.allocator");
const BUFFER: ValueKind = ValueKind::Dialect("!tfrt_cuda.buffer");
const BLAS: ValueKind = ValueKind::Dialect("!tfrt_cuda.blas_handle");
const DNN: ValueKind = ValueKind::Dialect("!tfrt_cuda.dnn_handle");
const POOLING: ValueKind = ValueKind::Dialect("!tfrt_cuda.dnn_pooling_descriptor");
const TENSOR_DESCRIPTOR: ValueKind = ValueKind::Dialect("!tfrt_cuda.dnn_tensor_descriptor");

/// The beginning of examples.
const BEGIN: &str = "%c0 = tfrt.new.chain
%c1 = tfrt_cuda.init %c0
%index = tfrt.constant.i32 0
%device, %c2 = tfrt_cuda.device.get %index, %c1
%context, %c3 = tfrt_cuda_test.context.get %device, %c2
%allocator, %c4 = tfrt_cuda.allocator.create %context, %c3
%stream, %c5 = tfrt_cuda.stream.create %context, %c4
%t = tfrt_dht.create_uninitialized_tensor.f32.2 [2 : i64, 2 : i64]
%c6 = tfrt_dht.fill_tensor_with_constant.f32 %t, %c5 1.0 : f32
";

/// Two buffers of 16 bytes, in examples.
const BUFFERS: &str =
    "%x, %c7 = tfrt_cuda_test.copy_tensor_host_to_device %context, %allocator, %stream, %t, %c6
%y, %c8 = tfrt_cuda_test.copy_tensor_host_to_device %context, %allocator, %stream, %t, %c7
";

/// A handle of a library and numbers, in examples of BLAS.
const HANDLE: &str = "%blas = tfrt_cuda.blas.create %context
%c9 = tfrt_cuda.blas.set_stream %blas, %stream, %c8
%n = tfrt.constant.i32 2
%zero = tfrt.constant.i32 0
%one = tfrt.constant.i32 1
%alpha = tfrt.constant.f32 1.0
";

/// Descriptors of a pooling, in examples.
const DESCRIPTORS: &str = "%dnn, %d0 = tfrt_cuda.dnn.create %context, %c8
%d1 = tfrt_cuda.dnn.set_stream %dnn, %stream, %d0
%two = tfrt.constant.i32 2
%window = tfrt_dht.create_uninitialized_tensor.i32.1 [2 : i64]
%d2 = tfrt_dht.fill_tensor_with_constant.i32 %window, %d1 2 : i32
%paddings = tfrt_dht.create_uninitialized_tensor.i32.1 [2 : i64]
%d3 = tfrt_dht.fill_tensor_with_constant.i32 %paddings, %d2 0 : i32
%mode = tfrt.constant.ui32 0
%dims = tfrt_dht.create_uninitialized_tensor.i32.1 [4 : i64]
%d4 = tfrt_dht.set_tensor_with_constant_values.i32 %dims, %d3 [1 : i32, 1 : i32, 2 : i32, 2 : i32]
%strides = tfrt_dht.create_uninitialized_tensor.i32.1 [4 : i64]
%d5 = tfrt_dht.set_tensor_with_constant_values.i32 %strides, %d4 [4 : i32, 4 : i32, 2 : i32, 1 : i32]
%pool, %d6 = tfrt_cuda.dnn.create_pooling_descriptor %context, %mode, %mode, %window, %paddings, %window, %d5
%desc, %d7 = tfrt_cuda.dnn.create_tensor_descriptor %context, %mode, %dims, %strides, %d6
%dim1 = tfrt_dht.create_uninitialized_tensor.i32.1 [4 : i64]
%d8 = tfrt_dht.fill_tensor_with_constant.i32 %dim1, %d7 1 : i32
%small, %d9 = tfrt_cuda.dnn.create_tensor_descriptor %context, %mode, %dim1, %dim1, %d8
%alpha = tfrt.constant.f32 1.0
%beta = tfrt.constant.f32 0.0
";

/// Starts the entry of an operation that the driver or a library of a GPU carries out.
fn op(name: &'static str, summary: &'static str) -> OpDef {
    driver_fails(OpDef::new(name).summary(summary))
        .outside()
        .format(OPERANDS)
}

fn shown(definition: OpDef, parts: &[&str]) -> OpDef {
    definition.example(parts.concat().trim_end().to_owned())
}

pub(super) fn definitions() -> Vec<OpDef> {
    let mut all = driver();
    all.extend(memory());
    all.extend(modules());
    all.extend(blas());
    all.extend(dnn());
    all
}

/// Returns the entries of `tfrt_cuda_test`.
pub(super) fn test_definitions() -> Vec<OpDef> {
    vec![
        shown(
            op(
                "tfrt_cuda_test.context.get",
                "The context that all users of a device in the process share",
            )
            .operand("device", DEVICE)
            .operand("chain", Chain)
            .result("context", CONTEXT)
            .result("done", Chain),
            &[BEGIN],
        ),
        shown(
            op(
                "tfrt_cuda_test.copy_tensor_host_to_device",
                "A buffer of the device with the elements of a dense tensor",
            )
            .operand("context", CONTEXT)
            .operand("allocator", ALLOCATOR)
            .operand("stream", STREAM)
            .operand("tensor", TENSOR)
            .operand("chain", Chain)
            .result("buffer", BUFFER)
            .result("done", Chain),
            &[BEGIN, BUFFERS],
        ),
    ]
}

fn driver() -> Vec<OpDef> {
    let event = "%event = tfrt_cuda.event.create %context\n%c9 = tfrt_cuda.event.record %event, %stream, %c6\n%c10 = tfrt_cuda.event.poll %event, %c9";
    let mut all = vec![
        op("tfrt_cuda.init", "Opens the driver of GPUs")
            .operand("chain", Chain)
            .result("done", Chain),
        op(
            "tfrt_cuda.device.get",
            "The device of a number, of which the first is 0",
        )
        .operand("index", I32)
        .operand("chain", Chain)
        .result("device", DEVICE)
        .result("done", Chain),
        op(
            "tfrt_cuda.stream.create",
            "A queue of commands of a device, which run in order",
        )
        .operand("context", CONTEXT)
        .operand("chain", Chain)
        .result("stream", STREAM)
        .result("done", Chain),
        op(
            "tfrt_cuda.stream.synchronize",
            "A chain that is there when all commands of a stream are done",
        )
        .asynchronous()
        .operand("stream", STREAM)
        .operand("chain", Chain)
        .result("done", Chain),
        op("tfrt_cuda.event.create", "A mark that is put into a stream")
            .operand("context", CONTEXT)
            .result("event", EVENT),
        op(
            "tfrt_cuda.event.record",
            "Puts a mark behind the commands of a stream",
        )
        .operand("event", EVENT)
        .operand("stream", STREAM)
        .operand("chain", Chain)
        .result("done", Chain),
        op(
            "tfrt_cuda.event.poll",
            "A chain that is there when the stream has passed the mark",
        )
        .asynchronous()
        .operand("event", EVENT)
        .operand("chain", Chain)
        .result("done", Chain),
        op(
            "tfrt_cuda.allocator.create",
            "An allocator of a device's memory",
        )
        .operand("context", CONTEXT)
        .operand("chain", Chain)
        .result("allocator", ALLOCATOR)
        .result("done", Chain),
        op(
            "tfrt_cuda.allocator.destroy",
            "Gives up an allocator; its buffers stay",
        )
        .operand("allocator", ALLOCATOR)
        .operand("chain", Chain)
        .result("done", Chain),
    ];
    for entry in &mut all {
        let more = match entry.name() {
            "tfrt_cuda.stream.synchronize" => "%c7 = tfrt_cuda.stream.synchronize %stream, %c6",
            "tfrt_cuda.allocator.destroy" => "%c7 = tfrt_cuda.allocator.destroy %allocator, %c6",
            name if name.contains(".event.") => event,
            _ => "",
        };
        *entry = shown(entry.clone(), &[BEGIN, more]);
    }
    all
}

fn memory() -> Vec<OpDef> {
    let allocate = "%size = tfrt.constant.i64 16\n%b, %c7 = tfrt_cuda.mem.allocate %allocator, %stream, %size, %c6\n";
    let make = "%shape = ts.build_shape [2 : i64, 2 : i64]\n";
    let copy = "%size = tfrt.constant.i64 16\n%h, %c9 = tfrt_dht.get_buffer %t, %c8\n";
    let mut all = vec![
        shown(
            op("tfrt_cuda.mem.allocate", "A buffer of so many bytes of a device's memory, for work of a stream")
                .details("Its contents are anything. Work of other streams on it must wait for what the stream was given before.")
                .operand("allocator", ALLOCATOR)
                .operand("stream", STREAM)
                .operand("size", I64)
                .operand("chain", Chain)
                .result("buffer", BUFFER)
                .result("done", Chain)
                .fails("InvalidArgument", "expected a number of bytes to allocate, found N", "it is negative"),
            &[BEGIN, allocate],
        ),
        shown(
            op("tfrt_cuda.mem.print_metadata", "Prints where a buffer lies and how large it is")
                .operand("buffer", BUFFER)
                .operand("chain", Chain)
                .result("done", Chain),
            &[BEGIN, allocate, "%c8 = tfrt_cuda.mem.print_metadata %b, %c7"],
        )
        .prints("GpuBuffer<pointer=0x..."),
        shown(
            op("tfrt_cuda.tensor.print_metadata", "Prints type, shape and place of a tensor on a GPU")
                .operand("tensor", TENSOR)
                .operand("chain", Chain)
                .result("done", Chain),
            &[BEGIN, allocate, make, "%tensor, %c8 = tfrt_cuda.tensor.make.f32 %b, %shape, %c7\n%c9 = tfrt_cuda.tensor.print_metadata %tensor, %c8"],
        )
        .prints("DenseGpuTensor<dtype=F32, shape=[2, 2], pointer=0x..."),
        shown(
            copy_sizes(op("tfrt_cuda.mem.copy_host_to_device", "Queues a copy from the host")
                .details("The host's bytes are read when the kernel runs.")
                .operand("context", CONTEXT)
                .operand("dst", BUFFER)
                .operand("src", HOST_BUFFER)
                .operand("size", I64)
                .operand("stream", STREAM)
                .operand("chain", Chain)
                .result("done", Chain)),
            &[BEGIN, BUFFERS, copy, "%c10 = tfrt_cuda.mem.copy_host_to_device %context, %x, %h, %size, %stream, %c9"],
        ),
        shown(
            copy_sizes(op("tfrt_cuda.mem.copy_device_to_host", "Queues a copy to the host; its chain is there when the bytes are")
                .asynchronous()
                .operand("context", CONTEXT)
                .operand("dst", HOST_BUFFER)
                .operand("src", BUFFER)
                .operand("size", I64)
                .operand("stream", STREAM)
                .operand("chain", Chain)
                .result("done", Chain)),
            &[BEGIN, BUFFERS, copy, "%c10 = tfrt_cuda.mem.copy_device_to_host %context, %h, %x, %size, %stream, %c9"],
        ),
    ];
    for (name, elements) in [
        ("tfrt_cuda.tensor.make.i8", 16),
        ("tfrt_cuda.tensor.make.i32", 4),
        ("tfrt_cuda.tensor.make.i64", 2),
        ("tfrt_cuda.tensor.make.f32", 4),
        ("tfrt_cuda.tensor.make.f64", 2),
    ] {
        let shape = format!(
            "%shape = ts.build_shape [{elements} : i64]\n%tensor, %c8 = {name} %b, %shape, %c7"
        );
        all.push(shown(
            super::tfrt_gpu::tensor_make(op(
                name,
                "A tensor of a buffer's elements, which shares its memory",
            ))
            .operand("buffer", BUFFER)
            .operand("shape", SHAPE)
            .operand("chain", Chain)
            .result("tensor", TENSOR)
            .result("done", Chain),
            &[BEGIN, allocate, &shape],
        ));
    }
    all
}

fn copy_sizes(definition: OpDef) -> OpDef {
    definition
        .fails(
            "InvalidArgument",
            "NAME failed: destination buffer size (N) is less than number of bytes to copy (N)",
            "the destination is too small",
        )
        .fails(
            "InvalidArgument",
            "NAME failed: source buffer size (N) is less than number of bytes to copy (N)",
            "the source is too small",
        )
}

fn modules() -> Vec<OpDef> {
    let load = "%c7 = tfrt_cuda.module.load_static %context, %c6 {funcs_per_module = [1 : i32], functions = [\"Kernel\"], modules = [\".version 6.0\\n.target sm_35\\n.address_size 64\\n.visible .entry Kernel() { ret; }\"]}\n";
    vec![
        shown(
            op("tfrt_cuda.module.load_static", "Loads modules, and numbers their kernels from 0 on")
                .details("Once for a device in a request's resources.")
                .operand("context", CONTEXT)
                .operand("chain", Chain)
                .result("done", Chain)
                .attribute("modules", AttributeKind::Any, "texts of PTX, or compiled images")
                .attribute("funcs_per_module", AttributeKind::Array(I32), "how many of the kernels are in each")
                .attribute("functions", AttributeKind::Any, "the names of the kernels, module by module")
                .fails("InvalidArgument", "CUDA module table spec is malformed; REASON", "the attributes don't fit each other")
                .fails("AlreadyExists", "Unable to load CUDA module table. Table has already been created for device N", "there is one"),
            &[BEGIN, load],
        ),
        shown(
            op("tfrt_cuda.launch", "Queues a launch of a kernel")
                .operand("chain", Chain)
                .operand("context", CONTEXT)
                .operand("grid_dim_x", UI32)
                .operand("grid_dim_y", UI32)
                .operand("grid_dim_z", UI32)
                .operand("block_dim_x", UI32)
                .operand("block_dim_y", UI32)
                .operand("block_dim_z", UI32)
                .operand("shared_memory_size_bytes", UI32)
                .operand("stream", STREAM)
                .rest("args")
                .result("done", Chain)
                .attribute("function_handle", AttributeKind::Number(UI64), "the number of the kernel")
                .fails("FailedPrecondition", "CUDA module table has not been initialized for device N", "no modules were loaded")
                .fails("InvalidArgument", "Unsupported argument type provided to tfrt_cuda.launch.", "an argument is neither a buffer nor a number")
                .format("operand operand operand operand operand operand operand operand operand operand attr-dict[ (operands) : (type(operands))]"),
            &[BEGIN, load, "%one = tfrt.constant.ui32 1\n%zero = tfrt.constant.ui32 0\n%c8 = tfrt_cuda.launch %c7 %context %one %one %one %one %one %one %zero %stream {function_handle = 0 : ui64}"],
        ),
    ]
}

fn gemm_begin(definition: OpDef) -> OpDef {
    definition
        .operand("context", CONTEXT)
        .operand("handle", BLAS)
        .operand("transa", I32)
        .operand("transb", I32)
        .operand("m", I32)
        .operand("n", I32)
        .operand("k", I32)
        .operand("alpha", F32)
}

fn blas() -> Vec<OpDef> {
    let gemm = "%c10 = tfrt_cuda.blas.gemm.f32 %context, %blas, %zero, %zero, %n, %n, %n, %alpha, %x, %n, %x, %n, %alpha, %y, %n, %c9";
    let ex = "%c10 = tfrt_cuda.blas.gemm.ex %context, %blas, %zero, %zero, %n, %n, %n, %alpha, %x, %zero, %n, %x, %zero, %n, %alpha, %y, %zero, %n, %zero, %zero, %c9";
    let batched = "%stride = tfrt.constant.i64 4\n%c10 = tfrt_cuda.blas.gemm.strided.batched.ex %context, %blas, %zero, %zero, %n, %n, %n, %alpha, %x, %zero, %n, %stride, %x, %zero, %n, %stride, %alpha, %y, %zero, %n, %stride, %one, %zero, %zero, %c9";
    let wrong = |definition: OpDef| {
        definition.fails(
            "InvalidArgument",
            "Invalid WHAT value: N",
            "a number stands for no value of the library",
        )
    };
    vec![
        shown(
            op(
                "tfrt_cuda.blas.create",
                "A handle of the library of linear algebra",
            )
            .operand("context", CONTEXT)
            .result("handle", BLAS),
            &[BEGIN, BUFFERS, HANDLE],
        ),
        shown(
            op(
                "tfrt_cuda.blas.set_stream",
                "Says which stream a handle's work goes to",
            )
            .operand("handle", BLAS)
            .operand("stream", STREAM)
            .operand("chain", Chain)
            .result("done", Chain),
            &[BEGIN, BUFFERS, HANDLE],
        ),
        shown(
            op(
                "tfrt_cuda.blas.axpy.f32",
                "Queues `y = alpha * x + y` of vectors",
            )
            .operand("context", CONTEXT)
            .operand("handle", BLAS)
            .operand("n", I32)
            .operand("alpha", F32)
            .operand("x", BUFFER)
            .operand("incx", I32)
            .operand("y", BUFFER)
            .operand("incy", I32)
            .operand("chain", Chain)
            .result("done", Chain),
            &[
                BEGIN,
                BUFFERS,
                HANDLE,
                "%c10 = tfrt_cuda.blas.axpy.f32 %context, %blas, %n, %alpha, %x, %one, %y, %one, %c9",
            ],
        ),
        shown(
            wrong(
                gemm_begin(op(
                    "tfrt_cuda.blas.gemm.f32",
                    "Queues `C = alpha * A * B + beta * C` of matrices by columns",
                ))
                .operand("A", BUFFER)
                .operand("lda", I32)
                .operand("B", BUFFER)
                .operand("ldb", I32)
                .operand("beta", F32)
                .operand("C", BUFFER)
                .operand("ldc", I32)
                .operand("chain", Chain)
                .result("done", Chain),
            ),
            &[BEGIN, BUFFERS, HANDLE, gemm],
        ),
        shown(
            wrong(
                gemm_begin(op(
                    "tfrt_cuda.blas.gemm.ex",
                    "Queues a product of matrices whose types are given",
                ))
                .details("Types are those of CUDA: 0 is `f32`, 1 `f64`, 2 `f16`.")
                .operand("A", BUFFER)
                .operand("Atype", I32)
                .operand("lda", I32)
                .operand("B", BUFFER)
                .operand("Btype", I32)
                .operand("ldb", I32)
                .operand("beta", F32)
                .operand("C", BUFFER)
                .operand("Ctype", I32)
                .operand("ldc", I32)
                .operand("computeType", I32)
                .operand("algo", I32)
                .operand("chain", Chain)
                .result("done", Chain),
            ),
            &[BEGIN, BUFFERS, HANDLE, ex],
        ),
        shown(
            wrong(
                gemm_begin(op(
                    "tfrt_cuda.blas.gemm.strided.batched.ex",
                    "Queues products of matrices that lie so many elements apart",
                ))
                .operand("A", BUFFER)
                .operand("Atype", I32)
                .operand("lda", I32)
                .operand("strideA", I64)
                .operand("B", BUFFER)
                .operand("Btype", I32)
                .operand("ldb", I32)
                .operand("strideB", I64)
                .operand("beta", F32)
                .operand("C", BUFFER)
                .operand("Ctype", I32)
                .operand("ldc", I32)
                .operand("strideC", I64)
                .operand("batch_count", I32)
                .operand("computeType", I32)
                .operand("algo", I32)
                .operand("chain", Chain)
                .result("done", Chain),
            ),
            &[BEGIN, BUFFERS, HANDLE, batched],
        ),
    ]
}

fn dnn() -> Vec<OpDef> {
    let forward = "%f = tfrt_cuda.dnn.pooling_forward %context, %dnn, %pool, %alpha, %desc, %x, %beta, %small, %y, %d9\n";
    let backward = "%g = tfrt_cuda.dnn.pooling_backward %context, %dnn, %pool, %alpha, %small, %y, %small, %y, %desc, %x, %beta, %desc, %x, %f";
    let destroy = |name: &'static str, kind: ValueKind, line: &'static str| {
        shown(
            op(name, "Gives up a handle or descriptor")
                .operand("object", kind)
                .operand("chain", Chain)
                .result("done", Chain),
            &[BEGIN, BUFFERS, DESCRIPTORS, line],
        )
    };
    vec![
        shown(
            op("tfrt_cuda.dnn.create", "A handle of the library of neural networks")
                .operand("context", CONTEXT)
                .operand("chain", Chain)
                .result("handle", DNN)
                .result("done", Chain),
            &[BEGIN, BUFFERS, DESCRIPTORS],
        ),
        destroy("tfrt_cuda.dnn.destroy", DNN, "%e = tfrt_cuda.dnn.destroy %dnn, %d9"),
        shown(
            op("tfrt_cuda.dnn.set_stream", "Says which stream a handle's work goes to")
                .operand("handle", DNN)
                .operand("stream", STREAM)
                .operand("chain", Chain)
                .result("done", Chain),
            &[BEGIN, BUFFERS, DESCRIPTORS],
        ),
        shown(
            op("tfrt_cuda.dnn.get_stream", "The stream that a handle's work goes to")
                .operand("handle", DNN)
                .operand("chain", Chain)
                .result("stream", STREAM)
                .result("done", Chain)
                .fails("FailedPrecondition", "expected a handle whose stream was set", "it was not"),
            &[BEGIN, BUFFERS, DESCRIPTORS, "%stream2, %e = tfrt_cuda.dnn.get_stream %dnn, %d9"],
        ),
        shown(
            op("tfrt_cuda.dnn.create_pooling_descriptor", "A pooling: its kind and its windows")
                .details("Modes: 0 maximum, 1 mean with the padding, 2 mean without it, 3 as 0. `nan` is 0 or 1: whether a NaN wins.")
                .operand("context", CONTEXT)
                .operand("mode", UI32)
                .operand("nan", UI32)
                .operand("window", TENSOR)
                .operand("paddings", TENSOR)
                .operand("strides", TENSOR)
                .operand("chain", Chain)
                .result("descriptor", POOLING)
                .result("done", Chain),
            &[BEGIN, BUFFERS, DESCRIPTORS],
        ),
        destroy("tfrt_cuda.dnn.destroy_pooling_descriptor", POOLING, "%e = tfrt_cuda.dnn.destroy_pooling_descriptor %pool, %d9"),
        shown(
            op("tfrt_cuda.dnn.create_tensor_descriptor", "A tensor's type, dimensions and strides")
                .details("Types: 0 `f32`, 1 `f64`, 2 `f16`.")
                .operand("context", CONTEXT)
                .operand("dtype", UI32)
                .operand("dims", TENSOR)
                .operand("strides", TENSOR)
                .operand("chain", Chain)
                .result("descriptor", TENSOR_DESCRIPTOR)
                .result("done", Chain),
            &[BEGIN, BUFFERS, DESCRIPTORS],
        ),
        destroy("tfrt_cuda.dnn.destroy_tensor_descriptor", TENSOR_DESCRIPTOR, "%e = tfrt_cuda.dnn.destroy_tensor_descriptor %desc, %d9"),
        shown(
            super::tfrt_gpu::sizes(op("tfrt_cuda.dnn.pooling_forward", "Queues a pooling: `y = alpha * pool(x) + beta * y`"))
                .operand("context", CONTEXT)
                .operand("handle", DNN)
                .operand("pooling", POOLING)
                .operand("alpha", F32)
                .operand("x_desc", TENSOR_DESCRIPTOR)
                .operand("x", BUFFER)
                .operand("beta", F32)
                .operand("y_desc", TENSOR_DESCRIPTOR)
                .operand("y", BUFFER)
                .operand("chain", Chain)
                .result("done", Chain),
            &[BEGIN, BUFFERS, DESCRIPTORS, forward],
        ),
        shown(
            super::tfrt_gpu::sizes(op("tfrt_cuda.dnn.pooling_backward", "Queues the gradient of a pooling"))
                .operand("context", CONTEXT)
                .operand("handle", DNN)
                .operand("pooling", POOLING)
                .operand("alpha", F32)
                .operand("y_desc", TENSOR_DESCRIPTOR)
                .operand("y", BUFFER)
                .operand("dy_desc", TENSOR_DESCRIPTOR)
                .operand("dy", BUFFER)
                .operand("x_desc", TENSOR_DESCRIPTOR)
                .operand("x", BUFFER)
                .operand("beta", F32)
                .operand("dx_desc", TENSOR_DESCRIPTOR)
                .operand("dx", BUFFER)
                .operand("chain", Chain)
                .result("done", Chain),
            &[BEGIN, BUFFERS, DESCRIPTORS, forward, backward],
        ),
    ]
}
