//! `tfrt run --state` and `--steps`: the calls of a model that keeps state, and their outputs as those of one.

use std::collections::BTreeSet;
use std::sync::Arc;

use tfrt::ir::similar;
use tfrt::model::{Datum, Dim, Model, Session, ValueInfo, ValueType};
use tfrt::{AnyAsyncValue, Context, Error, HostAllocator, Tensor};

use crate::commands::model_inputs::{dims, rejected};
use crate::data::read::listed;
use crate::data::steps::{cut, join};
use crate::failure::Failure;
use crate::options::StateOptions;

/// The state and the steps that a command line asks for, before the inputs are read.
pub(super) struct StepPlan {
    session: Session,
    n_steps: Option<usize>,
    cuts: Vec<Cut>,
}

/// An input that is cut along a dimension, in pieces of a size.
struct Cut {
    input: usize,
    dimension: usize,
    size: usize,
    /// Whether the pieces have the dimension; else it is one more than the model takes.
    is_kept: bool,
}

/// The steps of a run: their inputs, and what has become of them.
pub(super) struct Steps {
    session: Session,
    n_steps: usize,
    inputs: Vec<StepInput>,
    /// The outputs that are no state, by their index; with the dimension along which those of the steps are joined.
    outputs: Vec<(usize, Option<usize>)>,
    /// Whether outputs are put together at all.
    is_joined: bool,
    allocator: Arc<dyn HostAllocator>,
    /// The outputs of each step.
    done: Vec<Vec<AnyAsyncValue>>,
    /// The state in the end.
    states: Vec<AnyAsyncValue>,
}

struct StepInput {
    name: String,
    datum: Datum,
    cut: Option<Cut>,
}

impl StepPlan {
    /// Finds the inputs and outputs that options name; `None` if the model is called once and keeps nothing.
    ///
    /// # Errors
    ///
    /// `Usage` for names and dimensions that the model does not have.
    pub(super) fn new(options: &StateOptions, model: &Model) -> Result<Option<StepPlan>, Failure> {
        if !options.is_used() {
            return Ok(None);
        }
        let states = options.states.iter();
        let session = states.fold(Ok(model.session()), |session, text| {
            add_state(&session?, text)
        })?;
        let mut plan = StepPlan {
            session,
            n_steps: None,
            cuts: Vec::new(),
        };
        for text in &options.steps {
            plan.add_steps(text)?;
        }
        Ok(Some(plan))
    }

    /// Returns whether an input is state.
    pub(super) fn is_state(&self, input: usize) -> bool {
        let name = &self.session.model().inputs()[input].name;
        let mut states = self.session.states();
        states.any(|(_, input)| input.name == *name)
    }

    /// Returns whether each output is state.
    pub(super) fn state_outputs(&self) -> Vec<bool> {
        let states = self.session.states();
        let names: BTreeSet<&str> = states.map(|(output, _)| output.name.as_str()).collect();
        let outputs = self.session.model().outputs().iter();
        let is_state = |output: &ValueInfo| names.contains(output.name.as_str());
        outputs.map(is_state).collect()
    }

