//! `--stats`: a report on the time and the memory of a run, for people and for machines.

use std::fmt::Write;

use serde::Serialize;
use tfrt::Runtime;
use tfrt::asynchronous::{MemoryStats, memory_stats};
use tfrt::profile::{Sample, Statistics, ThreadTime};

use crate::commands::devices::GraphCounts;
use crate::commands::kernel_times::{KernelTimes, write_rows};
use crate::console::{counted, duration};

/// The name of the document's JSON schema.
const SCHEMA: &str = "tfrt.stats/1";

/// The report on the time and the memory of a run.
#[derive(Serialize)]
pub struct Stats {
    schema: &'static str,
    /// The time from the first kernel to the last.
    span_ns: u64,
    #[serde(flatten)]
    kernels: KernelTimes,
    threads: Vec<Thread>,
    queue: Queue,
    memory: Memory,
    /// Graphs of GPUs, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_graphs: Option<GraphCounts>,
    /// Kernels of plugins whose calls have made objects of the host and not deleted them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_behind: Vec<LeftBehind>,
    /// The number of events for which there was no room: the earliest.
    lost_events: u64,
}

#[derive(Serialize)]
struct Thread {
    name: String,
    is_worker: bool,
    busy_ns: u64,
    idle_ns: u64,
    asleep_ns: u64,
    tasks: u64,
    kernels: u64,
    steals: u64,
    stolen_tasks: u64,
    parks: u64,
}

#[derive(Serialize)]
struct Queue {
    tasks: u64,
    stolen_tasks: u64,
    overflowed_tasks: u64,
    parks: u64,
    wakes: u64,
    blocking_threads: u64,
}

#[derive(Serialize)]
struct Memory {
    allocations: u64,
    /// The number of allocations that got a block which was used before.
    recycled: u64,
    live_bytes: u64,
    /// The most bytes in any sample.
    peak_bytes: u64,
}

#[derive(Serialize)]
struct LeftBehind {
    kernel: String,
    objects: u64,
}

/// Returns the kernels of plugins that have left objects of the host behind.
fn left_behind() -> Vec<LeftBehind> {
    #[cfg(feature = "plugins")]
    let all = tfrt::capi::left_behind();
    #[cfg(not(feature = "plugins"))]
    let all: Vec<(String, u64)> = Vec::new();
    let all = all.into_iter();
    all.map(|(kernel, objects)| LeftBehind { kernel, objects })
        .collect()
}

impl Stats {
    /// Makes the report; `before` are the counters of memory when the run began.
    pub fn new(
        statistics: &Statistics,
        runtime: &Runtime,
        before: MemoryStats,
        samples: &[Sample],
    ) -> Stats {
        let queue = runtime.host().queue().stats();
        let now = memory_stats();
        let recycled = now.hits.saturating_sub(before.hits);
        let peak = samples.iter().map(|sample| sample.live_bytes).max();
        let since = |bytes: u64| bytes.saturating_sub(before.live_bytes);
        Stats {
            schema: SCHEMA,
            span_ns: statistics.span_ns,
            kernels: KernelTimes::new(statistics),
            threads: statistics.threads.iter().map(Thread::new).collect(),
            queue: Queue {
                tasks: queue.executed,
                stolen_tasks: queue.stolen,
                overflowed_tasks: queue.overflowed,
                parks: queue.parked,
                wakes: queue.woken,
                blocking_threads: queue.blocking_threads,
            },
            memory: Memory {
                allocations: recycled + now.misses.saturating_sub(before.misses),
                recycled,
                live_bytes: since(now.live_bytes),
                peak_bytes: since(peak.unwrap_or(now.live_bytes)),
            },
            gpu_graphs: GraphCounts::of(runtime),
            left_behind: left_behind(),
            lost_events: statistics.n_lost,
        }
    }

    /// Returns the tables that people are shown.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{} from the first kernel to the last\n",
            duration(self.span_ns as f64)
        );
        self.kernels.write(&mut text);
        let mut rows = vec![
            [
                "thread", "busy", "idle", "asleep", "tasks", "kernels", "steals", "parks",
            ]
            .map(str::to_owned)
            .to_vec(),
        ];
        rows.extend(self.threads.iter().map(Thread::row));
        write_rows(&mut text, &rows);
        let (queue, memory) = (&self.queue, &self.memory);
        let lines = format!(
            "\nqueue: {} tasks, {} stolen, {} overflowed; {} parks, {} wakes\n\
             memory: {} allocations, {} of them recycled; {} bytes at the peak, {} still live\n",
            queue.tasks,
            queue.stolen_tasks,
            queue.overflowed_tasks,
            queue.parks,
            queue.wakes,
            memory.allocations,
            memory.recycled,
            memory.peak_bytes,
            memory.live_bytes,
        );
        text.push_str(&lines);
        if let Some(graphs) = &self.gpu_graphs {
            writeln!(text, "{}", graphs.line()).expect("a String takes all text");
        }
        for LeftBehind { kernel, objects } in &self.left_behind {
            let objects = counted(*objects, "object");
            writeln!(
                text,
                "plugins: {kernel} has made {objects} of the host and not deleted what it made"
            )
            .expect("a String takes all text");
        }
        if self.lost_events > 0 {
            let n = self.lost_events;
            writeln!(
                text,
                "the {n} earliest events are not in these numbers: there was no room"
            )
            .expect("a String takes all text");
        }
        text
    }
}

impl Thread {
    fn new(time: &ThreadTime) -> Thread {
        Thread {
            name: time.name.clone(),
            is_worker: time.is_worker,
            busy_ns: time.busy_ns,
            idle_ns: time.idle_ns,
            asleep_ns: time.asleep_ns,
            tasks: time.n_tasks,
            kernels: time.n_kernels,
            steals: time.n_steals,
            stolen_tasks: time.n_stolen,
            parks: time.n_parks,
        }
    }

    fn row(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            duration(self.busy_ns as f64),
            duration(self.idle_ns as f64),
            duration(self.asleep_ns as f64),
            self.tasks.to_string(),
            self.kernels.to_string(),
            self.steals.to_string(),
            self.parks.to_string(),
        ]
    }
}
