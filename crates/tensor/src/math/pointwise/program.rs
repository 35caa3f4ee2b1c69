//! [`PointwiseProgram`]: steps over elements, as data, and their runs.

use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::formulas::{BinaryFunction, UnaryFunction};
use super::input::InputAccess;
use super::parametric::ParametricFunction;
use super::plan::{ProgramPlan, StepPlan};
use super::view::{Elements, ElementsMut};
use crate::math::broadcast::broadcast_extents;
use crate::math::parallel;
use crate::{DType, DenseHostTensor, Dims, TensorShape};

/// An operand of a step.
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
    /// A function of one element.
    Unary(UnaryFunction, Operand),
    /// A function of one element, with parameters.
    Parametric(ParametricFunction, [f64; 2], Operand),
    /// A function of two elements.
    Binary(BinaryFunction, [Operand; 2]),
    /// The second operand where the first, a truth value, is true, else the third.
    Select([Operand; 3]),
    /// A conversion to another type, see [`cast`](crate::math::cast).
    Cast(DType, Operand),
}

impl Step {
    /// Returns the operands of the step.
    pub fn operands(&self) -> &[Operand] {
        match self {
            Step::Unary(_, operand) | Step::Parametric(_, _, operand) | Step::Cast(_, operand) => {
                std::slice::from_ref(operand)
            }
            Step::Binary(_, operands) => operands,
            Step::Select(operands) => operands,
        }
    }

    fn cost(&self) -> usize {
        match self {
            Step::Unary(function, _) => function.cost(),
            Step::Parametric(function, _, _) => function.cost(),
            Step::Binary(function, _) => function.cost(),
            Step::Select(_) => 2,
            Step::Cast(..) => 4,
        }
    }
}

/// Types of elements that a step of a program takes and gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepTypes {
    /// The type that it takes; of a selection, that of the values that are chosen from.
    pub takes: DType,
    /// The type that it gives.
    pub gives: DType,
}

/// A program of steps over elements; its result is that of the last step.
///
/// # Types
///
/// Inputs are of any types. What a step takes is of one type, but for the condition of a selection, which is a truth
/// value, and of numbers, which are rounded to that type; a step of numbers alone is of `f32`. A step gives the type that
/// it takes; comparisons and other questions give truth values, conversions what they say. A step of `f16` or `bf16` is
/// calculated in `f32` and rounded once.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::pointwise::{BinaryFunction, Operand, PointwiseProgram, Step, UnaryFunction};
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// // relu(x * 2 + b)
/// let program = PointwiseProgram::new(2, &[
///     Step::Binary(BinaryFunction::Multiply, [Operand::Input(0), Operand::Number(2.0)]),
///     Step::Binary(BinaryFunction::Add, [Operand::Step(0), Operand::Input(1)]),
///     Step::Unary(UnaryFunction::Relu, Operand::Step(1)),
/// ])?;
/// let (x, b) = ([1.0_f32, -4.0, 2.0, 0.5], [1.0_f32, 3.0]);
/// let (x, b) = (TensorView::new(&x, &[2, 2])?, TensorView::new(&b, &[2])?);
/// let mut out = [0.0_f32; 4];
/// program.run(&[(&x).into(), (&b).into()], TensorViewMut::new(&mut out, &[2, 2])?.into())?;
/// assert_eq!(out, [3.0, 0.0, 5.0, 4.0]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PointwiseProgram {
    n_inputs: usize,
    /// Invariant: there is a step, and operands are inputs below `n_inputs` and steps before their own.
    steps: Arc<[Step]>,
    /// Number of the block of memory that each step writes to; the last writes to the result. Invariant: it is none
    /// that holds an operand of this step or a later one.
    pub(super) blocks: Arc<[usize]>,
    pub(super) n_blocks: usize,
    /// Approximate cost of an element, in additions.
    cost: usize,
    /// Plan for the types of the first run: most programs run for the same types again.
    plan: Option<Arc<OnceLock<Arc<ProgramPlan>>>>,
}

impl PointwiseProgram {
    /// Puts a program together.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is no step, or for an operand that is no input and no step before its own.
    pub fn new(n_inputs: usize, steps: &[Step]) -> Result<PointwiseProgram, Error> {
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
        Ok(PointwiseProgram {
            cost: costs.fold(0, usize::saturating_add),
            n_inputs,
            steps: steps.into(),
            blocks: blocks.into(),
            n_blocks,
            plan: Some(Arc::default()),
        })
    }

    /// Returns a program of one step, which takes inputs only.
    pub(super) fn of(step: Step) -> PointwiseProgram {
        PointwiseProgram {
            n_inputs: step.operands().len(),
            cost: step.cost(),
            steps: Arc::new([step]),
            blocks: Arc::new([0]),
            n_blocks: 1,
            plan: None,
        }
    }

    /// Returns the number of inputs.
    pub fn n_inputs(&self) -> usize {
        self.n_inputs
    }

    /// Returns the steps.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Returns the approximate cost of an element, in additions.
    pub(super) fn cost(&self) -> usize {
        self.cost
    }

