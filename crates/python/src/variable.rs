//! [`PyVariable`], the class `tfrt.Variable`: a tensor that changes; [`PyObject`], a tensor of what is no number or string.

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tfrt::eager::{Eager, Handle, Variable};
use tfrt::{DType, Tensor};

use crate::call::expect_threads;
use crate::error::raise;
use crate::op::take;
use crate::runtime::PyRuntime;
use crate::tensor::PyTensor;
use crate::{convert, dtype};

/// A tensor that changes: weights that are trained. Operations on variables, such as `tfrt.ops.tf.ResourceApplyAdam`, take
/// it as an operand; calls take effect in their order.
///
/// With a name it is the variable of this name of its runtime, which `save_variables` writes.
#[pyclass(frozen, name = "Variable", module = "tfrt")]
pub struct PyVariable {
    variable: Variable,
    eager: Eager,
}

impl PyVariable {
    /// Returns the operand that stands for the variable.
    pub fn handle(&self) -> Handle {
        self.variable.handle()
    }

    fn value(&self, py: Python<'_>) -> PyResult<Tensor> {
        expect_threads(py)?;
        let read = py.detach(|| {
            let handle = self.variable.read();
            handle.wait()?;
            take(&handle)
        });
        read.map_err(|error| raise(py, error))
    }
}

#[pymethods]
impl PyVariable {
    /// Makes a variable that holds a copy of an array, a number or nested lists of these.
    #[new]
    #[pyo3(signature = (value, dtype=None, *, name=None, runtime=None))]
    fn new(
        value: &Bound<'_, PyAny>,
        dtype: Option<&Bound<'_, PyAny>>,
        name: Option<&str>,
        runtime: Option<&Bound<'_, PyRuntime>>,
    ) -> PyResult<PyVariable> {
        let py = value.py();
        expect_threads(py)?;
        let wanted = dtype.map(dtype::from_python).transpose()?;
        let tensor = convert::to_owned_tensor(value, wanted)?;
        let eager = match runtime {
            Some(runtime) => runtime.get().eager(),
            None => PyRuntime::of_process().eager(),
        };
        let tensor = eager.of(tensor);
        let variable = match name {
            Some(name) => eager.named_variable(name, tensor),
            None => eager.variable(tensor),
        };
        Ok(PyVariable { variable, eager })
    }

    /// Returns the tensor as it is after the calls so far.
    fn read(&self, py: Python<'_>) -> PyResult<PyTensor> {
        self.value(py).map(PyTensor)
    }

    /// Returns an array of the elements as they are after the calls so far; it is for reading.
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Bound::new(py, self.read(py)?)?.call_method0("numpy")
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Bound::new(py, self.read(py)?)?.call_method1("__array__", (dtype, copy))
    }

    /// Replaces the tensor by a copy of an array of the same type and shape.
    fn assign(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = value.py();
        expect_threads(py)?;
        let tensor = convert::to_owned_tensor(value, self.variable.read().dtype())?;
        let assigned = self.variable.assign(&self.eager.of(tensor));
        assigned.map_err(|error| raise(py, error))
    }

    /// The type of the elements.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dtype::to_python(py, self.value(py)?.dtype())
    }

    /// The extents.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.value(py)?.shape().extents().collect::<Vec<_>>())
    }

    /// The name, or `None`.
    #[getter]
    fn name(&self) -> Option<&str> {
        Some(self.variable.name()).filter(|name| !name.is_empty())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        match self.value(py) {
            Ok(tensor) => format!("Variable({})", tensor.metadata()),
            Err(_) => "Variable(without a value)".to_owned(),
        }
    }
}

/// A result that is no tensor of numbers or strings: a list of tensors, a table, a queue. Operations take it as an operand.
#[pyclass(frozen, name = "Object", module = "tfrt")]
pub struct PyObject(pub Handle);

#[pymethods]
impl PyObject {
    fn __repr__(&self) -> String {
        format!("Object({})", self.0.handle())
    }
}

/// Makes the operand of an object: that of a variable or of another result, else a tensor, which is lent.
///
/// # Errors
///
/// `InvalidArgument` for an object that is no array, and can't become one.
pub fn operand(value: &Bound<'_, PyAny>, wanted: Option<DType>) -> PyResult<Operand> {
    if let Ok(variable) = value.cast::<PyVariable>() {
        return Ok(Operand::Handle(variable.get().handle()));
    }
    if let Ok(object) = value.cast::<PyObject>() {
        return Ok(Operand::Handle(object.get().0.clone()));
    }
    convert::to_tensor(value, wanted).map(Operand::Tensor)
}

/// An operand of an operation.
pub enum Operand {
    Handle(Handle),
    Tensor(Tensor),
}

/// Makes the object of a result.
///
/// # Errors
///
/// That of the result.
pub fn result<'py>(py: Python<'py>, handle: Handle) -> PyResult<Bound<'py, PyAny>> {
    let is_object = matches!(handle.dtype(), Some(DType::Resource | DType::Variant));
    if is_object {
        return Ok(Bound::new(py, PyObject(handle))?.into_any());
    }
    let tensor = take(&handle).map_err(|error| raise(py, error))?;
    Ok(Bound::new(py, PyTensor(tensor))?.into_any())
}
