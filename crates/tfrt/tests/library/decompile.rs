//! Bytes, text, bytes: `compile` undoes `decompile` on every program that there is.

use std::fs;
use std::path::{Path, PathBuf};

use tfrt::bef::{BefBuffer, BefFile, dump, listing};
use tfrt::compiler::{CompileOptions, compile, decompile};
use tfrt::ir::{PrintOptions, Source, parse, print, split, verify};
use tfrt_oracle::generate::{Options, generate};

/// The number of random programs that are tried, unless `TFRT_DECOMPILE_PROGRAMS` says so.
const N_PROGRAMS: u64 = 100;

/// Compiles a text, if it is a program.
fn compiled(source: &Source) -> Option<BefBuffer> {
    let module = parse(source).ok()?;
    compile(&module, &CompileOptions::default()).ok()
}

/// Checks that a file gives a module, and that text, which compile to the same bytes.
fn check(name: &str, bytes: BefBuffer) {
    let file = BefFile::open(bytes.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
    let restored = decompile(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(
        restored.warnings.is_empty(),
        "{name}: {}",
        restored.warnings
    );
    let again = compile(&restored.module, &CompileOptions::default());
    let again = again.unwrap_or_else(|error| panic!("{name}: {error}"));
    same(name, &bytes, &again);
    for generic in [false, true] {
        let locations = true;
        let text = print(&restored.module, PrintOptions { generic, locations });
        let module = parse(&Source::new("restored.mlir", text.clone()));
        let module = module.unwrap_or_else(|error| panic!("{name}: {error}"));
        let again = compile(&module, &CompileOptions::default());
        let again = again.unwrap_or_else(|error| panic!("{name}: {error}"));
        same(name, &bytes, &again);
    }
}

/// Compares bytes, and shows the first lines that differ.
fn same(name: &str, before: &BefBuffer, after: &BefBuffer) {
    if before.as_bytes() == after.as_bytes() {
        return;
    }
    let shown = |bytes: &BefBuffer| dump(&BefFile::open(bytes.clone()).unwrap());
    let (before, after) = (shown(before), shown(after));
    let lines = before.lines().zip(after.lines());
    let differing: Vec<_> = lines.filter(|(old, new)| old != new).take(8).collect();
    panic!("{name}: other bytes: {differing:#?}");
}

/// Checks that what verified still verifies.
fn check_verified(name: &str, source: &Source, bytes: BefBuffer) {
    if parse(source).is_ok_and(|module| verify(&module).is_ok()) {
        let file = BefFile::open(bytes).unwrap();
        let restored = decompile(&file).unwrap();
        verify(&restored.module).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

fn programs_under(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be read").path();
        // What is broken may compile to what the gate refuses.
        if path.ends_with("tests/broken") {
            continue;
        }
        if path.is_dir() {
            programs_under(&path, found);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "mlir")
        {
            found.push(path);
        }
    }
}

#[test]
fn programs_of_the_repository_come_back() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = Vec::new();
    for folder in ["tests", "examples", "crates/compiler/tests"] {
        programs_under(&root.join(folder), &mut paths);
    }
    let mut n_programs = 0;
    for path in paths {
        let name = path.to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("it is text");
        for part in split::split(&Source::new(name.clone(), text)) {
            if let Some(bytes) = compiled(&part) {
                check(&name, bytes.clone());
                check_verified(&name, &part, bytes);
                n_programs += 1;
            }
        }
    }
    assert!(n_programs > 50, "only {n_programs} programs");
}

#[test]
fn every_byte_of_programs_is_listed() {
    for seed in 0..40 {
        let text = generate(seed, Options::default()).to_string();
        let module = parse(&Source::new("random.mlir", text)).expect("random programs parse");
        for strip in [false, true] {
            let bytes = compile(&module, &CompileOptions { strip }).expect("they compile");
            let file = BefFile::open(bytes.clone()).expect("what compiles opens");
            let mut end = 0;
            listing::list(&file, &mut |piece| {
                assert_eq!(piece.start, end, "seed {seed}: {piece:?}");
                assert_ne!(piece.text, "unused", "seed {seed}");
                end = piece.end;
            });
            assert_eq!(end, bytes.as_bytes().len(), "seed {seed}");
        }
    }
}

#[test]
fn random_programs_come_back() {
    let number = std::env::var("TFRT_DECOMPILE_PROGRAMS").ok();
    let n_programs = number
        .and_then(|text| text.parse().ok())
        .unwrap_or(N_PROGRAMS);
    for seed in 0..n_programs {
        let options = Options {
            size: if seed % 8 == 0 { 32 } else { 8 },
            ..Options::default()
        };
        let text = generate(seed, options).to_string();
        let source = Source::new("random.mlir", text);
        let bytes = compiled(&source).expect("random programs compile");
        check(&format!("seed {seed}"), bytes.clone());
        check_verified(&format!("seed {seed}"), &source, bytes);
    }
}
