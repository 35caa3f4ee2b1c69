//! Values that end with the cancellation of a request, and the state of tensors after it.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tfrt_host::{AsyncValue, Promise, RequestContext, Value};

/// Whether a tensor was there when its request was cancelled. The first look after the cancellation decides; later
/// looks see its answer.
#[derive(Debug, Default)]
pub(crate) struct StateAtCancel(AtomicU8);

/// The state before the first look after the cancellation.
const UNSEEN: u8 = 0;
const THERE: u8 = 1;
const LOST: u8 = 2;

impl StateAtCancel {
    /// Returns whether the tensor was there at the first look after the cancellation. Called only after the
    /// cancellation.
    #[inline]
    pub(crate) fn is_there(&self, is_settled: impl FnOnce() -> bool) -> bool {
        // Ordering: whoever reads that it is there finds it there, as whoever looked first did.
        let mut seen = self.0.load(Ordering::Acquire);
        if seen == UNSEEN {
            let found = if is_settled() { THERE } else { LOST };
            let (set, read) = (Ordering::AcqRel, Ordering::Acquire);
            let before = self.0.compare_exchange(UNSEEN, found, set, read);
            seen = before.map_or_else(|other| other, |_| found);
        }
        seen == THERE
    }
}

/// Returns a value that forwards `value`, or fails with the reason if the request is cancelled before `value`
/// settles.
pub(crate) fn until_cancelled<T: Value>(
    value: &AsyncValue<T>,
    request: &Arc<RequestContext>,
) -> AsyncValue<T> {
    if value.is_settled() {
        return value.clone();
    }
    let (promise, result): (Promise<T>, _) = AsyncValue::pending();
    // Whoever comes first takes the promise: the value, or the end of the request.
    let promise = Arc::new(Mutex::new(Some(promise)));
    let take = |promise: &Mutex<Option<Promise<T>>>| {
        let mut promise = promise.lock().unwrap_or_else(PoisonError::into_inner);
        promise.take()
    };
    let other = promise.clone();
    let hook = request.on_cancel(move |reason| {
        if let Some(promise) = take(&other) {
            promise.fail(reason.clone());
        }
    });
    let request = request.clone();
    value.clone().when_settled(move |value| {
        if let Some(promise) = take(&promise) {
            // The hook may be about to run.
            match request.cancellation() {
                Some(reason) => promise.fail(reason.clone()),
                None => promise.forward(value),
            }
        }
        drop(hook);
    });
    result
}
