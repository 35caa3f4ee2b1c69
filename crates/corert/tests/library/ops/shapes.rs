//! `tf.Const`, `tf.Shape`, `tf.ZerosLike`, `tf.Fill`, `tf.ExpandDims`, `tf.Squeeze`, `tf.Reshape`.

use tfrt_tensor::{Bool, Complex, DType, DenseHostTensor, F16};

use tfrt_corert::{OpAttrs, TensorHandle};

use super::{Caller, address, attrs, elements, none, settled, shape, text};

#[test]
fn constants_are_the_attribute() {
    let caller = Caller::new();
    let allocator = caller.runtime.host().allocator();
    let value = DenseHostTensor::from_slice(allocator, &[5], &[-1.0_f32, -0.5, 0.0, 0.5, 1.0]);
    let value = value.unwrap();
    let attrs = attrs!["value" => value.clone(), "dtype" => DType::F32];
    let constant = caller.call("tf.Const", &[], &attrs);
    assert_eq!(
        text(&constant),
        "DenseHostTensor dtype = f32, shape = [5], values = [-1.000000e+00, -5.000000e-01, \
         0.000000e+00, 5.000000e-01, 1.000000e+00]"
    );
    assert_eq!(address(&constant), value.buffer().address());
    // Nobody writes over what the attribute holds.
    let add = caller
        .runtime
        .op("tf.AddV2", &caller.runtime.cpu())
        .unwrap();
    let one = caller.dense(&[5], &[1.0_f32; 5]);
    let sum = add.call_one(&caller.context, [constant, one], &none());
    assert_ne!(address(&sum.unwrap()), value.buffer().address());
    assert_eq!(
        caller.error("tf.Const", &[], &none()),
        "tf.Const must have 'value' attribute"
    );
    let wrong = attrs!["value" => value, "dtype" => DType::I32];
    assert_eq!(
        caller.error("tf.Const", &[], &wrong),
        "tf.Const: dtype mismatch: attribute 'dtype' is i32, attribute 'value' is of f32"
    );
}

#[test]
fn shapes_are_vectors_of_the_type_that_is_asked_for() {
    let caller = Caller::new();
    let x = caller.counting(&[2, 3]);
    let as_i32 = caller.call("tf.Shape", &[&x], &attrs!["out_type" => DType::I32]);
    assert_eq!(
        text(&as_i32),
        "DenseHostTensor dtype = i32, shape = [2], values = [2, 3]"
    );
    let as_i64 = caller.call(
        "tf.Shape",
        &[&x],
        &attrs!["out_type" => DType::I64, "T" => DType::F32],
    );
    assert_eq!(
        text(&as_i64),
        "DenseHostTensor dtype = i64, shape = [2], values = [2, 3]"
    );
    let strings = caller.strings(&[], &["string content"]);
    assert_eq!(
        text(&caller.call("tf.Shape", &[&strings], &none())),
        "DenseHostTensor dtype = i32, shape = [0], values = []"
    );
    // Of any format, of any size: nothing is converted for it.
    let large = caller.all(&[1 << 40, 1 << 22], 1.0_f32);
    let as_i64 = caller.call("tf.Shape", &[&large], &attrs!["out_type" => DType::I64]);
    assert_eq!(elements::<i64>(&as_i64), [1 << 40, 1 << 22]);
    assert_eq!(
        caller.error("tf.Shape", &[&large], &none()),
        "tf.Shape: 1099511627776 exceeds the largest integer of i32"
    );
    assert_eq!(
        caller.error("tf.Shape", &[&x], &attrs!["out_type" => DType::F32]),
        "tf.Shape: attribute 'out_type': expected i32 or i64, found f32"
    );
}

