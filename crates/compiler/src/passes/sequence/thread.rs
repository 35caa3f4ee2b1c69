//! Threads chains through operations, as the order requires.
//!
//! An operation that must wait takes a chain: that of the one that it waits for, or
//! a merge of several. Operations with regions and functions pass the chain on
//! inside, and give one when all is over. What can't take a chain, since its kernel
//! or signature is not ours, waits by an operand that does (`tfrt.alias.value`).

use std::collections::{HashMap, HashSet};

use tfrt_ir::{
    Attribute, BlockId, Diagnostics, Location, Module, OpId, OpState, Type, ValueId,
    attributes::Dictionary, dialect,
};

use super::{
    access::{Accesses, Object, Objects},
    analysis::{Analysis, FunctionEffects, body, is_visible},
    order::{Edge, OpIndex, Order},
    plan::ChainPlan,
};
use crate::{codes, passes::scope};

/// Adds chains to a module.
pub(super) fn thread(module: &mut Module, diagnostics: &mut Diagnostics) {
    let analysis = Analysis::new(module);
    let plan = ChainPlan::new(module, &analysis);
    let mut threader = Threader {
        module,
        analysis: &analysis,
        plan: &plan,
        diagnostics,
    };
    for function in scope::functions(threader.module) {
        threader.function(function);
    }
}

/// The state of threading chains through a module.
struct Threader<'a> {
    module: &'a mut Module,
    analysis: &'a Analysis,
    plan: &'a ChainPlan,
    diagnostics: &'a mut Diagnostics,
}

/// A block that is being threaded.
struct Walk<'a> {
    facts: &'a FunctionEffects,
    /// The chain that the operations of the block may wait for at its entry.
    entry: Option<ValueId>,
    new_chain: Option<ValueId>,
    /// The operations so far, with new ones between.
    operations: Vec<OpId>,
    /// The operations by their positions in the order, from 1.
    nodes: Vec<OpId>,
    positions: HashMap<OpId, OpIndex>,
    merges: HashMap<Vec<ValueId>, ValueId>,
}

