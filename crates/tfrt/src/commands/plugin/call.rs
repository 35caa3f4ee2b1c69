//! `tfrt plugin call`: one call of an operation of a plugin, for its author.

use tfrt::corert::OpAttrs;
use tfrt::eager::{Eager, Handle};
use tfrt::{Error, PluginOps, Runtime};

use super::values;
use crate::commands::{print_json, print_line, rejection};
use crate::console::{Console, Problem, ProblemSource};
use crate::failure::{ExitStatus, Failure, status_of};
use crate::options::PluginCallOptions;

/// The name of the document's JSON schema.
const SCHEMA: &str = "tfrt.plugin-call/1";

/// The most operations that a message names.
const MAX_NAMED: usize = 8;

/// Says which operations a plugin has.
fn listed(names: &[String]) -> String {
    let (named, more) = names.split_at(names.len().min(MAX_NAMED));
    let named = named.join(", ");
    match (names.is_empty(), more.len()) {
        (true, _) => "it has no kernel on the processor".to_owned(),
        (_, 0) => format!("it has {named}"),
        (_, n) => format!("it has {named} and {n} more: see 'tfrt plugin check --load --long'"),
    }
}

/// Calls an operation, and prints its results.
pub(super) fn call(options: &PluginCallOptions, console: &Console) -> Result<ExitStatus, Failure> {
    let plugin = super::load(&options.library)?;
    let name = options.op.strip_prefix("tf.").unwrap_or(&options.op);
    let op = format!("tf.{name}");
    let ops = PluginOps::new([&plugin]).first();
    if !ops.names().contains(&op) {
        let names = ops.names();
        let nearest = tfrt::ir::similar::nearest(&op, names.iter().map(String::as_str));
        return Err(Failure::Rejected {
            code: None,
            message: format!("{} has no kernel of an operation '{name}'", plugin.name()),
            help: Some(match nearest {
                Some(nearest) => format!("there is an operation '{nearest}'"),
                None => listed(&names),
            }),
        });
    }
    let spec = tfrt::capi::spec(name);
    let runtime = Runtime::builder().plugins(ops).build();
    let eager = Eager::new(&runtime);
    let usage = |why: String| Failure::Usage(why);
    let mut inputs = Vec::new();
    for text in &options.arguments {
        let tensor = values::tensor(text, runtime.host().allocator());
        inputs.push(eager.of(tensor.map_err(|why| usage(format!("--arg {text}: {why}")))?));
    }
    let mut attrs = OpAttrs::new();
    for (name, text) in &options.attrs {
        let kind = spec.as_ref().and_then(|spec| spec.attr(name));
        let value = values::attr(
            text,
            kind.map(|attr| (attr.kind, attr.is_list)),
            runtime.host().allocator(),
        );
        let value = value.map_err(|why| usage(format!("--attr {name}={text}: {why}")))?;
        attrs
            .set_named(name, value)
            .map_err(|error| usage(format!("--attr {name}: {}", error.message())))?;
    }
    let results = run(&eager, &op, inputs, &attrs);
    match results {
        Ok(texts) if options.json => print_json(&serde_json::json!({
            "schema": SCHEMA,
            "op": name,
            "results": texts,
        }))?,
        Ok(texts) => {
            for text in texts {
                print_line(&text)?;
            }
        }
        Err(error) => {
            // Where this file calls the operation is nothing to the plugin's author.
            let bare = Error::new(error.code(), error.message());
            let notes = error.notes().iter();
            let bare = notes.fold(bare, |bare, note| bare.with_note(note.as_str()));
            let problem = Problem {
                origin: ProblemSource::Command,
                ..Problem::of_run(&bare)
            };
            console.tell(&problem);
            let status = status_of(&[error.code()], ExitStatus::FunctionFailed);
            if options.json {
                rejection::write_problems(SCHEMA, None, Some(status), vec![problem])?;
            }
            return Err(Failure::Told(status));
        }
    }
    Ok(ExitStatus::Fine)
}

fn run(
    eager: &Eager,
    op: &str,
    inputs: Vec<Handle>,
    attrs: &OpAttrs,
) -> Result<Vec<String>, Error> {
    let inputs: Vec<&Handle> = inputs.iter().collect();
    let results = eager.op(op, &inputs[..], attrs)?;
    let mut texts = Vec::new();
    for result in &results {
        result.wait()?;
        texts.push(result.handle().to_string());
    }
    Ok(texts)
}
