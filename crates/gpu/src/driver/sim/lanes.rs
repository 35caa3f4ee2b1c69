//! Runs kernels: the threads of a block as lanes, all of which have each register.
//!
//! Lanes go on together while they are at one instruction. Where they part, those at the lowest one run first, until they
//! meet the others: so all threads of a block reach a barrier before one passes it, or it is told that they don't.

use super::findings::FindingKind;
use super::memory::{Access, CommandId, Memory, Trap};
use super::ptx::{Instruction, Kernel, Kind, Op, Operand, Shuffle, Space, Special};
use crate::driver::Grid;

mod arithmetic;
mod shared;

use shared::Shared;

/// The most instructions that a block may run: more are taken as a loop without end.
const MOST_STEPS: u64 = 200_000_000;

/// The threads of a warp.
const WARP: usize = 32;

/// Runs a kernel, block by block; returns how many instructions its threads ran.
pub(super) fn run(
    kernel: &Kernel,
    grid: &Grid,
    parameters: &[u8],
    memory: &mut Memory,
    command: CommandId,
) -> Result<u64, Trap> {
    let [nx, ny, nz] = grid.threads;
    let n_lanes = (nx * ny * nz) as usize;
    let mut block = Block {
        kernel,
        grid,
        parameters,
        memory,
        command,
        n_lanes,
        at: [0; 3],
        registers: vec![0; kernel.n_registers * n_lanes],
        counters: vec![0; n_lanes],
        shared: Shared::new(kernel.shared_bytes + grid.shared_bytes as usize),
        n_steps: 0,
        n_before: 0,
    };
    for z in 0..grid.blocks[2] {
        for y in 0..grid.blocks[1] {
            for x in 0..grid.blocks[0] {
                block.at = [x, y, z];
                block.run()?;
            }
        }
    }
    Ok(block.n_steps)
}

/// A block of threads.
struct Block<'r> {
    kernel: &'r Kernel,
    grid: &'r Grid,
    parameters: &'r [u8],
    memory: &'r mut Memory,
    command: CommandId,
    n_lanes: usize,
    at: [u32; 3],
    // Of each register its value in all lanes.
    registers: Vec<u64>,
    // The next instruction of each lane; `DONE` if there is none.
    counters: Vec<usize>,
    shared: Shared,
    n_steps: u64,
    // Those of earlier blocks.
    n_before: u64,
}

const DONE: usize = usize::MAX;

