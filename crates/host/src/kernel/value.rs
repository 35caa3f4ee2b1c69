//! Rust types that may sit in a register beside those of `tfrt_async`, with their MLIR names.

use std::fmt;

use tfrt_async::{InPlace, Value};

/// The bits of an IEEE 754 half-precision number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct F16(pub u16);

/// The bits of a bfloat16 number: the upper half of an `f32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct BF16(pub u16);

/// A complex number.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Complex<T> {
    /// The real part.
    pub real: T,
    /// The imaginary part.
    pub imaginary: T,
}

/// `R+Ii`, both parts with six decimals.
impl<T: fmt::Display> fmt::Display for Complex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}+{:.6}i", self.real, self.imaginary)
    }
}

impl Value for F16 {
    const NAME: &'static str = "f16";
    type Storage = InPlace;
}

impl Value for BF16 {
    const NAME: &'static str = "bf16";
    type Storage = InPlace;
}

impl Value for Complex<f32> {
    const NAME: &'static str = "complex<f32>";
    type Storage = InPlace;
}

impl Value for Complex<f64> {
    const NAME: &'static str = "complex<f64>";
    type Storage = InPlace;
}
