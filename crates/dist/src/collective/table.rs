//! All collectives of a task: those that run, what came before its call, and how those of before have ended.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use tfrt_async::{ClusterTask, Error};

use super::announcement::digest;
use super::member::{Member, Verdict};
use super::{Action, Call, Key, Message, Payload};

/// Bounds on what a task keeps.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The bytes of elements that a peer has sent for collectives that were not called here yet.
    pub early_bytes: usize,
    /// The number of such messages of a peer.
    pub early_messages: usize,
    /// The number of collectives of which it is known how they ended: so far back a second call by the same name is
    /// refused, and others are answered.
    pub n_verdicts: usize,
    /// The time for asking others how a collective ended, behind its deadline.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            early_bytes: 16 << 20,
            early_messages: 4096,
            n_verdicts: 1 << 16,
            grace: Duration::from_secs(3),
        }
    }
}

/// The collectives of a task, of one incarnation of its context: messages of others are not to be handed in.
pub struct Collectives<P> {
    me: ClusterTask,
    limits: Limits,
    live: BTreeMap<Key, Member<P>>,
    early: BTreeMap<Key, Early<P>>,
    /// The part of `early` that comes from each peer.
    early_of: BTreeMap<String, Account>,
    /// How collectives have ended, and the digest of the members that they had here.
    verdicts: BTreeMap<Key, (Verdict, u64)>,
    /// The keys of `verdicts`, the oldest first.
    ended: VecDeque<Key>,
    lost: BTreeMap<String, Error>,
}

/// The messages of a collective that came before it was called here.
struct Early<P> {
    messages: Vec<(ClusterTask, Message<P>)>,
    /// Why it has failed already.
    failed: Option<Error>,
}

#[derive(Default)]
struct Account {
    n_bytes: usize,
    n_messages: usize,
}

impl<P: Payload> Collectives<P> {
    /// Makes the table of a task.
    pub fn new(me: ClusterTask, limits: Limits) -> Collectives<P> {
        Collectives {
            me,
            limits,
            live: BTreeMap::new(),
            early: BTreeMap::new(),
            early_of: BTreeMap::new(),
            verdicts: BTreeMap::new(),
            ended: VecDeque::new(),
            lost: BTreeMap::new(),
        }
    }

    /// Begins a collective, and returns what is to be done. A call that makes no sense fails on all members.
    ///
    /// # Errors
    ///
    /// Of calls that concern nobody else: `AlreadyExists` if there was one of this name; `InvalidArgument` if this task is
    /// none of the members, or if one is named twice.
    pub fn begin(&mut self, call: Call) -> Result<Vec<(Key, Action<P>)>, Error> {
        let key = call.key.clone();
        let me = self.admit(&key, &call.members)?;
        let early = self.take_early(&key);
        if let Some(error) = early.failed {
            let digest = digest(&call.members);
            self.keep_verdict(key.clone(), Verdict::Failed(error.clone()), digest);
            return Ok(vec![(key, Action::Failed(error))]);
        }
        let mut actions = Vec::new();
        let mut member = Member::begin(call, me, &mut actions);
        for (task, reason) in &self.lost {
            if let Some(lost) = member.index_of_name(task) {
                member.lost(lost, reason, &mut actions);
            }
        }
        self.live.insert(key.clone(), member);
        let mut actions = self.settled(&key, actions);
        for (from, message) in early.messages {
            actions.extend(self.arrived(&from, &key, message));
        }
        Ok(actions)
    }

    /// Fails a collective on all members, since this task's call is one that [`Self::begin`] can't be told.
    ///
    /// # Errors
    ///
    /// Those of [`Self::begin`].
    pub fn refuse(
        &mut self,
        key: &Key,
        members: &[ClusterTask],
        why: Error,
    ) -> Result<Vec<(Key, Action<P>)>, Error> {
        self.admit(key, members)?;
        let error = match self.take_early(key).failed {
            Some(earlier) => earlier,
            None => why.with_task(self.me.clone()),
        };
        let others = members.iter().filter(|member| **member != self.me);
        let mut actions: Vec<(Key, Action<P>)> = others
            .map(|to| {
                let message = Message::Failed(error.clone());
                let to = to.clone();
                (key.clone(), Action::Send { to, message })
            })
            .collect();
        actions.push((key.clone(), Action::Failed(error.clone())));
        self.keep_verdict(key.clone(), Verdict::Failed(error), digest(members));
        Ok(actions)
    }

