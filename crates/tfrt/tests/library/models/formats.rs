//! Formats that are added: files, folders, limits.

use std::path::Path;

use tfrt::import::{Dim, GraphBuilder, Imported, ReadLimits, Source};
use tfrt::input::Input;
use tfrt::ir::{Diagnostic, Diagnostics, Location, OpState, Type};
use tfrt::ops::OpDef;
use tfrt::ops::names::Name;
use tfrt::{Format, Formats, Runtime, Tensor, Untrusted};

/// Models are folders with a file `chain`, whose words are functions that are applied one after the other.
const CHAIN: Format = Format::new("chain", import)
    .recognises(|head| head.is_folder && head.path.is_some_and(|path| path.join("chain").is_file()))
    .names(&[Name::new("relu", "relu"), Name::new("neg", "neg")])
    .expand(&[
        ("twice", |here| {
            let x = here.operand(0)?;
            Ok(vec![here.add("graph.add", &[x, x], &[])])
        }),
        ("never", |_| Err("is never right".to_owned())),
        ("none", |_| Ok(Vec::new())),
    ]);

fn import(source: &Source<'_>, limits: &ReadLimits) -> Result<Imported, Diagnostics> {
    let wrong = |message: String| {
        let place = Location::FileLineCol {
            file: source.name.into(),
            line: 0,
            column: 0,
        };
        Diagnostics::from(Diagnostic::error("CHAIN", message).at_location(place))
    };
    let text = source
        .external_data
        .read("chain", limits.bytes)
        .map_err(wrong)?;
    let mut graph = GraphBuilder::new(limits);
    let mut last = "x".to_owned();
    graph.input(&last, Type::F32, Some(&[Dim::Unknown]), Location::Unknown);
    for (at, word) in String::from_utf8_lossy(&text)
        .split_whitespace()
        .enumerate()
    {
        let value = graph.value(&last).map_err(wrong)?;
        last = format!("{word}{at}");
        let state = OpState::new(format!("chain.{word}")).operand(value);
        graph.tensor(&last, state).map_err(wrong)?;
    }
    let value = graph.value(&last).map_err(wrong)?;
    graph.name("y", value);
    graph.output("y").map_err(wrong)?;
    let mut imported = graph.finish();
    imported.notes.push(Diagnostic::remark("CHAIN", "a chain"));
    Ok(imported)
}

fn folder(name: &str, text: &str) -> std::path::PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("formats")
        .join(name);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("chain"), text).unwrap();
    folder
}

fn formats() -> Formats {
    Formats::builtin().with(CHAIN)
}

#[test]
fn folders_may_be_models() {
    let path = folder("fine", "relu twice neg");
    let runtime = Runtime::builder().formats(formats()).build();
    let model = runtime.open_model(&path).unwrap();
    let x = Tensor::from_slice(&[3], &[1.0_f32, -2.0, 3.5]).unwrap();
    let outputs = model.call(&runtime.context(), [("x", x)]).wait().unwrap();
    let y: Vec<f32> = outputs.tensor("y").unwrap().to_vec().unwrap();
    assert_eq!(y, [-2.0, -0.0, -7.0]);

    let input = Input::read_with(&path, &formats(), &ReadLimits::default()).unwrap();
    let notes = input.imported().unwrap().unwrap().notes;
    assert_eq!(notes.iter().next().unwrap().message(), "a chain");
    assert_eq!(
        input.files_beside(),
        [std::fs::canonicalize(path.join("chain")).unwrap()]
    );
    assert!(input.survey().unwrap().unwrap().unknown.is_empty());
    // To nobody else is it one.
    assert!(Runtime::new().open_model(&path).is_err());
}

#[test]
fn what_a_function_of_a_format_refuses_is_told() {
    let runtime = Runtime::builder().formats(formats()).build();
    for (text, expected) in [
        ("relu never", "'chain.never' op is never right [TF0516]"),
        (
            "none",
            "'chain.none' op has a form that nothing here stands for [TF0516]",
        ),
    ] {
        let error = runtime.open_model(folder("refused", text)).unwrap_err();
        assert_eq!(error.to_string(), format!("error: {expected}"));
    }
}

#[test]
fn limits_hold_for_other_formats_too() {
    let path = folder("long", &"relu ".repeat(100));
    let limits = ReadLimits {
        bytes: 10,
        ..ReadLimits::default()
    };
    let input = Input::read_with(&path, &formats(), &limits).unwrap();
    let error = input.module().unwrap_err().to_string();
    let expected = "error: 'chain' has 500 bytes, expected at most 10 [CHAIN]";
    assert!(error.ends_with(expected), "{error}");
    let runtime = Runtime::builder().formats(formats());
    let untrusted = runtime.untrusted(Untrusted::default()).build();
    let error = untrusted.open_model(&path).unwrap_err().to_string();
    assert!(
        error.contains("refused to programs of strangers"),
        "{error}"
    );
}

#[test]
#[should_panic(expected = "there is a format of dialect 'chain' already")]
fn a_dialect_has_one_format() {
    let _twice = formats().with(CHAIN);
}

#[test]
#[should_panic(
    expected = "expected a row called DIALECT.NAME in a dialect of its own, found 'relu'"
)]
fn rows_of_a_format_have_its_dialect() {
    const ROWS: &[OpDef] = &[OpDef::new("relu", "Relu.")];
    let _bad = Formats::builtin().with(Format {
        rows: ROWS,
        ..CHAIN
    });
}
