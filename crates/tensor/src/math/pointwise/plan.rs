//! [`ProgramPlan`]: types and loops of a program's steps, for inputs of certain types.

use smallvec::SmallVec;
use tfrt_host::Error;

use super::formulas::UnaryFunction;
use super::halves;
use super::program::{Operand, PointwiseProgram, Step};
use super::table::{self, BinaryLoop, ParametricLoop, SelectLoop, UnaryLoop};
use crate::DType;
use crate::math::cast::is_castable;

/// Plan of a program for inputs of certain types.
#[derive(Clone, Debug)]
pub(super) struct ProgramPlan {
    pub(super) steps: SmallVec<[StepPlan; 2]>,
    /// The types of the inputs.
    pub(super) inputs: SmallVec<[DType; 4]>,
    /// The bytes of an element of each input.
    pub(super) input_sizes: SmallVec<[usize; 4]>,
    pub(super) out_size: usize,
    /// The bytes of the largest element that is read or made.
    pub(super) most_bytes: usize,
    /// Number of operands that are numbers.
    pub(super) n_numbers: usize,
    /// Whether elements are converted between steps.
    pub(super) converts: bool,
}

/// A step whose types are known.
#[derive(Clone, Debug)]
pub(super) struct StepPlan {
    pub(super) run: Loop,
    pub(super) operands: SmallVec<[OperandPlan; 2]>,
    /// The type that the loop gives.
    pub(super) makes: DType,
    /// The type that the next steps find, or the result has.
    pub(super) gives: DType,
}

/// An operand of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct OperandPlan {
    pub(super) from: OperandSource,
    /// The type of the elements there.
    pub(super) stored: DType,
    /// The type that the loop takes.
    pub(super) taken: DType,
}

/// Source of a step's operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum OperandSource {
    Input(usize),
    Step(usize),
    /// The constant of this number, and its value.
    Number(usize, f64),
}

/// The loop of a step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Loop {
    Unary(UnaryLoop),
    Parametric(ParametricLoop, [f64; 2]),
    Binary(BinaryLoop),
    Select(SelectLoop),
    /// Conversion from one type to another.
    Cast([DType; 2]),
}

impl ProgramPlan {
    /// Finds the types of the steps, and their loops.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there are more or fewer inputs, or if a step is not defined for its operands.
    pub(super) fn new(program: &PointwiseProgram, inputs: &[DType]) -> Result<ProgramPlan, Error> {
        if inputs.len() != program.n_inputs() {
            let (wanted, found) = (program.n_inputs(), inputs.len());
            let message = format!("a program of {wanted} inputs was given {found}");
            return Err(Error::invalid_argument(message));
        }
        let mut plan = ProgramPlan {
            steps: SmallVec::new(),
            inputs: SmallVec::from_slice(inputs),
            input_sizes: inputs.iter().map(|dtype| size(*dtype)).collect(),
            out_size: 1,
            most_bytes: 1,
            n_numbers: 0,
            converts: false,
        };
        for step in program.steps() {
            let planned = plan.step(step)?;
            plan.steps.push(planned);
        }
        plan.out_size = size(plan.gives());
        let steps = plan.steps.iter();
        let taken = steps
            .clone()
            .flat_map(|step| step.operands.iter().flat_map(|one| [one.stored, one.taken]));
        let all = taken.chain(steps.flat_map(|step| [step.makes, step.gives]));
        plan.most_bytes = all
            .map(size)
            .chain(plan.input_sizes.iter().copied())
            .max()
            .unwrap_or(1);
        plan.converts = plan.steps.iter().any(|step| {
            step.makes != step.gives || step.operands.iter().any(|one| one.stored != one.taken)
        });
        Ok(plan)
    }

    /// Returns the type of the result.
    pub(super) fn gives(&self) -> DType {
        self.steps.last().map_or(DType::I1, |step| step.gives)
    }

    /// Checks that the result is of this type.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is not.
    pub(super) fn expect_result(&self, out: DType) -> Result<(), Error> {
        let gives = self.gives();
        if gives == out {
            return Ok(());
        }
        let message = format!("expected a result of {gives}, found one of {out}");
        Err(Error::invalid_argument(message))
    }

