//! Continuations: stored, run in order, bounded in depth.
//!
//! A waiter is a closure in one of two places: in the cell ([`InlineWaiter`], the first small one of a
//! cell) or in a [`WaiterNode`] of its own. A settled cell hands over all of them at once to [`run_all`],
//! which touches the cell no more.
//!
//! # Bounded depth
//!
//! A waiter may settle another value, whose waiters settle another, a million times; and a value
//! may own a value that owns a value. So whatever may nest goes through [`enter`], which counts
//! the depth on this thread. At [`MAX_DEPTH`] the work is not done but put on the thread's
//! backlog ([`defer`]), which the outermost level works off before it returns.
//!
//! # Panics
//!
//! A panic in a waiter, or in the destructor of a payload, is caught and counted, and goes no
//! further: the thread that settles a value answers for no one's continuation.

use std::{
    any::Any,
    cell::Cell,
    mem::{self, MaybeUninit},
    panic::{self, AssertUnwindSafe},
    ptr::{self, NonNull},
};

use crate::{
    cell::Garbage,
    counters,
    memory::{self, BlockLayout},
    sync::{UnsafeCell, thread_cell},
};

/// The greatest depth to which waiters and destructors may nest on one thread.
pub(crate) const MAX_DEPTH: u32 = 128;

/// False under loom, whose reports are panics that must not be caught.
const CATCHES_PANICS: bool = !cfg!(loom);

/// The number of times that a panic's payload may panic when it is dropped, before it is leaked
/// instead.
const MAX_RETHROWS: u32 = 4;

/// The closure of a [`InlineWaiter`] has at most this many words.
const FIRST_WORDS: usize = 3;

/// A waiter that is stored in the cell.
pub(crate) struct InlineWaiter {
    call: unsafe fn(*const FirstClosure),
    closure: FirstClosure,
}

type FirstClosure = MaybeUninit<[usize; FIRST_WORDS]>;

impl InlineWaiter {
    /// Returns true if closures of this type can be stored in the cell.
    pub(crate) const fn fits<F>() -> bool {
        size_of::<F>() <= size_of::<FirstClosure>() && align_of::<F>() <= align_of::<FirstClosure>()
    }

    /// Stores `closure`, or gives it back if it does not fit.
    #[inline]
    pub(crate) fn new<F: FnOnce()>(closure: F) -> Result<InlineWaiter, F> {
        if !InlineWaiter::fits::<F>() {
            return Err(closure);
        }
        let mut stored = FirstClosure::uninit();
        // SAFETY: it fits, in size and in alignment.
        unsafe { stored.as_mut_ptr().cast::<F>().write(closure) };
        Ok(InlineWaiter {
            call: call_first::<F>,
            closure: stored,
        })
    }

    /// Takes the closure back.
    ///
    /// # Safety
    ///
    /// `F` is the type that the waiter was made with.
    pub(crate) unsafe fn into_closure<F: FnOnce()>(self) -> F {
        // SAFETY: the caller says that an `F` is stored; `self` is consumed.
        unsafe { self.closure.as_ptr().cast::<F>().read() }
    }

    /// Calls the closure.
    ///
    /// # Safety
    ///
    /// It is not used again.
    #[inline(always)]
    unsafe fn run(&mut self) {
        // SAFETY: `call` was made for the type of the stored closure, which the caller says is
        // moved out once.
        caught(|| unsafe { (self.call)(&raw const self.closure) });
    }
}

/// Moves a closure of type `F` out of `closure` and calls it.
///
/// # Safety
///
/// `closure` holds an `F`, which is not used again.
unsafe fn call_first<F: FnOnce()>(closure: *const FirstClosure) {
    // SAFETY: the caller says so.
    let closure = unsafe { closure.cast::<F>().read() };
    closure();
}

/// The beginning of a waiter in a block of its own.
///
/// Aligned so that the low bits of its address are free for the state word's flags.
#[repr(C, align(16))]
pub(crate) struct WaiterNode {
    next: UnsafeCell<*mut WaiterNode>,
    call: unsafe fn(NonNull<WaiterNode>),
}

#[repr(C)]
struct ClosureNode<F> {
    node: WaiterNode,
    closure: UnsafeCell<MaybeUninit<F>>,
}

