//! Products of matrices: plain and quantised. Constant right-hand sides of halves are converted to `f32` once
//! ([`Rhs`]).

use std::sync::Arc;

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};
use tfrt_tensor::math::Family;
use tfrt_tensor::math::cast::{Casting, cast_into};
use tfrt_tensor::math::elementwise::broadcast_extents;
use tfrt_tensor::math::layout_copy::LayoutCopy;
use tfrt_tensor::math::linear::determinants_into;
use tfrt_tensor::math::matmul::{Scale, WidenedRhs, matmul_into, matmul_widened_into};
use tfrt_tensor::math::quantize::{QuantParams, dequantize_into, quantize_into};
use tfrt_tensor::{DType, DenseHostTensor, Dims, TensorShape};

use super::outputs::IntoValue;
use super::prepare::{PrepareRow, PreparedKernel, erase};
use super::quantize::numbers;
use super::{NodeCall, Operations, Outputs};

mod bytes;
mod einsum;
mod quantized;

pub(super) const OPERATIONS: &Operations = &[
    ("onnx.Det", determinant),
    ("onnx.Einsum", einsum::einsum),
    ("onnx.Gemm", gemm),
    ("dot", product),
    ("onnx.MatMulInteger", integers),
    ("onnx.QLinearMatMul", quantized),
    ("integer_dot", quantized::to_floats),
    ("quantized_dot", quantized::to_bytes),
];

/// The nodes whose constant right-hand sides are converted.
pub(super) const PREPARE: &[PrepareRow] = &[
    PrepareRow {
        op: "dot",
        inputs: &[1],
        types: &[DType::F16, DType::Bf16],
        takes_attributes: false,
        make: |node| Ok(keep(node)?.map(|right| erase(Dot(Rhs::Prepared(right))))),
        restore: None,
    },
    bytes::PREPARE_INTEGERS,
    bytes::PREPARE_QUANTIZED,
    quantized::PREPARE_BYTES,
    quantized::PREPARE_FLOATS,
    PrepareRow {
        op: "onnx.Gemm",
        inputs: &[1],
        types: &[DType::F16, DType::Bf16],
        takes_attributes: false,
        make: |node| match node.inputs.dense(1)?.shape().rank() {
            2 => Ok(keep(node)?.map(|right| erase(Gemm(Rhs::Prepared(right))))),
            _ => Ok(None),
        },
        restore: None,
    },
];

/// The most elements of a right-hand side that is kept as `f32`: it must fit the caches, since reading twice as many
/// bytes from memory takes longer than converting halves.
const MOST_KEPT: usize = 1 << 20;

fn keep(node: &NodeCall<'_>) -> Result<Option<WidenedRhs>, Error> {
    let (right, host) = (node.inputs.dense(1)?, node.execution.host());
    if right.n_elements() > MOST_KEPT {
        return Ok(None);
    }
    let kept = WidenedRhs::new(host.allocator(), right)?;
    let kept = kept.map_elements(|elements| crate::graph::share(host, elements));
    Ok(Some(kept))
}

/// `MatMul` with a converted right-hand side.
#[derive(Debug)]
struct Dot(Rhs);

impl PreparedKernel for Dot {
    fn run(self: Arc<Self>, node: &NodeCall<'_>) -> Result<Outputs, Error> {
        product_by(node, &self.0)
    }
}

/// `Gemm` with a converted right-hand side.
#[derive(Debug)]
struct Gemm(Rhs);

impl PreparedKernel for Gemm {
    fn run(self: Arc<Self>, node: &NodeCall<'_>) -> Result<Outputs, Error> {
        gemm_by(node, &self.0)
    }
}

/// The right-hand side of a product.
#[derive(Clone, Debug)]
enum Rhs {
    /// A right-hand side that is an operand.
    Operand(DenseHostTensor),
    /// A constant right-hand side that was converted.
    Prepared(WidenedRhs),
}

impl Rhs {
    fn extents(&self) -> Dims {
        let elements = match self {
            Rhs::Operand(tensor) => tensor,
            Rhs::Prepared(kept) => kept.elements(),
        };
        elements.shape().to_dims()
    }

