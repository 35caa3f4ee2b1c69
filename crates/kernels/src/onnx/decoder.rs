//! `ImageDecoder`: decodes pictures in one of these formats: JPEG, JPEG 2000, PNG, WebP, TIFF, BMP, PNM.
//!
//! What is decoded becomes bytes of one, two, three or four channels first, then what is asked for; transparency is
//! dropped.

use std::io::Cursor;
use std::sync::Arc;

use tfrt_host::memory::{Block, HostBuffer};
use tfrt_host::{Error, HostAllocator};
use tfrt_tensor::{DType, DenseHostTensor, Tensor, TensorMetadata, TensorShape};

use super::{NodeCall, Operations, Outputs};

mod formats;
mod plain;

pub(super) const OPERATIONS: &Operations = &[("onnx.ImageDecoder", image_decoder)];

/// The most bytes of a picture: a file of a few bytes may promise any number of them.
const MAX_BYTES: usize = 1 << 30;

/// `ImageDecoder(bytes)`, attribute `pixel_format`: `[height, width, channels]`.
fn image_decoder(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    if x.dtype() != DType::Ui8 || x.shape().rank() != 1 {
        let message = format_args!("is expected to be a list of bytes, found {}", x.metadata());
        return Err(node.inputs.error(0, message));
    }
    let format = match node.attributes.string_or("pixel_format", "RGB")? {
        "RGB" => PixelFormat::Rgb,
        "BGR" => PixelFormat::Bgr,
        "Grayscale" => PixelFormat::Gray,
        other => {
            let message = format_args!("is expected to be RGB, BGR or Grayscale, found '{other}'");
            return Err(node.attributes.error("pixel_format", message));
        }
    };
    let (bytes, allocator) = (
        x.buffer().clone(),
        node.execution.host().allocator().clone(),
    );
    let decoded = node.execution.enqueue(move || -> Result<Tensor, Error> {
        let picture = decode(&bytes, &allocator)?;
        picture.into_format(format, &allocator).map(Tensor::from)
    });
    let mut outputs = Outputs::new();
    outputs.push(decoded.into_any());
    Ok(outputs)
}

/// The channels that a caller asks for.
#[derive(Clone, Copy)]
enum PixelFormat {
    Rgb,
    Bgr,
    Gray,
}

/// A decoded picture: the bytes of its pixels, row by row.
struct Picture {
    width: usize,
    height: usize,
    /// The number of channels: gray, gray and opacity, red, green and blue, or these and opacity.
    n_channels: usize,
    // Invariant: as many as width, height and channels say.
    pixels: Vec<u8>,
    /// The reservation for the pixels and the decoder, whose memory does not come from the host.
    _aside: Block,
}

impl Picture {
    /// Reserves memory for a picture, and for a decoder that takes `per_byte` more bytes for each of the picture's.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is larger than pictures may be, or has no channels; `ResourceExhausted` if there is
    /// no memory for it.
    fn new(
        [width, height, n_channels]: [usize; 3],
        per_byte: usize,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<Picture, Error> {
        let len = width
            .checked_mul(height)
            .and_then(|n| n.checked_mul(n_channels));
        let len = len.filter(|len| *len <= MAX_BYTES && (1..=4).contains(&n_channels));
        let len = len.ok_or_else(|| {
            failed(format_args!(
                "it promises {width} by {height} pixels of {n_channels} channels"
            ))
        })?;
        let aside = Block::reserve(allocator, len.saturating_mul(1 + per_byte));
        let aside = aside.ok_or_else(|| no_memory(len))?;
        let mut pixels = Vec::new();
        let room = pixels.try_reserve_exact(len);
        room.map_err(|_| no_memory(len))?;
        pixels.resize(len, 0);
        Ok(Picture {
            width,
            height,
            n_channels,
            pixels,
            _aside: aside,
        })
    }

    /// Converts to the channels that are asked for: `[height, width, channels]`.
    fn into_format(
        self,
        format: PixelFormat,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<DenseHostTensor, Error> {
        let n_wanted = match format {
            PixelFormat::Rgb | PixelFormat::Bgr => 3,
            PixelFormat::Gray => 1,
        };
        let shape = TensorShape::new(&[self.height, self.width, n_wanted])?;
        let metadata = TensorMetadata::new(DType::Ui8, shape);
        let mut tensor = DenseHostTensor::zeroed(allocator, metadata)?;
        let out = tensor.elements_mut::<u8>()?.unwrap_or_default();
        let pixels = self.pixels.chunks_exact(self.n_channels);
        for (pixel, out) in pixels.zip(out.chunks_exact_mut(n_wanted)) {
            let [red, green, blue] = match pixel {
                [red, green, blue, ..] => [*red, *green, *blue],
                [gray, ..] => [*gray; 3],
                [] => [0; 3],
            };
            match format {
                PixelFormat::Rgb => out.copy_from_slice(&[red, green, blue]),
                PixelFormat::Bgr => out.copy_from_slice(&[blue, green, red]),
                PixelFormat::Gray => out[0] = luminance(red, green, blue),
            }
        }
        Ok(tensor)
    }
}

#[cold]
fn no_memory(len: usize) -> Error {
    Error::resource_exhausted(format!(
        "ImageDecoder: no memory for a picture of {len} bytes"
    ))
}

/// Returns the luminance of a pixel by ITU-R 601, in parts of 65536, rounded.
fn luminance(red: u8, green: u8, blue: u8) -> u8 {
    let sum = u32::from(red) * 19595 + u32::from(green) * 38470 + u32::from(blue) * 7471;
    // The parts add up to 65536.
    u8::try_from((sum + 0x8000) >> 16).unwrap_or(u8::MAX)
}

fn decode(bytes: &HostBuffer, allocator: &Arc<dyn HostAllocator>) -> Result<Picture, Error> {
    let reading = bytes.read()?;
    let bytes: &[u8] = &reading;
    match bytes {
        [0xff, 0xd8, 0xff, ..] => formats::jpeg(bytes, allocator),
        [0x89, b'P', b'N', b'G', ..] => formats::png(bytes, allocator),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => formats::webp(bytes, allocator),
        [b'I', b'I', 42, 0, ..] | [b'M', b'M', 0, 42, ..] => {
            formats::tiff(Cursor::new(bytes), allocator)
        }
        [0, 0, 0, 12, b'j', b'P', b' ', b' ', ..] | [0xff, 0x4f, 0xff, 0x51, ..] => {
            formats::jpeg_2000(bytes, allocator)
        }
        [b'B', b'M', ..] => plain::bmp(bytes, allocator),
        [b'P', b'1'..=b'6', ..] => plain::pnm(bytes, allocator),
        _ => Err(failed(
            "it begins like none of JPEG, JPEG 2000, PNG, WebP, TIFF, BMP and PNM",
        )),
    }
}

#[cold]
fn failed(reason: impl std::fmt::Display) -> Error {
    Error::invalid_argument(format!(
        "ImageDecoder: the picture can't be decoded: {reason}"
    ))
}
