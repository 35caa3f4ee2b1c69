//! Registration of operations' kernels as kernels of programs.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;
use tfrt_host::kernel::{
    AggregateView, Attr, AttributeView, KernelRegistry, Operands, Rest, ResultCount, Results,
};
use tfrt_host::{AnyAsyncValue, DType, DeviceKind, DeviceRef, Error, ExecutionContext};
use tfrt_ops::names::onnx;
use tfrt_ops::{AttrKind, AttrSource, AttrValue, Attrs, KernelQuery, OpDef, Table};

use super::{OpCall, OpKernel, Prepared, PreparedState, no_kernel, select};
use crate::{NoValue, Tensor};

/// Registers a kernel of programs for each row and kind of device that `kernels` are for:
///
/// ```mlir
/// %y = "fake.graph.add"(%a, %b) {attributes = [], device = "FAKE:0"} : (!t.tensor, !t.tensor) -> !t.tensor
/// ```
///
/// `attributes` has names and values in turn; a type of elements is the number that ONNX gives it. Of several kernels for
/// one row and kind, [`select`] takes one at each call. Kernels of rows that a format adds are
/// called by the whole names of these: `fake.calc.wave`.
///
/// Where kernels of a kind prepare constants there is a kernel that has them do so, once, given the types of all operands;
/// what was prepared is the last operand of calls, and what it stands for is not among the others:
///
/// ```mlir
/// %p = "fake.graph.prepare"(%none, %b) {attributes = [], device = "FAKE:0", op = "add", types = [1, 1]}
///     : (!t.none, !t.tensor) -> !graph.prepared
/// %y = "fake.graph.add"(%a, %p) {attributes = [], device = "FAKE:0"} : (!t.tensor, !graph.prepared) -> !t.tensor
/// ```
///
/// # Panics
///
/// If there is such a kernel already, or no such row.
pub fn register(registry: &mut KernelRegistry, kernels: &[OpKernel], rows: &Table) {
    let all: Arc<[OpKernel]> = kernels.into();
    let mut done: Vec<(&str, DeviceKind)> = Vec::new();
    for kernel in kernels {
        let key = (kernel.op, kernel.device);
        if done.contains(&key) {
            continue;
        }
        done.push(key);
        let op = rows.find(kernel.op);
        let op = op.unwrap_or_else(|| panic!("there is no row '{}'", kernel.op));
        let (own, kind) = (all.clone(), kernel.device);
        let run = move |operands: Operands<'_>,
                        attributes: Attr<AttributeView<'_>>,
                        device: Attr<&str>,
                        n_results: ResultCount,
                        execution: &ExecutionContext|
              -> Result<Results, Error> {
            let call = Call {
                op: &op,
                kind,
                device: &device,
                n_results: n_results.0,
                execution,
            };
            call.run(&own, &operands, *attributes)
        };
        let name = match op.name.split_once('.') {
            Some(_) => format!("{}.{}", kernel.device, op.name),
            None => format!("{}.graph.{}", kernel.device, op.name),
        };
        registry.add(&name, run);
    }
    let mut kinds: Vec<DeviceKind> = Vec::new();
    for kernel in kernels.iter().filter(|kernel| kernel.prepare.is_some()) {
        // Those of the processor are prepared as its own are.
        if kernel.device != DeviceKind::CPU && !kinds.contains(&kernel.device) {
            kinds.push(kernel.device);
            add_prepare(registry, all.clone(), kernel.device);
        }
    }
}

/// Adds the kernel that prepares constants for a kind of device.
fn add_prepare(registry: &mut KernelRegistry, kernels: Arc<[OpKernel]>, kind: DeviceKind) {
    let prepare = move |operands: Rest,
                        attributes: Attr<AttributeView<'_>>,
                        device: Attr<&str>,
                        op: Attr<&str>,
                        types: Attr<&[i64]>,
                        execution: &ExecutionContext|
          -> Result<Prepared, Error> {
        let op = tfrt_ops::find(&op).ok_or_else(|| {
            let op = op.escape_debug();
            Error::invalid_argument(format!("'{op}' is no operation that is prepared"))
        })?;
        let call = Call {
            op,
            kind,
            device: &device,
            n_results: 0,
            execution,
        };
        let types: Vec<Option<DType>> = types.iter().map(|number| onnx::dtype(*number)).collect();
        call.prepare(&kernels, operands.0, *attributes, &types)
    };
    registry.add(&format!("{kind}.graph.prepare"), prepare);
}

