//! Results that tasks of the work queue compute.
//!
//! A kernel that gives [`Later`](crate::kernel::Later) leaves its register to a task. There is no
//! value to be awaited, only the register: the task fills it, and runs its users.
//!
//! # Local tasks
//!
//! The task is local to the thread as long as the queue keeps it there, and meanwhile the call stays
//! confined: no count is shared, and nobody counts who holds the frame. The local tasks of a call
//! hold it *together*: [`FrameTasks`] has their number, in the frame, and they own one reference to it.
//! It is that of a list of ready kernels which has come to its end while there were tasks; a task
//! that runs takes it for its own list, and so on. So a task that follows on a task costs no
//! read-modify-write.
//!
//! | A register is | Known by | Who may fill it |
//! | --- | --- | --- |
//! | the task's alone | its kernel's word, which says pending | the task |
//! | left | its bit among the awaited | whoever claims it: the task, or who gives the request up |
//!
//! A task that is shared leaves its register, and holds the frame by itself.
//!
//! # Invariants
//!
//! * I1. While a frame is confined, its local tasks are on the thread that it is confined to. Once it
//!   is shared they are all on one thread still, which alone touches [`FrameTasks`].
//! * I2. While there are local tasks of a frame, they own a reference, or (while it is confined) there
//!   is a list of its ready kernels on this thread, which leaves them its own.
//! * I3. Local tasks change threads all at once, and only if there is no such list, or the frame is
//!   shared (`LocalWork::can_move`). So a confined frame goes with them.

use std::mem::{self, ManuallyDrop};
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tfrt_async::queue::{LocalBlock, LocalTask, LocalWork, Task, TaskFamily};
use tfrt_async::{AnyAsyncValue, Error};

use super::frame::{Claim, Frame, ReadyList, Right};
use super::{Executor, bring, fail_if_abandoned, guarded, stream_of};
use crate::request::RequestContext;

/// A task that fills `register`, the only result of `kernel`, with what `compute` gives. To be queued
/// once the kernel has returned and was put off. Called while a list of the frame runs the kernel.
#[inline]
pub(crate) fn task<F: FnOnce() -> AnyAsyncValue + Send + 'static>(
    frame: &Arc<Frame>,
    kernel: u32,
    register: u32,
    compute: F,
) -> LocalTask<'static> {
    let is_alone = frame.is_shared();
    if is_alone {
        mem::forget(frame.clone());
    } else {
        frame.together().add(1);
    }
    let left = PendingResult {
        frame: NonNull::from(&**frame),
        kernel,
        register,
        is_alone,
        is_left: false,
    };
    LocalTask::new(DeferredTask {
        left,
        run: run_in_block::<F>,
        compute,
    })
}

/// Runs `compute` as a task that belongs to no call.
#[cold]
pub(crate) fn enqueue(
    request: &RequestContext,
    compute: impl FnOnce() -> AnyAsyncValue + Send + 'static,
) -> AnyAsyncValue {
    let (promise, value) = AnyAsyncValue::pending();
    request.queue().add_task(Task::new(move || {
        promise.forward(guarded(compute).unwrap_or_else(AnyAsyncValue::from_error));
    }));
    value
}

/// The local tasks of a frame: how many there are, and which lists may leave them their reference.
#[derive(Default)]
pub(super) struct FrameTasks {
    /// How many tasks there are. Written as I1 says.
    n_tasks: AtomicU32,
    /// They own a reference to the frame. Written as I1 says.
    is_owner: AtomicBool,
    /// How many lists there are. Of no meaning once the frame is shared.
    n_lists: AtomicU32,
}

impl FrameTasks {
    #[inline]
    fn n_tasks(&self) -> u32 {
        // Ordering: I1.
        self.n_tasks.load(Ordering::Relaxed)
    }

    #[inline]
    fn add(&self, n: u32) {
        // Ordering: I1.
        self.n_tasks.store(self.n_tasks() + n, Ordering::Relaxed);
    }

    #[inline]
    fn is_owner(&self) -> bool {
        // Ordering: I1.
        self.is_owner.load(Ordering::Relaxed)
    }

