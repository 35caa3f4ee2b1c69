//! `tfrt_tutorial`: a type and two kernels, as a newcomer would write them.

use super::kernel;
use crate::dialect::{
    OpDef,
    ValueKind::{self, *},
};

const COORDINATE: ValueKind = ValueKind::Dialect("!my.coordinate");

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        kernel("tfrt_tutorial.create_coordinate")
            .summary("A point of the plane")
            .operand("x", I32)
            .operand("y", I32)
            .result("point", COORDINATE)
            .no_effects(),
        kernel("tfrt_tutorial.print_coordinate")
            .summary("Prints `(X, Y)`")
            .operand("point", COORDINATE)
            .result("done", Chain)
            .outside(),
    ]
}
