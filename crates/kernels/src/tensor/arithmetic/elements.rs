//! Element by element.

use tfrt_host::ExecutionContext;
use tfrt_host::kernel::KernelRegistry;
use tfrt_tensor::math::elementwise::{
    self, Add, Binary, Cast, EqualAsNumber, Relu, ReluGradient, Subtract, Unary,
};
use tfrt_tensor::math::number::Real;
use tfrt_tensor::{DenseHostTensor, Element, Tensor};

use super::{Written, both};

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt_test.relu.f32", relu::<f32>)
        .add("tfrt_test.relu.i32", relu::<i32>)
        .add("tfrt_test.relu.i64", relu::<i64>)
        .add("tfrt_test.relu_inplace.f32", relu_in_place::<f32>)
        .add("tfrt_test.relu_inplace.i32", relu_in_place::<i32>)
        .add("tfrt_test.relu_inplace.i64", relu_in_place::<i64>)
        .add("tfrt_test.relu_grad_inplace.f32", relu_gradient::<f32>)
        .add("tfrt_test.relu_grad_inplace.i32", relu_gradient::<i32>)
        .add("tfrt_test.relu_grad_inplace.i64", relu_gradient::<i64>)
        .add("tfrt_test.add.f32", of_two::<Add, f32>)
        .add("tfrt_test.add.i32", of_two::<Add, i32>)
        .add("tfrt_test.add.i64", of_two::<Add, i64>)
        .add("tfrt_test.add_inplace.f32", to_second::<Add, f32>)
        .add("tfrt_test.add_inplace.i32", to_second::<Add, i32>)
        .add("tfrt_test.add_inplace.i64", to_second::<Add, i64>)
        .add("tfrt_test.equal.f32", of_two::<EqualAsNumber, f32>)
        .add("tfrt_test.equal.i32", of_two::<EqualAsNumber, i32>)
        .add("tfrt_test.equal.i64", of_two::<EqualAsNumber, i64>)
        .add(
            "tfrt_test.equal_inplace.f32",
            to_second::<EqualAsNumber, f32>,
        )
        .add(
            "tfrt_test.equal_inplace.i32",
            to_second::<EqualAsNumber, i32>,
        )
        .add(
            "tfrt_test.equal_inplace.i64",
            to_second::<EqualAsNumber, i64>,
        )
        .add("tfrt_test.subtract_inplace.f32", to_second::<Subtract, f32>)
        .add("tfrt_test.cast.i32_to_f32", cast);
}

/// `%c1 = "tfrt_test.relu.<t>"(%a, %b, %c0)`: b = max(a, 0)
fn relu<T: Real>(a: &Tensor, b: &Tensor, execution: &ExecutionContext) -> Written {
    let [a, b] = both(a, b)?;
    if is_same(a, b) {
        return elementwise::unary_in_place::<Relu, T>(execution, b);
    }
    elementwise::unary_into::<Relu, T>(execution, a, b)
}

/// `%c1 = "tfrt_test.relu_inplace.<t>"(%a, %c0)`: a = max(a, 0)
fn relu_in_place<T: Real>(a: &Tensor, execution: &ExecutionContext) -> Written {
    elementwise::unary_in_place::<Relu, T>(execution, a.as_dense()?)
}

/// `%c1 = "tfrt_test.relu_grad_inplace.<t>"(%activation, %gradient, %c0)`: what of the gradient comes through
fn relu_gradient<T: Real>(
    activation: &Tensor,
    gradient: &Tensor,
    execution: &ExecutionContext,
) -> Written {
    let [activation, gradient] = both(activation, gradient)?;
    elementwise::expect_same(activation.shape(), gradient.shape())?;
    elementwise::binary_in_place::<Swapped<ReluGradient>, T>(execution, gradient, activation)
}

/// `%c1 = "tfrt_test.add.<t>"(%a, %b, %c, %c0)`: c = f(a, b), where c may be a or b
fn of_two<F: Binary<T, Output = T> + Commutative, T: Real>(
    a: &Tensor,
    b: &Tensor,
    c: &Tensor,
    execution: &ExecutionContext,
) -> Written {
    let ([a, b], c) = (both(a, b)?, c.as_dense()?);
    elementwise::expect_same(a.shape(), b.shape())?;
    match [a, b].map(|input| is_same(input, c)) {
        [true, false] => elementwise::binary_in_place::<F, T>(execution, c, b),
        [false, true] => elementwise::binary_in_place::<F, T>(execution, c, a),
        [true, true] => elementwise::unary_in_place::<WithItself<F>, T>(execution, c),
        [false, false] => elementwise::binary_into::<F, T>(execution, a, b, c),
    }
}

/// `%c1 = "tfrt_test.add_inplace.<t>"(%a, %b, %c0)`: b = f(b, a)
fn to_second<F: Binary<T, Output = T>, T: Real>(
    a: &Tensor,
    b: &Tensor,
    execution: &ExecutionContext,
) -> Written {
    let [a, b] = both(a, b)?;
    elementwise::expect_same(a.shape(), b.shape())?;
    if is_same(a, b) {
        return elementwise::unary_in_place::<WithItself<F>, T>(execution, b);
    }
    elementwise::binary_in_place::<F, T>(execution, b, a)
}

/// `%c1 = "tfrt_test.cast.i32_to_f32"(%a, %b, %c0)`
fn cast(a: &Tensor, b: &Tensor, execution: &ExecutionContext) -> Written {
    let [a, b] = both(a, b)?;
    elementwise::unary_into::<Cast<f32>, i32>(execution, a, b)
}

/// Whether two tensors are the same bytes, seen alike.
fn is_same(a: &DenseHostTensor, b: &DenseHostTensor) -> bool {
    let is_at_one_place = a.buffer().address() == b.buffer().address();
    is_at_one_place && a.buffer().overlaps(b.buffer()) && a.metadata() == b.metadata()
}

/// Functions for which the order of their operands does not matter.
trait Commutative {}

impl Commutative for Add {}
impl Commutative for EqualAsNumber {}

/// A function with its operands exchanged.
struct Swapped<F>(F);

impl<T, F: Binary<T>> Binary<T> for Swapped<F> {
    type Output = F::Output;

    #[inline(always)]
    fn apply(x: T, y: T) -> F::Output {
        F::apply(y, x)
    }
}

/// A function of an element and itself.
struct WithItself<F>(F);

impl<T: Element, F: Binary<T>> Unary<T> for WithItself<F> {
    type Output = F::Output;

    #[inline(always)]
    fn apply(x: T) -> F::Output {
        F::apply(x, x)
    }
}
