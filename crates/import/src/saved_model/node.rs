//! Nodes as operations: operands, attributes and results; those that are none, such as reads of variables.

use std::collections::HashMap;

use tfrt_ir::{Attribute, OpState, Type, ValueId};

use super::element;
use super::graph::{Bound, Frame, Importer, InputRef, operation_name};
use super::proto::{AttrValue, Function, Node, OpDef, Value};
use super::{resources, switch};
use crate::codes;
use crate::onnx::problem::{Problem, shown};
use crate::onnx::{ElementType, Tensor, TensorData};

/// Operations that give their operands.
const IDENTITIES: &[&str] = &[
    "Identity",
    "IdentityN",
    "PreventGradient",
    "Snapshot",
    "StopGradient",
    "RefIdentity",
];

/// Operations with effects alone that don't change what a model calculates: what is checked, printed or counted.
const LEFT_OUT: &[&str] = &[
    "Assert",
    "Print",
    "PrintV2",
    "MergeV2Checkpoints",
    "WriteSummary",
    "DisableCopyOnRead",
];

/// Operations of loops of TensorFlow 1, whose turns are frames.
const LOOP_FRAMES: &[&str] = &[
    "Enter",
    "Exit",
    "NextIteration",
    "LoopCond",
    "RefEnter",
    "RefExit",
    "RefNextIteration",
];

/// Operations that change a variable or a table.
const WRITERS: &[&str] = &[
    "LookupTableImport",
    "LookupTableInsert",
    "LookupTableRemove",
    "ResourceApply",
    "ResourceScatter",
    "ResourceSparseApply",
    "ResourceStridedSliceAssign",
    "ResourceCountUpTo",
];

/// Returns the type of a tensor of which nothing is known.
pub(super) fn unknown() -> Type {
    Type::unranked(Type::dialect(crate::onnx::UNKNOWN))
}

/// Refuses loops of TensorFlow 1.
pub(super) fn refuse_loop_frames(node: &Node) -> Result<(), Problem> {
    if !LOOP_FRAMES.contains(&node.op.as_str()) {
        return Ok(());
    }
    let frame = match node
        .attr
        .get("frame_name")
        .and_then(|attr| attr.value.as_ref())
    {
        Some(Value::Text(name)) => format!(" '{}'", shown(&String::from_utf8_lossy(name))),
        _ => String::new(),
    };
    let message =
        format!("is part of the loop{frame} of TensorFlow 1, expected the operation While");
    let problem = Problem::new(codes::MODEL_OPERATOR, message);
    Err(problem.help("save the model with tf.compat.v1.enable_control_flow_v2()"))
}

impl<'m> Importer<'m> {
    /// Expands a node whose inputs were expanded; returns its results.
    pub(super) fn node(
        &mut self,
        frame: &mut Frame<'m>,
        index: usize,
    ) -> Result<Vec<Bound>, Problem> {
        let nodes: &'m [Node] = frame.nodes;
        let node = &nodes[index];
        if !frame.is_function
            && let Some(argument) = frame.arguments.get(node.name.as_str())
        {
            return Ok(vec![argument.clone()]);
        }
        if switch::is_merge(node) {
            return self.merge(frame, node);
        }
        let mut inputs = Vec::with_capacity(node.input.len());
        for input in &node.input {
            match frame.reference(input)? {
                InputRef::Control(_) => {}
                InputRef::Argument(_) if input.starts_with('^') => {}
                reference => inputs.push(self.bound(frame, reference)?),
            }
        }
        if inputs.contains(&Bound::Failed) {
            return Ok(vec![Bound::Failed]);
        }
        let path = self.path(frame, node);
        match node.op.as_str() {
            op if IDENTITIES.contains(&op) => Ok(inputs),
            "NoOp" => Ok(Vec::new()),
            op if LEFT_OUT.contains(&op) => {
                *self.left_out.entry(op).or_default() += 1;
                Ok(Vec::new())
            }
            "Placeholder" => Err(Problem::new(
                codes::MODEL_VALUE,
                "is no input of the signature, and nothing else feeds it",
            )),
            "PlaceholderWithDefault" => Ok(inputs),
            "Const" => self.constant_node(node, &path),
            "VarHandleOp" => Ok(vec![Bound::Variable(resource_name(frame, node))]),
            "VariableV2" | "Variable" => {
                let value = self.variable(&node.name)?;
                Ok(vec![value.map_or(Bound::Failed, Bound::Value)])
            }
            "HashTableV2" | "HashTable" | "MutableHashTableV2" | "MutableHashTable" => {
                Ok(vec![Bound::Table(resource_name(frame, node))])
            }
            "Switch" | "RefSwitch" => Ok(vec![inputs[0].clone(), inputs[0].clone()]),
            "If" | "StatelessIf" => self.branches(node, &inputs, &path),
            "Case" | "StatelessCase" => self.cases(node, &inputs, &path),
            "While" | "StatelessWhile" => self.turns(node, &inputs, &path),
            "PartitionedCall" | "StatefulPartitionedCall" => {
                let name = resources::called(node).ok_or_else(|| missing("f"))?;
                self.call(name, inputs, &path)
            }
            op if self.functions.contains_key(op) => self.call(op, inputs, &path),
            _ => self.operation(node, &inputs, &path),
        }
    }

