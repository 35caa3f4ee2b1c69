//! `tf-to-graph`: makes convolutions and pools of graphs of TensorFlow's, where extents are known.
//!
//! Rows of graphs have the channels of images in the second dimension, TensorFlow's in the last. So an image is transposed before
//! a convolution, and back behind it; operations that follow and don't care how dimensions lie go in between, so that what is
//! multiplied by or added to channels stands behind the convolution that it is folded into. No image is moved for that:
//! `graph-layout` puts channels last again, where it finds both transpositions.
//!
//! What has no known extents, or another form, keeps its row, whose kernel takes images as they lie.

use std::collections::HashMap;

use tfrt_ir::{Attribute, BlockId, Diagnostics, Module, OpId, OpState, Type, ValueId};

use crate::legalize::Context;
use crate::passes::graph::layout::images::{FIRST, LAST, permuted};
use crate::passes::graph::pointwise::{self, Operands};
use crate::passes::graph::rewrite::{Rewrite, list, remove_unused, stated};
use crate::passes::graph::{fold, graphs, infer, inner_first, is_library, node};
use crate::passes::scope;
use crate::pipeline::{Pass, PassFn};

pub(crate) const PASS: Pass = Pass {
    name: "tf-to-graph",
    summary: "Makes convolutions and pools of graphs of TensorFlow's",
    needs: &[],
    gives: &[],
    breaks: &[],
    run: PassFn::WithContext(run),
};

fn run(module: &mut Module, context: &Context<'_>, diagnostics: &mut Diagnostics) {
    let functions = graphs(module).into_iter();
    let blocks: Vec<BlockId> = functions
        .flat_map(|(_, block)| inner_first(module, block))
        .collect();
    let is_image = |op: &OpId| IMAGES.contains(&module.op(*op).name().as_str());
    let has_images = |block: &BlockId| module.block(*block).operations().iter().any(is_image);
    if !blocks.iter().any(has_images) {
        return;
    }
    for block in blocks {
        rewrite_block(module, block);
        remove_unused(module, &context.dialects.rows, block);
    }
    infer::run(module, context, diagnostics);
    fold::run(module, context, diagnostics);
    infer::run(module, context, diagnostics);
}

/// The operations that become others here.
const IMAGES: [&str; 4] = [
    "tf.Conv2D",
    "tf.DepthwiseConv2dNative",
    "tf.MaxPool",
    "tf.AvgPool",
];

/// Images with channels first, by the values of the old block, which have them last.
type Images = HashMap<ValueId, ValueId>;

fn rewrite_block(module: &mut Module, block: BlockId) {
    let (mut rewrite, old) = Rewrite::new(module, block);
    let mut images = Images::new();
    for &op in &old {
        if operation(&mut rewrite, &mut images, op).is_none() {
            keep(&mut rewrite, &images, op);
        }
    }
    rewrite.finish(&old);
}

/// Keeps an operation, whose operands have their channels last.
fn keep(rewrite: &mut Rewrite<'_>, images: &Images, op: OpId) {
    let mut used = rewrite.module.op(op).operands().to_vec();
    let module = &*rewrite.module;
    for inner in scope::region_blocks(module, op) {
        for &child in module.block(inner).operations() {
            module.walk_pre_order(child, &mut |op| {
                used.extend_from_slice(module.op(op).operands())
            });
        }
    }
    for value in used {
        let is_back = rewrite.values.contains_key(&value);
        if let Some(&image) = images.get(&value).filter(|_| !is_back) {
            let ty = rewrite.module.value_type(value).clone();
            let back = transpose(rewrite, image, LAST, ty, op);
            rewrite.values.insert(value, back);
        }
    }
    rewrite.keep(op);
}

fn transpose(
    rewrite: &mut Rewrite<'_>,
    value: ValueId,
    order: [usize; 4],
    ty: Type,
    like: OpId,
) -> ValueId {
    let perm: Vec<i64> = order.iter().map(|at| *at as i64).collect();
    let state = OpState::new("graph.transpose")
        .operand(value)
        .attribute("perm", list(&perm))
        .result(ty);
    rewrite.add(state, like)
}

