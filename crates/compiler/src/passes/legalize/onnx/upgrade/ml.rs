//! Expands operators of `ai.onnx.ml` without a kernel to operations that have one.
//!
//! | Operator | Becomes |
//! | --- | --- |
//! | `Scaler` | `(x - offset) * scale` |
//! | `Normalizer` | `x` over its largest element, its L1 or its L2 norm along the last dimension, if that is not 0 |
//! | `Imputer` | `Where`, by `IsNaN` or `Equal` |
//! | `LinearRegressor` | `Gemm`, and what is done to its result |
//! | `LinearClassifier` | the same, and the label of the largest score; of two classes or more with a score each |
//! | `OneHotEncoder` | `Equal` with all categories; of what is unknown, zeros |
//! | `FeatureVectorizer` | `Concat` |
//!
//! An operation that has neither this form nor a kernel is an error, which `fault.rs` words.

use tfrt_ir::{Attribute, Module, OpId, OpState, Type, ValueId};

use super::expansion::{Expansion, integer};
use crate::passes::graph::{CONSTANT, node};

mod fault;

pub(super) use fault::find as fault;

const DOMAIN: &str = "onnx.ml.";
/// The numbers of types in the format.
const F32: i64 = 1;
const I64: i64 = 7;

/// Returns whether an operation may be such an operator.
pub(super) fn is_one(module: &Module, op: OpId) -> bool {
    unprefixed(module.op(op).name()).is_some()
}

fn unprefixed(name: &str) -> Option<&str> {
    name.strip_prefix(DOMAIN)
}

/// Makes the operations; returns a value for each result, or `None` before anything is made.
pub(super) fn make(here: &mut Expansion<'_>) -> Option<Vec<ValueId>> {
    let name = here.module.op(here.like).name().clone();
    let name = unprefixed(&name)?;
    expanded(here, name)
}

fn expanded(here: &mut Expansion<'_>, name: &str) -> Option<Vec<ValueId>> {
    let x = node::operand(here.module, here.like, 0)?;
    let result = match name {
        "Scaler" => scaler(here, x),
        "Normalizer" => normalizer(here, x)?,
        "Imputer" => imputer(here, x)?,
        "LinearRegressor" => regressor(here, x)?,
        "LinearClassifier" => return classifier(here, x),
        "OneHotEncoder" => one_hot(here, x)?,
        "FeatureVectorizer" => {
            let operands = here.module.op(here.like).operands().to_vec();
            let all: Vec<ValueId> = operands.into_iter().map(|x| as_f32(here, x)).collect();
            here.add("Concat", &all, &[("axis", integer(1))])
        }
        _ => return None,
    };
    Some(vec![result])
}

fn scaler(here: &mut Expansion<'_>, x: ValueId) -> ValueId {
    let (offset, scale) = (
        floats(here.module, here.like, "offset"),
        floats(here.module, here.like, "scale"),
    );
    let mut y = as_f32(here, x);
    if let Some(offset) = offset {
        let offset = row(here, &offset);
        y = here.add("Sub", &[y, offset], &[]);
    }
    if let Some(scale) = scale {
        let scale = row(here, &scale);
        y = here.add("Mul", &[y, scale], &[]);
    }
    y
}

fn normalizer(here: &mut Expansion<'_>, x: ValueId) -> Option<ValueId> {
    let reduce = match node::text(here.module, here.like, "norm") {
        "" | "MAX" => "ReduceMax",
        "L1" => "ReduceL1",
        "L2" => "ReduceL2",
        _ => return None,
    };
    let x = as_f32(here, x);
    let axes = here.integers(&[-1]);
    let norm = here.add(reduce, &[x, axes], &[]);
    let (zero, one) = (
        here.floats(Vec::new(), &[0.0]),
        here.floats(Vec::new(), &[1.0]),
    );
    let is_zero = here.add("Equal", &[norm, zero], &[]);
    let norm = here.add("Where", &[is_zero, one, norm], &[]);
    Some(here.add("Div", &[x, norm], &[]))
}

