//! Attributes that are missing, unknown, there twice, of another kind, or of a value that makes no sense.

use tfrt_corert::OpAttrs;
use tfrt_host::DType;

use super::{Row, User, attrs, none, row};

pub(super) fn rows() -> Vec<Row> {
    let user = User::new();
    let (x, y) = (user.ones(&[2, 3]), user.ones(&[3, 2]));
    let of_x = |op: &str, attrs: OpAttrs| user.refusal(op, [&x], &attrs);
    let product = |attrs: OpAttrs| user.refusal("tf.MatMul", [&x, &y], &attrs);
    let fused = |attrs: OpAttrs| {
        let bias = user.ones(&[2]);
        user.refusal("tf._FusedMatMul", [&x, &y, &bias], &attrs)
    };
    vec![
        row(
            "One that is unknown",
            of_x("tf.Sum", attrs!["axis" => 1_i64]),
        ),
        row(
            "One, where there are none",
            of_x("tfrt_test.identity", attrs!["fast" => true]),
        ),
        row("One that is missing", of_x("tf.Cast", none())),
        row(
            "A text for a truth value",
            product(attrs!["transpose_a" => "yes"]),
        ),
        row(
            "A text for a type",
            of_x("tf.Cast", attrs!["DstT" => "f32"]),
        ),
        row(
            "A list for a number",
            of_x("tf.ArgMax", attrs!["axis" => [1_i64]]),
        ),
        row(
            "A number for a list",
            of_x("tf.Sum", attrs!["axes" => 1_i64]),
        ),
        row(
            "A float for an integer",
            of_x("tf.ArgMax", attrs!["axis" => 1.0_f32]),
        ),
        row(
            "An integer that does not fit 64 bits with a sign",
            of_x("tf.ArgMax", attrs!["axis" => u64::MAX]),
        ),
        row(
            "A tensor for a list",
            of_x(
                "tf.Sum",
                attrs!["axes" => user.dense(&[1], &[0_i64]).tensor().unwrap().unwrap().as_dense().unwrap().clone()],
            ),
        ),
        row(
            "A list of numbers for texts",
            fused(attrs!["fused_ops" => [1_i64]]),
        ),
        row(
            "A fusion that is unknown",
            fused(attrs!["fused_ops" => ["BiasAdd", "Gelu"]]),
        ),
        row("No fusion", fused(none())),
        row(
            "A type that an operation can't give",
            of_x(
                "tf.ArgMax",
                attrs!["axis" => 0_i64, "output_type" => DType::F32],
            ),
        ),
        row(
            "A shape whose extents are negative",
            user.refusal(
                "tfrt_test.create_dense_tensor",
                (),
                &attrs!["shape" => [-2_i64], "values" => [1_i32]],
            ),
        ),
        row(
            "A shape that no memory holds",
            user.late_refusal(
                "tfrt_test.create_dense_tensor",
                (),
                &attrs!["shape" => [i64::MAX, i64::MAX], "values" => [1_i32]],
            ),
        ),
        row(
            "As many values as don't fit the shape",
            user.refusal(
                "tfrt_test.create_dense_tensor",
                (),
                &attrs!["shape" => [4_i64], "values" => [1_i32, 2]],
            ),
        ),
        row(
            "A constant without value",
            user.refusal("tf.Const", (), &none()),
        ),
        row(
            "A text where a number is to be",
            user.refusal(
                "tfrt_test.create_from_scalar",
                (),
                &attrs!["shape" => [1_i64], "value" => "one"],
            ),
        ),
        row(
            "A rate that is an integer",
            user.refusal("tfrt.sgd", [&x, &x], &attrs!["learning_rate" => 1_i32]),
        ),
    ]
}
