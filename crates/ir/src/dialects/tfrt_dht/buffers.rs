//! Buffers, tensors that share them, and printing both.

use super::{BUFFER, Element, SHAPE, TENSOR, used_by_others, with_tensor};
use crate::dialect::{OpDef, ValueKind::*};
use crate::dialects::{OPERANDS, kernel};

pub(super) fn definitions() -> Vec<OpDef> {
    let mut all = vec![
        prints_tensor(OpDef::new("tfrt_dht.print_tensor").operand("tensor", TENSOR))
            .operand("chain", Chain)
            .result("done", Chain)
            .format(OPERANDS)
            .example(with_tensor(
                "tfrt_dht.create_uninitialized_tensor.i32.1",
                "%done = tfrt_dht.print_tensor %t, %chain",
            ))
            .prints("DenseHostTensor dtype = i32, shape = [1], values = [0]"),
        kernel("tfrt_dht.print_tensor_shape")
            .summary("Prints a shape, or that of a tensor, as `[2, 3]`")
            .operand("tensor", Any)
            .operand("chain", Chain)
            .result("done", Chain)
            .outside(),
        get_shape(OpDef::new("tfrt_dht.get_tensor_shape")),
        kernel("tfrt_dht.no_op_ht")
            .summary("Waits for a tensor and does nothing with it")
            .operand("tensor", TENSOR)
            .operand("chain", Chain)
            .result("done", Chain)
            .no_effects(),
        allocate(OpDef::new("tfrt_dht.allocate_buffer")),
        slice(
            OpDef::new("tfrt_dht.get_buffer_slice"),
            "tfrt_dht.allocate_buffer",
        ),
        OpDef::new("tfrt_dht.get_buffer")
            .summary("The buffer behind a tensor, which stays the tensor's")
            .operand("tensor", TENSOR)
            .operand("chain", Chain)
            .result("buffer", BUFFER)
            .result("done", Chain)
            .no_effects()
            .fails(
                "InvalidArgument",
                "expected a DenseHost tensor, found a FORMAT tensor of TYPE SHAPE",
                "the tensor has no such buffer",
            )
            .format(OPERANDS)
            .example(with_tensor(
                "tfrt_dht.create_uninitialized_tensor.i32.1",
                "%buffer, %got = tfrt_dht.get_buffer %t, %chain
%done = tfrt_dht.print_buffer %buffer, %got",
            ))
            .prints("HostBuffer<pointer=0x..."),
        OpDef::new("tfrt_dht.print_buffer")
            .summary("Prints `HostBuffer<pointer=0xADDRESS, size=N>`")
            .operand("buffer", BUFFER)
            .operand("chain", Chain)
            .result("done", Chain)
            .outside()
            .format(OPERANDS)
            .example(with_tensor(
                "tfrt_dht.create_uninitialized_tensor.i32.1",
                "%buffer, %got = tfrt_dht.get_buffer %t, %chain
%done = tfrt_dht.print_buffer %buffer, %got",
            ))
            .prints("HostBuffer<pointer=0x..."),
    ];
    let with_form = [
        "tfrt_dht.make_tensor.ui8",
        "tfrt_dht.make_tensor.ui16",
        "tfrt_dht.make_tensor.ui32",
        "tfrt_dht.make_tensor.ui64",
        "tfrt_dht.make_tensor.i32",
        "tfrt_dht.make_tensor.i64",
        "tfrt_dht.make_tensor.f32",
        "tfrt_dht.make_tensor.bool",
        "tfrt_dht.make_tensor.complex64",
        "tfrt_dht.make_tensor.complex128",
    ];
    all.extend(with_form.map(|name| make_with_form(OpDef::new(name))));
    let others = [
        "tfrt_dht.make_tensor.i8",
        "tfrt_dht.make_tensor.f64",
        "tfrt_dht.make_tensor.f16",
        "tfrt_dht.make_tensor.bf16",
    ];
    all.extend(others.map(|name| make(kernel(name))));
    all
}

