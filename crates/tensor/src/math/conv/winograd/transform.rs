//! The transforms of images, filters and results: polynomial products by evaluation at some points.
//!
//! An output `y[i] = sum of d[i + j] g[j]` of three taps is found from values of polynomials at points `p`: the
//! filter's `g[0] + g[1] p + g[2] p²`, divided by the product of the differences from all other points; the
//! patch's, with the coefficients of the polynomial that is 0 at the other points; and the last point is infinity
//! (Winograd, Arithmetic Complexity of Computations, 1980; Lavin and Gray, arXiv 1509.09308).
//!
//! | | Outputs | Points | Products for each output, of 3 | Error beside that of a direct sum |
//! | --- | --- | --- | --- | --- |
//! | [`TwoOutputs`] | 2 | 0, ±1, ∞ | 2 | the same |
//! | [`FourOutputs`] | 4 | 0, ±5/8, ±3/2, ∞ | 1.5 | twice |
//!
//! In two dimensions both are squared. The points of `FourOutputs` lose least of those tried: with 0, ±1, ±2, ∞ the error is
//! five times that of a direct sum. All factors of images and results are exact floats.

use pulp::Simd;

use crate::math::packed_gemm::multiply_add;

/// A Winograd transform of patches of `PATCH` elements in a row, for `TILE` outputs.
pub(super) trait Transform<const PATCH: usize, const TILE: usize>: Copy {
    /// Elements of a transformed line to check: if an element of the patch is not finite, or large, one of these is,
    /// too.
    const CHECKED: [bool; PATCH];

    /// Transforms a line of an image.
    fn patch<S: Simd>(simd: S, line: [S::f32s; PATCH]) -> [S::f32s; PATCH];

    /// Transforms a line of products.
    fn outputs<S: Simd>(simd: S, line: [S::f32s; PATCH]) -> [S::f32s; TILE];

    /// Transforms a line of a filter.
    fn filter(line: [f64; 3]) -> [f64; PATCH];

    /// Returns the line of the filter from the transformed line.
    fn filter_back(line: [f32; PATCH]) -> [f32; 3];
}

/// F(2, 3): two outputs from four elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct TwoOutputs;

impl Transform<4, 2> for TwoOutputs {
    const CHECKED: [bool; 4] = [true; 4];

    #[inline(always)]
    fn patch<S: Simd>(simd: S, [d0, d1, d2, d3]: [S::f32s; 4]) -> [S::f32s; 4] {
        [
            simd.sub_f32s(d0, d2),
            simd.add_f32s(d1, d2),
            simd.sub_f32s(d2, d1),
            simd.sub_f32s(d1, d3),
        ]
    }

    #[inline(always)]
    fn outputs<S: Simd>(simd: S, [m0, m1, m2, m3]: [S::f32s; 4]) -> [S::f32s; 2] {
        [
            simd.add_f32s(m0, simd.add_f32s(m1, m2)),
            simd.sub_f32s(simd.sub_f32s(m1, m2), m3),
        ]
    }

    #[inline(always)]
    fn filter([g0, g1, g2]: [f64; 3]) -> [f64; 4] {
        [g0, (g0 + g1 + g2) / 2.0, (g0 - g1 + g2) / 2.0, g2]
    }

    fn filter_back([u0, u1, u2, u3]: [f32; 4]) -> [f32; 3] {
        [u0, u1 - u2, u3]
    }
}

/// F(4, 3): four outputs from six elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct FourOutputs;

/// The points of [`FourOutputs`], and their powers.
const A: f32 = 0.625;
const A_2: f32 = A * A;
const A_3: f32 = A * A * A;
const B: f32 = 1.5;
const B_2: f32 = B * B;
const B_3: f32 = B * B * B;

/// Products of the differences of a point from all others, among 0, ±a and ±b.
const OF_0: f64 = (A_2 * B_2) as f64;
const OF_A: f64 = 2.0 * (A_2 * (A_2 - B_2)) as f64;
const OF_B: f64 = 2.0 * (B_2 * (B_2 - A_2)) as f64;

impl Transform<6, 4> for FourOutputs {
    const CHECKED: [bool; 6] = [true, true, true, false, false, true];

