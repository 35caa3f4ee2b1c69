//! Times of a reduction of eight values by the tree, beside plain loops.
//!
//! `cargo bench -p tfrt-dist --bench reduce`. A pass over all values for each element, in the order of members, is the least
//! that memory allows; pairs of whole values, one behind the other, are what a reduction without blocks does. Goal: within
//! a tenth of the former where memory is the bound, and ahead of both where it is not.

#![forbid(unsafe_code)]

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use tfrt_dist::collective::arithmetic::{Value, reduce};
use tfrt_dist::collective::local::group;
use tfrt_dist::collective::{Function, Operation, Order};
use tfrt_dist::reduction::steps;
use tfrt_tensor::math::number::Real;

const N_VALUES: usize = 8;

/// Returns the least time of some rounds.
fn least(n_rounds: usize, mut round: impl FnMut()) -> Duration {
    let times = (0..n_rounds).map(|_| {
        let start = Instant::now();
        round();
        start.elapsed()
    });
    times.min().unwrap_or_default()
}

fn measure<T: Real>(name: &str, function: Function, plain: impl Fn(T, T) -> T + Copy, len: usize) {
    let value = |value: usize| {
        let number = |at: usize| T::from_f64(((at * 7 + value) % 1000) as f64);
        (0..len).map(number).collect::<Vec<T>>()
    };
    let values: Vec<Vec<T>> = (0..N_VALUES).map(value).collect();
    let mut result = vec![T::ZERO; len];
    let n_rounds = (100_000_000 / (len * N_VALUES)).clamp(5, 2000);

    let single: Vec<_> = (0..N_VALUES).map(|leaf| leaf..leaf + 1).collect();
    let order = steps(&(0..N_VALUES), &single).expect("all leaves are there");
    let terms: Vec<Value<'_, T>> = values.iter().map(|it| Value::Elements(it)).collect();
    let ours = least(n_rounds, || {
        reduce(
            function,
            &order,
            &terms,
            black_box(&mut result),
            Some(N_VALUES),
        );
    });
    let by_element = least(n_rounds, || {
        let result = black_box(&mut result);
        let [a, b, c, d, e, f, g, h] = [0, 1, 2, 3, 4, 5, 6, 7].map(|i: usize| &values[i][..len]);
        for (at, result) in result.iter_mut().enumerate() {
            let left = plain(plain(a[at], b[at]), plain(c[at], d[at]));
            let right = plain(plain(e[at], f[at]), plain(g[at], h[at]));
            *result = plain(left, right);
        }
    });
    let by_pairs = least(n_rounds, || {
        let mut level: Vec<Vec<T>> = values.clone();
        while level.len() > 1 {
            let pairs = level.chunks(2).map(|pair| {
                let both = pair[0].iter().zip(&pair[1]);
                both.map(|(left, right)| plain(*left, *right)).collect()
            });
            level = pairs.collect();
        }
        result.copy_from_slice(&level[0]);
        black_box(&mut result);
    });
    let bytes = (len * size_of::<T>() * (N_VALUES + 1)) as f64;
    let told = |time: Duration| {
        let speed = bytes / time.as_secs_f64() / 1e9;
        format!("{:.1} us ({speed:.1} GB/s)", time.as_secs_f64() * 1e6)
    };
    println!(
        "{name} of {N_VALUES} x {len}: {}; by element {}; by pairs {}",
        told(ours),
        told(by_element),
        told(by_pairs)
    );
}

/// Measures an all-reduce among threads.
fn measure_group(n_members: usize, len: usize) {
    let operation = Operation::AllReduce {
        function: Function::Sum,
        leaves: n_members,
        order: Order::Tree,
    };
    let n_rounds = (20_000_000 / len).clamp(3, 1000);
    let members = group::<f32>(n_members, Duration::from_secs(60));
    let times = thread::scope(|scope| {
        let threads = members.into_iter().map(|mut member| {
            let operation = operation.clone();
            scope.spawn(move || {
                let (input, mut result) = (vec![1.0_f32; len], vec![0.0; len]);
                let times = (0..n_rounds).map(|_| {
                    let (inputs, memory) = (vec![input.clone()], std::mem::take(&mut result));
                    let start = Instant::now();
                    let called = member.call(operation.clone(), &[len], inputs, memory);
                    result = called.expect("all members call").0;
                    start.elapsed()
                });
                times.min().unwrap_or_default()
            })
        });
        let threads: Vec<_> = threads.collect();
        let times = threads.into_iter().map(|thread| thread.join());
        times
            .map(|time| time.expect("no member panics"))
            .collect::<Vec<_>>()
    });
    let time = times.into_iter().max().unwrap_or_default();
    println!(
        "all-reduce of {n_members} threads, {} KiB: {:.1} us",
        len * 4 / 1024,
        time.as_secs_f64() * 1e6
    );
}

fn main() {
    for len in [1024, 65_536, 4 << 20] {
        measure::<f32>("sum of f32", Function::Sum, |x, y| x + y, len);
        measure::<f32>("max of f32", Function::Max, f32::max, len);
        measure::<i32>("sum of i32", Function::Sum, i32::wrapping_add, len);
    }
    for (n_members, len) in [(2, 1024), (2, 1 << 20), (2, 16 << 20), (4, 1 << 20)] {
        measure_group(n_members, len);
    }
}
