//! Tests of promised values: kernels that run at once when they are resolved, and calls that end although they never
//! are.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tfrt_async::queue::SingleThreadedWorkQueue;
use tfrt_async::{AsyncValue, Promise};
use tfrt_bef::BefFile;
use tfrt_compiler::{CompileOptions, compile};
use tfrt_host::kernel::{KernelRegistry, Later};
use tfrt_host::{
    AnyAsyncValue, Error, ErrorCode, ExecutionContext, HostContext, Program, RequestContext, Stuck,
};

/// The promises of pending values.
type Promises = Arc<Mutex<Vec<Promise<i32>>>>;

/// Starts when its operand's kernel has returned, even if the operand is pending.
fn early(value: AsyncValue<i32>) -> bool {
    !value.is_settled()
}

/// Fails with the error of a broken promise.
fn breaks_its_word(_: i32) -> Result<i32, Error> {
    let (promise, value) = AsyncValue::<i32>::pending();
    drop(promise);
    let value = value.into_any();
    value.error().map_or(Ok(0), |error| Err(error.clone()))
}

fn passes_on(value: AsyncValue<i32>) -> AsyncValue<i32> {
    value
}

/// The handling of stuck requests while a test keeps a promise itself: none fails.
const UNWATCHED: Stuck = Stuck::Report;

fn both(handle: AsyncValue<i32>, value: i32) -> i32 {
    handle
        .get()
        .and_then(Result::ok)
        .map_or(-1, |same| same + value)
}

/// Returns a host with one thread that handles stuck requests so. Its kernel `t.to_come` keeps its promises here;
/// `t.gives_up` cancels its request before it returns, and `t.keeps_next` keeps the last promise that is left.
fn promising(stuck: Stuck) -> (HostContext, Promises) {
    promising_in(false, stuck)
}

/// Returns such a host, whose calls may be counted from the first kernel on.
fn promising_in(always_counts: bool, stuck: Stuck) -> (HostContext, Promises) {
    let promises = Promises::default();
    let (kept, left, next) = (promises.clone(), promises.clone(), promises.clone());
    let mut registry = KernelRegistry::new();
    tfrt_kernels::register_all(&mut registry);
    registry
        .add(
            "t.to_come",
            move |_: i32, _: &ExecutionContext| -> AsyncValue<i32> {
                let (promise, value) = AsyncValue::pending();
                kept.lock().unwrap().push(promise);
                value
            },
        )
        .add(
            "t.gives_up",
            move |_: i32, context: &ExecutionContext| -> AsyncValue<i32> {
                context.request().cancel();
                let (promise, value) = AsyncValue::pending();
                left.lock().unwrap().push(promise);
                value
            },
        )
        .add("t.keeps_next", move |x: i32| {
            let promise = next.lock().unwrap().pop();
            if let Some(promise) = promise {
                promise.resolve(x);
            }
            x
        })
        .add("t.later", |x: i32| Later(move || x + 1))
        .add("t.breaks_its_word", breaks_its_word)
        .add("t.passes_on", passes_on)
        .add("t.early", early)
        .add("t.both", both);
    let queue = Arc::new(SingleThreadedWorkQueue::new());
    let host = HostContext::builder(registry)
        .queue(queue)
        .dynamic_order(always_counts)
        .stuck(stuck)
        .build();
    (host, promises)
}

/// Drops promises that are left: calls that wait for them have the host, whose kernels have the promises.
fn break_all(promises: &Promises) {
    let left = std::mem::take(&mut *promises.lock().unwrap());
    drop(left);
}

/// Calls `@main` with 1.
fn begin(host: &HostContext, text: &str) -> Vec<AnyAsyncValue> {
    let module = tfrt_ir::parse(&tfrt_ir::Source::new("main.mlir", text)).unwrap();
    let bytes = compile(&module, &CompileOptions::default()).unwrap();
    let program = Program::load(BefFile::open(bytes).unwrap(), host).unwrap();
    let main = program.function("main").unwrap();
    let request = RequestContext::new(host);
    main.execute(
        &ExecutionContext::new(&request),
        vec![AnyAsyncValue::new(1)],
    )
}

