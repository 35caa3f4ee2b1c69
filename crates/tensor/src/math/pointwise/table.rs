//! The innermost loops: each runs a function for a type of elements, over as many elements of each operand as of the
//! result.
//!
//! Loops see bytes, so that whoever calls them is compiled once. They are made for the functions in [`formulas`](super::formulas)
//! by family, which says for which types:
//!
//! | Family | Types |
//! | --- | --- |
//! | `any` | all, by their size |
//! | `numbers` | integers, `f32`, `f64`, complex numbers; integers that differ in sign alone share a loop |
//! | `signed_numbers` | integers, `f32`, `f64`, complex numbers |
//! | `reals` | integers, `f32`, `f64` |
//! | `floats`, `exact_floats`, `library_floats` | `f32`, `f64` |
//! | `powers` | integers, `f32`, `f64` |
//! | `bits`, `unsigned` | integers; those that differ in sign alone share a loop; those without sign |
//! | `truth`, `equalities` | truth values; numbers but complex ones, and truth values |
//!
//! `f16` and `bf16` have loops of their own only where these look at bits; else [`PointwiseProgram`](super::PointwiseProgram) takes them
//! through `f32`. Loops over floats are compiled for each instruction set, but for those that call the system's library
//! for each element; loops over integers once: memory is what they wait for.

use super::formulas::{Binary, Unary};
use crate::math::number::Real;
use crate::math::vectorized;
use crate::{BF16, Bool, Complex, DType, Element, F16, from_bytes, from_bytes_mut, with_real};

/// A loop over a function of one element.
pub(super) type UnaryLoop = fn(&[u8], &mut [u8]);
/// A loop over a function of one element with parameters.
pub(super) type ParametricLoop = fn([f64; 2], &[u8], &mut [u8]);
/// A loop over a function of two elements.
pub(super) type BinaryLoop = fn(&[u8], &[u8], &mut [u8]);
/// A loop over conditions and the elements that they choose from.
pub(super) type SelectLoop = fn(&[u8], [&[u8]; 2], &mut [u8]);

/// Casts the bytes of a loop's operand to elements.
#[inline(always)]
pub(super) fn seen<T: Element>(bytes: &[u8]) -> &[T] {
    from_bytes(bytes).expect(ALIGNED)
}

/// Casts the bytes of a loop's result to elements.
#[inline(always)]
pub(super) fn seen_mut<T: Element>(bytes: &mut [u8]) -> &mut [T] {
    from_bytes_mut(bytes).expect(ALIGNED)
}

const ALIGNED: &str = "tensors and blocks hold whole elements where these may lie";

/// Calculates a function of each element.
#[inline(always)]
pub(super) fn map<T: Element, U: Element>(x: &[u8], out: &mut [u8], function: impl Fn(T) -> U) {
    for (out, x) in seen_mut(out).iter_mut().zip(seen(x)) {
        *out = function(*x);
    }
}

fn plain_unary<F: Unary<T>, T: Element>(x: &[u8], out: &mut [u8]) {
    map(x, out, F::apply);
}

fn fast_unary<F: Unary<T>, T: Element>(x: &[u8], out: &mut [u8]) {
    vectorized(
        #[inline(always)]
        || map(x, out, F::apply),
    );
}

#[inline(always)]
fn zip<F: Binary<T>, T: Element>(x: &[u8], y: &[u8], out: &mut [u8]) {
    let pairs = seen(x).iter().zip(seen(y));
    for (out, (x, y)) in seen_mut(out).iter_mut().zip(pairs) {
        *out = F::apply(*x, *y);
    }
}

fn plain_binary<F: Binary<T>, T: Element>(x: &[u8], y: &[u8], out: &mut [u8]) {
    zip::<F, T>(x, y, out);
}

fn fast_binary<F: Binary<T>, T: Element>(x: &[u8], y: &[u8], out: &mut [u8]) {
    vectorized(
        #[inline(always)]
        || zip::<F, T>(x, y, out),
    );
}

