//! Kernels on strings: join, cut, count, match, parse numbers; and counts of integers.

use regex::{Regex, RegexBuilder, bytes};
use smallvec::smallvec;
use tfrt_host::{DType, Error};
use tfrt_tensor::math::elementwise::broadcast_extents;
use tfrt_tensor::math::number::{Number, Real};
use tfrt_tensor::op::{Formats, Outputs, TensorCall, TensorKernel, unsupported};
use tfrt_tensor::{Bool, DenseHostTensor, Dims, Element, StringHostTensor, TensorShape, with_real};

use super::integers;
use super::rearrange::{list_of, listed, product};
use super::segments::indices;
use super::tensors::axis_in;

pub(super) const KERNELS: &[TensorKernel] = &[
    TensorKernel::new("tf.DenseBincount", |call| {
        let dtype = call.dense(2)?.dtype();
        let row = call.dense(0)?.shape().extents().last().unwrap_or(1);
        with_real!(dtype, T => counted::<T>(call, row), else Err(unsupported(call.name, dtype)))
    }),
    TensorKernel::new("tf.ReduceJoin", reduce_join).formats(Formats::STRING),
    TensorKernel::new("tf.RegexFullMatch", |call| {
        let (x, pattern) = (call.tensor(0)?.as_strings()?, text(call, 1)?);
        // By itself first: brackets may not close those around it.
        compiled(call, "operand 1", &pattern)?;
        let whole = compiled(call, "operand 1", &format!(r"\A(?:{pattern})\z"))?;
        let matches = x.strings().iter().map(|string| {
            // What is no text matches nothing.
            let text = std::str::from_utf8(string);
            Bool::from(text.is_ok_and(|text| whole.is_match(text)))
        });
        let matches: Vec<Bool> = matches.collect();
        Ok(smallvec![listed(
            call,
            &x.metadata().shape.to_dims(),
            &matches
        )?])
    })
    .formats(Formats::STRING),
    TensorKernel::new("tf.RegexReplace", |call| {
        let (pattern, rewrite) = (text(call, 1)?, text(call, 2)?);
        replace(call, "operand 1", [&pattern, &rewrite])
    })
    .formats(Formats::STRING),
    TensorKernel::new("tf.StaticRegexReplace", |call| {
        let texts = ["pattern", "rewrite"].map(|name| call.attrs.text(name));
        replace(call, "attribute 'pattern'", texts)
    })
    .formats(Formats::STRING),
    TensorKernel::new("tf.StringJoin", join).formats(Formats::STRING),
    TensorKernel::new("tf.StringLength", |call| {
        let x = call.tensor(0)?.as_strings()?;
        let in_letters = in_letters(call)?;
        let lengths = x.strings().iter().map(|string| match in_letters {
            true => string.iter().filter(|byte| begins(**byte)).count(),
            false => string.len(),
        });
        let lengths: Vec<usize> = lengths.collect();
        Ok(smallvec![indices(
            call,
            DType::I32,
            &x.metadata().shape.to_dims(),
            &lengths
        )?])
    })
    .formats(Formats::STRING),
    TensorKernel::new("tf.StringLower", |call| {
        in_case(call, str::to_lowercase, <[u8]>::to_ascii_lowercase)
    })
    .formats(Formats::STRING),
    TensorKernel::new("tf.StringSplitV2", split).formats(Formats::STRING),
    TensorKernel::new("tf.StringStrip", |call| {
        each(call, |string| stripped(string).to_vec())
    })
    .formats(Formats::STRING),
    TensorKernel::new("tf.StringToNumber", numbers).formats(Formats::STRING),
    TensorKernel::new("tf.StringUpper", |call| {
        in_case(call, str::to_uppercase, <[u8]>::to_ascii_uppercase)
    })
    .formats(Formats::STRING),
    TensorKernel::new("tf.Substr", part).formats(Formats::STRING),
];

/// The most bytes of a compiled pattern.
const PATTERN_BYTES: usize = 1 << 20;

