//! Images as tensors: decoded, resized to what the model takes, normalised, and laid out.
//!
//! Pixels are numbers from 0 to 1, or from 0 to 255 if that is asked for ([`Range`]); then the mean
//! of each channel is subtracted, and what is left divided by its deviation. A model that takes
//! integers is given the bytes as they are.

use std::io::Cursor;
use std::sync::Arc;

use tfrt::HostAllocator;
use tfrt::host::memory::Block;
use tfrt::model::{Dim, TensorType};
use tfrt::tensor::math::resize::{Interpolation, Resize};
use tfrt::tensor::{DType, Tensor, TensorShape, TensorView, TensorViewMut};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::numbers;
use super::scalars::Scalar;

/// The most bytes of a decoded image: a few bytes of a file may promise any number of them.
const MAX_BYTES: usize = 1 << 30;

/// The preparation of images for a model.
#[derive(Clone, Debug, Default)]
pub struct Preparation {
    /// The numbers that are subtracted from each channel; one number is for all.
    pub mean: Vec<f64>,
    /// The numbers that each channel is divided by then.
    pub deviation: Vec<f64>,
    /// The position of channels among the dimensions; found from the model's extents if it is not said.
    pub layout: Option<Layout>,
    /// The range of pixels before `mean` and `deviation`.
    pub range: Range,
}

/// The position of channels among the dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Layout {
    /// Before rows and columns
    Nchw,
    /// Behind them
    Nhwc,
}

/// The range of pixels for a model that takes floats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Range {
    /// From 0 to 1
    #[default]
    Unit,
    /// From 0 to 255
    Byte,
}

/// The bytes that a decoder takes for each byte of a picture: a coefficient of two bytes where it comes in passes, and
/// rows.
const PER_DECODED: usize = 3;

/// A decoded image: bytes in rows, of one channel, three or four.
struct Picture {
    extents: [usize; 3],
    pixels: Vec<u8>,
    /// A reservation of as much of the host's memory as the pixels take, which come from another allocator, so that
    /// limits count them.
    _reserved: Block,
}

/// The allocator whose limits decoded images count against.
#[derive(Clone, Copy)]
struct MemoryBudget<'a>(&'a Arc<dyn HostAllocator>);

impl MemoryBudget<'_> {
    /// Reserves `n_taken` bytes, for an image of `n_bytes`.
    fn set_aside(self, n_taken: Option<usize>, n_bytes: usize) -> Result<Block, String> {
        let block = n_taken.and_then(|n_taken| Block::reserve(self.0, n_taken));
        block.ok_or_else(|| no_memory(n_bytes))
    }

    /// Returns a black picture.
    fn picture(self, extents: [usize; 3]) -> Result<Picture, String> {
        let [height, width, channels] = extents;
        let n_bytes = height
            .checked_mul(width)
            .and_then(|n| n.checked_mul(channels));
        let n_bytes = n_bytes.filter(|n| *n <= MAX_BYTES).ok_or_else(|| {
            format!("an image of {width} by {height} is larger than the limit of {MAX_BYTES} bytes")
        })?;
        let aside = self.set_aside(Some(n_bytes), n_bytes)?;
        let mut pixels = Vec::new();
        let room = pixels.try_reserve_exact(n_bytes);
        room.map_err(|_| no_memory(n_bytes))?;
        pixels.resize(n_bytes, 0);
        Ok(Picture {
            extents,
            pixels,
            _reserved: aside,
        })
    }
}

fn no_memory(n_bytes: usize) -> String {
    format!("there is no memory for an image of {n_bytes} bytes")
}

/// Returns whether bytes begin like an image that can be read.
pub fn is_image(bytes: &[u8]) -> bool {
    is_png(bytes) || is_jpeg(bytes)
}

fn is_png(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x89PNG\r\n\x1a\n")
}

fn is_jpeg(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0xff, 0xd8, 0xff])
}

