//! Printing of attributes.

use std::fmt::{self, Write};

use super::{write_attribute_name, write_list, write_quoted};
use crate::{
    attributes::{
        Attribute, DenseArrayAttribute, DenseAttribute, DenseElements, FloatAttribute,
        IntegerAttribute,
    },
    float,
    integer::Integer,
    name::Name,
    types::{DYNAMIC, Type},
};

/// Whether the type of a number is written behind it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WithType {
    Yes,
    No,
}

/// The most different elements of a dense attribute that are listed; those with more are written as
/// hexadecimals.
const MAX_LISTED_ELEMENTS: u64 = 100;

/// One entry of a dictionary.
pub(crate) struct Entry<'a>(pub &'a (Name, Attribute));

impl fmt::Display for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, value) = self.0;
        write_attribute_name(f, name)?;
        match value {
            Attribute::Unit => Ok(()),
            value => write!(f, " = {value}"),
        }
    }
}

/// Writes an attribute as MLIR does.
pub(crate) fn write_attribute(
    out: &mut dyn Write,
    attribute: &Attribute,
    with_type: WithType,
) -> fmt::Result {
    match attribute {
        Attribute::Unit => out.write_str("unit"),
        Attribute::Integer(integer) => write_integer(out, integer, with_type),
        Attribute::Float(float) => {
            let text = float::format(float.bits, float.kind);
            out.write_str(&text)?;
            // Without a type, hexadecimals would be read as an integer.
            match Type::Float(float.kind) {
                Type::F64 if !text.starts_with("0x") => Ok(()),
                ty => write_suffix(out, &ty, with_type),
            }
        }
        Attribute::String(string) => {
            write_quoted(out, &string.bytes)?;
            match &string.ty {
                Type::None => Ok(()),
                ty => write_suffix(out, ty, with_type),
            }
        }
        Attribute::Type(ty) => write!(out, "{ty}"),
        Attribute::Array(elements) => {
            out.write_char('[')?;
            write_list(out, elements)?;
            out.write_char(']')
        }
        Attribute::Dictionary(dictionary) => {
            out.write_char('{')?;
            let entries: Vec<_> = dictionary.entries().iter().map(Entry).collect();
            write_list(out, &entries)?;
            out.write_char('}')
        }
        Attribute::Symbol(symbol) => write!(out, "{symbol}"),
        Attribute::Dense(dense) => {
            out.write_str("dense<")?;
            write_elements(out, dense)?;
            write!(out, "> : {}", dense.ty)
        }
        Attribute::Sparse(sparse) => {
            out.write_str("sparse<")?;
            if sparse.indices.n_elements() != Some(0) {
                write_elements(out, &sparse.indices)?;
                out.write_str(", ")?;
                write_elements(out, &sparse.values)?;
            }
            write!(out, "> : {}", sparse.ty)
        }
        Attribute::DenseArray(array) => write_dense_array(out, array),
        Attribute::Shape(shape) => {
            out.write_str("#corert.shape<")?;
            match &shape.0 {
                None => out.write_char('*')?,
                Some(dimensions) => {
                    for (index, &dimension) in dimensions.iter().enumerate() {
                        if index > 0 {
                            out.write_char('x')?;
                        }
                        match dimension {
                            DYNAMIC => out.write_char('?')?,
                            size => write!(out, "{size}")?,
                        }
                    }
                }
            }
            out.write_char('>')
        }
        Attribute::Location(location) => write!(out, "loc({location})"),
        Attribute::Opaque(text) => out.write_str(text),
    }
}

fn write_suffix(out: &mut dyn Write, ty: &Type, with_type: WithType) -> fmt::Result {
    match with_type {
        WithType::Yes => write!(out, " : {ty}"),
        WithType::No => Ok(()),
    }
}

fn write_integer(
    out: &mut dyn Write,
    integer: &IntegerAttribute,
    with_type: WithType,
) -> fmt::Result {
    if integer.ty == Type::I1 {
        return out.write_str(if integer.value.is_zero() {
            "false"
        } else {
            "true"
        });
    }
    write!(out, "{}", integer.value)?;
    match integer.ty {
        Type::I64 => Ok(()),
        ref ty => write_suffix(out, ty, with_type),
    }
}

