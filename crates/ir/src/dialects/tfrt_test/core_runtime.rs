//! Operations on values of the core runtime, for tests.

use crate::dialect::{AttributeKind, OpDef, ValueKind::Chain};
use crate::dialects::corert::{ATTRIBUTES, FROZEN, HANDLE, TENSOR_TYPE};
use crate::dialects::kernel;
use crate::dialects::tfrt_dht::TENSOR;

pub(super) fn definitions() -> Vec<OpDef> {
    let all = [
        kernel("tfrt_test.error_tensorhandle")
            .summary("An error in place of a tensor handle")
            .result("never", HANDLE)
            .fails("Unknown", "invalid tensorhandle", "always")
            .no_effects(),
        kernel("tfrt_test.get_static_tensor_type")
            .summary("A format of tensors, by its name")
            .attribute(
                "tensor_type",
                AttributeKind::String,
                "the name: `DenseHost`, `DenseGpu`",
            )
            .result("format", TENSOR_TYPE)
            .no_effects(),
        kernel("tfrt_test.print_tensor_type")
            .summary("Prints the name of a format of tensors")
            .operand("format", TENSOR_TYPE)
            .operand("chain", Chain)
            .result("done", Chain)
            .outside(),
        kernel("tfrt_test.tensorhandle_with_error_metadata")
            .summary("An error in place of a tensor handle")
            .details("The tensor is not looked at.")
            .operand("tensor", TENSOR)
            .operand("chain", Chain)
            .result("never", HANDLE)
            .fails("Unknown", "invalid tensor metadata", "always")
            .no_effects(),
        kernel("tfrt_test.corert.op_attrs_print")
            .summary("Prints a set of attributes, sorted by name, and an empty line")
            .operand("set", ATTRIBUTES)
            .operand("chain", Chain)
            .result("done", Chain)
            .reads(0)
            .outside(),
        kernel("tfrt_test.corert.op_attrs_freeze")
            .summary("What a set of attributes holds now")
            .operand("set", ATTRIBUTES)
            .operand("chain", Chain)
            .result("frozen", FROZEN)
            .result("done", Chain)
            .reads(0)
            .allocates(),
        kernel("tfrt_test.corert.op_attrs_ref_print")
            .summary("Prints a frozen set of attributes, sorted by name, and an empty line")
            .operand("frozen", FROZEN)
            .operand("chain", Chain)
            .result("done", Chain)
            .outside(),
    ];
    all.into()
}
