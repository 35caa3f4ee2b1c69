//! Functions of elements: `tf.AddV2`, `tf.Relu` and the like.
//!
//! Operands of two are broadcast. A result is made in the memory of an operand that was given for good, if that is of
//! its type and shape and nobody else holds it. Two tensors whose elements are all the same give another one.

use smallvec::smallvec;
use tfrt_host::{DType, Error};
use tfrt_tensor::math::cast::{Casting, cast_into, is_castable};
use tfrt_tensor::math::elementwise::{self as math, Binary, Unary, broadcast_extents};
use tfrt_tensor::{
    Bool, Element, ScalarHostTensor, Tensor, TensorMetadata, TensorShape, with_floating,
    with_number, with_real,
};

use super::elements::Elements;
use crate::call::Call;
use crate::definition::{
    AttrKind, Formats, MetadataCall, OpDefinition, OpRegistry, Outputs, ResultMetadata, unsupported,
};

mod mixed;
mod short;

/// `two!(Add, with_number, call)` calculates a function of two operands, whatever number their elements are.
macro_rules! two {
    ($function:ty, $with:ident, $call:expr) => {{
        let call: &mut Call<'_> = $call;
        let dtype = call.tensor(0)?.metadata().dtype;
        $with!(dtype, T => of_two::<$function, T>(call, |call| call.binary::<$function, T>()), else
            Err(unsupported(call.op(), dtype)))
    }};
}
pub(super) use two;

/// `truth!(Less, call)` calculates whether something is true of two real numbers.
macro_rules! truth {
    ($function:ty, $call:expr) => {{
        let call: &mut Call<'_> = $call;
        let dtype = call.tensor(0)?.metadata().dtype;
        with_real!(dtype, T => of_two::<$function, T>(call, |call| call.binary_to::<$function, T>()), else
            Err(unsupported(call.op(), dtype)))
    }};
}

/// `one!(Exp, with_floating, call)` calculates a function of an operand, whatever number its elements are.
macro_rules! one {
    ($function:ty, $with:ident, $call:expr) => {{
        let call: &mut Call<'_> = $call;
        let dtype = call.dense(0)?.dtype();
        $with!(dtype, T => call.unary::<$function, T>(), else Err(unsupported(call.op(), dtype)))
    }};
}
pub(super) use one;

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
            binary_op("tf.AddV2", Numbers, None, |call| two!(math::Add, with_number, call))
                .summary("The sum, broadcast; integers wrap around.")
                .short(short::binary::<math::Add>),
        )
        .add(
            binary_op("tf.Sub", Numbers, None, |call| two!(math::Subtract, with_number, call))
                .summary("The difference, broadcast; integers wrap around.")
                .short(short::binary::<math::Subtract>),
        )
        .add(
            binary_op("tf.Mul", Numbers, None, |call| two!(math::Multiply, with_number, call))
                .summary("The product, broadcast; integers wrap around.")
                .short(short::binary::<math::Multiply>),
        )
        .add(
            binary_op("tf.RealDiv", Numbers, None, |call| two!(math::Divide, with_number, call))
                .summary("The quotient, broadcast; integers are rounded towards 0, and give 0 where the divisor is 0.")
                .short(short::binary::<math::Divide>),
        )
        .add(
            binary_op("tf.Maximum", Reals, None, |call| two!(math::Maximum, with_real, call))
                .summary("The larger of two elements, broadcast.")
                .short(short::binary::<math::Maximum>),
        )
        .add(
            binary_op("tf.Minimum", Reals, None, |call| two!(math::Minimum, with_real, call))
                .summary("The smaller of two elements, broadcast.")
                .short(short::binary::<math::Minimum>),
        );
}

