//! [`Session`]: a model that keeps state from one call to the next.
//!
//! A step moves the handles of its state outputs to the state inputs of the next. Nothing is copied and nothing is
//! waited for; between two steps the session alone holds its state, so that kernels may write over it.

use std::fmt;
use std::sync::Arc;

use tfrt_host::{AnyAsyncValue, Error, ErrorCode};
use tfrt_ir::similar;

use super::inputs::{ModelInput, ModelInputs};
use super::outputs::{ModelCall, OutputList};
use super::signature::{InputValue, Slots, listed};
use super::types::{Dim, ValueInfo};
use super::{Function, Model};
use crate::call::Call;
use crate::context::Context;

mod pairs;
mod room;
mod zeros;

use pairs::Pair;
use room::{Room, growing_axis};
use zeros::Zeros;

/// A model with state: outputs of one call that are inputs of the next, such as the state of a recurrent network or the
/// keys and values that a decoder has seen. A clone goes on from the same state, on its own.
///
/// State that nobody gives is zeros of the input's type, made by the first step. A dimension has the size that the model
/// fixes, that [`dim`](Self::dim) says, or that other inputs of the step give its name. Of the others, one for which the
/// output has another name, as a cache has whose `past` becomes `total`, is 0, and the rest are 1: if the first step
/// makes something else of a 1 that nobody has said, the state fails with a message.
///
/// # Examples
///
/// A sum over all steps:
///
/// ```
/// use tfrt::{Model, Runtime};
///
/// let runtime = Runtime::new();
/// let text = r#"func.func @main(%x: tensor<2xf32>, %sum: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
///     attributes {model.input_names = ["x", "sum"], model.output_names = ["twice", "new_sum"]} {
///   %new = "onnx.Add"(%x, %sum) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
///   %twice = "onnx.Add"(%new, %new) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
///   tfrt.return %twice, %new : tensor<2xf32>, tensor<2xf32>
/// }"#;
/// let model = Model::from_program(runtime.compile("sum.mlir", text)?, &runtime)?;
/// let context = runtime.context();
///
/// let mut session = model.session().state("new_sum", "sum")?;
/// let first = session.step(&context, [("x", vec![1.0_f32, 2.0])]);
/// // The second is made before the first is over: its state is what the first will give.
/// let second = session.step(&context, [("x", vec![10.0_f32, 20.0])]);
/// assert_eq!(first.wait()?.tensor("twice")?.to_vec::<f32>()?, [2.0, 4.0]);
/// assert_eq!(second.wait()?.tensor("twice")?.to_vec::<f32>()?, [22.0, 44.0]);
/// assert_eq!(session.read(&context).wait()?.tensor("sum")?.to_vec::<f32>()?, [11.0, 22.0]);
/// # Ok::<(), tfrt::AnyError>(())
/// ```
#[derive(Clone)]
pub struct Session {
    model: Model,
    /// The names of dimensions of state, with their sizes in the beginning.
    dims: Vec<(String, usize)>,
    /// The most elements of states along the dimension in which they grow.
    max_length: Option<usize>,
    /// Invariant: no two have the same input or output.
    states: Vec<State>,
    /// The outputs of the model that are no state, by their indexes and as callers see them.
    kept: (Arc<[usize]>, Arc<OutputList>),
    /// The state, as results of a call.
    listed: Arc<OutputList>,
}

/// One state of a session.
#[derive(Clone)]
struct State {
    pair: Pair,
    initial: Option<AnyAsyncValue>,
    /// The value for the next step, settled or to come; `None` for zeros that are not made yet.
    value: Option<AnyAsyncValue>,
    /// Whether somebody has given the value, and no step has made it.
    is_given: bool,
    /// The room of zeros that have all of it from the beginning.
    filled: Option<Room>,
}

impl Session {
    pub(super) fn new(model: Model) -> Session {
        let outputs = &model.0.signature.outputs;
        let kept = ((0..outputs.values.len()).collect(), outputs.clone());
        let n_inputs = model.inputs().len() - model.n_variables();
        let n_outputs = model.outputs().len() - model.n_variables();
        let variables = model.0.initial.iter().enumerate();
        let states = variables.map(|(index, value)| State {
            pair: Pair {
                output: n_outputs + index,
                input: n_inputs + index,
            },
            initial: Some(value.clone()),
            value: Some(value.clone()),
            is_given: true,
            filled: None,
        });
        let mut session = Session {
            dims: Vec::new(),
            max_length: None,
            states: states.collect(),
            kept,
            listed: Arc::new(OutputList::of_states(Vec::new())),
            model,
        };
        session.list();
        session
    }

