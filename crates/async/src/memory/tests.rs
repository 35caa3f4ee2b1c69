use std::{alloc::Layout, sync::mpsc, thread};

use super::{Block, CLASS_BYTES, MAX_BLOCKS, N_CLASSES, allocate_block, free_block};
use crate::{HostAllocator, RecyclingAllocator, SystemAllocator};

/// Fills and frees blocks of many sizes and alignments.
fn check(allocator: &dyn HostAllocator) {
    for size in [
        0, 1, 8, 15, 16, 17, 72, 80, 96, 255, 256, 257, 4096, 100_000,
    ] {
        for align in [1, 8, 16, 64, 4096] {
            let layout = Layout::from_size_align(size, align).unwrap();
            let block = allocator.allocate(layout).unwrap();
            assert_eq!(block.addr().get() % align, 0, "{layout:?}");
            // SAFETY: the block has `size` bytes.
            unsafe { block.write_bytes(0xa5, size) };
            // SAFETY: the block came from this allocator with this layout.
            unsafe { allocator.deallocate(block, layout) };
        }
    }
}

#[test]
fn allocators_give_what_was_asked_for() {
    check(&SystemAllocator::new());
    check(&RecyclingAllocator::new());
}

#[test]
fn every_class_fits_its_sizes() {
    for size in 1..=N_CLASSES * CLASS_BYTES + 1 {
        let block = Block::with(Layout::from_size_align(size, 8).unwrap());
        assert!(block.size_bytes() >= size);
        assert!(block.class == N_CLASSES || block.size_bytes() == (block.class + 1) * CLASS_BYTES);
    }
}

#[test]
fn blocks_freed_by_other_threads_are_reused_or_returned() {
    let n_blocks = 3 * usize::try_from(MAX_BLOCKS).unwrap();
    let (sender, receiver) = mpsc::channel();
    let block = Block::of::<[u64; 9]>();
    let taker = thread::spawn(move || {
        for _ in 0..n_blocks {
            sender
                .send(allocate_block(block).expose_provenance())
                .unwrap();
        }
    });
    let giver = thread::spawn(move || {
        for address in receiver {
            let address = std::ptr::NonNull::with_exposed_provenance(address);
            // SAFETY: the other thread allocated it as `block` and gave it away.
            unsafe { free_block(address, block) };
        }
    });
    taker.join().unwrap();
    giver.join().unwrap();
}
