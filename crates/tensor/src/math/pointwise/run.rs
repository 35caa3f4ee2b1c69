//! Running a program block by block.

use smallvec::SmallVec;

use super::input::InputAccess;
use super::plan::{Loop, OperandSource, ProgramPlan, convert, size};
use super::program::PointwiseProgram;
use super::table::{fill, repeat};
use crate::math::cast::cast;
use crate::{DType, to_bytes_mut};

/// Number of elements of a block: a few blocks lie in the first cache.
const BLOCK: usize = 1024;

/// Minimum number of elements that are made at once: a whole vector takes less time than some of its elements one by
/// one.
const LEAST: usize = 16;

/// Cost in additions up to which fewer than [`LEAST`] elements are made as they are, not as a whole block.
const CHEAP: usize = 4;

/// The words of the largest element.
const MOST_WORDS: usize = 2;

/// Maximum number of elements that a step converts: its operands and its result.
const N_CONVERTED: usize = 4;

/// Memory of blocks: on the stack, if they are few and small.
type Memory = SmallVec<[u64; 80]>;

/// Inputs, copies and numbers that the steps of a block read, besides each other's results.
struct BlockInputs<'a> {
    plan: &'a ProgramPlan,
    bound: &'a [InputAccess],
    inputs: &'a [&'a [u8]],
    /// Copies of inputs that can't be read in place, then the numbers; one slot each.
    copies: &'a [u8],
    /// Whether the block is so short that all inputs have copies.
    is_few: bool,
    /// The bytes of a slot.
    slot: usize,
    /// The first element of the block.
    first: usize,
    /// The elements of the block.
    n: usize,
}

impl<'a> BlockInputs<'a> {
    fn input(&self, index: usize) -> &'a [u8] {
        let size = self.plan.input_sizes[index];
        match self.bound[index] {
            InputAccess::Dense if !self.is_few => {
                &self.inputs[index][self.first * size..][..self.n * size]
            }
            _ => &self.copies[index * self.slot..][..self.n * size],
        }
    }

    fn number(&self, index: usize, dtype: DType) -> &'a [u8] {
        let from = (self.bound.len() + index) * self.slot;
        &self.copies[from..][..self.n * size(dtype)]
    }
}

impl PointwiseProgram {
    /// Makes the results from the `first` on.
    pub(super) fn part(
        &self,
        plan: &ProgramPlan,
        bound: &[InputAccess],
        inputs: &[&[u8]],
        first: usize,
        out: &mut [u8],
    ) {
        let n = out.len() / plan.out_size;
        if n == 0 || self.is_one_loop(plan, bound, inputs, first, out) {
            return;
        }
        let block = n.clamp(LEAST, BLOCK);
        // Slots begin at whole words.
        let slot = (block * plan.most_bytes).next_multiple_of(size_of::<u64>());
        let n_copies = bound.len() + plan.n_numbers;
        let n_converted = if plan.converts { N_CONVERTED } else { 0 };
        let n_slots = n_copies + n_converted + self.n_blocks;
        let mut memory = Memory::from_elem(0, n_slots * slot / size_of::<u64>());
        let (copies, rest) = to_bytes_mut(&mut memory).split_at_mut(n_copies * slot);
        let (converted, blocks) = rest.split_at_mut(n_converted * slot);
        write_numbers(plan, block, slot, &mut copies[bound.len() * slot..]);
        for (number, out) in out.chunks_mut(block * plan.out_size).enumerate() {
            let first = first + number * block;
            let n_there = out.len() / plan.out_size;
            let is_few = n_there < LEAST;
            for (index, input) in bound.iter().enumerate() {
                let is_there = match input {
                    InputAccess::Dense => !is_few,
                    InputAccess::One => number > 0,
                    _ => false,
                };
                if !is_there {
                    let size = plan.input_sizes[index];
                    let copy = &mut copies[index * slot..][..n_there.max(LEAST) * size];
                    let (there, more) = copy.split_at_mut(n_there * size);
                    input.copy(size, inputs[index], first, out, there);
                    // The last stands for those that are not there.
                    repeat(&there[there.len() - size..], more);
                }
            }
            let read = BlockInputs {
                plan,
                bound,
                inputs,
                copies,
                is_few,
                slot,
                first,
                n: n_there.max(LEAST),
            };
            if is_few {
                let mut few = [0_u64; LEAST * MOST_WORDS];
                let few = &mut to_bytes_mut(&mut few)[..LEAST * plan.out_size];
                self.block(&read, converted, blocks, few);
                out.copy_from_slice(&few[..out.len()]);
            } else {
                self.block(&read, converted, blocks, out);
            }
        }
    }

