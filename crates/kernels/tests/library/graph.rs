//! Tests of graphs of ONNX's operations, optimised by the compiler and run.

use std::fmt::Write;
use std::sync::Arc;

use tfrt_async::queue::{ConcurrentWorkQueue, MultiThreadedWorkQueue, SingleThreadedWorkQueue};
use tfrt_bef::BefFile;
use tfrt_compiler::legalize::Context;
use tfrt_compiler::onnx::{EvaluatedValue, Evaluator, Options, PrepareRule, pipeline};
use tfrt_compiler::{CompileOptions, compile};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{
    AnyAsyncValue, Error, ExecutionContext, HostContext, HostContextBuilder, Program,
    RequestContext,
};
use tfrt_tensor::{DenseHostTensor, Tensor};

#[path = "graph/memory.rs"]
mod memory;
#[path = "graph/patterns.rs"]
mod patterns;
#[path = "graph/pointwise.rs"]
mod pointwise;
#[path = "graph/prepare.rs"]
mod prepare;
mod quantized;
mod quantized_products;

/// An evaluator that knows the kernels of this crate, and evaluates nothing.
struct Kernels;

impl Evaluator for Kernels {
    fn evaluate(&self, _: tfrt_ir::Module) -> Vec<Option<EvaluatedValue>> {
        Vec::new()
    }

    fn prepares(&self, row: &str) -> Option<PrepareRule> {
        let prepare = tfrt_kernels::onnx::prepare_of(row)?;
        Some(PrepareRule {
            inputs: prepare.inputs,
            types: prepare.types,
            takes_attributes: prepare.takes_attributes,
        })
    }
}

/// A model that was opened, with its constants.
struct Opened {
    host: HostContext,
    program: Program,
    constants: Vec<AnyAsyncValue>,
    text: String,
}

fn open(body: &str, optimize: bool) -> Opened {
    open_on(body, optimize, Arc::new(SingleThreadedWorkQueue::new()))
}

fn open_on(body: &str, optimize: bool, queue: Arc<dyn ConcurrentWorkQueue>) -> Opened {
    open_changed(body, optimize, |builder| builder.queue(queue))
}

fn open_changed(
    body: &str,
    optimize: bool,
    change: impl FnOnce(HostContextBuilder) -> HostContextBuilder,
) -> Opened {
    let mut registry = KernelRegistry::new();
    tfrt_kernels::register_all(&mut registry);
    let host = change(HostContext::builder(registry)).build();
    let text = format!("module attributes {{onnx.opset = 17 : i64}} {{\n{body}\n}}\n");
    let mut module = tfrt_ir::parse(&tfrt_ir::Source::new("main.mlir", text)).unwrap();
    pipeline(
        &mut module,
        &Options {
            optimize,
            ..Options::default()
        },
        &Context::new(&Kernels),
    )
    .unwrap();
    let bytes = compile(&module, &CompileOptions::default()).unwrap();
    let program = Program::load(BefFile::open(bytes).unwrap(), &host).unwrap();
    let mut opened = Opened {
        host,
        program,
        constants: Vec::new(),
        text: module.to_string(),
    };
    if opened.program.function("main.constants").is_some() {
        opened.constants = opened.call("main.constants", Vec::new());
    }
    opened
}

/// Returns the error of the constants of a program of kernels.
fn constants_error(text: &str) -> Error {
    let mut registry = KernelRegistry::new();
    tfrt_kernels::register_all(&mut registry);
    let host = HostContext::builder(registry).build();
    let module = tfrt_ir::parse(&tfrt_ir::Source::new("main.mlir", text)).unwrap();
    let bytes = compile(&module, &CompileOptions::default()).unwrap();
    let program = Program::load(BefFile::open(bytes).unwrap(), &host).unwrap();
    let function = program.function("main.constants").unwrap();
    let request = RequestContext::new(&host);
    let results = function.execute(&ExecutionContext::new(&request), Vec::new());
    host.queue().await_all(&results).unwrap();
    results[0].error().unwrap().clone()
}

impl Opened {
    fn call(&self, function: &str, arguments: Vec<AnyAsyncValue>) -> Vec<AnyAsyncValue> {
        let function = self.program.function(function).unwrap();
        let request = RequestContext::new(&self.host);
        let results = function.execute(&ExecutionContext::new(&request), arguments);
        self.host.queue().await_all(&results).unwrap();
        let results: Vec<AnyAsyncValue> = results.into_iter().map(AnyAsyncValue::settled).collect();
        for result in &results {
            assert!(result.error().is_none(), "{:?}", result.error());
        }
        results
    }

