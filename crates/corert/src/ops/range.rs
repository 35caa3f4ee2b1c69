//! Numbers in even steps: `tf.Range`.

use tfrt_host::{DType, Error};
use tfrt_tensor::math::number::{Floating, Real};
use tfrt_tensor::math::parallel;
use tfrt_tensor::{Element, TensorMetadata, TensorShape, with_floating, with_integer};

use crate::call::Call;
use crate::definition::{
    AttrKind, MetadataCall, OpDefinition, OpRegistry, Outputs, ResultMetadata, unsupported,
};

pub(super) fn register(registry: &mut OpRegistry) {
    registry.add(
        OpDefinition::new("tf.Range", |call| match call.dense(0)?.dtype() {
            dtype if dtype.is_integer() => integers(call, dtype),
            dtype => with_floating!(dtype, T => floats::<T>(call), else
                Err(unsupported(call.op(), dtype))),
        })
        .summary(
            "The numbers from the first input on, in steps of the third, that lie before the second; each is calculated \
             from the first.",
        )
        .inputs(3)
        .attribute("Tidx", AttrKind::Type, "the type of the numbers")
        .elements("real numbers")
        .metadata(metadata)
        .pure(),
    );
}

/// Says what is wrong with types and shapes; how many numbers there are is up to the values.
fn metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let op = call.op;
    let Some(start) = call.inputs.first() else {
        return Err(Error::invalid_argument(format!("{op} expects 3 inputs")));
    };
    for input in call.inputs {
        if input.dtype != start.dtype || input.shape.n_elements() != Some(1) {
            return Err(Error::invalid_argument(format!(
                "{op}: expected start, limit and step of one type, in tensors of one element, found {input}"
            )));
        }
    }
    Ok(ResultMetadata::new())
}

fn integers(call: &Call<'_>, dtype: DType) -> Result<Outputs, Error> {
    let number = |index: usize| -> Result<i128, Error> {
        let reading = call.dense(index)?.read()?;
        with_integer!(dtype, T => only(reading.elements::<T>()?).map(i128::from), else
            Err(unsupported(call.op(), dtype)))
    };
    let [start, limit, step] = [number(0)?, number(1)?, number(2)?];
    // Numbers of 64 bits are less than 128 bits apart.
    let distance = match step < 0 {
        true => start - limit,
        false => limit - start,
    };
    if step == 0 || distance < 0 {
        return Err(no_range(call, [start, limit, step]));
    }
    let n = distance.unsigned_abs().div_ceil(step.unsigned_abs());
    let n = usize::try_from(n).unwrap_or(usize::MAX);
    with_integer!(dtype, T => {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "they lie between start and limit, which are of the type"
        )]
        filled::<T>(call, n, move |index| (start + step * index as i128) as T)
    }, else Err(unsupported(call.op(), dtype)))
}

fn floats<T: Floating>(call: &Call<'_>) -> Result<Outputs, Error> {
    let number = |index: usize| -> Result<f64, Error> {
        only(call.dense(index)?.read()?.elements::<T>()?).map(Real::to_f64)
    };
    let [start, limit, step] = [number(0)?, number(1)?, number(2)?];
    let n = ((limit - start) / step).ceil();
    if step == 0.0 || !n.is_finite() || n < 0.0 {
        return Err(no_range(call, [start, limit, step]));
    }
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "what is too large has no memory"
    )]
    let n = n as usize;
    filled::<T>(call, n, move |index| {
        T::from_f64(start + step * index as f64)
    })
}

/// A vector of `n` numbers, each made of its place.
fn filled<T: Element>(
    call: &Call<'_>,
    n: usize,
    number: impl Fn(usize) -> T + Send + Sync + 'static,
) -> Result<Outputs, Error> {
    let out = call.allocate(TensorMetadata::new(T::DTYPE, TensorShape::new(&[n])?))?;
    let chunk = parallel::chunk_len(8, 1);
    let chain = parallel::fill::<T>(call.execution(), &out, chunk, move |first, part| {
        for (index, out) in part.iter_mut().enumerate() {
            *out = number(first + index);
        }
        Ok(())
    })?;
    call.made(out, chain)
}

/// The only element, of which the metadata function has made sure.
fn only<T: Copy>(elements: &[T]) -> Result<T, Error> {
    match elements {
        [only] => Ok(*only),
        _ => Err(Error::internal("a number is expected to be one element")),
    }
}

#[cold]
fn no_range<N: std::fmt::Display>(call: &Call<'_>, [start, limit, step]: [N; 3]) -> Error {
    call.error(format_args!(
        "there are no numbers from {start} to {limit} in steps of {step}"
    ))
}
