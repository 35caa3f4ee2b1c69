//! Products of matrices: `tf.MatMul`, `tf._FusedMatMul`; `tf.BiasAdd`.

use smallvec::smallvec;
use tfrt_host::{AsyncValue, Chain, Error};
use tfrt_tensor::math::Family;
use tfrt_tensor::math::matmul::{Scale, matmul_into};
use tfrt_tensor::math::pointwise::{BinaryFunction, Operand, Order, Program, Step, UnaryFunction};
use tfrt_tensor::{DenseHostTensor, TensorMetadata, TensorShape};

use super::arithmetic::{two_of_one_type, typed};
use super::elements::Elements;
use super::windows::Attributes;
use crate::attributes::OpAttrsRef;
use crate::call::Call;
use crate::definition::{
    AttrKind, MetadataCall, OpDefinition, OpRegistry, Outputs, ResultMetadata, expect_family,
};

pub(super) fn register(registry: &mut OpRegistry) {
    registry
        .add(
            typed(product_op("tf.MatMul"))
                .summary("The product of two matrices."),
        )
        .add(
            typed(transposing(OpDefinition::new("tf._FusedMatMul", fused)))
                .summary("The product of two matrices, to each row of which a vector is added, then a function of each element.")
                .elements("f16, bf16, f32, f64; integers without Elu")
                .inputs_from(2..=usize::MAX)
                .attribute("fused_ops", AttrKind::Texts, "BiasAdd, or BiasAdd and Relu, Relu6 or Elu")
                .attribute("num_args", AttrKind::Integer, "the number of inputs beside the matrices, who count themselves")
                .attribute("epsilon", AttrKind::Float, "of no use")
                .metadata(fused_metadata)
                .cost(product_cost)
                .pure(),
        )
        .add(
            typed(OpDefinition::new("tf.BiasAdd", add_bias))
            .summary("A tensor, to whose last dimension a vector is added.")
            .elements(Elements::Numbers.text())
            .inputs(2)
            .attribute("data_format", AttrKind::Text, "NHWC: channels are the last dimension")
            .metadata(bias_metadata)
            .pure(),
        );
}

/// The product of two matrices under a name.
pub(super) fn product_op(name: &'static str) -> OpDefinition {
    transposing(OpDefinition::new(name, product))
        .elements(Elements::Numbers.text())
        .inputs(2)
        .metadata(product_metadata)
        .cost(product_cost)
        .pure()
}

fn transposing(definition: OpDefinition) -> OpDefinition {
    definition
        .attribute(
            "transpose_a",
            AttrKind::Bool,
            "whether the first matrix is transposed first; false",
        )
        .attribute(
            "transpose_b",
            AttrKind::Bool,
            "whether the second matrix is transposed first; false",
        )
}

/// Which of the factors are transposed first.
fn transposed(attrs: OpAttrsRef<'_>) -> Result<[bool; 2], Error> {
    Ok([
        attrs.bool("transpose_a")?.unwrap_or(false),
        attrs.bool("transpose_b")?.unwrap_or(false),
    ])
}

fn product_metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let [a, b, ..] = call.inputs else {
        let op = call.op;
        return Err(Error::invalid_argument(format!("{op} expects 2 inputs")));
    };
    if a.dtype != b.dtype {
        let message = format!("incompatible dtypes for MatMul: {a} and {b}");
        return Err(Error::invalid_argument(message));
    }
    Elements::Numbers.expect("matmul", a.dtype)?;
    for (index, factor) in [a, b].into_iter().enumerate() {
        if factor.shape.rank() != 2 {
            let shape = &factor.shape;
            return Err(Error::invalid_argument(format!(
                "argument {index} of matmul op is not a rank-2 tensor: {shape}"
            )));
        }
    }
    let transposed = transposed(call.attrs)?;
    let extents = |factor: &TensorMetadata, is_transposed: bool| {
        let [rows, columns] = [0, 1].map(|index| factor.shape.extent(index).unwrap_or(0));
        if is_transposed {
            [columns, rows]
        } else {
            [rows, columns]
        }
    };
    let ([m, k], [b_k, n]) = (extents(a, transposed[0]), extents(b, transposed[1]));
    if k != b_k {
        let how = |is_transposed: bool| if is_transposed { " transposed" } else { "" };
        return Err(Error::invalid_argument(format!(
            "matmul arguments have incompatible shapes: {}{} and {}{}",
            a.shape,
            how(transposed[0]),
            b.shape,
            how(transposed[1])
        )));
    }
    Ok(smallvec![TensorMetadata::new(
        a.dtype,
        TensorShape::new(&[m, n])?
    )])
}

/// Eight products and sums are one instruction.
fn product_cost(inputs: &[&TensorMetadata], results: &[TensorMetadata]) -> u64 {
    let size = |metadata: &TensorMetadata| metadata.shape.n_elements().unwrap_or(usize::MAX) as u64;
    let (Some(a), Some(out)) = (inputs.first(), results.first()) else {
        return 0;
    };
    let rows = out.shape.extent(0).unwrap_or(1).max(1) as u64;
    let depth = size(a) / rows;
    size(out).saturating_mul(depth) / 8
}