/// Constants that are kept as they are, where a kernel prepares nothing.
#[derive(Debug)]
struct Constants(Vec<AnyAsyncValue>);

impl PreparedState for Constants {}

/// Returns all operands in their places: those of a call, and prepared constants, or nothing, in the others.
fn in_places(
    inputs: &[AnyAsyncValue],
    taken: &[usize],
    constants: &[AnyAsyncValue],
) -> Vec<AnyAsyncValue> {
    let mut left = inputs.iter();
    let mut all = Vec::with_capacity(inputs.len() + taken.len());
    let most = taken.iter().max().map_or(0, |last| last + 1);
    while all.len() < most || left.len() > 0 {
        let found = match taken.contains(&all.len()) {
            true => constants.get(all.len()),
            false => left.next(),
        };
        all.push(found.map_or_else(|| AnyAsyncValue::new(NoValue), AnyAsyncValue::clone));
    }
    all
}

/// Operands and attributes of a program's kernel call.
struct Call<'a> {
    op: &'a OpDef,
    kind: DeviceKind,
    /// The name of the device.
    device: &'a str,
    n_results: usize,
    execution: &'a ExecutionContext,
}

impl Call<'_> {
    fn run(
        &self,
        kernels: &[OpKernel],
        operands: &[AnyAsyncValue],
        attributes: AttributeView<'_>,
    ) -> Result<Results, Error> {
        let op = self.op.name;
        let device = self.device()?;
        let list = self.stated(attributes)?;
        let (inputs, prepared) = match operands.split_last() {
            Some((last, others)) if last.is::<Prepared>() => (others, last.get::<Prepared>()),
            _ => (operands, None),
        };
        let source = ProgramAttrs { list, op: self.op };
        let attrs = Attrs::new(&source, self.op.attrs);
        let types: SmallVec<[Option<DType>; 4]> = inputs.iter().map(dtype).collect();
        let kernel = self.select(kernels, &device, attrs, &types, Some(self.n_results))?;
        let taken = kernel.prepare.map_or(&[][..], |prepare| prepare.inputs);
        let constants = prepared.and_then(|prepared| {
            let state: &dyn Any = &*prepared.state;
            state.downcast_ref::<Constants>()
        });
        let all;
        let (inputs, prepared) = match (prepared, constants) {
            (None, _) => (inputs, None),
            (prepared, None) => {
                all = in_places(inputs, taken, &[]);
                (&all[..], prepared)
            }
            (_, Some(Constants(constants))) => {
                all = in_places(inputs, taken, constants);
                (&all[..], None)
            }
        };
        let results = (kernel.run)(&OpCall {
            op: self.op,
            attrs,
            inputs,
            n_results: self.n_results,
            prepared,
            device: Some(&device),
            execution: self.execution,
        })?;
        let (found, wanted) = (results.len(), self.n_results);
        match found == wanted {
            true => Ok(Results(results.into_vec())),
            false => Err(Error::internal(format!(
                "{op}: {wanted} results are asked for, the kernel gave {found}"
            ))),
        }
    }
}

