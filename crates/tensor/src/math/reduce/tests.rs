use proptest::prelude::*;

use super::*;

fn coordinates(mut index: usize, extents: &[usize]) -> Vec<usize> {
    let mut list = vec![0; extents.len()];
    for (to, extent) in list.iter_mut().zip(extents).rev() {
        *to = index % extent;
        index /= extent;
    }
    list
}

/// Returns the elements that each result is made of, by the definition.
fn groups(x: &TensorView<'_, i64>, dimensions: &[usize]) -> Vec<Vec<i64>> {
    let is_kept = |dimension: &usize| !dimensions.contains(dimension);
    let kept: Vec<usize> = (0..x.rank()).filter(is_kept).collect();
    let extents: Vec<usize> = kept
        .iter()
        .map(|dimension| x.extents()[*dimension])
        .collect();
    let mut groups = vec![Vec::new(); extents.iter().product()];
    for index in 0..x.n_elements() {
        let place = coordinates(index, x.extents());
        let group = kept
            .iter()
            .zip(&extents)
            .fold(0, |group, (dimension, extent)| {
                group * extent + place[*dimension]
            });
        groups[group].push(x.get(&place).unwrap());
    }
    groups
}

proptest! {
    #[test]
    fn reductions_are_those_of_their_elements(
        extents in prop::collection::vec(0..6_usize, 0..5),
        reduced in prop::collection::vec(any::<bool>(), 5),
        turn in any::<bool>(),
        values in prop::collection::vec(-50..50_i64, 3125),
    ) {
        let n: usize = extents.iter().product();
        let mut x = TensorView::new(&values[..n], &extents).unwrap();
        if turn {
            let order: Vec<usize> = (0..extents.len()).rev().collect();
            x = x.permute(&order).unwrap();
        }
        let dimensions: Vec<usize> = (0..extents.len()).filter(|d| reduced[*d]).collect();
        let groups = groups(&x, &dimensions);
        let shape: Vec<usize> = (0..extents.len()).filter(|d| !reduced[*d]).map(|d| x.extents()[d]).collect();
        let mut out = vec![7; groups.len()];
        let mut view = TensorViewMut::new(&mut out, &shape).unwrap();
        reduce(Reduction::Sum, &x, &dimensions, &mut view).unwrap();
        let sums: Vec<i64> = groups.iter().map(|group| group.iter().sum()).collect();
        prop_assert_eq!(view.as_mut_slice(), &sums[..]);
        let is_empty = groups.iter().any(Vec::is_empty);
        let result = reduce(Reduction::Maximum, &x, &dimensions, &mut view);
        prop_assert_eq!(result.is_err(), is_empty);
        if !is_empty {
            let largest: Vec<i64> = groups.iter().map(|group| *group.iter().max().unwrap()).collect();
            prop_assert_eq!(view.as_mut_slice(), &largest[..]);
        }
        if let ([dimension], false) = (&dimensions[..], is_empty) {
            position(Extremum::Least, &x, *dimension, &mut view).unwrap();
            let first = |group: &Vec<i64>| group.iter().enumerate().min_by_key(|(_, x)| **x).unwrap().0;
            let positions: Vec<i64> = groups.iter().map(|group| first(group) as i64).collect();
            prop_assert_eq!(out, positions);
        }
    }

    #[test]
    fn sums_of_floats_are_near_and_do_not_hang_on_chunks(
        values in prop::collection::vec(-1.0..1.0_f32, 1..5000),
    ) {
        let x = TensorView::new(&values, &[values.len()]).unwrap();
        let mut sum = [0.0];
        reduce(Reduction::Sum, &x, &[0], &mut TensorViewMut::new(&mut sum, &[]).unwrap()).unwrap();
        let exact: f64 = values.iter().map(|x| f64::from(*x)).sum();
        let sizes: f64 = values.iter().map(|x| f64::from(x.abs())).sum();
        prop_assert!((f64::from(sum[0]) - exact).abs() <= sizes * 1e-5);
        // Columns are made in parts as they are made at once.
        let n = values.len() / 7;
        let x = TensorView::new(&values[..n * 7], &[7, n]).unwrap();
        let plan = ReducePlan::new(x.extents(), x.strides(), &[0], &[n]).unwrap();
        let mut whole = vec![0.0; n];
        plan.run::<Sum, f32>(x.elements(), 0, &mut whole);
        let mut parts = vec![0.0; n];
        for (index, part) in parts.chunks_mut(5).enumerate() {
            plan.run::<Sum, f32>(x.elements(), index * 5, part);
        }
        prop_assert_eq!(whole, parts);
    }
}

#[test]
fn results_of_special_elements() {
    let of = |values: &[f32]| {
        let mut out = [0.0];
        let x = TensorView::new(values, &[values.len()]).unwrap();
        reduce(
            Reduction::Maximum,
            &x,
            &[0],
            &mut TensorViewMut::new(&mut out, &[]).unwrap(),
        )
        .unwrap();
        out[0]
    };
    assert!(of(&[1.0, f32::NAN, 2.0]).is_nan());
    assert_eq!(of(&[f32::NEG_INFINITY]), f32::NEG_INFINITY);
    let x = [3_i32, 4, 6];
    let x = TensorView::new(&x, &[3]).unwrap();
    let mut out = [0];
    reduce(
        Reduction::Mean,
        &x,
        &[0],
        &mut TensorViewMut::new(&mut out, &[1]).unwrap(),
    )
    .unwrap();
    assert_eq!(out, [4]);
    let nan = [1.0, f32::NAN, 9.0, f32::NAN];
    let x = TensorView::new(&nan, &[4]).unwrap();
    let mut out = [0];
    position(
        Extremum::Greatest,
        &x,
        0,
        &mut TensorViewMut::new(&mut out, &[]).unwrap(),
    )
    .unwrap();
    assert_eq!(out, [1]);
}

