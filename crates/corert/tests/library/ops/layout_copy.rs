//! `tf.ConcatV2`, `tf.Pack`, `tf.Unpack`, `tf.Tile`, `tf.Pad`, `tf.PadV2`, `tf.Transpose`, `tf.Slice`, `tf.GatherV2`, `tf.OneHot`.

use tfrt_corert::TensorHandle;
use tfrt_tensor::{Bool, DType};

use super::{Caller, attrs, elements, none, shape, text};

#[test]
fn tensors_are_joined_along_any_axis() {
    let caller = Caller::new();
    let x = caller.dense(&[2, 3], &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let y = caller.dense(&[2, 3], &[7.0_f32, 8.0, 9.0, 10.0, 11.0, 12.0]);
    for axis in [1_i32, -1] {
        let axis = caller.dense(&[1], &[axis]);
        let joined = caller.call("tf.ConcatV2", &[&x, &y, &axis], &attrs!["N" => 2_i64]);
        assert_eq!(
            text(&joined),
            "DenseHostTensor dtype = f32, shape = [2, 6], values = [1.000000e+00, 2.000000e+00, 3.000000e+00, \
             7.000000e+00, 8.000000e+00, 9.000000e+00, 4.000000e+00, 5.000000e+00, 6.000000e+00, 1.000000e+01, \
             1.100000e+01, 1.200000e+01]"
        );
    }
    // Of five dimensions, too.
    let five = caller.counting(&[1, 2, 1, 1, 2]);
    let axis = caller.dense(&[], &[3_i64]);
    let joined = caller.call("tf.ConcatV2", &[&five, &five, &axis], &none());
    assert_eq!(shape(&joined), [1, 2, 1, 2, 2]);
    assert_eq!(
        elements::<f32>(&joined),
        [0.0, 1.0, 0.0, 1.0, 2.0, 3.0, 2.0, 3.0]
    );
    let zero = caller.dense(&[], &[0_i32]);
    let empty = caller.counting(&[0, 3]);
    let joined = caller.call("tf.ConcatV2", &[&empty, &x, &empty, &zero], &none());
    assert_eq!(shape(&joined), [2, 3]);
}

#[test]
fn numbers_are_joined_to_vectors() {
    let caller = Caller::new();
    let zero = caller.dense(&[], &[0_i32]);
    let (x, y) = (
        caller.dense(&[], &[0.125_f32]),
        caller.dense(&[], &[0.25_f32]),
    );
    assert_eq!(
        text(&caller.call("tf.ConcatV2", &[&x, &y, &zero], &none())),
        "DenseHostTensor dtype = f32, shape = [2], values = [1.250000e-01, 2.500000e-01]"
    );
    let [x, y] = [true, false].map(|truth| caller.dense(&[], &[Bool::from(truth)]));
    assert_eq!(
        text(&caller.call("tf.ConcatV2", &[&x, &y, &zero], &none())),
        "DenseHostTensor dtype = i1, shape = [2], values = [1, 0]"
    );
}

#[test]
fn strings_are_joined() {
    let caller = Caller::new();
    let x = caller.strings(&[2, 2], &["s00", "s01", "s02", "s03"]);
    let y = caller.strings(&[2, 3], &["s10", "s11", "s12", "s13", "s14", "s15"]);
    let nothing = caller.strings(&[2, 0], &[]);
    let axis = caller.dense(&[1], &[1_i32]);
    assert_eq!(
        text(&caller.call("tf.ConcatV2", &[&x, &y, &nothing, &axis], &none())),
        "StringHostTensor shape = [2, 5], values = [\"s00\", \"s01\", \"s10\", \"s11\", \"s12\", \"s02\", \"s03\", \
         \"s13\", \"s14\", \"s15\"]"
    );
    let zero = caller.dense(&[], &[0_i32]);
    let (x, y) = (caller.strings(&[], &["x"]), caller.strings(&[], &["y"]));
    assert_eq!(
        text(&caller.call("tf.ConcatV2", &[&x, &y, &zero], &none())),
        "StringHostTensor shape = [2], values = [\"x\", \"y\"]"
    );
    assert_eq!(
        text(&caller.call("tf.Pack", &[&x, &y], &none())),
        "StringHostTensor shape = [2], values = [\"x\", \"y\"]"
    );
}

#[test]
fn what_is_packed_is_unpacked() {
    let caller = Caller::new();
    let parts = [0.0_f32, 10.0, 20.0]
        .map(|first| caller.dense(&[2, 2], &[first, first + 1.0, first + 2.0, first + 3.0]));
    let inputs: Vec<&TensorHandle> = parts.iter().collect();
    for axis in [0_i64, 1, 2, -1, -3] {
        let packed = caller.call("tf.Pack", &inputs, &attrs!["axis" => axis]);
        let attrs = attrs!["num" => 3_i64, "axis" => axis, "T" => DType::F32];
        let unpacked = caller.try_all("tf.Unpack", &[&packed], &attrs).unwrap();
        let texts = |handles: &[TensorHandle]| handles.iter().map(text).collect::<Vec<_>>();
        assert_eq!(texts(&unpacked), texts(&parts), "{axis}");
    }
    let words = caller.strings(&[2], &["one", "two"]);
    let words = caller.try_all("tf.Unpack", &[&words], &attrs!["num" => 2_i64]);
    let words: Vec<String> = words.unwrap().iter().map(text).collect();
    assert_eq!(
        words,
        [
            "StringHostTensor shape = [], values = [\"one\"]",
            "StringHostTensor shape = [], values = [\"two\"]"
        ]
    );
    let empty = caller.counting(&[0, 3]);
    let none_left = caller.try_all("tf.Unpack", &[&empty], &attrs!["num" => 0_i64]);
    assert!(none_left.unwrap().is_empty());
}

#[test]
fn what_can_not_be_unpacked_is_refused() {
    let caller = Caller::new();
    let x = caller.counting(&[2, 3]);
    let error = |attrs: &tfrt_corert::OpAttrs| caller.error("tf.Unpack", &[&x], attrs);
    assert_eq!(error(&none()), "tf.Unpack must have 'num' attribute");
    assert_eq!(
        error(&attrs!["num" => 3_i64]),
        "tf.Unpack: expected 2 results, the extent of dimension 0, found 3"
    );
    for num in [-1, i64::MAX] {
        assert_eq!(
            error(&attrs!["num" => num]),
            format!(
                "tf.Unpack: expected attribute 'num' to be a number of results, 0 to 65536, found {num}"
            )
        );
    }
    assert_eq!(
        error(&attrs!["num" => 2_i64, "axis" => 2_i64]),
        "tf.Unpack: expected an axis of 2 dimensions, found 2"
    );
}

#[test]
fn what_can_not_be_joined_is_refused() {
    let caller = Caller::new();
    let zero = caller.dense(&[], &[0_i32]);
    let x = caller.counting(&[2, 3]);
    let error = |y: &TensorHandle| caller.error("tf.ConcatV2", &[&x, y, &zero], &none());
    assert_eq!(
        error(&caller.dense(&[2, 3], &[0_i32; 6])),
        "tf.ConcatV2: incompatible dtypes: f32 [2, 3] and i32 [2, 3]"
    );
    assert_eq!(
        error(&caller.counting(&[2])),
        "tf.ConcatV2: expected operands of 2 dimensions, found 1"
    );
    assert_eq!(
        error(&caller.counting(&[2, 4])),
        "tf.ConcatV2: expected extents that agree, found 3 and 4"
    );
    let two = caller.dense(&[], &[2_i32]);
    assert_eq!(
        caller.error("tf.ConcatV2", &[&x, &x, &two], &none()),
        "tf.ConcatV2: expected an axis of 2 dimensions, found 2"
    );
    assert_eq!(
        caller.error("tf.ConcatV2", &[&x], &none()),
        "tf.ConcatV2 expects 2 or more inputs, found 1"
    );
    // More elements than any memory has.
    let large = caller.call(
        "tf.Reshape",
        &[
            &caller.counting(&[0]),
            &caller.dense(&[2], &[0_i64, i64::MAX]),
        ],
        &none(),
    );
    let one = caller.dense(&[], &[1_i32]);
    let error = caller.error("tf.ConcatV2", &[&large, &large, &large, &one], &none());
    assert!(error.starts_with("tf.ConcatV2"), "{error}");
}

#[test]
fn tensors_are_stacked_along_a_new_axis() {
    let caller = Caller::new();
    let (x, y) = (
        caller.dense(&[2], &[1_i64, 2]),
        caller.dense(&[2], &[3_i64, 4]),
    );
    let stacked = caller.call("tf.Pack", &[&x, &y], &attrs!["N" => 2_i64]);
    assert_eq!(
        (shape(&stacked), elements::<i64>(&stacked)),
        (vec![2, 2], vec![1, 2, 3, 4])
    );
    for axis in [1_i64, -1] {
        let stacked = caller.call("tf.Pack", &[&x, &y], &attrs!["axis" => axis]);
        assert_eq!(
            (shape(&stacked), elements::<i64>(&stacked)),
            (vec![2, 2], vec![1, 3, 2, 4])
        );
    }
    assert_eq!(
        caller.error("tf.Pack", &[&x, &y], &attrs!["axis" => 2_i64]),
        "tf.Pack: expected an axis of 2 dimensions, found 2"
    );
    assert_eq!(
        caller.error("tf.Pack", &[&x, &caller.counting(&[2])], &none()),
        "tf.Pack: incompatible dtypes: i64 [2] and f32 [2]"
    );
}

#[test]
fn tensors_are_repeated() {
    let caller = Caller::new();
    let x = caller.dense(&[2, 3], &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let twice = caller.dense(&[2], &[2_i32, 2]);
    let tiled = caller.call("tf.Tile", &[&x, &twice], &none());
    let first = [
        1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 4.0, 5.0, 6.0_f32,
    ];
    assert_eq!(shape(&tiled), [4, 6]);
    assert_eq!(elements::<f32>(&tiled), [first, first].concat());
    let x = caller.strings(&[2, 3], &["a", "b", "c", "d", "e", "f"]);
    let tiled = caller.call("tf.Tile", &[&x, &twice], &none());
    let start = "StringHostTensor shape = [4, 6], values = [\"a\", \"b\", \"c\", \"a\", \"b\", \"c\", \"d\", \"e\", \
                 \"f\", \"d\", \"e\", \"f\", \"a\", \"b\", \"c\"";
    assert!(text(&tiled).starts_with(start), "{}", text(&tiled));
    let truths = [true, false, true, false, true, false].map(Bool::from);
    let tiled = caller.call(
        "tf.Tile",
        &[&caller.dense(&[2, 3], &truths), &twice],
        &none(),
    );
    let start = "DenseHostTensor dtype = i1, shape = [4, 6], values = [1, 0, 1, 1, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0";
    assert!(text(&tiled).starts_with(start), "{}", text(&tiled));
    let none_of_it = caller.dense(&[2], &[0_i64, 5]);
    assert_eq!(
        shape(&caller.call("tf.Tile", &[&x, &none_of_it], &none())),
        [0, 15]
    );

    let x = caller.counting(&[2, 3]);
    for (multiples, message) in [
        (
            caller.dense(&[1, 2], &[1_i32, 1]),
            "operand 1: expected 1 dimensions, found 2",
        ),
        (caller.dense(&[1], &[1_i32]), "expected 2 repeats, found 1"),
        (
            caller.dense(&[2], &[1.0_f32, 1.0]),
            "operand 1 (repeats): expected integers of 32 or 64 bits, found f32",
        ),
        (
            caller.dense(&[2], &[1_i32, -1]),
            "expected no negative repeats, found -1",
        ),
    ] {
        let error = caller.error("tf.Tile", &[&x, &multiples], &none());
        assert_eq!(error, format!("tf.Tile: {message}"));
    }
    let many = caller.dense(&[2], &[i64::MAX, i64::MAX]);
    for x in [&x, &caller.strings(&[1, 1], &["a"])] {
        let error = caller.error("tf.Tile", &[x, &many], &none());
        assert!(
            ["the largest", "does not fit any memory", "Cannot allocate"]
                .iter()
                .any(|words| error.contains(words)),
            "{error}"
        );
    }
}

#[test]
fn tensors_are_padded_as_the_paddings_say() {
    let caller = Caller::new();
    let x = caller.dense(&[1, 2, 2, 1], &[0.5_f32; 4]);
    let paddings = caller.dense(&[4, 2], &[0_i32, 0, 3, 3, 3, 3, 0, 0]);
    let padded = caller.call("tf.Pad", &[&x, &paddings], &none());
    assert_eq!(shape(&padded), [1, 8, 8, 1]);
    let inside = |place: usize| (3..5).contains(&(place / 8)) && (3..5).contains(&(place % 8));
    let wanted: Vec<f32> = (0..64)
        .map(|place| if inside(place) { 0.5 } else { 0.0 })
        .collect();
    assert_eq!(elements::<f32>(&padded), wanted);
    // Others than the three of the original's metadata, of other ranks, and with other numbers around.
    let x = caller.dense(&[2], &[1_i64, 2]);
    let paddings = caller.dense(&[1, 2], &[1_i64, 2]);
    let padded = caller.call("tf.Pad", &[&x, &paddings], &none());
    assert_eq!(elements::<i64>(&padded), [0, 1, 2, 0, 0]);
    let nine = caller.dense(&[], &[9_i64]);
    let padded = caller.call("tf.PadV2", &[&x, &paddings, &nine], &none());
    assert_eq!(elements::<i64>(&padded), [9, 1, 2, 9, 9]);

    assert_eq!(
        caller.error("tf.Pad", &[&x, &caller.dense(&[2], &[1_i32, 2])], &none()),
        "tf.Pad: operand 1: expected integers of shape [1, 2], a row for each dimension, found [2]"
    );
    assert_eq!(
        caller.error(
            "tf.Pad",
            &[&x, &caller.dense(&[1, 2], &[-1_i32, 2])],
            &none()
        ),
        "tf.Pad: operand 1: expected no negative integers, found [-1, 2]"
    );
    assert_eq!(
        caller.error(
            "tf.PadV2",
            &[&x, &paddings, &caller.dense(&[], &[1.0_f32])],
            &none()
        ),
        "tf.PadV2: incompatible dtypes: i64 [2] and f32 []"
    );
    for paddings in [[i64::MAX, i64::MAX], [1 << 60, 0]] {
        let paddings = caller.dense(&[1, 2], &paddings);
        caller.error("tf.Pad", &[&x, &paddings], &none());
    }
}

#[test]
fn dimensions_change_places() {
    let caller = Caller::new();
    let x = caller.counting(&[2, 3]);
    let turned = caller.call(
        "tf.Transpose",
        &[&x, &caller.dense(&[2], &[1_i32, 0])],
        &none(),
    );
    assert_eq!(shape(&turned), [3, 2]);
    assert_eq!(elements::<f32>(&turned), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    let strings = caller.strings(&[2, 2], &["a", "b", "c", "d"]);
    let turned = caller.call(
        "tf.Transpose",
        &[&strings, &caller.dense(&[2], &[-1_i32, 0])],
        &none(),
    );
    assert_eq!(
        text(&turned),
        "StringHostTensor shape = [2, 2], values = [\"a\", \"c\", \"b\", \"d\"]"
    );
    for (order, message) in [
        (
            caller.dense(&[2], &[0_i32, 2]),
            "expected an axis of 2 dimensions, found 2",
        ),
        (
            caller.dense(&[2], &[0_i32, 0]),
            "expected each axis once, found 0 again",
        ),
        (
            caller.dense(&[1], &[0_i32]),
            "expected an order of 2 dimensions, found 1",
        ),
    ] {
        let error = caller.error("tf.Transpose", &[&x, &order], &none());
        assert_eq!(error, format!("tf.Transpose: {message}"));
    }
}

#[test]
fn parts_are_cut_out() {
    let caller = Caller::new();
    let x = caller.counting(&[3, 4]);
    let part = |starts: [i64; 2], sizes: [i64; 2]| {
        let (starts, sizes) = (caller.dense(&[2], &starts), caller.dense(&[2], &sizes));
        caller.try_all("tf.Slice", &[&x, &starts, &sizes], &none())
    };
    let cut = part([1, 2], [2, -1]).unwrap();
    assert_eq!(shape(&cut[0]), [2, 2]);
    assert_eq!(elements::<f32>(&cut[0]), [6.0, 7.0, 10.0, 11.0]);
    assert_eq!(shape(&part([3, 0], [0, 4]).unwrap()[0]), [0, 4]);
    for (starts, sizes) in [
        ([-1, 0], [1, 1]),
        ([0, 2], [3, 3]),
        ([4, 0], [0, 4]),
        ([0, 0], [1, -2]),
        ([i64::MAX, 0], [i64::MAX, 1]),
        ([4, 0], [-1, 1]),
    ] {
        let error = part(starts, sizes).unwrap_err();
        assert!(error.message().contains("are not in dimension"), "{error}");
    }
    let one = caller.dense(&[1], &[0_i32]);
    assert_eq!(
        caller.error("tf.Slice", &[&x, &one, &one], &none()),
        "tf.Slice: expected a place and an extent for each of 2 dimensions, found 1 and 1"
    );
}

#[test]
fn parts_are_gathered() {
    let caller = Caller::new();
    let x = caller.counting(&[2, 3]);
    let positions = caller.dense(&[2, 2], &[2_i32, 0, 1, 2]);
    let last = caller.dense(&[], &[-1_i32]);
    let found = caller.call(
        "tf.GatherV2",
        &[&x, &positions, &last],
        &attrs!["batch_dims" => 0_i64],
    );
    assert_eq!(shape(&found), [2, 2, 2]);
    assert_eq!(
        elements::<f32>(&found),
        [2.0, 0.0, 1.0, 2.0, 5.0, 3.0, 4.0, 5.0]
    );
    let words = caller.strings(&[3], &["a", "b", "c"]);
    let found = caller.call(
        "tf.GatherV2",
        &[&words, &positions, &caller.dense(&[], &[0_i64])],
        &none(),
    );
    assert_eq!(
        text(&found),
        "StringHostTensor shape = [2, 2], values = [\"c\", \"a\", \"b\", \"c\"]"
    );
    for outside in [-1_i64, 3, i64::MAX] {
        let positions = caller.dense(&[2], &[0, outside]);
        let error = caller.error("tf.GatherV2", &[&x, &positions, &last], &none());
        let said = error.starts_with("tf.GatherV2: ") && error.contains(&outside.to_string());
        assert!(said, "{error}");
    }
    let batches = attrs!["batch_dims" => 1_i64];
    let found = caller.call("tf.GatherV2", &[&x, &positions, &last], &batches);
    assert_eq!(shape(&found), [2, 2]);
    assert_eq!(elements::<f32>(&found), [2.0, 0.0, 4.0, 5.0]);
    let first = caller.dense(&[], &[0_i32]);
    assert_eq!(
        caller.error("tf.GatherV2", &[&x, &positions, &first], &batches),
        "tf.GatherV2: expected attribute 'batch_dims' to be no more than axis 0 and the 2 dimensions of indices, found 1"
    );
}

#[test]
fn positions_become_rows() {
    let caller = Caller::new();
    let positions = caller.dense(&[4], &[1_i32, 0, 7, -1]);
    let [depth, on, off] = [2_i32, 5, 3].map(|number| caller.dense(&[], &[number]));
    let rows = caller.call(
        "tf.OneHot",
        &[&positions, &depth, &on, &off],
        &attrs!["TI" => DType::I32],
    );
    assert_eq!(shape(&rows), [4, 2]);
    assert_eq!(elements::<i32>(&rows), [3, 5, 5, 3, 3, 3, 3, 3]);
    let columns = caller.call(
        "tf.OneHot",
        &[&positions, &depth, &on, &off],
        &attrs!["axis" => 0_i64],
    );
    assert_eq!(shape(&columns), [2, 4]);
    assert_eq!(elements::<i32>(&columns), [3, 5, 3, 3, 5, 3, 3, 3]);
    let negative = caller.dense(&[], &[-1_i32]);
    assert_eq!(
        caller.error("tf.OneHot", &[&positions, &negative, &on, &off], &none()),
        "tf.OneHot: expected a depth of 0 or more, found -1"
    );
    let other = caller.dense(&[], &[1.0_f32]);
    assert_eq!(
        caller.error("tf.OneHot", &[&positions, &depth, &on, &other], &none()),
        "tf.OneHot: incompatible dtypes: i32 [] and f32 []"
    );
}

/// Calls of the same types and shapes are told apart by small integers and by attributes.
#[test]
fn what_differs_in_values_alone_has_other_results() {
    let caller = Caller::new();
    let (x, y) = (caller.counting(&[2, 2]), caller.counting(&[2, 2]));
    let axes = [0_i32, 1].map(|axis| caller.dense(&[], &[axis]));
    let sizes = [[1_i32, 4], [4, 1]].map(|size| caller.dense(&[2], &size));
    let flags = [false, true].map(|keeps| attrs!["axes" => [1_i32], "keep_dims" => keeps]);
    for _ in 0..2 {
        for (axis, wanted) in axes.iter().zip([[4, 2], [2, 4]]) {
            let joined = caller.call("tf.ConcatV2", &[&x, &y, axis], &none());
            assert_eq!(shape(&joined), wanted);
        }
        for (size, wanted) in sizes.iter().zip([[1, 4], [4, 1]]) {
            let reshaped = caller.call("tf.Reshape", &[&x, size], &none());
            assert_eq!(shape(&reshaped), wanted);
        }
        for (flags, wanted) in flags.iter().zip([&[2][..], &[2, 1]]) {
            let sums = caller.call("tf.Sum", &[&x], flags);
            assert_eq!(shape(&sums), wanted);
        }
    }
}
