//! [`DeviceOpHandler`]: finds rows by the kernels that a device beside the host has.
//!
//! A client chooses the device by asking its handler; [`select`] chooses the kernel at each call, by types, attributes and
//! number of results. Tensors of the host are copied to the device when a kernel needs them, after attributes and extents
//! were read from them; tensors of other devices are copied to this one before the call.

use std::sync::Arc;

use smallvec::SmallVec;
use tfrt_host::{AnyAsyncValue, DType, DeviceId, DeviceRef, Error};
use tfrt_ops::names::{Name, NameOperand};
use tfrt_ops::{Attrs, KernelQuery};
use tfrt_tensor::op::{
    OpCall as KernelCall, OpKernel, Operands as _, has_kernel, no_kernel, select,
};
use tfrt_tensor::{NoValue, Tensor, TensorFormat, device_of, transfer};

use super::operands::OperandSource;
use super::{Row, run};
use crate::TensorHandle;
use crate::call::Call;
use crate::context::InFlight;
use crate::definition::{MetadataCall, OpDefinition, Output, Outputs};
use crate::dispatch::RegisteredOp;
use crate::handler::OpHandler;
use crate::inputs::Inputs;
use crate::op::{FastPath, Handles, Op, OpCall};
use crate::transfer::Transfer;

/// A handler of rows on a device beside the host: finds operations by the names that
/// [`RowOpHandler`](super::RowOpHandler) has for rows, if the device has a kernel of the row. For others it asks the
/// next handler, whose operations are given their operands where they run.
pub struct DeviceOpHandler {
    kernels: DeviceKernels,
    next: Option<Arc<dyn OpHandler>>,
}

/// A device, and kernels of devices, some of which are for its kind.
#[derive(Clone)]
struct DeviceKernels {
    device: DeviceRef,
    all: Arc<[OpKernel]>,
}

impl DeviceOpHandler {
    /// Returns a handler of the rows that `kernels` run on a device beside the host, whose results are there.
    pub fn new(
        device: DeviceRef,
        kernels: Arc<[OpKernel]>,
        next: Option<Arc<dyn OpHandler>>,
    ) -> DeviceOpHandler {
        let kernels = DeviceKernels {
            device,
            all: kernels,
        };
        DeviceOpHandler { kernels, next }
    }
}

impl std::fmt::Debug for DeviceOpHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("DeviceOpHandler")
            .field(&self.name())
            .finish()
    }
}

impl OpHandler for DeviceOpHandler {
    fn name(&self) -> &str {
        self.kernels.device.name()
    }

    fn device(&self) -> DeviceId {
        self.kernels.device.id()
    }

    fn find(&self, op: &str) -> Result<Arc<dyn Op>, Error> {
        let row = Row::of(op);
        if let Some((row, definition)) = row.and_then(|row| row.on_device(&self.kernels)) {
            let definition = Arc::new(definition);
            let device = self.device();
            return Ok(Arc::new(TransferringOp {
                inner: Arc::new(RegisteredOp { definition, device }),
                device,
                row: Some((row, self.kernels.clone())),
            }));
        }
        let Some(next) = &self.next else {
            let (op, device) = (op.escape_debug(), self.name());
            return Err(Error::not_found(format!(
                "op '{op}' is not supported on {device}: it has no kernel of such a row"
            )));
        };
        Ok(Arc::new(TransferringOp {
            inner: next.find(op)?,
            device: next.device(),
            row: None,
        }))
    }
}

impl DeviceKernels {
    /// Returns the kernel of a call, or the error that none takes it.
    fn expect(&self, op: &str, query: &KernelQuery<'_>) -> Result<&OpKernel, Error> {
        let found = select(&self.all, self.device.kind(), query);
        found.ok_or_else(|| no_kernel(&self.all, &self.device, op, query))
    }

    /// Returns the error that no kernel of a row takes operands of these types, if that is so. Attributes are looked at when
    /// the call runs.
    fn check_types(&self, row: Row, op: &str, types: &[Option<DType>]) -> Result<(), Error> {
        let (kind, name) = (self.device.kind(), row.op.name);
        let is_for = |kernel: &OpKernel| {
            kernel.op == name && kernel.device == kind && kernel.takes_types(types)
        };
        if self.all.iter().any(is_for) {
            return Ok(());
        }
        let query = KernelQuery {
            op: name,
            attrs: Attrs::new(&(), &[]),
            types,
            n_results: None,
        };
        Err(no_kernel(&self.all, &self.device, op, &query))
    }
}

