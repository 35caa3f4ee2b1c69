//! Properties of encoded values: bytes that are none are refused, and there is one way to write a value.

use std::cell::OnceCell;
use std::sync::Arc;

use tfrt::Runtime;
use tfrt::host::codec::DecodeContext;
use tfrt::host::kernel::{BF16, Complex, F16};
use tfrt::host::memory::{HostBuffer, LimitedAllocator};
use tfrt::host::{AnyAsyncValue, Chain, HostAllocator, HostContext};
use tfrt::tensor::{
    CooHostTensor, DenseHostTensor, FixedRankShape, Map, Maps, NoValue, Optional,
    PartialTensorShape, ScalarHostTensor, Sequence, StringHostTensor, Tensor, TensorShape,
};
use tfrt_async::SystemAllocator;
use tfrt_async::queue::SingleThreadedWorkQueue;
use tfrt_bef::BefFile;
use tfrt_compiler::CompileOptions;

/// The most memory that decoding may take of the host's allocator.
pub const MAX_BYTES: usize = 16 << 20;

/// The types whose values are laid out anew for the processor that decodes them: the bytes of another come back
/// otherwise.
const LAID_OUT: [&str; 1] = ["!graph.prepared"];

thread_local! {
    static RUNTIME: OnceCell<Runtime> = const { OnceCell::new() };
}

/// Calls `work` with a host of this thread, whose allocator has [`MAX_BYTES`].
pub fn with_host<R>(work: impl FnOnce(&HostContext) -> R) -> R {
    RUNTIME.with(|runtime| work(runtime.get_or_init(runtime_of_limits).host()))
}

fn runtime_of_limits() -> Runtime {
    let system = Arc::new(SystemAllocator::new());
    let allocator: Arc<dyn HostAllocator> = Arc::new(LimitedAllocator::new(system, MAX_BYTES));
    Runtime::builder()
        .queue(Arc::new(SingleThreadedWorkQueue::new()))
        .allocator(allocator)
        .build()
}

/// Decodes bytes as a value of whatever type they name.
///
/// # Panics
///
/// If a value comes out that is not written as it was, or not written and read again to the same bytes.
pub fn decode(bytes: &[u8]) {
    with_host(|host| {
        let (codecs, context) = (host.codecs(), DecodeContext::new(host));
        let Some(buffer) = HostBuffer::copy_of(host.allocator(), bytes) else {
            return;
        };
        let Ok(value) = codecs.decode_buffer(&buffer, &context) else {
            return;
        };
        let Some(ours) = written(host, &value) else {
            return;
        };
        let name = value.type_name().unwrap_or_default();
        if !LAID_OUT.contains(&name) {
            assert!(ours == bytes, "a {name} is written otherwise");
        }
        let Some(buffer) = HostBuffer::copy_of(host.allocator(), &ours) else {
            return;
        };
        let again = match codecs.decode_buffer(&buffer, &context) {
            Ok(again) => again,
            Err(error) => panic!("a {name} that was written is not read: {error}"),
        };
        assert_eq!(again.type_name(), value.type_name());
        if let Some(again) = written(host, &again) {
            assert!(again == ours, "a {name} does not come back");
        }
    });
}

/// Returns a value as bytes; nothing if there is no memory.
///
/// # Panics
///
/// If it can't be written.
pub fn written(host: &HostContext, value: &AnyAsyncValue) -> Option<Vec<u8>> {
    let encoded = match host.codecs().encode(value, host.allocator()) {
        Ok(encoded) => encoded,
        Err(error) if error.code() == tfrt_async::ErrorCode::ResourceExhausted => return None,
        Err(error) => panic!("{error}"),
    };
    let reading = encoded.read().expect("nobody writes");
    let mut bytes = Vec::with_capacity(reading.len_bytes());
    reading.write_to(&mut bytes).expect("a list takes all");
    Some(bytes)
}

/// Returns the bytes of a value of each type that has a codec, in each of its forms.
///
/// # Panics
///
/// If one can't be made.
pub fn examples() -> Vec<Vec<u8>> {
    with_host(|host| {
        let values = plain(host).into_iter().chain(tensors(host));
        let values = values.chain(packed());
        let bytes = values.map(|value| written(host, &value).expect("they are small"));
        bytes.collect()
    })
}