    /// Returns the error of the first result of a function.
    fn error(&self, function: &str, arguments: Vec<AnyAsyncValue>) -> Error {
        let function = self.program.function(function).unwrap();
        let request = RequestContext::new(&self.host);
        let results = function.execute(&ExecutionContext::new(&request), arguments);
        self.host.queue().await_all(&results).unwrap();
        results[0].error().unwrap().clone()
    }

    /// Calls the model with one tensor; returns shape and elements of its only result.
    fn run(&self, shape: &[usize], elements: &[f32]) -> (Vec<usize>, Vec<f32>) {
        let x = DenseHostTensor::from_slice(self.host.allocator(), shape, elements).unwrap();
        let mut arguments = vec![AnyAsyncValue::new(Tensor::from(x))];
        arguments.extend(self.constants.iter().cloned());
        let results = self.call("main", arguments);
        let dense = results[0].get::<Tensor>().unwrap().as_dense().unwrap();
        let reading = dense.read().unwrap();
        let elements = reading.elements::<f32>().unwrap().to_vec();
        (dense.shape().to_dims().to_vec(), elements)
    }
}

/// Returns pseudo-random numbers between -1 and 1.
fn numbers(seed: u32, n: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let one = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..n).map(one).collect()
}

/// Returns a line that makes a constant of pseudo-random numbers.
fn constant(name: &str, seed: u32, shape: &[usize], positive: bool) -> String {
    let mut bytes = String::new();
    for number in numbers(seed, shape.iter().product()) {
        let number = if positive { number.abs() + 0.5 } else { number };
        for byte in number.to_le_bytes() {
            write!(bytes, "{byte:02X}").unwrap();
        }
    }
    let extents: Vec<String> = shape.iter().map(|extent| format!("{extent}x")).collect();
    let ty = format!("tensor<{}f32>", extents.concat());
    format!("%{name} = \"onnx.Constant\"() {{value = dense<\"0x{bytes}\"> : {ty}}} : () -> {ty}\n")
}

fn assert_near(found: &[f32], wanted: &[f32]) {
    assert_eq!(found.len(), wanted.len());
    for (found, wanted) in found.iter().zip(wanted) {
        assert!(
            (found - wanted).abs() <= 1e-5 * (1.0 + wanted.abs()),
            "{found} {wanted}"
        );
    }
}

/// Calculates a convolution by its definition: channels first, padding 1 all around.
fn convolved(
    x: &[f32],
    [n, c, h, w]: [usize; 4],
    k: &[f32],
    filters: usize,
    groups: usize,
) -> Vec<f32> {
    let (own, per_group) = (c / groups, filters / groups);
    let mut out = Vec::new();
    for (b, f, y, z) in (0..n * filters * h * w).map(|i| {
        (
            i / (filters * h * w),
            i / (h * w) % filters,
            i / w % h,
            i % w,
        )
    }) {
        let mut sum = 0.0;
        for (o, dy, dz) in (0..own * 9).map(|i| (i / 9, i / 3 % 3, i % 3)) {
            let (Some(iy), Some(iz)) = ((y + dy).checked_sub(1), (z + dz).checked_sub(1)) else {
                continue;
            };
            if iy < h && iz < w {
                let channel = f / per_group * own + o;
                sum +=
                    x[((b * c + channel) * h + iy) * w + iz] * k[((f * own + o) * 3 + dy) * 3 + dz];
            }
        }
        out.push(sum);
    }
    out
}

