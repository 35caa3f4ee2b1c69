//! The memory that a burst of calls leaves behind: next to nothing, however many they were.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tfrt::{
    AsyncValue, Call, ConcurrentWorkQueue, MultiThreadedWorkQueue, Promise, Runtime,
    SingleThreadedWorkQueue,
};
use tfrt_async::{counters, memory_stats};

use crate::held;
use crate::own_process::in_own_process;

const TEXT: &str = r#"
func.func @f(%n: i32) -> i32 {
  %a = "burst.later"(%n) : (i32) -> i32
  tfrt.return %a : i32
}
func.func @main(%n: i32) -> i32 {
  %a = tfrt.call @f(%n) : (i32) -> i32
  %b = tfrt.call @f(%a) : (i32) -> i32
  tfrt.return %b : i32
}"#;

/// The number of calls at one time.
const N_CALLS: i32 = 20_000;

/// The most bytes that may stay: queues and lists keep some room, and a worker's deque what it grew to, which depends
/// on who was faster. A list with an entry for each call would keep megabytes.
const MAX_LEFT: usize = 256 << 10;

/// The time in which the watch over calls ends, which is at its next look after the last one.
const SETTLING: Duration = Duration::from_secs(3);

type Promises = Arc<Mutex<Vec<(Promise<i32>, i32)>>>;

/// Makes so many calls that wait at one time, each with a deadline, and lets them go on.
fn burst(runtime: &Runtime, promises: &Promises, n_calls: i32) {
    let program = runtime.compile("burst.mlir", TEXT).expect("it is right");
    let main = program.function("main").expect("it is in the text");
    let spawn = |n| {
        let deadline = Duration::from_secs(3_600);
        let context = runtime.context_builder().deadline(deadline).build();
        main.spawn(&context, (n,))
    };
    let mut calls: Vec<Call> = (0..n_calls).map(spawn).collect();
    for _ in 0..2 {
        runtime.quiesce().expect("this thread is no worker");
        let now = std::mem::take(&mut *promises.lock().unwrap());
        assert_eq!(now.len(), calls.len());
        for (promise, n) in now {
            promise.resolve(n);
        }
    }
    for (call, n) in calls.drain(..).zip(0..) {
        let results = call.wait_each().expect("this thread is no worker");
        assert_eq!(results[0].get::<i32>(), Some(&n));
    }
}

/// Returns the bytes that are held when nothing happens, but for idle ones of free lists: once they are as few as is
/// wanted, or the fewest of some seconds.
///
/// Threads take back what others have freed for them when they wake, so a few calls are made meanwhile.
fn at_rest(runtime: &Runtime, promises: &Promises, wanted: usize) -> usize {
    let held_now = || {
        let memory = memory_stats();
        let bytes = |n| usize::try_from(n).expect("it is an amount of memory");
        held::now() - bytes(memory.chunk_bytes) + bytes(memory.live_bytes)
    };
    let begin = Instant::now();
    let mut least = held_now();
    while least > wanted && begin.elapsed() < SETTLING {
        burst(runtime, promises, 10);
        std::thread::sleep(Duration::from_millis(50));
        least = least.min(held_now());
    }
    least
}

#[test]
fn bursts_of_calls_leave_no_memory_behind() {
    in_own_process(
        "burst::bursts_of_calls_leave_no_memory_behind",
        burst_on_each_queue,
    );
}

fn burst_on_each_queue() {
    let threads = MultiThreadedWorkQueue::new(2, 2).expect("threads can be started");
    let queues: [Arc<dyn ConcurrentWorkQueue>; 2] =
        [Arc::new(SingleThreadedWorkQueue::new()), Arc::new(threads)];
    for queue in queues {
        let promises = Promises::default();
        let kept = promises.clone();
        let later = move |n: i32| {
            let (promise, value) = AsyncValue::pending();
            kept.lock().unwrap().push((promise, n));
            value
        };
        let runtime = Runtime::builder()
            .kernels(move |registry| {
                registry.add("burst.later", later);
            })
            .queue(queue)
            .build();
        burst(&runtime, &promises, 10);
        let (before, cells) = (at_rest(&runtime, &promises, 0), counters().live_cells);
        burst(&runtime, &promises, N_CALLS);
        let after = at_rest(&runtime, &promises, before + MAX_LEFT);
        let left = after.saturating_sub(before);
        let name = runtime.host().queue().name();
        println!("{name}: {before} bytes before, {left} more after {N_CALLS} calls");
        assert_eq!(counters().live_cells, cells, "{name}");
        assert!(left <= MAX_LEFT, "{name}: {left} bytes are left");
    }
}
