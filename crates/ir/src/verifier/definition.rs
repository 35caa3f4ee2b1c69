//! An operation against its entry in the dialect tables.

use crate::{
    codes,
    diagnostic::Diagnostics,
    dialect::{AttributeKind, OpDef, Results, Traits, ValueKind, format},
    module::{Module, OpId},
    verifier::Chains,
};

/// Takes the code of a mistake and the message behind the operation's name.
type Report<'r> = &'r mut dyn FnMut(&'static str, String);

/// Checks counts, types and attributes.
pub(super) fn check(
    module: &Module,
    op: OpId,
    definition: &OpDef,
    chains: Chains,
    diagnostics: &mut Diagnostics,
) {
    let mut report = |code: &'static str, message: String| {
        diagnostics.push(module.op_error(code, op, message));
    };
    operands(module, op, definition, chains, &mut report);
    results(module, op, definition, chains, &mut report);
    attributes(module, op, definition, &mut report);
    regions(module, op, definition, &mut report);
}

/// Returns what is declared without the chain, if exactly one is missing and
/// that may be.
fn without_chain<T: Copy>(
    declared: &[T],
    found: usize,
    chain: Option<usize>,
    chains: Chains,
) -> Vec<T> {
    let mut declared = declared.to_vec();
    if let Some(index) = chain
        && chains == Chains::Optional
        && found + 1 == declared.len()
    {
        declared.remove(index);
    }
    declared
}

fn operands(module: &Module, op: OpId, definition: &OpDef, chains: Chains, report: Report<'_>) {
    let operands = module.op(op).operands();
    let declared = without_chain(
        definition.operand_defs(),
        operands.len(),
        definition.chain_operand(),
        chains,
    );
    let (wanted, found) = (declared.len(), operands.len());
    let is_open = definition.rest_def().is_some();
    if is_open && found < wanted {
        return report(
            codes::OPERAND_COUNT,
            format!("expected {wanted} or more operands, but found {found}"),
        );
    }
    if !is_open && found != wanted {
        return report(
            codes::OPERAND_COUNT,
            match wanted {
                0 => "requires zero operands".to_owned(),
                1 => "requires a single operand".to_owned(),
                n => format!("expected {n} operands, but found {found}"),
            },
        );
    }
    for (index, (wanted, &operand)) in declared.iter().zip(operands).enumerate() {
        let ty = module.value_type(operand);
        if !wanted.kind.accepts(ty) {
            let description = wanted.kind.description();
            report(
                codes::OPERAND_TYPE,
                format!("operand #{index} must be {description}, but got '{ty}'"),
            );
        }
    }
}

fn results(module: &Module, op: OpId, definition: &OpDef, chains: Chains, report: Report<'_>) {
    let results = module.op(op).results();
    let Results::Exactly(declared) = definition.result_defs() else {
        return;
    };
    let declared = without_chain(declared, results.len(), definition.chain_result(), chains);
    if results.len() != declared.len() {
        return report(
            codes::RESULT_COUNT,
            match declared.len() {
                0 => "requires zero results".to_owned(),
                1 => "requires one result".to_owned(),
                n => format!("expected {n} results"),
            },
        );
    }
    for (index, (wanted, &result)) in declared.iter().zip(results).enumerate() {
        let ty = module.value_type(result);
        if !wanted.kind.accepts(ty) {
            let description = wanted.kind.description();
            report(
                codes::RESULT_TYPE,
                format!("result #{index} must be {description}, but got '{ty}'"),
            );
        }
    }
}

fn attributes(module: &Module, op: OpId, definition: &OpDef, report: Report<'_>) {
    for declared in definition.attribute_defs() {
        let name = declared.name;
        match module.op(op).attribute(name) {
            None if declared.required => report(
                codes::MISSING_ATTRIBUTE,
                format!("requires attribute '{name}'"),
            ),
            // A callee that is no symbol has a message of its own.
            Some(attribute)
                if (declared.required || declared.kind != AttributeKind::FlatSymbol)
                    && !format::kind_fits(declared.kind, attribute) =>
            {
                let constraint = describe(declared.kind);
                report(
                    codes::ATTRIBUTE_KIND,
                    format!("attribute '{name}' failed to satisfy constraint: {constraint}"),
                );
            }
            _ => {}
        }
    }
}

/// Returns MLIR's words for a kind of attribute.
fn describe(kind: AttributeKind) -> String {
    match kind {
        AttributeKind::Any => "any attribute".to_owned(),
        AttributeKind::Typed(ValueKind::I1) => "bool attribute".to_owned(),
        AttributeKind::Typed(kind) => format!("{} attribute", kind.description()),
        AttributeKind::Array(kind) => format!("{} array attribute", kind.description()),
        AttributeKind::String => "string attribute".to_owned(),
        AttributeKind::FlatSymbol => "flat symbol reference attribute".to_owned(),
        AttributeKind::FlatSymbols => "flat symbol ref array attribute".to_owned(),
        AttributeKind::FunctionType => "type attribute of function type".to_owned(),
    }
}

fn regions(module: &Module, op: OpId, definition: &OpDef, report: Report<'_>) {
    let regions = module.op(op).regions();
    if regions.len() != definition.n_regions() {
        return report(
            codes::REGION_COUNT,
            match definition.n_regions() {
                0 => "requires zero regions".to_owned(),
                1 => "requires one region".to_owned(),
                n => format!("expected {n} regions"),
            },
        );
    }
    if !definition.is(Traits::SINGLE_BLOCK) {
        return;
    }
    for (index, &region) in regions.iter().enumerate() {
        if module.region(region).blocks().len() > 1 {
            report(
                codes::BLOCK_COUNT,
                format!("expects region #{index} to have 0 or 1 blocks"),
            );
        }
    }
}
