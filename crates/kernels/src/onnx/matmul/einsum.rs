//! `Einsum`: sums of products, with dimensions named by letters.

use tfrt_host::Error;
use tfrt_ops::einsum::{Equation, Label};
use tfrt_tensor::math::Family;
use tfrt_tensor::math::einsum::{Labels, einsum_into};

use crate::onnx::{NodeCall, Outputs};

pub(super) fn einsum(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let text = node
        .attributes
        .string("equation")?
        .ok_or_else(|| node.attributes.missing("equation"))?;
    let inputs = node.inputs.all_dense()?;
    let ranks: Vec<usize> = inputs.iter().map(|input| input.shape().rank()).collect();
    let equation = Equation::parse(text, &ranks)
        .map_err(|message| node.attributes.error("equation", format_args!("{message}")))?;
    let terms: Vec<Vec<u32>> = equation.operands.iter().map(|term| numbers(term)).collect();
    let extents: Vec<_> = inputs.iter().map(|input| input.shape().to_dims()).collect();
    let shapes: Vec<(&[u32], &[usize])> = terms
        .iter()
        .zip(&extents)
        .map(|(term, own)| (&term[..], &own[..]))
        .collect();
    let labels =
        Labels::new(&shapes, &numbers(&equation.result)).map_err(|error| node.with_name(&error))?;
    let dtype = inputs[0].dtype();
    let out = node.output(dtype, labels.output())?;
    node.inputs.expect(0, Family::Reals)?;
    let chain = einsum_into(node.execution, labels, &inputs, &out)?;
    Ok(Outputs::later(out, chain))
}

/// Returns labels as numbers; those without a letter are above all letters.
fn numbers(labels: &[Label]) -> Vec<u32> {
    const UNNAMED: u32 = 1 << 16;
    let number = |label: &Label| match label {
        Label::Letter(letter) => u32::from(*letter),
        Label::Unnamed(index) => UNNAMED + u32::try_from(*index).unwrap_or(0),
    };
    labels.iter().map(number).collect()
}
