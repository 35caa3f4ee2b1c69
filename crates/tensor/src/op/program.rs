//! Kernels of operations as kernels of programs.

use std::borrow::Cow;
use std::sync::Arc;

use tfrt_host::kernel::{
    AggregateView, Attr, AttributeView, KernelRegistry, Operands, ResultCount, Results,
};
use tfrt_host::{AnyAsyncValue, DType, DeviceKind, Error, ExecutionContext};
use tfrt_ops::names::onnx;
use tfrt_ops::{AttrKind, AttrSource, AttrValue, Attrs, OpDef, Table};

use super::{OpCall, OpKernel, Prepared, select};
use crate::Tensor;

/// Adds a kernel of programs for each row and kind of device that kernels are for:
///
/// ```mlir
/// %y = "fake.graph.add"(%a, %b) {attributes = [], device = "FAKE:0"} : (!t.tensor, !t.tensor) -> !t.tensor
/// ```
///
/// `attributes` has names and values in turn; a type of elements is the number that ONNX gives it. Of several kernels for
/// one row and kind, [`select`] takes one at each call, by the types of the operands. Kernels of rows that a format adds are
/// called by the whole names of these: `fake.calc.wave`.
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
}

/// A call of a program.
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
        let device = self.execution.host().devices().get(self.device);
        let device = device.filter(|device| device.kind() == self.kind);
        let device = device.ok_or_else(|| {
            let (name, kind) = (self.device.escape_debug(), self.kind);
            Error::not_found(format!(
                "{op}: this host has no device '{name}' of kind {kind}"
            ))
        })?;
        let list = attributes.aggregate().filter(|list| list.len() % 2 == 0);
        let list = list.ok_or_else(|| {
            Error::invalid_argument(format!(
                "{op}: attributes are expected to be names and values alternately"
            ))
        })?;
        let (inputs, prepared) = match operands.split_last() {
            Some((last, others)) if last.is::<Prepared>() => (others, last.get::<Prepared>()),
            _ => (operands, None),
        };
        let types = inputs.iter().map(dtype);
        let kernel = select(kernels, op, self.kind, types.clone()).ok_or_else(|| {
            let found: Vec<String> = types.flatten().map(|dtype| dtype.to_string()).collect();
            let (name, found) = (self.device, found.join(", "));
            Error::invalid_argument(format!(
                "{op}: no kernel on {name} takes operands of {found}"
            ))
        })?;
        let source = Stated { list, op: self.op };
        let results = (kernel.run)(&OpCall {
            op: self.op,
            attrs: Attrs::new(&source, self.op.attrs),
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

/// The type of a tensor's elements; nothing of other values.
fn dtype(value: &AnyAsyncValue) -> Option<DType> {
    Some(value.get::<Tensor>()?.metadata().dtype)
}

/// The attributes that a program states.
struct Stated<'a> {
    list: AggregateView<'a>,
    op: &'a OpDef,
}

impl AttrSource for Stated<'_> {
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
