//! `cargo xtask size`: checks how large `tfrt-run` is, how fast it starts, and that it is whole.
//!
//! The program is built as it is meant to be shipped: the profile `small` at a fixed address, with
//! the unwinder linked in, so that it needs nothing but libc. Beside it stand the figures with
//! panics that abort, and with a standard library that was built anew for size.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::accounting::WITH_PYTHON;
use crate::checkers;
use crate::steps::{self, Steps, target};

/// The largest size of the program: its present size, and some room. Where the bytes are, and the goal of 400,000, is
/// in `docs/size.md`.
const MAX_BYTES: u64 = 610_000;

/// The longest time from the start of the process until the line that the first kernel prints is read.
const MAX_START: Duration = Duration::from_millis(2);

/// The program whose first kernel prints the line.
const START: &str = "crates/run/tests/start.mlir";

/// A program with a kernel that panics, and what it prints nevertheless.
const ISOLATION: &str = "crates/run/tests/isolation.mlir";
const ISOLATED: &str = "\
--- Running 'panics':
'panics' returned <<error: the kernel panicked: tfrt_test.panic panics>>,1
--- Running 'goes_on':
'goes_on' returned 2
";

/// A way to build the program.
struct Build {
    name: &'static str,
    toolchain: Option<&'static str>,
    aborts: bool,
    arguments: &'static [&'static str],
}

const SHIPPED: Build = Build {
    name: "as shipped",
    toolchain: None,
    aborts: false,
    arguments: &[],
};

const ABORTING: Build = Build {
    name: "panic=abort",
    toolchain: None,
    aborts: true,
    arguments: &[],
};

const REBUILT: Build = Build {
    name: "rebuilt std",
    toolchain: Some("+nightly"),
    aborts: false,
    arguments: &[
        "-Zbuild-std=std,panic_unwind",
        "-Zbuild-std-features=panic-unwind,optimize_for_size",
    ],
};

const REBUILT_ABORTING: Build = Build {
    name: "rebuilt std, panic=abort",
    toolchain: Some("+nightly"),
    aborts: true,
    arguments: &[
        "-Zbuild-std=std,panic_abort",
        "-Zbuild-std-features=optimize_for_size",
    ],
};

/// The amount that is built.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// The program that is shipped, compiled by the command that tests have built.
    Short,
    /// The programs that it is compared with, too.
    Full,
}

/// Builds, measures, and fails if the program is too large, too slow to start, or not whole.
pub fn check(steps: &mut Steps, depth: Depth) {
    let Some(triple) = host_triple() else {
        return steps.skip("size of tfrt-run", "rustc");
    };
    if depth == Depth::Full {
        steps.run(
            "the compiler",
            &mut steps::cargo(&["build", "--quiet", "-p", "tfrt"]),
        );
    }
    steps.work("size of tfrt-run", || {
        SHIPPED.build(&triple).is_some_and(|bytes| {
            println!("{:>24} {bytes:>9} bytes, at most {MAX_BYTES}", SHIPPED.name);
            bytes <= MAX_BYTES
        })
    });
    steps.work("start of tfrt-run", || {
        starts_quickly(&SHIPPED.program(&triple, "tfrt-run"))
    });
    steps.work("panics in tfrt-run", || isolates_panics(&triple));
    steps.work("tests of tfrt-run", || {
        let program = SHIPPED.program(&triple, "tfrt-run");
        // Of the whole workspace, which has features that `tfrt-run` alone does not: `ci` has built it so.
        let mut tests = steps::cargo(&["test", "--quiet", "--test", "command"]);
        succeeds_loudly(tests.args(WITH_PYTHON).env("TFRT_RUN_PROGRAM", program))
    });
    if depth == Depth::Short {
        return;
    }
    let mut others = vec![ABORTING];
    if checkers::has_std_sources() {
        others.extend([REBUILT, REBUILT_ABORTING]);
    } else {
        steps.skip(
            "size with a rebuilt standard library",
            "rust-src for nightly",
        );
    }
    steps.work("other sizes of tfrt-run", || {
        let nothing = ["--example", "nothing"];
        if !succeeds_loudly(&mut SHIPPED.cargo(&triple, &nothing)) {
            return false;
        }
        if let Some(bytes) = size(&SHIPPED.program(&triple, "examples/nothing")) {
            println!("{:>24} {bytes:>9} bytes", "a program without it");
        }
        others.iter().all(|build| match build.build(&triple) {
            Some(bytes) => {
                println!("{:>24} {bytes:>9} bytes", build.name);
                true
            }
            None => false,
        })
    });
}

/// Returns the commands that build what a short [`check`] looks at.
pub fn builds() -> Vec<Command> {
    let Some(triple) = host_triple() else {
        return Vec::new();
    };
    [COMMAND, ALL_KERNELS]
        .map(|what| SHIPPED.cargo(&triple, &what))
        .into()
}

/// The targets to build: the program, and one with kernels that only tests have.
const COMMAND: [&str; 2] = ["--bin", "tfrt-run"];
const ALL_KERNELS: [&str; 2] = ["--example", "all_kernels"];

impl Build {
    /// Builds `tfrt-run`, and returns its size in bytes.
    fn build(&self, triple: &str) -> Option<u64> {
        succeeds_loudly(&mut self.cargo(triple, &COMMAND)).then_some(())?;
        size(&self.program(triple, "tfrt-run"))
    }

