//! [`infer`]: the call of a model for one request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tfrt_host::{AnyAsyncValue, Error, HostAllocator, HostContext, RequestContext};
use tfrt_tensor::{Tensor, TensorFormat, convert};

use crate::admission::Ticket;
use crate::batch::{Answered, Batcher, Joinable};
use crate::limits::Limits;
use crate::model::{Loaded, bytes_of};
use crate::refusal::Refusal;
use crate::statistics::Times;
use crate::traces::{Step, Trace};

/// The limits and times of a call, and the host that it runs on.
pub(crate) struct Surroundings<'a> {
    pub host: &'a HostContext,
    pub limits: &'a Limits,
    /// The place of the request, for which what it holds is counted.
    pub ticket: &'a Ticket,
    /// When the request began.
    pub began: Instant,
    /// The time that it may take, by what the client asks for.
    pub timeout: Option<Duration>,
    pub trace: &'a Trace,
}

/// The outputs of a call, in the order of the model.
pub(crate) struct Inferred {
    pub outputs: Vec<Tensor>,
    pub times: Times,
    pub n_rows: usize,
}

/// Calls a model, alone or together with other requests, and waits for all of its outputs. If the future is dropped
/// before, the request is cancelled.
pub(crate) async fn infer(
    surroundings: &Surroundings<'_>,
    model: &Arc<Loaded>,
    inputs: Vec<(String, Tensor)>,
) -> Result<Inferred, Refusal> {
    let called = Instant::now();
    let n_rows = rows(&inputs);
    // Elements may take more memory than the text that they were read of, strings and rows that are filled up above all.
    let n_bytes = inputs.iter().map(|(_, tensor)| bytes_of(tensor)).sum();
    if let Err(refusal) = surroundings.ticket.hold(n_bytes) {
        count_failure(model, surroundings.began, &refusal.error);
        return Err(refusal);
    }
    let request = request(surroundings);
    let guard = CancelOnDrop(Some((request.clone(), model.clone())));
    let answered = match joinable(model, inputs) {
        Ok((batcher, joinable)) => {
            let max_call_bytes = surroundings.limits.max_call_bytes;
            let answered = batcher.call(model, &request, max_call_bytes, joinable);
            let answered = answered.await;
            if let Ok(answered) = &answered {
                steps(surroundings.trace, called, answered);
            }
            answered
        }
        Err(inputs) => {
            let outputs = call(model, &request, inputs).await;
            let ended = Instant::now();
            surroundings.trace.step(Step {
                name: Step::RUN,
                began: called,
                ended,
            });
            outputs.map(|outputs| Answered {
                outputs,
                waited: Duration::ZERO,
                infer: ended - called,
                ran: [called, ended],
                n_rows,
            })
        }
    };
    guard.disarm();
    let answered = match answered {
        Ok(answered) => answered,
        Err(error) => {
            count_failure(model, surroundings.began, &error);
            return Err(error.into());
        }
    };
    let times = Times {
        input: called - surroundings.began,
        queue: answered.waited,
        infer: answered.infer,
        ..Times::default()
    };
    Ok(Inferred {
        outputs: answered.outputs,
        times,
        n_rows,
    })
}

/// Notes the steps of a request in a batch.
fn steps(trace: &Trace, called: Instant, answered: &Answered) {
    let began = called + answered.waited;
    let step = |name, [began, ended]: [Instant; 2]| Step { name, began, ended };
    trace.step(step(Step::QUEUE, [called, began]));
    let batch = step(Step::BATCH, [began, began + answered.infer]);
    let run = step(Step::RUN, answered.ran);
    trace.batch(batch, answered.n_rows, run);
}

/// Returns what joins a request with others, if its model has that and takes its inputs so.
fn joinable(
    model: &Loaded,
    inputs: Vec<(String, Tensor)>,
) -> Result<(&Batcher, Joinable), Vec<(String, Tensor)>> {
    match &model.batcher {
        None => Err(inputs),
        Some(batcher) => {
            let joinable = Joinable::of(model.description(), inputs)?;
            Ok((batcher, joinable))
        }
    }
}