/// Writes the content of a dense attribute between the angle brackets.
fn write_elements(out: &mut dyn Write, dense: &DenseAttribute) -> fmt::Result {
    let count = dense.n_elements().unwrap_or(0);
    if count == 0 {
        return Ok(());
    }
    let element = dense.element_type();
    match &dense.elements {
        DenseElements::Strings(strings) => write_nested(out, dense, &mut |out, index| {
            write_quoted(out, &strings[index])
        }),
        DenseElements::Bytes(bytes) => {
            if !dense.splat && count > MAX_LISTED_ELEMENTS {
                return write_hex(out, bytes, element);
            }
            let size = dense.element_size_bytes();
            write_nested(out, dense, &mut |out, index| {
                write_element(out, &bytes[index * size..(index + 1) * size], element)
            })
        }
    }
}

/// Writes elements in brackets that follow the shape, or the single element of
/// a splat.
fn write_nested(
    out: &mut dyn Write,
    dense: &DenseAttribute,
    write: &mut dyn FnMut(&mut dyn Write, usize) -> fmt::Result,
) -> fmt::Result {
    if dense.splat {
        return write(out, 0);
    }
    let shape = dense.shape();
    let count = usize::try_from(dense.n_elements().unwrap_or(0)).unwrap_or(0);
    // The number of elements in a bracket of each depth.
    let mut sizes: Vec<usize> = vec![1; shape.len()];
    for depth in (1..shape.len()).rev() {
        sizes[depth - 1] = sizes[depth] * usize::try_from(shape[depth]).unwrap_or(0);
    }
    for index in 0..count {
        let opened = sizes.iter().enumerate().filter(|&(depth, _)| {
            let whole = if depth == 0 { count } else { sizes[depth - 1] };
            index % whole == 0
        });
        let n_opened = opened.count();
        if index > 0 {
            out.write_str(", ")?;
        }
        for _ in 0..n_opened {
            out.write_char('[')?;
        }
        write(out, index)?;
        let closed = (0..shape.len()).filter(|&depth| {
            let whole = if depth == 0 { count } else { sizes[depth - 1] };
            (index + 1) % whole == 0
        });
        for _ in 0..closed.count() {
            out.write_char(']')?;
        }
    }
    Ok(())
}

/// Writes one encoded element.
fn write_element(out: &mut dyn Write, bytes: &[u8], ty: &Type) -> fmt::Result {
    match ty {
        Type::Complex(part) => {
            let (real, imaginary) = bytes.split_at(bytes.len() / 2);
            out.write_char('(')?;
            write_element(out, real, part)?;
            out.write_char(',')?;
            write_element(out, imaginary, part)?;
            out.write_char(')')
        }
        Type::Float(kind) => {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            let float = FloatAttribute {
                bits: u64::from_le_bytes(word),
                kind: *kind,
            };
            write_attribute(out, &Attribute::Float(float), WithType::No)
        }
        ty => write_integer(out, &decode_integer(bytes, ty), WithType::No),
    }
}

/// Reads a little-endian integer of a type.
fn decode_integer(bytes: &[u8], ty: &Type) -> IntegerAttribute {
    let mut words: Vec<u64> = Vec::with_capacity(bytes.len() / 8 + 1);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        words.push(u64::from_le_bytes(word));
    }
    words.push(0);
    IntegerAttribute::wrapping(Integer::from_words(words), ty.clone())
}

fn write_hex(out: &mut dyn Write, bytes: &[u8], element: &Type) -> fmt::Result {
    out.write_str("\"0x")?;
    if *element == Type::I1 {
        for bits in bytes.chunks(8) {
            let packed = bits.iter().rev().fold(0, |byte, bit| byte << 1 | bit);
            write!(out, "{packed:02X}")?;
        }
    } else {
        for byte in bytes {
            write!(out, "{byte:02X}")?;
        }
    }
    out.write_char('"')
}

fn write_dense_array(out: &mut dyn Write, array: &DenseArrayAttribute) -> fmt::Result {
    write!(out, "array<{}", array.element)?;
    let size = crate::attributes::element_size_bytes(&array.element)
        .unwrap_or(1)
        .max(1);
    for (index, bytes) in array.bytes.chunks_exact(size).enumerate() {
        out.write_str(if index == 0 { ": " } else { ", " })?;
        write_element(out, bytes, &array.element)?;
    }
    out.write_char('>')
}
