//! `legalize`: makes operations of graphs of the operations of a format's dialect.
//!
//! An operation whose name is that of a row becomes `graph.ROW`, with the row's attributes. One that stands for several
//! is replaced by them. One that has a row of its own stays. Of any other the format's dialect has none, which is an
//! error; operations of dialects that no format has are nobody's business here.

mod named;
pub(super) mod onnx;
mod stablehlo;
mod structure;
pub(crate) mod tf;

use tfrt_ir::{Attribute, BlockId, Diagnostics, Module, OpId, Type, ValueId, similar};
use tfrt_ops::names::{Name, NameAttr};

use super::graph::attrs;
use super::graph::calls::{CALL, Calls};
use super::{graph, scope};
use crate::codes;
use crate::graph::check;
use crate::legalize::{Context, Expansion, Legalize};
use crate::pipeline::{Pass, PassFn, Property};

pub(crate) const PASS: Pass = Pass {
    name: "legalize",
    summary: "Makes operations of graphs of those of a format's dialect",
    needs: &[],
    gives: &[],
    breaks: &[Property::Streams],
    run: PassFn::WithContext(run),
};

/// The dialect of rows that several formats have.
const GRAPH: &str = "graph";

/// The dialect that later passes handle themselves.
const ONNX: &str = "onnx";

fn run(module: &mut Module, context: &Context<'_>, diagnostics: &mut Diagnostics) {
    stablehlo::run(module, diagnostics);
    if diagnostics.has_errors() {
        return;
    }
    of_formats(module, context, diagnostics);
    of_graphs(module, diagnostics);
    if !diagnostics.has_errors() {
        structure::loops(module, diagnostics);
    }
}

/// Legalizes operations of graphs, which text or a format may have written in any form.
fn of_graphs(module: &mut Module, diagnostics: &mut Diagnostics) {
    let calls = Calls::new(module);
    for block in scope::blocks(module) {
        for op in module.block(block).operations().to_vec() {
            let full = module.op(op).name().clone();
            let Some(name) = full.strip_prefix(graph::GRAPH) else {
                continue;
            };
            if structure::is_marker(&full) {
                continue;
            }
            let row = tfrt_ops::find(name).ok_or_else(|| no_row(name));
            let checked = row.and_then(|row| {
                check(module, op, row)?;
                if full == CALL {
                    calls.check(module, op)?;
                }
                attrs::unify(module, op, row.attrs);
                match structure::ROWS.contains(&row.name) {
                    true => structure::restore(module, op, row),
                    false => Ok(()),
                }
            });
            if let Err(message) = checked {
                diagnostics.push(module.op_error(codes::GRAPH, op, message));
            }
        }
    }
}

fn of_formats(module: &mut Module, context: &Context<'_>, diagnostics: &mut Diagnostics) {
    let formats = &context.dialects.formats;
    constants(module, diagnostics);
    for block in scope::blocks(module) {
        let operations = module.block(block).operations().to_vec();
        let format_of = |module: &Module, op: OpId| {
            let (dialect, _) = module.op(op).name().split_once('.')?;
            let found = formats.iter().find(|format| format.dialect == dialect);
            found.filter(|_| dialect != ONNX)
        };
        if !operations.iter().any(|op| format_of(module, *op).is_some()) {
            continue;
        }
        let (mut kept, mut gone) = (Vec::with_capacity(operations.len()), Vec::new());
        for op in operations {
            let Some(format) = format_of(module, op) else {
                kept.push(op);
                continue;
            };
            match legalize(module, op, format, context, &mut kept) {
                Ok(true) => kept.push(op),
                Ok(false) => gone.push(op),
                Err(message) => {
                    kept.push(op);
                    diagnostics.push(module.op_error(codes::GRAPH, op, message));
                }
            }
        }
        finish(module, block, kept, gone);
    }
}

/// Converts constants, which names look at, to the form that evaluation knows.
fn constants(module: &mut Module, diagnostics: &mut Diagnostics) {
    let Some(row) = tfrt_ops::find("constant") else {
        return;
    };
    for block in scope::blocks(module) {
        for op in module.block(block).operations().to_vec() {
            if *module.op(op).name() != "graph.constant" {
                continue;
            }
            let done = check(module, op, row).and_then(|()| structure::restore(module, op, row));
            if let Err(message) = done {
                diagnostics.push(module.op_error(codes::GRAPH, op, message));
            }
        }
    }
}

/// Puts operations into a block, and erases those that are no longer in it.
pub(super) fn finish(module: &mut Module, block: BlockId, kept: Vec<OpId>, gone: Vec<OpId>) {
    module.set_operations(block, kept);
    for op in gone.into_iter().rev() {
        module.erase(op);
    }
}

