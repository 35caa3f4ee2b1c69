//! `GroupQueryAttention`: attention that keeps keys and values in buffers with room for those to come.
//!
//! The extent of a buffer is its room, not its length: how much of it is used says `seqlens_k`, the number of keys less one.
//! The row `update_cache` puts new keys and values behind those of before, in place where nobody else holds the buffer, and
//! the row `attention` sees the keys up to the longest length, where they lie. Each query sees keys up to its own place, within a window if there is one. A sink is one more key,
//! whose score is a number and whose value is zeros.

use tfrt_ir::{Attribute, ValueId};

use super::embedding::{as_i64, places};
use super::expansion::integer;
use super::pointwise::float;
use super::{Expansion, Made, Refusal, wrong};

/// The attributes and lengths of a `GroupQueryAttention`.
struct Group {
    heads: i64,
    kv_heads: i64,
    /// How many keys there are with the new ones, `[batch]`.
    lengths: ValueId,
    /// How many there were before, `[batch]`.
    before: ValueId,
    /// The most of them, a list of one.
    total: ValueId,
    /// The places of the new ones, `[batch, length]`.
    places: ValueId,
}

pub(super) fn group_query(here: &mut Expansion<'_>) -> Made {
    here.refuse(
        &[(12, "k_scale"), (13, "v_scale"), (16, "query_seqlens")],
        &["sliding_window_cache", "kv_cache_bit_width"],
    )?;
    for name in ["k_quant_type", "v_quant_type"] {
        let kind = here.text(name);
        if !matches!(&*kind, "" | "NONE") {
            return Err(wrong(format!(
                "attribute '{name}' is expected to be 'NONE', found '{kind}'"
            )));
        }
    }
    let group = Group::of(here)?;
    let [queries, keys, values] = group.heads_apart(here)?;
    let queries = normalised(here, queries, 14, "q_norm_epsilon");
    let keys = normalised(here, keys, 15, "k_norm_epsilon");
    let [queries, keys] = group.rotated(here, [queries, keys])?;
    let (keys, used_keys) = group.kept(here, keys, 3);
    let (values, used_values) = group.kept(here, values, 4);
    let (y, scores) = group.attended(here, queries, [used_keys, used_values])?;
    Ok(vec![Some(y), Some(keys), Some(values), scores])
}

impl Group {
    fn of(here: &mut Expansion<'_>) -> Result<Group, Refusal> {
        let (heads, kv_heads) = (here.int("num_heads", 0), here.int("kv_num_heads", 0));
        let is_count = |n: i64| (1..=i64::from(i32::MAX)).contains(&n);
        if !is_count(heads) || !is_count(kv_heads) || heads % kv_heads != 0 {
            return Err(wrong(format!(
                "attribute 'kv_num_heads' is expected to divide 'num_heads', found {kv_heads} and {heads}"
            )));
        }
        let queries = here.needed(0, "query")?;
        let (lengths, total) = (
            here.needed(5, "seqlens_k")?,
            here.needed(6, "total_sequence_length")?,
        );
        let one = here.integers(&[1]);
        let lengths = here.reshaped(lengths, &[-1]);
        let lengths = as_i64(here, lengths);
        let lengths = here.add("Add", &[lengths, one], &[]);
        let total = here.reshaped(total, &[1]);
        let total = as_i64(here, total);
        // Of a first call nothing was before, and shorter sequences have their ends among what is given.
        let length = here.extents(queries, 1, 2);
        let total = within_room(here, total, length);
        let before = here.add("Sub", &[lengths, length], &[]);
        let is_first = here.add("Equal", &[length, total], &[]);
        let zero = here.integers(&[0]);
        let before = here.add("Where", &[is_first, zero, before], &[]);
        let all = places(here, length);
        let column = here.unsqueezed(before, &[1]);
        let places = here.add("Add", &[column, all], &[]);
        Ok(Group {
            heads,
            kv_heads,
            lengths,
            before,
            total,
            places,
        })
    }

