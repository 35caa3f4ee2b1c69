//! [`Runtime`]: the queue, the allocator and the kernels that programs share.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tfrt_async::queue::ConcurrentWorkQueue;
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{AnyAsyncValue, DeviceRef, Error, HostContext};
use tfrt_import::ReadLimits;
use tfrt_ir::Source;

use tfrt_tensor::op::OpKernel;

use crate::context::{Context, ContextBuilder};
use crate::error::OpenError;
use crate::evaluator::HostEvaluator;
use crate::formats::Formats;
use crate::input::{Input, RetainedWeights};
use crate::model::Model;
use crate::open_options::OpenOptions;
use crate::program::Program;
use crate::untrusted::Untrusted;

mod builder;

/// A substring of every text of a model.
const FUNCTION: &str = "func.func";

pub use builder::RuntimeBuilder;

/// A work queue, an allocator and kernels, shared by any number of programs. A counted handle.
///
/// # Examples
///
/// Several programs, one budget of threads:
///
/// ```
/// use tfrt::Runtime;
///
/// let runtime = Runtime::new();
/// let one = runtime.compile("one.mlir", "func.func @f() -> i32 {
///   %a = tfrt.constant.i32 1
///   tfrt.return %a : i32
/// }")?;
/// let two = runtime.compile("two.mlir", "func.func @f() -> i32 {
///   %a = tfrt.constant.i32 2
///   tfrt.return %a : i32
/// }")?;
/// let context = runtime.context();
/// let calls = [one, two].map(|program| program.function("f").unwrap().call(&context, ()));
/// let sum: i32 = calls.into_iter().map(|call| *call.wait().unwrap().get::<i32>(0).unwrap()).sum();
/// assert_eq!(sum, 3);
/// # Ok::<(), tfrt::AnyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Runtime {
    host: HostContext,
    untrusted: Option<Untrusted>,
    formats: Formats,
    /// The kernels of devices beside the host.
    op_kernels: Arc<[OpKernel]>,
}

impl Runtime {
    /// Makes a runtime with one worker for each processor that the process may use, the system's
    /// allocator, and the kernels that come with this crate.
    pub fn new() -> Runtime {
        Runtime::builder().build()
    }

    /// Returns a builder of a runtime.
    pub fn builder() -> RuntimeBuilder {
        let mut registry = KernelRegistry::new();
        tfrt_kernels::register_all(&mut registry);
        tfrt_corert::kernels::register(&mut registry);
        #[cfg(feature = "dist")]
        tfrt_dist::kernels::register(&mut registry);
        #[cfg(feature = "gpu")]
        registry.add_built_in(tfrt_gpu::register);
        RuntimeBuilder::new(registry)
    }

