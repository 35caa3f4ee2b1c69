use std::{alloc::Layout, ptr::NonNull, sync::mpsc, thread};

use super::{BlockLayout, USES_FREE_LISTS, allocate_block, free_block};
use super::{class::Class, thread as blocks};
use crate::{HostAllocator, SystemAllocator};

#[test]
fn allocator_gives_what_was_asked_for() {
    let allocator = SystemAllocator::new();
    let sizes = [
        0, 1, 8, 15, 16, 17, 72, 80, 96, 255, 256, 257, 4096, 32_768, 32_769, 300_000,
    ];
    let mut blocks = Vec::new();
    for (number, size) in sizes.into_iter().enumerate() {
        for align in [1, 8, 16, 64, 4096, 8192] {
            let layout = Layout::from_size_align(size, align).unwrap();
            let block = allocator.allocate(layout).unwrap();
            assert_eq!(block.addr().get() % align, 0, "{layout:?}");
            let mark = u8::try_from(number).unwrap();
            // SAFETY: the block has `size` bytes.
            unsafe { block.write_bytes(mark, size) };
            blocks.push((block, layout, mark));
        }
    }
    for (block, layout, mark) in blocks {
        // SAFETY: the block has `size` bytes, all of which were written.
        let bytes = unsafe { std::slice::from_raw_parts(block.as_ptr(), layout.size()) };
        assert!(bytes.iter().all(|byte| *byte == mark), "{layout:?}");
        // SAFETY: the block came from this allocator with this layout.
        unsafe { allocator.deallocate(block, layout) };
    }
    assert_eq!(allocator.refusals(), 0, "it has no limit");
}

/// Blocks of one class, on their way between threads.
struct Blocks(Class, Vec<NonNull<u8>>);

// SAFETY: any thread may free a block.
unsafe impl Send for Blocks {}

impl Blocks {
    fn take(class: Class, n: usize) -> Blocks {
        Blocks(
            class,
            (0..n).map(|_| blocks::allocate(class).unwrap()).collect(),
        )
    }

    fn are_distinct(&self) -> bool {
        let mut sorted: Vec<usize> = self.1.iter().map(|block| block.addr().get()).collect();
        sorted.sort_unstable();
        sorted
            .windows(2)
            .all(|pair| pair[1] - pair[0] >= self.0.size_bytes())
    }

    fn free(self) {
        for block in self.1 {
            // SAFETY: each of them came from `blocks::allocate`, and is freed once.
            unsafe { blocks::free(block, self.0) };
        }
    }
}

fn class(size: usize) -> Class {
    Class::of(Layout::from_size_align(size, 8).unwrap()).unwrap()
}

#[test]
fn blocks_are_distinct_and_are_used_again_over_many_chunks() {
    // Miri has no time for more than two chunks and a half.
    let numbers = if cfg!(miri) {
        [500, 2500, 20]
    } else {
        [50_000, 5000, 50]
    };
    for (size, n_blocks) in [16, 256, 32_768].into_iter().zip(numbers) {
        for _ in 0..3 {
            let blocks = Blocks::take(class(size), n_blocks);
            assert!(blocks.are_distinct());
            let first = blocks.1[0];
            blocks.free();
            let again = Blocks::take(class(size), n_blocks);
            assert!(again.are_distinct() && again.1.contains(&first));
            again.free();
        }
    }
}

#[test]
fn blocks_freed_by_another_thread_come_back() {
    let class = class(1000);
    let blocks = Blocks::take(class, 600);
    let before = blocks.1.clone();
    thread::spawn(move || blocks.free()).join().unwrap();
    let blocks = Blocks::take(class, 600);
    let n_same = before
        .iter()
        .filter(|block| blocks.1.contains(block))
        .count();
    assert!(blocks.are_distinct() && n_same > 300, "{n_same}");
    blocks.free();
}

#[test]
fn blocks_outlive_the_thread_that_took_them() {
    for size in [48, 2000, 20_000] {
        let class = class(size);
        let blocks = thread::spawn(move || Blocks::take(class, 300))
            .join()
            .unwrap();
        assert!(blocks.are_distinct());
        // Its heap has perhaps another thread now, perhaps none: both take the blocks back.
        let adopting = thread::spawn(move || Blocks::take(class, 10).free());
        blocks.free();
        adopting.join().unwrap();
    }
}

/// A destructor of a thread that ends after its heap was left.
#[test]
fn blocks_can_be_taken_and_freed_while_a_thread_ends() {
    struct Late(Vec<Blocks>);
    impl Drop for Late {
        fn drop(&mut self) {
            for _ in 0..100 {
                self.0.push(Blocks::take(class(100), 3));
            }
            self.0.drain(..).for_each(Blocks::free);
        }
    }
    thread_local! {
        static LATE: std::cell::RefCell<Late> = const { std::cell::RefCell::new(Late(Vec::new())) };
    }
    thread::spawn(|| {
        // Destructors run in the order in which they were registered, or the other way round.
        Blocks::take(class(100), 1).free();
        LATE.with_borrow_mut(|late| late.0.push(Blocks::take(class(100), 1)));
    })
    .join()
    .unwrap();
    thread::spawn(|| LATE.with_borrow_mut(|late| late.0.push(Blocks::take(class(100), 1))))
        .join()
        .unwrap();
}

/// Four threads hand each other blocks at random, and end now and then.
#[test]
fn threads_that_exchange_blocks_do_not_lose_any() {
    const N_THREADS: usize = 4;
    let n_rounds = if cfg!(miri) { 20 } else { 300 };
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..N_THREADS).map(|_| mpsc::channel::<Blocks>()).unzip();
    let threads: Vec<_> = receivers
        .into_iter()
        .enumerate()
        .map(|(index, receiver)| {
            let senders = senders.clone();
            thread::spawn(move || {
                let mut receiver = receiver;
                for round in 0..n_rounds {
                    let blocks = Blocks::take(class(64 << (round % 8)), 20);
                    assert!(blocks.are_distinct());
                    let _ = senders[(index + round) % N_THREADS].send(blocks);
                    let part: Vec<Blocks> = receiver.try_iter().collect();
                    if round % 10 == 9 {
                        // What is left of this thread's life happens on another one.
                        receiver = thread::spawn(move || {
                            part.into_iter().for_each(Blocks::free);
                            receiver
                        })
                        .join()
                        .unwrap();
                    } else {
                        part.into_iter().for_each(Blocks::free);
                    }
                }
                drop(senders);
                receiver.into_iter().for_each(Blocks::free);
            })
        })
        .collect();
    drop(senders);
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
}

#[test]
fn a_block_that_is_at_hand_is_a_hit() {
    if !USES_FREE_LISTS {
        return;
    }
    // Other threads count, too: on this one, all but a few are hits.
    let before = crate::memory_stats();
    for _ in 0..10_000 {
        Blocks::take(class(700), 1).free();
    }
    let after = crate::memory_stats();
    assert!(after.hits - before.hits >= 9_990, "{before:?} {after:?}");
}

#[test]
fn cells_have_blocks_of_their_size() {
    let block = BlockLayout::of::<[u64; 9]>();
    assert!(block.size_bytes() >= 72 && block.class.is_some() == USES_FREE_LISTS);
    let address = allocate_block(block);
    // SAFETY: it came from there.
    unsafe { free_block(address, block) };
}
