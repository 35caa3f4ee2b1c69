//! Weights in files that take the place of arguments.

use std::fs;
use std::path::Path;

use tfrt::input::Input;
use tfrt::tensor::DenseHostTensor;
use tfrt::{Model, Runtime};

/// A module whose weights are arguments with the names that JAX gives them.
const OF_WEIGHTS: &str = r##"module @jit_apply attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<2xf32> loc("p['params']['Dense_0']['bias']"), %arg1: tensor<3x2xf32> loc("p['params']['Dense_0']['kernel']"), %arg2: tensor<2xf32> loc("p['params']['Dense_1']['bias']"), %arg3: tensor<?x3xf32> loc("x")) -> (tensor<?x2xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.dot_general %arg3, %arg1, contracting_dims = [1] x [0] : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32> loc("model.py":6:20 to :35)
    %1 = stablehlo.add %arg0, %arg2 : tensor<2xf32> loc("linear.py":287:8 to 292:5)
    %2 = stablehlo.get_dimension_size %0, dim = 0 : (tensor<?x2xf32>) -> tensor<i32>
    %3 = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.constant dense<2> : tensor<1xi32>
    %5 = stablehlo.concatenate %3, %4, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %6 = stablehlo.dynamic_broadcast_in_dim %1, %5, dims = [1] : (tensor<2xf32>, tensor<2xi32>) -> tensor<?x2xf32>
    %7 = stablehlo.add %0, %6 : tensor<?x2xf32>
    return %7 : tensor<?x2xf32>
  }
}
"##;

/// Opens that module with files of weights, each of tensors by their names; returns the model, or what is told.
fn open_with_weights(
    runtime: &Runtime,
    name: &str,
    files: &[&[(&str, &[usize])]],
) -> Result<Model, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    let mut options = tfrt::OpenOptions::new();
    for (index, tensors) in files.iter().enumerate() {
        let mut stored = Vec::new();
        for (name, extents) in *tensors {
            let n: usize = extents.iter().product();
            let elements: Vec<f32> = (0..n).map(|at| at as f32 + 1.0).collect();
            let allocator = runtime.host().allocator();
            let tensor = DenseHostTensor::from_slice(allocator, extents, &elements).unwrap();
            stored.push((*name, tensor));
        }
        let pairs = stored.iter().map(|(name, tensor)| (*name, tensor));
        let path = folder.join(format!("{index}.safetensors"));
        fs::write(&path, tfrt::tensor::safetensors::write(pairs).unwrap()).unwrap();
        options = options.weights(path);
    }
    let input = Input::from_bytes("module.mlir", OF_WEIGHTS.as_bytes().to_vec()).unwrap();
    let model = runtime.load_model_with(&input, &options);
    model.map_err(|error| error.to_string())
}

#[test]
fn weights_in_files_take_the_place_of_arguments() {
    let runtime = Runtime::new();
    let model = open_with_weights(
        &runtime,
        "weights",
        &[
            &[
                ("params.Dense_0.kernel", &[3, 2]),
                ("Dense_0/bias", &[2]),
                ("params.Dense_7.kernel", &[1]),
            ],
            &[("p['params']['Dense_1']['bias']", &[2])],
        ],
    )
    .unwrap();
    let names: Vec<&str> = model.inputs().iter().map(|input| &*input.name).collect();
    assert_eq!(names, ["x"]);
    let x = tfrt::Tensor::from_slice(&[2, 3], &[1.0_f32, 0.0, 0.0, 1.0, 1.0, 1.0]).unwrap();
    let outputs = model.call(&runtime.context(), [("x", x)]).wait();
    let found = outputs.unwrap().tensor("result").unwrap().to_vec::<f32>();
    assert_eq!(found.unwrap(), [3.0, 6.0, 11.0, 16.0]);
    // Others stay inputs.
    let model =
        open_with_weights(&runtime, "some_weights", &[&[("Dense_0.kernel", &[3, 2])]]).unwrap();
    assert_eq!(model.inputs().len(), 3);
}

#[test]
fn weights_that_do_not_fit_are_told_with_both_names() {
    for (name, files, parts) in [
        (
            "of_another_shape",
            &[("Dense_0.kernel", &[2, 3][..])][..],
            ["Dense_0.kernel", "tensor<2x3xf32>", "tensor<3x2xf32>"],
        ),
        (
            "of_several",
            &[("bias", &[2][..])],
            ["'bias'", "['Dense_0']['bias']", "['Dense_1']['bias']"],
        ),
        (
            "of_none",
            &[("head.kernel", &[2][..])],
            ["none of the weights", "Dense_0", "debug_info"],
        ),
        (
            "of_one_twice",
            &[("Dense_0.bias", &[2][..]), ("params.Dense_0.bias", &[2])],
            ["Dense_0.bias", "params.Dense_0.bias", "both"],
        ),
    ] {
        let told = open_with_weights(&Runtime::new(), name, &[files]).unwrap_err();
        assert!(
            parts.iter().all(|part| told.contains(part)),
            "{name}: {told}"
        );
    }
    let options = tfrt::OpenOptions::new().weights("no/such.safetensors");
    let input = Input::from_bytes("module.mlir", OF_WEIGHTS.as_bytes().to_vec()).unwrap();
    let told = Runtime::new()
        .load_model_with(&input, &options)
        .unwrap_err();
    assert!(told.to_string().contains("no/such.safetensors"), "{told}");
}
