//! `tfrt check` on models: all that keeps them from running, and what they are warned of.

use serde_json::Value as Json;

use super::command::Folder;
use super::wire::{self, node};

#[test]
fn operations_that_are_missing_are_listed_all_at_once() {
    let folder = Folder::new("check");
    let nodes = [
        node("Frobnicate", "my.domain", &["x", "y"], "a", "first"),
        node("Frobnicate", "my.domain", &["a", "y"], "b", "second"),
        node("Swirl", "my.domain", &["b"], "c", ""),
        node("Relu", "", &["c"], "sum", "last"),
    ];
    folder.write("bad.onnx", wire::model(&nodes));
    let (status, stdout, stderr) = folder.run("check bad.onnx");
    assert_eq!((status, stdout.as_str()), (1, "bad.onnx: rejected\n"));
    assert!(
        stderr.contains("my.domain.Frobnicate (operator set 1): 2 nodes: first, second"),
        "{stderr}"
    );
    assert!(stderr.contains("my.domain.Swirl"), "{stderr}");
    assert!(
        stderr.contains("'my.domain' is not one of ONNX's domains"),
        "{stderr}"
    );
    let (status, stdout, _) = folder.run("check --json bad.onnx two.onnx");
    assert_eq!(status, 1);
    let document: Json = serde_json::from_str(&stdout).unwrap();
    assert_eq!(document["files"][0]["missing"][0]["count"], 2);
    assert_eq!(document["files"][1]["ok"], true);
    // To run it fails with the same operations, and so does to compile it, which leaves no file.
    for command in ["run bad.onnx --random", "compile bad.onnx"] {
        let said = folder.refused(command, 1);
        assert!(
            said.contains("Frobnicate") && said.contains("Swirl"),
            "{said}"
        );
    }
    assert!(!folder.names().iter().any(|name| name.ends_with(".bef")));
}

#[test]
fn modules_of_stablehlo_are_checked_by_what_replaces_their_operations() {
    let folder = Folder::new("stablehlo");
    let text = |name: &str| {
        format!(
            "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{\n  %y = stablehlo.add %x, %x : tensor<2xf32>\n  \
             %z = \"stablehlo.{name}\"(%y) : (tensor<2xf32>) -> tensor<2xf32>\n  return %z : tensor<2xf32>\n}}\n"
        )
    };
    folder.write("good.mlir", text("tanh"));
    folder.write("bad.mlir", text("all_reduce"));
    let (status, stdout, stderr) = folder.run("check good.mlir bad.mlir");
    assert_eq!(
        (status, stdout.as_str()),
        (1, "good.mlir: ok\nbad.mlir: rejected\n")
    );
    assert!(
        stderr.contains("bad.mlir:3:8") && stderr.contains("'stablehlo.all_reduce'"),
        "{stderr}"
    );
    assert!(!stderr.contains("add"), "{stderr}");
}

#[test]
fn operations_that_are_misspelt_are_told_the_nearest_name() {
    let folder = Folder::new("misspelt");
    for (name, nearest) in [
        ("graph.sofmax", "an operation 'graph.softmax'"),
        ("tf.Conv2d", "an operation 'tf.Conv2D'"),
        ("tfrt.ad.i32", "a kernel 'tfrt.add.i32'"),
    ] {
        let (status, _, stderr) = folder.run(&format!("kernels {name}"));
        let expected = format!(
            "tfrt: error: no kernel or operation has a name like '{name}'\nhelp: there is {nearest}\n"
        );
        assert_eq!((status, stderr), (1, expected));
    }
}

/// A size below 0 is one that is not known, as ONNX Runtime has it.
#[test]
fn sizes_below_0_are_warned_of() {
    let folder = Folder::new("below");
    let dims = [wire::bytes(
        1,
        [
            0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
        ],
    )];
    let tensor = [wire::number(1, 1), wire::bytes(2, dims.concat())].concat();
    let x = [wire::bytes(1, "x"), wire::bytes(2, wire::bytes(1, &tensor))].concat();
    let y = [wire::bytes(1, "y"), wire::bytes(2, wire::bytes(1, &tensor))].concat();
    let relu = node("Relu", "", &["x"], "y", "only");
    let graph = [
        wire::bytes(1, relu),
        wire::bytes(2, "g"),
        wire::bytes(11, x),
        wire::bytes(12, y),
    ];
    let opset = wire::bytes(8, wire::number(2, 17));
    folder.write(
        "below.onnx",
        [wire::number(1, 8), wire::bytes(7, graph.concat()), opset].concat(),
    );
    let (status, stdout, stderr) = folder.run("check below.onnx");
    let warning = "below.onnx: warning: input 'x': has the size -1 in dimension 0: it is taken for one that is not \
                   known [TF1010]\nhelp: a size that is not known has a name, or nothing\n";
    assert_eq!(
        (status, stdout.as_str(), stderr.as_str()),
        (0, "below.onnx: ok\n", warning)
    );
    folder.write("x.json", "[1, -2, 3]");
    let (status, stdout, _) = folder.run("run below.onnx --input x=x.json");
    assert_eq!((status, stdout.as_str()), (0, "y: f32 [3] = [1, 0, 3]\n"));
}