/// `family!(Unary UnaryLoop plain_unary truth { I1 => plain_unary Bool; })` declares the function `truth`, which finds the
/// loop over a function for a type. For few elements the choice of an instruction set takes longer than what it saves.
macro_rules! family {
    ($trait:ident $loop:ident $few:ident $($name:ident { $($($dtype:ident)|+ => $how:ident $type:ty;)* })*) => {$(
        pub(in crate::math::pointwise) fn $name<F: $($trait<$type> +)*>(dtype: DType, are_few: bool) -> Option<$loop> {
            match dtype {
                $($(DType::$dtype)|+ => Some(if are_few { $few::<F, $type> } else { $how::<F, $type> }),)*
                _ => None,
            }
        }
    )*};
}

pub(super) mod unary {
    //! Families of functions of one element.

    use super::*;

    family! { Unary UnaryLoop plain_unary
        numbers {
            Ui8 | I8 => plain_unary u8; Ui16 | I16 => plain_unary u16; Ui32 | I32 => plain_unary u32;
            Ui64 | I64 => plain_unary u64; F32 => fast_unary f32; F64 => fast_unary f64;
            F16 => plain_unary F16; Bf16 => plain_unary BF16;
            Complex64 => plain_unary Complex<f32>; Complex128 => plain_unary Complex<f64>;
        }
        squares {
            Ui8 | I8 => plain_unary u8; Ui16 | I16 => plain_unary u16; Ui32 | I32 => plain_unary u32;
            Ui64 | I64 => plain_unary u64; F32 => fast_unary f32; F64 => fast_unary f64;
            Complex64 => plain_unary Complex<f32>; Complex128 => plain_unary Complex<f64>;
        }
        magnitudes {
            Ui8 => plain_unary u8; Ui16 => plain_unary u16; Ui32 => plain_unary u32; Ui64 => plain_unary u64;
            I8 => plain_unary i8; I16 => plain_unary i16; I32 => plain_unary i32; I64 => plain_unary i64;
            F32 => fast_unary f32; F64 => fast_unary f64; F16 => plain_unary F16; Bf16 => plain_unary BF16;
        }
        reals {
            Ui8 => plain_unary u8; Ui16 => plain_unary u16; Ui32 => plain_unary u32; Ui64 => plain_unary u64;
            I8 => plain_unary i8; I16 => plain_unary i16; I32 => plain_unary i32; I64 => plain_unary i64;
            F32 => fast_unary f32; F64 => fast_unary f64;
        }
        exact_floats { F32 => fast_unary f32; F64 => fast_unary f64; }
        floats { F32 => fast_unary f32; F64 => plain_unary f64; }
        library_floats { F32 => plain_unary f32; F64 => plain_unary f64; }
        bits {
            Ui8 | I8 => plain_unary u8; Ui16 | I16 => plain_unary u16; Ui32 | I32 => plain_unary u32;
            Ui64 | I64 => plain_unary u64;
        }
        truth { I1 => plain_unary Bool; }
    }

    #[allow(clippy::extra_unused_type_parameters, reason = "as all families")]
    pub(in crate::math::pointwise) fn any<F>(dtype: DType, _: bool) -> Option<UnaryLoop> {
        dtype.size_bytes().map(|_| copy as UnaryLoop)
    }

    fn copy(x: &[u8], out: &mut [u8]) {
        out.copy_from_slice(x);
    }
}

pub(super) mod binary {
    //! Families of functions of two elements.

    use super::*;

