//! Kernels that read and change rows and slices of variables: gathers and scatters.
//!
//! All indices are looked at before anything is changed, so that a change happens as a whole or not at all.

use std::sync::Arc;

use smallvec::SmallVec;
use tfrt_host::{AsyncValue, Chain, DType, Error, HostAllocator};
use tfrt_tensor::math::number::Real;
use tfrt_tensor::op::{Outputs, TensorCall, TensorKernel, unsupported};
use tfrt_tensor::resource::{Slot, Variable};
use tfrt_tensor::{DenseHostTensor, TensorMetadata, TensorShape, with_real};

use super::{change, expect_stated, extents, kernel, look, missing, slot};
use crate::rows::tensors::integers;

pub(in crate::rows) const KERNELS: &[TensorKernel] = &[
    kernel("tf.ResourceGather", gather),
    kernel("tf.ResourceGatherNd", gather_nd),
    kernel("tf.ResourceScatterAdd", |call| scatter(call, Update::Add)),
    kernel("tf.ResourceScatterDiv", |call| {
        scatter(call, Update::Divide)
    }),
    kernel("tf.ResourceScatterMax", |call| {
        scatter(call, Update::Greatest)
    }),
    kernel("tf.ResourceScatterMin", |call| scatter(call, Update::Least)),
    kernel("tf.ResourceScatterMul", |call| {
        scatter(call, Update::Multiply)
    }),
    kernel("tf.ResourceScatterNdAdd", |call| {
        scatter_nd(call, Update::Add)
    }),
    kernel("tf.ResourceScatterNdMax", |call| {
        scatter_nd(call, Update::Greatest)
    }),
    kernel("tf.ResourceScatterNdMin", |call| {
        scatter_nd(call, Update::Least)
    }),
    kernel("tf.ResourceScatterNdSub", |call| {
        scatter_nd(call, Update::Subtract)
    }),
    kernel("tf.ResourceScatterNdUpdate", |call| {
        scatter_nd(call, Update::Replace)
    }),
    kernel("tf.ResourceScatterSub", |call| {
        scatter(call, Update::Subtract)
    }),
    kernel("tf.ResourceScatterUpdate", |call| {
        scatter(call, Update::Replace)
    }),
];

/// The function of an element and an update.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Update {
    Add,
    Subtract,
    Multiply,
    Divide,
    Greatest,
    Least,
    Replace,
}

impl Update {
    #[inline(always)]
    fn of<T: Real>(self, x: T, y: T) -> T {
        match self {
            Update::Add => x.plus(y),
            Update::Subtract => x.minus(y),
            Update::Multiply => x.times(y),
            Update::Divide => x.over(y),
            Update::Greatest => x.greatest(y),
            Update::Least => x.least(y),
            Update::Replace => y,
        }
    }
}

/// The greatest number of lists without indices.
const MAX_EMPTY: usize = 1 << 20;

/// Returns the number of elements of a tensor of these extents, or the greatest number there is.
fn count(extents: &[usize]) -> usize {
    let product = |product: usize, extent: &usize| product.saturating_mul(*extent);
    match extents.contains(&0) {
        true => 0,
        false => extents.iter().fold(1, product),
    }
}

/// Integers with their extents: where to gather or scatter.
struct Indices {
    list: SmallVec<[i64; 8]>,
    shape: TensorShape,
}

impl Indices {
    fn of(call: &TensorCall<'_>) -> Result<Indices, Error> {
        Ok(Indices {
            list: integers(call, 1)?,
            shape: call.dense(1)?.shape().clone(),
        })
    }

    fn extents(&self) -> Vec<usize> {
        self.shape.extents().collect()
    }

    /// Writes the place of an index: `indices[1,0]`.
    fn place(&self, mut offset: usize, rank: usize) -> String {
        let mut at = Vec::new();
        let extents = self.extents();
        for extent in extents[..rank].iter().rev() {
            at.push((offset % extent.max(&1)).to_string());
            offset /= extent.max(&1);
        }
        at.reverse();
        format!("indices[{}]", at.join(","))
    }

