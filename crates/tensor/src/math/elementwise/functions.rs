//! The functions, each a type.

use std::marker::PhantomData;

use super::{Binary, Unary};
use crate::math::functions::Float;
use crate::math::number::{Floating, Number, Real};
use crate::{BF16, Bool, Complex, Element, F16};

/// `unary!(/// The square\n Square: Number, 1, |x| x.times(x))` declares the type `Square`, and implements
/// [`Unary`] for it and all `Number`s, at the cost of one addition.
macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident: $bound:ident, $cost:expr, |$x:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl<T: $bound> Unary<T> for $name {
            type Output = T;
            const COST: usize = $cost;

            #[inline(always)]
            fn apply($x: T) -> T {
                $body
            }
        }
    )*};
}

unary! {
    /// The number with the other sign; integers wrap around
    Negate: Number, 1, |x| x.negated();
    /// x²; integers wrap around
    Square: Number, 1, |x| x.times(x);
    /// 1 / x; of integers, as [`Divide`]
    Reciprocal: Number, 4, |x| T::ONE.over(x);
    /// The size; of the least integer, itself
    Abs: Real, 1, |x| x.magnitude();
    /// -1, 0 or 1; what is no number stays so
    Sign: Real, 1, |x| x.signum();
    /// The number, or 0 if that is larger
    Relu: Real, 1, |x| T::ZERO.greatest(x);
    /// The number between 0 and 6 that is nearest
    Relu6: Real, 1, |x| T::ZERO.greatest(x).least(T::from_f64(6.0));
    /// The number, or e^x - 1 if that is below 0
    Elu: Floating, 16, |x| if x.less(T::ZERO) { x.map(Float::expm1, Float::expm1) } else { x };
    /// The next whole number below
    Floor: Floating, 1, |x| x.map(f32::floor, f64::floor);
    /// The next whole number above
    Ceil: Floating, 1, |x| x.map(f32::ceil, f64::ceil);
    /// The nearest whole number, an even one if there are two
    Round: Floating, 1, |x| x.map(f32::round_ties_even, f64::round_ties_even);
    /// The next whole number towards 0
    Truncate: Floating, 1, |x| x.map(f32::trunc, f64::trunc);
    /// The square root
    Sqrt: Floating, 4, |x| x.map(f32::sqrt, f64::sqrt);
    /// 1 / the square root
    Rsqrt: Floating, 8, |x| x.map(#[inline(always)] |x| 1.0 / x.sqrt(), #[inline(always)] |x| 1.0 / x.sqrt());
    /// e^x
    Exp: Floating, 16, |x| x.map(Float::exp, Float::exp);
    /// e^x - 1
    Expm1: Floating, 16, |x| x.map(Float::expm1, Float::expm1);
    /// The natural logarithm
    Log: Floating, 16, |x| x.map(Float::ln, Float::ln);
    /// The natural logarithm of 1 + x
    Log1p: Floating, 32, |x| x.map(Float::ln_1p, Float::ln_1p);
    /// The sine
    Sin: Floating, 32, |x| x.map(f32::sin, f64::sin);
    /// The cosine
    Cos: Floating, 32, |x| x.map(f32::cos, f64::cos);
    /// The tangent
    Tan: Floating, 32, |x| x.map(f32::tan, f64::tan);
    /// The angle whose sine it is
    Asin: Floating, 32, |x| x.map(f32::asin, f64::asin);
    /// The angle whose cosine it is
    Acos: Floating, 32, |x| x.map(f32::acos, f64::acos);
    /// The angle whose tangent it is
    Atan: Floating, 32, |x| x.map(f32::atan, f64::atan);
    /// The hyperbolic sine
    Sinh: Floating, 32, |x| x.map(f32::sinh, f64::sinh);
    /// The hyperbolic cosine
    Cosh: Floating, 32, |x| x.map(f32::cosh, f64::cosh);
    /// The inverse of the hyperbolic sine
    Asinh: Floating, 32, |x| x.map(f32::asinh, f64::asinh);
    /// The inverse of the hyperbolic cosine
    Acosh: Floating, 32, |x| x.map(f32::acosh, f64::acosh);
    /// The inverse of the hyperbolic tangent
    Atanh: Floating, 32, |x| x.map(f32::atanh, f64::atanh);
    /// The hyperbolic tangent
    Tanh: Floating, 24, |x| x.map(Float::tanh, Float::tanh);
    /// 1 / (1 + e^-x)
    Sigmoid: Floating, 24, |x| x.map(Float::sigmoid, Float::sigmoid);
    /// x / (1 + e^-x)
    Silu: Floating, 24, |x| x.map(#[inline(always)] |x| x * Float::sigmoid(x), #[inline(always)] |x| x * Float::sigmoid(x));
    /// ln (1 + e^x), without overflow
    Softplus: Floating, 24, |x| x.map(Float::softplus, Float::softplus);
    /// The error function
    Erf: Floating, 32, |x| x.map(Float::erf, Float::erf);
    /// x/2 (1 + erf(x / √2))
    Gelu: Floating, 32, |x| x.map(
        #[inline(always)] |x| 0.5 * x * (1.0 + Float::erf(x * std::f32::consts::FRAC_1_SQRT_2)),
        #[inline(always)] |x| 0.5 * x * (1.0 + Float::erf(x * std::f64::consts::FRAC_1_SQRT_2)),
    );
    /// Gelu as its tanh formula has it: x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))
    GeluTanh: Floating, 32, |x| x.map(
        #[inline(always)] |x| 0.5 * x * (1.0 + Float::tanh(0.797_884_6 * (x + 0.044_715 * x * x * x))),
        #[inline(always)] |x| 0.5 * x * (1.0 + Float::tanh(0.797_884_560_802_865_4 * (x + 0.044_715 * x * x * x))),
    );
}

/// The number itself, to be copied
#[derive(Clone, Copy, Debug)]
pub struct Identity;

impl<T: Element> Unary<T> for Identity {
    type Output = T;

    #[inline(always)]
    fn apply(x: T) -> T {
        x
    }
}

/// Whether it is no number
#[derive(Clone, Copy, Debug)]
pub struct IsNan;

impl<T: Real> Unary<T> for IsNan {
    type Output = Bool;

    #[inline(always)]
    fn apply(x: T) -> Bool {
        (!x.same(x)).into()
    }
}

/// Whether it is neither infinite nor no number
#[derive(Clone, Copy, Debug)]
pub struct IsFinite;

impl<T: Real> Unary<T> for IsFinite {
    type Output = Bool;

    #[inline(always)]
    fn apply(x: T) -> Bool {
        x.to_f64().is_finite().into()
    }
}

/// Whether it is false
#[derive(Clone, Copy, Debug)]
pub struct Not;

impl Unary<Bool> for Not {
    type Output = Bool;

    #[inline(always)]
    fn apply(x: Bool) -> Bool {
        (!bool::from(x)).into()
    }
}

/// `binary!(/// The sum\n Add: Number, 1, |x, y| x.plus(y))` declares the type `Add`, and implements
/// [`Binary`] for it and all `Number`s, at the cost of one addition.
macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident: $bound:ident, $cost:expr, |$x:ident, $y:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl<T: $bound> Binary<T> for $name {
            type Output = T;
            const COST: usize = $cost;

            #[inline(always)]
            fn apply($x: T, $y: T) -> T {
                $body
            }
        }
    )*};
}

