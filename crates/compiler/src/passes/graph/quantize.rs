//! `graph-quantize`: makes operations on integers of those between `dequantize` and `quantize`.
//!
//! Exporters write a quantised model as one of floats, with `dequantize` in front of each operation and `quantize` behind it.
//! A convolution between them, and an activation that the range of the result implies, becomes the operation on integers
//! that another exporter would have written, `onnx.QLinearConv`: its sums are exact, and rounded once. A result differs by at
//! most one step from that of the floats, whose sums are rounded. It and those that the file has are noted as such whose sums
//! may be scaled in `f32`, which `graph-layout` makes of them. Where any part is of another form, or a float is used by
//! somebody else, nothing is done. Products of matrices become `graph.quantized_dot` (`products.rs`), or `graph.integer_dot`
//! where their results stay floats. What only moves elements moves bytes (`moves.rs`). Sums are a pass of
//! their own (`sums.rs`).
//!
//! It runs before constants are folded, which takes the integers away.

mod convolution;
mod moves;
mod products;
pub(in crate::passes) mod sums;

use tfrt_bef::DType;
use tfrt_ir::{
    Attribute, BlockId, Diagnostics, Module, OpId, OpState, Type, ValueId,
    attributes::{DenseAttribute, DenseElements},
};

use super::rewrite::{self, ROUNDED_ONCE, Rewrite};
use super::{attrs, graphs, inner_first, node};
use crate::legalize::Context;
use crate::pipeline::{Pass, PassFn};

pub(crate) const PASS: Pass = Pass {
    name: "graph-quantize",
    summary: "Makes operations on integers of those between `dequantize` and `quantize`",
    needs: &[],
    gives: &[],
    breaks: &[],
    run: PassFn::WithContext(run),
};

/// The rules of operations whose results are quantised.
const TO_BYTES: [Rule; 3] = [convolution::convolution, products::to_bytes, moves::moved];

/// The rules of operations whose results stay floats.
const TO_FLOATS: [Rule; 1] = [products::to_floats];

fn run(module: &mut Module, context: &Context<'_>, _: &mut Diagnostics) {
    let rows = &context.dialects.rows;
    for (_, block) in graphs(module) {
        for block in inner_first(module, block) {
            // What stays a float is what nothing quantises.
            for rules in [&TO_BYTES[..], &TO_FLOATS] {
                self::block(module, block, rules);
                rewrite::remove_unused(module, rows, block);
            }
        }
    }
}

