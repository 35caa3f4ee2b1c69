//! Rows of products: of matrices and their like, convolutions, attention, recurrent networks.

use tfrt_bef::DType;

use crate::def::{AttrDef, AttrKind, Cost, ElementFamily, OpDef, ValueDef, When};
use crate::dim::{Dim, Dims};
use crate::fact::{Fact, unknown_dims};
use crate::infer::{Infer, InferCall, InferError, broadcast};
use crate::windows::Windows;

const X: ValueDef = ValueDef::var("x", "T");
const Y: ValueDef = ValueDef::var("y", "T");

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("dot", "The product of matrices, for each of a batch; the batches are broadcast. A vector is a matrix of one row, or column.")
        .inputs(&[ValueDef::var("a", "T"), ValueDef::var("b", "T")])
        .attrs(&[AttrDef::int("transpose_a", 0), AttrDef::int("transpose_b", 0)])
        .infer(Infer::By(dot))
        .elements(ElementFamily::Real)
        .cost(Cost::Fn(dot_cost)),
    OpDef::new("conv", "For each position of a window the products of its elements and those of each filter, summed; spread instead if `transposed`.")
        .inputs(&[X, ValueDef::var("filter", "T"), ValueDef::var("bias", "T").optional()])
        .results(&[Y.by_values()])
        .attrs(&[
            AttrDef::ints("kernel_shape"),
            AttrDef::ints("strides"),
            AttrDef::ints("dilations"),
            AttrDef::ints("pads"),
            AttrDef::text("auto_pad", "NOTSET"),
            AttrDef::int("groups", 1),
            AttrDef::int("transposed", 0),
            AttrDef::ints("output_padding").only(When::Set("transposed")),
            AttrDef::ints("output_shape").only(When::Set("transposed")),
        ])
        .infer(Infer::By(conv))
        .elements(ElementFamily::Float)
        .cost(Cost::Fn(conv_cost)),
    OpDef::new("attention", "For each query the values, weighted by the softmax of the query's products with the keys.")
        .inputs(&[
            ValueDef::var("query", "T"),
            ValueDef::var("key", "T"),
            ValueDef::any("value"),
            ValueDef::any("mask").optional(),
            ValueDef::any("past_key").optional(),
            ValueDef::any("past_value").optional(),
            ValueDef::set("lengths", &[DType::I64]).optional(),
        ])
        .results(&[
            Y,
            ValueDef::var("present_key", "T").optional(),
            ValueDef::any("present_value").optional(),
            ValueDef::var("scores", "T").optional(),
        ])
        .attrs(&[
            AttrDef::int("is_causal", 0),
            AttrDef::new("q_num_heads", AttrKind::Int),
            AttrDef::new("kv_num_heads", AttrKind::Int),
            AttrDef::new("scale", AttrKind::Float),
            AttrDef::float("softcap", 0.0),
            AttrDef::int("scores_mode", 0),
            AttrDef::new("softmax_precision", AttrKind::Int),
        ])
        .infer(Infer::By(attention))
        .elements(ElementFamily::Float)
        .cost(Cost::PerElement(256)),
    OpDef::new("rnn", "A recurrent network of the `kind` lstm, gru or rnn, over a sequence: all states, the last one, and the last cell.")
        .inputs(&[
            X,
            ValueDef::var("weights", "T"),
            ValueDef::var("recurrence", "T"),
            ValueDef::var("bias", "T").optional(),
            ValueDef::set("lengths", &[DType::I32]).optional(),
            ValueDef::var("initial_h", "T").optional(),
            ValueDef::var("initial_c", "T").optional(),
            ValueDef::var("peepholes", "T").optional(),
        ])
        .results(&[Y.optional(), ValueDef::var("last_h", "T").optional(), ValueDef::var("last_c", "T").optional()])
        .attrs(&[
            AttrDef::kind(&["lstm", "gru", "rnn"]),
            AttrDef::new("hidden_size", AttrKind::Int),
            AttrDef::text("direction", "forward"),
            AttrDef::int("layout", 0),
            AttrDef::new("activations", AttrKind::Texts),
            AttrDef::new("activation_alpha", AttrKind::Floats),
            AttrDef::new("activation_beta", AttrKind::Floats),
            AttrDef::new("clip", AttrKind::Float),
            AttrDef::int("input_forget", 0).only(When::Kind(&["lstm"])),
            AttrDef::int("linear_before_reset", 0).only(When::Kind(&["gru"])),
        ])
        .infer(Infer::By(rnn))
        .cost(Cost::PerElement(512)),
];

