//! [`Locks`]: the locks of the variables among a call's inputs: which are taken before its kernel starts, and a kernel that
//! wants more than that.
//!
//! | The node says | Its variables are locked |
//! | --- | --- |
//! | `use_locking = true`, or nothing | for itself |
//! | `use_locking = false` | for readers: such kernels run side by side, and what they change in place is one memory |
//!
//! All locks of a call are taken before its kernel starts, without a thread that waits, in one order for all, and given
//! back when it has run. A kernel that has locks for readers and wants one for itself, by `do_lock` or an assignment,
//! waits on its thread; the next call of its node takes it from the start. It holds nothing meanwhile, unless it was given
//! a holder or a tensor before. Two such kernels that wait for each other would wait for ever: the second one is told so.
//!
//! Invariant: who holds locks for readers has started, on a thread of its own, with none of the frames below it holding a
//! lock. So those that a kernel waits for end without its thread. Therefore a call that can't start at once waits for
//! locks for itself, with which it waits for nobody when it runs, wherever that is.

use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::time::Duration;

use smallvec::SmallVec;
use tfrt_host::{AsyncValue, Error, ErrorCode, LockMode};
use tfrt_tensor::resource::{Slot, VariableHolds, is_giving_back, lock_all, try_lock_all};

use crate::handle::Handle;
use crate::run::Context;

/// The locks of the variables among a call's inputs.
pub struct Locks {
    /// The variables, each once.
    slots: SmallVec<[Arc<Slot>; 2]>,
    mode: LockMode,
    holds: Option<Held>,
    /// How many holders the plugin has not released.
    pub n_holders: usize,
}

/// Locks that were taken.
pub enum Held {
    /// At once.
    Here(VariableHolds),
    /// After a wait.
    Awaited(AsyncValue<VariableHolds>),
}

impl Held {
    fn get(&self) -> Option<&VariableHolds> {
        match self {
            Held::Here(holds) => Some(holds),
            Held::Awaited(value) => value.get()?.ok(),
        }
    }
}

/// A step on the way to a lock for the kernel alone.
enum Step {
    /// It has it.
    Done,
    /// It has given back what it held.
    Free(SmallVec<[Arc<Slot>; 2]>),
    /// It waits for others who read, and holds these.
    Wait(Vec<u64>),
}

impl Locks {
    /// Returns the locks of no variables.
    #[inline]
    pub fn none(mode: LockMode) -> Locks {
        Locks {
            slots: SmallVec::new(),
            mode,
            holds: None,
            n_holders: 0,
        }
    }

    /// Adds the lock of a variable, unless it is there. It is not held yet.
    pub fn add(&mut self, slot: Arc<Slot>) {
        if self.slots.iter().all(|own| own.number() != slot.number()) {
            self.slots.push(slot);
        }
    }

    /// Returns the variables.
    pub fn slots(&self) -> &[Arc<Slot>] {
        &self.slots
    }

    /// Returns how the variables are locked from the start.
    pub fn mode(&self) -> LockMode {
        self.mode
    }

    /// Takes the locks if nobody is in the way of any. Returns whether they are held.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if one of the slots holds no variable.
    pub fn try_all(&mut self) -> Result<bool, Error> {
        if self.slots.is_empty() {
            return Ok(true);
        }
        if is_giving_back() {
            self.mode = LockMode::Write;
        }
        self.holds = try_lock_all(&self.slots, self.mode)?.map(Held::Here);
        Ok(self.holds.is_some())
    }

    /// Returns the locks, when they are there: for the kernel alone, which then waits for nobody.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if one of the slots holds no variable.
    pub fn all(&mut self) -> Result<AsyncValue<VariableHolds>, Error> {
        self.mode = LockMode::Write;
        lock_all(&self.slots, self.mode)
    }

    /// Keeps the locks, which were taken.
    pub fn hold(&mut self, holds: Held) {
        self.holds = Some(holds);
    }

    /// Goes on to locks of these variables for the kernel alone.
    fn step(&mut self, wanted: &[u64], may_give_back: bool) -> Step {
        if self.mode == LockMode::Write || wanted.is_empty() {
            return Step::Done;
        }
        let holds = self.holds.as_ref().and_then(Held::get);
        let own = self.slots.iter();
        let own = own.filter(|slot| wanted.contains(&slot.number()));
        if holds.is_some_and(|holds| holds.try_upgrade(own)) {
            return Step::Done;
        }
        if holds.is_none() || !may_give_back || self.n_holders > 0 {
            return Step::Wait(self.slots.iter().map(|slot| slot.number()).collect());
        }
        self.holds = None;
        Step::Free(self.slots.clone())
    }
}

/// A call that waits on its thread for variables that others read.
struct Waiting {
    call: usize,
    kernel: String,
    held: Vec<u64>,
    wanted: Vec<u64>,
}

static WAITING: Mutex<Vec<Waiting>> = Mutex::new(Vec::new());
static HAS_CHANGED: Condvar = Condvar::new();

/// The time after which one who waits looks again: readers that are no plugin's say nothing when they leave.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Tells those who wait that a call has given its locks back.
pub fn changed() {
    let waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    if !waiting.is_empty() {
        HAS_CHANGED.notify_all();
    }
}

