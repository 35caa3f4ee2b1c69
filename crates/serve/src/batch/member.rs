//! [`Member`]: one request of a batch, from the queue to its answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tfrt_host::{Error, RequestContext};
use tokio::sync::oneshot;

use super::{Answered, Inputs, Joinable};

/// A request that waits for a batch, or is in one.
pub(super) struct Member {
    pub request: Arc<RequestContext>,
    pub n_rows: usize,
    /// The extents of its inputs behind the first, which all requests of a batch have in common.
    pub extents: Vec<usize>,
    pub since: Instant,
    state: Mutex<State>,
}

enum State {
    Waiting(Inputs, Answer),
    Called(Arc<Running>, Answer),
    Ended,
}

type Answer = oneshot::Sender<Result<Answered, Error>>;

/// A batch that runs.
pub(super) struct Running {
    /// The context of its call.
    pub request: Arc<RequestContext>,
    /// Its requests that have not ended.
    n_left: Mutex<usize>,
}

impl Running {
    pub fn new(request: Arc<RequestContext>, n_members: usize) -> Running {
        Running {
            request,
            n_left: Mutex::new(n_members),
        }
    }

    /// Notes that one of its requests has ended; the last of them ends the call.
    fn leave(&self) {
        let mut n_left = self.n_left.lock().unwrap_or_else(PoisonError::into_inner);
        *n_left -= 1;
        let is_last = *n_left == 0;
        drop(n_left);
        if is_last {
            let reason = "all requests of the batch have ended";
            self.request.cancel_with(Error::cancelled(reason));
        }
    }
}

impl Member {
    pub fn new(request: Arc<RequestContext>, joinable: Joinable, answer: Answer) -> Member {
        Member {
            request,
            n_rows: joinable.n_rows,
            extents: joinable.extents,
            since: Instant::now(),
            state: Mutex::new(State::Waiting(joinable.inputs, answer)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Becomes part of a batch that runs. Returns the inputs; `None` if the request has ended.
    pub fn start(&self, running: &Arc<Running>) -> Option<Inputs> {
        let mut state = self.lock();
        match std::mem::replace(&mut *state, State::Ended) {
            State::Waiting(inputs, answer) => {
                *state = State::Called(running.clone(), answer);
                Some(inputs)
            }
            ended => {
                *state = ended;
                drop(state);
                running.leave();
                None
            }
        }
    }

    /// Ends with an answer, unless the request has ended. Returns whether it was not part of a batch that runs.
    pub fn end(&self, answered: Result<Answered, Error>) -> bool {
        let state = std::mem::replace(&mut *self.lock(), State::Ended);
        match state {
            State::Waiting(_, answer) => {
                // Whoever waited may have gone.
                let _ = answer.send(answered);
                true
            }
            State::Called(running, answer) => {
                let _ = answer.send(answered);
                running.leave();
                false
            }
            State::Ended => true,
        }
    }
}
