//! The dialects that have tables: a file each, and a folder where the file would be long.
//!
//! The entries say everything that parser, printer, verifier, passes and the
//! reference in `docs/operations/` know of an operation. A test of the front crate
//! compares each with the registered kernel.

mod builtin;
mod checks;
mod corert;
mod func;
mod native;
mod symbols;
mod tfrt;
mod tfrt_test;
mod tfrt_tutorial;
mod vt;

use crate::dialect::{OpDef, Traits};

/// Returns every entry of every dialect.
pub(crate) fn all() -> Vec<OpDef> {
    let mut all = Vec::new();
    all.extend(builtin::definitions());
    all.extend(corert::definitions());
    all.extend(func::definitions());
    all.extend(tfrt::definitions());
    all.extend(tfrt_test::definitions());
    all.extend(tfrt_tutorial::definitions());
    all.extend(vt::definitions());
    all
}

/// Returns the entries of native functions.
pub(crate) fn natives() -> Vec<OpDef> {
    native::definitions()
}

/// Starts the entry of a kernel that the original has no operation for: only the
/// generic form can write it, and programs are not checked against it.
fn kernel(name: &'static str) -> OpDef {
    OpDef::new(name).traits(&[Traits::KERNEL_ONLY])
}

/// The form of most operations: operands, then attributes in braces.
const OPERANDS: &str = "operands attr-dict";
