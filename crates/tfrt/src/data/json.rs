//! Tensors as JSON: lists in lists, a number without any list being a tensor without dimensions.
//!
//! Truth values are `true` and `false`, strings are strings, complex numbers are lists of two
//! numbers, and what JSON has no number for is `"nan"`, `"inf"` and `"-inf"`. A tensor that lists
//! can't show, such as one of shape `[0, 3]`, is `{"shape": [0, 3], "data": []}`. A map is an object, whose keys are
//! texts also where they are integers.

use std::sync::Arc;

use serde_json::{Map, Value as Json};
use tfrt::HostAllocator;
use tfrt::model::{Datum, ValueType};
use tfrt::tensor::{
    DType, Map as TensorMap, Optional, Sequence, StringHostTensor, Tensor, TensorShape,
};

use super::numbers;
use super::scalars::{Scalar, scalars};

/// The number of elements that are converted at once.
const CHUNK: usize = 1 << 16;

/// The bytes that an element takes, as a value and as text: measured for truth values, of which most go into a tensor.
pub const BYTES_PER_ELEMENT: usize = 64;

/// Returns how many elements a value shows.
pub fn n_elements(datum: &Datum) -> usize {
    let of = |tensor: &Tensor| tensor.metadata().shape.n_elements().unwrap_or(0);
    match datum {
        Datum::Tensor(tensor) | Datum::Optional(Optional::Tensor(tensor)) => of(tensor),
        Datum::Sequence(sequence) | Datum::Optional(Optional::Sequence(sequence)) => {
            sequence.tensors().iter().map(of).sum()
        }
        Datum::Optional(Optional::Nothing) => 0,
        Datum::Map(map) => of(map.keys()) + of(map.values()),
        Datum::Maps(maps) => of(maps.keys()) + of(maps.values()),
    }
}

