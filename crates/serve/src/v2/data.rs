//! Elements of tensors as JSON has them: numbers, booleans and strings, in one list or in lists of lists.

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::de::{DeserializeSeed, Deserializer, Error as _, SeqAccess, Visitor};
use tfrt_async::SystemAllocator;
use tfrt_host::HostAllocator;
use tfrt_host::memory::HostBuffer;
use tfrt_tensor::math::number::Real;
use tfrt_tensor::{
    BF16, Bool, DType, DenseHostTensor, Element, F16, Tensor, TensorMetadata, to_bytes,
};

use super::tensors::strings_of;
use crate::datatype::shown;
use crate::refusal::Refusal;

/// Returns the allocator of tensors that come from clients.
pub(crate) fn allocator() -> &'static Arc<dyn HostAllocator> {
    static SYSTEM: OnceLock<Arc<dyn HostAllocator>> = OnceLock::new();
    SYSTEM.get_or_init(|| Arc::new(SystemAllocator::new()))
}

/// Makes a tensor of elements, which stay where they are.
pub(crate) fn dense<T: Element>(
    metadata: TensorMetadata,
    elements: Vec<T>,
) -> Result<Tensor, Refusal> {
    struct Owner<T>(Vec<T>);

    impl<T: Element> AsRef<[u8]> for Owner<T> {
        fn as_ref(&self) -> &[u8] {
            to_bytes(&self.0)
        }
    }

    let buffer = HostBuffer::from_owner(Owner(elements));
    Ok(DenseHostTensor::new(metadata, buffer)?.into())
}

/// Reads the elements of a tensor. KServe's protocol has no form in JSON for floats of 16 bits.
///
/// # Errors
///
/// `InvalidArgument` if there are more or fewer, or if one is none of the type, with its number.
pub(crate) fn parse(
    name: &str,
    metadata: TensorMetadata,
    n_elements: usize,
    json: &str,
) -> Result<Tensor, Refusal> {
    let list = List {
        name,
        json,
        shape: Shape::Known(&metadata, n_elements),
    };
    match metadata.dtype {
        dtype @ (DType::F16 | DType::Bf16) => Err(list.formless(dtype)),
        dtype => list.tensor(dtype),
    }
}

/// Reads an element, or a list of elements, from whose number `metadata` makes the shape. Floats of 16 bits are numbers, which
/// are rounded to the nearest.
///
/// # Errors
///
/// `InvalidArgument` if one is none of the type, with its number; those of `metadata`.
pub(crate) fn parse_flat(
    name: &str,
    dtype: DType,
    json: &str,
    metadata: &dyn Fn(usize) -> Result<TensorMetadata, Refusal>,
) -> Result<Tensor, Refusal> {
    let shape = Shape::Open(metadata);
    List { name, json, shape }.tensor(dtype)
}

/// Elements that are to be read.
struct List<'j> {
    name: &'j str,
    json: &'j str,
    shape: Shape<'j>,
}

