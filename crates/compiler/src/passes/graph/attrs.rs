//! Attributes and types of a module's operations, in the form that rows have.

use std::borrow::Cow;

use tfrt_bef::DType;
use tfrt_ir::{
    Attribute, Module, Name, OpId, Type,
    attributes::DenseAttribute,
    types::{FloatKind, IntegerType, Signedness},
};
use tfrt_ops::{AttrDef, AttrDefault, AttrKind, AttrSource, AttrValue, MOST_VALUES, TensorValue};

use super::{node, rewrite};

/// The attributes of one operation of a module.
pub(crate) struct OpAttrs<'m> {
    pub(crate) module: &'m Module,
    pub(crate) op: OpId,
}

impl AttrSource for OpAttrs<'_> {
    fn get(&self, name: &str) -> Option<AttrValue<'_>> {
        self.module.op(self.op).attribute(name).map(value)
    }
}

/// Adds the defaults of the row's attributes that are not stated, and gives numbers the types `i64` and `f32`. So a
/// kernel has the same attributes in each call.
pub(in crate::passes) fn complete(stated: &mut Vec<(Name, Attribute)>, defs: &[AttrDef]) {
    for def in defs {
        let own = stated.iter_mut().find(|(name, _)| *name == def.name);
        let value = match (own, def.default) {
            (Some((_, value)), _) => {
                *value = of_kind(value, def.kind);
                continue;
            }
            (None, AttrDefault::Required | AttrDefault::Absent) => continue,
            (None, AttrDefault::Int(value)) => Attribute::integer(value, Type::I64),
            (None, AttrDefault::Float(value)) => Attribute::f32(narrowed(value)),
            (None, AttrDefault::Text(text)) => Attribute::string(text),
            (None, AttrDefault::Ints(list)) => rewrite::list(list),
            (None, AttrDefault::Type(dtype)) => match element(dtype) {
                Some(ty) => Attribute::Type(ty),
                None => continue,
            },
        };
        stated.push((def.name.into(), value));
    }
}

/// Converts numbers in an operation's attributes to the types that kernels take, whatever types the text has: `i64`
/// and `f32`.
pub(in crate::passes) fn unify(module: &mut Module, op: OpId, defs: &[AttrDef]) {
    for def in defs {
        let Some(stated) = module.op(op).attribute(def.name) else {
            continue;
        };
        let unified = of_kind(stated, def.kind);
        if unified != *stated {
            module.set_attribute(op, def.name, unified);
        }
    }
}

fn of_kind(value: &Attribute, kind: AttrKind) -> Attribute {
    let list = |list: &[Attribute], kind| {
        Attribute::array(list.iter().map(|one| of_kind(one, kind)).collect())
    };
    match (kind, value) {
        (AttrKind::Ints, Attribute::Array(all)) => list(all, AttrKind::Int),
        (AttrKind::Floats, Attribute::Array(all)) => list(all, AttrKind::Float),
        (AttrKind::Int, Attribute::Integer(_)) => value.as_i64().map_or_else(
            || value.clone(),
            |value| Attribute::integer(value, Type::I64),
        ),
        (AttrKind::Float, Attribute::Float(float)) => Attribute::f32(narrowed(float.value())),
        _ => value.clone(),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "attributes have 32 bits")]
fn narrowed(value: f64) -> f32 {
    value as f32
}

fn value(attribute: &Attribute) -> AttrValue<'_> {
    match attribute {
        Attribute::Integer(_) => attribute.as_i64().map_or(AttrValue::Other, AttrValue::Int),
        Attribute::Float(float) => AttrValue::Float(float.value()),
        Attribute::String(text) => AttrValue::Bytes(&text.bytes),
        Attribute::Type(ty) => dtype(ty).map_or(AttrValue::Other, AttrValue::Type),
        Attribute::Array(list) => array(list),
        Attribute::Dense(dense) => tensor(dense),
        _ => AttrValue::Other,
    }
}

/// Returns a list of values of one kind; an empty list is one of integers.
fn array(list: &[Attribute]) -> AttrValue<'_> {
    let integers: Option<Vec<i64>> = list.iter().map(Attribute::as_i64).collect();
    if let Some(list) = integers {
        return AttrValue::Ints(Cow::Owned(list));
    }
    let floats: Option<Vec<f64>> = list.iter().map(float).collect();
    if let Some(list) = floats {
        return AttrValue::Floats(Cow::Owned(list));
    }
    let types = list.iter().map(|attribute| match attribute {
        Attribute::Type(ty) => dtype(ty),
        _ => None,
    });
    if let Some(list) = types.collect() {
        return AttrValue::Types(list);
    }
    let shapes = list.iter().map(|attribute| match attribute {
        Attribute::Array(extents) => extents.iter().map(Attribute::as_i64).collect(),
        _ => None,
    });
    if let Some(list) = shapes.collect() {
        return AttrValue::Shapes(list);
    }
    let texts: Option<Vec<&[u8]>> = list.iter().map(text).collect();
    texts.map_or(AttrValue::Other, AttrValue::Strings)
}

