//! [`Inbox`]: work that has arrived. Peers take turns, so that one that asks much waits for itself.

use std::collections::{HashMap, VecDeque};

use tfrt_wire::endpoint::PeerId;

use super::Work;

/// Work by peer, that of each in order.
#[derive(Default)]
pub struct Inbox {
    works: HashMap<PeerId, VecDeque<Work>>,
    /// The peers in their turn. Invariant: those that have work, each once.
    turns: VecDeque<PeerId>,
    /// Whether a task is emptying it.
    pub is_emptied: bool,
}

impl Inbox {
    /// Puts work behind that of its peer.
    pub fn push(&mut self, work: Work) {
        let peer = work.peer();
        let works = self.works.entry(peer).or_default();
        if works.is_empty() {
            self.turns.push_back(peer);
        }
        works.push_back(work);
    }

    /// Takes the oldest work of the peer whose turn it is.
    pub fn pop(&mut self) -> Option<Work> {
        let peer = self.turns.pop_front()?;
        let works = self.works.get_mut(&peer)?;
        let work = works.pop_front();
        match works.is_empty() {
            true => {
                self.works.remove(&peer);
            }
            false => self.turns.push_back(peer),
        }
        work
    }

    /// Returns the work that is there, if it is one.
    pub fn only(&self) -> Option<&Work> {
        let peer = self.turns.front().filter(|_| self.turns.len() == 1)?;
        let works = self.works.get(peer)?;
        works.front().filter(|_| works.len() == 1)
    }

    /// Returns whether there is no work.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Takes out all work.
    pub fn clear(&mut self) -> HashMap<PeerId, VecDeque<Work>> {
        self.turns.clear();
        std::mem::take(&mut self.works)
    }
}