/// Makes an operation on integers in the place of one, if there is any.
type Rule = fn(&mut Rewrite<'_>, OpId) -> Option<()>;

/// Rewrites the operations of a block by the first rule that takes each.
fn block(module: &mut Module, block: BlockId, rules: &[Rule]) {
    let (mut rewrite, old) = Rewrite::new(module, block);
    for &op in &old {
        if rules.iter().all(|rule| rule(&mut rewrite, op).is_none()) {
            if node::name(rewrite.module, op) == "onnx.QLinearConv" {
                rewrite.module.set_attribute(op, ROUNDED_ONCE, note());
            }
            rewrite.keep(op);
        }
    }
    rewrite.finish(&old);
}

/// Appends an operation that replaces another one's only result.
fn replace(rewrite: &mut Rewrite<'_>, op: OpId, mut state: OpState) {
    let result = rewrite.module.op(op).results()[0];
    if let Some(shapes) = rewrite.module.op(op).attribute("model.shapes") {
        state = state.attribute("model.shapes", shapes.clone());
    }
    let ty = rewrite.module.value_type(result).clone();
    let made = rewrite.add(state.result(ty), op);
    rewrite.values.insert(result, made);
}

/// Returns the value of a note that holds or is left out.
fn note() -> Attribute {
    Attribute::integer(1, Type::I64)
}

/// Scale and zero point of a tensor of bytes, of one element each.
pub(super) struct Scaled {
    /// The tensor of bytes.
    pub(super) bytes: ValueId,
    scale: ValueId,
    /// The zero point; where it is left out, it is 0.
    zero: Option<ValueId>,
    pub(super) dtype: DType,
    /// The number of the scale, and of the zero point.
    pub(super) numbers: (f64, i64),
}

impl Scaled {
    /// Returns what an operation `quantize` makes, or `dequantize` reads, if it is one of bytes with one scale.
    pub(super) fn of(module: &Module, op: OpId, bytes: ValueId) -> Option<Scaled> {
        let scale = node::operand(module, op, 1)?;
        let zero = node::operand(module, op, 2);
        let dtype = bytes_of(module, bytes)?;
        let numbers = (
            node::number(module, scale, 1).filter(|scale| is_scale(*scale))?,
            match zero {
                Some(zero) => match node::constant_ints(module, zero)?[..] {
                    [zero_point] if bytes_of(module, zero) == Some(dtype) => zero_point,
                    _ => return None,
                },
                None => 0,
            },
        );
        let is_plain = node::int(module, op, "block_size", 0) == 0
            && node::is_f32(module, scale)
            && node::ty(module, op, "precision").is_none_or(|ty| *ty == Type::F32);
        is_plain.then_some(Scaled {
            bytes,
            scale,
            zero,
            dtype,
            numbers,
        })
    }

    /// Returns what makes a value of `f32`, if it is an operation `dequantize` of bytes with one scale.
    pub(super) fn read(module: &Module, value: ValueId) -> Option<Scaled> {
        let op = dequantize(module, value)?;
        Scaled::of(module, op, node::operand(module, op, 0)?)
    }

    /// Returns the integer that a number is quantised to.
    fn quantized(&self, number: f64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "it is a byte")]
        let zero = self.numbers.1 as f64;
        let (least, largest) = range(self.dtype);
        ((number / self.numbers.0).round_ties_even() + zero).clamp(least, largest)
    }

    /// Returns whether numbers that are held between two give the same integers as they do when they aren't.
    fn implies(&self, least: f64, largest: f64) -> bool {
        let ends = range(self.dtype);
        self.quantized(least) == ends.0 && self.quantized(largest) == ends.1
    }

    /// Returns the zero point, which is made where it was left out.
    fn zero(&self, rewrite: &mut Rewrite<'_>, op: OpId) -> ValueId {
        match self.zero {
            Some(zero) => rewrite.mapped(zero),
            None => zero_of(rewrite, self.bytes, op),
        }
    }
}

/// Returns the type of a tensor of `u8` or `i8`.
pub(super) fn bytes_of(module: &Module, value: ValueId) -> Option<DType> {
    let dtype = attrs::dtype(&node::element(module.value_type(value))?)?;
    matches!(dtype, DType::Ui8 | DType::I8).then_some(dtype)
}

/// Returns the least and the largest number of a type of bytes.
fn range(dtype: DType) -> (f64, f64) {
    match dtype {
        DType::I8 => (-128.0, 127.0),
        _ => (0.0, 255.0),
    }
}

/// Returns whether a number is a scale by which integers stand for numbers: none that is zero, infinite or no number.
fn is_scale(scale: f64) -> bool {
    scale.is_finite() && scale > 0.0
}

/// Appends a zero point of the type of a tensor of bytes.
fn zero_of(rewrite: &mut Rewrite<'_>, bytes: ValueId, op: OpId) -> ValueId {
    let element = node::element(rewrite.module.value_type(bytes));
    let zero = DenseAttribute {
        ty: Type::tensor(Vec::new(), element.expect("it is one of bytes")),
        elements: DenseElements::Bytes(vec![0].into()),
        splat: true,
    };
    rewrite.constant(zero, op)
}

/// Returns the operation `dequantize` that makes a value of `f32`.
fn dequantize(module: &Module, value: ValueId) -> Option<OpId> {
    let op = module.defining_op(value)?;
    let is_it = node::name(module, op) == "dequantize" && node::is_f32(module, value);
    is_it.then_some(op)
}

/// A constant filter of bytes, with a scale for all filters or one for each.
struct Weights {
    bytes: ValueId,
    scale: ValueId,
    zero: Option<ValueId>,
    scales: Vec<f64>,
}