fn imputer(here: &mut Expansion<'_>, x: ValueId) -> Option<ValueId> {
    let (imputed, replaced) = match floats(here.module, here.like, "imputed_value_floats") {
        Some(imputed) => {
            let replaced = node::float(here.module, here.like, "replaced_value_float", 0.0);
            let imputed = row(here, &imputed);
            #[expect(clippy::cast_possible_truncation, reason = "it is one of 32 bits")]
            let number = (!replaced.is_nan()).then(|| here.floats(Vec::new(), &[replaced as f32]));
            (imputed, number)
        }
        None => {
            let imputed = node::ints(here.module, here.like, "imputed_value_int64s")?;
            let replaced = node::int(here.module, here.like, "replaced_value_int64", 0);
            let imputed = here.integers(&imputed);
            (imputed, Some(here.integers(&[replaced])))
        }
    };
    let imputed = here.add("CastLike", &[imputed, x], &[]);
    let is_missing = match replaced {
        None => here.add("IsNaN", &[x], &[]),
        Some(replaced) => {
            let replaced = here.add("CastLike", &[replaced, x], &[]);
            here.add("Equal", &[x, replaced], &[])
        }
    };
    Some(here.add("Where", &[is_missing, imputed, x], &[]))
}

fn regressor(here: &mut Expansion<'_>, x: ValueId) -> Option<ValueId> {
    let n_targets = node::int(here.module, here.like, "targets", 1);
    let transform = Transform::of(here.module, here.like)?;
    let scores = scores(here, x, usize::try_from(n_targets).ok()?)?;
    Some(transform.apply(here, scores))
}

fn classifier(here: &mut Expansion<'_>, x: ValueId) -> Option<Vec<ValueId>> {
    let (n_labels, labels) = labels(here)?;
    let transform = Transform::of(here.module, here.like)?;
    let n_scores = match floats(here.module, here.like, "intercepts") {
        Some(intercepts) => intercepts.len(),
        None => n_labels,
    };
    // With one score for two classes what the other is depends on more than is written down.
    if n_labels < 2 || n_scores != n_labels {
        return None;
    }
    let scores = scores(here, x, n_scores)?;
    let axis = [("axis", integer(1)), ("keepdims", integer(0))];
    let best = here.add("ArgMax", &[scores], &axis);
    let ty = match &labels {
        Attribute::Dense(dense) => dense.ty.clone(),
        _ => Type::tensor(vec![i64::try_from(n_labels).ok()?], string()),
    };
    let mut state = OpState::new(CONSTANT).attribute("value", labels).result(ty);
    state = state.attribute(
        "shape",
        Attribute::array(vec![integer(i64::try_from(n_labels).ok()?)]),
    );
    let labels = here.append(state);
    let label = here.add("Gather", &[labels, best], &[]);
    Some(vec![label, transform.apply(here, scores)])
}

/// Returns the labels of classes as the value of a constant, and their number.
fn labels(here: &Expansion<'_>) -> Option<(usize, Attribute)> {
    let data = here.module.op(here.like);
    let strings = data.attribute("classlabels_strings");
    let strings = strings.and_then(Attribute::as_array);
    if let Some(strings) = strings.filter(|strings| !strings.is_empty()) {
        return Some((strings.len(), Attribute::array(strings.to_vec())));
    }
    let ints = node::ints(here.module, here.like, "classlabels_ints")?;
    let n = i64::try_from(ints.len()).ok()?;
    Some((ints.len(), super::integers(vec![n], &ints)))
}

