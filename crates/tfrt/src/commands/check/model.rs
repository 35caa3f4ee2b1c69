//! Problems that keep a model from running: operations that have no kernel, all of them with their nodes, and what each
//! stage has against the rest.

use std::collections::BTreeMap;

use serde::Serialize;
use tfrt::compiler::codes;
use tfrt::compiler::pipeline::Pipeline;
use tfrt::import::onnx::UnknownOperator;
use tfrt::input::{self, Input};
use tfrt::ir::{Attribute, Diagnostic, Diagnostics, Location, Module, OpId, ValueId, similar};
use tfrt::ops::names::onnx as names;
use tfrt::{Model, OpenError, OpenOptions, Runtime, Warnings};

mod formats;

/// Nodes that are named of an operation that is missing; all are counted.
const MAX_NODES: usize = UnknownOperator::MAX_NODES;
/// Signatures that are shown of an operation that is missing.
const MAX_TYPES: usize = 3;

/// The prefix of operations in dialect `onnx`, and that of their kernels.
const DIALECT: (&str, &str) = ("onnx.", "cpu.onnx.");
/// The prefix of operations of domains that are not ONNX's.
const FOREIGN: &str = "onnx.ext.";
/// The operation that is no kernel.
const RETURN: &str = "onnx.Return";

/// Operations of one kind that nothing runs.
#[derive(Debug, Serialize)]
pub struct MissingOp {
    /// The name that the model uses.
    operation: String,
    /// The number of its nodes.
    count: usize,
    /// The places of the first nodes.
    nodes: Vec<String>,
    /// The version of the operator set that the model asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    opset: Option<i64>,
    /// The signatures of the first nodes, each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    types: Vec<String>,
    help: String,
}

/// The findings of a check.
#[derive(Default)]
pub struct Found {
    /// Operations of a model that nothing runs.
    pub missing: Vec<MissingOp>,
    /// Other problems.
    pub problems: Vec<OpenError>,
    /// The names of dimensions of a model's inputs whose sizes each call gives.
    pub open: Vec<String>,
}

impl From<Vec<OpenError>> for Found {
    fn from(problems: Vec<OpenError>) -> Found {
        Found {
            problems,
            ..Found::default()
        }
    }
}

/// Finds what is wrong with a model. Its constants are made, since what is wrong with them keeps it from being opened.
///
/// Of one that can't be imported, operators without a kernel are told all the same: of its other nodes.
pub fn in_model(input: &Input, opening: &OpenOptions, runtime: &Runtime) -> Found {
    let told = Warnings::default();
    let imported = input.module_with(&opening.clone().warnings(told.clone()));
    let mut module = match imported {
        Ok(Some(module)) => module,
        Ok(None) => return Found::default(),
        Err(OpenError::Text(errors)) => return in_refused(input, errors, runtime),
        Err(error) => return vec![error].into(),
    };
    let open = open_dimensions(&module);
    upgrade(&mut module);
    let mut missing = missing(&module, runtime);
    let unknown = formats::missing(&module);
    let is_known = unknown.is_empty();
    missing.extend(unknown);
    let problem = if missing.is_empty() {
        opened(input, opening, runtime)
    } else {
        // Opening a model tells of its import; this one is not opened.
        opening.warn(told.take());
        // What loading has against it is that kernels are missing, which is told better above; of unknown operations
        // the compiler has it against them, too.
        let lowered = is_known.then(|| {
            let module = input::lower_as(module, opening)?;
            tfrt::compiler::compile(&module, &Default::default())
        });
        lowered.and_then(Result::err).map(OpenError::Text)
    };
    Found {
        missing,
        problems: problem.into_iter().collect(),
        open,
    }
}

/// Opens a program or a model as `tfrt run` does before the first call, and returns what keeps it from being opened.
pub fn opened(input: &Input, opening: &OpenOptions, runtime: &Runtime) -> Option<OpenError> {
    let opened = runtime.load_with(input, opening).and_then(|program| {
        let is_model = program.as_host_program().file().model().is_some();
        is_model
            .then(|| Model::from_program_with(program, input, opening, runtime))
            .transpose()
    });
    opened.err()
}

