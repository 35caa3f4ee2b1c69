//! The importer of ONNX models, as modules in the dialect `onnx`.
//!
//! ```text
//! bytes ─ gate ─ messages ─ graph ─ module
//! ```
//!
//! The gate (`gate.rs`) accepts bytes that can be decoded, `prost` decodes them to the messages
//! of `proto.rs`, and `graph.rs` makes operations of the nodes, one of each. `docs/models.md`
//! says what the module looks like.
//!
//! ```
//! use tfrt_import::onnx::{Options, import};
//!
//! // A model with an empty graph, for operator set 13.
//! let bytes = [0x08, 0x08, 0x3a, 0x00, 0x42, 0x02, 0x10, 0x0d];
//! let module = import(bytes, &Options::new("empty.onnx"))?;
//! assert!(module.to_string().starts_with("module attributes {onnx.opset = 13"));
//! # Ok::<(), tfrt_ir::Diagnostics>(())
//! ```

pub(crate) mod attributes;
mod check;
pub mod data;
pub(crate) mod element;
pub(crate) mod external;
mod function;
pub(crate) mod gate;
mod graph;
mod model;
mod order;
pub(crate) mod problem;
mod proto;
mod results;
pub mod schema;
mod sparse;
pub(crate) mod tensor;
mod types;

use std::path::Path;

use prost::{Message, bytes::Bytes};
use tfrt_ir::{Diagnostics, Location, Module, Name};

use crate::saved_model::looks_like_saved_model;
use crate::{FileHead, FrontEnd, Imported, ReadLimits, codes};
use problem::Problem;

pub use element::{ElementType, STRING, UNKNOWN};
pub use external::{ExternalData, FileProvider, Folder, MAX_READ_BYTES, SharedBytes};
pub use tensor::{Tensor, TensorData};

/// The versions of the default operator set that are known.
pub const OPSETS: std::ops::RangeInclusive<i64> = 1..=27;

/// Options of an import.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file's name in errors and locations.
    pub name: String,
    /// The place of external data.
    pub external_data: ExternalData,
    /// Limits on the model.
    pub limits: ReadLimits,
}

impl Options {
    /// Makes options for a model without external data.
    pub fn new(name: impl Into<String>) -> Options {
        Options {
            name: name.into(),
            external_data: ExternalData::Unknown,
            limits: ReadLimits::default(),
        }
    }

    /// Makes options for a model that is imported as one of several formats.
    fn of(source: &crate::Source<'_>, limits: &ReadLimits) -> Options {
        Options {
            name: source.name.to_owned(),
            external_data: source.external_data.clone(),
            limits: *limits,
        }
    }

    /// Makes options for the model at a path, whose folder may hold external data.
    pub fn at_path(path: &Path) -> Options {
        Options {
            name: path.display().to_string(),
            external_data: ExternalData::Folder(Folder::of(path)),
            limits: ReadLimits::default(),
        }
    }
}

/// ONNX, as an entry in the table of formats.
pub(crate) const FRONT_END: FrontEnd = FrontEnd {
    name: "ONNX",
    suffixes: &["onnx"],
    folder_file: None,
    recognises: |head: &FileHead<'_>| !head.is_folder && looks_like_model(head.bytes),
    import: |source, limits| {
        let options = Options::of(source, limits);
        import_with_notes(source.bytes.clone(), &options)
    },
    survey: Some(|source, limits| survey(source.bytes.clone(), &Options::of(source, limits))),
};

/// Imports a model.
///
/// The bytes are held while this runs, and elements are copied out of them once.
///
/// # Errors
///
/// All that is wrong with the model, each with the node and its path in the graph. A model whose
/// bytes cannot be decoded gets one error, with the offset.
pub fn import(
    model: impl AsRef<[u8]> + Send + 'static,
    options: &Options,
) -> Result<Module, Diagnostics> {
    Ok(import_with_notes(model, options)?.module)
}

fn import_with_notes(
    model: impl AsRef<[u8]> + Send + 'static,
    options: &Options,
) -> Result<Imported, Diagnostics> {
    let bytes = Bytes::from_owner(model);
    let model = decode(bytes).map_err(|problem| problem.at(whole(&options.name)))?;
    model::import(&model, options)
}

/// Everything that is wrong with a model, whether or not it can be imported.
pub struct Survey {
    /// The part of the model that could be read, which is not to be run. Nodes with errors and with unknown operators
    /// are missing, and their results are left out where they are used.
    pub module: Module,
    /// All errors but those on unknown operators.
    pub problems: Diagnostics,
    /// Operators that ONNX does not have in the versions that the model asks for, sorted by name.
    pub unknown: Vec<UnknownOperator>,
}

