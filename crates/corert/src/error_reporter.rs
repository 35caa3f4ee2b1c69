//! [`ErrorReporter`]: reports errors of pending tensors.

use std::sync::{Arc, OnceLock};

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext, Promise};
use tfrt_tensor::Tensor;

use crate::call_site::CallSite;
use crate::definition::OpDefinition;

/// The operation or transfer that a reported error belongs to.
pub(crate) enum FailedCall {
    Op(Arc<OpDefinition>),
    Transfer,
}

impl FailedCall {
    fn name(&self) -> &str {
        match self {
            FailedCall::Op(definition) => definition.name(),
            FailedCall::Transfer => "transfer",
        }
    }
}

/// The link between the tensors that a call will have made and its results: reports each error to the diagnostic
/// handler once for all results, and hides errors after a cancellation.
pub(crate) struct ErrorReporter {
    called: FailedCall,
    execution: ExecutionContext,
    caller: CallSite,
    /// The first error, as it arrived and as it was reported.
    told: OnceLock<(Error, Error)>,
}

impl ErrorReporter {
    pub(crate) fn new(
        called: FailedCall,
        execution: &ExecutionContext,
        caller: CallSite,
    ) -> Arc<Self> {
        Arc::new(ErrorReporter {
            called,
            execution: execution.clone(),
            caller,
            told: OnceLock::new(),
        })
    }

    /// Returns the result for a tensor.
    pub(crate) fn result(self: &Arc<Self>, tensor: AsyncValue<Tensor>) -> AsyncValue<Tensor> {
        let (promise, result) = AsyncValue::pending();
        self.keep(promise, tensor);
        result
    }

    /// Returns the chain of side effects that happen later.
    pub(crate) fn chain(self: &Arc<Self>, effects: AsyncValue<Chain>) -> AsyncValue<Chain> {
        let (promise, result) = AsyncValue::pending();
        let telling = self.clone();
        effects.when_settled(move |effects| match effects.error() {
            Some(error) if telling.execution.request().cancellation().is_none() => {
                promise.fail(telling.tell(error));
            }
            _ => promise.forward(effects),
        });
        result
    }

    /// Keeps the promise of a result when its tensor is there.
    pub(crate) fn keep(self: &Arc<Self>, promise: Promise<Tensor>, tensor: AsyncValue<Tensor>) {
        let telling = self.clone();
        tensor.when_settled(move |tensor| {
            let request = telling.execution.request();
            match (request.cancellation(), tensor.error()) {
                (Some(reason), _) => promise.fail(reason.clone()),
                (None, Some(error)) => promise.fail(telling.tell(error)),
                (None, None) => promise.forward(tensor),
            }
        });
    }

    #[cold]
    fn tell(&self, error: &Error) -> Error {
        let tell = || {
            let name = self.called.name();
            self.caller.report(name, error.clone(), &self.execution)
        };
        let (first, told) = self.told.get_or_init(|| (error.clone(), tell()));
        match first.same(error) {
            true => told.clone(),
            false => tell(),
        }
    }
}
