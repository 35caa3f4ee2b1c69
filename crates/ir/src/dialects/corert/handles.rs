//! Tensor handles: their tensors, shapes and devices, and printing them.

use super::{HANDLE, TENSOR_TYPE, with_handler};
use crate::dialect::{
    OpDef,
    ValueKind::{Chain, Device, I32},
};
use crate::dialects::{
    OPERANDS, kernel,
    tfrt_dht::{SHAPE, TENSOR},
};

pub(super) fn definitions() -> Vec<OpDef> {
    let mut all = conversions();
    all.extend(transfers());
    all
}

fn conversions() -> Vec<OpDef> {
    vec![
        kernel("corert.ht_to_tensorhandle")
            .summary("A handle of a tensor, on the host's device")
            .details("The tensor is shared, and must not be written any more.")
            .operand("tensor", TENSOR)
            .operand("chain", Chain)
            .result("handle", HANDLE)
            .reads(0),
        kernel("corert.tensorhandle_to_ht")
            .summary("The tensor that a handle refers to, which must not be written")
            .operand("handle", HANDLE)
            .operand("chain", Chain)
            .result("tensor", TENSOR)
            .no_effects(),
        kernel("corert.tensorhandle_to_shape")
            .summary(
                "The shape of the tensor that a handle refers to, maybe before the tensor is there",
            )
            .operand("handle", HANDLE)
            .operand("chain", Chain)
            .result("shape", SHAPE)
            .no_effects(),
        OpDef::new("corert.tensorhandle_to_int32")
            .summary("The number that a handle refers to")
            .operand("handle", HANDLE)
            .result("number", I32)
            .fails(
                "InvalidArgument",
                "expected an i32 of no dimensions or of shape [1], found a tensor of TYPE SHAPE",
                "the tensor is something else",
            )
            .pure()
            .format(OPERANDS)
            .example(with_handler(
                "",
                "%handle = corert.const_dense_tensor dense<7> : tensor<i32>
%number = corert.tensorhandle_to_int32 %handle
%done = tfrt.print.i32 %number, %chain",
            ))
            .prints("int32 = 7"),
        prints_handle(kernel("corert.print_tensorhandle").operand("handle", HANDLE))
            .operand("chain", Chain)
            .result("done", Chain),
    ]
}

/// Completes the entry of an operation that prints the tensor of a handle.
pub(in crate::dialects) fn prints_handle(definition: OpDef) -> OpDef {
    definition
        .summary("Prints the tensor that a handle refers to, on a line of its own")
        .outside()
}

fn transfers() -> Vec<OpDef> {
    vec![
        OpDef::new("corert.transfer")
            .summary("A handle of the same tensor on a device, in a format")
            .details("Where the tensor is there in that format already, the result is the same handle.")
            .operand("source", HANDLE)
            .operand("device", Device)
            .operand("tensor_type", TENSOR_TYPE)
            .result("transferred", HANDLE)
            .fails(
                "Unknown",
                "cannot convert from FORMAT to FORMAT",
                "there is no way from one format to the other",
            )
            .asynchronous()
            .pure()
            .format(OPERANDS)
            .example(transferred(
                "%type = corert.get_dst_tensor_type %x, %device
%there = corert.transfer %x, %device, %type",
            )),
        OpDef::new("corert.transfer_inferred_tensortype")
            .summary("A handle of the same tensor on a device, in a format that the device has")
            .details("On the same device the result is the same handle.")
            .operand("source", HANDLE)
            .operand("device", Device)
            .result("transferred", HANDLE)
            .fails(
                "Unknown",
                "cannot convert from FORMAT to FORMAT",
                "there is no way from one format to the other",
            )
            .asynchronous()
            .pure()
            .format(OPERANDS)
            .example(transferred(
                "%there = corert.transfer_inferred_tensortype %x, %device",
            )),
        OpDef::new("corert.get_dst_tensor_type")
            .summary("The format that a tensor is to have on a device")
            .operand("source", HANDLE)
            .operand("device", Device)
            .result("tensor_type", TENSOR_TYPE)
            .fails(
                "Unknown",
                "failed to find dst device type for src_tensor_type=FORMAT and dst_device_type=TYPE",
                "devices of that type have no tensors",
            )
            .pure()
            .format(OPERANDS)
            .example(transferred(
                "%type = corert.get_dst_tensor_type %x, %device",
            )),
    ]
}

/// Returns a program with a handle `%x` and a device `%device`.
fn transferred(lines: &str) -> String {
    let body = format!(
        "%x = corert.const_dense_tensor dense<7> : tensor<i32>
%device = tfrt.get_device %chain {{device_name = \"CPU:0\"}}
{lines}"
    );
    with_handler("", &body)
}
