//! [`DistributedContext`]: one task's part of a group of tasks that run programs together.
//!
//! A [`Server`](crate::server::Server) makes and owns contexts. Programs hold a [`ContextRef`].

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};

use tfrt_async::queue::{Task, TimerHandle};
use tfrt_async::{AsyncValue, Chain, ClusterTask, Error, ErrorCode, Heap, Value};
use tfrt_host::{
    AnyAsyncValue, CancellationHook, DeviceKind, DeviceRef, HostContext, RequestContext,
};

use crate::cluster::{Address, Cluster};
use crate::collective::participant::{self, Participant};
use crate::device::RemoteDevice;
use crate::functions::FunctionCache;
use crate::ids::{ContextId, ObjectId, TaskHandle};
use crate::message::{DeviceInfo, Key, Payload, Reply, Request};
use crate::objects::RemoteObjects;
use crate::pace::Dispatcher;
use crate::probe;
use crate::rendezvous::{Rendezvous, Ticket};
use crate::security::PeerKey;
use crate::server::ServerRef;
use crate::task;
use crate::transport::{Bounds, Caller, Cancel, PeerState, Phase, Transport, lost};

/// The tasks of a context, and which of them this one is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextConfig {
    /// All tasks.
    pub cluster: Cluster,
    /// This task.
    pub task: ClusterTask,
}

impl ContextConfig {
    /// Returns the configuration as all tasks see it, as [`Cluster::shared`].
    pub(crate) fn shared(&self) -> ContextConfig {
        ContextConfig {
            cluster: self.cluster.shared(),
            task: self.task.clone(),
        }
    }
}

impl Value for ContextConfig {
    const NAME: &'static str = "!tfrt_dist.dist_context_configuration";
    type Storage = Heap;
}

/// One task's part of a group of tasks: names of the others, objects, functions, values that were sent.
pub struct DistributedContext {
    me: Weak<DistributedContext>,
    id: ContextId,
    host: HostContext,
    transport: Arc<dyn Transport>,
    server: ServerRef,
    config: ContextConfig,
    own: TaskHandle,
    by_name: BTreeMap<(String, u32), TaskHandle>,
    by_handle: HashMap<TaskHandle, ClusterTask>,
    devices: RwLock<BTreeMap<String, DeviceKind>>,
    objects: RemoteObjects,
    rendezvous: Rendezvous,
    collectives: Arc<Participant>,
    functions: FunctionCache,
    ready_chain: ObjectId,
    /// The ready chains of other tasks.
    ready_chains: Mutex<HashMap<TaskHandle, ObjectId>>,
    /// Objects of other tasks that nobody here names any more, until they are told.
    deletions: Mutex<HashMap<TaskHandle, Vec<ObjectId>>>,
    /// When the other tasks are told next that the context is used.
    keep_alive: Mutex<Option<TimerHandle>>,
    dispatcher: Dispatcher,
    ended: OnceLock<Error>,
}

impl DistributedContext {
    /// Makes the context of a task, which knows the devices of its own host only.
    ///
    /// # Errors
    ///
    /// `TaskNotFound` if the task is none of the cluster.
    pub(crate) fn new(
        id: ContextId,
        config: ContextConfig,
        server: ServerRef,
    ) -> Result<Arc<DistributedContext>, Error> {
        config.cluster.address(&config.task)?;
        let (host, transport) = (server.host().clone(), server.transport().clone());
        let tasks = config.cluster.tasks();
        let by_name: BTreeMap<(String, u32), TaskHandle> = tasks
            .map(|(task, address)| {
                let handle = TaskHandle::draw();
                transport.introduce(handle, &task, address);
                ((task.job, task.task), handle)
            })
            .collect();
        let by_handle = by_name.iter().map(|((job, number), handle)| {
            let task = ClusterTask {
                job: job.clone(),
                task: *number,
            };
            (*handle, task)
        });
        let by_handle = by_handle.collect();
        let tasks = config.cluster.tasks().map(|(task, address)| {
            let handle = by_name[&(task.job.clone(), task.task)];
            (task, address, handle)
        });
        let collectives = Participant::new(&host, &transport, id, config.task.clone(), tasks);
        let own = by_name[&(config.task.job.clone(), config.task.task)];
        let objects = RemoteObjects::new(own.0);
        let host_device: Arc<str> =
            device_name(&config.task, host.devices().list()[0].name()).into();
        let ready_chain = objects.allocate(&host_device);
        objects.set(&ready_chain, AnyAsyncValue::new(Chain))?;
        let dispatcher = Dispatcher::new(host.queue(), &transport);
        let context = Arc::new_cyclic(|me| DistributedContext {
            me: me.clone(),
            dispatcher,
            id,
            host,
            transport,
            server,
            own,
            by_name,
            by_handle,
            devices: RwLock::default(),
            objects,
            rendezvous: Rendezvous::default(),
            collectives,
            functions: FunctionCache::default(),
            ready_chain,
            ready_chains: Mutex::default(),
            deletions: Mutex::default(),
            keep_alive: Mutex::default(),
            ended: OnceLock::new(),
            config,
        });
        let own_devices = context.own_devices();
        context.add_devices(own_devices);
        Ok(context)
    }

