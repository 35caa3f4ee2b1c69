//! Products of matrices of bytes with exact sums of 32 bits: `(a - a_zero) (b - b_zero)`.
//!
//! The right side is packed once, for the best instructions that this process may use: in panels whose columns have their
//! elements by fours (`quads`) or by pairs (`pairs`), as signed bytes: those of `u8` are 128 less, and so are their zero
//! points. Sums wrap around, and so are exact up to a depth of [`MAX_DEPTH`], in any order: all instructions give the same
//! bits.

use std::sync::Arc;

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::parallel::{self, Parts};
#[cfg(target_arch = "x86_64")]
use super::vectorized;
use crate::{DType, DenseHostTensor};

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "a listed module")]
mod amx;
mod epilogue;
mod instructions;
mod pairs;
#[cfg(target_arch = "x86_64")]
mod quads;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "a listed module")]
mod vnni;

pub use epilogue::ByteEpilogue;
pub(crate) use epilogue::range;
pub use instructions::ByteInstructions;
use pairs::PairPanels;
#[cfg(target_arch = "x86_64")]
use quads::QuadPanels;

/// The depth up to which no sum of products is above 32 bits.
pub const MAX_DEPTH: usize = (1 << 31) / (255 * 255);

/// Number of columns of a panel.
const COLUMNS: usize = 16;
/// Number of bytes behind the last row of a left side that are best there, too: rows are read further than they are long.
pub(crate) const BEHIND: usize = 64;
/// The least number of rows of a part that a thread makes.
const PART_ROWS: usize = 24;
/// The least number of rows of a part if the right side, which is read for each, is larger than a second cache.
const MORE_PART_ROWS: usize = 96;

/// The size of right sides, in bytes, that stay in a processor's second cache.
const SECOND_CACHE: usize = 1 << 20;

/// A right side of a product, packed.
#[derive(Debug)]
pub struct PackedBytes {
    panels: Panels,
    depth: usize,
    n_columns: usize,
}

/// Panels of sixteen columns.
#[derive(Debug)]
enum Panels {
    Pairs(PairPanels),
    #[cfg(target_arch = "x86_64")]
    Quads(QuadPanels),
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
        extents: [usize; 2],
        dtype: DType,
        bytes: &[u8],
        zeros: &[i32],
    ) -> Result<PackedBytes, Error> {
        PackedBytes::pack_for(ByteInstructions::best(), extents, dtype, bytes, zeros)
    }

    /// Packs bytes for instructions, which must be available.
    pub(crate) fn pack_for(
        set: ByteInstructions,
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
        let mut zeros: Vec<i32> = zeros.iter().map(|zero| zero - less).collect();
        if zeros.is_empty() && less != 0 {
            zeros.push(-less);
        }
        if zeros.iter().all(|zero| *zero == 0) {
            zeros.clear();
        }
        let (extents, bytes) = ([depth, n_columns], (bytes, less));
        let panels = match set {
            ByteInstructions::Plain | ByteInstructions::Avx2 => {
                Panels::Pairs(PairPanels::new(set, extents, bytes, zeros))
            }
            #[cfg(target_arch = "x86_64")]
            _ => Panels::Quads(QuadPanels::new(set, extents, bytes, &zeros)),
            #[cfg(not(target_arch = "x86_64"))]
            _ => return Err(Error::internal("only x86-64 has these instructions")),
        };
        Ok(PackedBytes {
            panels,
            depth,
            n_columns,
        })
    }

    /// Returns the extents of the matrix: depth and columns.
    pub fn extents(&self) -> [usize; 2] {
        [self.depth, self.n_columns]
    }

    /// Returns the least number of rows that are worth reading the panels.
    pub(crate) fn part_rows(&self) -> usize {
        match self.depth * self.n_columns {
            ..=SECOND_CACHE => PART_ROWS,
            _ => MORE_PART_ROWS,
        }
    }

    /// Returns about how many steps the processor takes for a sum.
    pub(crate) fn operations(&self) -> usize {
        match &self.panels {
            Panels::Pairs(_) => self.depth / 16,
            #[cfg(target_arch = "x86_64")]
            Panels::Quads(panels) => self.depth / panels.at_a_time(),
        }
    }
}

