//! Selection: coordinates of elements that are not zero, and unique elements.

use std::cmp::Ordering;

use super::number::Real;
use crate::{BF16, Bool, Complex, Element, F16};

/// A type of elements with a zero and an order.
pub trait Sortable: Element {
    /// Returns whether the element is zero, of any sign, or false.
    fn is_zero(self) -> bool;
    /// Compares numbers; NaN comes last, and equals NaN. Complex numbers are ordered by their real parts, then by
    /// their imaginary ones.
    fn order(self, other: Self) -> Ordering;
}

/// `sortable!(u8)` implements [`Sortable`] by the order of numbers.
macro_rules! sortable {
    ($($type:ty)*) => {$(
        impl Sortable for $type {
            #[inline(always)]
            fn is_zero(self) -> bool {
                self.same(Self::ZERO)
            }

            #[inline(always)]
            fn order(self, other: Self) -> Ordering {
                number_order(self, other)
            }
        }
    )*};
}

sortable!(u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 F16 BF16);

impl Sortable for Bool {
    fn is_zero(self) -> bool {
        !bool::from(self)
    }

    fn order(self, other: Self) -> Ordering {
        bool::from(self).cmp(&bool::from(other))
    }
}

/// `sortable_pairs!(f32)` implements [`Sortable`] for complex numbers of `f32`s.
macro_rules! sortable_pairs {
    ($($part:ty)*) => {$(
        impl Sortable for Complex<$part> {
            fn is_zero(self) -> bool {
                self.real.is_zero() && self.imaginary.is_zero()
            }

            fn order(self, other: Self) -> Ordering {
                let by_real = self.real.order(other.real);
                by_real.then_with(|| self.imaginary.order(other.imaginary))
            }
        }
    )*};
}

sortable_pairs!(f32 f64);

#[inline(always)]
fn number_order<T: Real>(a: T, b: T) -> Ordering {
    if a.less(b) {
        return Ordering::Less;
    }
    if b.less(a) {
        return Ordering::Greater;
    }
    // The same, or one of them is no number.
    (!a.same(a)).cmp(&!b.same(b))
}

/// Writes the coordinates of elements for which `is_wanted` holds, in row-major order: all first coordinates, then
/// all second ones, and so on, as a tensor `[rank, n]`, or `[0, n]` for a tensor without dimensions. `out` has room
/// for `n` times the rank.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::select::coordinates_into;
///
/// let mut out = [0; 4];
/// coordinates_into(&[2, 3], 6, &|index| index == 1 || index == 5, &mut out);
/// assert_eq!(out, [0, 1, 1, 2]);
/// ```
pub fn coordinates_into(
    extents: &[usize],
    n_elements: usize,
    is_wanted: &dyn Fn(usize) -> bool,
    out: &mut [i64],
) {
    let n_wanted = out.len() / extents.len().max(1);
    if n_wanted == 0 {
        return;
    }
    let mut stride = n_elements;
    for (row, extent) in out.chunks_exact_mut(n_wanted).zip(extents) {
        stride /= (*extent).max(1);
        let wanted = (0..n_elements).filter(|index| is_wanted(*index));
        for (out, index) in row.iter_mut().zip(wanted) {
            *out = ((index / stride.max(1)) % (*extent).max(1)) as i64;
        }
    }
}

/// Equal things grouped into kinds, as NumPy's `unique` returns them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unique {
    /// Index of the first thing of each kind.
    pub firsts: Vec<usize>,
    /// Kind of each thing.
    pub kinds: Vec<usize>,
    /// Number of things of each kind.
    pub counts: Vec<usize>,
}

impl Unique {
    /// Maximum memory of [`unique_by`] for each thing: its place before and after sorting, its group, and the lists.
    pub const BYTES_PER_THING: usize = 7 * size_of::<usize>();
}

/// Sorts `n` things into kinds by an order: the kinds come in that order, or in that of their first occurrences.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::select::unique_by;
///
/// let letters = ['c', 'a', 'c', 'b'];
/// let sorted = unique_by(4, true, &|a, b| letters[a].cmp(&letters[b]));
/// assert_eq!((sorted.firsts, sorted.kinds, sorted.counts), (vec![1, 3, 0], vec![2, 0, 2, 1], vec![1, 1, 2]));
/// let found = unique_by(4, false, &|a, b| letters[a].cmp(&letters[b]));
/// assert_eq!(found.firsts, [0, 1, 3]);
/// ```
pub fn unique_by(n: usize, is_sorted: bool, order: &dyn Fn(usize, usize) -> Ordering) -> Unique {
    let mut things: Vec<usize> = (0..n).collect();
    // Of the same kind the first comes first.
    things.sort_by(|a, b| order(*a, *b));
    let equal = |a: &usize, b: &usize| order(*a, *b).is_eq();
    let mut groups = Vec::with_capacity(things.chunk_by(equal).count());
    groups.extend(things.chunk_by(equal));
    if !is_sorted {
        groups.sort_by_key(|group| group[0]);
    }
    let mut kinds = vec![0; n];
    for (kind, group) in groups.iter().enumerate() {
        for thing in *group {
            kinds[*thing] = kind;
        }
    }
    Unique {
        firsts: groups.iter().map(|group| group[0]).collect(),
        kinds,
        counts: groups.iter().map(|group| group.len()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_comes_last_and_is_one_kind() {
        let x = [f32::NAN, 1.0, -0.0, f32::NAN, 0.0];
        let found = unique_by(5, true, &|a, b| x[a].order(x[b]));
        assert_eq!(found.firsts, [2, 1, 0]);
        assert_eq!(found.counts, [2, 1, 2]);
    }

    #[test]
    fn coordinates_are_listed_by_dimension() {
        let x = [0, 5, 0, 7, 0, 8];
        let mut found = [9; 6];
        coordinates_into(&[2, 3], 6, &|index| x[index] != 0, &mut found);
        assert_eq!(found, [0, 1, 1, 1, 0, 2]);
        coordinates_into(&[], 1, &|_| true, &mut []);
        coordinates_into(&[0, 3], 0, &|_| true, &mut []);
    }

    #[test]
    fn negative_zeros_are_zeros() {
        assert!((-0.0_f64).is_zero());
        assert!(F16(0x8000).is_zero());
        assert!(!F16(0x7e00).is_zero());
    }
}
