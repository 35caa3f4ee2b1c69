//! [`Repository`]: the models that a server knows, their versions, and which of these are ready.
//!
//! Names are keys of a table that is made of folders when the server starts or is told to look again: no name of a
//! request ever becomes part of a path.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use tfrt_host::{Error, ErrorCode};
use tokio::sync::watch;

use crate::batch::{Batcher, Batching};
use crate::model::Loaded;
use crate::refusal::{Refusal, text_of};
use crate::servable::{Loader, Servable};

mod scan;

pub use scan::VersionPolicy;
use scan::{Found, is_name};

/// Where models come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// One model: a file, a folder that is a model, or a folder of versions by number. Without a name it has that of the
    /// file without its ending, or of the folder.
    Model {
        /// The name that clients use.
        name: Option<String>,
        /// The file or folder.
        path: PathBuf,
    },
    /// A folder of models, each a folder `NAME/VERSION/..`, or a file or folder that is a model itself.
    Folder(PathBuf),
}

/// The models of a server.
pub struct Repository {
    loader: Arc<dyn Loader>,
    sources: Vec<Source>,
    policy: VersionPolicy,
    batching: BatchingRules,
    models: RwLock<BTreeMap<String, Arc<Entry>>>,
    /// Held while models are loaded or unloaded: one after the other.
    changing: Mutex<()>,
    /// Tells of changes of what is ready.
    changes: watch::Sender<()>,
}

/// Which models join requests, and how: those of a name, or all that can.
#[derive(Default)]
struct BatchingRules {
    by_name: BTreeMap<String, Batching>,
    others: Option<Batching>,
}

/// A model that the repository knows of.
#[derive(Clone, Default)]
struct Entry {
    versions: BTreeMap<u64, Version>,
}

#[derive(Clone)]
struct Version {
    /// `None` if it was unloaded, or never loaded.
    loaded: Option<Arc<Loaded>>,
    /// Why the version is not ready, or why its newest file is not what is served.
    reason: String,
}

/// A line of the index of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    pub name: String,
    pub version: u64,
    pub is_ready: bool,
    pub reason: String,
}

/// The verdict on one version of a model: see [`Repository::load_all`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The name of the model.
    pub name: String,
    /// The version.
    pub version: u64,
    /// The reason why it can't be served, of one or more lines; `None` if it can.
    pub reason: Option<String>,
    /// The reason why its requests are not joined into batches, if those of models that can are.
    pub unbatched: Option<String>,
}

impl Repository {
    /// Makes a repository, in which nothing is loaded yet.
    pub fn new(loader: Arc<dyn Loader>, sources: Vec<Source>, policy: VersionPolicy) -> Repository {
        Repository {
            loader,
            sources,
            policy,
            batching: BatchingRules::default(),
            models: RwLock::default(),
            changing: Mutex::default(),
            changes: watch::Sender::new(()),
        }
    }

    /// Joins requests of the model of a name into batches; of all models that can be called so, for no name. A model that
    /// is named, and can't, is not served.
    pub fn batching(mut self, name: Option<&str>, batching: Batching) -> Repository {
        match name {
            Some(name) => {
                self.batching.by_name.insert(name.to_owned(), batching);
            }
            None => self.batching.others = Some(batching),
        }
        self
    }

    /// Adds a model that comes from no file, as version 1, or in place of the one of this name.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a name that no request can have, or if requests are to be joined, and can't be.
    pub fn add(&self, name: &str, servable: Arc<dyn Servable>) -> Result<(), Error> {
        if !is_name(name) {
            return Err(Error::invalid_argument(not_a_name(name)));
        }
        let (loaded, _) = self
            .ready(name, 1, servable)
            .map_err(Error::invalid_argument)?;
        let versions = BTreeMap::from([(1, Version::of(loaded))]);
        self.put(name, Entry { versions });
        Ok(())
    }

    /// Loads all models of the sources. Returns a verdict on each version, in the order of names and versions.
    ///
    /// # Errors
    ///
    /// `NotFound` if a source can't be read, or [`batching`](Self::batching) names none; `InvalidArgument` if names can't be had or two models have the same.
    pub fn load_all(&self) -> Result<Vec<Check>, Error> {
        let _one = self.change();
        let mut verdicts = Vec::new();
        let found = self.scan()?;
        let mut named = self.batching.by_name.keys();
        if let Some(unknown) = named.find(|name| !found.contains_key(*name)) {
            let name = unknown.escape_debug();
            let message =
                format!("requests of '{name}' are to be joined, but there is no such model");
            return Err(Error::new(ErrorCode::NotFound, message));
        }
        for (name, found) in found {
            verdicts.extend(self.load_found(&name, &found));
        }
        Ok(verdicts)
    }

