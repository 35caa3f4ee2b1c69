//! Operations that are rows by their name, where operands or attributes are others than the row's: what the name says of them is
//! data ([`tfrt_ops::names`]).

use std::sync::Arc;

use tfrt_bef::DType;
use tfrt_ir::attributes::DenseAttribute;
use tfrt_ir::{Attribute, Module, OpId, Type, ValueId};
use tfrt_ops::names::{AllowedAttr, AttrForm, LAST, Name, NameAttr, NameOperand, onnx};
use tfrt_ops::{Arity, AttrKind, OpDef, Types};

use super::no_row;
use crate::legalize::{Context, Expansion, Legalize};
use crate::onnx::EvaluatedValue;
use crate::passes::graph::{CONSTANT, GRAPH, NO_VALUE, attrs, lower, node, rewrite};

/// The most operations that are evaluated to find an attribute.
const MOST_EVALUATED: usize = 256;

/// Returns whether a name says more than how attributes are called.
pub(super) fn is_general(name: &Name, format: &Legalize) -> bool {
    let is_renamed = |attr: &NameAttr| {
        matches!(
            attr,
            NameAttr::Renamed(..) | NameAttr::Text(..) | NameAttr::Int(..) | NameAttr::Type(..)
        )
    };
    name.operands.is_some()
        || name.result.is_some()
        || !name.only.is_empty()
        || !name.attrs.iter().all(is_renamed)
        || name.row.contains('.')
        || !format.unread.is_empty()
}

/// Removes the attributes of an operation that are ignored.
///
/// # Errors
///
/// If another is no attribute of the row.
pub(super) fn unread(
    module: &mut Module,
    op: OpId,
    row: &OpDef,
    format: &Legalize,
) -> Result<(), String> {
    let stated: Vec<String> = module
        .op(op)
        .attributes()
        .iter()
        .map(|(name, _)| name.to_string())
        .collect();
    for name in stated {
        if row.attr(&name).is_some() {
            continue;
        }
        if !format.unread.contains(&name.as_str()) {
            return Err(unknown_attribute(&name));
        }
        module.remove_attribute(op, &name);
    }
    Ok(())
}

fn unknown_attribute(name: &str) -> String {
    format!("has an attribute '{name}', of which nothing is known here")
}

/// Appends the row of a name, with what the name says of operands, attributes and results.
///
/// # Errors
///
/// What does not fit the row.
pub(super) fn translate(
    expansion: &mut Expansion<'_>,
    name: &'static Name,
    format: &Legalize,
    context: &Context<'_>,
) -> Result<Vec<ValueId>, String> {
    let row = tfrt_ops::find(name.row).ok_or_else(|| no_row(name.row))?;
    let attributes = attributes(expansion, name, row, format, context)?;
    let operands = operands(expansion, name, row)?;
    let op = match row.dialect() {
        "graph" => format!("{GRAPH}{}", row.name),
        _ => row.name.to_owned(),
    };
    let mut stated: Vec<(&str, Attribute)> = Vec::new();
    for (name, value) in &attributes {
        stated.push((name.as_str(), value.clone()));
    }
    if row.dialect() == "onnx" {
        stated.push(("onnx.opset", Attribute::integer(onnx::NEWEST, Type::I64)));
    }
    let n_results = expansion.module().op(expansion.op()).results().len();
    let types = vec![crate::legalize::unknown(); n_results];
    let made = expansion.add_typed(&op, &operands, &stated, &types);
    let Some((attr, default)) = name.result else {
        return Ok(made);
    };
    let to = match expansion.attribute(attr).and_then(Attribute::as_type) {
        Some(ty) => ty.clone(),
        None => attrs::element(default).ok_or("has a result of a type that tensors don't have")?,
    };
    let cast = |value| {
        expansion.add(
            "graph.cast",
            &[value],
            &[("to", Attribute::Type(to.clone()))],
        )
    };
    Ok(made.into_iter().map(cast).collect())
}

