//! Evaluation of operations that call functions and regions.
//!
//! Each asks for a call and says what it waits for; when the call's results are
//! there it is resumed, and asks for another call or is done.

use super::{
    Kind, Machine, Refusal,
    plan::{BodyIndex, Operation},
};
use crate::value::{Datum, Value};

/// The next step of an operation.
pub(super) enum Next {
    /// The operation is done, with these results.
    Done(Vec<Value>),
    /// The operation needs the results of a body.
    Call {
        body: BodyIndex,
        arguments: Vec<Value>,
        waiting: Continuation,
    },
}

/// The continuation of an operation that waits for a body's results.
pub(super) enum Continuation {
    /// The results are the operation's own.
    Results,
    /// The results go into the next of so many iterations.
    Repeat { n_left: i32, body: BodyIndex },
    /// The results go into the next iteration if the last of them is true.
    While { body: BodyIndex },
    /// The results are dropped, and the blocks from `next` on are run.
    Blocks { blocks: Blocks },
    /// The results are kept for later calls.
    Once { name: String },
}

/// The blocks of a range that are still to be run.
pub(super) struct Blocks {
    body: BodyIndex,
    next: i64,
    end: i64,
    size: i64,
    extra: Vec<Value>,
}

impl Machine<'_> {
    /// Starts an operation if it is one that calls; its operands are values
    /// unless it is marked as non-strict.
    pub(super) fn start_control(
        &mut self,
        operation: &Operation,
        operands: &[Value],
    ) -> Result<Option<Next>, Refusal> {
        let next = match (operation.name.as_str(), operands) {
            ("tfrt.call", operands) => {
                let callee = self.symbol(operation, "callee")?;
                self.call_function(&callee, operands.to_vec())?
            }
            ("tfrt_test.do.async", operands) => {
                self.call_region(operation, 0, operands.to_vec())?
            }
            ("tfrt.if", [Ok(Datum::I1(condition)), rest @ ..]) => {
                match (*condition, operation.regions.len()) {
                    (true, _) => self.call_region(operation, 0, rest.to_vec())?,
                    (false, 1) if operation.results.is_empty() => Next::Done(Vec::new()),
                    (false, _) => self.call_region(operation, 1, rest.to_vec())?,
                }
            }
            ("tfrt.cond", [Ok(Datum::I1(condition)), rest @ ..]) => {
                let attribute = if *condition {
                    "a_true_fn"
                } else {
                    "b_false_fn"
                };
                let callee = self.symbol(operation, attribute)?;
                self.call_function(&callee, rest.to_vec())?
            }
            ("tfrt.case", [Ok(Datum::I32(index)), rest @ ..]) => {
                self.start_case(operation, *index, rest)?
            }
            ("tfrt.while", [Ok(condition), rest @ ..]) => {
                let body = self.async_body(&self.symbol(operation, "body_fn")?)?;
                let mut values = rest.to_vec();
                values.push(Ok(condition.clone()));
                self.next_turn(body, values)?
            }
            ("tfrt.repeat.i32", [Ok(Datum::I32(count @ 0..)), rest @ ..]) => {
                let body = region(operation, 0)?;
                self.next_iteration(*count, body, rest.to_vec())
            }
            ("tfrt.once", operands) => self.start_once(operation, operands)?,
            ("tfrt.parallel_for.i32" | "tfrt.parallel_call.i32", operands) => {
                self.start_blocks(operation, operands)?
            }
            _ => return Ok(None),
        };
        Ok(Some(next))
    }

    /// Goes on with an operation whose call has given its results.
    pub(super) fn resume(
        &mut self,
        operation: &Operation,
        waiting: Continuation,
        results: Vec<Value>,
    ) -> Result<Next, Refusal> {
        match waiting {
            Continuation::Results => Ok(Next::Done(results)),
            Continuation::Repeat { n_left, body } => Ok(self.next_iteration(n_left, body, results)),
            Continuation::While { body } => self.next_turn(body, results),
            Continuation::Blocks { blocks } => match results.len() {
                0 | 1 => Ok(next_block(blocks)),
                _ => {
                    let message = "Invalid parallel body function result types";
                    let failure = self.fail(operation.op, "InvalidArgument", message);
                    Ok(Next::Done(vec![Err(failure)]))
                }
            },
            Continuation::Once { name } => {
                self.once.insert(name, results.clone());
                Ok(Next::Done(results))
            }
        }
    }

    fn start_case(
        &mut self,
        operation: &Operation,
        index: i32,
        operands: &[Value],
    ) -> Result<Next, Refusal> {
        let branches = self.plan.module.op(operation.op).attribute("branches");
        let branches = branches.and_then(|branches| branches.as_array());
        let branches = branches.ok_or_else(|| Refusal::malformed("a case without branches"))?;
        let branch = usize::try_from(index)
            .ok()
            .and_then(|index| branches.get(index));
        let Some(branch) = branch else {
            let n_branches = branches.len();
            let message =
                format!("branch_index invalid. branch index: {index} # branches: {n_branches}");
            let failure = self.fail(operation.op, "InvalidArgument", message);
            return Ok(Next::Done(vec![Err(failure); operation.results.len()]));
        };
        let branch = branch.as_flat_symbol();
        let branch = branch.ok_or_else(|| Refusal::malformed("a branch that is no symbol"))?;
        let branch = branch.to_string();
        self.call_function(&branch, operands.to_vec())
    }

    /// Runs an iteration of a `tfrt.repeat.i32`, if one is left.
    fn next_iteration(&mut self, n_left: i32, body: BodyIndex, values: Vec<Value>) -> Next {
        if n_left == 0 {
            return Next::Done(values);
        }
        if let Some(failure) = &self.cancelled {
            return Next::Done(vec![Err(failure.clone()); values.len()]);
        }
        let waiting = Continuation::Repeat {
            n_left: n_left - 1,
            body,
        };
        Next::Call {
            body,
            arguments: values,
            waiting,
        }
    }

    /// Runs a turn of a `tfrt.while` if the last value says so.
    fn next_turn(&mut self, body: BodyIndex, mut values: Vec<Value>) -> Result<Next, Refusal> {
        match values.pop() {
            Some(Ok(Datum::I1(false))) => Ok(Next::Done(values)),
            Some(Ok(Datum::I1(true))) => {
                let waiting = Continuation::While { body };
                Ok(Next::Call {
                    body,
                    arguments: values,
                    waiting,
                })
            }
            Some(Err(failure)) => Ok(Next::Done(vec![Err(failure); values.len()])),
            _ => Err(Refusal::malformed("a loop without a condition")),
        }
    }

    fn start_once(&mut self, operation: &Operation, operands: &[Value]) -> Result<Next, Refusal> {
        let name = self.symbol(operation, "function")?;
        if let Some(results) = self.once.get(&name) {
            return Ok(Next::Done(results.clone()));
        }
        let body = self.async_body(&name)?;
        let waiting = Continuation::Once { name };
        Ok(Next::Call {
            body,
            arguments: operands.to_vec(),
            waiting,
        })
    }

    fn start_blocks(&mut self, operation: &Operation, operands: &[Value]) -> Result<Next, Refusal> {
        let [
            Ok(Datum::I32(start)),
            Ok(Datum::I32(end)),
            Ok(Datum::I32(size @ 1..)),
            extra @ ..,
        ] = operands
        else {
            return Err(super::unsupported(operation));
        };
        if end < start {
            return Err(super::unsupported(operation));
        }
        let body = match operation.name.as_str() {
            "tfrt.parallel_for.i32" => region(operation, 0)?,
            _ => self.async_body(&self.symbol(operation, "callee")?)?,
        };
        Ok(next_block(Blocks {
            body,
            next: i64::from(*start),
            end: i64::from(*end),
            size: i64::from(*size),
            extra: extra.to_vec(),
        }))
    }

    fn call_region(
        &mut self,
        operation: &Operation,
        index: usize,
        arguments: Vec<Value>,
    ) -> Result<Next, Refusal> {
        let body = region(operation, index)?;
        Ok(Next::Call {
            body,
            arguments,
            waiting: Continuation::Results,
        })
    }

    fn call_function(&mut self, name: &str, arguments: Vec<Value>) -> Result<Next, Refusal> {
        match self.plan.function(name).map(|function| function.kind) {
            Some(Kind::Async(body)) => Ok(Next::Call {
                body,
                arguments,
                waiting: Continuation::Results,
            }),
            Some(Kind::Native) => Ok(Next::Done(self.native(name, &arguments)?)),
            Some(Kind::Sync(_)) => Err(Refusal::malformed(format!("a call of '{name}'"))),
            None => Err(Refusal::malformed(format!("no function '{name}'"))),
        }
    }

    fn async_body(&self, name: &str) -> Result<BodyIndex, Refusal> {
        match self.plan.function(name).map(|function| function.kind) {
            Some(Kind::Async(body)) => Ok(body),
            Some(_) => Err(Refusal::Unsupported(format!("'{name}' in a loop"))),
            None => Err(Refusal::malformed(format!("no function '{name}'"))),
        }
    }

    pub(super) fn symbol(&self, operation: &Operation, key: &str) -> Result<String, Refusal> {
        let symbol = self.plan.module.op(operation.op).attribute(key);
        let symbol = symbol
            .and_then(|symbol| symbol.as_flat_symbol())
            .map(ToString::to_string);
        symbol.ok_or_else(|| Refusal::malformed(format!("'{}' without '{key}'", operation.name)))
    }
}

fn region(operation: &Operation, index: usize) -> Result<BodyIndex, Refusal> {
    let region = operation.regions.get(index).copied();
    region.ok_or_else(|| Refusal::malformed(format!("'{}' without a region", operation.name)))
}

/// Runs the next block of a range, if there is one.
fn next_block(mut blocks: Blocks) -> Next {
    let start = blocks.next;
    if start >= blocks.end {
        return Next::Done(vec![Ok(Datum::Chain)]);
    }
    let end = blocks.end.min(start + blocks.size);
    blocks.next = end;
    let bound = |number: i64| {
        Ok(Datum::I32(
            i32::try_from(number).expect("it lies between two numbers that fit"),
        ))
    };
    let mut arguments = vec![bound(start), bound(end)];
    arguments.extend(blocks.extra.iter().cloned());
    Next::Call {
        body: blocks.body,
        arguments,
        waiting: Continuation::Blocks { blocks },
    }
}
