//! Steps of rows, where TensorFlow calculates these in another order than steps of whole variables: its kernels for rows
//! are written apart, and those for rows of one number once more, partly in `f64`.

use super::super::number::Floating;
use super::{Loop, OptimizerKind, Scalars, V, accumulated, each, loop_of};

/// Returns the loop of a kind over a row of so many numbers.
pub(super) fn loop_of_rows<T: Floating>(kind: OptimizerKind, len: usize) -> Loop<T> {
    match (kind, len) {
        (OptimizerKind::Momentum, _) => |s, states, g| each(s, states, g, momentum),
        (OptimizerKind::RmsProp, _) => |s, states, g| each(s, states, g, rms_prop),
        (OptimizerKind::CenteredRmsProp, _) => |s, states, g| each(s, states, g, centered_rms_prop),
        (OptimizerKind::Adagrad, 1) => |s, states, g| {
            each(s, states, g, |s, [var, accum], g| {
                let accum = accumulated(s, accum, g);
                [var - g * s.numbers[0] / accum.sqrt(), accum]
            });
        },
        (OptimizerKind::AdagradDa, 1) => |s, states, g| each(s, states, g, adagrad_da_of_one),
        (OptimizerKind::AdagradDa, _) => |s, states, g| each(s, states, g, adagrad_da),
        (OptimizerKind::Ftrl, 1) => |s, states, g| {
            let [lr, l1, l2, power, ..] = s.numbers;
            each(s, states, g, move |s, states, g| {
                ftrl_of_one(s, states, [lr, l1, l2, power], [g, g])
            });
        },
        (OptimizerKind::FtrlV2, 1) => |s, states, g| {
            let [lr, l1, l2, shrinkage, power, ..] = s.numbers;
            each(s, states, g, move |s, [var, accum, linear], g| {
                let shrunk = g + s.two * shrinkage * var;
                ftrl_of_one(s, [var, accum, linear], [lr, l1, l2, power], [g, shrunk])
            });
        },
        (OptimizerKind::ProximalGradientDescent, 1) => |s, states, g| {
            each(s, states, g, |s, [var], g| {
                let [alpha, l1, l2, ..] = s.numbers;
                [proximal_of_one(s, var - g * alpha, alpha, [l1, l2])]
            });
        },
        (OptimizerKind::ProximalAdagrad, 1) => |s, states, g| {
            each(s, states, g, |s, [var, accum], g| {
                let [lr, l1, l2, ..] = s.numbers;
                let accum = accum + g * g;
                let rate = lr / accum.sqrt();
                [proximal_of_one(s, var - rate * g, rate, [l1, l2]), accum]
            });
        },
        _ => loop_of(kind),
    }
}

#[inline(always)]
fn momentum<T: Floating>(s: &Scalars<T>, [var, accum]: [V<T>; 2], g: V<T>) -> [V<T>; 2] {
    let [lr, momentum, ..] = s.numbers;
    let accum = accum * momentum + g;
    let step = match s.flag {
        true => g * lr + accum * (momentum * lr),
        false => accum * lr,
    };
    [var - step, accum]
}

#[inline(always)]
fn rms_prop<T: Floating>(s: &Scalars<T>, [var, ms, mom]: [V<T>; 3], g: V<T>) -> [V<T>; 3] {
    let [lr, rho, momentum, epsilon, ..] = s.numbers;
    let ms = ms * rho + g * g * (s.one - rho);
    let mom = mom * momentum + (ms + epsilon).rsqrt() * lr * g;
    [var - mom, ms, mom]
}

#[inline(always)]
fn centered_rms_prop<T: Floating>(
    s: &Scalars<T>,
    [var, mg, ms, mom]: [V<T>; 4],
    g: V<T>,
) -> [V<T>; 4] {
    let [lr, rho, momentum, epsilon, ..] = s.numbers;
    let ms = ms * rho + g * g * (s.one - rho);
    let mg = mg * rho + g * (s.one - rho);
    let mom = mom * momentum + (ms + epsilon - mg * mg).rsqrt() * lr * g;
    [var - mom, mg, ms, mom]
}

#[inline(always)]
fn adagrad_da<T: Floating>(s: &Scalars<T>, [_, sum, squares]: [V<T>; 3], g: V<T>) -> [V<T>; 3] {
    let [lr, l1, l2, n_steps, ..] = s.numbers;
    let sum = sum + g;
    let squares = squares + g * g;
    let divisor = l2 + squares.sqrt() / (n_steps * lr);
    let mean = match l1.exceeds(s.zero) {
        true => sum.sign() * (sum.abs() / n_steps - l1).max(s.zero),
        false => sum / n_steps,
    };
    [(s.zero - mean) / divisor, sum, squares]
}

#[inline(always)]
fn adagrad_da_of_one<T: Floating>(
    s: &Scalars<T>,
    [_, sum, squares]: [V<T>; 3],
    g: V<T>,
) -> [V<T>; 3] {
    let [lr, l1, l2, n_steps, ..] = s.numbers.map(V::wide);
    let sum = sum + g;
    let squares = V::of(squares.wide() + g.wide() * g.wide());
    let divisor = n_steps * l2 * lr + squares.sqrt().wide();
    let var = match l1 > 0.0 {
        true => {
            let kept = (sum.abs().wide() - n_steps * l1).max(0.0);
            (s.zero - sum).sign().wide() * lr * kept / divisor
        }
        false => -sum.wide() * lr / divisor,
    };
    [V::of(var), sum, squares]
}

/// Takes a step with a gradient, and the one that the linear state sees.
#[inline(always)]
fn ftrl_of_one<T: Floating>(
    s: &Scalars<T>,
    [var, accum, linear]: [V<T>; 3],
    [lr, l1, l2, power]: [V<T>; 4],
    [g, shrunk]: [V<T>; 2],
) -> [V<T>; 3] {
    let exponent = s.zero - power;
    let next = accum + g * g;
    let (root, before) = (next.pow(exponent), accum.pow(exponent));
    let (linear, divisor, threshold) = match s.flag {
        true => {
            let linear = linear + shrunk * lr - (root - before) * var;
            (linear, root + s.two * l2 * lr, l1 * lr)
        }
        false => {
            let linear = linear + shrunk - (root - before) / lr * var;
            (linear, root / lr + s.two * l2, l1)
        }
    };
    let var = match linear.abs().exceeds(threshold) {
        true => (threshold * linear.sign() - linear) / divisor,
        false => s.zero,
    };
    [var, next, linear]
}

/// Shrinks a weight by l1 and l2, the latter in `f64`.
#[inline(always)]
fn proximal_of_one<T: Floating>(s: &Scalars<T>, p: V<T>, rate: V<T>, [l1, l2]: [V<T>; 2]) -> V<T> {
    let divisor = 1.0 + (l2 * rate).wide();
    let kept = match l1.exceeds(s.zero) {
        true => p.sign() * (p.abs() - rate * l1).max(s.zero),
        false => p,
    };
    V::of(kept.wide() / divisor)
}
