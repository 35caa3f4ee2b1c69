//! Models that are opened with options: dimensions with a size, graphs that are not optimized; by library and by command.

use serde_json::Value as Json;
use tfrt::compiler::{CompileOptions, decompile};
use tfrt::input::Input;
use tfrt::ir::Source;
use tfrt::{Model, OpenError, OpenOptions, Runtime, Tensor, Untrusted};

use super::TWO;
use super::command::Folder;
use super::wire::{self, node};

/// The elements of `x`, in the shape that a product has, and the number of rows of that.
const RESHAPED: &str = r#"module attributes {onnx.opset = 17 : i64} {
  func.func @main(%x: tensor<?x?x3xf32>) -> (tensor<?x3xf32>, tensor<1xi64>)
      attributes {model.input_names = ["x"], model.output_names = ["y", "n"], model.input_dims = [["N", "S", 3 : i64]],
                  model.output_dims = [["rows", 3 : i64], [1 : i64]]} {
    %three = "onnx.Constant"() {value = dense<[-1, 3]> : tensor<2xi64>} : () -> tensor<2xi64>
    %y = "onnx.Reshape"(%x, %three) : (tensor<?x?x3xf32>, tensor<2xi64>) -> tensor<?x3xf32>
    %n = "onnx.Shape"(%y) {end = 1 : i64} : (tensor<?x3xf32>) -> tensor<1xi64>
    func.return %y, %n : tensor<?x3xf32>, tensor<1xi64>
  }
}
"#;

fn text(text: &str) -> Input {
    Input::Text(Source::new("model.mlir", text))
}

/// Returns the model `sum = relu(x + y)` in each form that a file may have: text, ONNX, bytes, text of these bytes.
fn forms() -> [Input; 4] {
    let nodes = [
        node("Add", "", &["x", "y"], "a", "first"),
        node("Relu", "", &["a"], "sum", "last"),
    ];
    let onnx = Input::from_bytes("two.onnx", wire::model(&nodes)).unwrap();
    let bytes = onnx.compile(&CompileOptions::default()).unwrap();
    let compiled = Input::from_bytes("two.bef", bytes.as_bytes().to_vec()).unwrap();
    let restored = decompile(&compiled.open().unwrap()).unwrap().module;
    [text(TWO), onnx, compiled, text(&restored.to_string())]
}

fn rows(n: usize) -> Tensor {
    Tensor::from_vec(&[n, 3], vec![1.0_f32; 3 * n]).unwrap()
}

/// Returns the program that a model has become.
fn program(model: &Model) -> String {
    let file = model.program().as_host_program().file();
    decompile(file).unwrap().module.to_string()
}

#[test]
fn dimensions_are_fixed_in_every_form_of_a_model() {
    let options = OpenOptions::new().dim("N", 2);
    let runtimes = [
        Runtime::new(),
        Runtime::builder().untrusted(Untrusted::default()).build(),
    ];
    for (runtime, input) in runtimes
        .iter()
        .flat_map(|runtime| forms().map(|input| (runtime, input)))
    {
        let model = runtime.load_model_with(&input, &options).unwrap();
        assert_eq!(model.inputs()[0].to_string(), "x: f32 [2, 3]");
        assert_eq!(model.outputs()[0].to_string(), "sum: f32 [2, 3]");
        let call = |n| model.call(&runtime.context(), (rows(n), rows(n))).wait();
        let outputs = call(2).unwrap();
        assert_eq!(outputs.tensor("sum").unwrap().shape().to_string(), "[2, 3]");
        assert_eq!(
            call(3).unwrap_err().message(),
            "input 'x' was expected to be f32 [2, 3], found f32 [3, 3]"
        );
        // Without the option any number will do.
        let open = runtime.load_model(&input).unwrap();
        assert_eq!(open.inputs()[0].to_string(), "x: f32 [N, 3]");
    }
}

