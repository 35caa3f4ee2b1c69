//! A text that is open in the editor.

use std::{
    rc::Rc,
    time::{Duration, Instant},
};

use lsp_types::{TextDocumentContentChangeEvent, Uri};
use tfrt_ir::Dialects;

use crate::{
    analysis::Analysis,
    positions::{Encoding, LinedText},
};

/// The largest text that is analysed while it is edited.
pub(crate) const MAX_ANALYSED_BYTES: usize = 64 << 20;

/// A text that is open in the editor.
pub(crate) struct Document {
    pub uri: Uri,
    pub version: i32,
    pub text: LinedText,
    /// The time at which diagnostics are due, if those of this version were not sent.
    pub due: Option<Instant>,
    /// The time that the last diagnostics took.
    pub cost: Duration,
    /// The analysis of the present text, once somebody has asked.
    analysis: Option<Rc<Analysis>>,
    encoding: Encoding,
}

impl Document {
    pub fn new(uri: Uri, version: i32, text: String, encoding: Encoding) -> Document {
        Document {
            uri,
            version,
            text: LinedText::new(text, encoding),
            due: Some(Instant::now()),
            cost: Duration::ZERO,
            analysis: None,
            encoding,
        }
    }

    /// Applies changes, each to the text that the one before has left.
    pub fn change(&mut self, version: i32, changes: Vec<TextDocumentContentChangeEvent>) {
        for change in changes {
            match change.range {
                Some(range) => self.text.replace(range, &change.text),
                None => self.text = LinedText::new(change.text, self.encoding),
            }
        }
        self.version = version;
        self.analysis = None;
        self.due = Some(Instant::now() + self.patience());
    }

    /// Returns how long to wait whether more changes come: the longer the more there is to lose.
    fn patience(&self) -> Duration {
        const LEAST: Duration = Duration::from_millis(50);
        const MOST: Duration = Duration::from_millis(500);
        (self.cost * 2).clamp(LEAST, MOST)
    }

    /// Returns the analysis of the present text; `None` if it is too large.
    pub fn analysis(&mut self, dialects: &Dialects) -> Option<Rc<Analysis>> {
        let (uri, text) = (&self.uri, self.text.text());
        if text.len() > MAX_ANALYSED_BYTES {
            return None;
        }
        let parse = || Rc::new(Analysis::new(&name(uri), text, dialects));
        Some(self.analysis.get_or_insert_with(parse).clone())
    }
}

/// Returns the path of a file, as people write it; any other address as it is.
fn name(uri: &Uri) -> String {
    let Some(path) = uri.as_str().strip_prefix("file://") else {
        return uri.as_str().to_owned();
    };
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let digit = |index: usize| char::from(*behind.get(index)?).to_digit(16);
        let escaped = match first {
            b'%' => digit(0).zip(digit(1)),
            _ => None,
        };
        let byte = escaped.and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
        bytes.push(byte.unwrap_or(first));
        rest = &behind[if byte.is_some() { 2 } else { 0 }..];
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_called_by_their_path() {
        let cases = [
            ("file:///a/b%20c.mlir", "/a/b c.mlir"),
            ("file:///a%", "/a%"),
            ("untitled:Untitled-1", "untitled:Untitled-1"),
        ];
        for (uri, expected) in cases {
            // An address that is none stays what it is.
            if let Ok(uri) = uri.parse() {
                assert_eq!(name(&uri), expected);
            }
        }
    }
}
