//! [`Meeting`]: what a task that joins hears of the others: addresses, a context, its end, who is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tfrt_async::{AsyncValue, Chain, ClusterTask, Error, ErrorCode, Promise};

use crate::cluster::{Address, Cluster};
use crate::context::{ContextConfig, ContextRef, DistributedContext};
use crate::ids::ContextId;
use crate::message::CreateContext;
use crate::server::Watch;
use crate::start::incompatible;
use crate::transport::{Caller, lost};

/// The others as a task that joins hears of them.
pub(super) struct Meeting {
    config: Option<ContextConfig>,
    /// Says that the address of each task is known.
    pub told: AsyncValue<Chain>,
    /// The context that the lead has made, when all tasks have it.
    pub made: AsyncValue<ContextRef>,
    /// Says that the lead has said bye.
    pub ended: AsyncValue<Chain>,
    /// Says that those have left, or are lost, who were there when the context began.
    pub gone: AsyncValue<Chain>,
    state: Mutex<State>,
}

struct State {
    /// The tasks that tell their address, by name, with who has told it.
    tellers: BTreeMap<String, (ClusterTask, Option<Caller>)>,
    context: Option<ContextId>,
    lead: Option<(ClusterTask, Address)>,
    /// Those whose leaving is awaited.
    others: Option<BTreeSet<Address>>,
    /// Those that were told that this task has given up, and how many have not gone since, or have not come.
    refused: BTreeSet<Address>,
    n_to_refuse: Option<usize>,
    stopped: Option<Error>,
    told: Option<Promise<Chain>>,
    made: Option<Promise<ContextRef>>,
    ended: Option<Promise<Chain>>,
    gone: Option<Promise<Chain>>,
}

/// A switch that ends the waiting of a task, such as Ctrl-C turns.
#[derive(Clone)]
pub struct Stopper(Weak<Meeting>);

impl Stopper {
    /// Ends it, with a reason.
    pub fn stop(&self, reason: Error) {
        if let Some(meeting) = self.0.upgrade() {
            meeting.fail(&reason);
        }
    }
}

impl Meeting {
    pub fn new(config: Option<ContextConfig>) -> Arc<Meeting> {
        let (told_promise, told) = AsyncValue::pending();
        let (made_promise, made) = AsyncValue::pending();
        let (ended_promise, ended) = AsyncValue::pending();
        let (gone_promise, gone) = AsyncValue::pending();
        let tasks = config.iter().flat_map(|config| config.cluster.tasks());
        let untold = tasks.filter(|(_, address)| address.is_unknown());
        let tellers: BTreeMap<_, _> = untold
            .map(|(task, _)| (task.to_string(), (task, None)))
            .collect();
        let lead = config.as_ref().and_then(|config| {
            let lead = config.cluster.lead();
            let address = config.cluster.address(lead).ok()?;
            Some((lead.clone(), address.clone()))
        });
        let meeting = Meeting {
            config,
            told,
            made,
            ended,
            gone,
            state: Mutex::new(State {
                tellers,
                context: None,
                lead,
                others: None,
                refused: BTreeSet::new(),
                n_to_refuse: None,
                stopped: None,
                told: Some(told_promise),
                made: Some(made_promise),
                ended: Some(ended_promise),
                gone: Some(gone_promise),
            }),
        };
        meeting.look_whether_told();
        Arc::new(meeting)
    }

    pub fn stopper(self: &Arc<Self>) -> Stopper {
        Stopper(Arc::downgrade(self))
    }

    /// Returns why it was stopped, if it was.
    pub fn check(&self) -> Result<(), Error> {
        self.lock().stopped.clone().map_or(Ok(()), Err)
    }

    /// Returns the tasks that have not told their address.
    pub fn missing(&self) -> Vec<ClusterTask> {
        let state = self.lock();
        let tellers = state.tellers.values();
        let missing = tellers.filter(|(_, caller)| caller.is_none());
        missing.map(|(task, _)| task.clone()).collect()
    }

    /// Returns the cluster with the addresses that were told.
    pub fn cluster(&self, cluster: &Cluster) -> Result<Cluster, Error> {
        let state = self.lock();
        let told = state.tellers.values();
        let told = told.filter_map(|(task, caller)| Some((task, caller.as_ref()?)));
        cluster.with_addresses(told.map(|(task, caller)| (task, caller.address.clone())))
    }

    /// Notes that this task leads a context: the leaving of all others is awaited from now on.
    pub fn leads(&self, cluster: &Cluster, task: &ClusterTask) {
        let others = cluster.tasks().filter(|(other, _)| other != task);
        let others = others.map(|(_, address)| address.clone()).collect();
        self.lock().others = Some(others);
        self.look_whether_gone();
    }

    /// Refuses so many others, as they ask to join: this task has given up.
    pub fn give_up(&self, reason: &Error, n_others: usize) {
        self.lock().n_to_refuse = Some(n_others);
        self.fail(reason);
        self.look_whether_gone();
    }

    fn look_whether_told(&self) {
        let mut state = self.lock();
        let is_all = state.tellers.values().all(|(_, caller)| caller.is_some());
        let promise = state.told.take_if(|_| is_all);
        drop(state);
        if let Some(promise) = promise {
            promise.resolve(Chain);
        }
    }

