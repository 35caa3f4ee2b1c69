//! Rows of classical machine learning: the domain `ai.onnx.ml`.

use tfrt_bef::DType;

use crate::attrs::AttrValue;
use crate::def::{AttrDef, AttrKind, OpDef, ValueDef};
use crate::dim::{Dim, Dims};
use crate::fact::{Fact, unknown_dims};
use crate::infer::{Infer, InferCall, InferError};

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("onnx.ml.ArrayFeatureExtractor", "Columns of a matrix.")
        .inputs(&[ValueDef::var("X", "T"), ValueDef::set("Y", &[DType::I64])])
        .results(&[ValueDef::var("Z", "T")])
        .infer(Infer::By(array_features)),
    OpDef::new(
        "onnx.ml.Binarizer",
        "1 where an element is above the threshold, else 0.",
    )
    .inputs(&[ValueDef::var("X", "T")])
    .results(&[ValueDef::var("Y", "T")])
    .attrs(&[AttrDef::float("threshold", 0.0)]),
    OpDef::new(
        "onnx.ml.CastMap",
        "The values of a map, in the order of their keys.",
    )
    .inputs(&[ValueDef::object("X")])
    .results(&[ValueDef::var("Y", "T2").data_dependent()])
    .attrs(&[
        AttrDef::text("cast_to", "TO_FLOAT"),
        AttrDef::text("map_form", "DENSE"),
        AttrDef::int("max_map", 1),
    ])
    .infer(Infer::By(cast_map)),
    OpDef::new(
        "onnx.ml.CategoryMapper",
        "Each string as its number, or each number as its string.",
    )
    .inputs(&[ValueDef::var("X", "T1")])
    .results(&[ValueDef::var("Y", "T2")])
    .attrs(&[
        AttrDef::new("cats_int64s", AttrKind::Ints),
        AttrDef::new("cats_strings", AttrKind::Texts),
        AttrDef::int("default_int64", -1),
        AttrDef::text("default_string", "_Unused"),
    ])
    .infer(Infer::By(category_mapper)),
    OpDef::new(
        "onnx.ml.DictVectorizer",
        "The values of a map, in the order of a vocabulary.",
    )
    .inputs(&[ValueDef::object("X")])
    .results(&[ValueDef::var("Y", "T2")])
    .attrs(&[
        AttrDef::new("int64_vocabulary", AttrKind::Ints),
        AttrDef::new("string_vocabulary", AttrKind::Texts),
    ])
    .infer(Infer::By(dict_vectorizer)),
    OpDef::new(
        "onnx.ml.FeatureVectorizer",
        "The operands' columns, one after the other.",
    )
    .inputs(&[ValueDef::var("X", "T1").rest(1)])
    .results(&[ValueDef::set("Y", &[DType::F32])])
    .attrs(&[AttrDef::new("inputdimensions", AttrKind::Ints)])
    .infer(Infer::By(feature_vectorizer)),
    OpDef::new(
        "onnx.ml.Imputer",
        "Its operand with elements that are missing replaced.",
    )
    .inputs(&[ValueDef::var("X", "T")])
    .results(&[ValueDef::var("Y", "T")])
    .attrs(&[
        AttrDef::new("imputed_value_floats", AttrKind::Floats),
        AttrDef::new("imputed_value_int64s", AttrKind::Ints),
        AttrDef::float("replaced_value_float", 0.0),
        AttrDef::int("replaced_value_int64", 0),
    ]),
    OpDef::new("onnx.ml.LabelEncoder", "For each key its value.")
        .inputs(&[ValueDef::var("X", "T1")])
        .results(&[ValueDef::var("Y", "T2")])
        .attrs(&[
            AttrDef::float("default_float", -0.0),
            AttrDef::int("default_int64", -1),
            AttrDef::text("default_string", "_Unused"),
            AttrDef::new("default_tensor", AttrKind::Tensor),
            AttrDef::new("keys_floats", AttrKind::Floats),
            AttrDef::new("keys_int64s", AttrKind::Ints),
            AttrDef::new("keys_strings", AttrKind::Texts),
            AttrDef::new("keys_tensor", AttrKind::Tensor),
            AttrDef::new("values_floats", AttrKind::Floats),
            AttrDef::new("values_int64s", AttrKind::Ints),
            AttrDef::new("values_strings", AttrKind::Texts),
            AttrDef::new("values_tensor", AttrKind::Tensor),
        ])
        .infer(Infer::By(label_encoder)),
    OpDef::new(
        "onnx.ml.LinearClassifier",
        "The class with the highest score of a linear function, and the scores.",
    )
    .inputs(&[ValueDef::var("X", "T1")])
    .results(&[ValueDef::var("Y", "T2"), ValueDef::set("Z", &[DType::F32])])
    .attrs(&[
        AttrDef::new("classlabels_ints", AttrKind::Ints),
        AttrDef::new("classlabels_strings", AttrKind::Texts),
        AttrDef::new("coefficients", AttrKind::Floats).required(),
        AttrDef::new("intercepts", AttrKind::Floats),
        AttrDef::int("multi_class", 0),
        AttrDef::text("post_transform", "NONE"),
    ])
    .infer(Infer::By(classifier)),
    OpDef::new("onnx.ml.LinearRegressor", "The values of linear functions.")
        .inputs(&[ValueDef::var("X", "T")])
        .results(&[ValueDef::set("Y", &[DType::F32])])
        .attrs(&[
            AttrDef::new("coefficients", AttrKind::Floats),
            AttrDef::new("intercepts", AttrKind::Floats),
            AttrDef::text("post_transform", "NONE"),
            AttrDef::int("targets", 1),
        ])
        .infer(Infer::By(linear_regressor)),
    OpDef::new("onnx.ml.Normalizer", "Rows, divided by their norm.")
        .inputs(&[ValueDef::var("X", "T")])
        .results(&[ValueDef::set("Y", &[DType::F32])])
        .attrs(&[AttrDef::text("norm", "MAX")])
        .infer(Infer::By(normalizer)),
    OpDef::new(
        "onnx.ml.OneHotEncoder",
        "For each element a list that is 1 at its category.",
    )
    .inputs(&[ValueDef::var("X", "T")])
    .results(&[ValueDef::set("Y", &[DType::F32])])
    .attrs(&[
        AttrDef::new("cats_int64s", AttrKind::Ints),
        AttrDef::new("cats_strings", AttrKind::Texts),
        AttrDef::int("zeros", 1),
    ])
    .infer(Infer::By(one_hot)),
    OpDef::new(
        "onnx.ml.SVMClassifier",
        "The class that a support vector machine finds, and the scores.",
    )
    .inputs(&[ValueDef::var("X", "T1")])
    .results(&[ValueDef::var("Y", "T2"), ValueDef::set("Z", &[DType::F32])])
    .attrs(&[
        AttrDef::new("classlabels_ints", AttrKind::Ints),
        AttrDef::new("classlabels_strings", AttrKind::Texts),
        AttrDef::new("coefficients", AttrKind::Floats),
        AttrDef::new("kernel_params", AttrKind::Floats),
        AttrDef::text("kernel_type", "LINEAR"),
        AttrDef::text("post_transform", "NONE"),
        AttrDef::new("prob_a", AttrKind::Floats),
        AttrDef::new("prob_b", AttrKind::Floats),
        AttrDef::new("rho", AttrKind::Floats),
        AttrDef::new("support_vectors", AttrKind::Floats),
        AttrDef::new("vectors_per_class", AttrKind::Ints),
    ])
    .infer(Infer::By(classifier)),
    OpDef::new(
        "onnx.ml.SVMRegressor",
        "The values that a support vector machine finds.",
    )
    .inputs(&[ValueDef::var("X", "T")])
    .results(&[ValueDef::set("Y", &[DType::F32])])
    .attrs(&[
        AttrDef::new("coefficients", AttrKind::Floats),
        AttrDef::new("kernel_params", AttrKind::Floats),
        AttrDef::text("kernel_type", "LINEAR"),
        AttrDef::int("n_supports", 0),
        AttrDef::int("one_class", 0),
        AttrDef::text("post_transform", "NONE"),
        AttrDef::new("rho", AttrKind::Floats),
        AttrDef::new("support_vectors", AttrKind::Floats),
    ])
    .infer(Infer::By(one_column)),
    OpDef::new("onnx.ml.Scaler", "Elements less an offset, times a scale.")
        .inputs(&[ValueDef::var("X", "T")])
        .results(&[ValueDef::set("Y", &[DType::F32])])
        .attrs(&[
            AttrDef::new("offset", AttrKind::Floats),
            AttrDef::new("scale", AttrKind::Floats),
        ])
        .infer(Infer::By(normalizer)),
    OpDef::new(
        "onnx.ml.TreeEnsemble",
        "The values of the leaves that decision trees lead to, put together.",
    )
    .inputs(&[ValueDef::var("X", "T")])
    .results(&[ValueDef::var("Y", "T")])
    .attrs(&[
        AttrDef::int("aggregate_function", 1),
        AttrDef::new("leaf_targetids", AttrKind::Ints).required(),
        AttrDef::new("leaf_weights", AttrKind::Tensor).required(),
        AttrDef::new("membership_values", AttrKind::Tensor),
        AttrDef::new("n_targets", AttrKind::Int),
        AttrDef::new("nodes_falseleafs", AttrKind::Ints).required(),
        AttrDef::new("nodes_falsenodeids", AttrKind::Ints).required(),
        AttrDef::new("nodes_featureids", AttrKind::Ints).required(),
        AttrDef::new("nodes_hitrates", AttrKind::Tensor),
        AttrDef::new("nodes_missing_value_tracks_true", AttrKind::Ints),
        AttrDef::new("nodes_modes", AttrKind::Tensor).required(),
        AttrDef::new("nodes_splits", AttrKind::Tensor).required(),
        AttrDef::new("nodes_trueleafs", AttrKind::Ints).required(),
        AttrDef::new("nodes_truenodeids", AttrKind::Ints).required(),
        AttrDef::int("post_transform", 0),
        AttrDef::new("tree_roots", AttrKind::Ints).required(),
    ])
    .infer(Infer::By(trees)),
    OpDef::new(
        "onnx.ml.TreeEnsembleClassifier",
        "The class that decision trees find, and the scores.",
    )
    .inputs(&[ValueDef::var("X", "T1")])
    .results(&[ValueDef::var("Y", "T2"), ValueDef::set("Z", &[DType::F32])])
    .attrs(&[
        AttrDef::new("base_values", AttrKind::Floats),
        AttrDef::new("base_values_as_tensor", AttrKind::Tensor),
        AttrDef::new("class_ids", AttrKind::Ints),
        AttrDef::new("class_nodeids", AttrKind::Ints),
        AttrDef::new("class_treeids", AttrKind::Ints),
        AttrDef::new("class_weights", AttrKind::Floats),
        AttrDef::new("class_weights_as_tensor", AttrKind::Tensor),
        AttrDef::new("classlabels_int64s", AttrKind::Ints),
        AttrDef::new("classlabels_strings", AttrKind::Texts),
        AttrDef::new("nodes_falsenodeids", AttrKind::Ints),
        AttrDef::new("nodes_featureids", AttrKind::Ints),
        AttrDef::new("nodes_hitrates", AttrKind::Floats),
        AttrDef::new("nodes_hitrates_as_tensor", AttrKind::Tensor),
        AttrDef::new("nodes_missing_value_tracks_true", AttrKind::Ints),
        AttrDef::new("nodes_modes", AttrKind::Texts),
        AttrDef::new("nodes_nodeids", AttrKind::Ints),
        AttrDef::new("nodes_treeids", AttrKind::Ints),
        AttrDef::new("nodes_truenodeids", AttrKind::Ints),
        AttrDef::new("nodes_values", AttrKind::Floats),
        AttrDef::new("nodes_values_as_tensor", AttrKind::Tensor),
        AttrDef::text("post_transform", "NONE"),
    ])
    .infer(Infer::By(classifier)),
    OpDef::new(
        "onnx.ml.TreeEnsembleRegressor",
        "The values that decision trees find.",
    )
    .inputs(&[ValueDef::var("X", "T")])
    .results(&[ValueDef::set("Y", &[DType::F32])])
    .attrs(&[
        AttrDef::text("aggregate_function", "SUM"),
        AttrDef::new("base_values", AttrKind::Floats),
        AttrDef::new("base_values_as_tensor", AttrKind::Tensor),
        AttrDef::new("n_targets", AttrKind::Int),
        AttrDef::new("nodes_falsenodeids", AttrKind::Ints),
        AttrDef::new("nodes_featureids", AttrKind::Ints),
        AttrDef::new("nodes_hitrates", AttrKind::Floats),
        AttrDef::new("nodes_hitrates_as_tensor", AttrKind::Tensor),
        AttrDef::new("nodes_missing_value_tracks_true", AttrKind::Ints),
        AttrDef::new("nodes_modes", AttrKind::Texts),
        AttrDef::new("nodes_nodeids", AttrKind::Ints),
        AttrDef::new("nodes_treeids", AttrKind::Ints),
        AttrDef::new("nodes_truenodeids", AttrKind::Ints),
        AttrDef::new("nodes_values", AttrKind::Floats),
        AttrDef::new("nodes_values_as_tensor", AttrKind::Tensor),
        AttrDef::text("post_transform", "NONE"),
        AttrDef::new("target_ids", AttrKind::Ints),
        AttrDef::new("target_nodeids", AttrKind::Ints),
        AttrDef::new("target_treeids", AttrKind::Ints),
        AttrDef::new("target_weights", AttrKind::Floats),
        AttrDef::new("target_weights_as_tensor", AttrKind::Tensor),
    ])
    .infer(Infer::By(tree_regressor)),
    OpDef::new(
        "onnx.ml.ZipMap",
        "For each row a map from classes to scores.",
    )
    .inputs(&[ValueDef::set("X", &[DType::F32])])
    .results(&[ValueDef::object("Z")])
    .attrs(&[
        AttrDef::new("classlabels_int64s", AttrKind::Ints),
        AttrDef::new("classlabels_strings", AttrKind::Texts),
    ])
    .infer(Infer::By(nothing)),
];

