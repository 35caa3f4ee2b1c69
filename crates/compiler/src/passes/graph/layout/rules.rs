//! Rules that rewrite operations for images with channels last.

use tfrt_ir::{
    Attribute, BlockId, Module, OpId, OpState, Type, ValueId, attributes::DenseAttribute,
};

use super::super::pointwise::{self, Operands};
use super::super::rewrite::{self, Rewrite, list};
use super::super::scope;
use super::super::{fused, node, quantize};
use super::images::{FIRST, ImageLayouts, LAST, permuted};
use super::{affine, quantized};

/// Rewrites the operations of a block.
pub(super) fn block(module: &mut Module, block: BlockId) {
    let (mut rewrite, old) = Rewrite::new(module, block);
    let mut images = ImageLayouts::default();
    for &op in &old {
        if images.is_skipped(op) {
            continue;
        }
        let made = operation(&mut rewrite, &mut images, op);
        if made.is_none() {
            other(&mut rewrite, &mut images, op);
        }
    }
    rewrite.finish(&old);
}

/// Keeps an operation, whose operands have their channels first.
fn other(rewrite: &mut Rewrite<'_>, images: &mut ImageLayouts, op: OpId) {
    let mut used = rewrite.module.op(op).operands().to_vec();
    let module = &*rewrite.module;
    for inner in scope::region_blocks(module, op) {
        for &child in module.block(inner).operations() {
            module.walk_pre_order(child, &mut |op| {
                used.extend_from_slice(module.op(op).operands());
            });
        }
    }
    for value in used {
        images.first(rewrite, value, op);
    }
    rewrite.keep(op);
}

/// Rewrites an operation for channels last, if that is possible and useful.
fn operation(rewrite: &mut Rewrite<'_>, images: &mut ImageLayouts, op: OpId) -> Option<()> {
    let name = node::name(rewrite.module, op).to_owned();
    let first = node::operand(rewrite.module, op, 0)?;
    let operands = pointwise::of_name(&name).map(|row| row.operands);
    match name.as_str() {
        "conv" => convolution(rewrite, images, op),
        "onnx.QLinearConv" => quantized::convolution(rewrite, images, op),
        "quantize" | "dequantize" if images.is_native(first) => {
            quantized::scaling(rewrite, images, op)
        }
        "norm" if images.is_native(first) && node::text(rewrite.module, op, "kind") == "batch" => {
            affine::normalisation(rewrite, images, op)
        }
        "pool" if images.is_native(first) => pool(rewrite, images, op),
        "lrn" if images.is_native(first) => lrn(rewrite, images, op),
        "concat" => concat(rewrite, images, op),
        "transpose" if images.is_native(first) => transpose(rewrite, images, op),
        "transpose" => given_last(rewrite, images, op, first),
        "reshape" if images.is_native(first) => channel_shuffle(rewrite, images, op),
        _ if operands == Some(Operands::One) && images.is_native(first) => {
            let module = &*rewrite.module;
            let operands = module.op(op).operands().to_vec();
            let x = images.last(rewrite, first, op);
            let mut all = vec![x];
            all.extend(operands[1..].iter().map(|value| rewrite.mapped(*value)));
            like(rewrite, images, op, all);
            Some(())
        }
        _ if operands.is_some_and(|operands| operands != Operands::One) => {
            affine::scaling(rewrite, images, op, &name).or_else(|| broadcast(rewrite, images, op))
        }
        _ => None,
    }
}

/// Appends a copy of `op` with operands and result in the other layout.
pub(super) fn like(
    rewrite: &mut Rewrite<'_>,
    images: &mut ImageLayouts,
    op: OpId,
    operands: Vec<ValueId>,
) {
    let result = rewrite.module.op(op).results()[0];
    let mut state = OpState::new(rewrite.module.op(op).name().clone()).operands(operands);
    for (name, value) in rewrite::stated(rewrite.module, op) {
        state = state.attribute(name, value);
    }
    finish(rewrite, images, op, result, state);
}

/// Appends an operation that makes `result` with channels last.
pub(super) fn finish(
    rewrite: &mut Rewrite<'_>,
    images: &mut ImageLayouts,
    op: OpId,
    result: ValueId,
    state: OpState,
) {
    let ty = permuted(rewrite.module.value_type(result), LAST);
    let mut state = state.result(ty);
    if let Some(shapes) = permuted_shapes(rewrite.module, op) {
        state = state.attribute("model.shapes", shapes);
    }
    let made = rewrite.add(state, op);
    images.set(result, made);
}

