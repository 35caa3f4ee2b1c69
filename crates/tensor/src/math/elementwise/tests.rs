use proptest::prelude::*;

use super::*;
use crate::math::number::Number;
use crate::{BF16, Complex, F16};

/// Numbers that are likely to find mistakes.
fn floats() -> impl Strategy<Value = f32> {
    prop_oneof![
        4 => -100.0..100.0_f32,
        1 => any::<f32>(),
        1 => prop::sample::select(vec![
            0.0, -0.0, 1.0, -1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE, 1e-45,
            f32::MAX,
        ]),
    ]
}

/// A shape of up to four small extents, and two that broadcast to it, with strides of their own.
fn shapes() -> impl Strategy<Value = (Vec<usize>, [(Vec<usize>, bool); 2])> {
    prop::collection::vec(0..5_usize, 0..4).prop_flat_map(|shape| {
        let one = shape.clone();
        let input = move || {
            let shape = one.clone();
            (
                prop::collection::vec(any::<bool>(), shape.len()),
                0..=shape.len(),
                any::<bool>(),
            )
                .prop_map(move |(ones, n_missing, is_transposed)| {
                    let extents = shape
                        .iter()
                        .zip(ones)
                        .map(|(e, one)| if one { 1 } else { *e });
                    (
                        extents.skip(n_missing).collect::<Vec<usize>>(),
                        is_transposed,
                    )
                })
        };
        (Just(shape), [input(), input()])
    })
}

/// A view of elements of `values`, in reversed order of dimensions if asked for.
fn view<'a>(values: &'a [f32], extents: &[usize], is_transposed: bool) -> TensorView<'a, f32> {
    let n: usize = extents.iter().product();
    if !is_transposed {
        return TensorView::new(&values[..n], extents).unwrap();
    }
    let reversed: Vec<usize> = extents.iter().rev().copied().collect();
    let order: Vec<usize> = (0..extents.len()).rev().collect();
    let whole = TensorView::new(&values[..n], &reversed).unwrap();
    whole.permute(&order).unwrap()
}

fn coordinates(mut index: usize, extents: &[usize]) -> Vec<usize> {
    let mut list: Vec<usize> = extents
        .iter()
        .rev()
        .map(|extent| {
            let coordinate = index % extent;
            index /= extent;
            coordinate
        })
        .collect();
    list.reverse();
    list
}

/// The element of a broadcast view.
fn at(view: &TensorView<'_, f32>, coordinates: &[usize]) -> f32 {
    let missing = coordinates.len() - view.rank();
    let own: Vec<usize> = coordinates[missing..]
        .iter()
        .zip(view.extents())
        .map(|(coordinate, extent)| if *extent == 1 { 0 } else { *coordinate })
        .collect();
    view.get(&own).unwrap()
}

proptest! {
    #[test]
    fn binary_functions_are_those_of_their_elements(
        (_, [x, y]) in shapes(),
        values in prop::collection::vec(floats(), 2 * 256),
    ) {
        let (x, y) = (view(&values[..256], &x.0, x.1), view(&values[256..], &y.0, y.1));
        let Ok(extents) = broadcast_extents(&[x.extents(), y.extents()]) else { return Ok(()) };
        let n = extents.iter().product();
        let mut out = vec![7.0; n];
        binary::<Subtract, f32>(&x, &y, &mut TensorViewMut::new(&mut out, &extents).unwrap()).unwrap();
        let mut less = vec![Bool::from(false); n];
        binary::<Less, f32>(&x, &y, &mut TensorViewMut::new(&mut less, &extents).unwrap()).unwrap();
        for index in 0..n {
            let place = coordinates(index, &extents);
            let (x, y) = (at(&x, &place), at(&y, &place));
            prop_assert_eq!(out[index].to_bits(), (x - y).to_bits());
            prop_assert_eq!(bool::from(less[index]), x < y);
        }
    }

    #[test]
    fn selection_takes_one_or_the_other(
        (_, [x, y]) in shapes(),
        values in prop::collection::vec(floats(), 2 * 256),
        condition in any::<bool>(),
    ) {
        let (x, y) = (view(&values[..256], &x.0, x.1), view(&values[256..], &y.0, y.1));
        let Ok(extents) = broadcast_extents(&[x.extents(), y.extents()]) else { return Ok(()) };
        let mut out = vec![7.0; extents.iter().product()];
        let condition_element = [Bool::from(condition)];
        let condition_view = TensorView::new(&condition_element, &[]).unwrap();
        select(&condition_view, &x, &y, &mut TensorViewMut::new(&mut out, &extents).unwrap()).unwrap();
        for (index, out) in out.iter().enumerate() {
            let place = coordinates(index, &extents);
            let wanted = if condition { at(&x, &place) } else { at(&y, &place) };
            prop_assert_eq!(out.to_bits(), wanted.to_bits());
        }
    }

    #[test]
    fn unary_functions_are_those_of_their_elements(
        values in prop::collection::vec(floats(), 12),
        is_transposed in any::<bool>(),
    ) {
        let x = view(&values, &[3, 4], is_transposed);
        let mut out = [0.0; 12];
        unary::<Abs, f32>(&x, &mut TensorViewMut::new(&mut out, &[3, 4]).unwrap()).unwrap();
        for (index, out) in out.iter().enumerate() {
            prop_assert_eq!(out.to_bits(), at(&x, &coordinates(index, &[3, 4])).abs().to_bits());
        }
        unary::<Elu, f32>(&x, &mut TensorViewMut::new(&mut out, &[3, 4]).unwrap()).unwrap();
        for (out, x) in out.iter().zip(x.iter()) {
            let wanted = if x < 0.0 { f64::from(x).exp_m1() } else { f64::from(x) };
            let is_near = (f64::from(*out) - wanted).abs() <= 1e-6 * wanted.abs();
            prop_assert!(is_near || f64::from(*out).total_cmp(&wanted).is_eq() || x.is_nan() && out.is_nan());
        }
        let mut whole = [0_i8; 12];
        cast::<f32, i8>(&x, &mut TensorViewMut::new(&mut whole, &[3, 4]).unwrap()).unwrap();
        for (whole, x) in whole.iter().zip(x.iter()) {
            prop_assert_eq!(*whole, x as i8);
        }
    }

    #[test]
    fn half_precision_is_rounded_once(x in any::<u16>(), y in any::<u16>()) {
        let wide = |x: u16| half::f16::from_bits(x).to_f32();
        let sum = half::f16::from_f32(wide(x) + wide(y));
        let own = half::f16::from_bits(<Add as Binary<F16>>::apply(F16(x), F16(y)).0);
        prop_assert!(own == sum || (own.is_nan() && sum.is_nan()));
        let product = half::bf16::from_f32(
            half::bf16::from_bits(x).to_f32() * half::bf16::from_bits(y).to_f32(),
        );
        let own = half::bf16::from_bits(<Multiply as Binary<BF16>>::apply(BF16(x), BF16(y)).0);
        prop_assert!(own == product || (own.is_nan() && product.is_nan()));
    }
}

