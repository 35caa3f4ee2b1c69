//! Operations of graphs by the names of rows, as text.

use tfrt::compiler::onnx::{NoEvaluator, Options, pipeline};
use tfrt::compiler::{CompileOptions, compile, legalize::Context};
use tfrt::input::{Input, parse};
use tfrt::ir::Source;
use tfrt::{Model, Runtime, Tensor};

/// Returns the text of a model of one operation.
fn text(operation: &str, types: &str) -> String {
    let n_inputs = types.split(',').count();
    let names: Vec<String> = (0..n_inputs).map(|index| format!("%a{index}")).collect();
    let arguments: Vec<String> = names
        .iter()
        .zip(types.split(','))
        .map(|(name, ty)| format!("{name}: {}", ty.trim()))
        .collect();
    let (name, rest) = operation.split_once(' ').unwrap_or((operation, ""));
    format!(
        r#"func.func @main({}) -> tensor<*x!onnx.unknown> attributes {{model.input_names = ["{}"], model.output_names = ["y"]}} {{
  %y = "graph.{name}"({}) {rest} : ({types}) -> tensor<*x!onnx.unknown>
  tfrt.return %y : tensor<*x!onnx.unknown>
}}"#,
        arguments.join(", "),
        names.join("\", \"").replace('%', ""),
        names.join(", "),
    )
}

/// Calls a model as it is, and made by no passes but those that it needs.
fn called(runtime: &Runtime, operation: &str, types: &str, inputs: &[Tensor]) -> [Tensor; 2] {
    let text = text(operation, types);
    let model = runtime.load_model(&Input::Text(Source::new("row.mlir", &text)));
    let model = model.unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut module = parse(&Source::new("row.mlir", &text)).unwrap();
    let options = Options {
        optimize: false,
        ..Options::default()
    };
    pipeline(&mut module, &options, &Context::new(&NoEvaluator)).unwrap();
    let bytes = compile(&module, &CompileOptions::default()).unwrap();
    let bytes = bytes.as_bytes().to_vec();
    let bare = runtime.load_model(&Input::from_bytes("bare", bytes).unwrap());
    [model, bare.unwrap()].map(|model: Model| {
        let call = model.call(&runtime.context(), inputs.to_vec());
        let outputs = call.wait();
        let outputs = outputs.unwrap_or_else(|error| panic!("{error}\n{text}"));
        outputs.tensor("y").unwrap()
    })
}

fn floats(elements: &[f32]) -> Tensor {
    Tensor::from_slice(&[elements.len()], elements).unwrap()
}

#[test]
fn pointwise_rows_that_onnx_has_no_name_for_run() {
    let runtime = super::Runtime::new();
    let x = [0.25_f32, 2.5, -0.0625, 9.0];
    let y = [1.0_f32, -2.0, 0.5, 9.0];
    type One = fn(f64) -> f64;
    let ones: [(&str, One); 5] = [
        ("square", |x| x * x),
        ("rsqrt", |x| 1.0 / x.sqrt()),
        ("expm1", f64::exp_m1),
        ("log1p", f64::ln_1p),
        ("trunc", f64::trunc),
    ];
    let close = |found: &Tensor, expected: &[f64], name: &str| {
        let found: Vec<f32> = found.to_vec().unwrap();
        assert_eq!(found.len(), expected.len(), "{name}");
        for (found, expected) in found.iter().zip(expected) {
            let found = f64::from(*found);
            let is_same = (found.is_nan() && expected.is_nan())
                || (found - expected).abs() <= 1e-6 * expected.abs().max(1.0);
            assert!(is_same, "{name}: {found} is not {expected}");
        }
    };
    for (name, function) in ones {
        let expected: Vec<f64> = x.iter().map(|x| function(f64::from(*x))).collect();
        for found in called(&runtime, name, "tensor<?xf32>", &[floats(&x)]) {
            close(&found, &expected, name);
        }
    }
    type Two = fn(f64, f64) -> f64;
    let twos: [(&str, Two); 2] = [
        ("atan2", f64::atan2),
        ("squared_difference", |x, y| (x - y) * (x - y)),
    ];
    for (name, function) in twos {
        let pairs = x.iter().zip(&y);
        let expected: Vec<f64> = pairs
            .map(|(x, y)| function((*x).into(), (*y).into()))
            .collect();
        let types = "tensor<?xf32>, tensor<?xf32>";
        for found in called(&runtime, name, types, &[floats(&x), floats(&y)]) {
            close(&found, &expected, name);
        }
    }
    let types = "tensor<?xf32>, tensor<?xf32>";
    for found in called(&runtime, "ne", types, &[floats(&x), floats(&y)]) {
        let found: Vec<tfrt::Bool> = found.to_vec().unwrap();
        assert_eq!(
            found.iter().map(|it| bool::from(*it)).collect::<Vec<_>>(),
            [true, true, true, false]
        );
    }
    let words = Tensor::from_slice(&[2], &[1_u8, 0x81]).unwrap();
    let by = Tensor::from_slice(&[2], &[3_u8, 1]).unwrap();
    for (name, expected) in [("shift_left", [8_u8, 2]), ("shift_right", [0, 0x40])] {
        let types = "tensor<2xui8>, tensor<2xui8>";
        for found in called(&runtime, name, types, &[words.clone(), by.clone()]) {
            assert_eq!(found.to_vec::<u8>().unwrap(), expected, "{name}");
        }
    }
}

