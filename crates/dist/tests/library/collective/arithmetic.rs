//! Reductions of slices, of every type.

use tfrt_dist::collective::Function;
use tfrt_dist::collective::arithmetic::{Value, reduce};
use tfrt_dist::reduction::steps;
use tfrt_tensor::math::number::Real;
use tfrt_tensor::{BF16, F16};

fn reduced<T: Real>(function: Function, values: &[Vec<T>], is_last: bool) -> Vec<T> {
    let n = values.len();
    let single: Vec<_> = (0..n).map(|leaf| leaf..leaf + 1).collect();
    let steps = steps(&(0..n), &single).unwrap();
    let slices: Vec<Value<'_, T>> = values.iter().map(|it| Value::Elements(it)).collect();
    let mut result = vec![T::ZERO; values[0].len()];
    reduce(function, &steps, &slices, &mut result, is_last.then_some(n));
    // The first value may be overwritten by the result.
    let mut in_place = values[0].clone();
    let mut slices = slices;
    slices[0] = Value::Result;
    reduce(
        function,
        &steps,
        &slices,
        &mut in_place,
        is_last.then_some(n),
    );
    assert_eq!(format!("{in_place:?}"), format!("{result:?}"));
    result
}

/// Whole numbers, whose sums are exact in each type.
fn of<T: Real>(n_values: usize, len: usize) -> Vec<Vec<T>> {
    let value = |value: usize| {
        let number = |at: usize| T::from_f64(((at * 7 + value * 13) % 11) as f64 - 5.0);
        (0..len).map(number).collect()
    };
    (0..n_values).map(value).collect()
}

fn try_type<T: Real>() {
    for (n, len) in [(1, 5), (2, 1), (3, 2000), (5, 1024), (8, 4099), (7, 0)] {
        let values = of::<T>(n, len);
        let column = |at: usize| values.iter().map(move |value| value[at].to_f64());
        let sum = |at| column(at).sum::<f64>();
        let expected = |value: &dyn Fn(usize) -> f64| -> Vec<f64> { (0..len).map(value).collect() };
        let found = |function| -> Vec<f64> {
            let found = reduced(function, &values, true);
            found.into_iter().map(Real::to_f64).collect()
        };
        assert_eq!(found(Function::Sum), expected(&sum));
        assert_eq!(
            found(Function::Min),
            expected(&|at| column(at).fold(f64::MAX, f64::min))
        );
        assert_eq!(
            found(Function::Max),
            expected(&|at| column(at).fold(f64::MIN, f64::max))
        );
        let mean = |at| T::mean(T::from_f64(sum(at)).widened(), n).to_f64();
        assert_eq!(found(Function::Mean), expected(&mean));
    }
}

#[test]
fn every_type_is_reduced() {
    try_type::<f32>();
    try_type::<f64>();
    try_type::<F16>();
    try_type::<BF16>();
    try_type::<i32>();
    try_type::<i64>();
}

#[test]
fn sums_of_integers_wrap_and_means_are_cut_off() {
    let sum = reduced(Function::Sum, &[vec![i32::MAX], vec![1]], true);
    assert_eq!(sum, [i32::MIN]);
    let mean = reduced(
        Function::Mean,
        &[vec![-3, 3, i32::MAX], vec![0, 0, 1]],
        true,
    );
    assert_eq!(mean, [-1, 1, i32::MIN / 2]);
}

#[test]
fn nan_is_canonical_and_wins() {
    let odd = f32::from_bits(0xffc1_2345);
    let infinite = f32::INFINITY;
    for function in [Function::Sum, Function::Min, Function::Max, Function::Mean] {
        for values in [[odd, 1.0], [1.0, odd], [odd, infinite]] {
            let values = values.map(|x| vec![x]);
            let found = reduced(function, &values, true)[0];
            assert_eq!(found.to_bits(), f32::NAN.to_bits(), "{function:?}");
        }
    }
    let found = reduced(Function::Sum, &[vec![infinite], vec![-infinite]], true)[0];
    assert_eq!(found.to_bits(), f32::NAN.to_bits());
}
