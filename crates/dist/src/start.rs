//! Starting contexts: by one task for all (single client), or by each task for itself (multi client).
//!
//! | Step | Single client | Multi client |
//! | --- | --- | --- |
//! | 1 | the master asks all for their devices | so does the leader |
//! | 2 | it has them make the context | so does the leader; each waits for its own program to ask for that, too |
//! | 3 | it keeps the contexts alive | it sends all ready chains to all |
//!
//! In step 2 of the second the two events may come in either order.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tfrt_async::{AsyncValue, Chain, ClusterTask, Error, ErrorCode, Promise, run_when_settled};

use crate::cluster::Cluster;
use crate::context::{ContextConfig, ContextRef, DistributedContext, device_name};
use crate::ids::{ContextId, Incarnation, ObjectId, TaskHandle};
use crate::message::{CreateContext, DeviceInfo, Reply, Request, merged};
use crate::server::{Inner, Server, ServerRef};
use crate::task;
use crate::transport::Bounds;

/// How often a task that does not listen yet is tried again.
const START_RETRIES: u32 = 64;

/// The state of a task that makes a context together with others.
#[derive(Default)]
pub(crate) enum MultiClient {
    /// Nothing has happened.
    #[default]
    NotReady,
    /// The leader has asked, and the program of this task has not.
    Asked(Box<CreateContext>, Promise<Reply>),
    /// The program has asked, and the leader has not.
    WaitForContext(ContextConfig, Promise<ContextRef>),
    /// Both have: the chains of the other tasks are to come.
    WaitForChains(Arc<DistributedContext>, Promise<ContextRef>),
    /// The context is there, or this is the leader.
    Finished,
    /// It was tried, and has failed.
    Failed,
}

impl MultiClient {
    /// Ends: whoever waits is told.
    pub(crate) fn end(&mut self) {
        let error = || Error::cancelled("the server has ended");
        match std::mem::replace(self, MultiClient::Failed) {
            MultiClient::Asked(_, promise) => promise.fail(error()),
            MultiClient::WaitForContext(_, promise) | MultiClient::WaitForChains(_, promise) => {
                promise.fail(error());
            }
            MultiClient::NotReady | MultiClient::Finished | MultiClient::Failed => (),
        }
    }
}

impl Server {
    /// Makes a context on this task and, by requests, on all others.
    pub fn create_single_client(
        &self,
        id: ContextId,
        config: ContextConfig,
    ) -> AsyncValue<ContextRef> {
        self.handle().create_single_client(id, config)
    }

    /// Makes a context together with the other tasks, each of which calls this with the same cluster.
    pub fn create_multi_client(&self, config: ContextConfig) -> AsyncValue<ContextRef> {
        match self.handle().get() {
            Ok(inner) => inner.create_multi_client(config),
            Err(error) => AsyncValue::from_error(error),
        }
    }
}

impl ServerRef {
    /// Makes a context on this task and, by requests, on all others.
    pub fn create_single_client(
        &self,
        id: ContextId,
        config: ContextConfig,
    ) -> AsyncValue<ContextRef> {
        match self.get() {
            Ok(inner) => lead(&inner, id, config, false),
            Err(error) => AsyncValue::from_error(error),
        }
    }
}

/// Ends the contexts of all other tasks, then waits for them; errors of several are one.
pub fn close_remote_contexts(context: &Arc<DistributedContext>) -> AsyncValue<Chain> {
    let close = |(task, _): (TaskHandle, &ClusterTask)| {
        let request = Request::CloseContext {
            context: context.id(),
        };
        context.call(task, request, Bounds::default())
    };
    let calls: Vec<_> = context.other_tasks().map(close).collect();
    let (promise, closed) = AsyncValue::pending();
    when_answered(calls, move |replies| {
        promise.complete(replies.map(|_| Chain))
    });
    closed
}

/// Tells all other tasks the ready chains of all, and with them that each has made its context.
pub(crate) fn tell_ready(context: &Arc<DistributedContext>) -> AsyncValue<Chain> {
    let ready_chains: Vec<ObjectId> = context.ready_chains().into_values().collect();
    let tell = |(task, _): (TaskHandle, &ClusterTask)| {
        let request = Request::SendReadyChains {
            context: context.id(),
            ready_chains: ready_chains.clone(),
        };
        context.call(task, request, Bounds::default())
    };
    let calls: Vec<_> = context.other_tasks().map(tell).collect();
    let (promise, told) = AsyncValue::pending();
    when_answered(calls, move |replies| {
        promise.complete(replies.map(|_| Chain))
    });
    told
}

/// Calls back with all replies, or with all errors as one.
fn when_answered(
    calls: Vec<AsyncValue<Reply>>,
    work: impl FnOnce(Result<Vec<Reply>, Error>) + Send + 'static,
) {
    let awaited: Vec<_> = calls.iter().map(|call| call.as_any().clone()).collect();
    run_when_settled(&awaited, move || {
        let (mut replies, mut errors) = (Vec::new(), Vec::new());
        for call in calls {
            match call.settled().get() {
                Some(Ok(reply)) => replies.push(reply.clone()),
                Some(Err(error)) => errors.push(error.clone()),
                None => errors.push(Error::internal("a settled reply is not there")),
            }
        }
        work(merged(errors).map_or(Ok(replies), Err));
    });
}

