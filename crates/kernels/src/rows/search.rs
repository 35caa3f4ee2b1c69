//! Kernels that search: the largest elements, unique ones, those that are true, positions in sorted rows.

use std::cmp::Ordering;

use smallvec::smallvec;
use tfrt_host::{DType, Error};
use tfrt_tensor::math::Family;
use tfrt_tensor::math::number::Real;
use tfrt_tensor::math::select::{Unique, unique_by};
use tfrt_tensor::op::{Formats, Outputs, TensorCall, TensorKernel, unsupported};
use tfrt_tensor::{
    Bool, DenseHostTensor, Dims, Element, Tensor, TensorView, with_number, with_real,
};

use super::rearrange::{list_of, listed, product};
use super::segments::indices;
use super::tensors::{axis_in, extents, integers, moved};

pub(super) const KERNELS: &[TensorKernel] = &[
    TensorKernel::new("tf.Bucketize", |call| {
        let dtype = call.dense(0)?.dtype();
        with_real!(dtype, T => buckets::<T>(call), else Err(unsupported(call.name, dtype)))
    })
    .of(Family::Reals),
    TensorKernel::new("tf.InTopKV2", in_top),
    TensorKernel::new("tf.InvertPermutation", |call| {
        let list = integers(call, 0)?;
        let mut places = vec![None; list.len()];
        for (index, number) in list.iter().enumerate() {
            let to = usize::try_from(*number)
                .ok()
                .and_then(|at| places.get_mut(at));
            match to {
                Some(place @ None) => *place = Some(index),
                Some(_) => return Err(call.error(format_args!("{number} is there twice"))),
                None => {
                    let n = list.len();
                    return Err(call.error(format_args!(
                        "expected numbers from 0 on and below {n}, found {number}"
                    )));
                }
            }
        }
        let places: Vec<usize> = places.into_iter().flatten().collect();
        let x = call.dense(0)?;
        if x.shape().rank() != 1 {
            let found = x.shape();
            return Err(call.error(format_args!("expected a list, found {found}")));
        }
        Ok(smallvec![indices(
            call,
            x.dtype(),
            &[places.len()],
            &places
        )?])
    }),
    TensorKernel::new("tf.TopKV2", |call| {
        let dtype = call.dense(0)?.dtype();
        with_real!(dtype, T => top::<T>(call), else Err(unsupported(call.name, dtype)))
    })
    .of(Family::Reals),
    TensorKernel::new("tf.UniqueV2", |call| unique(call, false)).formats(Formats::STRING),
    TensorKernel::new("tf.UniqueWithCountsV2", |call| unique(call, true)).formats(Formats::STRING),
    TensorKernel::new("tf.Where", coordinates),
    TensorKernel::new("tfrt.bounds", |call| {
        let dtype = call.dense(0)?.dtype();
        with_real!(dtype, T => bounds::<T>(call), else Err(unsupported(call.name, dtype)))
    })
    .of(Family::Reals),
];

fn buckets<T: Real>(call: &TensorCall<'_>) -> Result<Outputs, Error> {
    let boundaries: Vec<f64> = match call.attrs.get("boundaries") {
        Some(tfrt_ops::AttrValue::Floats(list)) => list.to_vec(),
        // A list of whole numbers.
        Some(tfrt_ops::AttrValue::Ints(list)) => list.iter().map(|one| *one as f64).collect(),
        _ => Vec::new(),
    };
    if !boundaries.is_sorted() {
        return Err(call.error(format_args!(
            "expected attribute 'boundaries' to be in order"
        )));
    }
    let x = call.dense(0)?;
    let reading = x.read()?;
    // Integers are compared as f32, as boundaries are.
    let is_whole = T::DTYPE.is_integer();
    let of = |one: &T| {
        let one = one.to_f64();
        #[expect(clippy::cast_possible_truncation, reason = "it is rounded")]
        let one = if is_whole { f64::from(one as f32) } else { one };
        boundaries.partition_point(|boundary| one.partial_cmp(boundary) != Some(Ordering::Less))
    };
    let places: Vec<usize> = reading.elements::<T>()?.iter().map(of).collect();
    Ok(smallvec![indices(
        call,
        DType::I32,
        &x.shape().to_dims(),
        &places
    )?])
}

/// Returns the one integer of an operand.
fn count(call: &TensorCall<'_>, index: usize) -> Result<i64, Error> {
    match integers(call, index)?[..] {
        [k] => Ok(k),
        _ => Err(call.error(format_args!("expected a k in one element"))),
    }
}

