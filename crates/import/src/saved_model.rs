//! The importer of TensorFlow's SavedModels and frozen graphs, as modules in the dialect `tf`.
//!
//! ```text
//! saved_model.pb ─ gate ─ messages ─┐
//! variables.index ─ table ─ bundle ─┴ graph ─ module
//! ```
//!
//! A directory holds a graph with functions, the values of its variables and files of vocabularies. A signature names the
//! inputs and outputs of a function; a node that it needs is an operation `tf.NAME` with the node's attributes. Functions are
//! expanded where they are called, conditions and loops become `graph.if` and `graph.while`, and a variable is a constant, or
//! where the signature assigns it, an input and an output. `docs/saved-model.md` says what is read.

mod assets;
mod bundle;
mod control;
mod element;
mod graph;
mod messages;
mod node;
mod partition;
mod proto;
mod resources;
mod save;
mod state;
mod switch;
mod table;

use std::collections::BTreeSet;
use std::path::Path;

use prost::{Message, bytes::Bytes};
use tfrt_ir::{Diagnostic, Diagnostics, Location, Name};

use crate::onnx::gate;
use crate::onnx::problem::{Problem, shown};
use crate::{FileHead, FrontEnd, Imported, ReadLimits, Source, codes};
use graph::Importer;
use proto::{Graph, MetaGraph, SavedModel, SignatureDef, TensorInfo};
use resources::Resources;
pub use save::{SaveError, SavedValue, save};

/// SavedModels and frozen graphs, as an entry in the table of formats.
pub(crate) const FRONT_END: FrontEnd = FrontEnd {
    name: "SavedModel",
    suffixes: &[],
    folder_file: Some(MODEL_FILE),
    recognises,
    import,
    survey: None,
};

/// The file of a directory that holds the graph.
const MODEL_FILE: &str = "saved_model.pb";

/// The path of the values of variables in a directory, without its endings.
const VARIABLES: &str = "variables/variables";

/// The signature that is taken where none is asked for.
const DEFAULT_SIGNATURE: &str = "serving_default";

/// The tag of graphs that are made to be called.
const SERVE: &str = "serve";

/// The signature that initialises tables: no function of the model.
const INITIALISE: &str = "__saved_model_init_op";

/// The most bytes of a graph: lengths in protocol buffers have 31 bits.
const MAX_BYTES: u64 = 1 << 31;

fn recognises(head: &FileHead<'_>) -> bool {
    match head.is_folder {
        true => head
            .path
            .is_some_and(|path| path.join(MODEL_FILE).is_file()),
        false => {
            is_model_file(head)
                || looks_like_saved_model(head.bytes)
                || looks_like_graph(head.bytes)
        }
    }
}

/// Returns whether a file is the graph of a directory.
fn is_model_file(head: &FileHead<'_>) -> bool {
    head.path
        .and_then(Path::file_name)
        .is_some_and(|name| name == MODEL_FILE)
}

/// Returns whether bytes begin as a SavedModel does: the version 1, then a meta graph, which begins with a message.
pub(crate) fn looks_like_saved_model(bytes: &[u8]) -> bool {
    let [0x08, 0x01, 0x12, rest @ ..] = bytes else {
        return false;
    };
    let length = rest.iter().take(10).position(|byte| *byte < 0x80);
    length.is_some_and(|at| rest.get(at + 1) == Some(&0x0a))
}

/// Returns whether bytes look like a frozen graph: a first node, with a name and an operation.
fn looks_like_graph(bytes: &[u8]) -> bool {
    matches!(bytes, [0x0a, _, ..])
        && gate::check(bytes, &messages::GRAPH).is_ok()
        && Graph::decode(bytes).is_ok_and(|graph| {
            let first = graph.node.first();
            first.is_some_and(|node| !node.name.is_empty() && !node.op.is_empty())
        })
}

fn import(source: &Source<'_>, limits: &ReadLimits) -> Result<Imported, Diagnostics> {
    let location = whole(source.name);
    let fail = |problem: Problem| Diagnostics::from(problem.at(location.clone()));
    let given: &[u8] = source.bytes.as_ref();
    let head = FileHead {
        bytes: given,
        path: source.path,
        is_folder: given.is_empty(),
    };
    let is_folder = given.is_empty();
    if !is_folder && !is_model_file(&head) && !looks_like_saved_model(given) {
        let bytes = Bytes::from_owner(source.bytes.clone());
        let graph: Graph = decode(bytes, &messages::GRAPH).map_err(fail)?;
        return frozen(source, &graph, limits);
    }
    let bytes = match is_folder {
        false => Bytes::from_owner(source.bytes.clone()),
        true => {
            let read = source
                .external_data
                .read(MODEL_FILE, MAX_BYTES.min(limits.bytes));
            let unreadable = |message| Problem::new(codes::EXTERNAL_DATA, message);
            Bytes::from(read.map_err(unreadable).map_err(fail)?)
        }
    };
    let model: SavedModel = decode(bytes, &messages::SAVED_MODEL).map_err(fail)?;
    let meta = meta_graph(&model, source.part.tags).map_err(fail)?;
    let signature = signature(meta, source.part.signature).map_err(fail)?;
    let Some(graph) = &meta.graph else {
        return Err(fail(Problem::new(
            codes::NOT_A_MODEL,
            "the model has no graph",
        )));
    };
    // Which variables are values, and no constants, is known when all that is reached was expanded.
    let mut changed = BTreeSet::new();
    loop {
        let resources = Resources::of(meta, graph, source.external_data, limits);
        let mut importer = Importer::new(source.name, graph, resources, limits);
        importer.state.names.clone_from(&changed);
        if let Some(info) = &meta.meta_info {
            importer.know(info.stripped_op_list.as_deref(), &info.tensorflow_version);
        }
        let (imported, assigned) = importer.signature(signature);
        if assigned.is_subset(&changed) {
            return imported;
        }
        changed.extend(assigned);
    }
}

