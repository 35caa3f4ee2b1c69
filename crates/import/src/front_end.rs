//! [`FrontEnd`]: a format of models and how to import it; the table of built-in formats.
//!
//! A front end takes a model as it is written: it makes a module in a dialect of its own, in which an operation is what
//! the format has, under the name that the format has for it. What these names mean is said elsewhere, as data. So a
//! format can be added by who knows nothing of kernels, inference or passes.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use tfrt_ir::{Diagnostics, Module};

use crate::onnx::{self, ExternalData, Survey};
use crate::{saved_model, stablehlo};

/// A format of models: how to recognise its files, and how to import one as a module.
#[derive(Clone, Copy, Debug)]
pub struct FrontEnd {
    /// The name of the format: `ONNX`.
    pub name: &'static str,
    /// The extensions of the format's files, without the point: `onnx`.
    pub suffixes: &'static [&'static str],
    /// The file that a folder of the format has, if it has folders: `saved_model.pb`. Messages name it.
    pub folder_file: Option<&'static str>,
    /// Returns whether a folder, or a file without a known extension, looks like this format. It tells kinds of files
    /// apart, and says nothing on whether the file is sound.
    pub recognises: fn(&FileHead<'_>) -> bool,
    /// Imports a model.
    pub import: ImportFn,
    /// Lists everything that is wrong with a model, going on where `import` gives up. Without it the errors of
    /// `import` are listed.
    pub survey: Option<SurveyFn>,
}

/// Imports a model as a module, or returns everything that is wrong with it.
pub type ImportFn = fn(&Source<'_>, &ReadLimits) -> Result<Imported, Diagnostics>;

/// Lists everything that is wrong with a model. Fails if nothing of it can be read.
pub type SurveyFn = fn(&Source<'_>, &ReadLimits) -> Result<Survey, Diagnostics>;

/// The built-in formats, in the order in which they are tried.
pub static FRONT_ENDS: &[FrontEnd] = &[
    onnx::FRONT_END,
    saved_model::FRONT_END,
    stablehlo::FRONT_END,
];

/// The path and the first bytes of a file or folder, by which its format is recognised.
#[derive(Clone, Copy, Debug)]
pub struct FileHead<'a> {
    /// The first bytes: 4 KiB or more, all of a shorter file. None of a folder.
    pub bytes: &'a [u8],
    /// The path, if there is one.
    pub path: Option<&'a Path>,
    /// Whether it is a folder.
    pub is_folder: bool,
}

/// A model that is to be imported.
#[derive(Debug)]
pub struct Source<'a> {
    /// The file's name in errors and locations.
    pub name: &'a str,
    /// The bytes of the file. None of a folder.
    pub bytes: ModelBytes,
    /// The path, if there is one.
    pub path: Option<&'a Path>,
    /// The part of the model that is asked for.
    pub part: Part<'a>,
    /// The place of the model's other files: [`ExternalData::read`] reads one.
    pub external_data: &'a ExternalData,
}

/// The part of a model that is asked for, where a format has several.
#[derive(Clone, Copy, Debug, Default)]
pub struct Part<'a> {
    /// The name of a function.
    pub signature: Option<&'a str>,
    /// The tags of a graph, with commas between them.
    pub tags: Option<&'a str>,
}

impl Source<'_> {
    /// Returns the file as text.
    ///
    /// # Errors
    ///
    /// If it is none.
    pub fn text(&self) -> Result<tfrt_ir::Source, Diagnostics> {
        tfrt_ir::Source::from_bytes(self.name, self.bytes.as_ref().to_vec())
    }
}

/// Limits on a model that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimits {
    /// The most bytes of the file; and of the files beside it, all together.
    pub bytes: u64,
    /// The greatest depth of nested parts, such as bodies of loops.
    pub depth: usize,
    /// The most operations.
    pub nodes: usize,
}

/// A model that was imported.
#[derive(Debug)]
pub struct Imported {
    /// The module, in the format's dialect.
    pub module: Module,
    /// Warnings and remarks.
    pub notes: Diagnostics,
}

impl Default for ReadLimits {
    /// Makes limits that refuse nothing but a depth above 64.
    fn default() -> ReadLimits {
        ReadLimits {
            bytes: u64::MAX,
            depth: 64,
            nodes: usize::MAX,
        }
    }
}

impl From<Module> for Imported {
    fn from(module: Module) -> Imported {
        Imported {
            module,
            notes: Diagnostics::default(),
        }
    }
}

impl FrontEnd {
    /// Makes a format that recognises no file yet.
    pub const fn new(name: &'static str, import: ImportFn) -> FrontEnd {
        FrontEnd {
            name,
            suffixes: &[],
            folder_file: None,
            recognises: |_| false,
            import,
            survey: None,
        }
    }

    /// Returns whether a path has one of the format's extensions.
    pub fn has_suffix(&self, path: &Path) -> bool {
        let suffix = path.extension();
        suffix.is_some_and(|suffix| self.suffixes.iter().any(|own| suffix == *own))
    }
}

/// The bytes of a model. A counted handle.
#[derive(Clone, Default)]
pub struct ModelBytes(Arc<Vec<u8>>);

impl From<Vec<u8>> for ModelBytes {
    fn from(bytes: Vec<u8>) -> ModelBytes {
        ModelBytes(Arc::new(bytes))
    }
}

impl AsRef<[u8]> for ModelBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for ModelBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}
