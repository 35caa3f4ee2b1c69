//! `Attention`, `QAttention` and `MultiHeadAttention`: queries, keys and values side by side, masks of several forms.
//!
//! They become the row `attention`. Masks are of numbers that are added to scores: `mask_filter_value` where a key is not
//! seen. They are lengths of rows, starts and ends of rows, or a number for each key, of each query.

use tfrt_ir::ValueId;

use super::super::integers;
use super::embedding::{as_i64, places};
use super::expansion::integer;
use super::pointwise::float;
use super::quantized::Product;
use super::{Expansion, Made, Refusal, wrong};

/// The operands from which the scores of an attention operator are computed.
struct Scores {
    queries: ValueId,
    keys: ValueId,
    values: ValueId,
    mask: Option<ValueId>,
    past: Option<[ValueId; 2]>,
}

pub(super) fn attention(here: &mut Expansion<'_>) -> Made {
    here.refuse(&[(6, "past_sequence_length")], &[])?;
    let (x, weights) = (here.needed(0, "input")?, here.needed(1, "weights")?);
    let columns = here.extent(weights, 1);
    let heads = heads(here)?;
    let has_sizes = super::node::ints(here.module, here.like, "qkv_hidden_sizes")
        .is_some_and(|sizes| !sizes.is_empty());
    if let Some(columns) =
        columns.filter(|columns| !has_sizes && columns % heads.saturating_mul(3) != 0)
    {
        return Err(wrong(format!(
            "attribute 'num_heads' is expected to divide a third of the {columns} columns of 'weights', found {heads}"
        )));
    }
    let product = here.add("MatMul", &[x, weights], &[]);
    let bias = here.input(2);
    let all = here.sum(product, &[bias]);
    let [mask, past, added] = [here.input(3), here.input(4), here.input(5)];
    projected(here, all, [mask, past, added])
}

pub(super) fn quantized(here: &mut Expansion<'_>) -> Made {
    let (a, b) = (here.needed(0, "input")?, here.needed(1, "weight")?);
    let (one, other) = (
        here.needed(3, "input_scale")?,
        here.needed(4, "weight_scale")?,
    );
    let scale = here.add("Mul", &[one, other], &[]);
    let [bias, a_zero, b_zero] = [here.input(2), here.input(6), here.input(7)];
    let product = Product {
        a,
        b,
        a_zero,
        b_zero,
        scale,
        bias,
    };
    let all = product.make(here);
    let [mask, past] = [here.input(5), here.input(8)];
    projected(here, all, [mask, past, None])
}

/// Appends attention of queries, keys and values that are side by side in one tensor.
fn projected(
    here: &mut Expansion<'_>,
    all: ValueId,
    [mask, past, bias]: [Option<ValueId>; 3],
) -> Made {
    here.refuse(&[], &["do_rotary", "past_present_share_buffer"])?;
    let heads = heads(here)?;
    let [queries, keys, values] = apart(here, all, heads)?;
    let past = past.map(|past| [here.picked(past, 0, 0), here.picked(past, 0, 1)]);
    let length = here.extents(all, 1, 2);
    let total = total(here, length, past);
    let mask = match mask {
        None => None,
        Some(mask) => Some(seen(here, mask, [all, length, total], true)?),
    };
    let mask = added(here, mask, bias, all);
    let scores = Scores {
        queries,
        keys,
        values,
        mask,
        past,
    };
    let made = attended(here, heads, &scores, None);
    let present = here.wants(1).then(|| {
        let parts = [made[1], made[2]].map(|part| here.unsqueezed(part, &[0]));
        here.list(&parts)
    });
    Ok(vec![Some(made[0]), present])
}

/// Appends thirds, or parts of the widths that an attribute states.
fn apart(here: &mut Expansion<'_>, all: ValueId, heads: i64) -> Result<[ValueId; 3], Refusal> {
    let sizes = super::node::ints(here.module, here.like, "qkv_hidden_sizes");
    let axis = ("axis", integer(-1));
    let parts = match sizes.filter(|sizes| !sizes.is_empty()) {
        None => {
            if let Some(width) = here
                .last_extent(all)
                .filter(|width| width % heads.saturating_mul(3) != 0)
            {
                return Err(wrong(format!(
                    "attribute 'num_heads' is expected to divide a third of {width}, found {heads}"
                )));
            }
            here.rows("split", &[all], &[axis, ("n", integer(3))], 3)
        }
        Some(sizes) => {
            if sizes.len() != 3 || sizes.iter().any(|size| size % heads != 0) {
                return Err(wrong(format!(
                    "attribute 'qkv_hidden_sizes' is expected to have 3 elements that are multiples of {heads} heads, \
                     found {sizes:?}"
                )));
            }
            let sizes = here.integers(&sizes);
            here.rows("split", &[all, sizes], &[axis], 3)
        }
    };
    Ok([parts[0], parts[1], parts[2]])
}

