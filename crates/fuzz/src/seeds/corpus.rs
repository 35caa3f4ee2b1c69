//! Small corpora as numbers: `tests/fuzz/seeds.txt` lists, for each target, numbers from which its inputs are made.
//!
//! A number chooses one of the inputs that a search starts from, and how it is changed. The numbers were chosen
//! one after the other: each makes something be said that those before it did not
//! (`cargo run -p tfrt-fuzz --example choose`).

use std::fs;

use tfrt_oracle::random::Random;

use super::{inputs, root};
use crate::mutate;

/// The most changes that are made of an input.
const MAX_CHANGES: usize = 8;

/// Inputs of a target, each of which a number stands for.
pub struct Corpus {
    target: String,
    starts: Vec<Vec<u8>>,
}

impl Corpus {
    /// Returns the corpus of the target of a name.
    pub fn of(target: &str) -> Corpus {
        Corpus {
            target: target.to_owned(),
            starts: inputs(target),
        }
    }

    /// Returns the input that a number stands for.
    pub fn input(&self, number: u64) -> Vec<u8> {
        let mut random = Random::new(number);
        let mut input = random.pick(&self.starts).clone();
        for _ in 0..random.below(MAX_CHANGES + 1) {
            let changed = match &*self.target {
                _ if random.chance(25) => None,
                "parse" | "round_trip" => mutate::text(&input, &mut random),
                "open" | "reopen" => mutate::file(&input, &mut random),
                _ => None,
            };
            input = changed.unwrap_or_else(|| mutate::bytes(&input, &mut random));
        }
        input
    }

    /// Returns the numbers that `tests/fuzz/seeds.txt` lists for the target: a line `TARGET ..: NUMBER NUMBER ..`, which
    /// targets share whose inputs are of one kind.
    ///
    /// # Panics
    ///
    /// If the file can't be read, has no such line, or something else than numbers in it.
    pub fn listed(&self) -> Vec<u64> {
        let path = root().join("tests/fuzz/seeds.txt");
        let text = fs::read_to_string(path).expect("the list can be read");
        let of_target = |line: &str| {
            let (targets, numbers) = line.split_once(':')?;
            let mut targets = targets.split(' ');
            targets
                .any(|target| target == self.target)
                .then(|| numbers.to_owned())
        };
        let numbers = text.lines().find_map(of_target);
        let numbers = numbers.unwrap_or_else(|| panic!("no line of {}", self.target));
        let number = |word: &str| word.parse().expect("a number");
        numbers.split_whitespace().map(number).collect()
    }
}
