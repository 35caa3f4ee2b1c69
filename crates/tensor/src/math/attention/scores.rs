//! Attention with all that may be done with scores, query by query: slower than [`attention_into`], which a score
//! is not looked at in.
//!
//! [`attention_into`]: super::attention_into

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use crate::math::Family;
use crate::math::elementwise::broadcast_extents;
use crate::math::number::Real;
use crate::math::parallel;
use crate::with_floating;
use crate::{Bool, DType, DenseHostTensor, Dims};

/// Options of attention with soft capping and lengths, beyond those of [`Attention`](super::Attention).
#[derive(Clone, Debug)]
pub struct ScoreOptions {
    /// The factor of scores.
    pub scale: f64,
    /// Above 0, scores become `softcap * tanh(score / softcap)`.
    pub softcap: f64,
    /// Causal attention: query `i` attends to the first `i + 1 + causal` keys.
    pub causal: Option<usize>,
    /// Number of keys of each batch.
    pub lens: Option<Vec<usize>>,
}

/// The stage of scores that a caller asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreStage {
    /// The product, scaled.
    Product,
    /// Scores after `softcap`.
    Capped,
    /// Scores after the mask.
    Masked,
    /// The share of the key.
    Softmax,
}

/// The tensors, and how they lie.
#[derive(Clone, Debug)]
struct ScorePlan {
    scoring: ScoreOptions,
    queries: DenseHostTensor,
    keys: DenseHostTensor,
    /// The mask with its extents, padded to four. Keys behind its last are not attended to.
    mask: Option<(DenseHostTensor, [usize; 4])>,
    heads: usize,
    key_heads: usize,
    n_queries: usize,
    n_keys: usize,
    depth: usize,
}

impl ScorePlan {
    fn new(
        scoring: ScoreOptions,
        [queries, keys]: [&DenseHostTensor; 2],
        mask: Option<&DenseHostTensor>,
    ) -> Result<ScorePlan, Error> {
        let shapes = [queries, keys].map(|tensor| tensor.shape().to_dims());
        let misfit = || {
            let mask = mask.map(|mask| mask.shape().to_dims());
            let lens = scoring.lens.as_ref().map(Vec::len);
            let mask = mask.map(|mask| format!(", and a mask {mask:?}"));
            let lens = lens.map(|lens| format!(", and {lens} lengths"));
            let message = format!(
                "queries {:?}, keys {:?}{}{} don't fit together",
                shapes[0],
                shapes[1],
                mask.unwrap_or_default(),
                lens.unwrap_or_default()
            );
            Error::invalid_argument(message)
        };
        let (&[batch, heads, n_queries, depth], &[key_batch, key_heads, n_keys, key_depth]) =
            (&shapes[0][..], &shapes[1][..])
        else {
            return Err(misfit());
        };
        let fits =
            batch == key_batch && depth == key_depth && key_heads > 0 && heads % key_heads == 0;
        let has_lens = scoring.lens.as_ref().is_none_or(|lens| lens.len() == batch);
        if !fits || !has_lens {
            return Err(misfit());
        }
        let mask = match mask {
            None => None,
            Some(mask) => {
                let extents = mask.shape().to_dims();
                let mut four = [1; 4];
                let first = 4_usize.checked_sub(extents.len()).ok_or_else(misfit)?;
                four[first..].copy_from_slice(&extents);
                let all = broadcast_extents(&[&four[..3], &[batch, heads, n_queries]])?;
                if all[..] != [batch, heads, n_queries] || four[3] > n_keys {
                    return Err(misfit());
                }
                Some((mask.clone(), four))
            }
        };
        Ok(ScorePlan {
            scoring,
            queries: queries.clone(),
            keys: keys.clone(),
            mask,
            heads,
            key_heads,
            n_queries,
            n_keys,
            depth,
        })
    }

