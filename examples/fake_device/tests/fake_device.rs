//! Tensors on a device that nothing of the runtime knows.

use std::slice::from_ref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tfrt::corert::{CoreRuntime, OpAttrs, TensorHandle};
use tfrt::host::DeviceRef;
use tfrt::host::device::conformance;
use tfrt::input::Input;
use tfrt::ir::Source;
use tfrt::tensor::op::{OpKernel, Prepare};
use tfrt::tensor::{ScalarHostTensor, StringHostTensor, Tensor, TensorFormat, TensorShape};
use tfrt::{AnyAsyncValue, Error, ErrorCode, Formats, OpenOptions, Runtime};
use tfrt_example_fake_device::{FakeDevice, KERNELS, KIND};

const DELAY: Duration = Duration::from_micros(200);

/// A runtime with a fake device.
struct TestBed {
    runtime: Runtime,
    core: CoreRuntime,
    device: DeviceRef,
    fake: Arc<FakeDevice>,
}

impl TestBed {
    fn new() -> TestBed {
        let runtime = Runtime::builder().op_kernels(KERNELS).build();
        let (device, fake) = add(&runtime, "FAKE:0", 1 << 20);
        let core = CoreRuntime::new(runtime.host());
        TestBed {
            runtime,
            core,
            device,
            fake,
        }
    }

    fn there(&self, handle: &TensorHandle) -> Result<TensorHandle, Error> {
        let context = self.core.context();
        context.transfer(handle, &self.device, TensorFormat::Device)
    }

    fn back(&self, handle: &TensorHandle) -> Result<TensorHandle, Error> {
        let context = self.core.context();
        context.transfer(handle, &self.core.device(), TensorFormat::DenseHost)
    }

    fn wait(&self, handle: &TensorHandle) -> Result<Tensor, Error> {
        let value = handle.to_async().into_any();
        let _waited = self.runtime.host().queue().await_all(from_ref(&value));
        let value = value.settled();
        let tensor = value.get::<Tensor>().cloned();
        tensor.ok_or_else(|| value.error().expect("it is settled").clone())
    }
}

fn add(runtime: &Runtime, name: &str, n_bytes: usize) -> (DeviceRef, Arc<FakeDevice>) {
    let mut made = None;
    let device = runtime.host().devices().add(|id| {
        let fake = FakeDevice::new(id, name, n_bytes, DELAY).unwrap();
        made.insert(Arc::new(fake)).clone()
    });
    (device.unwrap(), made.unwrap())
}

fn floats(tensor: &Tensor) -> Vec<f32> {
    let dense = tensor.as_dense().unwrap();
    dense.read().unwrap().elements::<f32>().unwrap().to_vec()
}

#[test]
fn a_device_of_ones_own_keeps_the_promises_of_the_contract() {
    conformance::suite(&|id| Arc::new(FakeDevice::new(id, "FAKE:0", 1 << 24, DELAY).unwrap()));
}

#[test]
fn tensors_go_to_the_device_and_come_back() {
    let bed = TestBed::new();
    let x = bed.core.dense(&[2, 2], &[1.0_f32, 2.0, 3.0, 4.0]).unwrap();
    let there = bed.there(&x).unwrap();
    assert_eq!(there.device(), bed.device.id());
    assert_eq!(bed.core.device_of(&there).unwrap().kind(), KIND);
    assert_eq!(there.metadata(), x.metadata());
    assert_eq!(there.to_string(), "FakeTensor<size=16> on FAKE:0");
    let again = bed.back(&there).unwrap();
    assert_eq!(floats(&bed.wait(&again).unwrap()), [1.0, 2.0, 3.0, 4.0]);
    // What is there already stays.
    let same = bed.there(&there).unwrap();
    assert_eq!(same.device(), there.device());
}

