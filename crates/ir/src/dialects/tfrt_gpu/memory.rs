//! Memory of devices and of the host: buffers, copies, fills, tensors.

use super::{ALLOCATOR, BEGIN, BUFFER, BUFFERS, CONTEXT, STREAM, op, pure, shown, tensor_make};
use crate::dialect::{
    AttributeKind, OpDef,
    ValueKind::{Any, Chain, I64, UI64},
};
use crate::dialects::tfrt_dht::{BUFFER as HOST_BUFFER, SHAPE, TENSOR};

pub(super) fn definitions() -> Vec<OpDef> {
    let mut all = buffers();
    all.extend(tensors());
    all
}

fn buffers() -> Vec<OpDef> {
    let host = "%t = tfrt_dht.create_uninitialized_tensor.f32.1 [4 : i64]\n%c3 = tfrt_dht.fill_tensor_with_constant.f32 %t, %c0 1.0 : f32\n%h, %c4 = tfrt_dht.get_buffer %t, %c3\n";
    let pinned =
        "%size = tfrt.constant.i64 4\n%p = tfrt_gpu.mem.allocate_host %context, %size, %c0\n";
    let negative = |definition: OpDef| {
        definition.fails(
            "InvalidArgument",
            "expected a number of bytes to allocate, found N",
            "it is negative",
        )
    };
    vec![
        shown(
            op("tfrt_gpu.allocator.create", "An allocator of a device's memory")
                .operand("context", CONTEXT)
                .result("allocator", ALLOCATOR),
            &[BEGIN, BUFFERS],
        ),
        shown(
            negative(op("tfrt_gpu.mem.allocate", "A buffer of so many bytes of a device's memory, for work of a stream"))
                .details("Its contents are anything. Work of other streams on it must wait for what the stream was given before.")
                .operand("allocator", ALLOCATOR)
                .operand("stream", STREAM)
                .operand("size", I64)
                .operand("chain", Chain)
                .result("buffer", BUFFER),
            &[BEGIN, BUFFERS],
        ),
        shown(
            negative(op("tfrt_gpu.mem.allocate_host", "A pinned buffer of the host, which kernels reach by its address"))
                .details("It is zeros. While commands may use it, the host can't; a synchronisation gives it back.")
                .operand("context", CONTEXT)
                .operand("size", I64)
                .operand("chain", Chain)
                .result("buffer", BUFFER),
            &[BEGIN, pinned],
        ),
        shown(
            op("tfrt_gpu.mem.deallocate", "Gives a buffer's memory back, behind what a stream was given")
                .operand("buffer", BUFFER)
                .operand("stream", STREAM)
                .operand("chain", Chain)
                .result("done", Chain)
                .fails("FailedPrecondition", "the buffer was given back", "it was, by this operation before"),
            &[BEGIN, BUFFERS, "%c3 = tfrt_gpu.mem.deallocate %x, %stream, %c2"],
        ),
        shown(
            op("tfrt_gpu.mem.copy", "Queues a copy between buffers of equal size")
                .details("Of a copy from the host, its bytes are read when the kernel runs; the chain of a copy to the host is there when the bytes are. Both buffers are `!tfrt_gpu.buffer` or `!ht.host_buffer`.")
                .asynchronous()
                .operand("dst", Any)
                .operand("src", Any)
                .operand("stream", STREAM)
                .operand("chain", Chain)
                .result("done", Chain)
                .fails("InvalidArgument", "Buffer sizes don't match: N (dst size) vs N (src size)", "they differ")
                .format("operand, operand, operand, operand attr-dict : type(any)"),
            &[BEGIN, BUFFERS, "%c3 = tfrt_gpu.mem.copy %y, %x, %stream, %c2 : !tfrt_gpu.buffer, !tfrt_gpu.buffer"],
        ),
        shown(
            op("tfrt_gpu.mem.set", "Queues the filling of a buffer with a value of four bytes")
                .operand("buffer", BUFFER)
                .operand("value", Any)
                .operand("stream", STREAM)
                .operand("chain", Chain)
                .result("done", Chain)
                .fails("InvalidArgument", "Expected 32 bit value.", "it is neither `i32`, `ui32` nor `f32`")
                .format("operand, operand, operand, operand attr-dict : type(any)"),
            &[BEGIN, BUFFERS],
        ),
        shown(
            op("tfrt_gpu.mem.register", "A buffer of the host that is pinned, and that kernels reach by its address")
                .details("While commands may use it, the host can't; a synchronisation gives it back.")
                .operand("context", CONTEXT)
                .operand("buffer", HOST_BUFFER)
                .result("registered", BUFFER),
            &[BEGIN, BUFFERS, host, "%r = tfrt_gpu.mem.register %context, %h"],
        ),
        shown(
            pure("tfrt_gpu.mem.view", "A part of a buffer, which keeps the whole")
                .operand("buffer", BUFFER)
                .operand("offset", UI64)
                .operand("size", UI64)
                .result("part", BUFFER)
                .fails("InvalidArgument", "buffer size (N) is smaller than offset (N) plus size (N)", "it is not within"),
            &[BEGIN, BUFFERS, "%at = tfrt.constant.ui64 4\n%part = tfrt_gpu.mem.view %x, %at, %at"],
        ),
        shown(
            op("tfrt_gpu.mem.load", "The value in a pinned buffer of the host")
                .asynchronous()
                .operand("buffer", BUFFER)
                .operand("chain", Chain)
                .result("value", Any)
                .attribute("type", AttributeKind::Any, "the type of the value: `i1` or `i32`")
                .fails("InvalidArgument", "unsupported type", "it is another one")
                .fails("InvalidArgument", "expected memory that the host reads, found memory of a device", "it is not pinned memory of the host")
                .format("operand, operand attr-dict : type($type)"),
            &[BEGIN, pinned, "%value = tfrt_gpu.mem.load %p, %c0 : i32\n%c1 = tfrt.print.i32 %value, %c0"],
        )
        .prints("int32 = 0"),
        shown(
            op("tfrt_gpu.mem.print_metadata", "Prints where a buffer lies and how large it is")
                .operand("buffer", BUFFER)
                .operand("chain", Chain)
                .result("done", Chain),
            &[BEGIN, BUFFERS, "%c3 = tfrt_gpu.mem.print_metadata %x, %c2"],
        )
        .prints("GpuBuffer<pointer=0x..."),
    ]
}

