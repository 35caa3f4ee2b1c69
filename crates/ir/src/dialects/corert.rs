//! `corert`: the core runtime, which runs operations by name on tensor handles.
//!
//! A *kernel* is what a program calls; an *op* is what a kernel of this dialect asks a
//! handler for, by name. Handles are values: what one refers to is never written, so an
//! op that is executed without a chain is pure.

mod attributes;
mod constants;
mod control;
mod execution;
mod handlers;
mod handles;

pub(in crate::dialects) use constants::{const_dense, create_dense};
pub(in crate::dialects) use execution::executes;
pub(in crate::dialects) use handlers::{gets_handler, registers_handler};
pub(in crate::dialects) use handles::prints_handle;

use crate::dialect::{OpDef, ValueKind};

pub(in crate::dialects) const HANDLE: ValueKind = ValueKind::Dialect("!corert.tensorhandle");
pub(in crate::dialects) const HANDLER: ValueKind = ValueKind::Dialect("!corert.ophandler");
pub(in crate::dialects) const ATTRIBUTES: ValueKind = ValueKind::Dialect("!corert.opattrs");
pub(in crate::dialects) const FROZEN: ValueKind = ValueKind::Dialect("!corert.opattrs_ref");
const OP: ValueKind = ValueKind::Dialect("!corert.op");
pub(in crate::dialects) const TENSOR_TYPE: ValueKind = ValueKind::Dialect("!tfrt.tensor_type");

pub(super) fn definitions() -> Vec<OpDef> {
    let mut all = execution::definitions();
    all.extend(constants::definitions());
    all.extend(handlers::definitions());
    all.extend(control::definitions());
    all.extend(attributes::definitions());
    all.extend(handles::definitions());
    all
}

/// The beginning of a function that executes ops.
const INIT: &str = "func.func @init() -> !tfrt.chain {
  %null = \"corert.create_null_op_handler\"() : () -> !corert.ophandler
  %cpu = \"corert.create_cpu_op_handler\"(%null) : (!corert.ophandler) -> !corert.ophandler
  %registered = corert.register_op_handler %cpu \"cpu\"
  tfrt.return %registered : !tfrt.chain
}
";

/// Returns a program whose `@main` has a handler `%cpu`, and a chain `%chain` that it was
/// registered by.
fn with_handler(functions: &str, body: &str) -> String {
    let mut program = format!(
        "{INIT}{functions}func.func @main() {{
  %chain = tfrt.call @init() : () -> !tfrt.chain
  %cpu = corert.get_op_handler %chain \"cpu\"
"
    );
    for line in body.lines() {
        program.push_str(&format!("  {line}\n"));
    }
    program + "  tfrt.return\n}\n"
}
