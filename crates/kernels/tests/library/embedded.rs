//! Tests of kernels that need an embedding program, and of what a host refuses: programs in `tests/` can't show
//! these.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tfrt_async::queue::{
    Activity, AwaitError, ConcurrentWorkQueue, MultiThreadedWorkQueue, QueueStats,
    SingleThreadedWorkQueue, Task,
};
use tfrt_bef::BefFile;
use tfrt_compiler::{CompileOptions, compile};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{
    AnyAsyncValue, CapturedOutput, ErrorCode, ExecutionContext, HostContext, Output, Program,
    RequestContext, ResourceContext,
};

/// A host with all kernels, its output, and the errors that it was told of.
struct Host {
    host: HostContext,
    captured: CapturedOutput,
    told: Arc<Mutex<Vec<String>>>,
}

fn host(queue: Arc<dyn ConcurrentWorkQueue>) -> Host {
    let mut registry = KernelRegistry::new();
    tfrt_kernels::register_all(&mut registry);
    let (output, captured) = Output::captured();
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = told.clone();
    let host = HostContext::builder(registry)
        .queue(queue)
        .output(output)
        .diagnostics(move |error| heard.lock().unwrap().push(error.message().to_owned()))
        .build();
    Host {
        host,
        captured,
        told,
    }
}

fn single() -> Host {
    host(Arc::new(SingleThreadedWorkQueue::new()))
}

impl Host {
    /// Runs `@main` of a text, which is not verified.
    fn run(&self, text: &str, request: &Arc<RequestContext>) -> Vec<AnyAsyncValue> {
        let module = tfrt_ir::parse(&tfrt_ir::Source::new("main.mlir", text)).unwrap();
        let bytes = compile(&module, &CompileOptions::default()).unwrap();
        let program = Program::load(BefFile::open(bytes).unwrap(), &self.host).unwrap();
        let main = program.function("main").unwrap();
        let results = main.execute(&ExecutionContext::new(request), Vec::new());
        self.host.queue().await_all(&results).unwrap();
        self.host.queue().quiesce().unwrap();
        results.into_iter().map(AnyAsyncValue::settled).collect()
    }

    fn told(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }
}

fn message(value: &AnyAsyncValue) -> &str {
    value.error().expect("an error").message()
}

#[test]
fn request_data_and_resources_reach_kernels() {
    let host = single();
    let resources = Arc::new(ResourceContext::new());
    resources.get_or_create("val", || 1000i32).unwrap();
    let request = RequestContext::builder(&host.host)
        .resources(resources)
        .data(200i32)
        .build();
    let results = host.run(
        r#"
func.func @main() -> (i32, i32, i64) {
  %x = "tfrt_test.get_request_context_data.i32"() : () -> i32
  %y = "tfrt_test.sum_array_attr.i32"() {a = "0x10", b = [1 : i32, 2 : i32]} : () -> i32
  %z = "tfrt_test.sum_array_attr.i64"() {a = "7", b = [1, 2]} : () -> i64
  tfrt.return %x, %y, %z : i32, i32, i64
}
"#,
        &request,
    );
    assert_eq!(results[0].get::<i32>(), Some(&200));
    assert_eq!(results[1].get::<i32>(), Some(&1219));
    assert_eq!(message(&results[2]), "the request has no data of type i64");
}

#[test]
fn once_without_resources_is_a_silent_error() {
    let host = single();
    let request = RequestContext::builder(&host.host).build();
    let results = host.run(
        "
func.func @init(%x: i32) -> i32 {
  tfrt.return %x : i32
}
func.func @main() -> i32 {
  %x = tfrt.constant.i32 1
  %y = tfrt.once @init(%x) : (i32) -> (i32)
  tfrt.return %y : i32
}
",
        &request,
    );
    assert_eq!(message(&results[0]), "tfrt.once requires resource context");
    assert!(host.told().is_empty());
}

const ONCE: &str = "
func.func @init(%x: i32) -> i32 {
  %y = \"tfrt_test.async_copy.with_delay.i32\"(%x) : (i32) -> i32
  tfrt.return %y : i32
}
func.func @main() -> i32 {
  %x = \"tfrt_test.get_request_context_data.i32\"() : () -> i32
  %y = tfrt.once @init(%x) : (i32) -> (i32)
  tfrt.return %y : i32
}
";

