//! Models: the library's interface, what the command makes of files, many calls at once.

mod answers;
mod calls;
mod checked;
mod command;
mod concurrency;
mod contrib;
mod files;
mod formats;
mod graph;
mod hostile;
mod learned;
mod options;
mod precision;
mod prepared;
mod regions;
mod room;
mod state;
mod steps;
mod stored;
mod wire;

use tfrt::{Model, Runtime};

/// Adds its inputs and `[1, 2, 3]`; what is positive of that is the second result.
const TWO: &str = r#"module attributes {onnx.opset = 17 : i64} {
  func.func @main(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>) -> (tensor<?x3xf32>, tensor<?x3xf32>)
      attributes {model.input_names = ["x", "y"], model.output_names = ["sum", "positive"],
                  model.input_dims = [["N", 3 : i64], ["N", 3 : i64]],
                  model.output_dims = [["N", 3 : i64], ["N", 3 : i64]]} {
    %c = "onnx.Constant"() {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>} : () -> tensor<3xf32>
    %a = "onnx.Add"(%x, %y) : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %b = "onnx.Add"(%a, %c) : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
    %d = "onnx.Relu"(%b) : (tensor<?x3xf32>) -> tensor<?x3xf32>
    func.return %b, %d : tensor<?x3xf32>, tensor<?x3xf32>
  }
}
"#;

/// Opens a model given as text.
fn model(runtime: &Runtime, text: &str) -> Model {
    let program = runtime.compile("model.mlir", text).unwrap();
    Model::from_program(program, runtime).unwrap()
}
