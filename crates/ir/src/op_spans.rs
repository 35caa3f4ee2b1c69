//! Source ranges of an operation's parts, found again by reading its tokens once more, when
//! something is wrong with one of them.
//!
//! Modules keep the place of an operation's name and nothing else. Only the
//! line of the name is searched, since that is where diagnostics belong; for
//! operations that no text holds, or that passes have changed, nothing is found.

use crate::{
    lexer::{self, Kind, Mark, Token},
    module::{Module, OpId},
    source::Span,
};

/// The most tokens that are looked at.
const MAX_TOKENS: usize = 1_000;

/// Returns the place of an operand.
pub fn operand(module: &Module, op: OpId, index: usize) -> Option<Span> {
    let (text, tokens) = tokens(module, op)?;
    let mut found: Vec<Span> = Vec::new();
    let mut last: Option<Token> = None;
    for token in tokens.take_while(|token| !token.is(Mark::LeftBrace)) {
        match (token.kind, last) {
            (Kind::Percent, _) => found.push(token.span()),
            // The number of a result, `%a#1`.
            (Kind::Hash, Some(last)) if last.kind == Kind::Percent && last.end == token.start => {
                let whole = found.pop()?.to(token.span());
                found.push(whole);
            }
            _ => {}
        }
        last = Some(token);
    }
    let is_all = found.len() == module.op(op).operands().len();
    let span = found.get(index).copied().filter(|_| is_all)?;
    text.get(span.range()).map(|_| span)
}

/// Returns the place of an attribute that stands in braces, with its value if
/// that is one token.
pub fn attribute(module: &Module, op: OpId, name: &str) -> Option<Span> {
    let (text, tokens) = tokens(module, op)?;
    let mut tokens = tokens.skip_while(|token| !token.is(Mark::LeftBrace));
    while let Some(token) = tokens.next() {
        let written = text.get(token.span().range())?;
        if token.kind != Kind::Word || written != name {
            continue;
        }
        let is_key = tokens.next().is_some_and(|next| next.is(Mark::Equal));
        let value = tokens.next().filter(|_| is_key)?;
        let is_simple = matches!(
            value.kind,
            Kind::Integer | Kind::Float | Kind::String | Kind::At | Kind::Word
        );
        return Some(match is_simple {
            true => token.span().to(value.span()),
            false => token.span(),
        });
    }
    None
}

/// Returns the place of the name of a function that an operation refers to.
pub fn symbol(module: &Module, op: OpId, name: &str) -> Option<Span> {
    let (text, mut tokens) = tokens(module, op)?;
    let is_it = |token: &Token| {
        let written = text.get(token.span().range());
        token.kind == Kind::At && written.is_some_and(|written| &written[1..] == name)
    };
    tokens.find(is_it).map(Token::span)
}

/// Returns the text, and the tokens behind an operation's name on its line.
fn tokens(module: &Module, op: OpId) -> Option<(&str, impl Iterator<Item = Token>)> {
    let span = module.op(op).span();
    let text = module.source()?.text();
    let start = span.range().end;
    if span.is_none() || !text.is_char_boundary(start) {
        return None;
    }
    let line = text[start..].lines().next()?;
    let end = start + line.len();
    let mut at = start;
    let next = move || {
        let token = lexer::token(text, at);
        at = token.end;
        let is_inside = token.end <= end && !matches!(token.kind, Kind::End | Kind::Bad(_));
        is_inside.then_some(token)
    };
    Some((text, std::iter::from_fn(next).take(MAX_TOKENS)))
}
