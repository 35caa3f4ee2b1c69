//! Matrices whose elements are integers of a few bits, packed into bytes, with a scale and a zero point for each block.
//!
//! A column lies as a row of bytes, the first elements in the low bits. Rows are multiplied by the bytes as they lie
//! (`units.rs`): no column is unpacked, and a row gets the same bits however many rows there are. Columns whose rows have
//! scales in any order, or whose blocks are no power of two of words, are made `f32` one after the other.

use std::sync::Arc;

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::number::Real;
use super::{parallel, vectorized};
use crate::{DenseHostTensor, Element};

mod units;

use units::{PlanedRows, UnitColumns};

/// The sums that are made side by side.
const LANES: usize = 16;

/// The columns of a matrix, packed.
#[derive(Debug)]
pub struct PackedColumns {
    /// The bytes: for each column its blocks.
    pub codes: DenseHostTensor,
    /// How many elements a column has.
    pub n_rows: usize,
    /// How many columns there are.
    pub n_columns: usize,
    /// The bits of an element: 2, 4 or 8.
    pub bits: u8,
    /// The elements of a block.
    pub block: usize,
    /// Factors, for each column those of its blocks.
    pub scales: Vec<f32>,
    /// The zero points, which are subtracted from elements: for each column those of its blocks. Without any, they are the
    /// middle of the range.
    pub zeros: Option<Vec<f32>>,
    /// For each row the block whose scale and zero point it has, if that is not the one where it lies.
    pub groups: Option<Vec<usize>>,
}

impl PackedColumns {
    /// Returns how many blocks a column has.
    pub fn n_blocks(&self) -> usize {
        self.n_rows.div_ceil(self.block.max(1))
    }

    /// Returns how many bytes a block has.
    pub fn block_bytes(&self) -> usize {
        self.block.saturating_mul(self.bits.into()) / 8
    }

    /// Whether all lists are as long as they are to be.
    fn fits(&self) -> bool {
        let n_blocks = self.n_blocks();
        let n_all = self.n_columns.checked_mul(n_blocks);
        let n_bytes = n_all.and_then(|all| all.checked_mul(self.block_bytes()));
        matches!(self.bits, 2 | 4 | 8)
            && self.block > 0
            && n_bytes == Some(self.codes.n_elements())
            && n_all == Some(self.scales.len())
            && self
                .zeros
                .as_ref()
                .is_none_or(|zeros| n_all == Some(zeros.len()))
            && self.groups.as_ref().is_none_or(|groups| {
                groups.len() >= self.n_rows && groups.iter().all(|group| *group < n_blocks)
            })
    }

    /// Returns the factor and the zero point of a block of a column.
    #[inline(always)]
    fn scale_and_zero(&self, column: usize, block: usize) -> (f32, f32) {
        let index = column * self.n_blocks() + block;
        let middle = f32::from(1_u8 << (self.bits - 1));
        let zero = self.zeros.as_ref().map_or(middle, |zeros| zeros[index]);
        (self.scales[index], zero)
    }

    /// Returns the columns for products by units, if they are laid out for these.
    fn units<'a>(&'a self, codes: &'a [u8]) -> Option<UnitColumns<'a>> {
        let block_words = self.block_bytes() / 4;
        let fits = self.block_bytes().is_multiple_of(4) && block_words.is_power_of_two();
        (fits && self.groups.is_none()).then(|| UnitColumns {
            codes,
            bits: self.bits.into(),
            scales: &self.scales,
            zeros: self.zeros.as_deref(),
            block_words,
            n_blocks: self.n_blocks(),
        })
    }

    /// Returns the bytes of a column.
    fn codes_of<'a>(&self, codes: &'a [u8], column: usize) -> &'a [u8] {
        let n_bytes = self.n_blocks() * self.block_bytes();
        &codes[column * n_bytes..][..n_bytes]
    }

    /// Unpacks a column.
    #[inline(always)]
    fn column(&self, codes: &[u8], column: usize, out: &mut [f32]) {
        let codes = self
            .codes_of(codes, column)
            .chunks_exact(self.block_bytes());
        let blocks = codes.zip(out.chunks_mut(self.block));
        for (codes, out) in blocks {
            match self.bits {
                2 => unpack::<4>(codes, out),
                4 => unpack::<2>(codes, out),
                _ => unpack::<1>(codes, out),
            }
        }
        match &self.groups {
            None => {
                for (block, out) in out.chunks_mut(self.block).enumerate() {
                    let (scale, zero) = self.scale_and_zero(column, block);
                    out.iter_mut().for_each(|one| *one = (*one - zero) * scale);
                }
            }
            Some(groups) => {
                for (one, group) in out.iter_mut().zip(groups) {
                    let (scale, zero) = self.scale_and_zero(column, *group);
                    *one = (*one - zero) * scale;
                }
            }
        }
    }
}

