//! The operations of `tfrt_test`, which tests of the original runtime call.

use std::num::NonZeroUsize;

use smallvec::smallvec;
use tfrt_host::{AsyncValue, DType, Error};
use tfrt_tensor::math::Family;
use tfrt_tensor::math::cast::{Casting, cast_into};
use tfrt_tensor::math::movement::Movement;
use tfrt_tensor::math::number::Number;
use tfrt_tensor::math::parallel;
use tfrt_tensor::math::pointwise::{BinaryFunction, UnaryFunction};
use tfrt_tensor::math::reduce::{Reduction, reduce_into};
use tfrt_tensor::{DenseHostTensor, Tensor, TensorMetadata, with_number};

use super::arithmetic::{same_as_first, two};
use super::axes::{positions, without};
use super::elements::Elements;
use super::product::product_op;
use crate::attributes::{OpAttrsRef, missing};
use crate::call::Call;
use crate::definition::{
    AttrKind, Formats, MetadataCall, OpDefinition, OpRegistry, Output, Outputs, ResultMetadata,
    expect_family, same_metadata, unsupported,
};

mod create;

/// What of an operation for tests one must know beside its name.
fn test_op(
    name: &'static str,
    summary: &'static str,
    n_inputs: usize,
    dispatch: impl Fn(&mut Call<'_>) -> Result<Outputs, Error> + Send + Sync + 'static,
) -> OpDefinition {
    let definition = OpDefinition::new(name, dispatch).summary(summary);
    definition.inputs(n_inputs).no_attributes()
}

pub(super) fn register(registry: &mut OpRegistry) {
    create::register(registry);
    register_arithmetic(registry);
    register_shapes(registry);
    register_effects(registry);
    register_asynchrony(registry);
}

fn register_arithmetic(registry: &mut OpRegistry) {
    let add =
        |name: &'static str, summary, dispatch: fn(&mut Call<'_>) -> Result<Outputs, Error>| {
            let definition = test_op(name, summary, 2, dispatch);
            definition
                .elements(Elements::Numbers.text())
                .metadata(sum_metadata)
                .pure()
        };
    registry
        .add(
            add(
                "tfrt_test.add",
                "The sum of two tensors of one shape.",
                |call| two(call, BinaryFunction::Add),
            )
            .formats(Formats::SCALAR),
        )
        .add(add(
            "tfrt_test.add.denseonly",
            "The sum of two dense tensors of one shape.",
            |call| two(call, BinaryFunction::Add),
        ))
        .add(add(
            "tfrt_test.add.denseonly2",
            "The same, as a tensor that is to come.",
            sum_to_come,
        ))
        .add(add(
            "tfrt_test.add.denseonly3",
            "The same, element by element on the queue's workers.",
            sum_in_parts,
        ))
        .add(product_op("tfrt_test.matmul").summary("The product of two matrices."))
        .add(
            test_op(
                "tfrt_test.relu",
                "The larger of each element and 0.",
                1,
                |call| call.unary(UnaryFunction::Relu),
            )
            .elements(Elements::Reals.text())
            .metadata(|call| same_as_first(call, Elements::Reals))
            .pure(),
        )
        .add(
            test_op(
                "tfrt_test.equal",
                "1 where two tensors of one shape have the same element, else 0.",
                2,
                |call| two(call, BinaryFunction::EqualAsNumber),
            )
            .elements(Elements::Reals.text())
            .metadata(equal_metadata)
            .pure(),
        );
}

fn register_shapes(registry: &mut OpRegistry) {
    let axis = "the dimension";
    registry
        .add(
            test_op(
                "tfrt_test.broadcast",
                "A vector as each row of a matrix.",
                1,
                broadcast,
            )
            .elements("all but strings")
            .attribute("shape", AttrKind::Shape, "the shape of the matrix")
            .metadata(broadcast_metadata)
            .pure(),
        )
        .add(
            test_op("tfrt_test.cast", "The elements as another type.", 1, cast)
                .elements(Elements::RealsAndTruth.text())
                .attribute("type", AttrKind::Text, "f32 or f16")
                .metadata(cast_metadata)
                .pure(),
        )
        .add(
            test_op(
                "tfrt_test.argmax",
                "Where in each row the largest element is, as i32.",
                1,
                |call| positions(call, 1, DType::I32),
            )
            .elements(Elements::Reals.text())
            .attribute("axis", AttrKind::Integer, axis)
            .metadata(|call| {
                axis_metadata(call, 1, "unsupported axis for argmax", Some(DType::I32))
            })
            .pure(),
        )
        .add(
            test_op(
                "tfrt_test.reduce_mean",
                "The means of columns; of integers, rounded towards 0.",
                1,
                mean,
            )
            .elements(Elements::Reals.text())
            .attribute("axis", AttrKind::Integer, axis)
            .metadata(|call| axis_metadata(call, 0, "unsupported axis for reduce_mean", None))
            .pure(),
        )
        .add(
            test_op(
                "tfrt_test.odd_collector",
                "The odd ones of a vector of integers.",
                1,
                odd_elements,
            )
            .elements("i32")
            .pure(),
        );
}

