//! Operations in order, with what goes in and out; of models with the shapes that follow from their inputs'.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use serde::Serialize;
use tfrt::compiler::pipeline::Pipeline;
use tfrt::ir::module::{OpId, ValueId};
use tfrt::ir::visible::name;
use tfrt::ir::{Attribute, Module};
use tfrt::{OpenOptions, Warnings, input};

use crate::commands::check::place;

/// The prefixes of operations of models.
const PREFIXES: [&str; 4] = ["cpu.onnx.", "cpu.graph.", "onnx.", "graph."];
/// The length of the longest attribute that is shown.
const MAX_ATTRIBUTE: usize = 60;
/// The attributes of operations and of functions that hold symbolic dimensions.
const DIMENSIONS: [&str; 2] = ["model.shapes", "model.input_dims"];

/// The graph of a model.
#[derive(Serialize)]
pub struct Graph {
    schema: &'static str,
    file: String,
    functions: Vec<Function>,
    /// The number of occurrences of each operation.
    counts: BTreeMap<String, usize>,
    /// The kernels that a quantised model becomes: of those on integers, and of those from and to floats, how many.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    quantized: BTreeMap<String, usize>,
}

/// The kernels that calculate with integers what is quantised, and those from and to floats.
const ON_INTEGERS: [&str; 9] = [
    "qconv",
    "QLinearConv",
    "ConvInteger",
    "quantized_dot",
    "QLinearMatMul",
    "integer_dot",
    "MatMulInteger",
    "qadd",
    "microsoft.DynamicQuantizeLSTM",
];
const BETWEEN: [&str; 3] = ["quantize", "DynamicQuantizeLinear", "dequantize"];

#[derive(Serialize)]
struct Function {
    name: String,
    inputs: Vec<Value>,
    results: Vec<usize>,
    nodes: Vec<Node>,
}

/// A value, by its number in the function.
#[derive(Serialize)]
struct Value {
    id: usize,
    #[serde(rename = "type")]
    ty: String,
    /// The dimensions, where the type does not tell all: numbers, formulas of symbols, `?` where nothing is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<Vec<String>>,
}

#[derive(Serialize)]
struct Node {
    operation: String,
    /// The path of the node in the graph.
    place: String,
    inputs: Vec<usize>,
    outputs: Vec<Value>,
    attributes: Vec<(String, String)>,
    is_constant: bool,
}

/// Numbers of values, in the order in which they are met.
#[derive(Default)]
struct Numbers(HashMap<ValueId, usize>);

impl Numbers {
    fn of(&mut self, value: ValueId) -> usize {
        let next = self.0.len();
        *self.0.entry(value).or_insert(next)
    }
}

impl Graph {
    /// Makes the view of a module, which becomes kernels by the options of opening it.
    pub fn new(file: &str, mut module: Module, opening: &OpenOptions) -> Graph {
        let quantized = quantized(&module, opening);
        let pass = Pipeline::parse("graph-infer").expect("it is a pass");
        // It only adds what it finds.
        let _ = pass.run(&mut module);
        let module = &module;
        let mut graph = Graph {
            schema: "tfrt.inspect-graph/1",
            file: file.to_owned(),
            functions: Vec::new(),
            counts: BTreeMap::new(),
            quantized,
        };
        for function in module.children(module.top()) {
            if let Some(name) = module.symbol_name(function) {
                let read = graph.function(module, function, name);
                graph.functions.push(read);
            }
        }
        graph
    }

    fn function(&mut self, module: &Module, function: OpId, name: &str) -> Function {
        let mut numbers = Numbers::default();
        let mut read = Function {
            name: name.to_owned(),
            inputs: Vec::new(),
            results: Vec::new(),
            nodes: Vec::new(),
        };
        let region = module.op(function).regions().first();
        if let Some(entry) = region.and_then(|region| module.entry_block(*region)) {
            let arguments = module.block(entry).arguments();
            read.inputs = Value::list(module, &mut numbers, function, arguments);
        }
        module.walk_pre_order(function, &mut |op| {
            let operation = module.op(op);
            let is_end = matches!(operation.name().as_str(), "func.return" | "tfrt.return");
            let inputs: Vec<usize> = operation
                .operands()
                .iter()
                .map(|value| numbers.of(*value))
                .collect();
            if is_end {
                read.results = inputs;
                return;
            }
            if op == function {
                return;
            }
            let name = short(operation.name().as_str());
            *self.counts.entry(name.to_owned()).or_default() += 1;
            let attributes = operation.attributes().iter();
            let attributes = attributes.filter(|(name, _)| !DIMENSIONS.contains(&name.as_str()));
            read.nodes.push(Node {
                operation: name.to_owned(),
                place: place(operation.location()),
                inputs,
                outputs: Value::list(module, &mut numbers, op, operation.results()),
                attributes: attributes
                    .map(|(name, value)| (name.to_string(), attribute(value)))
                    .collect(),
                is_constant: name == "Constant",
            });
        });
        read
    }

