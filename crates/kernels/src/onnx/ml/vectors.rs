//! `SVMRegressor`, `SVMClassifier`: sums over the kernel function of a row and support vectors.
//!
//! Features are seen as `f32`. What is said of two classes, and when scores are transformed, is as ONNX Runtime has it,
//! which those who write models compare with.

use std::sync::Arc;

use tfrt_host::Error;
use tfrt_tensor::math::parallel;
use tfrt_tensor::op::PreparedState;
use tfrt_tensor::{DType, DenseHostTensor};

use super::super::prepare::{PreparedKernel, erase};
use super::super::{NodeCall, Outputs};
use super::rows::{Rows, fill_two};

mod classes;

use classes::Classes;

/// The kind of a kernel function.
#[derive(Clone, Copy, Debug)]
enum KernelKind {
    Linear,
    Polynomial,
    Radial,
    Sigmoid,
}

/// A kernel function of two rows of features, with its parameters.
#[derive(Clone, Copy, Debug)]
struct KernelFunction {
    kind: KernelKind,
    gamma: f32,
    summand: f32,
    degree: f32,
}

impl KernelFunction {
    const LINEAR: KernelFunction = KernelFunction {
        kind: KernelKind::Linear,
        gamma: 0.0,
        summand: 0.0,
        degree: 0.0,
    };

    fn of(node: &NodeCall<'_>) -> Result<KernelFunction, Error> {
        let kind = match node.attributes.string_or("kernel_type", "LINEAR")? {
            "LINEAR" => KernelKind::Linear,
            "POLY" => KernelKind::Polynomial,
            "RBF" => KernelKind::Radial,
            "SIGMOID" => KernelKind::Sigmoid,
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
        Ok(KernelFunction {
            kind,
            gamma,
            summand,
            degree,
        })
    }

    fn of_rows(&self, a: &[f32], b: &[f32]) -> f32 {
        let product = || summed(a, b, |a, b| a * b);
        match self.kind {
            KernelKind::Linear => product(),
            KernelKind::Polynomial => (self.gamma * product() + self.summand).powf(self.degree),
            KernelKind::Radial => {
                let distance = summed(a, b, |a, b| (a - b) * (a - b));
                (-self.gamma * distance).exp()
            }
            KernelKind::Sigmoid => (self.gamma * product() + self.summand).tanh(),
        }
    }
}

/// Sums a function over the elements of both, in an order that fits vector instructions.
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

pub(super) fn other_len(node: &NodeCall<'_>, name: &str, expected: usize, found: usize) -> Error {
    let message = format_args!("is expected to have {expected} elements, found {found}");
    node.attributes.error(name, message)
}

/// Support vectors, of so many features each.
#[derive(Debug)]
struct SupportVectors {
    // Invariant: as many elements as vectors times features.
    elements: Vec<f32>,
    n_features: usize,
    kernel: KernelFunction,
}

impl SupportVectors {
    /// Reads an attribute of so many vectors.
    fn of(
        node: &NodeCall<'_>,
        name: &str,
        n: usize,
        kernel: KernelFunction,
    ) -> Result<SupportVectors, Error> {
        let elements = node.attributes.floats(name)?.unwrap_or(&[]);
        if n == 0 || elements.is_empty() || !elements.len().is_multiple_of(n) {
            let found = elements.len();
            let message = format_args!(
                "is expected to have as many elements for each of {n} vectors, found {found}"
            );
            return Err(node.attributes.error(name, message));
        }
        Ok(SupportVectors {
            elements: elements.to_vec(),
            n_features: elements.len() / n,
            kernel,
        })
    }

    fn len(&self) -> usize {
        self.elements.len() / self.n_features
    }

    /// Returns the kernel function of a row and each vector.
    fn near<'v>(&'v self, row: &'v [f32]) -> impl Iterator<Item = f32> + 'v {
        let vectors = self.elements.chunks_exact(self.n_features);
        vectors.map(|vector| self.kernel.of_rows(row, vector))
    }

    /// Returns the rows of the first operand, and the number of rows of a chunk.
    fn rows(&self, node: &NodeCall<'_>) -> Result<(Rows, std::num::NonZeroUsize), Error> {
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

/// Returns a list of floats that must be stated.
pub(super) fn floats<'n>(node: &NodeCall<'n>, name: &str) -> Result<&'n [f32], Error> {
    let list = node.attributes.floats(name)?;
    list.filter(|list| !list.is_empty())
        .ok_or_else(|| node.attributes.missing(name))
}

/// `ml.SVMRegressor(x)`, `x: [n, features]`: a number for each row, `[n, 1]`; of `one_class` 1 or -1.
#[derive(Debug)]
struct Regressor {
    vectors: SupportVectors,
    /// A weight for each vector.
    weights: Vec<f32>,
    summand: f32,
    is_sign: bool,
}

pub(super) fn regressor(node: &NodeCall<'_>) -> Result<Option<Arc<dyn PreparedState>>, Error> {
    let kernel = KernelFunction::of(node)?;
    let n_vectors = node.attributes.size_or("n_supports", 0)?;
    let coefficients = floats(node, "coefficients")?;
    let (vectors, weights) = match n_vectors {
        0 => {
            let vectors = SupportVectors::of(node, "coefficients", 1, KernelFunction::LINEAR)?;
            (vectors, vec![1.0])
        }
        n if n == coefficients.len() => {
            let vectors = SupportVectors::of(node, "support_vectors", n, kernel)?;
            (vectors, coefficients.to_vec())
        }
        n => return Err(other_len(node, "coefficients", n, coefficients.len())),
    };
    Ok(Some(erase(Regressor {
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

impl PreparedKernel for Regressor {
    fn run(self: Arc<Self>, node: &NodeCall<'_>) -> Result<Outputs, Error> {
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
    vectors: SupportVectors,
    classes: Classes,
}

pub(super) fn classifier(node: &NodeCall<'_>) -> Result<Option<Arc<dyn PreparedState>>, Error> {
    let kernel = KernelFunction::of(node)?;
    let classes = Classes::new(node)?;
    let vectors = match classes.n_vectors() {
        None => SupportVectors::of(node, "coefficients", classes.len(), KernelFunction::LINEAR)?,
        Some(n) => SupportVectors::of(node, "support_vectors", n, kernel)?,
    };
    Ok(Some(erase(Classifier { vectors, classes })))
}

impl PreparedKernel for Classifier {
    fn run(self: Arc<Self>, node: &NodeCall<'_>) -> Result<Outputs, Error> {
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
