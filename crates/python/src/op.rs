//! [`PyOp`], an operation: called with arrays, it gives tensors. `tfrt.ops` has one for each row of the table, for each
//! operation of TensorFlow that the runtime has, and for those of its plugins.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use tfrt::capi::OpSpec;
use tfrt::corert::OpAttrs;
use tfrt::eager::{Eager, Handle};
use tfrt::ops::{Arity, AttrDef, AttrDefault, AttrKind, Limit, OpDef};
use tfrt::{DType, Error, ErrorCode, Tensor};

use crate::call::expect_threads;
use crate::error::{about, invalid_argument, raise};
use crate::runtime::PyRuntime;
use crate::tensor::PyTensor;
use crate::variable::{self, Operand};
use crate::{array, attr, dtype};

/// An operation, called with arrays: operands in order or by keyword, attributes by keyword. `documentation` tells of it.
#[pyclass(frozen, name = "Op", module = "tfrt._tfrt")]
pub struct PyOp {
    /// The name by which calls find it.
    name: String,
    /// The name that messages have.
    called: String,
    definition: Definition,
    eager: Eager,
}

/// The operands and attributes of an operation.
enum Definition {
    /// A row of the table.
    Row(&'static OpDef),
    /// An operation of TensorFlow, or of a plugin.
    Spec(Box<OpSpec>),
}

/// Returns the names of the operations of a runtime that can be called: those without a body of their own.
#[pyfunction]
#[pyo3(signature = (runtime=None))]
pub fn op_names(runtime: Option<&Bound<'_, PyRuntime>>) -> Vec<String> {
    let rows = tfrt::ops::all().filter(|row| is_callable(row));
    let mut names: Vec<String> = rows.map(|row| row.name.to_owned()).collect();
    if let Some(runtime) = runtime {
        names.extend_from_slice(runtime.get().plugin_ops());
    }
    names.sort_unstable();
    names.dedup();
    names
}

fn is_callable(row: &OpDef) -> bool {
    let has_body = |attr: &AttrDef| matches!(attr.kind, AttrKind::Region | AttrKind::Function);
    row.regions.is_empty() && !row.attrs.iter().any(has_body)
}

#[pymethods]
impl PyOp {
    /// Finds an operation, such as `dot` or `onnx.NonMaxSuppression`, of a runtime or of that of the process; messages name
    /// it as it was `called`.
    #[new]
    #[pyo3(signature = (name, called=None, runtime=None))]
    fn new(
        py: Python<'_>,
        name: &str,
        called: Option<String>,
        runtime: Option<&Bound<'_, PyRuntime>>,
    ) -> PyResult<PyOp> {
        let runtime = runtime.map(|runtime| runtime.get().clone());
        let runtime = runtime.unwrap_or_else(PyRuntime::of_process);
        let eager = runtime.eager();
        let called = called.unwrap_or_else(|| name.to_owned());
        let is_of_plugin = runtime.plugin_ops().iter().any(|op| op == name);
        let row = tfrt::ops::find(name).filter(|row| is_callable(row) && !is_of_plugin);
        let spec = || {
            let core = eager.core();
            let spec = name.strip_prefix("tf.").and_then(tfrt::capi::spec)?;
            core.op(name, &core.cpu()).ok().map(|_| spec)
        };
        let definition = match row {
            Some(row) => Some(Definition::Row(row)),
            None => spec().map(|spec| Definition::Spec(Box::new(OpSpec::clone(&spec)))),
        };
        match definition {
            Some(definition) => Ok(PyOp {
                name: name.to_owned(),
                called,
                definition,
                eager,
            }),
            None => {
                let message = format!("there is no operation '{called}'");
                Err(raise(py, Error::new(ErrorCode::NotFound, message)))
            }
        }
    }

    /// The name in the table.
    #[getter(__name__)]
    fn name(&self) -> &str {
        &self.name
    }

    /// The sentence of the table, with operands and attributes.
    #[getter]
    fn documentation(&self) -> String {
        let row = match &self.definition {
            Definition::Row(row) => row,
            Definition::Spec(spec) => return format!("{}{}", self.called, spec.usage()),
        };
        let text = format!("{self}\n\n{}", row.summary);
        let attrs = row
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
            0 => Ok(py.None().into_bound(py)),
            1 => variable::result(py, results.remove(0)),
            _ => {
                let results = results
                    .into_iter()
                    .map(|handle| variable::result(py, handle));
                let results = results.collect::<PyResult<Vec<_>>>()?;
                Ok(PyTuple::new(py, results)?.into_any())
            }
        }
    }
}

