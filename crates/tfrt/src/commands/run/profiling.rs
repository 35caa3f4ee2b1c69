//! `--trace` and `--stats`: recording a run, and telling of it when it is over.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tfrt::asynchronous::{MemoryStats, memory_stats};
use tfrt::profile::{Profile, Recorder, Sample, Statistics, write_perfetto};
use tfrt::{ConcurrentWorkQueue, Program, Runtime};
use tfrt_run::QueueOption;

use super::sampler::Sampler;
use super::stats::Stats;
use crate::failure::Failure;
use crate::options::RunOptions;

/// Events that are kept of each thread: 32 MiB of them, and as much again in a trace.
const CAPACITY: usize = 1 << 20;

/// What is recorded of a run, if anything.
pub struct Profiling(Option<Recorded>);

struct Recorded {
    recorder: Arc<Recorder>,
    trace: Option<PathBuf>,
    stats: bool,
    begun: RefCell<Option<Begun>>,
}

struct Begun {
    sampler: Sampler,
    before: MemoryStats,
}

impl Profiling {
    /// Decides whether to record.
    pub fn new(options: &RunOptions) -> Profiling {
        let is_wanted = options.trace.is_some() || options.stats;
        Profiling(is_wanted.then(|| Recorded {
            recorder: Arc::new(Recorder::with_capacity(CAPACITY)),
            trace: options.trace.clone(),
            stats: options.stats,
            begun: RefCell::default(),
        }))
    }

    /// Starts the queue of the run.
    pub fn queue(&self, queue: QueueOption) -> Result<Arc<dyn ConcurrentWorkQueue>, Failure> {
        queue.start(self.recorder()).map_err(Failure::Host)
    }

    /// What the runtime of the run records to.
    pub fn recorder(&self) -> Option<Arc<Recorder>> {
        self.0.as_ref().map(|recorded| recorded.recorder.clone())
    }

    /// The run begins.
    pub fn begin(&self, runtime: &Runtime) {
        if let Some(recorded) = &self.0 {
            *recorded.begun.borrow_mut() = Some(Begun {
                before: memory_stats(),
                sampler: Sampler::start(recorded.recorder.clone(), runtime.host().queue().clone()),
            });
        }
    }

    /// The run is over: writes the trace, and gives the statistics, as far as they were asked for.
    pub fn end(
        &self,
        runtime: &Runtime,
        program: &Program,
        name: &str,
    ) -> Result<Option<Stats>, Failure> {
        let Some(recorded) = &self.0 else {
            return Ok(None);
        };
        let Some(begun) = recorded.begun.borrow_mut().take() else {
            return Ok(None);
        };
        let samples = begun.sampler.stop();
        let recording = recorded.recorder.recording();
        let profile = Profile::new(&recording, std::slice::from_ref(program));
        if let Some(path) = &recorded.trace {
            write(path, &profile, &samples, name).map_err(|reason| Failure::Write {
                path: path.clone(),
                reason,
            })?;
        }
        let stats = || {
            let queue = runtime.host().queue().stats();
            let statistics = Statistics::new(&profile);
            Stats::new(&statistics, &queue, begun.before, &samples)
        };
        Ok(recorded.stats.then(stats))
    }
}

fn write(path: &Path, profile: &Profile, samples: &[Sample], name: &str) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    write_perfetto(profile, samples, name, &mut file)
}
