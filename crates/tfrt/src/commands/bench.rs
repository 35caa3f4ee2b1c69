//! `tfrt bench`: a function again and again, and how long it takes.
//!
//! # What is timed
//!
//! A call begins with its request, and ends when its results are there, or, if it has none, when
//! nothing is left to run. What goes on after that is waited for, but not timed. A reading of the
//! clock takes some ten nanoseconds, so calls shorter than [`SAMPLE_TIME`] are timed several at a
//! time: a *sample* is the mean of so many.

use std::io::{self, Write};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
#[cfg(feature = "gpu")]
use tfrt::gpu::driver::sim::Sim;
use tfrt::host::record::{EventKind, Recorder, Recording};
use tfrt::input::Input;
use tfrt::profile::{Profile, Statistics as ProfileStatistics};
use tfrt::{
    AnyAsyncValue, Error, ErrorCode, Function, Limits, Model, Output, Program, Runtime,
    RuntimeBuilder,
};
use tfrt_run::{Errors, ExitStatus, arguments};

use super::devices::DeviceOption;
use super::kernel_times::KernelTimes;
use super::limits::{Exceeded, refuse_compiled};
use super::run::no_such_function;
#[cfg(feature = "gpu")]
use super::run::refuse_driver_without_gpu;
use super::{model_inputs, print_json, print_line, rejection};
use crate::console::{Console, Problem};
use crate::failure::{Failure, LimitReached, status_of};
use crate::options::{BenchOptions, LimitOptions};

mod report;
mod statistics;

use report::Report;
use statistics::Statistics;

pub use report::SCHEMA;

/// A sample takes at least about so long.
const SAMPLE_TIME: Duration = Duration::from_micros(2);
/// Most calls of a sample.
const MAX_BATCH: u64 = 1 << 10;
/// Most calls that are recorded.
const MAX_RECORDED: u64 = 100;
/// The number of events that are kept of each thread: 32 MiB of them.
const CAPACITY: usize = 1 << 20;
/// Samples after which the measurement ends whatever the time: 80 MB of them.
const MAX_SAMPLES: usize = 10_000_000;

/// Measures a function, and reports: reads, compiles and loads, calls again and again, counts the kernels of one
/// call.
pub fn bench(options: &BenchOptions, console: &Console) -> Result<ExitStatus, Failure> {
    let limits = &options.limits;
    if limits.untrusted {
        console.read_no_files();
    }
    let input = limits.read(&options.file, options.input.mmap)?;
    if let Input::Text(source) = &input {
        console.remember(source);
    }
    refuse_compiled(&input, &options.dims, options.no_optimize)?;
    let progress = console.progress(&format!("opening {}", input.name()));
    #[cfg(feature = "plugins")]
    let plugins = super::plugin::load_used(&options.plugins)?;
    let builder = || -> Result<RuntimeBuilder, Failure> {
        let builder = Runtime::builder();
        #[cfg(feature = "plugins")]
        let builder = super::plugin::add_used(&options.plugins, &plugins, builder)?;
        Ok(builder)
    };
    let bench = Bench::new(options, &input, builder()?, console)?;
    drop(progress);
    let progress = console.progress(&format!("calling '{}'", bench.function.name()));
    let measured = bench.measure(options);
    drop(progress);
    let counted = measured.and_then(|measured| {
        let recorded = record(options, &input, builder()?, console)?;
        Ok((measured, recorded))
    });
    match counted {
        Ok((measured, recorded)) => {
            let report = Report::new(input.name(), &bench, &measured, recorded);
            match options.json {
                true => print_json(&report)?,
                false => print_line(report.text().trim_end())?,
            }
            Ok(bench.end(console))
        }
        Err(BenchError::Failure(failure)) => Err(failure),
        Err(BenchError::Call(failed)) => {
            let status = failed.status;
            let problems = failed.tell(bench.function.name(), console);
            if options.json {
                rejection::write_problems(SCHEMA, Some(&options.file), Some(status), problems)?;
            }
            Ok(status)
        }
    }
}

/// Further calls, which were recorded: a recorder costs time, so that the calls that are timed have none.
struct RecordedCalls {
    n_calls: u64,
    /// The kernels of a call.
    n_kernels: u64,
    /// The times of kernels in all of these calls.
    times: Option<KernelTimes>,
}