fn register_effects(registry: &mut OpRegistry) {
    let scalar_and_sparse = Formats {
        string: false,
        ..Formats::ALL
    };
    registry
        .add(
            test_op("tfrt_test.print", "Prints a tensor.", 1, |call| {
                let text = call.tensor(0)?.to_text()?;
                call.execution().host().output().print(text);
                Ok(Outputs::new())
            })
            .elements("all")
            .results(0)
            .formats(Formats::ALL),
        )
        .add(
            test_op(
                "tfrt_test.print_address",
                "Prints where the elements of a tensor lie.",
                1,
                |call| {
                    let output = call.execution().host().output();
                    match call.tensor(0)? {
                        Tensor::Dense(dense) => {
                            let address = dense.buffer().address();
                            output.print(format_args!("DenseHostTensor: buffer={address:#x}"));
                        }
                        _ => output.print("Unsupported tensor type"),
                    }
                    Ok(Outputs::new())
                },
            )
            .elements("all but strings")
            .results(0)
            .formats(scalar_and_sparse),
        );
}

fn register_asynchrony(registry: &mut OpRegistry) {
    let identity = |call: &mut Call<'_>| same_tensor(call, 0);
    let last = |call: &mut Call<'_>| same_tensor(call, 1.min(call.n_inputs() - 1));
    let last_metadata = |call: &MetadataCall<'_>| match call.inputs {
        [_, second, ..] => Ok(smallvec![TensorMetadata::clone(second)]),
        _ => same_metadata(call),
    };
    registry
        .add(
            test_op("tfrt_test.identity", "The tensor itself.", 1, identity)
                .elements("all")
                .formats(Formats::ALL)
                .pure(),
        )
        .add(
            test_op(
                "tfrt_test.identity_dense_only",
                "The tensor itself, which is dense.",
                1,
                identity,
            )
            .elements("all but strings")
            .pure(),
        )
        .add(
            test_op(
                "tfrt_test.async.noop",
                "The tensor itself, by a task of its own.",
                1,
                later,
            )
            .elements("all but strings")
            .formats(Formats::SCALAR)
            .metadata(same_metadata)
            .pure(),
        )
        .add(
            test_op(
                "tfrt_test.async.noop_no_md",
                "The same, of a shape that is known late.",
                1,
                later,
            )
            .elements("all but strings")
            .formats(Formats::SCALAR)
            .pure(),
        )
        .add(
            test_op("tfrt_test.error.tensor", "A tensor that fails.", 1, |_| {
                let error = Error::unknown("error from test.error.tensor implementation");
                Ok(smallvec![Output::Later(AsyncValue::from_error(error))])
            })
            .elements("all but strings")
            .formats(Formats::SCALAR)
            .metadata(same_metadata)
            .pure(),
        )
        .add(
            test_op(
                "tfrt_test.test_optional_arg",
                "The second input if there is one, else the first.",
                1,
                last,
            )
            .elements("all but strings")
            .inputs_from(1..=2)
            .metadata(last_metadata)
            .pure(),
        )
        .add(
            test_op(
                "tfrt_test.test_variadic_arg",
                "The second input if there are several, else the first.",
                1,
                last,
            )
            .elements("all but strings")
            .inputs_from(1..=usize::MAX)
            .metadata(last_metadata)
            .pure(),
        );
}

/// The two inputs if they are of one type and shape.
fn two_alike(
    call: &MetadataCall<'_>,
    elements: Elements,
    [types, shapes]: [&str; 2],
) -> Result<ResultMetadata, Error> {
    let [x, y] = call.inputs else {
        let op = call.op;
        return Err(Error::invalid_argument(format!("{op} expects 2 inputs")));
    };
    if x.dtype != y.dtype {
        return Err(Error::invalid_argument(format!("{types}: {x} and {y}")));
    }
    if x.shape != y.shape {
        let (x, y) = (&x.shape, &y.shape);
        return Err(Error::invalid_argument(format!("{shapes}: {x} and {y}")));
    }
    elements.expect(call.op, x.dtype)?;
    Ok(smallvec![TensorMetadata::clone(x)])
}

fn sum_metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let messages = [
        "incompatible dtypes for test.add",
        "arguments of test.add must have same shape",
    ];
    two_alike(call, Elements::Numbers, messages)
}

fn equal_metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let messages = [
        "incompatible dtypes for element-wise op",
        "arguments to element-wise op must have identical shapes",
    ];
    two_alike(call, Elements::Reals, messages)
}

fn sum_to_come(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let outputs = two(call, BinaryFunction::Add)?;
    let to_come = |output| match output {
        Output::Ready(tensor) => Output::Later(AsyncValue::available(tensor)),
        later @ Output::Later(_) => later,
    };
    Ok(outputs.into_iter().map(to_come).collect())
}

fn sum_in_parts(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let dtype = call.dense(0)?.dtype();
    with_number!(dtype, T => sum_in_parts_of::<T>(call), else Err(unsupported(call.op(), dtype)))
}

