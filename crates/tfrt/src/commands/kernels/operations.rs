//! Operations that no kernel has the name of: rows of the operation table, the names that eager calls have for them, and
//! what the compiler takes for itself, such as `tfrt.return`.

use std::collections::BTreeMap;

use serde::Serialize;
use tfrt::Formats;
use tfrt::corert::RowOpHandler;
use tfrt::host::DeviceId;
use tfrt::kernel::KernelRegistry;

use super::indented;

/// An operation that no kernel has the name of.
#[derive(Serialize)]
pub struct Operation {
    pub name: String,
    summary: String,
    /// The operation with names of operands and attributes, as people read it; absent where only eager calls have the
    /// name.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generic_form: Option<String>,
    /// Whether eager calls have it by this name.
    eager: bool,
    #[serde(skip)]
    documentation: String,
}

/// Returns all operations, sorted by name.
pub fn all(registry: &KernelRegistry) -> Vec<Operation> {
    let mut all = BTreeMap::new();
    let rows = RowOpHandler::new(tfrt::kernels::rows::find, DeviceId::HOST, None);
    for entry in Formats::builtin().text_dialects().definitions() {
        let name = entry.name();
        if registry.get(name).is_some() {
            continue;
        }
        let eager = rows.definition(name.strip_prefix("graph.").unwrap_or(name));
        let operation = Operation {
            name: name.to_owned(),
            summary: entry.summary_text().to_owned(),
            usage: Some(entry.signature()),
            generic_form: Some(entry.generic_form()),
            eager: eager.is_some(),
            documentation: entry.documentation(),
        };
        all.insert(operation.name.clone(), operation);
    }
    // Rows of `graph` are there already, by the name that they have in text.
    let names = tfrt::corert::names().filter(|name| name.contains('.'));
    for name in names {
        let Some(definition) = rows.definition(&name) else {
            continue;
        };
        all.entry(name.clone()).or_insert_with(|| Operation {
            name,
            summary: definition.description().trim_end_matches('.').to_owned(),
            usage: None,
            generic_form: None,
            eager: true,
            documentation: format!(
                "{}\n\nAn operation of the core runtime, which `corert.executeop` and `tfrt::eager` call by its \
                 name: docs/ops.md",
                definition.description()
            ),
        });
    }
    all.into_values().collect()
}

/// Adds the operations that plugins have kernels of on the processor, in order.
#[cfg(feature = "plugins")]
pub fn add_plugins(all: &mut Vec<Operation>, plugins: &[tfrt::Plugin]) {
    for name in tfrt::PluginOps::new(plugins).names() {
        let op = name.strip_prefix("tf.").unwrap_or(&name);
        let own = |plugin: &tfrt::Plugin| {
            let kernels = plugin.kernels().filter(|kernel| kernel.op() == op);
            let takes: Vec<String> = kernels.map(|kernel| kernel.constraints()).collect();
            let (n, library) = (takes.len(), plugin.name());
            let kernels = if n == 1 { "a kernel" } else { "kernels" };
            (n > 0).then(|| format!("{kernels} of {library}, for {}", takes.join("; for ")))
        };
        let kernels: Vec<String> = plugins.iter().filter_map(own).collect();
        let kernels = kernels.join("; ");
        let usage = tfrt::capi::spec(op).map(|spec| spec.usage());
        match all.binary_search_by(|one| one.name.as_str().cmp(&name)) {
            Ok(index) => {
                let known = &mut all[index];
                known.summary = format!("{}; {kernels}", known.summary);
                known.documentation = format!("{}\n\nThere is also {kernels}.", known.documentation);
            }
            Err(index) => all.insert(
                index,
                Operation {
                    summary: kernels.clone(),
                    usage,
                    generic_form: None,
                    eager: true,
                    documentation: format!(
                        "An operation of a plugin, which `corert.executeop` and `tfrt::eager` call by its name: {kernels}."
                    ),
                    name,
                },
            ),
        }
    }
}

impl Operation {
    /// Returns the text for a terminal.
    pub fn text(&self, long: bool) -> String {
        let (name, usage) = (&self.name, self.usage.as_deref().unwrap_or_default());
        match long {
            true => format!("{name}{usage}\n\n{}", indented(&self.documentation)),
            false => format!("{name}{usage}\n    {}", self.summary),
        }
    }
}