#[test]
fn requests_that_share_resources_share_what_runs_once() {
    let host = host(Arc::new(MultiThreadedWorkQueue::new(2, 1).unwrap()));
    let resources = Arc::new(ResourceContext::new());
    let numbers: Vec<i32> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let (host, resources) = (&host, &resources);
                scope.spawn(move || {
                    let request = RequestContext::builder(&host.host)
                        .resources(resources.clone())
                        .data(number)
                        .build();
                    *host.run(ONCE, &request)[0].get::<i32>().unwrap()
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert!(
        numbers.iter().all(|number| *number == numbers[0]),
        "{numbers:?}"
    );
}

#[test]
fn once_that_was_cancelled_first_fails_for_all() {
    let host = single();
    let resources = Arc::new(ResourceContext::new());
    let request = |cancelled: bool| {
        let request = RequestContext::builder(&host.host)
            .resources(resources.clone())
            .data(5i32)
            .build();
        if cancelled {
            request.cancel();
        }
        request
    };
    assert_eq!(message(&host.run(ONCE, &request(true))[0]), "Cancelled");
    // The first never came to `tfrt.once`, so the second is the first that does.
    assert_eq!(host.run(ONCE, &request(false))[0].get::<i32>(), Some(&5));
}

#[test]
fn parallel_body_with_other_results_than_a_chain_is_a_silent_error() {
    let host = single();
    for results in ["!tfrt.chain, !tfrt.chain", "i32"] {
        let returned = match results {
            "i32" => "%from : i32",
            _ => "%c, %c : !tfrt.chain, !tfrt.chain",
        };
        let text = format!(
            "
func.func @work(%from: i32, %to: i32) -> ({results}) {{
  %c = tfrt.new.chain
  tfrt.return {returned}
}}
func.func @main() -> !tfrt.chain {{
  %from = tfrt.constant.i32 0
  %to = tfrt.constant.i32 4
  %done = \"tfrt.parallel_call.i32\"(%from, %to, %to) {{callee = @work}} : (i32, i32, i32) -> !tfrt.chain
  tfrt.return %done : !tfrt.chain
}}
"
        );
        let values = host.run(&text, &RequestContext::new(&host.host));
        let expected = "Invalid parallel body function result types";
        assert_eq!(message(&values[0]), expected);
    }
    assert!(host.told().is_empty());
}

#[test]
fn benchmark_of_a_function_with_two_results_is_an_error() {
    let host = single();
    let values = host.run(
        r#"
func.func @two(%x: i32) -> (i32, i32) {
  tfrt.return %x, %x : i32, i32
}
func.func @main() -> !tfrt.chain {
  %x = tfrt.constant.i32 0
  %c = "tfrt_test.benchmark"(%x) {duration_secs = 1 : i32, max_count = 1 : i32, name = "two",
    num_warmup_runs = 0 : i32, fn = @two} : (i32) -> !tfrt.chain
  tfrt.return %c : !tfrt.chain
}
"#,
        &RequestContext::new(&host.host),
    );
    let expected = "Benchmark op requires the input function have exactly one return value";
    assert_eq!(message(&values[0]), expected);
}

#[test]
fn kernel_of_a_worker_may_not_wait_for_all_tasks() {
    let host = host(Arc::new(MultiThreadedWorkQueue::new(1, 1).unwrap()));
    let values = host.run(
        r#"
func.func @main() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %done = tfrt_test.do.async %ch : (!tfrt.chain) -> (!tfrt.chain) {
    %c = "tfrt_test.quiesce"(%ch) : (!tfrt.chain) -> !tfrt.chain
    tfrt.return %c : !tfrt.chain
  }
  tfrt.return %done : !tfrt.chain
}
"#,
        &RequestContext::new(&host.host),
    );
    assert_eq!(
        values[0].error().unwrap().code(),
        ErrorCode::FailedPrecondition
    );
}

/// A queue that refuses blocking tasks.
struct NoBlocking(SingleThreadedWorkQueue, AtomicUsize);

impl ConcurrentWorkQueue for NoBlocking {
    fn name(&self) -> String {
        self.0.name()
    }
    fn add_task(&self, task: Task) {
        self.0.add_task(task);
    }
    fn add_blocking_task(&self, task: Task, _: bool) -> Result<(), Task> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Err(task)
    }
    fn await_all(&self, values: &[AnyAsyncValue]) -> Result<(), AwaitError> {
        self.0.await_all(values)
    }
    fn await_until(
        &self,
        values: &[AnyAsyncValue],
        deadline: Option<std::time::Instant>,
    ) -> Result<bool, AwaitError> {
        self.0.await_until(values, deadline)
    }
    fn quiesce(&self) -> Result<(), AwaitError> {
        self.0.quiesce()
    }
    fn parallelism(&self) -> usize {
        self.0.parallelism()
    }
    fn is_worker_thread(&self) -> bool {
        self.0.is_worker_thread()
    }
    fn activity(&self) -> Activity {
        self.0.activity()
    }
    fn stats(&self) -> QueueStats {
        self.0.stats()
    }
}

