//! Test runtimes, and the checks that a program leaves nothing behind.
//!
//! After a program nothing is left of it: no value, no frame, no request. That is
//! looked at when the queue is empty, since worker threads may hold on to things for
//! a moment after the last result is there.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use tfrt_async::queue::{ConcurrentWorkQueue, MultiThreadedWorkQueue, SingleThreadedWorkQueue};
use tfrt_async::{AnyAsyncValue, Chain, Counters, Error, ErrorCode, SourceLocation};
use tfrt_bef::{BefFile, FunctionKind};
use tfrt_host::kernel::{KernelEntry, KernelRegistry};
use tfrt_host::{
    ExecutionContext, Function, HostContext, Limits, Output, Program, RequestContext, Stuck,
};
use tfrt_oracle::differential::Outcome;
use tfrt_oracle::evaluate::Ending;
use tfrt_run::report::{failure_line, result_line};
use tfrt_run::{not_running_line, running_line};

/// The longest time that results are waited for. Programs take milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// The time between two looks for stuck requests: shorter than anywhere else, so that programs which sleep are looked
/// at many times. None is stuck, so that each one that is found makes a difference.
const WATCH_PERIOD: Duration = Duration::from_micros(250);

/// The longest time that worker threads may hold on to something after the queue is empty.
const SETTLING: Duration = Duration::from_secs(2);

/// The least number of looks at what is left behind: where all processors are taken, time goes by without anybody
/// holding on to anything.
const N_LOOKS: u32 = 5_000;

/// The part of [`SETTLING`] that is spent without sleep, which takes longer than is asked for.
const EAGERNESS: Duration = Duration::from_micros(200);

/// The limits of untrusted programs.
pub const LIMITS: Limits = Limits {
    max_depth: 1_000,
    max_steps: Some(20_000),
    max_memory: Some(64 << 20),
};

/// The lock that is held while a program runs: leaks are counted for the whole process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The kernels that untrusted programs must not have.
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

/// A test runtime with one queue, whose output and errors are captured.
pub struct TestRuntime {
    name: String,
    host: HostContext,
    output: Output,
    printed: CapturedLines,
    errors: Arc<Mutex<Vec<Error>>>,
}

impl TestRuntime {
    /// Makes a runtime with all kernels, and without limits.
    pub fn new(queue: Arc<dyn ConcurrentWorkQueue>) -> TestRuntime {
        let mut registry = KernelRegistry::new();
        tfrt_kernels::register_all(&mut registry);
        TestRuntime::with(queue, registry, Limits::default(), CapturedLines::default())
    }

    /// Makes a runtime on this thread, for untrusted programs.
    pub fn harmless() -> TestRuntime {
        let mut registry = KernelRegistry::new();
        tfrt_kernels::register_all(&mut registry);
        registry.retain(|entry: &KernelEntry| !HARMFUL.contains(&entry.name()));
        let queue = Arc::new(SingleThreadedWorkQueue::new());
        TestRuntime::with(queue, registry, LIMITS, CapturedLines(None))
    }

    /// Makes a runtime on this thread that counts what kernels wait for, also where their order is
    /// known.
    pub fn counting() -> TestRuntime {
        let mut registry = KernelRegistry::new();
        tfrt_kernels::register_all(&mut registry);
        let queue = Arc::new(SingleThreadedWorkQueue::new());
        let printed = CapturedLines::default();
        let mut runtime = TestRuntime::made(queue, registry, Limits::default(), printed, true);
        runtime.name.push_str(", counting");
        runtime
    }

    /// Makes two runtimes on this thread, the second of which counts, and one for each number of threads of its own.
    pub fn on_queues(n_threads: &[usize]) -> Vec<TestRuntime> {
        let mut runtimes = Vec::from(TestRuntime::alone());
        let pools = n_threads
            .iter()
            .map(|&n_threads| TestRuntime::on_pool(n_threads, 1));
        runtimes.extend(pools.flatten());
        runtimes
    }

    /// Makes two runtimes on this thread, the second of which counts.
    pub fn alone() -> [TestRuntime; 2] {
        let queue = Arc::new(SingleThreadedWorkQueue::new());
        [TestRuntime::new(queue), TestRuntime::counting()]
    }

    /// Makes so many runtimes that share so many threads.
    pub fn on_pool(n_threads: usize, n_runtimes: usize) -> Vec<TestRuntime> {
        let queue = MultiThreadedWorkQueue::new(n_threads, 4).expect("threads can be started");
        let queue = Arc::new(queue);
        (0..n_runtimes)
            .map(|_| TestRuntime::new(queue.clone()))
            .collect()
    }

    fn with(
        queue: Arc<dyn ConcurrentWorkQueue>,
        registry: KernelRegistry,
        limits: Limits,
        printed: CapturedLines,
    ) -> TestRuntime {
        TestRuntime::made(queue, registry, limits, printed, false)
    }

