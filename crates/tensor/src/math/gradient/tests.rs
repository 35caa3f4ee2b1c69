use proptest::prelude::*;

use super::*;
use crate::math::normalize::{Affine, rows};
use crate::math::testing::layout_of;

/// Returns the gradient of the sum of `g` times a function's results, by small differences.
fn slopes(x: &[f64], g: &[f64], f: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    let loss = |x: &[f64]| -> f64 { f(x).iter().zip(g).map(|(y, g)| y * g).sum() };
    let slope = |index: usize| {
        let step = |size: f64| {
            let mut x = x.to_vec();
            x[index] += size;
            loss(&x)
        };
        (step(1e-5) - step(-1e-5)) / 2e-5
    };
    (0..x.len()).map(slope).collect()
}

fn near(found: &[f64], wanted: &[f64]) -> Result<(), TestCaseError> {
    prop_assert_eq!(found.len(), wanted.len());
    for (found, wanted) in found.iter().zip(wanted) {
        prop_assert!(
            (found - wanted).abs() < 1e-5 * (1.0 + wanted.abs()),
            "{} {}",
            found,
            wanted
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn gradients_are_slopes(
        (layout, other) in (0..4_usize, 0..6_usize).prop_flat_map(|(n, row)| {
            (layout_of(vec![n, row]), layout_of(vec![n, row]))
        }),
        values in prop::collection::vec(-3.0..3.0_f64, 256),
        labels in prop::collection::vec(0..60_usize, 4),
    ) {
        let [n, row] = [layout.extents[0], layout.extents[1]];
        let shape = [n, row];
        let (view, given) = (layout.view(&values), other.view(&values[100..]));
        let (x, g): (Vec<f64>, Vec<f64>) = (view.iter().collect(), given.iter().collect());
        let mut out = vec![0.0; n * row];
        for kind in [SoftmaxKind::Softmax, SoftmaxKind::LogSoftmax] {
            let f = |x: &[f64]| {
                let mut y = x.to_vec();
                let x = TensorView::new(x, &shape).unwrap();
                crate::math::softmax::softmax(kind, &x, &mut TensorViewMut::new(&mut y, &shape).unwrap()).unwrap();
                y
            };
            let y = f(&x);
            let result = TensorView::new(&y, &shape).unwrap();
            softmax(kind, &result, &given, &mut TensorViewMut::new(&mut out, &shape).unwrap()).unwrap();
            near(&out, &slopes(&x, &g, f))?;
        }
        let scale = &values[200..200 + row];
        let f = |x: &[f64], scale: &[f64]| {
            let mut y = x.to_vec();
            let affine = Affine { scale: Some(scale), shift: None };
            let x = TensorView::new(x, &shape).unwrap();
            rows(&x, 0.1, affine, &mut TensorViewMut::new(&mut y, &shape).unwrap()).unwrap();
            y
        };
        let found = layer_norm(&given, &view, 0.1, Some(scale), &mut TensorViewMut::new(&mut out, &shape).unwrap()).unwrap();
        near(&out, &slopes(&x, &g, |x| f(x, scale)))?;
        near(&found.scale, &slopes(scale, &g, |scale| f(&x, scale)))?;
        let shifts: Vec<f64> = (0..row).map(|column| (0..n).map(|index| g[index * row + column]).sum()).collect();
        near(&found.shift, &shifts)?;
        layer_norm(&given, &view, 0.1, None, &mut TensorViewMut::new(&mut out, &shape).unwrap()).unwrap();
        near(&out, &slopes(&x, &g, |x| f(x, &vec![1.0; row])))?;
        if row == 0 {
            return Ok(());
        }
        let labels: Vec<i32> = labels[..n].iter().map(|label| i32::try_from(label % row).unwrap()).collect();
        let named = TensorView::new(&labels, &[n]).unwrap();
        let f = |x: &[f64]| {
            let mut loss = vec![0.0; n];
            cross_entropy(&TensorView::new(x, &shape).unwrap(), &named, &mut TensorViewMut::new(&mut loss, &[n]).unwrap()).unwrap();
            loss
        };
        let exact: Vec<f64> = (0..n).map(|index| {
            let own = &x[index * row..][..row];
            own.iter().map(|x| x.exp()).sum::<f64>().ln() - own[usize::try_from(labels[index]).unwrap()]
        }).collect();
        near(&f(&x), &exact)?;
        let weights = &values[..n];
        cross_entropy_gradient(
            &view, &named, &TensorView::new(weights, &[n]).unwrap(),
            &mut TensorViewMut::new(&mut out, &shape).unwrap(),
        ).unwrap();
        near(&out, &slopes(&x, weights, f))?;
    }
}

#[test]
fn what_does_not_fit_is_told() {
    let x = TensorView::new(&[1.0_f32, 2.0], &[1, 2]).unwrap();
    let mut out = [0.0; 2];
    let mut loss = TensorViewMut::new(&mut out[..1], &[1]).unwrap();
    let labels: [TensorView<'_, i64>; 3] =
        [&[0], &[2], &[-1]].map(|label| TensorView::new(label, &[1]).unwrap());
    let [zero, two, minus_one] = &labels;
    let error = cross_entropy(&x, two, &mut loss).unwrap_err();
    assert_eq!(
        error.message(),
        "the label of row 0 is 2: expected one of 2 classes"
    );
    assert!(cross_entropy(&x, minus_one, &mut loss).is_err());
    assert!(cross_entropy(&label_free(), zero, &mut loss).is_err());
    let mut out = TensorViewMut::new(&mut out, &[2]).unwrap();
    assert!(softmax(SoftmaxKind::Softmax, &x, &x, &mut out).is_err());
    assert!(layer_norm(&x, &x, 0.0, None, &mut out).is_err());
    assert!(cross_entropy_gradient(&x, zero, &x, &mut out).is_err());
    let large = [1 << 40, 0, 1 << 40];
    let x = TensorView::<f32>::new(&[], &large).unwrap();
    let mut out = TensorViewMut::new(&mut [], &large).unwrap();
    layer_norm(&x, &x, 0.0, None, &mut out).unwrap();
    softmax(SoftmaxKind::LogSoftmax, &x, &x, &mut out).unwrap();
}

fn label_free() -> TensorView<'static, f32> {
    TensorView::new(&[1.0], &[]).unwrap()
}
