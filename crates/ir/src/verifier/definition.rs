//! Checks of an operation against its entry in the dialect tables.

use crate::{
    attributes::Attribute,
    codes,
    diagnostic::{Diagnostic, Diagnostics},
    dialect::{AttributeKind, OpDef, Results, Traits, ValueDef, ValueKind},
    module::{Module, OpId, ValueId},
    op_spans, similar,
    verifier::Chains,
};

/// A receiver of mistakes: takes the code, the message behind the operation's name, and the part of
/// the operation that it is about.
type MistakeSink<'r> = &'r mut dyn FnMut(&'static str, String, OpPart<'_>);

/// A part of an operation.
#[derive(Clone, Copy)]
enum OpPart<'p> {
    Whole,
    Operand(usize),
    Attribute(&'p str),
}

/// A mistake of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The code of the diagnostic.
    pub code: &'static str,
    /// The message: what was expected and what was found. The operation's name is put in front.
    pub message: String,
    /// The attribute that the mistake is about, if it is about one.
    pub attribute: Option<String>,
    /// The operand that the mistake is about, if it is about one.
    pub operand: Option<usize>,
}

impl Mistake {
    /// Makes a mistake about an attribute.
    pub fn in_attribute(
        code: &'static str,
        name: impl Into<String>,
        message: impl Into<String>,
    ) -> Mistake {
        Mistake {
            code,
            message: message.into(),
            attribute: Some(name.into()),
            operand: None,
        }
    }

    /// Makes a mistake about an operand.
    pub fn in_operand(code: &'static str, index: usize, message: impl Into<String>) -> Mistake {
        Mistake {
            code,
            message: message.into(),
            attribute: None,
            operand: Some(index),
        }
    }

    /// Makes a mistake about the whole operation.
    pub fn new(code: &'static str, message: impl Into<String>) -> Mistake {
        Mistake {
            code,
            message: message.into(),
            attribute: None,
            operand: None,
        }
    }
}

/// Returns the mistakes of an operation by itself: counts, types and attributes, by its entry.
pub fn mistakes(module: &Module, op: OpId, definition: &OpDef) -> Vec<Mistake> {
    let mut found = Vec::new();
    each(
        module,
        op,
        definition,
        Chains::Required,
        &mut |code, message, part| {
            found.push(Mistake {
                code,
                message,
                attribute: match part {
                    OpPart::Attribute(name) => Some(name.to_owned()),
                    OpPart::Whole | OpPart::Operand(_) => None,
                },
                operand: match part {
                    OpPart::Operand(index) => Some(index),
                    OpPart::Whole | OpPart::Attribute(_) => None,
                },
            });
        },
    );
    found
}

/// Reports mistakes in counts, types and attributes.
fn each(module: &Module, op: OpId, definition: &OpDef, chains: Chains, report: MistakeSink<'_>) {
    operands(module, op, definition, chains, report);
    results(module, op, definition, chains, report);
    attributes(module, op, definition, report);
    regions(module, op, definition, report);
    for mistake in definition
        .check()
        .iter()
        .flat_map(|check| check(module, op))
    {
        let part = match (mistake.attribute.as_deref(), mistake.operand) {
            (Some(name), _) => OpPart::Attribute(name),
            (None, Some(index)) => OpPart::Operand(index),
            (None, None) => OpPart::Whole,
        };
        report(mistake.code, mistake.message, part);
    }
}

/// Checks counts, types and attributes.
pub(super) fn check(
    module: &Module,
    op: OpId,
    definition: &OpDef,
    chains: Chains,
    diagnostics: &mut Diagnostics,
) {
    let mut is_first = true;
    let mut report = |code: &'static str, message: String, part: OpPart<'_>| {
        let span = match part {
            OpPart::Whole => None,
            OpPart::Operand(index) => op_spans::operand(module, op, index),
            OpPart::Attribute(name) => op_spans::attribute(module, op, name),
        };
        let error = module.op_error(code, op, message);
        let error = error.narrowed(module.source(), span);
        let error = explained(error, module, op, definition, part);
        let help = format!("it is {}{}", definition.name(), definition.signature());
        diagnostics.push(match std::mem::take(&mut is_first) {
            true => error.help(help),
            false => error,
        });
    };
    each(module, op, definition, chains, &mut report);
}

