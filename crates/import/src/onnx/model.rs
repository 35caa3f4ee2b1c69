//! Imports a model: operator sets, functions, and the graph as `@main`.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use prost::bytes::Bytes;
use tfrt_ir::{Attribute, Diagnostic, Diagnostics, Location, Module, Name, OpState, Type};

use super::{
    OPSETS, Options, Survey, UnknownOperator,
    external::ExternalFiles,
    function::Functions,
    graph::{Context, Importer, ModelPos, declared_by},
    problem::{Problem, shown},
    proto, sparse, tensor, types, whole,
};
use crate::{Imported, Signature, codes};

/// The versions of operator sets by domain; the default one is `""`.
pub(super) type Opsets<'m> = HashMap<&'m str, i64>;

/// Imports a decoded model.
pub(super) fn import(model: &proto::Model, options: &Options) -> Result<Imported, Diagnostics> {
    let mut importer = importer(options, None);
    importer.model(model, options);
    importer.errors.into_result()?;
    Ok(Imported {
        module: importer.module,
        notes: importer.notes,
    })
}

/// Lists everything that is wrong with a decoded model.
pub(super) fn survey(model: &proto::Model, options: &Options) -> Survey {
    let mut importer = importer(options, Some(BTreeMap::new()));
    importer.model(model, options);
    Survey {
        module: importer.module,
        problems: importer.errors,
        unknown: importer
            .unknown
            .into_iter()
            .flat_map(BTreeMap::into_values)
            .collect(),
    }
}

fn importer<'m>(
    options: &Options,
    unknown: Option<BTreeMap<(&'m str, &'m str, i64), UnknownOperator>>,
) -> Importer<'m> {
    Importer {
        module: Module::new(),
        errors: Diagnostics::default(),
        notes: Diagnostics::default(),
        unknown,
        file: Name::from(options.name.as_str()),
        files: ExternalFiles::new(&options.external_data).within(options.limits.bytes),
        limits: options.limits,
        n_nodes: 0,
        budget: sparse::Budget::default(),
        functions: Functions::default(),
        scopes: Vec::new(),
        frames: Vec::new(),
        names: HashMap::new(),
        n_expanded: 0,
    }
}

impl<'m> Importer<'m> {
    fn model(&mut self, model: &'m proto::Model, options: &Options) {
        let place = whole(&options.name);
        let Some(graph) = &model.graph else {
            let problem = Problem::new(codes::NOT_A_MODEL, "the model has no graph");
            self.errors.push(problem.at(place));
            return;
        };
        self.files.expect(tensor::external_bytes(graph));
        let mut opsets = self.opsets("the model", &model.opset_import, &place);
        // As the first versions of the format say.
        if opsets.is_empty() && matches!(model.ir_version, Some(1 | 2)) {
            opsets.insert("", 1);
        }
        for (&domain, &version) in &opsets {
            self.state_version(domain, version);
        }
        self.properties(model);
        self.functions = Functions::of(&model.functions, &place, &mut self.errors);
        self.function_versions(&model.functions, &opsets, &place);
        let frame = self.new_frame(opsets);
        self.main(graph, frame);
    }

