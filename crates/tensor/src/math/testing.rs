//! Helpers for tests of several modules: strided views of any kind, coordinates, elements of any type, numbers that
//! find mistakes.

use proptest::prelude::*;

use crate::{Element, TensorView, from_bytes_mut, to_bytes_mut};

/// Extents and strides of a view, and the least number of elements of the slice behind it.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub extents: Vec<usize>,
    pub strides: Vec<usize>,
    pub len: usize,
}

impl Layout {
    /// Returns a view with this layout on a list that is long enough.
    pub(crate) fn view<'a, T: Element>(&self, elements: &'a [T]) -> TensorView<'a, T> {
        TensorView::strided(&elements[..self.len], &self.extents, &self.strides).unwrap()
    }
}

/// Returns a strategy for layouts with these extents: dimensions in any order in memory, with gaps, repeated, or none
/// of that.
pub(crate) fn layout_of(extents: Vec<usize>) -> impl Strategy<Value = Layout> {
    let rank = extents.len();
    let order = Just((0..rank).collect::<Vec<usize>>()).prop_shuffle();
    let order = prop_oneof![Just((0..rank).collect::<Vec<usize>>()), order];
    let kinds = prop_oneof![
        2 => Just(vec![0_u8; rank]),
        1 => prop::collection::vec(0..8_u8, rank)
    ];
    (Just(extents), order, kinds).prop_map(|(extents, order, kinds)| {
        let (mut strides, mut len) = (vec![0; extents.len()], 1);
        for dimension in order.into_iter().rev() {
            let (extent, kind) = (extents[dimension].max(1), kinds[dimension]);
            if kind == 7 {
                continue;
            }
            let gap = if kind > 5 { 2 } else { 1 };
            strides[dimension] = len * gap;
            len *= extent * gap;
        }
        Layout {
            extents,
            strides,
            len,
        }
    })
}

/// Returns a strategy for views of up to `rank` dimensions with extents below `extent`.
pub(crate) fn layouts(rank: usize, extent: usize) -> impl Strategy<Value = Layout> {
    prop::collection::vec(0..extent, 0..=rank).prop_flat_map(layout_of)
}

/// Returns the coordinates of an element, by its number in row-major order.
pub(crate) fn coordinates(mut index: usize, extents: &[usize]) -> Vec<usize> {
    let mut list = vec![0; extents.len()];
    for (to, extent) in list.iter_mut().zip(extents).rev() {
        *to = index % extent;
        index /= extent;
    }
    list
}

/// Returns pseudo-random elements of any type, with all bits in use.
pub(crate) fn elements<T: Element>(n: usize) -> Vec<T> {
    let mut list = vec![T::ZERO; n];
    let mut state = 1_u64;
    for byte in to_bytes_mut(&mut list) {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        *byte = state.to_be_bytes()[0];
    }
    // What can be written as bytes can be read as elements.
    assert!(from_bytes_mut::<T>(to_bytes_mut(&mut list)).is_ok());
    list
}
/// Returns numbers that are likely to find mistakes.
pub(crate) fn floats() -> impl Strategy<Value = f32> {
    prop_oneof![
        8 => -100.0..100.0_f32,
        1 => any::<f32>(),
        1 => prop::sample::select(vec![
            0.0, -0.0, 1.0, -1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE, 1e-45,
            f32::MAX,
        ]),
    ]
}
