//! Parsing of operations by the description of their form.

use smallvec::SmallVec;

use super::{Format, Item, WARMUP, Word, pairs};
use crate::{
    attributes::Attribute,
    codes,
    dialect::{AttributeKind, Keywords, OpDef, Results, ValueKind, function},
    lexer::{Kind, Mark},
    location::Location,
    module::OpState,
    parser::{Argument, ExpectedType, ParseFailed, Parsed, ParsedOp, Parser},
    types::Type,
};

/// The state of parsing one operation.
struct State {
    next_operand: usize,
    /// Whether the operands have their types.
    is_resolved: bool,
    has_results: bool,
    /// The types of declared operands that may have any, as far as they were written.
    open_types: Vec<Type>,
    /// The type of a result that may have any.
    result_type: Option<Type>,
}

/// Parses what follows the name of an operation.
pub(crate) fn parse<'a>(
    parser: &mut Parser<'a>,
    parts: &mut ParsedOp<'a>,
    format: &'static Format,
) -> Parsed<()> {
    match format.items[0].word {
        Word::Function => return function::parse(parser, parts),
        Word::Module => return function::parse_module(parser, parts),
        _ => {}
    }
    let definition = parts.definition.ok_or(ParseFailed)?;
    let mut state = State {
        next_operand: 0,
        is_resolved: false,
        has_results: false,
        open_types: Vec::new(),
        result_type: None,
    };
    parse_items(parser, parts, definition, &mut state, &format.items)?;
    resolve_declared(parser, parts, definition, &mut state, &[])?;
    if !state.has_results {
        set_results(parser, parts, definition, state.result_type.as_ref());
    }
    Ok(())
}

fn parse_items<'a>(
    parser: &mut Parser<'a>,
    parts: &mut ParsedOp<'a>,
    definition: &'static OpDef,
    state: &mut State,
    items: &'static [Item],
) -> Parsed<()> {
    for item in items {
        // Regions nest, so the way to them takes little stack.
        match &item.word {
            Word::Region => add_region(parser, parts, definition, state)?,
            Word::Else => else_region(parser, parts, definition, state)?,
            word => parse_word(parser, parts, definition, state, word)?,
        }
    }
    Ok(())
}

fn parse_word<'a>(
    parser: &mut Parser<'a>,
    parts: &mut ParsedOp<'a>,
    definition: &'static OpDef,
    state: &mut State,
    word: &'static Word,
) -> Parsed<()> {
    match word {
        Word::Operand => {
            let declared = definition.operand_defs().get(state.next_operand);
            if parser.token.kind != Kind::Percent
                && let Some(declared) = declared
            {
                return parser.expected(codes::EXPECTED_VALUE, declared.name);
            }
            parts.operands.push(parser.operand()?);
            state.next_operand += 1;
            Ok(())
        }
        Word::Operands => operands(parser, parts, definition),
        Word::TypedOperands => typed_operands(parser, parts, state),
        Word::Attribute(name) => attribute(parser, parts, definition, name),
        Word::AttributeDictionary => match parser.at(Mark::LeftBrace) {
            true => parser.merge_dictionary(&mut parts.state),
            false => Ok(()),
        },
        Word::AttributesKeyword => match parser.eat_word("attributes") {
            true => parser.merge_dictionary(&mut parts.state),
            false => Ok(()),
        },
        Word::Settings => settings(parser, parts),
        Word::OperandTypes => operand_types(parser, parts, definition, state),
        Word::OpenTypes => {
            state.open_types = parser.bare_type_list()?;
            state.result_type = state.open_types.first().cloned();
            resolve_declared(parser, parts, definition, state, &[])
        }
        Word::TypeAttribute(name) => {
            let span = parser.token.span();
            let ty = parser.ty()?;
            state.result_type = Some(ty.clone());
            let name = parser.name(name);
            parser.add_attribute(&mut parts.state, span, name, Attribute::Type(ty))
        }
        Word::ColonOperandTypes => {
            if !parser.at(Mark::Colon)
                && let Some(types) = older_types(parser, parts, definition)
            {
                return resolve_declared(parser, parts, definition, state, &types);
            }
            parser.expect(Mark::Colon)?;
            operand_types(parser, parts, definition, state)
        }
        Word::FunctionalType | Word::Types | Word::TypesOrResults => {
            let mut inputs: SmallVec<[Type; 4]> = SmallVec::new();
            let mut results = SmallVec::new();
            let older = match word {
                Word::TypesOrResults => older_types(parser, parts, definition),
                _ => None,
            };
            match older {
                Some(types) => parser.signature_or_results(types, &mut inputs, &mut results)?,
                None => parser.signature(&mut inputs, &mut results)?,
            }
            resolve_declared(parser, parts, definition, state, &inputs)?;
            if let Word::Types | Word::TypesOrResults = word {
                let declared = definition.result_defs().declared().iter();
                let declared = declared.filter_map(|result| result.kind.ty());
                results.insert_many(0, declared);
            }
            parts.state.result_types = results;
            state.has_results = true;
            Ok(())
        }
        Word::Pairs(name) => pairs::parse(parser, parts, name),
        Word::ResultCount => result_count(parser, parts, definition, state),
        Word::Group(items) => group(parser, parts, definition, state, items),
        Word::Literal(text) => literal(parser, text),
        Word::Region | Word::Else | Word::Function | Word::Module => Ok(()),
    }
}

