//! Products of matrices, and transpositions.

use tfrt_host::Error;
use tfrt_host::device::DeviceSlice;
use tfrt_tensor::op::{OpCall, OpResults};

use super::{
    axis_of, begin, broadcast_steps, dims, elements, float, number_of, queue, rearrange, row_major,
    scratch, size_of,
};
use crate::kernels::{self, Number, Product};

/// The most blocks along the second and third dimension of a grid.
const MOST_BLOCKS: usize = 65535;

pub(super) fn dot(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let (call, out, done) = begin(call)?;
    let (a, b) = (dims(call.input(0)?), dims(call.input(1)?));
    if a.is_empty() || b.is_empty() {
        return Err(call.error(format_args!("expected matrices, found a number")));
    }
    let transposed = [
        call.attrs.flag("transpose_a") && a.len() > 1,
        call.attrs.flag("transpose_b") && b.len() > 1,
    ];
    // A vector is a row on the left, a column on the right.
    let (a_batch, [a_rows, a_columns]) = match a.split_last_chunk::<2>() {
        Some((batch, last)) => (batch, *last),
        None => (&[][..], [1, a[0]]),
    };
    let (b_batch, [b_rows, b_columns]) = match b.split_last_chunk::<2>() {
        Some((batch, last)) => (batch, *last),
        None => (&[][..], [b[0], 1]),
    };
    let (m, k) = if transposed[0] {
        (a_columns, a_rows)
    } else {
        (a_rows, a_columns)
    };
    let n = if transposed[1] { b_rows } else { b_columns };
    let rank = a_batch.len().max(b_batch.len());
    let batch: Vec<usize> = (0..rank)
        .map(|at| {
            let of = |dims: &[usize]| (at + dims.len()).checked_sub(rank).map_or(1, |at| dims[at]);
            let (a, b) = (of(a_batch), of(b_batch));
            if a == 1 { b } else { a }
        })
        .collect();
    let n_batches: usize = batch.iter().product();
    let mut product = Product {
        n_batches,
        m,
        n,
        k,
        transposed,
        batched: [true; 2],
    };
    let is_one = |own: &[usize]| own.iter().product::<usize>() == 1;
    product.batched = [!is_one(a_batch), !is_one(b_batch)];
    // Rows of all batches are rows of one matrix, if all meet the same one.
    if product.batched == [true, false] && !transposed[0] {
        product = Product {
            n_batches: 1,
            m: m * n_batches,
            batched: [false; 2],
            ..product
        };
    }
    if product.n_batches > MOST_BLOCKS {
        return Err(call.error(format_args!(
            "{} matrices are more than a launch takes: {MOST_BLOCKS}",
            product.n_batches
        )));
    }
    let number = number_of(&out)?;
    let (c, x, y) = (
        elements(&out),
        elements(call.input(0)?),
        elements(call.input(1)?),
    );
    let (a_batch, b_batch) = (a_batch.to_vec(), b_batch.to_vec());
    let work = move || {
        let whole = |slice: DeviceSlice, own: &[usize], which: usize, each: usize| {
            let n_own: usize = own.iter().product();
            if !product.batched[which] || n_own == n_batches {
                return Ok::<_, Error>(slice);
            }
            // One of each batch, though some are the same.
            let repeated = scratch(&c, n_batches * each, number.size())?;
            let mut to = batch.clone();
            to.push(each);
            let mut own = own.to_vec();
            own.push(each);
            let steps = broadcast_steps(&own, &to);
            rearrange(number.size(), &repeated, &slice, &to, steps)?;
            Ok(repeated)
        };
        let is_folded = n_batches > 1 && product.n_batches == 1;
        let x = if is_folded {
            x
        } else {
            whole(x, &a_batch, 0, m * k)?
        };
        let y = whole(y, &b_batch, 1, k * n)?;
        kernels::dot(number, &c, &x, &y, product)
    };
    Ok(queue(&call, out, done, work))
}

