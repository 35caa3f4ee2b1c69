//! [`FrontEnd`]: what a format of models is to those who read files, and the table of those that are built in.
//!
//! A front end takes a model as it is written: it makes a module in a dialect of its own, in which an operation is what
//! the format has, under the name that the format has for it. What these names mean is said elsewhere, as data. So a
//! format can be added by who knows nothing of kernels, inference or passes.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use tfrt_ir::{Diagnostics, Module};

use crate::onnx::{self, ExternalData, Survey};

/// A format of models: how its files are told from others, and how one becomes a module.
#[derive(Clone, Copy, Debug)]
pub struct FrontEnd {
    /// The name of the format: `ONNX`.
    pub name: &'static str,
    /// Endings of the names of its files, without the point: `onnx`.
    pub suffixes: &'static [&'static str],
    /// Returns whether a folder, or a file whose name says nothing, looks like one of the format's: enough to tell kinds of
    /// files apart, not to trust them.
    pub recognises: fn(&FileHead<'_>) -> bool,
    /// Makes a module of a model.
    pub import: ImportFn,
    /// Says all that is wrong with a model, going on where `import` refuses it. Without it there is what `import` says.
    pub survey: Option<SurveyFn>,
}

/// Makes a module of a model, or says all that is wrong with it.
pub type ImportFn = fn(&Source<'_>, &ReadLimits) -> Result<Imported, Diagnostics>;

/// Says all that is wrong with a model; an error if nothing of it can be read.
pub type SurveyFn = fn(&Source<'_>, &ReadLimits) -> Result<Survey, Diagnostics>;

/// The built-in formats, in the order in which they are asked.
pub static FRONT_ENDS: &[FrontEnd] = &[onnx::FRONT_END];

/// The path and the first bytes of a file, or a folder: enough to tell its format.
#[derive(Clone, Copy, Debug)]
pub struct FileHead<'a> {
    /// Its first bytes: 4 KiB or more, all of a shorter file. None of a folder.
    pub bytes: &'a [u8],
    /// Where it is, if it has a path.
    pub path: Option<&'a Path>,
    /// Whether it is a folder.
    pub is_folder: bool,
}

/// A model that is to be imported.
#[derive(Debug)]
pub struct Source<'a> {
    /// What errors and locations call the file.
    pub name: &'a str,
    /// Its bytes. None of a folder.
    pub bytes: ModelBytes,
    /// Where it is, if it has a path.
    pub path: Option<&'a Path>,
    /// Where other files of the model may lie: [`ExternalData::read`] reads one.
    pub outside: &'a ExternalData,
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

/// What reading a model may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimits {
    /// Bytes of a file; and of the files beside it, all together.
    pub bytes: u64,
    /// How deep parts of the model, such as bodies of loops, lie in one another.
    pub depth: usize,
    /// Operations.
    pub nodes: usize,
}

/// A model as a module.
#[derive(Debug)]
pub struct Imported {
    /// The module, in the format's dialect.
    pub module: Module,
    /// Warnings and remarks.
    pub notes: Diagnostics,
}

impl Default for ReadLimits {
    /// As much as a format can say.
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
    /// Makes a format that is told by nothing yet.
    pub const fn new(name: &'static str, import: ImportFn) -> FrontEnd {
        FrontEnd {
            name,
            suffixes: &[],
            recognises: |_| false,
            import,
            survey: None,
        }
    }

    /// Returns whether the name of a file says that it is one of the format's.
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
