//! Factors and summands of channels: they go into the filter before them, or become one of each.

use tfrt_ir::{
    Attribute, OpId, OpState, Type, ValueId,
    attributes::{DenseAttribute, DenseElements},
};

use super::super::node;
use super::super::rewrite::Rewrite;
use super::images::{Images, LAST, Scaled, permuted};
use super::rules::{finish, of_channels};

/// A normalisation by known statistics.
pub(super) fn normalisation(
    rewrite: &mut Rewrite<'_>,
    images: &mut Images,
    op: OpId,
) -> Option<()> {
    let module = &*rewrite.module;
    let is_plain = node::int(module, op, "training", 0) == 0
        && node::int(module, op, "spatial", 1) != 0
        && module.op(op).results().len() == 1;
    if !is_plain {
        return None;
    }
    let operands = module.op(op).operands().to_vec();
    let [x, parameters @ ..] = &operands[..] else {
        return None;
    };
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
    let result = module.op(op).results()[0];
    let parameters: Vec<ValueId> = parameters.iter().map(|value| rewrite.now(*value)).collect();
    let image = images.last(rewrite, *x, op);
    if let Some((conv, pack)) = filter_before(rewrite, *x, image)
        && rewrite.module.op(pack).operands().len() < 3
    {
        let mut all = rewrite.module.op(pack).operands().to_vec();
        all.extend(parameters);
        rewrite.module.set_operands(pack, &all);
        rewrite.module.set_attribute(pack, "epsilon", epsilon);
        // Parameters may come later in the block than the filter does.
        rewrite.move_to_end(pack, Some(conv));
        images.set(result, image);
        return Some(());
    }
    let [factors, summands] = statistics(rewrite, parameters, epsilon, op)?;
    scale(rewrite, images, op, *x, [Some(factors), Some(summands)]);
    Some(())
}

/// A product, a sum or a difference of an image and a constant of an element for each channel, or one for all.
pub(super) fn scaling(
    rewrite: &mut Rewrite<'_>,
    images: &mut Images,
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
        None if name == "sub" => return None,
        None => (right, node::constant(module, left)?),
    };
    let shape = node::shape(module, x)?;
    let &[_, channels, _, _] = &shape[..] else {
        return None;
    };
    let fits = ["add", "mul", "sub", "onnx.Sum"].contains(&name)
        && images.is_native(x)
        && channels > 0
        && node::is_f32(module, x)
        && *constant.element_type() == Type::F32;
    let constant = of_channels(constant).filter(|_| fits)?;
    let list = match constant.shape()[..] {
        [] => DenseAttribute {
            ty: Type::tensor(vec![channels], Type::F32),
            splat: true,
            ..constant
        },
        [n] if n == channels => constant,
        _ => return None,
    };
    let list = rewrite.constant(list, op);
    let steps = match name {
        "mul" => [Some(list), None],
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

/// Returns the convolution that makes an image for one user alone, and what packs its filter.
fn filter_before(rewrite: &Rewrite<'_>, x: ValueId, image: ValueId) -> Option<(OpId, OpId)> {
    let module = &*rewrite.module;
    let conv = module.defining_op(image)?;
    if *module.op(conv).name() != "cpu.fused.conv" || module.users(x).count() != 1 {
        return None;
    }
    let pack = module.defining_op(*module.op(conv).operands().get(1)?)?;
    Some((conv, pack))
}

/// Returns the factors and summands that a normalisation is.
fn statistics(
    rewrite: &mut Rewrite<'_>,
    parameters: Vec<ValueId>,
    epsilon: Attribute,
    like: OpId,
) -> Option<[ValueId; 2]> {
    let ty = rewrite.module.value_type(parameters[0]).clone();
    let state = OpState::new("cpu.pack.norm")
        .operands(parameters)
        .attribute("epsilon", epsilon)
        .results([ty.clone(), ty]);
    let factors = rewrite.add(state, like);
    let op = rewrite.module.defining_op(factors)?;
    let summands = rewrite.module.op(op).results()[1];
    Some([factors, summands])
}

/// Multiplies an image by factors, and adds summands, both of channels; there is one of them at least.
fn scale(
    rewrite: &mut Rewrite<'_>,
    images: &mut Images,
    op: OpId,
    x: ValueId,
    [factors, summands]: [Option<ValueId>; 2],
) {
    let result = rewrite.module.op(op).results()[0];
    let image = images.last(rewrite, x, op);
    let mut next = Scaled {
        image,
        factors,
        summands,
    };
    if let Some((conv, pack)) = filter_before(rewrite, x, image) {
        into_filter(rewrite, pack, [factors, summands], op);
        rewrite.move_to_end(pack, Some(conv));
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

/// Returns what comes of one after the other, of the image that the first is of.
fn after(rewrite: &mut Rewrite<'_>, first: Scaled, second: Scaled, like: OpId) -> Scaled {
    let mut with = |name: &str, left: Option<ValueId>, right: Option<ValueId>| match (left, right) {
        (Some(left), Some(right)) => Some(both(rewrite, name, [left, right], like)),
        (left, right) => left.or(right),
    };
    let factors = with("graph.mul", first.factors, second.factors);
    let summands = match (first.summands, second.factors) {
        (Some(summands), Some(factors)) => with("graph.mul", Some(summands), Some(factors)),
        (summands, _) => summands,
    };
    Scaled {
        image: first.image,
        factors,
        summands: with("graph.add", summands, second.summands),
    }
}

/// Multiplies a filter's sums by factors, and adds summands: as a normalisation, or as a bias.
fn into_filter(
    rewrite: &mut Rewrite<'_>,
    pack: OpId,
    [factors, summands]: [Option<ValueId>; 2],
    like: OpId,
) {
    let mut operands = rewrite.module.op(pack).operands().to_vec();
    // Behind the filter: a bias or none; scale, shift, mean and variance or none of these.
    let mut has_norm = operands.len() > 2;
    if let (Some(factors), false) = (factors, has_norm) {
        let zeros = of_one(rewrite, 0.0, factors, like);
        let ones = of_one(rewrite, 1.0, factors, like);
        operands.extend([factors, zeros, zeros, ones]);
        let epsilon = Attribute::f32(0.0);
        rewrite.module.set_attribute(pack, "epsilon", epsilon);
        has_norm = true;
    } else if let Some(factors) = factors {
        let [.., scale, shift, _, _] = &mut operands[..] else {
            return;
        };
        *scale = both(rewrite, "graph.mul", [*scale, factors], like);
        *shift = both(rewrite, "graph.mul", [*shift, factors], like);
    }
    if let Some(summands) = summands {
        match (&mut operands[..], has_norm) {
            ([.., shift, _, _], true) | ([_, shift], false) => {
                *shift = both(rewrite, "graph.add", [*shift, summands], like);
            }
            _ => operands.push(summands),
        }
    }
    rewrite.module.set_operands(pack, &operands);
}

/// Appends a list like another with the same number everywhere.
fn of_one(rewrite: &mut Rewrite<'_>, number: f32, other: ValueId, like: OpId) -> ValueId {
    let list = DenseAttribute {
        ty: rewrite.module.value_type(other).clone(),
        elements: DenseElements::Bytes(number.to_le_bytes().as_slice().into()),
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
