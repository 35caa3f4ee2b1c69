//! Random programs must do on every queue what the evaluator says, and leave nothing behind.
//!
//! | Variable | Means | If unset |
//! | --- | --- | --- |
//! | `TFRT_DIFFERENTIAL_PROGRAMS` | number of programs | as many as take ten seconds, 4,000 at most |
//! | `TFRT_DIFFERENTIAL_SEED` | the first seed | 0 |
//!
//! A difference is shown by the seed and by the smallest program that makes one.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use tfrt::bef::{BefFile, FunctionKind};
use tfrt::host::RequestContext;
use tfrt::report::{failure_line, result_line};
use tfrt::{
    AnyAsyncValue, ConcurrentWorkQueue, Error, Function, MultiThreadedWorkQueue, Output, Program,
    Runtime, SingleThreadedWorkQueue, SourceLocation,
};
use tfrt_ir::Source;
use tfrt_oracle::differential::{FILE, Outcome, campaign};
use tfrt_oracle::evaluate::Ending;
use tfrt_oracle::generate::Options;

/// How long results may be to come. Programs take milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long worker threads may hold on to something after the queue is empty.
const SETTLING: Duration = Duration::from_secs(2);

/// How long a run takes whose number of programs is not given.
const BUDGET: Duration = Duration::from_secs(10);

/// Programs tried between two looks at the clock.
const BATCH: u64 = 50;

#[test]
fn random_programs_do_what_the_evaluator_says_on_every_queue() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let first = number("TFRT_DIFFERENTIAL_SEED").unwrap_or(0);
    let wanted = number("TFRT_DIFFERENTIAL_PROGRAMS");
    let last = first + wanted.unwrap_or(4_000);

    let benches: Vec<Bench> = Bench::on_all_queues();
    let begin = Instant::now();
    let mut n_compared = 0;
    let mut next = first;
    while next < last && (wanted.is_some() || begin.elapsed() < BUDGET) {
        let seeds = next..last.min(next + BATCH);
        next = seeds.end;
        n_compared += compare(seeds, &benches);
    }
    println!("{n_compared} programs on {} queues each", benches.len());
}

/// Compares the programs of some seeds; returns how many there were.
fn compare(seeds: Range<u64>, benches: &[Bench]) -> u64 {
    let mut run = |text: &str| match open(text) {
        Ok(file) => benches.iter().map(|bench| bench.run(&file)).collect(),
        Err(complaint) => vec![Outcome {
            way: "compiling".to_owned(),
            complaint: Some(complaint),
            ..Outcome::default()
        }],
    };
    match campaign(seeds, &options, &mut run) {
        Ok(n_compared) => n_compared,
        Err(difference) => panic!("{difference}"),
    }
}

/// Compiles a program and opens the bytes.
fn open(text: &str) -> Result<BefFile, String> {
    let bytes = tfrt::input::compile(&Source::new(FILE, text), &Default::default());
    let bytes = bytes.map_err(|errors| errors.render(false))?;
    BefFile::open(bytes).map_err(|error| error.to_string())
}

/// Mostly small programs, and some of each other kind.
fn options(seed: u64) -> Options {
    Options {
        size: match seed % 16 {
            0 => 24,
            1..4 => 12,
            _ => 5,
        },
        ordered: seed % 8 != 7,
        delays: seed % 64 == 40,
    }
}

/// A runtime with one queue, and what is heard of it.
struct Bench {
    name: String,
    runtime: Runtime,
    output: Output,
    printed: Lines,
    errors: Arc<Mutex<Vec<Error>>>,
}

impl Bench {
    fn on_all_queues() -> Vec<Bench> {
        let mut queues: Vec<Arc<dyn ConcurrentWorkQueue>> =
            vec![Arc::new(SingleThreadedWorkQueue::new())];
        for n_threads in [1, 2, 4, 16] {
            let queue = MultiThreadedWorkQueue::new(n_threads, 4).expect("threads can be started");
            queues.push(Arc::new(queue));
        }
        queues.into_iter().map(Bench::new).collect()
    }

    fn new(queue: Arc<dyn ConcurrentWorkQueue>) -> Bench {
        let printed = Lines::default();
        let output = Output::new(printed.clone(), io::sink());
        let errors: Arc<Mutex<Vec<Error>>> = Arc::default();
        let heard = errors.clone();
        let name = queue.name();
        let runtime = Runtime::builder()
            .queue(queue)
            .output(output.clone())
            .diagnostics(move |error| heard.lock().unwrap().push(error.clone()))
            .build();
        Bench {
            name,
            runtime,
            output,
            printed,
            errors,
        }
    }

    /// Runs a program, and looks at what it leaves behind.
    fn run(&self, file: &BefFile) -> Outcome {
        let cells = tfrt::asynchronous::counters();
        let mut requests = Vec::new();
        let ran = self.run_functions(file, &mut requests);
        let stdout = std::mem::take(&mut *self.printed.0.lock().unwrap());
        let errors = std::mem::take(&mut *self.errors.lock().unwrap());
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
        let deadline = Some(Instant::now() + PATIENCE);
        let queue = self.runtime.host().queue();
        let settled = queue
            .await_until(&results, deadline)
            .map_err(|error| error.to_string())?;
        if !settled {
            return Err(format!("the results of '{name}' do not come"));
        }
        let results: Vec<_> = results.into_iter().map(AnyAsyncValue::settled).collect();
        let line = result_line(name, function.result_types(), &results, false);
        line.iter().for_each(|line| self.output.print(line));
        self.runtime.quiesce().map_err(|error| error.to_string())?;
        Ok(results)
    }

    /// Says what is still there of requests that are over.
    fn left_behind(
        &self,
        before: tfrt::asynchronous::Counters,
        requests: &[Weak<RequestContext>],
    ) -> Option<String> {
        let until = Instant::now() + SETTLING;
        loop {
            let now = tfrt::asynchronous::counters();
            // Frames hold their request, so that none is left if no request is.
            let held = requests
                .iter()
                .filter(|request| request.strong_count() > 0)
                .count();
            if now == before && held == 0 {
                return None;
            }
            if Instant::now() > until {
                return Some(format!(
                    "left behind: {held} requests, {now:?} after {before:?}"
                ));
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

fn ending_of(error: &Error) -> Ending {
    match error.code() {
        tfrt::ErrorCode::Cancelled => Ending::Cancelled,
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

/// What was printed since it was last taken.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
