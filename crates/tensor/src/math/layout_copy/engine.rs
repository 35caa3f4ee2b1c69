//! [`Engine`]: walks the elements of a result, and copies each from the place that its axes lead to.
//!
//! A result is rows of blocks: a block is what lies in one piece in the input behind each position of the
//! innermost axis that does not; the axes before it lead from row to row. Where neighbours of the input are
//! neighbours along another axis (a transposition), squares are copied by way of a small buffer instead, so that
//! each line of the cache is touched once, and blocks of squares, so that pages are touched seldom.

use smallvec::SmallVec;
use tfrt_host::{DType, Error};

use super::Axis;
use super::axis::{Piece, signed};
use super::words::{only, with_word};
use crate::math::vectorized;
use crate::{Element, from_bytes, from_bytes_mut};

/// Maximum length of rows that are handled as blocks: a block is never shared by two chunks of a result.
const MAX_BLOCK: usize = 4096;
/// Side of the squares that are copied by way of a buffer: at most a few lines of the cache.
const SIDE: usize = 16;
/// Side of the blocks of squares, which read a few lines of each page that they touch.
const BLOCK_SIDE: usize = 64;

/// Axes laid over elements.
#[derive(Clone, Debug)]
pub(super) struct Engine {
    /// Offset of the element at position 0 of all axes, without listed and padded ones.
    base: isize,
    outer: SmallVec<[StridedAxis; 4]>,
    inner: StridedAxis,
    /// Number of contiguous elements behind each position of `inner`.
    block: usize,
    n_elements: usize,
    /// The outer axis along which neighbours of the input are neighbours, if the inner one is not that.
    turned: Option<usize>,
}

/// An axis with the stride of its positions in the input.
#[derive(Clone, Debug)]
struct StridedAxis {
    // Invariant: a regular axis has offsets in place of positions, the first of which is 0, and a stride of 1.
    axis: Axis,
    stride: isize,
}

/// A run of offsets: their number, the `start`, and the `step` between them. Without a start they lie outside the
/// input.
struct Run {
    len: usize,
    start: Option<isize>,
    step: isize,
}

impl StridedAxis {
    fn extent(&self) -> usize {
        self.axis.extent()
    }

    /// Returns the offsets from a position on.
    #[inline]
    fn run_at(&self, index: usize) -> Run {
        if let Axis::Regular { extent, step, .. } = &self.axis {
            return Run {
                len: extent - index,
                start: Some(signed(index).wrapping_mul(*step)),
                step: *step,
            };
        }
        let Piece { len, start, step } = self.axis.piece_at(index);
        Run {
            len,
            start: start.map(|position| signed(position).wrapping_mul(self.stride)),
            step: step.wrapping_mul(self.stride),
        }
    }

    #[inline]
    fn offset_at(&self, index: usize) -> Option<isize> {
        self.run_at(index).start
    }

    /// Returns the distance of neighbours, if it is the same for all.
    fn step(&self) -> Option<isize> {
        match &self.axis {
            Axis::Regular { step, .. } => Some(*step),
            _ => None,
        }
    }
}

impl Engine {
    /// Binds axes to elements, outermost first, each with its stride.
    pub(super) fn new(axes: impl Iterator<Item = (Axis, usize)>) -> Engine {
        let mut outer: SmallVec<[StridedAxis; 4]> = SmallVec::new();
        let (mut base, mut n_elements) = (0_isize, 1_usize);
        for (axis, stride) in axes {
            n_elements = n_elements.saturating_mul(axis.extent());
            push(&mut outer, &mut base, axis, signed(stride));
        }
        if n_elements == 0 {
            // Strides of what has no elements may be anything.
            outer.clear();
        }
        let one = StridedAxis {
            axis: Axis::whole(1),
            stride: 0,
        };
        let mut inner = outer.pop().unwrap_or(one);
        let mut block = 1;
        let is_one_piece = inner.step() == Some(1) && inner.extent() <= MAX_BLOCK;
        if is_one_piece && let Some(before) = outer.pop() {
            block = inner.extent();
            inner = before;
        }
        let mut engine = Engine {
            base,
            outer,
            inner,
            block,
            n_elements,
            turned: None,
        };
        engine.turned = engine.turned_axis();
        engine
    }

