//! Tests of kernels of tensors: the file that programs of the corpus read, and tensors that many threads use without
//! a chain.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tfrt_async::queue::{ConcurrentWorkQueue, MultiThreadedWorkQueue, SingleThreadedWorkQueue};
use tfrt_bef::BefFile;
use tfrt_compiler::{CompileOptions, compile};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{AnyAsyncValue, ErrorCode, ExecutionContext, HostContext, Program, RequestContext};
use tfrt_tensor::{CooHostTensor, DenseHostTensor, Tensor, btf};

fn host(queue: Arc<dyn ConcurrentWorkQueue>) -> HostContext {
    let mut registry = KernelRegistry::new();
    tfrt_kernels::register_all(&mut registry);
    HostContext::builder(registry).queue(queue).build()
}

/// Runs `@main` of a text.
fn run(host: &HostContext, text: &str) -> Vec<AnyAsyncValue> {
    let module = tfrt_ir::parse(&tfrt_ir::Source::new("main.mlir", text)).unwrap();
    tfrt_ir::verify(&module).unwrap();
    let bytes = compile(&module, &CompileOptions::default()).unwrap();
    let program = Program::load(BefFile::open(bytes).unwrap(), host).unwrap();
    let main = program.function("main").unwrap();
    let request = RequestContext::new(host);
    let results = main.execute(&ExecutionContext::new(&request), Vec::new());
    host.queue().await_all(&results).unwrap();
    host.queue().quiesce().unwrap();
    results.into_iter().map(AnyAsyncValue::settled).collect()
}

fn sample_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/execute/tensor/sample.btf")
}

#[test]
fn the_sample_file_is_what_is_written() {
    let host = host(Arc::new(SingleThreadedWorkQueue::new()));
    let allocator = host.allocator();
    let eye = DenseHostTensor::from_slice(allocator, &[2, 3], &[0.0_f32, 1.5, 0.0, 0.0, 0.0, -2.0]);
    let tensors: [Tensor; 5] = [
        DenseHostTensor::from_slice(allocator, &[2, 2], &[1, 2, 3, 4])
            .unwrap()
            .into(),
        DenseHostTensor::from_slice(allocator, &[3], &[1_u8, 128, 255])
            .unwrap()
            .into(),
        DenseHostTensor::scalar(allocator, -7_i64).unwrap().into(),
        DenseHostTensor::from_slice::<i8>(allocator, &[0, 4], &[])
            .unwrap()
            .into(),
        CooHostTensor::from_dense(allocator, &eye.unwrap())
            .unwrap()
            .into(),
    ];
    let mut bytes = Vec::new();
    btf::write(&mut bytes, &tensors).unwrap();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(sample_path(), &bytes).unwrap();
    }
    assert_eq!(std::fs::read(sample_path()).unwrap(), bytes);
}

/// Tests two kernels that fill a tensor without a chain: at any time one of them holds it.
#[test]
fn unordered_writes_fail_or_are_whole() {
    const N_RUNS: usize = 50;
    let host = host(Arc::new(MultiThreadedWorkQueue::new(3, 1).unwrap()));
    let text = "func.func @main() -> (!t.tensor, !tfrt.chain, !tfrt.chain) {
  %c = tfrt.new.chain
  %t = tfrt_dht.create_uninitialized_tensor.i32.1 [100000 : i64]
  %one = \"tfrt_test.async_constant.i32\"() {value = 1 : i32} : () -> i32
  %two = \"tfrt_test.async_constant.i32\"() {value = 2 : i32} : () -> i32
  %a = tfrt.merge.chains %one : i32
  %b = tfrt.merge.chains %two : i32
  %d = tfrt_dht.fill_tensor_with_constant.i32 %t, %a 1 : i32
  %e = tfrt_dht.fill_tensor_with_constant.i32 %t, %b 2 : i32
  tfrt.return %t, %d, %e : !t.tensor, !tfrt.chain, !tfrt.chain
}";
    for _ in 0..N_RUNS {
        let results = run(&host, text);
        let failed = results[1..].iter().filter_map(AnyAsyncValue::error);
        let failed: Vec<ErrorCode> = failed.map(|error| error.code()).collect();
        assert!(failed.len() < 2, "one had it");
        assert!(
            failed
                .iter()
                .all(|code| *code == ErrorCode::FailedPrecondition)
        );
        let tensor = results[0].get::<Tensor>().unwrap().as_dense().unwrap();
        let reading = tensor.read().unwrap();
        let elements = reading.elements::<i32>().unwrap();
        assert!(elements.iter().all(|element| *element == elements[0]));
    }
}

#[test]
fn a_shape_that_fits_no_memory_is_refused_under_a_limit() {
    let mut registry = KernelRegistry::new();
    tfrt_kernels::register_all(&mut registry);
    let limits = tfrt_host::Limits {
        max_memory: Some(1 << 16),
        ..tfrt_host::Limits::default()
    };
    let host = HostContext::builder(registry)
        .queue(Arc::new(SingleThreadedWorkQueue::new()))
        .limits(limits)
        .build();
    let create = |n: usize| {
        let text = format!(
            "func.func @main() -> !t.tensor {{
  %t = tfrt_dht.create_uninitialized_tensor.f32.1 [{n} : i64]
  tfrt.return %t : !t.tensor
}}"
        );
        run(&host, &text).remove(0)
    };
    assert!(create(1 << 10).error().is_none());
    let refused = create(1 << 20);
    let error = refused.error().expect("it is too large");
    assert_eq!(error.code(), ErrorCode::ResourceExhausted);
    assert_eq!(error.message(), "Cannot allocate tensor of f32 [1048576]");
}
