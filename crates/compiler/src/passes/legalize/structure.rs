//! What stands around operations of graphs, as lowering knows it: operands that are left out, ends of regions, constants,
//! control flow.

use tfrt_ir::{Attribute, Module, OpId, Type};
use tfrt_ops::OpDef;
use tfrt_ops::names::{NameAttr, onnx};

use crate::passes::graph::{NO_VALUE, YIELD};

/// Operations of graphs that are no rows.
const MARKERS: [(&str, &str); 2] = [("none", NO_VALUE), ("yield", YIELD)];

/// Rows that are lowered from the form that ONNX has of them.
pub(super) const ROWS: [&str; 3] = ["constant", "if", "scan"];

/// Calls a marker by the name that passes have for it; returns whether it is one.
pub(super) fn mark(module: &mut Module, op: OpId, name: &str) -> bool {
    let marker = MARKERS.iter().find(|(own, _)| *own == name);
    if let Some((_, other)) = marker {
        module.set_name(op, *other);
    }
    marker.is_some()
}

/// Gives an operation that is one of [`ROWS`] the form that ONNX has of it.
///
/// # Errors
///
/// What can't be said in that form.
pub(super) fn restore(module: &mut Module, op: OpId, row: &OpDef) -> Result<(), String> {
    if row.name == "if" {
        if module.op(op).operands().len() > 1 {
            let message = "expected one operand, the condition: regions see what is around them";
            return Err(message.to_owned());
        }
        // ONNX has the regions in the order of their names.
        module.swap_regions(op, 0, 1);
    }
    let mut names = onnx::NAMES.iter().filter(|name| name.row == row.name);
    let name = names.next().ok_or("has no form that is lowered")?;
    for attr in name.attrs {
        if let NameAttr::Renamed(own, other) = attr
            && let Some(value) = module.remove_attribute(op, own)
        {
            module.set_attribute(op, *other, value);
        }
    }
    module.set_name(op, format!("onnx.{}", name.name));
    let version = Attribute::integer(onnx::NEWEST, Type::I64);
    module.set_attribute(op, "onnx.opset", version);
    Ok(())
}
