//! Sorting: by the standard library, or where size counts more (`build.rs`) by one function for all
//! types. What the standard library compiles for a type is 4,000 bytes.

use std::cmp::Ordering;

/// Sorts `items`; equal ones stay in their order.
#[inline]
pub fn sort_by<T>(items: &mut [T], compare: impl FnMut(&T, &T) -> Ordering) {
    #[cfg(not(tfrt_for_size))]
    items.sort_by(compare);
    #[cfg(tfrt_for_size)]
    small::sort_by(items, compare);
}

/// Sorts `items`; equal ones come in any order.
#[inline]
pub fn sort_unstable_by<T>(items: &mut [T], compare: impl FnMut(&T, &T) -> Ordering) {
    #[cfg(not(tfrt_for_size))]
    items.sort_unstable_by(compare);
    #[cfg(tfrt_for_size)]
    small::sort_by(items, compare);
}

#[cfg(any(tfrt_for_size, test))]
mod small {
    use std::cmp::Ordering;

    /// Sorts indexes, and then brings the items into their order.
    pub(super) fn sort_by<T>(items: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
        let mut order = merged(items.len(), &mut |a, b| {
            compare(&items[a], &items[b]).is_lt()
        });
        // Each cycle: an item goes where the one came from that takes its place.
        for start in 0..items.len() {
            let mut index = start;
            loop {
                let from = std::mem::replace(&mut order[index], index);
                if from == start {
                    break;
                }
                items.swap(index, from);
                index = from;
            }
        }
    }

    /// Returns the indexes below `len`, sorted by `is_less`, by merging ever longer runs.
    fn merged(len: usize, is_less: &mut dyn FnMut(usize, usize) -> bool) -> Vec<usize> {
        let mut from: Vec<usize> = (0..len).collect();
        let mut to = from.clone();
        let mut run = 1;
        while run < len {
            let (mut left, mut middle, mut right) = (0, 0, 0);
            for (index, place) in to.iter_mut().enumerate() {
                if index % (2 * run) == 0 {
                    left = index;
                    middle = len.min(index + run);
                    right = middle;
                }
                let right_end = len.min(middle + run);
                let takes_right =
                    right < right_end && (left == middle || is_less(from[right], from[left]));
                let taken = if takes_right { &mut right } else { &mut left };
                *place = from[*taken];
                *taken += 1;
            }
            std::mem::swap(&mut from, &mut to);
            run *= 2;
        }
        from
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn items_are_in_order_then(items: Vec<(u8, u16)>) {
            let mut expected = items.clone();
            expected.sort();
            let mut sorted = items.clone();
            super::sort_unstable_by(&mut sorted, Ord::cmp);
            prop_assert_eq!(&sorted, &expected);
            expected = items.clone();
            expected.sort_by_key(|item| item.0);
            sorted = items;
            super::sort_by(&mut sorted, |a, b| a.0.cmp(&b.0));
            prop_assert_eq!(sorted, expected);
        }

        #[test]
        fn small_sort_is_stable(mut items: Vec<(u8, u16)>) {
            let mut expected = items.clone();
            expected.sort_by_key(|item| item.0);
            super::small::sort_by(&mut items, |a, b| a.0.cmp(&b.0));
            prop_assert_eq!(items, expected);
        }
    }
}
