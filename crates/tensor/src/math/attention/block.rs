//! Flash attention: blocks of queries that walk over blocks of keys with a running softmax.

use std::num::NonZeroUsize;

use tfrt_host::Error;
use tfrt_host::memory::OwnedReading;

use super::rows::{self, KeyRows};
use super::{Attention, AttentionElement, Mask};
use crate::math::elementwise::{Exp, Unary};
use crate::math::number::{Number, Real};
use crate::math::packed_gemm::{InstructionSet, Processor};
use crate::math::reduce::{Maximum, Sum, block};
use crate::math::{parallel, vectorized};
use crate::{Bool, Dims, Element, GrowableTensor, TensorView, from_bytes, to_bytes};

/// The most queries of a block.
const N_QUERIES: usize = 64;
/// Number of keys of a block: with their values they fit the first cache.
const N_KEYS: usize = 64;
/// The number of chunks from which on there are enough for the threads.
const MIN_CHUNKS: usize = 4;

/// Extents of attention's tensors, all of four dimensions.
#[derive(Clone, Debug)]
pub(super) struct AttentionPlan {
    heads: usize,
    key_heads: usize,
    /// Heads that share keys and values.
    n_sharing: usize,
    n_queries: usize,
    n_keys: usize,
    depth: usize,
    width: usize,
    /// The extents that masks broadcast to.
    scores: [usize; 4],
    strides: [Dims; 3],
    scale: f64,
    causal: Option<usize>,
    lens: Option<Vec<usize>>,
}

/// Keys or values: one slice of all elements, or a block for each head.
#[derive(Clone, Copy)]
pub(super) enum Heads<'a, T> {
    /// All elements, found by strides.
    Slice(&'a [T]),
    /// A tensor that grows along its third dimension of four.
    Blocks(&'a GrowableTensor),
}

/// The elements of a head, or of all.
enum HeadElements<'a, T> {
    Slice(&'a [T]),
    Block(OwnedReading),
}

impl<'a, T: Element> Heads<'a, T> {
    /// Lends the elements in which those of a head are, of all heads of a batch one after the other.
    fn lend(self, head: usize) -> Result<HeadElements<'a, T>, Error> {
        match self {
            Heads::Slice(elements) => Ok(HeadElements::Slice(elements)),
            Heads::Blocks(tensor) => tensor.block(head).map(HeadElements::Block),
        }
    }
}

impl<T: Element> HeadElements<'_, T> {
    fn elements(&self) -> Result<&[T], Error> {
        match self {
            HeadElements::Slice(elements) => Ok(elements),
            HeadElements::Block(bytes) => from_bytes(bytes),
        }
    }
}

/// Running softmax state of a block of queries, with scratch memory.
struct Block<W> {
    processor: Processor,
    queries: Vec<W>,
    /// Keys and values, where they can't be read as they lie.
    keys: Vec<W>,
    values: Vec<W>,
    /// The scores of a query.
    scores: [W; N_KEYS],
    /// Sums of values so far, scaled by the largest score.
    sums: Vec<W>,
    /// For each query the largest score so far, and the sum of all e^(score - largest).
    states: Vec<(W, W)>,
}

impl AttentionPlan {
    pub(super) fn new(
        options: &Attention,
        [queries, keys, values]: [(Dims, Dims); 3],
        out: &[usize],
    ) -> Result<AttentionPlan, Error> {
        let misfit = || {
            let [q, k, v] = [&queries.0[..], &keys.0[..], &values.0[..]];
            Error::invalid_argument(format!(
                "attention of queries {q:?}, keys {k:?} and values {v:?} with a result of shape {out:?}: expected \
                 [batch, heads, n_queries, depth], [batch, key_heads, n_keys, depth], [batch, key_heads, n_keys, \
                 width] and [batch, heads, n_queries, width], with heads a multiple of key_heads"
            ))
        };
        let (
            [batch, heads, n_queries, depth],
            [k_batch, key_heads, n_keys, k_depth],
            [v_batch, v_heads, v_keys, width],
        ) = (&queries.0[..], &keys.0[..], &values.0[..])
        else {
            return Err(misfit());
        };
        let is_alike = batch == k_batch
            && batch == v_batch
            && key_heads == v_heads
            && depth == k_depth
            && n_keys == v_keys;
        let n_sharing = match *key_heads {
            0 if *heads == 0 => 1,
            0 => return Err(misfit()),
            n => heads / n,
        };
        let is_multiple = n_sharing * key_heads == *heads;
        let n_lens = options.lens.as_ref().map_or(*batch, Vec::len);
        if n_lens != *batch {
            let message =
                format!("expected a number of keys for each of {batch} batches, found {n_lens}");
            return Err(Error::invalid_argument(message));
        }
        if !is_alike || !is_multiple || out != [*batch, *heads, *n_queries, *width] {
            return Err(misfit());
        }
        let scale = match (options.scale, *depth) {
            (Some(scale), _) => scale,
            (None, 0) => 1.0,
            #[allow(clippy::cast_precision_loss, reason = "no depth is that large")]
            (None, depth) => 1.0 / (depth as f64).sqrt(),
        };
        Ok(AttentionPlan {
            heads: *heads,
            key_heads: *key_heads,
            n_sharing,
            n_queries: *n_queries,
            n_keys: *n_keys,
            depth: *depth,
            width: *width,
            scores: [*batch, *heads, *n_queries, *n_keys],
            strides: [queries.1, keys.1, values.1],
            scale,
            causal: options.causal,
            lens: options.lens.clone(),
        })
    }

