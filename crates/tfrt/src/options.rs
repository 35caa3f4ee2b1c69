//! The options of the command line, as types.

mod bench;
#[cfg(feature = "dist")]
mod cluster;
mod inspect;
mod model;
#[cfg(feature = "plugins")]
mod plugin;
#[cfg(feature = "serve")]
mod serve;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use tfrt::host::trace;
use tfrt::tensor::math::packed_gemm::InstructionSet;
use tfrt::{Limits, Untrusted};
use tfrt_compiler::pipeline::Pipeline;
use tfrt_run::QueueOption;

use crate::commands::devices::DeviceOption;
#[cfg(feature = "gpu")]
use crate::commands::devices::driver::DriverOption;

pub use bench::BenchOptions;
#[cfg(feature = "dist")]
pub use cluster::{
    ClusterCheckOptions, ClusterCommand, ClusterOptions, ClusterShowOptions, MemberOptions,
    WorkerOptions,
};
pub use inspect::{DecompileOptions, DiffOptions, DumpOptions, ExplainOptions};
pub use model::{DimOptions, InputOptions, InspectOptions, OutputOptions, StateOptions, View};
#[cfg(feature = "plugins")]
pub use plugin::{
    KnownPlugins, PluginCallOptions, PluginCheckOptions, PluginCommand, PluginFunctionsOptions,
    PluginOptions, UsedPlugins,
};
#[cfg(feature = "serve")]
pub use serve::{ServeOptions, ServeSecurityOptions};

const EXIT_STATUS: &str = "\
Exit status:
  0   all is well
  1   the input was rejected, a file could not be read or written, or an output is not as
      expected
  2   the command line makes no sense
  3   a function returned an error
  4   the deadline passed, or the run was interrupted
  5   a limit was exceeded: depth, steps or memory
  6   values leaked
  70  a fault of tfrt itself
  130 it was interrupted a second time, or before or after functions were called, which ends it
      at once

Results and program output go to standard output, everything else to standard error.
`tfrt explain CODE` tells more about the code behind a message, such as TF0201.";

/// Compiles and runs programs as asynchronous dataflow.
#[derive(Debug, Parser)]
#[command(name = "tfrt", version, after_help = EXIT_STATUS, propagate_version = true)]
#[command(max_term_width = 100, arg_required_else_help = true)]
pub struct Cli {
    /// When to use colours in messages
    #[arg(long, global = true, value_name = "WHEN", default_value_t = Color::Auto)]
    #[arg(value_enum, hide_possible_values = true)]
    pub color: Color,

    /// How to write messages: first lines only, in full, or as lines of JSON
    #[arg(long, global = true, value_name = "FORMAT", default_value_t = MessageFormat::Full)]
    #[arg(value_enum)]
    pub message_format: MessageFormat,

    #[command(subcommand)]
    pub command: Command,
}

/// The form of messages on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MessageFormat {
    /// The first line of each
    Short,
    /// With lines of the source, notes and help
    Full,
    /// An object on a line for each
    Json,
}

impl fmt::Display for MessageFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.to_possible_value();
        f.write_str(name.as_ref().map_or("full", |name| name.get_name()))
    }
}

/// The choice of colours in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    Always,
    Never,
}

impl fmt::Display for Color {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.to_possible_value();
        f.write_str(name.as_ref().map_or("auto", |name| name.get_name()))
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Run(Box<RunOptions>),
    Bench(Box<BenchOptions>),
    Compile(CompileOptions),
    Decompile(DecompileOptions),
    Dump(DumpOptions),
    Diff(DiffOptions),
    Opt(OptOptions),
    Check(CheckOptions),
    Inspect(Box<InspectOptions>),
    Kernels(KernelsOptions),
    #[cfg(feature = "plugins")]
    Plugin(PluginOptions),
    Devices(DevicesOptions),
    #[cfg(feature = "dist")]
    Cluster(ClusterOptions),
    #[cfg(feature = "dist")]
    Worker(WorkerOptions),
    #[cfg(feature = "serve")]
    Serve(Box<ServeOptions>),
    Explain(ExplainOptions),
    Lsp(LspOptions),
    Completions(CompletionsOptions),
}

