//! The answer to a request for inference as HTTP has it.

use bytes::Bytes;
use serde::Serialize;
use tfrt_tensor::math::number::Number;
use tfrt_tensor::{BF16, Bool, DType, Element, F16, Tensor};

use super::tensors::{extents_of, nameless, to_bytes};
use crate::datatype::{self, shown};
use crate::model::Loaded;
use crate::refusal::Refusal;

/// An answer that was written.
pub(super) struct Written {
    /// JSON, and the elements that stand behind it.
    pub parts: Vec<Bytes>,
    /// The bytes of JSON, if something stands behind it.
    pub json_length: Option<usize>,
}

/// Writes the answer with these outputs: each with its place in the model, and whether its elements are written as they are.
pub(super) fn write(
    model: &Loaded,
    id: Option<&str>,
    outputs: &[(usize, bool, &Tensor)],
) -> Result<Written, Refusal> {
    let mut json = Vec::with_capacity(256);
    json.extend_from_slice(b"{");
    if let Some(id) = id {
        member(&mut json, "id", &id);
        json.push(b',');
    }
    member(&mut json, "model_name", &&*model.name);
    json.push(b',');
    member(&mut json, "model_version", &model.version.to_string());
    json.extend_from_slice(b",\"outputs\":[");
    let mut parts = vec![Bytes::new()];
    for (place, (index, is_binary, tensor)) in outputs.iter().enumerate() {
        if place > 0 {
            json.push(b',');
        }
        let name = &model.description().outputs[*index].name;
        let dtype = tensor.metadata().dtype;
        let datatype = datatype::name_of(dtype).ok_or_else(|| nameless(name, dtype))?;
        json.push(b'{');
        member(&mut json, "name", name);
        json.push(b',');
        member(&mut json, "datatype", &datatype);
        json.push(b',');
        member(&mut json, "shape", &extents_of(tensor));
        match is_binary {
            true => {
                let bytes = to_bytes(name, tensor)?;
                json.extend_from_slice(b",\"parameters\":{\"binary_data_size\":");
                value(&mut json, &bytes.len());
                json.push(b'}');
                parts.push(bytes);
            }
            false => {
                json.extend_from_slice(b",\"data\":");
                elements(&mut json, name, tensor)?;
            }
        }
        json.push(b'}');
    }
    json.extend_from_slice(b"]}");
    let json_length = (parts.len() > 1).then_some(json.len());
    parts[0] = json.into();
    Ok(Written { parts, json_length })
}

fn member(json: &mut Vec<u8>, name: &str, content: &impl Serialize) {
    value(json, &name);
    json.push(b':');
    value(json, content);
}

fn value(json: &mut Vec<u8>, content: &impl Serialize) {
    serde_json::to_writer(json, content).expect("memory can be written, and texts are keys");
}

/// Writes the elements of a tensor as one list. KServe's protocol has no form for floats of 16 bits.
fn elements(json: &mut Vec<u8>, name: &str, tensor: &Tensor) -> Result<(), Refusal> {
    if let dtype @ (DType::F16 | DType::Bf16) = tensor.metadata().dtype {
        return Err(formless(name, dtype));
    }
    json.push(b'[');
    each_element(json, name, tensor, &mut |json, index| {
        if index > 0 {
            json.push(b',');
        }
    })?;
    json.push(b']');
    Ok(())
}

/// Writes what Triton's `generate` answers with: each output as a member, whose value is a list of elements, or the element
/// itself if there is one. Floats of 16 bits are numbers.
pub(super) fn write_members(
    model: &Loaded,
    id: Option<&str>,
    outputs: &[Tensor],
) -> Result<Vec<u8>, Refusal> {
    let mut json = Vec::with_capacity(256);
    let known = &model.description().outputs;
    let version = model.version.to_string();
    let about = [
        ("id", id),
        ("model_name", Some(&*model.name)),
        ("model_version", Some(&version)),
    ];
    for (name, text) in about {
        // An output of this name stands in its place.
        if let Some(text) = text.filter(|_| known.iter().all(|output| output.name != name)) {
            json.push(if json.is_empty() { b'{' } else { b',' });
            member(&mut json, name, &text);
        }
    }
    for (info, tensor) in known.iter().zip(outputs) {
        json.push(if json.is_empty() { b'{' } else { b',' });
        value(&mut json, &info.name);
        json.push(b':');
        let is_list = tensor.metadata().shape.n_elements() != Some(1);
        if is_list {
            json.push(b'[');
        }
        each_element(&mut json, &info.name, tensor, &mut |json, index| {
            if index > 0 {
                json.push(b',');
            }
        })?;
        if is_list {
            json.push(b']');
        }
    }
    json.push(b'}');
    Ok(json)
}

