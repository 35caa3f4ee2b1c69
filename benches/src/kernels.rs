//! Kernels of benchmarks: sums of three and four, and kernels that take a microsecond.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tfrt_host::kernel::KernelRegistry;

/// Returns all kernels of the host runtime, and those of this file.
pub fn registry() -> KernelRegistry {
    let mut registry = KernelRegistry::new();
    tfrt_kernels::register_all(&mut registry);
    registry
        .add("bench.sum3", sum3)
        .add("bench.sum4", sum4)
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
