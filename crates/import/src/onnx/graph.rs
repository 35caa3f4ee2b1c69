//! Imports graphs as blocks of operations: names become values, nodes operations.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    rc::Rc,
};

use tfrt_ir::{
    Attribute, BlockId, Diagnostic, Diagnostics, Location, Module, Name, OpState, RegionId, Type,
    ValueId, similar,
};

use super::{
    UnknownOperator,
    attributes::{self, AttributeData, BoundAttribute},
    check,
    external::ExternalFiles,
    function::Functions,
    model::{Opsets, domain},
    order,
    problem::{Problem, shown},
    proto::{Graph, Node, TensorProto, TypeProto, ValueInfo},
    results,
    schema::{self, Operator},
    sparse,
    tensor::{self, ExternalTensor, Tensor, TensorData},
    types,
};
use crate::{ReadLimits, codes};

/// The greatest depth of nested subgraphs and calls.
pub(super) const MAX_DEPTH: usize = 64;

/// Operations that have every one of their graphs, so that the position of a region tells its meaning.
const ALL_GRAPHS: [&str; 4] = ["onnx.If", "onnx.Loop", "onnx.Scan", "onnx.SequenceMap"];

/// The state of an import.
pub(super) struct Importer<'m> {
    pub module: Module,
    pub errors: Diagnostics,
    /// Remarks on oddities that are no errors.
    pub notes: Diagnostics,
    /// Unknown operators, by domain, name and version; `None` if they are errors.
    pub unknown: Option<BTreeMap<(&'m str, &'m str, i64), UnknownOperator>>,
    pub file: Name,
    pub files: ExternalFiles,
    pub budget: sparse::Budget,
    pub functions: Functions<'m>,
    /// The graphs and calls that are being read, the innermost last.
    pub scopes: Vec<Scope<'m>>,
    /// The model, then the calls of functions that are being read.
    pub frames: Vec<Frame<'m>>,
    /// The operators that nodes named so far, by domain, name and version.
    pub names: HashMap<(&'m str, &'m str, i64), ResolvedOperator>,
    /// The nodes that calls of functions became so far.
    pub n_expanded: usize,
    /// Limits on the model.
    pub limits: ReadLimits,
    /// The number of nodes that were read so far.
    pub n_nodes: usize,
}

/// The operator of a node, found in the table.
#[derive(Clone)]
pub(super) struct ResolvedOperator {
    /// The name of the operation in the module.
    pub name: Name,
    /// The entry in the table; `None` for a domain that is not known.
    pub operator: Option<Rc<Operator>>,
    /// The version of the operator set, if it is not the model's.
    pub own_version: Option<i64>,
}

/// The values of a graph.
#[derive(Default)]
pub(super) struct Scope<'m> {
    pub values: HashMap<&'m str, ValueId>,
    /// Parameters of a function that the call leaves out.
    pub left_out: HashSet<&'m str>,
    /// The index of the surrounding graph.
    pub parent: Option<usize>,
}

/// The declarations of a model, or of a function in one call, that nodes refer to.
pub(super) struct Frame<'m> {
    pub opsets: Rc<Opsets<'m>>,
    /// The attributes of the function in this call.
    pub attributes: HashMap<&'m str, BoundAttribute<'m>>,
    /// The location of the call.
    pub caller: Option<Location>,
}

/// The position at which nodes are added.
#[derive(Clone, Copy)]
pub(super) struct Context<'p> {
    pub frame: usize,
    pub scope: usize,
    pub block: BlockId,
    /// The names of the surrounding nodes.
    pub path: &'p str,
    /// The number of surrounding subgraphs and calls.
    pub depth: usize,
}

/// The position of a node or an input in the model, for errors and locations.
pub(super) struct ModelPos {
    /// The name in errors: `node 'encoder/conv' (Conv)`.
    pub label: String,
    /// The names of the surrounding nodes and its own.
    pub path: String,
    pub location: Location,
}

