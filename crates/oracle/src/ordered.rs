//! A check that a program's output is determined: that every two of its effects that could be told
//! apart are related by a path of operands.
//!
//! What is looked for is proof, so that `Ok` can be relied on and
//! [`UnorderedEffects`] may be too careful.
//!
//! An operation without effects may come before or after a cancellation only
//! if nobody can see what becomes of its results. (What it reports, if it
//! fails, is not looked at.)
//!
//! # How
//!
//! For each value of a body: the set of *events* that lie before it, which are
//! that a value is there, and for each operation and class of effects that all
//! effects of the class inside of the operation have happened. A strict
//! operation starts after all events that lie before its operands. What lies
//! inside calls and regions is summed up per body:
//!
//! * `effects`: the classes that occur in it;
//! * `after[r]`: the classes whose effects all lie before result `r`;
//! * `before[a]`: the classes whose effects all lie behind argument `a`;
//! * `passes[r]`: the arguments that lie before result `r`.
//!
//! Recursive functions begin with the best summary and lose what can't be held
//! up; for runs that end, an induction on their depth shows that what is left
//! is true.

use std::fmt;

use tfrt_ir::{Module, OpId};

use crate::evaluate::Refusal;
use crate::plan::{Body, BodyIndex, Kind, Operation, Plan, Slot};

/// A set of classes of effects.
type Classes = u8;

/// The effect of printing.
const PRINT: Classes = 1;
/// The effect of changing a shared counter.
const WRITE: Classes = 1 << 1;
/// The effect of reading a shared counter.
const READ: Classes = 1 << 2;
/// The effect of calling a function unless it was called before.
const ONCE: Classes = 1 << 3;
/// The effect of cancelling the request: what has not run yet has a failure for a result.
const CANCEL: Classes = 1 << 4;
/// The effect of printing a line that may be in any order with other prints.
const LINE: Classes = 1 << 5;
const N_CLASSES: usize = 6;
const ALL: Classes = (1 << N_CLASSES) - 1;

/// Two operations whose effects may come in either order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnorderedEffects {
    /// The first in the text.
    pub first: OpId,
    /// The second in the text; equal to `first` if an operation runs a body more than once.
    pub second: OpId,
}

impl fmt::Display for UnorderedEffects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("two effects are not ordered by operands")
    }
}

/// Checks that the output of a module's functions without arguments is
/// determined.
///
/// # Errors
///
/// The inner one names two effects that are not ordered; the outer one is
/// [`Refusal::Malformed`].
///
/// # Examples
///
/// ```
/// use tfrt_ir::{Source, parse};
/// use tfrt_oracle::ordered::check;
///
/// let text = "func.func @main() {
///     %c = tfrt.new.chain
///     %x = tfrt.constant.i32 1
///     tfrt.print.i32 %x, %c
///     tfrt.print.i32 %x, %c
///     tfrt.return
/// }";
/// let module = parse(&Source::new("two.mlir", text))?;
/// let unordered = check(&module)?.unwrap_err();
/// assert_eq!(module.op(unordered.first).name(), "tfrt.print.i32");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn check(module: &Module) -> Result<Result<(), UnorderedEffects>, Refusal> {
    Ok(check_plan(&Plan::new(module)?, true))
}

/// Checks that the lines that are printed are determined, but for their order.
///
/// # Errors
///
/// See [`check`].
pub fn check_lines(module: &Module) -> Result<Result<(), UnorderedEffects>, Refusal> {
    Ok(check_plan(&Plan::new(module)?, false))
}

/// Checks a module that is taken apart, the order of its lines included or not.
pub(crate) fn check_plan(plan: &Plan<'_>, with_lines: bool) -> Result<(), UnorderedEffects> {
    let print = if with_lines { PRINT } else { LINE };
    let traits = |body: &Body| -> Vec<Traits> {
        let operations = body.operations.iter();
        operations
            .map(|operation| Traits::new(plan, operation, print))
            .collect()
    };
    let traits: Vec<Vec<Traits>> = plan.bodies.iter().map(traits).collect();
    let mut summaries: Vec<Summary> = plan.bodies.iter().map(Summary::best).collect();
    let mut walks: Vec<Option<Walk<'_>>> = plan.bodies.iter().map(|_| None).collect();
    // As long as there is a body that was not walked since a summary changed of one that it runs.
    while let Some(body) = walks.iter().position(Option::is_none) {
        let walk = Walk::new(&plan.bodies[body], &traits[body], &summaries);
        let summary = walk.summary();
        walks[body] = Some(walk);
        if summary != summaries[body] {
            summaries[body] = summary;
            for (walk, traits) in walks.iter_mut().zip(&traits) {
                walk.take_if(|_| traits.iter().any(|own| own.callees.contains(&body)));
            }
        }
    }
    let walks: Vec<Walk<'_>> = walks.into_iter().flatten().collect();
    let mut reached = vec![false; plan.bodies.len()];
    for function in plan
        .functions
        .iter()
        .filter(|function| function.n_arguments == 0)
    {
        if let Kind::Async(body) = function.kind {
            reach(&traits, body, &mut reached);
            walks[body].check_results()?;
        }
    }
    let reached = (0..plan.bodies.len()).filter(|&body| reached[body]);
    for body in reached {
        walks[body].check_pairs()?;
    }
    Ok(())
}

