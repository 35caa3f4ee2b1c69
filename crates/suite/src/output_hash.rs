//! Hashes of the bits of outputs: FNV-1a of 64 bits over types, shapes and elements.

use std::fmt::Write;

use tfrt::Error;
use tfrt::model::Datum;
use tfrt::tensor::math::packed_gemm::InstructionSet;
use tfrt::tensor::{Optional, Tensor};

use crate::verdict::Verdict;

/// The hash of a case's outputs so far.
pub struct OutputHash(u64);

impl OutputHash {
    /// Returns the hash of nothing.
    pub fn new() -> OutputHash {
        OutputHash(0xcbf2_9ce4_8422_2325)
    }

    /// Adds an output.
    ///
    /// # Errors
    ///
    /// A message, for values whose elements can't be read.
    pub fn add(&mut self, output: &Datum) -> Result<(), String> {
        match output {
            Datum::Tensor(tensor) | Datum::Optional(Optional::Tensor(tensor)) => {
                self.tensor(tensor)
            }
            Datum::Sequence(sequence) | Datum::Optional(Optional::Sequence(sequence)) => {
                self.text(&format!("{} tensors", sequence.tensors().len()));
                sequence
                    .tensors()
                    .iter()
                    .try_for_each(|tensor| self.tensor(tensor))
            }
            other => {
                self.text(&other.kind().to_string());
                Ok(())
            }
        }
    }

    /// Returns the hash.
    pub fn finish(&self) -> u64 {
        self.0
    }

    fn tensor(&mut self, tensor: &Tensor) -> Result<(), String> {
        self.text(&tensor.metadata().to_string());
        if let Tensor::String(strings) = tensor {
            for string in strings.strings() {
                self.bytes(string);
                self.bytes(&[0xff]);
            }
            return Ok(());
        }
        let told = |error: Error| error.message().to_owned();
        let dense = tensor.as_dense().map_err(told)?;
        self.bytes(dense.read().map_err(told)?.bytes());
        Ok(())
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
        self.bytes(&[0]);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// Returns a line for each case: instruction set, name, and the hash, or a dash if there are no outputs to hash.
pub fn lines(set: InstructionSet, verdicts: &[Verdict]) -> String {
    let mut text = String::new();
    for verdict in verdicts {
        let (set, name) = (set.name(), &verdict.name);
        let written = match verdict.bits {
            Some(bits) => writeln!(text, "{set} {name} {bits:016x}"),
            None => writeln!(text, "{set} {name} -"),
        };
        written.expect("a string takes all");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::CaseEnd;

    #[test]
    fn hashes_are_those_that_others_compute() {
        let mut bits = OutputHash::new();
        bits.bytes(b"foobar");
        assert_eq!(bits.finish(), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn cases_without_outputs_have_a_dash() {
        let mut verdicts = [
            Verdict::of("a", CaseEnd::Passed),
            Verdict::of("b", CaseEnd::Hung),
        ];
        verdicts[0].bits = Some(0x1f);
        let expected = "plain a 000000000000001f\nplain b -\n";
        assert_eq!(lines(InstructionSet::Plain, &verdicts), expected);
    }
}
