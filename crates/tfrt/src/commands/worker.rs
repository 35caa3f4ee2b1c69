//! `tfrt worker`: a task that does what the lead's program asks of it, until the lead ends.

use std::path::Path;

use tfrt::{ErrorCode, Runtime};
use tfrt_dist::join::{Membership, Stopper};
use tfrt_host::Error;
use tfrt_run::QueueOption;

use super::member::{Plan, refused};
use crate::console::Console;
use crate::failure::{ExitStatus, Failure};
use crate::options::WorkerOptions;

mod trace;

use trace::TaskTrace;

/// Serves a cluster as one of its tasks.
pub fn worker(options: &WorkerOptions, console: &Console) -> Result<ExitStatus, Failure> {
    let member = &options.member;
    let plan = Plan::new(member, member.cluster.as_deref(), false)?;
    if plan.leads() {
        let lead = plan.name().unwrap_or_default();
        return Err(Failure::Usage(format!(
            "{lead} leads, and runs the program: `tfrt run --cluster ..`"
        )));
    }
    serve(&plan, options.queue, options.trace.as_deref(), console)
}

/// Joins the others, and serves until the lead ends.
pub fn serve(
    plan: &Plan<'_>,
    queue: QueueOption,
    trace: Option<&Path>,
    console: &Console,
) -> Result<ExitStatus, Failure> {
    let trace = trace.map(TaskTrace::new);
    let recorder = trace.as_ref().map(TaskTrace::recorder);
    let queue = queue.start(recorder.clone()).map_err(Failure::Host)?;
    let builder = Runtime::builder().queue(queue);
    let builder = match recorder {
        Some(recorder) => builder.recorder(recorder),
        None => builder,
    };
    let runtime = builder.build();
    if let Some(trace) = &trace {
        trace.attach(runtime.host());
    }
    let joining = plan.listen(&runtime, console)?;
    stop_by_interrupt(joining.stopper());
    let served = match joining.join() {
        Ok(membership) => {
            tell_joined(&membership, console);
            if let Some(trace) = &trace {
                trace.begin(membership.context());
            }
            membership.serve().map_err(|error| (error, true))
        }
        Err(error) => Err((error, false)),
    };
    if let Some(trace) = trace {
        trace.write(console)?;
    }
    match served {
        Ok(()) => {
            let document = serde_json::json!({ "schema": "tfrt.left/1" });
            console.document(&document, || "note: the lead has said bye\n".to_owned());
            Ok(ExitStatus::Fine)
        }
        Err((error, has_joined)) => {
            console.failure(&refused(&error));
            Err(Failure::Told(match (error.code(), has_joined) {
                (ErrorCode::Cancelled, _) => ExitStatus::Cancelled,
                (_, true) => ExitStatus::FunctionFailed,
                (_, false) => ExitStatus::Rejected,
            }))
        }
    }
}

/// Says which task this is, of how many, and who leads them.
fn tell_joined(membership: &Membership, console: &Console) {
    let config = membership.context().config();
    let (task, lead) = (config.task.to_string(), config.cluster.lead().to_string());
    let n_tasks = config.cluster.n_tasks();
    let document = serde_json::json!({
        "schema": "tfrt.joined/1", "task": task, "n_tasks": n_tasks, "lead": lead
    });
    console.document(&document, || {
        format!("note: {task} of {n_tasks} tasks has joined; {lead} leads\n")
    });
}

/// Lets Ctrl-C end the task: the first in order, the second at once.
fn stop_by_interrupt(stopper: Stopper) {
    let mut is_second = false;
    // Without a handler Ctrl-C ends the process, and the others find it lost.
    let _ = ctrlc::set_handler(move || {
        if std::mem::replace(&mut is_second, true) {
            super::output::end_process(ExitStatus::Interrupted as i32);
        }
        stopper.stop(Error::cancelled("interrupted"));
    });
}
