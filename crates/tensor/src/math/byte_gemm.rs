//! Products of matrices of bytes with exact sums of 32 bits: `(a - a_zero) (b - b_zero)`.
//!
//! The right side is packed once, into panels of sixteen columns. A panel has for each two rows the pairs of its columns, as
//! signed bytes: those of `u8` are 128 less, and so are their zero points. Rows of the left side are made numbers of 16 bits
//! without their zero points, so that two products are a sum of 32 bits, which does not saturate; that of a row, times the
//! columns' zero points, is taken off at last. Sums wrap around, and so are exact up to a depth of [`MAX_DEPTH`], in any
//! order: all instructions give the same bits.

#![allow(
    clippy::needless_range_loop,
    reason = "loops over registers, whose numbers are known"
)]

use std::sync::Arc;

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::{parallel, vectorized};
use crate::{DType, DenseHostTensor};

/// The depth up to which no sum of products is above 32 bits.
pub const MAX_DEPTH: usize = (1 << 31) / (255 * 255);

/// Number of columns of a panel.
const COLUMNS: usize = 16;
/// Number of rows of a tile.
const ROWS: usize = 4;

/// The pairs of a panel's columns in two rows.
type Pairs = [[i8; 2]; COLUMNS];
/// The sums of a row and a panel.
type Sums = [i32; COLUMNS];

/// A right side of a product, packed.
#[derive(Debug)]
pub struct PackedBytes {
    /// For each panel its pairs of rows.
    panels: Vec<Pairs>,
    depth: usize,
    n_columns: usize,
    /// The zero points of the columns, of signed bytes; empty if all are 0.
    zeros: Vec<i32>,
}

impl PackedBytes {
    /// Packs a matrix of `u8` or `i8`, `[depth, columns]`, with no zero point, one, or one for each column.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the matrix is of another shape or type, deeper than [`MAX_DEPTH`], or if zero points are not as
    /// many.
    pub fn new(b: &DenseHostTensor, zeros: &[i32]) -> Result<PackedBytes, Error> {
        let extents = b.shape().to_dims();
        let &[depth, n_columns] = &extents[..] else {
            let message = format!("expected a matrix to pack, found extents {extents:?}");
            return Err(Error::invalid_argument(message));
        };
        PackedBytes::of_bytes([depth, n_columns], b.dtype(), b.read()?.bytes(), zeros)
    }

    /// Packs the bytes of a matrix, as [`new`](Self::new) does.
    pub(crate) fn of_bytes(
        [depth, n_columns]: [usize; 2],
        dtype: DType,
        bytes: &[u8],
        zeros: &[i32],
    ) -> Result<PackedBytes, Error> {
        let less = bias(dtype)?;
        let fits = depth <= MAX_DEPTH && [0, 1, n_columns].contains(&zeros.len());
        let fits = fits && are_bytes(zeros);
        if !fits {
            let n_zeros = zeros.len();
            let message = format!(
                "expected a matrix of at most {MAX_DEPTH} rows with a zero point for each column, found extents [{depth}, \
                 {n_columns}] and {n_zeros}"
            );
            return Err(Error::invalid_argument(message));
        }
        let n_pairs = depth.div_ceil(2);
        let mut panels = vec![[[0; 2]; COLUMNS]; n_columns.div_ceil(COLUMNS) * n_pairs];
        for (row, bytes) in bytes.chunks_exact(n_columns.max(1)).enumerate() {
            for (panel, bytes) in bytes.chunks(COLUMNS).enumerate() {
                let pairs = &mut panels[panel * n_pairs + row / 2];
                for (pair, byte) in pairs.iter_mut().zip(bytes) {
                    pair[row % 2] = (byte ^ flip(less)).cast_signed();
                }
            }
        }
        let mut zeros: Vec<i32> = zeros.iter().map(|zero| zero - less).collect();
        if zeros.is_empty() && less != 0 {
            zeros.push(-less);
        }
        if zeros.iter().all(|zero| *zero == 0) {
            zeros.clear();
        }
        Ok(PackedBytes {
            panels,
            depth,
            n_columns,
            zeros,
        })
    }

