//! Attributes of a call, translated to those of its row.

use std::borrow::Cow;

use smallvec::SmallVec;
use tfrt_host::Error;
use tfrt_ops::names::{self, AllowedAttr, AttrForm, NameAttr, NameOperand};
use tfrt_ops::{AttrDefault, AttrSource, AttrValue as RowValue, Limit, OpDef};
use tfrt_tensor::PartialTensorShape;

use super::Row;
use crate::attributes::{AttrValue, Numbers, OpAttrsRef, missing};
use crate::definition::AttrKind;

/// Row attributes that operands of the call state, each with its integers.
pub(super) type OperandLists = SmallVec<[(&'static str, SmallVec<[i64; 8]>); 1]>;

/// Attributes of a call, read by the names of its row.
pub(super) struct RowAttrs<'a> {
    pub stated: CallAttrs<'a>,
    pub row: Row,
    pub n_inputs: usize,
    pub lists: &'a OperandLists,
}

impl AttrSource for RowAttrs<'_> {
    fn get(&self, name: &str) -> Option<RowValue<'_>> {
        if let Some((_, list)) = self.lists.iter().find(|(own, _)| *own == name) {
            // One integer may be a list of one, or a number.
            let is_list = self.row.op.attr(name)?.kind == tfrt_ops::AttrKind::Ints;
            return Some(match list[..] {
                [one] if !is_list => RowValue::Int(one),
                _ => RowValue::Ints(Cow::Borrowed(list)),
            });
        }
        let names = self.row.names();
        if let Some(NameAttr::IntWith(_, value, index, other)) =
            names.iter().find(|attr| attr.row() == name)
        {
            let is_given = self.n_inputs > *index || self.stated.0.value(other).is_some();
            return is_given.then_some(RowValue::Int(*value));
        }
        names::value(names, name, &self.stated, |_| None)
    }
}

/// The attributes that a call states.
pub(super) struct CallAttrs<'a>(pub OpAttrsRef<'a>);

impl AttrSource for CallAttrs<'_> {
    fn get(&self, name: &str) -> Option<RowValue<'_>> {
        Some(match self.0.value(name)? {
            AttrValue::Scalar(numbers) => {
                if let Some(list) = numbers.integers() {
                    RowValue::Int(*list.first()?)
                } else if let Some([truth]) = numbers.as_slice::<tfrt_tensor::Bool>() {
                    RowValue::Int(i64::from(bool::from(*truth)))
                } else {
                    RowValue::Float(*floats(numbers)?.first()?)
                }
            }
            AttrValue::List(numbers) => match numbers.integers() {
                Some(list) => RowValue::Ints(Cow::Owned(list.to_vec())),
                None => RowValue::Floats(Cow::Owned(floats(numbers)?)),
            },
            AttrValue::DType(dtype) => RowValue::Type(*dtype),
            AttrValue::Text(text) | AttrValue::Function(text) => {
                RowValue::Bytes(text.as_str().as_bytes())
            }
            AttrValue::Aggregate(list) if list.is_empty() => RowValue::Ints(Cow::Borrowed(&[])),
            AttrValue::Aggregate(list) if matches!(list[0], AttrValue::DType(_)) => {
                RowValue::Types(self.0.dtypes(name).ok()??)
            }
            AttrValue::Aggregate(list)
                if matches!(list[0], AttrValue::Shape(_) | AttrValue::List(_)) =>
            {
                let shapes = self.0.shapes(name).ok()??;
                RowValue::Shapes(shapes.iter().map(extents).collect::<Option<_>>()?)
            }
            AttrValue::Aggregate(list) => {
                let texts = list.iter().map(|value| match value {
                    AttrValue::Text(text) => Some(text.as_str().as_bytes()),
                    _ => None,
                });
                RowValue::Strings(texts.collect::<Option<_>>()?)
            }
            AttrValue::Shape(shape) => match shape.extents() {
                Some(_) => RowValue::Ints(Cow::Owned(extents(shape)?)),
                None => RowValue::Other,
            },
            AttrValue::Dense(_) => RowValue::Other,
        })
    }
}

