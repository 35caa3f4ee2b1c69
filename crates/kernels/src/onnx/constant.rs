//! `cpu.onnx.Constant`: constants whose elements are used where they lie in the program; and `cpu.onnx.NoValue`.
//! Constants in files of their own are in `weight_files.rs`.

use std::fmt;
use std::sync::Arc;

use tfrt_host::kernel::param::{HeldAttribute, kinds};
use tfrt_host::kernel::{AttributeView, KernelFrame, KernelParam, KernelRegistry, Mismatch, Part};
use tfrt_host::memory::HostBuffer;
use tfrt_host::{Error, HostAllocator, HostContext};
use tfrt_tensor::{
    DenseHostTensor, NoValue, StringHostTensor, Tensor, TensorMetadata, TensorShape,
};

use super::Operations;
use super::attributes::dense;
use super::weight_files::external;

pub(super) const OPERATIONS: &Operations = &[];

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("cpu.onnx.Constant", constant)
        .add("cpu.onnx.External", external)
        .add("cpu.onnx.NoValue", || NoValue);
}

/// `%y = "cpu.onnx.Constant"() {value = dense<..>}`, or of strings `{shape = [2 : i64], value = ["a", "b"]}`
///
/// Elements are not copied, but where they begin as no tensor's may.
fn constant(attributes: HeldAttributes, host: &HostContext) -> Result<Tensor, Error> {
    let mut list = attributes.0;
    let value = list.pop();
    let wrong = || Error::invalid_argument("Constant: expected a value, and of strings a shape");
    let value = value.ok_or_else(wrong)?;
    if value.view().dense().is_some() && list.is_empty() {
        return in_place(value, host.allocator()).map(Tensor::from);
    }
    let strings = value.view().aggregate().ok_or_else(wrong)?;
    let strings: Option<Vec<Vec<u8>>> = (0..strings.len())
        .map(|index| Some(strings.get(index)?.as_bytes()?.to_vec()))
        .collect();
    let strings = strings.ok_or_else(wrong)?;
    let shape = match list.pop() {
        Some(shape) => TensorShape::from_i64(integers(shape.view()).ok_or_else(wrong)?)?,
        None => TensorShape::new(&[strings.len()])?,
    };
    Ok(StringHostTensor::new(shape, strings)?.into())
}

/// Returns dense elements as a tensor that uses them where they lie, unless they are not aligned.
///
/// # Errors
///
/// `InvalidArgument` if the attribute is something else.
pub(crate) fn in_place(
    value: HeldAttribute,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<DenseHostTensor, Error> {
    let wrong = || Error::invalid_argument("expected dense elements");
    let view = value.view().dense().ok_or_else(wrong)?;
    let metadata = TensorMetadata::new(view.dtype, TensorShape::from_i64(view.shape)?);
    let alignment = metadata.dtype.alignment_bytes().unwrap_or(1);
    if !view.bytes.as_ptr().addr().is_multiple_of(alignment) {
        return dense(value.view(), allocator)?.ok_or_else(wrong);
    }
    DenseHostTensor::new(metadata, HostBuffer::from_owner(Elements(value)))
}

pub(super) fn integers(view: AttributeView<'_>) -> Option<&[i64]> {
    match view.aggregate() {
        Some(list) if list.is_empty() => Some(&[]),
        _ => view.array(),
    }
}

/// The owner of dense elements in a program.
struct Elements(HeldAttribute);

impl AsRef<[u8]> for Elements {
    fn as_ref(&self) -> &[u8] {
        self.0.view().dense().map_or(&[], |dense| dense.bytes)
    }
}

/// All attributes of a kernel, which it may keep.
pub(crate) struct HeldAttributes(pub(crate) Vec<HeldAttribute>);

impl fmt::Debug for HeldAttributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} attributes", self.0.len())
    }
}

impl KernelParam<kinds::Itself> for HeldAttributes {
    type Guard<'f> = HeldAttributes;
    type Item<'a> = HeldAttributes;

    const PART: &'static Part = &Part::MoreAttributes;

    fn take(frame: &mut KernelFrame<'_, '_>) -> Result<HeldAttributes, Mismatch> {
        let mut list = Vec::new();
        while frame.n_attributes_left() > 0 {
            list.push(frame.hold_attribute("anything", |_| true)?);
        }
        Ok(HeldAttributes(list))
    }

    fn item(guard: &mut HeldAttributes) -> HeldAttributes {
        HeldAttributes(std::mem::take(&mut guard.0))
    }
}
