//! The tests that every transport must pass.
//!
//! [`suite`] takes a function that makes a network for tests, and panics with the name of the promise that its
//! transports do not keep. A network that has no switch for a fault leaves out the tests that need it.
//!
//! # Examples
//!
//! ```
//! tfrt_dist::conformance::suite(&|| Box::<tfrt_dist::conformance::LocalBed>::default());
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tfrt_async::queue::Task;
use tfrt_async::{AsyncValue, ClusterTask, Error, ErrorCode, Promise, Value};
use tfrt_host::HostContext;
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::memory::HostBuffer;

use crate::cluster::Address;
use crate::ids::{ContextId, TaskHandle};
use crate::message::{Key, Payload, Reply, Request};
use crate::transport::local::{LocalNetwork, LocalTransport};
use crate::transport::{Bounds, Caller, Cancel, Handler, Phase, Transport};

/// A network under test.
pub trait Network {
    /// Makes the transport of one more task. Its address is for its peers.
    fn listen(&self, host: &HostContext) -> Arc<dyn Transport>;

    /// Ends a task as a crash would, and starts it anew at its address, where the network can.
    fn restart(&self, transport: &dyn Transport, host: &HostContext) -> Option<Arc<dyn Transport>> {
        let _ = (transport, host);
        None
    }

    /// Delivers each message twice; returns whether the network can.
    fn duplicate(&self) -> bool {
        false
    }

    /// Cuts or mends the connection between two tasks; returns whether the network can.
    fn cut(&self, one: &Address, other: &Address, is_cut: bool) -> bool {
        let _ = (one, other, is_cut);
        false
    }
}

/// A function that makes a network.
pub type Make<'a> = dyn Fn() -> Box<dyn Network> + 'a;

/// A promise of the contract, with its test.
type Check = (&'static str, fn(&Bed));

const CHECKS: &[Check] = &[
    (
        "a request reaches its peer, and its reply the caller",
        request_and_reply,
    ),
    (
        "an error of the peer reaches the caller, with the peer's name",
        errors,
    ),
    ("a task can ask itself", own_requests),
    (
        "values for one key keep their order and their bytes",
        values,
    ),
    ("a refused value is an error of the sender", refused_values),
    (
        "a value of no bytes, and of several buffers, arrives as it is",
        odd_values,
    ),
    ("calls do not wait for each other", answers_in_any_order),
    (
        "a call ends at its deadline, and the peer is told to stop",
        deadlines,
    ),
    ("the peer is told how much time is left", time_left),
    (
        "a call that is cancelled ends with the reason, and so does what it began",
        cancellation,
    ),
    (
        "calls that are cancelled together are all stopped",
        several_cancellations,
    ),
    (
        "a call that was cancelled before is not made",
        cancelled_before,
    ),
    ("an answer that comes too late is dropped", late_answers),
    ("what is delivered twice runs once", duplicates),
    (
        "a peer that nobody has introduced is not found",
        unknown_peers,
    ),
    (
        "a peer that does not listen is an error, or tried again",
        absent_peers,
    ),
    (
        "a peer that is lost ends what waits for it, by name",
        lost_peers,
    ),
    (
        "a peer whose connection was cut is back once it is introduced anew",
        mended_cuts,
    ),
    (
        "a request for an earlier start of a process is refused",
        restarts,
    ),
    ("a task that ends fails what it waits for", endings),
    ("requests wait for a handler", late_handlers),
];

/// Runs all checks on networks made by `make`, each on one of its own.
///
/// # Panics
///
/// If a promise is not kept.
pub fn suite(make: &Make<'_>) {
    for (promise, check) in CHECKS {
        let bed = Bed::new(make());
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| check(&bed))) {
            eprintln!("a transport breaks a promise: {promise}");
            resume_unwind(payload);
        }
    }
}

/// The in-process network as one under test.
#[derive(Debug, Default)]
pub struct LocalBed {
    network: LocalNetwork,
    n_tasks: Mutex<u16>,
}

impl Network for LocalBed {
    fn listen(&self, host: &HostContext) -> Arc<dyn Transport> {
        let mut n_tasks = self.n_tasks.lock().unwrap_or_else(PoisonError::into_inner);
        *n_tasks += 1;
        Arc::new(self.at(host, local_address(*n_tasks)))
    }