impl ModelPos {
    /// Returns the position of an input of the model.
    pub(super) fn of_input(name: &str, file: &Location) -> ModelPos {
        ModelPos {
            label: format!("input '{}'", shown(name)),
            path: shown(name).into_owned(),
            location: file.clone(),
        }
    }
}

/// The types that a graph declares, by the names of values.
pub(super) type DeclaredTypes<'m> = HashMap<&'m str, &'m TypeProto>;

/// Returns the types that a list declares.
pub(super) fn declared(infos: &[ValueInfo]) -> impl Iterator<Item = (&str, &TypeProto)> {
    infos
        .iter()
        .filter_map(|info| Some((info.name.as_deref()?, info.ty.as_deref()?)))
}

/// Returns the types that a graph declares for results of its nodes.
pub(super) fn declared_by(graph: &Graph) -> DeclaredTypes<'_> {
    declared(&graph.value_info)
        .chain(declared(&graph.output))
        .collect()
}

impl<'m> Importer<'m> {
    pub(super) fn new_frame(&mut self, opsets: Opsets<'m>) -> usize {
        self.frames.push(Frame {
            opsets: Rc::new(opsets),
            attributes: HashMap::new(),
            caller: None,
        });
        self.frames.len() - 1
    }

    pub(super) fn new_scope(&mut self, parent: Option<usize>) -> usize {
        self.scopes.push(Scope {
            parent,
            ..Scope::default()
        });
        self.scopes.len() - 1
    }

    /// Returns the value of a name in a graph.
    pub(super) fn find(&self, name: &str, scope: usize) -> Option<ValueId> {
        let mut at = Some(scope);
        while let Some(index) = at {
            let scope = &self.scopes[index];
            if let Some(&value) = scope.values.get(name) {
                return Some(value);
            }
            at = scope.parent;
        }
        None
    }

    fn is_left_out(&self, name: &str, scope: usize) -> bool {
        let mut at = Some(scope);
        while let Some(index) = at {
            let scope = &self.scopes[index];
            if scope.left_out.contains(name) {
                return true;
            }
            at = scope.parent;
        }
        false
    }

    /// Gives a value its name; reports a name that the graph has already.
    pub(super) fn define(&mut self, name: &'m str, value: ValueId, scope: usize, place: &ModelPos) {
        if name.is_empty() {
            return;
        }
        let Some(first) = self.scopes[scope].values.insert(name, value) else {
            return;
        };
        let first = match self.module.defining_op(first) {
            Some(op) => location_name(self.module.op(op).location()),
            None => None,
        };
        let first = first.map_or_else(|| "an input".to_owned(), |name| format!("'{name}'"));
        let message = format!(
            "makes the value '{}', which {first} makes, too",
            shown(name)
        );
        let problem = Problem::new(codes::MODEL_VALUE_TWICE, message).of(&place.label);
        self.errors.push(problem.at(place.location.clone()));
    }

    /// Reads the declared type of a value; reports one that can't be read.
    pub(super) fn stated_type(&mut self, info: &ValueInfo, what: &str, place: &Location) -> Type {
        let read = match &info.ty {
            Some(ty) if types::is_empty(ty) => {
                Err(Problem::new(codes::MODEL_TYPE, "has a type that is empty"))
            }
            Some(ty) => types::read(ty),
            None => Err(Problem::new(codes::MODEL_TYPE, "has no type")),
        };
        read.unwrap_or_else(|problem| {
            let name = shown(info.name.as_deref().unwrap_or(""));
            let problem = problem.of(&format!("{what} '{name}'"));
            self.errors.push(problem.at(place.clone()));
            types::unknown()
        })
    }

