//! Strings: joined, cut, compared with patterns, made alike.
//!
//! Strings are bytes; what needs letters takes what is no UTF-8 as the sign for that.

use std::collections::HashSet;

use regex::RegexBuilder;
use tfrt_host::Error;
use tfrt_tensor::math::elementwise::broadcast_extents;
use tfrt_tensor::math::movement::Movement;
use tfrt_tensor::{Bool, StringHostTensor, Tensor, TensorShape};

use super::shape::to_i64;
use super::{Node, Operations, Outputs};

pub(super) const OPERATIONS: &Operations = &[
    ("RegexFullMatch", regex_full_match),
    ("StringConcat", string_concat),
    ("StringNormalizer", string_normalizer),
    ("StringSplit", string_split),
];

/// The memory that a compiled pattern may take, in bytes: patterns come with models.
const PATTERN_BYTES: usize = 1 << 22;

/// `StringConcat(x, y)`, which are broadcast.
fn string_concat(node: &Node<'_>) -> Result<Outputs, Error> {
    let (x, y) = (node.inputs.strings(0)?, node.inputs.strings(1)?);
    let shapes = [x, y].map(|strings| strings.metadata().shape.to_dims());
    let shape = broadcast_extents(&[&shapes[0], &shapes[1]])
        .map_err(|error| node.error(error.message()))?;
    let broadcast =
        |strings: &StringHostTensor, own: &[usize]| -> Result<StringHostTensor, Error> {
            if own == &shape[..] {
                return Ok(strings.clone());
            }
            let moved = node.moved(
                &Tensor::from(strings.clone()),
                &Movement::broadcast(own, &shape)?,
            )?;
            let tensor = moved.get::<Tensor>();
            tensor.map_or_else(
                || Err(node.error("too many strings")),
                |tensor| tensor.as_strings().cloned(),
            )
        };
    let (x, y) = (broadcast(x, &shapes[0])?, broadcast(y, &shapes[1])?);
    let pairs = x.strings().iter().zip(y.strings());
    let joined = pairs.map(|(x, y)| [&x[..], &y[..]].concat());
    Ok(node.strings_of(TensorShape::new(&shape)?, joined)?.into())
}

/// `StringSplit(x)`, attributes `delimiter`, `maxsplit`: the parts of each string, filled up with empty ones to as many
/// as the most, and how many there are.
fn string_split(node: &Node<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.strings(0)?;
    let delimiter = node.attributes.string_or("delimiter", "")?;
    let most = match node.attributes.integer("maxsplit")? {
        Some(most) => usize::try_from(most).ok(),
        None => None,
    };
    let most = most.map_or(usize::MAX, |most| most.saturating_add(1));
    let parts: Vec<Vec<&[u8]>> = x
        .strings()
        .iter()
        .map(|string| match delimiter.is_empty() {
            true => words(string, most),
            false => pieces(string, delimiter.as_bytes(), most),
        })
        .collect();
    let n_most = parts.iter().map(Vec::len).max().unwrap_or(0);
    let counts: Vec<i64> = parts.iter().map(|parts| to_i64(parts.len())).collect();
    let mut shape = x.metadata().shape.to_dims();
    let counts = node.tensor_of(&shape, &counts)?;
    shape.push(n_most);
    let shape = TensorShape::new(&shape)?;
    if shape.n_elements().is_none() {
        return Err(node.error(format_args!("there is no memory for {shape} strings")));
    }
    let strings = parts.into_iter().flat_map(|parts| {
        let n_missing = n_most - parts.len();
        let missing = std::iter::repeat_n(Vec::new(), n_missing);
        parts.into_iter().map(<[u8]>::to_vec).chain(missing)
    });
    Ok(Outputs::from(node.strings_of(shape, strings)?).and_tensor(counts))
}

