//! [`Plan`]: the types of a program's steps and their loops, once the types of its inputs are known.

use smallvec::SmallVec;
use tfrt_host::Error;

use super::halves;
use super::program::{Operand, Program, Step};
use super::table::{self, BinaryLoop, ParametricLoop, SelectLoop, UnaryLoop};
use crate::DType;

/// A program for inputs of these types.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) steps: SmallVec<[Planned; 2]>,
    /// The bytes of an element of each input.
    pub(super) input_sizes: SmallVec<[usize; 4]>,
    pub(super) out_size: usize,
    /// The bytes of the largest element that is read or made.
    pub(super) most_bytes: usize,
    /// How many operands of steps are numbers.
    pub(super) n_numbers: usize,
    /// Whether elements are converted between steps.
    pub(super) converts: bool,
}

/// A step whose types are known.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub(super) run: Loop,
    pub(super) operands: SmallVec<[Taken; 2]>,
    /// The type that the loop gives.
    pub(super) makes: DType,
    /// The type that the next steps find, or the result has.
    pub(super) gives: DType,
}

/// An operand of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) from: From,
    /// The type of the elements there.
    pub(super) stored: DType,
    /// The type that the loop takes.
    pub(super) taken: DType,
}

/// Where an operand comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum From {
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
}