    /// Takes the inputs of all steps, and checks those of the first.
    ///
    /// # Errors
    ///
    /// `Usage` if nothing says how many steps there are, or it is said differently; `Rejected` for inputs that don't
    /// fit the model.
    pub(super) fn begin(
        mut self,
        data: Vec<Option<Datum>>,
        context: &Context,
    ) -> Result<Steps, Failure> {
        let is_output_state = self.state_outputs();
        let model = self.session.model().clone();
        let (mut inputs, mut session) = (Vec::new(), self.session.clone());
        let mut n_steps: Option<(usize, String)> = None;
        for (index, (input, datum)) in model.inputs().iter().zip(data).enumerate() {
            let Some(datum) = datum else { continue };
            if self.is_state(index) {
                session = session
                    .initial(&input.name, datum)
                    .map_err(|e| rejected(&e))?;
                continue;
            }
            let cut = self.cut_of(index, input, &datum);
            if let Some(cut) = &cut {
                let n = cut.n_steps(input, &datum)?;
                match &n_steps {
                    Some((before, other)) if *before != n => {
                        let name = &input.name;
                        return Err(Failure::Usage(format!(
                            "input '{name}' has {n} steps, but input '{other}' has {before}"
                        )));
                    }
                    _ => n_steps = Some((n, input.name.clone())),
                }
            }
            let name = input.name.clone();
            inputs.push(StepInput { name, datum, cut });
        }
        let is_joined = self.n_steps.is_some() || n_steps.is_some();
        let n_steps = match (self.n_steps, n_steps) {
            (Some(asked), Some((n, name))) if asked > n => {
                return Err(Failure::Usage(format!(
                    "--steps {asked} is more than the {n} that input '{name}' has"
                )));
            }
            (Some(n), _) | (None, Some((n, _))) => n,
            (None, None) if self.cuts.is_empty() => 1,
            (None, None) => {
                let names = self.cuts.iter().map(|cut| &model.inputs()[cut.input].name);
                let names: Vec<&str> = names.map(String::as_str).collect();
                return Err(Failure::Usage(format!(
                    "--steps cuts {}: give it with --input",
                    names.join(", ")
                )));
            }
        };
        let symbols: BTreeSet<String> = inputs
            .iter()
            .filter_map(|input| input.symbol(&model))
            .collect();
        let mut outputs = Vec::new();
        for (index, output) in model.outputs().iter().enumerate() {
            if is_output_state[index] {
                continue;
            }
            if is_joined && !matches!(output.kind, ValueType::Tensor(_)) {
                return Err(Failure::Usage(format!(
                    "outputs of steps are put together, which only tensors can be: the model gives {output}"
                )));
            }
            let is_cut = |dim: &Dim| matches!(dim, Dim::Symbol(name) if symbols.contains(name));
            outputs.push((index, dims(output).iter().position(is_cut)));
        }
        let steps = Steps {
            session,
            n_steps,
            inputs,
            outputs,
            is_joined,
            allocator: context.execution().allocator().clone(),
            done: Vec::new(),
            states: Vec::new(),
        };
        let first = steps
            .inputs_of(0)
            .and_then(|first| steps.session.arguments(context, first));
        first.map(|_| steps).map_err(|error| rejected(&error))
    }

    /// Returns how an input that was given is cut, if it is.
    fn cut_of(&mut self, index: usize, input: &ValueInfo, datum: &Datum) -> Option<Cut> {
        let Datum::Tensor(tensor) = datum else {
            return None;
        };
        let rank = tensor.metadata().shape.rank();
        let known = input
            .kind
            .as_tensor()
            .and_then(|tensor| tensor.dims.as_ref());
        if known.is_some_and(|dims| dims.len() + 1 == rank) {
            return Some(Cut {
                input: index,
                dimension: 0,
                size: 1,
                is_kept: false,
            });
        }
        let asked = self.cuts.iter().position(|cut| cut.input == index)?;
        // What has another number of dimensions is refused with its type.
        let fits = known.is_none_or(|dims| dims.len() == rank);
        (fits && self.cuts[asked].dimension < rank).then(|| self.cuts.swap_remove(asked))
    }

    /// Takes one `--steps`.
    fn add_steps(&mut self, text: &str) -> Result<(), Failure> {
        if let Ok(n) = text.parse::<usize>() {
            if n == 0 || self.n_steps.is_some() {
                let found = if n == 0 { "0" } else { "a second" };
                let message =
                    format!("--steps takes one number of steps, at least 1: found {found}");
                return Err(Failure::Usage(message));
            }
            self.n_steps = Some(n);
            return Ok(());
        }
        let cuts = self.cuts_of(text, None);
        let cuts = cuts.or_else(|| {
            let (dimension, size) = text.rsplit_once(':')?;
            let size = size.parse().ok().filter(|size| *size > 0)?;
            self.cuts_of(dimension, Some(size))
        });
        let Some(cuts) = cuts else {
            return Err(self.no_such_dimension(text));
        };
        for cut in cuts {
            if self.cuts.iter().any(|other| other.input == cut.input) {
                let name = &self.session.model().inputs()[cut.input].name;
                let message = format!("input '{name}' is cut by --steps twice");
                return Err(Failure::Usage(message));
            }
            self.cuts.push(cut);
        }
        Ok(())
    }

