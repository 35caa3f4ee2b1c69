//! A plain evaluator of programs: the reference that the executor is held against.
//!
//! Operations run one after the other, in the order of the text; a value is a
//! datum or a failure, never something to wait for. Nothing is shared with the
//! compiler, the executor or the kernels: the meaning of each operation is
//! written down here a second time.
//!
//! # For which programs it is exact
//!
//! The executor runs whatever has its operands, in any order. Its output is
//! this evaluator's if every two effects of a program are related by a path of
//! operands, which [`crate::ordered`] decides. Of other programs it prints the
//! same lines in some order, as long as no effect changes what another one
//! prints. What depends on time, threads or addresses is [`Refusal::Unsupported`].
//!
//! # Rules
//!
//! * A failed operand skips the operation and becomes its results; of several
//!   the last one. After that comes cancellation.
//! * An operation that fails reports once; whoever passes the failure on does
//!   not.
//! * Frames are on a stack of our own, so the depth of a program's recursion is
//!   bounded by [`Limits`] only.

mod control;
mod effects;
mod failing;
mod numbers;
mod strings;
mod synchronous;
mod text;

use std::{fmt, rc::Rc};

use foldhash::{HashMap, HashMapExt};
use tfrt_ir::{Location, Module, OpId};

use self::control::{Continuation, Next};
use crate::plan::{self, Body, BodyIndex, Function, Kind, Operation, Plan, Slot};
use crate::value::{Datum, Failure, PrintedText, Value, print_line};

/// The limits of an evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most operations that are run.
    pub steps: u64,
    /// The most functions and regions within one another.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            steps: 10_000_000,
            depth: 1_000_000,
        }
    }
}

/// The result of an evaluation: a program's output, errors and ending.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The standard output, with the lines on functions.
    pub stdout: String,
    /// The reported errors, in the order of evaluation.
    pub errors: Vec<ReportedError>,
    /// The way in which the program ends.
    pub ending: Ending,
}

/// The way in which a program ends, which decides the exit status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// Each function returned values.
    #[default]
    Fine,
    /// A function returned an error.
    Failed,
    /// A function returned that it was cancelled.
    Cancelled,
}

/// An error as it is told to the user, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedError {
    /// The message.
    pub message: String,
    /// The name of the operation.
    pub operation: String,
    /// The location of the operation.
    pub location: Location,
}

/// The reason why a program can't be evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The evaluator does not know this operation, or not with these operands.
    Unsupported(String),
    /// A limit was reached.
    Exhausted(&'static str),
    /// No compiler would accept the program.
    Malformed(String),
}

impl Refusal {
    fn malformed(what: impl Into<String>) -> Refusal {
        Refusal::Malformed(what.into())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Unsupported(what) => write!(f, "the evaluator does not know {what}"),
            Refusal::Exhausted(what) => write!(f, "the program needs more {what} than it may use"),
            Refusal::Malformed(what) => write!(f, "not a program: {what}"),
        }
    }
}

impl std::error::Error for Refusal {}

/// Runs each function of a module that has no arguments, as `tfrt run` does.
///
/// # Errors
///
/// [`Refusal::Unsupported`] if an operation is run that this evaluator does not
/// know, [`Refusal::Exhausted`] if a limit is reached, [`Refusal::Malformed`]
/// for modules that the compiler would refuse.
///
/// # Examples
///
/// ```
/// use tfrt_ir::{Source, parse};
/// use tfrt_oracle::evaluate::{Limits, run};
///
/// let source = Source::new(
///     "answer.mlir",
///     "func.func @main() -> i32 {
///        %x = tfrt.constant.i32 42
///        tfrt.return %x : i32
///      }",
/// );
/// let report = run(&parse(&source)?, Limits::default())?;
/// assert_eq!(report.stdout, "--- Running 'main':\n'main' returned 42\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn run(module: &Module, limits: Limits) -> Result<Report, Refusal> {
    run_plan(&Plan::new(module)?, limits)
}

/// Runs a module that is taken apart: see [`run`].
pub(crate) fn run_plan(plan: &Plan<'_>, limits: Limits) -> Result<Report, Refusal> {
    let mut machine = Machine::new(plan, limits);
    let mut ending = Ending::Fine;
    for function in &plan.functions {
        if function.n_arguments > 0 {
            let name = &function.name;
            machine.print(&format!(
                "--- Not running '{name}' because it has arguments."
            ));
            continue;
        }
        ending = ending.max(machine.run_function(function)?);
    }
    let stdout = machine.printed.take();
    Ok(Report {
        stdout,
        errors: machine.errors,
        ending,
    })
}

