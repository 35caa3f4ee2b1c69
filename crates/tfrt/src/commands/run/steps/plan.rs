//! [`StepPlan`]: what `--state` and `--steps` say, held against the model and its inputs.

use std::collections::BTreeSet;

use tfrt::Context;
use tfrt::ir::similar;
use tfrt::model::{Datum, Dim, Model, Session, ValueInfo, ValueType};

use super::cut::{Cut, Form, position, symbol};
use super::{StepInput, Steps};
use crate::commands::model_inputs::{dims, rejected};
use crate::data::read::listed;
use crate::failure::Failure;
use crate::options::StateOptions;

/// The state and the steps that a command line asks for, before the inputs are read.
pub(in crate::commands::run) struct StepPlan {
    session: Session,
    n_steps: Option<usize>,
    cuts: Vec<Cut>,
}

impl StepPlan {
    /// Finds the inputs and outputs that options name; `None` if the model is called once and keeps nothing.
    ///
    /// # Errors
    ///
    /// `Usage` for names and dimensions that the model does not have.
    pub(in crate::commands::run) fn new(
        options: &StateOptions,
        model: &Model,
    ) -> Result<Option<StepPlan>, Failure> {
        if !options.is_used() {
            return Ok(None);
        }
        let mut states = options.states.iter();
        let session =
            states.try_fold(model.session(), |session, text| add_state(&session, text))?;
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
    pub(in crate::commands::run) fn is_state(&self, input: usize) -> bool {
        let name = &self.session.model().inputs()[input].name;
        let mut states = self.session.states();
        states.any(|(_, input)| input.name == *name)
    }

    /// Returns whether each output is state.
    pub(in crate::commands::run) fn state_outputs(&self) -> Vec<bool> {
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
    pub(in crate::commands::run) fn begin(
        mut self,
        data: Vec<Option<Datum>>,
        context: &Context,
    ) -> Result<Steps, Failure> {
        let is_output_state = self.state_outputs();
        let model = self.session.model().clone();
        let (mut inputs, mut session) = (Vec::new(), self.session.clone());
        let mut n_steps: Option<(usize, String)> = None;
        // The elements that steps take, and the elements of one.
        let mut taken: Option<(usize, usize)> = None;
        let grown = self.grown();
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
                taken = Some((cut.extent(&datum), cut.size));
            }
            inputs.push(StepInput { index, datum, cut });
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
        if is_joined {
            let taken = taken.unwrap_or((n_steps, 1));
            for given in inputs.iter_mut().filter(|given| given.cut.is_none()) {
                let input = &model.inputs()[given.index];
                given.cut = Cut::up_to((given.index, input), &given.datum, &grown, taken)?;
            }
        }
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

    /// Returns the names of dimensions that outputs have as state and inputs don't: how much a cache has seen with a step.
    fn grown(&self) -> BTreeSet<String> {
        let states = self.session.states();
        let names = states.flat_map(|(output, input)| {
            let pairs = dims(output).iter().zip(dims(input));
            pairs.filter(|(output, input)| output != input)
        });
        let names = names.filter_map(|(output, _)| symbol(output));
        names.map(str::to_owned).collect()
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
                form: Form::Element,
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
                form: Form::Range,
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
        let symbols = inputs.iter().flat_map(dims).filter_map(symbol);
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
