//! [`Profile`]: a recording in terms of programs: which kernel ran when, on which thread, and what the end waited for.
//!
//! # Examples
//!
//! ```
//! use std::sync::Arc;
//! use tfrt::{Runtime, profile::{Profile, Recorder, Statistics}};
//!
//! let recorder = Arc::new(Recorder::new());
//! let runtime = Runtime::builder().recorder(recorder.clone()).build();
//! let program = runtime.compile("one.mlir", "func.func @one() -> i32 {
//!   %a = tfrt.constant.i32 1
//!   tfrt.return %a : i32
//! }")?;
//! program.function("one").unwrap().call(&runtime.context(), ()).wait()?;
//!
//! let profile = Profile::new(&recorder.recording(), &[program]);
//! let statistics = Statistics::new(&profile);
//! assert_eq!(statistics.kernels[0].name, "tfrt.constant.i32");
//!
//! let mut trace = Vec::new();
//! let process = tfrt::profile::TracedProcess::alone("one.mlir");
//! tfrt::profile::write_perfetto(&profile, &[], &process, &mut trace)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use tfrt_host::SourceLocation;
use tfrt_host::record::{Event, EventKind, FunctionId, Recording};

use crate::program::Program;

mod calls;
mod critical_path;
mod graphs;
mod message;
mod perfetto;
mod report;
mod runs;
mod statistics;

pub use perfetto::{TracedProcess, write_perfetto};
pub use report::{About, CallSpan, Report, ReportedError, SourceText};
pub use statistics::{KernelTime, Statistics, ThreadTime};
pub use tfrt_host::record::{Gauge, GaugeRecording, GaugeStep, Recorder};

/// A part of the names of kernels that call an eager operation by its name.
const EXECUTE_OP: &str = ".executeop";

/// A kernel of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfiledKernel {
    /// The kernel's name, with that of the eager operation that it calls: `corert.executeop "tf.Relu"`.
    pub name: String,
    /// The function that it stands in; empty for the function of a region.
    pub function: String,
    /// The number of the kernel in the function, in the order of the file.
    pub number: u32,
    /// The place of the operation in the source, if the file has it.
    pub location: Option<SourceLocation>,
}

/// The activity of a thread during a slice of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Running a kernel: an index into [`Profile::kernels`].
    Kernel(usize),
    /// Work for a kernel that may have returned before, or that several threads work for.
    Part(usize),
    /// Running a task of the work queue, with the kernels in it.
    Task,
    /// The steal of so many tasks from another worker; it takes no time here.
    Steal(u32),
    /// Sleeping.
    Park,
}

/// A span of time in which a thread did one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The activity.
    pub activity: Activity,
    /// The beginning, in nanoseconds since the recorder was made.
    pub begin_ns: u64,
    /// The end, in nanoseconds since the recorder was made.
    pub end_ns: u64,
    /// The number of the critical path that it lies on: the kernels that the end of a run waited
    /// for, one after the other, with their parts.
    pub critical_path: Option<u32>,
}

/// The activities of one thread.
#[derive(Clone, Debug, Default)]
pub struct ProfiledThread {
    /// Its name.
    pub name: String,
    /// Whether it is a worker of a queue, whose time between tasks is idle.
    pub is_worker: bool,
    /// The slices, in the order of their ends. They don't overlap, but for kernels that lie in tasks.
    pub slices: Vec<Slice>,
    /// Slices that the recorder had no room for, all before these.
    pub n_lost: u64,
}

/// A profile of programs: the activities of all threads, in terms of their kernels.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// The kernels that ran, each once, in the order of their first ends on the first thread that
    /// ran them.
    pub kernels: Vec<ProfiledKernel>,
    /// The threads that took part.
    pub threads: Vec<ProfiledThread>,
    /// The time when the recording was read, in nanoseconds since the recorder was made.
    pub end_ns: u64,
    /// Slices of threads that ended long ago.
    pub n_lost: u64,
    /// The function and the number of each kernel.
    kernel_ids: Vec<(FunctionId, u32)>,
    /// The steps of critical paths inside of calls.
    critical_steps: HashSet<PathStep>,
}