/// Reads a value of a type.
///
/// # Errors
///
/// A text that says what does not fit, and where.
pub fn read(
    json: &Json,
    kind: &ValueType,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Datum, String> {
    match (kind, json) {
        (ValueType::Optional(_), Json::Null) => Ok(Optional::Nothing.into()),
        (ValueType::Optional(inner), json) => Ok(some(read(json, inner, allocator)?)),
        (ValueType::Sequence(inner), Json::Array(items)) => {
            let element = inner.as_tensor().and_then(|inner| inner.element);
            let items = items.iter().enumerate().map(|(index, item)| {
                let item = read_tensor(item, element, allocator);
                item.map_err(|reason| format!("element {index} of the sequence: {reason}"))
            });
            super::sequence(items, allocator).map(Datum::Sequence)
        }
        (ValueType::Sequence(_), other) => Err(format!(
            "expected a list, an item for each element of the sequence, found {}",
            name_of(other)
        )),
        (ValueType::Map(key, value), Json::Object(object)) => {
            let element = value.as_tensor().and_then(|value| value.element);
            read_map(object, *key, element, allocator).map(Datum::Map)
        }
        (ValueType::Map(..), other) => {
            let found = name_of(other);
            Err(format!(
                "expected an object, a value for each key, found {found}"
            ))
        }
        (ValueType::Tensor(tensor), json) => {
            read_tensor(json, tensor.element, allocator).map(Datum::Tensor)
        }
    }
}

/// Returns the optional value that holds another.
pub fn some(datum: Datum) -> Datum {
    match datum {
        Datum::Tensor(tensor) => Optional::Tensor(tensor).into(),
        Datum::Sequence(sequence) => Optional::Sequence(sequence).into(),
        other => other,
    }
}

fn read_map(
    object: &Map<String, Json>,
    key: DType,
    element: Option<DType>,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<TensorMap, String> {
    let keys = object.keys().map(|text| match key {
        DType::String => Ok(Json::String(text.clone())),
        _ => match text.parse::<i64>() {
            Ok(number) => Ok(Json::from(number)),
            Err(_) => Err(format!("expected a whole number as a key, found {text:?}")),
        },
    });
    let keys = Json::Array(keys.collect::<Result<_, String>>()?);
    let values = Json::Array(object.values().cloned().collect());
    let keys = read_tensor(&keys, Some(key), allocator)?;
    let values = read_tensor(&values, element, allocator)?;
    TensorMap::new(keys, values).map_err(|error| error.message().to_owned())
}

fn read_tensor(
    json: &Json,
    element: Option<DType>,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Tensor, String> {
    let (extents, scalars) = match json {
        Json::Object(object) => of_object(object)?,
        json => of_lists(json, element.is_some_and(is_complex))?,
    };
    let element = element.unwrap_or_else(|| guess(&scalars));
    let shape = TensorShape::new(&extents).map_err(|error| error.message().to_owned())?;
    let place = |index| place_of(index, &extents);
    if element == DType::String {
        let strings = scalars.iter().enumerate().map(|(index, scalar)| {
            let text = scalar.as_str().map(|text| text.as_bytes().to_vec());
            text.ok_or_else(|| {
                format!(
                    "expected a string {}, found {}",
                    place(index),
                    name_of(scalar)
                )
            })
        });
        let strings = strings.collect::<Result<_, String>>()?;
        let tensor = StringHostTensor::new(shape, strings);
        return Ok(tensor.map_err(|error| error.message().to_owned())?.into());
    }
    let mut bytes = Vec::new();
    for (index, scalar) in scalars.iter().enumerate() {
        let cell = scalar_of(scalar, element).map_err(|expected| {
            format!(
                "expected {expected} {}, found {}",
                place(index),
                shown(scalar)
            )
        })?;
        numbers::push(&mut bytes, element, &cell)
            .map_err(|reason| format!("{reason} {}", place(index)))?;
    }
    numbers::dense(element, shape, &bytes, allocator)
}

fn is_complex(element: DType) -> bool {
    matches!(element, DType::Complex64 | DType::Complex128)
}

/// Reads `{"shape": [0, 3], "data": []}`, the data in one list.
fn of_object(object: &Map<String, Json>) -> Result<(Vec<usize>, Vec<&Json>), String> {
    let (Some(Json::Array(shape)), Some(Json::Array(data))) =
        (object.get("shape"), object.get("data"))
    else {
        return Err(r#"an object is a tensor if it is {"shape": [..], "data": [..]}"#.to_owned());
    };
    let extents = shape.iter().map(|extent| {
        let extent = extent
            .as_u64()
            .and_then(|extent| usize::try_from(extent).ok());
        extent.ok_or_else(|| "the extents in \"shape\" are whole numbers".to_owned())
    });
    let extents: Vec<usize> = extents.collect::<Result<_, String>>()?;
    let n_elements = extents
        .iter()
        .try_fold(1_usize, |n, extent| n.checked_mul(*extent));
    if n_elements != Some(data.len()) {
        return Err(format!(
            "a tensor of shape {extents:?} does not have {} elements",
            data.len()
        ));
    }
    Ok((extents, data.iter().collect()))
}

/// Returns the extents of lists in lists, and the scalars in the innermost.
fn of_lists(json: &Json, has_pairs: bool) -> Result<(Vec<usize>, Vec<&Json>), String> {
    let (mut extents, mut level) = (Vec::new(), vec![json]);
    // Level by level, so that what does not have the form of the first is found.
    while let Some(Json::Array(first)) = level.first() {
        if has_pairs && first.len() == 2 && !first.iter().any(Json::is_array) {
            break;
        }
        let extent = first.len();
        let mut next = Vec::new();
        for (index, json) in level.iter().enumerate() {
            match json {
                Json::Array(items) if items.len() == extent => next.extend(items),
                Json::Array(items) => {
                    return Err(format!(
                        "lists beside each other have as many items: expected {extent} {}, found {}",
                        place_of(index, &extents),
                        items.len()
                    ));
                }
                other => {
                    return Err(format!(
                        "expected a list of {extent} items {}, found {}",
                        place_of(index, &extents),
                        name_of(other)
                    ));
                }
            }
        }
        extents.push(extent);
        level = next;
    }
    Ok((extents, level))
}

/// Returns the type of elements that a file does not name.
fn guess(scalars: &[&Json]) -> DType {
    match scalars.first() {
        Some(Json::String(_)) => DType::String,
        Some(Json::Bool(_)) => DType::I1,
        Some(Json::Number(_)) if scalars.iter().all(|scalar| scalar.is_i64()) => DType::I64,
        _ => DType::F32,
    }
}

/// Converts a JSON scalar to an element; else returns what was expected.
fn scalar_of(scalar: &Json, element: DType) -> Result<Scalar, &'static str> {
    let is_float = !matches!(numbers::kind(element), numbers::Kind::Integer);
    match scalar {
        _ if is_complex(element) => {
            let part = |json: &Json| match scalar_of(json, DType::F64) {
                Ok(Scalar::Double(number)) => Ok(number),
                _ => Err("a complex number, a list of two numbers,"),
            };
            match scalar {
                Json::Array(parts) if parts.len() == 2 => {
                    Ok(Scalar::Complex(part(&parts[0])?, part(&parts[1])?))
                }
                real => Ok(Scalar::Complex(part(real)?, 0.0)),
            }
        }
        Json::Bool(bit) if element == DType::I1 => Ok(Scalar::Truth(*bit)),
        _ if element == DType::I1 => Err("true or false"),
        Json::Number(number) if is_float => number.as_f64().map(Scalar::Double).ok_or("a number"),
        Json::String(text) if is_float => match text.as_str() {
            "nan" | "NaN" => Ok(Scalar::Double(f64::NAN)),
            "inf" | "Infinity" => Ok(Scalar::Double(f64::INFINITY)),
            "-inf" | "-Infinity" => Ok(Scalar::Double(f64::NEG_INFINITY)),
            _ => Err("a number"),
        },
        _ if is_float => Err("a number"),
        Json::Number(number) => {
            let signed = number.as_i64().map(i128::from);
            let integer = signed.or_else(|| number.as_u64().map(i128::from));
            integer.map(Scalar::Integer).ok_or("a whole number")
        }
        _ => Err("a whole number"),
    }
}

/// Returns the coordinates of an element as text: `at [1, 2]`.
fn place_of(index: usize, extents: &[usize]) -> String {
    let mut rest = index;
    let mut places: Vec<usize> = extents
        .iter()
        .rev()
        .map(|extent| {
            let place = rest % extent.max(&1);
            rest /= extent.max(&1);
            place
        })
        .collect();
    places.reverse();
    match places.is_empty() {
        true => "in the file".to_owned(),
        false => format!("at {places:?}"),
    }
}

fn name_of(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "a truth value",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}

/// Returns a scalar as it stands in the file, unless it is long.
fn shown(json: &Json) -> String {
    match json {
        Json::Number(number) => number.to_string(),
        Json::String(text) if text.len() <= 20 => format!("{text:?}"),
        other => name_of(other).to_owned(),
    }
}

/// Returns a value as JSON.
///
/// # Errors
///
/// If somebody writes a tensor of it.
pub fn write(datum: &Datum) -> Result<Json, tfrt::Error> {
    match datum {
        Datum::Tensor(tensor) => write_tensor(tensor),
        Datum::Sequence(sequence) => write_sequence(sequence),
        Datum::Optional(Optional::Nothing) => Ok(Json::Null),
        Datum::Optional(Optional::Tensor(tensor)) => write_tensor(tensor),
        Datum::Optional(Optional::Sequence(sequence)) => write_sequence(sequence),
        Datum::Map(map) => {
            let keys = texts(map.keys())?;
            let values = scalars(map.values(), 0..map.len())?;
            Ok(object_of(&keys, &values))
        }
        Datum::Maps(maps) => {
            let keys = texts(maps.keys())?;
            let objects = (0..maps.len()).map(|index| {
                let first = index * keys.len();
                let values = scalars(maps.values(), first..first + keys.len())?;
                Ok(object_of(&keys, &values))
            });
            Ok(Json::Array(objects.collect::<Result<_, tfrt::Error>>()?))
        }
    }
}

/// Returns keys of maps as texts.
///
/// # Errors
///
/// If somebody writes them.
pub fn texts(keys: &Tensor) -> Result<Vec<String>, tfrt::Error> {
    let n_keys = keys.metadata().shape.n_elements().unwrap_or(0);
    let text = |cell: &Scalar| match cell.to_json() {
        Json::String(text) => text,
        other => other.to_string(),
    };
    Ok(scalars(keys, 0..n_keys)?.iter().map(text).collect())
}

fn object_of(keys: &[String], values: &[Scalar]) -> Json {
    let pairs = keys.iter().cloned().zip(values.iter().map(Scalar::to_json));
    Json::Object(pairs.collect())
}

fn write_sequence(sequence: &Sequence) -> Result<Json, tfrt::Error> {
    let tensors = sequence.tensors().iter().map(write_tensor);
    Ok(Json::Array(tensors.collect::<Result<_, _>>()?))
}

fn write_tensor(tensor: &Tensor) -> Result<Json, tfrt::Error> {
    let shape = &tensor.metadata().shape;
    let extents = shape.to_dims();
    let n_elements = shape.n_elements().unwrap_or(0);
    let mut level = Vec::new();
    for first in (0..n_elements).step_by(CHUNK) {
        let last = n_elements.min(first + CHUNK);
        level.extend(scalars(tensor, first..last)?.iter().map(Scalar::to_json));
    }
    if n_elements == 0 {
        let mut object = Map::new();
        object.insert("shape".to_owned(), Json::from(extents.to_vec()));
        object.insert("data".to_owned(), Json::Array(Vec::new()));
        return Ok(Json::Object(object));
    }
    for extent in extents.iter().rev() {
        let mut items = level.into_iter();
        let mut lists = Vec::new();
        while items.len() > 0 {
            lists.push(Json::Array(items.by_ref().take(*extent).collect()));
        }
        level = lists;
    }
    Ok(level.pop().unwrap_or(Json::Null))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfrt::Runtime;
    use tfrt::model::TensorType;

    fn check(text: &str, element: DType, expected: Result<&str, &str>) {
        let runtime = Runtime::new();
        let allocator = runtime.host().allocator();
        let kind = ValueType::Tensor(TensorType::of(element));
        let json = serde_json::from_str(text).unwrap();
        let datum = read(&json, &kind, allocator);
        let text = datum.map(|datum| write(&datum).unwrap().to_string());
        assert_eq!(text.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn lists_in_lists_are_tensors() {
        check(
            "[[1, 2], [3, 4.5]]",
            DType::F32,
            Ok("[[1.0,2.0],[3.0,4.5]]"),
        );
        check("3", DType::I64, Ok("3"));
        check("[true, false]", DType::I1, Ok("[true,false]"));
        check(r#"["a", "b"]"#, DType::String, Ok(r#"["a","b"]"#));
        check("[[1, -2]]", DType::Complex64, Ok("[[1.0,-2.0]]"));
        check(r#"["nan", "-inf"]"#, DType::F16, Ok(r#"["nan","-inf"]"#));
        let empty = r#"{"shape":[0,3],"data":[]}"#;
        check(empty, DType::Ui8, Ok(r#"{"data":[],"shape":[0,3]}"#));
        check(
            "18446744073709551615",
            DType::Ui64,
            Ok("18446744073709551615"),
        );
    }

    #[test]
    fn objects_are_maps() {
        let runtime = Runtime::new();
        let value = ValueType::Tensor(TensorType::of(DType::F32));
        for (key, text, expected) in [
            (
                DType::String,
                r#"{"a":1,"b":2.5}"#,
                Ok(r#"{"a":1.0,"b":2.5}"#),
            ),
            (DType::I64, r#"{"7":1}"#, Ok(r#"{"7":1.0}"#)),
            (
                DType::I64,
                r#"{"a":1}"#,
                Err(r#"expected a whole number as a key, found "a""#),
            ),
            (
                DType::I64,
                "[1]",
                Err("expected an object, a value for each key, found a list"),
            ),
        ] {
            let kind = ValueType::Map(key, Box::new(value.clone()));
            let json = serde_json::from_str(text).unwrap();
            let datum = read(&json, &kind, runtime.host().allocator());
            let text = datum.map(|datum| write(&datum).unwrap().to_string());
            assert_eq!(text.as_deref().map_err(String::as_str), expected);
        }
    }

    #[test]
    fn what_does_not_fit_is_named_with_its_place() {
        let lengths = "lists beside each other have as many items: expected 2 at [1], found 1";
        check("[[1, 2], [3]]", DType::F32, Err(lengths));
        check(
            "[[1], 2]",
            DType::F32,
            Err("expected a list of 1 items at [1], found a number"),
        );
        check(
            "[1, [2]]",
            DType::F32,
            Err("expected a number at [1], found a list"),
        );
        check(
            "[1.5]",
            DType::I64,
            Err("expected a whole number at [0], found 1.5"),
        );
        check(
            "[300]",
            DType::Ui8,
            Err("300 is not in the range of u8 at [0]"),
        );
        check(
            "[1]",
            DType::I1,
            Err("expected true or false at [0], found 1"),
        );
        let object = r#"an object is a tensor if it is {"shape": [..], "data": [..]}"#;
        check("{}", DType::F32, Err(object));
    }
}
