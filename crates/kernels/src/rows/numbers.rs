//! Kernels of programs of pointwise steps; on extents and ranks; on ranges, losses, products of vectors, inverses of matrices, and checks.

use smallvec::smallvec;
use tfrt_host::{DType, Error};
use tfrt_tensor::math::Family;
use tfrt_tensor::math::elementwise::broadcast_extents;
use tfrt_tensor::math::number::Real;
use tfrt_tensor::math::pointwise::PointwiseProgram;
use tfrt_tensor::op::{Formats, Output, Outputs, TensorCall, TensorKernel, made, unsupported};
use tfrt_tensor::{DenseHostTensor, with_floating, with_real};

use super::rearrange::listed;
use super::segments::indices;
use super::tensors::{extents, integers};

pub(super) const KERNELS: &[TensorKernel] = &[
    TensorKernel::new("pointwise", programmed),
    TensorKernel::new("tf.Bitcast", |call| {
        let (x, metadata) = (call.dense(0)?, call.result(0)?);
        let seen = DenseHostTensor::new(metadata.clone(), x.buffer().clone());
        Ok(smallvec![call.named(seen)?.into()])
    }),
    TensorKernel::new("tf.BroadcastArgs", common),
    TensorKernel::new("tf.CheckNumerics", |call| {
        let dtype = call.dense(0)?.dtype();
        with_floating!(dtype, T => checked::<T>(call), else Err(unsupported(call.name, dtype)))
    })
    .of(Family::Floats),
    TensorKernel::new("tf.Cholesky", |call| of_matrices(call, cholesky)).of(Family::Floats),
    TensorKernel::new("tf.Cross", |call| {
        let dtype = call.dense(0)?.dtype();
        with_real!(dtype, T => cross::<T>(call), else Err(unsupported(call.name, dtype)))
    })
    .of(Family::Reals),
    TensorKernel::new("tf.EnsureShape", |call| {
        Ok(smallvec![call.tensor(0)?.clone().into()])
    })
    .formats(Formats::ALL),
    TensorKernel::new("tf.IdentityN", |call| {
        let all = (0..call.n_inputs()).map(|index| Ok(call.tensor(index)?.clone().into()));
        all.collect()
    })
    .formats(Formats::ALL),
    TensorKernel::new("tf.L2Loss", |call| {
        let dtype = call.dense(0)?.dtype();
        with_floating!(dtype, T => loss::<T>(call), else Err(unsupported(call.name, dtype)))
    })
    .of(Family::Floats),
    TensorKernel::new("tf.LRN", |call| {
        let dtype = call.dense(0)?.dtype();
        with_floating!(dtype, T => normalised::<T>(call), else Err(unsupported(call.name, dtype)))
    })
    .of(Family::Floats),
    TensorKernel::new("tf.LinSpace", |call| {
        let dtype = call.dense(0)?.dtype();
        with_floating!(dtype, T => spaced::<T>(call), else Err(unsupported(call.name, dtype)))
    })
    .of(Family::Floats),
    TensorKernel::new("tf.MatrixInverse", |call| {
        match call.attrs.flag("adjoint") {
            true => of_matrices(call, |matrix, n| inverse(transposed(&matrix, n), n)),
            false => of_matrices(call, inverse),
        }
    })
    .of(Family::Floats),
    TensorKernel::new("tf.Rank", |call| {
        let rank = call.tensor(0)?.metadata().shape.rank();
        Ok(smallvec![indices(call, DType::I32, &[], &[rank])?])
    })
    .formats(Formats::ALL),
    TensorKernel::new("tf.ShapeN", |call| {
        let dtype = call.attrs.dtype("out_type").unwrap_or(DType::I32);
        let of = |index| -> Result<Output, Error> {
            let found = extents(call.tensor(index)?);
            indices(call, dtype, &[found.len()], &found)
        };
        (0..call.n_inputs()).map(of).collect()
    })
    .formats(Formats::ALL),
];

/// Takes elements through a program, as passes write them for devices.
fn programmed(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let inputs = (0..call.n_inputs()).map(|index| call.dense(index));
    let inputs = inputs.collect::<Result<Vec<&DenseHostTensor>, Error>>()?;
    let program = PointwiseProgram::parse(inputs.len(), call.attrs.text("program"));
    let (program, out) = (call.named(program)?, call.output(0)?);
    let chain = program.run_into(call.execution, &inputs, &out);
    Ok(smallvec![made(out, call.named(chain)?)?])
}

