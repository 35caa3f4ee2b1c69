//! Functions of one element with parameters that are the same for all.

use super::formulas::power;
use super::table::{ParametricLoop, map};
use crate::math::functions::Float;
use crate::math::number::Real;
use crate::math::vectorized;
use crate::{Bool, DType, with_floating, with_integer, with_real};

/// `floats! { formulas { Scaled "scaled" 1: 1, [alpha, _], |x| alpha * x; } others {} }` makes loops of `Scaled`, a function
/// with one parameter, for `f32` and `f64`, of a formula that is written once. Parameters are numbers of the type of the
/// elements.
macro_rules! floats {
    (
        formulas { $($(#[$doc:meta])* $name:ident $word:literal $n:literal: $cost:literal, $parameters:pat, |$x:ident| $body:expr;)* }
        others { $($(#[$other_doc:meta])* $other:ident $other_word:literal $other_n:literal: $other_cost:literal, $find:expr;)* }
    ) => {
        /// A function of one element and up to two parameters, α and β.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ParametricFunction {
            $($(#[$doc])* $name,)*
            $($(#[$other_doc])* $other,)*
        }

        impl ParametricFunction {
            /// All functions.
            pub const ALL: &'static [ParametricFunction] =
                &[$(ParametricFunction::$name,)* $(ParametricFunction::$other,)*];

            /// Returns the function's name in the text of programs, which is the operation's.
            pub fn name(self) -> &'static str {
                match self {
                    $(ParametricFunction::$name => $word,)*
                    $(ParametricFunction::$other => $other_word,)*
                }
            }

            /// Returns the function of this name.
            pub fn from_name(name: &str) -> Option<ParametricFunction> {
                match name {
                    $($word => Some(ParametricFunction::$name),)*
                    $($other_word => Some(ParametricFunction::$other),)*
                    _ => None,
                }
            }

            /// Returns the number of parameters; those behind are 0.
            pub fn n_parameters(self) -> usize {
                match self {
                    $(ParametricFunction::$name => $n,)*
                    $(ParametricFunction::$other => $other_n,)*
                }
            }

            /// Returns the function's approximate cost, in additions.
            pub fn cost(self) -> usize {
                match self {
                    $(ParametricFunction::$name => $cost,)*
                    $(ParametricFunction::$other => $other_cost,)*
                }
            }

            /// Returns the function's loop for a type of elements.
            pub(super) fn find(self, dtype: DType) -> Option<ParametricLoop> {
                match (self, dtype) {
                    $((ParametricFunction::$name, DType::F32) => Some(|parameters, x, out| {
                        #[allow(clippy::cast_possible_truncation, reason = "parameters are of the elements' type")]
                        let $parameters = parameters.map(|parameter| parameter as f32);
                        vectorized(#[inline(always)] || map(x, out, #[inline(always)] |$x: f32| -> f32 { $body }));
                    }),)*
                    $((ParametricFunction::$name, DType::F64) => Some(|$parameters, x, out| {
                        map(x, out, |$x: f64| -> f64 { $body });
                    }),)*
                    $((ParametricFunction::$other, _) => $find(dtype),)*
                    _ => None,
                }
            }
        }
    };
}

floats! {
    formulas {
        /// max(0, x) + min(0, α (e^(x/α) - 1)); NaN stays so
        Celu "celu" 1: 24, [alpha, _], |x| if x > 0.0 { x } else { alpha * Float::expm1(x / alpha) };
        /// x, or α (e^x - 1) below 0
        ScaledElu "elu" 1: 24, [alpha, _], |x| if x < 0.0 { alpha * Float::expm1(x) } else { x };
        /// α x + β within 0 and 1
        HardSigmoid "hard_sigmoid" 2: 2, [alpha, beta], |x| (alpha * x + beta).clamp(0.0, 1.0);
        /// x (x/6 + 1/2), where the second factor is within 0 and 1
        HardSwish "hard_swish" 0: 2, _, |x| x * (x / 6.0 + 0.5).clamp(0.0, 1.0);
        /// x, or α x below 0
        LeakyRelu "leaky_relu" 1: 1, [alpha, _], |x| if x < 0.0 { alpha * x } else { x };
        /// x tanh(ln(1 + e^x))
        Mish "mish" 0: 64, _, |x| x * Float::tanh(x.max(0.0) + Float::ln_1p(Float::exp(-x.abs())));
        /// β x, or β α (e^x - 1) where x is not above 0
        Selu "selu" 2: 24, [alpha, gamma], |x| gamma * if x > 0.0 { x } else { alpha * Float::expm1(x) };
        /// x / (1 + |x|)
        Softsign "softsign" 0: 4, _, |x| x / (1.0 + x.abs());
        /// x / (1 + e^-αx)
        Swish "swish" 1: 24, [alpha, _], |x| x * Float::sigmoid(alpha * x);
        /// x where it is above α, else 0
        ThresholdedRelu "thresholded_relu" 1: 1, [alpha, _], |x| if x > alpha { x } else { 0.0 };
        /// x / α
        DividedBy "divided_by" 1: 4, [alpha, _], |x| x / alpha;
    }
    others {
        /// 0 within -α and α, elsewhere β nearer to 0
        Shrink "shrink" 2: 4, shrink;
        /// x^α, calculated in `f64`
        PowerOf "power_of" 1: 64, power_of;
        /// x^n for a whole n, with the parameters of [`whole`]; integers wrap around
        WholePowerOf "whole_power_of" 2: 16, whole_power_of;
        /// Whether it is infinite: above 0 if α is not 0, below 0 if β is not 0
        IsInfinite "is_inf" 2: 2, is_infinite;
    }
}

impl ParametricFunction {
    /// Returns whether it gives truth values.
    pub fn is_predicate(self) -> bool {
        self == ParametricFunction::IsInfinite
    }
}

/// Returns the parameters of [`ParametricFunction::WholePowerOf`] for an exponent.
pub fn whole(exponent: i64) -> [f64; 2] {
    let low = u32::try_from(exponent & i64::from(u32::MAX)).unwrap_or_default();
    let high = i32::try_from(exponent >> 32).unwrap_or_default();
    [high.into(), low.into()]
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "`whole` made them of integers of 32 bits"
)]
fn exponent([high, low]: [f64; 2]) -> i64 {
    (high as i64) << 32 | low as i64
}

fn shrink(dtype: DType) -> Option<ParametricLoop> {
    fn of<T: Real>([lambda, bias]: [f64; 2], x: &[u8], out: &mut [u8]) {
        map(x, out, |x: T| {
            let wide = x.to_f64();
            if wide < -lambda {
                T::from_f64(wide + bias)
            } else if wide > lambda {
                T::from_f64(wide - bias)
            } else {
                T::ZERO
            }
        });
    }
    with_real!(dtype, T => Some(of::<T>), else None)
}

fn power_of(dtype: DType) -> Option<ParametricLoop> {
    fn of<T: Real>([exponent, _]: [f64; 2], x: &[u8], out: &mut [u8]) {
        map(x, out, |x: T| T::from_f64(x.to_f64().powf(exponent)));
    }
    with_real!(dtype, T => Some(of::<T>), else None)
}

fn whole_power_of(dtype: DType) -> Option<ParametricLoop> {
    fn of<T: Real>(parameters: [f64; 2], x: &[u8], out: &mut [u8]) {
        let exponent = exponent(parameters);
        map(x, out, |x: T| power(x, exponent));
    }
    with_integer!(dtype, T => Some(of::<T>), else None)
}

fn is_infinite(dtype: DType) -> Option<ParametricLoop> {
    fn of<T: Real>([above, below]: [f64; 2], x: &[u8], out: &mut [u8]) {
        let (above, below) = (above != 0.0, below != 0.0);
        map(x, out, |x: T| {
            Bool::from((above && x.same(T::HIGHEST)) || (below && x.same(T::LOWEST)))
        });
    }
    with_floating!(dtype, T => Some(of::<T>), else None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_exponents_survive_as_parameters() {
        for n in [0, 1, -1, 7, -300, i64::MAX, i64::MIN, 1 << 32, -(1 << 32)] {
            assert_eq!(exponent(whole(n)), n);
        }
    }
}
