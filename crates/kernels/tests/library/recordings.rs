//! Tests of recordings: each kernel that has run is named, with its place in the file, in every way to run a
//! function.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use tfrt_async::queue::{ConcurrentWorkQueue, MultiThreadedWorkQueue, SingleThreadedWorkQueue};
use tfrt_async::{AsyncValue, Promise};
use tfrt_bef::BefFile;
use tfrt_compiler::{CompileOptions, compile};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::record::{EventKind, Recorder};
use tfrt_host::{AnyAsyncValue, ExecutionContext, HostContext, Program, RequestContext};

/// Returns a program whose `@main` calls `@f` twice.
fn text(add: &str, attributes: &str) -> String {
    format!(
        "func.func @f(%x: i32) -> i32 attributes {{{attributes}}} {{
           %one = tfrt.constant.i32 1
           %two = tfrt.constant.i32 2
           %a = {add}(%x, %one) : (i32, i32) -> i32
           %b = \"tfrt.minus.i32\"(%a, %two) : (i32, i32) -> i32
           tfrt.return %b : i32
         }}
         func.func @main(%x: i32) -> i32 {{
           %a = tfrt.call @f(%x) : (i32) -> i32
           %b = tfrt.call @f(%a) : (i32) -> i32
           tfrt.return %b : i32
         }}"
    )
}

/// Runs `@main` twice, and returns the recording: the call, the function, the number in the file, the name.
fn recorded(
    text: &str,
    queue: Arc<dyn ConcurrentWorkQueue>,
    always_counts: bool,
) -> Vec<(u64, String, u32, String)> {
    let mut registry = KernelRegistry::new();
    tfrt_kernels::register_all(&mut registry);
    let recorder = Arc::new(Recorder::new());
    let host = HostContext::builder(registry)
        .queue(queue)
        .dynamic_order(always_counts)
        .recorder(recorder.clone())
        .build();
    let load = |text: &str| {
        let module = tfrt_ir::parse(&tfrt_ir::Source::new("main.mlir", text)).unwrap();
        let bytes = compile(&module, &CompileOptions::default()).unwrap();
        Program::load(BefFile::open(bytes).unwrap(), &host).unwrap()
    };
    let (program, other) = (load(text), load(text));
    let main = program.function("main").unwrap();
    for number in 0..2 {
        let context = ExecutionContext::new(&RequestContext::new(&host));
        let results = main.execute(&context, vec![AnyAsyncValue::new(number)]);
        host.queue().await_all(&results).unwrap();
        assert_eq!(results[0].get::<i32>(), Some(&(number - 2)));
    }
    host.queue().quiesce().unwrap();
    let first = program.first_recorded_function().unwrap();
    assert!(program.recorded_kernel(first, 3).is_some());
    assert!(program.recorded_kernel(first, 4).is_none());
    assert!(program.recorded_kernel(first.offset(1), 2).is_none());
    assert!(other.recorded_kernel(first, 0).is_none());
    let threads = recorder.recording().threads.into_iter();
    let events = threads.flat_map(|thread| thread.events);
    let kernels = events.filter_map(|event| match event.kind {
        EventKind::Kernel {
            function,
            kernel,
            call,
        } => {
            let kernel = program.recorded_kernel(function, kernel)?;
            let function = kernel.function.name().to_owned();
            Some((call, function, kernel.number, kernel.name.to_string()))
        }
        _ => None,
    });
    kernels.collect()
}

#[test]
fn every_kernel_of_every_call_is_recorded_once() {
    let (at_once, later) = ("\"tfrt.add.i32\"", "\"tfrt_test.async_add.i32\"");
    for (add, attributes) in [
        (at_once, ""),
        (at_once, "tfrt.sync"),
        (later, ""),
        (later, "tfrt.cost_threshold = 1 : i64"),
        (later, "_tfrt_streams = [array<i64: 0, 0, 0, 0, 0>]"),
    ] {
        let queues: [Arc<dyn ConcurrentWorkQueue>; 2] = [
            Arc::new(SingleThreadedWorkQueue::new()),
            Arc::new(MultiThreadedWorkQueue::new(2, 1).unwrap()),
        ];
        let cases = queues
            .iter()
            .flat_map(|queue| [(queue, false), (queue, true)]);
        for (queue, always_counts) in cases {
            let name = format!("{add} {attributes} {} {always_counts}", queue.name());
            let found = recorded(&text(add, attributes), queue.clone(), always_counts);
            let calls = |of: &str| -> BTreeSet<u64> {
                let of = found.iter().filter(|(_, function, ..)| function == of);
                of.map(|(call, ..)| *call).collect()
            };
            // They are in progress at the same time.
            assert!(calls("main").is_disjoint(&calls("f")), "{name}");
            let mut kernels = BTreeMap::new();
            for (_, function, number, kernel) in found {
                *kernels
                    .entry(format!("{function} {number} {kernel}"))
                    .or_insert(0) += 1;
            }
            let add = add.trim_matches('"');
            let expected = [
                ("f 0 tfrt.constant.i32".to_owned(), 4),
                ("f 1 tfrt.constant.i32".to_owned(), 4),
                (format!("f 2 {add}"), 4),
                ("f 3 tfrt.minus.i32".to_owned(), 4),
                ("main 0 tfrt.call".to_owned(), 2),
                ("main 1 tfrt.call".to_owned(), 2),
            ];
            assert_eq!(kernels, BTreeMap::from(expected), "{name}");
        }
    }
}

