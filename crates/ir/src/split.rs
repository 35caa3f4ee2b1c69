//! A file that holds several programs, with `// -----` between.

use crate::source::Source;

/// The line that separates programs.
const SEPARATOR: &str = "// -----";

/// Cuts a source at its separator lines.
///
/// Each piece keeps the file's name and line numbers, so what is said on it
/// fits the file.
///
/// # Examples
///
/// ```
/// use tfrt_ir::{split::split, Source};
///
/// let pieces = split(&Source::new("a.mlir", "one\n// -----\ntwo\n"));
/// assert_eq!(pieces.len(), 2);
/// assert_eq!(pieces[1].text(), "two\n");
/// assert_eq!(pieces[1].line_column(0), (3, 1));
/// ```
pub fn split(source: &Source) -> Vec<Source> {
    let text = source.text();
    let mut pieces = Vec::new();
    let (mut start, mut start_line) = (0, source.line_offset());
    let (mut at, mut line) = (0, source.line_offset());
    for content in text.split_inclusive('\n') {
        let next = at + content.len();
        line += 1;
        if content.trim_end() == SEPARATOR {
            pieces.push(piece(source, &text[start..at], start_line));
            (start, start_line) = (next, line);
        }
        at = next;
    }
    if pieces.is_empty() {
        return vec![source.clone()];
    }
    pieces.push(piece(source, &text[start..], start_line));
    pieces
}

fn piece(source: &Source, text: &str, line_offset: u32) -> Source {
    Source::with_line_offset(source.name().clone(), text.to_owned(), line_offset)
}

/// Puts programs that were printed back into one text.
pub fn join(pieces: &[String]) -> String {
    pieces.join(&format!("{SEPARATOR}\n"))
}
