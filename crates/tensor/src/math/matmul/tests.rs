use proptest::prelude::*;

use super::*;
use crate::math::number::Real;
use crate::{BF16, Complex, Element, F16};

/// Returns the product by its definition, in `f64`.
fn by_definition(a: &[f64], b: &[f64], [m, k, n]: [usize; 3]) -> Vec<f64> {
    let element =
        |row: usize, column: usize| (0..k).map(|i| a[row * k + i] * b[i * n + column]).sum();
    (0..m * n)
        .map(|index| element(index / n, index % n))
        .collect()
}

fn transposed<T: Copy>(x: &[T], [rows, columns]: [usize; 2]) -> Vec<T> {
    (0..rows * columns)
        .map(|index| x[index % rows * columns + index / rows])
        .collect()
}

/// Multiplies matrices over the old elements of `out`.
fn multiplied<T: MatmulElement>(
    scale: Scale<T>,
    a: &TensorView<'_, T>,
    b: &TensorView<'_, T>,
    mut out: Vec<T>,
) -> Vec<T> {
    let extents = [a.extents()[0], b.extents()[1]];
    let mut view = TensorViewMut::new(&mut out, &extents).unwrap();
    matmul(scale, a, b, &mut view).unwrap();
    out
}

/// Multiplies whole numbers, which all types can hold, in all four ways to transpose, in one go and in parts.
fn check<T: MatmulElement>(
    [m, k, n]: [usize; 3],
    values: &[i8],
    of: impl Fn(f64) -> T,
) -> Result<(), TestCaseError> {
    let wide =
        |range: std::ops::Range<usize>| values[range].iter().map(|x| f64::from(x % 4)).collect();
    let (a, b): (Vec<f64>, Vec<f64>) = (wide(0..m * k), wide(m * k..m * k + k * n));
    let wanted: Vec<T> = by_definition(&a, &b, [m, k, n])
        .iter()
        .map(|x| of(2.0 * x + 3.0))
        .collect();
    let (a, b): (Vec<T>, Vec<T>) = (
        a.iter().map(|x| of(*x)).collect(),
        b.iter().map(|x| of(*x)).collect(),
    );
    let (a_turned, b_turned) = (transposed(&a, [m, k]), transposed(&b, [k, n]));
    let scale = Scale {
        of_product: of(2.0),
        of_result: of(1.0),
    };
    for way in 0..4 {
        let a = match way & 1 {
            0 => TensorView::new(&a, &[m, k]).unwrap(),
            _ => TensorView::new(&a_turned, &[k, m])
                .unwrap()
                .permute(&[1, 0])
                .unwrap(),
        };
        let b = match way & 2 {
            0 => TensorView::new(&b, &[k, n]).unwrap(),
            _ => TensorView::new(&b_turned, &[n, k])
                .unwrap()
                .permute(&[1, 0])
                .unwrap(),
        };
        let out = multiplied(scale, &a, &b, vec![of(3.0); m * n]);
        prop_assert_eq!(&out, &wanted);
        let plan = MatmulPlan::new(
            (a.extents(), a.strides()),
            (b.extents(), b.strides()),
            &[m, n],
        )
        .unwrap();
        let mut out = vec![of(3.0); m * n];
        for (index, part) in out.chunks_mut(7).enumerate() {
            plan.run(
                multiply,
                scale,
                (a.elements(), b.elements()),
                index * 7,
                part,
            );
        }
        prop_assert_eq!(&out, &wanted);
    }
    Ok(())
}

