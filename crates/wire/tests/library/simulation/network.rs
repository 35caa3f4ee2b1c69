//! [`Network`]: processes and the pipes between them, in a time that goes as fast as they do.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::{Duration, Instant};

use tfrt_wire::endpoint::{ConnectionId, Origin, PeerId};
use tfrt_wire::event::CallId;
use tfrt_wire::frame::{HEADER_BYTES, Kind};

use super::process::{Process, Shared, lock};
use super::schedule::{Action, Random, Schedule, Weather};

/// The most things that happen in a schedule: more is a hang.
const MAX_STEPS: u64 = 2_000_000;

/// The time for which all is well in the end.
const CALM: Duration = Duration::from_secs(45);

/// The most bytes on their way, as the buffers of sockets have them.
const PIPE_BYTES: usize = 256 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// An action of the schedule.
    Act(usize),
    /// Bytes reach the end of a pipe.
    Deliver(usize, usize),
    /// One end of a pipe hears that it is broken.
    HearCut(usize, usize),
    /// A process dials.
    Connect(usize, PeerId),
    /// A process looks at its clock.
    Tick(usize),
    /// A process goes on.
    Wake(usize),
    /// A task is started.
    Start(usize),
    /// A process answers.
    Answer(usize, PeerId, CallId),
}

/// A pipe: two connections that belong together.
struct Pipe {
    ends: [End; 2],
    tasks: [usize; 2],
}

/// One end, and the bytes on their way to it.
struct End {
    process: usize,
    connection: Option<ConnectionId>,
    coming: VecDeque<(Instant, Vec<u8>)>,
    n_coming: usize,
    /// The time before which nothing more arrives, so that nothing overtakes.
    behind: Instant,
    /// The other end has closed: the end comes behind the bytes.
    is_ending: bool,
    /// Nothing that is sent arrives any more.
    is_broken: bool,
}

/// A simulated network.
pub struct Network<'s> {
    schedule: &'s Schedule,
    random: Random,
    start: Instant,
    now: Instant,
    steps: BinaryHeap<Reverse<(Instant, u64, Step)>>,
    n_steps: u64,
    /// All processes; those that are dead are gone.
    processes: Vec<Option<Process>>,
    paused_until: Vec<Instant>,
    tick_at: Vec<Option<Instant>>,
    /// When each has looked at its clock last, and how often at that time.
    ticked: Vec<(Instant, u32)>,
    /// The process of each task, if one runs.
    current: Vec<Option<usize>>,
    pipes: Vec<Pipe>,
    by_connection: BTreeMap<(usize, ConnectionId), (usize, usize)>,
    blocked_until: BTreeMap<(usize, usize), Instant>,
    ledger: Shared,
    n_starts: u64,
    is_calm: bool,
}

