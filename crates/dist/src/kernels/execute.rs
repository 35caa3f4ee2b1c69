//! Kernels that register functions with other tasks, and run them there.

use std::fmt;
use std::sync::Arc;

use tfrt_corert::{CoreRuntime, TensorHandle};
use tfrt_host::kernel::param::HeldAttribute;
use tfrt_host::kernel::param::kinds::Itself;
use tfrt_host::kernel::{
    Attr, AttributeSpec, AttributeView, KernelFrame, KernelParam, KernelRegistry, Mismatch, Part,
    Rest, ResultCount, Results,
};
use tfrt_host::{
    AnyAsyncValue, AsyncValue, Chain, Error, ExecutionContext, Heap, KernelPromise, Value,
};

use crate::context::{ContextRef, bounds_of};
use crate::device::{metadata_from_bytes, remote_tensor};
use crate::ids::TaskHandle;
use crate::message::{Metadata, Reply, Request, RequestedOutput};
use crate::names::RemoteId;

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt_dist.register_tfrt_function", register_function)
        .add("tfrt_dist.register_tf_function", register_compiled_function)
        .add("tfrt_dist.create_remote_execute_spec", create_spec)
        .add("tfrt_dist.remote_execute", remote_execute)
        .add("tfrt_dist.remote_execute_th", remote_execute_th)
        .add(
            "tfrt_dist.remote_execute_th_preallocated",
            remote_execute_preallocated,
        );
}

/// The devices that the results of a remote function are on, by their full names.
#[derive(Clone, Debug)]
pub(super) struct ExecuteSpec(Arc<[Arc<str>]>);

impl Value for ExecuteSpec {
    const NAME: &'static str = "!tfrt_dist.remote_execute_spec";
    type Storage = Heap;
}

impl fmt::Display for ExecuteSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RemoteExecuteSpec:[ ")?;
        for device in &*self.0 {
            write!(f, "{device} ")?;
        }
        f.write_str("]")
    }
}

impl ExecuteSpec {
    fn new<'a>(
        context: &ContextRef,
        devices: impl Iterator<Item = &'a str>,
    ) -> Result<ExecuteSpec, Error> {
        let devices = devices.map(|device| context.device(device));
        Ok(ExecuteSpec(devices.collect::<Result<_, Error>>()?))
    }
}

/// Returns the request to register a function, compiled by the other task's passes or taken as it is.
fn registration(
    context: &ContextRef,
    (name, program): (&str, &str),
    need_compilation: bool,
) -> Request {
    Request::RegisterFunction {
        context: context.id(),
        name: name.to_owned(),
        program: program.to_owned(),
        need_compilation,
    }
}

/// `%c1 = tfrt_dist.register_tfrt_function(%c, %ctx, %task) "name" "program"`
fn register_function(
    _: Chain,
    context: &ContextRef,
    task: TaskHandle,
    program: Attr<&str>,
    program_name: Attr<&str>,
    execution: &ExecutionContext,
) -> AsyncValue<Chain> {
    let (promise, chain) = execution.promise();
    let request = registration(context, (*program_name, *program), false);
    ask(context, task, request, execution, move |reply| {
        promise.complete(reply.map(|_| Chain));
    });
    chain
}

/// `%spec = tfrt_dist.register_tf_function(%c, %ctx, %task) "name" "program"`
fn register_compiled_function(
    _: Chain,
    context: &ContextRef,
    task: TaskHandle,
    program: Attr<&str>,
    program_name: Attr<&str>,
    execution: &ExecutionContext,
) -> AsyncValue<ExecuteSpec> {
    let (promise, spec) = execution.promise();
    let request = registration(context, (*program_name, *program), true);
    let own = context.clone();
    ask(context, task, request, execution, move |reply| {
        promise.complete(reply.and_then(|reply| match reply {
            Reply::FunctionRegistered(devices) => {
                ExecuteSpec::new(&own, devices.iter().map(String::as_str))
            }
            _ => Err(Error::internal(
                "expected the devices of a registered function",
            )),
        }));
    });
    spec
}

/// `%spec = tfrt_dist.create_remote_execute_spec %ctx {output_devices = ["/job:worker/task:1/device:CPU:0"]}`
fn create_spec(context: &ContextRef, output_devices: Texts) -> Result<ExecuteSpec, Error> {
    let devices = texts(output_devices.0.view()).unwrap_or_default();
    ExecuteSpec::new(context, devices.into_iter())
}

fn texts(view: AttributeView<'_>) -> Option<Vec<&str>> {
    match view.aggregate() {
        Some(list) => (0..list.len())
            .map(|index| list.get(index)?.as_str())
            .collect(),
        // Nobody knows the type of a list without elements.
        None => view
            .array::<i32>()
            .filter(|list| list.is_empty())
            .map(|_| Vec::new()),
    }
}

/// An attribute that is a list of texts.
struct Texts(HeldAttribute);

