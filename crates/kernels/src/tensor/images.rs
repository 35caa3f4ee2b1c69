//! Kernels that read, decode and resize images, as inputs of a network.
//!
//! Strings of programs are text. Where the original's hold bytes, ours hold a character for each byte, from
//! U+0000 to U+00FF ([`bytes_of`], [`text_of`]); `tfrt_test.read_bytes_from_file` makes such a string.

#![allow(
    clippy::ptr_arg,
    reason = "an operand is borrowed as the type that stands in the register"
)]

use std::fs::{self, File};
use std::io::{Cursor, Read};

use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{AsyncValue, DType, Error, ExecutionContext, HostContext};
use tfrt_tensor::math::resize::{CoordinateMode, Interpolation, Resize};
use tfrt_tensor::{DenseHostTensor, Tensor, TensorMetadata, TensorShape};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use example::Example;

mod example;

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt_test.read_bytes_from_file", read_file)
        .add("tfrt_test.decode_jpeg", decode)
        .add("tfrt_test.resize_bilinear", resize)
        .add("tfrt_test.parse_example_from_bytes", parse)
        .add("tfrt_test.get_bytes_field_from_example", bytes_field)
        .add("tfrt_test.get_int64_field_from_example", integer_field);
}

/// The most bytes of files and images, whatever the host allows.
const MAX_BYTES: usize = 1 << 30;

/// Returns the bytes that a string holds.
fn bytes_of(string: &str) -> Result<Vec<u8>, Error> {
    let bytes: Result<Vec<u8>, _> = string.chars().map(u8::try_from).collect();
    bytes.map_err(|_| {
        let message = "expected a string of bytes, found characters that are none";
        Error::invalid_argument(message).with_note(
            "a byte is a character from U+0000 to U+00FF: `tfrt_test.read_bytes_from_file` reads such a string",
        )
    })
}

/// Returns the string that holds some bytes.
fn text_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// `%s = "tfrt_test.read_bytes_from_file"(%path)`
fn read_file(path: &String, execution: &ExecutionContext) -> AsyncValue<String> {
    let path = path.clone();
    let limit = execution.host().limits().max_memory.unwrap_or(MAX_BYTES);
    // A character beyond U+007F takes two bytes.
    let limit = (limit / 2).min(MAX_BYTES) as u64;
    execution.enqueue_blocking(move || {
        let failed = |reason: String| {
            Error::unknown(format!("failed to read from file {path}")).with_note(reason)
        };
        let metadata = fs::metadata(&path).map_err(|error| failed(error.to_string()))?;
        if !metadata.is_file() {
            // A pipe might never end, nor even be opened.
            return Err(failed("it is not a regular file".to_owned()));
        }
        let mut bytes = Vec::new();
        File::open(&path)
            .and_then(|file| file.take(limit + 1).read_to_end(&mut bytes))
            .map_err(|error| failed(error.to_string()))?;
        if bytes.len() as u64 > limit {
            let message = format!("a file exceeds the limit of {limit} bytes");
            return Err(Error::resource_exhausted(message));
        }
        Ok(text_of(&bytes))
    })
}

/// `%image = tfrt_test.decode_jpeg %data`, on the workers of the queue
///
/// # Shapes
///
/// `image: u8 [height, width, 3]`.
fn decode(data: &String, execution: &ExecutionContext) -> Result<AsyncValue<Tensor>, Error> {
    let bytes = bytes_of(data)?;
    if !bytes.starts_with(&[0xff, 0xd8, 0xff]) {
        let message = "image does not have jpeg format";
        return Err(Error::invalid_argument(message));
    }
    let host = execution.host().clone();
    Ok(execution.enqueue(move || decode_now(&bytes, &host)))
}

fn decode_now(bytes: &[u8], host: &HostContext) -> Result<Tensor, Error> {
    let failed =
        |reason: String| Error::invalid_argument("failed to decode jpeg").with_note(reason);
    let options = DecoderOptions::default()
        .set_strict_mode(true)
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(Cursor::new(bytes), options);
    let headers = decoder.decode_headers();
    headers.map_err(|error| failed(format!("{error:?}")))?;
    let (width, height) = decoder
        .dimensions()
        .ok_or_else(|| failed("it has no size".to_owned()))?;
    let metadata = TensorMetadata::new(DType::Ui8, TensorShape::new(&[height, width, 3])?);
    // From the host's memory, and before anything is decoded: a few bytes may promise a large image.
    let mut image = DenseHostTensor::zeroed(host.allocator(), metadata)?;
    if let Some(pixels) = image.elements_mut::<u8>()? {
        let decoded = decoder.decode_into(pixels);
        decoded.map_err(|error| failed(format!("{error:?}")))?;
    }
    Ok(image.into())
}

/// `%scaled = tfrt_test.resize_bilinear %image, %height, %width`: the first pixels of both images coincide
///
/// # Shapes
///
/// `image: u8 [h, w, channels]`, `scaled: f32 [height, width, channels]`.
fn resize(
    image: &Tensor,
    height: i64,
    width: i64,
    execution: &ExecutionContext,
) -> Result<AsyncValue<Tensor>, Error> {
    let image = image.as_dense()?;
    let (own, allocator) = (image.shape(), execution.host().allocator());
    let &[_, _, channels] = &own.to_dims()[..] else {
        let message =
            format!("resize_bilinear expects an image of 3 dimensions, found shape {own}");
        return Err(Error::invalid_argument(message));
    };
    let channels = i64::try_from(channels).unwrap_or(i64::MAX);
    let shape = TensorShape::from_i64(&[height, width, channels])?;
    let scaled = DenseHostTensor::zeroed(allocator, TensorMetadata::new(DType::F32, shape))?;
    let metadata = TensorMetadata::new(DType::F32, own.clone());
    let mut floats = DenseHostTensor::zeroed(allocator, metadata)?;
    if let Some(floats) = floats.elements_mut::<f32>()? {
        let reading = image.read()?;
        for (float, pixel) in floats.iter_mut().zip(reading.elements::<u8>()?) {
            *float = (*pixel).into();
        }
    }
    let interpolation = Interpolation {
        coordinates: CoordinateMode::Asymmetric,
        ..Interpolation::LINEAR
    };
    let resize = Resize::new(interpolation, &own.to_dims(), &scaled.shape().to_dims())?;
    let done = resize.run_into(execution, &floats, &scaled)?;
    Ok(done.map(move |_| scaled.clone().into()))
}

/// `%message = tfrt_test.parse_example_from_bytes %data`
fn parse(data: &String) -> Result<Example, Error> {
    Example::parse(&bytes_of(data)?)
}

/// `%bytes = tfrt_test.get_bytes_field_from_example %example, %key`
fn bytes_field(example: &Example, key: &String) -> Result<String, Error> {
    example.bytes(key).map(text_of)
}

/// `%integer = tfrt_test.get_int64_field_from_example %example, %key`
fn integer_field(example: &Example, key: &String) -> Result<i64, Error> {
    example.integer(key)
}
