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

/// The steps that an input has.
struct FoundSteps {
    n_steps: usize,
    /// The name of the input.
    input: String,
    /// The elements of all steps, and those of one.
    taken: (usize, usize),
}

impl StepPlan {
    /// Finds the inputs and outputs that options name; `None` if the model is called once and keeps nothing: it has no variables, either.
    ///
    /// # Errors
    ///
    /// `Usage` for names and dimensions that the model does not have.
    pub(in crate::commands::run) fn new(
        options: &StateOptions,
        model: &Model,
    ) -> Result<Option<StepPlan>, Failure> {
        if !options.is_used() && model.n_variables() == 0 {
            return Ok(None);
        }
        let mut states = options.states.iter();
        let mut session =
            states.try_fold(model.session(), |session, text| add_state(&session, text))?;
        if let Some(n) = options.max_length {
            let widened = session.max_length(n);
            session = widened.map_err(|error| Failure::Usage(error.message().to_owned()))?;
        }
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
        let mut inputs = self.take_inputs(data, context)?;
        let found = self.found_steps(&inputs)?;
        let n_steps = self.count(found.as_ref())?;
        let is_joined = self.n_steps.is_some() || found.is_some();
        if is_joined {
            let taken = found.map_or((n_steps, 1), |found| found.taken);
            self.cut_masks(&mut inputs, taken)?;
        }
        let steps = Steps {
            n_steps,
            outputs: self.kept_outputs(&inputs, is_joined)?,
            session: self.session,
            inputs,
            is_joined,
            allocator: context.execution().allocator().clone(),
            done: Vec::new(),
            states: Vec::new(),
        };
        let first = steps.inputs_of(0);
        let first = first.and_then(|first| steps.session.arguments(context, first));
        first.map(|_| steps).map_err(|error| rejected(&error))
    }

    /// Gives the session the state that it begins with, and returns the other inputs.
    fn take_inputs(
        &mut self,
        data: Vec<Option<Datum>>,
        context: &Context,
    ) -> Result<Vec<StepInput>, Failure> {
        let allocator = context.execution().allocator();
        let model = self.session.model().clone();
        let mut inputs = Vec::new();
        for (index, (input, datum)) in model.inputs().iter().zip(data).enumerate() {
            let Some(mut datum) = datum else { continue };
            if self.is_state(index) {
                let begun = self.session.clone().initial(&input.name, datum);
                self.session = begun.map_err(|error| rejected(&error))?;
                continue;
            }
            let cut = self.cut_of(index, input, &datum)?;
            if let (Some(cut), Datum::Tensor(tensor)) = (&cut, &datum)
                && let Some(filled) = cut
                    .filled(tensor, allocator)
                    .map_err(|error| rejected(&error))?
            {
                datum = filled.into();
            }
            inputs.push(StepInput { index, datum, cut });
        }
        Ok(inputs)
    }

    /// Returns the steps that the inputs have which are cut, if any is.
    fn found_steps(&self, inputs: &[StepInput]) -> Result<Option<FoundSteps>, Failure> {
        let mut found: Option<FoundSteps> = None;
        for given in inputs {
            let Some(cut) = &given.cut else { continue };
            let input = &self.session.model().inputs()[given.index];
            let (name, n_steps) = (&input.name, cut.n_steps(input, &given.datum)?);
            if let Some(FoundSteps {
                n_steps: other_n_steps,
                input: other,
                ..
            }) = &found
                && n_steps != *other_n_steps
            {
                return Err(Failure::Usage(format!(
                    "input '{name}' has {n_steps} steps, but input '{other}' has {other_n_steps}"
                )));
            }
            found = Some(FoundSteps {
                n_steps,
                input: name.clone(),
                taken: (cut.n_taken(&given.datum), cut.size),
            });
        }
        Ok(found)
    }

    /// Returns the number of steps: what was asked for, or what inputs have.
    fn count(&self, found: Option<&FoundSteps>) -> Result<usize, Failure> {
        match (self.n_steps, found) {
            (Some(asked), Some(FoundSteps { n_steps, input, .. })) if asked > *n_steps => {
                Err(Failure::Usage(format!(
                    "--steps {asked} is more than the {n_steps} that input '{input}' has"
                )))
            }
            (Some(asked), _) => Ok(asked),
            (None, Some(found)) => Ok(found.n_steps),
            (None, None) => Ok(1),
        }
    }