fn in_top(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let (x, targets, k) = (call.dense(0)?, integers(call, 1)?, count(call, 2)?);
    let &[n_rows, n] = &x.shape().to_dims()[..] else {
        let found = x.shape();
        return Err(call.error(format_args!("expected rows of predictions, found {found}")));
    };
    if targets.len() != n_rows {
        let found = targets.len();
        return Err(call.error(format_args!(
            "expected a target for each of {n_rows} rows, found {found}"
        )));
    }
    let reading = x.read()?;
    let rows = reading.elements::<f32>()?;
    let is_in = targets.iter().enumerate().map(|(index, target)| {
        let row = &rows[index * n..][..n];
        let own = usize::try_from(*target).ok().and_then(|at| row.get(at));
        let is_in = own.filter(|own| own.is_finite()).is_some_and(|own| {
            let n_larger = row.iter().filter(|other| *other > own).count();
            row.iter().all(|other| other.is_finite())
                && i64::try_from(n_larger).is_ok_and(|n_larger| n_larger < k)
        });
        Bool::from(is_in)
    });
    let is_in: Vec<Bool> = is_in.collect();
    Ok(smallvec![listed(call, &[n_rows], &is_in)?])
}

fn top<T: Real>(call: &TensorCall<'_>) -> Result<Outputs, Error> {
    let (x, k) = (call.dense(0)?, count(call, 1)?);
    let mut shape = x.shape().to_dims();
    let n = shape.last().copied().unwrap_or(0);
    let k = usize::try_from(k)
        .ok()
        .filter(|k| *k <= n && !shape.is_empty());
    let k = k.ok_or_else(|| call.error(format_args!("expected a k from 0 to {n}")))?;
    if let Some(last) = shape.last_mut() {
        *last = k;
    }
    let reading = x.read()?;
    let elements = reading.elements::<T>()?;
    let (mut values, mut places) = (Vec::new(), Vec::new());
    // As many rows as the result has, none of which may have elements.
    let rows = if n == 0 {
        [].chunks(1)
    } else {
        elements.chunks(n)
    };
    for row in rows {
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|a, b| largest_first(row[*a], row[*b]));
        order.truncate(k);
        values.extend(order.iter().map(|at| row[*at]));
        places.extend(order);
    }
    let index = call.attrs.dtype("index_type").unwrap_or(DType::I32);
    Ok(smallvec![
        listed(call, &shape, &values)?,
        indices(call, index, &shape, &places)?
    ])
}

/// Compares numbers, the larger one first; NaN counts as the largest.
fn largest_first<T: Real>(x: T, y: T) -> Ordering {
    match (x.same(x), y.same(y)) {
        (true, true) if y.less(x) => Ordering::Less,
        (true, true) if x.less(y) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (true, false) => Ordering::Greater,
        _ => Ordering::Equal,
    }
}

fn unique(call: &mut TensorCall<'_>, has_counts: bool) -> Result<Outputs, Error> {
    let x = call.tensor(0)?;
    let own = extents(x);
    let axes = match call.operands.get(1) {
        Some(_) => integers(call, 1)?,
        None => smallvec![],
    };
    let axis = match axes[..] {
        [] if own.len() == 1 => 0,
        [axis] => axis_in(call, axis, own.len())?,
        _ => return Err(call.error(format_args!("expected a list or one axis, found {own:?}"))),
    };
    let (n, outer, each) = (own[axis], product(&own[..axis]), product(&own[axis + 1..]));
    // All places of a slice's elements.
    let places = |slice: usize| {
        (0..outer).flat_map(move |row| {
            let start = (row * n + slice) * each;
            start..start + each
        })
    };
    let order: Box<dyn Fn(usize, usize) -> Ordering> = match x {
        Tensor::String(strings) => {
            let strings = strings.strings();
            Box::new(move |a, b| {
                let [a, b] = [a, b].map(|slice| places(slice).map(|at| &strings[at]));
                a.cmp(b)
            })
        }
        x => ordered(call, x.as_dense()?, places)?,
    };
    // Slices without elements may be more than fit any memory.
    drop(list_of::<[u8; Unique::BYTES_PER_THING]>(call, n)?);
    let found = unique_by(n, false, &*order);
    drop(order);
    let firsts: Vec<i64> = found.firsts.iter().map(|first| *first as i64).collect();
    let mut result: Dims = own.clone();
    result[axis] = firsts.len();
    let firsts = TensorView::new(&firsts, &[firsts.len()])?;
    let movement = tfrt_tensor::math::layout_copy::LayoutCopy::gather(&own, axis, &firsts);
    let index = call.attrs.dtype("out_idx").unwrap_or(DType::I32);
    let mut outputs: Outputs = smallvec![
        moved(call, x, &call.named(movement)?, &result)?,
        indices(call, index, &[n], &found.kinds)?
    ];
    if has_counts {
        outputs.push(indices(call, index, &[found.counts.len()], &found.counts)?);
    }
    Ok(outputs)
}