    /// Returns the type of the result for inputs of these types.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if a step is not defined for what it takes.
    pub fn result(&self, inputs: &[DType]) -> Result<DType, Error> {
        match self.kept(inputs) {
            Some(plan) => Ok(plan.gives()),
            None => Ok(self.plan(inputs)?.gives()),
        }
    }

    /// Returns the types that each step takes and gives, for inputs of these types.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if a step is not defined for what it takes.
    pub fn types(&self, inputs: &[DType]) -> Result<Vec<StepTypes>, Error> {
        let plan = self.plan(inputs)?;
        let of = |step: &StepPlan| StepTypes {
            takes: step.operands.last().map_or(step.gives, |last| last.stored),
            gives: step.gives,
        };
        Ok(plan.steps.iter().map(of).collect())
    }

    /// Returns the cached plan, if it is for inputs of these types.
    fn kept(&self, inputs: &[DType]) -> Option<&Arc<ProgramPlan>> {
        let plan = self.plan.as_ref()?.get()?;
        (plan.inputs[..] == *inputs).then_some(plan)
    }

    /// Returns the plan for inputs of these types.
    fn plan(&self, inputs: &[DType]) -> Result<Arc<ProgramPlan>, Error> {
        if let Some(plan) = self.kept(inputs) {
            return Ok(plan.clone());
        }
        let plan = Arc::new(ProgramPlan::new(self, inputs)?);
        if let Some(kept) = &self.plan {
            // A later one, for other types, is not kept.
            let _ = kept.set(plan.clone());
        }
        Ok(plan)
    }

    /// Runs the program for each element.
    ///
    /// # Shapes
    ///
    /// Inputs are broadcast; `out` is of the shape that this gives. Without inputs it is of any shape.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there are not as many inputs as the program has, if they can't be broadcast, if `out` is of
    /// another shape, or for types that a step is not defined for.
    pub fn run(&self, inputs: &[Elements<'_>], out: ElementsMut<'_>) -> Result<(), Error> {
        let extents: Vec<&[usize]> = inputs.iter().map(Elements::extents).collect();
        self.expect_shapes(&extents, out.extents())?;
        let dtypes: Vec<DType> = inputs.iter().map(Elements::dtype).collect();
        let plan = self.plan(&dtypes)?;
        plan.expect_result(out.dtype())?;
        let bound: Vec<InputAccess> = inputs
            .iter()
            .map(|input| InputAccess::new(input.extents(), input.strides(), out.extents()))
            .collect();
        let bytes: Vec<&[u8]> = inputs.iter().map(Elements::bytes).collect();
        self.part(&plan, &bound, &bytes, 0, out.into_bytes());
        Ok(())
    }

    /// Runs the program over the elements of `target`, which are its input 0, and over others; the results replace
    /// those of `target`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the others don't broadcast to it, and otherwise as [`run`](Self::run).
    pub fn run_over(&self, target: ElementsMut<'_>, others: &[Elements<'_>]) -> Result<(), Error> {
        let mut extents = vec![target.extents()];
        extents.extend(others.iter().map(Elements::extents));
        self.expect_shapes(&extents, target.extents())?;
        let mut dtypes = vec![target.dtype()];
        dtypes.extend(others.iter().map(Elements::dtype));
        let plan = self.plan(&dtypes)?;
        plan.expect_result(target.dtype())?;
        let mut bound = vec![InputAccess::Result];
        bound.extend(
            others
                .iter()
                .map(|input| InputAccess::new(input.extents(), input.strides(), target.extents())),
        );
        let mut bytes: Vec<&[u8]> = vec![&[]];
        bytes.extend(others.iter().map(Elements::bytes));
        self.part(&plan, &bound, &bytes, 0, target.into_bytes());
        Ok(())
    }

    /// Runs the program for dense tensors, on the workers of the request's queue if they are large.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run), and of [`parallel::fill_bytes`].
    pub fn run_into(
        &self,
        execution: &ExecutionContext,
        inputs: &[&DenseHostTensor],
        out: &DenseHostTensor,
    ) -> Result<AsyncValue<Chain>, Error> {
        let plan = self.expect(inputs, out)?;
        let chunk = parallel::chunk_len(self.cost, 1);
        if out.n_elements() <= chunk.get() {
            let mut writing = out.write()?;
            self.at_once(&plan, inputs, out.shape(), writing.bytes_mut())?;
            return Ok(AsyncValue::available(Chain));
        }
        let bound = inputs
            .iter()
            .map(|x| InputAccess::of(x.shape(), out.shape()));
        let bound = bound.collect();
        self.fill(execution, plan, bound, inputs, out)
    }

