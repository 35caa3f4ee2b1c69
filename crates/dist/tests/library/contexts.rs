//! Contexts: names of tasks and devices, starts by one task or by all, ends, and contexts that nobody uses.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tfrt_async::queue::ManualClock;
use tfrt_async::{AsyncValue, Error, ErrorCode, Value};
use tfrt_dist::cluster::{Address, Cluster};
use tfrt_dist::context::{ContextConfig, ContextRef};
use tfrt_dist::ids::{ContextId, TaskHandle};
use tfrt_dist::message::{Reply, Request};
use tfrt_dist::server::Server;
use tfrt_dist::start::close_remote_contexts;
use tfrt_dist::task;
use tfrt_dist::transport::Bounds;
use tfrt_dist::transport::local::LocalNetwork;
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{AnyAsyncValue, HostContext};

/// Tasks within this process.
struct Bed {
    host: HostContext,
    network: LocalNetwork,
    cluster: Cluster,
}

impl Bed {
    fn new(n_tasks: u16) -> Bed {
        Bed::on(HostContext::builder(KernelRegistry::new()).build(), n_tasks)
    }

    fn on(host: HostContext, n_tasks: u16) -> Bed {
        let addresses = (0..n_tasks).map(|task| Address::Tcp {
            host: "local".to_owned(),
            port: task + 1,
        });
        Bed {
            host,
            network: LocalNetwork::new(),
            cluster: Cluster::of_job("worker", addresses.collect()).unwrap(),
        }
    }

    fn config(&self, task: u32) -> ContextConfig {
        ContextConfig {
            cluster: self.cluster.clone(),
            task: task::parse(&format!("/job:worker/task:{task}")).unwrap(),
        }
    }

    fn server(&self, task: u32) -> Server {
        let config = self.config(task);
        let address = self.cluster.address(&config.task).unwrap();
        let transport = self.network.listen(&self.host, address.clone());
        Server::with_context_lifetime(
            &self.host,
            Arc::new(transport.unwrap()),
            Duration::from_secs(100),
        )
    }

    fn address(&self, task: u32) -> Address {
        let config = self.config(task);
        self.cluster.address(&config.task).unwrap().clone()
    }

    /// Lets a task begin anew with another one.
    fn introduce(&self, server: &Server, context: &ContextRef, task: u32) {
        let config = self.config(task);
        let peer = context.handle_of(&config.task).unwrap();
        let transport = server.handle().transport().clone();
        transport.introduce(peer, &config.task, &self.address(task));
    }

    fn outcome<T: Value + Clone>(&self, value: &AsyncValue<T>) -> Result<T, Error> {
        let until = Instant::now() + Duration::from_secs(20);
        let values = [value.as_any().clone()];
        assert!(self.host.queue().await_until(&values, Some(until)).unwrap());
        let value = value.clone().settled();
        value.get().unwrap().cloned().map_err(Error::clone)
    }

    fn started(&self, value: &AsyncValue<ContextRef>) -> ContextRef {
        self.outcome(value).unwrap()
    }

    fn is_pending(&self, value: &AsyncValue<ContextRef>) -> bool {
        self.host.queue().quiesce().unwrap();
        !value.is_settled()
    }
}

#[test]
fn tasks_are_found_by_name_and_by_handle() {
    let bed = Bed::new(3);
    let server = bed.server(1);
    let context = server.create_context(ContextId(5), bed.config(1)).unwrap();
    for suffix in ["", "/device:CPU:2", "device:GPU:0"] {
        let name = format!("/job:worker/task:2{suffix}");
        let handle = context.task_handle(&name).unwrap();
        assert_eq!(
            context.task_name(handle).unwrap().to_string(),
            "/job:worker/task:2"
        );
    }
    assert_eq!(
        context.task_handle("/job:worker/task:1").unwrap(),
        context.own_task()
    );
    assert_eq!(context.group("all").unwrap().len(), 3);
    let wrong = [
        context.task_handle("/job:ps/task:0").unwrap_err(),
        context.task_handle("/job:worker/task:3").unwrap_err(),
        context.task_name(TaskHandle(1)).unwrap_err(),
        context.group("none").unwrap_err(),
    ];
    let messages: Vec<String> = wrong
        .iter()
        .map(|error| error.message().to_owned())
        .collect();
    assert_eq!(
        messages,
        [
            "Failed to get TaskHandle for job_name=ps, task_id=0: the job ps does not exist.",
            "Failed to get TaskHandle for job_name=worker, task_id=3: the task 3 does not exist.",
            "No task found with TaskHandle task_handle[1]",
            "there is no collective group 'none': there are all",
        ]
    );
    assert!(
        wrong[..3]
            .iter()
            .all(|error| error.code() == ErrorCode::TaskNotFound)
    );
}

