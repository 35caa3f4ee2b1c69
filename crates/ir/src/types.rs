//! Types: MLIR's builtin ones taken apart, those of dialects kept as written.

use std::{
    fmt,
    sync::{Arc, LazyLock},
};

use crate::{attributes::Attribute, name::Name, printer};

/// The type of a value.
///
/// Two words, cheap to clone, compared by structure. `Display` writes MLIR's
/// spelling.
///
/// # Examples
///
/// ```
/// use tfrt_ir::Type;
///
/// let pair = Type::function(vec![Type::I32, Type::chain()], vec![Type::F32]);
/// assert_eq!(pair.to_string(), "(i32, !tfrt.chain) -> f32");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// `i32`, `si8`, `ui64`, ...
    Integer(IntegerType),
    /// `f32`, `bf16`, ...
    Float(FloatKind),
    /// `index`.
    Index,
    /// `none`.
    None,
    /// `complex<f32>`.
    Complex(Arc<Type>),
    /// `tuple<i32, f32>`.
    Tuple(Arc<[Type]>),
    /// `(i32) -> f32`.
    Function(Arc<FunctionType>),
    /// `tensor<2x?xf32>`.
    Tensor(Arc<TensorType>),
    /// `vector<4xf32>`.
    Vector(Arc<VectorType>),
    /// `memref<?x?xf32>`.
    MemRef(Arc<MemRefType>),
    /// `!tfrt.chain`: the text as written, with its `!`.
    Dialect(Name),
}

/// Width and signedness of an integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IntegerType {
    /// Bits, at most [`IntegerType::MAX_WIDTH`].
    pub width: u32,
    /// The signedness.
    pub signedness: Signedness,
}

impl IntegerType {
    /// The largest width, which is MLIR's limit.
    pub const MAX_WIDTH: u32 = (1 << 24) - 1;
}

/// The signedness of an integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signedness {
    /// `i32`: left to the operation.
    Signless,
    /// `si32`.
    Signed,
    /// `ui32`.
    Unsigned,
}

/// A floating point format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is named as MLIR names it")]
pub enum FloatKind {
    F4E2M1FN,
    F6E2M3FN,
    F6E3M2FN,
    F8E3M4,
    F8E4M3,
    F8E4M3B11FNUZ,
    F8E5M2,
    F8E5M2FNUZ,
    F8E4M3FN,
    F8E4M3FNUZ,
    F8E8M0FNU,
    F16,
    BF16,
    TF32,
    F32,
    F64,
    F80,
    F128,
}

/// Operand and result types.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FunctionType {
    /// Types of the arguments.
    pub inputs: Vec<Type>,
    /// Types of the results.
    pub results: Vec<Type>,
}

/// The parts of a tensor type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// Dimensions; [`DYNAMIC`] where unknown; none if unranked.
    pub shape: Option<Vec<i64>>,
    /// Type of the elements.
    pub element: Type,
    /// The encoding, which follows the element type.
    pub encoding: Option<Attribute>,
}

/// The parts of a vector type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VectorType {
    /// Dimensions and whether each is scalable.
    pub shape: Vec<(i64, bool)>,
    /// Type of the elements.
    pub element: Type,
}

/// The parts of a memref type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemRefType {
    /// Dimensions; [`DYNAMIC`] where unknown; none if unranked.
    pub shape: Option<Vec<i64>>,
    /// Type of the elements.
    pub element: Type,
    /// Layout and memory space, as they follow the element type.
    pub rest: Vec<Attribute>,
}

/// The dimension that is written `?`.
pub const DYNAMIC: i64 = -1;

impl Type {
    /// `i1`.
    pub const I1: Type = Type::signless(1);
    /// `i8`.
    pub const I8: Type = Type::signless(8);
    /// `i16`.
    pub const I16: Type = Type::signless(16);
    /// `i32`.
    pub const I32: Type = Type::signless(32);
    /// `i64`.
    pub const I64: Type = Type::signless(64);
    /// `ui8`.
    pub const UI8: Type = Type::unsigned(8);
    /// `ui16`.
    pub const UI16: Type = Type::unsigned(16);
    /// `ui32`.
    pub const UI32: Type = Type::unsigned(32);
    /// `ui64`.
    pub const UI64: Type = Type::unsigned(64);
    /// `bf16`.
    pub const BF16: Type = Type::Float(FloatKind::BF16);
    /// `f16`.
    pub const F16: Type = Type::Float(FloatKind::F16);
    /// `f32`.
    pub const F32: Type = Type::Float(FloatKind::F32);
    /// `f64`.
    pub const F64: Type = Type::Float(FloatKind::F64);

