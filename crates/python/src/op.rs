//! [`PyOp`], an operation of the table: called with arrays, it gives tensors; `tfrt.ops` has one for each row.

use std::sync::OnceLock;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use tfrt::corert::{AttrValue, IntoAttr, OpAttrs};
use tfrt::eager::{Eager, Handle};
use tfrt::ops::{Arity, AttrDef, AttrDefault, AttrKind, Limit, OpDef};
use tfrt::tensor::TensorShape;
use tfrt::{DType, Error, Runtime, Tensor};

use crate::call::expect_threads;
use crate::error::{about, broken, invalid_argument, raise};
use crate::tensor::PyTensor;
use crate::{array, convert, dtype};

/// Returns what calls of operations share: the runtime of the process.
fn eager() -> &'static Eager {
    static EAGER: OnceLock<Eager> = OnceLock::new();
    EAGER.get_or_init(|| Eager::new(Runtime::shared()))
}

/// An operation, called with arrays: operands in order or by keyword, attributes by keyword. `documentation` tells of it.
#[pyclass(frozen, name = "Op", module = "tfrt._tfrt")]
pub struct PyOp(&'static OpDef);

/// Returns the names of the operations that can be called: those without a body of their own.
#[pyfunction]
pub fn op_names() -> Vec<&'static str> {
    let rows = tfrt::ops::all().filter(|row| is_callable(row));
    rows.map(|row| row.name).collect()
}

fn is_callable(row: &OpDef) -> bool {
    let has_body = |attr: &AttrDef| matches!(attr.kind, AttrKind::Region | AttrKind::Function);
    row.regions.is_empty() && !row.attrs.iter().any(has_body)
}

#[pymethods]
impl PyOp {
    /// Finds an operation, such as `matmul` or `onnx.NonMaxSuppression`.
    #[new]
    fn new(py: Python<'_>, name: &str) -> PyResult<PyOp> {
        match tfrt::ops::find(name).filter(|row| is_callable(row)) {
            Some(row) => Ok(PyOp(row)),
            None => {
                let message = format!("there is no operation '{name}'");
                Err(raise(py, Error::new(tfrt::ErrorCode::NotFound, message)))
            }
        }
    }

    /// The name in the table.
    #[getter(__name__)]
    fn name(&self) -> &'static str {
        self.0.name
    }

    /// The sentence of the table, with operands and attributes.
    #[getter]
    fn documentation(&self) -> String {
        let text = format!("{self}\n\n{}", self.0.summary);
        let attrs = self
            .0
            .attrs
            .iter()
            .map(|attr| format!("\n    {}: {:?}{}", attr.name, attr.kind, limit(attr)));
        text + &attrs.collect::<String>()
    }

    fn __repr__(&self) -> String {
        format!("<operation {self}>")
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let called = self.call(py, args, kwargs);
        array::settle(py);
        let mut results = called?;
        match results.len() {
            1 => Ok(Bound::new(py, PyTensor(results.remove(0)))?.into_any()),
            _ => {
                let results = results
                    .into_iter()
                    .map(|tensor| Py::new(py, PyTensor(tensor)));
                let results = results.collect::<PyResult<Vec<_>>>()?;
                Ok(PyTuple::new(py, results)?.into_any())
            }
        }
    }
}

impl std::fmt::Display for PyOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let OpDef { inputs, attrs, .. } = self.0;
        let operands = inputs.iter().map(|operand| match operand.arity {
            Arity::One => operand.name.to_owned(),
            Arity::Optional => format!("{}=None", operand.name),
            Arity::Rest(_) => format!("*{}", operand.name),
        });
        let attrs = attrs.iter().map(|attr| match attr.default {
            AttrDefault::Required => attr.name.to_owned(),
            AttrDefault::Absent => format!("{}=None", attr.name),
            AttrDefault::Int(value) => format!("{}={value}", attr.name),
            AttrDefault::Float(value) => format!("{}={value}", attr.name),
            AttrDefault::Text(value) => format!("{}='{value}'", attr.name),
            AttrDefault::Ints(value) => format!("{}={value:?}", attr.name),
            AttrDefault::Type(value) => format!("{}='{value}'", attr.name),
        });
        let all: Vec<String> = operands.chain(attrs).collect();
        write!(f, "{}({})", self.0.name, all.join(", "))
    }
}

/// Writes the values that an attribute may have, as its documentation tells them.
fn limit(attr: &AttrDef) -> String {
    match attr.limit {
        Limit::OneOf(texts) => format!(", one of {}", texts.join(", ")),
        _ => String::new(),
    }
}

impl PyOp {
    fn call<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Vec<Tensor>> {
        expect_threads(py)?;
        let mut operands: Vec<Bound<'py, PyAny>> = args.iter().collect();
        let mut attrs = OpAttrs::new();
        for (name, value) in kwargs.iter().flat_map(|kwargs| kwargs.iter()) {
            let name = name.cast::<PyString>()?.to_str()?.to_owned();
            if let Some(attr) = self.0.attrs.iter().find(|attr| attr.name == name) {
                if value.is_none() {
                    continue;
                }
                let value = attribute(attr, &value)?;
                attrs
                    .set(attr.name, value)
                    .map_err(|error| raise(py, error))?;
            } else if let Some(index) = self.0.inputs.iter().position(|def| def.name == name) {
                if index < operands.len() {
                    let message = format!("operand '{name}' is given twice");
                    return Err(invalid_argument(py, message));
                }
                while operands.len() < index {
                    operands.push(py.None().into_bound(py));
                }
                operands.push(value);
            } else {
                let message = format!("there is no operand or attribute '{name}': expected {self}");
                return Err(invalid_argument(py, message));
            }
        }
        let operands = self.flattened(operands)?;
        let wanted = operands.iter().find_map(|operand| type_of(operand));
        let (mut handles, mut given) = (Vec::new(), Vec::new());
        for (index, operand) in operands.iter().enumerate() {
            let tensor = convert::to_tensor(operand, wanted).map_err(|error| {
                about(py, error, &format!("{}: operand {index}: ", self.0.name))
            })?;
            given.push(tensor.metadata().to_string());
            handles.push(eager().of(tensor));
        }
        drop(operands);
        let called = py.detach(|| {
            let results = eager().op(self.0.name, handles, &attrs)?;
            let results = results.into_iter().map(|handle| {
                handle.wait()?;
                take(handle)
            });
            results.collect::<Result<Vec<Tensor>, Error>>()
        });
        called.map_err(|error| raise(py, self.told(&error, &given)))
    }