#[test]
fn tensors_of_other_formats_are_made_dense_and_strings_stay() {
    let bed = TestBed::new();
    let shape = TensorShape::new(&[3]).unwrap();
    let sevens = ScalarHostTensor::new(shape.clone(), 7.0_f32);
    let there = bed.there(&bed.core.handle(sevens)).unwrap();
    let again = bed.back(&there).unwrap();
    assert_eq!(floats(&bed.wait(&again).unwrap()), [7.0; 3]);
    let strings = StringHostTensor::new(shape, vec![b"one".to_vec(); 3]).unwrap();
    let refused = bed.there(&bed.core.handle(strings)).unwrap_err();
    assert_eq!(
        refused.message(),
        "a tensor of strings stays on the host: FAKE:0 keeps none"
    );
}

#[test]
fn tensors_go_from_one_device_to_another_through_the_host() {
    let bed = TestBed::new();
    let (other, fake) = add(&bed.runtime, "FAKE:1", 1 << 20);
    let x = bed.core.dense(&[2], &[1.0_f32, 2.0]).unwrap();
    let (there, context) = (bed.there(&x).unwrap(), bed.core.context());
    let further = context.transfer(&there, &other, TensorFormat::Device);
    let further = further.unwrap();
    assert_eq!(further.device(), other.id());
    let again = bed.back(&further).unwrap();
    assert_eq!(floats(&bed.wait(&again).unwrap()), [1.0, 2.0]);
    assert_eq!(fake.held_bytes(), 8);
}

#[test]
fn programs_transfer_by_the_names_of_devices() {
    const TEXT: &str = r#"
func.func @main(%t: !t.tensor) -> !t.tensor {
  %c = tfrt.new.chain
  %fake = tfrt.get_device %c {device_name = "FAKE:0"}
  %cpu = tfrt.get_device %c {device_name = "CPU:0"}
  %h = "corert.ht_to_tensorhandle"(%t, %c) : (!t.tensor, !tfrt.chain) -> !corert.tensorhandle
  %there = corert.transfer_inferred_tensortype %h, %fake
  %back = corert.transfer_inferred_tensortype %there, %cpu
  %r = "corert.tensorhandle_to_ht"(%back, %c) : (!corert.tensorhandle, !tfrt.chain) -> !t.tensor
  tfrt.return %r : !t.tensor
}"#;
    let bed = TestBed::new();
    let program = bed.runtime.compile("transfer.mlir", TEXT).unwrap();
    let x = bed.core.dense(&[2], &[1.0_f32, 2.0]).unwrap();
    let tensor = x.tensor().unwrap().unwrap().clone();
    let main = program.function("main").unwrap();
    let tensor = vec![AnyAsyncValue::new(tensor)];
    let results = main.call(&bed.runtime.context(), tensor).wait().unwrap();
    assert_eq!(floats(results.get::<Tensor>(0).unwrap()), [1.0, 2.0]);
}

#[test]
fn kernels_of_the_host_name_the_device_of_what_they_can_not_read() {
    let bed = TestBed::new();
    let x = bed.core.dense(&[2], &[1.0_f32, 2.0]).unwrap();
    let there = bed.there(&x).unwrap();
    let relu = bed.core.op("tf.Relu", &bed.core.cpu()).unwrap();
    let context = bed.core.context();
    let error = relu.call_one(&context, [&there], &OpAttrs::new());
    assert_eq!(
        error.unwrap_err().message(),
        "input 0 of tf.Relu is on device FAKE:0, the operation runs on device CPU:0: transfer it there"
    );
    let tensor = bed.wait(&there).unwrap();
    let error = tensor.as_dense().unwrap_err();
    assert_eq!(
        error.message(),
        "expected a DenseHost tensor, found a tensor of f32 [2] on the device FAKE:0: transfer it to the host"
    );
    let host = bed.runtime.host();
    let value = AnyAsyncValue::new(tensor);
    let encoded = host.codecs().encode(&value, host.allocator());
    assert_eq!(
        encoded.unwrap_err().message(),
        "a tensor of f32 [2] on the device FAKE:0 can't be stored or sent: transfer it to the host"
    );
}