#[test]
fn convolutions_with_what_follows_are_those_of_the_definition() {
    let (c, h, w) = (4, 5, 6);
    for (filters, groups) in [(8, 1), (8, 2), (4, 4)] {
        let own = c / groups;
        let lines = [
            constant("k", 1, &[filters, own, 3, 3], false),
            constant("s", 2, &[filters], true),
            constant("b", 3, &[filters], false),
            constant("m", 4, &[filters], false),
            constant("v", 5, &[filters], true),
        ];
        let image = format!("tensor<?x{c}x{h}x{w}xf32>");
        let body = format!(
            "func.func @main(%x: {image}) -> tensor<*xf32> attributes {{model.input_names = [\"x\"], model.output_names = [\"y\"]}} {{
               {}
               %a = \"onnx.Conv\"(%x, %k) {{group = {groups} : i64, pads = [1 : i64, 1 : i64, 1 : i64, 1 : i64]}}
                   : ({image}, tensor<{filters}x{own}x3x3xf32>) -> tensor<*xf32>
               %n = \"onnx.BatchNormalization\"(%a, %s, %b, %m, %v) : (tensor<*xf32>, tensor<{filters}xf32>,
                   tensor<{filters}xf32>, tensor<{filters}xf32>, tensor<{filters}xf32>) -> tensor<*xf32>
               %y = \"onnx.Relu\"(%n) : (tensor<*xf32>) -> tensor<*xf32>
               tfrt.return %y : tensor<*xf32>
             }}",
            lines.concat()
        );
        let model = open(&body, true);
        assert!(
            model.text.contains("epilogue = [\"relu a0\"]"),
            "{}",
            model.text
        );
        let k = numbers(1, filters * own * 9);
        let positive = |seed| {
            numbers(seed, filters)
                .into_iter()
                .map(|x: f32| x.abs() + 0.5)
                .collect::<Vec<_>>()
        };
        let (s, b, m, v) = (
            positive(2),
            numbers(3, filters),
            numbers(4, filters),
            positive(5),
        );
        for n in [1, 3] {
            let x = numbers(9, n * c * h * w);
            let (shape, found) = model.run(&[n, c, h, w], &x);
            assert_eq!(shape, [n, filters, h, w]);
            let mut wanted = convolved(&x, [n, c, h, w], &k, filters, groups);
            for (index, value) in wanted.iter_mut().enumerate() {
                let f = index / (h * w) % filters;
                *value = ((*value - m[f]) / (v[f] + 1e-5).sqrt() * s[f] + b[f]).max(0.0);
            }
            assert_near(&found, &wanted);
        }
    }
}

#[test]
fn chains_give_the_bits_of_their_steps() {
    let mut body = String::from(
        "func.func @main(%x0: tensor<?x4xf32>) -> tensor<?x4xf32> attributes {model.input_names = [\"x\"], model.output_names = [\"y\"]} {\n",
    );
    body += &constant("c", 7, &[4], false);
    for index in 0..200 {
        let next = index + 1;
        let line = match index % 2 {
            0 => format!(
                "%x{next} = \"onnx.Add\"(%x{index}, %c) : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>\n"
            ),
            _ => format!(
                "%x{next} = \"onnx.Tanh\"(%x{index}) : (tensor<?x4xf32>) -> tensor<?x4xf32>\n"
            ),
        };
        body += &line;
    }
    body += "tfrt.return %x200 : tensor<?x4xf32>\n}";
    let (fused, plain) = (open(&body, true), open(&body, false));
    assert_eq!(fused.text.matches("cpu.fused.elementwise").count(), 1);
    assert_eq!(plain.text.matches("cpu.graph.tanh").count(), 100);
    for n in [1, 2, 3000] {
        let x = numbers(3, 4 * n);
        assert_eq!(fused.run(&[n, 4], &x), plain.run(&[n, 4], &x));
    }
}

#[test]
fn products_take_any_batch() {
    for (extents, transposed) in [([8, 16], 0), ([16, 8], 1)] {
        let lines = [
            constant("w", 1, &extents, false),
            constant("b", 2, &[16], false),
        ];
        let [rows, columns] = extents;
        let body = format!(
            "func.func @main(%x: tensor<?x?x8xf32>) -> tensor<*xf32> attributes {{model.input_names = [\"x\"], model.output_names = [\"y\"]}} {{
               {}
               %m = \"graph.dot\"(%x, %w) {{transpose_b = {transposed} : i64}} : (tensor<?x?x8xf32>, tensor<{rows}x{columns}xf32>) -> tensor<*xf32>
               %y = \"onnx.Add\"(%m, %b) : (tensor<*xf32>, tensor<16xf32>) -> tensor<*xf32>
               %z = \"onnx.Relu\"(%y) : (tensor<*xf32>) -> tensor<*xf32>
               tfrt.return %z : tensor<*xf32>
             }}",
            lines.concat()
        );
        let model = open(&body, true);
        assert!(model.text.contains("cpu.fused.matmul"));
        assert!(!model.text.contains("cpu.graph.add"));
        let (w, b) = (numbers(1, 128), numbers(2, 16));
        for [n, m] in [[1, 1], [2, 3], [5, 40], [0, 2]] {
            let x = numbers(4, n * m * 8);
            let (shape, found) = model.run(&[n, m, 8], &x);
            assert_eq!(shape, [n, m, 16]);
            let one = |index: usize| {
                let (row, column) = (index / 16, index % 16);
                let weight = |k: usize| match transposed {
                    0 => w[k * 16 + column],
                    _ => w[column * 8 + k],
                };
                let sum: f32 = (0..8).map(|k| x[row * 8 + k] * weight(k)).sum();
                (sum + b[column]).max(0.0)
            };
            assert_near(&found, &(0..n * m * 16).map(one).collect::<Vec<f32>>());
        }
    }
}

