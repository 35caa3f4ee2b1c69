//! [`DType`]: code, name, size and alignment of element types; [`AttributeType`]: the types of attributes.
//!
//! Numbers from 64 on are ours: small types, of which each element takes a byte, in whose low bits its code is.

use std::fmt;

/// The type of a tensor's elements, by its number in the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names say it all")]
pub enum DType {
    Ui8 = 1,
    Ui16 = 2,
    Ui32 = 3,
    Ui64 = 4,
    I1 = 5,
    I8 = 6,
    I16 = 7,
    I32 = 8,
    I64 = 9,
    F32 = 10,
    F64 = 11,
    Complex64 = 12,
    Complex128 = 13,
    F16 = 14,
    Bf16 = 15,
    String = 16,
    Resource = 17,
    Variant = 18,
    Quint8 = 19,
    Quint16 = 20,
    Qint8 = 21,
    Qint16 = 22,
    Qint32 = 23,
    I4 = 64,
    Ui4 = 65,
    I2 = 66,
    Ui2 = 67,
    F8E4M3FN = 68,
    F8E4M3FNUZ = 69,
    F8E5M2 = 70,
    F8E5M2FNUZ = 71,
    F8E8M0 = 72,
    F4E2M1 = 73,
    F8E3M4 = 74,
    F8E4M3 = 75,
    F8E4M3B11FNUZ = 76,
    F6E2M3 = 77,
    F6E3M2 = 78,
}

impl DType {
    const FIRST_SMALL: u8 = DType::I4 as u8;
    /// The number of types that the original's format has.
    const N_OF_ORIGINAL: usize = 23;

    /// Every type, in the order of the numbers.
    pub const ALL: [DType; 38] = [
        DType::Ui8,
        DType::Ui16,
        DType::Ui32,
        DType::Ui64,
        DType::I1,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::F32,
        DType::F64,
        DType::Complex64,
        DType::Complex128,
        DType::F16,
        DType::Bf16,
        DType::String,
        DType::Resource,
        DType::Variant,
        DType::Quint8,
        DType::Quint16,
        DType::Qint8,
        DType::Qint16,
        DType::Qint32,
        DType::I4,
        DType::Ui4,
        DType::I2,
        DType::Ui2,
        DType::F8E4M3FN,
        DType::F8E4M3FNUZ,
        DType::F8E5M2,
        DType::F8E5M2FNUZ,
        DType::F8E8M0,
        DType::F4E2M1,
        DType::F8E3M4,
        DType::F8E4M3,
        DType::F8E4M3B11FNUZ,
        DType::F6E2M3,
        DType::F6E3M2,
    ];

    /// Returns the type with this number.
    pub fn from_byte(byte: u8) -> Option<DType> {
        let index = match byte {
            DType::FIRST_SMALL.. => usize::from(byte - DType::FIRST_SMALL) + DType::N_OF_ORIGINAL,
            1..=23 => usize::from(byte) - 1,
            _ => return None,
        };
        DType::ALL.get(index).copied()
    }

    /// Returns the number in the format.
    pub fn byte(self) -> u8 {
        self as u8
    }

