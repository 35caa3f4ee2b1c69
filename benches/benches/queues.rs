//! The cost of a task that does nothing, beside other executors: nanoseconds for one.
//!
//! `task` and `task_chain` stay on the calling thread: tasks that were added before, and tasks each
//! of which adds the next. The others have workers: chains on one of them, and on two threads tasks
//! that a task adds, one by one or together. How soon sleeping workers begin is told by `idle`.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::{Arc, Mutex};

use tfrt_async::queue::{ConcurrentWorkQueue, MultiThreadedWorkQueue, Task};
use tfrt_benches::compare::{Contender, Subject};
use tfrt_benches::measure::Clock;
use tfrt_benches::small::{N, Small, add_next, answer, hear, heard};
use tfrt_benches::table::Bench;

fn main() {
    let bench = Bench::from_environment();
    bench.begin("tasks");
    for (name, peers) in [
        ("task", tasks as fn() -> Vec<Contender>),
        ("task_chain", chains),
    ] {
        let small = Small::find(name).expect("it is a thing's name");
        if bench.is_wanted(name) {
            let mut contenders = vec![small.contender()];
            contenders.extend(peers());
            bench.compare(small.subject(), &mut contenders);
        }
    }
    let subject = |name, answer| Subject {
        name,
        unit: "time",
        n_units: usize::try_from(N).expect("it is not negative"),
        answer,
    };
    if bench.is_wanted("worker_chain") {
        bench.compare_on_two(subject("worker_chain", answer()), &mut worker_chains());
    }
    if bench.is_wanted("worker_tasks") {
        bench.compare_on_two(subject("worker_tasks", N), &mut worker_tasks());
    }
}

/// A queue of closures behind a lock.
static LINE: Mutex<VecDeque<Box<dyn FnOnce() + Send>>> = Mutex::new(VecDeque::new());

fn push(closure: impl FnOnce() + Send + 'static) {
    let mut line = LINE.lock().expect("no closure panics");
    line.push_back(Box::new(closure));
}

fn run_line() {
    let pop = || LINE.lock().expect("no closure panics").pop_front();
    while let Some(closure) = pop() {
        closure();
    }
}

fn current_thread() -> tokio::runtime::Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a scheduler for one thread needs nothing")
}

fn tasks() -> Vec<Contender> {
    let tokio = current_thread();
    let executor = async_executor::LocalExecutor::new();
    vec![
        Contender::new("boxes behind a mutex", Clock::Process, || {
            heard(|| {
                for number in 0..N {
                    let number = black_box(number);
                    push(move || hear(number));
                }
                run_line();
            })
        }),
        Contender::new("tokio spawn, current thread", Clock::Process, move || {
            heard(|| {
                tokio.block_on(async {
                    for number in 0..N - 1 {
                        let number = black_box(number);
                        tokio::spawn(async move { hear(number) });
                    }
                    let last = tokio::spawn(async { hear(N - 1) });
                    last.await.expect("no task panics");
                });
            })
        }),
        Contender::new("async-executor", Clock::Process, move || {
            heard(|| {
                for number in 0..N - 1 {
                    let number = black_box(number);
                    executor.spawn(async move { hear(number) }).detach();
                }
                let last = executor.spawn(async { hear(N - 1) });
                futures_lite::future::block_on(executor.run(last));
            })
        }),
    ]
}

fn chains() -> Vec<Contender> {
    fn boxed(number: i32) {
        hear(number);
        if number + 1 < N {
            push(move || boxed(number + 1));
        }
    }
    fn spawned(number: i32, done: tokio::sync::oneshot::Sender<()>) {
        tokio::spawn(async move {
            hear(number);
            if number + 1 < N {
                spawned(number + 1, done);
            } else {
                done.send(()).expect("somebody waits");
            }
        });
    }
    let tokio = current_thread();
    vec![
        Contender::new("boxes behind a mutex", Clock::Process, || {
            heard(|| {
                push(|| boxed(0));
                run_line();
            })
        }),
        Contender::new("tokio spawn, current thread", Clock::Process, move || {
            heard(|| {
                tokio.block_on(async {
                    let (sender, receiver) = tokio::sync::oneshot::channel();
                    spawned(0, sender);
                    receiver.await.expect("it is sent");
                });
            })
        }),
    ]
}