/// A start that goes on as replies arrive.
struct Start {
    context: Arc<DistributedContext>,
    others: Vec<(TaskHandle, ClusterTask)>,
    is_multi_client: bool,
    promise: Promise<ContextRef>,
}

/// Makes a context on all tasks.
fn lead(
    inner: &Arc<Inner>,
    id: ContextId,
    config: ContextConfig,
    is_multi_client: bool,
) -> AsyncValue<ContextRef> {
    let config = config.shared();
    let context = match inner.create_context(id, config, None) {
        Ok(context) => context,
        Err(error) => return AsyncValue::from_error(error),
    };
    let (promise, started) = AsyncValue::pending();
    let others = context.other_tasks();
    let start = Start {
        others: others.map(|(task, name)| (task, name.clone())).collect(),
        context,
        is_multi_client,
        promise,
    };
    start.ask_for_devices(inner.context_lifetime());
    started
}

impl Start {
    fn ask_for_devices(self, lifetime: Duration) {
        let bounds = Bounds {
            max_retries: START_RETRIES,
            ..Bounds::default()
        };
        let ask = |(task, _): &(TaskHandle, ClusterTask)| {
            self.context
                .call(*task, Request::GetDevices, bounds.clone())
        };
        let calls = self.others.iter().map(ask).collect();
        when_answered(calls, move |replies| match replies {
            Ok(replies) => {
                for ((_, task), reply) in self.others.iter().zip(replies) {
                    let Reply::Devices(devices) = reply else {
                        let error = unexpected(task, "devices");
                        self.fail(error);
                        return;
                    };
                    let full = devices.into_iter().map(|device| DeviceInfo {
                        name: device_name(task, &device.name),
                        kind: device.kind,
                    });
                    self.context.add_devices(full);
                }
                self.create_contexts(lifetime);
            }
            Err(error) => self.fail(error),
        });
    }

    fn create_contexts(self, lifetime: Duration) {
        let create = |(handle, task): &(TaskHandle, ClusterTask)| {
            let wanted = CreateContext {
                context: self.context.id(),
                cluster: self.context.config().cluster.clone(),
                task: task.clone(),
                devices: self.context.all_devices(),
                is_multi_client: self.is_multi_client,
            };
            let request = Request::CreateContext(Box::new(wanted));
            self.context.call(*handle, request, Bounds::default())
        };
        let calls = self.others.iter().map(create).collect();
        when_answered(calls, move |replies| match replies {
            Ok(replies) => {
                for ((handle, task), reply) in self.others.iter().zip(replies) {
                    let Reply::ContextCreated(chain) = reply else {
                        let error = unexpected(task, "a ready chain");
                        self.fail(error);
                        return;
                    };
                    self.context.set_ready_chain(*handle, chain);
                }
                match self.is_multi_client {
                    true => self.send_chains(),
                    false => {
                        keep_alive(&self.context, lifetime);
                        self.promise.resolve(ContextRef::new(self.context, None));
                    }
                }
            }
            Err(error) => self.fail(error),
        });
    }

    fn send_chains(self) {
        let chains = self.context.ready_chains();
        let missing = self
            .others
            .iter()
            .find(|(task, _)| !chains.contains_key(task));
        if let Some((_, task)) = missing {
            let message = format!("Missing remote ready chain from {task}");
            return self.fail(Error::internal(message));
        }
        tell_ready(&self.context).when_settled(move |told| match told.error() {
            None => self.promise.resolve(ContextRef::new(self.context, None)),
            Some(error) => self.fail(error.clone()),
        });
    }

    /// Gives up: the context that was made here is closed.
    fn fail(self, error: Error) {
        if let Ok(inner) = self.context.server().get() {
            let _closed = inner.close_context(self.context.id());
        }
        self.promise.fail(error);
    }
}

fn unexpected(task: &ClusterTask, wanted: &str) -> Error {
    Error::internal(format!("{task} has answered something else than {wanted}"))
        .with_task(task.clone())
}

/// Tells all tasks, again and again, that a context is used.
fn keep_alive(context: &Arc<DistributedContext>, lifetime: Duration) {
    let weak = Arc::downgrade(context);
    let timers = context.host().watchdog();
    let next = timers.schedule_after(lifetime / 2, move || {
        let Some(context) = weak.upgrade() else {
            return;
        };
        if context.has_ended() {
            return;
        }
        for (task, _) in context.other_tasks() {
            let request = Request::KeepAlive {
                context: context.id(),
            };
            // A task that is lost is told of by what waits for it.
            let _told = context.call(task, request, Bounds::default());
        }
        keep_alive(&context, lifetime);
    });
    context.set_keep_alive(next);
}

