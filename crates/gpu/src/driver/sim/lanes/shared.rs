//! [`Shared`]: the shared memory of a block, and who used each byte since the last barrier.

use super::super::findings::FindingKind;
use super::super::memory::Access;
use super::super::ptx::SHARED_BASE;

/// Shared memory of one block.
pub(super) struct Shared {
    bytes: Vec<u8>,
    // Of each byte: whether it was written, and who wrote and read it in which phase.
    is_written: Vec<bool>,
    writer: Vec<Use>,
    reader: Vec<Use>,
    phase: u32,
}

/// A thread in a phase between two barriers; of readers also "several".
#[derive(Clone, Copy, PartialEq, Eq)]
struct Use {
    phase: u32,
    lane: u32,
}

const SEVERAL: u32 = u32::MAX;

impl Shared {
    pub(super) fn new(len: usize) -> Shared {
        let never = Use { phase: 0, lane: 0 };
        Shared {
            bytes: vec![0; len],
            is_written: vec![false; len],
            writer: vec![never; len],
            reader: vec![never; len],
            phase: 0,
        }
    }

    /// Begins a block: nothing is written.
    pub(super) fn begin(&mut self) {
        self.bytes.fill(0xa5);
        self.is_written.fill(false);
        self.phase += 1;
    }

    /// Begins a phase: what was done before is ordered.
    pub(super) fn barrier(&mut self) {
        self.phase += 1;
    }

    /// Checks an access of a thread; returns the bytes.
    pub(super) fn access(
        &mut self,
        address: u64,
        len: usize,
        lane: usize,
        access: Access,
    ) -> Result<&mut [u8], (FindingKind, String)> {
        let start = address.wrapping_sub(SHARED_BASE);
        if start > self.bytes.len() as u64 || start + len as u64 > self.bytes.len() as u64 {
            let all = self.bytes.len();
            let text = format!(
                "thread {lane} uses {len} bytes at {start} of {all} bytes of shared memory"
            );
            return Err((FindingKind::OutOfBounds, text));
        }
        let own = Use {
            phase: self.phase,
            lane: lane as u32,
        };
        let is_other = |other: Use| other.phase == own.phase && other.lane != own.lane;
        let start = start as usize;
        for byte in start..start + len {
            let other = match access {
                Access::Read => [self.writer[byte]; 2],
                Access::Write => [self.writer[byte], self.reader[byte]],
            };
            if let Some(other) = other.into_iter().find(|other| is_other(*other)) {
                let who = match other.lane {
                    SEVERAL => "other threads".to_owned(),
                    lane => format!("thread {lane}"),
                };
                let text = format!(
                    "thread {lane} and {who} use byte {byte} of shared memory without a barrier between"
                );
                return Err((FindingKind::SharedRace, text));
            }
            match access {
                Access::Write => {
                    self.is_written[byte] = true;
                    self.writer[byte] = own;
                }
                Access::Read if !self.is_written[byte] => {
                    let text = format!(
                        "thread {lane} reads byte {byte} of shared memory, which nobody has written"
                    );
                    return Err((FindingKind::Uninitialised, text));
                }
                Access::Read => {
                    let several = is_other(self.reader[byte]);
                    self.reader[byte] = Use {
                        lane: if several { SEVERAL } else { own.lane },
                        ..own
                    };
                }
            }
        }
        Ok(&mut self.bytes[start..start + len])
    }
}
