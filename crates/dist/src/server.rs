//! [`Server`]: contexts of one task, and whatever answers the requests of others.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use tfrt_async::queue::{Task, TimerHandle};
use tfrt_async::{AsyncValue, Chain, ClusterTask, Error, ErrorCode, Promise};
use tfrt_host::HostContext;

use crate::collective::{EAGER_BYTES, participant};
use crate::context::{ContextConfig, DistributedContext, devices_of};
use crate::execute::{self, Allowed};
use crate::functions::Registrar;
use crate::ids::{ContextId, Incarnation};
use crate::message::{CreateContext, Key, Payload, Reply, Request};
use crate::op_handler;
use crate::probe;
use crate::security::{PeerKey, Policy};
use crate::start::MultiClient;
use crate::transport::{Bounds, Caller, Handler, Transport};

/// The time after which a context that nobody uses is dropped.
pub const DEFAULT_CONTEXT_LIFETIME: Duration = Duration::from_secs(600);

/// The time for which the number of a context that was closed can't be used again.
const TOMBSTONE_LIFETIME: Duration = Duration::from_secs(600);

/// A server: it holds the contexts of a task. Dropping it ends them and the transport.
pub struct Server(Arc<Inner>);

/// A handle of a server that keeps it not alive.
#[derive(Clone)]
pub struct ServerRef {
    inner: Weak<Inner>,
    host: HostContext,
    transport: Arc<dyn Transport>,
}

pub(crate) struct Inner {
    host: HostContext,
    transport: Arc<dyn Transport>,
    context_lifetime: Duration,
    contexts: Mutex<Contexts>,
    gate: Mutex<Gate>,
    /// The clients that are lost, until what they have made here is given up.
    lost: Mutex<HashMap<Incarnation, TimerHandle>>,
    /// How many requests of each task are not answered yet.
    in_flight: Mutex<HashMap<PeerKey, usize>>,
    policy: RwLock<Arc<Policy>>,
    pub(crate) multi_client: Mutex<MultiClient>,
    watch: Option<Arc<dyn Watch>>,
}

/// An observer of a server, which hears what other tasks want of it, and may refuse it.
pub(crate) trait Watch: Send + Sync {
    /// Hears that a task says that it is there.
    fn asks_to_join(&self, from: &Caller, task: &ClusterTask, n_tasks: u32) -> Result<(), Error>;

    /// Hears that a lead wants a context of this task.
    fn wants_context(&self, wanted: &CreateContext) -> Result<(), Error>;

    /// Hears that such a context was made.
    fn made(&self, context: &Arc<DistributedContext>);

    /// Hears that all tasks have made the context.
    fn ready(&self, context: &Arc<DistributedContext>);

    /// Hears that a context has ended; the reason is there if nobody has asked for that.
    fn closed(&self, id: ContextId, reason: Option<&Error>);

    /// Hears that a task is lost, or has left.
    fn lost(&self, peer: &Caller);
}

#[derive(Default)]
struct Contexts {
    live: HashMap<ContextId, Live>,
    closed: HashMap<ContextId, Instant>,
    /// When contexts that nobody uses are looked for next.
    next_look: Option<TimerHandle>,
    is_collecting: bool,
    has_ended: bool,
}

struct Live {
    context: Arc<DistributedContext>,
    /// When it was used last, if it is dropped when nobody uses it.
    used: Option<Instant>,
    /// The start of the process that has had it made, if that is another task.
    owner: Option<Incarnation>,
}

/// Executions that are held back, for tests of order.
#[derive(Default)]
struct Gate {
    is_closed: bool,
    waiting: VecDeque<Task>,
    /// Whoever lets one through that has not come yet.
    permits: VecDeque<Promise<Chain>>,
}

impl Server {
    /// Makes a server that answers what arrives by a transport.
    pub fn new(host: &HostContext, transport: Arc<dyn Transport>) -> Server {
        Server::with_context_lifetime(host, transport, DEFAULT_CONTEXT_LIFETIME)
    }

