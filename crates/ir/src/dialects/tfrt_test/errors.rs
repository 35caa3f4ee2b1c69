//! Operations that fail, at once or later, and one that cancels.

use crate::dialect::{OpDef, ValueKind::*};
use crate::dialects::kernel;

const BAD: &str = "something bad happened";
const BAD_LATER: &str = "something bad happened asynchronously";

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        kernel("tfrt_test.fail")
            .summary("An error")
            .result("never", I32)
            .fails("Unknown", BAD, "always")
            .no_effects(),
        kernel("tfrt_test.partial_fail")
            .summary("The number 1, and an error")
            .result("one", I32)
            .result("never", I32)
            .fails("Unknown", BAD, "always, as the second result")
            .no_effects(),
        kernel("tfrt_test.error_chain")
            .summary("An error in place of a chain")
            .operand("chain", Chain)
            .result("never", Chain)
            .fails("Unknown", "error chain", "always")
            .no_effects(),
        kernel("tfrt_test.report_error_async")
            .summary("An error, made by a task")
            .asynchronous()
            .result("never", I32)
            .fails("Unknown", BAD_LATER, "always")
            .no_effects(),
        fails_later("tfrt_test.report_error_concrete_async"),
        fails_later("tfrt_test.report_error_indirect_async")
            .details("The same as `tfrt_test.report_error_concrete_async`."),
        kernel("tfrt_test.cancel")
            .summary("Cancels the request")
            .details(
                "Kernels that have not started do not start: their results are errors with the \
                 code `Cancelled`. Those that run end as they would. The results are 0 and the \
                 chain.",
            )
            .operand("chain", Chain)
            .result("zero", I32)
            .result("done", Chain)
            .outside(),
        kernel("tfrt_test.fail_s")
            .summary("An error, for functions marked synchronous")
            .details("The same as `tfrt_test.fail`.")
            .result("never", I32)
            .fails("Unknown", BAD, "always")
            .traits(&[crate::dialect::Traits::SYNC])
            .no_effects(),
        kernel("tfrt_test.error_s")
            .summary("An error, for functions marked synchronous")
            .details("The same as `tfrt_test.fail`.")
            .result("never", I32)
            .fails("Unknown", BAD, "always")
            .traits(&[crate::dialect::Traits::SYNC])
            .no_effects(),
    ]
}

fn fails_later(name: &'static str) -> OpDef {
    kernel(name)
        .summary("The value if it is 0, else an error, made by a task")
        .asynchronous()
        .operand("value", I32)
        .result("zero", I32)
        .fails("Unknown", BAD_LATER, "the value is not 0")
        .no_effects()
}
