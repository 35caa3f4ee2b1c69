//! Gradients, losses, steps.

use tfrt_corert::{OpAttrs, TensorHandle};
use tfrt_host::DType;

use super::{Drawn, TestBed, address, attrs, extents, none};

#[test]
fn gradients_pass_where_relu_lets_numbers_pass() {
    let bed = TestBed::new();
    let gradient = bed.dense(&[4], &[1.0_f32, 2.0, 3.0, 4.0]);
    let activation = bed.dense(&[4], &[-1.0_f32, 0.0, 0.5, 9.0]);
    let result = bed
        .one("tf.ReluGrad", [&gradient, &activation], &none())
        .unwrap();
    assert_eq!(bed.read(&result), [0.0, 0.0, 3.0, 4.0]);
    let before = address(&gradient);
    let result = bed
        .one("tf.ReluGrad", [gradient, activation.clone()], &none())
        .unwrap();
    assert_eq!(
        (address(&result), bed.read(&result)),
        (before, vec![0.0, 0.0, 3.0, 4.0])
    );
    let short = bed.dense(&[1], &[1.0_f32]);
    assert_eq!(
        bed.refusal("tf.ReluGrad", [&short, &activation], &none()),
        "tf.ReluGrad: expected inputs of one type and shape, found f32 [1] and f32 [4]"
    );
}