/// Returns how many declared values are always there.
fn n_required(declared: &[ValueDef]) -> usize {
    declared.iter().filter(|one| !one.optional).count()
}

/// Adds notes and advice to an error on a part of an operation.
fn explained(
    error: Diagnostic,
    module: &Module,
    op: OpId,
    definition: &OpDef,
    part: OpPart<'_>,
) -> Diagnostic {
    let data = module.op(op);
    match (part, error.code()) {
        (OpPart::Operand(index), _) => {
            let definition = data.operands().get(index).copied();
            match definition.and_then(|value| module.defining_op(value)) {
                Some(made_by) => {
                    let span = module.op(made_by).span();
                    error.note_at("the operand is defined here", module.source(), span)
                }
                None => error,
            }
        }
        (OpPart::Attribute(name), Some(codes::MISSING_ATTRIBUTE)) => {
            let names = data.attributes().iter().map(|(name, _)| name.as_str());
            match similar::nearest(name, names) {
                Some(close) => error.help(format!("is '{close}' meant to be '{name}'?")),
                None => error,
            }
        }
        (OpPart::Attribute(name), Some(codes::UNKNOWN_ATTRIBUTE)) => {
            let names = definition.attribute_defs().iter();
            match similar::nearest(name, names.map(|declared| declared.name)) {
                Some(close) => error.help(format!("there is an attribute '{close}'")),
                None => error,
            }
        }
        (OpPart::Attribute(name), Some(codes::ATTRIBUTE_VALUE)) => {
            let mut declared = definition.attribute_defs().iter();
            let choices = declared.find(|declared| declared.name == name);
            let choices = choices.map_or(&[][..], |declared| declared.choices);
            let found = data.attribute(name).and_then(Attribute::as_str);
            match similar::nearest(found.unwrap_or_default(), choices.iter().copied()) {
                Some(close) => error.help(format!("is '{close}' meant?")),
                None => error,
            }
        }
        (OpPart::Attribute(_), Some(codes::USELESS_ATTRIBUTE)) => error,
        (OpPart::Attribute(name), _) => match data.attribute(name) {
            // A number without a type is one of 64 bits, which is easily forgotten.
            Some(Attribute::Integer(number)) => {
                let error =
                    error.note(format!("the attribute is {} : {}", number.value, number.ty));
                let declared = definition.attribute_defs().iter();
                let mut declared = declared.filter(|declared| declared.name == name);
                match declared.next().map(|declared| declared.kind) {
                    Some(
                        AttributeKind::Typed(ValueKind::I32)
                        | AttributeKind::Number(ValueKind::I32),
                    ) if number.value.fits_signed(i32::BITS) => {
                        error.help(format!("give it its type: {} : i32", number.value))
                    }
                    _ => error,
                }
            }
            Some(found) => {
                const MAX_SHOWN: usize = 80;
                let shown = Some(found.to_string()).filter(|shown| shown.len() <= MAX_SHOWN);
                match shown {
                    Some(shown) => error.note(format!("the attribute is {shown}")),
                    None => error,
                }
            }
            None => error,
        },
        (OpPart::Whole, Some(codes::OPERAND_COUNT))
            if data.operands().len() + 1 == definition.operand_defs().len()
                && definition.chain_operand().is_some() =>
        {
            error.help("pass a chain, or let `tfrt opt --passes sequence-effects` put chains in")
        }
        (OpPart::Whole, _) => error,
    }
}

/// Returns the position of the chain that is left out, if exactly one is missing and that may be.
fn missing_chain(
    n_declared: usize,
    n_found: usize,
    chain: impl FnOnce() -> Option<usize>,
    chains: Chains,
) -> Option<usize> {
    let may_be_missing = chains == Chains::Optional && n_found + 1 == n_declared;
    may_be_missing.then(chain).flatten()
}

/// Returns the declared items but the one that is left out.
fn without<T>(declared: &[T], missing: Option<usize>) -> impl Iterator<Item = &T> {
    let (before, behind) = match missing {
        Some(index) => (&declared[..index], &declared[index + 1..]),
        None => (declared, &declared[..0]),
    };
    before.iter().chain(behind)
}