/// Imports a graph whose variables are constants: its inputs are its placeholders, its outputs the nodes that no other takes.
fn frozen(
    source: &Source<'_>,
    graph: &Graph,
    limits: &ReadLimits,
) -> Result<Imported, Diagnostics> {
    let taken: std::collections::HashSet<&str> = graph
        .node
        .iter()
        .flat_map(|node| &node.input)
        .map(|input| input.trim_start_matches('^'))
        .map(|input| input.split(':').next().unwrap_or(input))
        .collect();
    let info = |node: &proto::Node| TensorInfo {
        name: format!("{}:0", node.name),
        dtype: element::stated_type(node),
        shape: element::stated_shape(node),
    };
    let is_input = |node: &&proto::Node| node.op == "Placeholder";
    let is_output = |node: &&proto::Node| {
        !taken.contains(node.name.as_str())
            && !["Placeholder", "Const", "NoOp"].contains(&&*node.op)
    };
    let named = |node: &proto::Node| (node.name.clone(), info(node));
    let signature = SignatureDef {
        inputs: graph.node.iter().filter(is_input).map(named).collect(),
        outputs: graph.node.iter().filter(is_output).map(named).collect(),
    };
    let resources = Resources::none(source.external_data);
    let (imported, _) = Importer::new(source.name, graph, resources, limits).signature(&signature);
    imported
}

/// Decodes a message that has passed the gate.
fn decode<M: Message + Default>(bytes: Bytes, form: &'static gate::Message) -> Result<M, Problem> {
    if bytes.is_empty() {
        let problem = Problem::new(codes::NOT_A_MODEL, "expected a model, found no bytes");
        return Err(problem.help("the file is empty: copy it again"));
    }
    gate::check(&bytes, form)?;
    M::decode(bytes).map_err(|cause| {
        let message = format!("cannot be decoded: {cause}");
        Problem::new(codes::NOT_A_MODEL, message)
    })
}

/// Returns the graph whose tags are asked for, or else the one that is made to be called, or the only one.
fn meta_graph<'m>(model: &'m SavedModel, asked: Option<&str>) -> Result<&'m MetaGraph, Problem> {
    let tags = |meta: &MetaGraph| -> BTreeSet<String> {
        let info = meta.meta_info.iter();
        info.flat_map(|info| info.tags.iter().cloned()).collect()
    };
    let of = |list: &str| -> BTreeSet<String> {
        let words = list.split(',').map(str::trim);
        let words = words.filter(|word| !word.is_empty());
        words.map(str::to_owned).collect()
    };
    let wanted = of(asked.unwrap_or(SERVE));
    let all = || model.meta_graphs.iter();
    let found = all().find(|meta| tags(meta) == wanted);
    let serves = || all().find(|meta| tags(meta).contains(SERVE));
    match (found, asked, &model.meta_graphs[..]) {
        (Some(meta), ..) => Ok(meta),
        (None, _, []) => Err(Problem::new(codes::NOT_A_MODEL, "the model has no graph")),
        (None, None, [meta]) => Ok(meta),
        (None, None, _) if let Some(meta) = serves() => Ok(meta),
        _ => {
            let list = |tags: BTreeSet<String>| Vec::from_iter(tags).join(",");
            let sets: Vec<String> = all()
                .map(|meta| format!("'{}'", list(tags(meta))))
                .collect();
            let message = format!(
                "expected a graph with the tags '{}', found {}",
                shown(&list(wanted)),
                shown(&sets.join(", "))
            );
            let help = "--tags TAGS says which graph is meant";
            Err(Problem::new(codes::NOT_A_MODEL, message).help(help))
        }
    }
}

/// Returns the signature that is asked for, the default one, or the only one.
fn signature<'m>(meta: &'m MetaGraph, asked: Option<&str>) -> Result<&'m SignatureDef, Problem> {
    let all = || {
        meta.signatures
            .iter()
            .filter(|(name, _)| *name != INITIALISE)
    };
    let name = asked.unwrap_or(DEFAULT_SIGNATURE);
    if let Some(found) = meta.signatures.get(name) {
        return Ok(found);
    }
    if let (None, 1, Some((_, only))) = (asked, all().count(), all().next()) {
        return Ok(only);
    }
    let names: Vec<String> = all()
        .map(|(name, _)| format!("'{}'", shown(name)))
        .collect();
    let (found, help) = match names.is_empty() {
        true => (
            "none".to_owned(),
            "save the model with signatures: tf.saved_model.save(model, path, signatures=function)",
        ),
        false => (names.join(", "), "--signature NAME says which one is meant"),
    };
    let message = format!("expected a signature '{}', found {found}", shown(name));
    Err(Problem::new(codes::MODEL_FUNCTION, message).help(help))
}

/// Returns the location of a file as a whole.
fn whole(name: &str) -> Location {
    Location::FileLineCol {
        file: Name::from(name),
        line: 0,
        column: 0,
    }
}

impl Problem {
    /// Makes a warning at a location.
    fn warning(self, location: Location) -> Diagnostic {
        let code = self.code();
        Diagnostic::warning(code, self.into_text().0).at_location(location)
    }
}
