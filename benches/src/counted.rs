//! Instructions for each unit of the defended cases, as `instructions.txt` has them.
//!
//! A line is a case, a number, and whose it is by the name that tables have for it: `chain 120.4
//! tfrt, ordered`. `cargo xtask instructions` counts them again under callgrind and compares;
//! `--bless` writes the file.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::folders;

/// The counts of instructions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts(Vec<Count>);

/// The instructions for each unit of one case.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    /// The case.
    pub case: String,
    /// The instructions for a unit.
    pub instructions: f64,
    /// The contender that ran the case.
    pub who: String,
}

impl Counts {
    /// Returns the file that is kept, or the one that `TFRT_BENCH_INSTRUCTIONS` names.
    pub fn path() -> PathBuf {
        let other = std::env::var_os("TFRT_BENCH_INSTRUCTIONS");
        other.map_or_else(|| folders::here().join("instructions.txt"), PathBuf::from)
    }

    /// Reads a file; lines that begin with `#` say nothing.
    ///
    /// # Errors
    ///
    /// Those of reading it, and `InvalidData` for a line of another form.
    pub fn read(path: &Path) -> io::Result<Counts> {
        let text = fs::read_to_string(path)?;
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let counts: Option<Vec<Count>> = lines.map(Count::parse).collect();
        counts.map(Counts).ok_or_else(|| {
            let message = format!("{}: expected lines 'CASE NUMBER WHO'", path.display());
            io::Error::new(io::ErrorKind::InvalidData, message)
        })
    }

    /// Adds a count.
    pub fn push(&mut self, count: Count) {
        self.0.push(count);
    }

    /// Returns all counts.
    pub fn all(&self) -> &[Count] {
        &self.0
    }

    /// Returns the count for a case and a contender.
    pub fn of(&self, case: &str, who: &str) -> Option<f64> {
        let mut counts = self.0.iter();
        let count = counts.find(|count| count.case == case && count.who == who)?;
        Some(count.instructions)
    }
}

impl Count {
    fn parse(line: &str) -> Option<Count> {
        let (case, rest) = line.split_once(' ')?;
        let (instructions, who) = rest.trim_start().split_once(' ')?;
        Some(Count {
            case: case.to_owned(),
            instructions: instructions.parse().ok()?,
            who: who.trim_start().to_owned(),
        })
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for count in &self.0 {
            let (case, who) = (&count.case, &count.who);
            writeln!(f, "{case:<12} {:9.1}  {who}", count.instructions)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written() {
        let mut counts = Counts::default();
        for (case, instructions) in [("chain", 120.5), ("fan", 9.0)] {
            counts.push(Count {
                case: case.to_owned(),
                instructions,
                who: "tfrt, ordered".to_owned(),
            });
        }
        let text = counts.to_string();
        let read: Option<Vec<Count>> = text.lines().map(Count::parse).collect();
        assert_eq!(read, Some(counts.0.clone()));
        assert_eq!(counts.of("fan", "tfrt, ordered"), Some(9.0));
        assert_eq!(counts.of("fan", "tokio"), None);
        assert_eq!(Count::parse("fan many tfrt"), None);
    }
}
