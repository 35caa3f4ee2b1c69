//! `Scan`: applies a function to the slices of tensors one after the other, with states that go from turn to turn.
//!
//! Before version 9 of the operations, the first dimension of everything is that of a batch, whose members are scanned
//! one after the other, each as far as its length says.

use tfrt_host::kernel::{
    Attr, AttributeView, Callee, KernelRegistry, Loop, Rest, ResultCount, Turn, Turns,
};
use tfrt_host::{AnyAsyncValue, Error, ExecutionContext};
use tfrt_tensor::math::layout_copy::LayoutCopy;
use tfrt_tensor::{
    DenseHostTensor, Dims, NoValue, Sequence, StringHostTensor, Tensor, TensorShape,
};

use super::{ScanOutputs, await_all, captured, check, failed, misfit, single, stacked, wrong};
use crate::onnx::Attributes;
use crate::onnx::opaque::{OpaqueTensors, extents};

pub(super) fn register(registry: &mut KernelRegistry) {
    registry.add("cpu.onnx.Scan", scan);
}

/// `%r.. = "cpu.onnx.Scan"(%states.., %scanned.., %captured..) {attributes, body = @f, opset}`, before version 9 with
/// the lengths of sequences, or nothing, as first operand
fn scan(
    operands: Rest,
    attributes: Attr<AttributeView<'_>>,
    opset: Attr<i64>,
    body: Callee,
    n_results: ResultCount,
    execution: &ExecutionContext,
) -> Result<Loop<Scan>, Error> {
    let attributes = Attributes::new("Scan", *attributes)?;
    let mut operands = operands.0;
    let has_batch = *opset < 9;
    let captured = captured(&attributes, &mut operands, usize::from(has_batch))?;
    let lens = has_batch.then(|| operands.remove(0));
    let n_scanned = attributes.size_or("num_scan_inputs", 0)?;
    let n_states = operands
        .len()
        .checked_sub(n_scanned)
        .filter(|_| n_scanned > 0);
    let n_states = n_states.ok_or_else(|| {
        let n = operands.len();
        attributes.error(
            "num_scan_inputs",
            format_args!("of {n_scanned} does not fit {n} operands"),
        )
    })?;
    let n_arguments = n_states + n_scanned + captured.len();
    if body.n_arguments() != n_arguments || body.n_results() < n_states {
        return Err(misfit("Scan", body));
    }
    let n_outputs = body.n_results() - n_states;
    let from = if has_batch {
        "directions"
    } else {
        "scan_input_directions"
    };
    let inputs = ScanAxes::new(&attributes, n_scanned, from, "scan_input_axes")?;
    let outputs = ScanAxes::new(
        &attributes,
        n_outputs,
        "scan_output_directions",
        "scan_output_axes",
    )?;
    let mut values = operands;
    if !has_batch {
        for (value, axis) in values[n_states..].iter_mut().zip(&inputs.axes) {
            *value = axis_first(execution, value, *axis)?;
        }
    }
    let turns = Scan {
        body,
        n_results: n_results.0,
        n_states,
        inputs,
        outputs,
        lens,
        scanned: Vec::new(),
        initial: Vec::new(),
        members: Vec::new(),
        member: 0,
        n_turns: 0,
        turn: 0,
        ends: ScanOutputs::new(execution, &attributes, n_states, 0)?,
        captured,
        collected: ScanOutputs::new(execution, &attributes, body.n_results(), n_states)?,
        execution: execution.clone(),
        has_begun: false,
    };
    Ok(Loop::new(turns, values))
}

/// The direction and the dimension along which each tensor is scanned.
struct ScanAxes {
    is_backward: Vec<bool>,
    axes: Vec<i64>,
}

impl ScanAxes {
    fn new(
        attributes: &Attributes<'_>,
        n: usize,
        directions: &str,
        axes: &str,
    ) -> Result<ScanAxes, Error> {
        let list = |name: &str| {
            let list = attributes
                .integers(name)?
                .map_or_else(|| vec![0; n], <[i64]>::to_vec);
            match list.len() == n {
                true => Ok(list),
                false => {
                    Err(attributes.error(name, format_args!("is expected to have {n} numbers")))
                }
            }
        };
        Ok(ScanAxes {
            is_backward: list(directions)?
                .into_iter()
                .map(|direction| direction != 0)
                .collect(),
            axes: list(axes)?,
        })
    }
}

