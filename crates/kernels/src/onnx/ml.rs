//! The domain `ai.onnx.ml`: labels, thresholds, and learned models.
//!
//! What has all it knows in attributes, such as trees, is read once, when a model is opened ([`PREPARE`]).

use tfrt_host::Error;
use tfrt_tensor::Element;
use tfrt_tensor::math::number::{Number, Real};
use tfrt_tensor::math::parallel;

use super::dispatch::with_real;
use super::prepare::{MakeState, PrepareRow};
use super::{NodeCall, Operations, Outputs};

mod encoder;
mod labels;
mod linear;
mod maps;
mod rows;
mod transform;
mod trees;
mod vectors;

pub(super) const OPERATIONS: &Operations = &[
    ("onnx.ml.Binarizer", binarizer),
    ("onnx.ml.CategoryMapper", encoder::category_mapper),
    ("onnx.ml.LabelEncoder", encoder::label_encoder),
    ("onnx.ml.OneHotEncoder", encoder::one_hot_encoder),
];

/// The nodes whose attributes are read once.
pub(super) const PREPARE: &[PrepareRow] = &[
    read("onnx.ml.CastMap", maps::cast_map),
    read("onnx.ml.DictVectorizer", maps::dict_vectorizer),
    read("onnx.ml.LinearClassifier", linear::classifier),
    read("onnx.ml.SVMClassifier", vectors::classifier),
    read("onnx.ml.SVMRegressor", vectors::regressor),
    read("onnx.ml.TreeEnsemble", trees::ensemble),
    read("onnx.ml.TreeEnsembleClassifier", trees::classifier),
    read("onnx.ml.TreeEnsembleRegressor", trees::regressor),
    read("onnx.ml.ZipMap", maps::zip_map),
];

const fn read(op: &'static str, make: MakeState) -> PrepareRow {
    PrepareRow {
        op,
        inputs: &[],
        types: &[],
        takes_attributes: true,
        make,
        restore: None,
    }
}

/// `ml.Binarizer(x)`, attribute `threshold`: 1 where the element is above it, else 0.
fn binarizer(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let threshold = f64::from(node.attributes.float_or("threshold", 0.0)?);
    let out = node.output(x.dtype(), &x.shape().to_dims())?;
    let chain = with_real!(x.dtype(), T => {
        let from = x.clone();
        parallel::fill::<T>(node.execution, &out, parallel::chunk_len(2, 1), move |first, part| {
            let reading = from.read()?;
            let from = &reading.elements::<T>()?[first..first + part.len()];
            for (out, x) in part.iter_mut().zip(from) {
                *out = if x.to_f64() > threshold { T::ONE } else { T::ZERO };
            }
            Ok(())
        })?
    }, else return Err(node.inputs.unsupported(0, x.dtype())));
    Ok(Outputs::later(out, chain))
}
