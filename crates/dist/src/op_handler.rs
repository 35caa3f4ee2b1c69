//! [`RemoteOpHandler`]: operations by name on a device of another task; and their execution there.

use std::fmt;
use std::sync::Arc;

use tfrt_async::{AnyAsyncValue, AsyncValue, Chain, Error, ErrorCode, Promise, run_when_settled};
use tfrt_corert::kernels::handle_as_value;
use tfrt_corert::{
    AttrValue, CoreRuntime, Handles, Inputs, IntoAttr, Op, OpAttrs, OpAttrsRef, OpCall, OpHandler,
    TensorHandle,
};
use tfrt_host::{DeviceId, DeviceRef, ExecutionContext};
use tfrt_tensor::Tensor;

use crate::context::{ContextRef, DistributedContext, bounds_of, device_in_task};
use crate::device::{metadata_from_bytes, remote_id, remote_tensor};
use crate::execute::{self, Allowed, RemoteRequest, reply_when_there};
use crate::ids::{ObjectId, TaskHandle};
use crate::message::{ExecuteOp, IntegerAttribute, Metadata, Reply, Request, RequestedOutput};
use crate::names::{RemoteChains, RemoteId};
use crate::task;
use crate::transport::Bounds;

/// A handler that has the handler of a device of another task execute every operation.
pub struct RemoteOpHandler(Arc<Remote>);

struct Remote {
    context: ContextRef,
    chains: RemoteChains,
    task: TaskHandle,
    device: DeviceRef,
}

impl RemoteOpHandler {
    /// Makes the handler of a device of another task, whose latest chain the manager knows.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the device is none of a task, `TaskNotFound`.
    pub fn new(
        context: &ContextRef,
        chains: &RemoteChains,
        device: DeviceRef,
    ) -> Result<RemoteOpHandler, Error> {
        let task = context.handle_of(&task::parse(device.name())?)?;
        Ok(RemoteOpHandler(Arc::new(Remote {
            context: context.clone(),
            chains: chains.clone(),
            task,
            device,
        })))
    }
}

impl OpHandler for RemoteOpHandler {
    fn name(&self) -> &str {
        "remote"
    }

    fn device(&self) -> DeviceId {
        self.0.device.id()
    }

    fn find(&self, op: &str) -> Result<Arc<dyn Op>, Error> {
        Ok(Arc::new(RemoteOp {
            name: op.to_owned(),
            remote: self.0.clone(),
        }))
    }
}

impl fmt::Debug for RemoteOpHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteOpHandler({})", self.0.device.name())
    }
}

/// An operation of another task.
struct RemoteOp {
    name: String,
    remote: Arc<Remote>,
}

impl Op for RemoteOp {
    fn name(&self) -> &str {
        &self.name
    }

    fn call(&self, call: OpCall<'_>) -> Result<Handles, Error> {
        let remote = &self.remote;
        let context = remote.context.context();
        let attributes = integers(call.attrs)?;
        let request = call.execution().request().clone();
        let runtime = CoreRuntime::new(context.host());
        let device: Arc<str> = remote.device.name().into();
        let allocate = || {
            let id = context.objects().allocate(&device);
            RemoteId::leased(context, remote.task, id)
        };
        // The next call orders itself behind this one at once.
        let out_chain = allocate();
        let in_chain = remote.chains.set(remote.task, out_chain.clone())?;
        let in_chain = in_chain.ok_or_else(|| {
            let task = remote.device.name();
            Error::not_found(format!("there is no chain of the task of {task}"))
        })?;
        let n_results = call.n_results.unwrap_or(1);
        let ids: Vec<RemoteId> = (0..n_results).map(|_| allocate()).collect();
        let outputs = ids.iter().map(|id| RequestedOutput {
            id: id.id.clone(),
            need_metadata: true,
        });
        let mut wanted = ExecuteOp {
            context: context.id(),
            handler: device.to_string(),
            op: self.name.clone(),
            in_chain: in_chain.id.clone(),
            out_chain: out_chain.id.clone(),
            inputs: Vec::new(),
            outputs: outputs.collect(),
            attributes,
        };
        let (promises, results): (Vec<Promise<Tensor>>, Vec<AsyncValue<Tensor>>) =
            (0..n_results).map(|_| AsyncValue::pending()).unzip();
        let handles = results
            .into_iter()
            .map(|tensor| runtime.pending(&remote.device, tensor, &request));
        let handles: Handles = handles.collect();
        let (done, chain) = AsyncValue::pending();
        if let Some(own) = call.chain {
            *own = chain;
        }
        let settle = Settle {
            device: remote.device.clone(),
            ids,
            promises,
            done,
        };
        let guard = request.external();
        let inputs: Vec<AsyncValue<Tensor>> =
            call.inputs.iter().map(TensorHandle::to_async).collect();
        let awaited: Vec<_> = inputs.iter().map(|input| input.as_any().clone()).collect();
        let remote = remote.clone();
        run_when_settled(&awaited, move || {
            let ids = inputs.iter().map(input_id);
            let inputs: Vec<RemoteId> = match ids.collect() {
                Ok(ids) => ids,
                Err(error) => {
                    // Whoever comes next waits for this chain: it fails there as well.
                    remote.fail_chain(&in_chain, &out_chain, wanted, &error);
                    return settle.fail(&error);
                }
            };
            wanted.inputs = inputs.iter().map(|id| id.id.clone()).collect();
            let (bounds, hook) = bounds_of(&request);
            let wanted = Request::RemoteExecuteOp(Box::new(wanted));
            let reply = remote.context.call(remote.task, wanted, bounds);
            reply.when_settled(move |reply| {
                // Objects are held until they were used.
                drop((hook, in_chain, out_chain, inputs));
                match reply.get() {
                    Some(Ok(Reply::Executed(metadata))) => settle.settle(metadata),
                    Some(Err(error)) => settle.fail(error),
                    _ => settle.fail(&Error::internal("expected the reply of an execution")),
                }
                // The context's servers live until it is answered.
                drop((guard, remote));
            });
        });
        Ok(handles)
    }
}