fn operands(
    module: &Module,
    op: OpId,
    definition: &OpDef,
    chains: Chains,
    report: MistakeSink<'_>,
) {
    let operands = module.op(op).operands();
    let last = operands.last().map(|last| module.value_type(*last));
    if let (Some(kind), Some(last)) = (definition.stand_in(), last)
        && kind.accepts(last)
    {
        return;
    }
    let declared = definition.operand_defs();
    let chain = || definition.chain_operand();
    let missing = missing_chain(declared.len(), operands.len(), chain, chains);
    let wanted = declared.len() - usize::from(missing.is_some());
    let least = n_required(declared) - usize::from(missing.is_some());
    let found = operands.len();
    let is_open = definition.rest_def().is_some();
    if is_open && found < least {
        return report(
            codes::OPERAND_COUNT,
            format!("expected {least} or more operands, but found {found}"),
            OpPart::Whole,
        );
    }
    if !is_open && !(least..=wanted).contains(&found) {
        return report(
            codes::OPERAND_COUNT,
            match (least, wanted) {
                (0, 0) => "requires zero operands".to_owned(),
                (1, 1) => "requires a single operand".to_owned(),
                (least, n) if least < n => {
                    format!("expected {least} to {n} operands, but found {found}")
                }
                (_, n) => format!("expected {n} operands, but found {found}"),
            },
            OpPart::Whole,
        );
    }
    // A value that is passed twice for the same is told once.
    let mut told: Vec<(ValueId, ValueKind)> = Vec::new();
    for (index, (wanted, &operand)) in without(declared, missing).zip(operands).enumerate() {
        let ty = module.value_type(operand);
        if !wanted.kind.accepts(ty) {
            if told.contains(&(operand, wanted.kind)) {
                continue;
            }
            told.push((operand, wanted.kind));
            let description = wanted.kind.description();
            report(
                codes::OPERAND_TYPE,
                format!("operand #{index} must be {description}, but got '{ty}'"),
                OpPart::Operand(index),
            );
        }
    }
    let Some(rest) = definition.rest_def() else {
        return;
    };
    for (index, &operand) in operands.iter().enumerate().skip(wanted) {
        let ty = module.value_type(operand);
        if !rest.kind.accepts(ty) && !told.contains(&(operand, rest.kind)) {
            told.push((operand, rest.kind));
            let description = rest.kind.description();
            report(
                codes::OPERAND_TYPE,
                format!("operand #{index} must be variadic of {description}, but got '{ty}'"),
                OpPart::Operand(index),
            );
        }
    }
}

fn results(module: &Module, op: OpId, definition: &OpDef, chains: Chains, report: MistakeSink<'_>) {
    let results = module.op(op).results();
    let declared = definition.result_defs().declared();
    let chain = || definition.chain_result();
    let missing = missing_chain(declared.len(), results.len(), chain, chains);
    let wanted = declared.len() - usize::from(missing.is_some());
    let least = n_required(declared) - usize::from(missing.is_some());
    let found = results.len();
    let rest = match definition.result_defs() {
        Results::Exactly(_) => None,
        Results::AtLeast(_, rest) | Results::LikeRest(rest) => Some(rest),
    };
    if rest.is_some() && found < least {
        return report(
            codes::RESULT_COUNT,
            format!("expected {least} or more results"),
            OpPart::Whole,
        );
    }
    if rest.is_none() && !(least..=wanted).contains(&found) {
        return report(
            codes::RESULT_COUNT,
            match (least, wanted) {
                (0, 0) => "requires zero results".to_owned(),
                (1, 1) => "requires one result".to_owned(),
                (least, n) if least < n => {
                    format!("expected {least} to {n} results, but found {found}")
                }
                (_, n) => format!("expected {n} results"),
            },
            OpPart::Whole,
        );
    }
    for (index, (wanted, &result)) in without(declared, missing).zip(results).enumerate() {
        let ty = module.value_type(result);
        if !wanted.kind.accepts(ty) {
            let description = wanted.kind.description();
            report(
                codes::RESULT_TYPE,
                format!("result #{index} must be {description}, but got '{ty}'"),
                OpPart::Whole,
            );
        }
    }
    let Some(rest) = rest else {
        return;
    };
    for (index, &result) in results.iter().enumerate().skip(wanted) {
        let ty = module.value_type(result);
        if !rest.kind.accepts(ty) {
            let description = rest.kind.description();
            report(
                codes::RESULT_TYPE,
                format!("result #{index} must be variadic of {description}, but got '{ty}'"),
                OpPart::Whole,
            );
        }
    }
}

