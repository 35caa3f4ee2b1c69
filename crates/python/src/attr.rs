//! Attributes of operations, made of objects of Python.

use pyo3::prelude::*;
use tfrt::capi::{AttrSpec, Kind};
use tfrt::corert::{AttrValue, IntoAttr};
use tfrt::ops::{AttrDef, AttrKind};
use tfrt::tensor::{PartialTensorShape, TensorShape};

use crate::error::{broken, invalid_argument, raise};
use crate::{convert, dtype};

/// Makes the value of an attribute of a row.
///
/// # Errors
///
/// `InvalidArgument` for an object of another kind than the attribute's.
pub fn of_row(attr: &AttrDef, value: &Bound<'_, PyAny>) -> PyResult<AttrValue> {
    let made = match attr.kind {
        AttrKind::Int => int(value),
        AttrKind::Float => float(value),
        AttrKind::Text => text(value),
        AttrKind::Ints => value
            .extract::<Vec<i64>>()
            .map(|list| list.as_slice().into_attr()),
        AttrKind::Floats => value
            .extract::<Vec<f32>>()
            .map(|list| list.as_slice().into_attr()),
        AttrKind::Texts => many(value, text),
        AttrKind::Type => element_type(value),
        AttrKind::Types => many(value, element_type),
        AttrKind::Shapes => many(value, shape),
        AttrKind::Tensor => tensor(value),
        AttrKind::Region | AttrKind::Function => Err(broken("an operation with a body is called")),
    };
    made.map_err(|_| mistaken(attr.name, &format!("{:?}", attr.kind), value))
}

/// Makes the value of an attribute of an operation of TensorFlow.
///
/// # Errors
///
/// Those of [`of_row`].
pub fn of_spec(attr: &AttrSpec, value: &Bound<'_, PyAny>) -> PyResult<AttrValue> {
    let make = match attr.kind {
        Kind::Int => int,
        Kind::Float => float,
        Kind::Bool => truth,
        Kind::String | Kind::Function => text,
        Kind::Type => element_type,
        Kind::Shape => partial_shape,
        Kind::Tensor => tensor,
    };
    let made = match (attr.is_list, attr.kind) {
        (false, _) => make(value),
        // Lists of numbers lie side by side.
        (true, Kind::Int) => value
            .extract::<Vec<i64>>()
            .map(|list| list.as_slice().into_attr()),
        (true, Kind::Float) => value
            .extract::<Vec<f32>>()
            .map(|list| list.as_slice().into_attr()),
        (true, _) => many(value, make),
    };
    made.map_err(|_| mistaken(&attr.name, &attr.kind_name(), value))
}

/// Says that an object is not of an attribute's kind.
fn mistaken(name: &str, kind: &str, value: &Bound<'_, PyAny>) -> PyErr {
    let found = value.get_type().name().map(|name| name.to_string());
    let found = found.unwrap_or_default();
    let message = format!("attribute '{name}': expected {kind}, found {found}");
    invalid_argument(value.py(), message)
}

fn many(
    value: &Bound<'_, PyAny>,
    make: impl Fn(&Bound<'_, PyAny>) -> PyResult<AttrValue>,
) -> PyResult<AttrValue> {
    let list = value.try_iter()?.map(|item| make(&item?));
    let list = list.collect::<PyResult<Vec<AttrValue>>>()?;
    Ok(AttrValue::Aggregate(list.into()))
}

fn int(value: &Bound<'_, PyAny>) -> PyResult<AttrValue> {
    value
        .extract::<i64>()
        .or_else(|_| value.extract::<bool>().map(i64::from))
        .map(IntoAttr::into_attr)
}

fn float(value: &Bound<'_, PyAny>) -> PyResult<AttrValue> {
    value.extract::<f32>().map(IntoAttr::into_attr)
}

fn truth(value: &Bound<'_, PyAny>) -> PyResult<AttrValue> {
    value.extract::<bool>().map(IntoAttr::into_attr)
}

fn text(value: &Bound<'_, PyAny>) -> PyResult<AttrValue> {
    let text = value.extract::<String>()?;
    Ok(text.as_str().into_attr())
}

fn element_type(value: &Bound<'_, PyAny>) -> PyResult<AttrValue> {
    dtype::from_python(value).map(IntoAttr::into_attr)
}

fn shape(value: &Bound<'_, PyAny>) -> PyResult<AttrValue> {
    let shape = TensorShape::new(&value.extract::<Vec<usize>>()?);
    let shape = shape.map_err(|error| raise(value.py(), error))?;
    Ok((&shape).into_attr())
}

/// Makes a shape of which extents may be `None`; `None` alone is one of any number of dimensions.
fn partial_shape(value: &Bound<'_, PyAny>) -> PyResult<AttrValue> {
    let extents = value.extract::<Option<Vec<Option<i64>>>>()?;
    let shape = match extents {
        None => PartialTensorShape::UNRANKED,
        Some(extents) => {
            let extents = extents.iter();
            let extents = extents.map(|extent| extent.unwrap_or(PartialTensorShape::UNKNOWN));
            let made = PartialTensorShape::from_i64(&extents.collect::<Vec<i64>>());
            made.map_err(|error| raise(value.py(), error))?
        }
    };
    Ok(shape.into_attr())
}

fn tensor(value: &Bound<'_, PyAny>) -> PyResult<AttrValue> {
    let tensor = convert::to_tensor(value, None)?;
    let dense = tensor.as_dense().cloned();
    let dense = dense.map_err(|error| raise(value.py(), error))?;
    Ok(dense.into_attr())
}
