//! Kernels of `tfrt_test` on tensors, which tests of the original runtime call.

use std::num::NonZeroUsize;

use smallvec::smallvec;
use tfrt_host::{AsyncValue, DType, Error};
use tfrt_tensor::math::Family;
use tfrt_tensor::math::cast::{Casting, cast_into};
use tfrt_tensor::math::layout_copy::LayoutCopy;
use tfrt_tensor::math::number::Number;
use tfrt_tensor::math::parallel;
use tfrt_tensor::math::pointwise::{BinaryFunction, OperandOrder};
use tfrt_tensor::math::reduce::{Extremum, Reduction, Ties, positions_into, reduce_into};
use tfrt_tensor::op::{Formats, Output, Outputs, TensorCall, TensorKernel, made, unsupported};
use tfrt_tensor::{
    CooHostTensor, DenseHostTensor, ScalarHostTensor, Tensor, TensorMetadata, with_element,
    with_number,
};

pub(super) const KERNELS: &[TensorKernel] = &[
    TensorKernel::new("tfrt_test.add", sum)
        .of(Family::Numbers)
        .formats(Formats::SCALAR),
    TensorKernel::new("tfrt_test.add.denseonly", sum).of(Family::Numbers),
    TensorKernel::new("tfrt_test.add.denseonly2", |call| {
        let to_come = |output| match output {
            Output::Ready(tensor) => Output::Later(AsyncValue::available(tensor)),
            later @ Output::Later(_) => later,
        };
        Ok(sum(call)?.into_iter().map(to_come).collect())
    })
    .of(Family::Numbers),
    TensorKernel::new("tfrt_test.add.denseonly3", sum_in_parts).of(Family::Numbers),
    TensorKernel::new("tfrt_test.argmax", largest).of(Family::Reals),
    TensorKernel::new("tfrt_test.async.noop", later).formats(Formats::SCALAR),
    TensorKernel::new("tfrt_test.async.noop_no_md", later).formats(Formats::SCALAR),
    TensorKernel::new("tfrt_test.broadcast", |call| {
        let (x, out) = (call.dense(0)?, call.output(0)?);
        let movement = LayoutCopy::broadcast(&x.shape().to_dims(), &out.shape().to_dims())?;
        let chain = movement.run_into(call.execution, x, &out)?;
        Ok(smallvec![made(out, chain)?])
    }),
    TensorKernel::new("tfrt_test.cast", |call| {
        let (x, out) = (call.dense(0)?, call.output(0)?);
        let chain = cast_into(call.execution, Casting::default(), x, &out);
        Ok(smallvec![made(out, call.named(chain)?)?])
    }),
    TensorKernel::new("tfrt_test.create_coo_tensor", |call| {
        let (indices, values) = (call.dense(0)?.clone(), call.dense(1)?.clone());
        let shape = call.result(0)?.shape.clone();
        Ok(smallvec![
            CooHostTensor::new(shape, indices, values)?.into()
        ])
    }),
    TensorKernel::new("tfrt_test.create_dense_tensor", dense),
    TensorKernel::new("tfrt_test.create_from_scalar", |call| {
        let value = call.dense(1)?.read()?;
        let made = ScalarHostTensor::from_element_bytes(call.result(0)?.clone(), value.bytes());
        match made {
            Some(scalar) => Ok(smallvec![scalar.into()]),
            None => Err(unsupported(call.name, call.dense(1)?.dtype())),
        }
    }),
    TensorKernel::new("tfrt_test.equal", |call| {
        call.binary(BinaryFunction::EqualAsNumber, OperandOrder::TargetFirst)
    })
    .of(Family::Reals),
    TensorKernel::new("tfrt_test.error.tensor", |_| {
        let error = Error::unknown("error from test.error.tensor implementation");
        Ok(smallvec![Output::Later(AsyncValue::from_error(error))])
    })
    .formats(Formats::SCALAR),
    TensorKernel::new("tfrt_test.identity", |call| same(call, 0)).formats(Formats::ALL),
    TensorKernel::new("tfrt_test.identity_dense_only", |call| same(call, 0)),
    TensorKernel::new("tfrt_test.odd_collector", odd_elements),
    TensorKernel::new("tfrt_test.print", |call| {
        let text = call.tensor(0)?.to_text()?;
        call.execution.host().output().print(text);
        Ok(Outputs::new())
    })
    .formats(Formats::ALL),
    TensorKernel::new("tfrt_test.print_address", print_address).formats(Formats {
        string: false,
        ..Formats::ALL
    }),
    TensorKernel::new("tfrt_test.reduce_mean", |call| {
        let (x, out) = (call.dense(0)?, call.output(0)?);
        let chain = reduce_into(call.execution, Reduction::Mean, x, &[0], &out);
        Ok(smallvec![made(out, call.named(chain)?)?])
    })
    .of(Family::Reals),
    TensorKernel::new("tfrt_test.test_optional_arg", |call| last_of_two(call)),
    TensorKernel::new("tfrt_test.test_variadic_arg", |call| last_of_two(call)),
];

