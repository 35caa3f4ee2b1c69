//! The project's chores: `cargo xtask COMMAND`.
//!
//! What needs a tool that is not installed prints `SKIPPED` with the tool's name, and the closing
//! line counts it, so that a green run can't hide it.

#![forbid(unsafe_code)]

use std::process::{Command, ExitCode};
use std::thread;

mod accounting;
mod bench;
mod capi;
mod checkers;
mod dependencies;
mod differential;
mod fuzz;
mod gpu;
mod gpu_check;
mod gpu_sim;
mod mutants;
mod onnx;
mod planted;
mod python;
mod real_files;
mod size;
mod stablehlo;
mod steps;
mod tidy;
mod wheel;

use steps::Steps;

const USAGE: &str = "\
Usage: cargo xtask COMMAND

  ci        everything that a change must pass: format, lints, tests, docs, tidy, short models
  tidy      the rules that no other tool knows: edges between crates, unsafe modules, files
  bless     run the tests and rewrite the outputs that they expect; review the difference
  loom      interleaving models of values, queues and the executor
  shuttle   [SCHEDULES]: whole queues under schedules drawn at random, so many for each model; 2,000
  asan      all tests under AddressSanitizer and LeakSanitizer (nightly compiler)
  tsan      what has threads under ThreadSanitizer (nightly compiler with its rust-src)
  miri      values, bytes and views under Miri (nightly compiler with the component)
  aarch64   the arithmetic's tests on an emulated processor (rustup target add aarch64-unknown-linux-gnu)
  size      build tfrt-run for small devices: its bytes, its start, its panics
  checkers  [WORD]: plant one known bug at a time, and see that its checker finds it: all, or those named so
  bench     [WORD]: benchmarks beside their peers: all, one, or what has WORD in its name
  instructions  [--bless]: instructions of what is defended, compared with benches/instructions.txt
  differential  [PROGRAMS [FIRST SEED]]: random programs against the evaluator, on all processors; a million
  fuzz      TARGET|all [SECONDS]: random input under AddressSanitizer (nightly compiler, cargo-fuzz)
  mutants   SUBJECT [SHARD]: change one thing at a time, and see that a test fails (cargo-mutants)
  dependencies  licences, versions and sources of what is depended on (cargo-deny)
  soak      [SECONDS]: everything mixed, over and over; the process must not grow
  accounting  [PACKAGE..]: tests, none of whose programs may leave a value or a block of memory
  onnx      [--filter WORD] [--list-failures] [--bits FILE]: the cases that ONNX has of each operation (pip gets them);
            hashes of their outputs' bits, for each instruction set, go to FILE
  stablehlo --testdata DIR [--filter WORD] [--list-failures]: StableHLO's interpreter suite and test data, from a checkout
  capi      plugins: C headers of TensorFlow and a published plugin (pip gets them), and the crate's tests
  python    the package for Python, built for development, and its tests (python3; pip gets what they need)
  gpu-kernels  compile the kernels of GPUs to PTX (pip gets the compiler; no GPU is needed)
  gpu-check [--pack] [--debug]: what is checked and measured on a real GPU: here, or packed for a machine that has one
  gpu-sim   --upstream DIR [--seeds N] [--orders N] [--filter WORD]: the original's programs for GPUs, from a clone of it,
            on simulated ones; 32 seeds, 5 orders
  real-files  [--filter WORD] [--at-least N]: models inside published packages (pip gets them), beside ONNX Runtime";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut steps = Steps::new();
    match words.as_slice() {
        ["ci"] => ci(&mut steps),
        ["tidy"] => steps.check("tidy", tidy::check),
        ["bless"] => steps.tests(
            "bless",
            steps::cargo(&["test"])
                .args(accounting::WORKSPACE)
                .env("UPDATE_EXPECT", "1"),
        ),
        ["loom"] => checkers::loom(&mut steps, checkers::Depth::Full),
        ["shuttle"] => checkers::shuttle(&mut steps, None),
        ["shuttle", number] if number.parse::<u64>().is_ok() => {
            checkers::shuttle(&mut steps, number.parse().ok());
        }
        ["asan"] => checkers::asan(&mut steps),
        ["tsan"] => checkers::tsan(&mut steps),
        ["miri"] => checkers::miri(&mut steps),
        ["aarch64"] => checkers::aarch64(&mut steps),
        ["size"] => size::check(&mut steps, size::Depth::Full),
        ["bench"] => bench::run(&mut steps, None),
        ["bench", word] => bench::run(&mut steps, Some(word)),
        ["instructions", arguments @ ..] => {
            bench::instructions(&mut steps, bench::Counted::All, arguments);
        }
        ["gpu-kernels"] => gpu::kernels(&mut steps),
        ["gpu-check", arguments @ ..] => {
            if !gpu_check::run(&mut steps, arguments) {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
        }
        ["gpu-sim", arguments @ ..] => {
            if !gpu_sim::run(&mut steps, arguments) {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
        }
        ["checkers"] => planted::find_all(&mut steps, ""),
        ["checkers", name] => planted::find_all(&mut steps, name),
        ["fuzz", target, seconds @ ..] if seconds.len() < 2 => {
            if !fuzz::run(&mut steps, target, seconds.first().copied()) {
                eprintln!("{USAGE}\n\nTargets: {}", fuzz::TARGETS.join(", "));
                return ExitCode::from(2);
            }
        }
        ["dependencies"] => dependencies::check(&mut steps),
        ["mutants", subject, shard @ ..] if shard.len() < 2 => {
            if !mutants::run(&mut steps, subject, shard.first().copied()) {
                eprintln!("{USAGE}\n\nSubjects: {}", mutants::names().join(", "));
                return ExitCode::from(2);
            }
        }
        ["differential", arguments @ ..] => {
            if !differential::campaign(&mut steps, arguments) {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
        }
        ["soak", seconds @ ..] if seconds.len() < 2 => {
            let soak = [
                "run",
                "--release",
                "-p",
                "tfrt-fuzz",
                "--example",
                "soak",
                "--",
            ];
            steps.run("soak", steps::cargo(&soak).args(seconds));
        }
        ["accounting"] => accounting::tests(&mut steps, &accounting::WORKSPACE),
        ["accounting", packages @ ..] => {
            let choice: Vec<&str> = packages.iter().flat_map(|name| ["-p", *name]).collect();
            accounting::tests(&mut steps, &choice);
        }
        ["onnx", arguments @ ..] => onnx::run(&mut steps, arguments),
        ["stablehlo", arguments @ ..] => stablehlo::run(&mut steps, arguments),
        ["capi"] => capi::run(&mut steps),
        ["python"] => {
            python::run(&mut steps, python::Module::Alone);
        }
        ["real-files", arguments @ ..] => real_files::run(&mut steps, arguments),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    steps.finish()
}

fn ci(steps: &mut Steps) {
    steps.check("tidy", tidy::check);
    dependencies::check(steps);
    steps.run("format", &mut steps::cargo(&["fmt", "--all", "--check"]));
    // Crates are compiled in rows, and many tests wait, both of which leave processors idle: these builds, each with a
    // target folder or a profile of its own, take what is left. So does pip, which waits for its registry.
    let mut builds = vec![
        bench::build(),
        differential::build(),
        checkers::shuttle_command(None),
    ];
    builds.extend(checkers::MODELS.iter().map(checkers::Models::build));
    builds.extend(size::builds());
    let builds = Steps::start("builds of their own", builds);
    let python = thread::spawn(python::environment);
    let clippy = ["clippy", "--workspace", "--all-targets", "--all-features"];
    steps.run(
        "lints",
        steps::cargo(&clippy).args(["--", "-D", "warnings"]),
    );
    accounting::build(steps, &accounting::WITH_PYTHON);
    accounting::tests(steps, &accounting::WITH_PYTHON);
    steps.join(builds);
    // Without the tool the tests that show it programs have nothing to do.
    if !steps::exists("mlir-opt-19") {
        steps.skip("programs under mlir-opt", "mlir-opt-19 (mlir-19-tools)");
    }
    let browsers = ["chromium", "chromium-browser", "google-chrome"];
    if !browsers.into_iter().any(steps::exists) {
        steps.skip("pages in a browser", "chromium");
    }
    let mut first_command = Command::new(steps::target("debug").join("tfrt"));
    first_command.args(["run", "examples/fizzbuzz.mlir"]);
    steps.run("first command", first_command.current_dir(steps::root()));
    let python = python.join().unwrap_or(Err("python3"));
    let python = python::installed(steps, python, python::Module::OfTests);
    // The tests of the package run on one processor; cargo, which has one lock for both of these, on the others.
    let mut docs = steps::cargo(&["doc", "--workspace", "--no-deps", "--all-features"]);
    docs.env("RUSTDOCFLAGS", "-D warnings");
    let docs = Steps::start("docs", vec![docs]);
    // The front crate and the module build by themselves, without what tests of other packages ask of libraries.
    let mut alone = steps::cargo(&["check", "--quiet", "-p", "tfrt-python"]);
    alone.args(["--features", "extension"]);
    let alone = Steps::start("the package for Python alone", vec![alone]);
    if let Some(python) = python {
        python::tests(steps, &python);
    }
    steps.join(docs);
    steps.join(alone);
    bench::instructions(steps, bench::Counted::Executor, &[]);
    checkers::loom(steps, checkers::Depth::Short);
    checkers::shuttle(steps, None);
    size::check(steps, size::Depth::Short);
    // At the end, since it takes what time is left.
    differential::ci(steps);
}
