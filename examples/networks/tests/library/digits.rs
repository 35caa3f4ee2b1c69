//! Short runs of the training on digits.

use std::sync::Arc;

use tfrt::{MultiThreadedWorkQueue, Runtime};
use tfrt_networks::digits::{Model, Training, data};

/// Trains on some of the digits, and returns how the loss fell, what was right, and the bits of the weights.
fn train(model: Model, n_threads: usize, n_epochs: usize) -> (Vec<f32>, usize, u64) {
    let queue = MultiThreadedWorkQueue::new(n_threads, 1).unwrap();
    let runtime = Runtime::builder().queue(Arc::new(queue)).build();
    let (for_training, for_testing) = data::split(data::all().unwrap(), 100);
    let digits = &for_training[..320.min(for_training.len())];
    let mut training = Training::new(model, 100, &runtime).unwrap();
    let n_steps = n_epochs * Training::n_steps_of_epoch(digits);
    let losses = (0..n_epochs).map(|_| training.epoch(digits, n_steps, |_| ()).unwrap());
    let losses = losses.collect();
    (
        losses,
        training.n_right(&for_testing[..72]).unwrap(),
        training.hash().unwrap(),
    )
}

#[test]
fn the_bits_are_the_same_on_any_number_of_threads() {
    for model in [Model::Mlp, Model::Cnn] {
        let on_one = train(model, 1, 2);
        assert_eq!(train(model, 2, 2), on_one, "{model:?}");
        assert_eq!(train(model, 4, 2), on_one, "{model:?}");
    }
}

#[test]
fn the_loss_falls() {
    // The first 320 digits are 0s, 1s and some 2s; so are the first to be tested with.
    let (losses, n_right, _) = train(Model::Mlp, 2, 8);
    assert!(losses.last() < losses.first(), "{losses:?}");
    assert!(n_right > 60, "{n_right} of 72");
}

#[test]
fn a_fifth_of_each_class_is_for_testing() {
    let all = data::all().unwrap();
    let n_all = all.len();
    let (for_training, for_testing) = data::split(all, 1);
    assert_eq!(
        (n_all, for_training.len() + for_testing.len()),
        (1797, 1797)
    );
    for class in 0..data::N_CLASSES {
        let count =
            |digits: &[data::Digit]| digits.iter().filter(|digit| digit.class == class).count();
        let (train, test) = (count(&for_training), count(&for_testing));
        assert!(
            (5 * test).abs_diff(train + test) <= 2,
            "{class}: {test} of {}",
            train + test
        );
    }
    assert!(
        for_testing
            .iter()
            .any(|digit| digit.unmoved().contains(&1.0))
    );
}
