//! A member of a collective: its way from the call to the end ([`collective`](super) has the picture).

mod exchange;
mod halving;
mod ring;
mod tree;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use tfrt_async::{ClusterTask, Error, ErrorCode};

use halving::Halving;
use ring::Ring;

use super::plan::{Blocks, Leaves, Plan};
use super::{
    Action, Announcement, Call, Memory, Message, Payload, Piece, Source, Span, announcement,
};
use crate::reduction::{self, Step};

/// How a collective has ended on a member.
#[derive(Clone, Debug)]
pub(super) enum Verdict {
    Completed,
    Failed(Error),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Announcing,
    Running,
    Confirmed,
    Asking,
    Ended,
}

/// The state of a member.
pub(super) struct Member<P> {
    call: Call,
    /// The number of this member.
    me: usize,
    plan: Plan,
    leaves: Leaves,
    stage: Stage,
    verdict: Option<Verdict>,
    announcements: Vec<Option<Announcement>>,
    /// Elements that came before all had announced; of each member each piece once.
    waiting: BTreeMap<(usize, Piece), P>,
    /// Of units that this member reduces, what the others have of them.
    parts: BTreeMap<u32, Parts<P>>,
    /// Which units of the result are there; where members gather, whose tensors are.
    results: Vec<bool>,
    /// Where members gather, the place of each one's tensor.
    blocks: Vec<Blocks>,
    ring: Ring<P>,
    halving: Halving<P>,
    confirmed: Vec<bool>,
    /// The members that are taken for lost.
    lost: BTreeSet<usize>,
    /// Whom each member took for lost when it last asked.
    asks: Vec<Option<BTreeSet<usize>>>,
    /// Why this member asks.
    reason: Option<Error>,
    /// Whether the deadline has passed, and what is left is for asking.
    has_grace: bool,
}

/// The parts of a unit that have come from members.
struct Parts<P> {
    arrived: Vec<Option<P>>,
    n_missing: usize,
}

impl<P: Payload> Member<P> {
    /// Begins a collective, of which this task is member `me`, and adds what is to be done.
    pub fn begin(call: Call, me: usize, actions: &mut Vec<Action<P>>) -> Member<P> {
        let n_members = call.members.len();
        let (plan, wrong) = match Plan::of_call(&call) {
            Ok(plan) => (plan, None),
            Err(error) => (Plan::of_nothing(), Some(error)),
        };
        let leaves = match wrong {
            None => Leaves::of_call(&call, me),
            Some(_) => Leaves::none(),
        };
        let mut member = Member {
            me,
            plan,
            leaves,
            stage: Stage::Announcing,
            verdict: None,
            announcements: vec![None; n_members],
            waiting: BTreeMap::new(),
            parts: BTreeMap::new(),
            results: Vec::new(),
            blocks: Vec::new(),
            ring: Ring::new(),
            halving: Halving::new(),
            confirmed: vec![false; n_members],
            lost: BTreeSet::new(),
            asks: vec![None; n_members],
            reason: None,
            has_grace: false,
            call,
        };
        match wrong {
            Some(error) => {
                let own = member.call.members[me].clone();
                member.fail(error.with_task(own), actions);
            }
            None => member.announce(actions),
        }
        member
    }

    /// Takes a message of another member.
    pub fn arrived(&mut self, from: usize, message: Message<P>, actions: &mut Vec<Action<P>>) {
        // Those that are taken for lost are not listened to any more.
        if self.stage == Stage::Ended || from == self.me || self.lost.contains(&from) {
            return;
        }
        match message {
            Message::Announce(announcement) => self.announced(from, announcement, actions),
            Message::Piece {
                announcement,
                piece,
                data,
            } => {
                self.take_piece(from, piece, data, actions);
                if let Some(announcement) = announcement {
                    self.announced(from, announcement, actions);
                }
            }
            Message::Confirm => self.confirmed_by(from, actions),
            Message::Ask { lost, error } => self.asked(from, &lost, error, actions),
            Message::Failed(error) => self.end(Verdict::Failed(error), actions),
            Message::Completed => self.completed_by(actions),
        }
    }

    /// Returns how the collective has ended, if it has, and the digest of its members.
    pub fn ended(&self) -> Option<(Verdict, u64)> {
        let verdict = self.verdict.clone()?;
        Some((verdict, announcement::digest(&self.call.members)))
    }

