//! `ZipMap`, `DictVectorizer`, `CastMap`: convert rows to maps, and maps to rows.

use std::collections::HashMap;
use std::sync::Arc;

use tfrt_host::Error;
use tfrt_tensor::op::PreparedState;
use tfrt_tensor::{DType, DenseHostTensor, Map, Maps, Tensor, TensorShape};

use super::super::dispatch::to_f64;
use super::super::prepare::{PreparedKernel, erase};
use super::super::{NodeCall, Outputs};
use super::encoder::Key;
use super::labels::Labels;

/// `ml.ZipMap(x)`, `x: [n, labels]`: a map for each row, with the labels as keys.
#[derive(Debug)]
struct ZipMap {
    keys: Tensor,
    n_keys: usize,
}

pub(super) fn zip_map(node: &NodeCall<'_>) -> Result<Option<Arc<dyn PreparedState>>, Error> {
    let labels = Labels::of(node, "classlabels_strings", "classlabels_int64s")?;
    Ok(Some(erase(ZipMap {
        n_keys: labels.len(),
        keys: labels.to_tensor(node)?,
    })))
}

impl PreparedKernel for ZipMap {
    fn run(self: Arc<Self>, node: &NodeCall<'_>) -> Result<Outputs, Error> {
        let x = node.inputs.dense(0)?;
        let rows = match x.shape().to_dims()[..] {
            [n] if n == self.n_keys => [1, n],
            [n_rows, n] if n == self.n_keys => [n_rows, n],
            ref other => {
                let message = format_args!(
                    "is expected to have a column for each of {} labels, found extents {other:?}",
                    self.n_keys
                );
                return Err(node.inputs.error(0, message));
            }
        };
        let values = x.reshape(TensorShape::new(&rows)?)?;
        let maps = Maps::new(self.keys.clone(), values.into())?;
        Ok(Outputs::new().and(maps))
    }
}

/// `ml.DictVectorizer(map)`: the value of each word of the vocabulary, `[1, words]`; 0 or an empty string for a word
/// that is not in the map.
#[derive(Debug)]
struct DictVectorizer {
    places: HashMap<Key, usize>,
    n_words: usize,
}

pub(super) fn dict_vectorizer(
    node: &NodeCall<'_>,
) -> Result<Option<Arc<dyn PreparedState>>, Error> {
    let words = Labels::of(node, "string_vocabulary", "int64_vocabulary")?;
    let keys = Key::of(node, &words.to_tensor(node)?)?.into_iter();
    Ok(Some(erase(DictVectorizer {
        places: keys.enumerate().map(|(place, key)| (key, place)).collect(),
        n_words: words.len(),
    })))
}

impl PreparedKernel for DictVectorizer {
    fn run(self: Arc<Self>, node: &NodeCall<'_>) -> Result<Outputs, Error> {
        let map = map(node)?;
        let places = Key::of(node, map.keys())?;
        let places = places.iter().map(|key| self.places.get(key).copied());
        let extents = [1, self.n_words];
        match map.values() {
            Tensor::String(strings) => {
                let mut out = vec![Vec::new(); self.n_words];
                for (place, string) in places.zip(strings.strings()) {
                    if let Some(place) = place {
                        out[place].clone_from(string);
                    }
                }
                Ok(node.strings_of(TensorShape::new(&extents)?, out)?.into())
            }
            values => {
                let values = values.as_dense()?;
                let out = node.zeros(values.dtype(), &extents)?;
                let size = out.dtype().size_bytes().unwrap_or(1);
                let (reading, mut writing) = (values.read()?, out.write()?);
                for (place, value) in places.zip(reading.bytes().chunks_exact(size)) {
                    if let Some(place) = place {
                        writing.bytes_mut()[place * size..][..size].copy_from_slice(value);
                    }
                }
                drop(writing);
                Ok(out.into())
            }
        }
    }
}

fn map<'n>(node: &NodeCall<'n>) -> Result<&'n Map, Error> {
    let map = node.inputs.any(0).and_then(|value| value.get::<Map>());
    map.ok_or_else(|| node.inputs.error(0, "is expected to be a map"))
}

/// `ml.CastMap(map)`, attributes `cast_to`, `map_form`, `max_map`: the values in the order of their keys, `[1, n]`;
/// in the form `SPARSE` each at the position that is its key, with 0 or an empty string between.
#[derive(Debug)]
struct CastMap {
    to: DType,
    /// The number of values in the form `SPARSE`.
    n_places: Option<usize>,
}

