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
use tfrt::compiler::codes::SECTIONS_MISSING;
use tfrt::compiler::decompile;
use tfrt::input::Input;
use tfrt::ir::{Diagnostic, Diagnostics, Module};

use super::decompile::placed;
use super::{print_json, print_line, refuse_second_stdin};
use crate::console::Console;
use crate::failure::{ExitStatus, Failure};
use crate::options::DiffOptions;

use compare::Detail;

/// The name of the report's JSON schema.
pub const SCHEMA: &str = "tfrt.diff/1";

/// Compares two programs.
pub fn diff(options: &DiffOptions, console: &Console) -> Result<ExitStatus, Failure> {
    refuse_second_stdin([&*options.old, &*options.new])?;
    let (old, old_detail) = restored(&options.old, console)?;
    let (new, new_detail) = restored(&options.new, console)?;
    let detail = match (old_detail, new_detail) {
        (Detail::Full, Detail::Full) => Detail::Full,
        _ => Detail::Stripped,
    };
    let differences = compare::modules(&old, &new, detail);
    let same = differences.is_empty();
    if options.json {
        print_json(&Document {
            schema: SCHEMA,
            same,
            not_compared: match detail {
                Detail::Full => &[],
                Detail::Stripped => &STRIPPED,
            },
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
    /// Properties that are not compared, since a stripped file lacks them.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    not_compared: &'static [&'static str],
    differences: Vec<compare::Difference>,
}

/// Properties that a stripped file lacks.
const STRIPPED: [&str; 2] = ["attributes", "types of results"];

/// Returns the program in a file, with no more than bytes can say, and how much of it is known.
fn restored(path: &Path, console: &Console) -> Result<(Module, Detail), Failure> {
    let input = Input::read(path)?;
    let file = input.open()?;
    let restored = decompile(&file).map_err(|errors| placed(&errors, input.name()))?;
    let detail = match file.has_optional_sections() {
        true => Detail::Full,
        false => Detail::Stripped,
    };
    let mut warnings = Diagnostics::default();
    for warning in &restored.warnings {
        warnings.push(match warning.code() {
            Some(SECTIONS_MISSING) => stripped_warning(),
            _ => warning.clone(),
        });
    }
    console.diagnostics(&placed(&warnings, input.name()));
    Ok((restored.module, detail))
}

/// Returns the warning that sections are missing, with what that means for a comparison.
fn stripped_warning() -> Diagnostic {
    let [attributes, types] = STRIPPED;
    Diagnostic::warning(
        SECTIONS_MISSING,
        format!("this file is stripped, so {attributes} and {types} are counted, not compared"),
    )
}
