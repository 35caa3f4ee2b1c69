//! Element by element: arithmetic, functions, comparisons, logic.

use tfrt_host::Error;
use tfrt_tensor::math::elementwise::{self as math, Binary, Unary};
use tfrt_tensor::{
    Bool, DType, DenseHostTensor, Dims, Element, StringHostTensor, Tensor, TensorShape,
};

use super::dispatch::with_integer;
use super::{Node, Operations, Outputs, with_floating, with_number, with_real};

mod mixed;

/// `unary!(with_real, Abs)` is an operation of one operand.
macro_rules! unary {
    ($with:ident, $function:ident) => {
        |node| {
            let dtype = node.inputs.dense(0)?.dtype();
            $with!(dtype, T => of_one::<math::$function, T>(node), else Err(node.inputs.unsupported(0, dtype)))
        }
    };
}

/// `binary!(with_real, Add)` is an operation of two operands of one type, which are broadcast.
macro_rules! binary {
    ($with:ident, $function:ident) => {
        |node| {
            let dtype = node.inputs.dense(0)?.dtype();
            $with!(dtype, T => of_two::<math::$function, T>(node), else Err(node.inputs.unsupported(0, dtype)))
        }
    };
}

/// `variadic!(with_real, Add)` is an operation of one operand or more, which are broadcast.
macro_rules! variadic {
    ($with:ident, $function:ident, $finish:expr) => {
        |node| {
            let dtype = node.inputs.dense(0)?.dtype();
            $with!(dtype, T => of_all::<math::$function, T>(node, $finish), else
                Err(node.inputs.unsupported(0, dtype)))
        }
    };
}

pub(super) const OPERATIONS: &Operations = &[
    ("Abs", unary!(with_real, Abs)),
    ("Acos", unary!(with_floating, Acos)),
    ("Acosh", unary!(with_floating, Acosh)),
    ("Add", binary!(with_number, Add)),
    ("And", |node| of_two::<math::And, Bool>(node)),
    ("Asin", unary!(with_floating, Asin)),
    ("Asinh", unary!(with_floating, Asinh)),
    ("Atan", unary!(with_floating, Atan)),
    ("Atanh", unary!(with_floating, Atanh)),
    ("BitwiseAnd", binary!(with_integer, BitAnd)),
    ("BitwiseNot", unary!(with_integer, BitNot)),
    ("BitwiseOr", binary!(with_integer, BitOr)),
    ("BitwiseXor", binary!(with_integer, BitXor)),
    ("Ceil", unary!(with_floating, Ceil)),
    ("Clip", mixed::clip),
    ("Cos", unary!(with_floating, Cos)),
    ("Cosh", unary!(with_floating, Cosh)),
    ("Div", binary!(with_number, Divide)),
    ("Equal", equal),
    ("Erf", unary!(with_floating, Erf)),
    ("Exp", unary!(with_floating, Exp)),
    ("Floor", unary!(with_floating, Floor)),
    ("Greater", binary!(with_real, Greater)),
    ("GreaterOrEqual", binary!(with_real, GreaterEqual)),
    ("IsInf", mixed::is_infinite),
    ("IsNaN", unary!(with_floating, IsNan)),
    ("Less", binary!(with_real, Less)),
    ("LessOrEqual", binary!(with_real, LessEqual)),
    ("Log", unary!(with_floating, Log)),
    ("Max", variadic!(with_real, Maximum, |x, _| x)),
    (
        "Mean",
        variadic!(with_floating, Add, |x, n| T::mean_of(x, n)),
    ),
    ("Min", variadic!(with_real, Minimum, |x, _| x)),
    ("Mod", mixed::modulo),
    ("Mul", binary!(with_number, Multiply)),
    ("Neg", unary!(with_number, Negate)),
    ("Not", |node| of_one::<math::Not, Bool>(node)),
    ("Or", |node| of_two::<math::Or, Bool>(node)),
    ("Pow", mixed::power),
    ("Reciprocal", unary!(with_floating, Reciprocal)),
    ("Relu", unary!(with_real, Relu)),
    ("Round", unary!(with_floating, Round)),
    ("Sigmoid", unary!(with_floating, Sigmoid)),
    ("Sign", unary!(with_real, Sign)),
    ("Sin", unary!(with_floating, Sin)),
    ("Sinh", unary!(with_floating, Sinh)),
    ("Sqrt", unary!(with_floating, Sqrt)),
    ("Sub", binary!(with_number, Subtract)),
    ("Sum", variadic!(with_number, Add, |x, _| x)),
    ("Tan", unary!(with_floating, Tan)),
    ("Tanh", unary!(with_floating, Tanh)),
    ("Where", mixed::select),
    ("Xor", |node| of_two::<math::Xor, Bool>(node)),
];

