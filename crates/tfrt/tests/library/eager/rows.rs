//! Operations of the table, called by the names of their rows and by TensorFlow's.

use tfrt::Runtime;
use tfrt::corert::OpAttrs;
use tfrt::eager::{Eager, Handle};

fn eager() -> Eager {
    Eager::new(&Runtime::new())
}

fn numbers(handle: &Handle) -> Vec<f32> {
    handle.to_vec::<f32>().unwrap()
}

#[test]
fn rows_are_called_by_their_names() {
    let eager = eager();
    let x = eager
        .tensor(&[2, 3], &[-1.0_f32, 0.0, 1.0, 2.0, -2.0, 3.0])
        .unwrap();
    let none = OpAttrs::new();
    let one = |name: &str, inputs: &[&Handle], attrs: &OpAttrs| {
        eager.op(name, inputs, attrs).unwrap().remove(0)
    };

    let mut slope = OpAttrs::new();
    slope.set("alpha", 0.5_f32).unwrap();
    assert_eq!(
        numbers(&one("leaky_relu", &[&x], &slope)),
        [-0.5, 0.0, 1.0, 2.0, -1.0, 3.0]
    );
    // A row without a kernel of its own is a function of the pointwise engine.
    assert_eq!(
        numbers(&one("square", &[&x], &none)),
        [1.0, 0.0, 1.0, 4.0, 4.0, 9.0]
    );
    assert_eq!(
        numbers(&one("squared_difference", &[&x, &x], &none)),
        [0.0; 6]
    );
    // Library operations of ONNX.
    assert_eq!(numbers(&one("onnx.Softsign", &[&x], &none))[2], 0.5);

    let axes = eager.tensor(&[1], &[1_i64]).unwrap();
    let mut most = OpAttrs::new();
    most.set("kind", "max").unwrap().set("keep", 0_i64).unwrap();
    let largest = one("reduce", &[&x, &axes], &most);
    assert_eq!(
        largest.shape().map(ToString::to_string),
        Some("[2]".to_owned())
    );
    assert_eq!(numbers(&largest), [1.0, 3.0]);

    let mut parts = OpAttrs::new();
    parts.set("axis", 1_i64).unwrap().set("n", 3_i64).unwrap();
    let columns = eager.op("split", &[&x], &parts).unwrap();
    assert_eq!(columns.len(), 3);
    assert_eq!(numbers(&columns[2]), [1.0, 3.0]);
}

#[test]
fn rows_that_onnx_has_no_name_for_are_called() {
    let eager = eager();
    let x = eager
        .tensor(&[2, 3], &[3.0_f32, f32::NAN, -1.0, 0.5, 7.0, 2.0])
        .unwrap();
    let one = |name: &str, inputs: &[&Handle], attrs: &OpAttrs| {
        let result = eager.op(name, inputs, attrs).unwrap().remove(0);
        assert_eq!(
            result.shape().map(ToString::to_string).as_deref(),
            Some("[2, 3]")
        );
        numbers(&result)
    };
    let mut attrs = OpAttrs::new();
    let sorted = one("sort", &[&x], &attrs);
    assert_eq!(sorted[..2], [-1.0, 3.0]);
    assert!(sorted[2].is_nan() && sorted[3..] == [0.5, 2.0, 7.0]);
    attrs
        .set("axis", 0_i64)
        .unwrap()
        .set("descending", 1_i64)
        .unwrap();
    assert_eq!(one("sort", &[&x], &attrs)[3..], [0.5, 7.0, -1.0]);
    let mut attrs = OpAttrs::new();
    attrs.set("axes", &[0_i64, 1][..]).unwrap();
    assert_eq!(one("reverse", &[&x], &attrs)[..4], [2.0, 7.0, 0.5, -1.0]);
    let update = eager.tensor(&[1, 2], &[8.0_f32, 9.0]).unwrap();
    let starts = eager.tensor(&[2], &[5_i32, 1]).unwrap();
    let updated = one("update_slice", &[&x, &update, &starts], &OpAttrs::new());
    assert_eq!(updated[2..], [-1.0, 0.5, 8.0, 9.0]);

    let message = |name: &str, inputs: &[&Handle], attrs: &OpAttrs| {
        let outcome = eager.op(name, inputs, attrs);
        outcome.unwrap_err().message().to_owned()
    };
    assert_eq!(
        message("update_slice", &[&update, &x, &starts], &OpAttrs::new()),
        "update_slice: expected an update of at most 1, found 2"
    );
    assert_eq!(
        message("update_slice", &[&x, &starts, &starts], &OpAttrs::new()),
        "update_slice: incompatible dtypes: f32 [2, 3] and i32 [2]"
    );
    let flat = eager.tensor(&[2], &[8.0_f32, 9.0]).unwrap();
    assert_eq!(
        message("update_slice", &[&x, &flat, &starts], &OpAttrs::new()),
        "update_slice: expected an update of 2 dimensions, found 1"
    );
    let mut attrs = OpAttrs::new();
    attrs.set("axes", &[1_i64, -1][..]).unwrap();
    assert_eq!(
        message("reverse", &[&x], &attrs),
        "reverse: expected each axis once, found -1 again"
    );
    let mut attrs = OpAttrs::new();
    attrs.set("axis", 2_i64).unwrap();
    assert_eq!(
        message("sort", &[&x], &attrs),
        "sort: expected an axis of 2 dimensions, found 2"
    );
}

