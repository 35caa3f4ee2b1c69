//! A counter that operations on different threads add to.

use crate::dialect::{
    OpDef,
    ValueKind::{self, *},
};
use crate::dialects::kernel;

const COUNTER: ValueKind = ValueKind::Dialect("!test.atomic.i32");

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        kernel("tfrt_test.atomic.create.i32")
            .summary("A new counter that stands at 0")
            .result("counter", COUNTER)
            .allocates(),
        kernel("tfrt_test.atomic.inc.i32")
            .summary("Adds 1 to a counter")
            .details("What does not fit wraps around.")
            .operand("counter", COUNTER)
            .result("done", Chain)
            .writes(0),
        kernel("tfrt_test.atomic.add.i32")
            .summary("Adds to a counter")
            .details("What does not fit wraps around.")
            .operand("counter", COUNTER)
            .operand("number", I32)
            .result("done", Chain)
            .writes(0),
        kernel("tfrt_test.atomic.get.i32")
            .summary("Where a counter stands")
            .operand("counter", COUNTER)
            .result("number", I32)
            .result("done", Chain)
            .reads(0),
    ]
}
