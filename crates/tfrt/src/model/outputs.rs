//! [`ModelCall`]: the results of a call of a model, to be waited for together or one by one;
//! [`Outputs`]: all of them, by name.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use smallvec::SmallVec;
use tfrt_host::{AnyAsyncValue, AsyncValue, Error, ErrorCode};
use tfrt_ir::similar;
use tfrt_tensor::{Optional, Tensor as Layered};

use super::datum::Datum;
use super::signature::listed;
use super::types::ValueInfo;
use crate::call::{Call, CallFuture, Values};
use crate::host_tensor::Tensor;

/// The handle of a call of a model. Its results settle each on its own, while the model goes on.
///
/// # Examples
///
/// A result of one model, given to the next before it is there:
///
/// ```
/// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
/// use std::time::Duration;
/// use tfrt::{Model, Runtime, Tensor};
///
/// let (layer, context) = (Model::open("examples/layer.onnx")?, Runtime::shared().context());
/// let x = Tensor::from_vec(&[1, 2], vec![1.0_f32, 2.0])?;
/// let first = layer.spawn(&context, (x,));
/// let second = layer.spawn(&context, (first.tensor("y")?,));
///
/// // A thread that waits may look after something else now and then.
/// while !second.wait_timeout(Duration::from_millis(10))? {
///     println!("still at work");
/// }
/// assert_eq!(second.wait()?.tensor("y")?.to_vec::<f32>()?, [4.5, 13.0]);
/// # Ok::<(), tfrt::AnyError>(())
/// ```
#[must_use = "the results of a call hold its errors"]
pub struct ModelCall {
    outputs: Arc<OutputList>,
    call: Call,
}

/// The outputs that a call gives, in their order.
#[derive(Debug)]
pub(super) struct OutputList {
    pub(super) values: Vec<ValueInfo>,
    of: OutputsOf,
}

/// The source of outputs, for messages.
#[derive(Debug)]
enum OutputsOf {
    Model,
    /// A step of a session; these outputs are its state, each with the input that it is for.
    Step(Vec<(String, String)>),
    /// The state of a session, by the names of inputs.
    States,
}

impl OutputList {
    /// Returns the outputs of a model.
    pub(super) fn of_model(values: Vec<ValueInfo>) -> OutputList {
        let of = OutputsOf::Model;
        OutputList { values, of }
    }

    /// Returns the outputs of a step that callers see; `states` are the names of those that the session keeps, each with
    /// the name of the input that gets its value.
    pub(super) fn of_step(values: Vec<ValueInfo>, states: Vec<(String, String)>) -> OutputList {
        let of = OutputsOf::Step(states);
        OutputList { values, of }
    }

    /// Returns the state of a session, as inputs of the next step.
    pub(super) fn of_states(values: Vec<ValueInfo>) -> OutputList {
        let of = OutputsOf::States;
        OutputList { values, of }
    }

    /// Returns the index of the result of a name.
    fn place(&self, name: &str) -> Result<usize, Error> {
        let mut outputs = self.values.iter();
        let found = outputs.position(|output| output.name == name);
        found.ok_or_else(|| self.unknown(name))
    }

    #[cold]
    fn unknown(&self, name: &str) -> Error {
        let known = listed(&self.values);
        let message = match &self.of {
            OutputsOf::Model => format!("the model has no output '{name}': it gives {known}"),
            OutputsOf::States => format!("the session has no state '{name}': it keeps {known}"),
            OutputsOf::Step(states) => {
                if let Some((_, input)) = states.iter().find(|(output, _)| output == name) {
                    let message = format!(
                        "output '{name}' is kept as the state of input '{input}': a step gives {known}"
                    );
                    let note = "`Session::read` gives the state";
                    return Error::new(ErrorCode::NotFound, message).with_note(note);
                }
                format!("the model has no output '{name}': a step gives {known}")
            }
        };
        let error = Error::new(ErrorCode::NotFound, message);
        let names = self.values.iter().map(|output| output.name.as_str());
        let what = match self.of {
            OutputsOf::States => "a state",
            _ => "an output",
        };
        match similar::nearest(name, names) {
            Some(nearest) => error.with_note(format!("there is {what} '{nearest}'")),
            None => error,
        }
    }
}

