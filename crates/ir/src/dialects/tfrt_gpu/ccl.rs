//! Exchange of data between devices: each calls the same operations, as one of so many ranks.

use super::{
    BEGIN, BUFFER, BUFFERS, CONTEXT, STREAM,
    keywords::{CCL_TYPE, PLATFORM, REDUCTION},
    op, shown,
};
use crate::dialect::{
    OpDef,
    ValueKind::{self, Chain, I32},
};

const HANDLE: ValueKind = ValueKind::Dialect("!tfrt_gpu.ccl.handle");
const ID: ValueKind = ValueKind::Dialect("!tfrt_gpu.ccl.id");

/// A group of one rank, in examples.
const GROUP: &str = "%id = tfrt_gpu.ccl.unique_id CUDA
%rank = tfrt.constant.i32 0
%count = tfrt.constant.i32 1
%ccl = tfrt_gpu.ccl.create %context, %rank, %count, %id
";

/// Adds operands and attribute of an exchange from one buffer to another.
fn exchange(name: &'static str, summary: &'static str) -> OpDef {
    queued(op(name, summary))
        .operand("handle", HANDLE)
        .operand("input", BUFFER)
        .operand("output", BUFFER)
        .operand("chain", Chain)
        .result("done", Chain)
        .attribute("data_type", CCL_TYPE, "the type of elements")
        .format("operand, operand, operand, $data_type, operand attr-dict")
}

fn reduced(definition: OpDef) -> OpDef {
    definition
        .attribute(
            "reduction_op",
            REDUCTION,
            "how elements of all ranks become one",
        )
        .format("operand, operand, operand, $data_type, $reduction_op, operand attr-dict")
}

fn queued(definition: OpDef) -> OpDef {
    definition.details(
        "`tfrt_gpu.ccl.execute` does it, together with the others that the handle was given.",
    )
}

pub(super) fn definitions() -> Vec<OpDef> {
    let all_reduce = "%c3 = tfrt_gpu.ccl.all_reduce %ccl, %x, %y, ncclFloat32, ncclSum, %c2\n";
    let send = "%c3 = tfrt_gpu.ccl.send %ccl, %x, %rank, ncclFloat32, %c2\n%c4 = tfrt_gpu.ccl.recv %ccl, %y, %rank, ncclFloat32, %c3\n";
    let show = |definition: OpDef, more: &str| shown(definition, &[BEGIN, BUFFERS, GROUP, more]);
    vec![
        show(
            op(
                "tfrt_gpu.ccl.unique_id",
                "What the ranks of a group know it by",
            )
            .result("id", ID)
            .attribute("platform", PLATFORM, "whose library: `CUDA` or `ROCm`")
            .format("$platform attr-dict"),
            "",
        ),
        show(
            op(
                "tfrt_gpu.ccl.create",
                "A rank's part in a group; it is there when all ranks have called this",
            )
            .asynchronous()
            .operand("context", CONTEXT)
            .operand("rank", I32)
            .operand("count", I32)
            .operand("id", ID)
            .result("handle", HANDLE)
            .fails(
                "InvalidArgument",
                "expected rank N of N to be free and in range",
                "another has it, or it is out of range",
            )
            .fails(
                "InvalidArgument",
                "expected a group of N ranks, found N",
                "ranks differ in their count",
            ),
            "",
        ),
        show(
            exchange(
                "tfrt_gpu.ccl.all_gather",
                "Gives each rank the inputs of all, one behind the other",
            ),
            "%big = tfrt_gpu.ccl.all_gather %ccl, %x, %y, ncclFloat32, %c2",
        ),
        show(
            reduced(exchange(
                "tfrt_gpu.ccl.all_reduce",
                "Gives each rank the inputs of all, reduced element by element",
            )),
            all_reduce,
        ),
        show(
            reduced(exchange(
                "tfrt_gpu.ccl.reduce_scatter",
                "Gives each rank its part of the inputs of all, reduced",
            ))
            .fails(
                "InvalidArgument",
                "Input size must be output size times ranks.",
                "it is not",
            ),
            "%c3 = tfrt_gpu.ccl.reduce_scatter %ccl, %x, %y, ncclFloat32, ncclSum, %c2",
        ),
        show(
            queued(op(
                "tfrt_gpu.ccl.send",
                "Gives a buffer's elements to one other rank",
            ))
            .operand("handle", HANDLE)
            .operand("input", BUFFER)
            .operand("peer", I32)
            .operand("chain", Chain)
            .result("done", Chain)
            .attribute("data_type", CCL_TYPE, "the type of elements")
            .format("operand, operand, operand, $data_type, operand attr-dict"),
            send,
        ),
        show(
            queued(op(
                "tfrt_gpu.ccl.recv",
                "Takes elements from one other rank into a buffer",
            ))
            .operand("handle", HANDLE)
            .operand("output", BUFFER)
            .operand("peer", I32)
            .operand("chain", Chain)
            .result("done", Chain)
            .attribute("data_type", CCL_TYPE, "the type of elements")
            .format("operand, operand, operand, $data_type, operand attr-dict"),
            send,
        ),
        show(
            exchange(
                "tfrt_gpu.ccl.all_to_all",
                "Gives rank `j` the part `j` of each rank's input",
            )
            .fails(
                "InvalidArgument",
                "Input size must equal output size.",
                "it does not",
            )
            .fails(
                "InvalidArgument",
                "Total element count must be exact multiple of comm count.",
                "it is none",
            ),
            "%c3 = tfrt_gpu.ccl.all_to_all %ccl, %x, %y, ncclFloat32, %c2",
        ),
        show(
            op(
                "tfrt_gpu.ccl.execute",
                "Queues what a handle was given, once all ranks have called this",
            )
            .asynchronous()
            .operand("stream", STREAM)
            .operand("handle", HANDLE)
            .operand("chain", Chain)
            .result("done", Chain)
            .fails(
                "InvalidArgument",
                "the ranks of a group were given different operations: MORE",
                "they don't fit each other",
            ),
            &[all_reduce, "%c4 = tfrt_gpu.ccl.execute %stream, %ccl, %c3"].concat(),
        ),
    ]
}
