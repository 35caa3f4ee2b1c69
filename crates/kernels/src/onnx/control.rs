//! Control flow: operations whose bodies are functions.
//!
//! None of them runs a function on its own stack: the executor calls, and resumes them with the results
//! ([`tfrt_host::kernel`]). So a loop of any number of turns takes the stack of one call, and between two turns it is
//! seen whether the request was cancelled. What each function takes and gives is written in `docs/models.md`; the
//! attribute `captured` says how many of the operands are values from around it, which stand last.
//!
//! A turn begins when all results of the one before it are there, so that a loop holds the values of one turn, and what
//! it collects.

use tfrt_host::kernel::{
    Arguments, Attr, AttributeView, Call, Callee, Forward, KernelRegistry, Loop, Rest, ResultCount,
    Turn, Turns,
};
use tfrt_host::memory::MemoryReservation;
use tfrt_host::{AnyAsyncValue, Error, ExecutionContext};
use tfrt_tensor::math::layout_copy::{stack_extents, stack_into};
use tfrt_tensor::{
    Bool, DType, DenseHostTensor, Dims, NoValue, Sequence, StringHostTensor, Tensor,
    TensorMetadata, TensorShape,
};

use super::Attributes;
use super::opaque::{OpaqueTensors, extents};

mod map;
mod scan;

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("cpu.onnx.If", choose)
        .add("cpu.onnx.Loop", repeat);
    map::register(registry);
    scan::register(registry);
}

/// `%r = "cpu.onnx.If"(%condition, %captured..) {attributes, else_branch = @f, opset, then_branch = @g}`
fn choose(
    condition: &Tensor,
    arguments: Arguments,
    _: Attr<AttributeView<'_>>,
    _: Attr<i64>,
    no: Callee,
    yes: Callee,
) -> Result<Forward, Error> {
    let is_true =
        truth(condition).ok_or_else(|| wrong("If", "expected one truth value as the condition"))?;
    Ok(Call::forward(if is_true { yes } else { no }, arguments))
}

/// `%r.. = "cpu.onnx.Loop"(%n_turns, %condition, %carried.., %captured..) {attributes, body = @f, opset}`
fn repeat(
    operands: Rest,
    attributes: Attr<AttributeView<'_>>,
    _: Attr<i64>,
    body: Callee,
    n_results: ResultCount,
    execution: &ExecutionContext,
) -> Result<Loop<LoopState>, Error> {
    let mut operands = operands.0;
    let attributes = Attributes::new("Loop", *attributes)?;
    let captured = captured(&attributes, &mut operands, 2)?;
    let carried = operands.split_off(2);
    let (n_turns, condition) = (single(&operands[0])?, single(&operands[1])?);
    let n_turns = match n_turns {
        None => None,
        Some(tensor) => {
            let number = integer(tensor);
            Some(
                number
                    .ok_or_else(|| wrong("Loop", "expected one integer as the number of turns"))?,
            )
        }
    };
    let condition = match condition {
        None => true,
        Some(tensor) => truth(tensor)
            .ok_or_else(|| wrong("Loop", "expected one truth value as the condition"))?,
    };
    let n_carried = carried.len();
    if body.n_arguments() != 2 + n_carried + captured.len() || body.n_results() < 1 + n_carried {
        return Err(misfit("Loop", body));
    }
    let collected = ScanOutputs::new(execution, &attributes, body.n_results(), 1 + n_carried)?;
    let turns = LoopState {
        body,
        n_results: n_results.0,
        n_carried,
        n_turns,
        turn: 0,
        condition,
        has_begun: false,
        captured,
        collected,
        execution: execution.clone(),
    };
    Ok(Loop::new(turns, carried))
}

/// The state of a `Loop` between two turns.
struct LoopState {
    body: Callee,
    n_results: usize,
    n_carried: usize,
    /// The most turns.
    n_turns: Option<i64>,
    /// The number of the next turn.
    turn: i64,
    /// The condition for the next turn.
    condition: bool,
    /// Whether a turn has run, so that the values are its results.
    has_begun: bool,
    captured: Vec<AnyAsyncValue>,
    collected: ScanOutputs,
    execution: ExecutionContext,
}

impl Turns for LoopState {
    fn next(&mut self, values: &mut Vec<AnyAsyncValue>) -> Turn {
        if let Some(turn) = await_all(values) {
            return turn;
        }
        self.advance(values)
            .unwrap_or_else(|error| failed(values, self.n_results, &error, &self.execution))
    }
}

