//! Attributes: constants attached to operations.
//!
//! The builtin ones that programs for this runtime meet are taken apart; what
//! a dialect or a map syntax defines is kept as the text it was written as.

use std::{fmt, sync::Arc};

pub use bytes::Bytes;

use crate::{
    integer::Integer,
    location::Location,
    name::Name,
    printer,
    types::{FloatKind, IntegerType, Signedness, Type},
};

/// A constant. Cheap to clone, compared by structure.
///
/// `Display` writes MLIR's spelling.
///
/// # Examples
///
/// ```
/// use tfrt_ir::{Attribute, Type};
///
/// let list = Attribute::array(vec![Attribute::integer(7, Type::I32), Attribute::bool(true)]);
/// assert_eq!(list.to_string(), "[7 : i32, true]");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Attribute {
    /// `unit`: an attribute without content.
    Unit,
    /// `7 : i32`, `true`.
    Integer(IntegerAttribute),
    /// `1.5 : f32`.
    Float(FloatAttribute),
    /// `"text"`.
    String(StringAttribute),
    /// A type as a constant.
    Type(Type),
    /// `[1 : i32, "two"]`.
    Array(Arc<[Attribute]>),
    /// `{a = 1 : i32}`.
    Dictionary(Dictionary),
    /// `@function`, `@module::@function`.
    Symbol(SymbolRef),
    /// `dense<[1, 2]> : tensor<2xi32>`.
    Dense(Arc<DenseAttribute>),
    /// `sparse<[[0, 0]], [1]> : tensor<2x2xi32>`.
    Sparse(Arc<SparseAttribute>),
    /// `array<i32: 1, 2>`.
    DenseArray(Arc<DenseArrayAttribute>),
    /// `#corert.shape<2x?x3>`.
    Shape(ShapeAttribute),
    /// `loc("a":1:2)` as a constant.
    Location(Arc<Location>),
    /// Text that is kept as written: `#dialect.attr<...>`, `affine_map<...>`.
    Opaque(Name),
}

/// An integer with its type: a builtin integer type or `index`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IntegerAttribute {
    /// The value: of an unsigned type never negative, of `i1` 0 or 1, of other
    /// types read as signed.
    pub value: Integer,
    /// `i32`, `ui8`, `index`, ...
    pub ty: Type,
}

/// A float as its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FloatAttribute {
    /// The encoding, in the low `kind.width()` bits; kinds wider than 64 bits
    /// do not occur.
    pub bits: u64,
    /// The format.
    pub kind: FloatKind,
}

/// Bytes, usually UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StringAttribute {
    /// The bytes after escapes were replaced.
    pub bytes: Arc<[u8]>,
    /// The type after a colon, `none` if there is none.
    pub ty: Type,
}

/// Named attributes, sorted by name, each name once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Dictionary(Arc<[(Name, Attribute)]>);

/// A reference to a symbol by name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SymbolRef {
    /// The outermost name, without `@`.
    pub root: Name,
    /// The names behind `::@`.
    pub nested: Arc<[Name]>,
}

/// A dense attribute: the elements of a shaped type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DenseAttribute {
    /// A tensor or vector type with static dimensions.
    pub ty: Type,
    /// The elements, or a single one for a splat.
    pub elements: DenseElements,
    /// Whether `elements` holds one element that stands for all.
    ///
    /// As in MLIR, a list whose elements are all equal is a splat, also if
    /// there is only one element.
    pub splat: bool,
}

/// The stored elements of a dense attribute.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DenseElements {
    /// Little-endian encodings back to back, each rounded up to whole bytes:
    /// an `i1` is a byte of 0 or 1, a complex number its real, then its
    /// imaginary part. They lie anywhere in memory, also within a larger buffer
    /// such as a file, and not aligned for their type.
    Bytes(Bytes),
    /// Strings, for element types of dialects.
    Strings(Arc<[Arc<[u8]>]>),
}

/// A sparse attribute: elements at some positions of a shaped type, zero elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SparseAttribute {
    /// The type of the attribute.
    pub ty: Type,
    /// Positions, `tensor<NxRANKxi64>`.
    pub indices: DenseAttribute,
    /// Values, `tensor<NxELEMENT>`.
    pub values: DenseAttribute,
}

