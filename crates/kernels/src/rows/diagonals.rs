//! Kernels on diagonals of matrices: matrices made of them, diagonals taken and replaced, and bands.

use smallvec::{SmallVec, smallvec};
use tfrt_host::Error;
use tfrt_ops::tf::diagonals::{Diagonals, alignment, of_diagonals, of_matrix};
use tfrt_tensor::op::{Outputs, TensorCall, TensorKernel};
use tfrt_tensor::{Dims, Tensor};

use super::of_call;
use super::rearrange::{ElementSource, copied_from, copied_from_one, position};
use super::tensors::{extents, integers};

pub(super) const KERNELS: &[TensorKernel] = &[
    TensorKernel::new("tf.Diag", diagonal),
    TensorKernel::new("tf.DiagPart", diagonal_part),
    TensorKernel::new("tf.MatrixBandPart", band),
    TensorKernel::new("tf.MatrixDiagPartV3", diagonals_part),
    TensorKernel::new("tf.MatrixDiagV3", diagonals),
    TensorKernel::new("tf.MatrixSetDiagV3", set_diagonals),
];

fn band(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let x = call.tensor(0)?;
    let own = extents(x);
    let side = |index: usize| match integers(call, index)?[..] {
        // All of it.
        [n] if n < 0 => Ok(usize::MAX),
        [n] => Ok(usize::try_from(n).unwrap_or(usize::MAX)),
        _ => Err(call.error(format_args!("operand {index}: expected one integer"))),
    };
    let (lower, upper) = (side(1)?, side(2)?);
    let n = own.len();
    copied_from_one(call, x, &own, |at| {
        let (row, column) = (at[n - 2], at[n - 1]);
        let is_inside = row.saturating_sub(column) <= lower && column.saturating_sub(row) <= upper;
        is_inside.then(|| position(&own, at.iter().copied()))
    })
}

fn diagonal(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let x = call.tensor(0)?;
    let own = extents(x);
    let result: Dims = own.iter().chain(&own).copied().collect();
    copied_from_one(call, x, &result, |at| {
        let (first, second) = at.split_at(own.len());
        (first == second).then(|| position(&own, first.iter().copied()))
    })
}

fn diagonal_part(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let x = call.tensor(0)?;
    let own = extents(x);
    let result = Dims::from_slice(&own[..own.len() / 2]);
    copied_from_one(call, x, &result, |at| {
        Some(position(&own, at.iter().chain(at).copied()))
    })
}

/// Returns the integers that `k` states, an operand that may be left out.
fn stated_k(call: &TensorCall<'_>, index: usize) -> Result<Option<SmallVec<[i64; 8]>>, Error> {
    match call.operands.get(index) {
        Some(_) => integers(call, index).map(Some),
        None => Ok(None),
    }
}

/// Returns the extents of an operand's matrices.
fn matrix(call: &TensorCall<'_>, extents: &[usize]) -> Result<[i64; 2], Error> {
    match extents {
        // An extent of a shape fits 63 bits.
        [.., rows, columns] => Ok([*rows as i64, *columns as i64]),
        _ => Err(call.error(format_args!("expected matrices, found {extents:?}"))),
    }
}

/// Returns the padding of shorter diagonals: the operand, or 0.
fn padding(call: &TensorCall<'_>, index: usize) -> Result<(Tensor, bool), Error> {
    match call.operands.get(index) {
        Some(padding) if padding.metadata().shape.n_elements() == Some(1) => {
            Ok((padding.clone(), true))
        }
        Some(padding) => {
            let found = padding.metadata();
            Err(call.error(format_args!(
                "operand {index}: expected one element, found {found}"
            )))
        }
        None => Ok((call.tensor(0)?.clone(), false)),
    }
}

/// Returns the coordinates of a batch, then two of a matrix or of diagonals; of a single diagonal the first of these
/// is left out.
fn inner(batch: &[usize], [first, second]: [i64; 2], is_one: bool) -> Option<SmallVec<[usize; 6]>> {
    let mut all = SmallVec::from_slice(batch);
    if !is_one {
        all.push(usize::try_from(first).ok()?);
    }
    all.push(usize::try_from(second).ok()?);
    Some(all)
}