#[test]
fn rows_run_with_the_attributes_of_rows() {
    let runtime = super::Runtime::new();
    let x = Tensor::from_slice(&[2, 3], &[1.0_f32, -2.0, 3.0, 0.5, 0.0, -1.0]).unwrap();
    for (operation, expected) in [
        (
            r#"reduce {kind = "sum", axes = [1], keep = 0}"#,
            vec![2.0_f32, -0.5],
        ),
        (r#"reduce {kind = "max"}"#, vec![3.0]),
        (r#"cast {to = f32}"#, vec![1.0, -2.0, 3.0, 0.5, 0.0, -1.0]),
        (
            "transpose {perm = [1, 0]}",
            vec![1.0, 0.5, -2.0, 0.0, 3.0, -1.0],
        ),
        (
            "leaky_relu {alpha = 0.5 : f32}",
            vec![1.0, -1.0, 3.0, 0.5, 0.0, -0.5],
        ),
        ("relu", vec![1.0, 0.0, 3.0, 0.5, 0.0, 0.0]),
    ] {
        for found in called(
            &runtime,
            operation,
            "tensor<?x3xf32>",
            std::slice::from_ref(&x),
        ) {
            assert_eq!(found.to_vec::<f32>().unwrap(), expected, "{operation}");
        }
    }
    let operation = r#"arg {kind = "min", axis = 1, keep = 0}"#;
    for found in called(
        &runtime,
        operation,
        "tensor<?x3xf32>",
        std::slice::from_ref(&x),
    ) {
        assert_eq!(found.to_vec::<i64>().unwrap(), [1, 2]);
    }
}

#[test]
fn numbers_in_attributes_may_be_of_any_width() {
    let runtime = super::Runtime::new();
    let elements: Vec<f32> = (0..16_u8).map(|x| f32::from(x).sin()).collect();
    let x = Tensor::from_slice(&[1, 4, 2, 2], &elements).unwrap();
    for (wide, usual, types) in [
        (
            "lrn {alpha = 0.5 : f64, beta = 0.25 : f16, size = 3 : i8}",
            "lrn {alpha = 0.5 : f32, beta = 0.25 : f32, size = 3}",
            "tensor<1x4x2x2xf32>",
        ),
        (
            r#"norm {kind = "layer", axis = 0 : i32, epsilon = 0.5 : f64}"#,
            r#"norm {kind = "layer", axis = 0, epsilon = 0.5 : f32}"#,
            "tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>",
        ),
        (
            "leaky_relu {alpha = 0.5 : bf16}",
            "leaky_relu {alpha = 0.5 : f32}",
            "tensor<1x4x2x2xf32>",
        ),
        (
            "softmax {axis = true}",
            "softmax {axis = 1}",
            "tensor<1x4x2x2xf32>",
        ),
        (
            "transpose {perm = [1 : i32, 0 : i32, 2 : i32, 3 : i32]}",
            "transpose {perm = [1, 0, 2, 3]}",
            "tensor<1x4x2x2xf32>",
        ),
        (
            r#"pool {kind = "max", kernel_shape = [2 : i8, 2 : i8], strides = [1 : i32, 1 : i32]}"#,
            r#"pool {kind = "max", kernel_shape = [2, 2], strides = [1, 1]}"#,
            "tensor<1x4x2x2xf32>",
        ),
    ] {
        let inputs = vec![x.clone(); types.matches("tensor").count()];
        let bits = |operation: &str| {
            let found = called(&runtime, operation, types, &inputs);
            found.map(|found| {
                let elements = found.to_vec::<f32>().unwrap();
                elements.into_iter().map(f32::to_bits).collect::<Vec<_>>()
            })
        };
        assert_eq!(bits(wide), bits(usual), "{wide}");
    }
}

#[test]
fn rows_without_a_kernel_are_told() {
    let runtime = super::Runtime::new();
    let relo = text("relo", "tensor<?xf32>");
    // Results and arguments are as many as operands.
    let misfit = r#"({
    ^bb0(%v: tensor<?xf32>):
      "graph.yield"(%v) : (tensor<?xf32>) -> ()
    }, {
      "graph.yield"() : () -> ()
    })"#;
    let misfit = text(&format!("while {misfit}"), "tensor<?xf32>");
    for (text, expected) in [
        (
            misfit,
            "row.mlir:2:8: error: 'graph.while' op expected 1 results, regions of 1 arguments, a condition that gives one value and a body that gives 1",
        ),
        (
            relo,
            "row.mlir:2:8: error: 'graph.relo' op is no operation of the dialect 'graph' [TF0118]",
        ),
    ] {
        let error = runtime.load_model(&Input::Text(Source::new("row.mlir", text)));
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn moves_that_onnx_has_no_name_for_run() {
    let runtime = super::Runtime::new();
    let x = floats(&[3.0, f32::NAN, -0.0, 1.0, 0.0]);
    let part = floats(&[8.0, 9.0]);
    let start = |at: i64| Tensor::from_slice(&[1], &[at]).unwrap();
    for (operation, inputs, expected) in [
        ("sort", vec![x.clone()], vec![-0.0, 0.0, 1.0, 3.0, f32::NAN]),
        (
            "sort {axis = 0, descending = 1}",
            vec![x.clone()],
            vec![f32::NAN, 3.0, 1.0, -0.0, 0.0],
        ),
        (
            "reverse {axes = [0]}",
            vec![x.clone()],
            vec![0.0, 1.0, -0.0, f32::NAN, 3.0],
        ),
        (
            "update_slice",
            vec![x.clone(), part.clone(), start(1)],
            vec![3.0, 8.0, 9.0, 1.0, 0.0],
        ),
        (
            "update_slice",
            vec![x, part, start(4)],
            vec![3.0, f32::NAN, -0.0, 8.0, 9.0],
        ),
    ] {
        let types = match inputs.len() {
            1 => "tensor<?xf32>",
            _ => "tensor<?xf32>, tensor<?xf32>, tensor<1xi64>",
        };
        let bits = |list: &[f32]| list.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        for found in called(&runtime, operation, types, &inputs) {
            let found = found.to_vec::<f32>().unwrap();
            assert_eq!(bits(&found), bits(&expected), "{operation}: {found:?}");
        }
    }
}

/// Before version 7 of ONNX a second operand began at an axis of the first, and slopes were those of channels.
#[test]
fn older_forms_are_broadcast_as_they_were() {
    let runtime = super::Runtime::new();
    let x = [1.0_f32, -2.0, -3.0, 4.0, -5.0, 6.0, 7.0, -8.0];
    let y = [10.0_f32, -20.0];
    for (operation, shape, expected) in [
        (
            r#""onnx.Add"(%x, %y) {axis = 0, broadcast = 1}"#,
            [2, 2, 2],
            [11.0, 8.0, 7.0, 14.0, -25.0, -14.0, -13.0, -28.0],
        ),
        (
            r#""onnx.Add"(%x, %y) {axis = 1, broadcast = 1}"#,
            [2, 2, 2],
            [11.0, 8.0, -23.0, -16.0, 5.0, 16.0, -13.0, -28.0],
        ),
        (
            r#""onnx.Add"(%x, %y) {broadcast = 1}"#,
            [2, 2, 2],
            [11.0, -22.0, 7.0, -16.0, 5.0, -14.0, 17.0, -28.0],
        ),
        (
            r#""onnx.PRelu"(%x, %y)"#,
            [2, 2, 2],
            [1.0, -20.0, 60.0, 4.0, -50.0, 6.0, 7.0, 160.0],
        ),
    ] {
        let ty = "tensor<?x?x?xf32>, tensor<2xf32>";
        let text = format!(
            r#"module attributes {{onnx.opset = 6 : i64}} {{
  func.func @main(%x: tensor<?x?x?xf32>, %y: tensor<2xf32>) -> tensor<*xf32> attributes {{model.input_names = ["x", "y"], model.output_names = ["z"]}} {{
    %z = {operation} : ({ty}) -> tensor<*xf32>
    tfrt.return %z : tensor<*xf32>
  }}
}}"#
        );
        for optimize in [true, false] {
            let options = tfrt::OpenOptions::new().optimize(optimize);
            let input = Input::Text(Source::new("older.mlir", &text));
            let model = runtime.load_model_with(&input, &options).unwrap();
            let inputs = vec![Tensor::from_slice(&shape, &x).unwrap(), floats(&y)];
            let outputs = model.call(&runtime.context(), inputs).wait().unwrap();
            let found = outputs.tensor("z").unwrap().to_vec::<f32>().unwrap();
            assert_eq!(found, expected, "{operation}");
        }
    }
}

