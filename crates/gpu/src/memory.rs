//! [`Allocator`]: memory of a device, kept for reuse in the order of streams; [`Block`]: a part of it.
//!
//! A block belongs to a stream. Given back, it is free for that stream at once, which runs what follows behind what
//! used it before; for another one after an event. So nothing waits on the host, and in the steady state the driver is not
//! asked for memory.
//!
//! Small blocks are cut from slabs of 2 MiB and keep their size; large ones are the driver's own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::context::Stream;
use crate::driver::{DevicePointer, GpuError, GpuErrorKind, GpuResult, Note};

/// The size of what small blocks are cut from.
const SLAB: usize = 2 << 20;

/// The smallest size of blocks.
const SMALLEST: usize = 512;

/// The memory of a device that is kept for reuse.
#[derive(Default)]
pub struct Allocator {
    blocks: Mutex<Blocks>,
    /// The most bytes that the driver is asked for at once.
    most_bytes: Option<usize>,
    /// The allocator that its bytes are counted by, too.
    parent: Option<Arc<Allocator>>,
}

#[derive(Default)]
struct Blocks {
    // Free blocks by size, and the stream that each belongs to.
    free: HashMap<usize, Vec<(DevicePointer, Arc<Stream>)>>,
    slabs: Vec<DevicePointer>,
    // What is left of the last slab.
    rest: Option<(DevicePointer, usize)>,
    held_bytes: usize,
    kept_bytes: usize,
    // Of the driver.
    taken_bytes: usize,
    // Whether nothing is taken any more, so that nobody needs to hear what is given back.
    is_sealed: bool,
}

/// A block of a device's memory that belongs to a stream. Dropped, it is given back in the order of the stream.
pub struct Block {
    allocator: Arc<Allocator>,
    stream: Arc<Stream>,
    pointer: DevicePointer,
    size: usize,
}

/// Returns the size of the blocks for so many bytes: at most an eighth is lost.
fn size_of(len_bytes: usize) -> Option<usize> {
    let step = match len_bytes {
        0..=4096 => SMALLEST,
        len if len >= 16 * SLAB => SLAB,
        len => (len.next_power_of_two() / 16).max(SMALLEST),
    };
    len_bytes.max(1).checked_next_multiple_of(step)
}

impl Allocator {
    /// Makes an allocator that asks the driver for so many bytes at most.
    pub fn limited(most_bytes: Option<usize>) -> Allocator {
        Allocator {
            blocks: Mutex::default(),
            most_bytes,
            parent: None,
        }
    }

    /// Makes an allocator within the limit of another one.
    pub(crate) fn within(parent: &Arc<Allocator>) -> Allocator {
        Allocator {
            blocks: Mutex::default(),
            most_bytes: None,
            parent: Some(parent.clone()),
        }
    }

    /// Says that nothing is taken any more.
    pub(crate) fn seal(&self) {
        self.lock().is_sealed = true;
    }

    /// Counts bytes that the driver is to be asked for.
    fn count(&self, blocks: &mut Blocks, size: usize) -> GpuResult<()> {
        let taken = blocks.taken_bytes.saturating_add(size);
        if self.most_bytes.is_some_and(|most| taken > most) {
            return Err(exhausted());
        }
        if let Some(parent) = &self.parent {
            parent.count(&mut parent.lock(), size)?;
        }
        blocks.taken_bytes = taken;
        Ok(())
    }

    /// Counts bytes that the driver has back, or has never given.
    fn uncount(&self, blocks: &mut Blocks, size: usize) {
        blocks.taken_bytes -= size;
        if let Some(parent) = &self.parent {
            parent.uncount(&mut parent.lock(), size);
        }
    }

    /// Returns the limit on the bytes that the driver is asked for, if there is one.
    pub fn most_bytes(&self) -> Option<usize> {
        self.most_bytes
    }

