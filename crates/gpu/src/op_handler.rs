//! [`GpuOpHandler`]: the operations of a GPU for the core runtime, by the names of TensorFlow and of tests.
//!
//! Rows with kernels ([`KERNELS`]) are run there by [`DeviceOpHandler`]. What else the original's handler has is here:
//! values that are made on the host and brought to the GPU, operations whose operands a compiler has made attributes
//! (`_tf.Mean`), and those of tests.

use std::sync::Arc;

use smallvec::smallvec;
use tfrt_corert::{
    AttrValue, CoreRuntime, DeviceOpHandler, Handles, Inputs, Op, OpAttrs, OpCall, OpHandler,
    TensorHandle,
};
use tfrt_host::{
    AnyAsyncValue, AsyncValue, Chain, DType, DeviceId, DeviceRef, Error, ExecutionContext,
    HostContext, Promise, when_all,
};
use tfrt_tensor::op::OpKernel;
use tfrt_tensor::{DeviceTensor, Tensor, TensorMetadata, TensorShape, allocate_on, transfer};

use crate::device::memory_of;
use crate::kernels::{self, Cut};
use crate::rows::KERNELS;

mod text;

/// A handler of operations on a GPU. What it does not know the next handler is asked for.
pub struct GpuOpHandler {
    device: DeviceRef,
    rows: Arc<DeviceOpHandler>,
    host: Arc<dyn OpHandler>,
}

impl GpuOpHandler {
    /// Makes the handler of a device that was [added](crate::add) to a host.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a device of another kind, or of another host.
    pub fn new(
        host: &HostContext,
        device: &DeviceRef,
        next: Arc<dyn OpHandler>,
    ) -> Result<GpuOpHandler, Error> {
        host.devices().contract(device)?;
        if device.kind() != crate::KIND {
            let name = device.name();
            return Err(Error::invalid_argument(format!(
                "expected a GPU, found the device {name}"
            )));
        }
        let kernels: Arc<[OpKernel]> = KERNELS.into();
        Ok(GpuOpHandler {
            device: device.clone(),
            rows: Arc::new(DeviceOpHandler::new(device.clone(), kernels, Some(next))),
            host: CoreRuntime::new(host).cpu(),
        })
    }

    /// Returns an operation of this handler's own.
    fn own(&self, name: &'static str, kind: Kind) -> Arc<dyn Op> {
        Arc::new(GpuOp {
            name,
            kind,
            device: self.device.clone(),
        })
    }
}

impl std::fmt::Debug for GpuOpHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("GpuOpHandler")
            .field(&self.device.name())
            .finish()
    }
}

/// Operations whose operands a compiler has made attributes, the operations themselves, and these attributes.
const FOLDED: [(&str, &str, &str); 3] = [
    ("_tf.Mean", "tf.Mean", "reduction_indices"),
    ("_tf.Pad", "tf.Pad", "paddings"),
    ("_tf.Transpose", "tf.Transpose", "perm"),
];

/// Operations without operands, whose results the host makes.
const MADE: [&str; 2] = ["tf.Const", "tfrt_test.create_dense_tensor"];

impl OpHandler for GpuOpHandler {
    fn name(&self) -> &str {
        "gpu"
    }

    fn device(&self) -> DeviceId {
        self.device.id()
    }

    fn find(&self, op: &str) -> Result<Arc<dyn Op>, Error> {
        if let Some((name, whole, attribute)) = FOLDED.iter().find(|(name, ..)| *name == op) {
            let inner = self.rows.find(whole)?;
            return Ok(self.own(name, Kind::Folded { inner, attribute }));
        }
        if let Some(name) = MADE.iter().find(|name| **name == op) {
            let inner = self.host.find(name)?;
            return Ok(self.own(name, Kind::Made(inner)));
        }
        Ok(match op {
            "tf.Cast" => self.own("tf.Cast", Kind::Cast(self.rows.find("tf.Cast")?)),
            "tf._FusedBatchNormEx" => {
                let parts = ["tf.FusedBatchNormV3", "tf.AddV2", "tf.Relu"];
                let [norm, add, relu] = parts.map(|name| self.rows.find(name));
                let kind = Kind::Norm {
                    norm: norm?,
                    add: add?,
                    relu: relu?,
                };
                self.own("tf._FusedBatchNormEx", kind)
            }
            "tfrt_test.gpu_tensor_to_host_tensor" => {
                self.own("tfrt_test.gpu_tensor_to_host_tensor", Kind::ToHost)
            }
            "tfrt_test.dht_to_gpu_tensor" => {
                self.own("tfrt_test.dht_to_gpu_tensor", Kind::ToDevice)
            }
            "tfrt_test.print" => self.own("tfrt_test.print", Kind::Print),
            "tfrt_test.synchronize" => self.own("tfrt_test.synchronize", Kind::Synchronize),
            "tfrt_test.test_optional_arg" => self.own("tfrt_test.test_optional_arg", Kind::Second),
            "tfrt_test.test_variadic_arg" => self.own("tfrt_test.test_variadic_arg", Kind::Second),
            "tfrt_test.return_multiple_results" => {
                self.own("tfrt_test.return_multiple_results", Kind::Two)
            }
            "tfrt_test.return_multiple_results_with_error" => {
                self.own("tfrt_test.return_multiple_results_with_error", Kind::Failed)
            }
            _ => return self.rows.find(op),
        })
    }
}

