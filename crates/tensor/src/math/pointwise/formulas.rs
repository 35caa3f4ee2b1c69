//! The functions, a row each: its name, what it takes, its family (see `table`), about how many additions it
//! costs, and its formula. A row is a variant of [`UnaryFunction`] or [`BinaryFunction`], and a type that loops are made
//! for.

use super::table::{self, BinaryLoop, UnaryLoop};
use crate::math::functions::Float;
use crate::math::number::{Floating, Number, Real};
use crate::{Bool, DType, Element};

/// A formula of one element.
pub trait Unary<T>: 'static {
    /// What it gives.
    type Output: Element;

    /// Calculates it.
    fn apply(x: T) -> Self::Output;
}

/// A formula of two elements.
pub trait Binary<T>: 'static {
    /// What it gives.
    type Output: Element;

    /// Calculates it.
    fn apply(x: T, y: T) -> Self::Output;
}

/// `unary! { formulas { Square: Number, squares, 1, |x| x.times(x); } others { Not: truth, 1; } predicates {} }` declares
/// the variants `Square` and `Not` of [`UnaryFunction`], and types of these names. `Square` has the formula for all
/// [`Number`]s; those of the others are written below. Predicates give truth values.
macro_rules! unary {
    (
        formulas { $($(#[$doc:meta])* $name:ident: $bound:ident, $family:ident, $cost:expr, |$x:ident| $body:expr;)* }
        others { $($(#[$other_doc:meta])* $other:ident: $other_family:ident, $other_cost:expr;)* }
        predicates { $($(#[$truth_doc:meta])* $truth:ident: $truth_family:ident;)* }
    ) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $name;

            impl<T: $bound> Unary<T> for $name {
                type Output = T;

                #[inline(always)]
                fn apply($x: T) -> T {
                    $body
                }
            }
        )*
        $($(#[$other_doc])* #[derive(Clone, Copy, Debug)] pub struct $other;)*
        $($(#[$truth_doc])* #[derive(Clone, Copy, Debug)] pub struct $truth;)*

        /// A function of one element.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum UnaryFunction {
            $($(#[$doc])* $name,)*
            $($(#[$other_doc])* $other,)*
            $($(#[$truth_doc])* $truth,)*
        }

        impl UnaryFunction {
            /// All functions.
            pub const ALL: &'static [UnaryFunction] = &[
                $(UnaryFunction::$name,)* $(UnaryFunction::$other,)* $(UnaryFunction::$truth,)*
            ];

            /// About how many additions it costs.
            pub fn cost(self) -> usize {
                match self {
                    $(UnaryFunction::$name => $cost,)*
                    $(UnaryFunction::$other => $other_cost,)*
                    $(UnaryFunction::$truth => 1,)*
                }
            }

            /// Whether it gives truth values.
            pub fn is_predicate(self) -> bool {
                matches!(self, $(UnaryFunction::$truth)|*)
            }

            /// Its loop for a type of elements.
            pub(super) fn find(self, dtype: DType) -> Option<UnaryLoop> {
                match self {
                    $(UnaryFunction::$name => table::unary::$family::<$name>(dtype),)*
                    $(UnaryFunction::$other => table::unary::$other_family::<$other>(dtype),)*
                    $(UnaryFunction::$truth => table::unary::$truth_family::<$truth>(dtype),)*
                }
            }
        }
    };
}

unary! {
    formulas {
        /// The number with the other sign; integers wrap around
        Negate: Number, numbers, 1, |x| x.negated();
        /// x²; integers wrap around
        Square: Number, squares, 1, |x| x.times(x);
        /// 1 / x
        Reciprocal: Number, exact_floats, 4, |x| T::ONE.over(x);
        /// The size; of the least integer, itself
        Abs: Real, magnitudes, 1, |x| x.magnitude();
        /// -1, 0 or 1; what is no number stays so
        Sign: Real, reals, 1, |x| x.signum();
        /// The number, or 0 if that is larger
        Relu: Real, reals, 1, |x| T::ZERO.greatest(x);
        /// The number between 0 and 6 that is nearest
        Relu6: Real, reals, 1, |x| T::ZERO.greatest(x).least(T::from_f64(6.0));
        /// The number, or e^x - 1 if that is below 0
        Elu: Floating, floats, 16, |x| if x.less(T::ZERO) { x.map(Float::expm1, Float::expm1) } else { x };
        /// The next whole number below
        Floor: Floating, exact_floats, 1, |x| x.map(f32::floor, f64::floor);
        /// The next whole number above
        Ceil: Floating, exact_floats, 1, |x| x.map(f32::ceil, f64::ceil);
        /// The nearest whole number, an even one if there are two
        Round: Floating, exact_floats, 1, |x| x.map(f32::round_ties_even, f64::round_ties_even);
        /// The next whole number towards 0
        Truncate: Floating, exact_floats, 1, |x| x.map(f32::trunc, f64::trunc);
        /// The square root
        Sqrt: Floating, exact_floats, 4, |x| x.map(f32::sqrt, f64::sqrt);
        /// 1 / the square root
        Rsqrt: Floating, exact_floats, 8, |x| x.map(#[inline(always)] |x| 1.0 / x.sqrt(), #[inline(always)] |x| 1.0 / x.sqrt());
        /// e^x
        Exp: Floating, floats, 16, |x| x.map(Float::exp, Float::exp);
        /// e^x - 1
        Expm1: Floating, floats, 16, |x| x.map(Float::expm1, Float::expm1);
        /// The natural logarithm
        Log: Floating, floats, 16, |x| x.map(Float::ln, Float::ln);
        /// The natural logarithm of 1 + x
        Log1p: Floating, floats, 32, |x| x.map(Float::ln_1p, Float::ln_1p);
        /// The sine
        Sin: Floating, library_floats, 32, |x| x.map(f32::sin, f64::sin);
        /// The cosine
        Cos: Floating, library_floats, 32, |x| x.map(f32::cos, f64::cos);
        /// The tangent
        Tan: Floating, library_floats, 32, |x| x.map(f32::tan, f64::tan);
        /// The angle whose sine it is
        Asin: Floating, library_floats, 32, |x| x.map(f32::asin, f64::asin);
        /// The angle whose cosine it is
        Acos: Floating, library_floats, 32, |x| x.map(f32::acos, f64::acos);
        /// The angle whose tangent it is
        Atan: Floating, library_floats, 32, |x| x.map(f32::atan, f64::atan);
        /// The hyperbolic sine
        Sinh: Floating, library_floats, 32, |x| x.map(f32::sinh, f64::sinh);
        /// The hyperbolic cosine
        Cosh: Floating, library_floats, 32, |x| x.map(f32::cosh, f64::cosh);
        /// The inverse of the hyperbolic sine
        Asinh: Floating, library_floats, 32, |x| x.map(f32::asinh, f64::asinh);
        /// The inverse of the hyperbolic cosine
        Acosh: Floating, library_floats, 32, |x| x.map(f32::acosh, f64::acosh);
        /// The inverse of the hyperbolic tangent
        Atanh: Floating, library_floats, 32, |x| x.map(f32::atanh, f64::atanh);
        /// The hyperbolic tangent
        Tanh: Floating, floats, 24, |x| x.map(Float::tanh, Float::tanh);
        /// 1 / (1 + e^-x)
        Sigmoid: Floating, floats, 24, |x| x.map(Float::sigmoid, Float::sigmoid);
        /// x / (1 + e^-x)
        Silu: Floating, floats, 24, |x| x.map(#[inline(always)] |x| x * Float::sigmoid(x), #[inline(always)] |x| x * Float::sigmoid(x));
        /// ln (1 + e^x), without overflow
        Softplus: Floating, floats, 24, |x| x.map(Float::softplus, Float::softplus);
        /// The error function
        Erf: Floating, floats, 32, |x| x.map(Float::erf, Float::erf);
        /// x/2 (1 + erf(x / √2))
        Gelu: Floating, floats, 32, |x| x.map(
            #[inline(always)] |x| 0.5 * x * (1.0 + Float::erf(x * std::f32::consts::FRAC_1_SQRT_2)),
            #[inline(always)] |x| 0.5 * x * (1.0 + Float::erf(x * std::f64::consts::FRAC_1_SQRT_2)),
        );
        /// Gelu as its tanh formula has it: x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))
        GeluTanh: Floating, floats, 32, |x| x.map(
            #[inline(always)] |x| 0.5 * x * (1.0 + Float::tanh(0.797_884_6 * (x + 0.044_715 * x * x * x))),
            #[inline(always)] |x| 0.5 * x * (1.0 + Float::tanh(0.797_884_560_802_865_4 * (x + 0.044_715 * x * x * x))),
        );
    }
    others {
        /// The element itself, to be copied
        Identity: any, 1;
        /// The other bits
        BitNot: bits, 1;
        /// Whether it is false
        Not: truth, 1;
    }
    predicates {
        /// Whether it is no number
        IsNan: exact_floats;
    }
}

impl<T: Element> Unary<T> for Identity {
    type Output = T;

    #[inline(always)]
    fn apply(x: T) -> T {
        x
    }
}

impl Unary<Bool> for Not {
    type Output = Bool;

    #[inline(always)]
    fn apply(x: Bool) -> Bool {
        (!bool::from(x)).into()
    }
}

impl<T: Real> Unary<T> for IsNan {
    type Output = Bool;

    #[inline(always)]
    fn apply(x: T) -> Bool {
        (!x.same(x)).into()
    }
}

/// `binary!` declares variants of [`BinaryFunction`] and types, as `unary!` does for one element; comparisons
/// have formulas for all [`Real`] numbers that give truth values.
macro_rules! binary {
    (
        formulas {
            $($(#[$doc:meta])* $name:ident: $bound:ident, $family:ident, $cost:expr, |$x:ident, $y:ident| $body:expr;)*
        }
        comparisons {
            $($(#[$truth_doc:meta])* $truth:ident: $truth_family:ident, |$a:ident, $b:ident| $truth_body:expr;)*
        }
        others { $($(#[$other_doc:meta])* $other:ident: $other_family:ident, $other_cost:expr;)* }
    ) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $name;

            impl<T: $bound> Binary<T> for $name {
                type Output = T;

                #[inline(always)]
                fn apply($x: T, $y: T) -> T {
                    $body
                }
            }
        )*
        $(
            $(#[$truth_doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $truth;

            impl<T: Real> Binary<T> for $truth {
                type Output = Bool;

                #[inline(always)]
                fn apply($a: T, $b: T) -> Bool {
                    ($truth_body).into()
                }
            }
        )*
        $($(#[$other_doc])* #[derive(Clone, Copy, Debug)] pub struct $other;)*

        /// A function of two elements.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum BinaryFunction {
            $($(#[$doc])* $name,)*
            $($(#[$truth_doc])* $truth,)*
            $($(#[$other_doc])* $other,)*
        }

        impl BinaryFunction {
            /// All functions.
            pub const ALL: &'static [BinaryFunction] = &[
                $(BinaryFunction::$name,)* $(BinaryFunction::$truth,)* $(BinaryFunction::$other,)*
            ];

            /// About how many additions it costs.
            pub fn cost(self) -> usize {
                match self {
                    $(BinaryFunction::$name => $cost,)*
                    $(BinaryFunction::$truth => 1,)*
                    $(BinaryFunction::$other => $other_cost,)*
                }
            }

            /// Whether it gives truth values.
            pub fn is_predicate(self) -> bool {
                matches!(self, $(BinaryFunction::$truth)|*)
            }

            /// Its loop for a type of elements.
            pub(super) fn find(self, dtype: DType) -> Option<BinaryLoop> {
                match self {
                    $(BinaryFunction::$name => table::binary::$family::<$name>(dtype),)*
                    $(BinaryFunction::$truth => table::binary::$truth_family::<$truth>(dtype),)*
                    $(BinaryFunction::$other => table::binary::$other_family::<$other>(dtype),)*
                }
            }
        }
    };
}

binary! {
    formulas {
        /// The sum; integers wrap around
        Add: Number, numbers, 1, |x, y| x.plus(y);
        /// The difference; integers wrap around
        Subtract: Number, numbers, 1, |x, y| x.minus(y);
        /// The product; integers wrap around
        Multiply: Number, numbers, 1, |x, y| x.times(y);
        /// The quotient; integers are rounded towards 0, and give 0 where the divisor is 0
        Divide: Number, signed_numbers, 4, |x, y| x.over(y);
        /// (x - y)²
        SquaredDifference: Number, numbers, 2, |x, y| x.minus(y).times(x.minus(y));
        /// The smaller one; no number, if one is none
        Minimum: Real, reals, 1, |x, y| x.least(y);
        /// The larger one; no number, if one is none
        Maximum: Real, reals, 1, |x, y| x.greatest(y);
        /// What a division leaves, with the sign of the dividend
        Remainder: Real, library_reals, 16, |x, y| x.remainder(y);
        /// What a division leaves, with the sign of the divisor
        Modulo: Real, library_reals, 16, |x, y| {
            let rest = x.remainder(y);
            let is_other = !rest.same(T::ZERO) && rest.less(T::ZERO) != y.less(T::ZERO);
            if is_other { rest.plus(y) } else { rest }
        };
        /// x, or x times y if it is below 0
        SlopedRelu: Real, reals, 1, |x, y| if x.less(T::ZERO) { x.times(y) } else { x };
        /// x^y
        Power: Floating, library_floats, 64, |x, y| x.map2(y, f32::powf, f64::powf);
        /// The angle of the point (y, x), as `atan2(x, y)`
        Atan2: Floating, library_floats, 64, |x, y| x.map2(y, f32::atan2, f64::atan2);
        /// The gradient of [`Relu`]: y where x is above 0, else 0
        ReluGradient: Real, reals, 1, |x, y| if T::ZERO.less(x) { y } else { T::ZERO };
        /// 1 where the two are the same number, else 0
        EqualAsNumber: Real, reals, 1, |x, y| if x.same(y) { T::ONE } else { T::ZERO };
    }
    comparisons {
        /// Whether the two are the same number
        Equal: equalities, |x, y| x.same(y);
        /// Whether the two are not the same number
        NotEqual: equalities, |x, y| !x.same(y);
        /// Whether the first is less
        Less: reals, |x, y| x.less(y);
        /// Whether the first is less or the same
        LessEqual: reals, |x, y| x.less(y) | x.same(y);
        /// Whether the first is greater
        Greater: reals, |x, y| y.less(x);
        /// Whether the first is greater or the same
        GreaterEqual: reals, |x, y| y.less(x) | x.same(y);
    }
    others {
        /// Whether both are true
        And: truth, 1;
        /// Whether one or both are true
        Or: truth, 1;
        /// Whether one of them is true
        Xor: truth, 1;
        /// The bits that both have
        BitAnd: bits, 1;
        /// The bits that one or both have
        BitOr: bits, 1;
        /// The bits that one of them has
        BitXor: bits, 1;
        /// The bits shifted up; by as many as there are, or more, 0
        ShiftLeft: unsigned, 1;
        /// The bits shifted down; by as many as there are, or more, 0
        ShiftRight: unsigned, 1;
        /// x^y; integers wrap around, and what is no whole number is rounded towards 0
        WholePower: integers, 16;
    }
}

/// `truth! { Binary<Bool>: Equal(x, y) => x == y; }` implements a function for truth values.
macro_rules! truth {
    ($($name:ident($x:ident, $y:ident) => $body:expr;)*) => {$(
        impl Binary<Bool> for $name {
            type Output = Bool;

            #[inline(always)]
            fn apply(x: Bool, y: Bool) -> Bool {
                let ($x, $y) = (bool::from(x), bool::from(y));
                ($body).into()
            }
        }
    )*};
}

truth! {
    Equal(x, y) => x == y;
    NotEqual(x, y) => x != y;
    And(x, y) => x & y;
    Or(x, y) => x | y;
    Xor(x, y) => x ^ y;
}

/// `whole!(u8 i8)` implements the functions of integers.
macro_rules! whole {
    ($($type:ty)*) => {$(
        impl Unary<$type> for BitNot {
            type Output = $type;

            #[inline(always)]
            fn apply(x: $type) -> $type {
                !x
            }
        }

        whole!(@ $type, BitAnd, x, y => x & y);
        whole!(@ $type, BitOr, x, y => x | y);
        whole!(@ $type, BitXor, x, y => x ^ y);
        whole!(@ $type, ShiftLeft, x, y => u32::try_from(y).ok().and_then(|y| x.checked_shl(y)).unwrap_or(0));
        whole!(@ $type, ShiftRight, x, y => u32::try_from(y).ok().and_then(|y| x.checked_shr(y)).unwrap_or(0));
        whole!(@ $type, WholePower, x, y => power(x, i64::try_from(y).unwrap_or(i64::MAX)));
    )*};
    (@ $type:ty, $name:ident, $x:ident, $y:ident => $body:expr) => {
        impl Binary<$type> for $name {
            type Output = $type;

            #[inline(always)]
            fn apply($x: $type, $y: $type) -> $type {
                $body
            }
        }
    };
}

whole!(u8 u16 u32 u64 i8 i16 i32 i64);

/// x^n: integers wrap around, and what is no whole number is rounded towards 0; what a division by 0 gives is as
/// [`Divide`] has it.
pub fn power<T: Number>(x: T, n: i64) -> T {
    let (mut power, mut square, mut rest) = (T::ONE, x, n.unsigned_abs());
    while rest > 0 {
        if rest % 2 == 1 {
            power = power.times(square);
        }
        square = square.times(square);
        rest /= 2;
    }
    if n < 0 { T::ONE.over(power) } else { power }
}
