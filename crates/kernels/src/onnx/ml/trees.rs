//! `TreeEnsemble`, `TreeEnsembleRegressor`, `TreeEnsembleClassifier`: trees in attributes, and the results of their
//! votes.
//!
//! Features that are `f64` are compared as such, all others as `f32`; sums are of the same type.

use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};

use tfrt_host::Error;
use tfrt_tensor::math::number::{Floating, Real};
use tfrt_tensor::math::parallel;
use tfrt_tensor::math::trees::Trees;
use tfrt_tensor::op::PreparedState;
use tfrt_tensor::{BF16, DType, F16};

use super::super::prepare::{PreparedKernel, erase};
use super::super::{NodeCall, Outputs};
use super::labels::Labels;
use super::rows::{Rows, fill_two};
use super::transform::Transform;

mod by_id;
mod by_index;
mod classes;

use classes::Classes;

/// `ml.TreeEnsemble(x)`, `x: [n, features]`: the results of trees for each row, of the type of `x`.
pub(super) fn ensemble(node: &NodeCall<'_>) -> Result<Option<Arc<dyn PreparedState>>, Error> {
    let transform = Transform::of_number(node)?;
    let (trees, is_wide) = by_index::trees(node)?;
    Ok(Some(erase(Ensemble {
        trees: Forest::new(trees, is_wide),
        finish: Postprocess::Sums {
            base: Arc::default(),
            transform,
        },
        is_as_input: true,
    })))
}

/// `ml.TreeEnsembleRegressor(x)`, `x: [n, features]`: the results of trees for each row, as `f32`.
///
/// Of one result alone the last transformation is left out, but for `PROBIT`: so ONNX Runtime has it, which those who
/// write models compare with.
pub(super) fn regressor(node: &NodeCall<'_>) -> Result<Option<Arc<dyn PreparedState>>, Error> {
    let transform = Transform::of_name(node)?;
    let n_targets = node.attributes.size_or("n_targets", 1)?;
    let (base, _) = by_id::numbers(node, "base_values")?;
    if !base.is_empty() && base.len() != n_targets {
        return Err(by_id::other_len(node, "base_values", n_targets, base.len()));
    }
    let (trees, is_wide) = by_id::trees(node, "target", n_targets)?;
    let transform = match transform {
        Transform::Probit => transform,
        _ if n_targets == 1 => Transform::Nothing,
        other => other,
    };
    Ok(Some(erase(Ensemble {
        trees: Forest::new(trees, is_wide),
        finish: Postprocess::Sums {
            base: base.into(),
            transform,
        },
        is_as_input: false,
    })))
}

/// `ml.TreeEnsembleClassifier(x)`, `x: [n, features]`: a label for each row, and scores of all classes, as `f32`.
pub(super) fn classifier(node: &NodeCall<'_>) -> Result<Option<Arc<dyn PreparedState>>, Error> {
    let labels = Labels::of(node, "classlabels_strings", "classlabels_int64s")?;
    let (base, _) = by_id::numbers(node, "base_values")?;
    let n_classes = labels.len();
    let fits = base.is_empty() || base.len() == n_classes || (base.len() == 1 && n_classes == 2);
    if !fits {
        return Err(by_id::other_len(node, "base_values", n_classes, base.len()));
    }
    let transform = Transform::of_name(node)?;
    let classes = Classes::new(node, labels, base, transform)?;
    let (trees, is_wide) = by_id::trees(node, "class", n_classes)?;
    Ok(Some(erase(Ensemble {
        trees: Forest::new(trees, is_wide),
        finish: Postprocess::Classes(Arc::new(classes)),
        is_as_input: false,
    })))
}

/// Trees, with the steps that make results of their sums.
#[derive(Debug)]
struct Ensemble {
    trees: Arc<Forest>,
    finish: Postprocess,
    /// Whether results have the type of the features, and not `f32`.
    is_as_input: bool,
}

/// The steps from sums of votes to results.
#[derive(Clone, Debug)]
enum Postprocess {
    /// Base values are added, if there are some, and the row is transformed.
    Sums {
        base: Arc<[f64]>,
        transform: Transform,
    },
    Classes(Arc<Classes>),
}

/// Trees for features of either type: those of the other type are made when they are first used.
#[derive(Debug)]
enum Forest {
    Narrow(Trees<f32>, OnceLock<Trees<f64>>),
    Wide(Trees<f64>, OnceLock<Trees<f32>>),
}

impl Forest {
    /// Makes a forest of trees, whose numbers need `f64` or not.
    fn new(trees: Trees<f64>, is_wide: bool) -> Arc<Forest> {
        Arc::new(match is_wide {
            true => Forest::Wide(trees, OnceLock::new()),
            false => Forest::Narrow(trees.map(f32::from_f64), OnceLock::new()),
        })
    }

    /// Returns the least number of features, and the number of trees.
    fn extents(&self) -> (usize, usize) {
        match self {
            Forest::Narrow(trees, _) => (trees.n_features(), trees.n_trees()),
            Forest::Wide(trees, _) => (trees.n_features(), trees.n_trees()),
        }
    }