/// Writes the elements of a tensor one behind the other. Returns the text, and where each of them ends.
pub(crate) fn element_texts(name: &str, tensor: &Tensor) -> Result<(Vec<u8>, Vec<usize>), Refusal> {
    let (mut text, mut ends) = (Vec::new(), Vec::new());
    each_element(&mut text, name, tensor, &mut |text, index| {
        if index > 0 {
            ends.push(text.len());
        }
    })?;
    ends.push(text.len());
    Ok((text, ends))
}

/// Returns a string as JSON has it.
pub(crate) fn text_of(string: &str) -> Vec<u8> {
    let mut json = Vec::with_capacity(string.len() + 2);
    value(&mut json, &string);
    json
}

/// Writes each element, before which `begin` is called with its number.
fn each_element(
    json: &mut Vec<u8>,
    name: &str,
    tensor: &Tensor,
    begin: &mut dyn FnMut(&mut Vec<u8>, usize),
) -> Result<(), Refusal> {
    match tensor.metadata().dtype {
        DType::I1 => numbers::<Bool>(json, tensor, begin, |json, element| {
            value(json, &bool::from(element));
        }),
        DType::Ui8 => numbers::<u8>(json, tensor, begin, |json, element| value(json, &element)),
        DType::Ui16 => numbers::<u16>(json, tensor, begin, |json, element| value(json, &element)),
        DType::Ui32 => numbers::<u32>(json, tensor, begin, |json, element| value(json, &element)),
        DType::Ui64 => numbers::<u64>(json, tensor, begin, |json, element| value(json, &element)),
        DType::I8 => numbers::<i8>(json, tensor, begin, |json, element| value(json, &element)),
        DType::I16 => numbers::<i16>(json, tensor, begin, |json, element| value(json, &element)),
        DType::I32 => numbers::<i32>(json, tensor, begin, |json, element| value(json, &element)),
        DType::I64 => numbers::<i64>(json, tensor, begin, |json, element| value(json, &element)),
        DType::F16 => numbers::<F16>(json, tensor, begin, |json, element| {
            single(json, element.widened());
        }),
        DType::Bf16 => numbers::<BF16>(json, tensor, begin, |json, element| {
            single(json, element.widened());
        }),
        DType::F32 => numbers::<f32>(json, tensor, begin, single),
        DType::F64 => numbers::<f64>(json, tensor, begin, |json, element| {
            match element.is_finite() {
                true => value(json, &element),
                false => json.extend_from_slice(non_finite(element)),
            }
        }),
        DType::String => {
            for (index, string) in tensor.as_strings()?.strings().iter().enumerate() {
                begin(json, index);
                let text = std::str::from_utf8(string).map_err(|_| {
                    Refusal::invalid(format!(
                        "output '{name}': string {index} is no UTF-8, which JSON needs; ask for it as binary"
                    ))
                })?;
                value(json, &text);
            }
            Ok(())
        }
        other => Err(formless(name, other)),
    }
}

/// Refuses an output as text.
fn formless(name: &str, dtype: DType) -> Refusal {
    Refusal::invalid(format!(
        "output '{name}': elements of {} have no form in JSON; ask for them as binary",
        shown(dtype)
    ))
}

/// Writes a float by the fewest digits that no other float has.
fn single(json: &mut Vec<u8>, element: f32) {
    match element.is_finite() {
        true => value(json, &element),
        false => json.extend_from_slice(non_finite(element.into())),
    }
}

fn numbers<T: Element>(
    json: &mut Vec<u8>,
    tensor: &Tensor,
    begin: &mut dyn FnMut(&mut Vec<u8>, usize),
    mut write: impl FnMut(&mut Vec<u8>, T),
) -> Result<(), Refusal> {
    let reading = tensor.as_dense()?.read()?;
    for (index, element) in reading.elements::<T>()?.iter().enumerate() {
        begin(json, index);
        write(json, *element);
    }
    Ok(())
}

/// Returns the name of a number that JSON has no digits for, as Python reads and writes it.
fn non_finite(element: f64) -> &'static [u8] {
    match (element.is_nan(), element > 0.0) {
        (true, _) => b"NaN",
        (false, true) => b"Infinity",
        (false, false) => b"-Infinity",
    }
}