#[test]
fn two_contexts_of_a_server_are_apart_and_numbers_are_taken_once() {
    let bed = Bed::new(2);
    let server = bed.server(0);
    let one = server.create_context(ContextId(1), bed.config(0)).unwrap();
    let two = server.create_context(ContextId(2), bed.config(0)).unwrap();
    assert_ne!(one.own_task(), two.own_task());
    assert_eq!(server.context(ContextId(2)).unwrap().id(), two.id());
    let error = server
        .create_context(ContextId(1), bed.config(0))
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::Unknown);
    assert_eq!(
        error.message(),
        "Failed to create DistributedContext: context ID 1 already exists!"
    );
    server.close_context(ContextId(1)).unwrap();
    let error = server.context(ContextId(1)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidDistributedContextId);
    assert_eq!(error.message(), "Context with id 1 does not exist.");
    let error = server
        .create_context(ContextId(1), bed.config(0))
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::FailedPrecondition);
}

#[test]
fn a_master_makes_the_contexts_of_all_tasks() {
    let bed = Bed::new(3);
    let servers = [0, 1, 2].map(|task| bed.server(task));
    let started = servers[0].create_single_client(ContextId(7), bed.config(0));
    let context = bed.started(&started);
    assert_eq!(context.ready_chains().len(), 3);
    let names: Vec<String> = context
        .all_devices()
        .into_iter()
        .map(|device| device.name)
        .collect();
    let expected = [0, 1, 2].map(|task| format!("/job:worker/task:{task}/device:CPU:0"));
    assert_eq!(names, expected);
    let other = servers[2].context(ContextId(7)).unwrap();
    assert_eq!(other.config(), &bed.config(2));
    assert_eq!(other.all_devices(), context.all_devices());
    bed.outcome(&close_remote_contexts(&context)).unwrap();
    assert!(servers[2].context(ContextId(7)).is_err());
    // Both others have none any more.
    let error = bed.outcome(&close_remote_contexts(&context)).unwrap_err();
    assert!(
        error.message().starts_with("Found 2 errors:\n  (1) "),
        "{error}"
    );
    assert!(
        error.message().contains("(from task: /job:worker/task:1)"),
        "{error}"
    );
}

#[test]
fn tasks_may_start_after_their_master() {
    let bed = Bed::new(2);
    let master = bed.server(0);
    let started = master.create_single_client(ContextId(7), bed.config(0));
    let _other = bed.server(1);
    bed.started(&started);
}

#[test]
fn a_context_that_another_task_has_is_told() {
    let bed = Bed::new(2);
    let servers = [0, 1].map(|task| bed.server(task));
    servers[1]
        .create_context(ContextId(7), bed.config(1))
        .unwrap();
    let started = servers[0].create_single_client(ContextId(7), bed.config(0));
    let error = bed.outcome(&started).unwrap_err();
    assert_eq!(error.code(), ErrorCode::DistributedContextAlreadyExists);
    assert_eq!(error.task().unwrap().to_string(), "/job:worker/task:1");
    // What was made on the way is closed.
    assert!(servers[0].context(ContextId(7)).is_err());
}

#[test]
fn each_task_may_start_for_itself_whoever_is_first() {
    for leader_first in [true, false] {
        let bed = Bed::new(3);
        let servers = [0, 1, 2].map(|task| bed.server(task));
        let order = if leader_first { [0, 1, 2] } else { [2, 1, 0] };
        let mut started = [None, None, None];
        for (at, task) in order.into_iter().enumerate() {
            let index = usize::try_from(task).unwrap();
            let context = servers[index].create_multi_client(bed.config(task));
            assert!(at == 2 || bed.is_pending(&context));
            started[index] = Some(context);
        }
        let contexts = started.map(|context| bed.started(&context.unwrap()));
        for context in &contexts {
            assert_eq!(context.id(), contexts[0].id());
            assert_eq!(context.ready_chains().len(), 3);
        }
        let again = servers[1].create_multi_client(bed.config(1));
        let error = bed.outcome(&again).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Unknown);
        assert!(
            error.message().ends_with("an earlier attempt has started"),
            "{error}"
        );
    }
}

#[test]
fn configurations_that_differ_are_told_on_both_sides() {
    for leader_first in [true, false] {
        let bed = Bed::new(2);
        let mut other = bed.config(1);
        let text = bed
            .cluster
            .to_toml()
            .replace("[groups]", "[groups]\nmore = [\"/job:worker/task:0\"]");
        other.cluster = Cluster::from_toml(&text).unwrap();
        let servers = [0, 1].map(|task| bed.server(task));
        let lead = || servers[0].create_multi_client(bed.config(0));
        let join = || servers[1].create_multi_client(other.clone());
        let (led, joined) = match leader_first {
            true => (lead(), join()),
            false => {
                let joined = join();
                (lead(), joined)
            }
        };
        for started in [led, joined] {
            let error = bed.outcome(&started).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidArgument);
            let message = error.message();
            assert!(
                message.starts_with(
                    "Incompatible distributed configuration when initializing multi-client distributed context. \
                     Expecting /job:worker/task:1 of ["
                ) && message.contains(", got /job:worker/task:1 of ["),
                "{message}"
            );
        }
    }
}

