//! Factors and summands of channels: they are folded into the filter before them, or become one of each.

use tfrt_ir::{
    Attribute, Module, OpId, OpState, Type, ValueId,
    attributes::{DenseAttribute, DenseElements},
};

use super::super::rewrite::Rewrite;
use super::super::{fused, node};
use super::images::{AffineImage, ImageLayouts, LAST, permuted};
use super::rules::{finish, of_channels};

/// Handles a normalisation by known statistics.
pub(super) fn normalisation(
    rewrite: &mut Rewrite<'_>,
    images: &mut ImageLayouts,
    op: OpId,
) -> Option<()> {
    let module = &*rewrite.module;
    let (parameters, epsilon) = known_statistics(module, op)?;
    let x = &node::operand(module, op, 0)?;
    let result = module.op(op).results()[0];
    let parameters: Vec<ValueId> = parameters
        .iter()
        .map(|value| rewrite.mapped(*value))
        .collect();
    let image = images.last(rewrite, *x, op);
    if let Some(conv) = conv_before(rewrite, *x, image)
        && !fused::has_norm(rewrite.module, conv)
    {
        for (place, parameter) in fused::NORM.into_iter().zip(parameters) {
            rewrite.module.set_operand(conv, place, parameter);
        }
        rewrite.module.set_attribute(conv, "epsilon", epsilon);
        // Parameters may come later in the block than the convolution does.
        rewrite.move_to_end(conv);
        images.set(result, image);
        return Some(());
    }
    let [factors, summands] = statistics(rewrite, parameters, epsilon, op)?;
    scale(rewrite, images, op, *x, [Some(factors), Some(summands)]);
    Some(())
}

/// Returns scale, shift, mean and variance of a normalisation, if they are constants, and what is added to the variance.
pub(in super::super) fn known_statistics(
    module: &Module,
    op: OpId,
) -> Option<(Vec<ValueId>, Attribute)> {
    let is_plain = node::int(module, op, "training", 0) == 0
        && node::int(module, op, "spatial", 1) != 0
        && module.op(op).results().len() == 1;
    if !is_plain {
        return None;
    }
    let (_, parameters) = module.op(op).operands().split_first()?;
    let are_constant = parameters.len() == 4
        && parameters.iter().all(|value| {
            let dense = node::constant(module, *value);
            dense.is_some_and(|dense| *dense.element_type() == Type::F32)
        });
    if !are_constant {
        return None;
    }
    let epsilon = match module.op(op).attribute("epsilon") {
        Some(epsilon) => epsilon.clone(),
        None => Attribute::f32(1e-5),
    };
    Some((parameters.to_vec(), epsilon))
}

/// Handles a product, a quotient, a sum or a difference of an image and a constant of an element for each channel, or one
/// for all.
pub(super) fn scaling(
    rewrite: &mut Rewrite<'_>,
    images: &mut ImageLayouts,
    op: OpId,
    name: &str,
) -> Option<()> {
    let module = &*rewrite.module;
    let &[left, right] = module.op(op).operands() else {
        return None;
    };
    let (x, constant) = match node::constant(module, right) {
        Some(constant) => (left, constant),
        // A constant minus an image is no image plus something.
        None if ["sub", "div"].contains(&name) => return None,
        None => (right, node::constant(module, left)?),
    };
    let lies_last = images.lies_last(x);
    let axis = match lies_last {
        true => 3,
        false if images.is_native(x) => 1,
        false => return None,
    };
    let &[_, _, _, _] = &node::shape(module, x)?[..] else {
        return None;
    };
    let channels = node::shape(module, x)?[axis];
    let fits = ["add", "div", "mul", "sub", "onnx.Sum"].contains(&name)
        && channels > 0
        && node::is_f32(module, x)
        && *constant.element_type() == Type::F32;
    let constant = of_channels(constant, axis).filter(|_| fits)?;
    if name == "div" && !is_moderate(&constant) {
        return None;
    }
    let list = match constant.shape()[..] {
        [] => DenseAttribute {
            ty: Type::tensor(vec![channels], Type::F32),
            splat: true,
            ..constant
        },
        [n] if n == channels => constant,
        _ => return None,
    };
    // Behind other operations these are calculated as they are.
    if (lies_last || name == "div") && conv_behind(rewrite, images, x).is_none() {
        return None;
    }
    let list = rewrite.constant(list, op);
    let steps = match name {
        "mul" => [Some(list), None],
        "div" => {
            let ones = of_one(rewrite, 1.0, list, op);
            [Some(both(rewrite, "graph.div", [ones, list], op)), None]
        }
        "sub" => {
            let ty = rewrite.module.value_type(list).clone();
            let negative = OpState::new("graph.neg").operand(list).result(ty);
            [None, Some(rewrite.add(negative, op))]
        }
        _ => [None, Some(list)],
    };
    scale(rewrite, images, op, x, steps);
    Some(())
}

