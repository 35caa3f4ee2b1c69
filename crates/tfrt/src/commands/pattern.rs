//! Patterns with `*` and `?`, for names of kernels and of files.

/// Returns whether a name matches: as a whole if the pattern has `*` or `?`, else in some part.
pub fn matches(pattern: &str, name: &str) -> bool {
    if !pattern.contains(['*', '?']) {
        return name.contains(pattern);
    }
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    // Where to go back to: behind the last star, and the first byte it does not cover.
    let mut star: Option<(usize, usize)> = None;
    let (mut p, mut n) = (0, 0);
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, n));
                p += 1;
            }
            Some(b'?') => (p, n) = (p + 1, n + 1),
            Some(byte) if *byte == name[n] => (p, n) = (p + 1, n + 1),
            _ => match star {
                Some((behind, covered)) => {
                    star = Some((behind, covered + 1));
                    (p, n) = (behind, covered + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_wholly_or_in_part() {
        for (pattern, name) in [
            ("print", "tfrt.print.i32"),
            ("tfrt.*.i32", "tfrt.print.i32"),
            ("*", "x"),
            ("*i32", "tfrt.add.i32.i32"),
            ("tfrt.add.i??", "tfrt.add.i64"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("prints", "tfrt.print"),
            ("print*", "tfrt.print"),
            ("?", "ab"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