    /// Broadcasts a mask to the shape of all scores.
    pub(super) fn broadcast<'a, T: Element>(
        &self,
        mask: &Mask<'a, T>,
    ) -> Result<Mask<'a, T>, Error> {
        Ok(match mask {
            Mask::None => Mask::None,
            Mask::Additive(view) => Mask::Additive(view.broadcast(&self.scores)?),
            Mask::Boolean(view) => Mask::Boolean(view.broadcast(&self.scores)?),
            Mask::Replaced(view, by) => Mask::Replaced(view.broadcast(&self.scores)?, *by),
        })
    }

    /// Returns the chunk length of a result with merged heads, for [`run_merged_heads`](Self::run_merged_heads).
    pub(super) fn chunk_len_merged_heads(&self) -> NonZeroUsize {
        let row = self.heads.saturating_mul(self.width);
        let n_rows = N_QUERIES.min(self.n_queries);
        parallel::chunk_len(self.cost(), row.saturating_mul(n_rows))
    }

    /// Returns the chunk length of a result: whole queries, and where there are enough others, all that look at the same
    /// keys.
    pub(super) fn chunk_len(&self) -> NonZeroUsize {
        let n_groups = self.scores[0].saturating_mul(self.key_heads);
        let n_together = match n_groups >= MIN_CHUNKS {
            true => self.group(),
            false => self.n_queries,
        };
        let n_rows = N_QUERIES.min(n_together);
        parallel::chunk_len(self.cost(), self.width.saturating_mul(n_rows))
    }

    /// Returns about how many operations an element of the result takes.
    fn cost(&self) -> usize {
        self.n_keys.saturating_mul(2) / 8
    }

    /// Returns the number of queries that look at the same keys: they are neighbours.
    fn group(&self) -> usize {
        self.n_sharing.saturating_mul(self.n_queries)
    }

    /// Makes the results from the `first` element on: whole queries.
    pub(super) fn run<T: AttentionElement>(
        &self,
        elements: [Heads<'_, T>; 3],
        mask: &Mask<'_, T>,
        first: usize,
        out: &mut [T],
    ) -> Result<(), Error> {
        if out.is_empty() {
            return Ok(());
        }
        let mut block = Block::new();
        let (mut row, mut rest) = (first / self.width, out);
        while !rest.is_empty() {
            let n = N_QUERIES
                .min(self.group() - row % self.group())
                .min(rest.len() / self.width);
            let (part, after) = std::mem::take(&mut rest).split_at_mut(n * self.width);
            self.queries(&mut block, elements, mask, (row, n), part, self.width)?;
            (row, rest) = (row + n, after);
        }
        Ok(())
    }

    /// Makes whole rows of a result with merged heads, `[batch, n_queries, heads, width]`.
    pub(super) fn run_merged_heads<T: AttentionElement>(
        &self,
        elements: [Heads<'_, T>; 3],
        mask: &Mask<'_, T>,
        first: usize,
        out: &mut [T],
    ) -> Result<(), Error> {
        if out.is_empty() {
            return Ok(());
        }
        let stride = self.heads * self.width;
        let mut block = Block::new();
        let (mut row, mut rest) = (first / stride, out);
        while !rest.is_empty() {
            let (batch, query) = (row / self.n_queries, row % self.n_queries);
            let n = N_QUERIES
                .min(self.n_queries - query)
                .min(rest.len() / stride);
            let (part, after) = std::mem::take(&mut rest).split_at_mut(n * stride);
            for head in 0..self.heads {
                let first = (batch * self.heads + head) * self.n_queries + query;
                let part = &mut part[head * self.width..];
                self.queries(&mut block, elements, mask, (first, n), part, stride)?;
            }
            (row, rest) = (row + n, after);
        }
        Ok(())
    }

    /// Makes the results of `n` queries from the `first` on, counted through all heads, in rows that begin `stride`
    /// elements apart. They look at the same keys.
    fn queries<T: AttentionElement>(
        &self,
        block: &mut Block<T::Wide>,
        [queries, keys, values]: [Heads<'_, T>; 3],
        mask: &Mask<'_, T>,
        (first, n): (usize, usize),
        out: &mut [T],
        stride: usize,
    ) -> Result<(), Error> {
        let place = |row: usize| {
            (
                (first + row) / self.n_queries,
                (first + row) % self.n_queries,
            )
        };
        let (head, _) = place(0);
        let (batch, key_head) = (head / self.heads, head % self.heads / self.n_sharing);
        let key_block = batch * self.key_heads + key_head;
        let (keys, values) = (keys.lend(key_block)?, values.lend(key_block)?);
        let (keys, values) = (keys.elements()?, values.elements()?);
        let start = |which: usize, head: usize, row: usize| {
            let strides = &self.strides[which];
            batch * strides[0] + head * strides[1] + row * strides[2]
        };
        let zero = <T::Wide as Element>::ZERO;
        block.queries.clear();
        let mut n_seen = 0;
        for (head, query) in (0..n).map(place) {
            let lent = queries.lend(head)?;
            let from = start(0, head % self.heads, query);
            let strides = &self.strides[0][2..];
            pack(
                lent.elements()?,
                from,
                [1, self.depth],
                strides,
                &mut block.queries,
            );
            n_seen = self.n_seen(batch, query).max(n_seen);
        }
        block.sums.clear();
        block.sums.resize(n * self.width, zero);
        block.states.clear();
        block.states.resize(n, (T::Wide::LOWEST, zero));
        let scale = T::Wide::from_f64(self.scale);
        for key in (0..n_seen).step_by(N_KEYS) {
            let n_keys = N_KEYS.min(n_seen - key);
            let lie = |which: usize, columns: usize| {
                let from = start(which, key_head, key);
                (from, [n_keys, columns], &self.strides[which][2..])
            };
            let keys = lent_rows(keys, lie(1, self.depth), &mut block.keys);
            let values = lent_rows(values, lie(2, self.width), &mut block.values);
            for (row, (head, query)) in (0..n).map(place).enumerate() {
                let n_keys = n_keys.min(self.n_seen(batch, query).saturating_sub(key));
                let scores = &mut block.scores[..n_keys];
                let own = &block.queries[row * self.depth..][..self.depth];
                rows::score(block.processor, own, keys, scale, scores);
                let place = [batch, head % self.heads, query, key];
                mask_row(mask, place, scores);
                let sums = &mut block.sums[row * self.width..][..self.width];
                weigh(scores, &mut block.states[row], sums);
                if let Mask::Replaced(seen, by) = mask
                    && by.weighs_nothing
                {
                    replace_unseen(seen, place, zero, scores);
                }
                rows::add(block.processor, scores, values, sums);
            }
        }
        let rows = out
            .chunks_mut(stride)
            .zip(block.sums.chunks_exact(self.width));
        for ((out, sums), (_, sum)) in rows.zip(&block.states) {
            let looks_at_none = sum.same(zero);
            for (out, x) in out.iter_mut().zip(sums) {
                *out = T::narrowed(if looks_at_none { zero } else { x.over(*sum) });
            }
        }
        Ok(())
    }

    /// Returns the number of keys that a query attends to.
    fn n_seen(&self, batch: usize, query: usize) -> usize {
        let most = self.causal.map_or(self.n_keys, |before| {
            before.saturating_add(query).saturating_add(1)
        });
        let len = self.lens.as_ref().map_or(self.n_keys, |lens| lens[batch]);
        most.min(len).min(self.n_keys)
    }
}

impl<W: Element> Block<W> {
    fn new() -> Self {
        Block {
            processor: InstructionSet::best().processor(),
            queries: Vec::new(),
            keys: Vec::new(),
            values: Vec::new(),
            scores: [W::ZERO; N_KEYS],
            sums: Vec::new(),
            states: Vec::new(),
        }
    }
}

/// Returns rows that begin at `start` as they lie, if they can be calculated with; else their copies in `kept`.
fn lent_rows<'a, T: AttentionElement>(
    x: &'a [T],
    (start, extents, strides): (usize, [usize; 2], &[usize]),
    kept: &'a mut Vec<T::Wide>,
) -> KeyRows<'a, T::Wide> {
    if T::DTYPE == T::Wide::DTYPE
        && strides[1] == 1
        && extents[1] > 0
        && let Ok(elements) = from_bytes(to_bytes(&x[start..]))
    {
        let stride = strides[0];
        return KeyRows { elements, stride };
    }
    kept.clear();
    pack(x, start, extents, strides, kept);
    KeyRows {
        elements: kept,
        stride: extents[1],
    }
}