/// Two rows are no columns: the node is named wherever the model is compiled, and the kernel decides.
#[test]
fn operations_that_fail_with_any_input_are_refused_by_a_check_and_warned_of_elsewhere() {
    let folder = Folder::new("warned");
    let nodes = [
        node("MatMul", "", &["x", "y"], "a", "product"),
        node("Relu", "", &["a"], "sum", "last"),
    ];
    folder.write("wrong.onnx", wire::model(&nodes));
    let warning = "wrong.onnx: warning: node 'product': 'graph.dot' op fails with any input: expected as many columns \
                   as rows, found 3 and 2 [TF0517]\n";
    let (status, stdout, stderr) = folder.run("check wrong.onnx --dim N=2");
    assert_eq!((status, stdout.as_str()), (1, "wrong.onnx: rejected\n"));
    assert_eq!(stderr, warning.replacen("warning", "error", 1));
    let (status, _, stderr) = folder.run("compile wrong.onnx --dim N=2 -o wrong.bef");
    assert_eq!((status, stderr.as_str()), (0, warning));
    let (status, _, stderr) = folder.run("run wrong.onnx --dim N=2 --random");
    assert_eq!(status, 3, "{stderr}");
    assert!(stderr.starts_with(warning), "{stderr}");
    assert!(stderr.contains("inner dimension mismatch"), "{stderr}");
    let (_, stdout, _) = folder.run("check wrong.onnx --dim N=2 --json");
    let document: Json = serde_json::from_str(&stdout).unwrap();
    let file = &document["files"][0];
    assert_eq!(file["ok"], false);
    assert_eq!(file["problems"][0]["severity"], "error");
    assert_eq!(file["problems"][0]["code"], "TF0517");
    // What nothing uses is removed.
    let unused = [
        node("MatMul", "", &["x", "y"], "a", "product"),
        node("Relu", "", &["a"], "b", "last"),
        node("Add", "", &["x", "y"], "sum", "added"),
    ];
    folder.write("unused.onnx", wire::model(&unused));
    let verdict = folder.printed("check unused.onnx --dim N=2");
    assert_eq!(verdict, "unused.onnx: ok\n");
    // Other extents fit, and a branch may never be taken.
    let verdict = "wrong.onnx: ok, but for sizes that calls give (N): to check one, --dim N=SIZE\n";
    assert_eq!(folder.printed("check wrong.onnx"), verdict);
    let branch = r#"func.func @main(%c: tensor<i1>, %x: tensor<2x3xf32>) -> tensor<2x3xf32> attributes {
        model.input_names = ["c", "x"], model.output_names = ["y"]} {
      %y = "graph.if"(%c) ({
        %p = "graph.dot"(%x, %x) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<*xf32>
        "graph.yield"(%p) : (tensor<*xf32>) -> ()
      }, {
        "graph.yield"(%x) : (tensor<2x3xf32>) -> ()
      }) : (tensor<i1>) -> tensor<2x3xf32>
      func.return %y : tensor<2x3xf32>
    }"#;
    folder.write("branch.mlir", branch);
    assert_eq!(folder.printed("check branch.mlir"), "branch.mlir: ok\n");
}

