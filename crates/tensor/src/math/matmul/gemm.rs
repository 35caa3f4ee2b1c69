//! Products of two matrices: through the crate `gemm`, or by plain loops.

use super::{Scale, thin};
use crate::math::number::{Number, Real};
use crate::math::vectorized;
use crate::{BF16, Complex, F16};

/// A matrix in a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix<'a, T> {
    // Invariant: if there are rows and columns, the last of both is in the slice.
    pub(super) elements: &'a [T],
    pub(super) extents: [usize; 2],
    pub(super) strides: [usize; 2],
}

impl<'a, T> Matrix<'a, T> {
    /// Sees a matrix that begins at `start`.
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

/// Elements of which matrices can be multiplied.
pub trait MatmulElement: Number + Sealed {}

impl<T: Number + Sealed> MatmulElement for T {}

/// How elements are multiplied.
pub trait Sealed: Sized {
    /// A number as an element.
    fn from_number(value: f64) -> Self;

    /// Writes the product to `out`.
    ///
    /// # Safety
    ///
    /// The columns of `a` are as many as the rows of `b`, the extents of `out` are the product's, and it has an element
    /// at least.
    #[expect(private_interfaces, reason = "nobody else calls it")]
    unsafe fn multiply(
        scale: Scale<Self>,
        a: Matrix<'_, Self>,
        b: Matrix<'_, Self>,
        out: Rows<'_, Self>,
    );
}

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
    /// Sees rows, of which each begins `stride` elements behind the one before.
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
    let ([m, k], [b_k, n]) = (a.extents, b.extents);
    assert!(k == b_k && out.extents == [m, n], "the extents fit");
    if m > 0 && n > 0 {
        // SAFETY: that is what was checked.
        unsafe { T::multiply(scale, a, b, out) };
    }
}

/// `by_gemm!(F16 as gemm::f16, false, ..)` multiplies matrices of `F16` by the crate `gemm`, which knows it as
/// `gemm::f16`, and has no loops for [`thin`] ones.
macro_rules! by_gemm {
    ($($type:ty as $foreign:ty, $has_loops:literal, |$x:ident| $convert:expr, |$n:ident| $number:expr;)*) => {$(
        const _: () = assert!(
            size_of::<$type>() == size_of::<$foreign>() && align_of::<$type>() == align_of::<$foreign>()
        );

        #[expect(private_interfaces, reason = "nobody else calls it")]
        impl Sealed for $type {
            fn from_number($n: f64) -> Self {
                $number
            }

            unsafe fn multiply(
                scale: Scale<$type>,
                a: Matrix<'_, $type>,
                b: Matrix<'_, $type>,
                out: Rows<'_, $type>,
            ) {
                let ([m, k], [_, n]) = (a.extents, b.extents);
                let mut out = out;
                if $has_loops && thin::multiply(scale, a, b, &mut out) {
                    return;
                }
                let convert = |$x: $type| -> $foreign { $convert };
                let reads_out = scale.of_result != <$type as crate::Element>::ZERO;
                // One that is larger than memory is that of a single row or column, and never taken.
                let stride = |stride: usize| isize::try_from(stride).unwrap_or(0);
                // SAFETY: the matrices lie in their slices, as `Matrix::new` has checked, and a matrix
                // without elements is not read; `out` has m rows of n elements in its slice, as `Rows::new`
                // has checked and the caller promises, which says of k too that both have it; it is borrowed for
                // writing, so it overlaps neither. All are initialised. The
                // foreign type has the same layout: it is the same float, or a transparent or C structure
                // of the same parts. Without parallelism nothing outlives the call.
                unsafe {
                    gemm::gemm::<$foreign>(
                        m, n, k,
                        out.elements.as_mut_ptr().cast(), 1, stride(out.stride),
                        reads_out,
                        a.elements.as_ptr().cast(), stride(a.strides[1]), stride(a.strides[0]),
                        b.elements.as_ptr().cast(), stride(b.strides[1]), stride(b.strides[0]),
                        convert(scale.of_result), convert(scale.of_product),
                        false, false, false,
                        gemm::Parallelism::None,
                    );
                }
            }
        }
    )*};
}

by_gemm! {
    f32 as f32, true, |x| x, |n| Real::from_f64(n);
    f64 as f64, true, |x| x, |n| n;
    F16 as gemm::f16, false, |x| gemm::f16::from_bits(x.0), |n| Real::from_f64(n);
    Complex<f32> as gemm::c32, true, |x| gemm::c32 { re: x.real, im: x.imaginary },
        |n| Complex { real: Real::from_f64(n), imaginary: 0.0 };
    Complex<f64> as gemm::c64, true, |x| gemm::c64 { re: x.real, im: x.imaginary },
        |n| Complex { real: n, imaginary: 0.0 };
}

/// `by_loops!(i32)` multiplies matrices of `i32` by plain loops.
macro_rules! by_loops {
    ($($type:ty),*) => {$(
        #[expect(private_interfaces, reason = "nobody else calls it")]
        impl Sealed for $type {
            fn from_number(value: f64) -> Self {
                <$type as Real>::from_f64(value)
            }

            unsafe fn multiply(
                scale: Scale<$type>,
                a: Matrix<'_, $type>,
                b: Matrix<'_, $type>,
                out: Rows<'_, $type>,
            ) {
                loops(scale, a, b, out);
            }
        }
    )*};
}

by_loops!(BF16, u8, u16, u32, u64, i8, i16, i32, i64);

/// Adds up multiples of the right factor's rows, in the wide type: each row of the result in turn.
fn loops<T: Number>(scale: Scale<T>, a: Matrix<'_, T>, b: Matrix<'_, T>, out: Rows<'_, T>) {
    let ([_, k], [_, n]) = (a.extents, b.extents);
    let mut sums = vec![<T::Wide as crate::Element>::ZERO; n];
    for (row, out) in out
        .elements
        .chunks_mut(out.stride)
        .take(out.extents[0])
        .enumerate()
    {
        let out = &mut out[..n];
        sums.fill(<T::Wide as crate::Element>::ZERO);
        for depth in 0..k {
            let factor = a.elements[row * a.strides[0] + depth * a.strides[1]].widened();
            let b_row = &b.elements[depth * b.strides[0]..];
            vectorized(
                #[inline(always)]
                || match b.strides[1] {
                    1 => {
                        for (sum, x) in sums.iter_mut().zip(b_row) {
                            *sum = sum.plus(factor.times(x.widened()));
                        }
                    }
                    stride => {
                        for (column, sum) in sums.iter_mut().enumerate() {
                            *sum = sum.plus(factor.times(b_row[column * stride].widened()));
                        }
                    }
                },
            );
        }
        let (of_product, of_result) = (scale.of_product.widened(), scale.of_result.widened());
        let reads_out = scale.of_result != <T as crate::Element>::ZERO;
        for (out, sum) in out.iter_mut().zip(&sums) {
            let product = of_product.times(*sum);
            *out = match reads_out {
                true => T::narrowed(product.plus(of_result.times(out.widened()))),
                false => T::narrowed(product),
            };
        }
    }
}
