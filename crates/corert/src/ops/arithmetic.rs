//! Functions of elements: `tf.AddV2`, `tf.Relu` and the like.
//!
//! Operands of two are broadcast. A result is made in the memory of an operand that was given for good, if that is of
//! its type and shape and nobody else holds it. Two tensors whose elements are all the same give another one.

use smallvec::smallvec;
use tfrt_host::{DType, Error};
use tfrt_tensor::math::cast::{Casting, cast_into, is_castable};
use tfrt_tensor::math::elementwise::{self as math, Unary, broadcast_extents};
use tfrt_tensor::math::pointwise::{BinaryFunction, Order, UnaryFunction};
use tfrt_tensor::{Tensor, TensorMetadata, TensorShape};

use super::elements::Elements;
use crate::call::Call;
use crate::definition::{
    AttrKind, Formats, MetadataCall, OpDefinition, OpRegistry, Outputs, ResultMetadata, unsupported,
};

mod mixed;
mod short;

pub(super) fn register(registry: &mut OpRegistry) {
    register_binary(registry);
    register_comparisons(registry);
    register_unary(registry);
    registry.add(
        OpDefinition::new("tf.Cast", cast)
            .summary("The elements as another type: floats to integers towards 0, to truth what is not 0, all else to nearest.")
            .elements("all but complex ones and strings")
            .inputs(1)
            .attribute("DstT", AttrKind::Type, "the type of the result")
            .attribute("Truncate", AttrKind::Bool, "false")
            .attribute("SrcT", AttrKind::Type, "the type of the input, which counts itself")
            .metadata(cast_metadata)
            .pure(),
    );
}

fn register_binary(registry: &mut OpRegistry) {
    use Elements::{Numbers, Reals};
    registry
        .add(
            binary_op("tf.AddV2", Numbers, None, |call| two(call, BinaryFunction::Add))
                .summary("The sum, broadcast; integers wrap around.")
                .short(short::binary::<math::Add>),
        )
        .add(
            binary_op("tf.Sub", Numbers, None, |call| two(call, BinaryFunction::Subtract))
                .summary("The difference, broadcast; integers wrap around.")
                .short(short::binary::<math::Subtract>),
        )
        .add(
            binary_op("tf.Mul", Numbers, None, |call| two(call, BinaryFunction::Multiply))
                .summary("The product, broadcast; integers wrap around.")
                .short(short::binary::<math::Multiply>),
        )
        .add(
            binary_op("tf.RealDiv", Numbers, None, |call| two(call, BinaryFunction::Divide))
                .summary("The quotient, broadcast; integers are rounded towards 0, and give 0 where the divisor is 0.")
                .short(short::binary::<math::Divide>),
        )
        .add(
            binary_op("tf.Maximum", Reals, None, |call| two(call, BinaryFunction::Maximum))
                .summary("The larger of two elements, broadcast.")
                .short(short::binary::<math::Maximum>),
        )
        .add(
            binary_op("tf.Minimum", Reals, None, |call| two(call, BinaryFunction::Minimum))
                .summary("The smaller of two elements, broadcast.")
                .short(short::binary::<math::Minimum>),
        );
}

fn register_comparisons(registry: &mut OpRegistry) {
    use Elements::{Reals, RealsAndTruth};
    let truth = Some(DType::I1);
    registry
        .add(
            binary_op("tf.Less", Reals, truth, |call| {
                two(call, BinaryFunction::Less)
            })
            .summary("Whether the first of two elements is less, broadcast.")
            .short(short::comparison::<math::Less>),
        )
        .add(
            binary_op("tf.Greater", Reals, truth, |call| {
                two(call, BinaryFunction::Greater)
            })
            .summary("Whether the first of two elements is greater, broadcast.")
            .short(short::comparison::<math::Greater>),
        )
        .add(
            binary_op("tf.Equal", RealsAndTruth, truth, |call| {
                two(call, BinaryFunction::Equal)
            })
            .summary("Whether two elements are the same, broadcast.")
            .attribute("incompatible_shape_error", AttrKind::Bool, "true")
            .metadata(move |call| {
                expect_bool(call, "incompatible_shape_error", true)?;
                broadcast_metadata(call, RealsAndTruth, truth)
            })
            .short(short::comparison::<math::Equal>),
        );
}

fn register_unary(registry: &mut OpRegistry) {
    use Elements::{Numbers, Reals};
    registry
        .add(
            unary_op("tf.Relu", Reals, UnaryFunction::Relu)
                .summary("The larger of each element and 0.")
                .short(short::unary::<math::Relu>),
        )
        .add(
            unary_op("tf.Neg", Numbers, UnaryFunction::Negate)
                .summary("Each element with the other sign; integers wrap around.")
                .short(short::unary::<math::Negate>),
        )
        .add(
            unary_op("tf.Square", Numbers, UnaryFunction::Square)
                .summary("The square of each element; integers wrap around.")
                .short(short::unary::<math::Square>),
        )
        .add(
            float_op::<math::Sqrt>("tf.Sqrt", UnaryFunction::Sqrt)
                .summary("The square root of each element."),
        )
        .add(
            float_op::<math::Rsqrt>("tf.Rsqrt", UnaryFunction::Rsqrt)
                .summary("1 / the square root of each element."),
        )
        .add(
            float_op::<math::Exp>("tf.Exp", UnaryFunction::Exp)
                .summary("e to the power of each element."),
        )
        .add(
            float_op::<math::Log>("tf.Log", UnaryFunction::Log)
                .summary("The natural logarithm of each element."),
        )
        .add(
            float_op::<math::Log1p>("tf.Log1p", UnaryFunction::Log1p)
                .summary("The natural logarithm of 1 + each element."),
        )
        .add(
            float_op::<math::Sigmoid>("tf.Sigmoid", UnaryFunction::Sigmoid)
                .summary("1 / (1 + e^-x) of each element."),
        )
        .add(
            float_op::<math::Tanh>("tf.Tanh", UnaryFunction::Tanh)
                .summary("The hyperbolic tangent of each element."),
        );
}