    /// Returns each index as the number of a row of `n`.
    fn rows(&self, n: usize) -> Result<Vec<usize>, Error> {
        let row = |(offset, index): (usize, &i64)| {
            let row = usize::try_from(*index).ok().filter(|row| *row < n);
            row.ok_or_else(|| {
                let place = self.place(offset, self.shape.rank());
                Error::invalid_argument(format!("{place} = {index} is not in [0, {n})"))
            })
        };
        self.list.iter().enumerate().map(row).collect()
    }

    /// Returns each list of indices along the last dimension as the number of a slice, `None` for one that is nowhere,
    /// and the number of indices in a list.
    fn slices(&self, of: &[usize]) -> Result<(Vec<Option<usize>>, usize), Error> {
        let own = self.extents();
        let depth = own.last().copied().unwrap_or(1);
        if own.is_empty() || depth > of.len() {
            return Err(Error::invalid_argument(format!(
                "index innermost dimension length must be <= params rank; saw: {depth} vs. {}",
                of.len()
            )));
        }
        // Lists without indices, of which there may be any number, take no memory themselves.
        let n = Some(count(&own[..own.len() - 1])).filter(|n| *n <= self.list.len().max(MAX_EMPTY));
        let n = n.ok_or_else(|| {
            Error::resource_exhausted(format!("indices of shape {} are too many", self.shape))
        })?;
        let mut slices = Vec::with_capacity(n);
        for at in 0..n {
            let mut slice = Some(0);
            for (index, extent) in self.list[at * depth..(at + 1) * depth].iter().zip(of) {
                let index = usize::try_from(*index).ok().filter(|index| index < extent);
                // Too large a number is that of a slice without elements.
                let next = |(slice, index): (usize, usize)| {
                    slice.saturating_mul(*extent).saturating_add(index)
                };
                slice = slice.zip(index).map(next);
            }
            slices.push(slice);
        }
        Ok((slices, depth))
    }

    /// Returns the error for a list of indices that is nowhere.
    #[cold]
    fn nowhere(&self, at: usize, depth: usize, what: &str, of: &TensorShape) -> Error {
        let place = self.place(at, self.shape.rank() - 1);
        let list: Vec<String> = self.list[at * depth..(at + 1) * depth]
            .iter()
            .map(i64::to_string)
            .collect();
        let (list, of) = (list.join(", "), extents(of));
        Error::invalid_argument(format!(
            "{place} = [{list}] does not index into {what} {of}"
        ))
    }
}

/// Returns the tensor of a variable, which is dense, as it lies.
fn looked_at(slot: &Slot) -> Result<DenseHostTensor, Error> {
    let found = slot.get::<Variable>()?.look();
    Ok(found.ok_or_else(|| missing(slot))?.as_dense()?.clone())
}

/// Returns a tensor of parts of another, `len` elements each.
fn parts(
    allocator: &Arc<dyn HostAllocator>,
    of: &DenseHostTensor,
    shape: &[usize],
    (starts, len): (impl Iterator<Item = usize>, usize),
) -> Result<DenseHostTensor, Error> {
    let metadata = TensorMetadata::new(of.dtype(), TensorShape::new(shape)?);
    let size = of.dtype().size_bytes().unwrap_or(1);
    let out = DenseHostTensor::unspecified(allocator, metadata)?;
    if len == 0 || out.n_elements() == 0 {
        return Ok(out);
    }
    let reading = of.read()?;
    let bytes = reading.bytes();
    let mut writing = out.write()?;
    let targets = writing.bytes_mut().chunks_exact_mut(len * size);
    for (target, start) in targets.zip(starts) {
        let start = start * len * size;
        target.copy_from_slice(&bytes[start..start + len * size]);
    }
    drop(writing);
    Ok(out)
}

fn expect_type(stated: Option<DType>, found: &DenseHostTensor) -> Result<(), Error> {
    match stated {
        Some(stated) if stated != found.dtype() => Err(Error::invalid_argument(format!(
            "Trying to read variable with wrong dtype. Expected {stated} got {}",
            found.dtype()
        ))),
        _ => Ok(()),
    }
}

