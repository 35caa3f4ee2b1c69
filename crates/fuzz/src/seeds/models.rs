//! Models made by hand: those of the importers' tests, fine and broken.

use std::fs;
use std::path::Path;

#[path = "../../../import/tests/library/broken/cases.rs"]
mod broken;
#[path = "../../../import/tests/library/models/cases.rs"]
mod fine;
#[path = "../../../import/tests/library/saved_model/files.rs"]
#[allow(dead_code, reason = "the importer's tests have more of them")]
mod saved_model;
#[path = "../../../import/tests/library/wire.rs"]
mod wire;

/// The longest module of StableHLO that is a seed.
const MAX_MODULE_BYTES: usize = 2048;

/// Returns their names and bytes.
pub fn models() -> Vec<(&'static str, Vec<u8>)> {
    let fine = fine::all().into_iter().map(|case| (case.name, case.bytes));
    let broken = broken::all();
    let broken = broken.into_iter().map(|case| (case.name, case.bytes));
    fine.chain(broken).collect()
}

/// Returns SavedModels in the form that the target takes, and a frozen graph.
pub fn saved_models() -> Vec<Vec<u8>> {
    let files = saved_model::files();
    let sized = |name: &str| {
        let bytes = files.get(name).map_or(&[][..], Vec::as_slice);
        let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        [&length.to_le_bytes(), bytes].concat()
    };
    let folder = [
        sized("saved_model.pb"),
        sized("variables/variables.index"),
        saved_model::data(),
    ];
    let nodes = [
        saved_model::node("x", "Placeholder", &[], &[("dtype", saved_model::ty(1))]),
        saved_model::node("c", "Const", &[], &[("value", saved_model::number(2.0))]),
        saved_model::node("y", "AddV2", &["x", "c"], &[]),
    ];
    vec![folder.concat(), wire::Wire::new().messages(1, nodes).0]
}

/// Returns the shorter modules of StableHLO in the repository's tests.
pub fn modules() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/stablehlo");
    let texts = ["modules", "dynamic", "interpreted"].map(|name| {
        let text = fs::read_to_string(folder.join(name).with_extension("stablehlo"));
        text.unwrap_or_default()
    });
    let chunks = texts.iter().flat_map(|text| text.split("// "));
    let chunks =
        chunks.filter(|chunk| chunk.contains("func.func") && chunk.len() <= MAX_MODULE_BYTES);
    chunks
        .map(|chunk| format!("// {chunk}").into_bytes())
        .collect()
}
