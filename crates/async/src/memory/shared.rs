//! [`SharedBlock`]: a value and bytes behind it in one block of an allocator, counted.
//!
//! ```text
//! references  allocator  layout  value  ..  bytes
//! └─ header ──────────────────────────┘     └─ aligned as asked
//! ```

use std::alloc::Layout;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

use super::{Contents, HostAllocator, SystemAllocator, is_large};
use crate::state::References;

/// A shared, counted block of an allocator: a value, and bytes behind it.
///
/// The handle leads to the value; who may touch the bytes is for the holders to agree on, for which the
/// value may be a lock.
///
/// # Examples
///
/// ```
/// use std::alloc::Layout;
/// use std::sync::Arc;
/// use tfrt_async::{HostAllocator, SharedBlock, SystemAllocator};
///
/// let allocator: Arc<dyn HostAllocator> = Arc::new(SystemAllocator::new());
/// let layout = Layout::from_size_align(100, 64).unwrap();
/// let mut block = SharedBlock::allocate(&allocator, layout, "a name").unwrap();
/// assert_eq!((*block, block.bytes().addr().get() % 64), ("a name", 0));
/// assert!(block.is_unique());
/// let other = block.clone();
/// assert!(!block.is_unique());
/// # drop(other);
/// ```
pub struct SharedBlock<T> {
    // Invariant: a header that `allocate` wrote and that this handle is counted in.
    header: NonNull<Header<T>>,
    owns: PhantomData<Header<T>>,
}

struct Header<T> {
    references: References,
    // Invariant: if it is set, all bytes behind the header are initialised.
    is_initialised: bool,
    // Invariant: the block came from this allocator with this layout, as `take` says; from the system's if there is
    // none.
    allocator: Option<Arc<dyn HostAllocator>>,
    layout: Layout,
    value: T,
}

// SAFETY: handles lend the value, and the last one drops it, wherever it is; the count is atomic and the
// allocator shared by threads. The bytes are reached as an address only.
unsafe impl<T: Send + Sync> Send for SharedBlock<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for SharedBlock<T> {}

impl<T> SharedBlock<T> {
    /// Returns a block with bytes of this layout, which are not initialised. `None` if the allocator has
    /// none left.
    #[inline]
    pub fn allocate(
        allocator: &Arc<dyn HostAllocator>,
        bytes: Layout,
        value: T,
    ) -> Option<SharedBlock<T>> {
        Self::make(allocator, bytes, None, value)
    }

    /// Returns a block with bytes of this layout, which are initialised. `None` if the allocator has none left.
    #[inline]
    pub fn allocate_initialised(
        allocator: &Arc<dyn HostAllocator>,
        bytes: Layout,
        contents: Contents,
        value: T,
    ) -> Option<SharedBlock<T>> {
        Self::make(allocator, bytes, Some(contents), value)
    }

    /// Returns a block whose bytes are as `contents` says, or not initialised.
    #[inline]
    fn make(
        allocator: &Arc<dyn HostAllocator>,
        bytes: Layout,
        contents: Option<Contents>,
        value: T,
    ) -> Option<SharedBlock<T>> {
        let align = bytes.align().max(align_of::<Header<T>>());
        let size = Self::offset(align).checked_add(bytes.size())?;
        let layout = Layout::from_size_align(size, align).ok()?;
        let (allocator, block) = match allocator.is_system() {
            true => (None, take(&SystemAllocator::new(), layout, contents)?),
            false => (
                Some(allocator.clone()),
                take(&**allocator, layout, contents)?,
            ),
        };
        let header = block.cast::<Header<T>>();
        let content = Header {
            references: References::one(),
            is_initialised: contents.is_some(),
            allocator,
            layout,
            value,
        };
        // SAFETY: the block is fresh, has room for a header by `offset`, and is aligned for one.
        unsafe { header.write(content) };
        Some(SharedBlock {
            header,
            owns: PhantomData,
        })
    }