/// Returns the noted shapes of an operation's results, for channels last.
fn permuted_shapes(module: &Module, op: OpId) -> Option<Attribute> {
    let shapes = module.op(op).attribute("model.shapes")?.as_array()?;
    let first = shapes.first()?.as_array()?;
    let order = LAST.iter().map(|at| first.get(*at).cloned());
    let shape = order.collect::<Option<Vec<Attribute>>>()?;
    Some(Attribute::array(vec![Attribute::array(shape)]))
}

/// Returns dilations, strides and paddings of windows; no paddings for windows that keep the extent.
pub(super) fn placement(module: &Module, op: OpId) -> Option<[Vec<i64>; 3]> {
    let ones = || vec![1, 1];
    let dilations = node::ints(module, op, "dilations").unwrap_or_else(ones);
    let strides = node::ints(module, op, "strides").unwrap_or_else(ones);
    let stated = node::ints(module, op, "pads");
    let pads = match node::text(module, op, "auto_pad") {
        "" | "NOTSET" => stated.unwrap_or_else(|| vec![0; 4]),
        "VALID" => vec![0; 4],
        "SAME_UPPER" => Vec::new(),
        _ => return None,
    };
    let fits = dilations.len() == 2
        && strides.len() == 2
        && (pads.is_empty() || pads.len() == 4)
        && dilations.iter().chain(&strides).all(|n| *n > 0)
        && pads.iter().all(|n| *n >= 0);
    fits.then_some([dilations, pads, strides])
}

fn convolution(rewrite: &mut Rewrite<'_>, images: &mut ImageLayouts, op: OpId) -> Option<()> {
    let module = &*rewrite.module;
    if node::int(module, op, "transposed", 0) != 0 {
        return None;
    }
    let (x, w) = (node::operand(module, op, 0)?, node::operand(module, op, 1)?);
    let bias = node::operand(module, op, 2);
    let filter = node::constant(module, w)?;
    let is_f32 = *filter.element_type() == Type::F32;
    let &[filters, own, _, _] = &filter.shape()[..] else {
        return None;
    };
    if !is_f32 || filters == 0 || own == 0 || !node::is_f32(module, x) {
        return None;
    }
    if bias.is_some_and(|bias| node::constant(module, bias).is_none()) {
        return None;
    }
    let [dilations, pads, strides] = placement(module, op)?;
    let groups = node::int(module, op, "groups", 1);
    let (filter, bias) = (rewrite.mapped(w), bias.map(|bias| rewrite.mapped(bias)));
    let image = images.last(rewrite, x, op);
    let placement = [&dilations[..], &pads, &strides];
    let state = fused::conv(rewrite, op, [image, filter], bias, placement, groups);
    let result = rewrite.module.op(op).results()[0];
    finish(rewrite, images, op, result, state);
    Some(())
}

fn pool(rewrite: &mut Rewrite<'_>, images: &mut ImageLayouts, op: OpId) -> Option<()> {
    let module = &*rewrite.module;
    let (x, results) = (node::operand(module, op, 0)?, module.op(op).results());
    if results[1..].iter().any(|result| !module.is_unused(*result)) {
        return None;
    }
    // The largest of bytes is one; their mean would be rounded.
    let takes = match node::text(module, op, "kind") {
        "max" => node::is_f32(module, x) || quantize::bytes_of(module, x).is_some(),
        _ => node::is_f32(module, x),
    };
    takes.then_some(())?;
    let result = results[0];
    let is_global = node::int(module, op, "whole", 0) != 0;
    let (kernel, [dilations, pads, strides]) = match is_global {
        true => (vec![0, 0], [vec![1, 1], vec![0; 4], vec![1, 1]]),
        false => (
            node::ints(module, op, "kernel_shape")?,
            placement(module, op)?,
        ),
    };
    if kernel.len() != 2 {
        return None;
    }
    let rounds_up = !is_global && node::int(module, op, "ceil_mode", 0) != 0;
    let pads = match rounds_up {
        true => rounded_up(module, [x, result], [&kernel, &dilations, &strides], pads)?,
        false => pads,
    };
    let kind = match node::text(module, op, "kind") {
        "max" => "max",
        // What windows reach beyond the padding that is stated does not count.
        "mean" if node::int(module, op, "count_include_pad", 0) != 0 => match rounds_up {
            true => return None,
            false => "mean_with_padding",
        },
        "mean" => "mean",
        _ => return None,
    };
    let image = images.last(rewrite, x, op);
    let state = OpState::new("cpu.fused.pool")
        .operand(image)
        .attribute("dilations", list(&dilations))
        .attribute("kernel", list(&kernel))
        .attribute("kind", Attribute::string(kind))
        .attribute("pads", list(&pads))
        .attribute("strides", list(&strides));
    finish(rewrite, images, op, result, state);
    Some(())
}

