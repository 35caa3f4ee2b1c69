//! Schedules drawn from seeds: messages are delayed, reordered and delivered twice, connections are cut and tasks end, time
//! passes. Each call is answered, nothing runs twice, what was answered is right, errors name their task, and nothing is
//! left when all is over.
//!
//! `TFRT_SCHEDULES=10000` tries more seeds, `TFRT_SCHEDULES=17:1` one of them. The first bad one is printed.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tfrt_async::queue::{ManualClock, SingleThreadedWorkQueue};
use tfrt_async::{AsyncValue, Error, ErrorCode};
use tfrt_bef::BefFile;
use tfrt_compiler::CompileOptions;
use tfrt_dist::cluster::{Address, Cluster};
use tfrt_dist::context::{ContextConfig, ContextRef};
use tfrt_dist::functions::{CompilerPass, CompilerPasses, DEFAULT_PASS};
use tfrt_dist::ids::{ContextId, ObjectId, TaskHandle};
use tfrt_dist::message::{Payload, Reply, Request, RequestedOutput};
use tfrt_dist::security::Trust;
use tfrt_dist::server::Server;
use tfrt_dist::transport::local::LocalNetwork;
use tfrt_dist::transport::{Bounds, Cancel};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::memory::HostBuffer;
use tfrt_host::{HostContext, Program};
use tfrt_ir::Source;

const N_TASKS: u16 = 3;
const N_CALLS: usize = 12;

/// A program whose functions count their runs by a number that the caller has chosen.
const PROGRAM: &str = r#"
func.func @make(%ctx: !tfrt_dist.dist_context) -> i64 {
  %x = "test.make"(%ctx) : (!tfrt_dist.dist_context) -> i64
  tfrt.return %x : i64
}
func.func @next(%x: i64) -> i64 {
  %y = "test.next"(%x) : (i64) -> i64
  tfrt.return %y : i64
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
        let module = tfrt_ir::parse(&Source::new(name, program)).unwrap();
        let bytes = tfrt_compiler::compile(&module, &CompileOptions::default()).unwrap();
        let file = BefFile::open(bytes).unwrap();
        Ok(Program::load(file, host).unwrap())
    }
}

/// Random numbers, SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Returns whether one of so many cases has come.
    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// How often `next` has run on each number.
#[derive(Clone, Default)]
struct Runs(Arc<Mutex<HashMap<i64, usize>>>);

/// A call, with its reply.
struct Call {
    task: TaskHandle,
    /// The number of calls before it in its row: the result is so much.
    depth: i64,
    /// Which row it is in: results of one row differ from those of others.
    row: i64,
    output: ObjectId,
    reply: AsyncValue<Reply>,
    /// The switch by which it may be cancelled.
    cancel: Cancel,
    bounded: bool,
}

struct Bed {
    host: HostContext,
    clock: Arc<ManualClock>,
    network: LocalNetwork,
    servers: Vec<Option<Server>>,
    addresses: Vec<Address>,
    cluster: Cluster,
    runs: Runs,
    random: Random,
    /// Whether anything was cut or ended.
    has_faults: bool,
}

