//! The lexer: cuts a text into tokens.
//!
//! The lexer is a function from an offset to the token there, so looking ahead
//! is lexing again from a remembered offset. Tokens borrow nothing.

use crate::{codes, source::Span};

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The end of the text.
    End,
    /// Text that is no token; the parser reports the mistake.
    Bad(LexError),
    /// `tfrt.add.i32`, `i32`, `loc`.
    Word,
    /// `%name`.
    Percent,
    /// `^block`.
    Caret,
    /// `#name`.
    Hash,
    /// `!name`.
    Exclaim,
    /// `@name` or `@"any text"`.
    At,
    /// Digits, or `0x` and hexadecimal digits.
    Integer,
    /// Digits with a dot.
    Float,
    /// Text in quotes.
    String,
    /// One of the marks below.
    Mark(Mark),
}

/// Punctuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Arrow,
    LeftParen,
    RightParen,
    LeftBrace,
    RightBrace,
    LeftSquare,
    RightSquare,
    Less,
    Greater,
    Comma,
    Colon,
    ColonColon,
    Equal,
    Plus,
    Minus,
    Star,
    Question,

    Bar,
    Ellipsis,
    /// `{-#`, which starts resources for tools.
    MetadataBegin,
    /// `#-}`.
    MetadataEnd,
}

impl Mark {
    /// Returns the mark as it is written.
    pub fn text(self) -> &'static str {
        match self {
            Mark::Arrow => "->",
            Mark::LeftParen => "(",
            Mark::RightParen => ")",
            Mark::LeftBrace => "{",
            Mark::RightBrace => "}",
            Mark::LeftSquare => "[",
            Mark::RightSquare => "]",
            Mark::Less => "<",
            Mark::Greater => ">",
            Mark::Comma => ",",
            Mark::Colon => ":",
            Mark::ColonColon => "::",
            Mark::Equal => "=",
            Mark::Plus => "+",
            Mark::Minus => "-",
            Mark::Star => "*",
            Mark::Question => "?",

            Mark::Bar => "|",
            Mark::Ellipsis => "...",
            Mark::MetadataBegin => "{-#",
            Mark::MetadataEnd => "#-}",
        }
    }
}

/// The reason why text is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LexError {
    Character,
    String,
    Escape,
    Name,
    Comment,
}

impl LexError {
    /// Returns the message for people.
    pub fn message(self) -> &'static str {
        match self {
            LexError::Character => "unexpected character",
            LexError::String => "expected '\"' in string literal",
            LexError::Escape => "unknown escape in string literal",
            LexError::Name => "expected a name behind the sigil",
            LexError::Comment => "expected '//' to start a comment",
        }
    }
}

impl LexError {
    /// Returns advice on what the author of the text may have meant.
    pub fn help(self, text: &str) -> Option<&'static str> {
        match (self, text) {
            (LexError::Character, ";") => Some("operations end with their line"),
            (LexError::Character, "'") => Some("strings are in double quotes"),
            (LexError::Character, ".") => Some("numbers begin with a digit: 0.5"),
            (LexError::Character, text) if !text.is_ascii() => {
                Some("outside of strings and comments all characters are ASCII")
            }
            (LexError::Name, "#") | (LexError::Comment, _) => Some("comments begin with '//'"),
            (LexError::Name, "@") => Some("any text may be a name in quotes: @\"1st\""),
            (LexError::Escape, _) => Some(
                r"a backslash is written '\\', any other byte as two hexadecimal digits: '\0A'",
            ),
            _ => None,
        }
    }

    /// Returns the code of the mistake.
    pub fn code(self) -> &'static str {
        match self {
            LexError::Character => codes::UNEXPECTED_CHARACTER,
            LexError::String => codes::UNCLOSED_STRING,
            LexError::Escape => codes::UNKNOWN_ESCAPE,
            LexError::Name => codes::MISSING_NAME,
            LexError::Comment => codes::SINGLE_SLASH,
        }
    }
}

/// A token: its kind and its range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
}

impl Token {
    pub fn span(self) -> Span {
        Span::new(self.start, self.end)
    }

    pub fn is(self, mark: Mark) -> bool {
        self.kind == Kind::Mark(mark)
    }
}

/// Iterates over the tokens of a text: words, numbers, strings, marks, and text that is none of
/// these.
///
/// # Examples
///
/// ```
/// let text = "%x = tfrt.constant.i32 41 // a comment";
/// let tokens: Vec<&str> = tfrt_ir::tokens(text).map(|span| &text[span.range()]).collect();
/// assert_eq!(tokens, ["%x", "=", "tfrt.constant.i32", "41"]);
/// ```
pub fn tokens(text: &str) -> impl Iterator<Item = Span> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let token = token(text, from);
        from = token.end;
        (token.kind != Kind::End).then(|| token.span())
    })
}

