//! Kernels for tests: contexts of several tasks within one process, and looks at what programs hold.

#![allow(
    clippy::ptr_arg,
    reason = "an operand is borrowed as the type that stands in the register"
)]

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tfrt_host::kernel::{Attr, Awaited, KernelRegistry, Rest, ResultCount, Results};
use tfrt_host::{
    AnyAsyncValue, AsyncValue, Chain, DeviceRef, Error, ErrorCode, ExecutionContext, HostContext,
    KernelPromise, Program,
};

use super::execute::ExecuteSpec;
use crate::cluster::{Address, Cluster};
use crate::context::{ContextConfig, ContextRef};
use crate::functions::{Compiled, CompilerPass, CompilerPasses};
use crate::ids::ContextId;
use crate::names::{RemoteChains, RemoteId};
use crate::security::{Policy, Trust};
use crate::server::Server;
use crate::transport::Transport;
use crate::transport::local::LocalNetwork;

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add(
            "tfrt_dist.test_create_configurations",
            create_configurations,
        )
        .add("tfrt_dist.test_create_distributed_context", create_contexts)
        .add("tfrt_dist.test_close_distributed_context", close_context)
        .add("tfrt_dist.test_create_remote_chain_manager", create_chains)
        .add("tfrt_dist.test_hold_requests", hold_requests)
        .add("tfrt_dist.test_process_next_request", process_next_request)
        .add(
            "tfrt_dist.test_register_fake_compiler_pass",
            register_fake_compiler_pass,
        )
        .add("tfrt_dist.test_print_remote_object_id", print_id)
        .add("tfrt_dist.test_print_remote_execute_spec", print_spec)
        .add("tfrt_dist.test_get_remote_device", remote_device);
}

/// The most tasks of a test.
const MAX_TEST_TASKS: usize = 64;

/// The networks that contexts for tests are on.
pub trait Listen: Send + Sync + 'static {
    /// Returns the address of a task, out of those that can be listened at.
    fn address(&self, task: u16) -> Address;

    /// Makes a transport that listens at an address.
    ///
    /// # Errors
    ///
    /// Why it can't.
    fn listen(&self, host: &HostContext, address: &Address) -> Result<Arc<dyn Transport>, Error>;

    /// Starts a task that listens at an address in a process of its own, which ends when what is returned is dropped; `None`
    /// if all tasks are of this process. The first task always is, and programs have its context alone.
    ///
    /// # Errors
    ///
    /// Why it can't.
    fn start(&self, _address: &Address) -> Result<Option<Box<dyn Send + Sync>>, Error> {
        Ok(None)
    }
}

/// Sets the network of contexts that programs make for tests from now on, which is one within the process by default.
pub fn set_test_network(host: &HostContext, network: Arc<dyn Listen>) {
    let networks = host.shared(|_| Networks::default());
    *networks.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(network);
}

#[derive(Default)]
struct Networks(Mutex<Option<Arc<dyn Listen>>>);

fn network(host: &HostContext) -> Result<Arc<dyn Listen>, Error> {
    let networks = host.shared(|_| Networks::default());
    let chosen = networks.0.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(network) = &*chosen {
        return Ok(network.clone());
    }
    #[cfg(target_os = "linux")]
    if let Some(network) = SocketNetwork::chosen()? {
        return Ok(Arc::new(network));
    }
    Ok(Arc::new(WithinProcess(LocalNetwork::new())))
}

/// The variable that chooses the network of tests: `unix` or `tcp`.
#[cfg(target_os = "linux")]
const TEST_NETWORK: &str = "TFRT_DIST_TEST_NETWORK";

/// Sockets of this machine as a network of tests.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketNetwork {
    /// Unix sockets in the folder for temporary files.
    Unix,
    /// TCP on the loopback network.
    Tcp,
}

#[cfg(target_os = "linux")]
impl SocketNetwork {
    /// Returns the network that the variable `TFRT_DIST_TEST_NETWORK` chooses.
    fn chosen() -> Result<Option<SocketNetwork>, Error> {
        let Some(chosen) = std::env::var_os(TEST_NETWORK) else {
            return Ok(None);
        };
        match chosen.to_str() {
            Some("unix") => Ok(Some(SocketNetwork::Unix)),
            Some("tcp") => Ok(Some(SocketNetwork::Tcp)),
            _ => Err(Error::invalid_argument(format!(
                "{TEST_NETWORK}: expected unix or tcp, found {chosen:?}"
            ))),
        }
    }

