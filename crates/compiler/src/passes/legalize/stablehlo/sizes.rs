//! Extents that may be known only when a model runs, and what is made of them.
//!
//! A function that gives a tensor other extents takes them as sizes. Where all are numbers it makes the operations that it
//! makes for static text; the others are read from tensors by `shape`, calculated as integers of 64 bits, and handed to
//! rows as operands, so that a program that is compiled once takes tensors of any extents.

use tfrt_ir::{Type, ValueId};

use super::Lowering;
use super::build::int;
use super::shapes::checked;

/// The end of a slice that goes to the last element.
pub(super) const TO_END: i64 = i64::MAX;

/// An extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    Known(i64),
    /// A list of one integer of 64 bits.
    At(ValueId),
}

impl Size {
    /// The extent, if it is known.
    pub(super) fn known(self) -> Option<i64> {
        match self {
            Size::Known(size) => Some(size),
            Size::At(_) => None,
        }
    }

    /// The extent in a type.
    pub(super) fn dim(self) -> i64 {
        match self {
            Size::Known(size) => size,
            Size::At(_) => -1,
        }
    }
}

/// Returns extents as a type has them.
pub(super) fn dims_of(sizes: &[Size]) -> Vec<i64> {
    sizes.iter().map(|size| size.dim()).collect()
}

/// Returns extents that are numbers as sizes.
pub(super) fn known_sizes(dims: &[i64]) -> Vec<Size> {
    dims.iter().map(|size| Size::Known(*size)).collect()
}