proptest! {
    #[test]
    fn products_are_those_of_the_definition(
        m in 0..9_usize, k in 0..9_usize, n in 0..9_usize,
        values in prop::collection::vec(0..4_i8, 200),
    ) {
        let shape = [m, k, n];
        #[allow(clippy::cast_possible_truncation, reason = "small whole numbers")]
        check::<f32>(shape, &values, |x| x as f32)?;
        check::<f64>(shape, &values, |x| x)?;
        check::<F16>(shape, &values, Real::from_f64)?;
        check::<BF16>(shape, &values, Real::from_f64)?;
        check::<i32>(shape, &values, Real::from_f64)?;
        check::<u8>(shape, &values, Real::from_f64)?;
        check::<Complex<f64>>(shape, &values, |x| Complex { real: x, imaginary: 0.0 })?;
    }

    #[test]
    fn larger_products_are_near(
        m in 1..70_usize, k in 1..70_usize, n in 1..70_usize,
        values in prop::collection::vec(-1.0..1.0_f64, 2 * 4900),
    ) {
        let (a, b) = (&values[..m * k], &values[4900..4900 + k * n]);
        let exact = by_definition(a, b, [m, k, n]);
        #[allow(clippy::cast_possible_truncation, reason = "they are rounded")]
        let narrow = |x: &[f64]| x.iter().map(|x| *x as f32).collect::<Vec<f32>>();
        let (a, b) = (narrow(a), narrow(b));
        let mut out = vec![f32::NAN; m * n];
        let (a, b) = (TensorView::new(&a, &[m, k]).unwrap(), TensorView::new(&b, &[k, n]).unwrap());
        matmul(Scale::default(), &a, &b, &mut TensorViewMut::new(&mut out, &[m, n]).unwrap()).unwrap();
        for (out, exact) in out.iter().zip(exact) {
            prop_assert!((f64::from(*out) - exact).abs() < 1e-4);
        }
    }
}

#[test]
fn products_of_more_than_a_block_are_those_of_the_definition() {
    for [m, k, n] in [[121, 5, 17], [3, 1030, 33], [5, 260, 515], [2, 0, 3]] {
        let values: Vec<i8> = (0..m * k + k * n).map(|x| (x * x % 7 % 4) as i8).collect();
        check::<F16>([m, k, n], &values, Real::from_f64).unwrap();
        check::<BF16>([m, k, n], &values, Real::from_f64).unwrap();
        check::<i16>([m, k, n], &values, Real::from_f64).unwrap();
        check::<u64>([m, k, n], &values, Real::from_f64).unwrap();
    }
}

#[test]
fn products_of_integers_wrap_around() {
    let a = TensorView::new(&[100_i8, 100, 1, -128], &[2, 2]).unwrap();
    let scale = Scale {
        of_product: 3,
        of_result: -1,
    };
    let out = multiplied(scale, &a, &a, vec![1_i8; 4]);
    let wrapped = |x: i32| (3 * x - 1) as i8;
    let wanted = [10_000 + 100, 10_000 - 12_800, 100 - 128, 100 + 16_384];
    assert_eq!(out, wanted.map(wrapped));
}

#[test]
fn complex_products_are_those_of_the_definition_at_any_scale() {
    let [m, k, n] = [5, 7, 6];
    let number = |x: usize| Complex {
        real: (x % 5) as f32 - 2.0,
        imaginary: (x % 3) as f32 - 1.0,
    };
    let a: Vec<Complex<f32>> = (0..m * k).map(number).collect();
    let b: Vec<Complex<f32>> = (0..k * n).map(|x| number(x + 4)).collect();
    let turned = transposed(&b, [k, n]);
    let (zero, one) = (
        <Complex<f32> as Element>::ZERO,
        <Complex<f32> as Number>::ONE,
    );
    let other = Complex {
        real: 2.0,
        imaginary: -1.0,
    };
    for (of_product, of_result) in [(one, zero), (one, one), (other, zero), (other, other)] {
        let scale = Scale {
            of_product,
            of_result,
        };
        let before = match of_result == zero {
            true => Complex {
                real: f32::NAN,
                imaginary: f32::NAN,
            },
            false => number(3),
        };
        let a = TensorView::new(&a, &[m, k]).unwrap();
        let b = TensorView::new(&turned, &[n, k]).unwrap();
        let b = b.permute(&[1, 0]).unwrap();
        let out = multiplied(scale, &a, &b, vec![before; m * n]);
        for (index, out) in out.iter().enumerate() {
            let product = (0..k).fold(zero, |sum, i| {
                let (x, y) = (a.elements()[index / n * k + i], turned[index % n * k + i]);
                sum.plus(x.times(y))
            });
            let product = of_product.times(product);
            let wanted = match of_result == zero {
                true => product,
                false => product.plus(of_result.times(before)),
            };
            assert_eq!(*out, wanted);
        }
    }
}

