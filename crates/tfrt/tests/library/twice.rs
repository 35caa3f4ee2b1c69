//! A model of one operation, for tests of what goes in and comes out: `y` is `x + x`, for vectors of `f32` of any length.

use tfrt::{Model, Runtime};

pub fn twice(runtime: &Runtime) -> Model {
    let text = r#"func.func @main(%x: tensor<?xf32>) -> tensor<?xf32>
        attributes {model.input_names = ["x"], model.output_names = ["y"]} {
      %y = "onnx.Add"(%x, %x) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
      tfrt.return %y : tensor<?xf32>
    }"#;
    let program = runtime.compile("twice.mlir", text).unwrap();
    Model::from_program(program, runtime).unwrap()
}
