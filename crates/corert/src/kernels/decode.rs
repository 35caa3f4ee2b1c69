//! [`Pairs`]: names and values of attributes, packed by the compiler, as a parameter of kernels; from attributes of
//! files to [`AttrValue`]s.

use tfrt_host::kernel::param::{HeldAttribute, LentAttribute, kinds::Itself};
use tfrt_host::kernel::{
    AttributeSpec, AttributeType, AttributeView, KernelFrame, KernelParam, Mismatch, Part,
    ShapeView,
};
use tfrt_host::memory::HostBuffer;
use tfrt_host::{DType, Error};
use tfrt_tensor::{
    BF16, Bool, DenseHostTensor, F16, PartialTensorShape, TensorMetadata, TensorShape,
};

use crate::attributes::{AttrValue, IntoAttr, Numbers, OpAttrs, Text};

/// Pairs of names and values: `[["axis", 1 : i32], ["type", "f32"]]`. Tensors among them stay where they lie.
#[derive(Clone, Copy)]
pub(super) struct Pairs<'f>(LentAttribute<'f>);

const KIND: &str = "array of pairs";

impl KernelParam<Itself> for Pairs<'_> {
    type Guard<'f> = Pairs<'f>;
    type Item<'a> = Pairs<'a>;

    const PART: &'static Part = &Part::Attribute(AttributeSpec {
        kind: KIND,
        readable: |view| are_pairs(view),
    });

    fn take<'f>(frame: &mut KernelFrame<'f, '_>) -> Result<Pairs<'f>, Mismatch> {
        frame.lend_attribute().map(Pairs)
    }

    fn item<'a>(guard: &'a mut Pairs<'_>) -> Pairs<'a> {
        *guard
    }
}

fn are_pairs(view: AttributeView<'_>) -> bool {
    let Some(list) = view.aggregate() else {
        // No pairs at all are an array without elements.
        return view.array::<i32>().is_some_and(<[i32]>::is_empty);
    };
    (0..list.len()).all(|index| {
        let pair = list.get(index).and_then(|pair| pair.aggregate());
        pair.is_some_and(|pair| {
            pair.len() == 2 && pair.get(0).and_then(|key| key.as_str()).is_some()
        })
    })
}

impl Pairs<'_> {
    /// Name and value of each pair.
    fn each(
        &self,
        mut with: impl FnMut(&str, usize, AttributeView<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let view = self.0.view();
        let Some(list) = view.aggregate() else {
            return Ok(());
        };
        for index in 0..list.len() {
            let pair = list.get(index).and_then(|pair| pair.aggregate());
            let Some((key, value)) = pair.and_then(|pair| pair.get(0).zip(pair.get(1))) else {
                continue;
            };
            with(key.as_str().unwrap_or_default(), index, value)?;
        }
        Ok(())
    }

    /// Adds the values.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a value of a kind that operations don't have, `AlreadyExists` for a name that is there twice.
    pub(super) fn add_to(&self, attrs: &mut OpAttrs) -> Result<(), Error> {
        self.each(|name, index, value| {
            let decoded = match value.dense() {
                Some(_) => Some(AttrValue::Dense(self.dense(index)?)),
                None => decode(value),
            };
            let decoded = decoded.ok_or_else(|| unknown(name))?;
            attrs.set_named(name, decoded).map(|_| ())
        })
    }

    /// Adds the values, which are names of functions.
    ///
    /// # Errors
    ///
    /// See [`add_to`](Self::add_to).
    pub(super) fn add_functions_to(&self, attrs: &mut OpAttrs) -> Result<(), Error> {
        self.each(|name, _, value| {
            let function = value.as_str().ok_or_else(|| unknown(name))?;
            let function = AttrValue::Function(Text::new(function));
            attrs.set_named(name, function).map(|_| ())
        })
    }

    /// Returns the dense value of the pair at `index`, where it lies.
    fn dense(&self, index: usize) -> Result<DenseHostTensor, Error> {
        let elements = Elements {
            pairs: self.0.hold(),
            index,
        };
        let view = elements.value().and_then(|value| value.dense());
        let view = view.ok_or_else(|| Error::internal("the value was dense"))?;
        let metadata = TensorMetadata::new(view.dtype, TensorShape::from_i64(view.shape)?);
        DenseHostTensor::new(metadata, HostBuffer::from_owner(elements))
    }
}