    fn restart(&self, transport: &dyn Transport, host: &HostContext) -> Option<Arc<dyn Transport>> {
        transport.close();
        Some(Arc::new(self.at(host, transport.address().clone())))
    }

    fn duplicate(&self) -> bool {
        self.network.set_duplicates(true);
        true
    }

    fn cut(&self, one: &Address, other: &Address, is_cut: bool) -> bool {
        self.network.set_cut(one, other, is_cut);
        true
    }
}

impl LocalBed {
    fn at(&self, host: &HostContext, address: Address) -> LocalTransport {
        let transport = self.network.listen(host, address);
        transport.expect("addresses differ")
    }
}

/// Returns an address of a network within a process.
fn local_address(port: u16) -> Address {
    Address::Tcp {
        host: "local".to_owned(),
        port,
    }
}

/// Two tasks that know each other.
struct Bed {
    network: Box<dyn Network>,
    host: HostContext,
    one: Arc<dyn Transport>,
    two: Arc<dyn Transport>,
    /// The second task, as the first knows it.
    peer: TaskHandle,
}

const TIME: Duration = Duration::from_secs(20);

impl Bed {
    fn new(network: Box<dyn Network>) -> Bed {
        let host = HostContext::builder(KernelRegistry::new()).build();
        let (one, two) = (network.listen(&host), network.listen(&host));
        let peer = TaskHandle::draw();
        one.introduce(peer, &named(1), two.address());
        Bed {
            network,
            host,
            one,
            two,
            peer,
        }
    }

    /// Lets the second task answer by a function.
    fn answer(
        &self,
        answer: impl Fn(Request, Bounds) -> AsyncValue<Reply> + Send + Sync + 'static,
    ) -> Receiver<Event> {
        serve(&*self.two, answer)
    }

    fn call(&self, request: Request, bounds: Bounds) -> Result<Reply, Error> {
        self.outcome(self.one.call(self.peer, request, bounds))
    }

    fn outcome<T: Value + Clone>(&self, value: AsyncValue<T>) -> Result<T, Error> {
        let values = [value.as_any().clone()];
        let until = std::time::Instant::now() + TIME;
        let settled = self.host.queue().await_until(&values, Some(until));
        assert!(
            settled.expect("a test is no worker"),
            "a call was not answered"
        );
        let value = value.settled();
        let outcome = value.get().expect("it is settled");
        outcome.cloned().map_err(Error::clone)
    }

    fn within(&self, time: Duration) -> Bounds {
        Bounds {
            deadline: Some(self.host.now() + time),
            ..Bounds::default()
        }
    }
}

fn named(task: u32) -> ClusterTask {
    ClusterTask {
        job: "test".to_owned(),
        task,
    }
}

/// Something that a handler was told.
enum Event {
    Value(Key, Payload),
    Lost(Caller, Error),
}

/// A handler that answers by a function.
struct Answering<F> {
    answer: F,
    events: Mutex<Sender<Event>>,
}

fn serve<F>(transport: &dyn Transport, answer: F) -> Receiver<Event>
where
    F: Fn(Request, Bounds) -> AsyncValue<Reply> + Send + Sync + 'static,
{
    let (events, receiver) = channel();
    let events = Mutex::new(events);
    transport.serve(Arc::new(Answering { answer, events }));
    receiver
}

impl<F> Answering<F> {
    fn tell(&self, event: Event) {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        // The test may be over.
        let _ = events.send(event);
    }
}

impl<F> Handler for Answering<F>
where
    F: Fn(Request, Bounds) -> AsyncValue<Reply> + Send + Sync + 'static,
{
    fn call(&self, _: &Caller, request: Request, bounds: Bounds) -> AsyncValue<Reply> {
        (self.answer)(request, bounds)
    }

    fn is_short(&self, request: &Request) -> bool {
        // So that both ways of taking a request are tried.
        matches!(request, Request::KeepAlive { .. })
    }

    fn value(&self, _: &Caller, key: Key, value: Payload) -> Result<Option<Task>, Error> {
        if key.name == "refused" {
            return Err(Error::invalid_argument("not this one"));
        }
        self.tell(Event::Value(key, value));
        Ok(None)
    }

    fn lost(&self, peer: &Caller, why: &Error) {
        self.tell(Event::Lost(peer.clone(), why.clone()));
    }
}

