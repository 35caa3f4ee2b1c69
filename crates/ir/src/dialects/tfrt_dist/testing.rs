//! Contexts of several tasks within one process, for tests; and looks at what programs hold.

use super::{CHAINS, CONFIGURATION, CONTEXT, ID, SPEC, with_two_tasks};
use crate::dialect::{
    AttributeKind, OpDef,
    ValueKind::{Chain, Device, String},
};
use crate::dialects::OPERANDS;

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        OpDef::new("tfrt_dist.test_create_configurations")
            .summary("The configurations of as many tasks as there are results")
            .details("They are tasks 0, 1, .. of the job `worker`, and form a group `all`.")
            .any_results_of("configurations", CONFIGURATION)
            .asynchronous()
            .no_effects()
            .format("attr-dict count")
            .example("%config:2 = tfrt_dist.test_create_configurations : 2"),
        OpDef::new("tfrt_dist.test_create_distributed_context")
            .summary("Makes a server for each configuration, in this process, and their contexts")
            .details("The first one is the master. The servers live as long as one of the contexts is held.")
            .rest_of("configurations", CONFIGURATION)
            .any_results_of("contexts", CONTEXT)
            .asynchronous()
            .outside()
            .format("operands attr-dict : functional-type")
            .example(with_two_tasks("")),
        OpDef::new("tfrt_dist.test_close_distributed_context")
            .summary("Ends the server of a context")
            .operand("context", CONTEXT)
            .operand("chain", Chain)
            .result("done", Chain)
            .outside()
            .format(OPERANDS)
            .example(with_two_tasks(
                "%done = tfrt_dist.test_close_distributed_context %ctx#0, %ch",
            )),
        OpDef::new("tfrt_dist.test_create_remote_chain_manager")
            .summary("A list of the latest chains of all tasks, which begins with those that are ready")
            .operand("context", CONTEXT)
            .result("chains", CHAINS)
            .allocates()
            .format(OPERANDS)
            .example(with_two_tasks(
                "%chains = tfrt_dist.test_create_remote_chain_manager %ctx#0",
            )),
        OpDef::new("tfrt_dist.test_hold_requests")
            .summary("Holds back functions that other tasks run here, until each is let through")
            .operand("context", CONTEXT)
            .operand("chain", Chain)
            .result("done", Chain)
            .outside()
            .format(OPERANDS)
            .example(with_two_tasks(
                "%held = tfrt_dist.test_hold_requests %ctx#1, %ch",
            )),
        OpDef::new("tfrt_dist.test_process_next_request")
            .summary("Lets the oldest function through that was held back, or the next one that comes")
            .operand("context", CONTEXT)
            .rest_of("after", Chain)
            .result("done", Chain)
            .outside()
            .asynchronous()
            .format(OPERANDS)
            .example(with_two_tasks(
                "%held = tfrt_dist.test_hold_requests %ctx#1, %ch
%registered = tfrt_dist.register_tfrt_function(%held, %ctx#0, %task) \"nothing\" \"func.func @nothing() { tfrt.return }\"
%spec = tfrt_dist.create_remote_execute_spec %ctx#0 {output_devices = []}
%done = tfrt_dist.remote_execute[%registered, %ctx#0, %task, %spec] \"nothing\" () : () -> ()
%passed = tfrt_dist.test_process_next_request %ctx#1",
            )),
        OpDef::new("tfrt_dist.test_register_fake_compiler_pass")
            .summary("Registers a compiler pass that gives one program, and devices for its results")
            .rest_of("devices", String)
            .attribute(
                "compiler_pass_name",
                AttributeKind::String,
                "the name of the pass; `tfrt` is the one that registered functions go through",
            )
            .attribute(
                "compiled_program",
                AttributeKind::String,
                "the program; of an empty one compilation fails",
            )
            .result("done", Chain)
            .outside()
            .format("$compiler_pass_name $compiled_program (operands) attr-dict")
            .example(
                "%device = tfrt_test.get_string {value = \"/job:worker/task:1/device:CPU:0\"}
%passed = tfrt_dist.test_register_fake_compiler_pass \"other\" \"func.func @f() { tfrt.return }\" (%device)",
            ),
        OpDef::new("tfrt_dist.test_print_remote_object_id")
            .summary("Prints the name of a remote object")
            .operand("id", ID)
            .outside()
            .format(OPERANDS)
            .example(with_two_tasks(
                "%chains = tfrt_dist.test_create_remote_chain_manager %ctx#0
%id = tfrt_dist.get_chain_for_task_handle %ch, %chains, %task
tfrt_dist.test_print_remote_object_id %id",
            ))
            .prints("RemoteObjectId{prefix_id: ..."),
        OpDef::new("tfrt_dist.test_print_remote_execute_spec")
            .summary("Prints the devices that results of a remote function are on")
            .operand("spec", SPEC)
            .outside()
            .format(OPERANDS)
            .example(with_two_tasks(
                "%spec = tfrt_dist.create_remote_execute_spec %ctx#0 {output_devices = []}
tfrt_dist.test_print_remote_execute_spec %spec",
            ))
            .prints("RemoteExecuteSpec:[ ]"),
        OpDef::new("tfrt_dist.test_get_remote_device")
            .summary("A device of any task, by its full name")
            .operand("context", CONTEXT)
            .attribute("device_name", AttributeKind::String, "the full name")
            .result("device", Device)
            .fails(
                "DeviceNotFound",
                "cannot find remote device NAME",
                "no task has it",
            )
            .no_effects()
            .format(OPERANDS)
            .example(with_two_tasks(
                "%device = tfrt_dist.test_get_remote_device %ctx#0 {device_name = \"/job:worker/task:1/device:CPU:0\"}",
            )),
    ]
}
