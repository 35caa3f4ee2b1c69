//! Printing of operations by the description of their form.

use super::{Format, Item, WARMUP, Word, pairs};
use crate::{
    attributes::Attribute,
    dialect::{AttributeKind, OpDef, Results, Traits, function},
    module::{Module, OpId, Operation, RegionId, ValueId},
    name::Name,
    printer::{EntryArguments, Printer, WithType},
    types::Type,
};

/// Returns whether an operation's own form can be read back without loss.
pub(crate) fn can_print(module: &Module, op: OpId, format: &Format) -> bool {
    let data = module.op(op);
    let Some(definition) = data.definition() else {
        return false;
    };
    match format.items[0].word {
        Word::Function => return function::can_print(module, op),
        Word::Module => return function::can_print_module(module, op),
        _ => {}
    }
    data.successors().is_empty()
        && operands_fit(module, data, definition)
        && results_fit(module, data, definition)
        && regions_fit(module, data, definition)
        && format
            .placed
            .iter()
            .all(|name| attribute_fits(data, definition, name))
        && settings_fit(data, definition, format)
        && format
            .paired
            .iter()
            .all(|name| data.attribute(name).is_some_and(pairs::is_dictionary))
        && others_fit(data, format)
}

fn operands_fit(module: &Module, data: &Operation, definition: &OpDef) -> bool {
    let (operands, declared) = (data.operands(), definition.operand_defs());
    let count_fits = match definition.rest_def() {
        Some(_) => operands.len() >= declared.len(),
        None => operands.len() == declared.len(),
    };
    let rest = definition.rest_def().into_iter().cycle();
    let mut pairs = declared.iter().chain(rest).zip(operands);
    count_fits && pairs.all(|(wanted, &operand)| wanted.kind.accepts(module.value_type(operand)))
}

fn results_fit(module: &Module, data: &Operation, definition: &OpDef) -> bool {
    let types = |values: &[ValueId]| -> Vec<Type> {
        values
            .iter()
            .map(|&value| module.value_type(value).clone())
            .collect()
    };
    match definition.result_defs() {
        Results::Exactly(wanted) => {
            let results = types(data.results());
            let mut pairs = wanted.iter().zip(&results);
            wanted.len() == results.len() && pairs.all(|(wanted, ty)| wanted.kind.accepts(ty))
        }
        Results::AtLeast(declared, rest) => {
            let results = types(data.results());
            let wanted = declared.iter().chain(std::iter::repeat(rest));
            let mut pairs = wanted.zip(&results);
            declared.len() <= results.len() && pairs.all(|(wanted, ty)| wanted.kind.accepts(ty))
        }
        Results::LikeRest(_) => {
            types(data.results()) == types(&data.operands()[definition.operand_defs().len()..])
        }
    }
}

fn regions_fit(module: &Module, data: &Operation, definition: &OpDef) -> bool {
    if data.regions().len() != definition.n_regions() {
        return false;
    }
    let shadowed = definition.shadowed_operands(data.operands().len());
    let mut values: Vec<ValueId> = shadowed
        .iter()
        .map(|&index| data.operands()[index])
        .collect();
    let types: Vec<&Type> = values
        .iter()
        .map(|&value| module.value_type(value))
        .collect();
    let fits = data
        .regions()
        .iter()
        .all(|&region| match module.region(region).blocks() {
            &[block] => {
                let arguments = module.block(block).arguments();
                let argument_types = arguments
                    .iter()
                    .map(|&argument| module.value_type(argument));
                module.block(block).last().is_some() && argument_types.eq(types.iter().copied())
            }
            _ => false,
        });
    if !fits {
        return false;
    }
    // One name cannot stand for two arguments.
    values.sort();
    data.regions().is_empty() || values.windows(2).all(|pair| pair[0] != pair[1])
}

/// Returns whether an attribute has the kind that its place in the form says.
pub(crate) fn attribute_fits(data: &Operation, definition: &OpDef, name: &str) -> bool {
    let kind = definition
        .attribute_defs()
        .iter()
        .find(|wanted| wanted.name == name);
    match (kind.map(|wanted| wanted.kind), data.attribute(name)) {
        // A value without a name has no place in the operation's own form.
        (Some(AttributeKind::Keyword(keywords)), Some(attribute)) => {
            keywords.word_of(attribute).is_some()
        }
        (Some(kind), Some(attribute)) => kind.accepts(attribute),
        _ => false,
    }
}

