//! The limits of [`LimitOptions`], as they apply to files, to runtimes and to calls, and [`Exceeded`], which finds the
//! limit behind an error.

use tfrt::import::ReadLimits;
use tfrt::input::Input;
use tfrt::{
    Context, ContextBuilder, Error, ErrorCode, Formats, HostContext, OpenError, OpenOptions,
    Program, Runtime, RuntimeBuilder, Untrusted,
};

use super::mapped;
use crate::console::Console;
use crate::failure::{Failure, LimitReached};
use crate::options::{DimOptions, LimitOptions};

impl LimitOptions {
    /// Reads a file, or maps it if that is asked for.
    ///
    /// # Errors
    ///
    /// See [`Input::read_with`].
    pub fn read(&self, file: &std::path::Path, is_mapped: bool) -> Result<Input, OpenError> {
        match is_mapped {
            true => mapped::read(file, true),
            false => {
                let limits = ReadLimits {
                    bytes: self.max_file_bytes(),
                    ..ReadLimits::default()
                };
                Input::read_with(file, &Formats::builtin(), &limits)
            }
        }
    }

    /// Opens what was read on a runtime with these limits, and says so if kernels are missing because a stranger's
    /// program must not have them.
    ///
    /// # Errors
    ///
    /// See [`Runtime::load_with`].
    pub fn load(
        &self,
        input: &Input,
        options: &OpenOptions,
        runtime: &Runtime,
        console: &Console,
    ) -> Result<Program, OpenError> {
        let loaded = runtime.load_with(input, options);
        if let Err(error) = &loaded {
            self.tell_refused(error, console);
        }
        loaded
    }

    /// Sets the limits of a runtime.
    pub fn limit(&self, builder: RuntimeBuilder) -> RuntimeBuilder {
        match self.untrusted() {
            Some(untrusted) => builder.untrusted(untrusted),
            None => builder.limits(self.limits()),
        }
    }

    /// Returns the context of a call.
    pub fn context(&self, runtime: &Runtime) -> Context {
        self.context_of(runtime.context_builder())
    }

    /// Returns the context of a call that is begun.
    pub fn context_of(&self, context: ContextBuilder) -> Context {
        match self.deadline {
            Some(deadline) => context.deadline(deadline).build(),
            None => context.build(),
        }
    }

    /// Tells that kernels may be missing because an untrusted program must not have them.
    fn tell_refused(&self, error: &OpenError, console: &Console) {
        if self.untrusted && matches!(error, OpenError::Load(_)) {
            let dialects = Untrusted::REFUSED;
            let document = serde_json::json!({ "schema": "tfrt.refused/1", "dialects": dialects });
            let names = dialects.join(", ");
            console.document(&document, || {
                format!("note: --untrusted leaves out the kernels of {names}\n")
            });
        }
    }
}

/// Refuses options of compiling a model for what was compiled before.
pub fn refuse_compiled(input: &Input, dims: &DimOptions, no_optimize: bool) -> Result<(), Failure> {
    match (input, compile_option(dims, no_optimize)) {
        (Input::Bytes { name, .. }, Some(option)) => {
            Err(Failure::Usage(compiled_before(option, name)))
        }
        _ => Ok(()),
    }
}

/// Returns an option that was given and says how models are compiled.
pub fn compile_option(dims: &DimOptions, no_optimize: bool) -> Option<&'static str> {
    let options = [
        ("--no-optimize", no_optimize),
        ("--no-quantize", dims.no_quantize),
        ("--precision", dims.precision.is_some()),
    ];
    let given = options.iter().find(|(_, is_given)| *is_given);
    given.map(|(option, _)| *option)
}

/// Says that an option does nothing for a file of this name.
pub fn compiled_before(option: &str, name: &str) -> String {
    format!("{option} is for models that are compiled now, but '{name}' was compiled before")
}

/// The limits on memory, depth and steps of a run, among which the one behind an error is found.
pub struct Exceeded<'h> {
    pub host: &'h HostContext,
    /// The bytes of `--allocator`, if these were too few.
    pub exhausted: Option<usize>,
}

impl Exceeded<'_> {
    /// Returns the limit on memory, if it has refused any.
    fn memory(&self) -> Option<LimitReached> {
        let max_memory = self.host.limits().max_memory;
        match max_memory.filter(|_| self.host.memory_refusals() > 0) {
            Some(bytes) => Some(LimitReached::Memory(bytes)),
            None => self.exhausted.map(LimitReached::Allocator),
        }
    }

    /// Returns the limit that an error is due to.
    pub fn error(&self, error: &Error) -> Option<LimitReached> {
        if error.code() != ErrorCode::ResourceExhausted {
            return None;
        }
        let limits = self.host.limits();
        if *error.message() == *limits.depth_exceeded().message() {
            return Some(LimitReached::Depth(limits.max_depth));
        }
        let max_steps = limits.max_steps;
        match max_steps.filter(|_| *error.message() == *limits.steps_exceeded().message()) {
            Some(max_steps) => Some(LimitReached::Steps(max_steps)),
            None => self.memory(),
        }
    }

    /// Returns a failure as one of the limit that has caused it, which is no fault of the input.
    pub fn failure(&self, failure: Failure) -> Failure {
        let limit = match &failure {
            Failure::Rejected { .. } | Failure::Usage(_) => self.memory(),
            Failure::Open(OpenError::Constants(error)) => self.error(error),
            _ => None,
        };
        match (failure, limit) {
            (Failure::Rejected { message, .. } | Failure::Usage(message), Some(limit)) => {
                Failure::Limited { message, limit }
            }
            (Failure::Open(error), Some(limit)) => Failure::LimitedOpen { error, limit },
            (failure, _) => failure,
        }
    }
}