/// Run a model, or a program: its functions in order, those without parameters
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tfrt run model.onnx --random               a model, to see what it gives
  tfrt run model.onnx --random --dim N=8     the same, compiled for a batch of 8
  tfrt run model.onnx --input image=cat.png --top 5 --labels labels.txt
  tfrt run model.bef --input ids=ids.npy --input mask=mask.npy --output probs=probs.npy
  tfrt run model.onnx --input x=data.npz:x --output-dir out --output-format pb
  tfrt run model.onnx --input x=x.npy --expect y=y.npy --tolerance 1e-4
  tfrt run model.onnx --input audio=speech.wav --rate 16000
  tfrt run model.onnx --input input_ids='some text' --tokenizer tokenizer.json
  tfrt run model.onnx --input image=photos/ --top 1 --labels labels.txt
  tfrt run vad.onnx --state stateN=state --input input=chunks.npy    a step for each chunk
  tfrt run model.onnx --state 'present.{i}.key=past_key_values.{i}.key' --steps sequence --input ..
  tfrt run program.mlir                      run every function without parameters
  tfrt run program.bef --function main       run one function of a compiled program
  tfrt run fib.mlir --function fib --arg 20  give parameters, chains excepted
  tfrt run --queue single program.mlir       one thread, always in the same order
  tfrt run --queue multi:4 --deadline 500ms program.mlir
  tfrt run --stats program.mlir              which kernels took the time
  tfrt run --profile run.html program.mlir   the same on a page, line by line and over time
  tfrt run --trace run.pftrace program.mlir  what ran when, for ui.perfetto.dev
  srun -n4 tfrt run --cluster auto program.mlir    on four tasks, of which rank 0 runs the program
  generate | tfrt run -                      read text or bytes from standard input")]
pub struct RunOptions {
    /// The model or program: ONNX, BEF bytes, MLIR text, or - for standard input; told apart by
    /// name and content
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// The work queue that runs the kernels: `single`, or `multi[:THREADS[:BLOCKING]]`
    #[arg(long, value_name = "QUEUE", default_value = "multi")]
    pub queue: QueueOption,

    /// Run this function (may be repeated) instead of all
    #[arg(long = "function", value_name = "NAME")]
    pub functions: Vec<String>,

    /// Run this function first, if the program has it
    #[arg(long, value_name = "NAME")]
    pub init: Option<String>,

    /// A parameter of the function (may be repeated), read according to its type
    #[arg(long = "arg", value_name = "VALUE", allow_hyphen_values = true)]
    pub arguments: Vec<String>,

    /// Where memory comes from: `system`, `profiled`, `leak-check` or `fixed:BYTES`
    #[arg(long, value_name = "ALLOCATOR", default_value = "system")]
    pub allocator: AllocatorOption,

    /// Name the code of each error in the results
    #[arg(long)]
    pub print_error_code: bool,

    /// Write a page for browsers: time on the lines of the source, a timeline, memory, the graph
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub profile: Option<PathBuf>,

    /// Write what ran when, and on which thread, to a file that https://ui.perfetto.dev opens; of tasks of a cluster,
    /// {job} and {task} stand for the task
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,

    /// Tell on standard error, or in the document of --json, where the time and the memory went
    #[arg(long)]
    pub stats: bool,

    /// Print what begins and ends to standard output; with --json, to standard error
    #[arg(long)]
    pub trace_stdout: bool,

    /// How much --trace-stdout tells
    #[arg(long, value_name = "LEVEL", default_value = "default", value_enum)]
    pub trace_level: TraceLevel,

    /// Print one JSON object with results, errors and what the program printed; what else there
    /// is to tell goes to standard error
    #[arg(long)]
    pub json: bool,

    /// Run the nodes of a model as they are, each by its own kernel, instead of making its graph faster first
    #[arg(long)]
    pub no_optimize: bool,