/// Marks a body and all that it calls.
fn reach(traits: &[Vec<Traits>], body: BodyIndex, reached: &mut [bool]) {
    let mut found = vec![body];
    while let Some(body) = found.pop() {
        if !std::mem::replace(&mut reached[body], true) {
            found.extend(traits[body].iter().flat_map(|own| &own.callees));
        }
    }
}

/// The summary of a body, or of an operation, as seen from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Summary {
    effects: Classes,
    after: Vec<Classes>,
    before: Vec<Classes>,
    passes: Vec<Set>,
    /// Whether the operation repeats a body whose runs are not ordered.
    at_odds: bool,
}

impl Summary {
    fn best(body: &Body) -> Summary {
        let n_arguments = body.arguments.len();
        let mut every = Set::new(n_arguments);
        (0..n_arguments).for_each(|argument| every.add(argument));
        Summary {
            effects: 0,
            after: vec![ALL; body.results.len()],
            before: vec![ALL; n_arguments],
            passes: vec![every; body.results.len()],
            at_odds: false,
        }
    }
}

/// Returns whether effects of two classes show in which order they come.
fn conflict(a: Classes, b: Classes) -> bool {
    (a & b & (PRINT | ONCE)) != 0
        || (a & READ != 0 && b & WRITE != 0)
        || (a & WRITE != 0 && b & READ != 0)
        || (a | b) & CANCEL != 0
}

fn classes(set: Classes) -> impl Iterator<Item = Classes> {
    (0..N_CLASSES)
        .map(|class| 1 << class)
        .filter(move |class| set & class != 0)
}

/// Returns the bodies that an operation may run.
fn callees(plan: &Plan<'_>, operation: &Operation) -> Vec<BodyIndex> {
    let op = plan.module.op(operation.op);
    let attributes = op.attributes().iter().map(|(_, attribute)| attribute);
    let symbols = attributes.flat_map(|attribute| match attribute.as_array() {
        Some(elements) => elements.iter().collect(),
        None => vec![attribute],
    });
    let names = symbols.filter_map(|attribute| attribute.as_flat_symbol());
    let called = names.filter_map(|name| plan.body_of(name));
    operation.regions.iter().copied().chain(called).collect()
}

/// The properties of an operation by itself, whatever is known of others.
struct Traits {
    effects: Classes,
    callees: Vec<BodyIndex>,
}

impl Traits {
    fn new(plan: &Plan<'_>, operation: &Operation, print: Classes) -> Traits {
        Traits {
            effects: own_effects(plan, operation, print),
            callees: callees(plan, operation),
        }
    }
}

/// One pass over a body.
struct Walk<'w> {
    body: &'w Body,
    /// The summary of each operation.
    summaries: Vec<Summary>,
    /// The events before each operation.
    starts: Vec<Set>,
    /// The events before each slot.
    slots: Vec<Set>,
}