fn plain(host: &HostContext) -> Vec<AnyAsyncValue> {
    let complex = |real| Complex {
        real,
        imaginary: 2.0,
    };
    let (real, imaginary) = (1.5_f64, -0.5);
    let buffer = HostBuffer::copy_of(host.allocator(), &[7; 100]).expect("there is memory");
    vec![
        AnyAsyncValue::new(true),
        AnyAsyncValue::new(1_u8),
        AnyAsyncValue::new(2_u16),
        AnyAsyncValue::new(3_u32),
        AnyAsyncValue::new(4_u64),
        AnyAsyncValue::new(-1_i8),
        AnyAsyncValue::new(-2_i16),
        AnyAsyncValue::new(-3_i32),
        AnyAsyncValue::new(-4_i64),
        AnyAsyncValue::new(0.5_f32),
        AnyAsyncValue::new(0.25_f64),
        AnyAsyncValue::new(F16(0x3c00)),
        AnyAsyncValue::new(BF16(0x3f80)),
        AnyAsyncValue::new(complex(1.0_f32)),
        AnyAsyncValue::new(Complex { real, imaginary }),
        AnyAsyncValue::new(Chain),
        AnyAsyncValue::new("a text".to_owned()),
        AnyAsyncValue::new(buffer),
    ]
}

fn tensors(host: &HostContext) -> Vec<AnyAsyncValue> {
    let allocator = host.allocator();
    let shape = |extents: &[usize]| TensorShape::new(extents).expect("it is small");
    let dense = |extents: &[usize], elements: &[f32]| {
        DenseHostTensor::from_slice(allocator, extents, elements).expect("there is memory")
    };
    let matrix = dense(&[2, 2], &[0.0, 1.5, f32::NAN, -0.0]);
    let coo = CooHostTensor::from_dense(allocator, &matrix).expect("there is memory");
    let list = vec![b"a".to_vec(), b"\xff\x00".to_vec()];
    let keys: Tensor = StringHostTensor::new(shape(&[2]), list)
        .expect("two")
        .into();
    let floats: Tensor = matrix.into();
    let sequence = Sequence::from(vec![floats.clone(), keys.clone()]);
    let values = dense(&[2], &[1.0, 2.0]).into();
    let fixed = "the rank is right";
    vec![
        AnyAsyncValue::new(floats.clone()),
        AnyAsyncValue::new(Tensor::from(dense(&[3, 0], &[]))),
        AnyAsyncValue::new(Tensor::from(ScalarHostTensor::new(shape(&[7]), 2.5_f64))),
        AnyAsyncValue::new(Tensor::from(coo)),
        AnyAsyncValue::new(keys.clone()),
        AnyAsyncValue::new(sequence.clone()),
        AnyAsyncValue::new(Optional::Nothing),
        AnyAsyncValue::new(Optional::Tensor(floats.clone())),
        AnyAsyncValue::new(Optional::Sequence(sequence)),
        AnyAsyncValue::new(NoValue),
        AnyAsyncValue::new(Map::new(keys.clone(), values).expect("they fit")),
        AnyAsyncValue::new(Maps::new(keys, floats).expect("they fit")),
        AnyAsyncValue::new(shape(&[1, 2, 1 << 40])),
        AnyAsyncValue::new(PartialTensorShape::UNRANKED),
        AnyAsyncValue::new(PartialTensorShape::from_i64(&[-1, 7]).expect("it is one")),
        AnyAsyncValue::new(FixedRankShape::<0>::new(&shape(&[])).expect(fixed)),
        AnyAsyncValue::new(FixedRankShape::<1>::new(&shape(&[5])).expect(fixed)),
        AnyAsyncValue::new(FixedRankShape::<2>::new(&shape(&[5, 6])).expect(fixed)),
        AnyAsyncValue::new(FixedRankShape::<3>::new(&shape(&[5, 0, 7])).expect(fixed)),
    ]
}

