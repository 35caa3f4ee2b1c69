//! Codecs of tensors, shapes, sequences and maps ([`CODECS`]).
//!
//! A tensor's head is its format, its type and its extents; what follows is by format:
//!
//! | Format | Head | Parts |
//! | --- | --- | --- |
//! | dense | | the elements, where they lie |
//! | scalar | the one element | |
//! | coo | the number of values | indices, then values |
//! | string | | the lengths, as 64 bits each, then all strings |
//!
//! Elements are little-endian, as in memory. Of sequences and maps the tensors follow each other.

use std::sync::Arc;

use tfrt_host::codec::{DecodeContext, Decoder, Encoder, ValueCodec, expect};
use tfrt_host::memory::{HostBuffer, MemoryReservation};
use tfrt_host::{AnyAsyncValue, DType, Error, HostAllocator, Value};

use crate::{
    CooHostTensor, DenseHostTensor, FixedRankShape, Map, Maps, NoValue, Optional,
    PartialTensorShape, ScalarHostTensor, Sequence, StringHostTensor, Tensor, TensorMetadata,
    TensorShape,
};

/// The codecs of all types of values that this crate has.
pub const CODECS: &[ValueCodec] = &[
    of::<Tensor>(),
    of::<Sequence>(),
    of::<Optional>(),
    of::<NoValue>(),
    of::<Map>(),
    of::<Maps>(),
    of::<TensorShape>(),
    of::<PartialTensorShape>(),
    of::<FixedRankShape<0>>(),
    of::<FixedRankShape<1>>(),
    of::<FixedRankShape<2>>(),
    of::<FixedRankShape<3>>(),
];

const DENSE: u8 = 0;
const SCALAR: u8 = 1;
const COO: u8 = 2;
const STRING: u8 = 3;

/// Minimum bytes of a tensor's head: format, type, rank.
const MIN_TENSOR_BYTES: usize = 3;

/// A type of values that has a codec.
trait HasCodec: Value {
    fn write(&self, encoder: &mut Encoder) -> Result<(), Error>;
    fn read(decoder: &mut Decoder<'_>, context: &DecodeContext<'_>) -> Result<Self, Error>;
}

const fn of<T: HasCodec>() -> ValueCodec {
    ValueCodec {
        type_name: T::NAME,
        version: 1,
        encode: |value, encoder| expect::<T>(value)?.write(encoder),
        decode: |decoder, context| Ok(AnyAsyncValue::new(T::read(decoder, context)?)),
    }
}

impl HasCodec for Tensor {
    fn write(&self, encoder: &mut Encoder) -> Result<(), Error> {
        let begin = |encoder: &mut Encoder, format, metadata: &TensorMetadata| {
            encoder.u8(format);
            encoder.u8(metadata.dtype.byte());
            write_extents(&metadata.shape, encoder);
        };
        match self {
            Tensor::Dense(_) | Tensor::Growable(_) => {
                let tensor = self.as_dense()?;
                begin(encoder, DENSE, tensor.metadata());
                encoder.part(tensor.buffer().clone());
            }
            Tensor::Scalar(tensor) => {
                begin(encoder, SCALAR, tensor.metadata());
                encoder.bytes(tensor.element_bytes());
            }
            Tensor::Coo(tensor) => {
                begin(encoder, COO, tensor.metadata());
                encoder.usize(tensor.values().n_elements());
                encoder.part(tensor.indices().buffer().clone());
                encoder.part(tensor.values().buffer().clone());
            }
            Tensor::String(tensor) => {
                begin(encoder, STRING, tensor.metadata());
                let lengths = tensor.strings().iter().map(|string| string.len() as u64);
                encoder.own_part(lengths.flat_map(u64::to_le_bytes).collect());
                encoder.own_part(tensor.strings().concat());
            }
            Tensor::Object(tensor) => {
                let metadata = tensor.metadata();
                return Err(Error::invalid_argument(format!(
                    "a tensor of {metadata} can't be stored or sent: its elements are objects of this process"
                )));
            }
            Tensor::Device(tensor) => {
                let (metadata, name) = (tensor.metadata(), tensor.device().name());
                return Err(Error::invalid_argument(format!(
                    "a tensor of {metadata} on the device {name} can't be stored or sent: transfer it to the host"
                )));
            }
        }
        Ok(())
    }

