//! [`Model`]: a graph of another system, ready to be called with tensors.
//!
//! A model is a program whose function has named inputs and outputs (`docs/models.md`). What it knows
//! by heart, its constants, is made once, when it is opened; what it is given is checked against the
//! types of its inputs at each call, before anything runs.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use tfrt_host::{AnyAsyncValue, Error};

use crate::call::Call;
use crate::context::Context;
use crate::error::OpenError;
use crate::program::{Function, Program};
use crate::runtime::Runtime;

mod datum;
mod inputs;
mod outputs;
mod signature;
mod spelling;
mod types;

pub use datum::Datum;
pub use inputs::{Input, ModelInput, ModelInputs};
pub use outputs::{ModelCall, Outputs, OutputsFuture};
pub use signature::Slots;
pub use types::{Dim, TensorType, ValueInfo, ValueType};

use signature::Signature;

/// A model that may be called, any number of times at once, from any thread. A counted handle.
///
/// # Examples
///
/// ```no_run
/// use tfrt::{Model, Runtime, Tensor};
///
/// let model = Model::open("squeezenet.onnx")?;
/// let image = Tensor::from_vec(&[1, 3, 224, 224], vec![0.5_f32; 3 * 224 * 224])?;
///
/// // Wait for the results, or `.await` them on any executor.
/// let outputs = model.call(&Runtime::shared().context(), [("image", image)]).wait()?;
/// println!("{}", outputs.tensor("probabilities")?.shape());
/// # Ok::<(), tfrt::AnyError>(())
/// ```
#[derive(Clone)]
pub struct Model(Arc<Opened>);

struct Opened {
    program: Program,
    main: Function,
    signature: Signature,
    properties: Vec<(String, String)>,
    /// What `main` takes behind its inputs.
    constants: Vec<AnyAsyncValue>,
}

impl Model {
    /// Opens the model in a file, on the runtime that the process shares: ONNX, MLIR text in the
    /// dialect `onnx`, or what `tfrt compile` has made of these; told apart by content.
    /// [`Runtime::open_model`] is the same for a runtime of one's own.
    ///
    /// # Errors
    ///
    /// Every reason why the file is no model that can run, as far as the first stage that refuses it
    /// can tell.
    ///
    /// # Large models
    ///
    /// Of elements in other files beyond 2 GiB in all, large ones are mapped, not read: as long as there is the model,
    /// nobody may change or truncate such a file. To replace it, rename a new one to its place.
    pub fn open(path: impl AsRef<Path>) -> Result<Model, OpenError> {
        Runtime::shared().open_model(path)
    }

    /// Opens a model of which the bytes are there, ONNX or compiled, on the runtime that the process shares; `name` is what
    /// messages call it. [`Runtime::load_model`] with [`Input::from_bytes`](crate::input::Input::from_bytes) is the same
    /// for a runtime of one's own.
    ///
    /// # Errors
    ///
    /// As of [`open`](Self::open). Elements in other files can't be had.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt::{AnyError, Model};
    ///
    /// let error = AnyError::from(Model::from_bytes("m.onnx", vec![0x08, 0x08, 0x3a, 0xff]).unwrap_err());
    /// assert_eq!(error.code(), Some("TF1001"));
    /// ```
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Model, OpenError> {
        Runtime::shared().load_model(&crate::input::Input::from_bytes(name, bytes)?)
    }

    /// As [`from_bytes`](Self::from_bytes), of a model whose elements lie in other files, for which `give` has the bytes by
    /// the names that the model has for them.
    ///
    /// # Errors
    ///
    /// As of [`open`](Self::open), also for a file that nothing is given for.
    pub fn from_bytes_with(
        name: &str,
        bytes: Vec<u8>,
        give: impl Fn(&str) -> Option<tfrt_import::onnx::SharedBytes> + Send + Sync + 'static,
    ) -> Result<Model, OpenError> {
        let input = crate::input::Input::from_bytes(name, bytes)?.with_files(give);
        Runtime::shared().load_model(&input)
    }

    /// Opens the compiled model in a file that the caller vouches for: it is mapped, nothing is read
    /// before it is needed, and weights are used where they lie. [`Runtime::open_model`] is the same
    /// for any file.
    ///
    /// # Safety
    ///
    /// As of [`Input::map_trusted`](crate::input::Input::map_trusted).
    ///
    /// # Errors
    ///
    /// As of [`open`](Self::open).
    #[allow(unsafe_code, reason = "a listed module")]
    pub unsafe fn open_trusted(
        path: impl AsRef<Path>,
        runtime: &Runtime,
    ) -> Result<Model, OpenError> {
        // SAFETY: the caller promises what this demands.
        let input = unsafe { crate::input::Input::map_trusted(path) }?;
        runtime.load_model(&input)
    }

