//! [`CoreRuntime::composite`]: an operation that is a function of a program.

use std::sync::Arc;

use tfrt_host::{
    AnyAsyncValue, AsyncValue, BoundCall, Chain, Error, Function, Value, run_when_settled,
};
use tfrt_tensor::Tensor;

use crate::TensorHandle;
use crate::dispatch::of_another_runtime;
use crate::handle::{MetadataValue, Owner, PendingMetadata, PendingTensor};
use crate::kernels::handle_as_value;
use crate::op::{CoreRuntimeOp, Handles, Op, OpCall};
use crate::runtime::CoreRuntime;

/// A function `(chain, tensorhandle...) -> (chain, tensorhandle...)` as an operation.
struct CompositeOp {
    call: BoundCall,
    owner: Owner,
}

impl CoreRuntime {
    /// Makes an operation of a function of a program that takes a chain and handles, and gives a chain and handles. It
    /// has no attributes.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the function takes or gives anything else.
    pub fn composite(&self, function: Function) -> Result<CoreRuntimeOp, Error> {
        check(&function, "takes", function.argument_types())?;
        check(&function, "gives", function.result_types())?;
        let op = Arc::new(CompositeOp {
            call: function.bind(),
            owner: self.owner(),
        });
        Ok(CoreRuntimeOp::new(op, None, self.id()))
    }
}

fn check<'a>(
    function: &Function,
    verb: &str,
    types: impl Iterator<Item = &'a str>,
) -> Result<(), Error> {
    let mut n = 0;
    for (index, found) in types.enumerate() {
        let expected = if index == 0 {
            Chain::NAME
        } else {
            TensorHandle::NAME
        };
        if found != expected {
            let name = function.name();
            return Err(Error::invalid_argument(format!(
                "the function @{name} {verb} {found} at place {index}: an operation {verb} {expected} there"
            )));
        }
        n += 1;
    }
    if n > 0 {
        return Ok(());
    }
    let name = function.name();
    Err(Error::invalid_argument(format!(
        "the function @{name} {verb} nothing: an operation {verb} {} first",
        Chain::NAME
    )))
}

impl CompositeOp {
    fn function(&self) -> &Function {
        self.call.function()
    }
}

impl Op for CompositeOp {
    fn name(&self) -> &str {
        self.function().name()
    }

    fn n_results(&self) -> Option<usize> {
        Some(self.function().n_results() - 1)
    }

    fn call(&self, call: OpCall<'_>) -> Result<Handles, Error> {
        let (name, expected, found) = (
            self.name(),
            self.function().n_arguments() - 1,
            call.inputs.len(),
        );
        if expected != found {
            let s = if expected == 1 { "" } else { "s" };
            let message = format!("{name} expects {expected} input{s}, found {found}");
            return Err(Error::invalid_argument(message));
        }
        if let Some((attribute, _)) = call.attrs.iter().next() {
            let attribute = attribute.escape_debug();
            let message = format!(
                "{name} has no attribute '{attribute}': it is a function, which takes none"
            );
            return Err(Error::invalid_argument(message));
        }
        if let Some(expected) = call.n_results
            && Some(expected) != self.n_results()
        {
            let n = self.function().n_results() - 1;
            let message = format!("{name} has {n} results, the caller expects {expected}");
            return Err(Error::invalid_argument(message));
        }
        let is_foreign = |handle: &TensorHandle| handle.owner().runtime != self.owner.runtime;
        if let Some(index) = call.inputs.iter().position(is_foreign) {
            return Err(Error::invalid_argument(of_another_runtime(name, index)));
        }
        if let Some(reason) = call.execution.request().cancellation() {
            return Err(reason.clone());
        }
        let guard = match call.in_flight {
            Some(in_flight) => Some(in_flight.begin()?),
            None => None,
        };
        let before = call.chain.as_ref().map(|chain| (**chain).clone());
        let n_values = self
            .function()
            .n_arguments()
            .max(self.function().n_results());
        let mut values = Vec::with_capacity(n_values);
        values.push(
            before
                .unwrap_or_else(|| AsyncValue::available(Chain))
                .into_any(),
        );
        let inputs: Vec<TensorHandle> = call.inputs.into_vec();
        values.extend(inputs.into_iter().map(handle_as_value));
        self.call.call(call.execution, &mut values);
        if let Some(guard) = guard {
            run_when_settled(&values, move || drop(guard));
        }
        let mut results = values.into_iter();
        if let (Some(after), Some(chain)) = (results.next(), call.chain) {
            *chain = after.downcast::<Chain>().unwrap_or_else(|_| {
                AsyncValue::from_error(Error::internal(
                    "the first result of a function is no chain",
                ))
            });
        }
        let request = call.execution.request();
        let to_handle = |value: AnyAsyncValue| match value.downcast::<TensorHandle>() {
            Ok(value) => value_as_handle(value, self.owner, request),
            Err(_) => {
                let error = Error::internal("a result of a function is no tensor handle");
                TensorHandle::of_error(self.owner, error)
            }
        };
        Ok(results.map(to_handle).collect())
    }
}

/// Returns the value of a register as a handle.
fn value_as_handle(
    value: AsyncValue<TensorHandle>,
    owner: Owner,
    request: &Arc<tfrt_host::RequestContext>,
) -> TensorHandle {
    match value.get() {
        Some(Ok(handle)) => return handle.clone(),
        Some(Err(error)) => return TensorHandle::of_error(owner, error.clone()),
        None => (),
    }
    let metadata: AsyncValue<MetadataValue> = value.clone().and_then_value(TensorHandle::described);
    let tensor: AsyncValue<Tensor> = value.and_then_value(TensorHandle::to_async);
    let metadata = PendingMetadata::Before(metadata);
    TensorHandle::of_pending(owner, PendingTensor::new(tensor, metadata), request)
}
