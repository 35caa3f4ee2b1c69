//! Types of values, in modules.
//!
//! | ONNX                 | Module                            |
//! |----------------------|-----------------------------------|
//! | `tensor(float)`      | `tensor<?x3xf32>`, `tensor<*xf32>`|
//! | `tensor(string)`     | `tensor<3x!onnx.string>`          |
//! | `sparse_tensor(..)`  | `!onnx.sparse<tensor<..>>`        |
//! | `seq(..)`            | `!onnx.sequence<..>`              |
//! | `optional(..)`       | `!onnx.optional<..>`              |
//! | `map(int64, ..)`     | `!onnx.map<i64, ..>`              |
//! | a tensor of anything | `tensor<*x!onnx.unknown>`         |

use std::sync::Arc;

use tfrt_ir::{
    Attribute, Type,
    types::{DYNAMIC, TensorType},
};

use super::{element, problem::Problem, proto, tensor};
use crate::codes;

/// Returns a tensor type of unknown rank.
pub(super) fn unranked(element: Type) -> Type {
    Type::Tensor(Arc::new(TensorType {
        shape: None,
        element,
        encoding: None,
    }))
}

/// Returns the type of a tensor of which nothing is known.
pub(super) fn unknown() -> Type {
    unranked(Type::dialect(element::UNKNOWN))
}

/// Returns the type of a sequence.
pub(super) fn sequence(of: &Type) -> Type {
    Type::dialect(&format!("!onnx.sequence<{of}>"))
}

/// Returns the type of an optional.
pub(super) fn optional(of: &Type) -> Type {
    Type::dialect(&format!("!onnx.optional<{of}>"))
}

/// Reads a type.
pub(super) fn read(ty: &proto::TypeProto) -> Result<Type, Problem> {
    if let Some(tensor) = &ty.tensor_type {
        return tensor_type(tensor);
    }
    if let Some(tensor) = &ty.sparse_tensor_type {
        return Ok(Type::dialect(&format!(
            "!onnx.sparse<{}>",
            tensor_type(tensor)?
        )));
    }
    if let Some(inner) = &ty.sequence_type {
        return Ok(sequence(&held(inner)?));
    }
    if let Some(inner) = &ty.optional_type {
        return Ok(optional(&held(inner)?));
    }
    if let Some(map) = &ty.map_type {
        let key = tensor::element_type(map.key_type)?.ty();
        let value = match &map.value_type {
            Some(value) => read(value)?,
            None => return Err(incomplete("of a map without a type of values")),
        };
        return Ok(Type::dialect(&format!("!onnx.map<{key}, {value}>")));
    }
    // What a value without a type is follows from the graph.
    Ok(unknown())
}

/// Returns whether a message states no type.
pub(super) fn is_empty(ty: &proto::TypeProto) -> bool {
    *ty == proto::TypeProto::default()
}

/// Returns a size below 0 that a type states, with its dimension. Such a size counts as unknown.
pub(super) fn negative_size(ty: Option<&proto::TypeProto>) -> Option<(usize, i64)> {
    let sizes = shape(ty)?.dim.iter().map(|dimension| dimension.dim_value);
    let mut sizes = sizes.enumerate();
    sizes.find_map(|(index, size)| Some((index, size.filter(|size| *size < 0)?)))
}

fn shape(ty: Option<&proto::TypeProto>) -> Option<&proto::TensorShapeProto> {
    let ty = ty?;
    let tensor = ty.tensor_type.as_ref().or(ty.sparse_tensor_type.as_ref())?;
    tensor.shape.as_deref()
}

fn incomplete(what: &str) -> Problem {
    Problem::new(codes::MODEL_TYPE, format!("has a type {what}"))
}

fn held(inner: &proto::ContainerTypeProto) -> Result<Type, Problem> {
    match &inner.elem_type {
        Some(ty) => read(ty),
        None => Ok(unknown()),
    }
}

fn tensor_type(tensor: &proto::TensorType) -> Result<Type, Problem> {
    let element = match tensor.elem_type {
        None | Some(0) => Type::dialect(element::UNKNOWN),
        number => tensor::element_type(number)?.ty(),
    };
    let Some(shape) = &tensor.shape else {
        return Ok(unranked(element));
    };
    let mut sizes = Vec::with_capacity(shape.dim.len());
    for dimension in &shape.dim {
        sizes.push(match dimension.dim_value {
            None => DYNAMIC,
            Some(size) if size >= 0 => size,
            // Exporters write -1 for a size that is not known.
            Some(_) => DYNAMIC,
        });
    }
    Ok(Type::tensor(sizes, element))
}

/// Returns the dimensions that a model states, as an attribute: numbers, names, or empty texts for unknown ones;
/// `unit` for a value that is no tensor of known rank.
pub(super) fn dimensions(ty: Option<&proto::TypeProto>) -> Attribute {
    let Some(shape) = shape(ty) else {
        return Attribute::Unit;
    };
    let dimension = |dimension: &proto::Dimension| match (dimension.dim_value, &dimension.dim_param)
    {
        (Some(size), _) if size >= 0 => Attribute::integer(size, Type::I64),
        // Exporters write "?" for a size that is not known: two such sizes need not be the same.
        (_, name) => Attribute::string(name.as_deref().filter(|name| *name != "?").unwrap_or("")),
    };
    Attribute::array(shape.dim.iter().map(dimension).collect())
}
