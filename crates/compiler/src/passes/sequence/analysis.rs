//! Finds the accesses of each operation of a module, from the operation tables upwards.
//!
//! Values of reference types are followed to the objects that they may refer to.
//! Regions are seen through: their arguments refer to what the operands refer to.
//! Functions are summed up in terms of their arguments; summaries grow until none
//! changes, so recursion needs no special care.

use std::collections::{HashMap, VecDeque};

use tfrt_ir::{Attribute, BlockId, Module, Name, OpId, ValueId, dialect};

use super::access::{Access, Accesses, Object, Objects, is_reference};
use crate::passes::scope;

/// The accesses of a module's operations and functions.
#[derive(Default)]
pub(super) struct Analysis {
    functions: HashMap<Name, OpId>,
    pub facts: HashMap<OpId, FunctionEffects>,
    summaries: HashMap<OpId, Summary>,
}

/// The accesses inside a function.
#[derive(Clone, Debug, Default)]
pub(super) struct FunctionEffects {
    objects: HashMap<ValueId, Objects>,
    accesses: HashMap<OpId, Accesses>,
    /// For each argument the first one that may refer to the same object.
    pub classes: Vec<u32>,
    changed: bool,
}

/// The accesses of a function, as its callers see them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Summary {
    /// The accesses, in terms of arguments.
    pub accesses: Accesses,
    results: Vec<Objects>,
    /// Whether the function accesses new buffers that it returns.
    pub touches_results: bool,
}

/// The number of visits of a function after which loops are taken to mix all buffers.
const MAX_VISITS: usize = 64;

impl Analysis {
    pub fn new(module: &Module) -> Analysis {
        let mut analysis = Analysis::default();
        let all = scope::functions(module);
        let mut callers: HashMap<OpId, Vec<OpId>> = HashMap::new();
        for &function in &all {
            if let Some(name) = module.symbol_name(function) {
                analysis.functions.entry(name.into()).or_insert(function);
            }
        }
        for &function in &all {
            module.walk_pre_order(function, &mut |op| {
                for callee in analysis.callees(module, op).into_iter().flatten() {
                    callers.entry(callee).or_default().push(function);
                }
            });
        }
        let mut open: VecDeque<OpId> = all.iter().copied().collect();
        while let Some(function) = open.pop_front() {
            let summary = analysis.visit_function(module, function);
            let old = analysis.summaries.insert(function, summary);
            if old.as_ref() != analysis.summaries.get(&function) {
                open.extend(callers.get(&function).into_iter().flatten());
            }
        }
        analysis.find_classes(module, &all);
        analysis
    }

    pub fn summary(&self, function: OpId) -> Option<&Summary> {
        self.summaries.get(&function)
    }

    /// Returns the functions that an operation may call, `None` for one that does not exist.
    pub fn callees(&self, module: &Module, op: OpId) -> Vec<Option<OpId>> {
        let data = module.op(op);
        let names: &[&str] = match data.name().as_str() {
            "tfrt.call" | "tfrt.parallel_call.i32" => &["callee"],
            "tfrt.cond" => &["a_true_fn", "b_false_fn"],
            "tfrt.case" => &["branches"],
            "tfrt.while" => &["body_fn"],
            "tfrt.once" => &["function"],
            _ => return Vec::new(),
        };
        let find = |attribute: &Attribute| {
            let name = attribute.as_flat_symbol();
            name.and_then(|name| self.functions.get(name)).copied()
        };
        let mut callees = Vec::new();
        for name in names {
            match data.attribute(name) {
                Some(Attribute::Array(list)) => callees.extend(list.iter().map(find)),
                Some(attribute) => callees.push(find(attribute)),
                None => callees.push(None),
            }
        }
        callees
    }

    /// Returns the operands that an operation passes to its callees.
    pub fn passed(module: &Module, op: OpId) -> Vec<ValueId> {
        let data = module.op(op);
        let operands = data.operands();
        let skip = |n: usize| operands.get(n..).unwrap_or_default().to_vec();
        match data.name().as_str() {
            "tfrt.cond" | "tfrt.case" | "tfrt.while" => skip(1),
            "tfrt.parallel_call.i32" => {
                let mut passed = skip(0);
                if passed.len() > 2 {
                    passed.remove(2);
                }
                passed
            }
            _ => skip(0),
        }
    }

