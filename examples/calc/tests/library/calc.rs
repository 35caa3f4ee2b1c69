//! Files of a format that nothing of the runtime knows.

use std::path::PathBuf;
use std::sync::Arc;

use tfrt::compiler::CompileOptions;
use tfrt::import::ReadLimits;
use tfrt::input::Input;
use tfrt::{
    ConcurrentWorkQueue, Formats, Model, MultiThreadedWorkQueue, Runtime, RuntimeBuilder,
    SingleThreadedWorkQueue, Tensor,
};
use tfrt_example_calc::FORMAT;

const TEXT: &str = "\
# All that the format has.
input x f32[N,4]
input w f32[4,2]
a = gelu(x)
b = wave(a, height=3.0)  # a row of its own
c = matmul(b, w)
d = silu(c)
e = mul(d, d)
f = add(e, d)
g = wave(f)
h = softmax(g, axis=1)
i = rsqrt(h)
j = sum(i, keep=0)
output h
output j
";

fn builder() -> RuntimeBuilder {
    Runtime::builder().formats(Formats::builtin().with(FORMAT))
}

/// A file with a text, which goes with it.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> File {
        let folder = std::env::temp_dir().join(format!("tfrt-calc-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        File(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.0);
    }
}

fn inputs() -> (Vec<f32>, Vec<f32>) {
    let x = (0..12_u8).map(|n| f32::from(n) * 0.5 - 3.0).collect();
    let w = (0..8_u8).map(|n| 1.0 - f32::from(n) * 0.25).collect();
    (x, w)
}

fn called(runtime: &Runtime, model: &Model) -> [Vec<f32>; 2] {
    let (x, w) = inputs();
    let x = Tensor::from_vec(&[3, 4], x).unwrap();
    let w = Tensor::from_vec(&[4, 2], w).unwrap();
    let call = model.call(&runtime.context(), [("x", x), ("w", w)]);
    let outputs = call.wait().unwrap();
    ["h", "j"].map(|name| outputs.tensor(name).unwrap().to_vec().unwrap())
}

/// Returns the expected results, calculated in plain Rust.
fn expected() -> [Vec<f64>; 2] {
    let (x, w) = inputs();
    let wave = |x: f64, height: f64| height * (1.0 - (x.rem_euclid(2.0) - 1.0).abs());
    let b: Vec<f64> = x.iter().map(|x| wave(gelu(f64::from(*x)), 3.0)).collect();
    let mut h = Vec::new();
    for row in b.chunks(4) {
        let product = |column: usize| -> f64 {
            let terms = row.iter().enumerate();
            terms.map(|(k, b)| b * f64::from(w[2 * k + column])).sum()
        };
        let g = [0, 1].map(|column| {
            let c = product(column);
            let d = c / (1.0 + (-c).exp());
            wave(d * d + d, 1.0)
        });
        let sum = g[0].exp() + g[1].exp();
        h.extend(g.map(|g| g.exp() / sum));
    }
    let j = h.iter().map(|h| 1.0 / h.sqrt()).sum();
    [h, vec![j]]
}

/// Calculates gelu by the series of the error function.
fn gelu(x: f64) -> f64 {
    let z = x / std::f64::consts::SQRT_2;
    let (mut term, mut sum) = (z, z);
    for n in 1..60 {
        let n = f64::from(n);
        term *= -z * z / n;
        sum += term / (2.0 * n + 1.0);
    }
    0.5 * x * (1.0 + sum * 2.0 / std::f64::consts::PI.sqrt())
}

#[test]
fn files_run_under_each_kind_of_queue() {
    let file = File::new("queues.calc", TEXT);
    let threads = |n| Arc::new(MultiThreadedWorkQueue::new(n, 1).unwrap());
    let queues: [Arc<dyn ConcurrentWorkQueue>; 3] = [
        Arc::new(SingleThreadedWorkQueue::new()),
        threads(1),
        threads(4),
    ];
    let expected = expected();
    for queue in queues {
        let runtime = builder().queue(queue).build();
        let model = runtime.open_model(&file.0).unwrap();
        assert_eq!(model.inputs()[0].to_string(), "x: f32 [N, 4]");
        for (found, expected) in called(&runtime, &model).iter().zip(&expected) {
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(expected) {
                let error = (f64::from(*found) - expected).abs();
                assert!(error < 1e-4, "{found} is not {expected}");
            }
        }
    }
}