    /// Returns the runtime that [`Program::open`] uses: made when first asked for, with the
    /// defaults of [`Runtime::new`].
    pub fn shared() -> &'static Runtime {
        static SHARED: OnceLock<Runtime> = OnceLock::new();
        SHARED.get_or_init(Runtime::new)
    }

    /// Opens the program in a file: MLIR text, BEF bytes or a model in one of the runtime's formats, told apart by name and
    /// content.
    ///
    /// # Errors
    ///
    /// Every reason why the file is no program for this runtime, as far as the first stage that
    /// refuses it can tell.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Program, OpenError> {
        self.load(&self.read(path)?)
    }

    /// Opens a program given as MLIR text; `name` is the file that messages speak of.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn compile(&self, name: &str, text: impl Into<String>) -> Result<Program, OpenError> {
        self.load(&Input::Text(Source::new(name, text)))
    }

    /// Opens the model in a file: in one of the runtime's [formats](RuntimeBuilder::formats), as ONNX is; MLIR text in the
    /// dialect of one; or what `tfrt compile` has made of these. Told apart by name and content.
    ///
    /// # Errors
    ///
    /// See [`Model::open`].
    pub fn open_model(&self, path: impl AsRef<Path>) -> Result<Model, OpenError> {
        self.open_model_with(path, &OpenOptions::new())
    }

    /// Opens a model as [`open_model`](Self::open_model) does, with options.
    ///
    /// # Errors
    ///
    /// See [`Model::open_with`].
    pub fn open_model_with(
        &self,
        path: impl AsRef<Path>,
        options: &OpenOptions,
    ) -> Result<Model, OpenError> {
        let path = path.as_ref();
        let input = self.read(path);
        let input =
            input.map_err(|error| error.about_model(&path.to_string_lossy(), &self.formats))?;
        self.load_model_with(&input, options)
    }

    /// Reads a file, or standard input for `-`, within the limits of the runtime.
    ///
    /// # Errors
    ///
    /// See [`Input::read_with`].
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Input, OpenError> {
        match &self.untrusted {
            Some(untrusted) => untrusted.read(path, &self.formats),
            None => Input::read_with(path, &self.formats, &ReadLimits::default()),
        }
    }

    /// Opens a model that was read before.
    ///
    /// # Errors
    ///
    /// See [`Model::open`].
    pub fn load_model(&self, input: &Input) -> Result<Model, OpenError> {
        self.load_model_with(input, &OpenOptions::new())
    }

    /// Opens a model as [`load_model`](Self::load_model) does, with options.
    ///
    /// # Errors
    ///
    /// See [`Model::open_with`].
    pub fn load_model_with(
        &self,
        input: &Input,
        options: &OpenOptions,
    ) -> Result<Model, OpenError> {
        if let Input::Text(source) = input
            && !source.text().contains(FUNCTION)
        {
            let found = match source.text().trim().is_empty() {
                true => "an empty file",
                false => "text that is none of these",
            };
            return Err(OpenError::not_a_model(source.name(), found, &self.formats));
        }
        Model::from_program_with(self.load_with(input, options)?, input, options, self)
    }

    /// Opens a program that was read before.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn load(&self, input: &Input) -> Result<Program, OpenError> {
        self.load_with(input, &OpenOptions::new())
    }

    /// Opens a program as [`load`](Self::load) does, with options for a model. It is called as one once
    /// [`Model::from_program_with`] has taken the program.
    ///
    /// # Errors
    ///
    /// Those of [`load`](Self::load); `Dimension` for a dimension that the model can't have.
    pub fn load_with(&self, input: &Input, options: &OpenOptions) -> Result<Program, OpenError> {
        let device = match options.device_name() {
            Some(name) => Some(self.device_named(name)?),
            None => None,
        };
        let placed = |evaluator: HostEvaluator| match &device {
            Some(device) => evaluator
                .on_device(device.name(), device.kind(), self.op_kernels.clone())
                .with_sections_of(self.host.registry()),
            None => evaluator,
        };
        let (file, weights) = match &self.untrusted {
            Some(untrusted) => (
                untrusted.open(input, &self.formats, options, placed)?,
                input.clone().alone().weights(),
            ),
            None => {
                let (mut held, evaluator) =
                    (RetainedWeights::default(), placed(HostEvaluator::default()));
                let file = input.open_by(&self.formats, &evaluator, options, Some(&mut held))?;
                (file, input.weights_with(held, &self.host))
            }
        };
        Ok(Program::from_file(file, self)?.with_weights(weights))
    }

    /// Returns the device of a name that nodes can be placed on.
    fn device_named(&self, name: &str) -> Result<DeviceRef, OpenError> {
        self.host.devices().get(name).ok_or_else(|| {
            let all = self.host.devices().list();
            let names: Vec<&str> = all.iter().map(DeviceRef::name).collect();
            let (name, names) = (name.escape_debug(), names.join(", "));
            OpenError::Device(format!(
                "there is no device '{name}': the runtime has {names}"
            ))
        })
    }

    /// Makes a context for calls, without a deadline unless the runtime is for
    /// [untrusted](RuntimeBuilder::untrusted) programs.
    pub fn context(&self) -> Context {
        self.context_builder().build()
    }

    /// Returns a builder of a context.
    pub fn context_builder(&self) -> ContextBuilder {
        let builder = ContextBuilder::new(&self.host);
        match &self.untrusted {
            Some(untrusted) => builder.deadline(untrusted.max_time),
            None => builder,
        }
    }

    /// Waits on this thread, for a time at most, until all values are settled; returns whether they are.
    ///
    /// # Errors
    ///
    /// `FailedPrecondition` on a worker of the queue, which must not wait.
    pub fn wait_timeout(&self, values: &[AnyAsyncValue], timeout: Duration) -> Result<bool, Error> {
        wait_timeout(self.host.queue(), values, timeout)
    }

    /// Waits until no task is queued or running.
    ///
    /// # Errors
    ///
    /// `FailedPrecondition` on a worker of the queue, which would wait for itself.
    pub fn quiesce(&self) -> Result<(), Error> {
        self.host
            .queue()
            .quiesce()
            .map_err(|refused| Error::failed_precondition(refused.to_string()))
    }

    /// Returns the formats that models are read by.
    pub fn formats(&self) -> &Formats {
        &self.formats
    }

    /// Returns the host context.
    pub fn host(&self) -> &HostContext {
        &self.host
    }
}

/// Waits, for a time at most, until all values are settled.
pub(crate) fn wait_timeout(
    queue: &Arc<dyn ConcurrentWorkQueue>,
    values: &[AnyAsyncValue],
    timeout: Duration,
) -> Result<bool, Error> {
    // Later than the clock can tell is never.
    let settled = queue.await_until(values, Instant::now().checked_add(timeout));
    settled.map_err(|refused| Error::failed_precondition(refused.to_string()))
}

impl Default for Runtime {
    fn default() -> Self {
        Runtime::new()
    }
}
