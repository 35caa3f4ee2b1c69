//! The forms of `func.func` and `builtin.module`, which no description fits.

use crate::{
    attributes::Attribute,
    module::{Module, OpId},
    printer::{EntryArguments, Printer, WithType},
    types::{FunctionType, Type},
};

/// Attributes of a function that have a place of their own.
const PLACED: [&str; 5] = [
    "sym_name",
    "sym_visibility",
    "function_type",
    "arg_attrs",
    "res_attrs",
];

/// Attributes of a module that have a place of their own.
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
    let is_plain = |value: &Attribute| matches!(value, Attribute::String(string) if string.ty == Type::None && string.as_str().is_some());
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
        && data.attribute("sym_name").is_some_and(is_plain)
        && visibility_fits(data.attribute("sym_visibility"))
        && dictionaries_fit(data.attribute("arg_attrs"), signature.inputs.len())
        && dictionaries_fit(data.attribute("res_attrs"), signature.results.len())
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
