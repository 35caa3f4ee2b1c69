//! `tfrt kernels`: what is registered, and what the operation tables say of it.

use serde::Serialize;
use tfrt::ir::dialect::{self, OpDef, Results, Traits};
use tfrt::ir::similar;
use tfrt::kernel::{Completion, KernelEntry, KernelRegistry};

use super::pattern::matches;
use super::{print_json, print_line};
use crate::failure::{ExitStatus, Failure};
use crate::options::KernelsOptions;

mod operations;

use operations::Operation;

/// Lists the kernels, and the operations without one of their name, that match the pattern.
pub fn kernels(options: &KernelsOptions) -> Result<ExitStatus, Failure> {
    let mut registry = KernelRegistry::new();
    tfrt::kernels::register_all(&mut registry);
    tfrt::corert::kernels::register(&mut registry);
    let pattern = options.pattern.as_deref().unwrap_or("*");
    let natives = registry
        .natives()
        .map(|entry| KernelReport::new(entry, true));
    let mut chosen: Vec<KernelReport> = registry
        .kernels()
        .map(|entry| KernelReport::new(entry, false))
        .chain(natives)
        .filter(|kernel| matches(pattern, &kernel.name))
        .collect();
    let mut operations = operations::all(&registry);
    #[cfg(feature = "plugins")]
    operations::add_plugins(&mut operations, &super::plugin::loaded(&options.plugins)?);
    operations.retain(|operation| matches(pattern, &operation.name));
    let is_kernel = chosen.iter().any(|kernel| kernel.name == pattern);
    let is_operation = operations.iter().any(|operation| operation.name == pattern);
    // A whole name is that of one thing.
    let is_name = is_kernel || is_operation;
    if is_name {
        chosen.retain(|kernel| kernel.name == pattern);
        operations.retain(|operation| operation.name == pattern);
    }
    let is_empty = chosen.is_empty() && operations.is_empty();
    if options.json {
        print_json(&Document {
            schema: "tfrt.kernels/1",
            kernels: &chosen,
            operations: &operations,
        })?;
    } else {
        let long = options.long || is_name;
        let kernels = chosen.iter().map(|kernel| kernel.text(long));
        let operations = operations.iter().map(|operation| operation.text(long));
        let separator = if long { "\n\n" } else { "\n" };
        let texts: Vec<String> = kernels.chain(operations).collect();
        if !is_empty {
            print_line(&texts.join(separator))?;
        }
    }
    match options.pattern.as_deref() {
        Some(pattern) if is_empty => Err(Failure::Rejected {
            code: None,
            message: format!("no kernel or operation has a name like '{pattern}'"),
            help: nearest(pattern, &registry),
        }),
        _ => Ok(ExitStatus::Fine),
    }
}

/// Names a kernel, or else an operation, that somebody may have meant.
fn nearest(name: &str, registry: &KernelRegistry) -> Option<String> {
    let kernel = similar::nearest(name, registry.kernels().map(KernelEntry::name));
    if let Some(kernel) = kernel {
        return Some(format!("there is a kernel '{kernel}'"));
    }
    let operations = operations::all(registry);
    let names = operations.iter().map(|operation| operation.name.as_str());
    let operation = similar::nearest(name, names)?;
    Some(format!("there is an operation '{operation}'"))
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    kernels: &'a [KernelReport],
    operations: &'a [Operation],
}

#[derive(Serialize)]
struct KernelReport {
    name: String,
    signature: String,
    operands: Vec<Operand>,
    more_operands: bool,
    attributes: Vec<&'static str>,
    more_attributes: bool,
    functions: usize,
    more_functions: bool,
    results: Vec<Option<&'static str>>,
    any_results: bool,
    completion: &'static str,
    native: bool,
    /// Its entry in the operation tables, if it has one.
    #[serde(flatten)]
    described: Option<OpDescription>,
}

#[derive(Serialize)]
struct Operand {
    /// The MLIR name of the type; absent if any type will do.
    #[serde(rename = "type")]
    type_name: Option<&'static str>,
    strict: bool,
}

#[derive(Serialize)]
struct OpDescription {
    #[serde(skip)]
    entry: &'static OpDef,
    summary: &'static str,
    description: &'static str,
    /// The operation with names of operands and attributes, as people read it.
    usage: String,
    syntax: Option<String>,
    generic_form: String,
    /// The names of the operands. The last one is that of all further operands, if it takes any.
    operand_names: Vec<String>,
    result_names: Vec<String>,
    attribute_details: Vec<Attribute>,
    effects: Effects,
    errors: Vec<ReportedError>,
    example: Option<Example>,
}