/// An operation of two operands that are broadcast; its result is of their type, or of `result`.
fn binary_op(
    name: &'static str,
    elements: Elements,
    result: Option<DType>,
    dispatch: impl Fn(&mut Call<'_>) -> Result<Outputs, Error> + Send + Sync + 'static,
) -> OpDefinition {
    typed(OpDefinition::new(name, dispatch))
        .elements(elements.text())
        .inputs(2)
        .formats(Formats::SCALAR)
        .metadata(move |call| broadcast_metadata(call, elements, result))
        .pure()
}

/// An operation of each element.
fn unary_op(name: &'static str, elements: Elements, function: UnaryFunction) -> OpDefinition {
    typed(OpDefinition::new(name, move |call| call.unary(function)))
        .elements(elements.text())
        .inputs(1)
        .metadata(move |call| same_as_first(call, elements))
        .cost(move |_, results| {
            let n = results.first().and_then(|result| result.shape.n_elements());
            n.unwrap_or(usize::MAX).saturating_mul(function.cost() + 1) as u64
        })
        .pure()
}

/// An operation of each element, which is a float.
fn float_op<F: Unary<f32, Output = f32> + Unary<f64, Output = f64>>(
    name: &'static str,
    function: UnaryFunction,
) -> OpDefinition {
    unary_op(name, Elements::Floats, function).short(short::float::<F>)
}

/// Takes the attribute that graphs of TensorFlow give their operations.
pub(super) fn typed(definition: OpDefinition) -> OpDefinition {
    definition.attribute(
        "T",
        AttrKind::Type,
        "the type of the inputs, who count themselves",
    )
}

/// The metadata function of operations whose result is like the first input, which has elements of these types.
pub(super) fn same_as_first(
    call: &MetadataCall<'_>,
    elements: Elements,
) -> Result<ResultMetadata, Error> {
    let [first, ..] = call.inputs else {
        let op = call.op;
        return Err(Error::invalid_argument(format!("{op} expects an input")));
    };
    elements.expect(call.op, first.dtype)?;
    Ok(smallvec![TensorMetadata::clone(first)])
}

/// The two inputs, which are of one type.
pub(super) fn two_of_one_type<'a>(
    call: &MetadataCall<'a>,
    elements: Elements,
) -> Result<[&'a TensorMetadata; 2], Error> {
    let (op, &[x, y]) = (call.op, call.inputs) else {
        let op = call.op;
        return Err(Error::invalid_argument(format!("{op} expects 2 inputs")));
    };
    if x.dtype != y.dtype {
        let message = format!("{op}: incompatible dtypes: {x} and {y}");
        return Err(Error::invalid_argument(message));
    }
    elements.expect(op, x.dtype)?;
    Ok([x, y])
}

/// The result has the shape that both inputs are broadcast to.
fn broadcast_metadata(
    call: &MetadataCall<'_>,
    elements: Elements,
    result: Option<DType>,
) -> Result<ResultMetadata, Error> {
    let [x, y] = two_of_one_type(call, elements)?;
    let shape = match x.shape == y.shape {
        true => x.shape.clone(),
        false => TensorShape::new(&broadcast_extents(&[
            &x.shape.to_dims(),
            &y.shape.to_dims(),
        ])?)?,
    };
    Ok(smallvec![TensorMetadata::new(
        result.unwrap_or(x.dtype),
        shape
    )])
}

/// Calculates a function of two operands, dense or not: of two values as a value.
pub(super) fn two(call: &mut Call<'_>, function: BinaryFunction) -> Result<Outputs, Error> {
    match (call.tensor(0)?, call.tensor(1)?) {
        (Tensor::Dense(_), Tensor::Dense(_)) => call.binary(function, Order::TargetFirst),
        (Tensor::Scalar(x), Tensor::Scalar(y)) => {
            let value = function.of_scalars(x, y, &call.result(0)?.shape)?;
            Ok(smallvec![value.into()])
        }
        _ => mixed::with_dense(call, |call| call.binary(function, Order::TargetFirst)),
    }
}

/// Tells whether an attribute is what it is if it is not stated.
fn expect_bool(call: &MetadataCall<'_>, name: &str, expected: bool) -> Result<(), Error> {
    match call.attrs.bool(name)? {
        Some(found) if found != expected => Err(Error::invalid_argument(format!(
            "{}: expected attribute '{name}' to be {expected}, found {found}",
            call.op
        ))),
        _ => Ok(()),
    }
}

fn cast_metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let [x] = call.inputs else {
        let op = call.op;
        return Err(Error::invalid_argument(format!("{op} expects 1 input")));
    };
    expect_bool(call, "Truncate", false)?;
    let dtype = call.attrs.dtype("DstT")?;
    let dtype = dtype.ok_or_else(|| call.missing("DstT"))?;
    for dtype in [x.dtype, dtype] {
        if !is_castable(dtype) {
            return Err(unsupported(call.op, dtype));
        }
    }
    Ok(smallvec![TensorMetadata::new(dtype, x.shape.clone())])
}

fn cast(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let x = call.dense(0)?;
    if x.dtype() == call.result(0)?.dtype {
        return Ok(smallvec![x.clone().into()]);
    }
    let out = call.output(0)?;
    let chain = cast_into(call.execution(), Casting::default(), x, &out)?;
    call.made(out, chain)
}