    #[inline]
    fn set_owner(&self, is_owner: bool) {
        // Ordering: I1.
        self.is_owner.store(is_owner, Ordering::Relaxed);
    }

    /// Tells whether there are tasks, which are on this thread, since the frame is confined.
    #[inline]
    pub(super) fn has_tasks(&self) -> bool {
        self.n_tasks() > 0
    }

    fn has_no_list(&self) -> bool {
        // Ordering: confined.
        self.n_lists.load(Ordering::Relaxed) == 0
    }

    /// The frame has just been shared: lists leave the tasks nothing any more.
    pub(super) fn share(&self, frame: &Arc<Frame>) {
        if self.has_tasks() && !self.is_owner() {
            mem::forget(frame.clone());
            self.set_owner(true);
        }
    }

    /// Takes a task out that a list of the confined frame has taken up.
    ///
    /// # Safety
    ///
    /// `frame` is the frame of this, and has local tasks, one of which is the caller's.
    #[inline]
    unsafe fn leave_to_list(&self, frame: NonNull<Frame>) {
        let n_left = self.n_tasks() - 1;
        // Ordering: I1.
        self.n_tasks.store(n_left, Ordering::Relaxed);
        if n_left == 0 && self.is_owner() {
            self.set_owner(false);
            // SAFETY: the tasks owned it, of which there is none any more.
            drop(unsafe { Arc::from_raw(frame.as_ptr()) });
        }
    }

    /// Takes a task out, with a reference to the frame. Unless that is shared, it is to go to a list.
    ///
    /// # Safety
    ///
    /// `frame` is the frame of this, and has local tasks, one of which is the caller.
    #[inline]
    unsafe fn leave(&self, frame: NonNull<Frame>, is_shared: bool) -> Arc<Frame> {
        let n_left = self.n_tasks() - 1;
        // Ordering: I1.
        self.n_tasks.store(n_left, Ordering::Relaxed);
        if self.is_owner() && (n_left == 0 || !is_shared) {
            self.set_owner(false);
        } else {
            // SAFETY: it lives, by I2, and is the content of an `Arc`.
            unsafe { Arc::increment_strong_count(frame.as_ptr()) };
        }
        // SAFETY: a reference that the tasks owned, or that was counted here.
        unsafe { Arc::from_raw(frame.as_ptr()) }
    }
}

/// A frame that a list of ready kernels is of.
pub(super) struct Listed(ManuallyDrop<Arc<Frame>>);

