//! The speedup of products on two threads over one, beside `gemm`, called by two threads for half of the rows each.
//!
//! Wall time of some products, one after the other, as a program has them. The peer's second thread waits in a loop,
//! so that its start costs nothing, and sleeps while we are measured. Our workers sleep until the first product, and
//! are woken for it; `awake` is the ratio without that product, when they are awake as the peer's are.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use tfrt_async::queue::{
    ConcurrentWorkQueue, MultiThreadedWorkQueue, SingleThreadedWorkQueue, Task,
};
use tfrt_async::{AsyncValue, Promise};
use tfrt_benches::measure::{Clock, Times};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{Chain, ExecutionContext, HostContext, RequestContext};
use tfrt_tensor::DenseHostTensor;
use tfrt_tensor::math::matmul::{Scale, matmul_into};

pub(super) fn all() {
    for n in [256, 512, 1024, 2048] {
        let name = format!("scaling of product {n}x{n}x{n}");
        if super::is_wanted(&name) {
            one(&name, n);
        }
    }
}

/// The number of multiplications that are measured together, about, some milliseconds of work.
const MULTIPLICATIONS: usize = 1 << 28;

fn one(name: &str, n: usize) {
    let n_each = (MULTIPLICATIONS / (n * n * n)).max(1);
    let (alone, together) = (Ours::new(1, n), Ours::new(2, n));
    let times = || [(); 2].map(|()| Times::default());
    let (mut ours, mut awake, mut peer) = (times(), times(), times());
    let mut whole = Peer::new(n, n);
    let mut halves = Halves::new(n);
    for round in 0..=15 {
        let times = [alone.time(n_each), together.time(n_each)];
        let peer_times = [
            (0..=n_each).map(|_| whole.time()).sum(),
            (0..=n_each).map(|_| halves.time()).sum(),
        ];
        // The first one warms up.
        if round > 0 {
            for (index, (whole, rest)) in times.into_iter().enumerate() {
                ours[index].push(whole);
                awake[index].push(rest);
            }
            peer.iter_mut()
                .zip(peer_times)
                .for_each(|(all, time)| all.push(time));
        }
    }
    let gain = |[one, two]: &[Times; 2]| one.median().as_secs_f64() / two.median().as_secs_f64();
    let (ours, awake, peer) = (gain(&ours), gain(&awake), gain(&peer));
    println!(
        "{name:<34}{ours:>9.2} times          peer{peer:>9.2} times     ratio{:>6.2}     awake{:>6.2}",
        ours / peer,
        awake / peer
    );
}

/// A product of ours, on a queue.
struct Ours {
    host: HostContext,
    work: Work,
}

type Work = Arc<dyn Fn() -> AsyncValue<Chain> + Send + Sync>;

impl Ours {
    fn new(n_threads: usize, n: usize) -> Self {
        let queue: Arc<dyn ConcurrentWorkQueue> = match n_threads {
            1 => Arc::new(SingleThreadedWorkQueue::new()),
            n => Arc::new(MultiThreadedWorkQueue::new(n, 0).expect("threads can be had")),
        };
        let host = HostContext::builder(KernelRegistry::new())
            .queue(queue)
            .build();
        let execution = ExecutionContext::new(&RequestContext::new(&host));
        let tensor = || {
            let elements = super::random(n * n);
            DenseHostTensor::from_slice(host.allocator(), &[n, n], &elements)
                .expect("there is memory")
        };
        let (a, b, out) = (tensor(), tensor(), tensor());
        let work = move || {
            let product = matmul_into(&execution, Scale::default(), [&a, &b], [false; 2], &out);
            product.expect("the shapes fit")
        };
        let work = Arc::new(work);
        Ours { host, work }
    }

    /// Returns the time of one product and so many others, and that of the others.
    fn time(&self, n_others: usize) -> (Duration, Duration) {
        let (promise, done) = AsyncValue::pending();
        let work = self.work.clone();
        let (first_ended, first_end) = mpsc::channel();
        let start = Clock::Wall.now();
        // As in a program: on the workers.
        let queue = self.host.queue();
        queue.add_task(Task::new(move || {
            work().and_then(move || {
                // Whoever asks does so when all is over.
                let _ = first_ended.send(Clock::Wall.now());
                repeat(work, n_others, promise);
            });
        }));
        let waited = self.host.queue().await_all(&[done.into_any()]);
        waited.expect("this is no worker");
        let end = Clock::Wall.now();
        let first_end = first_end.recv().expect("it was sent");
        (end.saturating_sub(start), end.saturating_sub(first_end))
    }
}

/// Does some work so often, one after the other, and resolves a promise at the end.
fn repeat(work: Work, n_left: usize, promise: Promise<Chain>) {
    if n_left == 0 {
        return promise.resolve(Chain);
    }
    work().and_then(move || repeat(work, n_left - 1, promise));
}

/// A product by `gemm`, of some rows.
struct Peer {
    shape: [usize; 3],
    a: Vec<f32>,
    b: Vec<f32>,
    out: Vec<f32>,
}

impl Peer {
    fn new(n_rows: usize, n: usize) -> Self {
        Peer {
            shape: [n_rows, n, n],
            a: super::random(n_rows * n),
            b: super::random(n * n),
            out: vec![0.0; n_rows * n],
        }
    }

    fn run(&mut self) {
        super::gemm_alone(self.shape, &self.a, &self.b, &mut self.out);
    }

    fn time(&mut self) -> Duration {
        let start = Clock::Wall.now();
        self.run();
        Clock::Wall.now().saturating_sub(start)
    }
}

/// Half of the rows here, the others on a thread that waits for its turn.
struct Halves {
    first: Peer,
    wake: mpsc::Sender<()>,
    state: Arc<AtomicUsize>,
}

/// The states of the other thread: it sleeps, or is done; it is awake; it is to begin.
const IDLE: usize = 0;
const AWAKE: usize = 1;
const BEGUN: usize = 2;

impl Halves {
    fn new(n: usize) -> Self {
        let (wake, woken) = mpsc::channel();
        let state = Arc::new(AtomicUsize::new(IDLE));
        let (seen, mut second) = (state.clone(), Peer::new(n - n / 2, n));
        // It ends when nobody can wake it any more.
        thread::spawn(move || {
            while woken.recv().is_ok() {
                seen.store(AWAKE, Ordering::Release);
                while seen.load(Ordering::Acquire) != BEGUN {
                    std::hint::spin_loop();
                }
                second.run();
                seen.store(IDLE, Ordering::Release);
            }
        });
        let first = Peer::new(n / 2, n);
        Halves { first, wake, state }
    }

    fn time(&mut self) -> Duration {
        let until = |wanted| {
            while self.state.load(Ordering::Acquire) != wanted {
                std::hint::spin_loop();
            }
        };
        self.wake.send(()).expect("the other thread waits");
        until(AWAKE);
        let start = Clock::Wall.now();
        self.state.store(BEGUN, Ordering::Release);
        self.first.run();
        until(IDLE);
        Clock::Wall.now().saturating_sub(start)
    }
}
