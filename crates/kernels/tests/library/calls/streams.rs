//! Tests of the threads and the order of kernels: streams on one thread and on several.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

use tfrt_async::queue::{ConcurrentWorkQueue, MultiThreadedWorkQueue, SingleThreadedWorkQueue};
use tfrt_host::kernel::{Call, Callee, KernelRegistry, Step};
use tfrt_host::{
    AnyAsyncValue, AsyncValue, ExecutionContext, Function, HostContext, RequestContext,
};

use super::main_of;

/// A host whose kernels report: `t.note` prints, `t.where` is silent, and takes as long as it is told to.
struct Host {
    host: HostContext,
    notes: Arc<Mutex<Vec<i32>>>,
    threads: Arc<Mutex<Vec<ThreadId>>>,
    takes_us: Arc<AtomicU64>,
}

/// Notes the thread, and takes some time there.
fn take(threads: &Mutex<Vec<ThreadId>>, us: &AtomicU64) {
    threads.lock().unwrap().push(thread::current().id());
    match us.load(Ordering::Relaxed) {
        0 => {}
        us => thread::sleep(Duration::from_micros(us)),
    }
}

/// Calls a function so many times, and returns how much was noted before the end.
fn turns(n_left: i32, body: Callee, notes: Arc<Mutex<Vec<i32>>>) -> Step {
    if n_left == 0 {
        let n_notes = i32::try_from(notes.lock().unwrap().len()).unwrap();
        return Step::done(vec![AnyAsyncValue::new(n_notes)]);
    }
    let call = Call::new(body, vec![AnyAsyncValue::new(1)]);
    Step::call(call, move |_| turns(n_left - 1, body, notes))
}

impl Host {
    fn new(queue: Arc<dyn ConcurrentWorkQueue>, always_counts: bool) -> Host {
        let (notes, threads) = (
            Arc::<Mutex<Vec<_>>>::default(),
            Arc::<Mutex<Vec<_>>>::default(),
        );
        let takes_us = Arc::new(AtomicU64::new(0));
        let mut registry = KernelRegistry::new();
        tfrt_kernels::register_all(&mut registry);
        let (noted, seen, takes) = (notes.clone(), threads.clone(), takes_us.clone());
        let counted = notes.clone();
        let (second, also_seen, also_takes) = (notes.clone(), threads.clone(), takes_us.clone());
        registry
            .add("t.note", move |x: i32, _: &ExecutionContext| {
                noted.lock().unwrap().push(x);
                x
            })
            .add(
                "t.note_second",
                move |_: i32, x: i32, _: &ExecutionContext| {
                    second.lock().unwrap().push(x);
                    x
                },
            )
            .add("t.where", move |x: i32| {
                take(&seen, &takes);
                x
            })
            .add(
                "t.waits_and_turns",
                move |n: i32, body: Callee, context: &ExecutionContext| {
                    let (value, counted) = (context.enqueue(move || Ok(n)), counted.clone());
                    Step::wait_for(vec![value.into_any()], move |_| turns(n, body, counted))
                },
            )
            .add("t.where_async", move |x: i32| {
                take(&also_seen, &also_takes);
                AsyncValue::available(x)
            });
        let host = HostContext::builder(registry)
            .queue(queue)
            .dynamic_order(always_counts)
            .build();
        Host {
            host,
            notes,
            threads,
            takes_us,
        }
    }

    fn several() -> Host {
        Host::new(Arc::new(MultiThreadedWorkQueue::new(2, 1).unwrap()), false)
    }

    fn main_of(&self, text: &str) -> Function {
        main_of(&self.host, text)
    }

    fn begin(&self, main: &Function) -> Vec<AnyAsyncValue> {
        let context = ExecutionContext::new(&RequestContext::new(&self.host));
        let arguments = 1..=i32::try_from(main.n_arguments()).unwrap();
        main.execute(&context, arguments.map(AnyAsyncValue::new).collect())
    }

    /// Calls a function, and returns whether all of its kernels have run on this thread.
    fn runs_here(&self, main: &Function) -> bool {
        let results = self.begin(main);
        self.host.queue().await_all(&results).unwrap();
        let threads = std::mem::take(&mut *self.threads.lock().unwrap());
        assert!(threads.len() >= 2);
        threads.iter().all(|id| *id == thread::current().id())
    }
}

impl Drop for Host {
    /// Breaks a cycle: tasks that nobody has waited for have the host, whose queue has them.
    fn drop(&mut self) {
        let _ = self.host.queue().quiesce();
    }
}

fn single() -> Arc<dyn ConcurrentWorkQueue> {
    Arc::new(SingleThreadedWorkQueue::new())
}