    fn visit_function(&mut self, module: &Module, function: OpId) -> Summary {
        let Some(block) = body(module, function) else {
            return Summary {
                accesses: Accesses::everything(),
                ..Summary::default()
            };
        };
        let mut facts = FunctionEffects::default();
        for (index, &argument) in (0..).zip(module.block(block).arguments()) {
            let object = Objects::one(Object::Argument(index));
            facts.objects.insert(argument, object);
        }
        for visit in 0.. {
            facts.changed = false;
            self.visit_block(module, block, &mut facts, visit >= MAX_VISITS);
            if !facts.changed {
                break;
            }
        }
        let mut summary = Summary::default();
        if let Some(end) = module.block(block).last() {
            let returned = module.op(end).operands().iter();
            summary.results = returned
                .map(|&value| facts.objects(module, value))
                .collect();
        }
        for &op in module.block(block).operations() {
            for (object, access) in facts.accesses(op).iter() {
                match object {
                    Object::Local(_) => {
                        summary.touches_results |=
                            summary.results.iter().any(|result| result.contains(object));
                    }
                    _ => {
                        summary.accesses.add(object, access);
                    }
                }
            }
        }
        self.facts.insert(function, facts);
        summary
    }

    /// Visits the operations of a block. Recursion is bounded by the parser's limit on nesting.
    fn visit_block(
        &self,
        module: &Module,
        block: BlockId,
        facts: &mut FunctionEffects,
        give_up: bool,
    ) {
        for &op in module.block(block).operations() {
            let data = module.op(op);
            if *data.name() == "builtin.module" {
                continue;
            }
            let definition = dialect::describe(data.name());
            let effects = definition.map(|definition| definition.effects());
            match effects.filter(|effects| !effects.is_unknown()) {
                None => self.visit_unknown(module, op, facts, give_up),
                Some(effects) if effects.is_nested() => {
                    if data.regions().is_empty() {
                        self.visit_call(module, op, facts);
                    } else {
                        self.visit_regions(module, op, facts, give_up);
                    }
                }
                Some(effects) => {
                    let mut accesses = Accesses::default();
                    let stated = [
                        (effects.reads(), Access::Read),
                        (effects.writes(), Access::Write),
                    ];
                    for (positions, access) in stated {
                        let touched = positions.iter().filter_map(|&at| data.operands().get(at));
                        for &operand in touched {
                            accesses.add_all(&facts.objects(module, operand), access);
                        }
                    }
                    if effects.is_outside() {
                        accesses.add(Object::World, Access::Write);
                    }
                    let mut aliases = Objects::default();
                    if !effects.allocates() {
                        for &operand in data.operands() {
                            aliases.add(&facts.objects(module, operand));
                        }
                    }
                    for &result in data.results() {
                        let is_new = aliases.iter().next().is_none();
                        let objects = match is_new {
                            true => Objects::one(Object::Local(result)),
                            false => aliases.clone(),
                        };
                        facts.refer(module, result, &objects);
                    }
                    facts.touch(op, accesses);
                }
            }
        }
    }

    /// Visits an operation without a definition. If it has a chain, its order is the program's affair.
    fn visit_unknown(&self, module: &Module, op: OpId, facts: &mut FunctionEffects, give_up: bool) {
        let data = module.op(op);
        let any = Objects::one(Object::Any);
        for block in scope::region_blocks(module, op) {
            for &argument in module.block(block).arguments() {
                facts.refer(module, argument, &any);
            }
            self.visit_block(module, block, facts, give_up);
        }
        for &result in data.results() {
            facts.refer(module, result, &any);
        }
        let mut operands = data.operands().iter();
        let is_chained = operands.any(|&operand| module.value_type(operand).is_chain());
        if !is_chained {
            facts.touch(op, Accesses::everything());
        }
    }