impl Block<'_> {
    fn run(&mut self) -> Result<(), Trap> {
        self.registers.fill(0);
        self.counters.fill(0);
        self.shared.begin();
        self.n_before = self.n_steps;
        let mut active: Vec<usize> = (0..self.n_lanes).collect();
        loop {
            let Some(&lowest) = self.counters.iter().min().filter(|at| **at != DONE) else {
                return Ok(());
            };
            active.clear();
            active.extend((0..self.n_lanes).filter(|lane| self.counters[*lane] == lowest));
            // Others wait there.
            let others = self.counters.iter().filter(|at| **at != lowest).min();
            let meet = others.copied().unwrap_or(DONE);
            self.run_together(&active, lowest, meet)?;
        }
    }

    /// Runs lanes from an instruction on until they part, end or meet others.
    fn run_together(&mut self, active: &[usize], mut at: usize, meet: usize) -> Result<(), Trap> {
        let code = &self.kernel.code;
        while at < meet {
            let Some(instruction) = code.get(at) else {
                return Err(self.trap("runs beyond its end", at));
            };
            self.n_steps += active.len() as u64;
            if self.n_steps - self.n_before > MOST_STEPS {
                return Err(self.trap("runs without end", at));
            }
            at += 1;
            match instruction.op {
                Op::Branch(_) | Op::Return => {
                    let target = match instruction.op {
                        Op::Branch(target) => target,
                        _ => DONE,
                    };
                    let mut n_taken = 0;
                    for &lane in active {
                        let is_taken = self.passes(instruction, lane);
                        n_taken += usize::from(is_taken);
                        self.counters[lane] = if is_taken { target } else { at };
                    }
                    match n_taken {
                        0 => continue,
                        // All of them went on, and nobody is to be met on the way.
                        n if n == active.len() && target != DONE && meet == DONE => at = target,
                        _ => return Ok(()),
                    }
                }
                Op::Barrier => {
                    let n_live = self.counters.iter().filter(|at| **at != DONE).count();
                    if active.len() != n_live {
                        let text = format!("{} of {n_live} threads reach a barrier", active.len());
                        return Err(self.find(FindingKind::Divergence, &text, at - 1));
                    }
                    self.shared.barrier();
                }
                Op::Shuffle(kind) => self.shuffle(instruction, kind, active, at - 1)?,
                _ => self.step(instruction, active, at - 1)?,
            }
        }
        for &lane in active {
            self.counters[lane] = at;
        }
        Ok(())
    }

    /// Returns whether a lane does what an instruction says.
    fn passes(&self, instruction: &Instruction, lane: usize) -> bool {
        instruction.guard.is_none_or(|(register, is_not)| {
            (self.registers[usize::from(register) * self.n_lanes + lane] != 0) != is_not
        })
    }

    fn step(&mut self, instruction: &Instruction, active: &[usize], at: usize) -> Result<(), Trap> {
        let kind = instruction.kind;
        for &lane in active {
            if !self.passes(instruction, lane) {
                continue;
            }
            match instruction.op {
                Op::LoadParameter => {
                    let offset = self.value(instruction.operands[0], lane) as usize;
                    for (index, &to) in instruction.to.iter().enumerate() {
                        let bytes = offset + index * kind.len()..;
                        let bytes = self
                            .parameters
                            .get(bytes)
                            .and_then(|bytes| bytes.get(..kind.len()));
                        let Some(value) = bytes.map(word) else {
                            return Err(self.trap("reads beyond its parameters", at));
                        };
                        self.set(to, lane, value);
                    }
                }
                Op::Load(space) => {
                    let address = self.address(instruction, lane);
                    for (index, &to) in instruction.to.iter().enumerate() {
                        let address = address + (index * kind.len()) as u64;
                        let value = self.load(space, address, kind.len(), lane, at)?;
                        self.set(to, lane, value);
                    }
                }
                Op::Store(space) => {
                    let address = self.address(instruction, lane);
                    for (index, &from) in instruction.operands[2..].iter().enumerate() {
                        let value = self.value(from, lane);
                        let address = address + (index * kind.len()) as u64;
                        self.store(space, address, kind.len(), value, lane, at)?;
                    }
                }
                Op::Split => {
                    let (value, width) =
                        (self.value(instruction.operands[0], lane), 4 * kind.len());
                    self.set(instruction.to[0], lane, value & ((1 << width) - 1));
                    self.set(instruction.to[1], lane, value >> width);
                }
                _ => {
                    let operand = |index: usize| match instruction.operands.get(index) {
                        Some(operand) => self.value(*operand, lane),
                        None => 0,
                    };
                    let operands = [operand(0), operand(1), operand(2), operand(3)];
                    let Some(value) = arithmetic::value(instruction, operands) else {
                        let word =
                            format!("does what is not known for {kind:?}: {:?}", instruction.op);
                        return Err(self.trap(&word, at));
                    };
                    self.set(instruction.to[0], lane, value);
                }
            }
        }
        Ok(())
    }

    fn shuffle(
        &mut self,
        instruction: &Instruction,
        kind: Shuffle,
        active: &[usize],
        at: usize,
    ) -> Result<(), Trap> {
        let mut given = vec![None; self.n_lanes];
        for &lane in active {
            given[lane] = Some(self.value(instruction.operands[0], lane));
        }
        for &lane in active {
            let own = lane % WARP;
            let by = self.value(instruction.operands[1], lane) as usize;
            let other = match kind {
                Shuffle::Butterfly => own ^ by,
                Shuffle::Down => own + by,
                Shuffle::Up => own.wrapping_sub(by),
                Shuffle::Index => by,
            };
            let members = self.value(instruction.operands[3], lane);
            let first = lane - own;
            let missing = (0..WARP).find(|one| {
                members >> one & 1 == 1 && given.get(first + one).is_none_or(Option::is_none)
            });
            if let Some(missing) = missing {
                let text = format!("thread {} is missing in an exchange", first + missing);
                return Err(self.find(FindingKind::Divergence, &text, at));
            }
            let value = match other < WARP {
                true => given[first + other],
                // Beyond the warp a thread keeps its own.
                false => given[lane],
            };
            self.set(instruction.to[0], lane, value.unwrap_or(0));
        }
        Ok(())
    }

    fn address(&self, instruction: &Instruction, lane: usize) -> u64 {
        let base = self.value(instruction.operands[0], lane);
        base.wrapping_add(self.value(instruction.operands[1], lane))
    }

    fn load(
        &mut self,
        space: Space,
        address: u64,
        len: usize,
        lane: usize,
        at: usize,
    ) -> Result<u64, Trap> {
        self.expect_aligned(address, len, at)?;
        match space {
            Space::Global => {
                let bytes = self.memory.access(self.command, Access::Read, address, len);
                bytes
                    .map(|bytes| word(bytes))
                    .map_err(|trap| self.at_line(trap, at))
            }
            Space::Shared => match self.shared.access(address, len, lane, Access::Read) {
                Ok(bytes) => Ok(word(bytes)),
                Err((kind, text)) => Err(self.find(kind, &text, at)),
            },
        }
    }

    fn store(
        &mut self,
        space: Space,
        address: u64,
        len: usize,
        value: u64,
        lane: usize,
        at: usize,
    ) -> Result<(), Trap> {
        self.expect_aligned(address, len, at)?;
        let value = value.to_le_bytes();
        let bytes = match space {
            Space::Global => match self
                .memory
                .access(self.command, Access::Write, address, len)
            {
                Ok(bytes) => bytes,
                Err(trap) => return Err(self.at_line(trap, at)),
            },
            Space::Shared => match self.shared.access(address, len, lane, Access::Write) {
                Ok(bytes) => bytes,
                Err((kind, text)) => return Err(self.find(kind, &text, at)),
            },
        };
        bytes.copy_from_slice(&value[..len]);
        Ok(())
    }

    fn expect_aligned(&mut self, address: u64, len: usize, at: usize) -> Result<(), Trap> {
        if address.is_multiple_of(len as u64) {
            return Ok(());
        }
        let text = format!("the address {address:#x} is no multiple of {len}");
        Err(self.find(FindingKind::Misaligned, &text, at))
    }

    fn value(&self, operand: Operand, lane: usize) -> u64 {
        match operand {
            Operand::Register(register) => {
                self.registers[usize::from(register) * self.n_lanes + lane]
            }
            Operand::Immediate(value) => value,
            Operand::Special(special) => {
                let [nx, ny, _] = self.grid.threads;
                let lane = lane as u32;
                let thread = [lane % nx, lane / nx % ny, lane / nx / ny];
                u64::from(match special {
                    Special::Thread(axis) => thread[usize::from(axis)],
                    Special::Threads(axis) => self.grid.threads[usize::from(axis)],
                    Special::Block(axis) => self.at[usize::from(axis)],
                    Special::Blocks(axis) => self.grid.blocks[usize::from(axis)],
                    Special::Lane => lane % WARP as u32,
                })
            }
        }
    }

    fn set(&mut self, register: u16, lane: usize, value: u64) {
        self.registers[usize::from(register) * self.n_lanes + lane] = value;
    }

    fn place(&self, at: usize) -> String {
        let line = self
            .kernel
            .code
            .get(at)
            .map_or(0, |instruction| instruction.line);
        format!(
            "line {line} of kernel {}, block {:?}",
            self.kernel.name, self.at
        )
    }

    fn trap(&self, what: &str, at: usize) -> Trap {
        Trap(format!("{}: {what}", self.place(at)))
    }

    fn at_line(&self, trap: Trap, at: usize) -> Trap {
        Trap(format!("{}: {}", self.place(at), trap.0))
    }

    fn find(&mut self, kind: FindingKind, what: &str, at: usize) -> Trap {
        let trap = self.trap(what, at);
        self.memory.find(kind, trap.0.clone());
        trap
    }
}

/// Returns up to eight bytes as a number.
fn word(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}

impl Kind {
    /// Returns the bits of a register that a value of the type has.
    fn mask(self) -> u64 {
        match self.len() {
            8 => u64::MAX,
            len => (1 << (8 * len)) - 1,
        }
    }
}