    /// Returns an axis for squares, if they pay: neighbours of a row are at least a few elements apart, and enough
    /// rows are contiguous in the other direction.
    fn turned_axis(&self) -> Option<usize> {
        let is_far = self.inner.step().is_some_and(|step| step.abs() >= 8);
        if self.block != 1 || !is_far {
            return None;
        }
        let is_near = |bound: &StridedAxis| bound.step() == Some(1) && bound.extent() >= 8;
        self.outer.iter().position(is_near)
    }

    /// Returns the number of elements that chunks of the result have a multiple of.
    pub(super) fn multiple(&self) -> usize {
        match self.turned {
            None => self.block,
            Some(axis) => {
                let extent = self.outer[axis].extent().min(BLOCK_SIDE);
                self.within(axis).saturating_mul(extent)
            }
        }
    }

    /// Returns the elements of the result behind each position of an outer axis.
    fn within(&self, axis: usize) -> usize {
        self.outer[axis + 1..]
            .iter()
            .fold(self.row_len(), |product, bound| product * bound.extent())
    }

    fn row_len(&self) -> usize {
        self.inner.extent() * self.block
    }

    /// Makes the elements of the result from the `first` on, given as bytes of a type.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if bytes are no such elements.
    pub(super) fn run_bytes(
        &self,
        dtype: DType,
        x: &[u8],
        around: &[u8],
        first: usize,
        out: &mut [u8],
    ) -> Result<(), Error> {
        with_word!(dtype, W => self.run_words::<W>(x, around, first, out))
    }

    fn run_words<W: Element>(
        &self,
        x: &[u8],
        around: &[u8],
        first: usize,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let around = only::<W>(around)?;
        self.run(from_bytes(x)?, around, first, from_bytes_mut(out)?);
        Ok(())
    }

    /// Makes the elements of the result from the `first` on.
    pub(super) fn run<W: Element>(&self, x: &[W], around: W, first: usize, out: &mut [W]) {
        if out.is_empty() || self.n_elements == 0 {
            return;
        }
        if let Some(axis) = self.turned {
            let within = self.within(axis);
            if first.is_multiple_of(within) && out.len().is_multiple_of(within) {
                self.squares(axis, x, around, first / within, out);
                return;
            }
        }
        let row_len = self.row_len();
        let (mut column, mut rest) = (first % row_len, out);
        let mut rows = Odometer::new(&self.outer, first / row_len);
        while !rest.is_empty() {
            let n = rest.len().min(row_len - column);
            let (part, after) = std::mem::take(&mut rest).split_at_mut(n);
            match rows.offset() {
                Some(offset) => self.row(x, around, self.base + offset, column, part),
                None => part.fill(around),
            }
            rows.advance();
            (rest, column) = (after, 0);
        }
    }

    /// Makes part of a row, from some column on.
    fn row<W: Element>(
        &self,
        x: &[W],
        around: W,
        offset: isize,
        column: usize,
        mut part: &mut [W],
    ) {
        let (mut index, within) = (column / self.block, column % self.block);
        if within > 0 {
            let n = part.len().min(self.block - within);
            let (head, rest) = part.split_at_mut(n);
            self.end_of_block(x, around, offset, index, within, head);
            (part, index) = (rest, index + 1);
        }
        if let (1, Axis::Listed(list)) = (self.block, &self.inner.axis) {
            for (out, position) in part.iter_mut().zip(&list[index..]) {
                let place = place(offset + signed(*position).wrapping_mul(self.inner.stride));
                *out = x[place];
            }
            return;
        }
        while part.len() >= self.block {
            let run = self.inner.run_at(index);
            let n = run.len.min(part.len() / self.block);
            let (now, rest) = part.split_at_mut(n * self.block);
            match run.start {
                Some(start) => self.copy(x, offset + start, run.step, now),
                None => now.fill(around),
            }
            (part, index) = (rest, index + n);
        }
        if !part.is_empty() {
            self.end_of_block(x, around, offset, index, 0, part);
        }
    }

    /// Copies less than a block.
    fn end_of_block<W: Element>(
        &self,
        x: &[W],
        around: W,
        offset: isize,
        index: usize,
        within: usize,
        part: &mut [W],
    ) {
        match self.inner.offset_at(index) {
            Some(start) => {
                let start = place(offset + start) + within;
                part.copy_from_slice(&x[start..start + part.len()]);
            }
            None => part.fill(around),
        }
    }