impl Lowering<'_> {
    /// Returns the extent of a value along a dimension.
    pub(super) fn size_along(&mut self, x: ValueId, axis: usize) -> Size {
        match self.dims(x)[axis] {
            -1 => {
                let at = i64::try_from(axis).unwrap_or(0);
                let attributes = [("start", int(at)), ("end", int(at + 1))];
                Size::At(self.add("shape", &[x], &attributes, &[1], &Type::I64))
            }
            size => Size::Known(size),
        }
    }

    /// Returns the extents of a value.
    pub(super) fn sizes(&mut self, x: ValueId) -> Vec<Size> {
        (0..self.rank(x))
            .map(|axis| self.size_along(x, axis))
            .collect()
    }

    /// Returns a size as a list of one integer.
    pub(super) fn size_list(&mut self, size: Size) -> ValueId {
        self.sizes_list(&[size])
    }

    /// Returns a size as a number of 64 bits.
    pub(super) fn size_number(&mut self, size: Size) -> ValueId {
        match size {
            Size::Known(size) => self.integers_of(&[], &[size]),
            Size::At(list) => self.reshaped(list, &[]),
        }
    }

    /// Returns sizes as a list of integers.
    pub(super) fn sizes_list(&mut self, sizes: &[Size]) -> ValueId {
        let mut parts = Vec::new();
        let mut known = Vec::new();
        for size in sizes {
            match size {
                Size::Known(size) => known.push(*size),
                Size::At(list) => {
                    if !known.is_empty() {
                        parts.push(self.shape(&std::mem::take(&mut known)));
                    }
                    parts.push(*list);
                }
            }
        }
        if !known.is_empty() || parts.is_empty() {
            parts.push(self.shape(&known));
        }
        self.concatenated(&parts, 0)
    }

    /// Calculates with two sizes: a row of two integers, and what it does to numbers.
    fn of_sizes(
        &mut self,
        row: &str,
        left: Size,
        right: Size,
        of_numbers: fn(i64, i64) -> Option<i64>,
    ) -> Result<Size, String> {
        if let (Size::Known(left), Size::Known(right)) = (left, right) {
            return checked(left, |left| of_numbers(left, right)).map(Size::Known);
        }
        let (left, right) = (self.size_list(left), self.size_list(right));
        Ok(Size::At(self.binary(row, left, right)))
    }

    pub(super) fn size_sum(&mut self, left: Size, right: Size) -> Result<Size, String> {
        self.of_sizes("add", left, right, i64::checked_add)
    }

    pub(super) fn size_difference(&mut self, left: Size, right: Size) -> Result<Size, String> {
        self.of_sizes("sub", left, right, i64::checked_sub)
    }

    pub(super) fn size_quotient(&mut self, left: Size, right: Size) -> Result<Size, String> {
        self.of_sizes("div", left, right, i64::checked_div)
    }

    pub(super) fn size_max(&mut self, left: Size, right: Size) -> Result<Size, String> {
        self.of_sizes("max", left, right, |left, right| Some(left.max(right)))
    }

    pub(super) fn size_product(&mut self, sizes: &[Size]) -> Result<Size, String> {
        let mut product = Size::Known(1);
        for size in sizes {
            product = match (product, *size) {
                (Size::Known(1), size) | (size, Size::Known(1)) => size,
                (left, right) => self.of_sizes("mul", left, right, i64::checked_mul)?,
            };
        }
        Ok(product)
    }

    /// Gives a value other extents of as many elements.
    pub(super) fn resized(&mut self, x: ValueId, sizes: &[Size]) -> ValueId {
        let dims = dims_of(sizes);
        let n_unknown = dims.iter().filter(|size| **size == -1).count();
        // One extent that is unknown follows from the others.
        if n_unknown == 0 || (n_unknown == 1 && !dims.contains(&0)) {
            return self.reshaped(x, &dims);
        }
        let shape = self.sizes_list(sizes);
        let element = self.element(x);
        let attributes = [("allow_zero", int(1))];
        self.add("reshape", &[x, shape], &attributes, &dims, &element)
    }

    /// Broadcasts a value to extents, from the last dimension.
    pub(super) fn widened(&mut self, x: ValueId, sizes: &[Size]) -> ValueId {
        let dims = dims_of(sizes);
        if !dims.contains(&-1) {
            return self.broadcast_to(x, &dims);
        }
        let shape = self.sizes_list(sizes);
        self.widened_to(x, shape, &dims)
    }

    /// Broadcasts a value to extents that a list of integers has, of which some are known.
    pub(super) fn widened_to(&mut self, x: ValueId, shape: ValueId, dims: &[i64]) -> ValueId {
        let element = self.element(x);
        let wide = self.add("broadcast", &[x, shape], &[], dims, &element);
        if self.rank(x) == 0 {
            let narrow = self.narrow.get(&x).copied().unwrap_or(x);
            self.narrow.insert(wide, narrow);
        }
        wide
    }

    /// Broadcasts a value to the extents of another one.
    pub(super) fn widened_like(&mut self, x: ValueId, like: ValueId) -> ValueId {
        let sizes = self.sizes(like);
        self.widened(x, &sizes)
    }

    /// Takes the first elements along a dimension.
    pub(super) fn first_along(&mut self, x: ValueId, axis: usize, n: Size) -> ValueId {
        match n {
            Size::Known(n) => self.part(x, axis, 0, n, 1),
            Size::At(_) => self.cut(x, axis, Size::Known(0), n),
        }
    }

    /// Makes numbers from 0 on along a dimension, the same along the others.
    pub(super) fn numbered(
        &mut self,
        sizes: &[Size],
        axis: usize,
        element: &Type,
    ) -> Result<ValueId, String> {
        let dims = dims_of(sizes);
        if !dims.contains(&-1) {
            return Ok(self.counted(&dims, axis, element));
        }
        let line = self.numbers_below(sizes[axis], element);
        let mut apart = vec![Size::Known(1); sizes.len() - axis];
        apart[0] = sizes[axis];
        let line = self.resized(line, &apart);
        Ok(self.widened(line, sizes))
    }

    /// Makes the numbers from 0 on below a size.
    pub(super) fn numbers_below(&mut self, n: Size, element: &Type) -> ValueId {
        match n {
            Size::Known(n) => self.count(n, element),
            Size::At(_) => {
                let limit = self.size_number(n);
                let (zero, one) = (self.integers_of(&[], &[0]), self.integers_of(&[], &[1]));
                let line = self.add("iota", &[zero, limit, one], &[], &[-1], &Type::I64);
                self.cast(line, element)
            }
        }
    }
}
