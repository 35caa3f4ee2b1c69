//! [`Rendezvous`]: the places where values that were sent meet those who wait for them.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tfrt_async::Error;

use crate::ids::TaskHandle;
use crate::message::Payload;
use crate::security::PeerKey;

/// The bytes that a value counts for at least: its name and its place take some, too.
const MIN_BYTES: usize = 256;

/// A callback that takes a value, or the reason why there will be none.
type Callback = Box<dyn FnOnce(Result<Payload, Error>) + Send>;

/// Values and callbacks by name. Each value meets one callback, in the order in which both have come.
#[derive(Default)]
pub struct Rendezvous(Mutex<State>);

#[derive(Default)]
struct State {
    places: HashMap<String, Place>,
    /// The bytes of the values that wait, of each sender.
    waiting_bytes: HashMap<PeerKey, usize>,
    n_callbacks: u64,
    ended: Option<Error>,
}

// Invariant: one of the two is empty, and the other is not.
#[derive(Default)]
struct Place {
    values: VecDeque<(PeerKey, Payload)>,
    callbacks: VecDeque<Waiter>,
}

struct Waiter {
    ticket: Ticket,
    /// The task that is to send the value, if it is known.
    from: Option<TaskHandle>,
    callback: Callback,
}

/// The name of a callback that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u64);

impl Rendezvous {
    /// Leaves a value of a sender, or hands it to whoever has waited longest.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if values of this sender that nobody has asked for would take more than so many bytes; the
    /// reason of the end.
    pub fn put_from(
        &self,
        sender: &PeerKey,
        max_waiting_bytes: usize,
        name: &str,
        value: Payload,
    ) -> Result<(), Error> {
        let mut state = self.lock();
        if let Some(reason) = &state.ended {
            return Err(reason.clone());
        }
        let waiting = state.places.get_mut(name);
        if let Some(waiter) = waiting.and_then(|place| place.callbacks.pop_front()) {
            state.tidy(name);
            drop(state);
            (waiter.callback)(Ok(value));
            return Ok(());
        }
        let len_bytes = value.len_bytes();
        let waiting_bytes = state.waiting_bytes.get(sender).copied().unwrap_or(0);
        let waiting_bytes = waiting_bytes.saturating_add(len_bytes.max(MIN_BYTES));
        if waiting_bytes > max_waiting_bytes {
            return Err(Error::resource_exhausted(format!(
                "values of a task that nobody has asked for may take {max_waiting_bytes} bytes: another of {len_bytes} \
                 under '{}' exceeds that",
                name.escape_debug()
            )));
        }
        state.waiting_bytes.insert(sender.clone(), waiting_bytes);
        let place = state.places.entry(name.to_owned()).or_default();
        place.values.push_back((sender.clone(), value));
        Ok(())
    }

    /// Calls back with the value that has waited longest, or with the next one. The callback runs once, on the thread of
    /// whoever comes later. It fails if the task that is to send the value is [lost](Self::lose). Where it waits, the
    /// ticket is for [giving it up](Self::give_up).
    pub fn take(
        &self,
        name: &str,
        from: Option<TaskHandle>,
        callback: impl FnOnce(Result<Payload, Error>) + Send + 'static,
    ) -> Option<Ticket> {
        let mut state = self.lock();
        if let Some(reason) = state.ended.clone() {
            drop(state);
            callback(Err(reason));
            return None;
        }
        let waiting = state.places.get_mut(name);
        if let Some((sender, value)) = waiting.and_then(|place| place.values.pop_front()) {
            state.release(&sender, value.len_bytes().max(MIN_BYTES));
            state.tidy(name);
            drop(state);
            callback(Ok(value));
            return None;
        }
        let ticket = Ticket(state.n_callbacks);
        state.n_callbacks += 1;
        let place = state.places.entry(name.to_owned()).or_default();
        place.callbacks.push_back(Waiter {
            ticket,
            from,
            callback: Box::new(callback),
        });
        Some(ticket)
    }

    /// Fails a callback that waits under a name, if it still does. The next value is not for it.
    pub fn give_up(&self, name: &str, ticket: Ticket, reason: &Error) {
        let mut state = self.lock();
        let waiter = state.places.get_mut(name).and_then(|place| {
            let mut callbacks = place.callbacks.iter();
            let index = callbacks.position(|waiter| waiter.ticket == ticket)?;
            place.callbacks.remove(index)
        });
        state.tidy(name);
        drop(state);
        if let Some(waiter) = waiter {
            (waiter.callback)(Err(reason.clone()));
        }
    }

    /// Ends: whoever waits, now or later, is told the reason.
    pub fn end(&self, reason: &Error) {
        let places = {
            let mut state = self.lock();
            state.ended.get_or_insert_with(|| reason.clone());
            state.waiting_bytes.clear();
            std::mem::take(&mut state.places)
        };
        let callbacks = places.into_values().flat_map(|place| place.callbacks);
        callbacks.for_each(|waiter| (waiter.callback)(Err(reason.clone())));
    }

