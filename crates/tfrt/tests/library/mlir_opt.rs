//! Programs in generic form are MLIR: Debian's `mlir-opt-19` reads them, and what it
//! prints compiles here to the same bytes. Without that tool nothing is tested.
//!
//! `TFRT_MLIR_OPT_PROGRAMS` is the number of random programs; 40 if unset.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tfrt::bef::{BefBuffer, BefFile};
use tfrt::compiler::{CompileOptions, compile, decompile};
use tfrt::ir::{Module, PrintOptions, Source, parse, print, split};
use tfrt_oracle::generate::{Options, generate};

const TOOL: &str = "mlir-opt-19";

/// The line between two modules of one text.
const SEPARATOR: &str = "// -----\n";

/// MLIR's own dialect `test` is registered in the tool and knows other types than ours.
const OURS: &str = "!test.";
const STAND_IN: &str = "!test_dialect.";

/// Returns whether the tool is there; if not, says so.
fn is_installed(test: &str) -> bool {
    let version = Command::new(TOOL).arg("--version").output();
    let is_there = version.is_ok_and(|output| output.status.success());
    if !is_there {
        println!("SKIPPED: {test}: {TOOL} is not installed");
    }
    is_there
}

/// Gives a text to the tool, and returns what it prints or complains about.
fn mlir_opt(text: &str, options: &[&str]) -> Result<String, String> {
    let mut child = Command::new(TOOL)
        .args(["--allow-unregistered-dialect", "--split-input-file"])
        .arg("--mlir-print-debuginfo")
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it is installed");
    let mut input = child.stdin.take().expect("it is piped");
    let text = text.replace(OURS, STAND_IN);
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    let _ = writer.join();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).replace(STAND_IN, OURS)),
        false => Err(told),
    }
}

fn generic(module: &Module) -> String {
    let options = PrintOptions {
        generic: true,
        locations: true,
    };
    print(module, options)
}

fn compiled(module: &Module) -> Option<BefBuffer> {
    compile(module, &CompileOptions::default()).ok()
}

/// Checks modules, each under a name: the tool takes them all, and gives them back.
fn check(modules: &[(String, Module)]) {
    let texts: Vec<String> = modules.iter().map(|(_, module)| generic(module)).collect();
    let all = texts.join(SEPARATOR);
    for options in [&["--mlir-print-op-generic"][..], &[]] {
        let printed = match mlir_opt(&all, options) {
            Ok(printed) => printed,
            Err(_) => {
                // Which of them is it?
                for ((name, _), text) in modules.iter().zip(&texts) {
                    let told = mlir_opt(text, options).err().unwrap_or_default();
                    assert!(told.is_empty(), "{name}: {told}\n{text}");
                }
                panic!("refused together: {}", modules[0].0);
            }
        };
        let parts = split::split(&Source::new("mlir-opt.mlir", printed));
        assert_eq!(parts.len(), modules.len(), "{}", modules[0].0);
        for ((name, before), part) in modules.iter().zip(&parts) {
            let after = parse(part).unwrap_or_else(|error| panic!("{name}: {error}"));
            let (old, new) = (compiled(before), compiled(&after));
            let is_same = old.as_ref().map(|bytes| bytes.as_bytes())
                == new.as_ref().map(|bytes| bytes.as_bytes());
            assert!(
                is_same,
                "{name}: other bytes\n{}\n{}",
                generic(before),
                part.text()
            );
            if old.is_none() {
                assert_eq!(generic(before), generic(&after), "{name}");
            }
        }
    }
}

