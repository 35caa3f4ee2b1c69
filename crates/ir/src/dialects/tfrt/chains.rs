//! Chains, values that only order effects; and devices.

use crate::dialect::{AttributeKind, OpDef, ValueKind::*};
use crate::dialects::{OPERANDS, kernel};

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        OpDef::new("tfrt.new.chain")
            .summary("A chain that is there at once")
            .details("What takes it waits for nothing.")
            .result("chain", Chain)
            .pure()
            .format("attr-dict")
            .example("%chain = tfrt.new.chain"),
        OpDef::new("tfrt.merge.chains")
            .summary("A chain that is there when all operands are")
            .details(
                "Operands of any type count. If some are errors, so is the chain: the error of \
                 the last of them.",
            )
            .rest("operands")
            .result("chain", Chain)
            .pure()
            .format("operands attr-dict : type(operands)?")
            .example(
                "%c0 = tfrt.new.chain
%x = tfrt.constant.i32 1
%chain = tfrt.merge.chains %c0, %x : !tfrt.chain, i32",
            ),
        kernel("tfrt.alias.value")
            .summary("The value, once the chain is there")
            .details("The result has the type of the value, and is the same value, not a copy.")
            .asynchronous()
            .operand("chain", Chain)
            .operand("value", Any)
            .result("late", Any)
            .pure(),
        OpDef::new("tfrt.get_device")
            .summary("The device of a name")
            .operand("chain", Chain)
            .attribute(
                "device_name",
                AttributeKind::String,
                "the name under which the host knows it, as `CPU:0`",
            )
            .result("device", Device)
            .fails(
                "Unknown",
                "cannot find device NAME",
                "the host has none of that name",
            )
            .no_effects()
            .format(OPERANDS)
            .example(
                "%chain = tfrt.new.chain\n\
                 %device = tfrt.get_device %chain {device_name = \"CPU:0\"}",
            ),
    ]
}
