//! The flags of `tfrt bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use tfrt_run::QueueOption;

use crate::commands::devices::DeviceOption;
#[cfg(feature = "gpu")]
use crate::commands::devices::driver::DriverOption;

#[cfg(feature = "plugins")]
use super::UsedPlugins;
use super::{DimOptions, InputOptions, LimitOptions, parse_bytes, parse_duration};

/// Run a model or a function again and again, and tell how long it takes
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tfrt bench model.onnx --dim batch=8           a model, of inputs that are generated
  tfrt bench program.mlir                       the one function without parameters, or main
  tfrt bench fib.mlir --function fib --arg 20   with parameters, chains excepted
  tfrt bench --queue single --time 5s program.bef
  tfrt bench --json program.mlir
  tfrt bench --device gpu:0 model.onnx          a model on a GPU

A call takes from its beginning until its results are there, or, if it has none, until all of it has
run. Short calls are timed several at a time. What kernels print is discarded. The first error ends
it, and so does a call that exceeds a limit; a kernel that does not stop at the deadline is waited
for.")]
pub struct BenchOptions {
    /// The model or program: ONNX, BEF bytes, MLIR text, or - for standard input; told apart by
    /// name and content
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// The function [default: the only one that fits, or main]
    #[arg(long, value_name = "NAME")]
    pub function: Option<String>,

    /// A parameter of the function (may be repeated), read according to its type
    #[arg(long = "arg", value_name = "VALUE", allow_hyphen_values = true)]
    pub arguments: Vec<String>,

    /// The work queue that runs the kernels: `single`, or `multi[:THREADS[:BLOCKING]]`
    #[arg(long, value_name = "QUEUE", default_value = "multi")]
    pub queue: QueueOption,

    /// How long to measure: 500ms, 2s, 1m
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "1s")]
    pub time: Duration,

    /// Make so many calls, however long they take
    #[arg(long, value_name = "N", conflicts_with = "time")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub runs: Option<u64>,

    /// How long to call the function before
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "200ms")]
    pub warm_up: Duration,

    /// Tell which kernels took the time, and where they stand in the source or model: of further calls, which are recorded
    #[arg(long)]
    pub stats: bool,

    /// Report as one JSON object
    #[arg(long)]
    pub json: bool,

    /// Run the nodes of a model as they are, each by its own kernel, instead of making its graph faster first
    #[arg(long)]
    pub no_optimize: bool,

    /// Give programs and `--device` this driver of GPUs: `cuda`, or a simulated one that checks what is done, `sim`, or with
    /// the order of its commands and a seed `sim:random:7`
    #[cfg(feature = "gpu")]
    #[arg(long, value_name = "DRIVER", value_parser = DriverOption::parse, conflicts_with = "untrusted")]
    pub gpu_driver: Option<DriverOption>,

    /// Run what a model has kernels for on this device there, and the rest on the processor: `cpu:0`, `gpu:0`
    #[arg(long, value_name = "NAME", value_parser = DeviceOption::parse, conflicts_with = "untrusted")]
    pub device: Option<DeviceOption>,

    /// Fail what needs more memory of the device than this at once, such as `2GiB`
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, requires = "device")]
    pub max_device_memory: Option<usize>,

    /// Launch each kernel of a model on a GPU for itself, instead of the graphs that calls alike were captured as
    #[cfg(feature = "gpu")]
    #[arg(long, requires = "device")]
    pub no_gpu_graphs: bool,

    #[cfg(feature = "plugins")]
    #[command(flatten)]
    pub plugins: UsedPlugins,

    #[command(flatten)]
    pub limits: LimitOptions,

    #[command(flatten)]
    pub dims: DimOptions,

    #[command(flatten)]
    pub input: InputOptions,
}