    /// Expands a call of a function.
    pub(super) fn call(
        &mut self,
        name: &'m str,
        inputs: Vec<Bound>,
        path: &str,
    ) -> Result<Vec<Bound>, Problem> {
        let Some(&function) = self.functions.get(name) else {
            let message = format!(
                "calls the function '{}', which the model does not have",
                shown(name)
            );
            return Err(Problem::new(codes::MODEL_FUNCTION, message));
        };
        if self.open.contains(&name) {
            let message = format!("calls the function '{}', which calls itself", shown(name));
            return Err(Problem::new(codes::MODEL_FUNCTION, message));
        }
        self.expect_shallow()?;
        let signature = function
            .signature
            .as_deref()
            .ok_or_else(|| missing("signature"))?;
        if signature.input.len() != inputs.len() {
            let (found, expected) = (inputs.len(), signature.input.len());
            let message = format!(
                "has {found} inputs, the function '{}' takes {expected}",
                shown(name)
            );
            return Err(Problem::new(codes::MODEL_FUNCTION, message));
        }
        // A call costs something even if its function is empty.
        if !self.count_call(function.node.len().max(1))? {
            return Ok(vec![Bound::Failed; signature.output.len()]);
        }
        let names = signature
            .input
            .iter()
            .map(|argument| argument.name.as_str());
        let arguments = names.zip(inputs).collect();
        let mut frame = Frame::new(&function.node, arguments, true, path.to_owned())?;
        self.open.push(name);
        let results = self.results(function, signature, &mut frame);
        self.open.pop();
        results
    }

    fn results(
        &mut self,
        function: &'m Function,
        signature: &'m OpDef,
        frame: &mut Frame<'m>,
    ) -> Result<Vec<Bound>, Problem> {
        let mut results = Vec::with_capacity(signature.output.len());
        for output in &signature.output {
            let name = shown(&output.name);
            let value = function.ret.get(&output.name).ok_or_else(|| {
                let message = format!("calls a function that says nothing of its output '{name}'");
                Problem::new(codes::MODEL_FUNCTION, message)
            })?;
            let reference = frame.reference(value)?;
            results.push(self.input(frame, reference)?);
        }
        for node in function.control_ret.values() {
            if let Some(&index) = frame.by_name.get(node.as_str()) {
                let reference = InputRef::Control(index);
                self.input(frame, reference)?;
            }
        }
        Ok(results)
    }

    fn constant_node(&mut self, node: &'m Node, path: &str) -> Result<Vec<Bound>, Problem> {
        let value = match self.resources.file(&node.name) {
            Some(file) => resources::dense(&Tensor {
                name: String::new(),
                element: ElementType::String,
                dims: Vec::new(),
                data: TensorData::Strings(vec![file.as_bytes().into()]),
            }),
            None => {
                let tensor = resources::tensor(node).ok_or_else(|| missing("value"))?;
                element::dense(tensor)?
            }
        };
        Ok(vec![Bound::Value(self.constant(value, path)?)])
    }

