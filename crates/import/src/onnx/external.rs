//! External data: elements of tensors that lie in files beside the model.
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

use prost::bytes::Bytes;

use super::{
    problem::{Problem, shown},
    proto::{Entry, TensorProto},
};
use crate::codes;

/// The most bytes of external data that are read. If a model has more, its large initializers stay in their files.
pub const MAX_READ_BYTES: u64 = 2 << 30;

/// The most bytes of elements that are read in any case: compilers look at small constants.
const SMALL_BYTES: usize = 1 << 16;

/// The place of a model's external data.
#[derive(Clone, Debug, Default)]
pub enum ExternalData {
    /// Unknown: the model has no path.
    #[default]
    Unknown,
    /// None: external data is refused, since the model is not trusted.
    Refused,
    /// A folder.
    Folder(Folder),
    /// A function that returns the bytes of a file by its name.
    Provider(FileProvider),
}

/// A function from names of files to bytes. A counted handle.
#[derive(Clone)]
pub struct FileProvider(Arc<ProvideFile>);

type ProvideFile = dyn Fn(&str) -> Option<SharedBytes> + Send + Sync;

/// Bytes that several owners share.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

impl FileProvider {
    /// Makes a provider of a function, which returns `None` for names of no file.
    pub fn new(give: impl Fn(&str) -> Option<SharedBytes> + Send + Sync + 'static) -> FileProvider {
        FileProvider(Arc::new(give))
    }

    /// Returns the bytes of a file.
    pub fn file(&self, name: &str) -> Option<SharedBytes> {
        (self.0)(name)
    }
}

impl fmt::Debug for FileProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Given")
    }
}

/// A folder of files with external data, which notes the files that were read. A counted handle.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    read: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl Folder {
    /// Makes a folder of a path.
    pub fn new(path: impl Into<PathBuf>) -> Folder {
        Folder {
            path: path.into(),
            read: Arc::default(),
        }
    }

    /// Makes the folder that holds the file at a path.
    pub fn of(path: &Path) -> Folder {
        match path.parent() {
            Some(folder) if folder != Path::new("") => Folder::new(folder),
            _ => Folder::new("."),
        }
    }

    /// Returns the path, as the caller wrote it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of a file in the folder, with links resolved, and notes the file as read.
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

    /// Returns the paths of the files that were read, with links resolved.
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

/// A reader of external data, for one import.
pub(super) struct ExternalFiles {
    external_data: ExternalData,
    /// The most bytes of external data that are read.
    max_bytes: u64,
    /// Whether large elements stay in their files.
    is_large: bool,
    /// The file that was read last, with its name and length: most models have one.
    open: Option<(String, OpenFile, u64)>,
}

/// A file that is open: on disk, or as the bytes of a provider.
pub(crate) enum OpenFile {
    File(File),
    Bytes(SharedBytes),
}

/// The entries of `external_data`: the file and the range of a tensor's elements.
struct ExternalInfo<'p> {
    location: &'p str,
    offset: u64,
    length: Option<u64>,
}

/// The file and the offset of elements that stay in their file.
pub(super) struct ExternalRef<'p> {
    pub(super) location: &'p str,
    pub(super) offset: u64,
}

/// The value of [`TensorProto::data_location`] for external data.
const EXTERNAL: i32 = 1;

/// Returns whether a tensor's elements are external.
pub(super) fn is_external(tensor: &TensorProto) -> bool {
    tensor.data_location == Some(EXTERNAL)
}

fn error(message: String) -> Problem {
    Problem::new(codes::EXTERNAL_DATA, message)
}

impl ExternalFiles {
    pub(super) fn new(external_data: &ExternalData) -> ExternalFiles {
        ExternalFiles {
            external_data: external_data.clone(),
            max_bytes: MAX_READ_BYTES,
            is_large: false,
            open: None,
        }
    }

    /// Lowers the most bytes that are read.
    pub(super) fn within(mut self, max_bytes: u64) -> ExternalFiles {
        self.max_bytes = self.max_bytes.min(max_bytes);
        self
    }

    /// Sets the number of bytes of external data that the model has, which decides whether large elements stay in
    /// their files.
    pub(super) fn expect(&mut self, len_bytes: u64) {
        self.is_large = len_bytes > self.max_bytes;
    }

    /// Returns the place of a tensor's elements, which take `len_bytes`, if they are to stay in their file.
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
    ) -> Result<Bytes, Problem> {
        let ExternalInfo {
            location, offset, ..
        } = self.find(tensor, len_bytes)?;
        let (opened, _) = self.file(location)?;
        let read = opened.read_at(offset, len_bytes);
        read.map_err(|cause| error(format!("cannot read '{}': {cause}", shown(location))))
    }

    /// Returns the place of a tensor's elements, and checks that the file has as many bytes.
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
        self.external_data
            .open(location)
            .map_err(|problem| match problem {
                (message, Some(help)) => error(message).help(help),
                (message, None) => error(message),
            })
    }
}

impl OpenFile {
    /// Reads so many bytes from an offset on. The caller has compared both with the length of the file.
    pub(crate) fn read_at(&mut self, offset: u64, len_bytes: usize) -> std::io::Result<Bytes> {
        match self {
            OpenFile::File(file) => {
                // Made at its size at once, and filled in place.
                let mut bytes = vec![0; len_bytes];
                file.seek(SeekFrom::Start(offset))?;
                file.read_exact(&mut bytes)?;
                Ok(bytes.into())
            }
            OpenFile::Bytes(given) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let found = (**given).as_ref().get(start..);
                let found = found.and_then(|rest| rest.get(..len_bytes));
                let found = found.ok_or(std::io::ErrorKind::UnexpectedEof)?;
                Ok(Bytes::copy_from_slice(found))
            }
        }
    }
}

impl ExternalData {
    /// Reads a file by its name relative to the model's folder, of so many bytes at most.
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

    /// Opens a file, and returns its length, or an error message and advice.
    pub(crate) fn open(
        &self,
        location: &str,
    ) -> Result<(OpenFile, u64), (String, Option<&'static str>)> {
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