/// Parses the types of the operands behind the declared ones, and resolves all.
fn operand_types<'a>(
    parser: &mut Parser<'a>,
    parts: &mut ParsedOp<'a>,
    definition: &OpDef,
    state: &mut State,
) -> Parsed<()> {
    let types = match parser.at_type() {
        true => parser.bare_type_list()?,
        false if parts.operands.len() == definition.operand_defs().len() => Vec::new(),
        false => return parser.expected(codes::EXPECTED_TYPE, "type"),
    };
    resolve_declared(parser, parts, definition, state, &types)
}

/// Returns the types of the operands behind the declared ones, if there are some and all of them
/// are defined above.
fn older_types<'a>(
    parser: &mut Parser<'a>,
    parts: &ParsedOp<'a>,
    definition: &OpDef,
) -> Option<Vec<Type>> {
    let rest = parts.operands.get(definition.operand_defs().len()..)?;
    let types = rest.iter().map(|operand| parser.type_above(*operand));
    types
        .collect::<Option<Vec<Type>>>()
        .filter(|types| !types.is_empty())
}

/// Parses operands with commas between, none if there is none.
fn operands<'a>(
    parser: &mut Parser<'a>,
    parts: &mut ParsedOp<'a>,
    definition: &OpDef,
) -> Parsed<()> {
    if parser.token.kind != Kind::Percent {
        let declared = definition.operand_defs();
        return match declared.get(parts.operands.len()) {
            Some(missing) => parser.expected(codes::EXPECTED_VALUE, missing.name),
            None => Ok(()),
        };
    }
    loop {
        parts.operands.push(parser.operand()?);
        if !parser.eat(Mark::Comma) {
            return Ok(());
        }
    }
}

fn typed_operands<'a>(
    parser: &mut Parser<'a>,
    parts: &mut ParsedOp<'a>,
    state: &mut State,
) -> Parsed<()> {
    let mut types = Vec::new();
    while parser.token.kind == Kind::Percent {
        parts.operands.push(parser.operand()?);
        parser.expect(Mark::Colon)?;
        types.push(parser.ty()?);
        if !parser.eat(Mark::Comma) {
            break;
        }
    }
    state.is_resolved = true;
    parser.resolve_operands(parts, types.iter().map(ExpectedType::Type))
}

