//! `onnx-upgrade`: brings older forms of operations to a later version, where that is mechanical.
//!
//! | Operation | Before | Becomes |
//! | --- | --- | --- |
//! | `Squeeze`, `Unsqueeze`, `ReduceSum` | 13 | `axes` is an operand |
//! | other reductions | 18 | `axes` is an operand |
//! | `Slice` | 10 | `starts`, `ends`, `axes` are operands |
//! | `Pad` | 11 | `pads` and the value are operands |
//! | `Clip` | 11 | `min` and `max` are operands |
//! | `Split` | 13 | `split` is an operand |
//! | `TopK` | 10 | `k` is an operand |
//! | `DFT` | 20 | `axis` is an operand |
//! | `Upsample`, `Resize` | 11 | `Resize` with the coordinates that these had |
//! | `Scatter` | all | `ScatterElements` |
//! | `Dropout` | 12 | `Identity`, where nobody asks for the mask |
//! | `BatchNormalization` | 14 | without `spatial`, where only the result is asked for |
//! | `RoiAlign` | 16 | with the coordinates that it had |
//! | `GridSample` | 20 | `linear` and `cubic` for what was called otherwise |
//! | `Add`, `Equal`, .. and `Gemm` | 7 | without `broadcast`: it is allowed now |
//!
//! `FlexAttention` with graphs of its own becomes the operations that define it (`flex.rs`), and so
//! do operators of `ai.onnx.ml` that have no kernel (`ml.rs`), those of `com.microsoft` (`contrib.rs`), and what
//! was broadcast otherwise before version 7 (`legacy_broadcast.rs`), and `Softmax` and `LogSoftmax` before version 13
//! (`legacy_softmax.rs`).
//!
//! What is rewritten states its version itself, as `onnx.opset`; all else keeps that of the module. An
//! operation whose meaning differs, or whose element type is needed and unknown, stays as it is: kernels
//! know the version.

use std::collections::HashSet;

use tfrt_ir::{
    Attribute, Diagnostics, Module, OpId, OpState, Type, ValueId,
    attributes::{DenseAttribute, DenseElements},
};

use crate::codes;
use crate::legalize::Context;
use crate::passes::graph::{CONSTANT, NO_VALUE, graphs, infer, lower, node};
use crate::passes::scope;
use crate::pipeline::{Pass, PassFn, Property};

pub(crate) const PASS: Pass = Pass {
    name: "onnx-upgrade",
    summary: "Brings operations of dialect onnx to the form of later versions",
    needs: &[],
    gives: &[],
    breaks: &[Property::Streams],
    run: PassFn::WithContext(run),
};

mod contrib;
mod expansion;
mod flex;
mod legacy_broadcast;
mod legacy_softmax;
mod ml;

fn run(module: &mut Module, context: &Context<'_>, diagnostics: &mut Diagnostics) {
    for block in scope::blocks(module) {
        for &op in module.block(block).operations() {
            if let Some(message) = ml::fault(module, op) {
                diagnostics.push(module.op_error(codes::GRAPH, op, message));
            }
        }
    }
    contrib::run(module, diagnostics);
    expansion::expand(module, flex::is_one, flex::make);
    expansion::expand(module, ml::is_one, ml::make);
    expansion::expand(module, legacy_broadcast::is_one, legacy_broadcast::make);
    expansion::expand(module, legacy_softmax::is_one, legacy_softmax::make);
    for block in scope::blocks(module) {
        let operations = module.block(block).operations().to_vec();
        let mut kept = Vec::with_capacity(operations.len());
        let mut gone = HashSet::new();
        for op in operations {
            let change = change(module, op);
            match change {
                None => kept.push(op),
                Some(change) => {
                    apply(module, op, change, &mut kept);
                    gone.insert(op);
                }
            }
        }
        if gone.is_empty() {
            continue;
        }
        module.set_operations(block, kept);
        for op in gone {
            module.erase(op);
        }
    }
    contrib::finish(module, context, diagnostics);
    // What is passed on takes the place of results, and may be of another type.
    for (function, block) in graphs(module) {
        infer::signature(module, function, block);
    }
}