fn done(_: Request, _: Bounds) -> AsyncValue<Reply> {
    AsyncValue::available(Reply::Done)
}

fn keep_alive(context: u64) -> Request {
    Request::KeepAlive {
        context: ContextId(context),
    }
}

fn execute(name: &str) -> Request {
    Request::RemoteExecute {
        context: ContextId(0),
        name: name.to_owned(),
        inputs: Vec::new(),
        outputs: Vec::new(),
    }
}

fn key(name: &str) -> Key {
    Key {
        context: ContextId(3),
        name: name.to_owned(),
    }
}

fn bytes(payload: &Payload) -> Vec<Vec<u8>> {
    let read = |buffer: &HostBuffer| buffer.read().expect("nobody writes").to_vec();
    payload.0.iter().map(read).collect()
}

fn request_and_reply(bed: &Bed) {
    let _events = bed.answer(|request, _| match request {
        Request::RemoteExecute { name, .. } => {
            AsyncValue::available(Reply::Executed(vec![Ok(name.into_bytes())]))
        }
        _ => AsyncValue::available(Reply::Done),
    });
    let reply = bed.call(execute("f"), Bounds::default()).unwrap();
    let Reply::Executed(metadata) = reply else {
        panic!("expected the reply of an execution, found {reply:?}");
    };
    assert_eq!(metadata[0].as_ref().unwrap(), b"f");
    let peers = bed.one.peers();
    let peer = peers.iter().find(|peer| peer.handle == bed.peer).unwrap();
    assert_eq!(peer.phase, Phase::Live);
    assert_eq!(peer.incarnation, Some(bed.two.incarnation()));
    assert_ne!(bed.one.incarnation(), bed.two.incarnation());
}

fn errors(bed: &Bed) {
    let _events = bed.answer(|_, _| AsyncValue::from_error(Error::not_found("no such thing")));
    let error = bed.call(execute("f"), Bounds::default()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::NotFound);
    assert_eq!(error.to_string(), "/job:test/task:1: no such thing");
}

fn own_requests(bed: &Bed) {
    let _events = serve(&*bed.one, done);
    let own = TaskHandle::draw();
    bed.one.introduce(own, &named(0), bed.one.address());
    let reply = bed.one.call(own, keep_alive(1), Bounds::default());
    assert!(matches!(bed.outcome(reply), Ok(Reply::Done)));
}

fn values(bed: &Bed) {
    let events = bed.answer(done);
    let chains: Vec<_> = (0..100_u8)
        .map(|index| {
            let payload = Payload(vec![HostBuffer::from_owner(vec![
                index;
                usize::from(index)
            ])]);
            bed.one.send(bed.peer, key("k"), payload, Bounds::default())
        })
        .collect();
    for chain in chains {
        bed.outcome(chain).unwrap();
    }
    for index in 0..100_u8 {
        let Ok(Event::Value(found, payload)) = events.recv_timeout(TIME) else {
            panic!("expected value {index}");
        };
        assert_eq!(found, key("k"));
        assert_eq!(bytes(&payload), [vec![index; usize::from(index)]]);
    }
}

fn refused_values(bed: &Bed) {
    let _events = bed.answer(done);
    let sent = bed.one.send(
        bed.peer,
        key("refused"),
        Payload::default(),
        Bounds::default(),
    );
    let error = bed.outcome(sent).unwrap_err();
    assert_eq!(error.to_string(), "/job:test/task:1: not this one");
}

fn odd_values(bed: &Bed) {
    let events = bed.answer(done);
    let buffers = |lengths: &[usize]| {
        let buffer = |len: &usize| HostBuffer::from_owner(vec![7_u8; *len]);
        Payload(lengths.iter().map(buffer).collect())
    };
    let large = (1 << 20) + 3;
    for lengths in [&[][..], &[0], &[1, 0, 3], &[large, 5]] {
        let sent = bed
            .one
            .send(bed.peer, key("k"), buffers(lengths), Bounds::default());
        bed.outcome(sent).unwrap();
        let Ok(Event::Value(_, payload)) = events.recv_timeout(TIME) else {
            panic!("expected a value");
        };
        let found: Vec<usize> = bytes(&payload).iter().map(Vec::len).collect();
        assert_eq!(found, lengths);
    }
}

