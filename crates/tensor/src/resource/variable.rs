//! [`Variable`]: a tensor that is replaced, or changed in place where nobody sees it.
//!
//! | Mode | Dense read | Change of all | Change of some rows |
//! | --- | --- | --- | --- |
//! | copy on write, as at first | shares the memory | in place if nobody else holds the memory, else in a copy | goes over to copy on read |
//! | copy on read, after a change of rows | copies | in place: nobody else holds the memory | in place |
//!
//! The lock of a variable says who may look and who may change; its content lies behind a short lock of its own, so that
//! foreign code that swaps a tensor while it reads loses none.

use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use smallvec::SmallVec;
use tfrt_host::{AsyncValue, Error, HostAllocator, LockMode, RwHold, RwQueueLock};

use super::{Resource, Slot};
use crate::{DenseHostTensor, Tensor, TensorMetadata};

/// A tensor that changes, as a resource: weights and what optimizers keep beside them.
///
/// # Examples
///
/// ```
/// use tfrt_host::{HostContext, LockMode, kernel::KernelRegistry};
/// use tfrt_tensor::DenseHostTensor;
/// use tfrt_tensor::resource::{Slot, Variable};
///
/// let host = HostContext::builder(KernelRegistry::new()).build();
/// let handle = Slot::anonymous(Variable::new()).handle();
/// let variable = Slot::of(&handle)?.get::<Variable>()?;
/// let writing = variable.lock().try_write().unwrap();
/// variable.assign(DenseHostTensor::scalar(host.allocator(), 7)?.into(), host.allocator())?;
/// drop(writing);
/// let reading = variable.lock().try_read().unwrap();
/// let tensor = variable.read(host.allocator())?.unwrap();
/// assert_eq!(*tensor.as_dense()?.read()?.elements::<i32>()?, [7]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Default)]
pub struct Variable {
    lock: RwQueueLock,
    content: RwLock<Content>,
}

#[derive(Default)]
struct Content {
    /// The tensor; `None` before it is assigned, and when it is destroyed.
    tensor: Option<Tensor>,
    copies_on_read: bool,
}

impl Variable {
    /// Returns a variable without a tensor.
    pub fn new() -> Variable {
        Variable::default()
    }

    /// Returns the lock: [`read`](Self::read) wants it for reading, whatever changes the tensor for writing.
    #[inline]
    pub fn lock(&self) -> &RwQueueLock {
        &self.lock
    }

    #[inline]
    fn content(&self) -> RwLockReadGuard<'_, Content> {
        self.content.read().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn content_mut(&self) -> RwLockWriteGuard<'_, Content> {
        self.content.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether there is a tensor.
    pub fn is_initialized(&self) -> bool {
        self.content().tensor.is_some()
    }

    /// Returns whether dense reads copy, so that rows can be changed in place.
    pub fn copies_on_read(&self) -> bool {
        self.content().copies_on_read
    }

    /// Returns type and shape of the tensor, if there is one.
    pub fn metadata(&self) -> Option<TensorMetadata> {
        let content = self.content();
        Some(content.tensor.as_ref()?.metadata().clone())
    }

    /// Returns the tensor, which nobody changes, if there is one: it shares the variable's memory, or is a copy if the
    /// variable copies on read.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory for a copy.
    #[inline]
    pub fn read(&self, allocator: &Arc<dyn HostAllocator>) -> Result<Option<Tensor>, Error> {
        let content = self.content();
        match &content.tensor {
            Some(tensor) if content.copies_on_read => copy_of(tensor, allocator).map(Some),
            found => Ok(found.clone()),
        }
    }

    /// Returns the tensor as it lies, if there is one, to be looked at while the lock is held. Who keeps it for longer
    /// [reads](Self::read) it.
    pub fn look(&self) -> Option<Tensor> {
        self.content().tensor.clone()
    }

    /// Replaces the tensor. In copy-on-read mode the new one is copied.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory for a copy.
    pub fn assign(&self, tensor: Tensor, allocator: &Arc<dyn HostAllocator>) -> Result<(), Error> {
        let tensor = match self.copies_on_read() {
            true => copy_of(&tensor, allocator)?,
            false => tensor,
        };
        let before = self.content_mut().tensor.replace(tensor);
        // Without the lock: memory may be given back.
        drop(before);
        Ok(())
    }