    /// Reshapes the right-hand side.
    fn reshaped(&self, extents: &[usize]) -> Result<Rhs, Error> {
        let shape = TensorShape::new(extents)?;
        Ok(match self {
            Rhs::Operand(tensor) => Rhs::Operand(tensor.reshape(shape)?),
            Rhs::Prepared(kept) => Rhs::Prepared(kept.reshape(shape)?),
        })
    }

    fn multiply_into(
        &self,
        execution: &ExecutionContext,
        scale: Scale<f64>,
        a: &DenseHostTensor,
        flips: [bool; 2],
        out: &DenseHostTensor,
    ) -> Result<AsyncValue<Chain>, Error> {
        match self {
            Rhs::Operand(b) => matmul_into(execution, scale, [a, b], flips, out),
            Rhs::Prepared(b) => matmul_widened_into(execution, scale, (a, b), flips, out),
        }
    }
}

/// The shapes of a product: the factors with two dimensions or more, the result then, and the result without added
/// dimensions.
struct Shapes {
    factors: [Dims; 2],
    product: Dims,
    result: Dims,
}

impl Shapes {
    fn of(node: &NodeCall<'_>, a: &[usize], b: &[usize]) -> Result<Shapes, Error> {
        let (mut left, mut right) = (Dims::from_slice(a), Dims::from_slice(b));
        for (index, extents) in [a, b].into_iter().enumerate() {
            if extents.is_empty() {
                return Err(node.inputs.error(index, "is expected to have a dimension"));
            }
        }
        if a.len() == 1 {
            left.insert(0, 1);
        }
        if b.len() == 1 {
            right.push(1);
        }
        let (a_batch, b_batch) = (&left[..left.len() - 2], &right[..right.len() - 2]);
        let mut product =
            broadcast_extents(&[a_batch, b_batch]).map_err(|error| node.with_name(&error))?;
        let mut result = product.clone();
        let (m, n) = (left[left.len() - 2], right[right.len() - 1]);
        if a.len() > 1 {
            result.push(m);
        }
        if b.len() > 1 {
            result.push(n);
        }
        product.extend([m, n]);
        Ok(Shapes {
            factors: [left, right],
            product,
            result,
        })
    }
}

/// Reshapes a tensor.
fn reshaped(tensor: &DenseHostTensor, extents: &[usize]) -> Result<DenseHostTensor, Error> {
    tensor.reshape(TensorShape::new(extents)?)
}

fn multiply(
    node: &NodeCall<'_>,
    shapes: &Shapes,
    (a, b): (&DenseHostTensor, &Rhs),
    flips: [bool; 2],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let (a, out) = (
        reshaped(a, &shapes.factors[0])?,
        reshaped(out, &shapes.product)?,
    );
    let b = b.reshaped(&shapes.factors[1])?;
    b.multiply_into(node.execution, Scale::default(), &a, flips, &out)
        .map_err(|error| node.with_name(&error))
}

/// `MatMul`, as in NumPy; the row `dot` may transpose matrices, too.
fn product(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let (_, b) = (node.inputs.dense(0)?, node.inputs.dense(1)?);
    product_by(node, &Rhs::Operand(b.clone()))
}

fn product_by(node: &NodeCall<'_>, b: &Rhs) -> Result<Outputs, Error> {
    let a = node.inputs.dense(0)?;
    let dtype = a.dtype();
    let flips = [
        node.attributes.flag("transpose_a", false)?,
        node.attributes.flag("transpose_b", false)?,
    ];
    let mut extents = [a.shape().to_dims(), b.extents()];
    // A vector has nothing to exchange.
    let flips = [0, 1].map(|index| flips[index] && extents[index].len() > 1);
    for (extents, _) in extents.iter_mut().zip(flips).filter(|(_, flips)| *flips) {
        let rank = extents.len();
        extents.swap(rank - 2, rank - 1);
    }
    let mut shapes = Shapes::of(node, &extents[0], &extents[1])?;
    // The factors lie as they are.
    for (extents, _) in shapes
        .factors
        .iter_mut()
        .zip(flips)
        .filter(|(_, flips)| *flips)
    {
        let rank = extents.len();
        extents.swap(rank - 2, rank - 1);
    }
    let out = node.output(dtype, &shapes.result)?;
    node.inputs.expect(0, Family::Reals)?;
    let chain = multiply(node, &shapes, (a, b), flips, &out)?;
    Ok(Outputs::later(out, chain))
}

