//! Calls of functions from graphs: `graph.call`.
//!
//! ```mlir
//! %y = "graph.call"(%x) {callee = @layer} : (tensor<?x4xf32>) -> tensor<?x4xf32>
//! ```
//!
//! The function is one of the module, and no model itself: it becomes a private one. What it does ahead, with constants
//! alone, is done for it by the model that calls it, be it through others: [`lift`].

use std::collections::{HashMap, HashSet};

use tfrt_ir::{Attribute, BlockId, Location, Module, OpId, OpState, Type, ValueId};
use tfrt_ops::Table;

use super::{lower, node, place, scope, section};

/// The operation that calls a function.
pub(in crate::passes) const CALL: &str = "graph.call";

/// The attribute that names the called function.
pub(super) const CALLEE: &str = "callee";

/// The functions of a module, and the calls between them.
#[derive(Default)]
pub(in crate::passes) struct Calls {
    by_name: HashMap<String, (OpId, BlockId)>,
    /// The calls of each function.
    of: HashMap<OpId, Vec<OpId>>,
    /// The functions that each function calls.
    by: HashMap<OpId, Vec<OpId>>,
}

impl Calls {
    pub(in crate::passes) fn new(module: &Module) -> Calls {
        let mut calls = Calls::default();
        let functions = scope::functions(module);
        for &function in &functions {
            if let ([block], Some(name)) = (
                &scope::region_blocks(module, function)[..],
                module.symbol_name(function),
            ) {
                calls.by_name.insert(name.to_owned(), (function, *block));
            }
        }
        for function in functions {
            for op in calls_in(module, function) {
                if let Some((callee, _)) = calls.callee(module, op) {
                    calls.of.entry(callee).or_default().push(op);
                    calls.by.entry(function).or_default().push(callee);
                }
            }
        }
        calls
    }

    /// Returns the function that an operation calls, if it is a call of one that is there.
    pub(super) fn callee(&self, module: &Module, op: OpId) -> Option<(OpId, BlockId)> {
        self.by_name.get(name(module, op)?).copied()
    }

    /// Returns the calls of a function.
    pub(super) fn of(&self, function: OpId) -> &[OpId] {
        self.of.get(&function).map_or(&[], Vec::as_slice)
    }

    /// Returns the functions that are called.
    pub(in crate::passes) fn called(&self) -> impl Iterator<Item = OpId> {
        self.of.keys().copied()
    }

    /// Sorts functions: callers stand before their callees, but in cycles.
    pub(super) fn callers_first(&self, functions: &[(OpId, BlockId)]) -> Vec<(OpId, BlockId)> {
        let blocks: HashMap<OpId, BlockId> = functions.iter().copied().collect();
        let (mut seen, mut done) = (HashSet::new(), Vec::with_capacity(functions.len()));
        for &(first, _) in functions.iter().rev() {
            // Each function with how many of those that it calls were looked at.
            let mut open = vec![(first, 0)];
            while let Some((function, at)) = open.pop() {
                if at == 0 && !seen.insert(function) {
                    continue;
                }
                let callees = self.by.get(&function).map_or(&[][..], Vec::as_slice);
                match callees.get(at) {
                    Some(callee) => open.extend([(function, at + 1), (*callee, 0)]),
                    None => done.extend(blocks.get(&function).map(|block| (function, *block))),
                }
            }
        }
        done.reverse();
        done
    }

    /// Returns all functions that a function calls, directly or through others.
    fn reached(&self, from: OpId) -> Vec<OpId> {
        let (mut seen, mut reached) = (HashSet::new(), Vec::new());
        let mut open = vec![from];
        while let Some(function) = open.pop() {
            for &callee in self.by.get(&function).into_iter().flatten().rev() {
                if seen.insert(callee) {
                    reached.push(callee);
                    open.push(callee);
                }
            }
        }
        reached
    }