#[test]
fn a_value_goes_on_in_the_stream_of_its_kernel() {
    // The streams of the entry, and of the three kernels.
    for (streams, expected) in [
        ("0, 1, 0, 1", [None, Some(3)]),
        ("0, 1, 1, 0", [Some(3), None]),
        ("0, 0, 1, 0", [None, Some(3)]),
        ("1, 1, 1, 1", [Some(3), Some(3)]),
    ] {
        let text = format!(
            r#"func.func @main(%x: i32) -> (i32, i32)
                attributes {{_tfrt_streams = [array<i64: {streams}>]}} {{
              %p = "t.to_come"(%x) : (i32) -> i32
              %a = tfrt.add.i32 %p, %x
              %b = tfrt.add.i32 %p, %x
              tfrt.return %a, %b : i32, i32
            }}"#
        );
        let (host, promises) = promising(UNWATCHED);
        let results = begin(&host, &text);
        assert!(results.iter().all(|result| !result.is_settled()));
        for promise in std::mem::take(&mut *promises.lock().unwrap()) {
            promise.resolve(2);
        }
        // No task has run yet.
        let found = results.iter().map(|result| result.get::<i32>().copied());
        assert_eq!(found.collect::<Vec<_>>(), expected, "{streams}");
        host.queue().await_all(&results).unwrap();
        assert!(results.iter().all(|result| result.get() == Some(&3)));
    }
}

#[test]
fn a_value_goes_on_in_the_stream_in_which_a_handle_to_it_was_given() {
    // The streams of the entry, and of the four kernels.
    for (streams, expected) in [
        ("0, 0, 0, 0, 1", [Some(3), None]),
        ("0, 0, 0, 1, 0", [None, Some(3)]),
        ("1, 1, 1, 0, 1", [None, Some(3)]),
        ("1, 1, 1, 1, 0", [Some(3), None]),
    ] {
        let text = format!(
            r#"func.func @main(%x: i32) -> (i32, i32, i1)
                attributes {{_tfrt_streams = [array<i64: {streams}>]}} {{
              %p = "t.to_come"(%x) : (i32) -> i32
              %e = "t.early"(%p) : (i32) -> i1
              %a = tfrt.add.i32 %p, %x
              %b = tfrt.add.i32 %p, %x
              tfrt.return %a, %b, %e : i32, i32, i1
            }}"#
        );
        let (host, promises) = promising(UNWATCHED);
        let results = begin(&host, &text);
        assert_eq!(results[2].get::<bool>(), Some(&true));
        promises.lock().unwrap().pop().unwrap().resolve(2);
        // No task has run yet.
        let found = results[..2]
            .iter()
            .map(|result| result.get::<i32>().copied());
        assert_eq!(found.collect::<Vec<_>>(), expected, "{streams}");
        host.queue().await_all(&results).unwrap();
        assert!(results[..2].iter().all(|result| result.get() == Some(&3)));
    }
}

#[test]
fn a_call_that_its_own_kernel_gives_up_waits_for_no_promise_of_it() {
    for body in [
        "%r = tfrt.add.i32 %p, %x",
        "%e = \"t.early\"(%p) : (i32) -> i1\n  %r = tfrt.add.i32 %p, %x",
    ] {
        let text = format!(
            "func.func @main(%x: i32) -> (i32, i32) {{\n  \
             %p = \"t.gives_up\"(%x) : (i32) -> i32\n  {body}\n  tfrt.return %p, %r : i32, i32\n}}\n"
        );
        let (host, promises) = promising(UNWATCHED);
        for result in begin(&host, &text) {
            let result = result.settled();
            let code = result.error().map(|error| error.code());
            assert_eq!(code, Some(ErrorCode::Cancelled), "{text}");
        }
        assert_eq!(promises.lock().unwrap().len(), 1);
        break_all(&promises);
    }
}

#[test]
fn kernels_that_need_a_value_wait_for_it_beside_one_that_takes_a_handle() {
    let text = r#"func.func @main(%x: i32) -> (i1, i32, i32)
        attributes {_tfrt_streams = [array<i64: 0, 0, 0, 0, 0>]} {
      %p = "t.to_come"(%x) : (i32) -> i32
      %a = "t.early"(%p) : (i32) -> i1
      %b = tfrt.add.i32 %p, %x
      %c = "t.both"(%p, %p) : (i32, i32) -> i32
      tfrt.return %a, %b, %c : i1, i32, i32
    }"#;
    let (host, promises) = promising(UNWATCHED);
    let results = begin(&host, text);
    assert_eq!(results[0].get::<bool>(), Some(&true));
    assert!(!results[1].is_settled() && !results[2].is_settled());
    let promise = promises.lock().unwrap().pop().unwrap();
    promise.resolve(2);
    assert_eq!(results[1].get::<i32>(), Some(&3));
    assert_eq!(results[2].get::<i32>(), Some(&4));
}

