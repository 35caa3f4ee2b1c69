//! A million operations that wait.

use std::fs;
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use tfrt::corert::{
    Call, Context, CoreRuntime, CoreRuntimeOp, OpAttrs, OpDefinition, OpRegistry, Output,
    TensorHandle, same_metadata,
};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{AsyncValue, HostContext, Promise};
use tfrt_tensor::{DenseHostTensor, Tensor};

/// The number of operations that wait.
const N: usize = 1_000_000;
const STACK_BYTES: usize = 512 << 10;

/// The dependencies of the operations.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// Each waits for the one before.
    Chain,
    /// All wait for one.
    Fan,
}

/// Measures both forms, and prints what came of it.
///
/// # Panics
///
/// If an operation fails that has no reason to.
pub fn measure() {
    println!("\nwaiting: {N} operations, on a stack of {STACK_BYTES} bytes; time that passes");
    println!(
        "  {:<8}{:>12}{:>12}{:>14}{:>14}{:>16}{:>14}{:>14}",
        "",
        "bytes/op",
        "ns to make",
        "ns to finish",
        "us to cancel",
        "ms to see all",
        "ns to end",
        "ns to drop"
    );
    for form in [Form::Chain, Form::Fan] {
        let thread = thread::Builder::new().stack_size(STACK_BYTES);
        let thread = thread
            .spawn(move || row(form))
            .expect("a thread can be had");
        println!("{}", thread.join().expect("the stack is large enough"));
    }
}

fn row(form: Form) -> String {
    let waiting = WaitingOps::new(form);
    let (bytes, make) = (waiting.bytes_each, waiting.to_make);
    let finish = waiting.finish();
    let cancelled = WaitingOps::new(form).cancel();
    let each = |time: Duration| time.as_secs_f64() * 1e9 / N as f64;
    format!(
        "  {:<8}{bytes:>12.0}{:>12.0}{:>14.0}{:>14.0}{:>16.2}{:>14.0}{:>14.0}",
        format!("{form:?}").to_lowercase(),
        each(make),
        each(finish),
        cancelled.to_cancel.as_secs_f64() * 1e6,
        cancelled.to_see.as_secs_f64() * 1e3,
        each(cancelled.to_end),
        each(cancelled.to_drop),
    )
}

/// Operations that wait, and the promise that ends it.
struct WaitingOps {
    runtime: CoreRuntime,
    context: Context,
    promise: Promise<Tensor>,
    handles: Vec<TensorHandle>,
    bytes_each: f64,
    to_make: Duration,
}

/// The times in which a million operations are cancelled.
struct Cancelled {
    /// The time of the call alone; who awaits a handle hears of it meanwhile.
    to_cancel: Duration,
    /// The time from the call until each handle was asked, and has said that it is settled.
    to_see: Duration,
    /// The time until all operations have let go of what they waited with, once what they waited
    /// for has ended.
    to_end: Duration,
    /// The time until all handles are gone.
    to_drop: Duration,
}

impl WaitingOps {
    fn new(form: Form) -> WaitingOps {
        let runtime = CoreRuntime::new(&HostContext::builder(KernelRegistry::new()).build());
        let context = runtime.context();
        let x = runtime.dense(&[1], &[1.0_f32]).expect("there is memory");
        let add = runtime
            .op("tf.AddV2", &runtime.cpu())
            .expect("it is registered");
        let attrs = OpAttrs::new();
        let (gate, promises) = gate(&runtime);
        let first = gate.call_one(&context, [&x], &attrs).expect("it waits");
        let promise = promises.recv().expect("the gate has run");
        // The list is there before, so that it is not counted.
        let mut handles = vec![x.clone(); N];
        let (before, start) = (resident_bytes(), Instant::now());
        let mut last = first.clone();
        for handle in &mut handles {
            let inputs = match form {
                Form::Chain => [&last, &x],
                Form::Fan => [&first, &x],
            };
            let sum = add
                .call_one(&context, inputs, &attrs)
                .expect("there is room");
            last = sum.clone();
            *handle = sum;
        }
        let to_make = start.elapsed();
        assert_eq!(context.in_flight(), N);
        WaitingOps {
            bytes_each: (resident_bytes() - before) / N as f64,
            runtime,
            context,
            promise,
            handles,
            to_make,
        }
    }

    /// Lets all of them run; returns how long that takes.
    fn finish(self) -> Duration {
        let allocator = self.runtime.host().allocator();
        let tensor = DenseHostTensor::from_slice(allocator, &[1], &[0.0_f32]);
        let start = Instant::now();
        self.promise
            .resolve(tensor.expect("there is memory").into());
        let time = start.elapsed();
        assert!(
            self.handles
                .iter()
                .all(|handle| matches!(handle.tensor(), Some(Ok(_))))
        );
        assert_eq!(self.context.in_flight(), 0);
        time
    }

    fn cancel(self) -> Cancelled {
        let awaited = self.handles[N - 1].to_async();
        let start = Instant::now();
        self.context.cancel();
        let to_cancel = start.elapsed();
        assert!(awaited.error().is_some());
        assert!(self.handles.iter().all(TensorHandle::is_settled));
        let to_see = start.elapsed();
        let start = Instant::now();
        drop(self.promise);
        let to_end = start.elapsed();
        assert_eq!(self.context.in_flight(), 0);
        let start = Instant::now();
        drop(self.handles);
        Cancelled {
            to_cancel,
            to_see,
            to_end,
            to_drop: start.elapsed(),
        }
    }
}

/// Returns an operation whose result comes when the promise is kept that it hands out.
fn gate(runtime: &CoreRuntime) -> (CoreRuntimeOp, mpsc::Receiver<Promise<Tensor>>) {
    let (sender, receiver) = mpsc::channel();
    let sender = Mutex::new(sender);
    let dispatch = move |_: &mut Call<'_>| {
        let (promise, tensor) = AsyncValue::pending();
        let sender = sender.lock().expect("nobody panics with it");
        sender.send(promise).expect("somebody listens");
        Ok([Output::Later(tensor)].into())
    };
    let definition = OpDefinition::new("gate", dispatch)
        .inputs(1)
        .metadata(same_metadata);
    let mut registry = OpRegistry::new();
    registry.add(definition.pure());
    let op = runtime.op("gate", &runtime.handler_of("own", registry, None));
    (op.expect("it is registered"), receiver)
}

/// Returns how much memory the process has.
fn resident_bytes() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) * 1024.0
}
