//! Tests of kernels that leave their result to a task ([`Later`]): their results, and calls that meanwhile are
//! cancelled, moved to another thread, or made to wait.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tfrt_async::AsyncValue;
use tfrt_async::queue::{ConcurrentWorkQueue, MultiThreadedWorkQueue, SingleThreadedWorkQueue};
use tfrt_bef::{BefBuffer, BefFile};
use tfrt_compiler::{CompileOptions, compile};
use tfrt_host::kernel::{KernelRegistry, Later, Owned, Rest};
use tfrt_host::{
    AnyAsyncValue, Error, ErrorCode, ExecutionContext, Function, HostContext, Program,
    RequestContext,
};

type Sum<T> = Result<T, Error>;

fn divide(a: i32, b: i32) -> Later<impl FnOnce() -> Sum<i32> + Send> {
    Later(move || {
        a.checked_div(b)
            .ok_or(Error::invalid_argument("Divide by zero"))
    })
}

fn text(a: i32) -> Later<impl FnOnce() -> String + Send> {
    Later(move || "x".repeat(usize::try_from(a).unwrap_or(0)))
}

fn panicking(_: i32) -> Later<impl FnOnce() -> i32 + Send> {
    Later(|| panic!("in the task"))
}

fn twice(
    a: i32,
    context: &ExecutionContext,
) -> Later<impl FnOnce() -> AsyncValue<i32> + Send + use<>> {
    let context = context.clone();
    Later(move || context.enqueue(move || Ok(a + a)))
}

fn count(values: Rest) -> Later<impl FnOnce() -> i32 + Send> {
    Later(move || i32::try_from(values.len()).unwrap_or(i32::MAX))
}

/// Starts when its operand's kernel has returned, even if the operand is pending.
fn early(value: AsyncValue<i32>) -> bool {
    !value.is_settled()
}

fn length(text: Owned<String>) -> i32 {
    i32::try_from(text.len()).unwrap_or(i32::MAX)
}

fn quiesce(a: i32, context: &ExecutionContext) -> Result<i32, Error> {
    let waited = context.queue().quiesce();
    waited.map_err(|error| Error::failed_precondition(error.to_string()))?;
    Ok(a)
}

fn quiescing(
    a: i32,
    context: &ExecutionContext,
) -> Later<impl FnOnce() -> Result<i32, Error> + Send + use<>> {
    let context = context.clone();
    Later(move || quiesce(a, &context))
}

fn cancel(a: i32, context: &ExecutionContext) -> i32 {
    context.request().cancel();
    a
}

fn registry() -> KernelRegistry {
    let mut registry = KernelRegistry::new();
    tfrt_kernels::register_all(&mut registry);
    registry
        .add("later.divide", divide)
        .add("later.text", text)
        .add("later.panicking", panicking)
        .add("later.twice", twice)
        .add("later.count", count)
        .add("later.early", early)
        .add("later.length", length)
        .add("later.quiesce", quiesce)
        .add("later.quiescing", quiescing)
        .add("later.cancel", cancel);
    registry
}

fn on(queue: Arc<dyn ConcurrentWorkQueue>) -> HostContext {
    counting(queue, false)
}

/// Returns a host whose calls may be counted from the first kernel on.
fn counting(queue: Arc<dyn ConcurrentWorkQueue>, always_counts: bool) -> HostContext {
    let host = HostContext::builder(registry()).queue(queue);
    host.dynamic_order(always_counts).build()
}

fn single() -> HostContext {
    on(Arc::new(SingleThreadedWorkQueue::new()))
}

/// Returns `@main` with a body: its argument is `%x`, and it returns `results`.
fn main_of(host: &HostContext, body: &str, results: &str) -> Function {
    let names: Vec<&str> = results.split(' ').step_by(2).collect();
    let types: Vec<&str> = results.split(' ').skip(1).step_by(2).collect();
    let (names, types) = (names.join(", "), types.join(", "));
    let text = format!(
        "func.func @main(%x: i32) -> ({types}) {{\n{body}\n  tfrt.return {names} : {types}\n}}\n"
    );
    load(host, &text)
}