/// Calls a model, and waits for its outputs.
pub(crate) async fn call(
    model: &Loaded,
    request: &Arc<RequestContext>,
    inputs: Vec<(String, Tensor)>,
) -> Result<Vec<Tensor>, Error> {
    let begun = model.begin(request, inputs);
    begun.settle(request.host().allocator()).await
}

/// Makes the context of the request, which ends at the deadline.
fn request(surroundings: &Surroundings<'_>) -> Arc<RequestContext> {
    let limits = surroundings.limits;
    let allowed = surroundings.timeout.unwrap_or(limits.deadline);
    let allowed = allowed.min(limits.deadline);
    let mut builder = RequestContext::builder(surroundings.host).own_resources();
    if let Some(bytes) = limits.max_call_bytes {
        builder = builder.max_memory(bytes);
    }
    let left = allowed.saturating_sub(surroundings.began.elapsed());
    builder.deadline_left(left, allowed).build()
}

/// Counts a request that failed.
pub(crate) fn count_failure(model: &Loaded, began: Instant, error: &Error) {
    use std::sync::atomic::Ordering::Relaxed;
    use tfrt_host::ErrorCode;
    let statistics = &model.statistics;
    statistics.fail(began.elapsed());
    if error.code() == ErrorCode::DeadlineExceeded {
        statistics.expired.fetch_add(1, Relaxed);
    }
}

/// A guard that counts a request as failed when it is dropped before it is called.
pub(crate) struct Counted {
    model: Option<Arc<Loaded>>,
    began: Instant,
}

impl Counted {
    /// Begins a request to a model, which its span names from now on.
    pub fn new(model: &Arc<Loaded>, began: Instant, trace: &Trace) -> Counted {
        trace.calls(model);
        Counted {
            model: Some(model.clone()),
            began,
        }
    }

    /// Leaves it to the call.
    pub fn counts_itself(&mut self) {
        self.model = None;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(model) = &self.model {
            model.statistics.fail(self.began.elapsed());
        }
    }
}

/// Waits for values, and takes the tensors out.
pub(crate) async fn settle(
    values: Vec<AnyAsyncValue>,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Vec<Tensor>, Error> {
    let mut tensors = Vec::with_capacity(values.len());
    let mut failed = None;
    for value in values {
        let settled = match value.is_settled() {
            true => match value.error() {
                Some(error) => Err(error.clone()),
                None => Ok(value),
            },
            false => value.await,
        };
        match settled.and_then(|value| tensor(value, allocator)) {
            Ok(tensor) => tensors.push(tensor),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    match failed {
        None => Ok(tensors),
        Some(error) => Err(error),
    }
}

/// Returns a tensor whose elements are dense, or strings.
fn tensor(value: AnyAsyncValue, allocator: &Arc<dyn HostAllocator>) -> Result<Tensor, Error> {
    let value = match value.take::<Tensor>() {
        Ok(tensor) => return plain(tensor, allocator),
        Err(value) => value,
    };
    match value.get::<Tensor>() {
        Some(tensor) => plain(tensor.clone(), allocator),
        None => {
            let found = value.type_name().unwrap_or("a value to come");
            let message = format!("an output was expected to be a tensor, found {found}");
            Err(Error::new(tfrt_host::ErrorCode::Unimplemented, message))
        }
    }
}

fn plain(tensor: Tensor, allocator: &Arc<dyn HostAllocator>) -> Result<Tensor, Error> {
    match tensor {
        Tensor::Dense(_) | Tensor::String(_) => Ok(tensor),
        other => convert::to_format(&other, TensorFormat::DenseHost, allocator),
    }
}

/// Returns the first extent of the first input, which is the number of rows of a batch; 1 of a scalar.
fn rows(inputs: &[(String, Tensor)]) -> usize {
    let first = inputs.first().map(|(_, tensor)| &tensor.metadata().shape);
    first.and_then(|shape| shape.extent(0)).unwrap_or(1)
}

/// A guard that cancels a request when it is dropped, unless it was disarmed: the client has gone.
struct CancelOnDrop(Option<(Arc<RequestContext>, Arc<Loaded>)>);

impl CancelOnDrop {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some((request, model)) = self.0.take() {
            request.cancel_with(Error::cancelled("the client has gone"));
            model
                .statistics
                .cancelled
                .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }
}