    fn visit_regions(&self, module: &Module, op: OpId, facts: &mut FunctionEffects, give_up: bool) {
        let data = module.op(op);
        let operands = data.operands();
        let Some(definition) = data.definition() else {
            return;
        };
        let is_loop = *data.name() == "tfrt.repeat.i32";
        let shadowed = definition.shadowed_operands(operands.len());
        let mut accesses = Accesses::default();
        if definition.effects().is_outside() {
            accesses.add(Object::World, Access::Write);
        }
        for block in scope::region_blocks(module, op) {
            let ends = module.block(block).last();
            let returned = ends.map_or(&[][..], |end| module.op(end).operands());
            for (index, &argument) in module.block(block).arguments().iter().enumerate() {
                let operand = shadowed.get(index).and_then(|&at| operands.get(at));
                let mut objects = operand.map_or_else(
                    || Objects::one(Object::Any),
                    |&operand| facts.objects(module, operand),
                );
                if give_up {
                    objects = Objects::one(Object::Any);
                }
                facts.refer(module, argument, &objects);
                if let Some(&next) = returned.get(index).filter(|_| is_loop) {
                    let next = facts.objects(module, next);
                    facts.refer(module, argument, &next);
                }
            }
            self.visit_block(module, block, facts, give_up);
            for (index, &result) in data.results().iter().enumerate() {
                if let Some(&value) = returned.get(index) {
                    let objects = facts.objects(module, value);
                    facts.refer(module, result, &objects);
                }
                if let Some(&operand) = operands.get(index + 1).filter(|_| is_loop) {
                    let objects = facts.objects(module, operand);
                    facts.refer(module, result, &objects);
                }
            }
            for &inner in module.block(block).operations() {
                for (object, access) in facts.accesses(inner).iter() {
                    if is_visible(module, facts, object, block) {
                        accesses.add(object, access);
                    }
                }
            }
        }
        facts.touch(op, accesses);
    }

    fn visit_call(&self, module: &Module, op: OpId, facts: &mut FunctionEffects) {
        let passed = Analysis::passed(module, op);
        let results = module.op(op).results().to_vec();
        let is_loop = *module.op(op).name() == "tfrt.while";
        let mut accesses = Accesses::default();
        for callee in self.callees(module, op) {
            let Some(callee) = callee else {
                accesses = Accesses::everything();
                continue;
            };
            // Not visited yet: it will be, and so will this function again.
            let Some(summary) = self.summaries.get(&callee) else {
                continue;
            };
            let map =
                |facts: &FunctionEffects, object: Object, result: Option<ValueId>| match object {
                    Object::Argument(index) => match passed.get(index as usize) {
                        Some(&operand) => facts.objects(module, operand),
                        None => Objects::one(Object::Any),
                    },
                    Object::Local(_) => result.map_or_else(Objects::default, |result| {
                        Objects::one(Object::Local(result))
                    }),
                    other => Objects::one(other),
                };
            for (object, access) in summary.accesses.iter() {
                accesses.add_all(&map(facts, object, None), access);
            }
            for (index, &result) in results.iter().enumerate() {
                let Some(objects) = summary.results.get(index) else {
                    facts.refer(module, result, &Objects::one(Object::Any));
                    continue;
                };
                for object in objects.iter() {
                    facts.refer(module, result, &map(facts, object, Some(result)));
                    if matches!(object, Object::Local(_)) && summary.touches_results {
                        accesses.add(Object::Local(result), Access::Write);
                    }
                }
                if is_loop {
                    // What one turn returns the next one takes.
                    if let Some(&operand) = passed.get(index) {
                        let objects = facts.objects(module, operand);
                        facts.refer(module, result, &objects);
                    }
                    let objects = facts.objects(module, result);
                    if accesses.iter().any(|(object, _)| object != Object::World) {
                        accesses.add_all(&objects, Access::Write);
                    }
                }
            }
        }
        facts.touch(op, accesses);
    }

    /// Finds the arguments of functions that may refer to the same object, by all calls in the module; for functions
    /// that others may call, all arguments of one type.
    fn find_classes(&mut self, module: &Module, all: &[OpId]) {
        for &function in all {
            let Some(block) = body(module, function) else {
                continue;
            };
            let visibility = module.op(function).attribute("sym_visibility");
            let is_private = visibility.and_then(Attribute::as_str) == Some("private");
            let arguments = module.block(block).arguments();
            let mut classes: Vec<u32> = (0..).take(arguments.len()).collect();
            if !is_private {
                let mut first = HashMap::new();
                for (index, &argument) in (0..).zip(arguments) {
                    let class = *first.entry(module.value_type(argument)).or_insert(index);
                    classes[index as usize] = class;
                }
            }
            if let Some(facts) = self.facts.get_mut(&function) {
                facts.classes = classes;
            }
        }
        let mut sites: HashMap<OpId, Vec<(OpId, OpId)>> = HashMap::new();
        for &function in all {
            let sites = sites.entry(function).or_default();
            module.walk_pre_order(function, &mut |op| {
                let callees = self.callees(module, op).into_iter().flatten();
                sites.extend(callees.map(|callee| (op, callee)));
            });
        }
        let mut open: VecDeque<OpId> = all.iter().copied().collect();
        while let Some(caller) = open.pop_front() {
            for &(op, callee) in sites.get(&caller).into_iter().flatten() {
                let same = self.same_operands(module, caller, op);
                let Some(callee_facts) = self.facts.get_mut(&callee) else {
                    continue;
                };
                let mut changed = false;
                for (a, b) in same {
                    changed |= callee_facts.unite(a, b);
                }
                if changed {
                    open.push_back(callee);
                }
            }
        }
    }

