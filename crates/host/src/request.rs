//! Requests and executions: cancellation, deadlines, data, resources, and a kernel's place.

use std::any::Any;
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tfrt_async::queue::{ConcurrentWorkQueue, Task, TileResult, TimerHandle};
use tfrt_async::{
    AsyncValue, Chain, Error, ErrorCode, HostAllocator, Promise, SourceLocation, Value,
};
use tfrt_bef::LocationOffset;

use crate::context::HostContext;
use crate::executor::plan::function::FunctionPlan;
use crate::executor::{guarded, watch};
use crate::program::ProgramRef;
use crate::record::{KernelSpan, KernelWork};
use crate::trace::{TraceLevel, TraceSpan};
use crate::type_map::TypeMap;

// The small command has nobody who asks to be told.
#[cfg(not(tfrt_for_size))]
mod hooks;
#[allow(unsafe_code, reason = "a listed module")]
mod lent;
mod promise;
mod sharing;

#[cfg(not(tfrt_for_size))]
pub use self::hooks::CancellationHook;
pub use self::lent::LentContext;
pub use self::promise::{ExternalGuard, KernelPromise};

/// Named values that live as long as their creator decides.
///
/// Dropped in the reverse order of creation.
#[derive(Default)]
pub struct ResourceContext {
    resources: Mutex<Vec<(String, Arc<dyn Any + Send + Sync>)>>,
}

impl ResourceContext {
    /// Makes an empty context.
    pub fn new() -> Self {
        ResourceContext::default()
    }

    /// Finds the resource called `name`, if it is a `T`.
    pub fn get<T: Send + Sync + 'static>(&self, name: &str) -> Option<Arc<T>> {
        let resources = self
            .resources
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (_, resource) = resources.iter().find(|(present, _)| present == name)?;
        resource.clone().downcast().ok()
    }

    /// Finds the resource called `name`, or creates it.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if there is one of another type.
    pub fn get_or_create<T: Send + Sync + 'static>(
        &self,
        name: &str,
        create: impl FnOnce() -> T,
    ) -> Result<Arc<T>, Error> {
        let mut resources = self
            .resources
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some((_, resource)) = resources.iter().find(|(present, _)| present == name) {
            return resource.clone().downcast().map_err(|_| {
                Error::already_exists(format!("resource '{name}' exists with another type"))
            });
        }
        let resource = Arc::new(create());
        resources.push((name.to_owned(), resource.clone()));
        Ok(resource)
    }

    /// Removes the resource called `name`, if there is one.
    pub fn remove(&self, name: &str) {
        let mut resources = self
            .resources
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        resources.retain(|(present, _)| present != name);
    }
}

impl Drop for ResourceContext {
    fn drop(&mut self) {
        let resources = self
            .resources
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        while resources.pop().is_some() {}
    }
}

impl fmt::Debug for ResourceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceContext").finish_non_exhaustive()
    }
}

/// One request: what its functions share, and what can stop them together.
///
/// # Examples
///
/// ```
/// use tfrt_host::{HostContext, RequestContext, kernel::KernelRegistry};
///
/// let host = HostContext::builder(KernelRegistry::new()).build();
/// let request = RequestContext::builder(&host).data(42i32).build();
/// assert_eq!(*request.data::<i32>().unwrap(), 42);
/// request.cancel();
/// assert!(request.is_cancelled());
/// ```
pub struct RequestContext {
    id: i64,
    host: HostContext,
    /// Its own, in place of the host's.
    queue: Option<Arc<dyn ConcurrentWorkQueue>>,
    has_resources: bool,
    // Invariant: set at the latest when somebody asks, if it has any.
    resources: OnceLock<Arc<ResourceContext>>,
    data: Mutex<TypeMap<Arc<dyn Any + Send + Sync>>>,
    // Invariant: set once; the first reason is final.
    cancellation: OnceLock<Error>,
    // Invariant: set after `cancellation`; unset if what is awaited is left to its producers.
    is_abandoned: AtomicBool,
    #[cfg(not(tfrt_for_size))]
    hooks: hooks::Hooks,
    n_steps: AtomicU64,
    /// How many guards say that something outside of the host brings the request forward.
    n_outside: AtomicU32,
    /// Whether the diagnostic handler was told that the request may be stuck.
    was_reported: AtomicBool,
    deadline: Mutex<Option<(Instant, TimerHandle)>>,
    // Invariant: if there is one, the host has an allocator for it.
    max_memory: Option<usize>,
}

