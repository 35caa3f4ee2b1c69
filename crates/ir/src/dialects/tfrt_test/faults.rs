//! Operations that misbehave on purpose, in ways that a host must survive. These are ours; the
//! original has none of them.

use crate::dialect::{AttributeKind, OpDef, ValueKind::*};
use crate::dialects::kernel;

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        kernel("tfrt_test.panic")
            .summary("Panics")
            .details("The host catches it.")
            .result("never", I32)
            .fails(
                "Internal",
                "the kernel panicked: tfrt_test.panic panics",
                "always",
            )
            .no_effects(),
        kernel("tfrt_test.never")
            .summary("Keeps its promise in the request's data, and never resolves it")
            .details(
                "When nothing else can run the host fails the request, with a list of kernels \
                 that never resolved.",
            )
            .asynchronous()
            .result("never", I32)
            .no_effects(),
        kernel("tfrt_test.drop_promise")
            .summary("Drops its promise in a task")
            .details(
                "A promise that is dropped fails its value with an error that names the kernel.",
            )
            .asynchronous()
            .result("never", I32)
            .fails(
                "Internal",
                "kernel 'tfrt_test.drop_promise' dropped its promise without resolving it",
                "always",
            )
            .no_effects(),
        kernel("tfrt_test.wrong_result_count")
            .summary("Gives two results, however many the program takes")
            .asynchronous()
            .any_results("results")
            .fails(
                "Internal",
                "the kernel gave 2 results where N are expected",
                "the program takes more or fewer",
            )
            .no_effects(),
        kernel("tfrt_test.allocate")
            .summary("Takes memory from the host's allocator and gives it back")
            .operand("chain", Chain)
            .attribute("bytes", AttributeKind::Typed(I64), "how much, in bytes")
            .result("done", Chain)
            .fails(
                "InvalidArgument",
                "cannot ask for N bytes",
                "that is negative, or more than an address can tell apart",
            )
            .fails(
                "ResourceExhausted",
                "cannot allocate N bytes",
                "the host has fewer left",
            )
            .no_effects(),
        kernel("tfrt_test.external")
            .summary("The value, copied on a thread of its own that the host does not know")
            .details("That takes a millisecond.")
            .asynchronous()
            .operand("value", I32)
            .result("copy", I32)
            .fails(
                "ResourceExhausted",
                "no thread: REASON",
                "the system gives no thread",
            )
            .no_effects(),
        kernel("tfrt_test.spin")
            .summary("Keeps its thread until the request is cancelled")
            .details("It looks every 100 microseconds. A kernel must not do that outside of tests.")
            .operand("chain", Chain)
            .result("done", Chain)
            .outside(),
    ]
}
