//! Kernels of the library rows of StableHLO.

mod places;

use smallvec::smallvec;
use tfrt_host::{DType, Error};
use tfrt_tensor::math::Family;
use tfrt_tensor::math::number::{Number, Real};
use tfrt_tensor::op::{Outputs, TensorCall, TensorKernel, unsupported};
use tfrt_tensor::{Complex, DenseHostTensor, Element, with_floating};

use super::rearrange::listed;
use super::segments::indices;

pub(super) const KERNELS: &[TensorKernel] = &[
    TensorKernel::new("stablehlo.complex", joined),
    TensorKernel::new("stablehlo.imag", |call| {
        part(call, |z| z.imaginary, |z| z.imaginary)
    }),
    TensorKernel::new("stablehlo.lu", factored).of(Family::Floats),
    TensorKernel::new("stablehlo.places", places::places),
    TensorKernel::new("stablehlo.real", |call| part(call, |z| z.real, |z| z.real)),
    TensorKernel::new("stablehlo.triangular_solve", solved),
];

fn part(
    call: &mut TensorCall<'_>,
    single: fn(&Complex<f32>) -> f32,
    double: fn(&Complex<f64>) -> f64,
) -> Result<Outputs, Error> {
    let x = call.dense(0)?;
    let (dtype, shape) = (x.dtype(), x.shape().to_dims());
    let reading = x.read()?;
    Ok(smallvec![match dtype {
        DType::Complex64 => {
            let all: Vec<f32> = reading.elements()?.iter().map(single).collect();
            listed(call, &shape, &all)?
        }
        DType::Complex128 => {
            let all: Vec<f64> = reading.elements()?.iter().map(double).collect();
            listed(call, &shape, &all)?
        }
        other => return Err(unsupported(call.name, other)),
    }])
}

fn joined(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    fn pairs<T: Element>(
        real: &DenseHostTensor,
        imaginary: &DenseHostTensor,
    ) -> Result<Vec<Complex<T>>, Error> {
        let (real, imaginary) = (real.read()?, imaginary.read()?);
        let pairs = real.elements::<T>()?.iter().zip(imaginary.elements::<T>()?);
        Ok(pairs
            .map(|(re, im)| Complex {
                real: *re,
                imaginary: *im,
            })
            .collect())
    }
    let (real, imaginary) = (call.dense(0)?, call.dense(1)?);
    let shape = real.shape().to_dims();
    if imaginary.shape().to_dims() != shape || imaginary.dtype() != real.dtype() {
        return Err(call.error(format_args!(
            "expected two tensors of one type and shape, found {} and {}",
            real.metadata(),
            imaginary.metadata()
        )));
    }
    Ok(smallvec![match real.dtype() {
        DType::F32 => listed(call, &shape, &pairs::<f32>(real, imaginary)?)?,
        DType::F64 => listed(call, &shape, &pairs::<f64>(real, imaginary)?)?,
        other => return Err(unsupported(call.name, other)),
    }])
}

/// Returns the extents of a batch of matrices: the batch, rows, columns.
fn matrices(
    call: &TensorCall<'_>,
    x: &DenseHostTensor,
) -> Result<(Vec<usize>, usize, usize), Error> {
    let shape = x.shape().to_dims();
    match shape[..] {
        [ref batch @ .., rows, columns] => Ok((batch.to_vec(), rows, columns)),
        _ => Err(call.error(format_args!(
            "expected matrices, found a tensor of extents {shape:?}"
        ))),
    }
}

fn solved(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let (a, b) = (call.dense(0)?, call.dense(1)?);
    let (batch, n, other) = matrices(call, a)?;
    let (b_batch, rows, columns) = matrices(call, b)?;
    let left = call.attrs.flag("left");
    let fits = n == other && batch == b_batch && n == if left { rows } else { columns };
    if !fits || a.dtype() != b.dtype() {
        let (a, b) = (a.metadata(), b.metadata());
        return Err(call.error(format_args!(
            "expected square matrices that fit others, found {a} and {b}"
        )));
    }
    let systems = Systems {
        n,
        columns,
        n_right: if left { columns } else { rows },
        left,
        lower: call.attrs.flag("lower"),
        transpose: call.attrs.flag("transpose"),
        unit: call.attrs.flag("unit"),
    };
    let (dtype, shape) = (a.dtype(), b.shape().to_dims());
    let (a, b) = (a.read()?, b.read()?);
    let sizes = [(n * n).max(1), (rows * columns).max(1)];
    Ok(smallvec![match dtype {
        DType::Complex64 => {
            let wide = |z: &Complex<f32>| Complex {
                real: f64::from(z.real),
                imaginary: f64::from(z.imaginary),
            };
            #[expect(clippy::cast_possible_truncation, reason = "results are rounded")]
            let narrow = |z: Complex<f64>| Complex {
                real: z.real as f32,
                imaginary: z.imaginary as f32,
            };
            let all = systems.solved([a.elements()?, b.elements()?], sizes, wide, narrow);
            listed(call, &shape, &all)?
        }
        DType::Complex128 => {
            let same = |z: &Complex<f64>| *z;
            let all = systems.solved([a.elements()?, b.elements()?], sizes, same, |z| z);
            listed(call, &shape, &all)?
        }
        _ => with_floating!(dtype, T => {
            let operands = [a.elements::<T>()?, b.elements::<T>()?];
            let all = systems.solved(operands, sizes, |x: &T| x.to_f64(), T::from_f64);
            listed(call, &shape, &all)?
        }, else return Err(unsupported(call.name, dtype))),
    }])
}