    /// Returns `!tfrt.chain`.
    pub fn chain() -> Type {
        static CHAIN: LazyLock<Type> = LazyLock::new(|| Type::dialect("!tfrt.chain"));
        CHAIN.clone()
    }

    /// Returns `complex<element>`.
    pub fn complex(element: Type) -> Type {
        Type::Complex(Arc::new(element))
    }

    /// Returns `i<width>`.
    pub const fn signless(width: u32) -> Type {
        Type::Integer(IntegerType {
            width,
            signedness: Signedness::Signless,
        })
    }

    /// Returns `ui<width>`.
    pub const fn unsigned(width: u32) -> Type {
        Type::Integer(IntegerType {
            width,
            signedness: Signedness::Unsigned,
        })
    }

    /// Returns a dialect's type from its text, with the leading `!`.
    pub fn dialect(text: &str) -> Type {
        Type::Dialect(text.into())
    }

    /// Returns a function type.
    pub fn function(inputs: Vec<Type>, results: Vec<Type>) -> Type {
        Type::Function(Arc::new(FunctionType { inputs, results }))
    }

    /// Returns a ranked tensor type without encoding.
    pub fn tensor(shape: Vec<i64>, element: Type) -> Type {
        Type::Tensor(Arc::new(TensorType {
            shape: Some(shape),
            element,
            encoding: None,
        }))
    }

    /// Returns the type of tensors of any extents.
    pub fn unranked(element: Type) -> Type {
        Type::Tensor(Arc::new(TensorType {
            shape: None,
            element,
            encoding: None,
        }))
    }

    /// Returns the parts of a function type.
    pub fn as_function(&self) -> Option<&FunctionType> {
        match self {
            Type::Function(function) => Some(function),
            _ => None,
        }
    }

    /// Returns width and signedness of an integer type.
    pub fn as_integer(&self) -> Option<IntegerType> {
        match self {
            Type::Integer(integer) => Some(*integer),
            _ => None,
        }
    }

    /// Returns the format of a float type.
    pub fn as_float(&self) -> Option<FloatKind> {
        match self {
            Type::Float(kind) => Some(*kind),
            _ => None,
        }
    }

    /// Returns the text, with `!`, of a dialect's type.
    pub fn as_dialect(&self) -> Option<&str> {
        match self {
            Type::Dialect(text) => Some(text),
            _ => None,
        }
    }

    /// Returns whether this is `!tfrt.chain`.
    pub fn is_chain(&self) -> bool {
        self.as_dialect() == Some("!tfrt.chain")
    }

    /// Returns shape and element type of a shaped type with a static rank.
    pub fn as_shaped(&self) -> Option<(Vec<i64>, &Type)> {
        match self {
            Type::Tensor(tensor) => Some((tensor.shape.clone()?, &tensor.element)),
            Type::MemRef(memref) => Some((memref.shape.clone()?, &memref.element)),
            Type::Vector(vector) => Some((
                vector.shape.iter().map(|(size, _)| *size).collect(),
                &vector.element,
            )),
            _ => None,
        }
    }
}

impl FloatKind {
    /// Every format.
    pub const ALL: [FloatKind; 18] = [
        FloatKind::F4E2M1FN,
        FloatKind::F8E3M4,
        FloatKind::F8E4M3,
        FloatKind::F8E4M3B11FNUZ,
        FloatKind::F6E2M3FN,
        FloatKind::F6E3M2FN,
        FloatKind::F8E5M2,
        FloatKind::F8E5M2FNUZ,
        FloatKind::F8E4M3FN,
        FloatKind::F8E4M3FNUZ,
        FloatKind::F8E8M0FNU,
        FloatKind::F16,
        FloatKind::BF16,
        FloatKind::TF32,
        FloatKind::F32,
        FloatKind::F64,
        FloatKind::F80,
        FloatKind::F128,
    ];

