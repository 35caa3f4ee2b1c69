//! [`Heads`]: queries, keys or values as they lie, heads behind rows, and as rows of heads side by side.

use tfrt_ir::{Attribute, Module, OpId, OpState, Type, ValueId};

use super::super::super::node;
use super::super::super::rewrite::Rewrite;

/// The most operations that are looked through for what a batch comes from.
const MOST_STEPS: usize = 32;

/// A value of shape `[batch, rows, heads, width]`.
#[derive(Clone, Copy)]
pub(super) struct Heads {
    pub(super) value: ValueId,
    pub(super) n_heads: i64,
    pub(super) width: i64,
}

impl Heads {
    /// Returns a value with heads, if it has four dimensions, and the number of heads and their width are known.
    pub(super) fn of(module: &Module, value: ValueId) -> Option<Heads> {
        let &[_, _, n_heads, width] = &node::shape(module, value)?[..] else {
            return None;
        };
        let is_known = n_heads > 0 && width > 0 && n_heads.checked_mul(width).is_some();
        (is_known && node::is_f32(module, value)).then_some(Heads {
            value,
            n_heads,
            width,
        })
    }

    /// Returns the extents with heads side by side, -1 where unknown.
    pub(super) fn merged_shape(&self, module: &Module) -> Vec<i64> {
        let shape = node::shape(module, self.value).unwrap_or_default();
        let mut merged: Vec<i64> = shape.into_iter().take(2).collect();
        merged.push(self.n_heads * self.width);
        merged
    }

    /// Returns the heads side by side: the value that they were split off, or a view.
    pub(super) fn merged(&self, rewrite: &mut Rewrite<'_>, like: OpId) -> ValueId {
        let module = &*rewrite.module;
        let shape = self.merged_shape(module);
        let mut source = self.value;
        let split = module.defining_op(self.value);
        if let Some(op) = split.filter(|op| node::name(module, *op) == "reshape")
            && let Some(whole) = node::operand(module, op, 0)
        {
            let is_merged = node::shape(module, whole)
                .is_some_and(|own| own.len() == 3 && own.last() == shape.last());
            if is_merged && keeps_rows(module, op, whole, 3) {
                return rewrite.mapped(whole);
            }
            if !shape.contains(&-1) {
                source = whole;
            }
        }
        let is_known = !shape.contains(&-1);
        let sizes = match is_known {
            true => shape.clone(),
            false => vec![0, 0, self.n_heads * self.width],
        };
        let sizes = rewrite.integers(&sizes, like);
        let allow_zero = Attribute::integer(i64::from(is_known), Type::I64);
        let state = OpState::new("graph.reshape")
            .operands([rewrite.mapped(source), sizes])
            .attribute("allow_zero", allow_zero);
        rewrite.add(state.result(Type::tensor(shape, Type::F32)), like)
    }
}

/// Returns whether an operation lays the heads of a value side by side.
pub(super) fn is_joined(module: &Module, op: OpId, value: ValueId) -> bool {
    if node::name(module, op) != "reshape" || node::operand(module, op, 0) != Some(value) {
        return false;
    }
    let result = module.op(op).results()[0];
    let shapes = [value, result].map(|value| node::shape(module, value));
    let [Some(apart), Some(joined)] = shapes else {
        return false;
    };
    let is_whole = match (&apart[..], &joined[..]) {
        (&[_, _, heads, width], &[_, _, hidden]) => {
            heads > 0 && width > 0 && heads.checked_mul(width) == Some(hidden)
        }
        _ => false,
    };
    is_whole && keeps_rows(module, op, value, 4)
}

/// Returns whether a `Reshape` of a value of this rank leaves the first two dimensions as they are.
fn keeps_rows(module: &Module, op: OpId, value: ValueId, rank: usize) -> bool {
    if node::shape(module, value).is_none_or(|shape| shape.len() != rank) {
        return false;
    }
    if copies(module, op, 2) {
        return true;
    }
    let result = module.op(op).results()[0];
    let extents = [value, result].map(|value| node::extents(module, value));
    matches!(extents, [Some(a), Some(b)] if a[..2] == b[..2])
}

/// Returns whether a `Reshape` copies the first `n` dimensions by zeros.
fn copies(module: &Module, op: OpId, n: usize) -> bool {
    let wanted = node::operand(module, op, 1).and_then(|shape| node::constant_ints(module, shape));
    let is_zero = |sizes: Vec<i64>| sizes.len() >= n && sizes[..n].iter().all(|size| *size == 0);
    node::int(module, op, "allow_zero", 0) == 0 && wanted.is_some_and(is_zero)
}

/// Returns whether values are known to have the same first extent.
pub(super) fn is_one_batch(module: &Module, values: [ValueId; 3]) -> bool {
    let extents = values.map(|value| first_extent(module, value));
    let roots = values.map(|value| batch_root(module, value));
    let is_alike = |index: usize| {
        let is_known = extents[0].is_some() && extents[0] == extents[index];
        is_known || roots[0] == roots[index]
    };
    is_alike(1) && is_alike(2)
}

/// Returns the first extent of a value, a number or a symbol, if it is known.
fn first_extent(module: &Module, value: ValueId) -> Option<Attribute> {
    let first = *node::shape(module, value)?.first()?;
    if first >= 0 {
        return Some(Attribute::integer(first, Type::I64));
    }
    let op = module.defining_op(value)?;
    let mut results = module.op(op).results().iter();
    let at = results.position(|result| *result == value)?;
    let shapes = module.op(op).attribute("model.shapes")?.as_array()?;
    let first = shapes.get(at)?.as_array()?.first()?;
    first.as_str().filter(|name| !name.is_empty())?;
    Some(first.clone())
}

/// Returns a value from which another one has its first extent, through products with matrices, sums with what broadcasts
/// along that dimension, and changes of shape.
fn batch_root(module: &Module, mut value: ValueId) -> ValueId {
    for _ in 0..MOST_STEPS {
        match batch_source(module, value) {
            Some(source) => value = source,
            None => break,
        }
    }
    value
}

fn batch_source(module: &Module, value: ValueId) -> Option<ValueId> {
    let op = module.defining_op(value)?;
    let rank = node::shape(module, value)?.len();
    let rank_of = |value| node::shape(module, value).map(|shape| shape.len());
    match node::name(module, op) {
        "reshape" if copies(module, op, 1) => node::operand(module, op, 0),
        "dot" if rank > 2 => {
            let [left, right] = [0, 1].map(|index| node::operand(module, op, index));
            (rank_of(right?) == Some(2)).then_some(left?)
        }
        "add" | "sub" | "mul" | "div" => {
            let is_spread = |value| {
                node::shape(module, value)
                    .is_some_and(|shape| shape.len() < rank || shape.first() == Some(&1))
            };
            let mut pairs = node::pairs(module, op).into_iter().flatten();
            pairs.find_map(|(own, other)| {
                (rank_of(own) == Some(rank) && is_spread(other)).then_some(own)
            })
        }
        _ => None,
    }
}
