//! [`Memory`]: the memory of simulated devices, and what is known of each of its bytes.
//!
//! Addresses are made up. Blocks have guards between them, and none is used twice, so that every address tells what it
//! belonged to. Beside each byte stand the command that wrote it last and the one that read it since.

use std::collections::HashMap;

use super::clock::{Clock, Epoch};
use super::findings::{Finding, FindingKind};

/// Where addresses begin.
const BASE: u64 = 0x7f00_0000_0000;

/// Bytes between blocks that belong to none.
const GUARD: u64 = 4096;

/// Multiple of every address.
const ALIGNMENT: u64 = 256;

const WRITTEN: u8 = 1;
const GIVEN: u8 = 2;

/// The number of a command; 0 is none.
pub(super) type CommandId = u32;

/// A command, as the checks see it.
#[derive(Clone, Debug)]
pub(super) struct CommandInfo {
    pub(super) epoch: Epoch,
    pub(super) clock: Clock,
    pub(super) context: u64,
    pub(super) name: String,
}

/// A block of a device's memory.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) base: u64,
    pub(super) len: usize,
    pub(super) context: u64,
    pub(super) is_freed: bool,
    bytes: Vec<u8>,
    flags: Vec<u8>,
    writer: Vec<CommandId>,
    reader: Vec<CommandId>,
    // Readers beside the one that `reader` names.
    readers: HashMap<usize, Vec<CommandId>>,
    // The last command of each stream that used it.
    uses: HashMap<usize, CommandId>,
}

/// How a command uses bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// An access that did not happen.
#[derive(Debug)]
pub(super) struct Trap(pub(super) String);

/// The memory of all devices.
#[derive(Debug, Default)]
pub(super) struct Memory {
    // Invariant: by address.
    blocks: Vec<Block>,
    last: usize,
    pub(super) commands: Vec<CommandInfo>,
    pub(super) findings: Vec<Finding>,
}

impl Memory {
    /// Makes a block, whose bytes are poison.
    pub(super) fn allocate(&mut self, context: u64, len: usize, poison: u8) -> u64 {
        let base = self.blocks.last().map_or(BASE, |last| {
            (last.base + last.len as u64 + GUARD).next_multiple_of(ALIGNMENT)
        });
        self.blocks.push(Block {
            base,
            len,
            context,
            is_freed: false,
            bytes: vec![poison; len],
            flags: vec![0; len],
            writer: vec![0; len],
            reader: vec![0; len],
            readers: HashMap::new(),
            uses: HashMap::new(),
        });
        base
    }

    /// Frees a block. `host` is what the host knows: every use must be before.
    pub(super) fn free(&mut self, base: u64, host: &Clock) -> Option<&Block> {
        let at = self
            .blocks
            .binary_search_by_key(&base, |block| block.base)
            .ok()?;
        if self.blocks[at].is_freed {
            return None;
        }
        let used = self.blocks[at]
            .uses
            .values()
            .find(|id| !self.info(**id).epoch.is_before(host));
        if let Some(id) = used {
            let text = format!(
                "the block at {base:#x} is freed while {} may run",
                self.info(*id).name
            );
            self.find(FindingKind::FreedInUse, text);
        }
        let block = &mut self.blocks[at];
        block.is_freed = true;
        (block.bytes, block.flags, block.writer, block.reader) = Default::default();
        block.readers = HashMap::new();
        Some(&self.blocks[at])
    }

    /// Gives a block its bytes, as the host has written them.
    pub(super) fn set(&mut self, base: u64, bytes: &[u8]) {
        if let Some(block) = self.block_at(base) {
            block.bytes.copy_from_slice(bytes);
            block.flags.fill(WRITTEN);
            block.writer.fill(0);
            block.reader.fill(0);
            block.readers.clear();
            block.uses.clear();
        }
    }

    /// Gives the host the bytes of a block, which commands must not use from then on. `host` is what the host knows: every
    /// use must be before.
    pub(super) fn get(&mut self, base: u64, host: &Clock) -> Vec<u8> {
        let Some(block) = self.block_at(base) else {
            return Vec::new();
        };
        let bytes = block.bytes.clone();
        block.flags.fill(GIVEN);
        let uses: Vec<CommandId> = block.uses.values().copied().collect();
        let used = uses
            .into_iter()
            .find(|id| !self.info(*id).epoch.is_before(host));
        if let Some(id) = used {
            let text = format!(
                "the host takes the pinned buffer at {base:#x} back while {} may run",
                self.info(id).name
            );
            self.find(FindingKind::Race, text);
        }
        bytes
    }

    fn block_at(&mut self, base: u64) -> Option<&mut Block> {
        let at = self.blocks.binary_search_by_key(&base, |block| block.base);
        at.ok().map(|at| &mut self.blocks[at])
    }

    /// Returns the blocks that are not freed.
    pub(super) fn live(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(|block| !block.is_freed)
    }

