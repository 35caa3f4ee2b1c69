//! `cargo xtask tidy`: the rules that no other tool knows.
//!
//! | Rule | Where it is written down |
//! | --- | --- |
//! | crates depend on each other as in the table | `tidy/edges.rs` |
//! | `unsafe` stands only in the modules that ARCHITECTURE.md lists | ARCHITECTURE.md, "Unsafe modules" |
//! | each external crate has a reason | ARCHITECTURE.md, "External crates" |
//! | files say what they are, are short, and have a home | STYLE.md |
//! | comments begin with what an item is | STYLE.md |
//! | paths and tests that pages name are there | `tidy/pages.rs` |
//! | a target without a harness for tests has no test | `tidy/harness.rs` |
//! | planted bugs and their table are the same, and their patches apply | `planted.rs` |
//! | what an operation is says its row: compiler and core runtime list none, but where formats and patterns are | CONTRIBUTING.md, "Where does it go?" |

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::planted::{self, PLANTED, tree};
use crate::steps::root;

mod edges;
mod harness;
mod pages;

/// The most lines of a file of code.
const MAX_LINES: usize = 1_000;

/// A file of code, by its path from the root.
struct Code {
    path: String,
    text: String,
}

/// Returns all complaints.
pub fn check() -> Vec<String> {
    let files = code();
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap_or_default();
    let mut complaints: Vec<String> = files.iter().flat_map(complaints_on_file).collect();
    complaints.extend(edges::check());
    complaints.extend(pages::check());
    complaints.extend(harness::check(&files));
    complaints.extend(unsafe_modules(&files, &map));
    complaints.extend(external_crates(&map));
    complaints.extend(planted_bugs());
    let rows = fs::read_to_string(root().join("docs/graph.md")).unwrap_or_default();
    complaints.extend(lists_of_operations(&files, &rows));
    complaints.extend(openings(&files));
    complaints
}

/// The openings of comments that send a reader elsewhere before they say anything.
const OPENINGS: [&str; 3] = ["As of ", "What ", "The same"];

fn openings(files: &[Code]) -> Vec<String> {
    let comment = |line: &str| {
        let line = line.trim_start();
        let text = line.strip_prefix("///").or(line.strip_prefix("//!"))?;
        Some(text.trim_start().to_owned())
    };
    let of_file = |file: &Code| {
        let lines: Vec<&str> = file.text.lines().collect();
        let is_first = |at: &usize| *at == 0 || comment(lines[at - 1]).is_none();
        let first_lines = (0..lines.len()).filter(is_first);
        let path = file.path.clone();
        let complaint = |at: usize| {
            let text = comment(lines[at])?;
            let opening = OPENINGS
                .iter()
                .find(|opening| text.starts_with(**opening))?;
            let (number, opening) = (at + 1, opening.trim());
            Some(format!(
                "{path}:{number}: a comment begins with '{opening}': say what it is"
            ))
        };
        first_lines.filter_map(complaint).collect::<Vec<_>>()
    };
    files.iter().flat_map(of_file).collect()
}

/// The most rows that a file of the compiler or of the core runtime may name: those that are special in what it does.
const MAX_ROWS: usize = 11;

/// Finds files that name many operations, where the rows are to be asked. Formats and patterns name those that they know.
fn lists_of_operations(files: &[Code], page: &str) -> Vec<String> {
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("## `")?.strip_suffix('`'));
    let rows: BTreeSet<&str> = rows.collect();
    let is_asked = |file: &&Code| {
        let crates = ["crates/compiler/src/", "crates/corert/src/"];
        let allowed = ["/legalize/", "/fuse/"];
        crates.iter().any(|own| file.path.starts_with(own))
            && !allowed.iter().any(|folder| file.path.contains(folder))
            && !is_for_tests(&file.path)
    };
    let named = |file: &Code| -> BTreeSet<String> {
        let literals = file.text.split('"').skip(1).step_by(2);
        let names = literals.map(|text| text.strip_prefix("graph.").unwrap_or(text));
        names
            .filter(|name| rows.contains(name))
            .map(str::to_owned)
            .collect()
    };
    let found = files
        .iter()
        .filter(is_asked)
        .map(|file| (file, named(file)));
    found
        .filter(|(_, names)| names.len() > MAX_ROWS)
        .map(|(file, names)| {
            let (n, names) = (names.len(), Vec::from_iter(names).join(", "));
            format!(
                "{}: names {n} operations, which their rows should say: {names}",
                file.path
            )
        })
        .collect()
}

/// Returns all Rust files, in order.
fn code() -> Vec<Code> {
    let mut paths = Vec::new();
    for folder in ["crates", "xtask", "examples", "benches", "fuzz"] {
        collect(&root().join(folder), &mut paths);
    }
    paths.sort();
    let read = |path: PathBuf| {
        let short = path.strip_prefix(root()).unwrap_or(&path);
        Code {
            path: short.to_string_lossy().replace('\\', "/"),
            text: fs::read_to_string(&path).unwrap_or_default(),
        }
    };
    paths.into_iter().map(read).collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
}