fn sum_in_parts_of<T: Number>(call: &Call<'_>) -> Result<Outputs, Error> {
    let (x, y) = (call.dense(0)?.clone(), call.dense(1)?.clone());
    let out = call.zeros(0)?;
    let each = NonZeroUsize::MIN;
    let chain = parallel::fill(
        call.execution(),
        &out,
        each,
        move |first, part: &mut [T]| {
            let (x, y) = (x.read()?, y.read()?);
            let pairs = x.elements::<T>()?.iter().zip(y.elements::<T>()?);
            for (out, (x, y)) in part.iter_mut().zip(pairs.skip(first)) {
                *out = x.plus(*y);
            }
            Ok(())
        },
    )?;
    call.made(out, chain)
}

fn broadcast_metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let shape = call.attrs.shape("shape")?;
    let shape = shape.ok_or_else(|| call.missing("shape"))?;
    let (Some(columns), 2, [x]) = (shape.extent(1), shape.rank(), call.inputs) else {
        return Err(Error::invalid_argument(format!(
            "result shape must be 2 dimensional (for now), found {shape}"
        )));
    };
    if x.shape.rank() != 1 || x.shape.extent(0) != Some(columns) {
        let x = &x.shape;
        return Err(Error::invalid_argument(format!(
            "input dimension and target shape mismatch: {x} and {shape}"
        )));
    }
    Ok(smallvec![TensorMetadata::new(x.dtype, shape)])
}

fn broadcast(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let (x, out) = (call.dense(0)?, call.output(0)?);
    let movement = Movement::broadcast(&x.shape().to_dims(), &out.shape().to_dims())?;
    let chain = movement.run_into(call.execution(), x, &out)?;
    call.made(out, chain)
}

fn cast_metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let dtype = match call.attrs.text("type")? {
        Some("f32") => DType::F32,
        Some("f16") => DType::F16,
        Some(found) => {
            let found = found.escape_debug();
            return Err(Error::invalid_argument(format!(
                "only casting to f32/f16 is supported, found '{found}'"
            )));
        }
        None => return Err(call.missing("type")),
    };
    let from = same_as_first(call, Elements::RealsAndTruth)?;
    let shapes = from.into_iter().map(|metadata| metadata.shape);
    Ok(shapes
        .map(|shape| TensorMetadata::new(dtype, shape))
        .collect())
}

fn cast(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let (x, out) = (call.dense(0)?, call.output(0)?);
    let chain = cast_into(call.execution(), Casting::default(), x, &out)?;
    call.made(out, chain)
}

/// The result is without the dimension that `axis` names, the only one that the operation knows.
fn axis_metadata(
    call: &MetadataCall<'_>,
    supported: usize,
    message: &str,
    dtype: Option<DType>,
) -> Result<ResultMetadata, Error> {
    let axis = axis(call.op, call.attrs)?;
    let x = &same_as_first(call, Elements::Reals)?[0];
    let rank = x.shape.rank();
    let place = usize::try_from(axis).ok().filter(|axis| *axis < rank);
    match place {
        Some(place) if place == supported => without(x, place, dtype.unwrap_or(x.dtype)),
        Some(_) => Err(Error::invalid_argument(format!(
            "{message}: {axis}, expected {supported}"
        ))),
        None => Err(Error::invalid_argument(format!(
            "axis must less than input rank: {axis} of {rank}"
        ))),
    }
}

fn axis(op: &str, attrs: OpAttrsRef<'_>) -> Result<i64, Error> {
    attrs.integer("axis")?.ok_or_else(|| missing(op, "axis"))
}

fn mean(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let (x, out) = (call.dense(0)?, call.output(0)?);
    expect_family(call.op(), Family::Reals, x.dtype())?;
    let chain = reduce_into(call.execution(), Reduction::Mean, x, &[0], &out)?;
    call.made(out, chain)
}

fn odd_elements(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let x = call.dense(0)?;
    if x.shape().rank() != 1 {
        let shape = x.shape();
        return Err(Error::invalid_argument(format!(
            "expected a 1D tensor input, found shape {shape}"
        )));
    }
    if x.dtype() != DType::I32 {
        let dtype = x.dtype();
        return Err(Error::invalid_argument(format!(
            "expected a i32 element type, found {dtype}"
        )));
    }
    let reading = x.read()?;
    let odd = reading.elements::<i32>()?.iter().filter(|x| *x % 2 != 0);
    let odd: Vec<i32> = odd.copied().collect();
    let allocator = call.execution().host().allocator();
    let odd = DenseHostTensor::from_slice(allocator, &[odd.len()], &odd)?;
    Ok(smallvec![odd.into()])
}

fn same_tensor(call: &mut Call<'_>, index: usize) -> Result<Outputs, Error> {
    Ok(smallvec![call.tensor(index)?.clone().into()])
}

/// The tensor, when a task of its own has run.
fn later(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let tensor = call.tensor(0)?.clone();
    let tensor = call.execution().enqueue(move || Ok(tensor));
    Ok(smallvec![Output::Later(tensor)])
}
