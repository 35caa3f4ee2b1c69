//! Tests of ONNX's operations, each as a program of one kernel: operands are written as in MLIR, results as tensors
//! are printed.

#[path = "onnx/elementwise.rs"]
mod elementwise;
#[path = "onnx/microsoft.rs"]
mod microsoft;
#[path = "onnx/misuse.rs"]
mod misuse;
#[path = "onnx/ml.rs"]
mod ml;
#[path = "onnx/movement.rs"]
mod movement;
#[path = "onnx/norm.rs"]
mod norm;
#[path = "onnx/pictures.rs"]
mod pictures;
#[path = "onnx/products.rs"]
mod products;
#[path = "onnx/reduce.rs"]
mod reduce;
#[path = "onnx/rows.rs"]
mod rows;
#[path = "onnx/sequences.rs"]
mod sequences;
#[path = "onnx/softmax.rs"]
mod softmax;

use std::sync::Arc;

use tfrt_async::queue::SingleThreadedWorkQueue;
use tfrt_bef::BefFile;
use tfrt_compiler::{CompileOptions, compile};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{AnyAsyncValue, ExecutionContext, HostContext, Limits, Program, RequestContext};
use tfrt_ops::names::{self, NameAttr};
use tfrt_tensor::Tensor;

/// A test of one operation: `op("Add").of("dense<1.0> : tensor<2xf32>")...`; also of a row that is none of ONNX:
/// `op("sort")`.
struct Trial {
    name: &'static str,
    attributes: String,
    opset: i64,
    operands: Vec<String>,
    n_results: usize,
    max_memory: Option<usize>,
}

fn op(name: &'static str) -> Trial {
    Trial {
        name,
        attributes: String::new(),
        opset: 24,
        operands: Vec::new(),
        n_results: 1,
        max_memory: None,
    }
}

impl Trial {
    /// Adds an operand: `"[1.0, 2.0] 2xf32"`, or `""` for one that is left out.
    fn of(mut self, operand: &str) -> Trial {
        self.operands.push(match operand.rsplit_once(' ') {
            None => "\"cpu.onnx.NoValue\"() : () -> !t.none".to_owned(),
            Some((elements, ty)) => format!(
                "\"cpu.onnx.Constant\"() {{value = dense<{elements}> : tensor<{ty}>}} : () -> !t.tensor"
            ),
        });
        self
    }

    fn with(mut self, attributes: impl Into<String>) -> Trial {
        self.attributes = attributes.into();
        self
    }

    fn opset(mut self, opset: i64) -> Trial {
        self.opset = opset;
        self
    }

    fn results(mut self, n_results: usize) -> Trial {
        self.n_results = n_results;
        self
    }

    /// Limits the memory of the host.
    fn within(mut self, max_memory: usize) -> Trial {
        self.max_memory = Some(max_memory);
        self
    }

    fn text(&self) -> String {
        let (mut lines, mut names, mut types) = (String::new(), Vec::new(), Vec::new());
        for (index, operand) in self.operands.iter().enumerate() {
            lines += &format!("  %x{index} = {operand}\n");
            names.push(format!("%x{index}"));
            types.push(operand.rsplit_once("-> ").unwrap().1);
        }
        let (names, types) = (names.join(", "), types.join(", "));
        let results = vec!["!t.tensor"; self.n_results].join(", ");
        let list: Vec<String> = (0..self.n_results)
            .map(|index| format!("%y#{index}"))
            .collect();
        let (kernel, n) = (self.kernel(), self.n_results);
        let list = list.join(", ");
        let [name, attributes] = kernel;
        format!(
            "func.func @main() -> ({results}) {{\n{lines}  %y:{n} = \"{name}\"({names}) {{{attributes}}} \
             : ({types}) -> ({results})\n  tfrt.return {list} : {results}\n}}\n"
        )
    }

