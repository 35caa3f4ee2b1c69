//! Modules of StableHLO, with the results that JAX gives; and texts that are wrong.

use std::fs;
use std::path::Path;

use tfrt::input::Input;
use tfrt::model::Datum;
use tfrt::tensor::math::number::Real;
use tfrt::tensor::{DenseHostTensor, Tensor};
use tfrt::{Model, Runtime};

fn open(runtime: &Runtime, text: &str) -> Result<Model, String> {
    let input = Input::from_bytes("module.mlir", text.as_bytes().to_vec());
    let input = input.map_err(|error| error.to_string())?;
    runtime
        .load_model(&input)
        .map_err(|error| error.to_string())
}

/// Returns the outputs of a model that takes nothing.
fn run(runtime: &Runtime, text: &str) -> Result<Vec<Tensor>, String> {
    call(runtime, &open(runtime, text)?, Vec::new())
}

fn call(runtime: &Runtime, model: &Model, inputs: Vec<Datum>) -> Result<Vec<Tensor>, String> {
    let outputs = model.call(&runtime.context(), inputs).wait();
    let outputs = outputs.map_err(|error| error.message().to_owned())?;
    let tensors = outputs.into_data().into_iter().map(|output| match output {
        Datum::Tensor(tensor) => Ok(tensor),
        other => Err(format!("found {}", other.kind())),
    });
    tensors.collect()
}

/// Returns the elements as numbers; complex ones as two.
fn numbers(tensor: &Tensor) -> Vec<f64> {
    use tfrt::tensor::DType;
    fn all<T: tfrt::tensor::Element>(
        tensor: &DenseHostTensor,
        of: impl Fn(&T) -> Vec<f64>,
    ) -> Vec<f64> {
        let reading = tensor.read().unwrap();
        reading
            .elements::<T>()
            .unwrap()
            .iter()
            .flat_map(of)
            .collect()
    }
    let dense = tensor.as_dense().unwrap();
    match dense.dtype() {
        DType::F64 => all(dense, |x: &f64| vec![*x]),
        DType::F32 => all(dense, |x: &f32| vec![f64::from(*x)]),
        DType::F16 => all(dense, |x: &tfrt::tensor::F16| vec![x.to_f64()]),
        DType::Bf16 => all(dense, |x: &tfrt::tensor::BF16| vec![x.to_f64()]),
        DType::I64 => all(dense, |x: &i64| vec![*x as f64]),
        DType::Ui64 => all(dense, |x: &u64| vec![*x as f64]),
        DType::I32 => all(dense, |x: &i32| vec![f64::from(*x)]),
        DType::Ui32 => all(dense, |x: &u32| vec![f64::from(*x)]),
        DType::I8 => all(dense, |x: &i8| vec![f64::from(*x)]),
        DType::Ui8 => all(dense, |x: &u8| vec![f64::from(*x)]),
        DType::I1 => all(dense, |x: &tfrt::tensor::Bool| {
            vec![f64::from(u8::from(bool::from(*x)))]
        }),
        DType::Complex64 => all(dense, |x: &tfrt::tensor::Complex<f32>| {
            vec![f64::from(x.real), f64::from(x.imaginary)]
        }),
        DType::Complex128 => all(dense, |x: &tfrt::tensor::Complex<f64>| {
            vec![x.real, x.imaginary]
        }),
        other => panic!("no number is read of {other}"),
    }
}

fn compare(found: &Tensor, wanted: &Tensor) -> Result<(), String> {
    if found.metadata() != wanted.metadata() {
        return Err(format!(
            "found {}, expected {}",
            found.metadata(),
            wanted.metadata()
        ));
    }
    let (found, wanted) = (numbers(found), numbers(wanted));
    let largest = wanted
        .iter()
        .filter(|x| x.is_finite())
        .fold(0.0, |most: f64, x| most.max(x.abs()));
    for (found, wanted) in found.iter().zip(&wanted) {
        let same = found == wanted || (found.is_nan() && wanted.is_nan());
        if !same && (found - wanted).abs() > 2e-5 * largest.max(1e-3) {
            return Err(format!("found {found}, expected {wanted}"));
        }
    }
    Ok(())
}