/// Constants are made when a model is opened, before any call: a check makes them, too, of text and of compiled models.
#[test]
fn a_check_makes_the_constants_of_a_model() {
    let folder = Folder::new("check_constants");
    let model = r#"func.func @main(%x: tensor<2x3xf32>) -> tensor<*xf32> attributes {
        model.input_names = ["x"], model.output_names = ["y"]} {
      %w = "onnx.Constant"() {value = dense<3> : tensor<3x5xi8>} : () -> tensor<3x5xi8>
      %s = "onnx.Constant"() {value = dense<0.5> : tensor<4xf32>} : () -> tensor<4xf32>
      %d = "onnx.DequantizeLinear"(%w, %s) {axis = 1 : i64} : (tensor<3x5xi8>, tensor<4xf32>) -> tensor<3x5xf32>
      %y = "onnx.MatMul"(%x, %d) : (tensor<2x3xf32>, tensor<3x5xf32>) -> tensor<*xf32>
      func.return %y : tensor<*xf32>
    }"#;
    folder.write("scales.mlir", model);
    let reason = "the constants of the model can't be made: dequantize: scales of shape [4]";
    let (status, stdout, stderr) = folder.run("check scales.mlir");
    assert_eq!((status, stdout.as_str()), (1, "scales.mlir: rejected\n"));
    assert!(stderr.contains(reason), "{stderr}");
    if folder.run("compile scales.mlir -o scales.bef").0 == 0 {
        let (status, stdout, stderr) = folder.run("check scales.bef");
        assert_eq!((status, stdout.as_str()), (1, "scales.bef: rejected\n"));
        assert!(stderr.contains(reason), "{stderr}");
    }
    folder.write("fit.mlir", model.replace("tensor<4xf32>", "tensor<5xf32>"));
    assert_eq!(folder.printed("check fit.mlir"), "fit.mlir: ok\n");
}

#[test]
fn all_that_is_wrong_with_a_model_is_listed_at_once() {
    let folder = Folder::new("check_all");
    let nodes = [
        node("Frobnicate", "my.domain", &["x", "y"], "a", "first"),
        node("Rleu", "", &["a"], "b", "second"),
        node("Rleu", "", &["b"], "c", "third"),
        node("Add", "", &["c", "nothing"], "d", "fourth"),
        node("Relu", "", &["d"], "sum", "last"),
    ];
    folder.write("bad.onnx", wire::model(&nodes));
    let (status, stdout, stderr) = folder.run("check bad.onnx");
    assert_eq!((status, stdout.as_str()), (1, "bad.onnx: rejected\n"));
    for wanted in [
        "my.domain.Frobnicate (operator set 1): 1 node: first",
        "(tensor<",
        "Rleu (operator set 17): 2 nodes: second, third",
        "there is 'Relu'",
        "node 'fourth' (Add): takes the value 'nothing', which nothing makes",
    ] {
        assert!(stderr.contains(wanted), "{wanted}:\n{stderr}");
    }
    let (status, stdout, _) = folder.run("check --json bad.onnx");
    assert_eq!(status, 1);
    let document: Json = serde_json::from_str(&stdout).unwrap();
    let file = &document["files"][0];
    assert_eq!(file["missing"].as_array().map(Vec::len), Some(2));
    assert_eq!(file["problems"].as_array().map(Vec::len), Some(1));
}

