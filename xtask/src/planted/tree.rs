//! The patches that plant bugs, and the copy of the workspace that they are applied to.
//!
//! The copy is kept from one bug to the next, and only files whose content differs are written: so cargo builds no
//! more than what a bug has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, path};

use crate::steps::{root, target, tracked_files};

/// Returns the names of all bugs that have a patch.
pub fn names() -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(root().join("xtask/planted")) else {
        return BTreeSet::new();
    };
    let files = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    files
        .filter_map(|file| Some(file.strip_suffix(".patch")?.to_owned()))
        .collect()
}

/// Returns the first file that a bug's patch changes.
pub fn place(bug: &str) -> String {
    let patch = read(&[bug]).unwrap_or_default();
    changed_files(&patch).next().unwrap_or_default().to_owned()
}

/// Checks that the patches of some bugs apply together to the workspace as it is.
///
/// # Errors
///
/// If one is not there, or does not apply: what git says.
pub fn check(bugs: &[&str]) -> io::Result<()> {
    apply(&read(bugs)?, &root(), &["--check"])
}

/// Makes the copy the same as the workspace but for the bugs.
///
/// # Errors
///
/// If a patch does not apply, or a file can't be read or written.
pub fn plant(bugs: &[&str]) -> io::Result<()> {
    let (tree, patched) = (tree()?, patched(bugs)?);
    let files: BTreeSet<String> = tracked_files()?.into_iter().collect();
    for file in files_under(&tree, &tree)? {
        if !files.contains(&file) {
            fs::remove_file(tree.join(file))?;
        }
    }
    for file in &files {
        let (source, copy) = (root().join(file), tree.join(file));
        let wanted = match patched.get(file) {
            Some(text) => text.clone(),
            None => fs::read(&source)?,
        };
        if fs::read(&copy).is_ok_and(|present| present == wanted) {
            continue;
        }
        fs::create_dir_all(copy.parent().unwrap_or(&tree))?;
        match patched.contains_key(file) {
            true => fs::write(copy, wanted)?,
            // It keeps the rights to execute, too.
            false => fs::copy(source, copy).map(|_| ())?,
        }
    }
    Ok(())
}

/// Has a command of cargo build the copy, under a folder of this name.
///
/// # Errors
///
/// If there is no current folder that paths could begin at.
pub fn build_there(command: &mut Command, name: &str) -> io::Result<()> {
    command
        .current_dir(tree()?)
        .env("CARGO_TARGET_DIR", folder()?.join(name));
    Ok(())
}

fn folder() -> io::Result<PathBuf> {
    path::absolute(target("planted"))
}

fn tree() -> io::Result<PathBuf> {
    Ok(folder()?.join("tree"))
}

/// Returns the patches of some bugs, one behind the other.
fn read(bugs: &[&str]) -> io::Result<String> {
    let patches = bugs.iter().map(|bug| {
        let path = format!("xtask/planted/{bug}.patch");
        fs::read_to_string(root().join(&path))
            .map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))
    });
    patches.collect()
}

/// Returns the paths of the files that a patch changes.
fn changed_files(patch: &str) -> impl Iterator<Item = &str> {
    patch.lines().filter_map(|line| line.strip_prefix("+++ b/"))
}

/// Returns the text of each file that the bugs change, with the change.
fn patched(bugs: &[&str]) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let patch = read(bugs)?;
    // Beside the copy, in which files are not to be written twice.
    let folder = folder()?.join("patched");
    let files: BTreeSet<&str> = changed_files(&patch).collect();
    for file in &files {
        let copy = folder.join(file);
        fs::create_dir_all(copy.parent().unwrap_or(&folder))?;
        fs::copy(root().join(file), copy)?;
    }
    apply(&patch, &folder, &[])?;
    let read = |file: &str| Ok((file.to_owned(), fs::read(folder.join(file))?));
    files.into_iter().map(read).collect()
}

/// Calls `git apply` for a patch in a folder, which is taken for the root of all paths.
fn apply(patch: &str, folder: &Path, arguments: &[&str]) -> io::Result<()> {
    let mut git = Command::new("git");
    git.args(["apply", "--whitespace=nowarn"])
        .args(arguments)
        .arg("-")
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped());
    // It passes over files outside of the folder, were that taken for a part of a repository.
    git.envs(
        folder
            .parent()
            .map(|parent| ("GIT_CEILING_DIRECTORIES", parent)),
    );
    let mut child = git.spawn()?;
    let written = child
        .stdin
        .take()
        .expect("it is piped")
        .write_all(patch.as_bytes());
    let output = child.wait_with_output()?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(io::Error::other(message));
    }
    written
}

/// Returns the paths of all files in a folder of the tree, from its root on.
fn files_under(folder: &Path, tree: &Path) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    if !folder.exists() {
        return Ok(files);
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let short = path.strip_prefix(tree).unwrap_or(&path).to_string_lossy();
        if !path.is_dir() {
            files.push(short.into_owned());
        } else if short != "target" {
            files.extend(files_under(&path, tree)?);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_those_with_the_change() {
        let patch = "# Why.\ndiff --git a/x/y.rs b/x/y.rs\n--- a/x/y.rs\n+++ b/x/y.rs\n@@ -1 +1 @@\n-a\n+b\n";
        assert_eq!(changed_files(patch).collect::<Vec<_>>(), ["x/y.rs"]);
    }

    #[test]
    fn patches_of_one_file_apply_one_behind_the_other() {
        let folder = folder().expect("there is a current folder").join("tests");
        fs::create_dir_all(&folder).expect("folders can be made");
        let file = folder.join("a.txt");
        fs::write(&file, "1\n2\n").expect("files can be written");
        let patch = |old: &str, new: &str| {
            format!("# Why.\n--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n{old}{new}")
        };
        let both = patch("-1\n+3\n", " 2\n") + &patch(" 3\n", "-2\n+4\n");
        apply(&both, &folder, &["--check"]).expect("it applies");
        apply(&both, &folder, &[]).expect("it applies");
        let text = fs::read_to_string(file).expect("it is there");
        assert_eq!(text, "3\n4\n");
        let error = apply(&both, &folder, &["--check"]).expect_err("the text is another one");
        assert!(error.to_string().contains("a.txt"), "{error}");
    }
}
