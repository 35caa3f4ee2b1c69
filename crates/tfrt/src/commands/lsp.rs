//! `tfrt lsp`: a language server on standard input and output.

use std::io::{BufReader, stdin, stdout};

use tfrt::host::LoadProblem;
use tfrt::input::{self, Input};
use tfrt::ir::{Diagnostic, Diagnostics, Dialects, Location, Module, Source};
use tfrt::kernel::KernelRegistry;
use tfrt::{
    Formats, OpenError, OpenOptions, Runtime, SingleThreadedWorkQueue, SourceLocation, Warnings,
};
use tfrt_lsp::{Checker, SessionEnd};

use super::check;
use crate::failure::{ExitStatus, Failure};
use crate::options::LspOptions;

/// Serves until the editor leaves.
pub fn lsp(_: &LspOptions) -> Result<ExitStatus, Failure> {
    let queue = std::sync::Arc::new(SingleThreadedWorkQueue::new());
    let runtime = Runtime::builder().queue(queue).build();
    // Buffered by a thread of its own; the process ends without it.
    let input = BufReader::new(stdin());
    let dialects = Formats::builtin().text_dialects();
    let ended = tfrt_lsp::serve(
        input,
        stdout().lock(),
        &Kernels { runtime, dialects },
        env!("CARGO_PKG_VERSION"),
    );
    // The numbers are the protocol's.
    match ended {
        SessionEnd::Orderly => Ok(ExitStatus::Fine),
        SessionEnd::Abrupt => Ok(ExitStatus::Rejected),
        // Whoever speaks something else does not read the protocol's answer either.
        SessionEnd::Unreadable(reason) => Err(Failure::Rejected {
            code: None,
            message: format!("standard input is no session of an editor: {reason}"),
            help: None,
        }),
    }
}

/// The checker of the language server, which loads programs on the kernels of a runtime.
struct Kernels {
    runtime: Runtime,
    dialects: Dialects,
}

impl Kernels {
    fn registry(&self) -> &KernelRegistry {
        self.runtime.host().registry()
    }
}

impl Kernels {
    /// Returns what keeps a program, or a model, from being loaded; and warnings on a model.
    fn errors(&self, source: &Source, module: &Module) -> Vec<OpenError> {
        if !input::is_graph(module) {
            return check::in_module(module, source, &self.runtime);
        }
        let input = Input::Text(source.clone());
        let warnings = Warnings::default();
        let opening = OpenOptions::new().warnings(warnings.clone());
        let check::Found {
            missing,
            problems: mut errors,
            ..
        } = check::in_model(&input, &opening, &self.runtime);
        let mut told = warnings.take();
        for missing in missing {
            told.push(missing.diagnostic(module));
        }
        if !told.is_empty() {
            errors.push(OpenError::Text(told));
        }
        errors
    }
}

impl Checker for Kernels {
    fn problems(&self, source: &Source, module: &Module) -> Diagnostics {
        let mut all = Diagnostics::default();
        for error in self.errors(source, module) {
            match error {
                OpenError::Text(diagnostics) => all.extend(diagnostics),
                OpenError::Load(error) => error
                    .problems()
                    .iter()
                    .for_each(|problem| all.push(of_load(problem))),
                // Bytes that the compiler has written and the gate refuses.
                other => {
                    let told = other
                        .code()
                        .map(|code| Diagnostic::error(code, other.message()));
                    told.into_iter().for_each(|diagnostic| all.push(diagnostic));
                }
            }
        }
        all
    }

    fn dialects(&self) -> &Dialects {
        &self.dialects
    }

    fn kernel_signature(&self, name: &str) -> Option<String> {
        let entry = self.registry().get(name)?;
        Some(entry.signature().to_string())
    }

    fn kernel_names(&self) -> Vec<String> {
        let kernels = self.registry().kernels();
        kernels.map(|entry| entry.name().to_owned()).collect()
    }
}

fn of_load(problem: &LoadProblem) -> Diagnostic {
    let diagnostic = Diagnostic::error(problem.code, &*problem.message);
    let diagnostic = match &problem.location {
        None => diagnostic,
        Some(SourceLocation::FileLineCol { file, line, column }) => {
            diagnostic.at_location(Location::FileLineCol {
                file: file.as_str().into(),
                line: *line,
                column: *column,
            })
        }
        Some(SourceLocation::Opaque(text)) => {
            diagnostic.at_location(Location::Opaque(text.as_str().into()))
        }
    };
    problem.help.iter().fold(diagnostic, Diagnostic::help)
}
