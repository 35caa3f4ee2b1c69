//! Tensors that stand in the program.

use tfrt_host::kernel::param::{HeldAttribute, kinds::Itself};
use tfrt_host::kernel::{
    Attr, AttributeSpec, AttributeView, KernelFrame, KernelParam, KernelRegistry, Mismatch, Part, ScalarAttr,
};
use tfrt_host::memory::HostBuffer;
use tfrt_host::{Error, ExecutionContext};
use tfrt_tensor::{
    BF16, Bool, Complex, DenseHostTensor, Element, F16, StringHostTensor, TensorMetadata,
    TensorShape, from_bytes, to_bytes,
};

use super::runtime;
use crate::TensorHandle;

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("corert.const_dense_tensor", dense)
        .add("corert_sync.const_dense_tensor", dense)
        .add("corert.const_string_tensor", strings);
    /// `of_values!(F16 u16 "f16")` adds the kernels that make tensors of `F16` of lists of `u16`.
    macro_rules! of_values {
        ($($type:ty, $part:ty, $name:literal;)*) => {$(
            registry.add(concat!("corert.create_dense_tensor.", $name), of_values::<$type, $part>);
            registry.add(concat!("corert_sync.create_dense_tensor.", $name), of_values::<$type, $part>);
        )*};
    }
    of_values! {
        u8, u8, "ui8";
        u16, u16, "ui16";
        u32, u32, "ui32";
        u64, u64, "ui64";
        Bool, u8, "i1";
        i8, i8, "i8";
        i16, i16, "i16";
        i32, i32, "i32";
        i64, i64, "i64";
        F16, u16, "f16";
        BF16, u16, "bf16";
        f32, f32, "f32";
        f64, f64, "f64";
        Complex<f32>, f32, "complex64";
        Complex<f64>, f64, "complex128";
    }
}

/// Dense elements, used where they lie.
struct Elements(HeldAttribute);

impl AsRef<[u8]> for Elements {
    fn as_ref(&self) -> &[u8] {
        self.0.view().dense().map_or(&[], |dense| dense.bytes)
    }
}

impl KernelParam<Itself> for Elements {
    type Guard<'f> = Option<Elements>;
    type Item<'a> = Elements;

    const PART: &'static Part = &Part::Attribute(AttributeSpec {
        kind: "dense elements",
        readable: |view| view.dense().is_some(),
    });

    fn take(frame: &mut KernelFrame<'_, '_>) -> Result<Option<Elements>, Mismatch> {
        let held = frame.hold_attribute("dense elements", |view| view.dense().is_some())?;
        Ok(Some(Elements(held)))
    }

    fn item<'a>(guard: &'a mut Option<Elements>) -> Elements {
        guard.take().expect("a parameter is lent once")
    }
}

/// `%t = corert.const_dense_tensor dense<[1, 2]> : tensor<2xi32>`
fn dense(value: Elements, execution: &ExecutionContext) -> Result<TensorHandle, Error> {
    let view = value.0.view().dense();
    let view = view.ok_or_else(|| Error::internal("the attribute was dense"))?;
    let metadata = TensorMetadata::new(view.dtype, TensorShape::from_i64(view.shape)?);
    let alignment = metadata.dtype.alignment_bytes().unwrap_or(1);
    let is_aligned = view.bytes.as_ptr().addr().is_multiple_of(alignment);
    let tensor = match is_aligned {
        true => DenseHostTensor::new(metadata, HostBuffer::from_owner(value))?,
        false => DenseHostTensor::from_bytes(execution.host().allocator(), metadata, view.bytes)?,
    };
    Ok(runtime(execution).handle(tensor))
}

/// `%t = corert.const_string_tensor {shape = [2], value = ["a", "b"]}`: one value stands for all.
fn strings(
    shape: Attr<AttributeView<'_>>,
    value: Attr<AttributeView<'_>>,
    execution: &ExecutionContext,
) -> Result<TensorHandle, Error> {
    let shape = extents(*shape)?;
    let n = shape.n_elements().unwrap_or(usize::MAX);
    let list = value.aggregate();
    let texts: Option<Vec<Vec<u8>>> = match list {
        Some(list) => (0..list.len())
            .map(|index| Some(list.get(index)?.as_bytes()?.to_vec()))
            .collect(),
        None => is_empty(*value).then(Vec::new),
    };
    let texts =
        texts.ok_or_else(|| Error::invalid_argument("expected a list of strings as value"))?;
    let texts = match &texts[..] {
        [only] if n != 1 && n <= 1 << 20 => vec![only.clone(); n],
        _ => texts,
    };
    Ok(runtime(execution).handle(StringHostTensor::new(shape, texts)?))
}

/// `%t = corert.create_dense_tensor.f32 {shape = [2], value = [1.0 : f32, 2.0 : f32]}`: complex numbers are their real
/// and imaginary parts in turn.
fn of_values<T: Element, P: ScalarAttr + Element>(
    shape: Attr<AttributeView<'_>>,
    value: Attr<AttributeView<'_>>,
    execution: &ExecutionContext,
) -> Result<TensorHandle, Error> {
    let shape = extents(*shape)?;
    let parts: &[P] = match is_empty(*value) {
        true => &[],
        false => P::read_array(*value).ok_or_else(|| {
            Error::invalid_argument(format!("expected a list of {} as value", T::DTYPE))
        })?,
    };
    let elements = from_bytes::<T>(to_bytes(parts))?;
    let allocator = execution.host().allocator();
    let tensor = DenseHostTensor::from_slice(allocator, &shape.to_dims(), elements)?;
    Ok(runtime(execution).handle(tensor))
}

/// Whether a list is the one without elements, whose type nobody knows.
fn is_empty(view: AttributeView<'_>) -> bool {
    view.array::<i32>().is_some_and(<[i32]>::is_empty)
        || view.aggregate().is_some_and(|list| list.is_empty())
}

/// A list of extents, which may be empty.
fn extents(view: AttributeView<'_>) -> Result<TensorShape, Error> {
    if is_empty(view) {
        return Ok(TensorShape::SCALAR);
    }
    match view.array::<i64>() {
        Some(extents) => TensorShape::from_i64(extents),
        None => Err(Error::invalid_argument("expected a list of integers of 64 bits as shape")),
    }
}
