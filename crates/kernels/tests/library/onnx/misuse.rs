//! Tests of the errors of operations that are used wrongly.

use super::op;

#[test]
fn operands_are_named() {
    op("Relu")
        .of("")
        .fails("relu: operand 0 is expected to be a tensor, but left out");
    op("Relu")
        .of("[true] 1xi1")
        .fails("relu: operand 0 is of i1, for which the operation is not defined");
    op("Add")
        .of("[1, 2] 2xi32")
        .of("[1, 2, 3] 3xi32")
        .fails("add: tensor shape mismatch: [2] vs. [3]");
    op("Add")
        .of("1 i32")
        .of("1 i64")
        .fails("add: expected two tensors of one type, found i32 [] and i64 []");
    op("Max").fails("Max: operand 0 is expected to be a tensor, but left out");
}

#[test]
fn attributes_are_named() {
    let x = "[1.0, 2.0] 2xf32";
    op("Softmax")
        .of(x)
        .with("\"axis\", 1 : i64")
        .fails("softmax: axis 1 is none of a tensor of 1 dimensions");
    op("Softmax")
        .of(x)
        .with("\"axis\", \"a\"")
        .fails("softmax: attribute 'axis' is expected to be an integer");
    op("Gelu")
        .of(x)
        .with("\"approximate\", \"no\"")
        .fails("gelu: attribute 'approximate' is expected to be 'none' or 'tanh', found 'no'");
    op("Relu")
        .of(x)
        .with("\"axis\"")
        .fails("relu: attributes are expected to be names and values alternately");
}

#[test]
fn results_are_counted() {
    op("Relu")
        .of("1.0 f32")
        .results(2)
        .fails("relu: 2 results are asked for, the operation has 1");
}