/// Returns the extents of a shape of a known rank; one that is unknown is -1.
fn extents(shape: &PartialTensorShape) -> Option<Vec<i64>> {
    let of = |extent: Option<u64>| extent.map_or(Some(-1), |n| i64::try_from(n).ok());
    shape.extents()?.map(of).collect()
}

fn floats(numbers: &Numbers) -> Option<Vec<f64>> {
    if let Some(list) = numbers.as_slice::<f32>() {
        return Some(list.iter().map(|one| f64::from(*one)).collect());
    }
    numbers.as_slice::<f64>().map(<[f64]>::to_vec)
}

impl Row {
    /// Returns the names under which a call states an attribute of the row; none if the operation's name or an
    /// operand states it.
    pub(super) fn stated_names(self, name: &'static str) -> SmallVec<[&'static str; 2]> {
        match self.names().iter().find(|own| own.row() == name) {
            None => SmallVec::from_slice(&[name]),
            Some(NameAttr::OperandOr(_, _, names)) => SmallVec::from_slice(names),
            Some(own) => own.source().into_iter().collect(),
        }
    }

    /// Checks that attributes are of the row's kinds, and that none is missing.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are not.
    pub(super) fn check_attributes(
        self,
        op: &str,
        attrs: OpAttrsRef<'_>,
        n_inputs: usize,
    ) -> Result<(), Error> {
        for attr in self.op.attrs {
            let names = self.stated_names(attr.name);
            let mut found = names.iter().filter(|name| attrs.value(name).is_some());
            match (found.next(), self.operand_of(attr.name, n_inputs)) {
                (Some(name), None) => check(attrs, name, kind(attr.kind))?,
                (Some(name), Some(index)) => {
                    return Err(Error::invalid_argument(format!(
                        "{op}: expected '{name}' in operand {index} or as an attribute, found both"
                    )));
                }
                (None, Some(_)) => (),
                (None, None) => {
                    let is_of_operand = self.operand_position(attr.name).is_some();
                    let is_required = attr.default == AttrDefault::Required || is_of_operand;
                    if let Some(name) = names.first().filter(|_| is_required) {
                        return Err(missing(op, name));
                    }
                }
            }
        }
        let Some(name) = self.name else {
            return Ok(());
        };
        let stated = CallAttrs(attrs);
        for (name, only) in name.only {
            let only = match only {
                AllowedAttr::Int(only) => only,
                AllowedAttr::Texts(all) => {
                    let found = attrs.text(name)?;
                    if let Some(found) = found.filter(|found| !all.contains(found)) {
                        let (all, found) = (all.join("', '"), found.escape_debug());
                        return Err(Error::invalid_argument(format!(
                            "{op}: expected attribute '{name}' to be '{all}', found '{found}'"
                        )));
                    }
                    continue;
                }
                // That is looked at with the operands.
                AllowedAttr::TypeOf(_) => {
                    attrs.dtype(name)?;
                    continue;
                }
            };
            let found = stated.get(name);
            if found.is_some_and(|found| found != RowValue::Int(*only)) {
                let (only, found) = match (attrs.bool(name), attrs.integer(name)) {
                    (Ok(Some(found)), _) => ((*only != 0).to_string(), found.to_string()),
                    (_, Ok(Some(found))) => (only.to_string(), found.to_string()),
                    _ => (only.to_string(), "something else".to_owned()),
                };
                return Err(Error::invalid_argument(format!(
                    "{op}: expected attribute '{name}' to be {only}, found {found}"
                )));
            }
        }
        for operand in name.operands.unwrap_or_default() {
            let NameOperand::Attr(name, held) = operand else {
                continue;
            };
            match held {
                _ if attrs.value(name).is_none() => match held {
                    AttrForm::Ints => (),
                    _ => return Err(missing(op, name)),
                },
                AttrForm::Shape => drop(attrs.shape(name)?),
                AttrForm::Ints => drop(attrs.integers(name)?),
                AttrForm::Tensor => drop(attrs.dense(name)?),
                AttrForm::Number | AttrForm::Numbers => (),
            }
        }
        Ok(())
    }