/// Completes the entry of an operation that prints a tensor of any kind.
pub(in crate::dialects) fn prints_tensor(definition: OpDef) -> OpDef {
    let definition = definition
        .summary("Prints a tensor of any kind, on a line of its own")
        .details(
            "Dense tensors and tensors of strings show the first 16 elements. Floats have six \
             decimals and an exponent, truth values are 0 and 1, `f16` and `bf16` show their bits as \
             `fp16(N)` and `bf16(N)`. Behind sparse tensors there is an empty line more.",
        )
        .reads(0)
        .outside();
    used_by_others(definition)
}

pub(in crate::dialects) fn get_shape(definition: OpDef) -> OpDef {
    let name = definition.name();
    definition
        .summary("The shape of a tensor")
        .operand("tensor", TENSOR)
        .result("shape", SHAPE)
        .pure()
        .format(OPERANDS)
        .example(with_tensor(
            "tfrt_dht.create_uninitialized_tensor.i32.1",
            &format!(
                "%shape = {name} %t
%done = ts.print_shape %shape, %chain"
            ),
        ))
        .prints("shape = [1]")
}

pub(in crate::dialects) fn allocate(definition: OpDef) -> OpDef {
    let name = definition.name();
    definition
        .summary("A buffer of so many bytes, which are 0")
        .details("It lies at a multiple of the alignment, a power of two, and of 64 bytes.")
        .operand("size", I64)
        .operand("alignment", I64)
        .result("buffer", BUFFER)
        .fails(
            "ResourceExhausted",
            "Cannot allocate host buffer of N bytes",
            "the host has no memory left for it",
        )
        .fails(
            "InvalidArgument",
            "Cannot allocate host buffer of N bytes aligned to M",
            "there are no such numbers of bytes, or alignments",
        )
        .allocates()
        .format(OPERANDS)
        .example(format!(
            "%size = tfrt.constant.i64 16
%alignment = tfrt.constant.i64 8
%buffer = {name} %size, %alignment"
        ))
}

pub(in crate::dialects) fn slice(definition: OpDef, allocate: &str) -> OpDef {
    let name = definition.name();
    definition
        .summary("A part of a buffer, which shares its bytes")
        .operand("buffer", BUFFER)
        .operand("offset", I64)
        .operand("size", I64)
        .result("part", BUFFER)
        .fails(
            "InvalidArgument",
            "a slice of N bytes from M on is not in a buffer of L bytes",
            "it leads out of the buffer",
        )
        .no_effects()
        .format(OPERANDS)
        .example(format!(
            "%sixteen = tfrt.constant.i64 16
%eight = tfrt.constant.i64 8
%buffer = {allocate} %sixteen, %eight
%part = {name} %buffer, %eight, %eight"
        ))
}

/// Completes the entry of an operation that makes a tensor of a buffer, but for its chains.
pub(in crate::dialects) fn makes_tensor(definition: OpDef) -> OpDef {
    definition
        .summary("A tensor that shares its bytes with a buffer")
        .fails(
            "InvalidArgument",
            "dht.make_tensor failed: buffer_size (N) is not equal to the number of elements in shape \
             (SHAPE) times element size (M)",
            "the buffer is larger or smaller than the tensor",
        )
        .fails(
            "InvalidArgument",
            "a tensor of TYPE SHAPE begins at a multiple of N bytes in memory, the buffer M bytes behind one",
            "the buffer is a part that begins in between",
        )
        .no_effects()
}

fn make(definition: OpDef) -> OpDef {
    let definition = definition
        .operand("buffer", BUFFER)
        .operand("shape", SHAPE)
        .operand("chain", Chain)
        .result("tensor", TENSOR)
        .result("done", Chain);
    makes_tensor(definition)
}

fn make_with_form(definition: OpDef) -> OpDef {
    let name = definition.name();
    let what = format!(
        "%buffer, %got = tfrt_dht.get_buffer %t, %chain
%shape = ts.build_shape [1 : i64, 1 : i64]
%tensor, %made = {name} %buffer, %shape, %got
%done = tfrt_dht.fill_tensor_with_constant.{} %tensor, %made {}",
        Element::of(name).name,
        Element::of(name).one
    );
    make(definition)
        .format(OPERANDS)
        .example(with_tensor(name, &what))
}
