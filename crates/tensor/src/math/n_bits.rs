//! Matrices whose elements are integers of a few bits, packed into bytes, with a scale and a zero point for each block.
//!
//! A column lies as a row of bytes, the first elements in the low bits. A product takes one column after the other: it is
//! made `f32`, and multiplied by all rows of the left side. So no more than a column is unpacked at a time.
//!
//! A single row, as a decoder has in each step, is multiplied by the bytes as they lie (`Planes`): a byte of several
//! elements is read once, and no column is written down.

use std::sync::Arc;

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::number::Real;
use super::{parallel, vectorized};
use crate::{DenseHostTensor, Element};

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

/// The elements of a row that are multiplied by the first elements of bytes, those by the second, and so on: `N` lists, of
/// as many elements as a column has bytes.
struct Planes<const N: usize>([Vec<f32>; N]);

impl<const N: usize> Planes<N> {
    fn new(row: &[f32], n_bytes: usize) -> Planes<N> {
        let plane = |index| {
            let mut plane: Vec<f32> = row.iter().skip(index).step_by(N).copied().collect();
            // The last block may have elements that the row lacks.
            plane.resize(n_bytes, 0.0);
            plane
        };
        Planes(std::array::from_fn(plane))
    }

    /// The product of the row and a column.
    #[inline(always)]
    fn product(&self, columns: &PackedColumns, codes: &[u8], column: usize) -> f32 {
        let (bits, mask) = (8 / N, u8::MAX >> (8 - 8 / N));
        let n_bytes = columns.block_bytes();
        let codes = columns.codes_of(codes, column).chunks_exact(n_bytes);
        let mut sums = [0.0; LANES];
        for (block, codes) in codes.enumerate() {
            let (scale, zero) = columns.scale_and_zero(column, block);
            let mut own = [0.0; LANES];
            for (index, codes) in codes.chunks_exact(LANES).enumerate() {
                let first = block * n_bytes + index * LANES;
                for (part, plane) in self.0.iter().enumerate() {
                    let plane = &plane[first..][..LANES];
                    for lane in 0..LANES {
                        let code = codes[lane] >> (bits * part) & mask;
                        own[lane] += plane[lane] * (f32::from(code) - zero);
                    }
                }
            }
            for (sum, own) in sums.iter_mut().zip(own) {
                *sum += own * scale;
            }
        }
        sums.iter().sum()
    }

    /// The products of the row and columns from the `first` on.
    fn products<T: Real>(
        &self,
        columns: &PackedColumns,
        bias: Option<&[f32]>,
        first: usize,
        out: &mut [T],
    ) -> Result<(), Error> {
        let reading = columns.codes.read()?;
        let codes = reading.elements::<u8>()?;
        vectorized(
            #[inline(always)]
            || {
                for (column, out) in (first..).zip(out) {
                    let bias = bias.map_or(0.0, |bias| bias[column]);
                    *out = T::from_f64((self.product(columns, codes, column) + bias).into());
                }
            },
        );
        Ok(())
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
    if n_rows == 1 && columns.groups.is_none() && columns.block_bytes().is_multiple_of(LANES) {
        return match columns.bits {
            2 => row_product_into::<T, 4>(execution, &rows, columns, bias, output),
            4 => row_product_into::<T, 2>(execution, &rows, columns, bias, output),
            _ => row_product_into::<T, 1>(execution, &rows, columns, bias, output),
        };
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

/// Multiplies one row by packed columns, of which each byte has `N` elements.
fn row_product_into<T: Element + Real, const N: usize>(
    execution: &ExecutionContext,
    row: &[f32],
    columns: Arc<PackedColumns>,
    bias: Option<Vec<f32>>,
    output: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let planes = Planes::<N>::new(row, columns.n_blocks() * columns.block_bytes());
    // A vector of elements is multiplied at a time.
    let chunk = parallel::chunk_len(columns.n_rows / 4, 1);
    parallel::fill(execution, output, chunk, move |first, part: &mut [T]| {
        planes.products(&columns, bias.as_deref(), first, part)
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

    /// Seeded columns of 70 elements in blocks of 32.
    fn columns(bits: u8, zeros: bool) -> PackedColumns {
        let (n_rows, n_columns, block) = (70, 5, 64);
        let n_blocks = n_columns * 2;
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

    #[test]
    fn products_of_packed_bytes_are_those_of_unpacked_columns() {
        let row: [f32; 70] = std::array::from_fn(|index| index as f32 - 30.0);
        for (bits, zeros) in [(2, true), (4, false), (4, true), (8, false)] {
            let columns = columns(bits, zeros);
            let n_bytes = columns.n_blocks() * columns.block_bytes();
            let reading = columns.codes.read().unwrap();
            let codes = reading.elements::<u8>().unwrap();
            for column in 0..columns.n_columns {
                let found = match bits {
                    2 => Planes::<4>::new(&row, n_bytes).product(&columns, codes, column),
                    4 => Planes::<2>::new(&row, n_bytes).product(&columns, codes, column),
                    _ => Planes::<1>::new(&row, n_bytes).product(&columns, codes, column),
                };
                let mut unpacked = [0.0; 70];
                columns.column(codes, column, &mut unpacked);
                let wanted = dot(&row, &unpacked);
                let most = 1e-5 * dot(&row.map(f32::abs), &unpacked.map(f32::abs));
                assert!(
                    (found - wanted).abs() <= most,
                    "{bits}: {found} is not {wanted}"
                );
            }
        }
    }

    #[test]
    fn sums_are_of_all_elements() {
        let list: Vec<f32> = (0_u8..37).map(f32::from).collect();
        assert_eq!(dot(&list, &[2.0; 37]), 36.0 * 37.0);
    }
}
