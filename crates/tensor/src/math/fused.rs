//! Chains of elementwise functions in one pass: programs of steps, run over blocks that fit the cache.
//!
//! `y = gelu(x * s + b) + r`, step by step, reads and writes memory four times; as a [`Fused`] program it reads
//! what goes in and writes what comes out, once. A program is data, made by whoever plans a graph; each result is
//! rounded as by the functions of [`elementwise`](super::elementwise) one after the other, so that fusing changes
//! no bit.

use std::sync::Arc;

use smallvec::SmallVec;
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::elementwise::broadcast_extents;
use super::number::Floating;
use super::parallel;
use crate::{DenseHostTensor, Dims, TensorShape, TensorView, TensorViewMut};

mod function;
mod input;
mod run;

pub use function::{BinaryFunction, UnaryFunction};
use input::Input;
use run::{FEW_INPUTS, LEAST};

/// What a step takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operand {
    /// The input of this number.
    Input(usize),
    /// The result of the step of this number, which stands before.
    Step(usize),
    /// A number, rounded to the type of the elements.
    Number(f64),
}

/// A function of elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Of one element.
    Unary(UnaryFunction, Operand),
    /// Of two.
    Binary(BinaryFunction, [Operand; 2]),
    /// The second operand where the first is not 0, else the third.
    Select([Operand; 3]),
}

impl Step {
    /// What the step takes.
    pub fn operands(&self) -> &[Operand] {
        match self {
            Step::Unary(_, operand) => std::slice::from_ref(operand),
            Step::Binary(_, operands) => operands,
            Step::Select(operands) => operands,
        }
    }

    fn cost(&self) -> usize {
        match self {
            Step::Unary(function, _) => function.cost(),
            Step::Binary(function, _) => function.cost(),
            Step::Select(_) => 1,
        }
    }
}

/// A program of steps; the result is that of the last.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::fused::{BinaryFunction, Fused, Operand, Step, UnaryFunction};
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// // relu(x * 2 + b)
/// let program = Fused::new(2, &[
///     Step::Binary(BinaryFunction::Multiply, [Operand::Input(0), Operand::Number(2.0)]),
///     Step::Binary(BinaryFunction::Add, [Operand::Step(0), Operand::Input(1)]),
///     Step::Unary(UnaryFunction::Relu, Operand::Step(1)),
/// ])?;
/// let (x, b) = ([1.0_f32, -4.0, 2.0, 0.5], [1.0, 3.0]);
/// let (x, b) = (TensorView::new(&x, &[2, 2])?, TensorView::new(&b, &[2])?);
/// let mut out = [0.0; 4];
/// program.run(&[x, b], &mut TensorViewMut::new(&mut out, &[2, 2])?)?;
/// assert_eq!(out, [3.0, 0.0, 5.0, 4.0]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Fused {
    n_inputs: usize,
    /// Invariant: there is a step, and operands are inputs below `n_inputs` and steps before their own.
    steps: Arc<[Step]>,
    /// Which block of memory each step writes to; the last writes to the result. Invariant: none that holds what
    /// this step or one behind it reads.
    blocks: Arc<[usize]>,
    n_blocks: usize,
    /// About how many additions an element costs.
    cost: usize,
}

impl Fused {
    /// Puts a program together.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is no step, or for an operand that is no input and no step before its own.
    pub fn new(n_inputs: usize, steps: &[Step]) -> Result<Fused, Error> {
        if steps.is_empty() {
            let message = "a program of elementwise functions has a step or more, found none";
            return Err(Error::invalid_argument(message));
        }
        for (number, step) in steps.iter().enumerate() {
            for operand in step.operands() {
                let is_known = match operand {
                    Operand::Input(input) => *input < n_inputs,
                    Operand::Step(before) => *before < number,
                    Operand::Number(_) => true,
                };
                if !is_known {
                    return Err(Error::invalid_argument(format!(
                        "step {number} takes {operand:?}: expected one of {n_inputs} inputs, or a step before it"
                    )));
                }
            }
        }
        let (blocks, n_blocks) = blocks(steps);
        let costs = steps.iter().map(Step::cost);
        Ok(Fused {
            cost: costs.fold(0, usize::saturating_add),
            n_inputs,
            steps: steps.into(),
            blocks: blocks.into(),
            n_blocks,
        })
    }