fn tensors() -> Vec<OpDef> {
    let mut all = vec![
        shown(
            op("tfrt_gpu.tensor.print_metadata", "Prints type, shape and place of a tensor on a GPU")
                .operand("tensor", TENSOR)
                .operand("chain", Chain)
                .result("done", Chain),
            &[BEGIN, BUFFERS, "%shape = ts.build_shape [2 : i64, 2 : i64]\n%tensor = tfrt_gpu.tensor.make.f32 %x, %shape, %c2\n%c3 = tfrt_gpu.tensor.print_metadata %tensor, %c2"],
        )
        .prints("DenseGpuTensor<dtype=f32, shape=[2, 2], pointer=0x..."),
    ];
    for (name, elements) in [
        ("tfrt_gpu.tensor.make.i8", 16),
        ("tfrt_gpu.tensor.make.i32", 4),
        ("tfrt_gpu.tensor.make.i64", 2),
        ("tfrt_gpu.tensor.make.f32", 4),
        ("tfrt_gpu.tensor.make.f64", 2),
    ] {
        let make =
            format!("%shape = ts.build_shape [{elements} : i64]\n%tensor = {name} %x, %shape, %c2");
        all.push(shown(
            tensor_make(op(
                name,
                "A tensor of a buffer's elements, which shares its memory",
            ))
            .operand("buffer", BUFFER)
            .operand("shape", SHAPE)
            .operand("chain", Chain)
            .result("tensor", TENSOR),
            &[BEGIN, BUFFERS, &make],
        ));
    }
    all
}
