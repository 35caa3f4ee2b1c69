//! [`TensorKernel`]: a kernel whose operands and results are tensors. It may write results into the memory of
//! operands that are given for good.

use std::fmt;

use smallvec::{SmallVec, smallvec};
use tfrt_host::{AsyncValue, Chain, DType, Error, ExecutionContext};
use tfrt_ops::{Attrs, OpDef};

use crate::math::Family;
use crate::math::pointwise::{
    BinaryFunction, OperandOrder, UnaryFunction, binary_in_place, binary_into, unary_in_place,
    unary_into,
};
use crate::{
    CooHostTensor, DenseHostTensor, ObjectTensor, ScalarHostTensor, StringHostTensor, Tensor,
    TensorFormat, TensorMetadata,
};

/// Operands of a [`TensorCall`], all there.
pub trait Operands {
    /// Returns the number of operands, with those that are left out before the last.
    fn len(&self) -> usize;

    /// Returns whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the tensor at `index`; `None` if it is left out, or was taken.
    fn get(&self, index: usize) -> Option<&Tensor>;

    /// Takes the dense tensor at `index`, to be overwritten, if it was given for good and nobody else holds its
    /// memory.
    fn take_sole(&mut self, index: usize) -> Option<DenseHostTensor>;

    /// Takes the tensor of objects at `index`, if it was given for good.
    fn take_object(&mut self, index: usize) -> Option<ObjectTensor> {
        let _ = index;
        None
    }

    /// Puts back a tensor that was taken and not written to.
    fn put_back(&mut self, index: usize, tensor: DenseHostTensor);
}

/// A result of an operation: finished or pending.
#[derive(Debug)]
pub enum Output {
    /// A finished tensor.
    Ready(Tensor),
    /// A pending tensor.
    Later(AsyncValue<Tensor>),
}

/// Results of an operation.
pub type Outputs = SmallVec<[Output; 1]>;

/// `outputs!(DenseHostTensor)` makes a dense tensor the only output.
macro_rules! outputs {
    ($($type:ty),*) => {$(
        impl From<$type> for Output {
            #[inline]
            fn from(tensor: $type) -> Output {
                Output::Ready(tensor.into())
            }
        }
    )*};
}

outputs!(
    Tensor,
    DenseHostTensor,
    ScalarHostTensor,
    CooHostTensor,
    StringHostTensor,
    ObjectTensor
);

impl From<AsyncValue<Tensor>> for Output {
    fn from(tensor: AsyncValue<Tensor>) -> Output {
        Output::Later(tensor)
    }
}

/// Returns a tensor that is there when the chain is.
///
/// # Errors
///
/// The chain's, if it has failed.
#[inline]
pub fn made(tensor: DenseHostTensor, chain: AsyncValue<Chain>) -> Result<Output, Error> {
    match chain.get() {
        Some(Ok(_)) => Ok(Output::Ready(tensor.into())),
        Some(Err(error)) => Err(error.clone()),
        None => Ok(Output::Later(chain.map(move |_| tensor.into()))),
    }
}

/// Formats of tensors that an operation takes beside dense ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Formats {
    /// Tensors whose elements are all the same.
    pub scalar: bool,
    /// Tensors of strings.
    pub string: bool,
    /// Tensors of which most elements are 0.
    pub coo: bool,
    /// Tensors of resources and variants.
    pub object: bool,
}

impl Formats {
    /// Dense tensors alone; others are converted if possible.
    pub const DENSE: Formats = Formats {
        scalar: false,
        string: false,
        coo: false,
        object: false,
    };
    /// Dense and scalar tensors.
    pub const SCALAR: Formats = Formats {
        scalar: true,
        string: false,
        coo: false,
        object: false,
    };
    /// And strings.
    pub const STRING: Formats = Formats {
        scalar: false,
        string: true,
        coo: false,
        object: false,
    };
    /// Dense tensors, and those of resources and variants.
    pub const OBJECT: Formats = Formats {
        object: true,
        ..Formats::DENSE
    };
    /// All formats.
    pub const ALL: Formats = Formats {
        scalar: true,
        string: true,
        coo: true,
        object: true,
    };

    /// Returns whether an operation takes tensors of this format as they are.
    #[inline]
    pub fn takes(self, format: TensorFormat) -> bool {
        match format {
            TensorFormat::DenseHost | TensorFormat::GrowableHost => true,
            TensorFormat::ScalarHost => self.scalar,
            TensorFormat::StringHost => self.string,
            TensorFormat::CooHost => self.coo,
            TensorFormat::ObjectHost => self.object,
            TensorFormat::Device => false,
        }
    }
}

