//! Bugs that are planted on purpose, to see that the checkers find them.
//!
//! A switch is `cfg!(tfrt_planted = "NAME")` at the place of the bug. `tidy` sees to it that the
//! table below and the switches in the code are the same.

use std::process::Stdio;

use crate::checkers::{Depth, MODELS, asan_command, has_nightly};
use crate::steps::{Steps, cargo_within, target};

/// A bug, and who must find it.
pub struct Planted {
    pub name: &'static str,
    finder: Finder,
}

enum Finder {
    /// The models of this name.
    Loom(&'static str),
    /// The tests of this package under AddressSanitizer.
    Asan(&'static str),
    /// The tests of this package.
    Tests(&'static str),
}

use Finder::{Asan, Loom, Tests};

/// Repeats `Planted { name, finder }`.
const fn bug(name: &'static str, finder: Finder) -> Planted {
    Planted { name, finder }
}

/// All of them.
pub const PLANTED: &[Planted] = &[
    bug("relaxed-settle", Loom("values")),
    bug("missing-acquire", Loom("values")),
    bug("relaxed-push", Loom("values")),
    bug("relaxed-release", Loom("values")),
    bug("lost-cell", Loom("values")),
    bug("early-free", Loom("values")),
    bug("double-free", Loom("values")),
    bug("blind-pop", Loom("values")),
    bug("torn-record", Loom("values")),
    bug("overlooked-holder", Loom("values")),
    bug("lost-waiter", Tests("tfrt-async")),
    bug("leak", Asan("tfrt-async")),
    bug("short-block", Asan("tfrt-async")),
    bug("relaxed-return", Loom("memory")),
    bug("forgotten-absence", Loom("memory")),
    bug("relaxed-deque-publish", Loom("queues")),
    bug("steal-without-cas", Loom("queues")),
    bug("lost-wakeup", Loom("queues")),
    bug("look-by-load", Loom("queues")),
    bug("search-ends-silently", Loom("queues")),
    bug("quiesce-off-by-one", Loom("queues")),
    bug("blocking-leaves-promised", Loom("queues")),
    bug("relaxed-count", Loom("executor")),
    bug("unshared-count", Loom("executor")),
    bug("slot-leak", Loom("executor")),
];

/// Plants each bug whose name contains `part`, one at a time, and expects its finder to fail.
pub fn find_all(steps: &mut Steps, part: &str) {
    for bug in PLANTED.iter().filter(|bug| bug.name.contains(part)) {
        let name = format!("planted: {}", bug.name);
        match bug.is_found() {
            None => steps.skip(&name, "a nightly compiler"),
            Some(found) => {
                println!("{name}: {}", if found { "found" } else { "NOT FOUND" });
                steps.count(&name, found);
            }
        }
    }
}

impl Planted {
    /// Builds with the bug and runs its finder; `None` if the finder is not installed.
    fn is_found(&self) -> Option<bool> {
        let flags = format!("--cfg tfrt_planted=\"{}\"", self.name);
        let command = |only_build: bool| match self.finder {
            Loom(name) => {
                let models = MODELS.iter().find(|models| models.name == name);
                let models = models.expect("the table names models that exist");
                let mut command = models.command(Depth::Short, &flags);
                if only_build {
                    command = cargo_within(900, &["test", "-p", models.package, "--lib"]);
                    command
                        .args(["--release", "--no-run"])
                        .env("RUSTFLAGS", format!("--cfg loom {flags}"))
                        .env("CARGO_TARGET_DIR", target("loom"));
                }
                command
            }
            Asan(package) => {
                let mut arguments = vec!["-p", package, "--lib", "--tests"];
                arguments.extend(only_build.then_some("--no-run"));
                asan_command(&arguments, &flags)
            }
            Tests(package) => {
                let mut arguments = vec!["test", "-p", package, "--lib", "--tests"];
                arguments.extend(only_build.then_some("--no-run"));
                let mut command = cargo_within(600, &arguments);
                command
                    .env("RUSTFLAGS", &flags)
                    .env("CARGO_TARGET_DIR", target("planted"));
                command
            }
        };
        if matches!(self.finder, Asan(_)) && !has_nightly() {
            return None;
        }
        // A bug that does not compile is not found by anybody.
        let builds = command(true).stdout(Stdio::null()).status();
        if !builds.is_ok_and(|status| status.success()) {
            return Some(false);
        }
        let run = command(false)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        Some(run.is_ok_and(|status| !status.success()))
    }
}