    /// Returns MLIR's name.
    pub fn name(self) -> &'static str {
        match self {
            FloatKind::F4E2M1FN => "f4E2M1FN",
            FloatKind::F8E3M4 => "f8E3M4",
            FloatKind::F8E4M3 => "f8E4M3",
            FloatKind::F8E4M3B11FNUZ => "f8E4M3B11FNUZ",
            FloatKind::F6E2M3FN => "f6E2M3FN",
            FloatKind::F6E3M2FN => "f6E3M2FN",
            FloatKind::F8E5M2 => "f8E5M2",
            FloatKind::F8E5M2FNUZ => "f8E5M2FNUZ",
            FloatKind::F8E4M3FN => "f8E4M3FN",
            FloatKind::F8E4M3FNUZ => "f8E4M3FNUZ",
            FloatKind::F8E8M0FNU => "f8E8M0FNU",
            FloatKind::F16 => "f16",
            FloatKind::BF16 => "bf16",
            FloatKind::TF32 => "tf32",
            FloatKind::F32 => "f32",
            FloatKind::F64 => "f64",
            FloatKind::F80 => "f80",
            FloatKind::F128 => "f128",
        }
    }

    /// Returns whether the highest bit is a sign.
    pub fn is_signed(self) -> bool {
        self != FloatKind::F8E8M0FNU
    }

    /// Returns the number of bits of the encoding.
    pub fn width(self) -> u32 {
        match self {
            FloatKind::F4E2M1FN => 4,
            FloatKind::F6E2M3FN | FloatKind::F6E3M2FN => 6,
            FloatKind::F8E3M4
            | FloatKind::F8E4M3
            | FloatKind::F8E4M3B11FNUZ
            | FloatKind::F8E5M2
            | FloatKind::F8E5M2FNUZ
            | FloatKind::F8E4M3FN
            | FloatKind::F8E4M3FNUZ
            | FloatKind::F8E8M0FNU => 8,
            FloatKind::F16 | FloatKind::BF16 => 16,
            FloatKind::TF32 => 19,
            FloatKind::F32 => 32,
            FloatKind::F64 => 64,
            FloatKind::F80 => 80,
            FloatKind::F128 => 128,
        }
    }
}

impl fmt::Display for IntegerType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = match self.signedness {
            Signedness::Signless => "i",
            Signedness::Signed => "si",
            Signedness::Unsigned => "ui",
        };
        write!(f, "{prefix}{}", self.width)
    }
}

impl fmt::Display for FunctionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        printer::write_list(f, &self.inputs)?;
        f.write_str(") -> ")?;
        match self.results.as_slice() {
            [single] if !matches!(single, Type::Function(_)) => write!(f, "{single}"),
            results => {
                f.write_str("(")?;
                printer::write_list(f, results)?;
                f.write_str(")")
            }
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Integer(integer) => write!(f, "{integer}"),
            Type::Float(kind) => f.write_str(kind.name()),
            Type::Index => f.write_str("index"),
            Type::None => f.write_str("none"),
            Type::Complex(element) => write!(f, "complex<{element}>"),
            Type::Tuple(elements) => {
                f.write_str("tuple<")?;
                printer::write_list(f, elements)?;
                f.write_str(">")
            }
            Type::Function(function) => write!(f, "{function}"),
            Type::Tensor(tensor) => {
                f.write_str("tensor<")?;
                write_shape(f, tensor.shape.as_deref())?;
                write!(f, "{}", tensor.element)?;
                if let Some(encoding) = &tensor.encoding {
                    write!(f, ", {encoding}")?;
                }
                f.write_str(">")
            }
            Type::Vector(vector) => {
                f.write_str("vector<")?;
                for (size, scalable) in &vector.shape {
                    match scalable {
                        true => write!(f, "[{size}]x")?,
                        false => write!(f, "{size}x")?,
                    }
                }
                write!(f, "{}>", vector.element)
            }
            Type::MemRef(memref) => {
                f.write_str("memref<")?;
                write_shape(f, memref.shape.as_deref())?;
                write!(f, "{}", memref.element)?;
                for attribute in &memref.rest {
                    write!(f, ", {attribute}")?;
                }
                f.write_str(">")
            }
            Type::Dialect(text) => f.write_str(text),
        }
    }
}

fn write_shape(f: &mut fmt::Formatter<'_>, shape: Option<&[i64]>) -> fmt::Result {
    let Some(shape) = shape else {
        return f.write_str("*x");
    };
    for &size in shape {
        match size {
            DYNAMIC => f.write_str("?x")?,
            size => write!(f, "{size}x")?,
        }
    }
    Ok(())
}
