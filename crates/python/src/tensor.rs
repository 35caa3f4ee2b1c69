//! [`PyTensor`], the class `tfrt.Tensor`: elements with a type and a shape, which several see without copies.

use std::ffi::c_int;

use numpy::PyArrayDescr;
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyTuple, PyType};
use pyo3::{ffi, intern};
use tfrt::{DType, Tensor};

use crate::error::{invalid_argument, raise};
use crate::{array, convert, dlpack, dtype};

/// A tensor in memory of the host: numbers or strings, with a type and a shape.
///
/// Outputs that NumPy has no type for are such tensors; arrays are made into one by `Tensor(array)`, which copies, or by
/// `tfrt.from_dlpack(array)`, which does not.
#[pyclass(frozen, name = "Tensor", module = "tfrt")]
pub struct PyTensor(pub Tensor);

#[pymethods]
impl PyTensor {
    /// Copies an array, a number or nested lists of these.
    #[new]
    #[pyo3(signature = (value, dtype=None))]
    fn new(value: &Bound<'_, PyAny>, dtype: Option<&Bound<'_, PyAny>>) -> PyResult<PyTensor> {
        let wanted = dtype.map(dtype::from_python).transpose()?;
        convert::to_owned_tensor(value, wanted).map(PyTensor)
    }

    /// The type of the elements: NumPy's, or our name of one that NumPy and `ml_dtypes` lack.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dtype::to_python(py, self.0.dtype())
    }

    /// The extents, from the outermost dimension to the innermost.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.shape().extents().collect::<Vec<_>>())
    }

    /// The number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.0.shape().rank()
    }

    /// The number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.0.n_elements()
    }

    /// The number of bytes of the elements, of numbers.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.n_elements() * self.0.dtype().size_bytes().unwrap_or(0)
    }

    /// Returns an array of the elements, which is for reading and copies nothing.
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        array::read(py, &self.0)?.ok_or_else(|| no_type(self.0.dtype()))
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = self.numpy(py)?;
        let descr = dtype
            .map(|dtype| PyArrayDescr::new(py, dtype))
            .transpose()?;
        let own = array.getattr(intern!(py, "dtype"))?;
        match descr {
            Some(descr) if !own.eq(&descr)? => match copy {
                Some(false) => Err(PyValueError::new_err(format!(
                    "a copy is needed to make {descr} of {own}, but copy=False"
                ))),
                _ => array.call_method1(intern!(py, "astype"), (descr,)),
            },
            _ if copy == Some(true) => array.call_method0(intern!(py, "copy")),
            _ => Ok(array),
        }
    }

    /// Returns the elements as nested lists.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.numpy(py)?.call_method0(intern!(py, "tolist"))
    }

    /// Returns the only element.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.0.n_elements() {
            1 => self.numpy(py)?.call_method0(intern!(py, "item")),
            _ => {
                let found = self.0.metadata();
                let message = format!("expected a tensor of one element, found {found}");
                Err(invalid_argument(py, message))
            }
        }
    }

    /// Returns a tensor of the same elements with another shape.
    #[pyo3(signature = (*shape))]
    fn reshape(&self, py: Python<'_>, shape: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let extents: Vec<usize> = match shape.len() {
            1 => match shape.get_item(0)?.extract::<Vec<usize>>() {
                Ok(extents) => extents,
                Err(_) => shape.extract::<Vec<usize>>()?,
            },
            _ => shape.extract::<Vec<usize>>()?,
        };
        let made = self.0.reshape(&extents);
        made.map(PyTensor).map_err(|error| raise(py, error))
    }

    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if stream.is_some() {
            return Err(PyBufferError::new_err("memory of the host has no streams"));
        }
        if let Some((kind, number)) = dl_device.filter(|(kind, _)| *kind != 1) {
            let message =
                format!("a tensor is in memory of the host, not on device {number} of kind {kind}");
            return Err(PyBufferError::new_err(message));
        }
        let knows_versions = max_version.is_some_and(|(major, _)| major >= 1);
        dlpack::export(py, &self.0, knows_versions, copy)
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        (1, 0)
    }

    fn __len__(&self) -> PyResult<usize> {
        let first = self.0.shape().extents().next();
        first.ok_or_else(|| PyTypeError::new_err("a tensor without dimensions has no length"))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let class = py.get_type::<PyTensor>();
        let again = class.getattr(intern!(py, "_again"))?;
        let shape: Vec<usize> = self.0.shape().extents().collect();
        let name = self.0.dtype().name();
        let elements = match self.0.strings() {
            Ok(strings) => {
                let all = strings.iter().map(|string| PyBytes::new(py, string));
                PyTuple::new(py, all)?.into_any()
            }
            Err(_) => {
                let reading = self.0.read_owned();
                let reading = reading.map_err(|error| raise(py, error))?;
                PyBytes::new(py, &reading).into_any()
            }
        };
        let pair = (again, (name, shape, elements)).into_pyobject(py)?;
        Ok(pair.into_any())
    }

    /// Makes the tensor that was pickled.
    #[classmethod]
    fn _again(
        class: &Bound<'_, PyType>,
        name: &str,
        shape: Vec<usize>,
        elements: &Bound<'_, PyAny>,
    ) -> PyResult<PyTensor> {
        let py = class.py();
        let dtype = DType::ALL.into_iter().find(|dtype| dtype.name() == name);
        let dtype = dtype.ok_or_else(|| {
            invalid_argument(py, format!("expected a type of elements, found '{name}'"))
        })?;
        let made = match dtype {
            DType::String => Tensor::from_strings(&shape, elements.extract::<Vec<Vec<u8>>>()?),
            dtype => Tensor::from_bytes(dtype, &shape, elements.cast::<PyBytes>()?.as_bytes()),
        };
        made.map(PyTensor).map_err(|error| raise(py, error))
    }

    /// Lends the bytes of the elements, for reading.
    ///
    /// # Safety
    ///
    /// Python calls it with a view that it is to fill.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("there is no view to fill"));
        }
        if flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
            return Err(PyBufferError::new_err("a tensor is for reading"));
        }
        let array = slf.get().numpy(slf.py())?;
        // SAFETY: the view is to be filled, by an object that can do it: NumPy's array of the elements.
        match unsafe { ffi::PyObject_GetBuffer(array.as_ptr(), view, flags) } {
            0 => Ok(()),
            _ => Err(PyErr::take(slf.py())
                .unwrap_or_else(|| PyBufferError::new_err("the elements have no buffer"))),
        }
    }
}

fn no_type(dtype: DType) -> PyErr {
    PyTypeError::new_err(format!(
        "NumPy has no type for elements that are {dtype}: install the package ml_dtypes, or use `from_dlpack`"
    ))
}

/// Sees the memory of an array of another library as a tensor, without a copy where its elements lie in row-major order.
///
/// Calls read changes of the array: the memory is shared.
#[pyfunction]
pub fn from_dlpack(value: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    let has_method = value.hasattr(intern!(value.py(), "__dlpack__"))?;
    if !has_method && value.cast::<PyCapsule>().is_err() {
        let found = value.get_type().name()?;
        let message =
            format!("expected an object with the method `__dlpack__`, found one of type {found}");
        return Err(invalid_argument(value.py(), message));
    }
    dlpack::import(value).map(PyTensor)
}
