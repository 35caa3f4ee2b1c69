//! [`Statistics`]: the times of kernels and threads in a profile.

use std::collections::HashMap;

use tfrt_host::SourceLocation;

use super::{Activity, Profile, ProfiledThread};

/// The time that a kernel took, over all of its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelTime {
    /// The kernel's name.
    pub name: String,
    /// The one place where it stands in the source, if the row is about a place.
    pub location: Option<SourceLocation>,
    /// The number of runs.
    pub count: u64,
    /// The time of all runs, with what was done for them on other threads, or later.
    pub total_ns: u64,
    /// The time of runs on a critical path: making these faster makes the end come earlier.
    pub critical_ns: u64,
    /// The share in the time of all kernels.
    pub share: f64,
}

impl KernelTime {
    /// Returns the mean time of a run.
    pub fn mean_ns(&self) -> f64 {
        self.total_ns as f64 / self.count.max(1) as f64
    }
}

/// The times of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadTime {
    /// The thread's name.
    pub name: String,
    /// Whether it is a worker of a queue.
    pub is_worker: bool,
    /// The time in tasks and kernels.
    pub busy_ns: u64,
    /// The other time, from the first beginning to the end of the recording: searching and
    /// sleeping. Of threads that are no workers nobody knows what they do then.
    pub idle_ns: u64,
    /// The time asleep.
    pub asleep_ns: u64,
    /// The number of tasks that it ran.
    pub n_tasks: u64,
    /// The number of kernels that it ran.
    pub n_kernels: u64,
    /// The number of times that it took tasks from another worker.
    pub n_steals: u64,
    /// The number of tasks that it took from other workers.
    pub n_stolen: u64,
    /// The number of times that it slept.
    pub n_parks: u64,
}

/// The times of kernels and threads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// The time from the first beginning to the last end of a kernel.
    pub span_ns: u64,
    /// Kernels by name, those that took the most time first.
    pub kernels: Vec<KernelTime>,
    /// Kernels by name and place in the source, those that took the most time first.
    pub places: Vec<KernelTime>,
    /// The threads.
    pub threads: Vec<ThreadTime>,
    /// The number of events that the recorder had no room for.
    pub n_lost: u64,
}

impl Statistics {
    /// Computes the statistics of a profile.
    pub fn new(profile: &Profile) -> Statistics {
        let begin_ns = profile.slices().map(|(_, slice)| slice.begin_ns).min();
        let begin_ns = begin_ns.unwrap_or(profile.end_ns);
        let kernels = profile
            .slices()
            .filter(|(_, slice)| matches!(slice.activity, Activity::Kernel(_) | Activity::Part(_)));
        let (first, last) = kernels.fold((u64::MAX, 0), |(first, last), (_, slice)| {
            (first.min(slice.begin_ns), last.max(slice.end_ns))
        });
        let threads = profile.threads.iter();
        let time = |thread: &ProfiledThread| thread_time(thread, profile.end_ns - begin_ns);
        Statistics {
            span_ns: last.saturating_sub(first),
            kernels: kernel_times(profile, |_| None),
            places: kernel_times(profile, |index| profile.kernels[index].location.clone()),
            threads: threads.map(time).collect(),
            n_lost: profile.n_lost
                + profile
                    .threads
                    .iter()
                    .map(|thread| thread.n_lost)
                    .sum::<u64>(),
        }
    }
}

/// Adds up the times of kernels by name and by `place`.
fn kernel_times(
    profile: &Profile,
    place: impl Fn(usize) -> Option<SourceLocation>,
) -> Vec<KernelTime> {
    let mut rows: Vec<KernelTime> = Vec::new();
    let mut known: HashMap<(&str, Option<String>), usize> = HashMap::new();
    let row_of: Vec<usize> = (0..profile.kernels.len())
        .map(|index| {
            let (name, location) = (profile.kernels[index].name.as_str(), place(index));
            let key = (name, location.as_ref().map(ToString::to_string));
            *known.entry(key).or_insert_with(|| {
                rows.push(KernelTime {
                    name: name.to_owned(),
                    location,
                    count: 0,
                    total_ns: 0,
                    critical_ns: 0,
                    share: 0.0,
                });
                rows.len() - 1
            })
        })
        .collect();
    for (_, slice) in profile.slices() {
        let (index, n_runs) = match slice.activity {
            Activity::Kernel(index) => (index, 1),
            Activity::Part(index) => (index, 0),
            _ => continue,
        };
        let (row, took_ns) = (&mut rows[row_of[index]], slice.end_ns - slice.begin_ns);
        row.count += n_runs;
        row.total_ns += took_ns;
        row.critical_ns += slice.critical_path.map_or(0, |_| took_ns);
    }
    let all_ns: u64 = rows.iter().map(|row| row.total_ns).sum();
    for row in &mut rows {
        row.share = row.total_ns as f64 / all_ns.max(1) as f64;
    }
    rows.sort_by(|a, b| {
        b.total_ns
            .cmp(&a.total_ns)
            .then_with(|| a.name.cmp(&b.name))
    });
    rows
}

fn thread_time(thread: &ProfiledThread, span_ns: u64) -> ThreadTime {
    let mut time = ThreadTime {
        name: thread.name.clone(),
        is_worker: thread.is_worker,
        ..ThreadTime::default()
    };
    // Tasks hold kernels: what was counted up to an end is not counted again.
    let mut slices: Vec<_> = thread.slices.iter().collect();
    slices.sort_by_key(|slice| slice.begin_ns);
    let mut counted_ns = 0;
    for slice in slices {
        match slice.activity {
            Activity::Kernel(_) => time.n_kernels += 1,
            Activity::Part(_) => {}
            Activity::Task => time.n_tasks += 1,
            Activity::Steal(n_tasks) => {
                time.n_steals += 1;
                time.n_stolen += u64::from(n_tasks);
                continue;
            }
            Activity::Park => {
                time.n_parks += 1;
                time.asleep_ns += slice.end_ns - slice.begin_ns;
                continue;
            }
        }
        time.busy_ns += slice.end_ns.saturating_sub(slice.begin_ns.max(counted_ns));
        counted_ns = counted_ns.max(slice.end_ns);
    }
    time.idle_ns = span_ns.saturating_sub(time.busy_ns);
    time
}
