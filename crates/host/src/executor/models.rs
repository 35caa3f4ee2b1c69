//! Interleaving models of the hand-over of registers between threads, run under loom.
//!
//! Each model builds a small graph by hand, begins a call on one thread, shares it, and lets two
//! or three threads fill, count down and take. Values are on the heap and look at a loom cell, so
//! that a missing edge between filling and taking is a data race that loom reports; they hold a
//! counted token of loom's, so that a reference too many is a leak that loom reports, and one too
//! few a use after free.
//!
//! ```console
//! $ RUSTFLAGS="--cfg loom" cargo test -p tfrt-host --lib --release models
//! ```

use std::sync::Arc as StdArc;

use loom::sync::Arc;
use loom::thread;

use tfrt_async::sync::UnsafeCell;
use tfrt_async::{AnyAsyncValue, Error, Heap, HostAllocator, SystemAllocator, Value};

use super::registers::{Fill, Ready, Registers};
use super::shape::{Shape, ShapeBuilder};

/// A value whose every look is checked by loom.
struct Watched {
    number: UnsafeCell<u32>,
    _token: Arc<()>,
}

// SAFETY: the number is written before the value is published, and only read afterwards; that this
// holds is what the models check.
unsafe impl Send for Watched {}
// SAFETY: as for `Send`.
unsafe impl Sync for Watched {}

impl Value for Watched {
    const NAME: &'static str = "!test.watched";
    type Storage = Heap;
}

fn watched(number: u32) -> AnyAsyncValue {
    let value = Watched {
        number: UnsafeCell::new(0),
        _token: Arc::new(()),
    };
    // SAFETY: nobody else has the value yet.
    value.number.with_mut(|place| unsafe { *place = number });
    AnyAsyncValue::new(value)
}

fn number(value: &AnyAsyncValue) -> u32 {
    let value = value
        .get::<Watched>()
        .expect("a settled value of this type");
    // SAFETY: published values are only read.
    value.number.with(|place| unsafe { *place })
}

/// A graph by hand: operands and results of each kernel, and the registers that are returned.
fn graph(n_arguments: u32, kernels: &[(&[u32], &[u32])], results: &[u32]) -> StdArc<Shape> {
    graph_with_marks(n_arguments, kernels, results, &[])
}

fn graph_with_marks(
    n_arguments: u32,
    kernels: &[(&[u32], &[u32])],
    results: &[u32],
    marked: &[usize],
) -> StdArc<Shape> {
    let users = |register: u32| -> Vec<u32> {
        let readers = (0..).zip(kernels).flat_map(|(index, (operands, _))| {
            operands
                .iter()
                .filter(move |operand| **operand == register)
                .map(move |_| index)
        });
        readers.collect()
    };
    let mut shape = ShapeBuilder::default();
    for argument in 0..n_arguments {
        shape.argument(argument, &[], &users(argument));
    }
    let mut entry = Vec::new();
    for (index, (operands, filled)) in kernels.iter().enumerate() {
        shape.kernel(operands, marked.contains(&index));
        for register in *filled {
            shape.result(*register, &[], &users(*register));
        }
        if operands.is_empty() {
            entry.push(index as u32);
        }
    }
    StdArc::new(
        shape
            .finish(&entry, results, false)
            .expect("the models wire well"),
    )
}

/// Registers that the model has shared, as a frame would be.
struct Shared(Registers);

// SAFETY: the models call `share` before they let another thread in, as `SharedFrame` does.
unsafe impl Send for Shared {}
// SAFETY: as for `Send`.
unsafe impl Sync for Shared {}

fn registers(graph: StdArc<Shape>) -> Registers {
    let allocator: StdArc<dyn HostAllocator> = StdArc::new(SystemAllocator::new());
    Registers::new(graph, &allocator).expect("there is memory")
}

