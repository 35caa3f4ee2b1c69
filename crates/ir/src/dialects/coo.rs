//! `coo`: sparse tensors, as lists of coordinates and values.

use super::tfrt_dht::{TENSOR, takes_memory, used_by_others, wrong_type};
use crate::dialect::{
    OpDef,
    ValueKind::{Chain, I1},
};
use crate::dialects::OPERANDS;

pub(super) fn definitions() -> Vec<OpDef> {
    let mut all = vec![
        OpDef::new("coo.print_tensor")
            .summary("Prints a sparse tensor and an empty line behind it")
            .details(
                "All coordinates and values are shown. The original has no kernel of this name.",
            )
            .operand("tensor", TENSOR)
            .operand("chain", Chain)
            .result("done", Chain)
            .fails(
                "InvalidArgument",
                "expected a CooHost tensor, found a FORMAT tensor of TYPE SHAPE",
                "the tensor is not sparse",
            )
            .reads(0)
            .outside()
            .format(OPERANDS)
            .example(with_tensor(
                "coo.convert_dht_to_coo.i32.1",
                "%done = coo.print_tensor %sparse, %converted",
            ))
            .prints("CooHostTensor dtype = i32, shape = [2], indices = [0, 1], values = [1, 1]"),
    ];
    let to_coo = [
        "coo.convert_dht_to_coo.f32.0",
        "coo.convert_dht_to_coo.f32.1",
        "coo.convert_dht_to_coo.f32.2",
        "coo.convert_dht_to_coo.f32.3",
        "coo.convert_dht_to_coo.i32.0",
        "coo.convert_dht_to_coo.i32.1",
        "coo.convert_dht_to_coo.i32.2",
        "coo.convert_dht_to_coo.i32.3",
    ];
    all.extend(to_coo.map(to_sparse));
    let to_dense_names = [
        "coo.convert_coo_to_dht.f32.0",
        "coo.convert_coo_to_dht.f32.1",
        "coo.convert_coo_to_dht.f32.2",
        "coo.convert_coo_to_dht.f32.3",
        "coo.convert_coo_to_dht.i32.0",
        "coo.convert_coo_to_dht.i32.1",
        "coo.convert_coo_to_dht.i32.2",
        "coo.convert_coo_to_dht.i32.3",
    ];
    all.extend(to_dense_names.map(to_dense));
    let compared = [
        "coo.tensor_equal.f32.0",
        "coo.tensor_equal.f32.1",
        "coo.tensor_equal.f32.2",
        "coo.tensor_equal.f32.3",
        "coo.tensor_equal.i32.0",
        "coo.tensor_equal.i32.1",
        "coo.tensor_equal.i32.2",
        "coo.tensor_equal.i32.3",
    ];
    all.extend(compared.map(equal));
    all
}

/// Returns the body of an example: a tensor `%dense` of ones, and `%sparse`, which is made of it.
fn with_tensor(convert: &str, what: &str) -> String {
    let mut parts = convert.rsplit('.');
    let rank = parts.next().unwrap_or_default();
    let ty = parts.next().unwrap_or_default();
    let extents = vec!["2 : i64"; rank.parse().unwrap_or(0)].join(", ");
    let one = match ty {
        "f32" => "1.0 : f32",
        _ => "1 : i32",
    };
    format!(
        "%chain = tfrt.new.chain
%dense = tfrt_dht.create_uninitialized_tensor.{ty}.{rank} [{extents}]
%filled = tfrt_dht.fill_tensor_with_constant.{ty} %dense, %chain {one}
%sparse, %converted = {convert} %dense, %filled
{what}"
    )
}

/// Adds operands, results and errors of conversions between dense and sparse tensors.
fn converts(definition: OpDef) -> OpDef {
    let definition = definition
        .details("The number at the end of the name is that of dimensions.")
        .operand("tensor", TENSOR)
        .operand("chain", Chain)
        .result("converted", TENSOR)
        .result("done", Chain)
        .fails(
            "InvalidArgument",
            "expected a tensor of N dimensions, found one of TYPE SHAPE",
            "it has more or fewer than the name says",
        )
        .reads(0)
        .allocates()
        .format(OPERANDS);
    used_by_others(takes_memory(wrong_type(definition)))
}

fn to_sparse(name: &'static str) -> OpDef {
    converts(OpDef::new(name))
        .summary("The elements that are not 0, in row-major order, with their coordinates")
        .example(with_tensor(name, "").trim_end().to_owned())
}

fn to_dense(name: &'static str) -> OpDef {
    let convert = name.replace("coo_to_dht", "dht_to_coo");
    let what = format!("%back, %done = {name} %sparse, %converted");
    converts(OpDef::new(name))
        .summary("A dense tensor with the values at their places and 0 elsewhere")
        .example(with_tensor(&convert, &what))
}

fn equal(name: &'static str) -> OpDef {
    let convert = name.replace("tensor_equal", "convert_dht_to_coo");
    let what = format!(
        "%same, %compared = {name} %sparse, %sparse, %converted
%done = tfrt.print.i1 %same, %compared"
    );
    let definition = OpDef::new(name)
        .summary("Whether two sparse tensors have the same coordinates and nearly the same values")
        .details("Floats are compared as by `tfrt_dht.tensor_allclose`, up to 2.")
        .operand("lhs", TENSOR)
        .operand("rhs", TENSOR)
        .operand("chain", Chain)
        .result("same", I1)
        .result("done", Chain)
        .reads(0)
        .reads(1)
        .format(OPERANDS)
        .example(with_tensor(&convert, &what))
        .prints("int1 = 1");
    used_by_others(wrong_type(definition))
}
