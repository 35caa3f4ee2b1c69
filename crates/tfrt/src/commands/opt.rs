//! `tfrt opt`: parse, verify, print.

use std::io::{self, Write};

use tfrt::input;
use tfrt::ir::{PrintOptions, print};

use super::compile::read_text;
use super::testing;
use crate::failure::{ExitStatus, Failure};
use crate::options::OptOptions;
use crate::talk::Talk;

/// Prints a text, or each part of it, as our printer would write it.
pub fn opt(options: &OptOptions, talk: &Talk) -> Result<ExitStatus, Failure> {
    let source = read_text(&options.file)?;
    let testing = options.testing;
    if testing.verify_diagnostics {
        return testing::compare(&source, testing, talk, |part| input::parse(part).map(drop));
    }
    let how = PrintOptions {
        generic: options.generic,
        ..PrintOptions::default()
    };
    let mut texts = Vec::new();
    let mut status = ExitStatus::Fine;
    for part in testing::parts(&source, testing) {
        match input::parse(&part) {
            Ok(module) => texts.push(print(&module, how)),
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
