//! Rows on diagonals of matrices: matrices made of them, diagonals taken and replaced, and bands.

use tfrt_bef::DType;

use super::{dims_text, text};
use crate::Attrs;
use crate::def::{AttrDef, OpDef, ValueDef};
use crate::dim::{Dim, Dims};
use crate::fact::{Fact, unknown_dims};
use crate::infer::{Infer, InferCall, InferError};

const X: ValueDef = ValueDef::var("x", "T");
const Y: ValueDef = ValueDef::var("y", "T");
const INDEX: &[DType] = &[DType::I32, DType::I64];
const K: ValueDef = ValueDef::set("k", INDEX).optional();
const ALIGN: AttrDef = AttrDef::text("align", "RIGHT_LEFT");

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("tf.Diag", "A tensor of twice the dimensions, with the elements where both halves of its coordinates are the same, 0 elsewhere.")
        .inputs(&[X])
        .infer(Infer::By(doubled)),
    OpDef::new("tf.DiagPart", "The elements where both halves of the coordinates are the same.")
        .inputs(&[X])
        .infer(Infer::By(halved)),
    OpDef::new("tf.MatrixBandPart", "Matrices without what lies more than so many places below or above the diagonal, 0 there; all is kept on a side whose number is negative.")
        .inputs(&[X, ValueDef::set("num_lower", INDEX), ValueDef::set("num_upper", INDEX)])
        .infer(Infer::By(band)),
    OpDef::new("tf.MatrixDiagV3", "Matrices of these diagonals, from the one at `k` (two numbers: from the first to the second) on; elsewhere `padding_value`. Shorter ones lie as `align` says: that of those above, then of those below.")
        .inputs(&[
            X,
            K,
            ValueDef::set("num_rows", INDEX).optional(),
            ValueDef::set("num_cols", INDEX).optional(),
            ValueDef::var("padding_value", "T").optional(),
        ])
        .results(&[Y.by_values()])
        .attrs(&[ALIGN])
        .infer(Infer::By(made)),
    OpDef::new("tf.MatrixDiagPartV3", "Diagonals of matrices, as `tf.MatrixDiagV3` takes them.")
        .inputs(&[X, K, ValueDef::var("padding_value", "T").optional()])
        .results(&[Y.by_values()])
        .attrs(&[ALIGN])
        .infer(Infer::By(taken)),
    OpDef::new("tf.MatrixSetDiagV3", "Matrices with diagonals replaced by others, as `tf.MatrixDiagV3` takes them.")
        .inputs(&[X, ValueDef::var("diagonal", "T"), K])
        .attrs(&[ALIGN])
        .infer(Infer::By(replaced)),
];

/// A band of diagonals of matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Diagonals {
    /// The number of rows of the matrices.
    pub rows: i64,
    /// The number of columns of the matrices.
    pub columns: i64,
    /// The lowest diagonal: 0 is the main one, below 0 are those below it.
    pub lower: i64,
    /// The highest diagonal.
    pub upper: i64,
    /// Whether diagonals above the main one, and those below, are aligned to the left.
    pub are_left: [bool; 2],
}

impl Diagonals {
    /// Returns the number of diagonals.
    pub fn n(&self) -> i64 {
        self.upper - self.lower + 1
    }

    /// Returns the length of a diagonal.
    pub fn len(&self, diagonal: i64) -> i64 {
        (self.rows + diagonal.min(0)).min(self.columns - diagonal.max(0))
    }

    /// Returns whether the diagonals have no elements.
    pub fn is_empty(&self) -> bool {
        self.longest() == 0
    }

    /// Returns the length of the longest diagonal.
    pub fn longest(&self) -> i64 {
        (self.rows + self.upper.min(0)).min(self.columns - self.lower.max(0))
    }

    /// Returns the position at which the elements of a diagonal begin in a row as long as the longest one.
    pub fn offset(&self, diagonal: i64) -> i64 {
        let [above, below] = self.are_left;
        let is_left = (diagonal >= 0 && above) || (diagonal <= 0 && below);
        match is_left {
            true => 0,
            false => self.longest() - self.len(diagonal),
        }
    }