/// Infers nothing: the result is a list of maps, no tensor.
fn nothing(_: &mut InferCall<'_>) -> Result<(), InferError> {
    Ok(())
}

/// Returns the number of rows of a tensor: a list is one row.
fn rows(x: &Fact) -> Dim {
    match x.rank() {
        Some(1) => Dim::Known(1),
        _ => x.dim(0),
    }
}

/// Returns the length of the first of some attributes that is stated.
fn length(call: &InferCall<'_>, names: &[&str]) -> Dim {
    let found = names
        .iter()
        .find_map(|name| call.attrs.len(name).filter(|n| *n > 0));
    found.map_or(Dim::Unknown, Dim::from)
}

fn array_features(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let (x, columns) = (call.input(0), call.input(1));
    let n = columns.n_elements();
    let dims = x.dims.as_deref().map(|dims| {
        let outer: Dims = match dims {
            [] | [_] => Dims::from_iter([Dim::Known(1)]),
            [outer @ .., _] => outer.into(),
        };
        outer.into_iter().chain([n]).collect()
    });
    let dtype = x.dtype;
    call.give(0, dtype, dims);
    Ok(())
}

fn cast_map(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dtype = match call.attrs.text("cast_to") {
        "TO_INT64" => DType::I64,
        "TO_STRING" => DType::String,
        _ => DType::F32,
    };
    call.give(0, Some(dtype), Some(unknown_dims(2)));
    Ok(())
}