#[test]
fn one_number_stands_for_tensors_of_it() {
    let caller = Caller::new();
    let x = caller.counting(&[2, 3]);
    let zeros = caller.call("tf.ZerosLike", &[&x], &attrs!["T" => DType::F32]);
    assert_eq!(
        text(&zeros),
        "ScalarHostTensor dtype = f32, shape = [2, 3], value = 0.000000e+00"
    );
    let half = caller.all(&[1 << 40, 1 << 40], F16(1));
    assert_eq!(
        text(&caller.call("tf.ZerosLike", &[&half], &none())),
        "ScalarHostTensor dtype = f16, shape = [1099511627776, 1099511627776], value = fp16(0)"
    );
    let truth = caller.dense(&[1], &[Bool::from(true)]);
    assert_eq!(
        text(&caller.call("tf.ZerosLike", &[&truth], &none())),
        "ScalarHostTensor dtype = i1, shape = [1], value = 0"
    );
    let strings = caller.strings(&[], &["a"]);
    assert_eq!(
        caller.error("tf.ZerosLike", &[&strings], &none()),
        "unsupported dtype for tf.ZerosLike: str"
    );

    let extents = caller.dense(&[2], &[2_i32, 3]);
    let filled = caller.call("tf.Fill", &[&extents, &caller.dense(&[], &[7_u8])], &none());
    assert_eq!(
        text(&filled),
        "ScalarHostTensor dtype = u8, shape = [2, 3], value = 7"
    );
    let complex = Complex {
        real: 1.0_f64,
        imaginary: 2.0,
    };
    let complex = caller.dense(&[1], &[complex]);
    let empty = caller.dense::<i64>(&[0], &[]);
    assert_eq!(
        shape(&caller.call("tf.Fill", &[&empty, &complex], &none())),
        [0_usize; 0]
    );
    for (extents, message) in [
        (
            caller.dense(&[1], &[-1_i32]),
            "expected extents of 0 or more, found -1",
        ),
        (
            caller.dense(&[], &[1_i32]),
            "expected a shape in a vector, found i32 []",
        ),
        (
            caller.dense(&[1], &[1.0_f32]),
            "operand 0 (shape): expected integers of 32 or 64 bits, found f32",
        ),
    ] {
        let error = caller.error("tf.Fill", &[&extents, &complex], &none());
        assert_eq!(error, format!("tf.Fill: {message}"));
    }
    let error = caller.error("tf.Fill", &[&extents, &x], &none());
    assert_eq!(
        error,
        "tf.Fill: expected a tensor of one element as value, found f32 [2, 3]"
    );
}

#[test]
fn dimensions_come_and_go_where_the_axis_says() {
    let caller = Caller::new();
    let x = caller.counting(&[2, 3]);
    let strings = caller.strings(&[2, 3], &["this", "is", "a", "const", "string", "tensor"]);
    let cases: [(i32, &[usize]); 4] = [
        (0, &[1, 2, 3]),
        (1, &[2, 1, 3]),
        (-1, &[2, 3, 1]),
        (-3, &[1, 2, 3]),
    ];
    for (axis, wanted) in cases {
        let axis = caller.dense(&[1], &[axis]);
        let more = caller.call("tf.ExpandDims", &[&x, &axis], &none());
        assert_eq!(shape(&more), wanted);
        assert_eq!(address(&more), address(&x), "the memory is shared");
        let less = caller.call("tf.Squeeze", &[&more], &none());
        assert_eq!(shape(&less), [2, 3]);
        assert_eq!(address(&less), address(&x));
        let more = caller.call("tf.ExpandDims", &[&strings, &axis], &none());
        assert_eq!(shape(&more), wanted);
        assert!(text(&more).starts_with("StringHostTensor shape = ["));
    }
    for axis in [3_i64, -4, i64::MIN, i64::MAX] {
        assert_eq!(
            caller.error("tf.ExpandDims", &[&x, &caller.dense(&[], &[axis])], &none()),
            format!("tf.ExpandDims: expected an axis of 3 dimensions, found {axis}")
        );
    }
    // The row takes several.
    let axes = caller.dense(&[2], &[0_i32, 1]);
    let more = caller.call("tf.ExpandDims", &[&x, &axes], &none());
    assert_eq!(shape(&more), [1, 1, 2, 3]);

    let x = caller.counting(&[1, 2, 1]);
    let attrs = attrs!["squeeze_dims" => [-1_i64]];
    assert_eq!(shape(&caller.call("tf.Squeeze", &[&x], &attrs)), [1, 2]);
    let no_axis = |axis: i64| format!("tf.Squeeze: expected an axis of 3 dimensions, found {axis}");
    for (axis, wanted) in [
        (
            1,
            "tf.Squeeze: expected dimensions of extent 1, found 2 at dimension 1".to_owned(),
        ),
        (3, no_axis(3)),
        (i64::MIN, no_axis(i64::MIN)),
    ] {
        let attrs = attrs!["squeeze_dims" => [axis]];
        assert_eq!(caller.error("tf.Squeeze", &[&x], &attrs), wanted);
    }
}

