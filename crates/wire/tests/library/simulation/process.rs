//! [`Process`]: one start of a task, and a [`Ledger`] of what all of them have asked, sent, heard and got.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tfrt_async::Error;
use tfrt_wire::endpoint::{Admission, Config, Endpoint, PeerId, Role, bytes};
use tfrt_wire::event::{CallId, Event, PeerState};
use tfrt_wire::limits::Limits;
use tfrt_wire::message::Open;
use tfrt_wire::payload::{AlignedBytes, Landing};
use tfrt_wire::proof::Secret;

use super::schedule::Weather;

/// The bounds of simulated tasks.
pub fn limits() -> Limits {
    Limits {
        max_admitted_bytes: 24 << 20,
        credit_bytes: 2 << 20,
        max_unacknowledged_bytes: 1 << 20,
        join_timeout: Duration::from_secs(20),
        ..Limits::default()
    }
}

/// Memory that counts itself.
struct Counted {
    memory: AlignedBytes,
    len: u64,
    held: Arc<AtomicU64>,
}

impl Landing for Counted {
    fn bytes(&mut self) -> &mut [u8] {
        self.memory.bytes()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.held.fetch_sub(self.len, Ordering::Relaxed);
    }
}

struct Counts(Arc<AtomicU64>);

impl Admission for Counts {
    fn admit(&self, _: &str, _: u64, open: &Open) -> Result<Box<dyn Landing>, Error> {
        let (len, held) = (open.total_bytes, self.0.clone());
        held.fetch_add(len, Ordering::Relaxed);
        let memory = AlignedBytes::new(len as usize);
        let memory = memory.ok_or_else(|| Error::resource_exhausted("no memory"))?;
        Ok(Box::new(Counted { memory, len, held }))
    }
}

/// Returns the bytes of a value.
pub fn pattern(number: u64, len: u32) -> Vec<u8> {
    let mut bytes = vec![number as u8; len as usize];
    for (index, chunk) in bytes.chunks_exact_mut(4_096).enumerate() {
        let stamp = number ^ (index as u64) << 32;
        chunk[..8].copy_from_slice(&stamp.to_le_bytes());
    }
    bytes
}

/// Everything that was asked and sent, by numbers that are never used again.
#[derive(Default)]
pub struct Ledger {
    pub n: u64,
    /// Requests that ran.
    pub ran: BTreeSet<u64>,
    /// Requests of which was said that they did not run.
    pub never_ran: BTreeSet<u64>,
    /// Values that came, and their lengths.
    pub came: BTreeMap<u64, u32>,
    /// Values of which was said that they came.
    pub sent: BTreeSet<u64>,
}

pub type Shared = Arc<Mutex<Ledger>>;

/// One start of a task.
pub struct Process {
    pub task: usize,
    pub endpoint: Endpoint,
    /// Our requests that wait, by their ids: number and peer.
    waiting: BTreeMap<(PeerId, u64), u64>,
    last_request: Option<(PeerId, u64)>,
    sending: BTreeMap<(PeerId, u64), u64>,
    last_value: Option<(PeerId, u64)>,
    lens: BTreeMap<u64, u32>,
    /// Requests that were given up: nothing may follow.
    given_up: BTreeSet<(PeerId, u64)>,
    /// Requests of others that are not answered.
    pub serving: BTreeMap<(PeerId, CallId), u64>,
    held: Arc<AtomicU64>,
    weather: Weather,
}

pub fn name(task: usize) -> String {
    format!("/job:w/task:{task}")
}

impl Process {
    pub fn new(
        task: usize,
        n_tasks: usize,
        incarnation: u128,
        secret: bool,
        weather: Weather,
        now: Instant,
    ) -> Process {
        let secret = secret.then(|| Secret::new(*b"sixteen bytes or more").expect("it is long"));
        // Then those that dial are known by their names only when they come.
        let accepts_unknown = incarnation & 2 == 0;
        let config = Config {
            name: name(task),
            incarnation,
            secret,
            has_certificates: false,
            accepts_unknown,
            limits: limits(),
        };
        let held = Arc::new(AtomicU64::new(0));
        let endpoint = Endpoint::new(config, Arc::new(Counts(held.clone())));
        let mut endpoint = endpoint.expect("it has a name");
        for other in 0..n_tasks {
            let role = match task < other {
                true => Role::Dials,
                false => Role::Answers,
            };
            if other != task && !(accepts_unknown && role == Role::Answers) {
                let added = endpoint.add_peer(&name(other), role, now);
                added.expect("it is new");
            }
        }
        Process {
            task,
            endpoint,
            waiting: BTreeMap::new(),
            last_request: None,
            sending: BTreeMap::new(),
            last_value: None,
            lens: BTreeMap::new(),
            given_up: BTreeSet::new(),
            serving: BTreeMap::new(),
            held,
            weather,
        }
    }

    /// Returns a task as a peer; nothing if it is not known yet.
    pub fn peer(&self, task: usize) -> Option<PeerId> {
        self.endpoint.peer(&name(task))
    }

