//! Objects of Python as values of models, and values as objects.

use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use tfrt::model::{Datum, ValueType};
use tfrt::tensor::{Map, Optional, Sequence};
use tfrt::{DType, Tensor};

use crate::dtype::{self, Elements};
use crate::error::{about, invalid_argument, raise};
use crate::tensor::PyTensor;
use crate::{array, dlpack};

/// Makes a value of an object. `expected` is what the model wants, which decides what lists, numbers and `None` are.
///
/// # Errors
///
/// `InvalidArgument` for an object that is no array, and can't become one.
pub fn to_datum(value: &Bound<'_, PyAny>, expected: &ValueType) -> PyResult<Datum> {
    match expected {
        ValueType::Tensor(kind) => to_tensor(value, kind.element).map(Datum::from),
        ValueType::Optional(_) if value.is_none() => Ok(Datum::Optional(Optional::Nothing)),
        ValueType::Optional(inner) => Ok(match to_datum(value, inner)? {
            Datum::Tensor(tensor) => Datum::Optional(Optional::Tensor(tensor)),
            Datum::Sequence(sequence) => Datum::Optional(Optional::Sequence(sequence)),
            other => other,
        }),
        ValueType::Sequence(inner)
            if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() =>
        {
            let wanted = inner.as_tensor().and_then(|kind| kind.element);
            let mut tensors = Vec::new();
            for (index, item) in value.try_iter()?.enumerate() {
                let tensor = to_tensor(&item?, wanted);
                let tensor = tensor
                    .map_err(|error| about(value.py(), error, &format!("element {index}: ")))?;
                tensors.push(tensor.into());
            }
            Ok(Datum::Sequence(Sequence::from(tensors)))
        }
        ValueType::Map(key, inner) if value.is_instance_of::<PyDict>() => {
            let wanted = inner.as_tensor().and_then(|kind| kind.element);
            let dict = value.cast::<PyDict>()?;
            let keys = to_tensor(dict.keys().as_any(), Some(*key))?;
            let values = to_tensor(dict.values().as_any(), wanted)?;
            let map = Map::new(keys.into(), values.into());
            map.map(Datum::Map)
                .map_err(|error| raise(value.py(), error))
        }
        _ => to_tensor(value, None).map(Datum::from),
    }
}

/// Copies an object to a tensor that lives longer than a call. `wanted` is the type that is asked for.
///
/// # Errors
///
/// `InvalidArgument` for an object that is no array, or one of another type.
pub fn to_owned_tensor(value: &Bound<'_, PyAny>, wanted: Option<DType>) -> PyResult<Tensor> {
    let py = value.py();
    let copy = to_tensor(value, wanted).and_then(|tensor| copied(py, tensor, wanted));
    array::settle(py);
    copy
}

/// Copies the elements of a tensor, which are to be of the type `wanted`. The tensor is gone when this returns.
fn copied(py: Python<'_>, tensor: Tensor, wanted: Option<DType>) -> PyResult<Tensor> {
    if let Some(wanted) = wanted
        && wanted != tensor.dtype()
    {
        let found = tensor.metadata();
        let message = format!("expected elements that are {wanted}, found {found}");
        return Err(invalid_argument(py, message));
    }
    let copy = match tensor.dtype() {
        DType::String => Ok(tensor),
        dtype => tensor.read_owned().and_then(|reading| {
            let extents: Vec<usize> = tensor.shape().extents().collect();
            Tensor::from_bytes(dtype, &extents, &reading)
        }),
    };
    copy.map_err(|error| raise(py, error))
}

/// Makes a tensor of an object: of an array, a tensor, what speaks DLPack, a number, or nested lists. `wanted` is the type
/// that numbers and lists get, if none of them loses by it.
///
/// # Errors
///
/// `InvalidArgument` for an object that is none of these.
pub fn to_tensor(value: &Bound<'_, PyAny>, wanted: Option<DType>) -> PyResult<Tensor> {
    if let Ok(array) = value.cast::<PyUntypedArray>() {
        return array::lend(array);
    }
    if let Ok(tensor) = value.cast::<PyTensor>() {
        return Ok(tensor.get().0.clone());
    }
    let py = value.py();
    // A scalar of NumPy's speaks no DLPack, and arrays of others mostly do.
    if value.hasattr(intern!(py, "__dlpack__"))? {
        return dlpack::import(value);
    }
    of_list(value, wanted)
}

