//! Writes a SavedModel again, with other values of some of its variables.
//!
//! The graph, the assets and what else lies in the directory are copied; the checkpoint is written anew, in one shard. Elements
//! of variables that stay are copied as they are, and their checksums verified. `fingerprint.pb` is left out: it has a hash of
//! the old checkpoint. The new directory is there as a whole, or not at all.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::{error, fmt};

use prost::Message;
use prost::bytes::Bytes;

use super::proto::{BundleEntry, BundleHeader, SavedModel};
use super::resources::Resources;
use super::{MODEL_FILE, VARIABLES, bundle, decode, element, messages, meta_graph, table};
use crate::ReadLimits;
use crate::onnx::ElementType;
use crate::onnx::external::{ExternalData, Folder};
use crate::onnx::problem::Problem;

/// The folder of the checkpoint in a directory.
const FOLDER: &str = "variables";

/// The file with a hash of the checkpoint.
const FINGERPRINT: &str = "fingerprint.pb";

/// The new value of a variable: extents, and elements in row-major order as little-endian bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedValue {
    /// The extents; they are those of the old value.
    pub dims: Vec<usize>,
    /// The elements, of the type of the old ones.
    pub bytes: Vec<u8>,
}

/// The reason why a SavedModel was not written.
#[derive(Debug)]
pub enum SaveError {
    /// The model that is copied can't be read, or its checkpoint is damaged: a message of one line.
    Model(String),
    /// A variable is none of the checkpoint, or has another shape there.
    Variable(String),
    /// There is something at the new place already.
    Exists(PathBuf),
    /// A file can't be read or written.
    File(PathBuf, io::Error),
}

impl fmt::Display for SaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SaveError::Model(message) | SaveError::Variable(message) => f.write_str(message),
            SaveError::Exists(path) => {
                write!(f, "'{}' exists, expected a new directory", path.display())
            }
            SaveError::File(path, cause) => write!(f, "'{}': {cause}", path.display()),
        }
    }
}

impl error::Error for SaveError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            SaveError::File(_, cause) => Some(cause),
            _ => None,
        }
    }
}

impl From<Problem> for SaveError {
    fn from(problem: Problem) -> SaveError {
        SaveError::Model(problem.into_text().0)
    }
}

/// Writes the SavedModel of a directory to a new one, with these values of variables, by the names that inputs have which
/// stand for them. The variables are those of the graph with these tags, or of the one that is opened where none are given.
///
/// # Errors
///
/// See [`SaveError`]; nothing is left at the new place then.
pub fn save(
    from: &Path,
    to: &Path,
    tags: Option<&str>,
    values: &BTreeMap<String, SavedValue>,
) -> Result<(), SaveError> {
    if to.exists() {
        return Err(SaveError::Exists(to.to_owned()));
    }
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = to.with_file_name(name);
    let written = write(from, &part, tags, values).and_then(|()| {
        let moved = fs::rename(&part, to);
        moved.map_err(|cause| SaveError::File(to.to_owned(), cause))
    });
    if written.is_err() {
        // What remains is of no use, and the first error is the one that counts.
        let _ = fs::remove_dir_all(&part);
    }
    written
}

fn write(
    from: &Path,
    to: &Path,
    tags: Option<&str>,
    values: &BTreeMap<String, SavedValue>,
) -> Result<(), SaveError> {
    let path = from.join(MODEL_FILE);
    let bytes = fs::read(&path).map_err(|cause| SaveError::File(path, cause))?;
    let model: SavedModel = decode(Bytes::from(bytes), &messages::SAVED_MODEL)?;
    let meta = meta_graph(&model, tags)?;
    let graph = meta
        .graph
        .as_ref()
        .ok_or_else(|| SaveError::Model("the model has no graph".to_owned()))?;
    let folder = ExternalData::Folder(Folder::new(from));
    let resources = Resources::of(meta, graph, &folder, &ReadLimits::default());
    let mut by_key = BTreeMap::new();
    for (name, value) in values {
        let key = resources.key(name)?.ok_or_else(|| {
            SaveError::Variable(format!("variable '{name}': nothing restores it"))
        })?;
        by_key.insert(key, (name.as_str(), value));
    }
    copy(from, to, true)?;
    let mut checkpoint = Checkpoint::create(from, to)?;
    checkpoint.write(by_key)
}

