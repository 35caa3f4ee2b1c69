//! [`LoggingOpHandler`]: logs operations, their inputs and their results.
//!
//! ```text
//! [1] dispatch 'tfrt_test.odd_collector' 1 argument, 1 result, no attributes
//! Inputs for [1]: 'tfrt_test.odd_collector':
//!   Input for [1] tensor 0: DenseHostTensor dtype = i32, shape = [5], values = [1, 2, 3, 4, 5]
//! ```

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tfrt_host::{AsyncValue, Chain, DeviceId, Error, ExecutionContext, Output, Promise};
use tfrt_tensor::TensorFormat;

use super::OpHandler;
use crate::TensorHandle;
use crate::call_site::CallSite;
use crate::handle::{PendingMetadata, PendingTensor};
use crate::op::{Handles, Op, OpCall};
use crate::transfer::Transfer;

/// A handler that logs each operation that another handler runs.
///
/// A call is told when it is made; inputs and results are told when they are there, which the handler does not wait for:
/// each is one write, so that lines of several operations don't mix.
pub struct LoggingOpHandler {
    next: Arc<dyn OpHandler>,
    log: Arc<Log>,
}

/// Settings and output shared by the logged operations of a handler.
struct Log {
    with_results: bool,
    // A statistic, which numbers the calls.
    n_calls: AtomicU64,
    output: Output,
}

impl LoggingOpHandler {
    /// Returns a handler that logs what `next` runs on the standard error of `output`; results too if `with_results`.
    pub fn new(next: Arc<dyn OpHandler>, with_results: bool, output: Output) -> LoggingOpHandler {
        LoggingOpHandler {
            next,
            log: Arc::new(Log {
                with_results,
                n_calls: AtomicU64::new(0),
                output,
            }),
        }
    }
}

impl OpHandler for LoggingOpHandler {
    fn name(&self) -> &str {
        match self.log.with_results {
            true => "sync_logging",
            false => "logging",
        }
    }

    fn device(&self) -> DeviceId {
        self.next.device()
    }

    fn find(&self, op: &str) -> Result<Arc<dyn Op>, Error> {
        let op = self.next.find(op)?;
        Ok(Arc::new(LoggedOp {
            op,
            log: self.log.clone(),
        }))
    }
}

impl std::fmt::Debug for LoggingOpHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("LoggingOpHandler")
            .field(&self.next.name())
            .finish()
    }
}

/// An operation whose calls are logged.
struct LoggedOp {
    op: Arc<dyn Op>,
    log: Arc<Log>,
}

impl Op for LoggedOp {
    fn name(&self) -> &str {
        self.op.name()
    }

    fn is_pure(&self) -> bool {
        self.op.is_pure()
    }

    fn effect_order(&self) -> crate::EffectOrder {
        self.op.effect_order()
    }

    fn shares_resources(&self, attrs: crate::OpAttrsRef<'_>) -> bool {
        self.op.shares_resources(attrs)
    }

    fn n_results(&self) -> Option<usize> {
        self.op.n_results()
    }

    fn call(&self, call: OpCall<'_>) -> Result<Handles, Error> {
        // Ordering: a statistic.
        let number = self.log.n_calls.fetch_add(1, Ordering::Relaxed);
        let name = self.op.name();
        let count = |n: usize, what: &str| {
            let s = if n == 1 { "" } else { "s" };
            format!("{n} {what}{s}")
        };
        let n_results = call.n_results.or(self.op.n_results()).unwrap_or(0);
        let (arguments, results) = (
            count(call.inputs.len(), "argument"),
            count(n_results, "result"),
        );
        let attributes = match call.attrs.is_empty() {
            true => "no attributes".to_owned(),
            false => call.attrs.to_string(),
        };
        self.log.tell(&format!(
            "[{number}] dispatch '{name}' {arguments}, {results}, {attributes}"
        ));
        let execution = call.execution;
        let inputs: Vec<TensorHandle> = call.inputs.iter().cloned().collect();
        let _told = self.log.tell_all(number, name, "Input", inputs, execution);
        let mut results = self.op.call(call)?;
        if self.log.with_results && !results.is_empty() {
            let all = results.to_vec();
            let told = self.log.tell_all(number, name, "Output", all, execution);
            if !told.is_settled() {
                // Who reads them comes behind the log.
                for result in &mut results {
                    *result = behind(result, &told, execution);
                }
            }
        }
        Ok(results)
    }
}

/// Returns the tensor on the host: itself where it can't be brought there.
fn on_host(handle: TensorHandle, execution: &ExecutionContext) -> TensorHandle {
    let devices = execution.host().devices();
    let is_host = |device| {
        devices
            .contract(device)
            .is_ok_and(|it| it.memory().is_host())
    };
    let device = devices.by_id(handle.device());
    let host = devices.by_id(DeviceId::HOST);
    match (device, host) {
        (Some(device), Some(host)) if !is_host(&device) => {
            let transfer = Transfer {
                device: &host,
                format: TensorFormat::DenseHost,
                execution,
                caller: CallSite::Kernel,
            };
            transfer.of(&handle, || Ok(())).unwrap_or(handle)
        }
        _ => handle,
    }
}

/// Returns the handle of a tensor that is there when a chain is, too.
fn behind(
    handle: &TensorHandle,
    told: &AsyncValue<Chain>,
    execution: &ExecutionContext,
) -> TensorHandle {
    let tensor = handle.to_async();
    let tensor = told.clone().and_then_value(move |_| tensor);
    let metadata = match handle.metadata() {
        Some(metadata) => PendingMetadata::Known(metadata.clone()),
        None => PendingMetadata::WithTensor,
    };
    let later = PendingTensor::new(tensor, metadata);
    TensorHandle::of_pending(handle.owner(), later, execution.request())
}

impl Log {
    /// Writes lines, the last of which is ended by the output.
    fn tell(&self, text: &str) {
        self.output.log(text.strip_suffix('\n').unwrap_or(text));
    }

    /// Logs tensors when all of them are there; those of other devices are brought to the host.
    fn tell_all(
        self: &Arc<Self>,
        number: u64,
        name: &str,
        what: &'static str,
        handles: Vec<TensorHandle>,
        execution: &ExecutionContext,
    ) -> AsyncValue<Chain> {
        let handles: Vec<TensorHandle> = handles
            .into_iter()
            .map(|handle| on_host(handle, execution))
            .collect();
        let (log, name) = (self.clone(), name.to_owned());
        let awaited: Vec<_> = handles
            .iter()
            .map(|handle| handle.to_async().into_any())
            .collect();
        // A handle that is shared is no candidate for being written over, so these are the tensors themselves.
        let print = move || {
            let mut text = format!("{what}s for [{number}]: '{name}':\n");
            for (index, handle) in handles.iter().enumerate() {
                let _infallible =
                    writeln!(text, "  {what} for [{number}] tensor {index}: {handle}");
            }
            text.push('\n');
            log.tell(&text);
        };
        match awaited.iter().all(|value| value.is_settled()) {
            true => {
                print();
                Chain.into()
            }
            false => {
                let (promise, told): (Promise<Chain>, _) = AsyncValue::pending();
                tfrt_host::when_all(&awaited).when_settled(move |_| {
                    print();
                    promise.resolve(Chain);
                });
                told
            }
        }
    }
}
