//! Calls of libraries, calculated here. Sums are made in double precision, and each result is rounded once.

use super::memory::{Access, CommandId, Memory, Trap};
use crate::driver::library::{
    ConvolutionPart, Extents, LibraryCall, Matrix, Number, PoolKind, Reduction, Windows,
};

mod fourier;

/// A command that uses memory.
pub(super) struct Using<'m> {
    pub(super) memory: &'m mut Memory,
    pub(super) id: CommandId,
}

impl Using<'_> {
    /// Reads elements that lie so many elements apart.
    fn read(&mut self, at: u64, n: usize, step: usize, number: Number) -> Result<Vec<f64>, Trap> {
        let len = number.len_bytes();
        if n == 0 {
            return Ok(Vec::new());
        }
        if step == 1 || n == 1 {
            let bytes = self.memory.access(self.id, Access::Read, at, n * len)?;
            return Ok(bytes
                .chunks_exact(len)
                .map(|one| value(one, number))
                .collect());
        }
        let mut all = Vec::with_capacity(n);
        for index in 0..n {
            let at = at + (index * step * len) as u64;
            let bytes = self.memory.access(self.id, Access::Read, at, len)?;
            all.push(value(bytes, number));
        }
        Ok(all)
    }

    fn write(&mut self, at: u64, values: &[f64], step: usize, number: Number) -> Result<(), Trap> {
        let len = number.len_bytes();
        if values.is_empty() {
            return Ok(());
        }
        if step == 1 || values.len() == 1 {
            let bytes = self
                .memory
                .access(self.id, Access::Write, at, values.len() * len)?;
            for (to, one) in bytes.chunks_exact_mut(len).zip(values) {
                put(to, *one, number);
            }
            return Ok(());
        }
        for (index, one) in values.iter().enumerate() {
            let at = at + (index * step * len) as u64;
            put(
                self.memory.access(self.id, Access::Write, at, len)?,
                *one,
                number,
            );
        }
        Ok(())
    }

    /// Reads a matrix, column by column.
    fn matrix(&mut self, a: &Matrix, index: usize, sizes: [usize; 2]) -> Result<Vec<f64>, Trap> {
        let mut all = Vec::with_capacity(sizes[0] * sizes[1]);
        for column in 0..sizes[1] {
            let at = column_at(a, index, column);
            all.extend(self.read(at, sizes[0], 1, a.number)?);
        }
        Ok(all)
    }

    fn set_matrix(
        &mut self,
        a: &Matrix,
        index: usize,
        rows: usize,
        all: &[f64],
    ) -> Result<(), Trap> {
        for (column, values) in all.chunks(rows.max(1)).enumerate() {
            self.write(column_at(a, index, column), values, 1, a.number)?;
        }
        Ok(())
    }

    /// Reads a tensor, row by row.
    fn tensor(&mut self, (extents, at): (&Extents, u64)) -> Result<Vec<f64>, Trap> {
        let row = extents.dims.last().copied().unwrap_or(1);
        let step = extents.strides.last().copied().unwrap_or(1);
        let mut all = Vec::new();
        for offset in rows(extents) {
            let at = at + (offset * extents.number.len_bytes()) as u64;
            all.extend(self.read(at, row, step, extents.number)?);
        }
        Ok(all)
    }

    fn set_tensor(&mut self, (extents, at): (&Extents, u64), all: &[f64]) -> Result<(), Trap> {
        let row = extents.dims.last().copied().unwrap_or(1);
        let step = extents.strides.last().copied().unwrap_or(1);
        for (offset, values) in rows(extents).into_iter().zip(all.chunks(row.max(1))) {
            let at = at + (offset * extents.number.len_bytes()) as u64;
            self.write(at, values, step, extents.number)?;
        }
        Ok(())
    }

    /// Carries out a call.
    pub(super) fn run(&mut self, call: &LibraryCall) -> Result<(), Trap> {
        match call {
            LibraryCall::Scale {
                number,
                n,
                alpha,
                x,
                y,
            } => {
                let mut values = self.read(x.at.0, *n, x.step, *number)?;
                for value in &mut values {
                    *value *= alpha;
                }
                let to = y.unwrap_or(*x);
                if y.is_some() {
                    let before = self.read(to.at.0, *n, to.step, *number)?;
                    for (value, before) in values.iter_mut().zip(before) {
                        *value += before;
                    }
                }
                self.write(to.at.0, &values, to.step, *number)
            }
            LibraryCall::Product { .. } => self.product(call),
            LibraryCall::Triangular { .. } => self.triangular(call),
            LibraryCall::Cholesky {
                n,
                is_upper,
                a,
                info,
                batch,
            } => {
                for index in 0..*batch {
                    let mut all = self.part(a, index, *n, *is_upper)?;
                    let code = cholesky(&mut all, *n, *is_upper);
                    self.set_part(a, index, *n, *is_upper, &all)?;
                    let at = info.0 + 4 * index as u64;
                    self.write(at, &[code as f64], 1, Number::Int(4))?;
                }
                Ok(())
            }
            LibraryCall::Fourier { .. } => self.fourier(call),
            LibraryCall::Pool { .. } => self.pool(call),
            LibraryCall::Convolution { .. } => self.convolution(call),
        }
    }

    fn product(&mut self, call: &LibraryCall) -> Result<(), Trap> {
        let LibraryCall::Product {
            sizes: [m, n, k],
            transposed,
            factors: [alpha, beta],
            matrices: [a, b, c],
            batch,
        } = call
        else {
            return Ok(());
        };
        let sizes_of = |rows, columns, is_transposed| match is_transposed {
            true => [columns, rows],
            false => [rows, columns],
        };
        for index in 0..*batch {
            let left = self.matrix(a, index, sizes_of(*m, *k, transposed[0]))?;
            let right = self.matrix(b, index, sizes_of(*k, *n, transposed[1]))?;
            // Without a factor for what was there, nobody reads it.
            let mut result = match *beta {
                0.0 => vec![0.0; m * n],
                _ => self.matrix(c, index, [*m, *n])?,
            };
            for column in 0..*n {
                for row in 0..*m {
                    let mut sum = 0.0;
                    for inner in 0..*k {
                        let one = match transposed[0] {
                            true => left[row * k + inner],
                            false => left[inner * m + row],
                        };
                        let other = match transposed[1] {
                            true => right[inner * n + column],
                            false => right[column * k + inner],
                        };
                        sum += one * other;
                    }
                    let at = column * m + row;
                    result[at] = alpha * sum + beta * result[at];
                }
            }
            self.set_matrix(c, index, *m, &result)?;
        }
        Ok(())
    }

    /// Reads the triangle of a square matrix that counts; zeros stand for the rest.
    fn part(
        &mut self,
        a: &Matrix,
        index: usize,
        n: usize,
        is_upper: bool,
    ) -> Result<Vec<f64>, Trap> {
        let mut all = vec![0.0; n * n];
        for column in 0..n {
            let (first, len) = triangle(n, column, is_upper);
            let at = column_at(a, index, column) + (first * a.number.len_bytes()) as u64;
            let values = self.read(at, len, 1, a.number)?;
            all[column * n + first..][..len].copy_from_slice(&values);
        }
        Ok(all)
    }

    fn set_part(
        &mut self,
        a: &Matrix,
        index: usize,
        n: usize,
        is_upper: bool,
        all: &[f64],
    ) -> Result<(), Trap> {
        for column in 0..n {
            let (first, len) = triangle(n, column, is_upper);
            let at = column_at(a, index, column) + (first * a.number.len_bytes()) as u64;
            self.write(at, &all[column * n + first..][..len], 1, a.number)?;
        }
        Ok(())
    }

    fn triangular(&mut self, call: &LibraryCall) -> Result<(), Trap> {
        let LibraryCall::Triangular {
            sizes: [m, n],
            is_right,
            is_upper,
            is_transposed,
            is_unit,
            alpha,
            a,
            b,
            batch,
        } = call
        else {
            return Ok(());
        };
        let size = if *is_right { *n } else { *m };
        for index in 0..*batch {
            let triangle = self.part(a, index, size, *is_upper)?;
            let mut all = self.matrix(b, index, [*m, *n])?;
            for value in &mut all {
                *value *= alpha;
            }
            // On the right: the same for the transposed of both.
            let is_transposed = *is_transposed != *is_right;
            let at = |row: usize, column: usize| match is_transposed {
                true => triangle[row * size + column],
                false => triangle[column * size + row],
            };
            let is_lower = *is_upper == is_transposed;
            let n_sides = if *is_right { *m } else { *n };
            let place = |side: usize, row: usize| match is_right {
                true => row * m + side,
                false => side * m + row,
            };
            for side in 0..n_sides {
                for step in 0..size {
                    let row = if is_lower { step } else { size - 1 - step };
                    let known = if is_lower { 0..row } else { row + 1..size };
                    let sum: f64 = known
                        .map(|other| at(row, other) * all[place(side, other)])
                        .sum();
                    let value = all[place(side, row)] - sum;
                    all[place(side, row)] = if *is_unit {
                        value
                    } else {
                        value / at(row, row)
                    };
                }
            }
            self.set_matrix(b, index, *m, &all)?;
        }
        Ok(())
    }

    fn pool(&mut self, call: &LibraryCall) -> Result<(), Trap> {
        let LibraryCall::Pool {
            kind,
            keeps_nan,
            window,
            windows,
            factors: [alpha, beta],
            x,
            y,
            gradients,
        } = call
        else {
            return Ok(());
        };
        let image = self.tensor((&x.0, x.1.0))?;
        let given = match gradients {
            Some([given, _]) => Some(self.tensor((&given.0, given.1.0))?),
            None => None,
        };
        let mut result = vec![0.0; image.len().max(y.0.dims.iter().product())];
        let n_places: usize = y.0.dims[2..].iter().product();
        let n_elements: usize = x.0.dims[2..].iter().product();
        let n_images = y.0.dims[0] * y.0.dims[1];
        for place in 0..n_images * n_places {
            let base = place / n_places * n_elements;
            let found = window_at(
                place % n_places,
                &y.0.dims[2..],
                &x.0.dims[2..],
                window,
                windows,
            );
            let inside = found.iter().flatten();
            let count = match kind {
                PoolKind::MeanWithPadding => found.len(),
                _ => found.iter().flatten().count(),
            };
            let best = inside.clone().copied().reduce(|best, at| {
                let (old, new) = (image[base + best], image[base + at]);
                let is_greater = new > old || old.is_nan() && !*keeps_nan && !new.is_nan();
                if is_greater || *keeps_nan && new.is_nan() && !old.is_nan() {
                    at
                } else {
                    best
                }
            });
            match (&given, kind) {
                (None, PoolKind::Max) => {
                    result[place] = best.map_or(f64::NEG_INFINITY, |at| image[base + at]);
                }
                (None, _) => {
                    let sum: f64 = inside.map(|at| image[base + at]).sum();
                    result[place] = sum / count.max(1) as f64;
                }
                (Some(given), PoolKind::Max) => {
                    if let Some(at) = best {
                        result[base + at] += given[place];
                    }
                }
                (Some(given), _) => {
                    for at in inside {
                        result[base + at] += given[place] / count.max(1) as f64;
                    }
                }
            }
        }
        let to = match gradients {
            Some([_, to]) => to,
            None => y,
        };
        let n: usize = to.0.dims.iter().product();
        result.truncate(n);
        let before = match *beta {
            0.0 => vec![0.0; n],
            _ => self.tensor((&to.0, to.1.0))?,
        };
        for (value, before) in result.iter_mut().zip(before) {
            *value = alpha * *value + beta * before;
        }
        self.set_tensor((&to.0, to.1.0), &result)
    }

    fn convolution(&mut self, call: &LibraryCall) -> Result<(), Trap> {
        let LibraryCall::Convolution {
            part,
            is_turned,
            windows,
            x,
            w,
            y,
        } = call
        else {
            return Ok(());
        };
        let (xd, wd, yd) = (&x.0.dims, &w.0.dims, &y.0.dims);
        let zeros = |dims: &[usize]| vec![0.0; dims.iter().product()];
        let (mut image, mut filter, mut result) = (zeros(xd), zeros(wd), zeros(yd));
        if *part != ConvolutionPart::Image {
            image = self.tensor((&x.0, x.1.0))?;
        }
        if *part != ConvolutionPart::Filter {
            filter = self.tensor((&w.0, w.1.0))?;
        }
        if *part != ConvolutionPart::Result {
            result = self.tensor((&y.0, y.1.0))?;
        }
        let n_places: usize = yd[2..].iter().product();
        let n_elements: usize = xd[2..].iter().product();
        let n_window: usize = wd[2..].iter().product();
        let per_group = yd[1] / (xd[1] / wd[1].max(1)).max(1);
        for place in 0..n_places {
            let found = window_at(place, &yd[2..], &xd[2..], &wd[2..], windows);
            for n in 0..yd[0] {
                for channel in 0..yd[1] {
                    let group = channel / per_group.max(1);
                    let at_y = (n * yd[1] + channel) * n_places + place;
                    for inner in 0..wd[1] {
                        let base = (n * xd[1] + group * wd[1] + inner) * n_elements;
                        for (index, at) in found.iter().enumerate() {
                            let Some(at) = at else { continue };
                            let index = if *is_turned {
                                n_window - 1 - index
                            } else {
                                index
                            };
                            let at_w = (channel * wd[1] + inner) * n_window + index;
                            match part {
                                ConvolutionPart::Result => {
                                    result[at_y] += image[base + at] * filter[at_w];
                                }
                                ConvolutionPart::Image => {
                                    image[base + at] += result[at_y] * filter[at_w];
                                }
                                ConvolutionPart::Filter => {
                                    filter[at_w] += result[at_y] * image[base + at];
                                }
                            }
                        }
                    }
                }
            }
        }
        match part {
            ConvolutionPart::Result => self.set_tensor((&y.0, y.1.0), &result),
            ConvolutionPart::Image => self.set_tensor((&x.0, x.1.0), &image),
            ConvolutionPart::Filter => self.set_tensor((&w.0, w.1.0), &filter),
        }
    }
}