#[test]
fn calls_of_several_threads_are_told_apart() {
    let mut registry = KernelRegistry::new();
    tfrt_kernels::register_all(&mut registry);
    let recorder = Arc::new(Recorder::new());
    let host = HostContext::builder(registry)
        .queue(Arc::new(SingleThreadedWorkQueue::new()))
        .recorder(recorder.clone())
        .dynamic_order(true)
        .build();
    let module = tfrt_ir::parse(&tfrt_ir::Source::new(
        "main.mlir",
        text("\"tfrt.add.i32\"", ""),
    ));
    let bytes = compile(&module.unwrap(), &CompileOptions::default()).unwrap();
    let program = Program::load(BefFile::open(bytes).unwrap(), &host).unwrap();
    let main = program.function("main").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let context = ExecutionContext::new(&RequestContext::new(&host));
                for number in 0..4 {
                    main.execute(&context, vec![AnyAsyncValue::new(number)]);
                }
            });
        }
    });
    let threads = recorder.recording().threads.into_iter();
    let calls = threads
        .flat_map(|thread| thread.events)
        .filter_map(|event| match event.kind {
            EventKind::Kernel { call, .. } => Some(call),
            _ => None,
        });
    // Of each thread four, with two calls each.
    assert_eq!(calls.collect::<BTreeSet<u64>>().len(), 3 * 4 * 3);
}

#[test]
fn a_call_that_is_counted_from_a_kernel_on_is_still_the_same() {
    let promises = Arc::<Mutex<Vec<Promise<i32>>>>::default();
    let kept = promises.clone();
    let mut registry = KernelRegistry::new();
    tfrt_kernels::register_all(&mut registry);
    registry.add("t.to_come", move |_: i32| -> AsyncValue<i32> {
        let (promise, value) = AsyncValue::pending();
        kept.lock().unwrap().push(promise);
        value
    });
    let recorder = Arc::new(Recorder::new());
    let host = HostContext::builder(registry)
        .queue(Arc::new(SingleThreadedWorkQueue::new()))
        .recorder(recorder.clone())
        .build();
    let text = "func.func @main(%x: i32) -> i32 {
      %a = tfrt.add.i32 %x, %x
      %p = \"t.to_come\"(%a) : (i32) -> i32
      %b = tfrt.add.i32 %p, %a
      tfrt.return %b : i32
    }";
    let module = tfrt_ir::parse(&tfrt_ir::Source::new("main.mlir", text)).unwrap();
    let bytes = compile(&module, &CompileOptions::default()).unwrap();
    let program = Program::load(BefFile::open(bytes).unwrap(), &host).unwrap();
    let main = program.function("main").unwrap();
    let context = ExecutionContext::new(&RequestContext::new(&host));
    for n_calls in 1..4 {
        let results = main.execute(&context, vec![AnyAsyncValue::new(1)]);
        promises.lock().unwrap().pop().unwrap().resolve(1);
        host.queue().await_all(&results).unwrap();
        let threads = recorder.recording().threads.into_iter();
        let events = threads.flat_map(|thread| thread.events);
        let calls = events.filter_map(|event| match event.kind {
            EventKind::Kernel { call, .. } => Some(call),
            _ => None,
        });
        let mut n_kernels = BTreeMap::new();
        calls.for_each(|call| *n_kernels.entry(call).or_insert(0) += 1);
        assert_eq!(n_kernels.len(), n_calls);
        assert!(n_kernels.values().all(|n_kernels| *n_kernels == 3));
    }
}