    /// Returns the inputs that `INPUT=DIM` or `DIM` cuts; `None` if there are none.
    fn cuts_of(&self, text: &str, size: Option<usize>) -> Option<Vec<Cut>> {
        let inputs = self.session.model().inputs();
        let cut = |input: usize, dimension: usize| {
            let dim = dims(&inputs[input]).get(dimension);
            let own = match dim {
                Some(Dim::Fixed(extent)) => *extent,
                _ => 1,
            };
            Cut {
                input,
                dimension,
                size: size.unwrap_or(own).max(1),
                is_kept: true,
            }
        };
        for (at, _) in text.match_indices('=') {
            let (name, dim) = (&text[..at], &text[at + 1..]);
            let Some(input) = inputs.iter().position(|input| input.name == name) else {
                continue;
            };
            let tensor = inputs[input]
                .kind
                .as_tensor()
                .filter(|_| !self.is_state(input))?;
            let named = position(&inputs[input], dim);
            let numbered = || {
                let rank = tensor.dims.as_ref().map_or(usize::MAX, Vec::len);
                dim.parse().ok().filter(|dim| *dim < rank)
            };
            return Some(vec![cut(input, named.or_else(numbered)?)]);
        }
        let all = inputs.iter().enumerate();
        let all = all.filter(|(index, _)| !self.is_state(*index));
        let cuts = all.filter_map(|(index, input)| Some(cut(index, position(input, text)?)));
        let cuts: Vec<Cut> = cuts.collect();
        (!cuts.is_empty()).then_some(cuts)
    }

    fn no_such_dimension(&self, text: &str) -> Failure {
        let inputs = self.session.model().inputs().iter().enumerate();
        let inputs = inputs.filter(|(index, _)| !self.is_state(*index));
        let inputs: Vec<ValueInfo> = inputs.map(|(_, input)| input.clone()).collect();
        let symbols = inputs
            .iter()
            .flat_map(|input| dims(input))
            .filter_map(symbol);
        let help = match similar::nearest(text, symbols) {
            Some(nearest) => format!("did you mean '{nearest}'?"),
            None => format!("the model has {}", listed("input", &inputs)),
        };
        Failure::Usage(format!(
            "--steps takes a number of steps, or a dimension of inputs that are no state, found '{text}': {help}"
        ))
    }
}

/// Adds the state that `OUTPUT=INPUT` names.
fn add_state(session: &Session, text: &str) -> Result<Session, Failure> {
    let mut first = None;
    // Names may have any characters, `=` too.
    for (at, _) in text.match_indices('=') {
        match session.clone().state(&text[..at], &text[at + 1..]) {
            Ok(session) => return Ok(session),
            Err(error) => first = first.or(Some(error)),
        }
    }
    let Some(error) = first else {
        return Err(Failure::Usage(format!(
            "--state takes OUTPUT=INPUT, found '{text}'"
        )));
    };
    let notes = error.notes().iter().map(|note| format!("; {note}"));
    let notes: String = notes.collect();
    Err(Failure::Usage(format!("{}{notes}", error.message())))
}

fn symbol(dim: &Dim) -> Option<&str> {
    match dim {
        Dim::Symbol(name) => Some(name),
        _ => None,
    }
}

fn position(input: &ValueInfo, name: &str) -> Option<usize> {
    let mut dims = dims(input).iter();
    dims.position(|dim| symbol(dim) == Some(name))
}

impl Cut {
    /// Returns how many steps an input has.
    fn n_steps(&self, input: &ValueInfo, datum: &Datum) -> Result<usize, Failure> {
        let (dimension, size, name) = (self.dimension, self.size, &input.name);
        let extent = self.extent(datum);
        let is_fixed = matches!(dims(input).get(dimension), Some(Dim::Fixed(_)));
        if self.is_kept && is_fixed && !extent.is_multiple_of(size) {
            return Err(Failure::Usage(format!(
                "input '{name}' can't be cut in pieces of {size}: dimension {dimension} has {extent} elements, which is \
                 no multiple"
            )));
        }
        match extent.div_ceil(size) {
            0 => Err(Failure::Usage(format!(
                "input '{name}' has no steps: dimension {dimension} has 0 elements"
            ))),
            n => Ok(n),
        }
    }

    fn extent(&self, datum: &Datum) -> usize {
        match datum {
            Datum::Tensor(tensor) => tensor.metadata().shape.to_dims()[self.dimension],
            _ => 0,
        }
    }
}