    /// Returns the diagonal, the highest first, and the position in it of an element of a matrix, if it is on one of
    /// them.
    pub fn place(&self, row: i64, column: i64) -> Option<[i64; 2]> {
        let diagonal = column - row;
        let is_there = (self.lower..=self.upper).contains(&diagonal);
        is_there.then(|| {
            let along = column - diagonal.max(0);
            [self.upper - diagonal, along + self.offset(diagonal)]
        })
    }

    /// Returns the row and the column of an element of a diagonal, the highest first; `None` for padding.
    pub fn element(&self, index: i64, place: i64) -> Option<[i64; 2]> {
        let diagonal = self.upper - index;
        let along = place - self.offset(diagonal);
        let is_there = along >= 0 && along < self.len(diagonal);
        is_there.then(|| [along - diagonal.min(0), along + diagonal.max(0)])
    }
}

/// Returns the first and the last diagonal that `k` states: one, or two in order.
///
/// # Errors
///
/// If it states something else. What is said does not name the operation.
pub fn bounds(k: Option<&[i64]>) -> Result<[i64; 2], InferError> {
    // What is further away is outside of any matrix.
    let fits = |k: i64| i32::try_from(k).is_ok();
    match k {
        None => Ok([0, 0]),
        Some(&[k]) if fits(k) => Ok([k, k]),
        Some(&[lower, upper]) if lower <= upper && fits(lower) && fits(upper) => Ok([lower, upper]),
        Some(found) => Err(InferError::new(format!(
            "expected one diagonal of 32 bits or a lower and an upper one, found {found:?}"
        ))),
    }
}

/// Returns whether diagonals above the main one, and those below, are aligned to the left, by the attribute `align`.
///
/// # Errors
///
/// If it says something else. What is said does not name the operation.
pub fn alignment(attrs: &Attrs<'_>) -> Result<[bool; 2], InferError> {
    match attrs.text("align") {
        "LEFT_LEFT" => Ok([true, true]),
        "LEFT_RIGHT" => Ok([true, false]),
        "" | "RIGHT_LEFT" => Ok([false, true]),
        "RIGHT_RIGHT" => Ok([false, false]),
        found => Err(InferError::new(format!(
            "expected attribute 'align' to be LEFT_LEFT, LEFT_RIGHT, RIGHT_LEFT or RIGHT_RIGHT, found '{}'",
            found.escape_debug()
        ))),
    }
}

/// Returns the diagonals of matrices of these extents.
///
/// # Errors
///
/// If there are no such ones. What is said does not name the operation.
pub fn of_matrix(
    attrs: &Attrs<'_>,
    k: Option<&[i64]>,
    [rows, columns]: [i64; 2],
) -> Result<Diagonals, InferError> {
    let [lower, upper] = bounds(k)?;
    // The main diagonal of an empty matrix is one.
    let has = |k: i64| (k > -rows && k < columns) || k == 0;
    if let Some(found) = [lower, upper].into_iter().find(|k| !has(*k)) {
        return Err(InferError::new(format!(
            "expected diagonals of matrices of {rows} rows and {columns} columns, found {found}"
        )));
    }
    Ok(Diagonals {
        rows,
        columns,
        lower,
        upper,
        are_left: alignment(attrs)?,
    })
}

/// Returns the diagonals of matrices that are made of such ones, the longest of this length. Rows or columns of -1
/// are as many as the diagonals need. Diagonals outside of the matrices have no elements there.
///
/// # Errors
///
/// If they don't fit. What is said does not name the operation.
pub fn of_diagonals(
    attrs: &Attrs<'_>,
    k: Option<&[i64]>,
    longest: i64,
    [rows, columns]: [i64; 2],
) -> Result<Diagonals, InferError> {
    let [lower, upper] = bounds(k)?;
    let least_rows = longest.saturating_sub(upper.min(0));
    let least_columns = longest.saturating_add(lower.max(0));
    let square = least_rows.max(least_columns);
    let [rows, columns] = match [rows, columns] {
        [-1, -1] => [square, square],
        [-1, columns] => [least_rows, columns],
        [rows, -1] => [rows, least_columns],
        both => both,
    };
    let is_enough = rows >= least_rows && columns >= least_columns;
    if !is_enough || (rows != least_rows && columns != least_columns) {
        return Err(InferError::new(format!(
            "expected {least_rows} rows or {least_columns} columns and no fewer of the other, found {rows} and {columns}"
        )));
    }
    Ok(Diagonals {
        rows,
        columns,
        lower,
        upper,
        are_left: alignment(attrs)?,
    })
}

