//! Benchmarks: run a function again and again, and print the times.
//!
//! Both kinds run to warm up first, then until so many runs were timed or so much time was spent
//! in them. The asynchronous kind runs the function as a task, and the next run begins when the
//! result is there.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tfrt_host::kernel::{Attr, Call, Function, KernelRegistry, Rest, Step};
use tfrt_host::{AnyAsyncValue, Chain, Error, ExecutionContext, FunctionKind, HostContext};

use crate::text::Exponential;

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt_test.benchmark", benchmark)
        .add("tfrt_test.sync_benchmark", sync_benchmark);
}

/// `tfrt_test.benchmark "add"(%c : i32) duration_secs = 1, max_count = 100 { .. }`
fn benchmark(
    arguments: Rest,
    duration_secs: Attr<i32>,
    max_count: Attr<i32>,
    name: Attr<&str>,
    num_warmup_runs: Attr<i32>,
    body: Function,
    host: &HostContext,
) -> Result<Step, Error> {
    if body.n_results() != 1 {
        return Err(Error::unknown(
            "Benchmark op requires the input function have exactly one return value",
        ));
    }
    let runner = Runner {
        timings: Timings::new(*name, *num_warmup_runs, *max_count, *duration_secs),
        body,
        arguments: arguments.0,
        host: host.clone(),
    };
    Ok(runner.run())
}

/// The state of an asynchronous benchmark between two runs.
struct Runner {
    timings: Timings,
    body: Function,
    arguments: Vec<AnyAsyncValue>,
    host: HostContext,
}

impl Runner {
    fn run(mut self) -> Step {
        let run = self.timings.start();
        let call = Call::new(self.body.clone(), self.arguments.clone());
        Step::spawn(call, move |result| {
            Step::when_settled(result, move |result| {
                self.timings.stop(run);
                drop(result);
                if self.timings.wants_more() {
                    return self.run();
                }
                self.host.output().print(self.timings.summary());
                Step::done(vec![AnyAsyncValue::new(Chain)])
            })
        })
    }
}

/// `tfrt_test.sync_benchmark @fib(%n : i32) duration_secs = 1, max_count = 100`
fn sync_benchmark(
    arguments: Rest,
    duration_secs: Attr<i32>,
    max_count: Attr<i32>,
    num_warmup_runs: Attr<i32>,
    function: Function,
    context: &ExecutionContext,
) -> Result<(), Error> {
    if function.kind() != FunctionKind::Sync {
        return Err(Error::unknown(
            "SyncBenchmark op requires the input function be a sync function",
        ));
    }
    if function.n_results() != 0 {
        return Err(Error::unknown(
            "SyncBenchmark op requires the input function have zero return value",
        ));
    }
    if function.n_arguments() != arguments.len() {
        return Err(Error::unknown(
            "Incorrect number of arguments for the target function for the SyncBenchmark op",
        ));
    }
    let mut timings = Timings::new(
        function.name(),
        *num_warmup_runs,
        *max_count,
        *duration_secs,
    );
    while timings.wants_more() {
        let run = timings.start();
        let ran = function.run_synchronously(context, &arguments);
        timings.stop(run);
        ran?;
    }
    context.host().output().print(timings.summary());
    Ok(())
}

/// The times of the runs so far.
struct Timings {
    name: String,
    n_warmup_runs: i64,
    n_runs_at_most: i64,
    duration: Duration,
    n_runs: i64,
    wall: Vec<Duration>,
    cpu: Vec<Duration>,
    total_wall: Duration,
    total_cpu: Duration,
}

/// The start times of a run.
struct Run {
    wall: Instant,
    cpu: Duration,
}

impl Timings {
    fn new(name: &str, n_warmup_runs: i32, max_count: i32, duration_secs: i32) -> Self {
        let n_warmup_runs = i64::from(n_warmup_runs);
        Timings {
            name: name.to_owned(),
            n_warmup_runs,
            n_runs_at_most: n_warmup_runs + i64::from(max_count),
            duration: Duration::from_secs(u64::try_from(duration_secs).unwrap_or(0)),
            n_runs: 0,
            wall: Vec::new(),
            cpu: Vec::new(),
            total_wall: Duration::ZERO,
            total_cpu: Duration::ZERO,
        }
    }

    fn start(&mut self) -> Run {
        self.n_runs += 1;
        let cpu = processor_time();
        let wall = Instant::now();
        Run { wall, cpu }
    }

    fn stop(&mut self, run: Run) {
        if self.n_runs <= self.n_warmup_runs {
            return;
        }
        let wall = run.wall.elapsed();
        let cpu = processor_time().saturating_sub(run.cpu);
        self.total_wall += wall;
        self.total_cpu += cpu;
        self.wall.push(wall);
        self.cpu.push(cpu);
    }

    fn wants_more(&self) -> bool {
        self.n_runs < self.n_runs_at_most && self.total_wall < self.duration
    }

    /// Returns the lines to print.
    fn summary(&mut self) -> String {
        self.wall.sort_unstable();
        self.cpu.sort_unstable();
        let utilization = match self.total_wall {
            Duration::ZERO => 0.0,
            wall => self.total_cpu.as_secs_f64() * 100.0 / wall.as_secs_f64(),
        };
        let mut lines = vec![
            format!("Duration(ns): {}", self.total_wall.as_nanos()),
            format!("Count: {}", self.wall.len()),
        ];
        for (kind, times) in [("Time", &self.wall), ("CPU", &self.cpu)] {
            for (label, percent) in [("Min", 0), ("50%", 50), ("95%", 95), ("99%", 99)] {
                let time = percentile(times, percent).as_nanos();
                lines.push(format!("{kind} {label}(ns): {time}"));
            }
        }
        let utilization = Exponential(utilization);
        lines.push(format!("CPU utilization(percent): {utilization}"));
        let lines: Vec<String> = lines
            .into_iter()
            .map(|line| format!("BM:{}:{line}", self.name))
            .collect();
        lines.join("\n")
    }
}

/// Returns the time that so many percent of the sorted times are below; zero if there are none.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let index = sorted.len() * percent / 100;
    sorted.get(index).copied().unwrap_or_default()
}

/// Returns the processor time of all threads of the process.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warm_up_runs_are_not_counted() {
        let mut timings = Timings::new("add", 2, 3, 100);
        let mut n_runs = 0;
        while timings.wants_more() {
            let run = timings.start();
            timings.stop(run);
            n_runs += 1;
        }
        assert_eq!(n_runs, 5);
        let summary = timings.summary();
        let lines: Vec<&str> = summary.lines().collect();
        assert_eq!(lines.len(), 11);
        assert_eq!(lines[1], "BM:add:Count: 3");
        assert!(lines[10].starts_with("BM:add:CPU utilization(percent): "));
    }

    #[test]
    fn nothing_measured_is_summed_up_too() {
        let mut timings = Timings::new("none", -1, i32::MAX, -5);
        assert!(!timings.wants_more());
        assert!(timings.summary().contains("BM:none:Time 99%(ns): 0\n"));
    }

    #[test]
    fn percentile_is_one_of_the_times() {
        let times: Vec<Duration> = (0..10).map(Duration::from_nanos).collect();
        assert_eq!(percentile(&times, 0), times[0]);
        assert_eq!(percentile(&times, 50), times[5]);
        assert_eq!(percentile(&times, 99), times[9]);
    }
}
