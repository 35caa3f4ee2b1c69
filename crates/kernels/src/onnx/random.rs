//! Random numbers, by the seed that a model states, or by a new one in each call.

use std::hash::{BuildHasher, Hasher, RandomState};

use tfrt_host::Error;
use tfrt_tensor::math::number::{Number, Real};
use tfrt_tensor::math::random::CounterRng;
use tfrt_tensor::{Bool, DType, Dims, Element};

use super::create::fill;
use super::dispatch::{with_floating, with_real};
use super::movement::sizes;
use super::opaque::extents;
use super::{NodeCall, Operations, Outputs};

pub(super) const OPERATIONS: &Operations = &[
    ("onnx.Bernoulli", bernoulli),
    ("onnx.Multinomial", multinomial),
    ("onnx.RandomNormal", |node| {
        normal(node, shape_attribute(node)?, DType::F32)
    }),
    ("onnx.RandomNormalLike", |node| {
        normal(node, shape_of_input(node)?, type_of_input(node)?)
    }),
    ("onnx.RandomUniform", |node| {
        uniform(node, shape_attribute(node)?, DType::F32)
    }),
    ("onnx.RandomUniformLike", |node| {
        uniform(node, shape_of_input(node)?, type_of_input(node)?)
    }),
];

fn shape_attribute(node: &NodeCall<'_>) -> Result<Dims, Error> {
    let shape = node.attributes.integers("shape")?;
    sizes(node, shape.ok_or_else(|| node.attributes.missing("shape"))?)
}

fn shape_of_input(node: &NodeCall<'_>) -> Result<Dims, Error> {
    Ok(extents(node.inputs.tensor(0)?))
}

fn type_of_input(node: &NodeCall<'_>) -> Result<DType, Error> {
    Ok(node.inputs.tensor(0)?.metadata().dtype)
}

/// Makes a generator of the attribute `seed`, a float, or of a new seed.
fn source(node: &NodeCall<'_>) -> Result<CounterRng, Error> {
    let seed = match node.attributes.float("seed")? {
        Some(seed) => u64::from(seed.to_bits()),
        // Each of these has keys of its own.
        None => RandomState::new().build_hasher().finish(),
    };
    Ok(CounterRng::new(seed))
}

/// Draws normal numbers, by the attributes `mean`, `scale`, `seed`, `dtype`.
fn normal(node: &NodeCall<'_>, shape: Dims, dtype: DType) -> Result<Outputs, Error> {
    let mean = f64::from(node.attributes.float_or("mean", 0.0)?);
    let scale = f64::from(node.attributes.float_or("scale", 1.0)?);
    let source = source(node)?;
    made(node, &shape, dtype, move |place| {
        mean + scale * source.normal(place)
    })
}

/// Draws uniform numbers, by the attributes `low`, `high`, `seed`, `dtype`.
fn uniform(node: &NodeCall<'_>, shape: Dims, dtype: DType) -> Result<Outputs, Error> {
    let low = f64::from(node.attributes.float_or("low", 0.0)?);
    let high = f64::from(node.attributes.float_or("high", 1.0)?);
    let source = source(node)?;
    made(node, &shape, dtype, move |place| {
        low + (high - low) * source.uniform(place)
    })
}

fn made(
    node: &NodeCall<'_>,
    shape: &[usize],
    dtype: DType,
    number: impl Fn(u64) -> f64 + Send + Sync + 'static,
) -> Result<Outputs, Error> {
    let dtype = node.attributes.dtype("dtype")?.unwrap_or(dtype);
    let chain_of = |out: &_| {
        with_floating!(dtype, T => fill::<T>(node, out, move |place| T::from_f64(number(place as u64))),
            else Err(node.error(format_args!("random numbers are floats, found {dtype}"))))
    };
    let out = node.output(dtype, shape)?;
    let chain = chain_of(&out)?;
    Ok(Outputs::later(out, chain))
}

/// `Bernoulli(x)`, attributes `seed`, `dtype`: 1 where a random number is below the element, else 0.
fn bernoulli(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let limits = node.inputs.numbers(0)?;
    let dtype = node.attributes.dtype("dtype")?.unwrap_or(x.dtype());
    let out = node.output(dtype, &x.shape().to_dims())?;
    let source = source(node)?;
    let is_one = move |place: usize| source.uniform(place as u64) < limits[place];
    let chain = match dtype {
        DType::I1 => fill::<Bool>(node, &out, move |place| is_one(place).into())?,
        _ => with_real!(dtype, T => fill::<T>(node, &out, move |place| {
            if is_one(place) { T::ONE } else { T::ZERO }
        })?, else return Err(node.error(format_args!("there are no numbers of {dtype}")))),
    };
    Ok(Outputs::later(out, chain))
}

/// `Multinomial(x)`, attributes `dtype`, `sample_size`, `seed`: draws classes by their log-probabilities, `x: [batch,
/// classes]`.
fn multinomial(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let &[n_batch, n_classes] = &node.inputs.extents(0, 2)?[..] else {
        unreachable!("there are two extents");
    };
    if n_classes == 0 {
        return Err(node.inputs.error(0, "is expected to have classes"));
    }
    let logarithms = node.inputs.numbers(0)?;
    let n_samples = node.attributes.size_or("sample_size", 1)?;
    let dtype = node.attributes.dtype("dtype")?.unwrap_or(DType::I32);
    let source = source(node)?;
    let sums = cumulated(&logarithms, n_classes);
    let drawn = move |place: usize| {
        let row = place / n_samples;
        let sums = &sums[row * n_classes..(row + 1) * n_classes];
        let limit = source.uniform(place as u64) * sums[n_classes - 1];
        sums.partition_point(|sum| *sum <= limit).min(n_classes - 1)
    };
    let out = node.output(dtype, &[n_batch, n_samples])?;
    let chain = match dtype {
        DType::I32 => fill::<i32>(node, &out, move |place| {
            i32::try_from(drawn(place)).unwrap_or(i32::MAX)
        })?,
        DType::I64 => fill::<i64>(node, &out, move |place| super::shape::to_i64(drawn(place)))?,
        other => {
            let message =
                format_args!("is expected to name integers of 32 or 64 bits, found {other}");
            return Err(node.attributes.error("dtype", message));
        }
    };
    Ok(Outputs::later(out, chain))
}

/// Returns the cumulative probability of each class of a row, not divided by the sum.
fn cumulated(logarithms: &[f64], n_classes: usize) -> Vec<f64> {
    let mut sums = Vec::with_capacity(logarithms.len());
    for row in logarithms.chunks_exact(n_classes) {
        let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut sum = 0.0;
        sums.extend(row.iter().map(|logarithm| {
            sum += (logarithm - most).exp();
            sum
        }));
    }
    sums
}
