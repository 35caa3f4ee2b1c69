//! Loops whose body is a function.

use crate::dialect::{
    AttributeKind::{self, FlatSymbol},
    OpDef,
    ValueKind::*,
};
use crate::dialects::checks;

pub(super) fn definitions() -> Vec<OpDef> {
    vec![while_loop(), parallel_call()]
}

fn while_loop() -> OpDef {
    OpDef::new("tfrt.while")
        .summary("Calls a function with its own results while a condition holds")
        .details(
            "The body takes the loop's values, and gives the next ones and, last, the next \
             condition. If the condition does not hold at first, the results are the operands.\n\n\
             With `parallel_iterations` of 1 or less a turn begins when the one before has \
             returned and its condition is there. With more, turns are tasks, and one begins as \
             soon as the condition of the one before is there, even if other values are not; \
             the number itself is no limit.\n\n\
             When a condition is an error, the loop waits for all of its values, and then all \
             results are that error. A value that is an error is passed on like any other.",
        )
        .calls()
        .nested()
        .operand("condition", I1)
        .rest("operands")
        .any_results("results")
        .attribute("body_fn", FlatSymbol, "the body")
        .attribute(
            "parallel_iterations",
            AttributeKind::Typed(I64),
            "whether turns overlap: more than 1 says that they do",
        )
        .fails(
            "InvalidArgument",
            "tfrt.while needs at least one loop value",
            "only the condition is given",
        )
        .fails(
            "InvalidArgument",
            "expected a body of N arguments and M results, found K and L",
            "the body does not fit the loop's values",
        )
        .fails(
            "InvalidArgument",
            "expected i1 as the last result of 'BODY', found TYPE",
            "what the body gives last is no condition",
        )
        .format(
            "operand $body_fn(operands) attr-dict \
             parallel_iterations($parallel_iterations) : types",
        )
        .example(
            "func.func @double_below_100(%x: i32) -> (i32, i1) {
  %y = tfrt.add.i32 %x, %x
  %limit = tfrt.constant.i32 100
  %more = \"tfrt.lessequal.i32\"(%y, %limit) : (i32, i32) -> i1
  tfrt.return %y, %more : i32, i1
}
func.func @main() {
  %chain = tfrt.new.chain
  %x = tfrt.constant.i32 3
  %condition = tfrt.constant.i1 true
  %y = tfrt.while %condition @double_below_100(%x) parallel_iterations(1) : (i32) -> (i32)
  %done = tfrt.print.i32 %y, %chain
  tfrt.return
}
",
        )
        .prints("int32 = 192")
}

fn parallel_call() -> OpDef {
    OpDef::new("tfrt.parallel_call.i32")
        .summary("Calls a function for each block of a range")
        .details(super::regions::PARALLEL)
        .calls()
        .nested()
        .operand("start", I32)
        .operand("end", I32)
        .operand("block size", I32)
        .rest("operands")
        .result("done", Chain)
        .unchecked(
            "callee",
            FlatSymbol,
            "the function; it takes the bounds of a block and the further operands, and gives \
             nothing or a chain",
        )
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
        .format(
            "operand to operand fixed operand $callee(operands) attr-dict\
             [ : type(operands)]",
        )
        .verify(checks::parallel_call)
        .example(
            "func.func @add_up(%start: i32, %end: i32, %sum: !test.atomic.i32) -> !tfrt.chain {
  %done = \"tfrt_test.atomic.add.i32\"(%sum, %end) : (!test.atomic.i32, i32) -> !tfrt.chain
  tfrt.return %done : !tfrt.chain
}
func.func @main() {
  %start = tfrt.constant.i32 0
  %end = tfrt.constant.i32 10
  %size = tfrt.constant.i32 4
  %sum = \"tfrt_test.atomic.create.i32\"() : () -> !test.atomic.i32
  %c0 = tfrt.parallel_call.i32 %start to %end fixed %size @add_up(%sum) : !test.atomic.i32
  %n, %c1 = \"tfrt_test.atomic.get.i32\"(%sum, %c0) : (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
  %c2 = tfrt.print.i32 %n, %c1
  tfrt.return
}
",
        )
        .prints("int32 = 22")
}