/// The state of a run.
struct Machine<'m> {
    plan: &'m Plan<'m>,
    limits: Limits,
    n_steps: u64,
    frames: Vec<Frame>,
    printed: PrintedText,
    errors: Vec<ReportedError>,
    /// The error by which the current function's request was cancelled.
    cancelled: Option<Rc<Failure>>,
    /// The results of functions run by `tfrt.once`, by name.
    once: HashMap<String, Vec<Value>>,
}

/// One run of one body.
struct Frame {
    body: BodyIndex,
    /// The operation to run next, or that waits for the frame above.
    at: usize,
    slots: Vec<Option<Value>>,
    waiting: Continuation,
}

/// The results of an operation that calls nothing: an entry of the families.
///
/// `None` means that the family does not know it with these operands.
type FamilyResult = Option<Vec<Value>>;

impl<'m> Machine<'m> {
    fn new(plan: &'m Plan<'m>, limits: Limits) -> Machine<'m> {
        Machine {
            plan,
            limits,
            n_steps: 0,
            frames: Vec::new(),
            printed: PrintedText::default(),
            errors: Vec::new(),
            cancelled: None,
            once: HashMap::new(),
        }
    }

    fn print(&self, line: &str) {
        print_line(&self.printed, line);
    }

    /// Makes a failure and reports it.
    fn fail(&mut self, op: OpId, code: &'static str, message: impl Into<String>) -> Rc<Failure> {
        let message = message.into();
        let operation = self.plan.module.op(op);
        self.errors.push(ReportedError {
            message: message.clone(),
            operation: operation.name().to_string(),
            location: operation.location().clone(),
        });
        Rc::new(Failure { code, message })
    }

    fn run_function(&mut self, function: &Function) -> Result<Ending, Refusal> {
        let name = &function.name;
        self.print(&format!("--- Running '{name}':"));
        self.cancelled = None;
        self.once.clear();
        let results = match function.kind {
            Kind::Async(body) => self.run_body(body, Vec::new())?,
            Kind::Native => self.native(name, &[])?,
            Kind::Sync(body) => match self.run_synchronously(body, Vec::new())? {
                Ok(results) => results.into_iter().map(Ok).collect(),
                Err(failure) => {
                    self.print(&format!("'{name}' returned <<error: {}>>", failure.message));
                    return Ok(ending_of(&[Err(failure)]));
                }
            },
        };
        let types = function.result_types.iter().map(ToString::to_string);
        let texts: Vec<_> = results
            .iter()
            .zip(types)
            .map(|(v, ty)| text::result(v, &ty))
            .collect();
        if !texts.is_empty() {
            self.print(&format!("'{name}' returned {}", texts.join(",")));
        }
        Ok(ending_of(&results))
    }

    /// Runs a body and all that it calls.
    fn run_body(&mut self, body: BodyIndex, arguments: Vec<Value>) -> Result<Vec<Value>, Refusal> {
        debug_assert!(self.frames.is_empty(), "functions run one after the other");
        self.push_frame(body, arguments)?;
        loop {
            let frame = self
                .frames
                .last_mut()
                .expect("it is left when the last one ends");
            let body = &self.plan.bodies[frame.body];
            if let Some(operation) = body.operations.get(frame.at) {
                let operands = take_operands(&mut frame.slots, operation);
                let next = self.start(operation, operands)?;
                self.go_on(operation, next)?;
                continue;
            }
            let results = take_results(&mut frame.slots, body);
            self.frames.pop();
            let Some(caller) = self.frames.last_mut() else {
                return Ok(results);
            };
            let operation = &self.plan.bodies[caller.body].operations[caller.at];
            let waiting = std::mem::replace(&mut caller.waiting, Continuation::Results);
            let next = self.resume(operation, waiting, results)?;
            self.go_on(operation, next)?;
        }
    }

    fn push_frame(&mut self, body: BodyIndex, arguments: Vec<Value>) -> Result<(), Refusal> {
        if self.frames.len() >= self.limits.depth {
            return Err(Refusal::Exhausted("depth"));
        }
        let slots = self.slots(&self.plan.bodies[body], arguments)?;
        self.frames.push(Frame {
            body,
            at: 0,
            slots,
            waiting: Continuation::Results,
        });
        Ok(())
    }

    fn slots<V>(&mut self, body: &Body, arguments: Vec<V>) -> Result<Vec<Option<V>>, Refusal> {
        self.count_steps(1)?;
        if arguments.len() != body.arguments.len() {
            return Err(Refusal::malformed("a call with a wrong number of operands"));
        }
        let mut slots: Vec<Option<V>> = Vec::new();
        slots.resize_with(body.n_slots, || None);
        for (&slot, argument) in body.arguments.iter().zip(arguments) {
            slots[slot] = Some(argument);
        }
        Ok(slots)
    }

    fn count_steps(&mut self, n_steps: u64) -> Result<(), Refusal> {
        self.n_steps += n_steps;
        match self.n_steps > self.limits.steps {
            true => Err(Refusal::Exhausted("steps")),
            false => Ok(()),
        }
    }

    /// Performs the next step of the operation at the top of the stack.
    fn go_on(&mut self, operation: &Operation, next: Next) -> Result<(), Refusal> {
        match next {
            Next::Call {
                body,
                arguments,
                waiting,
            } => {
                self.frames
                    .last_mut()
                    .expect("the operation's frame")
                    .waiting = waiting;
                self.push_frame(body, arguments)
            }
            Next::Done(results) => {
                let frame = self.frames.last_mut().expect("the operation's frame");
                if results.len() != operation.results.len() {
                    return Err(Refusal::malformed(format!(
                        "'{}' gives {} results, not {}",
                        operation.name,
                        results.len(),
                        operation.results.len()
                    )));
                }
                for (&slot, value) in operation.results.iter().zip(results) {
                    frame.slots[slot] = Some(value);
                }
                frame.at += 1;
                self.drop_unread(operation);
                Ok(())
            }
        }
    }

    /// Drops results that nobody reads.
    fn drop_unread(&mut self, operation: &Operation) {
        let module = self.plan.module;
        let frame = self.frames.last_mut().expect("the operation's frame");
        for (&slot, &result) in operation
            .results
            .iter()
            .zip(module.op(operation.op).results())
        {
            if module.is_unused(result) {
                frame.slots[slot] = None;
            }
        }
    }

    /// Starts an operation: applies the rules on errors, then its semantics.
    fn start(&mut self, operation: &Operation, operands: Vec<Value>) -> Result<Next, Refusal> {
        self.count_steps(1)?;
        let failed_operand = operands.iter().rev().find_map(|value| value.as_ref().err());
        let failure = if operation.nonstrict {
            self.cancelled.as_ref()
        } else {
            failed_operand.or(self.cancelled.as_ref())
        };
        if let Some(failure) = failure {
            return Ok(Next::Done(vec![
                Err(failure.clone());
                operation.results.len()
            ]));
        }
        if let Some(next) = self.start_control(operation, &operands)? {
            return Ok(next);
        }
        let operands: Option<Vec<Datum>> = operands.into_iter().map(Result::ok).collect();
        let operands = operands.ok_or_else(|| unsupported(operation))?;
        if let Some(results) = self.invoke(operation, &operands)? {
            return Ok(Next::Done(results));
        }
        if let ("tfrt_test.deallocate_resource", [Datum::Resource(_), Datum::Chain]) =
            (operation.name.as_str(), operands.as_slice())
        {
            return Ok(Next::Done(self.deallocate(operands)));
        }
        let results = self
            .apply(operation, &operands)
            .ok_or_else(|| unsupported(operation))?;
        Ok(Next::Done(results))
    }

    /// Runs an operation that calls nothing.
    fn apply(&mut self, operation: &Operation, operands: &[Datum]) -> FamilyResult {
        // A last chain that an operation does not ask for only orders it.
        self.apply_exactly(operation, operands)
            .or_else(|| match operands {
                [operands @ .., Datum::Chain] => self.apply_exactly(operation, operands),
                _ => None,
            })
    }

    fn apply_exactly(&mut self, operation: &Operation, operands: &[Datum]) -> FamilyResult {
        self.number_operation(operation, operands)
            .or_else(|| self.effect_operation(operation, operands))
            .or_else(|| self.string_operation(operation, operands))
            .or_else(|| self.failing_operation(operation, operands))
    }
}

fn ending_of(results: &[Value]) -> Ending {
    let ending = |value: &Value| match value {
        Ok(_) => Ending::Fine,
        Err(failure) if failure.code == "Cancelled" => Ending::Cancelled,
        Err(_) => Ending::Failed,
    };
    results.iter().map(ending).max().unwrap_or_default()
}

fn unsupported(operation: &Operation) -> Refusal {
    Refusal::Unsupported(format!("'{}' with these operands", operation.name))
}

fn take_operands<V: Clone>(slots: &mut [Option<V>], operation: &Operation) -> Vec<V> {
    let take = |operand: &plan::Operand| take_slot(slots, operand.slot, operand.last);
    operation.operands.iter().map(take).collect()
}

fn take_results<V: Clone>(slots: &mut [Option<V>], body: &Body) -> Vec<V> {
    body.results
        .iter()
        .map(|&slot| take_slot(slots, slot, false))
        .collect()
}

fn take_slot<V: Clone>(slots: &mut [Option<V>], slot: Slot, last: bool) -> V {
    let value = if last {
        slots[slot].take()
    } else {
        slots[slot].clone()
    };
    value.expect("the text defines values before it reads them")
}

#[cfg(test)]
mod tests;
