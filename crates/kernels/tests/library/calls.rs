//! Tests of calls: their cost, the threads and the order of their kernels, and their ends.

use tfrt_bef::BefFile;
use tfrt_compiler::{CompileOptions, compile};
use tfrt_host::{Function, HostContext, Program};

#[path = "calls/blocks.rs"]
mod blocks;
#[path = "calls/bound.rs"]
mod bound;
#[path = "calls/depth.rs"]
mod depth;
#[path = "calls/external_promises.rs"]
mod external_promises;
#[path = "calls/memory_limits.rs"]
mod memory_limits;
#[path = "calls/native.rs"]
mod native;
#[path = "calls/nonstrict.rs"]
mod nonstrict;
#[path = "calls/streams.rs"]
mod streams;
#[path = "calls/stuck.rs"]
mod stuck;

fn program(host: &HostContext, text: &str) -> Program {
    let module = tfrt_ir::parse(&tfrt_ir::Source::new("main.mlir", text)).unwrap();
    let bytes = compile(&module, &CompileOptions::default()).unwrap();
    Program::load(BefFile::open(bytes).unwrap(), host).unwrap()
}

fn main_of(host: &HostContext, text: &str) -> Function {
    program(host, text).function("main").unwrap()
}
