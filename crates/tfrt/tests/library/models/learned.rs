//! Operators of `ai.onnx.ml` that become others, with results that are known.

use tfrt::Runtime;
use tfrt::model::Datum;
use tfrt::tensor::{DenseHostTensor, Tensor};

use super::model;

/// Calls an operator of `%x`, rows of two features, and returns its last result.
fn call(operation: &str, results: &str, rows: &[[f32; 2]]) -> Vec<f32> {
    let runtime = Runtime::new();
    let text = format!(
        r#"module attributes {{onnx.opset = 17 : i64, onnx.opset.ai.onnx.ml = 1 : i64}} {{
  func.func @main(%x: tensor<?x2xf32>) -> tensor<*xf32>
      attributes {{model.input_names = ["x"], model.output_names = ["y"], model.input_dims = [["N", 2]], model.output_dims = [unit]}} {{
    {operation} : (tensor<?x2xf32>) -> {results}
    func.return %y : tensor<*xf32>
  }}
}}
"#
    );
    let allocator = runtime.host().allocator();
    let x = DenseHostTensor::from_slice(allocator, &[rows.len(), 2], rows.as_flattened()).unwrap();
    let outputs = model(&runtime, &text)
        .call(&runtime.context(), (Tensor::from(x),))
        .wait();
    let outputs = outputs.unwrap();
    outputs.tensor("y").unwrap().to_vec::<f32>().unwrap()
}

fn one(operation: &str, rows: &[[f32; 2]]) -> Vec<f32> {
    call(operation, "tensor<*xf32>", rows)
}

#[test]
fn features_are_scaled_filled_in_and_encoded() {
    let scaled = one(
        r#"%y = "onnx.ml.Scaler"(%x) {offset = [1.0 : f32, 2.0 : f32], scale = [2.0 : f32]}"#,
        &[[3.0, 2.0], [1.0, 5.0]],
    );
    assert_eq!(scaled, [4.0, 0.0, 0.0, 6.0]);
    let normal = one(
        r#"%y = "onnx.ml.Normalizer"(%x) {norm = "L2"}"#,
        &[[3.0, -4.0], [0.0, 0.0]],
    );
    assert_eq!(normal, [0.6, -0.8, 0.0, 0.0]);
    let filled = one(
        r#"%y = "onnx.ml.Imputer"(%x) {imputed_value_floats = [7.0 : f32, 8.0 : f32], replaced_value_float = 0x7FC00000 : f32}"#,
        &[[f32::NAN, 1.0], [2.0, f32::NAN]],
    );
    assert_eq!(filled, [7.0, 1.0, 2.0, 8.0]);
    let encoded = one(
        r#"%y = "onnx.ml.OneHotEncoder"(%x) {cats_int64s = [1 : i64, 4 : i64]}"#,
        &[[1.0, 4.0], [2.0, 1.0]],
    );
    assert_eq!(encoded, [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0]);
}

#[test]
fn linear_models_give_scores() {
    let regressed = one(
        r#"%y = "onnx.ml.LinearRegressor"(%x) {coefficients = [1.0 : f32, 2.0 : f32], intercepts = [0.5 : f32]}"#,
        &[[1.0, 1.0], [2.0, 0.0]],
    );
    assert_eq!(regressed, [3.5, 2.5]);
    let scores = call(
        r#"%label, %y = "onnx.ml.LinearClassifier"(%x) {classlabels_strings = ["no", "yes"],
           coefficients = [1.0 : f32, 0.0 : f32, 0.0 : f32, 1.0 : f32], intercepts = [0.0 : f32, 0.0 : f32],
           post_transform = "LOGISTIC"}"#,
        "(tensor<*x!onnx.string>, tensor<*xf32>)",
        &[[0.0, 40.0]],
    );
    assert_eq!(scores, [0.5, 1.0]);
}

/// A tree of two leaves behind a map, as exporters of classifiers end.
const ZIPPED: &str = r#"module attributes {onnx.opset = 17 : i64, onnx.opset.ai.onnx.ml = 3 : i64} {
  func.func @main(%x: tensor<?x1xf32>) -> (tensor<?x!onnx.string>, !onnx.sequence<!onnx.map<!onnx.string, tensor<f32>>>)
      attributes {model.input_names = ["x"], model.output_names = ["label", "scores"], model.input_dims = [["N", 1]],
      model.output_dims = [["N"], unit]} {
    %label, %p = "onnx.ml.TreeEnsembleClassifier"(%x) {class_ids = [0, 1], class_nodeids = [1, 2],
        class_treeids = [0, 0], class_weights = [1.0 : f32, 1.0 : f32], classlabels_strings = ["a", "b", "c"],
        nodes_falsenodeids = [2, 0, 0], nodes_featureids = [0, 0, 0], nodes_modes = ["BRANCH_LT", "LEAF", "LEAF"],
        nodes_nodeids = [0, 1, 2], nodes_treeids = [0, 0, 0], nodes_truenodeids = [1, 0, 0],
        nodes_values = [0.5 : f32, 0.0 : f32, 0.0 : f32]} : (tensor<?x1xf32>) -> (tensor<?x!onnx.string>, tensor<*xf32>)
    %z = "onnx.ml.ZipMap"(%p) {classlabels_strings = ["a", "b", "c"]} : (tensor<*xf32>)
        -> !onnx.sequence<!onnx.map<!onnx.string, tensor<f32>>>
    func.return %label, %z : tensor<?x!onnx.string>, !onnx.sequence<!onnx.map<!onnx.string, tensor<f32>>>
  }
}
"#;

#[test]
fn classifiers_end_in_maps() {
    let runtime = Runtime::new();
    let model = model(&runtime, ZIPPED);
    assert_eq!(
        model.outputs()[1].to_string(),
        "scores: sequence of map from str to f32 []"
    );
    let rows: Vec<f32> = (0..1000).map(|row| [0.0, 1.0][row % 2]).collect();
    let x = DenseHostTensor::from_slice(runtime.host().allocator(), &[1000, 1], &rows).unwrap();
    let outputs = model.call(&runtime.context(), (Tensor::from(x),)).wait();
    let outputs = outputs.unwrap();
    let labels = outputs.tensor("label").unwrap();
    assert_eq!(
        labels.strings().unwrap()[..3],
        [b"a".to_vec(), b"b".to_vec(), b"a".to_vec()]
    );
    let Datum::Maps(maps) = outputs.get("scores").unwrap() else {
        panic!("expected maps");
    };
    assert_eq!(
        (maps.len(), maps.keys().metadata().to_string()),
        (1000, "str [3]".to_owned())
    );
    let values = maps.values().as_dense().unwrap();
    let reading = values.read().unwrap();
    assert_eq!(
        reading.elements::<f32>().unwrap()[..6],
        [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    );
}
