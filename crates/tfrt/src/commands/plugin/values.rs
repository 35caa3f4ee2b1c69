//! Tensors and attributes in words of a command line: `f32[2,3]=1,2,3,4,5,6`, `[1,2]`.

use std::sync::Arc;

use tfrt::capi::Kind;
use tfrt::corert::{AttrValue, IntoAttr};
use tfrt::tensor::{
    BF16, Bool, DenseHostTensor, Element, F16, PartialTensorShape, StringHostTensor, Tensor,
    TensorShape,
};
use tfrt::{DType, HostAllocator};

/// The most elements of a tensor in a command line.
const MAX_ELEMENTS: usize = 1 << 26;

/// Reads a tensor: type, extents, elements. One element stands for all.
pub(super) fn tensor(text: &str, allocator: &Arc<dyn HostAllocator>) -> Result<Tensor, String> {
    let (head, elements) = text
        .split_once('=')
        .ok_or("expected TYPE[EXTENTS]=ELEMENTS")?;
    let (dtype, extents) = match head.split_once('[') {
        Some((dtype, extents)) => (dtype, extents.strip_suffix(']').ok_or("expected ']'")?),
        None => (head, ""),
    };
    let dtype = dtype_of(dtype)?;
    let extents: Vec<usize> = split(extents)
        .map(|extent| {
            extent
                .parse()
                .map_err(|_| format!("expected an extent, found '{extent}'"))
        })
        .collect::<Result<_, _>>()?;
    let n = extents
        .iter()
        .try_fold(1_usize, |n, extent| n.checked_mul(*extent));
    let n = n
        .filter(|n| *n <= MAX_ELEMENTS)
        .ok_or("the tensor is too large")?;
    let shape = TensorShape::new(&extents).map_err(|error| error.message().to_owned())?;
    let words: Vec<&str> = split(elements).collect();
    if words.len() != n && words.len() != 1 {
        let found = words.len();
        return Err(format!(
            "expected {n} elements, or one for all, found {found}"
        ));
    }
    let word = |index: usize| words.get(index).copied().unwrap_or(words[0]);
    if dtype == DType::String {
        let strings = (0..n)
            .map(|index| word(index).as_bytes().to_vec())
            .collect();
        let made = StringHostTensor::new(shape, strings);
        return made
            .map(Tensor::from)
            .map_err(|error| error.message().to_owned());
    }
    /// `dense!(f32: DType::F32)` reads elements of the type of the tensor.
    macro_rules! dense {
        ($($type:ty: $dtype:path => $read:expr;)*) => {
            match dtype {
                $($dtype => {
                    let read: fn(&str) -> Option<$type> = $read;
                    dense(allocator, &extents, (0..n).map(word), read)
                })*
                other => Err(format!("elements of {other} can't be written here")),
            }
        };
    }
    dense! {
        f32: DType::F32 => |word| word.parse().ok();
        f64: DType::F64 => |word| word.parse().ok();
        F16: DType::F16 => |word| Some(F16(half::f16::from_f32(word.parse().ok()?).to_bits()));
        BF16: DType::Bf16 => |word| Some(BF16(half::bf16::from_f32(word.parse().ok()?).to_bits()));
        i8: DType::I8 => |word| word.parse().ok();
        i16: DType::I16 => |word| word.parse().ok();
        i32: DType::I32 => |word| word.parse().ok();
        i64: DType::I64 => |word| word.parse().ok();
        u8: DType::Ui8 => |word| word.parse().ok();
        u16: DType::Ui16 => |word| word.parse().ok();
        u32: DType::Ui32 => |word| word.parse().ok();
        u64: DType::Ui64 => |word| word.parse().ok();
        Bool: DType::I1 => |word| word.parse::<bool>().ok().map(Bool::from);
    }
}

fn dense<'t, T: Element>(
    allocator: &Arc<dyn HostAllocator>,
    extents: &[usize],
    words: impl Iterator<Item = &'t str>,
    read: fn(&str) -> Option<T>,
) -> Result<Tensor, String> {
    let element = |word: &str| {
        read(word).ok_or_else(|| format!("expected an element of {}, found '{word}'", T::DTYPE))
    };
    let elements: Vec<T> = words.map(element).collect::<Result<_, _>>()?;
    let made = DenseHostTensor::from_slice(allocator, extents, &elements);
    made.map(Tensor::from)
        .map_err(|error| error.message().to_owned())
}

fn dtype_of(name: &str) -> Result<DType, String> {
    let found = DType::ALL.into_iter().find(|dtype| dtype.name() == name);
    found.ok_or_else(|| format!("expected a type such as f32, found '{name}'"))
}

/// Returns the words between commas; none of an empty text.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(',').map(str::trim);
    words.filter(move |_| !text.trim().is_empty())
}

