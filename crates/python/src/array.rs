//! NumPy's arrays as tensors, and tensors as NumPy's arrays: elements stay where they are.
//!
//! An array that a call reads is lent: its flag `writeable` is cleared until the last tensor that shares its elements is
//! gone, which may be on a thread of the runtime. Others that see the same memory, such as another view, can write it
//! nevertheless, as with any library that does not copy; docs/python.md says so.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::slice;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use numpy::npyffi::flags::{NPY_ARRAY_CARRAY, NPY_ARRAY_CARRAY_RO, NPY_ARRAY_WRITEABLE};
use numpy::npyffi::{NpyTypes, PY_ARRAY_API, get_type_object, npy_intp};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use pyo3::{IntoPyObjectExt, ffi, intern};
use tfrt::{DType, OwnedReading, OwnedWriting, Tensor};

use crate::dtype::{self, Elements};
use crate::error::{broken, invalid_argument, raise};

/// Sees an array as a tensor of the same elements. Those that don't lie in row-major order, in the order of the processor,
/// or that are strings, are copied.
///
/// # Errors
///
/// `InvalidArgument` for an array of a type that tensors don't have.
pub fn lend(array: &Bound<'_, PyUntypedArray>) -> PyResult<Tensor> {
    let py = array.py();
    let descr = array.dtype();
    let (dtype, low_bits) = match dtype::elements_of(&descr)? {
        Elements::Strings => return strings_of(array),
        Elements::Numbers(dtype) => (dtype, None),
        Elements::LowBits(dtype, mask) => (dtype, Some(mask)),
    };
    if array.is_empty() {
        // An empty slice lies nowhere, so it need not be aligned.
        return Tensor::zeros(dtype, array.shape()).map_err(|error| raise(py, error));
    }
    let is_native = descr.is_native_byteorder() != Some(false);
    let shape = array.shape();
    if let Some(mask) = low_bits {
        let copy = in_order(array)?;
        let owner = Owner::of(&copy);
        let bytes: Vec<u8> = owner.as_ref().iter().map(|byte| byte & mask).collect();
        return Tensor::from_bytes(dtype, shape, &bytes).map_err(|error| raise(py, error));
    }
    let array = match is_native && array.is_c_contiguous() && array.is_aligned() {
        true => array.clone(),
        false => in_order(array)?,
    };
    let owner = Owner::of(&array);
    Tensor::from_owner(dtype, array.shape(), owner).map_err(|error| raise(py, error))
}

/// Copies an array: in row-major order, with elements in the order of the processor.
fn in_order<'py>(array: &Bound<'py, PyUntypedArray>) -> PyResult<Bound<'py, PyUntypedArray>> {
    let py = array.py();
    let descr = array.dtype();
    let descr = match descr.is_native_byteorder() {
        Some(false) => descr.call_method1(intern!(py, "newbyteorder"), ("=",))?,
        _ => descr.into_any(),
    };
    let copy = array.call_method1(intern!(py, "astype"), (descr, "C"))?;
    Ok(copy.cast_into::<PyUntypedArray>()?)
}

/// Copies the strings of an array.
fn strings_of(array: &Bound<'_, PyUntypedArray>) -> PyResult<Tensor> {
    let py = array.py();
    let flat = array.call_method0(intern!(py, "ravel"))?;
    let list = flat.call_method0(intern!(py, "tolist"))?;
    let strings = list.cast_into::<PyList>()?.iter().map(|item| {
        if let Ok(text) = item.cast::<PyString>() {
            return Ok(text.to_str()?.as_bytes().to_vec());
        }
        if let Ok(bytes) = item.cast::<PyBytes>() {
            return Ok(bytes.as_bytes().to_vec());
        }
        let kind = item.get_type().name()?.to_string();
        let message = format!(
            "expected strings or numbers, found an array of objects with an element of type {kind}"
        );
        Err(invalid_argument(py, message))
    });
    let strings = strings.collect::<PyResult<Vec<_>>>()?;
    Tensor::from_strings(array.shape(), strings).map_err(|error| raise(py, error))
}

/// The elements of an array, which nobody writes by it. The array itself is held by the table of loans, because a thread of
/// the runtime, which drops this, is not attached to the interpreter and could let go of an array only later.
struct Owner {
    /// The address of the elements as a number, since pointers don't go from thread to thread.
    address: usize,
    len_bytes: usize,
    /// The address of the array, by which the table of loans has it.
    array: usize,
    loan: u64,
}

