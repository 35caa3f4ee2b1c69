//! Numbers that look random and are the same everywhere: SplitMix64, by Steele, Lea and Flood (2014).

/// A sequence of numbers.
///
/// # Examples
///
/// ```
/// use tfrt_networks::random::Random;
///
/// let mut random = Random::new(7);
/// let mut numbers: Vec<usize> = (0..10).collect();
/// random.shuffle(&mut numbers);
/// assert!((0.0..1.0).contains(&random.unit()) && random.below(6) < 6);
/// assert_eq!(Random::new(7).next_u64(), Random::new(7).next_u64());
/// ```
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Returns the sequence of this number.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Returns the next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns a number from 0 up to, not including, 1; a multiple of 2^-24, so that it is exact.
    pub fn unit(&mut self) -> f32 {
        (self.next_u64() >> 40) as f32 / 16_777_216.0
    }

    /// Returns a number between `-bound` and `bound`.
    pub fn within(&mut self, bound: f32) -> f32 {
        (self.unit() * 2.0 - 1.0) * bound
    }

    /// Returns a number below `n`, each as often but for one part in 2^64 / n; 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        let wide = u128::from(self.next_u64()) * n as u128;
        usize::try_from(wide >> 64).expect("it is below n")
    }

    /// Puts elements into another order, each with the same chance.
    pub fn shuffle<T>(&mut self, elements: &mut [T]) {
        for last in (1..elements.len()).rev() {
            let other = self.below(last + 1);
            elements.swap(last, other);
        }
    }
}