    fn made(
        queue: Arc<dyn ConcurrentWorkQueue>,
        registry: KernelRegistry,
        limits: Limits,
        printed: CapturedLines,
        is_counting: bool,
    ) -> TestRuntime {
        let output = Output::new(printed.clone(), io::sink());
        let errors: Arc<Mutex<Vec<Error>>> = Arc::default();
        let heard = errors.clone();
        let name = queue.name();
        let host = HostContext::builder(registry)
            .queue(queue)
            .output(output.clone())
            .limits(limits)
            .stuck(Stuck::Fail(WATCH_PERIOD))
            .dynamic_order(is_counting)
            .diagnostics(move |error| lock(&heard).push(error.clone()))
            .build();
        TestRuntime {
            name,
            host,
            output,
            printed,
            errors,
        }
    }

    /// Runs the functions of a file that have no arguments, as the command does, and checks that they leave nothing
    /// behind.
    pub fn run(&self, file: &BefFile) -> Outcome {
        let [outcome] = &mut TestRuntime::run_together(std::slice::from_ref(self), [file])[..]
        else {
            unreachable!("one file has one outcome");
        };
        std::mem::take(outcome)
    }

    /// Runs several files at a time as [`run`](Self::run) does, each on a runtime of its own; these share a queue. All
    /// run their first functions, then their second ones. If something is left behind and it is not known by whom, each
    /// is said to have done so.
    pub fn run_together<'f>(
        runtimes: &[TestRuntime],
        files: impl IntoIterator<Item = &'f BefFile>,
    ) -> Vec<Outcome> {
        let _alone = lock(&ONE_AT_A_TIME);
        let cells = tfrt_async::counters();
        let mut requests = Vec::new();
        let mut runs: Vec<Run<'_>> = (runtimes.iter().zip(files))
            .map(|(runtime, file)| Run::new(runtime, file))
            .collect();
        let complaint = call_all(&mut runs, &mut requests);
        let mut outcomes: Vec<Outcome> = runs.into_iter().map(Run::end).collect();
        let is_sound = complaint.is_none() && outcomes.iter().all(|run| run.complaint.is_none());
        let left = match runtimes.first() {
            Some(runtime) if is_sound => runtime.left_behind(cells, &requests),
            _ => None,
        };
        if let Some(complaint) = complaint.or(left) {
            for outcome in &mut outcomes {
                outcome.complaint.get_or_insert_with(|| complaint.clone());
            }
        }
        outcomes
    }

    /// Loads the program of a file.
    ///
    /// # Errors
    ///
    /// All that keeps it from being run here.
    pub fn load(&self, file: &BefFile) -> Result<Program, String> {
        Program::load(file.clone(), &self.host).map_err(|error| error.to_string())
    }

    /// Calls each function of a file with arguments of the types that it names.
    ///
    /// # Errors
    ///
    /// What must never happen: results that do not come, something left behind. That the file
    /// cannot be loaded, or that a call fails, is fine.
    pub fn run_untrusted(&self, file: &BefFile) -> Result<(), String> {
        let _alone = lock(&ONE_AT_A_TIME);
        let cells = tfrt_async::counters();
        let mut requests = Vec::new();
        if let Ok(program) = self.load(file) {
            for function in program.all_functions() {
                let context = self.context(&mut requests);
                let arguments = function.argument_types().map(argument).collect();
                let results = function.execute(&context, arguments);
                self.settle(function.name(), &results)?;
                if function.kind() == FunctionKind::Sync {
                    let arguments: Vec<_> = function.argument_types().map(argument).collect();
                    let _ = function.run_synchronously(&context, &arguments);
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

    /// Begins a request.
    fn context(&self, requests: &mut Vec<Weak<RequestContext>>) -> ExecutionContext {
        let request = RequestContext::builder(&self.host).own_resources().build();
        requests.push(Arc::downgrade(&request));
        request.into()
    }

    fn quiesce(&self) -> Result<(), String> {
        let quiet = self.host.queue().quiesce();
        quiet.map_err(|refused| refused.to_string())
    }

    /// Waits until results are there.
    fn settle(&self, name: &str, results: &[AnyAsyncValue]) -> Result<(), String> {
        let deadline = Some(Instant::now() + PATIENCE);
        let settled = self.host.queue().await_until(results, deadline);
        match settled {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("the results of '{name}' do not come")),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Returns a description of what requests that are over have left behind.
    fn left_behind(&self, before: Counters, requests: &[Weak<RequestContext>]) -> Option<String> {
        let mut patience = PollLoop::new();
        loop {
            // Again and again, since a thread that belongs to nobody may bring a task late.
            if let Err(complaint) = self.quiesce() {
                return Some(complaint);
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
            if patience.is_over() {
                return Some(format!(
                    "left behind: {held} requests, {now:?} after {before:?}"
                ));
            }
            patience.wait();
        }
    }
}

/// A file that is being run.
struct Run<'b> {
    runtime: &'b TestRuntime,
    /// The functions that are left, in reverse order.
    functions: Vec<Function>,
    /// The function that was called, and its results.
    called: Option<(Function, Vec<AnyAsyncValue>)>,
    ending: Ending,
    complaint: Option<String>,
}

/// Calls the functions of all runs, until none has any left.
fn call_all(runs: &mut [Run<'_>], requests: &mut Vec<Weak<RequestContext>>) -> Option<String> {
    loop {
        runs.iter_mut().for_each(|run| run.call_next(requests));
        let called = runs.iter().filter(|run| run.called.is_some()).count();
        if called == 0 {
            return None;
        }
        runs.iter_mut().for_each(Run::settle);
        // Of a function without results nobody waits for the end.
        let mut patience = PollLoop::new();
        while !patience.is_over() {
            if let Some(Err(complaint)) = runs.first().map(|run| run.runtime.quiesce()) {
                return Some(complaint);
            }
            requests.retain(|request| request.strong_count() > 0);
            if requests.is_empty() {
                break;
            }
            patience.wait();
        }
    }
}

impl<'b> Run<'b> {
    fn new(runtime: &'b TestRuntime, file: &BefFile) -> Run<'b> {
        let (mut functions, complaint) = match runtime.load(file) {
            Ok(program) => (program.functions().collect(), None),
            Err(complaint) => (Vec::new(), Some(complaint)),
        };
        functions.reverse();
        Run {
            runtime,
            functions,
            called: None,
            ending: Ending::Fine,
            complaint,
        }
    }

    /// Goes on until a function was called whose results may be to come.
    fn call_next(&mut self, requests: &mut Vec<Weak<RequestContext>>) {
        let runtime = self.runtime;
        while let Some(function) = self.functions.pop() {
            if function.argument_types().len() > 0 {
                runtime.output.print(not_running_line(&function));
                continue;
            }
            runtime.output.print(running_line(&function));
            let context = runtime.context(requests);
            if function.kind() == FunctionKind::Sync {
                let name = function.name();
                let ran = function.run_synchronously(&context, &[]);
                let line = match &ran {
                    Ok(results) => result_line(name, function.result_types(), results, false),
                    Err(error) => Some(failure_line(name, error)),
                };
                line.iter().for_each(|line| runtime.output.print(line));
                self.note(&ran.unwrap_or_else(|error| vec![AnyAsyncValue::from_error(error)]));
                continue;
            }
            let results = function.execute(&context, Vec::new());
            self.called = Some((function, results));
            return;
        }
    }

    /// Waits for what was called, and prints its results.
    fn settle(&mut self) {
        let Some((function, results)) = self.called.take() else {
            return;
        };
        if let Err(complaint) = self.runtime.settle(function.name(), &results) {
            self.complaint = Some(complaint);
            self.functions.clear();
            return;
        }
        let results: Vec<_> = results.into_iter().map(AnyAsyncValue::settled).collect();
        let line = result_line(function.name(), function.result_types(), &results, false);
        line.iter().for_each(|line| self.runtime.output.print(line));
        self.note(&results);
    }

    fn note(&mut self, results: &[AnyAsyncValue]) {
        let errors = results.iter().filter_map(AnyAsyncValue::error);
        self.ending = errors.map(ending_of).fold(self.ending, Ending::max);
    }

    fn end(self) -> Outcome {
        let runtime = self.runtime;
        let errors = std::mem::take(&mut *lock(&runtime.errors));
        Outcome {
            way: runtime.name.clone(),
            stdout: String::from_utf8(runtime.printed.take()).expect("kernels print text"),
            errors: errors.iter().map(reported).collect(),
            ending: self.ending,
            complaint: self.complaint,
        }
    }
}

/// A loop that waits for a condition: spins first, then sleeps.
struct PollLoop {
    begin: Instant,
    n_looks: u32,
}

impl PollLoop {
    fn new() -> PollLoop {
        PollLoop {
            begin: Instant::now(),
            n_looks: 0,
        }
    }

    fn is_over(&self) -> bool {
        self.n_looks > N_LOOKS && self.begin.elapsed() > SETTLING
    }

    /// Waits a little until the next look.
    fn wait(&mut self) {
        self.n_looks += 1;
        // Mostly a worker is about to let go.
        match self.begin.elapsed() < EAGERNESS {
            true => std::thread::yield_now(),
            false => std::thread::sleep(Duration::from_micros(50)),
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
        _ => AnyAsyncValue::new(Chain),
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

/// The text printed since it was last taken; `None` if nobody asks.
#[derive(Clone)]
struct CapturedLines(Option<Arc<Mutex<Vec<u8>>>>);

impl Default for CapturedLines {
    fn default() -> CapturedLines {
        CapturedLines(Some(Arc::default()))
    }
}

impl CapturedLines {
    fn take(&self) -> Vec<u8> {
        let lines = self.0.as_ref();
        lines.map_or_else(Vec::new, |lines| std::mem::take(&mut *lock(lines)))
    }
}

impl Write for CapturedLines {
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