/// Systems of equations whose matrices are triangular.
struct Systems {
    /// The number of equations of each.
    n: usize,
    /// The number of columns of each right side.
    columns: usize,
    /// The number of right sides of each matrix.
    n_right: usize,
    left: bool,
    lower: bool,
    transpose: bool,
    unit: bool,
}

impl Systems {
    /// Solves systems, whose matrices and right sides have so many elements each. Numbers are calculated as wider ones.
    fn solved<T, W: Number>(
        &self,
        [a, b]: [&[T]; 2],
        [n_matrix, n_sides]: [usize; 2],
        wide: impl Fn(&T) -> W,
        narrow: impl Fn(W) -> T,
    ) -> Vec<T> {
        let mut all = Vec::with_capacity(b.len());
        for (a, b) in a.chunks(n_matrix).zip(b.chunks(n_sides)) {
            let a: Vec<W> = a.iter().map(&wide).collect();
            let mut x: Vec<W> = b.iter().map(&wide).collect();
            self.solve(&a, &mut x);
            all.extend(x.into_iter().map(&narrow));
        }
        all
    }

    fn solve<W: Number>(&self, a: &[W], x: &mut [W]) {
        let n = self.n;
        // X A = B is the transposed of A' X' = B'. An element of what stands on the left:
        let flips = self.transpose == self.left;
        let cell = |row: usize, column: usize| {
            a[if flips {
                column * n + row
            } else {
                row * n + column
            }]
        };
        let place = |row: usize, column: usize| match self.left {
            true => row * self.columns + column,
            false => column * self.columns + row,
        };
        let is_lower = self.lower != flips;
        for column in 0..self.n_right {
            for step in 0..n {
                let row = if is_lower { step } else { n - 1 - step };
                let known = if is_lower { 0..row } else { row + 1..n };
                let mut rest = x[place(row, column)];
                for at in known {
                    rest = rest.minus(cell(row, at).times(x[place(at, column)]));
                }
                x[place(row, column)] = match self.unit {
                    true => rest,
                    false => rest.over(cell(row, row)),
                };
            }
        }
    }
}

fn factored(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let x = call.dense(0)?;
    let (batch, rows, columns) = matrices(call, x)?;
    let least = rows.min(columns);
    let (dtype, shape) = (x.dtype(), x.shape().to_dims());
    let (mut pivots, mut permutations) = (Vec::new(), Vec::new());
    let factors = with_floating!(dtype, T => {
        let reading = x.read()?;
        let mut all: Vec<T> = Vec::with_capacity(x.n_elements());
        for matrix in reading.elements::<T>()?.chunks((rows * columns).max(1)) {
            let mut matrix: Vec<f64> = matrix.iter().map(|one| one.to_f64()).collect();
            let mut order: Vec<usize> = (0..rows).collect();
            for column in 0..least {
                let size = |row: &usize| matrix[row * columns + column].abs();
                let mut pivot = column;
                for row in column + 1..rows {
                    // The first of the largest.
                    if size(&row) > size(&pivot) {
                        pivot = row;
                    }
                }
                pivots.push(pivot);
                order.swap(column, pivot);
                for at in 0..columns {
                    matrix.swap(column * columns + at, pivot * columns + at);
                }
                let divisor = matrix[column * columns + column];
                for row in column + 1..rows {
                    let factor = matrix[row * columns + column] / divisor;
                    // LAPACK leaves a column of zeros as it is.
                    let factor = if divisor == 0.0 { 0.0 } else { factor };
                    matrix[row * columns + column] = factor;
                    for at in column + 1..columns {
                        matrix[row * columns + at] -= factor * matrix[column * columns + at];
                    }
                }
            }
            permutations.extend(order);
            all.extend(matrix.into_iter().map(T::from_f64));
        }
        listed(call, &shape, &all)?
    }, else return Err(unsupported(call.name, dtype)));
    let with = |last: usize| -> Vec<usize> { batch.iter().copied().chain([last]).collect() };
    Ok(smallvec![
        factors,
        indices(call, DType::I32, &with(least), &pivots)?,
        indices(call, DType::I32, &with(rows), &permutations)?,
    ])
}
