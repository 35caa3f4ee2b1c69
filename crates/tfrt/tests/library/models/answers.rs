//! Tests of what the command says of models without running them: open sizes, stated types, integers, and mistakes on its line.

use serde_json::Value as Json;

use super::command::Folder;

#[test]
fn check_says_which_sizes_are_open() {
    let folder = Folder::new("open");
    let verdict = "two.onnx: ok, but for sizes that calls give (N): to check one, --dim N=SIZE\n";
    assert_eq!(folder.printed("check two.onnx"), verdict);
    let (_, stdout, _) = folder.run("check --json two.onnx");
    let document: Json = serde_json::from_str(&stdout).unwrap();
    assert_eq!(document["files"][0]["open"], serde_json::json!(["N"]));
    assert_eq!(document["files"][0]["ok"], true);
    assert_eq!(folder.printed("check two.onnx --dim N=2"), "two.onnx: ok\n");
}

#[test]
fn outputs_that_are_of_another_type_than_is_stated_are_warned_of() {
    let folder = Folder::new("stated");
    let text = |stated: &str| {
        format!(
            "func.func @main(%x: tensor<2x3xf32>) -> {stated} attributes {{model.input_names = [\"x\"], model.output_names = [\"y\"]}} {{
               %y = \"onnx.Relu\"(%x) : (tensor<2x3xf32>) -> {stated}
               tfrt.return %y : {stated}
             }}"
        )
    };
    for stated in ["tensor<2x5xf32>", "tensor<3xf32>"] {
        folder.write("wrong.mlir", text(stated));
        let (status, stdout, stderr) = folder.run("check wrong.mlir");
        assert_eq!((status, stdout.as_str()), (0, "wrong.mlir: ok\n"));
        let message = format!(
            "warning: output 'y' is stated to be {stated}, and is tensor<2x3xf32> [TF0518]"
        );
        assert!(stderr.contains(&message), "{stderr}");
        assert_eq!(stderr.matches("TF0518").count(), 1, "{stderr}");
    }
    for stated in ["tensor<2x3xf32>", "tensor<?x3xf32>", "tensor<*xf32>"] {
        folder.write("right.mlir", text(stated));
        assert_eq!(folder.printed("check right.mlir"), "right.mlir: ok\n");
    }
}

/// A product of quantised numbers, quantised again.
const QUANTIZED: &str = r#"func.func @main(%x: tensor<4x8xf32>) -> tensor<*xf32> attributes {model.input_names = ["x"], model.output_names = ["y"]} {
  %w = "onnx.Constant"() {value = dense<3> : tensor<8x5xi8>} : () -> tensor<8x5xi8>
  %s = "onnx.Constant"() {value = dense<0.02> : tensor<f32>} : () -> tensor<f32>
  %z = "onnx.Constant"() {value = dense<7> : tensor<ui8>} : () -> tensor<ui8>
  %wz = "onnx.Constant"() {value = dense<0> : tensor<i8>} : () -> tensor<i8>
  %q = "onnx.QuantizeLinear"(%x, %s, %z) : (tensor<4x8xf32>, tensor<f32>, tensor<ui8>) -> tensor<*xui8>
  %f = "onnx.DequantizeLinear"(%q, %s, %z) : (tensor<*xui8>, tensor<f32>, tensor<ui8>) -> tensor<*xf32>
  %wf = "onnx.DequantizeLinear"(%w, %s, %wz) : (tensor<8x5xi8>, tensor<f32>, tensor<i8>) -> tensor<*xf32>
  %m = "onnx.MatMul"(%f, %wf) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %p = "onnx.QuantizeLinear"(%m, %s, %z) : (tensor<*xf32>, tensor<f32>, tensor<ui8>) -> tensor<*xui8>
  %y = "onnx.DequantizeLinear"(%p, %s, %z) : (tensor<*xui8>, tensor<f32>, tensor<ui8>) -> tensor<*xf32>
  tfrt.return %y : tensor<*xf32>
}"#;