impl Plan {
    /// Finds the types of the steps, and their loops. The last step gives what `out` says, if that is known.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if a step is not defined for its operands, or if the last does not give that type.
    pub(super) fn new(
        program: &Program,
        inputs: &[DType],
        out: Option<DType>,
    ) -> Result<Plan, Error> {
        let is_number = |dtype: &DType| *dtype != DType::I1;
        // What truth values become where numbers are needed, and constants that stand alone.
        let number = out.filter(is_number);
        let number = number.or_else(|| inputs.iter().copied().find(is_number));
        let number = number.or(out).unwrap_or(DType::I1);
        let mut plan = Plan {
            steps: SmallVec::new(),
            input_sizes: inputs.iter().map(|dtype| size(*dtype)).collect(),
            out_size: 1,
            most_bytes: 1,
            n_numbers: 0,
            converts: false,
        };
        for step in program.steps() {
            let planned = plan.step(step, inputs, number)?;
            plan.steps.push(planned);
        }
        let last = plan.steps.last_mut().expect("a program has a step");
        if let Some(out) = out
            && out != last.gives
        {
            // A half that holds truth values, as numbers.
            if last.gives != DType::I1 || table::truth_as_number(out).is_none() {
                let gives = last.gives;
                let message = format!("expected a result of {gives}, found one of {out}");
                return Err(Error::invalid_argument(message));
            }
            last.gives = out;
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

    /// The type of the result.
    pub(super) fn gives(&self) -> DType {
        self.steps.last().map_or(DType::I1, |step| step.gives)
    }

    /// Finds the types of one step, given those before.
    fn step(&mut self, step: &Step, inputs: &[DType], number: DType) -> Result<Planned, Error> {
        let operands = step.operands();
        let stored = |operand: &Operand| match operand {
            Operand::Input(index) => inputs.get(*index).copied(),
            Operand::Step(index) => self.steps.get(*index).map(|step| step.gives),
            Operand::Number(_) => None,
        };
        let values = match step {
            Step::Select([_, values @ ..]) => values,
            _ => operands,
        };
        let types = || values.iter().filter_map(stored);
        let own = types().find(|dtype| *dtype != DType::I1);
        let own = own.or_else(|| types().next()).unwrap_or(number);
        let found = find(step, own, number).ok_or_else(|| {
            Error::invalid_argument(format!("{} is not defined for {own}", name(step)))
        })?;
        if let Some(other) = types().find(|dtype| ![own, DType::I1].contains(dtype)) {
            let message = format!("expected operands of one type, found {own} and {other}");
            return Err(Error::invalid_argument(message));
        }
        let mut all = SmallVec::new();
        for (index, operand) in operands.iter().enumerate() {
            let is_condition = matches!(step, Step::Select(_)) && index == 0;
            let taken = match is_condition {
                true => DType::I1,
                false => found.takes,
            };
            let from = match *operand {
                Operand::Input(index) => From::Input(index),
                Operand::Step(index) => From::Step(index),
                Operand::Number(value) => {
                    self.n_numbers += 1;
                    From::Number(self.n_numbers - 1, value)
                }
            };
            // Numbers are rounded to the type of the elements before they are widened.
            let stored = stored(operand).unwrap_or(match is_condition {
                true => DType::I1,
                false => found.of,
            });
            let is_number = matches!(from, From::Number(..));
            if is_number && stored != DType::I1 && table::is_not_zero(stored).is_none() {
                let message = format!("a number can't be one of {stored}");
                return Err(Error::invalid_argument(message));
            }
            if !is_convertible(stored, taken) {
                let message = format!("expected truth values or real numbers, found {stored}");
                return Err(Error::invalid_argument(message));
            }
            all.push(Taken {
                from,
                stored,
                taken,
            });
        }
        Ok(Planned {
            run: found.run,
            operands: all,
            makes: found.makes,
            gives: match found.makes {
                DType::I1 => DType::I1,
                _ => found.of,
            },
        })
    }
}

/// A loop, and what it is for.
struct Found {
    run: Loop,
    /// The type of the step's elements.
    of: DType,
    /// The type that the loop takes: `f32` for halves.
    takes: DType,
    /// The type that the loop gives.
    makes: DType,
}

/// Finds the loop of a step for elements of a type; of truth values, if it has none for them, that for numbers.
fn find(step: &Step, own: DType, number: DType) -> Option<Found> {
    let through = |of: DType| {
        let direct = loop_of(step, of).map(|run| (run, of));
        direct.or_else(|| match of {
            DType::F16 | DType::Bf16 => Some((loop_of(step, DType::F32)?, DType::F32)),
            _ => None,
        })
    };
    let (of, (run, takes)) = match through(own) {
        Some(found) => (own, found),
        None if own == DType::I1 => (number, through(number)?),
        None => return None,
    };
    let is_predicate = match step {
        Step::Unary(function, _) => function.is_predicate(),
        Step::Parametric(function, _, _) => function.is_predicate(),
        Step::Binary(function, _) => function.is_predicate(),
        Step::Select(_) => false,
    };
    let makes = match is_predicate {
        true => DType::I1,
        false => takes,
    };
    Some(Found {
        run,
        of,
        takes,
        makes,
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
    }
}

fn name(step: &Step) -> String {
    match step {
        Step::Unary(function, _) => format!("{function:?}"),
        Step::Parametric(function, _, _) => format!("{function:?}"),
        Step::Binary(function, _) => format!("{function:?}"),
        Step::Select(_) => "Select".to_owned(),
    }
}

pub(super) fn size(dtype: DType) -> usize {
    dtype.size_bytes().unwrap_or(1)
}

fn is_convertible(from: DType, to: DType) -> bool {
    match (from, to) {
        (from, to) if from == to => true,
        (DType::F16 | DType::Bf16, DType::F32) => true,
        (from, DType::I1) => table::is_not_zero(from).is_some(),
        (DType::I1, to) => table::truth_as_number(to).is_some(),
        _ => false,
    }
}

/// Converts elements between the types of steps.
pub(super) fn convert(from: DType, to: DType, x: &[u8], out: &mut [u8]) {
    match (from, to) {
        (DType::F16 | DType::Bf16, DType::F32) => halves::widen(from, x, out),
        (DType::F32, DType::F16 | DType::Bf16) => halves::narrow(to, x, out),
        (from, to) => {
            let found = match to {
                DType::I1 => table::is_not_zero(from),
                _ => table::truth_as_number(to),
            };
            found.expect("the plan has seen that they convert")(x, out);
        }
    }
}
