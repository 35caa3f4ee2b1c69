//! Sound as tensors: WAV files, mixed to the channels that the model takes, resampled, and laid out.
//!
//! Samples are floats from -1 to 1; a model that takes integers of 16 bits is given these.

use std::io::Read;
use std::sync::Arc;

use hound::{SampleFormat, WavReader};
use tfrt::HostAllocator;
use tfrt::host::memory::Block;
use tfrt::model::{Dim, TensorType};
use tfrt::tensor::{DType, Tensor, TensorShape};

use super::numbers;
use super::resample::{n_resampled, resample};
use super::scalars::Scalar;

/// The most bytes of a sound at the rate of the model: a header of a few bytes may state any rate.
const MAX_BYTES: usize = 1 << 30;

/// Returns whether bytes begin like a WAV file.
pub fn is_sound(bytes: &[u8]) -> bool {
    bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WAVE")
}

/// Returns the head of a WAV file, its format, and what begins with its data, without the chunks between: one of an odd
/// length has a byte behind it, which the decoder does not know of. What has no such parts comes back as it is.
fn parts(bytes: &[u8]) -> (&[u8], &[u8], &[u8]) {
    let (head, all) = bytes.split_at(bytes.len().min(12));
    let (mut rest, mut format) = (all, None);
    while let Some((id, behind)) = rest.split_first_chunk::<4>()
        && let Some((len, behind)) = behind.split_first_chunk::<4>()
    {
        let len = usize::try_from(u32::from_le_bytes(*len)).unwrap_or(usize::MAX);
        match (id, format) {
            (b"data", Some(format)) => return (head, format, rest),
            (b"data", None) => break,
            (b"fmt ", _) => format = rest.get(..len.saturating_add(8)),
            _ => {}
        }
        let Some(next) = behind.get(len.saturating_add(len % 2)..) else {
            break;
        };
        rest = next;
    }
    (head, all, &[])
}

/// A decoded sound: samples from -1 to 1, channel after channel.
struct Sound {
    n_channels: usize,
    rate: u32,
    samples: Vec<f32>,
    /// A reservation of as much of the host's memory as the samples take, so that limits count them.
    _reserved: Block,
}

/// Reads a sound for an input of a model, at a rate in samples a second; without one, at its own.
///
/// # Errors
///
/// Why it is no sound, or why it can't be what the model takes.
pub fn read(
    bytes: &[u8],
    wanted: &TensorType,
    rate: Option<u32>,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Tensor, String> {
    let form = SoundSpec::new(wanted)?;
    let sound = Sound::decode(bytes, allocator)?.with_channels(form.n_channels, allocator)?;
    let sound = match rate.filter(|rate| *rate != sound.rate) {
        Some(rate) => sound.resampled(rate, allocator)?,
        None => sound,
    };
    let n_channels = sound.n_channels;
    let n_samples = sound.samples.len() / n_channels.max(1);
    let extents: Vec<usize> = match form.layout {
        Layout::Samples => vec![n_samples],
        Layout::Rows { has_batch } => [
            &vec![1; usize::from(has_batch)][..],
            &[n_channels, n_samples],
        ]
        .concat(),
        Layout::Columns => vec![1, n_samples, n_channels],
    };
    let size = form.element.size_bytes().unwrap_or(size_of::<f64>());
    let n_bytes = sound.samples.len().saturating_mul(size);
    let _reserved = Block::reserve(allocator, n_bytes).ok_or_else(|| no_memory(n_bytes))?;
    let mut out = Vec::new();
    let reserved = out.try_reserve_exact(n_bytes);
    reserved.map_err(|_| no_memory(n_bytes))?;
    let mut push = |index: usize| {
        let cell = form.cell(sound.samples[index]);
        numbers::push(&mut out, form.element, &cell)
    };
    match form.layout {
        Layout::Columns => {
            let places = (0..n_samples).flat_map(|at| (0..n_channels).map(move |c| (c, at)));
            places
                .map(|(channel, at)| channel * n_samples + at)
                .try_for_each(&mut push)?;
        }
        _ => (0..sound.samples.len()).try_for_each(&mut push)?,
    }
    let shape = TensorShape::new(&extents).map_err(|error| error.message().to_owned())?;
    numbers::dense(form.element, shape, &out, allocator)
}

fn no_memory(n_bytes: usize) -> String {
    format!("there is no memory for a sound of {n_bytes} bytes")
}

/// Reserves memory for samples.
fn room(
    n_samples: Option<usize>,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<(Vec<f32>, Block), String> {
    let n_bytes = n_samples.and_then(|n| n.checked_mul(size_of::<f32>()));
    let n_bytes = n_bytes.filter(|n| *n <= MAX_BYTES).ok_or_else(|| {
        let n_samples = n_samples.map_or_else(String::new, |n| format!(" of {n} samples"));
        format!("a sound{n_samples} is larger than the limit of {MAX_BYTES} bytes")
    })?;
    let aside = Block::reserve(allocator, n_bytes).ok_or_else(|| no_memory(n_bytes))?;
    let mut samples = Vec::new();
    let reserved = samples.try_reserve_exact(n_bytes / size_of::<f32>());
    reserved.map_err(|_| no_memory(n_bytes))?;
    Ok((samples, aside))
}

/// The form of sound that an input of a model takes.
struct SoundSpec {
    layout: Layout,
    /// The number of channels; as many as the file has if it is not said.
    n_channels: Option<usize>,
    element: DType,
}

/// The order of dimensions.
#[derive(Clone, Copy)]
enum Layout {
    /// Samples alone.
    Samples,
    /// Channels, then samples, behind a batch or not.
    Rows { has_batch: bool },
    /// A batch, samples, then channels.
    Columns,
}

impl SoundSpec {
    fn new(wanted: &TensorType) -> Result<SoundSpec, String> {
        let element = wanted.element.unwrap_or(DType::F32);
        if numbers::kind(element) != numbers::Kind::Float && element != DType::I16 {
            return Err(format!("a sound can't be elements of {element}"));
        }
        let unknown = [Dim::Fixed(1), Dim::Unknown];
        let dims = wanted.dims.as_deref().unwrap_or(&unknown);
        let fixed = |dim: &Dim| match dim {
            Dim::Fixed(extent) => Some(*extent),
            _ => None,
        };
        let (layout, n_channels) = match dims {
            [_] => (Layout::Samples, Some(1)),
            // One row is a batch of one, or one channel.
            [rows, _] => (
                Layout::Rows { has_batch: false },
                Some(fixed(rows).unwrap_or(1)),
            ),
            [batch, second, third] => {
                if let Some(n) = fixed(batch)
                    && n != 1
                {
                    return Err(format!("the model takes {n} sounds at once, found one"));
                }
                let are_columns =
                    fixed(third).is_some_and(|n| n <= 2) && fixed(second).is_none_or(|n| n > 2);
                match are_columns {
                    true => (Layout::Columns, fixed(third)),
                    false => (Layout::Rows { has_batch: true }, fixed(second)),
                }
            }
            _ => {
                return Err(format!(
                    "a sound has from 1 to 3 dimensions, batch, channels and samples, but the model takes {wanted}"
                ));
            }
        };
        Ok(SoundSpec {
            layout,
            n_channels,
            element,
        })
    }

    fn cell(&self, sample: f32) -> Scalar {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "it is rounded, and saturates"
        )]
        match self.element {
            DType::I16 => Scalar::Integer(((sample * 32_768.0).round() as i16).into()),
            _ => Scalar::Single(sample),
        }
    }
}