impl Inner {
    /// Makes a context for a task that leads.
    pub(crate) fn create_for_master(
        self: &Arc<Self>,
        wanted: CreateContext,
        master: Incarnation,
    ) -> Result<Reply, Error> {
        if let Some(watch) = self.watcher() {
            watch.wants_context(&wanted)?;
        }
        let context = self.create_wanted(wanted, Some(master))?;
        if let Some(watch) = self.watcher() {
            watch.made(&context);
        }
        Ok(Reply::ContextCreated(context.ready_chain().clone()))
    }

    fn create_wanted(
        self: &Arc<Self>,
        wanted: CreateContext,
        owner: Option<Incarnation>,
    ) -> Result<Arc<DistributedContext>, Error> {
        let config = ContextConfig {
            cluster: wanted.cluster,
            task: wanted.task,
        };
        let created = self.create_context(wanted.context, config, owner);
        let context = created.map_err(|error| match error.code() {
            ErrorCode::Unknown => Error::new(
                ErrorCode::DistributedContextAlreadyExists,
                error.message().to_owned(),
            ),
            _ => error,
        })?;
        context.add_devices(wanted.devices);
        Ok(context)
    }

    fn create_multi_client(self: &Arc<Self>, config: ContextConfig) -> AsyncValue<ContextRef> {
        let config = config.shared();
        let mut state = self
            .multi_client
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *state, MultiClient::Failed);
        match before {
            MultiClient::NotReady if *config.cluster.lead() == config.task => {
                *state = MultiClient::Finished;
                drop(state);
                lead(self, ContextId::draw(), config, true)
            }
            MultiClient::NotReady => {
                let (promise, context) = AsyncValue::pending();
                *state = MultiClient::WaitForContext(config, promise);
                context
            }
            MultiClient::Asked(wanted, reply) => {
                let (promise, started) = AsyncValue::pending();
                *state = self.agree(config, *wanted, promise, reply);
                started
            }
            started => {
                *state = started;
                AsyncValue::from_error(Error::unknown(
                    "a multi-client distributed context is initialized once: an earlier attempt has started",
                ))
            }
        }
    }

    /// Takes the leader's request to make a context.
    pub(crate) fn begin_multi_client_context(
        self: &Arc<Self>,
        wanted: CreateContext,
    ) -> AsyncValue<Reply> {
        let mut state = self
            .multi_client
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *state, MultiClient::Failed);
        let (promise, reply) = AsyncValue::pending();
        *state = match before {
            MultiClient::NotReady => MultiClient::Asked(Box::new(wanted), promise),
            MultiClient::WaitForContext(config, started) => {
                self.agree(config, wanted, started, promise)
            }
            other => {
                promise.fail(Error::new(
                    ErrorCode::DistributedContextAlreadyExists,
                    "a multi-client distributed context was made before, or has failed",
                ));
                other
            }
        };
        reply
    }

    /// Makes the context that both the program and the leader have asked for, if they mean the same.
    fn agree(
        self: &Arc<Self>,
        config: ContextConfig,
        wanted: CreateContext,
        started: Promise<ContextRef>,
        reply: Promise<Reply>,
    ) -> MultiClient {
        let theirs = ContextConfig {
            cluster: wanted.cluster.clone(),
            task: wanted.task.clone(),
        };
        let created = match theirs == config {
            true => self.create_wanted(wanted, None),
            false => Err(incompatible(
                (&config.cluster, &config.task),
                (&theirs.cluster, &theirs.task),
            )),
        };
        match created {
            Ok(context) => {
                reply.resolve(Reply::ContextCreated(context.ready_chain().clone()));
                MultiClient::WaitForChains(context, started)
            }
            Err(error) => {
                reply.fail(error.clone());
                started.fail(error);
                MultiClient::Failed
            }
        }
    }

    /// Takes the ready chains of other tasks.
    pub(crate) fn take_ready_chains(
        self: &Arc<Self>,
        id: ContextId,
        ready_chains: Vec<ObjectId>,
    ) -> Result<Reply, Error> {
        let context = self.context(id)?;
        for chain in ready_chains {
            let handle = context.handle_of(&task::parse(&chain.device)?)?;
            if handle != context.own_task() {
                context.set_ready_chain(handle, chain);
            }
        }
        if let Some(watch) = self.watcher() {
            watch.ready(&context);
        }
        let mut state = self
            .multi_client
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, MultiClient::Finished) {
            MultiClient::WaitForChains(own, started) if own.id() == id => {
                drop(state);
                started.resolve(ContextRef::new(context, None));
            }
            other => *state = other,
        }
        Ok(Reply::Done)
    }
}

/// Returns the error of two tasks that have heard of different clusters: what this one expects, and what the leader has.
pub(crate) fn incompatible(
    own: (&Cluster, &ClusterTask),
    theirs: (&Cluster, &ClusterTask),
) -> Error {
    Error::invalid_argument(format!(
        "Incompatible distributed configuration when initializing multi-client distributed context. Expecting {}, got {}",
        one_line(own.0, own.1),
        one_line(theirs.0, theirs.1)
    ))
}

/// Returns a cluster and a task as one line, for messages.
fn one_line(cluster: &Cluster, task: &ClusterTask) -> String {
    let text = cluster.to_toml();
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    format!("{task} of [{}]", lines.join("; "))
}