    /// Returns what is wrong with a call: its callee, its operands or its results.
    ///
    /// # Errors
    ///
    /// The message for the operation.
    pub(in crate::passes) fn check(&self, module: &Module, op: OpId) -> Result<(), String> {
        let called = name(module, op).unwrap_or_default();
        let (function, block) = self
            .callee(module, op)
            .ok_or_else(|| format!("calls '@{called}', which is no function of one block"))?;
        if module.op(function).attribute("model.input_names").is_some() {
            return Err(format!(
                "calls '@{called}', which is a model itself: its values have names"
            ));
        }
        let last = module.block(block).last();
        let given = last.map_or(&[][..], |last| module.op(last).operands());
        let data = module.op(op);
        for (what, own, others) in [
            ("operand", data.operands(), module.block(block).arguments()),
            ("result", data.results(), given),
        ] {
            let (found, expected) = (own.len(), others.len());
            if found != expected {
                return Err(format!(
                    "has {found} {what}s, '@{called}' has {expected} of them"
                ));
            }
            for (index, (own, other)) in own.iter().zip(others).enumerate() {
                let [own, other] = [own, other].map(|value| module.value_type(*value));
                if !fits(own, other) {
                    return Err(format!(
                        "has {own} as {what} {index}, '@{called}' has {other}"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Returns the name of the function that an operation calls, if it is a call.
pub(super) fn name(module: &Module, op: OpId) -> Option<&str> {
    let data = module.op(op);
    if *data.name() != CALL {
        return None;
    }
    let symbol = data.attribute(CALLEE)?.as_symbol()?;
    Some(symbol.root.as_str())
}

/// Returns the calls in a function.
pub(in crate::passes) fn calls_in(module: &Module, function: OpId) -> Vec<OpId> {
    let mut calls = Vec::new();
    module.walk_pre_order(function, &mut |op| {
        if *module.op(op).name() == CALL {
            calls.push(op);
        }
    });
    calls
}

/// Returns whether two types may be those of one value: both are tensors whose elements may be of one type, or they
/// are equal.
fn fits(own: &Type, other: &Type) -> bool {
    match (own, other) {
        (Type::Tensor(_), Type::Tensor(_)) => {
            let elements = [own, other].map(|ty| super::attrs::dtype(&node::element(ty)?));
            !matches!(elements, [Some(own), Some(other)] if own != other)
        }
        _ => own == other,
    }
}

/// Hoists constants, and operations on them alone, from functions to the models that call them. The values become
/// arguments behind the function's own, which each call passes. Functions that nobody calls are models, and calculate
/// the values.
pub(super) fn lift(module: &mut Module, rows: &Table, functions: &[(OpId, BlockId)]) -> Calls {
    let calls = Calls::new(module);
    if calls.of.is_empty() {
        return calls;
    }
    let (called, models): (Vec<_>, Vec<_>) = functions
        .iter()
        .partition(|(op, _)| !calls.of(*op).is_empty());
    let mut lifting = Lifting {
        module,
        known: HashMap::new(),
        given: HashMap::new(),
    };
    for (function, block) in &called {
        lifting.hoist(*function, *block, rows);
    }
    for (function, _) in &called {
        let mut own = lifting.given.get(function).cloned().unwrap_or_default();
        for other in calls.reached(*function) {
            if other != *function {
                own.extend(lifting.given.get(&other).into_iter().flatten());
            }
        }
        lifting.known.entry(*function).or_default().needs = own;
    }
    for (function, block) in &called {
        lifting.take(*function, *block);
    }
    for (function, block) in &models {
        lifting.make(&calls, *function, *block);
    }
    for (function, _) in &called {
        lifting.give(&calls, *function);
    }
    lifting.finish(&called);
    calls
}

/// The part of a called function that depends on constants alone, which is calculated once, by the model that calls
/// it.
#[derive(Default)]
struct HoistedConstants {
    /// The operations, in order, which are in no block any longer.
    operations: Vec<OpId>,
    /// The values that the function is passed: its own, and those of functions that it calls.
    needs: Vec<ValueId>,
    /// The values that replace them in the function.
    values: HashMap<ValueId, ValueId>,
}

/// The state of hoisting constants out of functions.
struct Lifting<'m> {
    module: &'m mut Module,
    known: HashMap<OpId, HoistedConstants>,
    /// The values of each function that its other operations use.
    given: HashMap<OpId, Vec<ValueId>>,
}

impl Lifting<'_> {
    /// Takes the operations on constants alone out of a function.
    fn hoist(&mut self, function: OpId, block: BlockId, rows: &Table) {
        let operations = self.module.block(block).operations().to_vec();
        let is_known = lower::load_time_ops(self.module, rows, &operations);
        if is_known.is_empty() {
            return;
        }
        let (known, kept): (Vec<OpId>, Vec<OpId>) =
            operations.iter().partition(|op| is_known.contains(op));
        let results = known.iter().flat_map(|op| self.module.op(*op).results());
        let is_given = |value: &ValueId| {
            let mut users = self.module.users(*value);
            users.any(|user| !is_known.contains(&user.op))
        };
        let given = results.copied().filter(is_given).collect();
        self.given.insert(function, given);
        self.known.entry(function).or_default().operations = known;
        self.module.set_operations(block, kept);
    }

    /// Adds arguments to a function for the values that it needs.
    fn take(&mut self, function: OpId, block: BlockId) {
        let known = self.known.entry(function).or_default();
        let is_own: HashSet<OpId> = known.operations.iter().copied().collect();
        for value in known.needs.clone() {
            let ty = self.module.value_type(value).clone();
            let argument = self.module.add_argument(block, ty, Location::Unknown);
            known.values.insert(value, argument);
            let maker = self.module.defining_op(value);
            if !maker.is_some_and(|maker| is_own.contains(&maker)) {
                continue;
            }
            let users: Vec<_> = self.module.users(value).collect();
            for user in users.into_iter().filter(|user| !is_own.contains(&user.op)) {
                self.module
                    .set_operand(user.op, user.operand as usize, argument);
            }
        }
    }

    /// Makes a model calculate the values that its callees need.
    fn make(&mut self, calls: &Calls, function: OpId, block: BlockId) {
        let (mut values, mut made) = (HashMap::new(), Vec::new());
        for callee in calls.reached(function) {
            let known = self.known.get(&callee);
            let operations = known.map_or(&[][..], |known| &known.operations);
            for &op in operations {
                let data = self.module.op(op).clone();
                let now = |value: &ValueId| values.get(value).copied().unwrap_or(*value);
                let types = data.results().iter();
                let types = types.map(|value| self.module.value_type(*value).clone());
                let state = OpState::new(data.name().clone())
                    .operands(data.operands().iter().map(now))
                    .results(types.collect::<Vec<_>>())
                    .location(data.location().clone());
                let attributes = data.attributes().iter().cloned();
                let state =
                    attributes.fold(state, |state, (name, value)| state.attribute(name, value));
                let new = self.module.create(state);
                made.push(new);
                let results = self.module.op(new).results().to_vec();
                values.extend(data.results().iter().copied().zip(results));
            }
        }
        made.extend_from_slice(self.module.block(block).operations());
        self.module.set_operations(block, made);
        self.known.entry(function).or_default().values = values;
        self.give(calls, function);
    }

    /// Passes the values that callees need in the calls of a function.
    fn give(&mut self, calls: &Calls, function: OpId) {
        for op in calls_in(self.module, function) {
            let callee = calls.callee(self.module, op);
            let Some(needs) = callee.and_then(|(callee, _)| self.known.get(&callee)) else {
                continue;
            };
            let values = self.known.get(&function).map(|known| &known.values);
            let given = needs.needs.iter();
            let given = given.filter_map(|value| values?.get(value).copied());
            let all = self.module.op(op).operands().iter().copied().chain(given);
            let all: Vec<ValueId> = all.collect();
            self.module.set_operands(op, &all);
        }
    }

    /// Erases the operations that were hoisted.
    fn finish(self, called: &[(OpId, BlockId)]) {
        let mut gone = Vec::new();
        for (function, _) in called {
            let known = self.known.get(function);
            gone.extend(known.map_or(&[][..], |known| &known.operations));
        }
        for op in &gone {
            self.module.set_operands(*op, &[]);
        }
        for op in gone {
            self.module.erase(op);
        }
    }
}

/// Returns the kernel of a call: the callee is private, and the program's.
pub(super) fn kernel(module: &Module, op: OpId, operands: Vec<ValueId>) -> OpState {
    let data = module.op(op);
    let attribute = |name| data.attribute(name).cloned().unwrap_or(Attribute::Unit);
    let section = section::kernel_of(module, op);
    let state = OpState::new(section.as_deref().unwrap_or("tfrt.call"))
        .operands(operands)
        .attribute(CALLEE, attribute(CALLEE));
    match section {
        None => state,
        Some(_) => state
            .attribute("device", attribute(place::DEVICE))
            .attribute("fixed", attribute(section::FIXED)),
    }
}

#[cfg(test)]
mod tests;