/// Puts a [`RequestContext`] together.
pub struct RequestContextBuilder {
    id: i64,
    host: HostContext,
    queue: Option<Arc<dyn ConcurrentWorkQueue>>,
    has_resources: bool,
    resources: Option<Arc<ResourceContext>>,
    data: TypeMap<Arc<dyn Any + Send + Sync>>,
    /// When the request is cancelled, and the time that it was given, if that was said.
    deadline: Option<(Instant, Option<Duration>)>,
    max_memory: Option<usize>,
}

impl RequestContextBuilder {
    /// A number that tells requests apart. Default: 0.
    pub fn id(mut self, id: i64) -> Self {
        self.id = id;
        self
    }

    /// Runs this request's tasks on a queue of its own instead of the host's.
    pub fn queue(mut self, queue: Arc<dyn ConcurrentWorkQueue>) -> Self {
        self.queue = Some(queue);
        self
    }

    /// Gives kernels named resources. Default: none.
    pub fn resources(mut self, resources: Arc<ResourceContext>) -> Self {
        self.has_resources = true;
        self.resources = Some(resources);
        self
    }

    /// Gives kernels named resources that are the request's own, made when the first of them asks.
    pub fn own_resources(mut self) -> Self {
        self.has_resources = true;
        self
    }

    /// Gives kernels a value, found by its type.
    pub fn data<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.data.insert::<T>(Arc::new(value));
        self
    }

    /// Cancels the request at `deadline`: kernels that have not started fail with
    /// `DeadlineExceeded`, and so does everything that is awaited then.
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some((deadline, None));
        self
    }

    /// Cancels the request after a time, as [`deadline`](Self::deadline) does. A time too long for the clock never ends.
    pub fn deadline_after(self, after: Duration) -> Self {
        self.deadline_left(after, after)
    }

    /// Cancels the request after `left`, what is left of the time that it was `allowed`, as [`deadline_after`](Self::deadline_after)
    /// does: errors tell the time allowed.
    pub fn deadline_left(mut self, left: Duration, allowed: Duration) -> Self {
        if let Some(at) = self.host.now().checked_add(left) {
            self.deadline = Some((at, Some(allowed)));
        }
        self
    }

    /// Limits the bytes that the request holds at once: those of its calls, and of the tensors that its kernels make,
    /// for as long as they live. What exceeds it fails as what exceeds the host's limit does, with
    /// `ResourceExhausted`, and a note that names the request's. Default: only the host's.
    pub fn max_memory(mut self, bytes: usize) -> Self {
        self.host = self.host.limited(bytes);
        self.max_memory = Some(bytes);
        self
    }

    /// Makes the request.
    pub fn build(self) -> Arc<RequestContext> {
        let request = Arc::new(RequestContext {
            id: self.id,
            queue: self.queue,
            host: self.host,
            has_resources: self.has_resources,
            resources: self.resources.map_or_else(OnceLock::new, OnceLock::from),
            data: Mutex::new(self.data),
            cancellation: OnceLock::new(),
            is_abandoned: AtomicBool::new(false),
            #[cfg(not(tfrt_for_size))]
            hooks: hooks::Hooks::default(),
            n_steps: AtomicU64::new(0),
            n_outside: AtomicU32::new(0),
            was_reported: AtomicBool::new(false),
            deadline: Mutex::new(None),
            max_memory: self.max_memory,
        });
        if let Some((deadline, allowed)) = self.deadline {
            request.stop_at(deadline, allowed);
        }
        request
    }
}

impl RequestContext {
    /// Makes a request with resources of its own and no deadline.
    pub fn new(host: &HostContext) -> Arc<Self> {
        Self::builder(host).own_resources().build()
    }

    /// Begins to put a request together.
    pub fn builder(host: &HostContext) -> RequestContextBuilder {
        RequestContextBuilder {
            id: 0,
            host: host.clone(),
            queue: None,
            has_resources: false,
            resources: None,
            data: TypeMap::default(),
            deadline: None,
            max_memory: None,
        }
    }