    /// Makes the tensor ready to be changed in place, all of it: copies it if somebody else holds its memory.
    /// Returns it, if there is one. It shares the variable's memory, so that it must go before
    /// the lock does.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is not dense, `ResourceExhausted` if there is no memory for a copy.
    pub fn prepare_to_update(
        &self,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<Option<DenseHostTensor>, Error> {
        let mut content = self.content_mut();
        let Some(tensor) = &mut content.tensor else {
            return Ok(None);
        };
        own(tensor, allocator).map(Some)
    }

    /// Makes the tensor ready for changes of rows in place: goes over to copy on read, and copies once if somebody else
    /// holds the memory. Returns the tensor, if there is one; see [`prepare_to_update`](Self::prepare_to_update).
    ///
    /// # Errors
    ///
    /// Those of [`prepare_to_update`](Self::prepare_to_update).
    pub fn prepare_rows(
        &self,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<Option<DenseHostTensor>, Error> {
        let mut content = self.content_mut();
        let Some(tensor) = &mut content.tensor else {
            return Ok(None);
        };
        let found = own(tensor, allocator)?;
        content.copies_on_read = true;
        Ok(Some(found))
    }

    /// Returns the tensor if somebody else holds its memory, so that it is copied before it is changed in place.
    pub fn shared(&self) -> Option<Tensor> {
        let mut content = self.content_mut();
        let tensor = content.tensor.as_mut()?;
        if let Tensor::Dense(dense) = tensor
            && dense.is_sole()
        {
            return None;
        }
        Some(tensor.clone())
    }

    /// Replaces the tensor by one whose memory nobody else will hold: it is not copied in any mode.
    pub fn replace(&self, tensor: Tensor) {
        let before = self.content_mut().tensor.replace(tensor);
        drop(before);
    }

    /// Goes over to copy on read, for who changes rows of memory that is [ready](Self::prepare_to_update) for that.
    pub fn enable_copy_on_read(&self) {
        self.content_mut().copies_on_read = true;
    }

    /// Lets dense reads share the memory again.
    pub fn disable_copy_on_read(&self) {
        self.content_mut().copies_on_read = false;
    }
}

/// Returns a dense tensor that nobody else holds, of a variable's tensor, which becomes that.
fn own(tensor: &mut Tensor, allocator: &Arc<dyn HostAllocator>) -> Result<DenseHostTensor, Error> {
    if let Tensor::Dense(dense) = tensor
        && dense.is_sole()
    {
        return Ok(dense.clone());
    }
    let copy = crate::convert::to_format(tensor, crate::TensorFormat::DenseHost, allocator)?;
    let own = copy.as_dense()?.clone();
    *tensor = copy;
    Ok(own)
}

fn copy_of(tensor: &Tensor, allocator: &Arc<dyn HostAllocator>) -> Result<Tensor, Error> {
    match tensor {
        Tensor::Dense(dense) => Ok(dense.deep_copy(allocator)?.into()),
        // Nobody writes these.
        other => Ok(other.clone()),
    }
}

impl Resource for Variable {
    fn type_name(&self) -> &str {
        "Var"
    }

    fn destroy(&self) -> bool {
        let mut content = self.content_mut();
        content.copies_on_read = false;
        let before = content.tensor.take();
        drop(content);
        before.is_some()
    }
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.metadata() {
            Some(metadata) => write!(f, "Variable({metadata})"),
            None => f.write_str("Variable(not initialized)"),
        }
    }
}

/// The locks of several variables, held until this is dropped.
#[derive(Debug, Default)]
#[must_use = "locks that are dropped are given back"]
pub struct VariableHolds {
    holds: SmallVec<[HeldLock; 2]>,
}

thread_local! {
    /// Whether this thread is giving back the locks of several variables.
    static GIVES_BACK: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether this thread is giving back the locks of several variables, and still holds some perhaps: what waited
/// for one of them runs meanwhile, and must not block for another.
pub fn is_giving_back() -> bool {
    GIVES_BACK.get()
}

impl Drop for VariableHolds {
    #[inline]
    fn drop(&mut self) {
        if self.holds.len() > 1 {
            let before = GIVES_BACK.replace(true);
            self.holds.clear();
            GIVES_BACK.set(before);
        }
    }
}

#[derive(Debug)]
enum HeldLock {
    Here(RwHold),
    Awaited(AsyncValue<RwHold>),
}

impl VariableHolds {
    /// Makes rights to read some of the variables rights to write, before those who wait, unless others read them.
    /// Returns whether all of these are rights to write now; some may be, if not.
    pub fn try_upgrade<'s>(&self, of: impl IntoIterator<Item = &'s Arc<Slot>>) -> bool {
        let variables = of.into_iter();
        let mut all = true;
        for variable in variables.filter_map(|slot| slot.get::<Variable>().ok()) {
            let mut holds = self.holds.iter().filter_map(|one| match one {
                HeldLock::Here(hold) => Some(hold),
                HeldLock::Awaited(value) => value.get()?.ok(),
            });
            all &= holds.any(|hold| hold.is_of(variable.lock()) && hold.try_upgrade());
        }
        all
    }
}

impl tfrt_host::Value for VariableHolds {
    const NAME: &'static str = "!t.variable_holds";
    type Storage = tfrt_host::Heap;
}

/// Returns the variables of slots, each once, in the order in which they are locked.
fn in_order(slots: &[Arc<Slot>]) -> Result<Vec<&Arc<Slot>>, Error> {
    let mut all: Vec<&Arc<Slot>> = slots.iter().collect();
    all.sort_by_key(|slot| slot.number());
    all.dedup_by_key(|slot| slot.number());
    for slot in &all {
        slot.get::<Variable>()?;
    }
    Ok(all)
}

/// Locks several variables, in the order of their numbers, if nobody is in the way of any. A variable that is named
/// twice is locked once.
///
/// # Errors
///
/// `InvalidArgument` if a slot holds no variable.
pub fn try_lock_all(slots: &[Arc<Slot>], mode: LockMode) -> Result<Option<VariableHolds>, Error> {
    if let [slot] = slots {
        let hold = slot.get::<Variable>()?.lock().try_acquire(mode);
        return Ok(hold.map(|hold| VariableHolds {
            holds: SmallVec::from_iter([HeldLock::Here(hold)]),
        }));
    }
    let mut holds = SmallVec::with_capacity(slots.len());
    for slot in in_order(slots)? {
        match slot.get::<Variable>()?.lock().try_acquire(mode) {
            Some(hold) => holds.push(HeldLock::Here(hold)),
            // Those that are held are given back.
            None => return Ok(None),
        }
    }
    Ok(Some(VariableHolds { holds }))
}

/// Locks several variables, in the order of their numbers; resolves when all are held. A variable that is named twice is
/// locked once.
///
/// # Errors
///
/// `InvalidArgument` if a slot holds no variable.
pub fn lock_all(slots: &[Arc<Slot>], mode: LockMode) -> Result<AsyncValue<VariableHolds>, Error> {
    let all: Vec<Arc<Slot>> = in_order(slots)?.into_iter().cloned().collect();
    let (promise, value) = AsyncValue::pending();
    let holds = SmallVec::with_capacity(all.len());
    lock_next(all, mode, holds, promise);
    Ok(value)
}

/// Locks the variables after those that are held, one when the one before is there.
fn lock_next(
    all: Vec<Arc<Slot>>,
    mode: LockMode,
    mut holds: SmallVec<[HeldLock; 2]>,
    promise: tfrt_host::Promise<VariableHolds>,
) {
    while let Some(slot) = all.get(holds.len()) {
        let Ok(variable) = slot.get::<Variable>() else {
            return promise.fail(Error::internal("each slot was found to hold a variable"));
        };
        let next = variable.lock().acquire(mode);
        if !next.is_settled() {
            return next.when_settled(move |next| {
                holds.push(HeldLock::Awaited(next));
                lock_next(all, mode, holds, promise);
            });
        }
        holds.push(HeldLock::Awaited(next));
    }
    promise.resolve(VariableHolds { holds });
}
