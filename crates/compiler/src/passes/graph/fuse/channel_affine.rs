//! Fuses a scale and a shift of each channel, after a concatenation, to one pass over its parts.

use std::collections::{HashMap, HashSet};

use tfrt_ir::{Attribute, BlockId, Module, OpId, OpState, ValueId};

use super::super::node;
use super::super::rewrite::Rewrite;

/// The most parts of a concatenation: what concatenates over and over stays as it is.
const MOST_PARTS: usize = 64;

/// Fuses a concatenation, a product and a sum with lists behind it, and `Relu` behind these.
pub(super) fn fuse(module: &mut Module, block: BlockId) {
    let old = module.block(block).operations().to_vec();
    let (mut ends, mut gone) = (HashMap::new(), HashSet::new());
    for &op in &old {
        if let Some(found) = found(module, op) {
            gone.extend(found.steps[..].iter().copied());
            ends.insert(found.last, found);
        }
    }
    if ends.is_empty() {
        return;
    }
    let (mut rewrite, old) = Rewrite::new(module, block);
    for &op in &old {
        match ends.remove(&op) {
            Some(found) => scale(&mut rewrite, &found),
            None if gone.contains(&op) => {}
            None => rewrite.keep(op),
        }
    }
    rewrite.finish(&old);
}

fn scale(rewrite: &mut Rewrite<'_>, found: &AffineMatch) {
    let activation = if found.has_relu { "relu" } else { "none" };
    let mut parts = Vec::new();
    join(rewrite.module, found.image, &mut parts);
    let operands = found.lists.into_iter().chain(parts);
    let operands: Vec<ValueId> = operands.map(|value| rewrite.mapped(value)).collect();
    let result = rewrite.module.op(found.last).results()[0];
    let mut state = OpState::new("cpu.fused.scale")
        .operands(operands)
        .attribute("activation", Attribute::string(activation))
        .result(rewrite.module.value_type(result).clone());
    if let Some(shapes) = rewrite.module.op(found.last).attribute("model.shapes") {
        state = state.attribute("model.shapes", shapes.clone());
    }
    let made = rewrite.add(state, found.last);
    rewrite.values.insert(result, made);
}

/// A product by a list, with the operations behind it that are fused.
struct AffineMatch {
    image: ValueId,
    /// The factors and the summands.
    lists: [ValueId; 2],
    /// The fused operations but for the last.
    steps: Vec<OpId>,
    last: OpId,
    has_relu: bool,
}

fn found(module: &Module, product: OpId) -> Option<AffineMatch> {
    let (image, factors) = scaled(module, product, "mul")?;
    let sum = only_user(module, product)?;
    let (_, summands) = scaled(module, sum, "add")?;
    let channels = |list: ValueId| node::shape(module, list);
    if channels(factors) != channels(summands) {
        return None;
    }
    let relu = only_user(module, sum).filter(|op| node::name(module, *op) == "relu");
    Some(AffineMatch {
        image,
        lists: [factors, summands],
        steps: [product].into_iter().chain(relu.map(|_| sum)).collect(),
        last: relu.unwrap_or(sum),
        has_relu: relu.is_some(),
    })
}

/// Matches a function of an image and a list of an element for each channel; returns both.
fn scaled(module: &Module, op: OpId, name: &str) -> Option<(ValueId, ValueId)> {
    let &[image, list] = module.op(op).operands() else {
        return None;
    };
    let is_f32 = node::is_f32(module, image) && node::is_f32(module, list);
    let (shape, lens) = (node::shape(module, image)?, node::shape(module, list)?);
    let fits = node::name(module, op) == name
        && is_f32
        && shape.len() == 4
        && lens.len() == 1
        && lens[0] > 0
        && shape[3] == lens[0];
    fits.then_some((image, list))
}

fn only_user(module: &Module, op: OpId) -> Option<OpId> {
    let &[result] = module.op(op).results() else {
        return None;
    };
    node::only_user(module, result)
}

/// Appends the parts of a concatenation along channels, or the image itself if it is none.
fn join(module: &Module, image: ValueId, parts: &mut Vec<ValueId>) {
    let mut left = vec![image];
    while let Some(value) = left.pop() {
        let joined = module.defining_op(value).filter(|op| {
            node::name(module, *op) == "concat"
                && [3, -1].contains(&node::int(module, *op, "axis", 0))
                && parts.len() + left.len() + module.op(*op).operands().len() <= MOST_PARTS
        });
        match joined {
            None => parts.push(value),
            Some(op) => left.extend(module.op(op).operands().iter().rev()),
        }
    }
}