/// Returns packed weights: a small filter, one of channels that don't mix, one of many channels, a matrix, recurrent
/// layers.
fn packed() -> Vec<AnyAsyncValue> {
    const TEXT: &str = r#"
func.func @main() -> (!graph.prepared, !graph.prepared, !graph.prepared, !graph.prepared, !graph.prepared,
    !graph.prepared) {
  %none = "cpu.onnx.NoValue"() : () -> !t.none
  %w = "cpu.onnx.Constant"() {value = dense<0.5> : tensor<2x1x3x3xf32>} : () -> !t.tensor
  %v = "cpu.onnx.Constant"() {value = dense<0.5> : tensor<16x16x3x3xf32>} : () -> !t.tensor
  %b = "cpu.onnx.Constant"() {value = dense<0.5> : tensor<2xf32>} : () -> !t.tensor
  %f = "cpu.graph.prepare"(%none, %w, %b) {attributes = [], op = "fused.conv", opset = 27 : i64}
      : (!t.none, !t.tensor, !t.tensor) -> !graph.prepared
  %g = "cpu.graph.prepare"(%none, %w) {attributes = ["groups", 2 : i64], op = "fused.conv", opset = 27 : i64}
      : (!t.none, !t.tensor) -> !graph.prepared
  %h = "cpu.graph.prepare"(%v) {attributes = [], op = "fused.joined", opset = 27 : i64} : (!t.tensor) -> !graph.prepared
  %c = "cpu.onnx.Constant"() {value = dense<0.25> : tensor<3x2xf32>} : () -> !t.tensor
  %m = "cpu.graph.prepare"(%none, %c, %b) {attributes = [], op = "fused.matmul", opset = 27 : i64}
      : (!t.none, !t.tensor, !t.tensor) -> !graph.prepared
  %i = "cpu.onnx.Constant"() {value = dense<0.25> : tensor<2x6x3xf32>} : () -> !t.tensor
  %r = "cpu.onnx.Constant"() {value = dense<0.25> : tensor<2x6x2xf32>} : () -> !t.tensor
  %p = "cpu.graph.prepare"(%none, %i, %r)
      {attributes = ["direction", "bidirectional", "kind", "gru"], op = "rnn", opset = 27 : i64}
      : (!t.none, !t.tensor, !t.tensor) -> !graph.prepared
  %j = "cpu.onnx.Constant"() {value = dense<0.25> : tensor<1x8x3xf32>} : () -> !t.tensor
  %s = "cpu.onnx.Constant"() {value = dense<0.25> : tensor<1x8x2xf32>} : () -> !t.tensor
  %q = "cpu.onnx.Constant"() {value = dense<0.25> : tensor<1x16xf32>} : () -> !t.tensor
  %o = "cpu.onnx.Constant"() {value = dense<0.25> : tensor<1x6xf32>} : () -> !t.tensor
  %l = "cpu.graph.prepare"(%none, %j, %s, %q, %none, %none, %none, %o)
      {attributes = ["kind", "lstm"], op = "rnn", opset = 27 : i64}
      : (!t.none, !t.tensor, !t.tensor, !t.tensor, !t.none, !t.none, !t.none, !t.tensor) -> !graph.prepared
  tfrt.return %f, %g, %h, %m, %p, %l : !graph.prepared, !graph.prepared, !graph.prepared, !graph.prepared,
      !graph.prepared, !graph.prepared
}"#;
    RUNTIME.with(|runtime| {
        let runtime = runtime.get_or_init(runtime_of_limits);
        let source = tfrt_ir::Source::new("packed.mlir", TEXT);
        let module = tfrt_ir::parse(&source).expect("it is a program");
        let bytes = tfrt_compiler::compile(&module, &CompileOptions::default());
        let file = BefFile::open(bytes.expect("it compiles")).expect("it is a file");
        let program = tfrt::Program::from_file(file, runtime).expect("it loads");
        let call = program
            .function("main")
            .expect("it is there")
            .call(&runtime.context(), ());
        call.wait().expect("the kernels know these").into_inner()
    })
}
