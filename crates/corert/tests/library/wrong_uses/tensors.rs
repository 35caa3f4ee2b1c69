//! Inputs whose types, shapes or elements don't fit.

use tfrt_corert::{OpAttrs, TensorHandle};
use tfrt_tensor::{ScalarHostTensor, TensorShape};

use super::{Row, User, attrs, none, row};

pub(super) fn rows() -> Vec<Row> {
    let user = User::new();
    let mut rows = arithmetic(&user);
    rows.extend(reductions(&user));
    rows.extend(movement(&user));
    rows.extend(training(&user));
    rows
}

fn arithmetic(user: &User) -> Vec<Row> {
    let (vector, matrix) = (user.ones(&[2]), user.ones(&[2, 3]));
    let integers = user.dense(&[2], &[1_i32, 2]);
    let shape = TensorShape::new(&[1 << 40, 1 << 40]).unwrap();
    let huge = user.runtime.handle(ScalarHostTensor::new(shape, 1.0_f32));
    let two = |op: &str, x: &TensorHandle, y: &TensorHandle| user.refusal(op, [x, y], &none());
    vec![
        row("Operands of two types", two("tf.AddV2", &vector, &integers)),
        row(
            "Shapes that can't be broadcast",
            two("tf.Mul", &vector, &matrix),
        ),
        row(
            "A value for more elements than any memory holds, where all are needed",
            user.late_refusal("tf.Relu", [&huge], &none()),
        ),
        row(
            "A type that an operation does not calculate with",
            user.refusal("tf.Tanh", [&integers], &none()),
        ),
        row(
            "An order of numbers that have none",
            two(
                "tf.Less",
                &user.dense(&[1], &[tfrt_tensor::Bool::from(true)]),
                &user.dense(&[1], &[tfrt_tensor::Bool::from(true)]),
            ),
        ),
        row("A product of vectors", two("tf.MatMul", &vector, &vector)),
        row(
            "Matrices that don't fit",
            two("tf.MatMul", &matrix, &matrix),
        ),
        row(
            "Matrices that don't fit when they are transposed",
            user.refusal(
                "tf.MatMul",
                [&matrix, &matrix],
                &attrs!["transpose_a" => true, "transpose_b" => true],
            ),
        ),
        row(
            "Matrices of two types",
            two("tf.MatMul", &matrix, &user.dense(&[3, 1], &[1.0_f64; 3])),
        ),
        row(
            "A bias for other channels",
            two("tf.BiasAdd", &matrix, &vector),
        ),
        row(
            "A bias that is no vector",
            two("tf.BiasAdd", &matrix, &matrix),
        ),
        row(
            "Channels in another order",
            user.refusal(
                "tf.BiasAdd",
                [&matrix, &user.ones(&[3])],
                &attrs!["data_format" => "CHWN"],
            ),
        ),
    ]
}

fn reductions(user: &User) -> Vec<Row> {
    let x = user.ones(&[2, 3]);
    let of_x = |op: &str, attrs: OpAttrs| user.refusal(op, [&x], &attrs);
    let mean = |axes: &TensorHandle| user.refusal("tf.Mean", [&x, axes], &none());
    vec![
        row(
            "An axis out of range",
            of_x("tf.ArgMax", attrs!["axis" => 2_i64]),
        ),
        row(
            "A negative one",
            of_x("tf.ArgMax", attrs!["axis" => -3_i64]),
        ),
        row(
            "The least of all integers as axis",
            of_x("tf.Sum", attrs!["axes" => [i64::MIN]]),
        ),
        row(
            "An axis that is named twice",
            of_x("tf.Sum", attrs!["axes" => [1_i64, -1]]),
        ),
        row(
            "An input of axes out of range",
            mean(&user.dense(&[1], &[2_i32])),
        ),
        row(
            "One that names an axis twice",
            mean(&user.dense(&[2], &[0_i32, -2])),
        ),
        row(
            "One that is no vector",
            mean(&user.dense(&[1, 1], &[0_i32])),
        ),
        row("One of floats", mean(&user.dense(&[1], &[0.0_f32]))),
    ]
}