impl Remote {
    /// Lets the chain behind a call that can't be made be the one before it.
    fn fail_chain(
        &self,
        in_chain: &RemoteId,
        out_chain: &RemoteId,
        mut wanted: ExecuteOp,
        error: &Error,
    ) {
        // Without an operation the other task forwards the chain.
        wanted.op = String::new();
        wanted.outputs.clear();
        wanted.attributes.clear();
        let held = (in_chain.clone(), out_chain.clone());
        let request = Request::RemoteExecuteOp(Box::new(wanted));
        let reply = self.context.call(self.task, request, Bounds::default());
        reply.and_then(move || drop(held));
        let _ = error;
    }
}

/// The results of a call that is out.
struct Settle {
    device: DeviceRef,
    ids: Vec<RemoteId>,
    promises: Vec<Promise<Tensor>>,
    done: Promise<Chain>,
}

impl Settle {
    fn settle(self, metadata: &[Metadata]) {
        if metadata.len() != self.ids.len() {
            let message = format!(
                "unexpected number of remote results: expected {}, found {}",
                self.ids.len(),
                metadata.len()
            );
            return self.fail(&Error::invalid_argument(message));
        }
        let all = self.promises.into_iter().zip(self.ids).zip(metadata);
        for ((promise, id), metadata) in all {
            let tensor = metadata.clone().and_then(|bytes| {
                let metadata = metadata_from_bytes(&bytes)?;
                remote_tensor(&self.device, metadata, id)
            });
            promise.complete(tensor);
        }
        self.done.resolve(Chain);
    }

    fn fail(self, error: &Error) {
        for promise in self.promises {
            promise.fail(error.clone());
        }
        self.done.fail(error.clone());
    }
}

/// Returns the name of an operand, which is there.
fn input_id(input: &AsyncValue<Tensor>) -> Result<RemoteId, Error> {
    match input.get() {
        Some(Ok(tensor)) => remote_id(tensor).cloned().ok_or_else(|| {
            let metadata = tensor.metadata();
            Error::invalid_argument(format!(
                "expected a tensor of another task as an operand of a remote operation, found one of {metadata} here"
            ))
        }),
        Some(Err(error)) => Err(error.clone()),
        None => Err(Error::internal("a settled operand is not there")),
    }
}

/// Returns attributes, all of which are 64-bit integers.
fn integers(attrs: OpAttrsRef<'_>) -> Result<Vec<IntegerAttribute>, Error> {
    let refused = || {
        Error::invalid_argument("unexpected attribute type for RemoteOpHandler, only I64 supported")
    };
    let attribute = |(name, value): (&str, &AttrValue)| {
        let (numbers, is_array) = match value {
            AttrValue::Scalar(numbers) => (numbers, false),
            AttrValue::List(numbers) => (numbers, true),
            _ => return Err(refused()),
        };
        let values = numbers.as_slice::<i64>().ok_or_else(refused)?;
        Ok(IntegerAttribute {
            name: name.to_owned(),
            values: values.to_vec(),
            is_array,
        })
    };
    attrs.iter().map(attribute).collect()
}

/// Executes an operation for another task. Its chain and its results are stored under their names.
pub(crate) fn execute(
    context: &Arc<DistributedContext>,
    wanted: ExecuteOp,
    allowed: &Allowed,
) -> AsyncValue<Reply> {
    let objects = context.objects();
    let get = |id: &ObjectId| objects.get(id.key);
    let chain = get(&wanted.in_chain);
    let inputs: Vec<AnyAsyncValue> = wanted.inputs.iter().map(get).collect();
    let request = execute::request(context, allowed);
    let guard = request.context.external();
    let mut awaited = inputs.clone();
    awaited.push(chain.clone());
    let (promise, reply) = AsyncValue::pending();
    let context = context.clone();
    run_when_settled(&awaited, move || {
        let out_ids: Vec<ObjectId> = std::iter::once(&wanted.out_chain)
            .chain(wanted.outputs.iter().map(|output| &output.id))
            .cloned()
            .collect();
        match run(&context, request, wanted, &chain, &inputs) {
            Ok(executed) => promise.forward(executed),
            Err(error) => {
                execute::fail(&context, out_ids.iter(), &error);
                promise.fail(error);
            }
        }
        drop(guard);
    });
    reply
}

