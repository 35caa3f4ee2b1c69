//! TensorFlow's operations that are several of graphs, and the pass that looks at extents for those that are images.

mod optimizers;
pub(crate) mod to_graph;

use tfrt_ir::attributes::{DenseAttribute, DenseElements};
use tfrt_ir::{Attribute, Type, ValueId};

use super::named::constant_of;
use crate::legalize::{ExpandFn, Expansion};
use crate::passes::graph::node;

/// Operations that are replaced by several. A function that returns nothing leaves the operation to its row.
pub(crate) const EXPAND: &[(&str, ExpandFn)] = &[
    ("ApplyAdagrad", optimizers::adagrad),
    ("ApplyAdagradV2", optimizers::adagrad_v2),
    ("ApplyAdam", optimizers::adam),
    ("ApplyGradientDescent", optimizers::gradient_descent),
    ("ApplyKerasMomentum", optimizers::keras_momentum),
    ("ApplyMomentum", optimizers::momentum),
    ("ApplyRMSProp", optimizers::rms_prop),
    ("BiasAdd", bias),
    ("FusedBatchNorm", batch_norm),
    ("FusedBatchNormV2", batch_norm),
    ("FusedBatchNormV3", batch_norm),
    ("LookupTableFindV2", look_up),
];

fn text<'e>(expansion: &'e Expansion<'_>, name: &str, default: &'static str) -> &'e str {
    let stated = expansion.attribute(name).and_then(Attribute::as_str);
    stated.unwrap_or(default)
}

/// `BiasAdd` of channels that come last is a sum.
fn bias(expansion: &mut Expansion<'_>) -> Result<Vec<ValueId>, String> {
    if text(expansion, "data_format", "NHWC") == "NCHW" {
        return Ok(Vec::new());
    }
    let [x, bias] = [expansion.operand(0)?, expansion.operand(1)?];
    Ok(vec![expansion.add("graph.add", &[x, bias], &[])])
}

/// `FusedBatchNormV3` by known statistics: a factor and a summand for each channel. Its other results are what training asks for:
/// if somebody does, it stays.
fn batch_norm(expansion: &mut Expansion<'_>) -> Result<Vec<ValueId>, String> {
    let module = expansion.module();
    let results = module.op(expansion.op()).results();
    let is_alone = results[1..].iter().all(|result| module.is_unused(*result));
    let trains = expansion
        .attribute("is_training")
        .and_then(Attribute::as_i64);
    if !is_alone || trains != Some(0) || text(expansion, "data_format", "NHWC") != "NHWC" {
        return Ok(Vec::new());
    }
    let n_results = results.len();
    let epsilon = match expansion.attribute("epsilon") {
        Some(Attribute::Float(value)) => value.value(),
        _ => 1e-4,
    };
    let mut operands = Vec::with_capacity(5);
    for index in 0..5 {
        operands.push(expansion.operand(index)?);
    }
    let [x, scale, offset, mean, variance] = operands[..] else {
        return Ok(Vec::new());
    };
    #[expect(clippy::cast_possible_truncation, reason = "attributes have 32 bits")]
    let epsilon = number(expansion, epsilon as f32);
    let shifted = expansion.add("graph.add", &[variance, epsilon], &[]);
    let root = expansion.add("graph.rsqrt", &[shifted], &[]);
    let factors = expansion.add("graph.mul", &[root, scale], &[]);
    let means = expansion.add("graph.mul", &[mean, factors], &[]);
    let summands = expansion.add("graph.sub", &[offset, means], &[]);
    let scaled = expansion.add("graph.mul", &[x, factors], &[]);
    let y = expansion.add("graph.add", &[scaled, summands], &[]);
    // Nobody takes the others.
    let mut all = vec![y];
    all.extend(std::iter::repeat_n(mean, n_results - 1));
    Ok(all)
}

/// Appends a constant of one number.
fn number(expansion: &mut Expansion<'_>, value: f32) -> ValueId {
    let dense = DenseAttribute {
        ty: Type::tensor(Vec::new(), Type::F32),
        elements: DenseElements::Bytes(value.to_le_bytes().to_vec().into()),
        splat: true,
    };
    constant_of(expansion, dense)
}

/// `LookupTableFindV2` of a table that is known: keys, values, what is looked up, and the default.
fn look_up(expansion: &mut Expansion<'_>) -> Result<Vec<ValueId>, String> {
    let module = expansion.module();
    if module.op(expansion.op()).operands().len() != 4 {
        return Ok(Vec::new());
    }
    let x = expansion.operand(2)?;
    let mut stated: Vec<(String, Attribute)> = Vec::new();
    for (index, name) in [(0, "keys"), (1, "values"), (3, "default")] {
        let dense = node::constant(module, expansion.operand(index)?);
        let dense = dense
            .ok_or_else(|| format!("has a calculated operand {index}, expected a constant"))?;
        let (kind, mut list) = listed(&whole(dense)).ok_or_else(|| {
            format!(
                "has {} as operand {index}, expected strings, i64 or f32",
                dense.ty
            )
        })?;
        match name {
            "default" => {
                let one = list.pop().ok_or("has no default, expected one element")?;
                stated.push((format!("{name}_{kind}"), one));
            }
            name => stated.push((format!("{name}_{kind}s"), Attribute::array(list))),
        }
    }
    let mut all: Vec<(&str, Attribute)> = Vec::new();
    for (name, value) in &stated {
        all.push((name.as_str(), value.clone()));
    }
    all.push(("onnx.opset", Attribute::integer(ML_VERSION, Type::I64)));
    Ok(vec![expansion.add("onnx.ml.LabelEncoder", &[x], &all)])
}

/// The version of the row of look-ups.
const ML_VERSION: i64 = 4;

/// Returns elements as attributes, with the name of their kind in attributes of `LabelEncoder`.
fn listed(dense: &DenseAttribute) -> Option<(&'static str, Vec<Attribute>)> {
    Some(match &dense.elements {
        DenseElements::Strings(all) => ("string", all.iter().map(Attribute::string).collect()),
        DenseElements::Bytes(bytes) if *dense.element_type() == Type::I64 => {
            let (each, _) = bytes.as_chunks::<8>();
            let of = |bytes: &[u8; 8]| Attribute::integer(i64::from_le_bytes(*bytes), Type::I64);
            ("int64", each.iter().map(of).collect())
        }
        DenseElements::Bytes(bytes) if *dense.element_type() == Type::F32 => {
            let (each, _) = bytes.as_chunks::<4>();
            let of = |bytes: &[u8; 4]| Attribute::f32(f32::from_le_bytes(*bytes));
            ("float", each.iter().map(of).collect())
        }
        DenseElements::Bytes(_) => return None,
    })
}

/// Returns a list with an element for each place, where one stands for all.
fn whole(dense: &DenseAttribute) -> DenseAttribute {
    let n = usize::try_from(dense.n_elements().unwrap_or(0)).unwrap_or(0);
    let size = i64::try_from(n).unwrap_or(i64::MAX);
    let ty = Type::tensor(vec![size], dense.element_type().clone());
    let elements = match &dense.elements {
        DenseElements::Strings(all) if dense.splat => {
            DenseElements::Strings(all.iter().cycle().take(n).cloned().collect())
        }
        DenseElements::Bytes(bytes) if dense.splat => DenseElements::Bytes(bytes.repeat(n).into()),
        other => other.clone(),
    };
    DenseAttribute {
        ty,
        elements,
        splat: false,
    }
}

#[cfg(test)]
mod tests;