/// An operation that is no row with a kernel.
struct GpuOp {
    name: &'static str,
    kind: Kind,
    device: DeviceRef,
}

/// The work of a [`GpuOp`].
enum Kind {
    /// An operation of the host, whose results are brought to the GPU.
    Made(Arc<dyn Op>),
    /// An operation one of whose operands is an attribute.
    Folded {
        inner: Arc<dyn Op>,
        attribute: &'static str,
    },
    /// A change of type, which may cut off digits that the other type lacks.
    Cast(Arc<dyn Op>),
    /// A normalisation, a summand, an activation.
    Norm {
        norm: Arc<dyn Op>,
        add: Arc<dyn Op>,
        relu: Arc<dyn Op>,
    },
    /// The tensor on the host.
    ToHost,
    /// The tensor on the GPU.
    ToDevice,
    /// Prints with all digits, if the tensor is on the host.
    Print,
    /// The tensor, when all that was queued is done.
    Synchronize,
    /// The second input, or the only one.
    Second,
    /// Two numbers without value.
    Two,
    /// An error.
    Failed,
}

impl Op for GpuOp {
    fn name(&self) -> &str {
        self.name
    }

    fn is_pure(&self) -> bool {
        !matches!(self.kind, Kind::Print)
    }

    fn n_results(&self) -> Option<usize> {
        Some(match &self.kind {
            Kind::Print => 0,
            Kind::Two | Kind::Failed => 2,
            Kind::Norm { .. } => 6,
            Kind::Made(inner) | Kind::Folded { inner, .. } => return inner.n_results(),
            _ => 1,
        })
    }

    fn call(&self, call: OpCall<'_>) -> Result<Handles, Error> {
        let wanted = self.n_results();
        if let (Some(expected), Some(found)) = (call.n_results, wanted)
            && expected != found
        {
            let name = self.name;
            return Err(Error::invalid_argument(format!(
                "{name} has {found} results, expected are {expected}"
            )));
        }
        match &self.kind {
            Kind::Made(inner) => self.made(&**inner, call),
            Kind::Folded { inner, attribute } => self.folded(&**inner, attribute, call),
            Kind::Cast(inner) => self.cast(&**inner, call),
            Kind::Norm { norm, add, relu } => self.norm([&**norm, &**add, &**relu], call),
            Kind::ToHost => {
                let host = CoreRuntime::new(call.execution().host()).device();
                let x = self.only(&call)?.clone();
                Ok(smallvec![self.moved(&x, &host, call.execution())])
            }
            Kind::ToDevice => {
                let x = self.only(&call)?.clone();
                Ok(smallvec![self.moved(&x, &self.device, call.execution())])
            }
            Kind::Print => self.print(call),
            Kind::Synchronize => {
                let x = self.only(&call)?.clone();
                Ok(smallvec![self.mapped(&x, call.execution(), finished)])
            }
            Kind::Second => {
                self.expect_inputs(&call, 1, usize::MAX)?;
                let at = 1.min(call.inputs.len() - 1);
                Ok(smallvec![call.inputs.get(at).clone()])
            }
            Kind::Two => {
                self.expect_inputs(&call, 0, 0)?;
                let runtime = CoreRuntime::new(call.execution().host());
                let make = || -> Result<TensorHandle, Error> {
                    let metadata = TensorMetadata::new(DType::F32, TensorShape::SCALAR);
                    let ready = AsyncValue::available(Chain);
                    let made = allocate_on(&self.device, metadata, ready, call.execution())?;
                    Ok(runtime.handle(Tensor::Device(made)))
                };
                Ok(smallvec![make()?, make()?])
            }
            Kind::Failed => Err(Error::unknown(
                "error from ReturnMultipleResultsWithError op",
            )),
        }
    }
}

