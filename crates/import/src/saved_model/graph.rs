//! [`Importer`]: makes a module of a graph: what a signature's outputs need, in an order in which operands come first.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tfrt_ir::{Attribute, BlockId, Diagnostics, Location, Module, Name, OpState, Type, ValueId};

use super::proto::{Function, Graph, Node, OpDef, OpList, SignatureDef, TensorInfo};
use super::resources::Resources;
use super::state::State;
use super::{element, node, switch, whole};
use crate::codes;
use crate::onnx::problem::{Problem, shown};
use crate::{Dim, Imported, ReadLimits, Signature};

/// The most operations of a module, whatever the limits of the caller: functions that call each other twice each make many.
const MAX_NODES: usize = 1 << 22;

/// The most nodes of functions that calls expand, needed or not. Two calls in each of forty nested functions are 10¹² calls,
/// though they may make no operation.
const MAX_EXPANDED: usize = 1 << 20;

/// The importer of one signature.
pub(super) struct Importer<'m> {
    pub module: Module,
    /// The block of `@main`, which constants stand at the start of.
    main: BlockId,
    n_constants: usize,
    /// The block that operations are appended to.
    pub block: BlockId,
    graph: &'m Graph,
    pub functions: HashMap<&'m str, &'m Function>,
    /// The operations that the model describes.
    pub definitions: HashMap<&'m str, &'m OpDef>,
    pub resources: Resources<'m>,
    /// The values of variables that were read, by their nodes.
    variables: HashMap<String, ValueId>,
    /// The variables that the signature changes.
    pub state: State,
    pub errors: Diagnostics,
    pub notes: Diagnostics,
    limits: ReadLimits,
    n_nodes: usize,
    /// The nodes of functions that calls have expanded so far.
    n_expanded: usize,
    /// The functions that are being expanded, the outermost first.
    pub open: Vec<&'m str>,
    /// The nodes that were left out since they have effects alone, by operation.
    pub left_out: BTreeMap<&'m str, usize>,
    file: Location,
}

/// A value of a graph.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Bound {
    /// A tensor.
    Value(ValueId),
    /// A variable, by its node.
    Variable(String),
    /// A table, by its node.
    Table(String),
    /// Nothing, since an error was told.
    Failed,
}

/// A graph or function that is being expanded.
pub(super) struct Frame<'m> {
    pub nodes: &'m [Node],
    pub by_name: HashMap<&'m str, usize>,
    /// The arguments of a function, or the placeholders of a graph, by name.
    pub arguments: HashMap<&'m str, Bound>,
    pub is_function: bool,
    /// The results of nodes that were expanded.
    pub made: HashMap<usize, Vec<Bound>>,
    /// The path of the function in errors: the names of the nodes that call it.
    pub path: String,
}

/// The source of an input of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputRef<'m> {
    Argument(&'m str),
    Node(usize, OutputRef<'m>),
    /// A node that runs before.
    Control(usize),
}

/// A result of a node: by its place, or by the name of an output and a place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputRef<'m> {
    At(usize),
    Named(&'m str, usize),
}

impl<'m> Frame<'m> {
    /// Makes the frame of a list of nodes.
    ///
    /// # Errors
    ///
    /// If two nodes have one name.
    pub(super) fn new(
        nodes: &'m [Node],
        arguments: HashMap<&'m str, Bound>,
        is_function: bool,
        path: String,
    ) -> Result<Frame<'m>, Problem> {
        let mut by_name = HashMap::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            if by_name.insert(node.name.as_str(), index).is_some() {
                let name = shown(&node.name);
                let message = format!("has two nodes with the name '{name}'");
                return Err(Problem::new(codes::MODEL_VALUE_TWICE, message));
            }
        }
        Ok(Frame {
            nodes,
            by_name,
            arguments,
            is_function,
            made: HashMap::new(),
            path,
        })
    }

    /// Reads the name of an input.
    pub(super) fn reference(&self, text: &'m str) -> Result<InputRef<'m>, Problem> {
        let missing = || {
            let message = format!("takes '{}', which nothing here makes", shown(text));
            Problem::new(codes::MODEL_VALUE, message)
        };
        if let Some(name) = text.strip_prefix('^') {
            return match self.by_name.get(name) {
                Some(index) => Ok(InputRef::Control(*index)),
                None if self.arguments.contains_key(name) => Ok(InputRef::Argument(name)),
                None => Err(missing()),
            };
        }
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        if self.is_function && rest.is_empty() && self.arguments.contains_key(name) {
            return Ok(InputRef::Argument(name));
        }
        let index = *self.by_name.get(name).ok_or_else(missing)?;
        let number = |text: &str| text.parse::<usize>().map_err(|_| missing());
        let output = match rest.rsplit_once(':') {
            _ if rest.is_empty() => OutputRef::At(0),
            Some((output, place)) => OutputRef::Named(output, number(place)?),
            None => match rest.parse() {
                Ok(place) => OutputRef::At(place),
                Err(_) => OutputRef::Named(rest, 0),
            },
        };
        Ok(InputRef::Node(index, output))
    }
}

