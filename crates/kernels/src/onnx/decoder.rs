//! `ImageDecoder`: pictures as bytes of files have them, in one of these formats: JPEG, JPEG 2000, PNG, WebP, TIFF,
//! BMP, PNM.
//!
//! What is decoded becomes bytes of one, two, three or four channels first, then what is asked for; transparency is
//! dropped.

use std::io::Cursor;

use tfrt_host::Error;
use tfrt_host::memory::HostBuffer;
use tfrt_tensor::{DType, DenseHostTensor, Tensor};

use super::{Node, Operations, Outputs};

mod formats;
mod plain;

pub(super) const OPERATIONS: &Operations = &[("ImageDecoder", image_decoder)];

/// Pictures have no more bytes than this: a few bytes of a file may promise any number of them.
const MAX_BYTES: usize = 1 << 30;

/// `ImageDecoder(bytes)`, attribute `pixel_format`: `[height, width, channels]`.
fn image_decoder(node: &Node<'_>) -> Result<Outputs, Error> {
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
        let picture = decode(&bytes)?;
        let (extents, pixels) = picture.into_format(format)?;
        DenseHostTensor::from_slice(&allocator, &extents, &pixels).map(Tensor::from)
    });
    let mut outputs = Outputs::new();
    outputs.push(decoded.into_any());
    Ok(outputs)
}

/// The channels that are asked for.
#[derive(Clone, Copy)]
enum PixelFormat {
    Rgb,
    Bgr,
    Gray,
}

/// Bytes in rows.
struct Picture {
    width: usize,
    height: usize,
    /// Gray, gray and opacity, red, green and blue, or these and opacity.
    n_channels: usize,
    // Invariant: as many as width, height and channels say.
    pixels: Vec<u8>,
}

impl Picture {
    /// Room for a picture.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is larger than pictures may be, or has no channels; `ResourceExhausted` if there is
    /// no memory for it.
    fn new(width: usize, height: usize, n_channels: usize) -> Result<Picture, Error> {
        let len = width
            .checked_mul(height)
            .and_then(|n| n.checked_mul(n_channels));
        let len = len.filter(|len| *len <= MAX_BYTES && (1..=4).contains(&n_channels));
        let len = len.ok_or_else(|| {
            failed(format_args!(
                "it promises {width} by {height} pixels of {n_channels} channels"
            ))
        })?;
        let mut pixels = room(len)?;
        pixels.resize(len, 0);
        Ok(Picture {
            width,
            height,
            n_channels,
            pixels,
        })
    }

    fn into_format(self, format: PixelFormat) -> Result<([usize; 3], Vec<u8>), Error> {
        let n_wanted = match format {
            PixelFormat::Rgb | PixelFormat::Bgr => 3,
            PixelFormat::Gray => 1,
        };
        let extents = [self.height, self.width, n_wanted];
        let mut pixels = room(self.width * self.height * n_wanted)?;
        for pixel in self.pixels.chunks_exact(self.n_channels) {
            let [red, green, blue] = match pixel {
                [red, green, blue, ..] => [*red, *green, *blue],
                [gray, ..] => [*gray; 3],
                [] => [0; 3],
            };
            match format {
                PixelFormat::Rgb => pixels.extend([red, green, blue]),
                PixelFormat::Bgr => pixels.extend([blue, green, red]),
                PixelFormat::Gray => pixels.push(luminance(red, green, blue)),
            }
        }
        Ok((extents, pixels))
    }
}

/// An empty list that so many bytes fit into: a few bytes of a file may promise any picture.
fn room(len: usize) -> Result<Vec<u8>, Error> {
    let mut room = Vec::new();
    match room.try_reserve_exact(len) {
        Ok(()) => Ok(room),
        Err(_) => {
            let message = format!("ImageDecoder: no memory for a picture of {len} bytes");
            Err(Error::resource_exhausted(message))
        }
    }
}

/// How bright a pixel is, as ITU-R 601 has it, in parts of 65536, rounded.
fn luminance(red: u8, green: u8, blue: u8) -> u8 {
    let sum = u32::from(red) * 19595 + u32::from(green) * 38470 + u32::from(blue) * 7471;
    // The parts add up to 65536.
    u8::try_from((sum + 0x8000) >> 16).unwrap_or(u8::MAX)
}

fn decode(bytes: &HostBuffer) -> Result<Picture, Error> {
    let reading = bytes.read()?;
    let bytes: &[u8] = &reading;
    match bytes {
        [0xff, 0xd8, 0xff, ..] => formats::jpeg(bytes),
        [0x89, b'P', b'N', b'G', ..] => formats::png(bytes),
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
        ] => formats::webp(bytes),
        [b'I', b'I', 42, 0, ..] | [b'M', b'M', 0, 42, ..] => formats::tiff(Cursor::new(bytes)),
        [0, 0, 0, 12, b'j', b'P', b' ', b' ', ..] | [0xff, 0x4f, 0xff, 0x51, ..] => {
            formats::jpeg_2000(bytes)
        }
        [b'B', b'M', ..] => plain::bmp(bytes),
        [b'P', b'1'..=b'6', ..] => plain::pnm(bytes),
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