    /// Notes a finding, unless it was found before.
    pub(super) fn find(&mut self, kind: FindingKind, text: String) {
        let finding = Finding { kind, text };
        if self.findings.len() < 1000 && !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    pub(super) fn info(&self, id: CommandId) -> &CommandInfo {
        &self.commands[id as usize - 1]
    }

    /// Returns the block and the place in it of an access, which is checked.
    fn locate(&mut self, id: CommandId, address: u64, len: usize) -> Result<(usize, usize), Trap> {
        let holds = |block: &Block| {
            block.base <= address && address + len as u64 <= block.base + block.len as u64
        };
        let at = match self.blocks.get(self.last) {
            Some(block) if holds(block) => self.last,
            _ => self
                .blocks
                .partition_point(|block| block.base <= address)
                .wrapping_sub(1),
        };
        let name = || self.info(id).name.clone();
        let Some(block) = self.blocks.get(at) else {
            let text = format!(
                "{} uses {len} bytes at {address:#x}, where no memory is",
                name()
            );
            self.find(FindingKind::OutOfBounds, text.clone());
            return Err(Trap(text));
        };
        if !holds(block) {
            let beyond = address.wrapping_sub(block.base);
            let text = format!(
                "{} uses {len} bytes at {beyond} of the block at {:#x}, which has {}",
                name(),
                block.base,
                block.len
            );
            self.find(FindingKind::OutOfBounds, text.clone());
            return Err(Trap(text));
        }
        if block.is_freed {
            let text = format!(
                "{} uses the block at {:#x}, which was freed",
                name(),
                block.base
            );
            self.find(FindingKind::UseAfterFree, text.clone());
            return Err(Trap(text));
        }
        if block.context != self.info(id).context {
            let text = format!(
                "{} uses the block at {:#x} of another context",
                name(),
                block.base
            );
            self.find(FindingKind::WrongContext, text.clone());
            return Err(Trap(text));
        }
        self.last = at;
        Ok((at, (address - block.base) as usize))
    }

    /// Checks an access of a command to bytes, and remembers it; returns the bytes.
    pub(super) fn access(
        &mut self,
        id: CommandId,
        access: Access,
        address: u64,
        len: usize,
    ) -> Result<&mut [u8], Trap> {
        let (at, start) = self.locate(id, address, len)?;
        let info = &self.commands[id as usize - 1];
        let block = &mut self.blocks[at];
        block.uses.insert(info.epoch.index, id);
        let (mut race, mut given, mut unwritten) = (None, false, false);
        // What was ordered for the byte before is mostly ordered for the next.
        let mut known = [0; 2];
        let commands = &self.commands;
        let mut is_before = |other: CommandId, which: usize| {
            if other == 0 || other == id || other == known[which] {
                return true;
            }
            known[which] = other;
            let ordered = commands[other as usize - 1].epoch.is_before(&info.clock);
            if !ordered {
                race = Some(other);
            }
            ordered
        };
        for byte in start..start + len {
            given |= block.flags[byte] & GIVEN != 0;
            is_before(block.writer[byte], 0);
            if access == Access::Read {
                unwritten |= block.flags[byte] & WRITTEN == 0;
                let reader = block.reader[byte];
                if reader == 0
                    || reader == id
                    || commands[reader as usize - 1].epoch.is_before(&info.clock)
                {
                    block.reader[byte] = id;
                } else {
                    let others = block.readers.entry(byte).or_default();
                    if !others.contains(&id) {
                        others.push(id);
                    }
                }
                continue;
            }
            is_before(block.reader[byte], 1);
            if !block.readers.is_empty() {
                for other in block.readers.remove(&byte).unwrap_or_default() {
                    is_before(other, 1);
                }
            }
            block.flags[byte] |= WRITTEN;
            block.writer[byte] = id;
            block.reader[byte] = 0;
        }
        let base = block.base;
        let place = format_args!("at {start} of the block at {base:#x}").to_string();
        if let Some(other) = race {
            let text = format!(
                "{} {}s {place}, which {} used, and neither waits for the other",
                self.info(id).name,
                if access == Access::Read {
                    "read"
                } else {
                    "write"
                },
                self.info(other).name
            );
            self.find(FindingKind::Race, text);
        }
        if given {
            let text = format!(
                "{} uses what lies {place}, which was given back",
                self.info(id).name
            );
            self.find(FindingKind::UseAfterFree, text);
        }
        if unwritten {
            let text = format!(
                "{} reads what lies {place}, which nobody has written",
                self.info(id).name
            );
            self.find(FindingKind::Uninitialised, text);
        }
        Ok(&mut self.blocks[at].bytes[start..start + len])
    }

    /// Marks bytes as taken (then nobody has written them) or given back, which is as a write to all others.
    pub(super) fn mark(
        &mut self,
        id: CommandId,
        address: u64,
        len: usize,
        is_taken: bool,
    ) -> Result<(), Trap> {
        let (at, start) = self.locate(id, address, len)?;
        for flags in &mut self.blocks[at].flags[start..start + len] {
            *flags &= !GIVEN;
        }
        self.access(id, Access::Write, address, len)?;
        for flags in &mut self.blocks[at].flags[start..start + len] {
            *flags = if is_taken { 0 } else { GIVEN };
        }
        Ok(())
    }
}