/// Adds the operation to an error.
fn with_op_name<T>(call: &InferCall<'_>, result: Result<T, InferError>) -> Result<T, InferError> {
    result.map_err(|error| call.error(error))
}

/// Returns the integers that `k` states, if they are known.
fn stated(call: &InferCall<'_>, index: usize) -> Result<Option<Vec<i64>>, InferError> {
    if !call.has(index) {
        return Ok(Some(vec![0]));
    }
    if call.input(index).rank().is_some_and(|rank| rank > 1) {
        let found = text(call.input(index));
        return Err(call.error(format_args!(
            "operand {index}: expected one diagonal or two in a vector, found {found}"
        )));
    }
    let list = call.input(index).numbers();
    if let Some(list) = &list {
        with_op_name(call, bounds(Some(list)))?;
    }
    Ok(list)
}

fn expect_matrices(call: &InferCall<'_>) -> Result<(), InferError> {
    match &call.input(0).dims {
        Some(dims) if dims.len() < 2 => {
            Err(call.error(format_args!("expected matrices, found {}", dims_text(dims))))
        }
        _ => Ok(()),
    }
}

fn band(call: &mut InferCall<'_>) -> Result<(), InferError> {
    expect_matrices(call)?;
    let x = call.input(0).clone();
    for index in [1, 2] {
        if call
            .input(index)
            .n_elements()
            .value()
            .is_some_and(|n| n != 1)
        {
            let found = text(call.input(index));
            return Err(call.error(format_args!(
                "operand {index}: expected one integer, found {found}"
            )));
        }
        if let (Some([.., rows, columns]), Some(found)) =
            (x.dims.as_deref(), call.input(index).number())
        {
            let (extent, what) = if index == 1 {
                (rows, "rows")
            } else {
                (columns, "columns")
            };
            if let Some(extent) = extent.value().filter(|extent| found > *extent) {
                return Err(call.error(format_args!(
                    "operand {index}: expected a negative number or one up to {extent} {what}, found {found}"
                )));
            }
        }
    }
    call.give(0, x.dtype, x.dims);
    Ok(())
}

fn doubled(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0).clone();
    let dims = x
        .dims
        .map(|dims| dims.iter().chain(&dims).cloned().collect::<Dims>());
    if dims.as_ref().is_some_and(|dims| dims.is_empty()) {
        return Err(call.error("expected one dimension or more, found []"));
    }
    call.give(0, x.dtype, dims);
    Ok(())
}

fn halved(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0).clone();
    let Some(dims) = x.dims else {
        call.give(0, x.dtype, None);
        return Ok(());
    };
    let n = dims.len() / 2;
    let (first, second) = dims.split_at(n);
    let differs = |(own, other): (&Dim, &Dim)| {
        let both = own.value().zip(other.value());
        both.is_some_and(|(own, other)| own != other)
    };
    if n == 0 || first.len() != second.len() || first.iter().zip(second).any(differs) {
        return Err(call.error(format_args!(
            "expected two halves of the same extents, found {}",
            dims_text(&dims)
        )));
    }
    let known = |(own, other): (&Dim, &Dim)| match own.value() {
        Some(_) => own.clone(),
        None => other.clone(),
    };
    let dims = first.iter().zip(second).map(known).collect();
    call.give(0, x.dtype, Some(dims));
    Ok(())
}