/// Returns a value of rank 4 with channels first.
fn first(rewrite: &mut Rewrite<'_>, images: &mut Images, value: ValueId, like: OpId) -> ValueId {
    if let Some(image) = images.get(&value) {
        return *image;
    }
    let now = rewrite.mapped(value);
    let ty = permuted(rewrite.module.value_type(value), FIRST);
    transpose(rewrite, now, FIRST, ty, like)
}

/// Appends an operation that makes a result with channels first.
fn finish(rewrite: &mut Rewrite<'_>, images: &mut Images, op: OpId, state: OpState) {
    let result = rewrite.module.op(op).results()[0];
    let ty = permuted(rewrite.module.value_type(result), FIRST);
    let made = rewrite.add(state.result(ty), op);
    images.insert(result, made);
}

/// Rewrites an operation for channels first, if that is possible and useful.
fn operation(rewrite: &mut Rewrite<'_>, images: &mut Images, op: OpId) -> Option<()> {
    let name = node::name(rewrite.module, op).to_owned();
    if rewrite.module.op(op).results().len() != 1 {
        return None;
    }
    let x = node::operand(rewrite.module, op, 0)?;
    match name.as_str() {
        "tf.Conv2D" => convolution(rewrite, images, op, false),
        "tf.DepthwiseConv2dNative" => convolution(rewrite, images, op, true),
        "tf.MaxPool" => pool(rewrite, images, op, "max"),
        "tf.AvgPool" => pool(rewrite, images, op, "mean"),
        "concat" => concat(rewrite, images, op),
        "reduce" if images.contains_key(&x) => whole_mean(rewrite, images, op),
        _ if is_library(&name) => None,
        _ => match pointwise::of_name(&name)?.operands {
            Operands::One if images.contains_key(&x) => {
                let mut operands = vec![images[&x]];
                let others = rewrite.module.op(op).operands()[1..].to_vec();
                operands.extend(others.iter().map(|value| rewrite.mapped(*value)));
                like(rewrite, images, op, operands);
                Some(())
            }
            Operands::Two | Operands::Many | Operands::Three => broadcast(rewrite, images, op),
            Operands::One | Operands::Onto => None,
        },
    }
}

/// Appends a copy of an operation for channels first.
fn like(rewrite: &mut Rewrite<'_>, images: &mut Images, op: OpId, operands: Vec<ValueId>) {
    let mut state = OpState::new(rewrite.module.op(op).name().clone()).operands(operands);
    for (name, value) in stated(rewrite.module, op) {
        if !name.starts_with("model.") {
            state = state.attribute(name, value);
        }
    }
    finish(rewrite, images, op, state);
}

/// The windows over height and width, as attributes of graphs.
struct Windows {
    strides: [i64; 2],
    dilations: [i64; 2],
    pads: Padding,
}

enum Padding {
    Same,
    Explicit([i64; 4]),
}

impl Windows {
    fn of(module: &Module, op: OpId) -> Option<Windows> {
        let format = node::text(module, op, "data_format");
        if !["", "NHWC"].contains(&format) {
            return None;
        }
        let spatial = |name: &str| match node::ints(module, op, name) {
            None => Some([1, 1]),
            Some(all) => match all[..] {
                [] => Some([1, 1]),
                [1, h, w, 1] => Some([h, w]),
                _ => None,
            },
        };
        let pads = match node::text(module, op, "padding") {
            "SAME" => Padding::Same,
            "VALID" => Padding::Explicit([0; 4]),
            "EXPLICIT" => match node::ints(module, op, "explicit_paddings")?[..] {
                [0, 0, top, bottom, left, right, 0, 0] => {
                    Padding::Explicit([top, left, bottom, right])
                }
                _ => return None,
            },
            _ => return None,
        };
        let windows = Windows {
            strides: spatial("strides")?,
            dilations: spatial("dilations")?,
            pads,
        };
        let all = windows.strides.iter().chain(&windows.dilations);
        all.copied().all(|step| step > 0).then_some(windows)
    }

