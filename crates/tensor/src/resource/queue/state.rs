//! [`State`]: the tuples of a queue, and those who wait for their turn. It changes under the queue's lock; promises are
//! kept, and hooks dropped, without it ([`Done`]).

use std::collections::VecDeque;

use tfrt_host::{CancellationHook, Chain, Error, ErrorCode, Promise};

use super::{Element, Taken, Wanted};

/// The most calls that wait in a queue.
const MAX_WAITING: usize = 1 << 20;

#[derive(Default)]
pub(super) struct State {
    pub(super) elements: VecDeque<Element>,
    pub(super) is_closed: bool,
    pub(super) is_destroyed: bool,
    /// Those who put in, and those who close the queue behind them.
    // Invariant: here and below by number.
    pub(super) putting: VecDeque<Waiting<Put>>,
    pub(super) taking: VecDeque<Waiting<Take>>,
    /// The number of the next call that waits.
    next: u64,
}

/// A call that waits for its turn.
pub(super) struct Waiting<T> {
    pub(super) number: u64,
    /// Ends the wait when the call's request is cancelled. Dropped without the lock.
    pub(super) hook: Option<CancellationHook>,
    pub(super) call: T,
}

pub(super) enum Put {
    Elements(VecDeque<Element>, Promise<Chain>),
    Close(Promise<Chain>),
}

pub(super) struct Take {
    pub(super) wanted: Wanted,
    // Invariant: fewer than are wanted, while it waits.
    pub(super) taken: Vec<Element>,
    pub(super) promise: Promise<Taken>,
}

/// Promises to be kept, and hooks to be dropped, without the lock.
#[derive(Default)]
pub(super) struct Done {
    pub(super) put: Vec<Settled<Chain, ()>>,
    pub(super) taken: Vec<Settled<Taken, Vec<Element>>>,
    pub(super) hooks: Vec<CancellationHook>,
}

/// A promise with its outcome.
type Settled<P, T> = (Promise<P>, Result<T, Error>);

/// The rules of a queue, which do not change, as those who wait see them.
#[derive(Clone, Copy)]
pub(super) struct Rules<'a> {
    pub(super) name: &'a str,
    pub(super) capacity: usize,
}

/// Returns the place of a call among those that wait.
pub(super) fn position<T>(line: &VecDeque<Waiting<T>>, number: u64) -> Option<usize> {
    line.binary_search_by_key(&number, |one| one.number).ok()
}

impl<T> Waiting<T> {
    pub(super) fn new(number: u64, call: T) -> Waiting<T> {
        Waiting {
            number,
            hook: None,
            call,
        }
    }
}

impl State {
    /// Serves those who put in; returns whether anything has changed.
    pub(super) fn serve_putting(&mut self, rules: Rules<'_>, done: &mut Done) -> bool {
        let capacity = rules.capacity;
        let mut has_changed = false;
        while let Some(Waiting { number, hook, call }) = self.putting.pop_front() {
            let (promise, outcome) = match call {
                Put::Close(promise) if self.is_closed => {
                    let message = format!("Queue '{}' is already closed.", rules.name);
                    (promise, Err(Error::cancelled(message)))
                }
                Put::Close(promise) => {
                    self.is_closed = true;
                    (promise, Ok(()))
                }
                Put::Elements(_, promise) if self.is_closed => {
                    let message = format!("FIFOQueue '{}' is closed.", rules.name);
                    (promise, Err(Error::cancelled(message)))
                }
                Put::Elements(mut elements, promise) => {
                    let room = capacity.saturating_sub(self.elements.len());
                    let n = room.min(elements.len());
                    has_changed |= n > 0;
                    self.elements.extend(elements.drain(..n));
                    if !elements.is_empty() {
                        let call = Put::Elements(elements, promise);
                        self.putting.push_front(Waiting { number, hook, call });
                        return has_changed;
                    }
                    (promise, Ok(()))
                }
            };
            has_changed = true;
            done.hooks.extend(hook);
            done.put.push((promise, outcome));
        }
        has_changed
    }

    /// Serves those who take out; returns whether anything has changed.
    pub(super) fn serve_taking(&mut self, rules: Rules<'_>, done: &mut Done) -> bool {
        let mut has_changed = false;
        while let Some(Waiting { number, hook, call }) = self.taking.pop_front() {
            let Take {
                wanted,
                mut taken,
                promise,
            } = call;
            let (there, found) = (self.elements.len(), taken.len() + self.elements.len());
            // Nobody will put any in.
            let is_short = self.is_closed && found < wanted.n;
            let outcome = if is_short && !(wanted.or_fewer && found > 0) {
                self.give_back(taken);
                Err(rules.too_few(wanted.n, found))
            } else {
                let n = there.min(wanted.n - taken.len());
                has_changed |= n > 0;
                taken.extend(self.elements.drain(..n));
                if taken.len() < wanted.n && !is_short {
                    let call = Take {
                        wanted,
                        taken,
                        promise,
                    };
                    self.taking.push_front(Waiting { number, hook, call });
                    return has_changed;
                }
                Ok(taken)
            };
            has_changed = true;
            done.hooks.extend(hook);
            done.taken.push((promise, outcome));
        }
        has_changed
    }

    /// Returns the number of a call that comes.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if too many wait.
    pub(super) fn number(&mut self) -> Result<u64, Error> {
        if self.putting.len() + self.taking.len() >= MAX_WAITING {
            let message = format!("{MAX_WAITING} calls wait in the queue already, as many as may");
            return Err(Error::resource_exhausted(message));
        }
        self.next += 1;
        Ok(self.next)
    }

    /// Returns the place of the hook of a call that waits.
    pub(super) fn hook_of(&mut self, number: u64) -> Option<&mut Option<CancellationHook>> {
        if let Some(at) = position(&self.putting, number) {
            return Some(&mut self.putting[at].hook);
        }
        let at = position(&self.taking, number)?;
        Some(&mut self.taking[at].hook)
    }

    /// Puts back what was taken out last.
    pub(super) fn give_back(&mut self, taken: Vec<Element>) {
        for element in taken.into_iter().rev() {
            self.elements.push_front(element);
        }
    }
}

impl Done {
    pub(super) fn refuse(&mut self, waiting: Waiting<Put>) {
        let (Put::Elements(_, promise) | Put::Close(promise)) = waiting.call;
        let error = Error::cancelled("Enqueue operation was cancelled");
        self.put.push((promise, Err(error)));
        self.hooks.extend(waiting.hook);
    }

    pub(super) fn keep(self) {
        drop(self.hooks);
        for (promise, outcome) in self.put {
            match outcome {
                Ok(()) => promise.resolve(Chain),
                Err(error) => promise.fail(error),
            }
        }
        for (promise, outcome) in self.taken {
            match outcome {
                Ok(taken) => promise.resolve(Taken(taken)),
                Err(error) => promise.fail(error),
            }
        }
    }
}

impl Rules<'_> {
    #[cold]
    fn too_few(&self, wanted: usize, found: usize) -> Error {
        let name = self.name;
        let message = format!(
            "FIFOQueue '{name}' is closed and has insufficient elements (requested {wanted}, current size {found})"
        );
        Error::new(ErrorCode::OutOfRange, message)
    }
}

#[cold]
pub(super) fn dequeue_cancelled() -> Error {
    Error::cancelled("Dequeue operation was cancelled")
}