fn programs_under(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be read").path();
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

/// Returns all modules of the repository that parse, and those that compile once more as the
/// decompiler restores them.
fn corpus() -> Vec<(String, Module)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = Vec::new();
    for folder in ["tests", "examples", "crates/compiler/tests"] {
        programs_under(&root.join(folder), &mut paths);
    }
    paths.sort();
    let mut modules = Vec::new();
    for path in paths {
        let name = path.to_string_lossy().into_owned();
        // Some of the broken ones are no text.
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        for part in split::split(&Source::new(name.clone(), text)) {
            let Ok(module) = parse(&part) else {
                continue;
            };
            if tfrt::ir::verify(&module).is_err() || is_beyond_us(&module) {
                continue;
            }
            if let Some(bytes) = compiled(&module) {
                modules.push((format!("{name}, decompiled"), restored(bytes)));
            }
            modules.push((name.clone(), module));
        }
    }
    modules
}

/// Returns whether there are operations of MLIR's own dialects, whose rules are not known here, or
/// functions with an empty name, which the tool prints and does not read.
fn is_beyond_us(module: &Module) -> bool {
    let mut found = false;
    module.walk_pre_order(module.top(), &mut |op| {
        let name = module.op(op).name();
        let mut dialects = ["arith.", "cf.", "scf."].iter();
        found |= dialects.any(|dialect| name.starts_with(dialect));
        found |= module.symbol_name(op) == Some("");
    });
    found
}

fn restored(bytes: BefBuffer) -> Module {
    let file = BefFile::open(bytes).expect("what compiles opens");
    decompile(&file).expect("it has all sections").module
}

#[test]
fn programs_of_the_repository_are_mlir() {
    if !is_installed("programs of the repository") {
        return;
    }
    let modules = corpus();
    assert!(modules.len() > 100, "only {}", modules.len());
    for some in modules.chunks(40) {
        check(some);
    }
}

#[test]
fn random_programs_are_mlir() {
    if !is_installed("random programs") {
        return;
    }
    let wanted = std::env::var("TFRT_MLIR_OPT_PROGRAMS").ok();
    let wanted = wanted.and_then(|text| text.parse().ok()).unwrap_or(40);
    let mut modules = Vec::new();
    for seed in 0..wanted {
        let text = generate(seed, Options::default()).to_string();
        let module = parse(&Source::new("random.mlir", text)).expect("random programs parse");
        let bytes = compiled(&module).expect("they compile");
        modules.push((format!("seed {seed}, decompiled"), restored(bytes)));
        modules.push((format!("seed {seed}"), module));
    }
    for some in modules.chunks(40) {
        check(some);
    }
}

/// Returns a module with the constants of `mlir_opt/attributes.txt`, one on each line, all in one
/// operation.
fn constants() -> Module {
    let lines = include_str!("mlir_opt/attributes.txt").lines();
    let entries: Vec<String> = lines
        .enumerate()
        .map(|(index, line)| format!("a{index:03} = {line}"))
        .collect();
    let text = format!("\"x.op\"() {{\n{}\n}} : () -> ()", entries.join(",\n"));
    let module = parse(&Source::new("attributes.mlir", text));
    module.unwrap_or_else(|error| panic!("{error}"))
}

/// Modules with every kind of location, name, region and function.
fn odd_modules() -> Vec<(String, Module)> {
    let text = include_str!("mlir_opt/modules.mlir");
    let parts = split::split(&Source::new("modules.mlir", text));
    let module = |part: &Source| {
        let module = parse(part).unwrap_or_else(|error| panic!("{error}"));
        (part.text().trim().to_owned(), module)
    };
    parts.iter().map(module).collect()
}

#[test]
fn constants_and_odd_modules_are_printed_as_they_are_read() {
    let modules = odd_modules().into_iter().map(|(_, module)| module);
    for module in modules.chain([constants()]) {
        for generic_form in [false, true] {
            let options = PrintOptions {
                generic: generic_form,
                locations: true,
            };
            let text = print(&module, options);
            let again = parse(&Source::new("again.mlir", text.clone()));
            let again = again.unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(generic(&module), generic(&again));
        }
    }
}

#[test]
fn constants_and_odd_modules_are_mlir() {
    if !is_installed("constants and odd modules") {
        return;
    }
    check(&[("constants".to_owned(), constants())]);
    check(&odd_modules());
}