#[test]
fn a_context_that_nobody_uses_is_dropped_and_one_that_is_kept_alive_stays() {
    let clock = Arc::new(ManualClock::new());
    let builder = HostContext::builder(KernelRegistry::new()).clock(clock.clone());
    let bed = Bed::on(builder.build(), 2);
    let servers = [0, 1].map(|task| bed.server(task));
    let started = servers[0].create_single_client(ContextId(7), bed.config(0));
    let context = bed.started(&started);
    for _ in 0..8 {
        clock.advance(Duration::from_secs(50));
        bed.host.queue().quiesce().unwrap();
    }
    servers[1].context(ContextId(7)).unwrap();
    servers[0].close_context(ContextId(7)).unwrap();
    drop((context, started));
    for _ in 0..8 {
        clock.advance(Duration::from_secs(50));
        bed.host.queue().quiesce().unwrap();
    }
    let error = servers[1].context(ContextId(7)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidDistributedContextId);
}

/// Lets time pass, and what comes of it happen.
fn pass(bed: &Bed, clock: &ManualClock, seconds: u64) {
    clock.advance(Duration::from_secs(seconds));
    bed.host.queue().quiesce().unwrap();
}

fn clocked(n_tasks: u16) -> (Bed, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    let builder = HostContext::builder(KernelRegistry::new()).clock(clock.clone());
    (Bed::on(builder.build(), n_tasks), clock)
}

#[test]
fn a_client_that_is_lost_loses_its_contexts_when_its_lease_is_over() {
    let (bed, clock) = clocked(2);
    let servers = [0, 1].map(|task| bed.server(task));
    let started = servers[0].create_single_client(ContextId(7), bed.config(0));
    let context = bed.started(&started);
    let worker = servers[1].context(ContextId(7)).unwrap();
    let waiting = worker.receive(worker.own_task(), "k");
    let [one, two] = [0, 1].map(|task| bed.address(task));
    bed.network.set_cut(&one, &two, true);
    pass(&bed, &clock, 9);
    servers[1].context(ContextId(7)).unwrap();
    pass(&bed, &clock, 2);
    let error = servers[1].context(ContextId(7)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidDistributedContextId);
    // What waits in it is told why.
    let error = bed.outcome(&waiting).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Unavailable);
    let message = format!("context 7 was dropped: the task at {one}, which has made it, is lost");
    assert_eq!(error.message(), message);
    // The client's own context is its own, and its requests are too late.
    servers[0].context(ContextId(7)).unwrap();
    bed.network.set_cut(&one, &two, false);
    bed.introduce(&servers[0], &context, 1);
    let error = bed.outcome(&keep_alive(&context, &bed)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::FailedPrecondition);
}

#[test]
fn a_client_that_is_back_within_its_lease_keeps_its_contexts() {
    let (bed, clock) = clocked(2);
    let servers = [0, 1].map(|task| bed.server(task));
    let started = servers[0].create_single_client(ContextId(7), bed.config(0));
    let context = bed.started(&started);
    let [one, two] = [0, 1].map(|task| bed.address(task));
    bed.network.set_cut(&one, &two, true);
    pass(&bed, &clock, 9);
    bed.network.set_cut(&one, &two, false);
    bed.introduce(&servers[0], &context, 1);
    bed.outcome(&keep_alive(&context, &bed)).unwrap();
    pass(&bed, &clock, 20);
    servers[1].context(ContextId(7)).unwrap();
}

#[test]
fn objects_that_a_lost_task_has_named_are_deleted_after_its_lease() {
    let (bed, clock) = clocked(2);
    let servers = [0, 1].map(|task| bed.server(task));
    let started = [0, 1].map(|task| {
        let index = usize::try_from(task).unwrap();
        servers[index].create_multi_client(bed.config(task))
    });
    let [lead, other] = started.map(|context| bed.started(&context));
    let id = lead.objects().allocate(&"d".into());
    other.objects().set(&id, AnyAsyncValue::new(5_i32)).unwrap();
    let awaited = other
        .objects()
        .get(lead.objects().allocate(&"d".into()).key);
    let before = other.objects().len();
    let [one, two] = [0, 1].map(|task| bed.address(task));
    bed.network.set_cut(&one, &two, true);
    pass(&bed, &clock, 9);
    assert_eq!(other.objects().len(), before);
    pass(&bed, &clock, 2);
    assert_eq!(other.objects().len(), before - 2);
    let error = awaited.error().unwrap();
    assert_eq!(error.message(), "task /job:worker/task:0 is lost");
}

fn keep_alive(context: &ContextRef, bed: &Bed) -> AsyncValue<Reply> {
    let task = context.handle_of(&bed.config(1).task).unwrap();
    let request = Request::KeepAlive {
        context: context.id(),
    };
    context.call(task, request, Bounds::default())
}