impl Threader<'_> {
    fn function(&mut self, function: OpId) {
        let Some(block) = body(self.module, function) else {
            return;
        };
        if self.module.op(function).attribute("tfrt.sync").is_some() {
            // Its operations run in textual order.
            return;
        }
        let Some(facts) = self.analysis.facts.get(&function) else {
            return;
        };
        if self.plan.adds_argument(function) {
            self.module
                .add_argument(block, Type::chain(), Location::Unknown);
        }
        let last = self.module.block(block).arguments().last().copied();
        let entry = last.filter(|&last| self.module.value_type(last).is_chain());
        let before = match (entry, self.plan.is_loop_body(function)) {
            (None, _) => Accesses::default(),
            (Some(_), true) => self.earlier_turns(block, facts),
            (Some(_), false) => Accesses::everything(),
        };
        let over = self.block(block, facts, entry, &before);
        if let Some(index) = self.plan.chain_result(function) {
            let is_there = !self.plan.adds_result(function);
            self.give(block, over, Some(index), is_there);
        } else {
            // Who calls a function that keeps its signature waits for what it returns.
            self.delay_results(block, over, entry);
        }
        self.set_signature(function, block);
    }

    /// Returns the accesses of earlier turns of a loop, as its body sees them: those of the body, and for new buffers
    /// that a turn passes on those of the arguments that receive them.
    fn earlier_turns(&self, block: BlockId, facts: &FunctionEffects) -> Accesses {
        let block = self.module.block(block);
        let returned = block.last().map(|end| self.module.op(end).operands());
        let handed_on: Vec<Objects> = returned
            .unwrap_or_default()
            .iter()
            .map(|&value| facts.objects(self.module, value))
            .collect();
        let mut all = Accesses::default();
        for &op in block.operations() {
            all.merge(&self.accesses(op, facts));
            for (object, access) in facts.accesses(op).iter() {
                if !matches!(object, Object::Local(_)) {
                    continue;
                }
                for (argument, objects) in (0..).zip(&handed_on) {
                    if objects.contains(object) || objects.contains(Object::Any) {
                        all.add(facts.class(Object::Argument(argument)), access);
                    }
                }
            }
        }
        all
    }

    /// Returns the accesses of an operation, with one object for all that may be the same.
    fn accesses(&self, op: OpId, facts: &FunctionEffects) -> Accesses {
        let mut accesses = Accesses::default();
        for (object, access) in facts.accesses(op).iter() {
            accesses.add(facts.class(object), access);
        }
        accesses
    }

    /// Threads a block; returns a chain that is there when all visible effects are over.
    fn block(
        &mut self,
        block: BlockId,
        facts: &FunctionEffects,
        entry: Option<ValueId>,
        before: &Accesses,
    ) -> Option<ValueId> {
        let source = self.module.block(block).operations().to_vec();
        let mut walk = Walk {
            facts,
            entry,
            new_chain: None,
            operations: Vec::new(),
            nodes: Vec::new(),
            positions: HashMap::new(),
            merges: HashMap::new(),
        };
        let mut order = Order::default();
        order.push(before, Vec::new());
        let (&end, source) = source.split_last()?;
        for &op in source {
            let accesses = self.accesses(op, facts);
            let edges = self.data_edges(op, &walk);
            let needed = order.push(&accesses, edges);
            walk.nodes.push(op);
            walk.positions.insert(op, walk.nodes.len());
            self.operation(op, &accesses, &needed, &mut walk);
            walk.operations.push(op);
        }
        let visible: HashSet<OpIndex> = (1..)
            .zip(&walk.nodes)
            .filter(|&(_, &op)| {
                let mut objects = facts.accesses(op).iter();
                objects.any(|(object, _)| is_visible(self.module, facts, object, block))
            })
            .map(|(node, _)| node)
            .collect();
        let left = order.finish(|node| visible.contains(&node) || (node == 0 && entry.is_some()));
        let over = self.chains(&left, &mut walk);
        let over = (!over.is_empty()).then(|| self.combine(&over, end, &mut walk));
        walk.operations.push(end);
        self.module.set_operations(block, walk.operations);
        over
    }

    fn data_edges(&self, op: OpId, walk: &Walk<'_>) -> Vec<Edge> {
        let data = self.module.op(op);
        if data.attribute("bef.nonstrict").is_some() {
            return Vec::new();
        }
        // A call may be inlined: then only chains lead in and out.
        let is_call = |op: OpId| *self.module.op(op).name() == "tfrt.call";
        let edge = |&value: &ValueId| {
            let is_chain = self.module.value_type(value).is_chain();
            if is_call(op) && !is_chain {
                return None;
            }
            if Some(value) == walk.entry {
                return Some(Edge {
                    from: 0,
                    is_firm: true,
                });
            }
            let from = self.module.defining_op(value)?;
            if is_call(from) && !is_chain {
                return None;
            }
            let definition = dialect::describe(self.module.op(from).name());
            let is_simple = definition.is_some_and(|definition| {
                let effects = definition.effects();
                !effects.is_unknown() && !effects.is_nested()
            });
            Some(Edge {
                from: *walk.positions.get(&from)?,
                is_firm: is_simple || is_chain,
            })
        };
        data.operands().iter().filter_map(edge).collect()
    }

    /// Makes an operation, and those inside it, wait.
    fn operation(
        &mut self,
        op: OpId,
        accesses: &Accesses,
        needed: &[OpIndex],
        walk: &mut Walk<'_>,
    ) {
        let chains = self.chains(needed, walk);
        let data = self.module.op(op);
        let definition = dialect::describe(data.name());
        let effects = definition.map(|definition| definition.effects());
        if !chains.is_empty() && data.attribute("bef.nonstrict").is_some() {
            let error = self.module.op_error(
                codes::NONSTRICT_EFFECTS,
                op,
                "has effects that must wait, but is marked non-strict",
            );
            return self.diagnostics.push(error.help("remove 'bef.nonstrict'"));
        }
        if !data.regions().is_empty() && effects.is_some_and(|effects| effects.is_nested()) {
            return self.regions(op, accesses, &chains, walk);
        }
        for block in scope::region_blocks(self.module, op) {
            self.block(block, walk.facts, None, &Accesses::default());
        }
        if effects.is_some_and(|effects| effects.is_nested()) {
            return self.call(op, accesses, &chains, walk);
        }
        let Some(definition) = definition.filter(|definition| !definition.effects().is_unknown())
        else {
            return self.unknown(op, &chains, walk);
        };
        let declared = definition.chain_operand();
        let n_operands = self.module.op(op).operands().len();
        let place = declared.unwrap_or(n_operands);
        let present = match declared {
            Some(index) => Some(index),
            None => n_operands.checked_sub(1),
        };
        let present = present.filter(|&index| self.is_chain_operand(op, index));
        match present {
            Some(index) if !chains.is_empty() => self.replace_chain(op, index, &chains, walk),
            None if !chains.is_empty() || declared.is_some() => {
                let chain = self.chain_or_entry(&chains, op, walk);
                self.insert_operand(op, place, chain);
            }
            _ => {}
        }
        // The verifier asks for the chain that is declared.
        if let Some(index) = definition.chain_result()
            && !self.has_chain_result(op)
        {
            self.module.insert_result(op, index, Type::chain());
        }
    }

    /// Threads an operation with regions, which wait with it.
    fn regions(&mut self, op: OpId, accesses: &Accesses, chains: &[ValueId], walk: &mut Walk<'_>) {
        let name = self.module.op(op).name().clone();
        let blocks = scope::region_blocks(self.module, op);
        let Some(definition) = self.module.op(op).definition() else {
            return;
        };
        let is_touching = blocks.iter().any(|&block| {
            let facts = walk.facts;
            let operations = self.module.block(block).operations();
            operations.iter().any(|&inner| {
                let mut objects = facts.accesses(inner).iter();
                objects.any(|(object, _)| is_visible(self.module, facts, object, block))
            })
        });
        if !is_touching && !definition.effects().is_outside() {
            for block in blocks {
                self.block(block, walk.facts, None, &Accesses::default());
            }
            return;
        }
        let n_operands = self.module.op(op).operands().len();
        let passes_last =
            definition.shadowed_operands(n_operands).last() == n_operands.checked_sub(1).as_ref();
        let last = n_operands.checked_sub(1);
        let present = last.filter(|&last| passes_last && self.is_chain_operand(op, last));
        match present {
            Some(index) => self.replace_chain(op, index, chains, walk),
            None => {
                let chain = self.chain_or_entry(chains, op, walk);
                self.insert_operand(op, n_operands, chain);
            }
        }
        let before = match name.as_str() {
            "tfrt.repeat.i32" => accesses.clone(),
            _ => Accesses::everything(),
        };
        for block in blocks {
            if present.is_none() {
                self.module
                    .add_argument(block, Type::chain(), Location::Unknown);
            }
            let entry = self.module.block(block).arguments().last().copied();
            let entry = entry.filter(|&entry| self.module.value_type(entry).is_chain());
            let over = self.block(block, walk.facts, entry, &before);
            match name.as_str() {
                "tfrt_test.benchmark" => self.delay_results(block, over, entry),
                "tfrt.parallel_for.i32" => {
                    let is_there = self.returned(block).len() == 1;
                    self.give(block, over, Some(0), is_there);
                }
                _ => self.give(
                    block,
                    over,
                    None,
                    present.is_some() && self.ends_in_chain(op),
                ),
            }
        }
        let gives_chain = matches!(
            name.as_str(),
            "tfrt_test.benchmark" | "tfrt.parallel_for.i32"
        );
        let has_chain = gives_chain || (present.is_some() && self.ends_in_chain(op));
        if !has_chain {
            let n_results = self.module.op(op).results().len();
            self.module.insert_result(op, n_results, Type::chain());
        }
    }

    /// Threads an operation that calls functions.
    fn call(&mut self, op: OpId, accesses: &Accesses, chains: &[ValueId], walk: &mut Walk<'_>) {
        let callees = self.analysis.callees(self.module, op);
        let first = callees.first().copied().flatten();
        let Some(callee) = first.filter(|&callee| self.plan.is_chained(callee)) else {
            if accesses.is_empty() {
                return;
            }
            if !chains.is_empty() && self.module.op(op).operands().is_empty() {
                let message = "must wait for earlier effects, but takes nothing that could wait";
                let error = self
                    .module
                    .op_error(codes::NOTHING_TO_WAIT_FOR, op, message);
                let help = "give the function a chain as an argument";
                return self.diagnostics.push(error.help(help));
            }
            return self.unknown(op, chains, walk);
        };
        let n_operands = self.module.op(op).operands().len();
        if self.plan.adds_argument(callee) {
            let chain = self.chain_or_entry(chains, op, walk);
            self.insert_operand(op, n_operands, chain);
        } else if let Some(last) = n_operands.checked_sub(1) {
            self.replace_chain(op, last, chains, walk);
        }
        if *self.module.op(op).name() == "tfrt.parallel_call.i32" {
            return;
        }
        if self.plan.adds_result(callee) {
            let n_results = self.module.op(op).results().len();
            let is_loop = *self.module.op(op).name() == "tfrt.while";
            let index = match self.plan.chain_result(callee) {
                Some(index) if !is_loop => index,
                _ => n_results,
            };
            self.module.insert_result(op, index, Type::chain());
        }
    }

    /// Threads an operation without a definition: one of its operands is made to wait.
    fn unknown(&mut self, op: OpId, chains: &[ValueId], walk: &mut Walk<'_>) {
        if chains.is_empty() {
            return;
        }
        let chain = self.combine(chains, op, walk);
        let Some(&operand) = self.module.op(op).operands().first() else {
            return self.insert_operand(op, 0, chain);
        };
        let ty = self.module.value_type(operand).clone();
        let state = OpState::new("tfrt.alias.value")
            .operands([chain, operand])
            .result(ty)
            .location(self.module.op(op).location().clone());
        let alias = self.module.create(state);
        walk.operations.push(alias);
        let late = self.module.op(alias).results()[0];
        self.module.set_operand(op, 0, late);
    }

    /// Returns values that are there when the effects of some operations are over.
    fn chains(&mut self, nodes: &[OpIndex], walk: &mut Walk<'_>) -> Vec<ValueId> {
        let mut chains = Vec::new();
        for &node in nodes {
            let Some(at) = node.checked_sub(1) else {
                chains.extend(walk.entry);
                continue;
            };
            let op = walk.nodes[at];
            let results = self.module.op(op).results();
            let chain = results
                .iter()
                .rev()
                .copied()
                .find(|&result| self.module.value_type(result).is_chain());
            match chain {
                Some(chain) => chains.push(chain),
                None if results.is_empty() => {
                    let error = self.module.op_error(
                        codes::NOTHING_TO_WAIT_FOR,
                        op,
                        "has effects that others must wait for, but gives nothing to wait for",
                    );
                    let help = "give it a chain as a result";
                    self.diagnostics.push(error.help(help));
                }
                None => chains.extend(results),
            }
        }
        let mut seen = HashSet::new();
        chains.retain(|&chain| seen.insert(chain));
        chains
    }

    /// Returns a chain that is there when all of some values are, a new one if need be.
    fn combine(&mut self, values: &[ValueId], place: OpId, walk: &mut Walk<'_>) -> ValueId {
        if let &[only] = values
            && self.module.value_type(only).is_chain()
        {
            return only;
        }
        if let Some(&merge) = walk.merges.get(values) {
            return merge;
        }
        let state = OpState::new("tfrt.merge.chains")
            .operands(values.iter().copied())
            .result(Type::chain())
            .location(self.module.op(place).location().clone());
        let merge = self.module.create(state);
        walk.operations.push(merge);
        let chain = self.module.op(merge).results()[0];
        walk.merges.insert(values.to_vec(), chain);
        chain
    }

    /// Returns a chain as `combine` does; without values the entry's chain, or a new one.
    fn chain_or_entry(&mut self, values: &[ValueId], op: OpId, walk: &mut Walk<'_>) -> ValueId {
        if !values.is_empty() {
            return self.combine(values, op, walk);
        }
        if let Some(entry) = walk.entry.or(walk.new_chain) {
            return entry;
        }
        let state = OpState::new("tfrt.new.chain")
            .result(Type::chain())
            .location(self.module.op(op).location().clone());
        let new = self.module.create(state);
        walk.operations.push(new);
        let chain = self.module.op(new).results()[0];
        walk.new_chain = Some(chain);
        chain
    }

    fn is_chain_operand(&self, op: OpId, index: usize) -> bool {
        let operand = self.module.op(op).operands().get(index);
        operand.is_some_and(|&operand| self.module.value_type(operand).is_chain())
    }

    fn has_chain_result(&self, op: OpId) -> bool {
        let mut results = self.module.op(op).results().iter();
        results.any(|&result| self.module.value_type(result).is_chain())
    }

    fn ends_in_chain(&self, op: OpId) -> bool {
        let last = self.module.op(op).results().last();
        last.is_some_and(|&last| self.module.value_type(last).is_chain())
    }

    /// Makes a chain operand wait for more; a `tfrt.new.chain` is replaced.
    fn replace_chain(&mut self, op: OpId, index: usize, chains: &[ValueId], walk: &mut Walk<'_>) {
        let old = self.module.op(op).operands()[index];
        let is_new = self
            .module
            .defining_op(old)
            .is_some_and(|op| *self.module.op(op).name() == "tfrt.new.chain");
        if chains.is_empty() {
            return;
        }
        let mut all = chains.to_vec();
        if !is_new && !all.contains(&old) {
            all.insert(0, old);
        }
        let chain = self.combine(&all, op, walk);
        self.module.set_operand(op, index, chain);
    }

    fn insert_operand(&mut self, op: OpId, index: usize, value: ValueId) {
        let mut operands = self.module.op(op).operands().to_vec();
        operands.insert(index.min(operands.len()), value);
        self.module.set_operands(op, &operands);
    }

    fn returned(&self, block: BlockId) -> Vec<ValueId> {
        let end = self.module.block(block).last();
        end.map_or_else(Vec::new, |end| self.module.op(end).operands().to_vec())
    }

    /// Makes a block return a chain, at a position or last; `is_there` if it returns one already, which is merged.
    fn give(&mut self, block: BlockId, over: Option<ValueId>, at: Option<usize>, is_there: bool) {
        let Some(end) = self.module.block(block).last() else {
            return;
        };
        let mut returned = self.returned(block);
        let last = returned.len().saturating_sub(usize::from(is_there));
        let index = at.unwrap_or(last).min(returned.len());
        let place = self.module.op(end).location().clone();
        let mut operations = self.module.block(block).operations().to_vec();
        let at_end = operations.len() - 1;
        let mut add = |module: &mut Module, state: OpState| {
            let op = module.create(state.result(Type::chain()).location(place.clone()));
            operations.insert(at_end, op);
            module.op(op).results()[0]
        };
        match (over, is_there) {
            (None, true) => return,
            (Some(over), true) => {
                let old = returned[index];
                if old != over {
                    let merge = OpState::new("tfrt.merge.chains").operands([old, over]);
                    returned[index] = add(self.module, merge);
                }
            }
            (Some(over), false) => returned.insert(index, over),
            (None, false) => {
                let new = add(self.module, OpState::new("tfrt.new.chain"));
                returned.insert(index, new);
            }
        }
        self.module.set_operations(block, operations);
        self.module.set_operands(end, &returned);
    }

    /// Makes the results of a block wait for a chain.
    fn delay_results(&mut self, block: BlockId, over: Option<ValueId>, entry: Option<ValueId>) {
        let (Some(chain), Some(end)) = (
            over.filter(|_| over != entry),
            self.module.block(block).last(),
        ) else {
            return;
        };
        let mut operations = self.module.block(block).operations().to_vec();
        let mut returned = self.returned(block);
        for value in &mut returned {
            let state = OpState::new("tfrt.alias.value")
                .operands([chain, *value])
                .result(self.module.value_type(*value).clone())
                .location(self.module.op(end).location().clone());
            let alias = self.module.create(state);
            operations.insert(operations.len() - 1, alias);
            *value = self.module.op(alias).results()[0];
        }
        self.module.set_operations(block, operations);
        self.module.set_operands(end, &returned);
    }

    /// Updates a function's type to its arguments and results.
    fn set_signature(&mut self, function: OpId, block: BlockId) {
        let types = |values: &[ValueId]| -> Vec<Type> {
            let types = values.iter().map(|&value| self.module.value_type(value));
            types.cloned().collect()
        };
        let inputs = types(self.module.block(block).arguments());
        let results = types(&self.returned(block));
        let added = [
            ("arg_attrs", inputs.len(), inputs.len()),
            (
                "res_attrs",
                results.len(),
                self.plan.chain_result(function).unwrap_or(results.len()),
            ),
        ];
        let ty = Type::function(inputs, results);
        self.module
            .set_attribute(function, "function_type", Attribute::Type(ty));
        for (name, n, index) in added {
            let list = self.module.op(function).attribute(name);
            let Some(list) = list.and_then(Attribute::as_array).map(<[_]>::to_vec) else {
                continue;
            };
            let mut list = list;
            while list.len() < n {
                let index = index.min(list.len());
                list.insert(index, Attribute::Dictionary(Dictionary::default()));
            }
            self.module
                .set_attribute(function, name, Attribute::array(list));
        }
    }
}