impl LoopState {
    fn advance(&mut self, values: &mut Vec<AnyAsyncValue>) -> Result<Turn, Error> {
        check(values, &self.execution)?;
        if self.has_begun {
            self.collected.take(values.split_off(1 + self.n_carried))?;
            let condition = values.remove(0);
            let condition = condition.get::<Tensor>().and_then(truth);
            let expected = "expected one truth value as the first result of the body";
            self.condition = condition.ok_or_else(|| wrong("Loop", expected))?;
        }
        if !self.condition || self.n_turns.is_some_and(|n_turns| self.turn >= n_turns) {
            for (index, list) in self.collected.lists.iter().enumerate() {
                values.push(match list.is_empty() {
                    true => self.collected.nothing(&self.execution, index, 0, 1)?,
                    false => stacked(&self.execution, list, 0, None)?,
                });
            }
            values.truncate(self.n_results);
            return Ok(Turn::Done);
        }
        let allocator = self.execution.host().allocator();
        let turn = DenseHostTensor::scalar(allocator, self.turn)?;
        let condition = DenseHostTensor::scalar(allocator, Bool::from(true))?;
        let first = [turn, condition].map(|tensor| AnyAsyncValue::new(Tensor::from(tensor)));
        values.splice(0..0, first);
        values.extend(self.captured.iter().cloned());
        self.has_begun = true;
        self.turn += 1;
        Ok(Turn::Call(self.body))
    }
}

/// The tensors that turns have returned, to be stacked, by result.
struct ScanOutputs {
    lists: Vec<Vec<Tensor>>,
    /// The type of the tensors of each result, as text, if it is known.
    types: Vec<Option<String>>,
    /// The reservation for what tensors take beside their elements.
    aside: MemoryReservation,
}

impl ScanOutputs {
    /// Makes empty lists for the results of the body behind the first `n_first`.
    fn new(
        execution: &ExecutionContext,
        attributes: &Attributes<'_>,
        n_results: usize,
        n_first: usize,
    ) -> Result<ScanOutputs, Error> {
        let yields = attributes.strings("yields")?.unwrap_or_default();
        let text = |index: usize| {
            yields
                .get(index)
                .map(|text| String::from_utf8_lossy(text).into_owned())
        };
        Ok(ScanOutputs {
            lists: vec![Vec::new(); n_results.saturating_sub(n_first)],
            types: (n_first..n_results).map(text).collect(),
            aside: MemoryReservation::new(execution.host().allocator()),
        })
    }

    /// Returns an output of no turns: the extent along `axis` is 0 times that of a turn; unknown extents are 0.
    fn nothing(
        &self,
        execution: &ExecutionContext,
        index: usize,
        axis: usize,
        n_leading: usize,
    ) -> Result<AnyAsyncValue, Error> {
        let text = self
            .types
            .get(index)
            .and_then(Option::as_deref)
            .unwrap_or_default();
        let unknown = || {
            let message =
                format!("there was no turn, and the type of what it would have given is '{text}'");
            Error::invalid_argument(message)
        };
        let (dtype, mut extents) = parse_type(text).ok_or_else(unknown)?;
        if axis > extents.len() {
            return Err(unknown());
        }
        for _ in 0..n_leading {
            extents.insert(axis, 0);
        }
        let shape = TensorShape::new(&extents)?;
        let tensor = match dtype {
            DType::String => StringHostTensor::new(shape, Vec::new())?.into(),
            _ => {
                let metadata = TensorMetadata::new(dtype, shape);
                DenseHostTensor::zeroed(execution.host().allocator(), metadata)?.into()
            }
        };
        Ok(AnyAsyncValue::new::<Tensor>(tensor))
    }

    /// Appends the results of a turn.
    fn take(&mut self, values: Vec<AnyAsyncValue>) -> Result<(), Error> {
        for (list, value) in self.lists.iter_mut().zip(values) {
            let tensor = value.get::<Tensor>().ok_or_else(|| {
                let found = value.type_name().unwrap_or("something else");
                Error::invalid_argument(format!("expected a tensor to be collected, found {found}"))
            })?;
            if !self.aside.add(Sequence::BYTES_PER_TENSOR) {
                return Err(no_memory(list.len() + 1));
            }
            list.push(tensor.clone());
        }
        Ok(())
    }
}

fn no_memory(n_tensors: usize) -> Error {
    Error::resource_exhausted(format!("Cannot allocate list of {n_tensors} tensors"))
}

/// Parses `tensor<2x?xf32>` to an element type and extents; there are none of unknown rank.
fn parse_type(text: &str) -> Option<(DType, Dims)> {
    let mut rest = text.strip_prefix("tensor<")?.strip_suffix('>')?;
    let mut extents = Dims::new();
    while let Some((extent, behind)) = rest.split_once('x') {
        match extent {
            "*" => {}
            "?" => extents.push(0),
            // The letter belongs to the type.
            _ => match extent.parse() {
                Ok(extent) => extents.push(extent),
                Err(_) => break,
            },
        }
        rest = behind;
    }
    let dtype = match rest {
        "!onnx.string" => Some(DType::String),
        name => DType::from_mlir_name(name),
    };
    Some((dtype?, extents))
}