    fn state(&self, state: OpState) -> OpState {
        let state = state
            .attribute("dilations", list(&self.dilations))
            .attribute("strides", list(&self.strides));
        match &self.pads {
            Padding::Same => state.attribute("auto_pad", Attribute::string("SAME_UPPER")),
            Padding::Explicit(pads) => state.attribute("pads", list(pads)),
        }
    }
}

fn convolution(
    rewrite: &mut Rewrite<'_>,
    images: &mut Images,
    op: OpId,
    is_depthwise: bool,
) -> Option<()> {
    let module = &*rewrite.module;
    let windows = Windows::of(module, op)?;
    let (x, filter) = (node::operand(module, op, 0)?, node::operand(module, op, 1)?);
    let (&[_, _, _, channels], &[height, width, own, filters]) = (
        &node::shape(module, x)?[..],
        &node::shape(module, filter)?[..],
    ) else {
        return None;
    };
    let are_known = [channels, height, width, own, filters]
        .iter()
        .all(|extent| *extent > 0);
    if !are_known || channels % own != 0 || (is_depthwise && own != channels) {
        return None;
    }
    let element = node::element(module.value_type(filter))?;
    let groups = if is_depthwise {
        channels
    } else {
        channels / own
    };
    let filter = rewrite.mapped(filter);
    let order = if is_depthwise {
        [2, 3, 0, 1]
    } else {
        [3, 2, 0, 1]
    };
    let extents = [height, width, own, filters];
    let ty = Type::tensor(order.map(|at| extents[at]).to_vec(), element.clone());
    let mut turned = transpose(rewrite, filter, order, ty, op);
    if is_depthwise {
        let extents = [own.checked_mul(filters)?, 1, height, width];
        let to = rewrite.integers(&extents, op);
        let state = OpState::new("graph.reshape")
            .operands([turned, to])
            .result(Type::tensor(extents.to_vec(), element));
        turned = rewrite.add(state, op);
    }
    let mut windows = windows;
    let mut source = x;
    if let Padding::Explicit([0, 0, 0, 0]) = windows.pads
        && let Some((inner, pads)) = padded(rewrite.module, x)
    {
        source = inner;
        windows.pads = Padding::Explicit(pads);
    }
    let image = first(rewrite, images, source, op);
    let state = OpState::new("graph.conv")
        .operands([image, turned])
        .attribute("groups", Attribute::integer(groups, Type::I64))
        .attribute("kernel_shape", list(&[height, width]));
    finish(rewrite, images, op, windows.state(state));
    Some(())
}

/// Returns the image that zeros were put around to make a value, and how many in front of height and width, and behind.
fn padded(module: &Module, value: ValueId) -> Option<(ValueId, [i64; 4])> {
    let op = module.defining_op(value)?;
    let is_constant = ["", "constant"].contains(&node::text(module, op, "mode"));
    if node::name(module, op) != "pad" || !is_constant {
        return None;
    }
    let is_zero = match node::operand(module, op, 2) {
        None => true,
        Some(with) => node::constant_number(module, with) == Some(0.0),
    };
    let pads = node::constant_ints(module, node::operand(module, op, 1)?)?;
    match pads[..] {
        [0, top, left, 0, 0, bottom, right, 0]
            if is_zero && [top, left, bottom, right].iter().all(|pad| *pad >= 0) =>
        {
            Some((node::operand(module, op, 0)?, [top, left, bottom, right]))
        }
        _ => None,
    }
}

fn pool(rewrite: &mut Rewrite<'_>, images: &mut Images, op: OpId, kind: &str) -> Option<()> {
    let module = &*rewrite.module;
    let windows = Windows::of(module, op)?;
    let x = node::operand(module, op, 0)?;
    let [1, height, width, 1] = node::ints(module, op, "ksize")?[..] else {
        return None;
    };
    if node::shape(module, x)?.len() != 4 || !node::is_f32(module, x) {
        return None;
    }
    let image = first(rewrite, images, x, op);
    let state = OpState::new("graph.pool")
        .operand(image)
        .attribute("kind", Attribute::string(kind))
        .attribute("kernel_shape", list(&[height, width]));
    finish(rewrite, images, op, windows.state(state));
    Some(())
}