fn attribute<'a>(
    parser: &mut Parser<'a>,
    parts: &mut ParsedOp<'a>,
    definition: &OpDef,
    name: &'static str,
) -> Parsed<()> {
    let declared = definition
        .attribute_defs()
        .iter()
        .find(|declared| declared.name == name);
    let span = parser.token.span();
    let value = match declared.map_or(AttributeKind::Any, |declared| declared.kind) {
        AttributeKind::Typed(kind) => match kind.ty() {
            Some(ty) => parser.attribute_of_type(&ty)?,
            None => parser.attribute()?,
        },
        AttributeKind::String => Attribute::string(parser.string_literal()?),
        AttributeKind::FlatSymbol => {
            let name = parser.symbol_name()?;
            if parser.at(Mark::ColonColon) {
                return parser.expected(codes::EXPECTED_SYMBOL, "flat symbol reference");
            }
            Attribute::symbol(name)
        }
        AttributeKind::FlatSymbols => {
            parser.expect(Mark::LeftSquare)?;
            let mut symbols = Vec::new();
            parser.list_until(Mark::RightSquare, |parser| {
                symbols.push(Attribute::symbol(parser.symbol_name()?));
                Ok(())
            })?;
            Attribute::array(symbols)
        }
        AttributeKind::Keyword(keywords) => keyword(parser, keywords)?,
        AttributeKind::Any
        | AttributeKind::Number(_)
        | AttributeKind::Array(_)
        | AttributeKind::Strings
        | AttributeKind::Pairs
        | AttributeKind::Dictionaries
        | AttributeKind::Integer
        | AttributeKind::Integers
        | AttributeKind::Float
        | AttributeKind::Floats
        | AttributeKind::ElementType
        | AttributeKind::Elements
        | AttributeKind::FunctionType => parser.attribute()?,
    };
    let name = parser.name(name);
    parser.add_attribute(&mut parts.state, span, name, value)
}

/// Parses the name of an integer's value.
fn keyword(parser: &mut Parser<'_>, keywords: &'static Keywords) -> Parsed<Attribute> {
    let value = match parser.token.kind {
        Kind::Word => keywords.attribute(parser.token_text()),
        _ => None,
    };
    let Some(value) = value else {
        let what = format!("{}: one of {}", keywords.what, keywords.list());
        return parser.expected(codes::EXPECTED_ATTRIBUTE, &what);
    };
    parser.bump();
    Ok(value)
}

/// Parses `key = number, ...`, at least one, each an `i32`.
fn settings<'a>(parser: &mut Parser<'a>, parts: &mut ParsedOp<'a>) -> Parsed<()> {
    let span = parser.token.span();
    let mut entries = Vec::new();
    loop {
        if parser.token.kind != Kind::Word {
            return parser.expected(codes::EXPECTED_ATTRIBUTE_NAME, "name of a setting");
        }
        let key = parser.token_text();
        parser.bump();
        parser.expect(Mark::Equal)?;
        let value = parser.attribute_of_type(&Type::I32)?;
        entries.push((parser.name(key), value));
        if !parser.eat(Mark::Comma) {
            break;
        }
    }
    if !entries.iter().any(|(key, _)| *key == WARMUP) {
        entries.push((parser.name(WARMUP), Attribute::integer(1, Type::I32)));
    }
    parser.merge_entries(&mut parts.state, span, entries)
}