    /// Returns the lines that people are shown.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).expect("a String takes all text");
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        let n: usize = self.counts.values().sum();
        let mut counts: Vec<(&String, &usize)> = self.counts.iter().collect();
        counts.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        let counts: Vec<String> = counts
            .iter()
            .map(|(operation, n)| format!("{n} {}", name(operation)))
            .collect();
        let file = name(&self.file);
        writeln!(text, "{file}: {n} operations: {}", counts.join(", "))?;
        if !self.quantized.is_empty() {
            let listed = |names: &[&str]| {
                let counts = names
                    .iter()
                    .filter_map(|name| Some(format!("{} {name}", self.quantized.get(*name)?)));
                match counts.collect::<Vec<_>>() {
                    counts if counts.is_empty() => "none".to_owned(),
                    counts => counts.join(", "),
                }
            };
            let (integers, between) = (listed(&ON_INTEGERS), listed(&BETWEEN));
            writeln!(
                text,
                "kernels on integers: {integers}; from and to floats: {between}"
            )?;
        }
        for function in &self.functions {
            let list = |values: &[Value]| {
                let shown = values.iter().map(|value| match &value.dimensions {
                    None => format!("%{}: {}", value.id, value.ty),
                    Some(all) => {
                        let all = all.join(", ");
                        format!("%{}: {} [{}]", value.id, value.ty, name(&all))
                    }
                });
                shown.collect::<Vec<_>>().join(", ")
            };
            let inputs = list(&function.inputs);
            writeln!(text, "\n{}({inputs})", name(&function.name))?;
            for node in &function.nodes {
                let inputs: Vec<String> = node.inputs.iter().map(|id| format!("%{id}")).collect();
                let inputs = inputs.join(", ");
                write!(
                    text,
                    "  {} = {}({inputs})",
                    list(&node.outputs),
                    name(&node.operation)
                )?;
                let attributes = node.attributes.iter();
                let attributes: Vec<String> = attributes
                    .map(|(name, value)| format!("{name} = {value}"))
                    .collect();
                if !attributes.is_empty() {
                    write!(text, " {{{}}}", name(&attributes.join(", ")))?;
                }
                writeln!(text, "  {}", name(&node.place))?;
            }
            let results: Vec<String> = function.results.iter().map(|id| format!("%{id}")).collect();
            writeln!(text, "  returns {}", results.join(", "))?;
        }
        Ok(())
    }
}

/// Counts the kernels that a model becomes of what is quantised in it; empty for one that is not quantised, or that becomes
/// none.
fn quantized(module: &Module, opening: &OpenOptions) -> BTreeMap<String, usize> {
    let mut is_quantized = false;
    module.walk_pre_order(module.top(), &mut |op| {
        let name = module.op(op).name();
        is_quantized |= ["Quantize", "QLinear", "QGemm", "Integer"]
            .iter()
            .any(|word| name.contains(word));
    });
    let mut counts = BTreeMap::new();
    if !is_quantized || !input::is_graph(module) {
        return counts;
    }
    // What is wrong with it is told where it is opened.
    let opening = opening.clone().warnings(Warnings::default());
    let Ok(lowered) = input::lower_as(module.clone(), &opening) else {
        return counts;
    };
    lowered.walk_pre_order(lowered.top(), &mut |op| {
        let name = lowered.op(op).name().as_str();
        let own = ["cpu.fused.", "cpu.graph.", "cpu.onnx."]
            .iter()
            .find_map(|prefix| name.strip_prefix(prefix));
        if let Some(own) = own.filter(|own| ON_INTEGERS.contains(own) || BETWEEN.contains(own)) {
            *counts.entry(own.to_owned()).or_default() += 1;
        }
    });
    counts
}

impl Value {
    /// Returns the values that an operation makes, or a function takes.
    fn list(module: &Module, numbers: &mut Numbers, owner: OpId, values: &[ValueId]) -> Vec<Value> {
        let owner = module.op(owner);
        let stated = DIMENSIONS.iter().find_map(|name| owner.attribute(name));
        let stated = stated.and_then(Attribute::as_array).unwrap_or(&[]);
        let values = values.iter().enumerate();
        values
            .map(|(position, value)| Value {
                id: numbers.of(*value),
                ty: module.value_type(*value).to_string(),
                dimensions: stated.get(position).and_then(dimensions),
            })
            .collect()
    }
}

/// Dimensions as text, unless they are numbers alone, which the type has.
fn dimensions(stated: &Attribute) -> Option<Vec<String>> {
    let stated = stated.as_array()?;
    let texts = stated.iter().map(|dimension| match dimension.as_str() {
        Some("") => "?".to_owned(),
        Some(name) => name.to_owned(),
        None => attribute(dimension),
    });
    let has_name = stated.iter().any(|dimension| dimension.as_str().is_some());
    has_name.then(|| texts.collect())
}

/// Returns the name of an operation in the model.
fn short(name: &str) -> &str {
    let mut prefixes = PREFIXES.iter();
    prefixes
        .find_map(|prefix| name.strip_prefix(prefix))
        .unwrap_or(name)
}

/// Returns an attribute in a few words: elements are many.
fn attribute(value: &Attribute) -> String {
    if let Attribute::Dense(dense) = value {
        return format!("{}", dense.ty);
    }
    if let Some(items) = value.as_array()
        && items.len() > MAX_ATTRIBUTE
    {
        return format!("{} items", items.len());
    }
    let text = value.to_string();
    match text.char_indices().nth(MAX_ATTRIBUTE) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