    family! { Binary BinaryLoop plain_binary
        numbers {
            Ui8 | I8 => plain_binary u8; Ui16 | I16 => plain_binary u16; Ui32 | I32 => plain_binary u32;
            Ui64 | I64 => plain_binary u64; F32 => fast_binary f32; F64 => fast_binary f64;
            Complex64 => plain_binary Complex<f32>; Complex128 => plain_binary Complex<f64>;
        }
        signed_numbers {
            Ui8 => plain_binary u8; Ui16 => plain_binary u16; Ui32 => plain_binary u32; Ui64 => plain_binary u64;
            I8 => plain_binary i8; I16 => plain_binary i16; I32 => plain_binary i32; I64 => plain_binary i64;
            F32 => fast_binary f32; F64 => fast_binary f64;
            Complex64 => plain_binary Complex<f32>; Complex128 => plain_binary Complex<f64>;
        }
        reals {
            Ui8 => plain_binary u8; Ui16 => plain_binary u16; Ui32 => plain_binary u32; Ui64 => plain_binary u64;
            I8 => plain_binary i8; I16 => plain_binary i16; I32 => plain_binary i32; I64 => plain_binary i64;
            F32 => fast_binary f32; F64 => fast_binary f64;
        }
        library_reals {
            Ui8 => plain_binary u8; Ui16 => plain_binary u16; Ui32 => plain_binary u32; Ui64 => plain_binary u64;
            I8 => plain_binary i8; I16 => plain_binary i16; I32 => plain_binary i32; I64 => plain_binary i64;
            F32 => plain_binary f32; F64 => plain_binary f64;
        }
        equalities {
            Ui8 | I8 => plain_binary u8; Ui16 | I16 => plain_binary u16; Ui32 | I32 => plain_binary u32;
            Ui64 | I64 => plain_binary u64; F32 => fast_binary f32; F64 => fast_binary f64; I1 => plain_binary Bool;
        }
        library_floats { F32 => plain_binary f32; F64 => plain_binary f64; }
        powers {
            Ui8 => plain_binary u8; Ui16 => plain_binary u16; Ui32 => plain_binary u32; Ui64 => plain_binary u64;
            I8 => plain_binary i8; I16 => plain_binary i16; I32 => plain_binary i32; I64 => plain_binary i64;
            F32 => plain_binary f32; F64 => plain_binary f64;
        }
        unsigned {
            Ui8 => plain_binary u8; Ui16 => plain_binary u16; Ui32 => plain_binary u32; Ui64 => plain_binary u64;
        }
        bits {
            Ui8 | I8 => plain_binary u8; Ui16 | I16 => plain_binary u16; Ui32 | I32 => plain_binary u32;
            Ui64 | I64 => plain_binary u64;
        }
        truth { I1 => plain_binary Bool; }
    }
}

/// Expands `body` for a Rust type of elements of so many bytes, which stands for all types of that size.
macro_rules! with_size {
    ($size:expr, $T:ident => $body:expr, else $other:expr) => {
        match $size {
            Some(1) => {
                type $T = u8;
                $body
            }
            Some(2) => {
                type $T = u16;
                $body
            }
            Some(4) => {
                type $T = u32;
                $body
            }
            Some(8) => {
                type $T = u64;
                $body
            }
            Some(16) => {
                type $T = crate::Complex<f64>;
                $body
            }
            _ => $other,
        }
    };
}
pub(super) use with_size;

/// Returns the loop that takes elements of a type from the first list where a condition is true, else from the
/// second.
pub(super) fn select(dtype: DType) -> Option<SelectLoop> {
    with_size!(dtype.size_bytes(), T => Some(select_of::<T>), else None)
}

fn select_of<T: Element>(condition: &[u8], [x, y]: [&[u8]; 2], out: &mut [u8]) {
    vectorized(
        #[inline(always)]
        || {
            let pairs = seen::<T>(x).iter().zip(seen::<T>(y));
            let conditions = seen::<Bool>(condition).iter();
            for (out, (condition, (x, y))) in seen_mut(out).iter_mut().zip(conditions.zip(pairs)) {
                *out = if (*condition).into() { *x } else { *y };
            }
        },
    );
}

/// Returns whether [`fill`] writes elements of a type.
pub(super) fn has_numbers(dtype: DType) -> bool {
    dtype == DType::I1 || with_real!(dtype, T => T::DTYPE == dtype, else false)
}

/// Fills `out` with a number, rounded to a type; a truth value is true unless the number is 0. Returns false if the
/// type has no real numbers or truth values.
pub(super) fn fill(dtype: DType, value: f64, out: &mut [u8]) -> bool {
    if dtype == DType::I1 {
        seen_mut::<Bool>(out).fill((value != 0.0).into());
        return true;
    }
    with_real!(dtype, T => {
        seen_mut::<T>(out).fill(T::from_f64(value));
        true
    }, else false)
}

/// Fills `out` with one element.
pub(super) fn repeat(element: &[u8], out: &mut [u8]) {
    with_size!(Some(element.len()), T => {
        if let Some(one) = seen::<T>(element).first() {
            seen_mut::<T>(out).fill(*one);
        }
    }, else out.chunks_exact_mut(element.len().max(1)).for_each(|out| out.copy_from_slice(element)));
}
