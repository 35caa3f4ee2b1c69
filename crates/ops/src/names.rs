//! How operations of formats become rows: names and attributes, as data.

pub mod onnx;
pub mod test;
pub mod tf;

use tfrt_bef::DType;

use crate::attrs::{AttrSource, AttrValue};
use crate::def::OpDef;

/// How one operation of a format becomes a row.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    /// What the format calls it.
    pub name: &'static str,
    /// The row.
    pub row: &'static str,
    /// The version of the format's operation from which on it means the row.
    pub since: i64,
    /// Attributes that older forms have which mean something else; without them an older form means the row, too.
    pub unless: &'static [&'static str],
    /// The version from which on its results have the row's types and extents, whatever their elements are.
    pub shapes_since: i64,
    /// The row's attributes that are called otherwise, or stated by the name alone; all others have the same name.
    pub attrs: &'static [NameAttr],
    /// The row's operands, where they are others than all those of the format's that are no attributes of the row.
    pub operands: Option<&'static [NameOperand]>,
    /// Operands of the format's, by index, that have so many dimensions, where the row takes others, too.
    pub ranks: &'static [(usize, usize)],
    /// Attributes that the row does not have, and all that may be stated for them.
    pub only: &'static [(&'static str, AllowedAttr)],
    /// The attribute that says the type to which the results are cast, and the type if it is not stated.
    pub result: Option<(&'static str, DType)>,
}

/// Where an operand of a row comes from.
#[derive(Clone, Copy, Debug)]
pub enum NameOperand {
    /// From the operand at an index, as it is.
    At(usize),
    /// From the operand at an index: pairs of integers, a row each. All first ones, then all second ones.
    Pairs(usize),
    /// From two operands: where slices of operand 0 start, and their sizes, -1 for all that is left. Where they end.
    Ends(usize, usize),
    /// From an attribute, whose elements it has.
    Attr(&'static str, AttrForm),
}

/// What an attribute holds that is an operand of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttrForm {
    /// Extents.
    Shape,
    /// Integers. The operand is left out if there are none.
    Ints,
    /// A number of any type.
    Number,
    /// Numbers of any type.
    Numbers,
    /// A tensor.
    Tensor,
}

/// All that may be stated for an attribute that a row does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowedAttr {
    /// This integer.
    Int(i64),
    /// One of these texts.
    Texts(&'static [&'static str]),
    /// The type of the operand's elements at an index.
    TypeOf(usize),
}

/// The index of the last operand, however many there are.
pub const LAST: usize = usize::MAX;

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
    /// From an attribute of this name, or this integer: where the row's default is another one.
    IntOr(&'static str, &'static str, i64),
    /// The same of a floating-point number.
    FloatOr(&'static str, &'static str, f64),
    /// The integers of the operand at an index, or [`LAST`], which the row does not take.
    Operand(&'static str, usize),
    /// The same, or an attribute of one of these names if the operand is left out. One of them is there.
    OperandOr(&'static str, usize, &'static [&'static str]),
    /// This integer, if the operand at an index is there, or an attribute of the row's own that may stand for it.
    IntWith(&'static str, i64, usize, &'static str),
}

impl Name {
    /// Says that an operation is a row, with the attributes of the same names, in any version.
    pub const fn new(name: &'static str, row: &'static str) -> Name {
        Name {
            name,
            row,
            since: 1,
            unless: &[],
            shapes_since: 1,
            attrs: &[],
            operands: None,
            ranks: &[],
            only: &[],
            result: None,
        }
    }

    /// Sets the row's operands, where they are not those of the format.
    pub const fn operands(mut self, operands: &'static [NameOperand]) -> Name {
        self.operands = Some(operands);
        self
    }

    /// Sets the numbers of dimensions of operands.
    pub const fn ranks(mut self, ranks: &'static [(usize, usize)]) -> Name {
        self.ranks = ranks;
        self
    }

    /// Sets the attributes that the row does not have, and all that may be stated for them.
    pub const fn only(mut self, only: &'static [(&'static str, AllowedAttr)]) -> Name {
        self.only = only;
        self
    }

    /// Sets the attribute that says the type to which the results are cast.
    pub const fn result(mut self, name: &'static str, default: DType) -> Name {
        self.result = Some((name, default));
        self
    }

    /// Returns whether the operand at `index` of `n` is an attribute of the row.
    pub fn is_attr(&self, index: usize, n: usize) -> bool {
        self.attrs.iter().any(|attr| match attr {
            NameAttr::Operand(_, own) | NameAttr::OperandOr(_, own, _) => {
                *own == index || (*own == LAST && index + 1 == n)
            }
            _ => false,
        })
    }

    /// Sets the attributes that are called otherwise, or stated by the name alone.
    pub const fn attrs(mut self, attrs: &'static [NameAttr]) -> Name {
        self.attrs = attrs;
        self
    }

    /// Sets the version of the format's operation from which on it means the row.
    pub const fn since(mut self, version: i64) -> Name {
        self.since = version;
        self.shapes_since = version;
        self
    }

    /// An older form means the row unless it states one of these attributes.
    const fn unless(mut self, attrs: &'static [&'static str]) -> Name {
        self.unless = attrs;
        self
    }

    /// Older forms have the row's types and extents.
    const fn same_shapes(mut self) -> Name {
        self.shapes_since = 1;
        self
    }

    /// Returns whether the operation has forms that mean something else than the row.
    pub fn has_other_forms(&self) -> bool {
        self.since > 1 || !self.unless.is_empty()
    }

    /// Returns whether an operation of a version and with these attributes is the row.
    pub fn is_row(&self, version: i64, attrs: &dyn AttrSource) -> bool {
        let has_none = || self.unless.iter().all(|name| attrs.get(name).is_none());
        version >= self.since || (!self.unless.is_empty() && has_none())
    }
}