/// Makes a tensor of a number, of nested lists, or of what NumPy can make an array of.
fn of_list(value: &Bound<'_, PyAny>, wanted: Option<DType>) -> PyResult<Tensor> {
    let py = value.py();
    let numpy = py.import(intern!(py, "numpy"))?;
    let refused = |why: String| {
        let found = value.get_type().name()?.to_string();
        let message = format!("expected an array, found an object of type {found}{why}");
        Err(invalid_argument(py, message))
    };
    if value.is_none() {
        return refused(String::new());
    }
    let made = match numpy.call_method1(intern!(py, "asarray"), (value,)) {
        Ok(made) => made,
        Err(error) if error.is_instance_of::<pyo3::exceptions::PyException>(py) => {
            return refused(format!(", of which NumPy makes none: {}", error.value(py)));
        }
        Err(other) => return Err(other),
    };
    let made = made.cast_into::<PyUntypedArray>()?;
    let descr = made.dtype();
    let is_objects = descr.kind() == b'O';
    if is_objects && wanted != Some(DType::String) {
        return refused(String::new());
    }
    let wanted = match wanted {
        Some(wanted) if wanted != DType::String => dtype::descr_of(py, wanted)?,
        _ => None,
    };
    if let Some(wanted) = wanted
        && let Ok(Elements::Numbers(_)) = dtype::elements_of(&descr)
        && !descr.is_equiv_to(&wanted)
        // An array-like object says its type itself; a list does not.
        && is_untyped(value)?
        && ((made.is_empty() && descr.kind() == b'f')
            || numpy
                .call_method1(intern!(py, "can_cast"), (&descr, &wanted, "same_kind"))?
                .is_truthy()?)
    {
        let cast = made.call_method1(intern!(py, "astype"), (wanted,))?;
        return array::lend(&cast.cast_into::<PyUntypedArray>()?);
    }
    array::lend(&made)
}

/// Returns whether an object has no type of elements of its own, as numbers and lists of Python have none.
fn is_untyped(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(!value.hasattr(intern!(value.py(), "dtype"))?)
}

/// Makes the object of a value that a call has given: an array that may be written, a `Tensor` of elements that NumPy has
/// no type for, a list, a dictionary, or `None`.
pub fn to_python<'py>(py: Python<'py>, datum: Datum) -> PyResult<Bound<'py, PyAny>> {
    Ok(match datum {
        Datum::Tensor(tensor) | Datum::Optional(Optional::Tensor(tensor)) => of_tensor(py, tensor)?,
        Datum::Sequence(sequence) | Datum::Optional(Optional::Sequence(sequence)) => {
            let items = sequence.into_tensors().into_iter();
            let items = items.map(|tensor| of_tensor(py, tensor));
            PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        Datum::Optional(Optional::Nothing) => py.None().into_bound(py),
        Datum::Map(map) => {
            let keys = of_tensor(py, map.keys().clone())?;
            let values = of_tensor(py, map.values().clone())?;
            pairs(&keys, &values)?.into_any()
        }
        Datum::Maps(maps) => {
            let keys = of_tensor(py, maps.keys().clone())?;
            let rows = of_tensor(py, maps.values().clone())?;
            let rows = rows.try_iter()?.map(|row| pairs(&keys, &row?));
            PyList::new(py, rows.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
    })
}

fn of_tensor<'py>(py: Python<'py>, tensor: tfrt::tensor::Tensor) -> PyResult<Bound<'py, PyAny>> {
    let tensor = Tensor::try_from(tensor).map_err(|error| raise(py, error))?;
    match dtype::descr_of(py, tensor.dtype())? {
        None => Ok(Bound::new(py, PyTensor(tensor))?.into_any()),
        Some(_) => array::written(py, tensor)?
            .ok_or_else(|| crate::error::broken("a type of NumPy's is gone")),
    }
}

/// Makes a dictionary of keys and values.
fn pairs<'py>(
    keys: &Bound<'py, PyAny>,
    values: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let py = keys.py();
    let list = |array: &Bound<'py, PyAny>| array.call_method0(intern!(py, "tolist"));
    let dict = PyDict::new(py);
    for (key, value) in list(keys)?.try_iter()?.zip(list(values)?.try_iter()?) {
        dict.set_item(key?, value?)?;
    }
    Ok(dict)
}
