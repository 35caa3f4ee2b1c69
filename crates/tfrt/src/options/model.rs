//! The options for inputs and outputs of models.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueHint};
use tfrt::{OpenOptions, Precision};

use crate::data::image::{Layout, Preparation, Range};
use crate::data::read::Conversion;
use crate::data::write::Format;

/// The dimensions of a model that are fixed.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Dimensions of a model")]
pub struct DimOptions {
    /// Fix a dimension of inputs that has a name to a size (may be repeated): the model is compiled for it, inputs
    /// of another size are refused, and those that are generated or made of images have it
    #[arg(long = "dim", value_name = "NAME=N", value_parser = parse_dim)]
    pub dims: Vec<(String, usize)>,

    /// Take arguments of a StableHLO module from a .safetensors file (may be repeated): those that the names in their
    /// locations say, which `as_text(debug_info=True)` keeps
    #[arg(long = "weights", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub weights: Vec<PathBuf>,

    /// Take this function of a SavedModel [default: serving_default, or the only one]
    #[arg(long, value_name = "NAME")]
    pub signature: Option<String>,

    /// Take the graph of a SavedModel that has these tags, with commas between them [default: serve]
    #[arg(long, value_name = "TAGS")]
    pub tags: Option<String>,

    /// Calculate a quantised model as it is written, in floats, instead of with integers, whose results may differ by a step
    #[arg(long, help_heading = "Options")]
    pub no_quantize: bool,

    /// Precision of factors in products and convolutions by constant weights. bf16 keeps 8 bits of each factor, and is about
    /// twice as fast for large models on processors with AMX; sums stay f32. On others nothing is rounded, and a warning
    /// says so [default: f32]
    #[arg(long, value_name = "TYPE", value_parser = Precision::from_str, help_heading = "Options")]
    pub precision: Option<Precision>,
}

impl DimOptions {
    /// Returns the options by which a model is opened, optimized or not.
    pub fn open_options(&self, is_optimized: bool) -> OpenOptions {
        let options = OpenOptions::new()
            .optimize(is_optimized)
            .quantize(!self.no_quantize)
            .precision(self.precision.unwrap_or_default());
        let options = match &self.signature {
            Some(name) => options.signature(name),
            None => options,
        };
        let options = match &self.tags {
            Some(tags) => options.tags(tags),
            None => options,
        };
        let weights = self.weights.iter();
        let options = weights.fold(options, OpenOptions::weights);
        let dims = self.dims.iter();
        dims.fold(options, |options, (name, size)| options.dim(name, *size))
    }
}

/// The inputs of a model.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Inputs of a model")]
pub struct InputOptions {
    /// An input from a file (may be repeated): .npy, .npz[:KEY], .safetensors[:KEY], .pb, .json, PNG, JPEG, WAV,
    /// or - for standard input; with --tokenizer, text. Of a model with one input, the name may be left out. `run`
    /// takes a folder, a pattern such as photos/*.png, or an input that is given several times for a batch: a call
    /// for each file
    #[arg(long = "input", value_name = "NAME=FILE")]
    pub inputs: Vec<String>,

    /// For text: the file tokenizer.json that the model was trained with. Inputs of integers are TEXT itself,
    /// FILE.txt, or - for standard input; inputs attention_mask and token_type_ids follow
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub tokenizer: Option<PathBuf>,

    /// For sound: the samples a second that the model takes; WAV files of other rates are resampled
    #[arg(long, value_name = "HZ")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub rate: Option<u32>,

    /// Generate the inputs that no --input gives
    #[arg(long)]
    pub random: bool,

    /// Seed of --random: equal seeds give equal elements
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = parse_seed, allow_negative_numbers = true)]
    pub seed: u64,

    /// Use a compiled file where it lies, without reading it first: ready sooner, and weights are
    /// shared with other processes. By this you promise that nobody changes the file meanwhile
    #[arg(long)]
    pub mmap: bool,

    /// For images: what is subtracted from each channel
    #[arg(
        long,
        value_name = "X,...",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    pub mean: Vec<f64>,

    /// For images: what each channel is divided by then
    #[arg(
        long,
        value_name = "X,...",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    pub std: Vec<f64>,

    /// For images: where the channels are [default: what the model's extents look like]
    #[arg(long, value_name = "LAYOUT", value_enum)]
    pub layout: Option<Layout>,

    /// For images: whether pixels go from 0 to 1 or from 0 to 255, before --mean and --std
    #[arg(long, value_name = "RANGE", value_enum, default_value = "unit")]
    pub pixels: Range,
}

impl InputOptions {
    /// Returns whether anything was asked for that only models have.
    pub fn is_used(&self) -> bool {
        !self.inputs.is_empty() || self.random
    }

    /// Returns how pictures and sound become tensors.
    pub fn conversion(&self) -> Conversion {
        Conversion {
            image: Preparation {
                mean: self.mean.clone(),
                deviation: self.std.clone(),
                layout: self.layout,
                range: self.pixels,
            },
            rate: self.rate,
        }
    }
}

/// The state that a model keeps from one step to the next, and the steps.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "State and steps of a model")]
pub struct StateOptions {
    /// Keep an output of each step as an input of the next (may be repeated; {i} in both names stands for all
    /// numbers that occur). It begins with zeros, or with what --input gives; --output writes what it is in the end
    #[arg(long = "state", value_name = "OUTPUT=INPUT")]
    pub states: Vec<String>,