/// Multiplies the first two inputs into `out`.
fn multiply(call: &Call<'_>, out: &DenseHostTensor) -> Result<AsyncValue<Chain>, Error> {
    let factors = [call.dense(0)?, call.dense(1)?];
    let transposed = transposed(call.attrs())?;
    matmul_into(call.execution(), Scale::default(), factors, transposed, out)
}

fn product(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let out = call.output(0)?;
    expect_family("matmul", Family::Numbers, out.dtype())?;
    let chain = multiply(call, &out)?;
    call.made(out, chain)
}

/// What becomes of a product and its bias.
#[derive(Clone, Copy, Debug)]
enum Fusion {
    Bias,
    BiasRelu,
    BiasRelu6,
    BiasElu,
}

impl Fusion {
    fn of(attrs: OpAttrsRef<'_>) -> Result<Fusion, Error> {
        let names = attrs.texts("fused_ops")?.unwrap_or_default();
        match &names[..] {
            [] => Err(Error::invalid_argument(
                "FusedMatMul must specify fused operations",
            )),
            ["BiasAdd"] => Ok(Fusion::Bias),
            ["BiasAdd", "Relu"] => Ok(Fusion::BiasRelu),
            ["BiasAdd", "Relu6"] => Ok(Fusion::BiasRelu6),
            ["BiasAdd", "Elu"] => Ok(Fusion::BiasElu),
            names => {
                let names = names.join(", ");
                let message = format!("Unsupported fusion type: {}", names.escape_debug());
                let note = "fusions are BiasAdd, and BiasAdd followed by Relu, Relu6 or Elu";
                Err(Error::invalid_argument(message).with_note(note))
            }
        }
    }
}

fn fused_metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let fusion = Fusion::of(call.attrs)?;
    let results = product_metadata(call)?;
    let (op, [_, _, bias]) = (call.op, call.inputs) else {
        let (op, found) = (call.op, call.inputs.len());
        return Err(Error::invalid_argument(format!(
            "{op} expects two matrices and a bias, found {found} inputs"
        )));
    };
    let product = &results[0];
    match fusion {
        Fusion::BiasElu => Elements::Floats.expect(op, product.dtype)?,
        _ => Elements::Reals.expect(op, product.dtype)?,
    }
    expect_vector(bias, product)?;
    Ok(results)
}

/// Tells whether a bias can be added to the last dimension of a tensor.
fn expect_vector(bias: &TensorMetadata, of: &TensorMetadata) -> Result<(), Error> {
    if bias.dtype != of.dtype {
        let message = format!("Bias tensor must be of the type of the matrices: {bias} and {of}");
        return Err(Error::invalid_argument(message));
    }
    if bias.shape.rank() != 1 {
        let shape = &bias.shape;
        let message = format!("Bias tensor must a vector: its shape is {shape}");
        return Err(Error::invalid_argument(message));
    }
    if bias.shape.extents().last() != of.shape.extents().last() {
        let (bias, of) = (&bias.shape, &of.shape);
        return Err(Error::invalid_argument(format!(
            "the number of bias elements must match the last dimension: {bias} and {of}"
        )));
    }
    Ok(())
}

/// The program that adds a bias, input 1, to a product, and calculates what is to become of the sum.
fn finishing(fusion: Fusion) -> Result<Program, Error> {
    let add = Step::Binary(BinaryFunction::Add, [0, 1].map(Operand::Input));
    let then = match fusion {
        Fusion::Bias => return Program::new(2, &[add]),
        Fusion::BiasRelu => UnaryFunction::Relu,
        Fusion::BiasRelu6 => UnaryFunction::Relu6,
        Fusion::BiasElu => UnaryFunction::Elu,
    };
    Program::new(2, &[add, Step::Unary(then, Operand::Step(0))])
}

fn fused(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let finish = finishing(Fusion::of(call.attrs())?)?;
    let (out, bias) = (call.output(0)?, call.dense(2)?.clone());
    let (written, execution) = (out.clone(), call.execution().clone());
    let product = multiply(call, &out)?;
    let chain = product.and_then_value(move |_| {
        let finished = finish.run_in_place(&execution, &written, &[&bias]);
        finished.unwrap_or_else(AsyncValue::from_error)
    });
    call.made(out, chain)
}

fn bias_metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    Attributes::from(call).expect_channels_last()?;
    let [x, bias] = two_of_one_type(call, Elements::Numbers)?;
    if x.shape.rank() < 2 {
        let (op, shape) = (call.op, &x.shape);
        return Err(Error::invalid_argument(format!(
            "{op} expects two dimensions or more, found {shape}"
        )));
    }
    if bias.shape.rank() != 1 {
        let shape = &bias.shape;
        return Err(Error::invalid_argument(format!(
            "bias must be 1-D, found {shape}"
        )));
    }
    expect_vector(bias, x)?;
    Ok(smallvec![x.clone()])
}

fn add_bias(call: &mut Call<'_>) -> Result<Outputs, Error> {
    call.binary(BinaryFunction::Add, Order::TargetFirst)
}