/// Makes a tensor of strings from those of the operand, one by one.
fn each(call: &TensorCall<'_>, make: impl Fn(&[u8]) -> Vec<u8>) -> Result<Outputs, Error> {
    let x = call.tensor(0)?.as_strings()?;
    let strings = x.strings().iter().map(|string| make(string));
    let allocator = call.execution.host().allocator();
    let made = StringHostTensor::collect(allocator, x.metadata().shape.clone(), strings)?;
    Ok(smallvec![made.into()])
}

fn in_case(
    call: &TensorCall<'_>,
    of_text: fn(&str) -> String,
    of_bytes: fn(&[u8]) -> Vec<u8>,
) -> Result<Outputs, Error> {
    match call.attrs.text("encoding") {
        "" => each(call, of_bytes),
        // What is no text stays as it is.
        "utf-8" => each(call, |bytes| match std::str::from_utf8(bytes) {
            Ok(text) => of_text(text).into_bytes(),
            Err(_) => bytes.to_vec(),
        }),
        found => {
            let found = found.escape_debug();
            Err(call.error(format_args!(
                "expected attribute 'encoding' to be utf-8 or empty, found '{found}'"
            )))
        }
    }
}

/// Returns the only string of an operand, as UTF-8.
fn text(call: &TensorCall<'_>, index: usize) -> Result<String, Error> {
    let found = call.tensor(index)?.as_strings()?.strings();
    let text = match found {
        [one] => std::str::from_utf8(one).ok(),
        _ => None,
    };
    text.map(str::to_owned).ok_or_else(|| {
        call.error(format_args!(
            "operand {index}: expected one string of UTF-8"
        ))
    })
}

/// Compiles a pattern of text, whose empty matches are between letters, not between their bytes. It comes from
/// `place`.
fn compiled(call: &TensorCall<'_>, place: &str, pattern: &str) -> Result<Regex, Error> {
    let pattern = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).build();
    pattern.map_err(|error| {
        let error = error.to_string();
        call.error(format_args!("{place}: {}", error.escape_debug()))
    })
}

fn replace(
    call: &TensorCall<'_>,
    place: &str,
    [pattern, text]: [&str; 2],
) -> Result<Outputs, Error> {
    let compiled = compiled(call, place, pattern)?;
    // A group is called \\1 there, ${1} here.
    let (mut rewrite, mut largest) = (String::new(), 0);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '$' => rewrite.push_str("$$"),
            '\\' => match letters.next() {
                Some(digit @ '0'..='9') => {
                    rewrite.extend(['$', '{', digit, '}']);
                    largest = largest.max(digit.to_digit(10).map_or(0, |group| group as usize));
                }
                Some('\\') => rewrite.push('\\'),
                _ => {
                    return Err(call.error(format_args!(
                        "attribute 'rewrite': expected a digit or another one behind a backslash"
                    )));
                }
            },
            letter => rewrite.push(letter),
        }
    }
    // Of a group that is not there nothing is made, as the original has it.
    if largest >= compiled.captures_len() {
        return each(call, <[u8]>::to_vec);
    }
    let limit = usize::from(!call.attrs.flag("replace_global"));
    // What is no text is seen as bytes.
    let of_bytes = bytes::RegexBuilder::new(pattern)
        .size_limit(PATTERN_BYTES)
        .build();
    each(call, |string| {
        match (std::str::from_utf8(string), &of_bytes) {
            (Ok(text), _) => {
                let made = compiled.replacen(text, limit, &rewrite[..]);
                made.into_owned().into_bytes()
            }
            (Err(_), Ok(pattern)) => {
                let made = pattern.replacen(string, limit, rewrite.as_bytes());
                made.into_owned()
            }
            (Err(_), Err(_)) => string.to_vec(),
        }
    })
}

/// Returns a string without blanks around it.
fn stripped(string: &[u8]) -> &[u8] {
    let Some(start) = string.iter().position(|byte| !is_blank(*byte)) else {
        return &[];
    };
    let end = string.iter().rposition(|byte| !is_blank(*byte));
    &string[start..=end.unwrap_or(start)]
}

fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

/// Returns whether a byte begins a letter of UTF-8.
fn begins(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

/// Returns whether strings are measured in letters, not in bytes.
fn in_letters(call: &TensorCall<'_>) -> Result<bool, Error> {
    match call.attrs.text("unit") {
        "" | "BYTE" => Ok(false),
        "UTF8_CHAR" => Ok(true),
        found => {
            let found = found.escape_debug();
            Err(call.error(format_args!(
                "expected attribute 'unit' to be BYTE or UTF8_CHAR, found '{found}'"
            )))
        }
    }
}

fn join(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let parts = (0..call.n_inputs()).map(|index| call.tensor(index)?.as_strings());
    let parts: Vec<&StringHostTensor> = parts.collect::<Result<_, _>>()?;
    let shapes = parts.iter().map(|part| &part.metadata().shape);
    let shape = shapes.clone().find(|shape| shape.rank() > 0);
    let shape = shape.cloned().unwrap_or(TensorShape::SCALAR);
    if let Some(other) = shapes
        .clone()
        .find(|other| other.rank() > 0 && **other != shape)
    {
        return Err(call.error(format_args!(
            "expected strings of one shape, found {shape} and {other}"
        )));
    }
    let n = parts.iter().map(|part| part.strings().len());
    let n = match shape.rank() {
        0 => 1,
        _ => n
            .zip(shapes)
            .find(|(_, own)| own.rank() > 0)
            .map_or(0, |(n, _)| n),
    };
    let separator = call.attrs.text("separator").as_bytes();
    let strings = (0..n).map(|at| {
        let all = parts.iter().map(|part| match part.metadata().shape.rank() {
            0 => &part.strings()[0][..],
            _ => &part.strings()[at][..],
        });
        all.collect::<Vec<&[u8]>>().join(separator)
    });
    let allocator = call.execution.host().allocator();
    Ok(smallvec![
        StringHostTensor::collect(allocator, shape.clone(), strings)?.into()
    ])
}

/// Joins the strings along some axes, of which the first varies slowest.
fn reduce_join(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let x = call.tensor(0)?.as_strings()?;
    let shape = x.metadata().shape.to_dims();
    let strides = x.metadata().shape.strides();
    let mut axes = Dims::new();
    for axis in integers(call, 1)? {
        let at = axis_in(call, axis, shape.len())?;
        if axes.contains(&at) {
            return Err(call.error(format_args!("expected each axis once, found {axis} again")));
        }
        axes.push(at);
    }
    let keep = call.attrs.flag("keep_dims");
    let kept = |at: &usize| !axes.contains(at);
    let result = shape
        .iter()
        .enumerate()
        .filter_map(|(at, extent)| match kept(&at) {
            true => Some(*extent),
            false => keep.then_some(1),
        });
    let result: Dims = result.collect();
    let allocator = call.execution.host().allocator();
    if x.strings().is_empty() {
        // Of no strings there may be many joined ones.
        let n = product(&result);
        drop(list_of::<Vec<u8>>(call, n)?);
        let strings = (0..n).map(|_| Vec::new());
        let strings = StringHostTensor::collect(allocator, TensorShape::new(&result)?, strings)?;
        return Ok(smallvec![strings.into()]);
    }
    let mut starts = vec![0];
    for at in (0..shape.len()).filter(kept) {
        let all = starts.iter().flat_map(|start| {
            let stride = strides[at];
            (0..shape[at]).map(move |place| start + place * stride)
        });
        starts = all.collect();
    }
    let mut places = vec![0];
    for at in &axes {
        // The next axis is walked around those before.
        let all = (0..shape[*at]).flat_map(|place| {
            let from = place * strides[*at];
            places.iter().map(move |inner| inner + from)
        });
        places = all.collect();
    }
    let separator = call.attrs.text("separator").as_bytes();
    let strings = starts.iter().map(|start| {
        let all = places.iter().map(|place| &x.strings()[start + place][..]);
        all.collect::<Vec<&[u8]>>().join(separator)
    });
    let shape = TensorShape::new(&result)?;
    Ok(smallvec![
        StringHostTensor::collect(allocator, shape, strings)?.into()
    ])
}

/// Splits a string at separators, or at blanks without one, with so many cuts at most.
fn parts<'s>(string: &'s [u8], separator: &[u8], most: usize) -> Vec<&'s [u8]> {
    let (mut parts, mut rest) = (Vec::new(), string);
    if most == 0 {
        return vec![string];
    }
    if separator.is_empty() {
        let start = |text: &[u8]| text.iter().position(|byte| !is_blank(*byte));
        while let Some(from) = start(rest) {
            let text = &rest[from..];
            let end = text
                .iter()
                .position(|byte| is_blank(*byte))
                .unwrap_or(text.len());
            parts.push(&text[..end]);
            rest = &text[end..];
            if parts.len() == most {
                // What is left, also if that is nothing.
                parts.push(&rest[start(rest).unwrap_or(rest.len())..]);
                break;
            }
        }
        return parts;
    }
    let find = |text: &[u8]| {
        text.windows(separator.len())
            .position(|part| part == separator)
    };
    while let Some(end) = find(rest).filter(|_| parts.len() < most) {
        parts.push(&rest[..end]);
        rest = &rest[end + separator.len()..];
    }
    parts.push(rest);
    parts
}