    /// Loads a model, or loads it again: what can be opened takes the place of what is served, requests that run end
    /// where they began. What can't leaves the old one in its place.
    pub(crate) fn load(&self, name: &str) -> Result<(), Refusal> {
        let _one = self.change();
        let found = self.scan().map_err(Refusal::from)?.remove(name);
        let Some(found) = found else {
            return Err(Refusal::not_found(format!(
                "failed to load '{name}': the repository has no such model"
            )));
        };
        let verdicts = self.load_found(name, &found);
        match verdicts.into_iter().find_map(|verdict| verdict.reason) {
            None => Ok(()),
            Some(reason) => {
                let message = format!("failed to load '{name}': {reason}");
                Err(Error::failed_precondition(message).into())
            }
        }
    }

    /// Takes all versions of a model out. One that is not known is none that is served, either.
    pub(crate) fn unload(&self, name: &str) {
        let _one = self.change();
        if let Some(entry) = self.entry(name) {
            let mut entry = Entry::clone(&entry);
            for version in entry.versions.values_mut() {
                version.loaded = None;
                version.reason = "unloaded".to_owned();
            }
            self.put(name, entry);
        }
    }

    /// Returns the version of a model that serves a request: the newest that is ready if none is named.
    pub(crate) fn find(&self, name: &str, version: Option<u64>) -> Result<Arc<Loaded>, Refusal> {
        let unknown =
            || Refusal::not_found(format!("Request for unknown model: '{name}' is not found"));
        let entry = self.entry(name).ok_or_else(unknown)?;
        let found = match version {
            Some(number) => entry
                .versions
                .get(&number)
                .and_then(|own| own.loaded.clone()),
            None => entry.newest().cloned(),
        };
        found.ok_or_else(|| match version {
            Some(number) => Refusal::not_found(format!(
                "Request for unknown model: '{name}' version {number} is not found"
            )),
            None => Refusal::not_found(format!(
                "Request for unknown model: '{name}' has no available versions"
            )),
        })
    }

    /// Returns the names of the models of which a version is ready.
    pub fn names(&self) -> Vec<String> {
        let models = self.models.read().unwrap_or_else(PoisonError::into_inner);
        let ready = models.iter().filter(|(_, entry)| entry.newest().is_some());
        ready.map(|(name, _)| name.clone()).collect()
    }

    /// Returns the versions of a model that are ready.
    pub(crate) fn versions(&self, name: &str) -> Vec<u64> {
        let entry = self.entry(name).unwrap_or_default();
        let versions = entry.versions.iter();
        let ready = versions.filter(|(_, version)| version.loaded.is_some());
        ready.map(|(number, _)| *number).collect()
    }

    /// Returns all versions that are known.
    pub(crate) fn index(&self) -> Vec<IndexEntry> {
        let models = self.models.read().unwrap_or_else(PoisonError::into_inner);
        let of_model = |(name, entry): (&String, &Arc<Entry>)| -> Vec<IndexEntry> {
            let line = |(number, version): (&u64, &Version)| IndexEntry {
                name: name.clone(),
                version: *number,
                is_ready: version.loaded.is_some(),
                reason: version.reason.clone(),
            };
            entry.versions.iter().map(line).collect()
        };
        models.iter().flat_map(of_model).collect()
    }

    /// Returns all versions that are ready.
    pub(crate) fn all(&self) -> Vec<Arc<Loaded>> {
        let models = self.models.read().unwrap_or_else(PoisonError::into_inner);
        let versions = models.values().flat_map(|entry| entry.versions.values());
        versions
            .filter_map(|version| version.loaded.clone())
            .collect()
    }

    /// Returns whether every model has a version that is ready.
    pub(crate) fn is_ready(&self) -> bool {
        let models = self.models.read().unwrap_or_else(PoisonError::into_inner);
        let mut entries = models.values();
        entries.all(|entry| entry.newest().is_some() || entry.is_unloaded())
    }

    /// Returns what hears of changes of what is ready.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Tells that what is ready has changed, or that the server ends.
    pub(crate) fn tell_change(&self) {
        self.changes.send_replace(());
    }

