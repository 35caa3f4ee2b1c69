//! [`RecordedProgram`]: a program that was recorded from calls.

use std::fmt;
use std::path::Path;

use tfrt_bef::BefBuffer;
use tfrt_compiler::CompileOptions;
use tfrt_corert::{TensorHandle, Trace};
use tfrt_host::{Error, HostContext};
use tfrt_ir::{Diagnostics, Module};

use crate::error::OpenError;
use crate::input::Input;
use crate::model::Model;
use crate::runtime::Runtime;

mod attribute;
mod module;

/// A program that was recorded from calls of operations, as a model: its inputs are the parameters, by their names, its
/// outputs `output0`, `output1` and so on.
pub struct RecordedProgram {
    module: Module,
}

impl RecordedProgram {
    pub(super) fn new(
        names: Vec<String>,
        trace: Trace,
        results: &[TensorHandle],
        host: &HostContext,
    ) -> Result<RecordedProgram, Error> {
        Ok(RecordedProgram {
            module: module::make(&names, &trace, results, host)?,
        })
    }

    /// Returns the module that is compiled.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Compiles the program.
    ///
    /// # Errors
    ///
    /// The diagnostics of the compiler, which would be a fault of this crate.
    pub fn to_bef(&self) -> Result<BefBuffer, Diagnostics> {
        tfrt_compiler::compile(&self.module, &CompileOptions::default())
    }

    /// Compiles the program, and opens it as a model.
    ///
    /// # Errors
    ///
    /// Those of [`Runtime::load_model`].
    pub fn compile(&self, runtime: &Runtime) -> Result<Model, OpenError> {
        let bytes = self.to_bef().map_err(OpenError::Text)?;
        runtime.load_model(&Input::from_bytes(
            "recorded.bef",
            bytes.as_bytes().to_vec(),
        )?)
    }

    /// Compiles the program into a file, which [`Model::open`] and `tfrt run` take.
    ///
    /// # Errors
    ///
    /// Those of [`to_bef`](Self::to_bef), and what the operating system says.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), OpenError> {
        let bytes = self.to_bef().map_err(OpenError::Text)?;
        let path = path.as_ref();
        std::fs::write(path, bytes.as_bytes()).map_err(|reason| OpenError::Unreadable {
            path: path.to_owned(),
            reason,
        })
    }
}

/// The program as MLIR text.
impl fmt::Display for RecordedProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.module, f)
    }
}

impl fmt::Debug for RecordedProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordedProgram")
            .field("n_ops", &self.module.n_ops())
            .finish_non_exhaustive()
    }
}
