//! `ts`: shapes of tensors, whole, of a fixed number of dimensions, and known in part.
//!
//! Shapes are values: what makes one is pure.

use super::tfrt_dht::SHAPE;
use crate::dialect::{
    AttributeKind, OpDef,
    ValueKind::{self, Chain, I1, I32, I64},
};
use crate::dialects::OPERANDS;

pub(super) const PARTIAL: ValueKind = ValueKind::Dialect("!ts.partial_shape");

const NO_EXTENT: &str = "the extent of dimension I is N: expected 0 or more";

pub(super) fn definitions() -> Vec<OpDef> {
    let mut all = vec![
        build(OpDef::new("ts.build_shape")),
        OpDef::new("ts.equal_shape")
            .summary("Whether two shapes are the same")
            .operand("lhs", SHAPE)
            .operand("rhs", SHAPE)
            .result("same", I1)
            .pure()
            .format(OPERANDS)
            .example(
                "%chain = tfrt.new.chain
%a = ts.build_shape [2 : i64, 3 : i64]
%b = ts.build_shape [6 : i64]
%same = ts.equal_shape %a, %b
%done = tfrt.print.i1 %same, %chain",
            )
            .prints("int1 = 0"),
        OpDef::new("ts.get_dimension")
            .summary("The extent of a dimension")
            .operand("shape", SHAPE)
            .operand("index", I32)
            .result("extent", I64)
            .fails(
                "InvalidArgument",
                "there is no dimension I in shape SHAPE",
                "the index is negative or not below the number of dimensions",
            )
            .pure()
            .format(OPERANDS)
            .example(
                "%chain = tfrt.new.chain
%shape = ts.build_shape [2 : i64, 3 : i64]
%one = tfrt.constant.i32 1
%extent = ts.get_dimension %shape, %one
%done = tfrt.print.i64 %extent, %chain",
            )
            .prints("int64 = 3"),
        OpDef::new("ts.get_num_elements")
            .summary("The number of elements of a tensor of a shape")
            .operand("shape", SHAPE)
            .result("n", I64)
            .fails(
                "InvalidArgument",
                "a tensor of shape SHAPE has more elements than fit 63 bits",
                "the product is too large",
            )
            .pure()
            .format(OPERANDS)
            .example(
                "%chain = tfrt.new.chain
%shape = ts.build_shape [2 : i64, 3 : i64]
%n = ts.get_num_elements %shape
%done = tfrt.print.i64 %n, %chain",
            )
            .prints("int64 = 6"),
        OpDef::new("ts.print_shape")
            .summary("Prints `shape = [2, 3]`")
            .operand("shape", SHAPE)
            .operand("chain", Chain)
            .result("done", Chain)
            .outside()
            .format(OPERANDS)
            .example(
                "%chain = tfrt.new.chain
%shape = ts.build_shape [2 : i64, 3 : i64]
%done = ts.print_shape %shape, %chain",
            )
            .prints("shape = [2, 3]"),
        build_partial(OpDef::new("ts.build_partial_shape")),
        OpDef::new("ts.build_unranked_partial_shape")
            .summary("A shape of which nothing is known")
            .result("shape", PARTIAL)
            .pure()
            .format("attr-dict")
            .example(
                "%chain = tfrt.new.chain
%shape = ts.build_unranked_partial_shape
%done = ts.print_partial_shape %shape, %chain",
            )
            .prints("partial_tensor_shape = Unknown rank"),
        OpDef::new("ts.print_partial_shape")
            .summary("Prints `partial_tensor_shape = [2, -1]`, or `Unknown rank` behind the `=`")
            .operand("shape", PARTIAL)
            .operand("chain", Chain)
            .result("done", Chain)
            .outside()
            .format(OPERANDS)
            .example(
                "%chain = tfrt.new.chain
%shape = ts.build_partial_shape [2 : i64, -1 : i64]
%done = ts.print_partial_shape %shape, %chain",
            )
            .prints("partial_tensor_shape = [2, -1]"),
        OpDef::new("ts.to_shape")
            .summary("The shape, if all of it is known")
            .operand("partial", PARTIAL)
            .result("shape", SHAPE)
            .fails(
                "InvalidArgument",
                "Unknown rank",
                "not even the number of dimensions is known",
            )
            .fails(
                "InvalidArgument",
                "Unknown dimensions at following indices = [I, J]",
                "these are unknown",
            )
            .pure()
            .format(OPERANDS)
            .example(
                "%chain = tfrt.new.chain
%partial = ts.build_partial_shape [2 : i64, 3 : i64]
%shape = ts.to_shape %partial
%done = ts.print_shape %shape, %chain",
            )
            .prints("shape = [2, 3]"),
        to_partial(OpDef::new("ts.to_partial_shape"), "ts.build_shape"),
    ];
    let fixed = [
        ("ts.as_fixed_rank_shape.0", "!ts.fixed_rank_shape.0"),
        ("ts.as_fixed_rank_shape.1", "!ts.fixed_rank_shape.1"),
        ("ts.as_fixed_rank_shape.2", "!ts.fixed_rank_shape.2"),
        ("ts.as_fixed_rank_shape.3", "!ts.fixed_rank_shape.3"),
    ];
    all.extend(fixed.map(|(name, ty)| as_fixed(name, ty)));
    let printed = [
        (
            "ts.print_fixed_rank_shape.0",
            "!ts.fixed_rank_shape.0",
            "fixed_rank_shape = []",
        ),
        (
            "ts.print_fixed_rank_shape.1",
            "!ts.fixed_rank_shape.1",
            "fixed_rank_shape = [2]",
        ),
        (
            "ts.print_fixed_rank_shape.2",
            "!ts.fixed_rank_shape.2",
            "fixed_rank_shape = [2, 2]",
        ),
        (
            "ts.print_fixed_rank_shape.3",
            "!ts.fixed_rank_shape.3",
            "fixed_rank_shape = [2, 2, 2]",
        ),
    ];
    all.extend(printed.map(|(name, ty, output)| print_fixed(name, ty, output)));
    all
}

