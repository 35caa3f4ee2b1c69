//! The types of elements by TensorFlow's names and numbers.

use tfrt_tensor::DType;

/// Names and numbers of `DataType`.
const TYPES: [(&str, i32, DType); 21] = [
    ("DT_FLOAT", 1, DType::F32),
    ("DT_DOUBLE", 2, DType::F64),
    ("DT_INT32", 3, DType::I32),
    ("DT_UINT8", 4, DType::Ui8),
    ("DT_INT16", 5, DType::I16),
    ("DT_INT8", 6, DType::I8),
    ("DT_STRING", 7, DType::String),
    ("DT_COMPLEX64", 8, DType::Complex64),
    ("DT_INT64", 9, DType::I64),
    ("DT_BOOL", 10, DType::I1),
    ("DT_QINT8", 11, DType::Qint8),
    ("DT_QUINT8", 12, DType::Quint8),
    ("DT_QINT32", 13, DType::Qint32),
    ("DT_BFLOAT16", 14, DType::Bf16),
    ("DT_QINT16", 15, DType::Qint16),
    ("DT_QUINT16", 16, DType::Quint16),
    ("DT_UINT16", 17, DType::Ui16),
    ("DT_COMPLEX128", 18, DType::Complex128),
    ("DT_HALF", 19, DType::F16),
    ("DT_UINT32", 22, DType::Ui32),
    ("DT_UINT64", 23, DType::Ui64),
];

/// Returns TensorFlow's name of a type.
pub(crate) fn name_of(dtype: DType) -> &'static str {
    let mut types = TYPES.iter();
    types
        .find(|(_, _, own)| *own == dtype)
        .map_or("DT_INVALID", |(name, ..)| name)
}

/// Returns TensorFlow's number of a type: 0 if it has none.
pub(crate) fn number_of(dtype: DType) -> i32 {
    let mut types = TYPES.iter();
    types
        .find(|(_, _, own)| *own == dtype)
        .map_or(0, |(_, number, _)| *number)
}

/// Returns the type of a number of TensorFlow's.
pub(crate) fn of_number(number: i32) -> Option<DType> {
    let mut types = TYPES.iter();
    types
        .find(|(_, own, _)| *own == number)
        .map(|(.., dtype)| *dtype)
}
