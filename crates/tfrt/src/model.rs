//! [`Model`]: a model of another system, such as ONNX, ready to be called with tensors.
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
use crate::formats::Formats;
use crate::input;
use crate::open_options::{OpenOptions, Symbol};
use crate::program::{Function, Program};
use crate::runtime::Runtime;

mod datum;
mod inputs;
mod outputs;
mod session;
mod signature;
mod type_parser;
mod types;

pub use datum::Datum;
pub use inputs::{Input, ModelInput, ModelInputs};
pub use outputs::{ModelCall, Outputs, OutputsFuture};
pub use session::Session;
pub use signature::Slots;
#[doc(inline)]
pub use tfrt_import::onnx::SharedBytes;
pub use types::{Dim, TensorType, ValueInfo, ValueType};

use signature::{InputValues, Signature};

/// A model that may be called, any number of times at once, from any thread. A counted handle.
///
/// # Examples
///
/// ```
/// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
/// use tfrt::{Model, Runtime, Tensor};
///
/// let model = Model::open("examples/layer.onnx")?;
/// assert_eq!(model.inputs()[0].to_string(), "x: f32 [N, 2]");
/// assert_eq!(model.outputs()[0].to_string(), "y: f32 [N, 2]");
///
/// // Two calls at once, of one row and of three; wait for the results, or `.await` them on any executor.
/// let context = Runtime::shared().context();
/// let inputs = [1, 3].map(|n| Tensor::from_vec(&[n, 2], vec![1.0_f32; 2 * n]));
/// let [one, three] = inputs.map(|x| Ok::<_, tfrt::Error>(model.spawn(&context, [("x", x?)])));
/// assert_eq!(one?.wait()?.tensor("y")?.to_vec::<f32>()?, [1.5, 2.0]);
/// assert_eq!(three?.wait()?.tensor("y")?.shape().to_string(), "[3, 2]");
/// # Ok::<(), tfrt::AnyError>(())
/// ```
#[derive(Clone)]
pub struct Model(Arc<ModelInner>);

struct ModelInner {
    program: Program,
    main: Function,
    signature: Signature,
    properties: Vec<(String, String)>,
    /// The arguments of `main` behind its inputs.
    constants: Vec<AnyAsyncValue>,
    /// The initial values of the last inputs, which the last outputs are the next values of.
    initial: Vec<AnyAsyncValue>,
}

impl Model {
    /// Opens the model in a file, on the runtime that the process shares: ONNX, MLIR text in the
    /// dialect `onnx`, or what `tfrt compile` has made of these; told apart by name and content.
    /// [`Runtime::open_model`] is the same for a runtime of one's own.
    ///
    /// # Errors
    ///
    /// Every reason why the file is no model that can run, as far as the first stage that refuses it
    /// can tell. A file of another kind is told so.
    ///
    /// # Large models
    ///
    /// Of elements in other files beyond 2 GiB in all, large ones are mapped, not read: as long as there is the model,
    /// nobody may change or truncate such a file. To replace it, rename a new one to its place.
    pub fn open(path: impl AsRef<Path>) -> Result<Model, OpenError> {
        Runtime::shared().open_model(path)
    }

    /// Opens a model as [`open`](Self::open) does, with options: sizes of symbolic dimensions, and whether the graph is
    /// optimized.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open); `Dimension` for a dimension that the model can't have.
    pub fn open_with(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Model, OpenError> {
        Runtime::shared().open_model_with(path, options)
    }

    /// Opens a model of which the bytes are there, ONNX or compiled, on the runtime that the process shares; `name` is what
    /// messages call it. [`Runtime::load_model`] with [`Input::from_bytes`](crate::input::Input::from_bytes) is the same
    /// for a runtime of one's own.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open). Elements in other files can't be had.
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
        let input = input::Input::from_bytes(name, bytes)
            .map_err(|error| error.about_model(name, &Formats::builtin()))?;
        Runtime::shared().load_model(&input)
    }

