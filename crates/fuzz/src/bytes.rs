//! Properties of bytes: the gate refuses them with an offset, or they are safe to use.

use std::cell::OnceCell;

use tfrt_bef::{BefBuffer, BefFile};
use tfrt_compiler::{CompileOptions, compile, decompile};
use tfrt_differential::test_runtime::TestRuntime;
use tfrt_ir::{PrintOptions, Source, print};

use crate::{text::look_at, walk};

thread_local! {
    static RUNTIME: OnceCell<TestRuntime> = const { OnceCell::new() };
}

/// Copies bytes to a box of just their size, so that reading past it is noticed.
fn exact(bytes: &[u8]) -> BefBuffer {
    BefBuffer::from_vec(Vec::from(bytes.to_vec().into_boxed_slice()))
}

/// Opens bytes, reads everything in them, loads them, and runs what can be run.
///
/// # Panics
///
/// If they are refused at a place that is not in them, or accepted and not safe to use.
pub fn open(bytes: &[u8]) {
    match BefFile::open(exact(bytes)) {
        Err(error) => {
            assert!(error.offset() <= bytes.len(), "{error}");
            assert!(!error.message().is_empty());
        }
        Ok(file) => {
            walk::read_all(&file);
            let run = |runtime: &TestRuntime| runtime.run_untrusted(&file);
            let ran = RUNTIME.with(|runtime| run(runtime.get_or_init(TestRuntime::harmless)));
            if let Err(complaint) = ran {
                panic!("{complaint}");
            }
        }
    }
}

/// Opens bytes, decompiles them, compiles that, and does so again with the result, which must stay
/// as it is.
///
/// Bytes need not be as our compiler writes them: they may order their tables otherwise, hold
/// what nobody refers to, or say what no text can say. So the first text may be refused. But what
/// it compiles to is a file of ours, which must come back to the byte.
///
/// # Panics
///
/// If it does not.
pub fn reopen(bytes: &[u8]) {
    let Ok(file) = BefFile::open(exact(bytes)) else {
        return;
    };
    let module = match decompile(&file) {
        Ok(decompiled) => decompiled.module,
        Err(diagnostics) => return look_at(&diagnostics),
    };
    for generic in [false, true] {
        let locations = true;
        print(&module, PrintOptions { generic, locations });
    }
    let ours = match compile(&module, &CompileOptions::default()) {
        Ok(bytes) => bytes,
        Err(diagnostics) => return look_at(&diagnostics),
    };
    // What the verifier refuses may also be refused by the gate.
    let is_valid = tfrt_ir::verify(&module).is_ok();
    let file = match BefFile::open(ours.clone()) {
        Ok(file) => file,
        Err(_) if !is_valid => return,
        Err(error) => panic!("the gate refuses what was compiled: {error}"),
    };
    let module = match decompile(&file) {
        Ok(decompiled) => decompiled.module,
        Err(diagnostics) => panic!("what was compiled does not come back: {diagnostics}"),
    };
    match compile(&module, &CompileOptions::default()) {
        Ok(again) => same(&ours, &again),
        Err(diagnostics) => panic!("what came back does not compile: {diagnostics}"),
    }
    for generic in [false, true] {
        let locations = true;
        let text = print(&module, PrintOptions { generic, locations });
        let module = match tfrt_ir::parse(&Source::new("fuzz.mlir", text.as_str())) {
            Ok(module) => module,
            Err(_) if !is_valid => continue,
            Err(diagnostics) => panic!("{diagnostics}\nin what was decompiled:\n{text}"),
        };
        match compile(&module, &CompileOptions::default()) {
            Ok(again) => same(&ours, &again),
            Err(diagnostics) => panic!("{diagnostics}\nin what was decompiled:\n{text}"),
        }
    }
}

/// Compares bytes, and shows the first lines that differ.
///
/// # Panics
///
/// If they are not the same.
pub fn same(before: &BefBuffer, after: &BefBuffer) {
    if before.as_bytes() == after.as_bytes() {
        return;
    }
    let shown = |bytes: &BefBuffer| match BefFile::open(bytes.clone()) {
        Ok(file) => tfrt_bef::dump(&file),
        Err(error) => error.to_string(),
    };
    let (before, after) = (shown(before), shown(after));
    let lines = before.lines().zip(after.lines());
    let differing: Vec<_> = lines.filter(|(old, new)| old != new).take(8).collect();
    panic!("other bytes: {differing:#?}");
}