    /// Returns a handle that does not keep the context alive.
    pub(crate) fn downgrade(&self) -> Weak<DistributedContext> {
        self.me.clone()
    }

    /// Returns the number of the context.
    pub fn id(&self) -> ContextId {
        self.id
    }

    /// Returns the host.
    pub fn host(&self) -> &HostContext {
        &self.host
    }

    /// Returns the server that the context belongs to.
    pub fn server(&self) -> &ServerRef {
        &self.server
    }

    /// Returns the tasks, and which this one is.
    pub fn config(&self) -> &ContextConfig {
        &self.config
    }

    /// Returns the handle of this task.
    pub fn own_task(&self) -> TaskHandle {
        self.own
    }

    /// Returns the handles of all tasks but this one, with their names.
    pub fn other_tasks(&self) -> impl Iterator<Item = (TaskHandle, &ClusterTask)> {
        let all = self.by_name.values().filter(|handle| **handle != self.own);
        all.map(|handle| (*handle, &self.by_handle[handle]))
    }

    /// Returns the handle of a task by its name, behind which a device may stand.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the text is no name, `TaskNotFound` if no task has it.
    pub fn task_handle(&self, name: &str) -> Result<TaskHandle, Error> {
        self.handle_of(&task::parse(name)?)
    }

    /// Returns the handle of a task.
    ///
    /// # Errors
    ///
    /// `TaskNotFound` if there is no such task.
    pub fn handle_of(&self, task: &ClusterTask) -> Result<TaskHandle, Error> {
        match self.by_name.get(&(task.job.clone(), task.task)) {
            Some(handle) => Ok(*handle),
            None => {
                Err(self.config.cluster.address(task).err().unwrap_or_else(|| {
                    Error::new(ErrorCode::TaskNotFound, format!("no task {task}"))
                }))
            }
        }
    }

    /// Returns the name of a task.
    ///
    /// # Errors
    ///
    /// `TaskNotFound` for a handle of another context.
    pub fn task_name(&self, task: TaskHandle) -> Result<&ClusterTask, Error> {
        let name = self.by_handle.get(&task);
        name.ok_or_else(|| {
            let message = format!("No task found with TaskHandle {task}");
            Error::new(ErrorCode::TaskNotFound, message)
        })
    }

    /// Returns the members of a group of tasks, in order.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such group.
    pub fn group(&self, name: &str) -> Result<Vec<TaskHandle>, Error> {
        let members = self.config.cluster.group(name).ok_or_else(|| {
            let names: Vec<&str> = self.config.cluster.groups().collect();
            let (name, names) = (name.escape_debug(), names.join(", "));
            Error::not_found(format!(
                "there is no collective group '{name}': there are {names}"
            ))
        })?;
        members
            .iter()
            .map(|member| self.handle_of(member))
            .collect()
    }

    /// Returns the devices of this task, by their full names.
    pub fn own_devices(&self) -> Vec<DeviceInfo> {
        let devices = devices_of(&self.host).into_iter();
        let full = devices.map(|device| DeviceInfo {
            name: device_name(&self.config.task, &device.name),
            kind: device.kind,
        });
        full.collect()
    }