/// Returns the names of the dimensions of a model's inputs that have no size, each once.
fn open_dimensions(module: &Module) -> Vec<String> {
    let mut open: Vec<String> = Vec::new();
    for function in module.children(module.top()) {
        let inputs = module.op(function).attribute("model.input_dims");
        let inputs = inputs.and_then(Attribute::as_array).unwrap_or(&[]);
        let dimensions = inputs.iter().filter_map(Attribute::as_array).flatten();
        for name in dimensions.filter_map(Attribute::as_str) {
            if !name.is_empty() && !open.iter().any(|known| known == name) {
                open.push(name.to_owned());
            }
        }
    }
    open
}

/// Finds everything that is wrong with a model that can't be imported.
fn in_refused(input: &Input, errors: Diagnostics, runtime: &Runtime) -> Found {
    let Some(Ok(mut survey)) = input.survey() else {
        return vec![OpenError::Text(errors)].into();
    };
    upgrade(&mut survey.module);
    let unknown = survey.unknown.iter().map(MissingOp::unknown);
    let mut all: Vec<MissingOp> = unknown.collect();
    all.append(&mut missing(&survey.module, runtime));
    let problems = match survey.problems.is_empty() {
        // What keeps it from being imported is told better.
        true if !all.is_empty() => None,
        true => Some(errors),
        false => Some(survey.problems),
    };
    Found {
        missing: all,
        problems: problems.map(OpenError::Text).into_iter().collect(),
        open: Vec::new(),
    }
}

/// Replaces operations in old forms by those that have a kernel. The messages of the pass are told when a model is
/// compiled.
fn upgrade(module: &mut Module) {
    let pass = Pipeline::parse("onnx-upgrade").expect("it is a pass");
    let _ = pass.run(module);
}

/// Operations without a kernel, by name.
pub fn missing(module: &Module, runtime: &Runtime) -> Vec<MissingOp> {
    let registry = runtime.host().registry();
    let mut found: BTreeMap<&str, MissingOp> = BTreeMap::new();
    module.walk_pre_order(module.top(), &mut |op| {
        let operation = module.op(op);
        let name = operation.name().as_str();
        let Some(rest) = name.strip_prefix(DIALECT.0) else {
            return;
        };
        let kernel = format!("{}{rest}", DIALECT.1);
        let row = names::name(rest).map(|own| format!("cpu.graph.{}", own.row));
        let has_kernel = |name: &String| registry.get(name).is_some();
        if name == RETURN || has_kernel(&kernel) || row.as_ref().is_some_and(has_kernel) {
            return;
        }
        let missing = found.entry(name).or_insert_with(|| {
            let (domain, operation) = domain_of(name);
            let help = match (nearest(rest, runtime), name.starts_with(FOREIGN)) {
                (_, true) if domain == "com.microsoft.nchwc" => {
                    "ONNX Runtime laid it out for one machine: save the model at its optimisation level \
                     'extended' or 'basic'"
                        .to_owned()
                }
                (_, false) if domain == "microsoft" => format!(
                    "it is ONNX Runtime's own, of which the documentation of models lists what runs: export the \
                     model without it, or add a kernel '{kernel}' to the runtime (`RuntimeBuilder::kernels`)"
                ),
                (Some(nearest), false) => format!("did the model mean '{nearest}'?"),
                (_, true) => format!(
                    "'{domain}' is not one of ONNX's domains: export the model without it, or add a \
                     kernel '{kernel}' to the runtime (`RuntimeBuilder::kernels`)"
                ),
                (None, false) => format!(
                    "export the model so that it does without, or add a kernel '{kernel}' to the \
                     runtime (`RuntimeBuilder::kernels`)"
                ),
            };
            MissingOp {
                operation: match domain {
                    "" => operation.to_owned(),
                    domain => format!("{domain}.{operation}"),
                },
                count: 0,
                nodes: Vec::new(),
                opset: opset_of(module, domain),
                types: Vec::new(),
                help,
            }
        });
        missing.count += 1;
        if missing.nodes.len() < MAX_NODES {
            missing.nodes.push(place(operation.location()));
            let types = signature(module, op);
            if missing.types.len() < MAX_TYPES && !missing.types.contains(&types) {
                missing.types.push(types);
            }
        }
    });
    found.into_values().collect()
}

