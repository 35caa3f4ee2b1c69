//! Tests of local tasks: when queues share them, and when they need not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};

use super::*;

/// An event that a [`Probe`] reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Done {
    Shared,
    Ran,
    Dropped,
}

/// A local work that tells what is done to it.
struct Probe {
    tell: Sender<Done>,
    is_still: Arc<AtomicBool>,
    is_shared: bool,
    has_run: bool,
}

// SAFETY: it has nothing that would be confined to a thread.
unsafe impl LocalWork for Probe {
    fn run(work: LocalBlock<Probe>) {
        let mut probe = work.into_inner();
        probe.has_run = true;
        probe.tell.send(Done::Ran).unwrap();
    }

    fn share(&mut self) {
        if !self.is_shared {
            self.tell.send(Done::Shared).unwrap();
        }
        self.is_shared = true;
    }

    fn can_move(&self) -> bool {
        self.is_shared || self.is_still.load(Ordering::Relaxed)
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        if !self.has_run {
            // Nobody may be listening any more.
            let _ = self.tell.send(Done::Dropped);
        }
    }
}

/// Returns a probe, which can move or not, and the receiver of its events.
fn probe(is_still: bool) -> (LocalTask<'static>, Receiver<Done>) {
    let (tell, told) = channel();
    let probe = Probe {
        tell,
        is_still: Arc::new(AtomicBool::new(is_still)),
        is_shared: false,
        has_run: false,
    };
    (LocalTask::new(probe), told)
}

fn heard(told: &Receiver<Done>) -> Vec<Done> {
    told.try_iter().collect()
}

/// Runs `work` as a task of a new queue, and then all that this has added.
fn in_task(work: impl FnOnce(&SingleThreadedWorkQueue) + Send + 'static) {
    let queue = Arc::new(SingleThreadedWorkQueue::new());
    let weak: Weak<SingleThreadedWorkQueue> = Arc::downgrade(&queue);
    queue.add_task(Task::new(move || {
        work(&weak.upgrade().expect("the queue runs this"));
    }));
    queue.quiesce().unwrap();
}

#[test]
fn task_that_stays_on_its_thread_is_not_shared() {
    let (sender, receiver) = channel();
    in_task(move |queue| {
        let (task, told) = probe(false);
        queue.add_local_task(task);
        sender.send(told).unwrap();
    });
    let told = receiver.recv().unwrap();
    assert_eq!(heard(&told), [Done::Ran]);
}

#[test]
fn task_from_outside_is_shared_at_once() {
    let queue = SingleThreadedWorkQueue::new();
    let (task, told) = probe(true);
    queue.add_local_task(task);
    assert_eq!(heard(&told), [Done::Shared]);
    queue.quiesce().unwrap();
    assert_eq!(heard(&told), [Done::Ran]);
}

#[test]
fn queue_that_knows_no_local_tasks_shares_them() {
    let queue = MultiThreadedWorkQueue::new(1, 1).unwrap();
    let (task, told) = probe(true);
    queue.add_local_task(task);
    queue.quiesce().unwrap();
    assert_eq!(heard(&told), [Done::Shared, Done::Ran]);
}

#[test]
fn tasks_move_together_if_nothing_holds_them_back() {
    let queue = SingleThreadedWorkQueue::new();
    let (still, heard_of_still) = probe(true);
    let (busy, heard_of_busy) = probe(false);
    let mut tasks = vec![busy, still];
    queue.run_here(&mut || {
        while let Some(task) = tasks.pop() {
            queue.add_local_task(task);
        }
    });
    assert_eq!(heard(&heard_of_still), []);
    assert_eq!(heard(&heard_of_busy), [Done::Shared]);
    std::thread::scope(|scope| {
        scope.spawn(|| queue.quiesce().unwrap());
    });
    assert_eq!(heard(&heard_of_still), [Done::Ran]);
    assert_eq!(heard(&heard_of_busy), [Done::Ran]);
}

#[test]
fn thread_that_waits_while_it_adds_shares_what_it_has_added() {
    let queue = SingleThreadedWorkQueue::new();
    let (task, told) = probe(true);
    let mut task = Some(task);
    queue.run_here(&mut || {
        queue.add_local_task(task.take().unwrap());
        assert!(!queue.is_worker_thread());
        queue.quiesce().unwrap();
        assert_eq!(heard(&told), [Done::Shared, Done::Ran]);
    });
}

#[test]
fn task_that_quiesces_shares_what_it_has_added() {
    let (sender, receiver) = channel();
    in_task(move |queue| {
        let (task, told) = probe(true);
        queue.add_local_task(task);
        queue.quiesce().unwrap();
        sender.send(heard(&told)).unwrap();
    });
    assert_eq!(receiver.recv().unwrap(), [Done::Shared, Done::Ran]);
}

#[test]
fn tasks_in_line_are_shared_on_demand() {
    let queue = SingleThreadedWorkQueue::new();
    let (task, told) = probe(true);
    let mut task = Some(task);
    queue.run_here(&mut || queue.add_local_task(task.take().unwrap()));
    assert_eq!(heard(&told), []);
    queue.share_local_tasks();
    assert_eq!(heard(&told), [Done::Shared]);
    queue.quiesce().unwrap();
    assert_eq!(heard(&told), [Done::Ran]);
}

#[test]
fn tasks_that_nobody_waits_for_are_dropped_once() {
    let queue = SingleThreadedWorkQueue::new();
    let (task, told) = probe(true);
    let mut task = Some(task);
    queue.run_here(&mut || queue.add_local_task(task.take().unwrap()));
    drop(queue);
    let (unused, told_of_unused) = probe(true);
    drop(unused);
    assert_eq!(heard(&told), [Done::Dropped]);
    assert_eq!(heard(&told_of_unused), [Done::Dropped]);
}

/// A local work whose owner is that of somebody else's.
struct Impostor(*const ());

// SAFETY: it has nothing that would be confined to a thread.
unsafe impl LocalWork for Impostor {
    fn run(_: LocalBlock<Impostor>) {}

    fn share(&mut self) {}

    fn can_move(&self) -> bool {
        true
    }

    fn owner(&self) -> *const () {
        self.0
    }
}

/// A local work of a family.
struct Genuine(*const ());

static GENUINE: TaskFamily = TaskFamily::new();

// SAFETY: as above.
unsafe impl LocalWork for Genuine {
    const FAMILY: &'static TaskFamily = &GENUINE;

    fn run(_: LocalBlock<Genuine>) {}

    fn share(&mut self) {}

    fn can_move(&self) -> bool {
        true
    }

    fn owner(&self) -> *const () {
        self.0
    }
}

#[test]
fn work_that_gives_the_owner_of_another_type_is_not_taken_for_one() {
    let (frame, other) = (1_u8, 2_u8);
    let (frame, other) = ((&raw const frame).cast(), (&raw const other).cast());
    let is_of = |task: LocalTask<'_>| [frame, other].map(|owner| task.is_of(&GENUINE, owner));
    assert_eq!(is_of(LocalTask::new(Genuine(frame))), [true, false]);
    assert_eq!(is_of(LocalTask::new(Impostor(frame))), [false, false]);
}