    /// Adds devices by their full names.
    pub fn add_devices(&self, devices: impl IntoIterator<Item = DeviceInfo>) {
        let mut known = self.devices.write().unwrap_or_else(PoisonError::into_inner);
        known.extend(devices.into_iter().map(|device| (device.name, device.kind)));
    }

    /// Returns all devices of all tasks, by their full names.
    pub fn all_devices(&self) -> Vec<DeviceInfo> {
        let known = self.devices.read().unwrap_or_else(PoisonError::into_inner);
        let devices = known.iter().map(|(name, kind)| DeviceInfo {
            name: name.clone(),
            kind: *kind,
        });
        devices.collect()
    }

    /// Returns the full name of a device, if any task has it.
    ///
    /// # Errors
    ///
    /// `DeviceNotFound` if none has.
    pub fn device(&self, name: &str) -> Result<Arc<str>, Error> {
        let known = self.devices.read().unwrap_or_else(PoisonError::into_inner);
        match known.contains_key(name) {
            true => Ok(name.into()),
            false => Err(Error::new(
                ErrorCode::DeviceNotFound,
                format!("Can't find device: {name}"),
            )),
        }
    }

    /// Returns a device of any task as one of the host's.
    ///
    /// # Errors
    ///
    /// `DeviceNotFound` if no task has it; those of adding a device.
    pub fn remote_device(&self, name: &str) -> Result<DeviceRef, Error> {
        self.device(name)?;
        let kind = {
            let known = self.devices.read().unwrap_or_else(PoisonError::into_inner);
            known[name]
        };
        let devices = self.host.devices();
        if let Some(device) = devices.get(name) {
            return Ok(device);
        }
        match devices.add(|_| Arc::new(RemoteDevice::new(name, kind))) {
            // Another context of the process may have been faster.
            Err(error) => devices.get(name).ok_or(error),
            added => added,
        }
    }

    /// Returns the objects that this task has.
    pub fn objects(&self) -> &RemoteObjects {
        &self.objects
    }

    /// Returns this task's part in collectives.
    pub(crate) fn collectives(&self) -> &Participant {
        &self.collectives
    }

    /// Returns the functions that were registered with this task.
    pub fn functions(&self) -> &FunctionCache {
        &self.functions
    }

    /// Returns the name of a chain that is ready, on this task.
    pub fn ready_chain(&self) -> &ObjectId {
        &self.ready_chain
    }

    /// Sets the ready chain of another task.
    pub(crate) fn set_ready_chain(&self, task: TaskHandle, chain: ObjectId) {
        let mut chains = self
            .ready_chains
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        chains.insert(task, chain);
    }

    /// Returns the ready chains of all tasks that are known, this one's included.
    pub fn ready_chains(&self) -> HashMap<TaskHandle, ObjectId> {
        let chains = self
            .ready_chains
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut all = chains.clone();
        all.insert(self.own, self.ready_chain.clone());
        all
    }

    /// Asks another task. The reply arrives on the host's queue, or on a thread of the transport if that leads to little.
    pub fn call(&self, task: TaskHandle, request: Request, bounds: Bounds) -> AsyncValue<Reply> {
        match self.check(task) {
            Ok(()) => self.on_queue(self.transport.call(task, request, bounds)),
            Err(error) => AsyncValue::from_error(error),
        }
    }

    /// Sends a value to a task, where somebody waits under a name.
    pub fn send(
        &self,
        task: TaskHandle,
        name: &str,
        value: Payload,
        bounds: Bounds,
    ) -> AsyncValue<Chain> {
        let key = Key {
            context: self.id,
            name: name.to_owned(),
        };
        match self.check(task) {
            Ok(()) => self.on_queue(self.transport.send(task, key, value, bounds)),
            Err(error) => AsyncValue::from_error(error),
        }
    }

    /// Returns the next value that is sent under a name. It fails if the task that is to send it is lost.
    pub fn receive(&self, from: TaskHandle, name: &str) -> AsyncValue<Payload> {
        self.receive_ticket(from, name).0
    }

