//! [`Queues`]: the streams of simulated devices, and the order in which their commands run.

use std::collections::VecDeque;
use std::sync::Arc;

use super::clock::{Clock, Epoch};
use super::exchange::Part;
use super::graph::Capture;
use super::library::Using;
use super::memory::{Access, CommandId, Memory, Trap};
use super::ptx::Module;
use super::{Policy, lanes};
use crate::driver::library::LibraryCall;
use crate::driver::{Fill, Grid, Note, Transfer};

/// A command of a stream.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) id: CommandId,
    pub(super) epoch: Epoch,
    pub(super) work: Work,
}

/// The work of a command.
#[derive(Debug)]
pub(super) enum Work {
    Copy(Transfer),
    Fill {
        at: u64,
        value: Fill,
        n: usize,
    },
    Launch {
        module: Arc<Module>,
        kernel: usize,
        grid: Grid,
        parameters: Vec<u8>,
    },
    Record,
    /// Waits until a command is done.
    Wait(Epoch),
    Note(Note),
    Call(Box<LibraryCall>),
    /// A member of a group reads what it gives.
    Give(Part),
    /// It writes what it gets.
    Take(Part),
}

/// A stream.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) context: u64,
    pub(super) is_destroyed: bool,
    pub(super) clock: Clock,
    // What it records while it captures.
    pub(super) capture: Option<Capture>,
    commands: VecDeque<Command>,
    // The number of the last command that is done.
    n_done: u32,
}

/// A right of the host that a copy keeps until the host has learned that it is over.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) epoch: Epoch,
    pub(super) context: u64,
    _transfer: Transfer,
}

/// All streams.
#[derive(Debug)]
pub(super) struct Queues {
    pub(super) all: Vec<Queue>,
    pub(super) kept: Vec<Kept>,
    pub(super) policy: Policy,
    random: u64,
}

impl Queues {
    pub(super) fn new(policy: Policy, seed: u64) -> Queues {
        Queues {
            all: Vec::new(),
            kept: Vec::new(),
            policy,
            random: seed.wrapping_mul(2).wrapping_add(1),
        }
    }

    pub(super) fn add(&mut self, context: u64) -> usize {
        self.all.push(Queue {
            context,
            is_destroyed: false,
            clock: Clock::default(),
            capture: None,
            commands: VecDeque::new(),
            n_done: 0,
        });
        self.all.len() - 1
    }

    /// Returns the next random number below a bound.
    pub(super) fn draw(&mut self, below: usize) -> usize {
        // xorshift64*
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % below.max(1)
    }

    pub(super) fn push(&mut self, stream: usize, command: Command) {
        self.all[stream].commands.push_back(command);
    }

    pub(super) fn is_done(&self, epoch: Epoch) -> bool {
        self.all[epoch.index - 1].n_done >= epoch.number
    }

    pub(super) fn is_idle(&self, stream: usize) -> bool {
        self.all[stream].commands.is_empty()
    }

    /// Lets commands run as the policy wants it between two calls.
    pub(super) fn go_on(&mut self, memory: &mut Memory) -> Result<(), (u64, Trap)> {
        let n = match self.policy {
            Policy::Eager => usize::MAX,
            Policy::Lazy => 0,
            Policy::Random | Policy::LongestFirst | Policy::Starving(_) => self.draw(4),
        };
        self.run(n, memory).map(|_| ())
    }

    /// Runs so many commands, fewer if none is ready; returns how many.
    pub(super) fn run(&mut self, n: usize, memory: &mut Memory) -> Result<usize, (u64, Trap)> {
        for n_run in 0..n {
            let ready: Vec<usize> = (0..self.all.len())
                .filter(|stream| self.is_ready(*stream))
                .collect();
            let Some(stream) = self.choose(&ready) else {
                return Ok(n_run);
            };
            let Some(mut command) = self.all[stream].commands.pop_front() else {
                return Ok(n_run);
            };
            let context = self.all[stream].context;
            let ran = perform(&mut command, memory);
            self.all[stream].n_done = command.epoch.number;
            if let Work::Copy(transfer) = command.work {
                self.kept.push(Kept {
                    epoch: command.epoch,
                    context,
                    _transfer: transfer,
                });
            }
            ran.map_err(|trap| (context, trap))?;
        }
        Ok(n)
    }

