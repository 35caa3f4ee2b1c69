//! Library rows of TensorFlow's optimizers, which change resource variables.
//!
//! The operands are the variables of the states, and then the gradient and scalars in TensorFlow's order. A sparse form has
//! the `indices` of the rows that it changes.

use tfrt_bef::DType;

use super::variables::RESOURCE;
use crate::def::{AttrDef, Cost, OpDef, Traits, ValueDef};
use crate::infer::{Infer, InferCall, InferError};

const INDICES: ValueDef = ValueDef::set("indices", &[DType::I32, DType::I64]);
const LOCKING: AttrDef = AttrDef::int("use_locking", 0);

/// `optimizer!("tf.ResourceApplyX", "Takes a step.", [var, m], [lr, grad], [..])` makes a row without results that
/// reads and writes its first operands.
macro_rules! optimizer {
    ($name:literal, $summary:literal, [$($state:literal),*], [$($rest:expr),*], [$($attr:expr),*]) => {
        OpDef::new($name, $summary)
            .inputs(&[$(ValueDef::set($state, RESOURCE),)* $($rest),*])
            .results(&[])
            .attrs(&[LOCKING, $($attr),*])
            .traits(Traits::READS.with(Traits::WRITES))
            .infer(Infer::By(nothing))
            .cost(Cost::PerElement(8))
    };
}

/// Makes a scalar, which is rounded to the weights' type.
const fn scalar(name: &'static str) -> ValueDef {
    ValueDef::set(name, &[DType::F16, DType::Bf16, DType::F32, DType::F64])
}

/// The gradient, of the weights' type.
const GRAD: ValueDef = ValueDef::any("grad");
const DELTA: ValueDef = ValueDef::any("delta");

const STEP: ValueDef = ValueDef::set("global_step", &[DType::I64]);
const NESTEROV: AttrDef = AttrDef::int("use_nesterov", 0);
const UPDATE_SLOTS: AttrDef = AttrDef::int("update_slots", 1);
const LINEAR_BY_LR: AttrDef = AttrDef::int("multiply_linear_by_lr", 0);