    /// Returns the index of the operand that states an attribute of the row, or may state it in place of one, if the
    /// operand is given.
    fn operand_of(self, name: &str, n_inputs: usize) -> Option<usize> {
        let index = match self.operand_position(name) {
            Some(names::LAST) => return n_inputs.checked_sub(1),
            Some(index) => index,
            None => self.op.inputs.iter().position(|input| input.name == name)?,
        };
        (index < n_inputs).then_some(index)
    }

    /// Returns the position of the operand that states an attribute of the row.
    fn operand_position(self, name: &str) -> Option<usize> {
        self.names().iter().find_map(|attr| match attr {
            NameAttr::Operand(own, index) | NameAttr::OperandOr(own, index, _) => {
                (*own == name).then_some(*index)
            }
            _ => None,
        })
    }
}

/// Checks that an attribute is of a kind; truth values are integers.
fn check(attrs: OpAttrsRef<'_>, name: &str, kind: AttrKind) -> Result<(), Error> {
    match kind {
        AttrKind::Integer if matches!(attrs.bool(name), Ok(Some(_))) => (),
        AttrKind::Integer => drop(attrs.integer(name)?),
        AttrKind::Integers if matches!(attrs.value(name), Some(AttrValue::Shape(_))) => (),
        AttrKind::Integers => drop(attrs.integers(name)?),
        AttrKind::Float => match attrs.get::<f64>(name) {
            Ok(_) => (),
            Err(_) => drop(attrs.get::<f32>(name)?),
        },
        AttrKind::Text => drop(attrs.text(name)?),
        AttrKind::Texts => drop(attrs.texts(name)?),
        AttrKind::Type => drop(attrs.dtype(name)?),
        AttrKind::Types => drop(attrs.dtypes(name)?),
        AttrKind::Shapes => drop(attrs.shapes(name)?),
        AttrKind::Dense => drop(attrs.dense(name)?),
        _ => (),
    }
    Ok(())
}

/// Returns the kind of an attribute of a row.
pub(super) fn kind(kind: tfrt_ops::AttrKind) -> AttrKind {
    use tfrt_ops::AttrKind as Kind;
    match kind {
        Kind::Int => AttrKind::Integer,
        Kind::Float => AttrKind::Float,
        Kind::Text | Kind::Region | Kind::Function => AttrKind::Text,
        Kind::Ints => AttrKind::Integers,
        Kind::Floats => AttrKind::Numbers,
        Kind::Texts => AttrKind::Texts,
        Kind::Type => AttrKind::Type,
        Kind::Types => AttrKind::Types,
        Kind::Shapes => AttrKind::Shapes,
        Kind::Tensor => AttrKind::Dense,
    }
}

/// Returns the kind of an attribute that is an operand of a row.
pub(super) fn held_kind(held: AttrForm) -> AttrKind {
    match held {
        AttrForm::Shape => AttrKind::Shape,
        AttrForm::Ints => AttrKind::Integers,
        AttrForm::Number => AttrKind::Number,
        AttrForm::Numbers => AttrKind::Numbers,
        AttrForm::Tensor => AttrKind::Dense,
    }
}

/// Returns whether an attribute of the row states the number of results.
pub(super) fn counts_results(op: &OpDef) -> bool {
    op.results
        .iter()
        .any(|result| matches!(result.arity, tfrt_ops::Arity::Rest(_)))
}

/// Returns the attribute of the row that states the types of the results, if their number follows from that.
pub(super) fn types_of_results(op: &OpDef) -> Option<&'static str> {
    let mut attrs = op.attrs.iter();
    let found = attrs
        .find(|attr| attr.limit == Limit::ResultCount && attr.kind == tfrt_ops::AttrKind::Types)?;
    Some(found.name)
}

/// Returns whether a row has a result for each of its operands, of which there may be any number.
pub(super) fn gives_as_inputs(op: &OpDef) -> bool {
    let is_rest = |value: &tfrt_ops::ValueDef| matches!(value.arity, tfrt_ops::Arity::Rest(_));
    match (op.inputs, op.results) {
        ([input], [result]) => is_rest(input) && is_rest(result) && op.attr("n").is_none(),
        _ => false,
    }
}
