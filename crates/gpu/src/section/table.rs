//! [`Table`]: the graphs of a section, and what is known of calls that have none.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::plan::Plan;

/// The most kinds of calls that are told apart.
const MOST: usize = 8;

/// How often a function has run before it is captured.
const N_RUNS: u32 = 2;

/// The kinds of calls of a section, by keys of their operands.
#[derive(Default)]
pub(super) struct Table(Mutex<Vec<Entry>>);

struct Entry {
    key: Vec<u8>,
    state: State,
}

enum State {
    /// It has run so often.
    Seen(u32),
    /// A call captures it, or could not.
    Taken,
    Captured(Arc<Plan>),
}

/// The way of a call.
pub(super) enum Next {
    Run,
    Capture(Ticket),
    Launch(Arc<Plan>),
}

/// The right to capture calls of a key.
pub(super) struct Ticket {
    table: Arc<Table>,
    key: Vec<u8>,
}

impl Table {
    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what the next call of a key does.
    pub(super) fn next(self: &Arc<Table>, key: &[u8]) -> Next {
        let mut entries = self.lock();
        // Those that were used last stand last.
        let mut entry = match entries.iter().position(|entry| entry.key == key) {
            Some(at) => entries.remove(at),
            None => Entry {
                key: key.to_vec(),
                state: State::Seen(0),
            },
        };
        let next = match &mut entry.state {
            State::Seen(n_runs) if *n_runs < N_RUNS => {
                *n_runs += 1;
                Next::Run
            }
            State::Seen(_) => {
                entry.state = State::Taken;
                Next::Capture(Ticket {
                    table: self.clone(),
                    key: key.to_vec(),
                })
            }
            State::Taken => Next::Run,
            State::Captured(plan) => Next::Launch(plan.clone()),
        };
        let gone = (entries.len() >= MOST).then(|| entries.remove(0));
        entries.push(entry);
        drop(entries);
        // Waits for the device, if it has a graph.
        drop(gone);
        next
    }
}

impl Ticket {
    /// Keeps what was captured for the calls that follow.
    pub(super) fn keep(self, plan: Arc<Plan>) {
        let mut entries = self.table.lock();
        if let Some(entry) = entries.iter_mut().find(|entry| entry.key == self.key) {
            entry.state = State::Captured(plan);
        }
    }
}
