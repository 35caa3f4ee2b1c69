use std::{
    future::{Future, IntoFuture},
    mem::ManuallyDrop,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker},
    thread::{self, Thread},
};

use crate::{
    AnyAsyncValue, AsyncValue, Error, Heap, Value,
    queue::{ConcurrentWorkQueue, MultiThreadedWorkQueue, SingleThreadedWorkQueue},
};

/// A waker that unparks a thread, and counts.
struct Parker {
    thread: Thread,
    n_wakes: AtomicUsize,
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.n_wakes.fetch_add(1, Ordering::SeqCst);
        self.thread.unpark();
    }
}

fn parker() -> (Arc<Parker>, Waker) {
    let parker = Arc::new(Parker {
        thread: thread::current(),
        n_wakes: AtomicUsize::new(0),
    });
    (Arc::clone(&parker), Waker::from(parker))
}

/// Runs a future on the calling thread, which is parked while the future is pending.
fn block_on<F: Future>(future: F) -> F::Output {
    let (_parker, waker) = parker();
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}

#[derive(Debug)]
struct Text(String);

impl Value for Text {
    const NAME: &'static str = "!test.text";
    type Storage = Heap;
}

#[test]
fn settled_value_is_ready_at_once() {
    assert_eq!(
        *block_on(AsyncValue::available(7).into_future()).unwrap(),
        7
    );
    let failed = AsyncValue::<i32>::from_error(Error::unknown("x"));
    assert_eq!(block_on(failed.into_future()).unwrap_err().message(), "x");
    let any = block_on(AnyAsyncValue::new(7).into_future()).unwrap();
    assert_eq!(any.get::<i32>(), Some(&7));
}

#[test]
fn await_waits_for_another_thread() {
    let (promise, value) = AsyncValue::<Text>::pending();
    let setter = thread::spawn(move || promise.resolve(Text("hello".to_owned())));
    let text = block_on(async move { value.await }).unwrap();
    assert_eq!(text.0, "hello");
    assert_eq!(text.try_into_value().unwrap().0, "hello");
    setter.join().unwrap();
}

#[test]
fn waker_is_replaced_and_not_added() {
    let (promise, value) = AsyncValue::<i32>::pending();
    let mut future = pin!(value.into_future());
    let (first, first_waker) = parker();
    let (second, second_waker) = parker();
    for waker in [&first_waker, &first_waker, &second_waker, &second_waker] {
        assert!(
            future
                .as_mut()
                .poll(&mut Context::from_waker(waker))
                .is_pending()
        );
    }
    drop((first_waker, second_waker));
    assert_eq!(Arc::strong_count(&first), 1, "the old waker was let go");
    assert_eq!(
        Arc::strong_count(&second),
        2,
        "one copy of the new one is kept"
    );
    promise.resolve(7);
    assert_eq!(first.n_wakes.load(Ordering::SeqCst), 0);
    assert_eq!(second.n_wakes.load(Ordering::SeqCst), 1);
}

#[test]
fn task_that_has_polled_last_is_woken() {
    let (first, first_waker) = parker();
    let (second, second_waker) = parker();
    for n_changes in 1..4 {
        let (promise, value) = AsyncValue::<i32>::pending();
        let mut future = pin!(value.into_future());
        let wakers = [&first_waker, &second_waker];
        for waker in wakers.into_iter().cycle().take(n_changes + 1) {
            let mut context = Context::from_waker(waker);
            assert!(future.as_mut().poll(&mut context).is_pending());
        }
        promise.resolve(7);
        let n_wakes = [&first, &second].map(|parker| parker.n_wakes.swap(0, Ordering::SeqCst));
        assert_eq!(n_wakes, [(n_changes + 1) % 2, n_changes % 2]);
    }
}

