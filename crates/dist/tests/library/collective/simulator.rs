//! A simulated cluster with a virtual clock, in which one seed draws the calls, the delays and the faults.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Duration;

use tfrt_async::{ClusterTask, Error};
use tfrt_dist::collective::local::{Elements, Tensors};
use tfrt_dist::collective::{
    Action, Call, Collectives, Key, Limits, Message, Operation, Span, head,
};
use tfrt_tensor::math::number::Real;

/// Numbers drawn from a seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..4 {
            random.next();
        }
        random
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    /// Draws a number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n.max(1) as u64).unwrap()
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

pub fn task(number: usize) -> ClusterTask {
    ClusterTask {
        job: "w".to_owned(),
        task: u32::try_from(number).unwrap(),
    }
}

/// How a collective ended on a member.
#[derive(Debug)]
pub enum End<T> {
    Done(Vec<T>, Vec<usize>),
    Failed(Error),
}

/// A fault of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// This member is killed when it has sent so many messages.
    Kill(usize, usize),
    /// Two members are.
    KillTwo([(usize, usize); 2]),
    /// This member cancels its calls at some time.
    Cancel(usize),
    /// This member does not call.
    Absent(usize),
    /// This member can't call, since it lacks what it would call with, and says so.
    Refuse(usize),
    /// This member's deadline is so short, in microseconds, that it may pass.
    Hurry(usize, u64),
}

enum Event<T> {
    Begin(Call, Vec<Vec<T>>, Vec<T>),
    Cancel(Key),
    Refuse(Key, Vec<ClusterTask>),
    /// A message, and where its elements lie at the sender, if it need not have copied them.
    Arrive(ClusterTask, Key, Message<Elements<T>>, Vec<Span>),
    Lost(ClusterTask),
    Expire,
}

/// A run of collectives on `n` members.
pub struct Simulation<T: Real> {
    pub random: Random,
    now: Duration,
    queue: BinaryHeap<Reverse<(Duration, u64)>>,
    events: BTreeMap<u64, (Duration, usize, Event<T>)>,
    n_events: u64,
    tables: Vec<Collectives<Elements<T>>>,
    tensors: BTreeMap<(usize, Key), Tensors<T>>,
    pub ends: BTreeMap<(usize, Key), End<T>>,
    /// When the last of them came.
    pub ended_at: Duration,
    fault: Fault,
    pub is_dead: Vec<bool>,
    n_sent: Vec<usize>,
    /// How many bytes of elements members have sent.
    pub n_bytes: usize,
    /// When the last message of a pair arrives, where pairs keep their order.
    last: BTreeMap<(usize, usize), Duration>,
    alarms: BTreeSet<(usize, Duration)>,
    keeps_order: bool,
    doubles: bool,
    /// Whether confirmations take longer than other messages, so that there is time to ask.
    slow_confirmations: bool,
}

impl<T: Real> Simulation<T> {
    pub fn new(seed: u64, n: usize, fault: Fault) -> Simulation<T> {
        let mut random = Random::new(seed);
        let (keeps_order, doubles) = (random.one_in(2), random.one_in(3));
        let tables = (0..n).map(|me| Collectives::new(task(me), Limits::default()));
        Simulation {
            now: Duration::ZERO,
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            n_events: 0,
            tables: tables.collect(),
            tensors: BTreeMap::new(),
            ends: BTreeMap::new(),
            ended_at: Duration::ZERO,
            fault,
            is_dead: vec![false; n],
            n_sent: vec![0; n],
            n_bytes: 0,
            last: BTreeMap::new(),
            alarms: BTreeSet::new(),
            keeps_order,
            doubles,
            slow_confirmations: random.one_in(2),
            random,
        }
    }

    fn add(&mut self, at: Duration, member: usize, event: Event<T>) {
        self.n_events += 1;
        self.queue.push(Reverse((at, self.n_events)));
        self.events.insert(self.n_events, (at, member, event));
    }

    fn delay(&mut self) -> Duration {
        let micros = match self.random.below(10) {
            0 => self.random.below(100_000),
            1..4 => self.random.below(5_000),
            _ => self.random.below(100),
        };
        Duration::from_micros(micros as u64 + 1)
    }