/// Returns the first token at or behind an offset.
pub(crate) fn token(text: &str, from: usize) -> Token {
    let bytes = text.as_bytes();
    let start = skip_blanks(bytes, from);
    let Some(&first) = bytes.get(start) else {
        return Token {
            kind: Kind::End,
            start: bytes.len(),
            end: bytes.len(),
        };
    };
    let (kind, end) = match first {
        b'a'..=b'z' | b'A'..=b'Z' | b'_' => (Kind::Word, ByteClass::WORD.end(bytes, start + 1)),
        b'%' => sigil(bytes, start, Kind::Percent),
        b'0'..=b'9' => number(bytes, start),
        b'"' => string(bytes, start),
        b'!' => sigil(bytes, start, Kind::Exclaim),
        b'#' if bytes[start..].starts_with(b"#-}") => (Kind::Mark(Mark::MetadataEnd), start + 3),
        b'#' => sigil(bytes, start, Kind::Hash),
        b'@' => at(bytes, start),
        b'^' => sigil(bytes, start, Kind::Caret),
        _ => mark(text, start, first),
    };
    Token { kind, start, end }
}

/// The set of token classes that a byte may be part of.
#[derive(Clone, Copy)]
struct ByteClass(u8);

impl ByteClass {
    const BLANK: ByteClass = ByteClass(1);
    const DIGIT: ByteClass = ByteClass(1 << 1);
    const HEX_DIGIT: ByteClass = ByteClass(1 << 2);
    /// A letter, a digit, `_`, `$` or `.`.
    const WORD: ByteClass = ByteClass(1 << 3);
    /// A byte that may follow a sigil: a byte of a word, or `-`.
    const SUFFIX: ByteClass = ByteClass(1 << 4);

    const fn of(byte: u8) -> ByteClass {
        let mut set = 0;
        if matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
            set |= ByteClass::BLANK.0;
        }
        if byte.is_ascii_digit() {
            set |= ByteClass::DIGIT.0;
        }
        if byte.is_ascii_hexdigit() {
            set |= ByteClass::HEX_DIGIT.0;
        }
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.') {
            set |= ByteClass::WORD.0 | ByteClass::SUFFIX.0;
        }
        if byte == b'-' {
            set |= ByteClass::SUFFIX.0;
        }
        ByteClass(set)
    }

    fn has(self, byte: u8) -> bool {
        CLASSES[usize::from(byte)].0 & self.0 != 0
    }

    /// Returns the offset of the first byte that is not of this class.
    fn end(self, bytes: &[u8], mut at: usize) -> usize {
        while bytes.get(at).is_some_and(|&byte| self.has(byte)) {
            at += 1;
        }
        at
    }
}

/// The classes of all bytes.
static CLASSES: [ByteClass; 256] = {
    let mut classes = [ByteClass(0); 256];
    let mut byte = 0;
    while byte < classes.len() {
        classes[byte] = ByteClass::of(byte as u8);
        byte += 1;
    }
    classes
};

/// Returns the offset of the first byte that is neither blank nor comment.
fn skip_blanks(bytes: &[u8], mut at: usize) -> usize {
    loop {
        at = ByteClass::BLANK.end(bytes, at);
        match bytes.get(at) {
            Some(b'/') if bytes.get(at + 1) == Some(&b'/') => {
                let line = &bytes[at..];
                at += line
                    .iter()
                    .position(|&byte| byte == b'\n')
                    .unwrap_or(line.len());
            }
            // A byte order mark says nothing.
            Some(0xEF) if at == 0 && bytes.starts_with(b"\xEF\xBB\xBF") => at = 3,
            _ => return at,
        }
    }
}

fn sigil(bytes: &[u8], start: usize, kind: Kind) -> (Kind, usize) {
    let first = start + 1;
    let class = match bytes.get(first) {
        Some(byte) if byte.is_ascii_digit() => ByteClass::DIGIT,
        _ => ByteClass::SUFFIX,
    };
    match class.end(bytes, first) {
        end if end == first => (Kind::Bad(LexError::Name), first),
        end => (kind, end),
    }
}

fn at(bytes: &[u8], start: usize) -> (Kind, usize) {
    match bytes.get(start + 1) {
        Some(b'"') => match string(bytes, start + 1) {
            (Kind::String, end) => (Kind::At, end),
            bad => bad,
        },
        Some(byte) if byte.is_ascii_alphabetic() || *byte == b'_' => {
            (Kind::At, ByteClass::WORD.end(bytes, start + 2))
        }
        _ => (Kind::Bad(LexError::Name), start + 1),
    }
}