fn common(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let list = |index: usize| -> Result<Vec<usize>, Error> {
        let all = integers(call, index)?;
        let of = |extent: &i64| {
            usize::try_from(*extent).map_err(|_| {
                call.error(format_args!(
                    "operand {index}: expected no negative integers, found {extent}"
                ))
            })
        };
        all.iter().map(of).collect()
    };
    let common = broadcast_extents(&[&list(0)?, &list(1)?]);
    let (common, dtype) = (call.named(common)?, call.dense(0)?.dtype());
    Ok(smallvec![indices(call, dtype, &[common.len()], &common)?])
}

fn checked<T: Real>(call: &TensorCall<'_>) -> Result<Outputs, Error> {
    let x = call.dense(0)?;
    let reading = x.read()?;
    let (mut has_infinite, mut has_none) = (false, false);
    for one in reading.elements::<T>()? {
        let one = one.to_f64();
        has_infinite |= one.is_infinite();
        has_none |= one.is_nan();
    }
    let found = match (has_infinite, has_none) {
        (false, false) => return Ok(smallvec![x.clone().into()]),
        (true, false) => "Inf",
        (false, true) => "NaN",
        (true, true) => "Inf and NaN",
    };
    let message = call.attrs.text("message").escape_debug();
    Err(call.error(format_args!("{message} : Tensor had {found} values")))
}

fn cross<T: Real>(call: &TensorCall<'_>) -> Result<Outputs, Error> {
    let (x, y) = (call.dense(0)?, call.dense(1)?);
    let shape = x.shape().to_dims();
    if shape != y.shape().to_dims() || shape.last() != Some(&3) {
        let (x, y) = (x.shape(), y.shape());
        return Err(call.error(format_args!(
            "expected vectors of three elements, found {x} and {y}"
        )));
    }
    let (x, y) = (x.read()?, y.read()?);
    let pairs = x
        .elements::<T>()?
        .chunks(3)
        .zip(y.elements::<T>()?.chunks(3));
    let of = |(x, y): (&[T], &[T])| {
        let part = |a: usize, b: usize| x[a].times(y[b]).minus(x[b].times(y[a]));
        [part(1, 2), part(2, 0), part(0, 1)]
    };
    let list: Vec<T> = pairs.flat_map(of).collect();
    Ok(smallvec![listed(call, &shape, &list)?])
}

fn loss<T: Real>(call: &TensorCall<'_>) -> Result<Outputs, Error> {
    let reading = call.dense(0)?.read()?;
    let squares = reading
        .elements::<T>()?
        .iter()
        .map(|one| one.to_f64() * one.to_f64());
    let half = T::from_f64(squares.sum::<f64>() / 2.0);
    Ok(smallvec![listed(call, &[], &[half])?])
}

fn normalised<T: Real>(call: &TensorCall<'_>) -> Result<Outputs, Error> {
    let x = call.dense(0)?;
    let shape = x.shape().to_dims();
    let n = shape.last().copied().unwrap_or(0).max(1);
    let radius = call.attrs.int("depth_radius").unwrap_or(5);
    let radius = usize::try_from(radius).unwrap_or(0);
    let number = |name: &str, default: f64| match call.attrs.get(name) {
        Some(tfrt_ops::AttrValue::Float(value)) => value,
        _ => default,
    };
    let (bias, alpha, beta) = (
        number("bias", 1.0),
        number("alpha", 1.0),
        number("beta", 0.5),
    );
    let reading = x.read()?;
    let mut list = Vec::with_capacity(x.n_elements());
    for channels in reading.elements::<T>()?.chunks(n) {
        for (at, one) in channels.iter().enumerate() {
            let last = at.saturating_add(radius).min(n - 1);
            let around = channels[at.saturating_sub(radius)..=last].iter();
            let sum: f64 = around.map(|one| one.to_f64() * one.to_f64()).sum();
            list.push(T::from_f64(one.to_f64() / (bias + alpha * sum).powf(beta)));
        }
    }
    Ok(smallvec![listed(call, &shape, &list)?])
}

