//! Embeddings of words and of positions.
//!
//! | Operator | Becomes |
//! | --- | --- |
//! | `EmbedLayerNormalization` | `Gather` of three tables, their sum, `LayerNormalization`; ones of the mask are counted |
//! | `RotaryEmbedding` | that of the standard, whose positions are stated one by one |

use tfrt_ir::{Attribute, Type, ValueId};

use super::super::{dense, integers};
use super::expansion::integer;
use super::pointwise::float;
use super::{Expansion, Made, Refusal, wrong};

/// The numbers of types in the format.
const I32: i64 = 6;
const I64: i64 = 7;

pub(super) fn embed_layer_norm(here: &mut Expansion<'_>) -> Made {
    let tables = [
        Some(here.needed(2, "word_embedding")?),
        Some(here.needed(3, "position_embedding")?),
        here.input(4),
    ];
    let (gamma, beta) = (here.needed(5, "gamma")?, here.needed(6, "beta")?);
    let places = here.input(8);
    let parts = looked_up(here, tables, places)?;
    let parts = parts.map(|part| part.map(|(part, table)| wide_as(here, part, table)));
    let (gamma, beta) = (here.wide(gamma), here.wide(beta));
    let words = here.needed(2, "word_embedding")?;
    normalised(here, parts, [gamma, beta], Some(words))
}

pub(super) fn quantized(here: &mut Expansion<'_>) -> Made {
    let tables = [
        Some(here.needed(2, "word_embedding_quant")?),
        Some(here.needed(3, "position_embedding_quant")?),
        here.input(4),
    ];
    let parts = looked_up(here, tables, None)?;
    let mut floats = [None; 3];
    for (index, part) in parts.into_iter().enumerate() {
        if let Some((part, _)) = part {
            floats[index] = Some(dequantized(here, part, [8 + index, 13 + index])?);
        }
    }
    let (gamma, beta) = (
        here.needed(5, "gamma_quant")?,
        here.needed(6, "beta_quant")?,
    );
    let gamma = dequantized(here, gamma, [11, 16])?;
    let beta = dequantized(here, beta, [12, 17])?;
    normalised(here, floats, [gamma, beta], None)
}

/// Appends integers as floats; scale and zero point are operands.
fn dequantized(
    here: &mut Expansion<'_>,
    value: ValueId,
    [scale, zero]: [usize; 2],
) -> Result<ValueId, Refusal> {
    let scale = here.needed(scale, "scale")?;
    let operands: Vec<ValueId> = [value, scale].into_iter().chain(here.input(zero)).collect();
    Ok(here.add("DequantizeLinear", &operands, &[]))
}

/// A part of a sum of embeddings, and the table that it is from.
type Part = Option<(ValueId, ValueId)>;

/// Appends the rows of the tables of words, positions and segments that are asked for.
fn looked_up(
    here: &mut Expansion<'_>,
    [words, positions, segments]: [Option<ValueId>; 3],
    places: Option<ValueId>,
) -> Result<[Part; 3], Refusal> {
    let ids = here.needed(0, "input_ids")?;
    let places = match places {
        Some(places) => places,
        None => {
            let length = here.extents(ids, 1, 2);
            self::places(here, length)
        }
    };
    let segment_ids = here.input(1);
    if segment_ids.is_some() != segments.is_some() {
        return Err(wrong(
            "expected 'segment_ids' and 'segment_embedding', or neither",
        ));
    }
    let mut part = |table: Option<ValueId>, ids: Option<ValueId>| {
        let (table, ids) = (table?, ids?);
        Some((here.add("Gather", &[table, ids], &[]), table))
    };
    Ok([
        part(words, Some(ids)),
        part(positions, Some(places)),
        part(segments, segment_ids),
    ])
}

/// Appends a value in `f32` if it is of a table of halves.
fn wide_as(here: &mut Expansion<'_>, value: ValueId, table: ValueId) -> ValueId {
    match here.is_half(table) {
        true => here.add("Cast", &[value], &[("to", integer(super::F32))]),
        false => value,
    }
}

/// Appends the sum of parts and its normalisation, in the type of `like` if that is of halves; gives these and the mask's index.
fn normalised(
    here: &mut Expansion<'_>,
    parts: [Option<ValueId>; 3],
    [gamma, beta]: [ValueId; 2],
    like: Option<ValueId>,
) -> Made {
    let ids = here.needed(0, "input_ids")?;
    let [Some(word), place, segment] = parts else {
        return Err(wrong("lacks input 2, 'word_embedding'"));
    };
    let sum = here.sum(word, &[place, segment]);
    let attributes = [
        ("epsilon", float(here.float("epsilon", 1e-12))),
        ("kind", Attribute::string("layer")),
    ];
    let y = here.row("norm", &[sum, gamma, beta], &attributes);
    let mut narrow = |value| match like {
        Some(like) => here.narrow(value, like),
        None => value,
    };
    let (y, sum) = (narrow(y), narrow(sum));
    let count = here.wants(1).then(|| mask_index(here, ids));
    Ok(vec![Some(y), count, Some(sum)])
}