fn unknown(name: &str) -> Error {
    let name = name.escape_debug();
    Error::invalid_argument(format!(
        "attribute '{name}': operations have no such attributes"
    ))
}

/// The elements of a dense value, held by their program.
struct Elements {
    pairs: HeldAttribute,
    index: usize,
}

impl Elements {
    fn value(&self) -> Option<AttributeView<'_>> {
        self.pairs
            .view()
            .aggregate()?
            .get(self.index)?
            .aggregate()?
            .get(1)
    }
}

impl AsRef<[u8]> for Elements {
    fn as_ref(&self) -> &[u8] {
        let dense = self.value().and_then(|value| value.dense());
        dense.map_or(&[], |dense| dense.bytes)
    }
}

/// Reads a value of which the file says what it is, as of all values in lists of different kinds; dense values are
/// copied.
pub(super) fn decode(view: AttributeView<'_>) -> Option<AttrValue> {
    if let Some(text) = view.as_str() {
        return Some(AttrValue::Text(Text::new(text)));
    }
    if let Some(dtype) = view.as_dtype() {
        return Some(AttrValue::DType(dtype));
    }
    if let Some(shape) = view.shape() {
        return Some(AttrValue::Shape(partial_shape(shape)?));
    }
    if let Some(list) = view.aggregate() {
        let children: Option<Vec<_>> = (0..list.len())
            .map(|index| decode(list.get(index)?))
            .collect();
        return Some(AttrValue::Aggregate(children?.into()));
    }
    if let Some(dense) = view.dense() {
        let shape = TensorShape::from_i64(dense.shape).ok()?;
        let metadata = TensorMetadata::new(dense.dtype, shape);
        let bytes = HostBuffer::from_owner(dense.bytes.to_vec());
        return DenseHostTensor::new(metadata, bytes)
            .ok()
            .map(AttrValue::Dense);
    }
    scalar(view).or_else(|| list(view))
}

pub(super) fn partial_shape(view: ShapeView<'_>) -> Option<PartialTensorShape> {
    match view {
        ShapeView::Unranked => Some(PartialTensorShape::UNRANKED),
        ShapeView::Ranked(extents) => PartialTensorShape::from_i64(extents).ok(),
    }
}

fn scalar(view: AttributeView<'_>) -> Option<AttrValue> {
    /// `first!(as_i32 i32)` reads the first kind that fits.
    macro_rules! first {
        ($($read:ident)*) => {$(
            if let Some(number) = view.$read() {
                return Some(number.into_attr());
            }
        )*};
    }
    first!(as_bool as_i8 as_i16 as_i32 as_i64 as_u8 as_u16 as_u32 as_u64 as_f32 as_f64);
    if let Some(bits) = view.as_f16_bits() {
        return Some(F16(bits).into_attr());
    }
    Some(BF16(view.as_bf16_bits()?).into_attr())
}

fn list(view: AttributeView<'_>) -> Option<AttrValue> {
    let AttributeType::Array(dtype) = view.listed_type()? else {
        return None;
    };
    let numbers = match dtype {
        DType::I1 => {
            let bytes = view.array::<u8>()?;
            let truths: Vec<Bool> = bytes.iter().map(|byte| Bool::from(*byte != 0)).collect();
            Numbers::new(&truths)
        }
        DType::F16 => Numbers::new(
            &view
                .array::<u16>()?
                .iter()
                .map(|x| F16(*x))
                .collect::<Vec<_>>(),
        ),
        DType::Bf16 => Numbers::new(
            &view
                .array::<u16>()?
                .iter()
                .map(|x| BF16(*x))
                .collect::<Vec<_>>(),
        ),
        DType::Ui8 => Numbers::new(view.array::<u8>()?),
        DType::Ui16 => Numbers::new(view.array::<u16>()?),
        DType::Ui32 => Numbers::new(view.array::<u32>()?),
        DType::Ui64 => Numbers::new(view.array::<u64>()?),
        DType::I8 => Numbers::new(view.array::<i8>()?),
        DType::I16 => Numbers::new(view.array::<i16>()?),
        DType::I32 => Numbers::new(view.array::<i32>()?),
        DType::I64 => Numbers::new(view.array::<i64>()?),
        DType::F32 => Numbers::new(view.array::<f32>()?),
        DType::F64 => Numbers::new(view.array::<f64>()?),
        _ => return None,
    };
    Some(AttrValue::List(numbers))
}
