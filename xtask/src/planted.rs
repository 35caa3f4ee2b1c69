//! `cargo xtask checkers`: plants bugs on purpose, to see that the checkers find them.
//!
//! A bug is a patch, `xtask/planted/NAME.patch`, which is applied to a copy of the workspace ([`tree`]).
//! Those that tests of large crates are to find are applied together, and one is chosen by the variable
//! `TFRT_PLANTED`, which their patches look at, when the tests run: building these crates takes minutes.
//! `tidy` sees to it that the table below and the patches are the same, and that these apply.

use std::io;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::checkers::{
    Depth, MODELS, N_SCHEDULES, asan_command, has_miri, has_nightly, has_std_sources, miri_command,
    shuttle_command, tsan_command,
};
use crate::steps::{Steps, cargo_within};

mod searches;
pub mod tree;

use searches::{
    ACCOUNTING, CALLS, CANCELLATION, COLLECTIVES, DIFFERENTIAL, GPU, NESTING, PROPERTIES, RANGES,
    STUCK, SWEEP, Search, WIRE,
};

/// A planted bug, and the finder that must find it.
pub struct PlantedBug {
    pub name: &'static str,
    finder: Finder,
}

#[derive(Clone, Copy)]
enum Finder {
    /// The models of this name.
    Loom(&'static str),
    /// The tests of this package with this in their names, under AddressSanitizer.
    Asan(&'static str, &'static str),
    /// The tests of this package with this in their names, under ThreadSanitizer.
    Tsan(&'static str, &'static str),
    /// The tests of this package with this in their names, under Miri.
    Miri(&'static str, &'static str),
    /// Whole queues under shuttle.
    Shuttle,
    /// The unit tests of this package.
    Tests(&'static str),
    /// Tests in which one of several bugs is chosen when they run.
    Chosen(&'static Search),
    /// Tests in which one of several bugs is chosen, which shows by their never ending.
    Hangs(&'static Search),
}

use Finder::{Asan, Chosen, Hangs, Loom, Miri, Shuttle, Tests, Tsan};

/// Repeats `PlantedBug { name, finder }`.
const fn bug(name: &'static str, finder: Finder) -> PlantedBug {
    PlantedBug { name, finder }
}

/// All planted bugs.
pub const PLANTED: &[PlantedBug] = &[
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
    bug("unreleased-lock", Loom("values")),
    bug("hasty-upgrade", Loom("values")),
    bug("sleeping-writer", Shuttle),
    bug("lost-waiter", Tests("tfrt-async")),
    bug("order-of-names", Tests("tfrt-tensor")),
    bug("kept-generation", Tests("tfrt-capi")),
    bug("uncounted-view", Tests("tfrt-capi")),
    bug("other-session", Tests("tfrt-wire")),
    bug("shared-update", Tests("tfrt-capi")),
    bug("unseen-circle", Tests("tfrt-capi")),
    bug("leak", Asan("tfrt-async", "")),
    bug("short-block", Asan("tfrt-async", "")),
    bug("read-past-end", Asan("tfrt-host", "buffer::")),
    bug("relaxed-turn", Tsan("tfrt-host", "buffer::")),
    bug("claim-past-end", Miri("tfrt-tensor", "element::")),
    bug("relaxed-return", Loom("memory")),
    bug("forgotten-absence", Loom("memory")),
    bug("relaxed-deque-publish", Loom("queues")),
    bug("steal-without-cas", Loom("queues")),
    bug("lost-wakeup", Loom("queues")),
    bug("look-by-load", Loom("queues")),
    bug("search-ends-silently", Loom("queues")),
    bug("quiesce-off-by-one", Loom("queues")),
    bug("blocking-leaves-promised", Loom("queues")),
    bug("leaves-work", Shuttle),
    bug("blocks-silently", Shuttle),
    bug("relaxed-count", Loom("executor")),
    bug("unshared-count", Loom("executor")),
    bug("slot-leak", Loom("executor")),
    bug("first-error", Chosen(&DIFFERENTIAL)),
    bug("unplaced-error", Chosen(&DIFFERENTIAL)),
    bug("wrong-branch", Chosen(&DIFFERENTIAL)),
    bug("turn-too-many", Chosen(&DIFFERENTIAL)),
    bug("kept-frame", Chosen(&ACCOUNTING)),
    bug("uncounted-free", Chosen(&ACCOUNTING)),
    bug("unseen-cancellation", Chosen(&CANCELLATION)),
    bug("unseen-stop", Hangs(&STUCK)),
    bug("false-alarm", Chosen(&STUCK)),
    bug("lax-register", Chosen(&SWEEP)),
    bug("unseen-end", Chosen(&SWEEP)),
    bug("endless-nesting", Chosen(&NESTING)),
    bug("blurred-range", Chosen(&RANGES)),
    bug("step-past-end", Chosen(&PROPERTIES)),
    bug("unseen-race", Chosen(&GPU)),
    bug("unseen-return", Chosen(&GPU)),
    bug("unseen-poison", Chosen(&GPU)),
    bug("unseen-use", Chosen(&GPU)),
    bug("unseen-context", Chosen(&GPU)),
    bug("forgetful-wait", Chosen(&GPU)),
    bug("hasty-stream", Chosen(&GPU)),
    bug("unfenced-reuse", Chosen(&GPU)),
    bug("hasty-trim", Chosen(&GPU)),
    bug("kept-event", Chosen(&GPU)),
    bug("kept-context", Chosen(&GPU)),
    bug("unawaited-copy", Chosen(&GPU)),
    bug("misplaced-part", Chosen(&GPU)),
    bug("unseen-take-back", Chosen(&GPU)),
    bug("lone-reader", Chosen(&GPU)),
    bug("unknown-record", Chosen(&GPU)),
    bug("first-record", Chosen(&GPU)),
    bug("early-right", Chosen(&GPU)),
    bug("newest-first", Chosen(&GPU)),
    bug("unseen-partner", Chosen(&GPU)),
    bug("lonely-barrier", Chosen(&GPU)),
    bug("crooked-address", Chosen(&GPU)),
    bug("block-of-two", Chosen(&GPU)),
    bug("hasty-capture", Chosen(&GPU)),
    bug("unspoiled-capture", Chosen(&GPU)),
    bug("launches-at-once", Chosen(&GPU)),
    bug("unseen-unload", Chosen(&GPU)),
    bug("kept-graph", Chosen(&GPU)),
    bug("unseen-wait", Chosen(&GPU)),
    bug("hasty-end", Chosen(&COLLECTIVES)),
    bug("late-confirmation", Chosen(&COLLECTIVES)),
    bug("lone-doubt", Chosen(&COLLECTIVES)),
    bug("order-of-members", Chosen(&COLLECTIVES)),
    bug("doubled-part", Chosen(&COLLECTIVES)),
    bug("first-is-right", Chosen(&COLLECTIVES)),
    bug("dropped-early", Chosen(&COLLECTIVES)),
    bug("unfinished-nan", Chosen(&COLLECTIVES)),
    bug("silent-refusal", Chosen(&COLLECTIVES)),
    bug("one-holder", Chosen(&COLLECTIVES)),
    bug("early-mean", Chosen(&COLLECTIVES)),
    bug("kept-contexts", Chosen(&CALLS)),
    bug("no-lease", Chosen(&CALLS)),
    bug("unseen-return-of-client", Chosen(&CALLS)),
    bug("kept-objects", Chosen(&CALLS)),
    bug("endless-call", Chosen(&CALLS)),
    bug("uncascaded-cancel", Chosen(&CALLS)),
    bug("one-cancel", Chosen(&CALLS)),
    bug("twice-run", Chosen(&WIRE)),
    bug("lost-tail", Chosen(&WIRE)),
    bug("kept-position", Chosen(&WIRE)),
    bug("unaware-run", Chosen(&WIRE)),
    bug("forgotten-session", Chosen(&WIRE)),
    bug("endless-lease", Chosen(&WIRE)),
    bug("unsummed-payload", Chosen(&WIRE)),
    bug("kept-admission", Chosen(&WIRE)),
    bug("late-answer", Chosen(&WIRE)),
    bug("silent-cancel", Chosen(&WIRE)),
    bug("spent-credit", Chosen(&WIRE)),
    bug("single-dial", Chosen(&WIRE)),
    bug("stale-peer", Chosen(&WIRE)),
];

/// The result of looking for a bug.
enum FinderResult {
    Yes,
    /// A tool that the finder needs is not installed.
    NotTried(&'static str),
    /// The bug was not found, for this reason.
    No(&'static str),
}

/// The status of `timeout` when the time is over.
const OUT_OF_TIME: Option<i32> = Some(124);

/// Plants each bug whose name or method contains `part`, one at a time, and expects its finder to fail; shows
/// a table in the end.
pub fn find_all(steps: &mut Steps, part: &str) {
    let mut rows = vec![
        "| Bug | Where | Method | Found | Seconds |".to_owned(),
        "| --- | --- | --- | --- | ---: |".to_owned(),
    ];
    let mut sound: Vec<(&Search, bool)> = Vec::new();
    for bug in PLANTED.iter().filter(|bug| bug.is_meant_by(part)) {
        let name = format!("planted: {}", bug.name);
        let (found, took) = bug.look(&mut sound);
        let answer = match found {
            FinderResult::Yes => "yes",
            FinderResult::NotTried(_) => "not tried",
            FinderResult::No(reason) => reason,
        };
        println!("{name}: {answer} ({:.1} s)", took.as_secs_f32());
        match found {
            FinderResult::NotTried(tool) => steps.skip(&name, tool),
            _ => steps.count(&name, matches!(found, FinderResult::Yes)),
        }
        let place = tree::place(bug.name);
        let (method, seconds) = (bug.finder.method(), took.as_secs_f32());
        rows.push(format!(
            "| `{}` | `{place}` | {method} | {answer} | {seconds:.1} |",
            bug.name
        ));
    }
    println!("\n{}\n", rows.join("\n"));
}

impl Finder {
    /// Returns the method, for people.
    fn method(self) -> String {
        match self {
            Loom(models) => format!("loom: {models}"),
            Asan(package, _) => format!("AddressSanitizer: {package}"),
            Tsan(package, _) => format!("ThreadSanitizer: {package}"),
            Miri(package, _) => format!("Miri: {package}"),
            Shuttle => "shuttle".to_owned(),
            Tests(package) => format!("tests: {package}"),
            Chosen(search) => search.method.to_owned(),
            Hangs(search) => format!("{}: never ends", search.method),
        }
    }

    /// Returns the tool that the finder needs and that is not installed.
    fn missing(self) -> Option<&'static str> {
        match self {
            Asan(..) if !has_nightly() => Some("a nightly compiler"),
            Tsan(..) if !has_std_sources() => Some("rust-src for a nightly compiler"),
            Miri(..) if !has_miri() => Some("cargo-miri"),
            _ => None,
        }
    }

    /// Returns the name of the folder that the finder is built in: builds with other flags have another one.
    fn folder(self) -> &'static str {
        match self {
            Loom(_) => "loom",
            Asan(..) => "asan",
            Tsan(..) => "tsan",
            Miri(..) => "miri",
            Shuttle => "shuttle",
            Tests(_) | Chosen(_) | Hangs(_) => "tests",
        }
    }

    /// Returns the search of which bugs are chosen when it runs.
    fn search(self) -> Option<&'static Search> {
        match self {
            Chosen(search) | Hangs(search) => Some(search),
            _ => None,
        }
    }

    /// Returns the command that builds the finder in the copy with this bug, or the one that runs it.
    fn command(self, bug: &str, only_build: bool) -> io::Result<Command> {
        let only_build_flag = only_build.then_some("--no-run");
        let mut command = match self {
            Chosen(search) | Hangs(search) => search.command(Some(bug), only_build),
            Loom(name) => {
                let models = MODELS.iter().find(|models| models.name == name);
                let models = models.expect("the table names models that exist");
                match only_build {
                    true => models.build(),
                    false => models.command(Depth::Short),
                }
            }
            Asan(package, filter) => {
                let mut arguments = vec!["-p", package, "--lib"];
                arguments.extend(filter.is_empty().then_some("--tests"));
                arguments.extend(only_build_flag);
                arguments.extend(["--", filter]);
                asan_command(&arguments)
            }
            Tsan(package, filter) => {
                let mut arguments = vec!["-p", package, "--lib"];
                arguments.extend(only_build_flag);
                arguments.extend(["--", filter]);
                tsan_command(&arguments)
            }
            Miri(package, filter) => {
                let mut command = miri_command(package, &[]);
                command.args(only_build_flag).args(["--", filter]);
                command
            }
            Shuttle => shuttle_command((!only_build).then_some(N_SCHEDULES)),
            Tests(package) => {
                let mut command = cargo_within(900, &["test", "-p", package, "--lib", "--tests"]);
                command.args(only_build_flag);
                command
            }
        };
        tree::build_there(&mut command, self.folder())?;
        Ok(command)
    }
}

/// Returns the names of all bugs, those together that are applied together.
pub fn groups() -> Vec<Vec<&'static str>> {
    let mut groups: Vec<Vec<&str>> = Vec::new();
    for group in PLANTED.iter().map(PlantedBug::group) {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

impl PlantedBug {
    fn is_meant_by(&self, part: &str) -> bool {
        self.name.contains(part) || self.finder.method().contains(part)
    }

    /// Returns the names of the bugs that are applied together with this one, itself among them.
    fn group(&self) -> Vec<&'static str> {
        let Some(own) = self.finder.search() else {
            return vec![self.name];
        };
        let is_own = |search: &Search| std::ptr::eq(search, own);
        let bugs = PLANTED
            .iter()
            .filter(|bug| bug.finder.search().is_some_and(is_own));
        bugs.map(|bug| bug.name).collect()
    }

    /// Plants the bug, builds its finder and runs it; gives the time of the run. `sound` are the searches that
    /// were tried without a bug, and whether they found nothing.
    fn look(&self, sound: &mut Vec<(&'static Search, bool)>) -> (FinderResult, Duration) {
        if let Some(tool) = self.finder.missing() {
            return (FinderResult::NotTried(tool), Duration::ZERO);
        }
        let commands = tree::plant(&self.group()).and_then(|()| {
            let command = |only_build| self.finder.command(self.name, only_build);
            Ok((command(true)?, command(false)?))
        });
        let (mut build, mut run) = match commands {
            Ok(commands) => commands,
            Err(error) => {
                eprintln!("{}: {error}", self.name);
                return (FinderResult::No("NO: can't be planted"), Duration::ZERO);
            }
        };
        // A bug that does not compile is not found by anybody.
        let built = build.stdout(Stdio::null()).status();
        if !built.is_ok_and(|status| status.success()) {
            return (FinderResult::No("NO: does not build"), Duration::ZERO);
        }
        if let Some(search) = self.finder.search()
            && !search.is_sound(self.finder.folder(), sound)
        {
            return (FinderResult::No("NO: fails without it"), Duration::ZERO);
        }
        let begin = Instant::now();
        let run = quiet(&mut run);
        let took = begin.elapsed();
        let is_late = run == OUT_OF_TIME;
        let found = match self.finder {
            _ if run == Some(0) => FinderResult::No("NO"),
            Hangs(_) if is_late => FinderResult::Yes,
            _ if is_late => FinderResult::No("NO: out of time"),
            _ => FinderResult::Yes,
        };
        (found, took)
    }
}

impl Search {
    /// Returns whether these tests pass where no bug is chosen; tried once.
    fn is_sound(&'static self, folder: &str, known: &mut Vec<(&'static Search, bool)>) -> bool {
        if let Some((_, sound)) = known.iter().find(|(search, _)| std::ptr::eq(*search, self)) {
            return *sound;
        }
        let mut command = self.command(None, false);
        let sound =
            tree::build_there(&mut command, folder).is_ok() && quiet(&mut command) == Some(0);
        known.push((self, sound));
        sound
    }
}

/// Runs a command whose output is of no interest, and gives its status.
fn quiet(command: &mut Command) -> Option<i32> {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().ok()?.code()
}
