//! Control flow whose body is a region. In text the arguments of a region have the
//! names of the operands whose place they take.

use crate::dialect::{OpDef, Traits, ValueKind::*};
use crate::dialects::checks;

/// The documentation of block sizes, for both kinds of parallel loop.
pub(super) const PARALLEL: &str = "Blocks are so long as the block size says, but for the last, \
    and begin at the start; their bounds do not depend on the number of threads. Blocks run in any \
    order, and at the same time where there are threads. An empty range is done at once. The \
    result is there when all blocks are done and the chains that they gave are there. An error of \
    such a chain is the block's own affair: it is not passed on.";

const SHADOWING: &[Traits] = &[
    Traits::ISOLATED,
    Traits::SINGLE_BLOCK,
    Traits::SHADOWS_OPERANDS,
];

pub(super) fn definitions() -> Vec<OpDef> {
    vec![if_else(), repeat(), parallel_for()]
}

fn if_else() -> OpDef {
    OpDef::new("tfrt.if")
        .summary("Runs one of two regions")
        .details(
            "The first runs if the condition holds. Both take the operands behind the condition \
             and give the results. In text `else` may be missing where there are no results.",
        )
        .calls()
        .nested()
        .operand("condition", I1)
        .rest("operands")
        .any_results("results")
        .regions(2)
        .traits(SHADOWING)
        .format("operands attributes : types  region else")
        .verify(checks::if_)
        .example(
            "%chain = tfrt.new.chain
%condition = tfrt.constant.i1 true
%x = tfrt.constant.i32 21
%y = tfrt.if %condition, %x : (i32) -> (i32) {
  %twice = tfrt.add.i32 %x, %x
  tfrt.return %twice : i32
} else {
  tfrt.return %x : i32
}
%done = tfrt.print.i32 %y, %chain",
        )
        .prints("int32 = 42")
        .generic(
            "%results = \"tfrt.if\"(%condition, %operands) ({
^bb0(%x: i32):
  \"tfrt.return\"(%x) : (i32) -> ()
}, {
^bb0(%x: i32):
  \"tfrt.return\"(%x) : (i32) -> ()
}) : (i1, i32) -> i32",
        )
}

fn repeat() -> OpDef {
    OpDef::new("tfrt.repeat.i32")
        .summary("Runs a region a number of times, each with the results of the one before")
        .details(
            "A count of 0 gives the operands. Turns begin one after the other; after each 32 the \
             loop waits until the first of its values is there.",
        )
        .calls()
        .nested()
        .operand("trip count", I32)
        .rest("loop operands")
        .results_like_rest("results")
        .regions(1)
        .traits(SHADOWING)
        .fails(
            "InvalidArgument",
            "expected a repeat count that is not negative, found N",
            "the count is negative",
        )
        .format("operands attributes[ : type(operands)] region")
        .verify(checks::repeat)
        .example(
            "%chain = tfrt.new.chain
%count = tfrt.constant.i32 5
%x = tfrt.constant.i32 1
%y = tfrt.repeat.i32 %count, %x : i32 {
  %twice = tfrt.add.i32 %x, %x
  tfrt.return %twice : i32
}
%done = tfrt.print.i32 %y, %chain",
        )
        .prints("int32 = 32")
        .generic(
            "%results = \"tfrt.repeat.i32\"(%trip_count, %loop_operands) ({
^bb0(%x: i32):
  \"tfrt.return\"(%x) : (i32) -> ()
}) : (i32, i32) -> i32",
        )
}

fn parallel_for() -> OpDef {
    OpDef::new("tfrt.parallel_for.i32")
        .summary("Runs a region for each block of a range")
        .details(PARALLEL)
        .calls()
        .nested()
        .operand("start", I32)
        .operand("end", I32)
        .operand("block size", I32)
        .rest("operands")
        .result("done", Chain)
        .regions(1)
        .traits(&[
            Traits::ISOLATED,
            Traits::SINGLE_BLOCK,
            Traits::SHADOWS_RANGE,
        ])
        .fails(
            "InvalidArgument",
            "expected a block size above 0, found N",
            "there is no such block",
        )
        .fails(
            "InvalidArgument",
            "expected a range that does not end before it starts, found A to B",
            "the end is less than the start",
        )
        .fails(
            "Unknown",
            "Invalid parallel body function result types",
            "the region gives something else than nothing or a chain, in bytes that no compiler \
             of ours has written",
        )
        .format("operand to operand fixed operand[, operands : type(operands)] region")
        .verify(checks::parallel_for)
        .example(
            "%start = tfrt.constant.i32 0
%end = tfrt.constant.i32 10
%size = tfrt.constant.i32 4
%sum = \"tfrt_test.atomic.create.i32\"() : () -> !test.atomic.i32
%c0 = tfrt.parallel_for.i32 %start to %end fixed %size, %sum : !test.atomic.i32 {
  %done = \"tfrt_test.atomic.add.i32\"(%sum, %end) : (!test.atomic.i32, i32) -> !tfrt.chain
  tfrt.return %done : !tfrt.chain
}
%n, %c1 = \"tfrt_test.atomic.get.i32\"(%sum, %c0) : (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
%c2 = tfrt.print.i32 %n, %c1",
        )
        .prints("int32 = 22")
        .generic(
            "%done = \"tfrt.parallel_for.i32\"(%start, %end, %block_size, %operands) ({
^bb0(%a: i32, %b: i32, %x: i32):
  \"tfrt.return\"() : () -> ()
}) : (i32, i32, i32, i32) -> !tfrt.chain",
        )
}
