//! [`Registers`] that one thread runs kernels of: counts are plain numbers, and ready kernels are linked
//! through their words.
//!
//! Nothing here is allocated, and nothing is looked up twice: a kernel that becomes ready is put on
//! top of a [`ReadyStack`] by one store, and taken off by one load.

use std::hint::cold_path;

use tfrt_async::AnyAsyncValue;
use tfrt_async::sync::{AtomicU32, Ordering};

use super::{Ready, Registers, STARTED};
use crate::executor::plan::dataflow::DataflowPlan;
use crate::executor::plan::records::{CountedRecord, NO_USER, RecordWalk};
use crate::executor::slots::{Activation, Slots};

/// Rights to start kernels of one call, the last to become ready on top: the word of each names the
/// next.
///
/// Rights that are in it when it is dropped are lost, as those of a list are.
#[derive(Debug)]
pub(crate) struct ReadyStack {
    /// The kernel on top, or [`ReadyStack::BOTTOM`].
    // Invariant: nobody else has the right to start it, nor those that follow.
    top: u32,
}

impl ReadyStack {
    /// Stands below the last kernel. Wait counts and numbers of kernels are smaller.
    pub(crate) const BOTTOM: u32 = NO_USER;

    pub(crate) const EMPTY: ReadyStack = ReadyStack { top: Self::BOTTOM };

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.top == Self::BOTTOM
    }
}

impl Registers {
    /// These registers for the innermost loop, if they are confined and no kernel is marked. They stay
    /// so while this is used: only the executor shares them, and not while it runs kernels.
    #[inline]
    pub(crate) fn confined(&self) -> Option<Confined<'_>> {
        let is_plain = !self.is_shared() && !self.shape.has_marks();
        is_plain.then(|| Confined {
            registers: self,
            slots: self.slots(),
            words: self.words.as_slice(),
            shape: &self.shape,
        })
    }

    /// Begins the call with all its arguments, if these are confined and no kernel is marked: what
    /// starts with them was found at load.
    ///
    /// # Panics
    ///
    /// If the call was begun before, or has another number of arguments.
    pub(crate) fn begin_given(&self, arguments: Vec<AnyAsyncValue>) -> ReadyStack {
        let outputs = self.shape.arguments().outputs();
        assert!(
            !self.is_shared() && arguments.len() == outputs.len(),
            "the call fits the function"
        );
        let Some(begun) = self.shape.begun() else {
            unreachable!("no kernel is marked");
        };
        // Ordering: confined.
        let entered = self.entered.load(Ordering::Relaxed);
        assert!(!entered, "a call is begun once");
        for (output, value) in outputs.iter().zip(arguments) {
            // Whoever drops a value may panic: then the call has not begun, and what was filled leaks.
            let _users_are_counted_below = self.fill_with(*output, value);
        }
        // Ordering: confined.
        self.entered.store(true, Ordering::Relaxed);
        ReadyStack { top: begun.top }
    }

    /// Takes all rights off a stack; the last is that on top.
    ///
    /// # Safety
    ///
    /// The stack came from these registers.
    #[cold]
    pub(crate) unsafe fn unstack(&self, stack: &mut ReadyStack) -> Vec<Ready> {
        let mut rights = Vec::new();
        let mut top = std::mem::replace(stack, ReadyStack::EMPTY).top;
        while top != ReadyStack::BOTTOM {
            rights.push(Ready { kernel: top });
            // Ordering: whoever has the right to start a kernel is the only one to look at its word.
            top = self.word(top).load(Ordering::Relaxed);
        }
        rights.reverse();
        rights
    }
}

/// See [`Registers::confined`].
#[derive(Clone, Copy)]
pub(crate) struct Confined<'r> {
    registers: &'r Registers,
    slots: Slots<'r>,
    words: &'r [AtomicU32],
    shape: &'r DataflowPlan,
}

