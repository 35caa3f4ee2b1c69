//! The speed of the toolchain, text to bytes, and bytes to a file that is accepted: megabytes of
//! input in a second, one thread.
//!
//! Beside `open` stands the cheapest thing that looks at all bytes: adding them up. Beside the
//! tools for text stands `mlir-opt-19`, where it is installed: both read a module in generic form,
//! verify it and print it, and its time without a module is taken off.

#![forbid(unsafe_code)]

use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use tfrt_bef::{BefBuffer, BefFile};
use tfrt_benches::measure::Times;
use tfrt_benches::programs;
use tfrt_compiler::{CompileOptions, compile};
use tfrt_ir::{PrintOptions, Source, parse, print, verify};

fn main() {
    println!(
        "medians of the processor time of interleaved runs; spread is half the interquartile range"
    );
    let programs = [
        ("mixed, 1500 functions of 100", programs::mixed(1500, 100)),
        ("mixed, 1 function of 150000", programs::mixed(1, 150_000)),
        ("chain of 200000", programs::chain(200_000)),
        ("tables, 10000 of 64 numbers", programs::tables(10_000)),
    ];
    let n_runs = std::env::var("TFRT_BENCH_RUNS")
        .ok()
        .and_then(|runs| runs.parse().ok());
    // `cargo bench --bench toolchain -- mixed` measures what has the word in its name.
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut words = words.iter().filter(|word| !word.starts_with('-'));
    let word = words.next();
    for (name, text) in programs {
        if word.is_some_and(|word| !name.contains(word.as_str())) {
            continue;
        }
        if name.contains("1500 functions") {
            compare(name, &text);
        }
        measure(name, text, n_runs.unwrap_or(15));
    }
}

/// Compares with the peer, in wall time, since it is a process of its own.
fn compare(name: &str, text: &str) {
    const PEER: &str = "mlir-opt-19";
    const N_RUNS: usize = 5;
    let module = parse(&Source::new("bench.mlir", text)).expect("the program is right");
    let generic = PrintOptions {
        generic: true,
        ..PrintOptions::default()
    };
    let text = print(&module, generic);
    let folder = std::env::temp_dir();
    let paths = ["tfrt-bench-empty.mlir", "tfrt-bench.mlir"].map(|name| folder.join(name));
    for (path, text) in paths.iter().zip(["", &text]) {
        std::fs::write(path, text).expect("the folder for temporary files can be written");
    }
    let run = |path: &Path| {
        let start = Instant::now();
        let mut command = Command::new(PEER);
        command.args(["--allow-unregistered-dialect", "--mlir-print-op-generic"]);
        let output = command.arg(path).args(["-o", "/dev/null"]).output();
        output
            .ok()
            .filter(|output| output.status.success())
            .map(|_| start.elapsed())
    };
    let [mut theirs, mut ours] = [(); 2].map(|()| Times::default());
    for _ in 0..N_RUNS {
        let (Some(empty), Some(full)) = (run(&paths[0]), run(&paths[1])) else {
            println!("  SKIPPED: {PEER} is not installed, or does not take the module");
            break;
        };
        theirs.push(full.saturating_sub(empty));
        let start = Instant::now();
        let source = Source::read(&paths[1]).expect("it was just written");
        let module = parse(&source).expect("it was printed");
        verify(&module).expect("it was printed");
        black_box(print(&module, generic));
        ours.push(start.elapsed());
    }
    paths
        .iter()
        .for_each(|path| drop(std::fs::remove_file(path)));
    if theirs.n_runs() == 0 {
        return;
    }
    println!(
        "{name}, generic: {:.1} MB of text; read, verify, print; wall time",
        text.len() as f64 / 1e6
    );
    for (what, times) in [("tfrt", &ours), (PEER, &theirs)] {
        println!(
            "  {what:<18} {:8.1} MB/s  {:8.2} ms  +-{:.0}%",
            times.megabytes_per_second(text.len()),
            times.median().as_secs_f64() * 1e3,
            times.spread() * 100.0
        );
    }
    println!(
        "  {PEER} takes {:.1} times as long",
        theirs.median().as_secs_f64() / ours.median().as_secs_f64()
    );
}

fn measure(name: &str, text: String, n_runs: usize) {
    let len_bytes = text.len();
    let source = Source::new("bench.mlir", text);
    let options = CompileOptions::default();
    let [mut parsing, mut verifying, mut compiling, mut all] = [(); 4].map(|()| Times::default());
    let [mut opening, mut summing] = [(); 2].map(|()| Times::default());
    let mut bytes = Vec::new();
    for _ in 0..n_runs {
        let module = parse(&source).expect("the program is right");
        parsing.take(|| parse(&source));
        verifying.take(|| verify(&module));
        compiling.take(|| compile(&module, &options));
        drop(module);
        let mut file = None;
        all.take(|| {
            let module = parse(&source).expect("the program is right");
            verify(&module).expect("the program is right");
            file = compile(&module, &options).ok();
            module
        });
        bytes = file.expect("the program is right").as_bytes().to_vec();
        let buffer = BefBuffer::from_vec(bytes.clone());
        opening.take(|| BefFile::open(buffer));
        summing.take(|| {
            black_box(&bytes)
                .iter()
                .map(|byte| u64::from(*byte))
                .sum::<u64>()
        });
    }
    println!(
        "{name}: {:.1} MB of text, {:.1} MB of bytes",
        len_bytes as f64 / 1e6,
        bytes.len() as f64 / 1e6
    );
    let rows = [
        ("parse", &parsing, len_bytes),
        ("verify", &verifying, len_bytes),
        ("compile", &compiling, len_bytes),
        ("all three", &all, len_bytes),
        ("open", &opening, bytes.len()),
        ("sum of the bytes", &summing, bytes.len()),
    ];
    for (what, times, len_bytes) in rows {
        println!(
            "  {what:<18} {:8.1} MB/s  {:8.2} ms  +-{:.0}%",
            times.megabytes_per_second(len_bytes),
            times.median().as_secs_f64() * 1e3,
            times.spread() * 100.0
        );
    }
}