/// A kernel of an operation on tensors, on the processor.
#[derive(Clone, Copy)]
pub struct TensorKernel {
    /// The name of the row.
    pub op: &'static str,
    /// Types that the elements of operand 0 may have; all if `None`. Checked before the kernel is called.
    pub family: Option<Family>,
    /// Formats that are not converted before a call.
    pub formats: Formats,
    /// Runs the operation.
    pub run: TensorRunFn,
}

impl TensorKernel {
    /// Makes a kernel of dense tensors.
    pub const fn new(op: &'static str, run: TensorRunFn) -> TensorKernel {
        TensorKernel {
            op,
            family: None,
            formats: Formats::DENSE,
            run,
        }
    }

    /// Sets the types that the elements of operand 0 may have.
    pub const fn of(mut self, family: Family) -> TensorKernel {
        self.family = Some(family);
        self
    }

    /// Sets the formats that are not converted before a call.
    pub const fn formats(mut self, formats: Formats) -> TensorKernel {
        self.formats = formats;
        self
    }
}

impl fmt::Debug for TensorKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorKernel")
            .field("op", &self.op)
            .finish_non_exhaustive()
    }
}

/// Runs an operation on tensors.
///
/// # Errors
///
/// Those of [`RunFn`](super::RunFn).
pub type TensorRunFn = fn(&mut TensorCall<'_>) -> Result<Outputs, Error>;

/// A call of an operation on tensors.
pub struct TensorCall<'a> {
    /// The operation's row.
    pub op: &'static OpDef,
    /// Name that the caller uses for the operation, for messages.
    pub name: &'a str,
    /// Attributes, by the names of the row.
    pub attrs: Attrs<'a>,
    /// Operands.
    pub operands: &'a mut dyn Operands,
    /// Types and shapes of the results, by the row's rule; empty if the rule does not know all.
    pub results: &'a [TensorMetadata],
    /// Number of results that the caller takes.
    pub n_results: usize,
    /// The request that it runs for.
    pub execution: &'a ExecutionContext,
    /// The chain that resolves when the effects of the run have happened, if they happen later than its results are
    /// there.
    pub effects: Option<AsyncValue<Chain>>,
    /// The chain that resolves when the effects of the run have happened, if the run has a place in a resource, where it
    /// waits for others: later calls on the resource don't wait for it.
    pub waiting: Option<AsyncValue<Chain>>,
}

impl fmt::Debug for TensorCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorCall")
            .field("name", &self.name)
            .field("attrs", &self.attrs)
            .field("n_operands", &self.operands.len())
            .finish_non_exhaustive()
    }
}

impl TensorCall<'_> {
    /// Returns the number of operands.
    pub fn n_inputs(&self) -> usize {
        self.operands.len()
    }

    /// Returns the operand at `index`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is none.
    pub fn tensor(&self, index: usize) -> Result<&Tensor, Error> {
        let found = self.operands.get(index);
        found.ok_or_else(|| self.error(format_args!("operand {index} is left out")))
    }

    /// Returns the operand at `index`, which is dense.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is none, or if it is not dense.
    pub fn dense(&self, index: usize) -> Result<&DenseHostTensor, Error> {
        self.tensor(index)?.as_dense()
    }

    /// Takes a dense operand of this type and shape, to be overwritten, if it was given for good and nobody else
    /// holds its memory.
    pub fn take_like(&mut self, index: usize, like: &TensorMetadata) -> Option<DenseHostTensor> {
        match self.operands.get(index)?.metadata() == like {
            true => self.operands.take_sole(index),
            false => None,
        }
    }

    /// Returns type and shape of the result at `index`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they don't follow from what is known before it runs.
    pub fn result(&self, index: usize) -> Result<&TensorMetadata, Error> {
        let found = self.results.get(index);
        found.ok_or_else(|| self.error(format_args!("nothing is known of result {index}")))
    }

    /// Allocates a tensor for the result at `index`. Its contents are unspecified: the kernel must write every element.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory for it, and those of [`result`](Self::result).
    pub fn output(&self, index: usize) -> Result<DenseHostTensor, Error> {
        self.allocate(self.result(index)?.clone())
    }

    /// Allocates a tensor whose contents are unspecified: the kernel must write every element.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory for it.
    pub fn allocate(&self, metadata: TensorMetadata) -> Result<DenseHostTensor, Error> {
        DenseHostTensor::unspecified(self.execution.host().allocator(), metadata)
    }

    /// Allocates a tensor of zeros for the result at `index`, for a kernel that writes some elements only.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory for it, and those of [`result`](Self::result).
    pub fn zeros(&self, index: usize) -> Result<DenseHostTensor, Error> {
        DenseHostTensor::zeroed(
            self.execution.host().allocator(),
            self.result(index)?.clone(),
        )
    }

    /// Calculates a function of each pair of elements of the first two operands, in the memory of one of them if
    /// possible.
    ///
    /// # Errors
    ///
    /// See [`binary_of`] for errors.
    pub fn binary(
        &mut self,
        function: BinaryFunction,
        order: OperandOrder,
    ) -> Result<Outputs, Error> {
        let result = self.result(0)?.clone();
        binary_of(self.execution, self.operands, (function, order), &result)
    }

    /// Makes an error that begins with the operation's name.
    #[cold]
    pub fn error(&self, message: fmt::Arguments<'_>) -> Error {
        Error::invalid_argument(format!("{}: {message}", self.name))
    }

    /// Adds the operation's name to the error of a function that does not know it.
    ///
    /// # Errors
    ///
    /// That of the result.
    pub fn named<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        result.map_err(|error| self.error(format_args!("{}", error.message())))
    }
}

