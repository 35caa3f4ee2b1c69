//! Formats that crates decode.

use std::io::Cursor;

use hayro_jpeg2000::{DecodeSettings, DecoderContext, Image};
use tfrt_host::Error;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::{MAX_BYTES, Picture, failed};

pub(super) fn jpeg(bytes: &[u8]) -> Result<Picture, Error> {
    let options = DecoderOptions::default().jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(Cursor::new(bytes), options);
    decoder
        .decode_headers()
        .map_err(|error| failed(format_args!("{error:?}")))?;
    let (width, height) = decoder
        .dimensions()
        .ok_or_else(|| failed("it has no size"))?;
    let mut picture = Picture::new(width, height, 3)?;
    let decoded = decoder.decode_into(&mut picture.pixels);
    decoded.map_err(|error| failed(format_args!("{error:?}")))?;
    Ok(picture)
}

pub(super) fn png(bytes: &[u8]) -> Result<Picture, Error> {
    let limits = png::Limits { bytes: MAX_BYTES };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), limits);
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
    let mut reader = decoder.read_info().map_err(failed)?;
    let (width, height) = (reader.info().width as usize, reader.info().height as usize);
    let (color, _) = reader.output_color_type();
    let mut picture = Picture::new(width, height, color.samples())?;
    if reader.output_buffer_size() != Some(picture.pixels.len()) {
        return Err(failed("its rows have another length than its size says"));
    }
    reader.next_frame(&mut picture.pixels).map_err(failed)?;
    Ok(picture)
}

pub(super) fn webp(bytes: &[u8]) -> Result<Picture, Error> {
    let mut decoder = image_webp::WebPDecoder::new(Cursor::new(bytes)).map_err(failed)?;
    decoder.set_memory_limit(MAX_BYTES);
    let (width, height) = decoder.dimensions();
    let n_channels = if decoder.has_alpha() { 4 } else { 3 };
    let mut picture = Picture::new(width as usize, height as usize, n_channels)?;
    decoder.read_image(&mut picture.pixels).map_err(failed)?;
    Ok(picture)
}

pub(super) fn tiff(bytes: Cursor<&[u8]>) -> Result<Picture, Error> {
    let mut decoder = tiff::decoder::Decoder::new(bytes).map_err(failed)?;
    let (width, height) = decoder.dimensions().map_err(failed)?;
    let n_channels = match decoder.colortype().map_err(failed)? {
        tiff::ColorType::Gray(8) => 1,
        tiff::ColorType::GrayA(8) => 2,
        tiff::ColorType::RGB(8) => 3,
        tiff::ColorType::RGBA(8) => 4,
        other => return Err(failed(format_args!("its colours are {other:?}"))),
    };
    let mut picture = Picture::new(width as usize, height as usize, n_channels)?;
    // Only now: the decoder makes room for what the file promises.
    match decoder.read_image().map_err(failed)? {
        tiff::decoder::DecodingResult::U8(pixels) if pixels.len() == picture.pixels.len() => {
            picture.pixels = pixels;
            Ok(picture)
        }
        _ => Err(failed("its rows have another length than its size says")),
    }
}

pub(super) fn jpeg_2000(bytes: &[u8]) -> Result<Picture, Error> {
    let told = |error| failed(format_args!("{error:?}"));
    let image = Image::new(bytes, &DecodeSettings::default()).map_err(told)?;
    let n_channels =
        usize::from(image.color_space().num_channels()) + usize::from(image.has_alpha());
    let mut picture = Picture::new(image.width() as usize, image.height() as usize, n_channels)?;
    let mut context = DecoderContext::default();
    let pixels = image.decode(&mut context).map_err(told)?.data_u8();
    if pixels.len() != picture.pixels.len() {
        return Err(failed("its rows have another length than its size says"));
    }
    picture.pixels = pixels;
    Ok(picture)
}