#[test]
fn modules_give_what_jax_gives() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/stablehlo/modules.stablehlo");
    let text = fs::read_to_string(path).unwrap();
    let runtime = Runtime::new();
    let (mut failed, mut n) = (Vec::new(), 0);
    for chunk in text.split("// -----\n") {
        n += 1;
        let name = chunk.lines().next().unwrap_or_default();
        let compared = run(&runtime, chunk).and_then(|outputs| {
            let (found, wanted) = outputs.split_at(outputs.len() / 2);
            found
                .iter()
                .zip(wanted)
                .try_for_each(|(found, wanted)| compare(found, wanted))
        });
        if let Err(reason) = compared {
            failed.push(format!("{name}: {reason}"));
        }
    }
    assert!(
        failed.is_empty(),
        "{} of {n}:\n{}",
        failed.len(),
        failed.join("\n")
    );
    assert!(n >= 100, "{n} modules");
}

#[test]
fn modules_of_unknown_extents_give_what_jax_gives_of_each_extent() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/stablehlo/dynamic.stablehlo");
    let text = fs::read_to_string(path).unwrap();
    let runtime = Runtime::new();
    let (mut failed, mut n) = (Vec::new(), 0);
    for case in text.split("// =====\n") {
        n += 1;
        let name = case.lines().next().unwrap_or_default();
        let mut modules = case.split("// -----\n");
        let model = match open(&runtime, modules.next().unwrap()) {
            Ok(model) => model,
            Err(reason) => {
                failed.push(format!("{name}: {reason}"));
                continue;
            }
        };
        // The same program takes all of them.
        for values in modules {
            let values = run(&runtime, values).unwrap();
            let (inputs, wanted) = values.split_at(model.inputs().len());
            let inputs = inputs.iter().cloned().map(Datum::Tensor).collect();
            let compared = call(&runtime, &model, inputs).and_then(|found| {
                assert_eq!(found.len(), wanted.len(), "{name}");
                let mut pairs = found.iter().zip(wanted);
                pairs.try_for_each(|(found, wanted)| compare(found, wanted))
            });
            if let Err(reason) = compared {
                let shape = values[0].metadata();
                failed.push(format!("{name} of {shape}: {reason}"));
            }
        }
    }
    assert!(
        failed.is_empty(),
        "{} of {n}:\n{}",
        failed.len(),
        failed.join("\n")
    );
    assert!(n >= 30, "{n} modules");
}

/// Wraps the body of a function of two tensors.
fn function(body: &str) -> String {
    format!(
        "func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {{\n  {body}\n  return %r : tensor<2x3xf32>\n}}\n"
    )
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let runtime = Runtime::new();
    for (body, place, message) in [
        (
            "%r = stablehlo.ad %x, %y : tensor<2x3xf32>",
            "2:8",
            "'stablehlo.ad'",
        ),
        (
            "%r = stablehlo.add %x, %x, %y : tensor<2x3xf32>",
            "2:8",
            "3",
        ),
        (
            "%r = \"stablehlo.all_reduce\"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>",
            "2:8",
            "is no operation that is run",
        ),
        (
            "%r = stablehlo.transpose %x, dims = [0, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>",
            "2:8",
            "twice",
        ),
        (
            "%r = stablehlo.transpose %x, dims = [0, 7] : (tensor<2x3xf32>) -> tensor<2x3xf32>",
            "2:8",
            "rank 2",
        ),
        (
            "%r = stablehlo.slice %x [0:5, 0:3] : (tensor<2x3xf32>) -> tensor<2x3xf32>",
            "2:8",
            "0:5:1",
        ),
        (
            "%r = stablehlo.reverse %x, dims = [1, 1] : tensor<2x3xf32>",
            "2:8",
            "twice",
        ),
        (
            "%r = \"stablehlo.transpose\"(%x) {permutation = \"no\"} : (tensor<2x3xf32>) -> tensor<2x3xf32>",
            "2:8",
            "permutation",
        ),
        (
            "%r = stablehlo.constant dense<[1.0, 2.0]> : tensor<2x3xf32>",
            "2:",
            "shape",
        ),
        (
            "%r = stablehlo.constant dense<\"0x00\"> : tensor<2x3xf32>",
            "2:",
            "size",
        ),
        (
            "%r = stablehlo.compare SAME, %x, %y : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>",
            "2:8",
            "SAME",
        ),
        (
            "%r = func.call @other(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>\n  %q = stablehlo.add %x, %x : tensor<2x3xf32>",
            "2:18",
            "other",
        ),
    ] {
        let told = open(&runtime, &function(body))
            .err()
            .unwrap_or_else(|| panic!("{body}: it is opened"));
        let first = told.lines().next().unwrap_or_default();
        assert!(
            first.contains(&format!("module.mlir:{place}")) && told.contains(message),
            "{body}:\n{told}"
        );
    }
}