impl Listed {
    #[inline]
    pub(super) fn new(frame: Arc<Frame>) -> Listed {
        if !frame.is_shared() {
            let n_lists = &frame.together().n_lists;
            // Ordering: confined.
            n_lists.store(n_lists.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        Listed(ManuallyDrop::new(frame))
    }
}

impl Deref for Listed {
    type Target = Arc<Frame>;

    #[inline(always)]
    fn deref(&self) -> &Arc<Frame> {
        &self.0
    }
}

impl Drop for Listed {
    #[inline]
    fn drop(&mut self) {
        if !self.is_shared() {
            let together = self.together();
            // Ordering: confined, and so it was when this was made.
            let n_lists = together.n_lists.load(Ordering::Relaxed) - 1;
            together.n_lists.store(n_lists, Ordering::Relaxed);
            if together.has_tasks() && !together.is_owner() {
                // The reference is theirs now.
                return together.set_owner(true);
            }
        }
        // SAFETY: it is not used again.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}

/// A register that is left to a task: the right to fill it, and a hold on the frame.
struct PendingResult {
    // Invariant: the content of an `Arc`. The task owns a reference if it `is_alone`, else it is one of
    // those that do together.
    frame: NonNull<Frame>,
    kernel: u32,
    register: u32,
    is_alone: bool,
    /// Whoever claims the register may fill it.
    is_left: bool,
}

impl PendingResult {
    #[inline]
    fn frame(&self) -> &Frame {
        // SAFETY: this task keeps it alive, or all together do (I2).
        unsafe { self.frame.as_ref() }
    }

    /// Lends the frame as those have it who count.
    fn with_counted<R>(&self, look: impl FnOnce(&Arc<Frame>) -> R) -> R {
        // SAFETY: it lives as `frame` says, and is the content of an `Arc`. This is not dropped.
        let frame = ManuallyDrop::new(unsafe { Arc::from_raw(self.frame.as_ptr()) });
        look(&frame)
    }

    /// Takes the hold on the frame. It is not to be taken again.
    #[inline]
    fn take_frame(&self) -> Arc<Frame> {
        if self.is_alone {
            // SAFETY: the reference is the task's.
            return unsafe { Arc::from_raw(self.frame.as_ptr()) };
        }
        let frame = self.frame();
        // SAFETY: the task is one of its tasks, and is none after this.
        unsafe { frame.together().leave(self.frame, frame.is_shared()) }
    }

    /// Turns into a list of the frame, and the right to fill the register, if nobody else took it.
    #[inline]
    fn into_list(self) -> (ReadyList, Option<Right>) {
        let left = ManuallyDrop::new(self);
        let list = ReadyList::new(left.take_frame(), stream_of(left.frame(), left.kernel));
        let right = if left.is_left {
            list.frame()
                .claim(left.register)
                .and_then(Claim::into_right)
        } else {
            // SAFETY: the kernel was put off to this task, if it was at all.
            unsafe { list.frame().take_up(left.kernel, left.register) }
        };
        (list, right)
    }
}

impl Drop for PendingResult {
    /// The queue has dropped the task, or the kernel that has made it has panicked.
    #[cold]
    fn drop(&mut self) {
        let again = PendingResult { ..*self };
        if let (list, Some(right)) = again.into_list() {
            bring(
                list,
                right,
                self.kernel,
                AnyAsyncValue::from_error(dropped()),
            );
        }
    }
}

/// The family of all [`DeferredTask`].
// Invariant: named by their implementation of `LocalWork` alone.
static COMPUTING: TaskFamily = TaskFamily::new();

/// A register that is left to a task, and what that does.
#[repr(C)]
struct DeferredTask<F> {
    left: PendingResult,
    /// Computes, if that is wanted, and gives the block back.
    // Invariant: made for this type.
    run: unsafe fn(NonNull<DeferredTask<()>>, bool) -> Option<AnyAsyncValue>,
    compute: F,
}

/// # Safety
///
/// `work` is the address of a `DeferredTask<F>` in a block of its own, which is used up. What it held of
/// the frame was taken.
unsafe fn run_in_block<F: FnOnce() -> AnyAsyncValue>(
    work: NonNull<DeferredTask<()>>,
    is_wanted: bool,
) -> Option<AnyAsyncValue> {
    // SAFETY: the caller says so.
    let work = unsafe { LocalBlock::<DeferredTask<F>>::from_raw(work.cast()) };
    let DeferredTask { left, compute, .. } = work.into_inner();
    mem::forget(left);
    is_wanted.then(compute)
}

/// A local task that a list of its confined frame has taken from the queue, to run it itself.
pub(super) struct ClaimedTask {
    // Invariant: the address of a `DeferredTask` in a block of its own.
    work: NonNull<DeferredTask<()>>,
}

impl ClaimedTask {
    /// Takes the next task of the queue, if it is one of this frame, which is confined and has a list.
    #[inline]
    pub(super) fn next(frame: &Arc<Frame>) -> Option<ClaimedTask> {
        let owner = Arc::as_ptr(frame).cast();
        let mut taken = None;
        let queue = frame.request().queue();
        queue.take_local_task(owner, &mut |task| {
            // Whatever the queue is, it can't pass off anything else, nor more than one.
            if task.is_of(&COMPUTING, owner) && taken.is_none() {
                // SAFETY: the family says that `task` made it, and the owner that it is one of this frame's, of which
                // there is a list.
                taken = Some(unsafe { ClaimedTask::of(task) });
            }
        });
        taken
    }

    /// # Safety
    ///
    /// It was made by [`task`], for a frame that is confined and has a list.
    #[inline]
    unsafe fn of(task: LocalTask<'_>) -> ClaimedTask {
        let work = task.into_raw().cast::<DeferredTask<()>>();
        // SAFETY: the caller says so.
        let left = unsafe { &work.as_ref().left };
        // SAFETY: it is one of its tasks, and none after this.
        unsafe { left.frame().together().leave_to_list(left.frame) };
        ClaimedTask { work }
    }

    #[inline]
    fn left(&self) -> &PendingResult {
        // SAFETY: it is there until `run`.
        unsafe { &self.work.as_ref().left }
    }

    /// The kernel, and its register.
    #[inline]
    pub(super) fn target(&self) -> (u32, u32) {
        let left = self.left();
        (left.kernel, left.register)
    }

    /// Computes the value, unless the request was given up.
    #[inline]
    pub(super) fn run(self, request: &RequestContext) -> AnyAsyncValue {
        let work = ManuallyDrop::new(self).work;
        let reason = match request.is_cancelled() {
            true => request.abandoned(),
            false => None,
        };
        // SAFETY: it is there.
        let run = unsafe { work.as_ref().run };
        // SAFETY: made for this type; used once; the frame was left before.
        let value = unsafe { run(work, reason.is_none()) };
        value.unwrap_or_else(|| {
            let reason = reason.cloned();
            AnyAsyncValue::from_error(reason.unwrap_or_else(dropped))
        })
    }
}

impl Drop for ClaimedTask {
    #[cold]
    fn drop(&mut self) {
        // SAFETY: it is there.
        let run = unsafe { self.work.as_ref().run };
        // SAFETY: made for this type; used once; the frame was left before.
        drop(unsafe { run(self.work, false) });
    }
}

// SAFETY: `share` shares the frame, and then the task holds it like any other thread, and its register
// is to be claimed; the closure is `Send`. Where `can_move` says so of all tasks of a thread, those of
// a frame go together; and if the frame is confined, no list of it is left on this thread, so nothing
// but these tasks will touch it (I3).
unsafe impl<F: FnOnce() -> AnyAsyncValue + Send + 'static> LocalWork for DeferredTask<F> {
    const FAMILY: &'static TaskFamily = &COMPUTING;

    #[inline]
    fn run(work: LocalBlock<Self>) {
        let left = &work.get().left;
        let (frame, kernel) = (left.frame(), left.kernel);
        let request = frame.request();
        let is_simple = frame.is_simple() && !request.is_watched();
        if is_simple && request.is_on_queue_of_host() {
            let mut list = ReadyList::new(left.take_frame(), stream_of(frame, kernel));
            let work = work.into_raw().cast();
            list.begin_with(ClaimedTask { work });
            return Executor::run(list);
        }
        let DeferredTask { left, compute, .. } = work.into_inner();
        let kernel = left.kernel;
        let (list, right) = left.into_list();
        let Some(right) = right else {
            // The request was given up before the task has begun.
            return;
        };
        let value = match list.frame().request().abandoned() {
            Some(reason) => Err(reason.clone()),
            None => guarded(compute),
        };
        let (frame, request) = (list.frame(), list.frame().request());
        if request.is_watched() {
            request.record_part(frame.topology(), kernel);
        }
        let value = value.unwrap_or_else(AnyAsyncValue::from_error);
        bring(list, right, kernel, value);
    }

    fn share(&mut self) {
        let left = &mut self.left;
        if !left.is_alone {
            drop(left.with_counted(Frame::share));
            // The task owns this from now on.
            mem::forget(left.take_frame());
            left.is_alone = true;
        }
        if !left.is_left {
            left.is_left = true;
            // SAFETY: the kernel was put off to this task, if it was at all.
            if let Some(right) = unsafe { left.frame().take_up(left.kernel, left.register) } {
                left.frame().leave(right);
                left.with_counted(|frame| fail_if_abandoned(frame, left.register));
            }
        }
    }

    fn can_move(&self) -> bool {
        let (left, frame) = (&self.left, self.left.frame());
        let is_still = frame.is_shared() || frame.together().has_no_list();
        left.is_left || (is_still && frame.request().abandoned().is_none())
    }

    #[inline]
    fn owner(&self) -> *const () {
        self.left.frame.as_ptr().cast_const().cast()
    }
}

/// The error of a task that was dropped; it gets its kernel's name where it is located.
#[cold]
fn dropped() -> Error {
    let (promise, value) = AnyAsyncValue::pending();
    drop(promise);
    let error = value.error().cloned();
    error.expect("a promise that is dropped fails its value")
}
