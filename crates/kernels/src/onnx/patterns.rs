//! Patterns as models state them: regular expressions in the language of RE2, of which the longest match counts.
//!
//! What the crate means by the same letters differs in a few places, so a pattern is rewritten first: classes such as
//! `\w` are those of ASCII, brackets in brackets and braces that count nothing are letters, and `\Q..\E` quotes.

use std::ops::Range;

use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input, MatchKind};

/// The most bytes of a compiled pattern: patterns come with models.
const PATTERN_BYTES: usize = 1 << 22;

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    /// Finds where the first match begins.
    first: Regex,
    /// Finds where the longest match ends that begins at a place.
    longest: Regex,
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    ///
    /// The reason why it is none, in one line.
    pub(super) fn new(pattern: &str) -> Result<Pattern, String> {
        let pattern = rewritten(pattern);
        let compiled = |kind| {
            let config = Regex::config()
                .match_kind(kind)
                .nfa_size_limit(Some(PATTERN_BYTES));
            let built = Regex::builder().configure(config).build(&pattern);
            built.map_err(|error| {
                let reason = match error.syntax_error() {
                    Some(error) => error.to_string(),
                    None => error.to_string(),
                };
                // Several lines, the first of which show the pattern.
                let reason = reason.rsplit("error: ").next().unwrap_or(&reason);
                reason.trim().replace('\n', " ")
            })
        };
        Ok(Pattern {
            first: compiled(MatchKind::LeftmostFirst)?,
            longest: compiled(MatchKind::All)?,
        })
    }

    /// Whether the pattern matches all of a text.
    pub(super) fn matches_whole(&self, text: &str) -> bool {
        self.longest_at(text, 0) == Some(text.len())
    }

    /// Returns the first match at or behind a place; of those that begin there, the longest.
    pub(super) fn find(&self, text: &str, start: usize) -> Option<Range<usize>> {
        let begin = self.first.find(Input::new(text).range(start..))?.start();
        Some(begin..self.longest_at(text, begin)?)
    }

    fn longest_at(&self, text: &str, start: usize) -> Option<usize> {
        let input = Input::new(text).range(start..).anchored(Anchored::Yes);
        Some(self.longest.search_half(&input)?.offset())
    }
}

/// Rewrites a pattern of RE2 in the language of the crate. What is no pattern of RE2 stays none, or means what the crate
/// says.
fn rewritten(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(letter) = rest.chars().next() {
        rest = match letter {
            '\\' => escape(rest, &mut out),
            '[' => class(rest, &mut out),
            '{' => brace(rest, &mut out),
            _ => {
                out.push(letter);
                &rest[letter.len_utf8()..]
            }
        };
    }
    out
}

/// Rewrites what a backslash begins, and returns what is behind it.
fn escape<'p>(text: &'p str, out: &mut String) -> &'p str {
    let mut letters = text.chars();
    letters.next();
    let Some(letter) = letters.next() else {
        out.push('\\');
        return "";
    };
    let rest = letters.as_str();
    match letter {
        'd' => out.push_str("[0-9]"),
        'D' => out.push_str("[^0-9]"),
        's' => out.push_str(r"[\t\n\f\r ]"),
        'S' => out.push_str(r"[^\t\n\f\r ]"),
        'w' => out.push_str("[0-9A-Za-z_]"),
        'W' => out.push_str("[^0-9A-Za-z_]"),
        'b' => out.push_str(r"(?-u:\b)"),
        'B' => out.push_str(r"(?-u:\B)"),
        '<' | '>' => out.push(letter),
        'Q' => {
            let (quoted, behind) = rest.split_once(r"\E").unwrap_or((rest, ""));
            for letter in quoted.chars() {
                push_literal(letter, out);
            }
            return behind;
        }
        'p' | 'P' | 'x' if rest.starts_with('{') => {
            let end = rest.find('}').map_or(rest.len(), |end| end + 1);
            out.extend(['\\', letter]);
            out.push_str(&rest[..end]);
            return &rest[end..];
        }
        _ => out.extend(['\\', letter]),
    }
    rest
}

