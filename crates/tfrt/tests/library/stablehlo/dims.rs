//! Modules whose extents are fixed when they are opened: windows that follow from an extent.

use tfrt::input::Input;
use tfrt::{Model, OpenOptions, Runtime, Tensor};

/// A cumulative sum, as JAX writes one for a dimension that is a symbol: windows of all elements, padded before.
const CUMULATIVE: &str = r#"module @jit_f attributes {jax.uses_shape_polymorphism = true} {
  func.func public @main(%arg0: tensor<?x2xf32> loc("x")) -> (tensor<?x2xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x2xf32>) -> tensor<i32>
    %1 = call @_wrapped_jax_export_main(%0, %arg0) : (tensor<i32>, tensor<?x2xf32>) -> tensor<?x2xf32>
    return %1 : tensor<?x2xf32>
  }
  func.func private @_wrapped_jax_export_main(%n: tensor<i32>, %x: tensor<?x2xf32>) -> tensor<?x2xf32> {
    %c = stablehlo.constant dense<1> : tensor<1xi32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %none = stablehlo.constant dense<0> : tensor<1xi32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.subtract %n, %one : tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.concatenate %1, %none, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %3 = stablehlo.reshape %2 : (tensor<2xi32>) -> tensor<1x2xi32>
    %4 = stablehlo.concatenate %none, %none, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %5 = stablehlo.reshape %4 : (tensor<2xi32>) -> tensor<1x2xi32>
    %pads = stablehlo.concatenate %3, %5, dim = 0 : (tensor<1x2xi32>, tensor<1x2xi32>) -> tensor<2x2xi32>
    %6 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %sizes = stablehlo.concatenate %6, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %ones = stablehlo.concatenate %c, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %r = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %zero, %sizes, %ones, %ones, %ones, %pads) {api_version = 2 : i32, called_computations = [@reducer]} : (tensor<?x2xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2x2xi32>) -> tensor<?x2xf32>
    return %r : tensor<?x2xf32>
  }
  func.func @reducer(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.add %arg0, %arg1 : tensor<f32>
    return %0 : tensor<f32>
  }
}
"#;

fn open(runtime: &Runtime, text: &str, options: &OpenOptions) -> Result<Model, String> {
    let input = Input::from_bytes("module.mlir", text.as_bytes().to_vec()).unwrap();
    let model = runtime.load_model_with(&input, options);
    model.map_err(|error| error.to_string())
}

#[test]
fn windows_may_follow_from_extents_that_are_fixed_or_known_only_in_a_call() {
    let runtime = Runtime::new();
    let fixed = open(&runtime, CUMULATIVE, &OpenOptions::new().dim("x.0", 3)).unwrap();
    assert_eq!(fixed.inputs()[0].to_string(), "x: f32 [3, 2]");
    let any = open(&runtime, CUMULATIVE, &OpenOptions::new()).unwrap();
    let sum = |model: &Model, n: usize| {
        let x = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0];
        let x = Tensor::from_slice(&[n, 2], &x[..2 * n]).unwrap();
        let outputs = model.call(&runtime.context(), [("x", x)]).wait().unwrap();
        outputs.tensor("result").unwrap().to_vec::<f32>().unwrap()
    };
    for model in [&fixed, &any] {
        assert_eq!(sum(model, 3), [1.0, 2.0, 4.0, 6.0, 9.0, 12.0]);
    }
    assert_eq!(sum(&any, 1), [1.0, 2.0]);
}

#[test]
fn windows_that_are_wrong_are_told() {
    let runtime = Runtime::new();
    let fixed = OpenOptions::new().dim("x.0", 3);
    // A text, that which takes its place, and what is told.
    let cases = [
        ("[@reducer]", "[@nothing]", "calls what is no function"),
        (
            "[@reducer]",
            "[]",
            "requires attribute 'called_computations', a list of one function",
        ),
        (
            "@reducer(%arg0: tensor<f32>, ",
            "@reducer(%arg0: tensor<f32>, %more: tensor<f32>, ",
            "calls a function of 3 arguments, expected 2",
        ),
    ];
    for (old, new, expected) in cases {
        let text = CUMULATIVE.replace(old, new);
        assert_ne!(text, CUMULATIVE, "{old}");
        let told = open(&runtime, &text, &fixed).unwrap_err();
        assert!(
            told.contains("module.mlir:") && told.contains(expected),
            "{expected} in\n{told}"
        );
    }
    let other = OpenOptions::new().dim("x.1", 2);
    let told = open(&runtime, CUMULATIVE, &other).unwrap_err();
    assert!(told.contains("the model has x.0"), "{told}");
}
