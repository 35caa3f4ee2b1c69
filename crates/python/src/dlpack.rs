//! DLPack, by which libraries of arrays see each other's memory: capsules of tensors, and tensors of capsules.
//!
//! The structures are those of DLPack 1.0. A capsule holds the address of one; who takes it renames the capsule, and calls
//! its deleter in the end.

use std::ffi::{CStr, c_void};
use std::{ptr, slice};

use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use tfrt::{DType, OwnedReading, Tensor};

use crate::error::{invalid_argument, raise};

const VERSIONED: &CStr = c"dltensor_versioned";
const UNVERSIONED: &CStr = c"dltensor";
const USED_VERSIONED: &CStr = c"used_dltensor_versioned";
const USED_UNVERSIONED: &CStr = c"used_dltensor";

/// The flag of memory that is for reading.
const READ_ONLY: u64 = 1;
/// The device number of memory of the host, and of such memory that a GPU can read.
const CPU: i32 = 1;
const CUDA_HOST: i32 = 3;

const INT: u8 = 0;
const UINT: u8 = 1;
const FLOAT: u8 = 2;
const BFLOAT: u8 = 4;
const COMPLEX: u8 = 5;
const BOOL: u8 = 6;

/// The types of elements, by code and bits.
const TYPES: [((u8, u8), DType); 23] = [
    ((BOOL, 8), DType::I1),
    ((INT, 8), DType::I8),
    ((INT, 16), DType::I16),
    ((INT, 32), DType::I32),
    ((INT, 64), DType::I64),
    ((UINT, 8), DType::Ui8),
    ((UINT, 16), DType::Ui16),
    ((UINT, 32), DType::Ui32),
    ((UINT, 64), DType::Ui64),
    ((FLOAT, 16), DType::F16),
    ((FLOAT, 32), DType::F32),
    ((FLOAT, 64), DType::F64),
    ((BFLOAT, 16), DType::Bf16),
    ((COMPLEX, 64), DType::Complex64),
    ((COMPLEX, 128), DType::Complex128),
    ((7, 8), DType::F8E3M4),
    ((8, 8), DType::F8E4M3),
    ((9, 8), DType::F8E4M3B11FNUZ),
    ((10, 8), DType::F8E4M3FN),
    ((11, 8), DType::F8E4M3FNUZ),
    ((12, 8), DType::F8E5M2),
    ((13, 8), DType::F8E5M2FNUZ),
    ((14, 8), DType::F8E8M0),
];

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Managed {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

#[repr(C)]
struct ManagedVersioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    flags: u64,
    tensor: DlTensor,
}

/// Elements and extents that a capsule of ours keeps.
struct Exported {
    shape: Vec<i64>,
    strides: Vec<i64>,
    /// Dropped with the capsule, or by who has taken it.
    _elements: OwnedReading,
}