fn made(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0).clone();
    with_op_name(call, alignment(&call.attrs))?;
    let k = stated(call, 1)?;
    for index in [2, 3, 4] {
        if call.has(index)
            && call
                .input(index)
                .n_elements()
                .value()
                .is_some_and(|n| n != 1)
        {
            let found = text(call.input(index));
            return Err(call.error(format_args!(
                "operand {index}: expected one element, found {found}"
            )));
        }
    }
    let (Some(dims), Some(k)) = (x.dims, k) else {
        call.give(0, x.dtype, None);
        return Ok(());
    };
    let [lower, upper] = with_op_name(call, bounds(Some(&k)))?;
    let n_own = if lower == upper { 1 } else { 2 };
    let n = upper - lower + 1;
    let Some(n_batch) = dims.len().checked_sub(n_own) else {
        return Err(call.error(format_args!(
            "expected {n} diagonals, found {}",
            dims_text(&dims)
        )));
    };
    if let Some(found) = dims[n_batch]
        .value()
        .filter(|found| n_own == 2 && *found != n)
    {
        return Err(call.error(format_args!("expected {n} diagonals, found {found}")));
    }
    let longest = dims.last().and_then(Dim::value);
    let stated = [2, 3].map(|index| match call.has(index) {
        true => call.input(index).number(),
        false => Some(-1),
    });
    let mut result: Dims = dims[..n_batch].iter().cloned().collect();
    match (longest, stated) {
        (Some(longest), [Some(rows), Some(columns)]) => {
            let diagonals = of_diagonals(&call.attrs, Some(&k), longest, [rows, columns]);
            let diagonals = with_op_name(call, diagonals)?;
            result.extend([diagonals.rows, diagonals.columns].map(Dim::Known));
        }
        _ => result.extend(unknown_dims(2)),
    }
    call.give(0, x.dtype, Some(result));
    Ok(())
}

/// Returns the extents of the diagonals of matrices.
fn extents(call: &InferCall<'_>, k: Option<&[i64]>) -> Result<Option<Dims>, InferError> {
    let (Some(dims), Some(k)) = (&call.input(0).dims, k) else {
        return Ok(None);
    };
    let [lower, upper] = with_op_name(call, bounds(Some(k)))?;
    let (batch, matrix) = dims.split_at(dims.len() - 2);
    let mut result: Dims = batch.iter().cloned().collect();
    if lower != upper {
        result.push(Dim::Known(upper - lower + 1));
    }
    result.push(match (matrix[0].value(), matrix[1].value()) {
        (Some(rows), Some(columns)) => Dim::Known(
            with_op_name(call, of_matrix(&call.attrs, Some(k), [rows, columns]))?.longest(),
        ),
        _ => Dim::Unknown,
    });
    Ok(Some(result))
}

fn taken(call: &mut InferCall<'_>) -> Result<(), InferError> {
    expect_matrices(call)?;
    with_op_name(call, alignment(&call.attrs))?;
    let k = stated(call, 1)?;
    let dims = extents(call, k.as_deref())?;
    if call.has(2) && call.input(2).n_elements().value().is_some_and(|n| n != 1) {
        let found = text(call.input(2));
        return Err(call.error(format_args!(
            "operand 2: expected one element, found {found}"
        )));
    }
    let dtype = call.input(0).dtype;
    call.give(0, dtype, dims);
    Ok(())
}

fn replaced(call: &mut InferCall<'_>) -> Result<(), InferError> {
    expect_matrices(call)?;
    with_op_name(call, alignment(&call.attrs))?;
    let k = stated(call, 2)?;
    let wanted = extents(call, k.as_deref())?;
    let (x, diagonal) = (call.input(0).clone(), call.input(1));
    let wanted = Fact::new(x.dtype, wanted);
    if call.agree(diagonal, &wanted).is_err() {
        let (wanted, found) = (text(&wanted), text(diagonal));
        return Err(call.error(format_args!(
            "expected diagonals of {wanted}, found {found}"
        )));
    }
    call.give(0, x.dtype, x.dims);
    Ok(())
}