#[test]
fn stacks_are_multiplied_matrix_by_matrix() {
    let a: Vec<i32> = (0..8).collect();
    let a = TensorView::new(&a, &[2, 1, 2, 2]).unwrap();
    let b = [1, 0, 0, 1, 0, 1, 1, 0];
    let b = TensorView::new(&b, &[2, 2, 2]).unwrap();
    let mut out = [0; 16];
    matmul(
        Scale::default(),
        &a,
        &b,
        &mut TensorViewMut::new(&mut out, &[2, 2, 2, 2]).unwrap(),
    )
    .unwrap();
    assert_eq!(out, [0, 1, 2, 3, 1, 0, 3, 2, 4, 5, 6, 7, 5, 4, 7, 6]);
}

#[test]
fn parts_of_products_are_the_product() {
    for [batch, m, k, n] in [
        [1, 1, 64, 5000],
        [1, 61, 40, 300],
        [1, 256, 16, 64],
        [1, 70, 1024, 513],
        [7, 5, 200, 90],
        [9, 29, 33, 64],
        [3, 100, 17, 60],
        [2, 0, 3, 4],
        [4, 50, 0, 90],
    ] {
        let numbers =
            |len: usize, modulus: usize| (0..len).map(move |x| (x % modulus) as f32 - 2.0);
        let a: Vec<f32> = numbers(batch * m * k, 7).collect();
        let b: Vec<f32> = numbers(batch * k * n, 5).collect();
        let (a_shape, b_shape, out_shape) = ([batch, m, k], [batch, k, n], [batch, m, n]);
        let a = TensorView::new(&a, &a_shape).unwrap();
        let b = TensorView::new(&b, &b_shape).unwrap();
        let plan = MatmulPlan::new(
            (a.extents(), a.strides()),
            (b.extents(), b.strides()),
            &out_shape,
        )
        .unwrap();
        let scale = Scale::default();
        let mut whole = vec![f32::NAN; batch * m * n];
        plan.run(multiply, scale, (a.elements(), b.elements()), 0, &mut whole);
        let (mut made, parts) = (vec![f32::NAN; batch * m * n], plan.parts());
        for index in 0..parts.len() {
            let part = parts.part(index);
            let first = part.start;
            plan.run(
                multiply,
                scale,
                (a.elements(), b.elements()),
                first,
                &mut made[part],
            );
        }
        // Sums of small whole numbers are exact in any order.
        assert_eq!(made, whole, "{batch} times {m}x{k}x{n}, {parts:?}");
    }
}

#[test]
fn short_matrices_are_parts_where_each_has_its_own_right_factor() {
    let n_parts = |a: &[usize], b: &[usize]| {
        let strides = |extents: &[usize]| crate::TensorShape::new(extents).unwrap().strides();
        let mut out = a.to_vec();
        out[a.len() - 1] = b[b.len() - 1];
        MatmulPlan::new((a, &strides(a)), (b, &strides(b)), &out)
            .unwrap()
            .parts()
            .len()
    };
    assert_eq!(n_parts(&[14, 2, 4096], &[14, 4096, 4096]), 14);
    assert_eq!(n_parts(&[25, 2, 1024], &[25, 1024, 1024]), 24);
    assert_eq!(n_parts(&[12, 4, 64], &[12, 64, 1024]), 6);
    assert_eq!(n_parts(&[3, 4, 29, 1024], &[4, 1024, 1024]), 12);
    // A shared one is gone through for as many rows as pay.
    assert_eq!(n_parts(&[14, 2, 4096], &[4096, 4096]), 1);
    assert_eq!(n_parts(&[60, 2, 4096], &[1, 4096, 4096]), 4);
}

