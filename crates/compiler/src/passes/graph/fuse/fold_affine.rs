//! Folds factors and summands of columns behind a product into its constant matrix, and into its bias.
//!
//! Normalisations by known statistics are such, and so are they as exporters write them out. One factor for all columns is
//! left for the epilogue.

use std::collections::HashSet;

use tfrt_ir::{BlockId, Module, OpId, OpState, Type, ValueId, attributes::DenseAttribute};

use super::super::layout::{known_statistics, statistics};
use super::super::rewrite::Rewrite;
use super::super::{fused, node};

/// Folds the column operations behind products.
pub(super) fn fold(module: &mut Module, block: BlockId) {
    let (mut rewrite, old) = Rewrite::new(module, block);
    let mut scaled = HashSet::new();
    for &op in &old {
        if step(&mut rewrite, &mut scaled, op).is_none() {
            rewrite.keep(op);
        }
    }
    rewrite.finish(&old);
}

/// An operation behind a product that multiplies, adds to, or normalises each column by constants.
enum ColumnOp {
    Factors(DenseAttribute),
    Summands(DenseAttribute),
    Norm,
}

/// Folds an operation into the product before it. Biases are added only where columns were multiplied: others are
/// rounded as they are.
fn step(rewrite: &mut Rewrite<'_>, scaled: &mut HashSet<OpId>, op: OpId) -> Option<()> {
    let module = &*rewrite.module;
    let &[result] = module.op(op).results() else {
        return None;
    };
    let (x, step) = match node::name(module, op) {
        "mul" => constant_of(module, op).map(|(x, list)| (x, ColumnOp::Factors(list)))?,
        "add" => constant_of(module, op).map(|(x, list)| (x, ColumnOp::Summands(list)))?,
        "norm" if node::text(module, op, "kind") == "batch" => {
            let x = node::operand(module, op, 0)?;
            // Of more dimensions the second one is normalised.
            (node::shape(module, x)?.len() == 2).then_some((x, ColumnOp::Norm))?
        }
        _ => return None,
    };
    let now = rewrite.mapped(x);
    let product = open_product(module, x, now)?;
    let columns = *node::shape(module, x)?.last()?;
    let has_bias = node::operand(module, product, fused::BIAS).is_some();
    match step {
        ColumnOp::Factors(list) if !is_moderate(&list) => return None,
        ColumnOp::Factors(list) => {
            let list = rewrite.constant(of_columns(list, columns)?, op);
            multiply(rewrite, product, list, columns, op);
            scaled.insert(product);
        }
        ColumnOp::Summands(list) if !has_bias || scaled.contains(&product) => {
            let list = rewrite.constant(of_columns(list, columns)?, op);
            add(rewrite, product, list, op);
        }
        ColumnOp::Summands(_) => return None,
        ColumnOp::Norm => {
            let (parameters, epsilon) = known_statistics(module, op)?;
            let parameters = parameters.into_iter().map(|value| rewrite.mapped(value));
            let [factors, summands] = statistics(rewrite, parameters.collect(), epsilon, op)?;
            multiply(rewrite, product, factors, columns, op);
            add(rewrite, product, summands, op);
            scaled.insert(product);
        }
    }
    // Constants may come later in the block than the product does.
    rewrite.move_to_end(product);
    rewrite.values.insert(result, now);
    Some(())
}

/// Returns the operands of a binary function, of which one is a constant of `f32` with no more dimensions.
fn constant_of(module: &Module, op: OpId) -> Option<(ValueId, DenseAttribute)> {
    let &[left, right] = module.op(op).operands() else {
        return None;
    };
    let (x, list) = match node::constant(module, right) {
        Some(list) => (left, list),
        None => (right, node::constant(module, left)?),
    };
    let fits = *list.element_type() == Type::F32
        && node::is_f32(module, x)
        && list.shape().len() <= node::shape(module, x)?.len();
    fits.then(|| (x, list.clone()))
}