fn category_mapper(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let Fact { dtype, dims, .. } = call.input(0).clone();
    let to = dtype.map(|dtype| {
        if dtype == DType::String {
            DType::I64
        } else {
            DType::String
        }
    });
    call.give(0, to, dims);
    Ok(())
}

fn dict_vectorizer(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let n = length(call, &["int64_vocabulary", "string_vocabulary"]);
    call.give(0, None, Some(Dims::from_iter([Dim::Known(1), n])));
    Ok(())
}

fn feature_vectorizer(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let stated = call.attrs.ints("inputdimensions");
    let n = stated.and_then(|list| list.iter().try_fold(0i64, |sum, n| sum.checked_add(*n)));
    let rows = rows(call.input(0));
    call.give(
        0,
        Some(DType::F32),
        Some(Dims::from_iter([rows, n.map_or(Dim::Unknown, Dim::Known)])),
    );
    Ok(())
}

fn label_encoder(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let lists = [
        ("values_floats", DType::F32),
        ("values_int64s", DType::I64),
        ("values_strings", DType::String),
    ];
    let has = |name: &str| call.attrs.len(name).is_some_and(|n| n > 0);
    let mut stated: Vec<(&str, DType)> = lists.into_iter().filter(|(name, _)| has(name)).collect();
    if let Some(AttrValue::Tensor(tensor)) = call.attrs.get("values_tensor") {
        stated.push(("values_tensor", tensor.dtype));
    }
    let dtype = match &stated[..] {
        // Before version 2: `classes_strings`, from one to the other.
        [] => None,
        [(_, dtype)] => Some(*dtype),
        [(one, _), (other, _), ..] => {
            let found = format!("{one} and {other}");
            return Err(InferError::new(format!(
                "expected the values in one attribute, found {found}"
            )));
        }
    };
    let dims = call.input(0).dims.clone();
    call.give(0, dtype, dims);
    Ok(())
}