/// Calculates a multiple of a product of two matrices, plus one of a third operand.
pub(super) fn gemm(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let (call, out, done) = begin(call)?;
    let (a, to) = (dims(call.input(0)?), dims(&out));
    let (&[rows, columns], &[m, n]) = (&a[..], &to[..]) else {
        return Err(call.error(format_args!("expected matrices, found {a:?}")));
    };
    let transposed = [call.attrs.flag("transA"), call.attrs.flag("transB")];
    let product = Product {
        n_batches: 1,
        m,
        n,
        k: if transposed[0] { rows } else { columns },
        transposed,
        batched: [false; 2],
    };
    let factors = [float(&call, "alpha"), float(&call, "beta")];
    let added = match call.input(2) {
        Ok(added) => Some((elements(added), broadcast_steps(&dims(added), &to))),
        Err(_) => None,
    };
    let (c, x, y) = (
        elements(&out),
        elements(call.input(0)?),
        elements(call.input(1)?),
    );
    let work = move || {
        if added.is_none() && factors[0].to_bits() == 1.0_f32.to_bits() {
            return kernels::dot(Number::F32, &c, &x, &y, product);
        }
        let made = scratch(&c, m * n, 4)?;
        kernels::dot(Number::F32, &made, &x, &y, product)?;
        let Some((added, steps)) = added else {
            let function = ("scale", Number::F32);
            return kernels::unary(function, &c, &made, m * n, Some([factors[0], 0.0]));
        };
        let dims = [1, 1, m, n];
        let steps = steps.into_iter().map(u32::try_from);
        let steps: Result<Vec<u32>, _> = steps.collect();
        let steps = steps.map_err(|_| Error::invalid_argument("elements are too far apart"))?;
        let steps = [0, 0, steps[0], steps[1]];
        let operands = [(&made, kernels::plain_steps(dims)), (&added, steps)];
        let function = ("sum_of", Number::F32);
        kernels::binary(function, (&c, 4), operands, dims, Some(factors))
    };
    Ok(queue(&call, out, done, work))
}

pub(super) fn transpose(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let (call, out, done) = begin(call)?;
    let from = dims(call.input(0)?);
    let order: Vec<usize> = match call.attrs.ints("perm").filter(|perm| !perm.is_empty()) {
        Some(perm) => perm
            .iter()
            .map(|axis| axis_of(&call, *axis, from.len()))
            .collect::<Result<_, _>>()?,
        None => (0..from.len()).rev().collect(),
    };
    let (to, own) = (dims(&out), row_major(&from));
    let steps: Vec<usize> = order.iter().map(|axis| own[*axis]).collect();
    let (y, x) = (elements(&out), elements(call.input(0)?));
    let size = size_of(&out)?;
    let matrices = matrices(&from, &order).filter(|_| size == 4);
    let work = move || match matrices {
        Some(extents) => kernels::transpose(&y, &x, extents),
        None => rearrange(size, &y, &x, &to, steps),
    };
    Ok(queue(&call, out, done, work))
}

/// Returns the extents of matrices whose rows and columns an order exchanges, if it does that: batches, rows, columns.
fn matrices(from: &[usize], order: &[usize]) -> Option<[usize; 3]> {
    let first = order
        .iter()
        .enumerate()
        .position(|(at, axis)| at != *axis)?;
    let split = order[first];
    let is_rotated = (split..order.len())
        .chain(first..split)
        .eq(order[first..].iter().copied());
    let product = |dims: &[usize]| dims.iter().product::<usize>();
    let extents = [
        product(&from[..first]),
        product(&from[first..split]),
        product(&from[split..]),
    ];
    let fits = extents[0] <= MOST_BLOCKS && extents[1].div_ceil(32) <= MOST_BLOCKS;
    (is_rotated && fits && extents[1] >= 16 && extents[2] >= 16).then_some(extents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_that_exchange_two_runs_are_transpositions() {
        assert_eq!(matrices(&[20, 30], &[1, 0]), Some([1, 20, 30]));
        assert_eq!(matrices(&[2, 16, 5, 30], &[0, 3, 1, 2]), Some([2, 80, 30]));
        assert_eq!(matrices(&[2, 16, 5, 30], &[0, 2, 1, 3]), None);
        assert_eq!(matrices(&[20, 30], &[0, 1]), None);
        assert_eq!(matrices(&[20, 3], &[1, 0]), None);
    }
}
