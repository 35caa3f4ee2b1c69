//! A request for inference as HTTP has it: JSON, behind which elements of inputs may stand as they are.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use tfrt_tensor::{DType, Tensor};

use super::data;
use super::parameters::{Few, Parameters, flag, refuse_unknown_ways, timeout};
use super::tensors::{check_input, check_shape, from_bytes};
use crate::model::Loaded;
use crate::refusal::Refusal;

/// A request that was read.
pub(super) struct InferRequest {
    pub id: Option<String>,
    pub timeout: Option<Duration>,
    pub inputs: Vec<(String, Tensor)>,
    pub outputs: Vec<Wanted>,
}

/// An output that the client wants.
pub(super) struct Wanted {
    pub index: usize,
    /// Whether its elements are wanted as they are, and not as JSON.
    pub is_binary: bool,
}

#[derive(Deserialize)]
struct Document<'b> {
    #[serde(borrow, default)]
    id: Option<Cow<'b, str>>,
    #[serde(default)]
    parameters: Option<Parameters>,
    #[serde(borrow)]
    inputs: Few<InputDocument<'b>>,
    #[serde(borrow, default)]
    outputs: Option<Few<OutputDocument<'b>>>,
}

#[derive(Deserialize)]
struct InputDocument<'b> {
    #[serde(borrow)]
    name: Cow<'b, str>,
    shape: Few<i64>,
    #[serde(borrow)]
    datatype: Cow<'b, str>,
    #[serde(default)]
    parameters: Option<Parameters>,
    #[serde(borrow, default)]
    data: Option<&'b RawValue>,
}

#[derive(Deserialize)]
struct OutputDocument<'b> {
    #[serde(borrow)]
    name: Cow<'b, str>,
    #[serde(default)]
    parameters: Option<Parameters>,
}

/// Reads a body, of which `json_length` bytes are JSON: all of it if that is `None`.
pub(super) fn parse(
    model: &Loaded,
    body: Bytes,
    json_length: Option<usize>,
) -> Result<InferRequest, Refusal> {
    let length = json_length.unwrap_or(body.len());
    let Some(json) = body.get(..length) else {
        return Err(Refusal::invalid(format!(
            "inference header size should be in range (0, {}), got: {length}",
            body.len()
        )));
    };
    let mut rest = body.slice(length..);
    let repaired = data::with_non_finite_as_strings(json);
    let json = repaired.as_deref().unwrap_or(json);
    let document: Document<'_> = serde_json::from_slice(json)
        .map_err(|error| Refusal::invalid(format!("failed to parse the request JSON: {error}")))?;
    let parameters = document.parameters.unwrap_or_default();
    let description = model.description();
    let mut inputs = Vec::with_capacity(document.inputs.0.len());
    for input in &document.inputs.0 {
        let dtype = check_input(description, &input.name, &input.datatype)?;
        let tensor = tensor(input, dtype, &mut rest)?;
        inputs.push((input.name.clone().into_owned(), tensor));
    }
    if !rest.is_empty() {
        return Err(Refusal::invalid(format!(
            "unexpected additional input data: {} bytes are left behind those of the inputs",
            rest.len()
        )));
    }
    let all_binary = flag(&parameters, "binary_data_output")?.unwrap_or(false);
    Ok(InferRequest {
        id: document.id.map(Cow::into_owned),
        timeout: timeout(&parameters)?,
        inputs,
        outputs: outputs(
            model,
            document.outputs.as_ref().map(|few| &*few.0),
            all_binary,
        )?,
    })
}

