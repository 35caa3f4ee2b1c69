//! An allocator for programs that count what they hold.

use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator with a hook: it tells a function of every block: how many bytes were
/// taken, and how many were given back. One of the two is zero, but where a block gets another
/// size.
///
/// The function is called by any thread, also by one that ends, and must not take memory.
///
/// # Examples
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use tfrt_fuzz::counting::Counting;
///
/// static TAKEN: AtomicUsize = AtomicUsize::new(0);
///
/// #[global_allocator]
/// static ALLOCATOR: Counting = Counting(|taken, _| {
///     TAKEN.fetch_add(taken, Ordering::Relaxed);
/// });
///
/// let before = TAKEN.load(Ordering::Relaxed);
/// let bytes = std::hint::black_box(vec![0_u8; 100]);
/// assert!(TAKEN.load(Ordering::Relaxed) >= before + bytes.len());
/// ```
#[derive(Debug)]
pub struct Counting(pub fn(usize, usize));

// SAFETY: each method passes its arguments on to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.0(layout.size(), 0);
        // SAFETY: the caller answers for the layout.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.0(layout.size(), 0);
        // SAFETY: the caller answers for the layout.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.0(0, layout.size());
        // SAFETY: the caller answers for block and layout.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, len: usize) -> *mut u8 {
        self.0(len, layout.size());
        // SAFETY: the caller answers for block, layout and length.
        unsafe { System.realloc(block, layout, len) }
    }
}