    /// Returns an address at which nobody listens, another one each time.
    pub fn address(self) -> Address {
        use std::collections::BTreeSet;
        use std::sync::atomic::{AtomicU64, Ordering};
        static N_ADDRESSES: AtomicU64 = AtomicU64::new(0);
        static PORTS: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
        if self == SocketNetwork::Tcp {
            let free = || {
                let listener = std::net::TcpListener::bind("127.0.0.1:0");
                let free = listener.and_then(|listener| listener.local_addr());
                // A listener says why there is none.
                free.map_or(1, |free| free.port())
            };
            // The system gives a port again that nobody listens on yet.
            let mut ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
            let fresh = std::iter::repeat_with(free).take(100);
            let port = fresh.into_iter().find(|port| ports.insert(*port));
            return Address::Tcp {
                host: "127.0.0.1".to_owned(),
                port: port.unwrap_or(1),
            };
        }
        // Ordering: a count, which makes two addresses differ.
        let number = N_ADDRESSES.fetch_add(1, Ordering::Relaxed);
        let name = format!("tfrt-dist-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        Address::Unix(path.to_string_lossy().into_owned())
    }
}

#[cfg(target_os = "linux")]
impl Listen for SocketNetwork {
    fn address(&self, _: u16) -> Address {
        SocketNetwork::address(*self)
    }

    fn listen(&self, host: &HostContext, address: &Address) -> Result<Arc<dyn Transport>, Error> {
        use crate::transport::socket::SocketTransport;
        Ok(Arc::new(SocketTransport::listen(host, address, None)?))
    }
}

struct WithinProcess(LocalNetwork);

impl Listen for WithinProcess {
    fn address(&self, task: u16) -> Address {
        Address::Tcp {
            host: "local".to_owned(),
            port: task + 1,
        }
    }