/// The new form of an operation.
struct Change {
    name: &'static str,
    /// The version of the new form.
    version: i64,
    operands: Vec<Operand>,
    /// Attributes that are dropped.
    dropped: &'static [&'static str],
    /// Attributes that are set.
    set: Vec<(&'static str, Attribute)>,
    /// The number of results that are kept, from the first; all if there are fewer.
    n_results: usize,
}

/// An operand of the new form.
enum Operand {
    /// An operand of the old form.
    Old(ValueId),
    /// A new constant.
    Constant(Attribute),
    /// An operand that is left out.
    LeftOut,
}

impl Change {
    /// Begins with the operands and results of the old form.
    fn of(module: &Module, op: OpId, name: &'static str, version: i64) -> Change {
        let data = module.op(op);
        let operands = data.operands().iter().map(|&value| Operand::Old(value));
        Change {
            name,
            version,
            operands: operands.collect(),
            dropped: &[],
            set: Vec::new(),
            n_results: usize::MAX,
        }
    }

    /// Adds a constant operand; without a value it is left out.
    fn and(mut self, value: Option<Attribute>) -> Change {
        self.operands.push(match value {
            Some(value) => Operand::Constant(value),
            None => Operand::LeftOut,
        });
        self
    }

    fn without(mut self, dropped: &'static [&'static str]) -> Change {
        self.dropped = dropped;
        self
    }

    fn with(mut self, name: &'static str, value: &str) -> Change {
        self.set.push((name, Attribute::string(value)));
        self
    }
}

/// Returns the new form of an operation, if it needs one.
fn change(module: &Module, op: OpId) -> Option<Change> {
    let data = module.op(op);
    let name = data.name().strip_prefix("onnx.")?;
    // Those that are nothing of ours, or are new enough, are most.
    let (newer, known) = RULES.iter().find(|(_, known)| *known == name)?;
    let version = lower::opset(module, op);
    if version >= *newer {
        return None;
    }
    let change = |version| Change::of(module, op, known, version);
    let ints = |name: &str| list(data.attribute(name)?);
    match *known {
        "Squeeze" | "Unsqueeze" | "ReduceSum" => {
            Some(change(13).and(ints("axes")).without(&["axes"]))
        }
        "Slice" => Some(
            change(13)
                .and(ints("starts"))
                .and(ints("ends"))
                .and(ints("axes"))
                .without(&["starts", "ends", "axes"]),
        ),
        "Pad" => {
            let value = number(data.attribute("value"));
            let value = match value {
                None => None,
                Some(0.0) => None,
                Some(value) => Some(scalar_like(module, op, value)?),
            };
            let change = change(13).and(Some(ints("pads")?)).and(value);
            Some(change.without(&["pads", "value"]))
        }
        "Clip" => {
            let bound = |name: &str| match number(data.attribute(name)) {
                None => Some(None),
                Some(value) => scalar_like(module, op, value).map(Some),
            };
            let change = change(13).and(bound("min")?).and(bound("max")?);
            Some(change.without(&["min", "max"]))
        }
        "Split" => Some(change(13).and(ints("split")).without(&["split"])),
        "TopK" if version >= 10 => None,
        "TopK" => {
            let k = data.attribute("k")?.as_i64()?;
            Some(
                change(11)
                    .and(Some(integers(vec![1], &[k])))
                    .without(&["k"]),
            )
        }
        "DFT" => {
            let axis = data.attribute("axis").map_or(Some(1), Attribute::as_i64)?;
            let mut change = change(20);
            if change.operands.len() < 2 {
                change.operands.push(Operand::LeftOut);
            }
            Some(
                change
                    .and(Some(integers(Vec::new(), &[axis])))
                    .without(&["axis"]),
            )
        }
        "Upsample" | "Resize" => resize(module, op),
        "Scatter" => Some(Change::of(module, op, "ScatterElements", 13)),
        "Dropout" => {
            let has_mask = data
                .results()
                .iter()
                .skip(1)
                .any(|&it| !module.is_unused(it));
            let mut change = Change::of(module, op, "Identity", 13);
            change.operands.truncate(1);
            change.n_results = 1;
            (!has_mask).then(|| change.without(&["ratio", "is_test", "seed"]))
        }
        "BatchNormalization" => {
            let is_training = data
                .results()
                .iter()
                .skip(1)
                .any(|&it| !module.is_unused(it));
            let is_spatial = data
                .attribute("spatial")
                .is_none_or(|it| it.as_i64() == Some(1));
            let mut change = change(15);
            change.n_results = 1;
            (!is_training && is_spatial).then(|| change.without(&["spatial"]))
        }
        "Gemm" => Some(change(7).without(&["broadcast"])),
        aligned if legacy_broadcast::ALIGNED.contains(&aligned) => {
            // One that was not replaced by others is refused when it runs, unless the shapes are equal.
            let dropped = &["broadcast", "consumed_inputs"];
            let has_axis = data.attribute("axis").is_some();
            (!has_axis).then(|| change(7).without(dropped))
        }
        "RoiAlign" => Some(change(16).with("coordinate_transformation_mode", "output_half_pixel")),
        "GridSample" => match data.attribute("mode").map(|mode| mode.as_str()) {
            None | Some(Some("bilinear")) => Some(change(20).with("mode", "linear")),
            Some(Some("bicubic")) => Some(change(20).with("mode", "cubic")),
            Some(Some("nearest")) => Some(change(20)),
            Some(_) => None,
        },
        _ => Some(change(18).and(ints("axes")).without(&["axes"])),
    }
}