#[test]
fn operations_of_the_device_copy_what_is_on_the_host_and_give_tensors_there() {
    let bed = TestBed::new();
    let handler = bed.core.on(&bed.device).unwrap();
    let same = bed.core.handler("FAKE:0").unwrap();
    assert!(Arc::ptr_eq(&handler, &same));
    let context = bed.core.context();
    let op = |name: &str| bed.core.op(name, &handler).unwrap();
    let x = bed
        .core
        .dense(&[2, 3], &[1.0_f32, -2.0, 3.0, -4.0, 5.0, -6.0])
        .unwrap();
    let w = bed.core.dense(&[3, 1], &[1.0_f32, 10.0, 100.0]).unwrap();
    let product = op("tf.MatMul")
        .call_one(&context, [&x, &w], &OpAttrs::new())
        .unwrap();
    // What follows from the rule of the row is known before the device has done anything.
    assert_eq!(product.metadata().unwrap().to_string(), "f32 [2, 1]");
    assert_eq!(product.device(), bed.device.id());
    let positive = op("relu")
        .call_one(&context, [&product], &OpAttrs::new())
        .unwrap();
    assert_eq!(positive.device(), bed.device.id());
    let again = bed.wait(&bed.back(&positive).unwrap()).unwrap();
    assert_eq!(floats(&again), [281.0, 0.0]);
    // Two copies there, two kernels, one copy back.
    assert_eq!(bed.fake.n_done(), 5);
    let wrong = op("dot")
        .call_one(&context, [&x, &product], &OpAttrs::new())
        .unwrap_err();
    assert!(wrong.message().starts_with("dot: "), "{wrong}");
    drop((product, positive));
    assert_eq!(bed.fake.held_bytes(), 0);
}

#[test]
fn operations_of_the_device_wait_for_their_operands() {
    let bed = TestBed::new();
    let handler = bed.core.on(&bed.device).unwrap();
    let context = bed.core.context();
    let add = bed.core.op("tf.AddV2", &handler).unwrap();
    let (promise, x) = context.promise(None);
    let sum = add.call_one(&context, [&x, &x], &OpAttrs::new()).unwrap();
    assert!(!sum.is_settled());
    promise.resolve(
        bed.core
            .dense(&[1], &[1.5_f32])
            .unwrap()
            .tensor()
            .unwrap()
            .unwrap()
            .clone(),
    );
    assert_eq!(floats(&bed.wait(&bed.back(&sum).unwrap()).unwrap()), [3.0]);
    // What is on another device is brought through the host.
    let (other, _fake) = self::add(&bed.runtime, "FAKE:1", 1 << 20);
    let there = context
        .transfer(&sum, &other, TensorFormat::Device)
        .unwrap();
    let sum = add
        .call_one(&context, [&there, &x], &OpAttrs::new())
        .unwrap();
    assert_eq!(floats(&bed.wait(&bed.back(&sum).unwrap()).unwrap()), [4.5]);
    let (promise, y) = context.promise(None);
    let failed = add.call_one(&context, [&x, &y], &OpAttrs::new()).unwrap();
    promise.fail(Error::internal("it burns"));
    assert_eq!(bed.wait(&failed).unwrap_err().message(), "it burns");
}

#[test]
fn what_the_device_has_no_kernel_for_is_said_or_done_by_the_next_handler() {
    let bed = TestBed::new();
    let handler = bed.core.on(&bed.device).unwrap();
    let context = bed.core.context();
    let error = bed.core.op("tf.Exp", &handler).unwrap_err();
    assert_eq!(error.code(), ErrorCode::NotFound);
    assert_eq!(
        error.message(),
        "op 'tf.Exp' is not supported on FAKE:0: it has no kernel of such a row"
    );
    let integers = bed.core.dense(&[1], &[1_i64]).unwrap();
    let add = bed.core.op("tf.AddV2", &handler).unwrap();
    let error = add.call_one(&context, [&integers, &integers], &OpAttrs::new());
    let error = error.unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidArgument);
    assert_eq!(
        error.message(),
        "tf.AddV2: no kernel on FAKE:0 takes operands of i64, i64"
    );

    let both = bed.core.on_or(&bed.device, bed.core.cpu()).unwrap();
    let x = bed.core.dense(&[2], &[0.0_f32, -1.0]).unwrap();
    let relu = bed.core.op("relu", &both).unwrap();
    let exp = bed.core.op("exp", &both).unwrap();
    let there = relu.call_one(&context, [&x], &OpAttrs::new()).unwrap();
    assert_eq!(there.device(), bed.device.id());
    let here = exp.call_one(&context, [&there], &OpAttrs::new()).unwrap();
    assert_eq!(here.device(), bed.core.device().id());
    assert_eq!(floats(&bed.wait(&here).unwrap()), [1.0, 1.0]);
}