/// Reads an attribute of a kind, or of the kind that it looks like.
pub(super) fn attr(
    text: &str,
    kind: Option<(Kind, bool)>,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<AttrValue, String> {
    let listed = text.strip_prefix('[');
    let list = listed.and_then(|text| text.strip_suffix(']'));
    match (kind, list) {
        (Some((Kind::Shape, false)), _) => shape(list.unwrap_or(text)),
        (Some((kind, false)), _) => one(text, Some(kind), allocator),
        (Some((kind, true)), _) => many(list.unwrap_or(text), Some(kind), allocator),
        (None, Some(list)) => many(list, None, allocator),
        (None, None) => one(text, None, allocator),
    }
}

fn many(
    text: &str,
    kind: Option<Kind>,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<AttrValue, String> {
    let list: Result<Vec<AttrValue>, String> =
        split(text).map(|word| one(word, kind, allocator)).collect();
    Ok(AttrValue::Aggregate(list?.into()))
}

fn shape(text: &str) -> Result<AttrValue, String> {
    let extent = |word: &str| {
        let extent = word.parse::<i64>();
        extent.map_err(|_| format!("expected an extent, found '{word}'"))
    };
    let extents: Vec<i64> = split(text).map(extent).collect::<Result<_, _>>()?;
    let shape = PartialTensorShape::from_i64(&extents);
    let shape = shape.map_err(|error| error.message().to_owned())?;
    Ok(shape.into_attr())
}

fn one(
    text: &str,
    kind: Option<Kind>,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<AttrValue, String> {
    let wrong = |what: &str| format!("expected {what}, found '{text}'");
    match kind {
        Some(Kind::String | Kind::Function) => Ok(text.into_attr()),
        Some(Kind::Int) => text
            .parse::<i64>()
            .map(IntoAttr::into_attr)
            .map_err(|_| wrong("an integer")),
        Some(Kind::Float) => text
            .parse::<f32>()
            .map(IntoAttr::into_attr)
            .map_err(|_| wrong("a number")),
        Some(Kind::Bool) => text
            .parse::<bool>()
            .map(IntoAttr::into_attr)
            .map_err(|_| wrong("true or false")),
        Some(Kind::Type) => match dtype_of(text) {
            Ok(dtype) => Ok(dtype.into_attr()),
            Err(_) => Ok(text.into_attr()),
        },
        Some(Kind::Shape) => shape(text),
        Some(Kind::Tensor) => match tensor(text, allocator)? {
            Tensor::Dense(tensor) => Ok(tensor.into_attr()),
            _ => Err(wrong("a tensor of numbers")),
        },
        None => {
            let number = text.parse::<i64>().map(IntoAttr::into_attr);
            let number = number.or_else(|_| text.parse::<f32>().map(IntoAttr::into_attr));
            let truth = number.or_else(|_| text.parse::<bool>().map(IntoAttr::into_attr));
            let dtype = truth.or_else(|_| dtype_of(text).map(IntoAttr::into_attr));
            Ok(dtype.unwrap_or_else(|_| text.into_attr()))
        }
    }
}

#[cfg(test)]
mod tests {
    use tfrt::Runtime;

    use super::*;

    #[test]
    fn tensors_and_attributes_are_read_or_refused() {
        let runtime = Runtime::new();
        let host = runtime.host();
        let text =
            |text: &str| tensor(text, host.allocator()).map(|tensor| tensor.to_text().unwrap());
        assert_eq!(
            text("i32[2]=1,2").unwrap(),
            "DenseHostTensor dtype = i32, shape = [2], values = [1, 2]"
        );
        assert!(text("f32[2,2]=1.5").unwrap().contains("shape = [2, 2]"));
        assert_eq!(
            text("f32=7").unwrap(),
            "DenseHostTensor dtype = f32, shape = [], values = [7.000000e+00]"
        );
        for (wrong, expected) in [
            (
                "f32[2]=1,2,3",
                "expected 2 elements, or one for all, found 3",
            ),
            ("f32[2", "expected TYPE[EXTENTS]=ELEMENTS"),
            ("q8[2]=1", "expected a type such as f32, found 'q8'"),
            ("i8[1]=300", "expected an element of i8, found '300'"),
            ("i8[x]=3", "expected an extent, found 'x'"),
        ] {
            assert_eq!(text(wrong).unwrap_err(), expected);
        }
        let attr = |text: &str, kind| attr(text, kind, host.allocator());
        assert_eq!(attr("1.5", None).unwrap().to_string(), "f32 1.500000e+00");
        assert_eq!(attr("f32", None).unwrap().to_string(), "the type f32");
        assert_eq!(
            attr("3", Some((Kind::Float, false))).unwrap().to_string(),
            "f32 3.000000e+00"
        );
        assert_eq!(
            attr("[1,2]", Some((Kind::Int, true))).unwrap().to_string(),
            "a list of 2 values"
        );
        assert!(attr("x", Some((Kind::Int, false))).is_err());
    }
}
