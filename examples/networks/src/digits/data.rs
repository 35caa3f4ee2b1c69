//! The images: see `data/README.md` for where they come from.

use std::io::Cursor;
use std::sync::Arc;

use tfrt::asynchronous::SystemAllocator;
use tfrt::{Error, HostAllocator};
use tfrt_tensor::btf::BtfReader;

use crate::random::Random;

/// Zero to nine.
pub const N_CLASSES: usize = 10;
/// The height and width of an image.
const EXTENT: usize = 8;
/// The pixels of an image.
pub const N_PIXELS: usize = EXTENT * EXTENT;
/// The value of a pixel that is all ink.
const INK: f32 = 16.0;

/// An image of a digit, and which it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Digit {
    pixels: [u8; N_PIXELS],
    /// The digit's class.
    pub class: usize,
}

/// Returns all digits, in the order of the file.
///
/// # Errors
///
/// If the file is damaged, which it is not.
pub fn all() -> Result<Vec<Digit>, Error> {
    let file = Cursor::new(include_bytes!("../../data/digits.btf"));
    let allocator: Arc<dyn HostAllocator> = Arc::new(SystemAllocator::new());
    let mut reader = BtfReader::new("digits.btf", file)?;
    let (images, classes) = (reader.read(0, &allocator)?, reader.read(1, &allocator)?);
    let (images, classes) = (images.as_dense()?.read()?, classes.as_dense()?.read()?);
    let (images, _) = images.elements::<u8>()?.as_chunks::<N_PIXELS>();
    let digits = images.iter().zip(classes.elements::<u8>()?);
    let digit = |(pixels, class): (&[u8; N_PIXELS], &u8)| Digit {
        pixels: *pixels,
        class: usize::from(*class),
    };
    Ok(digits.map(digit).collect())
}

/// Draws a fifth of the digits of each class for testing; returns what is left, and these.
pub fn split(digits: Vec<Digit>, seed: u64) -> (Vec<Digit>, Vec<Digit>) {
    let mut random = Random::new(!seed);
    let (mut for_training, mut for_testing) = (Vec::new(), Vec::new());
    for class in 0..N_CLASSES {
        let mut of_class: Vec<&Digit> =
            digits.iter().filter(|digit| digit.class == class).collect();
        random.shuffle(&mut of_class);
        let (test, train) = of_class.split_at((of_class.len() + 2) / 5);
        for_testing.extend(test.iter().copied().cloned());
        for_training.extend(train.iter().copied().cloned());
    }
    (for_training, for_testing)
}

impl Digit {
    /// Returns the pixels, from 0 to 1.
    pub fn unmoved(&self) -> [f32; N_PIXELS] {
        self.pixels.map(|pixel| f32::from(pixel) / INK)
    }

    /// Returns the pixels, from 0 to 1, of the image moved, stretched and slanted a little.
    pub fn moved(&self, random: &mut Random) -> [f32; N_PIXELS] {
        const SHIFT: f32 = 0.75;
        const STRETCH: f32 = 0.12;
        let center = (EXTENT - 1) as f32 / 2.0;
        let (dx, dy) = (random.within(SHIFT), random.within(SHIFT));
        let [a, b, c, d] = [(); 4].map(|()| random.within(STRETCH));
        std::array::from_fn(|index| {
            let (x, y) = (
                (index % EXTENT) as f32 - center,
                (index / EXTENT) as f32 - center,
            );
            let (from_x, from_y) = (x + a * x + b * y + dx, y + c * x + d * y + dy);
            self.between(from_x + center, from_y + center)
        })
    }

    /// Returns the interpolated value between pixels; 0 beyond the edges.
    fn between(&self, x: f32, y: f32) -> f32 {
        let (left, top) = (x.floor(), y.floor());
        let (right_share, bottom_share) = (x - left, y - top);
        let at = |x: f32, y: f32| {
            let within = |at: f32| (0.0..EXTENT as f32).contains(&at);
            match within(x) && within(y) {
                true => f32::from(self.pixels[y as usize * EXTENT + x as usize]) / INK,
                false => 0.0,
            }
        };
        let upper = at(left, top) * (1.0 - right_share) + at(left + 1.0, top) * right_share;
        let lower =
            at(left, top + 1.0) * (1.0 - right_share) + at(left + 1.0, top + 1.0) * right_share;
        upper * (1.0 - bottom_share) + lower * bottom_share
    }
}