    /// Opens a model as [`from_bytes`](Self::from_bytes) does, of a model whose elements lie in other files, for which
    /// `give` has the bytes by the names that the model has for them.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open), also for a file that nothing is given for.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tfrt::model::SharedBytes;
    /// use tfrt::{Model, Runtime, Tensor};
    ///
    /// # let bytes = b"\x08\x08\x12\x04tfrt:\x8b\x01\x0a\x1a\x0a\x01x\x0a\x01w\x12\x01h\x1a\x07product\x22\x06MatMul\
    /// #     \x0a\x16\x0a\x01h\x12\x01y\x1a\x08positive\x22\x04Relu\x12\x05layer*\x22\x08\x02\x08\x02\x10\x01B\x01w\
    /// #     j\x15\x0a\x08location\x12\x09layer.binp\x01Z\x14\x0a\x01x\x12\x0f\x0a\x0d\x08\x01\x12\x09\x0a\x03\x12\
    /// #     \x01N\x0a\x02\x08\x02b\x14\x0a\x01y\x12\x0f\x0a\x0d\x08\x01\x12\x09\x0a\x03\x12\x01N\x0a\x02\x08\x02\
    /// #     B\x02\x10\x0d".to_vec();
    /// // A model of a product, whose factor lies in a file `layer.bin`.
    /// let factor = [1.0_f32, -1.0, 0.5, 3.0].map(f32::to_le_bytes).concat();
    /// let factor: SharedBytes = Arc::new(factor);
    /// let model = Model::from_bytes_with("layer.onnx", bytes, move |file| match file {
    ///     "layer.bin" => Some(factor.clone()),
    ///     _ => None,
    /// })?;
    /// let x = Tensor::from_vec(&[1, 2], vec![1.0_f32, 2.0])?;
    /// let outputs = model.call(&Runtime::shared().context(), [("x", x)]).wait()?;
    /// assert_eq!(outputs.tensor("y")?.to_vec::<f32>()?, [2.0, 5.0]);
    /// # Ok::<(), tfrt::AnyError>(())
    /// ```
    pub fn from_bytes_with(
        name: &str,
        bytes: Vec<u8>,
        give: impl Fn(&str) -> Option<SharedBytes> + Send + Sync + 'static,
    ) -> Result<Model, OpenError> {
        let input = input::Input::from_bytes(name, bytes)
            .map_err(|error| error.about_model(name, &Formats::builtin()))?;
        Runtime::shared().load_model(&input.with_files(give))
    }

    /// Opens the compiled model in a file that the caller vouches for: it is mapped, nothing is read
    /// before it is needed, and weights are used where they lie. [`Runtime::open_model`] is the same
    /// for any file.
    ///
    /// # Safety
    ///
    /// See [`Input::map_trusted`](crate::input::Input::map_trusted).
    ///
    /// # Errors
    ///
    /// See [`open`](Self::open).
    #[allow(unsafe_code, reason = "a listed module")]
    pub unsafe fn open_trusted(
        path: impl AsRef<Path>,
        runtime: &Runtime,
    ) -> Result<Model, OpenError> {
        // SAFETY: the caller promises what this demands.
        let input = unsafe { input::Input::map_trusted(path, runtime.formats()) }?;
        runtime.load_model(&input)
    }

    /// Takes a program that says of one of its functions that it is a model, and makes its constants.
    ///
    /// # Errors
    ///
    /// `NoModel` if it does not; `Constants` if they can't be made, or if this is a worker of the
    /// runtime's queue, which must not wait for them.
    pub fn from_program(program: Program, runtime: &Runtime) -> Result<Model, OpenError> {
        Model::new(program, &OpenOptions::new(), runtime)
    }

    /// Makes a model as [`from_program`](Self::from_program) does, of what [`Runtime::load_with`] has made of an input
    /// with these options. Of an input that was compiled before, calls with other sizes of the dimensions will fail.
    ///
    /// # Errors
    ///
    /// Those of [`from_program`](Self::from_program); `Dimension` for a dimension that the model can't have.
    pub fn from_program_with(
        program: Program,
        input: &input::Input,
        options: &OpenOptions,
        runtime: &Runtime,
    ) -> Result<Model, OpenError> {
        match input {
            input::Input::Bytes { .. } => Model::new(program, options, runtime),
            // The dimensions were fixed before the program was compiled.
            _ => Model::from_program(program, runtime),
        }
    }

