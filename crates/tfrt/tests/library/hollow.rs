//! Tensors without elements, whose other extents are as large as can be: they take no memory, and nothing that is
//! made of their extents may take any.

use std::sync::Arc;

use tfrt::model::Datum;
use tfrt::{AnyError, ErrorCode, Model, Runtime, SingleThreadedWorkQueue, Untrusted};

/// The number that `HUGE` stands for: a list of as many bytes fits no memory, and its length in bytes no address.
const HUGE: &str = "35184372088832";

/// A graph: operands made by shape, operations, and the type of `%y`.
struct Graph(
    &'static [(&'static str, &'static str)],
    &'static str,
    &'static str,
);

/// Types are those of `HUGE`; `?T` stands for a tensor of floats of any shape.
const GRAPHS: &[Graph] = &[
    Graph(
        &[("x", "0xHUGE")],
        "%y = \"onnx.Softmax\"(%x) : (0xHUGE) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "0xHUGE")],
        "%y = \"onnx.Hardmax\"(%x) : (0xHUGE) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "HUGEx0")],
        "%y = \"onnx.Softmax\"(%x) {axis = 0 : i64} : (HUGEx0) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "0xHUGE")],
        "%y = \"onnx.LpNormalization\"(%x) : (0xHUGE) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "0xHUGE")],
        "%y = \"onnx.ReduceMax\"(%x) {axes = [0]} : (0xHUGE) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "0xHUGE")],
        "%y = \"onnx.ReduceLogSumExp\"(%x) {axes = [1]} : (0xHUGE) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "HUGEx2x0")],
        "%y = \"onnx.ReduceMean\"(%x) {axes = [1]} : (HUGEx2x0) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "0xHUGE")],
        "%y = \"onnx.Transpose\"(%x) {perm = [1, 0]} : (0xHUGE) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "0xHUGE")],
        "%y = \"onnx.Concat\"(%x, %x) {axis = 1 : i64} : (0xHUGE, 0xHUGE) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "0xHUGE")],
        "%y = \"onnx.Trilu\"(%x) : (0xHUGE) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "0xHUGE")],
        "%y = \"onnx.EyeLike\"(%x) : (0xHUGE) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "0xHUGE")],
        "%y = \"onnx.Bernoulli\"(%x) : (0xHUGE) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "0xHUGE")],
        "%y = \"onnx.Einsum\"(%x) {equation = \"ij->j\"} : (0xHUGE) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "0xHUGEx1")],
        "%y = \"onnx.DFT\"(%x) : (0xHUGEx1) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "HUGEx0")],
        "%y = \"onnx.NonZero\"(%x) : (HUGEx0) -> tensor<?x?xi64>",
        "tensor<?x?xi64>",
    ),
    Graph(
        &[("x", "HUGEx0")],
        "%y = \"onnx.Multinomial\"(%x) : (HUGEx0) -> tensor<?x?xi32>",
        "tensor<?x?xi32>",
    ),
    Graph(
        &[("x", "HUGEx0"), ("z", "0xHUGE")],
        "%y = \"onnx.MatMul\"(%x, %z) : (HUGEx0, 0xHUGE) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "3x0"), ("z", "0xHUGE")],
        "%y = \"onnx.MatMul\"(%x, %z) : (3x0, 0xHUGE) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "0xHUGE"), ("z", "HUGEx0")],
        "%y = \"onnx.MatMul\"(%x, %z) : (0xHUGE, HUGEx0) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "0xHUGE"), ("z", "HUGEx0"), ("c", "0")],
        "%y = \"onnx.Gemm\"(%x, %z, %c) : (0xHUGE, HUGEx0, 0) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "0x1xHUGE"), ("w", "1x1x3")],
        "%y = \"onnx.Conv\"(%x, %w) : (0x1xHUGE, 1x1x3) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "1x0xHUGE"), ("w", "1x0x3")],
        "%y = \"onnx.Conv\"(%x, %w) : (1x0xHUGE, 1x0x3) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "0xHUGEx1x1"), ("w", "0xHUGEx1x1")],
        "%y = \"onnx.Conv\"(%x, %w) : (0xHUGEx1x1, 0xHUGEx1x1) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "1x0x4"), ("w", "0x1xHUGE")],
        "%y = \"onnx.ConvTranspose\"(%x, %w) : (1x0x4, 0x1xHUGE) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "0x1xHUGE")],
        "%y = \"onnx.MaxPool\"(%x) {kernel_shape = [2]} : (0x1xHUGE) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "1x1x4")],
        "%y = \"onnx.AveragePool\"(%x) {kernel_shape = [HUGE], pads = [HUGE, HUGE]} : (1x1x4) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "0xHUGEx2x2")],
        "%y = \"onnx.GlobalAveragePool\"(%x) : (0xHUGEx2x2) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "0xHUGEx2x2")],
        "%y = \"onnx.DepthToSpace\"(%x) {blocksize = 2 : i64} : (0xHUGEx2x2) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "0xHUGEx2")],
        "%y = \"onnx.LRN\"(%x) {size = 3 : i64} : (0xHUGEx2) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "0xHUGEx2x2")],
        "%y = \"onnx.MeanVarianceNormalization\"(%x) : (0xHUGEx2x2) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "0xHUGEx2"), ("s", "2")],
        "%y = \"onnx.LayerNormalization\"(%x, %s) : (0xHUGEx2, 2) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "0x4xHUGE"), ("s", "4")],
        "%y = \"onnx.InstanceNormalization\"(%x, %s, %s) : (0x4xHUGE, 4, 4) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "0xHUGEx1"), ("s", "1")],
        "%y = \"onnx.GroupNormalization\"(%x, %s, %s) {num_groups = 1 : i64} : (0xHUGEx1, 1, 1) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "0xHUGEx1"), ("s", "4")],
        "%y = \"onnx.BatchNormalization\"(%x, %s, %s, %s, %s) : (0xHUGEx1, 4, 4, 4, 4) -> ?T",
        "?T",
    ),
    Graph(
        &[("x", "2xHUGEx0"), ("w", "1x0x0")],
        "%y, %h = \"onnx.GRU\"(%x, %w, %w) {hidden_size = 0 : i64} : (2xHUGEx0, 1x0x0, 1x0x0) -> (?T, ?T)",
        "?T",
    ),
    Graph(
        &[("x", "0xHUGEx0"), ("w", "1x0x0")],
        "%y, %h, %c = \"onnx.LSTM\"(%x, %w, %w) {hidden_size = 0 : i64} : (0xHUGEx0, 1x0x0, 1x0x0) -> (?T, ?T, ?T)",
        "?T",
    ),
    Graph(
        &[("x", "0xHUGEx2"), ("w", "1x8x2")],
        "%y, %h, %c = \"onnx.LSTM\"(%x, %w, %w) {hidden_size = 2 : i64} : (0xHUGEx2, 1x8x2, 1x8x2) -> (?T, ?T, ?T)",
        "?T",
    ),
    Graph(
        &[("x", "0x1x2x2"), ("g", "0xHUGEx1x2")],
        "%y = \"onnx.GridSample\"(%x, %g) : (0x1x2x2, 0xHUGEx1x2) -> ?T",
        "?T",
    ),
    Graph(
        &[("b", "0xHUGEx4"), ("s", "0xHUGExHUGE")],
        "%y = \"onnx.NonMaxSuppression\"(%b, %s) : (0xHUGEx4, 0xHUGExHUGE) -> tensor<?x3xi64>",
        "tensor<?x3xi64>",
    ),
];