    /// Returns the number of a task among the members.
    pub fn index_of(&self, task: &ClusterTask) -> Option<usize> {
        self.call.members.iter().position(|member| member == task)
    }

    /// Returns the number of a task among the members, by its name.
    pub fn index_of_name(&self, name: &str) -> Option<usize> {
        let mut members = self.call.members.iter();
        members.position(|member| member.to_string() == name)
    }

    /// Returns the time until which the collective has to be done.
    pub fn deadline(&self) -> Duration {
        self.call.deadline
    }

    /// Takes it that the deadline has passed; until `grace` others may be asked how it ended.
    pub fn expired(&mut self, grace: Duration, actions: &mut Vec<Action<P>>) {
        let awaited = self.awaited();
        let names: Vec<String> = awaited
            .iter()
            .take(4)
            .map(|task| task.to_string())
            .collect();
        let more = if awaited.len() > names.len() {
            " and others"
        } else {
            ""
        };
        let error = Error::deadline_exceeded(format!(
            "{} {} was not done in time, it waited for {}{more}",
            self.call.operation.name(),
            self.call.key,
            names.join(", "),
        ));
        let error = match awaited.first() {
            Some(task) => error.with_task((*task).clone()),
            None => error,
        };
        match self.stage {
            // Those that are there by what is known do not answer.
            Stage::Asking if self.has_grace => self.fail(error, actions),
            _ => {
                self.has_grace = true;
                self.call.deadline = grace;
                self.wish_to_fail(error, actions);
            }
        }
    }

    /// Takes it that the caller does not want the result any more.
    pub fn cancelled(&mut self, reason: &Error, actions: &mut Vec<Action<P>>) {
        let own = self.call.members[self.me].clone();
        self.wish_to_fail(reason.clone().with_task(own), actions);
    }

    /// Returns the members from which something is still to come.
    fn awaited(&self) -> Vec<&ClusterTask> {
        let is_awaited = |member: &usize| match self.stage {
            Stage::Announcing => self.announcements[*member].is_none(),
            Stage::Running => self.owes(*member),
            Stage::Confirmed => !self.confirmed[*member],
            Stage::Asking => {
                let has_asked = self.asks[*member].as_ref() == Some(&self.lost);
                !self.lost.contains(member) && !has_asked
            }
            Stage::Ended => false,
        };
        let others = self.others().filter(is_awaited);
        others.map(|member| &self.call.members[member]).collect()
    }

    /// Returns the numbers of the other members.
    fn others(&self) -> impl Iterator<Item = usize> + use<P> {
        let me = self.me;
        (0..self.call.members.len()).filter(move |member| *member != me)
    }

    fn send(&self, to: usize, message: Message<Vec<Span>>, actions: &mut Vec<Action<P>>) {
        let to = self.call.members[to].clone();
        actions.push(Action::Send { to, message });
    }

    fn announced(&mut self, from: usize, announcement: Announcement, actions: &mut Vec<Action<P>>) {
        if self.stage != Stage::Announcing || self.announcements[from].is_some() {
            return;
        }
        self.announcements[from] = Some(announcement);
        self.run_if_all_announced(actions);
    }

    fn run_if_all_announced(&mut self, actions: &mut Vec<Action<P>>) {
        let all: Option<Vec<Announcement>> = self.announcements.iter().cloned().collect();
        let Some(all) = all else { return };
        match announcement::check(&self.call.members, &all) {
            Ok(()) => self.run(&all, actions),
            Err(error) => {
                // In the words of the first member: all members have one error.
                let message = format!(
                    "{} {}: {}",
                    all[0].operation.name(),
                    self.call.key,
                    error.message()
                );
                let task = error.task().cloned();
                let error = Error::new(ErrorCode::InvalidArgument, message);
                let error = match task {
                    Some(task) => error.with_task(task),
                    None => error,
                };
                self.fail(error, actions);
            }
        }
    }

    /// Fails, and names a member that sent what makes no sense.
    fn fail_by(&mut self, from: usize, what: &str, actions: &mut Vec<Action<P>>) {
        let task = self.call.members[from].clone();
        let error = Error::data_loss(format!(
            "{} {}: {task} sent {what}",
            self.call.operation.name(),
            self.call.key
        ));
        self.fail(error.with_task(task), actions);
    }
}