/// Makes further calls and records them: one to count its kernels, or as many as `--stats` is made of.
fn record(
    options: &BenchOptions,
    input: &Input,
    builder: RuntimeBuilder,
    console: &Console,
) -> Result<RecordedCalls, BenchError> {
    let recorder = Arc::new(Recorder::with_capacity(CAPACITY));
    let bench = Bench::new(options, input, builder.recorder(recorder.clone()), console)?;
    // The first call may prepare what the others use, such as packed weights.
    bench.call()?;
    let n_max = match options.stats {
        true => options.runs.unwrap_or(MAX_RECORDED).min(MAX_RECORDED),
        false => 1,
    };
    let begin_ns = recorder.now_ns();
    let (begin, mut n_calls) = (Instant::now(), 0);
    while n_calls == 0 || n_calls < n_max && begin.elapsed() < options.time {
        bench.call()?;
        n_calls += 1;
    }
    let recording = recorder.recording().since(begin_ns);
    let times = options.stats.then(|| {
        let programs = slice::from_ref(&bench.program);
        KernelTimes::new(&ProfileStatistics::new(&Profile::new(&recording, programs)))
    });
    Ok(RecordedCalls {
        n_calls,
        n_kernels: n_kernels(&recording) / n_calls,
        times,
    })
}

/// The reason why a measurement ended before its time.
enum BenchError {
    Failure(Failure),
    Call(FailedCall),
}

/// The errors of a call that failed or was stopped: those that kernels reported, or that results had.
struct FailedCall {
    errors: Vec<Error>,
    /// The limit behind the errors.
    limit: Option<LimitReached>,
    status: ExitStatus,
}

impl FailedCall {
    /// Tells of the errors, and that there is nothing to measure. Returns what was told.
    fn tell(self, function: &str, console: &Console) -> Vec<Problem> {
        // What has no place, such as that a kernel cancels its request, is not a kernel's fault.
        let errors = self.errors.iter();
        let (placed, unplaced): (Vec<_>, Vec<_>) =
            errors.partition(|error| error.location().is_some());
        let mut problems = Problem::merged(placed.into_iter().map(Problem::of_run));
        problems.iter().for_each(|problem| console.tell(problem));
        let reason = match unplaced.first() {
            Some(error) if problems.is_empty() => format!(" with '{}'", error.message()),
            _ => String::new(),
        };
        let message = format!("'{function}' fails{reason}, so that there is nothing to measure");
        let mut problem = Problem::of_command(None, message);
        problem
            .help
            .extend(self.limit.and_then(|limit| limit.help()));
        console.tell(&problem);
        problems.push(problem);
        problems
    }
}

impl From<Failure> for BenchError {
    fn from(failure: Failure) -> BenchError {
        BenchError::Failure(failure)
    }
}

/// A function with its arguments, on a runtime, ready to be called.
struct Bench {
    limits: LimitOptions,
    runtime: Runtime,
    program: Program,
    function: Function,
    arguments: Vec<AnyAsyncValue>,
    errors: Arc<Errors>,
    printed: DiscardedOutput,
    queue: String,
    #[cfg(feature = "gpu")]
    simulated: Option<Sim>,
}

/// The result of a measurement.
struct Measurement {
    statistics: Statistics,
    n_calls: u64,
    batch: u64,
    warm_up: Duration,
    time: Duration,
    /// The processor time of all threads of the process meanwhile.
    processor: Duration,
    /// The bytes that all calls together have printed.
    printed_bytes: u64,
}

/// An output that drops what is written to it, and counts the bytes.
#[derive(Clone, Default)]
struct DiscardedOutput(Arc<AtomicU64>);

impl Write for DiscardedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Ordering: a statistic.
        self.0.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DiscardedOutput {
    fn n_bytes(&self) -> u64 {
        // Ordering: a statistic.
        self.0.load(Ordering::Relaxed)
    }
}