/// Compares a model of images, optimised, with itself as it is written, for one image and for three.
fn assert_same(body: &str, [c, h, w]: [usize; 3]) -> Opened {
    let (made, plain) = (open(body, true), open(body, false));
    for n in [1, 3] {
        let x = numbers(9, n * c * h * w);
        let (shape, found) = made.run(&[n, c, h, w], &x);
        let (wanted_shape, wanted) = plain.run(&[n, c, h, w], &x);
        assert_eq!(shape, wanted_shape);
        assert_near(&found, &wanted);
    }
    made
}

#[test]
fn factors_and_summands_of_channels_change_nothing_but_the_time() {
    let image = "tensor<?x4x6x5xf32>";
    let lines = [
        constant("k", 1, &[8, 4, 1, 1], false),
        constant("d", 6, &[12, 12, 1, 1], false),
        constant("m", 2, &[8], true),
        constant("a", 3, &[8], false),
        constant("m2", 4, &[12], true),
        constant("a2", 5, &[12], false),
    ];
    let list = |n: usize| format!("tensor<{n}xf32>");
    let any = "tensor<*xf32>";
    let norm = |y: &str, x: &str, m: &str, a: &str, n: usize| {
        let list = list(n);
        format!(
            "%{y} = \"onnx.BatchNormalization\"(%{x}, %{m}, %{a}, %{a}, %{m})
                 : ({any}, {list}, {list}, {list}, {list}) -> {any}\n"
        )
    };
    let body = format!(
        "func.func @main(%x: {image}) -> {any} attributes {{
             model.input_names = [\"x\"], model.output_names = [\"y\"], model.input_dims = [[\"N\", 4 : i64, 6 : i64, 5 : i64]]}} {{
           {}
           %to = \"onnx.Constant\"() {{value = dense<[-1, 1, 1]> : tensor<3xi64>}} : () -> tensor<3xi64>
           %half = \"onnx.Constant\"() {{value = dense<0.5> : tensor<f32>}} : () -> tensor<f32>
           %m3 = \"onnx.Reshape\"(%m, %to) : (tensor<8xf32>, tensor<3xi64>) -> {any}
           %a3 = \"onnx.Reshape\"(%a, %to) : (tensor<8xf32>, tensor<3xi64>) -> {any}
           %m4 = \"onnx.Reshape\"(%m2, %to) : (tensor<12xf32>, tensor<3xi64>) -> {any}
           %c0 = \"onnx.Conv\"(%x, %k) : ({image}, tensor<8x4x1x1xf32>) -> {any}
           %c1 = \"onnx.Mul\"(%c0, %m3) : ({any}, {any}) -> {any}
           %c2 = \"onnx.Sub\"(%c1, %a3) : ({any}, {any}) -> {any}
           {}
           %c4 = \"onnx.Mul\"(%m3, %c3) : ({any}, {any}) -> {any}
           %c5 = \"onnx.Add\"(%c4, %half) : ({any}, tensor<f32>) -> {any}
           %c6 = \"onnx.Relu\"(%c5) : ({any}) -> {any}
           %j = \"onnx.Concat\"(%c6, %x) {{axis = 1 : i64}} : ({any}, {image}) -> {any}
           {}
           %e1 = \"onnx.Mul\"(%e0, %m4) : ({any}, {any}) -> {any}
           %e2 = \"onnx.Relu\"(%e1) : ({any}) -> {any}
           %f = \"onnx.Conv\"(%e2, %d) : ({any}, tensor<12x12x1x1xf32>) -> {any}
           %g = \"onnx.Conv\"(%j, %d) : ({any}, tensor<12x12x1x1xf32>) -> {any}
           %s = \"onnx.Sum\"(%f, %g) : ({any}, {any}) -> {any}
           %y = \"onnx.Relu\"(%s) : ({any}) -> {any}
           tfrt.return %y : {any}
         }}",
        lines.concat(),
        norm("c3", "c2", "m", "a", 8),
        norm("e0", "j", "m2", "a2", 12),
    );
    let made = assert_same(&body, [4, 6, 5]);
    let main = &made.text[made.text.find("@main(").unwrap()..];
    for gone in [
        "graph.mul",
        "graph.sub",
        "graph.add",
        "onnx.Sum",
        "graph.relu",
        "graph.norm",
    ] {
        assert!(!main.contains(&format!("cpu.{gone}\"")), "{main}");
    }
    assert_eq!(main.matches("cpu.graph.transpose").count(), 2, "{main}");
}

