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

use loom::sync::{Arc, Mutex};
use loom::thread;

use tfrt_async::sync::UnsafeCell;
use tfrt_async::{AnyAsyncValue, Error, Heap, HostAllocator, SystemAllocator, Value};

use super::plan::dataflow::DataflowPlan;
use super::plan::dependencies::{Dependencies, KernelDependencies};
use super::registers::{Fill, Ready, Registers, Started};
use super::slots::{Activation, Cursor};

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
fn graph(n_arguments: u32, kernels: &[(&[u32], &[u32])], results: &[u32]) -> StdArc<DataflowPlan> {
    graph_with_marks(n_arguments, kernels, results, &[])
}

fn graph_with_marks(
    n_arguments: u32,
    kernels: &[(&[u32], &[u32])],
    results: &[u32],
    marked: &[usize],
) -> StdArc<DataflowPlan> {
    let users = |register: u32| -> Vec<u32> {
        let readers = (1..).zip(kernels).flat_map(|(number, (operands, _))| {
            operands
                .iter()
                .filter(move |operand| **operand == register)
                .map(move |_| number)
        });
        readers.collect()
    };
    let n_registers = kernels
        .iter()
        .map(|(_, results)| results.len())
        .sum::<usize>();
    let n_registers = n_registers + n_arguments as usize;
    let without_operands = (1..)
        .zip(kernels)
        .filter(|(_, (operands, _))| operands.is_empty());
    let graph = Graph {
        n_arguments: n_arguments as usize,
        kernels,
        results,
        marked,
        users: (0..n_registers as u32).map(users).collect(),
        entry: without_operands.map(|(number, _)| number).collect(),
    };
    StdArc::new(DataflowPlan::new(&graph).expect("the models wire well"))
}

struct Graph<'a> {
    n_arguments: usize,
    kernels: &'a [(&'a [u32], &'a [u32])],
    results: &'a [u32],
    marked: &'a [usize],
    users: Vec<Vec<u32>>,
    entry: Vec<u32>,
}

impl Dependencies for Graph<'_> {
    fn n_arguments(&self) -> usize {
        self.n_arguments
    }

    fn n_registers(&self) -> usize {
        self.users.len()
    }

    fn n_kernels(&self) -> usize {
        self.kernels.len()
    }

    fn kernel(&self, kernel: u32) -> KernelDependencies<'_> {
        let (operands, results) = self.kernels[kernel as usize];
        KernelDependencies {
            entrance: 0,
            operands,
            results,
            attributes: &[],
            functions: &[],
            is_marked: self.marked.contains(&(kernel as usize)),
        }
    }

    fn users(&self, kernel: u32, result: usize) -> &[u32] {
        &self.users[self.kernel(kernel).results[result] as usize]
    }

    fn argument_users(&self, argument: usize) -> &[u32] {
        &self.users[argument]
    }

    fn entry_users(&self) -> &[u32] {
        &self.entry
    }

    fn result_registers(&self) -> &[u32] {
        self.results
    }

    /// So that kernels keep their numbers.
    fn is_textual(&self) -> bool {
        self.marked.is_empty()
    }
}

/// Registers that the model has shared, as a frame would be. Rights are used with them only.
struct Shared(Registers);

// SAFETY: the models call `share` before they let another thread in, as `SharedFrame` does.
unsafe impl Send for Shared {}
// SAFETY: as for `Send`.
unsafe impl Sync for Shared {}

impl Shared {
    fn new(graph: StdArc<DataflowPlan>) -> Shared {
        let allocator: StdArc<dyn HostAllocator> = StdArc::new(SystemAllocator::new());
        Shared(Registers::new(graph, &allocator).expect("there is memory"))
    }

    fn begin(&self) -> (Vec<Ready>, Vec<Fill>) {
        let mut entry = Vec::new();
        let mut arguments = self.0.begin(|ready| entry.push(ready));
        let fills = std::iter::from_fn(|| self.0.next_argument(&mut arguments));
        let fills = fills.collect();
        (entry, fills)
    }

    fn start(&self, ready: Ready) -> (Started, Option<Activation<'_>>) {
        let record = self.0.shape().record(ready.kernel());
        // SAFETY: a right of these registers, and the record of its kernel.
        unsafe { self.0.start(ready, record) }
    }

    /// Runs a kernel that adds its operands, and everything that becomes ready by it.
    fn run(&self, ready: Ready, base: u32) {
        let mut work = vec![ready];
        while let Some(ready) = work.pop() {
            let (mut started, activation) = self.start(ready);
            let mut sum = base;
            if let Some(activation) = activation {
                let mut cursor = Cursor::new(activation);
                while let Some(operand) = cursor.take() {
                    sum += number(&operand);
                }
                while cursor.put(watched(sum)).is_ok() {}
                started.has_put(cursor.n_put());
            } else {
                let handles = self.0.handles(&started);
                sum = handles.iter().filter(|handle| handle.is_settled()).count() as u32;
            }
            // SAFETY: as above.
            while let Some((right, put)) = unsafe { self.0.next_result(&mut started) } {
                let value = put.unwrap_or_else(|| watched(sum));
                // SAFETY: as above.
                let filled = unsafe { self.0.fill(right, value) };
                // SAFETY: as above.
                unsafe { self.0.count_all(filled, |ready| work.push(ready)) };
            }
            // SAFETY: as above.
            unsafe { self.0.finish(started) };
        }
    }