/// Unpacks bytes of `N` elements each.
#[inline(always)]
fn unpack<const N: usize>(codes: &[u8], out: &mut [f32]) {
    let (bits, mask) = (8 / N, u8::MAX >> (8 - 8 / N));
    for (code, out) in codes.iter().zip(out.chunks_mut(N)) {
        for (index, out) in out.iter_mut().enumerate() {
            *out = f32::from(code >> (bits * index) & mask);
        }
    }
}

/// Multiplies rows by packed columns, into a tensor that has a row for each column: the product, transposed.
///
/// # Errors
///
/// `InvalidArgument` if the parts of the matrix or the rows are not as many as they are to be, and those of
/// [`parallel::fill`].
pub fn packed_product_into<T: Element + Real>(
    execution: &ExecutionContext,
    rows: Vec<f32>,
    columns: Arc<PackedColumns>,
    bias: Option<Vec<f32>>,
    output: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let (n, n_columns) = (columns.n_rows, columns.n_columns);
    let n_rows = rows.len().checked_div(n).unwrap_or(0);
    let fits = columns.fits()
        && n_rows.checked_mul(n) == Some(rows.len())
        && n_rows.checked_mul(n_columns) == Some(output.n_elements())
        && bias.as_ref().is_none_or(|bias| bias.len() == n_columns);
    if !fits {
        let message = "rows, packed columns and the result don't fit together";
        return Err(Error::invalid_argument(message));
    }
    let reading = columns.codes.read()?;
    let planes = columns
        .units(reading.elements()?)
        .map(|units| PlanedRows::new(&rows, n, &units));
    drop(reading);
    if let Some(planes) = planes {
        return by_units::<T>(execution, planes, columns, bias, output);
    }
    // All products of a column are made at once.
    let chunk = parallel::chunk_len(n.saturating_mul(2), n_rows);
    parallel::fill(execution, output, chunk, move |first, part: &mut [T]| {
        let reading = columns.codes.read()?;
        let codes = reading.elements::<u8>()?;
        let mut column = vec![0.0; n];
        vectorized(
            #[inline(always)]
            || {
                for (index, part) in part.chunks_mut(n_rows).enumerate() {
                    let number = first / n_rows + index;
                    columns.column(codes, number, &mut column);
                    let bias = bias.as_ref().map_or(0.0, |bias| bias[number]);
                    for (row, out) in rows.chunks_exact(n).zip(part) {
                        *out = T::from_f64((dot(row, &column) + bias).into());
                    }
                }
            },
        );
        Ok(())
    })
}

/// Multiplies rows by the columns' bytes as they lie.
fn by_units<T: Element + Real>(
    execution: &ExecutionContext,
    rows: PlanedRows,
    columns: Arc<PackedColumns>,
    bias: Option<Vec<f32>>,
    output: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let n_rows = rows.len().max(1);
    // Eight elements are unpacked and multiplied by a row in about four steps.
    let chunk = parallel::chunk_len(columns.n_rows / 4, n_rows);
    parallel::fill(execution, output, chunk, move |first, part: &mut [T]| {
        let reading = columns.codes.read()?;
        let Some(units) = columns.units(reading.elements()?) else {
            return Err(Error::internal("columns are laid out in units no more"));
        };
        let mut products = vec![0.0; part.len()];
        units.products(&rows, first / n_rows, &mut products);
        for (index, (out, product)) in part.iter_mut().zip(products).enumerate() {
            let column = (first + index) / n_rows;
            let bias = bias.as_ref().map_or(0.0, |bias| bias[column]);
            *out = T::from_f64((product + bias).into());
        }
        Ok(())
    })
}