/// `0xHUGE` as a list of extents.
fn extents(shape: &str) -> Vec<String> {
    shape
        .split('x')
        .map(|extent| extent.replace("HUGE", HUGE))
        .collect()
}

impl Graph {
    fn text(&self) -> String {
        let tensor = |shape: &str| format!("tensor<{}xf32>", extents(shape).join("x"));
        let mut lines = Vec::new();
        for (name, shape) in self.0 {
            let (rank, list) = (extents(shape).len(), extents(shape).join(", "));
            lines.push(format!(
                "%{name}s = \"onnx.Constant\"() {{value = dense<[{list}]> : tensor<{rank}xi64>}} : () -> tensor<{rank}xi64>"
            ));
            lines.push(format!(
                "%{name} = \"onnx.ConstantOfShape\"(%{name}s) {{}} : (tensor<{rank}xi64>) -> {}",
                tensor(shape)
            ));
        }
        // The operands' shapes stand for their types.
        let (operation, types) = self.1.rsplit_once(" : (").unwrap();
        let (operands, results) = types.split_once(") -> ").unwrap();
        let operands: Vec<String> = operands.split(", ").map(tensor).collect();
        let any = |text: &str| text.replace("?T", "tensor<*xf32>").replace("HUGE", HUGE);
        lines.push(format!(
            "{} : ({}) -> {}",
            any(operation),
            operands.join(", "),
            any(results)
        ));
        let result = any(self.2);
        format!(
            "module attributes {{onnx.opset = 17 : i64}} {{
  func.func @main() -> {result} attributes {{model.input_names = [], model.output_names = [\"y\"]}} {{
    {}
    func.return %y : {result}
  }}
}}",
            lines.join("\n    ")
        )
    }
}

#[test]
fn extents_without_elements_take_no_memory() {
    let runtime = Runtime::builder()
        .queue(Arc::new(SingleThreadedWorkQueue::new()))
        .untrusted(Untrusted::default())
        .build();
    for graph in GRAPHS {
        let text = graph.text();
        let ran = || -> Result<(), AnyError> {
            let program = runtime.compile("hollow.mlir", text.as_str())?;
            let model = Model::from_program(program, &runtime)?;
            let inputs = Vec::<(String, Datum)>::new();
            model.call(&runtime.context(), inputs).wait()?;
            Ok(())
        };
        match ran() {
            Ok(()) => {}
            Err(AnyError::Call(error)) => {
                assert_ne!(error.code(), ErrorCode::Internal, "{error}\n{text}");
            }
            Err(error) => {
                let told = error.to_string();
                assert!(
                    told.contains("the constants of the model can't be made"),
                    "{told}\n{text}"
                );
                assert!(!told.contains("panicked"), "{told}\n{text}");
            }
        }
    }
}
