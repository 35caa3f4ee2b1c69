//! Kernels of training: gradients, a loss, steps of weights.
//!
//! Steps are functions: of weights they make others. Where weights are given for good, they are changed where they are.

use smallvec::smallvec;
use tfrt_host::{AsyncValue, Chain, DType, Error};
use tfrt_tensor::math::Family;
use tfrt_tensor::math::gradient::{cross_entropy, cross_entropy_gradient};
use tfrt_tensor::math::layout_copy::Position;
use tfrt_tensor::math::number::Floating;
use tfrt_tensor::math::pointwise::{BinaryFunction, OperandOrder};
use tfrt_tensor::math::reduce::{Reduction, reduce_into};
use tfrt_tensor::math::training::{Momentum, descend_into, momentum_into};
use tfrt_tensor::op::{Outputs, TensorCall, TensorKernel, made, unsupported};
use tfrt_tensor::{DenseHostTensor, Dims, Element, TensorView, with_floating};

pub(super) const KERNELS: &[TensorKernel] = &[
    TensorKernel::new("tf.BiasAddGrad", bias_gradient).of(Family::Numbers),
    TensorKernel::new("tf.ReluGrad", |call| {
        call.binary(BinaryFunction::ReluGradient, OperandOrder::OtherFirst)
    })
    .of(Family::Reals),
    TensorKernel::new("tf.SparseSoftmaxCrossEntropyWithLogits", sparse_loss).of(Family::Floats),
    TensorKernel::new("tfrt.momentum", momentum).of(Family::Floats),
    TensorKernel::new("tfrt.sgd", descend).of(Family::Floats),
];

fn bias_gradient(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let (gradient, out) = (call.dense(0)?, call.output(0)?);
    let outer: Dims = (0..gradient.shape().rank().saturating_sub(1)).collect();
    let chain = reduce_into(call.execution, Reduction::Sum, gradient, &outer, &out)?;
    Ok(smallvec![made(out, chain)?])
}

fn sparse_loss(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let (dtype, classes) = (call.dense(0)?.dtype(), call.dense(1)?.dtype());
    with_floating!(dtype, T => match classes {
        DType::I32 => sparse_loss_of::<T, i32>(call),
        _ => sparse_loss_of::<T, i64>(call),
    }, else Err(unsupported(call.name, dtype)))
}

fn sparse_loss_of<T: Floating, I: Element + Position>(
    call: &TensorCall<'_>,
) -> Result<Outputs, Error> {
    let (scores, classes) = (call.dense(0)?.read()?, call.dense(1)?.read()?);
    let (scores, classes) = (scores.view::<T>()?, classes.view::<I>()?);
    let (loss, gradient) = (call.zeros(0)?, call.zeros(1)?);
    cross_entropy(&scores, &classes, &mut loss.write()?.view_mut()?)?;
    let ones = [T::ONE];
    let ones = TensorView::new(&ones, &[])?.broadcast(classes.extents())?;
    cross_entropy_gradient(&scores, &classes, &ones, &mut gradient.write()?.view_mut()?)?;
    Ok(smallvec![loss.into(), gradient.into()])
}

/// Calls `step` with the first `N` operands, to be written: each itself if it was given up and nobody else holds it,
/// else a copy. If there is no memory for a copy, or the step is refused, no operand has been taken.
fn change<const N: usize>(
    call: &mut TensorCall<'_>,
    step: impl FnOnce(&TensorCall<'_>, &[DenseHostTensor; N]) -> Result<AsyncValue<Chain>, Error>,
) -> Result<Outputs, Error> {
    for index in N..call.n_inputs() {
        // Of what can't be read now no part of the step can be made.
        drop(call.dense(index)?.read()?);
    }
    let mut copies = [const { None }; N];
    for (index, copy) in copies.iter_mut().enumerate() {
        match call.operands.take_sole(index) {
            Some(sole) => call.operands.put_back(index, sole),
            None => {
                let allocator = call.execution.host().allocator();
                *copy = Some(call.dense(index)?.deep_copy(allocator)?);
            }
        }
    }
    let is_own = copies.each_ref().map(Option::is_none);
    let mut index = 0;
    let states = copies.map(|copy| {
        let state = copy.or_else(|| call.operands.take_sole(index));
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
                    call.operands.put_back(index, state);
                }
            }
            Err(error)
        }
    }
}

fn descend(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let rate = number(call, "learning_rate");
    change(call, |call, [weights]| {
        descend_into(call.execution, rate, call.dense(1)?, weights)
    })
}

fn momentum(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let step = Momentum {
        rate: number(call, "learning_rate"),
        of_velocity: number(call, "momentum"),
        decay: 0.0,
        is_nesterov: false,
    };
    change(call, |call, [weights, velocity]| {
        momentum_into(call.execution, step, call.dense(2)?, velocity, weights)
    })
}

/// Returns a number that the row says must be stated.
fn number(call: &TensorCall<'_>, name: &str) -> f64 {
    match call.attrs.get(name) {
        Some(tfrt_ops::AttrValue::Float(number)) => number,
        _ => 0.0,
    }
}
