//! Messages of a request for inference as tensors, and tensors as messages.

use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use serde_json::Value;
use tfrt_tensor::{Bool, DType, Element, Tensor, TensorMetadata};

use super::messages::{
    Contents, InferRequest, InferResponse, InferTensor, ParameterChoice, Parameters,
};
use crate::datatype::{name_of, shown};
use crate::model::Loaded;
use crate::refusal::Refusal;
use crate::v2::data::{allocator, dense};
use crate::v2::parameters::{self, refuse_unknown_ways};
use crate::v2::tensors::{
    check_input, check_shape, extents_of, from_bytes, nameless, strings_of, to_bytes,
};

/// Returns parameters as HTTP has them.
fn parameters_of(given: &Parameters) -> parameters::Parameters {
    let value = |choice: &ParameterChoice| match choice {
        ParameterChoice::Bool(value) => Value::from(*value),
        ParameterChoice::Int64(value) => Value::from(*value),
        ParameterChoice::String(value) => Value::from(&**value),
        ParameterChoice::Double(value) => Value::from(*value),
        ParameterChoice::Uint64(value) => Value::from(*value),
    };
    let entries = given.iter();
    entries
        .filter_map(|(name, own)| Some((name.clone(), value(own.choice.as_ref()?))))
        .collect()
}

/// Returns the time that the parameters of a request give it.
pub(super) fn timeout(request: &InferRequest) -> Result<Option<Duration>, Refusal> {
    parameters::timeout(&parameters_of(&request.parameters))
}

/// Makes the tensors of the inputs.
pub(super) fn inputs(
    model: &Loaded,
    request: &mut InferRequest,
) -> Result<Vec<(String, Tensor)>, Refusal> {
    let raw = std::mem::take(&mut request.raw_input_contents);
    let n_inputs = request.inputs.len();
    let is_raw = !raw.is_empty();
    if is_raw && raw.len() != n_inputs {
        return Err(Refusal::invalid(format!(
            "expected as many `raw_input_contents` as inputs, found {} for {n_inputs}",
            raw.len()
        )));
    }
    let mut raw = raw.into_iter();
    let mut tensors = Vec::with_capacity(n_inputs);
    for input in std::mem::take(&mut request.inputs) {
        let name = input.name;
        refuse_unknown_ways(&parameters_of(&input.parameters))?;
        let dtype = check_input(model.description(), &name, &input.datatype)?;
        let tensor = match (raw.next(), input.contents) {
            (Some(bytes), None) => from_bytes(&name, dtype, &input.shape, bytes, allocator())?,
            (None, contents) => {
                let (metadata, n_elements) = check_shape(&name, dtype, &input.shape)?;
                typed(&name, metadata, n_elements, contents.unwrap_or_default())?
            }
            (Some(_), Some(_)) => {
                return Err(Refusal::invalid(format!(
                    "input '{name}': expected `contents` or `raw_input_contents`, found both"
                )));
            }
        };
        tensors.push((name, tensor));
    }
    Ok(tensors)
}

/// Makes a tensor of the field of its type, which must be the only one with elements.
fn typed(
    name: &str,
    metadata: TensorMetadata,
    n_elements: usize,
    contents: Contents,
) -> Result<Tensor, Refusal> {
    let dtype = metadata.dtype;
    let found = [
        contents.bools.len(),
        contents.ints.len(),
        contents.int64s.len(),
        contents.uints.len(),
        contents.uint64s.len(),
        contents.floats.len(),
        contents.doubles.len(),
        contents.strings.len(),
    ];
    let own = match dtype {
        DType::I1 => 0,
        DType::I8 | DType::I16 | DType::I32 => 1,
        DType::I64 => 2,
        DType::Ui8 | DType::Ui16 | DType::Ui32 => 3,
        DType::Ui64 => 4,
        DType::F32 => 5,
        DType::F64 => 6,
        DType::String => 7,
        _ => {
            return Err(Refusal::invalid(format!(
                "input '{name}': elements of {} are sent as `raw_input_contents`",
                shown(dtype)
            )));
        }
    };
    let others: usize = found.iter().sum::<usize>() - found[own];
    if others > 0 {
        return Err(Refusal::invalid(format!(
            "input '{name}': `contents` has {others} elements in fields that are not for {}",
            shown(dtype)
        )));
    }
    if found[own] != n_elements {
        return Err(Refusal::invalid(format!(
            "input '{name}': expected {n_elements} elements by its shape, found {} in `contents`",
            found[own]
        )));
    }
    match dtype {
        DType::I1 => dense(
            metadata,
            contents.bools.into_iter().map(Bool::from).collect(),
        ),
        DType::I8 => narrow::<i32, i8>(name, metadata, contents.ints),
        DType::I16 => narrow::<i32, i16>(name, metadata, contents.ints),
        DType::I32 => dense(metadata, contents.ints),
        DType::I64 => dense(metadata, contents.int64s),
        DType::Ui8 => narrow::<u32, u8>(name, metadata, contents.uints),
        DType::Ui16 => narrow::<u32, u16>(name, metadata, contents.uints),
        DType::Ui32 => dense(metadata, contents.uints),
        DType::Ui64 => dense(metadata, contents.uint64s),
        DType::F32 => dense(metadata, contents.floats),
        DType::F64 => dense(metadata, contents.doubles),
        _ => strings_of(metadata, contents.strings),
    }
}