    /// Finds the types of one step, given those before.
    fn step(&mut self, step: &Step) -> Result<StepPlan, Error> {
        let operands = step.operands();
        let stored = |operand: &Operand| match operand {
            Operand::Input(index) => self.inputs.get(*index).copied(),
            Operand::Step(index) => self.steps.get(*index).map(|step| step.gives),
            Operand::Number(_) => None,
        };
        let (condition, values) = match operands {
            [condition, values @ ..] if matches!(step, Step::Select(_)) => {
                (Some(condition), values)
            }
            values => (None, values),
        };
        let mut types = values.iter().filter_map(stored);
        let own = types.next().unwrap_or(DType::F32);
        if let Some(other) = types.find(|dtype| *dtype != own) {
            let message = format!("expected operands of one type, found {own} and {other}");
            return Err(Error::invalid_argument(message));
        }
        let condition = condition.map(|condition| stored(condition).unwrap_or(DType::I1));
        if let Some(found) = condition.filter(|found| *found != DType::I1) {
            let message = format!("expected truth values to select by, found {found}");
            return Err(Error::invalid_argument(message));
        }
        let has_number = values
            .iter()
            .any(|value| matches!(value, Operand::Number(_)));
        if has_number && !table::has_numbers(own) {
            let message = format!("a number can't be one of {own}");
            return Err(Error::invalid_argument(message));
        }
        let found = find(step, own).ok_or_else(|| {
            Error::invalid_argument(format!("{} is not defined for {own}", step.name()))
        })?;
        let mut all = SmallVec::new();
        for (index, operand) in operands.iter().enumerate() {
            let from = match *operand {
                Operand::Input(index) => OperandSource::Input(index),
                Operand::Step(index) => OperandSource::Step(index),
                Operand::Number(value) => {
                    self.n_numbers += 1;
                    OperandSource::Number(self.n_numbers - 1, value)
                }
            };
            // Numbers are rounded to the type of the elements before they are widened.
            let (stored, taken) = match condition {
                Some(condition) if index == 0 => (condition, condition),
                _ => (own, found.takes),
            };
            all.push(OperandPlan {
                from,
                stored,
                taken,
            });
        }
        Ok(StepPlan {
            run: found.run,
            operands: all,
            makes: found.makes,
            gives: found.gives,
        })
    }
}

/// The loop of a step, with its types.
struct LoopMatch {
    run: Loop,
    /// The type that the loop takes: `f32` for halves.
    takes: DType,
    /// The type that the loop gives.
    makes: DType,
    /// The type of the step's results.
    gives: DType,
}

/// Finds the loop of a step for elements of a type.
fn find(step: &Step, own: DType) -> Option<LoopMatch> {
    if let Step::Cast(to, _) = *step {
        let run = match own == to {
            true => Loop::Unary(UnaryFunction::Identity.find(own)?),
            false => Loop::Cast([own, to]),
        };
        return (is_castable(own) && is_castable(to)).then_some(LoopMatch {
            run,
            takes: own,
            makes: to,
            gives: to,
        });
    }
    let direct = loop_of(step, own).map(|run| (run, own));
    let (run, takes) = direct.or_else(|| match own {
        DType::F16 | DType::Bf16 => Some((loop_of(step, DType::F32)?, DType::F32)),
        _ => None,
    })?;
    let is_predicate = match step {
        Step::Unary(function, _) => function.is_predicate(),
        Step::Parametric(function, _, _) => function.is_predicate(),
        Step::Binary(function, _) => function.is_predicate(),
        Step::Select(_) | Step::Cast(..) => false,
    };
    let (makes, gives) = match is_predicate {
        true => (DType::I1, DType::I1),
        false => (takes, own),
    };
    Some(LoopMatch {
        run,
        takes,
        makes,
        gives,
    })
}

fn loop_of(step: &Step, dtype: DType) -> Option<Loop> {
    match step {
        Step::Unary(function, _) => function.find(dtype).map(Loop::Unary),
        Step::Parametric(function, parameters, _) => {
            let run = function.find(dtype)?;
            Some(Loop::Parametric(run, *parameters))
        }
        Step::Binary(function, _) => function.find(dtype).map(Loop::Binary),
        Step::Select(_) => table::select(dtype).map(Loop::Select),
        Step::Cast(..) => None,
    }
}

pub(super) fn size(dtype: DType) -> usize {
    dtype.size_bytes().unwrap_or(1)
}

/// Widens halves to `f32`, or rounds `f32` to halves.
pub(super) fn convert(from: DType, to: DType, x: &[u8], out: &mut [u8]) {
    match from {
        DType::F32 => halves::narrow(to, x, out),
        _ => halves::widen(from, x, out),
    }
}