fn classifier(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let rows = rows(call.input(0));
    let strings = call.attrs.len("classlabels_strings").filter(|n| *n > 0);
    let integers = ["classlabels_ints", "classlabels_int64s"];
    let integers = integers
        .iter()
        .find_map(|name| call.attrs.len(name).filter(|n| *n > 0));
    let dtype = if strings.is_some() {
        DType::String
    } else {
        DType::I64
    };
    // Models of two classes may have one score; how many there are follows from more than the labels.
    let n = strings
        .or(integers)
        .filter(|n| *n > 2)
        .map_or(Dim::Unknown, Dim::from);
    call.give(0, Some(dtype), Some(Dims::from_iter([rows.clone()])));
    call.give(1, Some(DType::F32), Some(Dims::from_iter([rows, n])));
    Ok(())
}

fn targets(call: &mut InferCall<'_>, dtype: Option<DType>, name: &str) {
    let n = call.attrs.int(name).map_or(Dim::Unknown, Dim::Known);
    let rows = rows(call.input(0));
    call.give(0, dtype, Some(Dims::from_iter([rows, n])));
}

fn linear_regressor(call: &mut InferCall<'_>) -> Result<(), InferError> {
    targets(call, Some(DType::F32), "targets");
    Ok(())
}

fn tree_regressor(call: &mut InferCall<'_>) -> Result<(), InferError> {
    targets(call, Some(DType::F32), "n_targets");
    Ok(())
}

fn trees(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dtype = call.input(0).dtype;
    targets(call, dtype, "n_targets");
    Ok(())
}

fn one_column(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let rows = rows(call.input(0));
    call.give(
        0,
        Some(DType::F32),
        Some(Dims::from_iter([rows, Dim::Known(1)])),
    );
    Ok(())
}

fn normalizer(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dims = call.input(0).dims.clone();
    call.give(0, Some(DType::F32), dims);
    Ok(())
}

fn one_hot(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let [ints, texts] =
        ["cats_int64s", "cats_strings"].map(|name| call.attrs.len(name).unwrap_or(0));
    // The type of what is encoded says which list is meant.
    let n = match call.input(0).dtype {
        Some(DType::String) => Dim::from(texts),
        Some(_) => Dim::from(ints),
        None if ints == texts => Dim::from(ints),
        None => Dim::Unknown,
    };
    let dims = call.input(0).dims.clone().map(|mut dims| {
        dims.push(n);
        dims
    });
    call.give(0, Some(DType::F32), dims);
    Ok(())
}
