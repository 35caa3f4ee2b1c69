//! Remote execution on the side that runs: functions by name, on objects by name.

use std::sync::Arc;
use std::time::Instant;

use tfrt_async::{AsyncValue, Error, run_when_settled};
use tfrt_corert::TensorHandle;
use tfrt_host::{AnyAsyncValue, ExecutionContext, RequestContext};
use tfrt_tensor::Tensor;

use crate::context::{ContextRef, DistributedContext};
use crate::device::metadata_to_bytes;
use crate::functions::Registered;
use crate::ids::ObjectId;
use crate::message::{Metadata, Reply, RequestedOutput};
use crate::names::RemoteId;
use crate::security::{Quotas, Trust};
use crate::transport::{Bounds, CancelHook};

/// The types of values whose metadata can be told.
const TENSOR_TYPES: [&str; 2] = ["!t.tensor", "!corert.tensorhandle"];

/// Executes a function that was registered. Results are stored under their names at once; the reply comes when all are
/// there.
///
/// Errors in results are no errors of the call: they are in what is stored.
///
/// # Errors
///
/// `NotFound` if there is no such function, `InvalidArgument` if arguments or results don't fit it, `DeviceNotFound`.
pub(crate) fn execute(
    context: &Arc<DistributedContext>,
    name: &str,
    inputs: &[ObjectId],
    outputs: &[RequestedOutput],
    allowed: &Allowed,
) -> Result<AsyncValue<Reply>, Error> {
    let registered = context.functions().get(name)?;
    check(&registered, context, inputs, outputs)?;
    let request = request(context, allowed);
    let mut arguments = Vec::with_capacity(registered.function.n_arguments());
    if registered.takes_context {
        let own = ContextRef::new(context.clone(), None);
        arguments.push(AnyAsyncValue::new(own));
    }
    if registered.takes_outputs {
        let ids = outputs
            .iter()
            .map(|output| RemoteId::lent(output.id.clone()));
        arguments.extend(ids.map(AnyAsyncValue::new));
    }
    let objects = context.objects();
    arguments.extend(inputs.iter().map(|input| objects.get(input.key)));
    let execution = ExecutionContext::new(&request.context);
    // Arguments may still be to come from other tasks.
    let guard = request.context.external();
    let results = match context.server().transport().is_own_thread() {
        true => registered
            .pace
            .measure(|| registered.function.execute(&execution, arguments)),
        false => registered.function.spawn(&execution, arguments),
    };
    if !registered.takes_outputs {
        for (output, result) in outputs.iter().zip(&results) {
            objects.set(&output.id, result.clone())?;
        }
    }
    let wanted = outputs.iter().map(|output| output.need_metadata).collect();
    let reply = reply_when_there(request, results, wanted);
    drop(guard);
    Ok(reply)
}

fn check(
    registered: &Registered,
    context: &DistributedContext,
    inputs: &[ObjectId],
    outputs: &[RequestedOutput],
) -> Result<(), Error> {
    let function = &registered.function;
    let (n_results, n_outputs) = (function.n_results(), outputs.len());
    if n_results != n_outputs {
        return Err(Error::invalid_argument(format!(
            "Result size mismatch: fn #result: {n_results} Received #outputs: {n_outputs}"
        )));
    }
    let n_own = usize::from(registered.takes_context);
    let n_ids = if registered.takes_outputs {
        n_outputs
    } else {
        0
    };
    let (n_arguments, n_inputs) = (function.n_arguments(), n_own + n_ids + inputs.len());
    if n_arguments != n_inputs || n_ids != registered.n_outputs {
        return Err(Error::invalid_argument(format!(
            "Argument size mismatch: fn #arg: {n_arguments} Received #inputs: {n_inputs}"
        )));
    }
    for id in inputs.iter().chain(outputs.iter().map(|output| &output.id)) {
        context.device(&id.device)?;
    }
    let mut typed = outputs.iter().zip(function.result_types());
    match typed.find(|(output, ty)| output.need_metadata && !TENSOR_TYPES.contains(ty)) {
        Some((_, ty)) => Err(Error::invalid_argument(format!("Invalid type {ty}"))),
        None => Ok(()),
    }
}

