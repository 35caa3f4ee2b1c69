//! Fourier transforms, by their definition: each axis after the other.

use std::f64::consts::TAU;

use super::{Trap, Using};
use crate::driver::library::LibraryCall;

impl Using<'_> {
    pub(super) fn fourier(&mut self, call: &LibraryCall) -> Result<(), Trap> {
        let LibraryCall::Fourier {
            number,
            is_complex,
            is_inverse,
            dims,
            from_strides,
            to_strides,
            batch,
            from,
            to,
        } = call
        else {
            return Ok(());
        };
        let len = number.len_bytes();
        let last = dims.len() - 1;
        // Of what is real on one side, half of the other is enough.
        let half = |is_half: bool| {
            let mut dims = dims.clone();
            if is_half {
                dims[last] = dims[last] / 2 + 1;
            }
            dims
        };
        let from_dims = half(is_complex[0] && !is_complex[1]);
        let to_dims = half(is_complex[1] && !is_complex[0]);
        for index in 0..*batch {
            let mut all = vec![(0.0, 0.0); dims.iter().product()];
            for place in places(&from_dims) {
                let at = index * from_strides[0] + offset(&place, &from_strides[1..]);
                let n = 1 + usize::from(is_complex[0]);
                let parts = self.read(from.0 + (at * n * len) as u64, n, 1, *number)?;
                let value = (parts[0], parts.get(1).copied().unwrap_or(0.0));
                all[flat(&place, dims)] = value;
                // The other half is its mirror image.
                if is_complex[0] && !is_complex[1] {
                    let mirror: Vec<usize> = place
                        .iter()
                        .zip(dims)
                        .map(|(at, dim)| (dim - at) % dim)
                        .collect();
                    if mirror[last] >= from_dims[last] {
                        all[flat(&mirror, dims)] = (value.0, -value.1);
                    }
                }
            }
            for axis in 0..dims.len() {
                transform(&mut all, dims, axis, *is_inverse);
            }
            for place in places(&to_dims) {
                let at = index * to_strides[0] + offset(&place, &to_strides[1..]);
                let (real, imaginary) = all[flat(&place, dims)];
                let n = 1 + usize::from(is_complex[1]);
                let parts = [real, imaginary];
                self.write(to.0 + (at * n * len) as u64, &parts[..n], 1, *number)?;
            }
        }
        Ok(())
    }
}

/// Returns all places of a grid, row by row.
fn places(dims: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for dim in dims {
        let longer = |place: Vec<usize>| {
            (0..*dim).map(move |at| place.iter().copied().chain([at]).collect())
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    all
}

fn offset(place: &[usize], strides: &[usize]) -> usize {
    place
        .iter()
        .zip(strides)
        .map(|(at, stride)| at * stride)
        .sum()
}

fn flat(place: &[usize], dims: &[usize]) -> usize {
    place
        .iter()
        .zip(dims)
        .fold(0, |sum, (at, dim)| sum * dim + at)
}

fn transform(all: &mut [(f64, f64)], dims: &[usize], axis: usize, is_inverse: bool) {
    let n = dims[axis];
    let step: usize = dims[axis + 1..].iter().product();
    let sign = if is_inverse { 1.0 } else { -1.0 };
    let begins: Vec<usize> = (0..all.len())
        .filter(|at| (at / step).is_multiple_of(n))
        .collect();
    for begin in begins {
        let line: Vec<(f64, f64)> = (0..n).map(|at| all[begin + at * step]).collect();
        for to in 0..n {
            let mut sum = (0.0, 0.0);
            for (from, (real, imaginary)) in line.iter().enumerate() {
                let (sine, cosine) = angle(from * to % n, n);
                let sine = sign * sine;
                sum.0 += real * cosine - imaginary * sine;
                sum.1 += real * sine + imaginary * cosine;
            }
            all[begin + to * step] = sum;
        }
    }
}

/// Returns sine and cosine of a part of a circle; those of quarters are exact.
fn angle(part: usize, n: usize) -> (f64, f64) {
    match 4 * part {
        0 => (0.0, 1.0),
        four if four == n => (1.0, 0.0),
        four if four == 2 * n => (0.0, -1.0),
        four if four == 3 * n => (-1.0, 0.0),
        _ => (TAU * part as f64 / n as f64).sin_cos(),
    }
}
