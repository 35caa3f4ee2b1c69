//! `choose TARGET TRIED AT_LEAST`: prints the line of a target for `tests/fuzz/seeds.txt`.
//!
//! Of the numbers below TRIED it takes those whose input makes something be said that those before it did not:
//! diagnostics, refusals, names of operations; and the first AT_LEAST whatever is said. With a folder as fourth
//! argument it tells, on standard error, what of the things said of its files no input that was taken makes be said.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::{fs, path::Path};

use tfrt_bef::{BefBuffer, BefFile};
use tfrt_compiler::{CompileOptions, compile, decompile};
use tfrt_fuzz::seeds::Corpus;
use tfrt_import::onnx;
use tfrt_ir::{Diagnostics, Module, Source, parse, verify};
use tfrt_serve::outside;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (target, tried, at_least, folder) = match arguments.as_slice() {
        [target, tried, at_least] => (target, tried, at_least, None),
        [target, tried, at_least, folder] => (target, tried, at_least, Some(folder)),
        _ => {
            eprintln!("Usage: choose TARGET TRIED AT_LEAST [FOLDER]");
            return ExitCode::from(2);
        }
    };
    let (Ok(tried), Ok(at_least)) = (tried.parse(), at_least.parse()) else {
        eprintln!("choose: expected two numbers, found '{tried}' and '{at_least}'");
        return ExitCode::from(2);
    };
    let corpus = Corpus::of(target);
    let mut heard = BTreeSet::new();
    let mut chosen = String::new();
    for number in 0_u64..tried {
        let said = said(target, &corpus.input(number));
        let is_new = !said.is_subset(&heard);
        heard.extend(said);
        if is_new || number < at_least {
            chosen += &format!(" {number}");
        }
    }
    println!("{target}:{chosen}");
    eprintln!("{target}: {} things said", heard.len());
    if let Some(folder) = folder {
        compare(target, Path::new(folder), &heard);
    }
    ExitCode::SUCCESS
}

fn compare(target: &str, folder: &Path, heard: &BTreeSet<String>) {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let contents = files.filter_map(|file| fs::read(file.path()).ok());
    let theirs: BTreeSet<String> = contents.flat_map(|bytes| said(target, &bytes)).collect();
    let missing: Vec<_> = theirs.difference(heard).collect();
    eprintln!("of the folder: {}, missing {missing:#?}", theirs.len());
}

/// Returns what is said of an input, without what it names.
fn said(target: &str, bytes: &[u8]) -> BTreeSet<String> {
    let mut said = BTreeSet::new();
    match target {
        "parse" | "round_trip" => match Source::from_bytes("fuzz.mlir", bytes.to_vec()) {
            Ok(source) => match parse(&source) {
                Ok(module) => of_module(&module, &mut said),
                Err(diagnostics) => of_diagnostics(&diagnostics, &mut said),
            },
            Err(diagnostics) => of_diagnostics(&diagnostics, &mut said),
        },
        "open" | "reopen" => match BefFile::open(BefBuffer::from_vec(bytes.to_vec())) {
            Ok(file) => match decompile(&file) {
                Ok(decompiled) => of_module(&decompiled.module, &mut said),
                Err(diagnostics) => of_diagnostics(&diagnostics, &mut said),
            },
            Err(error) => drop(said.insert(without_names(error.message()))),
        },
        "import" => match onnx::import(bytes.to_vec(), &onnx::Options::new("fuzz.onnx")) {
            Ok(module) => of_module(&module, &mut said),
            Err(diagnostics) => of_diagnostics(&diagnostics, &mut said),
        },
        "decode" => tfrt_fuzz::values::with_host(|host| {
            let context = tfrt_host::codec::DecodeContext::new(host);
            let buffer = tfrt_host::memory::HostBuffer::copy_of(host.allocator(), bytes);
            let buffer = buffer.expect("there is memory");
            said.insert(match host.codecs().decode_buffer(&buffer, &context) {
                Ok(value) => format!("a {}", value.type_name().unwrap_or_default()),
                Err(error) => without_names(error.message()),
            });
        }),
        "requests" => {
            let kind = bytes
                .first()
                .map(|first| usize::from(*first) % outside::N_KINDS);
            let refused = outside::read_again(bytes).expect("what is read is written");
            let about = refused.map_or_else(|| "read".to_owned(), |reason| without_names(&reason));
            said.insert(format!("{kind:?} {about}"));
        }
        _ => {}
    }
    said
}

fn of_module(module: &Module, said: &mut BTreeSet<String>) {
    if let Err(diagnostics) = verify(module) {
        return of_diagnostics(&diagnostics, said);
    }
    if let Err(diagnostics) = compile(module, &CompileOptions::default()) {
        return of_diagnostics(&diagnostics, said);
    }
    let text = module.to_string();
    let words = text.split_whitespace();
    let names = words.filter(|word| word.contains('.') && !word.contains(['%', '"', '@', '/']));
    said.extend(names.map(|name| format!("runs {}", without_names(name))));
}

fn of_diagnostics(diagnostics: &Diagnostics, said: &mut BTreeSet<String>) {
    for diagnostic in diagnostics.iter() {
        let message = without_names(diagnostic.message());
        said.insert(format!("{} {message}", diagnostic.code().unwrap_or("")));
    }
}

/// Returns a message without numbers and what stands in quotes.
fn without_names(message: &str) -> String {
    let mut outside = message.to_owned();
    for quote in ['\'', '"'] {
        outside = outside.split(quote).step_by(2).collect();
    }
    let words = outside.split_whitespace();
    let plain =
        words.filter(|word| !word.contains(|c: char| c.is_ascii_digit() || "%@\\".contains(c)));
    plain.collect::<Vec<_>>().join(" ")
}