/// Splits coordinates into those of the batch, and two of a matrix.
fn of_cell(at: &[usize]) -> (&[usize], [i64; 2]) {
    let (batch, cell) = at.split_at(at.len() - 2);
    // A coordinate is less than an extent.
    (batch, [cell[0] as i64, cell[1] as i64])
}

fn diagonals(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let x = call.tensor(0)?;
    let own = extents(x);
    let k = stated_k(call, 1)?;
    let count = |index: usize| match stated_k(call, index)?.as_deref() {
        None => Ok(-1),
        Some([n]) => Ok(*n),
        Some(_) => Err(call.error(format_args!("operand {index}: expected one integer"))),
    };
    // An extent of a shape fits 63 bits.
    let longest = own.last().map_or(0, |extent| *extent as i64);
    let all = of_diagonals(&call.attrs, k.as_deref(), longest, [count(2)?, count(3)?])
        .map_err(of_call(call))?;
    let is_one = all.n() == 1;
    let n_own = if is_one { 1 } else { 2 };
    let stated = own.len().checked_sub(n_own).filter(|n_batch| {
        is_one || i64::try_from(own[*n_batch]).is_ok_and(|found| found == all.n())
    });
    let n_batch = stated.ok_or_else(|| {
        let n = all.n();
        call.error(format_args!("expected {n} diagonals, found {own:?}"))
    })?;
    let mut result = Dims::from_slice(&own[..n_batch]);
    for extent in [all.rows, all.columns] {
        result.push(usize::try_from(extent).unwrap_or(0));
    }
    let (padding, is_padded) = padding(call, 4)?;
    let found = copied_from(call, [x, &padding], &result, |at| {
        let (batch, [row, column]) = of_cell(at);
        let place = all.place(row, column);
        match place.and_then(|place| inner(batch, place, is_one)) {
            Some(place) => ElementSource::First(position(&own, place)),
            None if is_padded => ElementSource::Second(0),
            None => ElementSource::Zero,
        }
    })?;
    Ok(smallvec![found])
}

/// Returns the diagonals of an operand's matrices, and the extents of a tensor of them.
fn of_operand(call: &TensorCall<'_>, k: usize) -> Result<(Diagonals, Dims), Error> {
    let own = extents(call.tensor(0)?);
    let cell = matrix(call, &own)?;
    alignment(&call.attrs).map_err(of_call(call))?;
    let all = of_matrix(&call.attrs, stated_k(call, k)?.as_deref(), cell).map_err(of_call(call))?;
    let mut result = Dims::from_slice(&own[..own.len() - 2]);
    if all.n() != 1 {
        result.push(usize::try_from(all.n()).unwrap_or(0));
    }
    result.push(usize::try_from(all.longest()).unwrap_or(0));
    Ok((all, result))
}

fn diagonals_part(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let x = call.tensor(0)?;
    let own = extents(x);
    let (all, result) = of_operand(call, 1)?;
    let is_one = all.n() == 1;
    let (padding, is_padded) = padding(call, 2)?;
    let found = copied_from(call, [x, &padding], &result, |at| {
        let (batch, place) = at.split_at(own.len() - 2);
        // A coordinate is less than an extent.
        let element = match *place {
            [place] => all.element(0, place as i64),
            [index, place] => all.element(index as i64, place as i64),
            _ => None,
        };
        match element.and_then(|cell| inner(batch, cell, false)) {
            Some(cell) => ElementSource::First(position(&own, cell)),
            None if is_padded => ElementSource::Second(0),
            None => ElementSource::Zero,
        }
    })?;
    debug_assert!(is_one || result.len() == own.len());
    Ok(smallvec![found])
}

fn set_diagonals(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let (x, diagonal) = (call.tensor(0)?, call.tensor(1)?);
    let own = extents(x);
    let (all, wanted) = of_operand(call, 2)?;
    let found = extents(diagonal);
    if found != wanted {
        return Err(call.error(format_args!(
            "expected diagonals of {wanted:?}, found {found:?}"
        )));
    }
    let is_one = all.n() == 1;
    let found = copied_from(call, [x, diagonal], &own, |at| {
        let (batch, [row, column]) = of_cell(at);
        let place = all.place(row, column);
        match place.and_then(|place| inner(batch, place, is_one)) {
            Some(place) => ElementSource::Second(position(&wanted, place)),
            None => ElementSource::First(position(&own, at.iter().copied())),
        }
    })?;
    Ok(smallvec![found])
}
