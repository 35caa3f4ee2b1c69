//! Numbers of element types in the C API, `TF_DataType`, and the runtime's types.

use tfrt_host::DType;

/// Types that both have: number, type, name in specifications of operations.
const TYPES: &[(i32, DType, &str)] = &[
    (1, DType::F32, "float"),
    (2, DType::F64, "double"),
    (3, DType::I32, "int32"),
    (4, DType::Ui8, "uint8"),
    (5, DType::I16, "int16"),
    (6, DType::I8, "int8"),
    (7, DType::String, "string"),
    (8, DType::Complex64, "complex64"),
    (9, DType::I64, "int64"),
    (10, DType::I1, "bool"),
    (11, DType::Qint8, "qint8"),
    (12, DType::Quint8, "quint8"),
    (13, DType::Qint32, "qint32"),
    (14, DType::Bf16, "bfloat16"),
    (15, DType::Qint16, "qint16"),
    (16, DType::Quint16, "quint16"),
    (17, DType::Ui16, "uint16"),
    (18, DType::Complex128, "complex128"),
    (19, DType::F16, "half"),
    (20, DType::Resource, "resource"),
    (21, DType::Variant, "variant"),
    (22, DType::Ui32, "uint32"),
    (23, DType::Ui64, "uint64"),
    (24, DType::F8E5M2, "float8_e5m2"),
    (25, DType::F8E4M3FN, "float8_e4m3fn"),
    (26, DType::F8E4M3FNUZ, "float8_e4m3fnuz"),
    (28, DType::F8E5M2FNUZ, "float8_e5m2fnuz"),
    (29, DType::I4, "int4"),
    (30, DType::Ui4, "uint4"),
    (31, DType::I2, "int2"),
    (32, DType::Ui2, "uint2"),
    (33, DType::F4E2M1, "float4_e2m1fn"),
];

/// The runtime's types, by number.
const DTYPES: [Option<DType>; 34] = {
    let mut all = [None; 34];
    let mut index = 0;
    while index < TYPES.len() {
        all[TYPES[index].0 as usize] = Some(TYPES[index].1);
        index += 1;
    }
    all
};

/// Numbers of the runtime's types; 0 for one that the C API does not have.
const CODES: [u8; 256] = {
    let mut all = [0; 256];
    let mut index = 0;
    while index < TYPES.len() {
        all[TYPES[index].1 as usize] = TYPES[index].0 as u8;
        index += 1;
    }
    all
};

/// Powers of two that are the sizes of elements, by number of the type; [`NO_SIZE`] where elements have none.
const LOG2_SIZES: [u8; 34] = {
    let mut all = [NO_SIZE; 34];
    let mut code = 0;
    while code < all.len() {
        if let Some(dtype) = DTYPES[code]
            && let Some(size) = dtype.size_bytes()
            && size.is_power_of_two()
        {
            all[code] = size.ilog2() as u8;
        }
        code += 1;
    }
    all
};

const NO_SIZE: u8 = u8::MAX;

/// Number of the type of floats.
pub const FLOAT: i32 = 1;
/// Number of the type of strings.
pub const STRING: i32 = 7;
/// Number of the type of resources.
pub const RESOURCE: i32 = 20;
/// Number of the type of variants.
pub const VARIANT: i32 = 21;
/// Types of references are so far behind those that they refer to.
pub const REFERENCE: i32 = 100;

/// Types of numbers, in the order in which TensorFlow lists them.
pub const NUMBERS: &[i32] = &[
    1, 2, 3, 4, 5, 6, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 22, 23,
];
/// Types of real numbers.
pub const REAL_NUMBERS: &[i32] = &[1, 2, 3, 4, 5, 6, 9, 14, 17, 19, 22, 23];
/// Types of quantised numbers.
pub const QUANTIZED: &[i32] = &[11, 12, 13, 15, 16];

