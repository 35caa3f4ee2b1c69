//! `--profile`, `--trace` and `--stats`: recording a run, and telling of it when it is over.

use std::cell::RefCell;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use tfrt::asynchronous::{MemoryStats, memory_stats};
use tfrt::host::memory::RecordedAllocator;
use tfrt::input::Input;
use tfrt::ir::Source;
use tfrt::profile::{
    About, CallSpan, Gauge, Profile, Recorder, Report, ReportedError, SourceText, Statistics,
    TracedProcess, write_perfetto,
};
use tfrt::{ConcurrentWorkQueue, Error, HostAllocator, Program, Runtime};
use tfrt_run::{ExitStatus, QueueOption};

use super::sampler::Sampler;
use super::stats::Stats;
use crate::commands::output::{self, Delivery, WrittenFile};
use crate::console::Console;
use crate::failure::Failure;
use crate::options::RunOptions;

/// The number of events that are kept of each thread: 32 MiB of them, and as much again in a trace.
const CAPACITY: usize = 1 << 20;

/// The number of events that are kept of each thread of an untrusted program, which may have any number of threads: a
/// MiB of them.
const CAPACITY_FOR_STRANGERS: usize = 1 << 15;

/// The number of errors that a page shows.
const MAX_ERRORS: usize = 1_000;

/// The recording of a run, if one was asked for.
pub struct Profiling(Option<RunRecording>);

struct RunRecording {
    recorder: Arc<Recorder>,
    /// The name of the input, and its text if it is one.
    input: (String, Option<Source>),
    trace: Option<PathBuf>,
    page: Option<Page>,
    stats: bool,
    /// The times at which functions were called.
    begins_ns: RefCell<Vec<u64>>,
    begun: RefCell<Option<RunStart>>,
    task: RefCell<Option<TracedTask>>,
}

/// This process as one of several tasks.
#[cfg_attr(
    not(feature = "dist"),
    expect(dead_code, reason = "there is one task without the feature")
)]
struct TracedTask {
    /// The file of the trace.
    path: PathBuf,
    name: String,
    number: u32,
    /// The time at which the recorder was made, by the clock that the tasks share.
    begin_ns: u64,
}

impl TracedTask {
    fn process(&self) -> TracedProcess<'_> {
        TracedProcess {
            name: &self.name,
            number: Some(self.number),
            begin_ns: self.begin_ns,
        }
    }
}

/// The page for `--profile`, and data for it that no recorder has.
struct Page {
    path: PathBuf,
    bytes: Arc<Gauge>,
    calls: RefCell<Vec<CallSpan>>,
    errors: RefCell<Vec<ReportedError>>,
}

struct RunStart {
    sampler: Sampler,
    before: MemoryStats,
}

/// The beginning of a call of a function from outside.
pub struct CallTimer {
    function: String,
    begin_ns: u64,
}

impl Profiling {
    /// Decides whether to record, and checks the paths that are written to: not those of files that were read.
    pub fn new(
        options: &RunOptions,
        input: &Input,
        read: &[PathBuf],
    ) -> Result<Profiling, Failure> {
        let is_wanted = options.trace.is_some() || options.profile.is_some() || options.stats;
        if !is_wanted {
            return Ok(Profiling(None));
        }
        let (trace, page) = (options.trace.clone(), options.profile.clone());
        for (path, option) in [(&trace, "--trace"), (&page, "--profile")] {
            if let Some(path) = path {
                output::check(path, read, option)?;
            }
        }
        if let (Some(trace), Some(page)) = (&trace, &page)
            && output::is_same_file(trace, page)
        {
            let message = "--trace and --profile name the same file".to_owned();
            return Err(Failure::Usage(message));
        }
        let capacity = match options.limits.untrusted {
            true => CAPACITY_FOR_STRANGERS,
            false => CAPACITY,
        };
        let recorder = Arc::new(Recorder::with_capacity(capacity));
        let text = match input {
            Input::Text(source) => Some(source.clone()),
            _ => None,
        };
        Ok(Profiling(Some(RunRecording {
            input: (input.name().to_owned(), text),
            trace,
            page: page.map(|path| Page {
                path,
                bytes: Arc::new(recorder.gauge()),
                calls: RefCell::default(),
                errors: RefCell::default(),
            }),
            recorder,
            stats: options.stats,
            begins_ns: RefCell::default(),
            begun: RefCell::default(),
            task: RefCell::default(),
        })))
    }

    /// Says that this process is one of several tasks, and what time it is by the clock that they share.
    #[cfg(feature = "dist")]
    pub fn set_task(&self, config: &tfrt::dist::context::ContextConfig, now_ns: u64) {
        use crate::commands::member::{file_of, number_of};
        let Some((recorded, path)) = self
            .0
            .as_ref()
            .and_then(|it| Some((it, it.trace.as_ref()?)))
        else {
            return;
        };
        *recorded.task.borrow_mut() = number_of(config).map(|number| TracedTask {
            path: file_of(path, &config.task),
            name: config.task.to_string(),
            number,
            begin_ns: now_ns.saturating_sub(recorded.recorder.now_ns()),
        });
    }

    /// Refuses to write over files that were read, of which some are known late.
    pub fn check(&self, read: &[PathBuf]) -> Result<(), Failure> {
        let Some(recorded) = &self.0 else {
            return Ok(());
        };
        if let Some(trace) = &recorded.trace {
            output::refuse_inputs(trace, read, "--trace")?;
        }
        match &recorded.page {
            Some(page) => output::refuse_inputs(&page.path, read, "--profile"),
            None => Ok(()),
        }
    }