binary! {
    /// The sum; integers wrap around
    Add: Number, 1, |x, y| x.plus(y);
    /// The difference; integers wrap around
    Subtract: Number, 1, |x, y| x.minus(y);
    /// The product; integers wrap around
    Multiply: Number, 1, |x, y| x.times(y);
    /// The quotient; integers are rounded towards 0, and give 0 where the divisor is 0
    Divide: Number, 4, |x, y| x.over(y);
    /// (x - y)²
    SquaredDifference: Number, 2, |x, y| x.minus(y).times(x.minus(y));
    /// The smaller one; no number, if one is none
    Minimum: Real, 1, |x, y| x.least(y);
    /// The larger one; no number, if one is none
    Maximum: Real, 1, |x, y| x.greatest(y);
    /// What a division leaves, with the sign of the dividend
    Remainder: Real, 16, |x, y| x.remainder(y);
    /// What a division leaves, with the sign of the divisor
    Modulo: Real, 16, |x, y| {
        let rest = x.remainder(y);
        let is_other = !rest.same(T::ZERO) && rest.less(T::ZERO) != y.less(T::ZERO);
        if is_other { rest.plus(y) } else { rest }
    };
    /// x, or x times y if it is below 0
    SlopedRelu: Real, 1, |x, y| if x.less(T::ZERO) { x.times(y) } else { x };
    /// x^y
    Power: Floating, 64, |x, y| x.map2(y, f32::powf, f64::powf);
    /// The angle of the point (y, x), as `atan2(x, y)`
    Atan2: Floating, 64, |x, y| x.map2(y, f32::atan2, f64::atan2);
    /// The gradient of [`Relu`]: y where x is above 0, else 0
    ReluGradient: Real, 1, |x, y| if T::ZERO.less(x) { y } else { T::ZERO };
}