    fn fill(&self, fill: Fill, value: AnyAsyncValue) {
        // SAFETY: a right of these registers.
        let filled = unsafe { self.0.fill(fill, value) };
        let mut work = Vec::new();
        // SAFETY: as above.
        unsafe { self.0.count_all(filled, |ready| work.push(ready)) };
        work.into_iter().for_each(|ready| self.run(ready, 0));
    }

    fn results(&self) -> Vec<Option<AnyAsyncValue>> {
        self.0.take_results().collect()
    }

    fn leave(&self, fill: Fill) {
        // SAFETY: a right of these registers.
        unsafe { self.0.leave(fill) };
    }

    /// Starts a kernel without operands, and puts it off.
    fn put_off(&self, ready: Ready) {
        let (started, _) = self.start(ready);
        // SAFETY: a right of these registers; that of the task is taken up by the models once.
        unsafe { self.0.suspend(&started) };
    }

    /// Brings what a kernel that was put off has left to its task.
    fn bring(&self, kernel: u32, register: u32, value: u32) {
        // SAFETY: the models do so once for each kernel that they put off.
        if let Some(fill) = unsafe { self.0.take_up(kernel, register) } {
            self.fill(fill, watched(value));
        }
    }
}

fn begin_shared(graph: StdArc<DataflowPlan>) -> (Arc<Shared>, Vec<Ready>, Vec<Fill>) {
    let registers = Shared::new(graph);
    let (entry, fills) = registers.begin();
    registers.0.share();
    (Arc::new(registers), entry, fills)
}

#[test]
fn two_producers_start_one_consumer() {
    loom::model(|| {
        // k2 reads what k0 and k1 fill.
        let graph = graph(0, &[(&[], &[0]), (&[], &[1]), (&[0, 1], &[2])], &[2]);
        let (shared, mut entry, _) = begin_shared(graph);
        let results = shared.results();
        let (second, first) = (entry.pop().unwrap(), entry.pop().unwrap());
        let other = shared.clone();
        let thread = thread::spawn(move || other.run(second, 1));
        shared.run(first, 1);
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
        let results = shared.results();
        let mut ready = Vec::new();
        let (mut started, _) = shared.start(entry.pop().unwrap());
        // SAFETY: as above.
        let (right, _) = unsafe { shared.0.next_result(&mut started) }.unwrap();
        // SAFETY: as above.
        let filled = unsafe { shared.0.fill(right, watched(5)) };
        // SAFETY: as above.
        unsafe { shared.0.count_all(filled, |reader| ready.push(reader)) };
        // SAFETY: as above.
        unsafe { shared.0.finish(started) };
        let (second, first) = (ready.pop().unwrap(), ready.pop().unwrap());
        let other = shared.clone();
        let thread = thread::spawn(move || other.run(second, 0));
        shared.run(first, 0);
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
        let results = shared.results();
        let (argument, kernel) = (fills.pop().unwrap(), entry.pop().unwrap());
        let other = shared.clone();
        let thread = thread::spawn(move || other.fill(argument, watched(7)));
        shared.run(kernel, 0);
        thread.join().unwrap();
        let result = results.into_iter().next().unwrap().unwrap().settled();
        assert_eq!(number(&result), 7);
    });
}

#[test]
fn kernels_that_were_stacked_while_confined_start_on_two_threads() {
    loom::model(|| {
        // k3 reads the argument and what k0 and k1 fill; k2 reads the argument alone.
        let kernels: &[(&[u32], &[u32])] =
            &[(&[], &[1]), (&[0], &[2]), (&[0], &[3]), (&[0, 1, 2], &[4])];
        let shared = Shared::new(graph(1, kernels, &[4, 3]));
        let mut stack = shared.0.begin_given(vec![watched(7)]);
        let confined = shared.0.confined().expect("nobody else is in");
        let mut walk = confined.walk();
        // SAFETY: of these registers.
        let top = unsafe { confined.start_top(&mut stack, &mut walk) };
        let (kernel, record, activation) = top.expect("three kernels are ready");
        assert_eq!(kernel, 2);
        let mut cursor = Cursor::new(activation);
        let sum = number(&cursor.take().expect("an operand"));
        // A value in place, as those are that this way is for.
        assert!(cursor.put(AnyAsyncValue::new(sum)).is_ok());
        drop(cursor);
        // SAFETY: it was started above, and its result is put.
        unsafe { confined.finish_plain(record, &mut stack) };
        // SAFETY: as above.
        let mut ready = unsafe { shared.0.unstack(&mut stack) };
        let (first, second) = (ready.pop().unwrap(), ready.pop().unwrap());
        assert!(ready.is_empty() && first.kernel() == 1 && second.kernel() == 0);
        shared.0.share();
        let shared = Arc::new(shared);
        let results = shared.results();
        let other = shared.clone();
        let thread = thread::spawn(move || other.run(second, 1));
        shared.run(first, 1);
        thread.join().unwrap();
        let results: Vec<_> = results.into_iter().map(|r| r.unwrap().settled()).collect();
        // 7 of the argument, 1 and 8 of its producers, and the 1 of the thread that runs it.
        assert_eq!(number(&results[0]), 17);
        assert_eq!(results[1].get::<u32>(), Some(&7));
    });
}