    /// Copies blocks, `step` apart in the input.
    #[inline]
    fn copy<W: Element>(&self, x: &[W], offset: isize, step: isize, out: &mut [W]) {
        let (block, first) = (self.block, place(offset));
        if step == signed(block) || out.len() == block {
            out.copy_from_slice(&x[first..first + out.len()]);
            return;
        }
        if block > 1 {
            for (index, out) in out.chunks_exact_mut(block).enumerate() {
                let start = place(offset + signed(index) * step);
                out.copy_from_slice(&x[start..start + block]);
            }
            return;
        }
        let distance = step.unsigned_abs();
        vectorized(
            #[inline(always)]
            || match step {
                0 => out.fill(x[first]),
                -1 => {
                    let from = x[first + 1 - out.len()..=first].iter().rev();
                    out.iter_mut().zip(from).for_each(|(out, x)| *out = *x);
                }
                2.. => {
                    let from = x[first..].iter().step_by(distance);
                    out.iter_mut().zip(from).for_each(|(out, x)| *out = *x);
                }
                _ => {
                    let from = x[..=first].iter().rev().step_by(distance);
                    out.iter_mut().zip(from).for_each(|(out, x)| *out = *x);
                }
            },
        );
    }

    /// Makes whole positions of an outer axis that is contiguous in the input, from the `first` on.
    fn squares<W: Element>(&self, axis: usize, x: &[W], around: W, first: usize, out: &mut [W]) {
        let (within, n_columns) = (self.within(axis), self.inner.extent());
        let extent = self.outer[axis].extent();
        let step = self.inner.step().unwrap_or(0);
        let (mut position, mut rest) = (first % extent, out);
        let mut groups = Odometer::new(&self.outer[..axis], first / extent);
        while !rest.is_empty() {
            let n = (rest.len() / within).min(extent - position);
            let (group, after) = std::mem::take(&mut rest).split_at_mut(n * within);
            let mut between = Odometer::new(&self.outer[axis + 1..], 0);
            for start in (0..within).step_by(n_columns) {
                let Some(offset) = groups.offset().zip(between.offset()) else {
                    for row in group.chunks_exact_mut(within) {
                        row[start..start + n_columns].fill(around);
                    }
                    between.advance();
                    continue;
                };
                let from = self.base + offset.0 + offset.1 + signed(position);
                let turn = TransposeBlock { from, step, within };
                turn.all(x, [n, n_columns], &mut group[start..]);
                between.advance();
            }
            groups.advance();
            (rest, position) = (after, 0);
        }
    }
}

/// A matrix of the result whose columns are contiguous in the input.
#[derive(Clone, Copy)]
struct TransposeBlock {
    /// Offset of the first column in the input.
    from: isize,
    /// Distance between columns in the input.
    step: isize,
    /// Distance between rows in the result.
    within: usize,
}

impl TransposeBlock {
    /// Copies the matrix, block by block.
    fn all<W: Element>(self, x: &[W], [n_rows, n_columns]: [usize; 2], out: &mut [W]) {
        // Channels of an image come together so.
        match n_columns {
            _ if self.within != n_columns => {}
            2 => return self.few::<W, 2>(x, n_rows, out),
            3 => return self.few::<W, 3>(x, n_rows, out),
            4 => return self.few::<W, 4>(x, n_rows, out),
            _ => {}
        }
        for row in (0..n_rows).step_by(BLOCK_SIDE) {
            for column in (0..n_columns).step_by(BLOCK_SIDE) {
                let part = TransposeBlock {
                    from: self.from + signed(row) + signed(column) * self.step,
                    ..self
                };
                let n_rows = BLOCK_SIDE.min(n_rows - row);
                let n_columns = BLOCK_SIDE.min(n_columns - column);
                let out = &mut out[row * self.within + column..];
                vectorized(
                    #[inline(always)]
                    || part.block(x, [n_rows, n_columns], out),
                );
            }
        }
    }

    /// Copies a matrix of `N` columns, whose rows lie one behind the other.
    fn few<W: Element, const N: usize>(self, x: &[W], n_rows: usize, out: &mut [W]) {
        let columns: [&[W]; N] = std::array::from_fn(|column| {
            let start = place(self.from + signed(column) * self.step);
            &x[start..start + n_rows]
        });
        for (row, out) in out
            .as_chunks_mut::<N>()
            .0
            .iter_mut()
            .take(n_rows)
            .enumerate()
        {
            // A loop, since mapping an array calls for each of its elements.
            for (out, column) in out.iter_mut().zip(&columns) {
                *out = column[row];
            }
        }
    }