fn load(host: &HostContext, text: &str) -> Function {
    let module = tfrt_ir::parse(&tfrt_ir::Source::new("main.mlir", text)).unwrap();
    let bytes: BefBuffer = compile(&module, &CompileOptions::default()).unwrap();
    let program = Program::load(BefFile::open(bytes).unwrap(), host).unwrap();
    program.function("main").unwrap()
}

fn begin(main: &Function, request: &Arc<RequestContext>, x: i32) -> Vec<AnyAsyncValue> {
    main.execute(&ExecutionContext::new(request), vec![AnyAsyncValue::new(x)])
}

/// Calls `@main` with a body on both kinds of queue, that of the host and the request's own, in order as far as that
/// goes and counted, and shows its results.
fn check(body: &str, results: &str, x: i32, expected: &[&str]) {
    let queues: [Arc<dyn ConcurrentWorkQueue>; 2] = [
        Arc::new(SingleThreadedWorkQueue::new()),
        Arc::new(MultiThreadedWorkQueue::new(2, 1).unwrap()),
    ];
    let ways = [(false, false), (false, true), (true, false), (true, true)];
    for (queue, (is_own, always_counts)) in
        queues.iter().flat_map(|queue| ways.map(|way| (queue, way)))
    {
        let of_host = match is_own {
            false => queue.clone(),
            true => Arc::new(SingleThreadedWorkQueue::new()),
        };
        let host = counting(of_host, always_counts);
        let main = main_of(&host, body, results);
        let request = RequestContext::builder(&host);
        let request = match is_own {
            false => request,
            true => request.queue(queue.clone()),
        };
        let values = begin(&main, &request.build(), x);
        queue.await_all(&values).unwrap();
        queue.quiesce().unwrap();
        let shown: Vec<String> = values.into_iter().map(show).collect();
        let name = queue.name();
        assert_eq!(shown, expected, "{name} {is_own} {always_counts}");
    }
}

fn show(value: AnyAsyncValue) -> String {
    let value = value.settled();
    match (value.error(), value.get::<i32>(), value.get::<bool>()) {
        (Some(error), ..) => format!("{:?}: {}", error.code(), error.message()),
        (_, Some(number), _) => number.to_string(),
        (.., Some(flag)) => flag.to_string(),
        _ => "pending".to_owned(),
    }
}

#[test]
fn values_come_one_after_the_other_and_side_by_side() {
    let chain = "
  %two = tfrt.constant.i32 2
  %a = \"later.divide\"(%x, %two) : (i32, i32) -> i32
  %b = \"later.divide\"(%a, %two) : (i32, i32) -> i32
  %c = \"tfrt_test.async_add.i32\"(%a, %b) : (i32, i32) -> i32
  %d = tfrt.add.i32 %c, %x";
    check(chain, "%d i32 %a i32 %a i32", 40, &["70", "20", "20"]);
}

#[test]
fn values_on_the_heap_and_values_to_come_are_handed_on() {
    let body = "
  %t = \"later.text\"(%x) : (i32) -> !tfrt.string
  %n = \"later.length\"(%t) : (!tfrt.string) -> i32
  %m = \"later.length\"(%t) : (!tfrt.string) -> i32
  %d = \"later.twice\"(%n) : (i32) -> i32
  %e = tfrt.add.i32 %d, %m";
    check(body, "%e i32", 7, &["21"]);
}

#[test]
fn errors_and_panics_fail_the_result_and_what_needs_it() {
    let body = "
  %zero = tfrt.constant.i32 0
  %a = \"later.divide\"(%x, %zero) : (i32, i32) -> i32
  %b = tfrt.add.i32 %a, %x
  %c = \"later.panicking\"(%x) : (i32) -> i32
  %d = \"later.divide\"(%c, %x) : (i32, i32) -> i32";
    let divided = "InvalidArgument: Divide by zero";
    let panicked = "Internal: the kernel panicked: in the task";
    check(body, "%b i32 %d i32", 4, &[divided, panicked]);
}