/// Appends copies of rows that begin at `start`, widened, behind each other.
fn pack<T: Number>(
    x: &[T],
    start: usize,
    [n_rows, n_columns]: [usize; 2],
    strides: &[usize],
    out: &mut Vec<T::Wide>,
) {
    let before = out.len();
    out.resize(before + n_rows * n_columns, <T::Wide as Element>::ZERO);
    if n_columns == 0 {
        return;
    }
    for (row, out) in out[before..].chunks_exact_mut(n_columns).enumerate() {
        let x = &x[start + row * strides[0]..];
        vectorized(
            #[inline(always)]
            || match strides[1] {
                1 => {
                    let each = out.iter_mut().zip(x);
                    each.for_each(|(out, x)| *out = x.widened());
                }
                stride => {
                    for (column, out) in out.iter_mut().enumerate() {
                        *out = x[column * stride].widened();
                    }
                }
            },
        );
    }
}

/// Applies a mask to the scores of a query and a range of keys.
fn mask_row<T: AttentionElement>(mask: &Mask<'_, T>, place: [usize; 4], scores: &mut [T::Wide]) {
    match mask {
        Mask::None => {}
        Mask::Additive(view) => {
            let added = row(view, place, scores.len());
            for (score, added) in scores.iter_mut().zip(added) {
                *score = score.plus(added.widened());
            }
        }
        Mask::Boolean(view) => replace_unseen(view, place, T::Wide::LOWEST, scores),
        Mask::Replaced(view, by) => {
            replace_unseen(view, place, T::Wide::from_f64(by.score), scores);
        }
    }
}

