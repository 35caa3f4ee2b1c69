//! The operations of ONNX: `%y = "cpu.onnx.Relu"(%x) {attributes = [], opset = 14 : i64} : (!t.tensor) -> !t.tensor`
//!
//! | In | Is |
//! | --- | --- |
//! | operands | `!t.tensor`, `!t.sequence`, `!t.optional`, or `!t.none` for what is left out; what is left out at the end may be missing |
//! | results | as many as the program asks for |
//! | `attributes` | names and values alternately, as the model has them |
//! | `opset` | the version of the operation's domain that the model was made for |
//!
//! A kernel is an [`Operation`]: a function of a [`NodeCall`], which has all of these. It checks what it gets,
//! makes its outputs, and calculates them by functions of [`tfrt_tensor::math`]; large ones on the workers of
//! the queue, so that they may come later ([`Outputs`]). Families are files, each with its list
//! ([`OPERATIONS`]), and all of them are called from [`register`].

use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{Error, ExecutionContext};
use tfrt_tensor::DenseHostTensor;

mod activation;
mod attention;
mod attributes;
mod bits;
mod cache;
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
mod opaque;
mod order;
mod outputs;
mod patterns;
mod pool;
mod prepare;
mod quantize;
pub(crate) mod quantized_operands;
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
mod tokenizer;
mod training;
mod weight_files;
mod windows;
mod workspace;

pub use attributes::Attributes;
pub(crate) use constant::{HeldAttributes, in_place};
pub use inputs::Inputs;
pub(crate) use opaque::OpaqueTensors;
pub use outputs::Outputs;
pub(crate) use prepare::{CODEC, PrepareRow, is_storable, state};
pub use rows::{kernel_of, prepare_of};
pub use weight_files::WeightFiles;
pub use workspace::Workspace;

use dispatch::{with_floating, with_real};

/// A function that runs one operation.
pub type Operation = fn(&NodeCall<'_>) -> Result<Outputs, Error>;

/// A list of operations: names and functions.
pub type Operations = [(&'static str, Operation)];

/// The families of operations, each a list.
pub const OPERATIONS: &[&Operations] = &[
    activation::OPERATIONS,
    attention::OPERATIONS,
    bits::OPERATIONS,
    cache::OPERATIONS,
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

/// Adds the kernels of all operations.
pub fn register(registry: &mut KernelRegistry) {
    rows::register(registry);
    constant::register(registry);
    control::register(registry);
    prepare::register(registry);
}

/// The call of one operation: operands, attributes and context, with checked access to them.
#[derive(Debug)]
pub struct NodeCall<'a> {
    /// The name of the operation, without domain.
    pub name: &'static str,
    /// The operands.
    pub inputs: Inputs<'a>,
    /// Operand 0, if it is a tensor that nobody else will look at, so that the result of a row with the trait `IN_PLACE`
    /// may be written over it.
    pub own_target: Option<&'a DenseHostTensor>,
    /// The attributes.
    pub attributes: Attributes<'a>,
    /// The version of the operator set.
    pub opset: i64,
    /// The number of results that the program uses. More are dropped, fewer are an error.
    pub n_results: usize,
    /// The request that the operation runs for.
    pub execution: &'a ExecutionContext,
    /// The memory that the operation reserves beside operands and results.
    pub workspace: &'a Workspace<'a>,
}

impl NodeCall<'_> {
    /// Returns the attribute `kind`, which chooses what the operation does.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is missing, or no string.
    pub fn kind(&self) -> Result<&str, Error> {
        self.attributes.kind()
    }

    /// Makes the error for an unknown `kind`.
    pub fn unknown_kind(&self, found: &str, kinds: &str) -> Error {
        let found = found.escape_debug();
        let message = format_args!("is expected to be {kinds}, found '{found}'");
        self.attributes.error("kind", message)
    }

    /// Makes an error about the operation's input, with the operation's name in front.
    pub fn error(&self, message: impl std::fmt::Display) -> Error {
        Error::invalid_argument(format!("{}: {message}", self.name))
    }

    /// Adds the operation's name to an error of a function that it calls.
    pub fn with_name(&self, error: &Error) -> Error {
        Error::new(error.code(), format!("{}: {}", self.name, error.message()))
    }
}