impl<'s> Network<'s> {
    /// Returns the network of a schedule.
    pub fn new(schedule: &'s Schedule) -> Network<'s> {
        let now = Instant::now();
        let mut network = Network {
            schedule,
            random: Random::new(schedule.seed ^ 0x5eed),
            start: now,
            now,
            steps: BinaryHeap::new(),
            n_steps: 0,
            processes: Vec::new(),
            paused_until: Vec::new(),
            tick_at: Vec::new(),
            ticked: Vec::new(),
            current: vec![None; schedule.n_tasks],
            pipes: Vec::new(),
            by_connection: BTreeMap::new(),
            blocked_until: BTreeMap::new(),
            ledger: Shared::default(),
            n_starts: 0,
            is_calm: false,
        };
        for task in 0..schedule.n_tasks {
            let delay = Duration::from_micros(network.random.below(2_000));
            network.at(now + delay, Step::Start(task));
        }
        for (index, (at_ms, _)) in schedule.actions.iter().enumerate() {
            network.at(now + Duration::from_millis(5 + at_ms), Step::Act(index));
        }
        network
    }

    fn at(&mut self, time: Instant, step: Step) {
        self.n_steps += 1;
        self.steps.push(Reverse((time, self.n_steps, step)));
    }

    fn delay(&mut self) -> Duration {
        Duration::from_micros(1 + self.random.below(self.schedule.max_delay_us))
    }

    /// Runs the schedule and a calm time behind it; says what is broken.
    pub fn run(mut self) -> Result<(), String> {
        let last = self.schedule.actions.last().map_or(0, |(at_ms, _)| *at_ms);
        let storm_ends = self.start + Duration::from_millis(last + 20_000);
        let end = storm_ends + CALM;
        while let Some(Reverse((time, _, step))) = self.steps.pop() {
            if time > end {
                break;
            }
            self.now = time;
            self.is_calm |= time > storm_ends;
            self.step(step)
                .map_err(|broken| format!("after {:?}: {broken}", time - self.start))?;
            if self.n_steps > MAX_STEPS {
                return Err(format!("expected an end, found {MAX_STEPS} steps"));
            }
        }
        self.check_end()
    }

    fn step(&mut self, step: Step) -> Result<(), String> {
        let process = match step {
            Step::Act(index) => return self.act(self.schedule.actions[index].1),
            Step::Start(task) => return self.start(task),
            Step::Deliver(pipe, end) | Step::HearCut(pipe, end) => {
                self.pipes[pipe].ends[end].process
            }
            Step::Connect(process, _) | Step::Tick(process) => process,
            Step::Wake(process) | Step::Answer(process, ..) => process,
        };
        if matches!(step, Step::Tick(_)) && self.tick_at[process] != Some(self.now) {
            return Ok(());
        }
        // Who stands still does all this later, in the same order, and looks at the clock last.
        let until = self.paused_until[process];
        if until > self.now {
            let late = match step {
                Step::Tick(_) => until + Duration::from_nanos(1),
                _ => until,
            };
            if matches!(step, Step::Tick(_)) {
                self.tick_at[process] = Some(late);
            }
            self.at(late, step);
            return Ok(());
        }
        match step {
            Step::Deliver(pipe, end) => self.deliver(pipe, end)?,
            Step::HearCut(pipe, end) => self.hear_cut(pipe, end),
            Step::Connect(process, peer) => self.connect(process, peer)?,
            Step::Tick(process) => self.tick(process)?,
            Step::Answer(process, peer, call) => {
                if let Some(process) = &mut self.processes[process] {
                    process.answer(peer, call)?;
                }
            }
            _ => {}
        }
        self.pump(process)
    }

    fn start(&mut self, task: usize) -> Result<(), String> {
        self.n_starts += 1;
        let incarnation = u128::from(self.random.bits()) << 64 | u128::from(self.random.bits() | 1);
        let process = Process::new(
            task,
            self.schedule.n_tasks,
            incarnation,
            self.schedule.has_secret,
            self.schedule.weather,
            self.now,
        );
        let index = self.processes.len();
        self.processes.push(Some(process));
        self.paused_until.push(self.now);
        self.tick_at.push(None);
        self.ticked.push((self.now, 0));
        self.current[task] = Some(index);
        self.pump(index)
    }

    fn act(&mut self, action: Action) -> Result<(), String> {
        let ms = Duration::from_millis;
        match action {
            Action::Request {
                from,
                to,
                len,
                times,
            } => {
                return self.at_task(from, |process, ledger, now| {
                    (0..times).try_for_each(|_| process.request(to, len, ledger, now))
                });
            }
            Action::Send { from, to, len } => {
                return self.at_task(from, |process, ledger, now| {
                    process.send(to, len, ledger, now)
                });
            }
            Action::Cancel { from } => {
                return self.at_task(from, |process, _, _| {
                    process.cancel();
                    Ok(())
                });
            }
            Action::Abort { from } => {
                return self.at_task(from, |process, _, _| {
                    process.abort();
                    Ok(())
                });
            }
            Action::Cut { one, other, loud } => {
                for pipe in 0..self.pipes.len() {
                    let tasks = self.pipes[pipe].tasks;
                    if tasks == [one, other] || tasks == [other, one] {
                        self.break_pipe(pipe, loud);
                    }
                }
            }
            Action::Block { from, to, ms: time } => {
                let until = self.now + ms(time);
                self.blocked_until.insert((from, to), until);
            }
            Action::Pause { task, ms: time } => {
                if let Some(process) = self.current[task] {
                    self.paused_until[process] = self.now + ms(time);
                    self.at(self.now + ms(time), Step::Wake(process));
                }
            }
            Action::Restart {
                task,
                ms: time,
                loud,
            } => {
                let Some(process) = self.current[task].take() else {
                    return Ok(());
                };
                let is_paused = self.paused_until[process] > self.now;
                if loud && time % 2 == 0 && !is_paused {
                    // It leaves, and says so.
                    let leaving = self.processes[process].as_mut();
                    leaving.expect("it runs").endpoint.leave();
                    self.pump(process)?;
                    self.processes[process] = None;
                    self.at(self.now + ms(time), Step::Start(task));
                    return Ok(());
                }
                self.processes[process] = None;
                for pipe in 0..self.pipes.len() {
                    if self.pipes[pipe]
                        .ends
                        .iter()
                        .any(|end| end.process == process)
                    {
                        self.break_pipe(pipe, loud);
                    }
                }
                self.at(self.now + ms(time), Step::Start(task));
            }
            Action::Replace { task, ms: time } => {
                let Some(process) = self.current[task].take() else {
                    return Ok(());
                };
                self.paused_until[process] = self.now + ms(time);
                self.at(self.now + ms(time), Step::Wake(process));
                let delay = self.delay();
                self.at(self.now + delay, Step::Start(task));
            }
        }
        Ok(())
    }

    /// Lets the process of a task do something, unless it is dead or stands still.
    fn at_task(
        &mut self,
        task: usize,
        work: impl FnOnce(&mut Process, &Shared, Instant) -> Result<(), String>,
    ) -> Result<(), String> {
        let Some(index) = self.current[task] else {
            return Ok(());
        };
        let is_paused = self.paused_until[index] > self.now;
        if let Some(process) = self.processes[index].as_mut().filter(|_| !is_paused) {
            work(process, &self.ledger, self.now)?;
            return self.pump(index);
        }
        Ok(())
    }

    fn tick(&mut self, index: usize) -> Result<(), String> {
        self.tick_at[index] = None;
        let Some(process) = &mut self.processes[index] else {
            return Ok(());
        };
        process.endpoint.tick(self.now);
        for peer in process.endpoint.to_dial(self.now) {
            let delay = Duration::from_micros(1 + self.random.below(self.schedule.max_delay_us));
            self.n_steps += 1;
            let step = Step::Connect(index, peer);
            self.steps
                .push(Reverse((self.now + delay, self.n_steps, step)));
        }
        let since = match self.ticked[index] {
            (at, n) if at == self.now => n + 1,
            _ => 0,
        };
        self.ticked[index] = (self.now, since);
        match since > 10 {
            true => Err(format!(
                "process {index} has something to do again and again"
            )),
            false => Ok(()),
        }
    }

    fn origin(&self) -> Origin {
        match self.schedule.has_secret {
            true => Origin::Network,
            false => [Origin::SameUser, Origin::Loopback][self.schedule.seed as usize % 2],
        }
    }

    fn connect(&mut self, index: usize, peer: PeerId) -> Result<(), String> {
        let origin = self.origin();
        let Some(process) = &mut self.processes[index] else {
            return Ok(());
        };
        let name = process.endpoint.name(peer).to_owned();
        let from = process.task;
        let to = (0..self.schedule.n_tasks).find(|task| super::process::name(*task) == name);
        let to = to.expect("it is one of them");
        let is_blocked = [(from, to), (to, from)].iter().any(|way| {
            let until = self.blocked_until.get(way);
            until.is_some_and(|until| *until > self.now)
        });
        let Some(target) = self.current[to].filter(|_| !is_blocked) else {
            process
                .endpoint
                .dial_failed(peer, self.now, "nobody answers there");
            return Ok(());
        };
        let nonce = |random: &mut Random| {
            let mut nonce = [0; 32];
            nonce.fill_with(|| random.bits() as u8);
            nonce
        };
        let ours = process
            .endpoint
            .dialed(peer, origin, nonce(&mut self.random), self.now);
        let ours = ours.map_err(|error| error.to_string())?;
        let accepted = self.processes[target].as_mut();
        let accepted = accepted.expect("it is there").endpoint.accepted(
            origin,
            nonce(&mut self.random),
            self.now,
        );
        let theirs = accepted.map_err(|error| error.to_string())?;
        let pipe = self.pipes.len();
        let end = |process, connection| End {
            process,
            connection: Some(connection),
            coming: VecDeque::new(),
            n_coming: 0,
            behind: self.now,
            is_ending: false,
            is_broken: false,
        };
        self.pipes.push(Pipe {
            ends: [end(index, ours), end(target, theirs)],
            tasks: [from, to],
        });
        self.by_connection.insert((index, ours), (pipe, 0));
        self.by_connection.insert((target, theirs), (pipe, 1));
        self.pump(index)?;
        self.schedule_tick(target);
        Ok(())
    }

    /// Breaks a pipe: what is on its way is lost; ends hear of it later, or not.
    fn break_pipe(&mut self, pipe: usize, loud: bool) {
        for end in 0..2 {
            let it = &mut self.pipes[pipe].ends[end];
            it.is_broken = true;
            it.coming.clear();
            it.n_coming = 0;
            if loud && it.connection.is_some() {
                let delay = self.delay();
                self.at(self.now + delay, Step::HearCut(pipe, end));
            }
        }
    }

    fn hear_cut(&mut self, pipe: usize, end: usize) {
        let it = &mut self.pipes[pipe].ends[end];
        let Some(connection) = it.connection.take() else {
            return;
        };
        let index = it.process;
        self.by_connection.remove(&(index, connection));
        if let Some(process) = &mut self.processes[index] {
            process
                .endpoint
                .cut(connection, self.now, "the connection was reset");
        }
    }

    fn deliver(&mut self, pipe: usize, end: usize) -> Result<(), String> {
        let tasks = self.pipes[pipe].tasks;
        let way = (tasks[1 - end], tasks[end]);
        if let Some(until) = self
            .blocked_until
            .get(&way)
            .filter(|until| **until > self.now)
        {
            let until = *until;
            self.at(until, Step::Deliver(pipe, end));
            return Ok(());
        }
        let it = &mut self.pipes[pipe].ends[end];
        let Some((_, bytes)) = it.coming.pop_front() else {
            if it.is_ending {
                self.hear_cut(pipe, end);
            }
            return Ok(());
        };
        it.n_coming -= bytes.len();
        let (index, connection) = (it.process, it.connection);
        let (Some(connection), Some(process)) = (connection, &mut self.processes[index]) else {
            return Ok(());
        };
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let [first, second] = process.endpoint.space(connection);
            let n = first.len().min(rest.len());
            first[..n].copy_from_slice(&rest[..n]);
            let m = second.len().min(rest.len() - n);
            second[..m].copy_from_slice(&rest[n..n + m]);
            if n + m == 0 {
                // It is to be closed.
                break;
            }
            rest = &rest[n + m..];
            process.endpoint.filled(connection, n + m, self.now);
        }
        // The other side has room again.
        let other = self.pipes[pipe].ends[1 - end].process;
        self.pump(other)
    }