    /// Makes constants of a graph's initializers; returns their names.
    pub(super) fn initializers(&mut self, graph: &'m Graph, at: Context<'_>) -> HashSet<&'m str> {
        let mut names = HashSet::new();
        let mut earlier: HashMap<&str, &TensorProto> = HashMap::new();
        for proto in &graph.initializer {
            let name = proto.name.as_deref().unwrap_or("");
            // Some optimisers write a weight once for each of its users.
            if earlier.insert(name, proto).is_some_and(|one| one == proto) && !name.is_empty() {
                let path = join(at.path, &shown(name));
                let message =
                    format!("initializer '{path}': is there twice, with the same elements");
                let place = Location::named(path.as_str(), Some(self.file_location(0)));
                let warning = Diagnostic::warning(codes::MODEL_VALUE_TWICE, message);
                self.notes.push(warning.at_location(place));
                continue;
            }
            let made = match tensor::external(proto, &mut self.files) {
                Ok(Some(apart)) => Ok(external_constant(&apart)),
                Ok(None) => tensor::decode(proto, &mut self.files).map(|it| constant(&it)),
                Err(problem) => Err(problem),
            };
            self.initializer(name, made, at);
            names.insert(name);
        }
        for proto in &graph.sparse_initializer {
            let values = proto.values.as_ref();
            let name = values
                .and_then(|values| values.name.as_deref())
                .unwrap_or("");
            let expanded = sparse::expand(proto, &mut self.files, &mut self.budget);
            self.initializer(name, expanded.map(|it| constant(&it)), at);
            names.insert(name);
        }
        names
    }

    fn initializer(&mut self, name: &'m str, made: Result<OpState, Problem>, at: Context<'_>) {
        let path = join(at.path, &shown(name));
        let location = Location::named(path.as_str(), Some(self.file_location(0)));
        let place = ModelPos {
            label: format!("initializer '{path}'"),
            path,
            location,
        };
        let value = match made {
            Ok(_) if name.is_empty() => {
                let problem = Problem::new(codes::MODEL_TENSOR, "has no name").of(&place.label);
                self.errors.push(problem.at(place.location));
                return;
            }
            Ok(state) => self.append(state.location(place.location.clone()), at.block),
            Err(problem) => {
                let problem = problem.of(&place.label);
                self.errors.push(problem.at(place.location.clone()));
                self.no_value(at.block, place.location.clone())
            }
        };
        self.define(name, value, at.scope, &place);
    }

    /// Makes the placeholder of a value that is left out.
    fn no_value(&mut self, block: BlockId, location: Location) -> ValueId {
        let state = OpState::new("graph.none").result(Type::None);
        self.append(state.location(location), block)
    }

    /// Makes an operation with one result.
    fn append(&mut self, state: OpState, block: BlockId) -> ValueId {
        let op = self.module.create(state);
        self.module.append(block, op);
        self.module.op(op).results()[0]
    }

    /// Imports nodes, sorted so that operands come before their users.
    pub(super) fn nodes(&mut self, nodes: &'m [Node], stated: &DeclaredTypes<'m>, at: Context<'_>) {
        self.n_nodes = self.n_nodes.saturating_add(nodes.len());
        if let (true, Some(first)) = (self.n_nodes > self.limits.nodes, nodes.first()) {
            let place = self.place(first, 0, at);
            let message = format!("expected at most {} nodes in all", self.limits.nodes);
            let problem = Problem::new(codes::MODEL_TOO_LARGE, message).of(&place.label);
            return self.refuse(nodes, problem, at, place.location);
        }
        match order::sorted(nodes) {
            Ok(None) => {
                for (index, node) in nodes.iter().enumerate() {
                    self.node(node, index, stated, at);
                }
            }
            Ok(Some(order)) => {
                for index in order {
                    self.node(&nodes[index], index, stated, at);
                }
            }
            Err(cycle) => self.report_cycle(nodes, &cycle, at),
        }
    }

    fn report_cycle(&mut self, nodes: &'m [Node], cycle: &[usize], at: Context<'_>) {
        const MAX_SHOWN: usize = 8;
        let places = cycle.iter().take(MAX_SHOWN);
        let places: Vec<ModelPos> = places
            .map(|&index| self.place(&nodes[index], index, at))
            .collect();
        let paths: Vec<&str> = places.iter().map(|place| place.path.as_str()).collect();
        let more = if cycle.len() > MAX_SHOWN { ", .." } else { "" };
        let message = match cycle {
            [_] => "takes its own result".to_owned(),
            _ => format!(
                "is one of {} nodes that wait for each other: {}{more}",
                cycle.len(),
                paths.join(", ")
            ),
        };
        let problem = Problem::new(codes::MODEL_CYCLE, message).of(&places[0].label);
        let location = places[0].location.clone();
        self.refuse(nodes, problem, at, location);
    }

    /// Reports a problem at all nodes of a graph.
    fn refuse(&mut self, nodes: &'m [Node], problem: Problem, at: Context<'_>, location: Location) {
        self.errors.push(problem.at(location.clone()));
        // So that nothing else is said of what they would make.
        let unknown = self.no_value(at.block, location);
        for name in nodes.iter().flat_map(|node| &node.output) {
            self.scopes[at.scope].values.insert(name, unknown);
        }
    }

    fn node(&mut self, node: &'m Node, index: usize, stated: &DeclaredTypes<'m>, at: Context<'_>) {
        let place = self.place(node, index, at);
        let operands = node.input.iter();
        let operands: Vec<Option<ValueId>> = operands
            .map(|name| self.operand(name, at, &place))
            .collect();
        let results = match self.functions.called(node) {
            Some(function) => self.call(function, node, &operands, stated, at, &place),
            None => match self.operation(node, operands, stated, at, &place) {
                Ok(results) => results,
                Err(problem) => {
                    let problem = problem.of(&place.label);
                    self.errors.push(problem.at(place.location.clone()));
                    Vec::new()
                }
            },
        };
        for (index, name) in node.output.iter().enumerate() {
            let value = match results.get(index).copied().flatten() {
                Some(value) => value,
                // It was told why there is none.
                None => self.no_value(at.block, place.location.clone()),
            };
            self.define(name, value, at.scope, &place);
        }
    }

    /// Returns the value that an input of a node names, `None` if it is left out.
    fn operand(&mut self, name: &'m str, at: Context<'_>, place: &ModelPos) -> Option<ValueId> {
        if name.is_empty() {
            return None;
        }
        if let Some(value) = self.find(name, at.scope) {
            // What stands for one that is left out is left out.
            return (*self.module.value_type(value) != Type::None).then_some(value);
        }
        if !self.is_left_out(name, at.scope) {
            let problem = self.unknown_value(name, at.scope, "takes").of(&place.label);
            self.errors.push(problem.at(place.location.clone()));
        }
        None
    }

    fn unknown_value(&self, name: &str, scope: usize, verb: &str) -> Problem {
        let message = format!("{verb} the value '{}', which nothing makes", shown(name));
        let problem = Problem::new(codes::MODEL_VALUE, message);
        let known = self.scopes[scope].values.keys().copied();
        match similar::nearest(name, known) {
            Some(close) => problem.help(format!("there is '{close}'")),
            None => problem,
        }
    }

    /// Makes the operation of a node.
    fn operation(
        &mut self,
        node: &'m Node,
        operands: Vec<Option<ValueId>>,
        stated: &DeclaredTypes<'m>,
        at: Context<'_>,
        place: &ModelPos,
    ) -> Result<Vec<Option<ValueId>>, Problem> {
        let ResolvedOperator {
            name,
            operator,
            own_version,
        } = match self.known(node, at) {
            Ok(known) => known,
            Err(problem) => return self.unknown_operator(node, problem, at, place),
        };
        let n_errors = self.errors.len();
        let (entries, graphs) = self.attributes(node, at, place, operator.as_deref())?;
        if self.errors.len() > n_errors {
            return Ok(Vec::new());
        }
        if name == "onnx.Constant" {
            let tensor = constant_tensor(entries)?;
            let state = constant(&tensor).location(place.location.clone());
            return Ok(vec![Some(self.append(state, at.block))]);
        }
        let n_operands = operands
            .iter()
            .rposition(Option::is_some)
            .map_or(0, |last| last + 1);
        let mut values = Vec::with_capacity(n_operands);
        for operand in &operands[..n_operands] {
            values.push(match operand {
                Some(value) => *value,
                None => self.no_value(at.block, place.location.clone()),
            });
        }
        let mut state = OpState::new(name.clone()).operands(values.iter().copied());
        for (name, held) in &entries {
            let value = match held {
                AttributeData::Constant(value) => value.clone(),
                AttributeData::Tensor(tensor) => attributes::dense(tensor),
                AttributeData::Graph(_) => continue,
            };
            state = state.attribute(*name, value);
        }
        if let Some(version) = own_version {
            state = state.attribute("onnx.opset", Attribute::integer(version, Type::I64));
        }
        let types = values
            .iter()
            .map(|&value| self.module.value_type(value).clone());
        let types: Vec<Type> = types.collect();
        if !graphs.is_empty() && !ALL_GRAPHS.contains(&name.as_str()) {
            let names = graphs.iter().map(|(name, ..)| Attribute::string(*name));
            state = state.attribute("onnx.regions", Attribute::array(names.collect()));
        }
        let mut regions = Vec::with_capacity(graphs.len());
        for (attribute, graph, bound) in graphs {
            let (n_given, n_taken) = (graph.output.len(), node.output.len());
            if name == "onnx.If" && n_given != n_taken {
                let message = format!("gives {n_given} values, and the node has {n_taken} outputs");
                let problem = Problem::new(codes::MODEL_ATTRIBUTE, message);
                return Err(attributes::of(problem, attribute));
            }
            let arguments = results::arguments(&name, &types, graph.input.len());
            let region = self.subgraph(attribute, graph, bound, &arguments, at, place)?;
            regions.push(region);
            state = state.region(region);
        }
        let operator = operator.as_deref();
        let inferred = results::types(&self.module, &name, operator, &values, &entries, &regions);
        for (index, name) in node.output.iter().enumerate() {
            let ty = match stated.get(name.as_str()).map(|ty| types::read(ty)) {
                Some(Ok(ty)) if !results::is_unknown(&ty) => ty,
                Some(Err(problem)) => {
                    return Err(problem.of(&format!("result '{}'", shown(name))));
                }
                _ => inferred.of(index),
            };
            state = state.result(ty);
        }
        let op = self.module.create(state.location(place.location.clone()));
        self.module.append(at.block, op);
        let results = self.module.op(op).results();
        Ok(results.iter().map(|&value| Some(value)).collect())
    }

    /// Looks up the operator of a node.
    fn known(&mut self, node: &'m Node, at: Context<'_>) -> Result<ResolvedOperator, Problem> {
        let domain = domain(node.domain.as_deref());
        let operator = node.op_type.as_deref().unwrap_or("");
        let stated = self.frames[at.frame].opsets.get(domain).copied();
        let version = match stated {
            None if domain.is_empty() && at.frame == 0 => Some(self.newest_version()),
            version => version,
        };
        // It has one version, and files that don't state it are taken everywhere.
        let version = version.or((domain == "com.microsoft").then_some(1));
        let key = (domain, operator, version.unwrap_or(0));
        if let Some(known) = self.names.get(&key) {
            return Ok(known.clone());
        }
        let name = operation_name(domain, operator)?;
        if version.is_none() && schema::is_known_domain(domain) {
            let set = if domain.is_empty() { "ai.onnx" } else { domain };
            let message =
                format!("is of the operator set '{set}', of which the model has no version");
            return Err(Problem::new(codes::OPSET, message));
        }
        let known = ResolvedOperator {
            name: Name::from(name),
            operator: check::operator(domain, operator, version.unwrap_or(0))?,
            own_version: version.filter(|_| version != self.frames[0].opsets.get(domain).copied()),
        };
        self.names.insert(key, known.clone());
        Ok(known)
    }

    /// Counts a node whose operator is unknown, if they are counted.
    fn unknown_operator(
        &mut self,
        node: &'m Node,
        problem: Problem,
        at: Context<'_>,
        place: &ModelPos,
    ) -> Result<Vec<Option<ValueId>>, Problem> {
        let Some(unknown) = &mut self.unknown else {
            return Err(problem);
        };
        if problem.code() != codes::MODEL_OPERATOR {
            return Err(problem);
        }
        let domain = domain(node.domain.as_deref());
        let operator = node.op_type.as_deref().unwrap_or("");
        let opset = self.frames[at.frame].opsets.get(domain).copied();
        let opset = opset.unwrap_or(0);
        let entry = unknown.entry((domain, operator, opset));
        let entry = entry.or_insert_with(|| {
            let (message, help) = problem.into_text();
            UnknownOperator {
                domain: domain.to_owned(),
                operator: operator.to_owned(),
                opset,
                message,
                help,
                count: 0,
                nodes: Vec::new(),
            }
        });
        entry.count += 1;
        if entry.nodes.len() < UnknownOperator::MAX_NODES {
            entry.nodes.push(place.location.clone());
        }
        Ok(Vec::new())
    }

    /// Reads the attributes of a node; the graphs among them come sorted by name.
    fn attributes(
        &mut self,
        node: &'m Node,
        at: Context<'_>,
        place: &ModelPos,
        operator: Option<&Operator>,
    ) -> Result<(Entries<'m>, Graphs<'m>), Problem> {
        let mut entries: Entries<'m> = Vec::with_capacity(node.attribute.len());
        let mut graphs = Vec::new();
        let mut stated = Vec::with_capacity(node.attribute.len());
        let mut seen = HashSet::new();
        for attribute in &node.attribute {
            let name = attributes::name(attribute)?;
            if !seen.insert(name) {
                let message = format!("has the attribute '{}' twice", shown(name));
                return Err(Problem::new(codes::MODEL_ATTRIBUTE, message));
            }
            let mut bound = BoundAttribute {
                attribute,
                frame: at.frame,
                scope: at.scope,
            };
            if let Some(reference) = attribute
                .ref_attr_name
                .as_deref()
                .filter(|it| !it.is_empty())
            {
                match self.frames[at.frame].attributes.get(reference) {
                    Some(outer) => bound = *outer,
                    None if self.frames[at.frame].caller.is_some() => continue,
                    None => {
                        let message = format!(
                            "refers to the attribute '{}' of a function, and is in none",
                            shown(reference)
                        );
                        let problem = Problem::new(codes::MODEL_ATTRIBUTE, message);
                        return Err(attributes::of(problem, name));
                    }
                }
            }
            if let Ok(kind) = attributes::kind(bound.attribute) {
                stated.push((name, kind));
            }
            match self.held(bound.attribute) {
                Ok(AttributeData::Graph(graph)) => {
                    graphs.push((name, graph, bound));
                    entries.push((name, AttributeData::Graph(graph)));
                }
                Ok(held) => entries.push((name, held)),
                Err(problem) => {
                    let problem = attributes::of(problem, name).of(&place.label);
                    self.errors.push(problem.at(place.location.clone()));
                }
            }
        }
        if let Some(operator) = operator {
            check::node(node, operator, &stated, &mut |problem| {
                let problem = problem.of(&place.label);
                self.errors.push(problem.at(place.location.clone()));
            });
        }
        graphs.sort_by_key(|&(name, ..)| name);
        Ok((entries, graphs))
    }

    /// Imports a subgraph as a region.
    fn subgraph(
        &mut self,
        name: &str,
        graph: &'m Graph,
        bound: BoundAttribute<'m>,
        arguments: &[Type],
        at: Context<'_>,
        place: &ModelPos,
    ) -> Result<RegionId, Problem> {
        let max_depth = MAX_DEPTH.min(self.limits.depth);
        if at.depth >= max_depth {
            let message = format!("subgraphs nest more than {max_depth} deep");
            return Err(Problem::new(codes::MODEL_TOO_DEEP, message));
        }
        let region = self.module.create_region();
        let block = self.module.create_block(region);
        let scope = self.new_scope(Some(bound.scope));
        let path = join(&place.path, &shown(name));
        let inside = Context {
            frame: bound.frame,
            scope,
            block,
            path: &path,
            depth: at.depth + 1,
        };
        for (index, input) in graph.input.iter().enumerate() {
            let name = input.name.as_deref().unwrap_or("");
            let ty = match &input.ty {
                None => types::unknown(),
                Some(ty) if types::is_empty(ty) => types::unknown(),
                Some(_) => self.stated_type(input, "input", &place.location),
            };
            // Subgraphs may leave types to be found out.
            let ty = match arguments.get(index) {
                Some(known) if results::is_unknown(&ty) => known.clone(),
                _ => ty,
            };
            let location = Location::named(join(&path, &shown(name)), None);
            let value = self.module.add_argument(block, ty, location);
            let input = ModelPos {
                label: format!("input '{}'", join(&path, &shown(name))),
                path: String::new(),
                location: place.location.clone(),
            };
            self.define(name, value, scope, &input);
        }
        self.initializers(graph, inside);
        self.nodes(&graph.node, &declared_by(graph), inside);
        let outputs = self.outputs(graph, inside);
        let end = OpState::new("graph.yield").operands(outputs);
        let end = self.module.create(end.location(place.location.clone()));
        self.module.append(block, end);
        self.scopes.truncate(scope);
        Ok(region)
    }

    /// Returns the values that a graph gives.
    pub(super) fn outputs(&mut self, graph: &'m Graph, at: Context<'_>) -> Vec<ValueId> {
        let mut values = Vec::with_capacity(graph.output.len());
        for output in &graph.output {
            let name = output.name.as_deref().unwrap_or("");
            if let Some(value) = self.find(name, at.scope) {
                values.push(value);
                continue;
            }
            let path = if at.path.is_empty() {
                "the graph"
            } else {
                at.path
            };
            let location = Location::named(path, Some(self.file_location(0)));
            let problem = self.unknown_value(name, at.scope, "gives").of(path);
            self.errors.push(problem.at(location.clone()));
            values.push(self.no_value(at.block, location));
        }
        values
    }

    /// Returns the position of a node.
    fn place(&self, node: &Node, index: usize, at: Context<'_>) -> ModelPos {
        let operator = shown(node.op_type.as_deref().unwrap_or(""));
        let name = match node.name.as_deref() {
            None | Some("") => format!("{operator}#{index}"),
            Some(name) => shown(name).into_owned(),
        };
        let path = join(at.path, &name);
        let here = Location::named(path.as_str(), Some(self.file_location(index + 1)));
        let location = match &self.frames[at.frame].caller {
            None => here,
            Some(caller) => Location::call_site(here, caller.clone()),
        };
        ModelPos {
            label: format!("node '{path}' ({operator})"),
            path,
            location,
        }
    }

    /// Returns a location in the file whose column is the number of a node in its graph, counted from 1; 0 for
    /// everything else.
    fn file_location(&self, number: usize) -> Location {
        Location::FileLineCol {
            file: self.file.clone(),
            line: 0,
            column: u32::try_from(number).unwrap_or(u32::MAX),
        }
    }
}