/// Returns a program that notes all of its six arguments, in these streams.
fn noting(streams: &str, results: &str, first: &str) -> String {
    let n_results = results.split(',').count();
    let types = vec!["i32"; n_results].join(", ");
    format!(
        "func.func @silent(%x: i32) -> i32 {{
           tfrt.return %x : i32
         }}
         func.func @main(%a: i32, %b: i32, %c: i32, %d: i32, %e: i32, %f: i32) -> ({types})
             attributes {{_tfrt_streams = [array<i64: {streams}>]}} {{
           {first}
           %p = \"t.note\"(%a) : (i32) -> i32
           %q = \"t.note\"(%b) : (i32) -> i32
           %r = \"t.note\"(%c) : (i32) -> i32
           %s = \"t.note\"(%d) : (i32) -> i32
           %t = \"t.note\"(%e) : (i32) -> i32
           %u = \"t.note\"(%f) : (i32) -> i32
           tfrt.return {results} : {types}
         }}"
    )
}

/// Returns the arguments that are returned.
fn results_of(names: &str) -> Vec<i32> {
    let numbered = (1..).zip(["%p", "%q", "%r", "%s", "%t", "%u"]);
    let returned = numbered.filter(|(_, name)| names.contains(name));
    returned.map(|(number, _)| number).collect()
}

#[test]
fn one_thread_runs_stream_after_stream_and_the_last_that_was_ready_first() {
    let call = "%z = tfrt.call @silent(%a) : (i32) -> i32";
    for always_counts in [false, true] {
        for (streams, results, first, n_at_once, order) in [
            ("0, 2, 0, 1, 0, 2, 1", "%p, %q", "", 2, [4, 2, 6, 3, 5, 1]),
            ("0, 2, 0, 1, 0, 2, 1", "%q, %s", "", 2, [4, 2, 6, 3, 5, 1]),
            ("1, 0, 1, 0, 1, 2, 2", "%p, %t", "", 2, [4, 2, 3, 1, 6, 5]),
            ("5, 1, 1, 0, 1, 0, 0", "%p", "", 3, [1, 2, 4, 3, 5, 6]),
            ("3, 3, 3, 3, 3, 3, 3", "%p", "", 6, [6, 5, 4, 3, 2, 1]),
            (
                "0, 0, 2, 0, 1, 0, 2, 1",
                "%p, %q",
                call,
                2,
                [4, 2, 6, 3, 5, 1],
            ),
        ] {
            let host = Host::new(single(), always_counts);
            let main = host.main_of(&noting(streams, results, first));
            let values = host.begin(&main);
            let at_once = host.notes.lock().unwrap().clone();
            host.host.queue().await_all(&values).unwrap();
            host.host.queue().quiesce().unwrap();
            let notes = host.notes.lock().unwrap().clone();
            let what = format!("{streams} {results} {first} {always_counts}");
            assert_eq!(notes, order, "{what}");
            // A call whose order is known runs to its end, unless what it shows before would tell.
            let last = order.last().expect("there are six");
            let is_known = !always_counts && results_of(results).contains(last);
            let n_at_once = if is_known { 6 } else { n_at_once };
            assert_eq!(at_once, order[..n_at_once], "{what}");
        }
    }
}

/// Two kernels in two streams, whose order nobody can observe.
const SIDE_BY_SIDE: &str = "%a = \"t.where\"(%x) : (i32) -> i32
           %b = \"t.where\"(%x) : (i32) -> i32";

fn silent(first: &str, streams: &str) -> String {
    format!(
        "func.func @countdown(%n: i32) -> i32 {{
           %one = tfrt.constant.i32 1
           %more = \"tfrt.lessequal.i32\"(%one, %n) : (i32, i32) -> i1
           %r = tfrt.if %more, %n : (i32) -> (i32) {{
             %one = tfrt.constant.i32 1
             %less = \"tfrt.minus.i32\"(%n, %one) : (i32, i32) -> i32
             %r = tfrt.call @countdown(%less) : (i32) -> i32
             tfrt.return %r : i32
           }} else {{
             tfrt.return %n : i32
           }}
           tfrt.return %r : i32
         }}
         func.func @main(%x: i32) -> (i32, i32) attributes {{_tfrt_streams = [array<i64: {streams}>]}} {{
           {first}
           {SIDE_BY_SIDE}
           tfrt.return %a, %b : i32, i32
         }}"
    )
}

#[test]
fn what_nobody_waits_for_and_nobody_sees_runs_at_once_too() {
    let host = Host::new(single(), false);
    let main = host.main_of(
        "func.func @main(%x: i32) -> i32 attributes {_tfrt_streams = [array<i64: 0, 0, 1>]} {
           %a = \"t.note\"(%x) : (i32) -> i32
           %b = \"t.where\"(%x) : (i32) -> i32
           tfrt.return %a : i32
         }",
    );
    assert_eq!(host.begin(&main)[0].get::<i32>(), Some(&1));
    assert_eq!(host.threads.lock().unwrap().len(), 1);
}

