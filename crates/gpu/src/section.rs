//! Sections of models, which run on a GPU without the host in between: captured when they have run twice with the same
//! shapes, and launched as graphs from then on.
//!
//! ```mlir
//! %y = "cuda.graph.section"(%x, %w) {callee = @main.section0, device = "GPU:0", fixed = [1]}
//! ```
//!
//! A capture runs the function once more, by a request of its own whose results and scratch lie in memory of the capture
//! ([`Lane`](crate::device::Lane)), on a stream that only records. So addresses are those of all launches. What calls bring
//! is copied to where the graph reads it, and what it makes is copied from there; constants are read where they are. Where a
//! capture fails the function runs as before.

use std::sync::{Arc, Mutex, PoisonError};

use tfrt_host::kernel::{Attr, Call, Function, NodeState, Rest, Step};
use tfrt_host::{
    AnyAsyncValue, AnyPromise, AsyncValue, Chain, Error, ExecutionContext, HostContext, Promise,
    RequestContext, when_all,
};
use tfrt_tensor::{DeviceTensor, Tensor, TensorMetadata, allocate_on};

use crate::context::Capture;
use crate::device::{Lane, Shared, memory_of};

mod plan;
mod table;

use plan::Plan;
use table::{Next, Table, Ticket};

/// The name of the kernel.
pub(crate) const KERNEL: &str = "cuda.graph.section";

/// The most bytes of an operand on the host that tell calls apart.
const MOST_HOST_BYTES: usize = 1024;

/// The number of graphs that a host's programs have captured, and of launches of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphCounts {
    /// Graphs that were captured.
    pub n_captured: u64,
    /// Calls that launched one.
    pub n_launched: u64,
}

/// State of a host.
#[derive(Default)]
struct Graphs {
    is_off: Mutex<bool>,
    counts: Mutex<GraphCounts>,
}