/// Copies a directory, the outermost without its checkpoint.
fn copy(from: &Path, to: &Path, is_outermost: bool) -> Result<(), SaveError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |cause| SaveError::File(path, cause)
    };
    fs::create_dir_all(to).map_err(failed(to))?;
    for entry in fs::read_dir(from).map_err(failed(from))? {
        let entry = entry.map_err(failed(from))?;
        let (path, name) = (entry.path(), entry.file_name());
        if is_outermost && (name == FOLDER || name == FINGERPRINT) {
            continue;
        }
        let kind = entry.file_type().map_err(failed(&path))?;
        match kind.is_dir() {
            true => copy(&path, &to.join(name), false)?,
            false => {
                fs::copy(&path, to.join(name)).map_err(failed(&path))?;
            }
        }
    }
    Ok(())
}

/// A checkpoint that is written from another one.
struct Checkpoint {
    old: bundle::Bundle,
    /// The path of the new files, without their endings.
    prefix: PathBuf,
    shard: BufWriter<File>,
    offset: u64,
}

impl Checkpoint {
    fn create(from: &Path, to: &Path) -> Result<Checkpoint, SaveError> {
        let old = bundle::Bundle::open(
            &ExternalData::Folder(Folder::new(from)),
            VARIABLES,
            u64::MAX,
        )?;
        let prefix = to.join(VARIABLES);
        let folder = to.join(FOLDER);
        fs::create_dir_all(&folder).map_err(|cause| SaveError::File(folder, cause))?;
        let shard = prefix.with_extension("data-00000-of-00001");
        let file = File::create(&shard).map_err(|cause| SaveError::File(shard, cause))?;
        Ok(Checkpoint {
            old,
            prefix,
            shard: BufWriter::new(file),
            offset: 0,
        })
    }

    fn write(
        &mut self,
        mut values: BTreeMap<Vec<u8>, (&str, &SavedValue)>,
    ) -> Result<(), SaveError> {
        let header = BundleHeader {
            num_shards: 1,
            endianness: 0,
        };
        let mut header = header.encode_to_vec();
        // The version of the format: a message with the number 1.
        header.extend([0x1a, 0x02, 0x08, 0x01]);
        let mut entries = vec![(Vec::new(), header)];
        for key in self.old.keys() {
            let Some(mut entry) = self.old.entry(&key)? else {
                continue;
            };
            // A tensor in parts has elements in those alone.
            if entry.slices.is_empty() {
                let bytes = match values.remove(&key) {
                    Some((name, value)) => changed(name, value, &mut entry)?,
                    None => self.old.stored(&entry)?.to_vec(),
                };
                entry.shard_id = 0;
                entry.offset = i64::try_from(self.offset).unwrap_or(i64::MAX);
                self.offset += bytes.len() as u64;
                let written = self.shard.write_all(&bytes);
                written.map_err(|cause| SaveError::File(self.prefix.clone(), cause))?;
            }
            entries.push((key, entry.encode_to_vec()));
        }
        if let Some((name, _)) = values.values().next() {
            let message = format!("variable '{name}': the checkpoint has no value of it");
            return Err(SaveError::Variable(message));
        }
        let flushed = self.shard.flush();
        flushed.map_err(|cause| SaveError::File(self.prefix.clone(), cause))?;
        let index = self.prefix.with_extension("index");
        let written = fs::write(&index, table::write(&entries));
        written.map_err(|cause| SaveError::File(index, cause))
    }
}

/// Returns the elements of a new value, of which the entry tells then.
fn changed(name: &str, value: &SavedValue, entry: &mut BundleEntry) -> Result<Vec<u8>, SaveError> {
    let element = element::element_type(entry.dtype)?;
    let (dims, n_elements) = element::extents(entry.shape.as_deref(), element)?;
    let n_bytes = n_elements.saturating_mul(element.size_bytes());
    let fits = element != ElementType::String && dims == value.dims && value.bytes.len() == n_bytes;
    if !fits {
        let message = format!(
            "variable '{name}': has extents {:?} and {} bytes, expected {dims:?} of type {}",
            value.dims,
            value.bytes.len(),
            element.name()
        );
        return Err(SaveError::Variable(message));
    }
    entry.size = i64::try_from(n_bytes).unwrap_or(i64::MAX);
    entry.crc32c = table::masked(crc32c::crc32c(&value.bytes));
    Ok(value.bytes.clone())
}
