//! Kernels of ONNX as kernels of rows: called with tensors, not by a program.

use std::collections::HashMap;
use std::sync::LazyLock;

use tfrt_host::{DeviceKind, Error};
use tfrt_ops::names::{Name, NameAttr, onnx};
use tfrt_ops::{AttrSource, AttrValue, Attrs, OpDef};
use tfrt_tensor::op::{OpCall, OpKernel, OpResults};

use super::attributes::Stated;
use super::{Attributes, Beside, Inputs, Node, OPERATIONS, Operation};

static BY_NAME: LazyLock<HashMap<&'static str, (&'static str, Operation)>> = LazyLock::new(|| {
    let all = OPERATIONS.iter().copied().flatten();
    all.map(|(name, operation)| (*name, (*name, *operation)))
        .collect()
});

/// Returns what runs a row on the processor, if there is a kernel for some of its kinds.
pub fn kernel_of(op: &'static OpDef) -> Option<OpKernel> {
    let is_there = match op.name.strip_prefix("onnx.") {
        Some(name) => BY_NAME.contains_key(name),
        None => onnx::NAMES
            .iter()
            .any(|name| name.row == op.name && BY_NAME.contains_key(name.name)),
    };
    is_there.then_some(OpKernel {
        op: op.name,
        device: DeviceKind::CPU,
        run,
    })
}

/// Attributes with the defaults of the row, so that fixed ones of names are found.
struct Defaulted<'a>(Attrs<'a>);

impl AttrSource for Defaulted<'_> {
    fn get(&self, name: &str) -> Option<AttrValue<'_>> {
        self.0.get(name)
    }
}

fn run(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let op = call.op;
    let none = || {
        Error::not_found(format!(
            "{}: no kernel runs it with these attributes",
            op.name
        ))
    };
    let (name, renamed): (&str, &[NameAttr]) = match op.name.strip_prefix("onnx.") {
        Some(name) => (name, &[]),
        None => {
            let found: Option<&Name> = onnx::of_row(op, &Defaulted(call.attrs));
            found.map(|name| (name.name, name.attrs)).ok_or_else(none)?
        }
    };
    let (name, operation) = *BY_NAME.get(name).ok_or_else(none)?;
    let mut list = Vec::new();
    for def in op.attrs {
        let own = renamed.iter().find(|attr| attr.row() == def.name);
        let name = match own {
            None => def.name,
            Some(attr) => match attr.source() {
                Some(source) => source,
                // The name says it.
                None => continue,
            },
        };
        if let Some(value) = call.attrs.stated(def.name) {
            let value = stated(value).ok_or_else(|| {
                let message = format!("{}: attribute '{}' can't be stated here", op.name, def.name);
                Error::invalid_argument(message)
            })?;
            list.push((name, value));
        }
    }
    let beside = Beside::new(name, call.execution);
    let node = Node {
        name,
        inputs: Inputs::new(name, call.inputs, &beside),
        attributes: Attributes::stated(name, &list),
        opset: onnx::NEWEST,
        n_results: call.n_results,
        execution: call.execution,
        beside: &beside,
    };
    let results = operation(&node)?.into_results(&node)?;
    Ok(results.0.into_iter().collect())
}

fn stated(value: AttrValue<'_>) -> Option<Stated> {
    Some(match value {
        AttrValue::Int(value) => Stated::Integer(value),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "kernels take numbers of this type"
        )]
        AttrValue::Float(value) => Stated::Float(value as f32),
        AttrValue::Bytes(bytes) => Stated::Text(bytes.to_vec()),
        AttrValue::Type(dtype) => Stated::Integer(onnx::number(dtype)?),
        AttrValue::Ints(list) => Stated::Integers(list.into_owned()),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "kernels take numbers of this type"
        )]
        AttrValue::Floats(list) => Stated::Floats(list.iter().map(|value| *value as f32).collect()),
        AttrValue::Strings(list) => Stated::Texts(list.into_iter().map(<[u8]>::to_vec).collect()),
        AttrValue::Tensor(_) | AttrValue::Other => return None,
    })
}
