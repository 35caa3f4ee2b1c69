//! [`FifoQueue`]: tuples of tensors that some put in and others take out, as a resource.
//!
//! Nobody is blocked: a call that can't be done yet takes its place in the queue, and is done, by whoever makes that
//! possible, when its turn comes. Those who put in are served in the order in which they came, and so are those who
//! take out. Promises are kept without the lock: whoever is told may use the queue.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;
use tfrt_host::{AsyncValue, Chain, Error, Heap, RequestContext, Value};

use super::{Resource, Slot};
use crate::Tensor;

mod kind;
mod state;

pub use kind::QueueKind;
use state::{Done, Put, Rules, State, Take, Waiting, dequeue_cancelled, position};

/// A tuple of tensors: what is put into a queue at once.
pub type Element = SmallVec<[Tensor; 1]>;

/// Tuples of tensors in the order in which they were put in, as a resource: those who make examples put them in,
/// those who train take them out.
pub struct FifoQueue {
    // For messages.
    name: String,
    kind: QueueKind,
    state: Mutex<State>,
}

/// A number of tuples to take out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The number of tuples.
    pub n: usize,
    /// Whether fewer are fine, but not none, of a queue that is closed.
    pub or_fewer: bool,
}

/// Tuples that were taken out.
#[derive(Debug)]
pub struct Taken(pub Vec<Element>);

impl Value for Taken {
    const NAME: &'static str = "elements of a queue";
    type Storage = Heap;
}

impl FifoQueue {
    /// Makes an empty queue, which is open. The name is for messages.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for no types, or another number of shapes than of types.
    pub fn new(name: &str, kind: QueueKind) -> Result<FifoQueue, Error> {
        if kind.types.is_empty() {
            let message = format!("Empty component types for queue {name}");
            return Err(Error::invalid_argument(message));
        }
        if !kind.shapes.is_empty() && kind.shapes.len() != kind.types.len() {
            return Err(Error::invalid_argument(format!(
                "Different number of component types.  Types: {}, Shapes: {}",
                kind.types_text(),
                kind.shapes_text()
            )));
        }
        Ok(FifoQueue {
            name: name.to_owned(),
            kind,
            state: Mutex::default(),
        })
    }

    /// Returns what is fixed.
    pub fn kind(&self) -> &QueueKind {
        &self.kind
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn there(&self) -> Result<MutexGuard<'_, State>, Error> {
        let state = self.lock();
        match state.is_destroyed {
            false => Ok(state),
            true => Err(Error::not_found(format!(
                "Resource {}/FIFOQueue does not exist.",
                self.name
            ))),
        }
    }

    /// Makes a queue that was destroyed a new one, which is empty and open.
    pub fn renew(&self) {
        let mut state = self.lock();
        if state.is_destroyed {
            (state.is_destroyed, state.is_closed) = (false, false);
        }
    }

    /// Returns the number of tuples.
    ///
    /// # Errors
    ///
    /// `NotFound` if it was destroyed.
    pub fn n_elements(&self) -> Result<usize, Error> {
        Ok(self.there()?.elements.len())
    }

    /// Returns whether it is closed.
    ///
    /// # Errors
    ///
    /// `NotFound` if it was destroyed.
    pub fn is_closed(&self) -> Result<bool, Error> {
        Ok(self.there()?.is_closed)
    }

    /// Returns the number of calls that wait for their turn.
    pub fn n_waiting(&self) -> usize {
        let state = self.lock();
        state.putting.len() + state.taking.len()
    }

    /// Puts tuples in: as many as there is room for, the others as room comes. The chain resolves when all are in; it
    /// fails with `Cancelled` if the queue is closed, or the request cancelled, before. `of` is the queue's own slot.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for tuples of other types or shapes, `NotFound` if the queue was destroyed, `ResourceExhausted`
    /// if 1,048,576 calls wait already.
    pub fn put(
        &self,
        elements: Vec<Element>,
        of: &Arc<Slot>,
        request: &Arc<RequestContext>,
    ) -> Result<AsyncValue<Chain>, Error> {
        for element in &elements {
            self.kind.check(element)?;
        }
        let mut state = self.there()?;
        if elements.is_empty() {
            return Ok(AsyncValue::available(Chain));
        }
        let (promise, chain) = AsyncValue::pending();
        let number = state.number()?;
        let call = Put::Elements(elements.into(), promise);
        state.putting.push_back(Waiting::new(number, call));
        self.serve(state, Done::default());
        if !chain.is_settled() {
            self.end_with(number, of, request);
        }
        Ok(chain)
    }

