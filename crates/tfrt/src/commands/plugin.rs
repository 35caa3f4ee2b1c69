//! `tfrt plugin`: libraries of kernels that are built on TensorFlow's C headers; and the plugins of a run.

use std::path::Path;

use serde::Serialize;
use tfrt::capi::codes;
use tfrt::capi::{LoadError, functions};
use tfrt::corert::CoreRuntime;
use tfrt::ir::{Attribute, Diagnostics, Module, ValueId};
use tfrt::{Plugin, PluginOps, Runtime, RuntimeBuilder};

use super::{print_json, print_line};
use crate::console::Console;
use crate::failure::{ExitStatus, Failure};
use crate::options::{
    KnownPlugins, PluginCommand, PluginFunctionsOptions, PluginOptions, UsedPlugins,
};

mod call;
mod check;
mod values;

/// Looks at plugins, or calls an operation of one.
pub fn plugin(options: &PluginOptions, console: &Console) -> Result<ExitStatus, Failure> {
    match &options.command {
        PluginCommand::Check(options) => check::check(options),
        PluginCommand::Call(options) => call::call(options, console),
        PluginCommand::Functions(options) => functions(options),
    }
}

/// Loads plugins whose operations a command knows, and adds these to its runtime. Which of two kernels comes first does not
/// matter where none runs.
pub fn known(known: &KnownPlugins, builder: RuntimeBuilder) -> Result<RuntimeBuilder, Failure> {
    if known.plugins.is_empty() {
        return Ok(builder);
    }
    let plugins = loaded(known)?;
    Ok(builder.plugins(PluginOps::new(&plugins).first()))
}

/// Loads plugins that a command lists.
pub fn loaded(known: &KnownPlugins) -> Result<Vec<Plugin>, Failure> {
    known.plugins.iter().map(|path| load(path)).collect()
}

/// Loads the plugins that a command uses, each of which is loaded once.
pub fn load_used(used: &UsedPlugins) -> Result<Vec<Plugin>, Failure> {
    used.plugins.iter().map(|path| load(path)).collect()
}

/// Adds the operations of loaded plugins to a runtime, as the options say.
pub fn add_used(
    used: &UsedPlugins,
    plugins: &[Plugin],
    builder: RuntimeBuilder,
) -> Result<RuntimeBuilder, Failure> {
    if plugins.is_empty() {
        return Ok(builder);
    }
    let mut ops = PluginOps::new(plugins);
    for (from, to) in &used.renamed {
        if !ops.names().contains(to) {
            return Err(Failure::Rejected {
                code: Some(codes::NOT_LOADED),
                message: format!("--plugin-map: no plugin has a kernel of '{to}'"),
                help: tfrt::ir::similar::nearest(to, ops.names().iter().map(String::as_str))
                    .map(|nearest| format!("there is an operation '{nearest}'")),
            });
        }
        ops = ops.renamed(from, to);
    }
    if used.first {
        ops = ops.first();
    }
    let is_built_in = |op: &str| {
        let name = op.strip_prefix("tf.").and_then(tfrt::ops::names::tf::name);
        name.is_some()
    };
    if let Some(first) = ops.clashes(is_built_in).first() {
        return Err(Failure::Rejected {
            code: Some(codes::CLASH),
            message: format!("{first}, clashes with tfrt's own kernel: both are of priority 0"),
            help: Some("--plugin-first lets the plugin's come first".to_owned()),
        });
    }
    Ok(builder.plugins(ops))
}

/// Checks that the processor has all operations that a program calls by name, and that those with side effects are given a
/// chain. Handlers are values, and a program may make one that knows others: so only programs that are checked with plugins
/// are asked for all, others for names with a prefix on handlers of the runtime.
///
/// # Errors
///
/// The calls of others, and those without a chain.
pub fn known_ops(module: &Module, prefix: &str, runtime: &Runtime) -> Result<(), Diagnostics> {
    let core = CoreRuntime::new(runtime.host());
    let cpu = core.cpu();
    let mut found = Diagnostics::default();
    module.walk_pre_order(module.top(), &mut |op| {
        let calls = [
            "corert.executeop",
            "corert.executeop.seq",
            "corert_sync.executeop",
        ];
        if !calls.iter().any(|call| *module.op(op).name() == **call) {
            return;
        }
        let Some(Attribute::String(name)) = module.op(op).attribute("op_name") else {
            return;
        };
        let is_own = |value: &ValueId| {
            let maker = module.defining_op(*value);
            maker.is_some_and(|op| *module.op(op).name() == *"corert.get_op_handler")
        };
        let is_asked = prefix.is_empty() || module.op(op).operands().iter().any(is_own);
        let Some(name) = name
            .as_str()
            .filter(|name| is_asked && name.starts_with(prefix))
        else {
            return;
        };
        let shown = name.escape_debug();
        match core.op(name, &cpu) {
            Err(_) => {
                let message = format!("calls '{shown}', which neither tfrt nor a plugin has");
                found.push(module.op_error(codes::UNKNOWN_OP, op, message));
            }
            Ok(called) if *module.op(op).name() == *calls[0] && called.needs_chain() => {
                let message = format!("calls '{shown}', which has side effects, without a chain");
                let error = module.op_error(codes::NO_CHAIN, op, message);
                found.push(error.help("`corert.executeop.seq` takes a chain"));
            }
            Ok(_) => {}
        }
    });
    found.into_result()
}

/// Loads a plugin that the command line names.
#[expect(unsafe_code, reason = "loading runs foreign code")]
fn load(path: &Path) -> Result<Plugin, Failure> {
    tfrt::capi::crash::tell();
    // SAFETY: the caller of the command has named the library, and trusts it.
    let loaded = unsafe { Plugin::load(path) };
    loaded.map_err(refused)
}

fn refused(error: LoadError) -> Failure {
    let notes = error.notes.join(", ");
    Failure::Rejected {
        code: Some(error.code),
        message: match notes.is_empty() {
            true => error.message,
            false => format!("{}: {notes}", error.message),
        },
        help: Some("`tfrt plugin check` looks at a library without running it".to_owned()),
    }
}

#[derive(Serialize)]
struct FunctionReport {
    name: &'static str,
    header: &'static str,
    declaration: String,
    summary: &'static str,
}

fn functions(options: &PluginFunctionsOptions) -> Result<ExitStatus, Failure> {
    if options.header {
        print_line(functions::header().trim_end())?;
        return Ok(ExitStatus::Fine);
    }
    let reports = functions::FUNCTIONS.iter().map(|function| FunctionReport {
        name: function.name,
        header: function.header,
        declaration: function.declaration(),
        summary: function.summary,
    });
    let reports: Vec<FunctionReport> = reports.collect();
    if options.json {
        print_json(&serde_json::json!({
            "schema": "tfrt.plugin-functions/1",
            "functions": reports,
        }))?;
        return Ok(ExitStatus::Fine);
    }
    let mut header = "";
    for report in reports {
        if report.header != header {
            header = report.header;
            print_line(&format!("{header}:"))?;
        }
        print_line(&format!("  {}\n      {}", report.name, report.summary))?;
    }
    Ok(ExitStatus::Fine)
}
