//! A deque for each thread, which others steal from; the first node that gets ready is run at once.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use crate::compare::{Contender, Sample};
use crate::graph::Graph;
use crate::measure::Clock;
use crate::peers::shared::{Body, Shared};

/// The number of nodes that a deque of fixed size holds.
const CAPACITY: usize = 1 << 15;

/// A deque that one thread owns, and handles to steal from it.
trait Deque: Send + Sized + 'static {
    type Stealer: Send + 'static;

    fn new() -> (Self, Self::Stealer);
    fn push(&self, node: u32);
    fn pop(&self) -> Option<u32>;
    /// Moves some to this deque, and takes one of them.
    fn steal(&self, from: &Self::Stealer) -> Option<u32>;
}

impl Deque for st3::lifo::Worker<u32> {
    type Stealer = st3::lifo::Stealer<u32>;

    fn new() -> (Self, Self::Stealer) {
        let worker = st3::lifo::Worker::new(CAPACITY);
        let stealer = worker.stealer();
        (worker, stealer)
    }

    fn push(&self, node: u32) {
        self.push(node)
            .expect("the deque holds all nodes of a graph");
    }

    fn pop(&self) -> Option<u32> {
        self.pop()
    }

    fn steal(&self, from: &Self::Stealer) -> Option<u32> {
        let stolen = from.steal_and_pop(self, |n_there| n_there - n_there / 2);
        stolen.ok().map(|(node, _)| node)
    }
}

impl Deque for crossbeam_deque::Worker<u32> {
    type Stealer = crossbeam_deque::Stealer<u32>;

    fn new() -> (Self, Self::Stealer) {
        let worker = crossbeam_deque::Worker::new_lifo();
        let stealer = worker.stealer();
        (worker, stealer)
    }

    fn push(&self, node: u32) {
        self.push(node);
    }

    fn pop(&self) -> Option<u32> {
        self.pop()
    }

    fn steal(&self, from: &Self::Stealer) -> Option<u32> {
        from.steal_batch_and_pop(self).success()
    }
}

/// Returns `st3` on so many threads, one or two.
pub fn st3(graph: &Graph, body: Body, n_threads: usize) -> Contender {
    contender::<st3::lifo::Worker<u32>>("st3", graph, body, n_threads)
}

/// Returns `crossbeam-deque` on so many threads, one or two.
pub fn crossbeam(graph: &Graph, body: Body, n_threads: usize) -> Contender {
    contender::<crossbeam_deque::Worker<u32>>("crossbeam-deque", graph, body, n_threads)
}

fn contender<D: Deque>(name: &str, graph: &Graph, body: Body, n_threads: usize) -> Contender {
    let shared = Shared::leak(graph, body);
    let (own, stealer) = D::new();
    let clock = if n_threads == 1 {
        Clock::Process
    } else {
        Clock::Wall
    };
    let helper = (n_threads > 1).then(|| Helper::start::<D>(shared, stealer));
    let name = format!("{name} and counters");
    let work = move |n_times| {
        if let Some((helper, _)) = &helper {
            helper.set_awake(true);
        }
        let start = clock.now();
        for _ in 0..n_times {
            shared.reset();
            shared.roots.iter().for_each(|root| own.push(*root));
            while !shared.is_done() {
                let stolen = || own.steal(&helper.as_ref()?.1);
                match own.pop().or_else(stolen) {
                    Some(node) => run_all(shared, &own, node),
                    None => spin_loop(),
                }
            }
        }
        let time = clock.now().saturating_sub(start);
        if let Some((helper, _)) = &helper {
            helper.set_awake(false);
        }
        let answer = shared.result();
        Sample { time, answer }
    };
    Contender {
        name,
        work: Box::new(work),
    }
}

/// Runs a node and all that get ready one after the other; the rest goes to the deque.
#[inline]
fn run_all<D: Deque>(shared: &Shared, own: &D, node: u32) {
    let mut next = Some(node);
    while let Some(node) = next.take() {
        shared.run(node, |ready| match next {
            None => next = Some(ready),
            Some(_) => own.push(ready),
        });
    }
}

/// A second thread: it spins while it is to be awake, and sleeps otherwise.
struct Helper {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    is_awake: AtomicBool,
    is_to_end: AtomicBool,
}

impl Helper {
    fn start<D: Deque>(shared: &'static Shared, from: D::Stealer) -> (Helper, D::Stealer) {
        let (own, stealer) = D::new();
        let state = Arc::new(State::default());
        let of_thread = state.clone();
        let thread = thread::spawn(move || {
            // Ordering: flags on which nothing else depends.
            while !of_thread.is_to_end.load(Ordering::Relaxed) {
                if !of_thread.is_awake.load(Ordering::Relaxed) {
                    thread::park();
                    continue;
                }
                match own.pop().or_else(|| own.steal(&from)) {
                    Some(node) => run_all(shared, &own, node),
                    None => spin_loop(),
                }
            }
        });
        let thread = Some(thread);
        (Helper { state, thread }, stealer)
    }

    fn set_awake(&self, is_awake: bool) {
        // Ordering: a flag on which nothing else depends.
        self.state.is_awake.store(is_awake, Ordering::Relaxed);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // Ordering: a flag on which nothing else depends.
        self.state.is_to_end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            drop(thread.join());
        }
    }
}
