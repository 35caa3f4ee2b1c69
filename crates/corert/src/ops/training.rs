//! What training needs: gradients, a loss, steps of weights.
//!
//! Steps are functions: of weights they make others. Where the handle of the weights is given for good, as one that is
//! assigned to after, they are changed where they are.

use smallvec::smallvec;
use tfrt_host::{AsyncValue, Chain, DType, Error};
use tfrt_tensor::math::Family;
use tfrt_tensor::math::gradient::{cross_entropy, cross_entropy_gradient};
use tfrt_tensor::math::movement::Position;
use tfrt_tensor::math::number::Floating;
use tfrt_tensor::math::pointwise::{BinaryFunction, Order};
use tfrt_tensor::math::reduce::{Reduction, reduce_into};
use tfrt_tensor::math::training::{Momentum, descend_into, momentum_into};
use tfrt_tensor::{
    DenseHostTensor, Dims, Element, TensorMetadata, TensorShape, TensorView, with_floating,
};

use super::arithmetic::typed;
use super::elements::Elements;
use super::windows::Attributes;
use crate::attributes::{AttrValue, OpAttrsRef, missing};
use crate::call::{Call, made};
use crate::definition::{
    AttrKind, MetadataCall, OpDefinition, OpRegistry, Outputs, ResultMetadata, expect_family,
    unsupported,
};

pub(super) fn register(registry: &mut OpRegistry) {
    registry
        .add(
            typed(OpDefinition::new("tf.ReluGrad", relu_gradient))
                .summary("Of a gradient and what relu was made of, or its result: the gradient where that is above 0, else 0.")
                .elements(Elements::Reals.text())
                .inputs(2)
                .metadata(|call| Ok(smallvec![of_one_shape(call, Elements::Reals)?.clone()]))
                .pure(),
        )
        .add(
            typed(OpDefinition::new("tf.BiasAddGrad", bias_gradient))
                .summary("The sum of a gradient over all dimensions but the last.")
                .elements(Elements::Numbers.text())
                .inputs(1)
                .attribute("data_format", AttrKind::Text, "NHWC: channels are the last dimension")
                .metadata(bias_gradient_metadata)
                .pure(),
        )
        .add(
            typed(OpDefinition::new("tf.SparseSoftmaxCrossEntropyWithLogits", sparse_loss))
                .summary("Of scores and the class of each row: the cross entropy with the softmax, and its gradient.")
                .elements("f16, bf16, f32, f64; classes i32, i64")
                .inputs(2)
                .results(2)
                .attribute("Tlabels", AttrKind::Type, "the type of the classes, who count themselves")
                .metadata(sparse_loss_metadata)
                .cost(|inputs, _| {
                    let n = inputs.first().and_then(|scores| scores.shape.n_elements());
                    n.unwrap_or(usize::MAX).saturating_mul(64) as u64
                })
                .pure(),
        )
        .add(
            OpDefinition::new("tfrt.sgd", descend)
                .summary("Of weights and a gradient: weights - rate * gradient.")
                .elements(Elements::Floats.text())
                .inputs(2)
                .attribute("learning_rate", AttrKind::Float, "how far to go")
                .metadata(|call| {
                    number(call.op, call.attrs, "learning_rate")?;
                    Ok(smallvec![of_one_shape(call, Elements::Floats)?.clone()])
                })
                .pure(),
        )
        .add(
            OpDefinition::new("tfrt.momentum", momentum)
                .summary("Of weights, velocities and a gradient: the weights and velocities after a step, velocity' = momentum * velocity + gradient, weights' = weights - rate * velocity'.")
                .elements(Elements::Floats.text())
                .inputs(3)
                .results(2)
                .attribute("learning_rate", AttrKind::Float, "how far to go")
                .attribute("momentum", AttrKind::Float, "how much of the velocity stays")
                .metadata(|call| {
                    number(call.op, call.attrs, "learning_rate")?;
                    number(call.op, call.attrs, "momentum")?;
                    let weights = of_one_shape(call, Elements::Floats)?;
                    Ok(smallvec![weights.clone(), weights.clone()])
                })
                .pure(),
        );
}

/// The floating-point number of this name.
///
/// # Errors
///
/// `InvalidArgument` if there is none.
fn number(op: &str, attrs: OpAttrsRef<'_>, name: &str) -> Result<f64, Error> {
    match attrs.value(name) {
        Some(AttrValue::Scalar(found)) if found.dtype() == DType::F64 => {
            Ok(attrs.get::<f64>(name)?.unwrap_or_default())
        }
        Some(_) => Ok(attrs.get::<f32>(name)?.unwrap_or_default().into()),
        None => Err(missing(op, name)),
    }
}

/// The first input, which all others are like.
fn of_one_shape<'a>(
    call: &MetadataCall<'a>,
    elements: Elements,
) -> Result<&'a TensorMetadata, Error> {
    let (op, [first, others @ ..]) = (call.op, call.inputs) else {
        let op = call.op;
        return Err(Error::invalid_argument(format!("{op} expects an input")));
    };
    elements.expect(op, first.dtype)?;
    match others.iter().find(|other| *other != first) {
        None => Ok(first),
        Some(other) => Err(Error::invalid_argument(format!(
            "{op} expects inputs of one type and shape, found {first} and {other}"
        ))),
    }
}

fn relu_gradient(call: &mut Call<'_>) -> Result<Outputs, Error> {
    call.binary(BinaryFunction::ReluGradient, Order::OtherFirst)
}