pub(super) fn multi_head(here: &mut Expansion<'_>) -> Made {
    here.refuse(
        &[(8, "past_sequence_length"), (9, "cache_indirection")],
        &[],
    )?;
    let heads = heads(here)?;
    // Keys and values of another sequence may have heads already.
    let has_heads = match (here.input(1), here.input(2)) {
        (Some(keys), Some(_)) => here.known_rank(keys, "key")? == 4,
        _ => false,
    };
    let [queries, keys, values] = parts(here)?;
    if let Some(width) = here.extent(queries, 2).filter(|width| width % heads != 0) {
        return Err(wrong(format!(
            "attribute 'num_heads' is expected to divide {width}, the width of 'query', found {heads}"
        )));
    }
    let [queries, keys, values] = biased(here, [queries, keys, values], has_heads);
    let past = match (here.input(6), here.input(7)) {
        (Some(keys), Some(values)) => Some([keys, values]),
        (None, None) => None,
        _ => return Err(wrong("expected 'past_key' and 'past_value', or neither")),
    };
    let axis = if has_heads { 2 } else { 1 };
    let length = here.extents(keys, axis, axis + 1);
    let total = total(here, length, past);
    let mask = match here.input(4) {
        None => None,
        Some(mask) => {
            let n_queries = here.extents(queries, 1, 2);
            Some(seen(here, mask, [queries, n_queries, total], false)?)
        }
    };
    let bias = here.input(5);
    let mask = added(here, mask, bias, queries);
    let scores = Scores {
        queries,
        keys,
        values,
        mask,
        past,
    };
    let made = attended(here, heads, &scores, Some(3));
    Ok(made.into_iter().map(Some).collect())
}

fn heads(here: &Expansion<'_>) -> Result<i64, Refusal> {
    match here.int("num_heads", 0) {
        heads @ 1.. => Ok(heads),
        heads => Err(wrong(format!(
            "attribute 'num_heads' is expected to be at least 1, found {heads}"
        ))),
    }
}

/// Queries, keys and values, taken apart where they are in one.
fn parts(here: &mut Expansion<'_>) -> Result<[ValueId; 3], Refusal> {
    let queries = here.needed(0, "query")?;
    let part = |here: &mut Expansion<'_>, all, index| {
        let one = here.picked(all, 3, index);
        here.reshaped(one, &[0, 0, -1])
    };
    match (here.input(1), here.input(2)) {
        (Some(keys), Some(values)) => Ok([queries, keys, values]),
        (Some(all), None) => Ok([queries, part(here, all, 0), part(here, all, 1)]),
        (None, None) => Ok([
            part(here, queries, 0),
            part(here, queries, 1),
            part(here, queries, 2),
        ]),
        (None, Some(_)) => Err(wrong("has input 2, 'value', and lacks input 1, 'key'")),
    }
}

/// Adds to each its part of the bias. Keys and values with heads of their own have theirs already.
fn biased(here: &mut Expansion<'_>, parts: [ValueId; 3], has_heads: bool) -> [ValueId; 3] {
    let Some(bias) = here.input(3) else {
        return parts;
    };
    let [queries, keys, values] = parts;
    let width = here.extents(queries, 2, 3);
    let (none, most) = (here.integers(&[0]), here.integers(&[i64::MAX]));
    let twice = here.add("Add", &[width, width], &[]);
    let mut part = |value, start, end| {
        let part = here.sliced(bias, 0, start, end);
        here.add("Add", &[value, part], &[])
    };
    let queries = part(queries, none, width);
    match has_heads {
        true => [queries, keys, values],
        false => [queries, part(keys, width, twice), part(values, twice, most)],
    }
}

/// Appends how many keys there are with those of before, as a list of one.
fn total(here: &mut Expansion<'_>, length: ValueId, past: Option<[ValueId; 2]>) -> ValueId {
    match past {
        None => length,
        Some([keys, _]) => {
            let before = here.extents(keys, 2, 3);
            here.add("Add", &[before, length], &[])
        }
    }
}

