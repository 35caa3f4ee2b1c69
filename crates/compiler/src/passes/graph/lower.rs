//! `graph-lower`: makes one kernel of each operation of a graph.
//!
//! Constants move to a function of their own, regions become private functions that get what they use
//! from outside as further arguments. Nothing is optimised here; what other passes have made of a graph
//! before, operations with names in `cpu.`, stays as it is.

pub(in crate::passes) mod constant_program;

use std::collections::{HashMap, HashSet};

use tfrt_ir::{
    Attribute, BlockId, Diagnostics, Location, Module, Name, OpId, OpState, RegionId, Type, ValueId,
};

use tfrt_ops::{Table, names};

use super::calls::{self, CALL, Calls};
use super::{
    CONSTANT, EXTERNAL, GRAPH, NO_VALUE, PREPARE, attrs, constant, graphs, is_library,
    is_terminator, model, place, rewrite,
};
use crate::codes;
use crate::graph::check;
use crate::legalize::Context;
use crate::model::PROPERTIES;
use crate::passes::legalize;
use crate::pipeline::{Pass, PassFn, Property};

pub(crate) const PASS: Pass = Pass {
    name: "graph-lower",
    summary: "Makes a program of kernels of a graph",
    needs: &[],
    gives: &[],
    breaks: &[Property::Streams],
    run: PassFn::WithContext(run),
};

fn run(module: &mut Module, context: &Context<'_>, diagnostics: &mut Diagnostics) {
    let all = graphs(module);
    if all.is_empty() {
        return;
    }
    let mut made = Vec::new();
    let mut gone = HashSet::new();
    for (_, block) in &all {
        hoist_constants(module, *block);
    }
    let calls = calls::lift(module, &context.dialects.rows, &all);
    for (function, block) in all {
        let is_called = !calls.of(function).is_empty();
        let mut lowering = Lowering {
            name: module.symbol_name(function).unwrap_or("main").to_owned(),
            module,
            diagnostics,
            rows: context.dialects.rows.clone(),
            calls: &calls,
            made: Vec::new(),
            n_control: 0,
            load_time: HashSet::new(),
            has_kernel: &|row| context.evaluator.has_kernel(row),
        };
        lowering.graph(function, block, is_called);
        made.append(&mut lowering.made);
        gone.insert(function);
    }
    if diagnostics.has_errors() {
        return;
    }
    let body = module.body();
    let operations = module.block(body).operations().iter().copied();
    let kept = operations.filter(|op| !gone.contains(op)).chain(made);
    let kept = kept.collect();
    module.set_operations(body, kept);
    for function in gone {
        erase(module, function);
    }
    let top = module.top();
    let stated = module.op(top).attributes().iter();
    let stated: Vec<Name> = stated.map(|(name, _)| name.clone()).collect();
    let is_ours = |name: &&Name| name.starts_with("onnx.") || name.as_str() == PROPERTIES;
    for name in stated.iter().filter(is_ours) {
        module.remove_attribute(top, name);
    }
}

/// Erases a function that is in no block any longer, users before their operands.
fn erase(module: &mut Module, function: OpId) {
    let mut all = Vec::new();
    module.walk_pre_order(function, &mut |op| all.push(op));
    for &op in all.iter().rev() {
        module.set_operands(op, &[]);
    }
    module.erase(function);
}

/// Moves constants in regions to the start of the function, where all regions see them.
pub(super) fn hoist_constants(module: &mut Module, block: BlockId) {
    let mut found = Vec::new();
    let mut blocks = HashSet::new();
    for &op in module.block(block).operations() {
        for child in module.children(op) {
            module.walk_pre_order(child, &mut |inner| {
                if [CONSTANT, EXTERNAL].contains(&module.op(inner).name().as_str()) {
                    found.push(inner);
                    blocks.extend(module.op(inner).parent());
                }
            });
        }
    }
    if found.is_empty() {
        return;
    }
    let is_found: HashSet<OpId> = found.iter().copied().collect();
    for inner in blocks {
        let operations = module.block(inner).operations().iter().copied();
        let kept = operations.filter(|op| !is_found.contains(op)).collect();
        module.set_operations(inner, kept);
    }
    found.extend_from_slice(module.block(block).operations());
    module.set_operations(block, found);
}