fn register_comparisons(registry: &mut OpRegistry) {
    use Elements::{Reals, RealsAndTruth};
    let truth = Some(DType::I1);
    registry
        .add(
            binary_op("tf.Less", Reals, truth, |call| truth!(math::Less, call))
                .summary("Whether the first of two elements is less, broadcast.")
                .short(short::comparison::<math::Less>),
        )
        .add(
            binary_op("tf.Greater", Reals, truth, |call| {
                truth!(math::Greater, call)
            })
            .summary("Whether the first of two elements is greater, broadcast.")
            .short(short::comparison::<math::Greater>),
        )
        .add(
            binary_op("tf.Equal", RealsAndTruth, truth, equal)
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
            unary_op("tf.Relu", Reals, 1, |call| {
                one!(math::Relu, with_real, call)
            })
            .summary("The larger of each element and 0.")
            .short(short::unary::<math::Relu>),
        )
        .add(
            unary_op("tf.Neg", Numbers, 1, |call| {
                one!(math::Negate, with_number, call)
            })
            .summary("Each element with the other sign; integers wrap around.")
            .short(short::unary::<math::Negate>),
        )
        .add(
            unary_op("tf.Square", Numbers, 1, |call| {
                one!(math::Square, with_number, call)
            })
            .summary("The square of each element; integers wrap around.")
            .short(short::unary::<math::Square>),
        )
        .add(
            float_op::<math::Sqrt>("tf.Sqrt", |call| one!(math::Sqrt, with_floating, call))
                .summary("The square root of each element."),
        )
        .add(
            float_op::<math::Rsqrt>("tf.Rsqrt", |call| one!(math::Rsqrt, with_floating, call))
                .summary("1 / the square root of each element."),
        )
        .add(
            float_op::<math::Exp>("tf.Exp", |call| one!(math::Exp, with_floating, call))
                .summary("e to the power of each element."),
        )
        .add(
            float_op::<math::Log>("tf.Log", |call| one!(math::Log, with_floating, call))
                .summary("The natural logarithm of each element."),
        )
        .add(
            float_op::<math::Log1p>("tf.Log1p", |call| one!(math::Log1p, with_floating, call))
                .summary("The natural logarithm of 1 + each element."),
        )
        .add(
            float_op::<math::Sigmoid>("tf.Sigmoid", |call| {
                one!(math::Sigmoid, with_floating, call)
            })
            .summary("1 / (1 + e^-x) of each element."),
        )
        .add(
            float_op::<math::Tanh>("tf.Tanh", |call| one!(math::Tanh, with_floating, call))
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

/// An operation of each element, which costs so many additions.
fn unary_op(
    name: &'static str,
    elements: Elements,
    cost: usize,
    dispatch: impl Fn(&mut Call<'_>) -> Result<Outputs, Error> + Send + Sync + 'static,
) -> OpDefinition {
    typed(OpDefinition::new(name, dispatch))
        .elements(elements.text())
        .inputs(1)
        .metadata(move |call| same_as_first(call, elements))
        .cost(move |_, results| {
            let n = results.first().and_then(|result| result.shape.n_elements());
            n.unwrap_or(usize::MAX).saturating_mul(cost + 1) as u64
        })
        .pure()
}

/// An operation of each element, which is a float.
fn float_op<F: Unary<f32, Output = f32> + Unary<f64, Output = f64>>(
    name: &'static str,
    dispatch: impl Fn(&mut Call<'_>) -> Result<Outputs, Error> + Send + Sync + 'static,
) -> OpDefinition {
    let cost = <F as Unary<f32>>::COST;
    unary_op(name, Elements::Floats, cost, dispatch).short(short::float::<F>)
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

/// Calculates a function of two operands: of dense ones by `dense`, of two values as a value.
pub(super) fn of_two<F: Binary<T>, T: Element>(
    call: &mut Call<'_>,
    dense: fn(&mut Call<'_>) -> Result<Outputs, Error>,
) -> Result<Outputs, Error> {
    match (call.tensor(0)?, call.tensor(1)?) {
        (Tensor::Dense(_), Tensor::Dense(_)) => dense(call),
        (Tensor::Scalar(x), Tensor::Scalar(y)) => {
            let value = F::apply(x.value()?, y.value()?);
            let shape = call.result(0)?.shape.clone();
            Ok(smallvec![ScalarHostTensor::new(shape, value).into()])
        }
        _ => mixed::with_dense(call, dense),
    }
}

fn equal(call: &mut Call<'_>) -> Result<Outputs, Error> {
    match call.tensor(0)?.metadata().dtype {
        DType::I1 => of_two::<math::Same, Bool>(call, |call| call.binary_to::<math::Same, Bool>()),
        _ => truth!(math::Equal, call),
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