fn graphs(host: &HostContext) -> Arc<Graphs> {
    host.shared(|_| Graphs::default())
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says whether sections of a host's models are captured and launched as graphs. Default: they are.
pub fn use_graphs(host: &HostContext, are_used: bool) {
    *locked(&graphs(host).is_off) = !are_used;
}

/// Returns how many graphs a host's models have captured, and how often they were launched.
pub fn graph_counts(host: &HostContext) -> GraphCounts {
    *locked(&graphs(host).counts)
}

/// Calls a section.
pub(crate) fn run(
    arguments: Rest,
    _device: Attr<&str>,
    fixed: Attr<&[i64]>,
    body: Function,
    state: NodeState,
    execution: &ExecutionContext,
) -> Result<Step, Error> {
    let arguments = arguments.0;
    let graphs = graphs(execution.host());
    let table = state.get_or_init(|| Arc::new(Table::default()));
    let known = Operands::of(&arguments, &fixed).filter(|_| !*locked(&graphs.is_off));
    let (Some(table), Some(operands)) = (table, known) else {
        return Ok(Step::call(Call::new(body, arguments), Step::done));
    };
    match table.next(&operands.key) {
        Next::Run => Ok(Step::call(Call::new(body, arguments), Step::done)),
        Next::Launch(plan) if plan.fits(&arguments) => {
            let results = launch(plan, &operands, execution)?;
            locked(&graphs.counts).n_launched += 1;
            Ok(Step::done(results))
        }
        Next::Launch(_) => Ok(Step::call(Call::new(body, arguments), Step::done)),
        Next::Capture(ticket) => {
            let (promises, results): (Vec<AnyPromise>, _) = (0..body.n_results())
                .map(|_| AnyAsyncValue::pending())
                .unzip();
            let capturing = Capturing {
                ticket,
                operands,
                arguments,
                body,
                promises,
                execution: execution.clone(),
                graphs,
            };
            let after = capturing.operands.ready();
            when_all(&after).when_settled(move |_| capturing.begin());
            Ok(Step::done(results))
        }
    }
}

/// The operands of a call that differ from call to call.
struct Operands {
    shared: Arc<Shared>,
    /// Tensors on the device, by their places.
    varying: Vec<(usize, DeviceTensor)>,
    /// Those that are the same in all calls.
    fixed: Vec<(usize, DeviceTensor)>,
    key: Vec<u8>,
}

impl Operands {
    /// Returns the operands, unless the results depend on what is not seen here.
    fn of(arguments: &[AnyAsyncValue], fixed: &[i64]) -> Option<Operands> {
        let mut shared: Option<Arc<Shared>> = None;
        let (mut varying, mut same, mut key) = (Vec::new(), Vec::new(), Vec::new());
        for (at, argument) in arguments.iter().enumerate() {
            let is_fixed = fixed.iter().any(|place| usize::try_from(*place) == Ok(at));
            let tensor = match argument.get::<Tensor>() {
                Some(tensor) => tensor,
                None if is_fixed || argument.is::<tfrt_tensor::NoValue>() => continue,
                None => return None,
            };
            if let Tensor::Device(tensor) = tensor {
                let own = memory_of(tensor.elements()).ok()?.shared();
                if !Arc::ptr_eq(shared.get_or_insert_with(|| own.clone()), own) {
                    return None;
                }
                let list = if is_fixed { &mut same } else { &mut varying };
                list.push((at, tensor.clone()));
            }
            if !is_fixed {
                note(&mut key, tensor)?;
            }
        }
        Some(Operands {
            shared: shared?,
            varying,
            fixed: same,
            key,
        })
    }

    /// Returns the values that work on the device has to wait for.
    fn ready(&self) -> Vec<AnyAsyncValue> {
        let varying = self.varying.iter();
        varying
            .map(|(_, tensor)| tensor.ready().as_any().clone())
            .collect()
    }
}

/// Adds the type and the extents of a tensor to a key, and its elements if it is on the host.
fn note(key: &mut Vec<u8>, tensor: &Tensor) -> Option<()> {
    let metadata = tensor.metadata();
    key.extend(format!("{}{};", metadata.dtype, metadata.shape).bytes());
    if let Tensor::Device(_) = tensor {
        return Some(());
    }
    let dense = tensor.as_dense().ok()?;
    let reading = dense.read().ok()?;
    let bytes = reading.bytes();
    let is_short = bytes.len() <= MOST_HOST_BYTES;
    is_short.then(|| key.extend_from_slice(bytes))
}

/// Launches a graph on operands; returns its results.
fn launch(
    plan: Arc<Plan>,
    operands: &Operands,
    execution: &ExecutionContext,
) -> Result<Vec<AnyAsyncValue>, Error> {
    let mut results = Vec::new();
    let mut made: Vec<(DeviceTensor, Promise<Chain>)> = Vec::new();
    for tensor in plan.results() {
        let (done, ready) = AsyncValue::pending();
        let metadata = tensor.metadata().clone();
        let result = allocate_on(tensor.device(), metadata, ready, execution)?;
        results.push(AnyAsyncValue::new(Tensor::Device(result.clone())));
        made.push((result, done));
    }
    let varying: Vec<DeviceTensor> = operands
        .varying
        .iter()
        .map(|(_, own)| own.clone())
        .collect();
    when_all(&operands.ready()).when_settled(move |all| {
        let queued = match all.error() {
            Some(error) => Err(error.clone()),
            None => plan.launch(&varying, made.iter().map(|(tensor, _)| tensor)),
        };
        // Rights to memory end before readers begin.
        drop(varying);
        for (tensor, done) in made {
            drop(tensor);
            done.complete(queued.clone().map(|()| Chain));
        }
    });
    Ok(results)
}

/// A call that captures what its function does.
struct Capturing {
    ticket: Ticket,
    operands: Operands,
    arguments: Vec<AnyAsyncValue>,
    body: Function,
    promises: Vec<AnyPromise>,
    execution: ExecutionContext,
    graphs: Arc<Graphs>,
}

/// A capture that is under way.
struct UnderWay {
    // Ends before its stream does.
    capture: Capture,
    lane: Arc<Shared>,
    inputs: Vec<DeviceTensor>,
}

impl Capturing {
    /// Runs the function for the capture, and goes on when its results are there.
    fn begin(self) {
        let (under_way, arguments) = match self.prepare() {
            Ok(prepared) => prepared,
            Err(_) => return self.run(),
        };
        let request = self.execution.request();
        let own = RequestContext::builder(request.host())
            .id(request.id())
            .queue(request.queue().clone())
            .data(Lane(under_way.lane.clone()))
            .build();
        let results = self.body.execute(&ExecutionContext::new(&own), arguments);
        let waiting = results.clone();
        when_all(&waiting).when_settled(move |all| {
            own.clear_data();
            if all.error().is_some() {
                drop(under_way);
                return self.run();
            }
            let ready: Option<Vec<AnyAsyncValue>> = results.iter().map(ready_of).collect();
            let Some(ready) = ready else {
                drop(under_way);
                return self.run();
            };
            when_all(&ready).when_settled(move |all| match all.error() {
                Some(_) => {
                    drop(under_way);
                    self.run();
                }
                None => self.finish(under_way, results),
            });
        });
    }

    /// Takes what a capture needs: a stream, memory, and places for operands.
    fn prepare(&self) -> Result<(UnderWay, Vec<AnyAsyncValue>), Error> {
        let mut arguments = self.arguments.clone();
        let mut inputs = Vec::new();
        for (at, tensor) in &self.operands.varying {
            let metadata: TensorMetadata = tensor.metadata().clone();
            let ready = AsyncValue::available(Chain);
            let place = allocate_on(tensor.device(), metadata, ready, &self.execution)?;
            arguments[*at] = AnyAsyncValue::new(Tensor::Device(place.clone()));
            inputs.push(place);
        }
        let lane = self.operands.shared.lane()?;
        let capture = Capture::begin(&lane.stream)?;
        let under_way = UnderWay {
            lane,
            capture,
            inputs,
        };
        Ok((under_way, arguments))
    }

    /// Makes a graph of what was captured, and launches it for this call.
    fn finish(self, under_way: UnderWay, results: Vec<AnyAsyncValue>) {
        let UnderWay {
            lane,
            capture,
            inputs,
        } = under_way;
        lane.seal();
        let results: Vec<DeviceTensor> = results.iter().filter_map(device_tensor).collect();
        let Ok(graph) = capture.end() else {
            return self.run();
        };
        let main = self.operands.shared.clone();
        let plan = Arc::new(Plan::new(
            graph,
            (main, lane),
            self.operands.fixed.clone(),
            inputs,
            results,
        ));
        let launched = launch(plan.clone(), &self.operands, &self.execution);
        match launched {
            Ok(results) => {
                let mut counts = locked(&self.graphs.counts);
                counts.n_captured += 1;
                counts.n_launched += 1;
                drop(counts);
                self.ticket.keep(plan);
                for (promise, result) in self.promises.into_iter().zip(results) {
                    promise.forward(result);
                }
            }
            Err(_) => self.run(),
        }
    }

    /// Runs the function as it runs without a capture. The ticket is dropped: there is no further capture.
    fn run(self) {
        let results = self.body.execute(&self.execution, self.arguments);
        for (promise, result) in self.promises.into_iter().zip(results) {
            promise.forward(result);
        }
    }
}

fn device_tensor(value: &AnyAsyncValue) -> Option<DeviceTensor> {
    match value.get::<Tensor>()? {
        Tensor::Device(tensor) => Some(tensor.clone()),
        _ => None,
    }
}

/// Returns what says that the work that makes a tensor on the device is queued.
fn ready_of(value: &AnyAsyncValue) -> Option<AnyAsyncValue> {
    Some(device_tensor(value)?.ready().as_any().clone())
}
