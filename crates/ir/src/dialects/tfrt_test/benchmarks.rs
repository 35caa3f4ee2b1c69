//! Benchmarks: operations that run a function again and again, and print how long it
//! took.

use crate::dialect::{AttributeKind, OpDef, Traits, ValueKind::*};
use crate::dialects::checks;

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        settings(benchmark()),
        settings(sync_benchmark()),
        test_cost(),
    ]
}

const NANOSECONDS: &str = "Runs to warm up are followed by runs that are timed, until so many were \
    timed or so much time was spent in them. Then eleven lines are printed that begin with \
    `BM:NAME:`: `Duration(ns)`, `Count`, the least, the median, the 95th and the 99th percentile \
    of the time by the clock (`Time Min(ns)`, `Time 50%(ns)`, ...) and of the processor time of \
    the process (`CPU Min(ns)`, ...), and `CPU utilization(percent)`.";

fn settings(definition: OpDef) -> OpDef {
    definition
        .attribute(
            "duration_secs",
            AttributeKind::Typed(I32),
            "how many seconds the timed runs take at most, but for the last of them",
        )
        .attribute(
            "max_count",
            AttributeKind::Typed(I32),
            "how many runs are timed at most",
        )
        .unchecked(
            "num_warmup_runs",
            AttributeKind::Typed(I32),
            "how many runs come before; 1 where the operation's own form leaves it out",
        )
}

fn benchmark() -> OpDef {
    OpDef::new("tfrt_test.benchmark")
        .summary("Measures a region that returns one value")
        .details(NANOSECONDS)
        .calls()
        .nested()
        .outside()
        .rest("operands")
        .result("done", Chain)
        .attribute(
            "name",
            AttributeKind::String,
            "what the printed lines call it",
        )
        .regions(1)
        .traits(&[
            Traits::ISOLATED,
            Traits::SINGLE_BLOCK,
            Traits::SHADOWS_OPERANDS,
        ])
        .fails(
            "Unknown",
            "Benchmark op requires the input function have exactly one return value",
            "the region gives none or several",
        )
        .format("$name(typed-operands) settings region")
        .verify(checks::benchmark)
        .example(
            "%x = tfrt.constant.i32 21
%done = tfrt_test.benchmark \"twice\"(%x : i32) duration_secs = 1, max_count = 100 {
  %twice = tfrt.add.i32 %x, %x
  tfrt.return %twice : i32
}",
        )
        .prints("BM:twice:...")
        .generic(
            "%done = \"tfrt_test.benchmark\"(%operands) ({
^bb0(%x: i32):
  \"tfrt.return\"(%x) : (i32) -> ()
}) {duration_secs = 1 : i32, max_count = 100 : i32, name = \"same\", num_warmup_runs = 1 : i32} : (i32) -> !tfrt.chain",
        )
}

fn sync_benchmark() -> OpDef {
    OpDef::new("tfrt_test.sync_benchmark")
        .summary("Measures a synchronous function that returns nothing")
        .details(NANOSECONDS)
        .everything()
        .rest("operands")
        .unchecked("target_fn", AttributeKind::FlatSymbol, "the function")
        .traits(&[Traits::SYNC])
        .fails(
            "Unknown",
            "SyncBenchmark op requires the input function be a sync function",
            "the function is not marked `tfrt.sync`",
        )
        .fails(
            "Unknown",
            "SyncBenchmark op requires the input function have zero return value",
            "the function gives results",
        )
        .fails(
            "Unknown",
            "Incorrect number of arguments for the target function for the SyncBenchmark op",
            "the operands are not as many as the function takes",
        )
        .format("$target_fn(typed-operands) settings")
        .verify(checks::sync_benchmark)
        .example(
            "func.func @quick(%x: i32) attributes {tfrt.sync} {
  tfrt.return
}
func.func @main() {
  %x = tfrt.constant.i32 1
  tfrt_test.sync_benchmark @quick(%x : i32) duration_secs = 1, max_count = 100
  tfrt.return
}
",
        )
        .prints("BM:quick:...")
}

fn test_cost() -> OpDef {
    OpDef::new("tfrt_test.test_cost")
        .summary("Prints `id: N`; states a cost for the assignment of streams")
        .details("The result is 0.")
        .outside()
        .rest("operands")
        .result("zero", I32)
        .attribute(
            "id",
            AttributeKind::Typed(I64),
            "the number that is printed",
        )
        .compile_time(
            "_tfrt_cost",
            AttributeKind::Typed(I64),
            "the cost, above 0, in units of no dimension",
        )
        .format("operands attr-dict : type(operands)")
        .verify(checks::test_cost)
        .example(
            "%x = tfrt.constant.i32 1\n\
             %zero = tfrt_test.test_cost %x {id = 7 : i64, _tfrt_cost = 100 : i64} : i32",
        )
        .prints("id: 7")
}