#[test]
fn networks_of_images_give_the_same_bits_on_any_number_of_threads() {
    let image = "tensor<?x3x40x40xf32>";
    let lines = [
        constant("k", 1, &[32, 3, 3, 3], false),
        constant("d", 2, &[32, 1, 3, 3], false),
        constant("g", 3, &[32, 8, 1, 1], false),
        constant("j", 4, &[8, 64, 1, 1], false),
        constant("m", 5, &[72], true),
        constant("a", 6, &[72], false),
        constant("w", 7, &[72, 10], false),
    ];
    let any = "tensor<*xf32>";
    let ones = "pads = [1 : i64, 1 : i64, 1 : i64, 1 : i64]";
    let window = format!("kernel_shape = [3 : i64, 3 : i64], {ones}");
    let body = format!(
        "func.func @main(%x: {image}) -> {any} attributes {{
             model.input_names = [\"x\"], model.output_names = [\"y\"],
             model.input_dims = [[\"N\", 3 : i64, 40 : i64, 40 : i64]]}} {{
           {}
           %least = \"onnx.Constant\"() {{value = dense<0.0> : tensor<f32>}} : () -> tensor<f32>
           %most = \"onnx.Constant\"() {{value = dense<6.0> : tensor<f32>}} : () -> tensor<f32>
           %c0 = \"onnx.Conv\"(%x, %k) {{{ones}}} : ({image}, tensor<32x3x3x3xf32>) -> {any}
           %c1 = \"onnx.LRN\"(%c0) {{alpha = 1.0e-1 : f32, size = 5 : i64}} : ({any}) -> {any}
           %d0 = \"onnx.Conv\"(%c1, %d) {{group = 32 : i64, {ones}}}
               : ({any}, tensor<32x1x3x3xf32>) -> {any}
           %d1 = \"onnx.Add\"(%c1, %d0) : ({any}, {any}) -> {any}
           %d2 = \"onnx.Clip\"(%d1, %least, %most) : ({any}, tensor<f32>, tensor<f32>) -> {any}
           %g0 = \"onnx.Conv\"(%d2, %g) {{group = 4 : i64}} : ({any}, tensor<32x8x1x1xf32>) -> {any}
           %p0 = \"onnx.AveragePool\"(%g0) {{{window}}} : ({any}) -> {any}
           %p1 = \"onnx.MaxPool\"(%d2) {{{window}}} : ({any}) -> {any}
           %j0 = \"onnx.Concat\"(%p0, %p1) {{axis = 1 : i64}} : ({any}, {any}) -> {any}
           %j1 = \"onnx.Conv\"(%j0, %j) : ({any}, tensor<8x64x1x1xf32>) -> {any}
           %j2 = \"onnx.Concat\"(%p1, %p0, %j1) {{axis = 1 : i64}} : ({any}, {any}, {any}) -> {any}
           %n0 = \"onnx.BatchNormalization\"(%j2, %m, %a, %a, %m) : ({any}, tensor<72xf32>, tensor<72xf32>,
               tensor<72xf32>, tensor<72xf32>) -> {any}
           %n1 = \"onnx.Relu\"(%n0) : ({any}) -> {any}
           %n2 = \"onnx.GlobalAveragePool\"(%n1) : ({any}) -> {any}
           %f = \"onnx.Flatten\"(%n2) : ({any}) -> {any}
           %y = \"onnx.MatMul\"(%f, %w) : ({any}, tensor<72x10xf32>) -> {any}
           tfrt.return %y : {any}
         }}",
        lines.concat()
    );
    let made = assert_same(&body, [3, 40, 40]);
    for kernel in ["conv", "joined", "matmul", "near", "pool", "scale"] {
        assert!(
            made.text.contains(&format!("cpu.fused.{kernel}\"")),
            "{}",
            made.text
        );
    }
    let x = numbers(11, 2 * 3 * 40 * 40);
    let bits = |model: &Opened| -> Vec<u32> {
        let (_, found) = model.run(&[2, 3, 40, 40], &x);
        found.into_iter().map(f32::to_bits).collect()
    };
    let wanted = bits(&made);
    for n_workers in [1, 2, 4] {
        let queue = Arc::new(MultiThreadedWorkQueue::new(n_workers, 0).unwrap());
        assert_eq!(
            bits(&open_on(&body, true, queue)),
            wanted,
            "{n_workers} workers"
        );
    }
}