/// Returns the name of an operation of ONNX that there is a kernel for, and that may have been meant.
fn nearest(name: &str, runtime: &Runtime) -> Option<String> {
    let kernels = runtime.host().registry().kernels();
    let library = kernels.filter_map(|kernel| kernel.name().strip_prefix(DIALECT.1));
    let rows = names::NAMES.iter().map(|own| own.name);
    similar::nearest(name, library.chain(rows)).map(str::to_owned)
}

/// Returns the types of what an operation takes and gives.
fn signature(module: &Module, op: OpId) -> String {
    let types = |values: &[ValueId]| {
        let texts = values
            .iter()
            .map(|value| module.value_type(*value).to_string());
        texts.collect::<Vec<String>>().join(", ")
    };
    let operation = module.op(op);
    let (operands, results) = (types(operation.operands()), types(operation.results()));
    format!("({operands}) -> ({results})")
}

/// Returns the domain of an operation in dialect `onnx`, `""` for ONNX's own, and its name there.
fn domain_of(name: &str) -> (&str, &str) {
    let rest = name.strip_prefix(FOREIGN);
    let rest = rest.unwrap_or(&name[DIALECT.0.len()..]);
    rest.rsplit_once('.').unwrap_or(("", rest))
}

fn opset_of(module: &Module, domain: &str) -> Option<i64> {
    let name = match domain {
        "" => "onnx.opset".to_owned(),
        "ml" => "onnx.opset.ai.onnx.ml".to_owned(),
        "microsoft" => "onnx.opset.com.microsoft".to_owned(),
        domain => format!("onnx.opset.{domain}"),
    };
    module.op(module.top()).attribute(&name)?.as_i64()
}

/// Returns the path of a node in the graph, as text.
pub fn place(location: &Location) -> String {
    match location {
        Location::Name(named) => named.name.as_str().to_owned(),
        Location::Fused(fused) => {
            let all: Vec<String> = fused.locations.iter().map(place).collect();
            all.join(" + ")
        }
        Location::CallSite(call) => format!("{} in {}", place(&call.callee), place(&call.caller)),
        other => other.to_string(),
    }
}

impl MissingOp {
    fn unknown(unknown: &UnknownOperator) -> MissingOp {
        let help = match &unknown.help {
            Some(help) => format!("{}: {help}", unknown.message),
            None => unknown.message.clone(),
        };
        MissingOp {
            operation: match unknown.domain.as_str() {
                "" => unknown.operator.clone(),
                domain => format!("{domain}.{}", unknown.operator),
            },
            count: unknown.count,
            nodes: unknown.nodes.iter().map(place).collect(),
            opset: Some(unknown.opset),
            types: Vec::new(),
            help,
        }
    }

    /// Returns an error at the first of its nodes, for editors, which show a text with its errors.
    pub fn diagnostic(&self, module: &Module) -> Diagnostic {
        let message = format!("nothing here runs '{}'", self.operation);
        let mut first = None;
        module.walk_pre_order(module.top(), &mut |op| {
            let name = module.op(op).name().as_str();
            let own = name.strip_prefix(FOREIGN).or(name.strip_prefix(DIALECT.0));
            if own == Some(self.operation.as_str()) && first.is_none() {
                first = Some(op);
            }
        });
        let error = Diagnostic::error(codes::GRAPH, message).help(&*self.help);
        match first {
            Some(op) => module.place(error, op),
            None => error,
        }
    }

    /// Returns the lines that people are shown.
    pub fn text(&self) -> String {
        let nodes = if self.count == 1 { "node" } else { "nodes" };
        let opset = match self.opset {
            Some(opset) => format!(" (operator set {opset})"),
            None => String::new(),
        };
        let more = self.count - self.nodes.len();
        let mut places = self.nodes.join(", ");
        if more > 0 {
            places.push_str(&format!(" and {more} more"));
        }
        let types = self.types.iter();
        let types: String = types.map(|types| format!("    {types}\n")).collect();
        format!(
            "  {}{opset}: {} {nodes}: {places}\n{types}    {}\n",
            self.operation, self.count, self.help
        )
    }
}