/// Returns the operations that depend on constants alone and are deterministic: they run once, when a model is
/// opened.
pub(super) fn load_time_ops(module: &Module, rows: &Table, operations: &[OpId]) -> HashSet<OpId> {
    let mut known = HashSet::new();
    for &op in operations {
        let data = module.op(op);
        // What follows from a constant that stays in a file is made when it is asked for: it may be as large. On a device
        // there is no other way to keep it.
        let is_copy = *data.name() == place::COPY;
        let is_known = |value: &ValueId| {
            let maker = module.defining_op(*value);
            maker.is_some_and(|maker| match module.op(maker).name().as_str() {
                NO_VALUE => true,
                EXTERNAL if !is_copy => false,
                _ => known.contains(&maker),
            })
        };
        let is_made = [CONSTANT, EXTERNAL, PREPARE].contains(&data.name().as_str());
        let follows = !data.operands().is_empty()
            && !is_terminator(module, op)
            && rewrite::is_deterministic(module, rows, op)
            && data.operands().iter().all(is_known);
        if is_made || follows {
            known.insert(op);
        }
    }
    // What is left out is left out there, too.
    let is_used = |op: &OpId| {
        let results = module.op(*op).results().iter();
        let mut users = results.flat_map(|result| module.users(*result));
        users.any(|user| known.contains(&user.op))
    };
    let left_out = operations.iter().copied();
    let left_out = left_out.filter(|op| *module.op(*op).name() == NO_VALUE && is_used(op));
    let left_out: Vec<OpId> = left_out.collect();
    known.extend(left_out);
    known
}

/// The values of the program by those of the graph.
type Values = HashMap<ValueId, ValueId>;

