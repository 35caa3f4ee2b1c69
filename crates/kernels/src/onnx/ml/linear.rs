//! `LinearClassifier` where it can't be expanded to other operations: with one score for two classes, or a transform
//! of its own.

use std::sync::Arc;

use tfrt_host::Error;
use tfrt_tensor::DType;
use tfrt_tensor::math::parallel;
use tfrt_tensor::op::PreparedState;

use super::super::prepare::{PreparedKernel, erase};
use super::super::{NodeCall, Outputs};
use super::labels::Labels;
use super::rows::{Rows, fill_two};
use super::transform::{Transform, logistic, probit};
use super::vectors::{floats, other_len, summed};

/// `ml.LinearClassifier(x)`, `x: [n, features]`: a label for each row, and scores of classes.
#[derive(Debug)]
struct Classifier {
    labels: Labels,
    transform: Transform,
    /// One for each score.
    // Invariant: not empty.
    summands: Vec<f32>,
    // Invariant: as many for each score.
    weights: Vec<f32>,
}

pub(super) fn classifier(node: &NodeCall<'_>) -> Result<Option<Arc<dyn PreparedState>>, Error> {
    let labels = Labels::of(node, "classlabels_strings", "classlabels_ints")?;
    let weights = floats(node, "coefficients")?.to_vec();
    let summands = match node.attributes.floats("intercepts")? {
        Some(list) if !list.is_empty() => list.to_vec(),
        _ => vec![0.0; labels.len()],
    };
    let n_scores = summands.len();
    if n_scores != labels.len() && n_scores != 1 {
        return Err(other_len(node, "intercepts", labels.len(), n_scores));
    }
    if !weights.len().is_multiple_of(n_scores) {
        let message =
            format_args!("is expected to have as many elements for each of {n_scores} scores");
        return Err(node.attributes.error("coefficients", message));
    }
    Ok(Some(erase(Classifier {
        transform: Transform::of_name(node)?,
        labels,
        summands,
        weights,
    })))
}

impl Classifier {
    fn n_features(&self) -> usize {
        self.weights.len() / self.summands.len()
    }

    /// Returns the number of final scores of a row.
    fn n_scores(&self) -> usize {
        match self.summands.len() {
            1 if self.labels.len() == 2 => 2,
            n => n,
        }
    }

    fn of_row(&self, row: &[f32], scores: &mut [f32]) -> i64 {
        let weights = self.weights.chunks_exact(self.n_features());
        let sums = weights.zip(&self.summands);
        let sums = sums.map(|(weights, summand)| summed(row, weights, |a, b| a * b) + summand);
        for (score, sum) in scores.iter_mut().zip(sums) {
            *score = sum;
        }
        if self.summands.len() > 1 {
            let mut best = 0;
            for class in 1..scores.len() {
                if scores[class] > scores[best] {
                    best = class;
                }
            }
            self.transform.apply(scores);
            return self.labels.token(best);
        }
        let score = scores[0];
        if let [first, second] = scores {
            #[expect(clippy::cast_possible_truncation, reason = "scores are of 32 bits")]
            let of = |function: fn(f64) -> f64, x: f32| function(f64::from(x)) as f32;
            (*first, *second) = match self.transform {
                Transform::Logistic => (of(logistic, -score), of(logistic, score)),
                Transform::Probit => (of(probit, score), 0.0),
                _ => (1.0 - score, score),
            };
            return self.labels.token(usize::from(score > 0.0));
        }
        if self.transform == Transform::Probit {
            self.transform.apply(scores);
        }
        // Of one class alone it is said whether it is the one.
        i64::from(score > 0.0)
    }
}

impl PreparedKernel for Classifier {
    fn run(self: Arc<Self>, node: &NodeCall<'_>) -> Result<Outputs, Error> {
        let n_features = self.n_features();
        let rows = Rows::new(node, n_features)?.narrowed(node)?;
        if rows.n_features != n_features {
            let found = rows.n_features;
            let message = format_args!(
                "is expected to have {n_features} features in each row, found {found}"
            );
            return Err(node.inputs.error(0, message));
        }
        let width = self.n_scores();
        let tokens = node.zeros(DType::I64, &[rows.n_rows])?;
        let scores = node.zeros(DType::F32, &[rows.n_rows, width])?;
        let labels = self.labels.clone();
        let chain = fill_two::<i64, f32>(
            node.execution,
            rows.n_rows,
            parallel::chunk_len(self.weights.len(), 1),
            (&tokens, 1),
            (&scores, width),
            move |start, end, tokens, scores| {
                let reading = rows.tensor.read()?;
                let part = rows.part(reading.elements::<f32>()?, start, end);
                let results = tokens.iter_mut().zip(scores.chunks_exact_mut(width));
                for ((token, scores), row) in results.zip(part.chunks_exact(n_features)) {
                    *token = self.of_row(row, scores);
                }
                Ok(())
            },
        );
        let mut outputs = Outputs::new();
        labels.push(node, &mut outputs, tokens, &chain)?;
        Ok(outputs.and_later(scores, chain))
    }
}
