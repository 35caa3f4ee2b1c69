//! `SVMRegressor`, `SVMClassifier`: sums over support vectors of how near they are.
//!
//! Features are seen as `f32`. What is said of two classes, and when scores are transformed, is as ONNX Runtime has it,
//! which those who write models compare with.

use std::sync::Arc;

use tfrt_host::Error;
use tfrt_tensor::math::parallel;
use tfrt_tensor::op::PreparedState;
use tfrt_tensor::{DType, DenseHostTensor};

use super::super::prepare::{State, own};
use super::super::{Node, Outputs};
use super::rows::{Rows, fill_two};

mod classes;

use classes::Classes;

/// How near two rows of features are.
#[derive(Clone, Copy, Debug)]
enum Nearness {
    Linear,
    Polynomial,
    Radial,
    Sigmoid,
}

/// A measure of nearness with its parameters.
#[derive(Clone, Copy, Debug)]
struct Measure {
    nearness: Nearness,
    gamma: f32,
    summand: f32,
    degree: f32,
}

impl Measure {
    const LINEAR: Measure = Measure {
        nearness: Nearness::Linear,
        gamma: 0.0,
        summand: 0.0,
        degree: 0.0,
    };

    fn of(node: &Node<'_>) -> Result<Measure, Error> {
        let nearness = match node.attributes.string_or("kernel_type", "LINEAR")? {
            "LINEAR" => Nearness::Linear,
            "POLY" => Nearness::Polynomial,
            "RBF" => Nearness::Radial,
            "SIGMOID" => Nearness::Sigmoid,
            other => {
                let message = format_args!("has no meaning for '{}'", other.escape_debug());
                return Err(node.attributes.error("kernel_type", message));
            }
        };
        let (gamma, summand, degree) = match node.attributes.floats("kernel_params")? {
            None | Some([]) => (0.0, 0.0, 0.0),
            Some(&[gamma, summand, degree]) => (gamma, summand, degree),
            Some(other) => return Err(other_len(node, "kernel_params", 3, other.len())),
        };
        Ok(Measure {
            nearness,
            gamma,
            summand,
            degree,
        })
    }

    fn of_rows(&self, a: &[f32], b: &[f32]) -> f32 {
        let product = || summed(a, b, |a, b| a * b);
        match self.nearness {
            Nearness::Linear => product(),
            Nearness::Polynomial => (self.gamma * product() + self.summand).powf(self.degree),
            Nearness::Radial => {
                let distance = summed(a, b, |a, b| (a - b) * (a - b));
                (-self.gamma * distance).exp()
            }
            Nearness::Sigmoid => (self.gamma * product() + self.summand).tanh(),
        }
    }
}

/// A sum over elements of both, in an order that fits several at once.
pub(super) fn summed(a: &[f32], b: &[f32], of: impl Fn(f32, f32) -> f32) -> f32 {
    const LANES: usize = 8;
    let mut sums = [0.0_f32; LANES];
    let (a_whole, b_whole) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = a_whole.remainder().iter().zip(b_whole.remainder());
    let rest: f32 = rest.map(|(a, b)| of(*a, *b)).sum();
    for (a, b) in a_whole.zip(b_whole) {
        for lane in 0..LANES {
            sums[lane] += of(a[lane], b[lane]);
        }
    }
    sums.iter().sum::<f32>() + rest
}

pub(super) fn other_len(node: &Node<'_>, name: &str, expected: usize, found: usize) -> Error {
    let message = format_args!("is expected to have {expected} elements, found {found}");
    node.attributes.error(name, message)
}

/// Vectors of so many features each.
#[derive(Debug)]
struct Vectors {
    // Invariant: as many elements as vectors times features.
    elements: Vec<f32>,
    n_features: usize,
    measure: Measure,
}

impl Vectors {
    /// Reads an attribute with so many vectors.
    fn of(node: &Node<'_>, name: &str, n: usize, measure: Measure) -> Result<Vectors, Error> {
        let elements = node.attributes.floats(name)?.unwrap_or(&[]);
        if n == 0 || elements.is_empty() || !elements.len().is_multiple_of(n) {
            let found = elements.len();
            let message = format_args!(
                "is expected to have as many elements for each of {n} vectors, found {found}"
            );
            return Err(node.attributes.error(name, message));
        }
        Ok(Vectors {
            elements: elements.to_vec(),
            n_features: elements.len() / n,
            measure,
        })
    }

    fn len(&self) -> usize {
        self.elements.len() / self.n_features
    }

    /// How near a row is to each vector.
    fn near<'v>(&'v self, row: &'v [f32]) -> impl Iterator<Item = f32> + 'v {
        let vectors = self.elements.chunks_exact(self.n_features);
        vectors.map(|vector| self.measure.of_rows(row, vector))
    }

    /// The rows of the first operand, and how many of them are a chunk.
    fn rows(&self, node: &Node<'_>) -> Result<(Rows, std::num::NonZeroUsize), Error> {
        let rows = Rows::new(node, self.n_features)?;
        if rows.n_features != self.n_features {
            let (expected, found) = (self.n_features, rows.n_features);
            let message =
                format_args!("is expected to have {expected} features in each row, found {found}");
            return Err(node.inputs.error(0, message));
        }
        let rows = rows.narrowed(node)?;
        Ok((rows, parallel::chunk_len(self.elements.len(), 1)))
    }
}