impl Bed {
    fn new(seed: u64) -> Bed {
        let runs = Runs::default();
        let clock = Arc::new(ManualClock::new());
        let mut registry = KernelRegistry::new();
        let counted = runs.clone();
        let n_made = Mutex::new(0_i64);
        registry.add("test.make", move |_: &ContextRef| -> i64 {
            let mut n_made = n_made.lock().unwrap_or_else(PoisonError::into_inner);
            *n_made += 1;
            *n_made * 1000
        });
        registry.add("test.next", move |x: i64| -> i64 {
            let mut runs = counted.0.lock().unwrap_or_else(PoisonError::into_inner);
            *runs.entry(x).or_default() += 1;
            x + 1
        });
        let host = HostContext::builder(registry)
            .queue(Arc::new(SingleThreadedWorkQueue::new()))
            .clock(clock.clone())
            .build();
        CompilerPasses::of(&host).register(DEFAULT_PASS, Arc::new(Pass));
        let addresses: Vec<Address> = (1..=N_TASKS)
            .map(|port| Address::Tcp {
                host: "local".to_owned(),
                port,
            })
            .collect();
        let network = LocalNetwork::new();
        network.set_held(true);
        let listen = |address: &Address| {
            let transport = network.listen(&host, address.clone()).unwrap();
            let lifetime = Duration::from_secs(600);
            Some(Server::with_context_lifetime(
                &host,
                Arc::new(transport),
                lifetime,
            ))
        };
        Bed {
            servers: addresses.iter().map(listen).collect(),
            cluster: Cluster::of_job("worker", addresses.clone()).unwrap(),
            addresses,
            host,
            clock,
            network,
            runs,
            random: Random(seed),
            has_faults: false,
        }
    }

    /// Lets something happen; returns false if there is no message on its way.
    fn step(&mut self, with_faults: bool) -> bool {
        self.host.queue().quiesce().unwrap();
        if with_faults && self.random.one_in(60) {
            self.fault();
        }
        if self.random.one_in(20) {
            self.clock.advance(Duration::from_millis(5));
        }
        let deliverable = self.network.deliverable();
        if deliverable.is_empty() {
            return false;
        }
        // Mostly in order, sometimes any other.
        let at = match self.random.one_in(2) {
            true => 0,
            false => self.random.below(deliverable.len()),
        };
        let n_times = 1 + usize::from(self.random.one_in(5));
        self.network.release(deliverable[at], n_times);
        self.host.queue().quiesce().unwrap();
        true
    }

    fn fault(&mut self) {
        self.has_faults = true;
        let one = self.random.below(self.addresses.len());
        match self.random.below(2) {
            0 => {
                let other =
                    (one + 1 + self.random.below(self.addresses.len() - 1)) % self.addresses.len();
                self.network
                    .set_cut(&self.addresses[one], &self.addresses[other], true);
            }
            // The master goes on to the end, so that there is somebody to ask.
            _ if one > 0 => self.servers[one] = None,
            _ => (),
        }
    }

    /// Delivers all that is on its way, in the end without faults.
    fn drain(&mut self, with_faults: bool) {
        for n_steps in 0.. {
            assert!(n_steps < 100_000, "messages never end");
            if !self.step(with_faults && n_steps < 500) {
                self.host.queue().quiesce().unwrap();
                if self.network.deliverable().is_empty() {
                    return;
                }
            }
        }
    }

    fn config(&self) -> ContextConfig {
        ContextConfig {
            cluster: self.cluster.clone(),
            task: self.cluster.lead().clone(),
        }
    }