/// Gives declared operands their types, and the rest those that were written.
fn resolve_declared<'a>(
    parser: &mut Parser<'a>,
    parts: &mut ParsedOp<'a>,
    definition: &OpDef,
    state: &mut State,
    rest: &[Type],
) -> Parsed<()> {
    if state.is_resolved {
        return Ok(());
    }
    state.is_resolved = true;
    let declared = definition.operand_defs();
    let n_operands = parts.operands.len();
    // A chain may be left to `sequence-effects`; if not, the verifier says so.
    let is_over = |last| parser.token.kind != Kind::Percent || parser.is_on_a_line_after(last);
    let lacks_chain = n_operands + 1 == declared.len()
        && definition.chain_operand() == Some(n_operands)
        && parts.operands.last().is_some_and(|last| is_over(last.span));
    let declared = &declared[..declared.len() - usize::from(lacks_chain)];
    if definition.rest_def().is_none() && n_operands != declared.len() {
        let span = match parts.operands.get(declared.len()) {
            Some(extra) => extra.span,
            None => parser.token.span(),
        };
        let message = format!("expected {} operands, found {n_operands}", declared.len());
        let error = parser.error(codes::WRITTEN_OPERAND_COUNT, span, message);
        let error = match n_operands < declared.len() {
            true if parser.token.kind == Kind::Percent => parser
                .point_behind(error)
                .help("operands have commas between them"),
            true => parser.point_behind(error),
            false => error,
        };
        parser.push(error);
        return Err(ParseFailed);
    }
    if declared.len() > n_operands {
        return parser.expected(codes::EXPECTED_VALUE, declared[n_operands].name);
    }
    // Types that are not written are those of the values, if these are defined above.
    let mut open = std::mem::take(&mut state.open_types).into_iter();
    let operands = parts.operands.iter().zip(declared);
    let open: SmallVec<[Option<Type>; 8]> = operands
        .map(|(operand, declared)| match declared.kind.ty() {
            Some(_) => None,
            None => open.next().or_else(|| parser.type_above(*operand)),
        })
        .collect();
    let wanted: SmallVec<[ExpectedType<'_>; 8]> = declared
        .iter()
        .zip(&open)
        .map(|(operand, open)| match open {
            Some(ty) => ExpectedType::Type(ty),
            None => ExpectedType::Kind(operand.kind),
        })
        .collect();
    let rest_kind = definition.rest_def().map(|rest| rest.kind);
    if let Some(kind) = rest_kind.filter(|&kind| kind != ValueKind::Any) {
        let rest = std::iter::repeat_n(ExpectedType::Kind(kind), n_operands - declared.len());
        let kinds: SmallVec<[ExpectedType<'_>; 8]> = wanted.into_iter().chain(rest).collect();
        return parser.resolve_operands(parts, kinds.into_iter());
    }
    if rest.is_empty() {
        return parser.resolve_operands(parts, wanted.into_iter());
    }
    let types: SmallVec<[ExpectedType<'_>; 8]> = wanted
        .into_iter()
        .chain(rest.iter().map(ExpectedType::Type))
        .collect();
    parser.resolve_operands(parts, types.into_iter())
}

fn set_results(
    parser: &Parser<'_>,
    parts: &mut ParsedOp<'_>,
    definition: &OpDef,
    any: Option<&Type>,
) {
    match definition.result_defs() {
        Results::Exactly(results) | Results::AtLeast(results, _) => {
            let types = results.iter();
            let types = types.filter_map(|result| result.kind.ty().or(any.cloned()));
            parts.state.result_types = types.collect();
        }
        Results::LikeRest(_) => {
            let rest = &parts.state.operands[definition.operand_defs().len()..];
            let types = rest
                .iter()
                .map(|&value| parser.module.value_type(value).clone());
            parts.state.result_types = types.collect();
        }
    }
}

/// Parses `: N`, which is left out for 0.
fn result_count<'a>(
    parser: &mut Parser<'a>,
    parts: &mut ParsedOp<'a>,
    definition: &OpDef,
    state: &mut State,
) -> Parsed<()> {
    /// The most results that a count may declare: more would be a mistake, which should not take
    /// memory.
    const MAX_RESULTS: usize = 1 << 16;
    set_results(parser, parts, definition, None);
    state.has_results = true;
    if !parser.eat(Mark::Colon) {
        return Ok(());
    }
    let count = parser.token_text().parse().ok();
    let count = count.filter(|&count| parser.token.kind == Kind::Integer && count <= MAX_RESULTS);
    let Some(count) = count else {
        let what = "number of results, at most 65536";
        return parser.expected(codes::RESULT_NUMBER, what);
    };
    parser.bump();
    let kind = match definition.result_defs() {
        Results::AtLeast(_, rest) => rest.kind.ty(),
        Results::Exactly(_) | Results::LikeRest(_) => None,
    };
    let types = kind.into_iter().cycle().take(count);
    parts.state.result_types.extend(types);
    Ok(())
}

fn add_region<'a>(
    parser: &mut Parser<'a>,
    parts: &mut ParsedOp<'a>,
    definition: &OpDef,
    state: &mut State,
) -> Parsed<()> {
    let arguments = region_arguments(parser, parts, definition, state)?;
    let region = parser.region_with(arguments)?;
    parts.state.regions.push(region);
    Ok(())
}

/// Returns the arguments of a region, which have the names of operands.
fn region_arguments<'a>(
    parser: &mut Parser<'a>,
    parts: &mut ParsedOp<'a>,
    definition: &OpDef,
    state: &mut State,
) -> Parsed<Vec<Argument<'a>>> {
    resolve_declared(parser, parts, definition, state, &[])?;
    let shadowed = definition.shadowed_operands(parts.operands.len());
    let mut arguments: Vec<Argument<'a>> = Vec::with_capacity(shadowed.len());
    let mut seen = std::collections::HashSet::new();
    for index in shadowed {
        let operand = parts.operands[index];
        if !seen.insert((operand.name, operand.number)) {
            let message = format!("region entry argument '{}' is already in use", operand.name);
            let error = parser.error(codes::REPEATED_ARGUMENT, operand.span, message);
            let help = "operands give their names to the region's arguments; in generic form, \
                        arguments have names of their own";
            parser.push(error.help(help));
            return Err(ParseFailed);
        }
        let ty = parser
            .module
            .value_type(parts.state.operands[index])
            .clone();
        arguments.push(Argument {
            name: operand,
            ty,
            location: Location::Unknown,
        });
    }
    Ok(arguments)
}

