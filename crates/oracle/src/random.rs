//! Random numbers that a seed determines, the same on every machine.

/// A generator of the family SplitMix: one word of state, a step and a mix.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts the sequence of a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).expect("it fits");
        usize::try_from(self.bits() % end).expect("it is below a usize")
    }

    /// Returns a number from `first` to `last`.
    pub fn between(&mut self, first: i32, last: i32) -> i32 {
        let span = u64::from(first.abs_diff(last)) + 1;
        let offset = i64::try_from(self.bits() % span).expect("it has 33 bits");
        i32::try_from(i64::from(first) + offset).expect("it is at most `last`")
    }

    /// Returns true in `percent` of 100 cases.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.bits() % 100 < u64::from(percent)
    }

    /// Returns one of some things.
    pub fn pick<'t, T>(&mut self, things: &'t [T]) -> &'t T {
        &things[self.below(things.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_always() {
        let mut random = Random::new(0);
        assert_eq!(random.bits(), 0xe220_a839_7b1d_cdaf);
        assert!((-3..=3).contains(&random.between(-3, 3)));
        assert_eq!(random.between(5, 5), 5);
    }
}