    /// Makes a server that drops contexts which nobody has used for so long, of those that other tasks have made.
    pub fn with_context_lifetime(
        host: &HostContext,
        transport: Arc<dyn Transport>,
        context_lifetime: Duration,
    ) -> Server {
        Server::begin(host, transport, context_lifetime, None, Policy::default())
    }

    /// Makes a server that tells somebody what other tasks want, and lets them do what a policy says, from the first one on.
    pub(crate) fn watched(
        host: &HostContext,
        transport: Arc<dyn Transport>,
        watch: Arc<dyn Watch>,
        policy: Policy,
    ) -> Server {
        Server::begin(
            host,
            transport,
            DEFAULT_CONTEXT_LIFETIME,
            Some(watch),
            policy,
        )
    }

    fn begin(
        host: &HostContext,
        transport: Arc<dyn Transport>,
        context_lifetime: Duration,
        watch: Option<Arc<dyn Watch>>,
        policy: Policy,
    ) -> Server {
        transport.set_quotas(policy.quotas());
        let inner = Arc::new(Inner {
            host: host.clone(),
            transport: transport.clone(),
            context_lifetime,
            contexts: Mutex::default(),
            gate: Mutex::default(),
            lost: Mutex::default(),
            in_flight: Mutex::default(),
            policy: RwLock::new(Arc::new(policy)),
            multi_client: Mutex::default(),
            watch,
        });
        transport.serve(Arc::new(Answering(Arc::downgrade(&inner))));
        Server(inner)
    }

    /// Returns a handle.
    pub fn handle(&self) -> ServerRef {
        self.0.handle()
    }

    /// Sets what each peer may do, from now on; without, each may execute, register and send, and none is trusted.
    pub fn set_policy(&self, policy: Policy) {
        self.0.transport.set_quotas(policy.quotas());
        let mut own = self
            .0
            .policy
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *own = Arc::new(policy);
    }

    /// Makes a context of this task alone, without telling others.
    ///
    /// # Errors
    ///
    /// `Unknown` if there is one of this number, `TaskNotFound` if the task is none of the cluster.
    pub fn create_context(
        &self,
        id: ContextId,
        config: ContextConfig,
    ) -> Result<Arc<DistributedContext>, Error> {
        self.0.create_context(id, config, None)
    }

    /// Returns a context, and notes that it is used.
    ///
    /// # Errors
    ///
    /// `InvalidDistributedContextId` if there is none.
    pub fn context(&self, id: ContextId) -> Result<Arc<DistributedContext>, Error> {
        self.0.context(id)
    }

    /// Ends a context.
    ///
    /// # Errors
    ///
    /// `InvalidDistributedContextId` if there is none.
    pub fn close_context(&self, id: ContextId) -> Result<(), Error> {
        self.0.close_context(id)
    }

    /// Ends all.
    pub fn close(&self) {
        self.0.close();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({})", self.0.transport.address())
    }
}

impl ServerRef {
    /// Returns the host.
    pub fn host(&self) -> &HostContext {
        &self.host
    }

    /// Returns the transport.
    pub fn transport(&self) -> &Arc<dyn Transport> {
        &self.transport
    }

    /// Returns the server, if it has not ended.
    pub(crate) fn get(&self) -> Result<Arc<Inner>, Error> {
        let inner = self.inner.upgrade();
        inner.ok_or_else(|| Error::cancelled("the server of this context has ended"))
    }

    /// Ends the server.
    pub fn close(&self) {
        if let Some(inner) = self.inner.upgrade() {
            inner.close();
        }
    }

    /// Holds back executions that arrive from now on, until each is [let through](Self::process_next).
    pub fn hold(&self) {
        if let Some(inner) = self.inner.upgrade() {
            inner.gate().is_closed = true;
        }
    }

