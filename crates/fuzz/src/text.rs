//! Properties of texts: whatever they are, there is an answer.

use std::ops::Range;

use tfrt_bef::{BefBuffer, BefFile};
use tfrt_compiler::{CompileOptions, compile};
use tfrt_ir::verifier::Chains;
use tfrt_ir::{Diagnostics, Module, PrintOptions, Source, parse_in, print, verify, verify_in};

/// The file name of texts.
const NAME: &str = "fuzz.mlir";

/// The options of both forms of a module, with locations.
const FORMS: [PrintOptions; 2] = [
    PrintOptions {
        generic: false,
        locations: true,
    },
    PrintOptions {
        generic: true,
        locations: true,
    },
];

/// Lexes, parses and verifies a text, and renders its diagnostics.
///
/// # Panics
///
/// If tokens leave out more than blanks and comments, if a diagnostic is not inside the text, or if the gate refuses what the compiler writes for a
/// text that verifies.
pub fn parse(bytes: &[u8]) {
    let source = match Source::from_bytes(NAME, bytes.to_vec()) {
        Ok(source) => source,
        Err(diagnostics) => return look_at(&diagnostics),
    };
    lex(source.text());
    let dialects = tfrt::Formats::builtin().text_dialects();
    let module = match parse_in(&source, &dialects) {
        Ok(module) => module,
        Err(diagnostics) => return look_at(&diagnostics),
    };
    for options in FORMS {
        print(&module, options);
    }
    if let Err(diagnostics) = verify_in(&module, &dialects, Chains::Required) {
        return look_at(&diagnostics);
    }
    match compile(&module, &CompileOptions::default()) {
        Ok(bytes) => match BefFile::open(bytes) {
            Ok(file) => crate::walk::read_all(&file),
            Err(error) => panic!("the gate refuses what was compiled: {error}"),
        },
        Err(diagnostics) => look_at(&diagnostics),
    }
}

/// Checks that nothing but blanks and comments lies between tokens, and a mark of the byte order before the first.
fn lex(text: &str) {
    let is_nothing = |line: &str| line.is_empty() || line.starts_with("//");
    let between = |range: Range<usize>| {
        for line in text[range].lines() {
            assert!(is_nothing(line.trim_start()), "no token has {line:?}");
        }
    };
    let mark = '\u{feff}';
    let mut end = if text.starts_with(mark) {
        mark.len_utf8()
    } else {
        0
    };
    for span in tfrt_ir::tokens(text) {
        let range = span.range();
        assert!(!range.is_empty(), "a token of nothing at {}", range.start);
        between(end..range.start);
        end = range.end;
    }
    between(end..text.len());
}

/// Prints a text that parses, and parses what was printed.
///
/// # Panics
///
/// If what was printed of a text that verifies does not parse, prints otherwise, or compiles to
/// other bytes.
pub fn round_trip(bytes: &[u8]) {
    let Ok(source) = Source::from_bytes(NAME, bytes.to_vec()) else {
        return;
    };
    let Ok(module) = tfrt_ir::parse(&source) else {
        return;
    };
    let is_valid = verify(&module).is_ok();
    let written = is_valid.then(|| compiled(&module)).flatten();
    for options in FORMS {
        let text = print(&module, options);
        let again = match tfrt_ir::parse(&Source::new(NAME, text.as_str())) {
            Ok(again) => again,
            Err(_) if !is_valid => continue,
            Err(diagnostics) => panic!("{diagnostics}\nin what was printed:\n{text}"),
        };
        let printed = print(&again, options);
        assert_eq!(printed, text, "printed, parsed and printed again");
        if !is_valid {
            continue;
        }
        if let Err(diagnostics) = verify(&again) {
            panic!("{diagnostics}\nin what was printed:\n{text}");
        }
        let bytes = compiled(&again);
        let same =
            bytes.as_ref().map(BefBuffer::as_bytes) == written.as_ref().map(BefBuffer::as_bytes);
        assert!(same, "other bytes, printed and compiled:\n{text}");
    }
}

fn compiled(module: &Module) -> Option<BefBuffer> {
    compile(module, &CompileOptions::default()).ok()
}

/// Shows diagnostics in each way, and checks that each is at a place of its text.
pub(crate) fn look_at(diagnostics: &Diagnostics) {
    assert!(diagnostics.iter().next().is_some(), "refused for no reason");
    for diagnostic in diagnostics.iter() {
        assert!(!diagnostic.message().is_empty(), "{diagnostic:?}");
        let Some(position) = diagnostic.position() else {
            continue;
        };
        let text = position.source.text();
        let range = position.span.range();
        assert!(
            text.get(range.clone()).is_some(),
            "{range:?}: {diagnostic:?}"
        );
    }
    let _ = diagnostics.to_string();
    let _ = diagnostics.render(true);
}
