//! Arithmetic on scalars.
//!
//! Integers wrap around, floats follow IEEE 754; only a divisor of zero is an error. Some
//! operations have two names because the original gave floats their own, and kernels of functions
//! marked synchronous a suffix.

use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{Error, Value};

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt.add.i32", add::<i32>)
        .add("tfrt.add.i64", add::<i64>)
        .add("tfrt.add.f32", add::<f32>)
        .add("tfrt.add.f64", add::<f64>)
        .add("tfrt.add_s.i32", add::<i32>)
        .add("tfrt.add_s.i64", add::<i64>)
        .add("tfrt.minus.i32", minus::<i32>)
        .add("tfrt.minus.i64", minus::<i64>)
        .add("tfrt.mul.i32", multiply::<i32>)
        .add("tfrt.mul.i64", multiply::<i64>)
        .add("tfrt.mul_s.i32", multiply::<i32>)
        .add("tfrt.mul_s.i64", multiply::<i64>)
        .add("tfrt.multiply.f32", multiply::<f32>)
        .add("tfrt.multiply.f64", multiply::<f64>)
        .add("tfrt.div.i32", divide_with_remainder::<i32>)
        .add("tfrt.div.i64", divide_with_remainder::<i64>)
        .add("tfrt.div.f32", divide::<f32>)
        .add("tfrt.div.f64", divide::<f64>);
}

/// A scalar type with arithmetic.
pub(crate) trait Number: Value + Copy + PartialOrd {
    /// The number 0.
    const ZERO: Self;

    /// Returns the sum, wrapped around.
    fn plus(self, other: Self) -> Self;
    /// Returns the difference, wrapped around.
    fn minus(self, other: Self) -> Self;
    /// Returns the product, wrapped around.
    fn times(self, other: Self) -> Self;
    /// Returns the quotient; of integers, rounded towards zero and wrapped around. `other` is not zero.
    fn over(self, other: Self) -> Self;
    /// Returns the remainder of a division, with the sign of `self`. `other` is not zero.
    fn modulo(self, other: Self) -> Self;
}

/// `integers!(i32)` implements [`Number`] for `i32` by its `wrapping_` functions.
macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Number for $type {
            const ZERO: Self = 0;

            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }

            fn over(self, other: Self) -> Self {
                self.wrapping_div(other)
            }

            fn modulo(self, other: Self) -> Self {
                self.wrapping_rem(other)
            }
        }
    )*};
}

integers!(i32, i64);

/// `floats!(f32)` implements [`Number`] for `f32` by its operators.
macro_rules! floats {
    ($($type:ty),*) => {$(
        impl Number for $type {
            const ZERO: Self = 0.0;

            fn plus(self, other: Self) -> Self {
                self + other
            }

            fn minus(self, other: Self) -> Self {
                self - other
            }

            fn times(self, other: Self) -> Self {
                self * other
            }

            fn over(self, other: Self) -> Self {
                self / other
            }

            fn modulo(self, other: Self) -> Self {
                self % other
            }
        }
    )*};
}

floats!(f32, f64);

/// `%c = tfrt.add.<t> %a, %b`
pub(crate) fn add<T: Number>(a: T, b: T) -> T {
    a.plus(b)
}

/// `%c = "tfrt.minus.<t>"(%a, %b)`
fn minus<T: Number>(a: T, b: T) -> T {
    a.minus(b)
}

/// `%c = tfrt.mul.<t> %a, %b`
fn multiply<T: Number>(a: T, b: T) -> T {
    a.times(b)
}

/// `%q, %r = tfrt.div.<t> %a, %b`
fn divide_with_remainder<T: Number>(a: T, b: T) -> Result<(T, T), Error> {
    if b == T::ZERO {
        return Err(Error::unknown("Divide by zero"));
    }
    Ok((a.over(b), a.modulo(b)))
}

/// `%c = "tfrt.div.<t>"(%a, %b)` of floats
fn divide<T: Number>(a: T, b: T) -> Result<T, Error> {
    if b == T::ZERO {
        return Err(Error::unknown("Divide by zero"));
    }
    Ok(a.over(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_wrap_around() {
        assert_eq!(add(i32::MAX, 1), i32::MIN);
        assert_eq!(minus(i64::MIN, 1), i64::MAX);
        assert_eq!(multiply(i32::MIN, -1), i32::MIN);
        assert_eq!(divide_with_remainder(i32::MIN, -1).unwrap(), (i32::MIN, 0));
    }

    #[test]
    fn quotients_are_rounded_towards_zero() {
        assert_eq!(divide_with_remainder(-7, 2).unwrap(), (-3, -1));
        assert_eq!(divide_with_remainder(7i64, -2).unwrap(), (-3, 1));
    }

    #[test]
    fn zero_divisor_is_an_error() {
        let message = "Divide by zero";
        assert_eq!(divide_with_remainder(1, 0).unwrap_err().message(), message);
        assert_eq!(divide(1.0, -0.0).unwrap_err().message(), message);
        assert_eq!(divide(1.0f32, 4.0).unwrap(), 0.25);
    }
}
