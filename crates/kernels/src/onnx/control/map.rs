//! `SequenceMap`: applies a function to each element of a sequence.

use tfrt_host::kernel::{
    Attr, AttributeView, Callee, KernelRegistry, Loop, Rest, ResultCount, Turn, Turns,
};
use tfrt_host::memory::MemoryReservation;
use tfrt_host::{AnyAsyncValue, Error, ExecutionContext};
use tfrt_tensor::{Optional, Sequence, Tensor};

use super::{ScanOutputs, await_all, captured, check, failed, misfit, wrong};
use crate::onnx::Attributes;

pub(super) fn register(registry: &mut KernelRegistry) {
    registry.add("cpu.onnx.SequenceMap", map);
}

/// `%r.. = "cpu.onnx.SequenceMap"(%sequence, %others.., %captured..) {attributes, body = @f, opset}`: of other
/// sequences the elements at the same position are passed, tensors as they are.
fn map(
    operands: Rest,
    attributes: Attr<AttributeView<'_>>,
    _: Attr<i64>,
    body: Callee,
    n_results: ResultCount,
    execution: &ExecutionContext,
) -> Result<Loop<Map>, Error> {
    let mut operands = operands.0;
    let attributes = Attributes::new("SequenceMap", *attributes)?;
    let captured = captured(&attributes, &mut operands, 1)?;
    if body.n_arguments() != operands.len() + captured.len() || body.n_results() < n_results.0 {
        return Err(misfit("SequenceMap", body));
    }
    let arguments: Vec<Argument> = operands.into_iter().map(Argument::of).collect();
    let Some(Argument::Each(first)) = arguments.first() else {
        return Err(wrong(
            "SequenceMap",
            "expected a sequence as the first operand",
        ));
    };
    let n_turns = first.tensors().len();
    let lens = arguments.iter().filter_map(Argument::len);
    if let Some(other) = lens.into_iter().find(|len| *len != n_turns) {
        let message = format!("expected sequences of one length, found {n_turns} and {other}");
        return Err(wrong("SequenceMap", &message));
    }
    let turns = Map {
        body,
        n_results: n_results.0,
        n_turns,
        turn: 0,
        arguments,
        captured,
        collected: ScanOutputs::new(execution, &attributes, body.n_results(), 0)?,
        execution: execution.clone(),
    };
    Ok(Loop::new(turns, Vec::new()))
}

/// An argument of the body.
enum Argument {
    /// A sequence, whose elements are passed one by one.
    Each(Sequence),
    /// A value that is passed to every turn.
    Same(AnyAsyncValue),
}

impl Argument {
    fn of(value: AnyAsyncValue) -> Argument {
        if let Some(sequence) = value.get::<Sequence>() {
            return Argument::Each(sequence.clone());
        }
        match value.get::<Optional>() {
            Some(Optional::Sequence(sequence)) => Argument::Each(sequence.clone()),
            _ => Argument::Same(value),
        }
    }

    fn len(&self) -> Option<usize> {
        match self {
            Argument::Each(sequence) => Some(sequence.tensors().len()),
            Argument::Same(_) => None,
        }
    }

    fn at(&self, turn: usize) -> AnyAsyncValue {
        match self {
            Argument::Each(sequence) => {
                AnyAsyncValue::new::<Tensor>(sequence.tensors()[turn].clone())
            }
            Argument::Same(value) => value.clone(),
        }
    }
}

/// The state of a `SequenceMap` between two turns.
struct Map {
    body: Callee,
    n_results: usize,
    n_turns: usize,
    /// The number of the next turn.
    turn: usize,
    // Invariant: all sequences have `n_turns` elements.
    arguments: Vec<Argument>,
    captured: Vec<AnyAsyncValue>,
    collected: ScanOutputs,
    execution: ExecutionContext,
}

impl Turns for Map {
    fn next(&mut self, values: &mut Vec<AnyAsyncValue>) -> Turn {
        if let Some(turn) = await_all(values) {
            return turn;
        }
        self.advance(values)
            .unwrap_or_else(|error| failed(values, self.n_results, &error, &self.execution))
    }
}

impl Map {
    fn advance(&mut self, values: &mut Vec<AnyAsyncValue>) -> Result<Turn, Error> {
        check(values, &self.execution)?;
        self.collected.take(std::mem::take(values))?;
        if self.turn == self.n_turns {
            // The sequences have their own from here on.
            let allocator = self.execution.host().allocator();
            self.collected.aside = MemoryReservation::new(allocator);
            for list in self.collected.lists.drain(..).take(self.n_results) {
                let mut aside = MemoryReservation::new(allocator);
                if !aside.add(list.len().saturating_mul(Sequence::BYTES_PER_TENSOR)) {
                    return Err(super::no_memory(list.len()));
                }
                values.push(AnyAsyncValue::new(Sequence::set_aside(list, aside)));
            }
            return Ok(Turn::Done);
        }
        values.extend(self.arguments.iter().map(|argument| argument.at(self.turn)));
        values.extend(self.captured.iter().cloned());
        self.turn += 1;
        Ok(Turn::Call(self.body))
    }
}
