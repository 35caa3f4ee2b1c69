//! [`Batcher`]: joins the requests of one version of a model into batches.
//!
//! A request that can be joined waits until the model is free. One batch of a model runs at a time, whose kernels have all
//! threads of the queue; when it has ended, those that wait become the next one, oldest first, as far as they fit. Inputs
//! are joined along their first dimension, and outputs are split along theirs.
//!
//! Each request keeps its own context: its deadline, or a client that is gone, ends its wait, and leaves the others alone.
//! A batch is cancelled when all of its requests have ended so. If the call of a batch fails, each request is called by
//! itself, so that a mistake in one is its own.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tfrt_host::{Error, ErrorCode, HostContext, RequestContext};
use tfrt_tensor::Tensor;
use tokio::sync::{Notify, oneshot};

use crate::inference::call;
use crate::model::Loaded;
use crate::servable::Description;
use crate::server::first;

mod join;
mod member;

pub(crate) use join::Joinable;
use join::{join, split};
use member::{Member, Running};

/// How requests of a model are joined into batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    /// Rows of a batch, at most: the first extents of its requests, added up. A request of more is refused.
    pub max_rows: usize,
    /// The time for which a request waits for others although the model is free. It ends early when the batch is full.
    pub max_delay: Duration,
}

/// The requests of one version of a model that wait to be called.
pub(crate) struct Batcher {
    pub batching: Batching,
    queue: Mutex<Queue>,
    /// Tells the task that calls the model of requests that have come.
    more: Notify,
}

#[derive(Default)]
struct Queue {
    /// Requests by the extents that all of a batch have in common, the oldest in front.
    // Invariant: no list is empty.
    waiting: BTreeMap<Vec<usize>, VecDeque<Arc<Member>>>,
    /// Whether a task calls the model: there is one while requests wait.
    is_driven: bool,
}

/// The tensors of a request, by the names of inputs.
pub(crate) type Inputs = Vec<(String, Tensor)>;

/// A request of a batch that runs, and its inputs.
type Started<'b> = (&'b Arc<Member>, Inputs);

/// The answer to a request of a batch.
pub(crate) struct Answered {
    pub outputs: Vec<Tensor>,
    /// The time before the call of the batch began.
    pub waited: Duration,
    /// The time of the call, with joining inputs and splitting outputs.
    pub infer: Duration,
    /// When the call of the model itself began and ended.
    pub ran: [Instant; 2],
    /// The rows of all requests of the batch.
    pub n_rows: usize,
}

/// The next step of the task that calls a model.
enum Next {
    /// No request waits.
    Idle,
    /// None has waited long enough, until then.
    Wait(Instant),
    Call(Batch),
}

/// The requests of a batch. Those that are not answered when this is dropped fail.
struct Batch(Vec<Arc<Member>>);

impl Drop for Batch {
    fn drop(&mut self) {
        for member in &self.0 {
            member.end(Err(lost()));
        }
    }
}

impl Batcher {
    /// Makes a batcher for models of a description.
    ///
    /// # Errors
    ///
    /// The reason why requests of such a model can't be joined.
    pub fn new(description: &Description, batching: Batching) -> Result<Batcher, String> {
        join::check(description)?;
        Ok(Batcher {
            batching,
            queue: Mutex::default(),
            more: Notify::new(),
        })
    }