/// Appends which keys are seen, by the form that a mask has. The extents are the batch's, of a value that has it, of queries,
/// and of all keys.
fn seen(
    here: &mut Expansion<'_>,
    mask: ValueId,
    [batched, n_queries, total]: [ValueId; 3],
    has_starts: bool,
) -> Result<ValueId, Refusal> {
    let zero = here.constant(integers(Vec::new(), &[0]));
    let is_set = |here: &mut Expansion<'_>, mask| {
        let zero = here.add("CastLike", &[zero, mask], &[]);
        here.add("Greater", &[mask, zero], &[])
    };
    match here.known_rank(mask, "mask_index")? {
        1 => {
            let batch = here.extents(batched, 0, 1);
            let all = places(here, total);
            let first = here.integers(&[0]);
            let column = |here: &mut Expansion<'_>, list| {
                let list = as_i64(here, list);
                here.unsqueezed(list, &[1, 2, 3])
            };
            let ends = here.sliced(mask, 0, first, batch);
            let ends = column(here, ends);
            let seen = here.add("Less", &[all, ends], &[]);
            if !has_starts {
                return Ok(seen);
            }
            // There may be starts behind the ends: else they are zeros.
            let twice = here.add("Add", &[batch, batch], &[]);
            let starts = here.sliced(mask, 0, batch, twice);
            let zeros = here.add("ConstantOfShape", &[batch], &[]);
            let zeros = here.add("CastLike", &[zeros, mask], &[]);
            let starts = here.list(&[starts, zeros]);
            let starts = here.sliced(starts, 0, first, batch);
            let starts = column(here, starts);
            let started = here.add("GreaterOrEqual", &[all, starts], &[]);
            Ok(here.add("And", &[seen, started], &[]))
        }
        2 => {
            let seen = is_set(here, mask);
            Ok(here.unsqueezed(seen, &[1, 2]))
        }
        3 => {
            let seen = is_set(here, mask);
            Ok(here.unsqueezed(seen, &[1]))
        }
        4 => {
            // Of a mask for the longest sequence the rows of these queries, behind those of before.
            let first = here.integers(&[0]);
            let before = here.add("Sub", &[total, n_queries], &[]);
            let rows = here.sliced(mask, 2, before, total);
            let rows = here.sliced(rows, 3, first, total);
            Ok(is_set(here, rows))
        }
        _ => Err(wrong(format!(
            "expected a mask of 1 to 4 dimensions, found {}",
            here.shown(mask)
        ))),
    }
}

/// Appends what is added to scores: the filter where a key is not seen, and a bias.
fn added(
    here: &mut Expansion<'_>,
    seen: Option<ValueId>,
    bias: Option<ValueId>,
    like: ValueId,
) -> Option<ValueId> {
    let filter = here.float("mask_filter_value", -10000.0);
    let mask = seen.map(|seen| {
        let (none, filter) = (here.number(0.0, like), here.number(filter, like));
        here.add("Where", &[seen, none, filter], &[])
    });
    match (mask, bias) {
        (Some(mask), Some(bias)) => Some(here.add("Add", &[bias, mask], &[])),
        (mask, bias) => mask.or(bias),
    }
}

/// Appends the attention; gives the result, keys and values with those of before, and scores, as far as they are wanted:
/// scores are the result at `product`.
fn attended(
    here: &mut Expansion<'_>,
    heads: i64,
    scores: &Scores,
    product: Option<usize>,
) -> Vec<ValueId> {
    let mut attributes = vec![
        ("is_causal", integer(here.int("unidirectional", 0))),
        ("kv_num_heads", integer(heads)),
        ("q_num_heads", integer(heads)),
    ];
    let scale = here.float("scale", 0.0);
    if scale != 0.0 {
        attributes.push(("scale", float(scale)));
    }
    let mut operands = vec![scores.queries, scores.keys, scores.values];
    if scores.mask.is_some() || scores.past.is_some() {
        let mask = match scores.mask {
            Some(mask) => mask,
            None => here.none(),
        };
        operands.push(mask);
    }
    operands.extend(scores.past.into_iter().flatten());
    let n_results = match (
        here.wants(1) || here.wants(2),
        product.is_some_and(|product| here.wants(product)),
    ) {
        (_, true) => 4,
        (true, _) => 3,
        _ => 1,
    };
    if n_results == 4 {
        attributes.push(("scores_mode", integer(2)));
    }
    here.rows("attention", &operands, &attributes, n_results)
}
