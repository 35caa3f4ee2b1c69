//! Operations whose constants are prepared when a model is opened, or compiled.

use tfrt::bef::BefFile;
use tfrt::compiler::CompileOptions;
use tfrt::input::Input;
use tfrt::ir::Source;
use tfrt::tensor::math::packed_gemm::InstructionSet;
use tfrt::{Model, OpenOptions, Program, Runtime, Tensor};

/// Numbers that are anything, within 1/2 of 0.
struct Numbers(u32);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(self.0 >> 20) / 4096.0 - 0.5
    }

    fn list(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.next()).collect()
    }
}

/// Returns a constant of a type of floats, as a line of text.
fn constant(name: &str, shape: &[usize], ty: &str, list: &[f64]) -> String {
    let bytes = |x: &f64| match ty {
        "f32" => (*x as f32).to_le_bytes().to_vec(),
        _ => x.to_le_bytes().to_vec(),
    };
    let hex = list
        .iter()
        .flat_map(bytes)
        .map(|byte| format!("{byte:02X}"));
    let hex: String = hex.collect();
    let ty = tensor(shape, ty);
    format!("%{name} = \"onnx.Constant\"() {{value = dense<\"0x{hex}\"> : {ty}}} : () -> {ty}\n")
}

fn tensor(shape: &[usize], ty: &str) -> String {
    let shape: String = shape.iter().map(|extent| format!("{extent}x")).collect();
    format!("tensor<{shape}{ty}>")
}

/// Extents, and elements.
type Weights = (Vec<usize>, Vec<f64>);

/// A recurrent layer.
struct Layer {
    kind: &'static str,
    attributes: &'static str,
    n_directions: usize,
    /// Whether sequences have lengths of their own, and gates peepholes and biases.
    is_full: bool,
}

const INPUTS: usize = 5;
const HIDDEN: usize = 19;
const LENGTH: usize = 7;
const BATCH: usize = 3;

impl Layer {
    fn n_gates(&self) -> usize {
        match self.kind {
            "rnn" => 1,
            "gru" => 3,
            _ => 4,
        }
    }

    /// Returns the text of a model whose weights are constants, or inputs.
    fn text(&self, ty: &str, has_constants: bool) -> (String, Vec<Weights>) {
        let mut numbers = Numbers(7);
        let (d, rows) = (self.n_directions, self.n_gates() * HIDDEN);
        let mut shapes = vec![
            ("w", vec![d, rows, INPUTS]),
            ("r", vec![d, rows, HIDDEN]),
            ("b", vec![d, 2 * rows]),
            ("p", vec![d, 3 * HIDDEN]),
        ];
        if !self.is_full {
            shapes.truncate(2);
        }
        if self.kind != "lstm" {
            shapes.truncate(3);
        }
        let x = tensor(&[LENGTH, BATCH, INPUTS], ty);
        let (mut arguments, mut lines, mut inputs) =
            (format!("%x: {x}"), String::new(), Vec::new());
        let mut names = vec!["\"x\"".to_owned()];
        for (name, shape) in &shapes {
            let list = numbers.list(shape.iter().product());
            match has_constants {
                true => lines += &constant(name, shape, ty, &list),
                false => {
                    arguments += &format!(", %{name}: {}", tensor(shape, ty));
                    names.push(format!("\"{name}\""));
                    inputs.push((shape.clone(), list));
                }
            }
        }
        lines += "%none = \"graph.none\"() : () -> none\n";
        let state = tensor(&[d, BATCH, HIDDEN], ty);
        let has = |name: &str| shapes.iter().any(|(own, _)| *own == name);
        let operand = |name: &str, shape: &[usize]| match has(name) {
            true => (format!("%{name}"), tensor(shape, ty)),
            false => ("%none".to_owned(), "none".to_owned()),
        };
        lines += "%lens = \"onnx.Constant\"() {value = dense<[7, 2, 5]> : tensor<3xi32>} : () -> tensor<3xi32>\n";
        lines += &constant(
            "h",
            &[d, BATCH, HIDDEN],
            ty,
            &numbers.list(d * BATCH * HIDDEN),
        );
        let none = || ("%none".to_owned(), "none".to_owned());
        let mut operands = vec![
            ("%x".to_owned(), x),
            operand("w", &[d, rows, INPUTS]),
            operand("r", &[d, rows, HIDDEN]),
            operand("b", &[d, 2 * rows]),
        ];
        if self.is_full {
            operands.push(("%lens".to_owned(), "tensor<3xi32>".to_owned()));
            operands.push(("%h".to_owned(), state.clone()));
            operands.push(none());
            operands.push(operand("p", &[d, 3 * HIDDEN]));
        }
        if self.kind != "lstm" {
            operands.truncate(6);
        }
        let (values, types): (Vec<_>, Vec<_>) = operands.into_iter().unzip();
        let y = tensor(&[LENGTH, d, BATCH, HIDDEN], ty);
        let text = format!(
            "func.func @main({arguments}) -> ({y}, {state}) attributes {{model.input_names = [{}], model.output_names = [\"y\", \"z\"]}} {{
               {lines}
               %y, %z = \"graph.rnn\"({}) {{hidden_size = {HIDDEN} : i64, kind = \"{}\"{}}} : ({}) -> ({y}, {state})
               func.return %y, %z : {y}, {state}
             }}",
            names.join(", "),
            values.join(", "),
            self.kind,
            self.attributes,
            types.join(", "),
        );
        (text, inputs)
    }
}

