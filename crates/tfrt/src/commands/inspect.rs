//! `tfrt inspect`: the parts of a model, as text, as JSON, or as a page for browsers.

use tfrt::compiler;
use tfrt::input::Input;
use tfrt::ir::Module;
use tfrt::{Formats, HostEvaluator, OpenError, OpenOptions};

use super::limits::refuse_compiled;
use super::{mapped, output, print_json, print_line};
use crate::console::Console;
use crate::failure::{ExitStatus, Failure};
use crate::options::{InspectOptions, View};

mod graph;
mod memory;
mod page;
mod weights;

/// Shows one view of a model.
pub fn inspect(options: &InspectOptions, console: &Console) -> Result<ExitStatus, Failure> {
    let input = mapped::read(&options.file, options.input.mmap)?;
    refuse_compiled(&input, &options.dims, false)?;
    if let Input::Text(source) = &input {
        console.remember(source);
    }
    let progress = console.progress(&format!("reading {}", input.name()));
    let name = input.name().to_owned();
    let mut read = vec![options.file.clone()];
    let opening = options.dims.open_options(true);
    let (title, document, text) = match options.view {
        View::Graph => {
            let graph = graph::Graph::new(&name, module(&input, &opening)?, &opening);
            ("Graph", json(&graph), graph.text())
        }
        View::Weights => {
            let weights = weights::Weights::new(&name, &module(&input, &opening)?)?;
            ("Weights", json(&weights), weights.text())
        }
        View::Memory => {
            let (memory, input_files) = memory::Memory::measure(options, &input, &opening)?;
            read.extend(input_files);
            ("Memory", json(&memory), memory.text())
        }
    };
    drop(progress);
    match &options.html {
        Some(path) => {
            let page = page::page(&format!("{title} of {name}"), &document);
            read.extend(input.files_beside());
            output::write(path, &read, "--html", page.as_bytes())?;
        }
        None if options.json => print_json(&document)?,
        None => print_line(text.trim_end())?,
    }
    Ok(ExitStatus::Fine)
}

fn json(view: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(view).expect("our documents have text for keys")
}

/// Returns the graph of a model as a page for browsers, and as the document that the page shows.
///
/// # Errors
///
/// Those of [`Input::module_with`], and of decompiling.
pub fn graph_page(input: &Input, opening: &OpenOptions) -> Result<(String, String), OpenError> {
    let name = input.name();
    let document = json(&graph::Graph::new(name, module(input, opening)?, opening));
    let page = page::page(&format!("Graph of {name}"), &document);
    Ok((page, document.to_string()))
}

/// Returns the module of a model; of compiled bytes, what they were compiled from.
fn module(input: &Input, opening: &OpenOptions) -> Result<Module, OpenError> {
    if let Some(module) = input.module_with(opening)? {
        return Ok(module);
    }
    let (formats, evaluator) = (Formats::builtin(), HostEvaluator::default());
    let program = input.open_with(&formats, &evaluator, opening)?;
    let restored = compiler::decompile(&program).map_err(OpenError::Text)?;
    Ok(restored.module)
}