impl Weights {
    /// Returns the filter of a value, whose filters are the dimension `axis`.
    fn read(module: &Module, value: ValueId, axis: i64) -> Option<Weights> {
        let op = dequantize(module, value)?;
        let [bytes, scale] = [0, 1].map(|index| node::operand(module, op, index));
        let (bytes, scale) = (bytes?, scale?);
        bytes_of(module, bytes)?;
        let shape = node::constant(module, bytes)?.shape();
        let scales = node::dense_floats(node::constant(module, scale)?)?;
        let zero = node::operand(module, op, 2);
        if let Some(zero) = zero {
            let zeros = node::constant_ints(module, zero)?;
            let is_alike =
                zeros.len() == scales.len() && bytes_of(module, zero) == bytes_of(module, bytes);
            if !is_alike {
                return None;
            }
        }
        let n_filters = *shape.get(usize::try_from(axis).ok()?)?;
        let stated = node::int(module, op, "axis", 1);
        let rank = i64::try_from(shape.len()).ok()?;
        let is_placed = scales.len() == 1
            || [axis, axis - rank].contains(&stated)
                && i64::try_from(scales.len()).ok()? == n_filters;
        let is_plain = node::int(module, op, "block_size", 0) == 0
            && node::is_f32(module, scale)
            && scales.iter().all(|scale| is_scale(*scale));
        (is_placed && is_plain).then_some(Weights {
            bytes,
            scale,
            zero,
            scales,
        })
    }
}

/// The bias of a convolution of integers.
enum Bias {
    Nothing,
    /// A constant of `i32`, in steps of the sums.
    Integers(ValueId),
    /// Integers that are made of a constant of `f32`.
    Rounded(Vec<i32>),
}

/// The most steps of sums that a bias is rounded to: a step of the result has at least as many.
const STEPS: f64 = 256.0;

/// Returns the bias in steps of the sums, `units` of the filters: integers as they are, or floats that are rounded where that
/// is a small part of the result's step.
fn bias(module: &Module, value: Option<ValueId>, units: &[f64], step: f64) -> Option<Bias> {
    let Some(value) = value else {
        return Some(Bias::Nothing);
    };
    let unit = |index: usize| *units.get(index).unwrap_or(&units[0]);
    if let Some(dense) = node::constant(module, value) {
        let floats = node::dense_floats(dense).filter(|_| node::is_f32(module, value))?;
        let rounded = floats.iter().enumerate().map(|(index, float)| {
            let steps = (float / unit(index)).round_ties_even();
            #[expect(
                clippy::cast_possible_truncation,
                reason = "it was seen that it is in the range"
            )]
            let fits = (steps.abs() < f64::from(i32::MAX) && unit(index) * STEPS <= step)
                .then_some(steps as i32);
            fits
        });
        return Some(Bias::Rounded(rounded.collect::<Option<_>>()?));
    }
    let op = dequantize(module, value)?;
    let (steps, scale) = (node::operand(module, op, 0)?, node::operand(module, op, 1)?);
    let is_i32 = node::element(module.value_type(steps)).and_then(|ty| attrs::dtype(&ty))
        == Some(DType::I32);
    let scales = node::dense_floats(node::constant(module, scale)?)?;
    let zeros = match node::operand(module, op, 2) {
        Some(zero) => node::constant_ints(module, zero)?,
        None => Vec::new(),
    };
    let n = node::constant_ints(module, steps)?.len();
    let of_filter = |index: usize| *scales.get(index).unwrap_or(&scales[0]);
    // Scales are products that were rounded to `f32`.
    let is_unit = |index: usize| (of_filter(index) / unit(index) - 1.0).abs() < 1e-6;
    let fits = is_i32
        && [1, n].contains(&scales.len())
        && [1, n].contains(&units.len())
        && node::int(module, op, "block_size", 0) == 0
        && zeros.iter().all(|zero| *zero == 0)
        && (0..n).all(is_unit);
    fits.then_some(Bias::Integers(steps))
}

/// Returns the operation that makes a value, below activations that the quantised range implies.
pub(super) fn below_activations(module: &Module, mut value: ValueId, to: &Scaled) -> Option<OpId> {
    loop {
        let op = module.defining_op(value)?;
        node::only_user(module, value)?;
        let limit = |index: usize, otherwise: f64| match node::operand(module, op, index) {
            Some(value) => node::number(module, value, 0),
            None => Some(otherwise),
        };
        let (least, largest) = match node::name(module, op) {
            "relu" => (0.0, f64::INFINITY),
            "onnx.Clip" => (limit(1, f64::NEG_INFINITY)?, limit(2, f64::INFINITY)?),
            _ => return Some(op),
        };
        if !to.implies(least, largest) {
            return None;
        }
        value = node::operand(module, op, 0)?;
    }
}

#[cfg(test)]
mod tests;
