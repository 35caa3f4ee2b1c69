//! Rules for quantised images with channels last.

use tfrt_ir::{Attribute, OpId, OpState, Type, ValueId};

use super::super::rewrite::{ROUNDED_ONCE, Rewrite, list};
use super::super::{fused, node};
use super::images::ImageLayouts;
use super::rules::{finish, like, placement};

/// The most steps that sums of a convolution and its bias have, so that they are integers of 32 bits.
const MOST_STEPS: i64 = i32::MAX as i64;

/// Makes the packed kernel of a convolution of quantised images, whose other operands are constants, where `graph-quantize`
/// has noted that it may.
pub(super) fn convolution(
    rewrite: &mut Rewrite<'_>,
    images: &mut ImageLayouts,
    op: OpId,
) -> Option<()> {
    let module = &*rewrite.module;
    module.op(op).attribute(ROUNDED_ONCE)?;
    let operand = |index: usize| node::operand(module, op, index);
    let x = operand(0)?;
    let &[filters, own, rows, columns] = &node::constant(module, operand(3)?)?.shape()[..] else {
        return None;
    };
    let is_image = node::shape(module, x).is_some_and(|shape| shape.len() == 4);
    if !is_image || filters <= 0 || own <= 0 {
        return None;
    }
    // Scales are such as quantised numbers have; others go to the kernel that calculates what is written.
    for index in [1, 4, 6] {
        let scales = node::dense_floats(node::constant(module, operand(index)?)?)?;
        let is_scale = |scale: &f64| scale.is_finite() && *scale > 0.0;
        let n = i64::try_from(scales.len()).ok()?;
        let fits = n == 1 || index == 4 && n == filters;
        if !fits || !scales.iter().all(is_scale) {
            return None;
        }
    }
    for index in [2, 5, 7] {
        let n = i64::try_from(node::constant_ints(module, operand(index)?)?.len()).ok()?;
        let fits = n == 1 || index == 5 && n == filters;
        if !fits {
            return None;
        }
    }
    let depth = own.checked_mul(rows)?.checked_mul(columns)?;
    let sums = depth.checked_mul(255 * 255)?;
    let bias = match operand(8) {
        Some(bias) => {
            let steps = node::constant_ints(module, bias)?;
            let is_for_each = i64::try_from(steps.len()).ok()? == filters;
            is_for_each.then(|| steps.iter().map(|one| one.abs()).max())?
        }
        None => None,
    };
    if sums.checked_add(bias.unwrap_or(0))? > MOST_STEPS {
        return None;
    }
    let [dilations, pads, strides] = placement(module, op)?;
    let groups = node::int(module, op, "group", 1);
    let image = images.last(rewrite, x, op);
    let operands = rewrite.module.op(op).operands()[1..].to_vec();
    let operands: Vec<ValueId> = operands
        .iter()
        .map(|value| rewrite.mapped(*value))
        .collect();
    let state = OpState::new(fused::QCONV)
        .operand(image)
        .operands(operands)
        .attribute("dilations", list(&dilations))
        .attribute("groups", Attribute::integer(groups, Type::I64))
        .attribute("pads", list(&pads))
        .attribute("strides", list(&strides));
    let result = rewrite.module.op(op).results()[0];
    finish(rewrite, images, op, result, state);
    Some(())
}

/// Lets an image be quantised or dequantised with channels last, if it has one scale.
pub(super) fn scaling(
    rewrite: &mut Rewrite<'_>,
    images: &mut ImageLayouts,
    op: OpId,
) -> Option<()> {
    let module = &*rewrite.module;
    let operands = module.op(op).operands().to_vec();
    let is_one = |value: &ValueId| {
        node::shape(module, *value).is_some_and(|shape| shape.iter().all(|extent| *extent == 1))
    };
    let has_others = node::operand(module, op, 2).is_none_or(|zero| is_one(&zero));
    let is_plain = node::int(module, op, "block_size", 0) == 0;
    if !is_plain || !has_others || !operands.get(1).is_some_and(is_one) {
        return None;
    }
    let image = images.last(rewrite, operands[0], op);
    let others = operands[1..].iter().map(|value| rewrite.mapped(*value));
    let all = [image].into_iter().chain(others).collect();
    like(rewrite, images, op, all);
    Some(())
}
