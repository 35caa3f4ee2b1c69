//! Finds the models in files and folders: [`scan`]; and chooses among their versions: [`VersionPolicy`].

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tfrt_host::Error;

use super::{Source, not_a_name, unreadable};
use crate::servable::Loader;

/// The versions of a model that are loaded, of those that are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionPolicy {
    /// So many, those of the highest numbers.
    Latest(usize),
    /// All of them.
    All,
}

impl Default for VersionPolicy {
    fn default() -> VersionPolicy {
        VersionPolicy::Latest(1)
    }
}

impl VersionPolicy {
    /// Returns the versions to load, of these.
    pub(super) fn wanted(self, found: impl DoubleEndedIterator<Item = u64>) -> Vec<u64> {
        let n_wanted = match self {
            VersionPolicy::Latest(n_wanted) => n_wanted,
            VersionPolicy::All => usize::MAX,
        };
        let mut wanted: Vec<u64> = found.rev().take(n_wanted).collect();
        wanted.reverse();
        wanted
    }
}

/// The files of a model: for each version the path to open, or the reason why there is none.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub versions: BTreeMap<u64, Result<PathBuf, String>>,
}

/// Returns whether a model can have this name: it stands in addresses as it is.
pub(super) fn is_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    (1..=255).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(is_letter)
}

/// Finds the models of all sources, by name.
///
/// # Errors
///
/// `NotFound` if a source can't be read, `InvalidArgument` for a name that can't be had or is there twice.
pub(super) fn scan(
    sources: &[Source],
    loader: &dyn Loader,
) -> Result<BTreeMap<String, Found>, Error> {
    let mut all = BTreeMap::new();
    for source in sources {
        match source {
            Source::Model { name, path } => {
                let name = name.clone().unwrap_or_else(|| name_of(path));
                let found = model(path, loader).map_err(|reason| unreadable(path, &reason))?;
                insert(&mut all, name, found)?;
            }
            Source::Folder(folder) => {
                let entries = entries(folder).map_err(|reason| unreadable(folder, &reason))?;
                for path in entries {
                    let is_model = path.is_dir() || loader.recognises(&path);
                    if is_model {
                        let found = model(&path, loader);
                        let found = found.map_err(|reason| unreadable(&path, &reason))?;
                        insert(&mut all, name_of(&path), found)?;
                    }
                }
            }
        }
    }
    Ok(all)
}

fn insert(all: &mut BTreeMap<String, Found>, name: String, found: Found) -> Result<(), Error> {
    if !is_name(&name) {
        return Err(Error::invalid_argument(not_a_name(&name)));
    }
    match all.insert(name.clone(), found) {
        None => Ok(()),
        Some(_) => Err(Error::invalid_argument(format!(
            "two models are called '{name}'; `--name NAME=PATH` gives one another name"
        ))),
    }
}

/// Returns the name of a file without its ending, or of a folder.
fn name_of(path: &Path) -> String {
    let name = match path.is_dir() {
        true => path.file_name(),
        false => path.file_stem(),
    };
    // Of `.` and `..`, which have no name, that of where they lead.
    let whole = || {
        fs::canonicalize(path)
            .ok()?
            .file_name()
            .map(ToOwned::to_owned)
    };
    let name = name
        .map(ToOwned::to_owned)
        .or_else(whole)
        .unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Finds the versions of the model in a file or folder.
fn model(path: &Path, loader: &dyn Loader) -> std::io::Result<Found> {
    let one = |chosen| Found {
        versions: BTreeMap::from([(1, chosen)]),
    };
    if !fs::metadata(path)?.is_dir() || loader.recognises(path) {
        return Ok(one(Ok(path.to_owned())));
    }
    let mut versions = BTreeMap::new();
    for entry in entries(path)? {
        let number = entry.file_name().and_then(|name| name.to_str());
        let number = number.filter(|name| !name.starts_with('0') && !name.starts_with('+'));
        if let Some(number) = number.and_then(|name| name.parse::<u64>().ok())
            && entry.is_dir()
        {
            versions.insert(number, file_of_version(&entry, loader)?);
        }
    }
    if versions.is_empty() {
        return Ok(one(file_of_version(path, loader)?));
    }
    Ok(Found { versions })
}

/// Finds the model in the folder of a version: the folder itself, or the only thing in it that is one; of several, that
/// called `model`.
fn file_of_version(folder: &Path, loader: &dyn Loader) -> std::io::Result<Result<PathBuf, String>> {
    if loader.recognises(folder) {
        return Ok(Ok(folder.to_owned()));
    }
    let all = entries(folder)?.into_iter();
    let mut models: Vec<PathBuf> = all.filter(|path| loader.recognises(path)).collect();
    if models.len() > 1 {
        let is_model = |path: &PathBuf| path.file_stem().is_some_and(|stem| stem == "model");
        let called_model: Vec<PathBuf> = models
            .iter()
            .filter(|path| is_model(path))
            .cloned()
            .collect();
        if !called_model.is_empty() {
            models = called_model;
        }
    }
    Ok(match models.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err("the folder has no file of a model, such as `model.onnx`".to_owned()),
        several => {
            let names: Vec<_> = several.iter().filter_map(|path| path.file_name()).collect();
            let names: Vec<_> = names.iter().map(|name| name.to_string_lossy()).collect();
            Err(format!(
                "expected one model in the folder, found {}",
                names.join(", ")
            ))
        }
    })
}

/// Returns what is in a folder, in the order of names, but for what is hidden.
fn entries(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with('.') {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_versions_are_wanted() {
        let wanted = |policy: VersionPolicy| policy.wanted([1, 3, 7].into_iter());
        assert_eq!(wanted(VersionPolicy::default()), [7]);
        assert_eq!(wanted(VersionPolicy::Latest(2)), [3, 7]);
        assert_eq!(wanted(VersionPolicy::All), [1, 3, 7]);
    }

    #[test]
    fn names_stand_in_addresses_as_they_are() {
        for name in ["m", "resnet-50.v2_x", "1"] {
            assert!(is_name(name), "{name}");
        }
        let long = "x".repeat(256);
        for name in [
            "", ".", "..", ".m", "a/b", "a b", "a%2fb", "ä", "a\0", &long,
        ] {
            assert!(!is_name(name), "{name}");
        }
    }
}