#[test]
fn reshaped_tensors_lie_in_the_same_memory() {
    let caller = Caller::new();
    let x = caller.counting(&[2, 6]);
    let of = |extents: &[i64]| caller.dense(&[extents.len()], extents);
    let cases: [(&[i64], &[usize]); 4] = [
        (&[3, 4], &[3, 4]),
        (&[-1], &[12]),
        (&[2, -1, 3], &[2, 2, 3]),
        (&[12, 1, -1], &[12, 1, 1]),
    ];
    for (asked, wanted) in cases {
        let other = caller.call("tf.Reshape", &[&x, &of(asked)], &none());
        assert_eq!(shape(&other), wanted);
        assert_eq!(address(&other), address(&x));
    }
    let refused: [(&[i64], &str); 7] = [
        (
            &[5, -1],
            "expected extents that 12 elements fill, found a multiple of 5",
        ),
        (
            &[0, -1],
            "a tensor of shape [2, 6] can't be seen as one of shape [0, -1]",
        ),
        (&[11], "expected extents of 12 elements, found 11"),
        (
            &[-2, -6],
            "expected extents of which at most one is -1, found -2",
        ),
        (&[i64::MAX, 2], "can't be seen as one of"),
        (&[i64::MAX, i64::MAX, -1], "can't be seen as one of"),
        (&[], "expected extents of 12 elements, found 1"),
    ];
    for (asked, wanted) in refused {
        let error = caller.error("tf.Reshape", &[&x, &of(asked)], &none());
        assert!(error.contains(wanted), "{asked:?}: {error}");
    }
    assert_eq!(
        caller.error("tf.Reshape", &[&x, &of(&[-1, -1])], &none()),
        "tf.Reshape: expected extents of which at most one is -1, found -1"
    );
    let nothing = caller.counting(&[0, 3]);
    let other = caller.call("tf.Reshape", &[&nothing, &of(&[-1, 7])], &none());
    assert_eq!(shape(&other), [0, 7]);
    let strings = caller.strings(&[2], &["a", "b"]);
    let other = caller.call("tf.Reshape", &[&strings, &of(&[1, 2])], &none());
    assert_eq!(
        text(&other),
        "StringHostTensor shape = [1, 2], values = [\"a\", \"b\"]"
    );
}

#[test]
fn shapes_that_inputs_name_are_known_before_the_results() {
    let caller = Caller::new();
    let op = |name: &str| caller.runtime.op(name, &caller.runtime.cpu()).unwrap();
    // So long that it is left to a worker.
    let x = caller.all(&[300, 400], 1.0_f32);
    let x = op("tf.Relu").call_one(&caller.context, [&x], &none());
    let x = x.unwrap();
    let numbers = |numbers: &[i64]| caller.dense(&[numbers.len()], numbers);
    let keeps = || attrs!["keep_dims" => true];
    let known = |name: &str, inputs: &[&TensorHandle], attrs: &OpAttrs| {
        let result = op(name).call_one(&caller.context, inputs, attrs).unwrap();
        let before = result.shape().map(|shape| shape.to_dims().to_vec());
        settled(&result);
        assert_eq!(before, Some(shape(&result)), "{name}");
        before.unwrap()
    };
    for name in ["tf.Mean", "tf.Max", "tf.Sum"] {
        assert_eq!(known(name, &[&x, &numbers(&[1])], &none()), [300]);
        assert_eq!(known(name, &[&x, &numbers(&[-2])], &keeps()), [1, 400]);
    }
    assert_eq!(
        known("tf.Reshape", &[&x, &numbers(&[-1, 600])], &none()),
        [200, 600]
    );
    assert_eq!(
        known("tf.Transpose", &[&x, &numbers(&[1, 0])], &none()),
        [400, 300]
    );
    assert_eq!(
        known("tf.ConcatV2", &[&x, &x, &numbers(&[-1])], &none()),
        [300, 800]
    );
    for (name, wrong) in [
        ("tf.Mean", numbers(&[7])),
        ("tf.Max", numbers(&[0, 0])),
        ("tf.Reshape", numbers(&[7, 7])),
        ("tf.Transpose", numbers(&[0])),
        ("tf.ConcatV2", numbers(&[2])),
    ] {
        let result = op(name).call(&caller.context, [&x, &wrong], &none());
        assert!(result.is_err(), "{name}");
    }
}
