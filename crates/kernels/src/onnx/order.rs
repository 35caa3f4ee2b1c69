//! Operations on order: sorting, top k, non-zero elements, unique elements, running sums.

use std::cmp::Ordering;

use tfrt_host::{AsyncValue, Chain, Error};
use tfrt_tensor::math::Family;
use tfrt_tensor::math::cumulative::{Cumulation, ScanOrder, cumulative_into};
use tfrt_tensor::math::layout_copy::{LayoutCopy, gather_elements_into};
use tfrt_tensor::math::select::{Sortable, Unique, coordinates_into, unique_by};
use tfrt_tensor::math::top_k::{TopKOrder, top_k_positions_into};
use tfrt_tensor::{Bool, DType, DenseHostTensor, Tensor};

use super::dispatch::with_number;
use super::opaque::{count, extents, reshaped, retyped};
use super::shape::to_i64;
use super::{NodeCall, Operations, Outputs};

/// Runs code with the Rust type of an element type that can be sorted: a number or a truth value.
macro_rules! with_sortable {
    ($dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        match $dtype {
            DType::I1 => {
                type $T = Bool;
                $body
            }
            other => with_number!(other, $T => $body, else $other),
        }
    };
}

pub(super) const OPERATIONS: &Operations = &[
    ("cumulative", cumulative),
    ("nonzero", non_zero),
    ("sort", sort),
    ("top_k", top_k),
    ("unique", unique),
];

/// `TopK(x, k)`, attributes `axis`, `largest`, `sorted`: elements and their positions, always sorted.
fn top_k(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let shape = x.shape().to_dims();
    let axis = node.axis(node.attributes.integer_or("axis", -1)?, shape.len())?;
    let k = match node.inputs.has(1) {
        true => node.inputs.integer(1)?,
        false => node
            .attributes
            .integer("k")?
            .ok_or_else(|| node.attributes.missing("k"))?,
    };
    let k = usize::try_from(k)
        .ok()
        .filter(|k| *k <= shape[axis])
        .ok_or_else(|| {
            node.error(format_args!(
                "expected a k from 0 to {}, found {k}",
                shape[axis]
            ))
        })?;
    let which = match node.attributes.flag("largest", true)? {
        true => TopKOrder::Largest,
        false => TopKOrder::Smallest,
    };
    node.inputs.expect(0, Family::Reals)?;
    first_of(node, [x, x], axis, k, which)
}

/// `sort(x)`, attributes `axis`, `descending`: a stable sort, in which NaN is the largest.
fn sort(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let shape = x.shape().to_dims();
    let axis = node.axis(node.attributes.integer_or("axis", -1)?, shape.len())?;
    let which = match node.attributes.flag("descending", false)? {
        true => TopKOrder::Largest,
        false => TopKOrder::Smallest,
    };
    // Truth values have the order of the bytes that they are.
    let bytes;
    let keys = match x.dtype() {
        DType::I1 => {
            bytes = retyped(x, DType::Ui8)?;
            &bytes
        }
        _ => {
            node.inputs.expect(0, Family::Reals)?;
            x
        }
    };
    first_of(node, [keys, x], axis, shape[axis], which)
}

/// Returns the `k` elements of `x` along an axis whose keys come first, and their positions.
fn first_of(
    node: &NodeCall<'_>,
    [keys, x]: [&DenseHostTensor; 2],
    axis: usize,
    k: usize,
    which: TopKOrder,
) -> Result<Outputs, Error> {
    let mut shape = x.shape().to_dims();
    let extent = std::mem::replace(&mut shape[axis], k);
    let positions = node.output(DType::I64, &shape)?;
    // Each thread sorts a row: elements, of 8 bytes at most, and their places.
    let n_rows = x.n_elements().checked_div(extent).unwrap_or(0);
    let n_threads = node.execution.request().queue().parallelism() + 1;
    node.workspace.reserve(
        n_rows.min(n_threads).saturating_mul(extent),
        2 * size_of::<usize>(),
    )?;
    let chain = top_k_positions_into(node.execution, which, keys, axis, &positions)?;
    if let Some(Ok(_)) = chain.get() {
        return Ok(node
            .picked(&Tensor::from(x.clone()), axis, &positions)?
            .and_tensor(positions));
    }
    // Elements are taken when their positions are there.
    let out = node.output(x.dtype(), &shape)?;
    let (execution, x, to, from) = (
        node.execution.clone(),
        x.clone(),
        out.clone(),
        positions.clone(),
    );
    let (chain, positions_chain) = shared(chain);
    let taken = chain.and_then_value(move |_| {
        gather_elements_into(&execution, &x, axis, &from, &to)
            .unwrap_or_else(AsyncValue::from_error)
    });
    Ok(Outputs::later(out, taken).and_later(positions, positions_chain))
}

/// Returns two handles of one value.
fn shared(chain: AsyncValue<Chain>) -> (AsyncValue<Chain>, AsyncValue<Chain>) {
    (chain.clone(), chain)
}

