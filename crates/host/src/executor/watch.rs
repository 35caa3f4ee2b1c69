//! The shared frames of a host, so that a request can be failed from outside: when its deadline
//! has passed, when it is cancelled, and when nothing is left that could go on with it.
//!
//! # Stuck requests
//!
//! A request is stuck when some kernel's result is awaited, and there is no task, no timer, no
//! thread inside the executor and no [`ExternalGuard`](crate::ExternalGuard) of the request that could
//! bring it. A watch on the timer queue looks for that while there are shared frames, as often as the
//! host says; two looks in a row at a host in which nothing moved find it. What becomes of it then is
//! up to the host's [`Stuck`].

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tfrt_async::{AnyAsyncValue, Error};
use tfrt_bef::order::sort_by;

use super::frame::{Frame, SharedFrame, WeakFrame};
use crate::context::{HostContext, WeakHost};
use crate::request::RequestContext;
use crate::stuck::Stuck;

/// The list keeps room for so many frames while there are none.
const N_KEPT: usize = 64;

/// Shared frames by address.
#[derive(Default)]
pub(crate) struct LiveFrames {
    frames: Mutex<Listed>,
    /// In the lower half, how many threads are inside the executor; in the upper half, how many have
    /// left it, and how many guards of work that goes on elsewhere have ended.
    busy: AtomicU64,
}

#[derive(Default)]
struct Listed {
    by_address: HashMap<usize, WeakFrame, BuildHasherDefault<AddressHasher>>,
    watched: bool,
}

/// Spreads addresses, which nobody can choose, over all bits.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize(usize::from(*byte));
        }
    }

    fn write_usize(&mut self, address: usize) {
        let mixed = (self.0 ^ address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A thread that runs kernels in order; it counts as busy until this is dropped, unless that is known of it: a
/// worker's task does.
pub(super) struct Busier<'h>(Option<&'h LiveFrames>);

impl<'h> Busier<'h> {
    #[inline]
    pub(super) fn new(host: &'h HostContext) -> Self {
        if host.queue().is_worker_thread() {
            return Busier(None);
        }
        host.live_frames().enter();
        Busier(Some(host.live_frames()))
    }
}

impl Drop for Busier<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(live) = self.0 {
            live.leave();
        }
    }
}

impl LiveFrames {
    /// A thread enters the executor.
    #[inline]
    pub(super) fn enter(&self) {
        // Ordering: read by the watch, which looks twice.
        self.busy.fetch_add(1, Ordering::AcqRel);
    }

    /// A thread leaves the executor.
    #[inline]
    pub(super) fn leave(&self) {
        // Ordering: as in `enter`. One more has ended, one less is busy.
        self.busy.fetch_add((1 << 32) - 1, Ordering::AcqRel);
    }

    /// Work that went on elsewhere has ended.
    pub(crate) fn note_end(&self) {
        // Ordering: as in `enter`.
        self.busy.fetch_add(1 << 32, Ordering::AcqRel);
    }

    /// Lists a frame that has just become shared.
    pub(crate) fn add(&self, frame: &Arc<Frame>) {
        let mut listed = self.lock();
        listed
            .by_address
            .insert(Arc::as_ptr(frame).addr(), WeakFrame::new(frame));
        let start_watch = !std::mem::replace(&mut listed.watched, true);
        drop(listed);
        if start_watch {
            watch(frame.request().host().downgrade(), None);
        }
    }

    /// Returns how many frames are listed.
    pub(crate) fn len(&self) -> usize {
        self.lock().by_address.len()
    }

    /// Forgets a frame that is being dropped.
    pub(crate) fn remove(&self, frame: &Frame) {
        let mut listed = self.lock();
        listed.by_address.remove(&std::ptr::from_ref(frame).addr());
    }

    /// The live frames, those of one request together, callees before their callers.
    fn innermost_first(&self) -> Vec<SharedFrame> {
        let listed = self.lock();
        let frames = listed.by_address.values().filter_map(WeakFrame::upgrade);
        let mut frames: Vec<SharedFrame> = frames.collect();
        // Frames may be dropped by their last handle here, which takes the lock.
        drop(listed);
        sort_by(&mut frames, |a, b| {
            let requests = request_address(a).cmp(&request_address(b));
            requests.then_with(|| b.local().depth().cmp(&a.local().depth()))
        });
        frames
    }

    fn lock(&self) -> MutexGuard<'_, Listed> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells whether the watch should go on; if not, it has ended.
    fn still_watched(&self) -> bool {
        let mut listed = self.lock();
        listed.watched = !listed.by_address.is_empty();
        if listed.watched {
            return true;
        }
        // What a burst of calls took is not kept.
        listed.by_address.shrink_to(N_KEPT);
        false
    }
}

/// Fails everything that a request awaits with `error`.
pub(crate) fn abandon(request: &RequestContext, error: &Error) {
    // Calls whose tasks nobody is about to run are listed by this.
    request.queue().share_local_tasks();
    for frame in request.host().live_frames().innermost_first() {
        if std::ptr::eq(&**frame.local().request(), request) {
            for register in frame.local().awaited_registers() {
                super::resume(
                    frame.clone(),
                    register,
                    AnyAsyncValue::from_error(error.clone()),
                );
            }
        }
    }
}