/// `Gemm`: alpha a b + beta c, where c is broadcast
fn gemm(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let (_, b) = (node.inputs.dense(0)?, node.inputs.dense(1)?);
    node.inputs.extents(0, 2)?;
    node.inputs.extents(1, 2)?;
    gemm_by(node, &Rhs::Operand(b.clone()))
}

fn gemm_by(node: &NodeCall<'_>, b: &Rhs) -> Result<Outputs, Error> {
    let a = node.inputs.dense(0)?;
    let dtype = a.dtype();
    let transposed = [
        node.attributes.flag("transA", false)?,
        node.attributes.flag("transB", false)?,
    ];
    let alpha = f64::from(node.attributes.float_or("alpha", 1.0)?);
    let beta = f64::from(node.attributes.float_or("beta", 1.0)?);
    let (rows, columns) = (node.inputs.extents(0, 2)?, b.extents());
    let extents = [
        rows[usize::from(transposed[0])],
        columns[usize::from(!transposed[1])],
    ];
    let out = node.output(dtype, &extents)?;
    let execution = node.execution;
    node.inputs.expect(0, Family::Reals)?;
    let scale = |of_result: f64| Scale {
        of_product: alpha,
        of_result,
    };
    let Some(c) = node.inputs.optional_dense(2)? else {
        let chain = b
            .multiply_into(execution, scale(0.0), a, transposed, &out)
            .map_err(|error| node.with_name(&error))?;
        return Ok(Outputs::later(out, chain));
    };
    let movement = LayoutCopy::broadcast(&c.shape().to_dims(), &extents)
        .map_err(|error| node.inputs.error(2, error.message()))?;
    let chain = movement
        .run_into(execution, c, &out)
        .map_err(|error| node.inputs.error(2, error.message()))?;
    let (a, b, written, execution) = (a.clone(), b.clone(), out.clone(), execution.clone());
    let scale = scale(beta);
    let chain = chain.and_then_value(move |_| {
        let chain = b.multiply_into(&execution, scale, &a, transposed, &written);
        chain.into_value()
    });
    Ok(Outputs::later(out, chain))
}

/// Returns integers without their zero points, one or one for each place along a dimension, as `f64`, which
/// represents all their products and sums.
pub(super) fn centred(
    node: &NodeCall<'_>,
    x: &DenseHostTensor,
    zeros: Vec<f64>,
    dimension: usize,
) -> Result<(DenseHostTensor, AsyncValue<Chain>), Error> {
    let extents = x.shape().to_dims();
    let ones = vec![1.0; zeros.len().max(1)];
    let count = [ones.len()];
    let scale_extents = if ones.len() == 1 { &[][..] } else { &count[..] };
    let scaling = QuantParams::new(&extents, Some(dimension), 0, (scale_extents, ones), zeros)
        .map_err(|error| node.with_name(&error))?;
    let out = node.output(DType::F64, &extents)?;
    let chain = dequantize_into(node.execution, scaling, x, &out)
        .map_err(|error| node.with_name(&error))?;
    Ok((out, chain))
}

/// Exact sums of products, of `i32` or `f64`, and the chain that is there when they are made.
type PendingSums = (DenseHostTensor, AsyncValue<Chain>);

/// Calculates the exact product of integers without their zero points: of bytes in 32 bits, where these are enough.
fn exact(
    node: &NodeCall<'_>,
    indexes: [usize; 2],
    zeros: [usize; 2],
) -> Result<PendingSums, Error> {
    let (a, b) = (
        node.inputs.dense(indexes[0])?,
        node.inputs.dense(indexes[1])?,
    );
    let is_bytes = matches!(a.dtype(), DType::Ui8 | DType::I8);
    if is_bytes && let Some(packed) = bytes::packed(node, indexes[1], zeros[1])? {
        return bytes::sums(node, (indexes[0], zeros[0]), Arc::new(packed));
    }
    let (a_extents, b_extents) = (a.shape().to_dims(), b.shape().to_dims());
    let shapes = Shapes::of(node, &a_extents, &b_extents)?;
    // Zero points of rows on the left, of columns on the right.
    let (row, column) = (a_extents.len().saturating_sub(2), b_extents.len() - 1);
    let (a, a_chain) = centred(node, a, numbers(node, zeros[0])?, row)?;
    let (b, b_chain) = centred(node, b, numbers(node, zeros[1])?, column)?;
    let sums = node.output(DType::F64, &shapes.result)?;
    let (a, b) = (
        reshaped(&a, &shapes.factors[0])?,
        reshaped(&b, &shapes.factors[1])?,
    );
    let written = reshaped(&sums, &shapes.product)?;
    let execution = node.execution.clone();
    let chain = a_chain
        .and_then_value(move |_| b_chain)
        .and_then_value(move |_| {
            matmul_into(
                &execution,
                Scale::default(),
                [&a, &b],
                [false, false],
                &written,
            )
            .into_value()
        });
    Ok((sums, chain))
}

