//! The program that trains by Adam: stopped, saved, loaded and continued it has the bits of one that was never stopped.

use std::error::Error;
use std::path::{Path, PathBuf};

#[expect(dead_code, reason = "the tests call what `main` calls")]
#[path = "../../examples/adam_digits.rs"]
mod adam_digits;

/// A folder of this test's own, removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("tfrt-adam-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _left = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs the program; returns the lines that it writes.
fn train(options: &[&str], files: &[(&str, &Path)]) -> Result<Vec<String>, Box<dyn Error>> {
    let options = options.iter().map(|option| (*option).to_owned());
    let files = files
        .iter()
        .flat_map(|(option, path)| [(*option).to_owned(), path.display().to_string()]);
    let mut said = Vec::new();
    adam_digits::run(options.chain(files), &mut said)?;
    let text = String::from_utf8(said)?;
    Ok(text.lines().map(str::to_owned).collect())
}

#[test]
fn training_that_is_saved_and_loaded_has_the_bits_of_one_that_is_not_stopped() {
    let folder = Folder::new("half");
    let whole = train(&["--steps", "300"], &[]).unwrap();
    assert!(whole[0].starts_with("300 steps: loss"), "{whole:?}");
    let right = whole[1].split(' ').nth(4).and_then(|n| n.parse().ok());
    assert!(right.unwrap_or(0) > 310, "of 359: {whole:?}");
    for name in ["half.safetensors", "half.npz"] {
        let path = folder.0.join(name);
        let half = train(&["--steps", "150"], &[("--save", &path)]).unwrap();
        let rest = train(&["--steps", "300", "--threads", "2"], &[("--load", &path)]).unwrap();
        assert_eq!(rest[0], "goes on after step 150");
        assert!(rest[1].starts_with("150 steps"), "{rest:?}");
        // Accuracy, and all bits of the weights and of the state.
        assert_eq!(rest[2..], whole[1..], "{name}");
        assert_ne!(half[1..], whole[1..], "{name}");
    }
}

#[test]
fn files_that_are_none_are_refused() {
    let folder = Folder::new("none");
    let path = folder.0.join("none.npz");
    std::fs::write(&path, "none").unwrap();
    assert!(train(&[], &[("--load", &path)]).is_err());
    let missing = folder.0.join("missing.safetensors");
    let error = train(&[], &[("--load", &missing)]).unwrap_err();
    assert!(error.to_string().contains("missing.safetensors"), "{error}");
}