    fn listen(&self, host: &HostContext, address: &Address) -> Result<Arc<dyn Transport>, Error> {
        Ok(Arc::new(self.0.listen(host, address.clone())?))
    }
}

/// `%configs:2 = tfrt_dist.test_create_configurations : 2`: a job `worker` of so many tasks, and a group `all`.
fn create_configurations(
    n_results: ResultCount,
    execution: &ExecutionContext,
) -> Result<Results, Error> {
    let n_tasks = n_results.0;
    if n_tasks > MAX_TEST_TASKS {
        return Err(Error::invalid_argument(format!(
            "expected at most {MAX_TEST_TASKS} tasks of a test, found {n_tasks}"
        )));
    }
    let network = network(execution.host())?;
    let addresses = (0..n_tasks).map(|task| network.address(u16::try_from(task).unwrap_or(0)));
    let cluster = Cluster::of_job("worker", addresses.collect())?;
    let configs = cluster.tasks().map(|(task, _)| ContextConfig {
        cluster: cluster.clone(),
        task,
    });
    Ok(Results(configs.map(AnyAsyncValue::new).collect()))
}

/// `%contexts:2 = tfrt_dist.test_create_distributed_context %configs#0, %configs#1 : (..) -> (..)`: a server for each
/// configuration; the first one makes the contexts.
fn create_contexts(
    configs: Rest,
    n_results: ResultCount,
    execution: &ExecutionContext,
) -> Result<Results, Error> {
    let configs = configs.iter().map(|config| {
        config.get::<ContextConfig>().cloned().ok_or_else(|| {
            let found = config.type_name().unwrap_or("(unknown)");
            Error::invalid_argument(format!("expected configurations, found a {found}"))
        })
    });
    let configs = configs.collect::<Result<Vec<ContextConfig>, Error>>()?;
    if configs.is_empty() || configs.len() != n_results.0 {
        return Err(Error::invalid_argument(format!(
            "expected a context for each configuration, one at least, found {} configurations and {} contexts",
            configs.len(),
            n_results.0
        )));
    }
    let host = execution.host();
    let network = network(host)?;
    let tasks = configs.iter().enumerate().map(|(index, config)| {
        let address = config.cluster.address(&config.task)?;
        if index > 0
            && let Some(process) = network.start(address)?
        {
            return Ok(TestTask::OfProcess(process));
        }
        let server = Server::new(host, network.listen(host, address)?);
        // The program that is tested has all of them, kernels for tests included.
        server.set_policy(Policy::trusting());
        Ok(TestTask::Here(server))
    });
    let tasks: Arc<Vec<TestTask>> = Arc::new(tasks.collect::<Result<_, Error>>()?);
    let TestTask::Here(first) = &tasks[0] else {
        return Err(Error::internal("the first task is of this process"));
    };
    let (promises, results): (Vec<KernelPromise<ContextRef>>, Vec<AsyncValue<ContextRef>>) =
        configs.iter().map(|_| execution.promise()).unzip();
    let master = first.create_single_client(ContextId(0), configs[0].clone());
    master.when_settled(move |master| {
        let error = match master.get() {
            Some(Err(error)) => Some(error.clone()),
            _ => None,
        };
        for (promise, task) in promises.into_iter().zip(tasks.iter()) {
            let context = match (&error, task) {
                (Some(error), _) => Err(error.clone()),
                (None, TestTask::Here(server)) => server.context(ContextId(0)),
                (None, TestTask::OfProcess(_)) => Err(Error::failed_precondition(
                    "this context is of another process",
                )),
            };
            let keep: Arc<dyn Send + Sync> = tasks.clone();
            promise.complete(context.map(|context| ContextRef::new(context, Some(keep))));
        }
    });
    Ok(Results(
        results.into_iter().map(AsyncValue::into_any).collect(),
    ))
}

/// A task of a test.
enum TestTask {
    Here(Server),
    OfProcess(#[expect(dead_code, reason = "it ends with this")] Box<dyn Send + Sync>),
}

/// `%c1 = tfrt_dist.test_close_distributed_context %ctx, %c`: the server of the context ends.
fn close_context(context: &ContextRef, chain: Chain) -> Chain {
    context.server().close();
    chain
}

/// `%manager = tfrt_dist.test_create_remote_chain_manager %ctx`
fn create_chains(context: &ContextRef) -> RemoteChains {
    RemoteChains::new(context)
}

/// `%c1 = tfrt_dist.test_hold_requests %ctx, %c`: executions that arrive wait until they are let through.
fn hold_requests(context: &ContextRef, chain: Chain) -> Chain {
    context.server().hold();
    chain
}

/// `%c1 = tfrt_dist.test_process_next_request %ctx, %c`
fn process_next_request(
    context: &ContextRef,
    _: Awaited,
    execution: &ExecutionContext,
) -> AsyncValue<Chain> {
    let (promise, chain) = execution.promise();
    let held = context.clone();
    context.server().process_next().when_settled(move |begun| {
        promise.forward(begun);
        drop(held);
    });
    chain
}

/// `%c1 = tfrt_dist.test_register_fake_compiler_pass "pass" "program" (%devices)`
fn register_fake_compiler_pass(
    devices: Rest,
    compiled_program: Attr<&str>,
    compiler_pass_name: Attr<&str>,
    execution: &ExecutionContext,
) -> Result<Chain, Error> {
    let passes = CompilerPasses::of(execution.host());
    let devices = devices.iter().map(|device| {
        let name = device.get::<String>().cloned();
        name.ok_or_else(|| Error::invalid_argument("expected names of devices as strings"))
    });
    let pass = FakePass {
        real: passes.get(*compiler_pass_name),
        compiled: Compiled {
            program: compiled_program.to_string(),
            output_devices: devices.collect::<Result<_, Error>>()?,
        },
    };
    passes.register(*compiler_pass_name, Arc::new(pass));
    Ok(Chain)
}

/// A pass that gives one program, whatever it is given.
struct FakePass {
    real: Option<Arc<dyn CompilerPass>>,
    compiled: Compiled,
}

impl CompilerPass for FakePass {
    fn load(
        &self,
        name: &str,
        program: &str,
        trust: Trust,
        host: &HostContext,
    ) -> Result<Program, Error> {
        match &self.real {
            Some(real) => real.load(name, program, trust, host),
            None => Err(Error::not_found("there is no pass behind the fake one")),
        }
    }

    fn compile(&self, _: &str, _: &str) -> Result<Compiled, Error> {
        if self.compiled.program.is_empty() {
            return Err(Error::unknown("the fake pass has no program"));
        }
        Ok(self.compiled.clone())
    }
}

/// `tfrt_dist.test_print_remote_object_id %id`
fn print_id(id: &RemoteId, execution: &ExecutionContext) {
    print(execution, &id.id);
}

/// `tfrt_dist.test_print_remote_execute_spec %spec`
fn print_spec(spec: &ExecuteSpec, execution: &ExecutionContext) {
    print(execution, spec);
}

fn print(execution: &ExecutionContext, what: &dyn fmt::Display) {
    execution.host().output().print(what.to_string());
}

/// `%device = tfrt_dist.test_get_remote_device %ctx {device_name = "/job:worker/task:1/device:CPU:0"}`
fn remote_device(context: &ContextRef, device_name: Attr<&str>) -> Result<DeviceRef, Error> {
    let name = *device_name;
    context
        .remote_device(name)
        .map_err(|error| match error.code() {
            ErrorCode::DeviceNotFound => {
                let message = format!("cannot find remote device {name}");
                Error::new(ErrorCode::DeviceNotFound, message)
            }
            _ => error,
        })
}
