//! A request of Triton's generate extension: an object whose members are inputs of the model, or parameters.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
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
    let mut request = GenerateRequest::default();
    if body.is_empty() {
        return Ok(request);
    }
    let repaired = data::with_non_finite_as_strings(body);
    let members: Members<'_> = serde_json::from_slice(repaired.as_deref().unwrap_or(body))
        .map_err(|error| Refusal::invalid(format!("failed to parse the request JSON: {error}")))?;
    let mut parameters = Parameters::new();
    for (name, json) in &members.0 {
        if name == PARAMETERS {
            if model.description().input(PARAMETERS).is_some() {
                return Err(Refusal::invalid(
                    "member `parameters` has parameters, but is the name of an input, too: use `infer`",
                ));
            }
            let nested: Members<'_> = serde_json::from_str(json.get())
                .map_err(|_| Refusal::invalid("expected an object as `parameters`"))?;
            for (name, json) in &nested.0 {
                request.take(model, &mut parameters, name, json)?;
            }
        } else {
            request.take(model, &mut parameters, name, json)?;
        }
    }
    if let Some(id) = members.0.iter().find(|(name, _)| name == "id")
        && model.description().input("id").is_none()
    {
        let text: Cow<'_, str> = serde_json::from_str(id.1.get())
            .map_err(|_| Refusal::invalid("expected a string as `id`"))?;
        request.id = (!text.is_empty()).then(|| text.into_owned());
    }
    request.timeout = timeout(&parameters)?;
    Ok(request)
}

impl GenerateRequest {
    /// Takes a member, which is an input if the model has one of its name, and else a parameter.
    fn take(
        &mut self,
        model: &Loaded,
        parameters: &mut Parameters,
        name: &str,
        json: &RawValue,
    ) -> Result<(), Refusal> {
        let Some(info) = model.description().input(name) else {
            let value: Value = match json.get().as_bytes().first() {
                Some(b'[' | b'{') => Value::Null,
                _ => serde_json::from_str(json.get()).unwrap_or_default(),
            };
            let name = name.escape_debug();
            return match value {
                Value::Null => Err(Refusal::invalid(format!(
                    "'{name}' is no input of model '{}', and no parameter: these are strings, numbers, true or false",
                    model.name
                ))),
                value => match parameters.insert(name.to_string(), value) {
                    None => Ok(()),
                    Some(_) => Err(Refusal::invalid(format!("'{name}' is given twice"))),
                },
            };
        };
        if self.inputs.iter().any(|(other, _)| other == name) {
            return Err(Refusal::invalid(format!("input '{name}' is given twice")));
        }
        let metadata = |n_elements| metadata(info, n_elements);
        let tensor = data::parse_flat(name, info.dtype, json.get(), &metadata)?;
        self.inputs.push((name.to_owned(), tensor));
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

/// The members of an object, in order, of which some may be there twice.
struct Members<'b>(Vec<(Cow<'b, str>, &'b RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(Name(name)) = map.next_key()? {
                    members.push((name, map.next_value()?));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

/// The name of a member, which is borrowed where nothing in it is escaped.
#[derive(Deserialize)]
struct Name<'b>(#[serde(borrow)] Cow<'b, str>);
