//! Many calls at once, many models at once, and how soon a stopped call is over.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use tfrt::host::memory::ProfiledAllocator;
use tfrt::tensor::{DenseHostTensor, Tensor};
use tfrt::{Model, MultiThreadedWorkQueue, Runtime};

use super::{TWO, model};

const N_CALLS: usize = 10_000;

fn x(runtime: &Runtime, extents: &[usize]) -> Tensor {
    let n = extents.iter().product();
    let allocator = runtime.host().allocator();
    DenseHostTensor::from_slice(allocator, extents, &vec![0.25_f32; n])
        .unwrap()
        .into()
}

/// An executor in a few lines: this thread sleeps until somebody wakes the future.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut TaskContext::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

async fn call(model: &Model, runtime: &Runtime, x: &Tensor) -> f32 {
    let outputs = model.spawn(&runtime.context(), (x, x)).await.unwrap();
    let sum = outputs
        .tensor("sum")
        .unwrap()
        .as_dense()
        .unwrap()
        .read()
        .unwrap();
    sum.elements::<f32>().unwrap()[0]
}

#[test]
fn ten_thousand_calls_at_once_complete_on_tokio() {
    let runtime = Runtime::new();
    let model = model(&runtime, TWO);
    let x = x(&runtime, &[1, 3]);
    let tokio = tokio::runtime::Builder::new_multi_thread();
    let tokio = { tokio }.worker_threads(2).build().unwrap();
    let sum: f32 = tokio.block_on(async {
        let calls = (0..N_CALLS).map(|_| {
            let (model, runtime, x) = (model.clone(), runtime.clone(), x.clone());
            tokio::spawn(async move { call(&model, &runtime, &x).await })
        });
        let calls: Vec<_> = calls.collect();
        let mut sum = 0.0;
        for call in calls {
            sum += call.await.unwrap();
        }
        sum
    });
    assert_eq!(sum, 1.5 * N_CALLS as f32);
}

#[test]
fn ten_thousand_calls_at_once_complete_by_a_plain_block_on() {
    let runtime = Runtime::new();
    let model = model(&runtime, TWO);
    let (x, context) = (x(&runtime, &[1, 3]), runtime.context());
    let calls = (0..N_CALLS).map(|_| model.spawn(&context, (&x, &x)));
    let calls: Vec<_> = calls.collect();
    block_on(async {
        for call in calls {
            let outputs = call.await.unwrap();
            assert_eq!(outputs.iter().len(), 2);
        }
    });
}

#[cfg(target_os = "linux")]
#[test]
fn threads_stay_within_the_budget_with_a_thousand_models() {
    let runtime = Runtime::builder()
        .queue(Arc::new(MultiThreadedWorkQueue::new(3, 1).unwrap()))
        .build();
    // Other tests of this process have threads, too: those of our queue have a name.
    let workers = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        tasks.count()
    };
    let x = x(&runtime, &[1, 3]);
    let first = model(&runtime, TWO);
    let _ = first.call(&runtime.context(), (&x, &x)).wait().unwrap();
    let program = first.program().clone();
    let models: Vec<Model> = (0..1_000)
        .map(|_| Model::from_program(program.clone(), &runtime).unwrap())
        .collect();
    let loaded: Vec<Model> = (0..100).map(|_| model(&runtime, TWO)).collect();
    for model in models.iter().chain(&loaded) {
        let _ = model.spawn(&runtime.context(), (&x, &x)).wait().unwrap();
    }
    // What the other tests run with, and the harness: far fewer than there are models.
    assert!(workers() < 64, "{} threads", workers());
}

/// A chain of operations on a large tensor.
fn long(n_operations: usize) -> String {
    let mut text = String::from(
        r#"module attributes {onnx.opset = 17 : i64} {
  func.func @main(%v0: tensor<?xf32>) -> tensor<?xf32>
      attributes {onnx.inputs = ["x"], onnx.outputs = ["y"], onnx.input_dims = [["N"]],
                  onnx.output_dims = [["N"]]} {
"#,
    );
    for index in 0..n_operations {
        let (from, to) = (index, index + 1);
        let name = ["Tanh", "Softplus", "Erf"][index % 3];
        text.push_str(&format!(
            "    %v{to} = \"onnx.{name}\"(%v{from}) : (tensor<?xf32>) -> tensor<?xf32>\n"
        ));
    }
    text.push_str(&format!(
        "    func.return %v{n_operations} : tensor<?xf32>\n  }}\n}}\n"
    ));
    text
}

/// With `TFRT_CANCELLATIONS=1000`, in a release build on a machine with nothing else to do, the limit is
/// the one that we promise: 5 ms at the 99th percentile.
#[test]
fn stopped_calls_leave_the_workers_soon_and_leak_nothing() {
    let promised = std::env::var("TFRT_CANCELLATIONS").ok();
    let rounds = promised.as_ref().map_or(20, |n| n.parse().unwrap());
    let limit = match promised {
        Some(_) => Duration::from_millis(5),
        None => Duration::from_millis(500),
    };
    let system = Arc::new(tfrt::asynchronous::SystemAllocator::new());
    let allocator = Arc::new(ProfiledAllocator::new(system));
    let runtime = Runtime::builder().allocator(allocator.clone()).build();
    let model = model(&runtime, &long(60));
    let x = x(&runtime, &[1 << 20]);
    let mut times = Vec::new();
    for round in 0..rounds {
        let delay = Duration::from_micros(500 + 37 * (round % 100));
        // Every other call is not cancelled, but overdue.
        let builder = runtime.context_builder();
        let context = match round % 2 {
            0 => builder.build(),
            _ => builder.deadline(delay).build(),
        };
        let call = model.spawn(&context, (&x,));
        let begin = Instant::now();
        while begin.elapsed() < delay {
            std::hint::spin_loop();
        }
        if round % 2 == 0 {
            context.cancel();
        }
        let stopped = Instant::now();
        runtime.quiesce().unwrap();
        times.push(stopped.elapsed());
        call.wait().unwrap_err();
    }
    times.sort();
    let at_99 = times[(times.len() * 99).div_ceil(100) - 1];
    println!(
        "{rounds} calls: {:?} at the median, {at_99:?} at the 99th percentile",
        times[times.len() / 2]
    );
    assert!(at_99 < limit, "{at_99:?}");
    drop((x, model, runtime));
    assert_eq!(allocator.profile().current_allocations, 0);
}
