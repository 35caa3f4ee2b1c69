//! [`Pair`]: an output that is an input of the next step, found by names or by a pattern of names.

use tfrt_host::{Error, ErrorCode};
use tfrt_ir::similar;

use crate::model::Model;
use crate::model::signature::listed;
use crate::model::types::{Dim, TensorType, ValueInfo, ValueType};

/// The letters that stand for any number.
const NUMBER: &str = "{i}";

/// An output of a model that is an input of the next step, by their indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) output: usize,
    pub(super) input: usize,
}

/// Finds the outputs and inputs of two names, or of all numbers for which two patterns stand.
///
/// # Errors
///
/// `NotFound` for names that the model does not have, `InvalidArgument` for a pair whose types differ.
pub(super) fn find(model: &Model, output: &str, input: &str) -> Result<Vec<Pair>, Error> {
    let (inputs, outputs) = (model.inputs(), model.outputs());
    let numbers = match (Pattern::new(output, outputs), Pattern::new(input, inputs)) {
        (None, None) => return Ok(vec![pair(model, output, input)?]),
        (Some(of_output), Some(of_input)) => {
            let numbers = of_output.numbers(outputs);
            if numbers.is_empty() {
                return Err(unknown("output", "gives", output, outputs));
            }
            let more = of_input.numbers(inputs).into_iter();
            let mut more = more.filter(|number| !numbers.contains(number));
            if let Some(number) = more.next() {
                let (output, input) = (of_output.name(number), of_input.name(number));
                return Err(unpaired("input", &input, "output", &output));
            }
            numbers
        }
        (with, _) => {
            let (with, without) = match with {
                Some(_) => (output, input),
                None => (input, output),
            };
            return Err(Error::invalid_argument(format!(
                "expected {NUMBER} once in both names of a state or in none, found it in '{with}' and not in '{without}'"
            )));
        }
    };
    let names = |number: &&str| {
        (
            output.replace(NUMBER, number),
            input.replace(NUMBER, number),
        )
    };
    let pairs = numbers.iter().map(|number| {
        let (output, input) = names(number);
        match inputs.iter().any(|one| one.name == input) {
            true => pair(model, &output, &input),
            false => Err(unpaired("output", &output, "input", &input)),
        }
    });
    pairs.collect()
}

fn unpaired(what: &str, name: &str, other: &str, missing: &str) -> Error {
    Error::new(
        ErrorCode::NotFound,
        format!("{what} '{name}' is without its state: the model has no {other} '{missing}'"),
    )
}

/// A name with [`NUMBER`] in it.
struct Pattern<'p> {
    before: &'p str,
    behind: &'p str,
}

impl<'p> Pattern<'p> {
    /// Returns the pattern, unless a value is called so.
    fn new(name: &'p str, values: &[ValueInfo]) -> Option<Pattern<'p>> {
        let (before, behind) = name.split_once(NUMBER)?;
        let is_name = values.iter().any(|value| value.name == name);
        (!is_name && !behind.contains(NUMBER)).then_some(Pattern { before, behind })
    }

    /// Returns the numbers of the names that fit.
    fn numbers<'v>(&self, values: &'v [ValueInfo]) -> Vec<&'v str> {
        let number = |value: &'v ValueInfo| {
            let number = value.name.strip_prefix(self.before)?;
            let number = number.strip_suffix(self.behind)?;
            let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then_some(number)
        };
        values.iter().filter_map(number).collect()
    }

    fn name(&self, number: &str) -> String {
        format!("{}{number}{}", self.before, self.behind)
    }
}

fn pair(model: &Model, output: &str, input: &str) -> Result<Pair, Error> {
    let (inputs, outputs) = (model.inputs(), model.outputs());
    let place = |values: &[ValueInfo], name: &str| values.iter().position(|one| one.name == name);
    let found = place(outputs, output);
    let found = found.ok_or_else(|| unknown("output", "gives", output, outputs))?;
    let given = place(inputs, input);
    let given = given.ok_or_else(|| unknown("input", "takes", input, inputs))?;
    if !fits(&outputs[found].kind, &inputs[given].kind) {
        let (gives, takes) = (&outputs[found].kind, &inputs[given].kind);
        return Err(Error::invalid_argument(format!(
            "output '{output}' can't be the state of input '{input}': the output is {gives}, the input takes {takes}"
        )));
    }
    Ok(Pair {
        output: found,
        input: given,
    })
}

fn unknown(what: &str, verb: &str, name: &str, values: &[ValueInfo]) -> Error {
    let known = listed(values);
    let message = format!("the model has no {what} '{name}': it {verb} {known}");
    let error = Error::new(ErrorCode::NotFound, message);
    let numbered = |name: &str| name.replace(|c: char| c.is_ascii_digit(), NUMBER);
    let shown: Vec<String> = match name.contains(NUMBER) {
        true => values.iter().map(|value| numbered(&value.name)).collect(),
        false => values.iter().map(|value| value.name.clone()).collect(),
    };
    match similar::nearest(name, shown.iter().map(String::as_str)) {
        Some(nearest) => error.with_note(format!("there is an {what} '{nearest}'")),
        None => error,
    }
}

/// Returns whether what is known of the types of an output and an input leaves it open that one is the other.
fn fits(output: &ValueType, input: &ValueType) -> bool {
    match (output, input) {
        (ValueType::Tensor(output), ValueType::Tensor(input)) => fits_tensor(output, input),
        (ValueType::Sequence(output), ValueType::Sequence(input))
        | (ValueType::Optional(output), ValueType::Optional(input)) => fits(output, input),
        (ValueType::Map(key, output), ValueType::Map(other, input)) => {
            key == other && fits(output, input)
        }
        _ => false,
    }
}

fn fits_tensor(output: &TensorType, input: &TensorType) -> bool {
    if let (Some(output), Some(input)) = (output.element, input.element)
        && output != input
    {
        return false;
    }
    let (Some(output), Some(input)) = (&output.dims, &input.dims) else {
        return true;
    };
    let fits = |(output, input): (&Dim, &Dim)| match (output, input) {
        (Dim::Fixed(output), Dim::Fixed(input)) => output == input,
        _ => true,
    };
    output.len() == input.len() && output.iter().zip(input).all(fits)
}