/// Operations, with the version from which on they stay as they are.
const RULES: [(i64, &str); 37] = [
    (7, "Add"),
    (7, "And"),
    (7, "Div"),
    (7, "Equal"),
    (7, "Gemm"),
    (7, "Greater"),
    (7, "Less"),
    (7, "Mul"),
    (7, "Or"),
    (7, "Pow"),
    (7, "Sub"),
    (7, "Xor"),
    (13, "Squeeze"),
    (13, "Unsqueeze"),
    (13, "ReduceSum"),
    (10, "Slice"),
    (11, "Pad"),
    (11, "Clip"),
    (13, "Split"),
    (10, "TopK"),
    (20, "DFT"),
    (10, "Upsample"),
    (11, "Resize"),
    (i64::MAX, "Scatter"),
    (12, "Dropout"),
    (14, "BatchNormalization"),
    (16, "RoiAlign"),
    (20, "GridSample"),
    (18, "ReduceL1"),
    (18, "ReduceL2"),
    (18, "ReduceLogSum"),
    (18, "ReduceLogSumExp"),
    (18, "ReduceMax"),
    (18, "ReduceMean"),
    (18, "ReduceMin"),
    (18, "ReduceProd"),
    (18, "ReduceSumSquare"),
];

/// Upgrades `Upsample`, and `Resize` before its coordinates could be chosen: a coordinate is that of the result
/// divided by the scale, and the nearest element the one below; where `Resize` makes a picture smaller, the one
/// above.
fn resize(module: &Module, op: OpId) -> Option<Change> {
    let data = module.op(op);
    let &input = data.operands().first()?;
    let scales = match (data.operands().get(1), data.attribute("scales")) {
        (Some(&scales), _) => Operand::Old(scales),
        (None, Some(scales)) => Operand::Constant(floats(scales)?),
        (None, None) => return None,
    };
    let mode = match data.attribute("mode").map(Attribute::as_str) {
        None | Some(Some("nearest")) => "nearest",
        Some(Some("linear" | "bilinear")) => "linear",
        Some(_) => return None,
    };
    let nearest = match (mode, lower::opset(module, op)) {
        ("nearest", 10..) => rounding(module, op)?,
        _ => "floor",
    };
    let mut change = Change::of(module, op, "Resize", 13);
    change.operands = vec![Operand::Old(input), Operand::LeftOut, scales];
    let change = change
        .with("mode", mode)
        .with("coordinate_transformation_mode", "asymmetric")
        .with("nearest_mode", nearest);
    Some(change.without(&["scales"]))
}

/// Returns the rounding of the first `Resize`, if it is the same along all dimensions.
fn rounding(module: &Module, op: OpId) -> Option<&'static str> {
    let &scales = module.op(op).operands().get(1)?;
    let scales = node::dense_floats(node::constant(module, scales)?)?;
    let all = |is: fn(&f64) -> bool| scales.iter().all(is);
    match (all(|scale| *scale >= 1.0), all(|scale| *scale <= 1.0)) {
        (true, _) => Some("floor"),
        (_, true) => Some("ceil"),
        _ => None,
    }
}

