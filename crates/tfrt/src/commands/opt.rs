//! `tfrt opt`: parse, verify, run passes, print.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

use tfrt::input::Input;
use tfrt::ir::{Diagnostics, Module, PrintOptions, Source, parse_in, print};
use tfrt::{Formats, HostEvaluator};
use tfrt_compiler::legalize::Context;
use tfrt_compiler::pipeline::{self, PassTiming, Property};

use super::compile::no_text;
use super::testing;
use crate::console::Console;
use crate::failure::{ExitStatus, Failure};
use crate::options::OptOptions;

/// Prints a model or a text, or each part of it, as passes left it and our printer writes it: reads, transforms,
/// prints.
pub fn opt(options: &OptOptions, console: &Console) -> Result<ExitStatus, Failure> {
    if options.list {
        return super::print_line(list().trim_end()).map(|()| ExitStatus::Fine);
    }
    let testing = options.testing;
    match Input::read(&options.file)? {
        Input::Text(source) if testing.verify_diagnostics => {
            testing::compare(&source, testing, console, |part| {
                // Remarks are announced as well as errors.
                let transformed = transform_text(part, options, console);
                Err(transformed.map_or_else(|wrong| wrong, |(_, remarks)| remarks))
            })
        }
        Input::Text(source) => opt_text(&source, options, console),
        input @ Input::Model { .. } if !testing.is_asked_for() => {
            opt_model(&input, options, console)
        }
        input => Err(no_text(&input)),
    }
}

/// Prints each part of a text, as passes left it, and tells of the errors of all.
fn opt_text(
    source: &Source,
    options: &OptOptions,
    console: &Console,
) -> Result<ExitStatus, Failure> {
    let mut texts = Vec::new();
    let mut status = ExitStatus::Fine;
    for part in testing::parts(source, options.testing) {
        match transform_text(&part, options, console) {
            Ok((module, remarks)) => {
                tell_remarks(remarks, console);
                texts.push(print(&module, how(options)));
            }
            Err(diagnostics) => {
                console.failure(&Failure::Text(diagnostics));
                status = ExitStatus::Rejected;
            }
        }
    }
    write(&texts.join(testing::SEPARATOR))?;
    Ok(status)
}

/// Prints a model in dialect `onnx`, as passes left it.
fn opt_model(
    input: &Input,
    options: &OptOptions,
    console: &Console,
) -> Result<ExitStatus, Failure> {
    let module = input.module()?.expect("a model is a module");
    let (module, remarks) = transform(module, options, console)?;
    tell_remarks(remarks, console);
    write(&print(&module, how(options)))?;
    Ok(ExitStatus::Fine)
}

fn tell_remarks(remarks: Diagnostics, console: &Console) {
    if !remarks.is_empty() {
        console.failure(&Failure::Text(remarks));
    }
}

/// Writes a text as it is to standard output.
fn write(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Parses a text and runs the passes over it, as [`transform`] does.
fn transform_text(
    source: &Source,
    options: &OptOptions,
    console: &Console,
) -> Result<(Module, Diagnostics), Diagnostics> {
    let dialects = Formats::builtin().text_dialects();
    let module = parse_in(source, &dialects)?;
    transform(module, options, console)
}

fn how(options: &OptOptions) -> PrintOptions {
    PrintOptions {
        generic: options.generic,
        ..PrintOptions::default()
    }
}

/// Verifies a module and runs the passes over it; returns the module and the remarks of the passes.
fn transform(
    mut module: Module,
    options: &OptOptions,
    console: &Console,
) -> Result<(Module, Diagnostics), Diagnostics> {
    let mut pipeline = options.passes.clone();
    pipeline.verify_each = options.verify_each;
    let mut passes = Vec::new();
    let remarks = pipeline.run_with(
        &mut module,
        &Context::new(&HostEvaluator::default()),
        &mut |ran, module| {
            if options.print_after {
                console.say(&format!("// after {}\n{module}", ran.pass.name));
            }
            passes.push(ran);
        },
    )?;
    if options.timing {
        console.say(&timing(&passes));
    }
    Ok((module, remarks))
}

/// Returns a line for each pass.
fn list() -> String {
    let width = pipeline::all().iter().map(|pass| pass.name.len()).max();
    let width = width.unwrap_or(0);
    let mut text = String::new();
    for pass in pipeline::all() {
        write!(text, "{:width$}  {}", pass.name, pass.summary).expect("a String takes all text");
        for (word, properties) in [
            ("needs", pass.needs),
            ("gives", pass.gives),
            ("breaks", pass.breaks),
        ] {
            let names: Vec<String> = properties.iter().map(Property::to_string).collect();
            if !names.is_empty() {
                write!(text, " [{word} {}]", names.join(", ")).expect("a String takes all text");
            }
        }
        text.push('\n');
    }
    text
}

/// Returns a table of what each pass cost.
fn timing(passes: &[PassTiming]) -> String {
    let mut text = String::from("      time    verify  pass\n");
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    for ran in passes {
        writeln!(
            text,
            "{:7.3} ms {:6.3} ms  {}",
            milliseconds(ran.time),
            milliseconds(ran.verify_time),
            ran.pass.name
        )
        .expect("a String takes all text");
    }
    text
}