    fn cargo(&self, triple: &str, what: &[&str]) -> Command {
        // At a fixed address there are no relocations to keep; with a frame pointer the tables for
        // unwinding need not follow each push.
        // Each function costs 50 bytes for unwinding, so that it pays to inline some more.
        let mut flags = "-Crelocation-model=static -Cforce-frame-pointers=yes \
                         -Cllvm-args=-inline-threshold=20"
            .to_owned();
        if self.aborts {
            flags.push_str(" -Cforce-unwind-tables=no");
        }
        if let Some(folder) = unwinder(triple) {
            flags.push_str(&format!(" -L native={}", folder.display()));
            // Both `tfrt-run` and the unwinder define the walk up the stack: `run/src/backtrace.rs`.
            flags.push_str(" -Clink-arg=-Wl,-z,muldefs");
        }
        if triple == "x86_64-unknown-linux-gnu" {
            // Rust's own linker, which is the default here, keeps one of functions that are the same.
            flags.push_str(" -Clink-arg=-Wl,--icf=all");
        }
        let mut command = Command::new("cargo");
        command
            .args(self.toolchain)
            .args(["build", "--quiet", "-p", "tfrt-run", "--profile", "small"])
            .args(["--target", triple])
            .args(what)
            .args(self.arguments)
            .current_dir(steps::root())
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env("RUSTFLAGS", flags)
            .env("CARGO_TARGET_DIR", self.folder());
        if self.aborts {
            command.env("CARGO_PROFILE_SMALL_PANIC", "abort");
        }
        command
    }

    fn folder(&self) -> PathBuf {
        target("size").join(self.name.replace([' ', ',', '='], "-"))
    }

    fn program(&self, triple: &str, name: &str) -> PathBuf {
        self.folder().join(triple).join("small").join(name)
    }
}

fn size(program: &Path) -> Option<u64> {
    fs::metadata(program).ok().map(|facts| facts.len())
}

/// Returns a folder with a `libgcc_s.so` that stands for the static library: rustc asks for the shared one by name.
fn unwinder(triple: &str) -> Option<PathBuf> {
    if !triple.ends_with("-linux-gnu") {
        return None;
    }
    let folder = target("size").join("unwinder");
    fs::create_dir_all(&folder).ok()?;
    fs::write(folder.join("libgcc_s.so"), "INPUT(-lgcc_eh -lgcc -lc)\n").ok()?;
    Some(folder)
}

fn host_triple() -> Option<String> {
    let output = Command::new("rustc").arg("-vV").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let triple = text.lines().find_map(|line| line.strip_prefix("host: "));
    triple.map(str::to_owned)
}

fn succeeds_loudly(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}

/// Compiles a program with the command `tfrt`, which is there.
fn compile(text: &str) -> Option<PathBuf> {
    let name = Path::new(text).file_stem()?;
    let path = target("size").join(name).with_extension("bef");
    let mut command = Command::new(target("debug").join("tfrt"));
    command.args(["compile", text, "-o"]).arg(&path);
    succeeds_loudly(command.current_dir(steps::root())).then_some(path)
}

/// Measures the time to the first line that a kernel prints. Others may be at work on the machine, so
/// the best of many starts decides, and there are more where none was quick.
fn starts_quickly(program: &Path) -> bool {
    let Some(start) = compile(START) else {
        return false;
    };
    let mut times: Vec<Duration> = Vec::new();
    for round in 0..10 {
        times.extend((0..51).filter_map(|_| first_kernel(program, &start)));
        times.sort();
        let Some((best, median)) = times.first().zip(times.get(times.len() / 2)) else {
            return false;
        };
        if *best <= MAX_START || round == 9 {
            println!(
                "start to first kernel: best {best:?}, median {median:?}, at most {MAX_START:?}"
            );
            return *best <= MAX_START;
        }
    }
    false
}

fn first_kernel(program: &Path, start: &Path) -> Option<Duration> {
    let mut command = Command::new(program);
    command.arg(start).stdout(Stdio::piped());
    let begin = Instant::now();
    let mut child = command.spawn().ok()?;
    let mut lines = BufReader::new(child.stdout.take()?).lines();
    let line = lines.find(|line| line.as_ref().is_ok_and(|line| !line.starts_with("---")));
    let time = begin.elapsed();
    // It goes on printing, to nobody if this ends first.
    lines.for_each(drop);
    (child.wait().ok()?.success() && line.is_some()).then_some(time)
}

/// Runs a program with a kernel that panics, and another function behind it; returns whether that works.
fn isolates_panics(triple: &str) -> bool {
    if !succeeds_loudly(&mut SHIPPED.cargo(triple, &ALL_KERNELS)) {
        return false;
    }
    let Some(file) = compile(ISOLATION) else {
        return false;
    };
    let program = SHIPPED.program(triple, "examples/all_kernels");
    let Ok(output) = Command::new(program).arg(file).output() else {
        return false;
    };
    let printed = String::from_utf8_lossy(&output.stdout);
    if printed != ISOLATED {
        println!("expected:\n{ISOLATED}found:\n{printed}");
    }
    printed == ISOLATED && output.status.code() == Some(3)
}