impl Row {
    /// Returns the definition of the operation on a device, if the device has a kernel of the row.
    fn on_device(self, kernels: &DeviceKernels) -> Option<(Row, OpDefinition)> {
        if !self.is_callable() || !has_kernel(&kernels.all, self.op.name, kernels.device.kind()) {
            return None;
        }
        let (for_types, for_runs) = (kernels.clone(), kernels.clone());
        let run = move |call: &mut Call<'_>| self.run_on(call, &for_runs);
        let definition = OpDefinition::new(self.called(), run)
            .moves_inputs()
            .metadata(move |call| {
                for_types.check_types(self, call.op, &self.operand_types(call))?;
                self.metadata(call, None)
            })
            // What is long is done by the device.
            .cost(|_, _| 1);
        Some((self, self.described(definition)))
    }

    /// Returns whether a call reads an input on the host: it is an attribute of the row, an operand is made of it, or a
    /// kernel takes it there.
    fn reads_on_host(self, kernels: &DeviceKernels, index: usize, n_inputs: usize) -> bool {
        let is_attr = |name: &Name| {
            let mut operands = name.operands.unwrap_or_default().iter();
            let is_read = |operand: &NameOperand| match operand {
                NameOperand::Pairs(own) => *own == index,
                NameOperand::Ends(starts, sizes) => *starts == index || *sizes == index,
                NameOperand::At(_) | NameOperand::Attr(..) => false,
            };
            name.is_attr(index, n_inputs) || operands.any(is_read)
        };
        if self.name.is_some_and(is_attr) {
            return true;
        }
        let (kind, name) = (kernels.device.kind(), self.op.name);
        let own = kernels
            .all
            .iter()
            .filter(|it| it.op == name && it.device == kind);
        let mut places = own.flat_map(|kernel| kernel.on_host);
        places.any(|place| {
            matches!(self.source(*place, n_inputs), OperandSource::Input(own) if own == index)
        })
    }

    /// Returns the types of the operands that are inputs.
    fn operand_types(self, call: &MetadataCall<'_>) -> SmallVec<[Option<DType>; 4]> {
        let n_inputs = call.inputs.len();
        let operands = 0..self.n_operands(n_inputs);
        let dtype = |index| match self.source(index, n_inputs) {
            OperandSource::Input(input) => Some(call.inputs.get(input)?.dtype),
            OperandSource::Made(_) | OperandSource::Nowhere => None,
        };
        operands.map(dtype).collect()
    }

    fn run_on(self, call: &mut Call<'_>, kernels: &DeviceKernels) -> Result<Outputs, Error> {
        let (op, attrs, execution) = (call.op, call.attrs, call.execution);
        let device = &kernels.device;
        let results = self.with_operands(call, |attrs, given, n_results| {
            let operands = (0..given.len()).map(|index| given.get(index));
            let types = operands
                .clone()
                .map(|tensor| Some(tensor?.metadata().dtype));
            let types: SmallVec<[Option<DType>; 4]> = types.collect();
            let query = KernelQuery {
                op: self.op.name,
                attrs,
                types: &types,
                n_results: Some(n_results),
            };
            let kernel = kernels.expect(op, &query)?;
            let there = |(place, tensor): (usize, Option<&Tensor>)| match tensor {
                Some(tensor) if kernel.on_host.contains(&place) => {
                    Ok(AnyAsyncValue::new::<Tensor>(tensor.clone()))
                }
                Some(tensor) => Ok(transfer(tensor, device, execution)?.into_any()),
                None => Ok(AnyAsyncValue::new(NoValue)),
            };
            let inputs: Vec<AnyAsyncValue> = operands
                .enumerate()
                .map(there)
                .collect::<Result<_, Error>>()?;
            let results = (kernel.run)(&KernelCall {
                op: self.op,
                attrs,
                inputs: &inputs,
                n_results,
                prepared: None,
                device: Some(device),
                execution,
            });
            results.map_err(|error| self.renamed(op, error))
        })?;
        let outputs = results.into_iter().map(run::output);
        let outputs: Outputs = outputs.collect::<Result<_, _>>()?;
        let ready = outputs.iter().filter_map(|output| match output {
            Output::Ready(tensor) => Some(tensor),
            Output::Later(_) => None,
        });
        let wanted = self.result_type(op, attrs)?;
        for tensor in ready {
            let (name, dtype) = (device.name(), tensor.metadata().dtype);
            if device_of(tensor) != device.id() {
                return Err(Error::internal(format!(
                    "{op}: the kernel on {name} gave a tensor that is elsewhere"
                )));
            }
            if let Some(wanted) = wanted.filter(|wanted| *wanted != dtype) {
                return Err(Error::invalid_argument(format!(
                    "{op}: expected results of {wanted}, the kernel on {name} gives {dtype}"
                )));
            }
        }
        Ok(outputs)
    }
}

