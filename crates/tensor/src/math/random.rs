//! Counter-based random numbers: each depends on a seed and a place alone, so that they are the same on any number of
//! threads.
//!
//! Each place has a number of its own: the place, times an odd constant, plus the seed, through the mixing function
//! of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014). These are no numbers
//! for secrets.

/// A counter-based generator of random numbers.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::random::CounterRng;
///
/// let source = CounterRng::new(7);
/// assert_eq!(source.uniform(3), CounterRng::new(7).uniform(3));
/// assert_ne!(source.uniform(3), source.uniform(4));
/// assert!((0.0..1.0).contains(&source.uniform(5)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CounterRng {
    seed: u64,
}

/// 2^64 divided by the golden ratio, made odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl CounterRng {
    /// Returns the generator of a seed; seeds that are close to each other have nothing in common.
    pub fn new(seed: u64) -> CounterRng {
        CounterRng { seed: mixed(seed) }
    }

    /// Returns the 64 bits of a place.
    #[inline]
    pub fn bits(self, place: u64) -> u64 {
        mixed(self.seed.wrapping_add(place.wrapping_mul(STEP)))
    }

    /// Returns a number from 0 to below 1: a multiple of 2^-53, each equally likely.
    #[inline]
    pub fn uniform(self, place: u64) -> f64 {
        (self.bits(place) >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Returns a number of the normal distribution around 0 with deviation 1, by the method of Box and Muller.
    #[inline]
    pub fn normal(self, place: u64) -> f64 {
        let place = place.wrapping_mul(2);
        // Above 0, so that there is a logarithm.
        let radius = 1.0 - self.uniform(place);
        let angle = self.uniform(place.wrapping_add(1));
        libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(std::f64::consts::TAU * angle)
    }
}

fn mixed(mut bits: u64) -> u64 {
    bits = bits.wrapping_add(STEP);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: u64 = 100_000;

    fn moments(number: impl Fn(u64) -> f64) -> (f64, f64) {
        let n = N as f64;
        let mean = (0..N).map(&number).sum::<f64>() / n;
        let variance = (0..N)
            .map(|place| (number(place) - mean).powi(2))
            .sum::<f64>()
            / n;
        (mean, variance)
    }

    #[test]
    fn numbers_have_the_moments_of_their_distributions() {
        for seed in [0, 1, u64::MAX] {
            let source = CounterRng::new(seed);
            let (mean, variance) = moments(|place| source.uniform(place));
            assert!((mean - 0.5).abs() < 0.01 && (variance - 1.0 / 12.0).abs() < 0.01);
            let (mean, variance) = moments(|place| source.normal(place));
            assert!(
                mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03,
                "{mean} {variance}"
            );
        }
    }
}
