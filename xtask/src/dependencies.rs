//! Checks of dependencies: the lock files against `deny.toml`, by cargo-deny, without a network once it is there.

use crate::steps::{Steps, cargo, root, succeeds};

/// The workspaces that have a lock file of their own.
const WORKSPACES: [&str; 2] = ["Cargo.toml", "fuzz/Cargo.toml"];

/// The warnings that are off: there is one policy for both workspaces, and not everything in it is met in each.
const NOT_MET: [&str; 4] = [
    "license-exception-not-encountered",
    "license-not-encountered",
    "unmatched-skip",
    "unused-wrapper",
];

/// Checks licences, versions, sources; and advisories where their database lies.
pub fn check(steps: &mut Steps) {
    if !succeeds(&mut cargo(&["deny", "--version"])) {
        return steps.skip("dependencies", "cargo-deny (cargo install cargo-deny)");
    }
    let has_advisories = has_database();
    for manifest in WORKSPACES {
        // A fresh machine lacks what is for other systems. Where there is no network, all is there or the check says so.
        succeeds(&mut cargo(&[
            "fetch",
            "--locked",
            "--manifest-path",
            manifest,
        ]));
        let mut command = cargo(&["deny", "--offline", "--locked", "--config", "deny.toml"]);
        command.args([
            "--manifest-path",
            manifest,
            "check",
            "--hide-inclusion-graph",
        ]);
        for finding in NOT_MET {
            command.args(["-A", finding]);
        }
        command.args(["bans", "licenses", "sources"]);
        if has_advisories {
            command.arg("advisories");
        }
        steps.run(&format!("dependencies: {manifest}"), &mut command);
    }
    if !has_advisories {
        steps.skip("advisories", "the database (`cargo deny fetch db`)");
    }
}

/// Returns whether advisories were fetched before: cargo-deny keeps them below cargo's own folder.
fn has_database() -> bool {
    let home = std::env::var_os("CARGO_HOME").map_or_else(
        || std::env::home_dir().unwrap_or_else(root).join(".cargo"),
        std::path::PathBuf::from,
    );
    let databases = std::fs::read_dir(home.join("advisory-dbs"));
    databases.is_ok_and(|entries| entries.flatten().next().is_some())
}
