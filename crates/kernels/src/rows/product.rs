//! Kernels of products of matrices with epilogues.

use smallvec::smallvec;
use tfrt_host::{AsyncValue, Error};
use tfrt_ops::tf::images::has_channels_first;
use tfrt_tensor::math::Family;
use tfrt_tensor::math::matmul::{Scale, matmul_into};
use tfrt_tensor::math::pointwise::{
    BinaryFunction, Operand, OperandOrder, PointwiseProgram, Step, UnaryFunction, binary_into,
};
use tfrt_tensor::op::{Outputs, TensorCall, TensorKernel, made, unsupported};
use tfrt_tensor::{DenseHostTensor, Dims, TensorShape};

use super::of_call;

pub(super) const KERNELS: &[TensorKernel] = &[
    TensorKernel::new("dot", dot).of(Family::Numbers),
    TensorKernel::new("tf.BiasAdd", |call| {
        if !has_channels_first(&call.attrs).map_err(of_call(call))? {
            return call.binary(BinaryFunction::Add, OperandOrder::TargetFirst);
        }
        let (x, bias) = (call.dense(0)?, call.dense(1)?);
        // An element of the bias for each of the second dimension.
        let mut extents = Dims::from_elem(1, x.shape().rank().saturating_sub(1));
        if let Some(first) = extents.first_mut() {
            *first = bias.n_elements();
        }
        let bias = call.named(bias.reshape(TensorShape::new(&extents)?))?;
        let out = call.output(0)?;
        let chain = binary_into(call.execution, BinaryFunction::Add, x, &bias, &out)?;
        Ok(smallvec![made(out, chain)?])
    })
    .of(Family::Numbers),
    TensorKernel::new("tf._FusedMatMul", fused).of(Family::Reals),
];

fn flips(call: &TensorCall<'_>) -> [bool; 2] {
    ["transpose_a", "transpose_b"].map(|name| call.attrs.flag(name))
}

/// Multiplies matrices, in batches that are broadcast; a vector is one row, or column.
fn dot(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let (a, b) = (call.dense(0)?, call.dense(1)?);
    let (out, mut flips) = (call.output(0)?, flips(call));
    let (a_rank, b_rank) = (a.shape().rank(), b.shape().rank());
    if a_rank > 1 && b_rank > 1 {
        let chain = matmul_into(call.execution, Scale::default(), [a, b], flips, &out);
        return Ok(smallvec![made(out, call.named(chain)?)?]);
    }
    let reshaped = |tensor: &DenseHostTensor, row: bool, column: bool| {
        let mut extents = tensor.shape().to_dims();
        if row {
            extents.insert(extents.len().saturating_sub(1), 1);
        }
        if column {
            extents.push(1);
        }
        tensor.reshape(TensorShape::new(&extents)?)
    };
    let (is_row, is_column) = (a_rank == 1, b_rank == 1);
    let (a, b) = (reshaped(a, is_row, false)?, reshaped(b, false, is_column)?);
    // A vector has nothing to exchange.
    flips[0] &= !is_row;
    flips[1] &= !is_column;
    // The result has lost the dimension of each vector.
    let written = match (is_row, is_column) {
        (true, true) => out.reshape(TensorShape::new(&[1, 1])?)?,
        (row, column) => reshaped(&out, row, column)?,
    };
    let chain = matmul_into(call.execution, Scale::default(), [&a, &b], flips, &written);
    Ok(smallvec![made(out, call.named(chain)?)?])
}

fn fused(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let dtype = call.dense(0)?.dtype();
    let then = match tfrt_ops::tf::fused_function(&call.attrs).map_err(of_call(call))? {
        None => None,
        Some("Relu") => Some(UnaryFunction::Relu),
        Some("Relu6") => Some(UnaryFunction::Relu6),
        Some(_) => Some(UnaryFunction::Elu),
    };
    if then.is_some_and(|function| function.result(dtype).is_none()) {
        return Err(unsupported(call.name, dtype));
    }
    let mut steps = vec![Step::Binary(
        BinaryFunction::Add,
        [0, 1].map(Operand::Input),
    )];
    steps.extend(then.map(|function| Step::Unary(function, Operand::Step(0))));
    let finish = PointwiseProgram::new(2, &steps)?;
    let (out, bias) = (call.output(0)?, call.dense(2)?.clone());
    let (written, execution) = (out.clone(), call.execution.clone());
    let factors = [call.dense(0)?, call.dense(1)?];
    let product = matmul_into(call.execution, Scale::default(), factors, flips(call), &out);
    let chain = call.named(product)?.and_then_value(move |_| {
        let finished = finish.run_in_place(&execution, &written, &[&bias]);
        finished.unwrap_or_else(AsyncValue::from_error)
    });
    Ok(smallvec![made(out, chain)?])
}