/// Returns the attributes of the row.
fn attributes(
    expansion: &mut Expansion<'_>,
    name: &Name,
    row: &OpDef,
    format: &Legalize,
    context: &Context<'_>,
) -> Result<Vec<(String, Attribute)>, String> {
    let n = expansion.module().op(expansion.op()).operands().len();
    let integer = |value: i64| Attribute::integer(value, Type::I64);
    let mut found: Vec<(String, Attribute)> = Vec::new();
    for attr in name.attrs {
        let value = match attr {
            NameAttr::Renamed(_, own) | NameAttr::Type(_, own) => expansion.attribute(own).cloned(),
            NameAttr::Text(_, text) => Some(Attribute::string(text)),
            NameAttr::Int(_, value) => Some(integer(*value)),
            NameAttr::IntOr(_, own, default) => Some(
                expansion
                    .attribute(own)
                    .cloned()
                    .unwrap_or_else(|| integer(*default)),
            ),
            #[expect(clippy::cast_possible_truncation, reason = "attributes have 32 bits")]
            NameAttr::FloatOr(_, own, default) => {
                let default = || Attribute::f32(*default as f32);
                Some(expansion.attribute(own).cloned().unwrap_or_else(default))
            }
            NameAttr::Operand(own, index) => {
                Some(of_operand(expansion, context, row, own, *index, n)?)
            }
            NameAttr::OperandOr(own, index, names) => match *index < n {
                true => Some(of_operand(expansion, context, row, own, *index, n)?),
                false => names
                    .iter()
                    .find_map(|name| expansion.attribute(name).cloned()),
            },
            NameAttr::IntWith(_, value, index, own) => {
                let is_there = *index < n || expansion.attribute(own).is_some();
                is_there.then(|| integer(*value))
            }
        };
        found.extend(value.map(|value| (attr.row().to_owned(), value)));
    }
    let used = |stated: &str| {
        let mut operands = name.operands.unwrap_or_default().iter();
        let of_attr = |attr: &NameAttr| match attr {
            NameAttr::OperandOr(_, _, names) => names.contains(&stated),
            attr => attr.source() == Some(stated),
        };
        name.attrs.iter().any(of_attr)
            || name.result.is_some_and(|(own, _)| own == stated)
            || operands
                .any(|operand| matches!(operand, NameOperand::Attr(own, _) if *own == stated))
    };
    for (stated, value) in expansion.module().op(expansion.op()).attributes() {
        let only = name.only.iter().find(|(own, _)| *own == stated.as_str());
        let is_set = found.iter().any(|(own, _)| *own == stated.as_str());
        match only {
            Some((_, only)) => expect(stated, value, only)?,
            None if used(stated) => {}
            None if row.attr(stated).is_some() && !is_set => {
                found.push((stated.to_string(), value.clone()))
            }
            None if format.unread.contains(&stated.as_str()) => {}
            None => return Err(unknown_attribute(stated)),
        }
    }
    Ok(found)
}

/// Checks an attribute that the row does not have.
fn expect(name: &str, value: &Attribute, only: &AllowedAttr) -> Result<(), String> {
    match only {
        AllowedAttr::Int(wanted) if value.as_i64() != Some(*wanted) => Err(format!(
            "has {value} as attribute '{name}', expected {wanted}"
        )),
        AllowedAttr::Texts(all) if !value.as_str().is_some_and(|text| all.contains(&text)) => {
            Err(format!(
                "has {value} as attribute '{name}', expected '{}'",
                all.join("' or '")
            ))
        }
        // Of another type it would not fit what is known of the operand.
        AllowedAttr::Int(_) | AllowedAttr::Texts(_) | AllowedAttr::TypeOf(_) => Ok(()),
    }
}

/// Returns the attribute that an operand states, which must be known.
fn of_operand(
    expansion: &mut Expansion<'_>,
    context: &Context<'_>,
    row: &OpDef,
    name: &str,
    index: usize,
    n: usize,
) -> Result<Attribute, String> {
    let index = if index == LAST {
        n.saturating_sub(1)
    } else {
        index
    };
    let value = expansion.operand(index)?;
    let list = known(expansion, context, value).ok_or_else(|| {
        format!(
            "has a calculated operand {index}, expected a constant: it is the attribute '{name}'"
        )
    })?;
    let is_list = row
        .attr(name)
        .is_some_and(|attr| attr.kind == AttrKind::Ints);
    match (is_list, &list[..]) {
        (true, list) => Ok(rewrite::list(list)),
        (false, [number]) => Ok(Attribute::integer(*number, Type::I64)),
        (false, list) => {
            let found = list.len();
            Err(format!(
                "has {found} numbers as operand {index}, expected one: it is the attribute '{name}'"
            ))
        }
    }
}

