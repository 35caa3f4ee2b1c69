//! Parsing and printing of arrays of pairs that are written as dictionaries.
//!
//! ```text
//! [["key", value], ...]    the attribute
//! {key = value, ...}       in an operation's own form, in the order of the array
//! ```

use std::collections::HashSet;

use crate::{
    attributes::Attribute,
    lexer::Mark,
    module::Operation,
    name::Name,
    parser::{Parsed, ParsedOp, Parser},
    printer::Printer,
    types::Type,
};

/// Parses a dictionary, which may be left out, into an attribute of an operation.
pub(super) fn parse<'a>(
    parser: &mut Parser<'a>,
    parts: &mut ParsedOp<'a>,
    name: &'static str,
) -> Parsed<()> {
    let span = parser.token.span();
    let entries = match parser.at(Mark::LeftBrace) {
        true => parser.dictionary_as_written()?,
        false => Vec::new(),
    };
    let pairs = entries.into_iter().map(|(key, value)| {
        let key = Attribute::string(key.as_str());
        Attribute::array(vec![key, value])
    });
    let value = Attribute::array(pairs.collect());
    let name = parser.name(name);
    parser.add_attribute(&mut parts.state, span, name, value)
}

/// Returns whether an attribute can be written as a dictionary.
pub(super) fn is_dictionary(attribute: &Attribute) -> bool {
    let Some(elements) = attribute.as_array() else {
        return false;
    };
    let mut keys = HashSet::new();
    elements
        .iter()
        .all(|element| pair(element).is_some_and(|(key, _)| !key.is_empty() && keys.insert(key)))
}

/// Returns the key and the value of an element.
fn pair(element: &Attribute) -> Option<(&str, &Attribute)> {
    match element.as_array()? {
        [Attribute::String(key), value] if key.ty == Type::None => Some((key.as_str()?, value)),
        _ => None,
    }
}

/// Writes a dictionary; an empty one only if a later one is not, which would be taken for it.
pub(super) fn print(printer: &mut Printer<'_>, data: &Operation, paired: &[&str], name: &str) {
    let elements_of = |name: &str| data.attribute(name).and_then(Attribute::as_array);
    let mut from_here = paired.iter().skip_while(|other| **other != name);
    if from_here.all(|name| elements_of(name).is_none_or(<[Attribute]>::is_empty)) {
        return;
    }
    let elements = elements_of(name).unwrap_or_default();
    printer.out.push('{');
    for (index, (key, value)) in elements.iter().filter_map(pair).enumerate() {
        printer.separator(index);
        printer.entry(&(Name::from(key), value.clone()));
    }
    printer.out.push('}');
}