/// Calculates a function of each element of the first operand, in its memory if nobody else holds it and its type is
/// the result's.
///
/// # Errors
///
/// `InvalidArgument` if the function is not defined for the operand's type.
pub fn unary_of(
    execution: &ExecutionContext,
    operands: &mut dyn Operands,
    function: UnaryFunction,
    result: &TensorMetadata,
) -> Result<Outputs, Error> {
    let is_like = |tensor: &Tensor| tensor.metadata() == result;
    if operands.get(0).is_some_and(is_like)
        && let Some(out) = operands.take_sole(0)
    {
        let chain = unary_in_place(execution, function, &out)?;
        return Ok(smallvec![made(out, chain)?]);
    }
    let x = dense(operands, 0)?;
    let out = DenseHostTensor::unspecified(execution.host().allocator(), result.clone())?;
    let chain = unary_into(execution, function, x, &out)?;
    Ok(smallvec![made(out, chain)?])
}

/// Calculates a function of each pair of elements of the first two operands, in the memory of one of them if nobody else
/// holds that and it is of the result's type and shape. [`OperandOrder::OtherFirst`] hands the second operand's to the function
/// first.
///
/// # Errors
///
/// `InvalidArgument` if the function is not defined for the operands' type, or if they can't be broadcast to the result.
pub fn binary_of(
    execution: &ExecutionContext,
    operands: &mut dyn Operands,
    (function, order): (BinaryFunction, OperandOrder),
    result: &TensorMetadata,
) -> Result<Outputs, Error> {
    let other_order = match order {
        OperandOrder::TargetFirst => OperandOrder::OtherFirst,
        OperandOrder::OtherFirst => OperandOrder::TargetFirst,
    };
    for (index, order) in [(0, order), (1, other_order)] {
        let is_like = |tensor: &Tensor| tensor.metadata() == result;
        if operands.get(index).is_some_and(is_like)
            && let Some(out) = operands.take_sole(index)
        {
            let other = dense(operands, 1 - index)?;
            let chain = binary_in_place(execution, function, order, &out, other)?;
            return Ok(smallvec![made(out, chain)?]);
        }
    }
    let (x, y) = match order {
        OperandOrder::TargetFirst => (dense(operands, 0)?, dense(operands, 1)?),
        OperandOrder::OtherFirst => (dense(operands, 1)?, dense(operands, 0)?),
    };
    let out = DenseHostTensor::unspecified(execution.host().allocator(), result.clone())?;
    let chain = binary_into(execution, function, x, y, &out)?;
    Ok(smallvec![made(out, chain)?])
}

fn dense(operands: &dyn Operands, index: usize) -> Result<&DenseHostTensor, Error> {
    let found = operands.get(index);
    let message = || format!("expected an operand {index}, found {}", operands.len());
    found
        .ok_or_else(|| Error::invalid_argument(message()))?
        .as_dense()
}

/// Returns the error for a type of elements that an operation does not calculate with.
#[cold]
pub fn unsupported(op: &str, dtype: DType) -> Error {
    Error::invalid_argument(format!("unsupported dtype for {op}: {dtype}"))
}