    /// Returns the number of requests that wait.
    pub fn depth(&self) -> usize {
        self.lock().waiting.values().map(VecDeque::len).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request. Returns whether nothing calls the model yet, and the caller has to.
    fn push(&self, member: &Arc<Member>) -> bool {
        let mut queue = self.lock();
        let waiting = queue.waiting.entry(member.extents.clone()).or_default();
        waiting.push_back(member.clone());
        let is_first = !queue.is_driven;
        queue.is_driven = true;
        drop(queue);
        self.more.notify_one();
        is_first
    }

    /// Takes a request out that has ended, if it still waits.
    fn remove(&self, member: &Arc<Member>) {
        let mut queue = self.lock();
        let Some(waiting) = queue.waiting.get_mut(&member.extents) else {
            return;
        };
        waiting.retain(|other| !Arc::ptr_eq(other, member));
        if waiting.is_empty() {
            queue.waiting.remove(&member.extents);
        }
    }

    /// Takes the batch out that is due for the longest time.
    fn next(&self, now: Instant) -> Next {
        let mut queue = self.lock();
        let Batching {
            max_rows,
            max_delay,
        } = self.batching;
        let due = |waiting: &VecDeque<Arc<Member>>| {
            let since = waiting.front().map_or(now, |oldest| oldest.since);
            let due = since.checked_add(max_delay).unwrap_or(since);
            let n_rows: usize = waiting.iter().map(|member| member.n_rows).sum();
            (if n_rows >= max_rows { since } else { due }, since)
        };
        let groups = queue.waiting.iter();
        let next = groups
            .map(|(extents, waiting)| (due(waiting), extents))
            .min();
        let Some(((due, _), extents)) = next else {
            queue.is_driven = false;
            return Next::Idle;
        };
        if due > now {
            return Next::Wait(due);
        }
        let extents = extents.clone();
        let mut waiting = queue.waiting.remove(&extents).unwrap_or_default();
        let (mut batch, mut n_rows) = (Vec::new(), 0);
        waiting.retain(|member| {
            let fits = n_rows + member.n_rows <= max_rows;
            if fits {
                n_rows += member.n_rows;
                batch.push(member.clone());
            }
            !fits
        });
        if !waiting.is_empty() {
            queue.waiting.insert(extents, waiting);
        }
        Next::Call(Batch(batch))
    }

    /// Calls the model with a request, together with others. If the future is dropped before, the request has ended.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for more rows than a batch has; those of the call, and the reason for which the request was
    /// cancelled.
    pub async fn call(
        &self,
        model: &Arc<Loaded>,
        request: &Arc<RequestContext>,
        max_call_bytes: Option<usize>,
        joinable: Joinable,
    ) -> Result<Answered, Error> {
        let (n_rows, max_rows) = (joinable.n_rows, self.batching.max_rows);
        if n_rows > max_rows {
            return Err(Error::invalid_argument(format!(
                "a request of {n_rows} rows is more than a batch of model '{}', which has {max_rows} at most",
                model.name
            )));
        }
        let (sender, answer) = oneshot::channel();
        let member = Arc::new(Member::new(request.clone(), joinable, sender));
        let _leaves = Leaves {
            batcher: self,
            member: &member,
        };
        let ending = member.clone();
        let _hook = request.on_cancel(move |reason| {
            ending.end(Err(reason.clone()));
        });
        if self.push(&member) {
            let driver = Driver {
                model: model.clone(),
                host: request.host().clone(),
                max_call_bytes,
            };
            tokio::spawn(driver.run());
        }
        answer.await.unwrap_or_else(|_| Err(lost()))
    }
}

/// A request while somebody waits for its answer.
struct Leaves<'b> {
    batcher: &'b Batcher,
    member: &'b Arc<Member>,
}

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        if self.member.end(Err(lost())) {
            self.batcher.remove(self.member);
        }
    }
}

/// The error of requests whose batch was given up: the server closes, or a kernel has panicked.
fn lost() -> Error {
    Error::new(ErrorCode::Unavailable, "the call of the batch was given up")
}

/// The task that calls a model while requests wait for it.
struct Driver {
    model: Arc<Loaded>,
    host: HostContext,
    max_call_bytes: Option<usize>,
}

impl Driver {
    async fn run(self) {
        let Some(batcher) = &self.model.batcher else {
            return;
        };
        let driving = Driving(Some(batcher));
        loop {
            match batcher.next(Instant::now()) {
                Next::Idle => return driving.ends(),
                Next::Wait(until) => {
                    let more = async {
                        batcher.more.notified().await;
                    };
                    first(more, tokio::time::sleep_until(until.into())).await;
                }
                Next::Call(batch) => self.answer(batch).await,
            }
        }
    }