/// Reads an image for an input of a model.
///
/// # Errors
///
/// Why it is no image, or why it can't be what the model takes.
pub fn read(
    bytes: &[u8],
    wanted: &TensorType,
    how: &Preparation,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Tensor, String> {
    let form = ImageSpec::new(wanted, how)?;
    let room = MemoryBudget(allocator);
    let picture = match is_png(bytes) {
        true => decode_png(bytes, room),
        false => decode_jpeg(bytes, room),
    }?
    .with_channels(form.channels, room)?;
    let [height, width, _] = picture.extents;
    let size = [form.height.unwrap_or(height), form.width.unwrap_or(width)];
    let picture = picture.resized(size, room)?;
    let [height, width, channels] = picture.extents;
    let normal = Normalization::new(how, channels, form.element)?;
    let mut extents = vec![1; usize::from(form.has_batch)];
    extents.extend(match form.layout {
        Layout::Nchw => [channels, height, width],
        Layout::Nhwc => [height, width, channels],
    });
    let n_bytes = picture.pixels.len();
    let n_taken = form.element.size_bytes().unwrap_or(size_of::<f64>());
    let n_taken = n_bytes.checked_mul(n_taken);
    let _reserved = room.set_aside(n_taken, n_bytes)?;
    let mut out = Vec::new();
    let reserved = out.try_reserve_exact(n_taken.unwrap_or(0));
    reserved.map_err(|_| no_memory(n_bytes))?;
    let mut push = |index: usize| {
        let cell = normal.cell(picture.pixels[index], index % channels);
        numbers::push(&mut out, form.element, &cell)
    };
    match form.layout {
        Layout::Nhwc => (0..picture.pixels.len()).try_for_each(&mut push),
        Layout::Nchw => (0..channels).try_for_each(|channel| {
            let mut plane = (channel..picture.pixels.len()).step_by(channels);
            plane.try_for_each(&mut push)
        }),
    }?;
    let shape = TensorShape::new(&extents);
    let shape = shape.map_err(|error| error.message().to_owned())?;
    numbers::dense(form.element, shape, &out, allocator)
}

/// The form of image that an input of a model takes.
struct ImageSpec {
    layout: Layout,
    has_batch: bool,
    channels: Option<usize>,
    height: Option<usize>,
    width: Option<usize>,
    element: DType,
}

impl ImageSpec {
    fn new(wanted: &TensorType, how: &Preparation) -> Result<ImageSpec, String> {
        let element = wanted.element.unwrap_or(DType::F32);
        let kind = numbers::kind(element);
        if !matches!(kind, numbers::Kind::Integer | numbers::Kind::Float) {
            return Err(format!("an image can't be elements of {element}"));
        }
        let unknown = vec![Dim::Unknown; 4];
        let dims = wanted.dims.as_ref().unwrap_or(&unknown);
        let (batch, rest) = match &dims[..] {
            [batch, rest @ ..] if rest.len() == 3 => (Some(batch), rest),
            rest if rest.len() == 3 => (None, rest),
            _ => {
                return Err(format!(
                    "an image has 3 dimensions, or 4 with a batch, but the model takes {wanted}"
                ));
            }
        };
        if let Some(Dim::Fixed(n)) = batch
            && *n != 1
        {
            return Err(format!("the model takes {n} images at once, found one"));
        }
        let fixed = |index: usize| match rest[index] {
            Dim::Fixed(extent) => Some(extent),
            _ => None,
        };
        let may_be_channels = |index| matches!(fixed(index), Some(1 | 3 | 4));
        let layout =
            how.layout
                .unwrap_or_else(|| match may_be_channels(2) && !may_be_channels(0) {
                    true => Layout::Nhwc,
                    false => Layout::Nchw,
                });
        let (channels, height, width) = match layout {
            Layout::Nchw => (fixed(0), fixed(1), fixed(2)),
            Layout::Nhwc => (fixed(2), fixed(0), fixed(1)),
        };
        Ok(ImageSpec {
            layout,
            has_batch: batch.is_some(),
            channels,
            height,
            width,
            element,
        })
    }
}

/// The scaling and normalization of a byte of a channel.
struct Normalization {
    scale: f64,
    mean: Vec<f64>,
    deviation: Vec<f64>,
    is_integer: bool,
}

impl Normalization {
    fn new(how: &Preparation, channels: usize, element: DType) -> Result<Normalization, String> {
        let is_integer = numbers::kind(element) == numbers::Kind::Integer;
        if is_integer && !(how.mean.is_empty() && how.deviation.is_empty()) {
            return Err(format!(
                "--mean and --std are for models that take floats, this one takes {element}"
            ));
        }
        let each = |given: &[f64], option: &str, otherwise: f64| match given {
            [] => Ok(vec![otherwise; channels]),
            [one] => Ok(vec![*one; channels]),
            all if all.len() == channels => Ok(all.to_vec()),
            all => Err(format!(
                "{option} has {} numbers, but the image has {channels} channels",
                all.len()
            )),
        };
        let deviation = each(&how.deviation, "--std", 1.0)?;
        if deviation.contains(&0.0) {
            return Err("--std is what pixels are divided by, which can't be 0".to_owned());
        }
        Ok(Normalization {
            scale: match how.range {
                Range::Unit => 255.0,
                Range::Byte => 1.0,
            },
            mean: each(&how.mean, "--mean", 0.0)?,
            deviation,
            is_integer,
        })
    }

    fn cell(&self, pixel: u8, channel: usize) -> Scalar {
        if self.is_integer {
            return Scalar::Integer(pixel.into());
        }
        let value = f64::from(pixel) / self.scale;
        Scalar::Double((value - self.mean[channel]) / self.deviation[channel])
    }
}

impl Picture {
    /// Converts the picture to grey, to colours, or to colours with opacity.
    fn with_channels(
        self,
        wanted: Option<usize>,
        room: MemoryBudget<'_>,
    ) -> Result<Picture, String> {
        let [height, width, own] = self.extents;
        // What is transparent is shown on nothing: only who asks for opacity gets it.
        let wanted = wanted.unwrap_or(own.min(3));
        if !matches!(wanted, 1 | 3 | 4) {
            return Err(format!(
                "an image has 1 channel, 3 or 4, but the model takes {wanted}"
            ));
        }
        if wanted == own {
            return Ok(self);
        }
        let mut turned = room.picture([height, width, wanted])?;
        let into = turned.pixels.chunks_exact_mut(wanted);
        for (pixel, into) in self.pixels.chunks_exact(own).zip(into) {
            let pixel = match *pixel {
                [grey] => [grey, grey, grey, u8::MAX],
                [red, green, blue] => [red, green, blue, u8::MAX],
                [red, green, blue, opacity] => [red, green, blue, opacity],
                _ => [0; 4],
            };
            match into {
                [into] => *into = grey(pixel),
                into => into.copy_from_slice(&pixel[..wanted]),
            }
        }
        Ok(turned)
    }

    /// Resizes the picture: linear between pixels, whose areas are averaged where it becomes smaller.
    fn resized(
        self,
        [height, width]: [usize; 2],
        room: MemoryBudget<'_>,
    ) -> Result<Picture, String> {
        let [own_height, own_width, channels] = self.extents;
        if [own_height, own_width] == [height, width] {
            return Ok(self);
        }
        let to = [height, width, channels];
        let mut resized = room.picture(to)?;
        let (n_own, n_bytes) = (self.pixels.len(), resized.pixels.len());
        let n_taken = n_own.checked_add(n_bytes);
        let n_taken = n_taken.and_then(|n| n.checked_mul(size_of::<f32>()));
        let _reserved = room.set_aside(n_taken, n_own.max(n_bytes))?;
        let told = |error: tfrt::Error| error.message().to_owned();
        let floats: Vec<f32> = self.pixels.iter().copied().map(f32::from).collect();
        let mut scaled = vec![0.0_f32; n_bytes];
        let interpolation = Interpolation {
            antialias: true,
            ..Interpolation::LINEAR
        };
        let resize = Resize::new(interpolation, &self.extents, &to).map_err(told)?;
        let from = TensorView::new(&floats, &self.extents).map_err(told)?;
        let mut into = TensorViewMut::new(&mut scaled, &to).map_err(told)?;
        resize.run(&from, &mut into).map_err(told)?;
        for (pixel, value) in resized.pixels.iter_mut().zip(scaled) {
            *pixel = byte(value);
        }
        Ok(resized)
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is rounded, and within the range of a byte"
)]
fn byte(value: f32) -> u8 {
    value.round().clamp(0.0, 255.0) as u8
}

/// Returns the brightness that ITU-R BT.601 gives to a colour.
fn grey([red, green, blue, _]: [u8; 4]) -> u8 {
    let [red, green, blue] = [red, green, blue].map(f32::from);
    byte(0.299 * red + 0.587 * green + 0.114 * blue)
}

fn decode_png(bytes: &[u8], room: MemoryBudget<'_>) -> Result<Picture, String> {
    let failed = |error: png::DecodingError| format!("not a readable PNG image: {error}");
    let limits = png::Limits { bytes: MAX_BYTES };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), limits);
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    // It would be unpacked before the size is known.
    decoder.set_ignore_iccp_chunk(true);
    decoder.set_ignore_text_chunk(true);
    let mut reader = decoder.read_info().map_err(failed)?;
    let (width, height) = (reader.info().width as usize, reader.info().height as usize);
    let (color, _) = reader.output_color_type();
    let mut picture = room.picture([height, width, color.samples()])?;
    if reader.output_buffer_size() != Some(picture.pixels.len()) {
        return Err("not a readable PNG image: its rows are of another length".to_owned());
    }
    // Rows that are unpacked.
    let n_bytes = picture.pixels.len();
    let _reserved = room.set_aside(Some(n_bytes), n_bytes)?;
    reader.next_frame(&mut picture.pixels).map_err(failed)?;
    match color {
        png::ColorType::Grayscale | png::ColorType::Rgb | png::ColorType::Rgba => Ok(picture),
        png::ColorType::GrayscaleAlpha => {
            let mut coloured = room.picture([height, width, 4])?;
            let pixels = picture.pixels.chunks_exact(2);
            for (pixel, into) in pixels.zip(coloured.pixels.chunks_exact_mut(4)) {
                into.copy_from_slice(&[pixel[0], pixel[0], pixel[0], pixel[1]]);
            }
            Ok(coloured)
        }
        png::ColorType::Indexed => {
            Err("not a readable PNG image: its palette was not applied".to_owned())
        }
    }
}

fn decode_jpeg(bytes: &[u8], room: MemoryBudget<'_>) -> Result<Picture, String> {
    let failed = |reason: String| format!("not a readable JPEG image: {reason}");
    let options = DecoderOptions::default()
        .set_strict_mode(true)
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(Cursor::new(bytes), options);
    let headers = decoder.decode_headers();
    headers.map_err(|error| failed(format!("{error:?}")))?;
    let Some((width, height)) = decoder.dimensions() else {
        return Err(failed("it has no size".to_owned()));
    };
    let mut picture = room.picture([height, width, 3])?;
    let n_bytes = picture.pixels.len();
    let _reserved = room.set_aside(n_bytes.checked_mul(PER_DECODED), n_bytes)?;
    let decoded = decoder.decode_into(&mut picture.pixels);
    decoded.map_err(|error| failed(format!("{error:?}")))?;
    Ok(picture)
}