fn workers(n_workers: usize) -> Arc<MultiThreadedWorkQueue> {
    Arc::new(MultiThreadedWorkQueue::new(n_workers, 1).expect("threads can be started"))
}

fn pool(n_workers: usize) -> rayon::ThreadPool {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(n_workers);
    pool.build().expect("threads can be started")
}

fn multi_thread(n_workers: usize) -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(n_workers).build();
    runtime.expect("threads can be started")
}

fn worker_chains() -> Vec<Contender> {
    fn scoped<'s>(scope: &rayon::Scope<'s>, number: i32) {
        scope.spawn(move |scope| {
            hear(number);
            if number + 1 < N {
                scoped(scope, number + 1);
            }
        });
    }
    fn spawned(number: i32, done: tokio::sync::oneshot::Sender<()>) {
        tokio::spawn(async move {
            hear(number);
            if number + 1 < N {
                spawned(number + 1, done);
            } else {
                done.send(()).expect("somebody waits");
            }
        });
    }
    let ours: &'static MultiThreadedWorkQueue = Box::leak(Box::new(
        MultiThreadedWorkQueue::new(1, 1).expect("threads can be started"),
    ));
    let (rayon, tokio) = (pool(1), multi_thread(1));
    vec![
        Contender::new("tfrt", Clock::Wall, move || {
            heard(|| {
                add_next(ours, 0);
                ours.quiesce().expect("it is not called by a task");
            })
        }),
        Contender::new("rayon spawn", Clock::Wall, move || {
            heard(|| rayon.scope(|scope| scoped(scope, 0)))
        }),
        Contender::new("tokio spawn", Clock::Wall, move || {
            heard(|| {
                let (sender, receiver) = tokio::sync::oneshot::channel();
                tokio.block_on(async {
                    spawned(0, sender);
                    receiver.await.expect("it is sent");
                });
            })
        }),
    ]
}

/// Does work of some ten nanoseconds, which no thread shares.
fn work(number: i32) {
    black_box((0..8).fold(number, |sum, _| black_box(sum.wrapping_mul(3))));
}

/// Returns the contenders in which one task adds all the others, on two workers.
fn worker_tasks() -> Vec<Contender> {
    let ours = workers(2);
    let together = workers(2);
    let (rayon, tokio) = (pool(2), multi_thread(2));
    vec![
        Contender::new("tfrt, one by one", Clock::Wall, move || {
            let queue = ours.clone();
            ours.add_task(Task::new(move || {
                (0..N).for_each(|number| queue.add_task(Task::new(move || work(number))));
            }));
            ours.quiesce().expect("it is not called by a task");
            N
        }),
        Contender::new("tfrt, together", Clock::Wall, move || {
            let queue = together.clone();
            together.add_task(Task::new(move || {
                let task = |number| Task::new(move || work(number));
                queue.add_tasks(&mut (0..N).map(task));
            }));
            together.quiesce().expect("it is not called by a task");
            N
        }),
        Contender::new("rayon spawn", Clock::Wall, move || {
            rayon.scope(|scope| {
                (0..N).for_each(|number| scope.spawn(move |_| work(number)));
            });
            N
        }),
        Contender::new("tokio spawn", Clock::Wall, move || {
            tokio.block_on(async {
                let spawned = (0..N).map(|number| tokio::spawn(async move { work(number) }));
                let spawned: Vec<_> = spawned.collect();
                for task in spawned {
                    task.await.expect("no task panics");
                }
            });
            N
        }),
    ]
}