    /// Takes a program that says of one of its functions that it is a model, and makes its constants.
    ///
    /// # Errors
    ///
    /// `NoModel` if it does not; `Constants` if they can't be made, or if this is a worker of the
    /// runtime's queue, which must not wait for them.
    pub fn from_program(program: Program, runtime: &Runtime) -> Result<Model, OpenError> {
        let file = program.as_host_program().file();
        let Some(about) = file.model() else {
            return Err(OpenError::NoModel);
        };
        let function = file.function(about.function);
        let main = program.function(function.name());
        let Some(main) = main else {
            return Err(OpenError::NoModel);
        };
        let described = |values: &[tfrt_bef::model::ModelValue]| -> Vec<ValueInfo> {
            values.iter().map(spelling::value_info).collect()
        };
        let signature = Signature::new(described(&about.inputs), described(&about.outputs));
        let properties = about.properties.clone();
        let constants = tfrt_bef::Model::constants_of(main.name());
        let constants = match program.function(&constants) {
            None => Vec::new(),
            Some(make) => {
                let context = runtime.context_builder();
                let context = match program.weights() {
                    Some(weights) => context.data(weights.clone()),
                    None => context,
                };
                let values = make.call(&context.build(), ()).wait();
                values.map_err(OpenError::Constants)?.into_inner()
            }
        };
        let n_given = signature.inputs.len() + constants.len();
        let n_taken = main.argument_types().len();
        if n_given != n_taken {
            let message = format!(
                "'{}' takes {n_taken} arguments, but has {} inputs and {} constants",
                main.name(),
                signature.inputs.len(),
                constants.len()
            );
            return Err(OpenError::Constants(Error::invalid_argument(message)));
        }
        Ok(Model(Arc::new(Opened {
            program,
            main,
            signature,
            properties,
            constants,
        })))
    }

    /// What it takes, in order.
    pub fn inputs(&self) -> &[ValueInfo] {
        &self.0.signature.inputs
    }

    /// What it gives, in order.
    pub fn outputs(&self) -> &[ValueInfo] {
        &self.0.signature.outputs
    }

    /// What else its file says of it: names and texts.
    pub fn properties(&self) -> &[(String, String)] {
        &self.0.properties
    }

    /// Calls the model: runs it on this thread as far as it goes without waiting.
    ///
    /// Inputs that don't fit fail the results; they never panic. Extents that have a name must be the
    /// same wherever it stands. Cancelling the context, or its deadline, stops the call.
    pub fn call(&self, context: &Context, inputs: impl ModelInputs) -> ModelCall {
        let call = match self.arguments(inputs) {
            Ok(arguments) => self.0.main.call(context, arguments),
            Err(error) => self.failed(context, error),
        };
        ModelCall::new(self.clone(), call)
    }

    /// Hands the call to the work queue and returns at once.
    pub fn spawn(&self, context: &Context, inputs: impl ModelInputs) -> ModelCall {
        let call = match self.arguments(inputs) {
            Ok(arguments) => self.0.main.spawn(context, arguments),
            Err(error) => self.failed(context, error),
        };
        ModelCall::new(self.clone(), call)
    }

    /// The program below.
    pub fn program(&self) -> &Program {
        &self.0.program
    }

    /// The function that is called.
    pub fn function(&self) -> &Function {
        &self.0.main
    }

    /// What the function takes: the inputs, checked, then the constants.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for an input that does not fit, is missing, is given twice or is not one.
    pub fn arguments(&self, inputs: impl ModelInputs) -> Result<Vec<AnyAsyncValue>, Error> {
        let opened = &*self.0;
        let mut slots = Slots::new(&opened.signature);
        inputs.place(&mut slots)?;
        let room = opened.constants.len();
        let mut arguments = opened.signature.bind(slots.finish(), room)?;
        arguments.extend(opened.constants.iter().cloned());
        Ok(arguments)
    }

    fn failed(&self, context: &Context, error: Error) -> Call {
        let results = self.outputs().iter();
        let results = results.map(|_| AnyAsyncValue::from_error(error.clone()));
        Call::new(results.collect(), context.execution())
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model")
            .field("inputs", &self.inputs())
            .field("outputs", &self.outputs())
            .finish_non_exhaustive()
    }
}
