//! The recording of a program: its kernels, by name and place, and its tasks.

use std::collections::BTreeMap;
use std::sync::Arc;

use tfrt::asynchronous::queue::PoolOptions;
use tfrt::host::ExecutionContext;
use tfrt::host::record::{EventKind, Recorder, Recording};
use tfrt::{
    AsyncValue, ConcurrentWorkQueue, MultiThreadedWorkQueue, Program, Runtime,
    SingleThreadedWorkQueue,
};

const PROGRAM: &str = "\
func.func @square(%x: i32) -> i32 attributes {tfrt.sync} {
  %y = tfrt.add.i32 %x, %x
  tfrt.return %y : i32
}
func.func @main(%x: i32) -> i32 {
  %y = tfrt.add.i32 %x, %x
  %z = \"tfrt_test.async_add.i32\"(%y, %x) : (i32, i32) -> i32
  tfrt.return %z : i32
}
";

/// Calls functions of the program on a queue, and returns what was recorded of it.
fn record(
    recorder: &Arc<Recorder>,
    queue: Arc<dyn ConcurrentWorkQueue>,
    functions: &[&str],
) -> (Program, Recording) {
    let runtime = Runtime::builder()
        .queue(queue)
        .recorder(recorder.clone())
        .build();
    let program = runtime.compile("p.mlir", PROGRAM).unwrap();
    for name in functions {
        let function = program.function(name).unwrap();
        function.call(&runtime.context(), (1,)).wait().unwrap();
    }
    runtime.quiesce().unwrap();
    let recording = recorder.recording();
    (program, recording)
}

/// Returns the kernels of a recording as `FUNCTION: KERNEL at LINE:COLUMN`, by thread and time.
fn kernels(program: &Program, recording: &Recording) -> Vec<String> {
    let events = recording.threads.iter().flat_map(|thread| &thread.events);
    let kernel = |kind: EventKind| match kind {
        EventKind::Kernel {
            function, kernel, ..
        } => {
            let found = program
                .as_host_program()
                .recorded_kernel(function, kernel)?;
            let place = found.location.expect("the program has places");
            Some(format!(
                "{}: {} at {place}",
                found.function.name(),
                found.name
            ))
        }
        _ => None,
    };
    events.filter_map(|event| kernel(event.kind)).collect()
}

#[test]
fn kernels_are_recorded_with_names_and_places() {
    let recorder = Arc::new(Recorder::new());
    let queue = Arc::new(SingleThreadedWorkQueue::new());
    let (program, recording) = record(&recorder, queue, &["main", "square"]);
    let expected = [
        "main: tfrt.add.i32 at p.mlir:6:8",
        "main: tfrt_test.async_add.i32 at p.mlir:7:8",
        "square: tfrt.add.i32 at p.mlir:2:8",
    ];
    assert_eq!(kernels(&program, &recording), expected);
}

/// A program whose function begins in order, until a result is still to come.
#[test]
fn call_that_waits_in_the_middle_is_recorded_as_one() {
    let recorder = Arc::new(Recorder::new());
    let runtime = Runtime::builder()
        .queue(Arc::new(SingleThreadedWorkQueue::new()))
        .recorder(recorder.clone())
        .kernels(|registry| {
            registry.add("my.there", |x: i32| {
                Ok::<_, tfrt::Error>(AsyncValue::available(x + 1))
            });
            registry.add("my.later", |x: i32, execution: &ExecutionContext| {
                Ok::<_, tfrt::Error>(execution.enqueue(move || Ok(x + 1)))
            });
        })
        .build();
    let text = r#"func.func @main(%x: i32) -> i32 {
  %a = "my.there"(%x) : (i32) -> i32
  %b = "my.later"(%a) : (i32) -> i32
  %c = "my.there"(%b) : (i32) -> i32
  tfrt.return %c : i32
}"#;
    let program = runtime.compile("p.mlir", text).unwrap();
    let main = program.function("main").unwrap();
    for _ in 0..3 {
        let values = main.call(&runtime.context(), (1,)).wait().unwrap();
        assert_eq!(*values.get::<i32>(0).unwrap(), 4);
    }
    runtime.quiesce().unwrap();
    let recording = recorder.recording();
    let mut n_kernels: BTreeMap<u64, usize> = BTreeMap::new();
    for event in recording.threads.iter().flat_map(|thread| &thread.events) {
        if let EventKind::Kernel { call, .. } = event.kind {
            *n_kernels.entry(call).or_default() += 1;
        }
    }
    let n_kernels: Vec<usize> = n_kernels.into_values().collect();
    assert_eq!(n_kernels, [3, 3, 3]);
}

#[test]
fn workers_record_their_tasks() {
    let recorder = Arc::new(Recorder::new());
    let options = PoolOptions {
        recorder: Some(recorder.clone()),
        ..PoolOptions::new(2, 1)
    };
    let queue = Arc::new(MultiThreadedWorkQueue::with_options(options).unwrap());
    let (program, _) = record(&recorder, queue, &["main"; 10]);
    // The last handle of the queue, which joins its workers.
    drop(program);
    let recording = recorder.recording();
    let workers = recording.threads.iter().filter(|thread| thread.is_worker);
    let events: Vec<_> = workers.flat_map(|thread| &thread.events).collect();
    let n_tasks = events.iter().filter(|event| event.kind == EventKind::Task);
    assert!(n_tasks.count() >= 10, "each call leaves a task: {events:?}");
    assert!(events.iter().all(|event| event.begin_ns <= event.end_ns));
}

#[test]
fn programs_share_a_recorder() {
    let recorder = Arc::new(Recorder::new());
    let queue = || Arc::new(SingleThreadedWorkQueue::new());
    let (one, _) = record(&recorder, queue(), &["main"]);
    let (two, recording) = record(&recorder, queue(), &["square"]);
    assert_eq!(kernels(&one, &recording).len(), 2);
    assert_eq!(kernels(&two, &recording).len(), 1);
}

#[test]
fn what_waits_for_the_result_of_a_call_begins_after_it() {
    let recorder = Arc::new(Recorder::new());
    let runtime = Runtime::builder()
        .queue(Arc::new(SingleThreadedWorkQueue::new()))
        .recorder(recorder.clone())
        .build();
    let text = "\
func.func private @step(%x: i32) -> !tfrt.chain {
  %y = \"tfrt_test.async_add.i32\"(%x, %x) : (i32, i32) -> i32
  %c = tfrt.merge.chains %y : i32
  tfrt.return %c : !tfrt.chain
}
func.func @main(%x: i32) -> !tfrt.chain {
  %c = tfrt.call @step(%x) : (i32) -> !tfrt.chain
  %d = tfrt.merge.chains %c : !tfrt.chain
  tfrt.return %d : !tfrt.chain
}
";
    let program = runtime.compile("p.mlir", text).unwrap();
    let main = program.function("main").unwrap();
    main.call(&runtime.context(), (1,)).wait().unwrap();
    let expected = [
        "main: tfrt.call at p.mlir:7:8",
        "step: tfrt_test.async_add.i32 at p.mlir:2:8",
        "step: tfrt.merge.chains at p.mlir:3:8",
        "main: tfrt.merge.chains at p.mlir:8:8",
    ];
    assert_eq!(kernels(&program, &recorder.recording()), expected);
}