    /// Reads the versions of operator sets, and refuses unknown ones.
    pub(super) fn opsets(
        &mut self,
        who: &str,
        imports: &'m [proto::OperatorSet],
        place: &Location,
    ) -> Opsets<'m> {
        let mut opsets = Opsets::new();
        for import in imports {
            let domain = domain(import.domain.as_deref());
            let version = import.version.unwrap_or(0);
            if opsets
                .insert(domain, version)
                .is_some_and(|other| other != version)
            {
                let name = shown(set_name(domain));
                let message = format!("{who} asks for two versions of the operator set '{name}'");
                let problem = Problem::new(codes::OPSET, message);
                self.errors.push(problem.at(place.clone()));
            }
            if domain.is_empty() && !OPSETS.contains(&version) {
                let message = format!(
                    "{who} asks for version {version} of ONNX's operator set, expected {} to {}",
                    OPSETS.start(),
                    OPSETS.end()
                );
                let problem = Problem::new(codes::OPSET, message);
                let problem = match version < *OPSETS.start() {
                    true => problem.help(
                        "onnx.version_converter.convert_version(model, 13) brings an old model up",
                    ),
                    false => problem.help(
                        "export the model for an older version, or convert it with \
                         onnx.version_converter",
                    ),
                };
                self.errors.push(problem.at(place.clone()));
            }
        }
        opsets
    }

    /// Notes the version of an operator set in the module.
    pub(super) fn state_version(&mut self, domain: &str, version: i64) {
        let name = match domain {
            "" => "onnx.opset".to_owned(),
            domain => format!("onnx.opset.{domain}"),
        };
        let top = self.module.top();
        self.module
            .set_attribute(top, name, Attribute::integer(version, Type::I64));
    }

    /// Takes the newest version of ONNX's own operator set for a model that states none, with a warning.
    pub(super) fn newest_version(&mut self) -> i64 {
        let version = *OPSETS.end();
        Rc::make_mut(&mut self.frames[0].opsets).insert("", version);
        self.state_version("", version);
        let message = format!(
            "the model has no version of the operator set 'ai.onnx': it is taken for {version}, the newest"
        );
        let warning = Diagnostic::warning(codes::OPSET, message);
        let place = Location::FileLineCol {
            file: self.file.clone(),
            line: 0,
            column: 0,
        };
        self.notes.push(warning.at_location(place));
        version
    }

    /// Keeps the model's metadata as attributes of the module.
    fn properties(&mut self, model: &'m proto::Model) {
        let mut properties = Vec::new();
        let mut add = |name: &str, text: &str| {
            properties.push(Attribute::string(name));
            properties.push(Attribute::string(text));
        };
        let text =
            |text: &'m Option<Bytes>| String::from_utf8_lossy(text.as_deref().unwrap_or_default());
        if model.producer_name.is_some() {
            let (name, version) = (text(&model.producer_name), text(&model.producer_version));
            add("producer", format!("{name} {version}").trim_end());
        }
        for entry in &model.metadata_props {
            add(&text(&entry.key), &text(&entry.value));
        }
        if !properties.is_empty() {
            let top = self.module.top();
            self.module
                .set_attribute(top, "model.properties", Attribute::array(properties));
        }
    }

    /// Warns of a size of an input that is below 0.
    fn note_sizes(&mut self, input: &proto::ValueInfo, place: &Location) {
        if let Some((index, size)) = types::negative_size(input.ty.as_deref()) {
            let name = shown(input.name.as_deref().unwrap_or(""));
            let message = format!(
                "input '{name}': has the size {size} in dimension {index}: it is taken for one that is not known"
            );
            let warning = Diagnostic::warning(codes::MODEL_DIMENSION, message);
            self.notes.push(
                warning
                    .at_location(place.clone())
                    .help("a size that is not known has a name, or nothing"),
            );
        }
    }

    fn main(&mut self, graph: &'m proto::Graph, frame: usize) {
        let region = self.module.create_region();
        let block = self.module.create_block(region);
        let scope = self.new_scope(None);
        let at = Context {
            frame,
            scope,
            block,
            path: "",
            depth: 0,
        };
        let place = Location::FileLineCol {
            file: self.file.clone(),
            line: 0,
            column: 0,
        };
        let has_value = self.initializers(graph, at);
        let mut signature = Signature::default();
        for input in &graph.input {
            let name = input.name.as_deref().unwrap_or("");
            // An input with a value is one that a caller may leave out, and a constant here.
            if has_value.contains(name) {
                continue;
            }
            if name.is_empty() {
                let problem = Problem::new(codes::MODEL_VALUE, "an input has no name");
                self.errors.push(problem.at(place.clone()));
            }
            let ty = self.stated_type(input, "input", &place);
            self.note_sizes(input, &place);
            let location = Location::named(&*shown(name), Some(place.clone()));
            let value = self.module.add_argument(block, ty, location);
            self.define(name, value, at.scope, &ModelPos::of_input(name, &place));
            signature.add_input(name, types::dimensions(input.ty.as_deref()));
        }
        self.nodes(&graph.node, &declared_by(graph), at);
        let outputs = self.outputs(graph, at);
        let last = OpState::new("func.return").operands(outputs);
        let last = self.module.create(last.location(place.clone()));
        self.module.append(block, last);
        for output in &graph.output {
            let name = output.name.as_deref().unwrap_or("");
            signature.add_output(name, types::dimensions(output.ty.as_deref()));
        }
        let location = match graph.name.as_deref() {
            None | Some("") => place,
            Some(name) => Location::named(&*shown(name), Some(place)),
        };
        signature.function(&mut self.module, region, location);
    }
}

/// Returns the name of an operator set, given its domain.
pub(super) fn set_name(domain: &str) -> &str {
    if domain.is_empty() { "ai.onnx" } else { domain }
}

/// Returns a domain, with the default one as `""`.
pub(super) fn domain(stated: Option<&str>) -> &str {
    match stated {
        None | Some("ai.onnx") => "",
        Some(domain) => domain,
    }
}
