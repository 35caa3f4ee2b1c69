//! `graph-fold`: evaluates everything in a graph that is known when it is compiled.
//!
//! Identities go; constants that only get another shape are written with it; of operations that are alike one
//! stays; results whose elements `graph-infer` can tell become constants; what operations on constants give is evaluated, if somebody is there to do it; what
//! nobody uses goes. What is left that takes constants alone runs when a model is opened: `graph-lower` puts
//! it into the function that makes the constants.

use std::collections::HashMap;

use tfrt_ir::{
    Attribute, BlockId, Diagnostics, Module, Name, OpId, Type, ValueId, attributes::DenseAttribute,
};

pub(super) mod evaluate;

use tfrt_ops::{Arity, Table, Traits};

use super::infer::KnownIntegers;
use super::rewrite::{self, Rewrite, is_deterministic, remove_unused, stated};
use super::{CONSTANT, graphs, infer, inner_first, lower, node};
use crate::legalize::Context;
use crate::pipeline::{Pass, PassFn};

pub(crate) const PASS: Pass = Pass {
    name: "graph-fold",
    summary: "Removes what a graph need not calculate in each call",
    needs: &[],
    gives: &[],
    breaks: &[],
    run: PassFn::WithContext(run),
};

/// The most bytes of a constant that is compared with others.
const MOST_COMPARED_BYTES: usize = 1 << 16;

pub(in crate::passes) fn run(module: &mut Module, context: &Context<'_>, _: &mut Diagnostics) {
    let rows = &context.dialects.rows;
    for (function, block) in graphs(module) {
        lower::hoist_constants(module, block);
        let known = infer::known_integers(module, context, function, block);
        for block in inner_first(module, block) {
            integers(module, context, &known, block);
            identities(module, block);
            reshapes(module, block);
            merge(module, rows, block);
            evaluate::evaluate(module, block, context.evaluator);
            remove_unused(module, rows, block);
        }
        // A value that takes the place of a result may be of another type, less or more of which is known.
        infer::signature(module, function, block);
    }
}

/// Makes constants of integers that follow from the types of inputs, mostly extents and calculations on them.
fn integers(
    module: &mut Module,
    context: &Context<'_>,
    known: &HashMap<ValueId, KnownIntegers>,
    block: BlockId,
) {
    let (mut rewrite, old) = Rewrite::new(module, block);
    for &op in &old {
        rewrite.keep(op);
        let is_constant = *rewrite.module.op(op).name() == CONSTANT;
        if is_constant || !is_deterministic(rewrite.module, &context.dialects.rows, op) {
            continue;
        }
        for result in rewrite.module.op(op).results().to_vec() {
            let is_unused = rewrite.module.is_unused(result);
            if let Some(known) = known.get(&result).filter(|_| !is_unused) {
                let mut list = rewrite::integers_of(known.dtype, &known.numbers);
                let element = list.element_type().clone();
                list.ty = Type::tensor(known.shape.clone(), element);
                let made = rewrite.constant(list, op);
                rewrite.values.insert(result, made);
            }
        }
    }
    rewrite.finish(&old);
}

/// Bypasses operations that return their operand.
fn identities(module: &mut Module, block: BlockId) {
    for op in module.block(block).operations().to_vec() {
        if let Some(value) = same(module, op) {
            let result = module.op(op).results()[0];
            module.replace_all_uses(result, value);
        }
    }
}

/// Returns the operand that an operation's only result is equal to.
fn same(module: &Module, op: OpId) -> Option<ValueId> {
    let x = node::operand(module, op, 0)?;
    let (result, more) = module.op(op).results().split_first()?;
    let is_only = more.iter().all(|result| module.is_unused(*result));
    if !is_only {
        return None;
    }
    let (from, to) = (module.value_type(x), module.value_type(*result));
    let is_static = |ty: &Type| {
        let shape = ty.as_shaped();
        shape.is_some_and(|(shape, _)| shape.iter().all(|extent| *extent >= 0))
    };
    let n_operands = module.op(op).operands().len();
    let row = node::row(module, op).filter(|_| !node::name(module, op).is_empty())?;
    let is_joined = row.inputs.len() == 1 && matches!(row.inputs[0].arity, Arity::Rest(_));
    let is_same = match row.name {
        "identity" => true,
        "onnx.Dropout" => {
            let trains = node::operand(module, op, 2);
            trains.is_none_or(|value| node::constant_ints(module, value) == Some(vec![0]))
        }
        "cast" => {
            let element = node::element(from);
            element.is_some() && element.as_ref() == node::ty(module, op, "to")
        }
        "broadcast" | "slice" | "pad" => {
            from == to && is_static(from) && keeps_elements(module, op)
        }
        "transpose" => {
            let order = node::ints(module, op, "perm")?;
            order.iter().copied().eq(0..order.len() as i64)
        }
        // Of one alone.
        "concat" => n_operands == 1,
        _ if is_joined && row.is(Traits::POINTWISE) => n_operands == 1,
        _ => row.is(Traits::VIEW) && from == to && is_static(from),
    };
    is_same.then_some(x)
}

