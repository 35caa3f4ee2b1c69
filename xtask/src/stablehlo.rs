//! `cargo xtask stablehlo`: the interpreter suite and the test data of the project StableHLO, from a checkout of it.
//!
//! Nothing of it is in the repository. What runs the modules is `crates/suite`, with `--checks`.

use std::path::Path;

use crate::steps::{Steps, cargo};

/// The commit that the numbers in `docs/stablehlo.md` are of.
const COMMIT: &str = "3c9301c1";

/// The folders of modules, with how many have to pass.
const FOLDERS: &[(&str, &str, &str)] = &[
    (
        "chunks of the interpreter suite",
        "stablehlo/tests/interpret",
        "439",
    ),
    ("static modules", "stablehlo/testdata", "2290"),
    ("dynamic modules", "stablehlo/testdata/dynamic", "386"),
];

/// Runs the modules of a checkout; arguments but the folder go to the program that does.
pub fn run(steps: &mut Steps, arguments: &[&str]) {
    let (["--testdata", folder, rest @ ..] | [folder, rest @ ..]) = arguments else {
        return steps.skip(
            "stablehlo",
            "a checkout of openxla/stablehlo (--testdata DIR)",
        );
    };
    for (what, path, at_least) in FOLDERS {
        let path = Path::new(folder).join(path);
        if !path.exists() {
            steps.skip(what, &format!("{} (commit {COMMIT})", path.display()));
            continue;
        }
        let mut suite = cargo(&["run", "--release", "--quiet", "-p", "tfrt-suite", "--"]);
        suite
            .arg(path)
            .args(["--checks", "--at-least", at_least])
            .args(rest);
        steps.run(what, &mut suite);
    }
}