fn input(text: String) -> Input {
    Input::Text(Source::new("prepared.mlir", text))
}

fn tensor_of(ty: &str, shape: &[usize], list: &[f64]) -> Tensor {
    let narrow: Vec<f32> = list.iter().map(|x| *x as f32).collect();
    match ty {
        "f32" => Tensor::from_vec(shape, narrow).unwrap(),
        _ => Tensor::from_vec(shape, list.to_vec()).unwrap(),
    }
}

/// Calls a model, and returns its results one behind the other.
fn call(model: &Model, runtime: &Runtime, ty: &str, more: &[Weights]) -> Vec<f64> {
    let mut numbers = Numbers(3);
    let x = numbers.list(LENGTH * BATCH * INPUTS);
    let mut inputs = vec![tensor_of(ty, &[LENGTH, BATCH, INPUTS], &x)];
    inputs.extend(more.iter().map(|(shape, list)| tensor_of(ty, shape, list)));
    let outputs = model.call(&runtime.context(), inputs).wait().unwrap();
    let list = |name: &str| -> Vec<f64> {
        let tensor = outputs.tensor(name).unwrap();
        match ty {
            "f32" => tensor
                .to_vec::<f32>()
                .unwrap()
                .into_iter()
                .map(f64::from)
                .collect(),
            _ => tensor.to_vec::<f64>().unwrap(),
        }
    };
    [list("y"), list("z")].concat()
}

fn layers() -> Vec<Layer> {
    let layer = |kind, attributes, n_directions, is_full| Layer {
        kind,
        attributes,
        n_directions,
        is_full,
    };
    let both = ", direction = \"bidirectional\"";
    vec![
        layer("rnn", "", 1, false),
        layer("rnn", both, 2, true),
        layer("gru", "", 1, true),
        layer(
            "gru",
            ", linear_before_reset = 1 : i64, direction = \"reverse\"",
            1,
            true,
        ),
        layer("gru", ", linear_before_reset = 1 : i64", 1, false),
        layer("gru", both, 2, false),
        layer("lstm", "", 1, false),
        layer("lstm", both, 2, true),
        layer(
            "lstm",
            ", clip = 0.3 : f32, direction = \"reverse\"",
            1,
            true,
        ),
        layer("lstm", ", input_forget = 1 : i64", 1, true),
        layer(
            "lstm",
            ", activations = [\"HardSigmoid\", \"Relu\", \"Softsign\"]",
            1,
            true,
        ),
    ]
}

#[test]
fn recurrent_layers_by_packed_weights_are_those_of_the_formulas() {
    let runtime = Runtime::new();
    for layer in layers() {
        let what = (layer.kind, layer.attributes);
        let of = |ty: &str, has_constants: bool| {
            let (text, more) = layer.text(ty, has_constants);
            let model = runtime.load_model(&input(text)).unwrap();
            call(&model, &runtime, ty, &more)
        };
        let (prepared, packed_in_the_call, wide) =
            (of("f32", true), of("f32", false), of("f64", true));
        assert_eq!(prepared, packed_in_the_call, "{what:?}");
        assert!(prepared.iter().any(|x| x.abs() > 0.01));
        for (found, wanted) in prepared.iter().zip(&wide) {
            assert!((found - wanted).abs() < 2e-6, "{what:?}: {found} {wanted}");
        }
    }
}

#[test]
fn files_keep_what_was_prepared_for_any_processor() {
    for layer in layers() {
        let (text, _) = layer.text("f32", true);
        let runtime = Runtime::new();
        let model = runtime.load_model(&input(text.clone())).unwrap();
        let expected = call(&model, &runtime, "f32", &[]);
        for set in InstructionSet::ALL {
            let bytes = input(text.clone())
                .compile_for(&CompileOptions::default(), set, &OpenOptions::new())
                .unwrap();
            let file = String::from_utf8_lossy(bytes.as_bytes()).into_owned();
            assert!(file.contains("cpu.stored.value") && !file.contains("cpu.graph.prepare"));
            let runtime = Runtime::new();
            let program = Program::from_file(BefFile::open(bytes).unwrap(), &runtime).unwrap();
            let model = Model::from_program(program, &runtime).unwrap();
            assert_eq!(call(&model, &runtime, "f32", &[]), expected, "{set:?}");
        }
    }
}
