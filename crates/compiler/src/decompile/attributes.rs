//! Decompiles attribute payloads.
//!
//! Attributes that differ are written once each. So where two offsets would give the same
//! attribute, one of them had a type that is written like another, and gets such a type.

use std::collections::{HashMap, hash_map::Entry};
use std::sync::Arc;

use tfrt_bef::{AttributeOffset, AttributeType, AttributeView, BefFile, DType, ShapeView};
use tfrt_ir::{
    Attribute, Integer, Name, Type,
    attributes::{Bytes, DenseAttribute, DenseElements, FloatAttribute, ShapeAttribute, SymbolRef},
    parse_type,
    types::{FloatKind, VectorType},
};

use super::types::{Types, signed};

/// The number in place of an attribute that can't be restored.
const UNKNOWN: i32 = i32::from_le_bytes([0xef, 0xbe, 0xad, 0xde]);

/// Attributes by their offsets.
#[derive(Default)]
pub(super) struct Attributes {
    known: HashMap<u32, Attribute>,
    /// The offset of each attribute.
    taken: HashMap<Attribute, u32>,
    /// Listed attributes that text can't express.
    pub(super) unknown: Vec<(u32, AttributeType)>,
}

/// A choice between types that are written alike.
#[derive(Clone, Copy)]
struct Spelling {
    signed: bool,
    vector: bool,
}

const SPELLINGS: [Spelling; 4] = [
    Spelling {
        signed: false,
        vector: false,
    },
    Spelling {
        signed: true,
        vector: false,
    },
    Spelling {
        signed: false,
        vector: true,
    },
    Spelling {
        signed: true,
        vector: true,
    },
];

impl Attributes {
    /// Returns the attribute at `offset`, which an operation may want to be of a signed type.
    pub(super) fn get(
        &mut self,
        file: &BefFile,
        types: &mut Types,
        offset: u32,
        is_signed: bool,
    ) -> Attribute {
        if let Some(known) = self.known.get(&offset) {
            return known.clone();
        }
        let view = file.attribute(AttributeOffset(offset));
        let attribute = match view.listed_type() {
            None => unknown(),
            Some(kind) => self.read(types, view, kind, is_signed).unwrap_or_else(|| {
                self.unknown.push((offset, kind));
                unknown()
            }),
        };
        self.known.insert(offset, attribute.clone());
        attribute
    }

    fn read(
        &mut self,
        types: &mut Types,
        view: AttributeView<'_>,
        kind: AttributeType,
        is_signed: bool,
    ) -> Option<Attribute> {
        let n_met = types.n_met();
        let mut spellings = SPELLINGS;
        spellings.rotate_left(usize::from(is_signed));
        for spelling in spellings {
            types.forget(n_met);
            let attribute = Reader { types, spelling }.read(view, kind)?;
            if let Entry::Vacant(vacant) = self.taken.entry(attribute) {
                let attribute = vacant.key().clone();
                // Views count from the start of a section below 4 GiB.
                vacant.insert(view.offset() as u32);
                return Some(attribute);
            }
        }
        types.forget(n_met);
        let spelling = spellings[0];
        Reader { types, spelling }.read(view, kind)
    }
}

fn unknown() -> Attribute {
    Attribute::integer(UNKNOWN, Type::I32)
}

/// A reader of attributes in one spelling, which notes the types of their numbers.
struct Reader<'t> {
    types: &'t mut Types,
    spelling: Spelling,
}

