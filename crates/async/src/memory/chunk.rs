//! A chunk: memory from the system that is cut into blocks of one class.
//!
//! ```text
//! | Chunk | block | block | idle | block | idle | ...  not cut yet  |
//! ^ a multiple of CHUNK_BYTES
//! ```
//!
//! A chunk lies at a multiple of its size, so the address of a block tells where its chunk is,
//! and that whose it is. All but the owner's name and the class is touched by the owner only; the
//! class changes while no block is in use.

use std::{
    alloc::{self, Layout},
    cell::Cell,
    ptr::{self, NonNull},
};

use super::{class::Class, heap::Heap, returned::IdleBlock};

/// The size of a chunk, and its alignment.
pub(super) const CHUNK_BYTES: usize = 256 * 1024;
/// The number of bytes that are cut into blocks at a time, since cutting touches the memory.
const CUT_BYTES: usize = 4096;

const LAYOUT: Layout = match Layout::from_size_align(CHUNK_BYTES, CHUNK_BYTES) {
    Ok(layout) => layout,
    Err(_) => panic!("a power of two is an alignment"),
};

/// The header of a chunk.
#[repr(C, align(64))]
pub(super) struct Chunk {
    /// The heap that the chunk belongs to. Never changes, so that all threads may read it.
    owner: *const Heap,
    /// Invariant: the head of a list of blocks of this chunk that nobody has.
    free: Cell<*mut IdleBlock>,
    /// The number of blocks that have to come back until the owner has something to do; see
    /// `heap.rs`.
    pub(super) countdown: Cell<u32>,
    n_cut: Cell<u32>,
    class: Cell<Class>,
    pub(super) is_full: Cell<bool>,
    pub(super) links: Links,
}

/// A chunk's place in one of its owner's lists.
#[derive(Default)]
pub(super) struct Links {
    pub(super) next: Cell<Option<NonNull<Chunk>>>,
    pub(super) before: Cell<Option<NonNull<Chunk>>>,
}

/// A chunk without blocks, current in lists that have no other. It is never written.
pub(super) struct EmptyChunk(Chunk);

// SAFETY: it has no blocks that could be popped or freed, so nobody changes its cells.
unsafe impl Sync for EmptyChunk {}

impl EmptyChunk {
    /// Returns the address of the empty chunk.
    pub(super) const fn chunk() -> NonNull<Chunk> {
        static EMPTY: EmptyChunk = EmptyChunk(Chunk::new(ptr::null(), Class::SMALLEST));
        NonNull::from_ref(&EMPTY.0)
    }
}

impl Chunk {
    const fn new(owner: *const Heap, class: Class) -> Chunk {
        Chunk {
            owner,
            free: Cell::new(ptr::null_mut()),
            countdown: Cell::new(0),
            n_cut: Cell::new(0),
            class: Cell::new(class),
            is_full: Cell::new(false),
            links: Links {
                next: Cell::new(None),
                before: Cell::new(None),
            },
        }
    }

    /// Takes memory from the system, if it has any.
    pub(super) fn allocate(owner: *const Heap, class: Class) -> Option<NonNull<Chunk>> {
        // SAFETY: the size is not zero.
        let allocate = || NonNull::new(unsafe { alloc::alloc(LAYOUT) });
        let chunk = super::or_after_trim(allocate)?.cast::<Chunk>();
        // SAFETY: the memory is fresh, aligned, and has room for more than a chunk's header.
        unsafe { chunk.write(Chunk::new(owner, class)) };
        Some(chunk)
    }

    /// Gives the memory back to the system.
    ///
    /// # Safety
    ///
    /// The chunk came from `allocate`, none of its blocks is in use, and nobody uses it again.
    pub(super) unsafe fn release(chunk: NonNull<Chunk>) {
        // SAFETY: the caller says that it came from there, with this layout.
        unsafe { alloc::dealloc(chunk.as_ptr().cast(), LAYOUT) };
    }

    /// Returns the chunk of a block.
    #[inline(always)]
    pub(super) fn of(block: NonNull<u8>) -> NonNull<Chunk> {
        let chunk = block
            .as_ptr()
            .map_addr(|address| address & !(CHUNK_BYTES - 1));
        // SAFETY: the system gives no memory at address zero.
        unsafe { NonNull::new_unchecked(chunk.cast()) }
    }

    /// Returns the heap that the chunk belongs to.
    #[inline(always)]
    pub(super) fn owner(&self) -> *const Heap {
        self.owner
    }

    /// Returns the class of the chunk's blocks.
    #[inline(always)]
    pub(super) fn class(&self) -> Class {
        self.class.get()
    }

    /// Takes an idle block.
    #[inline(always)]
    pub(super) fn pop(&self) -> Option<NonNull<u8>> {
        let block = NonNull::new(self.free.get())?;
        // SAFETY: by the field's invariant it is idle, so it holds an `IdleBlock`.
        let link = unsafe { &block.as_ref().next };
        // SAFETY: as above; nobody else touches it.
        self.free.set(link.with(|next| unsafe { *next }));
        Some(block.cast())
    }

    /// Takes a block back.
    ///
    /// # Safety
    ///
    /// The block is one of this chunk, and nobody uses it.
    #[inline(always)]
    pub(super) unsafe fn push(&self, block: NonNull<IdleBlock>) {
        // SAFETY: nobody uses the block, and every class has room for an `IdleBlock`.
        unsafe { block.write(IdleBlock::before(self.free.get())) };
        self.free.set(block.as_ptr());
    }

    /// Returns true if a block can be popped.
    pub(super) fn has_idle(&self) -> bool {
        !self.free.get().is_null()
    }

    /// Makes the chunk one of another class.
    ///
    /// None of its blocks is in use.
    pub(super) fn recut(&self, class: Class) {
        self.free.set(ptr::null_mut());
        self.countdown.set(0);
        self.n_cut.set(0);
        self.class.set(class);
    }

    /// Returns how many blocks the chunk has room for.
    pub(super) fn n_blocks(&self) -> u32 {
        let class = self.class.get();
        u32::try_from((CHUNK_BYTES - first_offset(class)) / class.size_bytes())
            .expect("a chunk has fewer blocks than bytes")
    }
}

/// Returns where the first block of a class begins: behind the header, aligned.
fn first_offset(class: Class) -> usize {
    size_of::<Chunk>().next_multiple_of(class.align())
}

/// Cuts some more blocks off; returns how many.
///
/// # Safety
///
/// The chunk is the caller's; the pointer is the one that [`Chunk::allocate`] gave, or comes from
/// one of the chunk's blocks.
pub(super) unsafe fn cut(chunk: NonNull<Chunk>) -> u32 {
    // SAFETY: the caller says that the chunk is there.
    let header = unsafe { chunk.as_ref() };
    let (n_cut, size_bytes) = (header.n_cut.get(), header.class().size_bytes());
    let at_once = u32::try_from(CUT_BYTES / size_bytes).map_or(1, |n| n.max(1));
    let end = header.n_blocks().min(n_cut + at_once);
    // The last one first, so that they are popped by address.
    for index in (n_cut..end).rev() {
        let index = usize::try_from(index).expect("a number of blocks fits a pointer");
        let offset = first_offset(header.class()) + index * size_bytes;
        // SAFETY: the index is below the number of blocks, so the block lies in the chunk.
        let block = unsafe { chunk.cast::<u8>().byte_add(offset) };
        // SAFETY: nobody has had this block yet.
        unsafe { header.push(block.cast()) };
    }
    header.n_cut.set(end);
    end - n_cut
}
