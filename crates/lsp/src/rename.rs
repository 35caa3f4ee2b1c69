//! Renaming of values, blocks, symbols and aliases.
//!
//! A change is tried before it is proposed: the new text must be the same program.

use std::collections::HashMap;

use tfrt_ir::{
    Source, Span, ValueId,
    index::{NameTarget, Role},
    parse,
    tokens::{TokenKind, tokens},
};

use crate::analysis::{Analysis, NameAt};

/// Returns the piece of text at a place that a new name would replace.
pub(crate) fn renamed_span(analysis: &Analysis, offset: usize) -> Option<Span> {
    let named = analysis.named_at(offset)?;
    let is_known = !analysis.definitions(named).is_empty() && named.target.is_some();
    is_known.then(|| name_only(analysis, named.span))
}

/// Returns the pieces of text that are to be replaced, and the name to be put there.
///
/// # Errors
///
/// Why the new name can't be.
pub(crate) fn rename(
    analysis: &Analysis,
    offset: usize,
    new_name: &str,
) -> Result<(Vec<Span>, String), String> {
    let Some(named) = analysis.named_at(offset) else {
        return Err("there is no name here".to_owned());
    };
    if analysis.diagnostics.has_errors() {
        return Err("names can be changed once the text has no errors".to_owned());
    }
    let new_name = checked_name(analysis, named, new_name)?;
    let spans = all_spans(analysis, named);
    let text = analysis.source.text();
    if named.target == Some(NameTarget::Symbol) {
        check_symbol(analysis, named, &new_name)?;
        return Ok((spans, new_name));
    }
    let mut changed = String::with_capacity(text.len());
    let mut end = 0;
    for span in &spans {
        changed.push_str(&text[end..span.range().start]);
        changed.push_str(&new_name);
        end = span.range().end;
    }
    changed.push_str(&text[end..]);
    match parse(&Source::new(&**analysis.source.name(), changed)) {
        Ok(module) if module.to_string() == analysis.module.to_string() => Ok((spans, new_name)),
        _ => Err(format!("'{new_name}' is in use")),
    }
}

/// Checks of the new name of a symbol what can't be seen by comparing programs, since it is part of
/// the program.
fn check_symbol(analysis: &Analysis, named: NameAt, new_name: &str) -> Result<(), String> {
    let given = analysis.mentions(named, Some(Role::Definition));
    let Some(given) = given.first() else {
        return Err("it is not defined in a form that can be changed".to_owned());
    };
    let mut around = analysis.index.enclosing(given.range().start);
    let module = &analysis.module;
    if around
        .next()
        .is_some_and(|extent| module.op(extent.op).attribute("tfrt.native").is_some())
    {
        return Err("native functions are found by their names".to_owned());
    }
    let program = module.to_string();
    let is_in_use = tokens(&program, 0).any(|token| program[token.span.range()] == *new_name);
    match is_in_use && analysis.symbol(named.span) != new_name[1..] {
        true => Err(format!("'{new_name}' is in use")),
        false => Ok(()),
    }
}

/// Returns the new name with its sigil, if it is one of the right kind.
fn checked_name(analysis: &Analysis, named: NameAt, new_name: &str) -> Result<String, String> {
    let old = analysis.text(named.span);
    let sigil = &old[..1];
    let new_name = match new_name.starts_with(sigil) {
        true => new_name.to_owned(),
        false => format!("{sigil}{new_name}"),
    };
    let is_one = tokens(&new_name, 0)
        .next()
        .is_some_and(|token| token.kind == named.kind && token.span.range() == (0..new_name.len()));
    let is_alias = matches!(named.kind, TokenKind::Hash | TokenKind::Exclaim);
    match is_one && !(is_alias && new_name.contains('.')) {
        true => Ok(new_name),
        false => Err(format!("'{new_name}' is not a name that could stand here")),
    }
}

/// Returns all mentions of an object and of those that have to share its name: several results of
/// one operation, operands and the arguments that they name.
fn all_spans(analysis: &Analysis, named: NameAt) -> Vec<Span> {
    let Some(NameTarget::Value(first)) = named.target else {
        return analysis.mentions(named, None);
    };
    let mut of_value: HashMap<ValueId, Vec<Span>> = HashMap::new();
    let mut at_place: HashMap<Span, Vec<ValueId>> = HashMap::new();
    for mention in analysis.index.mentions() {
        if let NameTarget::Value(value) = mention.target {
            of_value.entry(value).or_default().push(mention.span);
            at_place.entry(mention.span).or_default().push(value);
        }
    }
    let mut waiting = vec![first];
    let mut spans = Vec::new();
    while let Some(value) = waiting.pop() {
        // Each value and each place is taken once.
        for span in of_value.remove(&value).unwrap_or_default() {
            spans.push(name_only(analysis, span));
            waiting.extend(at_place.remove(&span).unwrap_or_default());
        }
    }
    // `%x#0` and `%x#1` are used at different places, and given at one.
    spans.sort();
    spans.dedup();
    spans
}

/// Returns the range of a name without the number behind it, `#1`.
fn name_only(analysis: &Analysis, span: Span) -> Span {
    let text = analysis.text(span);
    match text.find('#') {
        Some(at) if at > 0 && text.starts_with('%') => {
            Span::new(span.range().start, span.range().start + at)
        }
        _ => span,
    }
}
