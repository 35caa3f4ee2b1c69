//! Scratch memory that a thread keeps between blocks: new memory, cleared, costs as much as writing it twice.

use std::cell::Cell;

thread_local! {
    static KEPT: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
}

/// Elements that a thread keeps at most: 8 MiB.
const MAX_KEPT: usize = 2 << 20;

/// Number of elements of a cache line.
const LINE: usize = 16;

/// Calls `body` with scratch memory of `len` elements, of any value. It begins with a line of the caches, if the
/// allocator allows.
pub(crate) fn with<R>(len: usize, body: impl FnOnce(&mut [f32]) -> R) -> R {
    let mut memory = KEPT.take();
    let wanted = len.saturating_add(LINE);
    if memory.len() < wanted {
        // Nobody needs what it held.
        memory = Vec::new();
        memory.resize(wanted, 0.0);
    }
    let first = memory
        .as_ptr()
        .align_offset(LINE * size_of::<f32>())
        .min(LINE);
    let result = body(&mut memory[first..first + len]);
    if memory.len() <= MAX_KEPT {
        KEPT.set(memory);
    }
    result
}