    fn read(decoder: &mut Decoder<'_>, context: &DecodeContext<'_>) -> Result<Tensor, Error> {
        let (format, dtype) = (decoder.u8()?, decoder.u8()?);
        let dtype = DType::from_byte(dtype)
            .ok_or_else(|| decoder.wrong(format_args!("a type of elements, found {dtype}")))?;
        let metadata = TensorMetadata::new(dtype, read_extents(decoder)?);
        match format {
            DENSE => {
                let elements = decoder.part()?;
                dense(metadata, elements, context.allocator()).map(Tensor::Dense)
            }
            SCALAR => {
                let bytes = decoder.bytes(dtype.size_bytes().unwrap_or(0))?;
                let tensor = ScalarHostTensor::from_element_bytes(metadata, bytes);
                tensor.map(Tensor::Scalar).ok_or_else(|| {
                    decoder.wrong(format_args!("elements of one size, found {dtype}"))
                })
            }
            COO => {
                let n_values = decoder.usize()?;
                let indices = TensorShape::new(&[n_values, metadata.shape.rank()])?;
                let indices = TensorMetadata::new(DType::I64, indices);
                let values = TensorMetadata::new(dtype, TensorShape::new(&[n_values])?);
                let indices = dense(indices, decoder.part()?, context.allocator())?;
                let values = dense(values, decoder.part()?, context.allocator())?;
                CooHostTensor::new(metadata.shape, indices, values).map(Tensor::Coo)
            }
            STRING if dtype == DType::String => strings(decoder, metadata.shape, context),
            _ => Err(decoder.wrong(format_args!(
                "a format of tensors of {dtype}, found {format}"
            ))),
        }
    }
}

/// Writes a tensor as a part of a value.
///
/// # Errors
///
/// Those of the codec of tensors.
pub fn write_tensor(tensor: &Tensor, encoder: &mut Encoder) -> Result<(), Error> {
    tensor.write(encoder)
}

/// Reads a tensor that is a part of a value; see [`write_tensor`].
///
/// # Errors
///
/// Those of the codec of tensors.
pub fn read_tensor(
    decoder: &mut Decoder<'_>,
    context: &DecodeContext<'_>,
) -> Result<Tensor, Error> {
    Tensor::read(decoder, context)
}