#[test]
fn extents_that_follow_from_fixed_dimensions_are_known() {
    let runtime = Runtime::new();
    let open = runtime.load_model(&text(RESHAPED)).unwrap();
    assert_eq!(open.outputs()[0].to_string(), "y: f32 [rows, 3]");
    let options = OpenOptions::new().dim("N", 2);
    let half = runtime.load_model_with(&text(RESHAPED), &options).unwrap();
    assert_eq!(half.inputs()[0].to_string(), "x: f32 [2, S, 3]");
    assert_eq!(half.outputs()[0].to_string(), "y: f32 [rows, 3]");
    assert!(program(&half).contains("cpu.graph.shape"));
    let options = options.dim("S", 5);
    let fixed = runtime.load_model_with(&text(RESHAPED), &options).unwrap();
    assert_eq!(fixed.outputs()[0].to_string(), "y: f32 [10, 3]");
    assert!(!program(&fixed).contains("cpu.graph.shape"));
    let x = Tensor::from_vec(&[2, 5, 3], vec![0.0_f32; 30]).unwrap();
    for model in [open, half, fixed] {
        let outputs = model.call(&runtime.context(), (x.clone(),)).wait().unwrap();
        let n = outputs.tensor("n").unwrap().to_vec::<i64>().unwrap();
        assert_eq!(n, [10]);
    }
}

#[test]
fn graphs_that_are_not_optimized_have_a_kernel_for_each_node() {
    let runtime = Runtime::new();
    let plain = OpenOptions::new().optimize(false).dim("N", 2);
    let plain = runtime.load_model_with(&text(TWO), &plain).unwrap();
    let shown = program(&plain);
    assert_eq!(shown.matches("cpu.graph.add").count(), 2, "{shown}");
    assert_eq!(shown.matches("cpu.graph.relu").count(), 1, "{shown}");
    assert_eq!(plain.inputs()[0].to_string(), "x: f32 [2, 3]");
    let fast = runtime.load_model(&text(TWO)).unwrap();
    assert!(!program(&fast).contains("cpu.graph.relu"));
    let sums = [plain, fast].map(|model| {
        let outputs = model.call(&runtime.context(), (rows(2), rows(2))).wait();
        let sum = outputs.unwrap().tensor("positive").unwrap().to_vec::<f32>();
        sum.unwrap()
    });
    assert_eq!(sums[0], sums[1]);
}

#[test]
fn dimensions_that_a_model_cannot_have_are_refused() {
    let runtime = Runtime::new();
    let refused = |input: &Input, options: &OpenOptions| {
        let error = runtime.load_model_with(input, options);
        match error.unwrap_err() {
            OpenError::Dimension(message) => message,
            other => panic!("{other}"),
        }
    };
    let dim = |name: &str, size| OpenOptions::new().dim(name, size);
    for input in forms() {
        for (options, expected) in [
            (dim("M", 1), "no input has a dimension 'M': the model has N"),
            (
                dim("", 1).dim("N", 1),
                "no input has a dimension '': the model has N",
            ),
            (
                dim("N", 0),
                "dimension 'N' can't be fixed to 0: expected a number from 1 to 9223372036854775807",
            ),
            (
                dim("N", usize::MAX),
                "dimension 'N' can't be fixed to 18446744073709551615: expected a number from 1 to \
                 9223372036854775807",
            ),
            (dim("N", 1).dim("N", 2), "dimension 'N' is given twice"),
        ] {
            assert_eq!(refused(&input, &options), expected);
        }
    }
    for (model, options, expected) in [
        (
            // A name that is close.
            RESHAPED.replace("\"N\"", "\"batch\""),
            dim("bacth", 2),
            "no input has a dimension 'bacth': the model has batch, S; did you mean 'batch'?",
        ),
        (
            // A type that says more than the names.
            RESHAPED.replace("?x?x3", "?x7x3"),
            dim("S", 2),
            "dimension 'S' can't be fixed to 2: it is 7 in input 'x'",
        ),
        (
            // Outputs follow from inputs.
            RESHAPED.replace("[\"N\", \"S\", 3 : i64]", "[\"\", \"\", 3 : i64]"),
            dim("rows", 2),
            "no input has a dimension 'rows': the sizes of all its inputs are fixed, or have no names",
        ),
        (
            "func.func @main() {\n  tfrt.return\n}\n".to_owned(),
            dim("N", 2),
            "dimension 'N' can't be fixed to 2: the program is no model",
        ),
    ] {
        assert_eq!(refused(&text(&model), &options), expected);
    }
}