/// Legalizes an operation; returns whether it stays. Replacements are appended to `kept`.
fn legalize(
    module: &mut Module,
    op: OpId,
    format: &Legalize,
    context: &Context<'_>,
    kept: &mut Vec<OpId>,
) -> Result<bool, String> {
    let full = module.op(op).name().clone();
    let name = full.split_once('.').map_or("", |(_, name)| name);
    // What stands for one form of an operation, above others.
    if let Some((_, make)) = format.expand.iter().find(|(own, _)| *own == name)
        && expand(module, op, &mut |expansion| make(expansion), kept)?
    {
        return Ok(false);
    }
    let found = format.names.iter().find(|own| own.name == name);
    if let Some(name) = found.filter(|name| named::is_general(name, format)) {
        let mut make =
            |expansion: &mut Expansion<'_>| named::translate(expansion, name, format, context);
        expand(module, op, &mut make, kept)?;
        return Ok(false);
    }
    if let Some(name) = found {
        let row = tfrt_ops::find(name.row).ok_or_else(|| no_row(name.row))?;
        let named = rename(module, op, name).and_then(|()| check(module, op, row));
        return match named {
            Ok(()) => Ok(true),
            Err(message) => {
                // Messages call it what the format does.
                module.set_name(op, full);
                Err(message)
            }
        };
    }
    if let Some(row) = tfrt_ops::find(&full).filter(|row| row.dialect() == format.dialect) {
        named::unread(module, op, row, format)?;
        attrs::unify(module, op, row.attrs);
        check(module, op, row)?;
        return Ok(true);
    }
    if let Some(row) = context.dialects.rows.find_added(&full) {
        check(module, op, &row)?;
        return Ok(true);
    }
    let names = format.names.iter().map(|own| own.name);
    if format.expand.iter().any(|(own, _)| *own == name) {
        return Err("has a form that nothing here stands for".to_owned());
    }
    let known = names.chain(format.expand.iter().map(|(own, _)| *own));
    Err(match similar::nearest(name, known) {
        Some(other) => format!("is no operation of this format; did you mean '{other}'?"),
        None => "is no operation of this format".to_owned(),
    })
}

pub(super) fn no_row(row: &str) -> String {
    let names = tfrt_ops::all().map(|row| row.name);
    match similar::nearest(row, names.filter(|name| !name.contains('.'))) {
        Some(other) => format!("is no operation of graphs; did you mean '{GRAPH}.{other}'?"),
        None => "is no operation of graphs".to_owned(),
    }
}

/// Renames an operation to its row, and its attributes to the row's.
fn rename(module: &mut Module, op: OpId, name: &Name) -> Result<(), String> {
    module.set_name(op, format!("{GRAPH}.{}", name.row));
    // All are taken first: two may have each other's names.
    let taken = |module: &mut Module, other: &str| module.remove_attribute(op, other);
    let mut set = Vec::new();
    for attr in name.attrs {
        match attr {
            NameAttr::Renamed(own, other) | NameAttr::Type(own, other) => {
                set.extend(taken(module, other).map(|value| (*own, value)));
            }
            NameAttr::Text(own, text) => set.push((own, Attribute::string(text))),
            NameAttr::Int(own, value) => set.push((own, Attribute::integer(*value, Type::I64))),
            _ => {}
        }
    }
    for (own, value) in set {
        if module.op(op).attribute(own).is_some() {
            return Err(format!("has an attribute '{own}', which its name states"));
        }
        module.set_attribute(op, own, value);
    }
    Ok(())
}

/// Replaces an operation by those that `make` makes; returns whether it was replaced. It is not if `make` returns no values for an
/// operation with results: then it has another meaning.
fn expand(
    module: &mut Module,
    op: OpId,
    make: &mut dyn FnMut(&mut Expansion<'_>) -> Result<Vec<ValueId>, String>,
    kept: &mut Vec<OpId>,
) -> Result<bool, String> {
    let n_results = module.op(op).results().len();
    let mut expansion = Expansion::new(module, op);
    let made = make(&mut expansion);
    let operations = expansion.finish();
    let values = match made {
        Ok(values) if values.len() == n_results => values,
        Ok(values) if values.is_empty() => {
            finish_unused(module, operations);
            return Ok(false);
        }
        failed => {
            let found = failed.map(|values| values.len());
            finish_unused(module, operations);
            let n_found = found?;
            return Err(format!(
                "has {n_results} results, expected {n_found} by what stands for it"
            ));
        }
    };
    for (index, value) in values.iter().enumerate() {
        let stated = module.value_type(module.op(op).results()[index]).clone();
        let is_made = module
            .defining_op(*value)
            .is_some_and(|maker| operations.contains(&maker));
        if is_made {
            module.set_value_type(*value, stated);
        }
    }
    kept.extend(operations);
    scope::replace(module, op, &values);
    Ok(true)
}

/// Erases operations that are used only by one another.
fn finish_unused(module: &mut Module, operations: Vec<OpId>) {
    for op in operations.into_iter().rev() {
        module.erase(op);
    }
}

#[cfg(test)]
mod tests;
