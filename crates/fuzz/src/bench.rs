//! Runtimes to run programs on, and what must be true when a program is over.
//!
//! After a program nothing is left of it: no value, no frame, no request. That is
//! looked at when the queue is empty, since worker threads may hold on to things for
//! a moment after the last result is there.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use tfrt::report::{failure_line, result_line};
use tfrt::{
    AnyAsyncValue, ConcurrentWorkQueue, Error, ErrorCode, Function, Limits, MultiThreadedWorkQueue,
    Output, Program, Runtime, SingleThreadedWorkQueue, SourceLocation,
};
use tfrt_async::Counters;
use tfrt_bef::{BefFile, FunctionKind};
use tfrt_host::RequestContext;
use tfrt_host::kernel::{KernelEntry, KernelRegistry};
use tfrt_oracle::differential::Outcome;
use tfrt_oracle::evaluate::Ending;

/// How long results may be to come. Programs take milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long worker threads may hold on to something after the queue is empty.
const SETTLING: Duration = Duration::from_secs(2);

/// How much of that time is spent without sleep, which takes longer than is asked for.
const EAGERNESS: Duration = Duration::from_micros(200);

/// What a program that nobody vouches for may use.
pub const LIMITS: Limits = Limits {
    max_depth: 1_000,
    max_steps: Some(20_000),
    max_memory: Some(64 << 20),
};

/// Held while a program runs: what is left of it is counted for the whole process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Kernels that a program that nobody vouches for must not have.
const HARMFUL: &[&str] = &[
    // They take time that no limit counts.
    "tfrt_test.benchmark",
    "tfrt_test.blocking.usleep",
    "tfrt_test.copy.with_delay.i32",
    "tfrt_test.copy.with_delay.i64",
    "tfrt_test.async_copy.with_delay.i32",
    "tfrt_test.async_copy.with_delay.i64",
    "tfrt_test.never",
    "tfrt_test.quiesce",
    "tfrt_test.spin",
    "tfrt_test.sync_benchmark",
    "tfrt_test.usleep",
    // They take memory that no limit counts.
    "tfrt_test.append_string",
    "tfrt_test.format_string",
    "tfrt_test.memory_leak_one_int32",
    // They look outside.
    "tfrt_test.external",
    "tfrt_test.read_string_from_file",
    // It does what a finding does.
    "tfrt_test.panic",
];

/// A runtime with one queue, and what is heard of it.
pub struct Bench {
    name: String,
    runtime: Runtime,
    output: Output,
    printed: Lines,
    errors: Arc<Mutex<Vec<Error>>>,
}

impl Bench {
    /// Makes a runtime with all kernels, and without limits.
    pub fn new(queue: Arc<dyn ConcurrentWorkQueue>) -> Bench {
        let mut registry = KernelRegistry::new();
        tfrt_kernels::register_all(&mut registry);
        Bench::with(queue, registry, Limits::default(), Lines::default())
    }

    /// Makes a runtime on this thread, for programs that nobody vouches for.
    pub fn harmless() -> Bench {
        let mut registry = KernelRegistry::new();
        tfrt_kernels::register_all(&mut registry);
        registry.retain(|entry: &KernelEntry| !HARMFUL.contains(&entry.name()));
        let queue = Arc::new(SingleThreadedWorkQueue::new());
        Bench::with(queue, registry, LIMITS, Lines(None))
    }

    /// Makes a runtime on this thread that counts what kernels wait for, also where their order is
    /// known.
    pub fn counting() -> Bench {
        let mut registry = KernelRegistry::new();
        tfrt_kernels::register_all(&mut registry);
        let queue = Arc::new(SingleThreadedWorkQueue::new());
        let printed = Lines::default();
        let mut bench = Bench::made(queue, registry, Limits::default(), printed, true);
        bench.name.push_str(", counting");
        bench
    }

    /// Makes two runtimes on this thread, the second of which counts, and one with so many of its own
    /// each.
    pub fn on_queues(n_threads: &[usize]) -> Vec<Bench> {
        let alone = Bench::new(Arc::new(SingleThreadedWorkQueue::new()));
        let mut benches = vec![alone, Bench::counting()];
        for &n_threads in n_threads {
            let queue = MultiThreadedWorkQueue::new(n_threads, 4).expect("threads can be started");
            benches.push(Bench::new(Arc::new(queue)));
        }
        benches
    }