impl WaiterNode {
    /// Stores `closure` in a block of its own.
    pub(crate) fn allocate<F: FnOnce()>(closure: F) -> NonNull<WaiterNode> {
        let block =
            memory::allocate_block(BlockLayout::of::<ClosureNode<F>>()).cast::<ClosureNode<F>>();
        let node = WaiterNode {
            next: UnsafeCell::new(ptr::null_mut()),
            call: call_node::<F>,
        };
        // SAFETY: the block is fresh and has the layout of a `ClosureNode<F>`.
        unsafe {
            block.write(ClosureNode {
                node,
                closure: UnsafeCell::new(MaybeUninit::new(closure)),
            })
        };
        block.cast()
    }

    /// Sets the next older waiter.
    ///
    /// # Safety
    ///
    /// `node` is alive and not yet pushed, so that only the caller has it.
    pub(crate) unsafe fn set_next(node: NonNull<WaiterNode>, next: *mut WaiterNode) {
        // SAFETY: the caller says that the node is alive.
        let node = unsafe { node.as_ref() };
        // SAFETY: the caller says that nobody else has it.
        node.next.with_mut(|place| unsafe { *place = next });
    }

    /// Takes the closure back and frees the node.
    ///
    /// # Safety
    ///
    /// `node` was made by [`WaiterNode::allocate`] for an `F`, and is not used again.
    pub(crate) unsafe fn into_closure<F: FnOnce()>(node: NonNull<WaiterNode>) -> F {
        let full = node.cast::<ClosureNode<F>>();
        // SAFETY: the caller says that this is a live `ClosureNode<F>` that nobody else has.
        let ClosureNode { node: _, closure } = unsafe { full.read() };
        // SAFETY: the block has that layout, and nothing of it is used any more.
        unsafe { memory::free_block(full.cast(), BlockLayout::of::<ClosureNode<F>>()) };
        // SAFETY: the closure was initialised by `allocate` and is moved out once.
        closure.with(|closure| unsafe { closure.cast::<F>().read() })
    }
}

/// Frees a node and calls its closure.
///
/// # Safety
///
/// See [`WaiterNode::into_closure`].
unsafe fn call_node<F: FnOnce()>(node: NonNull<WaiterNode>) {
    // SAFETY: the caller's promise is the same.
    let closure = unsafe { WaiterNode::into_closure::<F>(node) };
    closure();
}

/// Runs the waiters of a cell that has been settled, newest first, now or (at the depth limit)
/// before the outermost level of this thread returns.
///
/// The first waiter, the oldest, is run where it lies and not moved: it was copied out of the cell
/// a moment ago, and copying that again takes longer than most waiters do.
///
/// # Safety
///
/// `nodes` is null or the head of a list of nodes. With `has_first`, `first` is initialised. All of
/// them belong to the caller, who gives them away.
#[inline(always)]
pub(crate) unsafe fn run_all(
    nodes: *mut WaiterNode,
    has_first: bool,
    first: &mut MaybeUninit<InlineWaiter>,
) {
    let Some(_entered) = enter() else {
        // SAFETY: the caller says that it is there, and it is moved out once.
        let first = has_first.then(|| unsafe { first.assume_init_read() });
        return defer(DeferredWork::Waiters(DeferredWaiters { nodes, first }));
    };
    if !nodes.is_null() {
        // SAFETY: the caller gives the list away.
        unsafe { run_nodes(nodes) };
    }
    if has_first {
        // SAFETY: the caller says that it is there.
        let first = unsafe { first.assume_init_mut() };
        // SAFETY: the caller gives it away.
        unsafe { first.run() };
    }
}

/// Waiters that have to wait for the stack to be less deep.
struct DeferredWaiters {
    /// Invariant: the head of a list of nodes that belongs to nobody else.
    nodes: *mut WaiterNode,
    first: Option<InlineWaiter>,
}

impl DeferredWaiters {
    fn run(self) {
        // SAFETY: by the field's invariant the list is ours.
        unsafe { run_nodes(self.nodes) };
        if let Some(mut first) = self.first {
            // SAFETY: it is not used again.
            unsafe { first.run() };
        }
    }
}

/// Runs a list of waiters.
///
/// # Safety
///
/// `nodes` is null or the head of a list of nodes that belongs to the caller, who gives it away.
#[inline(never)]
unsafe fn run_nodes(nodes: *mut WaiterNode) {
    let mut next = NonNull::new(nodes);
    while let Some(node) = next {
        // SAFETY: the list belongs to us, so its nodes are alive.
        let head = unsafe { node.as_ref() };
        // SAFETY: a node's link is not written after it was pushed.
        next = NonNull::new(head.next.with(|next| unsafe { *next }));
        let call = head.call;
        // SAFETY: `call` was made for this node, whose link was read, and which is not used
        // again.
        caught(|| unsafe { call(node) });
    }
}

