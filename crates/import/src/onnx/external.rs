//! Elements of tensors that lie in files beside the model.
//!
//! A model names such a file relative to its own folder. It gets no other: a path that is
//! absolute or goes up is refused, and so is a link that leads out of the folder.

use std::{
    collections::BTreeSet,
    fmt,
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

/// Elements in other files that are read: if a model has more, those of its initializers stay where they are.
pub const MAX_READ_BYTES: u64 = 2 << 30;

/// Elements of so few bytes are read whatever else there is: compilers look at them.
const SMALL_BYTES: usize = 1 << 16;

/// Where elements outside of a model may lie.
#[derive(Clone, Debug, Default)]
pub enum ExternalData {
    /// Nowhere that is known: the model has no path.
    #[default]
    Unknown,
    /// Nowhere: the model is a stranger's.
    Refused,
    /// In a folder.
    Folder(Folder),
    /// In what is given for the name of a file.
    Provider(FileProvider),
}

/// Bytes that stand for files, given by a function of their names. A counted handle.
#[derive(Clone)]
pub struct FileProvider(Arc<ProvideFile>);

type ProvideFile = dyn Fn(&str) -> Option<SharedBytes> + Send + Sync;

/// Bytes that several hold.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

impl FileProvider {
    /// Takes the function, which gives nothing for what is no file.
    pub fn new(give: impl Fn(&str) -> Option<SharedBytes> + Send + Sync + 'static) -> FileProvider {
        FileProvider(Arc::new(give))
    }

    /// Returns what is given for a name.
    pub fn file(&self, name: &str) -> Option<SharedBytes> {
        (self.0)(name)
    }
}

impl fmt::Debug for FileProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Given")
    }
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

    /// Takes the folder that the file at a path lies in.
    pub fn of(path: &Path) -> Folder {
        match path.parent() {
            Some(folder) if folder != Path::new("") => Folder::new(folder),
            _ => Folder::new("."),
        }
    }

    /// Returns the folder, as the caller has it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path without links of a file in the folder, which is one of those that were read from then on.
    ///
    /// # Errors
    ///
    /// What is wrong with the name: it leads out of the folder, or to no file.
    pub fn find(&self, location: &str) -> Result<PathBuf, String> {
        check_location(location)?;
        let name = shown(location);
        let cannot = |cause: std::io::Error| format!("cannot read '{name}': {cause}");
        let folder = fs::canonicalize(&self.path).map_err(|cause| {
            format!("cannot read the folder '{}': {cause}", self.path.display())
        })?;
        let resolved = fs::canonicalize(folder.join(location)).map_err(cannot)?;
        if !resolved.starts_with(folder) {
            return Err(format!(
                "names '{name}', a link that leads out of the model's folder"
            ));
        }
        if !fs::metadata(&resolved).map_err(cannot)?.is_file() {
            return Err(format!("names '{name}', which is no file"));
        }
        self.files().insert(resolved.clone());
        Ok(resolved)
    }

    /// Returns the files that were read, without links.
    pub fn files_read(&self) -> Vec<PathBuf> {
        self.files().iter().cloned().collect()
    }

    fn files(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses a name that leads out of the folder.
fn check_location(location: &str) -> Result<(), String> {
    let is_inside = |component| matches!(component, Component::Normal(_) | Component::CurDir);
    // A backslash is a separator for some who wrote the file.
    let is_inside =
        Path::new(location).components().all(is_inside) && !location.contains(['\\', '\0']);
    match !location.is_empty() && is_inside {
        true => Ok(()),
        false => {
            let name = shown(location);
            Err(format!(
                "names the file '{name}', expected one in the model's folder"
            ))
        }
    }
}

/// The files beside a model.
pub(super) struct ExternalFiles {
    outside: ExternalData,
    /// The most bytes that are read.
    max_bytes: u64,
    /// Whether large elements stay where they are.
    is_large: bool,
    /// The file that was read last: most models have one.
    open: Option<(String, OpenFile, u64)>,
}

enum OpenFile {
    File(File),
    Bytes(SharedBytes),
}

/// Where elements lie.
struct ExternalInfo<'p> {
    location: &'p str,
    offset: u64,
    length: Option<u64>,
}

/// Where elements lie that stay in their file.
pub(super) struct ExternalRef<'p> {
    pub(super) location: &'p str,
    pub(super) offset: u64,
}

/// What [`TensorProto::data_location`] says of elements in another file.
const EXTERNAL: i32 = 1;

/// Returns whether a tensor's elements lie in another file.
pub(super) fn is_external(tensor: &TensorProto) -> bool {
    tensor.data_location == Some(EXTERNAL)
}

fn error(message: String) -> Problem {
    Problem::new(codes::EXTERNAL_DATA, message)
}

impl ExternalFiles {
    pub(super) fn new(outside: &ExternalData) -> ExternalFiles {
        ExternalFiles {
            outside: outside.clone(),
            max_bytes: MAX_READ_BYTES,
            is_large: false,
            open: None,
        }
    }

    /// Lets no more bytes be read than this.
    pub(super) fn within(mut self, max_bytes: u64) -> ExternalFiles {
        self.max_bytes = self.max_bytes.min(max_bytes);
        self
    }

    /// Takes the number of bytes that the model has in other files.
    pub(super) fn expect(&mut self, len_bytes: u64) {
        self.is_large = len_bytes > self.max_bytes;
    }

