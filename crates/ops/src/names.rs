//! Mappings of formats' operations to rows: names and attributes, as data.

pub mod onnx;
pub mod test;
pub mod tf;

use tfrt_bef::DType;

use crate::attrs::{AttrSource, AttrValue};
use crate::def::OpDef;

/// The mapping of one operation of a format to a row.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    /// The format's name of the operation.
    pub name: &'static str,
    /// The name of the row.
    pub row: &'static str,
    /// The first version of the format's operation that means the row.
    pub since: i64,
    /// Attributes with another meaning in older forms; an older form without them means the row, too.
    pub unless: &'static [&'static str],
    /// The first version whose results have the row's types and extents, whatever the elements are.
    pub shapes_since: i64,
    /// The row's attributes that have another name in the format, or a value that the name alone implies; all others
    /// have the same name.
    pub attrs: &'static [NameAttr],
    /// The row's operands, where they are not simply the format's (without those that are attributes of the row).
    pub operands: Option<&'static [NameOperand]>,
    /// The ranks that operands of the format must have, by index, where the row takes others, too.
    pub ranks: &'static [(usize, usize)],
    /// Attributes that the row does not have, and the only values that they may have.
    pub only: &'static [(&'static str, AllowedAttr)],
    /// The attribute that states the type to which results are cast, with the type if it is not stated.
    pub result: Option<(&'static str, DType)>,
}

/// The source of a row's operand.
#[derive(Clone, Copy, Debug)]
pub enum NameOperand {
    /// The operand at an index, as it is.
    At(usize),
    /// The operand at an index, rows of two integers each: all first ones, then all second ones.
    Pairs(usize),
    /// The ends of slices, from two operands: the starts of the slices of operand 0, and their sizes, -1 for all that
    /// is left.
    Ends(usize, usize),
    /// The elements of an attribute.
    Attr(&'static str, AttrForm),
}

/// The form of an attribute that becomes an operand of a row.
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

/// The only values that an attribute may have which the row does not know.
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

/// The source of a row's attribute.
#[derive(Clone, Copy, Debug)]
pub enum NameAttr {
    /// The attribute with another name in the format: first the row's name.
    Renamed(&'static str, &'static str),
    /// A fixed text.
    Text(&'static str, &'static str),
    /// A fixed integer.
    Int(&'static str, i64),
    /// The type whose number in the format an attribute is.
    Type(&'static str, &'static str),
    /// The attribute of this name, or this integer: where the row's default is another one.
    IntOr(&'static str, &'static str, i64),
    /// The attribute of this name, or this floating-point number: where the row's default is another one.
    FloatOr(&'static str, &'static str, f64),
    /// The integers of the operand at an index, or [`LAST`]; the row does not take that operand.
    Operand(&'static str, usize),
    /// The integers of the operand at an index, or an attribute of one of these names if the operand is left out. One
    /// of them is there.
    OperandOr(&'static str, usize, &'static [&'static str]),
    /// A fixed integer, if the operand at an index is there, or an attribute of the row's own that may stand for the
    /// operand.
    IntWith(&'static str, i64, usize, &'static str),
}

impl Name {
    /// Maps an operation to a row, with attributes of the same names, in any version.
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

    /// Sets the sources of the row's operands.
    pub const fn operands(mut self, operands: &'static [NameOperand]) -> Name {
        self.operands = Some(operands);
        self
    }

    /// Sets the ranks that operands must have.
    pub const fn ranks(mut self, ranks: &'static [(usize, usize)]) -> Name {
        self.ranks = ranks;
        self
    }

    /// Sets the attributes that the row does not have, with the only values that they may have.
    pub const fn only(mut self, only: &'static [(&'static str, AllowedAttr)]) -> Name {
        self.only = only;
        self
    }

    /// Sets the attribute that states the type to which results are cast.
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

    /// Sets the sources of the row's attributes.
    pub const fn attrs(mut self, attrs: &'static [NameAttr]) -> Name {
        self.attrs = attrs;
        self
    }

    /// Sets the first version of the format's operation that means the row.
    pub const fn since(mut self, version: i64) -> Name {
        self.since = version;
        self.shapes_since = version;
        self
    }

    /// Sets attributes by which an older form is told from the row: without them it means the row.
    const fn unless(mut self, attrs: &'static [&'static str]) -> Name {
        self.unless = attrs;
        self
    }

    /// Says that results of older forms, too, have the row's types and extents.
    const fn same_shapes(mut self) -> Name {
        self.shapes_since = 1;
        self
    }

    /// Returns whether the operation has forms that mean something else than the row.
    pub fn has_other_forms(&self) -> bool {
        self.since > 1 || !self.unless.is_empty()
    }

    /// Returns whether an operation of this version and with these attributes is the row.
    pub fn is_row(&self, version: i64, attrs: &dyn AttrSource) -> bool {
        let has_none = || self.unless.iter().all(|name| attrs.get(name).is_none());
        version >= self.since || (!self.unless.is_empty() && has_none())
    }
}

impl NameAttr {
    /// Returns the row's name of the attribute.
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

    /// Returns the format's name of the attribute; `None` if the operation's name implies the value.
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
    /// Returns the fixed value of the attribute, if there is one.
    pub const fn fixed(&self) -> Option<AttrValue<'static>> {
        match self {
            NameAttr::Text(_, text) => Some(AttrValue::Bytes(text.as_bytes())),
            NameAttr::Int(_, value) => Some(AttrValue::Int(*value)),
            _ => None,
        }
    }
}

/// Finds an operation in a sorted list of mappings.
fn find(names: &'static [Name], name: &str) -> Option<&'static Name> {
    let index = names.binary_search_by_key(&name, |own| own.name).ok()?;
    names.get(index)
}

/// The attributes of a format's operation, under the names of its row.
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

/// Returns an attribute of a row: the fixed value, or what the format's operation states.
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

/// The row that an operation of a format is, with its attributes under the row's names.
pub struct RowMatch<'a> {
    /// The row.
    pub op: &'static OpDef,
    /// The operation's attributes, under the row's names.
    pub attrs: RowAttrs<'a>,
}