fn attributes(module: &Module, op: OpId, definition: &OpDef, report: MistakeSink<'_>) {
    for declared in definition.attribute_defs() {
        let name = declared.name;
        match module.op(op).attribute(name) {
            None if declared.required => report(
                codes::MISSING_ATTRIBUTE,
                format!("requires attribute '{name}'"),
                OpPart::Attribute(name),
            ),
            // A callee that is no symbol has a message of its own.
            Some(attribute)
                if (declared.required || declared.kind != AttributeKind::FlatSymbol)
                    && !declared.kind.accepts(attribute) =>
            {
                let constraint = describe(declared.kind);
                report(
                    codes::ATTRIBUTE_KIND,
                    format!("attribute '{name}' failed to satisfy constraint: {constraint}"),
                    OpPart::Attribute(name),
                );
            }
            Some(attribute) if !declared.choices.is_empty() => {
                let found = attribute.as_str().unwrap_or_default();
                if !declared.choices.contains(&found) {
                    let choices = declared.choices.join(", ");
                    report(
                        codes::ATTRIBUTE_VALUE,
                        format!("attribute '{name}': expected one of {choices}, found '{found}'"),
                        OpPart::Attribute(name),
                    );
                }
            }
            _ => {}
        }
    }
    if !definition.is(Traits::CLOSED) {
        return;
    }
    for (name, _) in module.op(op).attributes() {
        let mut declared = definition.attribute_defs().iter();
        // Those of dialects are notes for whoever knows them.
        if !name.contains('.') && !declared.any(|declared| declared.name == name.as_str()) {
            report(
                codes::UNKNOWN_ATTRIBUTE,
                format!("has no attribute '{name}'"),
                OpPart::Attribute(name),
            );
        }
    }
}

/// Returns MLIR's words for a kind of attribute.
fn describe(kind: AttributeKind) -> String {
    match kind {
        AttributeKind::Any => "any attribute".to_owned(),
        AttributeKind::Typed(ValueKind::I1) | AttributeKind::Number(ValueKind::I1) => {
            "bool attribute".to_owned()
        }
        AttributeKind::Typed(kind) | AttributeKind::Number(kind) => {
            format!("{} attribute", kind.description())
        }
        AttributeKind::Array(kind) => format!("{} array attribute", kind.description()),
        AttributeKind::String => "string attribute".to_owned(),
        AttributeKind::Strings => "string array attribute".to_owned(),
        AttributeKind::Pairs => "array attribute".to_owned(),
        AttributeKind::FlatSymbol => "flat symbol reference attribute".to_owned(),
        AttributeKind::FlatSymbols => "flat symbol ref array attribute".to_owned(),
        AttributeKind::FunctionType => "type attribute of function type".to_owned(),
        AttributeKind::Dictionaries => "Array of dictionary attributes".to_owned(),
        AttributeKind::Integer => "integer attribute".to_owned(),
        AttributeKind::Integers => "integer array attribute".to_owned(),
        AttributeKind::Float => "float attribute".to_owned(),
        AttributeKind::Floats => "float array attribute".to_owned(),
        AttributeKind::ElementType => "type attribute".to_owned(),
        AttributeKind::Elements => "constant tensor attribute".to_owned(),
        AttributeKind::Keyword(keywords) => format!("{} attribute", keywords.what),
    }
}

fn regions(module: &Module, op: OpId, definition: &OpDef, report: MistakeSink<'_>) {
    let regions = module.op(op).regions();
    if regions.len() != definition.n_regions() {
        return report(
            codes::REGION_COUNT,
            match definition.n_regions() {
                0 => "requires zero regions".to_owned(),
                1 => "requires one region".to_owned(),
                n => format!("expected {n} regions"),
            },
            OpPart::Whole,
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
                OpPart::Whole,
            );
        }
    }
}
