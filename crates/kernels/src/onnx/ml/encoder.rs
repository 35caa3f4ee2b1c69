//! `LabelEncoder` and its relatives: maps keys to values.

use std::collections::HashMap;

use tfrt_host::Error;
use tfrt_tensor::{DType, StringHostTensor, Tensor};

use super::super::dispatch::to_f64;
use super::super::opaque::{count, extents};
use super::super::{NodeCall, Outputs};

/// A key: the bytes of a string, or the bits of a number, with one for all NaNs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Text(Vec<u8>),
    Integer(i64),
    Bits(u64),
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Key::Text(text) => text.escape_ascii().fmt(f),
            Key::Integer(number) => number.fmt(f),
            Key::Bits(bits) => f64::from_bits(*bits).fmt(f),
        }
    }
}

impl Key {
    /// Bytes that a key takes beside those of its text: the key, the heap's own, and a number while it is made.
    const BYTES: usize = size_of::<Key>() + 16 + size_of::<f64>();

    fn of_float(value: f64) -> Key {
        Key::Bits(match value {
            _ if value.is_nan() => f64::NAN.to_bits(),
            // Both zeros are the same.
            _ if value == 0.0 => 0,
            _ => value.to_bits(),
        })
    }

    /// Returns the keys of a tensor's elements.
    pub(super) fn of(node: &NodeCall<'_>, tensor: &Tensor) -> Result<Vec<Key>, Error> {
        let n_keys = count(&extents(tensor));
        node.workspace.reserve(n_keys, Key::BYTES)?;
        if let Tensor::String(strings) = tensor {
            let n_bytes = strings.strings().iter().map(Vec::len).sum();
            node.workspace.reserve(n_bytes, 1)?;
            return Ok(strings.strings().iter().cloned().map(Key::Text).collect());
        }
        let dense = tensor.as_dense()?;
        let reading = dense.read()?;
        match dense.dtype() {
            DType::I64 => Ok(reading
                .elements::<i64>()?
                .iter()
                .copied()
                .map(Key::Integer)
                .collect()),
            DType::Ui64 => {
                let elements = reading.elements::<u64>()?.iter();
                Ok(elements
                    .map(|one| Key::Integer(one.cast_signed()))
                    .collect())
            }
            dtype if dtype.is_integer() => {
                #[allow(
                    clippy::cast_possible_truncation,
                    reason = "integers of 32 bits or fewer"
                )]
                let keys = to_f64(dense)?
                    .into_iter()
                    .map(|one| Key::Integer(one as i64));
                Ok(keys.collect())
            }
            _ => Ok(to_f64(dense)?.into_iter().map(Key::of_float).collect()),
        }
    }
}

/// `ml.LabelEncoder(x)`, attributes `keys_TYPE`, `values_TYPE`, `default_TYPE`, where `TYPE` is `floats`, `int64s`,
/// `strings` or `tensor` (`default_float`, `default_int64`, `default_string`): the value of each key. Before version 2
/// keys or values are `classes_strings`, the others their places.
pub(super) fn label_encoder(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    if let Some(classes) = node.attributes.strings("classes_strings")? {
        let places: Vec<i64> = (0_i64..).take(classes.len()).collect();
        return pairs(node, &places, classes);
    }
    let keys =
        list(node, "keys")?.ok_or_else(|| node.error("expected keys, which are left out"))?;
    let values =
        list(node, "values")?.ok_or_else(|| node.error("expected values, which are left out"))?;
    look_up(node, &keys, &values)
}

/// `ml.CategoryMapper(x)`, attributes `cats_int64s`, `cats_strings`, `default_int64`, `default_string`: integers for
/// strings, and strings for integers.
pub(super) fn category_mapper(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let missing = |name| move || node.attributes.missing(name);
    let integers = node.attributes.integers("cats_int64s")?;
    let names = node.attributes.strings("cats_strings")?;
    let integers = integers.ok_or_else(missing("cats_int64s"))?;
    pairs(node, integers, names.ok_or_else(missing("cats_strings"))?)
}

/// Maps strings to integers, or integers to strings.
fn pairs(node: &NodeCall<'_>, integers: &[i64], names: Vec<&[u8]>) -> Result<Outputs, Error> {
    let integers = node.tensor_of(&[integers.len()], integers)?.into();
    let names = strings(names)?;
    match node.inputs.tensor(0)?.metadata().dtype {
        DType::String => look_up(node, &names, &integers),
        _ => look_up(node, &integers, &names),
    }
}