    /// Asks a peer.
    pub fn request(
        &mut self,
        to: usize,
        len: u32,
        ledger: &Shared,
        now: Instant,
    ) -> Result<(), String> {
        let number = next(ledger);
        let Some(peer) = self.peer(to) else {
            return Ok(());
        };
        let mut body = pattern(number, len);
        body[..8].copy_from_slice(&number.to_le_bytes());
        match self.endpoint.request(peer, number, vec![bytes(body)], now) {
            Ok(id) => {
                self.waiting.insert((peer, id), number);
                self.last_request = Some((peer, id));
                Ok(())
            }
            Err(error) => self.check_refusal(peer, &error),
        }
    }

    /// Sends a peer a value.
    pub fn send(
        &mut self,
        to: usize,
        len: u32,
        ledger: &Shared,
        now: Instant,
    ) -> Result<(), String> {
        let number = next(ledger);
        let Some(peer) = self.peer(to) else {
            return Ok(());
        };
        let mut value = pattern(number, len);
        // In two parts, so that chunks have bytes of both.
        let second = value.split_off(value.len() / 3);
        let parts = vec![bytes(value), bytes(second)];
        let key = number.to_le_bytes();
        match self.endpoint.send(peer, number, &key, "bytes", parts, now) {
            Ok(stream) => {
                self.sending.insert((peer, stream), number);
                self.lens.insert(number, len);
                self.last_value = Some((peer, stream));
                Ok(())
            }
            Err(error) => self.check_refusal(peer, &error),
        }
    }

    fn check_refusal(&self, peer: PeerId, error: &Error) -> Result<(), String> {
        self.check_error(peer, error)?;
        match self.weather {
            Weather::Storm => Ok(()),
            _ => Err(format!("nobody has failed, found: {error}")),
        }
    }

    fn check_error(&self, peer: PeerId, error: &Error) -> Result<(), String> {
        let name = self.endpoint.name(peer);
        match error.message().contains(name) {
            true => Ok(()),
            false => Err(format!(
                "expected an error that names {name}, found: {error}"
            )),
        }
    }

    /// Gives up what was asked last.
    pub fn cancel(&mut self) {
        let Some((peer, id)) = self.last_request else {
            return;
        };
        if self.waiting.remove(&(peer, id)).is_some() {
            self.given_up.insert((peer, id));
            self.endpoint.cancel(peer, &[id]);
        }
    }

    /// Gives up the value that was sent last.
    pub fn abort(&mut self) {
        let Some((peer, stream)) = self.last_value else {
            return;
        };
        if self.sending.remove(&(peer, stream)).is_some() {
            let why = Error::new(tfrt_async::ErrorCode::Cancelled, "it is no longer wanted");
            self.endpoint.abort(peer, stream, &why);
        }
    }

    /// Takes what has happened. Returns the requests to answer.
    pub fn hear(&mut self, ledger: &Shared) -> Result<Vec<(PeerId, CallId, u64)>, String> {
        let mut asked = Vec::new();
        for (peer, event) in self.endpoint.take_events() {
            match event {
                Event::State(_) => {}
                Event::Ended(error) => {
                    // Nobody here breaks a rule.
                    let is_broken = error.message().contains("keep to the protocol");
                    if is_broken || self.weather != Weather::Storm {
                        return Err(format!("nobody has failed, found: {error}"));
                    }
                }
                Event::Request {
                    call,
                    context,
                    body,
                } => {
                    let number = u64::from_le_bytes(body[..8].try_into().expect("eight"));
                    if number != context {
                        return Err(format!("expected request {context}, found {number}"));
                    }
                    if !lock(ledger).ran.insert(number) {
                        return Err(format!("request {number} ran twice"));
                    }
                    self.serving.insert((peer, call), number);
                    asked.push((peer, call, number));
                }
                Event::Cancelled(calls) => {
                    for call in calls {
                        self.serving.remove(&(peer, call));
                    }
                }
                Event::Reply { id, body } => {
                    let number = self.outcome(peer, id)?;
                    if body != number.to_le_bytes() {
                        return Err(format!("request {number} has the answer of another"));
                    }
                }
                Event::Failed {
                    id,
                    error,
                    may_have_run,
                } => {
                    let number = self.outcome(peer, id)?;
                    self.check_error(peer, &error)?;
                    if !may_have_run {
                        lock(ledger).never_ran.insert(number);
                    }
                    let is_answer = number % 5 == 0 && error.message().ends_with("it won't");
                    if self.weather != Weather::Storm && !is_answer {
                        return Err(format!("nobody has failed, found: {error}"));
                    }
                }
                Event::Value {
                    context,
                    key,
                    value,
                    ..
                } => {
                    if key != context.to_le_bytes() {
                        return Err(format!("expected value {context}, found {key:?}"));
                    }
                    let value: Box<dyn Any> = value.into_any();
                    let mut value: Box<Counted> = value.downcast().expect("it is ours");
                    let len = value.bytes().len() as u32;
                    if value.bytes() != pattern(context, len) {
                        return Err(format!("value {context} came as another"));
                    }
                    if lock(ledger).came.insert(context, len).is_some() {
                        return Err(format!("value {context} came twice"));
                    }
                }
                // It was given up by its sender, or that is lost.
                Event::ValueFailed { error, .. } => self.check_error(peer, &error)?,
                Event::Sent(stream) => {
                    let number = self.sending.remove(&(peer, stream));
                    let number = number.ok_or("a value was sent that nobody waits for")?;
                    lock(ledger).sent.insert(number);
                    let (expected, found) =
                        (self.lens[&number], lock(ledger).came.get(&number).copied());
                    if found != Some(expected) {
                        return Err(format!(
                            "value {number} was sent, but did not come: {found:?}"
                        ));
                    }
                }
                Event::SendFailed { stream, error } => {
                    let number = self.sending.remove(&(peer, stream));
                    number.ok_or("a value failed that nobody waits for")?;
                    self.check_error(peer, &error)?;
                    if self.weather != Weather::Storm {
                        return Err(format!("nobody has failed, found: {error}"));
                    }
                }
            }
        }
        self.check_memory()?;
        Ok(asked)
    }

