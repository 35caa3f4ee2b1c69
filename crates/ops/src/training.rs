//! Rows that training needs: gradients, losses, steps of weights.

use tfrt_bef::DType;

use crate::def::{AttrDef, AttrKind, Cost, OpDef, Traits, ValueDef};
use crate::infer::{Infer, InferCall, InferError};
use crate::tf::images::has_channels_first;
use crate::tf::text;

const GRADIENT: ValueDef = ValueDef::var("gradient", "T");
const WEIGHTS: ValueDef = ValueDef::var("weights", "T");
const RATE: AttrDef = AttrDef::new("learning_rate", AttrKind::Float).required();

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("tf.BiasAddGrad", "The sum of a gradient over all dimensions but the last.")
        .inputs(&[GRADIENT])
        .attrs(&[AttrDef::text("data_format", "NHWC")])
        .infer(Infer::By(bias)),
    OpDef::new("tf.ReluGrad", "Of a gradient and what relu was made of, or its result: the gradient where that is above 0, else 0.")
        .inputs(&[GRADIENT, ValueDef::var("features", "T")])
        .traits(Traits::IN_PLACE)
        .infer(Infer::By(alike)),
    OpDef::new("tf.SparseSoftmaxCrossEntropyWithLogits", "Of scores and the class of each row: the cross entropy with the softmax, and its gradient.")
        .inputs(&[ValueDef::var("scores", "T"), ValueDef::set("classes", &[DType::I32, DType::I64])])
        .results(&[ValueDef::var("loss", "T"), GRADIENT])
        .infer(Infer::By(sparse_loss))
        .cost(Cost::PerElement(64)),
    OpDef::new("tfrt.momentum", "Of weights, velocities and a gradient: the weights and velocities after a step, velocity' = momentum * velocity + gradient, weights' = weights - rate * velocity'.")
        .inputs(&[WEIGHTS, ValueDef::var("velocity", "T"), GRADIENT])
        .results(&[WEIGHTS, ValueDef::var("velocity", "T")])
        .attrs(&[RATE, AttrDef::new("momentum", AttrKind::Float).required()])
        .traits(Traits::IN_PLACE)
        .infer(Infer::By(alike)),
    OpDef::new("tfrt.sgd", "Of weights and a gradient: weights - rate * gradient.")
        .inputs(&[WEIGHTS, GRADIENT])
        .results(&[WEIGHTS])
        .attrs(&[RATE])
        .traits(Traits::IN_PLACE)
        .infer(Infer::By(alike)),
];

/// Infers results of the type and shape that all operands have.
fn alike(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let mut all = call.input(0).clone();
    all.values = None;
    for other in call.inputs.iter().flatten() {
        all = call.agree(other, &all).map_err(|_| {
            let (first, other) = (text(call.input(0)), text(other));
            call.error(format_args!(
                "expected inputs of one type and shape, found {first} and {other}"
            ))
        })?;
        all.values = None;
    }
    (0..call.out.len()).for_each(|index| call.set(index, all.clone()));
    Ok(())
}

fn bias(call: &mut InferCall<'_>) -> Result<(), InferError> {
    if has_channels_first(&call.attrs).map_err(|error| call.error(error))? {
        return Err(call.error("expected attribute 'data_format' to be NHWC, channels last"));
    }
    let gradient = call.input(0);
    let dims = match gradient.dims.as_deref() {
        Some([]) => return Err(call.error("expected a dimension or more, found shape []")),
        Some([.., last]) => Some([last.clone()].into_iter().collect()),
        None => None,
    };
    let dtype = gradient.dtype;
    call.give(0, dtype, dims);
    Ok(())
}

fn sparse_loss(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let (scores, classes) = (call.input(0).clone(), call.input(1).clone());
    let rows = scores
        .dims
        .as_ref()
        .map(|dims| dims.split_last().map(|(_, rows)| rows));
    let mut expected = classes.dims.clone();
    if let Some(rows) = rows {
        let misfit = || {
            let (scores, classes) = (text(&scores), text(&classes));
            call.error(format_args!(
                "expected a class for each row of scores, found {classes} for {scores}"
            ))
        };
        let rows = rows.ok_or_else(misfit)?;
        let own = crate::Fact::new(None, Some(rows.iter().cloned().collect()));
        let agreed = call.agree(&own, &crate::Fact::new(None, expected));
        expected = agreed.map_err(|_| misfit())?.dims;
    }
    call.give(0, scores.dtype, expected);
    call.give(1, scores.dtype, scores.dims);
    Ok(())
}
