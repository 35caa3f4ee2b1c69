//! Checks a driver and the kernels, or measures them: `gpu_check [sticky|ulps|bench] [--sim] [--records FILE]`. It needs a driver
//! and nothing else, so that it can be carried to a machine that has one; with `--sim` it takes the simulated one, at small
//! sizes. `gpu_check report FOLDER` makes `gpu-check.json` and a table of what was recorded.
//!
//! It ends with 1 if a check fails, with 3 where no GPU is.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::exit;
use std::sync::Arc;
use std::time::Instant;

use tfrt_gpu::GpuDevice;
use tfrt_gpu::conformance::{self, Bed};
use tfrt_host::HostContext;
use tfrt_host::device::Device;
use tfrt_host::kernel::KernelRegistry;

#[path = "common/bench.rs"]
mod bench;
#[path = "../tests/library/programs.rs"]
mod programs;
#[path = "common/records.rs"]
mod records;
#[path = "common/report.rs"]
mod report;
#[path = "../tests/library/rows.rs"]
mod rows;
#[path = "../tests/library/streams.rs"]
mod streams;
#[path = "../tests/library/ulps.rs"]
mod ulps;

use records::Records;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [command, folder] = &*words
        && command == "report"
    {
        match report::report(Path::new(folder)) {
            Ok(table) => print!("{table}"),
            Err(error) => {
                println!("{folder}: {error}");
                exit(2);
            }
        }
        return;
    }
    let begin = Instant::now();
    let mut records = Records::open(words.into_iter());
    println!("opened in {:?}", begin.elapsed());
    match &*records.words {
        [] => all(&mut records),
        [word] if word == "bench" => bench::run(&mut records),
        [word] if word == "ulps" => functions(&mut records, 100_000, 1),
        [word] if word == "sticky" => {
            let driver = records.driver.clone();
            let passed = catch_unwind(AssertUnwindSafe(|| conformance::sticky(&driver))).is_ok();
            records.check("a lost context stays lost", passed, None, "");
        }
        _ => {
            println!(
                "usage: gpu_check [sticky|ulps|bench] [--sim] [--records FILE], gpu_check report FOLDER"
            );
            exit(2);
        }
    }
    exit(i32::from(records.n_failed > 0));
}

/// Runs all checks but the one that loses the context.
fn all(records: &mut Records) {
    let driver = records.driver.clone();
    let begin = Instant::now();
    let device = driver.device(0).expect("there is a device");
    driver.retain_primary(device).expect("it has a context");
    println!("context made in {:?}", begin.elapsed());
    for (promise, check) in conformance::checks() {
        let passed = catch_unwind(AssertUnwindSafe(|| Bed::with(&driver, *check))).is_ok();
        records.check(promise, passed, None, "");
    }
    let of_device = || {
        tfrt_host::device::conformance::suite(&|id| {
            let host = HostContext::builder(KernelRegistry::new()).build();
            let device = GpuDevice::new(driver.clone(), 0, host.allocator().clone());
            let device = device.expect("there is a device");
            device.number(id);
            let device: Arc<dyn Device> = Arc::new(device);
            device
        });
    };
    let passed = catch_unwind(AssertUnwindSafe(of_device)).is_ok();
    records.check("the promises of devices", passed, None, "");
    let (is_real, n_seeds) = match records.is_simulated {
        true => (false, 1),
        false => (true, 3),
    };
    for seed in 1..=n_seeds {
        for (passed, line) in rows::compare(&driver, seed, is_real) {
            compared(records, &line, passed, seed.into());
        }
    }
    let (n_programs, n_numbers) = match records.is_simulated {
        true => (20, 64),
        false => (200, 100_000),
    };
    for (passed, line) in programs::compare(&driver, 1, n_programs, n_numbers) {
        compared(records, &line, passed, 1);
    }
    let (n_passed, n_failed) = (records.n_passed, records.n_failed);
    println!("{n_passed} of {} passed", n_passed + n_failed);
}

/// Compares functions with double precision, of so many numbers of f32 and each `stride`th of f16, and prints a table.
fn functions(records: &mut Records, n_numbers: usize, stride: usize) {
    let lines = ulps::compare(&records.driver.clone(), n_numbers, stride);
    for (function, found, is_within) in &lines {
        let told = match found {
            Ok([of_f32, of_f16]) => format!("f32 {} ulp, f16 {} ulp", of_f32.ulps, of_f16.ulps),
            Err(error) => error.to_string(),
        };
        let name = format!("{} beside double precision", function.step);
        records.check(&name, *is_within, None, &told);
    }
    print!("{}", ulps::table(&lines));
}

/// Records a comparison with the processor: a line of what was compared, and behind a colon the difference.
fn compared(records: &mut Records, line: &str, passed: bool, seed: u64) {
    let (name, detail) = line.rsplit_once(": ").unwrap_or((line, "the same bits"));
    records.check(name, passed, Some(seed), detail);
}
