//! The two tasks of tfrt.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tfrt_async::{AnyAsyncValue, AsyncValue, Chain, Error};
use tfrt_bef::BefFile;
use tfrt_compiler::CompileOptions;
use tfrt_dist::cluster::{Address, Cluster};
use tfrt_dist::context::{ContextConfig, ContextRef};
use tfrt_dist::functions::{CompilerPass, CompilerPasses, DEFAULT_PASS};
use tfrt_dist::ids::{ContextId, TaskHandle};
use tfrt_dist::message::{Payload, Request, RequestedOutput};
use tfrt_dist::server::Server;
use tfrt_dist::transport::Bounds;
use tfrt_dist::transport::socket::SocketTransport;
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::memory::HostBuffer;
use tfrt_host::{ExecutionContext, HostContext, Program, RequestContext, Value};
use tfrt_ir::Source;
use tfrt_tensor::{DenseHostTensor, Tensor};

/// The elements of a short and of a long all-reduce, of four bytes each.
pub const SMALL: usize = 1 << 10;
pub const LARGE: usize = 16 << 20;

/// The bytes of a value.
pub const VALUE: usize = 64 << 20;

const EMPTY: &str = "func.func @empty() { tfrt.return }";

const REDUCE: &str = r#"
func.func @tree(%ctx: !tfrt_dist.dist_context, %group: !tfrt.string, %key: !tfrt.string, %t: !t.tensor, %o: !t.tensor) -> !tfrt.chain {
  %c = tfrt.new.chain
  %d = tfrt_dist.cpu.allreduce.f32 %ctx, %group, %key, %t, %o, %c {reduction_fn = "sum"}
  tfrt.return %d : !tfrt.chain
}
func.func @ring(%ctx: !tfrt_dist.dist_context, %group: !tfrt.string, %key: !tfrt.string, %t: !t.tensor, %o: !t.tensor) -> !tfrt.chain {
  %c = tfrt.new.chain
  %d = tfrt_dist.cpu.allreduce.f32 %ctx, %group, %key, %t, %o, %c {order = "ring", reduction_fn = "sum"}
  tfrt.return %d : !tfrt.chain
}
"#;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Network {
    Unix,
    Tcp,
}

impl Network {
    pub fn name(self) -> &'static str {
        match self {
            Network::Unix => "Unix",
            Network::Tcp => "TCP",
        }
    }

    /// Returns an address that nobody has.
    pub fn address(self, word: &str) -> String {
        match self {
            Network::Unix => {
                let name = format!("tfrt-bench-{}-{word}", std::process::id());
                let path = std::env::temp_dir().join(name);
                let _absent = std::fs::remove_file(&path);
                format!("unix:{}", path.display())
            }
            Network::Tcp => {
                let free = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a port");
                free.local_addr().expect("it listens").to_string()
            }
        }
    }
}

struct Pass;

impl CompilerPass for Pass {
    fn load(&self, name: &str, program: &str, host: &HostContext) -> Result<Program, Error> {
        let module = tfrt_ir::parse(&Source::new(name, program)).expect("it is a program");
        let bytes = tfrt_compiler::compile(&module, &CompileOptions::default()).expect("it is");
        let file = BefFile::open(bytes).expect("it was compiled");
        Ok(Program::load(file, host).expect("its kernels are there"))
    }
}

fn host() -> HostContext {
    let mut registry = KernelRegistry::new();
    tfrt_kernels::register_all(&mut registry);
    tfrt_dist::kernels::register(&mut registry);
    let host = HostContext::builder(registry).build();
    CompilerPasses::of(&host).register(DEFAULT_PASS, Arc::new(Pass));
    host
}

fn config(lead: &str, other: &str, task: u32) -> ContextConfig {
    let addresses = [lead, other].map(|address| Address::parse(address).expect("it is one"));
    let cluster = Cluster::of_job("worker", addresses.to_vec()).expect("they differ");
    let task = tfrt_dist::task::parse(&format!("/job:worker/task:{task}")).expect("it is one");
    ContextConfig { cluster, task }
}

fn server(host: &HostContext, address: &str) -> Server {
    let address = Address::parse(address).expect("it is one");
    let transport = SocketTransport::listen(host, &address, None).expect("it is free");
    Server::new(host, Arc::new(transport))
}

/// Waits for a value on a thread of nobody's.
fn wait<T: Value>(host: &HostContext, value: &AsyncValue<T>) {
    wait_any(host, value.as_any());
    if let Some(error) = value.error() {
        panic!("{error}");
    }
}

fn wait_any(host: &HostContext, value: &AnyAsyncValue) {
    let awaited = [value.clone()];
    let until = Instant::now() + Duration::from_secs(60);
    let settled = host.queue().await_until(&awaited, Some(until));
    assert!(settled.expect("it may wait"), "it did not come in a minute");
}

/// A member that calls all-reduces.
struct Member {
    host: HostContext,
    context: ContextRef,
    program: Program,
    group: AnyAsyncValue,
    /// Inputs and results.
    small: [DenseHostTensor; 2],
    large: [DenseHostTensor; 2],
}

impl Member {
    fn new(host: &HostContext, context: ContextRef) -> Member {
        let program = Pass.load("reduce", REDUCE, host).expect("it is a program");
        let tensor = |len: usize| {
            let ones = vec![1.0_f32; len];
            DenseHostTensor::from_slice(host.allocator(), &[len], &ones).expect("there is memory")
        };
        Member {
            host: host.clone(),
            context,
            program,
            group: AnyAsyncValue::new("all".to_owned()),
            small: [tensor(SMALL), tensor(SMALL)],
            large: [tensor(LARGE), tensor(LARGE)],
        }
    }