/// Stacks tensors of one shape, at least one, along a new dimension; reshapes the result to extents if they are
/// given.
fn stacked(
    execution: &ExecutionContext,
    tensors: &[Tensor],
    axis: usize,
    seen: Option<&[usize]>,
) -> Result<AnyAsyncValue, Error> {
    let shapes: Vec<Dims> = tensors.iter().map(extents).collect();
    let shapes: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
    let shape = stack_extents(&shapes, axis)?;
    let tensors: Vec<&Tensor> = tensors.iter().collect();
    let carried = OpaqueTensors::of(execution, &tensors)?;
    let out = carried.output_in(execution, &shape)?;
    let parts: Vec<_> = carried.tensors.iter().collect();
    let chain = stack_into(execution, &parts, axis, &out)?;
    match seen {
        Some(seen) => carried.finish(out.reshape(TensorShape::new(seen)?)?, chain),
        None => carried.finish(out, chain),
    }
}

/// Splits captured values off the operands, which must be enough.
fn captured(
    attributes: &Attributes<'_>,
    operands: &mut Vec<AnyAsyncValue>,
    n_least: usize,
) -> Result<Vec<AnyAsyncValue>, Error> {
    let n_captured = attributes.size_or("captured", 0)?;
    let start = operands
        .len()
        .checked_sub(n_captured)
        .filter(|start| *start >= n_least);
    let start = start.ok_or_else(|| {
        let n = operands.len();
        let message = format_args!("of {n_captured} leaves fewer than {n_least} of {n} operands");
        attributes.error("captured", message)
    })?;
    Ok(operands.split_off(start))
}

/// Returns a wait for the first value that is not there, if there is one.
fn await_all(values: &[AnyAsyncValue]) -> Option<Turn> {
    let index = values.iter().position(|value| !value.is_settled())?;
    Some(Turn::Wait(index))
}

/// Returns the error of a failed value, or that of a cancelled request.
fn check(values: &[AnyAsyncValue], execution: &ExecutionContext) -> Result<(), Error> {
    let failure = values.iter().rev().find_map(AnyAsyncValue::error);
    match failure.or_else(|| execution.request().cancellation()) {
        Some(error) => Err(error.clone()),
        None => Ok(()),
    }
}

/// Ends a loop with an error. Errors that were reported before, and that the request was cancelled, are not reported
/// again.
fn failed(
    values: &mut Vec<AnyAsyncValue>,
    n_results: usize,
    error: &Error,
    execution: &ExecutionContext,
) -> Turn {
    if error.kernel().is_none() && !execution.request().is_cancelled() {
        return Turn::Fail(error.clone());
    }
    values.clear();
    values.resize_with(n_results, || AnyAsyncValue::from_error(error.clone()));
    Turn::Done
}

/// Returns the tensor that is an operand, unless it is left out.
fn single(value: &AnyAsyncValue) -> Result<Option<&Tensor>, Error> {
    if value.is::<NoValue>() {
        return Ok(None);
    }
    match value.get::<Tensor>() {
        Some(tensor) => Ok(Some(tensor)),
        None => {
            let found = value.type_name().unwrap_or("something else");
            Err(wrong("Loop", &format!("expected a tensor, found {found}")))
        }
    }
}

/// Returns the one truth value of a tensor.
fn truth(tensor: &Tensor) -> Option<bool> {
    let reading = tensor.as_dense().ok()?.read().ok()?;
    match reading.elements::<Bool>().ok()? {
        [truth] => Some((*truth).into()),
        _ => None,
    }
}

/// Returns the one integer of a tensor.
fn integer(tensor: &Tensor) -> Option<i64> {
    let dense = tensor.as_dense().ok()?;
    let reading = dense.read().ok()?;
    match dense.dtype() {
        DType::I32 => match reading.elements::<i32>().ok()? {
            [number] => Some(i64::from(*number)),
            _ => None,
        },
        _ => match reading.elements::<i64>().ok()? {
            [number] => Some(*number),
            _ => None,
        },
    }
}

#[cold]
fn wrong(operation: &str, message: &str) -> Error {
    Error::invalid_argument(format!("{operation}: {message}"))
}

#[cold]
fn misfit(operation: &str, body: Callee) -> Error {
    let (n_arguments, n_results) = (body.n_arguments(), body.n_results());
    let message = format!(
        "a body of {n_arguments} arguments and {n_results} results does not fit the operands"
    );
    wrong(operation, &message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_from_text() {
        let shown = |text| parse_type(text).map(|(dtype, extents)| format!("{dtype} {extents:?}"));
        let known = |text: &str| Some(text.to_owned());
        assert_eq!(shown("tensor<2x?xf32>"), known("f32 [2, 0]"));
        assert_eq!(shown("tensor<i64>"), known("i64 []"));
        assert_eq!(shown("tensor<3xcomplex<f64>>"), known("complex128 [3]"));
        assert_eq!(shown("tensor<*x!onnx.string>"), known("str []"));
        assert_eq!(shown("tensor<2x!onnx.unknown>"), None);
        assert_eq!(shown("!onnx.sequence<tensor<f32>>"), None);
    }
}
