//! [`SourceLines`]: the functions that ran, all of their kernels, and the lines on which these stand.

use std::collections::HashMap;
use std::hash::Hash;

use tfrt_bef::{FunctionIndex, Location};
use tfrt_host::SourceLocation;
use tfrt_host::record::FunctionId;

use super::ReportedError;
use crate::program::Program;

/// A line in a file, a place in words, or nowhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// An index into [`SourceLines::files`]; `None` for kernels whose place nobody knows.
    pub file: Option<usize>,
    /// Counted from 1; 0 where the name of the file is all that is known.
    pub line: u32,
}

/// A file in which kernels stand, or a place in words.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct File {
    pub name: String,
    pub is_words: bool,
}

/// A function that ran.
pub struct Function {
    pub id: FunctionId,
    /// Empty for the function of a region.
    pub name: String,
    /// An index into [`SourceLines::kernels`].
    pub first_kernel: usize,
    pub n_kernels: usize,
}

/// A kernel of a function that ran, whether it did or not.
pub struct Kernel {
    /// An index into [`SourceLines::names`].
    pub name: usize,
    /// An index into [`SourceLines::lines`].
    pub line: usize,
}

/// The functions that ran, all of their kernels, and the source lines of these.
pub struct SourceLines {
    /// Invariant: the numbers ascend.
    functions: Vec<Function>,
    kernels: Vec<Kernel>,
    names: Numbered<String>,
    files: Numbered<File>,
    lines: Numbered<Line>,
    error_lines: Vec<Option<usize>>,
}

/// A list of distinct items, each with its index.
struct Numbered<T> {
    all: Vec<T>,
    known: HashMap<T, usize>,
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    fn new() -> Self {
        Numbered {
            all: Vec::new(),
            known: HashMap::new(),
        }
    }

    fn number(&mut self, thing: T) -> usize {
        let next = self.all.len();
        *self.known.entry(thing).or_insert_with_key(|thing| {
            self.all.push(thing.clone());
            next
        })
    }
}

impl SourceLines {
    /// Finds the places of all kernels of `functions`, which ascend, and of errors.
    pub fn new(
        functions: &[FunctionId],
        programs: &[Program],
        errors: &[ReportedError],
    ) -> SourceLines {
        let mut places = SourceLines {
            functions: Vec::new(),
            kernels: Vec::new(),
            names: Numbered::new(),
            files: Numbered::new(),
            lines: Numbered::new(),
            error_lines: Vec::new(),
        };
        for id in functions {
            places.add(*id, programs);
        }
        for error in errors {
            let place = error.location.clone();
            let line = place.map(|place| places.line_at(Some(place)));
            places.error_lines.push(line);
        }
        places
    }

    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.all.iter().map(String::as_str)
    }

    pub fn files(&self) -> &[File] {
        &self.files.all
    }

    pub fn lines(&self) -> &[Line] {
        &self.lines.all
    }

    /// Returns the lines of the errors, as far as these have one.
    pub fn error_lines(&self) -> &[Option<usize>] {
        &self.error_lines
    }

    pub fn function_index(&self, id: FunctionId) -> Option<usize> {
        let found = self
            .functions
            .binary_search_by_key(&id, |function| function.id);
        found.ok()
    }

    /// Returns the index among all kernels of a kernel of a function.
    pub fn kernel_index(&self, id: FunctionId, kernel: u32) -> Option<usize> {
        let function = &self.functions[self.function_index(id)?];
        let kernel = usize::try_from(kernel).ok()?;
        (kernel < function.n_kernels).then_some(function.first_kernel + kernel)
    }

    /// Returns the line of a kernel.
    pub fn line(&self, id: FunctionId, kernel: u32) -> Option<usize> {
        let kernel = self.kernel_index(id, kernel)?;
        Some(self.kernels[kernel].line)
    }

    fn add(&mut self, id: FunctionId, programs: &[Program]) {
        let mut function = Function {
            id,
            name: String::new(),
            first_kernel: self.kernels.len(),
            n_kernels: 0,
        };
        let views = programs.iter().filter_map(|program| {
            let program = program.as_host_program();
            let index = id.index_from(program.first_recorded_function()?)?;
            let is_own = usize::try_from(index).is_ok_and(|at| at < program.file().n_functions());
            is_own.then(|| program.file().function(FunctionIndex(index)))
        });
        for view in views.take(1) {
            view.name().clone_into(&mut function.name);
            for kernel in view.body().iter().flat_map(|body| body.kernels()) {
                let place = view.file().location(kernel.location());
                let place = place.map(|place| match place {
                    Location::FileLineCol { file, line, column } => {
                        SourceLocation::FileLineCol { file, line, column }
                    }
                    Location::Opaque(words) => SourceLocation::Opaque(words),
                });
                let line = self.line_at(place);
                let name = self.names.number(kernel.name().to_owned());
                self.kernels.push(Kernel { name, line });
                function.n_kernels += 1;
            }
        }
        self.functions.push(function);
    }

    fn line_at(&mut self, place: Option<SourceLocation>) -> usize {
        let (file, line) = match place {
            None => {
                return self.lines.number(Line {
                    file: None,
                    line: 0,
                });
            }
            Some(SourceLocation::FileLineCol { file, line, .. }) => {
                let is_words = false;
                (
                    File {
                        name: file,
                        is_words,
                    },
                    line,
                )
            }
            Some(SourceLocation::Opaque(name)) => {
                let is_words = true;
                (File { name, is_words }, 0)
            }
        };
        let file = Some(self.files.number(file));
        self.lines.number(Line { file, line })
    }
}
