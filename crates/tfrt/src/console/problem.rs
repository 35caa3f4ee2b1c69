//! [`Problem`]: one thing that is wrong, whatever stage found it.

use serde::{Serialize, Serializer};
use tfrt::bef;
use tfrt::host::LoadProblem;
use tfrt::ir::{Diagnostic, Diagnostics, visible};
use tfrt::{Error, OpenError, SourceLocation};

use crate::failure::Failure;

/// One thing that is wrong, as documents show it.
#[derive(Clone, Debug, Serialize)]
pub struct Problem {
    pub severity: &'static str,
    pub message: String,
    /// The code that `tfrt explain` explains; of an error at run time, the name of its status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    #[serde(flatten)]
    pub place: SourcePos,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub help: Vec<String>,
    #[serde(skip)]
    pub origin: ProblemSource,
}

/// The source of a problem, which decides how it is shown.
#[derive(Clone, Debug)]
pub enum ProblemSource {
    /// A text; the diagnostic has the places of notes.
    Text(Box<Diagnostic>),
    /// Loading or running a program. Its file has the places of the source.
    Program,
    /// The command itself.
    Command,
}

/// The position of a problem in a source, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SourcePos {
    #[default]
    Unknown,
    File {
        file: String,
        line: u32,
        column: u32,
    },
    /// A place that is no line of a file, as text.
    Opaque(String),
}

impl Serialize for SourcePos {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Default, Serialize)]
        struct Fields<'p> {
            #[serde(skip_serializing_if = "Option::is_none")]
            file: Option<&'p str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            line: Option<u32>,
            #[serde(skip_serializing_if = "Option::is_none")]
            column: Option<u32>,
            #[serde(skip_serializing_if = "Option::is_none")]
            location: Option<&'p str>,
        }
        let fields = match self {
            SourcePos::Unknown => Fields::default(),
            SourcePos::File { file, line, column } => Fields {
                file: Some(file),
                line: Some(*line),
                column: Some(*column),
                location: None,
            },
            SourcePos::Opaque(text) => Fields {
                location: Some(text),
                ..Fields::default()
            },
        };
        fields.serialize(serializer)
    }
}

impl SourcePos {
    fn new(location: Option<&SourceLocation>) -> SourcePos {
        match location {
            None => SourcePos::Unknown,
            Some(SourceLocation::FileLineCol { file, line, column }) => SourcePos::File {
                file: file.clone(),
                line: *line,
                column: *column,
            },
            Some(SourceLocation::Opaque(text)) => SourcePos::Opaque(text.clone()),
        }
    }
}

impl Problem {
    fn new(message: String, place: SourcePos, origin: ProblemSource) -> Problem {
        Problem {
            severity: "error",
            message,
            code: None,
            kernel: None,
            place,
            notes: Vec::new(),
            help: Vec::new(),
            origin,
        }
    }

    /// Makes a problem that the command itself reports.
    pub fn of_command(code: Option<&'static str>, message: String) -> Problem {
        // What it names may be a stranger's, and ends no line.
        let message = visible::name(&message).into_owned();
        let mut problem = Problem::new(message, SourcePos::Unknown, ProblemSource::Command);
        problem.code = code;
        problem
    }

    /// Makes a problem of an error that a kernel has reported.
    pub fn of_run(error: &Error) -> Problem {
        let message = format!("runtime error: {error}");
        let kernel = error.kernel().filter(|name| !name.is_empty());
        let mut problem = Problem::new(
            message,
            SourcePos::new(error.location()),
            ProblemSource::Program,
        );
        problem.code = Some(error.code().name());
        problem.kernel = kernel.map(str::to_owned);
        problem.notes = kernel
            .map(|name| format!("reported by kernel '{name}'"))
            .into_iter()
            .chain(error.notes().iter().cloned())
            .collect();
        problem
    }

