//! How operations of formats become rows: names and attributes, as data.

pub mod onnx;

use crate::attrs::{AttrSource, AttrValue, Attrs};
use crate::def::OpDef;

/// How one operation of a format becomes a row. Operands and results stay as they are.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    /// What the format calls it.
    pub name: &'static str,
    /// The row.
    pub row: &'static str,
    /// The version of the format's operation from which on it means the row.
    pub since: i64,
    /// The row's attributes that are called otherwise, or stated by the name alone; all others have the same name.
    pub attrs: &'static [NameAttr],
}

/// Where an attribute of a row comes from.
#[derive(Clone, Copy, Debug)]
pub enum NameAttr {
    /// From an attribute that the format calls otherwise: first the row's name.
    Renamed(&'static str, &'static str),
    /// Always this text.
    Text(&'static str, &'static str),
    /// Always this integer.
    Int(&'static str, i64),
    /// From an attribute that is the format's number for a type.
    Type(&'static str, &'static str),
}

impl Name {
    /// Says that an operation is a row, with the attributes of the same names, in any version.
    pub const fn new(name: &'static str, row: &'static str) -> Name {
        Name {
            name,
            row,
            since: 1,
            attrs: &[],
        }
    }

    /// Sets the attributes that are called otherwise, or stated by the name alone.
    pub const fn attrs(mut self, attrs: &'static [NameAttr]) -> Name {
        self.attrs = attrs;
        self
    }

    /// Sets the version of the format's operation from which on it means the row.
    pub const fn since(mut self, version: i64) -> Name {
        self.since = version;
        self
    }
}

impl NameAttr {
    /// Returns what the row calls the attribute.
    pub const fn name(&self) -> &'static str {
        match self {
            NameAttr::Renamed(own, _)
            | NameAttr::Text(own, _)
            | NameAttr::Int(own, _)
            | NameAttr::Type(own, _) => own,
        }
    }

    /// Returns what the attribute always is, if the name states it.
    pub const fn fixed(&self) -> Option<AttrValue<'static>> {
        match self {
            NameAttr::Text(_, text) => Some(AttrValue::Bytes(text.as_bytes())),
            NameAttr::Int(_, value) => Some(AttrValue::Int(*value)),
            NameAttr::Renamed(..) | NameAttr::Type(..) => None,
        }
    }
}

/// Returns which of the names of a format stands for a row with these attributes. Attributes that are stated by names
/// alone decide: each is what the name says, or is not stated by it and has the row's default.
pub fn of_row(names: &'static [Name], op: &OpDef, attrs: &dyn AttrSource) -> Option<&'static Name> {
    let attrs = Attrs::new(attrs, op.attrs);
    let unstated = Attrs::new(&(), op.attrs);
    let own = || names.iter().filter(|name| name.row == op.name);
    let fixed = |name: &'static Name| name.attrs.iter().filter(|attr| attr.fixed().is_some());
    let fits = |name: &&'static Name| {
        own().flat_map(fixed).all(|attr| {
            let key = attr.name();
            let mut stated = name.attrs.iter().filter(|attr| attr.name() == key);
            let value = stated.find_map(NameAttr::fixed);
            attrs.get(key) == value.or_else(|| unstated.get(key))
        })
    };
    own().find(fits)
}

/// The attributes of an operation of a format, as those of its row.
pub struct Named<'a> {
    source: &'a dyn AttrSource,
    attrs: &'static [NameAttr],
    dtype: fn(i64) -> Option<tfrt_bef::DType>,
}

impl AttrSource for Named<'_> {
    fn get(&self, name: &str) -> Option<AttrValue<'_>> {
        match self.attrs.iter().find(|attr| attr.name() == name) {
            None => self.source.get(name),
            Some(NameAttr::Renamed(_, other)) => self.source.get(other),
            Some(fixed @ (NameAttr::Text(..) | NameAttr::Int(..))) => fixed.fixed(),
            Some(NameAttr::Type(_, other)) => match self.source.get(other)? {
                AttrValue::Int(number) => (self.dtype)(number).map(AttrValue::Type),
                value => Some(value),
            },
        }
    }
}

/// What an operation of a format is: its row, and its attributes as the row has them.
pub struct Found<'a> {
    /// The row.
    pub op: &'static OpDef,
    /// Where its attributes are.
    pub attrs: Named<'a>,
}