    fn lock(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the driver for memory, within the limit.
    fn ask(&self, blocks: &mut Blocks, stream: &Stream, size: usize) -> GpuResult<DevicePointer> {
        let (driver, context) = (stream.context().driver(), stream.context().raw());
        self.count(blocks, size)?;
        let pointer = driver.allocate(context, size);
        let pointer = pointer.inspect_err(|_| self.uncount(blocks, size))?;
        Ok(pointer)
    }

    /// Returns a block for work of a stream. Its contents are anything, and its address a multiple of 256.
    ///
    /// # Errors
    ///
    /// One of kind `Exhausted` if there is no memory, also after what is kept was given back.
    pub fn take(self: &Arc<Self>, stream: &Arc<Stream>, len_bytes: usize) -> GpuResult<Block> {
        let size = size_of(len_bytes).ok_or_else(exhausted)?;
        let pointer = match self.reuse(stream, size)? {
            Some(pointer) => pointer,
            None => match self.cut(stream, size) {
                // While a stream captures nothing is waited for.
                Err(error) if error.kind == GpuErrorKind::Exhausted && self.parent.is_none() => {
                    self.trim(stream)?;
                    self.cut(stream, size)?
                }
                cut => cut?,
            },
        };
        let (driver, context) = (stream.context().driver(), stream.context().raw());
        driver.note(context, stream.raw(), Note::Take(pointer, size));
        self.lock().held_bytes += size;
        Ok(Block {
            allocator: self.clone(),
            stream: stream.clone(),
            pointer,
            size,
        })
    }

    /// Returns a free block of the size, best one that belongs to the stream.
    fn reuse(&self, stream: &Arc<Stream>, size: usize) -> GpuResult<Option<DevicePointer>> {
        let mut blocks = self.lock();
        let Some(free) = blocks.free.get_mut(&size) else {
            return Ok(None);
        };
        let own = free
            .iter()
            .rposition(|(_, owner)| Arc::ptr_eq(owner, stream));
        let found = match own {
            Some(at) => Some(free.swap_remove(at)),
            None => free.pop(),
        };
        let Some((pointer, owner)) = found else {
            return Ok(None);
        };
        blocks.kept_bytes -= size;
        drop(blocks);
        if !Arc::ptr_eq(&owner, stream) {
            let waits = owner.record().and_then(|event| stream.wait(&event));
            if let Err(error) = waits {
                self.keep(pointer, size, owner);
                return Err(error);
            }
        }
        Ok(Some(pointer))
    }

    fn keep(&self, pointer: DevicePointer, size: usize, owner: Arc<Stream>) {
        let mut blocks = self.lock();
        blocks.kept_bytes += size;
        blocks.free.entry(size).or_default().push((pointer, owner));
    }

    /// Returns memory that nobody has used.
    fn cut(&self, stream: &Stream, size: usize) -> GpuResult<DevicePointer> {
        let mut blocks = self.lock();
        if size > SLAB / 2 {
            return self.ask(&mut blocks, stream, size);
        }
        let (pointer, rest) = match blocks.rest {
            Some((pointer, rest)) if rest >= size => (pointer, rest),
            _ => {
                let slab = self.ask(&mut blocks, stream, SLAB)?;
                blocks.slabs.push(slab);
                (slab, SLAB)
            }
        };
        blocks.rest = Some((pointer.offset(size), rest - size));
        Ok(pointer)
    }

    /// Returns the streams that free blocks belong to.
    fn owners(&self) -> Vec<Arc<Stream>> {
        let mut owners: Vec<Arc<Stream>> = Vec::new();
        for (_, owner) in self.lock().free.values().flatten() {
            if !owners.iter().any(|known| Arc::ptr_eq(known, owner)) {
                owners.push(owner.clone());
            }
        }
        owners
    }

    /// Frees large blocks that nobody uses, after what runs is done.
    ///
    /// # Errors
    ///
    /// The driver's; that of a lost context.
    pub fn trim(&self, stream: &Stream) -> GpuResult<()> {
        let (driver, context) = (stream.context().driver(), stream.context().raw());
        stream.synchronize()?;
        self.owners()
            .iter()
            .try_for_each(|owner| owner.synchronize())?;
        let mut blocks = self.lock();
        let sizes: Vec<usize> = blocks
            .free
            .keys()
            .copied()
            .filter(|size| *size > SLAB / 2)
            .collect();
        for size in sizes {
            for (pointer, _) in blocks.free.remove(&size).unwrap_or_default() {
                blocks.kept_bytes -= size;
                self.uncount(&mut blocks, size);
                driver.free(context, pointer)?;
            }
        }
        Ok(())
    }

    /// Frees all memory. Nobody may hold a block any more; blocks that somebody does hold stay until the context ends.
    pub(crate) fn close(&self, stream: &Stream) {
        let (driver, context) = (stream.context().driver(), stream.context().raw());
        if self.trim(stream).is_ok() && self.lock().held_bytes == 0 {
            let slabs = std::mem::take(&mut self.lock().slabs);
            for slab in slabs {
                self.uncount(&mut self.lock(), SLAB);
                let _freed = driver.free(context, slab);
            }
        }
        self.lock().free.clear();
    }

    /// Returns how many bytes are held, and how many are kept for reuse.
    pub fn held_and_kept(&self) -> (usize, usize) {
        let blocks = self.lock();
        (blocks.held_bytes, blocks.kept_bytes)
    }
}

/// Frees all memory, which nobody holds any more: what a block is given back to is this.
impl Drop for Allocator {
    fn drop(&mut self) {
        let blocks = self.blocks.get_mut();
        let blocks = blocks.unwrap_or_else(PoisonError::into_inner);
        let Some((_, stream)) = blocks.free.values().flatten().next() else {
            return;
        };
        let context = stream.context().clone();
        let (driver, raw) = (context.driver(), context.raw());
        // What fails here is told by the next call.
        let _waited = driver.synchronize_context(raw);
        let large = blocks.free.iter().filter(|(size, _)| **size > SLAB / 2);
        let large = large.flat_map(|(_, all)| all.iter().map(|(pointer, _)| *pointer));
        for pointer in large.chain(blocks.slabs.iter().copied()) {
            let _freed = driver.free(raw, pointer);
        }
    }
}

/// Makes the error that there is no memory left.
fn exhausted() -> GpuError {
    GpuError::new(
        "cuMemAlloc",
        "CUDA_ERROR_OUT_OF_MEMORY",
        GpuErrorKind::Exhausted,
    )
}

impl Block {
    pub(crate) fn pointer(&self) -> DevicePointer {
        self.pointer
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let context = self.stream.context();
        let mut blocks = self.allocator.lock();
        blocks.held_bytes -= self.size;
        let is_sealed = blocks.is_sealed;
        drop(blocks);
        if !is_sealed {
            let (driver, note) = (context.driver(), Note::Give(self.pointer, self.size));
            driver.note(context.raw(), self.stream.raw(), note);
        }
        self.allocator
            .keep(self.pointer, self.size, self.stream.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_lose_an_eighth_at_most() {
        for len in [
            4097,
            5000,
            65_537,
            1 << 20,
            (1 << 20) + 1,
            (32 << 20) + 1,
            1 << 33,
        ] {
            let size = size_of(len).unwrap();
            assert!(
                size >= len && size - len <= len / 8 && size.is_multiple_of(512),
                "{len}: {size}"
            );
        }
        assert_eq!(
            (size_of(0), size_of(1), size_of(513)),
            (Some(512), Some(512), Some(1024))
        );
        assert_eq!(size_of(usize::MAX), None);
    }
}