fn float(attribute: &Attribute) -> Option<f64> {
    match attribute {
        Attribute::Float(float) => Some(float.value()),
        _ => None,
    }
}

fn text(attribute: &Attribute) -> Option<&[u8]> {
    match attribute {
        Attribute::String(text) => Some(&text.bytes),
        _ => None,
    }
}

fn tensor(dense: &DenseAttribute) -> AttrValue<'_> {
    let is_small = dense.n_elements().is_some_and(|n| n <= MOST_VALUES as u64);
    let ints = if is_small {
        node::dense_ints(dense)
    } else {
        None
    };
    let floats = if is_small {
        node::dense_floats(dense)
    } else {
        None
    };
    let dims = Cow::Owned(dense.shape());
    match dtype(dense.element_type()) {
        Some(dtype) => AttrValue::Tensor(TensorValue {
            dtype,
            dims,
            ints,
            floats,
        }),
        None => AttrValue::Other,
    }
}

/// Returns the element type of a type in a model, if it is known.
pub(crate) fn dtype(ty: &Type) -> Option<DType> {
    Some(match ty {
        Type::Integer(IntegerType { width, signedness }) => {
            match (*signedness == Signedness::Unsigned, width) {
                (_, 1) => DType::I1,
                (false, 2) => DType::I2,
                (false, 4) => DType::I4,
                (false, 8) => DType::I8,
                (false, 16) => DType::I16,
                (false, 32) => DType::I32,
                (false, 64) => DType::I64,
                (true, 2) => DType::Ui2,
                (true, 4) => DType::Ui4,
                (true, 8) => DType::Ui8,
                (true, 16) => DType::Ui16,
                (true, 32) => DType::Ui32,
                (true, 64) => DType::Ui64,
                _ => return None,
            }
        }
        Type::Float(kind) => FLOATS.iter().find(|(own, _)| own == kind)?.1,
        Type::Complex(element) => match **element {
            Type::Float(FloatKind::F32) => DType::Complex64,
            Type::Float(FloatKind::F64) => DType::Complex128,
            _ => return None,
        },
        Type::Dialect(name) if name.as_str() == STRING => DType::String,
        _ => return None,
    })
}

/// The type of strings in models.
const STRING: &str = "!onnx.string";

const FLOATS: [(FloatKind, DType); 15] = [
    (FloatKind::F32, DType::F32),
    (FloatKind::F64, DType::F64),
    (FloatKind::F16, DType::F16),
    (FloatKind::BF16, DType::Bf16),
    (FloatKind::F8E4M3FN, DType::F8E4M3FN),
    (FloatKind::F8E4M3FNUZ, DType::F8E4M3FNUZ),
    (FloatKind::F8E5M2, DType::F8E5M2),
    (FloatKind::F8E5M2FNUZ, DType::F8E5M2FNUZ),
    (FloatKind::F8E8M0FNU, DType::F8E8M0),
    (FloatKind::F4E2M1FN, DType::F4E2M1),
    (FloatKind::F8E3M4, DType::F8E3M4),
    (FloatKind::F8E4M3, DType::F8E4M3),
    (FloatKind::F8E4M3B11FNUZ, DType::F8E4M3B11FNUZ),
    (FloatKind::F6E2M3FN, DType::F6E2M3),
    (FloatKind::F6E3M2FN, DType::F6E3M2),
];

/// Returns the type of an element type in a model.
pub(in crate::passes) fn element(dtype: DType) -> Option<Type> {
    Some(match dtype {
        DType::I1 => Type::I1,
        DType::I2 => Type::signless(2),
        DType::I4 => Type::signless(4),
        DType::I8 => Type::signless(8),
        DType::I16 => Type::signless(16),
        DType::I32 => Type::signless(32),
        DType::I64 => Type::I64,
        DType::Ui2 => Type::unsigned(2),
        DType::Ui4 => Type::unsigned(4),
        DType::Ui8 => Type::UI8,
        DType::Ui16 => Type::UI16,
        DType::Ui32 => Type::UI32,
        DType::Ui64 => Type::UI64,
        DType::Complex64 => Type::complex(Type::F32),
        DType::Complex128 => Type::complex(Type::F64),
        DType::String => Type::dialect(STRING),
        float => Type::Float(FLOATS.iter().find(|(_, own)| *own == float)?.0),
    })
}
