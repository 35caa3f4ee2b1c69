//! Tests of attention, recurrent layers, transforms, steps of training.

use super::op;

#[test]
fn attention() {
    let (q, k, v) = (
        "[[[[0.0, 9.0]]]] 1x1x1x2xf32",
        "[[[[9.0, 0.0], [0.0, 9.0]]]] 1x1x2x2xf32",
        "[[[[1.0], [2.0]]]] 1x1x2x1xf32",
    );
    op("Attention")
        .of(q)
        .of(k)
        .of(v)
        .gives(&["f32 [1, 1, 1, 1] [2.0]"]);
    op("Attention")
        .of(q)
        .of(k)
        .of(v)
        .of("[[true, false]] 1x2xi1")
        .gives(&["f32 [1, 1, 1, 1] [1.0]"]);
    op("Attention")
        .of(q)
        .of(k)
        .of(v)
        .with("\"is_causal\", 1 : i64, \"softcap\", 1.0 : f32")
        .gives(&["f32 [1, 1, 1, 1] [1.0]"]);
    op("Attention")
        .of(q)
        .of(k)
        .of(v)
        .with("\"scale\", 1.0 : f32")
        .results(4)
        .gives(&[
            "f32 [1, 1, 1, 1] [2.0]",
            "f32 [1, 1, 2, 2] [9.0, 0.0, 0.0, 9.0]",
            "f32 [1, 1, 2, 1] [1.0, 2.0]",
            "f32 [1, 1, 1, 2] [0.0, 81.0]",
        ]);
    op("Attention")
        .of("[[[0.0, 9.0]]] 1x1x2xf32")
        .of("[[[9.0, 0.0]]] 1x1x2xf32")
        .of("[[[1.0, 2.0]]] 1x1x2xf32")
        .with("\"q_num_heads\", 2 : i64, \"kv_num_heads\", 2 : i64")
        .gives(&["f32 [1, 1, 2] [1.0, 2.0]"]);
    op("Attention")
        .of("[[[0.0, 9.0]]] 1x1x2xf32")
        .of(k)
        .of(v)
        .fails("attention: attribute 'q_num_heads' is expected to divide 2, found 0");
}

#[test]
fn rotary_embeddings() {
    let x = "[[[[1.0, 2.0]]]] 1x1x1x2xf32";
    op("RotaryEmbedding")
        .of(x)
        .of("[[[0.0]]] 1x1x1xf32")
        .of("[[[1.0]]] 1x1x1xf32")
        .gives(&["f32 [1, 1, 1, 2] [-2.0, 1.0]"]);
    op("RotaryEmbedding")
        .of(x)
        .of("[[1.0], [0.0]] 2x1xf32")
        .of("[[0.0], [1.0]] 2x1xf32")
        .of("[[1]] 1x1xi64")
        .gives(&["f32 [1, 1, 1, 2] [-2.0, 1.0]"]);
    // One head, as one row: each place has its own angle.
    op("RotaryEmbedding")
        .of("[[[1.0, 2.0], [1.0, 2.0]]] 1x2x2xf32")
        .of("[[[1.0], [0.0]]] 1x2x1xf32")
        .of("[[[0.0], [1.0]]] 1x2x1xf32")
        .with("\"num_heads\", 1 : i64")
        .gives(&["f32 [1, 2, 2] [1.0, 2.0, -2.0, 1.0]"]);
}