    /// Returns the extents of the matrix: depth and columns.
    pub fn extents(&self) -> [usize; 2] {
        [self.depth, self.n_columns]
    }

    fn n_pairs(&self) -> usize {
        self.depth.div_ceil(2)
    }
}

/// Returns whether all numbers are of the range of `u8` or `i8`.
pub(crate) fn are_bytes(zeros: &[i32]) -> bool {
    zeros.iter().all(|zero| (-128..=255).contains(zero))
}

/// Returns the number that elements of a type are above signed bytes.
pub(crate) fn bias(dtype: DType) -> Result<i32, Error> {
    match dtype {
        DType::Ui8 => Ok(128),
        DType::I8 => Ok(0),
        _ => Err(Error::invalid_argument(format!(
            "expected bytes to multiply, found {dtype}"
        ))),
    }
}

/// Returns the bits that differ between a byte and the signed one that is `less` below it.
pub(crate) const fn flip(less: i32) -> u8 {
    if less == 0 { 0 } else { 0x80 }
}

/// Multiplies rows of `u8` or `i8`, `[rows, depth]`, with no zero point, one, or one for each row, into sums of `i32`,
/// `[rows, columns]`.
///
/// # Errors
///
/// `InvalidArgument` if extents or types are not that, and those of [`parallel::fill`].
pub fn byte_product_into(
    execution: &ExecutionContext,
    (a, zeros): (&DenseHostTensor, Vec<i32>),
    b: Arc<PackedBytes>,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let less = bias(a.dtype())?;
    let (depth, n_columns) = (b.depth, b.n_columns);
    let n_rows = out.n_elements().checked_div(n_columns).unwrap_or(0);
    let fits = n_rows.checked_mul(depth) == Some(a.n_elements())
        && n_rows.checked_mul(n_columns) == Some(out.n_elements())
        && (zeros.len() <= 1 || zeros.len() == n_rows)
        && are_bytes(&zeros);
    if !fits {
        let message = format!(
            "rows of extents {} with {} zero points, a matrix of {depth} rows and {n_columns} columns, and a result of {} \
             don't fit together",
            a.shape(),
            zeros.len(),
            out.shape()
        );
        return Err(Error::invalid_argument(message));
    }
    // Whole rows, or of one row whole panels.
    let unit = match n_rows {
        ..=1 => COLUMNS,
        _ => n_columns.saturating_mul(ROWS),
    };
    let chunk = parallel::chunk_len(depth / 16, unit);
    let a = a.clone();
    parallel::fill(execution, out, chunk, move |first, part: &mut [i32]| {
        let reading = a.read()?;
        let (row, column) = (first / n_columns, first % n_columns);
        let rows = LeftRows {
            bytes: &reading.bytes()[row * depth..],
            depth,
            less,
            zeros: match zeros.len() {
                0 | 1 => &zeros,
                _ => &zeros[row..],
            },
        };
        let n_rows = part.len().div_ceil(n_columns);
        rows.multiply(n_rows, &b, column, part);
        Ok(())
    })
}

/// Rows of bytes, from the first one of a part on.
pub(crate) struct LeftRows<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) depth: usize,
    /// The number that elements are above signed bytes.
    pub(crate) less: i32,
    /// No zero point, one, or one for each row.
    pub(crate) zeros: &'a [i32],
}