impl ModelCall {
    pub(super) fn new(outputs: Arc<OutputList>, call: Call) -> ModelCall {
        ModelCall { outputs, call }
    }

    /// Cancels the request of the call, and so all calls of its context, when this handle, or the future that it becomes,
    /// is dropped before all results are there.
    pub fn cancel_on_drop(mut self) -> ModelCall {
        self.call = self.call.cancel_on_drop();
        self
    }

    /// Waits for all results on this thread, which helps with the work where the queue allows it.
    ///
    /// # Errors
    ///
    /// The error of the last result that failed; `FailedPrecondition` on a worker of the queue, which
    /// must not wait.
    pub fn wait(self) -> Result<Outputs, Error> {
        let values = self.call.wait()?;
        Outputs::new(self.outputs, values)
    }

    /// Waits for all results on this thread, for a time at most; returns whether they are there.
    ///
    /// # Errors
    ///
    /// `FailedPrecondition` on a worker of the queue, which must not wait.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<bool, Error> {
        self.call.wait_timeout(timeout)
    }

    /// Waits for all results, and copies those that are named to tensors of the caller, where they replace what is there:
    /// in their memory, unless somebody shares it. Nothing is copied unless all of them fit.
    ///
    /// Kernels write results to memory of their own, so that each is copied once. [`Outputs::take`] has that memory
    /// itself, without a copy; [`Tensor::copy_to_slice`] copies to memory that is no tensor.
    ///
    /// # Errors
    ///
    /// Those of [`wait`](Self::wait); `NotFound` for a name of no result, `InvalidArgument` if type or shape differ.
    ///
    /// # Examples
    ///
    /// A state that goes in and comes out, in one piece of memory:
    ///
    /// ```
    /// use tfrt::{DType, Model, Runtime, Tensor};
    ///
    /// let runtime = Runtime::new();
    /// let text = r#"func.func @main(%x: tensor<2xf32>, %h: tensor<2xf32>) -> tensor<2xf32>
    ///     attributes {model.input_names = ["x", "h"], model.output_names = ["hn"]} {
    ///   %y = "onnx.Add"(%x, %h) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    ///   tfrt.return %y : tensor<2xf32>
    /// }"#;
    /// let model = Model::from_program(runtime.compile("sum.mlir", text)?, &runtime)?;
    /// let (x, mut state) = (Tensor::from([1.0_f32, 2.0]), Tensor::zeros(DType::F32, &[2])?);
    /// for _ in 0..3 {
    ///     let call = model.call(&runtime.context(), [("x", &x), ("h", &state)]);
    ///     call.wait_into([("hn", &mut state)])?;
    /// }
    /// assert_eq!(state.to_vec::<f32>()?, [3.0, 6.0]);
    /// # Ok::<(), tfrt::AnyError>(())
    /// ```
    pub fn wait_into<'n, 't>(
        self,
        targets: impl IntoIterator<Item = (&'n str, &'t mut Tensor)>,
    ) -> Result<Outputs, Error> {
        let outputs = self.wait()?;
        let mut pairs = Vec::new();
        for (name, target) in targets {
            let found = outputs.tensor(name)?;
            if found.metadata() != target.metadata() {
                return Err(Error::invalid_argument(format!(
                    "output '{name}' is {}, but is to be written to a tensor of {}",
                    found.metadata(),
                    target.metadata()
                )));
            }
            pairs.push((found, target));
        }
        for (found, target) in pairs {
            target.copy_from(&found)?;
        }
        Ok(outputs)
    }

    /// Returns the result of a name, to be awaited on its own, or given to another model.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is none; `InvalidArgument` if it is known to be no tensor already. One
    /// that turns out to be none fails.
    pub fn tensor(&self, name: &str) -> Result<AsyncValue<Layered>, Error> {
        self.call.result::<Layered>(self.outputs.place(name)?)
    }

    /// Returns the results as they are now, settled or to come, in the order of the model.
    pub fn results(&self) -> &[AnyAsyncValue] {
        self.call.results()
    }

    /// Returns the call of the function.
    pub fn into_call(self) -> Call {
        self.call
    }
}

impl fmt::Debug for ModelCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ModelCall").field(&self.call).finish()
    }
}

