//! Targets that Cargo builds no harness for, which saves compiling a crate twice: a test in one would never run.

use std::fs;

use super::Code;
use crate::steps::{root, tracked_files};

/// Returns complaints on tests in targets with `test = false`.
pub(super) fn check(files: &[Code]) -> Vec<String> {
    let all = tracked_files().unwrap_or_default();
    let manifests = all.iter().filter(|path| path.ends_with("Cargo.toml"));
    let places = manifests.flat_map(|path| {
        let text = fs::read_to_string(root().join(path)).unwrap_or_default();
        let folder = path.trim_end_matches("Cargo.toml");
        without_harness(&text)
            .into_iter()
            .map(move |place| format!("{folder}{place}"))
            .collect::<Vec<_>>()
    });
    let places: Vec<String> = places.collect();
    let is_in = |file: &&Code| {
        let mut places = places.iter();
        places.any(|place| file.path.starts_with(place.as_str())) && has_test(&file.text)
    };
    let complaint = |file: &Code| {
        let path = &file.path;
        format!(
            "{path}: has a test, but its target has `test = false` in Cargo.toml: it would never run"
        )
    };
    files.iter().filter(is_in).map(complaint).collect()
}

fn has_test(text: &str) -> bool {
    text.lines().any(|line| line.trim() == "#[test]")
}

/// Returns the files or folders of a manifest's targets without a harness.
fn without_harness(manifest: &str) -> Vec<String> {
    let sections = manifest
        .split("\n[")
        .map(|section| section.trim_start_matches('['));
    let package = value(manifest, "name");
    let place = |section: &str| {
        let value = |key: &str| value(section, key);
        if value("test") != Some("false") {
            return None;
        }
        let path = value("path").map(str::to_owned);
        match section.lines().next()?.trim_end_matches(']') {
            // The root of a library is a file, its modules are beside it.
            "lib" => Some(path.unwrap_or_else(|| "src/".to_owned())),
            "bin" if value("name") == package => {
                Some(path.unwrap_or_else(|| "src/main.rs".to_owned()))
            }
            "bin" => path.or_else(|| Some(format!("src/bin/{}.rs", value("name")?))),
            _ => None,
        }
    };
    sections.filter_map(place).collect()
}

/// Returns the first value of a key.
fn value<'m>(section: &'m str, key: &str) -> Option<&'m str> {
    let mut lines = section.lines();
    lines.find_map(|line| {
        let value = line.strip_prefix(key)?.strip_prefix(" = ")?;
        Some(value.trim_matches('"'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_without_a_harness_are_those_that_say_so() {
        let manifest = "[package]\nname = \"a\"\n\n[lib]\ntest = false\n\n[[bin]]\nname = \"one\"\ntest = false\n\n\
                        [[bin]]\nname = \"two\"\npath = \"two.rs\"\ntest = false\n\n[[bin]]\nname = \"three\"\n";
        assert_eq!(
            without_harness(manifest),
            ["src/", "src/bin/one.rs", "two.rs"]
        );
        assert!(has_test("mod tests {\n    #[test]\n    fn f() {}\n}"));
    }
}