fn narrow<W: Copy + std::fmt::Display, T: Element + TryFrom<W>>(
    name: &str,
    metadata: TensorMetadata,
    elements: Vec<W>,
) -> Result<Tensor, Refusal> {
    let datatype = shown(metadata.dtype);
    let converted = elements.into_iter().enumerate().map(|(index, element)| {
        T::try_from(element).map_err(|_| {
            Refusal::invalid(format!(
                "input '{name}': element {index} of `contents`: expected {datatype}, found {element}"
            ))
        })
    });
    dense(metadata, converted.collect::<Result<Vec<T>, Refusal>>()?)
}

/// Finds the places of the outputs that a request wants: all if it names none.
pub(super) fn wanted(model: &Loaded, request: &InferRequest) -> Result<Vec<usize>, Refusal> {
    let description = model.description();
    if request.outputs.is_empty() {
        return Ok((0..description.outputs.len()).collect());
    }
    let mut wanted = Vec::with_capacity(request.outputs.len());
    for output in &request.outputs {
        refuse_unknown_ways(&parameters_of(&output.parameters))?;
        let index = description.output(&output.name).ok_or_else(|| {
            Refusal::invalid(format!(
                "unexpected inference output '{}' for model '{}'",
                output.name.escape_debug(),
                model.name
            ))
        })?;
        if wanted.contains(&index) {
            let name = &output.name;
            return Err(Refusal::invalid(format!(
                "output '{name}' is asked for twice"
            )));
        }
        wanted.push(index);
    }
    Ok(wanted)
}

/// Writes the answer with these outputs of a call.
pub(super) fn response(
    model: &Loaded,
    id: String,
    wanted: &[usize],
    outputs: &[Tensor],
) -> Result<InferResponse, Refusal> {
    let mut response = InferResponse {
        model_name: model.name.to_string(),
        model_version: model.version.to_string(),
        id,
        ..InferResponse::default()
    };
    for index in wanted {
        let (name, tensor) = (&model.description().outputs[*index].name, &outputs[*index]);
        let dtype = tensor.metadata().dtype;
        let datatype = name_of(dtype).ok_or_else(|| nameless(name, dtype))?;
        response.outputs.push(InferTensor {
            name: name.clone(),
            datatype: datatype.to_owned(),
            shape: extents_of(tensor),
            ..InferTensor::default()
        });
        let bytes: Bytes = to_bytes(name, tensor)?;
        response.raw_output_contents.push(bytes);
    }
    Ok(response)
}

/// Returns a message with inputs.
pub(super) fn example() -> Vec<u8> {
    let tensor = |name: &str, datatype: &str, shape: &[i64]| InferTensor {
        name: name.to_owned(),
        datatype: datatype.to_owned(),
        shape: shape.to_vec(),
        ..InferTensor::default()
    };
    let with = |tensor, contents| InferTensor {
        contents: Some(contents),
        ..tensor
    };
    let bytes = Contents {
        ints: vec![-1, 127],
        ..Contents::default()
    };
    let strings = Contents {
        strings: vec![b"a".to_vec(), Vec::new()],
        ..Contents::default()
    };
    let request = InferRequest {
        model_name: "m".to_owned(),
        inputs: vec![
            with(tensor("i", "INT8", &[2]), bytes),
            with(tensor("s", "BYTES", &[1, 2]), strings),
        ],
        ..InferRequest::default()
    };
    request.encode_to_vec()
}
