//! [`VariableState`]: the tensor of a variable, also while it is changed.

use tfrt_corert::{Context, TensorHandle};
use tfrt_host::Promise;
use tfrt_tensor::{Tensor, TensorMetadata};

/// The tensor of a variable. Whoever changes it takes it out, so that its memory can be written over; whoever asks for it
/// meanwhile gets what it will be.
pub(super) struct VariableState {
    /// The tensor; `None` while it is changed, and nobody has asked for it.
    handle: Option<TensorHandle>,
    /// Type and shape, if they were known at the first.
    metadata: Option<TensorMetadata>,
    /// The latest change.
    latest: Change,
    /// Promises of tensors that somebody has asked for during changes that are not over.
    promised: Vec<(Change, Promise<Tensor>)>,
}

/// The number of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Change(u64);

impl VariableState {
    pub(super) fn new(handle: TensorHandle) -> VariableState {
        VariableState {
            metadata: handle.metadata().cloned(),
            handle: Some(handle),
            latest: Change::default(),
            promised: Vec::new(),
        }
    }

    /// Type and shape, if they are known.
    pub(super) fn metadata(&self) -> Option<&TensorMetadata> {
        let of_handle = || self.handle.as_ref()?.metadata();
        self.metadata.as_ref().or_else(of_handle)
    }

    /// Returns the tensor as it is, or will be.
    pub(super) fn read(&mut self, context: &Context) -> TensorHandle {
        let handle = self.take(context);
        self.handle.insert(handle).clone()
    }

    /// Begins a change: takes the tensor out.
    pub(super) fn begin(&mut self, context: &Context) -> (TensorHandle, Change) {
        let handle = self.take(context);
        self.latest.0 += 1;
        (handle, self.latest)
    }

    /// Ends a change with the tensor that it made. Gives what is to be done without a lock.
    #[must_use]
    pub(super) fn end(&mut self, change: Change, handle: TensorHandle) -> Option<ReadyPromise> {
        let position = self.promised.iter().position(|(of, _)| *of == change);
        let promise = position.map(|position| self.promised.swap_remove(position).1);
        let kept = promise.map(|promise| (promise, handle.clone()));
        // Else a later change has begun with what was promised, or has replaced it.
        if change == self.latest {
            self.handle = Some(handle);
        }
        kept.map(|(promise, handle)| ReadyPromise { promise, handle })
    }

    /// Replaces the tensor; returns what was there.
    pub(super) fn replace(&mut self, handle: TensorHandle) -> Option<TensorHandle> {
        self.latest.0 += 1;
        self.handle.replace(handle)
    }

    fn take(&mut self, context: &Context) -> TensorHandle {
        self.handle.take().unwrap_or_else(|| {
            let (promise, handle) = context.promise(self.metadata.clone());
            self.promised.push((self.latest, promise));
            handle
        })
    }
}

/// A promise with the tensor that resolves it.
pub(super) struct ReadyPromise {
    promise: Promise<Tensor>,
    handle: TensorHandle,
}

impl ReadyPromise {
    /// Resolves the promise. Continuations may run, so that no lock may be held.
    pub(super) fn keep(self) {
        self.promise.forward(self.handle.to_async());
    }
}