/// Returns whether all numbers are far from the limits of `f32`, so that a product by their inverses is what a quotient is.
fn is_moderate(list: &DenseAttribute) -> bool {
    const MOST: f32 = 1.8446744e19; // 2^64
    let (each, _) = list.bytes().as_chunks::<4>();
    each.iter().all(|bytes| {
        let number = f32::from_le_bytes(*bytes).abs();
        (1.0 / MOST..=MOST).contains(&number)
    })
}

/// Returns the convolution that makes an image, whose new value exists already, if the image has one user.
fn conv_behind(rewrite: &Rewrite<'_>, images: &ImageLayouts, x: ValueId) -> Option<OpId> {
    let image = match images.lies_last(x) {
        true => rewrite.mapped(x),
        false => images.made_last(x)?,
    };
    conv_before(rewrite, x, image)
}

/// Returns the convolution that makes an image, if the operation at hand is the image's only user: of the old value `x`,
/// and of the new one, `image`, which users before it have taken already.
fn conv_before(rewrite: &Rewrite<'_>, x: ValueId, image: ValueId) -> Option<OpId> {
    let module = &*rewrite.module;
    let conv = module.defining_op(image)?;
    // An image that lies with channels last may be the transposition of one that has users of its own.
    let before = module
        .defining_op(x)
        .and_then(|op| match node::name(module, op) {
            "transpose" => node::operand(module, op, 0),
            _ => None,
        });
    let is_one = fused::is(module, conv, fused::CONV)
        && [Some(x), before]
            .into_iter()
            .flatten()
            .all(|value| module.users(value).count() == 1)
        && module.users(image).next().is_none();
    is_one.then_some(conv)
}

/// Returns the factors and summands that equal a normalisation: `(x - mean) / sqrt(variance + epsilon) * scale +
/// shift`.
pub(in super::super) fn statistics(
    rewrite: &mut Rewrite<'_>,
    parameters: Vec<ValueId>,
    epsilon: Attribute,
    like: OpId,
) -> Option<[ValueId; 2]> {
    let &[scale, shift, mean, variance] = &parameters[..] else {
        return None;
    };
    let Attribute::Float(epsilon) = epsilon else {
        return None;
    };
    #[expect(clippy::cast_possible_truncation, reason = "attributes have 32 bits")]
    let epsilon = of_one(rewrite, epsilon.value() as f32, variance, like);
    let variance = both(rewrite, "graph.add", [variance, epsilon], like);
    let ty = rewrite.module.value_type(variance).clone();
    let deviation = rewrite.add(
        OpState::new("graph.sqrt").operand(variance).result(ty),
        like,
    );
    let factors = both(rewrite, "graph.div", [scale, deviation], like);
    let moved = both(rewrite, "graph.mul", [mean, factors], like);
    Some([factors, both(rewrite, "graph.sub", [shift, moved], like)])
}