#[test]
fn memory_that_there_is_not_is_an_error_of_the_transfer() {
    let bed = TestBed::new();
    let (small, fake) = add(&bed.runtime, "FAKE:1", 10);
    let x = bed.core.dense(&[3], &[1.0_f32; 3]).unwrap();
    let context = bed.core.context();
    let error = context.transfer(&x, &small, TensorFormat::Device);
    let error = error.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ResourceExhausted);
    assert_eq!(error.message(), "there are no 12 bytes on FAKE:1");
    assert_eq!(fake.held_bytes(), 0);
}

#[test]
fn cancelled_transfers_fail_at_once_and_their_copies_end_later() {
    let bed = TestBed::new();
    let x = bed.core.dense(&[2], &[1.0_f32, 2.0]).unwrap();
    let there = bed.there(&x).unwrap();
    bed.wait(&bed.back(&there).unwrap()).unwrap();
    bed.fake.pause();
    let context = bed.core.context();
    let device = bed.core.device();
    let again = context.transfer(&there, &device, TensorFormat::DenseHost);
    let again = again.unwrap();
    assert!(!again.is_settled());
    context.cancel();
    let error = bed.wait(&again).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Cancelled);
    let refused = context.transfer(&there, &device, TensorFormat::DenseHost);
    assert_eq!(refused.unwrap_err().code(), ErrorCode::Cancelled);
    bed.fake.resume();
    let other = bed.back(&there).unwrap();
    assert_eq!(floats(&bed.wait(&other).unwrap()), [1.0, 2.0]);
}

#[test]
fn nothing_is_held_when_all_handles_are_dropped() {
    let bed = TestBed::new();
    for _ in 0..10 {
        let x = bed.core.dense(&[64], &[1.0_f32; 64]).unwrap();
        let there = bed.there(&x).unwrap();
        assert_eq!(bed.fake.held_bytes(), 256);
        let again = bed.back(&there).unwrap();
        drop((x, there));
        bed.wait(&again).unwrap();
        assert_eq!(bed.fake.held_bytes(), 0);
    }
    // A copy that nobody waits for keeps its memory no longer than it takes.
    let x = bed.core.dense(&[64], &[1.0_f32; 64]).unwrap();
    drop(bed.there(&x).unwrap());
    let last = bed.back(&bed.there(&x).unwrap()).unwrap();
    bed.wait(&last).unwrap();
    assert_eq!(bed.fake.held_bytes(), 0);
}

/// A statistic: how often the kernel of sums was asked to prepare a constant, of which it makes nothing.
static N_PREPARED: AtomicUsize = AtomicUsize::new(0);

const PREPARE: Prepare = Prepare {
    inputs: &[1],
    types: &[],
    takes_attributes: false,
    make: |_| {
        N_PREPARED.fetch_add(1, Ordering::Relaxed);
        Ok(None)
    },
};