#[test]
fn tasks_go_on_with_a_call_that_nothing_else_waits_for_any_more() {
    let to_come = "%p = \"t.to_come\"(%x) : (i32) -> i32";
    let later = "%a = \"t.later\"(%x) : (i32) -> i32";
    for (first, second, always_counts) in [
        (to_come, later, false),
        (later, to_come, false),
        (to_come, later, true),
        (later, to_come, true),
    ] {
        let text = format!(
            "func.func @main(%x: i32) -> (i32, i32)
                 attributes {{_tfrt_streams = [array<i64: 0, 0, 0, 0>]}} {{
               {first}
               {second}
               %b = \"t.later\"(%a) : (i32) -> i32
               tfrt.return %p, %b : i32, i32
             }}"
        );
        let (host, promises) = promising_in(always_counts, UNWATCHED);
        let results = begin(&host, &text);
        promises.lock().unwrap().pop().unwrap().resolve(5);
        assert_eq!(results[0].get::<i32>(), Some(&5));
        host.queue().await_all(&results).unwrap();
        assert_eq!(results[1].get::<i32>(), Some(&3));
    }
}

#[test]
fn a_marked_kernel_does_not_start_with_a_handle_that_others_take() {
    let text = r#"func.func @main(%x: i32) -> (i1, i1)
        attributes {_tfrt_streams = [array<i64: 0, 0, 0, 0>]} {
      %p = "t.to_come"(%x) : (i32) -> i32
      %a = "t.early"(%p) : (i32) -> i1
      %b = "t.early"(%p) {bef.nonstrict} : (i32) -> i1
      tfrt.return %a, %b : i1, i1
    }"#;
    let (host, promises) = promising(UNWATCHED);
    let results = begin(&host, text);
    assert_eq!(results[0].get::<bool>(), Some(&true));
    assert!(!results[1].is_settled());
    promises.lock().unwrap().pop().unwrap().resolve(5);
    host.queue().await_all(&results).unwrap();
    assert!(results[1].get::<bool>().is_some());
}

#[test]
fn an_error_keeps_the_name_of_the_kernel_that_has_failed_first() {
    let text = r#"func.func @main(%x: i32) -> i32 {
      %a = "t.breaks_its_word"(%x) : (i32) -> i32
      %b = "t.passes_on"(%a) : (i32) -> i32
      tfrt.return %b : i32
    }"#;
    let (host, _) = promising(UNWATCHED);
    let results = begin(&host, text);
    host.queue().await_all(&results).unwrap();
    let result = results.into_iter().next().unwrap().settled();
    let error = result.error().unwrap();
    assert_eq!(error.kernel(), Some("t.breaks_its_word"));
    let word = breaks_its_word(0).unwrap_err();
    assert_eq!(error.message(), word.message());
}

#[test]
fn calls_whose_promises_nobody_can_keep_are_found_one_after_the_other() {
    let text = r#"func.func @main(%x: i32) -> i32 {
      %p = "t.to_come"(%x) : (i32) -> i32
      %a = tfrt.add.i32 %p, %x
      tfrt.return %a : i32
    }"#;
    let (host, promises) = promising(Stuck::Fail(Duration::from_millis(1)));
    for n_calls in 1..4 {
        let results = begin(&host, text);
        let latest = Instant::now() + Duration::from_secs(30);
        let is_found = host.queue().await_until(&results, Some(latest));
        assert!(is_found.unwrap(), "nobody looks");
        let error = results[0].error().unwrap();
        assert_eq!(
            error.message(),
            "the request is stuck: nothing can run and nothing is in flight, but kernel 't.to_come' at \
             main.mlir:2:12 never resolved"
        );
        assert_eq!(promises.lock().unwrap().len(), n_calls);
    }
    break_all(&promises);
}

#[test]
fn values_that_bring_each_other_nest_a_hundred_deep() {
    let text = r#"func.func @main(%x: i32) -> i32 {
      %p = "t.to_come"(%x) : (i32) -> i32
      %k = "t.keeps_next"(%p) : (i32) -> i32
      tfrt.return %k : i32
    }"#;
    let (host, promises) = promising(UNWATCHED);
    let results: Vec<_> = (0..150).flat_map(|_| begin(&host, text)).collect();
    let last = promises.lock().unwrap().pop().unwrap();
    last.resolve(5);
    let n_settled = results.iter().filter(|result| result.is_settled()).count();
    // Then a task goes on.
    assert_eq!(n_settled, 100);
    host.queue().await_all(&results).unwrap();
    assert!(results.iter().all(|result| result.get() == Some(&5)));
    assert_eq!(host.queue().stats().executed, 1);
}