/// Reads a body without JSON: the elements of the only input, of which one extent may be open.
pub(super) fn raw(model: &Loaded, body: Bytes) -> Result<InferRequest, Refusal> {
    let inputs = &model.description().inputs;
    let [input] = inputs.as_slice() else {
        return Err(Refusal::invalid(format!(
            "a body without JSON is for models of one input, but '{}' has {}",
            model.name,
            inputs.len()
        )));
    };
    let mut extents = input.shape();
    let n_open = extents.iter().filter(|extent| **extent < 0).count();
    let n_known: Option<i64> = extents
        .iter()
        .filter(|extent| **extent >= 0)
        .try_fold(1_i64, |all, extent| all.checked_mul(*extent));
    let (Some(size), Some(n_known), 0..=1) = (input.dtype.size_bytes(), n_known, n_open) else {
        return Err(Refusal::invalid(format!(
            "input '{}': a body without JSON is for numbers of which one extent is open at most",
            input.name
        )));
    };
    let row = n_known.checked_mul(size as i64).filter(|row| *row > 0);
    for extent in &mut extents {
        if *extent < 0 {
            *extent = row.map_or(0, |row| body.len() as i64 / row);
        }
    }
    let tensor = from_bytes(&input.name, input.dtype, &extents, body, data::allocator())?;
    Ok(InferRequest {
        id: None,
        timeout: None,
        inputs: vec![(input.name.clone(), tensor)],
        outputs: outputs(model, None, true)?,
    })
}

/// Makes the tensor of an input, whose bytes are the first of `rest` if they are not JSON.
fn tensor(input: &InputDocument<'_>, dtype: DType, rest: &mut Bytes) -> Result<Tensor, Refusal> {
    let name = &*input.name;
    let none = Parameters::default();
    let parameters = input.parameters.as_ref().unwrap_or(&none);
    refuse_unknown_ways(parameters)?;
    let about = |reason: String| Refusal::invalid(format!("input '{name}': {reason}"));
    match (parameters.get("binary_data_size"), input.data) {
        (Some(_), Some(_)) => Err(about(
            "expected `data` or parameter `binary_data_size`, found both".to_owned(),
        )),
        (None, None) => Err(about(
            "expected `data`, or parameter `binary_data_size` and bytes behind the JSON, found neither".to_owned(),
        )),
        (None, Some(json)) => {
            let (metadata, n_elements) = check_shape(name, dtype, &input.shape.0)?;
            data::parse(name, metadata, n_elements, json.get())
        }
        (Some(size), None) => {
            let size = size.as_u64().and_then(|size| usize::try_from(size).ok());
            let size = size.ok_or_else(|| {
                about("parameter `binary_data_size` was expected to be a number of bytes".to_owned())
            })?;
            if size > rest.len() {
                return Err(about(format!(
                    "unexpected size: {size} bytes were announced, but {} are left in the body",
                    rest.len()
                )));
            }
            let bytes = rest.split_to(size);
            from_bytes(name, dtype, &input.shape.0, bytes, data::allocator())
        }
    }
}

/// Finds the outputs that the client wants: all if it names none.
fn outputs(
    model: &Loaded,
    wanted: Option<&[OutputDocument<'_>]>,
    all_binary: bool,
) -> Result<Vec<Wanted>, Refusal> {
    let description = model.description();
    let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) else {
        let all = 0..description.outputs.len();
        return Ok(all
            .map(|index| Wanted {
                index,
                is_binary: all_binary,
            })
            .collect());
    };
    let mut found: Vec<Wanted> = Vec::with_capacity(wanted.len());
    for output in wanted {
        let name = &*output.name;
        let index = description.output(name).ok_or_else(|| {
            Refusal::invalid(format!(
                "unexpected inference output '{}' for model '{}'",
                name.escape_debug(),
                model.name
            ))
        })?;
        if found.iter().any(|other| other.index == index) {
            return Err(Refusal::invalid(format!(
                "output '{name}' is asked for twice"
            )));
        }
        let none = Parameters::default();
        let parameters = output.parameters.as_ref().unwrap_or(&none);
        refuse_unknown_ways(parameters)?;
        let is_binary = flag(parameters, "binary_data")?.unwrap_or(all_binary);
        found.push(Wanted { index, is_binary });
    }
    Ok(found)
}