#[test]
fn functions_that_call_themselves_are_refused() {
    let runtime = Runtime::new();
    let text = "func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %r = func.call @loop(%x) : (tensor<f32>) -> tensor<f32>
  %q = stablehlo.add %r, %r : tensor<f32>
  return %q : tensor<f32>
}
func.func private @loop(%x: tensor<f32>) -> tensor<f32> {
  %r = func.call @loop(%x) : (tensor<f32>) -> tensor<f32>
  return %r : tensor<f32>
}
";
    let told = open(&runtime, text).unwrap_err();
    assert!(
        told.contains("7:8") && told.contains("calls itself"),
        "{told}"
    );
    // A chain of 20,000 calls, none of which is a cycle.
    let mut text = String::from(
        "func.func @main(%x: tensor<f32>) -> tensor<f32> {\n  %r = func.call @f0(%x) : (tensor<f32>) -> tensor<f32>\n  %q = stablehlo.add %r, %r : tensor<f32>\n  return %q : tensor<f32>\n}\n",
    );
    for index in 0..20_000 {
        let next = index + 1;
        text.push_str(&format!(
            "func.func private @f{index}(%x: tensor<f32>) -> tensor<f32> {{\n  %r = func.call @f{next}(%x) : (tensor<f32>) -> tensor<f32>\n  return %r : tensor<f32>\n}}\n"
        ));
    }
    text.push_str("func.func private @f20000(%x: tensor<f32>) -> tensor<f32> {\n  return %x : tensor<f32>\n}\n");
    let told = open(&runtime, &text).unwrap_err();
    assert!(told.contains("nested deeper"), "{told}");
}

#[test]
fn bytecode_is_refused_with_the_line_that_prints_it() {
    let input = Input::from_bytes("module.mlirbc", b"ML\xefR\x01\x02".to_vec()).unwrap();
    let told = Runtime::new().load_model(&input).unwrap_err().to_string();
    assert!(told.contains("deserialize_portable_artifact"), "{told}");
}

#[test]
fn modules_without_operations_are_told_by_the_attributes_of_jax() {
    let text = "module @jit_f {\n  func.func public @main(%arg0: tensor<?xf32> {mhlo.sharding = \"\"}) -> tensor<?xf32> {\n    \
                return %arg0 : tensor<?xf32>\n  }\n}\n";
    let runtime = Runtime::new();
    let model = open(&runtime, text).unwrap();
    let x = tfrt::Tensor::from_slice(&[2], &[1.0_f32, 2.0]).unwrap();
    let outputs = model.call(&runtime.context(), [("arg0", x)]).wait();
    assert_eq!(
        outputs
            .unwrap()
            .tensor("result0")
            .unwrap()
            .to_vec::<f32>()
            .unwrap(),
        [1.0, 2.0]
    );
}

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