/// An image that an operation has taken with its channels first stays as it is, though what is multiplied with it
/// behind would fit into the convolution.
#[test]
fn images_that_others_have_taken_are_multiplied_by_themselves() {
    let runtime = super::Runtime::new();
    let behind = [
        r#"%m = "onnx.Mul"(%c, %h) : (tensor<*xf32>, tensor<1xf32>) -> tensor<*xf32>"#,
        r#"%m = "onnx.BatchNormalization"(%c, %h, %z, %z, %o) {epsilon = 0.0 : f32}
             : (tensor<*xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<*xf32>"#,
    ];
    for behind in behind {
        let text = format!(
            r#"module attributes {{onnx.opset = 17 : i64}} {{
  func.func @main(%x: tensor<1x1x1x2xf32>) -> (tensor<*xf32>, tensor<*xf32>)
      attributes {{model.input_names = ["x"], model.output_names = ["taken", "multiplied"]}} {{
    %w = "onnx.Constant"() {{value = dense<2.0> : tensor<1x1x1x1xf32>}} : () -> tensor<1x1x1x1xf32>
    %h = "onnx.Constant"() {{value = dense<0.5> : tensor<1xf32>}} : () -> tensor<1xf32>
    %z = "onnx.Constant"() {{value = dense<0.0> : tensor<1xf32>}} : () -> tensor<1xf32>
    %o = "onnx.Constant"() {{value = dense<1.0> : tensor<1xf32>}} : () -> tensor<1xf32>
    %c = "onnx.Conv"(%x, %w) : (tensor<1x1x1x2xf32>, tensor<1x1x1x1xf32>) -> tensor<*xf32>
    %f = "onnx.Flatten"(%c) : (tensor<*xf32>) -> tensor<*xf32>
    {behind}
    func.return %f, %m : tensor<*xf32>, tensor<*xf32>
  }}
}}"#
        );
        let model = super::model(&runtime, &text);
        let x = Tensor::from_slice(&[1, 1, 1, 2], &[1.5_f32, -3.0]).unwrap();
        let outputs = model.call(&runtime.context(), (x,)).wait().unwrap();
        let of = |name| outputs.tensor(name).unwrap().to_vec::<f32>().unwrap();
        assert_eq!(of("taken"), [3.0, -6.0]);
        assert_eq!(of("multiplied"), [1.5, -3.0]);
    }
}