#[test]
fn the_command_fixes_dimensions_where_it_reads_models() {
    let folder = Folder::new("dims");
    folder.write("four.json", "[[1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 2, 3]]");
    folder.printed("compile two.onnx --dim N=4 -o four.bef");
    folder.printed("compile two.onnx -o any.bef");
    let shape = |line: &str| {
        let shown = folder.printed(line);
        let document: Json = serde_json::from_str(&shown).unwrap();
        document["outputs"][0]["shape"].to_string()
    };
    for file in ["two.onnx", "two.mlir", "any.bef"] {
        assert_eq!(
            shape(&format!("run {file} --random --json --dim N=4")),
            "[4,3]"
        );
        let line = format!("run {file} --input x=four.json --random --dim N=2");
        let said = folder.refused(&line, 1);
        let expected = "input 'x' was expected to be f32 [2, 3], found f32 [4, 3]";
        assert!(said.contains(expected), "{said}");
        folder.printed(&format!("bench {file} --dim N=4 --runs 2 --warm-up 1ms"));
        let shown = folder.printed(&format!("inspect memory {file} --dim N=4"));
        assert!(shown.contains("x: f32 [4, 3]"), "{shown}");
        assert_eq!(
            folder.printed(&format!("check {file} --dim N=4")),
            format!("{file}: ok\n")
        );
        for command in ["run", "bench", "inspect memory"] {
            let said = folder.refused(&format!("{command} {file} --dim M=4"), 2);
            let expected = "error: no input has a dimension 'M': the model has N";
            assert!(said.contains(expected), "{said}");
            let said = folder.refused(&format!("{command} {file} --dim N=0"), 2);
            assert!(said.contains("can't be fixed to 0"), "{said}");
            let said = folder.refused(&format!("{command} {file} --dim N=-1"), 2);
            assert!(said.contains("expected NAME=N, such as batch=4"), "{said}");
        }
        let (status, stdout, stderr) = folder.run(&format!("check {file} --dim M=4"));
        assert_eq!((status, stdout), (1, format!("{file}: rejected\n")));
        assert!(stderr.contains("no input has a dimension 'M'"), "{stderr}");
    }
    // The file that was compiled for it has nothing left to fix.
    assert_eq!(shape("run four.bef --random --json"), "[4,3]");
    let said = folder.refused("run four.bef --random --dim N=4", 2);
    assert!(
        said.contains("the sizes of all its inputs are fixed"),
        "{said}"
    );
    let said = folder.refused("compile two.onnx --dim M=4", 2);
    assert!(said.contains("no input has a dimension 'M'"), "{said}");
    let shown = folder.printed("inspect graph two.onnx --dim N=4");
    assert!(shown.contains("tensor<4x3xf32>"), "{shown}");
    folder.write("program.mlir", "func.func @main() {\n  tfrt.return\n}\n");
    let said = folder.refused("run program.mlir --dim N=4", 2);
    assert!(said.contains("the program is no model"), "{said}");
}

#[test]
fn the_command_leaves_graphs_as_they_are_if_told_to() {
    let folder = Folder::new("plain");
    let runs = ["", " --no-optimize"].map(|flag| {
        folder.printed(&format!("compile two.onnx -o two.bef{flag}"));
        let shown = folder.printed("decompile two.bef --no-locations");
        let output = folder.printed(&format!("run two.onnx --random --seed 3{flag}"));
        folder.printed(&format!("bench two.onnx --runs 2 --warm-up 1ms{flag}"));
        (shown.contains("cpu.graph.relu"), output)
    });
    assert_eq!(runs.clone().map(|(is_there, _)| is_there), [false, true]);
    assert_eq!(runs[0].1, runs[1].1);
    for command in ["run", "bench"] {
        let said = folder.refused(&format!("{command} two.bef --random --no-optimize"), 2);
        let expected = "--no-optimize is for models that are compiled now, but 'two.bef' was";
        assert!(said.contains(expected), "{said}");
    }
}