fn movement(user: &User) -> Vec<Row> {
    let x = user.ones(&[2, 3]);
    let numbers = |numbers: &[i64]| user.dense(&[numbers.len()], numbers);
    let two = |op: &str, y: &TensorHandle| user.refusal(op, [&x, y], &none());
    vec![
        row(
            "A shape of another number of elements",
            two("tf.Reshape", &numbers(&[4, 2])),
        ),
        row(
            "A shape of which two extents are left open",
            two("tf.Reshape", &numbers(&[-1, -1])),
        ),
        row(
            "A shape with a negative extent",
            two("tf.Reshape", &numbers(&[-6, -1])),
        ),
        row(
            "An axis where no dimension can be",
            two("tf.ExpandDims", &numbers(&[3])),
        ),
        row(
            "A dimension that is not 1 and shall go",
            user.refusal("tf.Squeeze", [&x], &attrs!["squeeze_dims" => [0_i64]]),
        ),
        row(
            "An order with a dimension twice",
            two("tf.Transpose", &numbers(&[0, 0])),
        ),
        row(
            "An order of too many dimensions",
            two("tf.Transpose", &numbers(&[0, 1, 2])),
        ),
        row(
            "Multiples for too few dimensions",
            two("tf.Tile", &numbers(&[2])),
        ),
        row(
            "Multiples that are negative",
            two("tf.Tile", &numbers(&[-1, 2])),
        ),
        row(
            "Multiples that no memory holds",
            user.late_refusal("tf.Tile", [&x, &numbers(&[i64::MAX, 2])], &none()),
        ),
        row(
            "Paddings of another shape",
            two("tf.Pad", &numbers(&[1, 1])),
        ),
        row(
            "Paddings that are negative",
            two("tf.Pad", &user.dense(&[2, 2], &[0_i32, -1, 0, 0])),
        ),
        row(
            "Paddings that no memory holds",
            user.late_refusal(
                "tf.Pad",
                [&x, &user.dense(&[2, 2], &[i64::MAX, i64::MAX, 0, 0])],
                &none(),
            ),
        ),
        row(
            "A part that is not in the tensor",
            user.refusal(
                "tf.Slice",
                [&x, &numbers(&[0, 2]), &numbers(&[1, 2])],
                &none(),
            ),
        ),
        row(
            "A position that is not in the tensor",
            user.late_refusal(
                "tf.GatherV2",
                [&x, &numbers(&[0, 3]), &numbers(&[1])],
                &none(),
            ),
        ),
        row(
            "Tensors behind each other that differ elsewhere",
            user.refusal(
                "tf.ConcatV2",
                [&x, &user.ones(&[2, 2]), &numbers(&[0])],
                &none(),
            ),
        ),
        row(
            "Tensors beside each other that are of two types",
            user.refusal("tf.Pack", [&numbers(&[1]), &user.ones(&[1])], &none()),
        ),
        row(
            "A tensor filled with more than one number",
            user.refusal("tf.Fill", [&numbers(&[2]), &user.ones(&[2])], &none()),
        ),
        row(
            "A tensor filled to a negative extent",
            user.late_refusal("tf.Fill", [&numbers(&[-2]), &user.ones(&[])], &none()),
        ),
        row(
            "Rows of a negative extent",
            user.refusal(
                "tf.OneHot",
                [
                    &numbers(&[0]),
                    &numbers(&[-1]),
                    &user.ones(&[]),
                    &user.ones(&[]),
                ],
                &none(),
            ),
        ),
    ]
}

fn training(user: &User) -> Vec<Row> {
    let scores = user.ones(&[2, 3]);
    let entropy = "tf.SparseSoftmaxCrossEntropyWithLogits";
    let loss = |classes: &TensorHandle| user.refusal(entropy, [&scores, classes], &none());
    let of_class = |classes: &TensorHandle| user.late_refusal(entropy, [&scores, classes], &none());
    vec![
        row(
            "A class out of range",
            of_class(&user.dense(&[2], &[0_i32, 3])),
        ),
        row(
            "A negative class",
            of_class(&user.dense(&[2], &[-1_i64, 0])),
        ),
        row("Too few classes", loss(&user.dense(&[1], &[0_i32]))),
        row("Classes that are floats", loss(&user.ones(&[2]))),
        row(
            "A gradient of another shape than the weights",
            user.refusal(
                "tfrt.sgd",
                [&scores, &user.ones(&[3])],
                &attrs!["learning_rate" => 0.1_f32],
            ),
        ),
    ]
}