fn column_at(a: &Matrix, index: usize, column: usize) -> u64 {
    a.at.0 + ((index * a.stride + column * a.height) * a.number.len_bytes()) as u64
}

/// Returns the first row of a triangle in a column, and how many there are.
fn triangle(n: usize, column: usize, is_upper: bool) -> (usize, usize) {
    match is_upper {
        true => (0, column + 1),
        false => (column, n - column),
    }
}

/// Returns where each row of a tensor begins, in elements.
fn rows(extents: &Extents) -> Vec<usize> {
    let mut all = vec![0];
    let outer = extents.dims.len().saturating_sub(1);
    for (dim, stride) in extents.dims[..outer].iter().zip(&extents.strides) {
        let steps = |begin: usize| (0..*dim).map(move |index| begin + index * stride);
        all = all.into_iter().flat_map(steps).collect();
    }
    all
}

/// Returns the places in an image of one window's elements; `None` for those in the padding.
fn window_at(
    place: usize,
    places: &[usize],
    image: &[usize],
    window: &[usize],
    windows: &Windows,
) -> Vec<Option<usize>> {
    let mut all = vec![Some(0)];
    let mut below: usize = places.iter().product();
    for axis in 0..places.len() {
        below /= places[axis].max(1);
        let begin = place / below.max(1) % places[axis] * windows.step[axis];
        let next = (0..window[axis]).map(|index| {
            let at = begin + index * windows.dilation[axis];
            let at = at.checked_sub(windows.padding[axis])?;
            Some(at).filter(|at| *at < image[axis])
        });
        let next: Vec<Option<usize>> = next.collect();
        let joined = all.into_iter().flat_map(|one: Option<usize>| {
            let size = image[axis];
            next.iter().map(move |at| Some(one? * size + (*at)?))
        });
        all = joined.collect();
    }
    all
}