#[test]
fn rows_are_called_by_the_names_of_tensorflow() {
    let eager = eager();
    let x = eager.tensor(&[2, 2], &[-1.0_f32, 4.0, 2.0, -8.0]).unwrap();
    let none = OpAttrs::new();
    let one = |name: &str, inputs: &[&Handle], attrs: &OpAttrs| {
        eager.op(name, inputs, attrs).unwrap().remove(0)
    };
    // Its default is not that of ONNX.
    assert_eq!(
        numbers(&one("tf.LeakyRelu", &[&x], &none)),
        [-0.2, 4.0, 2.0, -1.6]
    );
    // The axis is an operand there, an attribute of the row.
    let axis = eager.scalar(1_i32).unwrap();
    let zero = eager.scalar(0_i32).unwrap();
    assert_eq!(
        one("tf.ArgMin", &[&x, &axis], &none)
            .to_vec::<i64>()
            .unwrap(),
        [0, 1]
    );
    let places = eager.tensor(&[1], &[1_i32]).unwrap();
    assert_eq!(
        numbers(&one("tf.GatherV2", &[&x, &places, &zero], &none)),
        [2.0, -8.0]
    );
    let mut two = OpAttrs::new();
    two.set("num_split", 2_i64).unwrap();
    let halves = eager.op("tf.Split", &[&zero, &x], &two).unwrap();
    assert_eq!(numbers(&halves[1]), [2.0, -8.0]);
    let mut adjoint = OpAttrs::new();
    adjoint.set("adj_y", true).unwrap();
    let product = one("tf.BatchMatMulV2", &[&x, &x], &adjoint);
    assert_eq!(numbers(&product), [17.0, -34.0, -34.0, 68.0]);
}

#[test]
fn what_is_wrong_is_said_when_a_row_is_called() {
    let eager = eager();
    let x = eager.tensor(&[2], &[1.0_f32, 2.0]).unwrap();
    let y = eager.tensor(&[3], &[1.0_f32, 2.0, 3.0]).unwrap();
    let message = |name: &str, inputs: &[&Handle], attrs: &OpAttrs| {
        let outcome = eager
            .op(name, inputs, attrs)
            .and_then(|results| results[0].to_vec::<f32>());
        outcome.unwrap_err().message().to_owned()
    };
    let none = OpAttrs::new();
    assert_eq!(
        message("atan2", &[&x, &y], &none),
        "tensor shape mismatch: [2] vs. [3]"
    );
    assert_eq!(
        message("gelu", &[&x, &y], &none),
        "gelu expects 1 input, found 2"
    );
    let mut wrong = OpAttrs::new();
    wrong.set("alfa", 1.0_f32).unwrap();
    assert_eq!(
        message("elu", &[&x], &wrong),
        "elu has no attribute 'alfa': expected alpha"
    );
    let mut wrong = OpAttrs::new();
    wrong.set("kind", "median").unwrap();
    assert_eq!(
        message("reduce", &[&x], &wrong),
        "reduce: attribute 'kind': expected sum, prod, max, min, mean, l1, l2, sum_square, log_sum, log_sum_exp, any, all, found 'median'"
    );
    assert_eq!(message("gelo", &[&x], &none), "op 'gelo' is not supported");
    assert_eq!(
        message("while", &[&x], &none),
        "op 'while' is not supported"
    );
}

/// Rows that are no eager operations: control flow, sequences and maps, what models become before it is run, and what
/// nothing runs.
const WITHOUT: &[&str] = &[
    "constant",
    "if",
    "while",
    "scan",
    "call",
    "onnx.ml.CastMap",
    "onnx.ml.DictVectorizer",
    "onnx.ml.FeatureVectorizer",
    "onnx.ml.Imputer",
    "onnx.ml.LinearRegressor",
    "onnx.ml.Normalizer",
    "onnx.ml.Scaler",
    "onnx.ml.ZipMap",
    "onnx.preview.FlexAttention",
    "onnx.ConcatFromSequence",
    "onnx.Loop",
    "onnx.Optional",
    "onnx.OptionalGetElement",
    "onnx.OptionalHasElement",
    "onnx.SequenceAt",
    "onnx.SequenceConstruct",
    "onnx.SequenceEmpty",
    "onnx.SequenceErase",
    "onnx.SequenceInsert",
    "onnx.SequenceLength",
    "onnx.SequenceMap",
    "onnx.SplitToSequence",
    "onnx.training.Gradient",
];

#[test]
fn rows_but_for_some_are_called() {
    let eager = eager();
    let core = eager.core();
    let is_there = |name: &str| core.op(name, &core.cpu()).is_ok();
    let all = tfrt::ops::all().map(|row| row.name);
    let without: Vec<&str> = all.filter(|name| !is_there(name)).collect();
    assert_eq!(without, WITHOUT);
    let names = tfrt::ops::names::tf::NAMES
        .iter()
        .map(|name| format!("tf.{}", name.name));
    let missing: Vec<String> = names.filter(|name| !is_there(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