    #[inline(always)]
    fn patch<S: Simd>(simd: S, [d0, d1, d2, d3, d4, d5]: [S::f32s; 6]) -> [S::f32s; 6] {
        let times = |factor: f32, x, y| multiply_add(simd, simd.splat_f32s(factor), x, y);
        // For each pair of points, what is even in them and what is odd.
        let (even_a, odd_a) = (times(-B_2, d2, d4), times(-B_2, d1, d3));
        let (even_b, odd_b) = (times(-A_2, d2, d4), times(-A_2, d1, d3));
        [
            times(A_2 * B_2, d0, times(-A_2 - B_2, d2, d4)),
            times(A, odd_a, even_a),
            times(-A, odd_a, even_a),
            times(B, odd_b, even_b),
            times(-B, odd_b, even_b),
            times(A_2 * B_2, d1, times(-A_2 - B_2, d3, d5)),
        ]
    }

    #[inline(always)]
    fn outputs<S: Simd>(simd: S, [m0, m1, m2, m3, m4, m5]: [S::f32s; 6]) -> [S::f32s; 4] {
        let times = |factor: f32, x, y| multiply_add(simd, simd.splat_f32s(factor), x, y);
        let (even_a, odd_a) = (simd.add_f32s(m1, m2), simd.sub_f32s(m1, m2));
        let (even_b, odd_b) = (simd.add_f32s(m3, m4), simd.sub_f32s(m3, m4));
        let scaled = |factor: f32, x| simd.mul_f32s(simd.splat_f32s(factor), x);
        [
            simd.add_f32s(m0, simd.add_f32s(even_a, even_b)),
            times(A, odd_a, scaled(B, odd_b)),
            times(A_2, even_a, scaled(B_2, even_b)),
            times(A_3, odd_a, times(B_3, odd_b, m5)),
        ]
    }

    #[inline(always)]
    fn filter([g0, g1, g2]: [f64; 3]) -> [f64; 6] {
        let at = |point: f32, of: f64| {
            let point = f64::from(point);
            (g0 + point * (g1 + point * g2)) / of
        };
        [
            g0 / OF_0,
            at(A, OF_A),
            at(-A, OF_A),
            at(B, OF_B),
            at(-B, OF_B),
            g2,
        ]
    }

    fn filter_back([u0, u1, u2, _, _, u5]: [f32; 6]) -> [f32; 3] {
        #[allow(clippy::cast_possible_truncation, reason = "they are small")]
        const FACTORS: [f32; 2] = [OF_0 as f32, (OF_A / (2.0 * A as f64)) as f32];
        [u0 * FACTORS[0], (u1 - u2) * FACTORS[1], u5]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pulp::Scalar128b;

    /// Convolves one line.
    fn line<T: Transform<PATCH, TILE>, const PATCH: usize, const TILE: usize>(_: T) {
        let d: [f32; PATCH] = std::array::from_fn(|index| (index * 7 % 5) as f32 - 1.5);
        let g = [3.0_f32, -2.0, 0.75];
        let u = T::filter(g.map(f64::from));
        let v = T::patch(Scalar128b, d.map(|d| Scalar128b.splat_f32s(d)));
        let products: [_; PATCH] = std::array::from_fn(|index| {
            Scalar128b.mul_f32s(Scalar128b.splat_f32s(u[index] as f32), v[index])
        });
        for (index, found) in T::outputs(Scalar128b, products).into_iter().enumerate() {
            let found: [f32; 4] = bytemuck_free(found);
            let wanted = d[index] * g[0] + d[index + 1] * g[1] + d[index + 2] * g[2];
            assert!(
                (found[0] - wanted).abs() < 1e-5,
                "{index}: {found:?}, wanted {wanted}"
            );
        }
        let back = T::filter_back(u.map(|u| u as f32));
        assert!(
            back.iter().zip(g).all(|(back, g)| (back - g).abs() < 1e-6),
            "{back:?}"
        );
    }

    fn bytemuck_free(vector: <Scalar128b as Simd>::f32s) -> [f32; 4] {
        let mut elements = [0.0; 4];
        Scalar128b.partial_store_f32s(&mut elements, vector);
        elements
    }

    #[test]
    fn a_line_is_convolved() {
        line(TwoOutputs);
        line(FourOutputs);
    }
}
