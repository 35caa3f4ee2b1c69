//! Instructions for each unit of the defended cases, as `instructions.txt` has them.
//!
//! A line is a case, an order, and a number: `chain ordered 120.4`. `cargo xtask instructions`
//! counts them again under callgrind and compares; `--bless` writes the file.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::folders;

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts(Vec<Count>);

/// Instructions for each unit of one case.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    /// The case.
    pub case: String,
    /// The order in which its kernels run, or another word for how it is run.
    pub order: String,
    /// Instructions for a unit.
    pub instructions: f64,
}

impl Counts {
    /// The file that is kept, or the one that `TFRT_BENCH_INSTRUCTIONS` names.
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
            let message = format!("{}: expected lines 'CASE ORDER NUMBER'", path.display());
            io::Error::new(io::ErrorKind::InvalidData, message)
        })
    }

    /// Adds what was counted.
    pub fn push(&mut self, count: Count) {
        self.0.push(count);
    }

    /// Everything that was counted.
    pub fn all(&self) -> &[Count] {
        &self.0
    }

    /// What was counted for a case that runs in an order.
    pub fn find(&self, case: &str, order: &str) -> Option<f64> {
        let mut counts = self.0.iter();
        let count = counts.find(|count| count.case == case && count.order == order)?;
        Some(count.instructions)
    }

    /// What was counted for a case, if `who` is one of ours by the name that tables have for it.
    pub fn of(&self, case: &str, who: &str) -> Option<f64> {
        self.find(case, who.strip_prefix("tfrt, ")?)
    }
}

impl Count {
    fn parse(line: &str) -> Option<Count> {
        let mut words = line.split_whitespace();
        let count = Count {
            case: words.next()?.to_owned(),
            order: words.next()?.to_owned(),
            instructions: words.next()?.parse().ok()?,
        };
        words.next().is_none().then_some(count)
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for count in &self.0 {
            let (case, order) = (&count.case, &count.order);
            writeln!(f, "{case:<12} {order:<12} {:8.1}", count.instructions)?;
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
                order: "ordered".to_owned(),
                instructions,
            });
        }
        let text = counts.to_string();
        let read: Option<Vec<Count>> = text.lines().map(Count::parse).collect();
        assert_eq!(read, Some(counts.0.clone()));
        assert_eq!(counts.of("fan", "tfrt, ordered"), Some(9.0));
        assert_eq!(counts.of("fan", "tokio"), None);
        assert_eq!(Count::parse("fan ordered many"), None);
    }
}
