//! The report on a measurement, for people and for machines.

use std::fmt::Write;

use serde::Serialize;
use tfrt::ir::visible;

use super::{Bench, Measurement, RecordedCalls};
use crate::commands::devices::GraphCounts;
use crate::commands::kernel_times::KernelTimes;
use crate::console::{counted, duration};

/// The name of the report's JSON schema.
pub const SCHEMA: &str = "tfrt.bench/1";

/// A measurement. Times are of one call.
#[derive(Serialize)]
pub struct Report {
    schema: &'static str,
    file: String,
    function: String,
    queue: String,
    threads: usize,
    calls: u64,
    /// The number of calls whose mean is one sample.
    calls_per_sample: u64,
    warm_up_ns: u64,
    measured_ns: u64,
    min_ns: f64,
    p50_ns: f64,
    p90_ns: f64,
    p99_ns: f64,
    max_ns: f64,
    mean_ns: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence_95_ns: Option<f64>,
    /// The number of groups of consecutive samples that the interval was computed from.
    confidence_groups: usize,
    calls_per_second: f64,
    /// The processor time of all threads, divided by the calls.
    processor_ns_per_call: f64,
    kernels_per_call: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_ns_per_kernel: Option<f64>,
    discarded_output_bytes: u64,
    /// Graphs of GPUs in all calls, those before the measurement too, if they were asked for and there is a GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_graphs: Option<GraphCounts>,
    /// The times of kernels in further calls, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<RecordedTimes>,
}

#[derive(Serialize)]
struct RecordedTimes {
    calls: u64,
    #[serde(flatten)]
    times: KernelTimes,
}

impl Report {
    /// Makes the report on a measurement.
    pub fn new(
        file: &str,
        bench: &Bench,
        measured: &Measurement,
        recorded: RecordedCalls,
    ) -> Report {
        let statistics = &measured.statistics;
        let mean_ns = statistics.mean;
        let nanoseconds =
            |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Report {
            schema: SCHEMA,
            file: file.to_owned(),
            function: bench.function.name().to_owned(),
            queue: bench.queue.clone(),
            threads: bench.runtime.host().queue().parallelism(),
            calls: measured.n_calls,
            calls_per_sample: measured.batch,
            warm_up_ns: nanoseconds(measured.warm_up),
            measured_ns: nanoseconds(measured.time),
            min_ns: statistics.percentile(0.0),
            p50_ns: statistics.percentile(50.0),
            p90_ns: statistics.percentile(90.0),
            p99_ns: statistics.percentile(99.0),
            max_ns: statistics.percentile(100.0),
            mean_ns,
            confidence_95_ns: statistics.confidence,
            confidence_groups: statistics.n_groups,
            calls_per_second: 1e9 / mean_ns.max(f64::MIN_POSITIVE),
            processor_ns_per_call: measured.processor.as_nanos() as f64
                / measured.n_calls.max(1) as f64,
            kernels_per_call: recorded.n_kernels,
            mean_ns_per_kernel: (recorded.n_kernels > 0)
                .then(|| mean_ns / recorded.n_kernels as f64),
            discarded_output_bytes: measured.printed_bytes,
            gpu_graphs: recorded
                .times
                .as_ref()
                .and_then(|_| GraphCounts::of(&bench.runtime)),
            stats: recorded.times.map(|times| RecordedTimes {
                calls: recorded.n_calls,
                times,
            }),
        }
    }

    /// Returns the lines that people are shown.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).expect("a String takes all text");
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        let time = |ns: f64| duration(ns);
        writeln!(
            text,
            "'{}' of {} on {}",
            visible::name(&self.function),
            visible::name(&self.file),
            counted(self.threads as u64, "thread")
        )?;
        writeln!(
            text,
            "{} in {}, after {} of warm-up",
            counted(self.calls, "call"),
            time(self.measured_ns as f64),
            time(self.warm_up_ns as f64)
        )?;
        writeln!(
            text,
            "  p50 {}, p90 {}, p99 {}; from {} to {}",
            time(self.p50_ns),
            time(self.p90_ns),
            time(self.p99_ns),
            time(self.min_ns),
            time(self.max_ns)
        )?;
        write!(text, "  mean {}", time(self.mean_ns))?;
        match self.confidence_95_ns {
            Some(width) => writeln!(
                text,
                " ± {} (95%, by Student's t over the means of {} groups in a row)",
                time(width),
                self.confidence_groups
            )?,
            None => writeln!(text, ", of too few calls for an interval")?,
        }
        write!(
            text,
            "  {:.0} calls a second, {} a call",
            self.calls_per_second,
            counted(self.kernels_per_call, "kernel")
        )?;
        match self.mean_ns_per_kernel {
            Some(ns) => writeln!(text, ", {} a kernel", time(ns))?,
            None => writeln!(text)?,
        }
        writeln!(
            text,
            "  {} of processor time a call, of all threads",
            time(self.processor_ns_per_call)
        )?;
        if self.calls_per_sample > 1 {
            let n = self.calls_per_sample;
            writeln!(
                text,
                "  percentiles are of means of {n} calls in a row: one is too short to time"
            )?;
        }
        if self.discarded_output_bytes > 0 {
            let n_bytes = self.discarded_output_bytes as f64 / self.calls.max(1) as f64;
            writeln!(
                text,
                "  what kernels printed was discarded: {n_bytes:.0} bytes a call"
            )?;
        }
        if let Some(graphs) = &self.gpu_graphs {
            writeln!(text, "  {}, in all calls", graphs.line())?;
        }
        if let Some(stats) = &self.stats {
            writeln!(
                text,
                "\nrecorded in {}:",
                counted(stats.calls, "further call")
            )?;
            stats.times.write(text);
        }
        Ok(())
    }
}