    /// Makes an operation of a node.
    fn operation(
        &mut self,
        node: &'m Node,
        inputs: &[Bound],
        path: &str,
    ) -> Result<Vec<Bound>, Problem> {
        if let Some(results) = self.assignment(node, inputs, path)? {
            return Ok(results);
        }
        let mut operands = Vec::with_capacity(inputs.len());
        let mut op = node.op.as_str();
        let writes = WRITERS.iter().any(|writer| op.starts_with(writer));
        for (index, input) in inputs.iter().enumerate() {
            match (input, op) {
                (Bound::Variable(name), _) if writes => {
                    let message = format!(
                        "changes the variable '{}' in a way that nothing here runs: '{}'",
                        shown(name),
                        shown(op)
                    );
                    return Err(Problem::new(codes::MODEL_OPERATOR, message));
                }
                (Bound::Table(name), _) if writes => {
                    let message = format!(
                        "changes the table '{}': expected one that stays as it is",
                        shown(name)
                    );
                    return Err(Problem::new(codes::MODEL_OPERATOR, message));
                }
                (Bound::Value(value), _) => operands.push(*value),
                (Bound::Variable(name), "ReadVariableOp") => {
                    let value = self.variable(name)?;
                    return Ok(vec![value.map_or(Bound::Failed, Bound::Value)]);
                }
                (
                    Bound::Variable(name),
                    "VariableShape" | "ResourceGather" | "ResourceGatherNd",
                ) => {
                    let Some(value) = self.variable(name)? else {
                        return Ok(vec![Bound::Failed]);
                    };
                    operands.push(value);
                }
                (Bound::Table(name), "LookupTableFindV2" | "LookupTableFind") if index == 0 => {
                    let table = self.resources.table(name)?;
                    operands.push(self.constant(table.keys, path)?);
                    operands.push(self.constant(table.values, path)?);
                }
                (Bound::Table(name), "LookupTableSizeV2") => {
                    let table = self.resources.table(name)?;
                    let Attribute::Dense(keys) = &table.keys else {
                        return Err(missing("keys"));
                    };
                    let n = keys.n_elements().unwrap_or(0).to_le_bytes();
                    let size = Tensor {
                        name: String::new(),
                        element: ElementType::I64,
                        dims: Vec::new(),
                        data: TensorData::Bytes(n.to_vec().into()),
                    };
                    let value = self.constant(resources::dense(&size), path)?;
                    return Ok(vec![Bound::Value(value)]);
                }
                (Bound::Variable(name) | Bound::Table(name), op) => {
                    let message = format!(
                        "does with the resource '{}' what nothing here runs: '{}'",
                        shown(name),
                        shown(op)
                    );
                    return Err(Problem::new(codes::MODEL_OPERATOR, message));
                }
                (Bound::Failed, _) => return Ok(vec![Bound::Failed]),
            }
        }
        // Of a value, which a variable is here.
        op = match op {
            "VariableShape" => "Shape",
            "ResourceGather" => "Gather",
            "ResourceGatherNd" => "GatherNd",
            "LookupTableFind" => "LookupTableFindV2",
            op => op,
        };
        let n_results = n_results(&self.definitions, node)?;
        let mut state = OpState::new(operation_name(op)?)
            .operands(operands)
            .location(self.location(path));
        for (name, value) in &node.attr {
            if name.starts_with('_') {
                continue;
            }
            if name.is_empty() || name.contains('\0') {
                let message = format!("expected the name of an attribute, found '{}'", shown(name));
                return Err(Problem::new(codes::MODEL_ATTRIBUTE, message));
            }
            let value = attribute(value)
                .map_err(|problem| problem.of(&format!("attribute '{}'", shown(name))))?;
            if let Some(value) = value {
                state = state.attribute(name.as_str(), value);
            }
        }
        let state = state.results((0..n_results).map(|_| unknown()));
        let values = self.add(state)?;
        Ok(values.into_iter().map(Bound::Value).collect())
    }

    /// Returns inputs that are tensors.
    pub(super) fn value(bound: &Bound) -> Result<ValueId, Problem> {
        match bound {
            Bound::Value(value) => Ok(*value),
            Bound::Variable(name) | Bound::Table(name) => {
                let message = format!("takes the resource '{}', expected a tensor", shown(name));
                Err(Problem::new(codes::MODEL_TYPE, message))
            }
            Bound::Failed => Err(Problem::new(codes::MODEL_VALUE, "takes what nothing makes")),
        }
    }
}

/// Makes the error that a node lacks an attribute, or has one of another kind.
pub(super) fn missing(name: &str) -> Problem {
    let message = format!("has no attribute '{name}', or one of another kind");
    Problem::new(codes::MODEL_ATTRIBUTE, message)
}

/// Returns the name of a resource: in a function what calls share, in a graph the node.
fn resource_name(frame: &Frame<'_>, node: &Node) -> String {
    let shared = match node
        .attr
        .get("shared_name")
        .and_then(|attr| attr.value.as_ref())
    {
        Some(Value::Text(text)) => String::from_utf8_lossy(text).into_owned(),
        _ => String::new(),
    };
    match frame.is_function && !shared.is_empty() {
        true => shared,
        false => node.name.clone(),
    }
}

