//! Weights that models of one runtime have in common.

use tfrt::host::Limits;
use tfrt::input::Input;
use tfrt::ir::Source;
use tfrt::{Model, Runtime, Tensor};

const MIB: usize = 1 << 20;

/// Returns a product by a matrix of 2 MiB, and a convolution.
fn text(number: &str) -> Input {
    let text = format!(
        r#"func.func @main(%x: tensor<?x1024xf32>, %i: tensor<1x64x4x4xf32>) -> (tensor<?x512xf32>, tensor<*xf32>)
             attributes {{model.input_names = ["x", "i"], model.output_names = ["y", "z"],
                          model.input_dims = [["N", 1024 : i64], [1 : i64, 64 : i64, 4 : i64, 4 : i64]]}} {{
           %w = "onnx.Constant"() {{value = dense<{number}> : tensor<1024x512xf32>}} : () -> tensor<1024x512xf32>
           %f = "onnx.Constant"() {{value = dense<{number}> : tensor<128x64x3x3xf32>}} : () -> tensor<128x64x3x3xf32>
           %y = "onnx.MatMul"(%x, %w) : (tensor<?x1024xf32>, tensor<1024x512xf32>) -> tensor<?x512xf32>
           %z = "onnx.Conv"(%i, %f) : (tensor<1x64x4x4xf32>, tensor<128x64x3x3xf32>) -> tensor<*xf32>
           tfrt.return %y, %z : tensor<?x512xf32>, tensor<*xf32>
         }}"#
    );
    Input::Text(Source::new("model.mlir", text))
}

fn first(model: &Model, runtime: &Runtime) -> f32 {
    let x = Tensor::from_vec(&[1, 1024], vec![1.0_f32; 1024]).unwrap();
    let i = Tensor::from_vec(&[1, 64, 4, 4], vec![1.0_f32; 1024]).unwrap();
    let outputs = model
        .call(&runtime.context(), [("x", x), ("i", i)])
        .wait()
        .unwrap();
    outputs.tensor("y").unwrap().to_vec::<f32>().unwrap()[0]
}

#[test]
fn sessions_of_one_model_hold_weights_once() {
    // Room for what is packed twice, and what it is packed of, but not for eight of them.
    let limits = Limits {
        max_memory: Some(13 * MIB),
        ..Limits::default()
    };
    let runtime = Runtime::builder().limits(limits).build();
    let sessions: Vec<Model> = (0..8)
        .map(|_| runtime.load_model(&text("0.5")).unwrap())
        .collect();
    for session in &sessions {
        assert_eq!(first(session, &runtime), 512.0);
    }
    // Other weights are others.
    let other = runtime.load_model(&text("0.25")).unwrap();
    assert_eq!(first(&other, &runtime), 256.0);
    assert_eq!(first(&sessions[0], &runtime), 512.0);
    // What is dropped goes: there is room again for others, one after the other.
    drop(sessions);
    for number in ["0.75", "0.125", "2.0", "4.0", "8.0", "16.0"] {
        let model = runtime.load_model(&text(number)).unwrap();
        assert_eq!(
            first(&model, &runtime),
            1024.0 * number.parse::<f32>().unwrap()
        );
    }
}
