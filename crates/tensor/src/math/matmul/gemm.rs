//! Products of two matrices: of floats by the crates `gemm-f32` and `gemm-f64`, of complex numbers by products of their
//! parts, of [`halves`](super::halves) and [`integers`](super::integers) by loops of our own.

use std::borrow::Cow;

use super::{Scale, gemv};
use crate::math::number::{Number, Real};
use crate::{Complex, Element, from_bytes, from_bytes_mut, to_bytes, to_bytes_mut};

/// A matrix in a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix<'a, T> {
    // Invariant: if there are rows and columns, the last of both is in the slice.
    pub(super) elements: &'a [T],
    pub(super) extents: [usize; 2],
    pub(super) strides: [usize; 2],
}

impl<'a, T> Matrix<'a, T> {
    /// Wraps a matrix that begins at `start`.
    ///
    /// # Panics
    ///
    /// If it leads out of the slice.
    pub(crate) fn new(
        elements: &'a [T],
        start: usize,
        extents: [usize; 2],
        strides: [usize; 2],
    ) -> Self {
        if extents.contains(&0) {
            let elements = &[];
            return Matrix {
                elements,
                extents,
                strides,
            };
        }
        let elements = &elements[start..];
        let last = extents
            .iter()
            .zip(strides)
            .try_fold(0_usize, |last, (extent, stride)| {
                last.checked_add((extent - 1).checked_mul(stride)?)
            });
        assert!(
            last.is_some_and(|last| last < elements.len()),
            "a matrix lies in its elements"
        );
        Matrix {
            elements,
            extents,
            strides,
        }
    }
}

/// A type of elements whose matrices can be multiplied.
pub trait MatmulElement: Number + Sealed {}

impl<T: Number + Sealed> MatmulElement for T {}

/// Multiplication of matrices of one type of elements.
pub trait Sealed: Copy {
    /// Element type of a right factor that is kept for many products: `f32` for halves, the element itself for all
    /// others. The products are the same, bit for bit.
    type RhsElement: Element;

    /// Returns a number as an element.
    fn from_number(value: f64) -> Self;