    #[cfg(feature = "plugins")]
    #[command(flatten)]
    pub plugins: UsedPlugins,
    /// Give programs and `--device` this driver of GPUs: `cuda`, or a simulated one that checks what is done, `sim`, or with the
    /// order of its commands and a seed `sim:random:7`
    #[cfg(feature = "gpu")]
    #[arg(long, value_name = "DRIVER", value_parser = DriverOption::parse, conflicts_with = "untrusted")]
    pub gpu_driver: Option<DriverOption>,

    /// Run what a model has kernels for on this device there, and the rest on the processor: `cpu:0`, `gpu:0`
    #[arg(long, value_name = "NAME", value_parser = DeviceOption::parse, conflicts_with = "untrusted")]
    pub device: Option<DeviceOption>,

    /// Refuse a model of which some nodes have no kernel on the device, and name them
    #[arg(long, requires = "device")]
    pub strict_device: bool,

    /// Fail what needs more memory of the device than this at once, such as `2GiB`
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, requires = "device")]
    pub max_device_memory: Option<usize>,

    /// Launch each kernel of a model on a GPU for itself, instead of the graphs that calls alike were captured as
    #[cfg(feature = "gpu")]
    #[arg(long, requires = "device")]
    pub no_gpu_graphs: bool,

    #[cfg(feature = "dist")]
    #[command(flatten)]
    pub member: MemberOptions,

    #[command(flatten)]
    pub limits: LimitOptions,

    #[command(flatten)]
    pub dims: DimOptions,

    #[command(flatten)]
    pub input: InputOptions,

    #[command(flatten)]
    pub state: StateOptions,

    #[command(flatten)]
    pub output: OutputOptions,
}

impl RunOptions {
    /// Returns whether functions are called as those of a program, also of a model.
    pub fn calls_functions(&self) -> bool {
        !self.functions.is_empty() || !self.arguments.is_empty()
    }
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitOptions {
    /// Take the program, and files of inputs, for a stranger's: sets a limit on everything (64 MiB of file,
    /// depth 10000, 10000000 steps, 256 MiB of memory, 10 s) unless its flag sets another, and refuses kernels
    /// that look at files or are for tests
    #[arg(long, conflicts_with = "mmap")]
    pub untrusted: bool,

    /// Bytes of a file that is read, such as 64MiB
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, conflicts_with = "mmap")]
    pub max_file: Option<usize>,

    /// Calls within calls [default: 1000000]
    #[arg(long, value_name = "N")]
    pub max_depth: Option<u32>,

    /// Kernels run and calls made by one function
    #[arg(long, value_name = "N")]
    pub max_steps: Option<u64>,

    /// Bytes for calls and buffers, such as 64MiB
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub max_memory: Option<usize>,

    /// Cancel a function that takes longer: 500ms, 2s, 1m; since a kernel may not stop, `tfrt run` ends if the
    /// function is not over after twice the time, and 100ms more than the time at least
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub deadline: Option<Duration>,
}

impl LimitOptions {
    /// Returns the limits of an untrusted program; `None` of a trusted one.
    pub fn untrusted(&self) -> Option<Untrusted> {
        self.untrusted.then(|| Untrusted {
            max_file_bytes: self.max_file_bytes(),
            limits: self.limits(),
            max_time: self.deadline.unwrap_or(Untrusted::default().max_time),
        })
    }

    /// Returns the limits for the host.
    pub fn limits(&self) -> Limits {
        let rest = match self.untrusted {
            true => Untrusted::default().limits,
            false => Limits::default(),
        };
        Limits {
            max_depth: self.max_depth.unwrap_or(rest.max_depth),
            max_steps: self.max_steps.or(rest.max_steps),
            max_memory: self.max_memory.or(rest.max_memory),
        }
    }

    /// Returns the most bytes of a file that is read.
    pub fn max_file_bytes(&self) -> u64 {
        let max_file = self.max_file.map(|bytes| bytes as u64);
        let rest = self.untrusted.then(|| Untrusted::default().max_file_bytes);
        max_file.or(rest).unwrap_or(u64::MAX)
    }
}