    fn new(program: Program, options: &OpenOptions, runtime: &Runtime) -> Result<Model, OpenError> {
        let file = program.as_host_program().file();
        let Some(about) = file.model() else {
            return Err(OpenError::NoModel);
        };
        let function = file.function(about.function);
        let main = program.function(function.name());
        let Some(main) = main else {
            return Err(OpenError::NoModel);
        };
        let mut values = ModelValues::of(about);
        values.check_dims(options)?;
        options.fix(&mut values.inputs);
        options.fix(&mut values.outputs);
        let signature = Signature::new(values.inputs, values.outputs);
        let properties = about.properties.clone();
        let make = |name: String| match program.function(&name) {
            None => Ok(Vec::new()),
            Some(make) => {
                let context = runtime.context_builder();
                let context = match program.weights() {
                    Some(weights) => context.data(weights.clone()),
                    None => context,
                };
                let values = make.call(&context.build(), ()).wait();
                let values = values.map_err(OpenError::Constants)?;
                Ok(values.into_inner())
            }
        };
        let constants = make(tfrt_bef::Model::constants_of(main.name()))?;
        let initial = make(tfrt_bef::Model::initial_of(main.name()))?;
        if initial.len() > signature.inputs.len().min(signature.outputs.values.len()) {
            let message = format!(
                "'{}' has {} initial values for {} inputs and {} outputs",
                main.name(),
                initial.len(),
                signature.inputs.len(),
                signature.outputs.values.len()
            );
            return Err(OpenError::Constants(Error::invalid_argument(message)));
        }
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
        Ok(Model(Arc::new(ModelInner {
            program: program.without_weights(),
            main,
            signature,
            properties,
            constants,
            initial,
        })))
    }

    /// Returns the inputs, in order.
    pub fn inputs(&self) -> &[ValueInfo] {
        &self.0.signature.inputs
    }

    /// Returns the outputs, in order.
    pub fn outputs(&self) -> &[ValueInfo] {
        &self.0.signature.outputs.values
    }

    /// Returns the properties that the file has, such as its producer: names and texts.
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
        ModelCall::new(self.0.signature.outputs.clone(), call)
    }

    /// Hands the call to the work queue and returns at once.
    pub fn spawn(&self, context: &Context, inputs: impl ModelInputs) -> ModelCall {
        let call = match self.arguments(inputs) {
            Ok(arguments) => self.0.main.spawn(context, arguments),
            Err(error) => self.failed(context, error),
        };
        ModelCall::new(self.0.signature.outputs.clone(), call)
    }

    /// Returns the number of its variables: the last inputs, which begin with values that the model has, and the last outputs,
    /// which are their next values. A [`session`](Self::session) keeps them.
    pub fn n_variables(&self) -> usize {
        self.0.initial.len()
    }

    /// Returns a session, which calls the model step by step and keeps its variables, and what [`Session::state`] names, from
    /// one step to the next.
    pub fn session(&self) -> Session {
        Session::new(self.clone())
    }

    /// Returns the program.
    pub fn program(&self) -> &Program {
        &self.0.program
    }

    /// Returns the function that is called.
    pub fn function(&self) -> &Function {
        &self.0.main
    }

    /// Returns the arguments of the function: the inputs, checked, then the constants.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for an input that does not fit, is missing, is given twice or is not one.
    pub fn arguments(&self, inputs: impl ModelInputs) -> Result<Vec<AnyAsyncValue>, Error> {
        let mut slots = Slots::new(&self.0.signature);
        inputs.place(&mut slots)?;
        self.bind(slots.finish())
    }

    fn bind(&self, given: InputValues) -> Result<Vec<AnyAsyncValue>, Error> {
        let opened = &*self.0;
        let room = opened.constants.len();
        let mut arguments = opened.signature.bind(given, room)?;
        arguments.extend(opened.constants.iter().cloned());
        Ok(arguments)
    }

    fn failed(&self, context: &Context, error: Error) -> Call {
        let results = self.outputs().iter();
        let results = results.map(|_| AnyAsyncValue::from_error(error.clone()));
        Call::new(results.collect(), context.execution())
    }
}

/// The inputs and outputs of a model, as its compiled file has them.
pub(crate) struct ModelValues {
    inputs: Vec<ValueInfo>,
    outputs: Vec<ValueInfo>,
}

impl ModelValues {
    pub(crate) fn of(model: &tfrt_bef::Model) -> ModelValues {
        let described = |values: &[tfrt_bef::model::ModelValue]| -> Vec<ValueInfo> {
            values.iter().map(type_parser::value_info).collect()
        };
        ModelValues {
            inputs: described(&model.inputs),
            outputs: described(&model.outputs),
        }
    }

    /// Checks that the inputs can have the dimensions that options fix.
    pub(crate) fn check_dims(&self, options: &OpenOptions) -> Result<(), OpenError> {
        let symbols = self.inputs.iter().flat_map(|input| {
            let dims = input.kind.dims().iter();
            dims.filter_map(|dim| match dim {
                Dim::Symbol(name) => Some(Symbol {
                    name,
                    input: &input.name,
                    size: None,
                }),
                _ => None,
            })
        });
        options.check_dims(&symbols.collect::<Vec<_>>())
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
