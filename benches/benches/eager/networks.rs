//! Networks, one operation at a time, beside the programs that were recorded of the same calls, and ResNet-50 beside the
//! program of kernels that is written for it.

use std::sync::Arc;

use tfrt::eager::{Eager, Handle};
use tfrt::{
    AnyAsyncValue, ConcurrentWorkQueue, Error, MultiThreadedWorkQueue, Runtime,
    SingleThreadedWorkQueue,
};
use tfrt_benches::compare::{Contender, Subject};
use tfrt_benches::measure::Clock;
use tfrt_benches::table::Bench;
use tfrt_networks::resnet::{EagerResNet, Form, ResNet};
use tfrt_tensor::DenseHostTensor;

/// The numbers of pixels, of units within, and of classes.
const PERCEPTRON: [usize; 3] = [784, 512, 10];

/// Measures one and several images, on one thread and on two.
///
/// # Panics
///
/// If an operation fails that has no reason to.
pub fn measure(bench: &Bench) {
    for n_threads in [1, 2] {
        for batch in [1, 100] {
            let name = format!("perceptron, batch {batch}, {n_threads} threads");
            if bench.is_wanted(&name) {
                perceptron(bench, &name, batch, n_threads);
            }
        }
        for batch in [1, 8] {
            let name = format!("resnet, batch {batch}, {n_threads} threads");
            if bench.is_wanted(&name) {
                resnet(bench, &name, batch, n_threads);
            }
        }
    }
}

fn runtime(n_threads: usize) -> Runtime {
    let queue: Arc<dyn ConcurrentWorkQueue> = match n_threads {
        1 => Arc::new(SingleThreadedWorkQueue::new()),
        n => Arc::new(MultiThreadedWorkQueue::new(n, 2).expect("threads can be had")),
    };
    Runtime::builder().queue(queue).build()
}

fn perceptron(bench: &Bench, name: &str, batch: usize, n_threads: usize) {
    let runtime = runtime(n_threads);
    let eager = Eager::new(&runtime);
    let mut state = 1_u32;
    let mut random = |extents: &[usize], bound: f32| {
        let n = extents.iter().product();
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            bound * ((state >> 8) as f32 / 8_388_608.0 - 1.0)
        };
        let elements: Vec<f32> = (0..n).map(|_| next()).collect();
        eager.tensor(extents, &elements).expect("there is memory")
    };
    let [pixels, hidden, classes] = PERCEPTRON;
    let images = random(&[batch, pixels], 1.0);
    let (first, first_bias) = (random(&[pixels, hidden], 0.1), random(&[hidden], 0.1));
    let (second, second_bias) = (random(&[hidden, classes], 0.1), random(&[classes], 0.1));
    let logits = move |x: &Handle| {
        let within = x.matmul(&first)?.bias_add(&first_bias)?.relu()?;
        within.matmul(&second)?.bias_add(&second_bias)
    };
    compare(bench, name, &runtime, &images, logits, None);
}

fn resnet(bench: &Bench, name: &str, batch: usize, n_threads: usize) {
    let runtime = runtime(n_threads);
    let network = ResNet {
        batch,
        form: Form::Packed,
        ..ResNet::FIFTY
    };
    let tensors = network.tensors(1, runtime.host().allocator());
    let tensors = tensors.expect("there is memory");
    let program = kernels(&runtime, &network, &tensors);
    let eager = EagerResNet::new(&network, &tensors[1..], &runtime);
    let eager = eager.expect("there is memory");
    let images = eager.eager().of(tensors[0].clone());
    drop(tensors);
    let logits = move |images: &Handle| eager.logits(images);
    compare(bench, name, &runtime, &images, logits, Some(program));
}

/// Compares calls with their recording, and with a program.
fn compare(
    bench: &Bench,
    name: &str,
    runtime: &Runtime,
    images: &Handle,
    logits: impl Fn(&Handle) -> Result<Handle, Error> + 'static,
    program: Option<Contender>,
) {
    let eager = Eager::new(runtime);
    let recorded = eager.record(&[("images", images)], |_, inputs| {
        Ok(vec![logits(&inputs[0])?])
    });
    let model = recorded.expect("all of it can be written").compile(runtime);
    let model = model.expect("what is recorded is a program");
    let first = logits(images).and_then(|logits| logits.to_host());
    let answer = largest(&first.expect("it does not fail"));

    let (lent, given, runtime) = (images.clone(), images.to_host(), runtime.clone());
    let given = given.expect("it is there");
    let mut contenders = vec![
        Contender::new("one at a time", Clock::Wall, move || {
            let logits = logits(&lent).and_then(|logits| logits.to_host());
            largest(&logits.expect("it does not fail"))
        }),
        Contender::new("recorded", Clock::Wall, move || {
            let outputs = model.call(&runtime.context(), [("images", given.clone())]);
            let outputs = outputs.wait().expect("it does not fail");
            let logits = outputs.tensor("output0").expect("it has one");
            largest(logits.as_dense().expect("a dense one"))
        }),
    ];
    contenders.extend(program);
    let subject = Subject {
        name,
        unit: "call",
        n_units: 1,
        answer,
    };
    bench.compare(subject, &mut contenders);
}

/// Returns the program of kernels, with weights that were packed ahead.
fn kernels(runtime: &Runtime, network: &ResNet, tensors: &[tfrt_tensor::Tensor]) -> Contender {
    let program = runtime.compile("resnet.mlir", network.program("none.btf"));
    let program = program.expect("what is generated is a program");
    let mut arguments: Vec<AnyAsyncValue> =
        tensors.iter().cloned().map(AnyAsyncValue::new).collect();
    let weights = arguments.split_off(1);
    let pack = program.function("pack").expect("the program has it");
    let packed = pack.call(&runtime.context(), weights).wait();
    arguments.extend(packed.expect("there is memory").into_inner());
    let infer = program.function("infer").expect("the program has it");
    let runtime = runtime.clone();
    Contender::new("kernels", Clock::Wall, move || {
        let results = infer.call(&runtime.context(), arguments.clone()).wait();
        let results = results.expect("it does not fail");
        let logits = results.get::<tfrt_tensor::Tensor>(0).expect("a tensor");
        largest(logits.as_dense().expect("a dense one"))
    })
}

/// Returns where the first image's largest logit is.
fn largest(logits: &DenseHostTensor) -> i32 {
    let n_classes = logits.shape().extents().last().expect("there are classes");
    let reading = logits.read().expect("nobody writes");
    let first = &reading.elements::<f32>().expect("floats")[..n_classes];
    let largest = (0..n_classes).max_by(|a, b| first[*a].total_cmp(&first[*b]));
    largest.map_or(-1, |index| index as i32)
}
