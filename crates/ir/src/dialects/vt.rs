//! `vt`: integers that print when they are made and destroyed, so that programs show
//! lifetimes.

use super::kernel;
use crate::dialect::{
    AttributeKind, OpDef,
    ValueKind::{self, *},
};

const TRACKED: ValueKind = ValueKind::Dialect("!vt.value");
const LIFETIME: &str = "Prints `constructed vt.value(N)` and `move constructed vt.value(N)`, and, \
                        when its last holder lets go of it, `destroyed vt.value(N)`, but for -1.";

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        kernel("vt.constant")
            .summary("A tracked number")
            .details(LIFETIME)
            .attribute("value", AttributeKind::Typed(I32), "the number")
            .result("tracked", TRACKED)
            .allocates()
            .outside(),
        kernel("vt.add")
            .summary("The sum, as a new tracked number; wraps")
            .details(LIFETIME)
            .operand("lhs", TRACKED)
            .operand("rhs", TRACKED)
            .result("sum", TRACKED)
            .reads(0)
            .reads(1)
            .allocates()
            .outside(),
        kernel("vt.print")
            .summary("Prints `print vt_value(N)`")
            .operand("value", TRACKED)
            .result("done", Chain)
            .reads(0)
            .outside(),
    ]
}