/// Compile an ONNX model or MLIR text to a BEF file
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tfrt compile model.onnx                   write model.bef, which is ready sooner
  tfrt compile model.onnx --dim N=1         the same, for a batch of 1 only
  tfrt compile program.mlir                 write program.bef
  tfrt compile program.mlir -o - | tfrt run -")]
pub struct CompileOptions {
    /// The model or the program, or - for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Where the bytes go; - for standard output [default: FILE with the extension .bef]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Leave out what only serves to turn the file back to text
    #[arg(long)]
    pub strip: bool,

    /// Instruction set that weights of a model are laid out for: avx512, avx2 or plain; other processors lay
    /// them out again when they open the file [default: the best that this processor has]
    #[arg(long, value_name = "SET", value_parser = parse_instructions)]
    pub instructions: Option<InstructionSet>,

    /// Keep the nodes of a model as they are, each run by its own kernel, instead of making its graph faster
    #[arg(long)]
    pub no_optimize: bool,

    #[command(flatten)]
    pub dims: DimOptions,

    #[command(flatten)]
    pub testing: TestingOptions,
}

/// Parse, verify, transform and print a program
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tfrt opt program.mlir             print the program in its usual form
  tfrt opt --generic program.mlir   print it without any custom syntax
  tfrt opt --list                   what passes there are
  tfrt opt --passes inline,sequence-effects,canonicalize program.mlir
  tfrt opt --verify-diagnostics --split-input-file rejected.mlir")]
pub struct OptOptions {
    /// The program, or - for standard input
    #[arg(value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Run these passes, in this order
    #[arg(long, value_name = "PASS,...", value_parser = Pipeline::parse, default_value = "")]
    #[arg(hide_default_value = true)]
    pub passes: Pipeline,

    /// List the passes, and do nothing else
    #[arg(long)]
    pub list: bool,

    /// Verify the program after each pass
    #[arg(long)]
    pub verify_each: bool,

    /// Print the program to standard error after each pass
    #[arg(long)]
    pub print_after: bool,

    /// Tell on standard error how long each pass took
    #[arg(long)]
    pub timing: bool,

    /// Print every operation in generic form
    #[arg(long)]
    pub generic: bool,

    #[command(flatten)]
    pub testing: TestingOptions,
}

#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Testing")]
pub struct TestingOptions {
    /// Take the parts between lines `// -----` for programs of their own
    #[arg(long)]
    pub split_input_file: bool,

    /// Compare errors with the comments `expected-error {{...}}` instead of printing them
    #[arg(long)]
    pub verify_diagnostics: bool,
}

impl TestingOptions {
    /// Returns whether either is asked for.
    pub fn is_asked_for(self) -> bool {
        self.split_input_file || self.verify_diagnostics
    }
}

/// Tell every reason why programs would not compile or open; call nothing
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tfrt check *.mlir
  tfrt check model.onnx                     all operators that have no kernel
  tfrt check --device gpu:0 model.onnx      nodes that have no kernel there; no GPU is needed
  tfrt check --json program.bef")]
pub struct CheckOptions {
    /// Programs and models: MLIR text, ONNX or BEF bytes, or - once for standard input
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,

    /// Report as one JSON object
    #[arg(long)]
    pub json: bool,

    /// Say which nodes of models have no kernel on this device and so run on the processor
    #[arg(long, value_name = "NAME", value_parser = DeviceOption::parse)]
    pub device: Option<DeviceOption>,

    /// Reject a model that has such nodes
    #[arg(long, requires = "device")]
    pub strict_device: bool,

    #[command(flatten)]
    pub dims: DimOptions,

    #[cfg(feature = "plugins")]
    #[command(flatten)]
    pub plugins: KnownPlugins,
}

/// List the kernels and operations that programs and models may use, and what each does
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tfrt kernels               all kernels and operations, with a line on each
  tfrt kernels print         those with `print` in their names
  tfrt kernels 'graph.*'     those that match a pattern with *
  tfrt kernels tfrt.while    all about one: attributes, effects, errors, an example
  tfrt kernels --plugin libfoo.so 'tf.*'  those of a plugin, too")]
