//! Tests of programs and their bytes. `UPDATE_EXPECT=1` rewrites the bytes and their dumps.
//!
//! The bytes of `constant` and `arguments` are the original's.

use std::{fs, path::PathBuf};

use expect_test::expect_file;
use tfrt_bef::{BefFile, dump};
use tfrt_compiler::{CompileOptions, compile};
use tfrt_ir::{Source, parse};

fn compile_text(name: &str, text: &str, strip: bool) -> Vec<u8> {
    let module = parse(&Source::new(name, text)).unwrap_or_else(|e| panic!("{}", e.render(false)));
    let bytes = compile(&module, &CompileOptions { strip });
    bytes
        .unwrap_or_else(|errors| panic!("{}", errors.render(false)))
        .as_bytes()
        .to_vec()
}

/// Compiles `golden/NAME.mlir` under the file name `shown`.
fn check(name: &str, shown: &str) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let text = fs::read_to_string(folder.join(format!("{name}.mlir"))).unwrap();
    let bytes = compile_text(shown, &text, false);
    let golden = folder.join(format!("{name}.bef"));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&golden, &bytes).unwrap();
    }
    let open = |bytes: &[u8]| BefFile::open(tfrt_bef::BefBuffer::copy_from(bytes)).unwrap();
    expect_file![folder.join(format!("{name}.dump"))].assert_eq(&dump(&open(&bytes)));
    assert_eq!(bytes, fs::read(golden).unwrap());
    let stripped = open(&compile_text(shown, &text, true));
    assert!(!stripped.has_optional_sections());
}

#[test]
fn constant() {
    check("constant", "f.mlir");
}

#[test]
fn arguments() {
    check("arguments", "g.mlir");
}

#[test]
fn control() {
    check("control", "control.mlir");
}

#[test]
fn attributes() {
    check("attributes", "attributes.mlir");
}

#[test]
fn core_runtime() {
    check("core_runtime", "core_runtime.mlir");
}

#[test]
fn locations() {
    check("locations", "locations.mlir");
}

#[test]
fn modules() {
    check("modules", "modules.mlir");
}

#[test]
fn the_originals_bytes_are_the_ones_that_the_reader_is_tested_with() {
    for name in ["constant", "arguments"] {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        let reader = folder.join("../../../bef/tests/golden");
        let file = format!("{name}.bef");
        assert_eq!(
            fs::read(folder.join(&file)).unwrap(),
            fs::read(reader.join(&file)).unwrap()
        );
    }
}

#[test]
fn empty_module_has_empty_sections() {
    let expected = [
        0x0b, 0xef, 0x00, 0x00, 0x00, 0x01, 0x00, 0x02, 0x02, 0x00, 0x03, 0x02, 0x00, 0x04, 0x02,
        0x00, 0x05, 0x00, 0x08, 0x02, 0x00, 0x09, 0x02, 0x00, 0x0a, 0x02, 0x00,
    ];
    assert_eq!(compile_text("empty.mlir", "module {}", false), expected);
}

#[test]
fn stripped_file_has_no_names_of_attributes() {
    let text = "func.func @f() -> i32 {\n  %a = tfrt.constant.i32 42\n  tfrt.return %a : i32\n}\n";
    let bytes = compile_text("f.mlir", text, true);
    // Header, strings without "value", then the attribute, which needs the flag here.
    assert_eq!(bytes[..5], [0x0b, 0xef, 0x00, 0x00, 0x30]);
    assert_eq!(bytes[0x1d..0x24], [0x01, 0x09, 0x04, 42, 0, 0, 0]);
}
