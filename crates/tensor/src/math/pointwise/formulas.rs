//! The functions, a row each: its name, also in the text of programs, what it takes, its family (see `table`), about how many additions it
//! costs, and its formula. A row is a variant of [`UnaryFunction`] or [`BinaryFunction`], and a type that loops are made
//! for.

use super::table::{self, BinaryLoop, UnaryLoop};
use crate::math::functions::Float;
use crate::math::number::{Floating, Number, Real};
use crate::{Bool, DType, Element};

/// Cost from which on the choice of an instruction set pays, however few the elements are.
const CHEAP: usize = 8;

/// A formula of one element.
pub trait Unary<T>: 'static {
    /// Type of the results.
    type Output: Element;

    /// Calculates the function of an element.
    fn apply(x: T) -> Self::Output;
}

/// A formula of two elements.
pub trait Binary<T>: 'static {
    /// Type of the results.
    type Output: Element;

    /// Calculates the function of two elements.
    fn apply(x: T, y: T) -> Self::Output;
}

/// `unary! { formulas { Square "square": Number, squares, 1, |x| x.times(x); } others { Not "not": truth, 1; } predicates {} }`
/// declares the variants `Square` and `Not` of [`UnaryFunction`], and types of these names. `Square` has the formula for all
/// [`Number`]s; those of the others are written below. Predicates give truth values.
macro_rules! unary {
    (
        formulas { $($(#[$doc:meta])* $name:ident $word:literal: $bound:ident, $family:ident, $cost:expr, |$x:ident| $body:expr;)* }
        others { $($(#[$other_doc:meta])* $other:ident $other_word:literal: $other_family:ident, $other_cost:expr;)* }
        predicates { $($(#[$truth_doc:meta])* $truth:ident $truth_word:literal: $truth_family:ident;)* }
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

            /// Returns the function's name in the text of programs, which is the operation's.
            pub fn name(self) -> &'static str {
                match self {
                    $(UnaryFunction::$name => $word,)*
                    $(UnaryFunction::$other => $other_word,)*
                    $(UnaryFunction::$truth => $truth_word,)*
                }
            }

            /// Returns the function of this name.
            pub fn from_name(name: &str) -> Option<UnaryFunction> {
                match name {
                    $($word => Some(UnaryFunction::$name),)*
                    $($other_word => Some(UnaryFunction::$other),)*
                    $($truth_word => Some(UnaryFunction::$truth),)*
                    _ => None,
                }
            }

            /// Returns the function's approximate cost, in additions.
            pub fn cost(self) -> usize {
                match self {
                    $(UnaryFunction::$name => $cost,)*
                    $(UnaryFunction::$other => $other_cost,)*
                    $(UnaryFunction::$truth => 1,)*
                }
            }

            /// Returns whether it gives truth values.
            pub fn is_predicate(self) -> bool {
                matches!(self, $(UnaryFunction::$truth)|*)
            }

            /// Returns the function's loop for a type of elements.
            pub(super) fn find(self, dtype: DType) -> Option<UnaryLoop> {
                self.find_for(dtype, false)
            }

            /// Returns the function's loop for few elements of a type.
            pub(super) fn find_for_few(self, dtype: DType) -> Option<UnaryLoop> {
                self.find_for(dtype, self.cost() <= CHEAP)
            }

            fn find_for(self, dtype: DType, are_few: bool) -> Option<UnaryLoop> {
                match self {
                    $(UnaryFunction::$name => table::unary::$family::<$name>(dtype, are_few),)*
                    $(UnaryFunction::$other => table::unary::$other_family::<$other>(dtype, are_few),)*
                    $(UnaryFunction::$truth => table::unary::$truth_family::<$truth>(dtype, are_few),)*
                }
            }
        }
    };
}

unary! {
    formulas {
        /// The number with the other sign; integers wrap around
        Negate "neg": Number, numbers, 1, |x| x.negated();
        /// x²; integers wrap around
        Square "square": Number, squares, 1, |x| x.times(x);
        /// 1 / x
        Reciprocal "reciprocal": Number, exact_floats, 4, |x| T::ONE.over(x);
        /// The absolute value; of the least integer, itself
        Abs "abs": Real, magnitudes, 1, |x| x.magnitude();
        /// -1, 0 or 1; NaN stays so
        Sign "sign": Real, reals, 1, |x| x.signum();
        /// The number, or 0 if that is larger
        Relu "relu": Real, reals, 1, |x| T::ZERO.greatest(x);
        /// The number between 0 and 6 that is nearest
        Relu6 "relu6": Real, reals, 1, |x| T::ZERO.greatest(x).least(T::from_f64(6.0));
        /// The number, or e^x - 1 if that is below 0
        Elu "elu": Floating, floats, 16, |x| if x.less(T::ZERO) { x.map(Float::expm1, Float::expm1) } else { x };
        /// The next whole number below
        Floor "floor": Floating, exact_floats, 1, |x| x.map(f32::floor, f64::floor);
        /// The next whole number above
        Ceil "ceil": Floating, exact_floats, 1, |x| x.map(f32::ceil, f64::ceil);
        /// The nearest whole number, ties to even
        Round "round": Floating, exact_floats, 1, |x| x.map(f32::round_ties_even, f64::round_ties_even);
        /// The next whole number towards 0
        Truncate "trunc": Floating, exact_floats, 1, |x| x.map(f32::trunc, f64::trunc);
        /// The square root
        Sqrt "sqrt": Floating, exact_floats, 4, |x| x.map(f32::sqrt, f64::sqrt);
        /// 1 / the square root
        Rsqrt "rsqrt": Floating, exact_floats, 8, |x| x.map(#[inline(always)] |x| 1.0 / x.sqrt(), #[inline(always)] |x| 1.0 / x.sqrt());
        /// e^x
        Exp "exp": Floating, floats, 16, |x| x.map(Float::exp, Float::exp);
        /// e^x - 1
        Expm1 "expm1": Floating, floats, 16, |x| x.map(Float::expm1, Float::expm1);
        /// The natural logarithm
        Log "log": Floating, floats, 16, |x| x.map(Float::ln, Float::ln);
        /// The natural logarithm of 1 + x
        Log1p "log1p": Floating, floats, 32, |x| x.map(Float::ln_1p, Float::ln_1p);
        /// The sine
        Sin "sin": Floating, library_floats, 32, |x| x.map(f32::sin, f64::sin);
        /// The cosine
        Cos "cos": Floating, library_floats, 32, |x| x.map(f32::cos, f64::cos);
        /// The tangent
        Tan "tan": Floating, library_floats, 32, |x| x.map(f32::tan, f64::tan);
        /// The angle whose sine it is
        Asin "asin": Floating, library_floats, 32, |x| x.map(f32::asin, f64::asin);
        /// The angle whose cosine it is
        Acos "acos": Floating, library_floats, 32, |x| x.map(f32::acos, f64::acos);
        /// The angle whose tangent it is
        Atan "atan": Floating, library_floats, 32, |x| x.map(f32::atan, f64::atan);
        /// The hyperbolic sine
        Sinh "sinh": Floating, library_floats, 32, |x| x.map(f32::sinh, f64::sinh);
        /// The hyperbolic cosine
        Cosh "cosh": Floating, library_floats, 32, |x| x.map(f32::cosh, f64::cosh);
        /// The inverse of the hyperbolic sine
        Asinh "asinh": Floating, library_floats, 32, |x| x.map(f32::asinh, f64::asinh);
        /// The inverse of the hyperbolic cosine
        Acosh "acosh": Floating, library_floats, 32, |x| x.map(f32::acosh, f64::acosh);
        /// The inverse of the hyperbolic tangent
        Atanh "atanh": Floating, library_floats, 32, |x| x.map(f32::atanh, f64::atanh);
        /// The hyperbolic tangent
        Tanh "tanh": Floating, floats, 24, |x| x.map(Float::tanh, Float::tanh);
        /// 1 / (1 + e^-x)
        Sigmoid "sigmoid": Floating, floats, 24, |x| x.map(Float::sigmoid, Float::sigmoid);
        /// x / (1 + e^-x)
        Silu "silu": Floating, floats, 24, |x| x.map(#[inline(always)] |x| x * Float::sigmoid(x), #[inline(always)] |x| x * Float::sigmoid(x));
        /// ln (1 + e^x), without overflow
        Softplus "softplus": Floating, floats, 24, |x| x.map(Float::softplus, Float::softplus);
        /// The error function
        Erf "erf": Floating, floats, 32, |x| x.map(Float::erf, Float::erf);
        /// The cube root
        Cbrt "cbrt": Floating, library_floats, 32, |x| x.map(libm::cbrtf, libm::cbrt);
        /// 1 - the error function, exact where that is almost 1
        Erfc "erfc": Floating, library_floats, 64, |x| x.map(libm::erfcf, libm::erfc);
        /// The logarithm of the absolute value of the gamma function
        LogGamma "lgamma": Floating, library_floats, 64, |x| x.map(libm::lgammaf, libm::lgamma);
        /// x/2 (1 + erf(x / √2))
        Gelu "gelu": Floating, floats, 32, |x| x.map(
            #[inline(always)] |x| 0.5 * x * (1.0 + Float::erf(x * std::f32::consts::FRAC_1_SQRT_2)),
            #[inline(always)] |x| 0.5 * x * (1.0 + Float::erf(x * std::f64::consts::FRAC_1_SQRT_2)),
        );
        /// Gelu by tanh: x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))
        GeluTanh "gelu_tanh": Floating, floats, 32, |x| x.map(
            #[inline(always)] |x| 0.5 * x * (1.0 + Float::tanh(0.797_884_6 * (x + 0.044_715 * x * x * x))),
            #[inline(always)] |x| 0.5 * x * (1.0 + Float::tanh(0.797_884_560_802_865_4 * (x + 0.044_715 * x * x * x))),
        );
    }
    others {
        /// The element itself, to be copied
        Identity "identity": any, 1;
        /// The other bits
        BitNot "bit_not": bits, 1;
        /// Whether it is false
        Not "not": truth, 1;
    }
    predicates {
        /// Whether it is no number
        IsNan "is_nan": exact_floats;
        /// Whether it is a number, and not infinite
        IsFinite "is_finite": exact_floats;
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

impl<T: Real> Unary<T> for IsFinite {
    type Output = Bool;

    #[inline(always)]
    fn apply(x: T) -> Bool {
        x.minus(x).same(T::ZERO).into()
    }
}

/// `binary!` declares variants of [`BinaryFunction`] and types, as `unary!` does for one element; comparisons
/// have formulas for all [`Real`] numbers that give truth values.
macro_rules! binary {
    (
        formulas {
            $($(#[$doc:meta])* $name:ident $word:literal: $bound:ident, $family:ident, $cost:expr, |$x:ident, $y:ident| $body:expr;)*
        }
        comparisons {
            $($(#[$truth_doc:meta])* $truth:ident $truth_word:literal: $truth_family:ident, |$a:ident, $b:ident| $truth_body:expr;)*
        }
        others { $($(#[$other_doc:meta])* $other:ident $other_word:literal: $other_family:ident, $other_cost:expr;)* }
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

            /// Returns the function's name in the text of programs, which is the operation's.
            pub fn name(self) -> &'static str {
                match self {
                    $(BinaryFunction::$name => $word,)*
                    $(BinaryFunction::$truth => $truth_word,)*
                    $(BinaryFunction::$other => $other_word,)*
                }
            }

            /// Returns the function of this name.
            pub fn from_name(name: &str) -> Option<BinaryFunction> {
                match name {
                    $($word => Some(BinaryFunction::$name),)*
                    $($truth_word => Some(BinaryFunction::$truth),)*
                    $($other_word => Some(BinaryFunction::$other),)*
                    _ => None,
                }
            }

            /// Returns the function's approximate cost, in additions.
            pub fn cost(self) -> usize {
                match self {
                    $(BinaryFunction::$name => $cost,)*
                    $(BinaryFunction::$truth => 1,)*
                    $(BinaryFunction::$other => $other_cost,)*
                }
            }

            /// Returns whether it gives truth values.
            pub fn is_predicate(self) -> bool {
                matches!(self, $(BinaryFunction::$truth)|*)
            }

            /// Returns the function's loop for a type of elements.
            pub(super) fn find(self, dtype: DType) -> Option<BinaryLoop> {
                self.find_for(dtype, false)
            }

            /// Returns the function's loop for few elements of a type.
            pub(super) fn find_for_few(self, dtype: DType) -> Option<BinaryLoop> {
                self.find_for(dtype, self.cost() <= CHEAP)
            }

            fn find_for(self, dtype: DType, are_few: bool) -> Option<BinaryLoop> {
                match self {
                    $(BinaryFunction::$name => table::binary::$family::<$name>(dtype, are_few),)*
                    $(BinaryFunction::$truth => table::binary::$truth_family::<$truth>(dtype, are_few),)*
                    $(BinaryFunction::$other => table::binary::$other_family::<$other>(dtype, are_few),)*
                }
            }
        }
    };
}

binary! {
    formulas {
        /// The sum; integers wrap around
        Add "add": Number, numbers, 1, |x, y| x.plus(y);
        /// The difference; integers wrap around
        Subtract "sub": Number, numbers, 1, |x, y| x.minus(y);
        /// The product; integers wrap around
        Multiply "mul": Number, numbers, 1, |x, y| x.times(y);
        /// The quotient; integers are rounded towards 0, and give 0 where the divisor is 0
        Divide "div": Number, signed_numbers, 4, |x, y| x.over(y);
        /// (x - y)²
        SquaredDifference "squared_difference": Number, numbers, 2, |x, y| x.minus(y).times(x.minus(y));
        /// The smaller one; no number, if one is none
        Minimum "min": Real, reals, 1, |x, y| x.least(y);
        /// The larger one; no number, if one is none
        Maximum "max": Real, reals, 1, |x, y| x.greatest(y);
        /// The remainder of a division, with the sign of the dividend
        Remainder "rem": Real, library_reals, 16, |x, y| x.remainder(y);
        /// The remainder of a division, with the sign of the divisor
        Modulo "mod": Real, library_reals, 16, |x, y| {
            let rest = x.remainder(y);
            let is_other = !rest.same(T::ZERO) && rest.less(T::ZERO) != y.less(T::ZERO);
            if is_other { rest.plus(y) } else { rest }
        };
        /// The quotient, rounded down; of integers 0 where the divisor is 0
        FloorDivide "floor_div": Real, library_reals, 16, |x, y| x.floored(y);
        /// The quotient, or 0 where the divisor is 0
        DivideNoNan "div_no_nan": Floating, library_floats, 4, |x, y| if y.same(T::ZERO) { T::ZERO } else { x.over(y) };
        /// The product, or 0 where the second factor is 0
        MultiplyNoNan "mul_no_nan": Floating, library_floats, 2, |x, y| if y.same(T::ZERO) { T::ZERO } else { x.times(y) };
        /// x ln y, or 0 where x is 0
        XLogY "xlogy": Floating, library_floats, 32, |x, y| {
            let log = y.map(f32::ln, f64::ln);
            if x.same(T::ZERO) { T::ZERO } else { x.times(log) }
        };
        /// x ln (1 + y), or 0 where x is 0
        XLog1pY "xlog1py": Floating, library_floats, 32, |x, y| {
            let log = y.map(f32::ln_1p, f64::ln_1p);
            if x.same(T::ZERO) { T::ZERO } else { x.times(log) }
        };
        /// x / y, or 0 where x is 0
        XDivideY "xdivy": Floating, library_floats, 4, |x, y| if x.same(T::ZERO) { T::ZERO } else { x.over(y) };
        /// x, or x times y if it is below 0
        SlopedRelu "prelu": Real, reals, 1, |x, y| if x.less(T::ZERO) { x.times(y) } else { x };
        /// x^y; integers wrap around, and what is no whole number is rounded towards 0
        Power "pow": Floating, powers, 64, |x, y| x.map2(y, f32::powf, f64::powf);
        /// The angle of the point (y, x), as `atan2(x, y)`
        Atan2 "atan2": Floating, library_floats, 64, |x, y| x.map2(y, f32::atan2, f64::atan2);
        /// The gradient of [`Relu`]: y where x is above 0, else 0
        ReluGradient "relu_gradient": Real, reals, 1, |x, y| if T::ZERO.less(x) { y } else { T::ZERO };
        /// 1 where the two are the same number, else 0
        EqualAsNumber "equal_as_number": Real, reals, 1, |x, y| if x.same(y) { T::ONE } else { T::ZERO };
    }
    comparisons {
        /// Whether the two are the same number
        Equal "eq": equalities, |x, y| x.same(y);
        /// Whether the two are not the same number
        NotEqual "ne": equalities, |x, y| !x.same(y);
        /// Whether the first is less
        Less "lt": reals, |x, y| x.less(y);
        /// Whether the first is less or the same
        LessEqual "le": reals, |x, y| x.less(y) | x.same(y);
        /// Whether the first is greater
        Greater "gt": reals, |x, y| y.less(x);
        /// Whether the first is greater or the same
        GreaterEqual "ge": reals, |x, y| y.less(x) | x.same(y);
    }
    others {
        /// Whether both are true
        And "and": truth, 1;
        /// Whether one or both are true
        Or "or": truth, 1;
        /// Whether exactly one is true
        Xor "xor": truth, 1;
        /// The bits that both have
        BitAnd "bit_and": bits, 1;
        /// The bits that one or both have
        BitOr "bit_or": bits, 1;
        /// The bits that exactly one has
        BitXor "bit_xor": bits, 1;
        /// The bits shifted up; by as many as there are, or more, 0
        ShiftLeft "shift_left": unsigned, 1;
        /// The bits shifted down; by as many as there are, or more, 0
        ShiftRight "shift_right": unsigned, 1;
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
        whole!(@ $type, Power, x, y => power(x, i64::try_from(y).unwrap_or(i64::MAX)));
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

/// Calculates x^n: integers wrap around, and a result that is no whole number is rounded towards 0; a division by 0
/// is that of [`Divide`].
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
