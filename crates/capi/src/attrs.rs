//! [`Attr`]: attributes of a node, as the C API has them.

use std::collections::BTreeMap;

use crate::dtype;
use crate::value::Tensor;

/// The value of an attribute.
#[derive(Clone, Debug)]
pub enum Attr {
    /// A text, of any bytes.
    Bytes(Vec<u8>),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f32),
    /// A truth value.
    Bool(bool),
    /// A type of elements, `TF_DataType`.
    Type(i32),
    /// A shape, of which extents (-1) or all may be unknown.
    Shape(Option<Vec<i64>>),
    /// A tensor.
    Tensor(Tensor),
    /// The name of a function.
    Function(String),
    /// A list of values of one kind.
    List(Kind, Vec<Attr>),
}

/// A kind of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`Attr::Bytes`]
    String,
    /// [`Attr::Int`]
    Int,
    /// [`Attr::Float`]
    Float,
    /// [`Attr::Bool`]
    Bool,
    /// [`Attr::Type`]
    Type,
    /// [`Attr::Shape`]
    Shape,
    /// [`Attr::Tensor`]
    Tensor,
    /// [`Attr::Function`]
    Function,
}

impl Kind {
    /// Returns the name in specifications of operations.
    pub fn name(self) -> &'static str {
        match self {
            Kind::String => "string",
            Kind::Int => "int",
            Kind::Float => "float",
            Kind::Bool => "bool",
            Kind::Type => "type",
            Kind::Shape => "shape",
            Kind::Tensor => "tensor",
            Kind::Function => "func",
        }
    }
}

impl Attr {
    /// Returns the kind of the value, or of the elements of a list.
    pub fn kind(&self) -> Kind {
        match self {
            Attr::Bytes(_) => Kind::String,
            Attr::Int(_) => Kind::Int,
            Attr::Float(_) => Kind::Float,
            Attr::Bool(_) => Kind::Bool,
            Attr::Type(_) => Kind::Type,
            Attr::Shape(_) => Kind::Shape,
            Attr::Tensor(_) => Kind::Tensor,
            Attr::Function(_) => Kind::Function,
            Attr::List(kind, _) => *kind,
        }
    }

    /// Returns the kind as messages have it: `list(int)`.
    pub fn kind_name(&self) -> String {
        match self {
            Attr::List(kind, _) => format!("list({})", kind.name()),
            one => one.kind().name().to_owned(),
        }
    }

    /// Writes the value so that equal texts mean equal values, but for tensors: these are told apart by address.
    pub fn write_key(&self, key: &mut String) {
        use std::fmt::Write;
        let _never_fails = match self {
            Attr::Float(value) => write!(key, "f{:x}", value.to_bits()),
            Attr::Type(code) => write!(key, "t{code}"),
            Attr::Tensor(tensor) => write!(key, "@{:x}", tensor.memory().address()),
            Attr::List(_, list) => {
                key.push('[');
                for one in list {
                    one.write_key(key);
                    key.push(',');
                }
                write!(key, "]")
            }
            Attr::Bytes(bytes) => write!(key, "{:?}", String::from_utf8_lossy(bytes)),
            other => write!(key, "{other:?}"),
        };
    }
}

/// Attributes of a node by name, with defaults filled in.
pub type NodeAttrs = BTreeMap<String, Attr>;

/// Writes the value for people: `DT_FLOAT`, `[1, 2]`.
impl std::fmt::Display for Attr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Attr::Bytes(bytes) => write!(f, "{:?}", String::from_utf8_lossy(bytes)),
            Attr::Int(value) => write!(f, "{value}"),
            Attr::Float(value) => write!(f, "{value}"),
            Attr::Bool(value) => write!(f, "{value}"),
            Attr::Type(code) => f.write_str(&dtype::name(*code)),
            Attr::Shape(Some(extents)) => write!(f, "{extents:?}"),
            Attr::Shape(None) => f.write_str("a shape of unknown rank"),
            Attr::Tensor(tensor) => write!(f, "{tensor:?}"),
            Attr::Function(name) => f.write_str(name),
            Attr::List(_, list) => {
                f.write_str("[")?;
                for (index, one) in list.iter().enumerate() {
                    let comma = if index > 0 { ", " } else { "" };
                    write!(f, "{comma}{one}")?;
                }
                f.write_str("]")
            }
        }
    }
}