/// The sum of products, in sixteen sums side by side.
#[inline(always)]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = a.remainder().iter().zip(b.remainder());
    let rest: f32 = rest.map(|(a, b)| a * b).sum();
    let mut sums = [0.0; LANES];
    for (a, b) in a.zip(b) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use tfrt_host::kernel::KernelRegistry;
    use tfrt_host::{HostAllocator, HostContext};

    use super::*;

    fn allocator() -> Arc<dyn HostAllocator> {
        let host = HostContext::builder(KernelRegistry::new()).build();
        host.allocator().clone()
    }

    #[test]
    fn elements_begin_in_the_low_bits() {
        let mut out = [0.0; 4];
        unpack::<4>(&[0b11_10_01_00], &mut out);
        assert_eq!(out, [0.0, 1.0, 2.0, 3.0]);
        unpack::<2>(&[0x21, 0xf3], &mut out);
        assert_eq!(out, [1.0, 2.0, 3.0, 15.0]);
        unpack::<1>(&[7, 255, 0, 9], &mut out);
        assert_eq!(out, [7.0, 255.0, 0.0, 9.0]);
    }

    /// Seeded columns of as many elements, in blocks.
    fn columns(bits: u8, block: usize, zeros: bool, n_rows: usize) -> PackedColumns {
        let n_columns = 5;
        let n_blocks = n_columns * n_rows.div_ceil(block);
        let n_bytes = n_blocks * block * usize::from(bits) / 8;
        let codes: Vec<u8> = (0..n_bytes).map(|index| (index * 37 % 251) as u8).collect();
        let number = |index: usize| index as f32 * 0.125 + 0.5;
        PackedColumns {
            codes: DenseHostTensor::from_slice(&allocator(), &[n_bytes], &codes).unwrap(),
            n_rows,
            n_columns,
            bits,
            block,
            scales: (0..n_blocks).map(number).collect(),
            zeros: zeros.then(|| (0..n_blocks).map(number).collect()),
            groups: None,
        }
    }

    /// The products of rows and all columns by units, for each column those of all rows.
    fn by_units(rows: &[f32], columns: &PackedColumns) -> Vec<f32> {
        let reading = columns.codes.read().unwrap();
        let units = columns.units(reading.elements().unwrap()).unwrap();
        let rows = PlanedRows::new(rows, columns.n_rows, &units);
        let mut found = vec![0.0; rows.len() * columns.n_columns];
        units.products(&rows, 0, &mut found);
        found
    }

    fn row(len: usize, seed: usize) -> Vec<f32> {
        let number = |index: usize| ((index * 7919 + seed * 31) % 1009) as f32 / 100.0 - 5.0;
        (0..len).map(number).collect()
    }

    #[test]
    fn products_of_packed_bytes_are_those_of_unpacked_columns() {
        for (bits, zeros) in [
            (2, false),
            (2, true),
            (4, false),
            (4, true),
            (8, false),
            (8, true),
        ] {
            for (block, n_rows) in [
                (16, 70),
                (32, 33),
                (32, 1000),
                (64, 70),
                (128, 500),
                (512, 70),
            ] {
                let columns = columns(bits, block, zeros, n_rows);
                let row = row(n_rows, 0);
                let found = by_units(&row, &columns);
                let reading = columns.codes.read().unwrap();
                let codes = reading.elements::<u8>().unwrap();
                for (column, found) in found.into_iter().enumerate() {
                    let mut unpacked = vec![0.0; n_rows];
                    columns.column(codes, column, &mut unpacked);
                    let each = || row.iter().zip(&unpacked);
                    let wanted: f64 = each().map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                    let most: f64 = each().map(|(a, b)| f64::from((a * b).abs())).sum();
                    assert!(
                        (f64::from(found) - wanted).abs() <= 1e-6 * most,
                        "{bits} bits, blocks of {block}: {found} is not {wanted}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_row_gets_the_same_bits_among_others() {
        for (bits, zeros) in [(2, false), (4, false), (4, true), (8, false)] {
            let columns = columns(bits, 32, zeros, 200);
            let rows: Vec<f32> = (0..7).flat_map(|seed| row(200, seed)).collect();
            let alone: Vec<Vec<f32>> = rows
                .chunks(200)
                .map(|row| by_units(row, &columns))
                .collect();
            for n in 1..=7 {
                let found = by_units(&rows[..n * 200], &columns);
                for (index, found) in found.into_iter().enumerate() {
                    let wanted = alone[index % n][index / n];
                    assert_eq!(found.to_bits(), wanted.to_bits(), "{bits} bits, {n} rows");
                }
            }
        }
    }

    #[test]
    fn sums_are_of_all_elements() {
        let list: Vec<f32> = (0_u8..37).map(f32::from).collect();
        assert_eq!(dot(&list, &[2.0; 37]), 36.0 * 37.0);
    }
}