/// Returns whether all factors are far from the limits of `f32`, so that multiplying before the sum gives the same as
/// behind it, unless the matrix has numbers at these limits.
fn is_moderate(list: &DenseAttribute) -> bool {
    const MOST: f32 = 1.8446744e19; // 2^64
    let (each, _) = list.bytes().as_chunks::<4>();
    each.iter().all(|bytes| {
        let factor = f32::from_le_bytes(*bytes).abs();
        factor == 0.0 || (1.0 / MOST..=MOST).contains(&factor)
    })
}

/// Returns a constant with an element for each column as a list.
fn of_columns(list: DenseAttribute, columns: i64) -> Option<DenseAttribute> {
    let shape = list.shape();
    let (last, leading) = shape.split_last()?;
    let fits = *last == columns && columns > 1 && leading.iter().all(|extent| *extent == 1);
    fits.then(|| DenseAttribute {
        ty: Type::tensor(vec![columns], Type::F32),
        ..list.clone()
    })
}

/// Returns the product that makes a value, if that has one user, nothing but a bias follows, and the product has a
/// matrix of its own.
fn open_product(module: &Module, x: ValueId, now: ValueId) -> Option<OpId> {
    let product = module.defining_op(now)?;
    let is_own = |value: ValueId| module.users(value).count() == 1;
    let fits = fused::is(module, product, fused::MATMUL)
        && fused::has_no_epilogue(module, product)
        && node::operand(module, product, fused::ADDED).is_none()
        && [x, now].into_iter().all(is_own)
        && node::only_user(module, x).is_some();
    let weights = node::operand(module, product, fused::WEIGHTS)?;
    (fits && is_own(weights)).then_some(product)
}

/// Multiplies the columns of a product.
fn multiply(rewrite: &mut Rewrite<'_>, product: OpId, list: ValueId, columns: i64, like: OpId) {
    let weights = rewrite.module.op(product).operands()[fused::WEIGHTS];
    let is_turned = node::int(rewrite.module, product, "transposed", 0) != 0;
    let factors = match is_turned {
        false => list,
        true => {
            let extents = rewrite.integers(&[columns, 1], like);
            let reshape = OpState::new("graph.reshape").operands([list, extents]);
            let ty = Type::tensor(vec![columns, 1], Type::F32);
            rewrite.add(reshape.result(ty), like)
        }
    };
    let ty = rewrite.module.value_type(weights).clone();
    let weights = both(rewrite, "graph.mul", [weights, factors], ty, like);
    rewrite.module.set_operand(product, fused::WEIGHTS, weights);
    if let Some(bias) = node::operand(rewrite.module, product, fused::BIAS) {
        let ty = of_both(rewrite.module, bias, list);
        let bias = both(rewrite, "graph.mul", [bias, list], ty, like);
        rewrite.module.set_operand(product, fused::BIAS, bias);
    }
}

/// Adds a list to the columns of a product.
fn add(rewrite: &mut Rewrite<'_>, product: OpId, list: ValueId, like: OpId) {
    let bias = match node::operand(rewrite.module, product, fused::BIAS) {
        None => list,
        Some(bias) => {
            let ty = of_both(rewrite.module, bias, list);
            both(rewrite, "graph.add", [bias, list], ty, like)
        }
    };
    rewrite.module.set_operand(product, fused::BIAS, bias);
}

/// Returns the type of a function of a bias, which may have one element for all columns, and of a list.
fn of_both(module: &Module, bias: ValueId, list: ValueId) -> Type {
    let rank = node::shape(module, bias).map_or(1, |shape| shape.len());
    let columns = node::shape(module, list).unwrap_or_default();
    let leading = std::iter::repeat_n(1, rank.saturating_sub(1));
    Type::tensor(leading.chain(columns).collect(), Type::F32)
}

/// Appends a function of two constants.
fn both(
    rewrite: &mut Rewrite<'_>,
    name: &str,
    operands: [ValueId; 2],
    ty: Type,
    like: OpId,
) -> ValueId {
    rewrite.add(OpState::new(name).operands(operands).result(ty), like)
}