/// Attributes and the functions that they name.
type Functions = Vec<(&'static str, String)>;

/// The state of lowering a function.
struct Lowering<'m, 'd> {
    module: &'m mut Module,
    diagnostics: &'d mut Diagnostics,
    /// The rows. Operations that are rows of a format become kernels of the same name.
    rows: Table,
    /// The calls between functions of the module.
    calls: &'d Calls,
    /// The name of the function that is lowered.
    name: String,
    /// The functions that were made so far.
    made: Vec<OpId>,
    /// The number of operations with regions so far.
    n_control: usize,
    /// The operations of the graph that run when a model is opened.
    load_time: HashSet<OpId>,
    /// Returns whether a kernel exists for a row.
    has_kernel: &'d dyn Fn(&str) -> bool,
}

impl Lowering<'_, '_> {
    /// Lowers a model, or a function that is called, which becomes private.
    fn graph(&mut self, function: OpId, block: BlockId, is_called: bool) {
        for op in calls::calls_in(self.module, function) {
            if let Err(message) = self.calls.check(self.module, op) {
                self.error(op, message);
            }
        }
        let attributes = match is_called {
            true => Vec::new(),
            false => model::attributes(self.module, function),
        };
        let location = self.module.op(function).location().clone();
        let (region, body) = self.region();
        let mut values = Values::new();
        for argument in self.module.block(block).arguments().to_vec() {
            self.argument(body, argument, &mut values);
        }
        self.constants(block, body, &mut values);
        let name = self.name.clone();
        let at = self.made.len();
        self.block(block, body, &mut values);
        let op = self.function(&name, region, body, location, is_called);
        for (name, value) in attributes {
            self.module.set_attribute(op, name, value);
        }
        self.initial(function);
        // The functions of its regions come last.
        self.made.insert(at, op);
    }

    /// Makes the function that gives the initial state of a model that states any.
    fn initial(&mut self, function: OpId) {
        let stated = self.module.op(function).attribute("model.initial");
        let Some(stated) = stated.and_then(Attribute::as_array).map(<[_]>::to_vec) else {
            return;
        };
        let (region, block) = self.region();
        let mut values = Vec::with_capacity(stated.len());
        for value in stated {
            let state = OpState::new(CONSTANT).attribute("value", value);
            let written = self.module.create(state.result(Type::dialect(TENSOR)));
            let kernel = self.known(written, &Values::new());
            self.module.erase(written);
            if let Some(kernel) = kernel {
                let made = self.module.create(kernel);
                self.module.append(block, made);
                values.extend_from_slice(self.module.op(made).results());
            }
        }
        let last = self
            .module
            .create(OpState::new("tfrt.return").operands(values));
        self.module.append(block, last);
        let name = tfrt_bef::Model::initial_of(&self.name);
        let op = self.function(&name, region, block, Location::Unknown, true);
        self.made.push(op);
    }

    fn region(&mut self) -> (RegionId, BlockId) {
        let region = self.module.create_region();
        (region, self.module.create_block(region))
    }

    fn argument(&mut self, body: BlockId, old: ValueId, values: &mut Values) {
        let ty = lowered(self.module.value_type(old));
        let new = self.module.add_argument(body, ty, Location::Unknown);
        values.insert(old, new);
    }

    /// Makes the function that calculates constants, and operations on them alone. Values that others use become
    /// arguments.
    fn constants(&mut self, block: BlockId, body: BlockId, values: &mut Values) {
        let operations = self.module.block(block).operations().to_vec();
        let known = load_time_ops(self.module, &self.rows, &operations);
        if known.is_empty() {
            return;
        }
        let (region, inner) = self.region();
        let (mut own, mut returned) = (Values::new(), Vec::new());
        for op in self.load_order(&operations, &known) {
            let Some(state) = self.known(op, &own) else {
                continue;
            };
            let location = self.module.op(op).location().clone();
            let made = self.module.create(state.location(location));
            self.module.append(inner, made);
            let olds = self.module.op(op).results().to_vec();
            let news = self.module.op(made).results().to_vec();
            for (old, new) in olds.into_iter().zip(news) {
                own.insert(old, new);
                let is_outside = self.module.users(old).any(|user| !known.contains(&user.op));
                if is_outside {
                    returned.push(new);
                    self.argument(body, old, values);
                }
            }
        }
        let state = OpState::new("tfrt.return").operands(returned);
        let last = self.module.create(state);
        self.module.append(inner, last);
        let name = tfrt_bef::Model::constants_of(&self.name);
        let op = self.function(&name, region, inner, Location::Unknown, true);
        self.made.push(op);
        self.load_time = known;
    }

    /// Returns the operations that run when a model is opened, in order. Constants that only these take come right
    /// before the first that takes them: so the copy of one can be given back before the next is made.
    fn load_order(&self, operations: &[OpId], known: &HashSet<OpId>) -> Vec<OpId> {
        let is_late = |op: &OpId| {
            let data = self.module.op(*op);
            let users = data.results().iter().flat_map(|&it| self.module.users(it));
            let mut users = users.map(|user| known.contains(&user.op)).peekable();
            let is_constant = [CONSTANT, EXTERNAL].contains(&data.name().as_str());
            is_constant && users.peek().is_some() && users.all(|is_known| is_known)
        };
        let own = operations.iter().filter(|op| known.contains(op));
        let late: HashSet<OpId> = own.clone().copied().filter(is_late).collect();
        let mut placed = HashSet::new();
        let mut order = Vec::with_capacity(known.len());
        for &op in own.filter(|op| !late.contains(op)) {
            let makers = self.module.op(op).operands().iter();
            let makers = makers.filter_map(|value| self.module.defining_op(*value));
            order.extend(makers.filter(|maker| late.contains(maker) && placed.insert(*maker)));
            order.push(op);
        }
        order
    }

    /// Returns the kernel of an operation that runs when a model is opened.
    fn known(&mut self, op: OpId, own: &Values) -> Option<OpState> {
        if *self.module.op(op).name() == CONSTANT {
            if self.module.op(op).results().len() != 1 {
                self.error(op, "has one result, the constant");
                return None;
            }
            let mut state = OpState::new("cpu.onnx.Constant").result(Type::dialect(TENSOR));
            match constant::kernel_attributes(self.module, op) {
                Ok(attributes) => {
                    for (name, value) in attributes {
                        state = state.attribute(name, value);
                    }
                }
                Err(message) => {
                    self.error(op, message);
                    return None;
                }
            }
            return Some(state);
        }
        if *self.module.op(op).name() == EXTERNAL {
            return Some(external(self.module, op));
        }
        let operands = self.module.op(op).operands().iter();
        let operands = operands.map(|value| own.get(value).copied());
        let operands = operands.collect::<Option<Vec<_>>>()?;
        self.operation(op, operands, own)
    }

    /// Makes a function of a block that ends in a return.
    fn function(
        &mut self,
        name: &str,
        region: RegionId,
        body: BlockId,
        location: Location,
        is_private: bool,
    ) -> OpId {
        let state = function(self.module, name, region, body);
        let mut state = state.location(location);
        if is_private {
            state = state.attribute("sym_visibility", Attribute::string("private"));
        }
        self.module.create(state)
    }

    fn error(&mut self, op: OpId, message: impl std::fmt::Display) {
        let error = self.module.op_error(codes::GRAPH, op, message);
        self.diagnostics.push(error);
    }

    /// Lowers the operations of a block but for constants.
    ///
    /// Recursion is bounded by the limit of the text, or the importer, on nesting.
    fn block(&mut self, from: BlockId, into: BlockId, values: &mut Values) {
        for op in self.module.block(from).operations().to_vec() {
            if self.load_time.contains(&op) {
                continue;
            }
            let data = self.module.op(op);
            let operands = data
                .operands()
                .iter()
                .map(|value| values.get(value).copied());
            let Some(operands) = operands.collect::<Option<Vec<_>>>() else {
                // Only what an error was told of has no value.
                continue;
            };
            let location = data.location().clone();
            if is_terminator(self.module, op) {
                let state = OpState::new("tfrt.return").operands(operands);
                let last = self.module.create(state.location(location));
                self.module.append(into, last);
                return;
            }
            if let Some(state) = self.operation(op, operands, values) {
                let made = self.module.create(state.location(location));
                self.module.append(into, made);
                let olds = self.module.op(op).results().to_vec();
                let news = self.module.op(made).results();
                values.extend(olds.into_iter().zip(news.iter().copied()));
            }
        }
    }

    fn operation(
        &mut self,
        op: OpId,
        mut operands: Vec<ValueId>,
        values: &Values,
    ) -> Option<OpState> {
        let name = self.module.op(op).name().clone();
        let types = self.result_types(op);
        if name == CALL {
            return Some(calls::kernel(self.module, op, operands).results(types));
        }
        if name == NO_VALUE {
            return Some(OpState::new("cpu.onnx.NoValue").results(types));
        }
        if name.starts_with(GRAPH) {
            return self.row(op, operands);
        }
        if place::is_placed(self.module, op) {
            return Some(self.placed(op, operands));
        }
        if is_library(&name) && tfrt_ops::find(&name).is_some() {
            return self.library(op, operands);
        }
        let Some(short) = name.strip_prefix("onnx.") else {
            return self.kept(op, operands);
        };
        let mut state = OpState::new(format!("cpu.onnx.{short}")).results(types);
        let mut list = Vec::new();
        if !self.module.op(op).regions().is_empty() {
            let (names, captured) = self.functions(op, values)?;
            list.push(Attribute::string("captured"));
            let n_captured = i64::try_from(captured.len()).unwrap_or(i64::MAX);
            list.push(Attribute::integer(n_captured, Type::I64));
            operands.extend(captured);
            if matches!(short, "Loop" | "Scan") {
                list.push(Attribute::string("yields"));
                list.push(self.yields(op));
            }
            for (name, function) in names {
                state = state.attribute(name, Attribute::symbol(function));
            }
        }
        list.append(&mut attributes(self.module.op(op).attributes()));
        let state = state
            .operands(operands)
            .attribute("attributes", Attribute::array(list))
            .attribute(
                "opset",
                Attribute::integer(opset(self.module, op), Type::I64),
            );
        Some(state)
    }

    /// Returns the kernel of an operation of dialect `graph`.
    fn row(&mut self, op: OpId, operands: Vec<ValueId>) -> Option<OpState> {
        let data = self.module.op(op);
        let name = data.name().strip_prefix(GRAPH).unwrap_or_default();
        if *data.name() == PREPARE {
            return Some(self.prepare(op, operands));
        }
        let Some(row) = tfrt_ops::find(name) else {
            self.error(op, legalize::no_row(name));
            return None;
        };
        let checked = check(self.module, op, row);
        let kind = data.attribute(place::KIND).and_then(Attribute::as_str);
        let wrong = match checked {
            Ok(()) if kind.is_some() => None,
            Ok(()) if (self.has_kernel)(row.name) && data.regions().is_empty() => None,
            Ok(()) => Some("has no kernel: nothing here runs it".to_owned()),
            Err(message) => Some(message),
        };
        if let Some(message) = wrong {
            self.error(op, message);
            return None;
        }
        Some(self.placed(op, operands))
    }

    /// Returns the kernel of a library row.
    fn library(&mut self, op: OpId, operands: Vec<ValueId>) -> Option<OpState> {
        let name = self.module.op(op).name().as_str();
        let checked = match tfrt_ops::find(name) {
            Some(row) if row.has_effects() => Err("has effects: no model runs it here".to_owned()),
            Some(row) => check(self.module, op, row),
            None => Err("is no operation of graphs".to_owned()),
        };
        if let Err(message) = checked {
            self.error(op, message);
            return None;
        }
        Some(self.placed(op, operands))
    }

    /// Returns the kernel of a row on the device that a node is placed on.
    fn placed(&self, op: OpId, operands: Vec<ValueId>) -> OpState {
        let data = self.module.op(op);
        let list = attributes(data.attributes());
        let kind = data.attribute(place::KIND).and_then(Attribute::as_str);
        let state = OpState::new(format!("{}.{}", kind.unwrap_or("cpu"), data.name()))
            .results(self.result_types(op))
            .operands(operands)
            .attribute("attributes", Attribute::array(list));
        match data.attribute(place::DEVICE) {
            Some(device) => state.attribute("device", device.clone()),
            None => state,
        }
    }

    /// Returns the kernel that prepares the constants of a node.
    fn prepare(&self, op: OpId, operands: Vec<ValueId>) -> OpState {
        let data = self.module.op(op);
        let row = data.attribute("op").and_then(Attribute::as_str);
        let row = row.unwrap_or_default().to_owned();
        let stated = data.attributes().iter();
        let stated: Vec<(Name, Attribute)> = stated
            .filter(|(name, _)| name.as_str() != "op")
            .cloned()
            .collect();
        let kind = data.attribute(place::KIND).and_then(Attribute::as_str);
        let state = OpState::new(format!("{}.{PREPARE}", kind.unwrap_or("cpu")))
            .results(self.result_types(op))
            .operands(operands)
            .attribute("attributes", Attribute::array(attributes(&stated)))
            .attribute("op", Attribute::string(row));
        let placed = [place::DEVICE, place::TYPES].map(|name| data.attribute(name).cloned());
        match placed {
            [Some(device), Some(types)] => {
                state.attribute("device", device).attribute("types", types)
            }
            _ => {
                let version = stated_opset(self.module, op).unwrap_or(names::onnx::NEWEST);
                state.attribute("opset", Attribute::integer(version, Type::I64))
            }
        }
    }

    /// Returns an operation with other operands that is a kernel already, or has a row of its own. The kernel of a
    /// row gets all attributes of the row.
    fn kept(&mut self, op: OpId, operands: Vec<ValueId>) -> Option<OpState> {
        let data = self.module.op(op);
        if !data.regions().is_empty() {
            self.error(
                op,
                "has regions, which only operations of dialect onnx may have here",
            );
            return None;
        }
        let types = self.result_types(op);
        let row = self.rows.find_added(data.name());
        let name = match &row {
            Some(row) => format!("cpu.{}", row.name).into(),
            None => data.name().clone(),
        };
        let mut state = OpState::new(name).operands(operands).results(types);
        let mut stated = rewrite::stated(self.module, op);
        if let Some(row) = row {
            stated.retain(|(name, _)| !super::is_note(name));
            attrs::complete(&mut stated, row.attrs);
        }
        for (name, value) in stated {
            state = state.attribute(name, value);
        }
        Some(state)
    }

    fn result_types(&self, op: OpId) -> Vec<Type> {
        let results = self.module.op(op).results().iter();
        results
            .map(|result| lowered(self.module.value_type(*result)))
            .collect()
    }

    /// Returns the types of the results of an operation's only region, by which results without any turn have a type.
    fn yields(&self, op: OpId) -> Attribute {
        let blocks = super::scope::region_blocks(self.module, op);
        let last = blocks
            .first()
            .and_then(|block| self.module.block(*block).operations().last());
        let values = last.map_or(&[][..], |last| self.module.op(*last).operands());
        let types = values
            .iter()
            .map(|value| Attribute::string(self.module.value_type(*value).to_string()));
        Attribute::array(types.collect())
    }

    /// Makes functions of the regions of an operation; returns their names, each with its attribute's, and the
    /// captured values.
    fn functions(&mut self, op: OpId, values: &Values) -> Option<(Functions, Vec<ValueId>)> {
        let data = self.module.op(op);
        let (kind, names): (_, &[&str]) = match data.name().as_str() {
            "onnx.If" => ("if", &["else_branch", "then_branch"]),
            "onnx.Loop" => ("loop", &["body"]),
            "onnx.Scan" => ("scan", &["body"]),
            "onnx.SequenceMap" => ("map", &["body"]),
            _ => {
                self.error(op, "has graphs inside, and no kernel runs it");
                return None;
            }
        };
        let regions = data.regions().to_vec();
        let blocks = super::scope::region_blocks(self.module, op);
        if regions.len() != names.len() || blocks.len() != names.len() {
            let (expected, found) = (names.len(), regions.len());
            let message = format!("expected {expected} regions of one block, found {found}");
            self.error(op, message);
            return None;
        }
        let captured = captured(self.module, op);
        let number = self.n_control;
        self.n_control += 1;
        let mut made = Vec::with_capacity(names.len());
        for (name, from) in names.iter().zip(blocks) {
            let (region, body) = self.region();
            let mut inner = Values::new();
            let arguments = self.module.block(from).arguments().to_vec();
            for old in arguments.into_iter().chain(captured.iter().copied()) {
                self.argument(body, old, &mut inner);
            }
            let at = self.made.len();
            self.block(from, body, &mut inner);
            let function = format!("{}.{kind}{number}.{name}", self.name);
            let location = self.module.op(op).location().clone();
            let created = self.function(&function, region, body, location, true);
            self.made.insert(at, created);
            made.push((*name, function));
        }
        let outer = captured.iter().map(|value| values.get(value).copied());
        Some((made, outer.collect::<Option<_>>()?))
    }
}

/// Returns the kernel of a constant whose elements stay in a file.
fn external(module: &Module, op: OpId) -> OpState {
    let state = OpState::new("cpu.onnx.External").result(Type::dialect(TENSOR));
    let stated = ["dims", "element", "file", "id", "offset"].into_iter();
    let stated = stated.filter_map(|name| Some((name, module.op(op).attribute(name)?.clone())));
    stated.fold(state, |state, (name, value)| state.attribute(name, value))
}

/// Returns a function of a block that ends in a return.
pub(super) fn function(module: &Module, name: &str, region: RegionId, body: BlockId) -> OpState {
    let types = |values: &[ValueId]| {
        let types = values.iter().map(|value| module.value_type(*value));
        types.cloned().collect::<Vec<_>>()
    };
    let inputs = types(module.block(body).arguments());
    let last = module.block(body).last();
    let results = last.map_or_else(Vec::new, |op| types(module.op(op).operands()));
    let signature = Attribute::Type(Type::function(inputs, results));
    OpState::new("func.func")
        .attribute("sym_name", Attribute::string(name))
        .attribute("function_type", signature)
        .region(region)
}

/// Returns the attributes of an operation in the form that kernels have: names and values in turn.
pub(in crate::passes) fn attributes(stated: &[(Name, Attribute)]) -> Vec<Attribute> {
    let mut list = Vec::new();
    for (name, value) in stated {
        if name.contains('.') {
            continue;
        }
        list.push(Attribute::string(name.as_str()));
        list.push(match value {
            Attribute::Type(ty) => element_type(ty),
            // Files have no dense strings; the tensors that attributes are have one dimension.
            Attribute::Dense(dense) => match constant::strings(dense) {
                Some(strings) => strings,
                None => value.clone(),
            },
            other => other.clone(),
        });
    }
    list
}

/// Returns a type as kernels read it: the number that ONNX gives it, the type itself where ONNX has none, and the name of a
/// type that no tensor has.
fn element_type(ty: &Type) -> Attribute {
    let dtype = attrs::dtype(ty);
    match dtype.and_then(names::onnx::number) {
        Some(number) => Attribute::integer(number, Type::I64),
        None if dtype.is_some() => Attribute::Type(ty.clone()),
        None => Attribute::string(ty.to_string()),
    }
}

const TENSOR: &str = "!t.tensor";

/// Returns the type in a program of a value of a graph.
fn lowered(ty: &Type) -> Type {
    match ty {
        Type::None => Type::dialect("!t.none"),
        Type::Dialect(name) if name.starts_with("!onnx.sequence<!onnx.map") => {
            Type::dialect("!t.maps")
        }
        Type::Dialect(name) if name.starts_with("!onnx.map") => Type::dialect("!t.map"),
        Type::Dialect(name) if name.starts_with("!onnx.sequence") => Type::dialect("!t.sequence"),
        Type::Dialect(name) if name.starts_with("!onnx.optional") => Type::dialect("!t.optional"),
        Type::Dialect(name) if !name.starts_with("!onnx.") => ty.clone(),
        _ => Type::dialect(TENSOR),
    }
}

/// Returns the version of the operator set of an operation.
pub(in crate::passes) fn opset(module: &Module, op: OpId) -> i64 {
    stated_opset(module, op).unwrap_or(1)
}

/// Returns the version of the operator set of an operation, if it is stated.
pub(in crate::passes) fn stated_opset(module: &Module, op: OpId) -> Option<i64> {
    let data = module.op(op);
    let top = module.op(module.top());
    let own = data.attribute("onnx.opset").and_then(Attribute::as_i64);
    let stated = || top.attribute(&opset_attribute(data.name()))?.as_i64();
    own.or_else(stated)
}

/// Returns the attribute of a module that states the version for operations like this.
fn opset_attribute(name: &str) -> String {
    let rest = name.strip_prefix("onnx.").unwrap_or(name);
    match rest.rsplit_once('.').map(|(domain, _)| domain) {
        None => "onnx.opset".to_owned(),
        Some("ml") => "onnx.opset.ai.onnx.ml".to_owned(),
        Some("preview") => "onnx.opset.ai.onnx.preview".to_owned(),
        Some("training") => "onnx.opset.ai.onnx.preview.training".to_owned(),
        Some("microsoft") => "onnx.opset.com.microsoft".to_owned(),
        Some(other) => format!("onnx.opset.{}", other.strip_prefix("ext.").unwrap_or(other)),
    }
}

/// Returns the values from outside that the regions of an operation use, in the order of their first
/// use.
fn captured(module: &Module, op: OpId) -> Vec<ValueId> {
    let mut inside = HashSet::new();
    let mut seen = HashSet::new();
    let mut captured = Vec::new();
    let mut inner = Vec::new();
    for child in module.children(op) {
        module.walk_pre_order(child, &mut |op| inner.push(op));
    }
    let mut add_blocks = |op: OpId| {
        for &region in module.op(op).regions() {
            inside.extend(module.region(region).blocks().iter().copied());
        }
    };
    add_blocks(op);
    inner.iter().for_each(|op| add_blocks(*op));
    for op in inner {
        for &operand in module.op(op).operands() {
            let block = module.value_block(operand);
            let is_inside = block.is_some_and(|block| inside.contains(&block));
            if !is_inside && seen.insert(operand) {
                captured.push(operand);
            }
        }
    }
    captured
}

#[cfg(test)]
mod tests;