impl IntoFuture for ModelCall {
    type Output = Result<Outputs, Error>;
    type IntoFuture = OutputsFuture;

    fn into_future(self) -> OutputsFuture {
        OutputsFuture {
            outputs: self.outputs,
            call: self.call.into_future(),
        }
    }
}

/// The future of a [`ModelCall`]: all results, or the error of the last one that failed.
#[must_use = "futures do nothing unless polled"]
pub struct OutputsFuture {
    outputs: Arc<OutputList>,
    call: CallFuture,
}

impl Future for OutputsFuture {
    type Output = Result<Outputs, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let settled = Pin::new(&mut self.call).poll(context);
        settled.map(|values| Outputs::new(self.outputs.clone(), values?))
    }
}

/// The results of a call, none of which has failed.
///
/// # Examples
///
/// ```
/// use tfrt::{Model, Runtime, Tensor};
///
/// let runtime = Runtime::new();
/// let model = Model::from_program(
///     runtime.compile("twice.mlir", r#"func.func @main(%x: tensor<?xf32>) -> tensor<?xf32>
///         attributes {model.input_names = ["x"], model.output_names = ["y"]} {
///       %y = "onnx.Add"(%x, %x) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
///       tfrt.return %y : tensor<?xf32>
///     }"#)?,
///     &runtime,
/// )?;
/// let mut outputs = model.call(&runtime.context(), [("x", vec![1.0_f32, 2.0])]).wait()?;
/// assert_eq!(outputs.tensor("y")?.view::<f32>()?[..], [2.0, 4.0]);
///
/// // What is taken is the caller's alone, and may be changed in place.
/// let mut y: Tensor = outputs.take("y")?;
/// y.make_mut::<f32>()?[0] = 0.0;
/// assert_eq!(y.to_vec::<f32>()?, [0.0, 4.0]);
/// # Ok::<(), tfrt::AnyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Outputs {
    outputs: Arc<OutputList>,
    /// Invariant: as many as the outputs.
    data: SmallVec<[Datum; 1]>,
}

impl Outputs {
    fn new(outputs: Arc<OutputList>, values: Values) -> Result<Outputs, Error> {
        let values = values.into_inner();
        let mut data = SmallVec::with_capacity(values.len());
        for value in values {
            data.push(Datum::try_from(value)?);
        }
        Ok(Outputs { outputs, data })
    }

    /// Returns the result of a name.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is none.
    pub fn get(&self, name: &str) -> Result<&Datum, Error> {
        Ok(&self.data[self.outputs.place(name)?])
    }

    /// Returns the tensor that is the result of a name. It shares its elements with what stays here.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is none, `InvalidArgument` if it is no tensor.
    pub fn tensor(&self, name: &str) -> Result<Tensor, Error> {
        Tensor::try_from(self.get(name)?.as_tensor()?.clone())
    }

    /// Returns the tensor that is the result of a name, for good: an empty optional stays in its place.
    ///
    /// # Errors
    ///
    /// Those of [`tensor`](Self::tensor); then the result stays.
    pub fn take(&mut self, name: &str) -> Result<Tensor, Error> {
        let datum = &mut self.data[self.outputs.place(name)?];
        datum.as_tensor()?;
        let taken = std::mem::replace(datum, Datum::Optional(Optional::Nothing));
        Tensor::try_from(taken)
    }

    /// Returns the results, all of them tensors, in the order of the model.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if one is no tensor.
    pub fn into_tensors(self) -> Result<Vec<Tensor>, Error> {
        self.data.into_iter().map(Tensor::try_from).collect()
    }

    /// Returns the results with their names, in the order of the model.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Datum)> {
        let names = self.outputs.values.iter();
        names.map(|output| output.name.as_str()).zip(&self.data[..])
    }

    /// Returns the results, in the order of the model.
    pub fn into_data(self) -> Vec<Datum> {
        self.data.into_vec()
    }
}

impl std::ops::Index<usize> for Outputs {
    type Output = Datum;

    /// Returns the result of an index.
    ///
    /// # Panics
    ///
    /// If there is none.
    fn index(&self, index: usize) -> &Datum {
        &self.data[index]
    }
}