    /// Runs the program over the elements of a tensor, which are its input 0, and other tensors; the results replace
    /// the elements of the first.
    ///
    /// # Shapes
    ///
    /// The others broadcast to `target`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they share memory with it, and those of [`run_into`](Self::run_into).
    pub fn run_in_place(
        &self,
        execution: &ExecutionContext,
        target: &DenseHostTensor,
        others: &[&DenseHostTensor],
    ) -> Result<AsyncValue<Chain>, Error> {
        if others
            .iter()
            .any(|other| target.buffer().overlaps(other.buffer()))
        {
            let message = "a tensor can't be changed in place by itself";
            return Err(Error::invalid_argument(message));
        }
        let mut inputs: SmallVec<[&DenseHostTensor; 4]> = SmallVec::from_slice(&[target]);
        inputs.extend_from_slice(others);
        let plan = self.expect(&inputs, target)?;
        let bound = others
            .iter()
            .map(|x| InputAccess::of(x.shape(), target.shape()));
        let bound = std::iter::once(InputAccess::Result).chain(bound).collect();
        self.fill(execution, plan, bound, others, target)
    }

    /// Runs the program chunk by chunk, for the inputs that are not read from the result.
    fn fill(
        &self,
        execution: &ExecutionContext,
        plan: Arc<ProgramPlan>,
        bound: Vec<InputAccess>,
        read: &[&DenseHostTensor],
        out: &DenseHostTensor,
    ) -> Result<AsyncValue<Chain>, Error> {
        let read: Vec<DenseHostTensor> = read.iter().map(|input| (*input).clone()).collect();
        let this = self.clone();
        let chunk = parallel::chunk_len(self.cost, 1);
        parallel::fill_bytes(execution, out, chunk, move |first, part| {
            let readings = read.iter().map(DenseHostTensor::read);
            let readings: SmallVec<[_; 4]> = readings.collect::<Result<_, _>>()?;
            let mut bytes: SmallVec<[&[u8]; 4]> = SmallVec::new();
            if bound.len() > readings.len() {
                bytes.push(&[]);
            }
            bytes.extend(readings.iter().map(|reading| reading.bytes()));
            this.part(&plan, &bound, &bytes, first, part);
            Ok(())
        })
    }

    /// Runs the program as [`run_into`](Self::run_into) does, if that would finish before returning, and nobody else
    /// holds the result, which then needs no lock. Returns whether it ran.
    ///
    /// # Errors
    ///
    /// Those of [`run_into`](Self::run_into).
    pub fn run_if_small(
        &self,
        inputs: &[&DenseHostTensor],
        out: &mut DenseHostTensor,
    ) -> Result<bool, Error> {
        let chunk = parallel::chunk_len(self.cost, 1);
        if out.n_elements() > chunk.get() {
            return Ok(false);
        }
        let plan = self.expect(inputs, out)?;
        let shape = out.shape().clone();
        let Some(bytes) = out.bytes_mut() else {
            return Ok(false);
        };
        self.at_once(&plan, inputs, &shape, bytes)?;
        Ok(true)
    }

    /// Checks types and shapes.
    fn expect(
        &self,
        inputs: &[&DenseHostTensor],
        out: &DenseHostTensor,
    ) -> Result<Arc<ProgramPlan>, Error> {
        if inputs.len() != self.n_inputs || !is_spread_of(inputs, out) {
            let shapes: Vec<Dims> = inputs.iter().map(|input| input.shape().to_dims()).collect();
            let extents: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
            self.expect_shapes(&extents, &out.shape().to_dims())?;
        }
        let dtypes: SmallVec<[DType; 4]> = inputs.iter().map(|input| input.dtype()).collect();
        let plan = self.plan(&dtypes)?;
        plan.expect_result(out.dtype())?;
        Ok(plan)
    }

    /// Runs the program on this thread, without tasks: for a few elements those cost more than the work.
    fn at_once(
        &self,
        plan: &ProgramPlan,
        inputs: &[&DenseHostTensor],
        shape: &TensorShape,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let bound = inputs.iter().map(|x| InputAccess::of(x.shape(), shape));
        let bound: SmallVec<[InputAccess; 4]> = bound.collect();
        let readings = inputs.iter().map(|input| input.read());
        let readings: SmallVec<[_; 4]> = readings.collect::<Result<_, _>>()?;
        let bytes = readings.iter().map(|reading| reading.bytes());
        let bytes: SmallVec<[&[u8]; 4]> = bytes.collect();
        self.part(plan, &bound, &bytes, 0, out);
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

/// Returns whether the result has the shape that the inputs are broadcast to, as far as that is seen without
/// comparing extents: one input has that shape, and all others have it, too, or one element.
fn is_spread_of(inputs: &[&DenseHostTensor], out: &DenseHostTensor) -> bool {
    let shape = out.shape();
    let mut is_there = false;
    inputs.iter().all(|input| {
        let is_alike = input.shape() == shape;
        is_there |= is_alike;
        is_alike || (input.n_elements() == 1 && input.shape().rank() <= shape.rank())
    }) && is_there
}

/// Assigns a block of memory to each step, as few as possible: a block is free again behind the last step that reads
/// it. Returns the blocks and their number.
pub(super) fn blocks(steps: &[Step]) -> (Vec<usize>, usize) {
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
