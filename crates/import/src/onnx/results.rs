//! Types of results that follow without inference: whether they are sequences, and of what.

use tfrt_ir::{Attribute, Module, RegionId, Type, ValueId, attributes::FloatAttribute};

use super::{
    ElementType,
    attributes::AttributeData,
    element,
    graph::Entries,
    schema::{Operator, Parameter},
    tensor::{Tensor, TensorData},
    types,
};

/// The types of an operation's results.
pub(super) enum ResultTypes {
    /// One type for each result.
    Each(Vec<Type>),
    /// One type for all results.
    Same(Type),
}

impl ResultTypes {
    pub(super) fn of(&self, index: usize) -> Type {
        match self {
            ResultTypes::Each(types) => types.get(index).cloned().unwrap_or_else(types::unknown),
            ResultTypes::Same(ty) => ty.clone(),
        }
    }
}

/// Returns whether a type says nothing on elements.
pub(super) fn is_unknown(ty: &Type) -> bool {
    match ty {
        Type::Tensor(tensor) => {
            tensor.shape.is_none() && tensor.element.as_dialect() == Some(element::UNKNOWN)
        }
        _ => false,
    }
}

/// Returns the types of an operation's results.
pub(super) fn types(
    module: &Module,
    name: &str,
    operator: Option<&Operator>,
    operands: &[ValueId],
    attributes: &Entries<'_>,
    regions: &[RegionId],
) -> ResultTypes {
    let operand = |index: usize| operands.get(index).map(|&value| module.value_type(value));
    let same = |ty: Option<&Type>| ResultTypes::Same(ty.cloned().unwrap_or_else(types::unknown));
    match name {
        "onnx.Identity" | "onnx.SequenceInsert" | "onnx.SequenceErase" => same(operand(0)),
        "onnx.SequenceEmpty" => {
            let dtype = attributes.iter().find(|(name, _)| *name == "dtype");
            let dtype = dtype.and_then(|(_, held)| match held {
                AttributeData::Constant(value) => i32::try_from(value.as_i64()?).ok(),
                _ => None,
            });
            let element = ElementType::from_number(dtype.unwrap_or(ElementType::F32.number()));
            let of = element.map_or_else(types::unknown, |it| types::unranked(it.ty()));
            ResultTypes::Same(types::sequence(&of))
        }
        "onnx.SequenceConstruct" | "onnx.SplitToSequence" => {
            ResultTypes::Same(types::sequence(&any_shape(operand(0))))
        }
        "onnx.SequenceAt" | "onnx.OptionalGetElement" => match operand(0) {
            Some(ty @ Type::Tensor(_)) => ResultTypes::Same(ty.clone()),
            Some(ty) => ResultTypes::Same(inner(ty).unwrap_or_else(types::unknown)),
            None => ResultTypes::Same(types::unknown()),
        },
        "onnx.Optional" => match (
            operand(0),
            attributes.iter().find(|(name, _)| *name == "type"),
        ) {
            (Some(ty), _) => ResultTypes::Same(types::optional(ty)),
            (None, Some((_, AttributeData::Constant(Attribute::Type(ty))))) => {
                ResultTypes::Same(types::optional(ty))
            }
            _ => ResultTypes::Same(types::optional(&types::unknown())),
        },
        "onnx.If" => {
            let (one, other) = (
                yielded(module, regions.first()),
                yielded(module, regions.last()),
            );
            let both = one
                .iter()
                .zip(&other)
                .map(|(one, other)| either(one, other));
            ResultTypes::Each(both.collect())
        }
        "onnx.Loop" => ResultTypes::Each(loop_results(module, operands, regions)),
        "onnx.Scan" => ResultTypes::Each(scan_results(module, attributes, regions)),
        "onnx.SequenceMap" => {
            let elements = yielded(module, regions.first());
            let sequences = elements
                .iter()
                .map(|ty| types::sequence(&any_shape(Some(ty))));
            ResultTypes::Each(sequences.collect())
        }
        _ => match operator {
            Some(operator) => ResultTypes::Each(declared(module, operator, operands, attributes)),
            None => ResultTypes::Same(types::unknown()),
        },
    }
}