#[test]
fn errors_and_panics_of_tasks_in_a_row_end_nothing_else() {
    let body = "
  %a = \"tfrt_test.async_add.i32\"(%x, %x) : (i32, i32) -> i32
  %b = \"later.panicking\"(%a) : (i32) -> i32
  %c = \"tfrt_test.async_add.i32\"(%b, %x) : (i32, i32) -> i32
  %zero = tfrt.constant.i32 0
  %d = \"later.divide\"(%a, %zero) : (i32, i32) -> i32
  %e = \"tfrt_test.async_add.i32\"(%a, %x) : (i32, i32) -> i32
  %f = \"tfrt_test.async_add.i32\"(%e, %x) : (i32, i32) -> i32";
    let panicked = "Internal: the kernel panicked: in the task";
    let divided = "InvalidArgument: Divide by zero";
    check(body, "%c i32 %d i32 %f i32", 1, &[panicked, divided, "4"]);
}

#[test]
fn waiting_ends_when_the_value_is_there_and_leaves_the_other_tasks() {
    let body = "
  %a = \"tfrt_test.async_add.i32\"(%x, %x) : (i32, i32) -> i32
  %b = \"tfrt_test.async_add.i32\"(%x, %x) : (i32, i32) -> i32
  %c = \"tfrt_test.async_add.i32\"(%a, %b) : (i32, i32) -> i32";
    let host = single();
    let main = main_of(&host, body, "%a i32 %b i32 %c i32");
    let values = begin(&main, &RequestContext::new(&host), 1);
    let settled = || {
        let settled = values.iter().map(AnyAsyncValue::is_settled);
        settled.collect::<Vec<_>>()
    };
    let first = values.iter().position(|value| {
        host.queue().await_all(std::slice::from_ref(value)).unwrap();
        settled().iter().filter(|settled| **settled).count() == 1
    });
    assert_eq!(first, Some(0));
    host.queue().await_all(&values[2..]).unwrap();
    assert_eq!(settled(), [true; 3]);
}

#[test]
fn kernels_that_take_handles_start_before_the_task() {
    let body = "
  %a = \"tfrt_test.async_add.i32\"(%x, %x) : (i32, i32) -> i32
  %b = \"later.early\"(%a) : (i32) -> i1
  %c = tfrt.add.i32 %a, %x";
    let host = single();
    let main = main_of(&host, body, "%b i1 %c i32");
    let values = begin(&main, &RequestContext::new(&host), 3);
    host.queue().await_all(&values).unwrap();
    let shown: Vec<String> = values.into_iter().map(show).collect();
    assert_eq!(shown, ["true", "9"]);
}

#[test]
fn a_kernel_that_any_operand_starts_brings_its_own_result() {
    let body = "
  %zero = tfrt.constant.i32 0
  %a = \"later.divide\"(%x, %zero) : (i32, i32) -> i32
  %b = \"later.count\"(%a, %a, %a, %a, %a, %x) {bef.nonstrict} : (i32, i32, i32, i32, i32, i32) -> i32
  %c = tfrt.add.i32 %b, %x";
    check(body, "%b i32 %c i32", 4, &["6", "10"]);
}

#[test]
fn errors_are_told_once_with_the_place_of_their_kernel() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = told.clone();
    let host = HostContext::builder(registry())
        .queue(Arc::new(SingleThreadedWorkQueue::new()))
        .diagnostics(move |error| {
            let place = error.location().map(ToString::to_string);
            let kernel = error.kernel().map(str::to_owned);
            heard.lock().unwrap().push((kernel, place));
        })
        .build();
    let body = "
  %zero = tfrt.constant.i32 0
  %a = \"later.divide\"(%x, %zero) : (i32, i32) -> i32
  %b = \"later.divide\"(%a, %x) : (i32, i32) -> i32";
    let main = main_of(&host, body, "%b i32");
    let values = begin(&main, &RequestContext::new(&host), 3);
    host.queue().await_all(&values).unwrap();
    let expected = (
        Some("later.divide".to_owned()),
        Some("main.mlir:4:8".to_owned()),
    );
    assert_eq!(*told.lock().unwrap(), [expected]);
}

const TWO: &str = "
  %a = \"tfrt_test.async_add.i32\"(%x, %x) : (i32, i32) -> i32
  %b = \"tfrt_test.async_add.i32\"(%a, %x) : (i32, i32) -> i32";

