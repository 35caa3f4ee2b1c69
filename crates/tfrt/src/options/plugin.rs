//! Options about plugins.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// Plugins that a run uses.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Plugins")]
pub struct UsedPlugins {
    /// Load a plugin, a library of kernels built on TensorFlow's C headers (may be repeated): its code runs in this
    /// process, and is trusted
    #[arg(long = "plugin", value_name = "LIB", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with = "untrusted")]
    pub plugins: Vec<PathBuf>,

    /// Call an operation in place of another with the same inputs: tf.MatMul=tf._ITEXMatMul (may be repeated)
    #[arg(long = "plugin-map", value_name = "FROM=TO", value_parser = pair, requires = "plugins")]
    pub renamed: Vec<(String, String)>,

    /// Let kernels of plugins of priority 0 come before tfrt's own
    #[arg(long = "plugin-first", requires = "plugins")]
    pub first: bool,
}

/// Plugins whose operations are known to a command that runs no program.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Plugins")]
pub struct KnownPlugins {
    /// Load a plugin, a library of kernels built on TensorFlow's C headers (may be repeated): its registration runs in this
    /// process, and is trusted
    #[arg(long = "plugin", value_name = "LIB", value_hint = ValueHint::FilePath)]
    pub plugins: Vec<PathBuf>,
}

/// Look at plugins: libraries of kernels that are built on TensorFlow's C headers
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tfrt plugin check libfoo.so               does it load? Nothing of it runs
  tfrt plugin check --load libfoo.so        load it in a process of its own, and list its kernels
  tfrt plugin call libfoo.so Axpy --arg f32[3]=1,2,3 --arg f32[3]=4 --attr alpha=0.5
  tfrt plugin functions                     the functions of the C API that tfrt has
  tfrt run --plugin libfoo.so program.mlir  a program that calls its operations")]
pub struct PluginOptions {
    #[command(subcommand)]
    pub command: PluginCommand,
}

#[derive(Debug, Subcommand)]
pub enum PluginCommand {
    Check(PluginCheckOptions),
    Call(PluginCallOptions),
    Functions(PluginFunctionsOptions),
}

/// Say whether plugins load, and what they ask for, without running them
#[derive(Debug, Args)]
pub struct PluginCheckOptions {
    /// The libraries
    #[arg(value_name = "LIB", required = true, value_hint = ValueHint::FilePath)]
    pub libraries: Vec<PathBuf>,

    /// Load each in a process of its own, too, and list its operations and kernels
    #[arg(long)]
    pub load: bool,

    /// Load it in this process, for the process that asked
    #[arg(long, hide = true)]
    pub in_process: bool,

    /// List each function of the C API that it asks for, each operation and kernel
    #[arg(long)]
    pub long: bool,

    /// Report as one JSON object for each library
    #[arg(long)]
    pub json: bool,
}

/// Call an operation of a plugin once
#[derive(Debug, Args)]
pub struct PluginCallOptions {
    /// The library
    #[arg(value_name = "LIB", value_hint = ValueHint::FilePath)]
    pub library: PathBuf,

    /// The operation: MatMul
    #[arg(value_name = "OP")]
    pub op: String,

    /// An input (may be repeated): type, extents, and elements or one for all: f32[2,3]=1.5
    #[arg(long = "arg", value_name = "TENSOR", allow_hyphen_values = true)]
    pub arguments: Vec<String>,

    /// An attribute (may be repeated): transpose_a=true, T=f32, ksize=[1,2,2,1]
    #[arg(long = "attr", value_name = "NAME=VALUE", value_parser = pair)]
    pub attrs: Vec<(String, String)>,

    /// Report as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// List the functions of TensorFlow's C API that tfrt has
#[derive(Debug, Args)]
pub struct PluginFunctionsOptions {
    /// Print a C header that declares them
    #[arg(long)]
    pub header: bool,

    /// Report as one JSON object
    #[arg(long, conflicts_with = "header")]
    pub json: bool,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = pair.ok_or_else(|| format!("expected NAME=VALUE, found '{text}'"))?;
    Ok((name.to_owned(), value.to_owned()))
}