/// Tests that an epilogue has the bits of a program of its own behind the product or convolution.
#[test]
fn epilogues_of_any_kind_give_the_bits_of_their_steps() {
    let any = "tensor<*xf32>";
    let one = format!("({any}) -> {any}");
    let followers = [
        format!("%y = \"onnx.Sigmoid\"(%a) : {one}"),
        format!(
            "%s = \"onnx.Sigmoid\"(%a) : {one}\n%y = \"onnx.Mul\"(%a, %s) : ({any}, {any}) -> {any}"
        ),
        format!("%y = \"onnx.HardSwish\"(%a) : {one}"),
        format!("%y = \"onnx.LeakyRelu\"(%a) {{alpha = 0.25 : f32}} : {one}"),
        format!("%y = \"onnx.Clip\"(%a, %low, %high) : ({any}, tensor<f32>, tensor<f32>) -> {any}"),
        format!("%y = \"onnx.Clip\"(%a, %zero, %six) : ({any}, tensor<f32>, tensor<f32>) -> {any}"),
        format!(
            "%s = \"onnx.Cast\"(%a) {{to = 10 : i64}} : ({any}) -> tensor<*xf16>
             %h = \"onnx.Softplus\"(%s) : (tensor<*xf16>) -> tensor<*xf16>
             %y = \"onnx.Cast\"(%h) {{to = 1 : i64}} : (tensor<*xf16>) -> {any}"
        ),
    ];
    let number = |name: &str, value: &str| {
        format!(
            "%{name} = \"onnx.Constant\"() {{value = dense<{value}> : tensor<f32>}} : () -> tensor<f32>\n"
        )
    };
    let conv = |filters: usize, groups: usize| {
        let own = 8 / groups;
        format!(
            "{}{}%a = \"onnx.Conv\"(%x, %k, %c) {{group = {groups} : i64, pads = [1, 1, 1, 1]}}
               : (tensor<?x8x6x7xf32>, tensor<{filters}x{own}x3x3xf32>, tensor<{filters}xf32>) -> {any}\n",
            constant("k", 1, &[filters, own, 3, 3], false),
            constant("c", 2, &[filters], false),
        )
    };
    let product = format!(
        "{}{}%m = \"onnx.MatMul\"(%x, %k) : (tensor<?x8x6x7xf32>, tensor<7x40xf32>) -> {any}
         %a = \"onnx.Add\"(%m, %c) : ({any}, tensor<40xf32>) -> {any}\n",
        constant("k", 1, &[7, 40], false),
        constant("c", 2, &[40], false),
    );
    let numbers_of = [
        ("low", "-0.5"),
        ("high", "0.75"),
        ("zero", "0.0"),
        ("six", "6.0"),
    ];
    let constants: String = numbers_of.map(|(name, value)| number(name, value)).concat();
    for maker in [conv(16, 1), conv(8, 8), conv(16, 2), product] {
        for follower in &followers {
            // Where the sums are asked for, too, what follows is a program of its own.
            let body = |types: &str, names: &str| {
                let results: Vec<String> = (0..names.split(", ").count())
                    .map(|index| format!("\"r{index}\""))
                    .collect();
                let results = results.join(", ");
                format!(
                    "func.func @main(%x: tensor<?x8x6x7xf32>) -> ({types}) attributes {{
                       model.input_names = [\"x\"], model.output_names = [{results}]}} {{
                       {constants}{maker}{follower}
                       tfrt.return {names} : {types}
                     }}"
                )
            };
            let fused = open(&body(any, "%y"), true);
            let apart = open(&body(&format!("{any}, {any}"), "%y, %a"), true);
            let n_programs =
                |model: &Opened| model.text.matches("\"cpu.fused.elementwise\"").count();
            assert_eq!(n_programs(&fused), 0, "{follower} {}", fused.text.len());
            assert_eq!(n_programs(&apart), 1, "{follower} {}", apart.text.len());
            for rows in [1, 3] {
                let x = numbers(11, rows * 8 * 6 * 7);
                let shape = [rows, 8, 6, 7];
                assert_eq!(fused.run(&shape, &x), apart.run(&shape, &x), "{follower}");
            }
        }
    }
}
