//! At most once: the tables by which both sides of a transport keep a request from running twice. They do no IO.
//!
//! A request is named by the incarnation of its sender and a number, which counts up. The sender has an
//! [`Outstanding`], whose watermark rides on each request; the receiver has [`Answers`], which keeps each answer until
//! the watermark has passed it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::ids::Incarnation;

/// The bytes of answers that are kept for one client, at most.
pub const MAX_KEPT_BYTES: usize = 64 << 20;

/// The name of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId {
    /// The start of the process that asks.
    pub client: Incarnation,
    /// The number of the request, from 0.
    pub number: u64,
}

/// The requests of a client that wait for their answers.
#[derive(Debug, Default)]
pub struct Outstanding {
    next: u64,
    waiting: BTreeSet<u64>,
}

impl Outstanding {
    /// Gives a request its number.
    pub fn begin(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        self.waiting.insert(number);
        number
    }

    /// Ends a request that was answered, or whose peer is lost; returns whether it was waiting. A second answer finds that
    /// it was not. A request that its caller has given up goes on waiting for its answer: if it was acknowledged, and
    /// came to its peer behind another one that says so, it would not be run, and who waits for its results would wait
    /// for ever.
    pub fn end(&mut self, number: u64) -> bool {
        self.waiting.remove(&number)
    }

    /// Returns the number below which all requests have ended.
    pub fn acked_below(&self) -> u64 {
        self.waiting.first().copied().unwrap_or(self.next)
    }
}

/// The requests that a server has taken, with the answers that it keeps.
#[derive(Debug)]
pub struct Answers<A> {
    clients: HashMap<Incarnation, Client<A>>,
    /// The clients that are lost for good: 16 bytes each, so that nothing of theirs runs any more.
    gone: HashSet<Incarnation>,
    max_kept_bytes: usize,
}

#[derive(Debug)]
struct Client<A> {
    acked_below: u64,
    requests: BTreeMap<u64, State<A>>,
    kept_bytes: usize,
}

#[derive(Debug)]
enum State<A> {
    Running,
    Answered(A, usize),
}

/// The decision on a request that has arrived.
#[derive(Debug, PartialEq, Eq)]
pub enum Admission<A> {
    /// It is new: run it.
    Run,
    /// It runs already: its answer goes out when it is there.
    Running,
    /// It has run: this is its answer.
    Answered(A),
    /// The client has its answer: nobody waits.
    Forgotten,
    /// The client was lost for good: what it asks is not run.
    Gone,
    /// Too many answers are kept for this client: it has to wait until it has acknowledged some.
    Full,
}

impl<A: Clone> Default for Answers<A> {
    fn default() -> Self {
        Answers::with_max_kept_bytes(MAX_KEPT_BYTES)
    }
}

impl<A: Clone> Answers<A> {
    /// Makes a table that keeps so many bytes for each client at most.
    pub fn with_max_kept_bytes(max_kept_bytes: usize) -> Answers<A> {
        Answers {
            clients: HashMap::new(),
            gone: HashSet::new(),
            max_kept_bytes,
        }
    }

    /// Decides on a request, whose sender has ended all requests below a number.
    pub fn admit(&mut self, id: RequestId, acked_below: u64) -> Admission<A> {
        if self.gone.contains(&id.client) {
            return Admission::Gone;
        }
        let client = self.clients.entry(id.client).or_insert_with(|| Client {
            acked_below: 0,
            requests: BTreeMap::new(),
            kept_bytes: 0,
        });
        client.acknowledge(acked_below);
        if id.number < client.acked_below {
            return Admission::Forgotten;
        }
        match client.requests.get(&id.number) {
            Some(State::Running) => Admission::Running,
            Some(State::Answered(answer, _)) => Admission::Answered(answer.clone()),
            None if client.kept_bytes > self.max_kept_bytes => Admission::Full,
            None => {
                client.requests.insert(id.number, State::Running);
                Admission::Run
            }
        }
    }

    /// Returns whether a request has come, or is none any more that could.
    pub fn is_known(&self, id: RequestId) -> bool {
        let client = self.clients.get(&id.client);
        let is_known = client.is_some_and(|client| {
            id.number < client.acked_below || client.requests.contains_key(&id.number)
        });
        is_known || self.gone.contains(&id.client)
    }

    /// Keeps the answer of a request that runs.
    pub fn answer(&mut self, id: RequestId, answer: A, len_bytes: usize) {
        let Some(client) = self.clients.get_mut(&id.client) else {
            return;
        };
        if let Some(state @ State::Running) = client.requests.get_mut(&id.number) {
            *state = State::Answered(answer, len_bytes);
            client.kept_bytes += len_bytes;
        }
    }

    /// Forgets the answers of a client that is lost for good; what still arrives from it is not run.
    pub fn forget(&mut self, client: Incarnation) {
        self.gone.insert(client);
        self.clients.remove(&client);
    }

    /// Returns how many answers are kept, of all clients.
    pub fn n_kept(&self) -> usize {
        let states = self
            .clients
            .values()
            .flat_map(|client| client.requests.values());
        states
            .filter(|state| matches!(state, State::Answered(..)))
            .count()
    }
}

impl<A> Client<A> {
    fn acknowledge(&mut self, below: u64) {
        if below <= self.acked_below {
            return;
        }
        self.acked_below = below;
        let kept = self.requests.split_off(&below);
        let ended = std::mem::replace(&mut self.requests, kept);
        for state in ended.into_values() {
            if let State::Answered(_, len_bytes) = state {
                self.kept_bytes -= len_bytes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> RequestId {
        RequestId {
            client: Incarnation(1),
            number,
        }
    }

    #[test]
    fn a_duplicate_gets_the_kept_answer_until_it_is_acknowledged() {
        let mut answers = Answers::default();
        assert_eq!(answers.admit(id(0), 0), Admission::Run);
        assert_eq!(answers.admit(id(0), 0), Admission::Running);
        answers.answer(id(0), "yes", 3);
        assert_eq!(answers.admit(id(0), 0), Admission::Answered("yes"));
        assert_eq!(
            (answers.admit(id(1), 1), answers.n_kept()),
            (Admission::Run, 0)
        );
        assert_eq!(answers.admit(id(0), 0), Admission::Forgotten);
    }

    #[test]
    fn a_client_whose_answers_take_too_much_waits() {
        let mut answers = Answers::with_max_kept_bytes(10);
        assert_eq!(answers.admit(id(0), 0), Admission::Run);
        answers.answer(id(0), (), 11);
        assert_eq!(answers.admit(id(1), 0), Admission::Full);
        assert_eq!(answers.admit(id(1), 1), Admission::Run);
    }

    #[test]
    fn the_watermark_is_the_first_that_waits() {
        let mut outstanding = Outstanding::default();
        let (first, second) = (outstanding.begin(), outstanding.begin());
        assert!(outstanding.end(second) && !outstanding.end(second));
        assert_eq!(outstanding.acked_below(), first);
        assert!(outstanding.end(first));
        assert_eq!(outstanding.acked_below(), 2);
    }

    #[test]
    fn clients_are_apart() {
        let mut answers = Answers::default();
        let other = RequestId {
            client: Incarnation(2),
            number: 0,
        };
        assert_eq!(answers.admit(id(0), 0), Admission::Run);
        answers.answer(id(0), 1, 1);
        assert_eq!(answers.admit(other, 0), Admission::Run);
        answers.forget(Incarnation(1));
        assert_eq!(answers.admit(id(0), 0), Admission::Gone);
    }
}
