//! The network between tasks of a process, and its switches for tests.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tfrt_async::Error;
use tfrt_host::HostContext;

use super::{Body, Endpoint, LocalNetwork, LocalTransport, Message, Network, NetworkState};
use crate::cluster::Address;
use crate::ids::Incarnation;
use crate::transport::Caller;
use crate::transport::pending::Asked;

impl LocalNetwork {
    /// Makes a network without tasks.
    pub fn new() -> LocalNetwork {
        LocalNetwork::default()
    }

    /// Makes the transport of a task that listens at an address. What arrives runs on the host's queue.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if a task listens there.
    pub fn listen(&self, host: &HostContext, address: Address) -> Result<LocalTransport, Error> {
        let mut state = self.0.lock();
        if state.endpoints.contains_key(&address) {
            return Err(Error::already_exists(format!(
                "a task listens at {address} already"
            )));
        }
        let endpoint = Arc::new(Endpoint {
            network: Arc::downgrade(&self.0),
            caller: Caller {
                address: address.clone(),
                incarnation: Incarnation::draw(),
                task: None,
            },
            host: host.clone(),
            state: Mutex::default(),
            inbox: Mutex::default(),
        });
        state.endpoints.insert(address, endpoint.clone());
        Ok(LocalTransport {
            endpoint,
            _network: self.clone(),
        })
    }

    /// Delivers each message twice, or once again.
    pub fn set_duplicates(&self, duplicates: bool) {
        self.0.lock().duplicates = duplicates;
    }

    /// Holds back messages from now on, or delivers those that were held.
    pub fn set_held(&self, held: bool) {
        let messages = {
            let mut state = self.0.lock();
            if held {
                state.held.get_or_insert_default();
                return;
            }
            state.held.take().unwrap_or_default()
        };
        for (to, message) in messages {
            let _lost = self.0.deliver(&to, message);
        }
    }

    /// Returns the places of held messages that may be delivered next: all but values behind others for their key.
    pub fn deliverable(&self) -> Vec<usize> {
        let state = self.0.lock();
        let held = state.held.as_deref().unwrap_or_default();
        let place = |(to, message): &(Address, Message)| match &message.body {
            Body::Asked {
                what: Asked::Value(key, _),
                ..
            } => Some((message.from.address.clone(), to.clone(), key.clone())),
            _ => None,
        };
        let mut seen = HashSet::new();
        let is_next = |(_, entry): &(usize, &(Address, Message))| match place(entry) {
            Some(place) => seen.insert(place),
            None => true,
        };
        let next = held.iter().enumerate().filter(is_next);
        next.map(|(index, _)| index).collect()
    }

    /// Delivers a held message, which is then held no more, as often as is said: not at all loses it.
    ///
    /// # Panics
    ///
    /// If there is no such message.
    pub fn release(&self, index: usize, n_times: usize) {
        let (endpoint, message) = {
            let mut state = self.0.lock();
            let held = state.held.as_mut().expect("messages are held");
            let (to, message) = held.remove(index);
            let is_cut = state.cuts.contains(&pair(&message.from.address, &to));
            let endpoint = state.endpoints.get(&to).filter(|_| !is_cut);
            (endpoint.cloned(), message)
        };
        // It is lost with its receiver, or on the way.
        if let Some(endpoint) = endpoint {
            for message in std::iter::repeat_n(message, n_times) {
                endpoint.put(message);
            }
        }
    }

    /// Cuts the connection between two tasks, which find each other lost, or mends it.
    pub fn set_cut(&self, one: &Address, other: &Address, is_cut: bool) {
        let pair = pair(one, other);
        let ends = {
            let mut state = self.0.lock();
            if !is_cut {
                state.cuts.remove(&pair);
                return;
            }
            state.cuts.insert(pair);
            [one, other].map(|address| state.endpoints.get(address).cloned())
        };
        if let [Some(one), Some(other)] = ends {
            one.peer_is_lost(&other.caller);
            other.peer_is_lost(&one.caller);
        }
    }
}

impl fmt::Debug for LocalNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.0.lock().endpoints.keys())
            .finish()
    }
}

fn pair(one: &Address, other: &Address) -> (Address, Address) {
    match one < other {
        true => (one.clone(), other.clone()),
        false => (other.clone(), one.clone()),
    }
}

impl Network {
    pub(super) fn lock(&self) -> MutexGuard<'_, NetworkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a message into the inbox of a task; returns false if it can't get there.
    pub(super) fn deliver(&self, to: &Address, message: Message) -> bool {
        let (endpoint, n_times) = {
            let mut state = self.lock();
            let is_cut = state.cuts.contains(&pair(&message.from.address, to));
            let Some(endpoint) = state.endpoints.get(to).filter(|_| !is_cut).cloned() else {
                return false;
            };
            if let Some(held) = &mut state.held {
                held.push((to.clone(), message));
                return true;
            }
            (endpoint, 1 + usize::from(state.duplicates))
        };
        for message in std::iter::repeat_n(message, n_times) {
            endpoint.put(message);
        }
        true
    }
}
