//! Arithmetic on tensors, on one thread unless said: products beside the crate `gemm` called alone, convolutions of
//! ResNet-50 beside a product of as many operations, and functions of elements beside the copying of as many
//! bytes.
//!
//! | Subject | Peer | Ratio wanted |
//! | --- | --- | --- |
//! | products of square matrices | `gemm` alone | 0.95 |
//! | how many times faster two threads are at them | `gemm` on two threads, half of the rows each | 0.97 |
//! | convolutions | `gemm`, of the matrices that the convolution is | 0.8 |
//! | exp, gelu, sums, softmax, layer norm and others | `copy_from_slice` of the same bytes read and written | 0.8 |
//!
//! `cargo bench -p tfrt-benches --bench math -- WORD` measures what has the word in its name.

use std::hint::black_box;

#[path = "math/scaling.rs"]
mod scaling;

use tfrt_benches::measure::Times;
use tfrt_tensor::math::conv::{ConvEpilogue, Convolution, convolve};
use tfrt_tensor::math::matmul::{Scale, matmul};
use tfrt_tensor::math::normalize::{Affine, rows};
use tfrt_tensor::math::pointwise::{BinaryFunction, UnaryFunction, binary, unary};
use tfrt_tensor::math::reduce::{Reduction, reduce};
use tfrt_tensor::math::softmax::{SoftmaxKind, softmax};
use tfrt_tensor::math::window::{Padding, Window};
use tfrt_tensor::{TensorView, TensorViewMut};

/// The number of elements of the tensors whose elements are gone through: more than the caches hold.
const N: usize = 1 << 24;
/// The number of elements of a tensor that the second cache holds.
const N_SMALL: usize = 1 << 16;

fn main() {
    println!(
        "medians of interleaved runs, processor time of one thread; spread is half the interquartile range"
    );
    products();
    scaling::all();
    convolutions();
    elements();
}

/// Returns whether the command line asks for a subject.
fn is_wanted(name: &str) -> bool {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    words.is_empty() || words.iter().any(|word| name.contains(word.as_str()))
}

/// Compares, in turns. `n_each` calls make one time; `amount` is what one call does, in units of 10^9.
fn compare(
    name: &str,
    unit: &str,
    amount: f64,
    n_each: usize,
    mut ours: impl FnMut(),
    mut peer: impl FnMut(),
) {
    let n_runs = std::env::var("TFRT_BENCH_RUNS")
        .ok()
        .and_then(|runs| runs.parse().ok());
    let (mut our_times, mut peer_times) = (Times::default(), Times::default());
    ours();
    peer();
    for _ in 0..n_runs.unwrap_or(15) {
        our_times.take(|| (0..n_each).for_each(|_| ours()));
        peer_times.take(|| (0..n_each).for_each(|_| peer()));
    }
    let rate = |times: &Times| amount * n_each as f64 / times.median().as_secs_f64();
    let (ours, peer) = (rate(&our_times), rate(&peer_times));
    println!(
        "{name:<34}{ours:>9.1} {unit}{:>6.0}%   peer{peer:>9.1} {unit}   ratio{:>6.2}",
        our_times.spread() * 100.0,
        ours / peer
    );
}

/// Returns numbers that look random, alike each time.
fn random(n: usize) -> Vec<f32> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 16_777_216.0 - 0.5
    };
    (0..n).map(|_| next()).collect()
}

