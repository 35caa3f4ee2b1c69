//! The alignment of two lists: which items correspond.

use std::collections::HashMap;

/// The largest table that is made. Beyond this size items are matched one by one.
const MAX_TABLE: usize = 4_000_000;

/// Returns pairs of positions, ascending in both lists, of items with equal keys: as many as
/// possible, or nearly so if the lists are long and differ a lot.
pub fn align(old: &[u64], new: &[u64]) -> Vec<(usize, usize)> {
    let n_first = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[n_first..], &new[n_first..]);
    let from_end = old_rest.iter().rev().zip(new_rest.iter().rev());
    let n_last = from_end.take_while(|(a, b)| a == b).count();
    let old_middle = &old_rest[..old_rest.len() - n_last];
    let new_middle = &new_rest[..new_rest.len() - n_last];
    let middle = match old_middle.len().checked_mul(new_middle.len()) {
        Some(size) if size <= MAX_TABLE => longest(old_middle, new_middle),
        _ => one_by_one(old_middle, new_middle),
    };
    let mut pairs: Vec<(usize, usize)> = (0..n_first).map(|at| (at, at)).collect();
    let shifted = middle.into_iter().map(|(a, b)| (a + n_first, b + n_first));
    pairs.extend(shifted);
    let ends = (old.len() - n_last..).zip(new.len() - n_last..);
    pairs.extend(ends.take(n_last));
    pairs
}

/// Returns the longest common subsequence.
fn longest(old: &[u64], new: &[u64]) -> Vec<(usize, usize)> {
    let width = new.len() + 1;
    let mut lengths = vec![0u32; (old.len() + 1) * width];
    for a in (0..old.len()).rev() {
        for b in (0..new.len()).rev() {
            lengths[a * width + b] = match old[a] == new[b] {
                true => lengths[(a + 1) * width + b + 1] + 1,
                false => lengths[(a + 1) * width + b].max(lengths[a * width + b + 1]),
            };
        }
    }
    let mut pairs = Vec::new();
    let (mut a, mut b) = (0, 0);
    while a < old.len() && b < new.len() {
        if old[a] == new[b] {
            pairs.push((a, b));
            (a, b) = (a + 1, b + 1);
        } else if lengths[(a + 1) * width + b] >= lengths[a * width + b + 1] {
            a += 1;
        } else {
            b += 1;
        }
    }
    pairs
}

/// Matches items that occur once in each list, as far as they come in the same order.
fn one_by_one(old: &[u64], new: &[u64]) -> Vec<(usize, usize)> {
    let positions = |list: &[u64]| {
        let mut found: HashMap<u64, Option<usize>> = HashMap::new();
        for (position, key) in list.iter().enumerate() {
            let entry = found.entry(*key);
            entry
                .and_modify(|known| *known = None)
                .or_insert(Some(position));
        }
        found
    };
    let (in_old, in_new) = (positions(old), positions(new));
    let mut pairs = Vec::new();
    let mut last = None;
    for key in old {
        let once = |found: &HashMap<u64, Option<usize>>| found.get(key).copied().flatten();
        if let (Some(a), Some(b)) = (once(&in_old), once(&in_new))
            && last.is_none_or(|last| b > last)
        {
            pairs.push((a, b));
            last = Some(b);
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_between_does_not_part_what_belongs_together() {
        assert_eq!(align(&[1, 2, 3], &[1, 9, 2, 3]), [(0, 0), (1, 2), (2, 3)]);
        assert_eq!(align(&[1, 1], &[1]), [(0, 0)]);
        assert_eq!(align(&[], &[1]), []);
        assert_eq!(align(&[5, 1, 2, 6], &[7, 1, 2, 8]), [(1, 1), (2, 2)]);
        assert_eq!(one_by_one(&[1, 2, 2, 3], &[3, 1, 2]), [(0, 1)]);
    }
}
