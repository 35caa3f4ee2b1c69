//! The operations of ONNX: `%y = "cpu.onnx.Relu"(%x) {attributes = [], opset = 14 : i64} : (!t.tensor) -> !t.tensor`
//!
//! | In | Is |
//! | --- | --- |
//! | operands | `!t.tensor`, `!t.sequence`, `!t.optional`, or `!t.none` for what is left out; what is left out at the end may be missing |
//! | results | as many as the program asks for |
//! | `attributes` | names and values alternately, as the model has them |
//! | `opset` | the version of the operation's domain that the model was made for |
//!
//! A kernel is an [`Operation`]: a function of a [`Node`], which has all of these. It checks what it gets,
//! makes its outputs, and calculates them by functions of [`tfrt_tensor::math`]; large ones on the workers of
//! the queue, so that they may come later ([`Outputs`]). Families are files, each with its list
//! ([`OPERATIONS`]), and all of them are called from [`register`].

use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{Error, ExecutionContext};

mod activation;
mod attention;
mod attributes;
mod beside;
mod bits;
mod carried;
mod cast;
mod constant;
mod control;
mod conv;
mod create;
mod decoder;
mod detection;
mod dispatch;
mod elementwise;
mod fold;
mod gather;
mod image;
mod inputs;
mod loss;
mod matmul;
mod microsoft;
mod ml;
mod movement;
mod n_grams;
mod norm;
mod order;
mod outputs;
mod pool;
mod prepare;
mod quantize;
mod random;
mod reduce;
mod rnn;
mod rows;
mod scatter;
mod sequence;
mod shape;
mod signal;
mod softmax;
mod strings;
mod training;
mod weight_files;
mod windows;

pub use attributes::Attributes;
pub use beside::Beside;
pub(crate) use carried::Carried;
pub(crate) use constant::{HeldAttributes, in_place};
pub use inputs::Inputs;
pub use outputs::Outputs;
pub(crate) use prepare::{CODEC, PrepareRow, is_kept, state};
pub use rows::{kernel_of, prepare_of};
pub use weight_files::WeightFiles;

use dispatch::{with_floating, with_real};

/// Calculates the results of an operation.
pub type Operation = fn(&Node<'_>) -> Result<Outputs, Error>;

/// Names and what calculates them.
pub type Operations = [(&'static str, Operation)];

/// All families, each the list of its operations.
pub const OPERATIONS: &[&Operations] = &[
    activation::OPERATIONS,
    attention::OPERATIONS,
    bits::OPERATIONS,
    cast::OPERATIONS,
    constant::OPERATIONS,
    conv::OPERATIONS,
    create::OPERATIONS,
    decoder::OPERATIONS,
    detection::OPERATIONS,
    elementwise::OPERATIONS,
    fold::OPERATIONS,
    gather::OPERATIONS,
    image::OPERATIONS,
    loss::OPERATIONS,
    matmul::OPERATIONS,
    microsoft::OPERATIONS,
    ml::OPERATIONS,
    movement::OPERATIONS,
    n_grams::OPERATIONS,
    norm::OPERATIONS,
    order::OPERATIONS,
    pool::OPERATIONS,
    quantize::OPERATIONS,
    random::OPERATIONS,
    reduce::OPERATIONS,
    rnn::OPERATIONS,
    scatter::OPERATIONS,
    sequence::OPERATIONS,
    shape::OPERATIONS,
    signal::OPERATIONS,
    softmax::OPERATIONS,
    strings::OPERATIONS,
    training::OPERATIONS,
];

/// Adds the kernels.
pub fn register(registry: &mut KernelRegistry) {
    rows::register(registry);
    constant::register(registry);
    control::register(registry);
    prepare::register(registry);
}

/// An operation of a graph, as a kernel gets it.
#[derive(Debug)]
pub struct Node<'a> {
    /// The operation's name, without domain.
    pub name: &'static str,
    /// Its operands.
    pub inputs: Inputs<'a>,
    /// Its attributes.
    pub attributes: Attributes<'a>,
    /// The version of its domain.
    pub opset: i64,
    /// How many results the program asks for. More are dropped, fewer are an error.
    pub n_results: usize,
    /// Where it runs.
    pub execution: &'a ExecutionContext,
    /// What it keeps beside operands and results.
    pub beside: &'a Beside<'a>,
}

impl Node<'_> {
    /// The attribute `kind`, which chooses what a row does.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is missing, or no string.
    pub fn kind(&self) -> Result<&str, Error> {
        self.attributes.kind()
    }

    /// The error for a `kind` that the row does not have.
    pub fn unknown_kind(&self, found: &str, kinds: &str) -> Error {
        let found = found.escape_debug();
        let message = format_args!("is expected to be {kinds}, found '{found}'");
        self.attributes.error("kind", message)
    }

    /// An error about what the operation was given.
    pub fn error(&self, message: impl std::fmt::Display) -> Error {
        Error::invalid_argument(format!("{}: {message}", self.name))
    }

    /// An error of what the operation is made of, with its name before the message.
    pub fn told(&self, error: &Error) -> Error {
        Error::new(error.code(), format!("{}: {}", self.name, error.message()))
    }
}