    /// Returns this task's number among the members of a collective that may begin.
    fn admit(&self, key: &Key, members: &[ClusterTask]) -> Result<usize, Error> {
        if self.live.contains_key(key) || self.verdicts.contains_key(key) {
            return Err(Error::already_exists(format!(
                "there was a collective {key} already: each call needs a name of its own"
            )));
        }
        let group = &key.group;
        let Some(me) = members.iter().position(|member| *member == self.me) else {
            return Err(Error::invalid_argument(format!(
                "The current task {} is not part of the collective group {group}",
                self.me
            )));
        };
        let mut names = BTreeSet::new();
        let mut members = members.iter();
        match members.find(|task| !names.insert(task.to_string())) {
            Some(twice) => Err(Error::invalid_argument(format!(
                "{twice} is twice a member of the group {group}"
            ))),
            None => Ok(me),
        }
    }

    /// Takes a message of another task, and returns what is to be done.
    pub fn arrived(
        &mut self,
        from: &ClusterTask,
        key: &Key,
        message: Message<P>,
    ) -> Vec<(Key, Action<P>)> {
        let reply = |message| {
            let to = from.clone();
            vec![(key.clone(), Action::Send { to, message })]
        };
        let called = match &message {
            Message::Announce(announcement) => Some(announcement.members),
            Message::Piece { announcement, .. } => announcement.as_ref().map(|it| it.members),
            _ => None,
        };
        let is_call = called.is_some();
        if let Some(member) = self.live.get_mut(key) {
            let Some(index) = member.index_of(from) else {
                return match is_call {
                    true => reply(Message::Failed(self.no_member(from, key))),
                    false => Vec::new(),
                };
            };
            let mut actions = Vec::new();
            member.arrived(index, message, &mut actions);
            return self.settled(key, actions);
        }
        match (self.verdicts.get(key), &message) {
            (Some((Verdict::Completed, _)), Message::Ask { .. }) => reply(Message::Completed),
            (Some((Verdict::Failed(error), _)), Message::Ask { .. }) => {
                reply(Message::Failed(error.clone()))
            }
            (Some((Verdict::Failed(error), _)), _) if is_call => {
                reply(Message::Failed(error.clone()))
            }
            // It ended here without the sender, for whom it is another group.
            (Some((Verdict::Completed, digest)), _) if called.is_some_and(|it| it != *digest) => {
                reply(Message::Failed(self.no_member(from, key)))
            }
            (Some(_), _) => Vec::new(),
            (None, _) => match self.keep_early(from, key, message) {
                Ok(()) => Vec::new(),
                Err(error) => reply(Message::Failed(error)),
            },
        }
    }

    /// Takes it that a task is lost, and returns what is to be done.
    pub fn lost(&mut self, task: &ClusterTask, reason: &Error) -> Vec<(Key, Action<P>)> {
        self.lost.insert(task.to_string(), reason.clone());
        self.forget_early_of(task);
        self.each(|member, actions| {
            if let Some(index) = member.index_of(task) {
                member.lost(index, reason, actions);
            }
        })
    }

    /// Takes it that a task is there again, in a new incarnation; collectives that run go without it.
    pub fn back(&mut self, task: &ClusterTask) {
        self.lost.remove(&task.to_string());
    }

    /// Takes it that the caller of a collective does not want its result any more, and returns what is to be done.
    pub fn cancel(&mut self, key: &Key, reason: &Error) -> Vec<(Key, Action<P>)> {
        let Some(member) = self.live.get_mut(key) else {
            return Vec::new();
        };
        let mut actions = Vec::new();
        member.cancelled(reason, &mut actions);
        self.settled(key, actions)
    }