/// Replaces an operation by its new form.
fn apply(module: &mut Module, op: OpId, change: Change, kept: &mut Vec<OpId>) {
    let data = module.op(op);
    let location = data.location().clone();
    let mut state = OpState::new(format!("onnx.{}", change.name)).location(location.clone());
    for (name, value) in data.attributes() {
        if !change.dropped.contains(&name.as_str()) {
            state = state.attribute(name.clone(), value.clone());
        }
    }
    for (name, value) in change.set {
        state = state.attribute(name, value);
    }
    state = state.attribute("onnx.opset", Attribute::integer(change.version, Type::I64));
    let results = data.results()[..change.n_results.min(data.results().len())].to_vec();
    let types = results
        .iter()
        .map(|&result| module.value_type(result).clone());
    state = state.results(types.collect::<Vec<_>>());
    let n_operands = change
        .operands
        .iter()
        .rposition(|it| !matches!(it, Operand::LeftOut));
    let operands = change
        .operands
        .into_iter()
        .take(n_operands.map_or(0, |last| last + 1));
    for operand in operands {
        let made = match operand {
            Operand::Old(value) => {
                state = state.operand(value);
                continue;
            }
            Operand::LeftOut => OpState::new(NO_VALUE).result(Type::None),
            Operand::Constant(value) => {
                let ty = match &value {
                    Attribute::Dense(dense) => dense.ty.clone(),
                    _ => Type::None,
                };
                OpState::new(CONSTANT).attribute("value", value).result(ty)
            }
        };
        let made = module.create(made.location(location.clone()));
        kept.push(made);
        state = state.operand(module.op(made).results()[0]);
    }
    let new = module.create(state);
    kept.push(new);
    let values = module.op(new).results().to_vec();
    scope::replace(module, op, &values);
}

/// Returns a list of integers as a constant of one dimension.
fn list(value: &Attribute) -> Option<Attribute> {
    let items = value.as_array()?.iter().map(Attribute::as_i64);
    let items: Vec<i64> = items.collect::<Option<_>>()?;
    let len = i64::try_from(items.len()).ok()?;
    Some(integers(vec![len], &items))
}

fn integers(shape: Vec<i64>, items: &[i64]) -> Attribute {
    let bytes = items.iter().map(|item| item.to_le_bytes().to_vec());
    dense(Type::tensor(shape, Type::I64), bytes.collect())
}

/// Returns a list of floats as a constant of one dimension.
fn floats(value: &Attribute) -> Option<Attribute> {
    let items = value.as_array()?.iter().map(|item| match item {
        Attribute::Float(float) => Some(u32::try_from(float.bits).ok()?.to_le_bytes().to_vec()),
        _ => None,
    });
    let items: Vec<Vec<u8>> = items.collect::<Option<_>>()?;
    let len = i64::try_from(items.len()).ok()?;
    Some(dense(Type::tensor(vec![len], Type::F32), items))
}

fn number(value: Option<&Attribute>) -> Option<f64> {
    match value? {
        Attribute::Float(float) => Some(float.value()),
        _ => None,
    }
}

/// Returns a scalar of the type of the first operand's elements, if it holds the value.
fn scalar_like(module: &Module, op: OpId, value: f64) -> Option<Attribute> {
    let &operand = module.op(op).operands().first()?;
    let Type::Tensor(tensor) = module.value_type(operand) else {
        return None;
    };
    let element = tensor.element.clone();
    #[expect(clippy::cast_possible_truncation, reason = "it was one of 32 bits")]
    let bytes = match &element {
        ty if *ty == Type::F32 => (value as f32).to_le_bytes().to_vec(),
        ty if *ty == Type::F64 => value.to_le_bytes().to_vec(),
        _ => return None,
    };
    Some(dense(Type::tensor(Vec::new(), element), vec![bytes]))
}

/// Makes dense elements; elements that are all equal are stated once.
fn dense(ty: Type, elements: Vec<Vec<u8>>) -> Attribute {
    let splat = elements
        .split_first()
        .is_some_and(|(first, rest)| rest.iter().all(|it| it == first));
    let n_stated = if splat { 1 } else { elements.len() };
    let bytes: Vec<u8> = elements[..n_stated].concat();
    Attribute::Dense(std::sync::Arc::new(DenseAttribute {
        ty,
        elements: DenseElements::Bytes(bytes.into()),
        splat,
    }))
}

#[cfg(test)]
mod tests;