/// Transposes a tensor so that a dimension comes first.
fn axis_first(
    execution: &ExecutionContext,
    value: &AnyAsyncValue,
    axis: i64,
) -> Result<AnyAsyncValue, Error> {
    let tensor = single(value)?.ok_or_else(|| wrong("Scan", "an operand is left out"))?;
    let found = extents(tensor);
    let rank = found.len() as i64;
    let place = if axis < 0 {
        axis.saturating_add(rank)
    } else {
        axis
    };
    let place = usize::try_from(place)
        .ok()
        .filter(|place| *place < found.len());
    let place = place.ok_or_else(|| {
        wrong(
            "Scan",
            &format!("axis {axis} is none of a tensor of {rank} dimensions"),
        )
    })?;
    if place == 0 {
        return Ok(value.clone());
    }
    let mut order: Vec<usize> = (0..found.len()).collect();
    let first = order.remove(place);
    order.insert(0, first);
    let movement = LayoutCopy::transpose(&found, &order)?;
    let opaque = OpaqueTensors::of(execution, &[tensor])?;
    let out = opaque.output_in(execution, movement.extents())?;
    let chain = movement.run_into(execution, &opaque.tensors[0], &out)?;
    opaque.finish(out, chain)
}

/// The state of a `Scan` between two turns.
struct Scan {
    body: Callee,
    n_results: usize,
    n_states: usize,
    inputs: ScanAxes,
    outputs: ScanAxes,
    /// Before version 9: the lengths of sequences, or nothing.
    lens: Option<AnyAsyncValue>,
    /// The scanned tensors, with the scanned dimension first, or right behind that of the batch.
    scanned: Vec<Tensor>,
    /// The states of each member of a batch, before its first turn.
    initial: Vec<AnyAsyncValue>,
    /// The number of turns of each member of the batch; of the only one without a batch.
    members: Vec<usize>,
    /// The index of the member that is being scanned.
    member: usize,
    /// The number of slices, whatever the lengths.
    n_turns: usize,
    /// The number of the member's next turn.
    turn: usize,
    /// The final states of the members before.
    ends: ScanOutputs,
    captured: Vec<AnyAsyncValue>,
    collected: ScanOutputs,
    execution: ExecutionContext,
    has_begun: bool,
}

impl Turns for Scan {
    fn next(&mut self, values: &mut Vec<AnyAsyncValue>) -> Turn {
        if let Some(turn) = await_all(values) {
            return turn;
        }
        self.advance(values)
            .unwrap_or_else(|error| failed(values, self.n_results, &error, &self.execution))
    }
}

impl Scan {
    fn advance(&mut self, values: &mut Vec<AnyAsyncValue>) -> Result<Turn, Error> {
        check(values, &self.execution)?;
        match self.has_begun {
            false => self.begin(values)?,
            true => self.collected.take(values.split_off(self.n_states))?,
        }
        self.has_begun = true;
        while self.turn == self.members.get(self.member).copied().unwrap_or(0) {
            if self.lens.is_none() || self.member == self.members.len() {
                self.end(values)?;
                return Ok(Turn::Done);
            }
            self.end_member(values)?;
        }
        for (scanned, is_backward) in self.scanned.iter().zip(&self.inputs.is_backward) {
            let n_turns = self.members[self.member];
            let slice = if *is_backward {
                n_turns - 1 - self.turn
            } else {
                self.turn
            };
            let place: &[usize] = match self.lens {
                Some(_) => &[self.member, slice],
                None => &[slice],
            };
            values.push(AnyAsyncValue::new(slice_of(scanned, place)?));
        }
        values.extend(self.captured.iter().cloned());
        self.turn += 1;
        Ok(Turn::Call(self.body))
    }

    /// Takes the scanned tensors off the values, and counts turns.
    fn begin(&mut self, values: &mut Vec<AnyAsyncValue>) -> Result<(), Error> {
        for value in values.drain(self.n_states..) {
            let tensor = single(&value)?.ok_or_else(|| wrong("Scan", "an operand is left out"))?;
            self.scanned.push(tensor.clone());
        }
        let n_leading = 1 + usize::from(self.lens.is_some());
        let shapes: Vec<Dims> = self.scanned.iter().map(extents).collect();
        let first = shapes
            .first()
            .and_then(|shape| shape.get(..n_leading))
            .map(Dims::from_slice);
        let first = first
            .ok_or_else(|| wrong("Scan", "expected tensors with a dimension to be scanned"))?;
        if let Some(other) = shapes
            .iter()
            .find(|shape| shape.get(..n_leading) != Some(&first[..]))
        {
            let message = format!(
                "expected tensors to be scanned that begin with {first:?}, found {other:?}"
            );
            return Err(wrong("Scan", &message));
        }
        self.n_turns = first[n_leading - 1];
        let Some(lens) = &self.lens else {
            self.members = vec![self.n_turns];
            return Ok(());
        };
        // A batch of tensors without elements may have any extent.
        let n_members = first[0];
        if !(self.collected.aside).add(n_members.saturating_mul(size_of::<usize>())) {
            let message = format!("Cannot allocate lengths of a batch of {n_members}");
            return Err(Error::resource_exhausted(message));
        }
        self.members = lengths(lens, first[0], self.n_turns)?;
        self.initial = std::mem::take(values);
        for value in &self.initial {
            let shape = single(value)?.map(extents);
            if shape.as_ref().and_then(|shape| shape.first()) != Some(&first[0]) {
                let message = format!(
                    "expected states of a batch of {}, found {shape:?}",
                    first[0]
                );
                return Err(wrong("Scan", &message));
            }
        }
        self.begin_member(values)
    }