#[test]
fn a_call_that_is_given_up_does_not_wait_for_tasks_that_nobody_runs() {
    let host = single();
    let main = main_of(&host, TWO, "%b i32");
    let request = RequestContext::new(&host);
    let values = begin(&main, &request, 1);
    assert!(!values[0].is_settled());
    request.cancel();
    assert_eq!(values[0].error().unwrap().code(), ErrorCode::Cancelled);
    // The task finds that it has nothing to bring.
    host.queue().quiesce().unwrap();
    let again = begin(&main, &request, 1);
    assert_eq!(again[0].error().unwrap().code(), ErrorCode::Cancelled);
}

#[test]
fn a_call_that_is_given_up_by_its_own_kernel_ends() {
    let body = "
  %a = \"tfrt_test.async_add.i32\"(%x, %x) : (i32, i32) -> i32
  %b = \"later.cancel\"(%x) : (i32) -> i32
  %c = \"tfrt_test.async_add.i32\"(%a, %b) : (i32, i32) -> i32";
    let cancelled = "Cancelled: Cancelled";
    check(body, "%c i32", 1, &[cancelled]);
}

#[test]
fn a_call_whose_tasks_were_shared_is_given_up_at_once_too() {
    let host = single();
    let main = main_of(&host, TWO, "%a i32 %b i32");
    let request = RequestContext::new(&host);
    let values = begin(&main, &request, 1);
    host.queue().share_local_tasks();
    assert!(values.iter().all(|value| !value.is_settled()));
    request.cancel();
    for value in &values {
        assert_eq!(value.error().unwrap().code(), ErrorCode::Cancelled);
    }
    host.queue().quiesce().unwrap();
}

#[test]
fn a_call_that_its_own_kernel_gives_up_waits_for_no_task() {
    let later = "%a = \"tfrt_test.async_add.i32\"(%x, %x) : (i32, i32) -> i32";
    let cancel = "%b = \"later.cancel\"(%x) : (i32) -> i32";
    for body in [format!("{later}\n{cancel}"), format!("{cancel}\n{later}")] {
        let host = single();
        let main = load(
            &host,
            &format!(
                "func.func @main(%x: i32) -> i32 attributes {{_tfrt_streams = [array<i64: 0, 0, 0>]}} {{
                   {body}
                   tfrt.return %a : i32
                 }}"
            ),
        );
        let values = begin(&main, &RequestContext::new(&host), 1);
        let shown: Vec<String> = values.into_iter().map(show).collect();
        assert_eq!(shown, ["Cancelled: Cancelled"], "{body}");
        // The task, which has the host, whose queue has the task.
        host.queue().quiesce().unwrap();
    }
}

#[test]
fn a_kernel_that_waits_for_the_tasks_of_its_own_call_finds_them() {
    let body = "
  %a = \"tfrt_test.async_add.i32\"(%x, %x) : (i32, i32) -> i32
  %b = \"later.quiesce\"(%x) : (i32) -> i32
  %c = tfrt.add.i32 %a, %b
  %d = \"tfrt_test.async_add.i32\"(%c, %x) : (i32, i32) -> i32";
    let host = single();
    let main = main_of(&host, body, "%d i32");
    // On a thread of the user's, and inside of a task.
    let request = RequestContext::new(&host);
    let here = begin(&main, &request, 5);
    let there = main.spawn(
        &ExecutionContext::new(&request),
        vec![AnyAsyncValue::new(5)],
    );
    for value in here.iter().chain(&there) {
        host.queue().await_all(std::slice::from_ref(value)).unwrap();
        assert_eq!(value.get::<i32>(), Some(&20));
    }
}

#[test]
fn a_task_that_waits_for_others_of_its_call_finds_them() {
    let body = "
  %a = \"tfrt_test.async_add.i32\"(%x, %x) : (i32, i32) -> i32
  %b = \"later.quiescing\"(%a) : (i32) -> i32
  %c = \"tfrt_test.async_add.i32\"(%a, %x) : (i32, i32) -> i32
  %d = \"later.quiescing\"(%c) : (i32) -> i32
  %e = tfrt.add.i32 %b, %d
  %f = \"tfrt_test.async_add.i32\"(%e, %c) : (i32, i32) -> i32";
    let host = single();
    let main = main_of(&host, body, "%f i32");
    for _ in 0..3 {
        let values = begin(&main, &RequestContext::new(&host), 1);
        host.queue().await_all(&values).unwrap();
        assert_eq!(values[0].get::<i32>(), Some(&8));
    }
}

