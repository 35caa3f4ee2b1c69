//! Names and chains of tasks, and handlers of their devices.

use super::{CHAINS, CONTEXT, ID, TASK, with_two_tasks};
use crate::dialect::{
    AttributeKind, OpDef,
    ValueKind::{Chain, Device},
};
use crate::dialects::corert::{HANDLE, HANDLER};
use crate::dialects::{OPERANDS, kernel};

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        OpDef::new("tfrt_dist.get_task_handle")
            .summary("The handle of a task, by its name")
            .details("A device may stand behind the name, and is left aside.")
            .operand("context", CONTEXT)
            .attribute(
                "task_name",
                AttributeKind::String,
                "the name, as `/job:worker/task:1`",
            )
            .result("task", TASK)
            .fails(
                "InvalidArgument",
                "Error parsing task name \"NAME\": WHY",
                "the name has another form",
            )
            .fails(
                "TaskNotFound",
                "Failed to get TaskHandle for job_name=JOB, task_id=N: the job JOB does not exist.",
                "there is no such job, or no such task in it",
            )
            .no_effects()
            .format(OPERANDS)
            .example(with_two_tasks(
                "%lead = tfrt_dist.get_task_handle %ctx#0 {task_name = \"/job:worker/task:0\"}",
            )),
        OpDef::new("tfrt_dist.get_distributed_context")
            .summary("The context of the request")
            .details(
                "A function that another task has registered, and runs, has one; others have that of whoever calls them.",
            )
            .result("context", CONTEXT)
            .fails(
                "NotFound",
                "there is no distributed context: the request was not made by another task, nor given one",
                "the request has none",
            )
            .no_effects()
            .format("attr-dict")
            .example(
                "func.func @registered() -> !tfrt_dist.task_handle {
  %ctx = tfrt_dist.get_distributed_context
  %task = tfrt_dist.get_task_handle %ctx {task_name = \"/job:worker/task:0\"}
  tfrt.return %task : !tfrt_dist.task_handle
}
",
            ),
        OpDef::new("tfrt_dist.get_chain_for_task_handle")
            .summary("The name of the latest chain of a task")
            .operand("chain", Chain)
            .operand("chains", CHAINS)
            .operand("task", TASK)
            .result("id", ID)
            .fails(
                "NotFound",
                "there is no chain of the task TASK",
                "the task has told none",
            )
            .reads(1)
            .format(OPERANDS)
            .example(with_two_tasks(
                "%chains = tfrt_dist.test_create_remote_chain_manager %ctx#0
%id = tfrt_dist.get_chain_for_task_handle %ch, %chains, %task",
            )),
        OpDef::new("tfrt_dist.set_chain_for_task_handle")
            .summary("Sets the name of the latest chain of a task")
            .operand("chain", Chain)
            .operand("chains", CHAINS)
            .operand("task", TASK)
            .operand("id", ID)
            .result("done", Chain)
            .writes(1)
            .format(OPERANDS)
            .example(with_two_tasks(
                "%chains = tfrt_dist.test_create_remote_chain_manager %ctx#0
%id = tfrt_dist.get_chain_for_task_handle %ch, %chains, %task
%done = tfrt_dist.set_chain_for_task_handle %ch, %chains, %task, %id",
            )),
        kernel("tfrt_dist.get_remote_object_id_from_th")
            .summary("The name of the tensor of another task that a handle leads to")
            .operand("handle", HANDLE)
            .result("id", ID)
            .fails(
                "InvalidArgument",
                "TensorHandle is not a RemoteTensor",
                "the tensor is one of this task",
            )
            .no_effects(),
        OpDef::new("tfrt_dist.create_remote_op_handler")
            .summary("A handler that executes ops on a device of another task")
            .details(
                "Each call takes the latest chain of the task, and its own is the latest from then on, so that calls keep \
                 their order there. Operands are tensors of that task; attributes are 64-bit integers and arrays of these.",
            )
            .operand("context", CONTEXT)
            .operand("chains", CHAINS)
            .operand("device", Device)
            .result("handler", HANDLER)
            .no_effects()
            .format(OPERANDS)
            .example(with_two_tasks(
                "%chains = tfrt_dist.test_create_remote_chain_manager %ctx#0
%device = tfrt_dist.test_get_remote_device %ctx#0 {device_name = \"/job:worker/task:1/device:CPU:0\"}
%handler = tfrt_dist.create_remote_op_handler %ctx#0, %chains, %device",
            )),
    ]
}
