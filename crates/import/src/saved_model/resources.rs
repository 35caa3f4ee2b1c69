//! [`Resources`]: variables and tables of a model: which tensor of the checkpoint a variable holds, and what a table maps.
//!
//! Both are read from functions that would fill them, without running these. The function that restores a checkpoint assigns
//! each variable the result of `RestoreV2` for a key; those that initialise tables import constants, or a file.

use std::collections::HashMap;

use tfrt_ir::Attribute;

use super::bundle::Bundle;
use super::partition::Slice;
use super::proto::{Function, Graph, MetaGraph, Node, TensorProto, Value};
use super::{VARIABLES, assets, element};
use crate::ReadLimits;
use crate::codes;
use crate::onnx::external::ExternalData;
use crate::onnx::problem::{Problem, shown};
use crate::onnx::{Tensor, attributes};

/// The greatest depth of calls that are followed.
const MAX_DEPTH: usize = 16;

/// The most nodes that are looked at, in all functions that are called.
const MAX_NODES: usize = 1 << 22;

/// The variables and tables of a graph.
pub(super) struct Resources<'m> {
    external_data: ExternalData,
    max_bytes: u64,
    bundle: Checkpoint,
    /// The keys of variables in the checkpoint, and the parts that they are, by their nodes.
    keys: HashMap<&'m str, (&'m str, &'m str)>,
    /// The sources of tables, by their nodes.
    tables: HashMap<&'m str, TableSource<'m>>,
    /// The files that constants stand for, by their nodes.
    files: HashMap<&'m str, &'m str>,
}

/// A checkpoint that is opened when the first variable is read.
enum Checkpoint {
    Closed,
    Open(Bundle),
    /// It can't be opened, of which an error told.
    Failed,
}

/// The source of a table's keys and values.
#[derive(Clone, Copy)]
enum TableSource<'m> {
    Constants(&'m TensorProto, &'m TensorProto),
    File(&'m str, &'m Node),
}

/// The keys and values of a table, as attributes of constants.
pub(super) struct Table {
    pub keys: Attribute,
    pub values: Attribute,
}