    /// Lets the oldest execution through that was held back; the chain says that it began. If there is none it lets the
    /// next one through.
    pub fn process_next(&self) -> AsyncValue<Chain> {
        let inner = match self.get() {
            Ok(inner) => inner,
            Err(error) => return AsyncValue::from_error(error),
        };
        let mut gate = inner.gate();
        if let Some(task) = gate.waiting.pop_front() {
            drop(gate);
            task.run();
            return AsyncValue::available(Chain);
        }
        let (promise, begun) = AsyncValue::pending();
        gate.permits.push_back(promise);
        begun
    }
}

impl fmt::Debug for ServerRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerRef({})", self.transport.address())
    }
}

impl Inner {
    pub(crate) fn handle(self: &Arc<Self>) -> ServerRef {
        ServerRef {
            inner: Arc::downgrade(self),
            host: self.host.clone(),
            transport: self.transport.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Contexts> {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn watcher(&self) -> Option<&Arc<dyn Watch>> {
        self.watch.as_ref()
    }

    /// Returns what each peer may do.
    pub(crate) fn policy(&self) -> Arc<Policy> {
        self.policy
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn context_lifetime(&self) -> Duration {
        self.context_lifetime
    }

    /// Makes a context, which is dropped with its owner if another task has it made, and when nobody uses it.
    pub(crate) fn create_context(
        self: &Arc<Self>,
        id: ContextId,
        config: ContextConfig,
        owner: Option<Incarnation>,
    ) -> Result<Arc<DistributedContext>, Error> {
        let tracked = owner.is_some();
        let now = self.host.now();
        let mut contexts = self.lock();
        if contexts.has_ended {
            return Err(Error::cancelled("the server has ended"));
        }
        if contexts.live.contains_key(&id) {
            return Err(Error::unknown(format!(
                "Failed to create DistributedContext: context ID {id} already exists!"
            )));
        }
        let contexts_closed = &mut contexts.closed;
        contexts_closed.retain(|_, at| now.saturating_duration_since(*at) < TOMBSTONE_LIFETIME);
        if contexts_closed.contains_key(&id) {
            return Err(Error::failed_precondition(format!(
                "context {id} was closed: its number can't be used again before {} s",
                TOMBSTONE_LIFETIME.as_secs()
            )));
        }
        let context = DistributedContext::new(id, config, self.handle())?;
        let live = Live {
            context: context.clone(),
            used: tracked.then_some(now),
            owner,
        };
        contexts.live.insert(id, live);
        let begins = tracked && !std::mem::replace(&mut contexts.is_collecting, tracked);
        drop(contexts);
        if begins {
            self.collect_later();
        }
        Ok(context)
    }

    pub(crate) fn context(&self, id: ContextId) -> Result<Arc<DistributedContext>, Error> {
        let now = self.host.now();
        let mut contexts = self.lock();
        let live = contexts.live.get_mut(&id).ok_or_else(|| no_context(id))?;
        if let Some(used) = &mut live.used {
            *used = now;
        }
        Ok(live.context.clone())
    }

    pub(crate) fn close_context(&self, id: ContextId) -> Result<(), Error> {
        let now = self.host.now();
        let mut contexts = self.lock();
        let live = contexts.live.remove(&id).ok_or_else(|| no_context(id))?;
        contexts.closed.insert(id, now);
        drop(contexts);
        live.context.end(&closed(id));
        if let Some(watch) = &self.watch {
            watch.closed(id, None);
        }
        Ok(())
    }

    fn close(&self) {
        let (contexts, look) = {
            let mut contexts = self.lock();
            contexts.has_ended = true;
            (
                std::mem::take(&mut contexts.live),
                contexts.next_look.take(),
            )
        };
        if let Some(look) = look {
            look.cancel();
        }
        let lost = std::mem::take(&mut *self.lost());
        lost.into_values().for_each(|timer| {
            timer.cancel();
        });
        for (id, live) in contexts {
            live.context.end(&closed(id));
        }
        // Callers of what waits hear that the task is lost, not that somebody has dropped their promises.
        self.transport.close();
        let gate = std::mem::take(&mut *self.gate());
        // Dropped without the lock: promises in it run what waits.
        drop(gate);
        self.multi_client
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .end();
    }

    /// Drops the contexts that nobody has used for their time, again and again.
    fn collect_later(self: &Arc<Self>) {
        let inner = Arc::downgrade(self);
        let timers = self.host.watchdog();
        let look = timers.schedule_after(self.context_lifetime, move || {
            if let Some(inner) = inner.upgrade() {
                inner.collect();
            }
        });
        let mut contexts = self.lock();
        match contexts.has_ended {
            true => {
                look.cancel();
            }
            false => contexts.next_look = Some(look),
        }
    }

    fn collect(self: &Arc<Self>) {
        let now = self.host.now();
        let is_old = |live: &Live| {
            let idle = live.used.map(|used| now.saturating_duration_since(used));
            idle.is_some_and(|idle| idle >= self.context_lifetime)
        };
        let mut contexts = self.lock();
        let old: Vec<ContextId> = contexts
            .live
            .iter()
            .filter(|(_, live)| is_old(live))
            .map(|(id, _)| *id)
            .collect();
        let dropped: Vec<_> = old
            .iter()
            .filter_map(|id| Some((*id, contexts.live.remove(id)?)))
            .collect();
        contexts.closed.extend(old.iter().map(|id| (*id, now)));
        drop(contexts);
        for (id, live) in dropped {
            let seconds = self.context_lifetime.as_secs();
            let message = format!("context {id} was dropped: nobody used it for {seconds} s");
            let reason = Error::cancelled(message);
            live.context.end(&reason);
            if let Some(watch) = &self.watch {
                watch.closed(id, Some(&reason));
            }
        }
        self.collect_later();
    }

    fn lost(&self) -> MutexGuard<'_, HashMap<Incarnation, TimerHandle>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hears that a task is lost: when its lease is over, what it has made here is given up.
    fn lose(self: &Arc<Self>, peer: &Caller) {
        let lease = self.transport.lease();
        if lease.is_zero() {
            return self.free(peer);
        }
        let (inner, client) = (Arc::downgrade(self), peer.clone());
        let timer = self.host.timers().schedule_after(lease, move || {
            let inner = inner.upgrade();
            // It may be back since.
            if let Some(inner) = inner.filter(|it| it.lost().remove(&client.incarnation).is_some())
            {
                inner.free(&client);
            }
        });
        let has_ended = self.lock().has_ended;
        let before = match has_ended {
            true => Some(timer),
            false => self.lost().insert(peer.incarnation, timer),
        };
        if let Some(before) = before {
            before.cancel();
        }
    }

    /// Hears that a task is there.
    fn found(&self, client: Incarnation) {
        let timer = self.lost().remove(&client);
        if let Some(timer) = timer {
            timer.cancel();
        }
    }

    /// Gives up what a task has made here, which is lost for good: contexts, objects, answers.
    fn free(&self, client: &Caller) {
        let now = self.host.now();
        let mut contexts = self.lock();
        let is_its = |live: &Live| live.owner == Some(client.incarnation);
        let owned = contexts.live.iter().filter(|(_, live)| is_its(live));
        let owned: Vec<ContextId> = owned.map(|(id, _)| *id).collect();
        let ended: Vec<_> = owned
            .iter()
            .filter_map(|id| Some((*id, contexts.live.remove(id)?)))
            .collect();
        contexts.closed.extend(owned.iter().map(|id| (*id, now)));
        let others = contexts.live.values().map(|live| live.context.clone());
        let others: Vec<_> = others.collect();
        drop(contexts);
        for (id, live) in ended {
            let address = &client.address;
            let message = format!(
                "context {id} was dropped: the task at {address}, which has made it, is lost"
            );
            live.context.end(&Error::unavailable(message));
        }
        for context in others {
            context.free_objects_of(&client.address);
        }
        self.transport.forget_client(client.incarnation);
    }

    /// Counts a request of a task.
    fn admit(&self, from: &Caller, peer: &PeerKey, policy: &Policy) -> Result<(), Error> {
        self.found(from.incarnation);
        let max_requests = policy.quotas().requests;
        let mut in_flight = self
            .in_flight
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let count = in_flight.get(peer).copied().unwrap_or(0);
        if count >= max_requests {
            return Err(Error::resource_exhausted(format!(
                "a task may have {max_requests} requests that are not answered yet"
            )));
        }
        in_flight.insert(peer.clone(), count + 1);
        Ok(())
    }

    /// Counts a request as answered.
    fn release(&self, client: &PeerKey) {
        let mut in_flight = self
            .in_flight
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = in_flight.get_mut(client) {
            *count -= 1;
            if *count == 0 {
                in_flight.remove(client);
            }
        }
    }

    /// Does what another task asks.
    fn answer(
        self: &Arc<Self>,
        from: &Caller,
        request: Request,
        bounds: Bounds,
    ) -> AsyncValue<Reply> {
        let policy = self.policy();
        let (peer, trust) = (PeerKey::of(from), policy.trust(from));
        let max_objects = policy.quotas().objects;
        let allowed = |bounds| Allowed::new(bounds, trust, policy.quotas(), self.host.now());
        let now = |result: Result<Reply, Error>| AsyncValue::from(result);
        match request {
            Request::GetDevices => now(Ok(Reply::Devices(devices_of(&self.host)))),
            Request::ReadClock => now(Ok(Reply::Clock(probe::now_ns()))),
            Request::Join { task, n_tasks } => now(match &self.watch {
                Some(watch) => watch.asks_to_join(from, &task, n_tasks),
                None => Err(Error::failed_precondition("this task waits for no others")),
            }
            .map(|()| Reply::Done)),
            Request::Probe {
                context,
                to,
                n_bytes,
            } => match self.context(context) {
                Ok(context) => probe::measure(&context, &to, n_bytes, bounds),
                Err(error) => AsyncValue::from_error(error),
            },
            Request::CreateContext(wanted) if wanted.is_multi_client => {
                self.begin_multi_client_context(*wanted)
            }
            Request::CreateContext(wanted) => {
                now(self.create_for_master(*wanted, from.incarnation))
            }
            Request::CloseContext { context } => {
                now(self.close_context(context).map(|()| Reply::Done))
            }
            Request::KeepAlive { context } => now(self.context(context).map(|_| Reply::Done)),
            Request::SendReadyChains {
                context,
                ready_chains,
            } => now(self.take_ready_chains(context, ready_chains)),
            Request::RegisterFunction {
                context,
                name,
                program,
                need_compilation,
            } => now(self.context(context).and_then(|context| {
                let by = Registrar {
                    peer: &peer,
                    trust,
                    quotas: policy.quotas(),
                };
                let (functions, host) = (context.functions(), context.host());
                let devices = functions.register(&name, &program, need_compilation, by, host)?;
                Ok(Reply::FunctionRegistered(devices))
            })),
            Request::RemoteExecute {
                context,
                name,
                inputs,
                outputs,
            } => {
                let allowed = allowed(bounds);
                self.through_gate(move |inner| {
                    let context = match inner.context(context) {
                        Ok(context) => context,
                        Err(error) => return AsyncValue::from_error(error),
                    };
                    let ids = inputs.iter().chain(outputs.iter().map(|output| &output.id));
                    if let Err(error) = context.objects().name(&peer, max_objects, ids) {
                        return AsyncValue::from_error(error);
                    }
                    let begun = execute::execute(&context, &name, &inputs, &outputs, &allowed);
                    begun.unwrap_or_else(|error| {
                        let outputs = outputs.iter().map(|output| &output.id);
                        execute::fail(&context, outputs, &error);
                        AsyncValue::from_error(error)
                    })
                })
            }
            Request::RemoteExecuteOp(wanted) => {
                let named = self.context(wanted.context).and_then(|context| {
                    let ids = wanted.inputs.iter();
                    let ids = ids.chain([&wanted.in_chain, &wanted.out_chain]);
                    let ids = ids.chain(wanted.outputs.iter().map(|output| &output.id));
                    context.objects().name(&peer, max_objects, ids)?;
                    Ok(context)
                });
                match named {
                    Ok(context) => op_handler::execute(&context, *wanted, &allowed(bounds)),
                    Err(error) => AsyncValue::from_error(error),
                }
            }
            Request::DeleteRemoteObjects { context, objects } => now(self
                .context(context)
                .and_then(|context| context.objects().delete(&objects))
                .map(|()| Reply::Done)),
        }
    }

    /// Runs an execution, when it is let through.
    fn through_gate(
        self: &Arc<Self>,
        work: impl FnOnce(&Arc<Inner>) -> AsyncValue<Reply> + Send + 'static,
    ) -> AsyncValue<Reply> {
        let mut gate = self.gate();
        if !gate.is_closed {
            drop(gate);
            return work(self);
        }
        let permit = gate.permits.pop_front();
        if let Some(permit) = permit {
            drop(gate);
            let reply = work(self);
            permit.resolve(Chain);
            return reply;
        }
        let (promise, reply) = AsyncValue::pending();
        let inner = Arc::downgrade(self);
        gate.waiting
            .push_back(Task::new(move || match inner.upgrade() {
                Some(inner) => promise.forward(work(&inner)),
                None => promise.fail(Error::cancelled("the server has ended")),
            }));
        reply
    }
}

/// A handler of requests that keeps no server alive.
struct Answering(Weak<Inner>);

impl Handler for Answering {
    fn call(&self, from: &Caller, request: Request, bounds: Bounds) -> AsyncValue<Reply> {
        let Some(inner) = self.0.upgrade() else {
            return AsyncValue::from_error(Error::unavailable("the server has ended"));
        };
        let (policy, client) = (inner.policy(), PeerKey::of(from));
        let admitted = policy.check(from, &request);
        if let Err(error) = admitted.and_then(|()| inner.admit(from, &client, &policy)) {
            return AsyncValue::from_error(error);
        }
        let reply = inner.answer(from, request, bounds);
        let weak = self.0.clone();
        reply.and_then(move || {
            if let Some(inner) = weak.upgrade() {
                inner.release(&client);
            }
        });
        reply
    }

    fn is_short(&self, request: &Request) -> bool {
        match request {
            Request::RemoteExecute { context, name, .. } => {
                let context = self.0.upgrade().and_then(|it| it.context(*context).ok());
                let function = context.and_then(|context| context.functions().get(name).ok());
                // A request that is refused is answered soon.
                function.is_none_or(|function| function.pace.is_short())
            }
            Request::GetDevices
            | Request::ReadClock
            | Request::KeepAlive { .. }
            | Request::DeleteRemoteObjects { .. } => true,
            _ => false,
        }
    }

    fn is_quick(&self, key: &Key, value: &Payload) -> bool {
        // Longer elements are lent by their sender, which waits to have them back.
        let mut buffers = value.0.iter();
        key.name == participant::NAME && buffers.all(|it| it.len_bytes() <= EAGER_BYTES)
    }

    fn value(&self, from: &Caller, key: Key, value: Payload) -> Result<Option<Task>, Error> {
        let inner = self.0.upgrade();
        let inner = inner.ok_or_else(|| Error::unavailable("the server has ended"))?;
        inner.found(from.incarnation);
        inner.policy().check_value(from)?;
        inner.context(key.context)?.put(from, &key.name, value)
    }

    fn lost(&self, peer: &Caller, _: &Error) {
        // Calls to it fail by the transport.
        let Some(inner) = self.0.upgrade() else {
            return;
        };
        let contexts: Vec<_> = inner
            .lock()
            .live
            .values()
            .map(|live| live.context.clone())
            .collect();
        for context in contexts {
            context.lose(&peer.address);
        }
        inner.lose(peer);
        if let Some(watch) = &inner.watch {
            watch.lost(peer);
        }
    }
}

fn no_context(id: ContextId) -> Error {
    Error::new(
        ErrorCode::InvalidDistributedContextId,
        format!("Context with id {id} does not exist."),
    )
}

fn closed(id: ContextId) -> Error {
    Error::cancelled(format!("context {id} was closed"))
}
