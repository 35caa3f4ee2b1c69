//! Large blocks of bytes that are given back: kept, counted, lent again, and returned to the system.
//!
//! Blocks that are idle belong to the process, so that the test has one of its own.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::Arc;
use std::thread;

use tfrt_async::queue::TimerQueue;
use tfrt_async::{
    Contents, HostAllocator, SystemAllocator, memory_stats, register_memory_user, sweep_memory,
    trim_memory,
};

use crate::own_process::in_own_process;

const MIB: usize = 1 << 20;

/// A block of bytes, given back when it is dropped.
struct Bytes(NonNull<u8>, Layout);

// SAFETY: any thread may use it, and give it back.
unsafe impl Send for Bytes {}

impl Bytes {
    fn new(size: usize, contents: Contents) -> Bytes {
        let layout = Layout::from_size_align(size, 64).unwrap();
        let block = SystemAllocator::new().allocate_initialised(layout, contents);
        Bytes(block.unwrap(), layout)
    }

    fn all(&mut self) -> &mut [u8] {
        let bytes = NonNull::slice_from_raw_parts(self.0, self.1.size());
        // SAFETY: the block has so many bytes, all of which are initialised, and is borrowed for writing.
        unsafe { &mut *bytes.as_ptr() }
    }

    fn address(&self) -> usize {
        self.0.addr().get()
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        // SAFETY: the block came from there with this layout, and its bytes are initialised.
        unsafe { SystemAllocator::new().deallocate_initialised(self.0, self.1) };
    }
}

fn idle() -> usize {
    usize::try_from(memory_stats().idle_bytes).unwrap()
}

#[test]
fn large_blocks_are_kept_for_a_while_and_given_back() {
    in_own_process(
        "large::large_blocks_are_kept_for_a_while_and_given_back",
        keep_large_blocks_for_a_while,
    );
}

fn keep_large_blocks_for_a_while() {
    let before = memory_stats();
    let live = || {
        let now = memory_stats();
        (
            now.live_blocks - before.live_blocks,
            now.live_bytes - before.live_bytes,
        )
    };
    if Bytes::new(MIB, Contents::Zeros).address() == 0 || idle() == 0 {
        // Each block is the system's in this build.
        return;
    }
    trim_memory();
    assert_eq!((idle(), live()), (0, (0, 0)));

    // What is in use is counted, what is idle is not; sizes of one class share blocks.
    let mut block = Bytes::new(3 * MIB, Contents::Zeros);
    assert_eq!(live(), (1, 3 << 20));
    assert!(block.all().iter().all(|byte| *byte == 0));
    block.all().fill(7);
    let address = block.address();
    drop(block);
    assert_eq!((idle(), live()), (3 * MIB, (0, 0)));
    let mut block = Bytes::new(3 * MIB - 1000, Contents::Unspecified);
    assert_eq!((block.address(), idle()), (address, 0));
    assert_eq!(block.all()[100], 7, "nobody has cleared it");
    drop(block);
    let mut block = Bytes::new(3 * MIB, Contents::Zeros);
    assert_eq!(block.address(), address);
    assert!(block.all().iter().all(|byte| *byte == 0));

    // Another thread gives it back, a third takes it.
    thread::spawn(move || drop(block)).join().unwrap();
    let taken = thread::spawn(|| Bytes::new(3 * MIB, Contents::Unspecified));
    let block = taken.join().unwrap();
    assert_eq!((block.address(), live().0), (address, 1));
    drop(block);

    // Those that lay idle from one sweep to the next are given back, those that were used are not.
    drop(Bytes::new(5 * MIB, Contents::Zeros));
    sweep_memory();
    assert_eq!(idle(), 8 * MIB);
    drop(Bytes::new(3 * MIB, Contents::Unspecified));
    assert_eq!(sweep_memory(), 5 * MIB);
    assert_eq!(idle(), 3 * MIB);
    assert_eq!((sweep_memory(), idle()), (3 * MIB, 0));

    // There is a bound.
    let blocks = [(); 3].map(|()| Bytes::new(256 * MIB, Contents::Zeros));
    drop(blocks);
    assert_eq!((idle(), live()), (512 * MIB, (0, 0)));
    assert_eq!((trim_memory(), trim_memory(), idle()), (512 * MIB, 0, 0));

    // A host's timers look after what is idle, and there is no timer while nothing is.
    let [timers, others] = [(); 2].map(|()| Arc::new(TimerQueue::new()));
    let users = [register_memory_user(&timers), register_memory_user(&others)];
    assert_eq!(timers.pending() + others.pending(), 0);
    drop(Bytes::new(MIB, Contents::Zeros));
    assert_eq!((timers.pending(), others.pending()), (1, 0));
    drop(Bytes::new(2 * MIB, Contents::Zeros));
    assert_eq!((timers.pending(), others.pending()), (1, 0));
    // The first host ends; the second goes on when the next block comes back.
    drop(timers);
    drop(Bytes::new(MIB, Contents::Zeros));
    assert_eq!(others.pending(), 1);
    // The last who uses memory takes what is idle along.
    let [first, last] = users;
    drop(first);
    assert_eq!(idle(), 3 * MIB);
    drop(last);
    assert_eq!(idle(), 0);
    drop(others);
    // Without a host memory is kept, too.
    drop(Bytes::new(MIB, Contents::Zeros));
    assert_eq!((idle(), trim_memory()), (MIB, MIB));
}
