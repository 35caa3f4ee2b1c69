//! [`Classes`]: labels and scores of classes by support vectors.
//!
//! Each pair of classes has a score, a sum over the vectors of both; the class that wins most pairs is the label. With
//! parameters of a sigmoid for each pair, scores become probabilities of classes (Wu, Lin and Weng, "Probability
//! estimates for multi-class classification by pairwise coupling", 2004, its second method).

use tfrt_host::Error;

use super::super::super::NodeCall;
use super::super::labels::Labels;
use super::super::transform::{Transform, logistic, probit};
use super::{floats, other_len};

/// The most classes: each pair has a score.
const MAX_CLASSES: usize = 1 << 15;

/// The labels of classes, and the way from kernel functions to scores.
#[derive(Debug)]
pub(super) struct Classes {
    pub(super) labels: Labels,
    transform: Transform,
    pairs: Option<Pairs>,
    /// The summand of each score without pairs.
    summand: f32,
    all_positive: bool,
}

/// The pairs of classes, each with a score.
#[derive(Debug)]
struct Pairs {
    /// The index at which the vectors of each class begin, and at last the end.
    // Invariant: does not fall; one more than there are classes.
    starts: Vec<usize>,
    /// For each class but one a row with a weight for each vector.
    // Invariant: as many as these rows have.
    weights: Vec<f32>,
    // Invariant: one for each pair.
    summands: Vec<f32>,
    /// Of the sigmoid of each pair, if there are probabilities.
    // Invariant: one for each pair.
    sigmoids: Option<Vec<(f32, f32)>>,
}