/// Returns the integers of a value that follows from constants.
fn known(expansion: &mut Expansion<'_>, context: &Context<'_>, value: ValueId) -> Option<Vec<i64>> {
    if let Some(list) = node::constant_ints(expansion.module(), value) {
        return Some(list);
    }
    // Operations in an order in which users come later.
    let (mut makers, mut open) = (Vec::new(), vec![value]);
    let module = expansion.module_mut();
    while let Some(value) = open.pop() {
        let maker = module.defining_op(value)?;
        if let Some(at) = makers.iter().position(|other| *other == maker) {
            makers.remove(at);
        }
        makers.push(maker);
        if makers.len() > MOST_EVALUATED || !module.op(maker).regions().is_empty() {
            return None;
        }
        let is_made = [CONSTANT, NO_VALUE].contains(&module.op(maker).name().as_str());
        if !is_made && module.op(maker).operands().is_empty() {
            return None;
        }
        open.extend(module.op(maker).operands().iter().copied());
    }
    makers.reverse();
    let program = lower::constant_program::program(module, &makers, &[value])?;
    match context.evaluator.evaluate(program).into_iter().next()?? {
        EvaluatedValue::Constant(Attribute::Dense(dense)) => node::dense_ints(&dense),
        _ => None,
    }
}

/// Returns the operands of the row.
fn operands(
    expansion: &mut Expansion<'_>,
    name: &Name,
    row: &OpDef,
) -> Result<Vec<ValueId>, String> {
    let given = expansion.module().op(expansion.op()).operands().to_vec();
    let n = given.len();
    let mut found: Vec<Option<ValueId>> = match name.operands {
        None => {
            let own = (0..n).filter(|index| !name.is_attr(*index, n));
            own.map(|index| Some(given[index])).collect()
        }
        Some(operands) => {
            let mut found = Vec::with_capacity(operands.len());
            for operand in operands {
                found.push(match *operand {
                    NameOperand::At(index) => given.get(index).copied(),
                    NameOperand::Pairs(index) => Some(pairs(expansion, index)?),
                    NameOperand::Ends(starts, sizes) => Some(ends(expansion, starts, sizes)?),
                    NameOperand::Attr(name, form) => of_attribute(expansion, name, form)?,
                });
            }
            found
        }
    };
    while found.last().is_some_and(Option::is_none) {
        found.pop();
    }
    let rest = row
        .inputs
        .last()
        .filter(|last| matches!(last.arity, Arity::Rest(_)));
    let mut operands = Vec::with_capacity(found.len());
    for (index, value) in found.into_iter().enumerate() {
        let def = row.inputs.get(index).or(rest);
        operands.push(match value {
            None => expansion.add_typed(NO_VALUE, &[], &[], &[Type::None])[0],
            Some(value) => match def.map(|def| def.types) {
                Some(Types::Set(types)) => indices(expansion, value, types),
                _ => value,
            },
        });
    }
    Ok(operands)
}

/// Returns a value as `i64`, if the row takes that, and no `i32`; small constants also if it takes both.
fn indices(expansion: &mut Expansion<'_>, value: ValueId, types: &[DType]) -> ValueId {
    if !types.contains(&DType::I64) {
        return value;
    }
    let element = node::element(expansion.module().value_type(value));
    if element == Some(Type::I64) || element == attrs::element(DType::String) {
        return value;
    }
    let constant = node::constant(expansion.module(), value);
    if let Some(dense) = constant.filter(|dense| *dense.element_type() == Type::I32)
        && let Some(list) = node::dense_ints(dense)
    {
        let shape = dense.shape();
        let wide = rewrite::integers(&list);
        let ty = Type::tensor(shape, Type::I64);
        return constant_of(expansion, DenseAttribute { ty, ..wide });
    }
    match types.contains(&DType::I32) {
        true => value,
        false => expansion.add(
            "graph.cast",
            &[value],
            &[("to", Attribute::Type(Type::I64))],
        ),
    }
}