/// Returns the attributes that are written as settings, in the order in which
/// they are written: the declared ones, then others.
fn settings<'d>(
    data: &'d Operation,
    definition: &OpDef,
    placed: &[&str],
) -> Vec<&'d (Name, Attribute)> {
    let mut entries: Vec<_> = data
        .attributes()
        .iter()
        .filter(|(name, _)| !placed.contains(&name.as_str()))
        .collect();
    let rank = |name: &Name| {
        let mut declared = definition.attribute_defs().iter();
        declared
            .position(|wanted| *name == wanted.name)
            .unwrap_or(usize::MAX)
    };
    entries.sort_by_key(|(name, _)| rank(name));
    entries
}

fn settings_fit(data: &Operation, definition: &OpDef, format: &Format) -> bool {
    if !format.items.iter().any(|item| item.word == Word::Settings) {
        return true;
    }
    let entries = settings(data, definition, &format.placed);
    let is_i32 =
        |value: &Attribute| matches!(value, Attribute::Integer(integer) if integer.ty == Type::I32);
    // The parser would add the one that may be left out.
    data.attribute(WARMUP).is_some() && entries.iter().all(|(_, value)| is_i32(value))
}

/// Returns whether there is a place for the attributes that have none of their own.
fn others_fit(data: &Operation, format: &Format) -> bool {
    let is_place = |item: &Item| {
        let places = [
            Word::AttributeDictionary,
            Word::AttributesKeyword,
            Word::Settings,
        ];
        places.contains(&item.word)
    };
    let n_placed = format.placed.len() + format.paired.len();
    format.items.iter().any(is_place) || data.attributes().len() == n_placed
}

/// Writes an operation behind its name.
pub(crate) fn print(printer: &mut Printer<'_>, op: OpId, format: &Format) {
    match format.items[0].word {
        Word::Function => return function::print(printer, op),
        Word::Module => return function::print_module(printer, op),
        _ => {}
    }
    let mut state = State {
        op,
        format,
        next_operand: 0,
        next_region: 0,
    };
    print_items(printer, &mut state, &format.items, true);
}

/// Returns whether an attribute is written with its type in its place.
fn with_type(definition: &OpDef, name: &str) -> WithType {
    let mut declared = definition.attribute_defs().iter();
    match declared
        .find(|declared| declared.name == name)
        .map(|declared| declared.kind)
    {
        Some(AttributeKind::Number(_)) => WithType::Yes,
        _ => WithType::No,
    }
}

/// Returns the name that an attribute's value is written by, if its values have names.
fn keyword(definition: &OpDef, data: &Operation, name: &str) -> Option<&'static str> {
    let mut declared = definition.attribute_defs().iter();
    match declared.find(|declared| declared.name == name)?.kind {
        AttributeKind::Keyword(keywords) => keywords.word_of(data.attribute(name)?),
        _ => None,
    }
}

struct State<'f> {
    op: OpId,
    format: &'f Format,
    next_operand: usize,
    next_region: usize,
}

fn print_items(printer: &mut Printer<'_>, state: &mut State<'_>, items: &[Item], first: bool) {
    for (index, item) in items.iter().enumerate() {
        let start = printer.out.len();
        let opens = matches!(item.word, Word::Literal("(" | "["));
        let blanks = match first && index == 0 && !opens {
            true => " ",
            false => item.blanks,
        };
        printer.out.push_str(blanks);
        let before = printer.out.len();
        print_word(printer, state, &item.word);
        if printer.out.len() == before {
            printer.out.truncate(start);
        }
    }
}