impl GpuOp {
    fn expect_inputs(&self, call: &OpCall<'_>, least: usize, most: usize) -> Result<(), Error> {
        let (name, found) = (self.name, call.inputs.len());
        if (least..=most).contains(&found) {
            return Ok(());
        }
        let expected = match (least, most) {
            (_, usize::MAX) => format!("{least} or more"),
            (least, most) if least == most => least.to_string(),
            (least, most) => format!("{least} to {most}"),
        };
        Err(Error::invalid_argument(format!(
            "{name}: expected {expected} inputs, found {found}"
        )))
    }

    /// Returns the only input.
    fn only<'c>(&self, call: &'c OpCall<'_>) -> Result<&'c TensorHandle, Error> {
        self.expect_inputs(call, 1, 1)?;
        Ok(call.inputs.get(0))
    }

    /// Returns a handle of what a function makes of a tensor, which is on this device.
    fn mapped(
        &self,
        x: &TensorHandle,
        execution: &ExecutionContext,
        make: impl FnOnce(&Tensor) -> Result<AsyncValue<Tensor>, Error> + Send + 'static,
    ) -> TensorHandle {
        handle_of(x, &self.device, execution, make)
    }

    /// Returns the handle of a tensor on a device.
    fn moved(
        &self,
        x: &TensorHandle,
        to: &DeviceRef,
        execution: &ExecutionContext,
    ) -> TensorHandle {
        let (device, own) = (to.clone(), execution.clone());
        handle_of(x, to, execution, move |tensor| {
            transfer(tensor, &device, &own)
        })
    }

    fn made(&self, inner: &dyn Op, call: OpCall<'_>) -> Result<Handles, Error> {
        let execution = call.execution();
        let made = inner.call(call)?;
        let there = made.iter().map(|x| self.moved(x, &self.device, execution));
        Ok(there.collect())
    }

    fn folded(&self, inner: &dyn Op, attribute: &str, call: OpCall<'_>) -> Result<Handles, Error> {
        let (name, execution) = (self.name, call.execution());
        let folded = call.attrs.dense(attribute)?;
        let folded = folded.ok_or_else(|| {
            Error::invalid_argument(format!("{name}: expected the attribute '{attribute}'"))
        })?;
        let runtime = CoreRuntime::new(execution.host());
        let mut inputs: Vec<TensorHandle> = call.inputs.iter().cloned().collect();
        inputs.push(runtime.handle(folded.clone()));
        let attrs = without(&call, &[attribute])?;
        let inputs = Inputs::owned(&mut inputs);
        inner.call(OpCall::by_kernel(
            &runtime,
            execution,
            inputs,
            attrs.as_ref(),
        ))
    }

    /// Changes the type of elements. With `Truncate` the digits that the other type lacks are cut off first.
    fn cast(&self, inner: &dyn Op, call: OpCall<'_>) -> Result<Handles, Error> {
        if call.attrs.bool("Truncate")? != Some(true) {
            return inner.call(call);
        }
        let execution = call.execution();
        let mut x = self.only(&call)?.clone();
        let to = call.attrs.dtype("DstT")?;
        let (device, own) = (self.device.clone(), execution.clone());
        if let Some(to) = to {
            let cut = move |tensor: &Tensor| {
                let from = tensor.metadata().dtype;
                let Some(cut) = Cut::between(from, to) else {
                    return transfer(tensor, &device, &own);
                };
                let there = transfer(tensor, &device, &own)?;
                Ok(there.try_map(move |tensor| cut_off(tensor, cut, &device, &own)))
            };
            x = self.mapped(&x, execution, cut);
        }
        let attrs = without(&call, &["Truncate"])?;
        let runtime = CoreRuntime::new(execution.host());
        let mut inputs = [x];
        let inputs = Inputs::owned(&mut inputs);
        inner.call(OpCall::by_kernel(
            &runtime,
            execution,
            inputs,
            attrs.as_ref(),
        ))
    }

    fn norm(&self, [norm, add, relu]: [&dyn Op; 3], call: OpCall<'_>) -> Result<Handles, Error> {
        self.expect_inputs(&call, 5, 6)?;
        let (name, execution) = (self.name, call.execution());
        let activation = call.attrs.text("activation_mode")?.unwrap_or("Identity");
        if !["Identity", "Relu"].contains(&activation) {
            return Err(Error::invalid_argument(format!(
                "{name}: expected Identity or Relu as activation_mode, found '{}'",
                activation.escape_debug()
            )));
        }
        let runtime = CoreRuntime::new(execution.host());
        let attrs = without(&call, &["activation_mode", "num_side_inputs"])?;
        let mut inputs: Vec<TensorHandle> = call.inputs.iter().cloned().collect();
        let side = (inputs.len() == 6).then(|| inputs.pop()).flatten();
        let inputs = Inputs::owned(&mut inputs);
        let mut results = norm.call(OpCall::by_kernel(
            &runtime,
            execution,
            inputs,
            attrs.as_ref(),
        ))?;
        let none = OpAttrs::new();
        let mut then = |op: &dyn Op, more: Option<TensorHandle>| -> Result<(), Error> {
            let mut inputs = vec![results[0].clone()];
            inputs.extend(more);
            let inputs = Inputs::owned(&mut inputs);
            let call = OpCall::by_kernel(&runtime, execution, inputs, none.as_ref());
            results[0] = op.call(call)?.swap_remove(0);
            Ok(())
        };
        if let Some(side) = side {
            then(add, Some(side))?;
        }
        if activation == "Relu" {
            then(relu, None)?;
        }
        Ok(results)
    }