    /// Returns the kernel and its attributes: those of the row that the operation is, or of an older form.
    fn kernel(&self) -> [String; 2] {
        let mut attributes = self.attributes.clone();
        if tfrt_ops::find(self.name).is_some_and(|row| row.dialect() == "graph") {
            let kernel = format!("cpu.graph.{}", self.name);
            return [kernel, format!("attributes = [{attributes}]")];
        }
        let own = names::onnx::name(self.name);
        let Some(own) = own.filter(|own| self.opset >= own.since) else {
            let opset = self.opset;
            let attributes = format!("attributes = [{attributes}], opset = {opset} : i64");
            return [format!("cpu.onnx.{}", self.name), attributes];
        };
        for attr in own.attrs {
            let fixed = match attr {
                NameAttr::Text(_, text) => format!("\"{text}\""),
                NameAttr::Int(_, value) => format!("{value} : i64"),
                _ => {
                    let quoted = |name| format!("\"{name}\"");
                    let name = attr.source().map(quoted).unwrap_or_default();
                    attributes = attributes.replace(&name, &quoted(attr.row()));
                    continue;
                }
            };
            let behind = if attributes.is_empty() { "" } else { ", " };
            attributes = format!("\"{}\", {fixed}{behind}{attributes}", attr.row());
        }
        [
            format!("cpu.graph.{}", own.row),
            format!("attributes = [{attributes}]"),
        ]
    }

    fn run(&self) -> Vec<AnyAsyncValue> {
        let mut registry = KernelRegistry::new();
        tfrt_kernels::register_all(&mut registry);
        let queue = Arc::new(SingleThreadedWorkQueue::new());
        let limits = Limits {
            max_memory: self.max_memory,
            ..Limits::default()
        };
        let host = HostContext::builder(registry).queue(queue).limits(limits);
        let host = host.build();
        let text = self.text();
        let module = tfrt_ir::parse(&tfrt_ir::Source::new("main.mlir", text.as_str())).unwrap();
        tfrt_ir::verify(&module).unwrap();
        let bytes = compile(&module, &CompileOptions::default()).unwrap();
        let program = Program::load(BefFile::open(bytes).unwrap(), &host).unwrap();
        let main = program.function("main").unwrap();
        let request = RequestContext::new(&host);
        let results = main.execute(&ExecutionContext::new(&request), Vec::new());
        host.queue().await_all(&results).unwrap();
        results.into_iter().map(AnyAsyncValue::settled).collect()
    }

    /// Expects results: `"f32 [2] [1.0, 2.0]"`, of floats with few digits.
    #[track_caller]
    fn gives(&self, wanted: &[&str]) {
        let results = self.run();
        let found: Vec<String> = results.iter().map(shown).collect();
        assert_eq!(found, wanted, "{}", self.text());
    }

    /// Expects an error.
    #[track_caller]
    fn fails(&self, wanted: &str) {
        let results = self.run();
        let error = results[0].error().expect("it is an error");
        assert_eq!(error.message(), wanted);
    }
}

fn shown(value: &AnyAsyncValue) -> String {
    if let Some(error) = value.error() {
        return error.message().to_owned();
    }
    let Some(tensor) = value.get::<Tensor>() else {
        return value.type_name().unwrap_or("nothing").to_owned();
    };
    let metadata = tensor.metadata();
    let elements = match tensor {
        Tensor::Dense(dense) => dense.to_text().unwrap(),
        other => other.to_text().unwrap(),
    };
    let (_, elements) = elements.split_once("values = ").unwrap();
    let elements = elements.trim_start_matches('[').trim_end_matches(']');
    let rounded = elements.split(", ").map(|one| match one.parse::<f64>() {
        Ok(number) if one.contains('.') => {
            let number = (number * 1e4).round() / 1e4;
            // Without a sign at 0.
            format!("{:?}", number + 0.0)
        }
        _ => one.to_owned(),
    });
    format!("{metadata} [{}]", rounded.collect::<Vec<_>>().join(", "))
}