    fn with(
        queue: Arc<dyn ConcurrentWorkQueue>,
        registry: KernelRegistry,
        limits: Limits,
        printed: Lines,
    ) -> Bench {
        Bench::made(queue, registry, limits, printed, false)
    }

    fn made(
        queue: Arc<dyn ConcurrentWorkQueue>,
        registry: KernelRegistry,
        limits: Limits,
        printed: Lines,
        is_counting: bool,
    ) -> Bench {
        let output = Output::new(printed.clone(), io::sink());
        let errors: Arc<Mutex<Vec<Error>>> = Arc::default();
        let heard = errors.clone();
        let name = queue.name();
        let runtime = Runtime::builder()
            .without_kernels()
            .kernels(|kernels| *kernels = registry)
            .queue(queue)
            .output(output.clone())
            .limits(limits)
            .dynamic_order(is_counting)
            .diagnostics(move |error| lock(&heard).push(error.clone()))
            .build();
        Bench {
            name,
            runtime,
            output,
            printed,
            errors,
        }
    }

    /// The runtime.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Runs the functions of a file that have no arguments, as the command does, and looks at
    /// what they leave behind.
    pub fn run(&self, file: &BefFile) -> Outcome {
        let _alone = lock(&ONE_AT_A_TIME);
        let cells = tfrt_async::counters();
        let mut requests = Vec::new();
        let ran = self.run_functions(file, &mut requests);
        let stdout = self.printed.take();
        let errors = std::mem::take(&mut *lock(&self.errors));
        let mut outcome = Outcome {
            stdout: String::from_utf8(stdout).expect("kernels print text"),
            errors: errors.iter().map(reported).collect(),
            way: self.name.clone(),
            ..Outcome::default()
        };
        drop(errors);
        match ran {
            Ok(ending) => outcome.ending = ending,
            Err(complaint) => outcome.complaint = Some(complaint),
        }
        if outcome.complaint.is_none() {
            outcome.complaint = self.left_behind(cells, &requests);
        }
        outcome
    }

    /// Calls each function of a file with arguments of the types that it names; says what must
    /// never happen if it does.
    ///
    /// # Errors
    ///
    /// What must never happen: results that do not come, something left behind. That the file
    /// cannot be loaded, or that a call fails, is fine.
    pub fn run_untrusted(&self, file: &BefFile) -> Result<(), String> {
        let _alone = lock(&ONE_AT_A_TIME);
        let cells = tfrt_async::counters();
        let mut requests = Vec::new();
        if let Ok(program) = tfrt_host::Program::load(file.clone(), self.runtime.host()) {
            for function in program.all_functions() {
                let context = self.runtime.context();
                requests.push(Arc::downgrade(context.request()));
                let arguments = function.argument_types().map(argument).collect();
                let results = function.execute(context.execution(), arguments);
                self.settle(function.name(), &results)?;
                if function.kind() == FunctionKind::Sync {
                    let arguments: Vec<_> = function.argument_types().map(argument).collect();
                    let _ = function.run_synchronously(context.execution(), &arguments);
                }
                context.request().clear_data();
            }
        }
        lock(&self.errors).clear();
        match self.left_behind(cells, &requests) {
            Some(complaint) => Err(complaint),
            None => Ok(()),
        }
    }

    fn run_functions(
        &self,
        file: &BefFile,
        requests: &mut Vec<Weak<RequestContext>>,
    ) -> Result<Ending, String> {
        let program =
            Program::from_file(file.clone(), &self.runtime).map_err(|error| error.to_string())?;
        let mut ending = Ending::Fine;
        for function in program.functions() {
            let name = function.name();
            if function.argument_types().len() > 0 {
                self.output.print(format!(
                    "--- Not running '{name}' because it has arguments."
                ));
                continue;
            }
            self.output.print(format!("--- Running '{name}':"));
            let results = self.call(&function, requests)?;
            let endings = results
                .iter()
                .filter_map(AnyAsyncValue::error)
                .map(ending_of);
            ending = endings.fold(ending, Ending::max);
        }
        Ok(ending)
    }