impl StepInput {
    /// Returns the name of the dimension that the input is cut along, if it has one.
    fn symbol(&self, model: &Model) -> Option<String> {
        let cut = self.cut.as_ref().filter(|cut| cut.is_kept)?;
        let dim = dims(&model.inputs()[cut.input]).get(cut.dimension)?;
        symbol(dim).map(str::to_owned)
    }
}

impl Steps {
    /// Makes all steps, each when the one before is over. Returns the outputs of all of them and the state in the end,
    /// or those of the first step in which something has failed.
    pub(super) fn run(&mut self, context: &Context) -> Vec<AnyAsyncValue> {
        let is_error = |value: &AnyAsyncValue| value.error().is_some();
        for step in 0..self.n_steps {
            match self.step(step, context) {
                Ok((results, states)) => {
                    if results.iter().chain(&states).any(is_error) {
                        return results.into_iter().chain(states).collect();
                    }
                    self.done.push(results);
                    if step + 1 == self.n_steps {
                        self.states = states;
                    }
                }
                Err(error) => return vec![AnyAsyncValue::from_error(error)],
            }
        }
        let outputs = self.done.iter().flatten();
        outputs.chain(&self.states).cloned().collect()
    }

    fn step(
        &mut self,
        step: usize,
        context: &Context,
    ) -> Result<(Vec<AnyAsyncValue>, Vec<AnyAsyncValue>), Error> {
        let inputs = self.inputs_of(step)?;
        let call = self.session.step(context, inputs);
        let results = call.into_call().wait_each()?;
        let states = self.session.read(context).into_call().wait_each()?;
        Ok((results, states))
    }

    fn inputs_of(&self, step: usize) -> Result<Vec<(String, Datum)>, Error> {
        let inputs = self.inputs.iter().map(|input| {
            let datum = match (&input.cut, &input.datum) {
                (Some(by), Datum::Tensor(tensor)) => {
                    let begin = step * by.size;
                    let end = (begin + by.size).min(by.extent(&input.datum));
                    let (dimension, is_kept) = (by.dimension, by.is_kept);
                    cut(tensor, dimension, begin..end, is_kept, &self.allocator)?.into()
                }
                (_, datum) => datum.clone(),
            };
            Ok((input.name.clone(), datum))
        });
        inputs.collect()
    }

    /// Returns the outputs of the model, in order: those of the steps put together, and the state in the end.
    ///
    /// # Errors
    ///
    /// `Rejected` for outputs that can't be put together.
    pub(super) fn into_outputs(self) -> Result<Vec<AnyAsyncValue>, Failure> {
        let outputs = self.session.model().outputs();
        let mut all: Vec<Option<AnyAsyncValue>> = vec![None; outputs.len()];
        for ((output, _), value) in self.session.states().zip(self.states) {
            let index = outputs.iter().position(|other| other.name == output.name);
            all[index.expect("the model has it")] = Some(value);
        }
        let mut done: Vec<_> = self.done.into_iter().map(Vec::into_iter).collect();
        for (index, dimension) in self.outputs {
            let steps = done.iter_mut().filter_map(Iterator::next);
            let mut steps: Vec<AnyAsyncValue> = steps.collect();
            all[index] = match self.is_joined {
                false => steps.pop(),
                true => {
                    let joined = joined(steps, dimension, &self.allocator);
                    let joined = joined.map_err(|reason| Failure::Rejected {
                        code: None,
                        message: format!(
                            "the outputs '{}' of the steps can't be put together: {reason}",
                            outputs[index].name
                        ),
                        help: None,
                    });
                    Some(AnyAsyncValue::new(joined?))
                }
            };
        }
        let all = all
            .into_iter()
            .map(|value| value.expect("an output is state or not"));
        Ok(all.collect())
    }
}

fn joined(
    steps: Vec<AnyAsyncValue>,
    dimension: Option<usize>,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<tfrt::tensor::Tensor, String> {
    let told = |error: Error| error.message().to_owned();
    let dense = |value| Tensor::try_from(Datum::try_from(value)?);
    let parts = steps
        .into_iter()
        .map(dense)
        .collect::<Result<Vec<_>, Error>>();
    let parts = parts.map_err(told)?;
    let parts: Vec<_> = parts.iter().map(Tensor::as_inner).collect();
    join(&parts, dimension, allocator)
}
