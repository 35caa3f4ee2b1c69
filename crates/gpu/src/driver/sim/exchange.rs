//! Exchanges between devices: every member gives what it has, and when all have, each takes its own.
//!
//! A member's part is two commands in its stream: one reads its inputs, the other waits for the first ones of all, and
//! writes its outputs.

use std::sync::{Arc, Mutex, PoisonError};

use super::library::Using;
use super::memory::{Access, Trap};
use crate::driver::library::{Exchange, Number, Reduction};

/// Inputs of all members: of each, those of its exchanges in order.
pub(super) type Given = Arc<Mutex<Vec<Vec<Vec<u8>>>>>;

/// A member's exchanges, and what all have given.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) rank: usize,
    pub(super) exchanges: Arc<Vec<Vec<Exchange>>>,
    pub(super) given: Given,
}

impl Part {
    fn own(&self) -> &[Exchange] {
        &self.exchanges[self.rank]
    }
}

impl Using<'_> {
    pub(super) fn give(&mut self, part: &Part) -> Result<(), Trap> {
        let mut inputs = Vec::new();
        let n_ranks = part.exchanges.len();
        for exchange in part.own() {
            let (from, len) = match exchange {
                Exchange::Reduce {
                    from,
                    n,
                    number,
                    is_scattered,
                    ..
                } => {
                    let n = if *is_scattered { n * n_ranks } else { *n };
                    (from, n * number.len_bytes())
                }
                Exchange::Gather {
                    from, len_bytes, ..
                }
                | Exchange::Send {
                    from, len_bytes, ..
                } => (from, *len_bytes),
                Exchange::Receive { .. } => {
                    inputs.push(Vec::new());
                    continue;
                }
            };
            let bytes = match len {
                0 => Vec::new(),
                len => self
                    .memory
                    .access(self.id, Access::Read, from.0, len)?
                    .to_vec(),
            };
            inputs.push(bytes);
        }
        let mut given = part.given.lock().unwrap_or_else(PoisonError::into_inner);
        given[part.rank] = inputs;
        Ok(())
    }

    pub(super) fn take(&mut self, part: &Part) -> Result<(), Trap> {
        let given = part
            .given
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        for (index, exchange) in part.own().iter().enumerate() {
            let all = || given.iter().map(|inputs| inputs[index].as_slice());
            let (to, bytes) = match exchange {
                Exchange::Reduce {
                    to,
                    n,
                    number,
                    reduction,
                    is_scattered,
                    ..
                } => {
                    let len = n * number.len_bytes();
                    let begin = if *is_scattered { part.rank * len } else { 0 };
                    let parts = all().map(|bytes| &bytes[begin..begin + len]);
                    (to, reduce(parts, *number, *reduction))
                }
                Exchange::Gather { to, .. } => (to, all().flatten().copied().collect()),
                Exchange::Send { .. } => continue,
                Exchange::Receive { to, peer, .. } => (to, sent(part, &given, index, *peer)),
            };
            if !bytes.is_empty() {
                let place = self
                    .memory
                    .access(self.id, Access::Write, to.0, bytes.len())?;
                place.copy_from_slice(&bytes);
            }
        }
        Ok(())
    }
}

/// Returns what a peer has sent for a receipt: the n-th that it has for this member is for the n-th receipt from it.
fn sent(part: &Part, given: &[Vec<Vec<u8>>], index: usize, peer: usize) -> Vec<u8> {
    let is_from = |exchange: &&Exchange| matches!(exchange, Exchange::Receive { peer: from, .. } if *from == peer);
    let n_before = part.own()[..index].iter().filter(is_from).count();
    let for_this = part.exchanges[peer].iter().enumerate().filter(
        |(_, exchange)| matches!(exchange, Exchange::Send { peer: to, .. } if *to == part.rank),
    );
    let found = for_this.map(|(index, _)| index).nth(n_before);
    found.map_or_else(Vec::new, |index| given[peer][index].clone())
}

fn reduce<'b>(
    parts: impl Iterator<Item = &'b [u8]>,
    number: Number,
    reduction: Reduction,
) -> Vec<u8> {
    let len = number.len_bytes();
    let mut all: Vec<u8> = Vec::new();
    for part in parts {
        if all.is_empty() {
            all = part.to_vec();
            continue;
        }
        for (one, other) in all.chunks_exact_mut(len).zip(part.chunks_exact(len)) {
            super::library::combine(one, other, number, reduction);
        }
    }
    all
}