fn print_word(printer: &mut Printer<'_>, state: &mut State<'_>, word: &Word) {
    let module = printer.module;
    let data = module.op(state.op);
    let definition = data.definition().expect("can_print() found a definition");
    let rest = &data.operands()[definition.operand_defs().len()..];
    match word {
        Word::Operand => {
            printer.value(data.operands()[state.next_operand]);
            state.next_operand += 1;
        }
        Word::Operands => printer.values(&data.operands()[state.next_operand..]),
        Word::TypedOperands => {
            for (index, &value) in data.operands()[state.next_operand..].iter().enumerate() {
                printer.separator(index);
                printer.value(value);
                printer.out.push_str(" : ");
                printer.show(module.value_type(value));
            }
        }
        Word::Attribute(name) => {
            let keyword = keyword(definition, data, name);
            match (keyword, data.attribute(name)) {
                (Some(word), _) => printer.out.push_str(word),
                (None, Some(attribute)) => {
                    printer.attribute(attribute, with_type(definition, name));
                }
                (None, None) => {}
            }
        }
        Word::TypeAttribute(name) => {
            if let Some(attribute) = data.attribute(name) {
                printer.attribute(attribute, WithType::No);
            }
        }
        Word::OpenTypes => {
            let declared = definition.operand_defs().iter().zip(data.operands());
            let open = declared.filter(|(declared, _)| declared.kind.ty().is_none());
            let open: Vec<ValueId> = open.map(|(_, value)| *value).collect();
            printer.types(&open);
        }
        Word::AttributeDictionary => dictionary(printer, state, ""),
        Word::AttributesKeyword => dictionary(printer, state, "attributes "),
        Word::Settings => {
            let entries = settings(data, definition, &state.format.placed);
            for (index, (name, value)) in entries.into_iter().enumerate() {
                printer.separator(index);
                printer.out.push_str(name);
                printer.out.push_str(" = ");
                printer.attribute(value, WithType::No);
            }
        }
        Word::OperandTypes => printer.types(rest),
        Word::ColonOperandTypes => {
            printer.out.push(':');
            if !rest.is_empty() {
                printer.out.push(' ');
                printer.types(rest);
            }
        }
        Word::FunctionalType => {
            let ty = printer.function_type(rest, data.results());
            printer.show(&ty);
        }
        Word::Types | Word::TypesOrResults => {
            printer.out.push('(');
            printer.types(rest);
            printer.out.push_str(") -> (");
            let n_declared = definition.result_defs().declared().len();
            printer.types(&data.results()[n_declared..]);
            printer.out.push(')');
        }
        Word::Region => region(printer, state),
        Word::Else => {
            let trivial = data.results().is_empty()
                && !printer.options.locations
                && returns_nothing(module, data.regions()[state.next_region]);
            if !trivial {
                printer.out.push_str("else  ");
                region(printer, state);
            }
        }
        Word::Pairs(name) => pairs::print(printer, data, &state.format.paired, name),
        Word::ResultCount => {
            let n_declared = definition.result_defs().declared().len();
            let n_results = data.results().len() - n_declared;
            if n_results > 0 {
                printer.out.push_str(": ");
                printer.show(&n_results);
            }
        }
        Word::Group(items) => {
            if !rest.is_empty() {
                print_items(printer, state, items, false);
            }
        }
        Word::Literal(text) => printer.out.push_str(text),
        Word::Function | Word::Module => {}
    }
}

/// Writes the attributes without a place of their own; the blank before them is
/// there already.
fn dictionary(printer: &mut Printer<'_>, state: &State<'_>, keyword: &str) {
    let start = printer.out.len();
    printer.attribute_dictionary(state.op, &state.format.placed);
    if printer.out.len() > start {
        printer.out.replace_range(start..=start, keyword);
    }
}

fn region(printer: &mut Printer<'_>, state: &mut State<'_>) {
    let module = printer.module;
    let data = module.op(state.op);
    let definition = data.definition().expect("can_print() found a definition");
    let region = data.regions()[state.next_region];
    state.next_region += 1;
    let block = module
        .entry_block(region)
        .expect("can_print() found a block");
    debug_assert!(
        definition.is(Traits::ISOLATED),
        "names are only reused in isolated regions"
    );
    let shadowed = definition.shadowed_operands(data.operands().len());
    for (&argument, index) in module.block(block).arguments().iter().zip(shadowed) {
        printer.shadow(argument, data.operands()[index]);
    }
    printer.region(state.op, region, EntryArguments::Elide);
}

/// Returns whether a region holds nothing but `tfrt.return`.
fn returns_nothing(module: &Module, region: RegionId) -> bool {
    let block = module
        .entry_block(region)
        .map(|block| module.block(block).operations());
    let Some(&[only]) = block else {
        return false;
    };
    let data = module.op(only);
    data.name() == "tfrt.return" && data.operands().is_empty() && data.attributes().is_empty()
}