    fn page(&self) -> Option<(&RunRecording, &Page)> {
        let recorded = self.0.as_ref()?;
        Some((recorded, recorded.page.as_ref()?))
    }

    /// Starts the queue of the run.
    pub fn queue(&self, queue: QueueOption) -> Result<Arc<dyn ConcurrentWorkQueue>, Failure> {
        queue.start(self.recorder()).map_err(Failure::Host)
    }

    /// Returns the recorder of the run.
    pub fn recorder(&self) -> Option<Arc<Recorder>> {
        self.0.as_ref().map(|recorded| recorded.recorder.clone())
    }

    /// Returns the allocator of the run, recorded if that is to be shown.
    pub fn allocator(&self, allocator: Arc<dyn HostAllocator>) -> Arc<dyn HostAllocator> {
        match self.page() {
            Some((_, page)) => Arc::new(RecordedAllocator::new(allocator, page.bytes.clone())),
            None => allocator,
        }
    }

    /// Notes that a function is going to be called.
    pub fn begin_call(&self, function: &str) -> Option<CallTimer> {
        let recorded = self.0.as_ref()?;
        let begin_ns = recorded.recorder.now_ns();
        recorded.begins_ns.borrow_mut().push(begin_ns);
        Some(CallTimer {
            function: function.to_owned(),
            begin_ns,
        })
    }

    /// Notes the end of a call, with its errors.
    pub fn end_call<'e>(
        &self,
        timer: Option<CallTimer>,
        status: ExitStatus,
        errors: impl Iterator<Item = &'e Error>,
    ) {
        let (Some((recorded, page)), Some(timer)) = (self.page(), timer) else {
            return;
        };
        page.calls.borrow_mut().push(CallSpan {
            function: timer.function,
            begin_ns: timer.begin_ns,
            end_ns: recorded.recorder.now_ns(),
            outcome: match status {
                ExitStatus::Cancelled => "cancelled",
                ExitStatus::LimitExceeded => "stopped at a limit",
                ExitStatus::FunctionFailed => "failed",
                _ => "returned",
            },
        });
        let errors = errors.map(|error| ReportedError {
            message: error.message().to_owned(),
            kernel: error.kernel().map(str::to_owned),
            location: error.location().cloned(),
        });
        let mut told = page.errors.borrow_mut();
        let n_left = MAX_ERRORS.saturating_sub(told.len());
        told.extend(errors.take(n_left));
    }

    /// Begins to record the run.
    pub fn begin_run(&self, runtime: &Runtime) {
        if let Some(recorded) = &self.0 {
            *recorded.begun.borrow_mut() = Some(RunStart {
                before: memory_stats(),
                sampler: Sampler::start(recorded.recorder.clone(), runtime.host().queue().clone()),
            });
        }
    }

    /// Ends the recording: adds trace and page to the delivery, and returns the statistics, as far as they were asked
    /// for.
    pub fn end_run(
        &self,
        runtime: &Runtime,
        program: &Program,
        console: &Console,
        delivery: &mut Delivery,
    ) -> Result<Option<Stats>, Failure> {
        let Some(recorded) = &self.0 else {
            return Ok(None);
        };
        let Some(begun) = recorded.begun.borrow_mut().take() else {
            return Ok(None);
        };
        let (name, text) = &recorded.input;
        let samples = begun.sampler.stop();
        let recording = recorded.recorder.recording();
        let begins_ns = recorded.begins_ns.take();
        let programs = std::slice::from_ref(program);
        let profile = Profile::of_calls(&recording, programs, &begins_ns);
        if let Some(path) = &recorded.trace {
            let task = recorded.task.borrow();
            let (path, process) = match &*task {
                Some(task) => (&task.path, task.process()),
                None => (path, TracedProcess::alone(name)),
            };
            let write = |out: &mut dyn Write| write_perfetto(&profile, &samples, &process, out);
            let len_bytes = delivery.add(path, write)?;
            delivery.tell_of(WrittenFile::new(path, len_bytes, "https://ui.perfetto.dev"));
        }
        if let Some(page) = &recorded.page {
            let about = page.about(runtime, name);
            let source = |name: &str| source(name, text.as_ref(), console);
            let programs = std::slice::from_ref(program);
            let report = Report::new(&profile, &recording, programs, &about, &source);
            let write = |out: &mut dyn Write| report.write_page(out);
            let len_bytes = delivery.add(&page.path, write)?;
            delivery.tell_of(WrittenFile::new(&page.path, len_bytes, "a browser"));
        }
        let stats = || {
            let statistics = Statistics::new(&profile);
            Stats::new(&statistics, runtime, begun.before, &samples)
        };
        Ok(recorded.stats.then(stats))
    }
}

impl Page {
    fn about(&self, runtime: &Runtime, name: &str) -> About {
        let queue = runtime.host().queue();
        About {
            name: name.to_owned(),
            queue: queue.name(),
            n_threads: queue.parallelism(),
            calls: self.calls.take(),
            errors: self.errors.take(),
            memory: Some(self.bytes.recording()),
        }
    }
}

/// Returns the text of a file that the program names: that of the input, or else one that is read now.
fn source(name: &str, input: Option<&Source>, console: &Console) -> Option<SourceText> {
    let (text, is_read_later) = match input.filter(|source| source.name() == name) {
        Some(source) => (source.text().to_owned(), false),
        None => (console.source(name)?.text().to_owned(), true),
    };
    Some(SourceText {
        text,
        is_read_later,
    })
}
