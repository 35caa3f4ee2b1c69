//! Kernels that reduce rows of tensors by segments, or scatter them by indices.

use smallvec::smallvec;
use tfrt_host::{DType, Error};
use tfrt_tensor::math::layout_copy::{Combine, scatter_nd_into};
use tfrt_tensor::math::number::{Number, Real};
use tfrt_tensor::op::{Outputs, TensorCall, TensorKernel, made, unsupported};
use tfrt_tensor::{DenseHostTensor, Element, TensorMetadata, TensorShape, with_real};

use super::rearrange::{listed, product};
use super::strings::counted;
use super::tensors::integers;

pub(super) const KERNELS: &[TensorKernel] = &[
    TensorKernel::new("tf.Bincount", |call| {
        let dtype = call.dense(2)?.dtype();
        with_real!(dtype, T => counted::<T>(call, call.dense(0)?.n_elements()), else Err(unsupported(call.name, dtype)))
    }),
    TensorKernel::new("tf.ScatterNd", |call| {
        let shape = TensorShape::from_i64(&integers(call, 2)?);
        let (updates, shape) = (call.dense(1)?, call.named(shape)?);
        let metadata = TensorMetadata::new(updates.dtype(), shape);
        let zeros = DenseHostTensor::zeroed(call.execution.host().allocator(), metadata)?;
        scattered(call, &zeros, 0, updates)
    }),
    TensorKernel::new("tf.TensorScatterSub", |call| {
        let updates = call.dense(2)?;
        let dtype = updates.dtype();
        let negatives = with_real!(dtype, T => {
            let reading = updates.read()?;
            let list = reading.elements::<T>()?.iter().map(|one| one.negated());
            let (allocator, list) = (call.execution.host().allocator(), list.collect::<Vec<T>>());
            DenseHostTensor::from_slice(allocator, &updates.shape().to_dims(), &list)?
        }, else return Err(unsupported(call.name, dtype)));
        scattered(call, call.dense(0)?, 1, &negatives)
    }),
    TensorKernel::new("tfrt.segments", |call| {
        let dtype = call.dense(0)?.dtype();
        with_real!(dtype, T => segments::<T>(call), else Err(unsupported(call.name, dtype)))
    }),
    TensorKernel::new("tfrt.unsorted_segments", |call| {
        let dtype = call.dense(0)?.dtype();
        with_real!(dtype, T => unsorted_segments::<T>(call), else Err(unsupported(call.name, dtype)))
    }),
];

/// Returns a tensor to whose slices others were added at positions, which are the operand `at`.
fn scattered(
    call: &TensorCall<'_>,
    x: &DenseHostTensor,
    at: usize,
    updates: &DenseHostTensor,
) -> Result<Outputs, Error> {
    let list = integers(call, at)?;
    // The row of graphs counts from the end.
    if let Some(found) = list.iter().find(|place| **place < 0) {
        return Err(call.error(format_args!("expected positions from 0 on, found {found}")));
    }
    let (allocator, extents) = (
        call.execution.host().allocator(),
        call.dense(at)?.shape().to_dims(),
    );
    let indices = DenseHostTensor::from_slice(allocator, &extents, &list)?;
    let out = call.allocate(x.metadata().clone())?;
    let chain = scatter_nd_into(call.execution, Combine::Add, x, &indices, updates, &out);
    Ok(smallvec![made(out, call.named(chain)?)?])
}

/// The reduction of numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sum,
    Mean,
    Product,
    Largest,
    Smallest,
}

impl Kind {
    fn of(call: &TensorCall<'_>) -> Kind {
        match call.attrs.text("kind") {
            "mean" => Kind::Mean,
            "prod" => Kind::Product,
            "max" => Kind::Largest,
            "min" => Kind::Smallest,
            _ => Kind::Sum,
        }
    }

    /// Returns the reduction of no numbers.
    fn nothing<T: Real>(self) -> T {
        match self {
            Kind::Sum | Kind::Mean => T::ZERO,
            Kind::Product => T::ONE,
            // Floats are finite.
            Kind::Largest => T::LOWEST.greatest(T::from_f64(lowest(T::DTYPE))),
            Kind::Smallest => T::HIGHEST.least(T::from_f64(-lowest(T::DTYPE))),
        }
    }

    fn take<T: Real>(self, x: T, y: T) -> T {
        match self {
            Kind::Sum | Kind::Mean => x.plus(y),
            Kind::Product => x.times(y),
            Kind::Largest => x.greatest(y),
            Kind::Smallest => x.least(y),
        }
    }
}