/// Returns the extents of a product of matrices, the operands taken as they are or transposed.
pub(crate) fn dot_dims(
    call: &InferCall<'_>,
    [left, right]: [&Fact; 2],
    [flips_left, flips_right]: [bool; 2],
) -> Result<Option<Dims>, InferError> {
    let (Some(a), Some(b)) = (&left.dims, &right.dims) else {
        return Ok(None);
    };
    let (m, n) = (a.len(), b.len());
    if m == 0 || n == 0 {
        return Err(call.error("expected operands of at least one dimension, found a scalar"));
    }
    let row = |flips: bool, rank: usize| if flips { rank - 1 } else { rank - 2 };
    // A vector has one dimension, which is summed over.
    let (rows, inner) = match m {
        1 => (None, &a[0]),
        _ => (Some(&a[row(flips_left, m)]), &a[row(!flips_left, m)]),
    };
    let (other, columns) = match n {
        1 => (&b[0], None),
        _ => (&b[row(flips_right, n)], Some(&b[row(!flips_right, n)])),
    };
    if let (Some(own), Some(other)) = (inner.value(), other.value())
        && own != other
    {
        return Err(call.error(format_args!(
            "expected as many columns as rows, found {own} and {other}"
        )));
    }
    let batch = |dims: &'_ Dims| dims.len().saturating_sub(2);
    let batches = broadcast(&[&a[..batch(a)], &b[..batch(b)]]);
    let mut dims = batches.map_err(|error| call.error(error))?;
    dims.extend(rows.cloned());
    dims.extend(columns.cloned());
    Ok(Some(dims))
}

fn dot(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let flips = ["transpose_a", "transpose_b"].map(|name| call.attrs.flag(name));
    let dims = dot_dims(call, [call.input(0), call.input(1)], flips)?;
    let dtype = call.input(0).dtype.or(call.input(1).dtype);
    call.give(0, dtype, dims);
    Ok(())
}

/// Returns the multiplications and additions of a product: the result's elements times the extent that is summed
/// over.
pub(crate) fn dot_cost(inputs: &[Option<Fact>], results: &[Fact]) -> Option<u64> {
    let dims = |index: usize| inputs.get(index)?.as_ref()?.dims.as_ref();
    let (a, b, y) = (dims(0)?, dims(1)?, results.first()?);
    let inner = match &a[..] {
        // Transposed or not, one of them is the rows of the result.
        [.., one, other] => {
            let y = y.dims.as_ref()?;
            let rows = y.get(y.len().checked_sub(b.len().min(2))?)?.value()?;
            let both = one.value()?.checked_mul(other.value()?)?;
            both.checked_div(rows).unwrap_or(0)
        }
        [one] => one.value()?,
        [] => return None,
    };
    multiplied(&[y.n_elements().value()?, inner])
}

fn multiplied(factors: &[i64]) -> Option<u64> {
    let mut factors = factors.iter();
    factors.try_fold(1u64, |product, factor| {
        product.checked_mul(u64::try_from(*factor).ok()?)
    })
}

/// Returns the extents of a convolution's result; `groups` is the attribute of their number.
pub(crate) fn conv_dims(
    call: &InferCall<'_>,
    x: &Fact,
    filter: &Fact,
    groups: &str,
) -> Result<Option<Dims>, InferError> {
    let stated = call.attrs.ints("kernel_shape");
    let rank = x
        .rank()
        .or(filter.rank())
        .or(stated.as_ref().map(|stated| stated.len() + 2));
    let Some(rank) = rank else {
        return Ok(None);
    };
    if rank < 2 || filter.rank().is_some_and(|own| own != rank) {
        let own = filter.rank().unwrap_or(rank);
        return Err(call.error(format_args!(
            "expected a filter of {rank} dimensions, at least 2, found {own}"
        )));
    }
    let n = rank - 2;
    if let Some(found) = stated
        .as_ref()
        .map(|stated| stated.len())
        .filter(|found| *found != n)
    {
        return Err(call.error(format_args!(
            "expected a window of {n} dimensions, found {found}"
        )));
    }
    let transposed = call.attrs.flag("transposed");
    let groups = call.attrs.int(groups).unwrap_or(1);
    let (channels, depth) = match transposed {
        true => (x.dim(1), filter.dim(0)),
        false => (x.dim(1), &filter.dim(1) * &Dim::Known(groups)),
    };
    if let (Some(channels), Some(depth)) = (channels.value(), depth.value())
        && channels != depth
    {
        return Err(call.error(format_args!(
            "expected filters for {channels} channels, found some for {depth} in {groups} groups"
        )));
    }
    let mut dims = Dims::with_capacity(rank);
    dims.push(x.dim(0));
    dims.push(match transposed {
        true => &filter.dim(1) * &Dim::Known(groups),
        false => filter.dim(0),
    });
    let spatial: Dims = (2..rank).map(|at| x.dim(at)).collect();
    let mut kernel: Dims = (2..rank).map(|at| filter.dim(at)).collect();
    for (own, stated) in kernel
        .iter_mut()
        .zip(stated.iter().flat_map(|stated| stated.iter()))
    {
        match own.value() {
            Some(own) if own != *stated => {
                return Err(call.error(format_args!("expected a window of {own}, found {stated}")));
            }
            _ => *own = Dim::Known(*stated),
        }
    }
    let windows = Windows::new(call, &kernel)?;
    dims.extend(
        match call.attrs.ints("output_shape").filter(|_| transposed) {
            Some(stated) if stated.len() == n => stated.iter().map(|n| Dim::Known(*n)).collect(),
            Some(_) => unknown_dims(n),
            None if transposed => {
                let added = call.attrs.ints("output_padding");
                windows.transposed(&spatial, added.as_deref().unwrap_or(&[]))
            }
            None => {
                windows.expect_within(call, &spatial)?;
                windows.outputs(&spatial)
            }
        },
    );
    Ok(Some(dims))
}