fn same(call: &TensorCall<'_>, index: usize) -> Result<Outputs, Error> {
    Ok(smallvec![call.tensor(index)?.clone().into()])
}

fn last_of_two(call: &TensorCall<'_>) -> Result<Outputs, Error> {
    same(call, 1.min(call.n_inputs().saturating_sub(1)))
}

fn sum(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let function = BinaryFunction::Add;
    let [x, y] = [call.tensor(0)?, call.tensor(1)?];
    let allocator = call.execution.host().allocator();
    match (x, y) {
        (Tensor::Scalar(x), Tensor::Scalar(y)) => {
            let value = function.of_scalars(x, y, &call.result(0)?.shape)?;
            Ok(smallvec![value.into()])
        }
        (Tensor::Dense(_), Tensor::Dense(_)) => call.binary(function, OperandOrder::TargetFirst),
        _ => {
            let dense = |tensor: &Tensor| match tensor {
                Tensor::Scalar(scalar) => scalar.to_dense(allocator),
                tensor => tensor.as_dense().cloned(),
            };
            let (x, y, out) = (dense(x)?, dense(y)?, call.output(0)?);
            let chain =
                tfrt_tensor::math::pointwise::binary_into(call.execution, function, &x, &y, &out)?;
            Ok(smallvec![made(out, chain)?])
        }
    }
}

fn sum_in_parts(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let dtype = call.dense(0)?.dtype();
    with_number!(dtype, T => sum_in_parts_of::<T>(call), else Err(unsupported(call.name, dtype)))
}

fn sum_in_parts_of<T: Number>(call: &TensorCall<'_>) -> Result<Outputs, Error> {
    let (x, y) = (call.dense(0)?.clone(), call.dense(1)?.clone());
    let out = call.zeros(0)?;
    let chain = parallel::fill(
        call.execution,
        &out,
        NonZeroUsize::MIN,
        move |first, part: &mut [T]| {
            let (x, y) = (x.read()?, y.read()?);
            let pairs = x.elements::<T>()?.iter().zip(y.elements::<T>()?);
            for (out, (x, y)) in part.iter_mut().zip(pairs.skip(first)) {
                *out = x.plus(*y);
            }
            Ok(())
        },
    )?;
    Ok(smallvec![made(out, chain)?])
}

fn largest(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let (x, out) = (call.dense(0)?, call.output(0)?);
    let wide = call.allocate(TensorMetadata::new(DType::I64, out.shape().clone()))?;
    let greatest = Extremum::Greatest;
    let chain = positions_into(call.execution, greatest, x, 1, Ties::First, &wide);
    let (execution, written) = (call.execution.clone(), out.clone());
    let chain = call.named(chain)?.and_then_value(move |_| {
        cast_into(&execution, Casting::default(), &wide, &written)
            .unwrap_or_else(AsyncValue::from_error)
    });
    Ok(smallvec![made(out, chain)?])
}

/// Returns the operand, when a task of its own has run.
fn later(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let tensor = call.tensor(0)?.clone();
    let tensor = call.execution.enqueue(move || Ok(tensor));
    Ok(smallvec![Output::Later(tensor)])
}

fn dense(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let values = call.dense(1)?;
    let mut tensor = call.output(0)?;
    let reading = values.read()?;
    with_element!(values.dtype(), T => {
        match (reading.elements::<T>()?, tensor.elements_mut::<T>()?) {
            (&[value], Some(elements)) => elements.fill(value),
            (values, Some(elements)) if values.len() == elements.len() => elements.copy_from_slice(values),
            _ => return Err(call.error(format_args!("the values don't fit the shape"))),
        }
    }, else return Err(unsupported(call.name, values.dtype())));
    drop(reading);
    Ok(smallvec![tensor.into()])
}

fn odd_elements(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
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
    let allocator = call.execution.host().allocator();
    let odd = DenseHostTensor::from_slice(allocator, &[odd.len()], &odd)?;
    Ok(smallvec![odd.into()])
}

fn print_address(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let output = call.execution.host().output();
    match call.tensor(0)? {
        Tensor::Dense(dense) => {
            let address = dense.buffer().address();
            output.print(format_args!("DenseHostTensor: buffer={address:#x}"));
        }
        _ => output.print("Unsupported tensor type"),
    }
    Ok(Outputs::new())
}