impl Bench {
    fn new(
        options: &BenchOptions,
        input: &Input,
        builder: RuntimeBuilder,
        console: &Console,
    ) -> Result<Bench, Failure> {
        let limits = &options.limits;
        let (errors, printed) = (Arc::new(Errors::default()), DiscardedOutput::default());
        let heard = errors.clone();
        let queue = options.queue.start(None).map_err(Failure::Host)?;
        let builder = builder
            .queue(queue)
            .output(Output::new(printed.clone(), printed.clone()))
            .diagnostics(move |error| heard.hear(error));
        let builder = match &options.device {
            Some(device) => device.kernels(builder),
            None => builder,
        };
        let runtime = limits.limit(builder).build();
        #[cfg(feature = "gpu")]
        let simulated = options
            .gpu_driver
            .as_ref()
            .and_then(|driver| driver.give_to(&runtime));
        if let Some(device) = &options.device {
            device.add_to(&runtime, options.max_device_memory)?;
        }
        #[cfg(feature = "gpu")]
        if options.no_gpu_graphs {
            tfrt::gpu::use_graphs(runtime.host(), false);
        }
        let exceeded = Exceeded {
            host: runtime.host(),
            exhausted: None,
        };
        let opening = options.dims.open_options(!options.no_optimize);
        let opening = match options.device.as_ref().and_then(DeviceOption::name) {
            Some(name) => opening.device(&name),
            None => opening,
        };
        let program = limits.load(input, &opening, &runtime, console);
        let program = program.map_err(|error| exceeded.failure(Failure::Open(error)))?;
        let is_model = program.as_host_program().file().model().is_some();
        let is_program = options.function.is_some() || !options.arguments.is_empty();
        let is_for_models = options.input.is_used() || !options.dims.dims.is_empty();
        if !is_model && is_for_models {
            let message = "--input, --random and --dim are for models, and this is a program: its \
                           functions take --arg";
            return Err(Failure::Usage(message.to_owned()));
        }
        let (function, arguments) = match is_model && !is_program {
            true => {
                #[cfg(feature = "gpu")]
                refuse_driver_without_gpu(options.gpu_driver.is_some(), options.device.as_ref())?;
                let model = Model::from_program_with(program.clone(), input, &opening, &runtime);
                let ready = model.map_err(Failure::Open);
                let ready = ready.and_then(|model| of_model(&model, &runtime, options));
                ready.map_err(|failure| exceeded.failure(failure))?
            }
            false => select(&program, options)?,
        };
        Ok(Bench {
            limits: limits.clone(),
            queue: runtime.host().queue().name(),
            runtime,
            program,
            function,
            arguments,
            errors,
            printed,
            #[cfg(feature = "gpu")]
            simulated,
        })
    }

    /// Frees what is measured, and tells what a simulated GPU has found and has not got back. Returns the exit status.
    fn end(self, console: &Console) -> ExitStatus {
        #[cfg(feature = "gpu")]
        if let Some(sim) = self.simulated.clone() {
            drop(self);
            return super::devices::driver::tell(&sim, console);
        }
        let _unused = console;
        ExitStatus::Fine
    }

    fn measure(&self, options: &BenchOptions) -> Result<Measurement, BenchError> {
        let (begin, mut n_warm) = (Instant::now(), 0_u32);
        let mut shortest = Duration::MAX;
        while n_warm == 0 || begin.elapsed() < options.warm_up {
            shortest = shortest.min(self.call()?);
            n_warm = n_warm.saturating_add(1);
        }
        let warm_up = begin.elapsed();
        let in_sample = SAMPLE_TIME.as_nanos() / shortest.as_nanos().max(1);
        let mut batch = u64::try_from(in_sample).unwrap_or(1).clamp(1, MAX_BATCH);
        if let Some(n_calls) = options.runs {
            batch = batch.min(n_calls);
        }
        let (before_bytes, begin) = (self.printed.n_bytes(), Instant::now());
        let (mut samples_ns, mut n_calls) = (Vec::new(), 0);
        let used = processor_time();
        loop {
            let mut n_left = batch;
            if let Some(n_wanted) = options.runs {
                n_left = batch.min(n_wanted - n_calls);
            }
            let is_over = match options.runs {
                Some(_) => n_left == 0,
                None => begin.elapsed() >= options.time && !samples_ns.is_empty(),
            };
            if is_over || samples_ns.len() >= MAX_SAMPLES {
                break;
            }
            let took = self.sample(n_left)?;
            samples_ns.push(took.as_nanos() as f64 / n_left as f64);
            n_calls += n_left;
        }
        Ok(Measurement {
            statistics: Statistics::new(samples_ns),
            n_calls,
            batch,
            warm_up,
            time: begin.elapsed(),
            processor: processor_time().saturating_sub(used),
            printed_bytes: self.printed.n_bytes() - before_bytes,
        })
    }

    /// Times so many calls in a row.
    fn sample(&self, n_calls: u64) -> Result<Duration, BenchError> {
        if n_calls == 1 {
            return self.call();
        }
        let begin = Instant::now();
        for _ in 0..n_calls {
            self.call_once()?;
        }
        let took = begin.elapsed();
        self.quiesce();
        Ok(took)
    }

    /// Times a call.
    fn call(&self) -> Result<Duration, BenchError> {
        let begin = Instant::now();
        self.call_once()?;
        let took = begin.elapsed();
        self.quiesce();
        Ok(took)
    }

    fn call_once(&self) -> Result<(), BenchError> {
        let context = self.limits.context(&self.runtime);
        let call = self.function.call(&context, self.arguments.clone());
        let results = call.wait_each().expect("this thread is no worker");
        if results.is_empty() {
            self.quiesce();
        }
        let failed = results.iter().filter_map(AnyAsyncValue::error);
        let failed: Vec<Error> = failed.cloned().collect();
        // Where there are no results, nothing else tells that a limit has stopped the call.
        let reason = context.request().cancellation();
        let stopped = reason.filter(|reason| is_stop(reason));
        if failed.is_empty() && stopped.is_none() && !self.errors.any(|_| true) {
            return Ok(());
        }
        self.quiesce();
        Err(self.stop(failed, stopped.cloned()))
    }