/// Scales, zero points and filters that fit no input are told before there is one.
#[test]
fn quantised_and_convolved_operands_that_never_fit_are_refused() {
    let folder = Folder::new("check_operands");
    let inputs = [
        ("%x", "tensor<?x3x5x5xf32>"),
        ("%q", "tensor<?x3x5x5xi8>"),
        ("%w", "tensor<4x2x3x3xf32>"),
        ("%long", "tensor<4x3x9x1xf32>"),
        ("%s", "tensor<2xf32>"),
        ("%z", "tensor<3xi8>"),
        ("%f", "tensor<f32>"),
        ("%one", "tensor<i8>"),
        ("%none", "tensor<0xi8>"),
        ("%filters", "tensor<4x3x3x3xi8>"),
        ("%m", "tensor<2x5xi8>"),
        ("%n", "tensor<5x4xi8>"),
        ("%blocks", "tensor<1x3x5x3xf32>"),
    ];
    let rows: &[(&str, &[&str], &str, &str)] = &[
        (
            "Conv",
            &["%x", "%w"],
            "",
            "expected filters for 3 channels, found some for 2 in 1 groups",
        ),
        (
            "Conv",
            &["%x", "%long"],
            "",
            "expected a window within an input of 5 with 0 and 0 around it, found one over 9",
        ),
        (
            "MaxPool",
            &["%x"],
            "{kernel_shape = [3 : i64, 8 : i64], pads = [0 : i64, 1 : i64, 0 : i64, 1 : i64]}",
            "expected a window within an input of 5 with 1 and 1 around it, found one over 8",
        ),
        (
            "GlobalMaxPool",
            &["%q"],
            "",
            "expected floating-point numbers, found i8",
        ),
        (
            "InstanceNormalization",
            &["%x", "%z", "%z"],
            "",
            "operand 1: expected a tensor of f32, found one of i8",
        ),
        (
            "ConvTranspose",
            &["%x", "%w"],
            "",
            "expected filters for 3 channels, found some for 4 in 1 groups",
        ),
        (
            "QuantizeLinear",
            &["%x", "%s"],
            "",
            "expected 3 scales, one for each index along dimension 1, found 2",
        ),
        (
            "QuantizeLinear",
            &["%x", "%s", "%z"],
            "",
            "expected as many zero points as scales, found 3 and 2",
        ),
        (
            "DequantizeLinear",
            &["%q", "%s"],
            "{axis = 4 : i64}",
            "expected an axis of 4 dimensions, found 4",
        ),
        (
            "QuantizeLinear",
            &["%x", "%s"],
            "{block_size = 2 : i64}",
            "expected scales of 4 dimensions for blocks of 2, found 1",
        ),
        (
            "DequantizeLinear",
            &["%q", "%blocks"],
            "{axis = 3 : i64, block_size = 3 : i64}",
            "expected 2 scales along dimension 3, the blocks of 3 in 5, found 3",
        ),
        (
            "MatMulInteger",
            &["%m", "%n", "%z"],
            "",
            "operand 2 (a_zero_point): expected one number or 2, one for each row, found 3",
        ),
        (
            "MatMulInteger",
            &["%m", "%n", "%one", "%none"],
            "",
            "operand 3 (b_zero_point): expected one number or 4, one for each column, found 0",
        ),
        (
            "ConvInteger",
            &["%q", "%filters", "%z"],
            "",
            "operand 2 (x_zero_point): expected one number, found 3",
        ),
        (
            "ConvInteger",
            &["%q", "%filters", "%one", "%z"],
            "",
            "operand 3 (w_zero_point): expected one number or 4, one for each filter, found 3",
        ),
        (
            "QLinearMatMul",
            &["%m", "%f", "%one", "%n", "%s", "%one", "%f", "%one"],
            "",
            "operand 4 (b_scale): expected one number or 4, one for each column, found 2",
        ),
        (
            "QLinearConv",
            &["%q", "%s", "%one", "%filters", "%f", "%one", "%f", "%one"],
            "",
            "operand 1 (x_scale): expected one number, found 2",
        ),
    ];
    for (operation, operands, attributes, reason) in rows {
        folder.write(
            "model.mlir",
            one_operation(&inputs, operation, operands, attributes),
        );
        let (status, stdout, stderr) = folder.run("check model.mlir");
        assert_eq!(
            (status, stdout.as_str()),
            (1, "model.mlir: rejected\n"),
            "{stderr}"
        );
        let first = stderr.lines().next().unwrap_or_default();
        let wanted = format!("op fails with any input: {reason} [TF0517]");
        assert!(first.ends_with(&wanted), "{wanted}:\n{stderr}");
    }
    // Blocks that fit, the last of which is shorter.
    let fits = one_operation(
        &inputs,
        "DequantizeLinear",
        &["%q", "%blocks"],
        "{axis = 3 : i64, block_size = 2 : i64}",
    );
    folder.write("fits.mlir", fits);
    assert_eq!(folder.printed("check fits.mlir"), "fits.mlir: ok\n");
    // The kernel refuses what has no number, too.
    let empty = one_operation(&inputs, "MatMulInteger", &["%m", "%n", "%one", "%none"], "");
    folder.write("empty.mlir", empty);
    let (status, _, stderr) = folder.run("run empty.mlir --random");
    assert_eq!(status, 3, "{stderr}");
    assert!(
        stderr.contains("operand 3 is expected to have a number, found none"),
        "{stderr}"
    );
}

/// Returns the text of a model of one operation on some of its inputs, names with types.
fn one_operation(
    inputs: &[(&str, &str)],
    operation: &str,
    operands: &[&str],
    attributes: &str,
) -> String {
    let type_of = |operand: &&str| inputs.iter().find(|(name, _)| name == operand).unwrap().1;
    let types: Vec<&str> = operands.iter().map(type_of).collect();
    let (stated, names): (Vec<String>, Vec<String>) = inputs
        .iter()
        .map(|(name, ty)| (format!("{name}: {ty}"), format!("{:?}", &name[1..])))
        .unzip();
    format!(
        "func.func @main({}) -> tensor<*xf32> attributes {{model.input_names = [{}], model.output_names = [\"y\"]}} {{
           %y = \"onnx.{operation}\"({}) {attributes} : ({}) -> tensor<*xf32>
           func.return %y : tensor<*xf32>
         }}",
        stated.join(", "),
        names.join(", "),
        operands.join(", "),
        types.join(", "),
    )
}

