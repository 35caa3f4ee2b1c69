//! The operations on the processor: values, types, shapes, errors.

use std::sync::mpsc;
use std::time::Duration;

use tfrt_corert::{Context, CoreRuntime, Handles, OpAttrs, TensorHandle};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{Error, HostContext, HostContextBuilder};
use tfrt_tensor::{Element, ScalarHostTensor, StringHostTensor, Tensor, TensorShape};

#[path = "ops/channels.rs"]
mod channels;
#[path = "ops/layout_copy.rs"]
mod layout_copy;
#[path = "ops/names.rs"]
mod names;
#[path = "ops/pool.rs"]
mod pool;
#[path = "ops/range.rs"]
mod range;
#[path = "ops/reduction.rs"]
mod reduction;
#[path = "ops/refused.rs"]
mod refused;
#[path = "ops/shapes.rs"]
mod shapes;
#[path = "ops/stated.rs"]
mod stated;
#[path = "ops/windows.rs"]
mod windows;

/// Returns the runtime of a host, with all kernels.
fn runtime_of(host: &HostContext) -> CoreRuntime {
    let runtime = CoreRuntime::new(host);
    runtime.set_kernels(tfrt_kernels::rows::find);
    runtime
}

/// A runtime with a context that calls operations.
struct Caller {
    runtime: CoreRuntime,
    context: Context,
}

impl Caller {
    fn new() -> Caller {
        Caller::on(HostContext::builder(KernelRegistry::new()))
    }

    fn on(host: HostContextBuilder) -> Caller {
        let host = host.build();
        let runtime = runtime_of(&host);
        let context = runtime.context();
        Caller { runtime, context }
    }

    fn dense<T: Element>(&self, extents: &[usize], elements: &[T]) -> TensorHandle {
        self.runtime.dense(extents, elements).unwrap()
    }

    /// Returns a tensor of numbers that are all different, and exact.
    fn counting(&self, extents: &[usize]) -> TensorHandle {
        let n = extents.iter().product::<usize>();
        let elements: Vec<f32> = (0..n).map(|index| index as f32).collect();
        self.dense(extents, &elements)
    }

    /// Returns a tensor whose elements are all the same, however many.
    fn all<T: Element>(&self, extents: &[usize], value: T) -> TensorHandle {
        let shape = TensorShape::new(extents).unwrap();
        self.runtime.handle(ScalarHostTensor::new(shape, value))
    }

    fn strings(&self, extents: &[usize], strings: &[&str]) -> TensorHandle {
        let strings = strings.iter().map(|text| text.as_bytes().to_vec());
        let shape = TensorShape::new(extents).unwrap();
        let tensor = StringHostTensor::new(shape, strings.collect()).unwrap();
        self.runtime.handle(tensor)
    }

    fn try_all(
        &self,
        op: &str,
        inputs: &[&TensorHandle],
        attrs: &OpAttrs,
    ) -> Result<Handles, Error> {
        let op = self.runtime.op(op, &self.runtime.cpu()).unwrap();
        let results = op.call(&self.context, inputs, attrs)?;
        for result in &results {
            settled(result);
            if let Some(error) = result.error() {
                return Err(error.clone());
            }
        }
        Ok(results)
    }

    /// Returns the only result.
    fn call(&self, op: &str, inputs: &[&TensorHandle], attrs: &OpAttrs) -> TensorHandle {
        let mut results = self.try_all(op, inputs, attrs).unwrap();
        assert_eq!(results.len(), 1);
        results.remove(0)
    }

    /// Returns the message of a call that fails.
    fn error(&self, op: &str, inputs: &[&TensorHandle], attrs: &OpAttrs) -> String {
        let error = self.try_all(op, inputs, attrs).unwrap_err();
        error.message().to_owned()
    }
}

/// Waits until a handle is settled.
fn settled(handle: &TensorHandle) {
    let (sender, receiver) = mpsc::channel();
    handle.to_async().and_then(move || sender.send(()).unwrap());
    let wait = receiver.recv_timeout(Duration::from_secs(60));
    wait.expect("it settles");
}

fn none() -> OpAttrs {
    OpAttrs::new()
}

/// Attributes: `attrs!["axis" => 1_i64]`
macro_rules! attrs {
    ($($name:literal => $value:expr),*) => {{
        let mut attrs = tfrt_corert::OpAttrs::new();
        $(attrs.set($name, $value).unwrap();)*
        attrs
    }};
}
pub(crate) use attrs;

fn tensor(handle: &TensorHandle) -> &Tensor {
    handle.tensor().unwrap().unwrap()
}

/// `DenseHostTensor dtype = i32, shape = [2], values = [1, 2]`
fn text(handle: &TensorHandle) -> String {
    tensor(handle).to_text().unwrap()
}

fn shape(handle: &TensorHandle) -> Vec<usize> {
    handle.shape().unwrap().to_dims().to_vec()
}

fn elements<T: Element>(handle: &TensorHandle) -> Vec<T> {
    let dense = tensor(handle).as_dense().unwrap();
    let reading = dense.read().unwrap();
    reading.elements::<T>().unwrap().to_vec()
}

fn address(handle: &TensorHandle) -> usize {
    tensor(handle).as_dense().unwrap().buffer().address()
}
