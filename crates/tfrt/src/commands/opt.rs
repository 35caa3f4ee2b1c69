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
use crate::failure::{ExitStatus, Failure};
use crate::options::OptOptions;
use crate::talk::Talk;

/// Prints a text, or each part of it, as passes left it and our printer writes it.
pub fn opt(options: &OptOptions, talk: &Talk) -> Result<ExitStatus, Failure> {
    if options.list {
        return super::print_line(list().trim_end()).map(|()| ExitStatus::Fine);
    }
    let testing = options.testing;
    let dialects = Formats::builtin().text_dialects();
    let parse = |source: &Source| parse_in(source, &dialects);
    let source = match Input::read(&options.file)? {
        Input::Text(source) => source,
        input @ Input::Model { .. } if !testing.is_asked_for() => {
            return opt_model(&input, options, talk);
        }
        input => return Err(no_text(&input)),
    };
    if testing.verify_diagnostics {
        return testing::compare(&source, testing, talk, |part| {
            // Remarks are announced as well as errors.
            let transformed = parse(part).and_then(|module| transform(module, options, talk));
            Err(transformed.map_or_else(|wrong| wrong, |(_, remarks)| remarks))
        });
    }
    let how = how(options);
    let mut texts = Vec::new();
    let mut status = ExitStatus::Fine;
    for part in testing::parts(&source, testing) {
        match parse(&part).and_then(|module| transform(module, options, talk)) {
            Ok((module, remarks)) => {
                if !remarks.is_empty() {
                    talk.failure(&Failure::Text(remarks));
                }
                texts.push(print(&module, how));
            }
            Err(diagnostics) => {
                talk.failure(&Failure::Text(diagnostics));
                status = ExitStatus::Rejected;
            }
        }
    }
    let mut out = io::stdout().lock();
    out.write_all(texts.join(testing::SEPARATOR).as_bytes())?;
    out.flush()?;
    Ok(status)
}

/// Prints a model in dialect `onnx`, as passes left it.
fn opt_model(input: &Input, options: &OptOptions, talk: &Talk) -> Result<ExitStatus, Failure> {
    let module = input.module()?.expect("a model is a module");
    let (module, remarks) = transform(module, options, talk)?;
    if !remarks.is_empty() {
        talk.failure(&Failure::Text(remarks));
    }
    let mut out = io::stdout().lock();
    out.write_all(print(&module, how(options)).as_bytes())?;
    out.flush()?;
    Ok(ExitStatus::Fine)
}

fn how(options: &OptOptions) -> PrintOptions {
    PrintOptions {
        generic: options.generic,
        ..PrintOptions::default()
    }
}

/// Verifies a module and runs the passes over it; returns what came of it and the remarks that they
/// made.
fn transform(
    mut module: Module,
    options: &OptOptions,
    talk: &Talk,
) -> Result<(Module, Diagnostics), Diagnostics> {
    let mut pipeline = options.passes.clone();
    pipeline.verify_each = options.verify_each;
    let mut passes = Vec::new();
    let remarks = pipeline.run_with(
        &mut module,
        &Context::new(&HostEvaluator::default()),
        &mut |ran, module| {
            if options.print_after {
                talk.say(&format!("// after {}\n{module}", ran.pass.name));
            }
            passes.push(ran);
        },
    )?;
    if options.timing {
        talk.say(&timing(&passes));
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