/// An operand of a type that ONNX does not give it is told by node, place and types, wherever the operation stands.
#[test]
fn operands_whose_types_do_not_go_together_are_refused() {
    let folder = Folder::new("check_types");
    let inputs = [
        ("%x", "tensor<1x3x5x5xf32>"),
        ("%d", "tensor<1x3x5x5xf64>"),
        ("%q", "tensor<1x3x5x5xui8>"),
        ("%w", "tensor<4x3x3x3xi8>"),
        ("%m", "tensor<5x5xi8>"),
        ("%s", "tensor<f32>"),
        ("%zu", "tensor<ui8>"),
        ("%zi", "tensor<i8>"),
        ("%b", "tensor<4xf32>"),
    ];
    let rows: &[(&str, &[&str], &str)] = &[
        (
            "MatMul",
            &["%x", "%d"],
            "operand #1 must be a tensor of f32, as operand #0 is, but got 'tensor<1x3x5x5xf64>'",
        ),
        (
            "Add",
            &["%d", "%x"],
            "operand #1 must be a tensor of f64, as operand #0 is, but got 'tensor<1x3x5x5xf32>'",
        ),
        (
            "MatMulInteger",
            &["%q", "%m", "%zu", "%zu"],
            "operand #3 must be a tensor of i8, as operand #1 is, but got 'tensor<ui8>'",
        ),
        (
            "ConvInteger",
            &["%q", "%w", "%zi"],
            "operand #2 must be a tensor of ui8, as operand #0 is, but got 'tensor<i8>'",
        ),
        (
            "QLinearConv",
            &["%q", "%s", "%zu", "%w", "%s", "%zi", "%s", "%zu", "%b"],
            "operand #8 must be a tensor of i32, but got 'tensor<4xf32>'",
        ),
        (
            "QLinearMatMul",
            &["%q", "%s", "%zu", "%m", "%s", "%zu", "%s", "%zu"],
            "operand #5 must be a tensor of i8, as operand #3 is, but got 'tensor<ui8>'",
        ),
    ];
    let of_families: &[(&str, &[&str], &str)] = &[
        (
            "Sigmoid",
            &["%q"],
            "operand #0 must be a tensor of floating-point numbers, but got 'tensor<1x3x5x5xui8>'",
        ),
        (
            "Softmax",
            &["%m"],
            "operand #0 must be a tensor of floating-point numbers, but got 'tensor<5x5xi8>'",
        ),
        (
            "CumSum",
            &["%x", "%zi"],
            "operand #1 must be a tensor of i32 or i64, but got 'tensor<i8>'",
        ),
    ];
    for (operation, operands, reason) in rows.iter().chain(of_families) {
        let text = one_operation(&inputs, operation, operands, "");
        folder.write("model.mlir", &text);
        let (status, _, said) = folder.run("check model.mlir");
        assert_eq!(status, 1, "{operation}");
        assert!(said.contains(&format!("op {reason} [TF0520]")), "{said}");
        assert!(said.contains("help: it is "), "{said}");
        let compiled = folder.refused("compile model.mlir", 1);
        assert!(compiled.contains("[TF0520]"), "{compiled}");
    }
    // A node of a file is told by its name, an operation in a branch as others are.
    let nodes = [
        node("Shape", "", &["x"], "s", "extents"),
        node("Add", "", &["x", "s"], "sum", "mixed"),
    ];
    folder.write("nodes.onnx", wire::model(&nodes));
    let said = folder.refused("compile nodes.onnx", 1);
    let wanted = "node 'mixed': 'graph.add' op operand #1 must be a tensor of f32, as operand #0 is, but got";
    assert!(said.contains(wanted), "{said}");
    let branch = r#"func.func @main(%c: tensor<i1>, %x: tensor<2xi8>, %z: tensor<ui8>) -> tensor<*xi32> attributes {
        model.input_names = ["c", "x", "z"], model.output_names = ["y"]} {
      %y = "graph.if"(%c) ({
        %p = "onnx.MatMulInteger"(%x, %x, %z) : (tensor<2xi8>, tensor<2xi8>, tensor<ui8>) -> tensor<*xi32>
        "graph.yield"(%p) : (tensor<*xi32>) -> ()
      }, {
        %p = "onnx.MatMulInteger"(%x, %x) : (tensor<2xi8>, tensor<2xi8>) -> tensor<*xi32>
        "graph.yield"(%p) : (tensor<*xi32>) -> ()
      }) : (tensor<i1>) -> tensor<*xi32>
      func.return %y : tensor<*xi32>
    }"#;
    folder.write("branch.mlir", branch);
    let said = folder.refused("compile branch.mlir", 1);
    assert!(said.contains("[TF0520]"), "{said}");
}