    /// Queries, keys and values as `[batch, heads, length, width]`.
    fn heads_apart(&self, here: &mut Expansion<'_>) -> Result<[ValueId; 3], Refusal> {
        let queries = here.needed(0, "query")?;
        let all = self.heads + 2 * self.kv_heads;
        let parts = match (here.input(1), here.input(2)) {
            (Some(keys), Some(values)) => {
                for (value, name, heads) in
                    [(queries, "query", self.heads), (keys, "key", self.kv_heads)]
                {
                    divides(here, value, name, heads)?;
                }
                [
                    (queries, self.heads),
                    (keys, self.kv_heads),
                    (values, self.kv_heads),
                ]
            }
            (None, None) => {
                divides(here, queries, "query", all)?;
                let apart = here.reshaped(queries, &[0, 0, all, -1]);
                let sizes = here.integers(&[self.heads, self.kv_heads, self.kv_heads]);
                let parts = here.rows("split", &[apart, sizes], &[("axis", integer(2))], 3);
                let turned = [parts[0], parts[1], parts[2]];
                return Ok(turned.map(|part| here.transposed(part, &[0, 2, 1, 3])));
            }
            _ => return Err(wrong("expected 'key' and 'value', or neither")),
        };
        Ok(parts.map(|(value, heads)| {
            let apart = here.reshaped(value, &[0, 0, heads, -1]);
            here.transposed(apart, &[0, 2, 1, 3])
        }))
    }

    /// Queries and keys turned by the angles of their places.
    fn rotated(
        &self,
        here: &mut Expansion<'_>,
        both: [ValueId; 2],
    ) -> Result<[ValueId; 2], Refusal> {
        if here.int("do_rotary", 0) == 0 {
            return Ok(both);
        }
        let (cosines, sines) = (here.needed(7, "cos_cache")?, here.needed(8, "sin_cache")?);
        let places = here.input(9).unwrap_or(self.places);
        let mut attributes = vec![("interleaved", integer(here.int("rotary_interleaved", 0)))];
        if let Some(half) = here.extent(cosines, 1) {
            attributes.push(("rotary_embedding_dim", integer(half.saturating_mul(2))));
        }
        Ok(both.map(|value| {
            here.add(
                "RotaryEmbedding",
                &[value, cosines, sines, places],
                &attributes,
            )
        }))
    }

    /// Appends a buffer with what is new behind what was before, and what is used of it. The extent of the buffer is that
    /// of the buffer before, or what is needed.
    fn kept(&self, here: &mut Expansion<'_>, new: ValueId, past: usize) -> (ValueId, ValueId) {
        let Some(past) = here.input(past) else {
            let zero = here.integers(&[0]);
            let used = here.sliced(new, 2, zero, self.total);
            return (new, used);
        };
        let operands = [past, new, self.before, self.total];
        let made = here.rows("update_cache", &operands, &[], 2);
        (made[0], made[1])
    }

    /// Appends the attention of queries to what is used of buffers; gives the result, and scores if they are wanted.
    fn attended(
        &self,
        here: &mut Expansion<'_>,
        queries: ValueId,
        used: [ValueId; 2],
    ) -> Result<(ValueId, Option<ValueId>), Refusal> {
        let zero = here.integers(&[0]);
        let (seen, mask) = self.mask(here, queries);
        let has_sink = here.input(11).is_some() || here.int("smooth_softmax", -1) == 1;
        let (used, mask) = match has_sink {
            true => self.with_sink(here, used, mask, queries),
            false => (used, mask),
        };
        let mut attributes = vec![
            ("kv_num_heads", integer(self.kv_heads)),
            ("q_num_heads", integer(self.heads)),
            ("softcap", float(here.float("softcap", 0.0))),
        ];
        let scale = here.float("scale", 0.0);
        if scale != 0.0 {
            attributes.push(("scale", float(scale)));
        }
        let n_results = match (here.wants(3), here.int("qk_output", 0)) {
            (false, _) => 1,
            (true, 1) => 4,
            (true, 2) => 4,
            (true, kind) => {
                return Err(wrong(format!(
                    "attribute 'qk_output' is expected to be 1 or 2, found {kind}"
                )));
            }
        };
        if n_results == 4 {
            let mode = if here.int("qk_output", 0) == 1 { 2 } else { 3 };
            attributes.push(("scores_mode", integer(mode)));
        }
        let made = here.rows(
            "attention",
            &[queries, used[0], used[1], mask],
            &attributes,
            n_results,
        );
        let y = here.transposed(made[0], &[0, 2, 1, 3]);
        let y = here.reshaped(y, &[0, 0, -1]);
        // Of what is not seen, and of a sink, nothing is told.
        let scores = made.get(3).map(|scores| {
            let scores = here.sliced(*scores, 3, zero, self.total);
            let none = here.number(0.0, queries);
            here.add("Where", &[seen, scores, none], &[])
        });
        Ok((y, scores))
    }

