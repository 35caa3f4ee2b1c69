//! [`Twister`]: the Mersenne Twister MT19937 (Matsumoto and Nishimura, 1998), of NumPy's `RandomState`.

const N: usize = 624;
const M: usize = 397;

/// A generator of random numbers.
pub(super) struct Twister {
    state: [u32; N],
    index: usize,
}

impl Twister {
    /// Makes the generator of a seed, of which the low 32 bits count.
    pub(super) fn new(seed: i64) -> Twister {
        let [a, b, c, d, ..] = seed.to_le_bytes();
        let mut state = [u32::from_le_bytes([a, b, c, d]); N];
        for index in 1..N {
            let last = state[index - 1];
            let mixed = (last ^ (last >> 30)).wrapping_mul(1_812_433_253);
            state[index] = mixed.wrapping_add(u32::try_from(index).unwrap_or(0));
        }
        Twister { state, index: N }
    }

    fn refill(&mut self) {
        for index in 0..N {
            let (own, next) = (self.state[index], self.state[(index + 1) % N]);
            let joined = (own & 0x8000_0000) | (next & 0x7fff_ffff);
            let odd = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[index] = self.state[(index + M) % N] ^ (joined >> 1) ^ odd;
        }
        self.index = 0;
    }

    fn next(&mut self) -> u32 {
        if self.index == N {
            self.refill();
        }
        let mut word = self.state[self.index];
        self.index += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    /// Returns a number of 53 bits, at least 0 and below 1.
    pub(super) fn uniform(&mut self) -> f64 {
        let (high, low) = (f64::from(self.next() >> 5), f64::from(self.next() >> 6));
        (high * 67_108_864.0 + low) / 9_007_199_254_740_992.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_definition() {
        // The first of the seed 5489, which the authors publish.
        assert_eq!(Twister::new(5489).next(), 3_499_211_612);
        let mut of_zero = Twister::new(0);
        assert!((of_zero.uniform() - 0.548_813_503_927_324_8).abs() < 1e-15);
    }
}