fn number(bytes: &[u8], start: usize) -> (Kind, usize) {
    let is_hex = bytes[start] == b'0'
        && bytes.get(start + 1) == Some(&b'x')
        && bytes.get(start + 2).is_some_and(u8::is_ascii_hexdigit);
    if is_hex {
        return (Kind::Integer, ByteClass::HEX_DIGIT.end(bytes, start + 2));
    }
    let mut end = ByteClass::DIGIT.end(bytes, start);
    if bytes.get(end) != Some(&b'.') {
        return (Kind::Integer, end);
    }
    end = ByteClass::DIGIT.end(bytes, end + 1);
    if let Some(b'e' | b'E') = bytes.get(end) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if bytes.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
            end = ByteClass::DIGIT.end(bytes, end + 1 + sign);
        }
    }
    (Kind::Float, end)
}

fn string(bytes: &[u8], start: usize) -> (Kind, usize) {
    let mut at = start + 1;
    loop {
        match bytes.get(at) {
            Some(b'"') => return (Kind::String, at + 1),
            None | Some(b'\n' | b'\r' | 0x0B | 0x0C) => return (Kind::Bad(LexError::String), at),
            Some(b'\\') => {
                let hex = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_hexdigit);
                match bytes.get(at + 1) {
                    Some(b'"' | b'\\' | b'n' | b't') => at += 2,
                    _ if hex(at + 1) && hex(at + 2) => at += 3,
                    _ => return (Kind::Bad(LexError::Escape), skip_string(bytes, at + 1)),
                }
            }
            Some(_) => at += 1,
        }
    }
}

/// Returns the end of a string with a bad escape, so that it is one token.
fn skip_string(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at.min(bytes.len())..];
    let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\n'));
    match end {
        Some(index) if rest[index] == b'"' => at + index + 1,
        Some(index) => at + index,
        None => bytes.len(),
    }
}

fn mark(text: &str, start: usize, first: u8) -> (Kind, usize) {
    let bytes = text.as_bytes();
    let followed_by = |next: &[u8]| bytes[start + 1..].starts_with(next);
    let mark = match first {
        b'(' => Mark::LeftParen,
        b')' => Mark::RightParen,
        b'{' if followed_by(b"-#") => Mark::MetadataBegin,
        b'{' => Mark::LeftBrace,
        b'}' => Mark::RightBrace,
        b'[' => Mark::LeftSquare,
        b']' => Mark::RightSquare,
        b'<' => Mark::Less,
        b'>' => Mark::Greater,
        b',' => Mark::Comma,
        b':' if followed_by(b":") => Mark::ColonColon,
        b':' => Mark::Colon,
        b'=' => Mark::Equal,
        b'+' => Mark::Plus,
        b'-' if followed_by(b">") => Mark::Arrow,
        b'-' => Mark::Minus,
        b'*' => Mark::Star,
        b'?' => Mark::Question,
        b'|' => Mark::Bar,
        b'.' if followed_by(b"..") => Mark::Ellipsis,
        b'/' => return (Kind::Bad(LexError::Comment), start + 1),
        _ => {
            let width = text[start..].chars().next().map_or(1, char::len_utf8);
            return (Kind::Bad(LexError::Character), start + width);
        }
    };
    (Kind::Mark(mark), start + mark.text().len())
}

/// Replaces the escapes of a string literal, given with its quotes.
pub(crate) fn unescape(literal: &str) -> Vec<u8> {
    let inner = &literal.as_bytes()[1..literal.len() - 1];
    let mut bytes = Vec::with_capacity(inner.len());
    let mut at = 0;
    while let Some(&byte) = inner.get(at) {
        if byte != b'\\' {
            bytes.push(byte);
            at += 1;
            continue;
        }
        let digit = |index: usize| {
            let byte = inner.get(index).copied().unwrap_or(0);
            char::from(byte)
                .to_digit(16)
                .and_then(|digit| u8::try_from(digit).ok())
                .unwrap_or(0)
        };
        let (escaped, len) = match inner.get(at + 1) {
            Some(b'n') => (b'\n', 2),
            Some(b't') => (b'\t', 2),
            Some(&quoted @ (b'"' | b'\\')) => (quoted, 2),
            _ => (digit(at + 1) << 4 | digit(at + 2), 3),
        };
        bytes.push(escaped);
        at += len;
    }
    bytes
}
