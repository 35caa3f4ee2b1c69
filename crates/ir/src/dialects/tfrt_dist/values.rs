//! Values that are sent and received.

use super::{CONTEXT, PAYLOAD, TASK, TENSOR, with_two_tasks};
use crate::dialect::{
    OpDef,
    ValueKind::{Chain, String},
};
use crate::dialects::OPERANDS;

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        OpDef::new("tfrt_dist.send_bytes")
            .summary("Sends a payload to a task, under a key")
            .details("The chain says that the task has it.")
            .operand("context", CONTEXT)
            .operand("task", TASK)
            .operand("key", String)
            .operand("payload", PAYLOAD)
            .result("done", Chain)
            .outside()
            .asynchronous()
            .format(OPERANDS)
            .example(with_two_tasks(
                "%key = tfrt_test.get_string {value = \"key\"}
%tensor = tfrt_dht.create_uninitialized_tensor.i32.1 [2 : i64]
%filled = tfrt_dht.fill_tensor_with_constant.i32 %tensor, %ch 7 : i32
%payload = tfrt_dist.serialize %tensor, %filled
%sent = tfrt_dist.send_bytes %ctx#0, %task, %key, %payload",
            )),
        OpDef::new("tfrt_dist.recv_bytes")
            .summary("The payload that a task sends under a key")
            .details(
                "Of several under one key each is received once, in the order in which they were sent. It fails if the \
                 task is lost.",
            )
            .operand("context", CONTEXT)
            .operand("task", TASK)
            .operand("key", String)
            .result("payload", PAYLOAD)
            .fails(
                "Unavailable",
                "task TASK is lost",
                "the task has ended, or can't be reached",
            )
            .outside()
            .asynchronous()
            .format(OPERANDS)
            .example(with_two_tasks(
                "%key = tfrt_test.get_string {value = \"key\"}
%lead = tfrt_dist.get_task_handle %ctx#1 {task_name = \"/job:worker/task:0\"}
%tensor = tfrt_dht.create_uninitialized_tensor.i32.1 [2 : i64]
%filled = tfrt_dht.fill_tensor_with_constant.i32 %tensor, %ch 7 : i32
%payload = tfrt_dist.serialize %tensor, %filled
%sent = tfrt_dist.send_bytes %ctx#0, %task, %key, %payload
%received = tfrt_dist.recv_bytes %ctx#1, %lead, %key
%again = tfrt_dist.deserialize %received
%printed = tfrt_dht.print_tensor %again, %sent",
            ))
            .prints("DenseHostTensor dtype = i32, shape = [2], values = [7, 7]"),
        OpDef::new("tfrt_dist.serialize")
            .summary("A dense tensor as a payload")
            .details(
                "It is of two buffers: type and extents as 64-bit words, and the elements, which are not copied.",
            )
            .operand("tensor", TENSOR)
            .operand("chain", Chain)
            .result("payload", PAYLOAD)
            .reads(0)
            .format(OPERANDS)
            .example(with_two_tasks(
                "%tensor = tfrt_dht.create_uninitialized_tensor.i32.1 [2 : i64]
%filled = tfrt_dht.fill_tensor_with_constant.i32 %tensor, %ch 7 : i32
%payload = tfrt_dist.serialize %tensor, %filled",
            )),
        OpDef::new("tfrt_dist.deserialize")
            .summary("The dense tensor of a payload")
            .operand("payload", PAYLOAD)
            .result("tensor", TENSOR)
            .fails(
                "InvalidArgument",
                "expected a serialized tensor of 2 buffers, found N",
                "the payload is none of a tensor",
            )
            .no_effects()
            .format(OPERANDS)
            .example(with_two_tasks(
                "%tensor = tfrt_dht.create_uninitialized_tensor.i32.1 [2 : i64]
%filled = tfrt_dht.fill_tensor_with_constant.i32 %tensor, %ch 7 : i32
%payload = tfrt_dist.serialize %tensor, %filled
%again = tfrt_dist.deserialize %payload
%printed = tfrt_dht.print_tensor %again, %filled",
            ))
            .prints("DenseHostTensor dtype = i32, shape = [2], values = [7, 7]"),
    ]
}