impl LeftRows<'_> {
    /// Multiplies as many rows by the columns from one on, which begins a panel, into rows of the result; of one row
    /// perhaps some columns alone.
    pub(crate) fn multiply(&self, n_rows: usize, b: &PackedBytes, column: usize, out: &mut [i32]) {
        let n_pairs = b.n_pairs();
        let width = out.len().checked_div(n_rows).unwrap_or(0);
        // Rows of a group stay near while all panels pass by.
        let group = GROUP_PAIRS.div_ceil(n_pairs.max(1)).next_multiple_of(ROWS);
        let mut pairs = Vec::new();
        let mut sums = Vec::new();
        for (index, out) in out.chunks_mut((group * width).max(1)).enumerate() {
            let first = index * group;
            let n_rows = out.len() / width;
            pairs.clear();
            sums.clear();
            for row in first..first + n_rows {
                sums.push(self.widen(row, &mut pairs));
            }
            let group = Group {
                pairs: &pairs,
                n_pairs,
                sums: &sums,
            };
            for start in (0..width).step_by(COLUMNS) {
                let panel = (column + start) / COLUMNS;
                let panel = &b.panels[panel * n_pairs..][..n_pairs];
                group.multiply(panel, (column + start, b), (start, width), out);
            }
        }
    }

    /// Appends a row's pairs without its zero point, and returns its sum.
    fn widen(&self, row: usize, pairs: &mut Vec<[i16; 2]>) -> i32 {
        let bytes = &self.bytes[row * self.depth..][..self.depth];
        let zero = self.zeros.get(row).or(self.zeros.first());
        let (flip, zero) = (flip(self.less), zero.copied().unwrap_or(0) - self.less);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "zero points and differences of two bytes have 9 bits"
        )]
        let zero = zero as i16;
        let one = move |byte: u8| i16::from((byte ^ flip).cast_signed()) - zero;
        let (whole, rest) = bytes.as_chunks::<2>();
        let first = pairs.len();
        pairs.resize(first + bytes.len().div_ceil(2), [0; 2]);
        let pairs = &mut pairs[first..];
        vectorized(
            #[inline(always)]
            || {
                for (pair, [x, y]) in pairs.iter_mut().zip(whole) {
                    *pair = [one(*x), one(*y)];
                }
                if let ([byte], Some(pair)) = (rest, pairs.last_mut()) {
                    *pair = [one(*byte), 0];
                }
                let sums = pairs.iter().map(|[x, y]| i32::from(*x) + i32::from(*y));
                sums.sum()
            },
        )
    }
}

/// Number of pairs of rows that are widened at a time: they fit the second cache.
const GROUP_PAIRS: usize = 1 << 14;

/// Rows that are multiplied by one panel after the other.
struct Group<'a> {
    pairs: &'a [[i16; 2]],
    /// Number of pairs of a row.
    n_pairs: usize,
    /// The sum of each row.
    sums: &'a [i32],
}

impl Group<'_> {
    /// Multiplies the rows by a panel, into the columns from `start` on of rows of `width` elements.
    fn multiply(
        &self,
        panel: &[Pairs],
        (column, b): (usize, &PackedBytes),
        (start, width): (usize, usize),
        out: &mut [i32],
    ) {
        let len = COLUMNS.min(width - start);
        let zeros: Sums = match &b.zeros[..] {
            [] => [0; COLUMNS],
            [zero] => [*zero; COLUMNS],
            zeros => std::array::from_fn(|index| zeros.get(column + index).copied().unwrap_or(0)),
        };
        let mut row = 0;
        while row < self.sums.len() {
            let n = ROWS.min(self.sums.len() - row);
            let pairs = &self.pairs[row * self.n_pairs..][..n * self.n_pairs];
            let mut tile = [[0; COLUMNS]; ROWS];
            multiply(pairs, n, panel, &mut tile);
            for (index, tile) in tile.iter().enumerate().take(n) {
                let sum = self.sums[row + index];
                let out = &mut out[(row + index) * width + start..][..len];
                match <&mut Sums>::try_from(&mut *out) {
                    Ok(out) if b.zeros.is_empty() => *out = *tile,
                    Ok(out) => without_zeros(tile, sum, &zeros, out),
                    Err(_) => {
                        let mut whole = *tile;
                        without_zeros(tile, sum, &zeros, &mut whole);
                        out.copy_from_slice(&whole[..len]);
                    }
                }
            }
            row += n;
        }
    }
}