/// Attributes of a node by name.
pub(super) type Entries<'m> = Vec<(&'m str, AttributeData<'m>)>;

/// The graphs among a node's attributes, by name.
type Graphs<'m> = Vec<(&'m str, &'m Graph, BoundAttribute<'m>)>;

fn join(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}/{name}"),
    }
}

fn location_name(location: &Location) -> Option<&str> {
    match location {
        Location::Name(named) => Some(&named.name),
        Location::CallSite(call) => location_name(&call.callee),
        _ => None,
    }
}

/// Returns the name of the operation that an operator becomes.
fn operation_name(domain: &str, operator: &str) -> Result<String, Problem> {
    const MAX_LEN: usize = 256;
    let is_fine = |text: &str| {
        let mut bytes = text.bytes();
        bytes.all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
    };
    if operator.is_empty() {
        return Err(Problem::new(codes::MODEL_NODE, "names no operator"));
    }
    if !is_fine(operator) || !is_fine(domain) || operator.len() + domain.len() > MAX_LEN {
        let message = format!(
            "names the operator '{}' of '{}', expected letters and digits",
            shown(operator),
            shown(domain)
        );
        return Err(Problem::new(codes::MODEL_NODE, message));
    }
    Ok(match domain {
        "" => format!("onnx.{operator}"),
        "ai.onnx.ml" => format!("onnx.ml.{operator}"),
        "ai.onnx.preview" => format!("onnx.preview.{operator}"),
        "ai.onnx.preview.training" => format!("onnx.training.{operator}"),
        "com.microsoft" => format!("onnx.microsoft.{operator}"),
        domain => format!("onnx.ext.{domain}.{operator}"),
    })
}