    /// Returns the next value that is sent under a name, for a request: it fails if that is stopped, as long as the hook
    /// lives, and the value is then for whoever asks next.
    pub fn receive_for(
        &self,
        request: &Arc<RequestContext>,
        from: TaskHandle,
        name: &str,
    ) -> (AsyncValue<Payload>, Option<CancellationHook>) {
        let (value, ticket) = self.receive_ticket(from, name);
        let hook = ticket.map(|ticket| {
            let (context, name) = (self.me.clone(), name.to_owned());
            request.on_cancel(move |reason| {
                if let Some(context) = context.upgrade() {
                    context.rendezvous.give_up(&name, ticket, reason);
                }
            })
        });
        (value, hook)
    }

    fn receive_ticket(
        &self,
        from: TaskHandle,
        name: &str,
    ) -> (AsyncValue<Payload>, Option<Ticket>) {
        if let Err(error) = self.check(from) {
            return (AsyncValue::from_error(error), None);
        }
        let (promise, value) = AsyncValue::pending();
        let ticket = self
            .rendezvous
            .take(name, Some(from), move |payload| promise.complete(payload));
        let is_lost = |peer: &PeerState| peer.handle == from && peer.phase == Phase::Lost;
        if !value.is_settled() && self.transport.peers().iter().any(is_lost) {
            self.rendezvous.lose(from, &lost(&self.by_handle[&from]));
        }
        (self.on_queue(value), ticket)
    }

    /// Fails what waits for values of the task at an address.
    pub(crate) fn lose(&self, address: &Address) {
        let cluster = &self.config.cluster;
        for (handle, task) in &self.by_handle {
            if cluster.address(task).is_ok_and(|own| own == address) {
                self.rendezvous.lose(*handle, &lost(task));
                self.collectives.lose(task);
            }
        }
    }

    /// Deletes the objects that the task at an address has named, which is lost for good. Its names are known where all
    /// tasks have started for themselves: each has told its ready chain.
    pub(crate) fn free_objects_of(&self, address: &Address) {
        for (handle, task) in &self.by_handle {
            if *handle != self.own && self.config.cluster.address(task).ok() == Some(address) {
                let chain = self.ready_chains().get(handle).cloned();
                if let Some(chain) = chain {
                    self.objects.free(chain.key.prefix, &lost(task));
                }
            }
        }
    }

    /// Takes a value that was sent; see [`Handler::value`](crate::transport::Handler::value).
    pub(crate) fn put(
        &self,
        from: &Caller,
        name: &str,
        value: Payload,
    ) -> Result<Option<Task>, Error> {
        match name {
            participant::NAME => self.collectives.arrived(from, &value),
            // Their sender looks at the time alone.
            probe::NAME => Ok(None),
            _ => {
                let most = self.server.get()?.policy().quotas().waiting_bytes;
                let peer = PeerKey::of(from);
                let put = self.rendezvous.put_from(&peer, most, name, value);
                put.map(|()| None)
            }
        }
    }

    /// Returns a value that settles where a program may run: on the host's queue, or on a thread of the transport, if what
    /// waits for such values is short.
    fn on_queue<T: Value>(&self, value: AsyncValue<T>) -> AsyncValue<T> {
        if value.is_settled() {
            return value;
        }
        let (promise, settled) = AsyncValue::pending();
        let dispatcher = self.dispatcher.clone();
        value.when_settled(move |value| dispatcher.run(move || promise.forward(value)));
        settled
    }

    fn check(&self, task: TaskHandle) -> Result<(), Error> {
        match self.ended.get() {
            Some(reason) => Err(reason.clone()),
            None => self.task_name(task).map(|_| ()),
        }
    }

    /// Ends: what waits fails, objects are dropped, and peers forgotten.
    pub(crate) fn end(&self, reason: &Error) {
        if self.ended.set(reason.clone()).is_err() {
            return;
        }
        self.set_keep_alive_to(None);
        // While the others can be told.
        self.collectives.end(reason);
        self.rendezvous.end(reason);
        self.objects.end(reason);
        self.functions.clear();
        for handle in self.by_handle.keys() {
            self.transport.forget(*handle);
        }
    }

    /// Keeps the timer by which the other tasks are told that the context is used; it ends with the context.
    pub(crate) fn set_keep_alive(&self, next: TimerHandle) {
        self.set_keep_alive_to(Some(next));
        if self.has_ended() {
            self.set_keep_alive_to(None);
        }
    }