/// Factorises in place; returns 0, or the number of the first minor that is not positive.
fn cholesky(all: &mut [f64], n: usize, is_upper: bool) -> usize {
    let at = |row: usize, column: usize| match is_upper {
        true => row * n + column,
        false => column * n + row,
    };
    for column in 0..n {
        for row in column..n {
            let sum: f64 = (0..column)
                .map(|inner| all[at(row, inner)] * all[at(column, inner)])
                .sum();
            let value = all[at(row, column)] - sum;
            if row == column {
                if value <= 0.0 || value.is_nan() {
                    return column + 1;
                }
                all[at(row, column)] = value.sqrt();
            } else {
                all[at(row, column)] = value / all[at(column, column)];
            }
        }
    }
    0
}

/// Combines an element with another one, in place.
pub(super) fn combine(one: &mut [u8], other: &[u8], number: Number, reduction: Reduction) {
    if let Number::Int(len) | Number::Unsigned(len) = number {
        let is_signed = matches!(number, Number::Int(_));
        let wide = |bytes: &[u8]| {
            let mut word = [0; 8];
            word[..len].copy_from_slice(bytes);
            let unused = 64 - 8 * len as u32;
            let bits = u64::from_le_bytes(word);
            match is_signed {
                true => i128::from((bits << unused) as i64 >> unused),
                false => i128::from(bits),
            }
        };
        let (a, b) = (wide(one), wide(other));
        let result = match reduction {
            Reduction::Sum => a + b,
            Reduction::Product => a.wrapping_mul(b),
            Reduction::Max => a.max(b),
            Reduction::Min => a.min(b),
        };
        one.copy_from_slice(&result.to_le_bytes()[..len]);
        return;
    }
    let (a, b) = (value(one, number), value(other, number));
    let result = match reduction {
        Reduction::Sum => a + b,
        Reduction::Product => a * b,
        Reduction::Max => a.max(b),
        Reduction::Min => a.min(b),
    };
    put(one, result, number);
}

fn value(bytes: &[u8], number: Number) -> f64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(word);
    match number {
        Number::F16 => half::f16::from_bits(bits as u16).to_f64(),
        Number::F32 => f64::from(f32::from_bits(bits as u32)),
        Number::F64 => f64::from_bits(bits),
        Number::Int(len) => {
            let unused = 64 - 8 * len as u32;
            ((bits << unused) as i64 >> unused) as f64
        }
        Number::Unsigned(_) => bits as f64,
    }
}

fn put(to: &mut [u8], value: f64, number: Number) {
    let bits = match number {
        Number::F16 => u64::from(half::f16::from_f64(value).to_bits()),
        Number::F32 => u64::from((value as f32).to_bits()),
        Number::F64 => value.to_bits(),
        Number::Int(_) => value as i64 as u64,
        Number::Unsigned(_) => value as u64,
    };
    to.copy_from_slice(&bits.to_le_bytes()[..to.len()]);
}