/// What stands between blanks, at most so many; the last has the rest, without blanks around.
fn words(string: &[u8], most: usize) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    let mut rest = string.trim_ascii();
    while !rest.is_empty() {
        if parts.len() + 1 >= most {
            parts.push(rest);
            break;
        }
        let end = rest
            .iter()
            .position(u8::is_ascii_whitespace)
            .unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        parts.push(word);
        rest = behind.trim_ascii_start();
    }
    parts
}

/// What stands between delimiters, at most so many; the last has the rest.
fn pieces<'s>(string: &'s [u8], delimiter: &[u8], most: usize) -> Vec<&'s [u8]> {
    let mut parts = Vec::new();
    let mut rest = string;
    while parts.len() + 1 < most {
        let Some(at) = rest
            .windows(delimiter.len())
            .position(|window| window == delimiter)
        else {
            break;
        };
        parts.push(&rest[..at]);
        rest = &rest[at + delimiter.len()..];
    }
    parts.push(rest);
    parts
}

/// `RegexFullMatch(x)`, attribute `pattern`: whether a pattern matches each string from start to end.
fn regex_full_match(node: &Node<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.strings(0)?;
    let pattern = node
        .attributes
        .string("pattern")?
        .ok_or_else(|| node.attributes.missing("pattern"))?;
    let compiled = |pattern: &str| {
        let built = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).build();
        built.map_err(|error| {
            let reason = error.to_string().replace('\n', " ");
            node.attributes
                .error("pattern", format_args!("is no pattern: {reason}"))
        })
    };
    // By itself first: brackets may not close those around it.
    compiled(pattern)?;
    let whole = compiled(&format!(r"\A(?:{pattern})\z"))?;
    let matches = x.strings().iter().map(|string| {
        Bool::from(std::str::from_utf8(string).is_ok_and(|string| whole.is_match(string)))
    });
    let matches: Vec<Bool> = matches.collect();
    Ok(node
        .tensor_of(&x.metadata().shape.to_dims(), &matches)?
        .into())
}

/// `StringNormalizer(x)`, attributes `case_change_action`, `is_case_sensitive`, `stopwords`, `locale`: without some
/// words, in another case. Of what is left of nothing, one empty string.
///
/// Upper and lower case are those of Unicode, whatever the locale.
fn string_normalizer(node: &Node<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.strings(0)?;
    let shape = x.metadata().shape.to_dims();
    if !matches!(&shape[..], [_] | [1, _]) {
        let message = format_args!("is expected to have the shape [n] or [1, n], found {shape:?}");
        return Err(node.inputs.error(0, message));
    }
    let change: fn(&str) -> String =
        match node.attributes.string_or("case_change_action", "NONE")? {
            "NONE" => str::to_owned,
            "LOWER" => str::to_lowercase,
            "UPPER" => str::to_uppercase,
            other => {
                let message =
                    format_args!("is expected to be NONE, LOWER or UPPER, found '{other}'");
                return Err(node.attributes.error("case_change_action", message));
            }
        };
    // Without regard to case, both sides are compared in lower case.
    let compared: fn(&str) -> String = match node.attributes.flag("is_case_sensitive", false)? {
        true => str::to_owned,
        false => str::to_lowercase,
    };
    let stop_words: HashSet<String> = node
        .attributes
        .strings("stopwords")?
        .unwrap_or_default()
        .into_iter()
        .map(|word| compared(&String::from_utf8_lossy(word)))
        .collect();
    let mut kept: Vec<Vec<u8>> = Vec::new();
    for string in x.strings() {
        let string = String::from_utf8_lossy(string);
        if !stop_words.contains(&compared(&string)) {
            kept.push(change(&string).into_bytes());
        }
    }
    if kept.is_empty() {
        kept.push(Vec::new());
    }
    let shape = match shape.len() {
        1 => TensorShape::new(&[kept.len()])?,
        _ => TensorShape::new(&[1, kept.len()])?,
    };
    Ok(node.strings_of(shape, kept)?.into())
}
