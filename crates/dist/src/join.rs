//! Joining a cluster: a process opens its port, meets the other tasks, works with them, and leaves.
//!
//! | Step | The lead | Any other task |
//! | --- | --- | --- |
//! | [`Joining::listen`] | opens its port | opens its port |
//! | [`Joining::join`] | waits until each task whose address nobody knew has told it, and until all answer; makes a context with all | tells the lead that it is there, and waits for the context |
//! | [`Membership`] | runs programs | answers, until the lead says bye: [`Membership::serve`] |
//! | [`Membership::finish`] | waits for those that finish, too; says bye | waits for the bye |
//! | dropping it | says bye to all | leaves: the others find it lost |
//!
//! So tasks need to know one address, that of the lead; the context that it makes tells them the others. A task that knows
//! no cluster at all listens, and is told which task it is. The bye is the end of the context; a lead that goes without is
//! lost. Functions of this module block their caller, and run the host's queue meanwhile if it has no threads.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tfrt_async::{AsyncValue, Chain, ClusterTask, Error, ErrorCode, Value};
use tfrt_host::HostContext;

use crate::cluster::{Address, Cluster};
use crate::context::{ContextConfig, ContextRef};
use crate::ids::{ContextId, TaskHandle};
use crate::message::{Reply, Request};
use crate::security::{Access, Policy};
use crate::server::Server;
use crate::start::tell_ready;
use crate::transport::{Bounds, HearsRefusals, Phase, Transport};

mod meeting;
mod membership;
#[cfg(target_os = "linux")]
mod places;

use meeting::Meeting;
pub use meeting::Stopper;
pub use membership::Membership;

/// The time that tasks wait for each other, unless another is said.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// A description of how a task joins.
#[derive(Clone, Debug, Default)]
pub struct JoinOptions {
    /// All tasks, and which of them this one is. Of tasks other than the lead the address may have port 0: then they tell
    /// it. Without it the lead says both.
    pub config: Option<ContextConfig>,
    /// The place to listen at, if it is not the address by which others know the task.
    pub listen: Option<Address>,
    /// How tasks prove that they belong to the cluster.
    pub access: Access,
    /// The permissions of the other tasks.
    pub policy: Policy,
    /// The time to wait for the others; as long as it takes if there is none.
    pub timeout: Option<Duration>,
}

/// A task that listens, and has not met the others.
pub struct Joining {
    server: Server,
    meeting: Arc<Meeting>,
    config: Option<ContextConfig>,
    timeout: Option<Duration>,
    /// When it gives up.
    deadline: Option<Instant>,
    /// Whether addresses are of hosts, whose names may have no place yet.
    has_hosts: bool,
}

impl Joining {
    /// Opens the port of a task, on sockets.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is not said where to listen, or if that is no place; `PermissionDenied` if others than this
    /// machine could reach it and nothing proves who they are; `Unavailable` if the system refuses it.
    #[cfg(target_os = "linux")]
    pub fn listen(host: &HostContext, options: &JoinOptions) -> Result<Joining, Error> {
        use crate::transport::socket::SocketTransport;
        let deadline = options.timeout.map(|timeout| host.now() + timeout);
        let (name, place) = places::own(options, deadline)?;
        places::resolve(&place, deadline)?;
        let transport = SocketTransport::listen_with(host, &name, Some(&place), &options.access)?;
        let mut joining = Joining::on(host, Arc::new(transport), options);
        joining.has_hosts = true;
        Ok(joining)
    }

    /// Opens the port of a task: not on this system.
    ///
    /// # Errors
    ///
    /// `Unimplemented`.
    #[cfg(not(target_os = "linux"))]
    pub fn listen(_: &HostContext, _: &JoinOptions) -> Result<Joining, Error> {
        Err(Error::unimplemented(
            "tasks in processes of their own talk over sockets of Linux alone",
        ))
    }

    /// Begins with a transport that listens, at the address that the options have if they have one.
    pub fn on(host: &HostContext, transport: Arc<dyn Transport>, options: &JoinOptions) -> Joining {
        let meeting = Meeting::new(options.config.clone());
        let policy = options.policy.clone();
        let server = Server::watched(host, transport, meeting.clone(), policy);
        Joining {
            server,
            meeting,
            config: options.config.clone(),
            timeout: options.timeout,
            deadline: options.timeout.map(|timeout| host.now() + timeout),
            has_hosts: false,
        }
    }

    /// Returns the address by which others know this task.
    pub fn address(&self) -> Address {
        self.server.handle().transport().address().clone()
    }

    /// Returns a switch that ends the waiting for others.
    pub fn stopper(&self) -> Stopper {
        self.meeting.stopper()
    }