pub struct KernelsOptions {
    /// A name, a part of one, or a pattern with * and ?
    #[arg(value_name = "PATTERN")]
    pub pattern: Option<String>,

    /// Show all about each, as for a whole name
    #[arg(long)]
    pub long: bool,

    /// Report as one JSON object
    #[arg(long)]
    pub json: bool,

    #[cfg(feature = "plugins")]
    #[command(flatten)]
    pub plugins: KnownPlugins,
}

/// List the devices that models run on, and say why others are not there
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tfrt devices")]
pub struct DevicesOptions {}

/// Serve an editor: what is wrong, what things are, where they are defined
#[derive(Debug, Args)]
#[command(after_help = "\
The editor starts it and speaks the Language Server Protocol over standard input and output. How to \
tell it to is in docs/editors.md.")]
pub struct LspOptions {
    /// Speak over standard input and output, as it always does
    #[arg(long, hide = true)]
    pub stdio: bool,
}

/// Print a script that completes tfrt's command lines
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tfrt completions bash > ~/.local/share/bash-completion/completions/tfrt")]
pub struct CompletionsOptions {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// `system`, `profiled`, `leak-check` or `fixed:BYTES`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocatorOption {
    System,
    Profiled,
    LeakCheck,
    Fixed(usize),
}

impl FromStr for AllocatorOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "system" => Ok(AllocatorOption::System),
            None if text == "profiled" => Ok(AllocatorOption::Profiled),
            None if text == "leak-check" => Ok(AllocatorOption::LeakCheck),
            Some(("fixed", bytes)) => parse_bytes(bytes).map(AllocatorOption::Fixed),
            _ => Err("expected `system`, `profiled`, `leak-check` or `fixed:BYTES`".to_owned()),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TraceLevel {
    /// Programs and functions
    Default,
    /// And what costs more to tell
    Verbose,
    /// And every kernel
    Debug,
}

impl From<TraceLevel> for trace::TraceLevel {
    fn from(level: TraceLevel) -> trace::TraceLevel {
        match level {
            TraceLevel::Default => trace::TraceLevel::Default,
            TraceLevel::Verbose => trace::TraceLevel::Verbose,
            TraceLevel::Debug => trace::TraceLevel::Debug,
        }
    }
}

fn parse_instructions(text: &str) -> Result<InstructionSet, String> {
    let found = InstructionSet::from_name(text);
    found.ok_or_else(|| "expected avx512, avx2 or plain".to_owned())
}

/// Reads `500ms`, `2s`, `1.5m`, `250us`, `1h`.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let expected = || "expected a time with a unit: 500ms, 2s, 1m".to_owned();
    let (number, unit) = split_unit(text);
    let seconds_each = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(expected()),
    };
    let number: f64 = number.parse().map_err(|_| expected())?;
    Duration::try_from_secs_f64(number * seconds_each).map_err(|error| error.to_string())
}

/// Reads `1024`, `64k`, `64KiB`, `2G`; all units are powers of 1024.
fn parse_bytes(text: &str) -> Result<usize, String> {
    let expected = || "expected a number of bytes: 4096, 64KiB, 1GiB".to_owned();
    let (number, unit) = split_unit(text);
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return Err(expected()),
    };
    let number: usize = number.parse().map_err(|_| expected())?;
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| format!("'{text}' is more than can be addressed"))
}

fn split_unit(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes_and_times_are_read_with_units() {
        assert_eq!(parse_bytes("1024"), Ok(1024));
        assert_eq!(parse_bytes("64KiB"), Ok(65536));
        assert_eq!(parse_bytes("2 G"), Ok(2 << 30));
        parse_bytes("1T").unwrap_err();
        parse_bytes("99999999999999999999").unwrap_err();
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1500)));
        parse_duration("500").unwrap_err();
        parse_duration("-1s").unwrap_err();
        parse_duration("1e400s").unwrap_err();
        assert_eq!("fixed:1024".parse(), Ok(AllocatorOption::Fixed(1024)));
    }
}