impl Classes {
    pub(super) fn new(node: &NodeCall<'_>) -> Result<Classes, Error> {
        let labels = Labels::of(node, "classlabels_strings", "classlabels_ints")?;
        let weights = floats(node, "coefficients")?;
        let summands = floats(node, "rho")?;
        Ok(Classes {
            transform: Transform::of_name(node)?,
            pairs: Pairs::new(node, labels.len(), weights, summands)?,
            summand: summands[0],
            all_positive: weights.iter().all(|weight| *weight >= 0.0),
            labels,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.labels.len()
    }

    /// Returns the number of support vectors; without any, there is one vector of weights for each class.
    pub(super) fn n_vectors(&self) -> Option<usize> {
        let pairs = self.pairs.as_ref()?;
        pairs.starts.last().copied()
    }

    /// Returns the number of scores of a row.
    pub(super) fn n_scores(&self) -> usize {
        match &self.pairs {
            Some(Pairs {
                sigmoids: None,
                summands,
                ..
            }) => summands.len().max(2),
            _ => self.len(),
        }
    }

    /// Calculates scores from the kernel function of a row and each vector; returns the token of the label.
    pub(super) fn finish(&self, near: &[f32], scores: &mut [f32]) -> i64 {
        let Some(pairs) = &self.pairs else {
            return self.finish_linear(near, scores);
        };
        let (of_pairs, votes) = pairs.scores(near, self.len());
        let best = first_largest(&votes);
        match &pairs.sigmoids {
            Some(sigmoids) => {
                pairs_to_probabilities(&of_pairs, sigmoids, scores);
                self.transform.apply(scores);
            }
            None => match of_pairs[..] {
                [score] => scores.copy_from_slice(&self.two_of_one(score)),
                _ => {
                    scores.copy_from_slice(&of_pairs);
                    self.transform.apply(scores);
                }
            },
        }
        self.labels.token(best)
    }

    fn finish_linear(&self, near: &[f32], scores: &mut [f32]) -> i64 {
        for (score, near) in scores.iter_mut().zip(near) {
            *score = near + self.summand;
        }
        let best = first_largest(scores);
        let most = scores[best];
        let is_second = match self.all_positive {
            true => most >= 0.5,
            false => most > 0.0,
        };
        let class = if scores.len() == 2 && is_second {
            1
        } else {
            best
        };
        if scores.len() > 1 || self.transform == Transform::Probit {
            self.transform.apply(scores);
        }
        self.labels.token(class)
    }

    /// Returns both scores where there is one for two classes.
    fn two_of_one(&self, score: f32) -> [f32; 2] {
        match self.transform {
            Transform::Nothing => [-score, score],
            #[expect(clippy::cast_possible_truncation, reason = "scores are of 32 bits")]
            Transform::Probit => [probit(f64::from(score)) as f32, 0.0],
            #[expect(clippy::cast_possible_truncation, reason = "scores are of 32 bits")]
            Transform::Logistic => [-score, score].map(|score| logistic(f64::from(score)) as f32),
            _ => [1.0 - score, score],
        }
    }
}

impl Pairs {
    /// Reads the parameters of pairs, unless there are no support vectors.
    fn new(
        node: &NodeCall<'_>,
        n_classes: usize,
        weights: &[f32],
        summands: &[f32],
    ) -> Result<Option<Pairs>, Error> {
        let counts = node
            .attributes
            .integers("vectors_per_class")?
            .unwrap_or(&[]);
        let mut starts = vec![0_usize];
        for count in counts {
            let end = usize::try_from(*count).ok();
            let end = end.and_then(|count| count.checked_add(starts[starts.len() - 1]));
            starts.push(end.ok_or_else(|| {
                let message = format_args!("has the number {count} of vectors");
                node.attributes.error("vectors_per_class", message)
            })?);
        }
        let n_vectors = starts[starts.len() - 1];
        if n_vectors == 0 {
            return Ok(None);
        }
        if !(2..=MAX_CLASSES).contains(&n_classes) {
            return Err(node.error(format_args!(
                "expected from 2 to {MAX_CLASSES} classes, found {n_classes}"
            )));
        }
        if counts.len() != n_classes {
            return Err(other_len(
                node,
                "vectors_per_class",
                n_classes,
                counts.len(),
            ));
        }
        let n_weights = n_vectors.saturating_mul(n_classes - 1);
        if weights.len() != n_weights {
            return Err(other_len(node, "coefficients", n_weights, weights.len()));
        }
        let n_pairs = n_classes * (n_classes - 1) / 2;
        if summands.len() < n_pairs {
            return Err(other_len(node, "rho", n_pairs, summands.len()));
        }
        let a = node.attributes.floats("prob_a")?.unwrap_or(&[]);
        let b = node.attributes.floats("prob_b")?.unwrap_or(&[]);
        let has_sigmoids = !a.is_empty() || !b.is_empty();
        for (name, list) in [("prob_a", a), ("prob_b", b)] {
            if has_sigmoids && list.len() < n_pairs {
                return Err(other_len(node, name, n_pairs, list.len()));
            }
        }
        let sigmoids = a.iter().copied().zip(b.iter().copied());
        Ok(Some(Pairs {
            starts,
            weights: weights.to_vec(),
            summands: summands[..n_pairs].to_vec(),
            sigmoids: has_sigmoids.then(|| sigmoids.take(n_pairs).collect()),
        }))
    }

    /// Returns the score of each pair, and the number of pairs that each class wins.
    fn scores(&self, near: &[f32], n_classes: usize) -> (Vec<f32>, Vec<f32>) {
        let mut scores = Vec::with_capacity(self.summands.len());
        let mut votes = vec![0.0; n_classes];
        // The weights that vectors of a class have in pairs with another one are in a row by that one's number, from
        // which their own is left out.
        let sum = |row: usize, class: usize| -> f64 {
            let vectors = self.starts[class]..self.starts[class + 1];
            let weights = &self.weights[row * near.len()..][vectors.clone()];
            let terms = weights.iter().zip(&near[vectors]);
            terms.map(|(weight, near)| f64::from(weight * near)).sum()
        };
        for first in 0..n_classes {
            for second in first + 1..n_classes {
                let summand = f64::from(self.summands[scores.len()]);
                let score = sum(second - 1, first) + sum(first, second) + summand;
                votes[if score > 0.0 { first } else { second }] += 1.0;
                #[expect(clippy::cast_possible_truncation, reason = "scores are of 32 bits")]
                scores.push(score as f32);
            }
        }
        (scores, votes)
    }
}

/// Returns the index of the largest number, of equal ones the first.
fn first_largest(list: &[f32]) -> usize {
    let mut best = 0;
    for (index, number) in list.iter().enumerate() {
        if *number > list[best] {
            best = index;
        }
    }
    best
}

/// Returns the probabilities of classes by the scores of pairs.
fn pairs_to_probabilities(scores: &[f32], sigmoids: &[(f32, f32)], p: &mut [f32]) {
    const LEAST: f32 = 1e-7;
    const MOST_ROUNDS: usize = 100;
    let n = p.len();
    // How likely a class is, if it is this one or that one.
    let mut likely = vec![0.0_f32; n * n];
    let mut pairs = scores.iter().zip(sigmoids);
    for first in 0..n {
        for second in first + 1..n {
            let Some((score, (a, b))) = pairs.next() else {
                break;
            };
            #[expect(clippy::cast_possible_truncation, reason = "scores are of 32 bits")]
            let it = (1.0 - logistic(f64::from(score * a + b))) as f32;
            let it = it.clamp(LEAST, 1.0 - LEAST);
            likely[first * n + second] = it;
            likely[second * n + first] = 1.0 - it;
        }
    }
    let mut matrix = vec![0.0_f32; n * n];
    for i in 0..n {
        for j in (0..n).filter(|j| *j != i) {
            matrix[i * n + i] += likely[j * n + i] * likely[j * n + i];
            matrix[i * n + j] = -likely[j * n + i] * likely[i * n + j];
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "there are few classes")]
    let n_classes = n as f32;
    p.fill(1.0 / n_classes);
    let mut products = vec![0.0_f32; n];
    for _ in 0..MOST_ROUNDS {
        for (product, row) in products.iter_mut().zip(matrix.chunks_exact(n)) {
            *product = row.iter().zip(&*p).map(|(a, b)| a * b).sum();
        }
        let mut total: f32 = products.iter().zip(&*p).map(|(a, b)| a * b).sum();
        let error = |product: &f32| (product - total).abs();
        if products.iter().map(error).fold(0.0, f32::max) < 0.005 / n_classes {
            break;
        }
        for i in 0..n {
            let step = (total - products[i]) / matrix[i * n + i];
            p[i] += step;
            let scale = 1.0 + step;
            total = (total + step * (step * matrix[i * n + i] + 2.0 * products[i])) / scale / scale;
            for j in 0..n {
                products[j] = (products[j] + step * matrix[i * n + j]) / scale;
                p[j] /= scale;
            }
        }
    }
}
