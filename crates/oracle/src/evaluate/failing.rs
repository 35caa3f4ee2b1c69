//! Evaluation of operations that fail on purpose, and of cancellation.

use std::rc::Rc;

use super::{FamilyResult, Machine, plan::Operation};
use crate::value::{
    Datum::{self, *},
    Failure,
};

const BAD: &str = "something bad happened";
const BAD_LATER: &str = "something bad happened asynchronously";

impl Machine<'_> {
    pub(super) fn failing_operation(
        &mut self,
        operation: &Operation,
        operands: &[Datum],
    ) -> FamilyResult {
        let op = operation.op;
        Some(match (operation.name.as_str(), operands) {
            ("tfrt_test.fail" | "tfrt_test.fail_s" | "tfrt_test.error_s", []) => {
                let failure = self.fail(op, "Unknown", BAD);
                vec![Err(failure); operation.results.len()]
            }
            ("tfrt_test.panic", []) => {
                let message = "the kernel panicked: tfrt_test.panic panics";
                vec![Err(self.fail(op, "Internal", message))]
            }
            ("tfrt_test.drop_promise", []) => {
                let name = &operation.name;
                let message = format!("kernel '{name}' dropped its promise without resolving it");
                vec![Err(self.fail(op, "Internal", message))]
            }
            // It gives two.
            ("tfrt_test.wrong_result_count", []) if operation.results.len() != 2 => {
                let n_results = operation.results.len();
                let message = format!("the kernel gave 2 results where {n_results} are expected");
                vec![Err(self.fail(op, "Internal", message)); n_results]
            }
            ("tfrt_test.partial_fail", []) => vec![Ok(I32(1)), Err(self.fail(op, "Unknown", BAD))],
            ("tfrt_test.error_chain", [Chain]) => {
                vec![Err(self.fail(op, "Unknown", "error chain"))]
            }
            ("tfrt_test.report_error_async", []) => vec![Err(self.fail(op, "Unknown", BAD_LATER))],
            (
                "tfrt_test.report_error_concrete_async" | "tfrt_test.report_error_indirect_async",
                [I32(code)],
            ) => match code {
                0 => vec![Ok(I32(0))],
                _ => vec![Err(self.fail(op, "Unknown", BAD_LATER))],
            },
            ("tfrt_test.cancel", [Chain]) => {
                let message = "Cancelled".to_owned();
                let failure = Rc::new(Failure {
                    code: "Cancelled",
                    message,
                });
                self.cancelled.get_or_insert(failure);
                vec![Ok(I32(0)), Ok(Chain)]
            }
            _ => return None,
        })
    }
}