/// A part of a critical path: a kernel, and one that waited for it last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PathStep {
    function: FunctionId,
    producer: u32,
    user: u32,
}

/// A measurement of tasks and memory at one moment, beside the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The moment, in nanoseconds since the recorder was made.
    pub at_ns: u64,
    /// The number of tasks that are queued or running.
    pub tasks: u64,
    /// Bytes in use.
    pub live_bytes: u64,
}

/// The identity of a kernel in a recording.
type KernelKey = (FunctionId, u32);

impl Profile {
    /// Makes the profile of a recording. Kernels of other programs are left out.
    pub fn new(recording: &Recording, programs: &[Program]) -> Profile {
        Profile::of_calls(recording, programs, &[])
    }

    /// Makes the profile as [`Profile::new`] does, where it is known when functions were called from outside: in
    /// nanoseconds since the recorder was made, in order. A call is then never taken for one that a kernel made before.
    pub fn of_calls(recording: &Recording, programs: &[Program], begins_ns: &[u64]) -> Profile {
        let mut named = KernelTable::default();
        let threads = recording.threads.iter().map(|thread| {
            let slices = thread.events.iter();
            ProfiledThread {
                name: thread.name.clone(),
                is_worker: thread.is_worker,
                slices: slices
                    .filter_map(|event| named.slice(event, programs))
                    .collect(),
                n_lost: thread.n_lost,
            }
        });
        let mut profile = Profile {
            threads: threads.collect(),
            kernels: Vec::new(),
            end_ns: recording.end_ns,
            n_lost: recording.n_lost,
            kernel_ids: Vec::new(),
            critical_steps: HashSet::new(),
        };
        profile.kernels = named.kernels;
        profile.kernel_ids = named.ids;
        critical_path::mark(&mut profile, recording, programs, begins_ns);
        profile
    }

    /// Returns all slices with their threads' indexes.
    pub fn slices(&self) -> impl Iterator<Item = (usize, &Slice)> {
        let threads = self.threads.iter().enumerate();
        threads.flat_map(|(index, thread)| thread.slices.iter().map(move |slice| (index, slice)))
    }
}

/// The kernels that were found so far, with their indexes.
#[derive(Default)]
struct KernelTable {
    kernels: Vec<ProfiledKernel>,
    /// The function of each kernel, and its number there.
    ids: Vec<(FunctionId, u32)>,
    /// The index of each kernel; `None` for kernels of other programs.
    indexes: HashMap<KernelKey, Option<usize>>,
}

impl KernelTable {
    fn slice(&mut self, event: &Event, programs: &[Program]) -> Option<Slice> {
        let activity = match event.kind {
            EventKind::Kernel {
                function, kernel, ..
            } => Activity::Kernel(self.index((function, kernel), programs)?),
            EventKind::Part { function, kernel } => {
                Activity::Part(self.index((function, kernel), programs)?)
            }
            EventKind::Task => Activity::Task,
            EventKind::Steal(n_tasks) => Activity::Steal(n_tasks),
            EventKind::Park => Activity::Park,
        };
        Some(Slice {
            activity,
            begin_ns: event.begin_ns,
            end_ns: event.end_ns,
            critical_path: None,
        })
    }

    fn index(&mut self, (function, kernel): KernelKey, programs: &[Program]) -> Option<usize> {
        let known = match self.indexes.entry((function, kernel)) {
            Entry::Occupied(known) => return *known.get(),
            Entry::Vacant(unknown) => unknown,
        };
        let hosted = programs.iter().map(Program::as_host_program);
        let mut found = hosted.filter_map(|program| program.recorded_kernel(function, kernel));
        let index = found.next().map(|found| {
            self.ids.push((function, found.number));
            // Eager operations are called by a few kernels, which have their names as an attribute.
            let name = match found.text {
                Some(op) if found.name.contains(EXECUTE_OP) => format!("{} \"{op}\"", found.name),
                _ => found.name.to_string(),
            };
            self.kernels.push(ProfiledKernel {
                name,
                function: found.function.name().to_owned(),
                number: found.number,
                location: found.location,
            });
            self.kernels.len() - 1
        });
        *known.insert(index)
    }
}