/// Looks again after a while.
fn watch(host: WeakHost, previous: Option<(u64, u64)>) {
    let Some(strong) = host.upgrade() else { return };
    let (timers, period) = (strong.watchdog().clone(), strong.stuck().period());
    drop(strong);
    timers.schedule_after(period, move || {
        let Some(strong) = host.upgrade() else { return };
        if !strong.live_frames().still_watched() {
            return;
        }
        let now = strong.quiet();
        if now.is_some() && now == previous {
            find_stuck(&strong, now);
        }
        drop(strong);
        watch(host, now);
    });
}

impl HostContext {
    /// A mark of the host's progress, if nothing is going on that could make any.
    fn quiet(&self) -> Option<(u64, u64)> {
        // Ordering: pairs with `enter` and `leave`.
        let busy = self.live_frames().busy.load(Ordering::Acquire);
        let activity = self.queue().activity();
        let idle = activity.in_flight == 0 && self.timers().pending() == 0 && busy as u32 == 0;
        idle.then_some((activity.epoch, busy))
    }
}

/// As many kernels are named in the error of a stuck request.
const MAX_NAMED: usize = 16;

/// Finds every request of a quiet host that still awaits something, if the host is as quiet as it was found.
fn find_stuck(host: &HostContext, found: Option<(u64, u64)>) {
    let frames = host.live_frames().innermost_first();
    let requests = frames.chunk_by(|a, b| request_address(a) == request_address(b));
    let is_left = |frames: &&[SharedFrame]| !frames[0].local().request().goes_on_outside();
    let left: Vec<&[SharedFrame]> = requests.filter(is_left).collect();
    if host.quiet() != found {
        // A guard may have ended since the host was looked at, with whatever came of that.
        return;
    }
    for frames in left {
        let request = frames[0].local().request().clone();
        if request.abandoned().is_some() {
            // Nothing of it runs any more, but a promise among its data may keep it alive.
            request.clear_data();
        } else if goes_on_elsewhere(host, &request, found) {
            // It is looked at again.
        } else if !frames.iter().any(is_owed_an_argument) {
            attend(host, &request, frames);
        }
    }
}

/// Does what the host does about stuck requests.
fn attend(host: &HostContext, request: &RequestContext, frames: &[SharedFrame]) {
    let is_failed = host.stuck() != Stuck::Report;
    if !is_failed && request.was_reported() {
        return;
    }
    let Some((awaited, names)) = innermost(frames) else {
        return;
    };
    let (is, never) = match is_failed {
        true => ("is", "never"),
        false => ("may be", "has not"),
    };
    let error = Error::internal(format!(
        "the request {is} stuck: nothing can run and nothing is in flight, but {names} {never} resolved"
    ));
    if !is_failed {
        return host.tell(&error);
    }
    for (frame, register) in awaited {
        super::resume(frame, register, AnyAsyncValue::from_error(error.clone()));
    }
    // A promise among the request's own data would keep the request, and so itself, alive.
    request.clear_data();
}

/// Tells whether tasks on a queue of its own may go on with a request, or the last of them has just handed on what is
/// to come. In the small command no request has one.
fn goes_on_elsewhere(
    host: &HostContext,
    request: &RequestContext,
    found: Option<(u64, u64)>,
) -> bool {
    !cfg!(tfrt_for_size)
        && !request.is_on_queue_of_host()
        && (request.queue().activity().in_flight > 0 || host.quiet() != found)
}

fn request_address(frame: &SharedFrame) -> usize {
    Arc::as_ptr(frame.local().request()).addr()
}

/// Tells whether a call from outside of the program waits for an argument: its caller may be
/// anybody, and has all the time in the world.
fn is_owed_an_argument(frame: &SharedFrame) -> bool {
    let frame = frame.local();
    let is_argument = |register: &u32| frame.shape().producer(*register).is_none();
    frame.depth() == 0 && frame.awaited_registers().iter().any(is_argument)
}

/// Returns the registers that the innermost calls of a request await, and the names of their kernels; the innermost
/// frames are the first of `frames`. When these registers are failed, whatever waits for them goes on; if it is still
/// stuck, a later look finds it.
fn innermost(frames: &[SharedFrame]) -> Option<(Vec<(SharedFrame, u32)>, String)> {
    for calls in frames.chunk_by(|a, b| a.local().depth() == b.local().depth()) {
        let mut awaited = Vec::new();
        let mut names = Vec::new();
        for frame in calls {
            for register in frame.local().awaited_registers() {
                // An argument comes from another call, which holds the cause.
                if let Some(name) = super::describe(frame.local(), register) {
                    names.push(name);
                    awaited.push((frame.clone(), register));
                }
            }
        }
        if awaited.is_empty() {
            continue;
        }
        sort_by(&mut names, Ord::cmp);
        names.dedup();
        let n_more = names.len().saturating_sub(MAX_NAMED);
        names.truncate(MAX_NAMED);
        let mut names = names.join(", ");
        if n_more > 0 {
            names.push_str(&format!(" and {n_more} more"));
        }
        return Some((awaited, names));
    }
    None
}
