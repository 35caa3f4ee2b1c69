//! Kernels of benchmarks: sums of three and four, kernels that take a microsecond, and one that
//! stops a run in its middle.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tfrt_host::kernel::{KernelRegistry, Rest};
use tfrt_host::{Error, ExecutionContext};

/// Returns all kernels of the host runtime, and those of this file.
pub fn registry() -> KernelRegistry {
    let mut registry = KernelRegistry::new();
    tfrt_kernels::register_all(&mut registry);
    registry
        .add("bench.sum3", sum3)
        .add("bench.sum4", sum4)
        .add("bench.trip", trip)
        .add("bench.slow_sum2", |a: i32, b: i32| {
            spin();
            a.wrapping_add(b)
        })
        .add("bench.slow_sum3", |a: i32, b: i32, c: i32| {
            spin();
            sum3(a, b, c)
        })
        .add("bench.slow_sum4", |a: i32, b: i32, c: i32, d: i32| {
            spin();
            sum4(a, b, c, d)
        });
    registry
}

fn sum3(a: i32, b: i32, c: i32) -> i32 {
    a.wrapping_add(b).wrapping_add(c)
}

fn sum4(a: i32, b: i32, c: i32, d: i32) -> i32 {
    sum3(a, b, c).wrapping_add(d)
}

/// The data of a request by which `bench.trip` stops its run.
#[derive(Debug)]
pub struct Trip {
    stop: Stop,
    n_left: AtomicU32,
}

/// The way in which a run is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The kernel fails.
    Fail,
    /// The kernel cancels the request, and gives its sum.
    Cancel,
}

impl Trip {
    /// Stops the run when the kernel has run so many times before.
    pub fn after(n_times: u32, stop: Stop) -> Trip {
        let n_left = AtomicU32::new(n_times);
        Trip { stop, n_left }
    }

    /// Returns whether the run was stopped.
    pub fn is_over(&self) -> bool {
        // Ordering: only the number matters.
        self.n_left.load(Ordering::Relaxed) > u32::MAX / 2
    }
}

/// Runs `%sum = "bench.trip"(%a, %b, ...)`: the sum, unless the request has a [`Trip`] that is
/// over.
fn trip(operands: Rest, context: &ExecutionContext) -> Result<i32, Error> {
    // Behind a handle, too, where a turn went on after another thread had done its part.
    let sum = operands
        .iter()
        .try_fold(0_i32, |sum, one| Some(sum.wrapping_add(*one.get::<i32>()?)));
    let sum = sum.ok_or_else(|| Error::invalid_argument("an operand is no i32"))?;
    let Some(trip) = context.request().data::<Trip>() else {
        return Ok(sum);
    };
    // Ordering: only the number matters.
    if trip.n_left.fetch_sub(1, Ordering::Relaxed) == 0 {
        match trip.stop {
            Stop::Fail => return Err(Error::unknown("tripped")),
            Stop::Cancel => context.request().cancel(),
        }
    }
    Ok(sum)
}

/// Computes for a microsecond: a number of turns that was measured once, so that a thread that is
/// kept from running has its work still to do.
pub fn spin() {
    static TURNS: OnceLock<u64> = OnceLock::new();
    turn(*TURNS.get_or_init(turns_in_a_microsecond));
}

fn turns_in_a_microsecond() -> u64 {
    const N_TURNS: u64 = 100_000;
    let fastest = (0..20).map(|_| {
        let start = Instant::now();
        turn(N_TURNS);
        start.elapsed()
    });
    let fastest = fastest
        .min()
        .unwrap_or_default()
        .max(Duration::from_nanos(1));
    (N_TURNS as f64 * 1e-6 / fastest.as_secs_f64()).ceil() as u64
}

/// Goes through a chain of multiplications that the compiler can't shorten.
fn turn(n_turns: u64) {
    let mut word = std::hint::black_box(1u64);
    for _ in 0..n_turns {
        word = std::hint::black_box(word.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
    std::hint::black_box(word);
}