/// Runs an operation whose operands are there.
fn run(
    context: &Arc<DistributedContext>,
    request: RemoteRequest,
    wanted: ExecuteOp,
    chain: &AnyAsyncValue,
    inputs: &[AnyAsyncValue],
) -> Result<AsyncValue<Reply>, Error> {
    if let Some(error) = chain.error() {
        return Err(Error::unknown(error.message().to_owned()));
    }
    if wanted.op.is_empty() {
        context.objects().set(&wanted.out_chain, chain.clone())?;
        return Ok(AsyncValue::available(Reply::Executed(Vec::new())));
    }
    let runtime = CoreRuntime::new(context.host());
    let handler = handler(context, &runtime, &wanted.handler)?;
    let op = runtime.op(&wanted.op, &handler)?;
    let handles = inputs.iter().map(|input| handle(&runtime, input));
    let handles = handles.collect::<Result<Vec<TensorHandle>, Error>>()?;
    let attributes = attributes(&wanted.attributes)?;
    let execution = ExecutionContext::new(&request.context);
    let mut chain = AsyncValue::available(Chain);
    let mut call = OpCall::by_kernel(
        &runtime,
        &execution,
        Inputs::borrowed(&handles),
        attributes.as_ref(),
    );
    call.chain = Some(&mut chain);
    call.n_results = Some(wanted.outputs.len());
    let results = op.run(call)?;
    if results.len() != wanted.outputs.len() {
        return Err(Error::invalid_argument(format!(
            "Result size mismatch: fn #result: {} Received #outputs: {}",
            results.len(),
            wanted.outputs.len()
        )));
    }
    let objects = context.objects();
    let values: Vec<AnyAsyncValue> = results.into_iter().map(handle_as_value).collect();
    for (output, value) in wanted.outputs.iter().zip(&values) {
        objects.set(&output.id, value.clone())?;
    }
    objects.set(&wanted.out_chain, chain.as_any().clone())?;
    let all = wanted.outputs.iter().map(|_| true).collect();
    let executed = reply_when_there(request, values, all);
    // An error of the chain is one of the call.
    let (promise, reply) = AsyncValue::pending();
    let awaited = [executed.as_any().clone(), chain.as_any().clone()];
    run_when_settled(&awaited, move || match chain.error() {
        Some(error) => promise.fail(Error::unknown(error.message().to_owned())),
        None => promise.forward(executed),
    });
    Ok(reply)
}

/// Returns the handler of a name: one that was registered, or that of a device of this task.
fn handler(
    context: &DistributedContext,
    runtime: &CoreRuntime,
    name: &str,
) -> Result<Arc<dyn OpHandler>, Error> {
    let is_remote = |handler: &Arc<dyn OpHandler>| {
        let device = runtime.host().devices().by_id(handler.device());
        device.is_some_and(|device| device.kind().name().starts_with("remote_"))
    };
    let found = runtime.handler(name);
    match found {
        Ok(handler) if !is_remote(&handler) => Ok(handler),
        found => {
            let is_own = task::parse(name).is_ok_and(|task| task == context.config().task);
            match is_own {
                true => runtime.handler(device_in_task(name)),
                false => found.and_then(|_| {
                    let message = format!("op_handler not found: {name}");
                    Err(Error::new(ErrorCode::NotFound, message))
                }),
            }
        }
    }
}

/// Returns an operand, which is there, as a handle.
fn handle(runtime: &CoreRuntime, input: &AnyAsyncValue) -> Result<TensorHandle, Error> {
    if let Some(error) = input.error() {
        return Err(error.clone());
    }
    if let Some(handle) = input.get::<TensorHandle>() {
        return Ok(handle.clone());
    }
    match input.get::<Tensor>() {
        Some(tensor) => Ok(runtime.handle(tensor.clone())),
        None => {
            let ty = input.type_name().unwrap_or("(unknown)");
            Err(Error::invalid_argument(format!("Invalid type {ty}")))
        }
    }
}

fn attributes(attributes: &[IntegerAttribute]) -> Result<OpAttrs, Error> {
    let mut all = OpAttrs::new();
    for attribute in attributes {
        let value = match (attribute.is_array, attribute.values.as_slice()) {
            (true, values) => values.into_attr(),
            (false, [value]) => value.into_attr(),
            (false, values) => {
                let (name, n) = (attribute.name.escape_debug(), values.len());
                return Err(Error::invalid_argument(format!(
                    "expected one integer as the attribute '{name}', found {n}"
                )));
            }
        };
        all.set_named(&attribute.name, value)?;
    }
    Ok(all)
}
