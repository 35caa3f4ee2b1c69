//! Fuses a concatenation along channels with the convolution by windows of one element behind it, which reads the
//! parts where they are. A pool between them becomes pools of the parts.

use tfrt_ir::{BlockId, Module, OpId, OpState, Type, ValueId};

use super::super::rewrite::{Rewrite, stated};
use super::super::{fused, node};

/// The least number of channels of a part: fewer are not worth the start of a loop for each.
const LEAST_CHANNELS: i64 = 32;
/// The most parts of a concatenation.
const MOST_PARTS: usize = 8;

/// Fuses concatenations with the convolutions behind them.
pub(super) fn fuse(module: &mut Module, block: BlockId) {
    each(module, block, pool);
    each(module, block, convolution);
}

fn each(module: &mut Module, block: BlockId, change: fn(&mut Rewrite<'_>, OpId) -> Option<()>) {
    let (mut rewrite, old) = Rewrite::new(module, block);
    for &op in &old {
        if change(&mut rewrite, op).is_none() {
            rewrite.keep(op);
        }
    }
    rewrite.finish(&old);
}

/// Returns the parts of a concatenation, all of one type, if it has one user.
fn parts(module: &Module, image: ValueId) -> Option<(OpId, Vec<ValueId>)> {
    let concat = module.defining_op(image)?;
    let parts = module.op(concat).operands();
    let shape = node::shape(module, *parts.first()?)?;
    let own = *shape.last()?;
    let ty = |value: ValueId| module.value_type(value);
    let fits = node::name(module, concat) == "concat"
        && [3, -1].contains(&node::int(module, concat, "axis", 0))
        && node::only_user(module, image).is_some()
        && (2..=MOST_PARTS).contains(&parts.len())
        && shape.len() == 4
        && own >= LEAST_CHANNELS
        && parts.iter().all(|part| ty(*part) == ty(parts[0]));
    fits.then(|| (concat, parts.to_vec()))
}

/// Moves a pool of a concatenation, in front of a convolution, to its parts.
fn pool(rewrite: &mut Rewrite<'_>, op: OpId) -> Option<()> {
    let module = &*rewrite.module;
    if *module.op(op).name() != "cpu.fused.pool" {
        return None;
    }
    let result = module.op(op).results()[0];
    let user = node::only_user(module, result)?;
    let &[image] = module.op(op).operands() else {
        return None;
    };
    let now = rewrite.mapped(image);
    if !is_pointwise(module, user) {
        return None;
    }
    let (concat, images) = parts(module, now)?;
    let own = *node::shape(module, images[0])?.last()?;
    let ty = module.value_type(result).clone();
    let (mut shape, element) = ty
        .as_shaped()
        .map(|(shape, element)| (shape, element.clone()))?;
    *shape.last_mut()? = own;
    let own_type = Type::tensor(shape, element);
    let mut pooled = Vec::with_capacity(images.len());
    for image in images {
        let mut state = OpState::new("cpu.fused.pool").operand(image);
        for (name, value) in stated(rewrite.module, op) {
            state = state.attribute(name, value);
        }
        pooled.push(rewrite.add(state.result(own_type.clone()), op));
    }
    let mut state = OpState::new("graph.concat").operands(pooled).result(ty);
    for (name, value) in stated(rewrite.module, concat) {
        state = state.attribute(name, value);
    }
    if let Some(shapes) = rewrite.module.op(op).attribute("model.shapes") {
        state = state.attribute("model.shapes", shapes.clone());
    }
    let made = rewrite.add(state, concat);
    rewrite.values.insert(result, made);
    Some(())
}

/// Returns whether an operation is a convolution by windows of one element without a residual.
fn is_pointwise(module: &Module, op: OpId) -> bool {
    let is = |name: &str, wanted: i64| {
        let found = node::ints(module, op, name);
        found.is_some_and(|list| list.iter().all(|n| *n == wanted))
    };
    let extents = || node::shape(module, node::operand(module, op, fused::WEIGHTS)?);
    fused::is(module, op, fused::CONV)
        && node::operand(module, op, fused::ADDED).is_none()
        && node::int(module, op, "groups", 0) == 1
        && is("pads", 0)
        && is("strides", 1)
        && matches!(extents().as_deref(), Some([_, _, 1, 1]))
}

/// Fuses a concatenation with a convolution.
fn convolution(rewrite: &mut Rewrite<'_>, op: OpId) -> Option<()> {
    let module = &*rewrite.module;
    if !is_pointwise(module, op) {
        return None;
    }
    let image = node::operand(module, op, 0)?;
    let (_, images) = parts(module, rewrite.mapped(image))?;
    let result = module.op(op).results()[0];
    let ty = module.value_type(result).clone();
    let mut state = fused::concat_conv(rewrite, op, images).result(ty);
    let module = &*rewrite.module;
    if let Some(shapes) = module.op(op).attribute("model.shapes") {
        state = state.attribute("model.shapes", shapes.clone());
    }
    let made = rewrite.add(state, op);
    rewrite.values.insert(result, made);
    Some(())
}