fn spaced<T: Real>(call: &TensorCall<'_>) -> Result<Outputs, Error> {
    let one = |index: usize| {
        let tensor = call.dense(index)?;
        match tensor.read()?.elements::<T>()? {
            [one] => Ok(*one),
            _ => Err(call.error(format_args!("operand {index}: expected one element"))),
        }
    };
    let (start, stop) = (one(0)?, one(1)?);
    let n = match integers(call, 2)?[..] {
        [n] => usize::try_from(n).ok().filter(|n| *n > 0),
        _ => None,
    };
    let n = n.ok_or_else(|| call.error(format_args!("expected a num above 0")))?;
    let out = call.output(0)?;
    {
        let mut writing = out.write()?;
        let list = writing.elements_mut::<T>()?;
        // Of so many elements the distance fits a float.
        let step = stop.minus(start).over(T::from_f64((n.max(2) - 1) as f64));
        for (index, to) in list.iter_mut().enumerate() {
            *to = match index {
                0 => start,
                last if last + 1 == n => stop,
                index => start.plus(step.times(T::from_f64(index as f64))),
            };
        }
    }
    Ok(smallvec![out.into()])
}

/// Applies a function to each square matrix, in `f64`; its error says what the matrix lacks.
fn of_matrices(
    call: &mut TensorCall<'_>,
    function: impl Fn(Vec<f64>, usize) -> Result<Vec<f64>, &'static str>,
) -> Result<Outputs, Error> {
    let x = call.dense(0)?;
    let (dtype, shape) = (x.dtype(), x.shape().to_dims());
    let n = match shape[..] {
        [.., rows, columns] if rows == columns => rows,
        _ => return Err(call.error(format_args!("expected square matrices, found {shape:?}"))),
    };
    with_floating!(dtype, T => {
        let reading = x.read()?;
        let mut list = Vec::with_capacity(x.n_elements());
        for matrix in reading.elements::<T>()?.chunks(n.saturating_mul(n).max(1)) {
            let matrix = matrix.iter().map(|one| one.to_f64()).collect();
            let made = function(matrix, n).map_err(|what| call.error(format_args!("{what}")))?;
            list.extend(made.into_iter().map(T::from_f64));
        }
        Ok(smallvec![listed(call, &shape, &list)?])
    }, else Err(unsupported(call.name, dtype)))
}

fn transposed(matrix: &[f64], n: usize) -> Vec<f64> {
    let cells = (0..n * n).map(|at| matrix[at % n * n + at / n]);
    cells.collect()
}

/// Returns the inverse of a matrix, by elimination with the largest pivots.
fn inverse(mut matrix: Vec<f64>, n: usize) -> Result<Vec<f64>, &'static str> {
    let mut inverse = vec![0.0; n * n];
    for at in 0..n {
        inverse[at * n + at] = 1.0;
    }
    for column in 0..n {
        let size = |row: &usize| matrix[row * n + column].abs();
        let pivot = (column..n).max_by(|a, b| size(a).total_cmp(&size(b)));
        let pivot = pivot.unwrap_or(column);
        let divisor = matrix[pivot * n + column];
        if divisor == 0.0 {
            return Err("Input is not invertible");
        }
        for both in [&mut matrix, &mut inverse] {
            for at in 0..n {
                both.swap(column * n + at, pivot * n + at);
                both[column * n + at] /= divisor;
            }
        }
        for row in (0..n).filter(|row| *row != column) {
            let factor = matrix[row * n + column];
            for both in [&mut matrix, &mut inverse] {
                for at in 0..n {
                    both[row * n + at] -= factor * both[column * n + at];
                }
            }
        }
    }
    Ok(inverse)
}

/// Returns the Cholesky factor, the lower triangle whose product with its transpose is a matrix; NaNs if there is
/// none.
fn cholesky(matrix: Vec<f64>, n: usize) -> Result<Vec<f64>, &'static str> {
    let mut lower = vec![0.0; n * n];
    for row in 0..n {
        for column in 0..=row {
            let known = (0..column).map(|at| lower[row * n + at] * lower[column * n + at]);
            let rest = matrix[row * n + column] - known.sum::<f64>();
            lower[row * n + column] = match row == column {
                true if rest > 0.0 => rest.sqrt(),
                true => {
                    let below = (0..n * n).map(|at| if at % n > at / n { 0.0 } else { f64::NAN });
                    return Ok(below.collect());
                }
                false => rest / lower[column * n + column],
            };
        }
    }
    Ok(lower)
}
