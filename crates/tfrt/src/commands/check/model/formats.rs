//! Operations of formats other than ONNX that nothing stands for: all of them, with their nodes.
//!
//! Those of a format without rules are told by the pass that replaces them, as those of StableHLO.

use std::collections::BTreeMap;

use tfrt::Formats;
use tfrt::compiler::legalize::Legalize;
use tfrt::ir::{Module, similar};

use super::{DIALECT, MAX_NODES, MissingOp, place};

/// Returns the operations that the rules of their format don't know.
pub(super) fn missing(module: &Module) -> Vec<MissingOp> {
    let formats = Formats::builtin();
    let others = &formats.dialects().formats;
    let mut found: BTreeMap<String, MissingOp> = BTreeMap::new();
    module.walk_pre_order(module.top(), &mut |op| {
        let operation = module.op(op);
        let Some((dialect, name)) = operation.name().split_once('.') else {
            return;
        };
        let is_other =
            |format: &&Legalize| format.dialect == dialect && !DIALECT.0.starts_with(dialect);
        let has_rules = |format: &&Legalize| names(format).next().is_some();
        let Some(format) = others
            .iter()
            .find(is_other)
            .filter(has_rules)
            .filter(|format| !knows(format, name))
        else {
            return;
        };
        let missing = found.entry(name.to_owned()).or_insert_with(|| MissingOp {
            operation: name.to_owned(),
            count: 0,
            nodes: Vec::new(),
            opset: None,
            types: Vec::new(),
            help: match similar::nearest(name, names(format)) {
                Some(nearest) => format!("nothing here stands for it; there is '{nearest}'"),
                None => "nothing here stands for it: export the model so that it does without"
                    .to_owned(),
            },
        });
        missing.count += 1;
        if missing.nodes.len() < MAX_NODES {
            missing.nodes.push(place(operation.location()));
        }
    });
    found.into_values().collect()
}

fn names(format: &Legalize) -> impl Iterator<Item = &'static str> {
    let names = format.names.iter().map(|own| own.name);
    names.chain(format.expand.iter().map(|(name, _)| *name))
}

fn knows(format: &Legalize, name: &str) -> bool {
    let row = || tfrt::ops::find(&format!("{}.{name}", format.dialect));
    names(format).any(|own| own == name) || row().is_some_and(|row| !row.has_effects())
}