    /// Fails what waits for values of a task.
    pub fn lose(&self, task: TaskHandle, reason: &Error) {
        let mut failed = Vec::new();
        self.lock().places.retain(|_, place| {
            let callbacks = std::mem::take(&mut place.callbacks).into_iter();
            let (lost, kept): (Vec<_>, Vec<_>) =
                callbacks.partition(|waiter| waiter.from == Some(task));
            failed.extend(lost);
            place.callbacks = kept.into();
            !place.values.is_empty() || !place.callbacks.is_empty()
        });
        for waiter in failed {
            (waiter.callback)(Err(reason.clone()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts bytes of a sender that wait no more.
    fn release(&mut self, sender: &PeerKey, len_bytes: usize) {
        if let Some(waiting) = self.waiting_bytes.get_mut(sender) {
            *waiting = waiting.saturating_sub(len_bytes);
            if *waiting == 0 {
                self.waiting_bytes.remove(sender);
            }
        }
    }

    /// Takes out a place where nothing is left.
    fn tidy(&mut self, name: &str) {
        let place = self.places.get(name);
        if place.is_some_and(|place| place.values.is_empty() && place.callbacks.is_empty()) {
            self.places.remove(name);
        }
    }
}

impl fmt::Debug for Rendezvous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("Rendezvous")
            .field("places", &state.places.len())
            .field(
                "waiting_bytes",
                &state.waiting_bytes.values().sum::<usize>(),
            )
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use tfrt_host::memory::HostBuffer;

    use super::*;
    use crate::ids::Incarnation;

    impl Rendezvous {
        fn put(&self, name: &str, value: Payload) -> Result<(), Error> {
            self.put_from(&sender(1), 1 << 20, name, value)
        }
    }

    fn sender(number: u128) -> PeerKey {
        PeerKey::of_process(Incarnation(number))
    }

    fn value(text: &'static str) -> Payload {
        Payload(vec![HostBuffer::from_owner(text)])
    }

    fn take(rendezvous: &Rendezvous, name: &str, told: &Sender<String>) {
        let told = told.clone();
        rendezvous.take(name, Some(TaskHandle(1)), move |value| {
            let text = match value {
                Ok(value) => {
                    let reading = value.0[0].read().unwrap();
                    String::from_utf8(reading.to_vec()).unwrap()
                }
                Err(error) => error.message().to_owned(),
            };
            told.send(text).unwrap();
        });
    }

    fn all(told: &Receiver<String>) -> Vec<String> {
        told.try_iter().collect()
    }

    #[test]
    fn a_value_waits_for_its_callback_and_a_second_one_for_another() {
        let (rendezvous, (told, tells)) = (Rendezvous::default(), channel());
        rendezvous.put("k", value("one")).unwrap();
        rendezvous.put("k", value("two")).unwrap();
        take(&rendezvous, "k", &told);
        assert_eq!(all(&tells), ["one"]);
        take(&rendezvous, "k", &told);
        assert_eq!(all(&tells), ["two"]);
    }

    #[test]
    fn a_callback_waits_for_its_value_and_a_second_one_for_another() {
        let (rendezvous, (told, tells)) = (Rendezvous::default(), channel());
        take(&rendezvous, "k", &told);
        take(&rendezvous, "k", &told);
        rendezvous.put("k", value("one")).unwrap();
        assert_eq!(all(&tells), ["one"]);
    }

    #[test]
    fn two_names_are_independent() {
        let (rendezvous, (told, tells)) = (Rendezvous::default(), channel());
        rendezvous.put("a", value("one")).unwrap();
        take(&rendezvous, "b", &told);
        assert!(all(&tells).is_empty());
        rendezvous.put("b", value("two")).unwrap();
        take(&rendezvous, "a", &told);
        assert_eq!(all(&tells), ["two", "one"]);
    }

    #[test]
    fn one_sender_does_not_take_the_place_of_another() {
        let (rendezvous, (told, tells)) = (Rendezvous::default(), channel());
        let put = |number| rendezvous.put_from(&sender(number), 600, "k", value("one"));
        put(1).unwrap();
        put(1).unwrap();
        let error = put(1).unwrap_err();
        let message = "values of a task that nobody has asked for may take 600 bytes: another of 3 under 'k' exceeds that";
        assert_eq!(error.message(), message);
        put(2).unwrap();
        take(&rendezvous, "k", &told);
        assert_eq!(all(&tells), ["one"]);
        put(1).unwrap();
    }

    #[test]
    fn what_waits_for_a_lost_task_fails() {
        let (rendezvous, (told, tells)) = (Rendezvous::default(), channel());
        take(&rendezvous, "k", &told);
        rendezvous.lose(TaskHandle(2), &Error::unavailable("another"));
        rendezvous.lose(TaskHandle(1), &Error::unavailable("lost"));
        assert_eq!(all(&tells), ["lost"]);
        rendezvous.put("k", value("one")).unwrap();
        take(&rendezvous, "k", &told);
        assert_eq!(all(&tells), ["one"]);
    }

    #[test]
    fn whoever_waits_at_the_end_or_after_it_is_told() {
        let (rendezvous, (told, tells)) = (Rendezvous::default(), channel());
        take(&rendezvous, "k", &told);
        rendezvous.end(&Error::cancelled("over"));
        take(&rendezvous, "k", &told);
        assert_eq!(all(&tells), ["over", "over"]);
        assert!(rendezvous.put("k", value("one")).is_err());
    }

    #[test]
    fn who_has_given_up_is_told_and_the_value_is_for_the_next() {
        let (rendezvous, sender) = (Rendezvous::default(), std::sync::mpsc::channel());
        let (sender, told) = sender;
        let take = |who: u8| {
            let sender = sender.clone();
            rendezvous.take("k", None, move |value| {
                let what = value
                    .map(|value| value.0.len())
                    .map_err(|it| it.to_string());
                sender.send((who, what)).unwrap();
            })
        };
        let (first, _second) = (take(1).unwrap(), take(2));
        rendezvous.give_up("k", first, &Error::cancelled("enough"));
        rendezvous.give_up("k", first, &Error::cancelled("again"));
        rendezvous.put("k", Payload(Vec::new())).unwrap();
        let all: Vec<_> = told.try_iter().collect();
        assert_eq!(all, [(1, Err("enough".to_owned())), (2, Ok(0))]);
    }
}