    fn call(
        &self,
        function: &Function,
        requests: &mut Vec<Weak<RequestContext>>,
    ) -> Result<Vec<AnyAsyncValue>, String> {
        let context = self.runtime.context();
        requests.push(Arc::downgrade(context.request()));
        let name = function.name();
        if function.as_host_function().kind() == FunctionKind::Sync {
            let ran = function
                .as_host_function()
                .run_synchronously(context.execution(), &[]);
            let line = match &ran {
                Ok(results) => result_line(name, function.result_types(), results, false),
                Err(error) => Some(failure_line(name, error)),
            };
            line.iter().for_each(|line| self.output.print(line));
            return Ok(ran.unwrap_or_else(|error| vec![AnyAsyncValue::from_error(error)]));
        }
        let results = function.call(&context, ()).into_results();
        self.settle(name, &results)?;
        let results: Vec<_> = results.into_iter().map(AnyAsyncValue::settled).collect();
        let line = result_line(name, function.result_types(), &results, false);
        line.iter().for_each(|line| self.output.print(line));
        self.runtime.quiesce().map_err(|error| error.to_string())?;
        Ok(results)
    }

    /// Waits until results are there.
    fn settle(&self, name: &str, results: &[AnyAsyncValue]) -> Result<(), String> {
        let deadline = Some(Instant::now() + PATIENCE);
        let settled = self.runtime.host().queue().await_until(results, deadline);
        match settled {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("the results of '{name}' do not come")),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Says what is still there of requests that are over.
    fn left_behind(&self, before: Counters, requests: &[Weak<RequestContext>]) -> Option<String> {
        let begin = Instant::now();
        loop {
            // Again and again, since a thread that belongs to nobody may bring a task late.
            if let Err(error) = self.runtime.quiesce() {
                return Some(error.to_string());
            }
            let now = tfrt_async::counters();
            // Frames hold their request, so that none is left if no request is.
            let held = requests
                .iter()
                .filter(|request| request.strong_count() > 0)
                .count();
            if now == before && held == 0 {
                return None;
            }
            if begin.elapsed() > SETTLING {
                return Some(format!(
                    "left behind: {held} requests, {now:?} after {before:?}"
                ));
            }
            // Mostly a worker is about to let go.
            match begin.elapsed() < EAGERNESS {
                true => std::thread::yield_now(),
                false => std::thread::sleep(Duration::from_micros(50)),
            }
        }
    }
}

/// Makes an argument of a type; of one that is not known, a chain.
fn argument(ty: &str) -> AnyAsyncValue {
    match ty {
        "i1" => AnyAsyncValue::new(true),
        "i32" => AnyAsyncValue::new(3i32),
        "i64" => AnyAsyncValue::new(-4i64),
        "f32" => AnyAsyncValue::new(0.5f32),
        "f64" => AnyAsyncValue::new(-2.25f64),
        _ => AnyAsyncValue::new(tfrt::Chain),
    }
}

fn ending_of(error: &Error) -> Ending {
    match error.code() {
        ErrorCode::Cancelled => Ending::Cancelled,
        _ => Ending::Failed,
    }
}

/// Writes an error as the evaluator does.
fn reported(error: &Error) -> String {
    match error.location() {
        Some(SourceLocation::FileLineCol { line, column, .. }) => {
            format!("{line}:{column}: {}", error.message())
        }
        Some(other) => format!("{other}: {}", error.message()),
        None => error.message().to_owned(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What was printed since it was last taken, or nothing if nobody asks.
#[derive(Clone)]
struct Lines(Option<Arc<Mutex<Vec<u8>>>>);

impl Default for Lines {
    fn default() -> Lines {
        Lines(Some(Arc::default()))
    }
}

impl Lines {
    fn take(&self) -> Vec<u8> {
        let lines = self.0.as_ref();
        lines.map_or_else(Vec::new, |lines| std::mem::take(&mut *lock(lines)))
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(lines) = &self.0 {
            lock(lines).extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