#[test]
fn compiled_files_need_the_kernels_alone() {
    let file = File::new("compiled.calc", TEXT);
    let formats = Formats::builtin().with(FORMAT);
    let input = Input::read_with(&file.0, &formats, &ReadLimits::default()).unwrap();
    let bytes = input.compile(&CompileOptions::default()).unwrap();
    let input = Input::from_bytes("compiled", bytes.as_bytes().to_vec()).unwrap();
    let runtime = Runtime::builder().kernels(FORMAT.kernels).build();
    let model = runtime.load_model(&input).unwrap();
    let with_format = builder().build();
    let other = with_format.open_model(&file.0).unwrap();
    assert_eq!(called(&runtime, &model), called(&with_format, &other));
}

#[test]
fn files_without_the_suffix_are_told_by_how_they_begin() {
    let text = "input x f32[2]\ny = wave(x)\noutput y\n";
    let runtime = builder().build();
    let formats = runtime.formats();
    let input = Input::from_bytes_with("x", text.into(), formats).unwrap();
    assert!(matches!(input, Input::Model { .. }));
    let model = runtime.load_model(&input).unwrap();
    let x = Tensor::from_vec(&[2], vec![0.25_f32, 1.75]).unwrap();
    let outputs = model.call(&runtime.context(), [("x", x)]).wait().unwrap();
    assert_eq!(
        outputs.tensor("y").unwrap().to_vec::<f32>().unwrap(),
        [0.25, 0.25]
    );
}

#[test]
fn broken_files_are_told_with_line_and_column() {
    let runtime = builder().build();
    for (text, expected) in [
        (
            "input x f32[2]\ny = gelu(z)\n",
            "2:10: error: expected a value that was made before, found 'z' [CALC1]",
        ),
        (
            "input x i8[2]\n",
            "1:9: error: expected f32[EXTENT, ..], found 'i8[2]' [CALC1]",
        ),
        (
            "\n  what\n",
            "2:3: error: expected 'input', 'output' or NAME = OPERATION(..), found 'what' [CALC1]",
        ),
        (
            "input x f32[2]\ny = wave(x, height=tall)\n",
            "2:20: error: expected a number, found 'tall' [CALC1]",
        ),
        (
            "input x f32[2]\ny = gelu2(x)\noutput y\n",
            "2:5: error: 'calc.gelu2' op is no operation of this format; did you mean 'gelu'? [TF0516]",
        ),
        (
            "input x f32[2]\ny = wave(x, height=2)\noutput y\n",
            "2:5: error: 'calc.wave' op attribute 'height' failed to satisfy constraint: float attribute [TF0406]",
        ),
        (
            "input x f32[2]\ny = add(x)\noutput y\n",
            "2:5: error: 'calc.add' op expected 2 operands, but found 1 [TF0516]",
        ),
        (
            "input x f32[2]\ny = silu()\noutput y\n",
            "2:10: error: expected a value that was made before, found '' [CALC1]",
        ),
    ] {
        let file = File::new("broken.calc", text);
        let error = runtime.open_model(&file.0).unwrap_err().to_string();
        let first = error.lines().next().unwrap();
        assert_eq!(first, format!("{}:{expected}", file.0.display()));
    }
}

#[test]
fn limits_of_the_reader_hold() {
    let file = File::new("limits.calc", TEXT);
    let formats = Formats::builtin().with(FORMAT);
    let limits = ReadLimits {
        nodes: 3,
        ..ReadLimits::default()
    };
    let input = Input::read_with(&file.0, &formats, &limits).unwrap();
    let error = input.module().unwrap_err().to_string();
    assert!(
        error.contains(":7:1: error: expected at most 3 operations"),
        "{error}"
    );
    let limits = ReadLimits {
        bytes: 10,
        ..ReadLimits::default()
    };
    let error = Input::read_with(&file.0, &formats, &limits).unwrap_err();
    assert_eq!(error.code(), Some("TF0003"));
}

#[test]
fn files_that_no_format_recognises_are_told_which_there_are() {
    let runtime = builder().build();
    let file = File::new("letter", "Dear reader,\n");
    let error = runtime.open_model(&file.0).unwrap_err().to_string();
    let expected = "expected a model: ONNX, SavedModel, StableHLO, calc, MLIR text with a function, or what `tfrt compile` \
                    makes of these";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn a_kernel_that_was_not_added_is_missing() {
    let format = FORMAT.kernels(|_| {});
    let formats = Formats::builtin().with(format);
    let runtime = Runtime::builder().formats(formats).build();
    let file = File::new("missing.calc", "input x f32[2]\ny = wave(x)\noutput y\n");
    let error = runtime.open_model(&file.0).unwrap_err().to_string();
    assert!(error.contains("cpu.calc.wave"), "{error}");
}