fn gather(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let indices = Indices::of(call)?;
    let n_batch = call.attrs.int("batch_dims").unwrap_or(0);
    let stated = call.attrs.dtype("dtype");
    look(call, move |slot, execution| {
        let params = looked_at(slot)?;
        expect_type(stated, &params)?;
        let (of, at): (Vec<usize>, _) = (params.shape().extents().collect(), indices.extents());
        if of.is_empty() {
            return Err(Error::invalid_argument(
                "params must be at least 1 dimensional",
            ));
        }
        let rank = at.len() as i64;
        let n_batch = if n_batch < 0 { n_batch + rank } else { n_batch };
        let n_batch = usize::try_from(n_batch).ok();
        let n_batch = n_batch.filter(|n| *n <= at.len() && *n < of.len() && of[..*n] == at[..*n]);
        let n_batch = n_batch.ok_or_else(|| {
            let (of, at) = (extents(params.shape()), extents(&indices.shape));
            Error::invalid_argument(format!(
                "batch_dims: expected equal first extents of params {of} and indices {at}"
            ))
        })?;
        let n_rows = of[n_batch];
        let rows = indices.rows(n_rows)?;
        let of_batch = count(&at[n_batch..]);
        let starts = rows
            .iter()
            .enumerate()
            .map(|(offset, row)| offset / of_batch.max(1) * n_rows + row);
        let len = count(&of[n_batch + 1..]);
        let shape = [&of[..n_batch], &at[n_batch..], &of[n_batch + 1..]].concat();
        let allocator = execution.host().allocator();
        Ok(parts(allocator, &params, &shape, (starts, len))?.into())
    })
}

fn gather_nd(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let indices = Indices::of(call)?;
    let stated = call.attrs.dtype("dtype");
    look(call, move |slot, execution| {
        let params = looked_at(slot)?;
        expect_type(stated, &params)?;
        let (of, at): (Vec<usize>, _) = (params.shape().extents().collect(), indices.extents());
        let (slices, depth) = indices.slices(&of)?;
        if let Some(wrong) = slices.iter().position(Option::is_none) {
            return Err(indices.nowhere(wrong, depth, "param shape", params.shape()));
        }
        let starts = slices.iter().copied().flatten();
        let len = count(&of[depth..]);
        let shape = [&at[..at.len() - 1], &of[depth..]].concat();
        let allocator = execution.host().allocator();
        Ok(parts(allocator, &params, &shape, (starts, len))?.into())
    })
}

fn scatter(call: &mut TensorCall<'_>, update: Update) -> Result<Outputs, Error> {
    let (indices, updates) = (Indices::of(call)?, call.dense(2)?.clone());
    expect_stated(call, updates.dtype())?;
    let name = call.op.name;
    let slots = vec![slot(call, 0)?];
    let of = slots[0].clone();
    change(call, slots, move |execution| {
        let shape = expect_fits(&of, &updates)?;
        let own: Vec<usize> = shape.extents().collect();
        let Some((n_rows, row)) = own.split_first() else {
            return Err(Error::invalid_argument(
                "params must be at least 1 dimensional",
            ));
        };
        let expected = [&indices.extents()[..], row].concat();
        let is_one = updates.shape().rank() == 0;
        if !is_one && updates.shape().to_dims()[..] != expected[..] {
            let (found, at) = (extents(updates.shape()), extents(&indices.shape));
            let own = extents(&shape);
            return Err(Error::invalid_argument(format!(
                "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got updates.shape \
                 {found}, indices.shape {at}, params.shape {own}"
            )));
        }
        let rows = indices.rows(*n_rows)?;
        let len = count(row);
        apply(
            &of,
            execution.host().allocator(),
            name,
            update,
            (rows.into_iter().enumerate(), len),
            &updates,
        )
    })
}