    /// Has a member call a collective at some time.
    pub fn call(&mut self, member: usize, call: Call, inputs: Vec<Vec<T>>, result: Vec<T>) {
        if self.fault == Fault::Absent(member) {
            return;
        }
        let at = self.delay();
        if self.fault == Fault::Refuse(member) {
            return self.add(at, member, Event::Refuse(call.key, call.members));
        }
        if self.fault == Fault::Cancel(member) && self.random.one_in(2) {
            let late = at + self.delay();
            self.add(late, member, Event::Cancel(call.key.clone()));
        }
        let mut call = call;
        if let Fault::Hurry(hurried, micros) = self.fault
            && hurried == member
        {
            call.deadline = at + Duration::from_micros(micros);
        }
        self.add(at, member, Event::Begin(call, inputs, result));
    }

    /// Runs until nothing is left to come.
    pub fn run(&mut self) {
        while let Some(Reverse((at, number))) = self.queue.pop() {
            let Some((_, member, event)) = self.events.remove(&number) else {
                continue;
            };
            self.now = self.now.max(at);
            assert!(self.n_events < 1_000_000, "messages without end");
            if self.is_dead[member] {
                continue;
            }
            let actions = match event {
                Event::Begin(call, inputs, result) => {
                    let extents = call.result_extents.as_ref().unwrap_or(&call.extents);
                    let (key, extents) = (call.key.clone(), extents.clone());
                    // A leaf may lie where the result goes.
                    let is_in_place = matches!(call.operation, Operation::AllReduce { .. })
                        && inputs.len() == 1
                        && self.random.one_in(2);
                    let tensors = match <[Vec<T>; 1]>::try_from(inputs) {
                        Ok([leaf]) if is_in_place => Tensors::in_place(leaf, extents),
                        Ok(inputs) => Tensors::new(inputs.into(), result, extents),
                        Err(inputs) => Tensors::new(inputs, result, extents),
                    };
                    self.tensors.insert((member, key.clone()), tensors);
                    match self.tables[member].begin(call) {
                        Ok(actions) => actions,
                        Err(error) => vec![(key, Action::Failed(error))],
                    }
                }
                Event::Cancel(key) => {
                    let reason = Error::cancelled("not wanted any more");
                    self.tables[member].cancel(&key, &reason)
                }
                Event::Refuse(key, members) => {
                    let why = Error::failed_precondition("its operands have failed");
                    match self.tables[member].refuse(&key, &members, why) {
                        Ok(actions) => actions,
                        Err(error) => vec![(key, Action::Failed(error))],
                    }
                }
                Event::Arrive(from, key, message, spans) => {
                    self.check_lent(&from, &key, &message, &spans);
                    self.tables[member].arrived(&from, &key, message)
                }
                Event::Lost(task) => {
                    let reason = Error::unavailable(format!("task {task} is lost"));
                    self.tables[member].lost(&task, &reason)
                }
                Event::Expire => {
                    let now = self.now;
                    self.tables[member].expire(now)
                }
            };
            self.act(member, actions);
            if let Some(deadline) = self.tables[member].next_deadline()
                && self.alarms.insert((member, deadline))
            {
                self.add(deadline.max(self.now), member, Event::Expire);
            }
        }
        for (member, table) in self.tables.iter().enumerate() {
            if !self.is_dead[member] {
                assert_eq!(table.n_held().0, 0, "member {member} waits for ever");
            }
        }
    }

    fn act(&mut self, member: usize, actions: Vec<(Key, Action<Elements<T>>)>) {
        for (key, action) in actions {
            match action {
                Action::Send { to, message } => {
                    let tensors = self.tensors.get(&(member, key.clone()));
                    let mut lent = Vec::new();
                    let is_eager = matches!(
                        &message,
                        Message::Piece {
                            announcement: Some(_),
                            ..
                        }
                    );
                    let message = message.map(|spans| {
                        let tensors = tensors.expect("elements are those of a call");
                        let elements = tensors.gather(&spans);
                        if !is_eager {
                            lent = spans;
                        }
                        elements
                    });
                    let to = to.task as usize;
                    self.send((member, to), key, message, &lent);
                    if self.fault_kills(member) {
                        return self.kill(member);
                    }
                }
                Action::Done => {
                    let tensors = self.tensors.remove(&(member, key.clone())).unwrap();
                    let (result, extents) = tensors.into_result();
                    self.end(member, key, End::Done(result, extents));
                }
                Action::Failed(error) => self.end(member, key, End::Failed(error)),
                action => {
                    let tensors = self.tensors.get_mut(&(member, key));
                    tensors.expect("a call that runs").act(action);
                }
            }
        }
    }