impl<'m> Importer<'m> {
    pub(super) fn new(
        name: &str,
        graph: &'m Graph,
        resources: Resources<'m>,
        limits: &ReadLimits,
    ) -> Importer<'m> {
        let mut module = Module::new();
        let region = module.create_region();
        let main = module.create_block(region);
        Importer {
            module,
            main,
            n_constants: 0,
            block: main,
            graph,
            functions: HashMap::new(),
            definitions: HashMap::new(),
            resources,
            variables: HashMap::new(),
            state: State::default(),
            errors: Diagnostics::default(),
            notes: Diagnostics::default(),
            limits: *limits,
            n_nodes: 0,
            n_expanded: 0,
            open: Vec::new(),
            left_out: BTreeMap::new(),
            file: whole(name),
        }
    }

    /// Takes what a model says of the operations that it has, and of who made it.
    pub(super) fn know(&mut self, list: Option<&'m OpList>, version: &str) {
        let all = list.map_or(&[][..], |list| &list.op).iter();
        self.definitions = all.map(|op| (op.name.as_str(), op)).collect();
        if !version.is_empty() {
            let producer = format!("TensorFlow {version}");
            let properties = vec![Attribute::string("producer"), Attribute::string(producer)];
            let top = self.module.top();
            self.module
                .set_attribute(top, "model.properties", Attribute::array(properties));
        }
    }

    /// Imports a signature. Returns the variables that it assigns, too: where they are not those that it was told of, what was
    /// made is of no use.
    pub(super) fn signature(
        mut self,
        signature: &'m SignatureDef,
    ) -> (Result<Imported, Diagnostics>, BTreeSet<String>) {
        match self.expand(signature) {
            Ok(()) => {}
            Err(problem) => self.errors.push(problem.at(self.file.clone())),
        }
        for (op, count) in std::mem::take(&mut self.left_out) {
            let message =
                format!("leaves out {count} of the operation '{op}', which has effects alone");
            let problem = Problem::new(codes::MODEL_NODE, message);
            self.notes.push(problem.warning(self.file.clone()));
        }
        let Importer {
            module,
            errors,
            notes,
            state,
            ..
        } = self;
        let imported = errors.into_result().map(|()| Imported { module, notes });
        (imported, state.assigned)
    }

    fn expand(&mut self, signature: &'m SignatureDef) -> Result<(), Problem> {
        let library = self.graph.library.as_ref();
        for function in library.map_or(&[][..], |library| &library.function) {
            let Some(signature) = &function.signature else {
                continue;
            };
            if self.functions.insert(&signature.name, function).is_some() {
                let name = shown(&signature.name);
                let message = format!("has two functions with the name '{name}'");
                return Err(Problem::new(codes::MODEL_FUNCTION, message));
            }
        }
        let mut described = Signature::default();
        let mut arguments = HashMap::new();
        for (name, info) in &signature.inputs {
            let of = |problem: Problem| problem.of(&format!("input '{}'", shown(name)));
            let dims = dims(info, name);
            let element = element::element_type(info.dtype).map_err(of)?;
            let borrowed = dims.as_deref().map(borrowed);
            let ty = match &borrowed {
                Some(dims) => Type::tensor(dims.iter().map(Dim::size).collect(), element.ty()),
                None => Type::unranked(element.ty()),
            };
            described.input(name, borrowed.as_deref());
            let location = Location::named(&*shown(name), None);
            let value = self.module.add_argument(self.main, ty, location);
            let node = info.name.split(':').next().unwrap_or_default();
            arguments.insert(node, Bound::Value(value));
        }
        let initial = self.initial(&mut described)?;
        let mut frame = Frame::new(&self.graph.node, arguments, false, String::new())?;
        let mut outputs = Vec::with_capacity(signature.outputs.len());
        if signature.outputs.is_empty() {
            let message = "expected a signature with outputs, found none";
            return Err(Problem::new(codes::MODEL_FUNCTION, message));
        }
        for (name, info) in &signature.outputs {
            let of = |problem: Problem| problem.of(&format!("output '{}'", shown(name)));
            let reference = frame.reference(&info.name).map_err(of)?;
            outputs.push(self.input(&mut frame, reference).map_err(of)?);
            let unnamed = dims(info, "");
            described.output(name, unnamed.as_deref().map(borrowed).as_deref());
        }
        let mut values = Vec::with_capacity(outputs.len());
        for (bound, name) in outputs.into_iter().zip(signature.outputs.keys()) {
            match bound {
                Bound::Value(value) => values.push(value),
                Bound::Failed => {}
                Bound::Variable(_) | Bound::Table(_) => {
                    let message = format!("output '{}': is no tensor", shown(name));
                    return Err(Problem::new(codes::MODEL_TYPE, message));
                }
            }
        }
        for (name, value) in &self.state.values {
            values.push(*value);
            described.output(&shown(name), None);
        }
        let last = OpState::new("func.return").operands(values);
        let last = self.module.create(last.location(self.file.clone()));
        self.module.append(self.main, last);
        let region = self.module.block(self.main).parent();
        let main = described.function(&mut self.module, region, self.file.clone());
        if !initial.is_empty() {
            let initial = Attribute::array(initial);
            self.module.set_attribute(main, "model.initial", initial);
        }
        Ok(())
    }

    /// Makes inputs of the variables that the signature changes; returns their initial values.
    fn initial(&mut self, described: &mut Signature) -> Result<Vec<Attribute>, Problem> {
        let mut initial = Vec::with_capacity(self.state.names.len());
        for name in self.state.names.clone() {
            let Some(tensor) = self.resources.variable(&name)? else {
                continue;
            };
            let value = super::resources::dense(&tensor);
            let dims: Vec<Dim<'_>> = tensor
                .dims
                .iter()
                .map(|size| i64::try_from(*size).map_or(Dim::Unknown, Dim::Known))
                .collect();
            described.input(&shown(&name), Some(&dims));
            let ty = match &value {
                Attribute::Dense(dense) => dense.ty.clone(),
                _ => node::unknown(),
            };
            let location = Location::named(&*shown(&name), None);
            let argument = self.module.add_argument(self.main, ty, location);
            self.state.values.insert(name, argument);
            initial.push(value);
        }
        Ok(initial)
    }

    /// Returns the value of an input; expands what it needs first.
    pub(super) fn input(
        &mut self,
        frame: &mut Frame<'m>,
        reference: InputRef<'m>,
    ) -> Result<Bound, Problem> {
        if let InputRef::Node(index, _) | InputRef::Control(index) = reference {
            self.run(frame, index);
        }
        self.bound(frame, reference)
    }

    /// Returns the value of an input whose node was expanded.
    pub(super) fn bound(
        &self,
        frame: &Frame<'m>,
        reference: InputRef<'m>,
    ) -> Result<Bound, Problem> {
        let (index, output) = match reference {
            InputRef::Argument(name) => return Ok(frame.arguments[name].clone()),
            InputRef::Control(_) => return Ok(Bound::Failed),
            InputRef::Node(index, output) => (index, output),
        };
        let node = &frame.nodes[index];
        let results = frame.made.get(&index).map_or(&[][..], Vec::as_slice);
        if results == [Bound::Failed] {
            return Ok(Bound::Failed);
        }
        let at = match output {
            OutputRef::At(at) => Some(at),
            OutputRef::Named(output, place) => {
                node::offset(&self.definitions, &self.functions, node, output)
                    .and_then(|offset| offset.checked_add(place))
            }
        };
        at.and_then(|at| results.get(at)).cloned().ok_or_else(|| {
            let (name, found) = (shown(&node.name), results.len());
            let message =
                format!("takes a result of '{name}' that it does not have: it has {found}");
            Problem::new(codes::MODEL_VALUE, message)
        })
    }

    /// Expands a node, and all that it needs, without recursion within a function.
    fn run(&mut self, frame: &mut Frame<'m>, root: usize) {
        let mut stack = vec![(root, false)];
        let mut open = std::collections::HashSet::new();
        while let Some((index, is_ready)) = stack.pop() {
            if frame.made.contains_key(&index) {
                continue;
            }
            if !is_ready {
                let entered = match open.insert(index) {
                    true => self.needed(frame, index),
                    false => Err(self.cycle(frame, index)),
                };
                match entered {
                    Ok(needed) => {
                        stack.push((index, true));
                        let missing = needed.into_iter().rev();
                        stack.extend(
                            missing
                                .filter(|other| !frame.made.contains_key(other))
                                .map(|other| (other, false)),
                        );
                    }
                    Err(problem) => self.fail(frame, index, problem),
                }
                continue;
            }
            match self.node(frame, index) {
                Ok(results) => drop(frame.made.insert(index, results)),
                Err(problem) => self.fail(frame, index, problem),
            }
        }
    }

    /// Returns the nodes that a node needs.
    fn needed(&self, frame: &Frame<'m>, index: usize) -> Result<Vec<usize>, Problem> {
        let node = &frame.nodes[index];
        if frame.arguments.contains_key(node.name.as_str()) && !frame.is_function {
            return Ok(Vec::new());
        }
        node::refuse_loop_frames(node)?;
        if switch::is_merge(node) {
            return Ok(Vec::new());
        }
        let mut needed = Vec::with_capacity(node.input.len());
        for input in &node.input {
            match frame.reference(input)? {
                InputRef::Node(index, _) | InputRef::Control(index) => needed.push(index),
                InputRef::Argument(_) => {}
            }
        }
        Ok(needed)
    }

    fn cycle(&self, frame: &Frame<'m>, index: usize) -> Problem {
        let name = shown(&frame.nodes[index].name);
        let message = format!("waits for itself: '{name}' is in a cycle of nodes");
        Problem::new(codes::MODEL_CYCLE, message)
    }

    /// Notes that a node has no results, and why.
    fn fail(&mut self, frame: &mut Frame<'m>, index: usize, problem: Problem) {
        let node = &frame.nodes[index];
        let path = self.path(frame, node);
        let label = format!("node '{path}' ({})", shown(&node.op));
        let location = self.location(&path);
        self.errors.push(problem.of(&label).at(location));
        frame.made.insert(index, vec![Bound::Failed]);
    }

    /// Returns the path of a node, for locations and errors.
    pub(super) fn path(&self, frame: &Frame<'m>, node: &Node) -> String {
        let name = shown(&node.name);
        match frame.path.as_str() {
            "" => name.into_owned(),
            path => format!("{path}/{name}"),
        }
    }

    pub(super) fn location(&self, path: &str) -> Location {
        Location::named(path, Some(self.file.clone()))
    }

    /// Appends an operation to the block.
    ///
    /// # Errors
    ///
    /// If the module has too many.
    pub(super) fn add(&mut self, state: OpState) -> Result<Vec<ValueId>, Problem> {
        self.count()?;
        let op = self.module.create(state);
        self.module.append(self.block, op);
        Ok(self.module.op(op).results().to_vec())
    }

    fn count(&mut self) -> Result<(), Problem> {
        self.n_nodes += 1;
        let most = self.limits.nodes.min(MAX_NODES);
        match self.n_nodes <= most {
            true => Ok(()),
            false => {
                let message = format!("makes more than {most} operations of the model");
                Err(Problem::new(codes::MODEL_TOO_LARGE, message))
            }
        }
    }

    /// Counts the nodes of a function that a call is to expand. Returns whether it may: not if an error told before that
    /// the model is too large.
    pub(super) fn count_call(&mut self, n_nodes: usize) -> Result<bool, Problem> {
        if self.n_expanded > MAX_EXPANDED || self.n_nodes > self.limits.nodes.min(MAX_NODES) {
            return Ok(false);
        }
        self.n_expanded = self.n_expanded.saturating_add(n_nodes);
        match self.n_expanded <= MAX_EXPANDED {
            true => Ok(true),
            false => {
                let message = format!("calls expand more than {MAX_EXPANDED} nodes of functions");
                Err(Problem::new(codes::MODEL_TOO_LARGE, message))
            }
        }
    }

    /// Returns whether functions may be expanded within those that are open.
    pub(super) fn expect_shallow(&self) -> Result<(), Problem> {
        let most = self.limits.depth;
        match self.open.len() < most {
            true => Ok(()),
            false => {
                let message = format!("functions nest more than {most} deep");
                Err(Problem::new(codes::MODEL_TOO_DEEP, message))
            }
        }
    }

    /// Makes a constant, which all blocks see.
    pub(super) fn constant(&mut self, value: Attribute, path: &str) -> Result<ValueId, Problem> {
        self.count()?;
        let ty = match &value {
            Attribute::Dense(dense) => dense.ty.clone(),
            _ => node::unknown(),
        };
        let state = OpState::new("graph.constant")
            .attribute("value", value)
            .result(ty)
            .location(self.location(path));
        let op = self.module.create(state);
        self.module.insert(self.main, self.n_constants, op);
        self.n_constants += 1;
        Ok(self.module.op(op).results()[0])
    }

    /// Returns the value of a variable at this point: a constant, or what was assigned to it. There is none if its file can't be
    /// read, and an error said so before.
    pub(super) fn variable(&mut self, name: &str) -> Result<Option<ValueId>, Problem> {
        let known = self.state.values.get(name).or(self.variables.get(name));
        if known.is_some() {
            return Ok(known.copied());
        }
        let Some(tensor) = self.resources.variable(name)? else {
            return Ok(None);
        };
        let value = self.constant(super::resources::dense(&tensor), name)?;
        self.variables.insert(name.to_owned(), value);
        Ok(Some(value))
    }
}