    /// Returns an error with the types and shapes of the operands in front: `dot of f32 [2, 2] and f32 [3, 2]: ..`.
    #[cold]
    fn told(&self, error: &Error, given: &[String]) -> Error {
        let name = self.0.name;
        let what = error.message();
        let what = what
            .strip_prefix(name)
            .and_then(|what| what.strip_prefix(": "))
            .unwrap_or(what);
        let message = match given {
            [] => format!("{name}: {what}"),
            given => format!("{name} of {}: {what}", given.join(" and ")),
        };
        let notes = error.notes().iter();
        notes.fold(Error::new(error.code(), message), |error, note| {
            error.with_note(note.clone())
        })
    }

    /// Puts the elements of a list that is given for the last operand, of which there are several, in its place, and leaves
    /// out what is `None` at the end.
    fn flattened<'py>(&self, operands: Vec<Bound<'py, PyAny>>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut flat = Vec::new();
        let n_operands = operands.len();
        for (index, operand) in operands.into_iter().enumerate() {
            let def = self.0.inputs.get(index);
            let takes_several = def.is_some_and(|def| matches!(def.arity, Arity::Rest(_)));
            let is_list = operand.is_instance_of::<PyList>() || operand.is_instance_of::<PyTuple>();
            if takes_several && is_list && index + 1 == n_operands {
                for item in operand.try_iter()? {
                    flat.push(item?);
                }
            } else {
                flat.push(operand);
            }
        }
        while flat.last().is_some_and(|last| last.is_none()) {
            flat.pop();
        }
        Ok(flat)
    }
}

/// Returns the type of the elements of what is an array already.
fn type_of(operand: &Bound<'_, PyAny>) -> Option<DType> {
    if let Ok(tensor) = operand.cast::<PyTensor>() {
        return Some(tensor.get().0.dtype());
    }
    let descr = operand.getattr("dtype").ok()?;
    dtype::from_python(&descr).ok()
}

/// Takes the tensor of a handle that has it.
fn take(handle: Handle) -> Result<Tensor, Error> {
    match handle.handle().tensor() {
        Some(Ok(tensor)) => Tensor::try_from(tensor.clone()),
        Some(Err(error)) => Err(error.clone()),
        None => Err(Error::internal("a tensor is not there after the wait")),
    }
}

/// Makes the value of an attribute.
fn attribute(attr: &AttrDef, value: &Bound<'_, PyAny>) -> PyResult<AttrValue> {
    let py = value.py();
    let made = match attr.kind {
        AttrKind::Int => value
            .extract::<i64>()
            .or_else(|_| value.extract::<bool>().map(i64::from))
            .map(IntoAttr::into_attr),
        AttrKind::Float => value.extract::<f32>().map(IntoAttr::into_attr),
        AttrKind::Text => value
            .extract::<String>()
            .map(|text| text.as_str().into_attr()),
        AttrKind::Ints => value
            .extract::<Vec<i64>>()
            .map(|list| list.as_slice().into_attr()),
        AttrKind::Floats => value
            .extract::<Vec<f32>>()
            .map(|list| list.as_slice().into_attr()),
        AttrKind::Texts => value.extract::<Vec<String>>().map(|list| {
            let texts = list.iter().map(|text| text.as_str().into_attr());
            AttrValue::Aggregate(texts.collect::<Vec<_>>().into())
        }),
        AttrKind::Type => dtype::from_python(value).map(IntoAttr::into_attr),
        AttrKind::Types => {
            let types = value.try_iter()?.map(|item| dtype::from_python(&item?));
            let types = types.map(|dtype| dtype.map(IntoAttr::into_attr));
            let types = types.collect::<PyResult<Vec<AttrValue>>>();
            types.map(|types| AttrValue::Aggregate(types.into()))
        }
        AttrKind::Shapes => value.extract::<Vec<Vec<usize>>>().and_then(|shapes| {
            let shapes = shapes.iter().map(|extents| {
                let shape = TensorShape::new(extents).map_err(|error| raise(py, error))?;
                Ok((&shape).into_attr())
            });
            let shapes = shapes.collect::<PyResult<Vec<AttrValue>>>();
            shapes.map(|shapes| AttrValue::Aggregate(shapes.into()))
        }),
        AttrKind::Tensor => {
            let tensor = convert::to_tensor(value, None)?;
            let dense = tensor.as_dense().cloned();
            dense
                .map(IntoAttr::into_attr)
                .map_err(|error| raise(py, error))
        }
        AttrKind::Region | AttrKind::Function => Err(broken("an operation with a body is called")),
    };
    made.map_err(|_| {
        let found = value.get_type().name().map(|name| name.to_string());
        let found = found.unwrap_or_default();
        let message = format!(
            "attribute '{}': expected {:?}, found {found}",
            attr.name, attr.kind
        );
        invalid_argument(py, message)
    })
}