#[test]
fn matrices_that_do_not_fit_are_told() {
    let x = TensorView::new(&[1.0_f32, 2.0], &[1, 2]).unwrap();
    let row = TensorView::new(&[1.0_f32, 2.0], &[2]).unwrap();
    let mut out = [0.0; 1];
    let mut out = TensorViewMut::new(&mut out, &[1, 1]).unwrap();
    let mut message = |a, b| {
        matmul(Scale::default(), a, b, &mut out)
            .unwrap_err()
            .message()
            .to_owned()
    };
    assert_eq!(
        message(&x, &x),
        "MatMul input tensors inner dimension mismatch: [1, 2] vs. [1, 2]"
    );
    assert_eq!(
        message(&x, &row),
        "expected matrices, found shapes [1, 2] and [2]"
    );
    let column = x.permute(&[1, 0]).unwrap();
    assert_eq!(
        message(&column, &x),
        "MatMul output shape [1, 1] does not match product shape of inputs: [2, 1] * [1, 2]"
    );
}

#[test]
fn strides_that_nobody_takes_do_not_matter() {
    fn check<T: MatmulElement + std::fmt::Debug>() {
        let two = T::ONE.plus(T::ONE);
        let elements = [T::ONE, two];
        let row = TensorView::strided(&elements, &[1, 2], &[usize::MAX, 1]).unwrap();
        let column = TensorView::strided(&elements, &[2, 1], &[1, usize::MAX]).unwrap();
        let out = multiplied(Scale::default(), &row, &column, vec![two]);
        assert_eq!(out, [two.times(two).plus(T::ONE)]);
    }
    check::<f32>();
    check::<F16>();
    check::<i32>();
    check::<Complex<f64>>();
}

#[test]
fn thin_products_are_those_of_their_definition_at_any_scale_and_stride() {
    for [m, k, n] in [
        [1, 19, 5],
        [7, 1, 5],
        [1, 1, 5],
        [1, 8, 1],
        [5, 1, 1],
        [1, 3, 70],
    ] {
        let a: Vec<f64> = (0..m * k).map(|x| (x % 7) as f64 - 3.0).collect();
        let b: Vec<f64> = (0..k * n).map(|x| (x % 5) as f64 - 2.0).collect();
        let product = by_definition(&a, &b, [m, k, n]);
        for (of_product, of_result) in [(1.0, 0.0), (2.0, 1.0), (-1.0, 0.5)] {
            let before = if of_result == 0.0 { f64::NAN } else { 4.0 };
            let mut out = vec![before; m * n];
            let scale = Scale {
                of_product,
                of_result,
            };
            let (a, b) = (TensorView::new(&a, &[m, k]), TensorView::new(&b, &[k, n]));
            let mut view = TensorViewMut::new(&mut out, &[m, n]).unwrap();
            matmul(scale, &a.unwrap(), &b.unwrap(), &mut view).unwrap();
            let kept = if of_result == 0.0 {
                0.0
            } else {
                of_result * before
            };
            let wanted: Vec<f64> = product.iter().map(|x| of_product * x + kept).collect();
            assert_eq!(out, wanted, "{m} {k} {n}");
        }
    }
    // Rows that are one row, seen several times.
    let (column, row) = ([3.0], [1.0, 2.0]);
    let a = TensorView::new(&column, &[1, 1]).unwrap();
    let mut out = [0.0; 6];
    let b = TensorView::new(&row, &[1, 2]).unwrap();
    let view = &mut TensorViewMut::new(&mut out, &[3, 2]).unwrap();
    matmul(
        Scale::<f64>::default(),
        &a.broadcast(&[3, 1]).unwrap(),
        &b,
        view,
    )
    .unwrap();
    assert_eq!(out, [3.0, 6.0, 3.0, 6.0, 3.0, 6.0]);
}
