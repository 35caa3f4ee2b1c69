//! The parser of types of inputs and outputs in programs.

use tfrt_bef::model::{Dimension, ModelValue};
use tfrt_tensor::DType;

use super::types::{Dim, TensorType, ValueInfo, ValueType};

/// The deepest nesting of types, of which ONNX has two levels at most.
const MAX_DEPTH: usize = 8;

/// The type of elements of tensors of strings in programs.
const STRING: &str = "!onnx.string";

/// Returns the name and the type of an input or an output of a compiled model.
pub(super) fn value_info(value: &ModelValue) -> ValueInfo {
    let dims = value.dimensions.as_ref();
    let dims = dims.map(|dims| dims.iter().map(dim).collect());
    ValueInfo {
        name: value.name.clone(),
        kind: kind(&value.ty, dims, MAX_DEPTH),
    }
}

fn dim(dimension: &Dimension) -> Dim {
    match dimension {
        Dimension::Unknown => Dim::Unknown,
        Dimension::Symbol(name) => Dim::Symbol(name.clone()),
        // What no memory can hold is never given.
        Dimension::Fixed(extent) => Dim::Fixed(usize::try_from(*extent).unwrap_or(usize::MAX)),
    }
}

/// Parses a type; `dims` are those of a tensor that stands by itself.
fn kind(text: &str, dims: Option<Vec<Dim>>, depth: usize) -> ValueType {
    let Some(depth) = depth.checked_sub(1) else {
        return ValueType::default();
    };
    let inside = |start: &str| text.strip_prefix(start)?.strip_suffix('>');
    if let Some(inner) = inside("!onnx.sequence<") {
        return ValueType::Sequence(Box::new(kind(inner, None, depth)));
    }
    if let Some(inner) = inside("!onnx.optional<") {
        return ValueType::Optional(Box::new(kind(inner, None, depth)));
    }
    if let Some((key, value)) = inside("!onnx.map<").and_then(|inner| inner.split_once(", ")) {
        let key = match key {
            STRING => DType::String,
            name => DType::from_mlir_name(name).unwrap_or(DType::I64),
        };
        return ValueType::Map(key, Box::new(kind(value, None, depth)));
    }
    match text {
        "!t.sequence" => ValueType::Sequence(Box::default()),
        "!t.optional" => ValueType::Optional(Box::default()),
        _ => {
            let (spelled, element) = inside("tensor<").map_or((None, None), tensor);
            ValueType::Tensor(TensorType {
                element,
                dims: dims.or(spelled),
            })
        }
    }
}

/// Parses the extents and the type of elements of `?x3xf32`.
fn tensor(text: &str) -> (Option<Vec<Dim>>, Option<DType>) {
    let (mut rest, mut dims) = (text, Some(Vec::new()));
    while let Some((head, tail)) = rest.split_once('x') {
        match (head, head.parse()) {
            ("*", _) => dims = None,
            ("?", _) => dims.iter_mut().for_each(|dims| dims.push(Dim::Unknown)),
            (_, Ok(extent)) => dims
                .iter_mut()
                .for_each(|dims| dims.push(Dim::Fixed(extent))),
            // The element's type has this letter, as `complex<f32>` does.
            _ => break,
        }
        rest = tail;
    }
    let element = match rest {
        STRING => Some(DType::String),
        name => DType::from_mlir_name(name),
    };
    (dims, element)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_as_they_are_spelled() {
        for (text, expected) in [
            ("tensor<?x3xf32>", "f32 [?, 3]"),
            ("tensor<f64>", "f64 []"),
            ("tensor<*xi64>", "i64 of any shape"),
            ("tensor<2xcomplex<f32>>", "complex64 [2]"),
            ("tensor<3x!onnx.string>", "str [3]"),
            ("!onnx.sequence<tensor<?xf32>>", "sequence of f32 [?]"),
            (
                "!onnx.optional<!onnx.sequence<tensor<*xi1>>>",
                "optional sequence of i1 of any shape",
            ),
            (
                "!onnx.sequence<!onnx.map<!onnx.string, tensor<f32>>>",
                "sequence of map from str to f32 []",
            ),
            (
                "!onnx.map<i64, tensor<*xf32>>",
                "map from i64 to f32 of any shape",
            ),
            ("!t.tensor", "tensor of any shape"),
        ] {
            assert_eq!(kind(text, None, MAX_DEPTH).to_string(), expected, "{text}");
        }
        let deep = "!onnx.sequence<".repeat(100_000) + &">".repeat(100_000);
        assert!(kind(&deep, None, MAX_DEPTH).to_string().len() < 200);
    }
}