impl Owner {
    /// Takes the elements of an array in row-major order.
    fn of(array: &Bound<'_, PyUntypedArray>) -> Owner {
        let raw = array.as_array_ptr();
        // SAFETY: it is an array, whose fields NumPy keeps.
        let data = unsafe { (*raw).fields.data };
        Owner {
            address: data.expose_provenance(),
            len_bytes: array.len() * array.dtype().itemsize(),
            array: array.as_ptr().addr(),
            loan: lending(array),
        }
    }
}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        let data: *const u8 = std::ptr::with_exposed_provenance(self.address);
        // SAFETY: the array, which is held until this loan is given back, has so many bytes there, all initialised, for as
        // long as it lives, since an array that others refer to is not resized. That nobody writes them is what the module's
        // page says of views.
        unsafe { slice::from_raw_parts(data, self.len_bytes) }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        give_back(self.array, self.loan);
    }
}

/// An array whose elements tensors share.
struct Lent {
    n_tensors: usize,
    array: Py<PyUntypedArray>,
    /// Whether its flag was cleared, and is to be set again.
    was_writeable: bool,
}

/// The arrays whose elements tensors share.
struct Loans {
    /// Each array, by its address.
    lent: Option<HashMap<usize, Lent>>,
    /// The numbers of the loans of which the tensor is still there.
    open: Vec<u64>,
    /// The number of the next loan.
    next: u64,
    /// The addresses of arrays of which a tensor is gone.
    returned: Vec<usize>,
    /// Whether no call will look for what is returned, so that Python has to be asked to.
    are_late: bool,
}

static LOANS: Mutex<Loans> = Mutex::new(Loans {
    lent: None,
    open: Vec::new(),
    next: 0,
    returned: Vec::new(),
    are_late: false,
});

/// Tells who waits that a loan is over.
static RETURNED: Condvar = Condvar::new();

/// How long a call waits that has ended for the threads that had its inputs.
const PATIENCE: Duration = Duration::from_millis(20);

fn loans() -> MutexGuard<'static, Loans> {
    LOANS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Holds an array, and clears its flag if it is set; returns the number of the loan.
fn lending(array: &Bound<'_, PyUntypedArray>) -> u64 {
    let raw = array.as_array_ptr();
    let mut loans = loans();
    let lent = loans.lent.get_or_insert_default();
    let entry = lent.entry(array.as_ptr().addr()).or_insert_with(|| Lent {
        n_tensors: 0,
        array: array.clone().unbind(),
        was_writeable: false,
    });
    entry.n_tensors += 1;
    // SAFETY: it is an array, whose flags are changed while this thread is attached to the interpreter.
    let flags = unsafe { &mut (*raw).fields.flags };
    entry.was_writeable |= *flags & NPY_ARRAY_WRITEABLE != 0;
    *flags &= !NPY_ARRAY_WRITEABLE;
    let loan = loans.next;
    loans.next += 1;
    loans.open.push(loan);
    loan
}

/// Notes that a tensor is gone which shared the elements of an array; on any thread.
fn give_back(address: usize, loan: u64) {
    let mut loans = loans();
    loans.returned.push(address);
    loans.open.retain(|open| *open != loan);
    RETURNED.notify_all();
    if loans.are_late && loans.returned.len() == 1 {
        // SAFETY: the function takes no argument, and may be called by any thread. If Python's list is full, the next
        // call of a model does what it would do.
        unsafe { ffi::Py_AddPendingCall(Some(settle_late), std::ptr::null_mut()) };
    }
}

extern "C" fn settle_late(_: *mut c_void) -> c_int {
    Python::attach(settle);
    0
}

/// Returns the number of the next loan: those of a call are between two of these.
pub fn next_loan() -> u64 {
    loans().next
}

/// Lets go of the arrays that a call was given, which has ended. Threads that ran its kernels may let go of them a little
/// later than they give its results.
pub fn settle_call(py: Python<'_>, own: &Range<u64>) {
    let is_open = |loans: &mut Loans| loans.open.iter().any(|loan| own.contains(loan));
    if is_open(&mut loans()) {
        py.detach(|| drop(RETURNED.wait_timeout_while(loans(), PATIENCE, is_open)));
    }
    settle(py);
}

/// Lets go of the arrays that no tensor shares any more, and sets their flags again.
pub fn settle(py: Python<'_>) {
    let mut loans = loans();
    let returned = std::mem::take(&mut loans.returned);
    let Some(lent) = &mut loans.lent else {
        return;
    };
    let mut arrays = Vec::new();
    for address in returned {
        if let Some(entry) = lent.get_mut(&address) {
            entry.n_tensors -= 1;
            if entry.n_tensors == 0 {
                arrays.extend(lent.remove(&address));
            }
        }
    }
    loans.are_late = !lent.is_empty();
    // Dropping an array may run code, which may lend another.
    drop(loans);
    for entry in arrays {
        if entry.was_writeable {
            let raw = entry.array.bind(py).as_array_ptr();
            // SAFETY: it is an array, whose flags are changed while this thread is attached to the interpreter.
            let flags = unsafe { &mut (*raw).fields.flags };
            *flags |= NPY_ARRAY_WRITEABLE;
        }
    }
}

