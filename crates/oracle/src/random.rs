//! Random numbers that a seed determines, alike on every machine; or choices that somebody else
//! made.

/// A source of numbers.
///
/// A seed starts a generator of the family SplitMix: one word of state, a step and
/// a mix. Choices are bytes, read from the first to the last, as few for a number
/// as it takes: so a change of one byte changes one choice, and what a search
/// learns about bytes holds for programs. After the last choice all are zero.
#[derive(Clone, Debug)]
pub struct Random(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Seed(u64),
    Choices(std::vec::IntoIter<u8>),
}

impl Random {
    /// Starts the sequence of a seed.
    pub fn new(seed: u64) -> Random {
        Random(Kind::Seed(seed))
    }

    /// Takes bytes for choices.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt_oracle::random::Random;
    ///
    /// let mut random = Random::of_choices(&[7, 0x30, 0x02]);
    /// assert_eq!((random.below(5), random.below(1_000), random.below(9)), (2, 0x230, 0));
    /// ```
    pub fn of_choices(choices: &[u8]) -> Random {
        Random(Kind::Choices(Vec::from(choices).into_iter()))
    }

    /// Returns whether all choices were read; a seed never ends.
    pub fn is_over(&self) -> bool {
        matches!(&self.0, Kind::Choices(bytes) if bytes.len() == 0)
    }

    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.reduced(u64::MAX)
    }

    /// Returns 64 bits of a seed, or choices that make a number of at least 0 to `last`.
    fn reduced(&mut self, last: u64) -> u64 {
        match &mut self.0 {
            Kind::Seed(state) => {
                *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                mixed ^ (mixed >> 31)
            }
            Kind::Choices(bytes) => {
                let n_bytes = (u64::BITS - last.leading_zeros()).div_ceil(8);
                let mut next = || u64::from(bytes.next().unwrap_or(0));
                (0..n_bytes).fold(0, |value, at| value | next() << (8 * at))
            }
        }
    }

    /// Returns a number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).expect("it fits");
        usize::try_from(self.reduced(end - 1) % end).expect("it is below a usize")
    }

    /// Returns a number from `first` to `last`.
    pub fn between(&mut self, first: i32, last: i32) -> i32 {
        let span = u64::from(first.abs_diff(last)) + 1;
        let offset = i64::try_from(self.reduced(span - 1) % span).expect("it has 33 bits");
        i32::try_from(i64::from(first) + offset).expect("it is at most `last`")
    }

    /// Returns true in `percent` of 100 cases. A choice of zero is against it.
    pub fn chance(&mut self, percent: u32) -> bool {
        let drawn = self.reduced(99) % 100;
        match self.0 {
            Kind::Seed(_) => drawn < u64::from(percent),
            Kind::Choices(_) => drawn + u64::from(percent) >= 100,
        }
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