/// Returns the lowest finite number of a floating-point type; minus infinity, which is below all integers, of others.
fn lowest(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => -65504.0,
        DType::Bf16 => -f64::from(f32::from_bits(0x7f7f_0000)),
        DType::F32 => f64::from(f32::MIN),
        DType::F64 => f64::MIN,
        _ => f64::NEG_INFINITY,
    }
}

/// Reduces rows of one segment, whose numbers are sorted.
fn segments<T: Real>(call: &TensorCall<'_>) -> Result<Outputs, Error> {
    let (x, numbers, kind) = (call.dense(0)?, integers(call, 1)?, Kind::of(call));
    let mut extents = x.shape().to_dims();
    let n_rows = extents.first().copied().unwrap_or(0);
    if numbers.len() != n_rows || x.shape().rank() == 0 {
        let found = numbers.len();
        return Err(call.error(format_args!(
            "expected a segment for each of {n_rows} rows, found {found}"
        )));
    }
    if !numbers.is_sorted() || numbers.first().is_some_and(|first| *first < 0) {
        return Err(call.error(format_args!(
            "expected numbers of segments in order, from 0 on"
        )));
    }
    let n = numbers
        .last()
        .map_or(Some(0), |last| usize::try_from(*last).ok()?.checked_add(1));
    let too_large = || {
        call.error(format_args!(
            "a number of segments exceeds the largest integer"
        ))
    };
    extents[0] = n.ok_or_else(too_large)?;
    let n_each = product(&extents[1..]);
    let metadata = TensorMetadata::new(x.dtype(), call.named(TensorShape::new(&extents))?);
    let mut out = DenseHostTensor::zeroed(call.execution.host().allocator(), metadata)?;
    let reading = x.read()?;
    let rows = reading.elements::<T>()?;
    let results = sole::<T>(&mut out)?;
    if kind == Kind::Product {
        results.fill(T::ONE);
    }
    let mut from = 0;
    for group in numbers.chunk_by(|a, b| a == b) {
        let at = usize::try_from(group[0]).unwrap_or(0);
        for column in 0..n_each {
            let own = (from..from + group.len()).map(|row| rows[row * n_each + column]);
            results[at * n_each + column] = match kind {
                Kind::Mean => {
                    let sum = own.fold(T::ZERO.widened(), |sum, one| sum.plus(one.widened()));
                    T::mean(sum, group.len())
                }
                _ => own.reduce(|x, y| kind.take(x, y)).unwrap_or(T::ZERO),
            };
        }
        from += group.len();
    }
    Ok(smallvec![out.into()])
}

/// Reduces slices of one segment, in any order.
fn unsorted_segments<T: Real>(call: &TensorCall<'_>) -> Result<Outputs, Error> {
    let (x, numbers, kind) = (call.dense(0)?, integers(call, 1)?, Kind::of(call));
    let metadata = call.result(0)?.clone();
    let n = metadata.shape.extents().next().unwrap_or(0);
    let n_each = product(metadata.shape.to_dims().get(1..).unwrap_or_default());
    let mut out = call.allocate(metadata)?;
    let reading = x.read()?;
    let slices = reading.elements::<T>()?;
    let results = sole::<T>(&mut out)?;
    results.fill(kind.nothing());
    for (index, number) in numbers.iter().enumerate() {
        // What is in none is left out.
        let Ok(at) = usize::try_from(*number) else {
            continue;
        };
        if at >= n {
            return Err(call.error(format_args!("there is no segment {number} of {n}")));
        }
        let own = &slices[index * n_each..][..n_each];
        for (to, one) in results[at * n_each..][..n_each].iter_mut().zip(own) {
            *to = kind.take(*to, *one);
        }
    }
    Ok(smallvec![out.into()])
}

fn sole<T: Element>(out: &mut DenseHostTensor) -> Result<&mut [T], Error> {
    out.elements_mut::<T>()?
        .ok_or_else(|| Error::internal("nobody else holds a tensor that was just made"))
}

/// Returns an integer for each element, as a tensor of `i32` or `i64`.
pub(super) fn indices(
    call: &TensorCall<'_>,
    dtype: DType,
    extents: &[usize],
    list: &[usize],
) -> Result<tfrt_tensor::op::Output, Error> {
    // Positions of elements in memory fit 63 bits.
    let wide = list.iter().map(|index| *index as i64);
    if dtype == DType::I64 {
        return listed(call, extents, &wide.collect::<Vec<i64>>());
    }
    let narrow: Result<Vec<i32>, _> = wide.map(i32::try_from).collect();
    let narrow = narrow.map_err(|_| {
        call.error(format_args!(
            "a position exceeds the largest integer of i32"
        ))
    })?;
    listed(call, extents, &narrow)
}