    fn call(&self, order: &str, len: usize, key: String) -> Duration {
        // `tree`, `ring`, or one of them and `-in-place`.
        let (order, is_in_place) = match order.strip_suffix("-in-place") {
            Some(order) => (order, true),
            None => (order, false),
        };
        let function = self.program.function(order).expect("it has both");
        let request = RequestContext::new(&self.host);
        let [input, result] = if len == SMALL {
            &self.small
        } else {
            &self.large
        };
        let result = if is_in_place { input } else { result };
        let tensor = |tensor: &DenseHostTensor| AnyAsyncValue::new(Tensor::from(tensor.clone()));
        let arguments = vec![
            AnyAsyncValue::new(self.context.clone()),
            self.group.clone(),
            AnyAsyncValue::new(key),
            tensor(input),
            tensor(result),
        ];
        let begin = Instant::now();
        let results = function.execute(&ExecutionContext::new(&request), arguments);
        wait_any(&self.host, &results[0]);
        let took = begin.elapsed();
        if let Some(error) = results[0].error() {
            panic!("{error}");
        }
        took
    }
}

/// The first task, with the process of the second.
pub struct Task {
    host: HostContext,
    other: Child,
    handle: TaskHandle,
    payload: Payload,
    member: Member,
    n_calls: std::cell::Cell<usize>,
    _server: Server,
}

impl Task {
    pub fn start(network: Network) -> Task {
        let [lead, other] = ["lead", "other"].map(|word| network.address(word));
        let own = std::env::current_exe().expect("this runs");
        let mut command = Command::new(own);
        command.args(["--task", &other, &lead]).stdin(Stdio::null());
        let child = command.spawn().expect("this can run twice");
        let host = host();
        let server = server(&host, &lead);
        let started = server.create_single_client(ContextId(1), config(&lead, &other, 0));
        wait(&host, &started);
        let started = started.settled();
        let context = started.get().expect("it has").expect("it is there").clone();
        let handle = context.task_handle("/job:worker/task:1").expect("it is");
        let request = Request::RegisterFunction {
            context: context.id(),
            name: "empty".to_owned(),
            program: EMPTY.to_owned(),
            need_compilation: false,
        };
        wait(&host, &context.call(handle, request, Bounds::default()));
        Task {
            payload: Payload(vec![HostBuffer::from_owner(vec![7_u8; VALUE])]),
            member: Member::new(&host, context),
            host,
            other: child,
            handle,
            n_calls: std::cell::Cell::new(0),
            _server: server,
        }
    }

    fn number(&self) -> usize {
        self.n_calls.replace(self.n_calls.get() + 1)
    }

    /// Has the empty function run there.
    pub fn call(&self) -> Duration {
        let context = &self.member.context;
        let request = Request::RemoteExecute {
            context: context.id(),
            name: "empty".to_owned(),
            inputs: Vec::new(),
            outputs: Vec::<RequestedOutput>::new(),
        };
        let begin = Instant::now();
        let reply = context.call(self.handle, request, Bounds::default());
        wait(&self.host, &reply);
        begin.elapsed()
    }

    /// Sends a value there.
    pub fn send(&self) -> Duration {
        let context = &self.member.context;
        let payload = Payload(self.payload.0.clone());
        let begin = Instant::now();
        let sent: AsyncValue<Chain> =
            context.send(self.handle, "value", payload, Bounds::default());
        wait(&self.host, &sent);
        begin.elapsed()
    }

    /// Returns the median of some all-reduces, in microseconds.
    pub fn all_reduce(&self, order: &str, len: usize, n: usize) -> f64 {
        let round = self.number();
        let word = format!("{order} {len} {n} {round}").into_bytes();
        let payload = Payload(vec![HostBuffer::from_owner(word)]);
        let context = &self.member.context;
        let told = context.send(self.handle, "round", payload, Bounds::default());
        wait(&self.host, &told);
        let mut times = Vec::new();
        for index in 0..n + n / 10 + 1 {
            let took = self.member.call(order, len, format!("{round} {index}"));
            times.push(took.as_secs_f64() * 1e6);
        }
        crate::median(times.split_off(n / 10 + 1))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        let _over = self.other.kill();
        let _over = self.other.wait();
    }
}

/// The second task: takes part in the all-reduces that it is told of, until it is ended.
pub fn serve(own: &str, lead: &str) {
    let host = host();
    let server = server(&host, own);
    let context = loop {
        if let Ok(context) = server.context(ContextId(1)) {
            break context;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let lead_handle = context.task_handle("/job:worker/task:0").expect("it is");
    let _ = lead;
    let member = Member::new(&host, ContextRef::new(context.clone(), None));
    // Values are taken, and dropped.
    take(&context, lead_handle);
    loop {
        let round = context.receive(lead_handle, "round");
        let awaited = [round.as_any().clone()];
        host.queue()
            .await_until(&awaited, None)
            .expect("it may wait");
        let round = round.settled();
        let Some(Ok(payload)) = round.get() else {
            return;
        };
        let word = payload.0[0].read().expect("nobody writes").to_vec();
        let word = String::from_utf8(word).expect("it is a text");
        let words: Vec<&str> = word.split(' ').collect();
        let [order, len, n, round] = words[..] else {
            panic!("{word}")
        };
        let (len, n): (usize, usize) = (len.parse().expect("one"), n.parse().expect("one"));
        for index in 0..n + n / 10 + 1 {
            member.call(order, len, format!("{round} {index}"));
        }
    }
}

fn take(context: &Arc<tfrt_dist::context::DistributedContext>, from: TaskHandle) {
    let (value, context) = (context.receive(from, "value"), context.clone());
    value.when_settled(move |value| {
        if value.error().is_none() {
            take(&context, from);
        }
    });
}