/// A request that waits for its answer.
type Question = (Request, Bounds, Promise<Reply>);

/// Returns a function that answers when it is told.
fn answering_later() -> (
    impl Fn(Request, Bounds) -> AsyncValue<Reply> + Send + Sync + 'static,
    Receiver<Question>,
) {
    let (sender, receiver) = channel();
    let sender = Mutex::new(sender);
    let answer = move |request, bounds| {
        let (promise, reply) = AsyncValue::pending();
        let sender = sender.lock().unwrap_or_else(PoisonError::into_inner);
        let _over = sender.send((request, bounds, promise));
        reply
    };
    (answer, receiver)
}

fn answers_in_any_order(bed: &Bed) {
    let (answer, asked) = answering_later();
    let _events = bed.answer(answer);
    let replies: Vec<_> = ["a", "b"]
        .map(|name| bed.one.call(bed.peer, execute(name), Bounds::default()))
        .into();
    // The queue may be this thread alone.
    let first = [replies[0].as_any().clone()];
    let soon = std::time::Instant::now() + Duration::from_millis(50);
    let _not_yet = bed.host.queue().await_until(&first, Some(soon));
    let mut promises: Vec<_> = (0..2).map(|_| asked.recv_timeout(TIME).unwrap()).collect();
    for (request, _, promise) in promises.drain(..).rev() {
        let Request::RemoteExecute { name, .. } = request else {
            panic!("expected an execution");
        };
        promise.resolve(Reply::Executed(vec![Ok(name.into_bytes())]));
    }
    for (reply, name) in replies.into_iter().zip(["a", "b"]) {
        let Ok(Reply::Executed(metadata)) = bed.outcome(reply) else {
            panic!("expected the reply of an execution");
        };
        assert_eq!(metadata[0].as_ref().unwrap(), name.as_bytes());
    }
}

fn deadlines(bed: &Bed) {
    let (answer, asked) = answering_later();
    let _events = bed.answer(answer);
    let error = bed.call(execute("f"), bed.within(Duration::from_millis(60)));
    let error = error.unwrap_err();
    assert_eq!(error.code(), ErrorCode::DeadlineExceeded);
    assert_eq!(error.task(), Some(&named(1)));
    let (_, bounds, _promise) = asked.recv_timeout(TIME).unwrap();
    expect_cancelled(bed, &bounds);
}

/// Waits until a call is cancelled.
fn expect_cancelled(bed: &Bed, bounds: &Bounds) {
    let (promise, cancelled) = AsyncValue::<Reply>::pending();
    let cancel = bounds.cancel.as_ref().expect("a request can be cancelled");
    let _hook = cancel.on_cancel(move |_| promise.resolve(Reply::Done));
    bed.outcome(cancelled).unwrap();
}

fn time_left(bed: &Bed) {
    let (answer, asked) = answering_later();
    let _events = bed.answer(answer);
    let reply = bed.one.call(bed.peer, execute("f"), bed.within(TIME));
    let soon = std::time::Instant::now() + Duration::from_millis(50);
    let waiting = [reply.as_any().clone()];
    let _not_yet = bed.host.queue().await_until(&waiting, Some(soon));
    let (_, bounds, promise) = asked.recv_timeout(TIME).unwrap();
    let left = bounds.deadline.expect("there is a deadline") - bed.host.now();
    assert!(left <= TIME && left > TIME / 2, "{left:?} are left");
    promise.resolve(Reply::Done);
    bed.outcome(reply).unwrap();
}

fn cancellation(bed: &Bed) {
    let (answer, asked) = answering_later();
    let _events = bed.answer(answer);
    let cancel = Cancel::new();
    let bounds = Bounds {
        cancel: Some(cancel.clone()),
        ..Bounds::default()
    };
    let reply = bed.one.call(bed.peer, execute("f"), bounds);
    let waiting = [reply.as_any().clone()];
    let soon = std::time::Instant::now() + Duration::from_millis(50);
    let _not_yet = bed.host.queue().await_until(&waiting, Some(soon));
    let (_, bounds, _promise) = asked.recv_timeout(TIME).unwrap();
    cancel.cancel(Error::cancelled("enough"));
    assert_eq!(bed.outcome(reply).unwrap_err().message(), "enough");
    expect_cancelled(bed, &bounds);
}

