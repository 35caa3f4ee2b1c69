//! Tests of promises that code outside of the host keeps: how long the host waits for them, and what it finds stuck
//! meanwhile.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tfrt_async::queue::{
    Activity, AwaitError, ConcurrentWorkQueue, ManualClock, MultiThreadedWorkQueue, QueueStats,
    SingleThreadedWorkQueue, Task,
};
use tfrt_async::{AsyncValue, Promise};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{
    AnyAsyncValue, ExecutionContext, HostContext, HostContextBuilder, KernelPromise,
    RequestContext, Stuck,
};

use super::main_of;

/// A queue of a user's own, which does only what every queue must.
struct Custom(SingleThreadedWorkQueue);

impl ConcurrentWorkQueue for Custom {
    fn name(&self) -> String {
        "custom".to_owned()
    }
    fn add_task(&self, task: Task) {
        self.0.add_task(task);
    }
    fn add_blocking_task(&self, task: Task, allow_queuing: bool) -> Result<(), Task> {
        self.0.add_blocking_task(task, allow_queuing)
    }
    fn await_until(
        &self,
        values: &[AnyAsyncValue],
        deadline: Option<Instant>,
    ) -> Result<bool, AwaitError> {
        self.0.await_until(values, deadline)
    }
    fn quiesce(&self) -> Result<(), AwaitError> {
        self.0.quiesce()
    }
    fn parallelism(&self) -> usize {
        self.0.parallelism()
    }
    fn is_worker_thread(&self) -> bool {
        self.0.is_worker_thread()
    }
    fn activity(&self) -> Activity {
        self.0.activity()
    }
    fn stats(&self) -> QueueStats {
        self.0.stats()
    }
}

fn queues() -> [Arc<dyn ConcurrentWorkQueue>; 3] {
    [
        Arc::new(SingleThreadedWorkQueue::new()),
        Arc::new(MultiThreadedWorkQueue::new(2, 1).unwrap()),
        Arc::new(Custom(SingleThreadedWorkQueue::new())),
    ]
}

/// A host with two more kernels: `t.foreign`, whose promises are kept here, and `t.forgotten`, which keeps one that
/// its context does not know of.
struct Outside {
    host: HostContext,
    foreign: Receiver<KernelPromise<i32>>,
    forgotten: Arc<Mutex<Vec<Promise<i32>>>>,
}

impl Outside {
    /// Makes a host that fails stuck requests.
    fn new(queue: &Arc<dyn ConcurrentWorkQueue>) -> Outside {
        Outside::with(queue, |host| {
            host.stuck(Stuck::Fail(Duration::from_millis(1)))
        })
    }

    fn with(
        queue: &Arc<dyn ConcurrentWorkQueue>,
        settings: impl FnOnce(HostContextBuilder) -> HostContextBuilder,
    ) -> Outside {
        let (sender, foreign): (Sender<KernelPromise<i32>>, _) = channel();
        let sender = Mutex::new(sender);
        let forgotten = Arc::<Mutex<Vec<Promise<i32>>>>::default();
        let kept = forgotten.clone();
        let mut registry = KernelRegistry::new();
        tfrt_kernels::register_all(&mut registry);
        registry
            .add(
                "t.foreign",
                move |_: i32, context: &ExecutionContext| -> AsyncValue<i32> {
                    let (promise, value) = context.promise();
                    sender.lock().unwrap().send(promise).unwrap();
                    value
                },
            )
            .add("t.forgotten", move |_: i32| -> AsyncValue<i32> {
                let (promise, value) = AsyncValue::pending();
                kept.lock().unwrap().push(promise);
                value
            });
        let host = settings(HostContext::builder(registry).queue(queue.clone())).build();
        Outside {
            host,
            foreign,
            forgotten,
        }
    }

    /// Calls a kernel with 1 in a request, and adds 1 to its result.
    fn call(&self, kernel: &str, request: &Arc<RequestContext>) -> [AnyAsyncValue; 1] {
        let text = format!(
            "func.func @main(%x: i32) -> i32 {{
  %p = \"{kernel}\"(%x) : (i32) -> i32
  %a = tfrt.add.i32 %p, %x
  tfrt.return %a : i32
}}
"
        );
        let context = ExecutionContext::new(request);
        let main = main_of(&self.host, &text);
        let results = main.execute(&context, vec![AnyAsyncValue::new(1)]);
        results.try_into().expect("there is one result")
    }

    /// Calls a kernel in a request that is really stuck, and waits until it is found.
    fn find_another(&self) {
        let result = self.call("t.forgotten", &RequestContext::new(&self.host));
        assert_eq!(
            self.settled(result),
            "the request is stuck: nothing can run and nothing is in flight, but \
             kernel 't.forgotten' at main.mlir:2:8 never resolved"
        );
    }

    /// Waits for a result, and returns it or the message of its error.
    fn settled(&self, result: [AnyAsyncValue; 1]) -> String {
        let latest = Instant::now() + Duration::from_secs(30);
        let is_settled = self.host.queue().await_until(&result, Some(latest));
        assert!(is_settled.unwrap(), "nobody settles it");
        let [result] = result.map(AnyAsyncValue::settled);
        match result.error() {
            Some(error) => error.message().to_owned(),
            None => result.get::<i32>().expect("it is a number").to_string(),
        }
    }

    fn foreign(&self) -> KernelPromise<i32> {
        self.foreign.recv().expect("the kernel has run")
    }
}