#[test]
fn inspect_counts_what_is_calculated_with_integers() {
    let folder = Folder::new("integers");
    folder.write("q.mlir", QUANTIZED);
    let line = |arguments: &str| {
        let text = folder.printed(&format!("inspect graph q.mlir{arguments}"));
        text.lines().nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(
        line(""),
        "kernels on integers: 1 quantized_dot; from and to floats: 1 quantize, 1 dequantize"
    );
    let written = line(" --no-quantize");
    assert!(
        written.starts_with("kernels on integers: none; from and to floats: 2 quantize"),
        "{written}"
    );
    let (_, stdout, _) = folder.run("inspect graph q.mlir --json");
    let document: Json = serde_json::from_str(&stdout).unwrap();
    assert_eq!(document["quantized"]["quantized_dot"], 1);
    // What is not quantised has no such line.
    let plain = folder.printed("inspect graph two.onnx");
    assert!(!plain.contains("kernels on integers"), "{plain}");
}

/// A sum of two quantised tensors, and a product and a convolution that are written on integers.
const SUM_AND_INTEGERS: &str = r#"func.func @main(%x: tensor<1x3x5x5xui8>, %w: tensor<4x3x3x3xi8>, %m: tensor<5x5xi8>) -> (tensor<*xui8>, tensor<*xi32>, tensor<*xi32>) attributes {model.input_names = ["x", "w", "m"], model.output_names = ["y", "c", "p"]} {
  %s = "onnx.Constant"() {value = dense<0.02> : tensor<f32>} : () -> tensor<f32>
  %z = "onnx.Constant"() {value = dense<7> : tensor<ui8>} : () -> tensor<ui8>
  %f = "onnx.DequantizeLinear"(%x, %s, %z) : (tensor<1x3x5x5xui8>, tensor<f32>, tensor<ui8>) -> tensor<*xf32>
  %a = "onnx.Add"(%f, %f) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %y = "onnx.QuantizeLinear"(%a, %s, %z) : (tensor<*xf32>, tensor<f32>, tensor<ui8>) -> tensor<*xui8>
  %c = "onnx.ConvInteger"(%x, %w) : (tensor<1x3x5x5xui8>, tensor<4x3x3x3xi8>) -> tensor<*xi32>
  %p = "onnx.MatMulInteger"(%x, %m) : (tensor<1x3x5x5xui8>, tensor<5x5xi8>) -> tensor<*xi32>
  tfrt.return %y, %c, %p : tensor<*xui8>, tensor<*xi32>, tensor<*xi32>
}"#;

/// Sums of floats become integers unless `--no-quantize` is given; operations that are written on integers stay so.
#[test]
fn sums_of_quantised_tensors_obey_the_switch() {
    let folder = Folder::new("sums");
    folder.write("q.mlir", SUM_AND_INTEGERS);
    let line = |arguments: &str| {
        let text = folder.printed(&format!("inspect graph q.mlir{arguments}"));
        text.lines().nth(1).unwrap_or_default().to_owned()
    };
    let written = "kernels on integers: 1 ConvInteger, 1 MatMulInteger";
    assert_eq!(
        line(""),
        format!("{written}, 1 qadd; from and to floats: none")
    );
    let with_floats = format!("{written}; from and to floats: 1 quantize, 1 dequantize");
    assert_eq!(line(" --no-quantize"), with_floats);
}

#[test]
fn results_with_integers_are_a_step_from_those_without() {
    let folder = Folder::new("step");
    folder.write("q.mlir", QUANTIZED);
    folder.printed("run q.mlir --random --seed 5 --no-quantize --output y=y.npy");
    let (status, _, stderr) =
        folder.run("run q.mlir --random --seed 5 --expect y=y.npy --tolerance 0.0201");
    assert_eq!(status, 0, "{stderr}");
}

