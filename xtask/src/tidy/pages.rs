//! Paths and tests that pages name must be there.
//!
//! A path stands in backticks and begins with a folder of the root, or with the folder of a crate
//! (`host/src/executor.rs` for `crates/host/src/executor.rs`); a test is the `--test NAME` of a command. Words in
//! capitals stand for others, and `*` for anything: such paths are not checked.

use std::fs;
use std::path::{Path, PathBuf};

use crate::steps::root;

/// The folders of the root that paths begin with.
const FOLDERS: [&str; 8] = [
    ".ci/",
    ".cargo/",
    "benches/",
    "crates/",
    "docs/",
    "examples/",
    "tests/",
    "xtask/",
];

/// Pages about the past, whose paths were right then.
const LEDGERS: [&str; 4] = [
    "CHANGELOG.md",
    "docs/checkers.md",
    "docs/fuzzing.md",
    "docs/mutants.md",
];

/// Returns the complaints on all pages.
pub fn check() -> Vec<String> {
    let mut pages = Vec::new();
    for folder in ["", "docs", "tests"] {
        let entries = fs::read_dir(root().join(folder)).into_iter().flatten();
        pages.extend(entries.flatten().map(|entry| entry.path()));
    }
    pages.retain(|page| page.extension().is_some_and(|kind| kind == "md"));
    pages.sort();
    pages.iter().flat_map(|page| on_page(page)).collect()
}

fn on_page(page: &Path) -> Vec<String> {
    let name = page.strip_prefix(root()).unwrap_or(page);
    let name = name.to_string_lossy().into_owned();
    if LEDGERS.contains(&name.as_str()) {
        return Vec::new();
    }
    let text = fs::read_to_string(page).unwrap_or_default();
    let mut complaints = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let quoted = line.split('`').skip(1).step_by(2);
        for words in quoted {
            if let Some(path) = path(words).filter(|path| !is_there(path)) {
                complaints.push(format!(
                    "{name}:{number}: expected a path of the repository, found '{path}'"
                ));
            }
        }
        if let Some(test) = test(line).filter(|(package, test)| !has_test(package, test)) {
            let (package, test) = test;
            complaints.push(format!(
                "{name}:{number}: expected a test of {package}, found '--test {test}'"
            ));
        }
    }
    complaints
}

/// Returns the path that quoted words are, if they are one that can be checked.
fn path(words: &str) -> Option<&str> {
    let stands_for_others = words
        .split(['/', '.'])
        .any(|part| part.len() > 1 && part.chars().all(|c| c.is_ascii_uppercase() || c == '_'));
    let is_plain = !words.contains([' ', '*', '<', '{', '$', ':']) && !stands_for_others;
    let in_crate = words
        .split_once("/src/")
        .is_some_and(|(name, _)| !name.contains('/'));
    let is_path = in_crate || FOLDERS.iter().any(|folder| words.starts_with(folder));
    (is_plain && is_path).then_some(words)
}

fn is_there(path: &str) -> bool {
    root().join(path).exists() || root().join("crates").join(path).exists()
}

/// Returns package and name of the test that a command names.
fn test(line: &str) -> Option<(String, String)> {
    let command = &line[line.find("cargo test")?..];
    let after = |option: &str| {
        let (_, rest) = command.split_once(option)?;
        let word: String = rest
            .chars()
            .take_while(|c| c.is_alphanumeric() || "-_".contains(*c))
            .collect();
        (!word.is_empty()).then_some(word)
    };
    Some((after("-p ")?, after("--test ")?))
}

fn has_test(package: &str, test: &str) -> bool {
    let short = package.strip_prefix("tfrt-").unwrap_or(package);
    let folders: [PathBuf; 2] = [
        root().join("crates").join(short),
        root().join("examples").join(short),
    ];
    folders.iter().any(|folder| {
        let tests = folder.join("tests");
        tests.join(format!("{test}.rs")).exists() || tests.join(test).join("main.rs").exists()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_from_other_words() {
        assert_eq!(path("host/src/executor.rs"), Some("host/src/executor.rs"));
        assert_eq!(path("crates/ops/src/"), Some("crates/ops/src/"));
        for words in [
            "cargo test",
            "crates/X_Y/src",
            "tests/*.mlir",
            "a/b/src/c.rs",
            "x = y",
        ] {
            assert_eq!(path(words), None, "{words}");
        }
    }

    #[test]
    fn tests_of_commands_are_found() {
        let line = "| `A=1 cargo test --release -p tfrt --test corpus` |";
        assert_eq!(test(line), Some(("tfrt".to_owned(), "corpus".to_owned())));
        assert!(has_test("tfrt", "corpus"));
        assert!(!has_test("tfrt", "nothing"));
    }
}
