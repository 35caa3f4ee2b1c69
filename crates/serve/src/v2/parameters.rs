//! The parameters of requests, inputs and outputs: names and values, of which a few mean something here. A document may have
//! millions of them, so that others are not kept.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::refusal::Refusal;

/// The most entries of lists that are short by what they mean: inputs, outputs, extents.
const MAX_ENTRIES: usize = 4096;

/// The parameters that mean something.
const KNOWN: [&str; 6] = [
    "binary_data",
    "binary_data_output",
    "binary_data_size",
    "classification",
    "shared_memory_region",
    "timeout",
];

/// Parameters as a document has them: those that mean something. Values that are lists or objects are empty.
#[derive(Default)]
pub(crate) struct Parameters(Vec<(&'static str, Value)>);

impl Parameters {
    pub fn get(&self, name: &str) -> Option<&Value> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value)
    }

    /// Sets a parameter, if it means something. Returns whether it was there.
    pub fn insert(&mut self, name: &str, value: Value) -> bool {
        let Some(known) = KNOWN.into_iter().find(|known| *known == name) else {
            return false;
        };
        let was_there = self.get(name).is_some();
        self.0.retain(|(other, _)| *other != known);
        self.0.push((known, value));
        was_there
    }
}

impl FromIterator<(String, Value)> for Parameters {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(entries: I) -> Parameters {
        let mut parameters = Parameters::default();
        for (name, value) in entries {
            parameters.insert(&name, value);
        }
        parameters
    }
}

impl<'de> Deserialize<'de> for Parameters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Parameters;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of parameters")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parameters, A::Error> {
                let mut parameters = Parameters::default();
                while let Some(name) = map.next_key::<String>()? {
                    let Plain(value) = map.next_value()?;
                    parameters.insert(&name, value);
                }
                Ok(parameters)
            }
        }

        deserializer.deserialize_map(Object)
    }
}

/// A value of which nothing is kept that lies within a list or an object.
struct Plain(Value);

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Plain;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_bool<E>(self, value: bool) -> Result<Plain, E> {
                Ok(Plain(value.into()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Plain, E> {
                Ok(Plain(value.into()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Plain, E> {
                Ok(Plain(value.into()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Plain, E> {
                Ok(Plain(value.into()))
            }

            fn visit_str<E>(self, text: &str) -> Result<Plain, E> {
                Ok(Plain(text.into()))
            }

            fn visit_unit<E>(self) -> Result<Plain, E> {
                Ok(Plain(Value::Null))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Plain, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Plain(Value::Array(Vec::new())))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Plain, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Plain(Value::Object(Map::new())))
            }
        }

        deserializer.deserialize_any(Any)
    }
}

/// A list that is short by what it means.
#[derive(Debug, Default)]
pub(crate) struct Few<T>(pub Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Few<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List<T>(Vec<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
            type Value = Few<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list of {MAX_ENTRIES} entries at most")
            }

            fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Few<T>, A::Error> {
                while let Some(entry) = list.next_element()? {
                    if self.0.len() == MAX_ENTRIES {
                        return Err(serde::de::Error::invalid_length(MAX_ENTRIES + 1, &self));
                    }
                    self.0.push(entry);
                }
                Ok(Few(self.0))
            }
        }

        deserializer.deserialize_seq(List(Vec::new()))
    }
}

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
        Some(other) => {
            let found = match other {
                Value::Array(_) => "a list".to_owned(),
                Value::Object(_) => "an object".to_owned(),
                other => other.to_string(),
            };
            Err(Refusal::invalid(format!(
                "parameter `{name}` was expected to be true or false, found {found}"
            )))
        }
    }
}

/// Refuses the parameters that ask for what this server does not do, rather than ignore them.
pub(crate) fn refuse_unknown_ways(parameters: &Parameters) -> Result<(), Refusal> {
    if parameters.get("shared_memory_region").is_some() {
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