/// Maps each element of the first operand to the value of its key, or to the default.
fn look_up(node: &NodeCall<'_>, keys: &Tensor, values: &Tensor) -> Result<Outputs, Error> {
    let x = node.inputs.tensor(0)?;
    let n_values = count(&values.metadata().shape.to_dims());
    let keys = Key::of(node, keys)?;
    if keys.len() != n_values {
        let n_keys = keys.len();
        return Err(node.error(format_args!(
            "expected as many keys as values, found {n_keys} and {n_values}"
        )));
    }
    let mut places: HashMap<Key, usize> = HashMap::new();
    for (place, key) in keys.into_iter().enumerate() {
        // The last of equal keys counts.
        places.insert(key, place);
    }
    let n_found = count(&extents(x));
    node.workspace
        .reserve(n_found, size_of::<Option<usize>>())?;
    let found: Vec<Option<usize>> = Key::of(node, x)?
        .iter()
        .map(|key| places.get(key).copied())
        .collect();
    let shape = x.metadata().shape.clone();
    let default = default(node, values.metadata().dtype)?;
    match (values, &default) {
        (Tensor::String(values), Tensor::String(default)) => {
            let string = |place: &Option<usize>| match place {
                Some(place) => values.strings()[*place].clone(),
                None => default.strings().first().cloned().unwrap_or_default(),
            };
            Ok(node.strings_of(shape, found.iter().map(string))?.into())
        }
        _ => {
            let (values, default) = (values.as_dense()?, default.as_dense()?);
            let out = node.output(values.dtype(), &shape.to_dims())?;
            let size = values.dtype().size_bytes().unwrap_or(1);
            if default.dtype() != values.dtype() || default.n_elements() != 1 {
                let (wanted, found) = (values.dtype(), default.metadata());
                return Err(node.error(format_args!(
                    "expected one default of {wanted}, found {found}"
                )));
            }
            {
                let (values, default, mut writing) =
                    (values.read()?, default.read()?, out.write()?);
                let places = writing.bytes_mut().chunks_exact_mut(size).zip(&found);
                for (out, place) in places {
                    out.copy_from_slice(match place {
                        Some(place) => &values.bytes()[place * size..(place + 1) * size],
                        None => default.bytes(),
                    });
                }
            }
            Ok(out.into())
        }
    }
}

/// `ml.OneHotEncoder(x)` where an unknown category is an error; else it is expanded to other operations.
pub(super) fn one_hot_encoder(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.tensor(0)?;
    let integers = node.attributes.integers("cats_int64s")?.unwrap_or(&[]);
    let (categories, found) = match x {
        Tensor::String(_) => {
            let names = node.attributes.strings("cats_strings")?.unwrap_or_default();
            (Key::of(node, &strings(names)?)?, Key::of(node, x)?)
        }
        _ => {
            #[expect(clippy::cast_possible_truncation, reason = "so categories are defined")]
            let key = |x: f64| Key::Integer(x as i64);
            let categories = integers.iter().copied().map(Key::Integer);
            let found = node.inputs.numbers(0)?;
            node.workspace.reserve(found.len(), Key::BYTES)?;
            let found = found.into_iter().map(key);
            (categories.collect(), found.collect())
        }
    };
    let allows_others = node.attributes.flag("zeros", true)?;
    let mut extents = x.metadata().shape.to_dims();
    extents.push(categories.len());
    let out = node.zeros(DType::F32, &extents)?;
    let places = categories.iter().zip(0..);
    let places: HashMap<&Key, usize> = places.collect();
    let mut writing = out.write()?;
    let rows = writing.elements_mut::<f32>()?;
    for (key, row) in found
        .iter()
        .zip(rows.chunks_exact_mut(categories.len().max(1)))
    {
        match places.get(key) {
            Some(place) => row[*place] = 1.0,
            None if allows_others => {}
            None => {
                let message = format_args!("has the category '{key}', which is unknown");
                return Err(node.inputs.error(0, message));
            }
        }
    }
    drop(writing);
    Ok(out.into())
}

/// Returns the attribute of `keys` or `values`, of whichever type.
fn list(node: &NodeCall<'_>, what: &str) -> Result<Option<Tensor>, Error> {
    let name = |kind: &str| format!("{what}_{kind}");
    if let Some(list) = node.attributes.strings(&name("strings"))? {
        return strings(list).map(Some);
    }
    if let Some(list) = node.attributes.integers(&name("int64s"))? {
        return Ok(Some(node.tensor_of(&[list.len()], list)?.into()));
    }
    if let Some(list) = node.attributes.floats(&name("floats"))? {
        return Ok(Some(node.tensor_of(&[list.len()], list)?.into()));
    }
    node.attributes
        .tensor(&name("tensor"), node.execution.host().allocator())
}

fn strings(list: Vec<&[u8]>) -> Result<Tensor, Error> {
    let shape = tfrt_tensor::TensorShape::new(&[list.len()])?;
    let strings = list.into_iter().map(<[u8]>::to_vec).collect();
    Ok(StringHostTensor::new(shape, strings)?.into())
}

/// Returns the value for unknown keys.
fn default(node: &NodeCall<'_>, dtype: DType) -> Result<Tensor, Error> {
    let allocator = node.execution.host().allocator();
    if let Some(tensor) = node.attributes.tensor("default_tensor", allocator)? {
        return Ok(tensor);
    }
    match dtype {
        DType::String => strings(vec![
            node.attributes
                .string_or("default_string", "_Unused")?
                .as_bytes(),
        ]),
        DType::I64 => Ok(node
            .tensor_of(&[], &[node.attributes.integer_or("default_int64", -1)?])?
            .into()),
        DType::F32 => Ok(node
            .tensor_of(&[], &[node.attributes.float_or("default_float", -0.0)?])?
            .into()),
        other => Err(node.error(format_args!(
            "expected a default of {other}, which is left out"
        ))),
    }
}