/// `MatMulInteger`: a product of integers, with results of 32 bits
fn integers(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let sums = exact(node, [0, 1], [2, 3])?;
    as_integers(node, sums)
}

/// Returns sums as integers of 32 bits.
fn as_integers(node: &NodeCall<'_>, (sums, chain): PendingSums) -> Result<Outputs, Error> {
    if sums.dtype() == DType::I32 {
        return Ok(Outputs::later(sums, chain));
    }
    let out = node.output(DType::I32, &sums.shape().to_dims())?;
    let (execution, written) = (node.execution.clone(), out.clone());
    let chain = chain.and_then_value(move |_| {
        cast_into(&execution, Casting::default(), &sums, &written).into_value()
    });
    Ok(Outputs::later(out, chain))
}

/// `QLinearMatMul`: a product of quantised numbers
fn quantized(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let sums = exact(node, [0, 3], [2, 5])?;
    as_quantized(node, sums)
}

/// Quantises sums.
fn as_quantized(node: &NodeCall<'_>, (sums, chain): PendingSums) -> Result<Outputs, Error> {
    let extents = sums.shape().to_dims();
    let [a, b] = [numbers(node, 1)?, numbers(node, 4)?];
    let (y, zeros) = (node.inputs.number(6)?, numbers(node, 7)?);
    let dtype = match node.inputs.optional_dense(7)? {
        Some(zero) => zero.dtype(),
        None => node.inputs.dense(0)?.dtype(),
    };
    let rank = extents.len();
    let one = |n: usize| if n == 1 { Vec::new() } else { vec![n] };
    let (scales, scale_extents, dimension, block): (Vec<f64>, Vec<usize>, usize, usize) =
        match (a.len(), b.len()) {
            (1, n) => (
                b.iter().map(|b| y / (a[0] * b)).collect(),
                one(n),
                rank.saturating_sub(1),
                0,
            ),
            (m, 1) => (
                a.iter().map(|a| y / (a * b[0])).collect(),
                one(m),
                rank.saturating_sub(2),
                0,
            ),
            (m, n) if rank == 2 && extents[..] == [m, n] => {
                let each = a.iter().flat_map(|a| b.iter().map(move |b| y / (a * b)));
                (each.collect(), extents.to_vec(), 1, 1)
            }
            (m, n) => {
                let message =
                    format_args!("{m} and {n} scales don't fit a result of extents {extents:?}");
                return Err(node.error(message));
            }
        };
    let zeros = vec![zeros.first().copied().unwrap_or(0.0); scales.len()];
    let scaling = QuantParams::new(
        &extents,
        Some(dimension),
        block,
        (&scale_extents, scales),
        zeros,
    )
    .map_err(|error| node.with_name(&error))?;
    let out = node.output(dtype, &extents)?;
    let (execution, written) = (node.execution.clone(), out.clone());
    let chain = chain.and_then_value(move |_| {
        let precision = (DType::F64, Casting::default());
        quantize_into(&execution, scaling, precision, &sums, &written).into_value()
    });
    Ok(Outputs::later(out, chain))
}

/// `Det`: the determinant of each matrix
fn determinant(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let (dtype, extents) = (x.dtype(), x.shape().to_dims());
    let Some((batch, [m, n])) = extents.split_last_chunk::<2>() else {
        return Err(node
            .inputs
            .error(0, "is expected to have two dimensions or more"));
    };
    if m != n {
        return Err(node
            .inputs
            .error(0, format_args!("is no tensor of squares: {extents:?}")));
    }
    let out = node.output(dtype, batch)?;
    node.inputs.expect(0, Family::Floats)?;
    let chain = determinants_into(node.execution, x, &out)?;
    Ok(Outputs::later(out, chain))
}