    fn end(&mut self, member: usize, key: Key, end: End<T>) {
        let before = self.ends.insert((member, key.clone()), end);
        self.ended_at = self.now;
        assert!(before.is_none(), "member {member} ended {key} twice");
    }

    fn fault_kills(&self, member: usize) -> bool {
        let is_due = |&(victim, n): &(usize, usize)| victim == member && self.n_sent[member] > n;
        match self.fault {
            Fault::Kill(victim, n) => is_due(&(victim, n)),
            Fault::KillTwo(victims) => victims.iter().any(is_due),
            _ => false,
        }
    }

    fn kill(&mut self, member: usize) {
        self.is_dead[member] = true;
        for other in (0..self.tables.len()).filter(|other| *other != member) {
            // What is on its way to another arrives up to this time, or not at all.
            let cut = self.now + self.delay();
            let is_of = |event: &Event<T>| matches!(event, Event::Arrive(from, ..) if *from == task(member));
            self.events
                .retain(|_, (at, to, event)| *to != other || *at <= cut || !is_of(event));
            let at = cut + self.delay();
            self.add(at, other, Event::Lost(task(member)));
        }
    }

    /// Checks that what a sender has lent is as it was, when it arrives.
    fn check_lent(
        &self,
        from: &ClusterTask,
        key: &Key,
        message: &Message<Elements<T>>,
        spans: &[Span],
    ) {
        let (Some(tensors), Message::Piece { data, .. }) = (
            self.tensors.get(&(from.task as usize, key.clone())),
            message,
        ) else {
            return;
        };
        if spans.is_empty() || self.ends.contains_key(&(from.task as usize, key.clone())) {
            return;
        }
        let now = tensors.gather(spans);
        let is_same = |(x, y): (&T, &T)| x.same(*y) || !x.same(*x) && !y.same(*y);
        let mut pairs = now.as_slice().iter().zip(data.as_slice());
        assert!(
            pairs.all(is_same),
            "{from} has written over what it had lent"
        );
    }

    fn send(
        &mut self,
        (from, to): (usize, usize),
        key: Key,
        message: Message<Elements<T>>,
        lent: &[Span],
    ) {
        self.n_sent[from] += 1;
        if let Message::Piece { data, .. } = &message {
            self.n_bytes += size_of_val(data.as_slice());
        }
        // The time in which members have to ask each other is short.
        if self.fault == Fault::Cancel(from) && matches!(message, Message::Confirm) {
            let at = self.now + Duration::from_micros(self.random.below(1_000) as u64);
            self.add(at, from, Event::Cancel(key.clone()));
        }
        let n_times = 1 + usize::from(self.doubles && self.random.one_in(4));
        for _ in 0..n_times {
            let mut at = self.now + self.delay();
            if self.slow_confirmations && matches!(message, Message::Confirm) {
                at += self.delay();
                at += Duration::from_micros(self.random.below(3_000) as u64);
            }
            if self.keeps_order {
                let last = self.last.entry((from, to)).or_default();
                at = at.max(*last + Duration::from_nanos(1));
                *last = at;
            }
            let head = head::write(&key, &message);
            let read = head::read(&head, || match &message {
                Message::Piece { data, .. } => data.clone(),
                other => panic!("{other:?} has no elements"),
            });
            let (key, message) = read.expect("what was written can be read");
            // One of two copies may come when the sender goes on already.
            let lent = if n_times == 1 {
                lent.to_vec()
            } else {
                Vec::new()
            };
            let event = Event::Arrive(task(from), key, message, lent);
            self.add(at, to, event);
        }
    }
}
