//! Inputs, and outputs that are expected, read from files, in whatever form they are there.
//!
//! | File | Told by |
//! | --- | --- |
//! | array of NumPy | its first bytes |
//! | archive of arrays (`FILE.npz:KEY`, or the array with the name of the input) | its first bytes |
//! | tensors of safetensors (`FILE.safetensors:KEY`, or the tensor with the name of the input) | its first bytes |
//! | PNG or JPEG image | its first bytes |
//! | sound in a WAV file | its first bytes |
//! | tensor, sequence or optional of ONNX | `.pb` at the end of the name |
//! | JSON | what begins like it |

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tfrt::HostAllocator;
use tfrt::error_message;
use tfrt::input::STANDARD_INPUT;
use tfrt::ir::similar;
use tfrt::model::{Datum, ValueInfo};
use tfrt::tensor::{DType, Tensor, npy, npz};

use super::image::{self, Preparation};
use super::{json, numbers, protobuf, safetensors, scalars, sound};
use crate::failure::Failure;

/// The most bytes of a file of inputs.
const MAX_BYTES: u64 = 1 << 34;

/// The conversion of what is no tensor in a file: pictures and sound.
#[derive(Clone, Debug, Default)]
pub struct Conversion {
    pub image: Preparation,
    /// The samples a second that the model takes of a sound.
    pub rate: Option<u32>,
}

/// The purpose of reading a file.
#[derive(Clone, Copy)]
enum Role<'c> {
    /// An input, which has the type of elements that the model takes.
    Input(&'c Conversion),
    /// An output, whose type is compared later.
    Expected,
}

/// The file that one `--input` names, and the input of the model that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFile {
    /// The index of the input.
    pub index: usize,
    /// The file, with a key behind it if it is an archive.
    pub file: String,
}

impl InputFile {
    /// Returns the path of the file, without a key.
    pub fn path(&self) -> PathBuf {
        split_key(&self.file).0
    }

    /// Finds the input that `NAME=FILE` names. Of a model with one input, the name may be left out.
    ///
    /// # Errors
    ///
    /// `Usage`, with the names that there are.
    pub fn new(text: &str, inputs: &[ValueInfo]) -> Result<InputFile, Failure> {
        let (index, file) = named_file(text, inputs, "--input", "input")?;
        Ok(InputFile { index, file })
    }
}

/// Finds the input or output that `NAME=FILE` names, and the file. Of a model with one, the name may be left out.
///
/// # Errors
///
/// `Usage`, with the names that there are.
pub fn named_file(
    text: &str,
    values: &[ValueInfo],
    option: &str,
    what: &str,
) -> Result<(usize, String), Failure> {
    // Names may have any characters, `=` too.
    let parts = text
        .match_indices('=')
        .map(|(at, _)| (&text[..at], &text[at + 1..]));
    for (name, file) in parts {
        if let Some(index) = values.iter().position(|value| value.name == name) {
            return Ok((index, file.to_owned()));
        }
    }
    let has_name = text.contains('=') && !Path::new(text).exists();
    if values.len() == 1 && !has_name {
        return Ok((0, text.to_owned()));
    }
    let name = text.split_once('=').map_or(text, |(name, _)| name);
    Err(unknown_name(option, what, name, values, has_name))
}

/// Returns the failure of a name that a model does not have.
pub fn unknown_name(
    option: &str,
    what: &str,
    name: &str,
    values: &[ValueInfo],
    has_name: bool,
) -> Failure {
    if !has_name {
        return Failure::Usage(format!(
            "{option} takes NAME=FILE, found '{name}': the model has {}",
            listed(what, values)
        ));
    }
    let nearest = similar::nearest(name, values.iter().map(|value| value.name.as_str()));
    let help = match nearest {
        Some(nearest) => format!("did you mean '{nearest}'?"),
        None => format!("it has {}", listed(what, values)),
    };
    Failure::Usage(format!("the model has no {what} '{name}': {help}"))
}