    /// Keeps an output of each step as an input of the next. `{i}` in both names stands for all numbers that occur, so
    /// that `present.{i}.key` and `past_key_values.{i}.key` are those of each layer.
    ///
    /// # Errors
    ///
    /// `NotFound` for names that the model does not have, `InvalidArgument` for a pair whose types differ, and for an
    /// input or output that is state already.
    pub fn state(mut self, output: &str, input: &str) -> Result<Session, Error> {
        for pair in pairs::find(&self.model, output, input)? {
            self.check_is_new(pair)?;
            self.states.push(State {
                pair,
                initial: None,
                value: None,
                is_given: false,
                filled: None,
            });
        }
        self.list();
        Ok(self)
    }

    /// Begins with a value in the place of zeros, also after a [reset](Self::reset). It is not written over.
    ///
    /// # Errors
    ///
    /// Those of [`replace`](Self::replace).
    pub fn initial(mut self, input: &str, value: impl ModelInput) -> Result<Session, Error> {
        let index = self.index_of(input)?;
        let value = self.bind(index, value)?;
        let state = &mut self.states[index];
        state.initial = Some(value.clone());
        state.give(Some(value));
        Ok(self)
    }

    /// Begins with zeros of which a dimension that has a name is of a size.
    ///
    /// # Errors
    ///
    /// `NotFound` if no state has a dimension of this name.
    pub fn dim(mut self, name: &str, size: usize) -> Result<Session, Error> {
        let names = || {
            let states = self.states.iter();
            let dims = states.flat_map(|state| self.input(state).kind.dims());
            dims.filter_map(|dim| match dim {
                Dim::Symbol(name) => Some(name.as_str()),
                _ => None,
            })
        };
        if !names().any(|known| known == name) {
            let message = format!("no state has a dimension '{name}'");
            let error = Error::new(ErrorCode::NotFound, message);
            return Err(match similar::nearest(name, names()) {
                Some(nearest) => error.with_note(format!("there is a dimension '{nearest}'")),
                None => error,
            });
        }
        self.dims.retain(|(known, _)| known != name);
        self.dims.push((name.to_owned(), size));
        Ok(self)
    }

    /// Gives states room for so many elements: for all that steps will append to them. Then a step that appends to a state
    /// writes what is new behind what is there, and copies nothing, whether it is `Concat`, `Attention`, or
    /// `GroupQueryAttention` that does it; memory is taken once, in the first step. A state that would be longer than
    /// its room is an error.
    ///
    /// The dimension is the one along which the state grows: for which the output has another name, or of which nothing
    /// is known. A state without one, such as a buffer that inputs and outputs have in one size, begins with zeros of
    /// this length in the only dimension to which nothing gives a size.
    ///
    /// A state in a buffer of one size is written over if nobody else holds it: a clone, or a
    /// [read](Self::read) of before, makes the next step copy it.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if no state has such a dimension.
    pub fn max_length(mut self, n: usize) -> Result<Session, Error> {
        let is_open = |dim: &Dim| !matches!(dim, Dim::Fixed(_));
        let has_room = |(output, input): (&ValueInfo, &ValueInfo)| {
            growing_axis(input, output).is_some() || input.kind.dims().iter().any(is_open)
        };
        if !self.states().any(has_room) {
            let known: Vec<ValueInfo> = self.states().map(|(_, input)| input.clone()).collect();
            let known = listed(&known);
            let message = format!("no state has a dimension in which it could grow: {known}");
            return Err(Error::invalid_argument(message));
        }
        self.max_length = Some(n);
        Ok(self)
    }

    /// Calls the model with the state and these inputs, as [`Model::call`] does; the results are those outputs that are
    /// no state, which is kept for the next step. None of these need to be there for it.
    ///
    /// An input that does not fit fails the results, and the state stays as it was. An error in the state itself fails
    /// all later steps, until it is [replaced](Self::replace) or [reset](Self::reset). Whoever never waits for
    /// results, nor for the state ([`read`](Self::read)), piles up steps on a queue of many threads.
    pub fn step(&mut self, context: &Context, inputs: impl ModelInputs) -> ModelCall {
        self.step_by(context, inputs, |function, arguments| {
            function.call(context, arguments)
        })
    }

    /// Makes a step as [`step`](Self::step) does, but hands it to the work queue and returns at once.
    pub fn spawn(&mut self, context: &Context, inputs: impl ModelInputs) -> ModelCall {
        self.step_by(context, inputs, |function, arguments| {
            function.spawn(context, arguments)
        })
    }

