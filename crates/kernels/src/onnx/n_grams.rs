//! `TfIdfVectorizer`: counts n-grams of words or numbers in rows, with gaps between their elements allowed.

use std::collections::HashMap;
use std::hash::Hash;

use tfrt_host::Error;
use tfrt_tensor::{DType, Dims, Tensor};

use super::{NodeCall, Operations, Outputs};

pub(super) const OPERATIONS: &Operations = &[("onnx.TfIdfVectorizer", tf_idf_vectorizer)];

/// The way from counts to results.
enum Mode {
    /// The counts.
    Counts,
    /// The weight, or 1, if there is at least one.
    Weights,
    /// The counts times the weights.
    WeightedCounts,
}

/// The n-grams that are counted, with their indices.
struct Pool<K> {
    /// The index of each n-gram, by length, from 1 on.
    places: HashMap<Vec<K>, usize>,
    lens: Vec<usize>,
}

/// `TfIdfVectorizer(x)`, attributes `min_gram_length`, `max_gram_length`, `max_skip_count`, `mode`, `ngram_counts`,
/// `ngram_indexes`, `pool_int64s` or `pool_strings`, `weights`.
fn tf_idf_vectorizer(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.tensor(0)?;
    let shape = x.metadata().shape.to_dims();
    let (n_rows, len) = match shape[..] {
        [len] => (1, len),
        [n_rows, len] => (n_rows, len),
        _ => {
            let message = format_args!("is expected to have one dimension or two, found {shape:?}");
            return Err(node.inputs.error(0, message));
        }
    };
    match x {
        Tensor::String(strings) => {
            let pool = node.attributes.strings("pool_strings")?;
            let pool = pool.ok_or_else(|| node.attributes.missing("pool_strings"))?;
            let words: Vec<&[u8]> = strings.strings().iter().map(Vec::as_slice).collect();
            count(node, &words, (n_rows, len), &shape, &pool)
        }
        _ => {
            let pool = node.attributes.integers("pool_int64s")?;
            let pool = pool.ok_or_else(|| node.attributes.missing("pool_int64s"))?;
            count(node, &node.inputs.integers(0)?, (n_rows, len), &shape, pool)
        }
    }
}

fn count<K: Clone + Eq + Hash>(
    node: &NodeCall<'_>,
    words: &[K],
    (n_rows, len): (usize, usize),
    shape: &[usize],
    pool: &[K],
) -> Result<Outputs, Error> {
    let integers = |name| {
        let list = node.attributes.integers(name)?;
        let list = list.ok_or_else(|| node.attributes.missing(name))?;
        super::movement::sizes(node, list)
    };
    let indexes = integers("ngram_indexes")?;
    let pool = Pool::new(node, pool, &integers("ngram_counts")?, &indexes)?;
    let n_counts = indexes
        .iter()
        .max()
        .map_or(0, |most| most.saturating_add(1));
    let weights = node.attributes.floats("weights")?;
    if weights.is_some_and(|weights| weights.len() != indexes.len()) {
        let message = format_args!("is expected to have {} weights", indexes.len());
        return Err(node.attributes.error("weights", message));
    }
    let mode = match node.attributes.string_or("mode", "TF")? {
        "TF" => Mode::Counts,
        "IDF" => Mode::Weights,
        "TFIDF" => Mode::WeightedCounts,
        other => {
            let message = format_args!("is expected to be TF, IDF or TFIDF, found '{other}'");
            return Err(node.attributes.error("mode", message));
        }
    };
    let mut extents = Dims::from_slice(&shape[..shape.len() - 1]);
    extents.push(n_counts);
    let out = node.zeros(DType::F32, &extents)?;
    let mut weight_of = Vec::new();
    if weight_of.try_reserve_exact(n_counts).is_err() {
        return Err(Error::resource_exhausted(format!(
            "no memory for {n_counts} weights"
        )));
    }
    weight_of.resize(n_counts, 1.0);
    for (index, weight) in indexes.iter().zip(weights.unwrap_or(&[])) {
        weight_of[*index] = *weight;
    }
    {
        let mut writing = out.write()?;
        let out = writing.elements_mut::<f32>()?;
        let ranges = Ranges::new(node, len)?;
        for row in 0..n_rows {
            let out = &mut out[row * n_counts..(row + 1) * n_counts];
            pool.count(&words[row * len..(row + 1) * len], &ranges, out);
            for (count, weight) in out.iter_mut().zip(&weight_of) {
                *count = match mode {
                    Mode::Counts => *count,
                    Mode::Weights if *count > 0.0 => *weight,
                    Mode::Weights => 0.0,
                    Mode::WeightedCounts => *count * weight,
                };
            }
        }
    }
    Ok(out.into())
}

/// The lengths and gaps of n-grams that are counted.
struct Ranges {
    shortest: usize,
    longest: usize,
    most_skipped: usize,
}

impl Ranges {
    fn new(node: &NodeCall<'_>, len: usize) -> Result<Ranges, Error> {
        let size = |name| match node.attributes.size_or(name, usize::MAX)? {
            usize::MAX => Err(node.attributes.missing(name)),
            size => Ok(size),
        };
        Ok(Ranges {
            shortest: size("min_gram_length")?.max(1),
            longest: size("max_gram_length")?.min(len),
            // Longer gaps leave no place for a second word.
            most_skipped: size("max_skip_count")?.min(len),
        })
    }
}

impl<K: Clone + Eq + Hash> Pool<K> {
    /// Splits the pool by length: `counts[n - 1]` is where n-grams of length `n` begin.
    fn new(
        node: &NodeCall<'_>,
        pool: &[K],
        counts: &[usize],
        indexes: &[usize],
    ) -> Result<Self, Error> {
        let mut places = HashMap::new();
        let mut lens = Vec::new();
        let mut next = 0;
        for (shorter, start) in counts.iter().enumerate() {
            let end = counts.get(shorter + 1).copied().unwrap_or(pool.len());
            let part = pool
                .get(*start..end)
                .filter(|part| part.len().is_multiple_of(shorter + 1));
            let part = part.ok_or_else(|| {
                let message = format_args!("does not cut a pool of {} in sequences", pool.len());
                node.attributes.error("ngram_counts", message)
            })?;
            if !part.is_empty() {
                lens.push(shorter + 1);
            }
            for sequence in part.chunks_exact(shorter + 1) {
                let place = indexes.get(next).ok_or_else(|| {
                    node.attributes
                        .error("ngram_indexes", "is expected to have one for each sequence")
                })?;
                places.entry(sequence.to_vec()).or_insert(*place);
                next += 1;
            }
        }
        Ok(Pool { places, lens })
    }

    /// Counts the n-grams of a row, with gaps of one length.
    fn count(&self, row: &[K], ranges: &Ranges, out: &mut [f32]) {
        let mut sequence = Vec::new();
        for len in self.lens.iter().copied() {
            if len < ranges.shortest || len > ranges.longest {
                continue;
            }
            // Words by themselves have no gaps.
            let most_skipped = if len == 1 { 0 } else { ranges.most_skipped };
            for step in 1..=most_skipped + 1 {
                let reach = (len - 1).saturating_mul(step);
                for start in 0..row.len().saturating_sub(reach) {
                    sequence.clear();
                    sequence.extend((0..len).map(|index| row[start + index * step].clone()));
                    if let Some(place) = self.places.get(&sequence) {
                        out[*place] += 1.0;
                    }
                }
            }
        }
    }
}