    fn begin_member(&mut self, values: &mut Vec<AnyAsyncValue>) -> Result<(), Error> {
        values.clear();
        if self.member < self.members.len() {
            for value in &self.initial {
                let state = single(value)?.ok_or_else(|| wrong("Scan", "a state is left out"))?;
                values.push(AnyAsyncValue::new(slice_of(state, &[self.member])?));
            }
        }
        Ok(())
    }

    /// Keeps the final states of a member, and appends zeros for slices that it does not have.
    fn end_member(&mut self, values: &mut Vec<AnyAsyncValue>) -> Result<(), Error> {
        self.ends.take(std::mem::take(values))?;
        for list in &mut self.collected.lists {
            let n_wanted = (self.member + 1).saturating_mul(self.n_turns);
            let Some(last) = list.last().filter(|_| list.len() < n_wanted) else {
                continue;
            };
            let zero = match last {
                Tensor::String(strings) => {
                    let empty = vec![Vec::new(); strings.strings().len()];
                    StringHostTensor::new(strings.metadata().shape.clone(), empty)?.into()
                }
                other => {
                    let metadata = other.metadata().clone();
                    DenseHostTensor::zeroed(self.execution.host().allocator(), metadata)?.into()
                }
            };
            let n_bytes = (n_wanted - list.len()).saturating_mul(Sequence::BYTES_PER_TENSOR);
            if !self.collected.aside.add(n_bytes) {
                return Err(super::no_memory(n_wanted));
            }
            list.resize(n_wanted, zero);
        }
        self.member += 1;
        self.turn = 0;
        self.begin_member(values)
    }

    /// Returns states and stacked slices as results.
    fn end(&mut self, values: &mut Vec<AnyAsyncValue>) -> Result<(), Error> {
        let execution = &self.execution;
        let has_batch = self.lens.is_some();
        if has_batch {
            values.clear();
            for (index, list) in self.ends.lists.iter().enumerate() {
                values.push(match list.is_empty() {
                    true => self.ends.nothing(execution, index, 0, 1)?,
                    false => stacked(execution, list, 0, None)?,
                });
            }
        }
        for index in 0..self.collected.lists.len() {
            let list = &mut self.collected.lists[index];
            let Some(last) = list.last().map(extents) else {
                let n_leading = 1 + usize::from(has_batch);
                values.push(self.collected.nothing(execution, index, 0, n_leading)?);
                continue;
            };
            if has_batch {
                let mut seen = Dims::from_slice(&[self.members.len(), self.n_turns]);
                seen.extend_from_slice(&last);
                values.push(stacked(execution, list, 0, Some(&seen))?);
                continue;
            }
            if self.outputs.is_backward[index] {
                list.reverse();
            }
            let (axis, rank) = (self.outputs.axes[index], last.len() as i64 + 1);
            let place = if axis < 0 {
                axis.saturating_add(rank)
            } else {
                axis
            };
            let place = usize::try_from(place).unwrap_or(usize::MAX);
            values.push(stacked(execution, list, place, None)?);
        }
        values.truncate(self.n_results);
        Ok(())
    }
}

/// Returns the lengths of the sequences of a batch.
fn lengths(value: &AnyAsyncValue, n_batch: usize, n_turns: usize) -> Result<Vec<usize>, Error> {
    if value.is::<NoValue>() {
        return Ok(vec![n_turns; n_batch]);
    }
    let expected = || {
        wrong(
            "Scan",
            &format!("expected {n_batch} lengths of sequences from 1 to {n_turns}"),
        )
    };
    let tensor = single(value)?.ok_or_else(expected)?;
    let reading = tensor.as_dense()?.read()?;
    let lens = reading.elements::<i64>()?.iter();
    let lens = lens.map(|len| {
        usize::try_from(*len)
            .ok()
            .filter(|len| (1..=n_turns).contains(len))
    });
    let lens: Option<Vec<usize>> = lens.collect();
    lens.filter(|lens| lens.len() == n_batch)
        .ok_or_else(expected)
}

/// Returns the slice at these coordinates of the leading dimensions. Numbers are not copied.
fn slice_of(tensor: &Tensor, place: &[usize]) -> Result<Tensor, Error> {
    let Tensor::String(strings) = tensor else {
        return tensor.as_dense()?.chip(place).map(Tensor::from);
    };
    let shape = extents(tensor);
    let rest = &shape[place.len()..];
    let n_each: usize = rest.iter().product();
    let pairs = place.iter().zip(&shape);
    let index = pairs.fold(0, |index, (place, extent)| index * extent + place);
    let part = strings.strings()[index * n_each..(index + 1) * n_each].to_vec();
    StringHostTensor::new(TensorShape::new(rest)?, part).map(Tensor::from)
}
