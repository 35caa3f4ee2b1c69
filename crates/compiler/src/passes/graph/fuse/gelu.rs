//! Recognises gelu that exporters write as many operations, with the error function or with tanh.
//!
//! | Is | As |
//! | --- | --- |
//! | `x / 2 (1 + erf(x / √2))` | `graph.gelu` |
//! | `x / 2 erfc(-x / √2)` | the same |
//! | `x / 2 (1 + tanh(√(2/π) (x + 0.044715 x³)))` | it with `approximate = "tanh"` |
//!
//! Factors may stand in any order, and numbers be multiplied or divided by.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI};

use tfrt_ir::{Attribute, BlockId, Module, OpId, OpState, Type, ValueId};

use super::super::node::{self, Product};
use super::super::rewrite::Rewrite;

/// Replaces the operations of a gelu by one.
pub(super) fn recognise(module: &mut Module, block: BlockId) {
    let (mut rewrite, old) = Rewrite::new(module, block);
    for &op in &old {
        match gelu(rewrite.module, op) {
            None => rewrite.keep(op),
            Some((x, approximate)) => {
                let state = OpState::new("graph.gelu")
                    .operand(rewrite.mapped(x))
                    .attribute("approximate", Attribute::string(approximate));
                super::replace(&mut rewrite, op, state);
            }
        }
    }
    rewrite.finish(&old);
}

/// Matches a gelu; returns its operand and its kind of approximation.
fn gelu(module: &Module, op: OpId) -> Option<(ValueId, &'static str)> {
    if !["mul", "div"].contains(&node::name(module, op)) {
        return None;
    }
    let result = module.op(op).results()[0];
    let rank = node::shape(module, result)?.len();
    let Product { factor, values } = node::product(module, op, rank)?;
    let &[a, b] = &values[..] else {
        return None;
    };
    if !is_near(factor, 0.5) || !node::is_f32(module, result) {
        return None;
    }
    [(a, b), (b, a)].into_iter().find_map(|(x, sum)| {
        let is_like = node::is_f32(module, x) && node::shape(module, x)?.len() == rank;
        if is_like && is_erfc(module, sum, x, rank) == Some(true) {
            return Some((x, "none"));
        }
        let inner = plus_one(module, sum, rank)?;
        let approximate = if is_erf(module, inner, x, rank) == Some(true) {
            "none"
        } else if is_tanh(module, inner, x, rank) == Some(true) {
            "tanh"
        } else {
            return None;
        };
        is_like.then_some((x, approximate))
    })
}

fn is_near(found: f64, wanted: f64) -> bool {
    (found / wanted - 1.0).abs() < 1e-6
}

/// Returns the value that 1 is added to.
fn plus_one(module: &Module, value: ValueId, rank: usize) -> Option<ValueId> {
    let op = node::single_use_op(module, value, "add")?;
    let mut pairs = node::pairs(module, op).into_iter().flatten();
    let found = pairs.find(|(_, one)| node::number(module, *one, rank) == Some(1.0))?;
    Some(found.0)
}

/// Matches a product with one user, and takes its factors apart.
fn inner_product(module: &Module, value: ValueId, rank: usize) -> Option<Product> {
    let of = |name| node::single_use_op(module, value, name);
    node::product(module, of("mul").or_else(|| of("div"))?, rank)
}

/// Returns whether a value is `erf(x / √2)`.
fn is_erf(module: &Module, value: ValueId, x: ValueId, rank: usize) -> Option<bool> {
    let erf = node::single_use_op(module, value, "erf")?;
    let product = inner_product(module, node::operand(module, erf, 0)?, rank)?;
    Some(product.values == [x] && is_near(product.factor, FRAC_1_SQRT_2))
}

/// Returns whether a value is `erfc(-x / √2)`.
fn is_erfc(module: &Module, value: ValueId, x: ValueId, rank: usize) -> Option<bool> {
    let erfc = node::single_use_op(module, value, "erfc")?;
    let product = inner_product(module, node::operand(module, erfc, 0)?, rank)?;
    let &[factor] = &product.values[..] else {
        return Some(false);
    };
    let negated = node::single_use_op(module, factor, "neg");
    let negated = negated.and_then(|op| node::operand(module, op, 0));
    Some(match negated {
        Some(inner) => inner == x && is_near(product.factor, FRAC_1_SQRT_2),
        None => factor == x && is_near(product.factor, -FRAC_1_SQRT_2),
    })
}

/// Returns whether a value is `tanh(√(2/π) (x + 0.044715 x³))`.
fn is_tanh(module: &Module, value: ValueId, x: ValueId, rank: usize) -> Option<bool> {
    let tanh = node::single_use_op(module, value, "tanh")?;
    let product = inner_product(module, node::operand(module, tanh, 0)?, rank)?;
    if !is_near(product.factor, FRAC_2_PI.sqrt()) {
        return Some(false);
    }
    // Or x (1 + 0.044715 x²).
    let (sum, power) = match product.values[..] {
        [sum] => (sum, 3),
        [a, b] if a == x => (b, 2),
        [a, b] if b == x => (a, 2),
        _ => return Some(false),
    };
    let higher = match power {
        2 => plus_one(module, sum, rank)?,
        _ => {
            let op = node::single_use_op(module, sum, "add")?;
            let mut pairs = node::pairs(module, op).into_iter().flatten();
            pairs.find(|(_, first)| *first == x)?.0
        }
    };
    let product = inner_product(module, higher, rank)?;
    let powers = product.values.iter().map(|value| match *value == x {
        true => Some(1),
        false => exponent(module, *value, x, rank),
    });
    let total: Option<u32> = powers.sum();
    Some(total == Some(power) && is_near(product.factor, 0.044715))
}

/// Returns the exponent of a power of `x`.
fn exponent(module: &Module, value: ValueId, x: ValueId, rank: usize) -> Option<u32> {
    let op = node::single_use_op(module, value, "pow")?;
    let &[base, exponent] = module.op(op).operands() else {
        return None;
    };
    let exponents = [2.0, 3.0];
    let found = node::number(module, exponent, rank)?;
    let known = exponents.iter().position(|known| *known == found)?;
    (base == x && *node::element(module.value_type(exponent)).as_ref()? == Type::F32)
        .then_some(if known == 0 { 2 } else { 3 })
}