    /// Makes a request like this one that is not stopped, and has no deadline: of the same number, on the same queue,
    /// with the same resources and data, and, if its memory is limited, within the same limit.
    pub fn renewed(&self) -> Arc<Self> {
        let data = self.data.lock().unwrap_or_else(PoisonError::into_inner);
        let builder = RequestContextBuilder {
            id: self.id,
            host: self.host.clone(),
            queue: self.queue.clone(),
            has_resources: self.has_resources,
            resources: self.resources().cloned(),
            data: data.clone(),
            deadline: None,
            max_memory: self.max_memory,
        };
        drop(data);
        builder.build()
    }

    /// The number that it was given.
    pub fn id(&self) -> i64 {
        self.id
    }

    /// The host.
    pub fn host(&self) -> &HostContext {
        &self.host
    }

    /// The queue that this request's tasks run on.
    pub fn queue(&self) -> &Arc<dyn ConcurrentWorkQueue> {
        self.queue.as_ref().unwrap_or_else(|| self.host.queue())
    }

    /// Whether its tasks run on the queue of the host.
    #[inline]
    pub(crate) fn is_on_queue_of_host(&self) -> bool {
        self.queue.is_none()
    }

    /// The named resources, if it has any.
    pub fn resources(&self) -> Option<&Arc<ResourceContext>> {
        let make = || Arc::new(ResourceContext::new());
        self.has_resources.then(|| self.resources.get_or_init(make))
    }