/// Returns a list of inputs or outputs as text: `the inputs image: f32 [N, 3], mask: i1 [N]`.
pub fn listed(what: &str, values: &[ValueInfo]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = values
        .iter()
        .take(SHOWN)
        .map(ValueInfo::to_string)
        .collect();
    let more = if values.len() > SHOWN { ", ..." } else { "" };
    let list = shown.join(", ");
    match values.len() {
        0 => format!("no {what}s"),
        1 => format!("the {what} {list}"),
        _ => format!("the {what}s {list}{more}"),
    }
}

/// Reads a file of no more than so many bytes for an input.
///
/// # Errors
///
/// `Rejected`, naming the file and the input, and what was expected and found.
pub fn read(
    file: &str,
    input: &ValueInfo,
    how: &Conversion,
    max_bytes: u64,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Datum, Failure> {
    let (path, key) = split_key(file);
    let failed = |reason: String| Failure::Rejected {
        code: None,
        message: format!("cannot read input '{}' from '{file}': {reason}", input.name),
        help: Some(format!("the model takes {input}")),
    };
    let bytes = read_bytes(&path, max_bytes.min(MAX_BYTES))
        .map_err(|reason| failed(error_message(&reason)))?;
    let role = Role::Input(how);
    decode(&path, bytes, key.as_deref(), input, role, allocator).map_err(failed)
}

/// A file of what an output is expected to be, before it is known what that is.
pub struct ExpectedFile {
    path: PathBuf,
    key: Option<String>,
    bytes: Vec<u8>,
}

impl ExpectedFile {
    /// Reads a file of no more than so many bytes.
    ///
    /// # Errors
    ///
    /// Why it can't be read.
    pub fn read(file: &str, max_bytes: u64) -> Result<ExpectedFile, String> {
        let (path, key) = split_key(file);
        let bytes = read_bytes(&path, max_bytes.min(MAX_BYTES));
        let bytes = bytes.map_err(|reason| error_message(&reason))?;
        Ok(ExpectedFile { path, key, bytes })
    }

    /// Returns the path of the file, without a key.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what an output of a name and type is expected to be.
    ///
    /// # Errors
    ///
    /// Why the file holds no such thing.
    pub fn decode(
        self,
        output: &ValueInfo,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<Datum, String> {
        let key = self.key.as_deref();
        decode(
            &self.path,
            self.bytes,
            key,
            output,
            Role::Expected,
            allocator,
        )
    }
}

/// Splits `FILE.npz:KEY` and `FILE.safetensors:KEY`, unless there is a file of this name.
fn split_key(file: &str) -> (PathBuf, Option<String>) {
    let lower = file.to_ascii_lowercase();
    for extension in [".npz", ".safetensors"] {
        if let Some(at) = lower.find(&format!("{extension}:"))
            && !Path::new(file).exists()
        {
            let at = at + extension.len();
            return (file[..at].into(), Some(file[at + 1..].to_owned()));
        }
    }
    (file.into(), None)
}

/// Reads a file, or standard input, of no more than so many bytes.
pub(super) fn read_bytes(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if path == Path::new(STANDARD_INPUT) {
        io::stdin()
            .lock()
            .take(max_bytes + 1)
            .read_to_end(&mut bytes)?;
    } else {
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > max_bytes {
        let message = format!("it is larger than the limit of {max_bytes} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

fn decode(
    path: &Path,
    bytes: Vec<u8>,
    key: Option<&str>,
    input: &ValueInfo,
    role: Role<'_>,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Datum, String> {
    let told = |error: tfrt::Error| error.message().to_owned();
    let wanted = match role {
        Role::Input(_) => input.kind.as_tensor().and_then(|tensor| tensor.element),
        Role::Expected => None,
    };
    if bytes.starts_with(b"\x93NUMPY") {
        let tensor = npy::read(&bytes, allocator).map_err(told)?;
        return fitted(tensor, wanted, allocator).map(Datum::Tensor);
    }
    if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
        let mut arrays = npz::read(&bytes, allocator).map_err(told)?;
        let keys: Vec<&str> = arrays.iter().map(|(key, _)| key.as_str()).collect();
        let index = place_in_archive(&keys, key, &input.name, "archive", "array", "npz")?;
        return fitted(arrays.swap_remove(index).1, wanted, allocator).map(Datum::Tensor);
    }
    if safetensors::is_safetensors(&bytes) {
        let pick = |keys: &[&str]| {
            place_in_archive(keys, key, &input.name, "file", "tensor", "safetensors")
        };
        let tensor = safetensors::read(bytes, pick, allocator)?;
        return fitted(tensor, wanted, allocator).map(Datum::Tensor);
    }
    if let Role::Input(how) = role {
        let tensor = |what: &str| {
            let tensor = input.kind.as_tensor();
            tensor.ok_or_else(|| format!("{what} is a tensor, but the model takes {}", input.kind))
        };
        if image::is_image(&bytes) {
            let tensor = tensor("an image")?;
            return image::read(&bytes, tensor, &how.image, allocator).map(Datum::Tensor);
        }
        if sound::is_sound(&bytes) {
            let tensor = tensor("a sound")?;
            return sound::read(&bytes, tensor, how.rate, allocator).map(Datum::Tensor);
        }
    }
    let extension = path.extension().and_then(|extension| extension.to_str());
    if extension.is_some_and(|extension| extension.eq_ignore_ascii_case("pb")) {
        let name = path.to_string_lossy();
        return protobuf::decode(bytes, &input.kind, &name, allocator);
    }
    let begin = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    let is_json = begin.is_some_and(|byte| b"[{\"-0123456789tfn".contains(byte));
    if is_json || extension.is_some_and(|extension| extension.eq_ignore_ascii_case("json")) {
        let parsed = serde_json::from_slice(&bytes);
        let parsed = parsed.map_err(|reason| format!("it is no JSON: {reason}"))?;
        return json::read(&parsed, &input.kind, allocator);
    }
    Err(match role {
        Role::Input(_) => "it is no .npy, .npz, .safetensors, .pb, .json, PNG, JPEG or WAV file",
        Role::Expected => "it is no .npy, .npz, .safetensors, .pb or .json file",
    }
    .to_owned())
}

/// Finds an array of a file that has several, which messages call `archive` and `array`, by its key or the name of the
/// input.
fn place_in_archive(
    keys: &[&str],
    key: Option<&str>,
    name: &str,
    archive: &str,
    array: &str,
    extension: &str,
) -> Result<usize, String> {
    let wanted = key.unwrap_or(name);
    let found = keys.iter().position(|key| *key == wanted);
    let index = match (found, key, keys.len()) {
        (Some(index), ..) => index,
        // The only one need not be named.
        (None, None, 1) => 0,
        _ => {
            const SHOWN: usize = 16;
            let more = if keys.len() > SHOWN { ", ..." } else { "" };
            return Err(match keys.is_empty() {
                true => format!("the {archive} has no {array}s"),
                false => format!(
                    "the {archive} has no {array} '{wanted}', but {}{more}; name one by FILE.{extension}:KEY",
                    keys[..keys.len().min(SHOWN)].join(", ")
                ),
            });
        }
    };
    Ok(index)
}

/// Converts a tensor of a file to the type of elements that the model takes: from that type, or from the one that
/// stands for it in files of NumPy, which has no names for all types.
fn fitted(
    tensor: Tensor,
    wanted: Option<DType>,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Tensor, String> {
    let found = tensor.metadata().dtype;
    let Some(wanted) = wanted.filter(|wanted| *wanted != found) else {
        return Ok(tensor);
    };
    if numbers::of_numpy(wanted) != Some(found) {
        let help = match numbers::name_in_numpy(wanted) {
            Some(name) => format!(" (in NumPy: array.astype({name}))"),
            None => String::new(),
        };
        return Err(format!(
            "expected elements of {wanted}, found {found}{help}"
        ));
    }
    let told = |error: tfrt::Error| error.message().to_owned();
    let dense = tensor.as_dense().map_err(told)?;
    let mut bytes = Vec::new();
    for cell in scalars::scalars(&tensor, 0..dense.n_elements()).map_err(told)? {
        numbers::push(&mut bytes, wanted, &cell)?;
    }
    numbers::dense(wanted, dense.shape().clone(), &bytes, allocator)
}