#[test]
fn one_thread_runs_all_of_a_call_at_once_where_nobody_can_see_the_order() {
    let host = Host::new(single(), false);
    let text = "func.func @pair(%x: i32) -> (i32, i32)
        attributes {_tfrt_streams = [array<i64: 0, 0, 1>]} {
      %a = \"t.where\"(%x) : (i32) -> i32
      %b = \"t.where\"(%x) : (i32) -> i32
      tfrt.return %a, %b : i32, i32
    }
    func.func @main(%x: i32) -> (i32, i32) {
      %a, %b = tfrt.call @pair(%x) : (i32) -> (i32, i32)
      %c, %d = tfrt.call @pair(%a) : (i32) -> (i32, i32)
      tfrt.return %c, %d : i32, i32
    }";
    let values = host.begin(&host.main_of(text));
    assert!(values.iter().all(|value| value.get::<i32>() == Some(&1)));
    assert_eq!(host.host.queue().stats().executed, 0);
}

#[test]
fn one_thread_runs_all_at_once_where_nobody_can_see_the_order() {
    for always_counts in [false, true] {
        let host = Host::new(single(), always_counts);
        let main = host.main_of(&silent("", "0, 0, 1"));
        let values = host.begin(&main);
        assert!(values.iter().all(AnyAsyncValue::is_settled));
        assert_eq!(host.host.queue().stats().executed, 0);
    }
}

#[test]
fn loops_let_the_queue_come_to_their_tasks_now_and_then() {
    let host = Host::new(single(), false);
    let kernels = (1..=64).map(|n| format!("  %n{n} = \"t.note\"(%x) : (i32) -> i32\n"));
    let streams: Vec<String> = (0..=64).map(|stream: i32| stream.to_string()).collect();
    let text = |n_turns: i32, turns: &str| {
        format!(
            "func.func @body(%x: i32) -> i32 attributes {{_tfrt_streams = [array<i64: {}>]}} {{
             {}
               tfrt.return %x : i32
             }}
             func.func @main(%x: i32) -> i32 {{
               %n = tfrt.constant.i32 {n_turns}
               {turns}
               tfrt.return %r : i32
             }}",
            streams.join(", "),
            kernels.clone().collect::<String>()
        )
    };
    let repeat = "%r = tfrt.repeat.i32 %n, %x : i32 {
      %a = tfrt.call @body(%x) : (i32) -> i32
      tfrt.return %a : i32
    }";
    // Each turn leaves 63 tasks, and 65,536 are enough.
    for (n_turns, is_at_once) in [(1041, true), (1042, false)] {
        let values = host.begin(&host.main_of(&text(n_turns, repeat)));
        assert_eq!(values[0].is_settled(), is_at_once, "{n_turns}");
        host.host.queue().await_all(&values).unwrap();
        assert_eq!(values[0].get::<i32>(), Some(&1));
    }
    // The same for those that go on after they have waited: each turn itself notes once.
    let waits = "%r = \"t.waits_and_turns\"(%n) {body = @body} : (i32) -> i32";
    for (n_turns, n_notes) in [(1041, 1041), (1042, 1041 * 64 + 1)] {
        host.host.queue().quiesce().unwrap();
        host.notes.lock().unwrap().clear();
        let values = host.begin(&host.main_of(&text(n_turns, waits)));
        host.host.queue().await_all(&values).unwrap();
        assert_eq!(values[0].get::<i32>(), Some(&n_notes), "{n_turns}");
    }
}

#[test]
fn several_threads_share_what_takes_long() {
    for (first, streams, kernel) in [
        ("", "0, 0, 1", "t.where"),
        ("", "0, 0, 1", "t.where_async"),
        (
            "%c = tfrt.call @countdown(%x) : (i32) -> i32",
            "0, 0, 0, 1",
            "t.where",
        ),
    ] {
        let host = Host::several();
        host.takes_us.store(1000, Ordering::Relaxed);
        let main = host.main_of(&silent(first, streams).replace("t.where", kernel));
        for _ in 0..5 {
            assert!(!host.runs_here(&main), "{first}");
        }
    }
}

#[test]
fn several_threads_share_what_takes_long_in_the_middle_of_calls() {
    let host = Host::several();
    host.takes_us.store(1000, Ordering::Relaxed);
    let text = format!(
        "func.func @leaf(%x: i32) -> i32 {{
           tfrt.return %x : i32
         }}
         func.func @middle(%x: i32) -> (i32, i32)
             attributes {{_tfrt_streams = [array<i64: 0, 0, 0, 1>]}} {{
           %c = tfrt.call @leaf(%x) : (i32) -> i32
           {SIDE_BY_SIDE}
           tfrt.return %a, %b : i32, i32
         }}
         func.func @main(%x: i32) -> (i32, i32) {{
           %a, %b = tfrt.call @middle(%x) : (i32) -> (i32, i32)
           tfrt.return %a, %b : i32, i32
         }}"
    );
    // What a call costs is not what those cost that it makes, so that later ones may be taken for small.
    for _ in 0..3 {
        assert!(!host.runs_here(&host.main_of(&text)));
    }
}

