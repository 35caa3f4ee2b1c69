//! Programs as they come in: text or bytes, told apart by their first bytes.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use tfrt_bef::{BefBuffer, BefFile, layout};
use tfrt_compiler::CompileOptions;
use tfrt_ir::{Diagnostics, Module, Source};

use crate::error::OpenError;

/// The path that stands for standard input, and the name that its text then has.
pub const STANDARD_INPUT: &str = "-";

/// A text larger than this is none that anybody has written.
const MAX_TEXT_BYTES: u64 = 1 << 29;

/// The offsets in a BEF file have 32 bits.
const MAX_BEF_BYTES: u64 = 1 << 32;

/// A program that was read, but not yet looked at.
#[derive(Clone, Debug)]
pub enum Input {
    /// MLIR.
    Text(Source),
    /// A BEF file.
    Bytes {
        /// What to call it in messages.
        name: String,
        /// The bytes.
        bytes: BefBuffer,
    },
}

impl Input {
    /// Reads a file, or standard input for `-`.
    ///
    /// # Errors
    ///
    /// `Unreadable`; `Text` if the bytes begin like text and are not UTF-8.
    pub fn read(path: impl AsRef<Path>) -> Result<Input, OpenError> {
        let path = path.as_ref();
        let bytes = read_bytes(path).map_err(|reason| OpenError::Unreadable {
            path: path.to_owned(),
            reason,
        })?;
        Input::from_bytes(&path.to_string_lossy(), bytes)
    }

    /// Takes bytes for what they are.
    ///
    /// # Errors
    ///
    /// `Text` if the bytes begin like text and are not UTF-8.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Input, OpenError> {
        if bytes.starts_with(&layout::MAGIC) {
            let (name, bytes) = (name.to_owned(), BefBuffer::from_vec(bytes));
            return Ok(Input::Bytes { name, bytes });
        }
        let source = Source::from_bytes(name, bytes).map_err(OpenError::Text)?;
        Ok(Input::Text(source))
    }

    /// Returns the name that messages give it.
    pub fn name(&self) -> &str {
        match self {
            Input::Text(source) => source.name(),
            Input::Bytes { name, .. } => name,
        }
    }

    /// Returns the bytes of the program, compiled if it is text, accepted by the gate.
    ///
    /// # Errors
    ///
    /// `Text` with all that is wrong with a text; `Bytes` with the first thing that is wrong with
    /// bytes.
    pub fn open(&self) -> Result<BefFile, OpenError> {
        let bytes = match self {
            Input::Text(source) => {
                compile(source, &CompileOptions::default()).map_err(OpenError::Text)?
            }
            Input::Bytes { bytes, .. } => bytes.clone(),
        };
        BefFile::open(bytes).map_err(|reason| OpenError::Bytes {
            name: self.name().to_owned(),
            reason,
        })
    }
}

fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    if path == Path::new(STANDARD_INPUT) {
        return read_within_limits(io::stdin().lock());
    }
    read_within_limits(File::open(path)?)
}

/// Reads all there is, unless it is more than any program has: a device may never end.
fn read_within_limits(mut from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.by_ref().take(MAX_TEXT_BYTES).read_to_end(&mut bytes)?;
    let max_bytes = match bytes.starts_with(&layout::MAGIC) {
        true => MAX_BEF_BYTES,
        false => MAX_TEXT_BYTES,
    };
    // Of what fits there is one byte more at most: that which does not.
    let left = max_bytes - bytes.len() as u64 + 1;
    from.take(left).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        let message = format!("it is larger than the limit of {max_bytes} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// Parses and verifies a text.
///
/// # Errors
///
/// All that is wrong with it.
pub fn parse(source: &Source) -> Result<Module, Diagnostics> {
    let module = tfrt_ir::parse(source)?;
    tfrt_ir::verify(&module)?;
    Ok(module)
}

/// Parses, verifies and compiles a text.
///
/// # Errors
///
/// All that is wrong with it, as far as the first stage that refuses it can tell.
pub fn compile(source: &Source, options: &CompileOptions) -> Result<BefBuffer, Diagnostics> {
    tfrt_compiler::compile(&parse(source)?, options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_are_told_apart_by_the_first_bytes() {
        let text = Input::from_bytes("a", b"func.func".to_vec()).unwrap();
        assert!(matches!(text, Input::Text(_)));
        let bytes = Input::from_bytes("a", vec![0x0b, 0xef, 0, 1]).unwrap();
        assert!(matches!(bytes, Input::Bytes { .. }));
        assert!(matches!(
            Input::from_bytes("a", Vec::new()).unwrap(),
            Input::Text(_)
        ));
    }

    #[test]
    fn bytes_that_are_neither_are_refused_with_the_place() {
        let error = Input::from_bytes("a", vec![b'x', 0xff]).unwrap_err();
        assert!(error.to_string().starts_with("a:1:2: error: "), "{error}");
    }
}