    /// Collects the errors of a call that failed or was stopped. The status is that of `tfrt run`.
    fn stop(&self, failed: Vec<Error>, stopped: Option<Error>) -> BenchError {
        let heard = self.errors.take();
        let is_limited = *self.runtime.host().limits() != Limits::default();
        // What no result tells counts where whoever runs the function has set limits.
        let is_told = failed.is_empty() || stopped.is_some();
        let reported = heard.iter().filter(|_| is_told && is_limited);
        let causes = failed.iter().chain(&stopped).chain(reported);
        let codes: Vec<ErrorCode> = causes.map(Error::code).collect();
        let status = status_of(&codes, ExitStatus::FunctionFailed);
        // What was reported has its place; a result's error may be one of these.
        let errors: Vec<Error> = match heard.is_empty() {
            true => failed.into_iter().chain(stopped).collect(),
            false => heard,
        };
        let exceeded = Exceeded {
            host: self.runtime.host(),
            exhausted: None,
        };
        let limit = errors.iter().find_map(|error| exceeded.error(error));
        BenchError::Call(FailedCall {
            errors,
            limit,
            status,
        })
    }

    /// Waits until nothing is left to run.
    fn quiesce(&self) {
        if self.runtime.host().queue().activity().in_flight > 0 {
            self.runtime.quiesce().expect("this thread is no worker");
        }
    }
}

/// Returns the processor time that the process has used.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Returns whether a limit stops whole calls for this reason.
fn is_stop(reason: &Error) -> bool {
    matches!(
        reason.code(),
        ErrorCode::DeadlineExceeded | ErrorCode::ResourceExhausted
    )
}

/// Returns the function of a model, with inputs, of which those that are not given are generated.
fn of_model(
    model: &Model,
    runtime: &Runtime,
    options: &BenchOptions,
) -> Result<(Function, Vec<AnyAsyncValue>), Failure> {
    let mut input_options = options.input.clone();
    input_options.random = true;
    let inputs = model_inputs::from_options(
        &input_options,
        &options.file,
        model,
        options.limits.max_file_bytes(),
        runtime.host().allocator(),
    )?;
    let arguments = model_inputs::arguments(model, inputs.data)?;
    Ok((model.function().clone(), arguments))
}

/// Returns the function to measure, with its arguments.
fn select(
    program: &Program,
    options: &BenchOptions,
) -> Result<(Function, Vec<AnyAsyncValue>), Failure> {
    let given = &options.arguments;
    let functions: Vec<Function> = match &options.function {
        Some(name) => {
            let found = program.function(name);
            vec![found.ok_or_else(|| no_such_function(program, name))?]
        }
        None => program.functions().collect(),
    };
    let hosted: Vec<_> = functions.iter().map(Function::as_host_function).collect();
    arguments::check(&hosted, options.function.as_slice(), given).map_err(Failure::Usage)?;
    let mut fitting = Vec::new();
    for function in &functions {
        let values = arguments::for_function(function.as_host_function(), given);
        if let Some(values) = values.map_err(Failure::Usage)? {
            fitting.push((function.clone(), values));
        }
    }
    // Parameters that are given are for a function that has some.
    if !given.is_empty() {
        fitting.retain(|(function, _)| function.argument_types().len() > 0);
    }
    let main = fitting
        .iter()
        .position(|(function, _)| function.name() == "main");
    match (fitting.len(), main) {
        (1, _) => Ok(fitting.remove(0)),
        (_, Some(main)) => Ok(fitting.remove(main)),
        (0, None) => {
            let names: Vec<&str> = functions.iter().map(Function::name).collect();
            let names = match names.is_empty() {
                true => "none".to_owned(),
                false => names.join(", "),
            };
            Err(Failure::Usage(format!(
                "no function can be called without --arg: the program has {names}"
            )))
        }
        (n, None) => Err(Failure::Usage(format!(
            "{n} functions can be called; --function says which"
        ))),
    }
}

/// Returns the number of kernels that ran, with those for whose events there was no room.
fn n_kernels(recording: &Recording) -> u64 {
    let is_kernel = |kind| matches!(kind, EventKind::Kernel { .. });
    let of_thread = recording.threads.iter().map(|thread| {
        let kernels = thread.events.iter().filter(|event| is_kernel(event.kind));
        kernels.count() as u64 + thread.n_lost
    });
    of_thread.sum()
}