/// Bytes of a cell of a string.
pub const STRING_BYTES: usize = 24;

/// Returns the numbers of types with their names, as specifications of operations have these.
pub fn names() -> impl Iterator<Item = (i32, &'static str)> {
    TYPES.iter().map(|(code, _, name)| (*code, *name))
}

/// Returns the runtime's type of a number.
#[inline]
pub fn of_code(code: i32) -> Option<DType> {
    let place = usize::try_from(code).ok()?;
    *DTYPES.get(place)?
}

/// Returns the number of a type, if the C API has one.
#[inline]
pub fn code(dtype: DType) -> Option<i32> {
    match CODES[dtype as usize] {
        0 => None,
        code => Some(code.into()),
    }
}

/// Returns the number of a type by its name, as specifications have it: `float`, `DT_FLOAT`.
pub fn of_name(name: &str) -> Option<i32> {
    let (name, is_whole) = match name.strip_prefix("DT_") {
        Some(rest) => (rest.to_ascii_lowercase(), true),
        None => (name.to_owned(), false),
    };
    let name = match name.as_str() {
        "float32" if !is_whole => "float",
        "float64" if !is_whole => "double",
        "float16" if !is_whole => "half",
        other => other,
    };
    let found = TYPES.iter().find(|(_, _, own)| *own == name);
    found.map(|(code, ..)| *code)
}

/// Returns the name of a type: `float`, `float_ref`, `type 99`.
pub fn name(code: i32) -> String {
    let of = |code: i32| TYPES.iter().find(|(own, ..)| *own == code);
    match (of(code), code.checked_sub(REFERENCE).and_then(of)) {
        (Some((.., name)), _) => (*name).to_owned(),
        (None, Some((.., name))) => format!("{name}_ref"),
        (None, None) => format!("type {code}"),
    }
}

/// Returns the bytes of an element that may be copied byte by byte; 0 for other types, as the C API says it.
pub fn size_bytes(code: i32) -> usize {
    match code {
        STRING | RESOURCE | VARIANT => 0,
        _ => of_code(code).and_then(DType::size_bytes).unwrap_or(0),
    }
}

/// Returns the runtime's type of a number, if its elements are bytes of one size that mean nothing else.
#[inline]
pub fn of_bytes(code: i32) -> Option<DType> {
    size_log2(code).and_then(|_| of_code(code))
}

/// Returns the power of two that is the number of bytes of an element that may be copied byte by byte, if it has one.
#[inline]
pub fn size_log2(code: i32) -> Option<u8> {
    let log2 = *LOG2_SIZES.get(usize::try_from(code).ok()?)?;
    (log2 != NO_SIZE).then_some(log2)
}

/// Returns the bytes of an element that is an object, as many as in TensorFlow; 0 for other types.
pub fn object_bytes(code: i32) -> usize {
    match code {
        RESOURCE => 200,
        VARIANT => 64,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_has_a_name() {
        let names = [1, 101, 99, i32::MIN, i32::MAX].map(name);
        let expected = [
            "float",
            "float_ref",
            "type 99",
            "type -2147483648",
            "type 2147483647",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn numbers_types_and_names_agree() {
        for dtype in DType::ALL {
            if let Some(number) = code(dtype) {
                assert_eq!(of_code(number), Some(dtype));
                assert_eq!(of_name(&name(number)), Some(number));
            }
        }
        assert_eq!(of_name("DT_INT64"), Some(9));
        assert_eq!(of_name("DT_FLOAT"), Some(FLOAT));
        assert_eq!((of_name("wibble"), of_code(0)), (None, None));
        assert_eq!((size_bytes(18), size_bytes(7), size_bytes(77)), (16, 0, 0));
        assert_eq!(name(101), "float_ref");
        for code in 0..40 {
            let size = size_log2(code).map_or(0, |log2| 1 << log2);
            assert_eq!(size, size_bytes(code), "{}", name(code));
        }
    }
}
