//! Values as the bytes of files, and the names of these.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use clap::ValueEnum;
use tfrt::HostAllocator;
use tfrt::asynchronous::SystemAllocator;
use tfrt::model::Datum;
use tfrt::tensor::{DenseHostTensor, Tensor, TensorMetadata, npy};

use super::scalars::scalars;
use super::{json, numbers, protobuf, safetensors};
use crate::failure::Failure;

/// The file format of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Arrays of NumPy
    Npy,
    /// Lists in lists
    Json,
    /// Tensors, sequences and optionals of ONNX
    Pb,
    /// Tensors of safetensors, under the name of the output
    Safetensors,
}

/// The length of the longest name of a file that is made of the name of an output, in bytes, without the number that
/// makes it unique.
const MAX_NAME_BYTES: usize = 120;

impl Format {
    /// Returns the extension of files.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Npy => "npy",
            Format::Json => "json",
            Format::Pb => "pb",
            Format::Safetensors => "safetensors",
        }
    }

    /// Returns the format that the extension of a path stands for.
    pub fn of_path(path: &Path) -> Option<Format> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        let mut all = Format::value_variants().iter().copied();
        all.find(|format| format.extension() == extension)
    }

    /// Returns a value as the bytes of a file.
    ///
    /// # Errors
    ///
    /// Why the format does not have it.
    pub fn encode(self, name: &str, datum: &Datum) -> Result<Vec<u8>, String> {
        let told = |error: tfrt::Error| error.message().to_owned();
        match self {
            Format::Pb => protobuf::encode(name, datum).map_err(told),
            Format::Json => {
                let mut text = json::write(datum).map_err(told)?.to_string().into_bytes();
                text.push(b'\n');
                Ok(text)
            }
            Format::Npy => {
                let tensor = self.tensor(datum)?;
                npy::write(&widened(tensor).map_err(told)?).map_err(told)
            }
            Format::Safetensors => safetensors::write(name, self.tensor(datum)?),
        }
    }
}

impl Format {
    /// Returns the tensor that a value is, for a file of tensors.
    fn tensor(self, datum: &Datum) -> Result<&Tensor, String> {
        datum.as_matrix().ok_or_else(|| {
            let (kind, extension) = (datum.kind(), self.extension());
            let article = if self == Format::Npy { "an" } else { "a" };
            format!(
                "{article} .{extension} file holds one tensor, and this is {kind}: name a .json or .pb file"
            )
        })
    }
}

/// Converts a tensor to elements that NumPy has: floats of other kinds become `f32`, which holds them all, and small
/// integers those of 8 bits.
fn widened(tensor: &Tensor) -> Result<Tensor, tfrt::Error> {
    let Some(wide) = numbers::of_numpy(tensor.metadata().dtype) else {
        return Ok(tensor.clone());
    };
    let dense = tensor.as_dense()?;
    let mut bytes = Vec::new();
    for cell in scalars(tensor, 0..dense.n_elements())? {
        numbers::push(&mut bytes, wide, &cell).map_err(tfrt::Error::invalid_argument)?;
    }
    let metadata = TensorMetadata::new(wide, dense.shape().clone());
    let allocator: Arc<dyn HostAllocator> = Arc::new(SystemAllocator::new());
    Ok(DenseHostTensor::from_bytes(&allocator, metadata, &bytes)?.into())
}

/// Returns the failure of a value that can't be written to a file.
pub fn misfit(path: &Path, name: &str, reason: &str) -> Failure {
    Failure::Rejected {
        code: None,
        message: format!(
            "cannot write output '{name}' to '{}': {reason}",
            path.display()
        ),
        help: None,
    }
}

/// Returns names of files for names of outputs, without extension: letters, digits, `-`, `_` and points remain, and no
/// two are the same, not even where large and small letters are.
pub fn safe_names<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<String> {
    let mut taken = HashSet::new();
    let unique = |name: &str| {
        let safe: String = name
            .chars()
            .map(
                |c| match c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') {
                    true => c,
                    false => '_',
                },
            )
            .take(MAX_NAME_BYTES)
            .collect();
        let safe = match safe.trim_matches('.') {
            "" => "output".to_owned(),
            _ if safe.starts_with('.') => format!("_{}", safe.trim_start_matches('.')),
            safe => safe.to_owned(),
        };
        let mut candidate = safe.clone();
        let mut n = 2_usize;
        while !taken.insert(candidate.to_ascii_lowercase()) {
            candidate = format!("{safe}-{n}");
            n += 1;
        }
        candidate
    };
    names.into_iter().map(unique).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_safe_and_unique() {
        let names = ["a/b", "a_b", "A_B", "../x", "", "...", "ok.0", "grün"];
        let expected = [
            "a_b", "a_b-2", "A_B-3", "_x", "output", "output-2", "ok.0", "gr_n",
        ];
        // `../x` is `.._x` before its points go.
        let safe = safe_names(names);
        assert_eq!(safe[..3], expected[..3]);
        assert_eq!(safe[4..], expected[4..]);
        assert!(
            safe[3].starts_with('_') && !safe[3].contains(['/', '.']),
            "{}",
            safe[3]
        );
    }
}
