//! Native functions, which programs declare rather than use as operations:
//!
//! ```text
//! func.func private @native_add(i32, i32) -> i32 attributes {tfrt.native}
//! ```

use super::kernel;
use crate::dialect::{OpDef, Traits, ValueKind::*};

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        native("native_sink")
            .summary("Takes anything and gives nothing")
            .rest("operands")
            .no_effects(),
        native("native_async_sink")
            .summary("Takes anything and gives a chain")
            .rest("operands")
            .result("done", Chain)
            .no_effects(),
        native("native_add")
            .summary("The sum; wraps")
            .operand("lhs", I32)
            .operand("rhs", I32)
            .result("sum", I32)
            .no_effects(),
        native("native_async_add")
            .summary("The sum, made by a task; wraps")
            .asynchronous()
            .operand("lhs", I32)
            .operand("rhs", I32)
            .result("sum", I32)
            .no_effects(),
        native("native_error")
            .summary("An error")
            .details("The error is not told to the host's diagnostic handler.")
            .result("never", I32)
            .fails("Unknown", "something bad happened", "always")
            .no_effects(),
    ]
}

fn native(name: &'static str) -> OpDef {
    kernel(name).traits(&[Traits::NATIVE])
}
