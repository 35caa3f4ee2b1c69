//! Checks of plugins before anything of them runs: what they ask for, and whether they load.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::elf::{self, Library, Undefined};
use crate::functions;
use crate::library::{EMPTY, FRAMEWORK, is_answered};

/// The entry points that a plugin may have.
const ENTRY_POINTS: [&str; 6] = [
    "TF_InitKernel",
    "SE_InitPlugin",
    "TF_InitGraph",
    "TF_InitProfiler",
    "TFNPD_InitPlugin",
    "GetPjrtApi",
];

/// Libraries that bring threads of their own.
const THREADS: [&str; 4] = ["libiomp5", "libgomp", "libomp", "libtbb"];

/// The most libraries beside a plugin that are looked at.
const MAX_BESIDE: usize = 64;

/// The result of a check.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The file.
    pub path: PathBuf,
    /// The machine that it is for.
    pub machine: &'static str,
    /// Libraries of TensorFlow that it asks for.
    pub asks_for: Vec<String>,
    /// Its entry points.
    pub entry_points: Vec<&'static str>,
    /// Functions of the C API that it and the libraries that it asks for want, and the host has.
    pub provided: Vec<String>,
    /// Those that the host does not have: they answer by a fault.
    pub unprovided: Vec<String>,
    /// Functions of the C API that other libraries in its folders want, which it may open itself.
    pub beside: Vec<String>,
    /// Libraries of TensorFlow that those ask for.
    pub beside_asks_for: Vec<String>,
    /// Libraries that bring threads of their own.
    pub threads: Vec<String>,
    /// Why it does not load, if it does not.
    pub reasons: Vec<Reason>,
}

/// A reason why a plugin does not load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The file is no library for this machine.
    Unreadable(String),
    /// Symbols of TensorFlow's C++ classes, which only TensorFlow has.
    CppSymbols(Vec<String>),
    /// A library that it asks for and that is nowhere.
    MissingLibrary {
        /// The library.
        name: String,
        /// The library that asks for it: the plugin, or one that the plugin asks for.
        by: String,
    },
    /// Symbols that no library has.
    MissingSymbols(Vec<String>),
    /// Symbols that must have a version, which the host's have not.
    Versions(Vec<String>),
    /// It has no entry point, and asks for no function of the C API.
    NoPlugin,
}

impl Reason {
    /// Returns the code of the message.
    pub fn code(&self) -> &'static str {
        match self {
            Reason::Unreadable(_) => crate::codes::UNREADABLE,
            Reason::CppSymbols(_) => crate::codes::CPP_SYMBOLS,
            Reason::MissingLibrary { .. } => crate::codes::MISSING_LIBRARY,
            Reason::MissingSymbols(_) => crate::codes::MISSING_SYMBOLS,
            Reason::Versions(_) => crate::codes::VERSIONS,
            Reason::NoPlugin => crate::codes::NO_PLUGIN,
        }
    }

    /// Returns the symbols that it is about.
    pub fn symbols(&self) -> &[String] {
        match self {
            Reason::CppSymbols(list) | Reason::MissingSymbols(list) | Reason::Versions(list) => {
                list
            }
            _ => &[],
        }
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reason::Unreadable(why) => f.write_str(why),
            Reason::CppSymbols(list) => write!(
                f,
                "it asks for {} symbols of TensorFlow's C++ classes, which only TensorFlow has",
                list.len()
            ),
            Reason::MissingLibrary { name, by } => {
                write!(f, "{by} asks for the library {name}, which is nowhere")
            }
            Reason::MissingSymbols(list) => {
                write!(f, "it asks for {} symbols that no library has", list.len())
            }
            Reason::Versions(list) => write!(
                f,
                "it asks for {} symbols of a version that only a library of TensorFlow has",
                list.len()
            ),
            Reason::NoPlugin => f.write_str(
                "it is no plugin: it has no entry point (TF_InitKernel), and asks for no function of TensorFlow's C API",
            ),
        }
    }
}

impl Report {
    /// Returns whether the plugin loads.
    pub fn loads(&self) -> bool {
        self.reasons.is_empty()
    }
}

/// Returns whether an undefined symbol is one of C++ code of TensorFlow, or of what it is built with.
fn is_cpp_of_tensorflow(symbol: &str) -> bool {
    let parts = [
        "10tensorflow",
        "3tsl",
        "3xla",
        "15stream_executor",
        "4absl",
        "6google8protobuf",
    ];
    symbol.starts_with("_Z") && parts.iter().any(|part| symbol.contains(part))
}

