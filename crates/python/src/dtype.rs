//! Types of elements: which one of NumPy, or of the package `ml_dtypes`, is which of ours.

use std::collections::HashMap;

use numpy::npyffi::{NPY_TYPES, PY_ARRAY_API};
use numpy::{PyArrayDescr, PyArrayDescrMethods};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;
use tfrt::DType;

use crate::error::invalid_argument;

/// Our types that NumPy has itself, by NumPy's number.
const OF_NUMPY: [(NPY_TYPES, DType); 14] = [
    (NPY_TYPES::NPY_BOOL, DType::I1),
    (NPY_TYPES::NPY_BYTE, DType::I8),
    (NPY_TYPES::NPY_UBYTE, DType::Ui8),
    (NPY_TYPES::NPY_SHORT, DType::I16),
    (NPY_TYPES::NPY_USHORT, DType::Ui16),
    (NPY_TYPES::NPY_INT, DType::I32),
    (NPY_TYPES::NPY_UINT, DType::Ui32),
    (NPY_TYPES::NPY_LONGLONG, DType::I64),
    (NPY_TYPES::NPY_ULONGLONG, DType::Ui64),
    (NPY_TYPES::NPY_HALF, DType::F16),
    (NPY_TYPES::NPY_FLOAT, DType::F32),
    (NPY_TYPES::NPY_DOUBLE, DType::F64),
    (NPY_TYPES::NPY_CFLOAT, DType::Complex64),
    (NPY_TYPES::NPY_CDOUBLE, DType::Complex128),
];

/// Our types that `ml_dtypes` has, by its names.
const OF_ML_DTYPES: [(&str, DType); 16] = [
    ("bfloat16", DType::Bf16),
    ("float8_e4m3fn", DType::F8E4M3FN),
    ("float8_e4m3fnuz", DType::F8E4M3FNUZ),
    ("float8_e5m2", DType::F8E5M2),
    ("float8_e5m2fnuz", DType::F8E5M2FNUZ),
    ("float8_e8m0fnu", DType::F8E8M0),
    ("float4_e2m1fn", DType::F4E2M1),
    ("float8_e3m4", DType::F8E3M4),
    ("float8_e4m3", DType::F8E4M3),
    ("float8_e4m3b11fnuz", DType::F8E4M3B11FNUZ),
    ("float6_e2m3fn", DType::F6E2M3),
    ("float6_e3m2fn", DType::F6E3M2),
    ("int4", DType::I4),
    ("uint4", DType::Ui4),
    ("int2", DType::I2),
    ("uint2", DType::Ui2),
];

/// The elements of an array, as far as its type tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    /// Numbers, in memory as tensors have them.
    Numbers(DType),
    /// Numbers, of which each takes the low bits of a byte, whatever the others are.
    LowBits(DType, u8),
    /// Strings, or objects that may be strings.
    Strings,
}

/// Finds what elements an array of this type has.
///
/// # Errors
///
/// `InvalidArgument` for types that tensors don't have, such as dates and structures.
pub fn elements_of(descr: &Bound<'_, PyArrayDescr>) -> PyResult<Elements> {
    let num = descr.num();
    if let Some((_, dtype)) = OF_NUMPY.iter().find(|(own, _)| *own as i32 == num) {
        return Ok(Elements::Numbers(*dtype));
    }
    // Of two C types of one size NumPy has both: `long` is one of them.
    let long = match size_of::<std::ffi::c_long>() {
        8 => (DType::I64, DType::Ui64),
        _ => (DType::I32, DType::Ui32),
    };
    match num {
        num if num == NPY_TYPES::NPY_LONG as i32 => return Ok(Elements::Numbers(long.0)),
        num if num == NPY_TYPES::NPY_ULONG as i32 => return Ok(Elements::Numbers(long.1)),
        _ => {}
    }
    if matches!(descr.kind(), b'O' | b'U' | b'S' | b'T') {
        return Ok(Elements::Strings);
    }
    let name = descr.getattr("name")?.cast_into::<PyString>()?;
    let name = name.to_str()?;
    let known = OF_ML_DTYPES.iter().find(|(known, _)| *known == name);
    let Some((_, dtype)) = known else {
        let message = format!("expected numbers or strings, found an array of {name}");
        return Err(invalid_argument(descr.py(), message));
    };
    Ok(match dtype {
        DType::I4 | DType::Ui4 | DType::F4E2M1 => Elements::LowBits(*dtype, 0x0f),
        DType::F6E2M3 | DType::F6E3M2 => Elements::LowBits(*dtype, 0x3f),
        DType::I2 | DType::Ui2 => Elements::LowBits(*dtype, 0x03),
        dtype => Elements::Numbers(*dtype),
    })
}