#[derive(Serialize)]
struct Attribute {
    name: &'static str,
    kind: String,
    meaning: &'static str,
    optional: bool,
    compile_time: bool,
}

#[derive(Serialize)]
struct Effects {
    text: String,
    pure: bool,
    reads: Vec<usize>,
    writes: Vec<usize>,
    outside: bool,
    allocates: bool,
    nested: bool,
    everything: bool,
}

#[derive(Serialize)]
struct ReportedError {
    code: &'static str,
    message: &'static str,
    when: &'static str,
}

#[derive(Serialize)]
struct Example {
    program: String,
    prints: &'static str,
}

impl KernelReport {
    fn new(entry: &KernelEntry, native: bool) -> KernelReport {
        let signature = entry.signature();
        let operands = signature.operands.iter().map(|operand| Operand {
            type_name: operand.type_name,
            strict: operand.strict,
        });
        let results = signature.results.iter().map(|result| result.type_name);
        let described = match native {
            true => dialect::describe_native(entry.name()),
            false => dialect::describe(entry.name()),
        };
        KernelReport {
            name: entry.name().to_owned(),
            signature: signature.to_string(),
            operands: operands.collect(),
            more_operands: signature.more_operands,
            attributes: signature.attributes.iter().map(|spec| spec.kind).collect(),
            more_attributes: signature.more_attributes,
            functions: signature.n_functions,
            more_functions: signature.more_functions,
            results: results.collect(),
            any_results: signature.any_results,
            completion: match signature.completion {
                Completion::Synchronous => "synchronous",
                Completion::Asynchronous => "asynchronous",
                Completion::Calls => "calls",
            },
            native,
            described: described.map(OpDescription::new),
        }
    }

    /// Returns the text for a terminal.
    fn text(&self, long: bool) -> String {
        let (name, native) = (&self.name, if self.native { " (native)" } else { "" });
        match &self.described {
            None => format!("{name}{}{native}", self.signature),
            Some(described) if long => format!(
                "{name}{}{native}\n\n{}",
                described.usage,
                indented(&described.entry.documentation())
            ),
            Some(described) => {
                format!(
                    "{name}{}{native}\n    {}",
                    described.usage, described.summary
                )
            }
        }
    }
}

impl OpDescription {
    fn new(entry: &'static OpDef) -> OpDescription {
        let operands = entry.operand_defs().iter().chain(entry.rest_def());
        let declared = entry.result_defs().declared().iter();
        let mut result_names: Vec<String> = declared.map(|result| result.identifier()).collect();
        if let Results::AtLeast(_, rest) | Results::LikeRest(rest) = entry.result_defs() {
            result_names.push(rest.identifier());
        }
        let attributes = entry.attribute_defs().iter().map(|attribute| Attribute {
            name: attribute.name,
            kind: attribute.kind.name(),
            meaning: attribute.meaning,
            optional: attribute.optional,
            compile_time: attribute.compile_time,
        });
        let effects = entry.effects();
        let errors = entry.error_defs().iter().map(|error| ReportedError {
            code: error.code,
            message: error.message,
            when: error.when,
        });
        OpDescription {
            entry,
            summary: entry.summary_text(),
            description: entry.details_text(),
            usage: entry.signature(),
            syntax: entry.syntax(),
            generic_form: entry.generic_form(),
            operand_names: operands.map(|operand| operand.identifier()).collect(),
            result_names,
            attribute_details: attributes.collect(),
            effects: Effects {
                text: entry.effects_text(),
                pure: entry.is(Traits::PURE),
                reads: effects.reads().to_vec(),
                writes: effects.writes().to_vec(),
                outside: effects.is_outside(),
                allocates: effects.allocates(),
                nested: effects.is_nested(),
                everything: effects.is_unknown(),
            },
            errors: errors.collect(),
            example: entry.example_program().map(|example| Example {
                program: example.program(),
                prints: example.output(),
            }),
        }
    }
}

/// Returns Markdown as plain text: blocks of code are indented rather than fenced.
fn indented(markdown: &str) -> String {
    let mut is_code = false;
    let mut text = String::new();
    for line in markdown.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
            continue;
        }
        let indent = if is_code { "    " } else { "" };
        text += &format!("{indent}{line}\n");
    }
    text.truncate(text.trim_end().len());
    text
}
