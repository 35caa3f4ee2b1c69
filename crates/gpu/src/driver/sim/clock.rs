//! [`Clock`]: a vector clock, by which two accesses are known to be ordered or not.
//!
//! Index 0 is the host, which only passes on what it has learned; stream `i` has index `i + 1`. A command's clock holds
//! for each stream the number of its last command that comes before.

/// A vector clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock(Vec<u32>);

impl Clock {
    /// Returns the number at an index.
    pub(super) fn at(&self, index: usize) -> u32 {
        self.0.get(index).copied().unwrap_or(0)
    }

    /// Counts one more at an index.
    pub(super) fn advance(&mut self, index: usize) -> u32 {
        if self.0.len() <= index {
            self.0.resize(index + 1, 0);
        }
        self.0[index] += 1;
        self.0[index]
    }

    /// Takes what another clock knows.
    pub(super) fn join(&mut self, other: &Clock) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            *own = (*own).max(*other);
        }
    }
}

/// The place of a command in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Epoch {
    pub(super) index: usize,
    pub(super) number: u32,
}

impl Epoch {
    /// Returns whether what has the clock comes after this.
    pub(super) fn is_before(self, clock: &Clock) -> bool {
        clock.at(self.index) >= self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_joined_is_before() {
        let (mut one, mut two) = (Clock::default(), Clock::default());
        let epoch = Epoch {
            index: 3,
            number: one.advance(3),
        };
        two.advance(1);
        assert!(!epoch.is_before(&two));
        two.join(&one);
        assert!(epoch.is_before(&two));
        assert_eq!((two.at(1), two.at(3), two.at(9)), (1, 1, 0));
    }
}