/// Takes the sum of a row, times the columns' zero points, off its products.
#[inline]
fn without_zeros(products: &Sums, sum: i32, zeros: &Sums, out: &mut Sums) {
    vectorized(
        #[inline(always)]
        || {
            for column in 0..COLUMNS {
                out[column] = products[column].wrapping_sub(sum.wrapping_mul(zeros[column]));
            }
        },
    );
}

/// Makes the sums of up to [`ROWS`] rows and a panel.
fn multiply(pairs: &[[i16; 2]], n_rows: usize, panel: &[Pairs], tile: &mut [Sums; ROWS]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = avx2::simd() {
        return simd.vectorize(avx2::Tile {
            simd,
            pairs,
            n_rows,
            panel,
            tile,
        });
    }
    plain(pairs, n_rows, panel, tile);
}

/// Makes the sums by no particular instructions.
fn plain(pairs: &[[i16; 2]], n_rows: usize, panel: &[Pairs], tile: &mut [Sums; ROWS]) {
    for (row, tile) in tile.iter_mut().enumerate().take(n_rows) {
        let pairs = &pairs[row * panel.len()..][..panel.len()];
        for ([x, y], columns) in pairs.iter().zip(panel) {
            for (sum, [a, b]) in tile.iter_mut().zip(columns) {
                let two = i32::from(*x) * i32::from(*a) + i32::from(*y) * i32::from(*b);
                *sum = sum.wrapping_add(two);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{__m128i, __m256i};

    use pulp::cast;
    use pulp::x86::V3;

    use super::{Pairs, ROWS, Sums};
    use crate::math::packed_gemm::InstructionSet;

    /// Returns the right to use the instructions, if the processor has them and the process may use them.
    pub(super) fn simd() -> Option<V3> {
        match InstructionSet::Avx2.is_available() {
            true => V3::try_new(),
            false => None,
        }
    }

    /// Operands and sums of a tile.
    pub(super) struct Tile<'a> {
        pub simd: V3,
        pub pairs: &'a [[i16; 2]],
        pub n_rows: usize,
        pub panel: &'a [Pairs],
        pub tile: &'a mut [Sums; ROWS],
    }

    impl pulp::NullaryFnOnce for Tile<'_> {
        type Output = ();

        #[inline(always)]
        fn call(self) {
            match self.n_rows {
                1 => self.rows::<1>(),
                2 => self.rows::<2>(),
                3 => self.rows::<3>(),
                _ => self.rows::<ROWS>(),
            }
        }
    }

    impl Tile<'_> {
        #[inline(always)]
        fn rows<const N: usize>(self) {
            let V3 { avx, avx2, .. } = self.simd;
            let depth = self.panel.len();
            let mut rows: [&[[i16; 2]]; N] = [&[]; N];
            for row in 0..N {
                rows[row] = &self.pairs[row * depth..][..depth];
            }
            let mut sums = [[avx._mm256_setzero_si256(); 2]; N];
            for place in 0..depth {
                let [low, high]: [__m128i; 2] = cast(self.panel[place]);
                let columns = [
                    avx2._mm256_cvtepi8_epi16(low),
                    avx2._mm256_cvtepi8_epi16(high),
                ];
                for row in 0..N {
                    let pair = avx._mm256_set1_epi32(cast::<[i16; 2], i32>(rows[row][place]));
                    for half in 0..2 {
                        let two = avx2._mm256_madd_epi16(pair, columns[half]);
                        sums[row][half] = avx2._mm256_add_epi32(sums[row][half], two);
                    }
                }
            }
            for row in 0..N {
                self.tile[row] = cast::<[__m256i; 2], Sums>(sums[row]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tfrt_host::kernel::KernelRegistry;
    use tfrt_host::{HostContext, RequestContext};

    use super::*;
    use crate::Element;

    /// Returns the product of seeded matrices, and what it is by its definition.
    fn products<A: Element + Into<i32>, B: Element + Into<i32>>(
        [m, k, n]: [usize; 3],
        [of_rows, of_columns]: [&[i32]; 2],
        (a, b): (impl Fn(usize) -> A, impl Fn(usize) -> B),
    ) -> [Vec<i32>; 2] {
        let host = HostContext::builder(KernelRegistry::new()).build();
        let execution = ExecutionContext::new(&RequestContext::new(&host));
        let a: Vec<A> = (0..m * k).map(|index| a(index * 7919 + 13)).collect();
        let b: Vec<B> = (0..k * n).map(|index| b(index * 104_729 + 7)).collect();
        let tensor = DenseHostTensor::from_slice(host.allocator(), &[k, n], &b).unwrap();
        let packed = Arc::new(PackedBytes::new(&tensor, of_columns).unwrap());
        let rows = DenseHostTensor::from_slice(host.allocator(), &[m, k], &a).unwrap();
        let out = DenseHostTensor::from_slice(host.allocator(), &[m, n], &vec![7_i32; m * n]);
        let out = out.unwrap();
        let done = byte_product_into(&execution, (&rows, of_rows.to_vec()), packed, &out);
        host.queue().await_all(&[done.unwrap().into_any()]).unwrap();
        let zero = |zeros: &[i32], index: usize| zeros.get(index).or(zeros.first()).copied();
        let wanted = (0..m).flat_map(|row| {
            let (a, b) = (&a, &b);
            (0..n).map(move |column| {
                let each = (0..k).map(|depth| {
                    let a: i32 = a[row * k + depth].into();
                    let b: i32 = b[depth * n + column].into();
                    (a - zero(of_rows, row).unwrap_or(0))
                        * (b - zero(of_columns, column).unwrap_or(0))
                });
                each.sum()
            })
        });
        let wanted = wanted.collect();
        [out.read().unwrap().elements().unwrap().to_vec(), wanted]
    }

    #[test]
    fn products_are_exact() {
        let unsigned = |index: usize| (index % 256) as u8;
        let signed = |index: usize| (index % 256) as u8 as i8;
        for extents @ [m, _, n] in [
            [1, 1, 1],
            [1, 384, 100],
            [3, 7, 16],
            [4, 64, 33],
            [70, 65, 40],
            [1, 2000, 300],
            [2, 0, 3],
            [0, 4, 4],
        ] {
            let rows: Vec<i32> = (0..m as i32).map(|row| row % 100).collect();
            let columns: Vec<i32> = (0..n as i32).map(|column| column % 90 - 40).collect();
            for zeros in [
                [&[][..], &[]],
                [&[3], &[0]],
                [&[128], &[-7]],
                [&rows, &columns],
            ] {
                let [found, wanted] = products(extents, zeros, (unsigned, signed));
                assert_eq!(found, wanted, "{extents:?}, {zeros:?}");
                let [found, wanted] = products(extents, zeros, (unsigned, unsigned));
                assert_eq!(found, wanted, "{extents:?}, {zeros:?}");
                let [found, wanted] = products(extents, zeros, (signed, signed));
                assert_eq!(found, wanted, "{extents:?}, {zeros:?}");
            }
        }
    }

    #[test]
    fn the_largest_sums_are_exact() {
        let extents = [5, MAX_DEPTH, 17];
        let zeros = [&[0][..], &[255]];
        let [found, wanted] = products(extents, zeros, (|_| 255_u8, |_| 0_u8));
        assert_eq!(found, wanted);
    }

    #[test]
    fn instructions_agree() {
        let pairs: Vec<[i16; 2]> = (0..4 * 90_i16)
            .map(|index| [index - 100, 255 - index])
            .collect();
        let panel: Vec<Pairs> = (0..90_usize)
            .map(|row| std::array::from_fn(|column| [(row * column % 256) as u8 as i8, -128]))
            .collect();
        for n_rows in 1..=ROWS {
            let (mut found, mut wanted) = ([[0; COLUMNS]; ROWS], [[0; COLUMNS]; ROWS]);
            multiply(&pairs, n_rows, &panel, &mut found);
            plain(&pairs, n_rows, &panel, &mut wanted);
            assert_eq!(found, wanted, "{n_rows} rows");
        }
    }
}