/// Rewrites a class in brackets, and returns what is behind it.
fn class<'p>(text: &'p str, out: &mut String) -> &'p str {
    let mut rest = &text[1..];
    out.push('[');
    if let Some(behind) = rest.strip_prefix('^') {
        out.push('^');
        rest = behind;
    }
    let mut is_first = true;
    // A dash that is the sign of a range may have a dash behind it.
    let mut is_range = false;
    while let Some(letter) = rest.chars().next() {
        let named = rest.strip_prefix("[:").and_then(|name| name.find(":]"));
        let was_range = std::mem::take(&mut is_range);
        let was_first = std::mem::take(&mut is_first);
        rest = match (letter, named) {
            (']', _) if !was_first => {
                out.push(']');
                return &rest[1..];
            }
            ('[', Some(len)) => {
                let (name, behind) = rest.split_at(len + "[::]".len());
                out.push_str(name);
                behind
            }
            ('\\', _) => escape(rest, out),
            ('-', _) if !was_first && !was_range => {
                out.push('-');
                is_range = true;
                &rest[1..]
            }
            _ => {
                push_literal(letter, out);
                &rest[letter.len_utf8()..]
            }
        };
    }
    rest
}

/// Rewrites a brace, which is a letter unless it counts, and returns what is behind it.
fn brace<'p>(text: &'p str, out: &mut String) -> &'p str {
    let inside = text[1..].split_once('}').map(|(inside, _)| inside);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit());
    let counts = inside.filter(|inside| match inside.split_once(',') {
        Some((least, most)) => is_number(least) && (most.is_empty() || is_number(most)),
        None => is_number(inside),
    });
    match counts {
        Some(counts) => {
            let (count, behind) = text.split_at(counts.len() + "{}".len());
            out.push_str(count);
            behind
        }
        None => {
            push_literal('{', out);
            &text[1..]
        }
    }
}

fn push_literal(letter: char, out: &mut String) {
    if letter.is_ascii_punctuation() && !matches!(letter, '<' | '>') {
        out.push('\\');
    }
    out.push(letter);
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    /// Returns the matches of a pattern, one after the other.
    fn all<'t>(pattern: &str, text: &'t str) -> Vec<&'t str> {
        let pattern = Pattern::new(pattern).unwrap();
        let (mut found, mut start) = (Vec::new(), 0);
        while let Some(place) = pattern.find(text, start) {
            found.push(&text[place.clone()]);
            start = place.end;
        }
        found
    }

    #[test]
    fn the_longest_of_the_first_matches_is_found() {
        assert_eq!(all("a|ab", "xabcab"), ["ab", "ab"]);
        assert_eq!(all("ab|bcd", "abcd bcd"), ["ab", "bcd"]);
        assert_eq!(all("a+?", "aab"), ["aa"]);
        assert!(Pattern::new("a|ab").unwrap().matches_whole("ab"));
        assert!(!Pattern::new("a|ab").unwrap().matches_whole("abc"));
    }

    #[test]
    fn classes_are_those_of_ascii() {
        assert_eq!(all(r"\w+", "hé wö\u{663}3"), ["h", "w", "3"]);
        assert_eq!(all(r"[\d\s]+", "1 \u{663}\u{b}2"), ["1 ", "2"]);
        assert_eq!(all(r"\bö\w*", "ö aö"), ["ö"]);
        assert_eq!(all(r"[^\W_]+", "a_b"), ["a", "b"]);
        assert_eq!(all(r"\pL+|\p{Nd}", "wö1"), ["wö", "1"]);
        assert_eq!(all("(?i)é+", "Éé"), ["Éé"]);
    }

    #[test]
    fn letters_that_mean_something_elsewhere_are_letters() {
        assert_eq!(all("[a&&b]+|[~~]", "a&b--c~d"), ["a&b", "~"]);
        assert_eq!(all("[[x]+|[]y]+", "[x]y"), ["[x", "]y"]);
        assert_eq!(all("[[:alpha:]+--]+", "a+,-/"), ["a+,-"]);
        assert_eq!(all("[--/]+", "-./0"), ["-./"]);
        assert_eq!(all("a{,2}|b{2}|x{", "a{,2}bbx{"), ["a{,2}", "bb", "x{"]);
        assert_eq!(all(r"\Qa.b\E|\<", "a.b axb <"), ["a.b", "<"]);
        assert_eq!(all(r"a$|\x{62}", "a\nb"), ["b"]);
    }

    #[test]
    fn what_is_no_pattern_is_refused_in_a_line() {
        assert_eq!(Pattern::new("a(b").unwrap_err(), "unclosed group");
        assert!(Pattern::new(r"(a)\1").unwrap_err().contains("backref"));
        let large = "(((a{1000}){1000}){1000})";
        assert!(!Pattern::new(large).unwrap_err().contains('\n'));
    }
}