    /// The value of type `T` that it was given.
    pub fn data<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let data = self.data.lock().unwrap_or_else(PoisonError::into_inner);
        data.get::<T>()?.clone().downcast().ok()
    }

    /// The value of type `T`, made now if there is none. It lives as long as the request.
    pub fn data_or_insert<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut data = self.data.lock().unwrap_or_else(PoisonError::into_inner);
        let value = data.get_or_insert_with::<T>(|| Arc::new(make())).clone();
        value.downcast().expect("the map is keyed by the type")
    }

    /// Drops the values that [`data`](Self::data) finds. Whoever is done with a request does this:
    /// such a value may hold what holds the request.
    pub fn clear_data(&self) {
        let data = std::mem::take(&mut *self.data.lock().unwrap_or_else(PoisonError::into_inner));
        // Dropped without the lock: a promise among them runs what waited for it.
        drop(data);
    }

    /// Stops the request with code `Cancelled`: kernels that have not started fail, and so does
    /// everything that is awaited now. Kernels that are running go on to their end.
    pub fn cancel(&self) {
        self.cancel_with(Error::cancelled("Cancelled"));
    }

    /// Stops the request with an error of your own. The first reason is final.
    pub fn cancel_with(&self, reason: Error) {
        self.cancel_unstarted(reason);
        if let Some(reason) = self.cancellation() {
            // Ordering: of this and the leaving of a register, either comes first in the one order of
            // all such operations. So either the look below finds a register that was left, or
            // whoever leaves it finds this flag.
            let again = self.is_abandoned.swap(true, Ordering::SeqCst);
            if !again {
                watch::abandon(self, reason);
                #[cfg(not(tfrt_for_size))]
                self.hooks.run(reason);
            }
        }
    }

    /// Why everything that is awaited fails from now on, if it does. Asked after a register was
    /// left to be claimed.
    pub(crate) fn abandoned(&self) -> Option<&Error> {
        // Ordering: see `cancel_with`.
        let is_abandoned = self.is_abandoned.load(Ordering::SeqCst);
        self.cancellation().filter(|_| is_abandoned)
    }

    /// Keeps kernels from starting, and leaves what is awaited to those who promised it, as
    /// cancelling did in the original runtime.
    pub fn cancel_unstarted(&self, reason: Error) {
        // The empty name says that the error is no kernel's own, so that none reports it.
        let _ = self.cancellation.set(reason.with_kernel(""));
    }

    /// Tells whether the request was stopped.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.cancellation.get().is_some()
    }

    /// Why the request was stopped, if it was.
    #[inline]
    pub fn cancellation(&self) -> Option<&Error> {
        self.cancellation.get()
    }

    /// Cancels the request at `deadline` with code `DeadlineExceeded`.
    pub fn set_deadline(self: &Arc<Self>, deadline: Instant) {
        self.stop_at(deadline, None);
    }

    /// Cancels the request at `deadline`; errors say that the time until then was `allowed`.
    fn stop_at(self: &Arc<Self>, deadline: Instant, allowed: Option<Duration>) {
        let request = Arc::downgrade(self);
        let now = self.host.now();
        let allowed = allowed.unwrap_or_else(|| whole(deadline.saturating_duration_since(now)));
        let exceeded = move || {
            let message = format!("Deadline exceeded: the time allowed was {allowed:?}");
            Error::deadline_exceeded(message)
        };
        if deadline <= now {
            // Nothing is to start while a timer's thread wakes up.
            return self.cancel_with(exceeded());
        }
        let timer = self.host.watchdog().schedule_at(deadline, move || {
            if let Some(request) = request.upgrade() {
                request.cancel_with(exceeded());
            }
        });
        let mut slot = self.deadline.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, previous)) = slot.replace((deadline, timer)) {
            previous.cancel();
        }
    }

    /// Returns when the request is cancelled, if it was given a deadline that was still to come, by the clock of the host.
    pub fn deadline(&self) -> Option<Instant> {
        let slot = self.deadline.lock().unwrap_or_else(PoisonError::into_inner);
        slot.as_ref().map(|(deadline, _)| *deadline)
    }

    /// Whether somebody wants to hear of each kernel.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.host.is_watched()
    }

    /// This thread begins to run kernels of a watched request: what it did before is none of them.
    #[cold]
    pub(crate) fn begin_watch(&self) {
        if let Some(recorder) = self.host.recorder() {
            recorder.mark();
        }
    }

    /// Hears that a kernel of a call begins; it ends when what this gives is dropped.
    #[inline]
    pub(crate) fn watch<'a>(
        &'a self,
        topology: &FunctionPlan,
        kernel: u32,
        call: u64,
    ) -> KernelSpan<'a> {
        self.count_steps(1);
        let name = || topology.entry(kernel).name.to_string();
        let scope = self.host.trace();
        let scope = scope.map(|sink| TraceSpan::new(sink, TraceLevel::Debug, name));
        let recorder = self.host.recorder().zip(topology.recorded_as);
        KernelSpan::new(scope, recorder, kernel, call)
    }

    /// Something was done on this thread for a kernel that has returned.
    #[cold]
    pub(crate) fn record_part(&self, topology: &FunctionPlan, kernel: u32) {
        if let Some((recorder, function)) = self.host.recorder().zip(topology.recorded_as) {
            recorder.part(function, kernel);
        }
    }

    /// How many requests for memory were refused for the limit of this request.
    pub fn memory_refusals(&self) -> u64 {
        self.host.own_refusals()
    }

    /// Says of an error that tells of too little memory, if the request's own limit may be why.
    fn with_limit(&self, error: Error) -> Error {
        match self.max_memory {
            Some(bytes)
                if error.code() == ErrorCode::ResourceExhausted && self.memory_refusals() > 0 =>
            {
                let asked = self.host.own_last_refused_bytes();
                error.with_note(format!(
                    "the request is limited to {bytes} bytes at once, and {asked} more were asked for"
                ))
            }
            _ => error,
        }
    }

    /// Says whether one more call may begin inside of `depth` others.
    pub(crate) fn check_depth(&self, depth: usize) -> Result<(), Error> {
        let limits = self.host.limits();
        if depth < limits.max_depth as usize {
            return Ok(());
        }
        Err(limits.depth_exceeded())
    }

    /// Counts kernels run and calls made, and stops the request when they are too many.
    #[inline]
    pub(crate) fn count_steps(&self, n: u64) {
        if let Some(limit) = self.host.limits().max_steps {
            self.count_against(limit, n);
        }
    }

    fn count_against(&self, limit: u64, n: u64) {
        // Ordering: a statistic.
        let before = self.n_steps.fetch_add(n, Ordering::Relaxed);
        // Who crosses the limit says so: the steps of a long way out are not worth a word.
        if before <= limit && before + n > limit {
            self.cancel_with(self.host.limits().steps_exceeded());
        }
    }
}