/// Puts a number where a mask has false.
fn replace_unseen<W: Element>(
    seen: &TensorView<'_, Bool>,
    place: [usize; 4],
    number: W,
    scores: &mut [W],
) {
    let seen = row(seen, place, scores.len());
    for (score, is_seen) in scores.iter_mut().zip(seen) {
        if !bool::from(is_seen) {
            *score = number;
        }
    }
}

/// Returns `n` elements of a mask, for a query and the keys from one on.
fn row<'a, U: Element>(
    view: &TensorView<'a, U>,
    place: [usize; 4],
    n: usize,
) -> impl Iterator<Item = U> + 'a {
    let strides = view.strides();
    let start: usize = place
        .iter()
        .zip(strides)
        .map(|(c, stride)| c * stride)
        .sum();
    let (stride, elements) = (strides[3], view.elements());
    (0..n).map(move |index| elements[start + index * stride])
}

/// Turns scores of a query into weights by the largest score so far; scales the sums down if that grows.
fn weigh<W>(scores: &mut [W], (largest, sum): &mut (W, W), sums: &mut [W])
where
    W: crate::math::number::Floating<Wide = W>,
{
    let now = largest.greatest(block::<Maximum, W>(scores));
    if now.same(W::LOWEST) {
        // Nothing is seen yet.
        scores.fill(W::ZERO);
        return;
    }
    let before = <Exp as Unary<W>>::apply(largest.minus(now));
    vectorized(
        #[inline(always)]
        || {
            for score in scores.iter_mut() {
                *score = <Exp as Unary<W>>::apply(score.minus(now));
            }
            if !before.same(W::ONE) {
                sums.iter_mut().for_each(|x| *x = x.times(before));
            }
        },
    );
    *sum = sum.times(before).plus(block::<Sum, W>(scores));
    *largest = now;
}
