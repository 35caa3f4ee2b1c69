//! Checks of nodes against the table of operators.

use std::rc::Rc;

use tfrt_ir::similar;

use super::{
    OPSETS,
    attributes::{self, kinds},
    problem::{Problem, shown},
    proto::Node,
    schema::{self, Count, Operator},
};
use crate::codes;

/// The first version whose operators broadcast as those of today. Older models are imported as far as they use
/// nothing that is gone.
const OLDEST_CHECKED: i64 = 7;

/// Operators whose older forms are brought to that of version 7 when a model is compiled.
const UPGRADED: [&str; 13] = [
    "Add", "And", "Div", "Equal", "Gemm", "Greater", "Less", "Mul", "Or", "PRelu", "Pow", "Sub",
    "Xor",
];

/// Finds the operator of a node.
///
/// `Ok(None)` is one of a domain of which nothing is known.
pub(super) fn operator(
    domain: &str,
    name: &str,
    version: i64,
) -> Result<Option<Rc<Operator>>, Problem> {
    if !schema::is_known_domain(domain) {
        return Ok(None);
    }
    let version = if domain.is_empty() && !UPGRADED.contains(&name) {
        version.max(OLDEST_CHECKED)
    } else {
        version
    };
    let set = if domain.is_empty() { "ai.onnx" } else { domain };
    let error = |message: String| Problem::new(codes::MODEL_OPERATOR, message);
    let Some(operator) = schema::lookup(domain, name, version) else {
        return Err(match schema::history(domain, name).next() {
            Some(first) => error(format!(
                "is there since version {} of the operator set '{set}', and the model asks for \
                 {version}",
                first.since
            )),
            None => {
                let problem = error(format!("no operator of '{set}' has this name"));
                let newest = OPSETS.end();
                match similar::nearest(name, schema::names(domain)) {
                    Some(close) => problem.help(format!("there is '{close}'")),
                    None => problem.help(format!("operators are known up to version {newest}")),
                }
            }
        });
    };
    match operator.is_gone {
        false => Ok(Some(Rc::new(operator))),
        true => Err(error(format!(
            "is gone since version {} of the operator set '{set}', and the model asks for {version}",
            operator.since
        ))),
    }
}

/// Checks a node against its operator; `stated` are its attributes with their kinds.
pub(super) fn node(
    node: &Node,
    operator: &Operator,
    stated: &[(&str, i32)],
    report: &mut dyn FnMut(Problem),
) {
    values("input", &node.input, &operator.inputs, report);
    values("output", &node.output, &operator.outputs, report);
    for &(name, kind) in stated {
        let Some(known) = operator.attribute(name) else {
            report(unknown_attribute(name, operator));
            continue;
        };
        if known.kind.number() != kind {
            let message = format!(
                "is of kind {}, expected {}",
                kinds::name(kind),
                kinds::name(known.kind.number())
            );
            let problem = Problem::new(codes::MODEL_OPERATOR, message);
            report(attributes::of(problem, name));
        }
    }
    for known in operator.attributes.iter().filter(|known| known.is_required) {
        if stated.iter().all(|(name, _)| *name != known.name) {
            let message = format!(
                "lacks the attribute '{}', expected one of kind {}",
                known.name,
                kinds::name(known.kind.number())
            );
            report(Problem::new(codes::MODEL_OPERATOR, message));
        }
    }
}

/// Checks the inputs or outputs of a node against an operator's parameters.
fn values(
    what: &str,
    names: &[String],
    parameters: &[schema::Parameter],
    report: &mut dyn FnMut(Problem),
) {
    let most = parameters.len();
    let is_open = parameters
        .last()
        .is_some_and(|last| matches!(last.count, Count::AtLeast(_)));
    if names.len() > most && !is_open {
        let message = format!("has {} {what}s, expected at most {most}", names.len());
        report(Problem::new(codes::MODEL_OPERATOR, message));
    }
    for (index, parameter) in parameters.iter().enumerate() {
        let is_there = names.get(index).is_some_and(|name| !name.is_empty());
        match parameter.count {
            // A result that is not asked for has no name.
            Count::One if !is_there && (what == "input" || index >= names.len()) => {
                let message = format!("lacks {what} {index}, '{}'", parameter.name);
                report(Problem::new(codes::MODEL_OPERATOR, message));
            }
            Count::AtLeast(least) if names.len().saturating_sub(index) < least => {
                let found = names.len().saturating_sub(index);
                let message = format!(
                    "has {found} {what}s for '{}', expected at least {least}",
                    parameter.name
                );
                report(Problem::new(codes::MODEL_OPERATOR, message));
            }
            _ => {}
        }
    }
}

fn unknown_attribute(name: &str, operator: &Operator) -> Problem {
    let message = format!(
        "has the attribute '{}', which {} of version {} lacks",
        shown(name),
        operator.name,
        operator.since
    );
    let problem = Problem::new(codes::MODEL_OPERATOR, message);
    let had = |it: &Operator| it.attribute(name).is_some();
    let history: Vec<Operator> = schema::history(operator.domain, operator.name).collect();
    if operator.inputs.iter().any(|input| input.name == name) {
        return problem.help(format!("'{name}' is an input in this version"));
    }
    if let Some(later) = history
        .iter()
        .find(|it| it.since > operator.since && had(it))
    {
        return problem.help(format!("it has one since version {}", later.since));
    }
    if history
        .iter()
        .any(|it| it.since < operator.since && had(it))
    {
        let help = format!("it had one before version {}", operator.since);
        return problem.help(help);
    }
    let names = operator.attributes.iter().map(|known| known.name);
    match similar::nearest(name, names) {
        Some(close) => problem.help(format!("there is '{close}'")),
        None => problem,
    }
}