    fn outcome(&mut self, peer: PeerId, id: u64) -> Result<u64, String> {
        if self.given_up.contains(&(peer, id)) {
            return Err(format!("an outcome of request {id}, which was given up"));
        }
        let number = self.waiting.remove(&(peer, id));
        number.ok_or_else(|| format!("an outcome of request {id}, which nobody waits for"))
    }

    /// Answers a request, if it is still wanted.
    pub fn answer(&mut self, peer: PeerId, call: CallId) -> Result<(), String> {
        let number = self.serving.remove(&(peer, call));
        let Some(number) = number else {
            // Who has not heard that nobody wants it answers all the same, and nobody may hear that.
            let late = vec![bytes(*b"too late")];
            let answered = self.endpoint.reply(peer, call, Ok(late));
            return answered.map(drop).map_err(|error| error.to_string());
        };
        let reply = match number % 5 {
            0 => Err(Error::internal("it won't")),
            _ => Ok(vec![bytes(number.to_le_bytes())]),
        };
        match self.endpoint.reply(peer, call, reply) {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("request {number} is over, and nobody was told")),
            Err(error) => Err(error.to_string()),
        }
    }

    fn check_memory(&self) -> Result<(), String> {
        let limits = limits();
        let most = limits.max_admitted_bytes + 2 * limits.max_unacknowledged_bytes as u64;
        for peer in self.endpoint.peers() {
            let held = self.endpoint.held_bytes(peer);
            if held > most {
                return Err(format!("{held} bytes are held for a peer"));
            }
        }
        let n = self.endpoint.peers().count() as u64;
        let held = self.held.load(Ordering::Relaxed);
        match held > n * limits.max_admitted_bytes {
            true => Err(format!("{held} bytes of values are held")),
            false => Ok(()),
        }
    }

    /// Checks that nothing waits any more, and that these tasks are found well.
    pub fn check_end(&self, reachable: &[usize]) -> Result<(), String> {
        let name = name(self.task);
        if let Some(((peer, _), number)) = self.waiting.first_key_value() {
            let (peer, state) = (self.endpoint.name(*peer), self.endpoint.state(*peer));
            return Err(format!(
                "{name} waits for the answer to request {number} of {peer}, {state:?}"
            ));
        }
        if let Some(((peer, _), number)) = self.sending.first_key_value() {
            let (peer, state) = (self.endpoint.name(*peer), self.endpoint.state(*peer));
            return Err(format!(
                "{name} waits for {peer} to have value {number}, {state:?}"
            ));
        }
        if !self.serving.is_empty() {
            return Err(format!("{name} has not answered {:?}", self.serving));
        }
        let held = self.held.load(Ordering::Relaxed);
        if held > 0 {
            return Err(format!("{name} holds {held} bytes of values"));
        }
        for peer in reachable.iter().map(|task| self.peer(*task)) {
            let peer = peer.ok_or_else(|| format!("{name} does not know all others"))?;
            let state = self.endpoint.state(peer);
            if state != PeerState::Live {
                let peer = self.endpoint.name(peer);
                return Err(format!("{name} finds {peer} {state:?} though all is well"));
            }
            let held = self.endpoint.held_bytes(peer);
            if held > 0 {
                return Err(format!("{name} holds {held} bytes that were acknowledged"));
            }
        }
        Ok(())
    }
}

fn next(ledger: &Shared) -> u64 {
    let mut ledger = lock(ledger);
    ledger.n += 1;
    ledger.n
}

pub fn lock(ledger: &Shared) -> std::sync::MutexGuard<'_, Ledger> {
    ledger.lock().expect("nobody panics with it")
}