impl Call<'_> {
    fn prepare(
        &self,
        kernels: &[OpKernel],
        operands: Vec<AnyAsyncValue>,
        attributes: AttributeView<'_>,
        types: &[Option<DType>],
    ) -> Result<Prepared, Error> {
        let op = self.op.name;
        let device = self.device()?;
        let list = self.stated(attributes)?;
        let source = ProgramAttrs { list, op: self.op };
        let attrs = Attrs::new(&source, self.op.attrs);
        let kernel = self.select(kernels, &device, attrs, types, None)?;
        let prepare = kernel.prepare;
        let prepare = prepare.ok_or_else(|| {
            let name = self.device;
            Error::invalid_argument(format!("{op}: its kernel on {name} prepares nothing"))
        })?;
        let made = (prepare.make)(&OpCall {
            op: self.op,
            attrs,
            inputs: &operands,
            n_results: 0,
            prepared: None,
            device: Some(&device),
            execution: self.execution,
        })?;
        Ok(made.unwrap_or_else(|| Prepared {
            op,
            state: Arc::new(Constants(operands)),
        }))
    }

    fn device(&self) -> Result<DeviceRef, Error> {
        let device = self.execution.host().devices().get(self.device);
        let device = device.filter(|device| device.kind() == self.kind);
        device.ok_or_else(|| {
            let (op, name, kind) = (self.op.name, self.device.escape_debug(), self.kind);
            Error::not_found(format!(
                "{op}: this host has no device '{name}' of kind {kind}"
            ))
        })
    }

    fn stated<'a>(&self, attributes: AttributeView<'a>) -> Result<AggregateView<'a>, Error> {
        let list = attributes.aggregate().filter(|list| list.len() % 2 == 0);
        list.ok_or_else(|| {
            let op = self.op.name;
            Error::invalid_argument(format!(
                "{op}: attributes are expected to be names and values alternately"
            ))
        })
    }

    fn select<'k>(
        &self,
        kernels: &'k [OpKernel],
        device: &DeviceRef,
        attrs: Attrs<'_>,
        types: &[Option<DType>],
        n_results: Option<usize>,
    ) -> Result<&'k OpKernel, Error> {
        let op = self.op.name;
        let query = KernelQuery {
            op,
            attrs,
            types,
            n_results,
        };
        select(kernels, self.kind, &query).ok_or_else(|| no_kernel(kernels, device, op, &query))
    }
}

/// Returns the type of a tensor's elements; `None` for other values.
fn dtype(value: &AnyAsyncValue) -> Option<DType> {
    Some(value.get::<Tensor>()?.metadata().dtype)
}

/// The attributes that a program states.
pub(super) struct ProgramAttrs<'a> {
    pub(super) list: AggregateView<'a>,
    pub(super) op: &'a OpDef,
}

impl AttrSource for ProgramAttrs<'_> {
    fn get(&self, name: &str) -> Option<AttrValue<'_>> {
        let mut names = (0..self.list.len()).step_by(2);
        let index = names.find(|index| {
            let found = self.list.get(*index).and_then(|view| view.as_str());
            found == Some(name)
        })?;
        let value = value(self.list.get(index + 1)?);
        match (value, self.op.attr(name).map(|attr| attr.kind)) {
            (AttrValue::Int(number), Some(AttrKind::Type)) => {
                Some(onnx::dtype(number).map_or(AttrValue::Other, AttrValue::Type))
            }
            (value, _) => Some(value),
        }
    }
}

fn value(view: AttributeView<'_>) -> AttrValue<'_> {
    if let Some(value) = view.as_i64() {
        return AttrValue::Int(value);
    }
    if let Some(dtype) = view.as_dtype() {
        return AttrValue::Type(dtype);
    }
    if let Some(value) = view.as_f32() {
        return AttrValue::Float(value.into());
    }
    if let Some(bytes) = view.as_bytes() {
        return AttrValue::Bytes(bytes);
    }
    if let Some(list) = view.array::<i64>() {
        return AttrValue::Ints(Cow::Borrowed(list));
    }
    if let Some(list) = view.array::<f32>() {
        return AttrValue::Floats(list.iter().map(|one| f64::from(*one)).collect());
    }
    let strings = view.aggregate().and_then(|list| {
        let strings = (0..list.len()).map(|index| list.get(index)?.as_bytes());
        strings.collect::<Option<Vec<&[u8]>>>()
    });
    strings.map_or(AttrValue::Other, AttrValue::Strings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_stand_in_their_places_behind_what_was_taken() {
        let number = |number: i64| AnyAsyncValue::new(number);
        let seen = |values: Vec<AnyAsyncValue>| -> Vec<Option<i64>> {
            let number = |value: &AnyAsyncValue| value.get::<i64>().copied();
            values.iter().map(number).collect()
        };
        let inputs = [number(0), number(2), number(4)];
        let all = in_places(&inputs, &[1, 3], &[]);
        assert_eq!(seen(all), [Some(0), None, Some(2), None, Some(4)]);
        let constants = [number(-1), number(1)];
        let all = in_places(&inputs, &[1, 3], &constants);
        assert_eq!(seen(all), [Some(0), Some(1), Some(2), None, Some(4)]);
        assert_eq!(seen(in_places(&[], &[], &[])), []);
        assert_eq!(
            seen(in_places(&inputs[..1], &[2], &[])),
            [Some(0), None, None]
        );
    }
}