/// The elements behind an array that Python may write.
#[pyclass(frozen, module = "tfrt._tfrt")]
struct Written(#[expect(dead_code, reason = "it is held")] OwnedWriting);

/// The elements behind an array that is for reading.
#[pyclass(frozen, module = "tfrt._tfrt")]
struct Read(#[expect(dead_code, reason = "it is held")] OwnedReading);

/// Makes an array of the elements of a tensor: in the same memory, to be written if nobody else has the tensor. Of one
/// that somebody has, as that of a constant, the elements are copied. Strings become an array of objects.
///
/// Returns `None` for elements that NumPy has no type for.
pub fn written<'py>(py: Python<'py>, tensor: Tensor) -> PyResult<Option<Bound<'py, PyAny>>> {
    let dtype = tensor.dtype();
    if dtype == DType::String {
        return objects(py, &tensor).map(Some);
    }
    let Some(descr) = dtype::descr_of(py, dtype)? else {
        return Ok(None);
    };
    let mut dims = Dims::of(&tensor)?;
    let mut writing = tensor.write_owned().map_err(|error| raise(py, error))?;
    let data = writing.as_mut_ptr().cast();
    let base = Written(writing).into_bound_py_any(py)?;
    array_at(descr, &mut dims, data, base, NPY_ARRAY_CARRAY).map(Some)
}

/// Makes an array for reading of the elements of a tensor, in the same memory. Strings become an array of objects.
///
/// Returns `None` for elements that NumPy has no type for.
pub fn read<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Option<Bound<'py, PyAny>>> {
    let dtype = tensor.dtype();
    if dtype == DType::String {
        return objects(py, tensor).map(Some);
    }
    let Some(descr) = dtype::descr_of(py, dtype)? else {
        return Ok(None);
    };
    let mut dims = Dims::of(tensor)?;
    let reading = tensor.read_owned().map_err(|error| raise(py, error))?;
    let data = reading.as_ptr().cast_mut().cast();
    let base = Read(reading).into_bound_py_any(py)?;
    array_at(descr, &mut dims, data, base, NPY_ARRAY_CARRAY_RO).map(Some)
}

/// The extents of an array, as NumPy takes them.
struct Dims(Vec<npy_intp>);

impl Dims {
    fn of(tensor: &Tensor) -> PyResult<Dims> {
        let extents = tensor.shape().extents();
        let dims = extents
            .map(npy_intp::try_from)
            .collect::<Result<Vec<_>, _>>();
        dims.map(Dims)
            .map_err(|_| broken("a tensor's extent is larger than memory"))
    }
}

/// Makes an array of the memory at an address, which `base` holds.
fn array_at<'py>(
    descr: Bound<'py, PyArrayDescr>,
    dims: &mut Dims,
    data: *mut c_void,
    base: Bound<'py, PyAny>,
    flags: c_int,
) -> PyResult<Bound<'py, PyAny>> {
    let py = descr.py();
    let Ok(rank) = c_int::try_from(dims.0.len()) else {
        return Err(broken("a tensor has more dimensions than memory"));
    };
    // SAFETY: NumPy has this type.
    let class = unsafe { get_type_object(py, NpyTypes::PyArray_Type) };
    // SAFETY: there are `rank` extents. The memory holds as many elements of the type in row-major order, aligned as the type
    // asks for, and stays while `base` lives. NumPy takes the reference to `descr` over.
    let array = unsafe {
        PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            class,
            descr.into_dtype_ptr(),
            rank,
            dims.0.as_mut_ptr(),
            std::ptr::null_mut(),
            data,
            flags,
            std::ptr::null_mut(),
        )
    };
    // SAFETY: it is null with an exception set, or a new reference.
    let array = unsafe { Bound::from_owned_ptr_or_err(py, array) }?;
    // SAFETY: it is a new array without a base, and takes the reference over, also if it fails.
    let status =
        unsafe { PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_ptr().cast(), base.into_ptr()) };
    match status {
        0 => Ok(array),
        _ => Err(PyErr::take(py).unwrap_or_else(|| PyMemoryError::new_err("no base"))),
    }
}

/// Makes an array of objects of the strings of a tensor: of `str`, or of `bytes` where one is no UTF-8.
fn objects<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    let strings = tensor.strings().map_err(|error| raise(py, error))?;
    let items = strings.iter().map(|string| match str::from_utf8(string) {
        Ok(text) => PyString::new(py, text).into_any(),
        Err(_) => PyBytes::new(py, string).into_any(),
    });
    let items: Vec<_> = items.collect();
    let numpy = py.import(intern!(py, "numpy"))?;
    let shape: Vec<usize> = tensor.shape().extents().collect();
    let array = numpy.call_method1(
        intern!(py, "empty"),
        ((items.len(),), PyArrayDescr::object(py)),
    )?;
    for (index, item) in items.into_iter().enumerate() {
        array.set_item(index, item)?;
    }
    array.call_method1(intern!(py, "reshape"), (shape,))
}
