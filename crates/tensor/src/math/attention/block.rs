//! Flash attention: blocks of queries that walk over blocks of keys with a running softmax.

use std::num::NonZeroUsize;

use tfrt_host::Error;
use tfrt_host::memory::OwnedReading;

use super::{Attention, AttentionElement, Mask};
use crate::math::elementwise::{Exp, Unary};
use crate::math::matmul::{Matrix, Rows, Scale, multiply};
use crate::math::number::{Number, Real};
use crate::math::reduce::{Maximum, Sum, block};
use crate::math::{parallel, vectorized};
use crate::{Dims, Element, GrowableTensor, TensorView, from_bytes};

/// Number of queries of a block.
const N_QUERIES: usize = 64;
/// Number of keys of a block.
const N_KEYS: usize = 128;

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
    queries: Vec<W>,
    keys: Vec<W>,
    values: Vec<W>,
    scores: Vec<W>,
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
        })
    }

    /// Returns the chunk length of a result with merged heads, for [`run_merged_heads`](Self::run_merged_heads).
    pub(super) fn chunk_len_merged_heads(&self) -> NonZeroUsize {
        let row = self.heads.saturating_mul(self.width);
        let operations = self.n_keys.saturating_mul(2) / 8;
        parallel::chunk_len(operations, row.saturating_mul(N_QUERIES))
    }

    /// Returns the chunk length of a result: whole blocks of queries.
    pub(super) fn chunk_len(&self) -> NonZeroUsize {
        let operations = self.n_keys.saturating_mul(2) / 8;
        parallel::chunk_len(operations, self.width.saturating_mul(N_QUERIES))
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
            // Blocks begin at multiples of their size, and at heads: the same wherever chunks begin.
            let (head, query) = (row / self.n_queries, row % self.n_queries);
            let n = (N_QUERIES - row % N_QUERIES)
                .min(self.n_queries - query)
                .min(rest.len() / self.width);
            let (part, after) = std::mem::take(&mut rest).split_at_mut(n * self.width);
            self.queries(
                &mut block,
                elements,
                mask,
                [head, query, n],
                part,
                self.width,
            )?;
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
            let n = (N_QUERIES - query % N_QUERIES)
                .min(self.n_queries - query)
                .min(rest.len() / stride);
            let (part, after) = std::mem::take(&mut rest).split_at_mut(n * stride);
            for head in 0..self.heads {
                let place = [batch * self.heads + head, query, n];
                let part = &mut part[head * self.width..];
                self.queries(&mut block, elements, mask, place, part, stride)?;
            }
            (row, rest) = (row + n, after);
        }
        Ok(())
    }

    /// Makes the results of `n` queries of a head, in rows that begin `stride` elements apart.
    fn queries<T: AttentionElement>(
        &self,
        block: &mut Block<T::Wide>,
        [queries, keys, values]: [Heads<'_, T>; 3],
        mask: &Mask<'_, T>,
        [head, query, n]: [usize; 3],
        out: &mut [T],
        stride: usize,
    ) -> Result<(), Error> {
        let (batch, own_head) = (head / self.heads, head % self.heads);
        let key_head = own_head / self.n_sharing;
        let key_block = batch * self.key_heads + key_head;
        let (queries, keys) = (queries.lend(head)?, keys.lend(key_block)?);
        let values = values.lend(key_block)?;
        let (queries, keys) = (queries.elements()?, keys.elements()?);
        let values = values.elements()?;
        let start = |which: usize, head: usize, row: usize| {
            let strides = &self.strides[which];
            batch * strides[0] + head * strides[1] + row * strides[2]
        };
        let zero = <T::Wide as Element>::ZERO;
        let from = start(0, own_head, query);
        pack(
            queries,
            from,
            [n, self.depth],
            &self.strides[0][2..],
            &mut block.queries,
        );
        block.sums.clear();
        block.sums.resize(n * self.width, zero);
        block.states.clear();
        block.states.resize(n, (T::Wide::LOWEST, zero));
        // The last query sees most.
        let n_seen = self.n_seen(query + n - 1);
        for key in (0..n_seen).step_by(N_KEYS) {
            let n_keys = N_KEYS.min(n_seen - key);
            let (from, strides) = (start(1, key_head, key), &self.strides[1][2..]);
            pack(keys, from, [n_keys, self.depth], strides, &mut block.keys);
            let (from, strides) = (start(2, key_head, key), &self.strides[2][2..]);
            pack(
                values,
                from,
                [n_keys, self.width],
                strides,
                &mut block.values,
            );
            self.score(block, n, n_keys);
            for row in 0..n {
                let scores = &mut block.scores[row * n_keys..][..n_keys];
                let n_seen = self.n_seen(query + row).saturating_sub(key);
                scores[n_seen.min(n_keys)..].fill(T::Wide::LOWEST);
                mask_row(mask, [batch, own_head, query + row, key], scores);
                let sums = &mut block.sums[row * self.width..][..self.width];
                weigh(scores, &mut block.states[row], sums);
            }
            self.add(block, n, n_keys);
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
    fn n_seen(&self, query: usize) -> usize {
        let most = self.causal.map_or(self.n_keys, |before| {
            before.saturating_add(query).saturating_add(1)
        });
        most.min(self.n_keys)
    }

    /// Multiplies queries by keys.
    fn score<W: Real + crate::math::matmul::MatmulElement>(
        &self,
        block: &mut Block<W>,
        n: usize,
        n_keys: usize,
    ) {
        block.scores.clear();
        block.scores.resize(n * n_keys, W::ZERO);
        let scale = Scale {
            of_product: W::from_f64(self.scale),
            of_result: W::ZERO,
        };
        let queries = Matrix::new(&block.queries, 0, [n, self.depth], [self.depth, 1]);
        let keys = Matrix::new(&block.keys, 0, [self.depth, n_keys], [1, self.depth]);
        let scores = Rows::new(&mut block.scores, [n, n_keys], n_keys);
        multiply(scale, queries, keys, scores);
    }

    /// Adds values, each times its weight, to the sums.
    fn add<W: Real + crate::math::matmul::MatmulElement>(
        &self,
        block: &mut Block<W>,
        n: usize,
        n_keys: usize,
    ) {
        let sum = Scale {
            of_product: W::ONE,
            of_result: W::ONE,
        };
        let weights = Matrix::new(&block.scores, 0, [n, n_keys], [n_keys, 1]);
        let values = Matrix::new(&block.values, 0, [n_keys, self.width], [self.width, 1]);
        let sums = Rows::new(&mut block.sums, [n, self.width], self.width);
        multiply(sum, weights, values, sums);
    }
}

impl<W> Block<W> {
    fn new() -> Self {
        Block {
            queries: Vec::new(),
            keys: Vec::new(),
            values: Vec::new(),
            scores: Vec::new(),
            sums: Vec::new(),
            states: Vec::new(),
        }
    }
}

/// Copies rows that begin at `start`, widened, behind each other.
fn pack<T: Number>(
    x: &[T],
    start: usize,
    [n_rows, n_columns]: [usize; 2],
    strides: &[usize],
    out: &mut Vec<T::Wide>,
) {
    out.clear();
    out.resize(n_rows * n_columns, <T::Wide as Element>::ZERO);
    if n_columns == 0 {
        return;
    }
    for (row, out) in out.chunks_exact_mut(n_columns).enumerate() {
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
fn mask_row<T: AttentionElement>(
    mask: &Mask<'_, T>,
    [batch, head, query, key]: [usize; 4],
    scores: &mut [T::Wide],
) {
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
    let place = [batch, head, query, key];
    match mask {
        Mask::None => {}
        Mask::Additive(view) => {
            let added = row(view, place, scores.len());
            for (score, added) in scores.iter_mut().zip(added) {
                *score = score.plus(added.widened());
            }
        }
        Mask::Boolean(view) => {
            let seen = row(view, place, scores.len());
            for (score, is_seen) in scores.iter_mut().zip(seen) {
                if !bool::from(is_seen) {
                    *score = T::Wide::LOWEST;
                }
            }
        }
    }
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
