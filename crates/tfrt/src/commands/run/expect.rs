//! `--expect`: outputs of a model compared with files.

use std::path::Path;

use serde::Serialize;
use tfrt::input::STANDARD_INPUT;
use tfrt::ir::visible;
use tfrt::model::{Datum, ValueInfo};

use super::Run;
use crate::console::Problem;
use crate::data::compare::{self, Differences, Misfit, Tolerance, WorstElement, WorstReport};
use crate::data::read::{self, ExpectedFile};
use crate::data::scalars::Scalar;
use crate::data::show;
use crate::failure::{ExitStatus, Failure};
use crate::options::RunOptions;

/// The file that one `--expect` names, and the output that it is for.
pub struct Expectation {
    index: usize,
    /// The file as the command line has it.
    name: String,
    file: ExpectedFile,
}

/// The comparison of an output with its file, in the report.
#[derive(Serialize)]
pub struct Comparison {
    name: String,
    file: String,
    is_equal: bool,
    /// The tolerance of floats; of integers it is the absolute part.
    tolerance: f64,
    /// The reason why elements were not compared: type or shape differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    misfit: Option<String>,
    n_elements: usize,
    n_differing: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    worst: Option<WorstReport>,
    #[serde(skip)]
    shown: String,
}

impl Expectation {
    /// Reads the files that the command line names, each of no more than so many bytes.
    ///
    /// # Errors
    ///
    /// `Usage` for outputs that the model does not have, or that are named twice; `Rejected` for a file that can't be
    /// read.
    pub fn all(
        options: &RunOptions,
        outputs: &[ValueInfo],
        max_file_bytes: u64,
    ) -> Result<Vec<Expectation>, Failure> {
        let mut named: Vec<(usize, String)> = Vec::new();
        for text in &options.output.expected {
            let (index, file) = read::named_file(text, outputs, "--expect", "output")?;
            if named.iter().any(|(other, _)| *other == index) {
                let name = &outputs[index].name;
                let message = format!("output '{name}' is expected twice");
                return Err(Failure::Usage(message));
            }
            if Path::new(&file) == Path::new(STANDARD_INPUT) {
                let message = "--expect takes a file: standard input is for models and inputs";
                return Err(Failure::Usage(message.to_owned()));
            }
            named.push((index, file));
        }
        let read = named.into_iter().map(|(index, name)| {
            let file = ExpectedFile::read(&name, max_file_bytes);
            let file = file.map_err(|reason| unreadable(&outputs[index].name, &name, &reason))?;
            Ok(Expectation { index, name, file })
        });
        read.collect()
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Returns whether it is for the output of an index.
    pub fn is_of(&self, index: usize) -> bool {
        self.index == index
    }
}

fn unreadable(output: &str, file: &str, reason: &str) -> Failure {
    Failure::Rejected {
        code: None,
        message: format!(
            "cannot read what output '{output}' is expected to be from '{file}': {reason}"
        ),
        help: None,
    }
}

impl Comparison {
    /// Returns the line for people; of outputs that differ, standard error tells.
    pub fn line(&self) -> Option<String> {
        self.is_equal.then(|| format!("{}\n", self.shown))
    }
}

impl Run<'_> {
    /// Compares an output with its file, and tells of what differs.
    pub(super) fn compare(
        &mut self,
        expectation: Expectation,
        output: &str,
        found: &Datum,
    ) -> Result<Comparison, Failure> {
        let Expectation { name, file, .. } = expectation;
        let tolerance = Tolerance {
            absolute: self.options.output.tolerance,
            relative: self.options.output.tolerance,
        };
        // Maps are compared as the matrix that they are.
        let kind = match (found, found.as_matrix()) {
            (Datum::Maps(_), Some(values)) => Datum::from(values).kind(),
            _ => found.kind(),
        };
        let wanted = ValueInfo {
            name: output.to_owned(),
            kind,
        };
        let expected = file.decode(&wanted, self.runtime.host().allocator());
        let expected = expected.map_err(|reason| unreadable(output, &name, &reason))?;
        let compared = compare::compare(found, &expected, tolerance);
        let (differences, misfit) = match compared {
            Ok(differences) => (differences, None),
            Err(Misfit::Kind(reason)) => (Differences::default(), Some(reason)),
            Err(Misfit::Unreadable(error)) => return Err(super::model::refused(&error)),
        };
        let is_equal = misfit.is_none() && differences.n_differing == 0;
        let worst = differences.worst.as_ref();
        let told = visible::name(output);
        let shown = match (&misfit, worst) {
            (Some(reason), _) => format!("output '{told}' is not as '{name}' has it: {reason}"),
            (None, Some(worst)) if !is_equal => format!(
                "output '{told}' is not as '{name}' has it: {} of {} elements {} off by more than {}; the worst is {}",
                differences.n_differing,
                differences.n_elements,
                if differences.n_differing == 1 {
                    "is"
                } else {
                    "are"
                },
                allowed(worst, tolerance),
                place(worst)
            ),
            (None, Some(worst)) if worst.difference > 0.0 => format!(
                "{told}: {} as '{name}' has it, of {} elements the worst {}",
                wanted.kind,
                differences.n_elements,
                place(worst)
            ),
            _ => format!("{told}: {} as '{name}' has it", wanted.kind),
        };
        if !is_equal {
            self.status = self.status.max(ExitStatus::Rejected);
            self.console.tell(&Problem::of_command(None, shown.clone()));
        }
        Ok(Comparison {
            name: output.to_owned(),
            file: name,
            is_equal,
            tolerance: tolerance.absolute,
            misfit,
            n_elements: differences.n_elements,
            n_differing: differences.n_differing,
            worst: worst.map(WorstReport::from),
            shown,
        })
    }
}

/// Returns what elements like this one may differ by.
fn allowed(worst: &WorstElement, tolerance: Tolerance) -> String {
    let Tolerance { absolute, relative } = tolerance;
    match worst.expected {
        Scalar::Single(_) | Scalar::Double(_) | Scalar::Complex(..) => {
            format!("{absolute} + {relative} * |expected|")
        }
        Scalar::Integer(_) => format!("{absolute}"),
        Scalar::Truth(_) | Scalar::Text(_) => "nothing".to_owned(),
    }
}

/// Returns an element beside the expected one, and where it is.
fn place(worst: &WorstElement) -> String {
    let tensor = worst
        .tensor
        .map_or_else(String::new, |index| format!("tensor {index}, "));
    let difference = match worst.difference.is_finite() {
        true => format!(
            ", difference {}",
            show::short(&Scalar::Double(worst.difference))
        ),
        false => String::new(),
    };
    format!(
        "at {tensor}{:?}: expected {}, found {}{difference}",
        worst.index, worst.expected, worst.found
    )
}