/// `cumulative(x, axis)`: the running sum along an axis, or the running product, as `kind` says.
fn cumulative(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let cumulation_of = match node.kind()? {
        "sum" => Cumulation::Sum,
        "prod" => Cumulation::Product,
        other => return Err(node.unknown_kind(other, "sum or prod")),
    };
    let (x, axis, order) = cumulation(node)?;
    let out = node.output(x.dtype(), &x.shape().to_dims())?;
    node.inputs.expect(0, Family::Numbers)?;
    let chain = cumulative_into(node.execution, cumulation_of, x, axis, order, &out)?;
    Ok(Outputs::later(out, chain))
}

fn cumulation<'a>(
    node: &NodeCall<'a>,
) -> Result<(&'a tfrt_tensor::DenseHostTensor, usize, ScanOrder), Error> {
    let x = node.inputs.dense(0)?;
    let axis = node.axis(node.inputs.integer(1)?, x.shape().rank())?;
    let order = ScanOrder {
        exclusive: node.attributes.flag("exclusive", false)?,
        reverse: node.attributes.flag("reverse", false)?,
    };
    Ok((x, axis, order))
}

/// `NonZero(x)`: the coordinates of non-zero elements, a row for each dimension.
fn non_zero(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.tensor(0)?;
    let Tensor::String(strings) = x else {
        let x = x.as_dense()?;
        let reading = x.read()?;
        return with_sortable!(x.dtype(), T => {
            let elements = reading.elements::<T>()?;
            coordinates(node, &x.shape().to_dims(), elements.len(), &|index| !elements[index].is_zero())
        }, else Err(node.inputs.unsupported(0, x.dtype())));
    };
    let strings = strings.strings();
    coordinates(node, &extents(x), strings.len(), &|index| {
        !strings[index].is_empty()
    })
}

/// Returns the coordinates of the elements that are selected.
fn coordinates(
    node: &NodeCall<'_>,
    extents: &[usize],
    n_elements: usize,
    is_wanted: &dyn Fn(usize) -> bool,
) -> Result<Outputs, Error> {
    let n_wanted = (0..n_elements).filter(|index| is_wanted(*index)).count();
    let out = node.output(DType::I64, &[extents.len(), n_wanted])?;
    coordinates_into(extents, n_elements, is_wanted, out.write()?.elements_mut()?);
    Ok(out.into())
}

/// `Unique(x)`, attributes `axis`, `sorted`: unique elements, their first positions, the index of each element among
/// them, and their counts; of slices along an axis, or of all elements.
fn unique(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.tensor(0)?;
    let flat;
    let (x, axis) = match node.attributes.integer("axis")? {
        Some(axis) => (x, node.axis(axis, extents(x).len())?),
        None => {
            flat = reshaped(x, &[count(&extents(x))])?;
            (&flat, 0)
        }
    };
    let is_sorted = node.attributes.flag("sorted", true)?;
    let shape = extents(x);
    // Elements of slice `s`: outer, then inner.
    let inner = count(&shape[axis + 1..]);
    let n_outer = count(&shape[..axis]);
    let n_slices = shape[axis];
    node.expect_slices(&shape, n_slices)?;
    node.workspace.reserve(n_slices, Unique::BYTES_PER_THING)?;
    let places = |slice: usize| {
        let start = move |outer: usize| (outer * n_slices + slice) * inner;
        let n_outer = if inner == 0 { 0 } else { n_outer };
        (0..n_outer).flat_map(move |outer| start(outer)..start(outer) + inner)
    };
    let found = match x {
        Tensor::String(strings) => {
            let strings = strings.strings();
            unique_by(n_slices, is_sorted, &|a, b| {
                let pairs = places(a).zip(places(b));
                first_difference(pairs.map(|(a, b)| strings[a].cmp(&strings[b])))
            })
        }
        _ => {
            let x = x.as_dense()?;
            let reading = x.read()?;
            with_sortable!(x.dtype(), T => {
                let elements = reading.elements::<T>()?;
                unique_by(n_slices, is_sorted, &|a, b| {
                    let pairs = places(a).zip(places(b));
                    first_difference(pairs.map(|(a, b)| elements[a].order(elements[b])))
                })
            }, else return Err(node.inputs.unsupported(0, x.dtype())))
        }
    };
    let list = |numbers: &[usize]| -> Result<_, Error> {
        let out = node.output(DType::I64, &[numbers.len()])?;
        for (out, number) in out.write()?.elements_mut()?.iter_mut().zip(numbers) {
            *out = to_i64(*number);
        }
        Ok(out)
    };
    let firsts = list(&found.firsts)?;
    let movement = LayoutCopy::gather(&shape, axis, &firsts.read()?.view::<i64>()?)?;
    let mut outputs = Outputs::new();
    outputs.push(node.moved(x, &movement)?);
    Ok(outputs
        .and_tensor(firsts)
        .and_tensor(list(&found.kinds)?)
        .and_tensor(list(&found.counts)?))
}

fn first_difference(mut orders: impl Iterator<Item = Ordering>) -> Ordering {
    orders
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}