pub(super) fn build(definition: OpDef) -> OpDef {
    let name = definition.name();
    definition
        .summary("A shape")
        .attribute(
            "value",
            AttributeKind::Array(I64),
            "the extents, outermost first",
        )
        .result("shape", SHAPE)
        .fails("InvalidArgument", NO_EXTENT, "an extent is negative")
        .fails(
            "InvalidArgument",
            "a shape has 255 dimensions at most, found N",
            "there are more",
        )
        .pure()
        .format("$value attr-dict")
        .example(format!("%shape = {name} [2 : i64, 7 : i64]"))
}

pub(super) fn build_partial(definition: OpDef) -> OpDef {
    let name = definition.name();
    definition
        .summary("A shape of which some extents may be unknown")
        .attribute(
            "value",
            AttributeKind::Array(I64),
            "the extents, outermost first; -1 for one that is unknown",
        )
        .result("shape", PARTIAL)
        .fails("InvalidArgument", NO_EXTENT, "an extent is below -1")
        .pure()
        .format("$value attr-dict")
        .example(format!("%shape = {name} [-1 : i64, 4 : i64]"))
}

pub(super) fn to_partial(definition: OpDef, build: &str) -> OpDef {
    let name = definition.name();
    definition
        .summary("A shape as one of which some extents may be unknown")
        .operand("shape", SHAPE)
        .result("partial", PARTIAL)
        .pure()
        .format(OPERANDS)
        .example(format!(
            "%chain = tfrt.new.chain
%shape = {build} [2 : i64]
%partial = {name} %shape
%done = ts.print_partial_shape %partial, %chain"
        ))
        .prints("partial_tensor_shape = [2]")
}

/// Returns the body of an example: a shape `%shape` with as many dimensions as the name says.
fn with_shape(name: &str, what: &str) -> String {
    let rank = name.rsplit('.').next().and_then(|rank| rank.parse().ok());
    let extents = vec!["2 : i64"; rank.unwrap_or(0)].join(", ");
    format!("%shape = ts.build_shape [{extents}]\n{what}")
}

fn as_fixed(name: &'static str, ty: &'static str) -> OpDef {
    OpDef::new(name)
        .summary("A shape as one whose number of dimensions its type says")
        .operand("shape", SHAPE)
        .result("fixed", ValueKind::Dialect(ty))
        .fails(
            "InvalidArgument",
            "shape SHAPE has N dimensions, expected R",
            "these differ",
        )
        .pure()
        .format(OPERANDS)
        .example(with_shape(name, &format!("%fixed = {name} %shape")))
}

fn print_fixed(name: &'static str, ty: &'static str, output: &'static str) -> OpDef {
    let convert = name.replace("print", "as");
    OpDef::new(name)
        .summary("Prints `fixed_rank_shape = [2, 3]`")
        .details(
            "Where an extent is 0, so that there are no elements, nothing is between the brackets.",
        )
        .operand("shape", ValueKind::Dialect(ty))
        .operand("chain", Chain)
        .result("done", Chain)
        .outside()
        .format(OPERANDS)
        .example(with_shape(
            name,
            &format!(
                "%chain = tfrt.new.chain
%fixed = {convert} %shape
%done = {name} %fixed, %chain"
            ),
        ))
        .prints(output)
}