fn complaints_on_file(file: &Code) -> Vec<String> {
    // Cut in two, so that this file does not complain about itself.
    let forbidden = [
        concat!("to", "do!("),
        concat!("unimple", "mented!("),
        concat!("db", "g!("),
        concat!("#[ign", "ore"),
        concat!("FIX", "ME"),
        concat!("TO", "DO"),
        concat!("XX", "X:"),
    ];
    let homeless = [
        "mod.rs",
        "util.rs",
        "utils.rs",
        "common.rs",
        "helpers.rs",
        "misc.rs",
    ];
    let name = file.path.rsplit('/').next().unwrap_or_default();
    let n_lines = file.text.lines().count();
    let mut complaints = Vec::new();
    // A module's tests need no introduction: the module has one.
    if name != "tests.rs" && !file.text.starts_with("//! ") {
        complaints.push(format!("{}:1: the file does not say what it is", file.path));
    }
    if n_lines >= MAX_LINES {
        complaints.push(format!("{}: {n_lines} lines are too many", file.path));
    }
    if homeless.contains(&name) {
        complaints.push(format!("{}: the name does not say what it is", file.path));
    }
    for (index, line) in file.text.lines().enumerate() {
        for word in forbidden.iter().filter(|word| line.contains(**word)) {
            complaints.push(format!("{}:{}: `{word}`", file.path, index + 1));
        }
    }
    complaints
}

/// Compares the modules that have `unsafe` with those that the map lists.
fn unsafe_modules(files: &[Code], map: &str) -> Vec<String> {
    let found: BTreeSet<&str> = files
        .iter()
        .filter(|file| file.path.starts_with("crates/") && file.path.contains("/src/"))
        .filter(|file| !is_for_tests(&file.path) && has_word(&file.text, "unsafe"))
        .map(|file| file.path.as_str())
        .collect();
    let listed: BTreeSet<&str> = listed(map, "## Unsafe modules").into_iter().collect();
    differences(&found, &listed, "has `unsafe`", "has no `unsafe`")
}

/// Compares the workspace's dependencies with those that the map gives a reason for.
fn external_crates(map: &str) -> Vec<String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap_or_default();
    let found: BTreeSet<&str> = edges::section(&manifest, "[workspace.dependencies]")
        .filter(|name| !name.starts_with("tfrt"))
        .collect();
    let listed: BTreeSet<&str> = listed(map, "## External crates").into_iter().collect();
    differences(&found, &listed, "is a dependency", "is no dependency")
}

fn differences(
    found: &BTreeSet<&str>,
    listed: &BTreeSet<&str>,
    is: &str,
    is_not: &str,
) -> Vec<String> {
    let unlisted = found.difference(listed);
    let unfound = listed.difference(found);
    unlisted
        .map(|name| format!("{name} {is}, but ARCHITECTURE.md does not list it"))
        .chain(unfound.map(|name| format!("{name} {is_not}, but ARCHITECTURE.md lists it")))
        .collect()
}

/// Returns the names in backticks that begin the rows of the tables under a heading.
fn listed<'m>(map: &'m str, heading: &str) -> Vec<&'m str> {
    let Some((_, section)) = map.split_once(&format!("{heading}\n")) else {
        return Vec::new();
    };
    let section = section.split_once("\n## ").map_or(section, |(own, _)| own);
    section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name)
        .collect()
}

/// Compares the patches that plant bugs with the table, and with the code as it is.
fn planted_bugs() -> Vec<String> {
    let found = tree::names();
    let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
    let listed: BTreeSet<&str> = PLANTED.iter().map(|bug| bug.name).collect();
    let unlisted = found.difference(&listed).map(|name| {
        format!("xtask/planted/{name}.patch: xtask/src/planted.rs has no finder for the bug")
    });
    let unfound = listed.difference(&found).map(|name| {
        format!("xtask/planted/{name}.patch: expected, as xtask/src/planted.rs lists the bug")
    });
    let groups = planted::groups().into_iter();
    let broken = groups.filter_map(|mut group| {
        group.retain(|name| found.contains(name));
        if group.is_empty() {
            return None;
        }
        let error = tree::check(&group).err()?;
        let (names, error) = (group.join(", "), error.to_string().replace('\n', "; "));
        Some(format!(
            "xtask/planted: expected patches that apply to the code ({names}), found: {error}; docs/checkers.md says how to write one anew"
        ))
    });
    unlisted.chain(unfound).chain(broken).collect()
}

/// Returns whether a file is compiled for tests and models only.
fn is_for_tests(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    ["tests.rs", "loom.rs", "models.rs"].contains(&name) || path.contains("/tests/")
}

/// Returns whether code has a word, outside of comments and of texts in quotes.
fn has_word(text: &str, word: &str) -> bool {
    // A module's tests may do what the module may not.
    let own = text.split("#[cfg(test)]").next().unwrap_or_default();
    own.lines().any(|line| {
        let code = line.split("//").next().unwrap_or_default();
        let unquoted = code.split('"').step_by(2);
        unquoted
            .flat_map(|piece| piece.split(|c: char| !c.is_alphanumeric() && c != '_'))
            .any(|found| found == word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_code_only() {
        assert!(has_word("let x = unsafe { f() };", "unsafe"));
        assert!(has_word("unsafe fn f() {}", "unsafe"));
        for text in [
            "// unsafe",
            "#![forbid(unsafe_code)]",
            "say(\"unsafe\")",
            "fn f() {}\n#[cfg(test)]\nunsafe fn g() {}",
        ] {
            assert!(!has_word(text, "unsafe"), "{text}");
        }
    }

    #[test]
    fn rows_under_a_heading_are_listed() {
        let map = "## One\n| `a` | x |\n| b |\n\n## Two\n| `c/d.rs` | y |\n";
        assert_eq!(listed(map, "## One"), ["a"]);
        assert_eq!(listed(map, "## Two"), ["c/d.rs"]);
        assert!(listed(map, "## Three").is_empty());
    }
}
