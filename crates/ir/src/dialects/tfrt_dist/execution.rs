//! Functions that are registered with other tasks, and run there.

use super::{CONTEXT, ID, SPEC, TASK, with_two_tasks};
use crate::dialect::{
    AttributeKind, OpDef,
    ValueKind::{Chain, I32},
};
use crate::dialects::OPERANDS;

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        registers(OpDef::new("tfrt_dist.register_tfrt_function"))
            .summary("Registers a program with a task, under the name of one of its functions")
            .result("done", Chain)
            .example(with_two_tasks(&format!(
                "%done = tfrt_dist.register_tfrt_function(%ch, %ctx#0, %task) \"one\" \"{ONE}\""
            ))),
        registers(OpDef::new("tfrt_dist.register_tf_function"))
            .summary("Registers a program that a compiler pass of the task goes over first")
            .details("The result are the devices that the pass says the function's results are on.")
            .result("spec", SPEC)
            .fails(
                "CompilationFailed",
                "Failed compiling program:NAME: WHY",
                "the pass can't compile it",
            )
            .example(with_two_tasks(&format!(
                "%device = tfrt_test.get_string {{value = \"{DEVICE}\"}}
%passed = tfrt_dist.test_register_fake_compiler_pass \"tfrt\" \"{ONE}\" (%device)
%spec = tfrt_dist.register_tf_function(%passed, %ctx#0, %task) \"one\" \"anything\"
tfrt_dist.test_print_remote_execute_spec %spec"
            )))
            .prints("RemoteExecuteSpec:[ /job:worker/task:1/device:CPU:0 ]"),
        OpDef::new("tfrt_dist.create_remote_execute_spec")
            .summary("The devices that the results of a remote function are on")
            .operand("context", CONTEXT)
            .attribute(
                "output_devices",
                AttributeKind::Strings,
                "a device for each result, by its full name",
            )
            .result("spec", SPEC)
            .fails(
                "DeviceNotFound",
                "Can't find device: NAME",
                "no task has the device",
            )
            .no_effects()
            .format(OPERANDS)
            .example(with_two_tasks(&format!(
                "%spec = tfrt_dist.create_remote_execute_spec %ctx#0 {{output_devices = [\"{DEVICE}\"]}}
tfrt_dist.test_print_remote_execute_spec %spec"
            )))
            .prints("RemoteExecuteSpec:[ /job:worker/task:1/device:CPU:0 ]"),
        executes(OpDef::new("tfrt_dist.remote_execute"))
            .summary("Runs a registered function on a task")
            .details(NAMES)
            .any_results_of("ids", ID)
            .format("\\[operand, operand, operand, operand\\] $program_name (operands) attr-dict : types")
            .example(with_two_tasks(&format!(
                "{REGISTERED}
%done, %id = tfrt_dist.remote_execute[%registered, %ctx#0, %task, %spec] \"one\" () : () -> \
                 (!tfrt_dist.remote_object_id)"
            ))),
        with_handles(executes(OpDef::new("tfrt_dist.remote_execute_th")))
            .summary("Runs a registered function on a task, with handles to tensors among its results")
            .details(
                "Results are all names, then handles to the last results, as many as the number in brackets says. A \
                 handle is there when the task has told type and shape; the tensor stays on the task.",
            )
            .format(
                "\\[operand, operand, operand, operand, $num_output_with_tensorhandle\\] $program_name (operands) attr-dict \
                 : types",
            )
            .example(with_two_tasks(&format!(
                "{TENSOR_REGISTERED}
%done, %id, %handle = tfrt_dist.remote_execute_th[%registered, %ctx#0, %task, %spec, 1] \"ones\" () : () -> \
                 (!tfrt_dist.remote_object_id, !corert.tensorhandle)"
            ))),
        with_handles(executes(OpDef::new("tfrt_dist.remote_execute_th_preallocated")))
            .summary("Runs a registered function on a task, whose results get given names")
            .details(
                "The first number in brackets says how many operands are arguments; the others are names for the results. \
                 The second is the number of results, the last ones, of which there are handles.",
            )
            .attribute(
                "num_inputs",
                AttributeKind::Typed(I32),
                "how many of the operands are arguments",
            )
            .format(
                "\\[operand, operand, operand, operand, $num_inputs, $num_output_with_tensorhandle\\] $program_name \
                 (operands) attr-dict : types",
            )
            .example(
                "func.func @registered(%ctx: !tfrt_dist.dist_context, %out: !tfrt_dist.remote_object_id) -> \
                 !corert.tensorhandle {
  %ch = tfrt.new.chain
  %task = tfrt_dist.get_task_handle %ctx {task_name = \"/job:worker/task:0\"}
  %spec = tfrt_dist.create_remote_execute_spec %ctx {output_devices = [\"/job:worker/task:0/device:CPU:0\"]}
  %done, %handle = tfrt_dist.remote_execute_th_preallocated[%ch, %ctx, %task, %spec, 0, 1] \"ones\" (%out) : \
                 (!tfrt_dist.remote_object_id) -> (!corert.tensorhandle)
  tfrt.return %handle : !corert.tensorhandle
}
",
            ),
    ]
}

const DEVICE: &str = "/job:worker/task:1/device:CPU:0";

/// A program, as it is written within a string.
const ONE: &str = "func.func @one() -> i32 { %a = tfrt.constant.i32 1 tfrt.return %a : i32 }";

const REGISTERED: &str = "%registered = tfrt_dist.register_tfrt_function(%ch, %ctx#0, %task) \"one\" \"func.func @one() -> i32 \
    { %a = tfrt.constant.i32 1 tfrt.return %a : i32 }\"
%spec = tfrt_dist.create_remote_execute_spec %ctx#0 {output_devices = [\"/job:worker/task:1/device:CPU:0\"]}";

const TENSOR_REGISTERED: &str = "%registered = tfrt_dist.register_tfrt_function(%ch, %ctx#0, %task) \"ones\" \"func.func \
    @ones() -> !corert.tensorhandle { %a = corert.const_dense_tensor dense<1> : tensor<2xi32> tfrt.return %a : \
    !corert.tensorhandle }\"
%spec = tfrt_dist.create_remote_execute_spec %ctx#0 {output_devices = [\"/job:worker/task:1/device:CPU:0\"]}";

const NAMES: &str = "Results are names, which are there at once and may be passed to further calls; the chain says that the \
    task has the results. An error in a result stays there.";

fn registers(definition: OpDef) -> OpDef {
    definition
        .operand("chain", Chain)
        .operand("context", CONTEXT)
        .operand("task", TASK)
        .attribute("program", AttributeKind::String, "the text of the program")
        .attribute(
            "program_name",
            AttributeKind::String,
            "the name of a function of the program",
        )
        .fails(
            "RemoteFunctionAlreadyExists",
            "Program NAME already registered.",
            "the task has a function of the name",
        )
        .fails(
            "NotFound",
            "Compiler pass not found for program: NAME",
            "the task has no compiler",
        )
        .fails(
            "MalformattedMlirFile",
            "Failed parsing program:NAME: WHY",
            "the text is no program that the task can load",
        )
        .fails(
            "InvalidArgument",
            "result N of `NAME` is a `TYPE`, which cannot travel",
            "a result of the function is of a type without codec",
        )
        .outside()
        .asynchronous()
        .format("(operand, operand, operand) $program_name $program attr-dict")
}

fn executes(definition: OpDef) -> OpDef {
    definition
        .operand("chain", Chain)
        .operand("context", CONTEXT)
        .operand("task", TASK)
        .operand("spec", SPEC)
        .rest_of("arguments", ID)
        .attribute(
            "program_name",
            AttributeKind::String,
            "the name by which the function was registered",
        )
        .result("done", Chain)
        .fails(
            "InvalidArgument",
            "Mismatch output devices size in RemoteExecuteSpec: A expected: B",
            "there are more or fewer results than devices",
        )
        .fails(
            "NotFound",
            "Can't find program: [NAME]",
            "nobody has registered such a function with the task",
        )
        .fails(
            "InvalidArgument",
            "Result size mismatch: fn #result: A Received #outputs: B",
            "the function has more or fewer results",
        )
        .fails(
            "InvalidArgument",
            "Argument size mismatch: fn #arg: A Received #inputs: B",
            "the function has more or fewer arguments",
        )
        .outside()
        .asynchronous()
}

fn with_handles(definition: OpDef) -> OpDef {
    definition
        .attribute(
            "num_output_with_tensorhandle",
            AttributeKind::Typed(I32),
            "the number of results, the last ones, of which there are handles",
        )
        .any_results("results")
        .fails(
            "InvalidArgument",
            "Invalid type TYPE",
            "a result of which a handle is wanted is no tensor",
        )
        .fails(
            "Internal",
            "Metadata not returned",
            "the task has told too little",
        )
}