    fn set_keep_alive_to(&self, next: Option<TimerHandle>) {
        let mut keep_alive = self
            .keep_alive
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *keep_alive, next);
        drop(keep_alive);
        if let Some(before) = before {
            before.cancel();
        }
    }

    /// Returns whether the context has ended.
    pub fn has_ended(&self) -> bool {
        self.ended.get().is_some()
    }

    /// Tells a task, before long, that nobody names an object of it any more.
    pub(crate) fn delete_later(&self, task: TaskHandle, id: ObjectId) {
        if self.ended.get().is_some() {
            return;
        }
        let mut deletions = self
            .deletions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let is_first = deletions.is_empty();
        deletions.entry(task).or_default().push(id);
        drop(deletions);
        if !is_first {
            return;
        }
        let context = self.me.clone();
        self.host.queue().add_task(Task::new(move || {
            if let Some(context) = context.upgrade() {
                context.delete_now();
            }
        }));
    }

    fn delete_now(&self) {
        let deletions = {
            let mut deletions = self
                .deletions
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *deletions)
        };
        for (task, objects) in deletions {
            let request = Request::DeleteRemoteObjects {
                context: self.id,
                objects,
            };
            // A task that is lost has no objects left.
            let _told = self.call(task, request, Bounds::default());
        }
    }
}

impl fmt::Debug for DistributedContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DistributedContext")
            .field("id", &self.id)
            .field("task", &format_args!("{}", self.config.task))
            .finish_non_exhaustive()
    }
}

/// A context as a value of programs.
#[derive(Clone)]
pub struct ContextRef {
    context: Arc<DistributedContext>,
    /// The servers that live as long as somebody holds this.
    _servers: Option<Arc<dyn Send + Sync>>,
}

impl ContextRef {
    /// Returns a handle to a context, which keeps servers alive.
    pub fn new(
        context: Arc<DistributedContext>,
        servers: Option<Arc<dyn Send + Sync>>,
    ) -> ContextRef {
        ContextRef {
            context,
            _servers: servers,
        }
    }

    /// Returns the context.
    pub fn context(&self) -> &Arc<DistributedContext> {
        &self.context
    }
}

impl std::ops::Deref for ContextRef {
    type Target = Arc<DistributedContext>;

    fn deref(&self) -> &Arc<DistributedContext> {
        &self.context
    }
}

impl Value for ContextRef {
    const NAME: &'static str = "!tfrt_dist.dist_context";
    type Storage = Heap;
}

impl fmt::Debug for ContextRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.context.fmt(f)
    }
}

/// Returns the full name of a device of a task.
///
/// # Examples
///
/// ```
/// let task = tfrt_dist::task::parse("/job:worker/task:1").unwrap();
/// let name = tfrt_dist::context::device_name(&task, "CPU:0");
/// assert_eq!(name, "/job:worker/task:1/device:CPU:0");
/// assert_eq!(tfrt_dist::context::device_in_task(&name), "CPU:0");
/// ```
pub fn device_name(task: &ClusterTask, device: &str) -> String {
    format!("{task}/device:{device}")
}

/// Returns a device's name within its task, given a full name or one without a task.
pub fn device_in_task(name: &str) -> &str {
    name.split_once("/device:")
        .map_or(name, |(_, device)| device)
}

/// Returns the devices of a host that are its own.
pub(crate) fn devices_of(host: &HostContext) -> Vec<DeviceInfo> {
    let devices = host.devices().list().into_iter();
    let own = devices.filter(|device| !device.name().contains("/device:"));
    let own = own.map(|device| DeviceInfo {
        name: device.name().to_owned(),
        kind: device.kind(),
    });
    own.collect()
}

/// Returns the bounds of calls on behalf of a request: its deadline is theirs, and its cancellation ends them as long as
/// the hook lives.
pub fn bounds_of(request: &Arc<RequestContext>) -> (Bounds, tfrt_host::CancellationHook) {
    let cancel = Cancel::new();
    let hook = request.on_cancel({
        let cancel = cancel.clone();
        move |reason| cancel.cancel(reason.clone())
    });
    let bounds = Bounds {
        deadline: request.deadline(),
        cancel: Some(cancel),
        max_retries: 0,
        may_wait: false,
    };
    (bounds, hook)
}