/// `compare!(/// Whether they are the same\n Equal: |x, y| x.same(y))` declares the type `Equal`, and
/// implements [`Binary`] for it and all [`Real`] numbers, with truth values as results.
macro_rules! compare {
    ($($(#[$doc:meta])* $name:ident: |$x:ident, $y:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl<T: Real> Binary<T> for $name {
            type Output = Bool;

            #[inline(always)]
            fn apply($x: T, $y: T) -> Bool {
                ($body).into()
            }
        }
    )*};
}

compare! {
    /// Whether the two are the same number
    Equal: |x, y| x.same(y);
    /// Whether the two are not the same number
    NotEqual: |x, y| !x.same(y);
    /// Whether the first is less
    Less: |x, y| x.less(y);
    /// Whether the first is less or the same
    LessEqual: |x, y| x.less(y) | x.same(y);
    /// Whether the first is greater
    Greater: |x, y| y.less(x);
    /// Whether the first is greater or the same
    GreaterEqual: |x, y| y.less(x) | x.same(y);
}

/// 1 where the two are the same number, else 0
#[derive(Clone, Copy, Debug)]
pub struct EqualAsNumber;

impl<T: Real> Binary<T> for EqualAsNumber {
    type Output = T;

    #[inline(always)]
    fn apply(x: T, y: T) -> T {
        if x.same(y) { T::ONE } else { T::ZERO }
    }
}