    fn change(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entry(&self, name: &str) -> Option<Arc<Entry>> {
        let models = self.models.read().unwrap_or_else(PoisonError::into_inner);
        models.get(name).cloned()
    }

    fn put(&self, name: &str, entry: Entry) {
        let mut models = self.models.write().unwrap_or_else(PoisonError::into_inner);
        let before = models.insert(name.to_owned(), Arc::new(entry));
        drop(models);
        self.tell_change();
        // Memory is given back outside of the lock.
        drop(before);
    }

    fn scan(&self) -> Result<BTreeMap<String, Found>, Error> {
        scan::scan(&self.sources, &*self.loader)
    }

    /// Makes a version that is ready, and says why its requests are not joined, if those of others are.
    fn ready(
        &self,
        name: &str,
        number: u64,
        servable: Arc<dyn Servable>,
    ) -> Result<(Loaded, Option<String>), String> {
        let named = self.batching.by_name.get(name);
        let (batcher, unbatched) = match named.or(self.batching.others.as_ref()) {
            None => (None, None),
            Some(batching) => match Batcher::new(servable.description(), *batching) {
                Ok(batcher) => (Some(batcher), None),
                Err(reason) if named.is_none() => (None, Some(reason)),
                Err(reason) => return Err(format!("its requests can't be joined: {reason}")),
            },
        };
        Ok((
            Loaded::new(name.into(), number, servable, batcher),
            unbatched,
        ))
    }

    /// Loads the versions of a model that the policy wants, and puts them in the place of those that are there.
    fn load_found(&self, name: &str, found: &Found) -> Vec<Check> {
        let before = self.entry(name).unwrap_or_default();
        let wanted = self.policy.wanted(found.versions.keys().copied());
        let mut entry = Entry::default();
        let mut verdicts = Vec::new();
        for number in wanted {
            let opened = match &found.versions[&number] {
                Ok(path) => self.open(path),
                Err(reason) => Err(reason.clone()),
            };
            let opened = opened.and_then(|servable| self.ready(name, number, servable));
            let mut unbatched = None;
            let (version, reason) = match opened {
                Ok((loaded, reason)) => {
                    unbatched = reason;
                    (Version::of(loaded), None)
                }
                Err(reason) => {
                    let kept = before.versions.get(&number);
                    let version = Version {
                        loaded: kept.and_then(|kept| kept.loaded.clone()),
                        reason: reason.clone(),
                    };
                    (version, Some(reason))
                }
            };
            entry.versions.insert(number, version);
            let name = name.to_owned();
            verdicts.push(Check {
                name,
                version: number,
                reason,
                unbatched,
            });
        }
        // A newer version that can't be opened does not end the one that is served.
        if entry.newest().is_none()
            && let Some(serving) = before.newest()
        {
            let kept = before.versions[&serving.version].clone();
            entry.versions.insert(serving.version, kept);
        }
        self.put(name, entry);
        verdicts
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn Servable>, String> {
        self.loader.load(path)
    }
}

impl Version {
    /// Makes a version that is ready.
    fn of(loaded: Loaded) -> Version {
        Version {
            loaded: Some(Arc::new(loaded)),
            reason: String::new(),
        }
    }
}

impl Entry {
    fn newest(&self) -> Option<&Arc<Loaded>> {
        let versions = self.versions.values().rev();
        versions
            .filter_map(|version| version.loaded.as_ref())
            .next()
    }

    /// Returns whether somebody has taken it out on purpose.
    fn is_unloaded(&self) -> bool {
        let mut versions = self.versions.values();
        versions.all(|version| version.reason == "unloaded")
    }
}

fn not_a_name(name: &str) -> String {
    format!(
        "a model can't be called '{}': a name has 1 to 255 letters, digits, `_`, `-` and `.`, and no `.` in front",
        name.escape_debug()
    )
}

impl From<Error> for Check {
    /// Makes a verdict of an error that belongs to no model.
    fn from(error: Error) -> Check {
        Check {
            name: String::new(),
            version: 0,
            reason: Some(error.message().to_owned()),
            unbatched: None,
        }
    }
}

/// Returns an error about a folder that can't be read. Paths are those of the command line.
fn unreadable(path: &Path, reason: &std::io::Error) -> Error {
    let message = format!("cannot read '{}': {}", path.display(), text_of(reason));
    Error::new(ErrorCode::NotFound, message)
}