#[test]
fn calls_begun_on_one_thread_go_on_wherever_somebody_waits() {
    let host = single();
    let main = main_of(&host, TWO, "%b i32");
    let request = RequestContext::new(&host);
    let n_right = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (host, main, request, n_right) = (&host, &main, &request, &n_right);
            scope.spawn(move || {
                for turn in 0..200 {
                    let values = begin(main, request, number + turn);
                    host.queue().await_all(&values).unwrap();
                    let is_right = values[0].get::<i32>() == Some(&(3 * (number + turn)));
                    n_right.fetch_add(usize::from(is_right), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(n_right.into_inner(), 800);
}

#[test]
fn calls_that_nobody_waits_for_are_dropped_with_their_tasks() {
    let host = single();
    let main = main_of(&host, TWO, "%b i32");
    let values = begin(&main, &RequestContext::new(&host), 1);
    drop(values);
    host.queue().quiesce().unwrap();
    assert_eq!(host.queue().activity().in_flight, 0);
}

#[test]
fn calls_go_on_at_once_when_their_argument_comes_however_many_did() {
    let host = single();
    let main = main_of(&host, "  %s = tfrt.add.i32 %x, %x", "%s i32");
    let request = RequestContext::new(&host);
    for number in 0..300 {
        let (promise, argument) = AsyncValue::<i32>::pending();
        let context = ExecutionContext::new(&request);
        let results = main.execute(&context, vec![argument.into_any()]);
        assert!(!results[0].is_settled());
        promise.resolve(number);
        assert_eq!(results[0].get::<i32>(), Some(&(2 * number)));
    }
    assert_eq!(host.queue().stats().executed, 0);
}

/// Returns the body of a fan: so many sums of `%x` and itself, and a tree of sums of these, which are `%s`.
fn fan(n: usize) -> String {
    use std::fmt::Write;

    let mut body = String::new();
    let mut add = |name: &str, a: &str, b: &str| {
        let line = format!("  {name} = \"tfrt_test.async_add.i32\"({a}, {b}) : (i32, i32) -> i32");
        writeln!(body, "{line}").unwrap();
    };
    let mut row: Vec<String> = (0..n).map(|leaf| format!("%n{leaf}")).collect();
    row.iter().for_each(|leaf| add(leaf, "%x", "%x"));
    for level in 0.. {
        let sum = |at: usize| match row.len() {
            2 => "%s".to_owned(),
            _ => format!("%l{level}_{at}"),
        };
        let next: Vec<String> = (0..row.len() / 2).map(sum).collect();
        for (name, pair) in next.iter().zip(row.chunks(2)) {
            add(name, &pair[0], &pair[1]);
        }
        row = next;
        if row.len() == 1 {
            return body;
        }
    }
    unreachable!("rows get shorter")
}

#[test]
fn kernels_that_only_begin_a_task_take_no_other_one_on_any_queue() {
    const N: usize = 256;
    let n_sums = 2 * N as u64 - 1;
    let several = Arc::new(MultiThreadedWorkQueue::new(2, 1).unwrap());
    let queues: [Arc<dyn ConcurrentWorkQueue>; 2] =
        [Arc::new(SingleThreadedWorkQueue::new()), several];
    for queue in queues {
        let host = on(queue);
        let main = main_of(&host, &fan(N), "%s i32");
        let values = begin(&main, &RequestContext::new(&host), 3);
        host.queue().await_all(&values).unwrap();
        host.queue().quiesce().unwrap();
        assert_eq!(values[0].get::<i32>(), Some(&(6 * N as i32)));
        let executed = host.queue().stats().executed;
        assert!(
            executed <= n_sums,
            "{}: {executed} tasks",
            host.queue().name()
        );
    }
}