/// A time that is left until a deadline, without the little that has passed since the deadline was thought of: in whole
/// milliseconds, upwards.
fn whole(left: Duration) -> Duration {
    let milliseconds = left.as_nanos().div_ceil(1_000_000);
    Duration::from_millis(u64::try_from(milliseconds).unwrap_or(u64::MAX))
}

impl Drop for RequestContext {
    fn drop(&mut self) {
        if let Some((_, timer)) = self
            .deadline
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            timer.cancel();
        }
    }
}

impl fmt::Debug for RequestContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestContext")
            .field("id", &self.id)
            .field("cancellation", &self.cancellation)
            .finish_non_exhaustive()
    }
}

/// A request, and the place in the program from which it is looked at.
#[derive(Clone)]
pub struct ExecutionContext {
    request: Arc<RequestContext>,
    place: Option<Place>,
}

/// Where a kernel stands.
#[derive(Clone)]
struct Place {
    program: ProgramRef,
    function: u32,
    kernel: u32,
}

impl Place {
    /// Where it lies in the file's table of places, and the kernel's name.
    fn look_up(&self) -> (u32, &Arc<str>) {
        self.program.place(self.function, self.kernel)
    }
}

impl From<Arc<RequestContext>> for ExecutionContext {
    /// As [`ExecutionContext::new`], for the last who needs the handle.
    fn from(request: Arc<RequestContext>) -> Self {
        ExecutionContext {
            request,
            place: None,
        }
    }
}

impl ExecutionContext {
    /// Makes a context outside of any program.
    pub fn new(request: &Arc<RequestContext>) -> Self {
        ExecutionContext {
            request: request.clone(),
            place: None,
        }
    }

    /// Makes a context for a kernel of a function.
    #[inline]
    pub(crate) fn for_kernel(
        program: &ProgramRef,
        request: &Arc<RequestContext>,
        topology: &FunctionPlan,
        kernel: u32,
    ) -> Self {
        let place = Place {
            program: program.clone(),
            function: topology.number,
            kernel,
        };
        ExecutionContext {
            request: request.clone(),
            place: Some(place),
        }
    }

    /// The request.
    pub fn request(&self) -> &Arc<RequestContext> {
        &self.request
    }

    /// The host.
    pub fn host(&self) -> &HostContext {
        self.request.host()
    }

    /// The allocator of the request's calls and buffers: the host's, or one that counts against the request's own limit.
    pub fn allocator(&self) -> &Arc<dyn HostAllocator> {
        self.host().allocator()
    }

    /// The queue that tasks go to.
    pub fn queue(&self) -> &Arc<dyn ConcurrentWorkQueue> {
        self.request.queue()
    }

    /// The place of the operation in the user's source.
    pub fn location(&self) -> Option<SourceLocation> {
        let place = self.place.as_ref()?;
        place.program.location(LocationOffset(place.look_up().0))
    }

    /// The number under which the file records the place; no two operations share one.
    pub fn location_id(&self) -> Option<u32> {
        self.place.as_ref().map(|place| place.look_up().0)
    }

    /// The name that the program gives the operation for debugging.
    pub fn debug_name(&self) -> Option<String> {
        let place = self.place.as_ref()?;
        place
            .program
            .file()
            .debug_name(LocationOffset(place.look_up().0))
    }

    /// Gives an error this place, and tells the host's diagnostic handler about it.
    ///
    /// The executor does this for every error that a kernel returns or resolves a promise with.
    pub fn report(&self, error: Error) -> Error {
        let error = self.request.with_limit(error);
        let Some(place) = &self.place else {
            self.host().tell(&error);
            return error;
        };
        let error = match self.location() {
            Some(location) => error.with_location(location),
            None => error,
        };
        let error = error.with_kernel(&**place.look_up().1);
        self.host().tell(&error);
        error
    }

    /// Reports an error unless it was reported before: then it has a kernel's name.
    pub(crate) fn report_once(&self, error: Error) -> Error {
        match error.kernel() {
            Some(_) => error,
            None => self.report(error),
        }
    }

    /// Who works for the kernel on other threads, or later.
    pub fn part(&self) -> KernelWork {
        let recorder = self.host().recorder();
        let place = self.place.as_ref().filter(|_| recorder.is_some());
        let of = place.and_then(|place| {
            let function = place.program.function_id(place.function)?;
            Some((function, place.kernel))
        });
        KernelWork::new(recorder, of)
    }

