//! The textual forms of `func.func` and `builtin.module`, which no description fits.
//!
//! ```text
//! function  ::= visibility? `@name` `(` arguments `)` (`->` results)?
//!               (`attributes` dictionary)? region?
//! arguments ::= (`%name` `:` type dictionary? location?),* | (type dictionary?),*
//! results   ::= type | `(` (type dictionary?),* `)`
//! module    ::= `@name`? (`attributes` dictionary)? region
//! ```

use crate::{
    attributes::{Attribute, Dictionary},
    codes,
    lexer::{Kind, Mark},
    location::Location,
    module::{Module, OpId},
    parser::{Argument, ParseFailed, Parsed, ParsedOp, Parser},
    printer::{EntryArguments, Printer, WithType},
    source::Span,
    types::{FunctionType, Type},
};

/// The attributes of a function that have a place of their own.
const PLACED: [&str; 5] = [
    "sym_name",
    "sym_visibility",
    "function_type",
    "arg_attrs",
    "res_attrs",
];

/// The attributes of a module that have a place of their own.
const PLACED_IN_MODULE: [&str; 1] = ["sym_name"];

fn signature(module: &Module, op: OpId) -> Option<&FunctionType> {
    module
        .op(op)
        .attribute("function_type")?
        .as_type()?
        .as_function()
}

/// Returns whether a function can be read back from its own form.
pub(crate) fn can_print(module: &Module, op: OpId) -> bool {
    let data = module.op(op);
    let Some(signature) = signature(module, op) else {
        return false;
    };
    let &[region] = data.regions() else {
        return false;
    };
    let body_fits = match module.entry_block(region) {
        None => true,
        Some(block) => {
            let arguments = module.block(block).arguments().iter();
            let types = arguments.map(|&argument| module.value_type(argument));
            module.block(block).last().is_some() && types.eq(&signature.inputs)
        }
    };
    body_fits
        && data.operands().is_empty()
        && data.results().is_empty()
        && data.successors().is_empty()
        && data.attribute("sym_name").is_some_and(is_symbol_name)
        && visibility_fits(data.attribute("sym_visibility"))
        && dictionaries_fit(data.attribute("arg_attrs"), signature.inputs.len())
        && dictionaries_fit(data.attribute("res_attrs"), signature.results.len())
}

/// Returns whether an attribute is text that can stand behind `@`.
fn is_symbol_name(name: &Attribute) -> bool {
    match name {
        Attribute::String(string) if string.ty == Type::None => {
            string.as_str().is_some_and(|name| !name.is_empty())
        }
        _ => false,
    }
}

fn visibility_fits(visibility: Option<&Attribute>) -> bool {
    match visibility {
        None => true,
        Some(visibility) => {
            matches!(visibility.as_str(), Some("private" | "nested" | "public"))
        }
    }
}

fn dictionaries_fit(list: Option<&Attribute>, n: usize) -> bool {
    match list.map(Attribute::as_array) {
        None => true,
        Some(None) => false,
        Some(Some(list)) => {
            let is_empty = |attribute: &Attribute| matches!(attribute, Attribute::Dictionary(entries) if entries.entries().is_empty());
            list.len() == n
                && list
                    .iter()
                    .all(|item| matches!(item, Attribute::Dictionary(_)))
                && !list.iter().all(is_empty)
        }
    }
}

/// Writes a function behind its name.
pub(crate) fn print(printer: &mut Printer<'_>, op: OpId) {
    let module = printer.module;
    let data = module.op(op);
    let signature = signature(module, op).expect("can_print() found it");
    printer.out.push(' ');
    if let Some(visibility) = data.attribute("sym_visibility").and_then(Attribute::as_str) {
        printer.out.push_str(visibility);
        printer.out.push(' ');
    }
    printer.symbol(module.symbol_name(op).expect("can_print() found it"));
    let region = data.regions()[0];
    let body = module.entry_block(region);
    printer.out.push('(');
    for (index, ty) in signature.inputs.iter().enumerate() {
        printer.separator(index);
        match body {
            Some(block) => printer.typed_value(module.block(block).arguments()[index]),
            None => printer.show(ty),
        }
        nested_dictionary(printer, data.attribute("arg_attrs"), index);
        if let Some(block) = body.filter(|_| printer.options.locations) {
            let location = module.block(block).argument_location(index);
            printer.trailing_location(&location);
        }
    }
    printer.out.push(')');
    results(printer, signature, data.attribute("res_attrs"));
    dictionary(printer, op, &PLACED);
    if body.is_some() {
        printer.out.push(' ');
        printer.region(op, region, EntryArguments::Elide);
    }
}

