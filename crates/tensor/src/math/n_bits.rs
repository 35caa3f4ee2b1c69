//! Matrices whose elements are integers of a few bits, packed into bytes, with a scale and a zero point for each block.
//!
//! A column lies as a row of bytes, the first elements in the low bits. A product takes one column after the other: it is
//! made `f32`, and multiplied by all rows of the left side. So no more than a column is unpacked at a time.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::number::Real;
use super::parallel;
use crate::{DenseHostTensor, Element};

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
    /// The zero points, which are subtracted from elements: for each column those of its blocks.
    pub zeros: Vec<f32>,
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
            && n_all == Some(self.zeros.len())
            && self.groups.as_ref().is_none_or(|groups| {
                groups.len() >= self.n_rows && groups.iter().all(|group| *group < n_blocks)
            })
    }

    /// Unpacks a column.
    fn column(&self, codes: &[u8], column: usize, out: &mut [f32]) {
        let (n_blocks, n_bytes) = (self.n_blocks(), self.block_bytes());
        let scales = &self.scales[column * n_blocks..][..n_blocks];
        let zeros = &self.zeros[column * n_blocks..][..n_blocks];
        let codes = &codes[column * n_blocks * n_bytes..][..n_blocks * n_bytes];
        let blocks = codes.chunks_exact(n_bytes).zip(out.chunks_mut(self.block));
        for (codes, out) in blocks {
            match self.bits {
                2 => unpack::<4>(codes, out),
                4 => unpack::<2>(codes, out),
                _ => unpack::<1>(codes, out),
            }
        }
        match &self.groups {
            None => {
                for ((out, scale), zero) in out.chunks_mut(self.block).zip(scales).zip(zeros) {
                    out.iter_mut().for_each(|one| *one = (*one - zero) * scale);
                }
            }
            Some(groups) => {
                for (one, group) in out.iter_mut().zip(groups) {
                    *one = (*one - zeros[*group]) * scales[*group];
                }
            }
        }
    }
}

/// Unpacks bytes of `N` elements each.
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
    columns: PackedColumns,
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
    // All products of a column are made at once.
    let chunk = parallel::chunk_len(n.saturating_mul(2), n_rows);
    parallel::fill(execution, output, chunk, move |first, part: &mut [T]| {
        let reading = columns.codes.read()?;
        let codes = reading.elements::<u8>()?;
        let mut column = vec![0.0; n];
        for (index, part) in part.chunks_mut(n_rows).enumerate() {
            let number = first / n_rows + index;
            columns.column(codes, number, &mut column);
            let bias = bias.as_ref().map_or(0.0, |bias| bias[number]);
            for (row, out) in rows.chunks_exact(n).zip(part) {
                *out = T::from_f64((dot(row, &column) + bias).into());
            }
        }
        Ok(())
    })
}

/// The sum of products, in sixteen sums side by side.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 16;
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
    use super::*;

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

    #[test]
    fn sums_are_of_all_elements() {
        let list: Vec<f32> = (0_u8..37).map(f32::from).collect();
        assert_eq!(dot(&list, &[2.0; 37]), 36.0 * 37.0);
    }
}