/// Returns NumPy's type of these elements, if it has one, or if `ml_dtypes`, which has one, is installed.
pub fn descr_of(py: Python<'_>, dtype: DType) -> PyResult<Option<Bound<'_, PyArrayDescr>>> {
    if let Some((num, _)) = OF_NUMPY.iter().find(|(_, own)| *own == dtype) {
        return Ok(Some(builtin(py, *num)));
    }
    if dtype == DType::String {
        return Ok(Some(builtin(py, NPY_TYPES::NPY_OBJECT)));
    }
    let alike = match dtype {
        DType::Quint8 => NPY_TYPES::NPY_UBYTE,
        DType::Quint16 => NPY_TYPES::NPY_USHORT,
        DType::Qint8 => NPY_TYPES::NPY_BYTE,
        DType::Qint16 => NPY_TYPES::NPY_SHORT,
        DType::Qint32 => NPY_TYPES::NPY_INT,
        _ => {
            let known = ml_dtypes(py)?;
            return Ok(known.get(&dtype).map(|descr| descr.bind(py).clone()));
        }
    };
    Ok(Some(builtin(py, alike)))
}

#[allow(unsafe_code, reason = "a listed module")]
fn builtin(py: Python<'_>, num: NPY_TYPES) -> Bound<'_, PyArrayDescr> {
    // SAFETY: NumPy has a type of each of its numbers, and gives a reference of the caller's own.
    let descr = unsafe { PY_ARRAY_API.PyArray_DescrFromType(py, num as i32) };
    // SAFETY: it is that reference, to an object.
    let descr = unsafe { Bound::from_owned_ptr(py, descr.cast()) };
    descr
        .cast_into()
        .expect("NumPy's function gives a type of NumPy's")
}

/// Returns the types of `ml_dtypes`; none if it is not installed.
fn ml_dtypes(py: Python<'_>) -> PyResult<&HashMap<DType, Py<PyArrayDescr>>> {
    static KNOWN: PyOnceLock<HashMap<DType, Py<PyArrayDescr>>> = PyOnceLock::new();
    KNOWN.get_or_try_init(py, || {
        let mut known = HashMap::new();
        let Ok(module) = py.import("ml_dtypes") else {
            return Ok(known);
        };
        for (name, dtype) in OF_ML_DTYPES {
            // Older releases lack some.
            if let Ok(scalar) = module.getattr(name) {
                known.insert(dtype, PyArrayDescr::new(py, scalar)?.unbind());
            }
        }
        Ok(known)
    })
}

/// Returns what Python code is told of a type: NumPy's, or our name of one that NumPy lacks.
pub fn to_python(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyAny>> {
    Ok(match descr_of(py, dtype)? {
        Some(descr) => descr.into_any(),
        None => PyString::new(py, dtype.name()).into_any(),
    })
}

/// Finds the type that Python code means: NumPy's, a class of scalars, or a name of NumPy's or ours.
///
/// # Errors
///
/// `InvalidArgument` if it is none that a tensor can have.
pub fn from_python(value: &Bound<'_, PyAny>) -> PyResult<DType> {
    // NumPy takes it for no type, without an exception.
    if value.is_none() {
        let message = "expected a type of elements, found None";
        return Err(invalid_argument(value.py(), message));
    }
    if let Ok(name) = value.cast::<PyString>() {
        let name = name.to_str()?;
        let of_ml = OF_ML_DTYPES.iter().find(|(known, _)| *known == name);
        let ours = || DType::ALL.into_iter().find(|dtype| dtype.name() == name);
        // NumPy takes `i4` for four bytes, as its users do.
        if let Some(dtype) = of_ml.map(|(_, dtype)| *dtype) {
            return Ok(dtype);
        }
        if let Err(unknown) = PyArrayDescr::new(value.py(), value) {
            return ours().ok_or(unknown);
        }
    }
    let descr = PyArrayDescr::new(value.py(), value)?;
    Ok(match elements_of(&descr)? {
        Elements::Numbers(dtype) | Elements::LowBits(dtype, _) => dtype,
        Elements::Strings => DType::String,
    })
}