    /// Returns pairs of operands of a call that may refer to the same object.
    fn same_operands(&self, module: &Module, caller: OpId, op: OpId) -> Vec<(u32, u32)> {
        let Some(facts) = self.facts.get(&caller) else {
            return Vec::new();
        };
        let passed = Analysis::passed(module, op);
        let mut owner: HashMap<Object, u32> = HashMap::new();
        let mut same = Vec::new();
        let mut references = Vec::new();
        // From turn to turn of a loop buffers may change places.
        let mut is_any = *module.op(op).name() == "tfrt.while";
        for (index, &operand) in (0_u32..).zip(&passed) {
            if !is_reference(module.value_type(operand)) {
                continue;
            }
            references.push(index);
            for object in facts.objects(module, operand).iter() {
                is_any |= object == Object::Any;
                let first = *owner.entry(facts.class(object)).or_insert(index);
                same.push((first, index));
            }
        }
        if is_any {
            same.extend(references.windows(2).map(|pair| (pair[0], pair[1])));
        }
        same
    }
}

impl FunctionEffects {
    pub fn objects(&self, module: &Module, value: ValueId) -> Objects {
        match is_reference(module.value_type(value)) {
            true => self.objects.get(&value).cloned().unwrap_or_default(),
            false => Objects::default(),
        }
    }

    pub fn accesses(&self, op: OpId) -> &Accesses {
        static NONE: std::sync::LazyLock<Accesses> = std::sync::LazyLock::new(Accesses::default);
        self.accesses.get(&op).unwrap_or(&NONE)
    }

    /// Returns the object that stands for all that may be the same.
    pub fn class(&self, object: Object) -> Object {
        match object {
            Object::Argument(index) => {
                let class = self.classes.get(index as usize);
                Object::Argument(class.copied().unwrap_or(index))
            }
            other => other,
        }
    }

    fn unite(&mut self, a: u32, b: u32) -> bool {
        let of = |classes: &[u32], at: u32| classes.get(at as usize).copied();
        let (Some(a), Some(b)) = (of(&self.classes, a), of(&self.classes, b)) else {
            return false;
        };
        let (low, high) = (a.min(b), a.max(b));
        for class in self.classes.iter_mut().filter(|class| **class == high) {
            *class = low;
        }
        low != high
    }

    fn refer(&mut self, module: &Module, value: ValueId, objects: &Objects) {
        if is_reference(module.value_type(value)) {
            self.changed |= self.objects.entry(value).or_default().add(objects);
        }
    }

    fn touch(&mut self, op: OpId, accesses: Accesses) {
        let old = self.accesses.entry(op).or_default();
        if *old != accesses {
            self.changed = true;
            *old = accesses;
        }
    }
}

/// Returns whether an object may be known outside of a block of a region.
pub(super) fn is_visible(
    module: &Module,
    facts: &FunctionEffects,
    object: Object,
    block: BlockId,
) -> bool {
    let Object::Local(value) = object else {
        return true;
    };
    let mut at = module.value_block(value);
    while let Some(inner) = at {
        if inner == block {
            let end = module.block(block).last();
            let returned = end.map_or(&[][..], |end| module.op(end).operands());
            let mut returned = returned.iter();
            return returned.any(|&value| facts.objects(module, value).contains(object));
        }
        let parent = module.block_parent_op(inner);
        at = parent.and_then(|op| module.op(op).parent());
    }
    true
}

/// Returns the body of a function, if it can be analyzed.
pub(super) fn body(module: &Module, function: OpId) -> Option<BlockId> {
    let data = module.op(function);
    if data.attribute("tfrt.native").is_some() {
        return None;
    }
    let &[block] = module.region(*data.regions().first()?).blocks() else {
        return None;
    };
    let end = module.block(block).last()?;
    (*module.op(end).name() == "tfrt.return").then_some(block)
}
