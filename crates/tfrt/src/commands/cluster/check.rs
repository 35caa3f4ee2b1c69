//! `tfrt cluster check`: whether each task reaches each other, and how fast.

use std::time::Duration;

use serde::Serialize;
use tfrt::Runtime;
use tfrt_async::{ClusterTask, Error};
use tfrt_dist::context::ContextRef;
use tfrt_dist::message::{Probed, Reply};
use tfrt_dist::probe::{self, MAX_BYTES};
use tfrt_dist::transport::Bounds;
use tfrt_run::QueueOption;

use crate::commands::member::{Plan, refused};
use crate::commands::{print_json, print_line, worker};
use crate::console::{Console, duration};
use crate::failure::{ExitStatus, Failure};
use crate::options::ClusterCheckOptions;

/// The time that the probe of one connection may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The document of `tfrt cluster check --json`.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    n_tasks: usize,
    bytes: usize,
    connections: Vec<Connection>,
}

/// A connection from one task to another.
#[derive(Serialize)]
struct Connection {
    from: String,
    to: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    round_trip_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_second: Option<f64>,
    /// How far the clock of `to` is ahead.
    #[serde(skip_serializing_if = "Option::is_none")]
    clock_offset_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Joins the others, and measures all connections; on a task that does not lead, does as the lead asks.
pub fn check(options: &ClusterCheckOptions, console: &Console) -> Result<ExitStatus, Failure> {
    if options.bytes as u64 > MAX_BYTES {
        let found = options.bytes;
        return Err(Failure::Usage(format!(
            "--bytes: expected at most {MAX_BYTES}, found {found}"
        )));
    }
    let source = options.member.cluster.as_deref().unwrap_or("auto");
    let plan = Plan::new(&options.member, Some(source), true)?;
    if !plan.leads() {
        return worker::serve(&plan, QueueOption::DEFAULT, None, console);
    }
    let runtime = Runtime::new();
    let joined = plan.listen(&runtime, console)?.join();
    let membership = joined.map_err(|error| refused(&error))?;
    let context = membership.context();
    let tasks: Vec<ClusterTask> = context
        .config()
        .cluster
        .tasks()
        .map(|(task, _)| task)
        .collect();
    let pairs = tasks
        .iter()
        .flat_map(|from| tasks.iter().map(move |to| (from, to)));
    let mut connections = Vec::new();
    for (from, to) in pairs.filter(|(from, to)| from != to) {
        let probed = probe(context, from, to, options.bytes);
        let connection = Connection::new((from, to), &probed, options.bytes);
        if !options.json {
            print_line(&connection.line())?;
        }
        connections.push(connection);
    }
    let n_tasks = tasks.len();
    drop(membership);
    let n_failed = connections.iter().filter(|one| one.error.is_some()).count();
    if options.json {
        let (schema, bytes) = ("tfrt.cluster-check/1", options.bytes);
        print_json(&Document {
            schema,
            n_tasks,
            bytes,
            connections,
        })?;
    } else if n_failed == 0 {
        let n_connections = n_tasks * (n_tasks - 1);
        print_line(&format!(
            "{n_tasks} tasks: all {n_connections} connections work"
        ))?;
    }
    match n_failed {
        0 => Ok(ExitStatus::Fine),
        n => Err(refused(&Error::unavailable(format!(
            "{n} of {} connections do not work",
            n_tasks * (n_tasks - 1)
        )))),
    }
}

/// Has one task measure its connection to another, by so many bytes.
///
/// # Errors
///
/// The reason why it can't.
pub fn probe(
    context: &ContextRef,
    from: &ClusterTask,
    to: &ClusterTask,
    n_bytes: usize,
) -> Result<Probed, Error> {
    let host = context.host();
    let until = host.now() + TIMEOUT;
    let bounds = Bounds {
        deadline: Some(until),
        ..Bounds::default()
    };
    let handle = context.handle_of(from)?;
    let reply = probe::probe(context, handle, to, n_bytes as u64, bounds);
    let awaited = host
        .queue()
        .await_until(&[reply.as_any().clone()], Some(until));
    awaited.map_err(|error| Error::internal(error.to_string()))?;
    match reply.settled().get() {
        Some(Ok(Reply::Probed(probed))) => Ok(*probed),
        Some(Err(error)) => Err(error.clone()),
        Some(Ok(_)) => Err(Error::internal(format!(
            "{from} has answered something else"
        ))),
        None => Err(Error::deadline_exceeded(format!(
            "no answer of {from} within {TIMEOUT:?}"
        ))),
    }
}

impl Connection {
    fn new(
        (from, to): (&ClusterTask, &ClusterTask),
        probed: &Result<Probed, Error>,
        n_bytes: usize,
    ) -> Connection {
        let seconds = |probed: &Probed| probed.sending.as_secs_f64();
        let rate =
            |probed: &Probed| (seconds(probed) > 0.0).then(|| n_bytes as f64 / seconds(probed));
        let round_trip = |probed: &Probed| u64::try_from(probed.round_trip.as_nanos()).ok();
        Connection {
            from: from.to_string(),
            to: to.to_string(),
            round_trip_ns: probed.as_ref().ok().and_then(round_trip),
            bytes_per_second: probed.as_ref().ok().and_then(rate),
            clock_offset_ns: probed.as_ref().ok().map(|probed| probed.clock_offset_ns),
            error: probed.as_ref().err().map(ToString::to_string),
        }
    }

    fn line(&self) -> String {
        let Connection { from, to, .. } = self;
        match &self.error {
            Some(error) => format!("{from} to {to}: {error}"),
            None => {
                let round_trip = duration(self.round_trip_ns.unwrap_or_default() as f64);
                let rate = self.bytes_per_second.unwrap_or_default() / 1e9;
                let offset = self.clock_offset_ns.unwrap_or_default();
                let sign = if offset < 0 { '-' } else { '+' };
                let offset = duration(offset.unsigned_abs() as f64);
                format!(
                    "{from} to {to}: round trip {round_trip}, {rate:.2} GB/s, clock {sign}{offset}"
                )
            }
        }
    }
}
