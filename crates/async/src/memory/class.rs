//! The sizes that blocks have: four to each doubling, from 16 bytes to 32 KiB.
//!
//! A block of a size that a power of two divides is aligned to that power, up to
//! [`MAX_ALIGN`]. So a layout that asks for more alignment than 16 bytes gets a power of two as its
//! size.

use std::alloc::Layout;

/// The alignment of every block.
const MIN_ALIGN: usize = 16;
/// The largest alignment that a block can have.
pub(super) const MAX_ALIGN: usize = 4096;
/// The largest size that a block can have.
pub(super) const MAX_BYTES: usize = 32 * 1024;

/// Classes up to this size are multiples of [`MIN_ALIGN`].
const FINE_BYTES: usize = 128;
const N_FINE: usize = FINE_BYTES / MIN_ALIGN;
/// Classes to each doubling above that.
const PER_DOUBLING: usize = 4;
/// The number of classes.
pub(super) const N_CLASSES: usize =
    N_FINE + PER_DOUBLING * (MAX_BYTES / FINE_BYTES).ilog2() as usize;

/// A class of sizes.
///
/// Invariant: below [`N_CLASSES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class(u8);

/// Sizes up to this one find their class in [`BY_SIZE`].
const TABLE_BYTES: usize = 4096;
/// The class of each number of [`MIN_ALIGN`]s, rounded up.
static BY_SIZE: [Class; TABLE_BYTES / MIN_ALIGN + 1] = {
    let mut table = [Class(0); TABLE_BYTES / MIN_ALIGN + 1];
    let mut units = 1;
    while units < table.len() {
        table[units] = Class::compute(units * MIN_ALIGN);
        units += 1;
    }
    table
};

/// The size of each class, in bytes.
static SIZES: [u32; N_CLASSES] = {
    let mut sizes = [0; N_CLASSES];
    let mut index = 0;
    while index < N_CLASSES {
        sizes[index] = if index < N_FINE {
            (index + 1) * MIN_ALIGN
        } else {
            let (doubling, quarter) = (
                (index - N_FINE) / PER_DOUBLING,
                (index - N_FINE) % PER_DOUBLING,
            );
            (FINE_BYTES << doubling) / PER_DOUBLING * (PER_DOUBLING + 1 + quarter)
        } as u32;
        index += 1;
    }
    sizes
};

impl Class {
    /// Returns the class whose blocks fit a layout; `None` if it is too large.
    pub(super) const fn of(layout: Layout) -> Option<Class> {
        if !Class::has(layout) {
            return None;
        }
        if layout.align() <= MIN_ALIGN {
            return Some(Class::compute(layout.size()));
        }
        let (size, align) = (layout.size(), layout.align());
        let size = if size > align { size } else { align };
        Some(Class::compute(size.next_power_of_two()))
    }

    /// Returns the class of a layout that is small, as most are.
    #[inline(always)]
    pub(super) fn of_small(layout: Layout) -> Option<Class> {
        let (size, align) = (layout.size(), layout.align());
        if size.wrapping_sub(1) >= TABLE_BYTES {
            return None;
        }
        let size = match align <= MIN_ALIGN {
            true => size,
            // As in `of`: a multiple of the alignment that is a power of two.
            false => size.max(align).next_power_of_two(),
        };
        BY_SIZE.get(size.div_ceil(MIN_ALIGN)).copied()
    }

    /// Returns true if there is a class for a layout.
    #[inline(always)]
    pub(super) const fn has(layout: Layout) -> bool {
        layout.size().wrapping_sub(1) < MAX_BYTES && layout.align() <= MAX_ALIGN
    }

    /// Returns the class of sizes from 1 to [`MAX_BYTES`].
    const fn compute(size: usize) -> Class {
        let last = size - 1;
        let index = if size <= FINE_BYTES {
            last / MIN_ALIGN
        } else {
            let doubling = (last / FINE_BYTES).ilog2() as usize;
            let quarter = last / ((FINE_BYTES << doubling) / PER_DOUBLING) - PER_DOUBLING;
            N_FINE + doubling * PER_DOUBLING + quarter
        };
        Class(index as u8)
    }

    /// Returns the class's number, below [`N_CLASSES`].
    #[inline(always)]
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the size of a block, in bytes.
    pub(super) const fn size_bytes(self) -> usize {
        SIZES[self.index()] as usize
    }

    /// Returns the largest power of two that divides the size, up to [`MAX_ALIGN`].
    pub(super) const fn align(self) -> usize {
        let align = 1 << self.size_bytes().trailing_zeros();
        if align < MAX_ALIGN { align } else { MAX_ALIGN }
    }

    /// The class of the smallest blocks.
    pub(super) const SMALLEST: Class = Class(0);

    /// Returns all classes, by size.
    pub(super) fn all() -> impl Iterator<Item = Class> {
        (0..N_CLASSES).map(|index| Class(index as u8))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_size_has_the_smallest_class_that_fits() {
        for size in 1..=MAX_BYTES {
            let layout = Layout::from_size_align(size, 8).unwrap();
            let class = Class::of(layout).unwrap();
            let smallest = Class::all().find(|class| class.size_bytes() >= size);
            assert_eq!(Some(class), smallest, "{size}");
            assert_eq!(Class::of_small(layout).is_some(), size <= TABLE_BYTES);
            assert_eq!(Class::of_small(layout).unwrap_or(class), class);
        }
        for size in [0, MAX_BYTES + 1, usize::MAX / 4] {
            let layout = Layout::from_size_align(size, 1).unwrap();
            assert_eq!((Class::of(layout), Class::of_small(layout)), (None, None));
        }
        let empty = Layout::from_size_align(0, 64).unwrap();
        assert_eq!((Class::of(empty), Class::of_small(empty)), (None, None));
    }

    #[test]
    fn sizes_grow_by_at_most_a_quarter_above_the_fine_ones() {
        let sizes: Vec<usize> = Class::all().map(Class::size_bytes).collect();
        assert_eq!((sizes[0], sizes[N_CLASSES - 1]), (16, MAX_BYTES));
        for pair in sizes.windows(2) {
            assert!(pair[1] > pair[0] && pair[1] - pair[0] <= (pair[0] / 4).max(MIN_ALIGN));
        }
    }

    #[test]
    fn a_class_is_aligned_as_the_layout_asks() {
        for align in (0..=12).map(|bits| 1 << bits) {
            for size in [1, 16, 100, 129, 4096, 5000, MAX_BYTES] {
                let layout = Layout::from_size_align(size, align).unwrap();
                let class = Class::of(layout).unwrap();
                assert!(
                    class.size_bytes() >= size && class.align() >= align,
                    "{layout:?}"
                );
                let small = Class::of_small(layout);
                assert_eq!(small, (size <= TABLE_BYTES).then_some(class), "{layout:?}");
            }
        }
        let over = Layout::from_size_align(16, 2 * MAX_ALIGN).unwrap();
        assert_eq!(Class::of(over), None);
    }
}
