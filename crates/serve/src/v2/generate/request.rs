//! A request of Triton's generate extension: an object whose members are inputs of the model, or parameters.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use tfrt_tensor::{Tensor, TensorMetadata};

use crate::model::Loaded;
use crate::refusal::Refusal;
use crate::servable::TensorInfo;
use crate::v2::data;
use crate::v2::parameters::{Parameters, timeout};
use crate::v2::tensors::check_shape;

/// The member whose own members count as those of the request.
const PARAMETERS: &str = "parameters";

/// A request that was read.
#[derive(Default)]
pub(crate) struct GenerateRequest {
    /// The text that the client wants back with each answer.
    pub id: Option<String>,
    pub timeout: Option<Duration>,
    pub inputs: Vec<(String, Tensor)>,
}

/// Reads a body. An empty one is an object without members.
///
/// # Errors
///
/// `InvalidArgument` for what is no object, for a member that is there twice, for values that don't fit an input, and for
/// parameters that are lists, objects or null.
pub(crate) fn parse(model: &Loaded, body: &[u8]) -> Result<GenerateRequest, Refusal> {
    let mut members = Members {
        model,
        request: GenerateRequest::default(),
        parameters: Parameters::default(),
        is_nested: false,
        refused: None,
    };
    if !body.is_empty() {
        let repaired = data::with_non_finite_as_strings(body);
        let mut text = serde_json::Deserializer::from_slice(repaired.as_deref().unwrap_or(body));
        let read = members.deserialize(&mut text).and_then(|()| text.end());
        if let Some(refusal) = members.refused {
            return Err(refusal);
        }
        read.map_err(|error| {
            Refusal::invalid(format!("failed to parse the request JSON: {error}"))
        })?;
    }
    let mut request = members.request;
    request.timeout = timeout(&members.parameters)?;
    Ok(request)
}

/// A reader of the members of an object, of which there may be millions, and the request that they make.
struct Members<'m> {
    model: &'m Loaded,
    request: GenerateRequest,
    parameters: Parameters,
    /// Whether they are those of the member `parameters`.
    is_nested: bool,
    /// Why a member is refused, where serde has words alone.
    refused: Option<Refusal>,
}

impl Members<'_> {
    /// Takes a member: an input if the model has one of its name, and else a parameter, or `id`.
    fn take(&mut self, name: &str, json: &RawValue) -> Result<(), Refusal> {
        let input = self.model.description().input(name);
        if name == PARAMETERS && !self.is_nested {
            if input.is_some() {
                return Err(Refusal::invalid(
                    "member `parameters` has parameters, but is the name of an input, too: use `infer`",
                ));
            }
            self.is_nested = true;
            let mut text = serde_json::Deserializer::from_str(json.get());
            let read = self.deserialize(&mut text);
            self.is_nested = false;
            return match self.refused.take() {
                Some(refusal) => Err(refusal),
                None => read.map_err(|_| Refusal::invalid("expected an object as `parameters`")),
            };
        }
        match input {
            Some(info) => self.take_input(info, json),
            None if name == "id" && !self.is_nested => self.take_id(json),
            None => self.take_parameter(name, json),
        }
    }

    fn take_input(&mut self, info: &TensorInfo, json: &RawValue) -> Result<(), Refusal> {
        let name = &info.name;
        if self.request.inputs.iter().any(|(other, _)| other == name) {
            return Err(Refusal::invalid(format!("input '{name}' is given twice")));
        }
        let metadata = |n_elements| metadata(info, n_elements);
        let tensor = data::parse_flat(name, info.dtype, json.get(), &metadata)?;
        self.request.inputs.push((name.clone(), tensor));
        Ok(())
    }

    fn take_id(&mut self, json: &RawValue) -> Result<(), Refusal> {
        let text: String = serde_json::from_str(json.get())
            .map_err(|_| Refusal::invalid("expected a string as `id`"))?;
        self.request.id = (!text.is_empty()).then_some(text);
        Ok(())
    }

    fn take_parameter(&mut self, name: &str, json: &RawValue) -> Result<(), Refusal> {
        let value: Option<Value> = match json.get().as_bytes().first() {
            Some(b'[' | b'{' | b'n') => None,
            _ => serde_json::from_str(json.get()).ok(),
        };
        let name = name.escape_debug();
        let Some(value) = value else {
            return Err(Refusal::invalid(format!(
                "'{name}' is no input of model '{}', and no parameter: these are strings, numbers, true or false",
                self.model.name
            )));
        };
        match self.parameters.insert(&name.to_string(), value) {
            false => Ok(()),
            true => Err(Refusal::invalid(format!("'{name}' is given twice"))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for &mut Members<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut Members<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Name(name)) = map.next_key()? {
            let json: &RawValue = map.next_value()?;
            if let Err(refusal) = self.take(&name, json) {
                self.refused = Some(refusal);
                return Err(A::Error::custom("a member is refused"));
            }
        }
        Ok(())
    }
}

/// Returns the type and shape of an input for which so many elements are given. As in Triton, extents that are open are 1, but
/// for the last of them, which has all the elements.
fn metadata(info: &TensorInfo, n_elements: usize) -> Result<TensorMetadata, Refusal> {
    let mut extents = info.shape();
    let fixed = extents.iter().filter(|extent| **extent >= 0);
    let n_fixed = fixed.map(|extent| usize::try_from(*extent).unwrap_or(usize::MAX));
    let n_fixed = n_fixed.fold(1, usize::saturating_mul);
    let mut left = match n_fixed {
        0 => n_elements,
        _ if !n_elements.is_multiple_of(n_fixed) => usize::MAX,
        _ => n_elements / n_fixed,
    };
    for extent in extents.iter_mut().rev() {
        if *extent < 0 && left != usize::MAX {
            *extent = i64::try_from(left).unwrap_or(i64::MAX);
            left = 1;
        }
    }
    if left != 1 && !(n_fixed == 0 && n_elements == 0) {
        return Err(Refusal::invalid(format!(
            "input '{}': the number of its elements is {n_elements}, which no tensor of shape {:?} has",
            info.name,
            info.shape()
        )));
    }
    Ok(check_shape(&info.name, info.dtype, &extents)?.0)
}

/// The name of a member, which is borrowed where nothing in it is escaped.
#[derive(Deserialize)]
struct Name<'b>(#[serde(borrow)] Cow<'b, str>);