/// Gets variables of a call for its kernel alone: at once, or after a wait.
///
/// # Errors
///
/// `Aborted` if somebody who waits for this call would be waited for.
pub fn alone(ctx: Handle<Context>, wanted: &[u64]) -> Result<(), Error> {
    let step = |is_first: bool| {
        let next = |own: &mut Context| {
            let may_give_back = is_first && !own.has_prepared();
            own.variables().locks.step(wanted, may_give_back)
        };
        ctx.with_quietly(next).map_err(Error::invalid_argument)
    };
    let held = match step(true)? {
        Step::Done => return Ok(()),
        Step::Free(slots) => {
            let (sender, receiver) = mpsc::channel();
            changed();
            lock_all(&slots, LockMode::Write)?.when_settled(move |holds| {
                let _gone = sender.send(holds);
            });
            let holds = receiver.recv();
            let holds = holds.map_err(|_| Error::internal("a lock was lost"))?;
            let keep = |own: &mut Context| {
                own.bound().instance.wants_alone();
                own.variables().locks.mode = LockMode::Write;
                own.variables().locks.hold(Held::Awaited(holds));
            };
            return ctx.with_quietly(keep).map_err(Error::invalid_argument);
        }
        Step::Wait(held) => held,
    };
    let kernel = ctx.with_quietly(|own| {
        own.bound().instance.wants_alone();
        own.bound().instance.kernel.text().to_owned()
    });
    let kernel = kernel.map_err(Error::invalid_argument)?;
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    let own = Waiting {
        call: ctx.bits(),
        kernel,
        held,
        wanted: wanted.to_vec(),
    };
    if let Some(circle) = circle(&waiting, &own) {
        return Err(circle);
    }
    waiting.push(own);
    let outcome = loop {
        // The table of handles is not looked at under the lock of who waits.
        drop(waiting);
        let found = step(false);
        waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
        match found {
            Ok(Step::Done) => break Ok(()),
            Err(error) => break Err(error),
            Ok(_) => (),
        }
        let woken = HAS_CHANGED.wait_timeout(waiting, LOOK_AGAIN);
        waiting = woken.unwrap_or_else(PoisonError::into_inner).0;
    };
    waiting.retain(|one| one.call != ctx.bits());
    outcome
}

/// Returns the error for a call that can't wait: somebody it would wait for waits for it, or for one who does.
fn circle(waiting: &[Waiting], own: &Waiting) -> Option<Error> {
    let is_before = |one: &Waiting, other: &Waiting| {
        one.call != other.call && one.wanted.iter().any(|number| other.held.contains(number))
    };
    let (mut seen, mut next) = (vec![own.call], vec![own]);
    let mut path: Vec<&Waiting> = Vec::new();
    while let Some(one) = next.pop() {
        for other in waiting.iter().filter(|other| is_before(one, other)) {
            if is_before(other, own) {
                let first = path.first().copied().unwrap_or(other);
                return Some(aborted(own, first, other));
            }
            if !seen.contains(&other.call) {
                seen.push(other.call);
                path.push(other);
                next.push(other);
            }
        }
    }
    None
}

#[cold]
fn aborted(own: &Waiting, first: &Waiting, last: &Waiting) -> Error {
    let (kernel, other) = (&own.kernel, &first.kernel);
    let message = format!(
        "{kernel} would wait for a variable that {other} holds, and that waits for a variable that {kernel} holds"
    );
    let error = Error::new(ErrorCode::Aborted, message);
    match first.call == last.call {
        true => error,
        false => error.with_note(format!("by way of {}", last.kernel)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a call that holds some variables and waits for others.
    fn waiting(call: usize, held: &[u64], wanted: &[u64]) -> Waiting {
        Waiting {
            call,
            kernel: format!("kernel '{call}'"),
            held: held.to_vec(),
            wanted: wanted.to_vec(),
        }
    }

    #[test]
    fn circles_of_two_and_more_are_told_by_name() {
        let own = waiting(1, &[10], &[20]);
        let found = circle(&[waiting(2, &[20], &[10])], &own).unwrap();
        assert_eq!(found.code(), ErrorCode::Aborted);
        let text = "kernel '1' would wait for a variable that kernel '2' holds, and that waits for a variable that kernel '1' holds";
        assert_eq!(found.message(), text);
        let all = [
            waiting(2, &[20], &[30]),
            waiting(5, &[50], &[20]),
            waiting(3, &[30, 31], &[40]),
            waiting(4, &[40], &[50, 10]),
        ];
        let found = circle(&all, &own).unwrap();
        assert_eq!(found.message(), text);
        assert_eq!(found.notes(), ["by way of kernel '4'"]);
    }

    #[test]
    fn who_waits_for_one_that_waits_for_another_closes_no_circle() {
        let own = waiting(1, &[10], &[20]);
        assert!(circle(&[], &own).is_none());
        let all = [
            waiting(2, &[20], &[30]),
            waiting(3, &[30], &[40]),
            // Circles of others.
            waiting(4, &[40], &[41]),
            waiting(5, &[41], &[40]),
            // Two who wait for one.
            waiting(6, &[60], &[10]),
        ];
        assert!(circle(&all, &own).is_none());
    }
}
