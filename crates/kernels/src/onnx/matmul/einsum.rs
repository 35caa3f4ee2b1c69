//! `Einsum`: sums of products, with dimensions named by letters.

use tfrt_host::Error;
use tfrt_tensor::math::Family;
use tfrt_tensor::math::einsum::{Labels, einsum_into};

use crate::onnx::{NodeCall, Outputs};

/// A parsed equation: the letters of each operand and of the result, and the place of dimensions without a name.
struct Equation<'a> {
    operands: Vec<&'a str>,
    result: Option<&'a str>,
}

impl<'a> Equation<'a> {
    fn parse(text: &'a str) -> Equation<'a> {
        let (operands, result) = match text.split_once("->") {
            Some((operands, result)) => (operands, Some(result)),
            None => (text, None),
        };
        Equation {
            operands: operands.split(',').collect(),
            result,
        }
    }
}

/// Returns the labels of a term: its letters, with numbers above all letters for the dimensions that `...` stands
/// for.
fn labels(
    node: &NodeCall<'_>,
    term: &str,
    n_unnamed: usize,
    n_own: usize,
) -> Result<Vec<u32>, Error> {
    let wrong = || {
        let term = term.trim().escape_debug();
        node.attributes.error(
            "equation",
            format_args!("has a term that can't be read: '{term}'"),
        )
    };
    let mut list = Vec::new();
    let mut rest = term.trim();
    while let Some(letter) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("...") {
            // The last of them are those that a shorter operand has.
            list.extend(
                (n_unnamed - n_own..n_unnamed)
                    .map(|index| UNNAMED + u32::try_from(index).unwrap_or(0)),
            );
            rest = after;
            continue;
        }
        rest = &rest[letter.len_utf8()..];
        match letter {
            ' ' => {}
            letter if letter.is_ascii_alphabetic() => list.push(u32::from(letter)),
            _ => return Err(wrong()),
        }
    }
    Ok(list)
}

const UNNAMED: u32 = 1 << 16;

pub(super) fn einsum(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let text = node
        .attributes
        .string("equation")?
        .ok_or_else(|| node.attributes.missing("equation"))?;
    let equation = Equation::parse(text);
    let inputs = node.inputs.all_dense()?;
    if equation.operands.len() != inputs.len() {
        let (wanted, found) = (equation.operands.len(), inputs.len());
        let message = format_args!("has {wanted} operands, the operation {found}");
        return Err(node.attributes.error("equation", message));
    }
    let mut own = Vec::new();
    for (term, input) in equation.operands.iter().zip(&inputs) {
        let n_letters = term.chars().filter(char::is_ascii_alphabetic).count();
        let n_own = input.shape().rank().checked_sub(n_letters);
        let has_dots = term.contains("...");
        match n_own {
            Some(n) if n == 0 || has_dots => own.push(n),
            _ => {
                let (term, rank) = (term.trim().escape_debug(), input.shape().rank());
                let message =
                    format_args!("has the term '{term}' for an operand of {rank} dimensions");
                return Err(node.attributes.error("equation", message));
            }
        }
    }
    let n_unnamed = own.iter().copied().max().unwrap_or(0);
    let terms: Result<Vec<Vec<u32>>, Error> = equation
        .operands
        .iter()
        .zip(&own)
        .map(|(term, n_own)| labels(node, term, n_unnamed, *n_own))
        .collect();
    let terms = terms?;
    let result = match equation.result {
        Some(result) => labels(node, result, n_unnamed, n_unnamed)?,
        None => implicit(&terms, n_unnamed),
    };
    let extents: Vec<_> = inputs.iter().map(|input| input.shape().to_dims()).collect();
    let shapes: Vec<(&[u32], &[usize])> = terms
        .iter()
        .zip(&extents)
        .map(|(term, own)| (&term[..], &own[..]))
        .collect();
    let labels = Labels::new(&shapes, &result).map_err(|error| node.with_name(&error))?;
    let dtype = inputs[0].dtype();
    let out = node.output(dtype, labels.output())?;
    node.inputs.expect(0, Family::Reals)?;
    let chain = einsum_into(node.execution, labels, &inputs, &out)?;
    Ok(Outputs::later(out, chain))
}

/// Returns the labels of an implicit result: letters that stand once, in the order of the alphabet, behind dimensions
/// without a name.
fn implicit(terms: &[Vec<u32>], n_unnamed: usize) -> Vec<u32> {
    let all = || {
        terms
            .iter()
            .flatten()
            .copied()
            .filter(|label| *label < UNNAMED)
    };
    let mut once: Vec<u32> = all()
        .filter(|label| all().filter(|other| other == label).count() == 1)
        .collect();
    once.sort_unstable();
    let unnamed = (0..n_unnamed).map(|index| UNNAMED + u32::try_from(index).unwrap_or(0));
    unnamed.chain(once).collect()
}