/// Checks a plugin, and the libraries beside it that it asks for. Nothing of them runs.
pub fn check(path: &Path) -> Report {
    let mut report = Report {
        path: path.to_owned(),
        machine: elf::MACHINE.1,
        ..Report::default()
    };
    // The loader goes by the canonical path, and so do folders beside it.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let main = match Library::read(&path) {
        Ok(main) => main,
        Err(why) => {
            report.reasons.push(Reason::Unreadable(why));
            return report;
        }
    };
    let found = Found::of(main);
    report.entry_points = ENTRY_POINTS
        .into_iter()
        .filter(|name| found.all[0].defined.contains(*name))
        .collect();
    report.asks_for = found.asks_for.iter().cloned().collect();
    report.threads = found.threads();
    report.reasons = found.missing.clone();
    let mut asked: BTreeSet<&str> = BTreeSet::new();
    let (mut cpp, mut missing, mut versions) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let defined: BTreeSet<&str> = found
        .all
        .iter()
        .flat_map(|library| library.defined.iter().map(String::as_str))
        .collect();
    for library in found
        .all
        .iter()
        .filter(|library| !is_of_system(&library.path))
    {
        for Undefined {
            name,
            version,
            is_weak,
        } in &library.undefined
        {
            if defined.contains(name.as_str()) {
                continue;
            }
            if is_answered(name) {
                asked.insert(name);
                // Of the host's library itself no version is asked; the others are empty.
                if let Some((version, file)) = version
                    && file == FRAMEWORK
                {
                    versions.insert(format!("{name}@{version}"));
                }
            } else if !is_weak {
                match is_cpp_of_tensorflow(name) {
                    true => cpp.insert(name.clone()),
                    false => missing.insert(name.clone()),
                };
            }
        }
    }
    let beside = found.beside.iter().flat_map(|library| &library.undefined);
    let beside: BTreeSet<&str> = beside
        .map(|symbol| symbol.name.as_str())
        .filter(|name| is_answered(name) && !defined.contains(name) && !asked.contains(name))
        .collect();
    report.beside = beside.into_iter().map(str::to_owned).collect();
    let needed = found.beside.iter().flat_map(|library| &library.needed);
    let needed: BTreeSet<&String> = needed.filter(|name| is_of_tensorflow(name)).collect();
    report.beside_asks_for = needed.into_iter().cloned().collect();
    let (provided, unprovided): (Vec<&str>, Vec<&str>) = asked
        .into_iter()
        .partition(|name| functions::find(name).is_some());
    report.provided = provided.into_iter().map(str::to_owned).collect();
    report.unprovided = unprovided.into_iter().map(str::to_owned).collect();
    if !cpp.is_empty() {
        report
            .reasons
            .push(Reason::CppSymbols(cpp.into_iter().collect()));
    }
    // Without a library nothing can be said of its symbols.
    let is_sure = found.missing.is_empty();
    if !missing.is_empty() && is_sure {
        report
            .reasons
            .push(Reason::MissingSymbols(missing.into_iter().collect()));
    }
    if !versions.is_empty() {
        report
            .reasons
            .push(Reason::Versions(versions.into_iter().collect()));
    }
    // A library without an entry point may register kernels when it is opened.
    let has_calls = !(report.provided.is_empty() && report.unprovided.is_empty());
    if report.entry_points.is_empty() && !has_calls && report.reasons.is_empty() {
        report.reasons.push(Reason::NoPlugin);
    }
    report
}

/// Returns whether a library is one of TensorFlow, which the host writes.
fn is_of_tensorflow(name: &str) -> bool {
    name == FRAMEWORK || EMPTY.contains(&name)
}

fn is_of_system(path: &Path) -> bool {
    ["/lib", "/usr/lib", "/lib64", "/usr/lib64"]
        .iter()
        .any(|folder| path.starts_with(folder))
}

/// A plugin with all libraries that it asks for, directly or not.
struct Found {
    /// The plugin first.
    all: Vec<Library>,
    /// Libraries in its folders that it may open itself.
    beside: Vec<Library>,
    asks_for: BTreeSet<String>,
    missing: Vec<Reason>,
}

impl Found {
    fn of(main: Library) -> Found {
        let mut found = Found {
            all: vec![main],
            beside: Vec::new(),
            asks_for: BTreeSet::new(),
            missing: Vec::new(),
        };
        let mut seen: BTreeSet<String> = BTreeSet::new();
        let mut next = 0;
        while let Some(library) = found.all.get(next) {
            next += 1;
            let mut read = Vec::new();
            for needed in &library.needed {
                if is_of_tensorflow(needed) {
                    found.asks_for.insert(needed.clone());
                } else if seen.insert(needed.clone()) {
                    match elf::find(needed, library) {
                        Some(path) => read.extend(Library::read(&path)),
                        None => found.missing.push(Reason::MissingLibrary {
                            name: needed.clone(),
                            by: file_name(&library.path),
                        }),
                    }
                }
            }
            found.all.extend(read);
        }
        found.look_beside();
        found
    }

    /// Reads libraries in the folders of the plugin, which it may open when it is initialised.
    fn look_beside(&mut self) {
        let main = &self.all[0];
        let own = main.path.parent().map(Path::to_owned);
        let folders: BTreeSet<PathBuf> = own
            .into_iter()
            .chain(main.run_path.iter().cloned())
            .filter_map(|folder| folder.canonicalize().ok())
            .filter(|folder| !is_of_system(folder))
            .collect();
        let known: BTreeSet<&Path> = self
            .all
            .iter()
            .map(|library| library.path.as_path())
            .collect();
        let entries = folders
            .iter()
            .flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten());
        let paths = entries.flatten().map(|entry| entry.path());
        let mut paths: Vec<PathBuf> = paths
            .filter(|path| file_name(path).contains(".so") && !known.contains(path.as_path()))
            .collect();
        paths.sort();
        paths.truncate(MAX_BESIDE);
        self.beside = paths
            .iter()
            .filter_map(|path| Library::read(path).ok())
            .collect();
    }

    fn threads(&self) -> Vec<String> {
        let needed = self
            .all
            .iter()
            .chain(&self.beside)
            .flat_map(|library| &library.needed);
        let own = needed.filter(|name| THREADS.iter().any(|own| name.starts_with(own)));
        let own: BTreeSet<&String> = own.collect();
        own.into_iter().cloned().collect()
    }
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
