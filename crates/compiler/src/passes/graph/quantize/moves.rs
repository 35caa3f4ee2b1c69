//! Operations that choose and move elements, between `dequantize` and `quantize` of one scale: they do so with integers.
//!
//! To dequantise a byte and to quantise it by the same scale gives the byte. So where nothing lies between, both vanish, and
//! an operation whose elements are those of its operands, in another order, or the largest of some, is one on bytes.

use tfrt_ir::{Module, OpId, OpState, Type, ValueId};
use tfrt_ops::Traits;

use super::super::node;
use super::super::rewrite::{self, Rewrite};
use super::{Scaled, below_activations, replace};

/// Operations whose elements are those of operand 0, beside views.
const MOVES: [&str; 4] = ["broadcast", "gather", "slice", "transpose"];

/// Scales by which products with integers of 9 bits are neither infinite nor lose bits.
const EXACT: std::ops::Range<f64> = 1e-30..1e30;

/// Makes what is quantised by operations on bytes, if those are moved only.
pub(super) fn moved(rewrite: &mut Rewrite<'_>, op: OpId) -> Option<()> {
    let module = &*rewrite.module;
    if node::name(module, op) != "quantize" {
        return None;
    }
    let result = module.op(op).results()[0];
    let to = Scaled::of(module, op, result)?;
    EXACT.contains(&to.numbers.0).then_some(())?;
    let mut value = node::operand(module, op, 0)?;
    // What a range implies changes nothing, wherever it stands.
    if let Some(made) = below_activations(module, value, &to) {
        value = module.op(made).results()[0];
    }
    let mut moves = Vec::new();
    let sources = loop {
        if let Some(bytes) = source(module, value, &to) {
            break vec![bytes];
        }
        let own = module.defining_op(value)?;
        node::only_user(module, value)?;
        moves.push(own);
        let operands = module.op(own).operands();
        if node::name(module, own) == "concat" {
            let sources = operands.iter().map(|value| source(module, *value, &to));
            break sources.collect::<Option<Vec<ValueId>>>()?;
        }
        is_move(module, own).then_some(())?;
        value = node::operand(module, own, 0)?;
    };
    let mut sources: Vec<ValueId> = sources.iter().map(|value| rewrite.mapped(*value)).collect();
    let last = moves.first().copied();
    for own in moves.into_iter().rev() {
        let n_taken = sources.len();
        let others = rewrite.module.op(own).operands()[n_taken..].to_vec();
        sources.extend(others.into_iter().map(|value| rewrite.mapped(value)));
        let data = rewrite.module.op(own);
        let mut state = OpState::new(data.name().clone()).operands(std::mem::take(&mut sources));
        for (name, value) in rewrite::stated(rewrite.module, own) {
            state = state.attribute(name, value);
        }
        if Some(own) == last {
            replace(rewrite, op, state);
            return Some(());
        }
        if let Some(shapes) = rewrite.module.op(own).attribute("model.shapes") {
            state = state.attribute("model.shapes", shapes.clone());
        }
        let ty = of_bytes(rewrite.module, own, result)?;
        sources.push(rewrite.add(state.result(ty), own));
    }
    // Nothing lies between.
    rewrite.values.insert(result, *sources.first()?);
    Some(())
}

/// Returns the bytes that a value is dequantised of, by the scale that it is quantised by.
fn source(module: &Module, value: ValueId, to: &Scaled) -> Option<ValueId> {
    let from = Scaled::read(module, value)?;
    let is_same = from.dtype == to.dtype && from.numbers == to.numbers;
    is_same.then_some(from.bytes)
}

/// Returns whether an operation has the elements of its operand, or the largest of some.
fn is_move(module: &Module, op: OpId) -> bool {
    let is_largest = || node::name(module, op) == "pool" && node::text(module, op, "kind") == "max";
    let has_one = module.op(op).results().len() == 1 && module.op(op).regions().is_empty();
    let is_view = || node::row(module, op).is_some_and(|row| row.is(Traits::VIEW));
    let is_on_host = !node::name(module, op).is_empty();
    has_one
        && is_on_host
        && node::is_f32(module, module.op(op).results()[0])
        && (MOVES.contains(&node::name(module, op)) || is_view() || is_largest())
}

/// Returns the type of an operation's result, of elements as another value has.
fn of_bytes(module: &Module, op: OpId, like: ValueId) -> Option<Type> {
    let element = node::element(module.value_type(like))?;
    let result = module.op(op).results()[0];
    Some(match module.value_type(result).as_shaped() {
        Some((shape, _)) => Type::tensor(shape, element),
        None => Type::unranked(element),
    })
}
