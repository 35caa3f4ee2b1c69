//! `tfrt_dist`: many tasks. Functions that run on others, values that are sent, collectives, operations on devices of
//! others.
//!
//! Objects of other tasks are values too: `!tfrt_dist.remote_object_id` names one, which may be passed on before it is
//! made.

mod collectives;
mod execution;
mod tasks;
mod testing;
mod values;

use crate::dialect::{OpDef, ValueKind};

const CONTEXT: ValueKind = ValueKind::Dialect("!tfrt_dist.dist_context");
const CONFIGURATION: ValueKind = ValueKind::Dialect("!tfrt_dist.dist_context_configuration");
const TASK: ValueKind = ValueKind::Dialect("!tfrt_dist.task_handle");
const ID: ValueKind = ValueKind::Dialect("!tfrt_dist.remote_object_id");
const SPEC: ValueKind = ValueKind::Dialect("!tfrt_dist.remote_execute_spec");
const CHAINS: ValueKind = ValueKind::Dialect("!tfrt_dist.remote_chain_manager");
const PAYLOAD: ValueKind = ValueKind::Dialect("!tfrt_dist.payload");
const TENSOR: ValueKind = ValueKind::Dialect("!t.tensor");

pub(super) fn definitions() -> Vec<OpDef> {
    let mut all = tasks::definitions();
    all.extend(execution::definitions());
    all.extend(values::definitions());
    all.extend(collectives::definitions());
    all.extend(testing::definitions());
    all
}

/// Returns a program whose `@main` has a chain `%ch`, the contexts `%ctx#0` and `%ctx#1` of two tasks, and the handle
/// `%task` of the second.
fn with_two_tasks(body: &str) -> String {
    let mut program = "func.func @main() {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : \
         (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> \
         (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %task = tfrt_dist.get_task_handle %ctx#0 {task_name = \"/job:worker/task:1\"}
"
    .to_owned();
    for line in body.lines() {
        program.push_str(&format!("  {line}\n"));
    }
    program + "  tfrt.return\n}\n"
}