    /// Returns the time at which [`Collectives::expire`] has something to do.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.live.values().map(Member::deadline).min()
    }

    /// Takes it that it is this late, and returns what is to be done.
    pub fn expire(&mut self, now: Duration) -> Vec<(Key, Action<P>)> {
        let grace = self.limits.grace;
        self.each(|member, actions| {
            if member.deadline() <= now {
                member.expired(now + grace, actions);
            }
        })
    }

    /// Returns the number of collectives that run, and of messages that are kept for those to come.
    pub fn n_held(&self) -> (usize, usize) {
        let n_early = self.early_of.values().map(|account| account.n_messages);
        (self.live.len(), n_early.sum())
    }

    fn each(
        &mut self,
        mut event: impl FnMut(&mut Member<P>, &mut Vec<Action<P>>),
    ) -> Vec<(Key, Action<P>)> {
        let keys: Vec<Key> = self.live.keys().cloned().collect();
        let mut all = Vec::new();
        for key in keys {
            let Some(member) = self.live.get_mut(&key) else {
                continue;
            };
            let mut actions = Vec::new();
            event(member, &mut actions);
            all.extend(self.settled(&key, actions));
        }
        all
    }

    /// Names the collective of actions, and puts it away if it has ended.
    fn settled(&mut self, key: &Key, actions: Vec<Action<P>>) -> Vec<(Key, Action<P>)> {
        let ended = self.live.get(key).and_then(Member::ended);
        if let Some((verdict, digest)) = ended {
            self.live.remove(key);
            self.keep_verdict(key.clone(), verdict, digest);
        }
        let actions = actions.into_iter();
        actions.map(|action| (key.clone(), action)).collect()
    }

    /// Returns the error of a task that has called, but is no member here.
    fn no_member(&self, task: &ClusterTask, key: &Key) -> Error {
        let me = &self.me;
        let group = &key.group;
        Error::invalid_argument(format!(
            "the tasks do not agree on the members of group {group}: {task} is not part of it for {me}"
        ))
        .with_task(me.clone())
    }

    fn keep_verdict(&mut self, key: Key, verdict: Verdict, digest: u64) {
        self.verdicts.insert(key.clone(), (verdict, digest));
        self.ended.push_back(key);
        if self.ended.len() > self.limits.n_verdicts
            && let Some(oldest) = self.ended.pop_front()
        {
            self.verdicts.remove(&oldest);
        }
    }

    /// Keeps a message of a collective that was not called here yet.
    fn keep_early(
        &mut self,
        from: &ClusterTask,
        key: &Key,
        message: Message<P>,
    ) -> Result<(), Error> {
        // Who confirms or asks has all that this task has sent, so it has called, long ago.
        let is_begin = matches!(
            message,
            Message::Announce(_) | Message::Piece { .. } | Message::Failed(_)
        );
        let early = self.early.get(key);
        if !is_begin || early.is_some_and(|early| early.failed.is_some()) {
            return Ok(());
        }
        let n_bytes = message.len_bytes();
        let account = self.early_of.entry(from.to_string()).or_default();
        let is_over = account.n_messages >= self.limits.early_messages
            || account.n_bytes + n_bytes > self.limits.early_bytes;
        let is_failure = matches!(message, Message::Failed(_));
        if is_over && !is_failure {
            let error = Error::resource_exhausted(format!(
                "{} holds {} messages of {from} for collectives that it has not called, with {} bytes, and takes no more",
                self.me, account.n_messages, account.n_bytes
            ));
            let error = error.with_task(self.me.clone());
            self.fail_early(from, key, error.clone());
            return Err(error);
        }
        if let Message::Failed(error) = message {
            self.fail_early(from, key, error);
            return Ok(());
        }
        account.n_messages += 1;
        account.n_bytes += n_bytes;
        let early = self.early.entry(key.clone()).or_insert_with(Early::new);
        early.messages.push((from.clone(), message));
        Ok(())
    }

    /// Notes that a collective has failed before it was called here.
    fn fail_early(&mut self, from: &ClusterTask, key: &Key, error: Error) {
        let early = self.take_early(key);
        drop(early);
        let account = self.early_of.entry(from.to_string()).or_default();
        // A peer that is over its bounds in failures alone is not believed: the deadline tells.
        if account.n_messages >= 2 * self.limits.early_messages {
            return;
        }
        account.n_messages += 1;
        let early = Early {
            // It counts as a message of its sender.
            messages: vec![(from.clone(), Message::Confirm)],
            failed: Some(error),
        };
        self.early.insert(key.clone(), early);
    }

    /// Takes what is kept of a collective.
    fn take_early(&mut self, key: &Key) -> Early<P> {
        let early = self.early.remove(key).unwrap_or_else(Early::new);
        for (from, message) in &early.messages {
            let name = from.to_string();
            if let Some(account) = self.early_of.get_mut(&name) {
                account.n_messages -= 1;
                account.n_bytes -= message.len_bytes();
                if account.n_messages == 0 {
                    self.early_of.remove(&name);
                }
            }
        }
        early
    }

    /// Drops what a task has sent for collectives that were not called here; that one has failed remains.
    fn forget_early_of(&mut self, task: &ClusterTask) {
        self.early.retain(|_, early| {
            if early.failed.is_none() {
                early.messages.retain(|(from, _)| from != task);
            }
            early.failed.is_some() || !early.messages.is_empty()
        });
        let is_of = |early: &&Early<P>| early.messages.iter().any(|(from, _)| from == task);
        let n_messages = self.early.values().filter(is_of).count();
        match n_messages {
            0 => self.early_of.remove(&task.to_string()),
            _ => self.early_of.insert(
                task.to_string(),
                Account {
                    n_bytes: 0,
                    n_messages,
                },
            ),
        };
    }
}

impl<P> Early<P> {
    fn new() -> Early<P> {
        Early {
            messages: Vec::new(),
            failed: None,
        }
    }
}

impl<P: Payload> Message<P> {
    /// Returns the bytes of its elements.
    fn len_bytes(&self) -> usize {
        match self {
            Message::Piece { data, .. } => data.len_bytes(),
            _ => 0,
        }
    }
}
