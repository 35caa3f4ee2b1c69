//! Similar names, for advice: the name that is closest to one that does not exist.

/// The longest names that are compared, which takes time in the product of lengths.
const MAX_LEN: usize = 64;

/// The most names that are compared: a program may have millions.
const MAX_COMPARED: usize = 10_000;

/// Returns the name that is at most two letters, or a third of them, away.
///
/// # Examples
///
/// ```
/// use tfrt_ir::similar::nearest;
///
/// assert_eq!(nearest("mian", ["main", "other"]), Some("main"));
/// assert_eq!(nearest("x", ["y"]), None);
/// ```
pub fn nearest<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    if name.len() > MAX_LEN {
        return None;
    }
    let limit = (name.len() / 3).min(2);
    let own = letters(name);
    let is_near = |other: &&str| {
        let others = letters(other);
        let n_missing = (own & !others)
            .count_ones()
            .max((others & !own).count_ones());
        n_missing as usize <= limit && other.len().abs_diff(name.len()) <= limit
    };
    let close = names
        .into_iter()
        .take(MAX_COMPARED)
        .filter(is_near)
        .map(|other| (distance(name, other), other));
    let (distance, other) = close.min()?;
    (distance <= limit && distance > 0).then_some(other)
}

/// Returns the set of a name's letters, a bit for each. A slip takes one out at most, and puts one in.
fn letters(name: &str) -> u64 {
    name.bytes().fold(0, |all, letter| all | 1 << (letter & 63))
}

/// Returns how many bytes must be put in, left out, replaced or swapped with the next.
pub fn distance(from: &str, to: &str) -> usize {
    let (from, to) = (from.as_bytes(), to.as_bytes());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let replaced = last[j] + usize::from(a != b);
            let mut least = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            let is_swapped = i > 0 && j > 0 && *a == to[j - 1] && from[i - 1] == *b;
            if is_swapped {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_all_kinds_count_as_one() {
        for (from, to) in [
            ("main", "mian"),
            ("main", "man"),
            ("man", "main"),
            ("main", "mein"),
        ] {
            assert_eq!(distance(from, to), 1, "{from} {to}");
        }
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("same", "same"), 0);
    }
}
