//! Strings, and how often integers are there.

use regex::bytes::RegexBuilder;
use smallvec::smallvec;
use tfrt_host::Error;
use tfrt_tensor::math::number::{Number, Real};
use tfrt_tensor::op::{Formats, Outputs, TensorCall, TensorKernel, unsupported};
use tfrt_tensor::{DenseHostTensor, StringHostTensor, with_real};

use super::integers;

pub(super) const KERNELS: &[TensorKernel] = &[
    TensorKernel::new("tf.DenseBincount", |call| {
        let dtype = call.dense(2)?.dtype();
        with_real!(dtype, T => counted::<T>(call), else Err(unsupported(call.name, dtype)))
    }),
    TensorKernel::new("tf.StaticRegexReplace", replace).formats(Formats::STRING),
    TensorKernel::new("tf.StringLower", |call| {
        in_case(call, str::to_lowercase, <[u8]>::to_ascii_lowercase)
    })
    .formats(Formats::STRING),
    TensorKernel::new("tf.StringUpper", |call| {
        in_case(call, str::to_uppercase, <[u8]>::to_ascii_uppercase)
    })
    .formats(Formats::STRING),
];

/// A pattern takes no more memory than this when it is compiled.
const PATTERN_BYTES: usize = 1 << 20;

/// A tensor of strings that are made of the operand's, one by one.
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

fn replace(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let pattern = RegexBuilder::new(call.attrs.text("pattern"))
        .size_limit(PATTERN_BYTES)
        .build();
    let pattern = pattern.map_err(|error| {
        let error = error.to_string();
        call.error(format_args!(
            "attribute 'pattern': {}",
            error.escape_debug()
        ))
    })?;
    // A group is called \\1 there, ${1} here.
    let mut rewrite = Vec::new();
    let mut letters = call.attrs.text("rewrite").bytes();
    while let Some(letter) = letters.next() {
        match letter {
            b'$' => rewrite.extend(b"$$"),
            b'\\' => match letters.next() {
                Some(digit @ b'0'..=b'9') => rewrite.extend([b'$', b'{', digit, b'}']),
                Some(b'\\') => rewrite.push(b'\\'),
                _ => {
                    return Err(call.error(format_args!(
                        "attribute 'rewrite': expected a digit or another one behind a backslash"
                    )));
                }
            },
            letter => rewrite.push(letter),
        }
    }
    let limit = usize::from(!call.attrs.flag("replace_global"));
    each(call, |bytes| {
        pattern.replacen(bytes, limit, &rewrite[..]).into_owned()
    })
}

/// How often each number is there, or the sum of its weights.
fn counted<T: Real>(call: &TensorCall<'_>) -> Result<Outputs, Error> {
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
    let row = call.dense(0)?.shape().extents().last().unwrap_or(1).max(1);
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