/// A sum divided by the number of its terms.
trait MeanOf: Sized {
    fn mean_of(sum: Self, n: usize) -> Self;
}

impl<T: tfrt_tensor::math::number::Real> MeanOf for T {
    fn mean_of(sum: T, n: usize) -> T {
        T::mean(sum.widened(), n)
    }
}

fn of_one<F: Unary<T>, T: Element>(node: &Node<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let out = node.output(F::Output::DTYPE, &x.shape().to_dims())?;
    let chain = math::unary_into::<F, T>(node.execution, x, &out)?;
    Ok(Outputs::later(out, chain))
}

fn of_two<F: Binary<T>, T: Element>(node: &Node<'_>) -> Result<Outputs, Error> {
    let (x, y) = (node.inputs.dense(0)?, node.inputs.dense(1)?);
    let metadata = math::binary_metadata::<F, T>(x.metadata(), y.metadata())
        .map_err(|error| node.told(&error))?;
    let out = DenseHostTensor::zeroed(node.execution.host().allocator(), metadata)?;
    let chain = math::binary_into::<F, T>(node.execution, x, y, &out)?;
    Ok(Outputs::later(out, chain))
}

fn of_all<F: Binary<T, Output = T>, T: Element>(
    node: &Node<'_>,
    finish: impl Fn(T, usize) -> T + Send + Sync + 'static,
) -> Result<Outputs, Error> {
    let inputs = node.inputs.all_dense()?;
    let shapes: Vec<_> = inputs.iter().map(|input| input.shape().to_dims()).collect();
    let shapes: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
    let extents = math::broadcast_extents(&shapes).map_err(|error| node.told(&error))?;
    let out = node.output(T::DTYPE, &extents)?;
    let n = inputs.len();
    let chain = math::fold_into::<F, T>(node.execution, &inputs, move |x| finish(x, n), &out)?;
    Ok(Outputs::later(out, chain))
}

/// Whether elements are the same: of numbers, truth values, strings.
fn equal(node: &Node<'_>) -> Result<Outputs, Error> {
    let (x, y) = (node.inputs.tensor(0)?, node.inputs.tensor(1)?);
    if let (Tensor::String(x), Tensor::String(y)) = (x, y) {
        return equal_strings(node, x, y);
    }
    let dtype = node.inputs.dense(0)?.dtype();
    match dtype {
        DType::I1 => of_two::<math::Same, Bool>(node),
        _ => with_real!(dtype, T => of_two::<math::Equal, T>(node), else
            Err(node.inputs.unsupported(0, dtype))),
    }
}

fn equal_strings(
    node: &Node<'_>,
    x: &StringHostTensor,
    y: &StringHostTensor,
) -> Result<Outputs, Error> {
    let shapes = [x, y].map(|tensor| tensor.metadata().shape.to_dims());
    let extents =
        math::broadcast_extents(&[&shapes[0], &shapes[1]]).map_err(|error| node.told(&error))?;
    let out = node.output(DType::I1, &extents)?;
    let (x_position, y_position) = (
        position(&shapes[0], &extents)?,
        position(&shapes[1], &extents)?,
    );
    let (x, y) = (x.strings(), y.strings());
    for (index, out) in out.write()?.elements_mut()?.iter_mut().enumerate() {
        *out = Bool::from(x[x_position(index)] == y[y_position(index)]);
    }
    Ok(out.into())
}

/// Where each element of a broadcast tensor lies in the tensor itself.
fn position(own: &[usize], extents: &[usize]) -> Result<impl Fn(usize) -> usize, Error> {
    let mut strides = TensorShape::new(own)?.strides();
    for (stride, extent) in strides.iter_mut().zip(own) {
        *stride *= usize::from(*extent != 1);
    }
    let extents = Dims::from_slice(extents);
    Ok(move |index| {
        let (mut rest, mut position) = (index, 0);
        // Dimensions in front are repeated.
        for (stride, extent) in strides.iter().rev().zip(extents.iter().rev()) {
            position += rest % extent * stride;
            rest /= extent;
        }
        position
    })
}