fn split(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let x = call.tensor(0)?.as_strings()?;
    if x.metadata().shape.rank() != 1 {
        let found = x.metadata();
        return Err(call.error(format_args!("expected a list of strings, found {found}")));
    }
    let [separator] = call.tensor(1)?.as_strings()?.strings() else {
        return Err(call.error(format_args!("operand 1: expected one separator")));
    };
    let most = call.attrs.int("maxsplit").unwrap_or(-1);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let (mut places, mut all, mut n_most) = (Vec::new(), Vec::new(), 0);
    for (row, string) in x.strings().iter().enumerate() {
        let parts = parts(string, separator, most);
        n_most = n_most.max(parts.len());
        places.extend((0..parts.len()).flat_map(|at| [row, at]));
        all.extend(parts.into_iter().map(<[u8]>::to_vec));
    }
    let (n, n_rows) = (all.len(), x.strings().len());
    let allocator = call.execution.host().allocator();
    let strings = StringHostTensor::collect(allocator, TensorShape::new(&[n])?, all)?;
    Ok(smallvec![
        indices(call, DType::I64, &[n, 2], &places)?,
        strings.into(),
        indices(call, DType::I64, &[2], &[n_rows, n_most])?
    ])
}

fn numbers(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    match call.attrs.dtype("out_type").unwrap_or(DType::F32) {
        DType::F32 => read::<f32>(call),
        DType::F64 => read::<f64>(call),
        DType::I32 => read::<i32>(call),
        DType::I64 => read::<i64>(call),
        DType::Ui32 => read::<u32>(call),
        DType::Ui64 => read::<u64>(call),
        dtype => Err(unsupported(call.name, dtype)),
    }
}

fn read<T: Element + std::str::FromStr>(call: &TensorCall<'_>) -> Result<Outputs, Error> {
    let x = call.tensor(0)?.as_strings()?;
    let of = |string: &Vec<u8>| {
        let text = std::str::from_utf8(stripped(string)).ok();
        text.and_then(|text| text.parse::<T>().ok()).ok_or_else(|| {
            let found = String::from_utf8_lossy(string);
            call.error(format_args!(
                "expected a number of {}, found '{}'",
                T::DTYPE,
                found.escape_debug()
            ))
        })
    };
    let list = x.strings().iter().map(of).collect::<Result<Vec<T>, _>>()?;
    Ok(smallvec![listed(
        call,
        &x.metadata().shape.to_dims(),
        &list
    )?])
}