/// The shape of a tensor whose elements are to be read.
enum Shape<'j> {
    /// One that is given, with its number of elements. They may lie in lists of any depth.
    Known(&'j TensorMetadata, usize),
    /// One that follows from the number of elements: a single one, or those of a list.
    Open(&'j dyn Fn(usize) -> Result<TensorMetadata, Refusal>),
}

impl List<'_> {
    fn tensor(&self, dtype: DType) -> Result<Tensor, Refusal> {
        match dtype {
            DType::I1 => self.dense::<Bool>(),
            DType::Ui8 => self.dense::<u8>(),
            DType::Ui16 => self.dense::<u16>(),
            DType::Ui32 => self.dense::<u32>(),
            DType::Ui64 => self.dense::<u64>(),
            DType::I8 => self.dense::<i8>(),
            DType::I16 => self.dense::<i16>(),
            DType::I32 => self.dense::<i32>(),
            DType::I64 => self.dense::<i64>(),
            DType::F16 => self.dense::<F16>(),
            DType::Bf16 => self.dense::<BF16>(),
            DType::F32 => self.dense::<f32>(),
            DType::F64 => self.dense::<f64>(),
            DType::String => {
                let strings = self.read::<Vec<u8>>()?;
                strings_of(self.metadata(strings.len())?, strings)
            }
            other => Err(self.formless(other)),
        }
    }

    fn formless(&self, dtype: DType) -> Refusal {
        Refusal::invalid(format!(
            "input '{}': elements of {} have no form in JSON; send them as binary",
            self.name,
            shown(dtype)
        ))
    }

    fn dense<T: Element + Scalar>(&self) -> Result<Tensor, Refusal> {
        let elements = self.read::<T>()?;
        dense(self.metadata(elements.len())?, elements)
    }

    fn metadata(&self, n_elements: usize) -> Result<TensorMetadata, Refusal> {
        match self.shape {
            Shape::Known(metadata, _) => Ok(metadata.clone()),
            Shape::Open(metadata) => metadata(n_elements),
        }
    }

    fn read<T: Scalar>(&self) -> Result<Vec<T>, Refusal> {
        let about = |reason: fmt::Arguments<'_>| {
            Refusal::invalid(format!("input '{}': {reason}", self.name))
        };
        let (n_elements, n_lists, of_what) = match self.shape {
            Shape::Known(_, n_elements) => (n_elements, usize::MAX, " of `data`"),
            Shape::Open(_) => (usize::MAX, 1, ""),
        };
        // An element takes two bytes of text at least, which bounds what is allocated.
        let room = match self.shape {
            Shape::Known(..) => n_elements.min(self.json.len() / 2 + 1),
            Shape::Open(_) => 0,
        };
        let mut elements = Vec::with_capacity(room);
        let mut text = serde_json::Deserializer::from_str(self.json);
        let read = Nested {
            elements: &mut elements,
            n_elements,
            n_lists,
        }
        .deserialize(&mut text);
        match (read, &self.shape) {
            (Err(error), _) if elements.len() < n_elements || !error.is_data() => {
                // The place is one within the value.
                let error = error.to_string();
                let reason = error.split(" at line ").next().unwrap_or_default();
                Err(about(format_args!(
                    "element {}{of_what}: {reason}",
                    elements.len()
                )))
            }
            (Err(_), _) => Err(about(format_args!(
                "expected {n_elements} elements by its shape, found more in `data`"
            ))),
            (Ok(()), Shape::Known(..)) if elements.len() < n_elements => Err(about(format_args!(
                "expected {n_elements} elements by its shape, found {} in `data`",
                elements.len()
            ))),
            (Ok(()), _) => Ok(elements),
        }
    }
}

/// A type of elements that JSON has a form for.
pub(crate) trait Scalar: Sized {
    /// The name for messages.
    const EXPECTED: &'static str;

    /// Converts an integer from 0; `None` if there is no such element.
    fn from_u64(value: u64) -> Option<Self>;

    /// Converts an integer below 0.
    fn from_i64(value: i64) -> Option<Self>;

    /// Converts a number with a point or an exponent.
    fn from_f64(_: f64) -> Option<Self> {
        None
    }

    /// Converts a boolean.
    fn from_bool(_: bool) -> Option<Self> {
        None
    }

    /// Converts a string.
    fn from_text(_: &str) -> Option<Self> {
        None
    }
}

/// `integers!(u8 "a UINT8")` implements [`Scalar`] for `u8`.
macro_rules! integers {
    ($($type:ty, $expected:expr;)*) => {$(
        impl Scalar for $type {
            const EXPECTED: &'static str = $expected;

            fn from_u64(value: u64) -> Option<Self> {
                value.try_into().ok()
            }

            fn from_i64(value: i64) -> Option<Self> {
                value.try_into().ok()
            }
        }
    )*};
}

integers! {
    u8, "a UINT8"; u16, "a UINT16"; u32, "a UINT32"; u64, "a UINT64";
    i8, "an INT8"; i16, "an INT16"; i32, "an INT32"; i64, "an INT64";
}

/// Returns the value of a name that stands for a number which JSON has no digits for.
fn non_finite(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "rounded to the nearest float"
)]
mod floats {
    use super::{Scalar, non_finite};

    impl Scalar for f32 {
        const EXPECTED: &'static str = "a number";

        fn from_u64(value: u64) -> Option<Self> {
            Some(value as f32)
        }

        fn from_i64(value: i64) -> Option<Self> {
            Some(value as f32)
        }

        fn from_f64(value: f64) -> Option<Self> {
            Some(value as f32)
        }

        fn from_text(text: &str) -> Option<Self> {
            non_finite(text).map(|value| value as f32)
        }
    }

    impl Scalar for f64 {
        const EXPECTED: &'static str = "a number";

        fn from_u64(value: u64) -> Option<Self> {
            Some(value as f64)
        }

        fn from_i64(value: i64) -> Option<Self> {
            Some(value as f64)
        }

        fn from_f64(value: f64) -> Option<Self> {
            Some(value)
        }

        fn from_text(text: &str) -> Option<Self> {
            non_finite(text)
        }
    }
}