    /// Returns the scores of a query, as they are at a stage.
    fn scores<T: Real>(
        &self,
        index: usize,
        stage: ScoreStage,
        scores: &mut Vec<f64>,
    ) -> Result<(), Error> {
        let (rest, query) = (index / self.n_queries, index % self.n_queries);
        let (batch, head) = (rest / self.heads, rest % self.heads);
        let key_head = head / (self.heads / self.key_heads);
        let (queries, keys) = (self.queries.read()?, self.keys.read()?);
        let row = &queries.elements::<T>()?[index * self.depth..][..self.depth];
        let start = (batch * self.key_heads + key_head) * self.n_keys * self.depth;
        let keys = &keys.elements::<T>()?[start..][..self.n_keys * self.depth];
        scores.clear();
        for key in 0..self.n_keys {
            let key = &keys[key * self.depth..][..self.depth];
            let product: f64 = row
                .iter()
                .zip(key)
                .map(|(q, k)| q.to_f64() * k.to_f64())
                .sum();
            scores.push(product * self.scoring.scale);
        }
        if stage == ScoreStage::Product {
            return Ok(());
        }
        let softcap = self.scoring.softcap;
        if softcap > 0.0 {
            scores
                .iter_mut()
                .for_each(|score| *score = softcap * (*score / softcap).tanh());
        }
        if stage == ScoreStage::Capped {
            return Ok(());
        }
        self.mask::<T>([batch, head, query], scores)?;
        if stage == ScoreStage::Softmax {
            softmax(scores);
        }
        Ok(())
    }

    fn mask<T: Real>(&self, place: [usize; 3], scores: &mut [f64]) -> Result<(), Error> {
        if let Some((mask, extents)) = &self.mask {
            let mut start = 0;
            for (coordinate, extent) in place.iter().zip(extents) {
                start = start * extent + if *extent == 1 { 0 } else { *coordinate };
            }
            let (reading, len) = (mask.read()?, extents[3]);
            let is_one = len == 1 && self.n_keys > 1;
            let truths = if mask.dtype() == DType::I1 {
                Some(reading.elements::<Bool>()?)
            } else {
                None
            };
            let numbers = if truths.is_none() {
                Some(reading.elements::<T>()?)
            } else {
                None
            };
            for (key, score) in scores.iter_mut().enumerate() {
                let key = if is_one { 0 } else { key };
                let added = match (truths, numbers) {
                    _ if key >= len => f64::NEG_INFINITY,
                    (Some(truths), _) if truths[start * len + key].into() => 0.0,
                    (_, Some(numbers)) => numbers[start * len + key].to_f64(),
                    _ => f64::NEG_INFINITY,
                };
                *score += added;
            }
        }
        let last = self
            .scoring
            .causal
            .map(|more| place[2].saturating_add(more));
        let n_keys = self.scoring.lens.as_ref().map(|lens| lens[place[0]]);
        for (key, score) in scores.iter_mut().enumerate() {
            if last.is_some_and(|last| key > last) || n_keys.is_some_and(|n| key >= n) {
                *score = f64::NEG_INFINITY;
            }
        }
        Ok(())
    }
}

/// Applies softmax to scores in place. If all scores are minus infinity, all results are 0.
fn softmax(scores: &mut [f64]) {
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return scores.fill(0.0);
    }
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        *score = (*score - largest).exp();
        sum += *score;
    }
    scores.iter_mut().for_each(|score| *score /= sum);
}

/// Calculates the scores of all queries and keys, as they are at a stage.
///
/// # Shapes
///
/// Those of [`attention`](super::attention()); the mask may have fewer keys, the others are not looked at. `out`:
/// `[batch, heads, n_queries, n_keys]`.
///
/// # Errors
///
/// `InvalidArgument` if the shapes or types are not that, and those of [`parallel::fill`].
pub fn scores_into(
    execution: &ExecutionContext,
    wanted: (ScoreOptions, ScoreStage),
    inputs: [&DenseHostTensor; 2],
    mask: Option<&DenseHostTensor>,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = inputs[0].dtype();
    with_floating!(dtype, T => scores_of::<T>(execution, wanted, inputs, mask, out), else Err(Family::Floats.lacks(dtype)))
}

