//! [`DeviceCall`]: a call of an operation on a device beside the host, as the device's kernels see it.

use smallvec::SmallVec;
use tfrt_host::{
    AnyAsyncValue, AsyncValue, Chain, DType, DeviceRef, Error, ExecutionContext, Promise,
};
use tfrt_ops::{Attrs, Dim, Fact, infer};

use super::{OpCall, OpResults};
use crate::{DeviceTensor, Tensor, TensorMetadata, allocate_on};

/// A call of an operation on a device beside the host. Operands are there, and types and shapes of results follow by
/// the row's rule. A kernel takes memory for results ([`output`](Self::output)), has the device work as soon as the
/// operands are [ready](Self::after), and keeps the promise that the work is done.
///
/// # Examples
///
/// A kernel of a device that does what it is asked for at once:
///
/// ```
/// use tfrt_host::{Chain, Error};
/// use tfrt_tensor::op::{DeviceCall, OpCall, OpResults};
///
/// fn relu(call: &OpCall<'_>) -> Result<OpResults, Error> {
///     let call = DeviceCall::new(call)?;
///     let (y, done) = call.output(0)?;
///     // Here the device would read `call.input(0)?.elements()`, and write `y.elements()`.
///     done.resolve(Chain);
///     Ok(call.gives([y]))
/// }
/// ```
#[derive(Debug)]
pub struct DeviceCall<'a> {
    /// Name of the row, for messages.
    pub name: &'static str,
    /// The attributes, by the names of the row.
    pub attrs: Attrs<'a>,
    /// The device.
    pub device: &'a DeviceRef,
    /// The request that it runs for.
    pub execution: &'a ExecutionContext,
    inputs: SmallVec<[Option<DeviceTensor>; 2]>,
    /// Integers of the operands that are on the host, empty for others.
    numbers: SmallVec<[Option<Vec<i64>>; 2]>,
    results: SmallVec<[Fact; 1]>,
}

impl<'a> DeviceCall<'a> {
    /// Makes the call from that of an [`OpKernel`](super::OpKernel).
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it has no device, if an operand is elsewhere, and for operands that don't fit one another.
    pub fn new(call: &OpCall<'a>) -> Result<DeviceCall<'a>, Error> {
        DeviceCall::with_host(call, &[])
    }

    /// Makes the call of a kernel some of whose operands stay on the host: lists of integers, at these places.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), and `InvalidArgument` if such an operand is not a tensor of integers on the host.
    pub fn with_host(call: &OpCall<'a>, on_host: &[usize]) -> Result<DeviceCall<'a>, Error> {
        let name = call.op.name;
        let wrong = |message: &str| Error::invalid_argument(format!("{name}: {message}"));
        let device = call.device.ok_or_else(|| wrong("expected a device"))?;
        let mut inputs: SmallVec<[_; 2]> = SmallVec::new();
        let mut numbers: SmallVec<[_; 2]> = SmallVec::new();
        let mut facts: SmallVec<[Option<Fact>; 2]> = SmallVec::new();
        for (place, input) in call.inputs.iter().enumerate() {
            let (mut there, mut own, mut fact) = (None, None, None);
            match input.get::<Tensor>() {
                None => {}
                Some(tensor) if on_host.contains(&place) => {
                    let list = integers(tensor).ok_or_else(|| {
                        wrong(&format!("expected integers on the host as operand {place}"))
                    })?;
                    let mut known = tensor.metadata().to_fact();
                    known.values = Some(list.iter().map(|one| Dim::Known(*one)).collect());
                    fact = Some(known);
                    own = Some(list);
                }
                Some(Tensor::Device(tensor)) if tensor.device() == device => {
                    fact = Some(tensor.metadata().to_fact());
                    there = Some(tensor.clone());
                }
                Some(_) => return Err(wrong("expected tensors on the device")),
            }
            inputs.push(there);
            numbers.push(own);
            facts.push(fact);
        }
        let results = infer(call.op, &facts, call.attrs, call.n_results, &mut |_, _| {
            Default::default()
        });
        let results = results.map_err(|error| Error::invalid_argument(error.to_string()))?;
        Ok(DeviceCall {
            name,
            attrs: call.attrs,
            device,
            execution: call.execution,
            inputs,
            numbers,
            results: results.into_iter().collect(),
        })
    }

    /// Returns the operands that are not left out.
    pub fn inputs(&self) -> impl Iterator<Item = &DeviceTensor> {
        self.inputs.iter().flatten()
    }

    /// Returns the operand at `index`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is left out.
    pub fn input(&self, index: usize) -> Result<&DeviceTensor, Error> {
        let found = self.inputs.get(index).and_then(Option::as_ref);
        found.ok_or_else(|| self.error(format_args!("operand {index} is left out")))
    }

    /// Returns the integers of the operand at `index`, if it is one that stays on the host and is not left out.
    pub fn numbers(&self, index: usize) -> Option<&[i64]> {
        self.numbers.get(index)?.as_deref()
    }

    /// Returns the type and the shape of the result at `index`, if they are known.
    pub fn result(&self, index: usize) -> Option<TensorMetadata> {
        self.results.get(index).and_then(TensorMetadata::of_fact)
    }

    /// Returns the values that the kernel's work has to wait for: the operands are ready then.
    pub fn after(&self) -> Vec<AnyAsyncValue> {
        let ready = self.inputs().map(|input| input.ready().as_any().clone());
        ready.collect()
    }

    /// Allocates memory of the device for the result at `index`. Its contents are unspecified: the kernel writes
    /// every element, and resolves the promise when readers on the device may enqueue work.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory; `InvalidArgument` if the result's type and shape follow from values of
    /// operands, which the host does not see.
    pub fn output(&self, index: usize) -> Result<(DeviceTensor, Promise<Chain>), Error> {
        let metadata = self.result(index).ok_or_else(|| {
            self.error(format_args!(
                "type and shape of result {index} follow from values, which are on the device"
            ))
        })?;
        let (done, ready) = AsyncValue::pending();
        let tensor = allocate_on(self.device, metadata, ready, self.execution)?;
        Ok((tensor, done))
    }

    /// Returns tensors as the results.
    pub fn gives(&self, results: impl IntoIterator<Item = DeviceTensor>) -> OpResults {
        let results = results.into_iter().map(Tensor::Device);
        results.map(AnyAsyncValue::new::<Tensor>).collect()
    }

    /// Makes an error that begins with the operation's name.
    #[cold]
    pub fn error(&self, message: std::fmt::Arguments<'_>) -> Error {
        Error::invalid_argument(format!("{}: {message}", self.name))
    }
}

/// Returns the elements of a dense tensor of integers on the host.
fn integers(tensor: &Tensor) -> Option<Vec<i64>> {
    let dense = tensor.as_dense().ok()?;
    let reading = dense.read().ok()?;
    match dense.dtype() {
        DType::I64 => reading.elements::<i64>().ok().map(<[i64]>::to_vec),
        DType::I32 => {
            let list = reading.elements::<i32>().ok()?;
            Some(list.iter().map(|one| i64::from(*one)).collect())
        }
        _ => None,
    }
}