fn concat(rewrite: &mut Rewrite<'_>, images: &mut Images, op: OpId) -> Option<()> {
    let module = &*rewrite.module;
    let operands = module.op(op).operands().to_vec();
    let axis = node::int(module, op, "axis", 0);
    if ![3, -1].contains(&axis) || !operands.iter().all(|value| images.contains_key(value)) {
        return None;
    }
    let state = OpState::new("graph.concat")
        .operands(operands.iter().map(|value| images[value]))
        .attribute("axis", Attribute::integer(1, Type::I64));
    finish(rewrite, images, op, state);
    Some(())
}

/// Rewrites the mean of each channel as a pool of the whole image.
fn whole_mean(rewrite: &mut Rewrite<'_>, images: &mut Images, op: OpId) -> Option<()> {
    let module = &*rewrite.module;
    let axes = match node::operand(module, op, 1) {
        Some(axes) => node::constant_ints(module, axes)?,
        None => node::ints(module, op, "axes")?,
    };
    let x = node::operand(module, op, 0)?;
    let is_mean = node::text(module, op, "kind") == "mean" && node::is_f32(module, x);
    if !is_mean || ![&[1, 2][..], &[2, 1]].contains(&&axes[..]) {
        return None;
    }
    let keeps = node::int(module, op, "keep", 1) != 0;
    let channels = *node::shape(module, x)?.last()?;
    let batch = *node::shape(module, x)?.first()?;
    if channels <= 0 {
        return None;
    }
    let element = node::element(module.value_type(x))?;
    let state = OpState::new("graph.pool")
        .operand(images[&x])
        .attribute("kind", Attribute::string("mean"))
        .attribute("whole", Attribute::integer(1, Type::I64));
    if keeps {
        finish(rewrite, images, op, state);
        return Some(());
    }
    let pooled = Type::tensor(vec![batch, channels, 1, 1], element);
    let pooled = rewrite.add(state.result(pooled), op);
    let to = rewrite.integers(&[0, channels], op);
    let result = rewrite.module.op(op).results()[0];
    let ty = rewrite.module.value_type(result).clone();
    let flat = OpState::new("graph.reshape")
        .operands([pooled, to])
        .result(ty);
    let flat = rewrite.add(flat, op);
    rewrite.values.insert(result, flat);
    Some(())
}

/// Rewrites a function of an image and others that are broadcast to it.
fn broadcast(rewrite: &mut Rewrite<'_>, images: &mut Images, op: OpId) -> Option<()> {
    let module = &*rewrite.module;
    let operands = module.op(op).operands().to_vec();
    if !operands.iter().any(|value| images.contains_key(value)) {
        return None;
    }
    // All are known to be of use before anything is appended.
    let mut channels = Vec::with_capacity(operands.len());
    for &value in &operands {
        let shape = node::shape(module, value)?;
        channels.push(match (node::constant(module, value), &shape[..]) {
            (Some(dense), _) if shape.iter().product::<i64>() == 1 && shape.len() <= 4 => {
                let ty = Type::tensor(Vec::new(), dense.element_type().clone());
                Some(tfrt_ir::attributes::DenseAttribute {
                    ty,
                    ..dense.clone()
                })
            }
            (Some(dense), [n] | [1, n] | [1, 1, n] | [1, 1, 1, n]) => {
                let ty = Type::tensor(vec![*n, 1, 1], dense.element_type().clone());
                Some(tfrt_ir::attributes::DenseAttribute {
                    ty,
                    ..dense.clone()
                })
            }
            (_, [_, _, _, _]) => None,
            _ => return None,
        });
    }
    let mut all = Vec::with_capacity(operands.len());
    for (value, constant) in operands.into_iter().zip(channels) {
        all.push(match constant {
            Some(dense) => rewrite.constant(dense, op),
            None => first(rewrite, images, value, op),
        });
    }
    like(rewrite, images, op, all);
    Some(())
}
