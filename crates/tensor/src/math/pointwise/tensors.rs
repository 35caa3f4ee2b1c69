//! Single functions of tensors, as programs of one step or of a few.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::formulas::{BinaryFunction, UnaryFunction};
use super::parametric::ParametricFunction;
use super::plan::size;
use super::program::{Operand, PointwiseProgram, Step};
use super::view::{Elements, ElementsMut};
use crate::math::broadcast::broadcast_extents;
use crate::math::elementwise::expect_same;
use crate::{DType, DenseHostTensor, ScalarHostTensor, TensorMetadata, TensorShape, to_bytes_mut};

/// Order in which a function of two elements takes the target's and the other's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandOrder {
    /// First the target's.
    TargetFirst,
    /// First the other's.
    OtherFirst,
}

impl UnaryFunction {
    /// Returns the type of its results for elements of a type, if it is defined for them.
    pub fn result(self, dtype: DType) -> Option<DType> {
        PointwiseProgram::of(Step::Unary(self, Operand::Input(0)))
            .result(&[dtype])
            .ok()
    }
}

impl ParametricFunction {
    /// Returns the type of its results for elements of a type, if it is defined for them.
    pub fn result(self, dtype: DType) -> Option<DType> {
        PointwiseProgram::of(Step::Parametric(self, [0.0; 2], Operand::Input(0)))
            .result(&[dtype])
            .ok()
    }
}

impl BinaryFunction {
    /// Returns the type of its results for pairs of elements of a type, if it is defined for them.
    pub fn result(self, dtype: DType) -> Option<DType> {
        two(self).result(&[dtype, dtype]).ok()
    }

    /// Calculates the function of two tensors whose elements are all the same, as such a tensor.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is not defined for them.
    pub fn of_scalars(
        self,
        x: &ScalarHostTensor,
        y: &ScalarHostTensor,
        shape: &TensorShape,
    ) -> Result<ScalarHostTensor, Error> {
        let one = [x, y].map(|scalar| scalar.with_shape(TensorShape::SCALAR));
        let operands = [Elements::of_scalar(&one[0]), Elements::of_scalar(&one[1])];
        let dtype = two(self).result(&[x.dtype(), y.dtype()])?;
        let mut words = [0_u64; 2];
        let bytes = &mut to_bytes_mut(&mut words)[..size(dtype)];
        binary(self, &operands, ElementsMut::of_one(dtype, bytes))?;
        let metadata = TensorMetadata::new(dtype, shape.clone());
        let made = ScalarHostTensor::from_element_bytes(metadata, bytes);
        made.ok_or_else(|| Error::internal("elements of this type have no size"))
    }
}

fn two(function: BinaryFunction) -> PointwiseProgram {
    let operands = [Operand::Input(0), Operand::Input(1)];
    PointwiseProgram::of(Step::Binary(function, operands))
}

/// Calculates a function of each element.
///
/// # Errors
///
/// `InvalidArgument` if the shapes differ, or if the function is not defined for the elements.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::pointwise::{UnaryFunction, unary};
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let mut out = [0.0_f32; 3];
/// let x = TensorView::new(&[-1.0_f32, 0.5, 2.0], &[3])?;
/// unary(UnaryFunction::Relu, &(&x).into(), TensorViewMut::new(&mut out, &[3])?.into())?;
/// assert_eq!(out, [0.0, 0.5, 2.0]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn unary(function: UnaryFunction, x: &Elements<'_>, out: ElementsMut<'_>) -> Result<(), Error> {
    let program = PointwiseProgram::of(Step::Unary(function, Operand::Input(0)));
    program.run(std::slice::from_ref(x), out)
}

/// Calculates a function of each pair of elements; operands are broadcast.
///
/// # Errors
///
/// `InvalidArgument` if they can't be broadcast, if `out` is of another shape, or if the function is not defined for the
/// elements.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::pointwise::{BinaryFunction, binary};
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let (column, row) = ([10, 20], [1, 2, 3]);
/// let (column, row) = (TensorView::new(&column, &[2, 1])?, TensorView::new(&row, &[3])?);
/// let mut sum = [0; 6];
/// let operands = [(&column).into(), (&row).into()];
/// binary(BinaryFunction::Add, &operands, TensorViewMut::new(&mut sum, &[2, 3])?.into())?;
/// assert_eq!(sum, [11, 12, 13, 21, 22, 23]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn binary(
    function: BinaryFunction,
    operands: &[Elements<'_>; 2],
    out: ElementsMut<'_>,
) -> Result<(), Error> {
    two(function).run(operands, out)
}

