//! Texts that are wrong: each is told with its place, what is expected and what was found.

use tfrt::Runtime;
use tfrt::input::Input;

use super::open;

/// Wraps the body of a function of two tensors.
fn function(body: &str) -> String {
    format!(
        "func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {{\n  {body}\n  return %r : tensor<2x3xf32>\n}}\n"
    )
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let runtime = Runtime::new();
    for (body, place, message) in [
        (
            "%r = stablehlo.ad %x, %y : tensor<2x3xf32>",
            "2:8",
            "'stablehlo.ad'",
        ),
        (
            "%r = stablehlo.add %x, %x, %y : tensor<2x3xf32>",
            "2:8",
            "3",
        ),
        (
            "%r = \"stablehlo.all_reduce\"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>",
            "2:8",
            "is no operation that is run",
        ),
        (
            "%r = stablehlo.transpose %x, dims = [0, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>",
            "2:8",
            "twice",
        ),
        (
            "%r = stablehlo.transpose %x, dims = [0, 7] : (tensor<2x3xf32>) -> tensor<2x3xf32>",
            "2:8",
            "rank 2",
        ),
        (
            "%r = stablehlo.slice %x [0:5, 0:3] : (tensor<2x3xf32>) -> tensor<2x3xf32>",
            "2:8",
            "0:5:1",
        ),
        (
            "%r = stablehlo.reverse %x, dims = [1, 1] : tensor<2x3xf32>",
            "2:8",
            "twice",
        ),
        (
            "%r = \"stablehlo.transpose\"(%x) {permutation = \"no\"} : (tensor<2x3xf32>) -> tensor<2x3xf32>",
            "2:8",
            "permutation",
        ),
        (
            "%r = stablehlo.constant dense<[1.0, 2.0]> : tensor<2x3xf32>",
            "2:",
            "shape",
        ),
        (
            "%r = stablehlo.constant dense<\"0x00\"> : tensor<2x3xf32>",
            "2:",
            "size",
        ),
        (
            "%r = stablehlo.compare SAME, %x, %y : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>",
            "2:8",
            "SAME",
        ),
        (
            "%r = func.call @other(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>\n  %q = stablehlo.add %x, %x : tensor<2x3xf32>",
            "2:18",
            "other",
        ),
    ] {
        let told = open(&runtime, &function(body))
            .err()
            .unwrap_or_else(|| panic!("{body}: it is opened"));
        let first = told.lines().next().unwrap_or_default();
        assert!(
            first.contains(&format!("module.mlir:{place}")) && told.contains(message),
            "{body}:\n{told}"
        );
    }
}

#[test]
fn functions_that_call_themselves_are_refused() {
    let runtime = Runtime::new();
    let text = "func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %r = func.call @loop(%x) : (tensor<f32>) -> tensor<f32>
  %q = stablehlo.add %r, %r : tensor<f32>
  return %q : tensor<f32>
}
func.func private @loop(%x: tensor<f32>) -> tensor<f32> {
  %r = func.call @loop(%x) : (tensor<f32>) -> tensor<f32>
  return %r : tensor<f32>
}
";
    let told = open(&runtime, text).unwrap_err();
    assert!(
        told.contains("7:8") && told.contains("calls itself"),
        "{told}"
    );
    // A chain of 20,000 calls, none of which is a cycle.
    let mut text = String::from(
        "func.func @main(%x: tensor<f32>) -> tensor<f32> {\n  %r = func.call @f0(%x) : (tensor<f32>) -> tensor<f32>\n  %q = stablehlo.add %r, %r : tensor<f32>\n  return %q : tensor<f32>\n}\n",
    );
    for index in 0..20_000 {
        let next = index + 1;
        text.push_str(&format!(
            "func.func private @f{index}(%x: tensor<f32>) -> tensor<f32> {{\n  %r = func.call @f{next}(%x) : (tensor<f32>) -> tensor<f32>\n  return %r : tensor<f32>\n}}\n"
        ));
    }
    text.push_str("func.func private @f20000(%x: tensor<f32>) -> tensor<f32> {\n  return %x : tensor<f32>\n}\n");
    let told = open(&runtime, &text).unwrap_err();
    assert!(told.contains("nested deeper"), "{told}");
}

#[test]
fn bytecode_is_refused_with_the_line_that_prints_it() {
    let input = Input::from_bytes("module.mlirbc", b"ML\xefR\x01\x02".to_vec()).unwrap();
    let told = Runtime::new().load_model(&input).unwrap_err().to_string();
    assert!(told.contains("deserialize_portable_artifact"), "{told}");
}