/// `halves!(F16 BF16)` implements [`Scalar`] for `F16`: numbers are rounded to the nearest, once.
macro_rules! halves {
    ($($type:ty)*) => {$(
        impl Scalar for $type {
            const EXPECTED: &'static str = "a number";

            fn from_u64(value: u64) -> Option<Self> {
                f64::from_u64(value).map(Real::from_f64)
            }

            fn from_i64(value: i64) -> Option<Self> {
                f64::from_i64(value).map(Real::from_f64)
            }

            fn from_f64(value: f64) -> Option<Self> {
                Some(Real::from_f64(value))
            }

            fn from_text(text: &str) -> Option<Self> {
                non_finite(text).map(Real::from_f64)
            }
        }
    )*};
}

halves!(F16 BF16);

impl Scalar for Bool {
    const EXPECTED: &'static str = "true or false";

    fn from_u64(_: u64) -> Option<Self> {
        None
    }

    fn from_i64(_: i64) -> Option<Self> {
        None
    }

    fn from_bool(value: bool) -> Option<Self> {
        Some(value.into())
    }
}

impl Scalar for Vec<u8> {
    const EXPECTED: &'static str = "a string";

    fn from_u64(_: u64) -> Option<Self> {
        None
    }

    fn from_i64(_: i64) -> Option<Self> {
        None
    }

    fn from_text(text: &str) -> Option<Self> {
        Some(text.as_bytes().to_vec())
    }
}

/// Reads one element, or a list of these, to the end of what was read before.
struct Nested<'e, T> {
    elements: &'e mut Vec<T>,
    n_elements: usize,
    /// The lists in which an element may lie here.
    n_lists: usize,
}

impl<T: Scalar> Nested<'_, T> {
    fn push<E: serde::de::Error>(
        self,
        element: Option<T>,
        found: impl FnOnce() -> String,
    ) -> Result<(), E> {
        if self.elements.len() == self.n_elements {
            return Err(E::custom("more elements"));
        }
        match element {
            Some(element) => {
                self.elements.push(element);
                Ok(())
            }
            None => Err(E::custom(format_args!(
                "expected {}, found {}",
                T::EXPECTED,
                found()
            ))),
        }
    }
}

impl<'de, T: Scalar> DeserializeSeed<'de> for Nested<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Scalar> Visitor<'de> for Nested<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        self.push(T::from_u64(value), || value.to_string())
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.push(T::from_i64(value), || value.to_string())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        self.push(T::from_f64(value), || value.to_string())
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        self.push(T::from_bool(value), || value.to_string())
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        self.push(T::from_text(text), || "a string".to_owned())
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.push(None, || "null".to_owned())
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        Err(A::Error::custom(format_args!(
            "expected {}, found an object",
            T::EXPECTED
        )))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Nested {
            elements,
            n_elements,
            n_lists,
        } = self;
        let Some(n_lists) = n_lists.checked_sub(1) else {
            return Err(A::Error::custom(format_args!(
                "expected {}, found a list",
                T::EXPECTED
            )));
        };
        while list
            .next_element_seed(Nested {
                elements: &mut *elements,
                n_elements,
                n_lists,
            })?
            .is_some()
        {}
        Ok(())
    }
}

/// Puts `NaN`, `Infinity` and `-Infinity`, which Python writes and JSON does not have, between quotes. Returns `None` if
/// there are none of them outside of strings.
pub(crate) fn with_non_finite_as_strings(json: &[u8]) -> Option<Vec<u8>> {
    // `N` and `I` begin nothing in JSON, so that most texts are let through at once.
    if !json.iter().any(|byte| matches!(byte, b'N' | b'I')) {
        return None;
    }
    let mut written: Vec<u8> = Vec::new();
    let (mut at, mut copied, mut is_string) = (0, 0, false);
    while let Some(byte) = json.get(at) {
        let word: &[u8] = match (is_string, byte) {
            (true, b'\\') => {
                at += 2;
                continue;
            }
            (_, b'"') => {
                is_string = !is_string;
                b""
            }
            (false, b'N') => b"NaN",
            (false, b'I') => b"Infinity",
            (false, b'-') if json[at + 1..].starts_with(b"I") => b"-Infinity",
            _ => b"",
        };
        match !word.is_empty() && json[at..].starts_with(word) {
            true => {
                written.extend_from_slice(&json[copied..at]);
                written.push(b'"');
                written.extend_from_slice(word);
                written.push(b'"');
                at += word.len();
                copied = at;
            }
            false => at += 1,
        }
    }
    if copied == 0 {
        return None;
    }
    written.extend_from_slice(&json[copied..]);
    Some(written)
}

#[cfg(test)]
mod tests;