impl std::fmt::Display for PyOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let OpDef { inputs, attrs, .. } = match &self.definition {
            Definition::Row(row) => row,
            Definition::Spec(spec) => return write!(f, "{}{}", self.called, spec.usage()),
        };
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
        write!(f, "{}({})", self.called, all.join(", "))
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
    /// Makes the value of an attribute and adds it, if there is one of this name.
    fn add_attr(
        &self,
        name: &str,
        value: &Bound<'_, PyAny>,
        attrs: &mut OpAttrs,
    ) -> PyResult<bool> {
        let made = match &self.definition {
            Definition::Row(row) => match row.attrs.iter().find(|attr| attr.name == name) {
                Some(_) if value.is_none() => return Ok(true),
                Some(found) => attr::of_row(found, value)?,
                None => return Ok(false),
            },
            Definition::Spec(spec) => match spec.attr(name) {
                Some(found) => attr::of_spec(found, value)?,
                None => return Ok(false),
            },
        };
        let added = attrs.set_named(name, made);
        added.map_err(|error| raise(value.py(), error))?;
        Ok(true)
    }

    /// Returns the place of an operand among those that are given in order.
    fn operand_index(&self, name: &str) -> Option<usize> {
        match &self.definition {
            Definition::Row(row) => row.inputs.iter().position(|def| def.name == name),
            Definition::Spec(spec) => spec.inputs.iter().position(|def| def.name == name),
        }
    }

    /// Returns whether a list that is given at a place stands for several operands.
    fn takes_several(&self, index: usize, n_operands: usize) -> bool {
        match &self.definition {
            Definition::Row(row) => {
                let def = row.inputs.get(index);
                let is_rest = def.is_some_and(|def| matches!(def.arity, Arity::Rest(_)));
                is_rest && index + 1 == n_operands
            }
            Definition::Spec(spec) => spec.inputs.get(index).is_some_and(|input| !input.is_one()),
        }
    }

    fn call<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Vec<Handle>> {
        expect_threads(py)?;
        let mut operands: Vec<Bound<'py, PyAny>> = args.iter().collect();
        let mut attrs = OpAttrs::new();
        for (name, value) in kwargs.iter().flat_map(|kwargs| kwargs.iter()) {
            let name = name.cast::<PyString>()?.to_str()?.to_owned();
            if self.add_attr(&name, &value, &mut attrs)? {
                continue;
            }
            let Some(index) = self.operand_index(&name) else {
                let message = format!("there is no operand or attribute '{name}': expected {self}");
                return Err(invalid_argument(py, message));
            };
            while operands.len() <= index {
                operands.push(py.None().into_bound(py));
            }
            if !operands[index].is_none() {
                let message = format!("operand '{name}' is given twice");
                return Err(invalid_argument(py, message));
            }
            operands[index] = value;
        }
        let operands = self.flattened(operands)?;
        let wanted = operands.iter().find_map(|operand| type_of(operand));
        let (mut handles, mut given) = (Vec::new(), Vec::new());
        for (index, operand) in operands.iter().enumerate() {
            let operand = variable::operand(operand, wanted).map_err(|error| {
                about(py, error, &format!("{}: operand {index}: ", self.called))
            })?;
            match operand {
                Operand::Handle(handle) => {
                    given.push(match handle.dtype() {
                        Some(DType::Resource) | None => "a variable".to_owned(),
                        Some(_) => "an object".to_owned(),
                    });
                    handles.push(handle);
                }
                Operand::Tensor(tensor) => {
                    given.push(tensor.metadata().to_string());
                    handles.push(self.eager.of(tensor));
                }
            }
        }
        drop(operands);
        let called = py.detach(|| {
            let results = self.eager.op(&self.name, handles, &attrs)?;
            for handle in &results {
                handle.wait()?;
            }
            Ok(results)
        });
        called.map_err(|error| raise(py, self.told(&error, &given)))
    }

    /// Returns an error with the types and shapes of the operands in front: `matmul of f32 [2, 2] and f32 [3, 2]: ..`.
    #[cold]
    fn told(&self, error: &Error, given: &[String]) -> Error {
        let (name, called) = (self.name.as_str(), &self.called);
        let what = error.message();
        let what = what
            .strip_prefix(name)
            .and_then(|what| what.strip_prefix(": "))
            .unwrap_or(what);
        let message = match given {
            [] => format!("{called}: {what}"),
            given => format!("{called} of {}: {what}", given.join(" and ")),
        };
        let notes = error.notes().iter();
        notes.fold(Error::new(error.code(), message), |error, note| {
            error.with_note(note.clone())
        })
    }

    /// Puts the elements of lists that stand for several operands in their place, and leaves out what is `None` at the end.
    fn flattened<'py>(&self, operands: Vec<Bound<'py, PyAny>>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut flat = Vec::new();
        let n_operands = operands.len();
        for (index, operand) in operands.into_iter().enumerate() {
            let is_list = operand.is_instance_of::<PyList>() || operand.is_instance_of::<PyTuple>();
            if is_list && self.takes_several(index, n_operands) {
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

/// Returns the tensor of a handle that has it.
///
/// # Errors
///
/// That of the handle.
pub fn take(handle: &Handle) -> Result<Tensor, Error> {
    match handle.handle().tensor() {
        Some(Ok(tensor)) => Tensor::try_from(tensor.clone()),
        Some(Err(error)) => Err(error.clone()),
        None => Err(Error::internal("a tensor is not there after the wait")),
    }
}