/// Stores an error under names whose objects will not be made, so that nobody waits for them.
pub(crate) fn fail<'a>(
    context: &DistributedContext,
    ids: impl Iterator<Item = &'a ObjectId>,
    error: &Error,
) {
    for id in ids {
        // One that is there is another's.
        let _is_set = context
            .objects()
            .set(id, AnyAsyncValue::from_error(error.clone()));
    }
}

/// A request on behalf of another task, which stops when that says so.
pub(crate) struct RemoteRequest {
    pub(crate) context: Arc<RequestContext>,
    _hook: Option<CancelHook>,
}

/// The time and the memory that an execution may take.
pub(crate) struct Allowed {
    pub(crate) bounds: Bounds,
    pub(crate) memory: Option<usize>,
}

impl Allowed {
    /// Returns what a peer allows itself, and no more than its quotas if it is not trusted.
    pub(crate) fn new(mut bounds: Bounds, trust: Trust, quotas: &Quotas, now: Instant) -> Allowed {
        let memory = match trust {
            Trust::Trusted => None,
            Trust::Untrusted => {
                let end = now.checked_add(quotas.time);
                bounds.deadline = bounds.deadline.into_iter().chain(end).min();
                Some(quotas.memory)
            }
        };
        Allowed { bounds, memory }
    }
}

/// Makes the request of an execution. Its kernels find the context.
pub(crate) fn request(context: &Arc<DistributedContext>, allowed: &Allowed) -> RemoteRequest {
    let own = ContextRef::new(context.clone(), None);
    let bounds = &allowed.bounds;
    let builder = RequestContext::builder(context.host())
        .own_resources()
        .data(own);
    let builder = match allowed.memory {
        Some(bytes) => builder.max_memory(bytes),
        None => builder,
    };
    let request = match bounds.deadline {
        Some(deadline) => builder.deadline(deadline).build(),
        None => builder.build(),
    };
    let hook = bounds.cancel.as_ref().map(|cancel| {
        let request = Arc::downgrade(&request);
        cancel.on_cancel(move |reason| {
            if let Some(request) = request.upgrade() {
                request.cancel_with(reason.clone());
            }
        })
    });
    RemoteRequest {
        context: request,
        _hook: hook,
    }
}

/// Returns the reply with the metadata of those results for which it is wanted.
pub(crate) fn reply_when_there(
    request: RemoteRequest,
    results: Vec<AnyAsyncValue>,
    wanted: Vec<bool>,
) -> AsyncValue<Reply> {
    let (promise, reply) = AsyncValue::pending();
    // Arguments may still be to come from other tasks.
    let guard = request.context.external();
    run_when_settled(&results.clone(), move || {
        let wanted = results.iter().zip(wanted).filter(|(_, wanted)| *wanted);
        let metadata = wanted.map(|(result, _)| metadata(result)).collect();
        request.context.clear_data();
        promise.resolve(Reply::Executed(metadata));
        drop((guard, request));
    });
    reply
}

/// Returns the metadata of a result, which is there.
fn metadata(result: &AnyAsyncValue) -> Metadata {
    if let Some(error) = result.error() {
        return Err(error.clone());
    }
    if let Some(tensor) = result.get::<Tensor>() {
        return Ok(metadata_to_bytes(tensor.metadata()));
    }
    let handle = result.get::<TensorHandle>();
    match handle.and_then(TensorHandle::metadata) {
        Some(metadata) => Ok(metadata_to_bytes(metadata)),
        None => {
            let ty = result.type_name().unwrap_or("(unknown)");
            Err(Error::invalid_argument(format!("Invalid type {ty}")))
        }
    }
}