/// Returns the padding with which a pooling has as many results as one that rounds their number up, if extents are known: the
/// last windows reach beyond the image.
fn rounded_up(
    module: &Module,
    [x, result]: [ValueId; 2],
    [kernel, dilations, strides]: [&[i64]; 3],
    mut pads: Vec<i64>,
) -> Option<Vec<i64>> {
    // As much as gives a result for each stride: there is nothing to round.
    if pads.is_empty() {
        return Some(pads);
    }
    let (&[_, _, ref input @ ..], &[_, _, ref output @ ..]) = (
        &node::shape(module, x)?[..],
        &node::shape(module, result)?[..],
    ) else {
        return None;
    };
    for (at, (&input, &output)) in input.iter().zip(output).enumerate() {
        if input < 0 || output <= 0 {
            return None;
        }
        let covered = (kernel[at] - 1)
            .checked_mul(dilations[at])?
            .checked_add(1)?;
        let last = (output - 1)
            .checked_mul(strides[at])?
            .checked_add(covered)?;
        let missing = last.checked_sub(input)?.checked_sub(pads[at])?;
        pads[at + 2] = pads[at + 2].max(missing);
    }
    Some(pads)
}

/// Rewrites a local response normalisation.
fn lrn(rewrite: &mut Rewrite<'_>, images: &mut ImageLayouts, op: OpId) -> Option<()> {
    let module = &*rewrite.module;
    let (x, size) = (
        node::operand(module, op, 0)?,
        node::int(module, op, "size", 0),
    );
    if size <= 0 || !node::is_f32(module, x) {
        return None;
    }
    let mut state = OpState::new("cpu.fused.near").operand(images.last(rewrite, x, op));
    for (name, default) in [("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0)] {
        let stated = rewrite.module.op(op).attribute(name).cloned();
        state = state.attribute(name, stated.unwrap_or(Attribute::f32(default)));
    }
    let state = state.attribute("size", Attribute::integer(size, Type::I64));
    let result = rewrite.module.op(op).results()[0];
    finish(rewrite, images, op, result, state);
    Some(())
}

fn concat(rewrite: &mut Rewrite<'_>, images: &mut ImageLayouts, op: OpId) -> Option<()> {
    let module = &*rewrite.module;
    let operands = module.op(op).operands().to_vec();
    let is_of_use = operands.iter().any(|value| images.is_native(*value));
    if !is_of_use || !operands.iter().all(|value| images.has_last(*value)) {
        return None;
    }
    let axis = node::int(module, op, "axis", 1);
    let axis = usize::try_from(if axis < 0 { axis + 4 } else { axis }).ok()?;
    let axis = LAST.iter().position(|at| *at == axis)?;
    let operands: Vec<ValueId> = operands
        .into_iter()
        .map(|value| images.last(rewrite, value, op))
        .collect();
    let result = rewrite.module.op(op).results()[0];
    let mut state = OpState::new("graph.concat").operands(operands);
    for (name, value) in rewrite::stated(rewrite.module, op) {
        state = state.attribute(name, value);
    }
    let state = state.attribute("axis", Attribute::integer(axis as i64, Type::I64));
    finish(rewrite, images, op, result, state);
    Some(())
}

/// Rewrites a transposition to channels last, whose result exists already.
fn transpose(rewrite: &mut Rewrite<'_>, images: &mut ImageLayouts, op: OpId) -> Option<()> {
    let module = &*rewrite.module;
    if node::ints(module, op, "perm")? != LAST.map(|at| at as i64) {
        return None;
    }
    let (x, result) = (node::operand(module, op, 0)?, module.op(op).results()[0]);
    let image = images.last(rewrite, x, op);
    images.set_lying_last(rewrite, result, image);
    Some(())
}

/// Notes a transposition of an image that lies with channels last: it is made where channels are asked for first.
fn given_last(
    rewrite: &mut Rewrite<'_>,
    images: &mut ImageLayouts,
    op: OpId,
    x: ValueId,
) -> Option<()> {
    let module = &*rewrite.module;
    if node::ints(module, op, "perm")? != FIRST.map(|at| at as i64) || !node::is_f32(module, x) {
        return None;
    }
    // A filter is no image, and folded.
    if node::constant(module, x).is_some() {
        return None;
    }
    let result = module.op(op).results()[0];
    images.set(result, rewrite.mapped(x));
    Some(())
}

fn broadcast(rewrite: &mut Rewrite<'_>, images: &mut ImageLayouts, op: OpId) -> Option<()> {
    let module = &*rewrite.module;
    let operands = module.op(op).operands().to_vec();
    if !operands.iter().any(|value| images.is_native(*value)) {
        return None;
    }
    let rank = |value: ValueId| node::shape(module, value).map(|shape| shape.len());
    let mut per_channel = Vec::with_capacity(operands.len());
    for &value in &operands {
        per_channel.push(match node::constant(module, value) {
            Some(dense) => Some(of_channels(dense, 1)?),
            None if rank(value)? == 4 => None,
            None => return None,
        });
    }
    let mut all = Vec::with_capacity(operands.len());
    for (value, constant) in operands.into_iter().zip(per_channel) {
        all.push(match constant {
            Some(dense) => rewrite.constant(dense, op),
            None => images.last(rewrite, value, op),
        });
    }
    like(rewrite, images, op, all);
    Some(())
}

/// Returns a constant of an element for each channel, or one for all, in the form that is broadcast to images with
/// channels last; it was one that is broadcast to images of four dimensions, channels being the one at `axis`.
pub(super) fn of_channels(dense: &DenseAttribute, axis: usize) -> Option<DenseAttribute> {
    let shape = dense.shape();
    let place = (axis + shape.len()).checked_sub(4);
    let n = place
        .and_then(|place| shape.get(place))
        .copied()
        .unwrap_or(1);
    let is_one_elsewhere = || {
        let mut others = shape
            .iter()
            .enumerate()
            .filter(|(at, _)| Some(*at) != place);
        others.all(|(_, extent)| *extent == 1)
    };
    if shape.len() > 4 || !is_one_elsewhere() {
        return None;
    }
    let extents = if n == 1 { Vec::new() } else { vec![n] };
    Some(DenseAttribute {
        ty: Type::tensor(extents, dense.element_type().clone()),
        ..dense.clone()
    })
}

/// Rewrites a channel shuffle: `Reshape`, `Transpose`, `Reshape` of an image of known extents.
fn channel_shuffle(rewrite: &mut Rewrite<'_>, images: &mut ImageLayouts, op: OpId) -> Option<()> {
    let module = &*rewrite.module;
    let only_user = |op: OpId| node::only_user(module, module.op(op).results()[0]);
    let transpose = only_user(op).filter(|op| node::name(module, *op) == "transpose")?;
    let last = only_user(transpose).filter(|op| node::name(module, *op) == "reshape")?;
    let extents = |op: OpId| node::shape(module, module.op(op).results()[0]);
    let (split, joined) = (extents(op)?, extents(last)?);
    let x = node::operand(module, op, 0)?;
    let from = node::shape(module, x)?;
    let (&[n, groups, own, h, w], &[_, channels, oh, ow]) = (&split[..], &joined[..]) else {
        return None;
    };
    let is_shuffle = node::is_f32(module, x)
        && node::ints(module, transpose, "perm")? == [0, 2, 1, 3, 4]
        && [n, groups, own, h, w, channels].iter().all(|n| *n > 0)
        && from == [n, channels, h, w]
        && joined == [n, channels, oh, ow]
        && (oh, ow) == (h, w)
        && groups.checked_mul(own) == Some(channels);
    if !is_shuffle {
        return None;
    }
    let result = module.op(last).results()[0];
    let image = images.last(rewrite, x, op);
    let state = OpState::new("cpu.fused.shuffle")
        .operand(image)
        .attribute("groups", Attribute::integer(groups, Type::I64));
    finish(rewrite, images, last, result, state);
    images.skip([transpose, last]);
    Some(())
}