/// Makes a row of scores for each row: `x` times the coefficients, plus the intercepts.
fn scores(here: &mut Expansion<'_>, x: ValueId, n_scores: usize) -> Option<ValueId> {
    let coefficients = floats(here.module, here.like, "coefficients")?;
    let intercepts = floats(here.module, here.like, "intercepts");
    let fits = n_scores > 0
        && coefficients.len() % n_scores == 0
        && intercepts
            .as_ref()
            .is_none_or(|list| list.len() == n_scores)
        && node::shape(here.module, x).is_none_or(|shape| shape.len() == 2);
    if !fits {
        return None;
    }
    let n_features = i64::try_from(coefficients.len() / n_scores).ok()?;
    let extents = vec![i64::try_from(n_scores).ok()?, n_features];
    let x = as_f32(here, x);
    let mut operands = vec![x, here.floats(extents, &coefficients)];
    if let Some(intercepts) = intercepts {
        operands.push(row(here, &intercepts));
    }
    Some(here.add("Gemm", &operands, &[("transB", integer(1))]))
}

fn one_hot(here: &mut Expansion<'_>, x: ValueId) -> Option<ValueId> {
    if node::int(here.module, here.like, "zeros", 1) == 0 {
        return None;
    }
    let ints = node::ints(here.module, here.like, "cats_int64s").filter(|list| !list.is_empty());
    let strings = here.module.op(here.like).attribute("cats_strings");
    let strings = strings.and_then(Attribute::as_array).map(<[_]>::to_vec);
    let (x, categories) = match (ints, strings) {
        (Some(ints), _) => {
            let x = here.add("Cast", &[x], &[("to", integer(I64))]);
            (x, here.integers(&ints))
        }
        (None, Some(strings)) if !strings.is_empty() => {
            let n = i64::try_from(strings.len()).ok()?;
            let state = OpState::new(CONSTANT).attribute("value", Attribute::array(strings));
            let state = state.attribute("shape", Attribute::array(vec![integer(n)]));
            (
                x,
                here.append(state.result(Type::tensor(vec![n], string()))),
            )
        }
        _ => return None,
    };
    let last = here.integers(&[-1]);
    let x = here.add("Unsqueeze", &[x, last], &[]);
    let is_it = here.add("Equal", &[x, categories], &[]);
    Some(here.add("Cast", &[is_it], &[("to", integer(F32))]))
}

/// The transform of scores.
enum Transform {
    Nothing,
    Logistic,
    Softmax,
}

impl Transform {
    fn of(module: &Module, op: OpId) -> Option<Transform> {
        Some(match node::text(module, op, "post_transform") {
            "" | "NONE" => Transform::Nothing,
            "LOGISTIC" => Transform::Logistic,
            "SOFTMAX" => Transform::Softmax,
            _ => return None,
        })
    }

    fn apply(&self, here: &mut Expansion<'_>, scores: ValueId) -> ValueId {
        match self {
            Transform::Nothing => scores,
            Transform::Logistic => here.add("Sigmoid", &[scores], &[]),
            Transform::Softmax => here.add("Softmax", &[scores], &[("axis", integer(-1))]),
        }
    }
}

fn as_f32(here: &mut Expansion<'_>, x: ValueId) -> ValueId {
    match node::is_f32(here.module, x) {
        true => x,
        false => here.add("Cast", &[x], &[("to", integer(F32))]),
    }
}

/// Makes a constant of one dimension.
fn row(here: &mut Expansion<'_>, numbers: &[f32]) -> ValueId {
    let n = i64::try_from(numbers.len()).unwrap_or(i64::MAX);
    here.floats(vec![n], numbers)
}

/// Returns an attribute that is a list of floats; `None` for one that is left out or empty.
fn floats(module: &Module, op: OpId, name: &str) -> Option<Vec<f32>> {
    let list = module.op(op).attribute(name)?.as_array()?;
    #[expect(clippy::cast_possible_truncation, reason = "they are of 32 bits")]
    let number = |value: &Attribute| match value {
        Attribute::Float(float) => Some(float.value() as f32),
        _ => None,
    };
    let list: Vec<f32> = list.iter().map(number).collect::<Option<_>>()?;
    (!list.is_empty()).then_some(list)
}

fn string() -> Type {
    Type::dialect("!onnx.string")
}