const TEXTS: &str = "array of strings";

impl KernelParam<Itself> for Texts {
    type Guard<'f> = Option<Texts>;
    type Item<'a> = Texts;

    const PART: &'static Part = &Part::Attribute(AttributeSpec {
        kind: TEXTS,
        readable: |view| texts(view).is_some(),
    });

    fn take(frame: &mut KernelFrame<'_, '_>) -> Result<Option<Texts>, Mismatch> {
        let held = frame.hold_attribute(TEXTS, |view| texts(view).is_some())?;
        Ok(Some(Texts(held)))
    }

    fn item(guard: &mut Option<Texts>) -> Texts {
        guard.take().expect("a parameter is lent once")
    }
}

/// `%c1, %r = tfrt_dist.remote_execute[%c, %ctx, %task, %spec] "name" (%a) : (id) -> (id)`
#[expect(clippy::too_many_arguments, reason = "operands and attributes")]
fn remote_execute(
    _: Chain,
    context: &ContextRef,
    task: TaskHandle,
    spec: &ExecuteSpec,
    inputs: Rest,
    program_name: Attr<&str>,
    n_results: ResultCount,
    execution: &ExecutionContext,
) -> Result<Results, Error> {
    let call = RemoteCall {
        context,
        task,
        name: *program_name,
        inputs: ids(&inputs)?,
        outputs: allocated(context, task, spec),
        n_handles: 0,
        execution,
    };
    call.check(spec, n_results.0 - 1, true)?;
    call.run(true)
}

/// `%c1, %r, %h = tfrt_dist.remote_execute_th[%c, %ctx, %task, %spec, 1] "name" (%a) : (id) -> (id, handle)`
#[expect(clippy::too_many_arguments, reason = "operands and attributes")]
fn remote_execute_th(
    _: Chain,
    context: &ContextRef,
    task: TaskHandle,
    spec: &ExecuteSpec,
    inputs: Rest,
    n_handles: Attr<i32>,
    program_name: Attr<&str>,
    n_results: ResultCount,
    execution: &ExecutionContext,
) -> Result<Results, Error> {
    let call = RemoteCall {
        context,
        task,
        name: *program_name,
        inputs: ids(&inputs)?,
        outputs: allocated(context, task, spec),
        n_handles: count(*n_handles, "tensor handles")?,
        execution,
    };
    call.check(spec, n_results.0 - 1, true)?;
    call.run(true)
}

/// `%c1, %h = tfrt_dist.remote_execute_th_preallocated[%c, %ctx, %task, %spec, 1, 1] "name" (%a, %r)
/// : (id, id) -> (handle)`
#[expect(clippy::too_many_arguments, reason = "operands and attributes")]
fn remote_execute_preallocated(
    _: Chain,
    context: &ContextRef,
    task: TaskHandle,
    spec: &ExecuteSpec,
    ids_given: Rest,
    n_inputs: Attr<i32>,
    n_handles: Attr<i32>,
    program_name: Attr<&str>,
    n_results: ResultCount,
    execution: &ExecutionContext,
) -> Result<Results, Error> {
    let mut inputs = ids(&ids_given)?;
    let n_inputs = count(*n_inputs, "inputs")?;
    if n_inputs > inputs.len() {
        return Err(Error::invalid_argument(format!(
            "expected {n_inputs} inputs, found {} operands",
            inputs.len()
        )));
    }
    let outputs = inputs.split_off(n_inputs);
    let call = RemoteCall {
        context,
        task,
        name: *program_name,
        inputs,
        outputs,
        n_handles: count(*n_handles, "tensor handles")?,
        execution,
    };
    call.check(spec, n_results.0 - 1, false)?;
    call.run(false)
}

/// A call of a function of another task.
struct RemoteCall<'a> {
    context: &'a ContextRef,
    task: TaskHandle,
    name: &'a str,
    inputs: Vec<RemoteId>,
    outputs: Vec<RemoteId>,
    /// How many results, the last ones, are wanted as handles.
    n_handles: usize,
    execution: &'a ExecutionContext,
}