#[test]
fn one_thread_does_what_takes_no_time_until_it_does() {
    // Whoever is interrupted has taken long: then another program is tried.
    let host = Host::several();
    let text = silent("", "0, 0, 1");
    let small = (0..100).find_map(|_| {
        let main = host.main_of(&text);
        assert!(!host.runs_here(&main), "nothing is known of it");
        (0..10).any(|_| host.runs_here(&main)).then_some(main)
    });
    let main = small.expect("some call takes less than 50 µs");
    host.takes_us.store(1000, Ordering::Relaxed);
    assert!((0..10).any(|_| !host.runs_here(&main)));
}

#[test]
fn functions_that_call_themselves_stay_on_one_thread() {
    let host = Host::several();
    host.takes_us.store(1000, Ordering::Relaxed);
    let text = format!(
        "func.func @first(%x: i32) -> i32 {{
           tfrt.return %x : i32
         }}
         func.func @main(%x: i32) -> (i32, i32)
             attributes {{_tfrt_streams = [array<i64: 0, 0, 0, 0, 0, 1>]}} {{
           %zero = tfrt.constant.i32 0
           %more = \"tfrt.lessequal.i32\"(%x, %zero) : (i32, i32) -> i1
           %r = tfrt.cond %more @again @same (%x) : (i32) -> (i32)
           {SIDE_BY_SIDE}
           tfrt.return %a, %b : i32, i32
         }}
         func.func @again(%x: i32) -> i32 {{
           %a, %b = tfrt.call @main(%x) : (i32) -> (i32, i32)
           tfrt.return %a : i32
         }}
         func.func @same(%x: i32) -> i32 {{
           tfrt.return %x : i32
         }}"
    );
    let main = host.main_of(&text);
    let threads: BTreeSet<bool> = (0..3).map(|_| host.runs_here(&main)).collect();
    assert_eq!(threads, BTreeSet::from([true]));
}

#[test]
fn what_tasks_bring_goes_on_in_every_stream() {
    for queue in [
        single(),
        Arc::new(MultiThreadedWorkQueue::new(2, 1).unwrap()),
    ] {
        let host = Host::new(queue, false);
        for streams in [
            "0, 0, 0, 0, 1",
            "0, 1, 2, 0, 1",
            "0, 0, 1, 1, 0",
            "1, 0, 0, 1, 0",
        ] {
            let text = format!(
                "func.func @main(%x: i32, %y: i32) -> (i32, i32)
                     attributes {{_tfrt_streams = [array<i64: {streams}>]}} {{
                   %a = \"tfrt_test.async_add.i32\"(%x, %y) : (i32, i32) -> i32
                   %b = \"tfrt_test.async_add.i32\"(%a, %y) : (i32, i32) -> i32
                   %c = \"t.note\"(%a) : (i32) -> i32
                   %d = tfrt.add.i32 %b, %c
                   tfrt.return %c, %d : i32, i32
                 }}"
            );
            let values = host.begin(&host.main_of(&text));
            host.host.queue().await_all(&values).unwrap();
            let values = values.iter().map(|value| value.get::<i32>().copied());
            assert!(values.eq([Some(3), Some(8)]), "{streams}");
        }
    }
}

#[test]
fn a_task_goes_on_in_the_stream_of_its_kernel() {
    for (streams, expected) in [
        ("0, 1, 1, 0, 0", [1, 2]),
        ("0, 1, 0, 1, 0", [2, 1]),
        ("1, 0, 0, 1, 1", [1, 2]),
        ("1, 0, 1, 0, 1", [2, 1]),
        ("0, 3, 3, 1, 3", [1, 2]),
    ] {
        let host = Host::new(single(), false);
        let text = format!(
            "func.func @main(%x: i32, %y: i32) -> (i32, i32)
                 attributes {{_tfrt_streams = [array<i64: {streams}>]}} {{
               %p = \"tfrt_test.async_add.i32\"(%x, %y) : (i32, i32) -> i32
               %a = \"t.note_second\"(%p, %x) : (i32, i32) -> i32
               %b = \"t.note_second\"(%p, %y) : (i32, i32) -> i32
               %c = tfrt.add.i32 %a, %b
               tfrt.return %a, %c : i32, i32
             }}"
        );
        let values = host.begin(&host.main_of(&text));
        host.host.queue().await_all(&values).unwrap();
        assert_eq!(*host.notes.lock().unwrap(), expected, "{streams}");
    }
}