#[test]
fn dimensions_that_do_not_fit_are_told() {
    let x = TensorView::new(&[1, 2], &[2]).unwrap();
    let mut out = [0; 2];
    let mut out = TensorViewMut::new(&mut out, &[2]).unwrap();
    let message = |dimensions: &[usize], out: &mut TensorViewMut<'_, i32>| {
        reduce(Reduction::Sum, &x, dimensions, out)
            .unwrap_err()
            .message()
            .to_owned()
    };
    assert_eq!(
        message(&[1], &mut out),
        "there is no dimension 1: the tensor has 1"
    );
    assert_eq!(message(&[0, 0], &mut out), "dimension 0 is named twice");
    assert_eq!(
        message(&[0], &mut out),
        "expected a result of shape [], found [2]"
    );
}

#[test]
fn extents_without_elements_may_be_of_any_size() {
    let x = TensorView::<i32>::new(&[], &[1 << 40, 1 << 40, 0]).unwrap();
    let mut out = [7];
    reduce(
        Reduction::Sum,
        &x,
        &[0, 1, 2],
        &mut TensorViewMut::new(&mut out, &[]).unwrap(),
    )
    .unwrap();
    assert_eq!(out, [0]);
    reduce(
        Reduction::Sum,
        &x,
        &[0, 1],
        &mut TensorViewMut::new(&mut [], &[0]).unwrap(),
    )
    .unwrap();
}

/// Returns the results of a reduction over some dimensions, as bits.
fn bits<T: crate::Element>(
    reduction: Reduction,
    x: &[T],
    extents: &[usize],
    dimensions: &[usize],
) -> Vec<u8> {
    let kept = |(index, extent): (usize, &usize)| (!dimensions.contains(&index)).then_some(*extent);
    let shape: Vec<usize> = extents.iter().enumerate().filter_map(kept).collect();
    let mut out = vec![T::ZERO; shape.iter().product()];
    let x = TensorView::new(x, extents).unwrap();
    let mut view = TensorViewMut::new(&mut out, &shape).unwrap();
    reduce(reduction, &x, dimensions, &mut view).unwrap();
    to_bytes(&out).to_vec()
}

#[test]
fn halves_are_reduced_as_the_floats_that_they_are_and_rounded_once() {
    use crate::math::number::Real;

    fn check<H: Real<Wide = f32>>(reduction: Reduction, extents: &[usize], dimensions: &[usize]) {
        let halves: Vec<H> = (0..extents.iter().product())
            .map(|index: usize| H::from_f64((index * 7919 % 4096) as f64 / 512.0 + 0.01))
            .collect();
        let floats: Vec<f32> = halves.iter().map(|half| half.widened()).collect();
        let wide = bits(reduction, &floats, extents, dimensions);
        let wide = crate::from_bytes::<f32>(&wide).unwrap().to_vec();
        let rounded: Vec<H> = wide.into_iter().map(H::narrowed).collect();
        let found = bits(reduction, &halves, extents, dimensions);
        assert_eq!(
            found,
            to_bytes(&rounded),
            "{reduction:?} over {dimensions:?}"
        );
    }
    let all = [
        Reduction::Sum,
        Reduction::SumOfSizes,
        Reduction::SumOfSquares,
        Reduction::Norm,
        Reduction::Mean,
        Reduction::Minimum,
        Reduction::Maximum,
    ];
    for reduction in all {
        // Rows, columns that come in several blocks side by side, and elements that lie apart.
        for (extents, dimensions) in [
            (&[3, 2500][..], &[1][..]),
            (&[7, 1300], &[0]),
            (&[5, 3, 1], &[0, 1]),
            (&[4, 1, 2], &[0]),
        ] {
            check::<F16>(reduction, extents, dimensions);
            check::<BF16>(reduction, extents, dimensions);
        }
    }
}

#[test]
fn sums_of_integers_wrap_around_whatever_their_sign() {
    let x = [100_i8, 100, -128, 5];
    assert_eq!(bits(Reduction::Sum, &x, &[4], &[0]), 77_i8.to_ne_bytes());
    assert_eq!(bits(Reduction::SumOfSquares, &[-3_i8, 4], &[2], &[0]), [25]);
    let product = bits(Reduction::Product, &[i64::MAX, -3], &[2], &[0]);
    assert_eq!(product, i64::MAX.wrapping_mul(-3).to_ne_bytes());
    assert_eq!(
        bits(Reduction::Mean, &[-7_i8, -8], &[2], &[0]),
        (-7_i8).to_ne_bytes()
    );
}

#[test]
fn types_that_cannot_be_reduced_are_told() {
    let x = [crate::Complex {
        real: 1.0_f32,
        imaginary: 0.0,
    }];
    let x = TensorView::new(&x, &[1]).unwrap();
    let mut out = [x.elements()[0]];
    let mut out = TensorViewMut::new(&mut out, &[]).unwrap();
    let error = reduce(Reduction::Maximum, &x, &[0], &mut out).unwrap_err();
    assert_eq!(
        error.message(),
        "expected a tensor of real numbers, found complex64"
    );
}
