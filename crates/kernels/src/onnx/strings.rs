//! Operations on strings: concatenate, split, match patterns, normalise.
//!
//! Strings are bytes; what needs letters takes what is no UTF-8 as the sign for that.

use std::collections::HashSet;

use tfrt_host::Error;
use tfrt_tensor::math::elementwise::broadcast_extents;
use tfrt_tensor::math::layout_copy::LayoutCopy;
use tfrt_tensor::{Bool, DType, StringHostTensor, Tensor, TensorShape};

use super::patterns::Pattern;
use super::shape::to_i64;
use super::{NodeCall, Operations, Outputs};

pub(super) const OPERATIONS: &Operations = &[
    ("onnx.RegexFullMatch", regex_full_match),
    ("onnx.StringConcat", string_concat),
    ("onnx.StringNormalizer", string_normalizer),
    ("onnx.StringSplit", string_split),
];

/// `StringConcat(x, y)`, which are broadcast.
fn string_concat(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let (x, y) = (node.inputs.strings(0)?, node.inputs.strings(1)?);
    let shapes = [x, y].map(|strings| strings.metadata().shape.to_dims());
    let shape =
        broadcast_extents(&[&shapes[0], &shapes[1]]).map_err(|error| node.with_name(&error))?;
    let broadcast =
        |strings: &StringHostTensor, own: &[usize]| -> Result<StringHostTensor, Error> {
            if own == &shape[..] {
                return Ok(strings.clone());
            }
            let moved = node.moved(
                &Tensor::from(strings.clone()),
                &LayoutCopy::broadcast(own, &shape)?,
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

/// `StringSplit(x)`, attributes `delimiter`, `maxsplit`: the parts of each string, padded with empty ones to the
/// largest number, and the numbers of parts.
fn string_split(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.strings(0)?;
    let delimiter = node.attributes.string_or("delimiter", "")?;
    let most = match node.attributes.integer("maxsplit")? {
        Some(most) => usize::try_from(most).ok(),
        None => None,
    };
    let most = most.map_or(usize::MAX, |most| most.saturating_add(1));
    let parts = |string| parts(string, delimiter.as_bytes(), most);
    let mut shape = x.metadata().shape.to_dims();
    let counts = node.output(DType::I64, &shape)?;
    let mut n_most = 0;
    {
        let mut counts = counts.write()?;
        for (count, string) in counts.elements_mut()?.iter_mut().zip(x.strings()) {
            let n_parts = parts(string).count();
            (*count, n_most) = (to_i64(n_parts), n_most.max(n_parts));
        }
    }
    shape.push(n_most);
    let shape = TensorShape::new(&shape)?;
    if shape.n_elements().is_none() {
        let message = format!("StringSplit: there is no memory for {shape} strings");
        return Err(Error::resource_exhausted(message));
    }
    let missing = || std::iter::repeat(&b""[..]);
    let filled = x
        .strings()
        .iter()
        .flat_map(|string| parts(string).chain(missing()).take(n_most));
    let strings = filled.map(<[u8]>::to_vec);
    Ok(Outputs::from(node.strings_of(shape, strings)?).and_tensor(counts))
}

/// Returns the parts between delimiters, or without one between blanks, at most so many; the last has the rest, in
/// the second case without blanks around.
fn parts<'s>(string: &'s [u8], delimiter: &'s [u8], most: usize) -> impl Iterator<Item = &'s [u8]> {
    let is_between_blanks = delimiter.is_empty();
    let mut rest = match is_between_blanks {
        true => Some(string.trim_ascii()).filter(|rest| !rest.is_empty()),
        false => Some(string),
    };
    let mut n_left = most.max(1);
    std::iter::from_fn(move || {
        let whole = rest.take()?;
        n_left -= 1;
        let end = match is_between_blanks {
            true => whole.iter().position(u8::is_ascii_whitespace),
            false => whole
                .windows(delimiter.len())
                .position(|window| window == delimiter),
        };
        let Some(end) = end.filter(|_| n_left > 0) else {
            return Some(whole);
        };
        let (part, behind) = whole.split_at(end);
        rest = match is_between_blanks {
            // There is more, as no blanks are at the end.
            true => Some(behind.trim_ascii_start()),
            false => Some(&behind[delimiter.len()..]),
        };
        Some(part)
    })
}

/// `RegexFullMatch(x)`, attribute `pattern`: whether a pattern matches each string from start to end.
fn regex_full_match(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.strings(0)?;
    let pattern = node
        .attributes
        .string("pattern")?
        .ok_or_else(|| node.attributes.missing("pattern"))?;
    let compiled = Pattern::new(pattern).map_err(|reason| {
        node.attributes
            .error("pattern", format_args!("is no pattern: {reason}"))
    })?;
    let matches = x.strings().iter().map(|string| {
        Bool::from(std::str::from_utf8(string).is_ok_and(|string| compiled.matches_whole(string)))
    });
    let matches: Vec<Bool> = matches.collect();
    Ok(node
        .tensor_of(&x.metadata().shape.to_dims(), &matches)?
        .into())
}

/// `StringNormalizer(x)`, attributes `case_change_action`, `is_case_sensitive`, `stopwords`, `locale`: removes some
/// words, and changes the case. If no string is left, the result is one empty string.
///
/// Upper and lower case are those of Unicode, whatever the locale.
fn string_normalizer(node: &NodeCall<'_>) -> Result<Outputs, Error> {
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
