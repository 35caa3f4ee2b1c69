//! [`ElementType`]: the element types of ONNX tensors.

use tfrt_ir::{Type, types::FloatKind};

/// Declares the element types: number and name in ONNX, type in MLIR, bits.
macro_rules! elements {
    ($($name:ident = $number:literal, $text:literal, $ty:expr, $bits:literal;)*) => {
        /// The element type of a tensor.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "each is described by its name")]
        pub enum ElementType { $($name),* }

        impl ElementType {
            /// Every type, in ONNX's order.
            pub const ALL: &[ElementType] = &[$(ElementType::$name),*];

            /// Returns the number of the type in files.
            pub fn number(self) -> i32 {
                match self { $(ElementType::$name => $number),* }
            }

            /// Returns ONNX's name of the type, as operators write it: `float16`.
            pub fn name(self) -> &'static str {
                match self { $(ElementType::$name => $text),* }
            }

            /// Returns the type in modules.
            pub fn ty(self) -> Type {
                match self { $(ElementType::$name => $ty),* }
            }

            /// Returns the bits of an element in a file; 0 for strings, which differ.
            pub fn bits(self) -> usize {
                match self { $(ElementType::$name => $bits),* }
            }
        }
    };
}

elements! {
    F32 = 1, "float", Type::F32, 32;
    U8 = 2, "uint8", Type::UI8, 8;
    I8 = 3, "int8", Type::I8, 8;
    U16 = 4, "uint16", Type::UI16, 16;
    I16 = 5, "int16", Type::I16, 16;
    I32 = 6, "int32", Type::I32, 32;
    I64 = 7, "int64", Type::I64, 64;
    String = 8, "string", Type::dialect(STRING), 0;
    Bool = 9, "bool", Type::I1, 8;
    F16 = 10, "float16", Type::F16, 16;
    F64 = 11, "double", Type::F64, 64;
    U32 = 12, "uint32", Type::UI32, 32;
    U64 = 13, "uint64", Type::UI64, 64;
    C64 = 14, "complex64", Type::complex(Type::F32), 64;
    C128 = 15, "complex128", Type::complex(Type::F64), 128;
    BF16 = 16, "bfloat16", Type::BF16, 16;
    F8E4M3FN = 17, "float8e4m3fn", Type::Float(FloatKind::F8E4M3FN), 8;
    F8E4M3FNUZ = 18, "float8e4m3fnuz", Type::Float(FloatKind::F8E4M3FNUZ), 8;
    F8E5M2 = 19, "float8e5m2", Type::Float(FloatKind::F8E5M2), 8;
    F8E5M2FNUZ = 20, "float8e5m2fnuz", Type::Float(FloatKind::F8E5M2FNUZ), 8;
    U4 = 21, "uint4", Type::unsigned(4), 4;
    I4 = 22, "int4", Type::signless(4), 4;
    F4E2M1 = 23, "float4e2m1", Type::Float(FloatKind::F4E2M1FN), 4;
    F8E8M0 = 24, "float8e8m0", Type::Float(FloatKind::F8E8M0FNU), 8;
    U2 = 25, "uint2", Type::unsigned(2), 2;
    I2 = 26, "int2", Type::signless(2), 2;
}

/// The type of strings, in modules.
pub const STRING: &str = "!onnx.string";

/// The type of unknown elements, in modules.
pub const UNKNOWN: &str = "!onnx.unknown";

impl ElementType {
    /// Returns the type of a number in files.
    pub fn from_number(number: i32) -> Option<ElementType> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        ElementType::ALL.get(index).copied()
    }

    /// Returns the type of a name in ONNX.
    pub fn from_name(name: &str) -> Option<ElementType> {
        let mut all = ElementType::ALL.iter().copied();
        all.find(|element| element.name() == name)
    }

    /// Returns the type of the elements of a type in modules.
    pub fn from_type(ty: &Type) -> Option<ElementType> {
        let mut all = ElementType::ALL.iter().copied();
        all.find(|element| element.ty() == *ty)
    }

    /// Returns the bytes of an element in memory, at least one; 0 for strings.
    pub fn size_bytes(self) -> usize {
        self.bits().div_ceil(8)
    }

    /// Returns how many elements share a byte in a file.
    pub(crate) fn per_byte(self) -> usize {
        match self.bits() {
            bits @ 1..8 => 8 / bits,
            _ => 1,
        }
    }

    /// Returns whether the highest bit of an element of less than a byte is a sign.
    pub(crate) fn is_small_signed(self) -> bool {
        matches!(self, ElementType::I4 | ElementType::I2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_types_stand_for_each_other() {
        for &element in ElementType::ALL {
            assert_eq!(ElementType::from_number(element.number()), Some(element));
            assert_eq!(ElementType::from_type(&element.ty()), Some(element));
            assert_eq!(ElementType::from_name(element.name()), Some(element));
        }
        assert_eq!(ElementType::from_number(0), None);
        assert_eq!(ElementType::from_number(27), None);
        assert_eq!(ElementType::from_number(-1), None);
    }
}