    /// Has somebody hear why connections are refused of which it is not known whose they are; see
    /// [`Transport::on_refused`].
    pub fn on_refused(&self, tell: Arc<HearsRefusals>) {
        self.server.handle().transport().on_refused(tell);
    }

    /// Tells the others, as they come, that this task does not join them, and why. Returns when all have heard it and have
    /// gone, or after so long.
    pub fn give_up(self, reason: &Error, at_most: Duration) {
        let Some(config) = &self.config else { return };
        let host = self.server.handle().host().clone();
        self.meeting.give_up(reason, config.cluster.n_tasks() - 1);
        awaited(&host, &self.meeting.gone, Some(host.now() + at_most));
    }

    /// Meets the other tasks.
    ///
    /// # Errors
    ///
    /// `Unavailable` if tasks are missing when the time is over, with their names and why they were not met;
    /// `FailedPrecondition` if tasks disagree about the cluster; the reason of a [`Stopper`].
    pub fn join(self) -> Result<Membership, Error> {
        let context = match &self.config {
            Some(config) if *config.cluster.lead() == config.task => self.lead(config)?,
            Some(config) => self.follow(config)?,
            None => self.made(self.deadline)?,
        };
        Ok(Membership::new(self.server, self.meeting, context))
    }

    /// Waits for all tasks, and makes a context.
    fn lead(&self, config: &ContextConfig) -> Result<ContextRef, Error> {
        let told = self.awaited(&self.meeting.told);
        let cluster = match told {
            Some(told) => {
                told?;
                self.meeting.cluster(&config.cluster)?
            }
            None => {
                let missing = self.meeting.missing();
                let told = |task: ClusterTask| (task, "it has not told its address".to_owned());
                let missing: Vec<_> = missing.into_iter().map(told).collect();
                return Err(self.missing(&config.cluster, &missing));
            }
        };
        self.ask_all(&cluster, &config.task)?;
        let config = ContextConfig {
            cluster,
            task: config.task.clone(),
        };
        let made = self
            .server
            .create_single_client(ContextId::draw(), config.clone());
        self.meeting.leads(&config.cluster, &config.task);
        let absent = || {
            Err(Error::unavailable(
                "a task was there, and did not make a context",
            ))
        };
        let Some(made) = self.awaited(&made) else {
            return absent();
        };
        let made = made?;
        // Nobody asks others before all have the context.
        match self.awaited(&tell_ready(&made)) {
            Some(told) => told.map(|_| made),
            None => absent(),
        }
    }

    /// Waits until all tasks answer.
    fn ask_all(&self, cluster: &Cluster, own: &ClusterTask) -> Result<(), Error> {
        self.await_names(cluster.tasks().map(|(_, address)| address))?;
        let others = cluster.tasks().filter(|(task, _)| task != own);
        let asked: Vec<_> = others
            .map(|(task, address)| {
                let asked = Asked::new(&self.server, &task, address, self.deadline);
                (task, asked.ask(Request::GetDevices), asked)
            })
            .collect();
        let mut missing = Vec::new();
        for (task, reply, asked) in asked {
            match self.awaited(&reply) {
                Some(Ok(_)) => (),
                Some(Err(error)) if !is_absence(&error) => return Err(error),
                _ => missing.push((task, asked.why())),
            }
            self.meeting.check()?;
        }
        match missing.is_empty() {
            true => Ok(()),
            false => Err(self.missing(cluster, &missing)),
        }
    }

    /// Tells the lead that this task is there, and waits for the context that it makes.
    fn follow(&self, config: &ContextConfig) -> Result<ContextRef, Error> {
        let lead = config.cluster.lead();
        let address = config.cluster.address(lead)?;
        self.await_names(std::iter::once(address))?;
        let asked = Asked::new(&self.server, lead, address, self.deadline);
        let joined = asked.ask(Request::Join {
            task: config.task.clone(),
            n_tasks: u32::try_from(config.cluster.n_tasks()).unwrap_or(u32::MAX),
        });
        // A lead that knows this task's address needs not be told, and may be done before it has answered.
        self.awaited(&either(&joined, &self.meeting.made));
        let joined = joined.settled();
        match joined.get() {
            _ if self.meeting.made.is_settled() => self.made(None),
            // The lead has a time of its own, and is lost when that is over.
            Some(Ok(_)) => self.made(None),
            Some(Err(error)) if !is_absence(error) => Err(error.clone()),
            _ => {
                self.meeting.check()?;
                let (time, why) = (self.time(), asked.why());
                let message = format!("the lead {lead} was not met{time} at {address}: {why}");
                Err(Error::unavailable(message).with_task(lead.clone()))
            }
        }
    }