    /// The number of inputs.
    pub fn n_inputs(&self) -> usize {
        self.n_inputs
    }

    /// The steps.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Runs the program for each element.
    ///
    /// # Shapes
    ///
    /// Inputs are broadcast; `out` is of the shape that this gives. Without inputs it is of any shape.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there are not as many inputs as the program has, if they can't be broadcast, or if
    /// `out` is of another shape.
    pub fn run<T: Floating>(
        &self,
        inputs: &[TensorView<'_, T>],
        out: &mut TensorViewMut<'_, T>,
    ) -> Result<(), Error> {
        let extents: Vec<&[usize]> = inputs.iter().map(TensorView::extents).collect();
        self.expect_shapes(&extents, out.extents())?;
        let bound: Vec<Input> = inputs
            .iter()
            .map(|view| Input::new(view.extents(), view.strides(), out.extents()))
            .collect();
        let elements: Vec<&[T]> = inputs.iter().map(TensorView::elements).collect();
        self.part(&bound, &elements, 0, out.as_mut_slice());
        Ok(())
    }

    /// As [`run`](Self::run), of dense tensors, on the workers of the request's queue if they are large.
    ///
    /// # Errors
    ///
    /// As of [`run`](Self::run), if the types differ, and those of [`parallel::fill`].
    pub fn run_into<T: Floating>(
        &self,
        execution: &ExecutionContext,
        inputs: &[&DenseHostTensor],
        out: &DenseHostTensor,
    ) -> Result<AsyncValue<Chain>, Error> {
        self.expect::<T>(inputs, out)?;
        let chunk = parallel::chunk_len(self.cost, 1);
        if out.n_elements() <= chunk.get() {
            let mut writing = out.write()?;
            self.at_once::<T>(inputs, out.shape(), writing.elements_mut()?)?;
            return Ok(AsyncValue::available(Chain));
        }
        let bound = inputs.iter().map(|x| Input::of(x.shape(), out.shape()));
        let bound: Vec<Input> = bound.collect();
        let inputs: Vec<DenseHostTensor> = inputs.iter().map(|input| (*input).clone()).collect();
        let this = self.clone();
        parallel::fill(execution, out, chunk, move |first, part: &mut [T]| {
            let readings = inputs
                .iter()
                .map(DenseHostTensor::read)
                .collect::<Result<Vec<_>, _>>()?;
            let elements = readings
                .iter()
                .map(|reading| reading.elements::<T>())
                .collect::<Result<Vec<_>, _>>()?;
            this.part(&bound, &elements, first, part);
            Ok(())
        })
    }

    /// As [`run_into`](Self::run_into), if that would be done when it returns, and if nobody else holds the
    /// result, which then needs no lock; or else nothing. Tells which.
    ///
    /// # Errors
    ///
    /// As of [`run_into`](Self::run_into).
    pub fn run_if_small<T: Floating>(
        &self,
        inputs: &[&DenseHostTensor],
        out: &mut DenseHostTensor,
    ) -> Result<bool, Error> {
        let chunk = parallel::chunk_len(self.cost, 1);
        if out.n_elements() > chunk.get() {
            return Ok(false);
        }
        self.expect::<T>(inputs, out)?;
        let shape = out.shape().clone();
        let Some(elements) = out.elements_mut::<T>()? else {
            return Ok(false);
        };
        self.at_once(inputs, &shape, elements)?;
        Ok(true)
    }

    /// Checks types and shapes.
    fn expect<T: Floating>(
        &self,
        inputs: &[&DenseHostTensor],
        out: &DenseHostTensor,
    ) -> Result<(), Error> {
        for input in inputs {
            crate::dense::expect_dtype::<T>(input.metadata())?;
        }
        crate::dense::expect_dtype::<T>(out.metadata())?;
        if inputs.len() != self.n_inputs || !is_spread_of(inputs, out) {
            let shapes: Vec<Dims> = inputs.iter().map(|input| input.shape().to_dims()).collect();
            let extents: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
            self.expect_shapes(&extents, &out.shape().to_dims())?;
        }
        Ok(())
    }

    /// Runs the program on this thread, without a word to others: for a few elements those cost more than
    /// what is to be done.
    fn at_once<T: Floating>(
        &self,
        inputs: &[&DenseHostTensor],
        shape: &TensorShape,
        out: &mut [T],
    ) -> Result<(), Error> {
        let n = out.len();
        if n == 0 {
            return Ok(());
        }
        if n < LEAST && inputs.len() <= FEW_INPUTS {
            let mut copies = [[T::ZERO; LEAST]; FEW_INPUTS];
            for (input, copy) in inputs.iter().zip(&mut copies) {
                let reading = input.read()?;
                *copy = Input::of(input.shape(), shape).few(reading.elements()?, 0, n);
            }
            self.few(&copies[..inputs.len()], out);
            return Ok(());
        }
        let bound = inputs.iter().map(|x| Input::of(x.shape(), shape));
        let bound: SmallVec<[Input; 4]> = bound.collect();
        let readings = inputs.iter().map(|input| input.read());
        let readings: SmallVec<[_; 4]> = readings.collect::<Result<_, _>>()?;
        let elements = readings.iter().map(|reading| reading.elements::<T>());
        let elements: SmallVec<[&[T]; 4]> = elements.collect::<Result<_, _>>()?;
        self.part(&bound, &elements, 0, out);
        Ok(())
    }

    fn expect_shapes(&self, inputs: &[&[usize]], out: &[usize]) -> Result<(), Error> {
        if inputs.len() != self.n_inputs {
            let (wanted, found) = (self.n_inputs, inputs.len());
            let message = format!("a program of {wanted} inputs was given {found}");
            return Err(Error::invalid_argument(message));
        }
        if inputs.is_empty() {
            return Ok(());
        }
        let wanted = broadcast_extents(inputs)?;
        if wanted[..] == *out {
            return Ok(());
        }
        let message = format!("expected a result of shape {wanted:?}, found {out:?}");
        Err(Error::invalid_argument(message))
    }
}

/// Whether the result is of the shape that the inputs are broadcast to, where that is seen without a look at extents:
/// one input has that shape, all others have it, too, or one element.
fn is_spread_of(inputs: &[&DenseHostTensor], out: &DenseHostTensor) -> bool {
    let shape = out.shape();
    let mut is_there = false;
    inputs.iter().all(|input| {
        let is_alike = input.shape() == shape;
        is_there |= is_alike;
        is_alike || (input.n_elements() == 1 && input.shape().rank() <= shape.rank())
    }) && is_there
}

/// Gives each step a block of memory, as few as that takes: a block is free again behind the last step that
/// reads it. Returns how many there are.
fn blocks(steps: &[Step]) -> (Vec<usize>, usize) {
    // The last step that reads each; of what nobody reads, itself.
    let mut last_use: Vec<usize> = (0..steps.len()).collect();
    for (number, step) in steps.iter().enumerate() {
        for operand in step.operands() {
            if let Operand::Step(before) = operand {
                last_use[*before] = number;
            }
        }
    }
    let mut ends: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
    let (mut free, mut n_blocks) = (Vec::new(), 0);
    let mut blocks = Vec::with_capacity(steps.len());
    for number in 0..steps.len() {
        let block = free.pop().unwrap_or_else(|| {
            n_blocks += 1;
            n_blocks - 1
        });
        blocks.push(block);
        ends[last_use[number]].push(block);
        // Not before: a step does not write to what it reads.
        free.append(&mut ends[number]);
    }
    (blocks, n_blocks)
}

#[cfg(test)]
mod tests;