impl Sound {
    /// Reads a WAV file.
    fn decode(bytes: &[u8], allocator: &Arc<dyn HostAllocator>) -> Result<Sound, String> {
        let failed = |error: hound::Error| format!("not a readable WAV file: {error}");
        let (head, format, data) = parts(bytes);
        let mut reader = WavReader::new(head.chain(format).chain(data)).map_err(failed)?;
        let spec = reader.spec();
        let n_channels = usize::from(spec.channels);
        if spec.sample_rate == 0 {
            return Err("not a readable WAV file: it has no samples a second".to_owned());
        }
        // Each takes a byte or more.
        let n_promised = usize::try_from(reader.len()).unwrap_or(usize::MAX);
        if n_promised > bytes.len() {
            return Err(format!(
                "not a readable WAV file: its header promises {n_promised} samples, but it has {} bytes",
                bytes.len()
            ));
        }
        let (mut interleaved, _reserved) = room(Some(n_promised), allocator)?;
        match spec.sample_format {
            SampleFormat::Float => {
                for sample in reader.samples::<f32>() {
                    interleaved.push(sample.map_err(failed)?);
                }
            }
            SampleFormat::Int => {
                let scale = (f64::from(spec.bits_per_sample) - 1.0).exp2();
                for sample in reader.samples::<i32>() {
                    let sample = f64::from(sample.map_err(failed)?) / scale;
                    #[allow(clippy::cast_possible_truncation, reason = "rounded to the nearest")]
                    interleaved.push(sample as f32);
                }
            }
        }
        let n_samples = interleaved.len() / n_channels.max(1);
        let (mut samples, aside) = room(Some(interleaved.len()), allocator)?;
        for channel in 0..n_channels {
            let all = interleaved.iter().skip(channel).step_by(n_channels);
            samples.extend(all.take(n_samples));
        }
        Ok(Sound {
            n_channels,
            rate: spec.sample_rate,
            samples,
            _reserved: aside,
        })
    }

    /// Mixes the channels to one, or makes several of one.
    fn with_channels(
        self,
        wanted: Option<usize>,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<Sound, String> {
        let n_own = self.n_channels;
        let wanted = wanted.unwrap_or(n_own);
        if wanted == n_own {
            return Ok(self);
        }
        let n_samples = self.samples.len() / n_own.max(1);
        let (mut samples, aside) = room(n_samples.checked_mul(wanted), allocator)?;
        match (n_own, wanted) {
            (_, 1) => samples.extend((0..n_samples).map(|at| {
                let all = (0..n_own).map(|channel| self.samples[channel * n_samples + at]);
                all.sum::<f32>() / f32::from(u16::try_from(n_own).unwrap_or(u16::MAX))
            })),
            (1, _) => (0..wanted).for_each(|_| samples.extend_from_slice(&self.samples)),
            _ => {
                return Err(format!(
                    "the sound has {n_own} channels, but the model takes {wanted}"
                ));
            }
        }
        Ok(Sound {
            n_channels: wanted,
            samples,
            _reserved: aside,
            ..self
        })
    }

    fn resampled(self, rate: u32, allocator: &Arc<dyn HostAllocator>) -> Result<Sound, String> {
        let n_own = self.samples.len() / self.n_channels.max(1);
        let n_samples = n_resampled(n_own, self.rate, rate);
        let n_all = n_samples.and_then(|n| n.checked_mul(self.n_channels));
        let (mut samples, aside) = room(n_all, allocator)?;
        for channel in self.samples.chunks_exact(n_own.max(1)) {
            resample(channel, self.rate, rate, &mut samples);
        }
        Ok(Sound {
            rate,
            samples,
            _reserved: aside,
            ..self
        })
    }
}