fn results(printer: &mut Printer<'_>, signature: &FunctionType, attributes: Option<&Attribute>) {
    let results = &signature.results;
    if results.is_empty() {
        return;
    }
    printer.out.push_str(" -> ");
    let bare = matches!(results.as_slice(), [single] if !matches!(single, Type::Function(_)));
    if bare && attributes.is_none() {
        return printer.show(&results[0]);
    }
    printer.out.push('(');
    for (index, ty) in results.iter().enumerate() {
        printer.separator(index);
        printer.show(ty);
        nested_dictionary(printer, attributes, index);
    }
    printer.out.push(')');
}

/// Writes the attributes of one argument or result.
fn nested_dictionary(printer: &mut Printer<'_>, list: Option<&Attribute>, index: usize) {
    let dictionary = list
        .and_then(Attribute::as_array)
        .and_then(|list| list.get(index));
    if let Some(Attribute::Dictionary(entries)) = dictionary
        && !entries.entries().is_empty()
    {
        printer.out.push(' ');
        printer.attribute(&Attribute::Dictionary(entries.clone()), WithType::Yes);
    }
}

/// Writes ` attributes {...}`, or nothing if all attributes have a place.
fn dictionary(printer: &mut Printer<'_>, op: OpId, placed: &[&str]) {
    let start = printer.out.len();
    printer.attribute_dictionary(op, placed);
    if printer.out.len() > start {
        printer.out.insert_str(start, " attributes");
    }
}

/// Returns whether a module can be read back from its own form.
pub(crate) fn can_print_module(module: &Module, op: OpId) -> bool {
    let data = module.op(op);
    let name_fits = match data.attribute("sym_name") {
        None => true,
        Some(name) => name.as_str().is_some_and(|name| !name.is_empty()),
    };
    let body_fits = match data.regions() {
        &[region] => match module.region(region).blocks() {
            &[block] => module.block(block).arguments().is_empty(),
            _ => false,
        },
        _ => false,
    };
    name_fits
        && body_fits
        && data.operands().is_empty()
        && data.results().is_empty()
        && data.successors().is_empty()
}

/// Writes a module behind its name.
pub(crate) fn print_module(printer: &mut Printer<'_>, op: OpId) {
    let module = printer.module;
    if let Some(name) = module.symbol_name(op) {
        printer.out.push(' ');
        printer.symbol(name);
    }
    dictionary(printer, op, &PLACED_IN_MODULE);
    printer.out.push(' ');
    printer.region(op, module.op(op).regions()[0], EntryArguments::Elide);
}

/// The types of arguments or results, and the attributes of each.
#[derive(Default)]
struct Typed {
    types: Vec<Type>,
    attributes: Vec<Dictionary>,
}

impl Typed {
    /// Returns the attributes as a list, if there are any.
    fn attribute_list(&self) -> Option<Attribute> {
        let is_any = self
            .attributes
            .iter()
            .any(|dictionary| !dictionary.entries().is_empty());
        let list = self.attributes.iter().cloned().map(Attribute::Dictionary);
        is_any.then(|| Attribute::array(list.collect()))
    }
}

/// Parses a function behind its name.
pub(crate) fn parse<'a>(parser: &mut Parser<'a>, parts: &mut ParsedOp<'a>) -> Parsed<()> {
    let span = parser.token.span();
    for visibility in ["private", "nested", "public"] {
        if parser.eat_word(visibility) {
            let value = Attribute::string(visibility);
            set(parser, parts, span, "sym_visibility", value)?;
        }
    }
    let name = parser.symbol_name()?;
    parser.symbol_is_defined();
    set(parser, parts, span, "sym_name", Attribute::string(&*name))?;
    let mut inputs = Typed::default();
    let mut arguments = Vec::new();
    parser.expect(Mark::LeftParen)?;
    parser.list_until(Mark::RightParen, |parser| {
        argument(parser, &mut inputs, &mut arguments)
    })?;
    let mut results = Typed::default();
    if parser.at(Mark::Colon) {
        return parser.expected(codes::UNEXPECTED_TOKEN, "'->' before the results");
    }
    if parser.eat(Mark::Arrow) {
        result_list(parser, &mut results)?;
    }
    if parser.eat_word("attributes") {
        parser.merge_dictionary(&mut parts.state)?;
    }
    for (name, typed) in [("arg_attrs", &inputs), ("res_attrs", &results)] {
        if let Some(list) = typed.attribute_list() {
            set(parser, parts, span, name, list)?;
        }
    }
    let ty = Type::function(inputs.types, results.types);
    set(parser, parts, span, "function_type", Attribute::Type(ty))?;
    if !parser.at(Mark::LeftBrace) {
        let region = parser.module.create_region();
        parts.state.regions.push(region);
        return Ok(());
    }
    let n_inputs = parts.state.attributes.iter().find_map(|(name, value)| {
        (*name == "function_type")
            .then(|| value.as_type()?.as_function())
            .flatten()
    });
    if n_inputs.is_some_and(|function| function.inputs.len() != arguments.len()) {
        let what = "no body, as the arguments have no names";
        let failed = parser.expected(codes::UNNAMED_ARGUMENTS, what);
        parser.help_last("give each argument a name: %name: type");
        return failed;
    }
    let opening = parser.token.span();
    let region = parser.region_with(arguments)?;
    if parser.module.entry_block(region).is_none() {
        let message = "expected non-empty function body";
        let error = parser.error(codes::EMPTY_BODY, opening, message);
        parser.push(error.help("a body ends in tfrt.return"));
        return Err(ParseFailed);
    }
    parts.state.regions.push(region);
    Ok(())
}