    /// Cuts inputs that have the length of what a cache has seen; `taken` are the elements of all steps and of one.
    fn cut_masks(&self, inputs: &mut [StepInput], taken: (usize, usize)) -> Result<(), Failure> {
        let grown = self.grown();
        for given in inputs.iter_mut().filter(|given| given.cut.is_none()) {
            let input = &self.session.model().inputs()[given.index];
            given.cut = Cut::up_to((given.index, input), &given.datum, &grown, taken)?;
        }
        Ok(())
    }

    /// Returns the outputs that are no state, by their index, with the dimension that inputs are cut along.
    fn kept_outputs(
        &self,
        inputs: &[StepInput],
        is_joined: bool,
    ) -> Result<Vec<(usize, Option<usize>)>, Failure> {
        let model = self.session.model();
        let symbols = inputs.iter().filter_map(|given| given.symbol(model));
        let symbols: BTreeSet<String> = symbols.collect();
        let is_cut = |dim: &Dim| symbol(dim).is_some_and(|name| symbols.contains(name));
        let is_state = self.state_outputs();
        let outputs = model.outputs().iter().enumerate();
        let outputs = outputs.filter(|(index, _)| !is_state[*index]);
        let outputs = outputs.map(|(index, output)| match &output.kind {
            ValueType::Tensor(_) => Ok((index, dims(output).iter().position(is_cut))),
            _ if !is_joined => Ok((index, None)),
            _ => Err(Failure::Usage(format!(
                "outputs of steps are put together, which only tensors can be: the model gives {output}"
            ))),
        });
        outputs.collect()
    }

    /// Returns the names of dimensions that outputs have as state and inputs don't: how much a cache has seen with a step.
    fn grown(&self) -> BTreeSet<String> {
        let states = self.session.states();
        let names = states.flat_map(|(output, input)| {
            let pairs = dims(output).iter().zip(dims(input));
            pairs.filter_map(|(output, input)| Some((symbol(output)?, symbol(input)?)))
        });
        let names = names.filter(|(output, input)| output != input);
        let names = names.map(|(output, _)| output);
        names.map(str::to_owned).collect()
    }

    /// Returns how an input that was given is cut, if it is.
    fn cut_of(
        &mut self,
        index: usize,
        input: &ValueInfo,
        datum: &Datum,
    ) -> Result<Option<Cut>, Failure> {
        let asked = self.cuts.iter().position(|cut| cut.input == index);
        let asked = asked.map(|at| self.cuts.swap_remove(at));
        let Datum::Tensor(tensor) = datum else {
            return Ok(None);
        };
        let rank = tensor.metadata().shape.rank();
        let known = input.kind.as_tensor();
        let known = known.and_then(|tensor| Some(tensor.dims.as_ref()?.len()));
        if known.is_none_or(|known| known + 1 != rank) {
            // What has another number of dimensions is refused with its type.
            let fits = |cut: &Cut| known.is_none_or(|known| known == rank) && cut.dimension < rank;
            return Ok(asked.filter(fits));
        }
        if asked.is_some() {
            return Err(Failure::Usage(format!(
                "input '{}' has one dimension more than the model takes, that of the steps, and is cut by --steps \
                 along another",
                input.name
            )));
        }
        Ok(Some(Cut {
            input: index,
            dimension: 0,
            size: 1,
            form: Form::Element,
        }))
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
            let (dimension, sizes) = text.rsplit_once(':')?;
            let (size, n_before) = match sizes.split_once('+') {
                Some((size, n_before)) => (size, Some(n_before.parse().ok()?)),
                None => (sizes, None),
            };
            let size = size.parse().ok().filter(|size| *size > 0)?;
            let mut cuts = self.cuts_of(dimension, Some(size))?;
            if let Some(n_before) = n_before {
                let form = Form::Behind { n_before };
                cuts.iter_mut().for_each(|cut| cut.form = form);
            }
            Some(cuts)
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