#[test]
fn gradients_of_biases_are_sums_of_rows() {
    let bed = TestBed::new();
    for extents in [&[3, 2][..], &[1, 3, 2], &[3, 1, 1, 2]] {
        let gradient = bed.dense(extents, &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let result = bed.one("tf.BiasAddGrad", [&gradient], &none()).unwrap();
        assert_eq!(bed.read(&result), [9.0, 12.0]);
    }
    let empty = bed.dense::<i32>(&[0, 2], &[]);
    assert_eq!(
        bed.read(&bed.one("tf.BiasAddGrad", [&empty], &none()).unwrap()),
        [0.0, 0.0]
    );
    let number = bed.dense(&[], &[1.0_f32]);
    assert!(
        bed.refusal("tf.BiasAddGrad", [&number], &none())
            .contains("a dimension or more")
    );
    assert!(
        bed.refusal(
            "tf.BiasAddGrad",
            [&empty],
            &attrs([("data_format", "NCHW")])
        )
        .contains("NHWC")
    );
}

fn plain_loss(scores: &[f64], class: usize) -> f64 {
    let sum: f64 = scores.iter().map(|x| x.exp()).sum();
    sum.ln() - scores[class]
}

#[test]
fn the_gradient_of_a_loss_is_its_slope() {
    let (bed, mut drawn) = (TestBed::new(), Drawn(5));
    let (n_rows, n_classes) = (6, 5);
    let scores: Vec<f64> = drawn
        .list(n_rows * n_classes, -10.0, 20)
        .iter()
        .map(|x| x / 4.0)
        .collect();
    let classes: Vec<i64> = (0..n_rows).map(|_| drawn.below(n_classes) as i64).collect();
    let narrow: Vec<i32> = classes
        .iter()
        .map(|class| i32::try_from(*class).unwrap())
        .collect();
    let labels = [
        bed.dense(&[n_rows], &classes),
        bed.dense(&[n_rows], &narrow),
    ];
    for dtype in [DType::F32, DType::F64, DType::F16, DType::Bf16] {
        let precision = if matches!(dtype, DType::F32 | DType::F64) {
            1e-5
        } else {
            0.05
        };
        let tensor = bed.numbers(dtype, &[n_rows, n_classes], &scores);
        for labels in &labels {
            let results = bed
                .all(
                    "tf.SparseSoftmaxCrossEntropyWithLogits",
                    [&tensor, labels],
                    &none(),
                )
                .unwrap();
            let [losses, gradient] = [0, 1].map(|index| bed.read(&results[index]));
            assert_eq!(
                (extents(&results[0]), extents(&results[1])),
                (vec![n_rows], vec![n_rows, n_classes])
            );
            for (row, scores) in scores.chunks(n_classes).enumerate() {
                let class = usize::try_from(classes[row]).unwrap();
                let wanted = plain_loss(scores, class);
                assert!(
                    (losses[row] - wanted).abs() <= precision * wanted.max(1.0),
                    "{dtype}"
                );
                for index in 0..n_classes {
                    let moved = |by: f64| {
                        let mut scores = scores.to_vec();
                        scores[index] += by;
                        plain_loss(&scores, class)
                    };
                    let slope = (moved(1e-4) - moved(-1e-4)) / 2e-4;
                    assert!(
                        (gradient[row * n_classes + index] - slope).abs() < precision.max(1e-6)
                    );
                }
            }
        }
    }
    let name = "tf.SparseSoftmaxCrossEntropyWithLogits";
    let x = bed.dense(&[1, 2], &[0.0_f32; 2]);
    for class in [-1, 2] {
        let refused = bed.refusal(name, [&x, &bed.dense(&[1], &[class])], &none());
        assert_eq!(
            refused,
            format!("the label of row 0 is {class}: expected one of 2 classes")
        );
    }
    assert!(
        bed.refusal(name, [&x, &bed.dense(&[2], &[0, 0])], &none())
            .contains("a class for each row")
    );
    assert!(
        bed.refusal(name, [&x, &bed.dense(&[1], &[0_u8])], &none())
            .contains("operand 1 (classes): expected integers of 32 or 64 bits, found u8")
    );
    let (empty, no_labels) = (bed.dense::<f32>(&[0, 2], &[]), bed.dense::<i32>(&[0], &[]));
    assert!(bed.all(name, [&empty, &no_labels], &none()).is_ok());
}

fn rates(rate: f32, momentum: Option<f32>) -> OpAttrs {
    let mut set = attrs([("learning_rate", rate)]);
    if let Some(momentum) = momentum {
        set.set("momentum", momentum).unwrap();
    }
    set
}

#[test]
fn steps_change_weights_where_they_are() {
    let bed = TestBed::new();
    for n in [0, 1, 5000, 100_000] {
        let numbers = |seed: u64| Drawn(seed).list(n, -8.0, 16);
        let (w, v, g) = (numbers(6), numbers(7), numbers(8));
        for dtype in [DType::F32, DType::F64, DType::F16, DType::Bf16] {
            let new = |list: &[f64]| bed.numbers(dtype, &[n], list);
            // Numbers that all of these types have.
            let stepped: Vec<f64> = w.iter().zip(&g).map(|(w, g)| w - 0.5 * g).collect();
            let (weights, gradient) = (new(&w), new(&g));
            let lent = bed
                .one("tfrt.sgd", [&weights, &gradient], &rates(0.5, None))
                .unwrap();
            assert_eq!(
                (bed.read(&lent), bed.read(&weights)),
                (stepped.clone(), w.clone())
            );
            let before = address(&weights);
            let own = bed.one(
                "tfrt.sgd",
                [weights, gradient.clone()],
                &attrs([("learning_rate", 0.5_f64)]),
            );
            let own = own.unwrap();
            assert_eq!(bed.read(&own), stepped);
            assert!(n == 0 || address(&own) == before);

            let velocities: Vec<f64> = v.iter().zip(&g).map(|(v, g)| 0.5 * v + g).collect();
            let stepped: Vec<f64> = w
                .iter()
                .zip(&velocities)
                .map(|(w, v)| w - 0.5 * v)
                .collect();
            let (weights, velocity) = (new(&w), new(&v));
            let set = rates(0.5, Some(0.5));
            let lent = bed
                .all("tfrt.momentum", [&weights, &velocity, &gradient], &set)
                .unwrap();
            let read = |both: &[TensorHandle]| [bed.read(&both[0]), bed.read(&both[1])];
            assert_eq!(read(&lent), [stepped.clone(), velocities.clone()]);
            assert_eq!(
                [bed.read(&weights), bed.read(&velocity)],
                [w.clone(), v.clone()]
            );
            let before = [address(&weights), address(&velocity)];
            let own = bed
                .all("tfrt.momentum", [weights, velocity, gradient], &set)
                .unwrap();
            assert_eq!(read(&own), [stepped, velocities]);
            assert!(n == 0 || [address(&own[0]), address(&own[1])] == before);
        }
    }
    let (x, y) = (bed.dense(&[1], &[0.0_f32]), bed.dense(&[2], &[0.0_f32; 2]));
    assert_eq!(
        bed.refusal("tfrt.sgd", [&x, &x], &none()),
        "tfrt.sgd must have 'learning_rate' attribute"
    );
    assert_eq!(
        bed.refusal("tfrt.momentum", [&x, &x, &x], &rates(0.1, None)),
        "tfrt.momentum must have 'momentum' attribute"
    );
    assert!(
        bed.refusal("tfrt.sgd", [&x, &y], &rates(0.1, None))
            .contains("one type and shape")
    );
    assert!(
        bed.refusal("tfrt.sgd", [&x, &x], &attrs([("learning_rate", 1_i32)]))
            .contains("expected f32")
    );
}