/// Appends the integers from 0 on, as many as a list of one says.
pub(super) fn places(here: &mut Expansion<'_>, length: ValueId) -> ValueId {
    let scalar = |here: &mut Expansion<'_>, number| here.constant(integers(Vec::new(), &[number]));
    let (zero, one) = (scalar(here, 0), scalar(here, 1));
    let length = here.picked(length, 0, 0);
    here.add("Range", &[zero, length, one], &[])
}

/// Appends how many elements of each row of the mask are 1; zeros without a mask.
fn mask_index(here: &mut Expansion<'_>, ids: ValueId) -> ValueId {
    let count = match here.input(7) {
        Some(mask) => {
            let one = here.constant(integers(Vec::new(), &[1]));
            let one = here.add("CastLike", &[one, mask], &[]);
            let is_one = here.add("Equal", &[mask, one], &[]);
            let ones = here.add("Cast", &[is_one], &[("to", integer(I32))]);
            let axes = here.integers(&[1]);
            here.add("ReduceSum", &[ones, axes], &[("keepdims", integer(0))])
        }
        None => {
            let batch = here.extents(ids, 0, 1);
            let zero = dense(
                Type::tensor(vec![1], Type::I32),
                vec![0_i32.to_le_bytes().to_vec()],
            );
            here.add("ConstantOfShape", &[batch], &[("value", zero)])
        }
    };
    // An `Attention` behind it asks how many dimensions it has.
    here.module
        .set_value_type(count, Type::tensor(vec![-1], Type::I32));
    count
}

pub(super) fn rotary(here: &mut Expansion<'_>) -> Made {
    let x = here.needed(0, "input")?;
    let positions = here.needed(1, "position_ids")?;
    let tables = [here.needed(2, "cos_cache")?, here.needed(3, "sin_cache")?];
    let y = rotated(here, x, positions, tables)?;
    Ok(vec![Some(y)])
}

fn rotated(
    here: &mut Expansion<'_>,
    x: ValueId,
    positions: ValueId,
    [cosines, sines]: [ValueId; 2],
) -> Result<ValueId, Refusal> {
    let is_flat = match here.known_rank(x, "input")? {
        4 => false,
        3 => true,
        _ => {
            return Err(wrong(format!(
                "expected an input of 3 or 4 dimensions, found {}",
                here.shown(x)
            )));
        }
    };
    let positions = match here.known_rank(positions, "position_ids")? {
        // The position of the first place; others follow.
        1 => {
            let axis = if is_flat { 1 } else { 2 };
            let (batch, length) = (here.extents(x, 0, 1), here.extents(x, axis, axis + 1));
            let all = places(here, length);
            let all = here.add("Add", &[all, positions], &[]);
            let extents = here.list(&[batch, length]);
            here.add("Expand", &[all, extents], &[])
        }
        _ => positions,
    };
    let turned = here.int("rotary_embedding_dim", 0);
    let mut attributes = here.stated(&["interleaved", "rotary_embedding_dim"]);
    let heads = here.int("num_heads", 0);
    if !is_flat {
        return Ok(here.add(
            "RotaryEmbedding",
            &[x, cosines, sines, positions],
            &attributes,
        ));
    }
    if heads > 0 {
        attributes.push(("num_heads", integer(heads)));
        return Ok(here.add(
            "RotaryEmbedding",
            &[x, cosines, sines, positions],
            &attributes,
        ));
    }
    // The width of a head is that of the tables.
    let half = here.extent(cosines, 1).filter(|_| turned == 0);
    let Some(half) = half else {
        return Err(wrong(
            "attribute 'num_heads' is expected, since the width of heads does not follow from 'cos_cache'",
        ));
    };
    let width = half.saturating_mul(2);
    if let Some(found) = here
        .extent(x, 2)
        .filter(|found| width < 1 || found % width != 0)
    {
        return Err(wrong(format!(
            "expected heads as wide as two rows of 'cos_cache', {width}, to divide the width of 'input', found {found}"
        )));
    }
    let apart = here.reshaped(x, &[0, 0, -1, width]);
    let apart = here.transposed(apart, &[0, 2, 1, 3]);
    let y = here.add(
        "RotaryEmbedding",
        &[apart, cosines, sines, positions],
        &attributes,
    );
    let y = here.transposed(y, &[0, 2, 1, 3]);
    let extents = here.extents(x, 0, 3);
    Ok(here.add("Reshape", &[y, extents], &[]))
}

/// Appends a value as `i64`.
pub(super) fn as_i64(here: &mut Expansion<'_>, value: ValueId) -> ValueId {
    here.add("Cast", &[value], &[("to", integer(I64))])
}
