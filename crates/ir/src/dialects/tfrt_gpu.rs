//! `tfrt_gpu`: GPUs as the original's programs of 2021 to 2023 use them.
//!
//! Kernels are those of the crate `gpu`, which is built with the feature `gpu`. Constants of the vendor's libraries are
//! written by their names ([`keywords`]).

mod ccl;
mod dnn;
mod driver;
pub(super) mod keywords;
mod libraries;
mod memory;

use crate::dialect::{OpDef, ValueKind};
use crate::dialects::OPERANDS;

const DEVICE: ValueKind = ValueKind::Dialect("!tfrt_gpu.device");
const CONTEXT: ValueKind = ValueKind::Dialect("!tfrt_gpu.context");
const STREAM: ValueKind = ValueKind::Dialect("!tfrt_gpu.stream");
const EVENT: ValueKind = ValueKind::Dialect("!tfrt_gpu.event");
const ALLOCATOR: ValueKind = ValueKind::Dialect("!tfrt_gpu.allocator");
const BUFFER: ValueKind = ValueKind::Dialect("!tfrt_gpu.buffer");
const MODULE: ValueKind = ValueKind::Dialect("!tfrt_gpu.module");
const FUNCTION: ValueKind = ValueKind::Dialect("!tfrt_gpu.function");

/// The beginning of examples.
const BEGIN: &str = "%ordinal = tfrt.constant.i32 0
%device = tfrt_gpu.device.get CUDA, %ordinal
%context = tfrt_gpu.context.create %device
%stream = tfrt_gpu.stream.create %context
%c0 = tfrt.new.chain
";

/// Two buffers of 16 bytes that are filled, in examples.
const BUFFERS: &str = "%allocator = tfrt_gpu.allocator.create %context
%size = tfrt.constant.i64 16
%x = tfrt_gpu.mem.allocate %allocator, %stream, %size, %c0
%y = tfrt_gpu.mem.allocate %allocator, %stream, %size, %c0
%one = tfrt.constant.f32 1.0
%c1 = tfrt_gpu.mem.set %x, %one, %stream, %c0 : f32
%c2 = tfrt_gpu.mem.set %y, %one, %stream, %c1 : f32
";

/// A module and a kernel in it, in examples.
const KERNEL: &str = "%module = tfrt_gpu.module.load %context {data = \".version 6.0\\n.target sm_35\\n.address_size 64\\n.visible .global .align 4 .b8 table[16];\\n.visible .entry Kernel() { ret; }\\00\"}
%function = tfrt_gpu.module.get_function %module {name = \"Kernel\"}
";

pub(super) fn definitions() -> Vec<OpDef> {
    let mut all = driver::definitions();
    all.extend(memory::definitions());
    all.extend(libraries::definitions());
    all.extend(dnn::definitions());
    all.extend(ccl::definitions());
    all
}

/// Starts the entry of an operation that the driver or a library of a GPU carries out.
fn op(name: &'static str, summary: &'static str) -> OpDef {
    driver_fails(OpDef::new(name).summary(summary))
        .outside()
        .format(OPERANDS)
}

/// Starts the entry of an operation that only looks at its operands.
fn pure(name: &'static str, summary: &'static str) -> OpDef {
    OpDef::new(name).summary(summary).pure().format(OPERANDS)
}

fn shown(definition: OpDef, parts: &[&str]) -> OpDef {
    definition.example(parts.concat().trim_end().to_owned())
}

/// Adds what a driver reports.
pub(super) fn driver_fails(definition: OpDef) -> OpDef {
    definition.fails(
        "InvalidArgument",
        "CALL failed with CODE: MORE",
        "the driver refuses it: an object of another context, or one that was given back",
    )
}

/// Adds the error of tensors that a buffer can't be.
pub(super) fn tensor_make(definition: OpDef) -> OpDef {
    definition.fails(
        "InvalidArgument",
        "NAME failed: buffer_size (N) is not equal to the number of elements in shape (SHAPE) times element size (N)",
        "the buffer is of another size",
    )
}

/// Adds the error of buffers that are too small for what a descriptor or size says.
pub(super) fn sizes(definition: OpDef) -> OpDef {
    definition.fails(
        "InvalidArgument",
        "WHAT takes N bytes, the buffer has N",
        "a buffer is smaller than the operation's sizes say",
    )
}
