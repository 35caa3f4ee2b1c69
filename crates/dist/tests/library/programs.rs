//! Programs that are stopped: what they have asked other tasks for stops as well.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tfrt_async::{AsyncValue, Error, ErrorCode};
use tfrt_bef::BefFile;
use tfrt_compiler::CompileOptions;
use tfrt_dist::cluster::{Address, Cluster};
use tfrt_dist::context::ContextConfig;
use tfrt_dist::functions::{CompilerPass, CompilerPasses, DEFAULT_PASS};
use tfrt_dist::ids::ContextId;
use tfrt_dist::message::{Request, RequestedOutput};
use tfrt_dist::security::{Policy, Quotas, Trust};
use tfrt_dist::server::Server;
use tfrt_dist::transport::Bounds;
use tfrt_dist::transport::local::LocalNetwork;
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{
    AnyAsyncValue, CancellationHook, ExecutionContext, HostContext, KernelPromise, Program,
    RequestContext,
};
use tfrt_ir::Source;
use tfrt_tensor::Tensor;

/// The second task asks the third for what never comes. The contexts are results, so that they outlive the call.
const PROGRAM: &str = r#"
func.func @main() -> (!tfrt.chain, !tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.dist_context) {
  %ch = tfrt.new.chain
  %config:3 = tfrt_dist.test_create_configurations : 3
  %ctx:3 = tfrt_dist.test_create_distributed_context %config#0, %config#1, %config#2 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %task = tfrt_dist.get_task_handle %ctx#0 {task_name = "/job:worker/task:1"}
  %last = tfrt_dist.get_task_handle %ctx#0 {task_name = "/job:worker/task:2"}
  %r0 = tfrt_dist.register_tfrt_function(%ch, %ctx#0, %last) "never" "func.func @never() -> i64 { %x = \22test.never\22() : () -> i64 tfrt.return %x : i64 }"
  %r1 = tfrt_dist.register_tfrt_function(%r0, %ctx#0, %task) "ask" "func.func @ask(%ctx: !tfrt_dist.dist_context) -> !tfrt.chain { %c = tfrt.new.chain %t = tfrt_dist.get_task_handle %ctx {task_name = \22/job:worker/task:2\22} %s = tfrt_dist.create_remote_execute_spec %ctx {output_devices = [\22/job:worker/task:2/device:CPU:0\22]} %d, %x = tfrt_dist.remote_execute[%c, %ctx, %t, %s] \22never\22 () : () -> (!tfrt_dist.remote_object_id) tfrt.return %d : !tfrt.chain }"
  %spec = tfrt_dist.create_remote_execute_spec %ctx#0 {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %done, %id = tfrt_dist.remote_execute[%r1, %ctx#0, %task, %spec] "ask" () : () -> (!tfrt_dist.remote_object_id)
  tfrt.return %done, %ctx#0, %ctx#1, %ctx#2 : !tfrt.chain, !tfrt_dist.dist_context, !tfrt_dist.dist_context, !tfrt_dist.dist_context
}
"#;

struct Pass;

impl CompilerPass for Pass {
    fn load(
        &self,
        name: &str,
        program: &str,
        _: Trust,
        host: &HostContext,
    ) -> Result<Program, Error> {
        let module = tfrt_ir::parse(&Source::new(name, program)).map_err(|all| {
            let text = all.to_string();
            Error::invalid_argument(text)
        })?;
        let bytes = tfrt_compiler::compile(&module, &CompileOptions::default()).unwrap();
        Ok(Program::load(BefFile::open(bytes).unwrap(), host).unwrap())
    }
}

/// Promises that are never kept, with what hears of their requests' end, and these requests. They hold the host, which
/// holds their kernel.
type Kept = Arc<(
    Mutex<Vec<(KernelPromise<i64>, CancellationHook)>>,
    Mutex<Vec<Arc<RequestContext>>>,
)>;

/// Returns a host with a kernel that never ends, and tells why its request was stopped.
fn host() -> (HostContext, Receiver<Error>, Kept) {
    let (told, reasons) = channel();
    let told = Mutex::new(told);
    let all = Kept::default();
    let kept = all.clone();
    let mut registry = KernelRegistry::new();
    tfrt_kernels::register_all(&mut registry);
    tfrt_dist::kernels::register(&mut registry);
    registry.add(
        "test.never",
        move |execution: &ExecutionContext| -> AsyncValue<i64> {
            let (promise, value) = execution.promise();
            let told = told.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let hook = execution.request().on_cancel(move |reason| {
                let _over = told.send(reason.clone());
            });
            let requests = kept.1.lock();
            let mut requests = requests.unwrap_or_else(PoisonError::into_inner);
            requests.push(execution.request().clone());
            let mut kept = kept.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push((promise, hook));
            value
        },
    );
    registry.add("test.tensor", |_: i64| -> Result<Tensor, Error> {
        Err(Error::internal("it never comes"))
    });
    let host = HostContext::builder(registry).build();
    CompilerPasses::of(&host).register(DEFAULT_PASS, Arc::new(Pass));
    (host, reasons, all)
}

/// Calls the program; returns its result when that is there, and why the last task was stopped.
fn outcome(
    request: &Arc<RequestContext>,
    reasons: &Receiver<Error>,
    kept: &Kept,
) -> (AnyAsyncValue, Error) {
    let host = request.host();
    let program = Pass.load("main", PROGRAM, Trust::Trusted, host).unwrap();
    let main = program.function("main").unwrap();
    let results = main.execute(&ExecutionContext::new(request), Vec::new());
    let until = Instant::now() + Duration::from_secs(20);
    assert!(host.queue().await_until(&results, Some(until)).unwrap());
    let reason = reasons.recv_timeout(Duration::from_secs(20)).unwrap();
    kept.1.lock().unwrap().clear();
    let promises = std::mem::take(&mut *kept.0.lock().unwrap());
    drop(promises);
    (results[0].clone().settled(), reason)
}

#[test]
fn deadlines_travel_with_what_is_asked_of_tasks() {
    let (host, reasons, kept) = host();
    let request = RequestContext::builder(&host)
        .own_resources()
        .deadline_after(Duration::from_millis(300))
        .build();
    let (result, reason) = outcome(&request, &reasons, &kept);
    assert_eq!(result.error().unwrap().code(), ErrorCode::DeadlineExceeded);
    assert_eq!(reason.code(), ErrorCode::DeadlineExceeded);
}

#[test]
fn cancellation_reaches_what_tasks_have_asked_others_for() {
    let (host, reasons, kept) = host();
    let request = RequestContext::new(&host);
    let stopped = request.clone();
    host.timers()
        .schedule_after(Duration::from_millis(300), move || {
            stopped.cancel_with(Error::cancelled("enough"));
        });
    let (result, reason) = outcome(&request, &reasons, &kept);
    assert_eq!(result.error().unwrap().message(), "enough");
    assert_eq!(reason.message(), "enough");
}

/// The second task waits for its tensor, which never comes, before it can join the first.
const JOIN: &str = r#"
func.func @main() -> (!tfrt.chain, !tfrt_dist.dist_context, !tfrt_dist.dist_context) {
  %ch = tfrt.new.chain
  %config:2 = tfrt_dist.test_create_configurations : 2
  %ctx:2 = tfrt_dist.test_create_distributed_context %config#0, %config#1 : (!tfrt_dist.dist_context_configuration, !tfrt_dist.dist_context_configuration) -> (!tfrt_dist.dist_context, !tfrt_dist.dist_context)
  %task = tfrt_dist.get_task_handle %ctx#0 {task_name = "/job:worker/task:1"}
  %r = tfrt_dist.register_tfrt_function(%ch, %ctx#0, %task) "join" "func.func @join(%ctx: !tfrt_dist.dist_context) -> !tfrt.chain { %c = tfrt.new.chain %group = tfrt_test.get_string {value = \22all\22} %key = tfrt_test.get_string {value = \22key\22} %x = \22test.never\22() : () -> i64 %t = \22test.tensor\22(%x) : (i64) -> !t.tensor %d = tfrt_dist.cpu.allreduce.i32 %ctx, %group, %key, %t, %t, %c {reduction_fn = \22sum\22} tfrt.return %d : !tfrt.chain }"
  %spec = tfrt_dist.create_remote_execute_spec %ctx#0 {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %e, %id = tfrt_dist.remote_execute[%r, %ctx#0, %task, %spec] "join" () : () -> (!tfrt_dist.remote_object_id)
  %group = tfrt_test.get_string {value = "all"}
  %key = tfrt_test.get_string {value = "key"}
  %a = "tfrt_dht_sync.create_dense_tensor.i32"() {shape = [1], values = [1 : i32]} : () -> !t.tensor
  %d = tfrt_dist.cpu.allreduce.i32 %ctx#0, %group, %key, %a, %a, %ch {reduction_fn = "sum"}
  tfrt.return %d, %ctx#0, %ctx#1 : !tfrt.chain, !tfrt_dist.dist_context, !tfrt_dist.dist_context
}
"#;

#[test]
fn a_member_that_is_stopped_before_it_joins_fails_all_at_once() {
    let (host, _, kept) = host();
    let request = RequestContext::new(&host);
    let program = Pass.load("main", JOIN, Trust::Trusted, &host).unwrap();
    let main = program.function("main").unwrap();
    let results = main.execute(&ExecutionContext::new(&request), Vec::new());
    let begin = Instant::now();
    while kept.0.lock().unwrap().is_empty() {
        let soon = Instant::now() + Duration::from_millis(10);
        let _not_yet = host.queue().await_until(&results, Some(soon));
        assert!(begin.elapsed() < Duration::from_secs(20));
    }
    let [stopped] = std::mem::take(&mut *kept.1.lock().unwrap())
        .try_into()
        .unwrap();
    stopped.cancel_with(Error::cancelled("enough"));
    let until = Instant::now() + Duration::from_secs(20);
    assert!(host.queue().await_until(&results, Some(until)).unwrap());
    let error = results[0].clone().settled().error().unwrap().clone();
    assert_eq!(error.to_string(), "/job:worker/task:1: enough");
    let promises = std::mem::take(&mut *kept.0.lock().unwrap());
    drop(promises);
}

#[test]
fn executions_and_programs_of_a_task_that_is_not_trusted_have_bounds() {
    let (host, reasons, kept) = host();
    let address = |port| Address::parse(&format!("local:{port}")).unwrap();
    let cluster = Cluster::of_job("worker", vec![address(1), address(2)]).unwrap();
    let network = LocalNetwork::new();
    let servers = [1, 2].map(|port| {
        let transport = network.listen(&host, address(port)).unwrap();
        Server::new(&host, Arc::new(transport))
    });
    servers[1].set_policy(Policy::default().with_quotas(Quotas {
        functions: 1,
        objects: 2,
        time: Duration::from_millis(300),
        ..Quotas::default()
    }));
    let task = |number| tfrt_dist::task::parse(&format!("/job:worker/task:{number}")).unwrap();
    let settled = |value: &AnyAsyncValue| {
        let until = Instant::now() + Duration::from_secs(20);
        let all = std::slice::from_ref(value);
        assert!(host.queue().await_until(all, Some(until)).unwrap());
    };
    let config = ContextConfig {
        cluster,
        task: task(0),
    };
    let context = servers[0].create_single_client(ContextId(1), config);
    settled(context.as_any());
    let context = context.settled().get().unwrap().unwrap().clone();
    let peer = context.handle_of(&task(1)).unwrap();
    let call = |request| {
        let reply = context.call(peer, request, Bounds::default());
        settled(reply.as_any());
        let reply = reply.settled();
        reply.get().unwrap().map(|_| ()).map_err(Error::clone)
    };
    let register = |name: &str| Request::RegisterFunction {
        context: ContextId(1),
        name: name.to_owned(),
        program: format!(
            "func.func @{name}() -> i64 {{ %x = \"test.never\"() : () -> i64 tfrt.return %x : i64 }}"
        ),
        need_compilation: false,
    };
    call(register("never")).unwrap();
    let error = call(register("again")).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ResourceExhausted);
    let text = "a task registers 1 functions with a context at most";
    assert_eq!(error.message(), text);
    let execute = |n_outputs: usize| {
        let outputs = (0..n_outputs).map(|_| RequestedOutput {
            id: context
                .objects()
                .allocate(&"/job:worker/task:1/device:CPU:0".into()),
            need_metadata: false,
        });
        Request::RemoteExecute {
            context: ContextId(1),
            name: "never".to_owned(),
            inputs: Vec::new(),
            outputs: outputs.collect(),
        }
    };
    let error = call(execute(3)).unwrap_err();
    let text = "a task has 2 objects of a context at most: it has 0, and names 3 others";
    assert_eq!(error.message(), text);
    call(execute(1)).unwrap();
    let reason = reasons.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(reason.code(), ErrorCode::DeadlineExceeded);
    let promises = std::mem::take(&mut *kept.0.lock().unwrap());
    drop(promises);
    let requests = std::mem::take(&mut *kept.1.lock().unwrap());
    drop(requests);
}