    /// Merges equal problems into the first of them, with a note of how many there are.
    pub fn merged(problems: impl Iterator<Item = Problem>) -> Vec<Problem> {
        let mut merged: Vec<(Problem, usize)> = Vec::new();
        for problem in problems {
            let same = merged
                .iter_mut()
                .find(|(other, _)| other.said() == problem.said());
            match same {
                Some((_, n)) => *n += 1,
                None => merged.push((problem, 1)),
            }
        }
        let counted = |(mut problem, n): (Problem, usize)| {
            if n > 1 {
                problem.notes.push(format!("reported {n} times"));
            }
            problem
        };
        merged.into_iter().map(counted).collect()
    }

    /// Returns everything that is shown of the problem, to compare problems.
    fn said(&self) -> impl PartialEq + use<'_> {
        let explained = (&self.notes, &self.help);
        (
            &self.message,
            self.code,
            &self.kernel,
            &self.place,
            explained,
        )
    }

    fn of_load(problem: &LoadProblem) -> Problem {
        let place = SourcePos::new(problem.location.as_ref());
        let mut told = Problem::new(problem.message.clone(), place, ProblemSource::Program);
        told.code = Some(problem.code);
        told.help.extend(problem.help.clone());
        told
    }

    fn of_text(diagnostic: &Diagnostic) -> Problem {
        let place = match diagnostic.location().file_line_col() {
            Some((file, line, column)) => SourcePos::File {
                file: file.to_string(),
                line,
                column,
            },
            None => SourcePos::Unknown,
        };
        let origin = ProblemSource::Text(Box::new(diagnostic.clone()));
        let notes = diagnostic.notes().iter();
        Problem {
            severity: diagnostic.severity().name(),
            code: diagnostic.code(),
            notes: notes.map(|note| note.message().to_owned()).collect(),
            help: diagnostic.help_texts().to_vec(),
            ..Problem::new(diagnostic.message().to_owned(), place, origin)
        }
    }

    /// Returns the problems of a text.
    pub fn all_of_text(diagnostics: &Diagnostics) -> Vec<Problem> {
        diagnostics.iter().map(Problem::of_text).collect()
    }

    /// Returns the problems that keep a program from being opened.
    pub fn all_of_open(error: &OpenError) -> Vec<Problem> {
        match error {
            OpenError::Text(diagnostics) => Problem::all_of_text(diagnostics),
            OpenError::Load(error) => error.problems().iter().map(Problem::of_load).collect(),
            OpenError::Constants(reason) if reason.location().is_some() => {
                let told = Problem::of_run(reason);
                vec![Problem {
                    message: error.message(),
                    ..told
                }]
            }
            other => {
                let mut problem = Problem::of_command(other.code(), other.message());
                problem.help.extend(help_of_open(other).map(str::to_owned));
                vec![problem]
            }
        }
    }

    /// Returns the problems that made a command stop.
    pub fn all_of_failure(failure: &Failure) -> Vec<Problem> {
        match failure {
            Failure::Open(error) => Problem::all_of_open(error),
            Failure::LimitedOpen { error, limit } => {
                let mut problems = Problem::all_of_open(error);
                let helped = problems.iter_mut();
                helped.for_each(|problem| problem.help.extend(limit.help()));
                problems
            }
            Failure::Text(diagnostics) => Problem::all_of_text(diagnostics),
            other => {
                let told = other.message().map(|message| {
                    let mut problem = Problem::of_command(other.code(), message);
                    let help = other.help();
                    problem
                        .help
                        .extend(help.map(|help| visible::name(&help).into_owned()));
                    problem
                });
                told.into_iter().collect()
            }
        }
    }

    /// Returns the code that stands behind the message: errors at run time keep theirs for
    /// machines.
    pub fn shown_code(&self) -> Option<&'static str> {
        self.code.filter(|code| code.starts_with("TF"))
    }
}

/// Returns advice for a program that could not be opened.
fn help_of_open(error: &OpenError) -> Option<&'static str> {
    match error {
        // Bytes that begin otherwise are of another version.
        OpenError::Bytes { reason, .. } if reason.code() != bef::codes::HEADER => {
            Some("the file was probably cut off or damaged: copy it again, or compile it anew")
        }
        _ => None,
    }
}