    /// Waits for the context that the lead makes.
    fn made(&self, until: Option<Instant>) -> Result<ContextRef, Error> {
        let made = awaited(self.server.handle().host(), &self.meeting.made, until);
        made.unwrap_or_else(|| {
            let time = self.time();
            Err(Error::unavailable(format!("no lead has come{time}")))
        })
    }

    /// Waits until the names of hosts have addresses: those of pods have none before they run.
    fn await_names<'a>(&self, addresses: impl Iterator<Item = &'a Address>) -> Result<(), Error> {
        #[cfg(target_os = "linux")]
        for address in addresses.filter(|_| self.has_hosts) {
            places::resolve(address, self.deadline)?;
        }
        #[cfg(not(target_os = "linux"))]
        drop(addresses);
        Ok(())
    }

    fn missing(&self, cluster: &Cluster, missing: &[(ClusterTask, String)]) -> Error {
        let told = missing.iter().map(|(task, why)| format!("{task} ({why})"));
        let told: Vec<String> = told.collect();
        let (n_tasks, time, n_missing) = (cluster.n_tasks(), self.time(), missing.len());
        let are = if n_missing == 1 { "is" } else { "are" };
        let error = Error::unavailable(format!(
            "{n_missing} of {n_tasks} tasks {are} missing{time}: {}",
            told.join(", ")
        ));
        match missing {
            [(task, _)] => error.with_task(task.clone()),
            _ => error,
        }
    }

    /// Returns the time that was waited, for messages.
    fn time(&self) -> String {
        let time = self.timeout.map(|timeout| format!(" after {timeout:?}"));
        time.unwrap_or_default()
    }

    fn awaited<T: Value + Clone>(&self, value: &AsyncValue<T>) -> Option<Result<T, Error>> {
        awaited(self.server.handle().host(), value, self.deadline)
    }
}

/// A task that is asked whether it is there.
struct Asked {
    transport: Arc<dyn Transport>,
    handle: TaskHandle,
    deadline: Option<Instant>,
}

impl Asked {
    fn new(
        server: &Server,
        task: &ClusterTask,
        address: &Address,
        deadline: Option<Instant>,
    ) -> Asked {
        let transport = server.handle().transport().clone();
        let handle = TaskHandle::draw();
        transport.introduce(handle, task, address);
        Asked {
            transport,
            handle,
            deadline,
        }
    }

    fn ask(&self, request: Request) -> AsyncValue<Reply> {
        let bounds = Bounds {
            deadline: self.deadline,
            max_retries: u32::MAX,
            ..Bounds::default()
        };
        self.transport.call(self.handle, request, bounds)
    }

    /// Returns why there is no answer.
    fn why(&self) -> String {
        let peers = self.transport.peers().into_iter();
        let mut own = peers.filter(|peer| peer.handle == self.handle);
        match own.next() {
            Some(peer) if peer.phase == Phase::Live => "it is there, and does not answer".into(),
            Some(peer) if !peer.why.is_empty() => peer.why,
            _ => "it was not reached".to_owned(),
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.transport.forget(self.handle);
    }
}

/// Returns whether an error says that a task was not there.
fn is_absence(error: &Error) -> bool {
    matches!(
        error.code(),
        ErrorCode::DeadlineExceeded | ErrorCode::Unavailable
    )
}

/// Returns a value that settles with the first of two.
fn either<A: Value, B: Value>(one: &AsyncValue<A>, other: &AsyncValue<B>) -> AsyncValue<Chain> {
    let (promise, settled) = AsyncValue::pending();
    let promise = Arc::new(Mutex::new(Some(promise)));
    for value in [one.as_any(), other.as_any()] {
        let promise = promise.clone();
        value.and_then(move || {
            let first = promise
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            if let Some(promise) = first {
                promise.resolve(Chain);
            }
        });
    }
    settled
}

/// Waits for a value; `None` if it takes too long.
pub(crate) fn awaited<T: Value + Clone>(
    host: &HostContext,
    value: &AsyncValue<T>,
    until: Option<Instant>,
) -> Option<Result<T, Error>> {
    let values = [value.as_any().clone()];
    match host.queue().await_until(&values, until) {
        Ok(true) => (),
        Ok(false) => return None,
        Err(error) => return Some(Err(Error::failed_precondition(error.to_string()))),
    }
    let settled = value.clone().settled();
    let found = settled.get().map(|found| found.cloned());
    Some(match found? {
        Ok(value) => Ok(value),
        Err(error) => Err(error.clone()),
    })
}

impl fmt::Debug for Joining {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Joining({})", self.address())
    }
}