    /// Returns the name that values are printed with, such as `i32`, `u8`, `str`.
    pub fn name(self) -> &'static str {
        match self {
            DType::Ui8 => "u8",
            DType::Ui16 => "u16",
            DType::Ui32 => "u32",
            DType::Ui64 => "u64",
            DType::I1 => "i1",
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::Complex64 => "complex64",
            DType::Complex128 => "complex128",
            DType::F16 => "f16",
            DType::Bf16 => "bf16",
            DType::String => "str",
            DType::Resource => "resource",
            DType::Variant => "variant",
            DType::Quint8 => "qu8",
            DType::Quint16 => "qu16",
            DType::Qint8 => "qi8",
            DType::Qint16 => "qi16",
            DType::Qint32 => "qi32",
            DType::I4 => "i4",
            DType::Ui4 => "u4",
            DType::I2 => "i2",
            DType::Ui2 => "u2",
            DType::F8E4M3FN => "f8e4m3fn",
            DType::F8E4M3FNUZ => "f8e4m3fnuz",
            DType::F8E5M2 => "f8e5m2",
            DType::F8E5M2FNUZ => "f8e5m2fnuz",
            DType::F8E8M0 => "f8e8m0",
            DType::F4E2M1 => "f4e2m1",
            DType::F8E3M4 => "f8e3m4",
            DType::F8E4M3 => "f8e4m3",
            DType::F8E4M3B11FNUZ => "f8e4m3b11fnuz",
            DType::F6E2M3 => "f6e2m3",
            DType::F6E3M2 => "f6e3m2",
        }
    }

    /// Returns the spelling in programs, such as `ui8`, `complex<f32>`, `!corert.string`.
    pub fn mlir_name(self) -> &'static str {
        match self {
            DType::Ui8 => "ui8",
            DType::Ui16 => "ui16",
            DType::Ui32 => "ui32",
            DType::Ui64 => "ui64",
            DType::Complex64 => "complex<f32>",
            DType::Complex128 => "complex<f64>",
            DType::String => "!corert.string",
            DType::Resource => "!corert.resource",
            DType::Variant => "!corert.variant",
            DType::Quint8 => "!corert.quint8",
            DType::Quint16 => "!corert.quint16",
            DType::Qint8 => "!corert.qint8",
            DType::Qint16 => "!corert.qint16",
            DType::Qint32 => "!corert.qint32",
            DType::Ui4 => "ui4",
            DType::Ui2 => "ui2",
            DType::F8E4M3FN => "f8E4M3FN",
            DType::F8E4M3FNUZ => "f8E4M3FNUZ",
            DType::F8E5M2 => "f8E5M2",
            DType::F8E5M2FNUZ => "f8E5M2FNUZ",
            DType::F8E8M0 => "f8E8M0FNU",
            DType::F4E2M1 => "f4E2M1FN",
            DType::F8E3M4 => "f8E3M4",
            DType::F8E4M3 => "f8E4M3",
            DType::F8E4M3B11FNUZ => "f8E4M3B11FNUZ",
            DType::F6E2M3 => "f6E2M3FN",
            DType::F6E3M2 => "f6E3M2FN",
            same => same.name(),
        }
    }

    /// Returns the type spelled `name` in programs.
    pub fn from_mlir_name(name: &str) -> Option<DType> {
        DType::ALL
            .into_iter()
            .find(|dtype| dtype.mlir_name() == name)
    }

    /// Returns the bytes of one element, if all elements have the same size.
    pub const fn size_bytes(self) -> Option<usize> {
        match self {
            DType::Ui8 | DType::I1 | DType::I8 | DType::Quint8 | DType::Qint8 => Some(1),
            small if small.is_small() => Some(1),
            DType::Ui16
            | DType::I16
            | DType::F16
            | DType::Bf16
            | DType::Quint16
            | DType::Qint16 => Some(2),
            DType::Ui32 | DType::I32 | DType::F32 | DType::Qint32 => Some(4),
            DType::Ui64 | DType::I64 | DType::F64 | DType::Complex64 => Some(8),
            DType::Complex128 => Some(16),
            _ => None,
        }
    }

    /// Returns the alignment of one element, if elements lie in memory as they are.
    pub const fn alignment_bytes(self) -> Option<usize> {
        match self {
            DType::Complex64 => Some(4),
            DType::Complex128 => Some(8),
            other => other.size_bytes(),
        }
    }

    /// Returns whether this is a type of less than 8 bits, or a float of 8: each element takes a byte, in whose low
    /// bits its code is.
    pub const fn is_small(self) -> bool {
        self as u8 >= DType::FIRST_SMALL
    }

    /// Returns whether the elements are integers, booleans and quantized ones excluded.
    pub fn is_integer(self) -> bool {
        matches!(
            self,
            DType::Ui8
                | DType::Ui16
                | DType::Ui32
                | DType::Ui64
                | DType::I8
                | DType::I16
                | DType::I32
                | DType::I64
        )
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The type of an attribute in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttributeType {
    /// One element of a fixed size, or a string.
    Scalar(DType),
    /// A type; the payload is the number of a [`DType`].
    Type,
    /// The name of a function, laid out as a string.
    FunctionName,
    /// A shape.
    Shape,
    /// Dense elements.
    Dense,
    /// A symbol of a compiled module, with the module's text.
    Symbol,
    /// Attributes of different types.
    Aggregate,
    /// Elements of one fixed size. `I32` also stands for the empty array.
    Array(DType),
    /// Types.
    TypeArray,
}

impl AttributeType {
    const TYPE: u8 = 25;
    const FUNCTION_NAME: u8 = 26;
    const SHAPE: u8 = 27;
    const DENSE: u8 = 28;
    const SYMBOL: u8 = 29;
    const AGGREGATE: u8 = 30;
    const ARRAY: u8 = 0x80;

    /// The type that an array without elements has.
    pub const EMPTY_ARRAY: AttributeType = AttributeType::Array(DType::I32);

    /// Returns the attribute type with this number.
    pub fn from_byte(byte: u8) -> Option<AttributeType> {
        if byte & AttributeType::ARRAY != 0 {
            return match AttributeType::from_byte(byte & !AttributeType::ARRAY)? {
                AttributeType::Scalar(DType::String) => None,
                AttributeType::Scalar(dtype) => Some(AttributeType::Array(dtype)),
                AttributeType::Type => Some(AttributeType::TypeArray),
                _ => None,
            };
        }
        match byte {
            AttributeType::TYPE => Some(AttributeType::Type),
            AttributeType::FUNCTION_NAME => Some(AttributeType::FunctionName),
            AttributeType::SHAPE => Some(AttributeType::Shape),
            AttributeType::DENSE => Some(AttributeType::Dense),
            AttributeType::SYMBOL => Some(AttributeType::Symbol),
            AttributeType::AGGREGATE => Some(AttributeType::Aggregate),
            _ => DType::from_byte(byte).map(AttributeType::Scalar),
        }
    }

    /// Returns the number in the format.
    pub fn byte(self) -> u8 {
        match self {
            AttributeType::Scalar(dtype) => dtype.byte(),
            AttributeType::Type => AttributeType::TYPE,
            AttributeType::FunctionName => AttributeType::FUNCTION_NAME,
            AttributeType::Shape => AttributeType::SHAPE,
            AttributeType::Dense => AttributeType::DENSE,
            AttributeType::Symbol => AttributeType::SYMBOL,
            AttributeType::Aggregate => AttributeType::AGGREGATE,
            AttributeType::Array(dtype) => AttributeType::ARRAY | dtype.byte(),
            AttributeType::TypeArray => AttributeType::ARRAY | AttributeType::TYPE,
        }
    }
}

impl fmt::Display for AttributeType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttributeType::Scalar(dtype) => write!(f, "{dtype}"),
            AttributeType::Type => f.write_str("type"),
            AttributeType::FunctionName => f.write_str("function name"),
            AttributeType::Shape => f.write_str("shape"),
            AttributeType::Dense => f.write_str("dense elements"),
            AttributeType::Symbol => f.write_str("symbol"),
            AttributeType::Aggregate => f.write_str("aggregate"),
            AttributeType::Array(dtype) => write!(f, "array of {dtype}"),
            AttributeType::TypeArray => f.write_str("array of types"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_accepted_byte_names_itself() {
        for byte in 0..=255 {
            if let Some(dtype) = DType::from_byte(byte) {
                assert_eq!(dtype.byte(), byte);
                assert_eq!(DType::from_mlir_name(dtype.mlir_name()), Some(dtype));
            }
            if let Some(kind) = AttributeType::from_byte(byte) {
                assert_eq!(kind.byte(), byte);
            }
        }
        let same = |dtype: DType| DType::from_byte(dtype.byte()) == Some(dtype);
        assert!(DType::ALL.into_iter().all(same));
        assert!(DType::ALL.is_sorted());
        for byte in [0, 24, 63, 79, 255] {
            assert_eq!(DType::from_byte(byte), None);
        }
        let kinds = [
            AttributeType::Type,
            AttributeType::FunctionName,
            AttributeType::Shape,
            AttributeType::Dense,
            AttributeType::Symbol,
            AttributeType::Aggregate,
        ];
        assert_eq!(kinds.map(AttributeType::byte), [25, 26, 27, 28, 29, 30]);
        assert_eq!(
            kinds.map(|kind| AttributeType::from_byte(kind.byte())),
            kinds.map(Some)
        );
        assert_eq!(AttributeType::EMPTY_ARRAY.byte(), 136);
        assert_eq!(AttributeType::from_byte(144), None);
        assert_eq!(AttributeType::TypeArray.byte(), 153);
    }

    #[test]
    fn elements_have_sizes_and_alignments() {
        fn names(is: impl Fn(DType) -> bool) -> String {
            let those = DType::ALL.into_iter().filter(|dtype| is(*dtype));
            those.map(DType::name).collect::<Vec<_>>().join(" ")
        }
        let of = |size_bytes| names(|dtype| dtype.size_bytes() == size_bytes);
        let small = "i4 u4 i2 u2 f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz f8e8m0 f4e2m1 \
                     f8e3m4 f8e4m3 f8e4m3b11fnuz f6e2m3 f6e3m2";
        assert_eq!(of(Some(1)), format!("u8 i1 i8 qu8 qi8 {small}"));
        assert_eq!(of(Some(2)), "u16 i16 f16 bf16 qu16 qi16");
        assert_eq!(of(Some(4)), "u32 i32 f32 qi32");
        assert_eq!(of(Some(8)), "u64 i64 f64 complex64");
        assert_eq!(of(Some(16)), "complex128");
        assert_eq!(of(None), "str resource variant");
        for dtype in DType::ALL {
            let expected = match dtype {
                DType::Complex64 => Some(4),
                DType::Complex128 => Some(8),
                other => other.size_bytes(),
            };
            assert_eq!(dtype.alignment_bytes(), expected, "{dtype}");
        }
        assert_eq!(names(DType::is_small), small);
        assert_eq!(names(DType::is_integer), "u8 u16 u32 u64 i8 i16 i32 i64");
    }
}
