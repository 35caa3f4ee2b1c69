//! Tensors that stand in the program.

use tfrt_host::kernel::param::{HeldAttribute, kinds::Itself};
use tfrt_host::kernel::{
    Attr, AttributeSpec, AttributeView, KernelFrame, KernelParam, KernelRegistry, Mismatch, Part,
};
use tfrt_host::memory::{BUFFER_ALIGNMENT, HostBuffer};
use tfrt_host::{Error, ExecutionContext};
use tfrt_tensor::attribute::{AttrElement, Values};
use tfrt_tensor::{
    BF16, Bool, Complex, DenseHostTensor, F16, StringHostTensor, TensorMetadata, TensorShape,
};

use super::runtime;
use crate::TensorHandle;

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("corert.const_dense_tensor", dense)
        .add("corert_sync.const_dense_tensor", dense)
        .add("corert.const_string_tensor", strings);
    /// `of_values!(f32 "f32")` adds the kernels of both dialects that make tensors of `f32`.
    macro_rules! of_values {
        ($($type:ty, $name:literal;)*) => {$(
            registry.add(concat!("corert.create_dense_tensor.", $name), of_values::<$type>);
            registry.add(concat!("corert_sync.create_dense_tensor.", $name), of_values::<$type>);
        )*};
    }
    of_values! {
        u8, "ui8";
        u16, "ui16";
        u32, "ui32";
        u64, "ui64";
        Bool, "i1";
        i8, "i8";
        i16, "i16";
        i32, "i32";
        i64, "i64";
        F16, "f16";
        BF16, "bf16";
        f32, "f32";
        f64, "f64";
    }
    registry
        .add(
            "corert.create_dense_tensor.complex64",
            of_values::<Complex<f32>>,
        )
        .add(
            "corert.create_dense_tensor.complex128",
            of_values::<Complex<f64>>,
        );
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
        kind: "any",
        readable: |view| view.dense().is_some(),
    });

    fn take(frame: &mut KernelFrame<'_, '_>) -> Result<Option<Elements>, Mismatch> {
        let held = frame.hold_attribute("any", |view| view.dense().is_some())?;
        Ok(Some(Elements(held)))
    }

    fn item(guard: &mut Option<Elements>) -> Elements {
        guard.take().expect("a parameter is lent once")
    }
}

/// The most bytes of a constant that are copied: kernels, those of plugins above all, like to have theirs aligned as buffers
/// are, which constants of a program seldom are, and small ones cost less to copy than to keep.
const MAX_COPIED: usize = 1 << 10;

/// `%t = corert.const_dense_tensor dense<[1, 2]> : tensor<2xi32>`
fn dense(value: Elements, execution: &ExecutionContext) -> Result<TensorHandle, Error> {
    let view = value.0.view().dense();
    let view = view.ok_or_else(|| Error::internal("the attribute was dense"))?;
    let metadata = TensorMetadata::new(view.dtype, TensorShape::from_i64(view.shape)?);
    let alignment = match view.bytes.len() <= MAX_COPIED {
        true => BUFFER_ALIGNMENT,
        false => metadata.dtype.alignment_bytes().unwrap_or(1),
    };
    let is_aligned = view.bytes.as_ptr().addr().is_multiple_of(alignment);
    let tensor = match is_aligned {
        true => DenseHostTensor::new(metadata, HostBuffer::from_owner(value))?,
        false => DenseHostTensor::from_bytes(execution.host().allocator(), metadata, view.bytes)?,
    };
    Ok(runtime(execution).handle(tensor))
}

/// `%t = corert.const_string_tensor {shape = [2], value = ["a", "b"]}`: one value stands for all.
fn strings(
    shape: Attr<&[i64]>,
    value: Texts,
    execution: &ExecutionContext,
) -> Result<TensorHandle, Error> {
    let shape = TensorShape::from_i64(*shape)?;
    let n = shape.n_elements().unwrap_or(usize::MAX);
    let mut texts = value.to_vec();
    if texts.len() == 1 && n != 1 {
        if n > MAX_SPLAT {
            return Err(Error::resource_exhausted(format!(
                "a tensor of shape {shape} has more than {MAX_SPLAT} strings"
            )));
        }
        // No strings at all are none of the one that stands for all.
        let only = texts.pop().unwrap_or_default();
        texts.resize(n, only);
    }
    Ok(runtime(execution).handle(StringHostTensor::new(shape, texts)?))
}

/// Maximum number of elements that one string may stand for.
const MAX_SPLAT: usize = 1 << 20;

/// A list of strings.
struct Texts(HeldAttribute);

impl Texts {
    fn read(view: AttributeView<'_>) -> Option<Vec<Vec<u8>>> {
        match view.aggregate() {
            Some(list) => (0..list.len())
                .map(|index| Some(list.get(index)?.as_bytes()?.to_vec()))
                .collect(),
            // Nobody knows the type of a list without elements.
            None => view
                .array::<i32>()
                .filter(|list| list.is_empty())
                .map(|_| Vec::new()),
        }
    }

    fn to_vec(&self) -> Vec<Vec<u8>> {
        Self::read(self.0.view()).unwrap_or_default()
    }
}

impl KernelParam<Itself> for Texts {
    type Guard<'f> = Option<Texts>;
    type Item<'a> = Texts;

    const PART: &'static Part = &Part::Attribute(AttributeSpec {
        kind: "array of strings",
        readable: |view| Self::read(view).is_some(),
    });

    fn take(frame: &mut KernelFrame<'_, '_>) -> Result<Option<Texts>, Mismatch> {
        let held = frame.hold_attribute("array of strings", |view| Self::read(view).is_some())?;
        Ok(Some(Texts(held)))
    }

    fn item(guard: &mut Option<Texts>) -> Texts {
        guard.take().expect("a parameter is lent once")
    }
}

/// `%t = corert.create_dense_tensor.f32 {shape = [2], value = [1.0 : f32, 2.0 : f32]}`: complex numbers are their real
/// and imaginary parts in turn.
fn of_values<T: AttrElement>(
    shape: Attr<&[i64]>,
    value: Values<'_, T>,
    execution: &ExecutionContext,
) -> Result<TensorHandle, Error> {
    let shape = TensorShape::from_i64(*shape)?;
    let n = TensorMetadata::new(T::DTYPE, shape.clone()).n_elements()?;
    let allocator = execution.host().allocator();
    let tensor = DenseHostTensor::from_slice(allocator, &shape.to_dims(), value.expect(n)?)?;
    Ok(runtime(execution).handle(tensor))
}
