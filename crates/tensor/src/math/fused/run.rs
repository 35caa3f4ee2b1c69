//! Running a program block by block.

use smallvec::SmallVec;

use super::function::Source;
use super::input::Input;
use super::{Fused, Operand, Step};
use crate::math::number::Floating;
use crate::math::vectorized;

/// Elements of a block: a few blocks lie in the first cache.
const BLOCK: usize = 1024;

/// Fewer elements are made as if they were as many: a whole vector takes less time than some of its elements one
/// by one.
pub(super) const LEAST: usize = 16;

/// Most programs have no more inputs.
pub(super) const FEW_INPUTS: usize = 4;

/// Blocks of so few elements that most programs do with.
const FEW_BLOCKS: usize = 4;

impl Fused {
    /// Makes the results from the `first` on.
    pub(super) fn part<T: Floating>(
        &self,
        bound: &[Input],
        elements: &[&[T]],
        first: usize,
        out: &mut [T],
    ) {
        if (1..LEAST).contains(&out.len()) {
            let copy = |(input, x): (&Input, &&[T])| input.few(x, first, out.len());
            let copies: SmallVec<[_; FEW_INPUTS]> = bound.iter().zip(elements).map(copy).collect();
            return self.few(&copies, out);
        }
        let n = BLOCK.min(out.len());
        let mut blocks = vec![T::ZERO; n * self.n_blocks];
        // Of inputs that are not read in place.
        let is_spread = |input: &Input| matches!(input, Input::Spread(_));
        let mut copies: Vec<Vec<T>> = bound
            .iter()
            .map(|input| vec![T::ZERO; if is_spread(input) { n } else { 0 }])
            .collect();
        for (number, out) in out.chunks_mut(BLOCK).enumerate() {
            let (at, n) = (first + number * BLOCK, out.len());
            for ((input, x), copy) in bound.iter().zip(elements).zip(&mut copies) {
                if let Input::Spread(walk) = input {
                    Input::copy(walk, x, at, &mut copy[..n]);
                }
            }
            let input = |index: usize| match bound[index] {
                Input::Dense => Source::Each(&elements[index][at..at + n]),
                Input::One => Source::One(elements[index][0]),
                Input::Spread(_) => Source::Each(&copies[index][..n]),
            };
            self.block(&input, &mut blocks, out);
        }
    }

    /// The same for less than [`LEAST`] elements, given those of each input; the last ones stand for those that
    /// are not there.
    pub(super) fn few<T: Floating>(&self, inputs: &[[T; LEAST]], out: &mut [T]) {
        let n_elements = self.n_blocks * LEAST;
        let mut here = [T::ZERO; FEW_BLOCKS * LEAST];
        let mut more = Vec::new();
        let blocks = match here.get_mut(..n_elements) {
            Some(blocks) => blocks,
            None => {
                more.resize(n_elements, T::ZERO);
                &mut more[..]
            }
        };
        let mut made = [T::ZERO; LEAST];
        self.block(&|index| Source::Each(&inputs[index][..]), blocks, &mut made);
        out.copy_from_slice(&made[..out.len()]);
    }

    fn block<'a, T: Floating>(
        &self,
        input: &impl Fn(usize) -> Source<'a, T>,
        blocks: &mut [T],
        out: &mut [T],
    ) {
        let (n, last) = (out.len(), self.steps.len() - 1);
        let len = blocks.len() / self.n_blocks.max(1);
        for (number, step) in self.steps.iter().enumerate() {
            // A step does not write to what it reads.
            let own = self.blocks[number] * len;
            let (before, rest) = blocks.split_at_mut(own);
            let (block, behind) = rest.split_at_mut(len);
            let source = |operand: &Operand| match operand {
                Operand::Input(index) => input(*index),
                Operand::Step(other) => {
                    let other = self.blocks[*other] * len;
                    Source::Each(match other < own {
                        true => &before[other..other + n],
                        false => &behind[other - own - len..][..n],
                    })
                }
                Operand::Number(value) => Source::One(T::from_f64(*value)),
            };
            let result = match number == last {
                true => &mut *out,
                false => &mut block[..n],
            };
            match step {
                Step::Unary(function, x) => function.apply(source(x), result),
                Step::Binary(function, [x, y]) => function.apply(source(x), source(y), result),
                Step::Select(operands) => {
                    let [condition, x, y] = [0, 1, 2].map(|index: usize| source(&operands[index]));
                    select([condition, x, y], result);
                }
            }
        }
    }
}

fn select<T: Floating>([condition, x, y]: [Source<'_, T>; 3], out: &mut [T]) {
    fn at<T: Copy>(source: Source<'_, T>, index: usize) -> T {
        match source {
            Source::Each(list) => list[index],
            Source::One(value) => value,
        }
    }
    if let (Source::Each(condition), Source::Each(x), Source::Each(y)) = (condition, x, y) {
        vectorized(
            #[inline(always)]
            || {
                for (((out, condition), x), y) in out.iter_mut().zip(condition).zip(x).zip(y) {
                    *out = if condition.same(T::ZERO) { *y } else { *x };
                }
            },
        );
        return;
    }
    for (index, out) in out.iter_mut().enumerate() {
        let is_zero = at(condition, index).same(T::ZERO);
        *out = if is_zero { at(y, index) } else { at(x, index) };
    }
}