/// Reads an attribute; `None` for one that says that nothing is known.
fn attribute(attr: &AttrValue) -> Result<Option<Attribute>, Problem> {
    let integer = |value: i64| Attribute::integer(value, Type::I64);
    let shape = |shape: &super::proto::TensorShape| {
        Attribute::array(shape.dim.iter().map(|dim| integer(dim.size)).collect())
    };
    let Some(value) = &attr.value else {
        return Ok(None);
    };
    Ok(Some(match value {
        Value::Text(text) => Attribute::string(text),
        Value::Int(value) => integer(*value),
        Value::Float(value) => Attribute::f32(*value),
        Value::Bool(value) => integer((*value).into()),
        Value::Type(number) => element::type_attribute(*number)?,
        Value::Shape(of) if of.unknown_rank => return Ok(None),
        Value::Shape(of) => shape(of),
        Value::Tensor(tensor) => element::dense(tensor)?,
        Value::Func(function) => Attribute::string(&function.name),
        Value::Placeholder(name) => {
            let message = format!(
                "stands for the attribute '{}' of a function's caller",
                shown(name)
            );
            return Err(Problem::new(codes::MODEL_ATTRIBUTE, message));
        }
        Value::List(list) => {
            let mut all: Vec<Attribute> = list.s.iter().map(Attribute::string).collect();
            all.extend(list.i.iter().map(|value| integer(*value)));
            all.extend(list.f.iter().map(|value| Attribute::f32(*value)));
            all.extend(list.b.iter().map(|value| integer((*value).into())));
            for number in &list.ty {
                all.push(element::type_attribute(*number)?);
            }
            if list.shape.iter().any(|shape| shape.unknown_rank) {
                return Ok(None);
            }
            all.extend(list.shape.iter().map(shape));
            Attribute::array(all)
        }
    }))
}

/// Returns the number of values that an output of a node stands for.
fn width(node: &Node, number: &str, list: &str) -> Option<usize> {
    let attr = |name: &str| node.attr.get(name)?.value.as_ref();
    match (number, list) {
        ("", "") => Some(1),
        ("", list) => match attr(list)? {
            Value::List(list) => Some(list.ty.len()),
            _ => None,
        },
        (number, _) => match attr(number)? {
            Value::Int(n) => usize::try_from(*n).ok(),
            _ => None,
        },
    }
}

/// The outputs of operations with several, for graphs that don't describe their operations: names, or the attribute that
/// says how many there are.
const OUTPUTS: &[(&str, &[&str], &str, &str)] = &[
    (
        "FusedBatchNorm",
        &[
            "y",
            "batch_mean",
            "batch_variance",
            "reserve_space_1",
            "reserve_space_2",
        ],
        "",
        "",
    ),
    (
        "FusedBatchNormV2",
        &[
            "y",
            "batch_mean",
            "batch_variance",
            "reserve_space_1",
            "reserve_space_2",
        ],
        "",
        "",
    ),
    (
        "FusedBatchNormV3",
        &[
            "y",
            "batch_mean",
            "batch_variance",
            "reserve_space_1",
            "reserve_space_2",
            "reserve_space_3",
        ],
        "",
        "",
    ),
    ("MaxPoolWithArgmax", &["output", "argmax"], "", ""),
    ("ShapeN", &["output"], "N", ""),
    ("Split", &["output"], "num_split", ""),
    ("SplitV", &["output"], "num_split", ""),
    ("TopK", &["values", "indices"], "", ""),
    ("TopKV2", &["values", "indices"], "", ""),
    ("Unique", &["y", "idx"], "", ""),
    ("UniqueV2", &["y", "idx"], "", ""),
    ("UniqueWithCounts", &["y", "idx", "count"], "", ""),
    ("Unpack", &["output"], "num", ""),
];

/// Returns the number of a node's results.
fn n_results(definitions: &HashMap<&str, &OpDef>, node: &Node) -> Result<usize, Problem> {
    let unknown = || {
        let message = "does not say how many results it has";
        Problem::new(codes::MODEL_ATTRIBUTE, message)
    };
    /// The most results of one node.
    const MOST: usize = 1 << 16;
    let n = match definitions.get(node.op.as_str()) {
        Some(definition) => definition.output.iter().try_fold(0_usize, |n, output| {
            n.checked_add(width(node, &output.number_attr, &output.type_list_attr)?)
        }),
        None => match OUTPUTS.iter().find(|(op, ..)| *op == node.op) {
            Some((_, names, "", "")) => Some(names.len()),
            Some((_, _, number, list)) => width(node, number, list),
            None => Some(1),
        },
    };
    n.filter(|n| *n <= MOST).ok_or_else(unknown)
}

/// Returns the place of the first value of an output among the results of a node.
pub(super) fn offset(
    definitions: &HashMap<&str, &OpDef>,
    functions: &HashMap<&str, &Function>,
    node: &Node,
    output: &str,
) -> Option<usize> {
    let called = functions.get(node.op.as_str());
    let definition = called
        .and_then(|function| function.signature.as_deref())
        .or(definitions.get(node.op.as_str()).copied());
    if let Some(definition) = definition {
        let mut at = 0_usize;
        for own in &definition.output {
            if own.name == output {
                return Some(at);
            }
            at = at.checked_add(width(node, &own.number_attr, &own.type_list_attr)?)?;
        }
        return None;
    }
    match OUTPUTS.iter().find(|(op, ..)| *op == node.op) {
        Some((_, names, "", "")) => names.iter().position(|name| *name == output),
        _ => Some(0),
    }
}