fn bias_gradient_metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    Attributes::from(call).expect_channels_last()?;
    let [gradient] = call.inputs else {
        let op = call.op;
        return Err(Error::invalid_argument(format!("{op} expects 1 input")));
    };
    Elements::Numbers.expect(call.op, gradient.dtype)?;
    let Some(last) = gradient.shape.extents().last() else {
        let op = call.op;
        return Err(Error::invalid_argument(format!(
            "{op} expects a dimension or more, found shape []"
        )));
    };
    Ok(smallvec![TensorMetadata::new(
        gradient.dtype,
        TensorShape::new(&[last])?
    )])
}

fn bias_gradient(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let (gradient, out) = (call.dense(0)?, call.output(0)?);
    let outer: Dims = (0..gradient.shape().rank().saturating_sub(1)).collect();
    expect_family(call.op(), Family::Numbers, gradient.dtype())?;
    let chain = reduce_into(call.execution(), Reduction::Sum, gradient, &outer, &out)?;
    call.made(out, chain)
}

fn sparse_loss_metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let (op, [scores, classes]) = (call.op, call.inputs) else {
        let op = call.op;
        return Err(Error::invalid_argument(format!("{op} expects 2 inputs")));
    };
    Elements::Floats.expect(op, scores.dtype)?;
    if !matches!(classes.dtype, DType::I32 | DType::I64) {
        let dtype = classes.dtype;
        return Err(Error::invalid_argument(format!(
            "{op} expects classes of type i32 or i64, found {dtype}"
        )));
    }
    let extents = scores.shape.to_dims();
    let rows = extents.split_last().map(|(_, rows)| rows);
    if rows != Some(&classes.shape.to_dims()[..]) {
        return Err(Error::invalid_argument(format!(
            "{op} expects a class for each row of scores, found {classes} for {scores}"
        )));
    }
    let loss = TensorMetadata::new(scores.dtype, classes.shape.clone());
    Ok(smallvec![loss, TensorMetadata::clone(scores)])
}

fn sparse_loss(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let (dtype, classes) = (call.dense(0)?.dtype(), call.dense(1)?.dtype());
    with_floating!(dtype, T => match classes {
        DType::I32 => sparse_loss_of::<T, i32>(call),
        _ => sparse_loss_of::<T, i64>(call),
    }, else Err(unsupported(call.op(), dtype)))
}

fn sparse_loss_of<T: Floating, I: Element + Position>(call: &Call<'_>) -> Result<Outputs, Error> {
    let (scores, classes) = (call.dense(0)?.read()?, call.dense(1)?.read()?);
    let (scores, classes) = (scores.view::<T>()?, classes.view::<I>()?);
    let (loss, gradient) = (call.zeros(0)?, call.zeros(1)?);
    cross_entropy(&scores, &classes, &mut loss.write()?.view_mut()?)?;
    let ones = [T::ONE];
    let ones = TensorView::new(&ones, &[])?.broadcast(classes.extents())?;
    cross_entropy_gradient(&scores, &classes, &ones, &mut gradient.write()?.view_mut()?)?;
    Ok(smallvec![loss.into(), gradient.into()])
}

/// Calls `step` with the first `N` inputs, to be written: each itself if it was given for good and nobody else holds it,
/// else a copy. If there is no memory for one, or the step is refused, none has been taken.
fn change<const N: usize>(
    call: &mut Call<'_>,
    step: impl FnOnce(&mut Call<'_>, &[DenseHostTensor; N]) -> Result<AsyncValue<Chain>, Error>,
) -> Result<Outputs, Error> {
    for index in N..call.n_inputs() {
        // Of what can't be read now no part of the step can be made.
        drop(call.dense(index)?.read()?);
    }
    let mut copies = [const { None }; N];
    for (index, copy) in copies.iter_mut().enumerate() {
        if !call.is_sole(index) {
            let allocator = call.execution().host().allocator();
            *copy = Some(call.dense(index)?.deep_copy(allocator)?);
        }
    }
    let is_own = copies.each_ref().map(Option::is_none);
    let mut index = 0;
    let states = copies.map(|copy| {
        let state = copy.or_else(|| call.take_sole(index));
        index += 1;
        state.expect("it is a copy, or was found to be sole")
    });
    match step(call, &states) {
        Ok(chain) => states
            .into_iter()
            .map(|state| made(state, chain.clone()))
            .collect(),
        Err(error) => {
            for (index, state) in states.into_iter().enumerate() {
                if is_own[index] {
                    call.give_back(index, state);
                }
            }
            Err(error)
        }
    }
}

fn descend(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let rate = number(call.op(), call.attrs(), "learning_rate")?;
    change(call, |call, [weights]| {
        expect_family(call.op(), Family::Floats, weights.dtype())?;
        descend_into(call.execution(), rate, call.dense(1)?, weights)
    })
}

fn momentum(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let rate = number(call.op(), call.attrs(), "learning_rate")?;
    let of_velocity = number(call.op(), call.attrs(), "momentum")?;
    change(call, |call, [weights, velocity]| {
        expect_family(call.op(), Family::Floats, weights.dtype())?;
        let step = Momentum {
            rate,
            of_velocity,
            decay: 0.0,
            is_nesterov: false,
        };
        momentum_into(call.execution(), step, call.dense(2)?, velocity, weights)
    })
}
