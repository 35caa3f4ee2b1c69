//! [`Problem`]: one thing that is wrong, with its number and its place as fields.

use std::fmt;

use tfrt_async::SourceLocation;
use tfrt_host::{Error, ErrorCode, LoadError};
use tfrt_ir::{Diagnostic, Diagnostics, Location, Severity};

use super::{AnyError, OpenError};

/// One thing that is wrong with a program, or with a call of it.
///
/// # Examples
///
/// ```
/// use tfrt::{AnyError, Runtime};
///
/// let text = "func.func @main() {\n  %x = tfrt.add.i32 %a, %a\n  tfrt.return\n}";
/// let error = AnyError::from(Runtime::new().compile("main.mlir", text).unwrap_err());
/// let problems = error.problems();
/// assert_eq!(problems[0].code, Some("TF0201"));
/// assert_eq!(problems[0].location.as_ref().unwrap().to_string(), "main.mlir:2:21");
/// # Ok::<(), tfrt::AnyError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The number that `tfrt explain` explains, such as `TF1010`; `None` of what a kernel reports when it runs.
    pub code: Option<&'static str>,
    /// The kind of failure, of what a kernel reports when it runs.
    pub kind: Option<ErrorCode>,
    /// The message: what was expected, and what was found.
    pub message: String,
    /// The place in the user's source.
    pub location: Option<SourceLocation>,
    /// The node of the model, by the names of all that it is in: `encoder/attention/MatMul_3`.
    pub node: Option<String>,
    /// The kernel that failed.
    pub kernel: Option<String>,
    /// Notes that explain the problem, and say what could be done.
    pub notes: Vec<String>,
}

impl Problem {
    fn new(code: Option<&'static str>, message: impl Into<String>) -> Problem {
        Problem {
            code,
            kind: None,
            message: message.into(),
            location: None,
            node: None,
            kernel: None,
            notes: Vec::new(),
        }
    }

    fn of_diagnostic(diagnostic: &Diagnostic) -> Problem {
        let location = diagnostic.location();
        let place =
            |(file, line, column): (&tfrt_ir::Name, u32, u32)| SourceLocation::FileLineCol {
                file: file.to_string(),
                line,
                column,
            };
        let notes = diagnostic
            .notes()
            .iter()
            .map(|note| note.message().to_owned());
        Problem {
            location: location.file_line_col().map(place),
            node: node_of(location).map(str::to_owned),
            notes: notes
                .chain(diagnostic.help_texts().iter().cloned())
                .collect(),
            ..Problem::new(diagnostic.code(), diagnostic.message())
        }
    }
}

/// Returns the name in a location, if one is the outermost thing that it says.
fn node_of(location: &Location) -> Option<&str> {
    match location {
        Location::Name(named) => Some(named.name.as_str()),
        Location::CallSite(site) => node_of(&site.callee),
        Location::Fused(fused) => fused.locations.iter().find_map(node_of),
        Location::Unknown | Location::FileLineCol { .. } | Location::Opaque(_) => None,
    }
}

/// Splits `<model.onnx;0;57>(MatMul_3)`, as files have a named place, into the name and the place.
fn named(text: &str) -> Option<(String, SourceLocation)> {
    let (place, name) = text.strip_prefix('<')?.split_once(">(")?;
    let mut parts = place.rsplitn(3, ';');
    let (column, line) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let file = parts.next()?.to_owned();
    let location = SourceLocation::FileLineCol { file, line, column };
    Some((name.strip_suffix(')')?.to_owned(), location))
}

impl From<&Error> for Problem {
    fn from(error: &Error) -> Problem {
        let mut problem = Problem {
            kind: Some(error.code()),
            kernel: error.kernel().map(str::to_owned),
            location: error.location().cloned(),
            notes: error.notes().to_vec(),
            ..Problem::new(None, error.message())
        };
        if let Some(SourceLocation::Opaque(text)) = &problem.location
            && let Some((node, location)) = named(text)
        {
            problem.node = Some(node);
            problem.location = Some(location);
        }
        problem
    }
}

fn of_text(diagnostics: &Diagnostics) -> Vec<Problem> {
    let errors = diagnostics.iter();
    let errors = errors.filter(|diagnostic| diagnostic.severity() == Severity::Error);
    errors.map(Problem::of_diagnostic).collect()
}

fn of_load(error: &LoadError) -> Vec<Problem> {
    let problems = error.problems().iter();
    let problems = problems.map(|problem| Problem {
        location: problem.location.clone(),
        notes: problem.help.iter().cloned().collect(),
        ..Problem::new(Some(problem.code), problem.message.clone())
    });
    problems.collect()
}

impl OpenError {
    /// Returns all that is wrong, at least one thing.
    pub fn problems(&self) -> Vec<Problem> {
        match self {
            OpenError::Text(diagnostics) => of_text(diagnostics),
            OpenError::Load(error) => of_load(error),
            OpenError::Constants(error) => vec![Problem {
                message: self.message(),
                ..Problem::from(error)
            }],
            other => vec![Problem::new(other.code(), other.message())],
        }
    }
}

impl AnyError {
    /// Returns all that is wrong, at least one thing.
    pub fn problems(&self) -> Vec<Problem> {
        match self {
            AnyError::Open(error) => error.problems(),
            AnyError::Call(error) => vec![Problem::from(error)],
        }
    }

    /// Returns the number of the first problem that has one, such as `TF1010`.
    pub fn code(&self) -> Option<&'static str> {
        self.problems().iter().find_map(|problem| problem.code)
    }
}

/// Writes `main.mlir:2:21: the message [TF0202]`.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.location {
            // A file as a whole has no line.
            Some(SourceLocation::FileLineCol { file, line: 0, .. }) => write!(f, "{file}: ")?,
            Some(location) => write!(f, "{location}: ")?,
            None => {}
        }
        f.write_str(&self.message)?;
        match self.code {
            Some(code) => write!(f, " [{code}]"),
            None => Ok(()),
        }
    }
}