/// `array<i32: 1, 2>`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DenseArrayAttribute {
    /// `i1`, `i8` to `i64`, `f32` or `f64`.
    pub element: Type,
    /// The elements, encoded as those of [`DenseElements::Bytes`].
    pub bytes: Arc<[u8]>,
}

/// `#corert.shape<...>`: dimensions, [`crate::types::DYNAMIC`] where unknown;
/// none if unranked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShapeAttribute(pub Option<Arc<[i64]>>);

impl Attribute {
    /// Returns an integer, cut to the width of its type.
    pub fn integer(value: impl Into<Integer>, ty: Type) -> Attribute {
        Attribute::Integer(IntegerAttribute::wrapping(value.into(), ty))
    }

    /// Returns `true` or `false`, of type `i1`.
    pub fn bool(value: bool) -> Attribute {
        Attribute::integer(i64::from(value), Type::I1)
    }

    /// Returns a float of type `f32`.
    pub fn f32(value: f32) -> Attribute {
        let bits = u64::from(value.to_bits());
        Attribute::Float(FloatAttribute {
            bits,
            kind: FloatKind::F32,
        })
    }

    /// Returns a float of type `f64`.
    pub fn f64(value: f64) -> Attribute {
        Attribute::Float(FloatAttribute {
            bits: value.to_bits(),
            kind: FloatKind::F64,
        })
    }

    /// Returns a string without a type.
    pub fn string(text: impl AsRef<[u8]>) -> Attribute {
        Attribute::String(StringAttribute {
            bytes: text.as_ref().into(),
            ty: Type::None,
        })
    }

    /// Returns an array.
    pub fn array(elements: Vec<Attribute>) -> Attribute {
        Attribute::Array(elements.into())
    }

    /// Returns a reference to a symbol of the enclosing symbol table.
    pub fn symbol(name: impl Into<Name>) -> Attribute {
        Attribute::Symbol(SymbolRef {
            root: name.into(),
            nested: Arc::new([]),
        })
    }

    /// Returns the value of an `i1`.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Attribute::Integer(integer) if integer.ty == Type::I1 => Some(!integer.value.is_zero()),
            _ => None,
        }
    }

    /// Returns the value of an integer that fits.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Attribute::Integer(integer) => integer.value.as_i64(),
            _ => None,
        }
    }

    /// Returns the text of a string that is UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Attribute::String(string) => string.as_str(),
            _ => None,
        }
    }

    /// Returns a type attribute's type.
    pub fn as_type(&self) -> Option<&Type> {
        match self {
            Attribute::Type(ty) => Some(ty),
            _ => None,
        }
    }

    /// Returns an array's elements.
    pub fn as_array(&self) -> Option<&[Attribute]> {
        match self {
            Attribute::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// Returns a symbol reference.
    pub fn as_symbol(&self) -> Option<&SymbolRef> {
        match self {
            Attribute::Symbol(symbol) => Some(symbol),
            _ => None,
        }
    }

    /// Returns the name of a symbol reference without nested parts.
    pub fn as_flat_symbol(&self) -> Option<&Name> {
        self.as_symbol()
            .filter(|symbol| symbol.nested.is_empty())
            .map(|symbol| &symbol.root)
    }
}

impl IntegerAttribute {
    /// Makes an integer of `value`'s low bits, read as the type reads them.
    pub fn wrapping(value: Integer, ty: Type) -> IntegerAttribute {
        let value = match ty.as_integer() {
            Some(IntegerType {
                width: 1,
                signedness: Signedness::Signless,
            }) => value.wrap_unsigned(1),
            Some(IntegerType {
                width,
                signedness: Signedness::Unsigned,
            }) => value.wrap_unsigned(width),
            Some(IntegerType { width, .. }) => value.wrap_signed(width),
            None => value.wrap_signed(64),
        };
        IntegerAttribute { value, ty }
    }
}

impl FloatAttribute {
    /// Returns the number of a format that is nearest to a value, ties to even.
    pub fn nearest(value: f64, kind: FloatKind) -> FloatAttribute {
        let bits = crate::float::nearest(value, kind);
        FloatAttribute { bits, kind }
    }

    /// Returns the value, widened without loss.
    pub fn value(self) -> f64 {
        crate::float::to_f64(self.bits, self.kind)
    }
}

impl StringAttribute {
    /// Returns the text if it is UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes).ok()
    }
}