    /// Calls the model for a batch, and answers its requests.
    async fn answer(&self, batch: Batch) {
        let n_members = batch.0.len();
        let mut builder = RequestContext::builder(&self.host).own_resources();
        if let Some(bytes) = self.max_call_bytes {
            builder = builder.max_memory(bytes.saturating_mul(n_members));
        }
        let running = Arc::new(Running::new(builder.build(), n_members));
        let began = Instant::now();
        let members = batch.0.iter();
        let started: Vec<Started<'_>> = members
            .filter_map(|member| Some((member, member.start(&running)?)))
            .collect();
        match &started[..] {
            [] => {}
            [(member, inputs)] => self.answer_each(&[(member, inputs.clone())], began).await,
            _ => {
                let inputs: Vec<&Inputs> = started.iter().map(|(_, inputs)| inputs).collect();
                let rows: Vec<usize> = started.iter().map(|(member, _)| member.n_rows).collect();
                match self.call_joined(&running.request, &inputs, &rows).await {
                    Ok((outputs, ran)) => {
                        let infer = began.elapsed();
                        let n_rows = rows.iter().sum();
                        for ((member, _), outputs) in started.iter().zip(outputs) {
                            let waited = began.saturating_duration_since(member.since);
                            member.end(Ok(Answered {
                                outputs,
                                waited,
                                infer,
                                ran,
                                n_rows,
                            }));
                        }
                    }
                    Err(_) if running.request.is_cancelled() => {}
                    Err(_) => {
                        self.model.statistics.count_split();
                        self.answer_each(&started, began).await;
                    }
                }
            }
        }
    }

    /// Calls the model for the requests joined. Returns the outputs of each, and when the call began and ended.
    async fn call_joined(
        &self,
        request: &Arc<RequestContext>,
        inputs: &[&Inputs],
        rows: &[usize],
    ) -> Result<(Vec<Vec<Tensor>>, [Instant; 2]), Error> {
        let allocator = request.host().allocator();
        let began = Instant::now();
        let joined = join(inputs, rows, allocator)?;
        let called = Instant::now();
        let outputs = call(&self.model, request, joined).await?;
        let done = Instant::now();
        let outputs = split(&outputs, rows)?;
        let n_rows = rows.iter().sum();
        let times = [called - began, done - called, done.elapsed()];
        self.model.statistics.count_batch(n_rows, times);
        Ok((outputs, [called, done]))
    }

    /// Calls the model for each request by itself, all at once.
    async fn answer_each(&self, started: &[Started<'_>], began: Instant) {
        let allocator = self.host.allocator();
        let called = Instant::now();
        let begun: Vec<_> = started
            .iter()
            .map(|(member, inputs)| self.model.begin(&member.request, inputs.clone()))
            .collect();
        for ((member, _), begun) in started.iter().zip(begun) {
            let settled = begun.settle(allocator).await;
            let infer = called.elapsed();
            if settled.is_ok() {
                let times = [Duration::ZERO, infer, Duration::ZERO];
                self.model.statistics.count_batch(member.n_rows, times);
            }
            member.end(settled.map(|outputs| Answered {
                outputs,
                waited: began.saturating_duration_since(member.since),
                infer,
                ran: [called, called + infer],
                n_rows: member.n_rows,
            }));
        }
    }
}

/// A guard that fails the requests that wait if the task that calls the model ends before its end.
struct Driving<'b>(Option<&'b Batcher>);

impl Driving<'_> {
    /// Ends as it should: nothing waits.
    fn ends(mut self) {
        self.0 = None;
    }
}

impl Drop for Driving<'_> {
    fn drop(&mut self) {
        let Some(batcher) = self.0 else {
            return;
        };
        let mut queue = batcher.lock();
        queue.is_driven = false;
        let waiting = std::mem::take(&mut queue.waiting);
        drop(queue);
        drop(Batch(waiting.into_values().flatten().collect()));
    }
}
