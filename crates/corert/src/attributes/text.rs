//! Text form of attributes, as the logging handler and kernels for tests print them.

use std::fmt;

use tfrt_host::DType;

use super::{AttrValue, Numbers, OpAttrsRef};

/// Maximum number of a list's elements that are printed.
const MAX_PRINTED: usize = 5;

/// `OpAttrs is empty`, or `OpAttrs contains 2 entries:` and a line for each, by name.
impl fmt::Display for OpAttrsRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("OpAttrs is empty");
        }
        writeln!(f, "OpAttrs contains {} entries:", self.len())?;
        let mut all: Vec<_> = self.iter().collect();
        all.sort_by_key(|(name, _)| *name);
        for (name, value) in all {
            writeln!(
                f,
                "  '{name}' type={} value={}",
                Kind(value),
                Printed(value)
            )?;
        }
        Ok(())
    }
}

struct Kind<'a>(&'a AttrValue);

impl fmt::Display for Kind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            AttrValue::Scalar(numbers) | AttrValue::List(numbers) => type_name(numbers.dtype()),
            AttrValue::DType(_) => "DTYPE",
            AttrValue::Text(_) => "CHAR",
            AttrValue::Function(_) => "FUNC",
            AttrValue::Shape(_) => "SHAPE",
            AttrValue::Dense(_) => "DENSE",
            AttrValue::Aggregate(_) => "AGGREGATE",
        })
    }
}

struct Printed<'a>(&'a AttrValue);

impl fmt::Display for Printed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            AttrValue::Scalar(numbers) => numbers.print_one(0, f),
            AttrValue::List(numbers) => list(numbers, f),
            AttrValue::DType(dtype) => f.write_str(type_name(*dtype)),
            AttrValue::Text(text) => {
                f.write_str("[")?;
                for (index, character) in text.as_str().chars().enumerate() {
                    let comma = if index > 0 { ", " } else { "" };
                    write!(f, "{comma}{character}")?;
                }
                f.write_str("]")
            }
            AttrValue::Function(name) => write!(f, "FUNC function_name: {}", name.as_str()),
            AttrValue::Shape(shape) => match shape.rank() {
                None => f.write_str("<*>"),
                Some(_) => {
                    let extents = shape.to_string();
                    let extents = extents.trim_matches(['[', ']']).replace(", ", "x");
                    write!(f, "<{}>", extents.replace("-1", "?"))
                }
            },
            AttrValue::Dense(tensor) => {
                let (dtype, rank) = (type_name(tensor.dtype()), tensor.shape().rank());
                let n = tensor.n_elements();
                write!(f, "dtype={dtype}, rank={rank}, elt_count={n}")
            }
            AttrValue::Aggregate(children) => {
                write!(f, "elt_count={} [", children.len())?;
                for (index, child) in children.iter().enumerate() {
                    let comma = if index > 0 { ", " } else { "" };
                    match child {
                        AttrValue::Dense(_) | AttrValue::Aggregate(_) => {
                            write!(f, "{comma}{{{}}}", Printed(child))?;
                        }
                        _ => write!(f, "{comma}{{unknown}}")?,
                    }
                }
                f.write_str("]")
            }
        }
    }
}

/// `[1, 2, 3, 4, 5...]`
fn list(numbers: &Numbers, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("[")?;
    for index in 0..numbers.len().min(MAX_PRINTED) {
        if index > 0 {
            f.write_str(", ")?;
        }
        numbers.print_one(index, f)?;
    }
    if numbers.len() > MAX_PRINTED {
        f.write_str("...")?;
    }
    f.write_str("]")
}

/// Returns the name of a type where attributes are printed, which the original spells in its own way.
fn type_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Ui8 => "UI8",
        DType::Ui16 => "UI16",
        DType::Ui32 => "UI32",
        DType::Ui64 => "UI64",
        DType::I1 => "BOOL",
        DType::I8 => "I8",
        DType::I16 => "I16",
        DType::I32 => "I32",
        DType::I64 => "I64",
        DType::F32 => "F32",
        DType::F64 => "F64",
        DType::Complex64 => "COMPLEX64",
        DType::Complex128 => "COMPLEX128",
        DType::F16 => "F16",
        DType::Bf16 => "BF16",
        DType::String => "CHAR",
        DType::Resource => "RESOURCE",
        DType::Variant => "VARIANT",
        DType::Quint8 => "QUI8",
        DType::Quint16 => "QUI16",
        DType::Qint8 => "QI8",
        DType::Qint16 => "QI16",
        DType::Qint32 => "QI32",
        _ => dtype.name(),
    }
}
