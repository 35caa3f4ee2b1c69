//! The parameters of requests, inputs and outputs: names and values, of which a few mean something here.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::refusal::Refusal;

/// Parameters as a document has them.
pub(crate) type Parameters = Map<String, Value>;

/// Returns the time that a request may take, in microseconds: parameter `timeout`. 0 is as long as the server allows.
pub(crate) fn timeout(parameters: &Parameters) -> Result<Option<Duration>, Refusal> {
    let us = match parameters.get("timeout") {
        None => return Ok(None),
        Some(Value::String(text)) => text.parse().ok(),
        Some(value) => value.as_u64(),
    };
    let us = us.ok_or_else(|| {
        Refusal::invalid("parameter `timeout` was expected to be a number of microseconds")
    })?;
    Ok((us > 0).then(|| Duration::from_micros(us)))
}

/// Returns a parameter that is true or false, if it is there.
pub(crate) fn flag(parameters: &Parameters, name: &str) -> Result<Option<bool>, Refusal> {
    match parameters.get(name) {
        None => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(other) => Err(Refusal::invalid(format!(
            "parameter `{name}` was expected to be true or false, found {other}"
        ))),
    }
}

/// Refuses the parameters that ask for what this server does not do, rather than ignore them.
pub(crate) fn refuse_unknown_ways(parameters: &Parameters) -> Result<(), Refusal> {
    if parameters.contains_key("shared_memory_region") {
        return Err(Refusal::unimplemented(
            "parameter `shared_memory_region`: this server takes no tensors from shared memory",
        ));
    }
    match parameters.get("classification") {
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(Refusal::unimplemented(
            "parameter `classification`: this server gives outputs as they are",
        )),
    }
}