fn conv(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dims = conv_dims(call, call.input(0), call.input(1), "groups")?;
    let dtype = call.input(0).dtype.or(call.input(1).dtype);
    call.give(0, dtype, dims);
    Ok(())
}

/// Returns the multiplications and additions of a convolution: the result's elements times those of one filter.
fn conv_cost(inputs: &[Option<Fact>], results: &[Fact]) -> Option<u64> {
    let filter = inputs.get(1)?.as_ref()?.dims.as_ref()?;
    let own = crate::fact::product(filter.get(1..)?).value()?;
    multiplied(&[results.first()?.n_elements().value()?, own])
}

/// Infers attention. Queries, keys and values of rank 4 are (batch, heads, length, size), of rank 3 (batch, length,
/// heads * size).
fn attention(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let (query, key, value) = (
        call.input(0).clone(),
        call.input(1).clone(),
        call.input(2).clone(),
    );
    let heads = |name: &str| call.attrs.int(name).map_or(Dim::Unknown, Dim::Known);
    let (q_heads, kv_heads) = match query.rank() {
        Some(4) => (query.dim(1), key.dim(1)),
        Some(3) => (heads("q_num_heads"), heads("kv_num_heads")),
        _ => (Dim::Unknown, Dim::Unknown),
    };
    // Length and size of each head.
    let parts = |fact: &Fact, heads: &Dim| match fact.rank() {
        Some(4) => (fact.dim(2), fact.dim(3)),
        _ => (fact.dim(1), fact.dim(2).exact_div(heads)),
    };
    let (k_length, k_size) = parts(&key, &kv_heads);
    let (v_length, v_size) = parts(&value, &kv_heads);
    let past = |at: usize| match call.has(at) {
        true => call.input(at).dim(2),
        false => Dim::Known(0),
    };
    let (k_total, v_total) = (&past(4) + &k_length, &past(5) + &v_length);
    let batch = query.dim(0);
    let four = |list: [Dim; 4]| Some(list.into_iter().collect::<Dims>());
    let (dims, q_length) = match query.rank() {
        Some(4) => (
            four([batch.clone(), q_heads.clone(), query.dim(2), v_size.clone()]),
            query.dim(2),
        ),
        Some(3) => {
            let list = [batch.clone(), query.dim(1), &q_heads * &v_size];
            (Some(list.into_iter().collect()), query.dim(1))
        }
        _ => (None, Dim::Unknown),
    };
    call.give(0, query.dtype, dims);
    call.give(
        1,
        key.dtype,
        four([batch.clone(), kv_heads.clone(), k_total.clone(), k_size]),
    );
    call.give(
        2,
        value.dtype,
        four([batch.clone(), kv_heads, v_total, v_size]),
    );
    call.give(3, query.dtype, four([batch, q_heads, q_length, k_total]));
    Ok(())
}

/// Infers a recurrent network. `x` is (length, batch, size), or (batch, length, size) if `layout` is 1.
fn rnn(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let (x, recurrence) = (call.input(0), call.input(2));
    let dtype = x.dtype.or(recurrence.dtype);
    let directions = Dim::Known(match call.attrs.text("direction") {
        "bidirectional" => 2,
        _ => 1,
    });
    let hidden = match call.attrs.int("hidden_size") {
        Some(size) => Dim::Known(size),
        None => recurrence.dim(2),
    };
    let is_batch_first = call.attrs.int("layout") == Some(1);
    let (length, batch) = match is_batch_first {
        true => (x.dim(1), x.dim(0)),
        false => (x.dim(0), x.dim(1)),
    };
    let (all, last) = match is_batch_first {
        true => (
            vec![batch.clone(), length, directions.clone(), hidden.clone()],
            vec![batch, directions, hidden],
        ),
        false => (
            vec![length, directions.clone(), batch.clone(), hidden.clone()],
            vec![directions, batch, hidden],
        ),
    };
    call.give(0, dtype, Some(all.into_iter().collect()));
    for index in 1..call.out.len() {
        call.give(index, dtype, Some(last.iter().cloned().collect()));
    }
    Ok(())
}
