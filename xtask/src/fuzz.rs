//! `cargo xtask fuzz`: the targets of `fuzz/` under libFuzzer and AddressSanitizer.
//!
//! What a search finds of use is kept under `fuzz/corpus/`, which git ignores; what breaks a
//! property under `fuzz/artifacts/`. CONTRIBUTING.md says what to do with the latter.

use std::fs;
use std::process::Command;

use crate::steps::{Steps, cargo, root, succeeds};

/// All targets; `crates/fuzz` says what they check.
pub const TARGETS: [&str; 11] = [
    "parse",
    "round_trip",
    "open",
    "reopen",
    "import",
    "decode",
    "execute",
    "wire",
    "control",
    "requests",
    "capi",
];

/// The seconds for which a target is tried if nothing else is asked for.
const SECONDS: &str = "60";

/// Fuzzes one target, or all one after the other, each for some seconds.
pub fn run(steps: &mut Steps, target: &str, seconds: Option<&str>) -> bool {
    let targets: Vec<&str> = match target {
        "all" => TARGETS.to_vec(),
        _ => TARGETS.into_iter().filter(|name| *name == target).collect(),
    };
    let seconds = seconds.unwrap_or(SECONDS);
    if targets.is_empty() || seconds.parse::<u32>().is_err() {
        return false;
    }
    if !succeeds(&mut cargo(&["+nightly", "fuzz", "--version"])) {
        let tool = "cargo-fuzz, or a nightly compiler,";
        steps.skip("fuzz", tool);
        return true;
    }
    for target in targets {
        let corpus = format!("fuzz/corpus/{target}");
        if !root().join(&corpus).exists() && fs::create_dir_all(root().join(&corpus)).is_ok() {
            let seed = ["run", "--quiet", "-p", "tfrt-fuzz", "--example", "seed"];
            let name = format!("seeds of {target}");
            steps.run(&name, cargo(&seed).args(["--", target, &corpus]));
        }
        steps.run(&format!("fuzz {target}"), &mut command(target, seconds));
    }
    true
}

fn command(target: &str, seconds: &str) -> Command {
    let mut command = cargo(&["+nightly", "fuzz", "run", "--fuzz-dir", "fuzz", target]);
    let regressions = format!("tests/fuzz/regressions/{target}");
    command.arg(format!("fuzz/corpus/{target}"));
    if root().join(&regressions).exists() {
        command.arg(regressions);
    }
    command.args(["--", "-rss_limit_mb=2048", "-timeout=10", "-max_len=8192"]);
    command.arg(format!("-max_total_time={seconds}"));
    if matches!(target, "parse" | "round_trip") {
        command.arg("-dict=fuzz/mlir.dict");
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_those_of_the_folder() {
        let entries = fs::read_dir(root().join("fuzz/fuzz_targets")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        let mut targets = TARGETS.map(|target| format!("{target}.rs"));
        targets.sort();
        assert_eq!(names, targets);
    }

    #[test]
    fn unknown_targets_are_not_tried() {
        assert!(!run(&mut Steps::new(), "nothing", None));
        assert!(!run(&mut Steps::new(), "parse", Some("long")));
    }
}