/// Required numbers.
pub(super) fn floats<'n>(node: &Node<'n>, name: &str) -> Result<&'n [f32], Error> {
    let list = node.attributes.floats(name)?;
    list.filter(|list| !list.is_empty())
        .ok_or_else(|| node.attributes.missing(name))
}

/// `ml.SVMRegressor(x)`, `x: [n, features]`: a number for each row, `[n, 1]`; of `one_class` 1 or -1.
#[derive(Debug)]
struct Regressor {
    vectors: Vectors,
    /// One for each vector.
    weights: Vec<f32>,
    summand: f32,
    is_sign: bool,
}

pub(super) fn regressor(node: &Node<'_>) -> Result<Option<Arc<dyn PreparedState>>, Error> {
    let measure = Measure::of(node)?;
    let n_vectors = node.attributes.size_or("n_supports", 0)?;
    let coefficients = floats(node, "coefficients")?;
    let (vectors, weights) = match n_vectors {
        0 => {
            let vectors = Vectors::of(node, "coefficients", 1, Measure::LINEAR)?;
            (vectors, vec![1.0])
        }
        n if n == coefficients.len() => {
            let vectors = Vectors::of(node, "support_vectors", n, measure)?;
            (vectors, coefficients.to_vec())
        }
        n => return Err(other_len(node, "coefficients", n, coefficients.len())),
    };
    Ok(Some(own(Regressor {
        vectors,
        weights,
        summand: floats(node, "rho")?[0],
        is_sign: node.attributes.flag("one_class", false)?,
    })))
}

impl Regressor {
    fn of_row(&self, row: &[f32]) -> f32 {
        let near = self.vectors.near(row).zip(&self.weights);
        let sum: f64 = near
            .map(|(near, weight)| f64::from(near) * f64::from(*weight))
            .sum();
        #[expect(clippy::cast_possible_truncation, reason = "results are of 32 bits")]
        let sum = (sum + f64::from(self.summand)) as f32;
        match self.is_sign {
            true if sum > 0.0 => 1.0,
            true => -1.0,
            false => sum,
        }
    }
}

impl State for Regressor {
    fn run(self: Arc<Self>, node: &Node<'_>) -> Result<Outputs, Error> {
        let (rows, chunk) = self.vectors.rows(node)?;
        let out = node.zeros(DType::F32, &[rows.n_rows, 1])?;
        let chain = parallel::fill::<f32>(node.execution, &out, chunk, move |first, part| {
            let reading = rows.tensor.read()?;
            let of_part = rows.part(reading.elements::<f32>()?, first, first + part.len());
            for (out, row) in part.iter_mut().zip(of_part.chunks_exact(rows.n_features)) {
                *out = self.of_row(row);
            }
            Ok(())
        })?;
        Ok(Outputs::later(out, chain))
    }
}

/// `ml.SVMClassifier(x)`, `x: [n, features]`: a label for each row, and scores of classes or pairs of them.
#[derive(Debug)]
struct Classifier {
    vectors: Vectors,
    classes: Classes,
}

pub(super) fn classifier(node: &Node<'_>) -> Result<Option<Arc<dyn PreparedState>>, Error> {
    let measure = Measure::of(node)?;
    let classes = Classes::new(node)?;
    let vectors = match classes.n_vectors() {
        None => Vectors::of(node, "coefficients", classes.len(), Measure::LINEAR)?,
        Some(n) => Vectors::of(node, "support_vectors", n, measure)?,
    };
    Ok(Some(own(Classifier { vectors, classes })))
}

impl State for Classifier {
    fn run(self: Arc<Self>, node: &Node<'_>) -> Result<Outputs, Error> {
        let (rows, chunk) = self.vectors.rows(node)?;
        let width = self.classes.n_scores();
        let tokens: DenseHostTensor = node.zeros(DType::I64, &[rows.n_rows])?;
        let scores = node.zeros(DType::F32, &[rows.n_rows, width])?;
        let labels = self.classes.labels.clone();
        let chain = fill_two::<i64, f32>(
            node.execution,
            rows.n_rows,
            chunk,
            (&tokens, 1),
            (&scores, width),
            move |start, end, tokens, scores| {
                let reading = rows.tensor.read()?;
                let part = rows.part(reading.elements::<f32>()?, start, end);
                let results = tokens.iter_mut().zip(scores.chunks_exact_mut(width));
                let mut near = Vec::with_capacity(self.vectors.len());
                for ((token, scores), row) in results.zip(part.chunks_exact(rows.n_features)) {
                    near.clear();
                    near.extend(self.vectors.near(row));
                    *token = self.classes.finish(&near, scores);
                }
                Ok(())
            },
        );
        let mut outputs = Outputs::new();
        labels.push(node, &mut outputs, tokens, &chain)?;
        Ok(outputs.and_later(scores, chain))
    }
}
