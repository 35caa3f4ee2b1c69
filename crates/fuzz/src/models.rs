//! Properties of models of other systems: whatever their bytes are, there is an answer.

use std::sync::Arc;

use tfrt_compiler::legalize::Context;
use tfrt_compiler::onnx::NoEvaluator;
use tfrt_compiler::pipeline::Pipeline;
use tfrt_import::onnx::{
    self, Options,
    data::{Data, Kind},
};
use tfrt_import::{
    ExternalData, FRONT_ENDS, FileProvider, FrontEnd, ModelBytes, ReadLimits, SharedBytes,
};
use tfrt_ir::{Module, PrintOptions, Source, print, verify};

use crate::text::look_at;

/// The file name of models.
const NAME: &str = "fuzz.onnx";

/// The longest text that is read again: a small model may hold a constant of one element that is
/// repeated, or functions that expand to many nodes.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// Imports a model in any format, and reads the bytes as files of values.
///
/// # Panics
///
/// If a module that comes out does not verify, if its text is read as another, or if a value that
/// was read is written as another.
pub fn import(bytes: &[u8]) {
    match onnx::import(bytes.to_vec(), &Options::new(NAME)) {
        Ok(module) => check(&module),
        Err(diagnostics) => look_at(&diagnostics),
    }
    saved_model(bytes);
    for format in FRONT_ENDS
        .iter()
        .filter(|format| format.name == "StableHLO")
    {
        in_format(format, bytes);
    }
    let kinds = [
        Kind::Tensor,
        Kind::SparseTensor,
        Kind::Sequence,
        Kind::Optional,
        Kind::Map,
    ];
    for kind in kinds {
        values(bytes, kind);
    }
}

/// Imports bytes as a frozen graph, and as a directory: two bytes with the length of the graph, the graph, the length of the index,
/// the index; the rest is the shard.
fn saved_model(bytes: &[u8]) {
    let format = FRONT_ENDS.iter().find(|format| format.name == "SavedModel");
    let Some(format) = format else { return };
    let cut = |bytes: &[u8]| -> (Vec<u8>, Vec<u8>) {
        let Some((length, rest)) = bytes.split_first_chunk::<2>() else {
            return (Vec::new(), Vec::new());
        };
        let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
        (rest[..length].to_vec(), rest[length..].to_vec())
    };
    let (graph, rest) = cut(bytes);
    let (index, shard) = cut(&rest);
    let give = move |name: &str| {
        let found = match name {
            "saved_model.pb" => &graph,
            "variables/variables.index" => &index,
            _ => &shard,
        };
        Some(Arc::new(found.clone()) as SharedBytes)
    };
    let given = ExternalData::Provider(FileProvider::new(give));
    for (bytes, external_data) in [(bytes, &ExternalData::Refused), (&[][..], &given)] {
        let source = tfrt_import::Source {
            name: "fuzz.pb",
            bytes: ModelBytes::from(bytes.to_vec()),
            path: None,
            part: tfrt_import::Part::default(),
            external_data,
        };
        match (format.import)(&source, &ReadLimits::default()) {
            Ok(imported) => check(&imported.module),
            Err(diagnostics) => look_at(&diagnostics),
        }
    }
}

/// Imports a model in one of the formats that text is in, and makes rows of its operations.
fn in_format(format: &FrontEnd, bytes: &[u8]) {
    let source = tfrt_import::Source {
        name: NAME,
        bytes: bytes.to_vec().into(),
        path: None,
        part: tfrt_import::Part::default(),
        external_data: &ExternalData::Refused,
    };
    match (format.import)(&source, &ReadLimits::default()) {
        Ok(imported) => {
            check(&imported.module);
            let mut module = imported.module;
            let legalize = Pipeline::parse("legalize").expect("it is a pass");
            let context = Context::new(&NoEvaluator);
            if let Err(diagnostics) = legalize.run_with(&mut module, &context, &mut |_, _| {}) {
                look_at(&diagnostics);
            }
        }
        Err(diagnostics) => look_at(&diagnostics),
    }
}

fn check(module: &Module) {
    if let Err(diagnostics) = verify(module) {
        panic!("{diagnostics}\nin what was imported:\n{module}");
    }
    let options = PrintOptions {
        generic: false,
        locations: true,
    };
    let text = print(module, options);
    if text.len() > MAX_TEXT_BYTES {
        return;
    }
    match tfrt_ir::parse(&Source::new(NAME, text.as_str())) {
        Ok(again) => assert_eq!(print(&again, options), text, "printed and parsed"),
        Err(diagnostics) => panic!("{diagnostics}\nin what was printed:\n{text}"),
    }
}

fn values(bytes: &[u8], kind: Kind) {
    match Data::decode(bytes.to_vec(), kind, NAME) {
        Ok(value) => {
            // What was sparse is written as a tensor.
            let kind = match kind {
                Kind::SparseTensor => Kind::Tensor,
                kind => kind,
            };
            let again = Data::decode(value.encode(), kind, NAME);
            let again = again.unwrap_or_else(|errors| panic!("{errors}: {value:?}"));
            assert!(again == value, "written and read: {value:?}");
        }
        Err(diagnostics) => look_at(&diagnostics),
    }
}
