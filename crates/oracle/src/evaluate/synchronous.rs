//! Evaluation of functions that run at once: synchronous and native ones.

use std::rc::Rc;

use super::{
    Machine, Refusal,
    plan::{BodyIndex, Kind, Operation},
    take_operands, take_results, unsupported,
};
use crate::value::{
    Datum::{self, *},
    Failure, Value,
};

impl Machine<'_> {
    /// Runs a synchronous function, up to its first failure.
    pub(super) fn run_synchronously(
        &mut self,
        body: BodyIndex,
        arguments: Vec<Datum>,
    ) -> Result<Result<Vec<Datum>, Rc<Failure>>, Refusal> {
        let body = &self.plan.bodies[body];
        let mut slots = self.slots(body, arguments)?;
        for operation in &body.operations {
            self.count_steps(1)?;
            let operands = take_operands(&mut slots, operation);
            let results = self
                .apply_exactly(operation, &operands)
                .ok_or_else(|| unsupported(operation))?;
            // `error_s` has no results to fail, yet stops the function.
            if operation.name == "tfrt_test.error_s" && results.is_empty() {
                let message = self.errors.last().map(|error| error.message.clone());
                let message = message.unwrap_or_default();
                return Ok(Err(Rc::new(Failure {
                    code: "Unknown",
                    message,
                })));
            }
            for (&slot, result) in operation.results.iter().zip(results) {
                match result {
                    Ok(datum) => slots[slot] = Some(datum),
                    Err(failure) => return Ok(Err(failure)),
                }
            }
        }
        Ok(Ok(take_results(&mut slots, body)))
    }

    /// Runs an operation of an asynchronous function that calls a synchronous
    /// one.
    pub(super) fn invoke(
        &mut self,
        operation: &Operation,
        operands: &[Datum],
    ) -> Result<Option<Vec<Value>>, Refusal> {
        let (
            "tfrt_test.invoke_sync_function.i32_i32.i32"
            | "tfrt_test.invoke_sync_function.i32_i32.i32_i32"
            | "tfrt_test.sync_function_runner.i32_i32.i32"
            | "tfrt_test.sync_function_runner.i32_i32.i32_i32",
            [I32(_), I32(_)],
        ) = (operation.name.as_str(), operands)
        else {
            return Ok(None);
        };
        let name = self.symbol(operation, "fn")?;
        let Some(Kind::Sync(body)) = self.plan.function(&name).map(|function| function.kind) else {
            return Err(Refusal::malformed(format!("'{name}' is not synchronous")));
        };
        Ok(Some(
            match self.run_synchronously(body, operands.to_vec())? {
                Ok(results) => results.into_iter().map(Ok).collect(),
                Err(failure) => vec![Err(failure); operation.results.len()],
            },
        ))
    }

    /// Runs a native function.
    pub(super) fn native(
        &mut self,
        name: &str,
        arguments: &[Value],
    ) -> Result<Vec<Value>, Refusal> {
        Ok(match (name, arguments) {
            ("native_sink", _) => Vec::new(),
            ("native_async_sink", _) => vec![Ok(Chain)],
            ("native_add" | "native_async_add", [Ok(I32(a)), Ok(I32(b))]) => {
                vec![Ok(I32(a.wrapping_add(*b)))]
            }
            ("native_error", []) => {
                let message = "something bad happened".to_owned();
                vec![Err(Rc::new(Failure {
                    code: "Unknown",
                    message,
                }))]
            }
            _ => {
                return Err(Refusal::Unsupported(format!(
                    "the native function '{name}'"
                )));
            }
        })
    }
}
