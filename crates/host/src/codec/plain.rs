//! Codecs of the values that need no tensors: numbers, chains, texts, buffers.

use tfrt_async::{AnyAsyncValue, Chain, Error, Value};

use super::{DecodeContext, Decoder, Encoder, ValueCodec, expect};
use crate::kernel::{BF16, Complex, F16};
use crate::memory::HostBuffer;

/// A value of a fixed number of bytes.
trait Fixed: Value + Copy {
    fn write(self, encoder: &mut Encoder);
    fn read(decoder: &mut Decoder<'_>) -> Result<Self, Error>;
}

const fn fixed<T: Fixed>() -> ValueCodec {
    ValueCodec {
        type_name: T::NAME,
        version: 1,
        encode: |value, encoder| {
            expect::<T>(value)?.write(encoder);
            Ok(())
        },
        decode: |decoder, _| Ok(AnyAsyncValue::new(T::read(decoder)?)),
    }
}

/// Implements [`Fixed`] for numbers, as their little-endian bytes: `numbers!(u8, i8)`.
macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Fixed for $type {
            fn write(self, encoder: &mut Encoder) {
                encoder.bytes(&self.to_le_bytes());
            }

            fn read(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
                decoder.array().map(<$type>::from_le_bytes)
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);

impl Fixed for bool {
    fn write(self, encoder: &mut Encoder) {
        encoder.u8(self.into());
    }

    fn read(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        match decoder.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            found => Err(decoder.wrong(format_args!("0 or 1, found {found}"))),
        }
    }
}

impl Fixed for F16 {
    fn write(self, encoder: &mut Encoder) {
        self.0.write(encoder);
    }

    fn read(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        u16::read(decoder).map(F16)
    }
}

impl Fixed for BF16 {
    fn write(self, encoder: &mut Encoder) {
        self.0.write(encoder);
    }

    fn read(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        u16::read(decoder).map(BF16)
    }
}

impl<T: Fixed> Fixed for Complex<T>
where
    Complex<T>: Value,
{
    fn write(self, encoder: &mut Encoder) {
        self.real.write(encoder);
        self.imaginary.write(encoder);
    }

    fn read(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        let (real, imaginary) = (T::read(decoder)?, T::read(decoder)?);
        Ok(Complex { real, imaginary })
    }
}

/// Encodes a chain as no bytes.
impl Fixed for Chain {
    fn write(self, _: &mut Encoder) {}

    fn read(_: &mut Decoder<'_>) -> Result<Self, Error> {
        Ok(Chain)
    }
}

fn encode_text(value: &AnyAsyncValue, encoder: &mut Encoder) -> Result<(), Error> {
    encoder.str(expect::<String>(value)?);
    Ok(())
}

fn decode_text(decoder: &mut Decoder<'_>, _: &DecodeContext<'_>) -> Result<AnyAsyncValue, Error> {
    decoder
        .str()
        .map(|text| AnyAsyncValue::new(text.to_owned()))
}

fn encode_buffer(value: &AnyAsyncValue, encoder: &mut Encoder) -> Result<(), Error> {
    encoder.part(expect::<HostBuffer>(value)?.clone());
    Ok(())
}

fn decode_buffer(decoder: &mut Decoder<'_>, _: &DecodeContext<'_>) -> Result<AnyAsyncValue, Error> {
    decoder.part().map(AnyAsyncValue::new)
}

/// The codecs of plain types.
pub(crate) const CODECS: &[ValueCodec] = &[
    fixed::<bool>(),
    fixed::<u8>(),
    fixed::<u16>(),
    fixed::<u32>(),
    fixed::<u64>(),
    fixed::<i8>(),
    fixed::<i16>(),
    fixed::<i32>(),
    fixed::<i64>(),
    fixed::<f32>(),
    fixed::<f64>(),
    fixed::<F16>(),
    fixed::<BF16>(),
    fixed::<Complex<f32>>(),
    fixed::<Complex<f64>>(),
    fixed::<Chain>(),
    ValueCodec {
        type_name: String::NAME,
        version: 1,
        encode: encode_text,
        decode: decode_text,
    },
    ValueCodec {
        type_name: HostBuffer::NAME,
        version: 1,
        encode: encode_buffer,
        decode: decode_buffer,
    },
];