/// A model of which sums, products and rectifiers are for the device, and an exponential is not.
const MODEL: &str = r#"
func.func @main(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>, %n: tensor<2xi64>)
    -> (tensor<?x3xf32>, tensor<2xi64>) attributes {
    model.input_names = ["x", "y", "n"], model.output_names = ["z", "m"],
    model.input_dims = [["N", 3], ["N", 3], [2]]} {
  %a = "graph.add"(%x, %y) : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  %b = "graph.exp"(%a) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %c = "graph.mul"(%a, %b) : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  %k = "onnx.Constant"() {value = dense<0.5> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %d = "graph.add"(%c, %k) : (tensor<?x3xf32>, tensor<2x3xf32>) -> tensor<?x3xf32>
  %z = "graph.relu"(%d) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %m = "graph.add"(%n, %n) : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  tfrt.return %z, %m : tensor<?x3xf32>, tensor<2xi64>
}"#;

#[test]
fn a_model_runs_half_on_the_device() {
    let mut kernels = KERNELS.to_vec();
    kernels[0].prepare = Some(PREPARE);
    let runtime = Runtime::builder().op_kernels(&kernels).build();
    let (_, fake) = add(&runtime, "FAKE:0", 1 << 20);
    let input = Input::Text(Source::new("half.mlir", MODEL));
    let call = |options: &OpenOptions| {
        let model = runtime.load_model_with(&input, options).unwrap();
        let f32s = |list: [f32; 6]| tfrt::Tensor::from_vec(&[2, 3], list.to_vec()).unwrap();
        let x = f32s([0.5, -1.0, 2.0, -0.25, 1.5, -3.0]);
        let y = f32s([0.25, 0.5, -1.0, 0.0, 0.125, 1.0]);
        let n = tfrt::Tensor::from_vec(&[2], vec![3_i64, -4]).unwrap();
        let inputs = [("x", x), ("y", y), ("n", n)];
        let outputs = model.call(&runtime.context(), inputs).wait().unwrap();
        let z = outputs.tensor("z").unwrap().to_vec::<f32>().unwrap();
        (z, outputs.tensor("m").unwrap().to_vec::<i64>().unwrap())
    };
    let on_host = call(&OpenOptions::new());
    assert_eq!(on_host.1, [6, -8]);
    let before = fake.n_done();
    for optimize in [true, false] {
        let options = OpenOptions::new().device("FAKE:0").optimize(optimize);
        assert_eq!(call(&options), on_host);
    }
    // Of each call, x, y, the exponential and a constant go there, one sum and the end come back, and four kernels run.
    assert_eq!(fake.n_done() - before, 2 * (4 + 2 + 4));
    assert_eq!(N_PREPARED.load(Ordering::Relaxed), 2);
    runtime.quiesce().unwrap();
    assert_eq!(fake.held_bytes(), 0);
    let there_is_none = OpenOptions::new().device("FAKE:1");
    let error = runtime.load_model_with(&input, &there_is_none).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no device 'FAKE:1': the runtime has CPU:0, FAKE:0"
    );
}

#[test]
fn operations_that_a_format_adds_run_on_the_device_if_it_has_kernels_for_them() {
    use tfrt::ops::{Infer, OpDef, intern};
    // A row that only the device runs: there is no kernel of it on the host.
    let name = intern("plugin.positive");
    let formats = Formats::builtin();
    let row = OpDef::new(name, "What is positive.").infer(Infer::SameAsFirst);
    let _added = formats.rows().add(&[row]).unwrap();
    let relu = KERNELS.iter().find(|kernel| kernel.op == "relu").unwrap();
    let kernel = OpKernel { op: name, ..*relu };
    let builder = Runtime::builder().op_kernels(&[kernel]).formats(formats);
    let runtime = builder.build();
    let (_, fake) = add(&runtime, "FAKE:0", 1 << 20);
    let text = MODEL.replace("graph.relu", name);
    let input = Input::Text(Source::new("plugin.mlir", text));
    let options = OpenOptions::new().device("FAKE:0");
    let model = runtime.load_model_with(&input, &options).unwrap();
    let f32s = |x: f32| tfrt::Tensor::from_vec(&[1, 3], vec![x, -x, 0.0]).unwrap();
    let n = tfrt::Tensor::from_vec(&[2], vec![0_i64, 0]).unwrap();
    let inputs = [("x", f32s(1.0)), ("y", f32s(-0.5)), ("n", n)];
    let outputs = model.call(&runtime.context(), inputs).wait().unwrap();
    let z = outputs.tensor("z").unwrap().to_vec::<f32>().unwrap();
    let row = [0.5_f32, -0.5, 0.0].map(|x| x * x.exp() + 0.5);
    assert_eq!(z, [row, row].concat());
    // One copy there, one kernel, one copy back.
    assert_eq!(fake.n_done(), 3);
    let error = runtime.load_model(&input).unwrap_err().to_string();
    assert!(
        error.contains("unknown kernel name 'cpu.plugin.positive'"),
        "{error}"
    );
}
