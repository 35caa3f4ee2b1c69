//! `tfrt diff`: two programs compared by structure.
//!
//! Both are compiled, if they are text, and decompiled, so that they say the same kind of
//! things. Functions are compared by name. The operations of two blocks are aligned by what
//! they are, then their operands are compared under that alignment; so one operation more does
//! not make a difference of all that follow.

mod align;
mod compare;

use std::path::Path;

use serde::Serialize;
use tfrt::compiler::decompile;
use tfrt::input::Input;
use tfrt::ir::Module;

use super::{print_json, print_line, refuse_second_stdin};
use crate::failure::{ExitStatus, Failure};
use crate::options::DiffOptions;
use crate::talk::Talk;

/// The form of the report.
pub const SCHEMA: &str = "tfrt.diff/1";

/// Compares two programs.
pub fn diff(options: &DiffOptions, talk: &Talk) -> Result<ExitStatus, Failure> {
    refuse_second_stdin([&*options.old, &*options.new])?;
    let old = restored(&options.old, talk)?;
    let new = restored(&options.new, talk)?;
    let differences = compare::modules(&old, &new);
    let same = differences.is_empty();
    if options.json {
        print_json(&Document {
            schema: SCHEMA,
            same,
            differences,
        })?;
    } else {
        for difference in &differences {
            print_line(&difference.to_string())?;
        }
    }
    Ok(match same {
        true => ExitStatus::Fine,
        false => ExitStatus::Rejected,
    })
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    same: bool,
    differences: Vec<compare::Difference>,
}

/// Returns the program in a file, with no more than bytes can say.
fn restored(path: &Path, talk: &Talk) -> Result<Module, Failure> {
    let file = Input::read(path)?.open()?;
    let restored = decompile(&file)?;
    if !restored.warnings.is_empty() {
        talk.failure(&restored.warnings.into());
    }
    Ok(restored.module)
}