#[test]
fn memory_is_measured_of_what_is_written_too() {
    let folder = Folder::new("memory");
    folder.write("q.mlir", QUANTIZED);
    for options in ["", " --no-quantize", " --precision bf16"] {
        let text = folder.printed(&format!("inspect memory q.mlir --random{options}"));
        assert!(text.contains("first call"), "{text}");
    }
}

#[test]
fn options_of_compiling_are_refused_for_what_is_compiled() {
    let folder = Folder::new("compiled");
    folder.printed("compile two.onnx -o two.bef");
    for (command, option) in [
        ("check two.bef --precision bf16", "--precision"),
        ("run two.bef --random --precision f32", "--precision"),
        ("inspect graph two.bef --no-quantize", "--no-quantize"),
        ("bench two.bef --precision bf16", "--precision"),
    ] {
        let said = folder.refused(command, 2);
        let expected = format!("{option} is for models that are compiled now");
        assert!(said.contains(&expected), "{said}");
    }
}

#[test]
fn a_file_in_the_place_of_a_view_is_told_what_to_do() {
    let folder = Folder::new("view");
    let said = folder.refused("inspect two.onnx", 2);
    let hint = "The view comes before the file: tfrt inspect graph two.onnx\n";
    assert!(said.ends_with(hint), "{said}");
}

#[test]
fn a_seed_below_0_is_told_the_range() {
    let folder = Folder::new("seed");
    let said = folder.refused("run two.onnx --random --seed -1", 2);
    let message = "invalid value '-1' for '--seed <N>': expected a whole number from 0 to 18446744073709551615";
    assert!(said.contains(message), "{said}");
}

#[cfg(feature = "plugins")]
#[test]
fn names_of_operations_that_nothing_has_are_told() {
    let folder = Folder::new("names");
    let text = |name: &str| {
        format!(
            "func.func @main(%c: !tfrt.chain, %x: !corert.tensorhandle) -> !corert.tensorhandle {{
               %cpu = corert.get_op_handler %c \"cpu\"
               %y = corert.executeop(%cpu) \"{name}\"(%x) : 1
               tfrt.return %y : !corert.tensorhandle
             }}"
        )
    };
    folder.write("known.mlir", text("tf.Relu"));
    assert_eq!(folder.printed("check known.mlir"), "known.mlir: ok\n");
    folder.write("unknown.mlir", text("tf.Reluu"));
    let (status, stdout, stderr) = folder.run("check unknown.mlir");
    assert_eq!((status, stdout.as_str()), (1, "unknown.mlir: rejected\n"));
    let message = "calls 'tf.Reluu', which neither tfrt nor a plugin has [TF1409]";
    assert!(stderr.contains(message), "{stderr}");
    folder.write("effects.mlir", text("tf.ReadVariableOp"));
    let (status, stdout, stderr) = folder.run("check effects.mlir");
    assert_eq!((status, stdout.as_str()), (1, "effects.mlir: rejected\n"));
    let message = "calls 'tf.ReadVariableOp', which has side effects, without a chain [TF1410]";
    assert!(stderr.contains(message), "{stderr}");
    let program = "func.func @main() -> !corert.tensorhandle {
        %c = tfrt.new.chain
        %cpu = corert.get_op_handler %c \"cpu\"
        %x = corert.const_dense_tensor dense<1.0> : tensor<1xf32>
        %y = corert.executeop(%cpu) \"tf.ReadVariableOp\"(%x) : 1
        tfrt.return %y : !corert.tensorhandle
      }";
    folder.write("effects.mlir", program);
    let (_, _, stderr) = folder.run("run effects.mlir");
    assert!(stderr.contains("the call needs a chain"), "{stderr}");
    // Other names may be those of handlers and plugins.
    folder.write("own.mlir", text("my.op"));
    assert_eq!(folder.printed("check own.mlir"), "own.mlir: ok\n");
}