    /// Takes tuples out: now, or as they come. The value fails with `OutOfRange` if the queue is closed and has too few,
    /// and with `Cancelled` if the request is cancelled; what was taken by then goes back.
    ///
    /// # Errors
    ///
    /// `NotFound` if the queue was destroyed, `ResourceExhausted` if 1,048,576 calls wait already.
    pub fn take(
        &self,
        wanted: Wanted,
        of: &Arc<Slot>,
        request: &Arc<RequestContext>,
    ) -> Result<AsyncValue<Taken>, Error> {
        let mut state = self.there()?;
        if wanted.n == 0 {
            return Ok(AsyncValue::available(Taken(Vec::new())));
        }
        let (promise, value) = AsyncValue::pending();
        let number = state.number()?;
        let call = Take {
            wanted,
            taken: Vec::new(),
            promise,
        };
        state.taking.push_back(Waiting::new(number, call));
        self.serve(state, Done::default());
        if !value.is_settled() {
            self.end_with(number, of, request);
        }
        Ok(value)
    }

    /// Closes the queue to those who put in: behind those who wait to put in, or now, and these are refused. What is in
    /// it can still be taken out.
    ///
    /// # Errors
    ///
    /// `NotFound` if the queue was destroyed. The chain fails with `Cancelled` if it is closed already.
    pub fn close(&self, refuses_waiting: bool) -> Result<AsyncValue<Chain>, Error> {
        let (mut state, mut done) = (self.there()?, Done::default());
        let (promise, chain) = AsyncValue::pending();
        if refuses_waiting {
            state.is_closed = true;
            let waiting = std::mem::take(&mut state.putting);
            waiting.into_iter().for_each(|one| done.refuse(one));
            done.put.push((promise, Ok(())));
        } else {
            let number = state.number()?;
            let waiting = Waiting::new(number, Put::Close(promise));
            state.putting.push_back(waiting);
        }
        self.serve(state, done);
        Ok(chain)
    }

    /// Ends the wait of a call, if it still waits, when its request is cancelled.
    fn end_with(&self, number: u64, of: &Arc<Slot>, request: &Arc<RequestContext>) {
        let of = Arc::downgrade(of);
        let hook = request.on_cancel(move |_| {
            let of = of.upgrade();
            if let Some(Ok(queue)) = of.as_ref().map(|of| of.get::<FifoQueue>()) {
                queue.cancel(number);
            }
        });
        let mut state = self.lock();
        let rest = match state.hook_of(number) {
            Some(place) => place.replace(hook),
            // It was done meanwhile.
            None => Some(hook),
        };
        drop(state);
        drop(rest);
    }

    fn cancel(&self, number: u64) {
        let (mut state, mut done) = (self.lock(), Done::default());
        if let Some(one) = position(&state.putting, number).and_then(|at| state.putting.remove(at))
        {
            done.refuse(one);
        }
        if let Some(one) = position(&state.taking, number).and_then(|at| state.taking.remove(at)) {
            let Take { taken, promise, .. } = one.call;
            state.give_back(taken);
            done.hooks.extend(one.hook);
            done.taken.push((promise, Err(dequeue_cancelled())));
        }
        self.serve(state, done);
    }

    /// Serves all whose turn has come, and keeps the promises.
    fn serve(&self, mut state: MutexGuard<'_, State>, mut done: Done) {
        let rules = Rules {
            name: &self.name,
            capacity: self.kind.capacity.unwrap_or(usize::MAX),
        };
        loop {
            let has_put = state.serve_putting(rules, &mut done);
            let has_taken = state.serve_taking(rules, &mut done);
            if !has_put && !has_taken {
                break;
            }
        }
        drop(state);
        done.keep();
    }

    /// Refuses all who wait; returns whether there was anything.
    fn clear(&self) -> bool {
        let (mut state, mut done) = (self.lock(), Done::default());
        let had = !state.is_destroyed;
        (state.is_destroyed, state.is_closed) = (true, true);
        let elements = std::mem::take(&mut state.elements);
        let waiting = std::mem::take(&mut state.putting);
        waiting.into_iter().for_each(|one| done.refuse(one));
        for one in std::mem::take(&mut state.taking) {
            done.hooks.extend(one.hook);
            done.taken
                .push((one.call.promise, Err(dequeue_cancelled())));
        }
        drop(state);
        drop(elements);
        done.keep();
        had
    }
}

impl Resource for FifoQueue {
    fn type_name(&self) -> &str {
        "FIFOQueue"
    }

    fn destroy(&self) -> bool {
        self.clear()
    }
}

impl Drop for FifoQueue {
    fn drop(&mut self) {
        self.clear();
    }
}

impl fmt::Debug for FifoQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.lock().elements.len();
        write!(f, "FIFOQueue({n} of {})", self.kind.types_text())
    }
}
