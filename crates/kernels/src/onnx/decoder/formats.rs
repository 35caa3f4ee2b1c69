//! Formats that other crates decode.
//!
//! What these take beside the pixels is set aside for them, as so many bytes for each byte of the picture.

use std::io::Cursor;
use std::sync::Arc;

use hayro_jpeg2000::{DecodeSettings, DecoderContext, Image};
use tfrt_host::{Error, HostAllocator};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::{MAX_BYTES, Picture, failed};

/// Bytes of a JPEG decoder for each of a picture: coefficients of two bytes, if the file is progressive.
const JPEG: usize = 3;
/// Bytes of a PNG decoder for each of a picture: a few rows.
const PNG: usize = 1;
/// Bytes of a WebP decoder for each of a picture: four for each pixel, or planes of brightness and colour, and a
/// canvas.
const WEBP: usize = 3;
/// Bytes of a TIFF decoder for each of a picture: the pixels once more, and a strip or tile.
const TIFF: usize = 2;
/// Bytes of a JPEG 2000 decoder for each of a picture: floats of samples, of coefficients, and of a pass over these;
/// and lists of blocks.
const JPEG_2000: usize = 10;

pub(super) fn jpeg(bytes: &[u8], allocator: &Arc<dyn HostAllocator>) -> Result<Picture, Error> {
    let options = DecoderOptions::default().jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(Cursor::new(bytes), options);
    decoder
        .decode_headers()
        .map_err(|error| failed(format_args!("{error:?}")))?;
    let (width, height) = decoder
        .dimensions()
        .ok_or_else(|| failed("it has no size"))?;
    let mut picture = Picture::new([width, height, 3], JPEG, allocator)?;
    let decoded = decoder.decode_into(&mut picture.pixels);
    decoded.map_err(|error| failed(format_args!("{error:?}")))?;
    Ok(picture)
}

pub(super) fn png(bytes: &[u8], allocator: &Arc<dyn HostAllocator>) -> Result<Picture, Error> {
    let limits = png::Limits { bytes: MAX_BYTES };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), limits);
    // It would be unpacked before the size is known.
    decoder.set_ignore_iccp_chunk(true);
    decoder.set_ignore_text_chunk(true);
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
    let mut reader = decoder.read_info().map_err(failed)?;
    let (width, height) = (reader.info().width as usize, reader.info().height as usize);
    let (color, _) = reader.output_color_type();
    let mut picture = Picture::new([width, height, color.samples()], PNG, allocator)?;
    if reader.output_buffer_size() != Some(picture.pixels.len()) {
        return Err(failed("its rows have another length than its size says"));
    }
    reader.next_frame(&mut picture.pixels).map_err(failed)?;
    Ok(picture)
}

pub(super) fn webp(bytes: &[u8], allocator: &Arc<dyn HostAllocator>) -> Result<Picture, Error> {
    let mut decoder = image_webp::WebPDecoder::new(Cursor::new(bytes)).map_err(failed)?;
    decoder.set_memory_limit(MAX_BYTES);
    let (width, height) = decoder.dimensions();
    let n_channels = if decoder.has_alpha() { 4 } else { 3 };
    let extents = [width as usize, height as usize, n_channels];
    let mut picture = Picture::new(extents, WEBP, allocator)?;
    decoder.read_image(&mut picture.pixels).map_err(failed)?;
    Ok(picture)
}

pub(super) fn tiff(
    bytes: Cursor<&[u8]>,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Picture, Error> {
    check_lists(bytes.get_ref())?;
    let mut decoder = tiff::decoder::Decoder::new(bytes).map_err(failed)?;
    let (width, height) = decoder.dimensions().map_err(failed)?;
    let n_channels = match decoder.colortype().map_err(failed)? {
        tiff::ColorType::Gray(8) => 1,
        tiff::ColorType::GrayA(8) => 2,
        tiff::ColorType::RGB(8) => 3,
        tiff::ColorType::RGBA(8) => 4,
        other => return Err(failed(format_args!("its colours are {other:?}"))),
    };
    let extents = [width as usize, height as usize, n_channels];
    let mut picture = Picture::new(extents, TIFF, allocator)?;
    // Only now: the decoder makes room for what the file promises.
    match decoder.read_image().map_err(failed)? {
        tiff::decoder::DecodingResult::U8(pixels) if pixels.len() == picture.pixels.len() => {
            picture.pixels = pixels;
            Ok(picture)
        }
        _ => Err(failed("its rows have another length than its size says")),
    }
}

/// Refuses a TIFF with a list of more bytes than the file, since the decoder allocates it first.
fn check_lists(bytes: &[u8]) -> Result<(), Error> {
    let is_little = bytes.starts_with(b"II");
    let number = |at: usize, n_bytes: usize| -> Option<usize> {
        let bytes = bytes.get(at..at.checked_add(n_bytes)?)?.iter();
        let shift = |number, byte: &u8| number << 8 | usize::from(*byte);
        Some(match is_little {
            true => bytes.rev().fold(0, shift),
            false => bytes.fold(0, shift),
        })
    };
    let start = number(4, 4).unwrap_or(0);
    let n_entries = number(start, 2).unwrap_or(0);
    for index in 0..n_entries {
        // A tag, a type, a count and a place or value.
        let entry = start + 2 + 12 * index;
        let Some((ty, count)) = number(entry + 2, 2).zip(number(entry + 4, 4)) else {
            break;
        };
        let size = match ty {
            3 | 8 => 2,
            4 | 9 | 11 | 13 => 4,
            5 | 10 | 12 | 16..=18 => 8,
            _ => 1,
        };
        if count.saturating_mul(size) > bytes.len() {
            let tag = number(entry, 2).unwrap_or(0);
            return Err(failed(format_args!(
                "its tag {tag} has {count} elements, which it is too short for"
            )));
        }
    }
    Ok(())
}

pub(super) fn jpeg_2000(
    bytes: &[u8],
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Picture, Error> {
    let told = |error| failed(format_args!("{error:?}"));
    let image = Image::new(bytes, &DecodeSettings::default()).map_err(told)?;
    let n_channels =
        usize::from(image.color_space().num_channels()) + usize::from(image.has_alpha());
    let extents = [image.width() as usize, image.height() as usize, n_channels];
    let mut picture = Picture::new(extents, JPEG_2000, allocator)?;
    let mut context = DecoderContext::default();
    let pixels = image.decode(&mut context).map_err(told)?.data_u8();
    if pixels.len() != picture.pixels.len() {
        return Err(failed("its rows have another length than its size says"));
    }
    picture.pixels = pixels;
    Ok(picture)
}