fn several_cancellations(bed: &Bed) {
    let (answer, asked) = answering_later();
    let _events = bed.answer(answer);
    let cancel = Cancel::new();
    let call = |_| {
        let bounds = Bounds {
            cancel: Some(cancel.clone()),
            ..Bounds::default()
        };
        bed.one.call(bed.peer, execute("f"), bounds)
    };
    let replies: Vec<AsyncValue<Reply>> = (0..5).map(call).collect();
    let mut arrived = Vec::new();
    while arrived.len() < replies.len() {
        let waiting = [replies[0].as_any().clone()];
        let soon = std::time::Instant::now() + Duration::from_millis(10);
        let _not_yet = bed.host.queue().await_until(&waiting, Some(soon));
        arrived.extend(asked.try_iter());
    }
    cancel.cancel(Error::cancelled("enough"));
    for (_, bounds, _) in &arrived {
        expect_cancelled(bed, bounds);
    }
    for reply in replies {
        assert_eq!(bed.outcome(reply).unwrap_err().message(), "enough");
    }
}

fn cancelled_before(bed: &Bed) {
    let _events = bed.answer(done);
    let cancel = Cancel::new();
    cancel.cancel(Error::cancelled("too late"));
    let bounds = Bounds {
        cancel: Some(cancel),
        ..Bounds::default()
    };
    match bed.call(execute("f"), bounds) {
        // The answer may have been faster.
        Ok(_) => (),
        Err(error) => assert_eq!(error.message(), "too late"),
    }
}

fn late_answers(bed: &Bed) {
    let (answer, asked) = answering_later();
    let _events = bed.answer(answer);
    let error = bed.call(execute("f"), bed.within(Duration::from_millis(60)));
    assert_eq!(error.unwrap_err().code(), ErrorCode::DeadlineExceeded);
    let (_, _, late) = asked.recv_timeout(TIME).unwrap();
    late.resolve(Reply::Done);
    let reply = bed.one.call(bed.peer, execute("g"), Bounds::default());
    let waiting = [reply.as_any().clone()];
    let soon = std::time::Instant::now() + Duration::from_millis(50);
    let _not_yet = bed.host.queue().await_until(&waiting, Some(soon));
    let (_, _, promise) = asked.recv_timeout(TIME).unwrap();
    promise.resolve(Reply::Executed(Vec::new()));
    assert!(matches!(bed.outcome(reply), Ok(Reply::Executed(_))));
}

fn duplicates(bed: &Bed) {
    if !bed.network.duplicate() {
        return;
    }
    let n_runs = Arc::new(Mutex::new(0));
    let counted = n_runs.clone();
    let events = bed.answer(move |_, _| {
        *counted.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        AsyncValue::available(Reply::Done)
    });
    for _ in 0..20 {
        bed.call(execute("f"), Bounds::default()).unwrap();
        let payload = Payload(vec![HostBuffer::from_owner(vec![1_u8])]);
        let sent = bed.one.send(bed.peer, key("k"), payload, Bounds::default());
        bed.outcome(sent).unwrap();
    }
    bed.host.queue().quiesce().expect("a test is no worker");
    assert_eq!(*n_runs.lock().unwrap_or_else(PoisonError::into_inner), 20);
    assert_eq!(events.try_iter().count(), 20);
}

fn unknown_peers(bed: &Bed) {
    let nobody = TaskHandle(99);
    let error = bed.outcome(bed.one.call(nobody, keep_alive(0), Bounds::default()));
    let error = error.unwrap_err();
    assert_eq!(error.code(), ErrorCode::TaskNotFound);
    assert_eq!(
        error.message(),
        "No task found with TaskHandle task_handle[99]"
    );
    bed.one.forget(bed.peer);
    let error = bed.call(keep_alive(0), Bounds::default()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::TaskNotFound);
}

fn absent_peers(bed: &Bed) {
    let three = bed.network.listen(&bed.host);
    let address = three.address().clone();
    three.close();
    let absent = TaskHandle::draw();
    bed.one.introduce(absent, &named(2), &address);
    let error = bed.outcome(bed.one.call(absent, keep_alive(0), Bounds::default()));
    let error = error.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Unavailable);
    assert_eq!(error.task(), Some(&named(2)));

    let bounds = Bounds {
        max_retries: 100,
        ..Bounds::default()
    };
    bed.one.introduce(absent, &named(2), &address);
    let reply = bed.one.call(absent, keep_alive(0), bounds);
    let Some(three) = bed.network.restart(&*three, &bed.host) else {
        return;
    };
    let _events = serve(&*three, done);
    assert!(matches!(bed.outcome(reply), Ok(Reply::Done)));
}

