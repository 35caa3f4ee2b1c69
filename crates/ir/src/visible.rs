//! Escaping of untrusted text that is shown to people: a terminal obeys control characters, so none gets there.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// Returns a text with its control characters, and those that turn the direction of writing, as escapes of Rust's; lines
/// and tabulators stay.
///
/// # Examples
///
/// ```
/// use tfrt_ir::visible;
///
/// assert_eq!(visible::text("two\nlines, \u{1b}[31mred"), "two\nlines, \\u{1b}[31mred");
/// assert_eq!(visible::name("two\nlines"), "two\\nlines");
/// ```
pub fn text(text: &str) -> Cow<'_, str> {
    let is_hidden = |c| is_hidden(c) && !matches!(c, '\n' | '\t');
    escaped(text, is_hidden, |c| c.escape_debug())
}

/// Returns a name in the same way, on one line.
pub fn name(name: &str) -> Cow<'_, str> {
    escaped(name, is_hidden, |c| c.escape_debug())
}

/// Returns a part of a string of JSON in the same way, with JSON's own escapes.
pub fn json(part: &str) -> Cow<'_, str> {
    escaped(part, is_hidden, |c| format!("\\u{:04x}", u32::from(c)))
}

fn is_hidden(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped<E: fmt::Display>(
    text: &str,
    is_hidden: impl Fn(char) -> bool,
    escape: impl Fn(char) -> E,
) -> Cow<'_, str> {
    if !text.contains(&is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_hidden(c) {
            true => write!(shown, "{}", escape(c)).expect("a String takes all text"),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}
