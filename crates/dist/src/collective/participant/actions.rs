//! Actions: messages that leave, memory that is used, collectives that end.

use std::collections::BTreeSet;

use super::*;
use crate::collective::{Piece, Span};

/// Elements of a collective that were copied, and which.
type Copied = (Key, Vec<Span>, HostBuffer);

impl Participant {
    /// Does actions in their order.
    pub(super) fn act(&self, state: &mut State, actions: Actions, settled: &mut Settled) {
        let is_done = |action: &Action<Elements>| matches!(action, Action::Done);
        let done = actions.iter().filter(|(_, action)| is_done(action));
        let done: BTreeSet<Key> = done.map(|(key, _)| key.clone()).collect();
        // Of several messages to a member, all but the last wait for it.
        let mut last = BTreeMap::new();
        for (index, (_, action)) in actions.iter().enumerate() {
            if let Action::Send { to, .. } = action {
                last.insert(to.to_string(), index);
            }
        }
        // One copy of what all are sent.
        let mut copy = None;
        let mut broken = Vec::new();
        for (index, (key, action)) in actions.into_iter().enumerate() {
            match action {
                Action::Send { to, message } => {
                    let live = state.live.get(&key);
                    match payload(live, &key, message, done.contains(&key), &mut copy) {
                        Ok(Some((payload, is_lent))) => {
                            let live = state.live.get_mut(&key).filter(|_| is_lent);
                            let lender = live.map(|live| {
                                live.n_lent += 1;
                                key
                            });
                            let may_wait = last.get(&to.to_string()) != Some(&index);
                            self.send(to, payload, lender, may_wait);
                        }
                        Ok(None) => (),
                        Err(error) => broken.extend(note_broken(state, key, error)),
                    }
                }
                Action::Done => finish(state, &key, Ok(()), settled),
                Action::Failed(error) => finish(state, &key, Err(error), settled),
                action => {
                    copy = None;
                    let live = state.live.get_mut(&key);
                    let live = live.filter(|live| live.broken.is_none());
                    let tensors = live.and_then(|live| live.tensors.as_mut());
                    if let Some(Err(error)) = tensors.map(|tensors| tensors.act(action)) {
                        broken.extend(note_broken(state, key, error));
                    }
                }
            }
        }
        for (key, error) in broken {
            let actions = state.collectives.cancel(&key, &error);
            self.act(state, actions, settled);
        }
    }

    /// Sends a message; `lender` is the collective whose elements are lent with it. One that may wait goes with the next.
    fn send(&self, to: ClusterTask, payload: Payload, lender: Option<Key>, may_wait: bool) {
        let Some(handle) = self.handles.get(&to.to_string()) else {
            if let Some(lender) = lender {
                self.push(Event::Returned(lender));
            }
            return;
        };
        let key = message::Key {
            context: self.context,
            name: NAME.to_owned(),
        };
        // Nothing ends it but the loss of the peer: that a call has failed is told, too.
        let bounds = Bounds {
            may_wait,
            ..Bounds::default()
        };
        let sent = self.transport.send(*handle, key, payload, bounds);
        let me = self.me.clone();
        sent.when_settled(move |sent| {
            let Some(me) = me.upgrade() else { return };
            if let Some(lender) = lender {
                me.push(Event::Returned(lender));
            }
            let Some(Err(error)) = sent.get() else { return };
            let why = match error.code() {
                // The loss itself is told in other words.
                ErrorCode::Unavailable | ErrorCode::Unknown => lost(&to),
                _ => error.clone(),
            };
            me.push(Event::Lost(to, why));
        });
    }
}

/// Returns a message as it is sent, and whether its elements are lent, not copied; `None` if it is better not sent.
fn payload(
    live: Option<&Live>,
    key: &Key,
    message: Message<Vec<Span>>,
    is_done: bool,
    copy: &mut Option<Copied>,
) -> Result<Option<(Payload, bool)>, Error> {
    let is_broken = live.is_some_and(|live| live.broken.is_some());
    // Who is done by the others' word has let them be done, too.
    if is_broken && matches!(message, Message::Confirm) && !is_done {
        return Ok(None);
    }
    let mut buffers = vec![HostBuffer::from_owner(head::write(key, &message))];
    let mut is_lent = false;
    if let Message::Piece {
        piece, data: spans, ..
    } = message
    {
        let tensors = live.and_then(|live| live.tensors.as_ref());
        let Some(tensors) = tensors.filter(|_| !is_broken) else {
            return Ok(None);
        };
        let is_final = matches!(piece, Piece::Result(_));
        let lent = tensors.lent(&spans, is_final);
        is_lent = lent.is_some();
        let elements = match (lent, &copy) {
            (Some(lent), _) => lent,
            (None, Some((of, these, elements))) if of == key && *these == spans => elements.clone(),
            (None, _) => {
                let elements = tensors.copy(&spans)?;
                *copy = Some((key.clone(), spans, elements.clone()));
                elements
            }
        };
        buffers.push(elements);
    }
    Ok(Some((Payload(buffers), is_lent)))
}

/// Notes why a collective's memory could not be used; returns that once.
fn note_broken(state: &mut State, key: Key, error: Error) -> Option<(Key, Error)> {
    let live = state.live.get_mut(&key)?;
    if live.broken.is_some() {
        return None;
    }
    live.broken = Some(error.clone());
    Some((key, error))
}

/// Takes out a collective that has ended, once nobody reads what it has lent. One that has failed does not wait: of the
/// others some may be lost.
fn finish(state: &mut State, key: &Key, ended: Result<(), Error>, settled: &mut Settled) {
    if let Some(live) = state.live.get_mut(key)
        && live.n_lent > 0
        && ended.is_ok()
    {
        live.is_done = true;
        return;
    }
    if let Some(live) = state.live.remove(key) {
        live.end(ended, settled);
    }
}
