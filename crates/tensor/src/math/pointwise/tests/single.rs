//! Tests of single functions: each loop compared with the formula, for every type that has it.

use proptest::prelude::*;

use super::super::formulas::*;
use super::super::*;
use crate::math::broadcast::broadcast_extents;
use crate::math::number::Number;
use crate::{BF16, Bool, Complex, Element, F16, TensorView, TensorViewMut};

/// Returns numbers that are likely to find mistakes.
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

/// Returns a shape of up to four small extents, and two that broadcast to it, with strides of their own.
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

/// Returns a view of elements of `values`, in reversed order of dimensions if asked for.
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

/// Returns the element of a broadcast view.
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
        let mut out = vec![7.0_f32; n];
        let operands = [(&x).into(), (&y).into()];
        let to = TensorViewMut::new(&mut out, &extents).unwrap();
        binary(BinaryFunction::Subtract, &operands, to.into()).unwrap();
        let mut less = vec![Bool::from(false); n];
        let to = TensorViewMut::new(&mut less, &extents).unwrap();
        binary(BinaryFunction::Less, &operands, to.into()).unwrap();
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
        let mut out = vec![7.0_f32; extents.iter().product()];
        let condition_element = [Bool::from(condition)];
        let condition_view = TensorView::new(&condition_element, &[]).unwrap();
        let program = PointwiseProgram::new(3, &[Step::Select([0, 1, 2].map(Operand::Input))]).unwrap();
        let to = TensorViewMut::new(&mut out, &extents).unwrap();
        program.run(&[(&condition_view).into(), (&x).into(), (&y).into()], to.into()).unwrap();
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
        let mut out = [0.0_f32; 12];
        let to = TensorViewMut::new(&mut out, &[3, 4]).unwrap();
        unary(UnaryFunction::Abs, &(&x).into(), to.into()).unwrap();
        for (index, out) in out.iter().enumerate() {
            prop_assert_eq!(out.to_bits(), at(&x, &coordinates(index, &[3, 4])).abs().to_bits());
        }
        let to = TensorViewMut::new(&mut out, &[3, 4]).unwrap();
        unary(UnaryFunction::Elu, &(&x).into(), to.into()).unwrap();
        for (out, x) in out.iter().zip(x.iter()) {
            let wanted = if x < 0.0 { f64::from(x).exp_m1() } else { f64::from(x) };
            let is_near = (f64::from(*out) - wanted).abs() <= 1e-6 * wanted.abs();
            prop_assert!(is_near || f64::from(*out).total_cmp(&wanted).is_eq() || x.is_nan() && out.is_nan());
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
    let mut out = [0.0_f32; 2];
    let mut run = |run: &dyn Fn(ElementsMut<'_>) -> Result<(), tfrt_host::Error>| {
        run(TensorViewMut::new(&mut out, &[2]).unwrap().into()).unwrap_err()
    };
    let operands = [(&x).into(), (&y).into()];
    let error = run(&|out| binary(BinaryFunction::Add, &operands, out));
    assert_eq!(error.message(), "tensor shape mismatch: [2] vs. [3]");
    let error = run(&|out| unary(UnaryFunction::Exp, &operands[1], out));
    assert_eq!(error.message(), "expected a result of shape [3], found [2]");
    let error = run(&|out| unary(UnaryFunction::BitNot, &operands[0], out));
    assert_eq!(error.message(), "bit_not is not defined for f32");
}

/// Compares a function with a formula for all pairs of bytes.
fn check_bytes<F: Binary<T>, T: Element>(function: BinaryFunction) {
    let bytes: Vec<u8> = (0..=u8::MAX).collect();
    let list = crate::from_bytes::<T>(&bytes).unwrap();
    let (x, y) = (
        TensorView::new(list, &[256, 1]).unwrap(),
        TensorView::new(list, &[256]).unwrap(),
    );
    let mut out = vec![F::Output::ZERO; 1 << 16];
    let to = TensorViewMut::new(&mut out, &[256, 256]).unwrap();
    binary(function, &[(&x).into(), (&y).into()], to.into()).unwrap();
    for (index, out) in out.iter().enumerate() {
        let wanted = F::apply(list[index / 256], list[index % 256]);
        assert_eq!(
            crate::to_bytes(&[*out]),
            crate::to_bytes(&[wanted]),
            "{function:?} {index}"
        );
    }
}

#[test]
fn loops_that_types_share_are_those_of_each() {
    macro_rules! check {
        ($($name:ident)*) => {
            $(
                check_bytes::<$name, i8>(BinaryFunction::$name);
                check_bytes::<$name, u8>(BinaryFunction::$name);
            )*
        };
    }
    check!(Add Subtract Multiply Divide SquaredDifference Minimum Maximum Remainder Modulo FloorDivide SlopedRelu ReluGradient
        EqualAsNumber Equal NotEqual Less LessEqual Greater GreaterEqual BitAnd BitOr BitXor Power);
    check_bytes::<ShiftLeft, u8>(BinaryFunction::ShiftLeft);
    check_bytes::<ShiftRight, u8>(BinaryFunction::ShiftRight);
    assert_eq!(BinaryFunction::ShiftLeft.result(crate::DType::I8), None);
}
