//! `tfrt run --state` and `--steps`: the calls of a model that keeps state, and their outputs as those of one.

use std::sync::Arc;

use tfrt::model::{Datum, Model, Session};
use tfrt::{AnyAsyncValue, Context, Error, HostAllocator, Tensor};

use crate::commands::model_inputs::dims;
use crate::data::steps;
use crate::failure::Failure;

mod cut;
mod plan;

pub(super) use plan::StepPlan;

use cut::{Cut, Form, symbol};

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
    /// The index of the input.
    index: usize,
    datum: Datum,
    cut: Option<Cut>,
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
                    let range = by.range(step, by.extent(&input.datum));
                    let is_kept = by.form != Form::Element;
                    steps::cut(tensor, by.dimension, range, is_kept, &self.allocator)?.into()
                }
                (_, datum) => datum.clone(),
            };
            let name = &self.session.model().inputs()[input.index].name;
            Ok((name.clone(), datum))
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

impl StepInput {
    /// Returns the name of the dimension that the input is cut along, if it has one.
    fn symbol(&self, model: &Model) -> Option<String> {
        let cut = self.cut.as_ref().filter(|cut| cut.form == Form::Range)?;
        let dim = dims(&model.inputs()[cut.input]).get(cut.dimension)?;
        symbol(dim).map(str::to_owned)
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
    steps::join(&parts, dimension, allocator)
}