/// An operation whose operands are brought to where it runs.
struct TransferringOp {
    inner: Arc<dyn Op>,
    device: DeviceId,
    /// The row of an operation on a device beside the host, which takes tensors of the host as they are.
    row: Option<(Row, DeviceKernels)>,
}

impl Op for TransferringOp {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn is_pure(&self) -> bool {
        self.inner.is_pure()
    }

    fn effect_order(&self) -> crate::EffectOrder {
        self.inner.effect_order()
    }

    fn shares_resources(&self, attrs: crate::OpAttrsRef<'_>) -> bool {
        self.inner.shares_resources(attrs)
    }

    fn n_results(&self) -> Option<usize> {
        self.inner.n_results()
    }

    fn try_fast(&self, call: &mut OpCall<'_>) -> FastPath {
        self.inner.try_fast(call)
    }

    fn call(&self, call: OpCall<'_>) -> Result<Handles, Error> {
        let n_inputs = call.inputs.len();
        if (0..n_inputs).all(|index| self.fits(index, call.inputs.get(index), &call)) {
            return self.inner.call(call);
        }
        let devices = call.execution.host().devices();
        let transfer = |handle: &TensorHandle, to: DeviceId| {
            let to = devices.by_id(to);
            let to = to.ok_or_else(|| Error::internal("the device of an operation is gone"))?;
            let transfer = Transfer {
                device: &to,
                format: match devices.contract(&to)?.memory().is_host() {
                    true => TensorFormat::DenseHost,
                    false => TensorFormat::Device,
                },
                execution: call.execution,
                caller: call.caller,
            };
            transfer.of(handle, || call.in_flight.map(InFlight::begin).transpose())
        };
        let brought = call.inputs.iter().enumerate().map(|(index, handle)| {
            match self.fits(index, handle, &call) {
                true => Ok(handle.clone()),
                false if self.is_read(index, &call) => transfer(handle, DeviceId::HOST),
                false => transfer(handle, self.device),
            }
        });
        let mut brought: Handles = brought.collect::<Result<_, _>>()?;
        let inputs = Inputs::owned(&mut brought);
        self.inner.call(OpCall { inputs, ..call })
    }
}

impl TransferringOp {
    /// Returns whether the operation reads an input on the host.
    fn is_read(&self, index: usize, call: &OpCall<'_>) -> bool {
        let row = self.row.as_ref();
        row.is_some_and(|(row, kernels)| row.reads_on_host(kernels, index, call.inputs.len()))
    }

    /// Returns whether a tensor is where the operation takes it, or is of another runtime, which the operation says.
    fn fits(&self, index: usize, handle: &TensorHandle, call: &OpCall<'_>) -> bool {
        let owner = handle.owner();
        let is_host = || {
            let devices = call.execution.host().devices();
            let device = devices.by_id(owner.device);
            device.is_some_and(|device| {
                devices
                    .contract(&device)
                    .is_ok_and(|it| it.memory().is_host())
            })
        };
        let is_as_is = self.row.is_some() || self.device == DeviceId::HOST;
        let is_here = owner.device == self.device && !self.is_read(index, call);
        owner.runtime != call.runtime || is_here || (is_as_is && is_host())
    }
}