/// A value in a graph or function that is looked at: a node of the graph itself, or a constant.
#[derive(Clone, Copy)]
enum Known<'m> {
    /// A node of the graph, by name.
    Node(&'m str),
    Constant(&'m TensorProto),
    /// A result of `RestoreV2`: the key, and the part that is asked for.
    Restored(&'m str, &'m str),
}

/// The nodes of a graph or function, with what is known of the function's arguments.
struct View<'m, 'v> {
    by_name: &'v HashMap<&'m str, &'m Node>,
    arguments: HashMap<&'m str, Known<'m>>,
    is_function: bool,
}

impl<'m> Resources<'m> {
    /// Returns the resources of a graph without a checkpoint.
    pub(super) fn none(external_data: &ExternalData) -> Resources<'m> {
        Resources {
            external_data: external_data.clone(),
            max_bytes: u64::MAX,
            bundle: Checkpoint::Closed,
            keys: HashMap::new(),
            tables: HashMap::new(),
            files: HashMap::new(),
        }
    }

    /// Finds what the variables and tables of a graph hold. Nothing is read from other files yet.
    pub(super) fn of(
        meta: &'m MetaGraph,
        graph: &'m Graph,
        external_data: &ExternalData,
        limits: &ReadLimits,
    ) -> Resources<'m> {
        let mut found = Resources::none(external_data);
        found.max_bytes = limits.bytes;
        for asset in &meta.assets {
            if let Some(info) = &asset.info {
                let node = info.name.split(':').next().unwrap_or(&info.name);
                found.files.insert(node, &asset.filename);
            }
        }
        let library = graph
            .library
            .as_ref()
            .map_or(&[][..], |library| &library.function);
        let functions: HashMap<&str, &Function> = library
            .iter()
            .filter_map(|function| Some((function.signature.as_ref()?.name.as_str(), function)))
            .collect();
        let by_name: HashMap<&str, &Node> = graph
            .node
            .iter()
            .map(|node| (node.name.as_str(), node))
            .collect();
        let view = View {
            by_name: &by_name,
            arguments: HashMap::new(),
            is_function: false,
        };
        let mut n_left = MAX_NODES;
        found.scan(&graph.node, &view, &functions, 0, &mut n_left);
        found
    }

    /// Looks for what assigns variables and fills tables.
    fn scan(
        &mut self,
        nodes: &'m [Node],
        view: &View<'m, '_>,
        functions: &HashMap<&'m str, &'m Function>,
        depth: usize,
        n_left: &mut usize,
    ) {
        for node in nodes {
            let Some(left) = n_left.checked_sub(1) else {
                return;
            };
            *n_left = left;
            let input = |index: usize| view.known(node.input.get(index)?);
            match node.op.as_str() {
                "AssignVariableOp" | "Assign" => {
                    if let (Some(Known::Node(variable)), Some(Known::Restored(key, part))) =
                        (input(0), input(1))
                    {
                        self.keys.insert(variable, (key, part));
                    }
                }
                "LookupTableImportV2"
                | "LookupTableImport"
                | "InitializeTableV2"
                | "InitializeTable" => {
                    if let (
                        Some(Known::Node(table)),
                        Some(Known::Constant(keys)),
                        Some(Known::Constant(values)),
                    ) = (input(0), input(1), input(2))
                    {
                        self.tables
                            .insert(table, TableSource::Constants(keys, values));
                    }
                }
                "InitializeTableFromTextFileV2" | "InitializeTableFromTextFile" => {
                    let file = input(1).and_then(|file| match file {
                        Known::Node(node) => self.files.get(node).copied(),
                        _ => None,
                    });
                    if let (Some(Known::Node(table)), Some(file)) = (input(0), file) {
                        self.tables.insert(table, TableSource::File(file, node));
                    }
                }
                _ => {
                    let called = called(node).or(Some(node.op.as_str()));
                    let Some(function) = called.and_then(|name| functions.get(name)) else {
                        continue;
                    };
                    if depth >= MAX_DEPTH {
                        continue;
                    }
                    self.call(node, function, view, functions, depth, n_left);
                }
            }
        }
    }

    fn call(
        &mut self,
        node: &'m Node,
        function: &'m Function,
        view: &View<'m, '_>,
        functions: &HashMap<&'m str, &'m Function>,
        depth: usize,
        n_left: &mut usize,
    ) {
        let Some(signature) = &function.signature else {
            return;
        };
        let arguments = signature.input.iter().zip(&node.input);
        let arguments: HashMap<&str, Known<'m>> = arguments
            .filter_map(|(argument, input)| Some((argument.name.as_str(), view.known(input)?)))
            .collect();
        if arguments.is_empty() {
            return;
        }
        let by_name: HashMap<&str, &Node> = function
            .node
            .iter()
            .map(|node| (node.name.as_str(), node))
            .collect();
        let inner = View {
            by_name: &by_name,
            arguments,
            is_function: true,
        };
        self.scan(&function.node, &inner, functions, depth + 1, n_left);
    }

    /// Returns the key under which the checkpoint has a variable, or the part that it is.
    pub(super) fn key(&self, node: &str) -> Result<Option<Vec<u8>>, Problem> {
        let Some((key, part)) = self.keys.get(node) else {
            return Ok(None);
        };
        let part = Slice::parse(part).map_err(|message| Problem::new(codes::MODEL_VALUE, message));
        Ok(Some(match part? {
            None => key.as_bytes().to_vec(),
            Some(part) => part.key(key),
        }))
    }

    /// Reads the value of a variable. There is none if its file can't be read, and an error said so before.
    pub(super) fn variable(&mut self, node: &str) -> Result<Option<Tensor>, Problem> {
        let name = shown(node).into_owned();
        let Some((key, part)) = self.keys.get(node) else {
            let message = format!(
                "reads the variable '{name}', for which the model has no value: nothing restores it"
            );
            return Err(Problem::new(codes::MODEL_VALUE, message));
        };
        if matches!(self.bundle, Checkpoint::Closed) {
            self.bundle = Checkpoint::Failed;
            if matches!(self.external_data, ExternalData::Unknown) {
                let message = "the values of variables lie in other files of the SavedModel's directory, which is unknown";
                let problem = Problem::new(codes::EXTERNAL_DATA, message);
                return Err(problem.help(
                    "give the path of the directory, not the bytes of its 'saved_model.pb'; a frozen graph can be given as bytes",
                ));
            }
            let opened = Bundle::open(&self.external_data, VARIABLES, self.max_bytes)?;
            self.bundle = Checkpoint::Open(opened);
        }
        let Checkpoint::Open(bundle) = &mut self.bundle else {
            return Ok(None);
        };
        let part = Slice::parse(part).map_err(|message| Problem::new(codes::MODEL_VALUE, message));
        let tensor = part.and_then(|part| bundle.tensor(key, part.as_ref()));
        tensor.map_err(|problem| problem.of(&format!("variable '{name}'")))
    }

    /// Returns the file that a constant stands for, relative to the model's directory.
    pub(super) fn file(&self, node: &str) -> Option<String> {
        let name = self.files.get(node)?;
        Some(format!("{}/{name}", assets::FOLDER))
    }

    /// Returns what a table maps.
    pub(super) fn table(&self, node: &str) -> Result<Table, Problem> {
        match self.tables.get(node) {
            Some(TableSource::Constants(keys, values)) => Ok(Table {
                keys: element::dense(keys)?,
                values: element::dense(values)?,
            }),
            Some(TableSource::File(file, node)) => {
                assets::table(&self.external_data, file, node, self.max_bytes)
            }
            None => {
                let name = shown(node);
                let message = format!(
                    "looks up in the table '{name}', which nothing here fills with constants"
                );
                Err(Problem::new(codes::MODEL_VALUE, message))
            }
        }
    }
}

