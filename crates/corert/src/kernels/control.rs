//! Control flow by tensors.

use tfrt_host::kernel::{Call, Callee, KernelRegistry, Loop, Rest, Turn, Turns};
use tfrt_host::{AnyAsyncValue, Chain, Error};
use tfrt_tensor::{Tensor, with_element};

use crate::TensorHandle;

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("corert.cond", choose)
        .add("corert.while", while_loop);
}

/// Returns whether a tensor stands for true: one number that is not 0, or strings of which the first is not empty.
///
/// # Errors
///
/// `InvalidArgument` for other tensors.
fn truth(handle: &TensorHandle) -> Result<bool, Error> {
    let tensor = match handle.tensor() {
        Some(Ok(tensor)) => tensor,
        Some(Err(error)) => return Err(error.clone()),
        None => return Err(Error::internal("the condition is still to come")),
    };
    let wrong = || {
        let metadata = tensor.metadata();
        Error::invalid_argument(format!(
            "expected a condition of one number or of strings, found a tensor of {metadata}"
        ))
    };
    match tensor {
        Tensor::String(strings) => {
            let first = strings.strings().first().ok_or_else(wrong)?;
            Ok(!first.is_empty())
        }
        Tensor::Dense(_) | Tensor::Growable(_) => {
            let dense = tensor.as_dense()?;
            let reading = dense.read()?;
            with_element!(dense.dtype(), T => match reading.elements::<T>()? {
                [only] => Ok(*only != <T as tfrt_tensor::Element>::ZERO),
                _ => Err(wrong()),
            }, else Err(wrong()))
        }
        Tensor::Scalar(scalar) if scalar.metadata().n_elements()? == 1 => {
            with_element!(scalar.dtype(), T => {
                Ok(scalar.value::<T>()? != <T as tfrt_tensor::Element>::ZERO)
            }, else Err(wrong()))
        }
        Tensor::Scalar(_) | Tensor::Coo(_) => Err(wrong()),
        Tensor::Device(_) | Tensor::Object(_) => tensor.as_dense().map(|_| false),
    }
}

/// `%c1, %r = corert.cond %p @yes @no (%c0, %x) : (T) -> (T)`
fn choose(
    condition: &TensorHandle,
    chain: Chain,
    arguments: Rest,
    yes: Callee,
    no: Callee,
) -> Result<Call, Error> {
    let callee = if truth(condition)? { yes } else { no };
    Ok(Call::new(callee, behind(chain, arguments)))
}

/// Returns the chain followed by the values.
fn behind(chain: Chain, mut values: Rest) -> Vec<AnyAsyncValue> {
    values.0.insert(0, AnyAsyncValue::new(chain));
    values.0
}

/// `%c1, %r = corert.while @condition @body (%c0, %x) : (T) -> (T)`
///
/// The condition takes the loop's values and gives a chain and a tensor; the body takes them and gives the next ones.
fn while_loop(
    chain: Chain,
    values: Rest,
    condition: Callee,
    body: Callee,
) -> Result<Loop<While>, Error> {
    let values = behind(chain, values);
    let n = values.len();
    let fits = |callee: Callee, n_results: usize| {
        callee.n_arguments() == n && callee.n_results() == n_results
    };
    if !fits(condition, 2) || !fits(body, n) {
        return Err(Error::invalid_argument(format!(
            "a loop of {n} values expects a condition of as many arguments and 2 results, and a body of as many of both, \
             found {} and {}, {} and {}",
            condition.n_arguments(),
            condition.n_results(),
            body.n_arguments(),
            body.n_results(),
        )));
    }
    let turns = While {
        condition,
        body,
        held: None,
    };
    Ok(Loop::new(turns, values))
}

/// A loop between two calls.
struct While {
    condition: Callee,
    body: Callee,
    /// The loop's values while the condition is called.
    held: Option<Vec<AnyAsyncValue>>,
}

impl Turns for While {
    fn next(&mut self, values: &mut Vec<AnyAsyncValue>) -> Turn {
        let Some(held) = self.held.take() else {
            self.held = Some(values.clone());
            return Turn::Call(self.condition);
        };
        // What the condition gave: a chain, and the tensor.
        if let Some(pending) = values.iter().position(|value| !value.is_settled()) {
            self.held = Some(held);
            return Turn::Wait(pending);
        }
        if let Some(error) = values.iter().rev().find_map(AnyAsyncValue::error).cloned() {
            *values = held;
            values.fill_with(|| AnyAsyncValue::from_error(error.clone()));
            return Turn::Done;
        }
        let decided = match values.get(1).and_then(|value| value.get::<TensorHandle>()) {
            Some(handle) => truth(handle),
            None => Err(Error::invalid_argument(
                "the condition of a loop gives a chain and a tensor handle",
            )),
        };
        match decided {
            Err(error) => Turn::Fail(error),
            Ok(holds) => {
                *values = held;
                match holds {
                    true => Turn::Call(self.body),
                    false => Turn::Done,
                }
            }
        }
    }
}