/// Returns a part as a dense tensor; as a copy if the part is not aligned for its elements.
fn dense(
    metadata: TensorMetadata,
    part: HostBuffer,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<DenseHostTensor, Error> {
    let alignment = metadata.dtype.alignment_bytes().unwrap_or(1);
    match part.address().is_multiple_of(alignment) {
        true => DenseHostTensor::new(metadata, part),
        false => DenseHostTensor::from_bytes(allocator, metadata, &part.read()?),
    }
}

fn strings(
    decoder: &mut Decoder<'_>,
    shape: TensorShape,
    context: &DecodeContext<'_>,
) -> Result<Tensor, Error> {
    let (lengths, bytes) = (decoder.part()?, decoder.part()?);
    let (lengths, bytes) = (lengths.read()?, bytes.read()?);
    let (lengths, others) = lengths.as_chunks::<8>();
    if !others.is_empty() || shape.n_elements() != Some(lengths.len()) {
        let found = lengths.len();
        return Err(decoder.wrong(format_args!(
            "a length for each string of shape {shape}, found {found}"
        )));
    }
    let lengths = || {
        let lengths = lengths.iter().map(|length| u64::from_le_bytes(*length));
        lengths.map(|length| usize::try_from(length).unwrap_or(usize::MAX))
    };
    let found = bytes.len();
    let sum = lengths().try_fold(0_usize, |sum, length| sum.checked_add(length));
    if sum != Some(found) {
        return Err(decoder.wrong(format_args!(
            "as many bytes of strings as the lengths say, found {found}"
        )));
    }
    let mut rest: &[u8] = &bytes;
    let list = lengths().map(|length| {
        let (string, others) = rest.split_at(length);
        rest = others;
        string.to_vec()
    });
    StringHostTensor::collect(context.allocator(), shape, list).map(Tensor::String)
}

fn write_extents(shape: &TensorShape, encoder: &mut Encoder) {
    // A shape has 255 dimensions at most.
    encoder.u8(u8::try_from(shape.rank()).unwrap_or(u8::MAX));
    for extent in shape.extents() {
        encoder.usize(extent);
    }
}

fn read_extents(decoder: &mut Decoder<'_>) -> Result<TensorShape, Error> {
    let rank = decoder.u8()?;
    let extents = (0..rank).map(|_| decoder.usize());
    TensorShape::new(&extents.collect::<Result<Vec<usize>, Error>>()?)
}

impl HasCodec for Sequence {
    fn write(&self, encoder: &mut Encoder) -> Result<(), Error> {
        encoder.usize(self.tensors().len());
        let mut tensors = self.tensors().iter();
        tensors.try_for_each(|tensor| tensor.write(encoder))
    }

    fn read(decoder: &mut Decoder<'_>, context: &DecodeContext<'_>) -> Result<Sequence, Error> {
        let n_tensors = decoder.count(MIN_TENSOR_BYTES)?;
        let (mut tensors, mut aside) = (Vec::new(), MemoryReservation::new(context.allocator()));
        for _ in 0..n_tensors {
            if !aside.add(Sequence::BYTES_PER_TENSOR) {
                let message = format!("there is no memory for a sequence of {n_tensors} tensors");
                return Err(Error::resource_exhausted(message));
            }
            tensors.push(Tensor::read(decoder, context)?);
        }
        Ok(Sequence::set_aside(tensors, aside))
    }
}

impl HasCodec for Optional {
    fn write(&self, encoder: &mut Encoder) -> Result<(), Error> {
        match self {
            Optional::Nothing => {
                encoder.u8(0);
                Ok(())
            }
            Optional::Tensor(tensor) => {
                encoder.u8(1);
                tensor.write(encoder)
            }
            Optional::Sequence(sequence) => {
                encoder.u8(2);
                sequence.write(encoder)
            }
        }
    }

    fn read(decoder: &mut Decoder<'_>, context: &DecodeContext<'_>) -> Result<Optional, Error> {
        match decoder.u8()? {
            0 => Ok(Optional::Nothing),
            1 => Tensor::read(decoder, context).map(Optional::Tensor),
            2 => Sequence::read(decoder, context).map(Optional::Sequence),
            found => Err(decoder.wrong(format_args!("0, 1 or 2, found {found}"))),
        }
    }
}

impl HasCodec for NoValue {
    fn write(&self, _: &mut Encoder) -> Result<(), Error> {
        Ok(())
    }

    fn read(_: &mut Decoder<'_>, _: &DecodeContext<'_>) -> Result<NoValue, Error> {
        Ok(NoValue)
    }
}

/// `pairs!(Map)` makes a type of keys and values, which has `keys`, `values` and `new`, [`HasCodec`].
macro_rules! pairs {
    ($($type:ident),*) => {$(
        impl HasCodec for $type {
            fn write(&self, encoder: &mut Encoder) -> Result<(), Error> {
                self.keys().write(encoder)?;
                self.values().write(encoder)
            }

            fn read(decoder: &mut Decoder<'_>, context: &DecodeContext<'_>) -> Result<Self, Error> {
                let keys = Tensor::read(decoder, context)?;
                $type::new(keys, Tensor::read(decoder, context)?)
            }
        }
    )*};
}

pairs!(Map, Maps);

impl HasCodec for TensorShape {
    fn write(&self, encoder: &mut Encoder) -> Result<(), Error> {
        write_extents(self, encoder);
        Ok(())
    }

    fn read(decoder: &mut Decoder<'_>, _: &DecodeContext<'_>) -> Result<Self, Error> {
        read_extents(decoder)
    }
}

/// Whether the rank is known, then the rank, then the extents, with -1 for an unknown one.
impl HasCodec for PartialTensorShape {
    fn write(&self, encoder: &mut Encoder) -> Result<(), Error> {
        let Some(extents) = self.extents() else {
            encoder.u8(0);
            return Ok(());
        };
        encoder.u8(1);
        encoder.u8(u8::try_from(extents.len()).unwrap_or(u8::MAX));
        for extent in extents {
            encoder.u64(extent.unwrap_or(u64::MAX));
        }
        Ok(())
    }

    fn read(decoder: &mut Decoder<'_>, _: &DecodeContext<'_>) -> Result<Self, Error> {
        match decoder.u8()? {
            0 => Ok(PartialTensorShape::UNRANKED),
            1 => {
                let rank = decoder.u8()?;
                let extents = (0..rank).map(|_| decoder.array().map(i64::from_le_bytes));
                PartialTensorShape::from_i64(&extents.collect::<Result<Vec<i64>, Error>>()?)
            }
            found => Err(decoder.wrong(format_args!("0 or 1, found {found}"))),
        }
    }
}

impl<const RANK: usize> HasCodec for FixedRankShape<RANK>
where
    FixedRankShape<RANK>: Value,
{
    fn write(&self, encoder: &mut Encoder) -> Result<(), Error> {
        self.extents()
            .iter()
            .for_each(|extent| encoder.usize(*extent));
        Ok(())
    }

    fn read(decoder: &mut Decoder<'_>, _: &DecodeContext<'_>) -> Result<Self, Error> {
        let extents = (0..RANK).map(|_| decoder.usize());
        let extents = extents.collect::<Result<Vec<usize>, Error>>()?;
        FixedRankShape::new(&TensorShape::new(&extents)?)
    }
}

#[cfg(test)]
mod tests;