/// Returns a tensor as the attribute of a constant.
pub(super) fn dense(tensor: &Tensor) -> Attribute {
    attributes::dense(tensor)
}

/// Returns the function that a node calls.
pub(super) fn called(node: &Node) -> Option<&str> {
    match node.attr.get("f")?.value.as_ref()? {
        Value::Func(function) => Some(&function.name),
        _ => None,
    }
}

impl<'m> View<'m, '_> {
    /// Returns what an input of a node is, through identities.
    fn known(&self, input: &'m str) -> Option<Known<'m>> {
        let mut input = input;
        for _ in 0..MAX_DEPTH {
            let (name, output) = match self.is_function {
                true => match input.split_once(':') {
                    None => return self.arguments.get(input).copied(),
                    Some((name, rest)) => {
                        let index = rest.rsplit_once(':').map_or("0", |(_, index)| index);
                        (name, index)
                    }
                },
                false => input.split_once(':').unwrap_or((input, "0")),
            };
            let node = self.by_name.get(name)?;
            match node.op.as_str() {
                "Identity" => input = node.input.first()?,
                "Const" if self.is_function => return Some(Known::Constant(tensor(node)?)),
                // Which file a constant of the graph stands for is told by its name.
                "Const" => {
                    let value = tensor(node)?;
                    let is_path = value.dtype == 7
                        && value
                            .shape
                            .as_ref()
                            .is_none_or(|shape| shape.dim.is_empty());
                    return Some(match is_path {
                        true => Known::Node(&node.name),
                        false => Known::Constant(value),
                    });
                }
                "RestoreV2" => {
                    let names = self.constant(node.input.get(1)?)?;
                    let at = output.parse::<usize>().ok()?;
                    let key = std::str::from_utf8(names.string_val.get(at)?).ok()?;
                    let parts = node.input.get(2).and_then(|input| self.constant(input));
                    let parts = parts.map_or(&[][..], |parts| &parts.string_val);
                    // One stands for all behind it.
                    let part = parts.get(at).or(parts.last());
                    let part = part.map_or(Ok(""), |part| std::str::from_utf8(part)).ok()?;
                    return Some(Known::Restored(key, part));
                }
                _ if self.is_function => return None,
                _ => return Some(Known::Node(&node.name)),
            }
        }
        None
    }

    fn constant(&self, input: &'m str) -> Option<&'m TensorProto> {
        let name = input.split(':').next()?;
        match self.by_name.get(name) {
            Some(node) if node.op == "Const" => tensor(node),
            _ => match self.arguments.get(input)? {
                Known::Constant(value) => Some(value),
                _ => None,
            },
        }
    }
}

/// Returns the tensor of a constant.
pub(super) fn tensor(node: &Node) -> Option<&TensorProto> {
    match node.attr.get("value")?.value.as_ref()? {
        Value::Tensor(tensor) => Some(tensor),
        _ => None,
    }
}