/// Calculates a function of each element of a tensor, on the workers of the request's queue if it is large.
///
/// # Shapes
///
/// `x` and `out` are of one shape.
///
/// # Errors
///
/// `InvalidArgument` if they are not, or if the function is not defined for these types, and those of
/// [`PointwiseProgram::run_into`].
pub fn unary_into(
    execution: &ExecutionContext,
    function: UnaryFunction,
    x: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    expect_same(x.shape(), out.shape())?;
    let program = PointwiseProgram::of(Step::Unary(function, Operand::Input(0)));
    program.run_into(execution, &[x], out)
}

/// Calculates a function with parameters of each element of a tensor.
///
/// # Errors
///
/// Those of [`unary_into`].
pub fn parametric_into(
    execution: &ExecutionContext,
    function: ParametricFunction,
    parameters: [f64; 2],
    x: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    expect_same(x.shape(), out.shape())?;
    let program = PointwiseProgram::of(Step::Parametric(function, parameters, Operand::Input(0)));
    program.run_into(execution, &[x], out)
}

/// Applies a function to each element of a tensor, in place.
///
/// # Errors
///
/// Those of [`PointwiseProgram::run_in_place`].
pub fn unary_in_place(
    execution: &ExecutionContext,
    function: UnaryFunction,
    tensor: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let program = PointwiseProgram::of(Step::Unary(function, Operand::Input(0)));
    program.run_in_place(execution, tensor, &[])
}

/// Calculates a function of each pair of elements of two tensors, on the workers of the request's queue if they are
/// large.
///
/// # Shapes
///
/// `x` and `y` are broadcast; `out` is of the shape that this gives.
///
/// # Errors
///
/// Those of [`PointwiseProgram::run_into`].
pub fn binary_into(
    execution: &ExecutionContext,
    function: BinaryFunction,
    x: &DenseHostTensor,
    y: &DenseHostTensor,
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    two(function).run_into(execution, &[x, y], out)
}

/// Applies a function to each element of `target` and the element of `other` at the same place; the results replace
/// `target`.
///
/// # Shapes
///
/// `other` broadcasts to `target`.
///
/// # Errors
///
/// Those of [`PointwiseProgram::run_in_place`].
pub fn binary_in_place(
    execution: &ExecutionContext,
    function: BinaryFunction,
    order: OperandOrder,
    target: &DenseHostTensor,
    other: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let operands = match order {
        OperandOrder::TargetFirst => [Operand::Input(0), Operand::Input(1)],
        OperandOrder::OtherFirst => [Operand::Input(1), Operand::Input(0)],
    };
    let program = PointwiseProgram::of(Step::Binary(function, operands));
    program.run_in_place(execution, target, &[other])
}

/// Selects each element from `x` where `condition` is true, else from `y`; all three are broadcast.
///
/// # Errors
///
/// Those of [`PointwiseProgram::run_into`].
pub fn select_into(
    execution: &ExecutionContext,
    condition: &DenseHostTensor,
    [x, y]: [&DenseHostTensor; 2],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let program = PointwiseProgram::of(Step::Select([0, 1, 2].map(Operand::Input)));
    program.run_into(execution, &[condition, x, y], out)
}

/// Returns the program that folds its inputs, `f(f(a, b), c)`, and divides the result by `divisor`.
///
/// # Errors
///
/// `InvalidArgument` if there are none.
pub fn folded(
    function: BinaryFunction,
    n_inputs: usize,
    divisor: Option<f64>,
) -> Result<PointwiseProgram, Error> {
    if n_inputs == 0 {
        return Err(Error::invalid_argument("there is nothing to take together"));
    }
    let mut steps = Vec::with_capacity(n_inputs);
    let mut so_far = Operand::Input(0);
    for input in 1..n_inputs {
        steps.push(Step::Binary(function, [so_far, Operand::Input(input)]));
        so_far = Operand::Step(steps.len() - 1);
    }
    if let Some(divisor) = divisor {
        let parameters = [divisor, 0.0];
        steps.push(Step::Parametric(
            ParametricFunction::DividedBy,
            parameters,
            so_far,
        ));
    }
    if steps.is_empty() {
        steps.push(Step::Unary(UnaryFunction::Identity, so_far));
    }
    PointwiseProgram::new(n_inputs, &steps)
}

/// Returns type and shape of the result of [`binary_into`].
///
/// # Errors
///
/// `InvalidArgument` if their types differ, if the function is not defined for these, or if they can't be broadcast.
pub fn binary_metadata(
    function: BinaryFunction,
    x: &TensorMetadata,
    y: &TensorMetadata,
) -> Result<TensorMetadata, Error> {
    if x.dtype != y.dtype {
        let message = format!("expected two tensors of one type, found {x} and {y}");
        return Err(Error::invalid_argument(message));
    }
    let extents = broadcast_extents(&[&x.shape.to_dims(), &y.shape.to_dims()])?;
    let dtype = two(function).result(&[x.dtype, y.dtype])?;
    Ok(TensorMetadata::new(dtype, TensorShape::new(&extents)?))
}