    fn look_whether_gone(&self) {
        let mut state = self.lock();
        let is_all = match state.n_to_refuse {
            Some(n_left) => n_left == 0,
            None => state.others.as_ref().is_some_and(BTreeSet::is_empty),
        };
        let promise = state.gone.take_if(|_| is_all);
        drop(state);
        if let Some(promise) = promise {
            promise.resolve(Chain);
        }
    }

    /// Fails whatever is awaited.
    fn fail(&self, reason: &Error) {
        let mut state = self.lock();
        state.stopped.get_or_insert_with(|| reason.clone());
        let (told, made) = (state.told.take(), state.made.take());
        let ended = state.ended.take();
        drop(state);
        for promise in [told, ended].into_iter().flatten() {
            promise.fail(reason.clone());
        }
        if let Some(promise) = made {
            promise.fail(reason.clone());
        }
    }

    /// Returns why this task has given up, for somebody who asks to join it.
    fn refusal(&self, from: &Caller) -> Option<Error> {
        let mut state = self.lock();
        let reason = state
            .stopped
            .clone()
            .filter(|_| state.n_to_refuse.is_some())?;
        state.refused.insert(from.address.clone());
        Some(reason)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch for Meeting {
    fn asks_to_join(&self, from: &Caller, task: &ClusterTask, n_tasks: u32) -> Result<(), Error> {
        let refused = |message: String| Err(Error::failed_precondition(message));
        let Some(config) = &self.config else {
            return refused("this task leads no cluster: it waits for a lead itself".to_owned());
        };
        let ContextConfig { cluster, task: own } = config;
        if cluster.lead() != own {
            let lead = cluster.lead();
            return refused(format!("this task is {own}, and not the lead {lead}"));
        }
        let known = cluster.address(task)?;
        if let Some(reason) = self.refusal(from) {
            return Err(reason);
        }
        if usize::try_from(n_tasks) != Ok(cluster.n_tasks()) {
            let expected = cluster.n_tasks();
            return refused(format!(
                "tasks disagree: the lead has heard of {expected} tasks, and {task} of {n_tasks}"
            ));
        }
        if !known.is_unknown() {
            return match *known == from.address {
                true => Ok(()),
                false => refused(format!(
                    "tasks disagree: the lead knows {task} at {known}, and it says {}",
                    from.address
                )),
            };
        }
        let mut state = self.lock();
        let Some((_, told)) = state.tellers.get_mut(&task.to_string()) else {
            return Ok(());
        };
        if let Some(other) = told.as_ref().filter(|other| *other != from) {
            let (one, other) = (&other.address, &from.address);
            let message = format!("two processes say that they are {task}: at {one} and {other}");
            return Err(Error::new(ErrorCode::AlreadyExists, message));
        }
        *told = Some(from.clone());
        drop(state);
        self.look_whether_told();
        Ok(())
    }

    fn wants_context(&self, wanted: &CreateContext) -> Result<(), Error> {
        if let Some(context) = self.lock().context {
            return Err(Error::failed_precondition(format!(
                "this task works in context {context}, and in no other"
            )));
        }
        let Some(config) = &self.config else {
            return Ok(());
        };
        let is_same = |own: &Cluster, theirs: &Cluster| {
            let pairs = own.tasks().zip(theirs.tasks());
            let mut pairs = pairs.map(|((task, address), (other, theirs))| {
                task == other && (address == theirs || address.is_unknown())
            });
            own.n_tasks() == theirs.n_tasks() && pairs.all(|is_same| is_same)
        };
        match config.task == wanted.task && is_same(&config.cluster, &wanted.cluster) {
            true => Ok(()),
            false => Err(incompatible(
                (&config.cluster, &config.task),
                (&wanted.cluster, &wanted.task),
            )),
        }
    }

    fn made(&self, context: &Arc<DistributedContext>) {
        let ContextConfig { cluster, .. } = context.config();
        let lead = cluster.lead();
        let address = cluster.address(lead).ok();
        let mut state = self.lock();
        state.context = Some(context.id());
        state.others = Some(address.into_iter().cloned().collect());
        state.lead = address.map(|address| (lead.clone(), address.clone()));
    }

    fn ready(&self, context: &Arc<DistributedContext>) {
        // Others may be asked from now on.
        let promise = self.lock().made.take();
        if let Some(promise) = promise {
            promise.resolve(ContextRef::new(context.clone(), None));
        }
    }

    fn closed(&self, id: ContextId, reason: Option<&Error>) {
        let mut state = self.lock();
        let is_ours = state.context == Some(id);
        let promise = state.ended.take_if(|_| is_ours);
        drop(state);
        match (promise, reason) {
            (Some(promise), None) => promise.resolve(Chain),
            (Some(promise), Some(reason)) => promise.fail(reason.clone()),
            (None, _) => (),
        }
    }

    fn lost(&self, peer: &Caller) {
        let mut state = self.lock();
        if let Some(others) = &mut state.others {
            others.remove(&peer.address);
        }
        if state.refused.remove(&peer.address) {
            state.n_to_refuse = state.n_to_refuse.map(|n_left| n_left.saturating_sub(1));
        }
        for (_, told) in state.tellers.values_mut() {
            // Another start of it may tell another address.
            told.take_if(|told| told == peer);
        }
        let lead = state.lead.clone();
        drop(state);
        self.look_whether_gone();
        if let Some((lead, _)) = lead.filter(|(_, address)| *address == peer.address) {
            self.fail(&lost(&lead));
        }
    }
}
