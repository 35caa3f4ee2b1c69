//! Tests of softmax and its relatives.

use super::op;

#[test]
fn rows_are_along_a_dimension() {
    let x = "[[0.0, 1.0], [0.0, 3.0]] 2x2xf32";
    op("Softmax")
        .of(x)
        .gives(&["f32 [2, 2] [0.2689, 0.7311, 0.0474, 0.9526]"]);
    op("Softmax")
        .of(x)
        .with("\"axis\", 0 : i64")
        .gives(&["f32 [2, 2] [0.5, 0.1192, 0.5, 0.8808]"]);
    op("LogSoftmax")
        .of(x)
        .gives(&["f32 [2, 2] [-1.3133, -0.3133, -3.0486, -0.0486]"]);
    op("Hardmax")
        .of("[[3.0, 3.0], [1.0, 4.0]] 2x2xf32")
        .with("\"axis\", 0 : i64")
        .gives(&["f32 [2, 2] [1.0, 0.0, 0.0, 1.0]"]);
}

#[test]
fn rows_were_all_that_follows_once() {
    let x = "[[[0.0], [0.0]], [[0.0], [0.0]]] 2x2x1xf32";
    op("Softmax")
        .of(x)
        .opset(11)
        .gives(&["f32 [2, 2, 1] [0.5, 0.5, 0.5, 0.5]"]);
    op("Softmax")
        .of(x)
        .opset(11)
        .with("\"axis\", 0 : i64")
        .gives(&["f32 [2, 2, 1] [0.25, 0.25, 0.25, 0.25]"]);
}