/// An operator that its domain, one of ONNX's, does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownOperator {
    /// The domain, empty for the default one.
    pub domain: String,
    /// The name of the operator.
    pub operator: String,
    /// The version of the operator set that the model asks for.
    pub opset: i64,
    /// The error message.
    pub message: String,
    /// Advice, if there is any.
    pub help: Option<String>,
    /// The number of nodes.
    pub count: usize,
    /// The locations of the first nodes.
    pub nodes: Vec<Location>,
}

impl UnknownOperator {
    /// The most nodes that are listed of each unknown operator; all are counted.
    pub const MAX_NODES: usize = 20;
}

/// Lists everything that is wrong with a model, going on where [`import`] gives up.
///
/// # Errors
///
/// That the bytes cannot be decoded, with the offset.
pub fn survey(
    model: impl AsRef<[u8]> + Send + 'static,
    options: &Options,
) -> Result<Survey, Diagnostics> {
    let bytes = Bytes::from_owner(model);
    let model = decode(bytes).map_err(|problem| problem.at(whole(&options.name)))?;
    Ok(model::survey(&model, options))
}

/// Returns whether bytes look like a model rather than text or another format. It tells kinds of files apart, and
/// says nothing on whether the model is sound.
pub fn looks_like_model(bytes: &[u8]) -> bool {
    // Each field of a model has a number up to 26, and begins with a known kind of value.
    let Some(&[first, second]) = bytes.get(..2) else {
        return false;
    };
    match first {
        // The version of the format, a small number, which all writers put first.
        0x08 => (1..0x20).contains(&second) && !looks_like_saved_model(bytes),
        // The producer's name or the graph, by writers that leave the version out or put it last.
        0x12 | 0x3a | 0x42 => gate::check(bytes, &gate::messages::MODEL).is_ok(),
        _ => false,
    }
}

fn decode(bytes: Bytes) -> Result<proto::Model, Problem> {
    if bytes.is_empty() {
        let problem = Problem::new(codes::NOT_A_MODEL, "expected a model, found no bytes");
        return Err(problem.help("the file is empty: copy it again"));
    }
    gate::check(&bytes, &gate::messages::MODEL).map_err(|problem| match other_format(&bytes) {
        Some(help) => problem.help(help),
        None => problem,
    })?;
    proto::Model::decode(bytes).map_err(|cause| {
        let message = format!("cannot be decoded: {cause}");
        Problem::new(codes::NOT_A_MODEL, message)
    })
}

/// Names the format of a file that is no model, if it is easily recognised.
fn other_format(bytes: &[u8]) -> Option<&'static str> {
    let begins = |with: &[u8]| bytes.starts_with(with);
    let names_at_4 = |name: &[u8]| bytes.get(4..8) == Some(name);
    if begins(b"PK\x03\x04") {
        Some("this is an archive, as PyTorch writes them: export the model with torch.onnx.export")
    } else if names_at_4(b"ORTM") {
        Some("this is a model of ONNX Runtime's own format: take the .onnx file it was made of")
    } else if names_at_4(b"TFL3") {
        Some("this is a TensorFlow Lite model: convert it with tf2onnx")
    } else if begins(b"\x89HDF") {
        Some("this is an HDF5 file, as Keras writes them: convert it with tf2onnx")
    } else if begins(b"version https://git-lfs") {
        Some("this is a pointer to a large file: get it with `git lfs pull`")
    } else if begins(b"<") {
        Some("this is a page of the web, or XML: the download failed")
    } else if begins(b"{") {
        Some("this is JSON")
    } else if begins_as_text(bytes) {
        Some(
            "this is text, not an ONNX model: MLIR is read from files whose names do not end in .onnx",
        )
    } else {
        None
    }
}

/// Returns whether the first bytes are text: a model begins with the tag of a field, a control character.
fn begins_as_text(bytes: &[u8]) -> bool {
    const LOOKED_AT: usize = 256;
    let first = &bytes[..bytes.len().min(LOOKED_AT)];
    // A character may be cut.
    let text = first.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let is_whole = text.len() + 3 >= first.len();
    let is_shown = |c: char| !c.is_control() || c.is_whitespace();
    !text.is_empty() && is_whole && text.chars().all(is_shown)
}

/// Returns the location of a file as a whole.
fn whole(name: &str) -> Location {
    Location::FileLineCol {
        file: Name::from(name),
        line: 0,
        column: 0,
    }
}