impl Dictionary {
    /// Sorts the entries by name.
    ///
    /// # Errors
    ///
    /// A name that occurs twice.
    pub fn new(mut entries: Vec<(Name, Attribute)>) -> Result<Dictionary, Name> {
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        match entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(pair[0].0.clone()),
            None => Ok(Dictionary(entries.into())),
        }
    }

    /// Returns the entries in the order of their names.
    pub fn entries(&self) -> &[(Name, Attribute)] {
        &self.0
    }

    /// Returns the attribute of a name.
    pub fn get(&self, name: &str) -> Option<&Attribute> {
        find(&self.0, name)
    }
}

/// Looks a name up in entries sorted by name.
#[inline]
pub(crate) fn find<'e>(entries: &'e [(Name, Attribute)], name: &str) -> Option<&'e Attribute> {
    match entries {
        [] => None,
        [(only, value)] => (only.as_str() == name).then_some(value),
        _ => search(entries, name),
    }
}

fn search<'e>(entries: &'e [(Name, Attribute)], name: &str) -> Option<&'e Attribute> {
    let index = entries
        .binary_search_by(|(key, _)| key.as_str().cmp(name))
        .ok()?;
    Some(&entries[index].1)
}

impl DenseAttribute {
    /// Returns the dimensions.
    pub fn shape(&self) -> Vec<i64> {
        self.ty
            .as_shaped()
            .map(|(shape, _)| shape)
            .unwrap_or_default()
    }

    /// Returns the type of the elements.
    pub fn element_type(&self) -> &Type {
        self.ty
            .as_shaped()
            .map_or(&Type::None, |(_, element)| element)
    }

    /// Returns the number of elements of the shape, which for a splat says
    /// nothing on the memory used; `None` if it does not fit.
    pub fn n_elements(&self) -> Option<u64> {
        element_count(&self.shape())
    }

    /// Returns the encoded elements, one of them if this is a splat; empty
    /// for strings.
    pub fn bytes(&self) -> &[u8] {
        match &self.elements {
            DenseElements::Bytes(bytes) => bytes,
            DenseElements::Strings(_) => &[],
        }
    }

    /// Returns the number of bytes of one encoded element; 0 for strings.
    pub fn element_size_bytes(&self) -> usize {
        element_size_bytes(self.element_type()).unwrap_or(0)
    }
}

/// Returns the product of the dimensions unless one is unknown or it
/// overflows.
pub(crate) fn element_count(shape: &[i64]) -> Option<u64> {
    if shape.contains(&0) {
        return shape.iter().all(|&size| size >= 0).then_some(0);
    }
    let multiply = |count: u64, &size: &i64| count.checked_mul(u64::try_from(size).ok()?);
    shape.iter().try_fold(1, multiply)
}

/// Returns the bytes that an element takes in a dense attribute, if it is a
/// number.
pub(crate) fn element_size_bytes(ty: &Type) -> Option<usize> {
    let bits = match ty {
        Type::Integer(integer) => integer.width,
        Type::Index => 64,
        Type::Float(kind) => kind.width(),
        Type::Complex(element) => return Some(2 * element_size_bytes(element)?),
        _ => return None,
    };
    usize::try_from(bits.div_ceil(8)).ok()
}

impl SymbolRef {
    /// Returns the innermost name.
    pub fn leaf(&self) -> &Name {
        self.nested.last().unwrap_or(&self.root)
    }
}

impl fmt::Display for SymbolRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        printer::write_symbol(f, &self.root)?;
        for name in &*self.nested {
            f.write_str("::")?;
            printer::write_symbol(f, name)?;
        }
        Ok(())
    }
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        printer::write_attribute(f, self, printer::WithType::Yes)
    }
}