#[test]
fn refused_blocking_tasks_are_told() {
    let queue = Arc::new(NoBlocking(
        SingleThreadedWorkQueue::new(),
        AtomicUsize::new(0),
    ));
    let host = host(queue.clone());
    let values = host.run(
        r#"
func.func @main() -> !tfrt.chain {
  %us = tfrt.constant.i32 10
  "tfrt_test.usleep"(%us) : (i32) -> ()
  %c = "tfrt_test.blocking.usleep"(%us) : (i32) -> !tfrt.chain
  tfrt.return %c : !tfrt.chain
}
"#,
        &RequestContext::new(&host.host),
    );
    let expected =
        "Failed to enqueue blocking work. Maximum number of pending blocking tasks reached.";
    assert_eq!(message(&values[0]), expected);
    assert_eq!(queue.1.load(Ordering::Relaxed), 2);
    assert_eq!(host.captured.logged(), format!("{expected}\n{expected}\n"));
    assert_eq!(host.captured.printed(), "");
    assert_eq!(host.told(), [expected]);
}

#[test]
fn kernel_that_prints_prints_whole_lines_to_the_output_of_its_host() {
    let host = single();
    host.run(
        r#"
func.func @main() {
  %c0 = tfrt.new.chain
  %x = tfrt.constant.i32 -1
  %v = "vt.constant"() {value = 7 : i32} : () -> !vt.value
  %c1 = tfrt.print.i32 %x, %c0
  tfrt.return
}
"#,
        &RequestContext::new(&host.host),
    );
    let printed = host.captured.printed();
    let mut lines: Vec<&str> = printed.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "constructed vt.value(7)",
            "destroyed vt.value(7)",
            "int32 = -1",
            "move constructed vt.value(7)"
        ]
    );
}

#[test]
fn loops_of_cancelled_requests_end_whatever_their_bodies_hold() {
    let host = host(Arc::new(MultiThreadedWorkQueue::new(2, 1).unwrap()));
    for parallel_iterations in [1, 4] {
        let text = format!(
            "
func.func @forever(%more: i1) -> (i1, i1) {{
  tfrt.return %more, %more : i1, i1
}}
func.func @main() -> i1 {{
  %true = tfrt.constant.i1 true
  %r = tfrt.while %true @forever(%true) parallel_iterations({parallel_iterations}) : (i1) -> (i1)
  tfrt.return %r : i1
}}
"
        );
        let request = RequestContext::builder(&host.host)
            .deadline(std::time::Instant::now() + std::time::Duration::from_millis(20))
            .build();
        let values = host.run(&text, &request);
        assert_eq!(
            values[0].error().unwrap().code(),
            ErrorCode::DeadlineExceeded
        );
    }
}

const FAILING: &str = "func.func @main() -> (i32, i32) {\n  \
    %x, %y = \"tfrt_test.fail_twice\"() : () -> (i32, i32)\n  tfrt.return %x, %y : i32, i32\n}\n";

/// A value that panics when it is dropped.
struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic!("and it panics again");
    }
}

