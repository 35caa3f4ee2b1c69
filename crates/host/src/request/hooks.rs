//! [`CancellationHook`]: what runs when a request is stopped.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use tfrt_async::Error;

use super::RequestContext;
use crate::executor::guarded;

/// A callback of a cancellation hook.
type Work = Box<dyn FnOnce(&Error) + Send>;

/// The callbacks that run when a request is cancelled, by number.
#[derive(Default)]
pub(super) struct Hooks {
    listed: Mutex<Listed>,
}

#[derive(Default)]
struct Listed {
    // Invariant: `None` where a place is free; those are listed.
    works: Vec<Option<Work>>,
    free: Vec<usize>,
}

/// Something that runs when a request is stopped, unless this is dropped before.
#[must_use = "what was to run does not if this is dropped"]
pub struct CancellationHook {
    request: Weak<RequestContext>,
    index: usize,
}

impl RequestContext {
    /// Runs `work` with the reason when the request is stopped: now if it is, else on the thread that stops it.
    /// A panic in `work` is caught, and lost.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use tfrt_host::{HostContext, RequestContext, kernel::KernelRegistry};
    ///
    /// let host = HostContext::builder(KernelRegistry::new()).build();
    /// let request = RequestContext::new(&host);
    /// let (sender, reasons) = mpsc::channel();
    /// let hook = request.on_cancel(move |reason| sender.send(reason.to_string()).unwrap());
    /// request.cancel();
    /// assert_eq!(reasons.recv().unwrap(), "Cancelled");
    /// # drop(hook);
    /// ```
    pub fn on_cancel(
        self: &Arc<Self>,
        work: impl FnOnce(&Error) + Send + 'static,
    ) -> CancellationHook {
        let mut listed = self.hooks.lock();
        // Whoever stops the request takes the list after the reason is set: either that finds this work, or
        // the reason is found here.
        if let Some(reason) = self.cancellation() {
            drop(listed);
            let _lost = guarded(|| work(reason));
            return CancellationHook {
                request: Weak::new(),
                index: 0,
            };
        }
        let work: Work = Box::new(work);
        let index = match listed.free.pop() {
            Some(index) => {
                listed.works[index] = Some(work);
                index
            }
            None => {
                listed.works.push(Some(work));
                listed.works.len() - 1
            }
        };
        CancellationHook {
            request: Arc::downgrade(self),
            index,
        }
    }
}

impl Hooks {
    fn lock(&self) -> std::sync::MutexGuard<'_, Listed> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs all that is there. Called once the reason is set.
    pub(super) fn run(&self, reason: &Error) {
        let works = std::mem::take(&mut *self.lock()).works;
        for work in works.into_iter().flatten() {
            let _lost = guarded(|| work(reason));
        }
    }
}

impl Drop for CancellationHook {
    fn drop(&mut self) {
        let Some(request) = self.request.upgrade() else {
            return;
        };
        let mut listed = request.hooks.lock();
        let work = listed.works.get_mut(self.index).and_then(Option::take);
        if work.is_some() {
            listed.free.push(self.index);
        }
        drop(listed);
        // Dropped without the lock: a promise in it may run anything.
        drop(work);
    }
}

impl std::fmt::Debug for CancellationHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CancellationHook").finish_non_exhaustive()
    }
}