/// Windows of images that are multiplied where they lie. Pixels follow each other in lines, of which each has more windows
/// than are wanted.
#[cfg(target_arch = "x86_64")]
pub(crate) struct LeftLines<'a> {
    /// The images, as unsigned bytes, from the first window on.
    pub(crate) bytes: &'a [u8],
    /// Number of bytes of a pixel.
    pub(crate) pixel: usize,
    /// Where the blocks of a window's bytes, each of [`BEHIND`], begin.
    pub(crate) offsets: &'a [usize],
    /// Number of windows from the first one of the first line to the last wanted one of the last.
    pub(crate) n_rows: usize,
    /// Number of windows of a line, and of those that are wanted.
    pub(crate) of_line: (usize, usize),
    /// The zero point of unsigned bytes.
    pub(crate) zero: i32,
}

#[cfg(target_arch = "x86_64")]
impl LeftLines<'_> {
    /// Returns whether products by a packed matrix can be made so.
    pub(crate) fn can_meet(b: &PackedBytes) -> bool {
        matches!(&b.panels, Panels::Quads(panels) if panels.is_symmetric())
    }

    /// Multiplies wanted windows, and makes bytes of the sums, as [`LeftRows::requantize`] does.
    pub(crate) fn requantize(
        &self,
        b: &PackedBytes,
        (by, first): (&ByteEpilogue, usize),
        out: &mut [u8],
    ) {
        let Panels::Quads(panels) = &b.panels else {
            return;
        };
        let n_quads = self.offsets.len() * BEHIND / 4;
        let rows = (self.n_rows, n_quads);
        let left = quads::Left::new(self.bytes, self.pixel, self.offsets, rows);
        let mut lines = quads::Lines {
            finish: epilogue::ByteRows::new(by, first, out),
            n_rows: self.of_line.0,
            n_wanted: self.of_line.1,
        };
        let bias = by.bias(first..first + b.n_columns);
        panels.multiply_blocks(&left, self.zero, bias, &mut lines);
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

/// Copies bytes, of which some bits are flipped.
#[cfg(target_arch = "x86_64")]
pub(crate) fn flip_into(from: &[u8], flip: u8, to: &mut [u8]) {
    if flip == 0 {
        return to.copy_from_slice(from);
    }
    vectorized(
        #[inline(always)]
        || {
            for (to, from) in to.iter_mut().zip(from) {
                *to = from ^ flip;
            }
        },
    );
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
        _ => n_columns.saturating_mul(b.part_rows()),
    };
    let parts = Parts::even(out.n_elements(), unit, b.operations(), usize::MAX);
    let a = a.clone();
    parallel::fill_parts(execution, out, parts, move |first, part: &mut [i32]| {
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
        match &b.panels {
            Panels::Pairs(panels) => panels.multiply(self, n_rows, column, out),
            #[cfg(target_arch = "x86_64")]
            Panels::Quads(panels) => {
                let Some(width) = out.len().checked_div(n_rows).filter(|width| *width > 0) else {
                    return;
                };
                let mut rows = quads::SumRows {
                    out,
                    width,
                    first: column,
                };
                panels.multiply(self, n_rows, column..column + width, &[], &mut rows);
            }
        }
    }

    /// Multiplies as many rows, and makes bytes of the sums: those of the epilogue's columns from `first` on, in rows of all
    /// its columns. `sums` is kept for the next call.
    pub(crate) fn requantize(
        &self,
        n_rows: usize,
        b: &PackedBytes,
        (by, first): (&ByteEpilogue, usize),
        sums: &mut Vec<i32>,
        out: &mut [u8],
    ) {
        match &b.panels {
            Panels::Pairs(panels) => {
                sums.resize(n_rows * b.n_columns, 0);
                panels.multiply(self, n_rows, 0, sums);
                by.run(first, (sums, b.n_columns), out);
            }
            #[cfg(target_arch = "x86_64")]
            Panels::Quads(panels) => {
                if n_rows == 0 || b.n_columns == 0 {
                    return;
                }
                let bias = by.bias(first..first + b.n_columns);
                let mut rows = epilogue::ByteRows::new(by, first, out);
                panels.multiply(self, n_rows, 0..b.n_columns, bias, &mut rows);
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

    /// Checks that the products of seeded matrices by all instructions are those of the definition.
    fn check<A: Element + Into<i32>, B: Element + Into<i32>>(
        [m, k, n]: [usize; 3],
        [of_rows, of_columns]: [&[i32]; 2],
        (a, b): (impl Fn(usize) -> A, impl Fn(usize) -> B),
    ) {
        let host = HostContext::builder(KernelRegistry::new()).build();
        let execution = ExecutionContext::new(&RequestContext::new(&host));
        let a: Vec<A> = (0..m * k).map(|index| a(index * 7919 + 13)).collect();
        let b: Vec<B> = (0..k * n).map(|index| b(index * 104_729 + 7)).collect();
        let zero = |zeros: &[i32], index: usize| zeros.get(index).or(zeros.first()).copied();
        let mut wanted = vec![0_i32; m * n];
        for (row, wanted) in wanted.chunks_exact_mut(n.max(1)).enumerate() {
            let a_zero = zero(of_rows, row).unwrap_or(0);
            for depth in 0..k {
                let a: i32 = a[row * k + depth].into() - a_zero;
                for (column, wanted) in wanted.iter_mut().enumerate() {
                    let b: i32 = b[depth * n + column].into();
                    *wanted += a * (b - zero(of_columns, column).unwrap_or(0));
                }
            }
        }
        let tensor = DenseHostTensor::from_slice(host.allocator(), &[k, n], &b).unwrap();
        let rows = DenseHostTensor::from_slice(host.allocator(), &[m, k], &a).unwrap();
        let reading = tensor.read().unwrap();
        for set in ByteInstructions::ALL {
            if !set.is_available() {
                continue;
            }
            let packed =
                PackedBytes::pack_for(set, [k, n], B::DTYPE, reading.bytes(), of_columns).unwrap();
            let out = DenseHostTensor::from_slice(host.allocator(), &[m, n], &vec![7; m * n]);
            let out = out.unwrap();
            let operands = (&rows, of_rows.to_vec());
            let done = byte_product_into(&execution, operands, Arc::new(packed), &out);
            host.queue().await_all(&[done.unwrap().into_any()]).unwrap();
            let found = out.read().unwrap().elements::<i32>().unwrap().to_vec();
            let place = found.iter().zip(&wanted).position(|(a, b)| a != b);
            assert_eq!(
                place, None,
                "{set:?}: [{m}, {k}, {n}], {of_rows:?}, {of_columns:?}"
            );
        }
    }

    fn unsigned(index: usize) -> u8 {
        (index % 256) as u8
    }

    fn signed(index: usize) -> i8 {
        (index % 256) as u8 as i8
    }

    /// Checks products of all types, with zero points of all kinds.
    fn check_all(extents: [usize; 3]) {
        let [m, _, n] = extents;
        let rows: Vec<i32> = (0..m as i32).map(|row| row % 100).collect();
        let columns: Vec<i32> = (0..n as i32).map(|column| column % 90 - 40).collect();
        for zeros in [
            [&[][..], &[]],
            [&[3], &[0]],
            [&[128], &[-7]],
            [&rows, &columns],
        ] {
            check(extents, zeros, (unsigned, signed));
            check(extents, zeros, (unsigned, unsigned));
            check(extents, zeros, (signed, signed));
            check(extents, zeros, (signed, unsigned));
        }
    }

    #[test]
    fn products_are_exact() {
        for extents in [
            [1, 1, 1],
            [1, 384, 100],
            [3, 7, 16],
            [4, 64, 33],
            [70, 65, 40],
            [1, 2000, 300],
            [2, 0, 3],
            [0, 4, 4],
            [100, 130, 48],
            [33, 576, 64],
        ] {
            check_all(extents);
        }
    }

    #[test]
    fn any_number_of_rows_is_exact() {
        for m in 1..=70 {
            check([m, 67, 35], [&[5], &[]], (unsigned, signed));
            check([m, 128, 32], [&[5], &[]], (signed, signed));
        }
    }

    #[test]
    fn any_depth_is_exact() {
        for k in 1..=140 {
            check([17, k, 17], [&[200], &[3]], (unsigned, unsigned));
        }
    }

    #[test]
    fn any_number_of_columns_is_exact() {
        for n in 1..=70 {
            check([9, 70, n], [&[200], &[]], (unsigned, signed));
        }
    }

    #[test]
    fn the_largest_sums_are_exact() {
        for m in [2, 17] {
            let extents = [m, MAX_DEPTH, 17];
            check(extents, [&[0], &[255]], (|_| 255_u8, |_| 0_u8));
            check(extents, [&[255], &[0]], (|_| 0_u8, |_| 255_u8));
            check(extents, [&[0], &[0]], (|_| 255_u8, |_| -128_i8));
            check(extents, [&[127], &[127]], (|_| -128_i8, |_| -128_i8));
        }
    }
}
