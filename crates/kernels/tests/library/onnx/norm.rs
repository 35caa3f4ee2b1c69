//! Tests of normalisation and losses.

use super::op;

#[test]
fn rows_and_channels() {
    let x = "[[1.0, 3.0], [10.0, 30.0]] 2x2xf32";
    op("LayerNormalization")
        .of(x)
        .of("[1.0, 2.0] 2xf32")
        .with("\"epsilon\", 0.0 : f32")
        .results(3)
        .gives(&[
            "f32 [2, 2] [-1.0, 2.0, -1.0, 2.0]",
            "f32 [2, 1] [2.0, 20.0]",
            "f32 [2, 1] [1.0, 0.1]",
        ]);
    op("RMSNormalization")
        .of("[[3.0, 4.0]] 1x2xf32")
        .of("[1.0, 1.0] 2xf32")
        .gives(&["f32 [1, 2] [0.8485, 1.1314]"]);
    let (one, zero) = ("[1.0, 1.0] 2xf32", "[0.0, 0.0] 2xf32");
    op("BatchNormalization")
        .of(x)
        .of(one)
        .of(zero)
        .of("[0.0, 20.0] 2xf32")
        .of("[1.0, 100.0] 2xf32")
        .with("\"epsilon\", 0.0 : f32")
        .gives(&["f32 [2, 2] [1.0, -1.7, 10.0, 1.0]"]);
    op("BatchNormalization")
        .of(x)
        .of(one)
        .of(zero)
        .of(zero)
        .of(one)
        .with("\"training_mode\", 1 : i64, \"momentum\", 0.0 : f32")
        .results(3)
        .gives(&[
            "f32 [2, 2] [-1.0, -1.0, 1.0, 1.0]",
            "f32 [2] [5.5, 16.5]",
            "f32 [2] [20.25, 182.25]",
        ]);
    op("InstanceNormalization")
        .of("[[[1.0, 3.0]]] 1x1x2xf32")
        .of("[2.0] 1xf32")
        .of("[1.0] 1xf32")
        .gives(&["f32 [1, 1, 2] [-1.0, 3.0]"]);
    op("LpNormalization")
        .of("[[3.0, 4.0], [0.0, 0.0]] 2x2xf32")
        .gives(&["f32 [2, 2] [0.6, 0.8, 0.0, 0.0]"]);
    op("LRN")
        .of("[[[1.0], [2.0]]] 1x2x1xf32")
        .with("\"size\", 1 : i64, \"alpha\", 1.0 : f32, \"beta\", 1.0 : f32")
        .gives(&["f32 [1, 2, 1] [0.5, 0.4]"]);
}

#[test]
fn dropout_is_nothing_but_in_training() {
    op("Dropout")
        .of("[1.0, 2.0] 2xf32")
        .results(2)
        .gives(&["f32 [2] [1.0, 2.0]", "i1 [2] [1, 1]"]);
    op("Dropout")
        .of("[1.0, 2.0, 3.0] 3xf32")
        .of("0.6 f32")
        .of("true i1")
        .with("\"seed\", 0 : i64")
        .results(2)
        .gives(&["f32 [3] [0.0, 5.0, 7.5]", "i1 [3] [0, 1, 1]"]);
}

#[test]
fn losses() {
    let x = "[[0.0, 0.0], [1.0, 0.0]] 2x2xf32";
    op("SoftmaxCrossEntropyLoss")
        .of(x)
        .of("[0, 1] 2xi64")
        .results(2)
        .gives(&[
            "f32 [] [1.0032]",
            "f32 [2, 2] [-0.6931, -0.6931, -0.3133, -1.3133]",
        ]);
    op("NegativeLogLikelihoodLoss")
        .of(x)
        .of("[0, 5] 2xi64")
        .with("\"ignore_index\", 5 : i64, \"reduction\", \"none\"")
        .gives(&["f32 [2] [0.0, 0.0]"]);
    op("NegativeLogLikelihoodLoss")
        .of(x)
        .of("[0, 5] 2xi64")
        .fails("NegativeLogLikelihoodLoss: operand 1 has no class of 2: 5");
}