/// Compares slices by their elements. NaN is unequal to everything, itself included.
fn ordered<'a, P: Iterator<Item = usize>>(
    call: &TensorCall<'_>,
    x: &'a DenseHostTensor,
    places: impl Fn(usize) -> P + 'a,
) -> Result<Box<dyn Fn(usize, usize) -> Ordering + 'a>, Error> {
    let dtype = x.dtype();
    if dtype == DType::I1 {
        let truths = x.read()?.elements::<Bool>()?.to_vec();
        return Ok(Box::new(move |a, b| {
            let [a, b] = [a, b].map(|slice| places(slice).map(|at| bool::from(truths[at])));
            a.cmp(b)
        }));
    }
    with_real!(dtype, T => {
        let list = x.read()?.elements::<T>()?.to_vec();
        Ok(Box::new(move |a, b| {
            if a == b {
                return Ordering::Equal;
            }
            let mut pairs = places(a).zip(places(b));
            let differs = pairs.find_map(|(at, other)| {
                let (x, y) = (list[at], list[other]);
                match largest_first(y, x) {
                    Ordering::Equal if x.same(x) => None,
                    // By their places: of two that are no numbers one must come first.
                    Ordering::Equal => Some(at.cmp(&other)),
                    order => Some(order),
                }
            });
            differs.unwrap_or(Ordering::Equal)
        }) as Box<dyn Fn(usize, usize) -> Ordering + 'a>)
    }, else Err(unsupported(call.name, dtype)))
}

fn coordinates(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let x = call.dense(0)?;
    let (dtype, extents) = (x.dtype(), x.shape().to_dims());
    let reading = x.read()?;
    let wanted: Vec<usize> = match dtype {
        DType::I1 => wanted(reading.elements::<Bool>()?, |one| bool::from(*one)),
        _ => with_number!(dtype, T => {
            wanted(reading.elements::<T>()?, |one| !is_zero(*one))
        }, else return Err(unsupported(call.name, dtype))),
    };
    let mut list = Vec::with_capacity(wanted.len() * extents.len());
    for mut place in wanted.iter().copied() {
        let from = list.len();
        for extent in extents.iter().rev() {
            // Coordinates are less than extents, which fit 63 bits.
            list.push((place % extent) as i64);
            place /= extent;
        }
        list[from..].reverse();
    }
    Ok(smallvec![listed(
        call,
        &[wanted.len(), extents.len()],
        &list
    )?])
}

fn wanted<T>(list: &[T], is_wanted: impl Fn(&T) -> bool) -> Vec<usize> {
    let all = list.iter().enumerate();
    all.filter(|(_, one)| is_wanted(one))
        .map(|(at, _)| at)
        .collect()
}

/// Returns whether all bits of a number are 0, or it is -0.
fn is_zero<T: Element + PartialEq>(one: T) -> bool {
    one == T::ZERO
}

fn bounds<T: Real>(call: &TensorCall<'_>) -> Result<Outputs, Error> {
    let (rows, values) = (call.dense(0)?, call.dense(1)?);
    let (own, result) = (rows.shape().to_dims(), values.shape().to_dims());
    let (&[n_rows, n], &[n_others, n_values]) = (&own[..], &result[..]) else {
        return Err(call.error(format_args!("expected rows, found {own:?} and {result:?}")));
    };
    if n_rows != n_others {
        return Err(call.error(format_args!(
            "expected values for each of {n_rows} rows, found those of {n_others}"
        )));
    }
    let is_upper = call.attrs.flag("upper");
    let (rows, values) = (rows.read()?, values.read()?);
    let (rows, values) = (rows.elements::<T>()?, values.elements::<T>()?);
    let places = values.iter().enumerate().map(|(index, value)| {
        let row = &rows[index / n_values * n..][..n];
        row.partition_point(|one| match is_upper {
            true => !value.less(*one),
            false => one.less(*value),
        })
    });
    let places: Vec<usize> = places.collect();
    Ok(smallvec![indices(call, DType::I64, &result, &places)?])
}