#[test]
fn a_register_that_was_left_is_claimed_once() {
    loom::model(|| {
        let graph = graph(1, &[(&[0], &[1])], &[1]);
        let (shared, _, mut fills) = begin_shared(graph);
        let results = shared.results();
        shared.leave(fills.pop().unwrap());
        let claim = |shared: &Shared, value: u32| {
            if let Some(right) = shared.0.claim(0) {
                shared.fill(right, watched(value));
            }
        };
        let other = shared.clone();
        let thread = thread::spawn(move || claim(&other, 1));
        claim(&shared, 2);
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
        let results = shared.results();
        let (second, first) = (entry.pop().unwrap(), entry.pop().unwrap());
        let other = shared.clone();
        let thread = thread::spawn(move || other.run(second, 4));
        shared.run(first, 4);
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
        let registers = Shared::new(graph(0, &[(&[], &[0]), (&[], &[1])], &[0, 1, 0]));
        let (mut entry, _) = registers.begin();
        let (second, first) = (entry.pop().unwrap(), entry.pop().unwrap());
        registers.run(first, 1);
        registers.0.share();
        let shared = Arc::new(registers);
        let other = shared.clone();
        let thread = thread::spawn(move || other.run(second, 2));
        let results = shared.results();
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
        let results = shared.results();
        let (second, first) = (entry.pop().unwrap(), entry.pop().unwrap());
        let other = shared.clone();
        // The queue drops the task of the second producer.
        let thread = thread::spawn(move || drop((other, second)));
        shared.run(first, 1);
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
        let results = shared.results();
        let threads: Vec<_> = entry
            .into_iter()
            .map(|ready| {
                let other = shared.clone();
                thread::spawn(move || other.run(ready, 0))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(number(&results[0].clone().unwrap().settled()), 0);
    });
}

#[test]
fn a_confined_call_goes_to_another_thread_with_its_tasks() {
    loom::model(|| {
        let kernels: &[(&[u32], &[u32])] = &[(&[], &[0]), (&[], &[1]), (&[0, 1], &[2])];
        let registers = Shared::new(graph(0, kernels, &[2]));
        let (entry, _) = registers.begin();
        entry.into_iter().for_each(|ready| registers.put_off(ready));
        registers.0.promise_results();
        let results = registers.results();
        // One thread runs a task, and then puts the other back into the line with all that it has.
        let line = Arc::new(Mutex::new(Some((registers, 0))));
        let run_one = |line: &Mutex<Option<(Shared, u32)>>| {
            let taken = line.lock().unwrap().take();
            let Some((registers, kernel)) = taken else {
                return;
            };
            registers.bring(kernel, kernel, 3);
            let next = (kernel == 0).then_some((registers, 1));
            *line.lock().unwrap() = next;
        };
        let other = line.clone();
        let thread = thread::spawn(move || run_one(&other));
        run_one(&line);
        thread.join().unwrap();
        run_one(&line);
        assert_eq!(number(&results[0].clone().unwrap().settled()), 6);
    });
}

#[test]
fn a_shared_task_an_unshared_one_and_whoever_gives_up_meet() {
    loom::model(|| {
        let kernels: &[(&[u32], &[u32])] = &[(&[], &[0]), (&[], &[1]), (&[0, 1], &[2])];
        let registers = Shared::new(graph(0, kernels, &[2]));
        let (entry, _) = registers.begin();
        entry.into_iter().for_each(|ready| registers.put_off(ready));
        registers.0.promise_results();
        let results = registers.results();
        // The task of the first kernel is shared: it leaves its register. The other's stays.
        registers.0.share();
        // SAFETY: the first kernel was put off, and its right is taken up here.
        let fill = unsafe { registers.0.take_up(0, 0) }.unwrap();
        registers.leave(fill);
        let shared = Arc::new(registers);
        let claim = |shared: &Shared, value: u32| {
            if let Some(right) = shared.0.claim(0) {
                shared.fill(right, watched(value));
            }
        };
        let (task, given_up) = (shared.clone(), shared.clone());
        let task = thread::spawn(move || claim(&task, 1));
        let given_up = thread::spawn(move || claim(&given_up, 2));
        shared.bring(1, 1, 10);
        task.join().unwrap();
        given_up.join().unwrap();
        let sum = number(&results[0].clone().unwrap().settled());
        assert!(matches!(sum, 11 | 12));
    });
}
