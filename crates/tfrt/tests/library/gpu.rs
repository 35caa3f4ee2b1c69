//! Models on a GPU, here a simulated one, which checks.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tfrt::gpu::driver::sim::{Policy, Sim, SimOptions};
use tfrt::gpu::{self, KERNELS};
use tfrt::input::Input;
use tfrt::ir::Source;
use tfrt::{OpenOptions, Runtime, Tensor};

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

#[test]
fn a_model_runs_on_a_gpu_and_the_rest_on_the_processor() {
    for policy in Policy::ALL {
        let runtime = Runtime::builder().op_kernels(KERNELS).build();
        let sim = Sim::new(SimOptions {
            policy,
            ..SimOptions::default()
        });
        gpu::add(runtime.host(), Arc::new(sim.clone()), 0).unwrap();
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