/// Multiplies an image by factors, and adds summands, both of channels; at least one of them is there.
fn scale(
    rewrite: &mut Rewrite<'_>,
    images: &mut ImageLayouts,
    op: OpId,
    x: ValueId,
    [factors, summands]: [Option<ValueId>; 2],
) {
    let result = rewrite.module.op(op).results()[0];
    if images.lies_last(x) {
        let image = rewrite.mapped(x);
        if let Some(conv) = conv_before(rewrite, x, image) {
            into_conv(rewrite, conv, [factors, summands], op);
            rewrite.move_to_end(conv);
            images.set_lying_last(rewrite, result, image);
        }
        return;
    }
    let image = images.last(rewrite, x, op);
    let mut next = AffineImage {
        image,
        factors,
        summands,
    };
    if let Some(conv) = conv_before(rewrite, x, image) {
        into_conv(rewrite, conv, [factors, summands], op);
        rewrite.move_to_end(conv);
        images.set(result, image);
        return;
    }
    let before = images.scaled.get(&image).copied();
    if let Some(before) = before.filter(|_| rewrite.module.users(x).count() == 1) {
        next = after(rewrite, before, next, op);
    }
    let ty = permuted(rewrite.module.value_type(result), LAST);
    let step =
        |name: &str, left: ValueId, right: ValueId| OpState::new(name).operands([left, right]);
    let state = match (next.factors, next.summands) {
        (Some(factors), Some(summands)) => {
            let product = step("graph.mul", next.image, factors).result(ty);
            let product = rewrite.add(product, op);
            step("graph.add", product, summands)
        }
        (Some(factors), None) => step("graph.mul", next.image, factors),
        (None, Some(summands)) => step("graph.add", next.image, summands),
        (None, None) => return,
    };
    finish(rewrite, images, op, result, state);
    let made = images.last(rewrite, result, op);
    images.scaled.insert(made, next);
}

/// Composes two affine images: the second is applied to the result of the first.
fn after(
    rewrite: &mut Rewrite<'_>,
    first: AffineImage,
    second: AffineImage,
    like: OpId,
) -> AffineImage {
    let mut with = |name: &str, left: Option<ValueId>, right: Option<ValueId>| match (left, right) {
        (Some(left), Some(right)) => Some(both(rewrite, name, [left, right], like)),
        (left, right) => left.or(right),
    };
    let factors = with("graph.mul", first.factors, second.factors);
    let summands = match (first.summands, second.factors) {
        (Some(summands), Some(factors)) => with("graph.mul", Some(summands), Some(factors)),
        (summands, _) => summands,
    };
    AffineImage {
        image: first.image,
        factors,
        summands: with("graph.add", summands, second.summands),
    }
}

/// Folds factors and summands into a convolution: as a normalisation, or as a bias.
fn into_conv(
    rewrite: &mut Rewrite<'_>,
    conv: OpId,
    [factors, summands]: [Option<ValueId>; 2],
    like: OpId,
) {
    let [scale, shift, ..] = fused::NORM;
    match factors {
        Some(factors) if fused::has_norm(rewrite.module, conv) => {
            then(rewrite, conv, scale, "graph.mul", factors, like);
            then(rewrite, conv, shift, "graph.mul", factors, like);
        }
        Some(factors) => {
            let zeros = of_one(rewrite, 0.0, factors, like);
            let ones = of_one(rewrite, 1.0, factors, like);
            for (place, list) in fused::NORM.into_iter().zip([factors, zeros, zeros, ones]) {
                rewrite.module.set_operand(conv, place, list);
            }
            let epsilon = Attribute::f32(0.0);
            rewrite.module.set_attribute(conv, "epsilon", epsilon);
        }
        None => {}
    }
    if let Some(summands) = summands {
        let place = match fused::has_norm(rewrite.module, conv) {
            true => shift,
            false => fused::BIAS,
        };
        match node::operand(rewrite.module, conv, place) {
            Some(_) => then(rewrite, conv, place, "graph.add", summands, like),
            None => rewrite.module.set_operand(conv, place, summands),
        }
    }
}

/// Replaces an operand by a function of it and another list.
fn then(
    rewrite: &mut Rewrite<'_>,
    conv: OpId,
    place: usize,
    name: &str,
    other: ValueId,
    like: OpId,
) {
    let own = rewrite.module.op(conv).operands()[place];
    let made = both(rewrite, name, [own, other], like);
    rewrite.module.set_operand(conv, place, made);
}

/// Appends a list like another one with the same number everywhere.
fn of_one(rewrite: &mut Rewrite<'_>, number: f32, other: ValueId, like: OpId) -> ValueId {
    let list = DenseAttribute {
        ty: rewrite.module.value_type(other).clone(),
        elements: DenseElements::Bytes(number.to_le_bytes().to_vec().into()),
        splat: true,
    };
    rewrite.constant(list, like)
}

/// Appends a function of two lists.
fn both(rewrite: &mut Rewrite<'_>, name: &str, lists: [ValueId; 2], like: OpId) -> ValueId {
    let ty = rewrite.module.value_type(lists[0]).clone();
    let state = OpState::new(name).operands(lists);
    rewrite.add(state.result(ty), like)
}