#[test]
fn states_are_carried() {
    let (x, one) = ("[[[1.0]], [[1.0]]] 2x1x1xf32", "[[[1.0]]] 1x1x1xf32");
    op("RNN")
        .of(x)
        .of(one)
        .of(one)
        .with("\"hidden_size\", 1 : i64, \"activations\", [\"Relu\"]")
        .results(2)
        .gives(&["f32 [2, 1, 1, 1] [1.0, 2.0]", "f32 [1, 1, 1] [2.0]"]);
    op("RNN")
        .of(x)
        .of(one)
        .of(one)
        .of("")
        .of("[1] 1xi32")
        .with("\"activations\", [\"Relu\"]")
        .results(2)
        .gives(&["f32 [2, 1, 1, 1] [1.0, 0.0]", "f32 [1, 1, 1] [1.0]"]);
    let three = "[[[0.0], [0.0], [1.0]]] 1x3x1xf32";
    op("GRU")
        .of("[[[1.0]]] 1x1x1xf32")
        .of(three)
        .of(three)
        .gives(&["f32 [1, 1, 1, 1] [0.3808]"]);
    let four = "[[[0.0], [0.0], [0.0], [1.0]]] 1x4x1xf32";
    op("LSTM")
        .of("[[[1.0]]] 1x1x1xf32")
        .of(four)
        .of(four)
        .results(3)
        .gives(&[
            "f32 [1, 1, 1, 1] [0.1817]",
            "f32 [1, 1, 1] [0.1817]",
            "f32 [1, 1, 1] [0.3808]",
        ]);
    op("RNN")
        .of(x)
        .of(one)
        .of(one)
        .with("\"activations\", [\"No\"]")
        .fails("rnn: attribute 'activations' has no function 'No'");
    op("LinearAttention")
        .of(one)
        .of(one)
        .of("[[[3.0]]] 1x1x1xf32")
        .with("\"q_num_heads\", 1 : i64, \"kv_num_heads\", 1 : i64, \"update_rule\", \"linear\"")
        .results(2)
        .gives(&["f32 [1, 1, 1] [3.0]", "f32 [1, 1, 1, 1] [3.0]"]);
    op("CausalConvWithState")
        .of("[[[1.0, 2.0]]] 1x1x2xf32")
        .of("[[[10.0, 1.0]]] 1x1x2xf32")
        .results(2)
        .gives(&["f32 [1, 1, 2] [1.0, 12.0]", "f32 [1, 1, 1] [2.0]"]);
}

#[test]
fn transforms() {
    let x = "[[[1.0], [2.0], [3.0]]] 1x3x1xf32";
    op("DFT")
        .of(x)
        .with("\"onesided\", 1 : i64")
        .gives(&["f32 [1, 2, 2] [6.0, 0.0, -1.5, 0.866]"]);
    op("DFT")
        .of("[[[6.0, 0.0], [-1.5, 0.8660254]]] 1x2x2xf32")
        .of("3 i64")
        .with("\"onesided\", 1 : i64, \"inverse\", 1 : i64")
        .gives(&["f32 [1, 3, 1] [1.0, 2.0, 3.0]"]);
    op("STFT")
        .of(x)
        .of("1 i64")
        .of("[1.0, 1.0] 2xf32")
        .gives(&["f32 [1, 2, 2, 2] [3.0, 0.0, -1.0, 0.0, 5.0, 0.0, -1.0, 0.0]"]);
    op("HannWindow")
        .of("4 i64")
        .gives(&["f32 [4] [0.0, 0.5, 1.0, 0.5]"]);
    op("MelWeightMatrix").of("2 i64").of("16 i64").of("8192 i64").of("0.0 f32").of("4096.0 f32").gives(&[
        "f32 [9, 2] [1.0, 0.0, 0.5, 0.5, 0.0, 1.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, ... ]",
    ]);
}

#[test]
fn steps_of_training() {
    let (one, two) = ("[1.0] 1xf32", "[2.0] 1xf32");
    op("training.Momentum").opset(1).of("0.1 f32").of("0 i64").of(one).of(two).of(one)
        .with("\"alpha\", 0.5 : f32, \"beta\", 0.0 : f32, \"norm_coefficient\", 0.0 : f32, \"mode\", \"standard\"").results(2)
        .gives(&["f32 [1] [0.75]", "f32 [1] [2.5]"]);
    op("training.Adagrad")
        .opset(1)
        .of("0.1 f32")
        .of("0 i64")
        .of(one)
        .of(two)
        .of("[0.0] 1xf32")
        .results(2)
        .gives(&["f32 [1] [0.9]", "f32 [1] [4.0]"]);
    op("training.Adam")
        .opset(1)
        .of("0.1 f32")
        .of("0 i64")
        .of(one)
        .of(two)
        .of(two)
        .fails("training.Adam: expected a rate, a count and 4 lists of tensors, found 5 operands");
}
