//! Workers with nothing to do: the processor time that they use, and how soon the first task of a
//! burst runs.
//!
//! The queue has a worker for each processor, two at least, and has been idle for a few
//! milliseconds before each burst. Beside it stand others' pools, and the least that it can take:
//! a thread that wakes another. The goal is 20 microseconds at the median, and no processor time.

#![forbid(unsafe_code)]

use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use tfrt_async::queue::{ConcurrentWorkQueue, MultiThreadedWorkQueue, Task, available_parallelism};
use tfrt_benches::hand_off::HandOff;
use tfrt_benches::measure::{Clock, Times};
use tfrt_benches::table::Bench;

type Work = Box<dyn FnOnce() + Send>;

/// A pool that runs closures on threads of its own.
struct Pool {
    name: &'static str,
    run: Box<dyn Fn(Work)>,
}

fn main() {
    let bench = Bench::from_environment();
    if !bench.is_wanted("idle") {
        return;
    }
    println!("idle workers; time that passes from a task's hand-over to its beginning");
    let n_workers = available_parallelism().max(2);
    let before = HandOff::measure();
    // Whoever is measured is alone: the others' threads would be idle with it.
    let makers: [fn(usize) -> Pool; 4] = [ours, rayon, tokio, thread_that_wakes];
    println!("\nidle: {n_workers} workers");
    println!(
        "  {:<30}{:>12}{:>12}{:>16}",
        "", "us to begin", "9 of 10", "processor time"
    );
    for make in makers {
        let pool = make(n_workers);
        let bursts = bursts(&pool);
        println!(
            "  {:<30}{:>12.1}{:>12.1}{:>15.2}%",
            pool.name,
            bursts.median().as_secs_f64() * 1e6,
            bursts.quantile(0.9).as_secs_f64() * 1e6,
            share_while_idle() * 100.0
        );
    }
    println!("  hand-off: {before} before; {} after", HandOff::measure());
}

/// Returns how long the first task waits after a rest.
fn bursts(pool: &Pool) -> Times {
    const N_BURSTS: usize = 101;
    const REST: Duration = Duration::from_millis(5);
    let (sender, receiver) = channel();
    let mut times = Times::default();
    for _ in 0..N_BURSTS {
        thread::sleep(REST);
        let sender: Sender<Instant> = sender.clone();
        let start = Instant::now();
        (pool.run)(Box::new(move || {
            let told = sender.send(Instant::now());
            told.expect("somebody waits for it");
        }));
        let begun = receiver.recv().expect("the task has a sender");
        times.push(begun.saturating_duration_since(start));
    }
    times
}

/// Returns the processor time of this process while nobody has anything to do, as a share of one
/// processor.
fn share_while_idle() -> f64 {
    const REST: Duration = Duration::from_millis(50);
    const WHILE: Duration = Duration::from_millis(300);
    thread::sleep(REST);
    let start = Clock::Process.now();
    thread::sleep(WHILE);
    let used = Clock::Process.now().saturating_sub(start);
    used.as_secs_f64() / WHILE.as_secs_f64()
}

fn ours(n_workers: usize) -> Pool {
    let queue = MultiThreadedWorkQueue::new(n_workers, 1).expect("threads can be started");
    Pool {
        name: "tfrt",
        run: Box::new(move |task| queue.add_task(Task::new(task))),
    }
}

fn rayon(n_workers: usize) -> Pool {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(n_workers);
    let pool = pool.build().expect("threads can be started");
    Pool {
        name: "rayon spawn",
        run: Box::new(move |task| pool.spawn(task)),
    }
}

fn tokio(n_workers: usize) -> Pool {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(n_workers).build();
    let runtime = runtime.expect("threads can be started");
    Pool {
        name: "tokio spawn",
        run: Box::new(move |task| drop(runtime.spawn(async move { task() }))),
    }
}

fn thread_that_wakes(_: usize) -> Pool {
    let (sender, receiver) = channel::<Work>();
    thread::spawn(move || receiver.into_iter().for_each(|task| task()));
    Pool {
        name: "one thread behind a channel",
        run: Box::new(move |task| drop(sender.send(task))),
    }
}