/// Makes a capsule of the elements of a tensor: for reading, if the other side knows versions; else of a copy, which it
/// may write.
///
/// # Errors
///
/// `BufferError` for elements that DLPack has no type for, and if a copy is needed that was ruled out.
pub fn export<'py>(
    py: Python<'py>,
    tensor: &Tensor,
    knows_versions: bool,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let dtype = tensor.dtype();
    let Some(((code, bits), _)) = TYPES.iter().find(|(_, own)| *own == dtype) else {
        let message = format!("DLPack has no type for elements that are {dtype}");
        return Err(PyBufferError::new_err(message));
    };
    let is_copied = copy.unwrap_or(!knows_versions);
    if !is_copied && !knows_versions {
        let message = "a tensor is for reading, of which DLPack before 1.0 can't tell: expected max_version=(1, 0) or a copy";
        return Err(PyBufferError::new_err(message));
    }
    let reading = match is_copied {
        false => tensor.read_owned(),
        true => tensor.read_owned().and_then(|reading| {
            let extents: Vec<usize> = reading.shape().extents().collect();
            Tensor::from_bytes(dtype, &extents, &reading)?.read_owned()
        }),
    };
    let reading = reading.map_err(|error| raise(py, error))?;
    let extents = reading.shape().extents().map(i64::try_from);
    let shape = extents.collect::<Result<Vec<i64>, _>>();
    let shape = shape.map_err(|_| PyBufferError::new_err("an extent is too large"))?;
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis].max(1);
    }
    let data = reading.as_ptr().cast_mut().cast();
    let exported = Box::into_raw(Box::new(Exported {
        shape,
        strides,
        _elements: reading,
    }));
    // SAFETY: it was made by the line above, and nobody else has it yet.
    let held = unsafe { &mut *exported };
    let tensor = DlTensor {
        data,
        device_type: CPU,
        device_id: 0,
        ndim: i32::try_from(held.shape.len()).unwrap_or(i32::MAX),
        code: *code,
        bits: *bits,
        lanes: 1,
        shape: held.shape.as_mut_ptr(),
        strides: held.strides.as_mut_ptr(),
        byte_offset: 0,
    };
    let context = exported.cast();
    let (address, name, destructor): (*mut c_void, &CStr, ffi::PyCapsule_Destructor) =
        match knows_versions {
            true => {
                let managed = ManagedVersioned {
                    major: 1,
                    minor: 0,
                    context,
                    deleter: Some(delete_versioned),
                    flags: if is_copied { 0 } else { READ_ONLY },
                    tensor,
                };
                let managed = Box::into_raw(Box::new(managed));
                (managed.cast(), VERSIONED, drop_versioned)
            }
            false => {
                let deleter = Some(delete as unsafe extern "C" fn(*mut Managed));
                let managed = Managed {
                    tensor,
                    context,
                    deleter,
                };
                (
                    Box::into_raw(Box::new(managed)).cast(),
                    UNVERSIONED,
                    drop_unversioned,
                )
            }
        };
    // SAFETY: the address is not null, and the name lives for ever.
    let capsule = unsafe { ffi::PyCapsule_New(address, name.as_ptr(), Some(destructor)) };
    // SAFETY: it is null with an exception set, or a new reference.
    unsafe { Bound::from_owned_ptr_or_err(py, capsule) }
}

/// Frees what a capsule of ours refers to.
unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: `export` has made it, and each is deleted once.
    let managed = unsafe { Box::from_raw(managed) };
    // SAFETY: as above.
    drop(unsafe { Box::from_raw(managed.context.cast::<Exported>()) });
}

/// Frees what a versioned capsule of ours refers to.
unsafe extern "C" fn delete_versioned(managed: *mut ManagedVersioned) {
    // SAFETY: `export` has made it, and each is deleted once.
    let managed = unsafe { Box::from_raw(managed) };
    // SAFETY: as above.
    drop(unsafe { Box::from_raw(managed.context.cast::<Exported>()) });
}

/// Frees the tensor of a capsule that nobody has taken.
unsafe extern "C" fn drop_unversioned(capsule: *mut ffi::PyObject) {
    if let Some(managed) = address_in(capsule, UNVERSIONED) {
        // SAFETY: nobody has taken it, or the capsule had another name.
        unsafe { delete(managed.cast()) };
    }
}

/// Frees the tensor of a versioned capsule that nobody has taken.
unsafe extern "C" fn drop_versioned(capsule: *mut ffi::PyObject) {
    if let Some(managed) = address_in(capsule, VERSIONED) {
        // SAFETY: nobody has taken it, or the capsule had another name.
        unsafe { delete_versioned(managed.cast()) };
    }
}

/// Returns the address in a capsule, if it has this name.
fn address_in(capsule: *mut ffi::PyObject, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: it is an object, and the name ends in a zero.
    if unsafe { ffi::PyCapsule_IsValid(capsule, name.as_ptr()) } == 0 {
        return None;
    }
    // SAFETY: it is a capsule of that name.
    Some(unsafe { ffi::PyCapsule_GetPointer(capsule, name.as_ptr()) })
}

/// The memory of another library, which is told when it is not needed any more.
enum Imported {
    Unversioned(*mut Managed),
    Versioned(*mut ManagedVersioned),
}

// SAFETY: the memory may be read by any thread, and DLPack demands that deleters may be called by any.
unsafe impl Send for Imported {}
// SAFETY: only `drop` does anything with it.
unsafe impl Sync for Imported {}

impl Imported {
    fn tensor(&self) -> &DlTensor {
        match *self {
            // SAFETY: the capsule has referred to it, and it lives until its deleter is called.
            Imported::Unversioned(managed) => unsafe { &(*managed).tensor },
            // SAFETY: as above.
            Imported::Versioned(managed) => unsafe { &(*managed).tensor },
        }
    }
}