fn lost_peers(bed: &Bed) {
    let (answer, asked) = answering_later();
    let _events = bed.answer(answer);
    let own_events = serve(&*bed.one, done);
    let calls = [execute("f"), keep_alive(1)]
        .map(|request| bed.one.call(bed.peer, request, Bounds::default()));
    let waiting = [calls[0].as_any().clone()];
    let soon = std::time::Instant::now() + Duration::from_millis(50);
    let _not_yet = bed.host.queue().await_until(&waiting, Some(soon));
    let _asked: Vec<_> = (0..2).map(|_| asked.recv_timeout(TIME).unwrap()).collect();
    let lost = bed.two.incarnation();
    bed.two.close();
    let [executed, kept_alive] = calls.map(|call| bed.outcome(call).unwrap_err());
    assert_eq!(executed.code(), ErrorCode::Unknown);
    assert_eq!(
        executed.message(),
        "task /job:test/task:1 is lost: the RemoteExecute that it was sent may have run"
    );
    assert_eq!(kept_alive.code(), ErrorCode::Unavailable);
    assert_eq!(kept_alive.message(), "task /job:test/task:1 is lost");
    assert_eq!(kept_alive.task(), Some(&named(1)));
    let again = bed.call(execute("f"), Bounds::default()).unwrap_err();
    assert_eq!(again.message(), "task /job:test/task:1 is lost");
    let Ok(Event::Lost(caller, why)) = own_events.recv_timeout(TIME) else {
        panic!("expected to hear that the task is lost");
    };
    assert_eq!(caller.incarnation, lost);
    assert_eq!(why.message(), "task /job:test/task:1 is lost");
}

fn mended_cuts(bed: &Bed) {
    let _events = bed.answer(done);
    let ends = [bed.one.address(), bed.two.address()];
    if !bed.network.cut(ends[0], ends[1], true) {
        return;
    }
    let error = bed.call(execute("f"), Bounds::default()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Unavailable);
    bed.network.cut(ends[0], ends[1], false);
    bed.one.introduce(bed.peer, &named(1), ends[1]);
    assert!(matches!(
        bed.call(execute("f"), Bounds::default()),
        Ok(Reply::Done)
    ));
}

fn restarts(bed: &Bed) {
    let _events = bed.answer(done);
    bed.call(execute("f"), Bounds::default()).unwrap();
    let Some(two) = bed.network.restart(&*bed.two, &bed.host) else {
        return;
    };
    let n_runs = Arc::new(Mutex::new(0));
    let counted = n_runs.clone();
    let _events = serve(&*two, move |_, _| {
        *counted.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        AsyncValue::available(Reply::Done)
    });
    let error = bed.call(execute("f"), Bounds::default()).unwrap_err();
    let (code, message) = (error.code(), error.message());
    // One that was on its way when the process ended may have run there.
    let may_have_run = code == ErrorCode::Unknown && message.ends_with("may have run");
    assert!(
        code == ErrorCode::Unavailable || message.starts_with("stale incarnation") || may_have_run,
        "{error:?}"
    );
    assert_eq!(*n_runs.lock().unwrap_or_else(PoisonError::into_inner), 0);
    bed.one.introduce(bed.peer, &named(1), two.address());
    bed.call(execute("f"), Bounds::default()).unwrap();
    let peers = bed.one.peers();
    assert_eq!(peers[0].incarnation, Some(two.incarnation()));
}

fn endings(bed: &Bed) {
    let (answer, _asked) = answering_later();
    let _events = bed.answer(answer);
    let reply = bed.one.call(bed.peer, execute("f"), Bounds::default());
    bed.one.close();
    assert!(bed.outcome(reply).is_err());
    assert!(bed.call(execute("f"), Bounds::default()).is_err());
}

fn late_handlers(bed: &Bed) {
    let reply = bed.one.call(bed.peer, keep_alive(1), Bounds::default());
    let _events = bed.answer(done);
    assert!(matches!(bed.outcome(reply), Ok(Reply::Done)));
}
