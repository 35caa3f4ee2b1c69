//! Tokens of a text for tools that look at it without parsing, as editors do
//! where the text is not finished.

use crate::{
    lexer::{self, Kind},
    source::Span,
};

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// `tfrt.add.i32`, `i32`, `loc`.
    Word,
    /// `%name`.
    Value,
    /// `^name`.
    Block,
    /// `@name` or `@"any text"`.
    Symbol,
    /// `#name`.
    Hash,
    /// `!name`.
    Exclaim,
    /// `17`, `0x2a`, `1.5e3`.
    Number,
    /// Text in quotes.
    String,
    /// Punctuation, as it is written.
    Mark(&'static str),
    /// Text that is no token: a sigil without a name, a string without an end.
    Bad,
}

/// A token and its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The kind.
    pub kind: TokenKind,
    /// The range.
    pub span: Span,
}

/// Iterates over the tokens from an offset on, comments left out.
///
/// No token goes over the end of a line, so the start of each line is an offset
/// to begin at.
///
/// # Panics
///
/// If the offset lies within a character.
///
/// # Examples
///
/// ```
/// use tfrt_ir::tokens::{tokens, TokenKind};
///
/// let kinds: Vec<TokenKind> = tokens("%x = loc // rest", 0).map(|token| token.kind).collect();
/// assert_eq!(kinds, [TokenKind::Value, TokenKind::Mark("="), TokenKind::Word]);
/// ```
pub fn tokens(text: &str, from: usize) -> impl Iterator<Item = Token> + '_ {
    let mut at = from;
    std::iter::from_fn(move || {
        let token = lexer::token(text, at);
        at = token.end;
        let kind = match token.kind {
            Kind::End => return None,
            Kind::Bad(_) => TokenKind::Bad,
            Kind::Word => TokenKind::Word,
            Kind::Percent => TokenKind::Value,
            Kind::Caret => TokenKind::Block,
            Kind::Hash => TokenKind::Hash,
            Kind::Exclaim => TokenKind::Exclaim,
            Kind::At => TokenKind::Symbol,
            Kind::Integer | Kind::Float => TokenKind::Number,
            Kind::String => TokenKind::String,
            Kind::Mark(mark) => TokenKind::Mark(mark.text()),
        };
        let span = token.span();
        Some(Token { kind, span })
    })
}

/// Replaces the escapes of a string literal, given with its quotes; what is not UTF-8 then is
/// replaced, too.
pub fn unescape(literal: &str) -> String {
    match literal.len() < 2 {
        true => literal.to_owned(),
        false => String::from_utf8_lossy(&lexer::unescape(literal)).into_owned(),
    }
}
