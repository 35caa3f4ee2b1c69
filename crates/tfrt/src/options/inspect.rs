//! Flags of the commands that look into compiled programs.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::TestingOptions;

/// Turn a BEF file back to MLIR text
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tfrt decompile program.bef                     print the program, with locations
  tfrt decompile program.bef --no-locations      print it as people write it
  tfrt decompile program.bef -o - | tfrt compile - -o same.bef

Text is compiled first.")]
pub struct DecompileOptions {
    /// The program, or - for standard input
    #[arg(value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Where the text goes; - for standard output
    #[arg(short, long, value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,

    /// Print every operation in generic form
    #[arg(long)]
    pub generic: bool,

    /// Leave out locations, without which the text does not compile to the same bytes
    #[arg(long)]
    pub no_locations: bool,

    #[command(flatten)]
    pub testing: TestingOptions,
}

/// Show every byte of a BEF file and what it means
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tfrt dump program.bef
  tfrt dump program.mlir --json   what it would be compiled to")]
pub struct DumpOptions {
    /// The program: BEF bytes, MLIR text, or - for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Report as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Compare two programs by structure: functions, kernels, attributes, types, edges
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tfrt diff old.mlir new.mlir
  tfrt diff program.mlir program.bef

The exit status is 1 if the programs differ. Names of values, order of functions, locations and
streams make no difference; nor do, if a file is stripped, attributes and types of results.")]
pub struct DiffOptions {
    /// One program: MLIR text, BEF bytes, or - for standard input
    #[arg(value_name = "OLD", value_hint = ValueHint::FilePath)]
    pub old: PathBuf,

    /// The other one; only one of both may be -
    #[arg(value_name = "NEW", value_hint = ValueHint::FilePath)]
    pub new: PathBuf,

    /// Report as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Explain a code that stands behind a message, with examples
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tfrt explain TF0103   what the code means and what to do about it
  tfrt explain 103      the same, as '[TF0103]' is
  tfrt explain          all codes, with a line for each")]
pub struct ExplainOptions {
    /// The code
    #[arg(value_name = "CODE", conflicts_with = "list")]
    pub code: Option<String>,

    /// List all codes
    #[arg(long)]
    pub list: bool,
}