    /// Give states room for N elements in the dimension along which they grow, such as a cache of keys: a step then
    /// appends in place, and copies nothing. A buffer that has one size from the beginning is N long. More than N is an
    /// error
    #[arg(long, value_name = "N", requires = "states")]
    pub max_length: Option<usize>,

    /// Call the model in steps (may be repeated). An input that has one dimension more than the model takes has a step in
    /// each element of its first. N is the number of steps: without such an input, the same N times. DIM is a
    /// dimension by name: inputs that have it are cut along it, in pieces of SIZE [default: 1]; INPUT=DIM is a dimension
    /// of one input, by name or number. With +BEFORE each piece begins with so many elements from before it, zeros at
    /// first, and the last is filled with zeros. An input as long as what a cache has seen, such as a mask, grows with the steps.
    /// Outputs that have the DIM, too, are joined along it; all others are stacked in a new first dimension
    #[arg(long = "steps", value_name = "N|[INPUT=]DIM[:SIZE[+BEFORE]]")]
    pub steps: Vec<String>,

    /// Write the SavedModel to a new directory, with its variables as they are in the end
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub save: Option<PathBuf>,
}

impl StateOptions {
    /// Returns whether the model is called in steps, or its state is kept.
    pub fn is_used(&self) -> bool {
        !self.states.is_empty() || !self.steps.is_empty() || self.save.is_some()
    }
}

/// The destinations of the outputs of a model.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Outputs of a model")]
pub struct OutputOptions {
    /// Write an output to a file (may be repeated): .npy, .json, .pb or .safetensors. Of a model with one output,
    /// the name may be left out
    #[arg(long = "output", value_name = "NAME=FILE")]
    pub outputs: Vec<String>,

    /// Write all outputs to a folder, each to NAME.npy or what --output-format says; of a batch, each to
    /// FILE.NAME.npy
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output_dir: Option<PathBuf>,

    /// How outputs are written [default: what the name of the file ends in, else npy]
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub output_format: Option<Format>,

    /// Compare an output with a file (may be repeated): .npy, .npz[:KEY], .safetensors[:KEY], .pb or .json. The exit
    /// status is 1 if type, shape or an element differs. Of a model with one output, the name may be left out
    #[arg(long = "expect", value_name = "NAME=FILE")]
    pub expected: Vec<String>,

    /// For --expect: how far a number may be from the expected one, T + T * |expected| for floats and T for
    /// integers
    #[arg(long, value_name = "T", default_value_t = 1e-4, value_parser = parse_tolerance, requires = "expected")]
    pub tolerance: f64,

    /// Show the K largest elements along the last dimension
    #[arg(long, value_name = "K")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub top: Option<u16>,

    /// Names of the elements along the last dimension: a file with a line for each
    #[arg(long, value_name = "FILE", requires = "top", value_hint = ValueHint::FilePath)]
    pub labels: Option<PathBuf>,
}

impl OutputOptions {
    /// Returns whether anything was asked for that only models have.
    pub fn is_used(&self) -> bool {
        !self.outputs.is_empty()
            || !self.expected.is_empty()
            || self.output_dir.is_some()
            || self.top.is_some()
    }
}

/// Show what a model is made of: its operations, its constants, what it takes of memory
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tfrt inspect graph model.onnx                     operations in order, with types
  tfrt inspect graph model.onnx --dim batch=8       the same, of inputs of this size
  tfrt inspect graph model.bef --html graph.html    what it was compiled to, as a drawing
  tfrt inspect weights model.onnx                   constants, the largest first
  tfrt inspect memory model.bef --dim batch=8       what a call takes, measured")]
pub struct InspectOptions {
    /// The view to show
    #[arg(value_name = "VIEW", value_enum)]
    pub view: View,

    /// The model: ONNX, BEF bytes, MLIR text, or - for standard input; told apart by name and content
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Write a page for browsers, with nothing from elsewhere
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,

    /// Report as one JSON object
    #[arg(long, conflicts_with = "html")]
    pub json: bool,

    #[command(flatten)]
    pub dims: DimOptions,

    #[command(flatten)]
    pub input: InputOptions,
}

/// The views of `tfrt inspect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum View {
    /// Operations, with what goes in and out
    Graph,
    /// Memory that is held when the model is open, and during calls
    Memory,
    /// Constants, and what their elements are like
    Weights,
}

fn parse_seed(text: &str) -> Result<u64, String> {
    let number = text.parse().ok();
    number.ok_or_else(|| format!("expected a whole number from 0 to {}", u64::MAX))
}

fn parse_tolerance(text: &str) -> Result<f64, String> {
    let number = text.parse().ok();
    let number = number.filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "expected a number of 0 or more, such as 1e-4".to_owned())
}

fn parse_dim(text: &str) -> Result<(String, usize), String> {
    let expected = || format!("expected NAME=N, such as batch=4, found '{text}'");
    let (name, extent) = text.rsplit_once('=').ok_or_else(expected)?;
    let extent = extent.parse().map_err(|_| expected())?;
    match name.is_empty() {
        true => Err(expected()),
        false => Ok((name.to_owned(), extent)),
    }
}