/// Makes a constant.
fn constant(tensor: &Tensor) -> OpState {
    let state = OpState::new("onnx.Constant");
    let state = match &tensor.data {
        TensorData::Bytes(_) => state.attribute("value", attributes::dense(tensor)),
        TensorData::Strings(strings) => {
            let strings = strings.iter().map(Attribute::string);
            state
                .attribute("value", Attribute::array(strings.collect()))
                .attribute("shape", attributes::extents(&tensor.dims))
        }
    };
    state.result(attributes::tensor_type(&tensor.dims, tensor.element))
}

/// Makes a constant whose elements stay in their file.
fn external_constant(apart: &ExternalTensor<'_>) -> OpState {
    let offset = i64::try_from(apart.left.offset).unwrap_or(i64::MAX);
    OpState::new("graph.external")
        .attribute("dims", attributes::extents(&apart.dims))
        .attribute("element", Attribute::string(apart.element.ty().to_string()))
        .attribute("file", Attribute::string(apart.left.location))
        .attribute("id", Attribute::string(""))
        .attribute("offset", Attribute::integer(offset, Type::I64))
        .result(attributes::tensor_type(&apart.dims, apart.element))
}

/// Returns the tensor of a node `Constant`, whichever attribute holds it.
fn constant_tensor(entries: Entries<'_>) -> Result<Tensor, Problem> {
    let mut entries = entries.into_iter();
    let (Some((name, held)), None) = (entries.next(), entries.next()) else {
        let message = "has none or several values, expected one attribute";
        return Err(Problem::new(codes::MODEL_ATTRIBUTE, message));
    };
    match (name, held) {
        ("value" | "sparse_value", AttributeData::Tensor(tensor)) => Ok(tensor),
        (_, AttributeData::Constant(value)) if name.starts_with("value_") => {
            results::constant(&value).ok_or_else(|| {
                let message = format!("has a value of the wrong kind in '{name}'");
                Problem::new(codes::MODEL_ATTRIBUTE, message)
            })
        }
        _ => {
            let message = format!("has no attribute '{}', or one of another kind", shown(name));
            Err(Problem::new(codes::MODEL_ATTRIBUTE, message))
        }
    }
}
