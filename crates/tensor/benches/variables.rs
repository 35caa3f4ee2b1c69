//! Costs of a variable: its lock, a read, and a step of Adam on ten million weights beside the memory that it touches.
//!
//! `cargo bench -p tfrt-tensor --bench variables`. Goals: 60 ns for lock, look and release, 30 ns for a read without a
//! copy, nine tenths of the bandwidth of a loop that reads and writes as many bytes.

#![forbid(unsafe_code)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{ExecutionContext, HostContext, LockMode, RequestContext};
use tfrt_tensor::DenseHostTensor;
use tfrt_tensor::math::optimizer::{Optimizer, OptimizerKind};
use tfrt_tensor::resource::{Slot, Variable, try_lock_all};

/// Returns the least time of some rounds.
fn least(n_rounds: usize, mut round: impl FnMut()) -> Duration {
    let times = (0..n_rounds).map(|_| {
        let start = Instant::now();
        round();
        start.elapsed()
    });
    times.min().unwrap_or_default()
}

fn each(name: &str, mut call: impl FnMut()) {
    const N: u32 = 100_000;
    let time = least(30, || (0..N).for_each(|_| call()));
    println!("{name}: {:.1} ns", time.as_nanos() as f64 / f64::from(N));
}

fn main() {
    let host = HostContext::builder(KernelRegistry::new()).build();
    let execution: ExecutionContext = RequestContext::new(&host).into();
    let allocator = host.allocator();
    let slot = Slot::anonymous(Variable::new());
    let handle = slot.handle();
    let variable = slot.get::<Variable>().unwrap();
    let weights = DenseHostTensor::from_slice(allocator, &[4], &[0.0_f32; 4]).unwrap();
    variable.assign(weights.into(), allocator).unwrap();
    each("lock for reading, look, release", || {
        let variable = Slot::of(&handle).unwrap().get::<Variable>().unwrap();
        let hold = variable.lock().try_acquire(LockMode::Read).unwrap();
        black_box(variable.look());
        drop(hold);
    });
    each("lock for writing, prepare, release", || {
        let variable = Slot::of(&handle).unwrap().get::<Variable>().unwrap();
        let hold = variable.lock().try_acquire(LockMode::Write).unwrap();
        black_box(variable.prepare_to_update(allocator).unwrap());
        drop(hold);
    });
    let slots = [slot.clone()];
    each("lock a list of one for writing, release", || {
        drop(black_box(try_lock_all(&slots, LockMode::Write).unwrap()));
    });
    each("read", || {
        let variable = Slot::of(&handle).unwrap().get::<Variable>().unwrap();
        let read = variable.lock().try_read_with(|| variable.read(allocator));
        drop(black_box(read));
    });

    let n = 10_000_000;
    let of = |value: f32| DenseHostTensor::from_slice(allocator, &[n], &vec![value; n]).unwrap();
    let (states, gradient) = ([of(1.0), of(0.0), of(0.0)], of(0.5));
    let adam = Optimizer {
        kind: OptimizerKind::Adam,
        numbers: [0.9, 0.999, 0.001, 0.9, 0.999, 1e-7],
        flag: false,
    };
    let wait = |done: tfrt_host::AsyncValue<tfrt_host::Chain>| {
        host.queue().await_all(&[done.into_any()]).unwrap();
    };
    let step = least(15, || {
        wait(adam.apply(&execution, &gradient, &states).unwrap());
    });
    // A loop that touches as many bytes: three lists are read and written, one is read.
    let mut lists = [vec![1.0_f32; n], vec![2.0; n], vec![3.0; n]];
    let slope = vec![0.5_f32; n];
    let memory = least(15, || {
        let [a, b, c] = &mut lists;
        for (((a, b), c), g) in a.iter_mut().zip(b).zip(c).zip(&slope) {
            *a += *g;
            *b += *g;
            *c += *g;
        }
        black_box(&lists);
    });
    let bytes = 7.0 * 4.0 * n as f64;
    let rate = |time: Duration| bytes / time.as_secs_f64() / 1e9;
    println!(
        "Adam on 10 million f32: {:.1} ms, {:.1} GB/s; a loop over as many bytes: {:.1} ms, {:.1} GB/s; ratio {:.2}",
        step.as_secs_f64() * 1e3,
        rate(step),
        memory.as_secs_f64() * 1e3,
        rate(memory),
        memory.as_secs_f64() / step.as_secs_f64(),
    );
}