fn scatter_nd(call: &mut TensorCall<'_>, update: Update) -> Result<Outputs, Error> {
    let (indices, updates) = (Indices::of(call)?, call.dense(2)?.clone());
    let skips = call.attrs.text("bad_indices_policy") == "IGNORE";
    let name = call.op.name;
    let slots = vec![slot(call, 0)?];
    let of = slots[0].clone();
    change(call, slots, move |execution| {
        let shape = expect_fits(&of, &updates)?;
        let own: Vec<usize> = shape.extents().collect();
        let at = indices.extents();
        let (slices, depth) = indices.slices(&own)?;
        let expected = [&at[..at.len() - 1], &own[depth..]].concat();
        if updates.shape().to_dims()[..] != expected[..] {
            let (found, at) = (extents(updates.shape()), extents(&indices.shape));
            let own = extents(&shape);
            return Err(Error::invalid_argument(format!(
                "Must have updates.shape = indices.shape[:-1] + params.shape[indices.shape[-1]:], got updates.shape \
                 {found}, indices.shape {at}, params.shape {own}"
            )));
        }
        if let Some(wrong) = slices.iter().position(Option::is_none).filter(|_| !skips) {
            return Err(indices.nowhere(wrong, depth, "shape", &shape));
        }
        let len = count(&own[depth..]);
        let slices = slices
            .into_iter()
            .enumerate()
            .filter_map(|(at, slice)| Some((at, slice?)));
        apply(
            &of,
            execution.host().allocator(),
            name,
            update,
            (slices, len),
            &updates,
        )
    })
}

/// Returns the extents of a variable, which is of the type of the updates.
fn expect_fits(of: &Slot, updates: &DenseHostTensor) -> Result<TensorShape, Error> {
    let own = of.get::<Variable>()?.metadata();
    let own = own.ok_or_else(|| missing(of))?;
    match own.dtype == updates.dtype() {
        true => Ok(own.shape),
        false => Err(Error::invalid_argument(format!(
            "expected updates of {}, as the variable is, found {}",
            own.dtype,
            updates.metadata()
        ))),
    }
}

/// Changes slices of a variable, `len` elements each: of each the number of its update, and its own.
fn apply(
    of: &Slot,
    allocator: &Arc<dyn HostAllocator>,
    name: &str,
    update: Update,
    (slices, len): (impl Iterator<Item = (usize, usize)>, usize),
    updates: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = updates.dtype();
    let is_one = updates.shape().rank() == 0 && len > 0;
    let reading = updates.read()?;
    if update == Update::Divide && dtype.is_integer() && reading_has_zero(updates)? {
        return Err(Error::invalid_argument("updates must not contain 0"));
    }
    if len == 0 {
        return Ok(AsyncValue::available(Chain));
    }
    let prepare = || {
        let target = of.get::<Variable>()?.prepare_rows(allocator)?;
        target.ok_or_else(|| missing(of))
    };
    if update == Update::Replace {
        let size = dtype.size_bytes().unwrap_or(1);
        let target = prepare()?;
        let mut writing = target.write()?;
        let (own, new) = (writing.bytes_mut(), reading.bytes());
        for (at, slice) in slices {
            let own = &mut own[slice * len * size..(slice + 1) * len * size];
            match is_one {
                true => own
                    .chunks_exact_mut(size)
                    .for_each(|one| one.copy_from_slice(new)),
                false => own.copy_from_slice(&new[at * len * size..(at + 1) * len * size]),
            }
        }
        return Ok(AsyncValue::available(Chain));
    }
    with_real!(dtype, T => {
        let target = prepare()?;
        let mut writing = target.write()?;
        let (own, new) = (writing.elements_mut::<T>()?, reading.elements::<T>()?);
        for (at, slice) in slices {
            let own = &mut own[slice * len..(slice + 1) * len];
            match is_one {
                true => own.iter_mut().for_each(|x| *x = update.of(*x, new[0])),
                false => {
                    for (x, y) in own.iter_mut().zip(&new[at * len..(at + 1) * len]) {
                        *x = update.of(*x, *y);
                    }
                }
            }
        }
        Ok(AsyncValue::available(Chain))
    }, else Err(unsupported(name, dtype)))
}

fn reading_has_zero(updates: &DenseHostTensor) -> Result<bool, Error> {
    let reading = updates.read()?;
    with_real!(updates.dtype(), T => {
        Ok(reading.elements::<T>()?.iter().any(|one| one.same(<T as tfrt_tensor::Element>::ZERO)))
    }, else Ok(false))
}