fn set<'a>(
    parser: &mut Parser<'a>,
    parts: &mut ParsedOp<'a>,
    span: Span,
    name: &'static str,
    value: Attribute,
) -> Parsed<()> {
    let name = parser.name(name);
    parser.add_attribute(&mut parts.state, span, name, value)
}

fn argument<'a>(
    parser: &mut Parser<'a>,
    inputs: &mut Typed,
    arguments: &mut Vec<Argument<'a>>,
) -> Parsed<()> {
    let is_named = parser.token.kind == Kind::Percent;
    if is_named != (arguments.len() == inputs.types.len()) && !inputs.types.is_empty() {
        return parser.expected(
            codes::UNNAMED_ARGUMENTS,
            if is_named {
                "type, as before"
            } else {
                "argument name, as before"
            },
        );
    }
    if !is_named {
        let lacks_sigil = parser.token.kind == Kind::Word && parser.peek().is(Mark::Colon);
        if lacks_sigil {
            let name = parser.token_text();
            let failed = parser.expected(codes::EXPECTED_TYPE, "type");
            parser.help_last(&format!("names of arguments begin with '%': %{name}"));
            return failed;
        }
        let ty = parser.ty()?;
        let attributes = dictionary_behind(parser)?;
        inputs.types.push(ty);
        inputs.attributes.push(attributes);
        return Ok(());
    }
    let name = parser.operand()?;
    if !parser.eat(Mark::Colon) {
        let failed = parser.expected(codes::UNEXPECTED_TOKEN, "':'");
        parser.help_last(&format!("an argument has a type: {}: type", name.name));
        return failed;
    }
    let ty = parser.ty()?;
    let attributes = dictionary_behind(parser)?;
    let location = match parser.at_word("loc") {
        true => parser.trailing_location()?,
        false => Location::Unknown,
    };
    inputs.types.push(ty.clone());
    inputs.attributes.push(attributes);
    arguments.push(Argument { name, ty, location });
    Ok(())
}

fn dictionary_behind(parser: &mut Parser<'_>) -> Parsed<Dictionary> {
    match parser.at(Mark::LeftBrace) {
        true => Dictionary::new(parser.dictionary_entries()?).map_err(|_| ParseFailed),
        false => Ok(Dictionary::default()),
    }
}

fn result_list(parser: &mut Parser<'_>, results: &mut Typed) -> Parsed<()> {
    if !parser.at(Mark::LeftParen) {
        results.types.push(parser.ty()?);
        return Ok(());
    }
    parser.bump();
    parser.list_until(Mark::RightParen, |parser| {
        results.types.push(parser.ty()?);
        results.attributes.push(dictionary_behind(parser)?);
        Ok(())
    })
}

/// Parses a module behind its name.
pub(crate) fn parse_module<'a>(parser: &mut Parser<'a>, parts: &mut ParsedOp<'a>) -> Parsed<()> {
    let span = parser.token.span();
    if parser.token.kind == Kind::At {
        let name = parser.symbol_name()?;
        parser.symbol_is_defined();
        set(parser, parts, span, "sym_name", Attribute::string(&*name))?;
    }
    if parser.eat_word("attributes") {
        parser.merge_dictionary(&mut parts.state)?;
    }
    let region = parser.region(true)?;
    if parser.module.entry_block(region).is_none() {
        parser.module.create_block(region);
    }
    parts.state.regions.push(region);
    Ok(())
}