/// `logic!(/// Whether both are true\n And: |x, y| x & y)` declares the type `And` for truth values.
macro_rules! logic {
    ($($(#[$doc:meta])* $name:ident: |$x:ident, $y:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

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

logic! {
    /// Whether both are true
    And: |x, y| x & y;
    /// Whether one or both are true
    Or: |x, y| x | y;
    /// Whether one of them is true
    Xor: |x, y| x ^ y;
}

/// `bits!(/// Both\n BitAnd: |x, y| x & y; => u8 i8)` declares the type `BitAnd` for integers.
macro_rules! bits {
    ($($(#[$doc:meta])* $name:ident: |$x:ident, $y:ident| $body:expr;)* => $types:tt) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        bits!(@ $name |$x, $y| $body; $types);
    )*};
    (@ $name:ident |$x:ident, $y:ident| $body:expr; ($($type:ty)*)) => {$(
        impl Binary<$type> for $name {
            type Output = $type;

            #[inline(always)]
            fn apply($x: $type, $y: $type) -> $type {
                $body
            }
        }
    )*};
}

bits! {
    /// The bits that both have
    BitAnd: |x, y| x & y;
    /// The bits that one or both have
    BitOr: |x, y| x | y;
    /// The bits that one of them has
    BitXor: |x, y| x ^ y;
    => (u8 u16 u32 u64 i8 i16 i32 i64)
}

/// The other bits
#[derive(Clone, Copy, Debug)]
pub struct BitNot;

/// x^y; integers wrap around, and what is no whole number is rounded towards 0
#[derive(Clone, Copy, Debug)]
pub struct WholePower;

/// `whole!(u8 i8)` implements [`BitNot`] and [`WholePower`] for integers.
macro_rules! whole {
    ($($type:ty)*) => {$(
        impl Unary<$type> for BitNot {
            type Output = $type;

            #[inline(always)]
            fn apply(x: $type) -> $type {
                !x
            }
        }

        impl Binary<$type> for WholePower {
            type Output = $type;
            const COST: usize = 16;

            #[inline(always)]
            fn apply(x: $type, y: $type) -> $type {
                power(x, i64::try_from(y).unwrap_or(i64::MAX))
            }
        }
    )*};
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

/// Whether two elements are the same: for what is no number
#[derive(Clone, Copy, Debug)]
pub struct Same;

impl Binary<Bool> for Same {
    type Output = Bool;

    #[inline(always)]
    fn apply(x: Bool, y: Bool) -> Bool {
        (x == y).into()
    }
}

/// The number as a `U`, as `as` has it in Rust
#[derive(Clone, Copy, Debug)]
pub struct Cast<U>(PhantomData<U>);

/// `casts!((u8 i8) => (u8 i8))` implements `Cast<u8>` for `u8` and `i8`, and `Cast<i8>` for both.
macro_rules! casts {
    (($($from:ty)*) => $to:tt) => { $(casts!(@ $from => $to);)* };
    (@ $from:ty => ($($to:ty)*)) => {$(
        impl Unary<$from> for Cast<$to> {
            type Output = $to;

            #[inline(always)]
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_possible_wrap,
                clippy::cast_precision_loss,
                clippy::cast_lossless,
                clippy::unnecessary_cast,
                reason = "what a cast does is what is asked for"
            )]
            fn apply(x: $from) -> $to {
                x as $to
            }
        }
    )*};
}

casts!((u8 u16 u32 u64 i8 i16 i32 i64 f32 f64) => (u8 u16 u32 u64 i8 i16 i32 i64 f32 f64));

/// `half_casts!(F16)` implements casts between `F16` and all real numbers, through `f64`, which has them all
/// but large integers; these are infinite or rounded alike.
macro_rules! half_casts {
    ($($half:ty: $($other:ty)*;)*) => {$($(
        impl Unary<$half> for Cast<$other> {
            type Output = $other;

            #[inline(always)]
            fn apply(x: $half) -> $other {
                Real::from_f64(x.to_f64())
            }
        }

        impl Unary<$other> for Cast<$half> {
            type Output = $half;

            #[inline(always)]
            fn apply(x: $other) -> $half {
                Real::from_f64(x.to_f64())
            }
        }
    )*)*};
}

half_casts! {
    F16: u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 BF16;
    BF16: u8 u16 u32 u64 i8 i16 i32 i64 f32 f64;
}

impl<T: Real> Unary<Bool> for Cast<T> {
    type Output = T;

    #[inline(always)]
    fn apply(x: Bool) -> T {
        if x.into() { T::ONE } else { T::ZERO }
    }
}

impl<T: Real> Unary<T> for Cast<Bool> {
    type Output = Bool;

    #[inline(always)]
    fn apply(x: T) -> Bool {
        (!x.same(T::ZERO)).into()
    }
}

/// The real part
#[derive(Clone, Copy, Debug)]
pub struct RealPart;

impl Unary<Complex<f32>> for RealPart {
    type Output = f32;

    #[inline(always)]
    fn apply(x: Complex<f32>) -> f32 {
        x.real
    }
}

impl Unary<Complex<f64>> for RealPart {
    type Output = f64;

    #[inline(always)]
    fn apply(x: Complex<f64>) -> f64 {
        x.real
    }
}
