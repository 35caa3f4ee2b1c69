//! `--stats`: a report on the time and the memory of a run, for people and for machines.

use std::fmt::Write;

use serde::Serialize;
use tfrt::asynchronous::queue::QueueStats;
use tfrt::asynchronous::{MemoryStats, memory_stats};
use tfrt::ir::visible;
use tfrt::profile::{KernelTime, Sample, Statistics, ThreadTime};

use crate::console::duration;

/// The name of the document's JSON schema.
const SCHEMA: &str = "tfrt.stats/1";

/// The number of rows of a table that people are shown; machines get all.
const MAX_ROWS: usize = 20;

/// The report on the time and the memory of a run.
#[derive(Serialize)]
pub struct Stats {
    schema: &'static str,
    /// The time from the first kernel to the last.
    span_ns: u64,
    kernels: Vec<Kernel>,
    places: Vec<Kernel>,
    threads: Vec<Thread>,
    queue: Queue,
    memory: Memory,
    /// Kernels of plugins whose calls have made objects of the host and not deleted them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_behind: Vec<LeftBehind>,
    /// The number of events for which there was no room: the earliest.
    lost_events: u64,
}

#[derive(Serialize)]
struct Kernel {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    runs: u64,
    total_ns: u64,
    mean_ns: f64,
    share: f64,
    critical_ns: u64,
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
        queue: &QueueStats,
        before: MemoryStats,
        samples: &[Sample],
    ) -> Stats {
        let now = memory_stats();
        let recycled = now.hits.saturating_sub(before.hits);
        let peak = samples.iter().map(|sample| sample.live_bytes).max();
        let since = |bytes: u64| bytes.saturating_sub(before.live_bytes);
        Stats {
            schema: SCHEMA,
            span_ns: statistics.span_ns,
            kernels: statistics.kernels.iter().map(Kernel::new).collect(),
            places: statistics.places.iter().map(Kernel::new).collect(),
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
        kernel_rows(&mut text, "kernel", &self.kernels);
        kernel_rows(&mut text, "place", &self.places);
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
        for LeftBehind { kernel, objects } in &self.left_behind {
            let s = if *objects == 1 { "" } else { "s" };
            writeln!(
                text,
                "plugins: {kernel} has made {objects} object{s} of the host and not deleted what it made"
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

impl Kernel {
    fn new(time: &KernelTime) -> Kernel {
        Kernel {
            name: time.name.clone(),
            location: time.location.as_ref().map(ToString::to_string),
            runs: time.count,
            total_ns: time.total_ns,
            mean_ns: time.mean_ns(),
            share: time.share,
            critical_ns: time.critical_ns,
        }
    }

    fn row(&self) -> Vec<String> {
        let name = match &self.location {
            Some(location) => format!("{} {}", visible::name(location), self.name),
            None => self.name.clone(),
        };
        vec![
            name,
            self.runs.to_string(),
            duration(self.total_ns as f64),
            duration(self.mean_ns),
            format!("{:.1}%", 100.0 * self.share),
            duration(self.critical_ns as f64),
        ]
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

fn kernel_rows(text: &mut String, what: &str, kernels: &[Kernel]) {
    let head = [what, "runs", "total", "mean", "share", "critical"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(kernels.iter().take(MAX_ROWS).map(Kernel::row));
    write_rows(text, &rows);
    if kernels.len() > MAX_ROWS {
        writeln!(text, "and {} more", kernels.len() - MAX_ROWS).expect("a String takes all text");
    }
}

/// Writes an empty line and a table: the first column begins, the others end at the same place.
fn write_rows(text: &mut String, rows: &[Vec<String>]) {
    let n_columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..n_columns).map(width).collect();
    text.push('\n');
    for row in rows {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            match column {
                0 => write!(text, "{cell:<width$}"),
                _ => write!(text, "  {cell:>width$}"),
            }
            .expect("a String takes all text");
        }
        text.push('\n');
    }
}