    /// Runs `body(start, end)` for each tile of `range`, on the queue's workers and for one tile on
    /// the calling thread, unless the request is cancelled before: see
    /// [`parallel_for`](crate::parallel_for). What is done counts as a part of the kernel.
    ///
    /// # Errors
    ///
    /// The value fails with the error of the last tile that failed, or with the reason of the
    /// cancellation.
    pub fn parallel_for<R: TileResult>(
        &self,
        range: Range<usize>,
        tile: NonZeroUsize,
        body: impl Fn(usize, usize) -> R + Send + Sync + 'static,
    ) -> AsyncValue<Chain> {
        let (request, part) = (self.request.clone(), self.part());
        crate::parallel_for(
            self.queue(),
            range,
            tile,
            move || request.cancellation().cloned(),
            move |start, end| part.run(|| body(start, end)),
        )
    }

    /// Runs `body(index)` for each index below `n_parts`, on the calling thread and on workers that are awake and have
    /// nothing to do, unless the request is cancelled before: see [`share`](crate::share). What is done counts as a
    /// part of the kernel.
    ///
    /// `cost` is what the loop takes on one thread, about. The longer, the more are asked to help. Workers that sleep
    /// are woken if it is long, or if the calling thread has had many such loops just before: who is woken stays awake
    /// for the next one.
    ///
    /// # Errors
    ///
    /// The value fails with the error of the last part that failed, or with the reason of the cancellation.
    pub fn share(
        &self,
        n_parts: usize,
        cost: Duration,
        body: impl Fn(usize) -> Result<(), Error> + Send + Sync + 'static,
    ) -> AsyncValue<Chain> {
        let queue = self.queue();
        let n_helpers = sharing::n_helpers(&**queue, cost);
        let (request, part) = (self.request.clone(), self.part());
        crate::share(
            queue,
            n_parts,
            n_helpers,
            move || request.cancellation().cloned(),
            move |index| part.run(|| body(index)),
        )
    }

    /// Runs `f` as a task of the work queue.
    pub fn enqueue<T: Value>(
        &self,
        f: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> AsyncValue<T> {
        let (promise, value) = AsyncValue::pending();
        self.queue().add_task(self.settling(promise, f));
        value
    }

    /// Runs `f`, which may block, on a thread for such tasks; it may wait for one.
    pub fn enqueue_blocking<T: Value>(
        &self,
        f: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> AsyncValue<T> {
        self.add_blocking(f, true, "Failed to enqueue blocking work.")
    }

    /// Runs `f`, which may block, on a thread for such tasks, at once or not at all.
    pub fn run_blocking<T: Value>(
        &self,
        f: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> AsyncValue<T> {
        self.add_blocking(f, false, "Failed to run blocking work.")
    }

    /// A task that settles a promise, and is a part of the kernel if that is recorded.
    #[inline]
    fn settling<T: Value>(
        &self,
        promise: Promise<T>,
        f: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Task {
        if self.host().recorder().is_none() {
            return Task::new(move || settle(promise, f));
        }
        let part = self.part();
        Task::new(move || settle(promise, || part.run(f)))
    }

    fn add_blocking<T: Value>(
        &self,
        f: impl FnOnce() -> Result<T, Error> + Send + 'static,
        allow_queuing: bool,
        refused: &'static str,
    ) -> AsyncValue<T> {
        let (promise, value) = AsyncValue::pending();
        let task = self.settling(promise, f);
        match self.queue().add_blocking_task(task, allow_queuing) {
            Ok(()) => value,
            Err(_) => AsyncValue::from_error(Error::resource_exhausted(refused)),
        }
    }
}

fn settle<T: Value>(promise: Promise<T>, f: impl FnOnce() -> Result<T, Error>) {
    match guarded(f) {
        Ok(Ok(value)) => promise.resolve(value),
        Ok(Err(error)) | Err(error) => promise.fail(error),
    }
}

impl fmt::Debug for ExecutionContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecutionContext")
            .field("request", &self.request)
            .field(
                "kernel",
                &self.place.as_ref().map(|place| place.look_up().1),
            )
            .finish()
    }
}
