//! Models on a GPU, here a simulated one, which checks.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tfrt::gpu::driver::sim::{Policy, Sim, SimOptions};
use tfrt::gpu::{self, KERNELS};
use tfrt::input::Input;
use tfrt::ir::Source;
use tfrt::{OpenError, OpenOptions, Placements, Runtime, Tensor};

mod graphs;
mod wrong;

/// A model of which all but the cosine is for the GPU.
const MODEL: &str = r#"
func.func @main(%x: tensor<?x3xf32>) -> tensor<?x2xf32> attributes {
    model.input_names = ["x"], model.output_names = ["y"], model.input_dims = [["N", 3]]} {
  %w = "onnx.Constant"() {value = dense<[[0.5, -1.0], [2.0, 0.25], [-0.75, 1.0]]> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
  %b = "onnx.Constant"() {value = dense<[0.125, -0.5]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "graph.dot"(%x, %w) : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>
  %1 = "graph.add"(%0, %b) : (tensor<?x2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  %2 = "graph.relu"(%1) : (tensor<?x2xf32>) -> tensor<?x2xf32>
  %3 = "graph.cos"(%2) : (tensor<?x2xf32>) -> tensor<?x2xf32>
  %y = "graph.softmax"(%3) {axis = 1 : i64} : (tensor<?x2xf32>) -> tensor<?x2xf32>
  tfrt.return %y : tensor<?x2xf32>
}"#;

/// A model of nodes whose types kernels of GPUs take; for some there is none all the same.
const REFUSED: &str = r#"
func.func @main(%x: tensor<?x3xf32>) -> (tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>) attributes {
    model.input_names = ["x"], model.output_names = ["y", "z", "mean"], model.input_dims = [["N", 3]]} {
  %s = "onnx.Constant"() {value = dense<[0.5, -1.0, 2.0]> : tensor<3xf32>} : () -> tensor<3xf32>
  %0 = "graph.relu"(%x) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %1 = "graph.reduce"(%0) {kind = "log_sum_exp", axes = [1 : i64]} : (tensor<?x3xf32>) -> tensor<?x1xf32>
  %y = "graph.reduce"(%1) {kind = "sum", axes = [1 : i64]} : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %z, %mean = "graph.norm"(%0, %s) {kind = "layer"} : (tensor<?x3xf32>, tensor<3xf32>) -> (tensor<?x3xf32>, tensor<?x1xf32>)
  tfrt.return %y, %z, %mean : tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>
}"#;

/// A model of images: two convolutions side by side, joined, pooled and made a list.
const IMAGES: &str = r#"
func.func @main(%x: tensor<2x3x6x5xf32>) -> tensor<2x?xf32> attributes {
    model.input_names = ["x"], model.output_names = ["y"], model.input_dims = [[2, 3, 6, 5]]} {
  %f = "onnx.Constant"() {value = dense<0.25> : tensor<2x3x1x1xf32>} : () -> tensor<2x3x1x1xf32>
  %g = "onnx.Constant"() {value = dense<-0.125> : tensor<4x3x3x3xf32>} : () -> tensor<4x3x3x3xf32>
  %b = "onnx.Constant"() {value = dense<[0.5, -0.5, 1.0, 0.0]> : tensor<4xf32>} : () -> tensor<4xf32>
  %n = "onnx.Constant"() {value = dense<[2, -1]> : tensor<2xi64>} : () -> tensor<2xi64>
  %0 = "graph.conv"(%x, %f) : (tensor<2x3x6x5xf32>, tensor<2x3x1x1xf32>) -> tensor<2x2x6x5xf32>
  %1 = "graph.conv"(%x, %g, %b) {pads = [1, 1, 1, 1]} : (tensor<2x3x6x5xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>) -> tensor<2x4x6x5xf32>
  %2 = "graph.concat"(%0, %1) {axis = 1 : i64} : (tensor<2x2x6x5xf32>, tensor<2x4x6x5xf32>) -> tensor<2x6x6x5xf32>
  %3 = "graph.relu"(%2) : (tensor<2x6x6x5xf32>) -> tensor<2x6x6x5xf32>
  %4 = "graph.pool"(%3) {kind = "max", kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1 : i64} : (tensor<2x6x6x5xf32>) -> tensor<2x6x3x2xf32>
  %5 = "graph.reshape"(%4, %n) : (tensor<2x6x3x2xf32>, tensor<2xi64>) -> tensor<2x?xf32>
  %y = "graph.softmax"(%5) {axis = 1 : i64} : (tensor<2x?xf32>) -> tensor<2x?xf32>
  tfrt.return %y : tensor<2x?xf32>
}"#;

/// A model of pointwise nodes in `f32` and `f16`, with a bias, bounds and a choice, some of which two others use.
const CHAINS: &str = r#"
func.func @main(%x: tensor<?x3xf32>) -> (tensor<?x3xf32>, tensor<?x3xf32>) attributes {
    model.input_names = ["x"], model.output_names = ["y", "z"], model.input_dims = [["N", 3]]} {
  %b = "onnx.Constant"() {value = dense<[0.5, -1.0, 2.0]> : tensor<3xf32>} : () -> tensor<3xf32>
  %two = "onnx.Constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %one = "onnx.Constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "graph.mul"(%x, %two) : (tensor<?x3xf32>, tensor<f32>) -> tensor<?x3xf32>
  %1 = "graph.add"(%0, %b) : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
  %2 = "graph.erf"(%1) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %3 = "graph.add"(%2, %one) : (tensor<?x3xf32>, tensor<f32>) -> tensor<?x3xf32>
  %4 = "graph.mul"(%3, %1) : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  %5 = "graph.gt"(%4, %one) : (tensor<?x3xf32>, tensor<f32>) -> tensor<?x3xi1>
  %y = "graph.select"(%5, %4, %x) : (tensor<?x3xi1>, tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  %h = "graph.cast"(%x) {to = f16} : (tensor<?x3xf32>) -> tensor<?x3xf16>
  %6 = "graph.sigmoid"(%h) : (tensor<?x3xf16>) -> tensor<?x3xf16>
  %7 = "graph.mul"(%6, %h) : (tensor<?x3xf16>, tensor<?x3xf16>) -> tensor<?x3xf16>
  %z = "graph.cast"(%7) {to = f32} : (tensor<?x3xf16>) -> tensor<?x3xf32>
  tfrt.return %y, %z : tensor<?x3xf32>, tensor<?x3xf32>
}"#;

/// Returns a runtime that has a simulated GPU, which picks the order of its commands by a policy.
fn simulated(policy: Policy) -> (Runtime, Sim) {
    let runtime = Runtime::builder().op_kernels(KERNELS).build();
    let sim = Sim::new(SimOptions {
        policy,
        ..SimOptions::default()
    });
    gpu::add(runtime.host(), Arc::new(sim.clone()), 0).unwrap();
    (runtime, sim)
}

#[test]
fn chains_of_pointwise_nodes_run_as_programs_on_a_gpu() {
    for policy in Policy::ALL {
        let (runtime, sim) = simulated(policy);
        let input = Input::Text(Source::new("chains.mlir", CHAINS));
        let call = |options: &OpenOptions, n_rows: usize| {
            let model = runtime.load_model_with(&input, options).unwrap();
            let x = (0..3 * n_rows).map(|at| (at * 37 % 101) as f32 / 25.0 - 2.0);
            let x = Tensor::from_vec(&[n_rows, 3], x.collect::<Vec<f32>>()).unwrap();
            let outputs = model.call(&runtime.context(), [("x", x)]).wait().unwrap();
            ["y", "z"].map(|name| outputs.tensor(name).unwrap().to_vec::<f32>().unwrap())
        };
        let options = OpenOptions::new().device("GPU:0").strict_device(true);
        for n_rows in [1, 2, 300, 0] {
            let here = call(&OpenOptions::new(), n_rows);
            let there = call(&options, n_rows);
            assert_eq!([here[0].len(), here[1].len()], [3 * n_rows; 2]);
            for (here, there) in here.iter().flatten().zip(there.iter().flatten()) {
                assert!((here - there).abs() < 1e-6, "{policy:?}: {here}, {there}");
            }
        }
        assert_eq!(sim.findings(), [], "{policy:?}");
    }
}

#[test]
fn a_model_of_images_runs_on_a_gpu_as_on_the_processor() {
    for policy in Policy::ALL {
        let (runtime, sim) = simulated(policy);
        let input = Input::Text(Source::new("images.mlir", IMAGES));
        let call = |options: &OpenOptions| {
            let model = runtime.load_model_with(&input, options).unwrap();
            let x: Vec<f32> = (0..180)
                .map(|at| (at * 37 % 101) as f32 / 50.0 - 1.0)
                .collect();
            let x = Tensor::from_vec(&[2, 3, 6, 5], x).unwrap();
            let outputs = model.call(&runtime.context(), [("x", x)]).wait().unwrap();
            outputs.tensor("y").unwrap().to_vec::<f32>().unwrap()
        };
        let placements = Placements::default();
        let options = OpenOptions::new()
            .device("GPU:0")
            .strict_device(true)
            .placements(placements.clone());
        let (here, there) = (call(&OpenOptions::new()), call(&options));
        assert_eq!(here.len(), 72);
        for (here, there) in here.iter().zip(&there) {
            assert!((here - there).abs() < 1e-6, "{policy:?}: {here}, {there}");
        }
        assert_eq!(sim.findings(), [], "{policy:?}");
        let report = placements.take().pop().unwrap();
        assert_eq!((report.n_copies_there, report.n_copies_back), (1, 1));
    }
}

#[test]
fn what_kernels_refuse_runs_on_the_processor() {
    let runtime = Runtime::builder().op_kernels(KERNELS).build();
    let sim = Sim::new(SimOptions::default());
    gpu::add(runtime.host(), Arc::new(sim.clone()), 0).unwrap();
    let input = Input::Text(Source::new("gpu.mlir", REFUSED));
    let call = |options: &OpenOptions| {
        let model = runtime.load_model_with(&input, options).unwrap();
        let x = [1.0_f32, -2.0, 0.5, 0.25, 3.0, -1.5];
        let x = Tensor::from_vec(&[2, 3], x.to_vec()).unwrap();
        let outputs = model.call(&runtime.context(), [("x", x)]).wait().unwrap();
        ["y", "z", "mean"].map(|name| outputs.tensor(name).unwrap().to_vec::<f32>().unwrap())
    };
    let placements = Placements::default();
    let options = OpenOptions::new()
        .device("GPU:0")
        .placements(placements.clone());
    let (here, there) = (call(&OpenOptions::new()), call(&options));
    for (here, there) in here.iter().flatten().zip(there.iter().flatten()) {
        assert!((here - there).abs() < 1e-6, "{here}, {there}");
    }
    assert_eq!(sim.findings(), []);
    let report = placements.take().pop().unwrap();
    let on_host: Vec<String> = report.on_host.iter().map(ToString::to_string).collect();
    assert_eq!(on_host, ["norm layer (f32, f32)"]);
    assert_eq!((report.device.as_str(), report.n_placed), ("GPU:0", 3));
    assert_eq!((report.n_copies_there, report.n_copies_back), (1, 2));

    let refused = runtime.load_model_with(&input, &options.strict_device(true));
    let Err(OpenError::Text(errors)) = refused else {
        panic!("expected the model to be refused, found {refused:?}");
    };
    let message = errors.iter().next().unwrap().message();
    assert_eq!(
        message,
        "1 node has no kernel on GPU:0: norm layer (f32, f32)"
    );
}

#[test]
fn a_model_runs_on_a_gpu_and_the_rest_on_the_processor() {
    for policy in Policy::ALL {
        let (runtime, sim) = simulated(policy);
        let input = Input::Text(Source::new("gpu.mlir", MODEL));
        let call = |options: &OpenOptions| {
            let model = runtime.load_model_with(&input, options).unwrap();
            let x = [1.0_f32, -2.0, 0.5, 0.25, 3.0, -1.5];
            let x = Tensor::from_vec(&[2, 3], x.to_vec()).unwrap();
            let outputs = model.call(&runtime.context(), [("x", x)]).wait().unwrap();
            outputs.tensor("y").unwrap().to_vec::<f32>().unwrap()
        };
        let here = call(&OpenOptions::new());
        let there = call(&OpenOptions::new().device("GPU:0"));
        let near = |(here, there): (&f32, &f32)| (here - there).abs() < 1e-6;
        assert!(here.iter().zip(&there).all(near), "{here:?}, {there:?}");
        runtime.quiesce().unwrap();
        assert_eq!(sim.findings(), [], "{policy:?}");
        drop(runtime);
        // The device's thread may still give back a pinned buffer, and then the device itself.
        let begin = Instant::now();
        while !sim.leaks().is_empty() && begin.elapsed() < Duration::from_secs(10) {
            thread::yield_now();
        }
        assert_eq!(sim.leaks(), [""; 0], "{policy:?}");
        assert_eq!(sim.findings(), [], "{policy:?}");
    }
}