impl NameAttr {
    /// Returns what the row calls it.
    pub fn row(&self) -> &'static str {
        match self {
            NameAttr::Renamed(row, _)
            | NameAttr::Text(row, _)
            | NameAttr::Int(row, _)
            | NameAttr::Type(row, _)
            | NameAttr::IntOr(row, ..)
            | NameAttr::FloatOr(row, ..)
            | NameAttr::Operand(row, _)
            | NameAttr::OperandOr(row, ..)
            | NameAttr::IntWith(row, ..) => row,
        }
    }

    /// Returns what the format calls it; nothing of what the name states.
    pub fn source(&self) -> Option<&'static str> {
        match self {
            NameAttr::Renamed(_, name)
            | NameAttr::Type(_, name)
            | NameAttr::IntOr(_, name, _)
            | NameAttr::FloatOr(_, name, _) => Some(name),
            NameAttr::Text(..)
            | NameAttr::Int(..)
            | NameAttr::Operand(..)
            | NameAttr::OperandOr(..)
            | NameAttr::IntWith(..) => None,
        }
    }
}

impl NameAttr {
    /// Returns what the attribute always is, if the name states it.
    pub const fn fixed(&self) -> Option<AttrValue<'static>> {
        match self {
            NameAttr::Text(_, text) => Some(AttrValue::Bytes(text.as_bytes())),
            NameAttr::Int(_, value) => Some(AttrValue::Int(*value)),
            _ => None,
        }
    }
}

/// Returns a name of a sorted list.
fn find(names: &'static [Name], name: &str) -> Option<&'static Name> {
    let index = names.binary_search_by_key(&name, |own| own.name).ok()?;
    names.get(index)
}

/// The attributes of an operation of a format, as those of its row.
pub struct RowAttrs<'a> {
    source: &'a dyn AttrSource,
    attrs: &'static [NameAttr],
    dtype: fn(i64) -> Option<DType>,
}

impl AttrSource for RowAttrs<'_> {
    fn get(&self, name: &str) -> Option<AttrValue<'_>> {
        value(self.attrs, name, self.source, self.dtype)
    }
}

/// Returns an attribute of a row: what the names say of it, or what the format's operation states.
pub fn value<'a>(
    attrs: &[NameAttr],
    name: &str,
    source: &'a dyn AttrSource,
    dtype: fn(i64) -> Option<DType>,
) -> Option<AttrValue<'a>> {
    match attrs.iter().find(|attr| attr.row() == name) {
        None => source.get(name),
        Some(NameAttr::Renamed(_, other)) => source.get(other),
        Some(NameAttr::Text(_, text)) => Some(AttrValue::Bytes(text.as_bytes())),
        Some(NameAttr::Int(_, value)) => Some(AttrValue::Int(*value)),
        Some(NameAttr::IntOr(_, other, default)) => {
            Some(source.get(other).unwrap_or(AttrValue::Int(*default)))
        }
        Some(NameAttr::FloatOr(_, other, default)) => {
            Some(source.get(other).unwrap_or(AttrValue::Float(*default)))
        }
        Some(NameAttr::OperandOr(_, _, names)) => names.iter().find_map(|name| source.get(name)),
        Some(NameAttr::Operand(..) | NameAttr::IntWith(..)) => None,
        Some(NameAttr::Type(_, other)) => match source.get(other)? {
            AttrValue::Int(number) => dtype(number).map(AttrValue::Type),
            value => Some(value),
        },
    }
}

/// What an operation of a format is: its row, and its attributes as the row has them.
pub struct RowMatch<'a> {
    /// The row.
    pub op: &'static OpDef,
    /// Where its attributes are.
    pub attrs: RowAttrs<'a>,
}