impl Drop for Imported {
    fn drop(&mut self) {
        match *self {
            Imported::Unversioned(managed) => {
                // SAFETY: it lives until the next line.
                if let Some(deleter) = unsafe { (*managed).deleter } {
                    // SAFETY: it is called once, by who has taken the capsule.
                    unsafe { deleter(managed) };
                }
            }
            Imported::Versioned(managed) => {
                // SAFETY: it lives until the next line.
                if let Some(deleter) = unsafe { (*managed).deleter } {
                    // SAFETY: it is called once, by who has taken the capsule.
                    unsafe { deleter(managed) };
                }
            }
        }
    }
}

/// Elements in row-major order in the memory of another library.
struct Lent {
    /// The address as a number, since pointers don't go from thread to thread.
    address: usize,
    len_bytes: usize,
    _memory: Imported,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        let data: *const u8 = ptr::with_exposed_provenance(self.address);
        // SAFETY: who made the capsule says that so many bytes are there, for as long as it is not deleted.
        unsafe { slice::from_raw_parts(data, self.len_bytes) }
    }
}

/// Sees the memory of another library's array as a tensor, without a copy where its elements lie in row-major order.
/// `value` has the method `__dlpack__`, or is a capsule.
///
/// # Errors
///
/// `InvalidArgument` for memory of another device, for types that tensors don't have, and for a capsule that was used.
pub fn import(value: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let py = value.py();
    if let Ok(capsule) = value.cast::<PyCapsule>() {
        return take(capsule);
    }
    if let Ok(device) = value.call_method0(intern!(py, "__dlpack_device__")) {
        let (kind, number): (i32, i32) = device.extract()?;
        expect_host(py, kind, number)?;
    }
    let versions = PyDict::new(py);
    versions.set_item(intern!(py, "max_version"), (1, 0))?;
    let name = intern!(py, "__dlpack__");
    let capsule = match value.call_method(name, (), Some(&versions)) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => value.call_method0(name)?,
        made => made?,
    };
    match capsule.cast::<PyCapsule>() {
        Ok(capsule) => take(capsule),
        Err(_) => {
            let found = capsule.get_type().name()?;
            let message =
                format!("expected `__dlpack__` to give a capsule, found an object of type {found}");
            Err(invalid_argument(py, message))
        }
    }
}

fn expect_host(py: Python<'_>, kind: i32, number: i32) -> PyResult<()> {
    match kind {
        CPU | CUDA_HOST => Ok(()),
        _ => {
            let message = format!(
                "expected memory of the host, found an array on device {number} of kind {kind}: copy it first"
            );
            Err(invalid_argument(py, message))
        }
    }
}