/// Returns the types of the arguments of a subgraph, by the operands of its operation.
pub(super) fn arguments(name: &str, operands: &[Type], n_arguments: usize) -> Vec<Type> {
    let any = |ty: &Type| any_shape(Some(ty));
    match name {
        "onnx.Loop" => {
            let own = [types::unranked(Type::I64), types::unranked(Type::I1)];
            own.into_iter()
                .chain(operands.iter().skip(2).map(any))
                .collect()
        }
        // Before version 9 the lengths of sequences come first.
        "onnx.Scan" => {
            let first = operands.len().saturating_sub(n_arguments);
            operands[first..].iter().map(any).collect()
        }
        "onnx.SequenceMap" => {
            let element = |ty: &Type| inner(ty).unwrap_or_else(|| any(ty));
            operands.iter().map(element).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the types of results by the operator's parameters, for those results that have one.
fn declared(
    module: &Module,
    operator: &Operator,
    operands: &[ValueId],
    attributes: &Entries<'_>,
) -> Vec<Type> {
    // The types that letters stand for in this call.
    let mut letters: Vec<(&str, Type)> = Vec::new();
    for (index, &operand) in operands.iter().enumerate() {
        let ty = module.value_type(operand);
        let Some(parameter) = operator.input(index) else {
            break;
        };
        let is_new = letters.iter().all(|(letter, _)| *letter != parameter.ty);
        if is_new && *ty != Type::None && !is_unknown(&any_shape(Some(ty))) {
            letters.push((parameter.ty, any_shape(Some(ty))));
        }
    }
    let declared = |parameter: &Parameter| {
        if let Some((_, ty)) = letters.iter().find(|(letter, _)| *letter == parameter.ty) {
            return ty.clone();
        }
        if let Some(element) = parameter.ty.strip_prefix("tensor(") {
            let element = ElementType::from_name(element.trim_end_matches(')'));
            return element.map_or_else(types::unknown, |it| types::unranked(it.ty()));
        }
        let number = attributes.iter().find_map(|(name, held)| match held {
            AttributeData::Constant(value) if ELEMENT_TYPES.contains(name) => value.as_i64(),
            _ => None,
        });
        let element = number.and_then(|number| i32::try_from(number).ok());
        let element = element.and_then(ElementType::from_number);
        element.map_or_else(types::unknown, |it| types::unranked(it.ty()))
    };
    operator.outputs.iter().map(declared).collect()
}

/// Attributes that state the type of a result's elements, as a number.
const ELEMENT_TYPES: [&str; 4] = ["to", "dtype", "output_dtype", "output_datatype"];

/// Returns the common type of a value that is one or the other.
fn either(one: &Type, other: &Type) -> Type {
    match (one, other) {
        _ if one == other => one.clone(),
        (Type::Tensor(_), Type::Tensor(_)) if is_unknown(&any_shape(Some(one))) => {
            any_shape(Some(other))
        }
        (Type::Tensor(_), Type::Tensor(_)) => any_shape(Some(one)),
        (Type::Tensor(_), _) => other.clone(),
        _ => one.clone(),
    }
}

/// Returns the type of tensors of the same elements and any shape.
fn any_shape(ty: Option<&Type>) -> Type {
    match ty {
        Some(Type::Tensor(tensor)) => types::unranked(tensor.element.clone()),
        Some(other) => other.clone(),
        None => types::unknown(),
    }
}

/// Returns the type of the elements of a sequence or an optional.
fn inner(ty: &Type) -> Option<Type> {
    let text = ty.as_dialect()?;
    let inner = text
        .strip_prefix("!onnx.sequence<")
        .or_else(|| text.strip_prefix("!onnx.optional<"))?;
    tfrt_ir::parse_type(inner.strip_suffix('>')?)
}

/// Returns the types of the values that a region yields.
fn yielded(module: &Module, region: Option<&RegionId>) -> Vec<Type> {
    let block = region.and_then(|&region| module.entry_block(region));
    let Some(last) = block.and_then(|block| module.block(block).last()) else {
        return Vec::new();
    };
    let values = module.op(last).operands().iter();
    values
        .map(|&value| module.value_type(value).clone())
        .collect()
}

/// Returns the types of a loop's results: carried values have the type that they begin with, or another shape; scan
/// outputs are stacked elements.
fn loop_results(module: &Module, operands: &[ValueId], regions: &[RegionId]) -> Vec<Type> {
    const BEFORE_CARRIED: usize = 2;
    let n_carried = operands.len().saturating_sub(BEFORE_CARRIED);
    let ends = yielded(module, regions.first());
    let results = ends.iter().skip(1).enumerate();
    let result = |(index, end): (usize, &Type)| match operands.get(index + BEFORE_CARRIED) {
        Some(&start) if index < n_carried => carried(module.value_type(start), end),
        _ => any_shape(Some(end)),
    };
    results.map(result).collect()
}

fn carried(start: &Type, end: &Type) -> Type {
    match start {
        _ if start == end => start.clone(),
        Type::Tensor(_) if !is_unknown(&any_shape(Some(start))) => any_shape(Some(start)),
        Type::Tensor(_) => any_shape(Some(end)),
        other => other.clone(),
    }
}

fn scan_results(module: &Module, attributes: &Entries<'_>, regions: &[RegionId]) -> Vec<Type> {
    let ends = yielded(module, regions.first());
    let n_inputs = attributes.iter().find_map(|(name, held)| match held {
        AttributeData::Constant(value) if *name == "num_scan_inputs" => value.as_i64(),
        _ => None,
    });
    let block = regions
        .first()
        .and_then(|&region| module.entry_block(region));
    let n_arguments = block.map_or(0, |block| module.block(block).arguments().len());
    let n_inputs = n_inputs.and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    let n_states = n_arguments.saturating_sub(n_inputs);
    let result = |(index, end): (usize, &Type)| match index < n_states {
        true => end.clone(),
        false => any_shape(Some(end)),
    };
    ends.iter().enumerate().map(result).collect()
}

/// Returns the tensor that an attribute of a node `Constant` stands for: a scalar, or a list.
pub(super) fn constant(value: &Attribute) -> Option<Tensor> {
    let (dims, items) = match value {
        Attribute::Array(items) => (vec![items.len()], &items[..]),
        single => (Vec::new(), std::slice::from_ref(single)),
    };
    let element = match items.first() {
        Some(Attribute::Integer(_)) => ElementType::I64,
        Some(Attribute::Float(_)) | None => ElementType::F32,
        Some(Attribute::String(_)) => ElementType::String,
        Some(_) => return None,
    };
    let data = match element {
        ElementType::String => {
            let strings = items.iter().map(|item| match item {
                Attribute::String(text) => Some(text.bytes.clone()),
                _ => None,
            });
            TensorData::Strings(strings.collect::<Option<_>>()?)
        }
        _ => {
            let mut bytes = Vec::with_capacity(items.len() * element.size_bytes());
            for item in items {
                match item {
                    Attribute::Integer(_) => bytes.extend(item.as_i64()?.to_le_bytes()),
                    Attribute::Float(FloatAttribute { bits, .. }) => {
                        bytes.extend(u32::try_from(*bits).ok()?.to_le_bytes());
                    }
                    _ => return None,
                }
            }
            TensorData::Bytes(bytes.into())
        }
    };
    let name = String::new();
    Some(Tensor {
        name,
        element,
        dims,
        data,
    })
}