/// An extent that may have a name.
enum OwnedDim {
    Known(i64),
    Named(String),
    Unknown,
}

/// Returns the extents of an input or output, if its rank is known. Unknown ones of inputs are called by the input's name and
/// their place.
fn dims(info: &TensorInfo, input: &str) -> Option<Vec<OwnedDim>> {
    let shape = info.shape.as_ref().filter(|shape| !shape.unknown_rank)?;
    let all = shape.dim.iter().enumerate();
    let one = |(index, dim): (usize, &super::proto::Dim)| match dim.size {
        0.. => OwnedDim::Known(dim.size),
        _ if !dim.name.is_empty() => OwnedDim::Named(shown(&dim.name).into_owned()),
        _ if !input.is_empty() => OwnedDim::Named(format!("{}.{index}", shown(input))),
        _ => OwnedDim::Unknown,
    };
    Some(all.map(one).collect())
}

fn borrowed(dims: &[OwnedDim]) -> Vec<Dim<'_>> {
    let mut all = Vec::with_capacity(dims.len());
    for dim in dims {
        all.push(match dim {
            OwnedDim::Known(size) => Dim::Known(*size),
            OwnedDim::Named(name) => Dim::Named(name.as_str()),
            OwnedDim::Unknown => Dim::Unknown,
        });
    }
    all
}

/// Returns the name of an operation of the dialect.
pub(super) fn operation_name(op: &str) -> Result<Name, Problem> {
    const MAX_LEN: usize = 128;
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'>';
    match !op.is_empty() && op.len() <= MAX_LEN && op.bytes().all(is_fine) {
        true => Ok(Name::from(format!("tf.{op}"))),
        false => {
            let message = format!(
                "names the operation '{}', expected letters and digits",
                shown(op)
            );
            Err(Problem::new(codes::MODEL_NODE, message))
        }
    }
}