    /// Returns the state for the next step, by the names of inputs: as the results of a call, to be waited for.
    ///
    /// Before the first step a state without an initial value is the error `FailedPrecondition`: its zeros are made by
    /// that step.
    pub fn read(&self, context: &Context) -> ModelCall {
        let values = self.states.iter().map(|state| match &state.value {
            Some(value) => value.clone(),
            None => {
                let name = &self.input(state).name;
                let message = format!("the zeros of state '{name}' are made by the first step");
                AnyAsyncValue::from_error(Error::failed_precondition(message))
            }
        });
        let call = Call::new(values.collect(), context.execution());
        ModelCall::new(self.listed.clone(), call)
    }

    /// Puts a value in the place of the state of an input.
    ///
    /// # Errors
    ///
    /// `NotFound` if the input is no state, `InvalidArgument` if it can't be given the value.
    pub fn replace(&mut self, input: &str, value: impl ModelInput) -> Result<(), Error> {
        let index = self.index_of(input)?;
        let value = self.bind(index, value)?;
        self.states[index].give(Some(value));
        Ok(())
    }

    /// Goes back to the state before the first step.
    pub fn reset(&mut self) {
        for state in &mut self.states {
            state.give(state.initial.clone());
        }
    }

    /// Returns the arguments of the model's function in a step with these inputs: inputs and state, checked, then the
    /// constants.
    ///
    /// # Errors
    ///
    /// Those of [`Model::arguments`].
    pub fn arguments(
        &self,
        context: &Context,
        inputs: impl ModelInputs,
    ) -> Result<Vec<AnyAsyncValue>, Error> {
        Ok(self.bind_step(context, inputs)?.0)
    }

    /// Returns the model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Returns the outputs that are state, each with the input that is given its value in the next step.
    pub fn states(&self) -> impl ExactSizeIterator<Item = (&ValueInfo, &ValueInfo)> {
        let states = self.states.iter();
        states.map(|state| (self.output(state), self.input(state)))
    }

    fn input(&self, state: &State) -> &ValueInfo {
        &self.model.inputs()[state.pair.input]
    }

    /// Returns the room of a state that grows, if states have any.
    fn room(&self, state: &State) -> Option<Room> {
        let (longest, input) = (self.max_length?, self.input(state));
        let axis = growing_axis(input, self.output(state))?;
        Some(Room::new(input, axis, longest))
    }

    fn output(&self, state: &State) -> &ValueInfo {
        &self.model.outputs()[state.pair.output]
    }

    fn step_by(
        &mut self,
        context: &Context,
        inputs: impl ModelInputs,
        call: impl FnOnce(&Function, Vec<AnyAsyncValue>) -> Call,
    ) -> ModelCall {
        let results = match self.bind_step(context, inputs) {
            Ok((arguments, zeros)) => {
                // The call alone holds the state now.
                self.states.iter_mut().for_each(|state| state.value = None);
                let results = call(self.model.function(), arguments).into_results();
                self.keep(results, &zeros)
            }
            Err(error) => {
                let failed = |_| AnyAsyncValue::from_error(error.clone());
                self.kept.0.iter().map(failed).collect()
            }
        };
        ModelCall::new(self.kept.1.clone(), Call::new(results, context.execution()))
    }

    /// Returns the arguments of the model's function, and the states that begin with zeros.
    fn bind_step(
        &self,
        context: &Context,
        inputs: impl ModelInputs,
    ) -> Result<(Vec<AnyAsyncValue>, Vec<Option<Zeros>>), Error> {
        let signature = &self.model.0.signature;
        let states = self.states.iter().map(|state| state.pair.input);
        let mut slots = Slots::of_session(signature, states);
        inputs.place(&mut slots)?;
        let mut given = slots.finish();
        for state in &self.states {
            let value = state.value.clone();
            let value = match self.room(state).filter(|_| state.is_given) {
                Some(room) => value.map(|value| room.widen(value, context.execution().allocator())),
                None => value,
            };
            given[state.pair.input] = value.map(InputValue::Later);
        }
        let mut zeros = Vec::with_capacity(self.states.len());
        for state in &self.states {
            if state.value.is_some() {
                zeros.push(None);
                continue;
            }
            let (input, output) = (self.input(state), self.output(state));
            let size_of = |name: &str| self.size_of(name, &given);
            let begun = Zeros::new(input, output, &size_of, self.max_length)?;
            let value = begun.make(input, context.execution().allocator())?;
            given[state.pair.input] = Some(InputValue::Later(value));
            zeros.push(Some(begun));
        }
        Ok((self.model.bind(given)?, zeros))
    }