pub(crate) const OPS: &[OpDef] = &[
    optimizer!(
        "tf.ResourceApplyAdaMax",
        "Takes a step of AdaMax, Adam with the infinity norm.",
        ["var", "m", "v"],
        [
            scalar("beta1_power"),
            scalar("lr"),
            scalar("beta1"),
            scalar("beta2"),
            scalar("epsilon"),
            GRAD
        ],
        []
    ),
    optimizer!(
        "tf.ResourceApplyAdadelta",
        "Takes a step of Adadelta (Zeiler, 2012).",
        ["var", "accum", "accum_update"],
        [scalar("lr"), scalar("rho"), scalar("epsilon"), GRAD],
        []
    ),
    optimizer!(
        "tf.ResourceApplyAdagrad",
        "Takes a step of Adagrad.",
        ["var", "accum"],
        [scalar("lr"), GRAD],
        [UPDATE_SLOTS]
    ),
    optimizer!(
        "tf.ResourceApplyAdagradDA",
        "Takes a step of Adagrad by dual averaging.",
        [
            "var",
            "gradient_accumulator",
            "gradient_squared_accumulator"
        ],
        [GRAD, scalar("lr"), scalar("l1"), scalar("l2"), STEP],
        []
    ),
    optimizer!(
        "tf.ResourceApplyAdagradV2",
        "Takes a step of Adagrad with an epsilon.",
        ["var", "accum"],
        [scalar("lr"), scalar("epsilon"), GRAD],
        [UPDATE_SLOTS]
    ),
    optimizer!(
        "tf.ResourceApplyAdam",
        "Takes a step of Adam (Kingma and Ba, 2014).",
        ["var", "m", "v"],
        [
            scalar("beta1_power"),
            scalar("beta2_power"),
            scalar("lr"),
            scalar("beta1"),
            scalar("beta2"),
            scalar("epsilon"),
            GRAD
        ],
        [NESTEROV]
    ),
    optimizer!(
        "tf.ResourceApplyAdamWithAmsgrad",
        "Takes a step of Adam with the greatest second moment so far (AMSGrad).",
        ["var", "m", "v", "vhat"],
        [
            scalar("beta1_power"),
            scalar("beta2_power"),
            scalar("lr"),
            scalar("beta1"),
            scalar("beta2"),
            scalar("epsilon"),
            GRAD
        ],
        []
    ),
    optimizer!(
        "tf.ResourceApplyAddSign",
        "Takes a step of AddSign, faster where gradient and momentum agree in sign.",
        ["var", "m"],
        [
            scalar("lr"),
            scalar("alpha"),
            scalar("sign_decay"),
            scalar("beta"),
            GRAD
        ],
        []
    ),
    optimizer!(
        "tf.ResourceApplyCenteredRMSProp",
        "Takes a step of RMSProp whose mean square is centered.",
        ["var", "mg", "ms", "mom"],
        [
            scalar("lr"),
            scalar("rho"),
            scalar("momentum"),
            scalar("epsilon"),
            GRAD
        ],
        []
    ),
    optimizer!(
        "tf.ResourceApplyFtrl",
        "Takes a step of Ftrl-proximal.",
        ["var", "accum", "linear"],
        [
            GRAD,
            scalar("lr"),
            scalar("l1"),
            scalar("l2"),
            scalar("lr_power")
        ],
        [LINEAR_BY_LR]
    ),
    optimizer!(
        "tf.ResourceApplyFtrlV2",
        "Takes a step of Ftrl-proximal with a shrinkage of l2.",
        ["var", "accum", "linear"],
        [
            GRAD,
            scalar("lr"),
            scalar("l1"),
            scalar("l2"),
            scalar("l2_shrinkage"),
            scalar("lr_power")
        ],
        [LINEAR_BY_LR]
    ),
    optimizer!(
        "tf.ResourceApplyGradientDescent",
        "Takes a step of gradient descent: var -= alpha * delta.",
        ["var"],
        [scalar("alpha"), DELTA],
        []
    ),
    optimizer!(
        "tf.ResourceApplyKerasMomentum",
        "Takes a step of gradient descent with momentum, or Nesterov's, whose accumulator holds the rate.",
        ["var", "accum"],
        [scalar("lr"), GRAD, scalar("momentum")],
        [NESTEROV]
    ),
    optimizer!(
        "tf.ResourceApplyMomentum",
        "Takes a step of gradient descent with momentum, or Nesterov's.",
        ["var", "accum"],
        [scalar("lr"), GRAD, scalar("momentum")],
        [NESTEROV]
    ),
    optimizer!(
        "tf.ResourceApplyPowerSign",
        "Takes a step of PowerSign, faster where gradient and momentum agree in sign.",
        ["var", "m"],
        [
            scalar("lr"),
            scalar("logbase"),
            scalar("sign_decay"),
            scalar("beta"),
            GRAD
        ],
        []
    ),
    optimizer!(
        "tf.ResourceApplyProximalAdagrad",
        "Takes a step of Adagrad, and shrinks by l1 and l2.",
        ["var", "accum"],
        [scalar("lr"), scalar("l1"), scalar("l2"), GRAD],
        []
    ),
    optimizer!(
        "tf.ResourceApplyProximalGradientDescent",
        "Takes a step of gradient descent, and shrinks by l1 and l2.",
        ["var"],
        [scalar("alpha"), scalar("l1"), scalar("l2"), DELTA],
        []
    ),
    optimizer!(
        "tf.ResourceApplyRMSProp",
        "Takes a step of RMSProp.",
        ["var", "ms", "mom"],
        [
            scalar("lr"),
            scalar("rho"),
            scalar("momentum"),
            scalar("epsilon"),
            GRAD
        ],
        []
    ),
    optimizer!(
        "tf.ResourceSparseApplyAdadelta",
        "Takes a step of Adadelta (Zeiler, 2012), of the rows that `indices` name, one after the other.",
        ["var", "accum", "accum_update"],
        [
            scalar("lr"),
            scalar("rho"),
            scalar("epsilon"),
            GRAD,
            INDICES
        ],
        []
    ),
    optimizer!(
        "tf.ResourceSparseApplyAdagrad",
        "Takes a step of Adagrad, of the rows that `indices` name, one after the other.",
        ["var", "accum"],
        [scalar("lr"), GRAD, INDICES],
        [UPDATE_SLOTS]
    ),
    optimizer!(
        "tf.ResourceSparseApplyAdagradDA",
        "Takes a step of Adagrad by dual averaging, of the rows that `indices` name, one after the other.",
        [
            "var",
            "gradient_accumulator",
            "gradient_squared_accumulator"
        ],
        [
            GRAD,
            INDICES,
            scalar("lr"),
            scalar("l1"),
            scalar("l2"),
            STEP
        ],
        []
    ),
    optimizer!(
        "tf.ResourceSparseApplyAdagradV2",
        "Takes a step of Adagrad with an epsilon, of the rows that `indices` name, one after the other.",
        ["var", "accum"],
        [scalar("lr"), scalar("epsilon"), GRAD, INDICES],
        [UPDATE_SLOTS]
    ),
    optimizer!(
        "tf.ResourceSparseApplyCenteredRMSProp",
        "Takes a step of RMSProp whose mean square is centered, of the rows that `indices` name, one after the other.",
        ["var", "mg", "ms", "mom"],
        [
            scalar("lr"),
            scalar("rho"),
            scalar("momentum"),
            scalar("epsilon"),
            GRAD,
            INDICES
        ],
        []
    ),
    optimizer!(
        "tf.ResourceSparseApplyFtrl",
        "Takes a step of Ftrl-proximal, of the rows that `indices` name, one after the other.",
        ["var", "accum", "linear"],
        [
            GRAD,
            INDICES,
            scalar("lr"),
            scalar("l1"),
            scalar("l2"),
            scalar("lr_power")
        ],
        [LINEAR_BY_LR]
    ),
    optimizer!(
        "tf.ResourceSparseApplyFtrlV2",
        "Takes a step of Ftrl-proximal with a shrinkage of l2, of the rows that `indices` name, one after the other.",
        ["var", "accum", "linear"],
        [
            GRAD,
            INDICES,
            scalar("lr"),
            scalar("l1"),
            scalar("l2"),
            scalar("l2_shrinkage"),
            scalar("lr_power")
        ],
        [LINEAR_BY_LR]
    ),
    optimizer!(
        "tf.ResourceSparseApplyKerasMomentum",
        "Takes a step of gradient descent with momentum, or Nesterov's, whose accumulator holds the rate, of the rows that `indices` name, one after the other.",
        ["var", "accum"],
        [scalar("lr"), GRAD, INDICES, scalar("momentum")],
        [NESTEROV]
    ),
    optimizer!(
        "tf.ResourceSparseApplyMomentum",
        "Takes a step of gradient descent with momentum, or Nesterov's, of the rows that `indices` name, one after the other.",
        ["var", "accum"],
        [scalar("lr"), GRAD, INDICES, scalar("momentum")],
        [NESTEROV]
    ),
    optimizer!(
        "tf.ResourceSparseApplyProximalAdagrad",
        "Takes a step of Adagrad, and shrinks by l1 and l2, of the rows that `indices` name, one after the other.",
        ["var", "accum"],
        [scalar("lr"), scalar("l1"), scalar("l2"), GRAD, INDICES],
        []
    ),
    optimizer!(
        "tf.ResourceSparseApplyProximalGradientDescent",
        "Takes a step of gradient descent, and shrinks by l1 and l2, of the rows that `indices` name, one after the other.",
        ["var"],
        [scalar("alpha"), scalar("l1"), scalar("l2"), GRAD, INDICES],
        []
    ),
    optimizer!(
        "tf.ResourceSparseApplyRMSProp",
        "Takes a step of RMSProp, of the rows that `indices` name, one after the other.",
        ["var", "ms", "mom"],
        [
            scalar("lr"),
            scalar("rho"),
            scalar("momentum"),
            scalar("epsilon"),
            GRAD,
            INDICES
        ],
        []
    ),
];

/// Checks that scalars have no dimensions, as far as it is known.
fn nothing(call: &mut InferCall<'_>) -> Result<(), InferError> {
    for (def, fact) in call.op.inputs.iter().zip(call.inputs) {
        let is_scalar = !matches!(def.name, "grad" | "delta" | "indices")
            && def.types != crate::def::Types::Set(RESOURCE);
        let dims = fact.as_ref().and_then(|fact| fact.dims.as_ref());
        if let Some(dims) = dims.filter(|dims| is_scalar && !dims.is_empty()) {
            let (name, dims) = (def.name, super::dims_text(dims));
            return Err(call.error(format_args!("{name} is not a scalar: {dims}")));
        }
    }
    Ok(())
}
