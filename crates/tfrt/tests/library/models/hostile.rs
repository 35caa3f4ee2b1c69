//! Models that are well-formed and can't be right: what only kernels notice, sizes that no memory has, loops without an
//! end. Each call fails with a message, and takes no more time and memory than what it is given.

use std::time::{Duration, Instant};

use tfrt::tensor::DenseHostTensor;
use tfrt::{ErrorCode, Runtime};

use super::model;

/// A tenth of this in a release build, and more on a machine that does other things.
const LIMIT: Duration = Duration::from_secs(10);

/// Calls a graph of `%x`, `2 x 3` floats, that gives `%y`; returns its error.
fn refused(runtime: &Runtime, body: &str, result: &str) -> tfrt::Error {
    let text = format!(
        r#"module attributes {{onnx.opset = 17 : i64}} {{
  func.func @main(%x: tensor<2x3xf32>) -> {result}
      attributes {{model.input_names = ["x"], model.output_names = ["y"], model.input_dims = [[2, 3]], model.output_dims = [unit]}} {{
    %none = "graph.none"() : () -> none
{body}
    func.return %y : {result}
  }}
}}
"#
    );
    let start = Instant::now();
    let program = runtime.compile("model.mlir", text).unwrap();
    let error = match tfrt::Model::from_program(program, runtime) {
        Err(tfrt::OpenError::Constants(error)) => error,
        Err(other) => panic!("{other}"),
        Ok(model) => {
            let allocator = runtime.host().allocator();
            let x = DenseHostTensor::from_slice(allocator, &[2, 3], &[1.0_f32; 6]).unwrap();
            let called = model.call(&runtime.context(), (x,)).wait();
            called.map(|_| ()).expect_err(body)
        }
    };
    assert!(start.elapsed() < LIMIT, "{body}: {:?}", start.elapsed());
    error
}

/// Returns an operation on `%x` and integers.
fn with_integers(name: &str, operands: &str, list: &str, types: &str, attributes: &str) -> String {
    let n = list.split(',').count();
    format!(
        r#"    %s = "onnx.Constant"() {{value = dense<[{list}]> : tensor<{n}xi64>}} : () -> tensor<{n}xi64>
    %y = "onnx.{name}"({operands}) {{{attributes}}} : ({types}) -> tensor<*xf32>"#
    )
}

const X: &str = "tensor<2x3xf32>";

#[test]
fn extents_that_do_not_fit_are_told() {
    let runtime = Runtime::new();
    let cases = [
        ("Expand", "2, 5", "", "[2, 5]"),
        ("Reshape", "4, 5", "", "[4, 5]"),
        ("Reshape", "-1, -1", "", "[-1, -1]"),
        ("Tile", "-1, 2", "", "sizes of 0 or more"),
        ("Pad", "-2, 0, -2, 0", "", "cut off more of dimension 0"),
        ("Split", "2, 2", "axis = 1 : i64", "do not add up"),
        ("Gather", "5", "", "expected one of 2 positions"),
    ];
    for (name, list, attributes, wanted) in cases {
        let n = list.split(',').count();
        let types = format!("{X}, tensor<{n}xi64>");
        let error = refused(
            &runtime,
            &with_integers(name, "%x, %s", list, &types, attributes),
            "tensor<*xf32>",
        );
        assert!(
            error.message().contains(wanted),
            "{name}: {}",
            error.message()
        );
    }
}

#[test]
fn sizes_that_no_memory_has_are_refused() {
    let runtime = Runtime::new();
    let two = |name: &str, list: &str| {
        let n = list.split(',').count();
        with_integers(name, "%x, %s", list, &format!("{X}, tensor<{n}xi64>"), "")
    };
    let bodies = [
        two("Tile", "1073741824, 1073741824"),
        two("Tile", "4611686018427387904, 4611686018427387904"),
        two("Pad", "4611686018427387904, 0, 4611686018427387904, 0"),
        two("Pad", "1099511627776, 0, 0, 0"),
        with_integers(
            "ConstantOfShape",
            "%s",
            "1099511627776, 1024",
            "tensor<2xi64>",
            "",
        ),
        with_integers(
            "Expand",
            "%x, %s",
            "4611686018427387904, 2, 3",
            &format!("{X}, tensor<3xi64>"),
            "",
        ),
        with_integers(
            "Resize",
            "%x, %none, %none, %s",
            "1099511627776, 1099511627776",
            &format!("{X}, none, none, tensor<2xi64>"),
            "mode = \"nearest\"",
        ),
    ];
    for body in bodies {
        let error = refused(&runtime, &body, "tensor<*xf32>");
        let message = error.message();
        let is_told = [
            "does not fit any memory",
            "Cannot allocate",
            "exceeds",
            "is no extent",
        ];
        assert!(
            is_told.iter().any(|told| message.contains(told)),
            "{body}: {message}"
        );
    }
}