    /// Marks all bytes as initialised, so that the block may be lent again without being cleared.
    ///
    /// # Safety
    ///
    /// They are, and nobody makes them uninitialised. This is the only handle.
    #[inline]
    pub unsafe fn assume_initialised(&mut self) {
        // SAFETY: the header is there, as this handle is counted, which is the only one and borrowed for writing.
        let header = unsafe { self.header.as_mut() };
        header.is_initialised = true;
    }

    /// Returns how far behind the header's start the bytes are, in a block of this alignment.
    const fn offset(align: usize) -> usize {
        // Alignments are powers of two, and both are far from overflow: `align` is at most 2^63.
        size_of::<Header<T>>().wrapping_add(align).wrapping_sub(1) & !align.wrapping_sub(1)
    }

    #[inline]
    fn header(&self) -> &Header<T> {
        // SAFETY: this handle is counted, so the header is there.
        unsafe { self.header.as_ref() }
    }

    /// Returns where the bytes are.
    #[inline]
    pub fn bytes(&self) -> NonNull<u8> {
        let offset = Self::offset(self.header().layout.align());
        // SAFETY: the block is at least that long, as `allocate` made it.
        unsafe { self.header.cast::<u8>().add(offset) }
    }

    /// Returns how many bytes there are.
    #[inline]
    pub fn len_bytes(&self) -> usize {
        let layout = self.header().layout;
        layout.size() - Self::offset(layout.align())
    }

    /// Returns whether this is the only handle.
    #[inline]
    pub fn is_unique(&mut self) -> bool {
        self.header().references.is_sole()
    }

    /// Borrows the value for writing, if this is the only handle.
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut T> {
        if !self.is_unique() {
            return None;
        }
        // SAFETY: the header is there, as this handle is counted. Others lead to the value through handles,
        // of which this is the only one, borrowed for writing; those that were are done (`is_sole`).
        Some(unsafe { &mut self.header.as_mut().value })
    }
}

impl<T> Deref for SharedBlock<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.header().value
    }
}

impl<T> Clone for SharedBlock<T> {
    #[inline]
    fn clone(&self) -> SharedBlock<T> {
        self.header().references.retain(1);
        SharedBlock {
            header: self.header,
            owns: PhantomData,
        }
    }
}

impl<T> Drop for SharedBlock<T> {
    #[inline]
    fn drop(&mut self) {
        if self.header().references.release() {
            // SAFETY: this was the last handle.
            unsafe { free(self.header) };
        }
    }
}

/// Drops the header and gives the block back.
///
/// # Safety
///
/// It was made by `allocate`, and nobody else has it.
unsafe fn free<T>(header: NonNull<Header<T>>) {
    /// A guard that frees the block even if the value's destructor panics.
    struct Free(Option<Arc<dyn HostAllocator>>, NonNull<u8>, Layout);

    impl Drop for Free {
        fn drop(&mut self) {
            match &self.0 {
                // SAFETY: the block came from there with this layout, by the header's invariant; its bytes are as
                // `give_back` wants them, see below.
                Some(allocator) => unsafe { give_back(&**allocator, self.1, self.2) },
                // SAFETY: as above.
                None => unsafe { give_back(&SystemAllocator::new(), self.1, self.2) },
            }
        }
    }

    // SAFETY: the caller says that it is there, and nobody reads it again.
    let Header {
        references: _,
        is_initialised,
        allocator,
        layout,
        value,
    } = unsafe { header.read() };
    let block = header.cast::<u8>();
    if is_large(layout) {
        // Between a header's fields, and behind it, there are bytes that nobody has written.
        let n_bytes = match is_initialised {
            true => SharedBlock::<T>::offset(layout.align()),
            false => layout.size(),
        };
        // SAFETY: the block is so large, and what was in it has been read.
        unsafe { block.write_bytes(0, n_bytes) };
    }
    let _free = Free(allocator, block, layout);
    drop(value);
}

/// Takes a block from an allocator: a large one with bytes that are initialised, since allocators keep such.
#[inline]
fn take(
    allocator: &(impl HostAllocator + ?Sized),
    layout: Layout,
    contents: Option<Contents>,
) -> Option<NonNull<u8>> {
    if is_large(layout) {
        return allocator.allocate_initialised(layout, contents.unwrap_or(Contents::Unspecified));
    }
    let block = allocator.allocate(layout)?;
    if contents.is_some() {
        // SAFETY: the block has so many bytes.
        unsafe { block.write_bytes(0, layout.size()) };
    }
    Some(block)
}

