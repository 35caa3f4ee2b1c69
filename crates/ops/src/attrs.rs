//! [`Attrs`]: the attributes of one operation, wherever they are stored.

use std::borrow::Cow;

use tfrt_bef::DType;

use crate::def::{AttrDef, AttrDefault};

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttrValue<'a> {
    /// A truth value, or an integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A string of bytes; the name of a function, too.
    Bytes(&'a [u8]),
    /// The type of elements.
    Type(DType),
    /// Types of elements.
    Types(Vec<DType>),
    /// Lists of extents; an unknown extent is -1.
    Shapes(Vec<Vec<i64>>),
    /// Integers.
    Ints(Cow<'a, [i64]>),
    /// Floating-point numbers.
    Floats(Cow<'a, [f64]>),
    /// Strings.
    Strings(Vec<&'a [u8]>),
    /// A tensor.
    Tensor(TensorValue<'a>),
    /// A value that is none of the others: a graph, or a type that is no tensor's.
    Other,
}

/// An attribute that is a tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorValue<'a> {
    /// The type of its elements.
    pub dtype: DType,
    /// The extents.
    pub dims: Cow<'a, [i64]>,
    /// The elements, if they are integers and few.
    pub ints: Option<Vec<i64>>,
    /// The elements, if they are floating-point numbers and few.
    pub floats: Option<Vec<f64>>,
}

/// A store of attributes, by name: a module, a file, a caller's list.
pub trait AttrSource {
    /// Returns the attribute of a name, if it is stated.
    fn get(&self, name: &str) -> Option<AttrValue<'_>>;
}

/// The store without attributes.
impl AttrSource for () {
    fn get(&self, _: &str) -> Option<AttrValue<'_>> {
        None
    }
}

/// A caller's list of attributes, in any order.
impl AttrSource for &[(&str, AttrValue<'_>)] {
    fn get(&self, name: &str) -> Option<AttrValue<'_>> {
        let found = self.iter().find(|(own, _)| *own == name);
        found.map(|(_, value)| value.clone())
    }
}

/// The attributes of one operation, with the defaults of its row where nothing is stated.
#[derive(Clone, Copy)]
pub struct Attrs<'a> {
    source: &'a dyn AttrSource,
    defs: &'static [AttrDef],
}

impl std::fmt::Debug for Attrs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stated = self
            .defs
            .iter()
            .map(|def| (def.name, self.source.get(def.name)));
        f.debug_map().entries(stated).finish()
    }
}

impl<'a> Attrs<'a> {
    /// Takes the attributes from a source.
    pub fn new(source: &'a dyn AttrSource, defs: &'static [AttrDef]) -> Attrs<'a> {
        Attrs { source, defs }
    }

    /// Returns whether an attribute is stated.
    pub fn has(&self, name: &str) -> bool {
        self.source.get(name).is_some()
    }

    /// Returns an attribute, if it is stated.
    pub fn stated(&self, name: &str) -> Option<AttrValue<'a>> {
        self.source.get(name)
    }

    /// Returns an attribute as it is stated, or the default of the row.
    pub fn get(&self, name: &str) -> Option<AttrValue<'a>> {
        if let Some(value) = self.source.get(name) {
            return Some(value);
        }
        let def = self.defs.iter().find(|def| def.name == name)?;
        match def.default {
            AttrDefault::Required | AttrDefault::Absent => None,
            AttrDefault::Int(value) => Some(AttrValue::Int(value)),
            AttrDefault::Float(value) => Some(AttrValue::Float(value)),
            AttrDefault::Text(text) => Some(AttrValue::Bytes(text.as_bytes())),
            AttrDefault::Ints(list) => Some(AttrValue::Ints(Cow::Borrowed(list))),
            AttrDefault::Type(dtype) => Some(AttrValue::Type(dtype)),
        }
    }

    /// Returns an integer.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            AttrValue::Int(value) => Some(value),
            _ => None,
        }
    }

    /// Returns whether an integer that stands for a truth value is not 0.
    pub fn flag(&self, name: &str) -> bool {
        self.int(name).is_some_and(|value| value != 0)
    }

    /// Returns a list of integers.
    pub fn ints(&self, name: &str) -> Option<Cow<'a, [i64]>> {
        match self.get(name)? {
            AttrValue::Ints(list) => Some(list),
            _ => None,
        }
    }

    /// Returns the number of elements of a list of any kind.
    pub fn len(&self, name: &str) -> Option<usize> {
        match self.get(name)? {
            AttrValue::Ints(list) => Some(list.len()),
            AttrValue::Floats(list) => Some(list.len()),
            AttrValue::Strings(list) => Some(list.len()),
            AttrValue::Types(list) => Some(list.len()),
            AttrValue::Shapes(list) => Some(list.len()),
            _ => None,
        }
    }

    /// Returns a text; empty if there is none.
    pub fn text(&self, name: &str) -> &'a str {
        match self.get(name) {
            Some(AttrValue::Bytes(bytes)) => std::str::from_utf8(bytes).unwrap_or(""),
            _ => "",
        }
    }

    /// Returns a type.
    pub fn dtype(&self, name: &str) -> Option<DType> {
        match self.get(name)? {
            AttrValue::Type(dtype) => Some(dtype),
            _ => None,
        }
    }

    /// Returns a list of types.
    pub fn dtypes(&self, name: &str) -> Option<Vec<DType>> {
        match self.get(name)? {
            AttrValue::Types(list) => Some(list),
            _ => None,
        }
    }

    /// Returns lists of extents.
    pub fn shapes(&self, name: &str) -> Option<Vec<Vec<i64>>> {
        match self.get(name)? {
            AttrValue::Shapes(list) => Some(list),
            AttrValue::Ints(list) if list.is_empty() => Some(Vec::new()),
            _ => None,
        }
    }
}