impl<'r> Confined<'r> {
    #[inline(always)]
    fn word(&self, kernel: u32) -> &'r AtomicU32 {
        debug_assert!((kernel as usize) < self.words.len());
        // SAFETY: rights, and lists of users, name kernels of the shape, which has a word for each.
        unsafe { self.words.get_unchecked(kernel as usize) }
    }

    /// Puts a right on top of a stack.
    ///
    /// # Safety
    ///
    /// Both came from these registers.
    #[inline(always)]
    pub(crate) unsafe fn push(&self, stack: &mut ReadyStack, ready: Ready) {
        // Ordering: confined; and `Ready` is the only right to this word.
        self.word(ready.kernel).store(stack.top, Ordering::Relaxed);
        stack.top = ready.kernel;
    }

    /// Starts the kernel on top of a stack, which is not started by it if this is `None`: see
    /// [`Registers::start`].
    ///
    /// # Safety
    ///
    /// The stack and the walk came from these registers.
    #[inline(always)]
    pub(crate) unsafe fn start_top(
        &self,
        stack: &mut ReadyStack,
        walk: &mut RecordWalk<'r>,
    ) -> Option<(u32, CountedRecord<'r>, Activation<'r>)> {
        let kernel = stack.top;
        if kernel == ReadyStack::BOTTOM {
            return None;
        }
        let word = self.word(kernel);
        // Ordering: the right to start it is the only right to this word; the drop of the call reads
        // it.
        stack.top = word.load(Ordering::Relaxed);
        // Ordering: as above.
        word.store(STARTED, Ordering::Relaxed);
        // SAFETY: rights name kernels of the shape.
        let record = unsafe { walk.go_to(kernel) };
        // SAFETY: as in `Registers::start`.
        let activation = unsafe { Activation::new(self.slots, record.record()) };
        Some((kernel, record, activation))
    }

    /// Puts the only result of a kernel that was put off, and finds its record.
    ///
    /// # Safety
    ///
    /// The register is the kernel's only result, which the caller has the right to. The walk came from
    /// these registers.
    #[inline(always)]
    pub(crate) unsafe fn put_late(
        &self,
        kernel: u32,
        register: u32,
        value: AnyAsyncValue,
        walk: &mut RecordWalk<'r>,
    ) -> CountedRecord<'r> {
        // SAFETY: as if the kernel had put it when it ran.
        unsafe { self.slots.put(register, value) };
        // SAFETY: rights name kernels of the shape.
        unsafe { walk.go_to(kernel) }
    }

    /// Gives all results of a kernel to their readers, and puts those that become ready on a stack: see
    /// [`Registers::finish_plain`].
    ///
    /// # Safety
    ///
    /// The kernel of this record was started here, its results are put, and this is done once. The
    /// stack came from these registers.
    #[inline(always)]
    pub(crate) unsafe fn finish_plain(&self, record: CountedRecord<'_>, stack: &mut ReadyStack) {
        let is_special = record.for_users(|user| {
            let word = self.word(user);
            // Ordering: confined.
            let waits = word.load(Ordering::Relaxed) - 1;
            // As `push` would do; but written so that nothing depends on it but two numbers.
            let (word_after, top) = match waits {
                0 => (stack.top, user),
                _ => (waits, stack.top),
            };
            // Ordering: confined.
            word.store(word_after, Ordering::Relaxed);
            stack.top = top;
        });
        if is_special {
            cold_path();
            // Nobody waits for them, and no user has been started yet.
            let outputs = record.record().outputs().iter();
            for output in outputs.filter(|output| output.may_be_forwarded()) {
                self.registers.fill_special(*output);
            }
        }
    }

    /// A way from kernel to kernel, for [`Self::start_top`].
    pub(crate) fn walk(&self) -> RecordWalk<'r> {
        self.shape.walk()
    }

    pub(crate) fn registers(&self) -> &'r Registers {
        self.registers
    }
}