    fn run(mut self) {
        let master = self.servers[0].as_ref().unwrap().handle();
        let started = master.create_single_client(ContextId(1), self.config());
        self.drain(true);
        assert!(started.is_settled(), "the start was not answered");
        let context = match started.settled().get() {
            Some(Ok(context)) => context.clone(),
            Some(Err(error)) => {
                assert!(self.has_faults, "{error}");
                return self.end(None);
            }
            None => unreachable!(),
        };
        let tasks: Vec<TaskHandle> = context.group("all").unwrap();
        let register = |task: &TaskHandle, name: &str| {
            let request = Request::RegisterFunction {
                context: context.id(),
                name: name.to_owned(),
                program: PROGRAM.to_owned(),
                need_compilation: false,
            };
            context.call(*task, request, Bounds::default())
        };
        let mut registered = Vec::new();
        for task in &tasks {
            registered.push(register(task, "make"));
            registered.push(register(task, "next"));
        }
        self.drain(true);
        assert!(registered.iter().all(AsyncValue::is_settled));
        if let Some(error) = registered.iter().find_map(AsyncValue::error) {
            assert!(self.has_faults, "{error}");
        }
        let mut calls: Vec<Call> = Vec::new();
        let mut sent = Vec::new();
        for index in 0..N_CALLS {
            calls.push(self.call(&context, &tasks, &calls));
            let task = tasks[self.random.below(tasks.len())];
            let payload = Payload(vec![HostBuffer::from_owner(vec![index as u8])]);
            sent.push(context.send(task, "k", payload, Bounds::default()));
            for _ in 0..self.random.below(6) {
                self.step(true);
            }
            if self.random.one_in(6) {
                let given_up = self.random.below(calls.len());
                self.give_up(&mut calls, given_up);
            }
        }
        self.drain(true);
        // What is left waits for a deadline.
        self.clock.advance(Duration::from_secs(1));
        self.drain(false);
        for call in &calls {
            self.check(&context, call);
        }
        for sent in sent {
            assert!(sent.is_settled(), "a value was not answered");
            if let Some(error) = sent.error() {
                assert!(self.has_faults && error.task().is_some(), "{error:?}");
            }
        }
        let runs = self.runs.0.lock().unwrap_or_else(PoisonError::into_inner);
        let most = runs.values().max().copied().unwrap_or(0);
        drop(runs);
        // Each row is one of calls of one after the other: no number comes twice.
        assert!(most <= 1, "a function ran {most} times");
        self.check_leases(&context);
        self.end(Some(context));
    }

    /// Begins a row, or goes on with one.
    fn call(&mut self, context: &ContextRef, tasks: &[TaskHandle], calls: &[Call]) -> Call {
        let is_last = |index: usize| {
            let own = &calls[index];
            calls[index + 1..].iter().all(|later| later.row != own.row)
        };
        let last: Vec<usize> = (0..calls.len()).filter(|index| is_last(*index)).collect();
        let before = match last.is_empty() || self.random.one_in(4) {
            true => None,
            false => Some(&calls[last[self.random.below(last.len())]]),
        };
        let task = before.map_or_else(|| tasks[self.random.below(tasks.len())], |call| call.task);
        let name = context.task_name(task).unwrap();
        let device: Arc<str> = format!("{name}/device:CPU:0").into();
        let output = context.objects().allocate(&device);
        let bounded = self.random.one_in(8);
        let cancel = Cancel::new();
        let bounds = Bounds {
            cancel: Some(cancel.clone()),
            deadline: bounded.then(|| self.host.now() + Duration::from_millis(10)),
            ..Bounds::default()
        };
        let request = Request::RemoteExecute {
            context: context.id(),
            name: before.map_or("make", |_| "next").to_owned(),
            inputs: before.iter().map(|call| call.output.clone()).collect(),
            outputs: vec![RequestedOutput {
                id: output.clone(),
                need_metadata: false,
            }],
        };
        Call {
            task,
            depth: before.map_or(0, |call| call.depth + 1),
            row: before.map_or(calls.len() as i64, |call| call.row),
            reply: context.call(task, request, bounds),
            output,
            cancel,
            bounded: bounded || before.is_some_and(|call| call.bounded),
        }
    }

    /// Cancels a call, and what needs its result may fail with it.
    fn give_up(&mut self, calls: &mut [Call], given_up: usize) {
        let row = calls[given_up].row;
        for later in calls[given_up..].iter_mut().filter(|call| call.row == row) {
            later.bounded = true;
        }
        calls[given_up].cancel.cancel(Error::cancelled("enough"));
    }

