//! A model by candle. Its weights become tensors once, not in each call, as its function for models does by itself.

use std::collections::HashMap;
use std::error::Error;

use candle_core::{Device, Tensor};
use candle_onnx::onnx::GraphProto;
use tfrt_model_peers::{Elements, answer, arguments, inputs, timed};

fn main() -> Result<(), Box<dyn Error>> {
    // How many threads it uses is told by `RAYON_NUM_THREADS`, which it reads itself.
    let arguments = arguments()?;
    let mut model = candle_onnx::read_file(&arguments.model)?;
    let graph = model.graph.as_mut().ok_or("the model has no graph")?;
    let mut values = weights(graph)?;
    for input in inputs(&arguments.inputs)? {
        let tensor = match input.elements {
            Elements::F32(list) => Tensor::from_vec(list, input.extents, &Device::Cpu)?,
            Elements::I64(list) => Tensor::from_vec(list, input.extents, &Device::Cpu)?,
        };
        values.insert(input.name, tensor);
    }
    let first = graph
        .output
        .first()
        .ok_or("the model has no output")?
        .name
        .clone();
    let call = || candle_onnx::simple_eval(&model, values.clone());
    answer(
        "candle 0.11.1",
        || {
            let results = call()?;
            let result = results.get(&first).ok_or("the result is missing")?;
            Ok(result.flatten_all()?.to_vec1()?)
        },
        |n_times| Ok(timed(n_times, call)?),
    )
}

/// Takes the weights out of a graph: what it would make anew in each call becomes values that calls are given.
fn weights(graph: &mut GraphProto) -> Result<HashMap<String, Tensor>, Box<dyn Error>> {
    let lists = std::mem::take(&mut graph.initializer);
    let names: Vec<String> = lists.iter().map(|tensor| tensor.name.clone()).collect();
    graph.input.retain(|input| !names.contains(&input.name));
    let named = lists.iter().map(|tensor| {
        let made = candle_onnx::eval::get_tensor(tensor, &tensor.name)?;
        Ok((tensor.name.clone(), made))
    });
    named.collect()
}