impl RemoteCall<'_> {
    /// Compares the number of results, without the chain, with what is asked for.
    fn check(&self, spec: &ExecuteSpec, n_results: usize, gives_ids: bool) -> Result<(), Error> {
        let (n_outputs, n_handles) = (self.outputs.len(), self.n_handles);
        let n_ids = if gives_ids { n_outputs } else { 0 };
        let expected = n_results.saturating_sub(n_handles);
        let fits = n_results == n_ids + n_handles && n_outputs == spec.0.len();
        if !fits {
            let expected = if gives_ids { expected } else { n_outputs };
            return Err(Error::invalid_argument(format!(
                "Mismatch output devices size in RemoteExecuteSpec: {} expected: {expected}",
                spec.0.len()
            )));
        }
        match n_handles <= n_outputs {
            true => Ok(()),
            false => Err(Error::invalid_argument(format!(
                "expected at most {n_outputs} tensor handles, one for each result, found {n_handles}"
            ))),
        }
    }

    /// Sends the request. Names of results are there at once, the chain when the other task has all results, and
    /// handles when it has told what they are.
    fn run(self, gives_ids: bool) -> Result<Results, Error> {
        let context = self.context;
        let first_handle = self.outputs.len() - self.n_handles;
        let (promise, chain) = self.execution.promise();
        let mut results = vec![chain.into_any()];
        if gives_ids {
            results.extend(self.outputs.iter().cloned().map(AnyAsyncValue::new));
        }
        let mut handles = Vec::new();
        for id in &self.outputs[first_handle..] {
            let (promise, handle) = self.execution.promise::<TensorHandle>();
            handles.push((promise, id.clone()));
            results.push(handle.into_any());
        }
        let outputs = self.outputs.iter().enumerate();
        let outputs = outputs.map(|(index, id)| RequestedOutput {
            id: id.id.clone(),
            need_metadata: index >= first_handle,
        });
        let request = Request::RemoteExecute {
            context: context.id(),
            name: self.name.to_owned(),
            inputs: self.inputs.iter().map(|id| id.id.clone()).collect(),
            outputs: outputs.collect(),
        };
        // Objects are held until they were used.
        let held = (self.inputs, self.outputs);
        let own = context.clone();
        ask(context, self.task, request, self.execution, move |reply| {
            let metadata = match reply {
                Ok(Reply::Executed(metadata)) => Ok(metadata),
                Ok(_) => Err(Error::internal("expected the reply of an execution")),
                Err(error) => Err(error),
            };
            let task = own.task_name(self.task).ok().cloned();
            let named = |error: Error| match &task {
                Some(task) => error.with_task(task.clone()),
                None => error,
            };
            match metadata {
                Ok(metadata) => {
                    let mut metadata = metadata.into_iter();
                    for (promise, id) in handles {
                        let handle = handle_of(&own, metadata.next(), id).map_err(&named);
                        promise.complete(handle);
                    }
                    promise.resolve(Chain);
                }
                Err(error) => fail(error, handles, promise),
            }
            drop(held);
        });
        Ok(Results(results))
    }
}

fn fail(
    error: Error,
    handles: Vec<(KernelPromise<TensorHandle>, RemoteId)>,
    chain: KernelPromise<Chain>,
) {
    for (promise, _) in handles {
        promise.fail(error.clone());
    }
    chain.fail(error);
}

/// Returns the handle of a tensor of another task.
fn handle_of(
    context: &ContextRef,
    metadata: Option<Metadata>,
    id: RemoteId,
) -> Result<TensorHandle, Error> {
    let metadata = metadata.ok_or_else(|| Error::internal("Metadata not returned"))??;
    let metadata = metadata_from_bytes(&metadata)?;
    let device = context.remote_device(&id.id.device)?;
    let tensor = remote_tensor(&device, metadata, id)?;
    Ok(CoreRuntime::new(context.host()).handle(tensor))
}

/// Asks another task on behalf of a kernel, whose request's end ends that as well.
fn ask(
    context: &ContextRef,
    task: TaskHandle,
    request: Request,
    execution: &ExecutionContext,
    work: impl FnOnce(Result<Reply, Error>) + Send + 'static,
) {
    let (bounds, hook) = bounds_of(execution.request());
    let reply = context.call(task, request, bounds);
    // Its servers live until it is answered.
    let held = context.clone();
    reply.when_settled(move |reply| {
        drop(hook);
        work(match reply.get() {
            Some(Ok(reply)) => Ok(reply.clone()),
            Some(Err(error)) => Err(error.clone()),
            None => Err(Error::internal("a settled reply is not there")),
        });
        drop(held);
    });
}

/// Returns names for the results of a call, on the devices of a spec.
fn allocated(context: &ContextRef, task: TaskHandle, spec: &ExecuteSpec) -> Vec<RemoteId> {
    let devices = spec.0.iter();
    let ids = devices.map(|device| {
        let id = context.objects().allocate(device);
        RemoteId::leased(context, task, id)
    });
    ids.collect()
}

fn ids(values: &[AnyAsyncValue]) -> Result<Vec<RemoteId>, Error> {
    let id = |value: &AnyAsyncValue| {
        value.get::<RemoteId>().cloned().ok_or_else(|| {
            let found = value.type_name().unwrap_or("(unknown)");
            let expected = RemoteId::NAME;
            Error::invalid_argument(format!("expected a {expected}, found a {found}"))
        })
    };
    values.iter().map(id).collect()
}

fn count(number: i32, what: &str) -> Result<usize, Error> {
    let count = usize::try_from(number);
    count.map_err(|_| {
        Error::invalid_argument(format!("expected a number of {what}, found {number}"))
    })
}
