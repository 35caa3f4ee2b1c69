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

/// `optimizer!("tf.ResourceApplyX", "Takes a step.", [var, m], [lr "T", grad "T"], [..])` makes a row without results that
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

/// Makes an operand of the weights' type.
const fn t(name: &'static str) -> ValueDef {
    ValueDef::var(name, "T")
}

const STEP: ValueDef = ValueDef::set("global_step", &[DType::I64]);
const NESTEROV: AttrDef = AttrDef::int("use_nesterov", 0);
const UPDATE_SLOTS: AttrDef = AttrDef::int("update_slots", 1);
const LINEAR_BY_LR: AttrDef = AttrDef::int("multiply_linear_by_lr", 0);

pub(crate) const OPS: &[OpDef] = &[
    optimizer!(
        "tf.ResourceApplyAdaMax",
        "Takes a step of AdaMax, Adam with the infinity norm.",
        ["var", "m", "v"],
        [t("beta1_power"), t("lr"), t("beta1"), t("beta2"), t("epsilon"), t("grad")],
        []
    ),
    optimizer!(
        "tf.ResourceApplyAdadelta",
        "Takes a step of Adadelta (Zeiler, 2012).",
        ["var", "accum", "accum_update"],
        [t("lr"), t("rho"), t("epsilon"), t("grad")],
        []
    ),
    optimizer!(
        "tf.ResourceApplyAdagrad",
        "Takes a step of Adagrad.",
        ["var", "accum"],
        [t("lr"), t("grad")],
        [UPDATE_SLOTS]
    ),
    optimizer!(
        "tf.ResourceApplyAdagradDA",
        "Takes a step of Adagrad by dual averaging.",
        ["var", "gradient_accumulator", "gradient_squared_accumulator"],
        [t("grad"), t("lr"), t("l1"), t("l2"), STEP],
        []
    ),
    optimizer!(
        "tf.ResourceApplyAdagradV2",
        "Takes a step of Adagrad with an epsilon.",
        ["var", "accum"],
        [t("lr"), t("epsilon"), t("grad")],
        [UPDATE_SLOTS]
    ),
    optimizer!(
        "tf.ResourceApplyAdam",
        "Takes a step of Adam (Kingma and Ba, 2014).",
        ["var", "m", "v"],
        [t("beta1_power"), t("beta2_power"), t("lr"), t("beta1"), t("beta2"), t("epsilon"), t("grad")],
        [NESTEROV]
    ),
    optimizer!(
        "tf.ResourceApplyAdamWithAmsgrad",
        "Takes a step of Adam with the greatest second moment so far (AMSGrad).",
        ["var", "m", "v", "vhat"],
        [t("beta1_power"), t("beta2_power"), t("lr"), t("beta1"), t("beta2"), t("epsilon"), t("grad")],
        []
    ),
    optimizer!(
        "tf.ResourceApplyAddSign",
        "Takes a step of AddSign, faster where gradient and momentum agree in sign.",
        ["var", "m"],
        [t("lr"), t("alpha"), t("sign_decay"), t("beta"), t("grad")],
        []
    ),
    optimizer!(
        "tf.ResourceApplyCenteredRMSProp",
        "Takes a step of RMSProp whose mean square is centered.",
        ["var", "mg", "ms", "mom"],
        [t("lr"), t("rho"), t("momentum"), t("epsilon"), t("grad")],
        []
    ),
    optimizer!(
        "tf.ResourceApplyFtrl",
        "Takes a step of Ftrl-proximal.",
        ["var", "accum", "linear"],
        [t("grad"), t("lr"), t("l1"), t("l2"), t("lr_power")],
        [LINEAR_BY_LR]
    ),
    optimizer!(
        "tf.ResourceApplyFtrlV2",
        "Takes a step of Ftrl-proximal with a shrinkage of l2.",
        ["var", "accum", "linear"],
        [t("grad"), t("lr"), t("l1"), t("l2"), t("l2_shrinkage"), t("lr_power")],
        [LINEAR_BY_LR]
    ),
    optimizer!(
        "tf.ResourceApplyGradientDescent",
        "Takes a step of gradient descent: var -= alpha * delta.",
        ["var"],
        [t("alpha"), t("delta")],
        []
    ),
    optimizer!(
        "tf.ResourceApplyKerasMomentum",
        "Takes a step of gradient descent with momentum, or Nesterov's, whose accumulator holds the rate.",
        ["var", "accum"],
        [t("lr"), t("grad"), t("momentum")],
        [NESTEROV]
    ),
    optimizer!(
        "tf.ResourceApplyMomentum",
        "Takes a step of gradient descent with momentum, or Nesterov's.",
        ["var", "accum"],
        [t("lr"), t("grad"), t("momentum")],
        [NESTEROV]
    ),
    optimizer!(
        "tf.ResourceApplyPowerSign",
        "Takes a step of PowerSign, faster where gradient and momentum agree in sign.",
        ["var", "m"],
        [t("lr"), t("logbase"), t("sign_decay"), t("beta"), t("grad")],
        []
    ),
    optimizer!(
        "tf.ResourceApplyProximalAdagrad",
        "Takes a step of Adagrad, and shrinks by l1 and l2.",
        ["var", "accum"],
        [t("lr"), t("l1"), t("l2"), t("grad")],
        []
    ),
    optimizer!(
        "tf.ResourceApplyProximalGradientDescent",
        "Takes a step of gradient descent, and shrinks by l1 and l2.",
        ["var"],
        [t("alpha"), t("l1"), t("l2"), t("delta")],
        []
    ),
    optimizer!(
        "tf.ResourceApplyRMSProp",
        "Takes a step of RMSProp.",
        ["var", "ms", "mom"],
        [t("lr"), t("rho"), t("momentum"), t("epsilon"), t("grad")],
        []
    ),
    optimizer!(
        "tf.ResourceSparseApplyAdadelta",
        "Takes a step of Adadelta (Zeiler, 2012), of the rows that `indices` name, one after the other.",
        ["var", "accum", "accum_update"],
        [t("lr"), t("rho"), t("epsilon"), t("grad"), INDICES],
        []
    ),
    optimizer!(
        "tf.ResourceSparseApplyAdagrad",
        "Takes a step of Adagrad, of the rows that `indices` name, one after the other.",
        ["var", "accum"],
        [t("lr"), t("grad"), INDICES],
        [UPDATE_SLOTS]
    ),
    optimizer!(
        "tf.ResourceSparseApplyAdagradDA",
        "Takes a step of Adagrad by dual averaging, of the rows that `indices` name, one after the other.",
        ["var", "gradient_accumulator", "gradient_squared_accumulator"],
        [t("grad"), INDICES, t("lr"), t("l1"), t("l2"), STEP],
        []
    ),
    optimizer!(
        "tf.ResourceSparseApplyAdagradV2",
        "Takes a step of Adagrad with an epsilon, of the rows that `indices` name, one after the other.",
        ["var", "accum"],
        [t("lr"), t("epsilon"), t("grad"), INDICES],
        [UPDATE_SLOTS]
    ),
    optimizer!(
        "tf.ResourceSparseApplyCenteredRMSProp",
        "Takes a step of RMSProp whose mean square is centered, of the rows that `indices` name, one after the other.",
        ["var", "mg", "ms", "mom"],
        [t("lr"), t("rho"), t("momentum"), t("epsilon"), t("grad"), INDICES],
        []
    ),
    optimizer!(
        "tf.ResourceSparseApplyFtrl",
        "Takes a step of Ftrl-proximal, of the rows that `indices` name, one after the other.",
        ["var", "accum", "linear"],
        [t("grad"), INDICES, t("lr"), t("l1"), t("l2"), t("lr_power")],
        [LINEAR_BY_LR]
    ),
    optimizer!(
        "tf.ResourceSparseApplyFtrlV2",
        "Takes a step of Ftrl-proximal with a shrinkage of l2, of the rows that `indices` name, one after the other.",
        ["var", "accum", "linear"],
        [t("grad"), INDICES, t("lr"), t("l1"), t("l2"), t("l2_shrinkage"), t("lr_power")],
        [LINEAR_BY_LR]
    ),
    optimizer!(
        "tf.ResourceSparseApplyKerasMomentum",
        "Takes a step of gradient descent with momentum, or Nesterov's, whose accumulator holds the rate, of the rows that `indices` name, one after the other.",
        ["var", "accum"],
        [t("lr"), t("grad"), INDICES, t("momentum")],
        [NESTEROV]
    ),
    optimizer!(
        "tf.ResourceSparseApplyMomentum",
        "Takes a step of gradient descent with momentum, or Nesterov's, of the rows that `indices` name, one after the other.",
        ["var", "accum"],
        [t("lr"), t("grad"), INDICES, t("momentum")],
        [NESTEROV]
    ),
    optimizer!(
        "tf.ResourceSparseApplyProximalAdagrad",
        "Takes a step of Adagrad, and shrinks by l1 and l2, of the rows that `indices` name, one after the other.",
        ["var", "accum"],
        [t("lr"), t("l1"), t("l2"), t("grad"), INDICES],
        []
    ),
    optimizer!(
        "tf.ResourceSparseApplyProximalGradientDescent",
        "Takes a step of gradient descent, and shrinks by l1 and l2, of the rows that `indices` name, one after the other.",
        ["var"],
        [t("alpha"), t("l1"), t("l2"), t("grad"), INDICES],
        []
    ),
    optimizer!(
        "tf.ResourceSparseApplyRMSProp",
        "Takes a step of RMSProp, of the rows that `indices` name, one after the other.",
        ["var", "ms", "mom"],
        [t("lr"), t("rho"), t("momentum"), t("epsilon"), t("grad"), INDICES],
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