fn scores_of<T: Real>(
    execution: &ExecutionContext,
    (scoring, stage): (ScoreOptions, ScoreStage),
    inputs: [&DenseHostTensor; 2],
    mask: Option<&DenseHostTensor>,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let plan = ScorePlan::new(scoring, inputs, mask)?;
    let mut wanted = inputs[0].shape().to_dims();
    wanted[3] = plan.n_keys;
    expect(&wanted, out)?;
    let row = plan.n_keys.max(1);
    let chunk = parallel::chunk_len(plan.depth, row);
    parallel::fill(execution, out, chunk, move |first, part: &mut [T]| {
        let mut scores = Vec::new();
        for (index, part) in part.chunks_mut(row).enumerate() {
            plan.scores::<T>(first / row + index, stage, &mut scores)?;
            for (out, score) in part.iter_mut().zip(&scores) {
                *out = T::from_f64(*score);
            }
        }
        Ok(())
    })
}

/// Calculates attention with all that may be done with scores.
///
/// # Shapes
///
/// Those of [`attention`](super::attention()); the mask may have fewer keys, the others are not looked at.
///
/// # Errors
///
/// `InvalidArgument` if the shapes or types are not that, and those of [`parallel::fill`].
pub fn scored_into(
    execution: &ExecutionContext,
    scoring: ScoreOptions,
    inputs: [&DenseHostTensor; 3],
    mask: Option<&DenseHostTensor>,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = inputs[0].dtype();
    with_floating!(dtype, T => scored_of::<T>(execution, scoring, inputs, mask, out), else Err(Family::Floats.lacks(dtype)))
}

fn scored_of<T: Real>(
    execution: &ExecutionContext,
    scoring: ScoreOptions,
    [queries, keys, values]: [&DenseHostTensor; 3],
    mask: Option<&DenseHostTensor>,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let plan = ScorePlan::new(scoring, [queries, keys], mask)?;
    let mut wanted: Dims = queries.shape().to_dims();
    let of_values = values.shape().to_dims();
    let width = of_values.last().copied().unwrap_or(0);
    wanted[3] = width;
    expect(&wanted, out)?;
    let keys_like = keys.shape().to_dims();
    if of_values.len() != 4 || of_values[..3] != keys_like[..3] {
        let message = format!("expected values for keys {keys_like:?}, found {of_values:?}");
        return Err(Error::invalid_argument(message));
    }
    let (values, row) = (values.clone(), width.max(1));
    let cost = plan.n_keys.saturating_mul(plan.depth.saturating_add(width)) / row;
    parallel::fill(
        execution,
        out,
        parallel::chunk_len(cost, row),
        move |first, part: &mut [T]| {
            let reading = values.read()?;
            let values = reading.elements::<T>()?;
            let (mut scores, mut sums) = (Vec::new(), vec![0.0; width]);
            for (index, part) in part.chunks_mut(row).enumerate() {
                let index = first / row + index;
                plan.scores::<T>(index, ScoreStage::Softmax, &mut scores)?;
                let rest = index / plan.n_queries;
                let (batch, head) = (rest / plan.heads, rest % plan.heads);
                let key_head = head / (plan.heads / plan.key_heads);
                let start = (batch * plan.key_heads + key_head) * plan.n_keys;
                sums.fill(0.0);
                for (key, share) in scores
                    .iter()
                    .enumerate()
                    .filter(|(_, share)| **share != 0.0)
                {
                    let value = &values[(start + key) * width..][..width];
                    for (sum, value) in sums.iter_mut().zip(value) {
                        *sum += share * value.to_f64();
                    }
                }
                for (out, sum) in part.iter_mut().zip(&sums) {
                    *out = T::from_f64(*sum);
                }
            }
            Ok(())
        },
    )
}

fn expect(wanted: &[usize], out: &DenseHostTensor) -> Result<(), Error> {
    if out.shape().to_dims()[..] == *wanted {
        return Ok(());
    }
    let found = out.shape();
    let message = format!("expected a result of shape {wanted:?}, found {found}");
    Err(Error::invalid_argument(message))
}

#[cfg(test)]
mod tests {
    use super::softmax;

    #[test]
    fn shares_sum_up_to_one_or_none() {
        let mut scores = [0.0, f64::NEG_INFINITY, 0.0];
        softmax(&mut scores);
        assert_eq!(scores, [0.5, 0.0, 0.5]);
        let mut none = [f64::NEG_INFINITY; 2];
        softmax(&mut none);
        assert_eq!(none, [0.0, 0.0]);
    }
}