    /// Returns the elements of a right factor, to be kept.
    fn widen_rhs(elements: Cow<'_, [Self]>) -> Cow<'_, [Self::RhsElement]>;

    /// Returns the product with a factor that is kept.
    fn times_widened(self, factor: Self::RhsElement) -> Self;

    /// Writes the product to `out`, which has an element at least.
    ///
    /// # Panics
    ///
    /// If the extents don't fit.
    #[expect(private_interfaces, reason = "nobody else calls it")]
    fn multiply(scale: Scale<Self>, a: Matrix<'_, Self>, b: Matrix<'_, Self>, out: Rows<'_, Self>);

    /// Calculates [`multiply`](Self::multiply) by a widened factor.
    ///
    /// # Panics
    ///
    /// If the extents don't fit.
    #[expect(private_interfaces, reason = "nobody else calls it")]
    fn multiply_widened(
        scale: Scale<Self>,
        a: Matrix<'_, Self>,
        b: Matrix<'_, Self::RhsElement>,
        out: Rows<'_, Self>,
    );
}

/// `rhs_as_it_is!()` stands for the items of [`Sealed`] of elements that are kept as they are: `type Kept = Self; fn keep(..)
/// { elements } ..`.
macro_rules! rhs_as_it_is {
    () => {
        type RhsElement = Self;

        fn widen_rhs(elements: std::borrow::Cow<'_, [Self]>) -> std::borrow::Cow<'_, [Self]> {
            elements
        }

        #[inline(always)]
        fn times_widened(self, factor: Self) -> Self {
            $crate::math::number::Number::times(self, factor)
        }

        fn multiply_widened(
            scale: Scale<Self>,
            a: Matrix<'_, Self>,
            b: Matrix<'_, Self>,
            out: Rows<'_, Self>,
        ) {
            Self::multiply(scale, a, b, out);
        }
    };
}

pub(super) use rhs_as_it_is;

/// Rows in a slice that may be written.
#[derive(Debug)]
pub(crate) struct Rows<'a, T> {
    // Invariant: if there are rows and columns, the last of both is in the slice. A row is not longer than
    // the stride.
    pub(super) elements: &'a mut [T],
    pub(super) extents: [usize; 2],
    pub(super) stride: usize,
}

impl<'a, T> Rows<'a, T> {
    /// Wraps rows, each of which begins `stride` elements behind the one before.
    ///
    /// # Panics
    ///
    /// If they lead out of the slice, or overlap.
    pub(crate) fn new(elements: &'a mut [T], extents: [usize; 2], stride: usize) -> Self {
        let [n_rows, n_columns] = extents;
        let last = |before: usize| before.checked_mul(stride)?.checked_add(n_columns);
        let fits = n_rows.checked_sub(1).is_none_or(|before| {
            n_columns == 0 || last(before).is_some_and(|end| end <= elements.len())
        });
        assert!(fits && n_columns <= stride, "rows lie in their elements");
        Rows {
            elements,
            extents,
            stride,
        }
    }
}

impl<T: Number> Rows<'_, T> {
    /// Multiplies each element by a factor. If the factor is 0, the old elements are not read.
    pub(super) fn scale(&mut self, factor: T) {
        let [n_rows, n_columns] = self.extents;
        for row in self.elements.chunks_mut(self.stride).take(n_rows) {
            let row = &mut row[..n_columns];
            match factor {
                factor if factor == T::ONE => {}
                factor if factor == <T as Element>::ZERO => row.fill(factor),
                factor => row.iter_mut().for_each(|x| *x = factor.times(*x)),
            }
        }
    }
}

/// Writes the product of `a` and `b` to `out`.
///
/// # Panics
///
/// If the extents don't fit.
pub(crate) fn multiply<T: MatmulElement>(
    scale: Scale<T>,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    out: Rows<'_, T>,
) {
    let [m, _, n] = product_extents(&a, &b, &out);
    if m > 0 && n > 0 {
        T::multiply(scale, a, b, out);
    }
}

/// Calculates [`multiply`] by a widened factor.
///
/// # Panics
///
/// If the extents don't fit.
pub(crate) fn multiply_widened<T: MatmulElement>(
    scale: Scale<T>,
    a: Matrix<'_, T>,
    b: Matrix<'_, T::RhsElement>,
    out: Rows<'_, T>,
) {
    let [m, _, n] = product_extents(&a, &b, &out);
    if m > 0 && n > 0 {
        T::multiply_widened(scale, a, b, out);
    }
}

/// Rows, depth and columns of a product.
///
/// # Panics
///
/// If the extents don't fit.
fn product_extents<T, R>(a: &Matrix<'_, T>, b: &Matrix<'_, R>, out: &Rows<'_, T>) -> [usize; 3] {
    let ([m, k], [b_k, n]) = (a.extents, b.extents);
    assert!(k == b_k && out.extents == [m, n], "the extents fit");
    [m, k, n]
}

/// Element type whose products a gemm crate calculates: matrices are given by address, and by strides of rows and
/// columns.
trait Foreign: MatmulElement {
    /// Adds `of_product` times the product of `a` and `b` to `of_result` times the result, which is not read if
    /// `of_result` is 0.
    ///
    /// # Safety
    ///
    /// All elements of the factors lie at their addresses and are initialised; those of the result may be written,
    /// are not among the factors', and are initialised if they are read.
    unsafe fn product(
        extents: [usize; 3],
        scale: Scale<Self>,
        a: (*const Self, [usize; 2]),
        b: (*const Self, [usize; 2]),
        out: (*mut Self, [usize; 2]),
    );
}

/// Returns a stride as the gemm crates take it. A stride larger than memory belongs to a single row or column, and is
/// never taken.
fn signed(stride: usize) -> isize {
    isize::try_from(stride).unwrap_or(0)
}

macro_rules! foreign {
    ($($type:ty => $function:expr;)*) => {$(
        impl Foreign for $type {
            unsafe fn product(
                [m, k, n]: [usize; 3],
                scale: Scale<$type>,
                (a, a_strides): (*const $type, [usize; 2]),
                (b, b_strides): (*const $type, [usize; 2]),
                (out, out_strides): (*mut $type, [usize; 2]),
            ) {
                let reads_out = scale.of_result != 0.0;
                let [a_row, a_column] = a_strides.map(signed);
                let [b_row, b_column] = b_strides.map(signed);
                let [out_row, out_column] = out_strides.map(signed);
                let Scale { of_product, of_result } = scale;
                let serial = gemm_common::Parallelism::None;
                // The crate's results lie in columns: rows are the columns of the turned product, of the turned factors.
                if out_column < out_row {
                    // SAFETY: the caller's promise; without parallelism nothing outlives the call.
                    unsafe {
                        $function(
                            n, m, k, out, out_row, out_column, reads_out, b, b_row, b_column, a, a_row, a_column,
                            of_result, of_product, false, false, false, serial,
                        );
                    }
                } else {
                    // SAFETY: as above.
                    unsafe {
                        $function(
                            m, n, k, out, out_column, out_row, reads_out, a, a_column, a_row, b, b_column, b_row,
                            of_result, of_product, false, false, false, serial,
                        );
                    }
                }
            }
        }

        #[expect(private_interfaces, reason = "nobody else calls it")]
        impl Sealed for $type {
            rhs_as_it_is!();

            fn from_number(value: f64) -> Self {
                Real::from_f64(value)
            }

            fn multiply(
                scale: Scale<$type>,
                a: Matrix<'_, $type>,
                b: Matrix<'_, $type>,
                mut out: Rows<'_, $type>,
            ) {
                let extents = product_extents(&a, &b, &out);
                if gemv::multiply(scale, a, b, &mut out) {
                    return;
                }
                let result = (out.elements.as_mut_ptr(), [out.stride, 1]);
                // SAFETY: the matrices lie in their slices, as `Matrix::new` has checked, and one without elements is
                // not read; `out` has rows of its columns in its slice, as `Rows::new` has checked; it is borrowed for
                // writing, so it overlaps neither. All are initialised, and of extents that fit, as was just checked.
                unsafe {
                    <$type>::product(
                        extents,
                        scale,
                        (a.elements.as_ptr(), a.strides),
                        (b.elements.as_ptr(), b.strides),
                        result,
                    );
                }
            }
        }
    )*};
}

foreign! {
    f32 => gemm_f32::gemm::f32::get_gemm_fn();
    f64 => gemm_f64::gemm::f64::get_gemm_fn();
}

macro_rules! complex {
    ($($type:ty),*) => {$(
        #[expect(private_interfaces, reason = "nobody else calls it")]
        impl Sealed for Complex<$type> {
            rhs_as_it_is!();

            fn from_number(value: f64) -> Self {
                Complex { real: Real::from_f64(value), imaginary: 0.0 }
            }

            fn multiply(scale: Scale<Self>, a: Matrix<'_, Self>, b: Matrix<'_, Self>, mut out: Rows<'_, Self>) {
                if !gemv::multiply(scale, a, b, &mut out) {
                    by_parts(scale, a, b, out);
                }
            }
        }
    )*};
}

complex!(f32, f64);

const PARTS: &str = "a complex number is two parts";

/// Casts complex numbers to real and imaginary parts in turn.
fn parts<T: Element>(elements: &[Complex<T>]) -> &[T]
where
    Complex<T>: Element,
{
    from_bytes(to_bytes(elements)).expect(PARTS)
}

/// Multiplies complex matrices by products of their interleaved real and imaginary parts: by four, or by eight if the
/// factor of the product is no real number.
fn by_parts<T: Foreign>(
    scale: Scale<Complex<T>>,
    a: Matrix<'_, Complex<T>>,
    b: Matrix<'_, Complex<T>>,
    mut out: Rows<'_, Complex<T>>,
) where
    Complex<T>: MatmulElement,
{
    let extents = product_extents(&a, &b, &out);
    out.scale(scale.of_result);
    let doubled = |strides: [usize; 2]| strides.map(|stride| stride.saturating_mul(2));
    let (a_strides, b_strides) = (doubled(a.strides), doubled(b.strides));
    let out_strides = doubled([out.stride, 1]);
    let (a_parts, b_parts) = (parts(a.elements).as_ptr(), parts(b.elements).as_ptr());
    let out_parts = from_bytes_mut::<T>(to_bytes_mut(out.elements));
    let out_parts = out_parts.expect(PARTS).as_mut_ptr();
    let Complex { real, imaginary } = scale.of_product;
    // For each pair of parts, 0 real and 1 imaginary: by what it is added to the real and to the imaginary part.
    let products = [
        ([0, 0], [real, imaginary]),
        ([1, 1], [real.negated(), imaginary.negated()]),
        ([0, 1], [imaginary.negated(), real]),
        ([1, 0], [imaginary.negated(), real]),
    ];
    for ([of_a, of_b], factors) in products {
        for (of_out, of_product) in factors.into_iter().enumerate() {
            if of_product == <T as Element>::ZERO {
                continue;
            }
            let scale = Scale {
                of_product,
                of_result: T::ONE,
            };
            // SAFETY: each element is a real part with an imaginary one behind it, so that the parts of one kind of a
            // matrix that lies in its slice lie twice as far apart, in the same slice; where there is no element, none is
            // read. `out` has an element, and is borrowed for writing, so it overlaps neither. All are initialised.
            unsafe {
                T::product(
                    extents,
                    scale,
                    (a_parts.wrapping_add(of_a), a_strides),
                    (b_parts.wrapping_add(of_b), b_strides),
                    (out_parts.wrapping_add(of_out), out_strides),
                );
            }
        }
    }
}