    /// Returns the sums of the trees' votes on some rows, each with whether any tree voted.
    fn votes<T: Feature>(
        &self,
        rows: &Rows,
        start: usize,
        end: usize,
    ) -> Result<(Vec<T>, Vec<bool>), Error> {
        let trees = T::trees(self);
        let len = (end - start) * trees.n_targets();
        // As many targets as an attribute says.
        let (mut sums, mut said) = (Vec::new(), Vec::new());
        if sums.try_reserve_exact(len).is_err() || said.try_reserve_exact(len).is_err() {
            return Err(Error::resource_exhausted("there is no memory for sums"));
        }
        sums.resize(len, T::ZERO);
        said.resize(len, false);
        let reading = rows.tensor.read()?;
        let part = rows.part(reading.elements::<T>()?, start, end);
        trees.run(part, rows.n_features, &mut sums, &mut said);
        Ok((sums, said))
    }
}

/// A type in which features are compared.
trait Feature: Floating {
    fn trees(forest: &Forest) -> &Trees<Self>;
}

impl Feature for f32 {
    fn trees(forest: &Forest) -> &Trees<f32> {
        match forest {
            Forest::Narrow(trees, _) => trees,
            Forest::Wide(trees, narrow) => narrow.get_or_init(|| trees.map(f32::from_f64)),
        }
    }
}

impl Feature for f64 {
    fn trees(forest: &Forest) -> &Trees<f64> {
        match forest {
            Forest::Narrow(trees, wide) => wide.get_or_init(|| trees.map(f64::from)),
            Forest::Wide(trees, _) => trees,
        }
    }
}

impl PreparedKernel for Ensemble {
    fn run(self: Arc<Self>, node: &NodeCall<'_>) -> Result<Outputs, Error> {
        let rows = Rows::new(node, self.trees.extents().0)?;
        let found = node.inputs.dense(0)?.dtype();
        let out = match self.is_as_input {
            true => found,
            false => DType::F32,
        };
        match (rows.tensor.dtype(), out) {
            (DType::F64, DType::F32) => self.results::<f64, f32>(node, rows),
            (DType::F64, _) => self.results::<f64, f64>(node, rows),
            (_, DType::F32) => self.results::<f32, f32>(node, rows),
            (_, DType::F16) => self.results::<f32, F16>(node, rows),
            (_, DType::Bf16) => self.results::<f32, BF16>(node, rows),
            _ => Err(node.inputs.unsupported(0, found)),
        }
    }
}

impl Ensemble {
    /// Calculates the results for rows of features of type `T`, as `O`.
    fn results<T: Feature, O: Floating>(
        &self,
        node: &NodeCall<'_>,
        rows: Rows,
    ) -> Result<Outputs, Error> {
        // About so many operations for each tree: its depth is not looked at.
        const OPERATIONS: usize = 8;
        let n = T::trees(&self.trees).n_targets();
        let n_rows = rows.n_rows;
        let operations = self.trees.extents().1.saturating_mul(OPERATIONS);
        let chunk = parallel::chunk_len(operations.saturating_add(n), if n < 1024 { 8 } else { 1 });
        let out = node.zeros(O::DTYPE, &[n_rows, n])?;
        let trees = self.trees.clone();
        match self.finish.clone() {
            Postprocess::Sums { base, transform } => {
                // More than there are, where the product is none.
                let chunk = NonZeroUsize::new(n).map_or(chunk, |n| chunk.saturating_mul(n));
                let chain = parallel::fill::<O>(node.execution, &out, chunk, move |first, out| {
                    let (start, end) = (first / n, (first + out.len()) / n);
                    let (mut sums, _) = trees.votes::<T>(&rows, start, end)?;
                    for (out, row) in out.chunks_exact_mut(n).zip(sums.chunks_exact_mut(n)) {
                        for (x, base) in row.iter_mut().zip(&*base) {
                            *x = x.plus(T::from_f64(*base));
                        }
                        transform.apply(row);
                        convert(row, out);
                    }
                    Ok(())
                })?;
                Ok(Outputs::later(out, chain))
            }
            Postprocess::Classes(classes) => {
                let labels = classes.labels.clone();
                let tokens = node.zeros(DType::I64, &[n_rows])?;
                let chain = fill_two::<i64, O>(
                    node.execution,
                    n_rows,
                    chunk,
                    (&tokens, 1),
                    (&out, n),
                    move |start, end, tokens, scores| {
                        let (mut sums, mut said) = trees.votes::<T>(&rows, start, end)?;
                        let votes = sums.chunks_exact_mut(n).zip(said.chunks_exact_mut(n));
                        let results = tokens.iter_mut().zip(scores.chunks_exact_mut(n));
                        for ((row, said), (token, scores)) in votes.zip(results) {
                            *token = classes.finish(row, said);
                            convert(row, scores);
                        }
                        Ok(())
                    },
                );
                let mut outputs = Outputs::new();
                labels.push(node, &mut outputs, tokens, &chain)?;
                Ok(outputs.and_later(out, chain))
            }
        }
    }
}

fn convert<T: Floating, O: Floating>(from: &[T], to: &mut [O]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = O::from_f64(from.to_f64());
    }
}