    /// Appends whether a query sees a key, and what is added to scores: nothing where it does, else the least number; and the
    /// bias.
    fn mask(&self, here: &mut Expansion<'_>, like: ValueId) -> (ValueId, ValueId) {
        let all = places(here, self.total);
        let own = here.unsqueezed(self.places, &[1, 3]);
        let mut seen = match here.int("causal", 1) {
            0 => {
                let lengths = here.unsqueezed(self.lengths, &[1, 2, 3]);
                let seen = here.add("Less", &[all, lengths], &[]);
                let zero = here.integers(&[0]);
                let every = here.add("GreaterOrEqual", &[own, zero], &[]);
                here.add("And", &[seen, every], &[])
            }
            _ => here.add("LessOrEqual", &[all, own], &[]),
        };
        let window = here.int("local_window_size", -1);
        if window > 0 {
            let window = here.integers(&[window]);
            let first = here.add("Sub", &[own, window], &[]);
            let within = here.add("Greater", &[all, first], &[]);
            seen = here.add("And", &[seen, within], &[]);
        }
        let (none, least) = (here.number(0.0, like), here.number(f64::NEG_INFINITY, like));
        let mask = here.add("Where", &[seen, none, least], &[]);
        let mask = match here.input(10) {
            Some(bias) => {
                let zero = here.integers(&[0]);
                let bias = here.sliced(bias, 3, zero, self.total);
                here.add("Add", &[bias, mask], &[])
            }
            None => mask,
        };
        (seen, mask)
    }

    /// Appends one key of zeros, whose score is the sink's, or 0.
    fn with_sink(
        &self,
        here: &mut Expansion<'_>,
        used: [ValueId; 2],
        mask: ValueId,
        like: ValueId,
    ) -> ([ValueId; 2], ValueId) {
        let behind = here.integers(&[0, 0, 0, 0, 0, 0, 1, 0]);
        let used = used.map(|value| here.add("Pad", &[value, behind], &[]));
        let sink = match here.input(11) {
            Some(sink) => here.reshaped(sink, &[1, self.heads, 1, 1]),
            None => {
                let zero = here.number(0.0, like);
                here.reshaped(zero, &[1, 1, 1, 1])
            }
        };
        let (rows, one) = (here.extents(mask, 0, 3), here.integers(&[1]));
        let heads = here.integers(&[1, self.heads, 1]);
        let all = here.add("Max", &[rows, heads], &[]);
        let wide = here.extents(mask, 3, 4);
        let extents = here.list(&[all, wide]);
        let mask = here.add("Expand", &[mask, extents], &[]);
        let extents = here.list(&[all, one]);
        let column = here.add("Expand", &[sink, extents], &[]);
        let axis = [("axis", integer(3))];
        (used, here.add("Concat", &[mask, column], &axis))
    }
}

/// Appends a total that is refused where it is beyond the room of the buffer and what is new: by `Gather`, of all that there
/// can be.
fn within_room(here: &mut Expansion<'_>, total: ValueId, length: ValueId) -> ValueId {
    let one = here.integers(&[1]);
    let mut n_totals = here.add("Add", &[length, one], &[]);
    if let Some(past) = here.input(3) {
        let room = here.extents(past, 2, 3);
        n_totals = here.add("Add", &[n_totals, room], &[]);
    }
    let totals = places(here, n_totals);
    here.add("Gather", &[totals, total], &[])
}

/// Appends heads, each divided by the root of the mean of its squares, if there are weights at an index.
fn normalised(here: &mut Expansion<'_>, value: ValueId, index: usize, epsilon: &str) -> ValueId {
    let Some(weights) = here.input(index) else {
        return value;
    };
    let both = here.float("qk_norm_epsilon", 1e-6);
    let attributes = [
        ("epsilon", float(here.float(epsilon, both))),
        ("kind", Attribute::string("rms")),
    ];
    here.row("norm", &[value, weights], &attributes)
}

fn divides(here: &Expansion<'_>, value: ValueId, name: &str, heads: i64) -> Result<(), Refusal> {
    match here.extent(value, 2).filter(|width| width % heads != 0) {
        Some(width) => Err(wrong(format!(
            "expected {heads} heads to divide the width of '{name}', found {width}"
        ))),
        None => Ok(()),
    }
}