/// Gives a block back.
///
/// # Safety
///
/// It came from [`take`] of this allocator with this layout, and is not used again. All bytes are initialised if it is
/// large.
#[inline]
unsafe fn give_back(allocator: &(impl HostAllocator + ?Sized), block: NonNull<u8>, layout: Layout) {
    if is_large(layout) {
        // SAFETY: `take` has it from there, the caller says that it is initialised.
        return unsafe { allocator.deallocate_initialised(block, layout) };
    }
    // SAFETY: `take` has it from there.
    unsafe { allocator.deallocate(block, layout) };
}

impl<T: fmt::Debug> fmt::Debug for SharedBlock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Header {
            allocator,
            layout,
            value,
            ..
        } = self.header();
        let system = SystemAllocator::new();
        let allocator = allocator.as_deref().unwrap_or(&system);
        f.debug_struct("SharedBlock")
            .field("value", value)
            .field("allocator", &allocator.name())
            .field("layout", layout)
            .finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn bytes_are_aligned_and_lie_behind_the_value() {
        let allocator: Arc<dyn HostAllocator> = Arc::new(SystemAllocator::new());
        for align in [1, 2, 8, 16, 64, 128, 4096] {
            for size in [0, 1, 7, 64, 100_000] {
                let layout = Layout::from_size_align(size, align).unwrap();
                let block = SharedBlock::allocate(&allocator, layout, [7_u64; 3]).unwrap();
                assert_eq!(block.bytes().addr().get() % align, 0);
                let bytes = NonNull::slice_from_raw_parts(block.bytes(), size);
                // SAFETY: the block has so many bytes for its only holder.
                unsafe { bytes.cast::<u8>().write_bytes(0xff, size) };
                assert_eq!((*block, block.len_bytes()), ([7; 3], size));
            }
        }
    }

    #[test]
    fn the_last_handle_drops_the_value() {
        let allocator: Arc<dyn HostAllocator> = Arc::new(SystemAllocator::new());
        let value = Arc::new(());
        let layout = Layout::new::<u8>();
        let mut block = SharedBlock::allocate(&allocator, layout, value.clone()).unwrap();
        let other = block.clone();
        assert!(!block.is_unique());
        drop(other);
        assert!(block.is_unique());
        drop(block);
        assert_eq!(
            (Arc::strong_count(&value), Arc::strong_count(&allocator)),
            (1, 1)
        );
    }

    #[test]
    fn the_only_handle_leads_to_the_value_for_writing() {
        let allocator: Arc<dyn HostAllocator> = Arc::new(SystemAllocator::new());
        let mut block = SharedBlock::allocate(&allocator, Layout::new::<u8>(), 1).unwrap();
        *block.get_mut().unwrap() = 2;
        let mut other = block.clone();
        assert_eq!((block.get_mut(), other.get_mut()), (None, None));
        drop(block);
        assert_eq!(other.get_mut(), Some(&mut 2));
    }

    /// The system's allocator under another name, which counts blocks.
    #[derive(Default)]
    struct Counting(AtomicUsize);

    // SAFETY: the blocks are those of the system's allocator.
    unsafe impl HostAllocator for Counting {
        fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            SystemAllocator::new().allocate(layout)
        }

        unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
            self.0.fetch_sub(1, Ordering::Relaxed);
            // SAFETY: the caller answers for block and layout.
            unsafe { SystemAllocator::new().deallocate(block, layout) };
        }

        fn name(&self) -> &'static str {
            "counting"
        }
    }

    #[test]
    fn bytes_are_what_was_asked_for_also_when_the_block_was_used_before() {
        let allocator: Arc<dyn HostAllocator> = Arc::new(SystemAllocator::new());
        for size in [100, 100_000, 1_000_000] {
            let layout = Layout::from_size_align(size, 64).unwrap();
            for contents in [
                Contents::Unspecified,
                Contents::Zeros,
                Contents::Unspecified,
            ] {
                let mut block =
                    SharedBlock::allocate_initialised(&allocator, layout, contents, 1).unwrap();
                let bytes = NonNull::slice_from_raw_parts(block.bytes(), size);
                // SAFETY: this is the only handle, and all bytes are initialised.
                let bytes = unsafe { &mut *bytes.as_ptr() };
                let is_cleared = bytes.iter().all(|byte| *byte == 0);
                assert!(is_cleared || contents == Contents::Unspecified);
                bytes.fill(0xff);
                let other = SharedBlock::allocate(&allocator, layout, 2).unwrap();
                assert_ne!(other.bytes(), block.bytes());
                drop(other);
                // SAFETY: all bytes are initialised; it is the only handle.
                unsafe { block.assume_initialised() };
            }
        }
    }

    #[test]
    fn a_block_keeps_the_allocator_that_it_came_from() {
        let counting = Arc::new(Counting::default());
        let allocator: Arc<dyn HostAllocator> = counting.clone();
        assert!(!allocator.is_system() && allocator.stats().is_none());
        let block = SharedBlock::allocate(&allocator, Layout::new::<u8>(), 1).unwrap();
        assert_eq!(
            format!("{block:?}").split(", layout").next(),
            Some(r#"SharedBlock { value: 1, allocator: "counting""#)
        );
        assert_eq!(Arc::strong_count(&allocator), 3);
        assert_eq!(counting.0.load(Ordering::Relaxed), 1);
        drop(block);
        assert_eq!(counting.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_block_of_the_system_keeps_no_allocator() {
        let allocator: Arc<dyn HostAllocator> = Arc::new(SystemAllocator::new());
        assert!(allocator.is_system());
        let block = SharedBlock::allocate(&allocator, Layout::new::<u8>(), 1).unwrap();
        assert_eq!(Arc::strong_count(&allocator), 1);
        assert_eq!(
            format!("{block:?}").split(", layout").next(),
            Some(r#"SharedBlock { value: 1, allocator: "system""#)
        );
    }

    #[test]
    fn a_size_that_is_too_large_is_refused() {
        let allocator: Arc<dyn HostAllocator> = Arc::new(SystemAllocator::new());
        let layout = Layout::from_size_align(isize::MAX as usize - 7, 8).unwrap();
        assert!(SharedBlock::allocate(&allocator, layout, ()).is_none());
    }

    #[test]
    fn a_lock_and_its_block_take_one_line_of_the_cache() {
        assert!(size_of::<Header<crate::RangeLock>>() <= 64);
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use super::*;
    use crate::SystemAllocator;
    use crate::sync::{UnsafeCell, thread};

    /// A value that is read by its holders, and written when it is dropped.
    struct Watched(UnsafeCell<u32>);

    // SAFETY: loom looks for holders that meet where one writes.
    unsafe impl Sync for Watched {}

    impl Drop for Watched {
        fn drop(&mut self) {
            self.0.with_mut(|_| ());
        }
    }

    #[test]
    fn shared_block_is_written_when_others_have_left() {
        loom::model(|| {
            let allocator: Arc<dyn HostAllocator> = Arc::new(SystemAllocator::new());
            let value = Watched(UnsafeCell::new(0));
            let mut block = SharedBlock::allocate(&allocator, Layout::new::<u8>(), value).unwrap();
            let other = block.clone();
            let thread = thread::spawn(move || other.0.with(|_| ()));
            if let Some(value) = block.get_mut() {
                value.0.with_mut(|_| ());
            }
            thread.join().unwrap();
            assert!(block.get_mut().is_some());
        });
    }

    #[test]
    fn shared_block_is_freed_when_all_have_left() {
        loom::model(|| {
            let allocator: Arc<dyn HostAllocator> = Arc::new(SystemAllocator::new());
            let value = Watched(UnsafeCell::new(0));
            let block = SharedBlock::allocate(&allocator, Layout::new::<u8>(), value).unwrap();
            let other = block.clone();
            let thread = thread::spawn(move || other.0.with(|_| ()));
            block.0.with(|_| ());
            drop(block);
            thread.join().unwrap();
            assert_eq!(Arc::strong_count(&allocator), 1);
        });
    }
}
