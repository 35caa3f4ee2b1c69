//! Arithmetic of operations: values, types, shapes, reused memory, formats, and refused calls.

use std::sync::Arc;

use tfrt_async::SystemAllocator;
use tfrt_corert::{CoreRuntime, IntoAttr, OpAttrs, TensorHandle};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::memory::LimitedAllocator;
use tfrt_host::{DType, Error, HostAllocator, HostContext, HostContextBuilder, Output};
use tfrt_tensor::{Element, ScalarHostTensor, Tensor, TensorShape};

#[path = "arithmetic/anything.rs"]
mod anything;
#[path = "arithmetic/axes.rs"]
mod axes;
#[path = "arithmetic/elements.rs"]
mod elements;
#[path = "arithmetic/product.rs"]
mod product;
#[path = "arithmetic/testing.rs"]
mod testing;
#[path = "arithmetic/training.rs"]
mod training;

/// Returns the runtime of a host, with all kernels.
fn runtime_of(host: &HostContext) -> CoreRuntime {
    let runtime = CoreRuntime::new(host);
    runtime.set_kernels(tfrt_kernels::rows::find);
    runtime
}

/// A runtime, and what is printed there.
struct TestBed {
    runtime: CoreRuntime,
    context: tfrt_corert::Context,
    printed: tfrt_host::CapturedOutput,
}

impl TestBed {
    fn new() -> TestBed {
        TestBed::on(HostContext::builder(KernelRegistry::new()))
    }

    /// Returns a bed whose tensors take no more than `n_bytes` bytes.
    fn within(n_bytes: usize) -> TestBed {
        let system: Arc<dyn HostAllocator> = Arc::new(SystemAllocator::new());
        let limited = Arc::new(LimitedAllocator::new(system, n_bytes));
        TestBed::on(HostContext::builder(KernelRegistry::new()).allocator(limited))
    }

    fn on(host: HostContextBuilder) -> TestBed {
        let (output, printed) = Output::captured();
        let host = host.output(output).build();
        let runtime = runtime_of(&host);
        let context = runtime.context();
        TestBed {
            runtime,
            context,
            printed,
        }
    }

    /// Returns the results of an operation, settled; the error of the call, or that of the last result that has
    /// failed.
    fn all(
        &self,
        name: &str,
        inputs: impl tfrt_corert::IntoInputs,
        attrs: &OpAttrs,
    ) -> Result<Vec<TensorHandle>, Error> {
        let op = self.runtime.op(name, &self.runtime.cpu())?;
        let results = op.call(&self.context, inputs, attrs)?;
        for result in &results {
            self.wait(result);
            if let Some(error) = result.error() {
                return Err(error.clone());
            }
        }
        Ok(results.into_iter().collect())
    }

    fn one(
        &self,
        name: &str,
        inputs: impl tfrt_corert::IntoInputs,
        attrs: &OpAttrs,
    ) -> Result<TensorHandle, Error> {
        Ok(self.all(name, inputs, attrs)?.remove(0))
    }

    /// Returns the message of the error that a call gives.
    #[track_caller]
    fn refusal(&self, name: &str, inputs: impl tfrt_corert::IntoInputs, attrs: &OpAttrs) -> String {
        match self.all(name, inputs, attrs) {
            Ok(results) => panic!("{name} gives {results:?}"),
            Err(error) => error.message().to_owned(),
        }
    }

    fn wait(&self, handle: &TensorHandle) {
        let value = handle.to_async().into_any();
        self.runtime.host().queue().await_all(&[value]).unwrap();
    }

    fn dense<T: Element>(&self, extents: &[usize], elements: &[T]) -> TensorHandle {
        self.runtime.dense(extents, elements).unwrap()
    }

    fn scalar<T: Element>(&self, extents: &[usize], value: T) -> TensorHandle {
        let shape = TensorShape::new(extents).unwrap();
        self.runtime.handle(ScalarHostTensor::new(shape, value))
    }

    /// Returns a tensor of a type, of these numbers.
    fn numbers(&self, dtype: DType, extents: &[usize], elements: &[f64]) -> TensorHandle {
        let wide = self.dense(extents, elements);
        self.one("tf.Cast", [&wide], &attrs([("DstT", dtype)]))
            .unwrap()
    }

    /// Returns the elements of a tensor of real numbers.
    fn read(&self, handle: &TensorHandle) -> Vec<f64> {
        let wide = self
            .one("tf.Cast", [handle], &attrs([("DstT", DType::F64)]))
            .unwrap();
        elements::<f64>(&wide)
    }
}

fn elements<T: Element>(handle: &TensorHandle) -> Vec<T> {
    let tensor = handle.tensor().unwrap().unwrap().as_dense().unwrap();
    let reading = tensor.read().unwrap();
    reading.elements::<T>().unwrap().to_vec()
}

fn extents(handle: &TensorHandle) -> Vec<usize> {
    handle.shape().unwrap().extents().collect()
}

fn address(handle: &TensorHandle) -> usize {
    match handle.tensor().unwrap().unwrap() {
        Tensor::Dense(dense) => dense.buffer().address(),
        other => panic!("{other:?}"),
    }
}

fn attrs<V: IntoAttr, const N: usize>(entries: [(&'static str, V); N]) -> OpAttrs {
    let mut attrs = OpAttrs::new();
    for (name, value) in entries {
        attrs.set(name, value).unwrap();
    }
    attrs
}

fn none() -> OpAttrs {
    OpAttrs::new()
}

/// Numbers that look random, the same each time: below `n`.
struct Drawn(u64);

impl Drawn {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }

    fn list(&mut self, n: usize, from: f64, n_values: usize) -> Vec<f64> {
        (0..n).map(|_| from + self.below(n_values) as f64).collect()
    }
}

const REALS: [DType; 12] = [
    DType::Ui8,
    DType::Ui16,
    DType::Ui32,
    DType::Ui64,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::F16,
    DType::Bf16,
    DType::F32,
    DType::F64,
];

/// Returns the position of an element of a result in an operand that was broadcast to it.
fn source(mut index: usize, result: &[usize], operand: &[usize]) -> usize {
    let mut coordinates = vec![0; result.len()];
    for (coordinate, extent) in coordinates.iter_mut().zip(result).rev() {
        *coordinate = index % extent;
        index /= extent;
    }
    let own = &coordinates[result.len() - operand.len()..];
    own.iter()
        .zip(operand)
        .fold(0, |position, (coordinate, extent)| {
            position * extent + if *extent == 1 { 0 } else { *coordinate }
        })
}
