//! Executors that are given a task for each node that gets ready.

use std::thread;

use rayon::{Scope, ThreadPoolBuilder};
use tokio::runtime;
use tokio::sync::Notify;

use crate::compare::Contender;
use crate::graph::Graph;
use crate::measure::Clock;
use crate::peers::shared::{Body, Shared};

/// Returns the clock for so many threads.
fn clock(n_threads: usize) -> Clock {
    if n_threads == 1 {
        Clock::Process
    } else {
        Clock::Wall
    }
}

/// Returns `rayon`'s `spawn` in a pool of so many threads.
///
/// # Panics
///
/// If threads can't be started.
pub fn rayon(graph: &Graph, body: Body, n_threads: usize) -> Contender {
    let shared = Shared::leak(graph, body);
    let pool = ThreadPoolBuilder::new().num_threads(n_threads);
    let pool = pool.build().expect("threads can be started");
    Contender::new("rayon spawn", clock(n_threads), move || {
        shared.reset();
        pool.scope(|scope| {
            let roots = shared.roots.iter();
            roots.for_each(|root| rayon_node(scope, shared, *root));
        });
        shared.result()
    })
}

fn rayon_node<'s>(scope: &Scope<'s>, shared: &'static Shared, node: u32) {
    scope.spawn(move |scope| {
        shared.run(node, |ready| rayon_node(scope, shared, ready));
    });
}

/// Returns `tokio`'s `spawn` on the calling thread, or on so many workers.
///
/// # Panics
///
/// If threads can't be started.
pub fn tokio(graph: &Graph, body: Body, n_workers: Option<usize>) -> Contender {
    let shared = Shared::leak(graph, body);
    let done: &'static Notify = Box::leak(Box::default());
    let (name, runtime) = match n_workers {
        None => (
            "tokio spawn, current thread",
            runtime::Builder::new_current_thread().build(),
        ),
        Some(n_workers) => (
            "tokio spawn",
            runtime::Builder::new_multi_thread()
                .worker_threads(n_workers)
                .build(),
        ),
    };
    let runtime = runtime.expect("threads can be started");
    Contender::new(name, clock(n_workers.unwrap_or(1)), move || {
        shared.reset();
        runtime.block_on(async {
            let roots = shared.roots.iter();
            roots.for_each(|root| tokio_node(shared, done, *root));
            done.notified().await;
        });
        shared.result()
    })
}

fn tokio_node(shared: &'static Shared, done: &'static Notify, node: u32) {
    tokio::spawn(async move {
        if shared.run(node, |ready| tokio_node(shared, done, ready)) {
            done.notify_one();
        }
    });
}

/// Returns `async-executor` on the calling thread, and on as many more as make `n_threads`.
pub fn async_executor(graph: &Graph, body: Body, n_threads: usize) -> Contender {
    let shared = Shared::leak(graph, body);
    let done: &'static Notify = Box::leak(Box::default());
    let executor: &'static async_executor::Executor<'static> = Box::leak(Box::default());
    for _ in 1..n_threads {
        thread::spawn(|| {
            let forever = executor.run(std::future::pending::<()>());
            futures_lite::future::block_on(forever);
        });
    }
    Contender::new("async-executor spawn", clock(n_threads), move || {
        shared.reset();
        let roots = shared.roots.iter();
        roots.for_each(|root| async_node(executor, shared, done, *root));
        futures_lite::future::block_on(executor.run(done.notified()));
        shared.result()
    })
}

fn async_node(
    executor: &'static async_executor::Executor<'static>,
    shared: &'static Shared,
    done: &'static Notify,
    node: u32,
) {
    let node = async move {
        if shared.run(node, |ready| async_node(executor, shared, done, ready)) {
            done.notify_one();
        }
    };
    executor.spawn(node).detach();
}