/// Takes the tensor in a capsule.
fn take(capsule: &Bound<'_, PyCapsule>) -> PyResult<Tensor> {
    let py = capsule.py();
    let raw = capsule.as_ptr();
    let (memory, used) = if let Some(address) = address_in(raw, VERSIONED) {
        // SAFETY: a capsule of the name has the address of such a structure, which begins so in all versions.
        let major = unsafe { (*address.cast::<ManagedVersioned>()).major };
        if major != 1 {
            let message = format!("expected a capsule of DLPack 1, found one of version {major}");
            return Err(PyBufferError::new_err(message));
        }
        (Imported::Versioned(address.cast()), USED_VERSIONED)
    } else if let Some(address) = address_in(raw, UNVERSIONED) {
        (Imported::Unversioned(address.cast()), USED_UNVERSIONED)
    } else {
        let used = [USED_VERSIONED, USED_UNVERSIONED];
        let is_used = used.iter().any(|name| address_in(raw, name).is_some());
        return Err(PyValueError::new_err(match is_used {
            true => "the capsule was used before: each can be taken once",
            false => "expected a capsule of DLPack, named 'dltensor_versioned' or 'dltensor'",
        }));
    };
    // SAFETY: it is a capsule, and the name lives for ever.
    if unsafe { ffi::PyCapsule_SetName(raw, used.as_ptr()) } != 0 {
        // The capsule still has the memory.
        std::mem::forget(memory);
        return Err(PyErr::take(py).unwrap_or_else(|| PyValueError::new_err("no such capsule")));
    }
    // From here on it is ours to delete.
    let found = memory.tensor();
    expect_host(py, found.device_type, found.device_id)?;
    let known = TYPES
        .iter()
        .find(|(kind, _)| *kind == (found.code, found.bits) && found.lanes == 1);
    let Some((_, dtype)) = known else {
        let (code, bits, lanes) = (found.code, found.bits, found.lanes);
        let message = format!(
            "expected elements that a tensor can have, found type {code} of {bits} bits and {lanes} lanes"
        );
        return Err(invalid_argument(py, message));
    };
    let rank = usize::try_from(found.ndim).unwrap_or(0);
    let list = |address: *mut i64| match rank {
        0 => &[][..],
        // SAFETY: it is not null, and who made the capsule says that there are `rank` numbers.
        _ => unsafe { slice::from_raw_parts(address, rank) },
    };
    let extents = list(found.shape)
        .iter()
        .map(|extent| usize::try_from(*extent));
    let extents = extents.collect::<Result<Vec<usize>, _>>();
    let extents = extents.map_err(|_| PyValueError::new_err("a capsule has a negative extent"))?;
    let size = dtype.size_bytes().unwrap_or(1);
    let n_elements = extents
        .iter()
        .try_fold(1_usize, |n, extent| n.checked_mul(*extent));
    let len_bytes = n_elements.and_then(|n| n.checked_mul(size));
    let Some(len_bytes) = len_bytes.filter(|len| isize::try_from(*len).is_ok()) else {
        return Err(PyValueError::new_err("a capsule is larger than memory"));
    };
    let offset = usize::try_from(found.byte_offset).unwrap_or(0);
    let data: *const u8 = found.data.cast::<u8>().wrapping_add(offset);
    let strides = match found.strides.is_null() {
        true => None,
        false => Some(list(found.strides)),
    };
    if len_bytes == 0 {
        // An empty slice lies nowhere, so it need not be aligned.
        return Tensor::zeros(*dtype, &extents).map_err(|error| raise(py, error));
    }
    let is_aligned = data
        .addr()
        .is_multiple_of(dtype.alignment_bytes().unwrap_or(1));
    let made = match is_in_order(&extents, strides) && is_aligned {
        true => {
            let lent = Lent {
                address: data.expose_provenance(),
                len_bytes,
                _memory: memory,
            };
            Tensor::from_owner(*dtype, &extents, lent)
        }
        false => {
            let mut bytes = Vec::with_capacity(len_bytes);
            gather(data, &extents, strides, size, &mut bytes);
            Tensor::from_bytes(*dtype, &extents, &bytes)
        }
    };
    made.map_err(|error| raise(py, error))
}

/// Returns whether elements lie in row-major order.
fn is_in_order(extents: &[usize], strides: Option<&[i64]>) -> bool {
    let Some(strides) = strides else {
        return true;
    };
    if extents.contains(&0) {
        return true;
    }
    let mut expected = 1_i64;
    for (&extent, &stride) in extents.iter().zip(strides).rev() {
        if extent != 1 && stride != expected {
            return false;
        }
        expected = expected.saturating_mul(i64::try_from(extent).unwrap_or(i64::MAX));
    }
    true
}

/// Appends elements to bytes, in row-major order. There is at least one.
fn gather(
    data: *const u8,
    extents: &[usize],
    strides: Option<&[i64]>,
    size: usize,
    bytes: &mut Vec<u8>,
) {
    let Some((&extent, inner)) = extents.split_first() else {
        // SAFETY: the strides lead to an element that who made the capsule says is there.
        bytes.extend_from_slice(unsafe { slice::from_raw_parts(data, size) });
        return;
    };
    let row_major: usize = inner.iter().product();
    let (stride, rest) = match strides.and_then(<[i64]>::split_first) {
        Some((stride, rest)) => (isize::try_from(*stride).unwrap_or(0), Some(rest)),
        None => (isize::try_from(row_major).unwrap_or(0), None),
    };
    let step = stride.wrapping_mul(size.cast_signed());
    let mut from = data;
    for _ in 0..extent {
        gather(from, inner, rest, size, bytes);
        from = from.wrapping_offset(step);
    }
}
