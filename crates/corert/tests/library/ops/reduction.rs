//! `tf.Mean`, `tf.Max`, `tf.Sum`, `tf.FusedBatchNormV3`.

use tfrt_tensor::DType;

use super::{Caller, address, attrs, elements, none, settled, shape, tensor, text};
use crate::calls::gate;

#[test]
fn means_are_taken_over_the_dimensions_that_are_named() {
    let caller = Caller::new();
    let x = caller.dense(&[1, 2, 2, 1], &[1.0_f32, 2.0, 3.0, 4.0]);
    let mean = |indices: &[i32], keep: bool| {
        let indices = caller.dense(&[indices.len()], indices);
        let attrs = attrs!["T" => DType::F32, "Tidx" => DType::I32, "keep_dims" => keep];
        caller.call("tf.Mean", &[&x, &indices], &attrs)
    };
    assert_eq!(
        text(&mean(&[1, 2], false)),
        "DenseHostTensor dtype = f32, shape = [1, 1], values = [2.500000e+00]"
    );
    assert_eq!(
        text(&mean(&[1, -2], true)),
        "DenseHostTensor dtype = f32, shape = [1, 1, 1, 1], values = [2.500000e+00]"
    );
    assert_eq!(elements::<f32>(&mean(&[1], false)), [2.0, 3.0]);
    assert_eq!(elements::<f32>(&mean(&[-2], false)), [1.5, 3.5]);
    assert_eq!(shape(&mean(&[], false)), [1, 2, 2, 1]);
    assert_eq!(elements::<f32>(&mean(&[], false)), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(shape(&mean(&[0, 1, 2, 3], false)), [0_usize; 0]);
    let x = caller.dense(&[1, 2, 2, 1], &[1_i32, 2, 3, 4]);
    let indices = caller.dense(&[2], &[1_i32, 2]);
    assert_eq!(
        text(&caller.call("tf.Mean", &[&x, &indices], &none())),
        "DenseHostTensor dtype = i32, shape = [1, 1], values = [2]"
    );
    let largest = caller.call("tf.Max", &[&x, &caller.dense(&[], &[1_i64])], &none());
    assert_eq!(shape(&largest), [1, 2, 1]);
    assert_eq!(elements::<i32>(&largest), [3, 4]);
}

#[test]
fn sums_are_taken_over_the_dimensions_of_an_input_or_of_an_attribute() {
    let caller = Caller::new();
    let x = caller.dense(&[2, 3], &[1_i32, 2, 3, 4, 5, 6]);
    for axes in [&[][..], &[0], &[-1], &[1, 0]] {
        let indices = caller.dense(&[axes.len()], axes);
        for keep in [false, true] {
            let by_input = attrs!["Tidx" => DType::I32, "keep_dims" => keep];
            let by_input = caller.call("tf.Sum", &[&x, &indices], &by_input);
            let by_attribute = attrs!["axes" => axes, "keep_dims" => keep];
            let by_attribute = caller.call("tf.Sum", &[&x], &by_attribute);
            assert_eq!(text(&by_input), text(&by_attribute), "{axes:?} {keep}");
        }
    }
    let indices = caller.dense(&[], &[0_i64]);
    let sums = caller.call("tf.Sum", &[&x, &indices], &none());
    assert_eq!(elements::<i32>(&sums), [5, 7, 9]);
    assert_eq!(
        caller.error("tf.Sum", &[&x, &indices], &attrs!["axes" => [0_i32]]),
        "tf.Sum: expected 'axes' in operand 1 or as an attribute, found both"
    );
    assert_eq!(
        caller.error("tf.Sum", &[&x, &caller.dense(&[1], &[2_i32])], &none()),
        "tf.Sum: expected an axis of 2 dimensions, found 2"
    );
}

#[test]
fn long_means_are_those_of_short_ones() {
    let caller = Caller::new();
    let x = caller.counting(&[300, 7, 100]);
    let indices = caller.dense(&[1], &[1_i32]);
    let mean = elements::<f32>(&caller.call("tf.Mean", &[&x, &indices], &none()));
    for (index, mean) in mean.iter().enumerate() {
        let first = (index / 100 * 700 + index % 100) as f32;
        assert_eq!(*mean, first + 300.0, "{index}");
    }
}

#[test]
fn dimensions_that_are_wrong_are_refused() {
    let caller = Caller::new();
    let x = caller.counting(&[2, 3]);
    for index in [2_i32, -3, i32::MIN] {
        assert_eq!(
            caller.error("tf.Mean", &[&x, &caller.dense(&[1], &[index])], &none()),
            format!("tf.Mean: expected an axis of 2 dimensions, found {index}")
        );
    }
    assert_eq!(
        caller.error("tf.Mean", &[&x, &caller.dense(&[2], &[1_i32, -1])], &none()),
        "tf.Mean: expected each axis once, found -1 again"
    );
    assert_eq!(
        caller.error("tf.Mean", &[&x, &caller.dense(&[1, 1], &[1_i32])], &none()),
        "tf.Mean: expected a list of axes, found 2 dimensions"
    );
    assert_eq!(
        caller.error("tf.Mean", &[&x, &x], &none()),
        "tf.Mean: operand 1 (axes): expected integers of 32 or 64 bits, found f32"
    );
    let nothing = caller.counting(&[0, 3]);
    let zero = caller.dense(&[1], &[0_i32]);
    let lowest = caller.call("tf.Max", &[&nothing, &zero], &none());
    assert_eq!(elements::<f32>(&lowest), [f32::NEG_INFINITY; 3]);
    let one = caller.dense(&[1], &[1_i32]);
    assert_eq!(
        shape(&caller.call("tf.Max", &[&nothing, &one], &none())),
        [0]
    );
    let strings = caller.strings(&[1], &["a"]);
    let error = caller.error("tf.Max", &[&strings, &zero], &none());
    assert!(error.starts_with("tf.Max: operand 0 is wrong: "), "{error}");
}

#[test]
fn axes_that_come_later_differ_too() {
    let caller = Caller::new();
    let x = caller.counting(&[2, 3]);
    let twice = caller.dense(&[2], &[0_i32, -2]);
    let expected = "tf.Sum: expected each axis once, found -2 again";
    assert_eq!(caller.error("tf.Sum", &[&x, &twice], &none()), expected);
    // The call is made before the axes are known, and says the same of them.
    let (gate, promises) = gate(&caller.runtime, true);
    let later = gate.call_one(&caller.context, [&twice], &none()).unwrap();
    let sum = caller.runtime.op("tf.Sum", &caller.runtime.cpu()).unwrap();
    let sum = sum
        .call_one(&caller.context, [&x, &later], &none())
        .unwrap();
    promises.recv().unwrap().resolve(tensor(&twice).clone());
    settled(&sum);
    assert_eq!(sum.error().unwrap().message(), expected);
}

#[test]
fn channels_are_normalised_by_their_statistics() {
    let caller = Caller::new();
    let x = caller.dense(&[1, 2, 2, 1], &[1.0_f32, -1.0, -1.0, 1.0]);
    let number = |value: f32| caller.dense(&[1, 1, 1, 1], &[value]);
    let inputs = [x, number(1.0), number(0.0), number(0.0), number(1.0)];
    let inputs: Vec<_> = inputs.iter().collect();
    let attrs = attrs![
        "T" => DType::F32, "U" => DType::F32, "epsilon" => 0.0_f32, "data_format" => "NHWC", "is_training" => false
    ];
    let results = caller
        .try_all("tf.FusedBatchNormV3", &inputs, &attrs)
        .unwrap();
    assert_eq!(results.len(), 6);
    assert_eq!(
        text(&results[0]),
        "DenseHostTensor dtype = f32, shape = [1, 2, 2, 1], values = [1.000000e+00, -1.000000e+00, -1.000000e+00, \
         1.000000e+00]"
    );
    assert_eq!(address(&results[1]), address(inputs[3]));
    assert_eq!(address(&results[4]), address(inputs[4]));
    assert_eq!(shape(&results[5]), [0]);

    let training = attrs!["is_training" => true];
    assert_eq!(
        caller.error("tf.FusedBatchNormV3", &inputs, &training),
        "BatchNorm training not currently supported"
    );
    let other = attrs!["data_format" => "CHWN"];
    assert_eq!(
        caller.error("tf.FusedBatchNormV3", &inputs, &other),
        "tf.FusedBatchNormV3: expected attribute 'data_format' to be NHWC or NCHW, found 'CHWN'"
    );
    let two = caller.dense(&[2], &[1.0_f32, 1.0]);
    let wrong = [inputs[0], &two, &two, &two, &two];
    assert_eq!(
        caller.error("tf.FusedBatchNormV3", &wrong, &none()),
        "tf.FusedBatchNormV3: parameter does not match the input channel number: expected scale, offset, mean and \
         variance with an element for each channel of f32 [1, 2, 2, 1], found f32 [2]"
    );
}

#[test]
fn normalisation_in_place_gives_the_same() {
    let caller = Caller::new();
    let values: Vec<f64> = (0..30_000)
        .map(|index| f64::from(index % 97) / 7.0)
        .collect();
    let list = |start: f64| caller.dense(&[3], &[start, start + 1.0, start + 2.0]);
    let lists = [list(2.0), list(-1.0), list(0.5), list(3.0)];
    let x = caller.dense(&[100, 100, 3], &values);
    let op = caller
        .runtime
        .op("tf.FusedBatchNormV3", &caller.runtime.cpu())
        .unwrap();
    let lent = [&x, &lists[0], &lists[1], &lists[2], &lists[3]];
    let kept = op.call(&caller.context, lent, &none()).unwrap();
    settled(&kept[0]);
    assert_eq!(elements::<f64>(&x), values);
    for (index, (value, found)) in values.iter().zip(elements::<f64>(&kept[0])).enumerate() {
        let [scale, shift, mean, variance] =
            [2.0, -1.0, 0.5, 3.0].map(|start| start + (index % 3) as f64);
        // An epsilon is an f32.
        let wanted = (value - mean) / (variance + f64::from(1.0e-4_f32)).sqrt() * scale + shift;
        assert!((found - wanted).abs() < 1e-12, "{index}: {found} {wanted}");
    }
    let before = address(&x);
    let [scale, offset, mean, variance] = lists;
    let given = [x, scale, offset, mean, variance];
    let moved = op.call(&caller.context, given, &none()).unwrap();
    settled(&moved[0]);
    assert_eq!(address(&moved[0]), before);
    assert_eq!(elements::<f64>(&moved[0]), elements::<f64>(&kept[0]));
}

#[test]
fn the_axis_of_positions_is_an_attribute_or_an_input() {
    let caller = Caller::new();
    let x = caller.dense(&[2, 3], &[1.0_f32, 5.0, 2.0, 7.0, 0.0, 7.5]);
    let axis = |axis: i32| caller.dense(&[], &[axis]);
    for dtype in [DType::I32, DType::I64] {
        let of_type = || attrs!["output_type" => dtype, "Tidx" => DType::I32];
        let mut by_attribute = of_type();
        by_attribute.set("axis", -1_i32).unwrap();
        assert_eq!(
            text(&caller.call("tf.ArgMax", &[&x, &axis(-1)], &of_type())),
            text(&caller.call("tf.ArgMax", &[&x], &by_attribute)),
        );
    }
    assert_eq!(
        text(&caller.call("tf.ArgMax", &[&x, &axis(1)], &none())),
        "DenseHostTensor dtype = i64, shape = [2], values = [1, 2]"
    );
    assert_eq!(
        caller.error("tf.ArgMax", &[&x, &axis(0)], &attrs!["axis" => 0_i32]),
        "tf.ArgMax: expected 'axis' in operand 1 or as an attribute, found both"
    );
    assert_eq!(
        caller.error("tf.ArgMax", &[&x, &axis(2)], &none()),
        "tf.ArgMax: expected an axis of 2 dimensions, found 2"
    );
}

#[test]
fn attributes_of_graphs_are_taken_if_they_say_the_usual() {
    let caller = Caller::new();
    let x = caller.dense(&[2], &[1.5_f32, -2.5]);
    let cast = |truncate: bool| attrs!["DstT" => DType::I32, "Truncate" => truncate];
    let integers = caller.call("tf.Cast", &[&x], &cast(false));
    assert_eq!(elements::<i32>(&integers), [1, -2]);
    assert_eq!(
        caller.error("tf.Cast", &[&x], &cast(true)),
        "tf.Cast: expected attribute 'Truncate' to be false, found true"
    );
    let fails = |fails: bool| attrs!["incompatible_shape_error" => fails];
    let same = caller.call("tf.Equal", &[&x, &x], &fails(true));
    assert_eq!(shape(&same), [2]);
    assert_eq!(
        caller.error("tf.Equal", &[&x, &x], &fails(false)),
        "tf.Equal: expected attribute 'incompatible_shape_error' to be true, found false"
    );
}
