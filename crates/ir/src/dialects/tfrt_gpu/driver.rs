//! Devices, contexts, streams, events, modules and launches.

use super::{
    BEGIN, BUFFERS, CONTEXT, DEVICE, EVENT, FUNCTION, KERNEL, MODULE, STREAM, keywords, op, pure,
    shown,
};
use crate::dialect::{
    AttributeKind, OpDef,
    ValueKind::{Any, Chain, I32, UI32, UI64},
};

pub(super) fn definitions() -> Vec<OpDef> {
    let mut all = objects();
    all.extend(modules());
    all
}

fn objects() -> Vec<OpDef> {
    let event = "%event = tfrt_gpu.event.create %context\n%c1 = tfrt_gpu.event.record %event, %stream, %c0\n";
    vec![
        shown(
            op(
                "tfrt_gpu.device.get",
                "The device of a number, of which the first is 0",
            )
            .operand("ordinal", I32)
            .result("device", DEVICE)
            .attribute(
                "platform",
                keywords::PLATFORM,
                "whose devices: `CUDA` or `ROCm`",
            )
            .fails(
                "Unavailable",
                "no driver of platform ROCm",
                "it is that one",
            )
            .format("$platform, operands attr-dict"),
            &[BEGIN],
        ),
        shown(
            op(
                "tfrt_gpu.context.primary",
                "The context that all users of a device in the process share",
            )
            .operand("device", DEVICE)
            .result("context", CONTEXT),
            &[BEGIN, "%primary = tfrt_gpu.context.primary %device"],
        ),
        shown(
            op(
                "tfrt_gpu.context.create",
                "A context of one's own on a device",
            )
            .operand("device", DEVICE)
            .result("context", CONTEXT),
            &[BEGIN],
        ),
        shown(
            op(
                "tfrt_gpu.stream.create",
                "A queue of commands of a device, which run in order",
            )
            .operand("context", CONTEXT)
            .result("stream", STREAM),
            &[BEGIN],
        ),
        shown(
            pure(
                "tfrt_gpu.stream.get_context",
                "The context that a stream belongs to",
            )
            .operand("stream", STREAM)
            .result("context", CONTEXT),
            &[BEGIN, "%same = tfrt_gpu.stream.get_context %stream"],
        ),
        shown(
            op(
                "tfrt_gpu.stream.wait",
                "Lets what a stream is given from now on wait for an event",
            )
            .operand("stream", STREAM)
            .operand("event", EVENT)
            .operand("chain", Chain)
            .result("done", Chain),
            &[
                BEGIN,
                event,
                "%other = tfrt_gpu.stream.create %context\n%c2 = tfrt_gpu.stream.wait %other, %event, %c1",
            ],
        ),
        shown(
            op(
                "tfrt_gpu.stream.synchronize",
                "A chain that is there when all commands of a stream are done",
            )
            .asynchronous()
            .operand("stream", STREAM)
            .operand("chain", Chain)
            .result("done", Chain),
            &[BEGIN, "%c1 = tfrt_gpu.stream.synchronize %stream, %c0"],
        ),
        shown(
            op("tfrt_gpu.event.create", "A mark that is put into a stream")
                .operand("context", CONTEXT)
                .result("event", EVENT),
            &[BEGIN, event],
        ),
        shown(
            op(
                "tfrt_gpu.event.record",
                "Puts a mark behind the commands of a stream",
            )
            .operand("event", EVENT)
            .operand("stream", STREAM)
            .operand("chain", Chain)
            .result("done", Chain),
            &[BEGIN, event],
        ),
        shown(
            op(
                "tfrt_gpu.event.synchronize",
                "A chain that is there when the stream has passed the mark",
            )
            .asynchronous()
            .operand("event", EVENT)
            .operand("chain", Chain)
            .result("done", Chain),
            &[BEGIN, event, "%c2 = tfrt_gpu.event.synchronize %event, %c1"],
        ),
        shown(
            op("tfrt_gpu.alias", "A value, once the chain is there")
                .asynchronous()
                .operand("value", Any)
                .operand("chain", Chain)
                .result("same", Any)
                .format("operand, operand attr-dict : type(any)"),
            &[
                BEGIN,
                "%same = tfrt_gpu.alias %stream, %c0 : !tfrt_gpu.stream",
            ],
        ),
    ]
}

fn modules() -> Vec<OpDef> {
    let launch = "%n = tfrt.constant.ui64 1\n%shared = tfrt.constant.ui32 0\n%c3 = tfrt_gpu.function.launch %stream, %function, blocks in (%n, %n, %n), threads in (%n, %n, %n), %shared, %c2";
    vec![
        shown(
            op("tfrt_gpu.module.load", "Kernels, of a text of PTX or a compiled image")
                .operand("context", CONTEXT)
                .result("module", MODULE)
                .attribute("data", AttributeKind::String, "the text or image, which ends in a zero")
                .fails("InvalidArgument", "data attribute must be null-terminated", "it does not end in a zero"),
            &[BEGIN, KERNEL],
        ),
        shown(
            op("tfrt_gpu.module.get_global", "The memory of a variable of a module, which the module keeps")
                .operand("module", MODULE)
                .result("buffer", super::BUFFER)
                .attribute("name", AttributeKind::String, "the variable's name"),
            &[BEGIN, KERNEL, "%table = tfrt_gpu.module.get_global %module {name = \"table\"}"],
        ),
        shown(
            op("tfrt_gpu.module.get_function", "The kernel of a name")
                .operand("module", MODULE)
                .result("function", FUNCTION)
                .attribute("name", AttributeKind::String, "the kernel's name"),
            &[BEGIN, KERNEL],
        ),
        shown(
            op("tfrt_gpu.function.launch", "Queues a launch of a kernel")
                .details("Arguments are buffers, `i32`, `f32` and `f64`.")
                .operand("stream", STREAM)
                .operand("function", FUNCTION)
                .operand("grid_dim_x", UI64)
                .operand("grid_dim_y", UI64)
                .operand("grid_dim_z", UI64)
                .operand("block_dim_x", UI64)
                .operand("block_dim_y", UI64)
                .operand("block_dim_z", UI64)
                .operand("shared_memory_size_bytes", UI32)
                .operand("chain", Chain)
                .rest("args")
                .result("done", Chain)
                .fails("InvalidArgument", "Unsupported argument type", "an argument is of another type")
                .fails("InvalidArgument", "kernel NAME takes N arguments, found N", "there are more or fewer")
                .fails("InvalidArgument", "argument N of kernel NAME has N bytes, found N", "it is of another size")
                .fails("InvalidArgument", "a grid of DIMS blocks of DIMS threads is beyond the device's DIMS", "it is")
                .format("operand, operand, blocks in (operand, operand, operand), threads in (operand, operand, operand), operand, operand[, args(operands) : (type(operands))] attr-dict"),
            &[BEGIN, BUFFERS, KERNEL, launch],
        ),
    ]
}