impl Drop for Outside {
    /// Breaks a cycle: kernels have the promises, and whoever waits for these has the host with its kernels.
    fn drop(&mut self) {
        let left = std::mem::take(&mut *self.forgotten.lock().unwrap());
        drop(left);
        let _ = self.host.queue().quiesce();
    }
}

#[test]
fn promise_of_a_foreign_thread_is_waited_for() {
    for queue in queues() {
        let outside = Outside::new(&queue);
        let result = outside.call("t.foreign", &RequestContext::new(&outside.host));
        let promise = outside.foreign();
        let (begin, begun) = channel::<()>();
        let foreign = thread::spawn(move || {
            begun.recv().unwrap();
            promise.resolve(41);
        });
        // Whoever finds this one has looked at the other, too.
        for _ in 0..3 {
            outside.find_another();
        }
        assert!(!result[0].is_settled(), "{}", queue.name());
        begin.send(()).unwrap();
        assert_eq!(outside.settled(result), "42", "{}", queue.name());
        foreign.join().unwrap();
    }
}

#[test]
fn promise_that_is_dropped_outside_fails_its_value() {
    for queue in queues() {
        let outside = Outside::new(&queue);
        let result = outside.call("t.foreign", &RequestContext::new(&outside.host));
        let promise = outside.foreign();
        thread::spawn(move || drop(promise)).join().unwrap();
        let dropped = "kernel 't.foreign' dropped its promise without resolving it";
        assert_eq!(outside.settled(result), dropped, "{}", queue.name());
    }
}

#[test]
fn promise_that_is_forwarded_is_waited_for_until_the_other_value_is_there() {
    for queue in queues() {
        let outside = Outside::new(&queue);
        let result = outside.call("t.foreign", &RequestContext::new(&outside.host));
        let (promise, value) = AsyncValue::pending();
        outside.foreign().forward(value);
        outside.find_another();
        assert!(!result[0].is_settled(), "{}", queue.name());
        promise.resolve(1);
        assert_eq!(outside.settled(result), "2", "{}", queue.name());
    }
}

#[test]
fn guard_of_a_request_does_not_hide_that_others_are_stuck() {
    for queue in queues() {
        let outside = Outside::new(&queue);
        let request = RequestContext::new(&outside.host);
        let guards = [(); 2].map(|()| request.external());
        let result = outside.call("t.forgotten", &request);
        for guard in guards {
            outside.find_another();
            assert!(!result[0].is_settled(), "{}", queue.name());
            drop(guard);
        }
        let message = outside.settled(result);
        assert!(message.starts_with("the request is stuck"), "{message}");
    }
}

#[test]
fn request_that_may_be_stuck_is_reported_once_and_goes_on() {
    for queue in queues() {
        let (clock, told) = (
            Arc::new(ManualClock::new()),
            Arc::<Mutex<Vec<_>>>::default(),
        );
        let (hears, by) = (told.clone(), clock.clone());
        let outside = Outside::with(&queue, |host| {
            let hears =
                move |error: &tfrt_host::Error| hears.lock().unwrap().push(error.to_string());
            host.clock(by).diagnostics(hears)
        });
        let foreign = outside.call("t.foreign", &RequestContext::new(&outside.host));
        let forgotten = outside.call("t.forgotten", &RequestContext::new(&outside.host));
        clock.advance(Duration::from_secs(10));
        let expected = "the request may be stuck: nothing can run and nothing is in flight, but \
             kernel 't.forgotten' at main.mlir:2:8 has not resolved";
        assert_eq!(*told.lock().unwrap(), [expected], "{}", queue.name());
        // That of the thread outside is kept after ten seconds, and so, after all, is the other.
        let promise = outside.foreign();
        thread::spawn(move || promise.resolve(41)).join().unwrap();
        assert_eq!(outside.settled(foreign), "42", "{}", queue.name());
        let promise = outside.forgotten.lock().unwrap().pop();
        promise.expect("the kernel has run").resolve(1);
        assert_eq!(outside.settled(forgotten), "2", "{}", queue.name());
    }
}

#[test]
fn deadlines_and_timers_go_by_the_clock_that_was_handed_in() {
    for queue in queues() {
        let clock = Arc::new(ManualClock::new());
        let by = clock.clone();
        let outside = Outside::with(&queue, |host| host.clock(by));
        let hour = Duration::from_secs(3600);
        let request = RequestContext::builder(&outside.host).deadline_after(2 * hour);
        let result = outside.call("t.foreign", &request.build());
        let (sender, receiver) = channel();
        let tell = move || sender.send(()).unwrap();
        outside.host.timers().schedule_after(hour, tell);
        assert!(receiver.try_recv().is_err());
        clock.advance(hour);
        assert_eq!(receiver.try_recv(), Ok(()));
        assert!(!result[0].is_settled(), "{}", queue.name());
        clock.advance(hour);
        assert_eq!(
            outside.settled(result),
            "Deadline exceeded: the time allowed was 7200s",
            "{}",
            queue.name()
        );
        drop(outside.foreign());
    }
}