    fn print(&self, call: OpCall<'_>) -> Result<Handles, Error> {
        let x = self.only(&call)?.to_async();
        let output = call.execution().host().output().clone();
        let Some(chain) = call.chain else {
            let name = self.name;
            return Err(Error::invalid_argument(format!(
                "{name} has side effects, so that the call needs a chain: corert.executeop.seq gives it one"
            )));
        };
        let before: [AnyAsyncValue; 2] = [x.clone().into_any(), chain.clone().into_any()];
        let (done, after): (Promise<Chain>, _) = AsyncValue::pending();
        when_all(&before).when_settled(move |all| {
            let printed = match (all.error(), x.get()) {
                (Some(error), _) => Err(error.clone()),
                (None, Some(Ok(tensor))) => text::of(tensor).map(|text| {
                    output.print(text);
                    Chain
                }),
                _ => Err(Error::internal("a tensor that is there is not")),
            };
            done.complete(printed);
        });
        *chain = after;
        Ok(Handles::new())
    }
}

/// Returns the attributes of a call but some.
fn without(call: &OpCall<'_>, names: &[&str]) -> Result<OpAttrs, Error> {
    let mut attrs = OpAttrs::new();
    for (name, value) in call.attrs.iter() {
        if !names.contains(&name) {
            let value: AttrValue = value.clone();
            attrs.set_named(name, value)?;
        }
    }
    Ok(attrs)
}

/// Returns a handle of what a function makes of a tensor on a device.
fn handle_of(
    x: &TensorHandle,
    device: &DeviceRef,
    execution: &ExecutionContext,
    make: impl FnOnce(&Tensor) -> Result<AsyncValue<Tensor>, Error> + Send + 'static,
) -> TensorHandle {
    let runtime = CoreRuntime::new(execution.host());
    let made = match x.tensor() {
        Some(Ok(tensor)) => make(tensor).unwrap_or_else(AsyncValue::from_error),
        Some(Err(error)) => return runtime.failed(error.clone()),
        None => x
            .to_async()
            .and_then_value(move |tensor| make(tensor).unwrap_or_else(AsyncValue::from_error)),
    };
    match made.get() {
        Some(Ok(tensor)) => runtime.handle(tensor.clone()),
        Some(Err(error)) => runtime.failed(error.clone()),
        None => runtime.pending(device, made, execution.request()),
    }
}

/// Returns a tensor when the GPU has done all that was queued.
fn finished(tensor: &Tensor) -> Result<AsyncValue<Tensor>, Error> {
    let Tensor::Device(own) = tensor else {
        return Ok(tensor.clone().into());
    };
    let shared = memory_of(own.elements())?.shared().clone();
    let tensor = tensor.clone();
    let finished = own
        .ready()
        .clone()
        .and_then_value(move |_| shared.finished());
    Ok(finished.map(move |_| tensor.clone()))
}

/// Returns a tensor whose elements lack the last digits.
fn cut_off(
    tensor: &Tensor,
    cut: Cut,
    device: &DeviceRef,
    execution: &ExecutionContext,
) -> Result<Tensor, Error> {
    let Tensor::Device(x) = tensor else {
        return Err(Error::internal("a tensor on a GPU is elsewhere"));
    };
    let (done, ready): (Promise<Chain>, _) = AsyncValue::pending();
    let y: DeviceTensor = allocate_on(device, x.metadata().clone(), ready, execution)?;
    let n = x.metadata().n_elements()?;
    let (to, from) = (y.elements().clone(), x.elements().clone());
    let after = [x.ready().as_any().clone()];
    when_all(&after).when_settled(move |all| {
        let made = match all.error() {
            Some(error) => Err(error.clone()),
            None => kernels::cut(&to, &from, n, cut),
        };
        drop((to, from));
        done.complete(made.map(|()| Chain));
    });
    Ok(Tensor::Device(y))
}
