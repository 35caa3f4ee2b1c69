//! The functions that programs may use, as data, and the types of
//! [`elementwise`] that they stand for.

use crate::math::broadcast::Run;
use crate::math::elementwise::{self, Binary, Unary, binary_run, unary_slice};
use crate::math::number::Floating;

/// What is read of a block: so many elements, or one for all.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'a, T> {
    Each(&'a [T]),
    One(T),
}

/// `unary!(Negate, Abs)` declares the enumeration of these functions of one element.
macro_rules! unary {
    ($($name:ident),*) => {
        /// A function of one element: that of the same name in [`elementwise`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the types of these names say it")]
        pub enum UnaryFunction {
            $($name),*
        }

        impl UnaryFunction {
            /// All functions.
            pub const ALL: &'static [UnaryFunction] = &[$(UnaryFunction::$name),*];

            /// About how many additions it costs.
            pub fn cost(self) -> usize {
                match self {
                    $(UnaryFunction::$name => <elementwise::$name as Unary<f32>>::COST),*
                }
            }

            /// Calculates it for a block.
            pub(super) fn apply<T: Floating>(self, x: Source<'_, T>, out: &mut [T]) {
                match self {
                    $(UnaryFunction::$name => one::<elementwise::$name, T>(x, out)),*
                }
            }
        }
    };
}

unary!(
    Identity, Negate, Square, Reciprocal, Abs, Sign, Relu, Relu6, Floor, Ceil, Round, Truncate,
    Sqrt, Rsqrt, Exp, Expm1, Log, Log1p, Sin, Cos, Tan, Tanh, Sigmoid, Silu, Softplus, Erf, Gelu,
    GeluTanh
);

/// `binary!(Add | Less)` declares the enumeration of these functions of two elements; those behind the bar
/// compare.
macro_rules! binary {
    ($($name:ident),* | $($compare:ident),*) => {
        /// A function of two elements: that of the same name in [`elementwise`].
        /// Comparisons give 1 for true and 0 for false.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the types of these names say it")]
        pub enum BinaryFunction {
            $($name,)*
            $($compare),*
        }

        impl BinaryFunction {
            /// All functions.
            pub const ALL: &'static [BinaryFunction] =
                &[$(BinaryFunction::$name,)* $(BinaryFunction::$compare),*];

            /// About how many additions it costs.
            pub fn cost(self) -> usize {
                match self {
                    $(BinaryFunction::$name => <elementwise::$name as Binary<f32>>::COST,)*
                    $(BinaryFunction::$compare => 1),*
                }
            }

            /// Calculates it for a block.
            pub(super) fn apply<T: Floating>(
                self,
                x: Source<'_, T>,
                y: Source<'_, T>,
                out: &mut [T],
            ) {
                match self {
                    $(BinaryFunction::$name => two::<elementwise::$name, T>(x, y, out),)*
                    $(BinaryFunction::$compare => two::<AsNumber<elementwise::$compare>, T>(x, y, out)),*
                }
            }
        }
    };
}

binary!(
    Add,
    Subtract,
    Multiply,
    Divide,
    SquaredDifference,
    Minimum,
    Maximum,
    Remainder,
    Power,
    Atan2,
    ReluGradient | Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual
);

/// A comparison that gives numbers.
struct AsNumber<F>(std::marker::PhantomData<F>);

impl<T: Floating, F: Binary<T, Output = crate::Bool>> Binary<T> for AsNumber<F> {
    type Output = T;

    #[inline(always)]
    fn apply(x: T, y: T) -> T {
        if F::apply(x, y).into() {
            T::ONE
        } else {
            T::ZERO
        }
    }
}

fn one<F: Unary<T, Output = T>, T: Floating>(x: Source<'_, T>, out: &mut [T]) {
    match x {
        Source::Each(x) => unary_slice::<F, T>(x, out),
        Source::One(x) => {
            // By the same loop as many, so that the bits are the same.
            let mut result = [T::ZERO];
            unary_slice::<F, T>(&[x], &mut result);
            out.fill(result[0]);
        }
    }
}

fn two<F: Binary<T, Output = T>, T: Floating>(x: Source<'_, T>, y: Source<'_, T>, out: &mut [T]) {
    let (mut one_x, mut one_y) = ([T::ZERO], [T::ZERO]);
    let seen = |source, one: &mut [T; 1]| match source {
        Source::Each(_) => 1,
        Source::One(value) => {
            one[0] = value;
            0
        }
    };
    let run = Run {
        len: out.len(),
        offsets: [0, 0],
        strides: [seen(x, &mut one_x), seen(y, &mut one_y)],
    };
    let x = if let Source::Each(x) = x { x } else { &one_x };
    let y = if let Source::Each(y) = y { y } else { &one_y };
    binary_run::<F, T>(x, y, &run, out);
}