fn part(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let x = call.tensor(0)?.as_strings()?;
    let (starts, lens) = (integers(call, 1)?, integers(call, 2)?);
    let (own, other) = (
        x.metadata().shape.to_dims(),
        call.dense(1)?.shape().to_dims(),
    );
    if other != call.dense(2)?.shape().to_dims() {
        return Err(call.error(format_args!("expected a pos and a len of the same extents")));
    }
    let extents = call.named(broadcast_extents(&[&own, &other]))?;
    let in_letters = in_letters(call)?;
    let shape = TensorShape::new(&extents)?;
    let n = shape.n_elements().unwrap_or(0);
    // Where an element of an operand is that is broadcast to the result.
    let source = |mut at: usize, operand: &[usize]| {
        let (mut position, mut stride) = (0, 1);
        let behind = operand.iter().rev().zip(extents.iter().rev());
        for (own, extent) in behind {
            position += (at % extent).min(own - 1) * stride;
            stride *= own;
            at /= extent;
        }
        position
    };
    let strings = (0..n).map(|at| {
        let string = &x.strings()[source(at, &own)];
        let at = source(at, &other);
        cut(string, starts[at], lens[at], in_letters).ok_or_else(|| {
            let (start, string) = (starts[at], String::from_utf8_lossy(string));
            call.error(format_args!(
                "pos {start} out of range for string '{}'",
                string.escape_debug()
            ))
        })
    });
    let strings = strings.collect::<Result<Vec<Vec<u8>>, Error>>()?;
    let allocator = call.execution.host().allocator();
    Ok(smallvec![
        StringHostTensor::collect(allocator, shape, strings)?.into()
    ])
}

/// Returns a part of a string, if it begins inside of it.
fn cut(string: &[u8], start: i64, len: i64, in_letters: bool) -> Option<Vec<u8>> {
    // Where letters begin, and the end.
    let places = string.iter().enumerate();
    let letters = places.filter(|(_, byte)| !in_letters || begins(**byte));
    let mut bounds: Vec<usize> = letters.map(|(at, _)| at).collect();
    let n = bounds.len();
    bounds.push(string.len());
    let from = match usize::try_from(start) {
        Ok(start) => start,
        Err(_) => n.checked_sub(usize::try_from(start.unsigned_abs()).ok()?)?,
    };
    // A negative length is no limit.
    let end = from
        .saturating_add(usize::try_from(len).unwrap_or(usize::MAX))
        .min(n);
    (from <= n).then(|| string[bounds[from]..bounds[end]].to_vec())
}

/// Counts each number, or sums its weights, in rows of so many.
pub(super) fn counted<T: Real>(call: &TensorCall<'_>, row: usize) -> Result<Outputs, Error> {
    let (numbers, size) = (integers(call, 0)?, integers(call, 1)?);
    let weights = call.dense(2)?;
    let (reading, dtype) = (weights.read()?, weights.dtype());
    let weights = reading.elements::<T>()?;
    if !weights.is_empty() && weights.len() != numbers.len() {
        let (expected, found) = (numbers.len(), weights.len());
        return Err(call.error(format_args!(
            "expected no weights or {expected}, found {found} of {dtype}"
        )));
    }
    let size = match size[..] {
        [size] => usize::try_from(size).ok(),
        _ => None,
    };
    let size = size.ok_or_else(|| call.error(format_args!("expected a size of 0 or more")))?;
    let mut out: DenseHostTensor = call.zeros(0)?;
    let row = row.max(1);
    let is_binary = call.attrs.flag("binary_output");
    let Some(sums) = out.elements_mut::<T>()? else {
        return Err(Error::internal(
            "nobody else holds a tensor that was just made",
        ));
    };
    for (index, number) in numbers.iter().enumerate() {
        let place = usize::try_from(*number).map_err(|_| {
            call.error(format_args!(
                "expected no negative integers, found {number}"
            ))
        })?;
        if place >= size {
            continue;
        }
        let sum = &mut sums[index / row * size + place];
        *sum = match weights.get(index) {
            _ if is_binary => <T as Number>::ONE,
            Some(weight) => sum.plus(*weight),
            None => sum.plus(<T as Number>::ONE),
        };
    }
    Ok(smallvec![out.into()])
}