    /// Copies a block, square by square.
    #[inline(always)]
    fn block<W: Element>(self, x: &[W], [n_rows, n_columns]: [usize; 2], out: &mut [W]) {
        let mut square = [[W::ZERO; SIDE]; SIDE];
        for column in (0..n_columns).step_by(SIDE) {
            for row in (0..n_rows).step_by(SIDE) {
                let from = self.from + signed(row) + signed(column) * self.step;
                let out = &mut out[row * self.within + column..];
                if n_rows - row >= SIDE && n_columns - column >= SIDE {
                    self.square(x, from, &mut square, out);
                    continue;
                }
                let n_rows = SIDE.min(n_rows - row);
                for column in 0..SIDE.min(n_columns - column) {
                    let start = place(from + signed(column) * self.step);
                    let to = out[column..].iter_mut().step_by(self.within);
                    let from = &x[start..start + n_rows];
                    to.zip(from).for_each(|(to, x)| *to = *x);
                }
            }
        }
    }

    /// Copies a square by way of a buffer.
    #[inline(always)]
    fn square<W: Element>(
        self,
        x: &[W],
        from: isize,
        square: &mut [[W; SIDE]; SIDE],
        out: &mut [W],
    ) {
        for (column, to) in square.iter_mut().enumerate() {
            let start = place(from + signed(column) * self.step);
            to.copy_from_slice(&x[start..start + SIDE]);
        }
        for row in 0..SIDE {
            let turned: [W; SIDE] = std::array::from_fn(|column| square[column][row]);
            out[row * self.within..][..SIDE].copy_from_slice(&turned);
        }
    }
}

/// Adds an axis behind others; merges it with the last one if it continues that.
fn push(outer: &mut SmallVec<[StridedAxis; 4]>, base: &mut isize, axis: Axis, stride: isize) {
    let extent = axis.extent();
    let (start, step) = match &axis {
        Axis::Regular { start, step, .. } => (*start, *step),
        // One position that is in the input is as good as regular.
        _ if extent == 1 => match axis.piece_at(0).start {
            Some(start) => (start, 0),
            None => return outer.push(StridedAxis { axis, stride }),
        },
        _ => return outer.push(StridedAxis { axis, stride }),
    };
    if extent > 0 && start > 0 {
        *base = base.wrapping_add(signed(start).wrapping_mul(stride));
    }
    if extent == 1 {
        return;
    }
    let step = step.wrapping_mul(stride);
    if let Some(last) = outer.last_mut()
        && let Axis::Regular {
            extent: last_extent,
            step: last_step,
            ..
        } = &mut last.axis
        && step.checked_mul(signed(extent)) == Some(*last_step)
    {
        (*last_extent, *last_step) = (last_extent.saturating_mul(extent), step);
        return;
    }
    let axis = Axis::Regular {
        extent,
        start: 0,
        step,
    };
    outer.push(StridedAxis { axis, stride: 1 });
}

/// Converts an offset in the input. It can't be negative: a copy leads to positions of its input only.
fn place(offset: isize) -> usize {
    usize::try_from(offset).expect("a copy leads to elements of its input")
}

/// Walks several axes side by side, the last one fastest, and adds up their offsets.
struct Odometer<'a> {
    axes: &'a [StridedAxis],
    places: SmallVec<[(usize, Option<isize>); 4]>,
}

impl<'a> Odometer<'a> {
    fn new(axes: &'a [StridedAxis], mut number: usize) -> Self {
        let mut places: SmallVec<[(usize, Option<isize>); 4]> = SmallVec::new();
        for axis in axes.iter().rev() {
            let index = number % axis.extent();
            places.push((index, axis.offset_at(index)));
            number /= axis.extent();
        }
        places.reverse();
        Odometer { axes, places }
    }

    /// Returns the sum of the offsets; `None` if one of the axes leads outside.
    #[inline]
    fn offset(&self) -> Option<isize> {
        self.places
            .iter()
            .try_fold(0_isize, |sum, (_, offset)| Some(sum + (*offset)?))
    }

    /// Goes on to the next; behind the last to the first.
    #[inline]
    fn advance(&mut self) {
        for (axis, (index, offset)) in self.axes.iter().zip(&mut self.places).rev() {
            *index += 1;
            if *index < axis.extent() {
                *offset = axis.offset_at(*index);
                return;
            }
            *index = 0;
            *offset = axis.offset_at(0);
        }
    }
}