#[test]
fn ranges_without_an_end_are_refused() {
    let runtime = Runtime::new();
    for limit in ["0x7FC00000", "0x7F800000"] {
        let constant = |name: &str, value: &str| {
            format!(
                "    %{name} = \"onnx.Constant\"() {{value = dense<{value}> : tensor<f32>}} : () -> tensor<f32>\n"
            )
        };
        let body = [
            constant("a", "0.0"),
            constant("b", limit),
            constant("d", "1.0"),
            r#"    %y = "onnx.Range"(%a, %b, %d) : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<*xf32>"#
                .to_owned(),
        ];
        let error = refused(&runtime, &body.concat(), "tensor<*xf32>");
        assert!(
            error.message().contains("there is no range"),
            "{limit}: {}",
            error.message()
        );
    }
}

#[test]
fn ranks_that_only_kernels_notice_are_told() {
    let runtime = Runtime::new();
    let weights = |extents: &str, operation: &str| {
        format!(
            r#"    %w = "onnx.Constant"() {{value = dense<1.0> : tensor<{extents}xf32>}} : () -> tensor<{extents}xf32>
    {operation} : (tensor<2x3xf32>, tensor<{extents}xf32>) -> tensor<*xf32>"#
        )
    };
    let bodies = [
        weights("4x5", r#"%y = "onnx.MatMul"(%x, %w)"#),
        weights("1x3x3x3", r#"%y = "onnx.Conv"(%x, %w)"#),
        weights("2x4", r#"%y = "onnx.Concat"(%x, %w) {axis = 0 : i64}"#),
        weights("4", r#"%y = "onnx.Add"(%x, %w)"#),
        // Of three dimensions, which `Gemm` does not take.
        r#"    %w = "onnx.Constant"() {value = dense<1.0> : tensor<3x5xf32>} : () -> tensor<3x5xf32>
    %a = "onnx.Constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
    %u = "onnx.Unsqueeze"(%x, %a) : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<*xf32>
    %y = "onnx.Gemm"(%u, %w) : (tensor<*xf32>, tensor<3x5xf32>) -> tensor<*xf32>"#
            .to_owned(),
    ];
    for body in bodies {
        let error = refused(&runtime, &body, "tensor<*xf32>");
        assert_eq!(
            error.code(),
            ErrorCode::InvalidArgument,
            "{body}: {}",
            error.message()
        );
    }
}

#[test]
fn loops_without_an_end_are_stopped_by_the_deadline() {
    let runtime = Runtime::new();
    let body = r#"module attributes {onnx.opset = 17 : i64} {
  func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32>
      attributes {model.input_names = ["x"], model.output_names = ["y"], model.input_dims = [[2, 3]], model.output_dims = [[2, 3]]} {
    %none = "graph.none"() : () -> none
    %true = "onnx.Constant"() {value = dense<true> : tensor<i1>} : () -> tensor<i1>
    %y = "onnx.Loop"(%none, %true, %x) ({
    ^bb0(%i: tensor<i64>, %go: tensor<i1>, %s: tensor<2x3xf32>):
      %t = "onnx.Tanh"(%s) : (tensor<2x3xf32>) -> tensor<2x3xf32>
      "graph.yield"(%go, %t) : (tensor<i1>, tensor<2x3xf32>) -> ()
    }) : (none, tensor<i1>, tensor<2x3xf32>) -> tensor<2x3xf32>
    func.return %y : tensor<2x3xf32>
  }
}
"#;
    let model = model(&runtime, body);
    let allocator = runtime.host().allocator();
    let x = DenseHostTensor::from_slice(allocator, &[2, 3], &[1.0_f32; 6]).unwrap();
    let soon = Duration::from_millis(50);
    let context = runtime.context_builder().deadline(soon).build();
    let start = Instant::now();
    let error = model.spawn(&context, (x,)).wait().unwrap_err();
    assert_eq!(error.code(), ErrorCode::DeadlineExceeded);
    assert!(start.elapsed() < LIMIT, "{:?}", start.elapsed());
}