impl Reader<'_> {
    /// Reads an attribute. Recursion is bounded by the gate's limit on nesting.
    fn read(&mut self, view: AttributeView<'_>, kind: AttributeType) -> Option<Attribute> {
        match kind {
            AttributeType::Scalar(DType::String) | AttributeType::FunctionName => {
                Some(Attribute::string(view.as_bytes()?))
            }
            AttributeType::Scalar(dtype) => {
                let bits = scalar_bits(view, dtype)?;
                self.number(bits, dtype)
            }
            AttributeType::Type => Some(Attribute::Type(self.type_of(view.as_dtype()?))),
            AttributeType::Shape => Some(Attribute::Shape(ShapeAttribute(match view.shape()? {
                ShapeView::Unranked => None,
                ShapeView::Ranked(extents) => Some(extents.into()),
            }))),
            AttributeType::Dense => self.dense(view),
            AttributeType::Symbol => {
                let symbol = view.symbol()?;
                Some(Attribute::Symbol(SymbolRef {
                    root: symbol.root.into(),
                    nested: symbol.nested.into_iter().map(Name::from).collect(),
                }))
            }
            AttributeType::Aggregate => {
                let aggregate = view.aggregate()?;
                let elements: Option<Vec<Attribute>> = (0..aggregate.len())
                    .map(|index| self.read(aggregate.get(index)?, aggregate.element_type(index)?))
                    .collect();
                elements.map(Attribute::array)
            }
            AttributeType::TypeArray => {
                let elements = view.dtypes()?.into_iter();
                let types = elements.map(|dtype| Attribute::Type(self.type_of(dtype)));
                Some(Attribute::array(types.collect()))
            }
            AttributeType::Array(dtype) => {
                let elements = array_bits(view, dtype)?.into_iter();
                let elements: Option<Vec<Attribute>> =
                    elements.map(|bits| self.number(bits, dtype)).collect();
                elements.map(Attribute::array)
            }
        }
    }

    /// Makes a number of its bits.
    fn number(&mut self, bits: u64, dtype: DType) -> Option<Attribute> {
        let attribute = match type_of(dtype)? {
            Type::Float(kind) => Attribute::Float(FloatAttribute { bits, kind }),
            ty @ Type::Integer(_) => {
                let ty = match self.spelling.signed {
                    true => signed(&ty).unwrap_or(ty),
                    false => self.types.signedness(ty),
                };
                Attribute::integer(Integer::from(bits), ty)
            }
            _ => return None,
        };
        match &attribute {
            Attribute::Integer(integer) => self.types.meet(&integer.ty),
            Attribute::Float(float) => self.types.meet(&Type::Float(float.kind)),
            _ => {}
        }
        Some(attribute)
    }

    fn type_of(&self, dtype: DType) -> Type {
        let ty = type_of(dtype).unwrap_or(Type::None);
        match self.spelling.signed {
            true => signed(&ty).unwrap_or(ty),
            false => ty,
        }
    }

    fn dense(&self, view: AttributeView<'_>) -> Option<Attribute> {
        let dense = view.dense()?;
        let element = self.type_of(dense.dtype);
        if let Type::Dialect(_) = element {
            return None;
        }
        let ty = match self.spelling.vector && !dense.shape.is_empty() {
            true => Type::Vector(Arc::new(VectorType {
                shape: dense.shape.iter().map(|extent| (*extent, false)).collect(),
                element,
            })),
            false => Type::tensor(dense.shape.to_vec(), element),
        };
        let size = dense.dtype.size_bytes()?;
        let first = dense.bytes.get(..size);
        let splat = first.filter(|first| dense.bytes.chunks_exact(size).all(|one| one == *first));
        Some(Attribute::Dense(Arc::new(DenseAttribute {
            ty,
            elements: DenseElements::Bytes(Bytes::copy_from_slice(splat.unwrap_or(dense.bytes))),
            splat: splat.is_some(),
        })))
    }
}

/// Returns the type of an element type.
fn type_of(dtype: DType) -> Option<Type> {
    Some(match dtype {
        DType::F16 => Type::Float(FloatKind::F16),
        DType::Bf16 => Type::Float(FloatKind::BF16),
        DType::F32 => Type::Float(FloatKind::F32),
        DType::F64 => Type::Float(FloatKind::F64),
        other => parse_type(other.mlir_name())?,
    })
}

/// Returns the bits of a number, signed ones extended.
fn scalar_bits(view: AttributeView<'_>, dtype: DType) -> Option<u64> {
    Some(match dtype {
        DType::I1 => u64::from(view.as_bool()?),
        DType::F16 => u64::from(view.as_f16_bits()?),
        DType::Bf16 => u64::from(view.as_bf16_bits()?),
        DType::F32 => u64::from(view.as_f32()?.to_bits()),
        DType::F64 => view.as_f64()?.to_bits(),
        DType::I8 => i64::from(view.as_i8()?).cast_unsigned(),
        DType::I16 => i64::from(view.as_i16()?).cast_unsigned(),
        DType::I32 => i64::from(view.as_i32()?).cast_unsigned(),
        DType::I64 => view.as_i64()?.cast_unsigned(),
        DType::Ui8 => u64::from(view.as_u8()?),
        DType::Ui16 => u64::from(view.as_u16()?),
        DType::Ui32 => u64::from(view.as_u32()?),
        DType::Ui64 => view.as_u64()?,
        _ => return None,
    })
}

/// Returns the bits of the numbers in an array, signed ones extended.
fn array_bits(view: AttributeView<'_>, dtype: DType) -> Option<Vec<u64>> {
    Some(match dtype {
        DType::I1 | DType::Ui8 => widened::<u8>(view)?,
        DType::Ui16 | DType::F16 | DType::Bf16 => widened::<u16>(view)?,
        DType::Ui32 => widened::<u32>(view)?,
        DType::Ui64 => view.array::<u64>()?.to_vec(),
        DType::I8 => extended::<i8>(view)?,
        DType::I16 => extended::<i16>(view)?,
        DType::I32 => extended::<i32>(view)?,
        DType::I64 => extended::<i64>(view)?,
        DType::F32 => {
            let elements = view.array::<f32>()?.iter();
            elements.map(|one| u64::from(one.to_bits())).collect()
        }
        DType::F64 => {
            let elements = view.array::<f64>()?.iter();
            elements.map(|one| one.to_bits()).collect()
        }
        _ => return None,
    })
}

fn widened<T: tfrt_bef::Element + Into<u64>>(view: AttributeView<'_>) -> Option<Vec<u64>> {
    let elements = view.array::<T>()?.iter();
    Some(elements.map(|one| (*one).into()).collect())
}

fn extended<T: tfrt_bef::Element + Into<i64>>(view: AttributeView<'_>) -> Option<Vec<u64>> {
    let elements = view.array::<T>()?.iter();
    let extended = elements.map(|one| (*one).into().cast_unsigned());
    Some(extended.collect())
}