/// Returns whether an operation whose result has the shape of its operand also has its elements.
fn keeps_elements(module: &Module, op: OpId) -> bool {
    let ints = |index: usize| {
        let value = node::operand(module, op, index)?;
        node::constant_ints(module, value)
    };
    match node::name(module, op) {
        "slice" => match node::operand(module, op, 4) {
            None => true,
            Some(_) => ints(4).is_some_and(|steps| steps.iter().all(|step| *step > 0)),
        },
        "pad" => ints(1).is_some_and(|pads| pads.iter().all(|pad| *pad == 0)),
        _ => true,
    }
}

/// Reshapes constants to the shape with which they are used.
fn reshapes(module: &mut Module, block: BlockId) {
    let (mut rewrite, old) = Rewrite::new(module, block);
    for &op in &old {
        match reshaped(&rewrite, op) {
            None => rewrite.keep(op),
            Some(dense) => {
                let made = rewrite.constant(dense, op);
                let result = rewrite.module.op(op).results()[0];
                rewrite.values.insert(result, made);
            }
        }
    }
    rewrite.finish(&old);
}

/// Returns the constant that an operation makes of a constant by changing its shape alone. Elements are shared.
fn reshaped(rewrite: &Rewrite<'_>, op: OpId) -> Option<DenseAttribute> {
    let module = &*rewrite.module;
    if !node::row(module, op).is_some_and(|row| row.is(Traits::VIEW)) {
        return None;
    }
    let x = node::operand(module, op, 0)?;
    let dense = node::constant(module, rewrite.mapped(x))?;
    // A file has the elements of each constant.
    let is_small = dense.bytes().len() <= MOST_COMPARED_BYTES;
    if !is_small && module.users(x).count() > 1 {
        return None;
    }
    let result = module.op(op).results()[0];
    let (shape, element) = module.value_type(result).as_shaped()?;
    let n_elements = shape.iter().try_fold(1_i64, |product, extent| {
        let extent = (*extent >= 0).then_some(*extent)?;
        product.checked_mul(extent)
    })?;
    let fits =
        dense.n_elements() == Some(n_elements.unsigned_abs()) && element == dense.element_type();
    fits.then(|| DenseAttribute {
        ty: Type::tensor(shape.clone(), element.clone()),
        ..dense.clone()
    })
}

/// The key by which two operations are alike.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    name: Name,
    operands: Vec<ValueId>,
    attributes: Vec<(Name, Attribute)>,
    results: usize,
}

/// Merges operations that are alike.
fn merge(module: &mut Module, rows: &Table, block: BlockId) {
    let mut first: HashMap<Key, OpId> = HashMap::new();
    for op in module.block(block).operations().to_vec() {
        if !is_deterministic(module, rows, op) || super::is_terminator(module, op) {
            continue;
        }
        let data = module.op(op);
        if *data.name() == CONSTANT && is_large(data.attribute("value")) {
            continue;
        }
        let key = Key {
            name: data.name().clone(),
            operands: data.operands().to_vec(),
            attributes: stated(module, op),
            results: data.results().len(),
        };
        match first.get(&key) {
            None => drop(first.insert(key, op)),
            Some(kept) => {
                let (kept, gone) = (*kept, data.results().to_vec());
                let news = module.op(kept).results().to_vec();
                for (old, new) in gone.into_iter().zip(news) {
                    if module.value_type(old) == module.value_type(new) {
                        module.replace_all_uses(old, new);
                    }
                }
            }
        }
    }
}

fn is_large(value: Option<&Attribute>) -> bool {
    match value {
        Some(Attribute::Dense(dense)) => dense.bytes().len() > MOST_COMPARED_BYTES,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