    /// Moves what a process has to write into pipes, and tells what has happened there.
    fn pump(&mut self, index: usize) -> Result<(), String> {
        if self.paused_until[index] > self.now {
            return Ok(());
        }
        loop {
            let Some(process) = &mut self.processes[index] else {
                return Ok(());
            };
            let asked = process.hear(&self.ledger)?;
            for (peer, call, number) in asked {
                let delay = match number % 3 {
                    0 => Duration::ZERO,
                    1 => self.delay(),
                    _ => Duration::from_millis(self.random.below(3_000)),
                };
                self.at(self.now + delay, Step::Answer(index, peer, call));
            }
            let Some(process) = &mut self.processes[index] else {
                return Ok(());
            };
            process.endpoint.take_changed();
            let mine = (index, ConnectionId(0))..(index + 1, ConnectionId(0));
            let mine: Vec<_> = self
                .by_connection
                .range(mine)
                .map(|(key, at)| (key.1, *at))
                .collect();
            let mut moved = false;
            for (connection, (pipe, end)) in mine {
                moved |= self.write(index, connection, pipe, end);
            }
            if !moved {
                break;
            }
        }
        self.schedule_tick(index);
        Ok(())
    }

    /// Writes what fits into a pipe; returns whether something was done.
    fn write(&mut self, index: usize, connection: ConnectionId, pipe: usize, end: usize) -> bool {
        let mut moved = false;
        loop {
            let Some(process) = &mut self.processes[index] else {
                return moved;
            };
            let is_full = self.pipes[pipe].ends[1 - end].n_coming >= PIPE_BYTES;
            let frame = match is_full {
                true => None,
                false => process.endpoint.next_frame(connection, self.now),
            };
            let Some(frame) = frame else { break };
            moved = true;
            let bytes = frame.to_bytes();
            // A frame can come twice only if somebody sends it again; handshakes are not sent again.
            let kind = u16::from_le_bytes([bytes[6], bytes[7]]);
            let is_plain = !Kind::ALL[usize::from(kind) - 1].is_of_handshake();
            let is_rough = self.schedule.weather != Weather::Calm && !self.is_calm && is_plain;
            let n_times = 1 + usize::from(is_rough && self.random.chance(4));
            for _ in 0..n_times {
                self.put(pipe, 1 - end, bytes.clone(), is_rough);
            }
        }
        let process = self.processes[index].as_mut().expect("it is there");
        if process.endpoint.is_closing(connection) {
            process.endpoint.cut(connection, self.now, "closed");
            self.by_connection.remove(&(index, connection));
            self.pipes[pipe].ends[end].connection = None;
            let other = &mut self.pipes[pipe].ends[1 - end];
            other.is_ending = true;
            let behind = other.behind.max(self.now) + Duration::from_micros(1);
            if !other.is_broken {
                self.at(behind, Step::Deliver(pipe, 1 - end));
            }
            return true;
        }
        moved
    }

