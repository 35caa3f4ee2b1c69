//! Modules of StableHLO: what they give, which are refused, and where their weights come from.

mod dims;
mod refused;
mod results;
mod weights;

use tfrt::input::Input;
use tfrt::model::Datum;
use tfrt::tensor::Tensor;
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