    fn is_ready(&self, stream: usize) -> bool {
        self.all[stream]
            .commands
            .front()
            .is_some_and(|command| match command.work {
                Work::Wait(epoch) => self.is_done(epoch),
                _ => true,
            })
    }

    fn choose(&mut self, ready: &[usize]) -> Option<usize> {
        match self.policy {
            Policy::Eager | Policy::Lazy => ready.first().copied(),
            Policy::LongestFirst => ready
                .iter()
                .copied()
                .max_by_key(|stream| self.all[*stream].commands.len()),
            Policy::Starving(starved) => {
                let others: Vec<usize> = ready
                    .iter()
                    .copied()
                    .filter(|stream| *stream != starved)
                    .collect();
                let at = self.draw(others.len());
                others.get(at).or(ready.first()).copied()
            }
            Policy::Random => {
                let at = self.draw(ready.len());
                ready.get(at).copied()
            }
        }
    }

    /// Drops the commands of a lost context.
    pub(super) fn lose(&mut self, context: u64) {
        for queue in self.all.iter_mut().filter(|queue| queue.context == context) {
            if let Some(last) = queue.commands.back() {
                queue.n_done = last.epoch.number;
            }
            queue.commands.clear();
            queue.capture = None;
        }
        self.kept.retain(|kept| kept.context != context);
    }
}

fn perform(command: &mut Command, memory: &mut Memory) -> Result<(), Trap> {
    let id = command.id;
    match &mut command.work {
        Work::Record | Work::Wait(_) => Ok(()),
        Work::Call(call) => Using { memory, id }.run(call),
        Work::Give(part) => Using { memory, id }.give(part),
        Work::Take(part) => Using { memory, id }.take(part),
        Work::Note(Note::Take(at, len)) => memory.mark(id, at.0, *len, true),
        Work::Note(Note::Give(at, len)) => memory.mark(id, at.0, *len, false),
        Work::Copy(Transfer::Up { from, to }) => {
            if !from.is_empty() {
                memory
                    .access(id, Access::Write, to.0, from.len())?
                    .copy_from_slice(from);
            }
            Ok(())
        }
        Work::Copy(Transfer::Down { from, to }) => {
            if to.len_bytes() != 0 {
                let bytes = memory.access(id, Access::Read, from.0, to.len_bytes())?;
                to.copy_from_slice(bytes);
            }
            Ok(())
        }
        Work::Copy(Transfer::Within {
            from,
            to,
            len_bytes,
        }) => {
            if *len_bytes == 0 {
                return Ok(());
            }
            let bytes = memory
                .access(id, Access::Read, from.0, *len_bytes)?
                .to_vec();
            memory
                .access(id, Access::Write, to.0, *len_bytes)?
                .copy_from_slice(&bytes);
            Ok(())
        }
        Work::Fill { at, value, n } => {
            if *n == 0 {
                return Ok(());
            }
            let bytes = memory.access(id, Access::Write, *at, *n * value.len_bytes())?;
            match value {
                Fill::Byte(value) => bytes.fill(*value),
                Fill::Half(value) => bytes
                    .chunks_exact_mut(2)
                    .for_each(|one| one.copy_from_slice(&value.to_le_bytes())),
                Fill::Word(value) => bytes
                    .chunks_exact_mut(4)
                    .for_each(|one| one.copy_from_slice(&value.to_le_bytes())),
            }
            Ok(())
        }
        Work::Launch {
            module,
            kernel,
            grid,
            parameters,
        } => lanes::run(&module.kernels[*kernel], grid, parameters, memory, id).map(|_| ()),
    }
}
