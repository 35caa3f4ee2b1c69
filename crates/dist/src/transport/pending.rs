//! [`PendingCall`]: a call that waits for its answer, as each transport keeps it.

use tfrt_async::queue::TimerHandle;
use tfrt_async::{ClusterTask, Error, Promise};
use tfrt_host::HostContext;

use super::{Bounds, CancelHook, lost, lost_after, stale};
use crate::ids::TaskHandle;
use crate::message::{Key, Payload, Reply, Request};

/// An answer, or why there is none.
pub type Outcome = Result<Reply, Error>;

/// A request, or a value that is sent.
#[derive(Clone)]
pub enum Asked {
    /// A request.
    Call(Request),
    /// A value for a key.
    Value(Key, Payload),
}

impl Asked {
    /// Returns the name, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Asked::Call(request) => request.name(),
            Asked::Value(..) => "SendData",
        }
    }

    /// Returns whether it changes something if it runs a second time.
    pub fn may_matter(&self) -> bool {
        match self {
            Asked::Call(request) => !request.is_idempotent(),
            Asked::Value(..) => true,
        }
    }
}

/// A call that waits for its answer.
pub struct PendingCall {
    promise: Promise<Reply>,
    /// The peer that is asked.
    pub peer: TaskHandle,
    /// The name of the peer.
    pub task: ClusterTask,
    /// The name of what is asked.
    pub name: &'static str,
    /// Whether the request may run once it was sent, and running it again changes something.
    pub may_matter: bool,
    /// Whether it was sent.
    pub was_sent: bool,
    stops: Stops,
}

/// The timer and the switch that end a call. Dropping them leaves the timer.
#[derive(Default)]
pub struct Stops {
    timer: Option<TimerHandle>,
    _hook: Option<CancelHook>,
}

impl Stops {
    /// Has a deadline and a caller end something: with the caller's reason, or with none once the time is over.
    pub fn new(
        host: &HostContext,
        bounds: Bounds,
        end: impl Fn(Option<Error>) + Clone + Send + Sync + 'static,
    ) -> Stops {
        let timer = bounds.deadline.map(|deadline| {
            let end = end.clone();
            host.timers().schedule_at(deadline, move || end(None))
        });
        let hook = bounds
            .cancel
            .map(|cancel| cancel.on_cancel(move |reason| end(Some(reason.clone()))));
        Stops { timer, _hook: hook }
    }

    /// Takes them back: what they were to end is over.
    pub fn end(self) {
        if let Some(timer) = &self.timer {
            timer.cancel();
        }
    }
}

impl PendingCall {
    /// Returns a call that was not sent.
    pub fn new(
        promise: Promise<Reply>,
        peer: TaskHandle,
        task: ClusterTask,
        asked: &Asked,
    ) -> PendingCall {
        PendingCall {
            promise,
            peer,
            task,
            name: asked.name(),
            may_matter: asked.may_matter(),
            was_sent: false,
            stops: Stops::default(),
        }
    }

    /// Keeps who else may end it.
    pub fn set_stops(&mut self, stops: Stops) {
        self.stops = stops;
    }

    /// Returns the error of a call whose time is over.
    pub fn timed_out(&self) -> Error {
        let (name, task) = (self.name, self.task.clone());
        let message = format!("the deadline of a {name} to {task} has passed");
        Error::deadline_exceeded(message).with_task(task)
    }

    /// Returns the error of a call whose peer is lost.
    pub fn lost(&self) -> Error {
        match self.was_sent && self.may_matter {
            true => lost_after(&self.task, self.name),
            false => lost(&self.task),
        }
    }

    /// Ends the call with the answer of its peer, whose errors name it.
    pub fn complete(self, outcome: Outcome) {
        let task = self.task.clone();
        self.end(outcome.map_err(|error| match error.message() {
            "stale incarnation" => stale(&task),
            _ => error.with_task(task),
        }));
    }

    /// Ends the call.
    pub fn end(self, outcome: Outcome) {
        self.stops.end();
        self.promise.complete(outcome);
    }
}