/// Appends a constant, in the form that evaluation knows.
pub(super) fn constant_of(expansion: &mut Expansion<'_>, dense: DenseAttribute) -> ValueId {
    let ty = dense.ty.clone();
    let value = Attribute::Dense(Arc::new(dense));
    let version = Attribute::integer(onnx::NEWEST, Type::I64);
    expansion.add_typed(
        CONSTANT,
        &[],
        &[("value", value), ("onnx.opset", version)],
        &[ty],
    )[0]
}

fn integers(expansion: &mut Expansion<'_>, list: &[i64]) -> ValueId {
    constant_of(expansion, rewrite::integers(list))
}

/// Returns the rows of two integers of an operand as a list: all first ones, then all second ones.
fn pairs(expansion: &mut Expansion<'_>, index: usize) -> Result<ValueId, String> {
    let value = expansion.operand(index)?;
    if let Some(list) = node::constant_ints(expansion.module(), value) {
        let (first, second) = (list.iter().step_by(2), list.iter().skip(1).step_by(2));
        let list: Vec<i64> = first.chain(second).copied().collect();
        return Ok(integers(expansion, &list));
    }
    let wide = expansion.add(
        "graph.cast",
        &[value],
        &[("to", Attribute::Type(Type::I64))],
    );
    let turned = expansion.add(
        "graph.transpose",
        &[wide],
        &[("perm", rewrite::list(&[1, 0]))],
    );
    let flat = integers(expansion, &[-1]);
    Ok(expansion.add("graph.reshape", &[turned, flat], &[]))
}

/// Returns the ends of slices of operand 0, by their starts and sizes.
fn ends(expansion: &mut Expansion<'_>, starts: usize, sizes: usize) -> Result<ValueId, String> {
    let [starts, sizes] = [expansion.operand(starts)?, expansion.operand(sizes)?];
    let known = [starts, sizes].map(|value| node::constant_ints(expansion.module(), value));
    if let [Some(starts), Some(sizes)] = known {
        let both = starts.iter().zip(&sizes);
        let ends = both.map(|(start, size)| match size {
            -1 => i64::MAX,
            size => start.saturating_add(*size),
        });
        let ends: Vec<i64> = ends.collect();
        return Ok(integers(expansion, &ends));
    }
    let to = || ("to", Attribute::Type(Type::I64));
    let starts = expansion.add("graph.cast", &[starts], &[to()]);
    let sizes = expansion.add("graph.cast", &[sizes], &[to()]);
    let sums = expansion.add("graph.add", &[starts, sizes], &[]);
    let all = integers(expansion, &[-1]);
    let most = integers(expansion, &[i64::MAX]);
    let is_all = expansion.add("graph.eq", &[sizes, all], &[]);
    Ok(expansion.add("graph.select", &[is_all, most, sums], &[]))
}

/// Returns the operand that an attribute is.
fn of_attribute(
    expansion: &mut Expansion<'_>,
    name: &str,
    form: AttrForm,
) -> Result<Option<ValueId>, String> {
    let Some(value) = expansion.attribute(name).cloned() else {
        return match form {
            AttrForm::Ints => Ok(None),
            _ => Err(format!("has no attribute '{name}'")),
        };
    };
    let wrong = || format!("has {value} as attribute '{name}', expected integers");
    let list = |value: &Attribute| {
        let list = value.as_array()?.iter().map(Attribute::as_i64);
        list.collect::<Option<Vec<i64>>>()
    };
    Ok(match (form, &value) {
        (AttrForm::Tensor, Attribute::Dense(dense)) => {
            Some(constant_of(expansion, (**dense).clone()))
        }
        (AttrForm::Number, value) => {
            let number = value.as_i64().ok_or_else(wrong)?;
            let scalar = DenseAttribute {
                ty: Type::tensor(Vec::new(), Type::I64),
                ..rewrite::integers(&[number])
            };
            Some(constant_of(expansion, scalar))
        }
        (AttrForm::Ints, value) => {
            let list = list(value).ok_or_else(wrong)?;
            (!list.is_empty()).then(|| integers(expansion, &list))
        }
        (_, value) => {
            let list = list(value).ok_or_else(wrong)?;
            Some(integers(expansion, &list))
        }
    })
}