/// Calls `gemm` for a product in row-major order.
#[allow(unsafe_code, reason = "the peer is called as it is")]
fn gemm_alone([m, k, n]: [usize; 3], a: &[f32], b: &[f32], out: &mut [f32]) {
    assert!(a.len() >= m * k && b.len() >= k * n && out.len() >= m * n);
    // SAFETY: the matrices lie in their slices, as was just looked at.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            n as isize,
            false,
            a.as_ptr(),
            1,
            k as isize,
            b.as_ptr(),
            1,
            n as isize,
            0.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

fn products() {
    for shape in [
        [256, 256, 256],
        [512, 512, 512],
        [1024, 1024, 1024],
        [2048, 2048, 2048],
        [1, 384, 384],
        [16, 384, 1536],
        [128, 384, 1536],
    ] {
        let [m, k, n] = shape;
        let name = format!("product {m}x{k}x{n}");
        if !is_wanted(&name) {
            continue;
        }
        let (a, b) = (random(m * k), random(k * n));
        let (mut ours, mut theirs) = (vec![0.0; m * n], vec![0.0; m * n]);
        let operations = 2e-9 * (m * k * n) as f64;
        compare(
            &name,
            "GFLOP/s",
            operations,
            (0.02 / operations).ceil() as usize,
            || {
                let a = TensorView::new(&a, &[m, k]).unwrap();
                let b = TensorView::new(&b, &[k, n]).unwrap();
                let mut out = TensorViewMut::new(&mut ours, &[m, n]).unwrap();
                matmul(Scale::default(), &a, &b, &mut out).unwrap();
            },
            || gemm_alone(shape, &a, &b, &mut theirs),
        );
    }
}

fn convolutions() {
    // Extent of the image, channels, filters, extent of the window, stride.
    for [extent, channels, filters, window, stride] in [
        [224, 3, 64, 7, 2],
        [56, 64, 64, 1, 1],
        [56, 64, 64, 3, 1],
        [56, 64, 256, 1, 1],
        [56, 256, 128, 1, 1],
        [56, 128, 128, 3, 2],
        [28, 128, 512, 1, 1],
        [28, 128, 128, 3, 1],
        [28, 512, 1024, 1, 2],
        [14, 256, 256, 3, 1],
        [14, 1024, 256, 1, 1],
        [7, 512, 512, 3, 1],
        [7, 512, 2048, 1, 1],
    ] {
        let name = format!("convolution {extent} {channels}->{filters} {window}x{window}/{stride}");
        if !is_wanted(&name) {
            continue;
        }
        let convolution = Convolution::new(&[Window::new(window, stride, Padding::Same); 2]);
        let shapes = [
            [1, extent, extent, channels],
            [window, window, channels, filters],
        ];
        let output = convolution.output_extents(&shapes[0], &shapes[1]).unwrap();
        let (x, w) = (
            random(shapes[0].iter().product()),
            random(shapes[1].iter().product()),
        );
        let mut out = vec![0.0; output.iter().product()];
        let product = [output[1] * output[2], window * window * channels, filters];
        let patches = random(product[0] * product[1]);
        let mut theirs = vec![0.0; out.len()];
        let operations = 2e-9 * product.iter().product::<usize>() as f64;
        compare(
            &name,
            "GFLOP/s",
            operations,
            (0.02 / operations).ceil() as usize,
            || {
                let x = TensorView::new(&x, &shapes[0]).unwrap();
                let w = TensorView::new(&w, &shapes[1]).unwrap();
                let mut out = TensorViewMut::new(&mut out, &output).unwrap();
                convolve(&convolution, &x, &w, ConvEpilogue::default(), &mut out).unwrap();
            },
            || gemm_alone(product, &patches, &w, &mut theirs),
        );
    }
}

/// A function that goes through a tensor and writes another.
type Walk = fn(&TensorView<'_, f32>, &mut TensorViewMut<'_, f32>);

fn one(function: UnaryFunction, x: &TensorView<'_, f32>, out: &mut TensorViewMut<'_, f32>) {
    unary(function, &x.into(), out.into()).unwrap();
}

fn with_itself(
    function: BinaryFunction,
    x: &TensorView<'_, f32>,
    out: &mut TensorViewMut<'_, f32>,
) {
    binary(function, &[x.into(), x.into()], out.into()).unwrap();
}

fn elements() {
    let walks: [(&str, Walk); 15] = [
        ("relu", |x, out| one(UnaryFunction::Relu, x, out)),
        ("exp", |x, out| one(UnaryFunction::Exp, x, out)),
        ("tanh", |x, out| one(UnaryFunction::Tanh, x, out)),
        ("gelu", |x, out| one(UnaryFunction::Gelu, x, out)),
        ("gelu by tanh", |x, out| {
            one(UnaryFunction::GeluTanh, x, out)
        }),
        ("sigmoid", |x, out| one(UnaryFunction::Sigmoid, x, out)),
        ("silu", |x, out| one(UnaryFunction::Silu, x, out)),
        ("softplus", |x, out| one(UnaryFunction::Softplus, x, out)),
        ("log", |x, out| one(UnaryFunction::Log, x, out)),
        ("sqrt", |x, out| one(UnaryFunction::Sqrt, x, out)),
        ("divide by itself", |x, out| {
            with_itself(BinaryFunction::Divide, x, out)
        }),
        ("add to itself", |x, out| {
            with_itself(BinaryFunction::Add, x, out)
        }),
        ("softmax of rows of 1024", |x, out| {
            softmax(SoftmaxKind::Softmax, x, out).unwrap()
        }),
        ("log-softmax of rows of 1024", |x, out| {
            softmax(SoftmaxKind::LogSoftmax, x, out).unwrap()
        }),
        ("layer norm of rows of 1024", |x, out| {
            let list = [1.5; 1024];
            let affine = Affine {
                scale: Some(&list[..]),
                shift: Some(&list[..]),
            };
            rows(x, 1e-5, affine, out).unwrap()
        }),
    ];
    let reductions: [(&str, &[usize], Reduction); 4] = [
        ("sum of rows", &[1], Reduction::Sum),
        ("sum of columns", &[0], Reduction::Sum),
        ("sum of all", &[0, 1], Reduction::Sum),
        ("maximum of rows", &[1], Reduction::Maximum),
    ];
    for (size, n) in [("in memory", N), ("in cache", N_SMALL)] {
        let shape = [n / 1024, 1024];
        let (x, mut out, mut copy) = (random(n), vec![0.0; n], vec![0.0; n]);
        let n_each = N / n;
        let gigabytes = 8e-9 * n as f64;
        for (name, walk) in walks {
            let name = format!("{name}, {size}");
            if !is_wanted(&name) {
                continue;
            }
            compare(
                &name,
                "GB/s",
                gigabytes,
                n_each,
                || {
                    let x = TensorView::new(&x, &shape).unwrap();
                    walk(&x, &mut TensorViewMut::new(&mut out, &shape).unwrap());
                },
                || black_box(&mut copy).copy_from_slice(black_box(&x)),
            );
        }
        for (name, dimensions, reduction) in reductions {
            let name = format!("{name}, {size}");
            if !is_wanted(&name) {
                continue;
            }
            let extents: Vec<usize> = (0..2)
                .filter(|d| !dimensions.contains(d))
                .map(|d| shape[d])
                .collect();
            let mut out = vec![0.0; extents.iter().product()];
            compare(
                &name,
                "GB/s",
                gigabytes / 2.0,
                n_each,
                || {
                    let x = TensorView::new(&x, &shape).unwrap();
                    let mut out = TensorViewMut::new(&mut out, &extents).unwrap();
                    reduce(reduction, &x, dimensions, &mut out).unwrap();
                },
                || black_box(&mut copy[..n / 2]).copy_from_slice(black_box(&x[..n / 2])),
            );
        }
    }
}
