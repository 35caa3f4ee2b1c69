//! A model by tract, optimised for the extents of its inputs.

use std::error::Error;

use tfrt_model_peers::{Elements, answer, arguments, inputs, timed};
use tract_linalg::multithread::{Executor, set_default_executor};
use tract_onnx::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = arguments()?;
    if arguments.n_threads > 1 {
        set_default_executor(Executor::multithread(arguments.n_threads));
    }
    let mut model = tract_onnx::onnx().model_for_path(&arguments.model)?;
    let mut values = tvec!();
    for (index, input) in inputs(&arguments.inputs)?.iter().enumerate() {
        let tensor = match &input.elements {
            Elements::F32(list) => Tensor::from_shape(&input.extents, list)?,
            Elements::I64(list) => Tensor::from_shape(&input.extents, list)?,
        };
        let fact = InferenceFact::dt_shape(tensor.datum_type(), tensor.shape());
        model.set_input_fact(index, fact)?;
        values.push(tensor.into_tvalue());
    }
    let model = model.into_optimized()?.into_runnable()?;
    answer(
        "tract 0.23.9",
        || {
            let results = model.run(values.clone())?;
            Ok(results[0].try_as_plain_ram()?.as_slice::<f32>()?.to_vec())
        },
        |n_times| Ok(timed(n_times, || model.run(values.clone()))?),
    )
}
