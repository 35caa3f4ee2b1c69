//! The end of a collective: confirmations, questions, failures, and how members come to one verdict.

use super::*;

impl<P: Payload> Member<P> {
    /// Takes it that a member is lost.
    pub fn lost(&mut self, member: usize, reason: &Error, actions: &mut Vec<Action<P>>) {
        if self.stage == Stage::Ended || member == self.me || !self.lost.insert(member) {
            return;
        }
        let task = self.call.members[member].clone();
        let error = reason.clone().with_task(task);
        match self.stage {
            // What others lack of it, they will ask for.
            Stage::Confirmed if self.confirmed[member] => (),
            Stage::Asking => {
                self.ask(actions);
                self.fail_if_all_ask(actions);
            }
            _ => self.wish_to_fail(error, actions),
        }
    }

    /// Fails at once if nobody can be done, else asks.
    pub(super) fn wish_to_fail(&mut self, error: Error, actions: &mut Vec<Action<P>>) {
        match self.stage {
            Stage::Announcing | Stage::Running => self.fail(error, actions),
            Stage::Confirmed => {
                self.stage = Stage::Asking;
                self.reason = Some(error);
                self.ask(actions);
                self.fail_if_all_ask(actions);
            }
            Stage::Asking | Stage::Ended => (),
        }
    }

    /// Fails, which is possible only where nobody is done, and tells all.
    pub(super) fn fail(&mut self, error: Error, actions: &mut Vec<Action<P>>) {
        for other in self.others() {
            self.send(other, Message::Failed(error.clone()), actions);
        }
        self.end(Verdict::Failed(error), actions);
    }

    pub(super) fn end(&mut self, verdict: Verdict, actions: &mut Vec<Action<P>>) {
        self.stage = Stage::Ended;
        self.waiting.clear();
        self.parts.clear();
        self.ring.forget();
        self.halving.forget();
        actions.push(match &verdict {
            Verdict::Completed => Action::Done,
            Verdict::Failed(error) => Action::Failed(error.clone()),
        });
        self.verdict = Some(verdict);
    }

    /// Confirms that this member has its result.
    pub(super) fn confirm(&mut self, actions: &mut Vec<Action<P>>) {
        self.stage = Stage::Confirmed;
        self.confirmed[self.me] = true;
        for other in self.others() {
            self.send(other, Message::Confirm, actions);
        }
        self.end_if_all_confirmed(actions);
    }

    pub(super) fn confirmed_by(&mut self, from: usize, actions: &mut Vec<Action<P>>) {
        self.confirmed[from] = true;
        self.end_if_all_confirmed(actions);
    }

    fn end_if_all_confirmed(&mut self, actions: &mut Vec<Action<P>>) {
        // Who asks has told others that it was not done, and must not be by a confirmation that comes late.
        if self.stage == Stage::Confirmed && self.confirmed.iter().all(|confirmed| *confirmed) {
            self.end(Verdict::Completed, actions);
        }
    }

    pub(super) fn completed_by(&mut self, actions: &mut Vec<Action<P>>) {
        // It is said to those that ask, and they have their results.
        if matches!(self.stage, Stage::Confirmed | Stage::Asking) {
            self.end(Verdict::Completed, actions);
        }
    }

    /// Asks those that are there whether they are done.
    fn ask(&self, actions: &mut Vec<Action<P>>) {
        let lost = self.lost.iter();
        let lost: Vec<ClusterTask> = lost
            .map(|member| self.call.members[*member].clone())
            .collect();
        let error = self.reason.clone().expect("who asks has a reason");
        for other in self.others().filter(|other| !self.lost.contains(other)) {
            let (lost, error) = (lost.clone(), error.clone());
            self.send(other, Message::Ask { lost, error }, actions);
        }
    }

    pub(super) fn asked(
        &mut self,
        from: usize,
        lost: &[ClusterTask],
        error: Error,
        actions: &mut Vec<Action<P>>,
    ) {
        if matches!(self.stage, Stage::Announcing | Stage::Running) {
            return self.fail(error, actions);
        }
        let lost: BTreeSet<usize> = lost.iter().filter_map(|task| self.index_of(task)).collect();
        if lost.contains(&self.me) {
            let from = self.call.members[from].clone();
            let message = format!("{from} takes this task for lost: {}", error.message());
            return self.fail(Error::unavailable(message).with_task(from), actions);
        }
        let n_lost = self.lost.len();
        self.lost.extend(&lost);
        self.asks[from] = Some(lost);
        if self.stage == Stage::Confirmed {
            return self.wish_to_fail(error, actions);
        }
        if self.lost.len() > n_lost {
            self.ask(actions);
        }
        self.fail_if_all_ask(actions);
    }

    /// Fails if all that are there have asked, and take the same members for lost.
    fn fail_if_all_ask(&mut self, actions: &mut Vec<Action<P>>) {
        let mut there = self.others().filter(|other| !self.lost.contains(other));
        if there.all(|other| self.asks[other].as_ref() == Some(&self.lost)) {
            let error = self.reason.clone().expect("who asks has a reason");
            self.fail(error, actions);
        }
    }
}