    /// Puts bytes on their way to one end, in pieces.
    fn put(&mut self, pipe: usize, end: usize, mut bytes: Vec<u8>, is_rough: bool) {
        if self.pipes[pipe].ends[end].is_broken {
            return;
        }
        // What the kernel copies is not summed, and comes as it was.
        if is_rough && self.origin() == Origin::Network && self.random.chance(1) {
            let at = self.random.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << self.random.below(8);
        }
        while !bytes.is_empty() {
            let most = match self.random.below(4) {
                0 => 1 + self.random.below(2 * HEADER_BYTES as u64) as usize,
                _ => 1 + self.random.below(300_000) as usize,
            };
            let rest = bytes.split_off(most.min(bytes.len()));
            let delay = self.delay();
            let it = &mut self.pipes[pipe].ends[end];
            it.behind = it.behind.max(self.now + delay);
            let at = it.behind;
            it.n_coming += bytes.len();
            it.coming.push_back((at, bytes));
            self.at(at, Step::Deliver(pipe, end));
            bytes = rest;
        }
    }

    fn schedule_tick(&mut self, index: usize) {
        let Some(process) = &self.processes[index] else {
            return;
        };
        let Some(next) = process.endpoint.next_deadline() else {
            return;
        };
        let next = next.max(self.now);
        if self.tick_at[index].is_none_or(|at| at > next) {
            self.tick_at[index] = Some(next);
            self.at(next, Step::Tick(index));
        }
    }

    fn check_end(&self) -> Result<(), String> {
        for (index, process) in self.processes.iter().enumerate() {
            if let Some(process) = process {
                // Of two processes with one name, who is heard last is taken for the task.
                let replaced = |task: usize| {
                    let actions = self.schedule.actions.iter();
                    let mut replaced = actions.filter_map(|(_, action)| match action {
                        Action::Replace { task, .. } => Some(*task),
                        _ => None,
                    });
                    replaced.any(|found| found == task)
                };
                let is_current = self.current[process.task] == Some(index);
                let reachable = (0..self.schedule.n_tasks).filter(|task| {
                    let tasks = [*task, process.task];
                    is_current && task != &process.task && !tasks.into_iter().any(replaced)
                });
                process.check_end(&reachable.collect::<Vec<usize>>())?;
            }
        }
        let ledger = lock(&self.ledger);
        match ledger.never_ran.intersection(&ledger.ran).next() {
            Some(number) => Err(format!(
                "request {number} ran, though it is said that it did not"
            )),
            None => Ok(()),
        }
    }
}
