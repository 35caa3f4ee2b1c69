//! Layout of a packed right side: panels of neighbouring columns, each row after row.
//!
//! Panels are as wide as two vectors. The last one or two are as narrow as can be; the last begins so far ahead of
//! the columns that no other panel holds that it is full, since making some sums again costs nothing where there is
//! room for them. Where there are fewer columns in all, it has zeros.

use std::ops::Range;
use std::sync::Arc;

use tfrt_host::{DType, Error, HostAllocator};

use super::{InstructionSet, bf16};
use crate::{DenseHostTensor, TensorMetadata, TensorShape};

/// Extents of a packed right side, and the instruction set that its panels are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Layout {
    pub set: InstructionSet,
    /// Elements of a column.
    pub depth: usize,
    pub n_columns: usize,
}

/// Place and columns of a panel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Panel {
    /// Columns that no earlier panel holds.
    pub own: Range<usize>,
    /// The first column that it holds.
    pub first: usize,
    /// Number of columns that it has room for.
    pub width: usize,
    /// Range of its elements.
    pub elements: Range<usize>,
}

impl Panel {
    /// Returns the columns that it holds.
    pub(crate) fn held(&self) -> Range<usize> {
        self.first..self.own.end
    }
}

impl Layout {
    /// Returns the number of elements that a column takes.
    fn column_len(self) -> usize {
        self.set.column_len(self.depth)
    }

    /// Returns the number of panels of full width.
    fn n_widest(self) -> usize {
        self.n_columns / self.set.n_columns()
    }

    /// Returns the widths of the panels behind the full ones, if any: the narrowest that holds the remaining columns,
    /// if there are enough columns in all; two otherwise.
    fn narrow(self) -> [Option<usize>; 2] {
        let rest = self.n_columns % self.set.n_columns();
        let widths = self.set.panel_columns().iter().copied();
        let narrowest = |rest: usize| widths.clone().rev().find(|width| rest <= *width);
        let one = match rest {
            0 => return [None; 2],
            rest => narrowest(rest),
        };
        if one.is_some_and(|width| width <= self.n_columns) {
            return [one, None];
        }
        match widths.clone().find(|width| *width <= rest) {
            Some(first) => [Some(first), narrowest(rest - first)],
            None => [one, None],
        }
    }

    /// Returns the number of panels.
    pub(crate) fn n_panels(self) -> usize {
        self.n_widest() + self.narrow().into_iter().flatten().count()
    }

    /// Returns a panel.
    pub(crate) fn panel(self, index: usize) -> Panel {
        let (widest, n_widest) = (self.set.n_columns(), self.n_widest());
        let (start, width) = match (index.checked_sub(n_widest), self.narrow()) {
            (None, _) => (index * widest, widest),
            (Some(0), [Some(width), _]) => (n_widest * widest, width),
            (Some(1), [Some(before), Some(width)]) => (n_widest * widest + before, width),
            _ => (self.n_columns, 0),
        };
        let own = start..self.n_columns.min(start + width);
        Panel {
            first: start.min(self.n_columns.saturating_sub(width)),
            own,
            width,
            elements: start * self.column_len()..(start + width) * self.column_len(),
        }
    }

    /// Returns all panels.
    pub(crate) fn panels(self) -> impl Iterator<Item = Panel> {
        (0..self.n_panels()).map(move |index| self.panel(index))
    }

    /// Returns the columns of some panels.
    pub(crate) fn columns_of(self, panels: &Range<usize>) -> Range<usize> {
        let end = match panels.is_empty() {
            true => panels.start,
            false => panels.end,
        };
        self.panel(panels.start).own.start..self.panel(end).own.start
    }

    /// Returns the number of elements of a packed right side; `None` if they fit no memory.
    pub(crate) fn n_elements(self) -> Option<usize> {
        let narrow: usize = self.narrow().into_iter().flatten().sum();
        let n_columns = (self.n_widest() * self.set.n_columns()).checked_add(narrow)?;
        self.column_len().checked_mul(n_columns)
    }
}

/// Packs the matrix that begins at `start` of `right`; neighbours in a column are `strides[0]` apart, those in
/// a row `strides[1]`. Writes every element of `packed`.
pub(crate) fn pack(
    layout: Layout,
    right: &[f32],
    start: usize,
    strides: [usize; 2],
    packed: &mut [f32],
) {
    if layout.set.is_bf16() {
        return pack_pairs(layout, right, start, strides, packed);
    }
    if strides[0] == 1 && strides[1] > 1 {
        return pack_columns(layout, &right[start..], strides[1], packed);
    }
    for panel in layout.panels() {
        let columns = panel.held();
        let rows = packed[panel.elements].chunks_exact_mut(panel.width);
        for (depth, row) in rows.enumerate() {
            let first = start + depth * strides[0] + columns.start * strides[1];
            let (there, missing) = row.split_at_mut(columns.len());
            match strides[1] {
                1 => there.copy_from_slice(&right[first..][..there.len()]),
                stride => {
                    for (index, element) in there.iter_mut().enumerate() {
                        *element = right[first + index * stride];
                    }
                }
            }
            missing.fill(0.0);
        }
    }
}

