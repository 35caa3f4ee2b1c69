//! `--trace` and `--stats`: recording a run, and telling of it when it is over.

use std::cell::RefCell;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::Arc;

use tfrt::asynchronous::{MemoryStats, memory_stats};
use tfrt::profile::{Profile, Recorder, Statistics, write_perfetto};
use tfrt::{ConcurrentWorkQueue, Program, Runtime};
use tfrt_run::QueueOption;

use super::sampler::Sampler;
use super::stats::Stats;
use crate::commands::output;
use crate::failure::Failure;
use crate::options::RunOptions;

/// Events that are kept of each thread: 32 MiB of them, and as much again in a trace.
const CAPACITY: usize = 1 << 20;

/// What is recorded of a run, if anything.
pub struct Profiling(Option<Recorded>);

struct Recorded {
    recorder: Arc<Recorder>,
    /// Made before the run, which may take long, so that what is wrong with it is known then.
    trace: Option<(PathBuf, File)>,
    stats: bool,
    begun: RefCell<Option<Begun>>,
}

struct Begun {
    sampler: Sampler,
    before: MemoryStats,
}

impl Profiling {
    /// Decides whether to record.
    pub fn new(options: &RunOptions) -> Result<Profiling, Failure> {
        let trace = match &options.trace {
            Some(path) => {
                let file = output::create(path, &options.file, "--trace")?;
                Some((path.clone(), file))
            }
            None if options.stats => None,
            None => return Ok(Profiling(None)),
        };
        Ok(Profiling(Some(Recorded {
            recorder: Arc::new(Recorder::with_capacity(CAPACITY)),
            trace,
            stats: options.stats,
            begun: RefCell::default(),
        })))
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
        if let Some((path, file)) = &recorded.trace {
            let written = write_perfetto(&profile, &samples, name, &mut BufWriter::new(file));
            written.map_err(|reason| output::unwritten(path, reason))?;
        }
        let stats = || {
            let queue = runtime.host().queue().stats();
            let statistics = Statistics::new(&profile);
            Stats::new(&statistics, &queue, begun.before, &samples)
        };
        Ok(recorded.stats.then(stats))
    }
}