impl<'w> Walk<'w> {
    fn new(body: &'w Body, traits: &[Traits], summaries: &[Summary]) -> Walk<'w> {
        let n_events = body.n_slots + body.operations.len() * N_CLASSES;
        let none = Set::new(n_events);
        let mut walk = Walk {
            body,
            summaries: Vec::with_capacity(body.operations.len()),
            starts: Vec::with_capacity(body.operations.len()),
            // Values are defined before they are read.
            slots: vec![Set(Vec::new()); body.n_slots],
        };
        for (argument, &slot) in body.arguments.iter().enumerate() {
            debug_assert_eq!(slot, argument, "arguments have the first slots");
            walk.slots[slot] = none.clone();
            walk.slots[slot].add(slot);
        }
        for (index, (operation, own)) in body.operations.iter().zip(traits).enumerate() {
            let summary = summarize(operation, own, summaries);
            let mut operands = operation
                .operands
                .iter()
                .map(|operand| &walk.slots[operand.slot]);
            let mut start = none.clone();
            if operation.nonstrict {
                // It starts after one of its operands, we do not know which.
                start = operands.next().cloned().unwrap_or(start);
                operands.for_each(|operand| start.keep(operand));
            } else {
                operands.for_each(|operand| start.join(operand));
            }
            let is_leaf = own.callees.is_empty();
            for (&slot, &after) in operation.results.iter().zip(&summary.after) {
                let mut before_it = start.clone();
                before_it.add(slot);
                if is_leaf {
                    // It did run, so what it makes is no longer in doubt.
                    operation
                        .results
                        .iter()
                        .for_each(|&slot| before_it.add(slot));
                }
                classes(after).for_each(|class| before_it.add(walk.event(index, class)));
                walk.slots[slot] = before_it;
            }
            walk.starts.push(start);
            walk.summaries.push(summary);
        }
        walk
    }

    /// Returns the event that all effects of a class of an operation happened.
    fn event(&self, operation: usize, class: Classes) -> usize {
        let class = usize::try_from(class.trailing_zeros()).expect("there are six");
        self.body.n_slots + operation * N_CLASSES + class
    }

    /// Returns the classes of which all effects in the body lie before a set.
    fn finished(&self, set: &Set) -> Classes {
        let lacking = |class: &Classes| {
            let mut with_class =
                (0..self.summaries.len()).filter(|&at| self.summaries[at].effects & class != 0);
            with_class.any(|at| !set.has(self.event(at, *class)))
        };
        classes(ALL).filter(|class| !lacking(class)).sum()
    }

    fn summary(&self) -> Summary {
        let n_arguments = self.body.arguments.len();
        let lacking = |argument: usize, class: Classes| {
            let mut runs = self.summaries.iter().zip(&self.starts);
            runs.any(|(summary, start)| summary.effects & class != 0 && !start.has(argument))
        };
        let before = |argument| {
            classes(ALL)
                .filter(|&class| !lacking(argument, class))
                .sum()
        };
        let results = self.body.results.iter().map(|&slot| &self.slots[slot]);
        Summary {
            effects: self
                .summaries
                .iter()
                .fold(0, |all, summary| all | summary.effects),
            after: results.clone().map(|set| self.finished(set)).collect(),
            before: (0..n_arguments).map(before).collect(),
            passes: results.map(|set| set.first(n_arguments)).collect(),
            at_odds: false,
        }
    }

    /// Checks the body's operations against each other.
    fn check_pairs(&self) -> Result<(), UnorderedEffects> {
        let operations = &self.body.operations;
        for second in 0..operations.len() {
            let unordered = |first: usize| UnorderedEffects {
                first: operations[first].op,
                second: operations[second].op,
            };
            if self.summaries[second].at_odds {
                return Err(unordered(second));
            }
            for first in 0..second {
                let (a, b) = (
                    self.summaries[first].effects,
                    self.summaries[second].effects,
                );
                let start = &self.starts[second];
                let mut shown = classes(a).filter(|&class| conflict(class, b));
                let raced = shown.any(|class| !start.has(self.event(first, class)));
                let cut = b & CANCEL != 0 && !self.is_settled(first, start);
                let cuts = a & CANCEL != 0
                    && !start.has(self.event(first, CANCEL))
                    && !self.is_settled(second, &Set::new(0));
                if raced || cut || cuts {
                    return Err(unordered(first));
                }
            }
        }
        Ok(())
    }

    /// Returns whether each result of an operation lies before a start, or is seen by nobody.
    fn is_settled(&self, operation: usize, start: &Set) -> bool {
        let results = &self.body.operations[operation].results;
        results
            .iter()
            .all(|&slot| start.has(slot) || self.is_stray(slot))
    }

    /// Returns whether a value is read by nothing that has an effect or a result that is seen.
    fn is_stray(&self, slot: Slot) -> bool {
        let reads = |at: &usize| {
            let operands = &self.body.operations[*at].operands;
            operands.iter().any(|operand| operand.slot == slot)
        };
        let mut readers = (0..self.summaries.len()).filter(reads);
        !self.body.results.contains(&slot)
            && readers.all(|at| {
                let mut results = self.body.operations[at].results.iter();
                self.summaries[at].effects == 0 && results.all(|&slot| self.is_stray(slot))
            })
    }

    /// Checks that prints come before the line with the results, which is printed when all results
    /// are there.
    fn check_results(&self) -> Result<(), UnorderedEffects> {
        let Some((&first, rest)) = self.body.results.split_first() else {
            return Ok(());
        };
        let mut all = self.slots[first].clone();
        rest.iter().for_each(|&slot| all.join(&self.slots[slot]));
        let printing =
            (0..self.summaries.len()).filter(|&at| self.summaries[at].effects & PRINT != 0);
        for at in printing {
            if !all.has(self.event(at, PRINT)) {
                let op = self.body.operations[at].op;
                return Err(UnorderedEffects {
                    first: op,
                    second: op,
                });
            }
        }
        Ok(())
    }
}

/// Sums an operation up: `after` of its results, and its effects.
fn summarize(operation: &Operation, own: &Traits, summaries: &[Summary]) -> Summary {
    let n_results = operation.results.len();
    let mut sum = Summary {
        effects: own.effects,
        after: vec![ALL; n_results],
        before: Vec::new(),
        passes: Vec::new(),
        at_odds: false,
    };
    for &body in &own.callees {
        let callee = &summaries[body];
        sum.effects |= callee.effects;
        match operation.name.as_str() {
            "tfrt.repeat.i32" | "tfrt.while" => {
                let condition = (operation.name == "tfrt.while")
                    .then(|| callee.after.last())
                    .flatten();
                sum.at_odds |= !runs_in_order(callee, condition.copied().unwrap_or(0));
                for (result, after) in sum.after.iter_mut().enumerate() {
                    let carried = callee.passes.get(result).is_some_and(|set| set.has(result));
                    let all = callee.after.get(result).copied().filter(|_| carried);
                    *after &= all.unwrap_or(0) | condition.copied().unwrap_or(0) | !callee.effects;
                }
            }
            "tfrt.parallel_for.i32" | "tfrt.parallel_call.i32" => {
                sum.at_odds |= conflict(callee.effects, callee.effects);
                let all = callee.after.first().copied().unwrap_or(0) | !callee.effects;
                sum.after.iter_mut().for_each(|after| *after &= all);
            }
            _ => {
                let all = callee.after.iter().copied().chain(std::iter::repeat(0));
                sum.after
                    .iter_mut()
                    .zip(all)
                    .for_each(|(after, all)| *after &= all);
            }
        }
    }
    if operation.name == "tfrt.once" {
        sum.after.iter_mut().for_each(|after| *after |= ONCE);
    }
    sum
}

/// Returns whether effects that show are ordered from one run of a loop's body to all later ones;
/// `condition` holds what lies before a next run anyway.
fn runs_in_order(body: &Summary, condition: Classes) -> bool {
    let carried = |a: Classes, b: Classes| {
        (0..body.after.len().min(body.before.len())).any(|at| {
            body.after[at] & a != 0 && body.before[at] & b != 0 && body.passes[at].has(at)
        })
    };
    let pairs = classes(body.effects)
        .flat_map(|a| classes(body.effects).map(move |b| (a, b)))
        .filter(|&(a, b)| conflict(a, b));
    body.effects & CANCEL == 0
        && pairs
            .into_iter()
            .all(|(a, b)| condition & a != 0 || carried(a, b))
}

/// Returns the classes of effects that an operation has by itself.
fn own_effects(plan: &Plan<'_>, operation: &Operation, print: Classes) -> Classes {
    let module: &Module = plan.module;
    let op = module.op(operation.op);
    let mut values = op.operands().iter().chain(op.results());
    let holds_resource =
        values.any(|&value| module.value_type(value).as_dialect() == Some("!tfrt.test.resource"));
    let effects = match operation.name.as_str() {
        "tfrt_test.atomic.inc.i32" | "tfrt_test.atomic.add.i32" => WRITE,
        "tfrt_test.atomic.get.i32" => READ,
        "tfrt_test.cancel" => CANCEL,
        "tfrt.once" => ONCE,
        "tfrt_test.usleep" | "tfrt_test.blocking.usleep" | "tfrt_test.test_cost" => print,
        name if name.contains("print") => print,
        _ => 0,
    };
    effects | if holds_resource { print } else { 0 }
}

/// A set of small numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Set(Vec<u64>);

impl Set {
    fn new(size: usize) -> Set {
        Set(vec![0; size.div_ceil(64)])
    }

    fn add(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    fn has(&self, number: usize) -> bool {
        self.0
            .get(number / 64)
            .is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    fn join(&mut self, other: &Set) {
        self.0
            .iter_mut()
            .zip(&other.0)
            .for_each(|(word, other)| *word |= other);
    }

    fn keep(&mut self, other: &Set) {
        self.0
            .iter_mut()
            .zip(&other.0)
            .for_each(|(word, other)| *word &= other);
    }

    /// Returns the set of the numbers that are below `size`.
    fn first(&self, size: usize) -> Set {
        let mut set = Set::new(size);
        (0..size)
            .filter(|&number| self.has(number))
            .for_each(|number| set.add(number));
        set
    }
}

#[cfg(test)]
mod tests;