pub(super) fn cast_map(node: &NodeCall<'_>) -> Result<Option<Arc<dyn PreparedState>>, Error> {
    let attributes = &node.attributes;
    let other = |name: &str, found: &str| {
        let message = format_args!("has no meaning for '{}'", found.escape_debug());
        attributes.error(name, message)
    };
    let to = match attributes.string_or("cast_to", "TO_FLOAT")? {
        "TO_FLOAT" => DType::F32,
        "TO_INT64" => DType::I64,
        "TO_STRING" => DType::String,
        found => return Err(other("cast_to", found)),
    };
    let n_places = match attributes.string_or("map_form", "DENSE")? {
        "DENSE" => None,
        "SPARSE" => Some(attributes.size_or("max_map", 1)?),
        found => return Err(other("map_form", found)),
    };
    Ok(Some(erase(CastMap { to, n_places })))
}

impl PreparedKernel for CastMap {
    fn run(self: Arc<Self>, node: &NodeCall<'_>) -> Result<Outputs, Error> {
        let map = map(node)?;
        let keys = node.numbers_of(map.keys())?;
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_by(|a, b| keys[*a].total_cmp(&keys[*b]));
        let n = self.n_places.unwrap_or(keys.len());
        // Of each place the number of the value.
        let mut values: Vec<Option<usize>> = Vec::new();
        if values.try_reserve_exact(n).is_err() {
            return Err(Error::resource_exhausted(
                "there is no memory for the values",
            ));
        }
        match self.n_places {
            None => values.extend(order.into_iter().map(Some)),
            Some(n) => {
                values.resize(n, None);
                for index in order {
                    #[expect(
                        clippy::cast_possible_truncation,
                        clippy::cast_sign_loss,
                        reason = "it is saturated, and checked"
                    )]
                    let place = keys[index].max(-1.0) as usize;
                    let slot = values.get_mut(place).filter(|_| keys[index] >= 0.0);
                    *slot.ok_or_else(|| {
                        let key = keys[index];
                        node.inputs.error(
                            0,
                            format_args!(
                                "is expected to have keys from 0 to below {n}, found {key}"
                            ),
                        )
                    })? = Some(index);
                }
            }
        }
        let extents = [1, n];
        if self.to == DType::String {
            let texts = texts(map.values())?;
            let text = |value: Option<usize>| value.map_or_else(Vec::new, |at| texts[at].clone());
            let texts = values.into_iter().map(text);
            return Ok(node.strings_of(TensorShape::new(&extents)?, texts)?.into());
        }
        let numbers = node.numbers_of(map.values())?;
        let number = |value: Option<usize>| value.map_or(0.0, |at| numbers[at]);
        let numbers = values.into_iter().map(number);
        let out: DenseHostTensor = match self.to {
            #[expect(clippy::cast_possible_truncation, reason = "the result is of 32 bits")]
            DType::F32 => {
                node.tensor_of(&extents, &numbers.map(|x| x as f32).collect::<Vec<_>>())?
            }
            #[expect(clippy::cast_possible_truncation, reason = "integers are wanted")]
            _ => node.tensor_of(&extents, &numbers.map(|x| x as i64).collect::<Vec<_>>())?,
        };
        Ok(out.into())
    }
}

impl NodeCall<'_> {
    /// Returns the numbers of a part of the first operand; strings are parsed.
    fn numbers_of(&self, tensor: &Tensor) -> Result<Vec<f64>, Error> {
        let Tensor::String(strings) = tensor else {
            return to_f64(tensor.as_dense()?);
        };
        let number = |text: &Vec<u8>| {
            let number = std::str::from_utf8(text).ok();
            let number = number.and_then(|text| text.trim().parse::<f64>().ok());
            number.ok_or_else(|| {
                let text = text.escape_ascii();
                self.inputs
                    .error(0, format_args!("has '{text}', which is no number"))
            })
        };
        strings.strings().iter().map(number).collect()
    }
}

/// Returns the values of a map as texts.
fn texts(values: &Tensor) -> Result<Vec<Vec<u8>>, Error> {
    if let Tensor::String(strings) = values {
        return Ok(strings.strings().to_vec());
    }
    let dense = values.as_dense()?;
    let is_integer = dense.dtype().is_integer();
    #[expect(clippy::cast_possible_truncation, reason = "it is a whole number")]
    let text = |x: f64| match is_integer {
        true => (x as i64).to_string(),
        false => x.to_string(),
    };
    Ok(to_f64(dense)?
        .into_iter()
        .map(|x| text(x).into_bytes())
        .collect())
}