/// Runs a kernel that adds its operands, and everything that becomes ready by it.
fn run(shared: &Registers, ready: Ready, base: u32) {
    let mut work = vec![ready];
    while let Some(ready) = work.pop() {
        let mut started = shared.start(ready);
        let mut sum = base;
        while let Some(operand) = shared.take_next(&mut started) {
            sum += number(&operand);
        }
        while let Some(fill) = shared.next_result(&mut started) {
            let filled = shared.fill(fill, watched(sum));
            shared.count_all(filled, |ready| work.push(ready));
        }
        shared.finish(started);
    }
}

fn fill(shared: &Registers, fill: Fill, value: AnyAsyncValue) {
    let filled = shared.fill(fill, value);
    shared.count_all(filled, |ready| run(shared, ready, 0));
}

fn begin_shared(graph: StdArc<Shape>) -> (Arc<Shared>, Vec<Ready>, Vec<Fill>) {
    let registers = registers(graph);
    let (entry, fills) = registers.begin();
    registers.share();
    (Arc::new(Shared(registers)), entry, fills)
}

#[test]
fn two_producers_start_one_consumer() {
    loom::model(|| {
        // k2 reads what k0 and k1 fill.
        let graph = graph(0, &[(&[], &[0]), (&[], &[1]), (&[0, 1], &[2])], &[2]);
        let (shared, mut entry, _) = begin_shared(graph);
        let results = shared.0.take_results();
        let (second, first) = (entry.pop().unwrap(), entry.pop().unwrap());
        let other = shared.clone();
        let thread = thread::spawn(move || run(&other.0, second, 1));
        run(&shared.0, first, 1);
        thread.join().unwrap();
        let result = results.into_iter().next().unwrap().unwrap().settled();
        // Each producer gives 1, and the consumer adds the 1 of the thread that runs it.
        assert_eq!(number(&result), 3);
    });
}

#[test]
fn two_readers_of_one_register_take_their_own_references() {
    loom::model(|| {
        let graph = graph(0, &[(&[], &[0]), (&[0], &[1]), (&[0], &[2])], &[1, 2]);
        let (shared, mut entry, _) = begin_shared(graph);
        let results = shared.0.take_results();
        let mut ready = Vec::new();
        let mut started = shared.0.start(entry.pop().unwrap());
        let right = shared.0.next_result(&mut started).unwrap();
        let filled = shared.0.fill(right, watched(5));
        shared.0.count_all(filled, |reader| ready.push(reader));
        shared.0.finish(started);
        let (second, first) = (ready.pop().unwrap(), ready.pop().unwrap());
        let other = shared.clone();
        let thread = thread::spawn(move || run(&other.0, second, 0));
        run(&shared.0, first, 0);
        thread.join().unwrap();
        for result in results {
            assert_eq!(number(&result.unwrap().settled()), 5);
        }
    });
}

#[test]
fn an_argument_and_a_kernel_race_to_the_last_count() {
    loom::model(|| {
        let graph = graph(1, &[(&[], &[1]), (&[0, 1, 1], &[2])], &[2]);
        let (shared, mut entry, mut fills) = begin_shared(graph);
        let results = shared.0.take_results();
        let (argument, kernel) = (fills.pop().unwrap(), entry.pop().unwrap());
        let other = shared.clone();
        let thread = thread::spawn(move || fill(&other.0, argument, watched(7)));
        run(&shared.0, kernel, 0);
        thread.join().unwrap();
        let result = results.into_iter().next().unwrap().unwrap().settled();
        assert_eq!(number(&result), 7);
    });
}

#[test]
fn a_register_that_was_left_is_claimed_once() {
    loom::model(|| {
        let graph = graph(1, &[(&[0], &[1])], &[1]);
        let (shared, _, mut fills) = begin_shared(graph);
        let results = shared.0.take_results();
        shared.0.leave(fills.pop().unwrap());
        let claim = |shared: &Registers, value: u32| {
            if let Some(right) = shared.claim(0) {
                fill(shared, right, watched(value));
            }
        };
        let other = shared.clone();
        let thread = thread::spawn(move || claim(&other.0, 1));
        claim(&shared.0, 2);
        thread.join().unwrap();
        assert!(matches!(
            number(&results[0].clone().unwrap().settled()),
            1 | 2
        ));
    });
}