/// Packs a matrix whose columns are `stride` elements apart, each in one piece; see [`pack`].
fn pack_columns(layout: Layout, right: &[f32], stride: usize, packed: &mut [f32]) {
    /// Elements that are read of a column before the next is: a cache line of it.
    const LINE: usize = 16;
    for panel in layout.panels() {
        let (columns, width) = (panel.held(), panel.width);
        let blocks = packed[panel.elements].chunks_mut(LINE * width);
        for (block, rows) in blocks.enumerate() {
            for (index, column) in columns.clone().enumerate() {
                let line = &right[column * stride + block * LINE..];
                for (row, element) in rows.chunks_exact_mut(width).zip(line) {
                    row[index] = *element;
                }
            }
            for row in rows.chunks_exact_mut(width) {
                row[columns.len()..].fill(0.0);
            }
        }
    }
}

/// Packs a matrix as pairs of `bf16`; see [`pack`].
fn pack_pairs(
    layout: Layout,
    right: &[f32],
    start: usize,
    strides: [usize; 2],
    packed: &mut [f32],
) {
    let element = |depth: usize, column: usize| match depth < layout.depth {
        true => right[start + depth * strides[0] + column * strides[1]],
        false => 0.0,
    };
    for panel in layout.panels() {
        let columns = panel.held();
        let rows = packed[panel.elements].chunks_exact_mut(panel.width);
        for (index, row) in rows.enumerate() {
            row.fill(0.0);
            for (to, column) in row.iter_mut().zip(columns.clone()) {
                let [first, second] =
                    [2 * index, 2 * index + 1].map(|depth| element(depth, column));
                *to = bf16::pair(first, second);
            }
        }
    }
}

/// Writes the matrix of a packed right side into rows of `row_len` elements.
fn unpack(from: Panels<'_>, matrix: &mut [f32], row_len: usize) {
    let Layout { set, depth, .. } = from.layout;
    for panel in from.layout.panels() {
        let columns = panel.held();
        let rows = from.elements[panel.elements].chunks_exact(panel.width);
        for (index, row) in rows.enumerate() {
            let row = &row[..columns.len()];
            if !set.is_bf16() {
                matrix[index * row_len..][columns.clone()].copy_from_slice(row);
                continue;
            }
            for (pair, column) in row.iter().zip(columns.clone()) {
                for (offset, number) in bf16::of_pair(*pair).into_iter().enumerate() {
                    let place = 2 * index + offset;
                    if place < depth {
                        matrix[place * row_len + column] = number;
                    }
                }
            }
        }
    }
}

/// Repacks a right side for another instruction set: the same numbers, unless these are rounded there, in panels of other
/// widths. Columns that only one side has fill vectors, and are zeros. Writes every element of `packed`.
fn lay_again(from: Panels<'_>, to: Layout, packed: &mut [f32]) {
    let row_len = from.layout.n_columns.max(to.n_columns);
    let mut matrix = vec![0.0; to.depth * row_len];
    unpack(from, &mut matrix, row_len);
    pack(to, &matrix, 0, [row_len, 1], packed);
}

/// Repacks several right sides of one layout, one behind the other, for another instruction set.
///
/// # Errors
///
/// `ResourceExhausted` if there is no memory; `InvalidArgument` if there are not as many elements as that takes.
pub(crate) fn lay_all_again(
    allocator: &Arc<dyn HostAllocator>,
    elements: &DenseHostTensor,
    n_parts: usize,
    [from, to]: [Layout; 2],
) -> Result<DenseHostTensor, Error> {
    let n = |layout: Layout| layout.n_elements()?.checked_mul(n_parts);
    let (Some(n_from), Some(n_to)) = (n(from), n(to)) else {
        return Err(Error::resource_exhausted(
            "packed elements do not fit any memory",
        ));
    };
    let reading = elements.read()?;
    let packed = reading.elements::<f32>()?;
    if packed.len() != n_from {
        let found = packed.len();
        let message = format!("expected {n_from} packed elements, found {found}");
        return Err(Error::invalid_argument(message));
    }
    let metadata = TensorMetadata::new(DType::F32, TensorShape::new(&[n_to])?);
    let mut laid = DenseHostTensor::zeroed(allocator, metadata)?;
    if n_from > 0 && n_to > 0 {
        let out = laid.elements_mut::<f32>()?;
        let out = out.expect("nobody else has it yet");
        let parts = packed.chunks_exact(n_from / n_parts);
        for (elements, out) in parts.zip(out.chunks_exact_mut(n_to / n_parts)) {
            let panels = Panels {
                layout: from,
                elements,
            };
            lay_again(panels, to, out);
        }
    }
    Ok(laid)
}

/// A packed right side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panels<'p> {
    pub layout: Layout,
    pub elements: &'p [f32],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_hold_all_columns_and_are_full_where_they_can_be() {
        for set in InstructionSet::ALL {
            let least = set.panel_columns().iter().copied().min().unwrap();
            for n_columns in 0..200 {
                let layout = Layout {
                    set,
                    depth: 3,
                    n_columns,
                };
                let (mut next, mut n_elements) = (0, 0);
                for panel in layout.panels() {
                    assert_eq!(panel.own.start, next);
                    assert!(panel.first <= next && next < panel.own.end);
                    assert!(set.panel_columns().contains(&panel.width));
                    let is_full = panel.held().len() == panel.width;
                    assert!(is_full || n_columns < least, "{layout:?} {panel:?}");
                    assert_eq!(panel.elements.start, n_elements);
                    (next, n_elements) = (panel.own.end, panel.elements.end);
                }
                assert_eq!(next, n_columns);
                assert_eq!(layout.n_elements(), Some(n_elements));
                let all = 0..layout.n_panels();
                assert_eq!(layout.columns_of(&all), 0..n_columns);
                assert_eq!(layout.columns_of(&(all.end..all.end)).len(), 0);
            }
        }
    }
}