/// Parses `else` and its region, or makes one that returns nothing.
fn else_region<'a>(
    parser: &mut Parser<'a>,
    parts: &mut ParsedOp<'a>,
    definition: &OpDef,
    state: &mut State,
) -> Parsed<()> {
    if parser.eat_word("else") {
        return add_region(parser, parts, definition, state);
    }
    trivial_else(parser, parts, definition)
}

fn trivial_else<'a>(
    parser: &mut Parser<'a>,
    parts: &mut ParsedOp<'a>,
    definition: &OpDef,
) -> Parsed<()> {
    if !parts.state.result_types.is_empty() {
        let name = definition.name();
        let message = format!("expected 'else' in '{name}' with result values");
        let error = parser.error(codes::MISSING_ELSE, parser.token.span(), message);
        let error = parser.point_behind(error);
        parser.push(error);
        return Err(ParseFailed);
    }
    let region = parser.module.create_region();
    let block = parser.module.create_block(region);
    for index in definition.shadowed_operands(parts.operands.len()) {
        let ty = parser
            .module
            .value_type(parts.state.operands[index])
            .clone();
        parser.module.add_argument(block, ty, Location::Unknown);
    }
    let location = parser.location_here();
    let end = parser
        .module
        .create(OpState::new("tfrt.return").location(location));
    parser.module.append(block, end);
    parts.state.regions.push(region);
    Ok(())
}

/// Parses items that are only there if their first mark is.
fn group<'a>(
    parser: &mut Parser<'a>,
    parts: &mut ParsedOp<'a>,
    definition: &'static OpDef,
    state: &mut State,
    items: &'static [Item],
) -> Parsed<()> {
    let is_there = match items.first().map(|item| &item.word) {
        Some(Word::Literal(text)) => mark(text).is_some_and(|mark| parser.at(mark)),
        _ => false,
    };
    if is_there {
        return parse_items(parser, parts, definition, state, items);
    }
    let n_rest = parts
        .operands
        .len()
        .saturating_sub(definition.operand_defs().len());
    if n_rest > 0 {
        return parser.expected(
            codes::OPERAND_TYPE_COUNT,
            "':' and the types of the operands",
        );
    }
    Ok(())
}

fn literal(parser: &mut Parser<'_>, text: &'static str) -> Parsed<()> {
    match mark(text) {
        Some(mark) => parser.expect(mark),
        None => parser.expect_word(text),
    }
}

fn mark(text: &str) -> Option<Mark> {
    Some(match text {
        "(" => Mark::LeftParen,
        ")" => Mark::RightParen,
        "[" => Mark::LeftSquare,
        "]" => Mark::RightSquare,
        "," => Mark::Comma,
        ":" => Mark::Colon,
        _ => return None,
    })
}