#[test]
fn dropped_future_lets_its_waker_go() {
    let (promise, value) = AsyncValue::<i32>::pending();
    let (counting, waker) = parker();
    {
        let mut future = pin!(value.into_future());
        assert!(
            future
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
    }
    drop(waker);
    assert_eq!(Arc::strong_count(&counting), 1);
    assert!(promise.is_unobserved());
    promise.resolve(7);
    assert_eq!(counting.n_wakes.load(Ordering::SeqCst), 0);
}

#[test]
fn dropped_future_lets_the_waker_of_a_second_task_go() {
    let (promise, value) = AsyncValue::<i32>::pending();
    let (_, first) = parker();
    let (counting, second) = parker();
    let mut future = Box::pin(value.clone().into_future());
    for waker in [&first, &second] {
        let mut context = Context::from_waker(waker);
        assert!(future.as_mut().poll(&mut context).is_pending());
    }
    drop((future, second));
    assert_eq!(Arc::strong_count(&counting), 1);
    promise.resolve(7);
    assert_eq!(counting.n_wakes.load(Ordering::SeqCst), 0);
}

/// A waker that does something when it is cloned first, which is after a future has looked at its cell, and before the
/// waker is in there: as if another thread did it then.
struct Meddler {
    work: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    n_wakes: AtomicUsize,
}

impl Meddler {
    fn new(work: impl FnOnce() + Send + 'static) -> (Arc<Meddler>, Waker) {
        let meddler = Arc::new(Meddler {
            work: Mutex::new(Some(Box::new(work))),
            n_wakes: AtomicUsize::new(0),
        });
        let waker = Meddler::raw(Arc::clone(&meddler));
        // SAFETY: the functions of the table take the pointer for what `raw` made it of, a counted one.
        (meddler, unsafe { Waker::from_raw(waker) })
    }

    fn raw(this: Arc<Meddler>) -> RawWaker {
        const VTABLE: RawWakerVTable = RawWakerVTable::new(
            |data| {
                // SAFETY: a waker counts as a holder, and goes on to.
                let this = ManuallyDrop::new(unsafe { Meddler::back(data) });
                let work = this.work.lock().unwrap().take();
                work.into_iter().for_each(|work| work());
                Meddler::raw(Arc::clone(&this))
            },
            |data| {
                // SAFETY: a waker counts as a holder, and is consumed.
                let this = unsafe { Meddler::back(data) };
                this.n_wakes.fetch_add(1, Ordering::SeqCst);
            },
            |_| unreachable!("nobody wakes by reference"),
            // SAFETY: a waker counts as a holder, and is consumed.
            |data| drop(unsafe { Meddler::back(data) }),
        );
        RawWaker::new(Arc::into_raw(this).cast(), &VTABLE)
    }

    /// Takes the waker's count over.
    ///
    /// # Safety
    ///
    /// `data` came from [`Meddler::raw`], and nobody else uses the count.
    unsafe fn back(data: *const ()) -> Arc<Meddler> {
        // SAFETY: the caller says so.
        unsafe { Arc::from_raw(data.cast()) }
    }
}

#[test]
fn value_that_is_settled_after_a_future_has_looked_is_ready_and_wakes_nobody() {
    let (promise, value) = AsyncValue::<i32>::pending();
    let (meddler, waker) = Meddler::new(move || promise.resolve(7));
    let mut future = pin!(value.into_future());
    let result = future.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(matches!(result, Poll::Ready(Ok(value)) if *value == 7));
    drop(waker);
    assert_eq!(meddler.n_wakes.load(Ordering::SeqCst), 0);
    assert_eq!(Arc::strong_count(&meddler), 1);
}

#[test]
fn future_waits_beside_who_came_after_it_has_looked() {
    let (promise, value) = AnyAsyncValue::pending();
    let heard = Arc::new(AtomicUsize::new(0));
    let (meddler, waker) = Meddler::new({
        let (value, heard) = (value.clone(), Arc::clone(&heard));
        move || {
            value.and_then(move || {
                heard.fetch_add(1, Ordering::SeqCst);
            });
        }
    });
    let mut future = pin!(value.into_future());
    let mut context = Context::from_waker(&waker);
    assert!(future.as_mut().poll(&mut context).is_pending());
    promise.resolve(7);
    let n_wakes = meddler.n_wakes.load(Ordering::SeqCst);
    assert_eq!((heard.load(Ordering::SeqCst), n_wakes), (1, 1));
    assert!(future.poll(&mut context).is_ready());
}

#[test]
fn future_is_driven_by_the_tasks_of_a_queue() {
    for queue in [
        Arc::new(SingleThreadedWorkQueue::new()) as Arc<dyn ConcurrentWorkQueue>,
        Arc::new(MultiThreadedWorkQueue::new(2, 0).unwrap()),
    ] {
        let (promises, inputs): (Vec<_>, Vec<_>) =
            (0..10).map(|_| AsyncValue::<i32>::pending()).unzip();
        let sum = AsyncValue::from_future(
            async move {
                let mut sum = 0;
                for input in inputs {
                    sum += *input.await?;
                }
                Ok(sum)
            },
            &queue,
        );
        let setter = thread::spawn(move || {
            for promise in promises {
                promise.resolve(1);
            }
        });
        queue.await_all(&[sum.as_any().clone()]).unwrap();
        assert_eq!(sum.get().unwrap().unwrap(), &10);
        setter.join().unwrap();
    }
}

#[test]
fn future_that_fails_or_panics_or_is_not_wanted_is_dropped() {
    let queue: Arc<dyn ConcurrentWorkQueue> = Arc::new(SingleThreadedWorkQueue::new());
    let failed = AsyncValue::<i32>::from_future(async { Err(Error::unknown("x")) }, &queue);
    let panicked = AsyncValue::<i32>::from_future(
        async { std::panic::resume_unwind(Box::new("planned")) },
        &queue,
    );
    let witness = Arc::new(());
    let (promise, input) = AsyncValue::<i32>::pending();
    let unwanted = AsyncValue::<i32>::from_future(
        {
            let witness = Arc::clone(&witness);
            async move {
                let input = input.await?;
                drop(witness);
                Ok(*input)
            }
        },
        &queue,
    );
    queue.quiesce().unwrap();
    assert_eq!(failed.error().unwrap().message(), "x");
    assert!(panicked.error().is_some());
    drop(unwanted);
    promise.resolve(1);
    queue.quiesce().unwrap();
    assert_eq!(Arc::strong_count(&witness), 1);
}

#[test]
fn future_fails_when_its_queue_is_gone() {
    let queue: Arc<dyn ConcurrentWorkQueue> = Arc::new(SingleThreadedWorkQueue::new());
    let (promise, input) = AsyncValue::<i32>::pending();
    let value = AsyncValue::<i32>::from_future(async move { Ok(*input.await?) }, &queue);
    queue.quiesce().unwrap();
    drop(queue);
    promise.resolve(1);
    assert_eq!(
        value.error().unwrap().message(),
        "the work queue that polls a future is gone"
    );
}