    /// Returns the size of a dimension, as far as somebody has said it.
    fn size_of(&self, name: &str, given: &[Option<InputValue>]) -> Option<usize> {
        let said = self.dims.iter().find(|(known, _)| known == name);
        said.map(|(_, size)| *size).or_else(|| {
            let inputs = self.model.inputs().iter().zip(given);
            let mut sizes = inputs.filter_map(|(input, given)| {
                let (InputValue::Tensor(value) | InputValue::Later(value)) = given.as_ref()? else {
                    return None;
                };
                let tensor = value.get::<tfrt_tensor::Tensor>()?;
                let mut dims = input.kind.dims().iter();
                let at = dims.position(|dim| matches!(dim, Dim::Symbol(known) if known == name))?;
                tensor.metadata().shape.extents().nth(at)
            });
            sizes.next()
        })
    }

    /// Keeps those results that are state, and returns the others.
    fn keep(&mut self, results: Vec<AnyAsyncValue>, zeros: &[Option<Zeros>]) -> Vec<AnyAsyncValue> {
        let mut results: Vec<Option<AnyAsyncValue>> = results.into_iter().map(Some).collect();
        let mut take = |index: usize| {
            let result = results.get_mut(index).and_then(Option::take);
            result.expect("each output is taken once")
        };
        let rooms: Vec<Option<Room>> = self.states.iter().map(|state| self.room(state)).collect();
        let outputs = self.model.0.signature.outputs.clone();
        for ((state, zeros), room) in self.states.iter_mut().zip(zeros).zip(rooms) {
            let mut value = take(state.pair.output);
            if let Some(zeros) = zeros {
                state.filled.clone_from(&zeros.filled);
                value = zeros.check(value);
            }
            if let Some(room) = room.or_else(|| state.filled.clone()) {
                value = room.check(value, &outputs.values[state.pair.output].name);
            }
            (state.value, state.is_given) = (Some(value), false);
        }
        self.kept.0.iter().map(|index| take(*index)).collect()
    }

    /// Sorts the outputs of the model into state and others.
    fn list(&mut self) {
        let outputs = self.model.outputs();
        let is_state = |index| self.states.iter().any(|state| state.pair.output == index);
        let kept: Arc<[usize]> = (0..outputs.len())
            .filter(|index| !is_state(*index))
            .collect();
        let values = kept.iter().map(|index| outputs[*index].clone()).collect();
        let pairs = self
            .states()
            .map(|(output, input)| (output.name.clone(), input.name.clone()));
        let list = OutputList::of_step(values, pairs.collect());
        let states = self.states().map(|(_, input)| input.clone()).collect();
        self.listed = Arc::new(OutputList::of_states(states));
        self.kept = (kept, Arc::new(list));
    }

    fn check_is_new(&self, pair: Pair) -> Result<(), Error> {
        let (inputs, outputs) = (self.model.inputs(), self.model.outputs());
        let mut states = self.states.iter().map(|state| state.pair);
        let Some(other) = states.find(|one| one.input == pair.input || one.output == pair.output)
        else {
            return Ok(());
        };
        let names = |pair: Pair| (&outputs[pair.output].name, &inputs[pair.input].name);
        let ((output, input), (other_output, other_input)) = (names(pair), names(other));
        Err(Error::invalid_argument(format!(
            "output '{output}' can't be the state of input '{input}': output '{other_output}' is the state of input \
             '{other_input}' already"
        )))
    }

    /// Returns the index of the state of an input.
    fn index_of(&self, input: &str) -> Result<usize, Error> {
        let mut states = self.states.iter();
        let found = states.position(|state| self.input(state).name == input);
        found.ok_or_else(|| self.no_state(input))
    }

    #[cold]
    fn no_state(&self, name: &str) -> Error {
        let known: Vec<ValueInfo> = self.states().map(|(_, input)| input.clone()).collect();
        let known = listed(&known);
        let message = format!("the session has no state '{name}': it keeps {known}");
        let error = Error::new(ErrorCode::NotFound, message);
        if let Some((output, input)) = self.states().find(|(output, _)| output.name == name) {
            let (output, input) = (&output.name, &input.name);
            let note =
                format!("output '{output}' is the state of input '{input}', whose name it goes by");
            return error.with_note(note);
        }
        let names = self.states().map(|(_, input)| input.name.as_str());
        match similar::nearest(name, names) {
            Some(nearest) => error.with_note(format!("there is a state '{nearest}'")),
            None => error,
        }
    }

    /// Checks a value for a state.
    fn bind(&self, index: usize, value: impl ModelInput) -> Result<AnyAsyncValue, Error> {
        let signature = &self.model.0.signature;
        signature.bind_one(self.states[index].pair.input, value.into_input().0)
    }
}

impl State {
    /// Puts a value, or none, in the place of the state.
    fn give(&mut self, value: Option<AnyAsyncValue>) {
        (self.value, self.is_given, self.filled) = (value, true, None);
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self
            .states()
            .map(|(output, input)| (&output.name, &input.name));
        f.debug_struct("Session")
            .field("model", &self.model)
            .field("states", &names.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
