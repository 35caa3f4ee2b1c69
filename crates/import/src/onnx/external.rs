//! Elements of tensors that lie in files beside the model.
//!
//! A model names such a file relative to its own folder. It gets no other: a path that is
//! absolute or goes up is refused, and so is a link that leads out of the folder.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    problem::{Problem, shown},
    proto::{Entry, TensorProto},
};
use crate::codes;

/// Where elements outside of a model may lie.
#[derive(Clone, Debug, Default)]
pub enum Outside {
    /// Nowhere that is known: the model has no path.
    #[default]
    Unknown,
    /// Nowhere: the model is a stranger's.
    Refused,
    /// In a folder.
    In(Folder),
}

/// A folder whose files may hold elements. It knows which of them were read. A counted handle.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    read: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl Folder {
    /// Takes a folder, as the caller has it.
    pub fn new(path: impl Into<PathBuf>) -> Folder {
        Folder {
            path: path.into(),
            read: Arc::default(),
        }
    }

    /// Returns the files that were read, without links.
    pub fn files_read(&self) -> Vec<PathBuf> {
        self.files().iter().cloned().collect()
    }

    fn files(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The files beside a model.
pub(super) struct ExternalFiles {
    outside: Outside,
    /// The folder without links, once it was asked for.
    resolved: Option<PathBuf>,
    /// The file that was read last: most models have one.
    open: Option<(String, File, u64)>,
}

/// Where elements lie.
struct Place<'p> {
    location: &'p str,
    offset: u64,
    length: Option<u64>,
}

/// What [`TensorProto::data_location`] says of elements in another file.
const EXTERNAL: i32 = 1;

/// Returns whether a tensor's elements lie in another file.
pub(super) fn is_external(tensor: &TensorProto) -> bool {
    tensor.data_location == Some(EXTERNAL)
}

impl ExternalFiles {
    pub(super) fn new(outside: &Outside) -> ExternalFiles {
        ExternalFiles {
            outside: outside.clone(),
            resolved: None,
            open: None,
        }
    }

    /// Reads the elements of a tensor, which take `len_bytes`.
    pub(super) fn read(
        &mut self,
        tensor: &TensorProto,
        len_bytes: usize,
    ) -> Result<Arc<[u8]>, Problem> {
        let place = Place::of(&tensor.external_data)?;
        let location = shown(place.location);
        let error = |message: String| Problem::new(codes::EXTERNAL_DATA, message);
        if let Some(length) = place.length.filter(|&length| length != len_bytes as u64) {
            let message = format!(
                "has {length} bytes in '{location}', expected {len_bytes} for its type and shape"
            );
            return Err(error(message));
        }
        let (file, file_len) = self.file(place.location)?;
        let end = place.offset.checked_add(len_bytes as u64);
        if end.is_none_or(|end| end > file_len) {
            let message = format!(
                "takes {len_bytes} bytes from byte {} of '{location}', which has {file_len}",
                place.offset
            );
            return Err(error(message));
        }
        // Made at its size at once, and filled in place.
        let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, len_bytes).collect();
        let own = Arc::get_mut(&mut bytes).expect("nobody else has it yet");
        let read = file
            .seek(SeekFrom::Start(place.offset))
            .and_then(|_| file.read_exact(own));
        match read {
            Ok(()) => Ok(bytes),
            Err(cause) => Err(error(format!("cannot read '{location}': {cause}"))),
        }
    }

    /// Returns an open file and its length.
    fn file(&mut self, location: &str) -> Result<(&mut File, u64), Problem> {
        let is_open = matches!(&self.open, Some((open, ..)) if open == location);
        if !is_open {
            let (file, len) = self.open(location)?;
            self.open = Some((location.to_owned(), file, len));
        }
        let (_, file, len) = self.open.as_mut().expect("was opened above");
        Ok((file, *len))
    }

    fn open(&mut self, location: &str) -> Result<(File, u64), Problem> {
        let name = shown(location);
        let error = |message: String| Problem::new(codes::EXTERNAL_DATA, message);
        let is_inside = |component| matches!(component, Component::Normal(_) | Component::CurDir);
        let path = Path::new(location);
        // A backslash is a separator for some who wrote the file.
        let is_inside = path.components().all(is_inside) && !location.contains(['\\', '\0']);
        if location.is_empty() || !is_inside {
            let message = format!("names the file '{name}', expected one in the model's folder");
            return Err(error(message));
        }
        let folder = self.folder()?;
        let cannot = |cause: std::io::Error| error(format!("cannot read '{name}': {cause}"));
        let resolved = fs::canonicalize(folder.join(path)).map_err(cannot)?;
        if !resolved.starts_with(folder) {
            let message = format!("names '{name}', a link that leads out of the model's folder");
            return Err(error(message));
        }
        let data = fs::metadata(&resolved).map_err(cannot)?;
        if !data.is_file() {
            return Err(error(format!("names '{name}', which is no file")));
        }
        let file = File::open(&resolved).map_err(cannot)?;
        let len = file.metadata().map_err(cannot)?.len();
        if let Outside::In(folder) = &self.outside {
            folder.files().insert(resolved);
        }
        Ok((file, len))
    }

    /// Returns the model's folder without links.
    fn folder(&mut self) -> Result<&Path, Problem> {
        if self.resolved.is_none() {
            let error = |message: String| Problem::new(codes::EXTERNAL_DATA, message);
            let of_other = |why: &str| error(format!("has its elements in another file, {why}"));
            let folder = match &self.outside {
                Outside::In(folder) => &folder.path,
                Outside::Unknown => {
                    let problem = of_other("but the model's folder is unknown");
                    return Err(problem.help("open the model by its path"));
                }
                Outside::Refused => {
                    return Err(of_other("which is refused to programs of strangers"));
                }
            };
            let resolved = fs::canonicalize(folder).map_err(|cause| {
                error(format!(
                    "cannot read the folder '{}': {cause}",
                    folder.display()
                ))
            })?;
            self.resolved = Some(resolved);
        }
        Ok(self.resolved.as_deref().expect("was set above"))
    }
}

impl<'p> Place<'p> {
    fn of(entries: &'p [Entry]) -> Result<Place<'p>, Problem> {
        let find = |key: &str| {
            let mut found = entries
                .iter()
                .filter(|entry| entry.key.as_deref() == Some(key));
            found
                .next()
                .map(|entry| entry.value.as_deref().unwrap_or(""))
        };
        let number = |key: &str| match find(key) {
            None => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|_| {
                let message = format!(
                    "has the {key} '{}' in its file, expected a number of bytes",
                    shown(text)
                );
                Problem::new(codes::EXTERNAL_DATA, message)
            }),
        };
        let Some(location) = find("location") else {
            let message = "has its elements in another file, but names none";
            return Err(Problem::new(codes::EXTERNAL_DATA, message));
        };
        Ok(Place {
            location,
            offset: number("offset")?.unwrap_or(0),
            length: number("length")?,
        })
    }
}
