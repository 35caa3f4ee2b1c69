//! Plans the chains of functions: as an argument, as a result, or not at all.
//!
//! | Function | Chain as last argument | Chain as result |
//! | --- | --- | --- |
//! | without effects that its callers can see | no | no |
//! | with such effects, called here | yes | yes |
//! | with such effects, not called here | no | yes |
//! | native, synchronous, or named by an operation that nobody defined | no | no |
//!
//! Functions that one operation chooses from are alike in this. The chain is the last
//! result, but in front of the condition where a function is the body of a `tfrt.while`.

use std::collections::{HashMap, HashSet};

use tfrt_ir::{Attribute, Module, OpId};

use super::analysis::{Analysis, body};
use crate::passes::scope;

/// The functions that get chains.
#[derive(Default)]
pub(super) struct ChainPlan {
    /// Functions that take and return a chain.
    chained: HashSet<OpId>,
    /// Functions that return a chain.
    giving: HashSet<OpId>,
    loop_bodies: HashSet<OpId>,
    /// Functions whose last argument is a chain already.
    has_argument: HashSet<OpId>,
    /// Functions that return a chain at its place already.
    has_result: HashSet<OpId>,
    n_results: HashMap<OpId, usize>,
}

impl ChainPlan {
    pub fn new(module: &Module, analysis: &Analysis) -> ChainPlan {
        let all = scope::functions(module);
        let mut plan = ChainPlan::default();
        let mut groups: Vec<Vec<OpId>> = Vec::new();
        let mut called = HashSet::new();
        let mut fixed = named_by_others(module, analysis);
        for &function in &all {
            let is_sync = module.op(function).attribute("tfrt.sync").is_some();
            if is_sync || body(module, function).is_none() {
                fixed.insert(function);
            }
            module.walk_pre_order(function, &mut |op| {
                let callees = analysis.callees(module, op);
                let group: Vec<OpId> = callees.iter().copied().flatten().collect();
                called.extend(group.iter().copied());
                if *module.op(op).name() == "tfrt.while" {
                    plan.loop_bodies.extend(group.iter().copied());
                }
                if group.len() < callees.len() || is_sync {
                    fixed.extend(group.iter().copied());
                }
                groups.push(group);
            });
        }
        let has_effects = |function: &OpId| {
            let summary = analysis.summary(*function);
            summary.is_some_and(|summary| !summary.accesses.is_empty() || summary.touches_results)
        };
        let effectful = all.iter().copied().filter(has_effects);
        plan.giving = effectful
            .filter(|function| !fixed.contains(function))
            .collect();
        plan.chained = plan.giving.intersection(&called).copied().collect();
        for set in [&mut plan.chained, &mut plan.loop_bodies, &mut fixed] {
            spread(set, &groups);
        }
        plan.giving.extend(plan.chained.iter().copied());
        plan.chained.retain(|function| !fixed.contains(function));
        plan.giving.retain(|function| !fixed.contains(function));
        plan.look(module, &all);
        plan
    }

    /// Notes the chains that are there already.
    fn look(&mut self, module: &Module, all: &[OpId]) {
        for &function in all {
            let Some(block) = body(module, function) else {
                continue;
            };
            let is_chain = |value: &tfrt_ir::ValueId| module.value_type(*value).is_chain();
            if module.block(block).arguments().last().is_some_and(is_chain) {
                self.has_argument.insert(function);
            }
            let end = module.block(block).last();
            let returned = end.map_or(&[][..], |end| module.op(end).operands());
            let behind = usize::from(self.loop_bodies.contains(&function));
            let before = &returned[..returned.len().saturating_sub(behind)];
            if before.last().is_some_and(is_chain) {
                self.has_result.insert(function);
            }
            self.n_results.insert(function, returned.len());
        }
    }

    /// Returns whether callers pass and receive a chain.
    pub fn is_chained(&self, function: OpId) -> bool {
        self.chained.contains(&function)
    }

    pub fn is_loop_body(&self, function: OpId) -> bool {
        self.loop_bodies.contains(&function)
    }

    pub fn adds_argument(&self, function: OpId) -> bool {
        self.is_chained(function) && !self.has_argument.contains(&function)
    }

    pub fn adds_result(&self, function: OpId) -> bool {
        self.giving.contains(&function) && !self.has_result.contains(&function)
    }

    /// Returns the position of the chain among the results, once it is there.
    pub fn chain_result(&self, function: OpId) -> Option<usize> {
        if !self.giving.contains(&function) {
            return None;
        }
        let n_results = self.n_results.get(&function).copied()?;
        let behind = usize::from(self.loop_bodies.contains(&function));
        let is_there = usize::from(self.has_result.contains(&function));
        Some(n_results.saturating_sub(behind + is_there))
    }
}

/// Adds to a set the functions of every group that has a function in it.
fn spread(set: &mut HashSet<OpId>, groups: &[Vec<OpId>]) {
    let mut groups_of: HashMap<OpId, Vec<usize>> = HashMap::new();
    for (index, group) in groups
        .iter()
        .enumerate()
        .filter(|(_, group)| group.len() > 1)
    {
        for &function in group {
            groups_of.entry(function).or_default().push(index);
        }
    }
    let mut is_done = vec![false; groups.len()];
    let mut open: Vec<OpId> = set.iter().copied().collect();
    while let Some(function) = open.pop() {
        for &index in groups_of.get(&function).into_iter().flatten() {
            if !std::mem::replace(&mut is_done[index], true) {
                let new = groups[index].iter().copied();
                open.extend(new.filter(|&function| set.insert(function)));
            }
        }
    }
}

/// Returns the functions that are named by other operations than those that are known to call.
fn named_by_others(module: &Module, analysis: &Analysis) -> HashSet<OpId> {
    let functions: HashMap<&str, OpId> = module.symbol_table(module.top());
    let mut named = HashSet::new();
    module.walk_pre_order(module.top(), &mut |op| {
        if !analysis.callees(module, op).is_empty() {
            return;
        }
        let attributes = module.op(op).attributes().iter();
        let mut open: Vec<&Attribute> = attributes.map(|(_, value)| value).collect();
        while let Some(attribute) = open.pop() {
            match attribute {
                Attribute::Symbol(symbol) => {
                    named.extend(functions.get(symbol.root.as_str()));
                }
                Attribute::Array(elements) => open.extend(elements.iter()),
                Attribute::Dictionary(entries) => {
                    open.extend(entries.entries().iter().map(|(_, value)| value));
                }
                _ => {}
            }
        }
    });
    named
}