    fn check(&self, context: &ContextRef, call: &Call) {
        assert!(call.reply.is_settled(), "a call was not answered");
        let name = context.task_name(call.task).unwrap();
        if let Some(error) = call.reply.error() {
            if call
                .cancel
                .reason()
                .is_some_and(|reason| reason.same(error))
            {
                return;
            }
            assert_eq!(error.task(), Some(name), "{error:?}");
            let codes = [
                ErrorCode::Unavailable,
                ErrorCode::Unknown,
                ErrorCode::NotFound,
            ];
            let fits = match error.code() {
                ErrorCode::DeadlineExceeded => call.bounded,
                code => self.has_faults && codes.contains(&code),
            };
            assert!(fits, "{error:?}");
            return;
        }
        // It is there if its task is, and right.
        let index = usize::try_from(name.task).unwrap();
        let Some(server) = &self.servers[index] else {
            return;
        };
        let value = server
            .context(context.id())
            .unwrap()
            .objects()
            .get(call.output.key);
        assert!(value.is_settled(), "a result that was told is not there");
        match (value.get::<i64>(), value.error()) {
            (Some(found), _) => assert_eq!(found % 1000, call.depth),
            (None, Some(error)) => assert!(self.has_faults || call.bounded, "{error:?}"),
            (None, None) => panic!("a result is no number"),
        }
    }

    /// Cuts off the master: its contexts are kept for its lease, in which it may come back, and no longer.
    fn check_leases(&mut self, context: &ContextRef) {
        let there = (1..self.servers.len()).filter(|task| self.servers[*task].is_some());
        let there: Vec<usize> = there.collect();
        for task in &there {
            self.network
                .set_cut(&self.addresses[0], &self.addresses[*task], true);
        }
        self.drain(false);
        let (before, is_back) = (self.random.below(9_000) as u64, self.random.one_in(2));
        self.clock.advance(Duration::from_millis(before));
        self.drain(false);
        let has_context = |bed: &Bed, task: usize| {
            let server = bed.servers[task].as_ref().unwrap();
            server.context(context.id()).is_ok()
        };
        if !self.has_faults {
            assert!(there.iter().all(|task| has_context(self, *task)));
        }
        for task in &there {
            let handle = context.group("all").unwrap()[*task];
            let address = self.addresses[*task].clone();
            if is_back {
                self.network.set_cut(&self.addresses[0], &address, false);
                let master = self.servers[0].as_ref().unwrap().handle();
                let name = context.task_name(handle).unwrap();
                master.transport().introduce(handle, name, &address);
            }
            let request = Request::KeepAlive {
                context: context.id(),
            };
            let told = context.call(handle, request, Bounds::default());
            self.drain(false);
            if !self.has_faults {
                assert_eq!(told.error().is_none(), is_back, "{:?}", told.error());
            }
        }
        self.clock.advance(Duration::from_secs(11));
        self.drain(false);
        for task in there {
            if !self.has_faults || !is_back {
                assert_eq!(has_context(self, task), is_back, "task {task}");
            }
        }
    }

    /// Ends all tasks: nothing is left.
    fn end(mut self, context: Option<ContextRef>) {
        let context = context.map(|context| {
            let weak = Arc::downgrade(context.context());
            drop(context);
            weak
        });
        self.servers.clear();
        self.network.set_held(false);
        self.host.queue().quiesce().unwrap();
        assert!(
            context.is_none_or(|context| context.upgrade().is_none()),
            "a context is left"
        );
        assert_eq!(self.host.n_open_calls(), 0, "calls are left");
        assert_eq!(self.host.timers().pending(), 0, "timers are left");
    }
}

#[test]
fn schedules_of_seeds_keep_the_promises() {
    let asked = std::env::var("TFRT_SCHEDULES").unwrap_or_else(|_| "200".to_owned());
    let (first, n_seeds): (u64, u64) = match asked.split_once(':') {
        Some((first, n)) => (first.parse().unwrap(), n.parse().unwrap()),
        None => (0, asked.parse().unwrap()),
    };
    for seed in first..first + n_seeds {
        let run = || Bed::new(seed).run();
        if let Err(payload) = catch_unwind(AssertUnwindSafe(run)) {
            eprintln!("the schedule of seed {seed} breaks a promise: TFRT_SCHEDULES={seed}:1");
            resume_unwind(payload);
        }
    }
}
