//! Properties of models of other systems: whatever their bytes are, there is an answer.

use tfrt_compiler::legalize::Context;
use tfrt_compiler::onnx::NoEvaluator;
use tfrt_compiler::pipeline::Pipeline;
use tfrt_import::onnx::{
    self, Options,
    data::{Data, Kind},
};
use tfrt_import::{ExternalData, FRONT_ENDS, FrontEnd, ReadLimits};
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
    for format in FRONT_ENDS.iter().filter(|format| format.name != "ONNX") {
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

/// Imports a model in one of the formats that text is in, and makes rows of its operations.
fn in_format(format: &FrontEnd, bytes: &[u8]) {
    let source = tfrt_import::Source {
        name: NAME,
        bytes: bytes.to_vec().into(),
        path: None,
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
