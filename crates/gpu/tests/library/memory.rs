//! Memory that is kept for reuse, between streams and back to the driver.

use std::sync::Arc;

use tfrt_gpu::context::{Context, Stream};
use tfrt_gpu::driver::sim::{Policy, Sim, SimOptions};
use tfrt_gpu::memory::Allocator;

/// More than what small blocks are cut from.
const LARGE: usize = 5 << 18;

/// Calls a function with an allocator and two streams, under each policy; nothing may be found, and nothing be left.
fn under_all_policies(check: impl Fn(&Arc<Allocator>, &[Arc<Stream>; 2])) {
    for policy in Policy::ALL {
        for seed in 0..2 {
            let sim = Sim::new(SimOptions {
                policy,
                seed,
                ..SimOptions::default()
            });
            let context = Context::primary(Arc::new(sim.clone()), 0).unwrap();
            let streams = [0; 2].map(|_| Arc::new(Stream::new(context.clone()).unwrap()));
            let allocator = Arc::new(Allocator::default());
            check(&allocator, &streams);
            assert_eq!(sim.findings(), [], "{policy:?}, seed {seed}");
            allocator.trim(&streams[0]).unwrap();
            drop((allocator, streams, context));
            assert_eq!(sim.findings(), [], "{policy:?}, seed {seed}");
            assert_eq!(sim.leaks(), [""; 0], "{policy:?}, seed {seed}");
        }
    }
}

#[test]
fn a_block_goes_to_another_stream_behind_what_used_it() {
    under_all_policies(|allocator, streams| {
        for turn in 0..4 {
            let block = allocator.take(&streams[turn % 2], LARGE).unwrap();
            assert_eq!(allocator.held_and_kept(), (LARGE, 0));
            drop(block);
            assert_eq!(allocator.held_and_kept(), (0, LARGE));
        }
    });
}

#[test]
fn memory_is_given_back_to_the_driver_when_nothing_runs_that_uses_it() {
    under_all_policies(|allocator, streams| {
        let blocks = [0, 1].map(|at: usize| allocator.take(&streams[at], LARGE).unwrap());
        drop(blocks);
        assert_eq!(allocator.held_and_kept(), (0, 2 * LARGE));
        allocator.trim(&streams[0]).unwrap();
        assert_eq!(allocator.held_and_kept(), (0, 0));
    });
}

#[test]
fn two_that_hold_memory_hold_different_blocks() {
    under_all_policies(|allocator, streams| {
        for _ in 0..3 {
            let both = [(); 2].map(|()| allocator.take(&streams[0], LARGE).unwrap());
            assert_eq!(allocator.held_and_kept(), (2 * LARGE, 0));
            drop(both);
        }
    });
}

#[test]
fn no_more_memory_is_taken_than_the_limit_says() {
    let sim = Sim::new(SimOptions::default());
    let context = Context::primary(Arc::new(sim.clone()), 0).unwrap();
    let stream = Arc::new(Stream::new(context.clone()).unwrap());
    let allocator = Arc::new(Allocator::limited(Some(3 * LARGE)));
    let blocks = [0; 3].map(|_| allocator.take(&stream, LARGE).unwrap());
    assert!(allocator.take(&stream, LARGE).is_err());
    // What is given back counts no longer, also where it was of another size.
    drop(blocks);
    let large = allocator.take(&stream, 2 * LARGE).unwrap();
    assert!(allocator.take(&stream, 2 * LARGE).is_err());
    drop((large, allocator, stream, context));
    assert_eq!((sim.findings(), sim.leaks()), (vec![], vec![]));
}
