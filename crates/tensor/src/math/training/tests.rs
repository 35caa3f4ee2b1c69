use proptest::prelude::*;

use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{HostContext, RequestContext};

use super::*;
use crate::math::testing::layout_of;

/// Returns the loss, in plain sums of 64 bits.
fn plain_loss(logits: &[f64], targets: &[f64], row: usize) -> f64 {
    let rows = logits.chunks(row).zip(targets.chunks(row));
    let of_row = |(logits, targets): (&[f64], &[f64])| {
        let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = logits.iter().map(|x| (x - largest).exp()).sum();
        let terms = logits.iter().zip(targets);
        terms
            .map(|(x, t)| -t * (x - largest - sum.ln()))
            .sum::<f64>()
    };
    rows.map(of_row).sum::<f64>() / (logits.len() / row) as f64
}

fn numbers(n: usize, bound: f64) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(-bound..bound, n)
}

proptest! {
    #[test]
    fn the_gradient_is_the_slope_of_the_loss(
        (rows, row, logits, drawn, layout) in (1..4_usize, 1..6_usize).prop_flat_map(|(rows, row)| {
            let layout = layout_of(vec![rows, row]);
            (Just(rows), Just(row), numbers(rows * row, 30.0), numbers(rows * row, 1.0), layout)
        })
    ) {
        let mut targets: Vec<f64> = drawn.iter().map(|x| x.abs() + 1e-3).collect();
        for row in targets.chunks_mut(row) {
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|x| *x /= sum);
        }
        // Seen through a view of any kind: repeated elements are one weight for several logits.
        let memory: Vec<f64> = logits.iter().cycle().take(layout.len).copied().collect();
        let view = layout.view(&memory);
        let extents = [rows, row];
        let mut seen = vec![0.0; rows * row];
        crate::math::elementwise::unary::<crate::math::elementwise::Identity, f64>(
            &view,
            &mut TensorViewMut::new(&mut seen, &extents).unwrap(),
        ).unwrap();
        let mut gradient = vec![0.0; rows * row];
        let loss = softmax_cross_entropy(
            &view,
            &TensorView::new(&targets, &extents).unwrap(),
            &mut TensorViewMut::new(&mut gradient, &extents).unwrap(),
        ).unwrap();
        let wanted = plain_loss(&seen, &targets, row);
        prop_assert!((loss - wanted).abs() <= 1e-12 * wanted.abs().max(1.0), "{loss} and not {wanted}");
        for index in 0..seen.len() {
            let at = |by: f64| {
                let mut moved = seen.clone();
                moved[index] += by;
                plain_loss(&moved, &targets, row)
            };
            let slope = (at(1e-4) - at(-1e-4)) / 2e-4;
            prop_assert!((gradient[index] - slope).abs() < 1e-6, "{} and not {slope}", gradient[index]);
        }
    }

    #[test]
    fn a_step_is_as_it_is_written_down(
        lists in prop::collection::vec((-9.0..9.0_f64, -9.0..9.0_f64, -9.0..9.0_f64), 0..70),
        rate in -1.0..1.0_f64,
        of_velocity in -1.0..1.0_f64,
        decay in -1.0..1.0_f64,
        is_nesterov: bool,
    ) {
        let step = Momentum { rate, of_velocity, decay, is_nesterov };
        let gradient: Vec<f64> = lists.iter().map(|list| list.0).collect();
        let mut velocity: Vec<f64> = lists.iter().map(|list| list.1).collect();
        let mut weights: Vec<f64> = lists.iter().map(|list| list.2).collect();
        momentum(step, &gradient, &mut velocity, &mut weights);
        for (index, (g, v, w)) in lists.into_iter().enumerate() {
            let pull = g + decay * w;
            let v = of_velocity * v + pull;
            let w = w - rate * if is_nesterov { pull + of_velocity * v } else { v };
            prop_assert!((velocity[index] - v).abs() < 1e-12 && (weights[index] - w).abs() < 1e-12);
        }
    }
}

#[test]
fn a_step_against_the_gradient_is_that_of_momentum_without_velocity() {
    let host = HostContext::builder(KernelRegistry::new()).build();
    let execution = ExecutionContext::new(&RequestContext::new(&host));
    for n in [0, 1, 7, 100_003] {
        let numbers = |seed: usize| -> Vec<f32> {
            let number = |index| ((index * 31 + seed * 17) % 101) as f32 - 50.0;
            (0..n).map(number).collect()
        };
        let (gradient, mut wanted, mut velocity) = (numbers(1), numbers(2), vec![0.0; n]);
        let tensor = |elements: &[f32]| {
            DenseHostTensor::from_slice(host.allocator(), &[elements.len()], elements).unwrap()
        };
        let weights = tensor(&wanted);
        let done =
            descend_into(&execution, f64::from(0.3_f32), &tensor(&gradient), &weights).unwrap();
        host.queue().await_all(&[done.into_any()]).unwrap();
        let step = Momentum {
            rate: 0.3,
            ..Momentum::default()
        };
        momentum(step, &gradient, &mut velocity, &mut wanted);
        assert_eq!(weights.read().unwrap().elements::<f32>().unwrap(), wanted);
    }
    let (long, short) = ([0.0_f32; 3], [0.0_f32; 2]);
    let [long, short] = [&long[..], &short].map(|elements| {
        DenseHostTensor::from_slice(host.allocator(), &[elements.len()], elements).unwrap()
    });
    assert!(descend_into(&execution, 1.0, &long, &short).is_err());
    assert!(descend_into(&execution, 1.0_f64, &long, &long).is_err());
}

#[test]
fn what_is_not_wanted_adds_nothing() {
    let logits = [f32::NEG_INFINITY, 0.0];
    let extents = [1, 2];
    let mut gradient = [0.0; 2];
    let loss = softmax_cross_entropy(
        &TensorView::new(&logits, &extents).unwrap(),
        &TensorView::new(&[0.0, 1.0], &extents).unwrap(),
        &mut TensorViewMut::new(&mut gradient, &extents).unwrap(),
    );
    assert_eq!((loss.unwrap(), gradient), (0.0, [0.0, 0.0]));
}

#[test]
fn shapes_that_do_not_fit_are_refused_and_empty_ones_are_not() {
    let try_shapes = |logits: &[usize], targets: &[usize], gradient: &[usize]| {
        let elements = [0.0_f32; 12];
        let n = |extents: &[usize]| extents.iter().product::<usize>();
        let mut out = [0.0; 12];
        softmax_cross_entropy(
            &TensorView::new(&elements[..n(logits)], logits).unwrap(),
            &TensorView::new(&elements[..n(targets)], targets).unwrap(),
            &mut TensorViewMut::new(&mut out[..n(gradient)], gradient).unwrap(),
        )
    };
    assert!(try_shapes(&[2, 3], &[3, 2], &[2, 3]).is_err());
    assert!(try_shapes(&[2, 3], &[2, 3], &[6]).is_err());
    assert!(try_shapes(&[], &[], &[]).is_err());
    for empty in [&[0, 3][..], &[3, 0], &[0]] {
        assert_eq!(try_shapes(empty, empty, empty).unwrap(), 0.0);
    }
    assert!(try_shapes(&[2, 2, 3], &[2, 2, 3], &[2, 2, 3]).is_ok());
}