#[test]
fn integers_wrap_and_never_trap() {
    assert_eq!(<Add as Binary<i8>>::apply(127, 1), -128);
    assert_eq!(<Divide as Binary<i32>>::apply(i32::MIN, -1), i32::MIN);
    assert_eq!(<Divide as Binary<i32>>::apply(5, 0), 0);
    assert_eq!(<Remainder as Binary<i64>>::apply(i64::MIN, -1), 0);
    assert_eq!(<Abs as Unary<i8>>::apply(-128), -128);
    assert_eq!(<Sign as Unary<u8>>::apply(9), 1);
    assert_eq!(<Cast<u8> as Unary<f32>>::apply(300.0), 255);
    assert_eq!(<Cast<u8> as Unary<i32>>::apply(300), 44);
    assert_eq!(<Cast<f32> as Unary<Bool>>::apply(true.into()), 1.0);
}

#[test]
fn what_is_no_number_stays_none() {
    let nan = f32::NAN;
    assert!(<Maximum as Binary<f32>>::apply(nan, 1.0).is_nan());
    assert!(<Maximum as Binary<f32>>::apply(1.0, nan).is_nan());
    assert!(<Relu as Unary<f32>>::apply(nan).is_nan());
    assert!(<Sign as Unary<f32>>::apply(nan).is_nan());
    assert!(bool::from(<NotEqual as Binary<f32>>::apply(nan, nan)));
    assert!(bool::from(<IsNan as Unary<f32>>::apply(nan)));
}

#[test]
fn complex_numbers_divide_without_overflow() {
    let big = Complex {
        real: 1e30_f32,
        imaginary: 1e30,
    };
    assert_eq!(big.over(big), Complex::<f32>::ONE);
    let i = Complex {
        real: 0.0_f64,
        imaginary: 1.0,
    };
    assert_eq!(
        Complex::<f64>::ONE.over(i),
        Complex {
            real: 0.0,
            imaginary: -1.0
        }
    );
}

#[test]
fn shapes_that_do_not_fit_are_told() {
    let x = TensorView::new(&[1.0_f32, 2.0], &[2]).unwrap();
    let y = TensorView::new(&[1.0_f32, 2.0, 3.0], &[3]).unwrap();
    let mut out = [0.0; 2];
    let mut out = TensorViewMut::new(&mut out, &[2]).unwrap();
    let error = binary::<Add, f32>(&x, &y, &mut out).unwrap_err();
    assert_eq!(error.message(), "tensor shape mismatch: [2] vs. [3]");
    let error = unary::<Exp, f32>(&y, &mut out).unwrap_err();
    assert_eq!(error.message(), "expected a result of shape [3], found [2]");
}

#[test]
fn short_results_have_the_shape_that_both_are_broadcast_to() {
    use tfrt_host::{HostContext, kernel::KernelRegistry};

    let host = HostContext::builder(KernelRegistry::new()).build();
    let new = |extents: &[usize]| {
        let ones = vec![1_i32; extents.iter().product()];
        DenseHostTensor::from_slice(host.allocator(), extents, &ones).unwrap()
    };
    let shapes = [
        &[][..],
        &[1],
        &[1, 1],
        &[3],
        &[0],
        &[2, 3],
        &[0, 1],
        &[1, 0],
        &[2, 0],
    ];
    for x in shapes {
        for y in shapes {
            let short = binary_short::<Add, i32>(host.allocator(), &new(x), &new(y)).unwrap();
            let Some(sum) = short else {
                continue;
            };
            let wanted = broadcast_extents(&[x, y]).unwrap();
            assert_eq!(sum.shape().to_dims(), wanted, "{x:?} {y:?}");
            let reading = sum.read().unwrap();
            assert!(reading.elements::<i32>().unwrap().iter().all(|x| *x == 2));
        }
    }
}