#[test]
fn a_marked_kernel_starts_once_by_whoever_is_first() {
    loom::model(|| {
        let kernels: &[(&[u32], &[u32])] = &[(&[], &[0]), (&[], &[1]), (&[0, 1], &[2])];
        let (shared, mut entry, _) = begin_shared(graph_with_marks(0, kernels, &[2], &[2]));
        let results = shared.0.take_results();
        let produce = |shared: &Registers, ready: Ready| {
            let mut started = shared.start(ready);
            let right = shared.next_result(&mut started).unwrap();
            let filled = shared.fill(right, watched(4));
            shared.finish(started);
            shared.count_all(filled, |marked| {
                let mut started = shared.start(marked);
                let mut n_settled = 0;
                while let Some(operand) = shared.take_next(&mut started) {
                    n_settled += u32::from(operand.is_settled());
                }
                let right = shared.next_result(&mut started).unwrap();
                let filled = shared.fill(right, watched(n_settled));
                shared.count_all(filled, |_| unreachable!("nobody reads it"));
                shared.finish(started);
            });
        };
        let (second, first) = (entry.pop().unwrap(), entry.pop().unwrap());
        let other = shared.clone();
        let thread = thread::spawn(move || produce(&other.0, second));
        produce(&shared.0, first);
        thread.join().unwrap();
        assert!(matches!(
            number(&results[0].clone().unwrap().settled()),
            1 | 2
        ));
    });
}

#[test]
fn what_was_filled_before_sharing_is_returned_from_its_slot() {
    loom::model(|| {
        let registers = registers(graph(0, &[(&[], &[0]), (&[], &[1])], &[0, 1, 0]));
        let (mut entry, _) = registers.begin();
        let (second, first) = (entry.pop().unwrap(), entry.pop().unwrap());
        run(&registers, first, 1);
        registers.share();
        let shared = Arc::new(Shared(registers));
        let other = shared.clone();
        let thread = thread::spawn(move || run(&other.0, second, 2));
        let results = shared.0.take_results();
        thread.join().unwrap();
        let numbers: Vec<u32> = results
            .into_iter()
            .map(|result| number(&result.unwrap().settled()))
            .collect();
        assert_eq!(numbers, [1, 2, 1]);
    });
}

#[test]
fn a_dropped_right_leaves_nothing_behind() {
    loom::model(|| {
        let graph = graph(0, &[(&[], &[0]), (&[], &[1]), (&[0, 1], &[2])], &[2]);
        let (shared, mut entry, _) = begin_shared(graph);
        let results = shared.0.take_results();
        let (second, first) = (entry.pop().unwrap(), entry.pop().unwrap());
        let other = shared.clone();
        // The queue drops the task of the second producer.
        let thread = thread::spawn(move || drop((other, second)));
        run(&shared.0, first, 1);
        drop(shared);
        thread.join().unwrap();
        // The promise that stood for the result went with the registers.
        let error: Option<Error> = results[0].as_ref().unwrap().error().cloned();
        assert!(error.is_some());
    });
}

#[test]
fn three_threads_fill_what_one_kernel_reads() {
    loom::model(|| {
        let kernels: &[(&[u32], &[u32])] =
            &[(&[], &[0]), (&[], &[1]), (&[], &[2]), (&[0, 1, 2], &[3])];
        let (shared, entry, _) = begin_shared(graph(0, kernels, &[3]));
        let results = shared.0.take_results();
        let threads: Vec<_> = entry
            .into_iter()
            .map(|ready| {
                let other = shared.clone();
                thread::spawn(move || run(&other.0, ready, 0))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(number(&results[0].clone().unwrap().settled()), 0);
    });
}