    /// Runs a program of one step over contiguous inputs, all at once. Returns false if the program or the inputs are
    /// not such.
    fn is_one_loop(
        &self,
        plan: &ProgramPlan,
        bound: &[InputAccess],
        inputs: &[&[u8]],
        first: usize,
        out: &mut [u8],
    ) -> bool {
        let [step] = &plan.steps[..] else {
            return false;
        };
        let n = out.len() / plan.out_size;
        if plan.converts || (n < LEAST && self.cost() > CHEAP) {
            return false;
        }
        let mut operands: [&[u8]; 3] = [&[]; 3];
        for (operand, bytes) in step.operands.iter().zip(&mut operands) {
            let OperandSource::Input(index) = operand.from else {
                return false;
            };
            if !matches!(bound[index], InputAccess::Dense) {
                return false;
            }
            let size = plan.input_sizes[index];
            *bytes = &inputs[index][first * size..][..n * size];
        }
        step.run.call(operands, out);
        true
    }

    /// Runs the steps for a block.
    fn block(
        &self,
        read: &BlockInputs<'_>,
        converted: &mut [u8],
        blocks: &mut [u8],
        out: &mut [u8],
    ) {
        let (n, slot) = (read.n, read.slot);
        let last = read.plan.steps.len() - 1;
        for (number, step) in read.plan.steps.iter().enumerate() {
            // A step does not write to what it reads.
            let own = self.blocks[number] * slot;
            let (before, rest) = blocks.split_at_mut(own);
            let (block, behind) = rest.split_at_mut(slot);
            let result = match number == last {
                true => &mut *out,
                false => &mut block[..n * size(step.gives)],
            };
            let mut room = converted.chunks_exact_mut(slot.max(1));
            let mut operands: [&[u8]; 3] = [&[]; 3];
            for (operand, bytes) in step.operands.iter().zip(&mut operands) {
                let len = n * size(operand.stored);
                let stored = match operand.from {
                    OperandSource::Input(index) => read.input(index),
                    OperandSource::Number(index, _) => read.number(index, operand.stored),
                    OperandSource::Step(other) => {
                        let other = self.blocks[other] * slot;
                        match other < own {
                            true => &before[other..][..len],
                            false => &behind[other - own - slot..][..len],
                        }
                    }
                };
                *bytes = match operand.stored == operand.taken {
                    true => stored,
                    false => {
                        let room = room.next().expect("there is room for each operand");
                        let room = &mut room[..n * size(operand.taken)];
                        convert(operand.stored, operand.taken, stored, room);
                        room
                    }
                };
            }
            if step.makes == step.gives {
                step.run.call(operands, result);
                continue;
            }
            let room = room.next().expect("there is room for the result");
            let room = &mut room[..n * size(step.makes)];
            step.run.call(operands, room);
            convert(step.makes, step.gives, room, result);
        }
    }
}

/// Fills a slot with each number that steps take.
fn write_numbers(plan: &ProgramPlan, block: usize, slot: usize, slots: &mut [u8]) {
    for operand in plan.steps.iter().flat_map(|step| &step.operands) {
        if let OperandSource::Number(index, value) = operand.from {
            let len = block * size(operand.stored);
            let is_real = fill(operand.stored, value, &mut slots[index * slot..][..len]);
            debug_assert!(is_real, "the plan refuses numbers of other types");
        }
    }
}

impl Loop {
    fn call(self, [x, y, z]: [&[u8]; 3], out: &mut [u8]) {
        match self {
            Loop::Unary(run) => run(x, out),
            Loop::Parametric(run, parameters) => run(parameters, x, out),
            Loop::Binary(run) => run(x, y, out),
            Loop::Select(run) => run(x, [y, z], out),
            Loop::Cast([from, to]) => cast(from, to, x, out),
        }
    }
}