#[test]
fn a_diagnostic_handler_that_panics_costs_its_message_and_nothing_else() {
    for always_counted in [false, true] {
        let mut registry = KernelRegistry::new();
        registry.add(
            "tfrt_test.fail_twice",
            || -> (Result<i32, tfrt_host::Error>, i32) {
                (Err(tfrt_host::Error::invalid_argument("first")), 2)
            },
        );
        let host = HostContext::builder(registry)
            .queue(Arc::new(SingleThreadedWorkQueue::new()))
            .dynamic_order(always_counted)
            .diagnostics(|_| std::panic::panic_any(PanicsWhenDropped))
            .build();
        let host = Host {
            host,
            captured: Output::captured().1,
            told: Arc::default(),
        };
        let request = RequestContext::new(&host.host);
        let results = host.run(FAILING, &request);
        assert_eq!(results[0].error().unwrap().message(), "first");
        assert_eq!(results[1].get::<i32>(), Some(&2));
    }
}

#[test]
fn more_results_than_asked_for_are_an_error_in_both_orders() {
    let text = "func.func @main() -> i32 {\n  %x = tfrt.constant.i32 7\n  \
        %y = \"tfrt_test.multi_arg_result\"(%x, %x, %x) : (i32, i32, i32) -> i32\n  \
        tfrt.return %y : i32\n}\n";
    let host = single();
    let results = host.run(text, &RequestContext::new(&host.host));
    let message = "the kernel gave 3 results where 1 are expected";
    assert_eq!(results[0].error().unwrap().message(), message);
    assert_eq!(*host.told.lock().unwrap(), [message]);
}

#[test]
fn calls_nest_as_deep_as_there_is_memory() {
    let text = "
func.func @sum(%n: i32, %text: !tfrt.string) -> (i32, !tfrt.string) {
  %one = tfrt.constant.i32 1
  %more = \"tfrt.lessequal.i32\"(%one, %n) : (i32, i32) -> i1
  %sum, %same = tfrt.if %more, %n, %text : (i32, !tfrt.string) -> (i32, !tfrt.string) {
    %one = tfrt.constant.i32 1
    %less = \"tfrt.minus.i32\"(%n, %one) : (i32, i32) -> i32
    %rest, %same = tfrt.call @sum(%less, %text) : (i32, !tfrt.string) -> (i32, !tfrt.string)
    %sum = tfrt.add.i32 %n, %rest
    tfrt.return %sum, %same : i32, !tfrt.string
  } else {
    tfrt.return %n, %text : i32, !tfrt.string
  }
  tfrt.return %sum, %same : i32, !tfrt.string
}
func.func @main() -> (i32, !tfrt.string) {
  %n = tfrt.constant.i32 5000
  %text = \"tfrt_test.get_string\"() {value = \"deep\"} : () -> !tfrt.string
  %sum, %same = tfrt.call @sum(%n, %text) : (i32, !tfrt.string) -> (i32, !tfrt.string)
  tfrt.return %sum, %same : i32, !tfrt.string
}
";
    let host = single();
    for _ in 0..3 {
        let results = host.run(text, &RequestContext::new(&host.host));
        assert_eq!(results[0].get::<i32>(), Some(&12_502_500));
        assert_eq!(results[1].get::<String>().unwrap(), "deep");
    }
}

#[test]
fn a_thread_is_inside_of_a_kernel_while_that_runs() {
    let mut registry = KernelRegistry::new();
    registry
        .add("t.is_inside", || {
            tfrt_host::guarded(|| assert!(tfrt_host::is_in_kernel())).is_ok()
                && tfrt_host::is_in_kernel()
        })
        .add("t.panics", || -> i32 { panic!("inside") });
    let host = HostContext::builder(registry)
        .queue(Arc::new(SingleThreadedWorkQueue::new()))
        .build();
    let host = Host {
        host,
        captured: Output::captured().1,
        told: Arc::default(),
    };
    assert!(!tfrt_host::is_in_kernel());
    let text = "func.func @main() -> (i1, i32) {\n  %x = \"t.is_inside\"() : () -> i1\n  \
        %y = \"t.panics\"() : () -> i32\n  tfrt.return %x, %y : i1, i32\n}\n";
    let results = host.run(text, &RequestContext::new(&host.host));
    assert_eq!(results[0].get::<bool>(), Some(&true));
    assert_eq!(message(&results[1]), "the kernel panicked: inside");
    assert!(!tfrt_host::is_in_kernel());
}