/// Calls `work`, now or (at the depth limit) before the outermost level of this thread returns.
pub(crate) fn run_now(work: impl FnOnce() + 'static) {
    match enter() {
        Some(_entered) => caught(work),
        None => defer(DeferredWork::Call(Box::new(work))),
    }
}

/// Destroys what is left of a cell, now or before the outermost level of this thread returns.
pub(crate) fn destroy(garbage: Garbage) {
    match enter() {
        Some(_entered) => caught(|| drop(garbage)),
        None => defer(DeferredWork::Destroy(garbage)),
    }
}

/// Calls `work`; a panic in it is counted and goes no further.
#[inline]
fn caught(work: impl FnOnce()) {
    if !CATCHES_PANICS {
        return work();
    }
    if let Err(thrown) = panic::catch_unwind(AssertUnwindSafe(work)) {
        count_and_drop(thrown);
    }
}

#[cold]
#[inline(never)]
fn count_and_drop(mut thrown: Box<dyn Any + Send>) {
    counters::panic_caught();
    // What was thrown may itself throw when dropped, and that again.
    for _ in 0..MAX_RETHROWS {
        match panic::catch_unwind(AssertUnwindSafe(|| drop(thrown))) {
            Ok(()) => return,
            Err(next) => thrown = next,
        }
    }
    mem::forget(thrown);
}

/// DeferredWork that was put off because the stack is deep.
enum DeferredWork {
    Waiters(DeferredWaiters),
    Destroy(Garbage),
    Call(Box<dyn FnOnce()>),
}

struct Deferred {
    work: DeferredWork,
    next: Cell<*mut Deferred>,
}

/// The nesting depth of waiters on one thread, and its backlog. Needs no destructor: the backlog is
/// empty whenever the depth is zero.
struct Nesting {
    depth: Cell<u32>,
    oldest: Cell<*mut Deferred>,
    newest: Cell<*mut Deferred>,
}

thread_cell! {
    static NESTING: Nesting = Nesting {
        depth: Cell::new(0),
        oldest: Cell::new(ptr::null_mut()),
        newest: Cell::new(ptr::null_mut()),
    };
}

/// One level of nesting, and how deep it was before; leaving the outermost works off the backlog.
struct NestingLevel(u32);

/// Goes one level deeper, or returns `None` at the limit: then the caller defers its work.
#[inline]
fn enter() -> Option<NestingLevel> {
    NESTING.with(|nesting| {
        let depth = nesting.depth.get();
        if depth >= MAX_DEPTH {
            return None;
        }
        nesting.depth.set(depth + 1);
        Some(NestingLevel(depth))
    })
}

impl Drop for NestingLevel {
    #[inline]
    fn drop(&mut self) {
        NESTING.with(|nesting| {
            if self.0 == 0 && !nesting.oldest.get().is_null() {
                nesting.work_off();
            }
            nesting.depth.set(self.0);
        });
    }
}

impl Nesting {
    /// Runs the backlog, oldest first, until it is empty. The depth stays one meanwhile.
    #[cold]
    fn work_off(&self) {
        while !self.oldest.get().is_null() {
            // SAFETY: the backlog holds boxes that were turned into pointers by `defer`; this
            // one is unlinked here and so turned back once.
            let deferred = unsafe { Box::from_raw(self.oldest.get()) };
            self.oldest.set(deferred.next.get());
            if self.oldest.get().is_null() {
                self.newest.set(ptr::null_mut());
            }
            match deferred.work {
                DeferredWork::Waiters(waiters) => waiters.run(),
                DeferredWork::Destroy(garbage) => caught(|| drop(garbage)),
                DeferredWork::Call(work) => caught(work),
            }
        }
    }
}

/// Puts work on the backlog. Only called at the depth limit, so somebody will work it off.
#[cold]
fn defer(work: DeferredWork) {
    let deferred = Box::into_raw(Box::new(Deferred {
        work,
        next: Cell::new(ptr::null_mut()),
    }));
    NESTING.with(|nesting| {
        match NonNull::new(nesting.newest.get()) {
            // SAFETY: what is on the backlog is alive until `work_off` unlinks it.
            Some(newest) => unsafe { newest.as_ref() }.next.set(deferred),
            None => nesting.oldest.set(deferred),
        }
        nesting.newest.set(deferred);
    });
}

#[cfg(all(test, not(loom)))]
mod tests;
