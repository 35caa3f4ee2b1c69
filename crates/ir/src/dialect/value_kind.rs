//! Kinds of types and attributes that declarations allow, and MLIR's words for them.

use std::sync::LazyLock;

use super::Keywords;
use crate::{
    attributes::Attribute,
    types::{FloatKind, Type},
};

/// A set of types that a value may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "each is named after the type that it stands for"
)]
pub enum ValueKind {
    /// Any type.
    Any,
    I1,
    I8,
    I16,
    I32,
    I64,
    UI8,
    UI16,
    UI32,
    UI64,
    BF16,
    F16,
    F32,
    F64,
    Complex64,
    Complex128,
    Chain,
    String,
    Device,
    /// A type of a dialect, with its `!`.
    Dialect(&'static str),
    /// Any type, of which documentation says what it should be: `tensor of i64`.
    Described(&'static str),
}

/// A set of attributes that a declaration allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeKind {
    /// Anything.
    Any,
    /// An integer or float of the type; written without it where the
    /// operation's own form has a place for it.
    Typed(ValueKind),
    /// An integer or float of the type; always written with its type.
    Number(ValueKind),
    /// An array of integers or floats of the type.
    Array(ValueKind),
    /// A string.
    String,
    /// `["a", "b"]`.
    Strings,
    /// `[["key", 1 : i32]]`; what the elements are is for the operation's own check.
    Pairs,
    /// `@name`.
    FlatSymbol,
    /// `[@a, @b]`.
    FlatSymbols,
    /// A type attribute that holds a function type.
    FunctionType,
    /// `[{a.b = 1 : i32}, {}]`.
    Dictionaries,
    /// An integer of any width.
    Integer,
    /// An array of integers of any width.
    Integers,
    /// A float of any width.
    Float,
    /// An array of floats of any width.
    Floats,
    /// The type of elements.
    ElementType,
    /// A tensor with its elements, or without those that are elsewhere.
    Elements,
    /// An integer whose values have names, which the operation's own form writes in their place.
    Keyword(&'static Keywords),
}

impl AttributeKind {
    /// Returns whether an attribute is of the kind.
    pub fn accepts(self, attribute: &Attribute) -> bool {
        match (self, attribute) {
            (AttributeKind::Any, _) => true,
            (
                AttributeKind::Typed(wanted) | AttributeKind::Number(wanted),
                Attribute::Integer(integer),
            ) => wanted.accepts(&integer.ty),
            (
                AttributeKind::Typed(wanted) | AttributeKind::Number(wanted),
                Attribute::Float(float),
            ) => wanted.accepts(&Type::Float(float.kind)),
            (AttributeKind::Array(wanted), Attribute::Array(elements)) => elements
                .iter()
                .all(|element| AttributeKind::Typed(wanted).accepts(element)),
            (AttributeKind::Dictionaries, Attribute::Array(elements)) => elements
                .iter()
                .all(|element| matches!(element, Attribute::Dictionary(_))),
            (AttributeKind::String, Attribute::String(string)) => string.ty == Type::None,
            (AttributeKind::Strings, Attribute::Array(elements)) => elements
                .iter()
                .all(|element| AttributeKind::String.accepts(element)),
            (AttributeKind::Pairs, Attribute::Array(_)) => true,
            (AttributeKind::FlatSymbol, attribute) => attribute.as_flat_symbol().is_some(),
            (AttributeKind::FlatSymbols, Attribute::Array(elements)) => elements
                .iter()
                .all(|element| element.as_flat_symbol().is_some()),
            (AttributeKind::FunctionType, Attribute::Type(ty)) => ty.as_function().is_some(),
            (AttributeKind::Integer, attribute) => attribute.as_i64().is_some(),
            (AttributeKind::Float, Attribute::Float(_)) => true,
            (AttributeKind::Integers, Attribute::Array(elements)) => elements
                .iter()
                .all(|element| AttributeKind::Integer.accepts(element)),
            (AttributeKind::Floats, Attribute::Array(elements)) => elements
                .iter()
                .all(|element| AttributeKind::Float.accepts(element)),
            (AttributeKind::ElementType, Attribute::Type(_)) => true,
            (AttributeKind::Keyword(keywords), attribute) => keywords.is_number(attribute),
            (AttributeKind::Elements, attribute) => !matches!(
                attribute,
                Attribute::Unit
                    | Attribute::Integer(_)
                    | Attribute::Float(_)
                    | Attribute::String(_)
                    | Attribute::Type(_)
            ),
            _ => false,
        }
    }
}

impl ValueKind {
    /// Returns the type, unless any will do.
    pub fn ty(self) -> Option<Type> {
        let ty = match self {
            ValueKind::Any | ValueKind::Described(_) => return None,
            ValueKind::I1 => Type::I1,
            ValueKind::I8 => Type::I8,
            ValueKind::I16 => Type::I16,
            ValueKind::I32 => Type::I32,
            ValueKind::I64 => Type::I64,
            ValueKind::UI8 => Type::UI8,
            ValueKind::UI16 => Type::UI16,
            ValueKind::UI32 => Type::UI32,
            ValueKind::UI64 => Type::UI64,
            ValueKind::BF16 => Type::BF16,
            ValueKind::F16 => Type::F16,
            ValueKind::F32 => Type::F32,
            ValueKind::F64 => Type::F64,
            ValueKind::Complex64 => Type::complex(Type::F32),
            ValueKind::Complex128 => Type::complex(Type::F64),
            ValueKind::Chain => Type::chain(),
            ValueKind::String => STRING.clone(),
            ValueKind::Device => DEVICE.clone(),
            ValueKind::Dialect(text) => Type::dialect(text),
        };
        Some(ty)
    }

    /// Returns whether a type is allowed.
    pub fn accepts(self, ty: &Type) -> bool {
        match self {
            ValueKind::Any | ValueKind::Described(_) => true,
            ValueKind::I1 => *ty == Type::I1,
            ValueKind::I8 => *ty == Type::I8,
            ValueKind::I16 => *ty == Type::I16,
            ValueKind::I32 => *ty == Type::I32,
            ValueKind::I64 => *ty == Type::I64,
            ValueKind::UI8 => *ty == Type::UI8,
            ValueKind::UI16 => *ty == Type::UI16,
            ValueKind::UI32 => *ty == Type::UI32,
            ValueKind::UI64 => *ty == Type::UI64,
            ValueKind::BF16 => *ty == Type::BF16,
            ValueKind::F16 => *ty == Type::F16,
            ValueKind::F32 => *ty == Type::F32,
            ValueKind::F64 => *ty == Type::F64,
            ValueKind::Chain => ty.is_chain(),
            ValueKind::Dialect(text) => ty.as_dialect() == Some(text),
            ValueKind::Complex64
            | ValueKind::Complex128
            | ValueKind::String
            | ValueKind::Device => self.ty().as_ref() == Some(ty),
        }
    }

    /// Returns MLIR's words for the kind.
    pub fn description(self) -> String {
        match self.ty() {
            None => "any type".to_owned(),
            Some(Type::Integer(integer)) => {
                let sign = match self {
                    ValueKind::UI8 | ValueKind::UI16 | ValueKind::UI32 | ValueKind::UI64 => {
                        "unsigned"
                    }
                    _ => "signless",
                };
                format!("{}-bit {sign} integer", integer.width)
            }
            Some(Type::Float(FloatKind::BF16)) => "bfloat16 type".to_owned(),
            Some(Type::Float(kind)) => format!("{}-bit float", kind.width()),
            Some(Type::Complex(element)) => format!("complex type with {element} elements"),
            Some(ty) => format!("{ty} type"),
        }
    }
}

static STRING: LazyLock<Type> = LazyLock::new(|| Type::dialect("!tfrt.string"));
static DEVICE: LazyLock<Type> = LazyLock::new(|| Type::dialect("!tfrt.device"));
