//! Attributes that graphs of TensorFlow state, and those that are refused.

use tfrt_corert::TensorHandle;
use tfrt_tensor::{DType, PartialTensorShape};

use super::{Caller, attrs, elements, none, shape, text};

#[test]
fn there_is_a_result_for_each_input() {
    let caller = Caller::new();
    let (x, words) = (caller.counting(&[2, 3]), caller.strings(&[1], &["a"]));
    let found = caller
        .try_all("tf.IdentityN", &[&x, &words, &x], &none())
        .unwrap();
    let texts: Vec<String> = found.iter().map(text).collect();
    assert_eq!(texts, [text(&x), text(&words), text(&x)]);
    assert!(
        caller
            .try_all("tf.IdentityN", &[], &none())
            .unwrap()
            .is_empty()
    );
    let wide = attrs!["out_type" => DType::I64, "N" => 2_i64];
    let found = caller.try_all("tf.ShapeN", &[&x, &words], &wide).unwrap();
    assert_eq!(elements::<i64>(&found[0]), [2, 3]);
    assert_eq!(elements::<i64>(&found[1]), [1]);
    assert_eq!(
        caller.error("tf.ShapeN", &[&x], &attrs!["out_type" => DType::F32]),
        "tf.ShapeN: expected attribute 'out_type' to be i32 or i64, found f32"
    );
}

#[test]
fn shapes_are_stated_with_extents_that_are_unknown() {
    let caller = Caller::new();
    let x = caller.counting(&[2, 3]);
    let of = |extents: &[i64]| {
        let shape = PartialTensorShape::from_i64(extents).unwrap();
        caller.try_all("tf.EnsureShape", &[&x], &attrs!["shape" => shape])
    };
    assert_eq!(shape(&of(&[-1, 3]).unwrap()[0]), [2, 3]);
    assert_eq!(
        of(&[-1, 4]).unwrap_err().message(),
        "tf.EnsureShape: expected a tensor of [?, 4], found f32 [2, 3]"
    );
    assert_eq!(
        caller.error("tf.EnsureShape", &[&x], &none()),
        "tf.EnsureShape must have 'shape' attribute"
    );
    let any = attrs!["shape" => [-1_i64, -1], "dtype" => DType::F32];
    let same = caller.call("tf.PlaceholderWithDefault", &[&x], &any);
    assert_eq!(text(&same), text(&x));
    let other = attrs!["shape" => [-1_i64, -1], "dtype" => DType::F64];
    assert_eq!(
        caller.error("tf.PlaceholderWithDefault", &[&x], &other),
        "tf.PlaceholderWithDefault: expected attribute 'dtype' to be f32, the type of operand 0, found f64"
    );
}

#[test]
fn what_means_something_else_is_refused() {
    let caller = Caller::new();
    let x = caller.counting(&[2, 2]);
    let one = caller.dense(&[1, 1], &[1_i32]);
    let row = caller.counting(&[1, 2]);
    for policy in ["", "ERROR"] {
        let attrs = attrs!["bad_indices_policy" => policy];
        let found = caller.call("tf.TensorScatterAdd", &[&x, &one, &row], &attrs);
        assert_eq!(elements::<f32>(&found), [0.0, 1.0, 2.0, 4.0]);
    }
    assert_eq!(
        caller.error(
            "tf.TensorScatterAdd",
            &[&x, &one, &row],
            &attrs!["bad_indices_policy" => "IGNORE"]
        ),
        "tf.TensorScatterAdd: expected attribute 'bad_indices_policy' to be '', 'DEFAULT', 'ERROR', found 'IGNORE'"
    );
    let narrow = attrs!["Ta" => DType::F32, "Tb" => DType::F32, "Tout" => DType::F32];
    let product = caller.call("tf.BatchMatMulV3", &[&x, &x], &narrow);
    assert_eq!(elements::<f32>(&product), [2.0, 3.0, 6.0, 11.0]);
    let wide = attrs!["Ta" => DType::F32, "Tb" => DType::F32, "Tout" => DType::F64];
    assert_eq!(
        caller.error("tf.BatchMatMulV3", &[&x, &x], &wide),
        "tf.BatchMatMulV3: expected attribute 'Tout' to be f32, the type of operand 0, found f64"
    );
    assert_eq!(
        caller.error("tf.TopKV2", &[&x, &one], &attrs!["index_type" => DType::I8]),
        "tf.TopKV2: expected attribute 'index_type' to be i32 or i64, found i8"
    );
}

#[test]
fn what_does_not_fit_is_said_when_the_call_is_made() {
    let caller = Caller::new();
    let (x, list) = (caller.counting(&[2, 2]), caller.counting(&[3]));
    let number = |value: i32| caller.dense(&[], &[value]);
    let words = caller.strings(&[2], &["a", "b"]);
    let error = |op: &str, inputs: &[&TensorHandle]| caller.error(op, inputs, &none());
    assert_eq!(
        error("tf.MatrixDiagPart", &[&list]),
        "tf.MatrixDiagPart: expected matrices, found [3]"
    );
    assert_eq!(
        error("tf.TopKV2", &[&list, &number(4)]),
        "tf.TopKV2: expected a k from 0 to 3, found 4"
    );
    assert_eq!(
        error("tf.Roll", &[&x, &number(1), &number(2)]),
        "tf.Roll: expected an axis of 2 dimensions, found 2"
    );
    assert_eq!(
        error("tf.UnsortedSegmentSum", &[&x, &number(1), &number(-1)]),
        "tf.UnsortedSegmentSum: expected a number of segments of 0 or more, found -1"
    );
    assert_eq!(
        error("tf.MatrixInverse", &[&caller.counting(&[2, 3])]),
        "tf.MatrixInverse: expected square matrices, found [2, 3]"
    );
    assert_eq!(
        error("tf.StringLength", &[&list]),
        "unsupported dtype for tf.StringLength: f32"
    );
    assert_eq!(
        error("tf.FloorDiv", &[&x, &number(1)]),
        "tf.FloorDiv: incompatible dtypes: f32 [2, 2] and i32 []"
    );
    let unit = attrs!["unit" => "WORD"];
    assert_eq!(
        caller.error("tf.StringLength", &[&words], &unit),
        "tf.StringLength: expected attribute 'unit' to be BYTE or UTF8_CHAR, found 'WORD'"
    );
    let mode = attrs!["mode" => "EDGE"];
    let pads = caller.dense(&[2, 2], &[0_i32; 4]);
    assert_eq!(
        caller.error("tf.MirrorPad", &[&x, &pads], &mode),
        "tf.MirrorPad: expected attribute 'mode' to be REFLECT or SYMMETRIC, found 'EDGE'"
    );
    let message = attrs!["message" => "after the layer"];
    let nan = caller.dense(&[2], &[f32::NAN, 1.0]);
    assert_eq!(
        caller.error("tf.CheckNumerics", &[&nan], &message),
        "tf.CheckNumerics: after the layer : Tensor had NaN values"
    );
}