    /// Returns where the elements of a tensor lie, which take `len_bytes`, if they are to stay there.
    pub(super) fn keep_external<'p>(
        &mut self,
        tensor: &'p TensorProto,
        len_bytes: usize,
    ) -> Result<Option<ExternalRef<'p>>, Problem> {
        if !self.is_large || len_bytes <= SMALL_BYTES {
            return Ok(None);
        }
        let ExternalInfo {
            location, offset, ..
        } = self.find(tensor, len_bytes)?;
        Ok(Some(ExternalRef { location, offset }))
    }

    /// Reads the elements of a tensor, which take `len_bytes`.
    pub(super) fn read(
        &mut self,
        tensor: &TensorProto,
        len_bytes: usize,
    ) -> Result<Arc<[u8]>, Problem> {
        let ExternalInfo {
            location, offset, ..
        } = self.find(tensor, len_bytes)?;
        // Made at its size at once, and filled in place.
        let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, len_bytes).collect();
        let own = Arc::get_mut(&mut bytes).expect("nobody else has it yet");
        let (opened, _) = self.file(location)?;
        let read = match opened {
            OpenFile::File(file) => file
                .seek(SeekFrom::Start(offset))
                .and_then(|_| file.read_exact(own)),
            OpenFile::Bytes(given) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let found = (**given).as_ref().get(start..);
                let found = found.and_then(|rest| rest.get(..len_bytes));
                match found {
                    Some(found) => {
                        own.copy_from_slice(found);
                        Ok(())
                    }
                    None => Err(std::io::ErrorKind::UnexpectedEof.into()),
                }
            }
        };
        match read {
            Ok(()) => Ok(bytes),
            Err(cause) => Err(error(format!("cannot read '{}': {cause}", shown(location)))),
        }
    }

    /// Finds the elements of a tensor, which take `len_bytes`: the file is there, and holds as many.
    fn find<'p>(
        &mut self,
        tensor: &'p TensorProto,
        len_bytes: usize,
    ) -> Result<ExternalInfo<'p>, Problem> {
        let place = ExternalInfo::of(&tensor.external_data)?;
        let location = shown(place.location);
        if let Some(length) = place.length.filter(|&length| length != len_bytes as u64) {
            let message = format!(
                "has {length} bytes in '{location}', expected {len_bytes} for its type and shape"
            );
            return Err(error(message));
        }
        let (_, file_len) = self.file(place.location)?;
        let end = place.offset.checked_add(len_bytes as u64);
        if end.is_none_or(|end| end > file_len) {
            let message = format!(
                "takes {len_bytes} bytes from byte {} of '{location}', which has {file_len}",
                place.offset
            );
            return Err(error(message));
        }
        Ok(place)
    }

    /// Returns an open file and its length.
    fn file(&mut self, location: &str) -> Result<(&mut OpenFile, u64), Problem> {
        let is_open = matches!(&self.open, Some((open, ..)) if open == location);
        if !is_open {
            let (file, len) = self.open(location)?;
            self.open = Some((location.to_owned(), file, len));
        }
        let (_, file, len) = self.open.as_mut().expect("was opened above");
        Ok((file, *len))
    }

    fn open(&mut self, location: &str) -> Result<(OpenFile, u64), Problem> {
        self.outside
            .open(location)
            .map_err(|problem| match problem {
                (message, Some(help)) => error(message).help(help),
                (message, None) => error(message),
            })
    }
}

impl ExternalData {
    /// Reads a file of the model's, named relative to its folder, of so many bytes at most.
    ///
    /// # Errors
    ///
    /// What is wrong with the name, or with the file.
    pub fn read(&self, location: &str, max_bytes: u64) -> Result<Vec<u8>, String> {
        let (opened, len) = self.open(location).map_err(|(message, _)| message)?;
        let name = shown(location);
        if len > max_bytes {
            return Err(format!(
                "'{name}' has {len} bytes, expected at most {max_bytes}"
            ));
        }
        let mut bytes = Vec::new();
        match opened {
            OpenFile::Bytes(given) => bytes.extend_from_slice((*given).as_ref()),
            OpenFile::File(file) => {
                let read = file.take(max_bytes).read_to_end(&mut bytes);
                read.map_err(|cause| format!("cannot read '{name}': {cause}"))?;
            }
        }
        Ok(bytes)
    }

    /// Opens a file, and returns its length; what is wrong with it, and what to do, if not.
    fn open(&self, location: &str) -> Result<(OpenFile, u64), (String, Option<&'static str>)> {
        let plain = |message: String| (message, None);
        check_location(location).map_err(plain)?;
        let folder = match self {
            ExternalData::Folder(folder) => folder,
            ExternalData::Provider(given) => {
                let name = shown(location);
                let nothing = || plain(format!("has its elements in '{name}', which is not given"));
                let bytes = given.file(location).ok_or_else(nothing)?;
                let len = (*bytes).as_ref().len() as u64;
                return Ok((OpenFile::Bytes(bytes), len));
            }
            ExternalData::Unknown => {
                let message = "has its elements in another file, but the model's folder is unknown";
                return Err((message.to_owned(), Some("open the model by its path")));
            }
            ExternalData::Refused => {
                let message =
                    "has its elements in another file, which is refused to programs of strangers";
                return Err(plain(message.to_owned()));
            }
        };
        let path = folder.find(location).map_err(plain)?;
        let cannot =
            |cause: std::io::Error| plain(format!("cannot read '{}': {cause}", shown(location)));
        let file = File::open(path).map_err(cannot)?;
        let len = file.metadata().map_err(cannot)?.len();
        Ok((OpenFile::File(file), len))
    }
}

impl<'p> ExternalInfo<'p> {
    fn of(entries: &'p [Entry]) -> Result<ExternalInfo<'p>, Problem> {
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
        Ok(ExternalInfo {
            location,
            offset: number("offset")?.unwrap_or(0),
            length: number("length")?,
        })
    }
}
