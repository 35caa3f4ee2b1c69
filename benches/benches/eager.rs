//! One operation at a time: the sum of four floats and four others, by name and by method, a million operations that
//! wait, and whole networks.
//!
//! An operation is looked up ahead. A call checks handles, types and shapes, allocates, adds, and makes a handle, which
//! is dropped. Beside it stands what no library can do without, a list for the result and four additions, and candle,
//! in a process of its own (`benches/peers/setup.sh models` sets it up). The goal is 80 ns.
//!
//! Of the operations that wait, in a chain, each for the one before, or in a fan, all for one, there are: how long it
//! takes to make one, and how much memory it keeps; how long after a cancellation all handles are settled, for which
//! the goal is 10 ms; and how long it takes until the last is done, or has been let go of. All of it happens on a thread
//! with a stack of 512 KiB.
//!
//! Networks are a perceptron and ResNet-50: how long images take one operation at a time, and by the program that was
//! recorded of the same calls; the goal is 3% more at most. The answer is the first image's class.

#![forbid(unsafe_code)]

use std::hint::black_box;
use std::process::Command;

use tfrt::Runtime;
use tfrt::corert::{Context, CoreRuntime, CoreRuntimeOp, OpAttrs, TensorHandle};
use tfrt::eager::Eager;
use tfrt_benches::compare::{Contender, Sample, Subject};
use tfrt_benches::folders;
use tfrt_benches::measure::Clock;
use tfrt_benches::peers::process::PeerProcess;
use tfrt_benches::table::{Bench, skip};
use tfrt_host::HostContext;
use tfrt_host::kernel::KernelRegistry;

#[path = "eager/networks.rs"]
mod networks;
#[path = "eager/waiting.rs"]
mod waiting;

/// The number of sums each time.
const N: usize = 1_000;
const A: [f32; 4] = [1.0, 2.0, 3.0, 4.0];
const B: [f32; 4] = [10.0, 20.0, 30.0, 40.0];
/// The sum of all elements of the result.
const ANSWER: i32 = 110;

fn main() {
    let bench = Bench::from_environment();
    if bench.is_wanted("sum") {
        bench.begin("one operation on four floats; processor time of the process");
        let subject = Subject {
            name: "sum",
            unit: "call",
            n_units: N,
            answer: ANSWER,
        };
        let mut contenders = vec![lent(), given(), methods(), made(), alone()];
        match candle() {
            Ok(candle) => contenders.push(candle),
            Err(why) => skip(&format!("candle: {why}")),
        }
        bench.compare(subject, &mut contenders);
    }
    if bench.is_wanted("waiting") {
        waiting::measure();
    }
    networks::measure(&bench);
}

/// A runtime, a context, and the sum.
struct Calls {
    runtime: CoreRuntime,
    context: Context,
    add: CoreRuntimeOp,
    attrs: OpAttrs,
}

impl Calls {
    fn new() -> Calls {
        let runtime = CoreRuntime::new(&HostContext::builder(KernelRegistry::new()).build());
        let add = runtime.op("tf.AddV2", &runtime.cpu());
        Calls {
            context: runtime.context(),
            add: add.expect("it is registered"),
            attrs: OpAttrs::new(),
            runtime,
        }
    }

    fn handle(&self, elements: &[f32]) -> TensorHandle {
        let made = self.runtime.dense(&[elements.len()], elements);
        made.expect("there is memory")
    }
}

/// Returns the sum of the elements.
fn answer(elements: &[f32]) -> i32 {
    elements.iter().sum::<f32>() as i32
}

fn answer_of(handle: &TensorHandle) -> i32 {
    let tensor = handle
        .tensor()
        .expect("it is there")
        .expect("it has not failed");
    let dense = tensor.as_dense().expect("it is dense");
    let reading = dense.read().expect("nobody writes");
    answer(reading.elements().expect("floats"))
}

/// Returns a contender that adds handles which are kept.
fn lent() -> Contender {
    let calls = Calls::new();
    let (a, b) = (calls.handle(&A), calls.handle(&B));
    contender("tfrt, handles lent", move || {
        calls
            .add
            .call_one(&calls.context, [black_box(&a), &b], &calls.attrs)
            .expect("it has no reason to fail")
    })
}

/// Returns a contender that adds a handle given for good, in whose memory the result is made, and one that is cloned
/// for it.
fn given() -> Contender {
    let calls = Calls::new();
    let nothing = calls.handle(&[0.0; 4]);
    let mut sum = Some(calls.handle(&[11.0, 22.0, 33.0, 44.0]));
    Contender::new("tfrt, handles given", Clock::Process, move || {
        for _ in 0..N {
            let inputs = [sum.take().expect("it was put back"), nothing.clone()];
            let made = calls.add.call_one(&calls.context, inputs, &calls.attrs);
            sum = Some(black_box(made.expect("it has no reason to fail")));
        }
        answer_of(sum.as_ref().expect("it was put back"))
    })
}

/// Returns a contender that adds by the operator of tensors.
fn methods() -> Contender {
    let eager = Eager::new(&Runtime::new());
    let (a, b) = (eager.tensor(&[4], &A), eager.tensor(&[4], &B));
    let (a, b) = (a.expect("there is memory"), b.expect("there is memory"));
    contender("tfrt::eager, &a + &b", move || {
        let sum = black_box(&a) + &b;
        sum.expect("it has no reason to fail").into_handle()
    })
}

/// Returns a handle to a tensor that is made of a slice, with no operation.
fn made() -> Contender {
    let calls = Calls::new();
    contender("tfrt, a handle alone", move || {
        calls.handle(black_box(&[11.0, 22.0, 33.0, 44.0]))
    })
}

/// Makes a handle [`N`] times.
fn contender(name: &str, call: impl Fn() -> TensorHandle + 'static) -> Contender {
    Contender::new(name, Clock::Process, move || {
        for _ in 1..N {
            drop(black_box(call()));
        }
        answer_of(&call())
    })
}

/// Returns a list for the result and four additions.
fn alone() -> Contender {
    Contender::new("a list, four additions", Clock::Process, || {
        let add = || -> Vec<f32> {
            let (a, b) = black_box((&A, &B));
            a.iter().zip(b).map(|(a, b)| a + b).collect()
        };
        for _ in 1..N {
            drop(black_box(add()));
        }
        answer(&add())
    })
}

/// Returns a contender that adds by candle.
fn candle() -> Result<Contender, String> {
    let program = folders::target("peers/models/release/candle_sum");
    if !program.exists() {
        return Err("benches/peers/setup.sh models was not run".to_owned());
    }
    let mut asked = PeerProcess::start(&mut Command::new(program))?;
    let results = asked.tell("results");
    let elements: Result<Vec<f32>, _> = results.split(' ').map(str::parse).collect();
    let answer = answer(&elements.map_err(|error| error.to_string())?);
    Ok(Contender {
        name: asked.greeting.clone(),
        work: Box::new(move |n_times| Sample {
            time: asked.ask(N.saturating_mul(n_times as usize)),
            answer,
        }),
    })
}
